//! Samples and gathers, as [`invar_texture::sample`] has them.

use invar_ir::{Op, Scalar, Value};
use invar_texture::sample::{GATHERED, LIMIT};
use invar_texture::{Address, Border, Compare, Coordinates, Filter, Mip, Sampler};

use super::writer::{BEYOND, Writer};

/// What a coordinate of a sample leads to along an axis: the indices, and where there is no texel.
pub(super) struct Axis {
    pub(super) indices: [Value; 2],
    /// Whether there is one: always, where nothing is said.
    pub(super) inside: [Option<Value>; 2],
    pub(super) weight: Option<Value>,
}

impl Writer<'_> {
    /// As [`invar_texture::sample`], operation by operation.
    pub(super) fn sample(&mut self, sampler: Sampler, at: &[Value], lod: Option<Value>) -> Value {
        let several = self.texture.levels > 1 && sampler.mip != Mip::None;
        let lod = lod.or_else(|| sampler.first_lod().map(|lod| self.f32(lod)));
        let (Some(lod), true) = (lod, several) else {
            let sampled = self.sample_level(sampler, at);
            return self.vector(sampled);
        };
        let [least, most] = sampler.lod.limits();
        let zero = self.f32(0.0);
        let least = self.f32(least);
        let last = self.f32(most.min((self.texture.levels - 1) as f32));
        let lod = self.op(Op::Fmax, &[lod, least]);
        let lod = self.op(Op::Fmin, &[lod, last]);
        if sampler.mip == Mip::Nearest {
            let (half, one) = (self.f32(0.5), self.f32(1.0));
            let level = self.op(Op::Add, &[lod, half]);
            let level = self.op(Op::Ceil, &[level]);
            let level = self.op(Op::Sub, &[level, one]);
            let level = self.op(Op::Fmax, &[level, zero]);
            let level = self.cast(Scalar::U32, level);
            self.enter(level);
            let sampled = self.sample_level(sampler, at);
            return self.vector(sampled);
        }
        let base = self.op(Op::Floor, &[lod]);
        let weight = self.op(Op::Sub, &[lod, base]);
        let level = self.cast(Scalar::U32, base);
        self.enter(level);
        let first = self.sample_level(sampler, at);
        let (one, last) = (self.u32(1), self.u32(self.texture.levels - 1));
        let next = self.op(Op::Add, &[level, one]);
        let next = self.op(Op::Min, &[next, last]);
        self.enter(next);
        let second = self.sample_level(sampler, at);
        let mixed = [0, 1, 2, 3].map(|c| self.between(first[c], second[c], weight));
        self.vector(mixed)
    }

    /// A sample of the level that is reached.
    pub(super) fn sample_level(&mut self, sampler: Sampler, args: &[Value]) -> [Value; 4] {
        if self.texture.ty.dimension.is_cube() {
            return self.sample_cube(sampler, args);
        }
        let (axes, element) = self.axes(sampler, args);
        let count = match sampler.filter {
            Filter::Nearest => 1,
            Filter::Linear => 1 << axes.len(),
        };
        let mut left: Vec<[Value; 4]> = (0..count)
            .map(|corner| self.corner(sampler, &axes, element, corner))
            .collect();
        for (i, axis) in axes.iter().enumerate() {
            let Some(weight) = axis.weight else { break };
            for corner in (0..count).filter(|corner| corner >> i & 1 == 0) {
                let (first, second) = (left[corner], left[corner | 1 << i]);
                left[corner] = [0, 1, 2, 3].map(|c| self.between(first[c], second[c], weight));
            }
        }
        self.there(element, left[0])
    }

    pub(super) fn gather(&mut self, sampler: Sampler, args: &[Value], component: usize) -> Value {
        if self.texture.ty.dimension.is_cube() {
            let gathered = self.gather_cube(args, component);
            return self.four(gathered);
        }
        let linear = Sampler {
            filter: Filter::Linear,
            ..sampler
        };
        let (axes, element) = self.axes(linear, args);
        let gathered =
            GATHERED.map(|corner| self.corner(sampler, &axes, element, corner)[component]);
        let gathered = self.there(element, gathered);
        self.four(gathered)
    }

    /// What the coordinates of a sample lead to; and of an array the element, and whether there is one.
    pub(super) fn axes(
        &mut self,
        sampler: Sampler,
        args: &[Value],
    ) -> (Vec<Axis>, Option<(Value, Value)>) {
        let count = self.texture.ty.dimension.axes();
        let axes = (0..count)
            .map(|axis| self.axis(sampler, args[axis], axis as u32))
            .collect();
        let element = args.get(count).map(|element| {
            let extent = self.elements();
            let (element, inside) = self.coordinate(*element, extent);
            (self.cast(Scalar::I32, element), inside)
        });
        (axes, element)
    }

    /// These components, or zeros where an array has no such element.
    pub(super) fn there(
        &mut self,
        element: Option<(Value, Value)>,
        components: [Value; 4],
    ) -> [Value; 4] {
        let Some((_, inside)) = element else {
            return components;
        };
        let zero = self.component(0);
        components.map(|c| self.select(inside, c, zero))
    }

    /// `fma(weight, second - first, first)`.
    pub(super) fn between(&mut self, first: Value, second: Value, weight: Value) -> Value {
        let difference = self.op(Op::Sub, &[second, first]);
        self.op(Op::Fma, &[weight, difference, first])
    }

    /// The texel at one of the two indices of each axis, by the bits of the corner.
    pub(super) fn corner(
        &mut self,
        sampler: Sampler,
        axes: &[Axis],
        element: Option<(Value, Value)>,
        corner: usize,
    ) -> [Value; 4] {
        let which = |i: usize| corner >> i & 1;
        let mut places: Vec<Value> = Vec::new();
        let mut all_inside = None;
        for (i, axis) in axes.iter().enumerate() {
            places.push(axis.indices[which(i)]);
            all_inside = match (all_inside, axis.inside[which(i)]) {
                (Some(others), Some(inside)) => Some(self.op(Op::And, &[others, inside])),
                (one, other) => one.or(other),
            };
        }
        places.extend(element.map(|(element, _)| element));
        let number = self.number(&places);
        let number = self.cast(Scalar::U32, number);
        let texel = match all_inside {
            Some(inside) => {
                let beyond = self.u32(BEYOND);
                self.select(inside, number, beyond)
            }
            None => number,
        };
        let border = match all_inside {
            Some(inside) if sampler.address == Address::ClampToBorder => {
                Some((inside, sampler.border))
            }
            _without_a_border => None,
        };
        self.sampled_texel(texel, border)
    }

    /// What a sample is made of of a texel: of one that compares, whether it holds.
    pub(super) fn sampled_texel(
        &mut self,
        texel: Value,
        border: Option<(Value, Border)>,
    ) -> [Value; 4] {
        let words = self.load_words(texel);
        let mut components = self.decode(&words);
        if let Some((inside, border)) = border {
            let numbers = self.texture.format.numbers();
            for (number, component) in (0..).zip(&mut components) {
                let beyond = self.component(border.component(number, numbers));
                *component = self.select(inside, *component, beyond);
            }
        }
        let Some((compare, reference)) = self.compare else {
            return components;
        };
        let (zero, one) = (self.f32(0.0), self.f32(1.0));
        let op = match compare {
            Compare::Never => return [zero; 4],
            Compare::Always => return [one, zero, zero, zero],
            Compare::Less => Op::Lt,
            Compare::LessEqual => Op::Le,
            Compare::Greater => Op::Gt,
            Compare::GreaterEqual => Op::Ge,
            Compare::Equal => Op::Eq,
            Compare::NotEqual => Op::Ne,
        };
        let holds = self.op(op, &[reference, components[0]]);
        [self.select(holds, one, zero), zero, zero, zero]
    }

    /// As [`invar_texture::axis`], operation by operation.
    pub(super) fn axis(&mut self, sampler: Sampler, coordinate: Value, axis: u32) -> Axis {
        let extent = self.extent(axis);
        let extent = self.cast(Scalar::I32, extent);
        let scale = match sampler.coordinates {
            Coordinates::Normalized => self.cast(Scalar::F32, extent),
            Coordinates::Pixel => self.f32(1.0),
        };
        let (mut first, weight) = self.whole_of(sampler.filter, coordinate, scale);
        if self.offset[axis as usize] != 0 {
            let offset = self.i32(self.offset[axis as usize].into());
            first = self.op(Op::Add, &[first, offset]);
        }
        let (index, inside) = self.addressed(first, extent, sampler.address);
        let Some(weight) = weight else {
            return Axis {
                indices: [index; 2],
                inside: [inside; 2],
                weight: None,
            };
        };
        let one = self.i32(1);
        let second = self.op(Op::Add, &[first, one]);
        let (next, next_inside) = self.addressed(second, extent, sampler.address);
        Axis {
            indices: [index, next],
            inside: [inside, next_inside],
            weight: Some(weight),
        }
    }

    /// The index that a normalized coordinate leads to, and of a linear sample how much it has of the next.
    pub(super) fn whole(
        &mut self,
        filter: Filter,
        coordinate: Value,
        extent: Value,
    ) -> (Value, Option<Value>) {
        let scale = self.cast(Scalar::F32, extent);
        self.whole_of(filter, coordinate, scale)
    }

    pub(super) fn whole_of(
        &mut self,
        filter: Filter,
        coordinate: Value,
        scale: Value,
    ) -> (Value, Option<Value>) {
        let u = match filter {
            Filter::Nearest => self.op(Op::Mul, &[coordinate, scale]),
            Filter::Linear => {
                let half = self.f32(-0.5);
                self.op(Op::Fma, &[coordinate, scale, half])
            }
        };
        let least = self.f32(-LIMIT);
        let u = self.op(Op::Fmax, &[u, least]);
        let most = self.f32(LIMIT);
        let u = self.op(Op::Fmin, &[u, most]);
        let base = self.op(Op::Floor, &[u]);
        let first = self.cast(Scalar::I32, base);
        match filter {
            Filter::Nearest => (first, None),
            Filter::Linear => (first, Some(self.op(Op::Sub, &[u, base]))),
        }
    }

    /// Which index stands for one that may be beyond the edges, and whether there is one.
    pub(super) fn addressed(
        &mut self,
        index: Value,
        extent: Value,
        address: Address,
    ) -> (Value, Option<Value>) {
        let zero = self.i32(0);
        let one = self.i32(1);
        match address {
            Address::ClampToEdge => {
                let last = self.op(Op::Sub, &[extent, one]);
                let above = self.op(Op::Max, &[index, zero]);
                (self.op(Op::Min, &[above, last]), None)
            }
            Address::ClampToZero | Address::ClampToBorder => {
                let number = self.cast(Scalar::U32, index);
                let limit = self.cast(Scalar::U32, extent);
                (index, Some(self.op(Op::Lt, &[number, limit])))
            }
            Address::Repeat => (self.modulo(index, extent), None),
            Address::MirroredRepeat => {
                let twice = self.op(Op::Add, &[extent, extent]);
                let place = self.modulo(index, twice);
                let last = self.op(Op::Sub, &[twice, one]);
                let mirrored = self.op(Op::Sub, &[last, place]);
                (self.op(Op::Min, &[place, mirrored]), None)
            }
        }
    }

    /// The remainder that is not negative, of a positive divisor.
    pub(super) fn modulo(&mut self, number: Value, divisor: Value) -> Value {
        let zero = self.i32(0);
        let remainder = self.op(Op::Rem, &[number, divisor]);
        let negative = self.op(Op::Lt, &[remainder, zero]);
        let raised = self.op(Op::Add, &[remainder, divisor]);
        self.select(negative, raised, remainder)
    }
}
