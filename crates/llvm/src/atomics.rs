//! Atomics (T1 to T3), made lane by lane in lane order.
//!
//! A device atomic orders for the whole device whatever its scope: more than asked for is allowed.
//! A threadgroup runs on one worker, which alone reaches its threadgroup memory, and that in program
//! order: there plain loads and stores are indivisible for all who could see a difference.

use inkwell::llvm_sys::core::LLVMBuildAtomicRMW;
use inkwell::llvm_sys::{LLVMAtomicOrdering, LLVMAtomicRMWBinOp};
use inkwell::types::BasicTypeEnum;
use inkwell::values::{
    AsValueRef, BasicValue, BasicValueEnum, InstructionValue, IntValue, PointerValue, VectorValue,
};
use inkwell::{AtomicOrdering, AtomicRMWBinOp, IntPredicate};
use invar_ir::{AtomicOp, Op, Order, Scalar};

use crate::emit::{BUILT, Emit};
use crate::ops::eval;
use crate::tables::Role;

/// An atomic to emit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Atomic {
    pub op: AtomicOp,
    /// The type of the location: 32 or 64 bits wide.
    pub scalar: Scalar,
    pub order: Order,
    /// Only the worker that runs this reaches the location: it is threadgroup memory.
    pub own: bool,
    /// Somebody uses what it gives.
    pub used: bool,
}

/// Makes an atomic for each lane whose pointer is not null, in lane order. Pointers are a
/// `<n x ptr>` of at most 64 lanes, arguments `<n x T>`. Gives what was there before, 0 in lanes
/// without a pointer, and for a compare-exchange whether it exchanged; if it is not `used`, zeros.
pub(crate) fn atomic<'c>(
    e: &Emit<'c>,
    what: Atomic,
    pointers: VectorValue<'c>,
    args: &[VectorValue<'c>],
) -> (VectorValue<'c>, Option<VectorValue<'c>>) {
    let lanes = pointers.get_type().get_size();
    let a = Atomics { e, what, lanes };
    let old_type = e.vector_type(what.scalar, lanes);
    let zero = old_type.const_zero();
    let no = e.vector_type(Scalar::Bool, lanes).const_zero();
    let is_exchange = what.op == AtomicOp::CompareExchange;
    if !what.used {
        match reduction(what.op, what.scalar) {
            Some(reduction) => a.together(reduction, pointers, args[0]),
            None => a.one_by_one(pointers, args, None),
        }
        return (zero, is_exchange.then_some(no));
    }
    let results = Results {
        old: e.table(Role::Old, old_type.into()),
        exchanged: is_exchange.then(|| e.table(Role::Exchanged, a.bytes().into())),
    };
    e.builder.build_store(results.old, zero).expect(BUILT);
    if let Some(exchanged) = results.exchanged {
        let none = a.bytes().const_zero();
        e.builder.build_store(exchanged, none).expect(BUILT);
    }
    a.one_by_one(pointers, args, Some(&results));
    let load = |ty: BasicTypeEnum<'c>, from| {
        let loaded = e.builder.build_load(ty, from, "").expect(BUILT);
        loaded.into_vector_value()
    };
    let exchanged = results.exchanged.map(|from| {
        let bytes = load(a.bytes().into(), from);
        let zero = a.bytes().const_zero();
        let is = e
            .builder
            .build_int_compare(IntPredicate::NE, bytes, zero, "");
        is.expect(BUILT)
    });
    (load(old_type.into(), results.old), exchanged)
}

/// Makes an atomic whose results are not used for each lane, at its pointer, one after another.
pub(crate) fn atomic_of_each<'c>(
    e: &Emit<'c>,
    what: Atomic,
    pointers: &[PointerValue<'c>],
    args: &[VectorValue<'c>],
) {
    debug_assert!(!what.used, "lanes leave no results");
    let lanes = pointers.len() as u32;
    let a = Atomics { e, what, lanes };
    for (lane, pointer) in (0..lanes).zip(pointers) {
        let lane = e.i32(lane);
        let args: Vec<_> = args
            .iter()
            .map(|arg| {
                e.builder
                    .build_extract_element(*arg, lane, "")
                    .expect(BUILT)
            })
            .collect();
        a.one(*pointer, &args);
    }
}

/// Makes one atomic for all lanes at one location, if the operation allows and the results are not used.
pub(crate) fn atomic_of_all<'c>(
    e: &Emit<'c>,
    what: Atomic,
    pointer: PointerValue<'c>,
    args: &[VectorValue<'c>],
) -> bool {
    let Some((combine, _)) = reduction(what.op, what.scalar).filter(|_| !what.used) else {
        return false;
    };
    let ty = args[0].get_type();
    let lanes = ty.get_size();
    let total = e.intrinsic(combine, &[ty.into()], &[args[0].into()]);
    let a = Atomics { e, what, lanes };
    a.one(pointer, &[total.expect("an intrinsic with a result")]);
    true
}

/// Where lanes leave their results.
struct Results<'c> {
    old: PointerValue<'c>,
    exchanged: Option<PointerValue<'c>>,
}

/// The intrinsic that combines the arguments of lanes, and the number that changes nothing, for
/// operations that may as well be done once with all arguments combined: in T2's order they then
/// stand next to each other.
fn reduction(op: AtomicOp, scalar: Scalar) -> Option<(&'static str, u64)> {
    if scalar.is_float() {
        return None;
    }
    let signed = scalar.is_signed_integer();
    let ones = u64::MAX >> (64 - scalar.bits());
    let top = 1 << (scalar.bits() - 1);
    match op {
        AtomicOp::Add | AtomicOp::Sub => Some(("llvm.vector.reduce.add", 0)),
        AtomicOp::Min if signed => Some(("llvm.vector.reduce.smin", ones ^ top)),
        AtomicOp::Min => Some(("llvm.vector.reduce.umin", ones)),
        AtomicOp::Max if signed => Some(("llvm.vector.reduce.smax", top)),
        AtomicOp::Max => Some(("llvm.vector.reduce.umax", 0)),
        AtomicOp::And => Some(("llvm.vector.reduce.and", ones)),
        AtomicOp::Or => Some(("llvm.vector.reduce.or", 0)),
        AtomicOp::Xor => Some(("llvm.vector.reduce.xor", 0)),
        AtomicOp::Load | AtomicOp::Store | AtomicOp::Exchange | AtomicOp::CompareExchange => None,
    }
}

struct Atomics<'e, 'c> {
    e: &'e Emit<'c>,
    what: Atomic,
    lanes: u32,
}

impl<'c> Atomics<'_, 'c> {
    fn bytes(&self) -> inkwell::types::VectorType<'c> {
        self.e.context.i8_type().vec_type(self.lanes)
    }

    fn block(&self, name: &str) -> inkwell::basic_block::BasicBlock<'c> {
        self.e
            .context
            .append_basic_block(self.e.function.get(), name)
    }

    fn present(&self, pointers: VectorValue<'c>) -> VectorValue<'c> {
        let null = pointers.get_type().const_zero();
        let present = self
            .e
            .builder
            .build_int_compare(IntPredicate::NE, pointers, null, "");
        present.expect(BUILT)
    }

    /// A mask as 64 bits, lane 0 lowest.
    fn mask_word(&self, mask: VectorValue<'c>) -> IntValue<'c> {
        let b = &self.e.builder;
        let bits = b
            .build_bit_cast(mask, self.e.int_type(self.lanes), "")
            .expect(BUILT);
        let word = self.e.context.i64_type();
        let bits = bits.into_int_value();
        b.build_int_z_extend_or_bit_cast(bits, word, "")
            .expect(BUILT)
    }

    /// One atomic for all lanes if they have the same location, else one after another.
    fn together(
        &self,
        (combine, identity): (&str, u64),
        pointers: VectorValue<'c>,
        arg: VectorValue<'c>,
    ) {
        let e = self.e;
        let b = &e.builder;
        let present = self.present(pointers);
        let word = self.mask_word(present);
        let [some, same_block, different, done] =
            ["some", "same", "different", "done"].map(|name| self.block(name));
        let none = b
            .build_int_compare(IntPredicate::EQ, word, e.i64(0), "")
            .expect(BUILT);
        b.build_conditional_branch(none, done, some).expect(BUILT);

        b.position_at_end(some);
        let table = e.table(Role::Pointers, pointers.get_type().into());
        b.build_store(table, pointers).expect(BUILT);
        let pointer = self.lane_of(table, self.lowest(word), e.pointer_type().into());
        let pointer = pointer.into_pointer_value();
        let all = e.splat(pointer.into(), self.lanes);
        let other = b
            .build_int_compare(IntPredicate::NE, pointers, all, "")
            .expect(BUILT);
        let other = self.mask_word(b.build_and(other, present, "").expect(BUILT));
        let same = b
            .build_int_compare(IntPredicate::EQ, other, e.i64(0), "")
            .expect(BUILT);
        b.build_conditional_branch(same, same_block, different)
            .expect(BUILT);

        b.position_at_end(same_block);
        let identity = e.splat(e.constant(self.what.scalar, identity), self.lanes);
        let args = b.build_select(present, arg, identity, "").expect(BUILT);
        let total = e.intrinsic(combine, &[arg.get_type().into()], &[args]);
        self.one(pointer, &[total.expect("an intrinsic with a result")]);
        b.build_unconditional_branch(done).expect(BUILT);

        b.position_at_end(different);
        self.one_by_one(pointers, &[arg], None);
        b.build_unconditional_branch(done).expect(BUILT);
        b.position_at_end(done);
    }

    /// A loop over the lanes that have a pointer.
    fn one_by_one(
        &self,
        pointers: VectorValue<'c>,
        args: &[VectorValue<'c>],
        results: Option<&Results<'c>>,
    ) {
        let e = self.e;
        let b = &e.builder;
        let word = self.mask_word(self.present(pointers));
        let table = e.table(Role::Pointers, pointers.get_type().into());
        b.build_store(table, pointers).expect(BUILT);
        let arguments: Vec<_> = args
            .iter()
            .zip(0..)
            .map(|(arg, number)| {
                let place = e.table(Role::Argument(number), arg.get_type().into());
                b.build_store(place, *arg).expect(BUILT);
                place
            })
            .collect();
        let before = b.get_insert_block().expect("a block");
        let (lane_block, done) = (self.block("lane"), self.block("lanes_done"));
        let none = b
            .build_int_compare(IntPredicate::EQ, word, e.i64(0), "")
            .expect(BUILT);
        b.build_conditional_branch(none, done, lane_block)
            .expect(BUILT);

        b.position_at_end(lane_block);
        let rest = b.build_phi(e.context.i64_type(), "").expect(BUILT);
        let bits = rest.as_basic_value().into_int_value();
        let lane = self.lowest(bits);
        let pointer = self.lane_of(table, lane, e.pointer_type().into());
        let scalar = e.scalar_type(self.what.scalar);
        let args: Vec<_> = arguments
            .iter()
            .map(|place| self.lane_of(*place, lane, scalar))
            .collect();
        let (old, exchanged) = self.one(pointer.into_pointer_value(), &args);
        if let Some(results) = results {
            if let Some(old) = old {
                let size = self.what.scalar.size_bytes();
                let place = self.lane_address(results.old, lane, size);
                b.build_store(place, old).expect(BUILT);
            }
            if let (Some(place), Some(exchanged)) = (results.exchanged, exchanged) {
                let place = self.lane_address(place, lane, 1);
                let byte = e.context.i8_type();
                let exchanged = b.build_int_z_extend(exchanged, byte, "").expect(BUILT);
                b.build_store(place, exchanged).expect(BUILT);
            }
        }
        let less = b.build_int_sub(bits, e.i64(1), "").expect(BUILT);
        let next = b.build_and(bits, less, "").expect(BUILT);
        let end = b.get_insert_block().expect("a block");
        rest.add_incoming(&[(&word, before), (&next, end)]);
        let none = b
            .build_int_compare(IntPredicate::EQ, next, e.i64(0), "")
            .expect(BUILT);
        b.build_conditional_branch(none, done, lane_block)
            .expect(BUILT);
        b.position_at_end(done);
    }

    /// The lowest bit of a word that has one.
    fn lowest(&self, word: IntValue<'c>) -> IntValue<'c> {
        let has_one = self.e.context.bool_type().const_all_ones();
        let ty = self.e.context.i64_type();
        let args = [word.into(), has_one.into()];
        let found = self.e.intrinsic("llvm.cttz", &[ty.into()], &args);
        found.expect("an intrinsic with a result").into_int_value()
    }

    fn lane_address(
        &self,
        place: PointerValue<'c>,
        lane: IntValue<'c>,
        size: u64,
    ) -> PointerValue<'c> {
        let bytes = self.e.builder.build_int_mul(lane, self.e.i64(size), "");
        self.e.byte_offset(place, bytes.expect(BUILT))
    }

    /// A lane of a vector in memory.
    fn lane_of(
        &self,
        place: PointerValue<'c>,
        lane: IntValue<'c>,
        ty: BasicTypeEnum<'c>,
    ) -> BasicValueEnum<'c> {
        let size = match ty {
            BasicTypeEnum::PointerType(_) => 8,
            _ => self.what.scalar.size_bytes(),
        };
        let place = self.lane_address(place, lane, size);
        self.e.builder.build_load(ty, place, "").expect(BUILT)
    }

    /// One atomic: what was there, if it says, and whether a compare-exchange exchanged.
    fn one(
        &self,
        pointer: PointerValue<'c>,
        args: &[BasicValueEnum<'c>],
    ) -> (Option<BasicValueEnum<'c>>, Option<IntValue<'c>>) {
        if self.what.own {
            self.own(pointer, args)
        } else {
            self.shared(pointer, args)
        }
    }

    /// On memory that no other thread reaches.
    fn own(
        &self,
        pointer: PointerValue<'c>,
        args: &[BasicValueEnum<'c>],
    ) -> (Option<BasicValueEnum<'c>>, Option<IntValue<'c>>) {
        let b = &self.e.builder;
        let scalar = self.what.scalar;
        let load = || {
            b.build_load(self.e.scalar_type(scalar), pointer, "")
                .expect(BUILT)
        };
        let store = |value: BasicValueEnum<'c>| b.build_store(pointer, value).expect(BUILT);
        let combine = |op| {
            let old = load();
            store(eval(self.e, op, scalar, scalar, &[old, args[0]]));
            (Some(old), None)
        };
        match self.what.op {
            AtomicOp::Load => (Some(load()), None),
            AtomicOp::Store => {
                store(args[0]);
                (None, None)
            }
            AtomicOp::Exchange => {
                let old = load();
                store(args[0]);
                (Some(old), None)
            }
            AtomicOp::CompareExchange => {
                let old = load();
                let [now, expected] = [old, args[0]].map(BasicValueEnum::into_int_value);
                let same = b.build_int_compare(IntPredicate::EQ, now, expected, "");
                let same = same.expect(BUILT);
                store(b.build_select(same, args[1], old, "").expect(BUILT));
                (Some(old), Some(same))
            }
            AtomicOp::Add => combine(Op::Add),
            AtomicOp::Sub => combine(Op::Sub),
            AtomicOp::Min => combine(Op::Min),
            AtomicOp::Max => combine(Op::Max),
            AtomicOp::And => combine(Op::And),
            AtomicOp::Or => combine(Op::Or),
            AtomicOp::Xor => combine(Op::Xor),
        }
    }

    /// On memory that other workers reach too.
    fn shared(
        &self,
        pointer: PointerValue<'c>,
        args: &[BasicValueEnum<'c>],
    ) -> (Option<BasicValueEnum<'c>>, Option<IntValue<'c>>) {
        let b = &self.e.builder;
        let scalar = self.what.scalar;
        let order = self.what.order;
        let aligned = |inst: InstructionValue<'c>, order| {
            let size = scalar.size_bytes() as u32;
            inst.set_alignment(size).expect("a power of two");
            inst.set_atomic_ordering(order)
                .expect("an order of a load or store");
        };
        let signed = scalar.is_signed_integer();
        let rmw = |op| (Some(self.read_modify_write(op, pointer, args[0])), None);
        match self.what.op {
            AtomicOp::Load => {
                let value = b
                    .build_load(self.e.scalar_type(scalar), pointer, "")
                    .expect(BUILT);
                let inst = value.as_instruction_value().expect("a load");
                aligned(inst, load_order(order));
                (Some(value), None)
            }
            AtomicOp::Store => {
                let inst = b.build_store(pointer, args[0]).expect(BUILT);
                aligned(inst, store_order(order));
                (None, None)
            }
            AtomicOp::CompareExchange => {
                let failure = load_order(order);
                let pair = b.build_cmpxchg(pointer, args[0], args[1], full_order(order), failure);
                let pair = pair.expect(BUILT);
                let part = |k| b.build_extract_value(pair, k, "").expect(BUILT);
                (Some(part(0)), Some(part(1).into_int_value()))
            }
            AtomicOp::Exchange => rmw(AtomicRMWBinOp::Xchg),
            AtomicOp::Add => rmw(AtomicRMWBinOp::Add),
            AtomicOp::Sub => rmw(AtomicRMWBinOp::Sub),
            AtomicOp::Min if signed => rmw(AtomicRMWBinOp::Min),
            AtomicOp::Min => rmw(AtomicRMWBinOp::UMin),
            AtomicOp::Max if signed => rmw(AtomicRMWBinOp::Max),
            AtomicOp::Max => rmw(AtomicRMWBinOp::UMax),
            AtomicOp::And => rmw(AtomicRMWBinOp::And),
            AtomicOp::Or => rmw(AtomicRMWBinOp::Or),
            AtomicOp::Xor => rmw(AtomicRMWBinOp::Xor),
        }
    }

    fn read_modify_write(
        &self,
        op: AtomicRMWBinOp,
        pointer: PointerValue<'c>,
        arg: BasicValueEnum<'c>,
    ) -> BasicValueEnum<'c> {
        let b = &self.e.builder;
        let order = full_order(self.what.order);
        let BasicValueEnum::FloatValue(number) = arg else {
            let arg = arg.into_int_value();
            return b
                .build_atomicrmw(op, pointer, arg, order)
                .expect(BUILT)
                .into();
        };
        if op == AtomicRMWBinOp::Add {
            // SAFETY: the builder stands in a block, the pointer and the number are values of its
            // context, and `fadd` takes a float.
            return unsafe {
                BasicValueEnum::new(LLVMBuildAtomicRMW(
                    b.as_mut_ptr(),
                    LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpFAdd,
                    pointer.as_value_ref(),
                    number.as_value_ref(),
                    raw_order(self.what.order),
                    0,
                ))
            };
        }
        // Of floats else only the exchange is left: of their bits.
        let bits = self.e.int_type(self.what.scalar.bits());
        let arg = b.build_bit_cast(number, bits, "").expect(BUILT);
        let old = b.build_atomicrmw(op, pointer, arg.into_int_value(), order);
        b.build_bit_cast(old.expect(BUILT), number.get_type(), "")
            .expect(BUILT)
    }
}

fn full_order(order: Order) -> AtomicOrdering {
    match order {
        Order::Relaxed => AtomicOrdering::Monotonic,
        Order::Acquire => AtomicOrdering::Acquire,
        Order::Release => AtomicOrdering::Release,
        Order::AcqRel => AtomicOrdering::AcquireRelease,
        Order::SeqCst => AtomicOrdering::SequentiallyConsistent,
    }
}

/// The part of an order that a load has, that of a compare-exchange which fails too (T2).
fn load_order(order: Order) -> AtomicOrdering {
    match order {
        Order::Relaxed | Order::Release => AtomicOrdering::Monotonic,
        Order::Acquire | Order::AcqRel => AtomicOrdering::Acquire,
        Order::SeqCst => AtomicOrdering::SequentiallyConsistent,
    }
}

/// The part of an order that a store has.
fn store_order(order: Order) -> AtomicOrdering {
    match order {
        Order::Relaxed | Order::Acquire => AtomicOrdering::Monotonic,
        Order::Release | Order::AcqRel => AtomicOrdering::Release,
        Order::SeqCst => AtomicOrdering::SequentiallyConsistent,
    }
}

fn raw_order(order: Order) -> LLVMAtomicOrdering {
    match order {
        Order::Relaxed => LLVMAtomicOrdering::LLVMAtomicOrderingMonotonic,
        Order::Acquire => LLVMAtomicOrdering::LLVMAtomicOrderingAcquire,
        Order::Release => LLVMAtomicOrdering::LLVMAtomicOrderingRelease,
        Order::AcqRel => LLVMAtomicOrdering::LLVMAtomicOrderingAcquireRelease,
        Order::SeqCst => LLVMAtomicOrdering::LLVMAtomicOrderingSequentiallyConsistent,
    }
}

#[cfg(test)]
mod tests {
    //! Every atomic, in every order, against lanes that act one after another; and several threads
    //! at once.

    use invar_ir::ops::Meaning;
    use invar_ir::text::data::random_scalar;

    use super::*;
    use crate::test_jit::{self, Jit, Processor};

    const LANES: u32 = 16;
    /// Elements that lanes act on.
    const PLACES: usize = 5;
    /// What stands for no place.
    const NOWHERE: u64 = 99;

    fn cases() -> Vec<Atomic> {
        let mut cases = Vec::new();
        let floats = [
            AtomicOp::Load,
            AtomicOp::Store,
            AtomicOp::Exchange,
            AtomicOp::Add,
        ];
        for scalar in [
            Scalar::I32,
            Scalar::U32,
            Scalar::I64,
            Scalar::U64,
            Scalar::F32,
            Scalar::F64,
        ] {
            for op in AtomicOp::ALL {
                if scalar.is_float() && !floats.contains(&op) {
                    continue;
                }
                for order in Order::ALL {
                    for (own, used) in [(false, false), (false, true), (true, false), (true, true)]
                    {
                        cases.push(Atomic {
                            op,
                            scalar,
                            order,
                            own,
                            used,
                        });
                    }
                }
            }
        }
        cases
    }

    /// Builds a function of memory, indices (u64), two arguments, old values, exchanges.
    fn build<'c>(jit: &mut Jit<'c>, name: &str, case: Atomic) {
        jit.function(name, 6, |e, pointers| {
            let load = |k: usize, scalar| {
                Jit::load(e, pointers[k], scalar, Some(LANES)).into_vector_value()
            };
            let index = load(1, Scalar::U64);
            let b = &e.builder;
            let size = e.splat(e.i64(case.scalar.size_bytes()).into(), LANES);
            let offset = b.build_int_mul(index, size, "").expect(BUILT);
            let integers = e.context.i64_type();
            let base = b.build_ptr_to_int(pointers[0], integers, "").expect(BUILT);
            let address = b
                .build_int_add(e.splat(base.into(), LANES), offset, "")
                .expect(BUILT);
            let nowhere = e.splat(e.i64(NOWHERE).into(), LANES);
            let off = b
                .build_int_compare(IntPredicate::EQ, index, nowhere, "")
                .expect(BUILT);
            let zero = address.get_type().const_zero();
            let address = b
                .build_select(off, zero, address, "")
                .expect(BUILT)
                .into_vector_value();
            let ty = crate::emit::vector_of(e.pointer_type().into(), LANES);
            let places = b.build_int_to_ptr(address, ty, "").expect(BUILT);
            let args: Vec<_> = (0..case.op.operand_count())
                .map(|k| load(2 + k, case.scalar))
                .collect();
            let (old, exchanged) = atomic(e, case, places, &args);
            Jit::store(e, pointers[4], case.scalar, old.into());
            if let Some(exchanged) = exchanged {
                Jit::store(e, pointers[5], Scalar::Bool, exchanged.into());
            }
        });
    }

    /// What one lane after another does.
    fn expected(
        case: Atomic,
        memory: &mut [u64],
        indices: &[u64],
        args: [&[u64]; 2],
    ) -> (Vec<u64>, Vec<u64>) {
        let (mut olds, mut exchanges) = (vec![0; LANES as usize], vec![0; LANES as usize]);
        for lane in 0..LANES as usize {
            if indices[lane] == NOWHERE {
                continue;
            }
            let place = &mut memory[indices[lane] as usize];
            let old = *place;
            let combined = |op: Op| {
                let Meaning::Eval(evaluator) = op.row().meaning else {
                    unreachable!("a basic operation")
                };
                let mut out = [0];
                let args: [&[u64]; 2] = [&[old], &args[0][lane..=lane]];
                evaluator(case.scalar, case.scalar, &args, &mut out);
                out[0]
            };
            *place = match case.op {
                AtomicOp::Load => old,
                AtomicOp::Store | AtomicOp::Exchange => args[0][lane],
                AtomicOp::CompareExchange if old == args[0][lane] => {
                    exchanges[lane] = 1;
                    args[1][lane]
                }
                AtomicOp::CompareExchange => old,
                AtomicOp::Add => combined(Op::Add),
                AtomicOp::Sub => combined(Op::Sub),
                AtomicOp::Min => combined(Op::Min),
                AtomicOp::Max => combined(Op::Max),
                AtomicOp::And => combined(Op::And),
                AtomicOp::Or => combined(Op::Or),
                AtomicOp::Xor => combined(Op::Xor),
            };
            if case.op != AtomicOp::Store {
                olds[lane] = old;
            }
        }
        if !case.used {
            olds.fill(0);
            exchanges.fill(0);
        }
        (olds, exchanges)
    }

    fn check(processor: &Processor) {
        let cases = cases();
        let context = test_jit::context();
        let mut jit = Jit::new(&context, processor);
        for (i, case) in cases.iter().enumerate() {
            build(&mut jit, &format!("f{i}"), *case);
        }
        let program = jit.finish();
        for (i, case) in cases.iter().enumerate() {
            let f = program.function(&format!("f{i}"));
            for round in 0..12 {
                let number = |seed: u64, k| random_scalar(Scalar::U64, seed, k).bits >> 7;
                let indices: Vec<u64> = (0..LANES.into())
                    .map(|k| match round % 4 {
                        // All in one place; some of them; none; anywhere.
                        0 => 3,
                        1 if number(round, k) % 2 == 0 => 2,
                        1 | 2 => NOWHERE,
                        _ => [0, 1, 2, 3, 4, NOWHERE][(number(round, k) % 6) as usize],
                    })
                    .collect();
                // Few different values, so that some compare equal.
                let value = |seed, k| match case.scalar {
                    Scalar::F32 | Scalar::F64 => random_scalar(case.scalar, seed, k).bits,
                    _ if case.op == AtomicOp::CompareExchange => number(seed, k) % 2,
                    _ => number(seed, k) & (u64::MAX >> (64 - case.scalar.bits())),
                };
                let args = [1, 2].map(|seed| -> Vec<u64> {
                    (0..LANES.into())
                        .map(|k| value(100 * seed + round, k))
                        .collect()
                });
                let mut memory: Vec<u64> =
                    (0..PLACES as u64).map(|k| value(7 + round, k)).collect();
                let mut bytes = [
                    test_jit::bytes(&memory, case.scalar),
                    test_jit::bytes(&indices, Scalar::U64),
                    test_jit::bytes(&args[0], case.scalar),
                    test_jit::bytes(&args[1], case.scalar),
                    vec![0xff; 8 * LANES as usize],
                    vec![0; LANES as usize],
                ];
                let mut slices: Vec<&mut [u8]> = bytes.iter_mut().map(Vec::as_mut_slice).collect();
                f.call(&mut slices);
                let (olds, exchanges) =
                    expected(*case, &mut memory, &indices, [&args[0], &args[1]]);
                assert_eq!(
                    test_jit::scalars(&bytes[0], case.scalar),
                    memory,
                    "{case:?} {round}"
                );
                let found = test_jit::scalars(&bytes[4], case.scalar);
                assert_eq!(found[..LANES as usize], olds, "{case:?} {round} old");
                let found = test_jit::scalars(&bytes[5], Scalar::Bool);
                assert_eq!(found, exchanges, "{case:?} {round} exchanged");
            }
        }
    }

    #[test]
    fn lanes_act_in_order_on_this_processor() {
        check(&test_jit::native());
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn lanes_act_in_order_on_any_x86_64() {
        check(&test_jit::baseline());
    }

    /// T3: every shared atomic is one indivisible instruction of the order asked for, and one of a
    /// threadgroup's own memory is none.
    #[test]
    fn t3_atomics_have_the_order_asked_for() {
        let processor = test_jit::native();
        for case in cases() {
            let context = test_jit::context();
            let mut jit = Jit::new(&context, &processor);
            build(&mut jit, "f", case);
            let text = jit.text();
            let order = match case.order {
                Order::Relaxed => "monotonic",
                Order::Acquire => "acquire",
                Order::Release => "release",
                Order::AcqRel => "acq_rel",
                Order::SeqCst => "seq_cst",
            };
            let [loads, stores] = [
                ["release", "acq_rel"].contains(&order),
                ["acquire", "acq_rel"].contains(&order),
            ];
            let found = match case.op {
                _ if case.own => !text.contains("atomic") && !text.contains("cmpxchg"),
                // Orders that the verifier keeps out.
                AtomicOp::Load if loads => true,
                AtomicOp::Store if stores => true,
                AtomicOp::Load => text.contains("load atomic") && text.contains(order),
                AtomicOp::Store => text.contains("store atomic") && text.contains(order),
                AtomicOp::CompareExchange => {
                    let failure = match case.order {
                        Order::Relaxed | Order::Release => "monotonic",
                        Order::Acquire | Order::AcqRel => "acquire",
                        Order::SeqCst => "seq_cst",
                    };
                    text.contains("cmpxchg") && text.contains(&format!("{order} {failure}"))
                }
                AtomicOp::Exchange
                | AtomicOp::Add
                | AtomicOp::Sub
                | AtomicOp::Min
                | AtomicOp::Max
                | AtomicOp::And
                | AtomicOp::Or
                | AtomicOp::Xor => text.contains("atomicrmw") && text.contains(order),
            };
            assert!(found, "{case:?} makes {text}");
            assert!(!text.contains("singlethread"), "{case:?}");
        }
    }

    /// T2: no addition of any thread is lost, and no two see the same old value.
    #[test]
    fn t2_read_modify_writes_of_threads_are_indivisible() {
        let processor = test_jit::native();
        let context = test_jit::context();
        let mut jit = Jit::new(&context, &processor);
        let case = Atomic {
            op: AtomicOp::Add,
            scalar: Scalar::U32,
            order: Order::Relaxed,
            own: false,
            used: true,
        };
        build(&mut jit, "tickets", case);
        build(
            &mut jit,
            "counter",
            Atomic {
                used: false,
                ..case
            },
        );
        let program = jit.finish();
        let rounds = 100_000;
        let start = std::sync::Barrier::new(2);
        for name in ["tickets", "counter"] {
            let f = program.function(name);
            let counter = std::sync::atomic::AtomicU32::new(0);
            let work = || {
                let mut seen = Vec::new();
                let mut bytes = [
                    test_jit::bytes(&[0; LANES as usize], Scalar::U64),
                    test_jit::bytes(&[1; LANES as usize], Scalar::U32),
                    vec![0; 8],
                    vec![0; 4 * LANES as usize],
                    vec![0; 8],
                ];
                start.wait();
                for _ in 0..rounds {
                    let mut pointers = vec![counter.as_ptr().cast::<u8>()];
                    pointers.extend(bytes.iter_mut().map(|m| m.as_mut_ptr()));
                    f.call_at(&pointers);
                    seen.extend(test_jit::scalars(&bytes[3], Scalar::U32));
                }
                seen
            };
            let mut seen = std::thread::scope(|scope| {
                let threads = [scope.spawn(work), scope.spawn(work)];
                let lists = threads.map(|t| t.join().expect("no panic"));
                lists.concat()
            });
            let total = 2 * rounds * LANES;
            assert_eq!(counter.into_inner(), total, "{name}");
            if name == "tickets" {
                seen.sort_unstable();
                assert!(seen.into_iter().eq((0..total).map(u64::from)), "old values");
            }
        }
    }
}
