"""Layouts: the algebra of ``invar.layout`` under the Enigma DSL's names.

What a tuple of sizes divides is divided mode by mode, a mode without a size by 1, and a layout of one
mode becomes ``(tile, rest)`` without more parentheses; all else is CuTe's, as in ``invar.layout``.
"""

from .. import layout as _layout
from ..layout import (
    Layout,
    Swizzle,
    SwizzledLayout,
    blocked_product,
    coalesce,
    complement,
    composition,
    cosize,
    left_inverse,
    logical_divide,
    make_identity_layout,
    make_layout,
    make_ordered_layout,
    recast_layout,
    right_inverse,
    swizzle,
)
from .tuple import (
    Coord,
    Shape,
    Stride,
    ceil_div,
    compact_col_major,
    compact_order,
    crd2idx,
    depth,
    flatten,
    gcd,
    is_int,
    is_tuple,
    product,
)

#: What `from enigma.core import *` takes, and the package's own names with it.
__all__ = [
    "Layout", "Swizzle", "SwizzledLayout", "blocked_product", "coalesce", "complement",
    "composition", "logical_divide", "make_identity_layout", "make_layout", "make_layout_tv",
    "make_ordered_layout", "recast_layout", "size", "swizzle", "zipped_divide",
]  # fmt: skip


def size(x, mode=None):
    """The number of elements of a layout, shape or tensor: of all modes, of one, or of what a path
    leads to, where ``mode=[1, 0]`` is mode 0 of mode 1."""
    if hasattr(x, "size") and not isinstance(x, (Layout, SwizzledLayout)):
        return x.size(mode)
    return _layout.size(x, mode)


def make_layout_tv(thr_layout, val_layout):
    """The shape of a tile, and the layout that maps (thread, value) to the index in it.

    Threads and values keep the modes of their layouts, the fastest first, where that is the layout
    that the algebra gives.
    """
    tiler, tv = _layout.make_layout_tv(thr_layout, val_layout)
    threads, values = ([*_modes(x)] for x in (thr_layout, val_layout))
    if not all(is_int(shape) for shape, _ in (*threads, *values)):
        return tiler, tv
    steps = compact_col_major(tiler if is_tuple(tiler) else (tiler,))
    parts = []
    for modes, apart in ((threads, [shape for shape, _ in values]), (values, [1] * len(values))):
        order = sorted(range(len(modes)), key=lambda i: modes[i][1])
        parts.append(
            Layout(tuple(modes[i][0] for i in order), tuple(apart[i] * steps[i] for i in order))
        )
    if any(coalesce(part) != coalesce(tv[i]) for i, part in enumerate(parts)):
        return tiler, tv
    thread, value = parts
    return tiler, Layout((thread.shape, value.shape), (thread.stride, value.stride))


def _modes(layout):
    """The modes of a layout as pairs of shape and stride."""
    if is_tuple(layout.shape):
        return zip(layout.shape, layout.stride)
    return [(layout.shape, layout.stride)]


def zipped_divide(layout, tiler):
    """A layout as (tile, rest): mode 0 is one tile, mode 1 counts tiles.

    A tiler of fewer sizes than there are modes has 1 for the others, and sizes beyond the modes say
    nothing. A tile that does not divide its mode is counted up to the last, which is partly outside.
    """
    modes = layout.rank()
    if not isinstance(tiler, (Layout, SwizzledLayout, str)):
        sizes = tiler if is_tuple(tiler) else (tuple(tiler) if isinstance(tiler, list) else (tiler,))
        tiler = (*sizes, *[1] * modes)[:modes]
    divided = _layout.zipped_divide(layout, tiler)
    return _plain(divided) if modes == 1 else divided


def _plain(divided):
    """``((tile),(rest))`` as ``(tile,rest)``."""
    bare = divided.layout if isinstance(divided, SwizzledLayout) else divided

    def inner(x):
        return tuple(part[0] if is_tuple(part) and len(part) == 1 else part for part in x)

    plain = Layout(inner(bare.shape), inner(bare.stride))
    return SwizzledLayout(plain, divided.swizzle) if isinstance(divided, SwizzledLayout) else plain
