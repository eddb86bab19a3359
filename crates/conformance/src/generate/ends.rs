//! Numbers near the ends of their types: an `if` says where such a number lies and its sides call it
//! otherwise, by casts; sums of it with numbers of threads, there and behind, may wrap.

use invar_ir::{Const, Dim, Level, Op, Place, Region, Scalar, Type, Value};

use super::generator::{Generator, Known};
use super::objects::Owner;
use crate::case::Data;

impl Generator<'_> {
    /// A number, a condition on it, and what both sides and the code behind compute of it.
    pub(super) fn number_near_an_end(&mut self, depth: u32) {
        let number = self.near_an_end();
        let Some(scalar) = number.ty.scalar() else {
            return;
        };
        let limit = self.limit(scalar);
        let order = [Op::Lt, Op::Le, Op::Gt, Op::Ge, Op::Eq, Op::Ne];
        let order = self.random.pick(&order);
        let compared = match self.random.one_in(4) {
            true => [limit, number.value],
            false => [number.value, limit],
        };
        let condition = self.k.op(order, (), &compared);
        let ty = Type::Scalar(self.other_name(scalar));
        let [then, otherwise] = std::array::from_fn(|_| self.side(number, ty, depth));
        for value in self.k.if_regions(condition, then, otherwise) {
            self.add(value, Level::Varying);
        }
        for _ in 0..1 + self.random.below(3) {
            self.sums(number);
        }
    }

    /// A side of an `if` that calls a number otherwise, and gives the other name or something else.
    fn side(&mut self, number: Known, ty: Type, depth: u32) -> Region {
        let mark = self.mark();
        self.control = self.control.min(number.level);
        self.k.open_region(&[]);
        if !self.random.one_in(3) {
            self.sums(number);
        }
        let value = self.k.cast(number.value, ty);
        self.add(value, number.level);
        if !self.random.one_in(3) {
            let level = number.level;
            self.sums(Known { value, ty, level });
        }
        if depth > 1 && self.random.one_in(4) {
            self.fenced(depth - 1);
        }
        // What is computed in the side is for nothing where it yields something else.
        let result = match self.random.one_in(2) {
            true => value,
            false => self.get(ty).value,
        };
        self.k.yield_(&[result]);
        let side = self.k.close_region();
        self.release(mark);
        side
    }

    /// An integer that the host gives, mostly, or another that is near an end in a few threads.
    fn near_an_end(&mut self) -> Known {
        let scalar = match self.random.below(4) {
            0 => self.integer_type(),
            1 => Scalar::I32,
            _ => Scalar::U32,
        };
        let ty = Type::Scalar(scalar);
        let count = self.k.kernel().params.len();
        if self.random.one_in(3) || count > 12 {
            let known = self.uniforms(ty);
            return match self.random.below(3) {
                0 if !known.is_empty() => self.random.pick(&known),
                _ => self.get(ty),
            };
        }
        let value = self.k.scalar(&format!("end{count}"), ty);
        let end = self.random.below(2) as u64 * (1 << (scalar.bits() - 1));
        // As far as numbers of threads reach, and a little on the other side.
        let near = self.random.pick(&[5, 40, 300]);
        let distance = self.random.below(near + 5) as u64;
        let bits = end.wrapping_add(4).wrapping_sub(distance) & (u64::MAX >> (64 - scalar.bits()));
        self.data.push(Data::Scalar(vec![Const { scalar, bits }]));
        let level = Level::Grid;
        self.add(value, level);
        Known { value, ty, level }
    }

    /// A small number, or one near an end.
    fn limit(&mut self, scalar: Scalar) -> Value {
        let small = self.random.below(120) as u64;
        let half = 1u64 << (scalar.bits() - 1);
        let bits = match self.random.below(8) {
            0 => half,
            1 => half.wrapping_sub(small),
            2 => small.wrapping_neg(),
            3 => 0,
            _small => small,
        };
        let bits = bits & (u64::MAX >> (64 - scalar.bits()));
        self.k.constant(Const { scalar, bits })
    }

    /// Mostly the type of as many bits with the other sign.
    fn other_name(&mut self, scalar: Scalar) -> Scalar {
        match scalar {
            Scalar::U32 if !self.random.one_in(4) => Scalar::I32,
            Scalar::I32 if !self.random.one_in(4) => Scalar::U32,
            _ => self.integer_type(),
        }
    }

    /// Sums of a number with numbers of threads and constants: of one thread for all of its simdgroup,
    /// compared, widened, or an index into what the dispatch does not write.
    fn sums(&mut self, number: Known) {
        let Some(scalar) = number.ty.scalar() else {
            return;
        };
        let lanes = self.simdgroup.is_some() && self.control >= Level::Simdgroup;
        let of_first = lanes && scalar.bits() == 32 && self.random.one_in(2);
        let with_constant = self.random.one_in(2);
        let mut sum = number;
        if of_first || !with_constant || self.random.one_in(3) {
            let part = match self.random.below(4) {
                0 => self.lane,
                1 => self.thread,
                2 => self.k.thread_position_in_threadgroup(Dim::X),
                _ => self.k.thread_position_in_grid(Dim::X),
            };
            sum.value = self.sum(number, part);
            sum.level = Level::Varying;
        }
        if with_constant {
            let part = self.random_small(200);
            let part = self.constant_u32(part);
            sum.value = self.sum(sum, part);
        }
        if of_first {
            sum.value = self.k.op(Op::SimdBroadcastFirst, (), &[sum.value]);
            sum.level = Level::Simdgroup;
        }
        self.add(sum.value, sum.level);
        match self.random.below(if of_first { 5 } else { 7 }) {
            0..=3 => self.compared(sum, scalar),
            4 => {
                let other = match self.wide() && self.random.one_in(2) {
                    true => Scalar::U64,
                    false => self.other_name(scalar),
                };
                let other = self.k.cast(sum.value, Type::Scalar(other));
                self.add(other, sum.level);
            }
            _index => {
                let Some(object) = self.choose(|o| o.owner == Owner::Input) else {
                    return;
                };
                let mut place = Place::element(object.memory, sum.value);
                self.first_value(object.element, sum.value, &mut place);
                let value = self.k.load(place);
                self.add(value, Level::Varying);
            }
        }
    }

    /// A number and another added, or taken from it.
    fn sum(&mut self, number: Known, part: Value) -> Value {
        let part = self.k.cast(part, number.ty);
        let op = match self.random.one_in(6) {
            true => Op::Sub,
            false => Op::Add,
        };
        self.k.op(op, (), &[number.value, part])
    }

    /// Whether a sum lies below a limit.
    fn compared(&mut self, sum: Known, scalar: Scalar) {
        let other = match self.random.one_in(3) {
            true => self.other_name(scalar),
            false => scalar,
        };
        let number = self.k.cast(sum.value, Type::Scalar(other));
        let limit = self.limit(other);
        let op = self.random.pick(&[Op::Lt, Op::Lt, Op::Ge]);
        let below = self.k.op(op, (), &[number, limit]);
        self.add(below, sum.level);
    }
}
