"""Shapes, strides and coordinates: integers, and tuples of such.

The functions take and give plain integers and tuples. A coordinate that is an integer beside a tuple is
taken apart with the leftmost mode fastest.
"""

from __future__ import annotations

import builtins
import math

from ..layout import product, repeat_like, select
from .typing import Coord, Shape, Stride

__all__ = [
    "Coord", "Int", "Shape", "Stride", "ceil_div", "compact_col_major", "compact_order", "crd2idx",
    "depth", "elem_scale", "flatten", "gcd", "idx2crd", "inner_product", "is_compatible",
    "is_congruent", "is_int", "is_tuple", "prefix_product", "product", "rank", "repeat_like", "select",
    "shape_div",
]  # fmt: skip

Int = int


def is_int(x):
    """Whether it is an integer."""
    return isinstance(x, int)


def is_tuple(x):
    """Whether it is a tuple."""
    return isinstance(x, builtins.tuple)


def rank(x):
    """How many modes there are at the top: 1 for an integer."""
    return len(x) if is_tuple(x) else 1


def depth(x):
    """How deep tuples nest: 0 for an integer."""
    return 1 + max(map(depth, x), default=0) if is_tuple(x) else 0


def flatten(x):
    """All integers in one tuple."""
    return sum(map(flatten, x), ()) if is_tuple(x) else (x,)


def inner_product(a, b):
    """The sum of the products of integers in the same place."""
    a, b = flatten(a), flatten(b)
    if len(a) != len(b):
        raise ValueError(f"an inner product of {len(a)} by {len(b)} integers")
    return sum(x * y for x, y in zip(a, b))


def crd2idx(crd, shape, stride):
    """The offset of a coordinate."""
    if is_tuple(crd):
        return sum(crd2idx(c, s, d) for c, s, d in zip(crd, shape, stride))
    if not is_tuple(shape):
        return crd * stride
    total = 0
    for s, d in zip(shape, stride):
        crd, part = divmod(crd, product(s))
        total += crd2idx(part, s, d)
    return total


def idx2crd(idx, shape):
    """The coordinate with an index, the leftmost mode fastest."""
    if not is_tuple(shape):
        return idx % shape
    parts = []
    for s in shape:
        idx, part = divmod(idx, product(s))
        parts.append(idx2crd(part, s))
    return builtins.tuple(parts)


def compact_col_major(shape, current=1):
    """The strides of a shape without gaps, the leftmost mode fastest, from ``current`` on."""
    if not is_tuple(shape):
        return current if shape > 0 else 0
    strides = []
    for s in shape:
        strides.append(compact_col_major(s, current))
        current *= product(s)
    return builtins.tuple(strides)


def compact_order(shape, order):
    """The strides of a shape without gaps, its modes from the fastest in the order of ``order``."""
    if rank(shape) == 1:
        return compact_col_major(shape)
    strides, current = [0] * len(shape), 1
    for mode in sorted(range(len(shape)), key=lambda i: order[i]):
        strides[mode] = compact_col_major(shape[mode], current)
        current *= product(shape[mode])
    return builtins.tuple(strides)


def prefix_product(shape, init=1):
    """What the product is before each integer, from ``init`` on."""
    products = []
    for n in flatten(shape):
        products.append(init)
        init *= n
    return builtins.tuple(products)


def ceil_div(a, b):
    """``a / b``, rounded up."""
    return -(-a // b)


def gcd(a, b):
    """The greatest common divisor."""
    return math.gcd(a, b)


def shape_div(a, b):
    """How many of ``a`` elements are left when every ``b``-th is taken, at least 1."""
    return a if b == 1 else max(1, a // b)


def elem_scale(a, b):
    """The products of integers in the same place; an integer stands beside each of a tuple's."""
    if is_tuple(a) and is_tuple(b):
        return builtins.tuple(elem_scale(x, y) for x, y in zip(a, b))
    if is_tuple(a):
        return builtins.tuple(elem_scale(x, b) for x in a)
    if is_tuple(b):
        return builtins.tuple(elem_scale(a, y) for y in b)
    return a * b


def is_congruent(a, b):
    """Whether both nest alike and hold the same integers."""
    if is_tuple(a) and is_tuple(b):
        return len(a) == len(b) and all(map(is_congruent, a, b))
    return not is_tuple(a) and not is_tuple(b) and a == b


def is_compatible(a, b):
    """Whether both have the same number of elements."""
    return product(a) == product(b)
