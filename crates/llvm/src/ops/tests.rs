//! Every operation, for every type that it takes, on scalars and on vectors, against the evaluators
//! of `invar-ir`: on this processor, and on any x86-64.

use inkwell::values::BasicValueEnum;
use invar_ir::ops::Meaning;
use invar_ir::text::data::random_scalar;
use invar_ir::{Imm, Op, Scalar, Type};

use super::eval;
use crate::test_jit::{Jit, Processor, baseline, is_nan, native, with_avx2};

const LANES: u32 = 16;

/// An operation to compile: on vectors or scalars, perhaps with a known second operand.
struct Case {
    op: Op,
    from: Scalar,
    to: Scalar,
    operands: Vec<Scalar>,
    known: Option<u64>,
}

/// Every operation with an evaluator, for every combination of scalar types.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for op in Op::all() {
        if !matches!(op.row().meaning, Meaning::Eval(_)) {
            continue;
        }
        for (imm, args) in op.row().signature.instances() {
            let scalars: Option<Vec<Scalar>> = args
                .iter()
                .map(|ty| match ty {
                    Type::Scalar(s) => Some(*s),
                    Type::Vector(..)
                    | Type::Matrix { .. }
                    | Type::SimdgroupMatrix { .. }
                    | Type::Event => None,
                })
                .collect();
            let (Some(operands), Ok(Type::Scalar(to))) = (scalars, op.result_type(imm, &args))
            else {
                continue;
            };
            let from = operands[0];
            cases.push(Case {
                op,
                from,
                to,
                operands: operands.clone(),
                known: None,
            });
            let known = matches!(
                op,
                Op::Div | Op::Rem | Op::Min | Op::Max | Op::Fmin | Op::Fmax
            );
            if known && imm == Imm::None {
                let (mask, high) = (u64::MAX >> (64 - from.bits()), 1 << (from.bits() - 1));
                let mut some = vec![0, 1, 3, 10, mask, high, high - 1];
                if from.is_float() {
                    let one = Jit::one(from);
                    some = vec![0, high, one, high + one, high - 1, one << 1];
                }
                cases.extend(some.into_iter().map(|bits| Case {
                    op,
                    from,
                    to,
                    operands: operands.clone(),
                    known: Some(bits),
                }));
            }
        }
    }
    cases
}

/// Patterns where things happen.
fn edges(scalar: Scalar) -> Vec<u64> {
    let bits = scalar.bits();
    if bits == 1 {
        return vec![0, 1];
    }
    let mask = u64::MAX >> (64 - bits);
    let high = 1 << (bits - 1);
    let small = [0_u64, 1, 2, 3, 5, 7, 8, 9];
    let mut edges: Vec<u64> = small
        .into_iter()
        .flat_map(|k| [k, k.wrapping_neg() & mask, high + k, (high - k) & mask])
        .collect();
    if scalar.is_float() {
        let fraction = match scalar {
            Scalar::F16 => 10,
            Scalar::BF16 => 7,
            Scalar::F32 => 23,
            _ => 52,
        };
        let infinity = (high - 1) >> fraction << fraction;
        let one = Jit::one(scalar);
        let normal = 1 << fraction;
        for k in [infinity, one, normal, one + (normal >> 1), one + normal] {
            edges.extend([k, k - 1, k + 1, k + high, k + high - 1, k + high + 1]);
        }
        // Where steps become 1, and a half below it.
        let bias = one >> fraction;
        for exponent in [fraction, fraction - 1, fraction + 1, 31, 32, 63, 64, 15, 16] {
            let k = (bias + exponent) << fraction;
            if k < infinity {
                edges.extend([k, k - 1, k + 1, k + high, k + high - 1, k + high + 1]);
            }
        }
    }
    edges.sort_unstable();
    edges.dedup();
    edges
}

/// The column of an operand: all patterns of the narrow types, edges and random ones of others; for
/// several operands all pairs of edges first.
fn column(scalar: Scalar, place: usize, count: usize) -> Vec<u64> {
    let mask = u64::MAX >> (64 - scalar.bits());
    let edges = edges(scalar);
    let mut column: Vec<u64> = match (count, scalar.bits()) {
        (1, 1 | 8 | 16) => (0..=mask).collect(),
        (1, _) => edges,
        (_, _) => {
            let n = edges.len();
            let pick = |k: usize| edges[if place == 0 { k / n } else { k * place % n }];
            (0..n * n).map(pick).collect()
        }
    };
    let random = 4096;
    for k in 0..random {
        let bits = random_scalar(Scalar::U64, place as u64, k).bits;
        // Short numbers as often as long ones, and floats near each other as often as not.
        let bits = match k % 3 {
            0 => bits,
            1 => bits >> (bits % 61),
            _ => (random_scalar(Scalar::U64, 0, k).bits & mask) ^ (bits & 0xff),
        };
        column.push(bits & mask);
    }
    while !column.len().is_multiple_of(LANES as usize) {
        column.push(0);
    }
    column
}

/// Sign changes and choices keep the bits of a NaN; but those of f16 may go through f32, which makes
/// a NaN that signals quiet.
fn keeps_nans(op: Op, scalar: Scalar) -> bool {
    match op {
        Op::Neg | Op::Abs => scalar != Scalar::F16,
        _ => op == Op::Select,
    }
}

/// Runs all cases on one processor, on scalars or vectors, and holds them against the evaluators.
fn check(processor: &Processor, lanes: Option<u32>) {
    let cases = cases();
    let context = crate::test_jit::context();
    let mut jit = Jit::new(&context, processor);
    for (i, case) in cases.iter().enumerate() {
        let mut operands = case.operands.clone();
        operands.push(case.to);
        jit.function(&format!("f{i}"), operands.len(), |e, pointers| {
            let args: Vec<BasicValueEnum> = case
                .operands
                .iter()
                .enumerate()
                .map(|(k, scalar)| match (k, case.known) {
                    (1, Some(bits)) => match lanes {
                        Some(n) => e.splat(e.constant(*scalar, bits), n).into(),
                        None => e.constant(*scalar, bits),
                    },
                    _ => Jit::load(e, pointers[k], *scalar, lanes),
                })
                .collect();
            let result = eval(e, case.op, case.from, case.to, &args);
            Jit::store(e, pointers[case.operands.len()], case.to, result);
        });
    }
    let program = jit.finish();
    for (i, case) in cases.iter().enumerate() {
        let f = program.function(&format!("f{i}"));
        let count = case.operands.len();
        let columns: Vec<Vec<u64>> = (0..count)
            .map(|k| match (k, case.known) {
                (1, Some(bits)) => vec![bits; column(case.from, 0, 1).len()],
                _ => {
                    let shape = if case.known.is_some() { 1 } else { count };
                    column(case.operands[k], k, shape)
                }
            })
            .collect();
        // Operands of other types have other edges; all columns are cut to the shortest.
        let length = columns.iter().map(Vec::len).min().unwrap_or(0);
        let columns: Vec<&[u64]> = columns.iter().map(|c| &c[..length]).collect();
        let mut expected = vec![0; length];
        let Meaning::Eval(evaluator) = case.op.row().meaning else {
            unreachable!("only evaluated rows are cases")
        };
        evaluator(case.from, case.to, &columns, &mut expected);
        let found = f.run(
            &columns,
            &case.operands,
            case.to,
            lanes.unwrap_or(1) as usize,
        );
        for k in 0..length {
            let same = found[k] == expected[k]
                || (!keeps_nans(case.op, case.from)
                    && is_nan(case.to, found[k])
                    && is_nan(case.to, expected[k]));
            assert!(
                same,
                "{} {} to {} of {:x?} (second operand known: {}) gives {:x}, expected {:x}",
                case.op,
                case.from,
                case.to,
                columns.iter().map(|c| c[k]).collect::<Vec<_>>(),
                case.known.is_some(),
                found[k],
                expected[k],
            );
        }
    }
}

#[test]
fn vectors_on_this_processor() {
    check(&native(), Some(LANES));
}

#[test]
fn scalars_on_this_processor() {
    check(&native(), None);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn vectors_on_any_x86_64() {
    check(&baseline(), Some(LANES));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn scalars_on_any_x86_64() {
    check(&baseline(), None);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn vectors_with_avx2() {
    with_avx2(|processor| check(processor, Some(LANES)));
}
