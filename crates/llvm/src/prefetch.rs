//! Asking for memory ahead of its use.
//!
//! Processors foresee what lies side by side, but not the next rows of a matrix, nor what comes after a
//! pause. Where all threads of a threadgroup go through a counted loop together and load rows whose place
//! moves by a whole row or more from round to round, those of the next round are asked for in this one, also
//! where it is a chunk's own loop within that loads them. Where a chunk's own loop reads a stretch of memory
//! without gaps, what follows is asked for a little ahead: at the end of the stretch that is where the next
//! threadgroup begins, after barriers in which nothing else would be on its way.
//!
//! A request for any address is harmless, so nothing here is checked, and where sums wrap only time is
//! lost. Deliberately absent: the next round of a chunk's own loop that skips memory, which comes too soon.

use inkwell::values::{IntValue, PointerValue};
use invar_ir::inst::{InstKind, Region, Value};
use invar_ir::ops::{Dim, Imm, Meaning};
use invar_ir::{AddressSpace, Inst, Op, Type};

use crate::kernel::Maker;
use crate::value::{Mask, Part};

/// What moves by fewer bytes than this the processor foresees itself.
const LEAST_BYTES: u64 = 1024;
/// How far ahead a stretch without gaps is asked for: a page, at whose end processors stop to foresee, and
/// about what a core has on its way in the time of a barrier.
const STRETCH_BYTES: u64 = 4096;
/// What the processor moves at once.
const LINE_BYTES: u64 = 64;
/// How deep expressions are looked into.
const DEPTH: u32 = 16;

/// What is asked for: how many bytes after what is loaded, and into which cache.
#[derive(Clone, Copy)]
pub(crate) struct Ahead<'c> {
    bytes: IntValue<'c>,
    near: Near,
}

/// The nearest cache that something is asked for into, as LLVM counts.
#[derive(Clone, Copy)]
enum Near {
    /// The second: what fetches into the first has fewer places, and the loads themselves need them.
    Second = 2,
    /// The first: few lines, which the next round reads.
    First = 3,
}

impl<'c, 'k> Maker<'c, 'k> {
    /// What is worth asking for when a load is made.
    pub fn ahead(&self, load: &Inst, mask: &Mask<'c>) -> Option<Ahead<'c>> {
        let InstKind::Load(place) = &load.kind else {
            return None;
        };
        let chunk = self.chunk.as_ref()?;
        if !chunk.fast || chunk.divergence > 0 || *mask != Mask::All {
            return None;
        }
        let info = self.module.memory(self.kernel, place.memory)?;
        if !matches!(info.space, AddressSpace::Device | AddressSpace::Constant) {
            return None;
        }
        let extent = info.element.extent(&self.module.structs)?;
        let bytes = |elements| self.e.mul(elements, self.e.i64(extent.size_bytes));
        let (mut near, mut carried) = (Near::First, &[][..]);
        if !chunk.frames.is_empty() {
            let Some(Inst {
                kind: InstKind::For { step, body, .. },
                ..
            }) = loop_around(&self.kernel.body, load)
            else {
                return None;
            };
            let step = match self.threads_of_chunk(*step) {
                Some(threads) => Some(self.e.i64(threads.into())),
                None => self.uniform(*step),
            };
            let moves = step
                .and_then(|step| {
                    self.growth(place.index, body.params[0], &body.params, step, DEPTH)
                })
                .and_then(|elements| bytes(elements).get_zero_extended_constant());
            let row = u64::from(self.shape.along * self.shape.width) * extent.size_bytes;
            if moves == Some(row) {
                return Some(Ahead {
                    bytes: self.e.i64(STRETCH_BYTES),
                    near: Near::Second,
                });
            }
            (near, carried) = (Near::Second, &body.params[1..]);
        }
        let (index, step) = self.loop_together()?;
        let step = self.uniform(step)?;
        let bytes = bytes(self.growth(place.index, index, carried, step, DEPTH)?);
        let is_near = |n: i64| n.unsigned_abs() < LEAST_BYTES;
        let foreseen = bytes.get_sign_extended_constant().is_some_and(is_near);
        (!foreseen).then_some(Ahead { bytes, near })
    }

    /// The threads of a threadgroup along x, if a value is that and they are all in this full chunk.
    fn threads_of_chunk(&self, value: Value) -> Option<u32> {
        let InstKind::Op { op, imm, .. } = self.plan.definitions.get(&value)?.kind else {
            return None;
        };
        let is_size = op == Op::ThreadsPerThreadgroup && imm == Imm::Dim(Dim::X);
        let [x, _, _] = self.threadgroup_size?;
        let threads = self.shape.along * self.shape.width;
        (is_size && x == threads).then_some(threads)
    }

    /// Whether a vector of elements is the first of its line, if the chunk's row begins with one.
    pub fn begins_line(&self, part: usize, element_bytes: u64) -> bool {
        let before = part as u64 % u64::from(self.shape.along) * u64::from(self.shape.width);
        (before * element_bytes).is_multiple_of(LINE_BYTES)
    }

    /// Asks for what lies after an address.
    pub fn ask_ahead(&self, pointer: PointerValue<'c>, ahead: Ahead<'c>) {
        let e = &self.e;
        let pointer = e.byte_offset(pointer, ahead.bytes);
        // To read, as data.
        let [read, near, data] = [0, ahead.near as u32, 1].map(|n| e.i32(n).into());
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

    /// By how much an integer grows where `index` grows by `step` and what is `carried` may change;
    /// `None` if that is not known.
    fn growth(
        &self,
        value: Value,
        index: Value,
        carried: &[Value],
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
            let stays = !self.is_carried(value) && !carried.contains(&value);
            return stays.then(|| e.i64(0));
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
        let growths: Option<Vec<IntValue<'c>>> = (args
            .iter()
            .map(|arg| self.growth(*arg, index, carried, step, depth)))
        .collect();
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

/// The innermost loop in a region that an instruction stands in.
fn loop_around<'k>(region: &'k Region, inst: &Inst) -> Option<&'k Inst> {
    fn find<'k>(
        region: &'k Region,
        inst: &Inst,
        around: Option<&'k Inst>,
    ) -> Option<Option<&'k Inst>> {
        region.insts.iter().find_map(|own| {
            let is_loop = matches!(own.kind, InstKind::For { .. } | InstKind::Loop { .. });
            let inner = if is_loop { Some(own) } else { around };
            if std::ptr::eq(own, inst) {
                return Some(around);
            }
            let regions = own.kind.regions().into_iter();
            regions.into_iter().find_map(|r| find(r, inst, inner))
        })
    }
    find(region, inst, None).flatten()
}
