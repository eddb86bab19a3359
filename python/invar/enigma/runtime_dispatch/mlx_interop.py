"""Arrays of MLX, where a program uses it: their types, and how their memory is read and made.

MLX is imported by the program that uses it, never here: without it there is no such array.
"""

from __future__ import annotations

import ctypes
import sys

import numpy as np

from .. import typing as _typing
from .._errors import EnigmaRuntimeError, EnigmaTypeError

__all__ = [
    "is_mlx_array", "make_mlx_output", "mlx_buffer_ptr_and_size", "mlx_dtype_to_metal", "mlx_nbytes",
]  # fmt: skip

#: MLX's types by name, and Metal's.
_METAL = {
    "float32": "float", "float16": "half", "bfloat16": "bfloat", "int8": "char", "int16": "short",
    "int32": "int", "int64": "long", "uint8": "uchar", "uint16": "ushort", "uint32": "uint",
    "uint64": "ulong", "bool_": "bool",
}  # fmt: skip


def _mlx():
    """MLX's module of arrays, or ``None`` where the program has not imported it."""
    return sys.modules.get("mlx.core")


def is_mlx_array(obj):
    """Whether it is an array of MLX."""
    mx = _mlx()
    return mx is not None and isinstance(obj, mx.array)


def is_mlx_dtype(dtype):
    """Whether it is a type of MLX."""
    mx = _mlx()
    return mx is not None and isinstance(dtype, mx.Dtype)


def mlx_dtype_to_metal(dtype):
    """Metal's name of a type of MLX."""
    mx = _mlx()
    for name, metal in _METAL.items() if mx is not None else ():
        if dtype == getattr(mx, name, None):
            return metal
    raise EnigmaTypeError(f"{dtype} is not a type of MLX that Metal's kernels have")


def array_of(x):
    """The memory of an array of MLX as an array of NumPy; what NumPy has no type for, as integers of
    the same size."""
    mx = _mlx()
    mx.eval(x)
    if x.dtype == mx.bfloat16:
        x = x.view(mx.uint16)
    return np.asarray(x)


def of_array(array, dtype):
    """An array of MLX of a type, with what an array of NumPy of the same bits holds."""
    mx = _mlx()
    made = mx.array(array)
    return made if made.dtype == dtype else made.view(dtype)


def mlx_buffer_ptr_and_size(arr):
    """Where an array's memory begins and how many bytes it has, evaluated if it was not; ``(0, 0)`` of
    an empty one. The address is good for as long as the array lives."""
    if not is_mlx_array(arr):
        raise EnigmaTypeError(f"{type(arr).__name__} where an array of MLX is needed")
    _mlx().eval(arr)
    view = memoryview(arr)
    if view.nbytes == 0:
        return 0, 0
    return ctypes.addressof((ctypes.c_ubyte * view.nbytes).from_buffer(view)), view.nbytes


def make_mlx_output(shape, dtype):
    """An array of MLX of zeros."""
    mx = _mlx()
    if mx is None:
        raise EnigmaRuntimeError("an output of MLX's type needs MLX: import mlx.core")
    made = mx.zeros(shape, dtype=dtype)
    mx.eval(made)
    return made


def mlx_nbytes(shape, dtype):
    """The bytes of an array of MLX of a shape and type."""
    size_bytes = _typing.type_of(mlx_dtype_to_metal(dtype)).size_bytes
    return int(np.prod(shape, dtype=np.int64)) * size_bytes
