"""Tensors: memory seen through a layout."""

from ._errors import error
from ._memory import Tensor, make_identity_tensor
from .core import Layout, SwizzledLayout
from .tuple import flatten, idx2crd, is_int, is_tuple, product

__all__ = ["Tensor", "make_identity_tensor", "tensor_composition", "tensor_zipped_divide"]


def _tiler(tiler):
    return tuple(tiler) if isinstance(tiler, list) else tiler


def tensor_zipped_divide(tensor, tiler):
    """The tensor as (tile, rest): mode 0 is one tile, mode 1 counts tiles. A tile that is larger than
    the tensor is refused."""
    tiler = _tiler(tiler)
    tile = tiler.shape if isinstance(tiler, (Layout, SwizzledLayout)) else tiler
    shape = tensor.shape
    sizes, tile = (x if is_tuple(x) else (x,) for x in (shape, tile))
    for mode, (size, wanted) in enumerate(zip(sizes, tile)):
        wanted = wanted.shape if isinstance(wanted, Layout) else wanted
        if product(wanted) > product(size):
            raise error(
                f"tensor_zipped_divide: mode {mode} of `{tensor.name}` has {product(size)} elements, "
                f"the tile {product(wanted)}: a tile lies inside its tensor"
            )
    return tensor.zipped_divide(tiler)


def tensor_composition(tensor, tv_layout, tiler):
    """A tile as threads and values see it: ``tensor[thread, value]``, where ``tv_layout`` maps
    (thread, value) to the index in a tile of shape ``tiler``."""
    return tensor.composition(tv_layout, _tiler(tiler))
