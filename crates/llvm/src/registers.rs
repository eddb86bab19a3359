//! What scalars and vectors in registers become in memory, as integers of other widths, and as vectors of other
//! lengths.

use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::types::{BasicTypeEnum, VectorType};
use inkwell::values::{BasicValueEnum, IntValue, PointerValue, VectorValue};
use invar_ir::Scalar;

use crate::emit::{BUILT, Emit, vector_of};
use crate::object::ALIGN;
use crate::tuning::BRANCH_WEIGHTS;
use crate::value::Part;

impl<'c> Emit<'c> {
    /// The type in memory of what has this type in registers: `bool` takes a byte.
    pub fn memory_type(&self, scalar: Scalar, ty: BasicTypeEnum<'c>) -> BasicTypeEnum<'c> {
        if scalar != Scalar::Bool {
            return ty;
        }
        let byte = self.context.i8_type();
        match ty {
            BasicTypeEnum::VectorType(v) => byte.vec_type(v.get_size()).into(),
            _scalar => byte.into(),
        }
    }

    /// What was loaded, as it is in registers: any byte but 0 is true (L3).
    pub fn in_registers(&self, scalar: Scalar, value: BasicValueEnum<'c>) -> BasicValueEnum<'c> {
        if scalar != Scalar::Bool {
            return value;
        }
        match value {
            BasicValueEnum::VectorValue(v) => {
                let zero = v.get_type().const_zero();
                self.compare_lanes(IntPredicate::NE, v, zero).into()
            }
            scalar => {
                let v = scalar.into_int_value();
                self.compare(IntPredicate::NE, v, v.get_type().const_zero())
                    .into()
            }
        }
    }

    /// What is to be stored, as it is in memory.
    pub fn in_memory(&self, scalar: Scalar, value: BasicValueEnum<'c>) -> BasicValueEnum<'c> {
        if scalar != Scalar::Bool {
            return value;
        }
        let ty = self.memory_type(scalar, value.get_type());
        let b = &self.builder;
        match (value, ty) {
            (BasicValueEnum::VectorValue(v), BasicTypeEnum::VectorType(ty)) => {
                b.build_int_z_extend(v, ty, "").expect(BUILT).into()
            }
            (v, ty) => {
                let (v, ty) = (v.into_int_value(), ty.into_int_type());
                b.build_int_z_extend(v, ty, "").expect(BUILT).into()
            }
        }
    }

    /// One scalar of memory, as it is in registers. No other code writes it.
    pub fn load_scalar(&self, scalar: Scalar, pointer: PointerValue<'c>) -> BasicValueEnum<'c> {
        let ty = match scalar {
            Scalar::Bool => self.context.i8_type().into(),
            _ => self.scalar_type(scalar),
        };
        let value = self.load(ty, pointer, scalar.size_bytes() as u32);
        self.in_registers(scalar, value)
    }

    /// An index of 64 bits, extended by its own sign; an unsigned one that no signed integer of 64 bits
    /// holds becomes the largest that one does, which is beyond every length, as are its followers.
    pub fn wide_index(
        &self,
        scalar: Scalar,
        value: BasicValueEnum<'c>,
        clamp: bool,
    ) -> BasicValueEnum<'c> {
        let e = self;
        let b = &e.builder;
        let signed = scalar.is_signed_integer();
        let wide = e.context.i64_type();
        match value {
            BasicValueEnum::VectorValue(v) => {
                let lanes = v.get_type().get_size();
                let ty = wide.vec_type(lanes);
                if scalar.bits() == 64 {
                    if signed || !clamp {
                        return value;
                    }
                    let limit = e.splat(e.i64(1 << 62).into(), lanes);
                    let small = e.compare_lanes(IntPredicate::ULT, v, limit);
                    return e.select(small.into(), value, limit.into());
                }
                if signed {
                    b.build_int_s_extend(v, ty, "").expect(BUILT).into()
                } else {
                    b.build_int_z_extend(v, ty, "").expect(BUILT).into()
                }
            }
            scalar_value => {
                let v = scalar_value.into_int_value();
                if scalar.bits() == 64 {
                    if signed || !clamp {
                        return value;
                    }
                    return e.smaller(v, e.i64(1 << 62)).into();
                }
                if signed {
                    b.build_int_s_extend(v, wide, "").expect(BUILT).into()
                } else {
                    b.build_int_z_extend(v, wide, "").expect(BUILT).into()
                }
            }
        }
    }

    /// The lanes of a vector of integers, in 64 bits, cut from words: fewer moves between registers.
    pub fn wide_lanes(&self, vector: VectorValue<'c>, scalar: Scalar) -> Vec<IntValue<'c>> {
        let e = self;
        let b = &e.builder;
        let lanes = vector.get_type().get_size();
        let bits = scalar.bits();
        let lane = |v: VectorValue<'c>, l: u32| {
            let lane = b.build_extract_element(v, e.i32(l), "").expect(BUILT);
            lane.into_int_value()
        };
        let total = bits * lanes;
        if !total.is_multiple_of(64) {
            let wide = |l| self.wide_index(scalar, lane(vector, l).into(), false);
            return (0..lanes).map(|l| wide(l).into_int_value()).collect();
        }
        let words = e.context.i64_type().vec_type(total / 64);
        let words = b.build_bit_cast(vector, words, "").expect(BUILT);
        let words = words.into_vector_value();
        let each = 64 / bits;
        (0..lanes)
            .map(|l| {
                let word = lane(words, l / each);
                let below = l % each * bits;
                let shift = |n: u32| e.i64(n.into());
                let up = b.build_left_shift(word, shift(64 - bits - below), "");
                let signed = scalar.is_signed_integer();
                let down = b.build_right_shift(up.expect(BUILT), shift(64 - bits), signed, "");
                down.expect(BUILT)
            })
            .collect()
    }

    /// Lanes of one or two vectors, those of the second numbered after those of the first.
    pub fn lanes_of(
        &self,
        first: VectorValue<'c>,
        second: Option<VectorValue<'c>>,
        lanes: impl Iterator<Item = u32>,
    ) -> VectorValue<'c> {
        let second = second.unwrap_or(first.get_type().get_poison());
        let order: Vec<_> = lanes.map(|lane| self.i32(lane)).collect();
        let order = VectorType::const_vector(&order);
        let picked = self.builder.build_shuffle_vector(first, second, order, "");
        picked.expect(BUILT)
    }

    /// The components of elements of four that lie side by side in memory: a vector of so many lanes for each. `read`
    /// loads four scalars.
    pub fn load_quarters(
        &self,
        lanes: u32,
        read: impl Fn(u32) -> VectorValue<'c>,
    ) -> [VectorValue<'c>; 4] {
        // Each has one element of four in each 16 bytes.
        let [a, b, c, d] = [0, 1, 2, 3].map(|n| {
            let own: Vec<_> = (n..lanes).step_by(4).map(&read).collect();
            self.join(&own)
        });
        let [low, high] = [false, true].map(|high| {
            let first = self.unpack(a, b, 1, high);
            (first, self.unpack(c, d, 1, high))
        });
        let [x, y] = [false, true].map(|odd| self.unpack(low.0, low.1, 2, odd));
        let [z, w] = [false, true].map(|odd| self.unpack(high.0, high.1, 2, odd));
        [x, y, z, w]
    }

    /// The other way: `write` stores four scalars.
    pub fn store_quarters(
        &self,
        components: [VectorValue<'c>; 4],
        mut write: impl FnMut(u32, VectorValue<'c>),
    ) {
        let [x, y, z, w] = components;
        for high in [false, true] {
            let first = self.unpack(x, y, 1, high);
            let second = self.unpack(z, w, 1, high);
            for odd in [false, true] {
                let quarters = self.unpack(first, second, 2, odd);
                let n = 2 * u32::from(high) + u32::from(odd);
                for from in (0..x.get_type().get_size()).step_by(4) {
                    write(from + n, self.lanes_of(quarters, None, from..from + 4));
                }
            }
        }
    }

    /// Writes as many components of each lane as there are, side by side, those of the first lane first: `write` stores a
    /// vector so many bytes behind the first.
    pub fn write_together(
        &self,
        scalar: Scalar,
        components: &[VectorValue<'c>],
        mut write: impl FnMut(u64, VectorValue<'c>),
    ) {
        let width = components[0].get_type().get_size();
        let count = components.len() as u32;
        if let [x, y, z, w] = *components
            && self.has_quarters(scalar, width, count)
        {
            let bytes = 4 * scalar.size_bytes();
            self.store_quarters([x, y, z, w], |lane, vector| {
                write(u64::from(lane) * bytes, vector);
            });
            return;
        }
        // Component after component, then lane after lane.
        let pair =
            |pair: &[VectorValue<'c>]| self.lanes_of(pair[0], pair.get(1).copied(), 0..2 * width);
        let mut pairs = components.chunks(2).map(pair);
        let first = pairs.next().expect("components");
        let order = (0..width).flat_map(|lane| (0..count).map(move |c| c * width + lane));
        write(0, self.lanes_of(first, pairs.next(), order));
    }

    /// Whether a transposition of four by four in each 16 bytes of the registers is the best way between components
    /// side by side and vectors of each: eight loads and eight shuffles for eight lanes, where LLVM takes 40.
    pub fn has_quarters(&self, scalar: Scalar, width: u32, count: u32) -> bool {
        let target = &self.target;
        let in_registers = target.is_x86 && !target.has_avx512;
        in_registers && scalar.size_bytes() == 4 && count == 4 && width.is_multiple_of(4)
    }

    /// Of each 16 bytes the lower or the upper half of two vectors, so many lanes of one and of the other in turn.
    fn unpack(
        &self,
        a: VectorValue<'c>,
        b: VectorValue<'c>,
        by: u32,
        high: bool,
    ) -> VectorValue<'c> {
        let lanes = a.get_type().get_size();
        let order = (0..lanes).map(|lane| {
            let within = lane % 4;
            let from = lane - within + within / (2 * by) * by + within % by + 2 * u32::from(high);
            if (within / by).is_multiple_of(2) {
                from
            } else {
                lanes + from
            }
        });
        self.lanes_of(a, Some(b), order)
    }

    /// Vectors one after another, as many as are a power of two.
    pub fn join(&self, vectors: &[VectorValue<'c>]) -> VectorValue<'c> {
        let mut list = vectors.to_vec();
        while list.len() > 1 {
            list = list
                .chunks(2)
                .map(|pair| {
                    let lanes = pair[0].get_type().get_size() * 2;
                    let order: Vec<_> = (0..lanes).map(|l| self.i32(l)).collect();
                    let order = VectorType::const_vector(&order);
                    self.builder
                        .build_shuffle_vector(pair[0], pair[1], order, "")
                        .expect(BUILT)
                })
                .collect();
        }
        list[0]
    }

    /// A vector in parts of the chunk's width.
    pub fn split(&self, vector: VectorValue<'c>, width: u32) -> Vec<Part<'c>> {
        let poison = vector.get_type().get_poison();
        (0..vector.get_type().get_size() / width)
            .map(|u| {
                let order: Vec<_> = (0..width).map(|l| self.i32(u * width + l)).collect();
                let order = VectorType::const_vector(&order);
                let part = self.builder.build_shuffle_vector(vector, poison, order, "");
                Part::Vector(part.expect(BUILT))
            })
            .collect()
    }

    /// The integer type of that many bits, of the shape of a value.
    pub fn shaped(&self, like: BasicValueEnum<'c>, bits: u32) -> BasicTypeEnum<'c> {
        match like {
            BasicValueEnum::VectorValue(v) => {
                let lanes = v.get_type().get_size();
                vector_of(self.int_type(bits).into(), lanes).into()
            }
            _scalar => self.int_type(bits).into(),
        }
    }

    pub fn to_bits(&self, value: BasicValueEnum<'c>, bits: u32) -> BasicValueEnum<'c> {
        let ty = self.shaped(value, bits);
        self.builder.build_bit_cast(value, ty, "").expect(BUILT)
    }

    pub fn as_scalar(&self, bits: BasicValueEnum<'c>, scalar: Scalar) -> BasicValueEnum<'c> {
        let one = self.scalar_type(scalar);
        let ty = match bits {
            BasicValueEnum::VectorValue(v) => vector_of(one, v.get_type().get_size()).into(),
            _scalar => one,
        };
        self.builder.build_bit_cast(bits, ty, "").expect(BUILT)
    }

    pub fn or_any(&self, a: BasicValueEnum<'c>, b: BasicValueEnum<'c>) -> BasicValueEnum<'c> {
        match (a, b) {
            (BasicValueEnum::VectorValue(a), BasicValueEnum::VectorValue(b)) => {
                self.or(a, b).into()
            }
            (a, b) => self.or(a.into_int_value(), b.into_int_value()).into(),
        }
    }

    pub fn shift(&self, value: BasicValueEnum<'c>, count: u64, left: bool) -> BasicValueEnum<'c> {
        if count == 0 {
            return value;
        }
        let b = &self.builder;
        match value {
            BasicValueEnum::VectorValue(v) => {
                let ty = v.get_type().get_element_type().into_int_type();
                let count = ty.const_int(count, false);
                let count =
                    VectorType::const_vector(&vec![count; v.get_type().get_size() as usize]);
                if left {
                    b.build_left_shift(v, count, "").expect(BUILT).into()
                } else {
                    b.build_right_shift(v, count, false, "")
                        .expect(BUILT)
                        .into()
                }
            }
            scalar => {
                let v = scalar.into_int_value();
                let count = v.get_type().const_int(count, false);
                if left {
                    b.build_left_shift(v, count, "").expect(BUILT).into()
                } else {
                    b.build_right_shift(v, count, false, "")
                        .expect(BUILT)
                        .into()
                }
            }
        }
    }

    pub fn resize(&self, value: BasicValueEnum<'c>, bits: u32) -> BasicValueEnum<'c> {
        let ty = self.shaped(value, bits);
        let b = &self.builder;
        match (value, ty) {
            (BasicValueEnum::VectorValue(v), BasicTypeEnum::VectorType(ty)) => {
                let own = v
                    .get_type()
                    .get_element_type()
                    .into_int_type()
                    .get_bit_width();
                match own.cmp(&bits) {
                    std::cmp::Ordering::Less => {
                        b.build_int_z_extend(v, ty, "").expect(BUILT).into()
                    }
                    std::cmp::Ordering::Equal => value,
                    std::cmp::Ordering::Greater => {
                        b.build_int_truncate(v, ty, "").expect(BUILT).into()
                    }
                }
            }
            (value, ty) => {
                let (v, ty) = (value.into_int_value(), ty.into_int_type());
                match v.get_type().get_bit_width().cmp(&bits) {
                    std::cmp::Ordering::Less => {
                        b.build_int_z_extend(v, ty, "").expect(BUILT).into()
                    }
                    std::cmp::Ordering::Equal => value,
                    std::cmp::Ordering::Greater => {
                        b.build_int_truncate(v, ty, "").expect(BUILT).into()
                    }
                }
            }
        }
    }

    pub fn phi(&self, incoming: &[(BasicValueEnum<'c>, BasicBlock<'c>)]) -> BasicValueEnum<'c> {
        let ty = incoming[0].0.get_type();
        let phi = self.builder.build_phi(ty, "").expect(BUILT);
        for (value, block) in incoming {
            phi.add_incoming(&[(value, *block)]);
        }
        phi.as_basic_value()
    }

    /// Goes to `yes` nearly always: registers are first for what is there.
    pub fn branch_mostly(&self, condition: IntValue<'c>, yes: BasicBlock<'c>, no: BasicBlock<'c>) {
        let context = self.context;
        let branch = self.builder.build_conditional_branch(condition, yes, no);
        let weights = BRANCH_WEIGHTS.map(|weight| self.i32(weight).into());
        let name = context.metadata_string("branch_weights").into();
        let node = context.metadata_node(&[name, weights[0], weights[1]]);
        let branch = branch.expect(BUILT);
        branch
            .set_metadata(node, context.get_kind_id("prof"))
            .expect("a branch");
    }

    pub fn fill_with_zeros(&self, pointer: PointerValue<'c>, bytes: IntValue<'c>) {
        let zero = self.context.i8_type().const_zero();
        let fill = (self.builder).build_memset(pointer, ALIGN as u32, zero, bytes);
        fill.expect(BUILT);
    }
}
