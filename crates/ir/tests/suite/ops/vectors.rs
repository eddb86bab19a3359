//! Functions of vectors and matrices, and interpolation: their errors against exact numbers, which
//! the rows of the table state.

use invar_ir::ops::Accuracy;
use invar_ir::ops::evaluate::evaluate;
use invar_ir::{Imm, Op, Scalar, Type};

use crate::ops::exact::{Exact, Format, Random};

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
        format.finite(format.encode(&Exact::Finite {
            negative: random.next() & 1 == 1,
            mantissa: (digits | 1 << 52).into(),
            exponent: exponent - 52,
            inexact: false,
        }))
    });
    column.collect()
}

/// A component's error in units in the last place of what the row says they are of. Of a sum of twice
/// the digits that is the result, but where the terms' magnitudes allow for more, nothing counts.
fn error(op: Op, format: Format, bits: u64, (exact, scale): &Component) -> f64 {
    match op.row().accuracy {
        Accuracy::Twofold(_) => {
            // 2^-42 of the terms' sum in f32 and 2^-100 in f64 is at least so many of its ulp.
            let allowed = if format.is_f64() { -48 } else { -19 };
            if format.error_ulp(bits, exact, scale) <= 2f64.powi(allowed) {
                return 0.0;
            }
            format.error_ulp(bits, exact, exact)
        }
        Accuracy::Exact | Accuracy::Ulp { .. } | Accuracy::Terms(_) => {
            format.error_ulp(bits, exact, scale)
        }
    }
}

fn stated(op: Op, scalar: Scalar) -> f64 {
    match (op.row().accuracy, scalar) {
        (Accuracy::Exact, _) => 0.5,
        (_, Scalar::F16 | Scalar::BF16) => 0.51,
        (Accuracy::Ulp { f64, .. }, Scalar::F64) => f64.into(),
        (Accuracy::Ulp { f32, .. }, _) => f32.into(),
        (Accuracy::Terms(bound) | Accuracy::Twofold(bound), _) => bound.into(),
    }
}

/// The exact results of operands.
type Exactly<'a> = dyn Fn(&[Vec<Exact>]) -> Vec<Component> + 'a;

/// What is measured of one operation: its operands' types, and the exact results.
struct Measure<'a> {
    op: Op,
    types: &'a dyn Fn(Scalar) -> Vec<Type>,
    exact: &'a Exactly<'a>,
}

impl Measure<'_> {
    /// The largest error over these operands, one column for each scalar; panics if it is beyond what
    /// the row states.
    fn on(&self, scalar: Scalar, columns: &[Vec<u64>]) -> f64 {
        let (op, format) = (self.op, Format::of(scalar));
        let types = (self.types)(scalar);
        let slices: Vec<&[u64]> = columns.iter().map(Vec::as_slice).collect();
        let results = evaluate(op, Imm::None, &types, &slices).expect("it takes these types");
        let mut worst: f64 = 0.0;
        for i in 0..columns[0].len() {
            let mut rest = columns.iter().map(|column| format.decode(column[i]));
            let operands: Vec<Vec<Exact>> = types
                .iter()
                .map(|ty| rest.by_ref().take(ty.component_count() as usize).collect())
                .collect();
            let components = (self.exact)(&operands);
            assert_eq!(components.len(), results.len());
            for (component, column) in components.iter().zip(&results) {
                let error = error(op, format, column[i], component);
                let lane = || columns.iter().map(|c| c[i]).collect::<Vec<u64>>();
                assert!(
                    error <= stated(op, scalar),
                    "{op} of {types:?} {:x?} gives {:x}, {error} ulp off",
                    lane(),
                    column[i],
                );
                worst = worst.max(error);
            }
        }
        worst
    }

    /// As many columns as the operands have scalars, of random numbers.
    fn columns(
        &self,
        scalar: Scalar,
        random: &mut Random,
        exponents: std::ops::Range<i64>,
    ) -> Vec<Vec<u64>> {
        let types = (self.types)(scalar);
        let count: u32 = types.iter().map(|ty| ty.component_count()).sum();
        (0..count)
            .map(|_| random_column(Format::of(scalar), random, exponents.clone()))
            .collect()
    }
}

/// Holds an operation to what its row states, over random operands.
fn measure(
    op: Op,
    types: &dyn Fn(Scalar) -> Vec<Type>,
    exponents: std::ops::Range<i64>,
    exact: &dyn Fn(&[Vec<Exact>]) -> Vec<Component>,
) {
    let measure = Measure { op, types, exact };
    for scalar in FLOATS {
        let columns = measure.columns(scalar, &mut Random(51), exponents.clone());
        let worst = measure.on(scalar, &columns);
        assert!(
            worst > 0.2,
            "{op} of {scalar}: {worst} ulp is too good to be true"
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

fn length(x: &[Vec<Exact>]) -> Vec<Component> {
    vec![itself(sum(products(&x[0], &x[0])).0.sqrt())]
}

fn distance(x: &[Vec<Exact>]) -> Vec<Component> {
    let way: Vec<Exact> = x[0].iter().zip(&x[1]).map(|(a, b)| a.sub(b)).collect();
    length(&[way])
}

fn normalized(x: &[Vec<Exact>]) -> Vec<Component> {
    let length = sum(products(&x[0], &x[0])).0.sqrt();
    x[0].iter().map(|a| itself(a.div(&length))).collect()
}

#[test]
fn a11_lengths_are_within_their_bound() {
    for n in 2..=4 {
        measure(Op::Length, &vectors(n, 1), -4..4, &length);
        measure(Op::Distance, &vectors(n, 2), -4..4, &distance);
        measure(Op::Normalize, &vectors(n, 1), -4..4, &normalized);
    }
}

/// The exponents of all finite numbers, and windows of them: where the squares, or what rounding loses of
/// them, would underflow, where the results do, and where the sum of squares would overflow.
fn exponents_everywhere(format: Format) -> Vec<std::ops::Range<i64>> {
    let (least, end) = format.exponents();
    let digits = format.digits();
    vec![
        least..end,
        least..least + digits + 4,
        least + digits - 3..least + digits + 3,
        (least + digits) / 2 - 3..(least + digits) / 2 + 3,
        least / 2..least / 2 + digits,
        end / 2 - 3..end / 2 + 3,
        end - 6..end,
        end - 2..end,
    ]
}

#[test]
fn a10_lengths_are_within_their_bound_of_all_finite_vectors() {
    let everywhere = |op, types: &dyn Fn(Scalar) -> Vec<Type>, exact: &Exactly| {
        let measure = Measure { op, types, exact };
        for scalar in FLOATS {
            let mut random = Random(57);
            for exponents in exponents_everywhere(Format::of(scalar)) {
                let columns = measure.columns(scalar, &mut random, exponents);
                measure.on(scalar, &columns);
                if op == Op::Distance {
                    // All but the same, so that the way is much smaller.
                    let (a, _) = columns.split_at(columns.len() / 2);
                    let near = close_to(a, Format::of(scalar), &mut random);
                    measure.on(scalar, &[a, &near].concat());
                }
            }
        }
    };
    for n in 2..=4 {
        everywhere(Op::Length, &vectors(n, 1), &length);
        everywhere(Op::Distance, &vectors(n, 2), &distance);
        everywhere(Op::Normalize, &vectors(n, 1), &normalized);
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
    same(normalize(&[max, 1.0]), &[1.0, f32::from_bits(1 << 21)]);
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
    same(smoothstep(-max, max, 0.0), &[0.5]);
    same(smoothstep(max, max, max), &[0.0]);
    same(smoothstep(max, max, -max), &[0.0]);
    same(smoothstep(-max, -max, max), &[1.0]);
    same(smoothstep(-inf, max, 0.0), &[0.0]);
    same(smoothstep(inf, max, 0.0), &[0.0]);
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

fn reflected(x: &[Vec<Exact>]) -> Vec<Component> {
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
}

/// The column with each number a few units in the last place larger or smaller.
fn jittered(column: Vec<u64>, random: &mut Random) -> Vec<u64> {
    let jitter = |bits: u64| (bits + random.below(5)).saturating_sub(2);
    column.into_iter().map(jitter).collect()
}

/// The columns, of finite numbers, each number a few units in the last place larger or smaller.
fn close_to(columns: &[Vec<u64>], format: Format, random: &mut Random) -> Vec<Vec<u64>> {
    let close = |column: &Vec<u64>| {
        let jittered = jittered(column.clone(), random);
        jittered.into_iter().map(|x| format.finite(x)).collect()
    };
    columns.iter().map(close).collect()
}

#[test]
fn reflection_is_within_its_bound() {
    for n in 2..=4 {
        measure(Op::Reflect, &vectors(n, 2), -2..2, &reflected);
        // Along a normal whose square is one half nothing comes back: every component cancels.
        let reflect = Measure {
            op: Op::Reflect,
            types: &vectors(n, 2),
            exact: &reflected,
        };
        for scalar in FLOATS {
            let format = Format::of(scalar);
            let mut random = Random(53);
            let columns = reflect.columns(scalar, &mut random, -2..2);
            let (incident, random_normal) = columns.split_at(n.into());
            let mut normals = random_normal.to_vec();
            for lane in 0..incident[0].len() {
                let x: Vec<Exact> = incident.iter().map(|c| format.decode(c[lane])).collect();
                let square = sum(products(&x, &x)).0;
                let scale = square.add(&square).sqrt();
                for (normal, x) in normals.iter_mut().zip(&x) {
                    normal[lane] = format.encode(&x.div(&scale));
                }
            }
            let normals = normals.into_iter().map(|c| jittered(c, &mut random));
            let columns: Vec<Vec<u64>> = incident.iter().cloned().chain(normals).collect();
            reflect.on(scalar, &columns);
        }
    }
}

/// `d`, `k`, and of the terms of `k` the magnitude.
fn bending(x: &[Vec<Exact>]) -> (Exact, Exact, Exact) {
    let one = Exact::integer(1);
    let (d, size) = sum(products(&x[1], &x[0]));
    let square = x[2][0].mul(&x[2][0]);
    let k = one.sub(&square.mul(&one.sub(&d.mul(&d))));
    let size = one.add(&square.mul(&one.add(&size.mul(&size))));
    (d, k, size)
}

fn refracted(x: &[Vec<Exact>]) -> Vec<Component> {
    let (incident, normal, eta) = (&x[0], &x[1], &x[2][0]);
    let (d, k, size) = bending(x);
    if k.is_negative() && !k.is_zero() {
        return incident
            .iter()
            .map(|_| itself(Exact::zero(false)))
            .collect();
    }
    let root = k.sqrt();
    let terms = products(normal, incident);
    incident
        .iter()
        .zip(normal)
        .map(|(i, n)| {
            let result = eta.mul(i).sub(&eta.mul(&d).add(&root).mul(n));
            let along = terms
                .iter()
                .fold(Exact::zero(false), |a, t| a.add(&t.abs()));
            let along = along.mul(&eta.abs()).add(&size.div(&root)).mul(&n.abs());
            (result, eta.mul(i).abs().add(&along))
        })
        .collect()
}

#[test]
fn refraction_is_within_its_bound() {
    for n in 2..=4 {
        let types = |s| vec![Type::Vector(s, n), Type::Vector(s, n), Type::Scalar(s)];
        let refract = Measure {
            op: Op::Refract,
            types: &types,
            exact: &refracted,
        };
        for scalar in FLOATS {
            let format = Format::of(scalar);
            let mut random = Random(54);
            let mut columns = refract.columns(scalar, &mut random, -3..1);
            let width = usize::from(n);
            let count = columns[0].len();
            let (mut bent, mut gone, mut near) = (0, 0, 0);
            for lane in 0..count {
                // Both vectors of about length 1; eta next to the critical one for every other.
                for vector in [0..width, width..2 * width] {
                    let x: Vec<Exact> = columns[vector.clone()]
                        .iter()
                        .map(|c| format.decode(c[lane]))
                        .collect();
                    let length = sum(products(&x, &x)).0.sqrt();
                    for (column, x) in columns[vector].iter_mut().zip(&x) {
                        column[lane] = format.encode(&x.div(&length));
                    }
                }
                let operands = |columns: &[Vec<u64>]| -> Vec<Vec<Exact>> {
                    let all = columns.iter().map(|c| format.decode(c[lane]));
                    let all: Vec<Exact> = all.collect();
                    let [a, b] = [&all[..width], &all[width..2 * width]];
                    vec![a.to_vec(), b.to_vec(), all[2 * width..].to_vec()]
                };
                let one = Exact::integer(1);
                if lane % 2 == 0 {
                    let x = operands(&columns);
                    let d = sum(products(&x[0], &x[1])).0;
                    let sine = one.sub(&d.mul(&d));
                    if !sine.is_negative() && !sine.is_zero() {
                        columns[2 * width][lane] = format.encode(&one.div(&sine.sqrt()));
                    }
                }
                let (_, k, size) = bending(&operands(&columns));
                let scaled = k.abs().mul(&Exact::integer(if format.is_f64() {
                    1 << 100
                } else {
                    1 << 42
                }));
                if scaled.less(&size) {
                    // Where the sign of k is open: an eta of 0 instead, which bends to the normal.
                    columns[2 * width][lane] = 0;
                    near += 1;
                }
                let (_, k, _) = bending(&operands(&columns));
                if k.is_negative() {
                    gone += 1
                } else {
                    bent += 1
                }
            }
            assert!(bent > count / 4 && gone > count / 4, "{bent} {gone}");
            assert!(near < count / 10, "{near} of {count} left out");
            refract.on(scalar, &columns);
        }
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

fn determinant(x: &[Vec<Exact>]) -> Vec<Component> {
    let n = x[0].len().isqrt();
    vec![sum(leibniz(&x[0], n, 0, &[]))]
}

#[test]
fn determinants_are_within_their_bound() {
    for n in 2..=4 {
        let types = |s| vec![matrix(s, n, n)];
        measure(Op::Determinant, &types, -3..3, &determinant);
        // Of a last column that is all but the sum of the others.
        let near = Measure {
            op: Op::Determinant,
            types: &types,
            exact: &determinant,
        };
        let rows = usize::from(n);
        for scalar in FLOATS {
            let format = Format::of(scalar);
            let mut random = Random(55);
            let mut columns = near.columns(scalar, &mut random, -3..3);
            let (others, last) = columns.split_at_mut(rows * (rows - 1));
            for (row, entries) in last.iter_mut().enumerate() {
                for (lane, entry) in entries.iter_mut().enumerate() {
                    let others = (0..rows - 1).map(|k| format.decode(others[k * rows + row][lane]));
                    *entry = format.encode(&sum(others).0);
                }
                *entries = jittered(std::mem::take(entries), &mut random);
            }
            near.on(scalar, &columns);
        }
    }
}

#[test]
fn a10_determinants_are_within_their_bound_of_all_finite_matrices() {
    for n in 2..=4 {
        let types = |s| vec![matrix(s, n, n)];
        let measure = Measure {
            op: Op::Determinant,
            types: &types,
            exact: &determinant,
        };
        let size = usize::from(n);
        for scalar in FLOATS {
            let format = Format::of(scalar);
            let (least, end) = format.exponents();
            let mut random = Random(58);
            // Of two columns the products may underflow, and the row says that it is another quarter off.
            let least = if n == 2 {
                (least + 2 * format.digits()) / 2
            } else {
                least
            };
            for exponents in exponents_everywhere(format) {
                let exponents = exponents.start.max(least)..exponents.end.max(least + 4);
                let columns = measure.columns(scalar, &mut random, exponents);
                measure.on(scalar, &columns);
            }
            // Each column and row by a power of two of its own, so that products are ordinary numbers though
            // the entries are not; a last column that is all but the sum of the others; and some zeros.
            let mut columns = measure.columns(scalar, &mut random, -2..2);
            for row in 0..size {
                for lane in 0..columns[0].len() {
                    let others =
                        (0..size - 1).map(|k| format.decode(columns[k * size + row][lane]));
                    let all = format.encode(&sum(others).0);
                    columns[(size - 1) * size + row][lane] = all + random.below(3);
                }
            }
            let room = end / 2 - 4;
            for lane in 0..columns[0].len() {
                let mut powers = || -> Vec<i64> {
                    let mut powers: Vec<i64> = (1..size)
                        .map(|_| random.below(room as u64) as i64 - room / 2)
                        .collect();
                    powers.push(-powers.iter().sum::<i64>().clamp(-room, room));
                    powers
                };
                let (of_column, of_row) = (powers(), powers());
                for (k, column) in columns.iter_mut().enumerate() {
                    let power = of_column[k / size] + of_row[k % size];
                    let scaled = format.decode(column[lane]).times_power_of_two(power);
                    let kept = random.below(8) > 0;
                    column[lane] = if kept { format.encode(&scaled) } else { 0 };
                }
            }
            measure.on(scalar, &columns);
        }
    }
}

#[test]
fn a10_cross_products_overflow_only_where_a_component_does() {
    let types = vectors(3, 2);
    let exact = |x: &[Vec<Exact>]| cross(&x[0], &x[1]).into_iter().map(itself).collect();
    let measure = Measure {
        op: Op::Cross,
        types: &types,
        exact: &exact,
    };
    for scalar in FLOATS {
        let format = Format::of(scalar);
        let (_, end) = format.exponents();
        let mut random = Random(59);
        for exponents in [end / 2 - 4..end / 2 + 2, end - 2..end] {
            let columns = measure.columns(scalar, &mut random, exponents);
            let (a, _) = columns.split_at(3);
            measure.on(scalar, &columns);
            let near = close_to(a, format, &mut random);
            measure.on(scalar, &[a, &near].concat());
            measure.on(scalar, &[a, a].concat());
        }
    }
}

fn mixed(x: &[Vec<Exact>]) -> Vec<Component> {
    let (low, high, a) = (&x[0][0], &x[1][0], &x[2][0]);
    vec![itself(low.add(&high.sub(low).mul(a)))]
}

#[test]
fn interpolation_is_within_its_bound_also_where_it_cancels() {
    let types = |s: Scalar| vec![s.into(); 3];
    measure(Op::Mix, &types, -6..2, &mixed);
    let mix = Measure {
        op: Op::Mix,
        types: &types,
        exact: &mixed,
    };
    for scalar in FLOATS {
        let format = Format::of(scalar);
        let mut random = Random(56);
        let digits = format.digits();
        let ranges = [0..1, -6..6, -digits..digits, -3 * digits..3 * digits];
        let ranges = ranges.into_iter().filter(|range| format.holds(range));
        let zip = |x: &[u64], y: &[u64], f: &dyn Fn(Exact, Exact) -> Exact| -> Vec<u64> {
            let pairs = x.iter().zip(y);
            let column = pairs.map(|(x, y)| f(format.decode(*x), format.decode(*y)));
            let finite = |bits: u64| {
                if bits & !format.sign() < format.infinity() {
                    bits
                } else {
                    0
                }
            };
            column.map(|x| finite(format.encode(&x))).collect()
        };
        for exponents in ranges {
            let [x, y, a]: [Vec<u64>; 3] = mix
                .columns(scalar, &mut random, exponents)
                .try_into()
                .expect("three columns");
            mix.on(scalar, &[x.clone(), y.clone(), a.clone()]);
            // The end, and the share, that bring the result next to 0.
            let end = zip(&x, &a, &|x, a| x.sub(&x.div(&a)));
            let end = jittered(end, &mut random);
            mix.on(scalar, &[x.clone(), end, a]);
            let share = zip(&x, &y, &|x, y| x.div(&x.sub(&y)));
            let share = jittered(share, &mut random);
            mix.on(scalar, &[x, y, share]);
        }
        // Next to and among the subnormal numbers, and where only what the products lose is among them.
        let one = format.encode(&Exact::integer(1));
        for exponents in [2, 5, digits as u64 / 2, digits as u64 + 2] {
            let small = (exponents + 1) << format.fraction_bits();
            let small = small.min(format.infinity() / 2);
            let mut column = |limit: u64| -> Vec<u64> {
                (0..3000)
                    .map(|_| random.below(limit) | (random.next() & format.sign()))
                    .collect()
            };
            let (x, y) = (column(small), column(small));
            let shares = column(one + (4 << format.fraction_bits()));
            mix.on(scalar, &[x.clone(), y.clone(), shares]);
            let share = jittered(zip(&x, &y, &|x, y| x.div(&x.sub(&y))), &mut random);
            let share = share.into_iter().map(|x| format.finite(x)).collect();
            mix.on(scalar, &[x, y, share]);
        }
    }
}

fn smoothstep(x: &[Vec<Exact>]) -> Vec<Component> {
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
}

#[test]
fn smoothstep_is_within_its_bound() {
    measure(Op::Smoothstep, &|s| vec![s.into(); 3], -3..3, &smoothstep);
}

/// Of edges as near to each other as they can be, and of places as near to one.
#[test]
fn a10_smoothstep_is_within_its_bound_where_its_losses_are_small() {
    let measure = Measure {
        op: Op::Smoothstep,
        types: &|s| vec![s.into(); 3],
        exact: &smoothstep,
    };
    for scalar in [Scalar::F32, Scalar::F64] {
        let format = Format::of(scalar);
        let (least, end) = format.exponents();
        let mut random = Random(58);
        let half = least / 2;
        // The exponents of the higher edge, and of what part of it the place is.
        let windows = [
            (least..least + 8, -4..0),
            (least + 8..least + 40, -6..0),
            (half..half + 8, -4..0),
            (-3..3, half - 20..half + 16),
            (end - 4..end - 2, half - 20..half + 16),
            (-30..-10, half - 20..half + 16),
            (half..0, half - 20..half + 40),
        ];
        for (high, part) in windows {
            let zeros = vec![format.encode(&Exact::zero(false)); 3000];
            let highs = random_column(format, &mut random, high);
            let parts = random_column(format, &mut random, part);
            let product = |(high, part): (&u64, &u64)| {
                format.finite(format.encode(&format.decode(*high).mul(&format.decode(*part))))
            };
            let at: Vec<u64> = highs.iter().zip(&parts).map(product).collect();
            measure.on(scalar, &[zeros, highs, at]);
        }
    }
}

/// Of edges as large as they can be, of one sign and of both: of these `high - low` overflows.
#[test]
fn a10_smoothstep_is_within_its_bound_next_to_the_largest_numbers() {
    let measure = Measure {
        op: Op::Smoothstep,
        types: &|s| vec![s.into(); 3],
        exact: &smoothstep,
    };
    for scalar in FLOATS {
        let format = Format::of(scalar);
        let (least, end) = format.exponents();
        let mut random = Random(61);
        let largest = format.finite(format.encode(&Exact::integer(1).times_power_of_two(end)));
        let sign = 1 << (scalar.bits() - 1);
        let mut column = |window: &std::ops::Range<i64>| {
            let column = random_column(format, &mut random, window.clone());
            // Every fourth is the largest of its sign.
            let some = column.iter().enumerate();
            let is_large = window.start > 0;
            some.map(|(i, x)| match i % 4 == 0 && is_large {
                true => largest | (x & sign),
                false => *x,
            })
            .collect::<Vec<u64>>()
        };
        let windows = [end - 3..end, -4..0, least..least + 8];
        for low in &windows {
            for high in &windows {
                let (lows, highs) = (column(low), column(high));
                let parts = column(&(-4..0));
                let between = |((low, high), part): ((&u64, &u64), &u64)| {
                    let [low, high, part] = [low, high, part].map(|x| format.decode(*x));
                    let way = high.sub(&low).mul(&part.abs());
                    format.finite(format.encode(&low.add(&way)))
                };
                let places = lows.iter().zip(&highs).zip(&parts);
                let at: Vec<u64> = places.map(between).collect();
                measure.on(scalar, &[lows.clone(), highs.clone(), at]);
                // Next to the first edge, and at places of their own.
                let near = close_to(std::slice::from_ref(&lows), format, &mut Random(62));
                measure.on(scalar, &[lows.clone(), highs.clone(), near[0].clone()]);
                measure.on(scalar, &[lows, highs, column(&(end - 3..end))]);
            }
        }
    }
}
