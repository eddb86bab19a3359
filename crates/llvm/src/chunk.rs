//! The values of the chunk that code is being made for, and which of its threads there are.

use inkwell::IntPredicate;
use inkwell::values::{IntValue, VectorValue};
use invar_codegen::analysis::lanes::Class;
use invar_ir::inst::Value;

use crate::emit::BUILT;
use crate::function::FunctionLowering;
use crate::plan::Home;
use crate::value::{Mask, Parts};

impl<'c, 'k> FunctionLowering<'c, 'k> {
    /// The lanes whose threads exist and have not returned.
    pub fn existing(&self) -> Mask<'c> {
        let e = &self.e;
        let (shape, chunk) = (self.shape, self.chunk_ref());
        let width = shape.width;
        let below = |first: IntValue<'c>, end: IntValue<'c>| {
            let lanes = e.add(e.splat(first.into(), width), e.ramp(32, 1, width));
            e.compare_lanes(IntPredicate::ULT, lanes, e.splat(end.into(), width))
        };
        let mut list: Vec<VectorValue<'c>> = Vec::new();
        for u in 0..shape.parts() {
            if shape.linear {
                let first = e.add(chunk.number, e.i32(u * width));
                list.push(below(first, self.group.threads));
                continue;
            }
            let first = e.add(chunk.at[0], e.i32(u % shape.along * width));
            let mask = below(first, self.group.size[0]);
            if shape.rows == 1 {
                list.push(mask);
                continue;
            }
            let y = e.add(chunk.at[1], e.i32(u / shape.along));
            let inside = e.compare(IntPredicate::ULT, y, self.group.size[1]);
            list.push(e.and(mask, e.splat(inside.into(), width)));
        }
        if let Some(offset) = self.analysis.layout.returned {
            for (u, mask) in list.iter_mut().enumerate() {
                let at = offset + self.analysis.part_at(self.shape, u);
                let pointer = e.byte_offset(chunk.memory, e.i64(at));
                let ty = e.context.i8_type().vec_type(width);
                let gone = e.load(ty.into(), pointer, 1).into_vector_value();
                let here = e.compare_lanes(IntPredicate::EQ, gone, ty.const_zero());
                *mask = e.and(*mask, here);
            }
        }
        Mask::Some(list)
    }

    /// Keeps which threads have returned.
    pub fn keep_returned(&self, left: &Mask<'c>) {
        let (Some(offset), Mask::Some(left)) = (self.analysis.layout.returned, left) else {
            return;
        };
        let e = &self.e;
        let width = self.shape.width;
        for (u, mask) in left.iter().enumerate() {
            let at = offset + self.analysis.part_at(self.shape, u);
            let pointer = e.byte_offset(self.chunk_ref().memory, e.i64(at));
            let ty = e.context.i8_type().vec_type(width);
            let gone = e
                .builder
                .build_int_z_extend(e.not(*mask), ty, "")
                .expect(BUILT);
            e.store(gone.into(), pointer, 1);
        }
    }

    /// A value in this chunk.
    pub fn get(&mut self, value: Value) -> Parts<'c> {
        self.known(value).unwrap_or_else(|| {
            panic!(
                "{} has no value here",
                self.analysis.kernel.value_name(value)
            )
        })
    }

    /// A value in this chunk, unless it belongs to another segment and nothing here takes it in.
    pub fn known(&self, value: Value) -> Option<Parts<'c>> {
        let own = self.chunk.as_ref().and_then(|c| c.values.get(&value));
        own.cloned().or_else(|| self.shared_value(value))
    }

    /// Gives a value its parts.
    pub fn define(&mut self, value: Value, parts: Parts<'c>, mask: &Mask<'c>) {
        if self.chunk.is_none() {
            self.shared.values.insert(value, parts);
            return;
        }
        let class = self.class_of(value);
        let parts = if class == Class::Uniform && !parts.is_uniform() {
            self.make_uniform(&parts, mask)
        } else if class == Class::BY_VECTOR && self.shape.linear {
            self.make_uniform_by_simdgroup(parts, mask)
        } else {
            parts
        };
        let home = self.analysis.plan.home(value);
        if home == Home::Threadgroup {
            let parts = self.make_uniform(&parts, mask);
            self.share(value, &parts);
        }
        self.chunk().values.insert(value, parts.clone());
        if home == Home::Slot {
            self.write_slot(value, &parts);
        }
    }

    /// Whether the uppermost bit of an integer is zero in all threads of the chunk.
    pub fn is_small(&self, value: Value, mask: &Mask<'c>) -> bool {
        let all = (self.chunk.as_ref()).is_some_and(|chunk| chunk.fast && chunk.divergence == 0);
        let range = self.analysis.plan.ranges.of(value);
        let is_small = range.is_some_and(|(least, most)| least >= 0 && most <= i32::MAX.into());
        all && *mask == Mask::All && is_small
    }
}
