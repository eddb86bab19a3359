"""Derives every coefficient of crates/ir/src/expand/coefficients.rs.

    python3 scripts/coefficients.py            writes the file
    python3 scripts/coefficients.py --check    fails if the file is not what it would write

Needs rustfmt, and mpmath (gmpy2 makes it faster). Each polynomial fits the function that its line
names, by least squares over Chebyshev points, which comes within a bit of the minimax polynomial. The coefficients are rounded to the format one after another from the lowest order
up, and those still free are fitted again after each rounding, so that they absorb its error. What is
left is printed beside each polynomial: the largest error of the polynomial times the weight that turns
it into a relative error of the function.
"""

import pathlib
import subprocess
import sys

import mpmath as mp

FILE = pathlib.Path(__file__).resolve().parent.parent / "crates" / "ir" / "src" / "expand" / "coefficients.rs"

mp.mp.prec = 320

LN2 = mp.log(2)


def round_to(x, bits):
    """`x` rounded to nearest even with `bits` bits of precision."""
    with mp.workprec(bits):
        return +mp.mpf(x)


def least_squares(points, targets, weights, powers):
    """Coefficients c that minimise the sum of (weight * (target - sum c_k u^powers[k]))^2 over the points."""
    columns = [[w * u**k for u, w in zip(points, weights)] for k in powers]
    right = [w * t for t, w in zip(targets, weights)]
    normal = mp.matrix([[mp.fdot(a, b) for b in columns] for a in columns])
    return mp.lu_solve(normal, mp.matrix([mp.fdot(a, right) for a in columns]))


def fit(target, weight, low, high, count, bits):
    """The rounded coefficients, lowest order first, and the largest weighted error that is left."""
    size = 8 * count
    middle, radius = (mp.mpf(low) + high) / 2, (mp.mpf(high) - low) / 2
    points = [middle - radius * mp.cos(mp.pi * (k + mp.mpf(1) / 2) / size) for k in range(size)]
    weights = [weight(u) for u in points]
    exact = [target(u) for u in points]
    left = exact
    rounded = []
    for order in range(count):
        free = least_squares(points, left, weights, range(order, count))
        rounded.append(round_to(free[0], bits))
        left = [t - rounded[-1] * u**order for t, u in zip(left, points)]
    return rounded, max(abs(w * e) for w, e in zip(weights, left))


def after(function, *taken):
    """What is left of `function(u)` after the terms taken[0] + taken[1] u + ..., divided by u^len(taken)."""
    return lambda u: (function(u) - mp.polyval(list(taken)[::-1], u)) / u ** len(taken)


def odd(function):
    """`function(r) / r` in terms of u = r*r."""
    return lambda u: function(mp.sqrt(u)) / mp.sqrt(u)


def relative(function, order):
    """The weight with which the polynomial that multiplies u^order contributes to `function(u)`, relatively."""
    return lambda u: u**order / function(u)


def split(value, bits, parts):
    """`value` as an unevaluated sum of `parts` numbers of the format."""
    result = []
    for _ in range(parts):
        result.append(round_to(value, bits))
        value -= result[-1]
    return result


def polynomials(bits):
    """(name, doc, target, weight, low, high, number of terms) of every polynomial for the format."""
    single = bits == 24

    def terms(f32, f64):
        return f32 if single else f64

    margin = 1 + mp.mpf(2) ** -8
    half = LN2 / 2 * margin
    root = mp.sqrt(mp.mpf(1) / 2)
    log_of = lambda scale: (lambda f: mp.log1p(f) * scale / f)
    log2_hi, log2_lo = split(1 / LN2, bits, 2)
    log10_hi, log10_lo = split(1 / mp.log(10), bits, 2)
    pi_hi, pi_lo = split(mp.pi, bits, 2)
    pow_c0 = 2 / LN2
    pow_c0 = sum(split(pow_c0, bits, 2))
    pow_c1 = sum(split(2 / LN2 / 3, bits, 2))
    pow_log = lambda t: mp.log((1 + mp.sqrt(t)) / (1 - mp.sqrt(t))) / LN2 / mp.sqrt(t)
    pow_high = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * margin
    # Where exp(ERFC_LOG) takes over from ERF, and where erf rounds to one.
    erf_split, erf_end = mp.mpf(1), terms(mp.mpf("4.0"), mp.mpf("6.0"))
    tiny = mp.mpf(2) ** -40
    return [
        ("exp", "exp(r) = 1 + r + r^2 P(r), |r| <= ln(2)/2", after(mp.exp, 1, 1), relative(mp.exp, 2), -half, half, terms(5, 10)),
        ("exp2", "2^r = 1 + r P(r), |r| <= 1/2", after(lambda r: mp.mpf(2) ** r, 1), relative(lambda r: mp.mpf(2) ** r, 1), -margin / 2, margin / 2, terms(6, 11)),
        ("exp10", "10^r = 1 + r P(r), |r| <= log10(2)/2", after(lambda r: mp.mpf(10) ** r, 1), relative(lambda r: mp.mpf(10) ** r, 1), -half / mp.log(10), half / mp.log(10), terms(6, 11)),
        ("log", "log(1 + f) = f + f^2 P(f), sqrt(1/2) <= 1 + f <= sqrt(2)", after(log_of(1), 1), relative(log_of(1), 1), root - 1, 1 / root - 1, terms(9, 20)),
        ("log2", "log2(1 + f) = f (log2_e + f P(f)), sqrt(1/2) <= 1 + f <= sqrt(2)", after(log_of(1 / LN2), log2_hi + log2_lo), relative(log_of(1 / LN2), 1), root - 1, 1 / root - 1, terms(9, 20)),
        ("log10", "log10(1 + f) = f (log10_e + f P(f)), sqrt(1/2) <= 1 + f <= sqrt(2)", after(log_of(1 / mp.log(10)), log10_hi + log10_lo), relative(log_of(1 / mp.log(10)), 1), root - 1, 1 / root - 1, terms(9, 21)),
        ("pow_log2", "log2((1 + s)/(1 - s)) = s (pow_c0 + t (pow_c1 + t P(t))), t = s^2 <= (sqrt(2) - 1)^4", after(pow_log, pow_c0, pow_c1), relative(pow_log, 2), tiny, pow_high, terms(3, 8)),
        ("sin", "sin(r) = r + r u P(u), u = r^2 <= (pi/2)^2", after(odd(mp.sin), 1), relative(odd(mp.sin), 1), tiny, (mp.pi / 2 * margin) ** 2, terms(4, 9)),
        ("sinpi", "sin(pi r) = r (pi + u P(u)), u = r^2 <= 1/16", after(odd(mp.sinpi), pi_hi + pi_lo), relative(odd(mp.sinpi), 1), tiny, mp.mpf(1) / 16, terms(3, 7)),
        ("cospi", "cos(pi r) = 1 + u P(u), u = r^2 <= 1/16", after(lambda u: mp.cospi(mp.sqrt(u)), 1), relative(lambda u: mp.cospi(mp.sqrt(u)), 1), tiny, mp.mpf(1) / 16, terms(4, 8)),
        ("tan", "tan(r) = r + r u P(u), u = r^2 <= (pi/4)^2", after(odd(mp.tan), 1), relative(odd(mp.tan), 1), tiny, (mp.pi / 4 * margin) ** 2, terms(7, 15)),
        ("tanpi", "tan(pi r) = r (pi + u P(u)), u = r^2 <= 1/16", after(odd(lambda r: mp.tan(mp.pi * r)), pi_hi + pi_lo), relative(odd(lambda r: mp.tan(mp.pi * r)), 1), tiny, mp.mpf(1) / 16, terms(7, 15)),
        ("asin", "asin(r) = r + r u P(u), u = r^2 <= 1/4", after(odd(mp.asin), 1), relative(odd(mp.asin), 1), tiny, mp.mpf(1) / 4, terms(5, 13)),
        ("atan", "atan(r) = r + r u P(u), u = r^2 <= 1", after(odd(mp.atan), 1), relative(odd(mp.atan), 1), tiny, mp.mpf(1), terms(9, 20)),
        ("sinh", "sinh(r) = r + r u P(u), u = r^2 <= 1", after(odd(mp.sinh), 1), relative(odd(mp.sinh), 1), tiny, mp.mpf(1), terms(3, 7)),
        ("tanh", "tanh(r) = r + r u P(u), u = r^2 <= 0.36", after(odd(mp.tanh), 1), relative(odd(mp.tanh), 1), tiny, mp.mpf("0.36"), terms(5, 11)),
        ("erf", "erf(r) = r + r P(u), u = r^2 <= 1", lambda u: odd(mp.erf)(u) - 1, lambda u: 1 / odd(mp.erf)(u), tiny, erf_split**2, terms(7, 13)),
        ("erfc_log", "1 - erf(r) = exp(P(r)), 1 <= r, up to where erf rounds to 1", lambda r: mp.log(mp.erfc(r)), lambda r: mp.erfc(r) / mp.erf(r), erf_split, erf_end, terms(6, 17)),
    ]


def product(value, bits):
    """Two numbers of the format whose product is nearer to `value` than any one number by far."""
    unit = 2 ** (bits - 1)
    _, a = min((abs((a * mp.nint(value * unit * unit / a) / (value * unit * unit)) - 1), a) for a in range(unit, unit + 2**16))
    return [mp.mpf(a) / unit, mp.nint(value * unit * unit / a) / unit]


def constants(bits):
    """(name, doc, values) of the constants that need more than one number of the format."""
    return [
        ("ln_2", "ln(2)", split(LN2, bits, 2)),
        ("log2_e", "log2(e)", split(1 / LN2, bits, 2)),
        ("log2_10", "log2(10)", split(mp.log(10) / LN2, bits, 1)),
        ("log10_2", "log10(2)", split(LN2 / mp.log(10), bits, 2)),
        ("log10_e", "log10(e)", split(1 / mp.log(10), bits, 2)),
        ("pow_c0", "2 log2(e)", split(2 / LN2, bits, 2)),
        ("pow_c1", "2 log2(e) / 3", split(2 / LN2 / 3, bits, 2)),
        ("pi", "pi", split(mp.pi, bits, 3)),
        ("half_pi", "pi / 2", split(mp.pi / 2, bits, 3)),
        ("half_pi_past_three_halves", "pi / 2 - 3 / 2", split(mp.pi / 2 - mp.mpf(3) / 2, bits, 1)),
        ("half_pi_product", "pi / 2, as a product of two", product(mp.pi / 2, bits)),
        ("inv_pi", "1 / pi", split(1 / mp.pi, bits, 1)),
        ("two_over_pi", "2 / pi", split(2 / mp.pi, bits, 1)),
    ]


HEADER = """//! The numbers that the expansions are made of, as `scripts/coefficients.py` derives them; do not edit.
//!
//! Every value is one of the format it belongs to, written as a binary64 literal.
//! A polynomial's coefficients stand lowest order first.
#![allow(
    clippy::approx_constant,
    clippy::unreadable_literal,
    reason = "a generated table: each digit is what the format holds"
)]
"""


def text():
    lines = []
    formats = []
    docs = []
    for bits in (24, 53):
        fields = []
        for name, doc, values in constants(bits):
            docs.append((name, len(values), f"{doc}, as a sum of {len(values)}" if len(values) > 1 and "product" not in doc else doc))
            fields.append((name, values, None))
        for name, doc, *rest in polynomials(bits):
            values, error = fit(*rest, bits)
            docs.append((name, 0, doc))
            fields.append((name, values, error))
        formats.append(fields)
    lines.append(HEADER)
    lines.append("/// The constants and polynomials of one float format.")
    lines.append("#[derive(Debug)]")
    lines.append("pub(super) struct Coefficients {")
    for name, count, doc in docs[: len(docs) // 2]:
        shape = "&'static [f64]" if count == 0 else "f64" if count == 1 else f"[f64; {count}]"
        lines.append(f"    /// {doc}.")
        lines.append(f"    pub(super) {name}: {shape},")
    lines.append("}")
    for title, doc, fields in zip(("F32", "F64"), ("binary32", "binary64"), formats):
        lines.append(f"\n/// For {doc}.")
        lines.append(f"pub(super) static {title}: Coefficients = Coefficients {{")
        for name, values, error in fields:
            if error is not None:
                lines.append("    // largest weighted error 2^%.1f" % float(mp.log(error, 2)))
            literals = [repr(float(v)) for v in values]
            assert all(float(v) == v for v in values)
            if error is None and len(values) == 1:
                lines.append(f"    {name}: {literals[0]},")
            else:
                lines.append(f"    {name}: {'&' if error is not None else ''}[")
                for literal in literals:
                    lines.append(f"        {literal},")
                lines.append("    ],")
        lines.append("};")
    # Enough for the largest binary64 exponent, 1023, plus three words.
    words = 19
    with mp.workprec(64 * words + 64):
        fraction = int(mp.floor(mp.ldexp(1 / mp.pi, 64 * (words - 1))))
    lines.append("\n/// The binary digits of 1/pi, 64 to a word, the first below the point; a word of zeros leads.")
    lines.append(f"pub(super) static INV_PI_DIGITS: [u64; {words}] = [")
    for k in range(words):
        lines.append("    0x%016x," % (fraction >> (64 * (words - 1 - k)) & (2**64 - 1)))
    lines.append("];")
    unformatted = "\n".join(lines) + "\n"
    return subprocess.run(
        ["rustfmt", "--edition", "2024"], input=unformatted, capture_output=True, text=True, check=True
    ).stdout


def main():
    if "--check" not in sys.argv[1:]:
        FILE.write_text(text())
    elif FILE.read_text() != text():
        sys.exit(f"{FILE.name} is not what scripts/coefficients.py writes")


if __name__ == "__main__":
    main()
