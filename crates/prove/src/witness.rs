//! A launch that fulfils what a proof assumes: of launches that there are none of anything can be proved.
//!
//! To look at one is to evaluate it: the checker of certificates does no more. Looked for is it among those of the
//! author, in models of the conditions, and among small launches whose objects are made as large as conditions ask.

use std::collections::BTreeMap;

use invar_ir::{Dim, Dimension, Kernel, Memory, Module, ParamKind, Requirement, TextureType, Type};
use invar_texture::{PixelFormat, TextureShape};

use crate::condition::{Condition, Number};
use crate::launch::Launch;
use crate::made;
use crate::prove::{Goal, Session};
use crate::required;
use crate::subject::{Engine, Subject};
use crate::thread::{LARGEST_BUFFER, LARGEST_GRID, LARGEST_THREADGROUP, MOST_LEVELS};

/// Models are looked for with numbers of the launch at most so large, small ones first.
const LIMITS: [Option<i128>; 5] = [Some(40), Some(300), Some(3000), Some(70_000), None];
/// What scalars are in small launches.
const SCALARS: [i128; 9] = [1, 0, 2, 4, 8, 16, 64, 256, 1024];
/// How large objects are before conditions ask for more.
const OBJECTS: [i128; 4] = [1, 16, 64, 1024];
/// How often what a condition asks is made so: one may follow from another.
const ITERATIONS: usize = 4;

/// The numbers of a kernel's launches, fields of elements aside.
pub fn numbers(module: &Module, kernel: &Kernel) -> Vec<Number> {
    let mut all = Vec::new();
    for d in Dim::ALL {
        all.extend([Number::Grid(d), Number::Threadgroup(d)]);
    }
    for (i, param) in kernel.params.iter().enumerate() {
        match &param.kind {
            ParamKind::Scalar { value } => {
                let is_integer =
                    matches!(kernel.ty(*value), Type::Scalar(scalar) if scalar.is_integer());
                all.extend(is_integer.then_some(Number::Argument(i)));
            }
            ParamKind::Buffer { .. }
            | ParamKind::Constant { .. }
            | ParamKind::Threadgroup { .. } => all.push(Number::Length(i)),
            ParamKind::Texture(_) => {
                all.extend(Dim::ALL.map(|d| Number::Texels(i, d)));
                all.push(Number::Levels(i));
            }
            ParamKind::Sampler => {}
        }
    }
    let constants = module.function_constants.iter().enumerate();
    let constants = constants.filter(|(_, c)| c.scalar.is_integer());
    all.extend(constants.map(|(i, _)| Number::Constant(i)));
    all
}

/// A texture of that size, if there is one.
fn shape_of(
    ty: TextureType,
    [columns, rows, slices]: [i128; 3],
    levels: i128,
) -> Option<TextureShape> {
    let dimension = ty.dimension;
    let shape = |samples: u32| {
        let size = |n: i128| u32::try_from(n).map_err(|e| e.to_string());
        let (columns, rows, slices) = (size(columns)?, size(rows)?, size(slices)?);
        let format = PixelFormat::R32Float;
        let shape = match dimension {
            Dimension::Buffer => TextureShape::buffer(format, columns)?,
            Dimension::D3 => TextureShape::volume(format, columns, rows, slices)?,
            _slices => TextureShape::new(format, columns, rows)?,
        };
        let shape = match samples {
            1 if dimension == Dimension::D3 => shape,
            1 => shape.with_depth(slices)?,
            _several if !slices.is_multiple_of(samples) => return Err(String::new()),
            several => shape.with_depth(slices / several)?.with_samples(several)?,
        };
        shape.with_levels(size(levels)?)
    };
    let samples: &[u32] = match dimension.has_samples() {
        true => &[2, 4, 8],
        false => &[1],
    };
    let mut shapes = samples.iter().filter_map(|n| shape(*n).ok());
    shapes.find(|shape| dimension.refuses(*shape).is_none())
}

impl Subject<'_> {
    /// Whether there is a launch of all these numbers and contents, which fulfils the conditions and what the kernel
    /// requires, as the checked device looks at it.
    pub fn is_witness(&self, launch: &Launch, conditions: &[Condition]) -> bool {
        if self.is_unlike(launch, conditions).is_some() {
            return false;
        }
        let shapes = self.textures().map(|(i, ty)| {
            let texels = Dim::ALL.map(|d| Number::Texels(i, d).of(launch).unwrap_or(0));
            let levels = Number::Levels(i).of(launch).unwrap_or(0);
            Some((i, shape_of(ty, texels, levels)?))
        });
        let shapes: Option<BTreeMap<usize, TextureShape>> = shapes.collect();
        shapes.is_some_and(|shapes| made::fulfils(self.module, self.kernel, launch, &shapes))
    }

    /// What keeps numbers from being those of a launch that fulfils the conditions and what the kernel requires, as a
    /// sentence says it; `None` if nothing does.
    pub fn is_unlike(&self, launch: &Launch, conditions: &[Condition]) -> Option<String> {
        let range = |number: Number| match number {
            Number::Grid(d) if self.unused[d as usize] => (1, 1),
            Number::Grid(_) => (1, LARGEST_GRID),
            Number::Threadgroup(d) => match self.kernel.threadgroup_size {
                Some(size) => (size[d as usize].into(), size[d as usize].into()),
                None => (1, LARGEST_THREADGROUP),
            },
            Number::Length(_) => (0, LARGEST_BUFFER),
            Number::Groups(_) | Number::Texels(..) | Number::Levels(_) => (1, i128::MAX),
            Number::Argument(_) | Number::Constant(_) | Number::Field(..) => number.range(self),
        };
        let fields = launch.fields.keys().map(|(i, at)| Number::Field(*i, *at));
        for number in numbers(self.module, self.kernel).into_iter().chain(fields) {
            let (least, most) = range(number);
            let name = number.name(self.module, self.kernel);
            match number.of(launch) {
                None => return Some(format!("it does not say {name}")),
                Some(n) if !(least..=most).contains(&n) && least == most => {
                    return Some(format!("{name} is {n} there, not {least}"));
                }
                Some(n) if !(least..=most).contains(&n) => {
                    return Some(format!("{name} cannot be {n}"));
                }
                Some(_) => {}
            }
        }
        let threads = launch.threadgroup.iter().flatten().product::<i128>();
        if threads > LARGEST_THREADGROUP {
            return Some(format!("no threadgroup has {threads} threads"));
        }
        if let Some(broken) = conditions.iter().find(|c| c.holds(launch) != Some(true)) {
            let text = broken.text(self.module, self.kernel);
            return Some(format!("it breaks the condition `{text}`"));
        }
        let is_refused = |r: &&Requirement| required::holds(r, launch) == Some(false);
        let broken = self.kernel.requires.iter().find(is_refused)?;
        let text = broken.in_words(self.module, self.kernel);
        Some(format!("it breaks requires({text})"))
    }

    fn textures(&self) -> impl Iterator<Item = (usize, TextureType)> + '_ {
        let all = self.kernel.params.iter().enumerate();
        all.filter_map(|(i, param)| match &param.kind {
            ParamKind::Texture(ty) => Some((i, *ty)),
            _ => None,
        })
    }

    /// A launch with what it does not say filled in: scalars are `scalar`, and objects have `size` elements, which are
    /// as the kernel requires, as far as that is found.
    fn filled(&self, mut launch: Launch, scalar: i128, size: i128) -> Launch {
        let of_elements = made::of_elements(self.kernel);
        launch.contents.retain(|memory, _| match memory {
            Memory::Param(place) => of_elements.contains_key(place),
            _another => false,
        });
        launch.samples.clear();
        launch.groups = [None; 3];
        for d in 0..3 {
            let threads = match self.kernel.threadgroup_size {
                Some(size) => i128::from(size[d]),
                None => launch.threadgroup[d].unwrap_or(1),
            };
            launch.threadgroup[d] = Some(threads);
            if self.unused[d] {
                launch.grid[d] = Some(1);
            }
            launch.grid[d] = launch.grid[d].or(Some(threads));
        }
        launch.numbers.resize(self.kernel.params.len(), None);
        let constants = self.module.function_constants.len();
        launch.constants.resize(constants, None);
        let fields = self.fields_loaded().into_iter();
        let fields = fields.chain(made::fields_required(self.kernel));
        for number in numbers(self.module, self.kernel).into_iter().chain(fields) {
            if number.of(&launch).is_some() {
                continue;
            }
            let to = match number {
                Number::Argument(_) | Number::Constant(_) | Number::Field(..) => {
                    let (least, most) = number.range(self);
                    scalar.clamp(least, most)
                }
                Number::Levels(_) => 1,
                Number::Texels(i, d) => match self.kernel.texture(Memory::Param(i as u32)) {
                    Some(ty) => usual_texels(ty.dimension, d, size),
                    None => 1,
                },
                _object => size,
            };
            number.set(&mut launch, to);
        }
        self.make_room_for_levels(&mut launch);
        made::give_elements(self.kernel, &mut launch);
        launch
    }

    /// Makes the columns of textures as many as their levels ask for: each level has half as many as the one before.
    fn make_room_for_levels(&self, launch: &mut Launch) {
        for (i, ty) in self.textures() {
            let levels = launch.levels.get(&i).copied().unwrap_or(1);
            let needed = 1 << (levels.clamp(1, MOST_LEVELS) - 1);
            let halved = match ty.dimension {
                Dimension::D3 => &Dim::ALL[..],
                _slices => &Dim::ALL[..2],
            };
            let texels = |d: &Dim| launch.texels.get(&(i, *d)).copied();
            if halved.iter().filter_map(texels).max() < Some(needed) {
                launch.texels.insert((i, Dim::X), needed);
                if ty.dimension.is_cube() {
                    launch.texels.insert((i, Dim::Y), needed);
                }
            }
        }
    }
}

fn usual_texels(dimension: Dimension, d: Dim, size: i128) -> i128 {
    const MANY: i128 = 64;
    match (d, dimension) {
        (_, of) if !of.has_extent(d) => 1,
        (Dim::Z, Dimension::Cube | Dimension::CubeArray) => 6,
        (Dim::Z, Dimension::D2Ms) => 4,
        (Dim::Z, Dimension::D2MsArray) => 8,
        (Dim::X | Dim::Y | Dim::Z, _) => size.min(MANY),
    }
}

/// Makes what a condition asks of an object, or of what is passed, as it asks.
fn mended(launch: &mut Launch, condition: &Condition) {
    if condition.holds(launch) != Some(false) {
        return;
    }
    match condition {
        Condition::AtMost(term, bound) => {
            let Some(needed) = term.of_launch(launch) else {
                return;
            };
            if let ([room], factor @ 1..) = (&bound.numbers[..], bound.factor) {
                room.set(launch, (needed + factor - 1) / factor);
            }
            // What the grid is cannot be made larger so.
            if condition.holds(launch) == Some(false)
                && let (Some(most), [number], 1) =
                    (bound.of_launch(launch), &term.numbers[..], term.factor)
            {
                number.set(launch, most);
            }
        }
        Condition::More(_, _, room) | Condition::Sum(_, _, room) => {
            if let Some(needed) = condition.needs(launch) {
                room.set(launch, needed);
            }
        }
        Condition::Below(number, most) => number.set(launch, *most),
        Condition::Multiple(number, of) => {
            if let Some(n) = number.of(launch) {
                number.set(launch, (n + of - 1) / of * of);
            }
        }
        Condition::Together(a, b, most) => {
            if let (Some(other), [number], 1) = (b.of_launch(launch), &a.numbers[..], a.factor) {
                number.set(launch, most - other);
            }
        }
    }
}

impl Session<'_, '_> {
    /// A launch that fulfils the conditions at hand, if one is found.
    pub(crate) fn witness(&mut self) -> Option<Launch> {
        let conditions = self.subject.conditions.borrow().clone();
        let subject = self.subject;
        let fits = |launch: &Launch| subject.is_witness(launch, &conditions);
        if let Some(known) = self.known_launch.clone().filter(&fits) {
            return Some(known);
        }
        // A certificate has its own.
        if let Engine::Certificate(_) = subject.engine {
            return None;
        }
        let found = subject.find_launch(&self.runs, &conditions);
        self.known_launch.clone_from(&found);
        found
    }

    /// Whether conditions leave launches in which a goal is about anything. What the author launches counts as such;
    /// else a thread has to get to each access, unless none does without the conditions that are new, either.
    pub(crate) fn leaves_launches(&mut self, goal: Goal, before: &[Condition]) -> bool {
        if self.witness().is_none() {
            return false;
        }
        let sites = match goal {
            Goal::Bounds(site, _) => vec![site],
            Goal::Part(_) | Goal::Offset(_) => Vec::new(),
            Goal::Race(pair) => vec![self.pairs[pair].a.0, self.pairs[pair].b.0],
        };
        self.runs.is_empty().then_some(sites).is_none_or(|sites| {
            sites.into_iter().all(|site| {
                let now = self.subject.conditions.borrow().clone();
                if !self.subject.is_never_reached(site) {
                    return true;
                }
                self.subject.conditions.replace(before.to_vec());
                let never = self.subject.is_never_reached(site);
                self.subject.conditions.replace(now);
                never
            })
        })
    }
}

impl Subject<'_> {
    /// A launch that fulfils conditions, and what the kernel requires.
    fn find_launch(&self, runs: &[Launch], conditions: &[Condition]) -> Option<Launch> {
        let fits = |launch: &Launch| self.is_witness(launch, conditions);
        let written = runs.iter().cloned();
        let mut found = written.map(|run| self.filled(run, 1, 64)).find(&fits);
        if found.is_none() {
            found = small_launches(self, conditions).find(&fits);
        }
        if found.is_none() {
            let modelled = LIMITS.iter().filter_map(|limit| self.model(*limit));
            found = modelled.map(|l| self.filled(l, 1, 8)).find(&fits);
        }
        found
    }

    /// What a kernel requires that no launch was found to fulfil, by the places of the requirements: none of them can be
    /// left out. Empty if there are launches that fulfil all.
    pub(crate) fn unfulfilled(&self, runs: &[Launch]) -> Vec<usize> {
        if self.find_launch(runs, &[]).is_some() {
            return Vec::new();
        }
        let mut kept: Vec<usize> = (0..self.kernel.requires.len()).collect();
        for place in kept.clone() {
            let fewer: Vec<usize> = kept.iter().copied().filter(|k| *k != place).collect();
            let mut kernel = self.kernel.clone();
            let requires = fewer.iter().map(|k| self.kernel.requires[*k].clone());
            kernel.requires = requires.collect();
            let wide = self.unused.map(|unused| !unused);
            let other = Subject::new(self.module, &kernel, Engine::Solver, wide);
            if other.find_launch(runs, &[]).is_none() {
                kept = fewer;
            }
        }
        kept
    }
}

/// Small launches that were made to fulfil the conditions, as far as each can be by itself.
fn small_launches<'a>(
    subject: &'a Subject<'_>,
    conditions: &'a [Condition],
) -> impl Iterator<Item = Launch> + 'a {
    let groups = [1, 2];
    let scalars = SCALARS.into_iter();
    let sizes = move |scalar| OBJECTS.into_iter().map(move |size| (scalar, size));
    let each = groups.into_iter();
    let each = each.flat_map(move |g| scalars.clone().flat_map(sizes).map(move |s| (g, s)));
    each.map(move |(groups, (scalar, size))| {
        let mut launch = Launch::default();
        for d in 0..3 {
            let threads = match subject.kernel.threadgroup_size {
                Some(size) => i128::from(size[d]),
                None => [4, 2, 1][d],
            };
            launch.threadgroup[d] = Some(threads);
            launch.grid[d] = Some(threads * groups);
        }
        let mut launch = subject.filled(launch, scalar, size);
        for _ in 0..ITERATIONS {
            conditions.iter().for_each(|c| mended(&mut launch, c));
            subject.make_room_for_levels(&mut launch);
            made::give_elements(subject.kernel, &mut launch);
        }
        launch
    })
}
