//! A5: conversions between every two scalar types, against exact numbers.

use invar_ir::{Imm, Op, Scalar};
use num_bigint::BigUint;

use crate::ops::evaluate::{every, run_typed};
use crate::ops::exact::{Exact, Format, Random, points};

/// A5 on one value, from its definition.
fn expected(from: Scalar, to: Scalar, bits: u64) -> u64 {
    let x = if from.is_float() {
        Format::of(from).decode(bits)
    } else {
        let wraps = from.is_signed_integer() && bits >> (from.bits() - 1) == 1;
        let below = if wraps { 1i128 << from.bits() } else { 0 };
        Exact::integer(i128::from(bits) - below)
    };
    if to.is_float() {
        return Format::of(to).encode(&x);
    }
    if to == Scalar::Bool {
        return u64::from(!x.is_zero());
    }
    let mask = u64::MAX >> (64 - to.bits());
    let (negative, magnitude) = match &x {
        Exact::Nan => return 0,
        Exact::Infinite { negative } => (*negative, BigUint::from(1u32) << 200),
        finite => match finite.split() {
            Some((negative, whole, ..)) => (negative, whole),
            None => unreachable!("it is finite"),
        },
    };
    if from.is_float() {
        let high = 1u128 << (to.bits() - u32::from(to.is_signed_integer()));
        let (least, most) = if to.is_signed_integer() {
            (high, high - 1)
        } else {
            (0, high - 1)
        };
        let limit = BigUint::from(if negative { least } else { most });
        let magnitude = u128::try_from(magnitude.min(limit)).unwrap_or(0) as u64;
        return if negative {
            magnitude.wrapping_neg()
        } else {
            magnitude
        } & mask;
    }
    let magnitude = u128::try_from(magnitude).unwrap_or(0) as u64;
    (if negative {
        magnitude.wrapping_neg()
    } else {
        magnitude
    }) & mask
}

fn check(from: Scalar, to: Scalar, column: &[u64]) {
    let found = run_typed(Op::Cast, Imm::Type(to.into()), &[from.into()], &[column]);
    for (bits, found) in column.iter().zip(found) {
        let expected = expected(from, to, *bits);
        let nan = |bits| to.is_float() && Format::of(to).is_nan(bits);
        assert!(
            found == expected || (nan(found) && nan(expected)),
            "cast of {from} {bits:x} to {to} gives {found:x}, expected {expected:x}"
        );
    }
}

#[test]
fn a5_every_value_of_short_types_to_every_type() {
    for from in Scalar::ALL.into_iter().filter(|s| s.bits() <= 16) {
        for to in Scalar::ALL {
            check(from, to, &every(from));
        }
    }
}

#[test]
fn a5_between_every_two_types() {
    for from in Scalar::ALL {
        for to in Scalar::ALL {
            check(from, to, &points(from, &mut Random(11), 4000));
        }
    }
}

/// Halfway between two neighbours of a shorter float, and one step to either side: rounding twice,
/// or dropping low bits, goes wrong here.
#[test]
fn a5_ties_and_their_neighbours_round_once() {
    for (from, to) in [
        (Scalar::F32, Scalar::F16),
        (Scalar::F32, Scalar::BF16),
        (Scalar::F64, Scalar::F16),
        (Scalar::F64, Scalar::BF16),
    ] {
        let (wide, narrow) = (Format::of(from), Format::of(to));
        let mut column = Vec::new();
        for bits in 0..narrow.infinity() {
            // The mean of neighbours; after the largest comes what infinity would be.
            let sum = if bits + 1 == narrow.infinity() {
                let step = narrow.decode(bits).sub(&narrow.decode(bits - 1));
                narrow.decode(bits).add(&narrow.decode(bits)).add(&step)
            } else {
                narrow.decode(bits).add(&narrow.decode(bits + 1))
            };
            let tie = wide.encode(&sum.div(&Exact::integer(2)));
            for near in [tie - 1, tie, tie + 1] {
                column.extend([near, near | wide.sign()]);
            }
        }
        check(from, to, &column);
    }
    let mut random = Random(12);
    let mut column = Vec::new();
    for _ in 0..2000 {
        let bits = wide_f32(&mut random);
        let tie = (f64::from(f32::from_bits(bits)).to_bits()) | 1 << 28;
        column.extend([tie - 1, tie, tie + 1]);
    }
    check(Scalar::F64, Scalar::F32, &column);
}

fn wide_f32(random: &mut Random) -> u32 {
    (random.next() as u32 & 0x807f_ffff) | (100 + random.below(50) as u32) << 23
}

/// Integers of 64 bits have more than twice the digits of any float here.
#[test]
fn a5_long_integers_round_once() {
    for to in [Scalar::F16, Scalar::BF16, Scalar::F32, Scalar::F64] {
        let precision = match to {
            Scalar::F16 => 11,
            Scalar::BF16 => 8,
            Scalar::F32 => 24,
            _ => 53,
        };
        let mut random = Random(13);
        let mut column = vec![0, u64::MAX, i64::MAX as u64, i64::MIN as u64];
        for length in precision + 1..=64 {
            for _ in 0..50 {
                // A one, the precision's other digits, a half, and next to it.
                let digits = 1 << (precision - 1) | random.below(1 << (precision - 1));
                let tie = (2 * digits + 1) << (length - precision - 1);
                column.extend([tie - 1, tie, tie + 1, tie.wrapping_neg()]);
            }
        }
        for from in [Scalar::I64, Scalar::U64] {
            check(from, to, &column);
        }
    }
}
