//! Functions of floats that expansions define, where the exact answer is known.

use invar_ir::{Imm, Op, Scalar};

use crate::ops::evaluate::{every, run, run_typed};
use crate::ops::exact::{Exact, Format, Random, points};

const FLOATS: [Scalar; 4] = [Scalar::F16, Scalar::BF16, Scalar::F32, Scalar::F64];

fn values(scalar: Scalar) -> Vec<u64> {
    if scalar.bits() == 16 {
        every(scalar)
    } else {
        points(scalar, &mut Random(21), 4000)
    }
}

fn pairs(scalar: Scalar) -> [Vec<u64>; 2] {
    let mut random = Random(22);
    let edges = points(scalar, &mut random, 80);
    let a = edges.iter().flat_map(|x| vec![*x; edges.len()]).collect();
    let b = edges.iter().flat_map(|_| edges.clone()).collect();
    [a, b]
}

#[test]
fn tests_of_a_float_look_at_its_bits() {
    for scalar in FLOATS {
        let format = Format::of(scalar);
        let x = values(scalar);
        let smallest_normal = (format.infinity() & format.infinity().wrapping_neg()).max(1);
        type Rule<'a> = &'a dyn Fn(u64) -> bool;
        let magnitude = |x: u64| x & !format.sign();
        let rules: [(Op, Rule); 5] = [
            (Op::IsNan, &|x| magnitude(x) > format.infinity()),
            (Op::IsInf, &|x| magnitude(x) == format.infinity()),
            (Op::IsFinite, &|x| magnitude(x) < format.infinity()),
            (Op::IsNormal, &|x| {
                (smallest_normal..format.infinity()).contains(&magnitude(x))
            }),
            (Op::Signbit, &|x| x & format.sign() != 0),
        ];
        for (op, rule) in rules {
            let expected: Vec<u64> = x.iter().map(|x| u64::from(rule(*x))).collect();
            assert_eq!(run(op, scalar, &[&x]), expected, "{op} {scalar}");
        }
    }
}

#[test]
fn copysign_takes_every_sign() {
    for scalar in FLOATS {
        let sign = Format::of(scalar).sign();
        let [a, b] = pairs(scalar);
        let expected: Vec<u64> = a
            .iter()
            .zip(&b)
            .map(|(a, b)| a & !sign | b & sign)
            .collect();
        assert_eq!(run(Op::Copysign, scalar, &[&a, &b]), expected, "{scalar}");
    }
}

#[test]
fn sign_saturate_fract_and_step_at_every_kind_of_number() {
    for scalar in FLOATS {
        let format = Format::of(scalar);
        let x = values(scalar);
        let one = format.encode(&Exact::integer(1));
        let sign = run(Op::Sign, scalar, &[&x]);
        let saturate = run(Op::Saturate, scalar, &[&x]);
        let fract = run(Op::Fract, scalar, &[&x]);
        for (i, bits) in x.iter().enumerate() {
            let value = format.decode(*bits);
            let expected = match &value {
                Exact::Nan => 0,
                zero if zero.is_zero() => *bits,
                other if other.is_negative() => one | format.sign(),
                _ => one,
            };
            assert_eq!(sign[i], expected, "sign {scalar} {bits:x}");

            let expected = if value == Exact::Nan || value.is_negative() {
                0
            } else if Exact::integer(1).less(&value) {
                one
            } else {
                *bits
            };
            assert_eq!(saturate[i], expected, "saturate {scalar} {bits:x}");

            let Some((negative, whole, _, nothing)) = value.split() else {
                assert!(format.is_nan(fract[i]), "fract {scalar} {bits:x}");
                continue;
            };
            let floor = Exact::whole(negative, whole + u32::from(negative && !nothing));
            let rest = format.encode(&value.sub(&floor)) & !format.sign();
            assert_eq!(fract[i], rest.min(one - 1), "fract {scalar} {bits:x}");
        }
        let [edge, x] = pairs(scalar);
        let step = run(Op::Step, scalar, &[&edge, &x]);
        for i in 0..x.len() {
            let before = format.decode(x[i]).less(&format.decode(edge[i]));
            let expected = if before { 0 } else { one };
            assert_eq!(step[i], expected, "step {scalar} {:x} {:x}", edge[i], x[i]);
        }
    }
}

#[test]
fn clamp_gives_the_lower_limit_for_nan_and_the_upper_one_for_crossed_limits() {
    let bits = |x: f32| u64::from(x.to_bits());
    let x = [-2.0, 0.5, 9.0, f32::NAN, 0.5].map(bits);
    let low = [-1.0, -1.0, -1.0, -1.0, 3.0].map(bits);
    let high = [1.0; 5].map(bits);
    let expected = [-1.0, 0.5, 1.0, -1.0, 1.0].map(bits);
    assert_eq!(run(Op::Clamp, Scalar::F32, &[&x, &low, &high]), expected);
    let integers = run(
        Op::Clamp,
        Scalar::I8,
        &[&[0x80, 5, 0x7f], &[0xff; 3], &[9; 3]],
    );
    assert_eq!(integers, [0xff, 5, 9]);
}

#[test]
fn ldexp_rounds_once_whatever_the_exponent() {
    for scalar in FLOATS {
        let format = Format::of(scalar);
        let mut random = Random(23);
        let (mut x, mut n) = (Vec::new(), Vec::new());
        let reach = if scalar == Scalar::F64 { 2200 } else { 300 };
        for value in points(scalar, &mut random, 400) {
            for exponent in -40..=40 {
                x.push(value);
                n.push(i64::from(exponent) * reach / 40 + random.below(7) as i64 - 3);
            }
            for far in [i32::MIN, i32::MIN + 1, i32::MAX - 1, i32::MAX] {
                x.push(value);
                n.push(far.into());
            }
        }
        // Odd numbers that end halfway between two subnormals, or next to it.
        for _ in 0..2000 {
            let one = format.encode(&Exact::integer(1));
            x.push(one + random.below(one & one.wrapping_neg()));
            let lowest = match scalar {
                Scalar::F16 => -24,
                Scalar::BF16 => -133,
                Scalar::F32 => -149,
                _ => -1074,
            };
            n.push(lowest + random.below(12) as i64 - 2);
        }
        let column: Vec<u64> = n.iter().map(|n| u64::from(*n as i32 as u32)).collect();
        let types = [scalar.into(), Scalar::I32.into()];
        let found = run_typed(Op::Ldexp, Imm::None, &types, &[&x, &column]);
        for i in 0..x.len() {
            let power = Exact::Finite {
                negative: false,
                mantissa: 1u32.into(),
                exponent: n[i].clamp(-5000, 5000),
                inexact: false,
            };
            let expected = format.encode(&format.decode(x[i]).mul(&power));
            assert!(
                found[i] == expected || (format.is_nan(found[i]) && format.is_nan(expected)),
                "ldexp {scalar} {:x} {} gives {:x}, expected {expected:x}",
                x[i],
                n[i],
                found[i]
            );
        }
    }
}
