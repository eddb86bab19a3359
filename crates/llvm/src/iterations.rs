//! Counted loops that lanes leave at different times: the iterations that all of them make come first, without masks.
//!
//! Where only some lanes of a full chunk have more iterations, the code for any chunk goes on from there, if nothing
//! but the loop has had an effect; else the loop's code is made once more, with masks.

use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::values::{BasicValueEnum, IntValue, PointerValue};
use invar_codegen::analysis::lanes::Class;
use invar_ir::inst::{InstKind, Memory, Region, Value};
use invar_ir::ops::Imm;
use invar_ir::{AddressSpace, Alloc, Inst, Op, Scalar, Type};

use crate::emit::BUILT;
use crate::function::FunctionLowering;
use crate::loops::Counted;
use crate::plan::{holds_masked_loop, memories};
use crate::state::{Frame, Handover};
use crate::value::{Mask, Part, Parts};

/// Of what is handed over, in bytes: the shortest vectors are of four lanes.
const STATE_ALIGN: u32 = 32;

impl<'c, 'k> FunctionLowering<'c, 'k> {
    /// Whether a loop that lanes leave at different times is first run without masks: its code is made
    /// twice for that.
    pub fn begins_unmasked(
        &self,
        body: &'k Region,
        narrow: bool,
        bounds: &[Parts<'c>; 3],
        mask: &Mask<'c>,
    ) -> bool {
        narrow
            && *mask == Mask::All
            && self.chunk_ref().fast
            && bounds[1].is_uniform()
            && bounds[2].is_uniform()
            && !body.exits().any()
            && !holds_masked_loop(body, self.classes())
    }

    /// The iterations of a counted loop that all lanes make: while the lane that is farthest on has one. Gives
    /// the block where some lanes go on and others do not; where none does, the loop is left. Behind it
    /// stands the code for a loop that was not entered. `None` if lanes never differ.
    pub fn unmasked_iterations(
        &mut self,
        body: &'k Region,
        whole: &Counted<'_, 'c>,
        mask: &Mask<'c>,
    ) -> Option<BasicBlock<'c>> {
        let [scalar, step_scalar] = whole.scalars;
        let bounds = whole.bounds;
        // Of mathematical integers: 64 bits hold all sums of those of 32.
        let [least, most] = self.ends(scalar, &bounds[0]);
        let [upper, step] =
            [(1, scalar), (2, step_scalar)].map(|(i, s)| match bounds[i].part(0, 0) {
                Part::Scalar(v) => self.wide(s, v),
                Part::Affine { .. } | Part::Vector(_) => unreachable!("one bound for all"),
            });
        let spread = self.e.sub(most, least);
        let ty = self.e.context.i64_type().into();
        let farthest = self.cell(ty);
        self.e.store(most.into(), farthest, 8);
        let [head, some, latch, out, masked] = [
            "for.whole",
            "for.some",
            "for.differ",
            "for.together",
            "for.masked",
        ]
        .map(|name| self.e.block(name));
        let rises = self.e.compare(IntPredicate::SGT, step, self.e.i64(0));
        let goes = self.e.compare(IntPredicate::SLT, most, upper);
        let InstKind::For {
            lower,
            upper: end,
            step: by,
            ..
        } = &whole.inst.kind
        else {
            unreachable!("a `for`");
        };
        let same = self.same_iterations([*lower, *end, *by]);
        let not_entered = if same { out } else { masked };
        self.e.branch_if(self.e.and(rises, goes), head, not_entered);
        self.e.go(head);
        self.poll_sometimes();
        let now = self.read_index(whole.index, &bounds[0]);
        self.define(body.params[0], now.clone(), mask);
        let frame = Frame {
            carried: whole.carried.to_vec(),
            results: whole.results.to_vec(),
            masks: None,
            next: self.e.block("next"),
            exit: whole.exit,
        };
        self.iteration(body, frame, 1, mask.clone());
        let reached = self.e.load(ty, farthest, 8).into_int_value();
        let next = self.e.add(reached, step);
        let on = self.e.block("for.on");
        let more = self.e.compare(IntPredicate::SLT, next, upper);
        self.e.branch_if(more, on, some);
        self.e.go(on);
        self.e.store(next.into(), farthest, 8);
        self.free_cell(farthest, ty);
        let following = [now, bounds[1].clone(), bounds[2].clone()];
        let following = self.next_index(whole.index, &following, scalar, step_scalar);
        self.write(whole.index, &following);
        self.e.branch(head);
        self.e.go(some);
        if same {
            self.e.branch(out);
        } else {
            let last = self.e.sub(next, spread);
            let differ = self.e.compare(IntPredicate::SLT, last, upper);
            self.e.branch_if(differ, latch, out);
        }
        self.e.go(out);
        for (result, cells) in whole.results.iter().zip(whole.carried) {
            let parts = self.read(cells);
            self.write(result, &parts);
        }
        if let Some(masks) = whole.masks {
            self.write_mask(&masks.left, &self.lanes(mask));
        }
        self.e.branch(whole.exit);
        if same {
            self.close(&[latch, masked]);
            return None;
        }
        if let Some(any) = self.hand_over(whole, latch) {
            self.e.go(masked);
            let none = self.e.compare(IntPredicate::SGE, least, upper);
            self.e.branch_if(self.e.and(rises, none), out, any);
            return None;
        }
        self.e.go(masked);
        Some(latch)
    }

    /// Whether all threads of a threadgroup make as many iterations of a counted loop: `[lower, upper, step]`.
    fn same_iterations(&self, [lower, upper, step]: [Value; 3]) -> bool {
        let [Some(upper), Some(step)] = [upper, step].map(|v| self.analysis.constant_index(v))
        else {
            return false;
        };
        let definition = self.analysis.plan.definitions.get(&lower);
        let Some(InstKind::Op { op, imm, .. }) = definition.map(|inst| &inst.kind) else {
            return false;
        };
        let size = self
            .launch
            .grid
            .threadgroup
            .map(|n| n.get_zero_extended_constant());
        let [Some(x), Some(y), Some(z)] = size else {
            return false;
        };
        let count = match (op, imm) {
            (Op::ThreadIndexInThreadgroup, _) => x * y * z,
            (Op::ThreadPositionInThreadgroup, Imm::Dim(dim)) => [x, y, z][*dim as usize],
            (Op::ThreadIndexInSimdgroup, _) => self.analysis.simdgroup_size.into(),
            _anywhere => return false,
        };
        // Fewer iterations the later a thread begins: the first and the last one make as many.
        let iterations = |first: i128| (upper - first + step - 1).max(0) / step;
        step > 0 && iterations(0) == iterations(i128::from(count) - 1)
    }

    /// The least and the greatest of an integer's lanes, in 64 bits.
    fn ends(&self, scalar: Scalar, value: &Parts<'c>) -> [IntValue<'c>; 2] {
        let e = &self.e;
        let width = self.shape.width;
        let count = if value.is_uniform() {
            1
        } else {
            self.shape.parts() as usize
        };
        let ends = (0..count).map(|u| match value.part(0, u) {
            Part::Scalar(s) => [self.wide(scalar, s); 2],
            Part::Affine {
                base,
                stride,
                exact: true,
                ..
            } => {
                let first = self.wide(scalar, base.into());
                let last = e.add(first, e.i64((stride * i64::from(width - 1)) as u64));
                if stride < 0 {
                    [last, first]
                } else {
                    [first, last]
                }
            }
            part => {
                let vector = e.vector(part, width);
                let kind = if scalar.is_signed_integer() { 's' } else { 'u' };
                ["min", "max"].map(|which| {
                    let name = format!("llvm.vector.reduce.{kind}{which}");
                    let found = e.intrinsic(&name, &[vector.get_type().into()], &[vector.into()]);
                    self.wide(scalar, found.expect("a value"))
                })
            }
        });
        let pick = |how, a: IntValue<'c>, b: IntValue<'c>| {
            e.select(e.compare(how, a, b).into(), a.into(), b.into())
                .into_int_value()
        };
        ends.reduce(|a, b| {
            [
                pick(IntPredicate::SLT, a[0], b[0]),
                pick(IntPredicate::SGT, a[1], b[1]),
            ]
        })
        .expect("a chunk has parts")
    }

    /// An integer of at most 32 bits in 64.
    fn wide(&self, scalar: Scalar, value: BasicValueEnum<'c>) -> IntValue<'c> {
        let (b, ty) = (&self.e.builder, self.e.context.i64_type());
        let value = value.into_int_value();
        if scalar.is_signed_integer() {
            b.build_int_s_extend(value, ty, "")
        } else {
            b.build_int_z_extend(value, ty, "")
        }
        .expect(BUILT)
    }

    // ---- the iterations that are left to the code for any chunk ----

    /// The loop of a segment that full chunks may leave to the code for any chunk, which begins at `any`: nothing
    /// before it has an effect or may have another value the second time. Called where a chunk begins, of which
    /// no iterations are made yet.
    pub fn handover(&self, insts: &'k [Inst], any: BasicBlock<'c>) -> Option<Handover<'c>> {
        // What only this worker accesses holds the same as long as the loop does not name it.
        let mut loaded = Vec::new();
        let mut again = |inst: &Inst| {
            let InstKind::Load(place) = &inst.kind else {
                return self.analysis.only_computes(inst);
            };
            let object = &self.launch.objects[&place.memory];
            if !object.constant {
                loaded.push(place.memory);
            }
            (object.constant || !object.shared) && self.analysis.only_computes(inst)
        };
        let first = insts
            .iter()
            .find(|inst| !self.analysis.plan.is_hoisted(inst) && !again(inst))?;
        let InstKind::For { body, .. } = &first.kind else {
            return None;
        };
        let lanes = |v: &Value| match self.analysis.kernel.ty(*v) {
            Type::Scalar(_) | Type::Vector(..) | Type::Matrix { .. } => true,
            Type::SimdgroupMatrix { .. } | Type::Event => false,
        };
        let in_registers = |a: &Alloc| a.space == AddressSpace::Thread;
        let may = self.analysis.fast.is_masked(first)
            && self.analysis.slow.is_masked(first)
            && body.params.iter().all(lanes)
            && !names(body, &loaded)
            && !self.analysis.kernel.allocs.iter().any(in_registers);
        let e = &self.e;
        let ty = e.context.bool_type();
        may.then(|| {
            let begun = self.alloca(ty.into(), 1);
            e.store(ty.const_zero().into(), begun, 1);
            Handover {
                key: std::ptr::from_ref(first),
                any,
                begun,
                state: None,
                part: e.i32(0),
                along: self.shape.along,
                parts: self.shape.parts(),
            }
        })
    }

    /// Leaves the lanes of a full chunk that do not make as many iterations, from `latch` on, to the code for any
    /// chunk, if that can go on there. Gives where that begins.
    fn hand_over(
        &mut self,
        counted: &Counted<'_, 'c>,
        latch: BasicBlock<'c>,
    ) -> Option<BasicBlock<'c>> {
        let handover = self.segment.handover.as_ref();
        let mut handover = handover.filter(|h| h.is_of(counted))?.clone();
        let e = &self.e;
        let cells = counted.state();
        let components: u32 = cells.iter().map(|c| c.components(handover.parts)).sum();
        let bytes = self.state_bytes() as u32 * handover.parts * components;
        let state = self.alloca(e.context.i8_type().array_type(bytes).into(), STATE_ALIGN);
        e.go(latch);
        let mut at = 0;
        for (cells, value) in cells.into_iter().zip(counted.values()) {
            let parts = self.read(cells);
            for c in 0..parts.components() {
                for u in 0..handover.parts as usize {
                    let piece = match (self.analysis.slow.of(*value), parts.part(c, u)) {
                        (Class::Varying, part) => e.vector(part, self.shape.width).into(),
                        // The first lane tells a line.
                        (Class::Uniform | Class::Line(_), part) => {
                            e.first_active(&[part], &Mask::All, self.shape.width)
                        }
                    };
                    let place = e.byte_offset(state, e.i64(at));
                    e.store(piece, place, STATE_ALIGN);
                    at += self.state_bytes();
                }
            }
        }
        let yes = e.context.bool_type().const_all_ones();
        e.store(yes.into(), handover.begun, 1);
        e.branch(handover.any);
        let any = handover.any;
        handover.state = Some(state);
        self.segment.handover = Some(handover);
        Some(any)
    }

    /// The bytes of a vector of what is handed over.
    fn state_bytes(&self) -> u64 {
        u64::from(self.shape.width) * 8
    }

    /// The loop as full chunks left it, where the code is for any chunk.
    fn left_over(&self, counted: &Counted<'_, 'c>) -> Option<(&Handover<'c>, PointerValue<'c>)> {
        let handover = self.segment.handover.as_ref();
        let handover = handover.filter(|h| !self.chunk_ref().fast && h.is_of(counted))?;
        Some((handover, handover.state?))
    }

    /// Parts the ways of chunks whose lanes have made iterations of a loop before and of those that have not, which is
    /// gone on with: where the other begins.
    pub fn iterations_made(&self, counted: &Counted<'_, 'c>) -> Option<BasicBlock<'c>> {
        let (handover, _) = self.left_over(counted)?;
        let e = &self.e;
        let [begun, fresh] = ["for.begun", "for.fresh"].map(|name| e.block(name));
        let ty = e.context.bool_type().into();
        let made = e.load(ty, handover.begun, 1).into_int_value();
        e.branch_if(made, begun, fresh);
        e.go(fresh);
        Some(begun)
    }

    /// Takes over what full chunks left.
    pub fn take_over(&self, counted: &Counted<'_, 'c>) {
        let Some((handover, state)) = self.left_over(counted) else {
            return;
        };
        let (e, shape) = (&self.e, self.shape);
        let bytes = self.state_bytes();
        let first = e.mul(e.widen(handover.part), e.i64(bytes));
        let state = e.byte_offset(state, first);
        let mut component = 0;
        for cells in counted.state() {
            let mut pieces = Vec::new();
            for _ in 0..cells.components(shape.parts()) {
                let own = component * handover.parts;
                component += 1;
                for u in 0..cells.parts(shape.parts()) {
                    let at = own + u / shape.along * handover.along + u % shape.along;
                    let place = e.byte_offset(state, e.i64(u64::from(at) * bytes));
                    pieces.push(e.load(cells.piece_type(), place, STATE_ALIGN));
                }
            }
            self.write(cells, &self.raise(&pieces, cells.class));
        }
    }
}

impl<'c> Handover<'c> {
    fn is_of(&self, counted: &Counted<'_, 'c>) -> bool {
        self.key == std::ptr::from_ref(counted.inst)
    }
}

/// Whether a region names one of these memory objects.
fn names(region: &Region, objects: &[Memory]) -> bool {
    region.insts.iter().any(|inst| {
        memories(inst).iter().any(|m| objects.contains(m))
            || inst.kind.regions().iter().any(|r| names(r, objects))
    })
}
