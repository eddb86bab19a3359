//! Float arithmetic is correctly rounded (A9), for every type, against exact numbers.

use invar_ir::{Op, Scalar};

use crate::ops::evaluate::{every, run};
use crate::ops::exact::{Exact, Format, Random, points};

const FLOATS: [Scalar; 4] = [Scalar::F16, Scalar::BF16, Scalar::F32, Scalar::F64];

/// Holds results against exact ones; of a NaN only that it is one.
fn check(op: Op, scalar: Scalar, args: &[Vec<u64>], exact: impl Fn(&[Exact]) -> Exact) {
    let format = Format::of(scalar);
    let columns: Vec<&[u64]> = args.iter().map(Vec::as_slice).collect();
    let results = run(op, scalar, &columns);
    for (i, result) in results.iter().enumerate() {
        let operands: Vec<Exact> = args.iter().map(|c| format.decode(c[i])).collect();
        let expected = format.encode(&exact(&operands));
        assert!(
            *result == expected || (format.is_nan(*result) && format.is_nan(expected)),
            "{op} {scalar} {:x?} gives {result:x}, expected {expected:x}",
            args.iter().map(|c| c[i]).collect::<Vec<_>>(),
        );
    }
}

/// Operands for all functions of one argument: every pattern of short floats.
fn unary(scalar: Scalar) -> Vec<Vec<u64>> {
    if scalar.bits() == 16 {
        vec![every(scalar)]
    } else {
        vec![points(scalar, &mut Random(1), 4000)]
    }
}

/// Pairs: all edges with each other, and random ones, near each other as often as not.
fn pairs(scalar: Scalar, seed: u64) -> Vec<Vec<u64>> {
    let mut random = Random(seed);
    let edges = points(scalar, &mut random, 48);
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for x in &edges {
        for y in &edges {
            a.push(*x);
            b.push(*y);
        }
    }
    let mask = u64::MAX >> (64 - scalar.bits());
    for k in 0..20_000 {
        let x = random.next() & mask;
        let near = x.wrapping_add(random.below(1 << (scalar.bits() / 2))) & mask;
        a.push(x);
        b.push(if k % 2 == 0 {
            random.next() & mask
        } else {
            near ^ (random.next() & Format::of(scalar).sign())
        });
    }
    vec![a, b]
}

#[test]
fn a9_sums_products_and_quotients_are_correctly_rounded() {
    for scalar in FLOATS {
        check(Op::Add, scalar, &pairs(scalar, 2), |x| x[0].add(&x[1]));
        check(Op::Sub, scalar, &pairs(scalar, 3), |x| x[0].sub(&x[1]));
        check(Op::Mul, scalar, &pairs(scalar, 4), |x| x[0].mul(&x[1]));
        check(Op::Div, scalar, &pairs(scalar, 5), |x| x[0].div(&x[1]));
    }
}

/// Where rounding to f32 first could be one rounding too many.
#[test]
fn a9_short_products_and_quotients_round_once_below_the_normal_range() {
    for scalar in [Scalar::F16, Scalar::BF16] {
        let format = Format::of(scalar);
        let mut random = Random(6);
        let (mut small, mut factor) = (Vec::new(), Vec::new());
        for _ in 0..40_000 {
            small.push(random.below(2 * format.infinity() / 31));
            factor.push(random.below(format.infinity()));
        }
        let args = vec![small, factor];
        check(Op::Mul, scalar, &args, |x| x[0].mul(&x[1]));
        check(Op::Div, scalar, &args, |x| x[0].div(&x[1]));
    }
}

#[test]
fn a9_fma_rounds_once() {
    for scalar in FLOATS {
        let format = Format::of(scalar);
        let mask = u64::MAX >> (64 - scalar.bits());
        let mut random = Random(7);
        let edges = points(scalar, &mut random, 40);
        let mut args = vec![Vec::new(); 3];
        for _ in 0..40_000 {
            let [a, b] = [(); 2].map(|()| random.next() & mask);
            // Next to minus the product, so that what a second rounding loses remains; or far from
            // it, so that it decides a tie.
            let product = format.encode(&format.decode(a).mul(&format.decode(b)).neg());
            let near = product.wrapping_add(random.below(5)).wrapping_sub(2) & mask;
            let c = [near, random.next() & mask, random.below(3)][random.below(3) as usize];
            for (column, x) in args.iter_mut().zip([a, b, c]) {
                column.push(x);
            }
        }
        for _ in 0..10_000 {
            for column in &mut args {
                column.push(edges[random.below(edges.len() as u64) as usize]);
            }
        }
        check(Op::Fma, scalar, &args, |x| x[0].mul(&x[1]).add(&x[2]));
    }
}

/// A product that is exact plus something tiny: only one rounding sees it.
#[test]
fn a9_fma_is_not_a_product_and_a_sum() {
    for scalar in FLOATS {
        let format = Format::of(scalar);
        let one = format.encode(&Exact::integer(1));
        // (1 + u)^2 = 1 + 2u + u^2 is just above the number 1 + 2u.
        let column = [one + 1];
        let product = run(Op::Mul, scalar, &[&column, &column])[0];
        let minus = [product ^ format.sign()];
        let rest = run(Op::Fma, scalar, &[&column, &column, &minus])[0];
        assert_eq!(product, one + 2, "{scalar}");
        assert!(rest != 0, "{scalar}: the fused product keeps u^2");
    }
}

#[test]
fn a9_square_roots_are_correctly_rounded() {
    for scalar in FLOATS {
        check(Op::Sqrt, scalar, &unary(scalar), |x| x[0].sqrt());
    }
}

#[test]
fn neg_and_abs_change_the_sign_bit_alone() {
    for scalar in FLOATS {
        let sign = Format::of(scalar).sign();
        let x = &unary(scalar)[0];
        let expected: Vec<u64> = x.iter().map(|x| x ^ sign).collect();
        assert_eq!(run(Op::Neg, scalar, &[x]), expected, "{scalar}");
        let expected: Vec<u64> = x.iter().map(|x| x & !sign).collect();
        assert_eq!(run(Op::Abs, scalar, &[x]), expected, "{scalar}");
    }
}

#[test]
fn rounding_to_integers_keeps_the_sign_of_zero() {
    use std::cmp::Ordering::{Equal, Greater, Less};
    type Up = fn(bool, bool, std::cmp::Ordering, bool) -> bool;
    // Whether the magnitude goes up: of a negative number, an odd floor, the rest against a half,
    // and nothing left.
    let rules: [(Op, Up); 5] = [
        (Op::Trunc, |_, _, _, _| false),
        (Op::Floor, |negative, _, _, exact| negative && !exact),
        (Op::Ceil, |negative, _, _, exact| !negative && !exact),
        (Op::Rint, |_, odd, rest, _| {
            rest == Greater || (rest == Equal && odd)
        }),
        (Op::Round, |_, _, rest, _| rest != Less),
    ];
    for scalar in FLOATS {
        for (op, up) in rules {
            check(op, scalar, &unary(scalar), |x| match x[0].split() {
                None => x[0].clone(),
                Some((negative, whole, rest, nothing)) => {
                    let up = up(negative, whole.bit(0), rest, nothing);
                    Exact::whole(negative, whole + u32::from(up))
                }
            });
        }
    }
}

#[test]
fn a7_fmin_and_fmax_prefer_numbers_and_order_zeros() {
    // The order of A7: -0 is less than +0.
    let before = |a: &Exact, b: &Exact| {
        a.less(b) || (a.is_zero() && b.is_zero() && a.is_negative() && !b.is_negative())
    };
    let least = |x: &[Exact]| match (&x[0], &x[1]) {
        (Exact::Nan, other) | (other, Exact::Nan) => other.clone(),
        (a, b) => if before(b, a) { b } else { a }.clone(),
    };
    let most = |x: &[Exact]| match (&x[0], &x[1]) {
        (Exact::Nan, other) | (other, Exact::Nan) => other.clone(),
        (a, b) => if before(a, b) { b } else { a }.clone(),
    };
    for scalar in FLOATS {
        for op in [Op::Fmin, Op::Min] {
            check(op, scalar, &pairs(scalar, 8), least);
        }
        for op in [Op::Fmax, Op::Max] {
            check(op, scalar, &pairs(scalar, 9), most);
        }
        let zeros = [0, Format::of(scalar).sign()];
        let swapped = [zeros[1], zeros[0]];
        assert_eq!(run(Op::Fmin, scalar, &[&zeros, &swapped]), [zeros[1]; 2]);
        assert_eq!(run(Op::Fmax, scalar, &[&zeros, &swapped]), [0; 2]);
    }
}

#[test]
fn comparisons_order_numbers_and_refuse_nans() {
    for scalar in FLOATS {
        let format = Format::of(scalar);
        let args = pairs(scalar, 10);
        let columns = [args[0].as_slice(), args[1].as_slice()];
        let results =
            [Op::Lt, Op::Le, Op::Gt, Op::Ge, Op::Eq, Op::Ne].map(|op| run(op, scalar, &columns));
        for i in 0..args[0].len() {
            let (a, b) = (format.decode(args[0][i]), format.decode(args[1][i]));
            let (less, more) = (a.less(&b), b.less(&a));
            let equal = !less && !more && a != Exact::Nan && b != Exact::Nan;
            let expected = [less, less || equal, more, more || equal, equal, !equal];
            let found: Vec<bool> = results.iter().map(|r| r[i] == 1).collect();
            assert_eq!(
                found, expected,
                "{scalar} {:x} {:x}",
                args[0][i], args[1][i]
            );
        }
    }
}
