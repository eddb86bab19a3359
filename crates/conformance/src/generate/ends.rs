//! Numbers near the ends of their types: an `if` says where such a number lies and its sides call it
//! otherwise, by casts; sums of it with numbers of threads, there and behind, may wrap.

use invar_ir::{Const, Dim, Level, Op, Place, Scalar, Type, Value};

use super::memory::Owner;
use super::{Known, Maker};
use crate::case::Data;

impl Maker<'_> {
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
        let mut sides = [true, false].map(|_first| {
            let mark = self.mark();
            self.control = self.control.min(number.level);
            self.k.open_region(&[]);
            if !self.random.one_in(3) {
                self.sums(number);
            }
            let named = self.k.cast(number.value, ty);
            let level = number.level;
            self.add(named, level);
            if !self.random.one_in(3) {
                self.sums(Known {
                    value: named,
                    ty,
                    level,
                });
            }
            if depth > 1 && self.random.one_in(4) {
                self.fenced(depth - 1);
            }
            let result = match self.random.one_in(3) {
                true => named,
                false => self.get(ty).value,
            };
            self.k.yield_(&[result]);
            let side = self.k.close_region();
            self.release(mark);
            side
        });
        let [then, otherwise] = sides.each_mut().map(std::mem::take);
        for value in self.k.if_regions(condition, then, otherwise) {
            self.add(value, Level::Varying);
        }
        for _ in 0..1 + self.random.below(3) {
            self.sums(number);
        }
    }

    /// An integer that the host gives, mostly, or another that is near an end in a few threads.
    fn near_an_end(&mut self) -> Known {
        let integers = self.palette.iter().copied();
        let integers: Vec<Scalar> = integers.filter(|s| s.is_integer()).collect();
        let scalar = match self.random.below(4) {
            0 => self.random.pick(&integers),
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
            _ => {
                let integers = self.palette.iter().copied();
                let integers: Vec<Scalar> = integers.filter(|s| s.is_integer()).collect();
                self.random.pick(&integers)
            }
        }
    }

    /// Sums of a number with numbers of threads and constants: compared, widened, of one thread for
    /// all of its simdgroup, or an index into what nobody writes.
    fn sums(&mut self, number: Known) {
        let Some(scalar) = number.ty.scalar() else {
            return;
        };
        let mut sum = number.value;
        let mut level = number.level;
        for _ in 0..1 + self.random.below(4) / 3 {
            let part = match self.random.below(5) {
                0 => self.lane,
                1 => self.thread,
                2 => self.k.thread_position_in_threadgroup(Dim::X),
                3 => self.k.thread_position_in_grid(Dim::X),
                _constant => {
                    let small = self.random_small(200);
                    self.constant_u32(small)
                }
            };
            let part = self.k.cast(part, number.ty);
            let op = match self.random.one_in(6) {
                true => Op::Sub,
                false => Op::Add,
            };
            sum = self.k.op(op, (), &[sum, part]);
            level = Level::Varying;
        }
        let lanes = self.simdgroup.is_some() && self.control >= Level::Simdgroup;
        if lanes && scalar.bits() == 32 && self.random.one_in(2) {
            sum = self.k.op(Op::SimdBroadcastFirst, (), &[sum]);
            level = Level::Simdgroup;
        }
        self.add(sum, level);
        match self.random.below(6) {
            0..=2 => {
                let limit = self.limit(scalar);
                let op = self.random.pick(&[Op::Lt, Op::Lt, Op::Ge]);
                let small = self.k.op(op, (), &[sum, limit]);
                self.add(small, level);
            }
            3 => {
                let ty = Type::Scalar(self.other_name(scalar));
                let other = self.k.cast(sum, ty);
                self.add(other, level);
            }
            _index => {
                let Some(object) = self.choose(|o| o.owner == Owner::Input) else {
                    return;
                };
                let mut place = Place::element(object.memory, sum);
                self.first_value(object.element, sum, &mut place);
                let value = self.k.load(place);
                self.add(value, Level::Varying);
            }
        }
    }
}
