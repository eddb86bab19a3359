//! Floats packed into normalised integers and back, as the Metal Shading Language defines it.

use super::{components, number, vector_of};
use crate::builder::KernelBuilder;
use crate::inst::Value;
use crate::ops::{Imm, Swizzle};
use crate::types::{Scalar, Type};

/// Widths of the components in bits, the lowest first.
type Widths<'a> = &'a [u32];

const BYTES: Widths<'static> = &[8; 4];
const HALVES: Widths<'static> = &[16; 2];
const TENS: Widths<'static> = &[10, 10, 10, 2];

/// Where each component begins.
fn offsets(widths: Widths<'_>) -> Vec<u32> {
    (0..widths.len())
        .map(|k| widths[..k].iter().sum())
        .collect()
}

fn vector_of_integers(b: &mut KernelBuilder, scalar: Scalar, numbers: &[u32]) -> Value {
    let numbers: Vec<f64> = numbers.iter().map(|n| f64::from(*n)).collect();
    vector_of(b, scalar, &numbers)
}

/// The largest value of each component.
fn unsigned_scale(b: &mut KernelBuilder, widths: Widths<'_>) -> Value {
    let largest: Vec<f64> = widths.iter().map(|w| ((1_u32 << w) - 1).into()).collect();
    vector_of(b, Scalar::F32, &largest)
}

fn signed_scale(b: &mut KernelBuilder, widths: Widths<'_>) -> Value {
    let largest: Vec<f64> = widths
        .iter()
        .map(|w| ((1_u32 << (w - 1)) - 1).into())
        .collect();
    vector_of(b, Scalar::F32, &largest)
}

/// Puts the low bits of each component of a `u32` vector in their place.
fn join(b: &mut KernelBuilder, widths: Widths<'_>, levels: Value) -> Value {
    let masks: Vec<u32> = widths.iter().map(|w| (1_u32 << w) - 1).collect();
    let masks = vector_of_integers(b, Scalar::U32, &masks);
    let offsets = vector_of_integers(b, Scalar::U32, &offsets(widths));
    let bits = b.and(levels, masks);
    let bits = b.shl(bits, offsets);
    let parts = components(b, bits);
    parts[1..]
        .iter()
        .fold(parts[0], |all, part| b.or(all, *part))
}

/// `rint(x * largest)` of components from 0 to 1.
fn pack_unsigned(b: &mut KernelBuilder, widths: Widths<'_>, x: Value) -> Value {
    let scale = unsigned_scale(b, widths);
    let scaled = b.mul(x, scale);
    let rounded = b.rint(scaled);
    let levels = b.cast(rounded, Type::Vector(Scalar::U32, widths.len() as u8));
    join(b, widths, levels)
}

fn pack_unorm(b: &mut KernelBuilder, widths: Widths<'_>, x: Value) -> Value {
    let limited = b.saturate(x);
    pack_unsigned(b, widths, limited)
}

/// `rint(x * largest)` of components limited to -1 up to 1; a NaN stays one, and is cast to 0 (A5).
fn pack_snorm(b: &mut KernelBuilder, widths: Widths<'_>, x: Value) -> Value {
    let ty = b.ty(x);
    let [minus, one] = [-1.0, 1.0].map(|k| number(b, ty, k));
    let below = b.lt(x, minus);
    let x = b.select(x, minus, below);
    let above = b.gt(x, one);
    let x = b.select(x, one, above);
    let scale = signed_scale(b, widths);
    let scaled = b.mul(x, scale);
    let rounded = b.rint(scaled);
    let count = widths.len() as u8;
    let levels = b.cast(rounded, Type::Vector(Scalar::I32, count));
    let levels = b.as_type(levels, Type::Vector(Scalar::U32, count));
    join(b, widths, levels)
}

/// Each component of the bits as an unsigned number.
fn split_unsigned(b: &mut KernelBuilder, widths: Widths<'_>, bits: Value) -> Value {
    let count = widths.len() as u8;
    let all = b.construct(Type::Vector(Scalar::U32, count), &[bits]);
    let offsets = vector_of_integers(b, Scalar::U32, &offsets(widths));
    let masks: Vec<u32> = widths.iter().map(|w| (1_u32 << w) - 1).collect();
    let masks = vector_of_integers(b, Scalar::U32, &masks);
    let levels = b.shr(all, offsets);
    let levels = b.and(levels, masks);
    b.cast(levels, Type::Vector(Scalar::F32, count))
}

fn unpack_unorm(b: &mut KernelBuilder, widths: Widths<'_>, bits: Value) -> Value {
    let levels = split_unsigned(b, widths, bits);
    let scale = unsigned_scale(b, widths);
    b.div(levels, scale)
}

fn unpack_snorm(b: &mut KernelBuilder, widths: Widths<'_>, bits: Value) -> Value {
    let count = widths.len() as u8;
    let integers = Type::Vector(Scalar::I32, count);
    let bits = b.as_type(bits, Type::I32);
    let all = b.construct(integers, &[bits]);
    let above: Vec<u32> = offsets(widths)
        .iter()
        .zip(widths)
        .map(|(offset, width)| 32 - offset - width)
        .collect();
    let above = vector_of_integers(b, Scalar::I32, &above);
    let unused: Vec<u32> = widths.iter().map(|width| 32 - width).collect();
    let unused = vector_of_integers(b, Scalar::I32, &unused);
    let levels = b.shl(all, above);
    let levels = b.shr(levels, unused);
    let levels = b.cast(levels, Type::Vector(Scalar::F32, count));
    let scale = signed_scale(b, widths);
    let x = b.div(levels, scale);
    let ty = b.ty(x);
    let minus = number(b, ty, -1.0);
    b.fmax(x, minus)
}

/// Splits off the last component, which sRGB leaves as it is.
fn color_and_alpha(b: &mut KernelBuilder, x: Value) -> [Value; 2] {
    let [color, alpha] = ["xyz", "w"].map(|name| match Swizzle::parse(name) {
        Some(swizzle) => b.swizzle(x, swizzle),
        None => x,
    });
    [color, alpha]
}

fn with_alpha(b: &mut KernelBuilder, [color, alpha]: [Value; 2]) -> Value {
    b.construct(Type::Vector(Scalar::F32, 4), &[color, alpha])
}

/// `c < 0.0031308 ? 12.92 * c : 1.055 * c^(5/12) - 0.055`. With `q = c^(1/4)` the power is `q *
/// cbrt(q)^2`; the cube root of a `q` from 0.236 to 1 is the line `0.522 + q / 2`, 3 % off, and two
/// iterations of Halley's `y * (y^3 + 2q) / (2y^3 + q)`, which cube the error.
fn encode_srgb(b: &mut KernelBuilder, c: Value) -> Value {
    let ty = b.ty(c);
    let two = number(b, ty, 2.0);
    let root = b.sqrt(c);
    let q = b.sqrt(root);
    let [half, start] = [0.5, 0.522].map(|k| number(b, ty, k));
    let mut y = b.fma(half, q, start);
    for _ in 0..2 {
        let square = b.mul(y, y);
        let cube = b.mul(square, y);
        let above = b.fma(two, q, cube);
        let below = b.fma(two, cube, q);
        let ratio = b.div(above, below);
        y = b.mul(y, ratio);
    }
    let power = b.mul(y, y);
    let power = b.mul(power, q);
    let [scale, shift, slope, edge] = [1.055, -0.055, 12.92, 0.003_130_8].map(|k| number(b, ty, k));
    let curve = b.fma(scale, power, shift);
    let line = b.mul(slope, c);
    let low = b.lt(c, edge);
    b.select(curve, line, low)
}

/// With `c = level / 255`, `c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055)^(12/5)`, from integers
/// that f32 holds exactly: up to level 10 it is `10 * level / 32946`.
///
/// Above, with `t = (1000 * level + 14025) / 269025` the base, whose rounding error `r` is known
/// exactly, the power is `(t * t^(1/5))^2`. The fifth root of a `t` from 0.09 to 1 is the line `0.63 +
/// 0.42 * t`, 6 % off, and four iterations of Newton's `(4y + t / y^4) / 5`, which square the error. What
/// the root `y` still misses follows from `t - y^5`, computed with its rounding errors; it and `r`
/// correct the power to first order.
fn decode_srgb(b: &mut KernelBuilder, level: Value) -> Value {
    let ty = b.ty(level);
    let [times, plus, base] = [1000.0, 14025.0, 269_025.0].map(|k| number(b, ty, k));
    let above = b.fma(times, level, plus);
    let t = b.div(above, base);
    let minus_t = b.neg(t);
    let rest = b.fma(minus_t, base, above);
    let r = b.div(rest, above);
    let [slope, start, four, five] = [0.42, 0.63, 4.0, 5.0].map(|k| number(b, ty, k));
    let mut y = b.fma(slope, t, start);
    for _ in 0..4 {
        let square = b.mul(y, y);
        let fourth = b.mul(square, square);
        let ratio = b.div(t, fourth);
        let sum = b.fma(four, y, ratio);
        y = b.div(sum, five);
    }
    // y^4 as the sum of two floats.
    let two = number(b, ty, 2.0);
    let (square, square_low) = exact_product(b, y, y);
    let (fourth, fourth_low) = exact_product(b, square, square);
    let double = b.mul(two, square);
    let fourth_low = b.fma(double, square_low, fourth_low);
    let [fourth, fourth_low] = [fourth, fourth_low].map(|v| b.neg(v));
    let missing = b.fma(fourth, y, t);
    let missing = b.fma(fourth_low, y, missing);
    let missing = b.div(missing, t);
    // The true t is t(1 + r), its true root y(1 + (missing + r) / 5), and the power of the true t
    // (ty)^2 (1 + 2r + 2 (missing + r) / 5).
    let missing = b.add(missing, r);
    let fifths = number(b, ty, 0.4);
    let twice = b.add(r, r);
    let factor = b.fma(fifths, missing, twice);
    let (root, root_low) = exact_product(b, t, y);
    let power = b.mul(root, root);
    let low = b.mul(power, factor);
    let double = b.mul(two, root);
    let low = b.fma(double, root_low, low);
    let curve = b.fma(root, root, low);
    let [ten, below, last] = [10.0, 32946.0, 10.0].map(|k| number(b, ty, k));
    let line = b.mul(ten, level);
    let line = b.div(line, below);
    let low = b.le(level, last);
    b.select(curve, line, low)
}

/// `x * y` rounded, and what the rounding lost.
fn exact_product(b: &mut KernelBuilder, x: Value, y: Value) -> (Value, Value) {
    let product = b.mul(x, y);
    let minus = b.neg(product);
    (product, b.fma(x, y, minus))
}

macro_rules! packing {
    ($($name:ident => $function:ident($widths:expr);)*) => {$(
        #[doc = concat!("`", stringify!($function), "` of ", stringify!($widths), ".")]
        pub(crate) fn $name(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
            $function(b, $widths, args[0])
        }
    )*};
}
packing! {
    pack_unorm4x8 => pack_unorm(BYTES);
    pack_snorm4x8 => pack_snorm(BYTES);
    pack_unorm2x16 => pack_unorm(HALVES);
    pack_snorm2x16 => pack_snorm(HALVES);
    pack_unorm10a2 => pack_unorm(TENS);
    unpack_unorm4x8 => unpack_unorm(BYTES);
    unpack_snorm4x8 => unpack_snorm(BYTES);
    unpack_unorm2x16 => unpack_unorm(HALVES);
    unpack_snorm2x16 => unpack_snorm(HALVES);
    unpack_unorm10a2 => unpack_unorm(TENS);
}

/// Limited, encoded but for the last component, and packed.
pub(crate) fn pack_srgb_unorm4x8(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    let limited = b.saturate(args[0]);
    let [color, alpha] = color_and_alpha(b, limited);
    let color = encode_srgb(b, color);
    let encoded = with_alpha(b, [color, alpha]);
    pack_unsigned(b, BYTES, encoded)
}

/// The levels, decoded but for the last component, which is divided by 255.
pub(crate) fn unpack_srgb_unorm4x8(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    let levels = split_unsigned(b, BYTES, args[0]);
    let [color, alpha] = color_and_alpha(b, levels);
    let color = decode_srgb(b, color);
    let largest = number(b, Type::F32, 255.0);
    let alpha = b.div(alpha, largest);
    with_alpha(b, [color, alpha])
}
