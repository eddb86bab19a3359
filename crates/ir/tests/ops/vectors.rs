//! Functions of vectors and matrices, and interpolation: their errors against exact numbers, which
//! the rows of the table state.

use invar_ir::ops::Accuracy;
use invar_ir::ops::evaluate::evaluate;
use invar_ir::{Imm, Op, Scalar, Type};

use crate::exact::{Exact, Format, Random};

const FLOATS: [Scalar; 4] = [Scalar::F16, Scalar::BF16, Scalar::F32, Scalar::F64];

/// An exact component of a result, and what an ulp is measured of: itself, or the sum of its terms'
/// magnitudes.
type Component = (Exact, Exact);

fn itself(x: Exact) -> Component {
    (x.clone(), x)
}

fn sum(terms: impl IntoIterator<Item = Exact>) -> Component {
    let start = (Exact::zero(false), Exact::zero(false));
    terms.into_iter().fold(start, |(all, size), term| {
        (all.add(&term), size.add(&term.abs()))
    })
}

fn products(a: &[Exact], b: &[Exact]) -> Vec<Exact> {
    a.iter().zip(b).map(|(a, b)| a.mul(b)).collect()
}

/// Random numbers whose exponents lie in a range, of either sign.
fn random_column(format: Format, random: &mut Random, exponents: std::ops::Range<i64>) -> Vec<u64> {
    let span = (exponents.end - exponents.start) as u64;
    let column = (0..3000).map(|_| {
        let digits = random.next() >> 11;
        let exponent = exponents.start + random.below(span) as i64;
        format.encode(&Exact::Finite {
            negative: random.next() & 1 == 1,
            mantissa: (digits | 1 << 52).into(),
            exponent: exponent - 52,
            inexact: false,
        })
    });
    column.collect()
}

/// The largest error over random operands; panics if it is beyond what the row states.
fn measure(
    op: Op,
    types: &dyn Fn(Scalar) -> Vec<Type>,
    exponents: std::ops::Range<i64>,
    exact: &dyn Fn(&[Vec<Exact>]) -> Vec<Component>,
) {
    for scalar in FLOATS {
        let format = Format::of(scalar);
        let mut random = Random(51);
        let types = types(scalar);
        let columns: Vec<Vec<u64>> = (0..types.iter().map(|ty| ty.component_count()).sum())
            .map(|_| random_column(format, &mut random, exponents.clone()))
            .collect();
        let slices: Vec<&[u64]> = columns.iter().map(Vec::as_slice).collect();
        let results = evaluate(op, Imm::None, &types, &slices).expect("it takes these types");
        let mut worst: f64 = 0.0;
        for i in 0..columns[0].len() {
            let mut rest = columns.iter().map(|column| format.decode(column[i]));
            let operands: Vec<Vec<Exact>> = types
                .iter()
                .map(|ty| rest.by_ref().take(ty.component_count() as usize).collect())
                .collect();
            let components = exact(&operands);
            assert_eq!(components.len(), results.len());
            for ((exact, scale), column) in components.iter().zip(&results) {
                worst = worst.max(format.error_ulp(column[i], exact, scale));
            }
        }
        let stated = match (op.row().accuracy, scalar) {
            (Accuracy::Exact, _) => 0.5,
            (Accuracy::Ulp { .. } | Accuracy::Terms(_), Scalar::F16 | Scalar::BF16) => 0.51,
            (Accuracy::Ulp { f64, .. }, Scalar::F64) => f64.into(),
            (Accuracy::Ulp { f32, .. }, _) => f32.into(),
            (Accuracy::Terms(bound), _) => bound.into(),
            (Accuracy::Steps, _) => panic!("{op} states no bound"),
        };
        assert!(worst <= stated, "{op} of {types:?} is {worst} ulp off");
        assert!(
            worst > 0.2,
            "{op} of {types:?}: {worst} ulp is too good to be true"
        );
    }
}

fn vectors(n: u8, count: usize) -> impl Fn(Scalar) -> Vec<Type> {
    move |scalar| vec![Type::Vector(scalar, n); count]
}

#[test]
fn a11_dot_products_are_within_their_bound() {
    for n in 2..=4 {
        measure(Op::Dot, &vectors(n, 2), -4..4, &|x| {
            vec![sum(products(&x[0], &x[1]))]
        });
    }
}

#[test]
fn a11_dot_accumulates_in_index_order_by_fma() {
    let bits = |x: f32| u64::from(x.to_bits());
    let a = [1e8f32, 1.0, -1e8, 1.0 + f32::EPSILON];
    let b = [1.0f32, 1.0, 1.0, 1.0 + f32::EPSILON];
    let columns: Vec<[u64; 1]> = a.iter().chain(&b).map(|x| [bits(*x)]).collect();
    let slices: Vec<&[u64]> = columns.iter().map(|c| &c[..]).collect();
    let types = vec![Type::Vector(Scalar::F32, 4); 2];
    let found = evaluate(Op::Dot, Imm::None, &types, &slices).expect("it takes these types");
    let mut expected = a[0] * b[0];
    for k in 1..4 {
        expected = a[k].mul_add(b[k], expected);
    }
    assert_eq!(found, vec![vec![bits(expected)]]);
    // In another order the first two would not be lost.
    assert_ne!(
        expected,
        (a[0] * b[0] + a[2] * b[2]) + (a[1] * b[1] + a[3] * b[3])
    );
}

#[test]
fn a11_lengths_are_within_their_bound() {
    for n in 2..=4 {
        measure(Op::Length, &vectors(n, 1), -4..4, &|x| {
            vec![itself(sum(products(&x[0], &x[0])).0.sqrt())]
        });
        measure(Op::Distance, &vectors(n, 2), -4..4, &|x| {
            let way: Vec<Exact> = x[0].iter().zip(&x[1]).map(|(a, b)| a.sub(b)).collect();
            vec![itself(sum(products(&way, &way)).0.sqrt())]
        });
        measure(Op::Normalize, &vectors(n, 1), -4..4, &|x| {
            let length = sum(products(&x[0], &x[0])).0.sqrt();
            x[0].iter().map(|a| itself(a.div(&length))).collect()
        });
    }
}

/// The results of an operation on f32 vectors of one lane.
fn of_f32(op: Op, operands: &[&[f32]]) -> Vec<f32> {
    let types: Vec<Type> = operands
        .iter()
        .map(|x| match x.len() {
            1 => Type::F32,
            n => Type::Vector(Scalar::F32, n as u8),
        })
        .collect();
    let columns: Vec<[u64; 1]> = operands
        .iter()
        .flat_map(|x| x.iter())
        .map(|x| [x.to_bits().into()])
        .collect();
    let slices: Vec<&[u64]> = columns.iter().map(|c| &c[..]).collect();
    let found = evaluate(op, Imm::None, &types, &slices).expect("it takes these types");
    found.iter().map(|c| f32::from_bits(c[0] as u32)).collect()
}

#[test]
fn corrections_leave_zeros_infinities_and_nans_as_they_are() {
    let (inf, nan, max) = (f32::INFINITY, f32::NAN, f32::MAX);
    let same = |found: Vec<f32>, expected: &[f32]| {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            let same = found.to_bits() == expected.to_bits();
            assert!(
                same || found.is_nan() && expected.is_nan(),
                "{found} {expected}"
            );
        }
    };
    let distance = |a: &[f32], b: &[f32]| of_f32(Op::Distance, &[a, b]);
    same(distance(&[1.5, -2.0], &[1.5, -2.0]), &[0.0]);
    same(distance(&[inf, 0.0], &[0.0, 0.0]), &[inf]);
    same(distance(&[inf, 0.0], &[inf, 0.0]), &[nan]);
    same(distance(&[max, 0.0], &[-max, 0.0]), &[inf]);
    same(distance(&[1e19, 0.0], &[0.0, 0.0]), &[1e19]);
    same(distance(&[nan, 0.0], &[0.0, 0.0]), &[nan]);
    let normalize = |x: &[f32]| of_f32(Op::Normalize, &[x]);
    same(normalize(&[-0.0, -3.0]), &[-0.0, -1.0]);
    same(normalize(&[0.0, 0.0]), &[nan, nan]);
    same(normalize(&[inf, 1.0]), &[nan, 0.0]);
    same(normalize(&[max, 1.0]), &[0.0, 0.0]);
    same(normalize(&[nan, 1.0]), &[nan, nan]);
    let smoothstep = |low: f32, high: f32, x: f32| of_f32(Op::Smoothstep, &[&[low], &[high], &[x]]);
    same(smoothstep(0.0, 1.0, 0.0), &[0.0]);
    same(smoothstep(0.0, 1.0, -1.0), &[0.0]);
    same(smoothstep(0.0, 1.0, 1.0), &[1.0]);
    same(smoothstep(0.0, 1.0, 7.0), &[1.0]);
    // From high to low.
    same(smoothstep(1.0, 0.0, 0.5), &[0.5]);
    same(smoothstep(1.0, 0.0, 2.0), &[0.0]);
    // Where both edges meet, a step; a NaN counts as below.
    same(smoothstep(1.0, 1.0, 2.0), &[1.0]);
    same(smoothstep(1.0, 1.0, 0.0), &[0.0]);
    same(smoothstep(1.0, 1.0, 1.0), &[0.0]);
    same(smoothstep(0.0, 1.0, nan), &[0.0]);
    same(smoothstep(-max, max, 0.0), &[0.0]);
    same(smoothstep(0.0, max, max / 2.0), &[0.5]);
    same(smoothstep(0.0, inf, 1.0), &[0.0]);
    same(smoothstep(0.0, 1.0, inf), &[1.0]);
}

/// In f16 the sum of squares would overflow from 256 on.
#[test]
fn lengths_of_short_floats_neither_overflow_nor_underflow() {
    let format = Format::of(Scalar::F16);
    for (x, expected) in [(30_000, 30_000), (0, 0)] {
        let x = [format.encode(&Exact::integer(x))];
        let types = [Type::Vector(Scalar::F16, 2)];
        let found = evaluate(Op::Length, Imm::None, &types, &[&x, &[0]]);
        let expected = format.encode(&Exact::integer(expected));
        assert_eq!(found, Ok(vec![vec![expected]]));
    }
    let types = [Type::Vector(Scalar::F16, 2)];
    let found = evaluate(Op::Length, Imm::None, &types, &[&[1], &[0]]);
    assert_eq!(found, Ok(vec![vec![1]]), "the smallest subnormal");
}

fn cross(a: &[Exact], b: &[Exact]) -> Vec<Exact> {
    [(1, 2), (2, 0), (0, 1)]
        .map(|(i, j)| a[i].mul(&b[j]).sub(&a[j].mul(&b[i])))
        .to_vec()
}

#[test]
fn cross_products_are_accurate_also_where_they_cancel() {
    measure(Op::Cross, &vectors(3, 2), -4..4, &|x| {
        cross(&x[0], &x[1]).into_iter().map(itself).collect()
    });
    // Nearly equal vectors: all components cancel.
    measure(Op::Cross, &vectors(3, 2), 0..1, &|x| {
        cross(&x[0], &x[1]).into_iter().map(itself).collect()
    });
    for scalar in FLOATS {
        let format = Format::of(scalar);
        let mut random = Random(52);
        let columns: Vec<Vec<u64>> = (0..3)
            .map(|_| random_column(format, &mut random, -4..4))
            .collect();
        let slices: Vec<&[u64]> = columns.iter().chain(&columns).map(Vec::as_slice).collect();
        let types = vec![Type::Vector(scalar, 3); 2];
        let found = evaluate(Op::Cross, Imm::None, &types, &slices).expect("it takes these types");
        let zero = |bits: &u64| format.decode(*bits).is_zero();
        assert!(found.iter().flatten().all(zero), "cross(x, x) of {scalar}");
    }
}

#[test]
fn reflection_is_within_its_bound() {
    for n in 2..=4 {
        measure(Op::Reflect, &vectors(n, 2), -2..2, &|x| {
            let (incident, normal) = (&x[0], &x[1]);
            let minus_two = Exact::integer(-2);
            let terms = products(normal, incident);
            incident
                .iter()
                .zip(normal)
                .map(|(i, n)| {
                    let n = n.mul(&minus_two);
                    sum(terms.iter().map(|t| t.mul(&n)).chain([i.clone()]))
                })
                .collect()
        });
    }
}

#[test]
fn refraction_bends_by_snell_and_vanishes_beyond_the_critical_angle() {
    let bits = |x: f32| u64::from(x.to_bits());
    let float = |bits: u64| f32::from_bits(bits as u32);
    let types = [
        Type::Vector(Scalar::F32, 2),
        Type::Vector(Scalar::F32, 2),
        Type::F32,
    ];
    let critical = (1.0f32 / 1.5).asin();
    for degrees in 1..90 {
        let angle = (degrees as f32).to_radians();
        for eta in [1.0 / 1.5, 1.0, 1.5] {
            let (x, y) = (angle.sin(), -angle.cos());
            let columns = [x, y, 0.0, 1.0, eta].map(|v| [bits(v)]);
            let slices: Vec<&[u64]> = columns.iter().map(|c| &c[..]).collect();
            let found = evaluate(Op::Refract, Imm::None, &types, &slices).expect("types");
            let (x, y) = (float(found[0][0]), float(found[1][0]));
            if eta > 1.0 && angle > critical + 0.01 {
                assert_eq!((x, y), (0.0, 0.0), "{degrees} degrees");
            } else if eta <= 1.0 || angle < critical - 0.01 {
                assert!(
                    (x - eta * angle.sin()).abs() < 1e-6,
                    "{degrees} degrees: {x}"
                );
                assert!(
                    (x * x + y * y - 1.0).abs() < 1e-5 && y < 0.0,
                    "{degrees}: {y}"
                );
            }
        }
    }
}

#[test]
fn faceforward_turns_against_the_incident_vector() {
    for scalar in FLOATS {
        let sign = Format::of(scalar).sign();
        let one = Format::of(scalar).encode(&Exact::integer(1));
        // The smallest subnormals: their product is negative, if too small for the format.
        let tiny = [[1], [1 | sign]];
        let zero = [0];
        let types = vec![Type::Vector(scalar, 2); 3];
        for (incident, expected) in [(&tiny[1], one), (&tiny[0], one | sign), (&zero, one | sign)] {
            let columns: [&[u64]; 6] = [&[one], &zero, incident, &zero, &[one], &zero];
            let found = evaluate(Op::Faceforward, Imm::None, &types, &columns);
            let x = found.expect("it takes these types")[0][0];
            assert_eq!(x, expected, "{scalar} {incident:x?}");
        }
    }
}

#[test]
fn all_and_any_look_at_every_component() {
    for n in 2..=4u8 {
        let rows = 1u64 << n;
        let columns: Vec<Vec<u64>> = (0..n)
            .map(|k| (0..rows).map(|row| row >> k & 1).collect())
            .collect();
        let slices: Vec<&[u64]> = columns.iter().map(Vec::as_slice).collect();
        let types = [Type::Vector(Scalar::Bool, n)];
        let all: Vec<u64> = (0..rows).map(|row| u64::from(row == rows - 1)).collect();
        let any: Vec<u64> = (0..rows).map(|row| u64::from(row != 0)).collect();
        assert_eq!(evaluate(Op::All, Imm::None, &types, &slices), Ok(vec![all]));
        assert_eq!(evaluate(Op::Any, Imm::None, &types, &slices), Ok(vec![any]));
    }
}

fn matrix(scalar: Scalar, columns: u8, rows: u8) -> Type {
    Type::Matrix {
        scalar,
        columns,
        rows,
    }
}

#[test]
fn a11_matrix_products_are_within_their_bound_in_every_shape() {
    for (rows, inner, columns) in [(2, 3, 4), (4, 4, 4), (3, 2, 2), (4, 2, 3)] {
        let entry = |a: &[Exact], b: &[Exact], row: usize| {
            let terms = (0..usize::from(inner)).map(|k| a[k * usize::from(rows) + row].mul(&b[k]));
            sum(terms)
        };
        let types = |s| vec![matrix(s, inner, rows), matrix(s, columns, inner)];
        measure(Op::MatrixMultiply, &types, -3..3, &|x| {
            x[1].chunks(inner.into())
                .flat_map(|column| (0..rows.into()).map(|row| entry(&x[0], column, row)))
                .collect()
        });
        let types = |s| vec![matrix(s, inner, rows), Type::Vector(s, inner)];
        measure(Op::MatrixMultiply, &types, -3..3, &|x| {
            (0..rows.into())
                .map(|row| entry(&x[0], &x[1], row))
                .collect()
        });
        let types = |s| vec![Type::Vector(s, inner), matrix(s, columns, inner)];
        measure(Op::MatrixMultiply, &types, -3..3, &|x| {
            x[1].chunks(inner.into())
                .map(|column| sum(products(&x[0], column)))
                .collect()
        });
    }
}

#[test]
fn transposition_swaps_rows_and_columns() {
    for (columns, rows) in [(2, 2), (2, 3), (4, 3), (4, 4)] {
        let entries: Vec<[u64; 1]> = (0..columns * rows).map(|k| [k.into()]).collect();
        let slices: Vec<&[u64]> = entries.iter().map(|c| &c[..]).collect();
        let types = [matrix(Scalar::F32, columns, rows)];
        let found = evaluate(Op::Transpose, Imm::None, &types, &slices).expect("a matrix");
        for row in 0..rows {
            for column in 0..columns {
                let place = usize::from(row * columns + column);
                assert_eq!(found[place], [u64::from(column * rows + row)]);
            }
        }
    }
}

/// Every product of one entry of each column, all in different rows, with its sign.
fn leibniz(entries: &[Exact], n: usize, column: usize, taken: &[usize]) -> Vec<Exact> {
    if column == n {
        return vec![Exact::integer(1)];
    }
    let rows = (0..n).filter(|row| !taken.contains(row));
    rows.flat_map(|row| {
        let above = taken.iter().filter(|t| **t > row).count();
        let entry = &entries[column * n + row];
        let entry = if above % 2 == 1 {
            entry.neg()
        } else {
            entry.clone()
        };
        let taken = [taken, &[row]].concat();
        let rest = leibniz(entries, n, column + 1, &taken);
        rest.into_iter().map(move |r| r.mul(&entry))
    })
    .collect()
}

#[test]
fn determinants_are_within_their_bound() {
    for n in 2..=4 {
        measure(Op::Determinant, &|s| vec![matrix(s, n, n)], -3..3, &|x| {
            vec![sum(leibniz(&x[0], n.into(), 0, &[]))]
        });
    }
}

#[test]
fn interpolation_is_within_its_bound() {
    measure(Op::Mix, &|s| vec![s.into(); 3], -6..2, &|x| {
        let (low, high, a) = (&x[0][0], &x[1][0], &x[2][0]);
        vec![sum([low.clone(), high.sub(low).mul(a)])]
    });
    measure(Op::Smoothstep, &|s| vec![s.into(); 3], -3..3, &|x| {
        let (low, high, at) = (&x[0][0], &x[1][0], &x[2][0]);
        let t = at.sub(low).div(&high.sub(low));
        let one = Exact::integer(1);
        let t = if one.less(&t) {
            one
        } else if t.is_negative() || t == Exact::Nan {
            Exact::zero(false)
        } else {
            t
        };
        let factor = Exact::integer(3).sub(&Exact::integer(2).mul(&t));
        vec![itself(t.mul(&t).mul(&factor))]
    });
}
