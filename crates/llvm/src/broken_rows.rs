//! Loads of narrow elements whose lanes lie side by side but for one break: where an index wraps around or is clamped,
//! at the border of a picture.
//!
//! ```text
//! 4094 4095 0 1 2 ..      two rows: one begins with the first lane, the other ends with the last one
//! 0 0 0 1 2 ..            the first lane's element, and a row that ends with the last one
//! ```
//!
//! Processors have no gather of bytes and halves: each lane is a load of its own, so that the two
//! vectors of a row that wrap took longer than the 126 others of Life in bytes. Whether all lanes lie in one of two rows, or where their first or last lanes do,
//! is asked where code runs; then two loads do it. What does not fit is gathered.
//!
//! Deliberately absent: indices that come of what a thread loaded, which lie anywhere; elements of 32 bits and more, which
//! are gathered by one instruction; stores, which would write what nobody asked for.

use std::collections::HashSet;

use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::values::{BasicValueEnum, IntValue, PointerValue, VectorValue};
use invar_codegen::analysis::lanes::Class;
use invar_ir::inst::{Place, Value};
use invar_ir::ops::Meaning;
use invar_ir::{InstKind, Op, Scalar};

use crate::emit::{BUILT, Emit};
use crate::function::FunctionLowering;
use crate::gather::is_narrow;
use crate::places::Target;
use crate::value::Part;

impl<'c, 'k> FunctionLowering<'c, 'k> {
    /// Whether the lanes of a load may lie in rows that are broken once.
    pub fn may_be_broken_rows(&self, t: &Target<'c>, place: &Place) -> bool {
        t.scale == 1
            && t.components == 1
            && t.dynamic.is_empty()
            && !t.never
            && t.offset_bytes == 0
            && t.element_bytes == t.scalar.size_bytes()
            && is_narrow(t.scalar)
            && t.index_scalar.bits() >= 32
            && self.comes_of_positions(place.index, &mut HashSet::new())
    }

    /// Whether what differs from lane to lane of a value are positions alone.
    fn comes_of_positions(&self, value: Value, seen: &mut HashSet<Value>) -> bool {
        if !matches!(self.class_of(value), Class::Varying) || !seen.insert(value) {
            return true;
        }
        let made = self.analysis.plan.definitions.get(&value);
        match made.map(|inst| &inst.kind) {
            Some(InstKind::Op { op, args, .. }) => {
                let is_integer = |v: &Value| {
                    let ty = self.analysis.kernel.ty(*v);
                    ty.is_integer_scalar() || ty.scalar() == Some(Scalar::Bool)
                };
                let computes = matches!(op.row().meaning, Meaning::Eval(_) | Meaning::Query);
                (computes || *op == Op::AsType)
                    && args
                        .iter()
                        .all(|arg| is_integer(arg) && self.comes_of_positions(*arg, seen))
            }
            Some(_) | None => false,
        }
    }

    /// Reads a vector of a target whose lanes may lie in broken rows, as it is in memory.
    pub fn load_broken_rows(
        &self,
        t: &Target<'c>,
        u: usize,
        lanes: Option<VectorValue<'c>>,
    ) -> Option<BasicValueEnum<'c>> {
        let Part::Vector(indices) = t.index.part(0, u) else {
            return None;
        };
        let (e, width) = (&self.e, self.shape.width);
        let given = lanes.map(|lanes| BasicValueEnum::from(e.mask_bytes(lanes)));
        let masked = if given.is_some() { ".masked" } else { "" };
        let (scalar, index) = (t.scalar, t.index_scalar);
        let name = format!("broken.{scalar}.{index}.{width}{masked}");
        let mut args = vec![t.object.base.into(), indices.into(), t.object.length.into()];
        args.extend(given);
        let ty = e.memory_type(scalar, e.vector_type(scalar, width).into());
        e.call_for(&name, &args, Some(ty), |given| {
            Some(e.broken_rows(scalar, index, given).into())
        })
    }
}

impl<'c> Emit<'c> {
    /// The body of a function: of where an object begins, the indices of lanes, its length, and a mask as bytes if only some
    /// lanes are on.
    fn broken_rows(
        &self,
        scalar: Scalar,
        index: Scalar,
        given: &[BasicValueEnum<'c>],
    ) -> VectorValue<'c> {
        let (e, b) = (self, &self.builder);
        let (base, indices) = (given[0].into_pointer_value(), given[1].into_vector_value());
        let length = given[2].into_int_value();
        let width = indices.get_type().get_size();
        let on = given
            .get(3)
            .map(|bytes| e.mask_of_bytes(bytes.into_vector_value()));
        let lane = |lane: u32| {
            let lane = b.build_extract_element(indices, e.i32(lane), "");
            lane.expect(BUILT).into_int_value()
        };
        let (first, last) = (lane(0), lane(width - 1));
        let bits = index.bits();
        let before = e.int_type(bits).const_int(u64::from(width) - 1, false);
        let row = |from: IntValue<'c>| {
            let row = e.add(e.splat(from.into(), width), e.ramp(bits, 1, width));
            e.compare_lanes(IntPredicate::EQ, indices, row)
        };
        let same = |one: IntValue<'c>| {
            e.compare_lanes(IntPredicate::EQ, indices, e.splat(one.into(), width))
        };
        let fits = [
            row(first),
            row(e.sub(last, before)),
            same(first),
            same(last),
        ];
        let off = on.map(|on| e.not(on));
        let all = fits.into_iter().chain(off).reduce(|a, b| e.or(a, b));
        let all = e.mask_bits(all.expect("four"));
        let all = e.compare(IntPredicate::EQ, all, all.get_type().const_all_ones());
        // Both rows lie in the object, whole, and before an index of 32 bits with a sign wraps.
        let end = match bits {
            64 => length,
            _narrower => e.smaller(length, e.i64(1 << 31)),
        };
        let wide = |one: IntValue<'c>| e.wide_index(index, one.into(), false).into_int_value();
        let (first, last) = (wide(first), wide(last));
        let (lanes, before) = (e.i64(width.into()), e.i64(u64::from(width) - 1));
        let enough = e.compare(IntPredicate::UGE, end, lanes);
        let begins = e.compare(IntPredicate::ULE, first, e.sub(end, lanes));
        let ends = e.compare(IntPredicate::ULT, last, end);
        let far = e.compare(IntPredicate::UGE, last, before);
        let inside = e.and(e.and(enough, begins), e.and(ends, far));
        let (rows, other, join) = (e.block("rows"), e.block("gathered"), e.block("loaded"));
        e.branch_if(e.and(all, inside), rows, other);
        e.go(rows);
        let found = self.rows_of(scalar, base, [first, e.sub(last, before)], &fits);
        let found = match on {
            None => found,
            Some(on) => {
                let none = found.get_type().const_zero();
                (e.select(on.into(), found.into(), none.into())).into_vector_value()
            }
        };
        let from_rows: BasicBlock<'c> = e.here();
        e.branch(join);
        e.go(other);
        let indices = e
            .wide_index(index, indices.into(), false)
            .into_vector_value();
        let inside = e.compare_lanes(IntPredicate::ULT, indices, e.splat(length.into(), width));
        let element = e.memory_type(scalar, e.scalar_type(scalar));
        let pointers = e.pointers(element, base.into(), indices);
        let gathered = e.gather(scalar, pointers, e.and_mask(on, Some(inside)));
        let from_gather = e.here();
        e.branch(join);
        e.go(join);
        let phi = b.build_phi(gathered.get_type(), "").expect(BUILT);
        phi.add_incoming(&[(&found, from_rows), (&gathered, from_gather)]);
        phi.as_basic_value().into_vector_value()
    }

    /// The lanes of two rows: which are in the one, in the other, where the first lane is, where the last one is.
    fn rows_of(
        &self,
        scalar: Scalar,
        base: PointerValue<'c>,
        begins: [IntValue<'c>; 2],
        [in_one, _in_other, at_first, at_last]: &[VectorValue<'c>; 4],
    ) -> VectorValue<'c> {
        let e = self;
        let width = in_one.get_type().get_size();
        let ty = e.memory_type(scalar, e.vector_type(scalar, width).into());
        let size = scalar.size_bytes();
        let [one, other] = begins.map(|from| {
            let place = e.byte_offset(base, e.mul(from, e.i64(size)));
            e.load(ty, place, size as u32).into_vector_value()
        });
        let all = |row: VectorValue<'c>, lane: u32| e.lanes_of(row, None, (0..width).map(|_| lane));
        let pick = |which: &VectorValue<'c>, yes: VectorValue<'c>, no: VectorValue<'c>| {
            (e.select((*which).into(), yes.into(), no.into())).into_vector_value()
        };
        let clamped = pick(at_first, all(one, 0), other);
        let clamped = pick(at_last, all(other, width - 1), clamped);
        pick(in_one, one, clamped)
    }
}
