"""Writes tests/data/golden/*.txt: what the arithmetic and the math functions must give.

    python3 scripts/golden.py            writes the files
    python3 scripts/golden.py --check    fails if the files are not what it would write

Every value is computed here from the definitions, with exact fractions or with mpmath at high
precision, and knows nothing of the implementation. The files' format is described in
tests/data/golden/README.md. Needs mpmath (gmpy2 makes it faster); the random points are seeded.
"""

import pathlib
import random
import sys
from fractions import Fraction

import mpmath as mp

mp.mp.prec = 2600
ROOT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / "golden"
NAN, INF = "nan", "inf"


class Format:
    """A binary float format. A value is a Fraction, or one of the specials below."""

    def __init__(self, name, bits, precision):
        self.name, self.bits, self.precision = name, bits, precision
        self.max_exponent = (1 << (bits - precision - 1)) - 1
        self.min_exponent = 1 - self.max_exponent
        self.fraction_bits = precision - 1
        self.sign = 1 << (bits - 1)
        self.infinity = (2 * self.max_exponent + 1) << self.fraction_bits
        self.quiet_nan = self.infinity | 1 << (self.fraction_bits - 1)
        self.largest = self.infinity - 1
        self.normal = 1 << self.fraction_bits
        self.one = self.max_exponent << self.fraction_bits

    def decode(self, pattern):
        """A pattern's value: a `Value`."""
        negative = bool(pattern & self.sign)
        magnitude = pattern & (self.sign - 1)
        if magnitude > self.infinity:
            return Value(NAN)
        if magnitude == self.infinity:
            return Value(INF, negative)
        exponent = max(magnitude >> self.fraction_bits, 1)
        mantissa = magnitude - ((exponent - 1) << self.fraction_bits)
        power = exponent - self.max_exponent - self.fraction_bits
        return Value(Fraction(mantissa) * Fraction(2) ** power, negative)

    def encode(self, value):
        """The nearest pattern, ties to even, and what is missing to the exact value, in units of the
        last place of that exact value; None for NaN."""
        if value.kind == NAN:
            return None, Fraction(0)
        sign = self.sign if value.negative else 0
        if value.kind == INF:
            return sign | self.infinity, Fraction(0)
        x = value.magnitude
        if x == 0:
            return sign, Fraction(0)
        exponent = x.numerator.bit_length() - x.denominator.bit_length()
        if Fraction(2) ** exponent > x:
            exponent -= 1
        exponent = max(exponent, self.min_exponent)
        scaled = x / Fraction(2) ** (exponent - self.fraction_bits)
        floor = scaled.numerator // scaled.denominator
        rest = scaled - floor
        rounded = floor + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and floor & 1))
        # A mantissa that rounds up to the next power of two carries into the exponent by itself.
        pattern = ((exponent - self.min_exponent) << self.fraction_bits) + rounded
        if pattern >= self.infinity:
            return sign | self.infinity, Fraction(0)
        return sign | pattern, (scaled - rounded) * (-1 if value.negative else 1)


class Value:
    """An exact number with a sign of its own for zeros, an infinity, or NaN."""

    def __init__(self, magnitude, negative=False):
        self.kind = magnitude if isinstance(magnitude, str) else "finite"
        if self.kind == "finite":
            magnitude = Fraction(magnitude)
            negative = negative if magnitude == 0 else negative != (magnitude < 0)
            magnitude = abs(magnitude)
        self.magnitude, self.negative = magnitude, negative

    @property
    def number(self):
        return -self.magnitude if self.negative else self.magnitude

    def is_zero(self):
        return self.kind == "finite" and self.magnitude == 0

    def negated(self):
        return Value(self.magnitude, not self.negative) if self.kind != NAN else self


F16, BF16, F32, F64 = Format("f16", 16, 11), Format("bf16", 16, 8), Format("f32", 32, 24), Format("f64", 64, 53)
FORMATS = [F32, F64, F16, BF16]
INTEGERS = {f"{sign}{bits}": (bits, sign == "i") for bits in (8, 16, 32, 64) for sign in "iu"}


# ---- the basic operations, by exact fractions ----

def signed_sum(terms):
    """The sum of exact terms; an exact zero is -0 only if every term is -0 (round to nearest)."""
    total = sum((t.number for t in terms), Fraction(0))
    return Value(total, total == 0 and all(t.is_zero() and t.negative for t in terms))


def add(a, b):
    if NAN in (a.kind, b.kind):
        return Value(NAN)
    if a.kind == INF or b.kind == INF:
        if a.kind == b.kind and a.negative != b.negative:
            return Value(NAN)
        return a if a.kind == INF else b
    return signed_sum([a, b])


def sub(a, b):
    return add(a, b.negated())


def mul(a, b):
    if NAN in (a.kind, b.kind):
        return Value(NAN)
    negative = a.negative != b.negative
    if INF in (a.kind, b.kind):
        return Value(NAN) if a.is_zero() or b.is_zero() else Value(INF, negative)
    return Value(a.magnitude * b.magnitude, negative)


def div(a, b):
    negative = a.negative != b.negative
    if NAN in (a.kind, b.kind) or (a.kind == INF and b.kind == INF) or (a.is_zero() and b.is_zero()):
        return Value(NAN)
    if a.kind == INF or b.is_zero():
        return Value(INF, negative)
    return Value(0, negative) if b.kind == INF else Value(a.magnitude / b.magnitude, negative)


def fma(a, b, c):
    return add(mul(a, b), c)


def fmod(a, b):
    if NAN in (a.kind, b.kind) or a.kind == INF or b.is_zero():
        return Value(NAN)
    return a if b.kind == INF else Value(a.magnitude % b.magnitude, a.negative)


def fmin(a, b):
    if NAN in (a.kind, b.kind):
        return b if a.kind == NAN else a
    return a if order(a) <= order(b) else b


def fmax(a, b):
    if NAN in (a.kind, b.kind):
        return b if a.kind == NAN else a
    return a if order(a) >= order(b) else b


def order(x):
    """A key in the order of A7, where -0 is less than +0."""
    magnitude = Fraction(2) ** 2000 if x.kind == INF else x.magnitude
    return (-magnitude if x.negative else magnitude, not x.negative)


def to_integer(rule):
    def apply(x):
        return x if x.kind != "finite" else Value(abs(rule(x.number)), x.negative)
    return apply


def round_half_even(x):
    return Fraction(round(x))


def round_half_away(x):
    return Fraction(int(abs(x) + Fraction(1, 2))) * (1 if x >= 0 else -1)


def square_root(x):
    if x.kind == NAN or x.is_zero():
        return x
    if x.negative:
        return Value(NAN)
    if x.kind == INF:
        return x
    # A power of four makes the root an integer with enough digits; the last one stands for the rest.
    shift = 2200
    scaled = x.magnitude * 4**shift
    root = mp.libmp.isqrt(scaled.numerator // scaled.denominator)
    exact = root * root == scaled
    return Value(Fraction(2 * int(root) + (0 if exact else 1), 2 ** (shift + 1)))


def fract(fmt):
    """x - floor(x), but the largest value below one where that would round to one."""

    def apply(x):
        if x.kind != "finite":
            return Value(NAN)
        rest, _ = fmt.encode(Value(x.number - (x.number.numerator // x.number.denominator)))
        return fmt.decode(min(rest, fmt.one - 1))

    return apply


# ---- the math functions, by mpmath ----

def number(x):
    """An mpmath number as a fraction."""
    sign, mantissa, exponent, _ = x._mpf_
    return Fraction(-int(mantissa) if sign else int(mantissa)) * Fraction(2) ** exponent


def real(fraction):
    return mp.mpf(fraction.numerator) / fraction.denominator


def snapped(result):
    """`result` with an error far below what any tie could be, rounded to a short number if it is next to one."""
    fraction = number(result)
    if fraction == 0:
        return fraction
    scale = Fraction(2) ** (56 - mp.mag(result) + 4)
    nearest = Fraction(round(fraction * scale)) / scale
    return nearest if abs(nearest - fraction) < abs(fraction) / 2**200 else fraction


def by_mpmath(function, at_zero=None, at_infinity=(None, None), domain=lambda x: True, odd=False):
    """A function of one argument. `at_zero` and `at_infinity` (plus, minus) give specials: a Value, a
    function of the argument, or None for NaN (at zero: for `function` itself)."""

    def apply(x):
        if x.kind == NAN:
            return x
        if x.kind == INF:
            special = at_infinity[x.negative]
            return Value(NAN) if special is None else special
        if x.is_zero() and at_zero is not None:
            return at_zero(x)
        if not domain(x.number):
            return Value(NAN)
        result = function(real(x.number))
        return result if isinstance(result, Value) else Value(snapped(result))

    return apply


def same(x):
    return x


def signed_infinity(x):
    return Value(INF, x.negative)


def constant(value):
    return Value(snapped(mp.mpf(value)))


PLUS, MINUS, ZERO, ONE = Value(INF), Value(INF, True), Value(0), Value(1)


def limited(function):
    """Keeps mpmath from computing numbers that no format can tell from 0 or infinity."""

    def apply(x):
        if x > 20000:
            return mp.mpf(2) ** 20000
        if x < -20000:
            return mp.mpf(2) ** -20000
        return function(x)

    return apply


def odd_limited(function):
    return lambda x: function(x) if abs(x) < 20000 else mp.sign(x) * mp.mpf(2) ** 20000


def erf_near_one(x):
    if abs(x) > 30:
        return mp.sign(x) * (1 - mp.mpf(2) ** -300)
    return mp.erf(x)


def tanh_near_one(x):
    return mp.tanh(x) if abs(x) < 200 else mp.sign(x) * (1 - mp.mpf(2) ** -300)


def half_turns(x, integer, half, otherwise):
    """Splits off the arguments of sinpi and its like where the result is exact."""
    doubled = number(x) * 2
    if doubled.denominator == 1:
        n = doubled.numerator
        return half((n - 1) // 2, n) if n & 1 else integer(n // 2, n)
    return otherwise(mp.mpf(x) % 2 if x >= 0 else -((-x) % 2))


def sinpi(x):
    return half_turns(
        x, lambda k, n: Value(0, n < 0), lambda k, n: Value(-1 if k & 1 else 1), lambda r: mp.sinpi(r)
    )


def cospi(x):
    return half_turns(x, lambda k, n: Value(-1 if k & 1 else 1), lambda k, n: ZERO, lambda r: mp.cospi(r))


def tanpi(x):
    # At k: +0 for even k >= 0, -0 for odd; at k + 1/2: +infinity for even k, -infinity for odd; odd in x.
    if x < 0:
        result = tanpi(-x)
        return result.negated() if isinstance(result, Value) else -result
    return half_turns(
        x, lambda k, n: Value(0, bool(k & 1)), lambda k, n: Value(INF, bool(k & 1)),
        lambda r: mp.sinpi(r) / mp.cospi(r),
    )


UNARY = {
    "exp": by_mpmath(limited(mp.exp), at_infinity=(PLUS, ZERO)),
    "exp2": by_mpmath(limited(lambda x: mp.power(2, x)), at_infinity=(PLUS, ZERO)),
    "exp10": by_mpmath(limited(lambda x: mp.power(10, x)), at_infinity=(PLUS, ZERO)),
    "log": by_mpmath(mp.log, lambda x: MINUS, (PLUS, None), lambda x: x > 0),
    "log2": by_mpmath(lambda x: mp.log(x, 2), lambda x: MINUS, (PLUS, None), lambda x: x > 0),
    "log10": by_mpmath(lambda x: mp.log(x, 10), lambda x: MINUS, (PLUS, None), lambda x: x > 0),
    "sin": by_mpmath(mp.sin, same),
    "cos": by_mpmath(mp.cos),
    "tan": by_mpmath(mp.tan, same),
    "sinpi": by_mpmath(sinpi, same),
    "cospi": by_mpmath(cospi),
    "tanpi": by_mpmath(tanpi, same),
    "asin": by_mpmath(mp.asin, same, domain=lambda x: abs(x) <= 1),
    "acos": by_mpmath(mp.acos, domain=lambda x: abs(x) <= 1),
    "atan": by_mpmath(mp.atan, same, (Value(number(mp.pi / 2)), Value(number(-mp.pi / 2)))),
    "sinh": by_mpmath(odd_limited(mp.sinh), same, (PLUS, MINUS)),
    "cosh": by_mpmath(lambda x: limited(mp.cosh)(abs(x)), at_infinity=(PLUS, PLUS)),
    "tanh": by_mpmath(tanh_near_one, same, (ONE, Value(-1))),
    "asinh": by_mpmath(mp.asinh, same, (PLUS, MINUS)),
    "acosh": by_mpmath(mp.acosh, at_infinity=(PLUS, None), domain=lambda x: x >= 1),
    "atanh": by_mpmath(
        lambda x: Value(INF, x < 0) if abs(x) == 1 else mp.atanh(x), same, domain=lambda x: abs(x) <= 1
    ),
    "erf": by_mpmath(erf_near_one, same, (ONE, Value(-1))),
    "rsqrt": by_mpmath(lambda x: 1 / mp.sqrt(x), signed_infinity, (ZERO, None), lambda x: x > 0),
}


def is_odd_integer(y):
    return y.kind == "finite" and y.number.denominator == 1 and bool(y.number.numerator & 1)


def positive_power(x, y):
    """x^y for finite positive x and finite y, limited to what formats can tell apart."""
    if x == 1 or y == 0:
        return Value(1)
    exponent = real(y) * mp.log(real(x), 2)
    if abs(exponent) > 20000:
        return Value(Fraction(2) ** (20000 if exponent > 0 else -20000))
    return Value(snapped(mp.power(real(x), real(y))))


def pow_(x, y):
    """C99 F.9.4.4."""
    if y.is_zero() or (x.kind == "finite" and x.number == 1):
        return ONE
    if NAN in (x.kind, y.kind):
        return Value(NAN)
    if y.kind == INF:
        if x.kind == "finite" and x.magnitude == 1:
            return ONE
        large = x.kind == INF or x.magnitude > 1
        return ZERO if large == y.negative else PLUS
    negative = x.negative and is_odd_integer(y)
    if x.kind == INF or x.is_zero():
        return Value(0 if (x.kind == INF) == y.negative else INF, negative)
    if x.negative and y.number.denominator != 1:
        return Value(NAN)
    result = positive_power(x.magnitude, y.number)
    return result.negated() if negative else result


def powr(x, y):
    """IEEE 754-2019 9.2.1: exp(y log(x))."""
    if NAN in (x.kind, y.kind) or (x.negative and not x.is_zero()):
        return Value(NAN)
    if x.is_zero() or x.kind == INF:
        if y.is_zero():
            return Value(NAN)
        return ZERO if (x.kind == INF) == y.negative else PLUS
    if y.kind == INF:
        if x.magnitude == 1:
            return Value(NAN)
        return ZERO if (x.magnitude > 1) == y.negative else PLUS
    return positive_power(x.magnitude, y.number)


def atan2(y, x):
    if NAN in (x.kind, y.kind):
        return Value(NAN)
    if y.is_zero():
        angle = mp.pi if x.negative else mp.mpf(0)
    elif y.kind == INF:
        angle = (3 * mp.pi / 4 if x.negative else mp.pi / 4) if x.kind == INF else mp.pi / 2
    elif x.kind == INF:
        angle = mp.pi if x.negative else mp.mpf(0)
    else:
        angle = mp.atan2(real(y.magnitude), real(x.number))
    return Value(number(+angle), y.negative)


# ---- points ----

def edges(fmt):
    """Patterns where things happen, of both signs, and NaN."""
    exact = [0, 1, 2, fmt.normal - 1, fmt.normal, fmt.normal + 1, fmt.largest, fmt.largest - 1, fmt.infinity]
    near = [Fraction(1, 2), 1, 2, Fraction(3, 2), Fraction(5, 2), 3, 4, 5, 10, 100]
    for value in near:
        pattern = fmt.encode(Value(Fraction(value)))[0]
        exact += [pattern - 1, pattern, pattern + 1]
    exact += [fmt.encode(Value(Fraction(2) ** fmt.fraction_bits + d))[0] for d in (-1, Fraction(-1, 2), 0, 1)]
    return [p | s for p in exact for s in (0, fmt.sign)] + [fmt.quiet_nan]


def uniform(fmt, rng, low, high):
    return fmt.encode(Value(Fraction(rng.uniform(low, high))))[0]


def spread(fmt, rng, low, high):
    """Of either sign, the exponent uniform in [low, high]."""
    exponent = rng.randint(max(low, fmt.min_exponent), min(high, fmt.max_exponent))
    magnitude = ((exponent + fmt.max_exponent) << fmt.fraction_bits) | rng.getrandbits(fmt.fraction_bits)
    return magnitude | rng.choice((0, fmt.sign))


# For each function where its arguments lie: (low, high), and a range of exponents of either sign.
RANGES = {
    "exp": ((-745, 710), (-30, 10)), "exp2": ((-1075, 1024), (-30, 10)), "exp10": ((-324, 309), (-30, 9)),
    "log": ((0, 4), (-1022, 1023)), "log2": ((0, 4), (-1022, 1023)), "log10": ((0, 4), (-1022, 1023)),
    "sin": ((-10, 10), (-30, 1023)), "cos": ((-10, 10), (-30, 1023)), "tan": ((-10, 10), (-30, 1023)),
    "sinpi": ((-4, 4), (-30, 60)), "cospi": ((-4, 4), (-30, 60)), "tanpi": ((-4, 4), (-30, 60)),
    "asin": ((-1, 1), (-30, 0)), "acos": ((-1, 1), (-30, 0)), "atan": ((-4, 4), (-30, 60)),
    "sinh": ((-4, 4), (-30, 10)), "cosh": ((-4, 4), (-30, 10)), "tanh": ((-2, 2), (-30, 6)),
    "asinh": ((-4, 4), (-30, 1023)), "acosh": ((1, 4), (0, 1023)), "atanh": ((-1, 1), (-30, 0)),
    "erf": ((-6, 6), (-30, 3)), "rsqrt": ((0, 4), (-1022, 1023)),
}

# Arguments next to which sine, cosine and tangent are as small, or as near 1, as they get.
HARD = {
    "f32": [0x4B7FFFFF, 0x7F7FFFFF, 0x6115CB11, 0x5F18B878, 0x4A43F5E3, 0x3FC90FDB, 0x40490FDB, 0x4096CBE4],
    "f64": [0x7506AC5B262CA1FF, 0x7FEFFFFFFFFFFFFF, 0x64FB9A3EA2D51B15, 0x3FF921FB54442D18, 0x400921FB54442D18,
            0x4012D97C7F3321D2, 0x41D921FB54442D18],
    "f16": [], "bf16": [],
}


def random_patterns(fmt, rng, count):
    return [rng.getrandbits(fmt.bits) for _ in range(count)]


def unary_points(name, fmt, rng):
    (low, high), (least, most) = RANGES[name]
    if fmt is not F64:
        scale = 8 if name in ("exp", "exp2", "exp10") else 1
        low, high = low / scale, high / scale
    each = {F32: 110, F64: 90, F16: 40, BF16: 40}[fmt]
    points = edges(fmt) + HARD[fmt.name]
    points += [uniform(fmt, rng, low, high) for _ in range(each)]
    points += [spread(fmt, rng, least, most) for _ in range(each)]
    points += random_patterns(fmt, rng, each // 3)
    return unique((p,) for p in points)


def pair_edges(fmt):
    some = [0, 1, fmt.normal, fmt.one, fmt.one + 1, fmt.largest, fmt.infinity]
    some += [fmt.encode(Value(Fraction(v)))[0] for v in (Fraction(1, 2), 2, 3, Fraction(5, 2))]
    some = [p | s for p in some for s in (0, fmt.sign)] + [fmt.quiet_nan]
    return [(a, b) for a in some for b in some]


def pair_points(name, fmt, rng):
    each = {F32: 150, F64: 120, F16: 60, BF16: 60}[fmt]
    points = pair_edges(fmt)
    if fmt in (F16, BF16):
        points = rng.sample(points, 250)
    for _ in range(each):
        a, b = (rng.getrandbits(fmt.bits) for _ in range(2))
        near = (a & ~fmt.sign) + rng.randint(-4 << fmt.fraction_bits, 4 << fmt.fraction_bits)
        near = max(0, min(near, fmt.largest)) | rng.choice((0, fmt.sign))
        points += [(a, b), (a, near)]
    if name in ("pow", "powr"):
        for k in range(each):
            x = uniform(fmt, rng, 0.05, 5) if k & 1 else rng.getrandbits(fmt.bits - 1)
            value = fmt.decode(x)
            if value.kind != "finite" or value.magnitude in (0, 1):
                continue
            reach = fmt.max_exponent + fmt.precision
            y = rng.uniform(-reach, reach) / float(mp.log(real(value.magnitude), 2))
            if k % 3 == 0:
                y, x = round(y), x | rng.choice((0, fmt.sign))
            points.append((x, fmt.encode(Value(Fraction(y)))[0]))
    return unique(points)


def triple_points(fmt, rng):
    each = {F32: 300, F64: 250, F16: 150, BF16: 150}[fmt]
    some = [0, 1, fmt.normal, fmt.one, fmt.one + 1, fmt.largest, fmt.infinity, fmt.quiet_nan]
    some = [p | s for p in some for s in (0, fmt.sign)][:-1]
    points = [tuple(rng.choice(some) for _ in range(3)) for _ in range(each // 2)]
    for _ in range(each):
        a, b = spread(fmt, rng, -20, 20), spread(fmt, rng, -20, 20)
        # The addend next to minus the product, so that what a second rounding would lose remains.
        c, _ = fmt.encode(mul(fmt.decode(a), fmt.decode(b)))
        c = (c ^ fmt.sign) + rng.randint(-2, 2)
        points += [(a, b, c & (2 * fmt.sign - 1)), tuple(rng.getrandbits(fmt.bits) for _ in range(3))]
    return unique(points)


def unique(points):
    return list(dict.fromkeys(points))


# ---- writing ----

class File:
    def __init__(self, name, about):
        self.name, self.lines = name, [f"# {about}", "# Written by scripts/golden.py; README.md describes the format."]

    def section(self, operation, operands, result):
        self.lines.append(f"{operation} {' '.join(operands)} -> {' '.join(result)}")

    def row(self, arguments, results, residue=None):
        text = " ".join([f"{a:x}" for a in arguments] + ["="] + ["nan" if r is None else f"{r:x}" for r in results])
        self.lines.append(text if residue is None else f"{text} {residue}")

    def text(self):
        return "\n".join(self.lines) + "\n"


def thousandths(residue):
    return None if residue == 0 else round(residue * 1000)


def float_file(fmt):
    file = File(f"{fmt.name}.txt", f"Arithmetic and math functions of {fmt.name}.")
    basic = {
        "sqrt": square_root, "abs": lambda x: Value(x.magnitude) if x.kind != NAN else x, "neg": Value.negated,
        "floor": to_integer(lambda x: Fraction(x.numerator // x.denominator)),
        "ceil": to_integer(lambda x: Fraction(-(-x.numerator // x.denominator))),
        "trunc": to_integer(lambda x: Fraction(int(x))), "rint": to_integer(round_half_even),
        "round": to_integer(round_half_away), "fract": fract(fmt),
    }
    for name, function in basic.items():
        rng = random.Random(f"{fmt.name} {name}")
        each = 120 if fmt in (F32, F64) else 60
        points = edges(fmt) + [spread(fmt, rng, -3, fmt.fraction_bits + 2) for _ in range(each)]
        points += random_patterns(fmt, rng, each // 2)
        if name in ("round", "rint"):
            points += [fmt.encode(Value(Fraction(2 * rng.getrandbits(k) + 1, 2), bool(k & 1)))[0] for k in range(8)]
        file.section(name, [fmt.name], [fmt.name])
        for p in unique(points):
            # Negation and abs act on the sign bit alone; of a NaN only that it is one is asked.
            file.row([p], [fmt.encode(function(fmt.decode(p)))[0]])
    for name, function in {"add": add, "sub": sub, "mul": mul, "div": div, "fmod": fmod, "fmin": fmin, "fmax": fmax}.items():
        rng = random.Random(f"{fmt.name} {name}")
        file.section(name, [fmt.name] * 2, [fmt.name])
        for a, b in pair_points(name, fmt, rng):
            file.row([a, b], [fmt.encode(function(fmt.decode(a), fmt.decode(b)))[0]])
    file.section("fma", [fmt.name] * 3, [fmt.name])
    for p in triple_points(fmt, random.Random(f"{fmt.name} fma")):
        file.row(p, [fmt.encode(fma(*map(fmt.decode, p)))[0]])
    file.section("ldexp", [fmt.name, "i32"], [fmt.name])
    rng = random.Random(f"{fmt.name} ldexp")
    for p in edges(fmt) + random_patterns(fmt, rng, 150):
        reach = 2 * fmt.max_exponent + fmt.precision
        for n in (rng.randint(-reach, reach), rng.choice((0, 1, -1, 2**31 - 1, -(2**31), -fmt.max_exponent))):
            x = fmt.decode(p)
            if x.kind == "finite":
                x = Value(x.magnitude * Fraction(2) ** max(-9000, min(9000, n)), x.negative)
            file.row([p, n & 0xFFFFFFFF], [fmt.encode(x)[0]])
    for name, function in UNARY.items():
        file.section(name, [fmt.name], [fmt.name])
        for (p,) in unary_points(name, fmt, random.Random(f"{fmt.name} {name}")):
            result, residue = fmt.encode(function(fmt.decode(p)))
            file.row([p], [result], thousandths(residue))
    for name, function in {"pow": pow_, "powr": powr, "atan2": atan2}.items():
        file.section(name, [fmt.name] * 2, [fmt.name])
        for a, b in pair_points(name, fmt, random.Random(f"{fmt.name} {name}")):
            result, residue = fmt.encode(function(fmt.decode(a), fmt.decode(b)))
            file.row([a, b], [result], thousandths(residue))
    return file


# ---- functions of several numbers: interpolation, vectors, determinants ----

def numbers(vector):
    return [x.number for x in vector]


def inner(a, b):
    return sum((x * y for x, y in zip(a, b)), Fraction(0))


def root(fraction):
    return square_root(Value(fraction)).number


def step(edge, x):
    if NAN in (edge.kind, x.kind):
        return ONE
    below = order(x)[0] < order(edge)[0]
    return ZERO if below else ONE


def clamp(x, low, high):
    return fmin(fmax(x, low), high)


def mix(x, y, a):
    return add(x, mul(sub(y, x), a))


def smoothstep(low, high, x):
    t = div(sub(x, low), sub(high, low))
    t = fmin(fmax(t, ZERO), ONE).number
    return Value(t * t * (3 - 2 * t))


def determinant(columns):
    if len(columns) == 1:
        return columns[0][0]
    minors = ([c[:row] + c[row + 1:] for c in columns[1:]] for row in range(len(columns)))
    return sum((-1) ** row * columns[0][row] * determinant(minor) for row, minor in enumerate(minors))


def cross(a, b):
    return [a[(k + 1) % 3] * b[(k + 2) % 3] - a[(k + 2) % 3] * b[(k + 1) % 3] for k in range(3)]


def reflect(i, n):
    d = inner(n, i)
    return [a - 2 * d * b for a, b in zip(i, n)]


def refraction(i, n, eta):
    """The `k` of the definition, and the result."""
    d = inner(n, i)
    k = 1 - eta * eta * (1 - d * d)
    if k < 0:
        return k, [Fraction(0)] * len(i)
    along = eta * d + root(k)
    return k, [eta * a - along * b for a, b in zip(i, n)]


def faceforward(n, i, reference):
    return n if inner(reference, i) < 0 else [-x for x in n]


def dot(fmt, a, b):
    """The sum as A11 has it, every step rounded; of short formats in f32."""
    wide = F32 if fmt in (F16, BF16) else fmt
    total = wide.decode(wide.encode(mul(a[0], b[0]))[0])
    for x, y in zip(a[1:], b[1:]):
        total = wide.decode(wide.encode(fma(x, y, total))[0])
    return total


def anywhere(fmt, rng, n):
    """A vector of nonzero numbers from one of the windows of exponents where steps overflow or underflow: of
    all numbers, of subnormals, around the roots of the least and the largest number, next to the largest."""
    low, high = fmt.min_exponent - fmt.fraction_bits, fmt.max_exponent
    window = rng.choice([(low, high), (low, low + fmt.precision + 2), (low // 2 - 3, low // 2 + 3),
                         (low // 2, low // 2 + fmt.precision), (high // 2 - 2, high // 2 + 2), (high - 4, high - 2)])
    vector = []
    for _ in range(n):
        magnitude = (1 + Fraction(rng.getrandbits(fmt.fraction_bits), 2**fmt.fraction_bits)) / 2
        vector.append(fmt.encode(Value(magnitude * Fraction(2) ** (rng.randint(*window) + 1), rng.random() < 0.5))[0])
    return vector


def scaled_matrix(fmt, rng, n):
    """A matrix, its columns and rows by powers of two such that products of entries from all of them are
    ordinary numbers, and others are not; and a zero in some."""
    room = fmt.max_exponent // 2 - 2
    columns, rows = ([rng.randint(-room // 2, room // 2) for _ in range(n - 1)] for _ in "cr")
    for powers in (columns, rows):
        powers.append(max(-room, min(room, -sum(powers))))
    entries = [[spread(fmt, rng, c + r, c + r) for r in rows] for c in columns]
    if rng.random() < 0.5:
        entries[rng.randrange(n)][rng.randrange(n)] = 0
    return entries


def cancels(columns, bits):
    """Whether the terms of a determinant cancel by more than some bits."""
    size = abs_determinant([[abs(x) for x in column] for column in columns])
    return abs(determinant(columns)) * 2**bits < size


def abs_determinant(columns):
    if len(columns) == 1:
        return columns[0][0]
    minors = ([c[:row] + c[row + 1:] for c in columns[1:]] for row in range(len(columns)))
    return sum(columns[0][row] * abs_determinant(minor) for row, minor in enumerate(minors))


def composite_file():
    file = File("composite.txt", "Interpolation, vectors and determinants of every float format.")
    for fmt in FORMATS:
        rng = random.Random(f"composite {fmt.name}")
        each = 60 if fmt in (F32, F64) else 30
        scalars(file, fmt, rng, each)
        for n in (2, 3, 4):
            vectors(file, fmt, rng, each // 2, n)
    return file


def results(file, fmt, arguments, exact):
    """A case: the exact results rounded, and what those lack."""
    encoded = [fmt.encode(x) for x in exact]
    residue = [round(1000 * rest) for _, rest in encoded]
    file.row(arguments, [bits for bits, _ in encoded], " ".join(map(str, residue)) if any(residue) else None)


def scalars(file, fmt, rng, each):
    some = [0, 1, fmt.normal, fmt.one, fmt.one + 1, fmt.largest, fmt.infinity, fmt.quiet_nan]
    some = [p | s for p in some for s in (0, fmt.sign)][:-1]
    special = [tuple(rng.choice(some) for _ in range(3)) for _ in range(2 * each)]
    drawn = [tuple(spread(fmt, rng, -4, 4) for _ in range(3)) for _ in range(each)]

    file.section("step", [fmt.name] * 2, [fmt.name])
    for edge, x, _ in unique([*special, *drawn, *((x, x, x) for x in some)]):
        results(file, fmt, [edge, x], [step(fmt.decode(edge), fmt.decode(x))])

    file.section("clamp", [fmt.name] * 3, [fmt.name])
    for p in unique([*special, *drawn]):
        results(file, fmt, p, [clamp(*map(fmt.decode, p))])

    file.section("mix", [fmt.name] * 3, [fmt.name])
    points = [*special, *drawn]
    for x, y, _ in drawn:
        # The share that brings the result next to 0.
        a, b = fmt.decode(x), fmt.decode(y)
        if a.number != b.number:
            share = fmt.encode(div(a, sub(a, b)))[0]
            points += [(x, y, share + k) for k in (-1, 0, 1)]
    for p in unique(points):
        x, y, a = map(fmt.decode, p)
        # A step that overflows is not asked for more than the plain formula gives.
        steps = [sub(y, x), mul(sub(y, x), a), mix(x, y, a)]
        if any(s.kind == "finite" and s.magnitude > fmt.decode(fmt.largest).magnitude for s in steps):
            continue
        # Nor what sign a zero has that stands for something smaller.
        if not mix(x, y, a).is_zero() and fmt.encode(mix(x, y, a))[0] in (0, fmt.sign):
            continue
        results(file, fmt, p, [mix(x, y, a)])

    file.section("smoothstep", [fmt.name] * 3, [fmt.name])
    inside = [(low, high, uniform(fmt, rng, *sorted(float(fmt.decode(e).number) for e in (low, high))))
              for low, high, _ in drawn]
    flat = [(x, x, y) for x, y, _ in drawn[:8]] + [(x, x, x) for x, _, _ in drawn[:4]]
    nans = [tuple(fmt.quiet_nan if k == j else p[k] for k in range(3)) for j, p in enumerate(drawn[:3])]
    for p in unique([*drawn, *inside, *flat, *nans]):
        results(file, fmt, p, [smoothstep(*map(fmt.decode, p))])


def vectors(file, fmt, rng, each, n):
    vector = f"{fmt.name}x{n}"

    def draw(low=-3, high=3):
        return [spread(fmt, rng, low, high) for _ in range(n)]

    def near(x):
        return [max(1, p + rng.randint(-3, 3)) for p in x]

    def decoded(x):
        return numbers(map(fmt.decode, x))

    def unit():
        x = decoded(draw())
        length = root(inner(x, x))
        return [fmt.encode(Value(a / length))[0] for a in x]

    def section(name, operands, result, points, exact):
        file.section(name, operands, [result])
        for p in points:
            values = [Value(x) for x in exact(*map(decoded, p))]
            results(file, fmt, [bits for operand in p for bits in operand], values)

    def finite(points, exact):
        """Those points whose results are finite: that is what a device must keep without `ieee-float`."""
        largest = fmt.decode(fmt.largest).magnitude
        return [p for p in points if all(abs(x) <= largest for x in exact(*map(decoded, p)))]

    pairs = [(draw(), draw()) for _ in range(each)]
    close = [(a, near(a)) for a, _ in pairs]
    file.section("dot", [vector] * 2, [fmt.name])
    for a, b in pairs:
        file.row(a + b, [fmt.encode(dot(fmt, [*map(fmt.decode, a)], [*map(fmt.decode, b)]))[0]])
    def lengths(x):
        return [root(inner(x, x))]

    def distances(a, b):
        return lengths([x - y for x, y in zip(a, b)])

    def normalized(x):
        return [a / length for length in lengths(x) for a in x]

    wild = random.Random(f"anywhere {vector}")
    far = [anywhere(fmt, wild, n) for _ in range(2 * each)]
    by = [[p & fmt.sign | max(1, (p & ~fmt.sign) + wild.randint(-3, 3)) for p in x] for x in far]
    section("length", [vector], fmt.name, [(a,) for a, _ in pairs] + finite([(a,) for a in far], lengths), lengths)
    section("distance", [vector] * 2, fmt.name,
            pairs + close + finite([*zip(far, far[1:]), *zip(far, by)], distances), distances)
    section("normalize", [vector], vector, [(a,) for a, _ in pairs] + [(a,) for a in far], normalized)
    if n == 3:
        section("cross", [vector] * 2, vector, pairs + close, cross)
    section("reflect", [vector] * 2, vector, [*pairs, *((draw(), unit()) for _ in range(each))], reflect)
    section("faceforward", [vector] * 3, vector, [(a, b, draw()) for a, b in pairs], faceforward)
    through = [(unit(), unit(), [spread(fmt, rng, -2, 1) & ~fmt.sign]) for _ in range(2 * each)]
    through = [p for p in through if abs(refraction(*map(decoded, p[:2]), decoded(p[2])[0])[0]) > Fraction(1, 100)]
    section("refract", [vector, vector, fmt.name], vector, through, lambda i, n, eta: refraction(i, n, eta[0])[1])
    square = [[draw() for _ in range(n)] for _ in range(each)]
    wild = random.Random(f"scaled {vector}")
    scaled = [scaled_matrix(fmt, wild, n) for _ in range(2 * each)]
    scaled = [m for m in scaled if not cancels([decoded(column) for column in m], 8)]

    def determinants(m):
        return [determinant([m[k * n:k * n + n] for k in range(n)])]

    section("determinant", [f"{vector}x{n}"], fmt.name,
            [(sum(m, []),) for m in square] + finite([(sum(m, []),) for m in scaled], determinants), determinants)


def cast_file():
    """A5: between every two scalar types."""
    file = File("cast.txt", "Conversions (A5) between every two scalar types.")
    floats = {f.name: f for f in FORMATS}
    for source in [*floats, *INTEGERS, "bool"]:
        for target in [*floats, *INTEGERS, "bool"]:
            if source == target:
                continue
            rng = random.Random(f"cast {source} {target}")
            file.section("cast", [source], [target])
            for pattern in cast_points(source, target, floats, rng):
                file.row([pattern], [cast(pattern, source, target, floats)])
    return file


def cast_points(source, target, floats, rng):
    if source == "bool":
        return [0, 1]
    if source in floats:
        fmt = floats[source]
        points = [0, 1, fmt.normal, fmt.one, fmt.largest, fmt.infinity]
        points += [fmt.encode(Value(Fraction(k, 2)))[0] for k in (1, 3, 5)]
        if target in INTEGERS:
            bits, signed = INTEGERS[target]
            for limit in (2 ** (bits - signed), 2 ** (bits - signed) - 1):
                near = fmt.encode(Value(limit))[0]
                points += [min(near + d, fmt.infinity) for d in (-1, 0, 1)]
            points += [spread(fmt, rng, -2, bits) & ~fmt.sign for _ in range(12)]
        elif target in floats:
            narrow = floats[target]
            for value in (narrow.largest, narrow.normal, narrow.normal - 1, 1):
                near = fmt.encode(narrow.decode(value))[0]
                points += [max(0, min(near + d, fmt.infinity)) for d in (-1, 0, 1)]
            if narrow.precision < fmt.precision and narrow.max_exponent <= fmt.max_exponent:
                # Halfway between two neighbours, and next to it; and halfway beyond the largest.
                for _ in range(10):
                    low = narrow.decode(rng.getrandbits(narrow.bits - 2)).magnitude
                    high = narrow.decode(narrow.encode(Value(low))[0] + 1).magnitude
                    middle = fmt.encode(Value((low + high) / 2))[0]
                    points += [middle - 1, middle, middle + 1]
                top = Fraction(2) ** narrow.max_exponent * (2 - Fraction(1, 2 ** narrow.precision))
                middle = fmt.encode(Value(top))[0]
                points += [max(0, middle - 1), middle, min(middle + 1, fmt.infinity)]
            points += [rng.getrandbits(fmt.bits - 1) for _ in range(12)]
        return unique([p | s for p in points for s in (0, fmt.sign)] + [fmt.quiet_nan])
    bits, _ = INTEGERS[source]
    points = [0, 1, 2, (1 << bits) - 1, (1 << (bits - 1)) - 1, 1 << (bits - 1)]
    points += [rng.getrandbits(rng.randint(1, bits)) for _ in range(16)]
    if target in floats:
        # Ties: a one followed by the target's precision, then a half, and next to it.
        precision = floats[target].precision
        for length in range(precision + 1, bits + 1):
            tie = ((1 << (precision - 1)) | rng.getrandbits(precision - 1)) << (length - precision) | 1 << (length - precision - 1)
            points += [tie - 1, tie, tie + 1]
        points = points[:60] if bits < 64 else points
    return unique(p & ((1 << bits) - 1) for p in points)


def cast(pattern, source, target, floats):
    if source in floats:
        value = floats[source].decode(pattern)
    elif source == "bool":
        value = Value(pattern)
    else:
        bits, signed = INTEGERS[source]
        value = Value(pattern - (1 << bits) if signed and pattern >> (bits - 1) else pattern)
    if target in floats:
        return floats[target].encode(value)[0]
    if target == "bool":
        return int(not value.is_zero())
    bits, signed = INTEGERS[target]
    if source in floats:
        if value.kind == NAN:
            return 0
        low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
        whole = (low if value.negative else high) if value.kind == INF else max(low, min(high, int(value.number)))
    else:
        whole = int(value.number)
    return whole & ((1 << bits) - 1)


# ---- packing, as the Metal Shading Language defines it ----

def to_unorm(x, levels):
    if x.kind == NAN:
        return 0, None
    clamped = Fraction(0) if x.negative else min(Fraction(1), Fraction(1) if x.kind == INF else x.magnitude)
    return nearest(clamped * levels)


def to_snorm(x, levels):
    if x.kind == NAN:
        return 0, None
    magnitude = min(Fraction(1), Fraction(1) if x.kind == INF else x.magnitude)
    return nearest((-magnitude if x.negative else magnitude) * levels)


def to_srgb(x):
    if x.kind == NAN:
        return 0, None
    c = Fraction(0) if x.negative else min(Fraction(1), Fraction(1) if x.kind == INF else x.magnitude)
    if c < Fraction(31308, 10**7):
        return nearest(c * Fraction(1292, 100) * 255)
    return nearest((Fraction(1055, 1000) * number(mp.power(real(c), mp.mpf(5) / 12)) - Fraction(55, 1000)) * 255)


def nearest(scaled):
    """The nearest integer, and the distance from the next tie."""
    return round(scaled), abs((scaled % 1) - Fraction(1, 2))


def from_srgb(level):
    c = Fraction(level, 255)
    if c <= Fraction(4045, 100000):
        return Value(c / Fraction(1292, 100))
    return Value(number(mp.power(real((c + Fraction(55, 1000)) / Fraction(1055, 1000)), mp.mpf(12) / 5)))


# name: component widths from the lowest bit up, kind
PACKED = {
    "unorm4x8": ([8] * 4, "unorm"), "snorm4x8": ([8] * 4, "snorm"), "srgb_unorm4x8": ([8] * 4, "srgb"),
    "unorm2x16": ([16] * 2, "unorm"), "snorm2x16": ([16] * 2, "snorm"), "unorm10a2": ([10, 10, 10, 2], "unorm"),
}


def pack_component(x, width, kind, alpha):
    if kind == "snorm":
        level, tie = to_snorm(x, (1 << (width - 1)) - 1)
        return level & ((1 << width) - 1), tie
    return to_srgb(x) if kind == "srgb" and not alpha else to_unorm(x, (1 << width) - 1)


def unpack_component(bits, width, kind, alpha):
    if kind == "snorm":
        signed = bits - (1 << width) if bits >> (width - 1) else bits
        return Value(max(Fraction(-1), Fraction(signed, (1 << (width - 1)) - 1)))
    return from_srgb(bits) if kind == "srgb" and not alpha else Value(Fraction(bits, (1 << width) - 1))


def pack_file():
    file = File("pack.txt", "Packing floats into normalised integers and back.")
    special = [0, F32.sign, F32.one, F32.one | F32.sign, F32.infinity, F32.infinity | F32.sign, F32.quiet_nan, 1,
               F32.largest, F32.encode(Value(Fraction(1, 2)))[0], F32.encode(Value(Fraction(-1, 3)))[0]]
    for name, (widths, kind) in PACKED.items():
        rng = random.Random(f"pack {name}")
        vector = f"f32x{len(widths)}"
        file.section(f"pack_float_to_{name}", [vector], ["u32"])
        rows = 0
        while rows < 150:
            values = [rng.choice(special) if rng.random() < 0.25 else uniform(F32, rng, -1.1, 1.1) for _ in widths]
            word, shift, clear = 0, 0, True
            for k, (p, width) in enumerate(zip(values, widths)):
                level, tie = pack_component(F32.decode(p), width, kind, k == 3)
                # Next to a tie, a product or power that is rounded first may go either way; no such points.
                clear &= tie is None or tie > Fraction(1, 1000)
                word, shift = word | level << shift, shift + width
            if clear:
                file.row(values, [word])
                rows += 1
        file.section(f"unpack_{name}_to_float", ["u32"], [vector])
        words = [0, 0xFFFFFFFF, 0x80808080, 0x7F7F7F7F, 0x80008000, 0x01020304, 0x81828384]
        if kind == "srgb":
            words += [sum((4 * k + j) % 256 << (8 * j) for j in range(4)) for k in range(64)]
        for word in words + random_patterns(F32, rng, 100):
            results, residues, shift = [], [], 0
            for k, width in enumerate(widths):
                value = unpack_component(word >> shift & ((1 << width) - 1), width, kind, k == 3)
                result, residue = F32.encode(value)
                results, residues, shift = results + [result], residues + [residue], shift + width
            inexact = any(residues)
            file.row([word], results, " ".join(str(round(r * 1000)) for r in residues) if inexact else None)
    return file


def main():
    check = "--check" in sys.argv[1:]
    ROOT.mkdir(parents=True, exist_ok=True)
    stale = []
    for file in [*(float_file(f) for f in FORMATS), composite_file(), cast_file(), pack_file()]:
        path = ROOT / file.name
        if check:
            if not path.exists() or path.read_text() != file.text():
                stale.append(file.name)
        else:
            path.write_text(file.text())
    if stale:
        sys.exit(f"not what scripts/golden.py writes: {', '.join(stale)}")


if __name__ == "__main__":
    main()
