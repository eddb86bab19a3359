//! An `fma` of `f32` that is rounded once, where the target's own rounds the product too; and sums whose own
//! terms are taken from them again, which compilers for GPUs cancel (Mesa's and NVIDIA's do): of `(a + b) - a`
//! they make `b`, and what rounding lost is what expansions (A10) ask for.
//!
//! Zeros, infinities and NaN come out as IEEE has them. In integers subnormals do too, as far as the target
//! leaves them alone on their way; in `f64` it may take them for 0 or make them 0.

use std::collections::{HashMap, HashSet};

use invar_ir::{InstKind, Kernel, Op, Scalar, Value};

use super::interface::Fma;

/// The function that stands for an `fma` of `f32`.
pub(super) const NAME: &str = "f32__fma";

/// The function that stands for a sum of `f32` that nothing is to cancel.
pub(super) const SUM: &str = "f32__sum";

/// What an `fma` of `f32` is called.
pub(super) fn function(fma: Fma) -> &'static str {
    match fma {
        Fma::Fused => "fma",
        Fma::InF64 | Fma::InIntegers => NAME,
    }
}

/// The function, where it is ours; nothing of the target's own.
pub(super) const fn text(fma: Fma) -> &'static str {
    match fma {
        Fma::Fused => "",
        Fma::InF64 => IN_F64,
        Fma::InIntegers => IN_INTEGERS,
    }
}

/// The function for sums.
pub(super) fn sum_text(fma: Fma) -> &'static str {
    match fma {
        Fma::Fused => SUM_BY_FMA,
        Fma::InF64 => SUM_IN_F64,
        Fma::InIntegers => SUM_IN_INTEGERS,
    }
}

/// What a term of a sum is, but for its sign.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Term {
    Value(Value),
    /// Constants are put together, whichever they are.
    Constant,
}

/// The sums of `f32` that stand in another sum beside one of their own terms.
pub(super) fn cancelling(kernel: &Kernel) -> HashSet<Value> {
    let mut terms: HashMap<Value, Term> = HashMap::new();
    let mut sums: HashMap<Value, [Term; 2]> = HashMap::new();
    let mut found = HashSet::new();
    kernel.for_each_inst(&mut |inst| {
        let Some(result) = inst.results.first().copied() else {
            return;
        };
        let term = |v: &Value| terms.get(v).copied().unwrap_or(Term::Value(*v));
        match &inst.kind {
            InstKind::Const(_) => {
                terms.insert(result, Term::Constant);
            }
            InstKind::Op { op, args, .. } => match (op, &args[..]) {
                (Op::Neg, [x]) => {
                    let term = term(x);
                    terms.insert(result, term);
                }
                (Op::Construct, all) if all.iter().all(|x| term(x) == Term::Constant) => {
                    terms.insert(result, Term::Constant);
                }
                (Op::Add | Op::Sub, [a, b]) if kernel.ty(result).scalar() == Some(Scalar::F32) => {
                    let own = [term(a), term(b)];
                    for (one, other) in [(own[0], own[1]), (own[1], own[0])] {
                        if let Term::Value(sum) = one
                            && sums.get(&sum).is_some_and(|of| of.contains(&other))
                        {
                            found.insert(sum);
                        }
                    }
                    sums.insert(result, own);
                }
                _other => {}
            },
            _other => {}
        }
    });
    found
}

/// The product of an `fma` by a 1 that no compiler knows.
const SUM_BY_FMA: &str = "\
fn f32__sum(a: f32, b: f32) -> f32 {
    // Rows are shorter than 2^31.
    let one = bitcast<f32>(0x3f800000u + (constants.row >> 31u));
    return fma(a, one, b);
}
";

/// An `f64` has more than twice the digits, so that rounding twice is as rounding once.
const SUM_IN_F64: &str = "\
fn f32__sum(a: f32, b: f32) -> f32 {
    return f32(f64(a) + f64(b));
}
";

const SUM_IN_INTEGERS: &str = "\
fn f32__sum(a: f32, b: f32) -> f32 {
    return f32__fma(a, 1.0, b);
}
";

/// The product is exact; the sum is rounded to odd, so that rounding it again is as rounding once.
/// (Boldo and Melquiond, Emulation of FMA and correctly rounded sums: proved algorithms using rounding to
/// odd, IEEE Transactions on Computers 57, 2008.) What a sum loses is exact by the smaller term; the terms are
/// told apart also because compilers cancel `(a + b) - a`.
const IN_F64: &str = "\
// a * b + c, rounded once.
fn f32__fma(a: f32, b: f32, c: f32) -> f32 {
    let product = f64(a) * f64(b);
    let term = f64(c);
    let sum = product + term;
    let swap = abs(term) > abs(product);
    let rest = select(term, product, swap) - (sum - select(product, term, swap));
    // A sum that is off by a rest becomes the neighbour whose last bit is one.
    let bits = bitcast<u64>(sum);
    let outward = (rest > f64(0.0)) == (sum > f64(0.0));
    let odd = bits + select(0xfffffffffffffffflu, 1lu, outward);
    let even = (bits & 1lu) == 0lu;
    return f32(bitcast<f64>(select(bits, odd, even && abs(rest) > f64(0.0))));
}
";

/// In 64 bits as two words: the product begins at bit 61 or 62 and the other term at 61; what the smaller one
/// loses is kept in its last bit.
const IN_INTEGERS: &str = "\
// high and low, of 64 bits, shifted right; the last bit tells whether anything was lost.
fn f32__fma_shift(high: u32, low: u32, by: u32) -> vec2<u32> {
    if (by == 0u) {
        return vec2<u32>(high, low);
    }
    if (by >= 64u) {
        return vec2<u32>(0u, select(0u, 1u, (high | low) != 0u));
    }
    let bits = by & 31u;
    let over = select(high << ((32u - bits) & 31u), 0u, bits == 0u);
    if (by >= 32u) {
        return vec2<u32>(0u, (high >> bits) | select(0u, 1u, (low | over) != 0u));
    }
    let lost = (low << (32u - bits)) != 0u;
    return vec2<u32>(high >> bits, over | (low >> bits) | select(0u, 1u, lost));
}

// The mantissa of a magnitude from its leading bit at 23 on, and the exponent that goes with it.
fn f32__fma_parts(size: u32) -> vec2<u32> {
    if (size >= 0x800000u) {
        return vec2<u32>((size & 0x7fffffu) | 0x800000u, size >> 23u);
    }
    let shift = countLeadingZeros(size | 1u) - 8u;
    return vec2<u32>(size << shift, 1u - shift);
}

// a * b + c, rounded once.
fn f32__fma(a: f32, b: f32, c: f32) -> f32 {
    let a_bits = bitcast<u32>(a);
    let b_bits = bitcast<u32>(b);
    let c_bits = bitcast<u32>(c);
    let a_size = a_bits & 0x7fffffffu;
    let b_size = b_bits & 0x7fffffffu;
    let c_size = c_bits & 0x7fffffffu;
    if (a_size - 1u >= 0x7f7fffffu || b_size - 1u >= 0x7f7fffffu) {
        // The product is exact.
        return a * b + c;
    }
    if (c_size >= 0x7f800000u) {
        return c;
    }
    let x = f32__fma_parts(a_size);
    let y = f32__fma_parts(b_size);
    let z = f32__fma_parts(c_size);
    let low = (x.x << 8u) * (y.x << 7u);
    let high = u32__mul_hi(x.x << 8u, y.x << 7u);
    // Exponents of the last bits. A term that is 0 has no place.
    let product_at = i32(x.y) + i32(y.y) - 315i;
    let term_at = select(i32(z.y) - 188i, product_at, c_size == 0u);
    let at = max(product_at, term_at);
    let product = f32__fma_shift(high, low, u32(at - product_at));
    let term = f32__fma_shift(z.x << 6u, 0u, u32(at - term_at));
    var sign = (a_bits ^ b_bits) & 0x80000000u;
    var sum = vec2<u32>(product.x + term.x, product.y + term.y);
    if (sign == (c_bits & 0x80000000u)) {
        sum.x += select(0u, 1u, sum.y < product.y);
    } else {
        let less = product.x < term.x || (product.x == term.x && product.y < term.y);
        let large = select(product, term, less);
        let small = select(term, product, less);
        sum = vec2<u32>(large.x - small.x - select(0u, 1u, large.y < small.y), large.y - small.y);
        sign = select(sign, c_bits & 0x80000000u, less);
    }
    if ((sum.x | sum.y) == 0u) {
        return 0.0;
    }
    // The leading bit to the upper end; of the lower word only whether it was 0.
    var exponent = at + 190i;
    if (sum.x == 0u) {
        sum = vec2<u32>(sum.y, 0u);
        exponent -= 32i;
    }
    let top = countLeadingZeros(sum.x);
    exponent -= i32(top);
    let over = select(sum.y >> ((32u - top) & 31u), 0u, top == 0u);
    var head = (sum.x << top) | over | select(0u, 1u, (sum.y << top) != 0u);
    if (exponent <= 0i) {
        let by = min(u32(1i - exponent), 31u);
        head = (head >> by) | select(0u, 1u, (head << (32u - by)) != 0u);
        exponent = 1i;
    }
    let up = ((head & 0xffu) + 0x7fu + ((head >> 8u) & 1u)) >> 8u;
    let bits = (u32(exponent - 1i) << 23u) + (head >> 8u) + up;
    return bitcast<f32>(sign | select(min(bits, 0x7f800000u), 0x7f800000u, exponent >= 255i));
}
";
