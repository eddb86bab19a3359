//! The methods of Rust's numbers: in a kernel each gives what it gives on the host.

use invar::prelude::*;

/// A kernel of two numbers at a time, and what the same words give on the host.
macro_rules! same_as_on_the_host {
    ($test:ident, $kernel:ident, $host:ident: [$ty:ident, $u:ident, $n:ident] $samples:expr => {$($to:ident: $value:expr;)*}) => {
        #[kernel(strict)]
        #[allow(clippy::too_many_arguments, reason = "one result each")]
        fn $kernel(a: &[$ty], b: &[$ty], $($to: &mut [u64]),*) {
            let i = thread_position_in_grid().x;
            let ($u, $n) = (a[i], b[i]);
            $($to[i] = $value as u64;)*
        }

        #[allow(unused_variables, reason = "some methods take one number")]
        fn $host($u: $ty, $n: $ty) -> Vec<(&'static str, u64)> {
            vec![$((stringify!($to), $value as u64)),*]
        }

        #[test]
        fn $test() {
            let samples: &[$ty] = &$samples;
            let pairs = samples.iter().flat_map(|a| samples.iter().map(move |b| (*a, *b)));
            let (a, b): (Vec<$ty>, Vec<$ty>) = pairs.unzip();
            $(let mut $to = vec![0; a.len()];)*
            let grid = Grid::threads(a.len() as u32);
            let found = $kernel::check(grid, &a, &b, $(&mut $to),*).expect("a run");
            found.into_result().expect("no findings");
            let got: Vec<(&str, &Vec<u64>)> = vec![$((stringify!($to), &$to)),*];
            for (i, (a, b)) in a.iter().zip(&b).enumerate() {
                for ((name, expected), (_, got)) in $host(*a, *b).into_iter().zip(&got) {
                    assert_eq!(got[i], expected, "{name} of {a} and {b}");
                }
            }
        }
    };
}

macro_rules! of_unsigned {
    ($test:ident, $kernel:ident, $host:ident, $ty:ident, $signed:ident) => {
        same_as_on_the_host! { $test, $kernel, $host: [$ty, u, n]
            [0, 1, 2, 3, 7, 10, 99, 100, 127, 128, $ty::MAX - 1, $ty::MAX, $ty::MAX / 2, $ty::MAX / 3] => {
            zeros: u.count_zeros() * 1000 + u.leading_ones() * 100 + u.trailing_ones();
            bytes: u.swap_bytes();
            ends: u.to_be() ^ $ty::from_be(n) ^ u.to_le() ^ $ty::from_le(n);
            product: u.saturating_mul(n);
            quotient: u.saturating_div(n | 1);
            power: (u & 3).pow(3).wrapping_add(u.saturating_pow(n as u32 & 7)) ^ u.wrapping_pow(n as u32 & 7);
            shifts: u.wrapping_shl(n as u32) ^ u.wrapping_shr(n as u32).rotate_left(3);
            shifts_out: u.unbounded_shl(n as u32) ^ u.unbounded_shr(n as u32).rotate_left(3);
            euclid: u.div_euclid(n | 1) ^ u.rem_euclid(n | 1) ^ u.wrapping_div_euclid(n | 1);
            roots: u.isqrt();
            logs: (u | 1).ilog2() * 10000 + (u | 1).ilog10() * 100 + (u | 1).ilog(n | 2);
            next: u.wrapping_div(n | 1) ^ u.wrapping_rem(n | 1) ^ u.wrapping_neg();
            half: u.midpoint(n);
            multiple: (u / 2).next_multiple_of(n & 31 | 1);
            power_of_two: (u / 2).next_power_of_two();
            signed: u.cast_signed();
            mixed: u.wrapping_add_signed(n as $signed);
            mixed_to_the_end: u.saturating_add_signed(n as $signed);
        } }
    };
}
of_unsigned!(methods_of_u8, u8s, u8_host, u8, i8);
of_unsigned!(methods_of_u16, u16s, u16_host, u16, i16);
of_unsigned!(methods_of_u32, u32s, u32_host, u32, i32);
of_unsigned!(methods_of_u64, u64s, u64_host, u64, i64);

macro_rules! of_signed {
    ($test:ident, $kernel:ident, $host:ident, $ty:ident, $unsigned:ident) => {
        same_as_on_the_host! { $test, $kernel, $host: [$ty, u, n]
            [0, 1, -1, 2, -2, 3, -7, 10, 99, -100, 126, $ty::MIN, $ty::MIN + 1, $ty::MAX, $ty::MAX / 3, $ty::MIN / 2] => {
            zeros: u.count_zeros() * 1000 + u.leading_ones() * 100 + u.trailing_ones();
            bytes: u.swap_bytes();
            product: u.saturating_mul(n);
            quotient: u.saturating_div(n | 1);
            power: u.saturating_pow(n as u32 & 7) ^ u.wrapping_pow(n as u32 & 7);
            shifts: u.wrapping_shl(n as u32) ^ u.wrapping_shr(n as u32).rotate_left(3);
            shifts_out: u.unbounded_shl(n as u32) ^ u.unbounded_shr(n as u32).rotate_left(3);
            euclid: u.wrapping_div_euclid(n | 1) ^ u.wrapping_rem_euclid(n | 1);
            roots: u.max(0).isqrt();
            logs: (u.max(0) | 1).ilog2() * 10000 + (u.max(0) | 1).ilog10() * 100 + (u.max(0) | 1).ilog(n.max(0) | 2);
            next: u.wrapping_neg() ^ u.wrapping_abs() ^ u.signum();
            ends: u.saturating_neg() ^ u.saturating_abs().rotate_left(1);
            half: u.midpoint(n);
            unsigned: u.unsigned_abs() ^ n.cast_unsigned();
            sides: u.is_positive() as u32 * 2 + u.is_negative() as u32;
            mixed: u.wrapping_add_unsigned(n as $unsigned) ^ u.wrapping_sub_unsigned(n as $unsigned);
            mixed_to_the_end: u.saturating_add_unsigned(n as $unsigned);
            mixed_from_the_end: u.saturating_sub_unsigned(n as $unsigned);
        } }
    };
}
of_signed!(methods_of_i8, i8s, i8_host, i8, u8);
of_signed!(methods_of_i16, i16s, i16_host, i16, u16);
of_signed!(methods_of_i32, i32s, i32_host, i32, u32);
of_signed!(methods_of_i64, i64s, i64_host, i64, u64);

/// What gives two values.
#[kernel]
fn over<T: Integer>(a: &[T], b: &[T], results: &mut [T], overs: &mut [u8]) {
    let i = thread_position_in_grid().x;
    let (sum, sum_over) = a[i].overflowing_add(b[i]);
    let (difference, difference_over) = a[i].overflowing_sub(b[i]);
    let (product, product_over) = a[i].overflowing_mul(b[i]);
    results[i * 3] = sum;
    results[i * 3 + 1] = difference;
    results[i * 3 + 2] = product;
    overs[i] = sum_over as u8 + difference_over as u8 * 2 + product_over as u8 * 4;
}

macro_rules! overflow {
    ($($ty:ident),*) => {$({
        let samples = [0, 1, 2, 5, 100, $ty::MAX, $ty::MIN, $ty::MAX / 2 + 1, $ty::MAX - 7, $ty::MIN / 2];
        let pairs = samples.iter().flat_map(|a| samples.iter().map(move |b| (*a, *b)));
        let (a, b): (Vec<$ty>, Vec<$ty>) = pairs.unzip();
        let (mut results, mut overs) = (vec![0; a.len() * 3], vec![0; a.len()]);
        over::<$ty>(Grid::threads(a.len() as u32), &a, &b, &mut results, &mut overs);
        for (i, (a, b)) in a.into_iter().zip(b).enumerate() {
            let all = [a.overflowing_add(b), a.overflowing_sub(b), a.overflowing_mul(b)];
            assert_eq!(results[i * 3..i * 3 + 3], all.map(|(result, _)| result), "{a} and {b}");
            let all = all.map(|(_, is_over)| u8::from(is_over));
            assert_eq!(overs[i], all[0] + all[1] * 2 + all[2] * 4, "{a} and {b}");
        }
    })*};
}

#[test]
fn what_wraps_says_so() {
    overflow!(i8, u8, i16, u16, i32, u32, i64, u64);
}

/// Numbers of 128 bits, as four words.
#[kernel]
fn wide(a: &[u32], b: &[u32], sum: &mut [u32], difference: &mut [u32], product: &mut [u32]) {
    let (mut carry, mut borrow, mut more) = (false, false, 0);
    for i in 0..4 {
        let (word, next) = a[i].carrying_add(b[i], carry);
        sum[i] = word;
        carry = next;
        let (word, next) = a[i].borrowing_sub(b[i], borrow);
        difference[i] = word;
        borrow = next;
        let (word, next) = a[i].carrying_mul(b[0], more);
        product[i] = word;
        more = next;
    }
}

#[test]
fn what_is_carried_goes_on() {
    let words = |n: u128| [0, 32, 64, 96].map(|by| (n >> by) as u32);
    let (a, b) = (
        0xffff_ffff_ffff_ffff_0000_0001_ffff_ffffu128,
        0x1_ffff_ffff_ffff_ffff_ffff_fff7u128,
    );
    let [mut sum, mut difference, mut product] = [[0; 4]; 3];
    let grid = Grid::threads(1);
    wide(
        grid,
        &words(a),
        &words(b),
        &mut sum,
        &mut difference,
        &mut product,
    );
    assert_eq!(sum, words(a.wrapping_add(b)));
    assert_eq!(difference, words(a.wrapping_sub(b)));
    assert_eq!(product, words(a.wrapping_mul(b & 0xffff_ffff)));
}

/// Where Rust panics there is an answer too.
#[kernel]
fn at_the_edges(x: &[i32], out: &mut [i64]) {
    let v = x[0];
    out[0] = v.ilog2() as i64 + v.ilog10() as i64 + v.ilog(10) as i64 + (v - 1).isqrt() as i64;
    out[1] = v.div_euclid(v) as i64 + v.rem_euclid(v) as i64 + 9i32.ilog(v + 1) as i64;
    out[2] = u32::MAX.next_power_of_two() as i64 + 7u32.next_multiple_of(v as u32) as i64;
    out[3] = i32::MIN.wrapping_abs() as i64;
}

#[test]
fn what_rust_has_no_answer_for_is_zero() {
    let mut out = [1; 4];
    at_the_edges(Grid::threads(1), &[0], &mut out);
    assert_eq!(out, [0, 0, 0, i64::from(i32::MIN)]);
}

/// Methods that Rust has had for a short time only.
#[kernel]
fn of_late(x: &[u8], y: &[i8], out: &mut [u8]) {
    out[0] = x[0].wrapping_sub_signed(y[0]);
    out[1] = x[0].saturating_sub_signed(y[0]);
    out[2] = x[0].saturating_sub_signed(y[1]);
    out[3] = x[1].saturating_sub_signed(y[1]);
    out[4] = x[2].is_multiple_of(7) as u8 * 4
        + x[2].is_multiple_of(5) as u8 * 2
        + x[2].is_multiple_of(0) as u8
        + x[3].is_multiple_of(0) as u8 * 8;
}

#[test]
fn methods_of_late_mean_what_rust_says() {
    let mut out = [0; 5];
    let (x, y) = ([250, 100, 14, 0], [-128, 127]);
    of_late(Grid::threads(1), &x, &y, &mut out);
    assert_eq!(out, [122, 255, 123, 0, 12]);
}

macro_rules! of_floats {
    ($test:ident, $kernel:ident, $ty:ident, $ulps:literal, {$($to:ident: |$u:ident, $n:ident| $value:expr;)*}) => {
        #[kernel(strict)]
        #[allow(clippy::too_many_arguments, reason = "one result each")]
        fn $kernel(a: &[$ty], b: &[$ty], $($to: &mut [$ty]),*) {
            let i = thread_position_in_grid().x;
            $(
                let ($u, $n) = (a[i], b[i]);
                $to[i] = $value;
            )*
        }

        #[test]
        fn $test() {
            let samples: &[$ty] = &[
                0.0, -0.0, 1.0, -1.0, 0.5, -2.75, 3.25, 1e-3, -1e-7, 27.0, 1e10, -123.456, $ty::MAX, $ty::MIN,
                $ty::MIN_POSITIVE, $ty::MIN_POSITIVE / 4.0, $ty::INFINITY, $ty::NEG_INFINITY, $ty::NAN, $ty::MAX / 3.0,
            ];
            let pairs = samples.iter().flat_map(|a| samples.iter().map(move |b| (*a, *b)));
            let (a, b): (Vec<$ty>, Vec<$ty>) = pairs.unzip();
            $(let mut $to: Vec<$ty> = vec![0.0; a.len()];)*
            let grid = Grid::threads(a.len() as u32);
            $kernel::check(grid, &a, &b, $(&mut $to),*).expect("a run").into_result().expect("no findings");
            $(for (i, (a, b)) in a.iter().zip(&b).enumerate() {
                let host = |$u: $ty, $n: $ty| -> $ty { $value };
                let (got, expected) = ($to[i], host(*a, *b));
                let (got_bits, expected_bits) = (got.to_bits().cast_signed(), expected.to_bits().cast_signed());
                let same = got.is_nan() && expected.is_nan() || got_bits.abs_diff(expected_bits) <= $ulps;
                assert!(same, "{} of {a} and {b}: {got:e}, not {expected:e}", stringify!($to));
            })*
        }
    };
}

macro_rules! exact {
    ($test:ident, $kernel:ident, $ty:ident) => {
        of_floats!($test, $kernel, $ty, 0, {
            quotient: |u, n| u.div_euclid(n);
            rest: |u, n| u.rem_euclid(n);
            half: |u, n| u.midpoint(n);
            sign: |u, _n| u.signum();
            signs: |u, _n| u.copysign(-1.0) * (u.is_sign_positive() as u8 as $ty) + u.is_subnormal() as u8 as $ty;
            up: |u, _n| u.next_up();
            down: |u, _n| u.next_down();
            angle: |u, _n| u.to_degrees();
            turn: |u, _n| u.to_radians();
        });
    };
}
exact!(exact_methods_of_f32, f32s, f32);
exact!(exact_methods_of_f64, f64s, f64);

macro_rules! near {
    ($test:ident, $kernel:ident, $ty:ident) => {
        of_floats!($test, $kernel, $ty, 4, {
            length: |u, n| u.hypot(n);
            cube_root: |u, _n| u.cbrt();
            less_one: |u, _n| u.exp_m1();
            more_one: |u, _n| u.ln_1p();
            of_base: |u, _n| u.abs().log(10.0);
        });
    };
}
near!(near_methods_of_f32, near_f32s, f32);
near!(near_methods_of_f64, near_f64s, f64);

#[kernel]
fn of_halves(x: &[f16], out: &mut [f16]) {
    let v = x[0];
    out[0] = v.hypot(x[1]);
    out[1] = (v * v * v).cbrt();
    out[2] = x[2].exp_m1();
    out[3] = x[2].ln_1p();
    out[4] = v.next_up();
    out[5] = v.pow(x[1] / x[1] + x[0] / x[0]);
}

#[test]
fn methods_of_f16() {
    let x = [3.0, 4.0, 1e-3].map(f16::from_f32);
    let mut out = [f16::ZERO; 6];
    of_halves(Grid::threads(1), &x, &mut out);
    let small = x[2].to_f32();
    let expected = [
        5.0,
        3.0,
        small.exp_m1(),
        small.ln_1p(),
        3.0 + f32::exp2(-9.0),
        9.0,
    ];
    assert_eq!(out, expected.map(f16::from_f32));
}
