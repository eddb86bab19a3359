"""Integers of 4 and 8 bits in words, and the floats that they stand for.

The part with the lowest index lies in the lowest bits. Absent: matrix products of them.
"""

from __future__ import annotations

from . import _trace
from ._types import Type, type_named
from ._values import Value, constant, convert, default_type, describe, op, to_type, weak_kind

__all__ = (
    "dequantize pack_int4x2 pack_int4x8 pack_int8x4 pack_uint8x4 quantize unpack_int4x2 unpack_int4x8 "
    "unpack_int8x4 unpack_uint4x8 unpack_uint8x4"
).split()

_I32, _U32, _U8 = (type_named(n) for n in ("i32", "u32", "u8"))


def _integer(x, what):
    """An integer scalar, as it is."""
    if isinstance(x, Value) and x.type.kind == "scalar" and x.type.is_integer:
        return x
    if weak_kind(x) == "int":
        return to_type(x, _I32, what)
    raise _trace.error(f"{what} of {describe(x)}: it takes integers")


def _word(x, what):
    if not (isinstance(x, Value) and x.type == _U32):
        found = x.type if isinstance(x, Value) else describe(x)
        raise _trace.error(f"{what} takes a u32, found {found}")
    return x


def _parts(parts, count, what):
    if len(parts) == 1 and isinstance(parts[0], Value) and parts[0].type.kind == "vector":
        parts = tuple(parts[0])
    elif len(parts) == 1 and isinstance(parts[0], (list, tuple)):
        parts = tuple(parts[0])
    if len(parts) != count:
        raise _trace.error(f"{what} takes {count} integers, found {len(parts)}")
    return [convert(_U32, (_integer(x, what),)) for x in parts]


def _bits(at, count):
    """A place in a word: the number of its first bit, and of its bits."""
    return constant(_U32, at), constant(_U32, count)


def _pack(parts, bits):
    word = parts[0] & ((1 << bits) - 1)
    for i, part in enumerate(parts[1:], 1):
        word = op("insert_bits", [word, part, *_bits(i * bits, bits)])
    return word


def _unpack(word, bits, ty, total=32):
    """All fields of a word; signed types are extended by the sign."""
    word = convert(ty, (word,))
    return tuple(op("extract_bits", [word, *_bits(at, bits)]) for at in range(0, total, bits))


def pack_uint8x4(*parts: Operand) -> Value:
    """The low 8 bits of four integers, or of a vector of 4, in one ``u32``."""
    return _pack(_parts(parts, 4, "iv.pack_uint8x4()"), 8)


def pack_int8x4(*parts: Operand) -> Value:
    """The low 8 bits of four signed integers, or of a vector of 4, in one ``u32``."""
    return _pack(_parts(parts, 4, "iv.pack_int8x4()"), 8)


def unpack_uint8x4(word: Value) -> Value:
    """The four bytes of a ``u32`` as a ``u32x4``."""
    return convert(type_named("u32x4"), _unpack(_word(word, "iv.unpack_uint8x4()"), 8, _U32))


def unpack_int8x4(word: Value) -> Value:
    """The four signed bytes of a ``u32`` as an ``i32x4``."""
    return convert(type_named("i32x4"), _unpack(_word(word, "iv.unpack_int8x4()"), 8, _I32))


def pack_int4x8(*parts: Operand) -> Value:
    """The low 4 bits of eight integers in one ``u32``."""
    return _pack(_parts(parts, 8, "iv.pack_int4x8()"), 4)


def unpack_uint4x8(word: Value) -> tuple[Value, ...]:
    """The eight unsigned 4-bit integers of a ``u32``, as a tuple of ``u32``."""
    return _unpack(_word(word, "iv.unpack_uint4x8()"), 4, _U32)


def unpack_int4x8(word: Value) -> tuple[Value, ...]:
    """The eight signed 4-bit integers of a ``u32``, as a tuple of ``i32``."""
    return _unpack(_word(word, "iv.unpack_int4x8()"), 4, _I32)


def pack_int4x2(low: Operand, high: Operand) -> Value:
    """The low 4 bits of two integers in one ``u8``."""
    return convert(_U8, (_pack(_parts((low, high), 2, "iv.pack_int4x2()"), 4),))


def unpack_int4x2(byte: Operand) -> tuple[Value, Value]:
    """The two signed 4-bit integers of a byte, as a tuple of ``i32``, the lower one first."""
    return _unpack(_integer(byte, "iv.unpack_int4x2()"), 4, _I32, 8)


def _zero_point(zero_point, ty):
    if isinstance(zero_point, Value) and zero_point.type.scalar != ty.scalar:
        return convert(zero_point.type.with_scalar(ty.scalar), (zero_point,))
    return to_type(zero_point, ty.scalar, "a zero point")


def dequantize(x: Value, scale: Operand, zero_point: Operand = 0) -> Value:
    """``(x - zero_point) * scale`` in the type of ``scale``; ``x`` is an integer or a vector of them.

    The difference is taken after both became floats.
    """
    ty = default_type(scale)
    if not ty.is_float or ty.kind != "scalar":
        raise _trace.error(f"iv.dequantize(): the scale is {ty}, it must be a float")
    if not (isinstance(x, Value) and x.type.is_integer):
        raise _trace.error(f"iv.dequantize() of {describe(x)}: it takes integers")
    value = convert(x.type.with_scalar(ty), (x,))
    scale = to_type(scale, ty, "iv.dequantize()")
    if isinstance(zero_point, Value) or zero_point != 0:
        value = value - _zero_point(zero_point, ty)
    return value * scale


def quantize(x: Value, scale: Operand, zero_point: Operand = 0, ty: Type = type_named("i8")) -> Value:
    """``rint(x / scale) + zero_point`` as an integer of 8 bits or more, saturating at its limits."""
    if not (isinstance(x, Value) and x.type.is_float):
        raise _trace.error(f"iv.quantize() of {describe(x)}: it takes floats")
    if not isinstance(ty, Type) or ty.kind != "scalar" or not ty.is_integer:
        raise _trace.error(f"iv.quantize() gives an integer type, not {ty}")
    value = op("rint", [x / scale])
    if isinstance(zero_point, Value) or zero_point != 0:
        value = value + _zero_point(zero_point, x.type)
    # Conversions saturate (A5).
    return convert(value.type.with_scalar(ty), (value,))
