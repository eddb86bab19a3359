"""Layouts: the algebra of ``invar.layout`` under the Enigma DSL's names."""

from .. import layout as _layout
from ..layout import (
    Layout,
    Swizzle,
    SwizzledLayout,
    blocked_product,
    coalesce,
    complement,
    composition,
    logical_divide,
    make_identity_layout,
    make_layout,
    make_layout_tv,
    make_ordered_layout,
    recast_layout,
    swizzle,
    zipped_divide,
)

__all__ = [
    "Layout", "Swizzle", "SwizzledLayout", "blocked_product", "coalesce", "complement",
    "composition", "logical_divide", "make_identity_layout", "make_identity_tensor", "make_layout",
    "make_layout_tv", "make_ordered_layout", "recast_layout", "size", "swizzle", "zipped_divide",
]  # fmt: skip


def make_identity_tensor(shape):
    """The tensor whose element at a coordinate is that coordinate."""
    return IdentityTensor(Layout(shape))


class IdentityTensor:
    """Gives every coordinate itself; an index gives its coordinate."""

    def __init__(self, layout):
        self.layout = layout

    @property
    def shape(self):
        return self.layout.shape

    def size(self, mode=None):
        return self.layout.size(mode)

    def __call__(self, *coord):
        return self[coord[0] if len(coord) == 1 else coord]

    def __getitem__(self, coord):
        if isinstance(coord, int):
            return self.layout.coordinate(coord)
        self.layout.index(coord)
        return coord

    def __repr__(self):
        return f"make_identity_tensor({self.shape})"


def size(x, mode=None):
    """The number of elements of a layout, shape or tensor, of all modes or of those given."""
    if hasattr(x, "size") and not isinstance(x, (Layout, SwizzledLayout)):
        return x.size(mode)
    return _layout.size(x, mode)
