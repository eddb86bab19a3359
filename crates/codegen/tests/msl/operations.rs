//! Every row of the op table as MSL on the CPU, on operands of every kind, against the reference machine.

use invar_conformance::metal::{self, Batch};
use invar_interp::{Arg, Dispatch, Options, run};
use invar_ir::ops::{Imm, Op, Signature};
use invar_ir::text::data::{compare, random_scalar};
use invar_ir::{
    Access, ElementType, FloatMode, KernelBuilder, Module, Place, Scalar, Type, Verified, verify,
};

use super::run_batch;

/// One full simdgroup and one of five lanes, whose last quadgroup has one.
const THREADS: u32 = 37;

/// Bits of an operand's component: numbers of everyday size, small integers, and any bits at all.
fn operand(scalar: Scalar, seed: u64, thread: u32) -> u64 {
    let any = random_scalar(Scalar::U64, seed, thread.into()).bits;
    let cut = |bits: u64| bits & (u64::MAX >> (64 - scalar.bits()));
    match (scalar, thread % 3) {
        (Scalar::Bool, _) => any & 1,
        (Scalar::F16 | Scalar::BF16 | Scalar::F32, 0) => {
            random_scalar(scalar, seed, thread.into()).bits
        }
        (_, 1) if scalar.is_integer() => cut((any % 7).wrapping_sub(2)),
        _ => cut(any),
    }
}

/// An operation and the types that it is tried with.
type Tried = (Op, Imm, Vec<Type>);

fn kernel(op: Op, imm: Imm, types: &[Type]) -> Verified {
    let mut k = KernelBuilder::new(Module::default(), "k");
    k.kernel_mut().float_mode = FloatMode::Strict;
    let params: Vec<_> = types
        .iter()
        .map(|ty| k.buffer("x", Access::Read, *ty))
        .collect();
    let result_type = op.result_type(imm, types).expect("an instance fits");
    let out = k.buffer("out", Access::Write, result_type);
    let i = k.thread_index_in_threadgroup();
    let args: Vec<_> = params
        .iter()
        .map(|p| k.load(Place::element(*p, i)))
        .collect();
    let result = k.op(op, imm, &args);
    k.store(Place::element(out, i), result);
    let module = k.finish().and_then(verify);
    module.unwrap_or_else(|e| panic!("{op} of {types:?}: {e}"))
}

fn buffers(op: Op, imm: Imm, types: &[Type]) -> Vec<Arg<'static>> {
    let mut seed = 0;
    let mut args = Vec::new();
    for ty in types {
        let scalar = ty.scalar().unwrap();
        let count = u64::from(ty.component_count());
        let mut bytes = Vec::new();
        for thread in 0..THREADS {
            for component in 0..count {
                let bits = operand(scalar, seed + component, thread);
                bytes.extend(&bits.to_le_bytes()[..scalar.size_bytes() as usize]);
            }
        }
        seed += count;
        args.push(Arg::OwnedBuffer(bytes));
    }
    let ty = op.result_type(imm, types).unwrap();
    let size = ty.scalar().unwrap().size_bytes() * u64::from(ty.component_count());
    args.push(Arg::zeros(size as usize * THREADS as usize));
    args
}

/// Whether to try everything, and as optimised code.
fn all_shapes() -> bool {
    std::env::var_os("INVAR_ALL_SHAPES").is_some_and(|v| v == "1")
}

/// What is left out: f64, which Metal does not have, and most shapes and index types whose code is made as that of
/// others. With `INVAR_ALL_SHAPES=1` nothing but f64 is, which takes minutes.
fn is_tried(op: Op, types: &[Type], result: Type) -> bool {
    let mut all = types.iter().chain([&result]);
    if all.clone().any(|ty| ty.scalar() == Some(Scalar::F64)) {
        return false;
    }
    if all_shapes() {
        return true;
    }
    let index = |ty: &Type| {
        matches!(ty, Type::Scalar(s) if s.is_integer() && !matches!(s, Scalar::I8 | Scalar::U64))
            && types[0] != *ty
    };
    let shape = |ty: &Type| match ty {
        Type::Vector(Scalar::U8 | Scalar::I64 | Scalar::F16, 3) => true,
        Type::Vector(Scalar::Bool | Scalar::BF16 | Scalar::I16 | Scalar::U16, 2) => true,
        Type::Vector(Scalar::U32 | Scalar::I32 | Scalar::F32, 4) => true,
        Type::Vector(..) => false,
        Type::Matrix { columns, rows, .. } => matches!((columns, rows), (2, 3) | (3, 2) | (2, 2)),
        Type::Scalar(_) | Type::SimdgroupMatrix { .. } | Type::Event => true,
    };
    let vectors_of_3 = || types.iter().all(|ty| *ty == Type::Vector(Scalar::F32, 3));
    let square = types.len() == 1 && types[0].component_count() == 9;
    matches!(op.row().signature, Signature::Fixed(..))
        || types.len() == 1 && types[0].component_count() == 1
        || square
        || op == Op::Cross && vectors_of_3()
        || all.all(shape) && !types.iter().skip(1).any(index)
}

#[test]
#[expect(clippy::print_stdout, reason = "a test says how much it did")]
fn a10_every_operation_gives_what_the_reference_machine_gives() {
    if let Some(reason) = metal::missing() {
        println!("skipped: all operations as MSL: {reason}");
        return;
    }
    let options = metal::options();
    let dispatch = Dispatch::linear(THREADS, THREADS);
    let mut batches: Vec<(Batch, Vec<Tried>)> = Vec::new();
    let mut missing = Vec::new();
    for op in Op::all() {
        let mut tried = 0;
        for (imm, types) in op.row().signature.instances() {
            let result = op.result_type(imm, &types).unwrap();
            if !is_tried(op, &types, result) {
                continue;
            }
            if batches.last().is_none_or(|(_, all)| all.len() >= 900) {
                batches.push(Default::default());
            }
            let (batch, all) = batches.last_mut().unwrap();
            let entry = batch
                .add(&kernel(op, imm, &types), "k", &options)
                .unwrap_or_else(|e| panic!("{op} of {types:?}: {e}"));
            batch
                .dispatch(entry, &dispatch, &buffers(op, imm, &types), 0)
                .unwrap();
            all.push((op, imm, types));
            tried += 1;
        }
        if tried == 0 {
            missing.push(op.name());
        }
    }
    let mut failures = Vec::new();
    let mut compared = 0;
    for (number, (batch, all)) in batches.iter().enumerate() {
        let outcomes = run_batch(batch, &format!("operations-{number}"), all_shapes());
        for ((op, imm, types), outcome) in all.iter().zip(outcomes) {
            let mut expected = buffers(*op, *imm, types);
            let module = kernel(*op, *imm, types);
            run(
                &module,
                "k",
                &dispatch,
                &mut expected,
                &Options::default(),
                &mut [],
            )
            .unwrap();
            let name = format!("{op} {imm:?} of {types:?}");
            let element = ElementType::Value(op.result_type(*imm, types).unwrap());
            match outcome {
                Err(error) => failures.push(format!("{name}: {error}")),
                Ok(after) => {
                    let last = types.len();
                    let exact = invar_ir::text::case::Tolerance::Exact;
                    let same = compare(
                        exact,
                        expected[last].bytes(),
                        after[last].bytes(),
                        &element,
                        &[],
                    );
                    if let Err(difference) = same {
                        failures.push(format!("{name}: {difference}"));
                    }
                }
            }
            compared += 1;
        }
    }
    println!("{compared} instances of the rows");
    assert!(
        failures.is_empty(),
        "{} of {compared} differ:\n{}",
        failures.len(),
        failures[..failures.len().min(40)].join("\n")
    );
    assert!(missing.is_empty(), "rows that are not tried: {missing:?}");
}
