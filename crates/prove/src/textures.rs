//! Textures under proof: how many texels, levels and samples they have, and where a texel is.
//!
//! A texel has a coordinate for each thing that its texture counts, and lies in a level (V1, V5, V8, V11, V12). Each
//! may be beyond an edge by itself. Level `l` has `max(floor(size / 2^l), 1)` texels in a row and in a column, and so
//! many slices of a volume (V18).
//!
//! Deliberately absent: coordinates of samples, which are brought into their texture (V3).

use invar_ir::texture::{atomic_coordinates, extent_name};
use invar_ir::{Dim, Dimension, InstKind, Memory, Value};

use crate::linear::{Formula, Linear};
use crate::query::{Int, Query};
use crate::subject::{Among, Direction, Extent, Subject, Texel};
use crate::thread::{LARGEST_ROW, LARGEST_TEXTURE, MOST_LEVELS};

/// How many samples a texel may have, where it has several.
const SAMPLES: [i128; 3] = [2, 4, 8];
/// The faces of a cube.
const FACES: i128 = 6;

/// How many there are.
impl Subject<'_> {
    pub fn dimension(&self, texture: Memory) -> Option<Dimension> {
        self.kernel.texture(texture).map(|ty| ty.dimension)
    }

    /// The directions in which levels halve a texture.
    fn halved(&self, texture: Memory) -> &'static [Dim] {
        match self.dimension(texture) {
            Some(Dimension::D3) => &[Dim::X, Dim::Y, Dim::Z],
            Some(_) | None => &[Dim::X, Dim::Y],
        }
    }

    fn number_of(&self, q: &mut Query, texture: Memory, what: &str, most: i128) -> Int {
        let info = self.module.memory(self.kernel, texture);
        let name = info.map_or_else(String::new, |info| info.name.to_string());
        q.symbol(&format!("{what}({name})"), 1, most)
    }

    /// How many texels a texture has in a direction: columns, rows, and slices, of all its elements. One in those
    /// that it does not have.
    pub fn texels(&self, q: &mut Query, texture: Memory, d: Dim) -> Int {
        let Some(dimension) = self.dimension(texture).filter(|of| of.has_extent(d)) else {
            return Int::constant(1);
        };
        let most = match dimension {
            Dimension::Buffer => LARGEST_ROW,
            _sampled => LARGEST_TEXTURE,
        };
        if d == Dim::Z && dimension == Dimension::Cube {
            return Int::constant(FACES);
        }
        let texels = self.number_of(q, texture, extent_name(d), most);
        if !q.first_time(&format!("{:?} are texels", texels.form)) {
            return texels;
        }
        if d == Dim::Z && dimension.slices(1).is_some() {
            let elements = self.elements(q, texture).form;
            let each = match dimension.has_samples() {
                true => SAMPLES.to_vec(),
                false => vec![FACES],
            };
            let samples = self.samples(q, texture).form;
            let one = |each: i128| {
                let mut all = vec![Formula::eq(&texels.form, &elements.times(each)?)?];
                if dimension.has_samples() {
                    all.push(Formula::eq(&samples, &Linear::constant(each))?);
                }
                Some(Formula::all(all))
            };
            let one: Option<Vec<Formula>> = each.into_iter().map(one).collect();
            q.say(one.map(Formula::any));
        }
        self.say_all_texels(q, texture);
        // The faces of a cube are squares.
        if d == Dim::Y && dimension.is_cube() {
            let columns = self.texels(q, texture, Dim::X);
            q.say(Formula::eq(&texels.form, &columns.form));
        }
        texels
    }

    /// Says how many texels a texture has at most, as far as it is spoken of in several directions.
    fn say_all_texels(&self, q: &mut Query, texture: Memory) {
        let name = self.module.memory(self.kernel, texture);
        let name = name.map_or_else(String::new, |info| info.name.to_string());
        let known = |d| q.form(&format!("{}({name})", extent_name(d)));
        let known: Vec<Linear> = Dim::ALL.into_iter().filter_map(known).collect();
        if let [first, others @ ..] = &known[..]
            && !others.is_empty()
        {
            let mut all = Some(first.clone());
            for other in others {
                all = all.and_then(|all| q.product(&all, other));
            }
            q.say(all.and_then(|all| Formula::le(&all, &Linear::constant(LARGEST_ROW))));
        }
    }

    /// How many elements an array of textures has.
    pub fn elements(&self, q: &mut Query, texture: Memory) -> Int {
        match self.dimension(texture) {
            Some(Dimension::CubeArray | Dimension::D2MsArray) => {
                self.number_of(q, texture, "elements", LARGEST_TEXTURE)
            }
            Some(dimension) if dimension.is_array() => self.texels(q, texture, Dim::Z),
            Some(_) | None => Int::constant(1),
        }
    }

    /// How many samples a texel has.
    pub fn samples(&self, q: &mut Query, texture: Memory) -> Int {
        if !self.dimension(texture).is_some_and(Dimension::has_samples) {
            return Int::constant(1);
        }
        let samples = self.number_of(q, texture, "samples", SAMPLES[2]);
        if q.first_time(&format!("{:?} are samples", samples.form)) {
            let one = |n| Formula::eq(&samples.form, &Linear::constant(n));
            let one: Option<Vec<Formula>> = SAMPLES.into_iter().map(one).collect();
            q.say(one.map(Formula::any));
        }
        samples
    }

    /// How many levels a texture has.
    pub fn levels(&self, q: &mut Query, texture: Memory) -> Int {
        match self.dimension(texture) {
            Some(dimension) if dimension.has_levels() => {
                self.number_of(q, texture, "levels", MOST_LEVELS)
            }
            Some(_) | None => Int::constant(1),
        }
    }

    /// How many texels a level has in a direction, if there is the level.
    pub fn texels_of_level(
        &self,
        q: &mut Query,
        texture: Memory,
        d: Dim,
        level: &Int,
    ) -> Option<Int> {
        let first = self.texels(q, texture, d);
        let halved = self.halved(texture);
        if !halved.contains(&d) || level.as_constant() == Some(0) || first.high == 1 {
            return Some(first);
        }
        let key = format!("{:?} at level {:?}", first.form, level.form);
        let texels = q.symbol(&key, 1, first.high);
        if !q.first_time(&key) {
            return Some(texels);
        }
        q.say(Formula::le(&texels.form, &first.form));
        let there = level.as_constant().filter(|l| (1..MOST_LEVELS).contains(l));
        if let Some(number) = there {
            let (part, _) = self.floor(q, &first, 1 << number)?;
            q.say(either_or_one(&texels.form, &part.form));
            // There are no more levels than those to the one of one texel.
            let levels = self.levels(q, texture).form;
            let mut some = vec![Formula::le(&levels, &Linear::constant(number))?];
            for d in halved {
                let texels = self.texels(q, texture, *d).form;
                some.push(Formula::le(&Linear::constant(1 << number), &texels)?);
            }
            q.say(Some(Formula::any(some)));
        }
        // What is known of other levels, the first among them: the same has as many, and the next half as many.
        let own = (level.form.clone(), texels.form.clone());
        let mut others = q.levels.entry((texture, d)).or_default().clone();
        others.push((Linear::constant(0), first.form));
        q.levels.entry((texture, d)).or_default().push(own.clone());
        for (other, its) in others {
            if there.is_some() && other.as_constant().is_some() {
                continue;
            }
            let apart = own.0.plus(-1, &other)?;
            let same = Formula::eq(&texels.form, &its)?;
            match apart.as_constant() {
                Some(0) => q.say(Some(same)),
                Some(1) => self.say_half(q, (&other, &its), &texels.form)?,
                Some(-1) => self.say_half(q, (&own.0, &texels.form), &its)?,
                Some(_) => {}
                None => {
                    let differ = Formula::ne(&own.0, &other)?;
                    q.say(Some(Formula::any([differ, same])));
                }
            }
        }
        Some(texels)
    }

    /// Says that a level, if it is one, has twice as many texels as the next.
    fn say_half(
        &self,
        q: &mut Query,
        (level, texels): (&Linear, &Linear),
        next: &Linear,
    ) -> Option<()> {
        let whole = Int {
            form: texels.clone(),
            low: 1,
            high: LARGEST_TEXTURE,
        };
        let (halved, _) = self.floor(q, &whole, 2)?;
        let before = Formula::lt(level, &Linear::constant(0))?;
        let half = either_or_one(next, &halved.form)?;
        q.say(Some(Formula::any([before, half])));
        Some(())
    }
}

/// That a number is another, or 1 where that is 0.
fn either_or_one(number: &Linear, other: &Linear) -> Option<Formula> {
    let (none, one) = (Linear::constant(0), Linear::constant(1));
    let same = [Formula::le(&one, other)?, Formula::eq(number, other)?];
    let least = [Formula::eq(other, &none)?, Formula::eq(number, &one)?];
    Some(Formula::any([Formula::all(same), Formula::all(least)]))
}

/// Accesses.
impl Subject<'_> {
    /// What an instruction reaches of a texture; `None` if it is none that does.
    pub fn texels_of(&self, texture: Memory, kind: &InstKind) -> Option<Extent> {
        let dimension = self.dimension(texture)?;
        match kind {
            InstKind::Atomic { place, .. } => Some(Extent::Texel(Texel {
                at: atomic_coordinates(place),
                level: None,
            })),
            InstKind::Texture { function, args, .. } => {
                let operands = function.operands(dimension, args);
                if function.samples() {
                    let element = operands.at.get(dimension.axes());
                    return Some(Extent::Sample(element.copied()));
                }
                Some(Extent::Texel(Texel {
                    at: operands.at.into(),
                    level: operands.level,
                }))
            }
            _no_texels => None,
        }
    }

    /// The directions in which a texel may be beyond its texture.
    pub fn directions_of_texel(&self, texture: Memory, texel: &Texel) -> Vec<Direction> {
        let Some(dimension) = self.dimension(texture) else {
            return Vec::new();
        };
        let counted = dimension.counted().iter().zip(&texel.at);
        let coordinate = |(what, index): (&usize, &Value)| Direction {
            index: *index,
            among: match (what, dimension.slices(1)) {
                (0, _) => Among::Texels(Dim::X),
                (1, _) => Among::Texels(Dim::Y),
                (2, None) => Among::Texels(Dim::Z),
                (2, Some(_)) if dimension.has_samples() => Among::Samples,
                (2, Some(_)) => Among::Parts(FACES),
                _elements => Among::OfArray,
            },
        };
        let level = texel.level.map(|index| Direction {
            index,
            among: Among::Levels,
        });
        counted.map(coordinate).chain(level).collect()
    }

    /// The direction in which a sample may be beyond its texture: what lies between texels is brought into it (V3),
    /// but the element of an array is one that there is.
    pub fn directions_of_sample(&self, texture: Memory, element: Option<Value>) -> Vec<Direction> {
        let is_array = self.dimension(texture).is_some_and(Dimension::is_array);
        let element = element.filter(|_| is_array).map(|index| Direction {
            index,
            among: Among::OfArray,
        });
        element.into_iter().collect()
    }
}
