"""Tensors: memory seen through a layout."""

from ._tracing import Tensor

__all__ = ["Tensor", "tensor_composition", "tensor_zipped_divide"]


def _tiler(tiler):
    return tuple(tiler) if isinstance(tiler, list) else tiler


def tensor_zipped_divide(tensor, tiler):
    """The tensor as ((tile), (rest)): mode 0 is one tile, mode 1 counts tiles."""
    return tensor.zipped_divide(_tiler(tiler))


def tensor_composition(tensor, tv_layout, tiler):
    """A tile as threads and values see it: ``tensor[thread, value]``, where ``tv_layout`` maps
    (thread, value) to the index in a tile of shape ``tiler``."""
    return tensor.composition(tv_layout, _tiler(tiler))
