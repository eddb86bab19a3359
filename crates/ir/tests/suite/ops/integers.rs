//! Integer operations, against arithmetic of 128 bits: every pair of 8-bit values, and edges and
//! random values of the wider types.

use invar_ir::{Imm, Op, Scalar, Type};

use crate::ops::evaluate::{run, run_typed};
use crate::ops::exact::{Random, points};

fn integers() -> impl Iterator<Item = Scalar> {
    Scalar::ALL.into_iter().filter(|s| s.is_integer())
}

fn value(scalar: Scalar, bits: u64) -> i128 {
    let wraps = scalar.is_signed_integer() && bits >> (scalar.bits() - 1) == 1;
    i128::from(bits) - if wraps { 1 << scalar.bits() } else { 0 }
}

fn bits(scalar: Scalar, value: i128) -> u64 {
    (value as u64) & (u64::MAX >> (64 - scalar.bits()))
}

fn least(scalar: Scalar) -> i128 {
    if scalar.is_signed_integer() {
        -(1 << (scalar.bits() - 1))
    } else {
        0
    }
}

fn most(scalar: Scalar) -> i128 {
    least(scalar) + (1 << scalar.bits()) - 1
}

fn pairs(scalar: Scalar) -> [Vec<u64>; 2] {
    if scalar.bits() == 8 {
        let a = (0..1 << 16).map(|k| k >> 8).collect();
        return [a, (0..1 << 16).map(|k| k & 0xff).collect()];
    }
    let all = points(scalar, &mut Random(31), 250);
    let a = all.iter().flat_map(|x| vec![*x; all.len()]).collect();
    [a, all.iter().flat_map(|_| all.clone()).collect()]
}

/// Checks an operation of two integers; the rule gets their values and gives the exact result, of
/// which the low bits count.
fn check(op: Op, rule: impl Fn(Scalar, i128, i128) -> i128) {
    for scalar in integers() {
        let [a, b] = pairs(scalar);
        for (i, found) in run(op, scalar, &[&a, &b]).into_iter().enumerate() {
            let expected = bits(
                scalar,
                rule(scalar, value(scalar, a[i]), value(scalar, b[i])),
            );
            assert_eq!(found, expected, "{op} {scalar} {:x} {:x}", a[i], b[i]);
        }
    }
}

fn check_unary(op: Op, rule: impl Fn(Scalar, u64) -> i128) {
    for scalar in integers() {
        let x = pairs(scalar)[1].clone();
        for (i, found) in run(op, scalar, &[&x]).into_iter().enumerate() {
            let expected = bits(scalar, rule(scalar, x[i]));
            assert_eq!(found, expected, "{op} {scalar} {:x}", x[i]);
        }
    }
}

#[test]
fn a1_integers_wrap() {
    check(Op::Add, |_, a, b| a + b);
    check(Op::Sub, |_, a, b| a - b);
    check(Op::Mul, |_, a, b| a.wrapping_mul(b));
    check_unary(Op::Neg, |s, x| -value(s, x));
    check_unary(Op::Abs, |s, x| value(s, x).abs());
}

#[test]
fn a2_division_by_zero_gives_zero_and_the_remainder_has_the_dividends_sign() {
    check(Op::Div, |_, a, b| if b == 0 { 0 } else { a / b });
    check(Op::Rem, |_, a, b| if b == 0 { 0 } else { a % b });
    let (lowest, minus_one) = ([0x80], [0xff]);
    assert_eq!(run(Op::Div, Scalar::I8, &[&lowest, &minus_one]), lowest);
    assert_eq!(run(Op::Rem, Scalar::I8, &[&lowest, &minus_one]), [0]);
}

#[test]
fn a3_shift_counts_are_taken_modulo_the_width() {
    let count = |s: Scalar, b: i128| b.rem_euclid(s.bits().into()) as u32;
    check(Op::Shl, |s, a, b| a << count(s, b));
    check(Op::Shr, |s, a, b| a >> count(s, b));
    assert_eq!(run(Op::Shr, Scalar::I8, &[&[0x80], &[9]]), [0xc0]);
    assert_eq!(run(Op::Shr, Scalar::U8, &[&[0x80], &[9]]), [0x40]);
}

#[test]
fn a4_zero_has_as_many_leading_and_trailing_zeros_as_bits() {
    check_unary(Op::Clz, |s, x| {
        (0..s.bits()).rev().take_while(|k| x >> k & 1 == 0).count() as i128
    });
    check_unary(Op::Ctz, |s, x| {
        (0..s.bits()).take_while(|k| x >> k & 1 == 0).count() as i128
    });
    check_unary(Op::Popcount, |s, x| {
        (0..s.bits()).filter(|k| x >> k & 1 == 1).count() as i128
    });
    check_unary(Op::ReverseBits, |s, x| {
        (0..s.bits()).fold(0, |all, k| all << 1 | i128::from(x >> k & 1))
    });
}

#[test]
fn bitwise_operations_also_join_truth_values() {
    check(Op::And, |_, a, b| a & b);
    check(Op::Or, |_, a, b| a | b);
    check(Op::Xor, |_, a, b| a ^ b);
    check_unary(Op::Not, |s, x| !value(s, x));
    let [a, b] = [[0, 0, 1, 1], [0, 1, 0, 1]];
    assert_eq!(run(Op::And, Scalar::Bool, &[&a, &b]), [0, 0, 0, 1]);
    assert_eq!(run(Op::Or, Scalar::Bool, &[&a, &b]), [0, 1, 1, 1]);
    assert_eq!(run(Op::Xor, Scalar::Bool, &[&a, &b]), [0, 1, 1, 0]);
    assert_eq!(run(Op::Not, Scalar::Bool, &[&a]), [1, 1, 0, 0]);
    assert_eq!(run(Op::Eq, Scalar::Bool, &[&a, &b]), [1, 0, 0, 1]);
    assert_eq!(run(Op::Ne, Scalar::Bool, &[&a, &b]), [0, 1, 1, 0]);
}

#[test]
fn integers_are_ordered_by_their_sign() {
    for scalar in integers() {
        let [a, b] = pairs(scalar);
        type Rule = fn(&i128, &i128) -> bool;
        let rules: [(Op, Rule); 6] = [
            (Op::Lt, i128::lt),
            (Op::Le, i128::le),
            (Op::Gt, i128::gt),
            (Op::Ge, i128::ge),
            (Op::Eq, i128::eq),
            (Op::Ne, i128::ne),
        ];
        for (op, rule) in rules {
            for (i, found) in run(op, scalar, &[&a, &b]).into_iter().enumerate() {
                let expected = rule(&value(scalar, a[i]), &value(scalar, b[i]));
                assert_eq!(found, u64::from(expected), "{op} {scalar}");
            }
        }
    }
    check(Op::Min, |_, a, b| a.min(b));
    check(Op::Max, |_, a, b| a.max(b));
}

#[test]
fn saturating_functions_stop_at_the_limits() {
    check(Op::AddSat, |s, a, b| (a + b).clamp(least(s), most(s)));
    check(Op::SubSat, |s, a, b| (a - b).clamp(least(s), most(s)));
    check(Op::AbsDiff, |_, a, b| (a - b).abs());
    for scalar in integers().filter(|s| s.is_signed_integer()) {
        let x = pairs(scalar)[1].clone();
        let signs = x.iter().map(|x| bits(scalar, value(scalar, *x).signum()));
        let signs: Vec<u64> = signs.collect();
        assert_eq!(run(Op::Sign, scalar, &[&x]), signs, "{scalar}");
    }
}

#[test]
fn rotation_brings_back_what_leaves() {
    check(Op::Rotate, |s, a, b| {
        let all = i128::from(bits(s, a));
        let count = b.rem_euclid(s.bits().into()) as u32;
        all << count | all >> (s.bits() - count)
    });
}

/// The upper half of products of at most 64 by 64 bits, from quarters for the widest.
fn high_half(scalar: Scalar, a: i128, b: i128) -> i128 {
    let (low_a, high_a) = (a & 0xffff_ffff, a >> 32);
    let (low_b, high_b) = (b & 0xffff_ffff, b >> 32);
    if scalar.bits() < 64 {
        return (a * b) >> scalar.bits();
    }
    let middle = high_a * low_b + ((low_a * low_b) >> 32);
    let rest = low_a * high_b + (middle & 0xffff_ffff);
    high_a * high_b + (middle >> 32) + (rest >> 32)
}

#[test]
fn mul_hi_is_the_upper_half_of_the_product() {
    check(Op::MulHi, high_half);
}

#[test]
fn three_operand_functions_see_the_whole_product() {
    for scalar in integers() {
        let few = points(scalar, &mut Random(32), 44);
        let mut args = [Vec::new(), Vec::new(), Vec::new()];
        for a in &few {
            for b in &few {
                for c in &few {
                    for (column, x) in args.iter_mut().zip([a, b, c]) {
                        column.push(*x);
                    }
                }
            }
        }
        let columns: Vec<&[u64]> = args.iter().map(Vec::as_slice).collect();
        let high = run(Op::MadHi, scalar, &columns);
        let saturated = run(Op::MadSat, scalar, &columns);
        for i in 0..high.len() {
            let [a, b, c] = [0, 1, 2].map(|k| value(scalar, args[k][i]));
            let expected = bits(scalar, high_half(scalar, a, b).wrapping_add(c));
            assert_eq!(high[i], expected, "mad_hi {scalar} {a} {b} {c}");
            // Products of u64 do not fit, but are too large then.
            let sum = a.checked_mul(b).and_then(|product| product.checked_add(c));
            let expected = sum.unwrap_or(i128::MAX).clamp(least(scalar), most(scalar));
            assert_eq!(
                saturated[i],
                bits(scalar, expected),
                "mad_sat {scalar} {a} {b} {c}"
            );
        }
    }
}

#[test]
fn a6_offsets_and_counts_of_bits_are_limited_to_the_width() {
    for scalar in integers() {
        let width = scalar.bits();
        let ranges: Vec<u64> = (0..=u64::from(width) + 2)
            .chain([1000, 0xffff_ffff])
            .collect();
        let few = points(scalar, &mut Random(33), 20);
        let mut args = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
        for (k, x) in few.iter().enumerate() {
            for offset in &ranges {
                for count in &ranges {
                    let row = [*x, few[few.len() - 1 - k], *offset, *count];
                    for (column, x) in args.iter_mut().zip(row) {
                        column.push(x);
                    }
                }
            }
        }
        let [x, part, offset, count] = &args;
        let ty = Type::Scalar(scalar);
        let types = [ty, Type::U32, Type::U32];
        let extracted = run_typed(Op::ExtractBits, Imm::None, &types, &[x, offset, count]);
        let types = [ty, ty, Type::U32, Type::U32];
        let columns: [&[u64]; 4] = [x, part, offset, count];
        let inserted = run_typed(Op::InsertBits, Imm::None, &types, &columns);
        for i in 0..x.len() {
            let first = offset[i].min(width.into());
            let count = count[i].min(u64::from(width) - first);
            let within = |bit: u32| (first..first + count).contains(&bit.into());
            // Bit by bit; a signed field goes on with its highest bit.
            let field: u64 = (0..count)
                .map(|k| u64::from(x[i] >> (first + k) & 1 == 1) << k)
                .sum();
            let negative =
                scalar.is_signed_integer() && count > 0 && x[i] >> (first + count - 1) & 1 == 1;
            let expected = i128::from(field) - if negative { 1 << count } else { 0 };
            assert_eq!(
                extracted[i],
                bits(scalar, expected),
                "extract_bits {scalar} {:x} {} {}",
                x[i],
                offset[i],
                count
            );
            let expected = (0..width).map(|bit| {
                let from_part = within(bit) && part[i] >> (u64::from(bit) - first) & 1 == 1;
                let from_x = !within(bit) && x[i] >> bit & 1 == 1;
                u64::from(from_part || from_x) << bit
            });
            assert_eq!(
                inserted[i],
                expected.sum::<u64>(),
                "insert_bits {scalar} {:x} {:x} {} {count}",
                x[i],
                part[i],
                offset[i]
            );
        }
    }
}
