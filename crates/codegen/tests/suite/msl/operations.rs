//! Every row of the op table as MSL on the CPU, on operands of every kind, against the reference machine.

use invar_conformance::metal::{self, Batch, Outcome};
use invar_interp::{Arg, Dispatch, Options, run};
use invar_ir::ops::{Imm, Op, Signature};
use invar_ir::text::case::Tolerance;
use invar_ir::text::data::{compare, random_scalar};
use invar_ir::{
    Access, ElementType, FloatMode, KernelBuilder, Module, Place, Scalar, Type, Verified, verify,
};

use super::{can_run, run_batch};

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

/// As [`operand`], but floats are from 1/2 to 2: functions are far from infinity there, and so are sums and products
/// over a simdgroup, whatever their order.
fn operand_near_one(scalar: Scalar, seed: u64, thread: u32) -> u64 {
    let (one, fraction_bits) = match scalar {
        Scalar::F32 => (0x3f80_0000, 23),
        Scalar::F16 => (0x3c00, 10),
        Scalar::BF16 => (0x3f80, 7),
        _no_float_of_metal => return operand(scalar, seed, thread),
    };
    let any = random_scalar(Scalar::U64, seed, thread.into()).bits;
    let below_one = (any >> 63) << fraction_bits;
    one - below_one + any % (1 << fraction_bits)
}

/// How the rows are tried.
struct Trial {
    mode: FloatMode,
    /// Bits of an operand's component, by its type, its number and the thread.
    operand: fn(Scalar, u64, u32) -> u64,
    /// How near results must be to what the reference machine makes in `strict`.
    tolerance: fn(Scalar) -> Tolerance,
}

/// Every operation is as the op table has it.
const STRICT: Trial = Trial {
    mode: FloatMode::Strict,
    operand,
    tolerance: |_| Tolerance::Exact,
};

/// The device may take its own functions and its own order of sums and products.
const FAST: Trial = Trial {
    mode: FloatMode::Fast,
    operand: operand_near_one,
    tolerance: |scalar| {
        let share = match scalar {
            Scalar::F16 => 2f64.powi(-7),
            Scalar::BF16 => 2f64.powi(-4),
            _ => 2f64.powi(-18),
        };
        Tolerance::Within {
            abs: share,
            rel: share,
        }
    },
};

/// An operation and the types that it is tried with.
type Tried = (Op, Imm, Vec<Type>);

fn kernel(mode: FloatMode, op: Op, imm: Imm, types: &[Type]) -> Verified {
    let mut k = KernelBuilder::new(Module::default(), "k");
    k.kernel_mut().float_mode = mode;
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

fn buffers(trial: &Trial, op: Op, imm: Imm, types: &[Type]) -> Vec<Arg<'static>> {
    let mut seed = 0;
    let mut args = Vec::new();
    for ty in types {
        let scalar = ty.scalar().unwrap();
        let count = u64::from(ty.component_count());
        let mut bytes = Vec::new();
        for thread in 0..THREADS {
            for component in 0..count {
                let bits = (trial.operand)(scalar, seed + component, thread);
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

/// Tries the instances of every row that are chosen: clang takes them, and they give what the reference machine gives.
/// Gives how many there were, and the rows without any.
fn try_rows(
    trial: &Trial,
    folder: &str,
    is_chosen: fn(Op, &[Type], Type) -> bool,
) -> (usize, Vec<&'static str>) {
    let options = metal::options();
    let dispatch = Dispatch::linear(THREADS, THREADS);
    let mut batches: Vec<(Batch, Vec<Tried>)> = Vec::new();
    let mut missing = Vec::new();
    for op in Op::all() {
        let mut tried = 0;
        for (imm, types) in op.row().signature.instances() {
            let result = op.result_type(imm, &types).unwrap();
            if !is_chosen(op, &types, result) {
                continue;
            }
            if batches.last().is_none_or(|(_, all)| all.len() >= 900) {
                batches.push(Default::default());
            }
            let (batch, all) = batches.last_mut().unwrap();
            let entry = batch
                .add(&kernel(trial.mode, op, imm, &types), "k", &options)
                .unwrap_or_else(|e| panic!("{op} of {types:?}: {e}"));
            batch
                .dispatch(entry, &dispatch, &buffers(trial, op, imm, &types), 0)
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
        let outcomes = run_batch(batch, &format!("{folder}-{number}"), all_shapes());
        for (tried, outcome) in all.iter().zip(outcomes) {
            failures.extend(difference(trial, tried, outcome));
            compared += 1;
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {compared} differ:\n{}",
        failures.len(),
        failures[..failures.len().min(40)].join("\n")
    );
    (compared, missing)
}

/// What is wrong with what came of an instance, if anything is.
fn difference(trial: &Trial, (op, imm, types): &Tried, outcome: Outcome) -> Option<String> {
    let mut expected = buffers(trial, *op, *imm, types);
    run(
        &kernel(FloatMode::Strict, *op, *imm, types),
        "k",
        &Dispatch::linear(THREADS, THREADS),
        &mut expected,
        &Options::default(),
        &mut [],
    )
    .unwrap();
    let name = format!("{op} {imm:?} of {types:?}");
    let after = match outcome {
        Err(error) => return Some(format!("{name}: {error}")),
        Ok(after) => after,
    };
    let ty = op.result_type(*imm, types).unwrap();
    let last = types.len();
    let same = compare(
        (trial.tolerance)(ty.scalar().unwrap()),
        expected[last].bytes(),
        after[last].bytes(),
        &ElementType::Value(ty),
        &[],
    );
    same.err().map(|difference| format!("{name}: {difference}"))
}

#[test]
#[expect(clippy::print_stdout, reason = "a test says how much it did")]
fn a10_every_operation_gives_what_the_reference_machine_gives() {
    if !can_run("all operations") {
        return;
    }
    let (compared, missing) = try_rows(&STRICT, "operations", is_tried);
    println!("{compared} instances of the rows");
    assert!(missing.is_empty(), "rows that are not tried: {missing:?}");
}

fn has_float(types: &[Type], result: Type) -> bool {
    let mut all = types.iter().chain([&result]);
    all.any(|ty| ty.scalar().is_some_and(Scalar::is_float))
}

/// In `fast` kernels functions stand for expansions: clang knows each that is written, and it is that function.
#[test]
#[expect(clippy::print_stdout, reason = "a test says how much it did")]
fn a10_every_operation_on_floats_is_near_the_reference_machine_in_fast_kernels() {
    if !can_run("all operations in fast kernels") {
        return;
    }
    let (compared, missing) = try_rows(&FAST, "fast", |op, types, result| {
        is_tried(op, types, result) && has_float(types, result)
    });
    println!("{compared} instances of the rows");
    let takes_floats = |op: &Op| {
        let instances = op.row().signature.instances();
        instances
            .iter()
            .any(|(imm, types)| has_float(types, op.result_type(*imm, types).unwrap()))
    };
    let left_out: Vec<_> = Op::all()
        .filter(|op| missing.contains(&op.name()) && takes_floats(op))
        .collect();
    assert!(left_out.is_empty(), "rows that are not tried: {left_out:?}");
}
