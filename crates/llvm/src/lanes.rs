//! What the lanes of a simdgroup or quadgroup exchange (A11, X6), on vectors of a whole simdgroup.
//!
//! A simdgroup is [`LANES`] lanes, all of which hold defined values; those that do not exist are the
//! highest, and what they get is of no account. The result is what `invar_ir::ops::lanes::evaluate`
//! gives to lanes that exist: floats are combined in its order.

use inkwell::IntPredicate;
use inkwell::types::VectorType;
use inkwell::values::{BasicValueEnum, IntValue, VectorValue};
use invar_ir::ops::{Group, LaneRule, lanes};
use invar_ir::{Op, Scalar};

use crate::emit::{BUILT, Emit};
use crate::ops::eval;
use crate::tables::Role;

/// Lanes of a simdgroup.
pub(crate) const LANES: u32 = 32;

/// Which lanes take part.
#[derive(Clone, Copy)]
pub(crate) enum Present<'c> {
    All,
    /// Those that exist: of a group that has any, also the first.
    Existing(VectorValue<'c>),
    /// Those that are active, which may be any.
    Active(VectorValue<'c>),
}

/// Exchanges one component: `value` is a `<32 x T>` for `scalar`, and `by` says which lane where the rule
/// takes one, with its integer type. Gives one vector, of [`LaneRule::Ballot`] the four of a `u32x4`.
///
/// # Panics
/// If the rule takes a lane and `by` is none.
pub(crate) fn lane_rule<'c>(
    e: &Emit<'c>,
    group: Group,
    rule: LaneRule,
    scalar: Scalar,
    value: VectorValue<'c>,
    by: Option<(Scalar, VectorValue<'c>)>,
    present: Present<'c>,
) -> Vec<VectorValue<'c>> {
    let size = match group {
        Group::Simdgroup => LANES,
        Group::Quadgroup => 4,
    };
    let (present, gaps) = match present {
        Present::All => (None, false),
        Present::Existing(lanes) => (Some(lanes), false),
        Present::Active(lanes) => (Some(lanes), true),
    };
    let x = Exchange {
        e,
        size,
        scalar,
        present,
        gaps,
    };
    let by = || by.expect("a lane for a rule that takes one");
    vec![match rule {
        LaneRule::Reduce(op) => x.reduce(op, value),
        LaneRule::InclusiveScan(op) => x.scan(op, value),
        LaneRule::ExclusiveScan(op) => x.exclusive_scan(op, value),
        LaneRule::Shuffle => {
            let (place, inside) = x.below_size(by());
            x.read(value, place, Some(inside))
        }
        LaneRule::ShuffleXor => {
            let (by, inside) = x.below_size(by());
            x.read(value, x.xor(x.places(), by), Some(inside))
        }
        LaneRule::ShuffleUp => x.shifted(value, by(), true),
        LaneRule::ShuffleDown => x.shifted(value, by(), false),
        LaneRule::RotateUp => x.rotated(value, by(), true),
        LaneRule::RotateDown => x.rotated(value, by(), false),
        LaneRule::Broadcast => x.broadcast(value, by()),
        LaneRule::BroadcastFirst if x.gaps => x.read(value, x.lowest(), None),
        LaneRule::BroadcastFirst => x.picked(value, |lane| lane - lane % size),
        LaneRule::Ballot => return x.ballot(value),
        LaneRule::All => {
            let missing = e.constant(Scalar::Bool, 1);
            x.combine_bits(Op::And, x.existing(value, missing))
        }
        LaneRule::Any => {
            let missing = e.constant(Scalar::Bool, 0);
            x.combine_bits(Op::Or, x.existing(value, missing))
        }
    }]
}

struct Exchange<'e, 'c> {
    e: &'e Emit<'c>,
    /// Lanes of a group.
    size: u32,
    scalar: Scalar,
    present: Option<VectorValue<'c>>,
    /// Lanes before the first that is present may be missing.
    gaps: bool,
}

impl<'c> Exchange<'_, 'c> {
    // ---- reductions and scans ----

    fn combine(&self, op: Op, a: VectorValue<'c>, b: VectorValue<'c>) -> VectorValue<'c> {
        let args = [a.into(), b.into()];
        eval(self.e, op, self.scalar, self.scalar, &args).into_vector_value()
    }

    /// The value in lanes that exist, the other in those that do not.
    fn existing(&self, value: VectorValue<'c>, missing: BasicValueEnum<'c>) -> VectorValue<'c> {
        let Some(present) = self.present else {
            return value;
        };
        let missing = self.e.splat(missing, LANES);
        self.select(present, value, missing)
    }

    fn starting(&self, op: Op, value: VectorValue<'c>) -> VectorValue<'c> {
        let identity = lanes::identity(op, self.scalar);
        self.existing(value, self.e.constant(self.scalar, identity))
    }

    /// By xor 1, 2, 4, ...: every basic operation that combines lanes is commutative, so that all
    /// lanes of a group come to the same value, and that of a simdgroup is computed once, by pairs.
    fn reduce(&self, op: Op, value: VectorValue<'c>) -> VectorValue<'c> {
        let mut all = self.starting(op, value);
        if self.scalar == Scalar::Bool {
            return self.combine_bits(op, all);
        }
        if self.size < LANES {
            let mut distance = 1;
            while distance < self.size {
                let other = self.picked(all, |lane| lane ^ distance);
                all = self.combine(op, all, other);
                distance *= 2;
            }
            return all;
        }
        while all.get_type().get_size() > 2 {
            let half = all.get_type().get_size() / 2;
            let even: Vec<u32> = (0..half).map(|lane| 2 * lane).collect();
            let odd: Vec<u32> = (0..half).map(|lane| 2 * lane + 1).collect();
            all = self.combine(op, self.pick(all, &even), self.pick(all, &odd));
        }
        let [first, second] = [0, 1].map(|lane| self.element(all, lane));
        let one = eval(self.e, op, self.scalar, self.scalar, &[first, second]);
        self.e.splat(one, LANES)
    }

    /// By doubling: for d = 1, 2, 4, ... lane i >= d combines its value with that of lane i - d.
    fn scan(&self, op: Op, value: VectorValue<'c>) -> VectorValue<'c> {
        let mut all = self.starting(op, value);
        let mut distance = 1;
        while distance < self.size {
            let below = self.picked(all, |lane| {
                if lane % self.size >= distance {
                    lane - distance
                } else {
                    lane
                }
            });
            let sums = self.combine(op, below, all);
            // From the sums where there is a lane below, else from what was there.
            let from: Vec<u32> = (0..LANES)
                .map(|lane| {
                    if lane % self.size >= distance {
                        lane
                    } else {
                        LANES + lane
                    }
                })
                .collect();
            all = self.shuffle(sums, all, &from);
            distance *= 2;
        }
        all
    }

    fn exclusive_scan(&self, op: Op, value: VectorValue<'c>) -> VectorValue<'c> {
        let all = self.scan(op, value);
        let start = self
            .e
            .constant(self.scalar, lanes::scan_start(op, self.scalar));
        let from: Vec<u32> = (0..LANES)
            .map(|lane| {
                if lane % self.size == 0 {
                    LANES
                } else {
                    lane - 1
                }
            })
            .collect();
        let start = self.e.splat(start, LANES);
        let below = self.shuffle(all, start, &from);
        if !self.gaps {
            return below;
        }
        let any_below = self.compare(IntPredicate::UGT, self.places(), self.lowest());
        self.select(any_below, below, start)
    }

    /// Truth values combined in each group, as bits of one integer.
    fn combine_bits(&self, op: Op, value: VectorValue<'c>) -> VectorValue<'c> {
        let mut bits = self.bits(value);
        let combine = |a: IntValue<'c>, b: IntValue<'c>| {
            eval(self.e, op, Scalar::U32, Scalar::U32, &[a.into(), b.into()]).into_int_value()
        };
        // Neighbours at distance 1, 2, 4, ... change places.
        let lower = [
            0x5555_5555,
            0x3333_3333,
            0x0f0f_0f0f,
            0x00ff_00ff,
            0x0000_ffff,
        ];
        for (step, lower) in lower.into_iter().enumerate() {
            let distance = 1 << step;
            if distance >= self.size {
                break;
            }
            let [lower, distance] = [lower, distance].map(|k| self.e.i32(k));
            let b = &self.e.builder;
            let up = b.build_and(bits, lower, "").expect(BUILT);
            let up = b.build_left_shift(up, distance, "").expect(BUILT);
            let down = b.build_right_shift(bits, distance, false, "").expect(BUILT);
            let down = b.build_and(down, lower, "").expect(BUILT);
            bits = combine(bits, b.build_or(up, down, "").expect(BUILT));
        }
        self.truths(bits)
    }

    fn ballot(&self, value: VectorValue<'c>) -> Vec<VectorValue<'c>> {
        let existing = self.existing(value, self.e.constant(Scalar::Bool, 0));
        let bits = self.e.splat(self.bits(existing).into(), LANES);
        let bits = if self.size < LANES {
            let firsts: Vec<_> = (0..LANES)
                .map(|lane| self.e.i32(lane - lane % self.size))
                .collect();
            let firsts = VectorType::const_vector(&firsts);
            let moved = self.e.builder.build_right_shift(bits, firsts, false, "");
            self.and(moved.expect(BUILT), self.words((1 << self.size) - 1))
        } else {
            bits
        };
        let none = self.words(0);
        vec![bits, none, none, none]
    }

    // ---- which lane to read ----

    /// Each lane's place in its group.
    fn places(&self) -> VectorValue<'c> {
        let places: Vec<_> = (0..LANES)
            .map(|lane| self.e.i32(lane % self.size))
            .collect();
        VectorType::const_vector(&places)
    }

    /// In each lane the place of the lowest lane of its group that is present; one that is not, if none is.
    fn lowest(&self) -> VectorValue<'c> {
        let scalar = Scalar::U32;
        Exchange { scalar, ..*self }.reduce(Op::Min, self.places())
    }

    /// A number as 32 bits, its low ones, and whether it is at least 0 and below the group's size.
    fn below_size(&self, by: (Scalar, VectorValue<'c>)) -> (VectorValue<'c>, VectorValue<'c>) {
        let size = self
            .e
            .int_type(by.0.bits())
            .const_int(self.size.into(), false);
        let size = self.e.splat(size.into(), LANES);
        // A negative number is a large one without its sign.
        let inside = self.compare(IntPredicate::ULT, by.1, size);
        (self.low_word(by), inside)
    }

    fn low_word(&self, by: (Scalar, VectorValue<'c>)) -> VectorValue<'c> {
        eval(self.e, Op::Cast, by.0, Scalar::U32, &[by.1.into()]).into_vector_value()
    }

    /// From so many places lower or higher.
    fn shifted(
        &self,
        value: VectorValue<'c>,
        by: (Scalar, VectorValue<'c>),
        lower: bool,
    ) -> VectorValue<'c> {
        let (word, near) = if by.0.is_signed_integer() {
            // Between -size and size, both left out, it can lead to a lane.
            let integer = self.e.int_type(by.0.bits());
            let constant = |k: u32| {
                self.e
                    .splat(integer.const_int(k.into(), false).into(), LANES)
            };
            let moved = self.add(by.1, constant(self.size - 1));
            let near = self.compare(IntPredicate::ULT, moved, constant(2 * self.size - 1));
            (self.low_word(by), near)
        } else {
            self.below_size(by)
        };
        let place = if lower {
            self.sub(self.places(), word)
        } else {
            self.add(self.places(), word)
        };
        let inside = self.compare(IntPredicate::ULT, place, self.words(self.size));
        self.read(value, place, Some(self.and(near, inside)))
    }

    /// From so many places lower or higher, around the group's size, which is a power of two.
    fn rotated(
        &self,
        value: VectorValue<'c>,
        by: (Scalar, VectorValue<'c>),
        lower: bool,
    ) -> VectorValue<'c> {
        let word = self.low_word(by);
        let place = if lower {
            self.sub(self.places(), word)
        } else {
            self.add(self.places(), word)
        };
        self.read(value, self.and(place, self.words(self.size - 1)), None)
    }

    /// From the lane that the lowest lane of the group names.
    fn broadcast(&self, value: VectorValue<'c>, by: (Scalar, VectorValue<'c>)) -> VectorValue<'c> {
        let first = |lane: u32| lane - lane % self.size;
        let named = if self.gaps {
            let scalar = by.0;
            Exchange { scalar, ..*self }.read(by.1, self.lowest(), None)
        } else {
            self.picked(by.1, first)
        };
        let (place, inside) = self.below_size((by.0, named));
        if self.gaps || self.size < LANES || self.scalar == Scalar::Bool {
            return self.read(value, place, Some(inside));
        }
        let zero = value.get_type().const_zero();
        let value = self.existing(value, self.element(zero, 0));
        let place = self.and(place, self.words(LANES - 1));
        let place = self.element(place, 0).into_int_value();
        let one = self
            .e
            .builder
            .build_extract_element(value, place, "")
            .expect(BUILT);
        let inside = self.element(inside, 0).into_int_value();
        let one = self
            .e
            .builder
            .build_select(inside, one, self.element(zero, 0), "");
        self.e.splat(one.expect(BUILT), LANES)
    }

    /// What each lane finds at a place of its group, `place` being within it where `inside` holds; 0
    /// elsewhere, and from lanes that do not exist.
    fn read(
        &self,
        value: VectorValue<'c>,
        place: VectorValue<'c>,
        inside: Option<VectorValue<'c>>,
    ) -> VectorValue<'c> {
        let zero = value.get_type().const_zero();
        let value = self.existing(value, self.element(zero, 0));
        let mut index = self.and(place, self.words(self.size - 1));
        if self.size < LANES {
            let firsts: Vec<_> = (0..LANES)
                .map(|lane| self.e.i32(lane - lane % self.size))
                .collect();
            index = self.add(index, VectorType::const_vector(&firsts));
        }
        let found = self.permute(value, index);
        inside.map_or(found, |inside| self.select(inside, found, zero))
    }

    // ---- moving lanes ----

    /// Lane `i` of the result is lane `index[i]` of the value, each index below 32.
    fn permute(&self, value: VectorValue<'c>, index: VectorValue<'c>) -> VectorValue<'c> {
        if let Some(known) = known_places(index) {
            return self.pick(value, &known);
        }
        let b = &self.e.builder;
        let words = self.e.vector_type(Scalar::U32, LANES);
        let bits = self.scalar.bits();
        if bits == 1 {
            let shifted = b
                .build_right_shift(
                    self.e.splat(self.bits(value).into(), LANES),
                    index,
                    false,
                    "",
                )
                .expect(BUILT);
            let type_of_truth = self.e.vector_type(Scalar::Bool, LANES);
            return b
                .build_int_truncate(shifted, type_of_truth, "")
                .expect(BUILT);
        }
        let integers = self.e.int_type(bits).vec_type(LANES);
        let value = b
            .build_bit_cast(value, integers, "")
            .expect(BUILT)
            .into_vector_value();
        let found = if bits <= 32 {
            let wide = b
                .build_int_z_extend_or_bit_cast(value, words, "")
                .expect(BUILT);
            let found = self.permute_words(wide, index);
            b.build_int_truncate_or_bit_cast(found, integers, "")
                .expect(BUILT)
        } else {
            let shift = self.e.splat(self.e.i64(32).into(), LANES);
            let high = b.build_right_shift(value, shift, false, "").expect(BUILT);
            let [low, high] = [value, high].map(|half| {
                let half = b.build_int_truncate(half, words, "").expect(BUILT);
                let found = self.permute_words(half, index);
                b.build_int_z_extend(found, integers, "").expect(BUILT)
            });
            let high = b.build_left_shift(high, shift, "").expect(BUILT);
            b.build_or(low, high, "").expect(BUILT)
        };
        let ty = self.e.vector_type(self.scalar, LANES);
        b.build_bit_cast(found, ty, "")
            .expect(BUILT)
            .into_vector_value()
    }

    /// [`Exchange::permute`] of 32-bit integers.
    fn permute_words(&self, value: VectorValue<'c>, index: VectorValue<'c>) -> VectorValue<'c> {
        if self.e.target.has_avx512 {
            self.permute_by_16(value, index)
        } else if self.e.target.has_avx2 {
            self.permute_by_8(value, index)
        } else {
            self.permute_one_by_one(value, index)
        }
    }

    /// Runs of that many lanes.
    fn split(&self, value: VectorValue<'c>, width: u32) -> Vec<VectorValue<'c>> {
        let run = |first: u32| self.pick(value, &(first..first + width).collect::<Vec<_>>());
        (0..LANES).step_by(width as usize).map(run).collect()
    }

    fn concat(&self, mut runs: Vec<VectorValue<'c>>) -> VectorValue<'c> {
        while runs.len() > 1 {
            let pair = |pair: &[VectorValue<'c>]| {
                let lanes = pair[0].get_type().get_size() * 2;
                self.shuffle(pair[0], pair[1], &(0..lanes).collect::<Vec<_>>())
            };
            runs = runs.chunks(2).map(pair).collect();
        }
        runs[0]
    }

    /// One instruction looks up 16 lanes in two registers of 16.
    fn permute_by_16(&self, value: VectorValue<'c>, index: VectorValue<'c>) -> VectorValue<'c> {
        let table = self.split(value, 16);
        let look_up = |index: VectorValue<'c>| {
            let args = [table[0].into(), index.into(), table[1].into()];
            let found = self
                .e
                .intrinsic("llvm.x86.avx512.vpermi2var.d.512", &[], &args);
            found
                .expect("an intrinsic with a result")
                .into_vector_value()
        };
        self.concat(self.split(index, 16).into_iter().map(look_up).collect())
    }

    /// One instruction looks up 8 lanes in a register of 8, by the low three bits.
    fn permute_by_8(&self, value: VectorValue<'c>, index: VectorValue<'c>) -> VectorValue<'c> {
        let table = self.split(value, 8);
        let constant = |k: u32| self.e.splat(self.e.i32(k).into(), 8);
        let look_up = |index: VectorValue<'c>| {
            let register = self
                .e
                .builder
                .build_right_shift(index, constant(3), false, "");
            let register = register.expect(BUILT);
            let mut found: Option<VectorValue<'c>> = None;
            for (k, part) in table.iter().enumerate() {
                let args = [(*part).into(), index.into()];
                let here = self.e.intrinsic("llvm.x86.avx2.permd", &[], &args);
                let here = here
                    .expect("an intrinsic with a result")
                    .into_vector_value();
                found = Some(match found {
                    None => here,
                    Some(found) => {
                        let is = self.compare(IntPredicate::EQ, register, constant(k as u32));
                        self.select(is, here, found)
                    }
                });
            }
            found.expect("a table of four registers")
        };
        self.concat(self.split(index, 8).into_iter().map(look_up).collect())
    }

    fn permute_one_by_one(
        &self,
        value: VectorValue<'c>,
        index: VectorValue<'c>,
    ) -> VectorValue<'c> {
        let b = &self.e.builder;
        let words = self.e.vector_type(Scalar::U32, LANES);
        let table = self.e.table(Role::Pointers, words.into());
        b.build_store(table, value).expect(BUILT);
        let mut found = words.get_poison();
        for lane in 0..LANES {
            let at = self.element(index, lane).into_int_value();
            let at = b
                .build_int_z_extend(at, self.e.context.i64_type(), "")
                .expect(BUILT);
            let at = b.build_int_mul(at, self.e.i64(4), "").expect(BUILT);
            let at = self.e.byte_offset(table, at);
            let one = b
                .build_load(self.e.context.i32_type(), at, "")
                .expect(BUILT);
            found = b
                .build_insert_element(found, one, self.e.i32(lane), "")
                .expect(BUILT);
        }
        found
    }

    /// Lane `i` of the result is a lane of the value that the compiler knows.
    fn picked(&self, value: VectorValue<'c>, lane: impl Fn(u32) -> u32) -> VectorValue<'c> {
        self.pick(value, &(0..LANES).map(lane).collect::<Vec<_>>())
    }

    fn pick(&self, value: VectorValue<'c>, lanes: &[u32]) -> VectorValue<'c> {
        self.shuffle(value, value.get_type().get_poison(), lanes)
    }

    /// Lanes of two vectors, those of the second numbered after those of the first.
    fn shuffle(&self, a: VectorValue<'c>, b: VectorValue<'c>, lanes: &[u32]) -> VectorValue<'c> {
        let lanes: Vec<_> = lanes.iter().map(|lane| self.e.i32(*lane)).collect();
        let lanes = VectorType::const_vector(&lanes);
        self.e
            .builder
            .build_shuffle_vector(a, b, lanes, "")
            .expect(BUILT)
    }

    // ---- small words ----

    fn element(&self, vector: VectorValue<'c>, lane: u32) -> BasicValueEnum<'c> {
        let lane = self.e.i32(lane);
        self.e
            .builder
            .build_extract_element(vector, lane, "")
            .expect(BUILT)
    }

    fn words(&self, value: u32) -> VectorValue<'c> {
        self.e.splat(self.e.i32(value).into(), LANES)
    }

    /// Truth values as bits, lane 0 lowest.
    fn bits(&self, value: VectorValue<'c>) -> IntValue<'c> {
        let ty = self.e.context.i32_type();
        self.e
            .builder
            .build_bit_cast(value, ty, "")
            .expect(BUILT)
            .into_int_value()
    }

    fn truths(&self, bits: IntValue<'c>) -> VectorValue<'c> {
        let ty = self.e.vector_type(Scalar::Bool, LANES);
        self.e
            .builder
            .build_bit_cast(bits, ty, "")
            .expect(BUILT)
            .into_vector_value()
    }

    fn select(
        &self,
        c: VectorValue<'c>,
        yes: VectorValue<'c>,
        no: VectorValue<'c>,
    ) -> VectorValue<'c> {
        self.e
            .builder
            .build_select(c, yes, no, "")
            .expect(BUILT)
            .into_vector_value()
    }

    fn compare(&self, p: IntPredicate, a: VectorValue<'c>, b: VectorValue<'c>) -> VectorValue<'c> {
        self.e.builder.build_int_compare(p, a, b, "").expect(BUILT)
    }

    fn and(&self, a: VectorValue<'c>, b: VectorValue<'c>) -> VectorValue<'c> {
        self.e.builder.build_and(a, b, "").expect(BUILT)
    }

    fn xor(&self, a: VectorValue<'c>, b: VectorValue<'c>) -> VectorValue<'c> {
        self.e.builder.build_xor(a, b, "").expect(BUILT)
    }

    fn add(&self, a: VectorValue<'c>, b: VectorValue<'c>) -> VectorValue<'c> {
        self.e.builder.build_int_add(a, b, "").expect(BUILT)
    }

    fn sub(&self, a: VectorValue<'c>, b: VectorValue<'c>) -> VectorValue<'c> {
        self.e.builder.build_int_sub(a, b, "").expect(BUILT)
    }
}

/// The lanes that a constant names, each below 32.
fn known_places(index: VectorValue<'_>) -> Option<Vec<u32>> {
    if index == index.get_type().const_zero() {
        return Some(vec![0; LANES as usize]);
    }
    if !index.is_constant_data_vector() {
        return None;
    }
    let lane = |lane| match index.get_element_as_constant(lane) {
        BasicValueEnum::IntValue(v) => v.get_zero_extended_constant().map(|k| k as u32 % LANES),
        BasicValueEnum::ArrayValue(_)
        | BasicValueEnum::FloatValue(_)
        | BasicValueEnum::PointerValue(_)
        | BasicValueEnum::StructValue(_)
        | BasicValueEnum::VectorValue(_)
        | BasicValueEnum::ScalableVectorValue(_) => None,
    };
    (0..LANES).map(lane).collect()
}

#[cfg(test)]
mod tests {
    //! Every rule, for every type, against the one evaluator.

    use invar_ir::Type;
    use invar_ir::ops::Meaning;
    use invar_ir::text::data::random_scalar;

    use super::*;
    use crate::test_jit::{self, Jit, Processor};

    #[derive(Clone, Debug)]
    struct Case {
        #[expect(dead_code, reason = "a failure prints it")]
        op: Op,
        group: Group,
        rule: LaneRule,
        scalar: Scalar,
        by: Option<Scalar>,
        /// The lane operand, if the compiler knows it.
        known: Option<u64>,
    }

    /// Every case; or, of rules that take a lane, only some types of values and indices, where it
    /// is the way of moving lanes that is tested.
    fn cases(every: bool) -> Vec<Case> {
        let mut cases = Vec::new();
        for op in Op::all() {
            let Meaning::Lanes(group, rule) = op.row().meaning else {
                continue;
            };
            for (_, args) in op.row().signature.instances() {
                let Type::Scalar(scalar) = args[0] else {
                    continue;
                };
                let by = args.get(1).and_then(|ty| ty.scalar());
                // Every index type for two types of values; for the rest one is enough.
                if by.is_some_and(|by| by != Scalar::U32)
                    && !matches!(scalar, Scalar::F32 | Scalar::U64)
                {
                    continue;
                }
                let brief = matches!(
                    scalar,
                    Scalar::Bool | Scalar::U8 | Scalar::F32 | Scalar::U64
                ) && matches!(by, Some(Scalar::U32 | Scalar::I64));
                if !every && by.is_some() && !brief {
                    continue;
                }
                let case = Case {
                    op,
                    group,
                    rule,
                    scalar,
                    by,
                    known: None,
                };
                cases.push(case.clone());
                let known = by.filter(|by| {
                    every
                        && matches!(by, Scalar::I8 | Scalar::U32 | Scalar::I64)
                        && matches!(scalar, Scalar::F32 | Scalar::Bool)
                });
                for bits in known.iter().flat_map(|by| {
                    let ones = u64::MAX >> (64 - by.bits());
                    [0, 1, 2, 3, 5, 16, 31, 32, ones, ones - 1]
                }) {
                    cases.push(Case {
                        known: Some(bits),
                        ..case.clone()
                    });
                }
            }
        }
        cases
    }

    fn columns(scalar: Scalar, seed: u64) -> Vec<u64> {
        let mask = u64::MAX >> (64 - scalar.bits());
        let one = |k| {
            let bits = random_scalar(Scalar::U64, seed, k).bits;
            match bits % 3 {
                // Any pattern; a small float or number; a zero with a sign.
                0 => bits >> 8 & mask,
                1 => random_scalar(scalar, seed, k).bits,
                _ => (bits >> 8 & 1) << (scalar.bits() - 1),
            }
        };
        (0..LANES.into()).map(one).collect()
    }

    fn indices(scalar: Scalar, seed: u64) -> Vec<u64> {
        let mask = u64::MAX >> (64 - scalar.bits());
        let one = |k| {
            let bits = random_scalar(Scalar::U64, seed, k).bits;
            let number = match bits % 4 {
                0 => bits >> 8,
                1 => (bits >> 8 & 0x3f).wrapping_neg(),
                2 => (bits >> 8 & 0x3f) << (scalar.bits() - 6),
                _ => bits >> 8 & 0x1f,
            };
            number & mask
        };
        (0..LANES.into()).map(one).collect()
    }

    fn check(processor: &Processor, every: bool) {
        let cases = cases(every);
        let context = test_jit::context();
        let mut jit = Jit::new(&context, processor);
        for (i, case) in cases.iter().enumerate() {
            for kind in ["all", "existing", "active"] {
                jit.function(&format!("f{i}{kind}"), 7, |e, pointers| {
                    let load = |k: usize, scalar| {
                        Jit::load(e, pointers[k], scalar, Some(LANES)).into_vector_value()
                    };
                    let value = load(0, case.scalar);
                    let by = case.by.map(|by| match case.known {
                        Some(bits) => (by, e.splat(e.constant(by, bits), LANES)),
                        None => (by, load(1, by)),
                    });
                    let present = match kind {
                        "all" => Present::All,
                        "existing" => Present::Existing(load(2, Scalar::Bool)),
                        _active => Present::Active(load(2, Scalar::Bool)),
                    };
                    let (group, rule) = (case.group, case.rule);
                    let result = lane_rule(e, group, rule, case.scalar, value, by, present);
                    let to = case.result();
                    for (k, vector) in result.into_iter().enumerate() {
                        Jit::store(e, pointers[3 + k], to, vector.into());
                    }
                });
            }
        }
        let program = jit.finish();
        for (i, case) in cases.iter().enumerate() {
            for (round, count) in [32, 32, 32, 1, 2, 3, 4, 5, 7, 16, 17, 30, 31]
                .into_iter()
                .enumerate()
            {
                let kind = if count == 32 { "all" } else { "existing" };
                let f = program.function(&format!("f{i}{kind}"));
                case.check(&f, round as u64, u32::MAX >> (32 - count));
            }
            for (round, existing) in [0x8000_0000, 0x10, 0xffff_fffe, 0x0f0f_1248, 0x0001_0000]
                .into_iter()
                .enumerate()
            {
                let f = program.function(&format!("f{i}active"));
                case.check(&f, round as u64, existing);
            }
        }
    }

    impl Case {
        fn result(&self) -> Scalar {
            match self.rule {
                LaneRule::Ballot => Scalar::U32,
                _ => self.scalar,
            }
        }

        fn check(&self, f: &test_jit::Function<'_>, round: u64, existing: u32) {
            let value = columns(self.scalar, 2 * round);
            let by = self.by.map(|by| {
                let numbers = match self.known {
                    Some(bits) => vec![bits; LANES as usize],
                    None => indices(by, 2 * round + 1),
                };
                (by, numbers)
            });
            let existing = u128::from(existing);
            let present: Vec<u64> = (0..32).map(|lane| existing as u64 >> lane & 1).collect();
            let to = self.result();
            let columns = if self.rule == LaneRule::Ballot { 4 } else { 1 };
            let mut memory = vec![
                test_jit::bytes(&value, self.scalar),
                by.as_ref()
                    .map_or(vec![0; 8], |(by, c)| test_jit::bytes(c, *by)),
                test_jit::bytes(&present, Scalar::Bool),
            ];
            memory.extend(vec![vec![0; 32 * to.size_bytes() as usize]; 4]);
            let mut slices: Vec<&mut [u8]> = memory.iter_mut().map(Vec::as_mut_slice).collect();
            f.call(&mut slices);
            let size = match self.group {
                Group::Simdgroup => 32,
                Group::Quadgroup => 4,
            };
            let mut expected = vec![vec![0; 32]; columns];
            let mut out: Vec<&mut [u64]> = expected.iter_mut().map(Vec::as_mut_slice).collect();
            let by = by.as_ref().map(|(ty, c)| (*ty, c.as_slice()));
            lanes::evaluate(self.rule, size, self.scalar, existing, &value, by, &mut out);
            for (k, expected) in expected.iter().enumerate() {
                let found = test_jit::scalars(&memory[3 + k], to);
                for lane in (0..32).filter(|lane| present[*lane] == 1) {
                    let same = found[lane] == expected[lane]
                        || (test_jit::is_nan(to, found[lane])
                            && test_jit::is_nan(to, expected[lane])
                            && matches!(
                                self.rule,
                                LaneRule::Reduce(_)
                                    | LaneRule::InclusiveScan(_)
                                    | LaneRule::ExclusiveScan(_)
                            ));
                    assert!(
                        same,
                        "{self:?}, lanes {existing:x}, column {k}: lane {lane} gets {:x}, expected {:x} \
                         of {value:x?} by {by:x?}",
                        found[lane], expected[lane]
                    );
                }
            }
        }
    }

    #[test]
    fn lanes_on_this_processor() {
        check(&test_jit::native(), true);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn lanes_on_any_x86_64() {
        check(&test_jit::baseline(), false);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn lanes_with_avx2() {
        test_jit::with_avx2(|processor| check(processor, false));
    }
}
