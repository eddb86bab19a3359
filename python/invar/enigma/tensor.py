"""Tensors: memory seen through a layout."""

from __future__ import annotations

from .. import layout as _layout
from ._tracing import Tensor
from .core import Layout, SwizzledLayout

__all__ = ["Tensor", "tensor_composition", "tensor_zipped_divide"]


def _with(tensor, layout):
    return tensor.view(layout, tensor.base_offset, tensor.inner_offset)


def tensor_zipped_divide(tensor, tiler):
    """The tensor as ((tile), (rest)): mode 0 is one tile, mode 1 counts tiles."""
    return _with(tensor, _layout.zipped_divide(tensor._laid_out("tiles"), _tiler(tiler)))


def tensor_composition(tensor, tv_layout, tiler):
    """A tile as threads and values see it: ``tensor[thread, value]``, where ``tv_layout`` maps
    (thread, value) to the index in a tile of shape ``tiler``."""
    layout = tensor._laid_out("tiles")
    tiler = _tiler(tiler)
    if isinstance(tiler, tuple) and layout.rank() == 1 and len(tiler) > 1:
        # What `tensor[None, block]` leaves of a divided tensor: the tile as one mode.
        layout = _only_mode(layout)
    tile = layout if tiler is None else _layout.composition(layout, _whole(layout, tiler))
    return _with(tensor, _layout.composition(tile, tv_layout))


def _only_mode(layout):
    if isinstance(layout, SwizzledLayout):
        return SwizzledLayout(layout.layout[0], layout.swizzle)
    return layout[0]


def _tiler(tiler):
    return tuple(tiler) if isinstance(tiler, list) else tiler


def _whole(layout, tiler):
    """A tiler for the layout's modes; a tile as large as the layout is the layout itself."""
    plain = layout.layout if isinstance(layout, SwizzledLayout) else layout
    if isinstance(tiler, tuple) and len(tiler) == plain.rank():
        return tiler
    return Layout(plain.size()) if tiler == plain.size() else tiler
