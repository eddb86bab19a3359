//! Every row of the op table, for every type it takes: what the machine computes in a kernel is what
//! the table's own evaluator gives for columns, and lanes and queries run without one.

use invar_interp::{Arg, Dispatch, Options, run};
use invar_ir::ops::evaluate::{EvaluateError, evaluate};
use invar_ir::text::data::random_scalar;
use invar_ir::{Access, FloatMode, Imm, KernelBuilder, Module, Op, Place, Scalar, Type, verify};

const THREADS: u32 = 37;

/// Bits of an operand's component: numbers of everyday size, small integers, and any bits at all.
fn operand(scalar: Scalar, seed: u64, thread: u32) -> u64 {
    let any = random_scalar(Scalar::U64, seed, thread.into()).bits;
    let cut = |bits: u64| bits & (u64::MAX >> (64 - scalar.bits()));
    match (scalar, thread % 3) {
        (Scalar::Bool, _) => any & 1,
        (Scalar::F16 | Scalar::BF16 | Scalar::F32 | Scalar::F64, 0) => {
            random_scalar(scalar, seed, thread.into()).bits
        }
        (_, 1) if scalar.is_integer() => cut((any % 7).wrapping_sub(2)),
        _ => cut(any),
    }
}

/// Runs one operation on the machine; gives the columns of its result.
fn on_machine(op: Op, imm: Imm, types: &[Type], columns: &[Vec<u64>]) -> Vec<Vec<u64>> {
    let mut k = KernelBuilder::new(Module::default(), "k");
    k.kernel_mut().float_mode = FloatMode::Strict;
    k.kernel_mut().simdgroup_size = Some(8);
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
    let module = k
        .finish()
        .and_then(verify)
        .unwrap_or_else(|e| panic!("{op} of {types:?}: {e}"));

    let mut args = Vec::new();
    let mut rest = columns;
    for ty in types {
        let (own, after) = rest.split_at(ty.component_count() as usize);
        rest = after;
        let size = ty.scalar().map_or(0, Scalar::size_bytes) as usize;
        let mut bytes = Vec::new();
        for thread in 0..THREADS as usize {
            for column in own {
                bytes.extend_from_slice(&column[thread].to_le_bytes()[..size]);
            }
        }
        args.push(Arg::OwnedBuffer(bytes));
    }
    let size = result_type.scalar().map_or(0, Scalar::size_bytes) as usize;
    let count = result_type.component_count() as usize;
    args.push(Arg::zeros(size * count * THREADS as usize));
    let dispatch = Dispatch::linear(THREADS, THREADS);
    run(
        &module,
        "k",
        &dispatch,
        &mut args,
        &Options::default(),
        &mut [],
    )
    .expect("runs");
    let bytes = args[types.len()].bytes();
    (0..count)
        .map(|component| {
            let scalars = bytes.chunks(size).skip(component).step_by(count);
            scalars
                .map(|s| {
                    let mut word = [0; 8];
                    word[..size].copy_from_slice(s);
                    u64::from_le_bytes(word)
                })
                .collect()
        })
        .collect()
}

#[test]
fn a10_the_machine_computes_every_row_as_the_table_says() {
    let (mut compared, mut run_only) = (0, 0);
    for op in Op::all() {
        for (imm, types) in op.row().signature.instances() {
            let components: Vec<Scalar> = types
                .iter()
                .flat_map(|ty| vec![ty.scalar().unwrap(); ty.component_count() as usize])
                .collect();
            let columns: Vec<Vec<u64>> = components
                .iter()
                .enumerate()
                .map(|(c, scalar)| {
                    (0..THREADS)
                        .map(|t| operand(*scalar, c as u64, t))
                        .collect()
                })
                .collect();
            let actual = on_machine(op, imm, &types, &columns);
            let slices: Vec<&[u64]> = columns.iter().map(Vec::as_slice).collect();
            match evaluate(op, imm, &types, &slices) {
                Ok(expected) => {
                    // Without operands there is one value for all threads.
                    let mut expected = expected;
                    if types.is_empty() {
                        expected = vec![vec![expected[0][0]; THREADS as usize]];
                    }
                    assert_eq!(actual, expected, "{op} {imm:?} of {types:?}");
                    compared += 1;
                }
                Err(EvaluateError::DependsOnThread(_)) => run_only += 1,
                Err(EvaluateError::Signature(error)) => panic!("{op} of {types:?}: {error:?}"),
            }
        }
    }
    // Neither half may run empty.
    assert!(
        compared > 1000 && run_only > 100,
        "{compared} compared, {run_only} only run"
    );
}
