"""Every row of the op table, called from a kernel, against NumPy or plain Python."""

import math

import numpy as np
import pytest

import invar as iv
from invar import _ops

RANDOM = np.random.default_rng(7)
SIZE = 64


def tid():
    return iv.thread_position_in_grid("x")


def apply(function, inputs, result, simdgroup=None):
    """Runs ``out[i] = function(a[i], b[i], ...)`` for arrays of element types."""
    types = [ty for ty, _ in inputs]
    n = len(inputs[0][1])
    out = np.zeros((n, *result.shape), result.numpy())
    arrays = [np.ascontiguousarray(x, ty.numpy()) for ty, x in inputs]
    attributes = {} if simdgroup is None else {"simdgroup": simdgroup}
    if len(types) == 1:

        @iv.kernel(**attributes)
        def k(a: iv.Buffer[types[0]], out: iv.Buffer[result]):
            out[tid()] = function(a[tid()])

    elif len(types) == 2:

        @iv.kernel(**attributes)
        def k(a: iv.Buffer[types[0]], b: iv.Buffer[types[1]], out: iv.Buffer[result]):
            out[tid()] = function(a[tid()], b[tid()])

    else:

        @iv.kernel(**attributes)
        def k(
            a: iv.Buffer[types[0]],
            b: iv.Buffer[types[1]],
            c: iv.Buffer[types[2]],
            out: iv.Buffer[result],
        ):
            out[tid()] = function(a[tid()], b[tid()], c[tid()])

    k[n, 64](*arrays, out)
    return out


def uniform(low, high, *shape):
    return RANDOM.uniform(low, high, (SIZE, *shape)).astype(np.float32)


def fraction(x):
    return np.minimum(x - np.floor(x), np.nextafter(np.float32(1), np.float32(0)))


def smooth(low, high, x):
    t = np.clip((x - low) / (high - low), 0, 1)
    return t * t * (3 - 2 * t)


# Name: reference, and the range of each operand.
FLOATS = {
    "fma": (lambda a, b, c: a * b + c, (-4, 4), (-4, 4), (-4, 4)),
    "sqrt": (np.sqrt, (0, 9)), "abs": (np.abs, (-9, 9)), "ceil": (np.ceil, (-9, 9)),
    "floor": (np.floor, (-9, 9)), "trunc": (np.trunc, (-9, 9)), "rint": (np.rint, (-9, 9)),
    "round": (lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x), (-9, 9)),
    "neg": (np.negative, (-9, 9)), "sign": (np.sign, (-9, 9)),
    "min": (np.minimum, (-9, 9), (-9, 9)), "max": (np.maximum, (-9, 9), (-9, 9)),
    "fmin": (np.fmin, (-9, 9), (-9, 9)), "fmax": (np.fmax, (-9, 9), (-9, 9)),
    "add": (np.add, (-9, 9), (-9, 9)), "sub": (np.subtract, (-9, 9), (-9, 9)),
    "mul": (np.multiply, (-9, 9), (-9, 9)), "div": (np.divide, (-9, 9), (1, 9)),
    "saturate": (lambda x: np.clip(x, 0, 1), (-2, 2)), "fract": (fraction, (-9, 9)),
    "step": (lambda edge, x: np.where(x < edge, 0.0, 1.0), (-1, 1), (-1, 1)),
    "clamp": (np.clip, (-3, 3), (-2, -1), (1, 2)),
    "mix": (lambda x, y, a: x + (y - x) * a, (-3, 3), (4, 9), (0, 1)),
    "smoothstep": (smooth, (-1, 0), (1, 2), (-2, 3)),
    "copysign": (np.copysign, (-9, 9), (-1, 1)), "exp": (np.exp, (-9, 9)),
    "exp2": (np.exp2, (-9, 9)), "exp10": (lambda x: 10.0**x, (-9, 9)), "log": (np.log, (0.1, 99)),
    "log2": (np.log2, (0.1, 99)), "log10": (np.log10, (0.1, 99)),
    "pow": (np.power, (0.1, 9), (-3, 3)), "powr": (np.power, (0.1, 9), (-3, 3)),
    "rsqrt": (lambda x: 1 / np.sqrt(x), (0.1, 99)), "sin": (np.sin, (-9, 9)),
    "cos": (np.cos, (-9, 9)), "tan": (np.tan, (-1.5, 1.5)),
    "sinpi": (lambda x: np.sin(np.pi * x), (-2, 2)),
    "cospi": (lambda x: np.cos(np.pi * x), (-2, 2)),
    "tanpi": (lambda x: np.tan(np.pi * x), (-0.4, 0.4)), "asin": (np.arcsin, (-1, 1)),
    "acos": (np.arccos, (-1, 1)), "atan": (np.arctan, (-9, 9)),
    "atan2": (np.arctan2, (-9, 9), (-9, 9)), "sinh": (np.sinh, (-9, 9)), "cosh": (np.cosh, (-9, 9)),
    "tanh": (np.tanh, (-9, 9)), "asinh": (np.arcsinh, (-9, 9)), "acosh": (np.arccosh, (1, 9)),
    "atanh": (np.arctanh, (-0.99, 0.99)), "erf": (np.vectorize(math.erf), (-3, 3)),
    "fmod": (np.fmod, (-9, 9), (1, 3)),
}  # fmt: skip


@pytest.mark.parametrize("shape", [(), (3,)], ids=["scalar", "vector"])
@pytest.mark.parametrize("name", FLOATS)
def test_float_functions(name, shape):
    reference, *ranges = FLOATS[name]
    operands = [uniform(*r, *shape) for r in ranges]
    ty = iv.f32x3 if shape else iv.f32
    out = apply(getattr(iv, name), [(ty, x) for x in operands], ty)
    expected = reference(*(x.astype(np.float64) for x in operands))
    # Products and the sines of large multiples of pi lose digits where their sum is near 0.
    np.testing.assert_allclose(out, expected, rtol=2e-6, atol=4e-6)


@pytest.mark.parametrize("name", ["sqrt", "exp", "tanh"])
@pytest.mark.parametrize("ty", ["f16", "f64"])
def test_float_functions_of_other_widths(name, ty):
    ty = getattr(iv, ty)
    x = uniform(0.1, 2).astype(ty.numpy())
    out = apply(getattr(iv, name), [(ty, x)], ty)
    expected = FLOATS[name][0](x.astype(np.float64))
    np.testing.assert_allclose(out, expected, rtol=1e-3 if ty == iv.f16 else 1e-15)


CLASSES = {
    "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite, "signbit": np.signbit,
    "isnormal": lambda x: np.isfinite(x) & (np.abs(x) >= np.finfo(np.float32).tiny),
}  # fmt: skip


@pytest.mark.parametrize("name", CLASSES)
def test_classes_of_floats(name):
    x = np.float32([0, -0.0, 1, -1, 1e-40, np.inf, -np.inf, np.nan])
    out = apply(getattr(iv, name), [(iv.f32, x)], iv.bool)
    assert out.tolist() == CLASSES[name](x).tolist()


COMPARE = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal,
}  # fmt: skip


@pytest.mark.parametrize("name", COMPARE)
def test_comparisons(name):
    for ty, values in ((iv.f32, [0, -0.0, 1, np.nan]), (iv.i16, [-2, 0, 1, 2])):
        a, b = np.meshgrid(np.array(values, ty.numpy()), np.array(values, ty.numpy()))
        a, b = a.reshape(-1), b.reshape(-1)
        out = apply(getattr(iv, name), [(ty, a), (ty, b)], iv.bool)
        assert out.tolist() == COMPARE[name](a, b).tolist()


def wrap(x, ty):
    """A Python integer in a type's range."""
    x &= (1 << ty.bits) - 1
    return x - (1 << ty.bits) if ty.is_signed and x >> (ty.bits - 1) else x


def clip(x, ty):
    return min(max(x, ty.limits[0]), ty.limits[1])


def divide(a, b, ty):
    if b == 0:
        return 0
    return wrap(abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1), ty)


def bits(x, ty):
    return x & ((1 << ty.bits) - 1)


def rotate(a, b, ty):
    n = bits(b, ty) % ty.bits
    return wrap(bits(a, ty) << n | bits(a, ty) >> (ty.bits - n), ty)


def count_leading(x, ty):
    return ty.bits - bits(x, ty).bit_length()


def count_trailing(x, ty):
    x = bits(x, ty)
    return (x & -x).bit_length() - 1 if x else ty.bits


# Name: what Python says, of plain integers and the type.
INTEGERS = {
    "add": lambda a, b, ty: wrap(a + b, ty), "sub": lambda a, b, ty: wrap(a - b, ty),
    "mul": lambda a, b, ty: wrap(a * b, ty), "div": divide,
    "rem": lambda a, b, ty: wrap(a - divide(a, b, ty) * b, ty) if b else 0,
    "neg": lambda a, ty: wrap(-a, ty), "abs": lambda a, ty: wrap(abs(a), ty),
    "min": lambda a, b, ty: min(a, b), "max": lambda a, b, ty: max(a, b),
    "clamp": lambda a, b, c, ty: min(max(a, b), c) if b <= c else None,
    "and": lambda a, b, ty: a & b, "or": lambda a, b, ty: a | b, "xor": lambda a, b, ty: a ^ b,
    "not": lambda a, ty: wrap(~a, ty),
    "shl": lambda a, b, ty: wrap(a << bits(b, ty) % ty.bits, ty),
    "shr": lambda a, b, ty: a >> bits(b, ty) % ty.bits,
    "shr_exact": lambda a, b, ty: a >> bits(b, ty) % ty.bits,
    "popcount": lambda a, ty: bin(bits(a, ty)).count("1"), "clz": count_leading,
    "ctz": count_trailing,
    "reverse_bits": lambda a, ty: wrap(int(f"{bits(a, ty):0{ty.bits}b}"[::-1], 2), ty),
    "mul_hi": lambda a, b, ty: wrap(a * b >> ty.bits, ty),
    "sign": lambda a, ty: (a > 0) - (a < 0),
    "abs_diff": lambda a, b, ty: wrap(abs(a - b), ty),
    "add_sat": lambda a, b, ty: clip(a + b, ty), "sub_sat": lambda a, b, ty: clip(a - b, ty),
    "mad_hi": lambda a, b, c, ty: wrap((a * b >> ty.bits) + c, ty),
    "mad_sat": lambda a, b, c, ty: clip(a * b + c, ty), "rotate": rotate,
}  # fmt: skip
# As a kernel writes them.
SPELLED = {"and": lambda a, b: a & b, "or": lambda a, b: a | b, "not": lambda a: ~a}


@pytest.mark.parametrize("ty", ["i8", "u16", "i32", "u32", "i64", "u64"])
@pytest.mark.parametrize("name", INTEGERS)
def test_integer_functions(name, ty):
    ty, reference = getattr(iv, ty), INTEGERS[name]
    if name == "sign" and not ty.is_signed:
        with pytest.raises(iv.KernelError, match="signed integer or float"):
            apply(iv.sign, [(ty, np.zeros(1))], ty)
        return
    count = reference.__code__.co_argcount - 1
    edges = [0, 1, 2, ty.limits[0], ty.limits[1], ty.limits[1] // 3]
    if ty.is_signed:
        edges += [-1, -7]
    values = [(edges * 8)[:SIZE]]
    for stride in (7, 5)[: count - 1]:
        values.append([edges[i * stride // 8 % len(edges)] for i in range(len(values[0]))])
    arrays = [np.array(v, ty.numpy()) for v in values]
    function = SPELLED.get(name) or getattr(iv, name)
    out = apply(function, [(ty, x) for x in arrays], ty)
    tested = 0
    for got, *operands in zip(out.tolist(), *(x.tolist() for x in arrays)):
        expected = reference(*operands, ty)
        if expected is not None:
            tested += 1
            assert got == expected, (name, operands)
    assert tested >= len(out) // 4


def test_logic_of_bools():
    a, b = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    two = [(iv.bool, a), (iv.bool, b)]
    assert (apply(lambda a, b: a & b, two, iv.bool) == (a & b)).all()
    assert (apply(lambda a, b: a | b, two, iv.bool) == (a | b)).all()
    assert (apply(iv.xor, two, iv.bool) == (a ^ b)).all()
    assert (apply(lambda a: ~a, two[:1], iv.bool) == ~a).all()


def test_fields_of_bits():
    x = RANDOM.integers(0, 1 << 32, SIZE, np.uint64).astype(np.uint32)
    y = RANDOM.integers(0, 1 << 32, SIZE, np.uint64).astype(np.uint32)
    out = apply(lambda x: iv.extract_bits(x, 5, 9), [(iv.u32, x)], iv.u32)
    assert (out == (x >> 5 & 0x1FF)).all()
    out = apply(lambda x, y: iv.insert_bits(x, y, 5, 9), [(iv.u32, x), (iv.u32, y)], iv.u32)
    assert (out == (x & ~np.uint32(0x1FF << 5) | (y & 0x1FF) << 5)).all()
    signed = apply(lambda x: iv.extract_bits(iv.i32(x), 4, 4), [(iv.u32, x)], iv.i32)
    assert (signed == ((x >> 4 & 15).astype(np.int32) ^ 8) - 8).all()


def test_ldexp_and_select():
    x = uniform(1, 2)
    n = np.arange(SIZE, dtype=np.int32) - 32
    out = apply(iv.ldexp, [(iv.f32, x), (iv.i32, n)], iv.f32)
    assert (out == np.ldexp(x, n)).all()
    c = n > 0
    out = apply(iv.select, [(iv.f32, x), (iv.f32, -x), (iv.bool, c)], iv.f32)
    assert (out == np.where(c, -x, x)).all()
    out = apply(lambda x, c: iv.where(c, x, 0.5), [(iv.f32, x), (iv.bool, c)], iv.f32)
    assert (out == np.where(c, x, np.float32(0.5))).all()


CASTS = ["bool", "i8", "u8", "i16", "u32", "i64", "f16", "f32", "f64"]


@pytest.mark.parametrize("source", CASTS)
@pytest.mark.parametrize("target", CASTS)
def test_casts(source, target):
    source, target = getattr(iv, source), getattr(iv, target)
    x = np.array([0, 1, 2, 100, 17, 3], source.numpy())
    out = apply(target, [(source, x)], target)
    assert out.tolist() == x.astype(target.numpy()).tolist()


def test_casts_of_floats_saturate():
    x = np.float32([1e9, -1e9, 3.99, -3.99, np.nan, np.inf])
    assert apply(iv.i8, [(iv.f32, x)], iv.i8).tolist() == [127, -128, 3, -3, 0, 127]
    assert apply(iv.u8, [(iv.f32, x)], iv.u8).tolist() == [255, 0, 3, 0, 0, 255]


def test_bit_casts():
    x = uniform(-9, 9)
    out = apply(lambda x: iv.as_type(iv.u32, x), [(iv.f32, x)], iv.u32)
    assert (out == x.view(np.uint32)).all()
    words = RANDOM.integers(0, 1 << 16, (SIZE, 2)).astype(np.uint16)
    out = apply(lambda x: iv.as_type(iv.u32, x), [(iv.u16x2, words)], iv.u32)
    assert (out == words.view(np.uint32)[:, 0]).all()


def test_components():
    v = uniform(-9, 9, 4)
    index = np.arange(SIZE, dtype=np.uint32) % 4
    out = apply(iv.extract, [(iv.f32x4, v), (iv.u32, index)], iv.f32)
    assert (out == v[np.arange(SIZE), index]).all()
    out = apply(lambda v, i: iv.insert(v, i, iv.f32(7)), [(iv.f32x4, v), (iv.u32, index)], iv.f32x4)
    expected = v.copy()
    expected[np.arange(SIZE), index] = 7
    assert (out == expected).all()
    out = apply(lambda v: iv.swizzle(v, "wzx"), [(iv.f32x4, v)], iv.f32x3)
    assert (out == v[:, [3, 2, 0]]).all()
    out = apply(lambda v: iv.f32x4(v.xy, v.rg), [(iv.f32x4, v)], iv.f32x4)
    assert (out == v[:, [0, 1, 0, 1]]).all()
    out = apply(iv.f32x2, [(iv.f32, v[:, 0]), (iv.f32, v[:, 1])], iv.f32x2)
    assert (out == v[:, :2]).all()


def test_all_and_any():
    v = np.array([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)], bool)
    assert (apply(iv.all, [(iv.boolx3, v)], iv.bool) == v.all(1)).all()
    assert (apply(iv.any, [(iv.boolx3, v)], iv.bool) == v.any(1)).all()


def norm(x):
    return np.sqrt((x * x).sum(-1, keepdims=True))


def dot(a, b):
    return (a * b).sum(-1, keepdims=True)


def refract(i, n, eta):
    k = 1 - eta**2 * (1 - dot(n, i) ** 2)
    return np.where(k < 0, 0, eta * i - (eta * dot(n, i) + np.sqrt(np.maximum(k, 0))) * n)


GEOMETRY = {
    "dot": (dot, 2), "length": (norm, 1), "distance": (lambda a, b: norm(a - b), 2),
    "normalize": (lambda a: a / norm(a), 1), "cross": (np.cross, 2),
    "reflect": (lambda i, n: i - 2 * dot(n, i) * n, 2),
    "faceforward": (lambda n, i, g: np.where(dot(g, i) < 0, n, -n), 3),
}  # fmt: skip


@pytest.mark.parametrize("name", GEOMETRY)
def test_geometry(name):
    reference, count = GEOMETRY[name]
    operands = [uniform(-2, 2, 3) for _ in range(count)]
    expected = reference(*(x.astype(np.float64) for x in operands))
    result = iv.f32x3 if expected.shape[-1] == 3 else iv.f32
    out = apply(getattr(iv, name), [(iv.f32x3, x) for x in operands], result)
    np.testing.assert_allclose(out.reshape(expected.shape), expected, rtol=2e-6, atol=4e-6)


def test_refract():
    i, n = uniform(-1, 1, 3), uniform(-1, 1, 3)
    i, n = (x / norm(x) for x in (i, n))
    out = apply(lambda i, n: iv.refract(i, n, 0.7), [(iv.f32x3, i), (iv.f32x3, n)], iv.f32x3)
    np.testing.assert_allclose(out, refract(i, n, 0.7), rtol=1e-5, atol=1e-5)


def test_matrices():
    a, b = uniform(-2, 2, 3, 2), uniform(-2, 2, 4, 3)
    v = uniform(-2, 2, 3)
    # The arrays hold columns: what NumPy sees is the transpose.
    out = apply(iv.matrix_multiply, [(iv.f32x3x2, a), (iv.f32x4x3, b)], iv.f32x4x2)
    np.testing.assert_allclose(out, b @ a, rtol=1e-5, atol=1e-5)
    out = apply(lambda a, v: a @ v, [(iv.f32x3x2, a), (iv.f32x3, v)], iv.f32x2)
    np.testing.assert_allclose(out, (v[:, None] @ a)[:, 0], rtol=1e-5, atol=1e-5)
    out = apply(lambda v, b: v @ b, [(iv.f32x3, v), (iv.f32x4x3, b)], iv.f32x4)
    np.testing.assert_allclose(out, (b @ v[:, :, None])[:, :, 0], rtol=1e-5, atol=1e-5)
    out = apply(iv.transpose, [(iv.f32x3x2, a)], iv.f32x2x3)
    assert (out == a.transpose(0, 2, 1)).all()
    square = uniform(-2, 2, 3, 3)
    out = apply(iv.determinant, [(iv.f32x3x3, square)], iv.f32)
    np.testing.assert_allclose(out, np.linalg.det(square.astype(np.float64)), rtol=1e-4, atol=1e-4)
    out = apply(lambda v: iv.f32x2x3(v, v * 2) + iv.f32x2x3(v, v), [(iv.f32x3, v)], iv.f32x2x3)
    np.testing.assert_allclose(out, np.stack([v * 2, v * 3], 1), rtol=1e-6)
    out = apply(lambda a: a[1], [(iv.f32x3x2, a)], iv.f32x2)
    assert (out == a[:, 1]).all()


def quantised(x, low, scale):
    return np.rint(np.clip(x, low, 1) * scale).astype(np.int64)


PACKED = {
    # Name: least value, the scale and the width of each field, lowest bits first.
    "unorm4x8": (0, [255] * 4, [8] * 4), "snorm4x8": (-1, [127] * 4, [8] * 4),
    "unorm2x16": (0, [65535] * 2, [16] * 2), "snorm2x16": (-1, [32767] * 2, [16] * 2),
    "unorm10a2": (0, [1023] * 3 + [3], [10] * 3 + [2]),
}  # fmt: skip


@pytest.mark.parametrize("name", PACKED)
def test_packing_of_floats(name):
    low, scales, widths = PACKED[name]
    ty = iv.f32x4 if len(scales) == 4 else iv.f32x2
    x = uniform(-1.5, 1.5, len(scales))
    fields = quantised(x, low, np.array(scales))
    words, at = np.zeros(SIZE, np.int64), 0
    for i, width in enumerate(widths):
        words |= (fields[:, i] & ((1 << width) - 1)) << at
        at += width
    out = apply(getattr(iv, f"pack_float_to_{name}"), [(ty, x)], iv.u32)
    assert (out == words).all()
    back = apply(getattr(iv, f"unpack_{name}_to_float"), [(iv.u32, out)], ty)
    np.testing.assert_allclose(back, fields / np.array(scales), rtol=1e-6)


def test_packing_of_srgb():
    bytes_ = np.arange(256, dtype=np.uint32)
    words = bytes_ * 0x01010101
    linear = apply(iv.unpack_srgb_unorm4x8_to_float, [(iv.u32, words)], iv.f32x4)
    s = bytes_ / 255
    expected = np.where(s <= 0.04045, s / 12.92, ((s + 0.055) / 1.055) ** 2.4)
    np.testing.assert_allclose(linear[:, :3], np.stack([expected] * 3, 1), rtol=1e-5)
    np.testing.assert_allclose(linear[:, 3], s, rtol=1e-6)
    back = apply(iv.pack_float_to_srgb_unorm4x8, [(iv.f32x4, linear)], iv.u32)
    assert (back == words).all()


# ---- simdgroups and quadgroups ----

LANES = {"simd": 32, "quad": 4}
REDUCE = {
    "sum": np.sum, "product": np.prod, "min": np.min, "max": np.max,
    "and": np.bitwise_and.reduce, "or": np.bitwise_or.reduce, "xor": np.bitwise_xor.reduce,
}  # fmt: skip


@pytest.mark.parametrize("group", LANES)
@pytest.mark.parametrize("name", REDUCE)
def test_reductions_of_lanes(group, name):
    x = RANDOM.integers(1, 4, SIZE).astype(np.uint32)
    out = apply(getattr(iv, f"{group}_{name}"), [(iv.u32, x)], iv.u32, 32)
    groups = x.reshape(-1, LANES[group])
    expected = [REDUCE[name](lanes) & 0xFFFFFFFF for lanes in groups.astype(np.uint64)]
    assert out.reshape(groups.shape).tolist() == [[int(e)] * LANES[group] for e in expected]


@pytest.mark.parametrize("group", LANES)
@pytest.mark.parametrize("kind", ["inclusive", "exclusive"])
@pytest.mark.parametrize("name", ["sum", "product"])
def test_scans_of_lanes(group, kind, name):
    x = RANDOM.integers(1, 4, SIZE).astype(np.uint32)
    out = apply(getattr(iv, f"{group}_prefix_{kind}_{name}"), [(iv.u32, x)], iv.u32, 32)
    groups = x.reshape(-1, LANES[group]).astype(np.uint64)
    scan = (np.cumsum if name == "sum" else np.cumprod)(groups, 1)
    if kind == "exclusive":
        first = np.full((len(scan), 1), 0 if name == "sum" else 1, np.uint64)
        scan = np.hstack([first, scan[:, :-1]])
    assert (out.reshape(scan.shape) == (scan & np.uint64(0xFFFFFFFF))).all()


# Which lane each lane's value comes from; one that does not exist gives 0.
SHUFFLES = {
    "shuffle": lambda i, d, n: d, "broadcast": lambda i, d, n: d,
    "shuffle_up": lambda i, d, n: i - d, "shuffle_down": lambda i, d, n: i + d,
    "shuffle_xor": lambda i, d, n: i ^ d,
    "shuffle_rotate_up": lambda i, d, n: (i - d) % n,
    "shuffle_rotate_down": lambda i, d, n: (i + d) % n,
}  # fmt: skip


@pytest.mark.parametrize("group", LANES)
@pytest.mark.parametrize("name", SHUFFLES)
def test_shuffles_of_lanes(group, name):
    x, n = uniform(-9, 9), LANES[group]
    for d in (0, 1, 2, 3):
        function = getattr(iv, f"{group}_{name}")
        out = apply(lambda x, d=d: function(x, d), [(iv.f32, x)], iv.f32, 32).reshape(-1, n)
        lanes = x.reshape(-1, n)
        for i in range(n):
            source = SHUFFLES[name](i, d, n)
            expected = lanes[:, source] if 0 <= source < n else 0 * lanes[:, 0]
            assert (out[:, i] == expected).all(), (i, d)


@pytest.mark.parametrize("group", LANES)
def test_votes_of_lanes(group):
    n = LANES[group]
    x = np.zeros(SIZE, bool)
    x[: SIZE // 2] = True
    x[3] = False
    lanes = x.reshape(-1, n)
    out = apply(getattr(iv, f"{group}_all"), [(iv.bool, x)], iv.bool, 32).reshape(-1, n)
    assert (out == lanes.all(1)[:, None]).all()
    out = apply(getattr(iv, f"{group}_any"), [(iv.bool, x)], iv.bool, 32).reshape(-1, n)
    assert (out == lanes.any(1)[:, None]).all()
    out = apply(getattr(iv, f"{group}_ballot"), [(iv.bool, x)], iv.u32x4, 32).reshape(-1, n, 4)
    words = (lanes << np.arange(n, dtype=np.uint64)).sum(1)
    assert (out[:, :, 0] == words[:, None]).all() and not out[:, :, 1:].any()
    y = uniform(-9, 9)
    out = apply(getattr(iv, f"{group}_broadcast_first"), [(iv.f32, y)], iv.f32, 32)
    assert (out.reshape(-1, n) == y.reshape(-1, n)[:, :1]).all()


# ---- the thread's place ----

GRID, GROUP = (5, 3, 2), (4, 2, 1)


def places():
    """Every thread of the grid: its position, its threadgroup's, and its place in it."""
    for z in range(GRID[2]):
        for y in range(GRID[1]):
            for x in range(GRID[0]):
                at = x, y, z
                group = tuple(p // g for p, g in zip(at, GROUP))
                inside = tuple(p % g for p, g in zip(at, GROUP))
                size = tuple(min(g, n - q * g) for g, n, q in zip(GROUP, GRID, group))
                number = inside[0] + inside[1] * size[0] + inside[2] * size[0] * size[1]
                yield at, group, inside, size, number


GROUPS = tuple(-(-n // g) for n, g in zip(GRID, GROUP))
DIMENSIONS = {
    "thread_position_in_grid": lambda at, group, inside, size, number: at,
    "thread_position_in_threadgroup": lambda at, group, inside, size, number: inside,
    "threadgroup_position_in_grid": lambda at, group, inside, size, number: group,
    "threads_per_threadgroup": lambda at, group, inside, size, number: size,
    "dispatch_threads_per_threadgroup": lambda at, group, inside, size, number: GROUP,
    "threads_per_grid": lambda at, group, inside, size, number: GRID,
    "grid_size": lambda at, group, inside, size, number: GRID,
    "threadgroups_per_grid": lambda at, group, inside, size, number: GROUPS,
    "grid_origin": lambda at, group, inside, size, number: (0, 0, 0),
}


def here():
    x, y, z = (iv.thread_position_in_grid(d) for d in "xyz")
    return x + y * GRID[0] + z * GRID[0] * GRID[1]


@pytest.mark.parametrize("name", DIMENSIONS)
def test_queries_of_positions_and_sizes(name):
    query = getattr(iv, name)

    @iv.kernel
    def k(out: iv.Buffer[iv.u32x3]):
        out[here()] = iv.u32x3(query("x"), query("y"), query("z"))

    out = np.zeros((30, 3), np.uint32)
    k[GRID, GROUP](out)
    assert [tuple(v) for v in out.tolist()] == [DIMENSIONS[name](*place) for place in places()]


def quarters(n):
    return -(-n // 4)


NUMBERS = {
    "thread_index_in_threadgroup": lambda number, count: number,
    "thread_index_in_simdgroup": lambda number, count: number % 4,
    "simdgroup_index_in_threadgroup": lambda number, count: number // 4,
    "simdgroups_per_threadgroup": lambda number, count: quarters(count),
    "dispatch_simdgroups_per_threadgroup": lambda number, count: 2,
    "threads_per_simdgroup": lambda number, count: 4,
    "thread_execution_width": lambda number, count: 4,
    "thread_index_in_quadgroup": lambda number, count: number % 4,
    "quadgroup_index_in_threadgroup": lambda number, count: number // 4,
    "quadgroups_per_threadgroup": lambda number, count: quarters(count),
    "dispatch_quadgroups_per_threadgroup": lambda number, count: 2,
}


@pytest.mark.parametrize("name", NUMBERS)
def test_queries_of_numbers(name):
    query = getattr(iv, name)

    @iv.kernel(simdgroup=4)
    def k(out: iv.Buffer[iv.u32]):
        out[here()] = query()

    out = np.zeros(30, np.uint32)
    k[GRID, GROUP](out)
    expected = [NUMBERS[name](n, s[0] * s[1] * s[2]) for _, _, _, s, n in places()]
    assert out.tolist() == expected


def test_every_row_of_the_table_is_tested_here():
    tested = {*FLOATS, *INTEGERS, *CLASSES, *COMPARE, *GEOMETRY, *DIMENSIONS, *NUMBERS}
    tested |= {"all", "any", "extract_bits", "insert_bits", "ldexp", "select", "cast", "as_type"}
    tested |= {"extract", "insert", "swizzle", "construct", "refract", "matrix_multiply"}
    tested |= {"transpose", "determinant"}
    for name in (*PACKED, "srgb_unorm4x8"):
        tested |= {f"pack_float_to_{name}", f"unpack_{name}_to_float"}
    for group in LANES:
        names = [*REDUCE, *SHUFFLES, "all", "any", "ballot", "broadcast_first"]
        names += [f"prefix_{k}_{n}" for k in ("inclusive", "exclusive") for n in ("sum", "product")]
        tested |= {f"{group}_{name}" for name in names}
    rows = {*_ops.GENERATED, *_ops.OPERATORS}
    assert rows - tested == set()
    assert tested - rows == set()
