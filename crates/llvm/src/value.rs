//! Values of a chunk of threads: components, each a few vectors of lanes or what stands for them.
//!
//! A chunk is `parts` vectors of `width` lanes. A component that is the same for all of a chunk is one
//! part; any other has one part for each vector: the same for its lanes, growing evenly from lane to
//! lane, or a vector.

use inkwell::IntPredicate;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValueEnum, IntValue, VectorValue};
use invar_ir::{Scalar, Type};

use crate::emit::{BUILT, Emit, vector_of};

/// One vector's share of a component.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Part<'c> {
    /// The same in each lane.
    Scalar(BasicValueEnum<'c>),
    /// `base + lane * stride`, wrapping; if `exact`, in the lanes of threads that exist nothing wraps. The
    /// base is a multiple of two to the `aligned`.
    Affine {
        base: IntValue<'c>,
        stride: i64,
        exact: bool,
        aligned: u32,
    },
    /// Lane by lane.
    Vector(VectorValue<'c>),
}

/// A value: the parts of its first component, then those of the next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parts<'c> {
    list: Vec<Part<'c>>,
    /// Parts for each component: 1 if they are the same for all of the chunk.
    each: usize,
}

impl<'c> Parts<'c> {
    /// The same for all of the chunk, a scalar a component.
    pub fn uniform(components: Vec<BasicValueEnum<'c>>) -> Parts<'c> {
        let list = components.into_iter().map(Part::Scalar).collect();
        Parts { list, each: 1 }
    }

    /// From the parts of each component in order, `each` of them.
    pub fn of(list: Vec<Part<'c>>, each: usize) -> Parts<'c> {
        debug_assert!(each > 0 && list.len().is_multiple_of(each));
        // What turns out the same for all is kept once.
        let same = |c: &[Part<'c>]| matches!(c[0], Part::Scalar(_)) && c.iter().all(|p| *p == c[0]);
        if each > 1 && list.chunks(each).all(same) {
            let list = list.chunks(each).map(|c| c[0]).collect();
            return Parts { list, each: 1 };
        }
        Parts { list, each }
    }

    /// Components.
    pub fn components(&self) -> usize {
        self.list.len() / self.each
    }

    /// Whether it is the same for all of the chunk.
    pub fn is_uniform(&self) -> bool {
        self.each == 1 && self.list.iter().all(|p| matches!(p, Part::Scalar(_)))
    }

    /// Part `part` of a component.
    pub fn part(&self, component: usize, part: usize) -> Part<'c> {
        let within = if self.each == 1 { 0 } else { part };
        self.list[component * self.each + within]
    }

    /// One component of several.
    pub fn component(&self, component: usize) -> Parts<'c> {
        let start = component * self.each;
        Parts::of(self.list[start..start + self.each].to_vec(), self.each)
    }

    /// Values with their components in a row, of a chunk of `parts` vectors.
    pub fn concat(values: &[Parts<'c>], parts: usize) -> Parts<'c> {
        if values.iter().all(|v| v.each == 1) {
            let list = values.iter().flat_map(|v| v.list.iter().copied()).collect();
            return Parts { list, each: 1 };
        }
        let mut list = Vec::new();
        for value in values {
            for component in 0..value.components() {
                list.extend((0..parts).map(|u| value.part(component, u)));
            }
        }
        Parts::of(list, parts)
    }
}

/// Which lanes are on: all, or those of a vector of `i1` for each part.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Mask<'c> {
    All,
    Some(Vec<VectorValue<'c>>),
}

impl<'c> Mask<'c> {
    /// The lanes of a part; `None` for all.
    pub fn part(&self, part: usize) -> Option<VectorValue<'c>> {
        match self {
            Mask::All => None,
            Mask::Some(list) => Some(list[part]),
        }
    }
}

/// How many components a value has in registers. A simdgroup matrix has one for each two of its rows.
pub(crate) fn component_count(ty: Type) -> usize {
    match ty {
        Type::SimdgroupMatrix { rows, .. } => usize::from(rows / 2),
        Type::Scalar(_) | Type::Vector(..) | Type::Matrix { .. } | Type::Event => {
            ty.component_count() as usize
        }
    }
}

impl<'c> Emit<'c> {
    /// The type of one component of a value that is the same for all lanes.
    pub fn component_type(&self, ty: Type) -> BasicTypeEnum<'c> {
        let scalar = self.scalar_type(ty.scalar().unwrap_or(Scalar::U32));
        match ty {
            Type::SimdgroupMatrix { columns, .. } => {
                vector_of(scalar, 2 * u32::from(columns)).into()
            }
            Type::Scalar(_) | Type::Vector(..) | Type::Matrix { .. } | Type::Event => scalar,
        }
    }

    /// `0, stride, 2 * stride, ...`.
    pub fn ramp(&self, bits: u32, stride: i64, lanes: u32) -> VectorValue<'c> {
        let ty = self.int_type(bits);
        let mask = if bits == 64 {
            u64::MAX
        } else {
            (1 << bits) - 1
        };
        let list: Vec<_> = (0..i64::from(lanes))
            .map(|l| ty.const_int(l.wrapping_mul(stride) as u64 & mask, false))
            .collect();
        inkwell::types::VectorType::const_vector(&list)
    }

    /// A part as a vector of `lanes`.
    pub fn vector(&self, part: Part<'c>, lanes: u32) -> VectorValue<'c> {
        match part {
            Part::Vector(v) => v,
            Part::Scalar(s) => self.splat(s, lanes),
            Part::Affine { base, stride, .. } => {
                let ramp = self.ramp(base.get_type().get_bit_width(), stride, lanes);
                let base = self.splat(base.into(), lanes);
                self.builder.build_int_add(base, ramp, "").expect(BUILT)
            }
        }
    }

    /// Whether any lane is on.
    pub fn any(&self, mask: &[VectorValue<'c>]) -> IntValue<'c> {
        let mut all = mask[0];
        for m in &mask[1..] {
            all = self.builder.build_or(all, *m, "").expect(BUILT);
        }
        let bits = self.mask_bits(all);
        self.builder
            .build_int_compare(IntPredicate::NE, bits, bits.get_type().const_zero(), "")
            .expect(BUILT)
    }

    /// A mask as an integer, lane 0 lowest.
    pub fn mask_bits(&self, mask: VectorValue<'c>) -> IntValue<'c> {
        let ty = self.int_type(mask.get_type().get_size());
        self.builder
            .build_bit_cast(mask, ty, "")
            .expect(BUILT)
            .into_int_value()
    }

    /// A mask as bytes, for a function: to take it apart from bits would take longer than most of what they do.
    pub fn mask_bytes(&self, mask: VectorValue<'c>) -> VectorValue<'c> {
        let bytes = vector_of(self.context.i8_type().into(), mask.get_type().get_size());
        let bytes = self.builder.build_int_s_extend(mask, bytes, "");
        bytes.expect(BUILT)
    }

    /// A mask from its bytes.
    pub fn mask_of_bytes(&self, bytes: VectorValue<'c>) -> VectorValue<'c> {
        self.compare_lanes(IntPredicate::NE, bytes, bytes.get_type().const_zero())
    }

    /// `condition ? yes : no` of any two values of one type.
    pub fn select(
        &self,
        condition: BasicValueEnum<'c>,
        yes: BasicValueEnum<'c>,
        no: BasicValueEnum<'c>,
    ) -> BasicValueEnum<'c> {
        if yes == no {
            return yes;
        }
        match condition {
            BasicValueEnum::VectorValue(c) => self.builder.build_select(c, yes, no, ""),
            BasicValueEnum::IntValue(c) => self.builder.build_select(c, yes, no, ""),
            BasicValueEnum::ArrayValue(_)
            | BasicValueEnum::FloatValue(_)
            | BasicValueEnum::PointerValue(_)
            | BasicValueEnum::StructValue(_)
            | BasicValueEnum::ScalableVectorValue(_) => unreachable!("a condition is i1"),
        }
        .expect(BUILT)
    }

    /// The value of the first lane that is on, of a component; lane 0 if all are.
    pub fn first_active(
        &self,
        parts: &[Part<'c>],
        mask: &Mask<'c>,
        lanes: u32,
    ) -> BasicValueEnum<'c> {
        let Mask::Some(masks) = mask else {
            return match parts[0] {
                Part::Scalar(s) => s,
                Part::Affine { base, .. } => base.into(),
                Part::Vector(v) => self
                    .builder
                    .build_extract_element(v, self.i32(0), "")
                    .expect(BUILT),
            };
        };
        let mut result: Option<BasicValueEnum<'c>> = None;
        for (part, mask) in parts.iter().zip(masks).rev() {
            let bits = self.mask_bits(*mask);
            let value = match part {
                Part::Scalar(s) => *s,
                Part::Affine { .. } | Part::Vector(_) => {
                    let ty = bits.get_type();
                    let args = [bits.into(), self.context.bool_type().const_zero().into()];
                    let lane = self
                        .intrinsic("llvm.cttz", &[ty.into()], &args)
                        .expect("a value")
                        .into_int_value();
                    // With no lane on, the count is the width, which no lane has.
                    let in_range = ty.const_int(u64::from(lanes) - 1, false);
                    let lane = self.builder.build_and(lane, in_range, "").expect(BUILT);
                    let vector = self.vector(*part, lanes);
                    self.builder
                        .build_extract_element(vector, lane, "")
                        .expect(BUILT)
                }
            };
            result = Some(match result {
                None => value,
                Some(later) => {
                    let zero = bits.get_type().const_zero();
                    let some = self
                        .builder
                        .build_int_compare(IntPredicate::NE, bits, zero, "")
                        .expect(BUILT);
                    self.select(some.into(), value, later)
                }
            });
        }
        result.expect("a chunk has parts")
    }
}
