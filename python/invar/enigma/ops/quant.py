"""Small integers in one word."""

from __future__ import annotations

from ..._types import type_named
from ..._values import Value, elementwise
from .._functions import extract_bits, insert_bits
from .._memory import to, uint, value

__all__ = ["dequantize_int8", "pack_int4x2", "pack_uint8x4", "unpack_int4x2", "unpack_uint8x4"]

_I32, _F32 = type_named("i32"), type_named("f32")


def _packed(parts, bits):
    word = uint(0)
    for i, part in enumerate(parts):
        word = insert_bits(word, uint(part), i * bits, bits)
    return word


def pack_uint8x4(b0, b1, b2, b3):
    """Four bytes in a ``uint``, the first lowest; of each operand the low 8 bits."""
    return _packed((b0, b1, b2, b3), 8)


def unpack_uint8x4(packed):
    """The four bytes of a ``uint``, the lowest first, each as a ``uint``."""
    packed = uint(packed)
    return tuple(extract_bits(packed, 8 * i, 8) for i in range(4))


def pack_int4x2(lo, hi):
    """Two four-bit integers in the low byte of a ``uint``: ``lo`` in the low half."""
    return _packed((lo, hi), 4)


def unpack_int4x2(packed):
    """The two signed four-bit integers of a byte, each as an ``int``: the low half first."""
    packed = to(uint(packed), _I32)
    return extract_bits(packed, 0, 4), extract_bits(packed, 4, 4)


def dequantize_int8(x, scale, zero_point=0):
    """``(x - zero_point) * scale`` as a ``float``; the difference of integers is one of ``int``."""

    def one(x):
        whole = isinstance(x, Value) and x.type.is_integer or type(x) is int
        ty = _I32 if whole else _F32
        return to(to(x, ty) - to(zero_point, ty), _F32) * to(scale, _F32)

    return elementwise(one, value(x))
