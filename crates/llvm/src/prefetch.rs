//! Asking for memory ahead of its use.
//!
//! Processors foresee what lies side by side, but not the next rows of a matrix. Where all threads of a
//! threadgroup go through a counted loop together and load rows whose place moves by a whole row or more
//! from round to round, those of the next round are asked for in this one.
//!
//! A request for any address is harmless, so nothing here is checked, and where sums wrap only time is
//! lost. Deliberately absent: loops inside of a chunk, whose rounds are too short to ask one ahead.

use inkwell::values::{IntValue, PointerValue};
use invar_ir::inst::{InstKind, Value};
use invar_ir::ops::Meaning;
use invar_ir::{AddressSpace, Inst, Op, Type};

use crate::kernel::Maker;
use crate::value::{Mask, Part};

/// What moves by fewer bytes than this the processor foresees itself.
const LEAST_BYTES: u64 = 1024;
/// How deep expressions are looked into.
const DEPTH: u32 = 16;

impl<'c, 'k> Maker<'c, 'k> {
    /// How many bytes further a load's place is in the next round of the loop around its segment; `None`
    /// if it is not worth asking for.
    pub fn bytes_ahead(&self, load: &Inst, mask: &Mask<'c>) -> Option<IntValue<'c>> {
        let InstKind::Load(place) = &load.kind else {
            return None;
        };
        let chunk = self.chunk.as_ref()?;
        if !chunk.fast || chunk.divergence > 0 || !chunk.frames.is_empty() || *mask != Mask::All {
            return None;
        }
        let info = self.module.memory(self.kernel, place.memory)?;
        if !matches!(info.space, AddressSpace::Device | AddressSpace::Constant) {
            return None;
        }
        let (index, step) = self.loop_together()?;
        let step = self.uniform(step)?;
        let elements = self.growth(place.index, index, step, DEPTH)?;
        let extent = info.element.extent(&self.module.structs)?;
        let bytes = self.e.mul(elements, self.e.i64(extent.size_bytes));
        let near = |n: i64| n.unsigned_abs() < LEAST_BYTES;
        (!bytes.get_sign_extended_constant().is_some_and(near)).then_some(bytes)
    }

    /// Asks for what lies so many bytes after an address.
    pub fn ask_ahead(&self, pointer: PointerValue<'c>, bytes: IntValue<'c>) {
        let e = &self.e;
        let pointer = e.byte_offset(pointer, bytes);
        // To read, into every cache, as data.
        let [read, near, data] = [0, 3, 1].map(|n| e.i32(n).into());
        let overloads = [e.pointer_type().into()];
        e.intrinsic(
            "llvm.prefetch",
            &overloads,
            &[pointer.into(), read, near, data],
        );
    }

    /// An integer that is the same for the threadgroup, in 64 bits.
    fn uniform(&self, value: Value) -> Option<IntValue<'c>> {
        let scalar = self.kernel.ty(value).scalar().filter(|s| s.is_integer())?;
        let Part::Scalar(own) = self.shared_value(value)?.part(0, 0) else {
            return None;
        };
        let own = own.into_int_value();
        let (b, wide) = (&self.e.builder, self.e.context.i64_type());
        Some(if scalar.bits() == 64 {
            own
        } else if scalar.is_signed_integer() {
            b.build_int_s_extend(own, wide, "")
                .expect(crate::emit::BUILT)
        } else {
            b.build_int_z_extend(own, wide, "")
                .expect(crate::emit::BUILT)
        })
    }

    /// By how much an integer grows where `index` grows by `step`; `None` if that is not known.
    fn growth(
        &self,
        value: Value,
        index: Value,
        step: IntValue<'c>,
        depth: u32,
    ) -> Option<IntValue<'c>> {
        let e = &self.e;
        if value == index {
            return Some(step);
        }
        let depth = depth.checked_sub(1)?;
        let Some(definition) = self.plan.definitions.get(&value) else {
            // A parameter, or what a loop around carries: it may change in any way.
            return (!self.is_carried(value)).then(|| e.i64(0));
        };
        let (op, _, args) = match &definition.kind {
            InstKind::Const(_) | InstKind::BufferLength(_) | InstKind::FunctionConstant(_) => {
                return Some(e.i64(0));
            }
            kind => kind.as_op()?,
        };
        if matches!(op.row().meaning, Meaning::Query) {
            return Some(e.i64(0));
        }
        if !matches!(self.kernel.ty(value), Type::Scalar(s) if s.is_integer()) {
            return None;
        }
        let growths: Option<Vec<IntValue<'c>>> =
            (args.iter().map(|arg| self.growth(*arg, index, step, depth))).collect();
        let growths = growths?;
        let stays = |n: &IntValue<'c>| n.get_zero_extended_constant() == Some(0);
        if growths.iter().all(stays) {
            return Some(e.i64(0));
        }
        match (op, &growths[..]) {
            (Op::Add, [a, b]) => Some(e.add(*a, *b)),
            (Op::Sub, [a, b]) => Some(e.sub(*a, *b)),
            (Op::Mul, [a, b]) if stays(b) => Some(e.mul(*a, self.uniform(args[1])?)),
            (Op::Mul, [a, b]) if stays(a) => Some(e.mul(*b, self.uniform(args[0])?)),
            (Op::Cast, [a]) => Some(*a),
            _unknown => None,
        }
    }
}
