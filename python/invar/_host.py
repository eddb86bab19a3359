"""Arrays of NumPy and of other libraries, as arrays of NumPy on their memory.

Through the buffer protocol, ``__array_interface__`` or DLPack, whose capsules are read here: NumPy's own
function knows no bfloat16. Absent: what a kernel makes of an array (``_arguments``), and arrays of devices
(``_array``).
"""

from __future__ import annotations

import ctypes
import math
import sys
from typing import Any

import numpy as np

from . import _types, _values
from ._errors import ArgumentError, Error

__all__ = "DLPack".split()


def array_of(where, x):
    """An argument as an array on its own memory."""
    if isinstance(x, np.ma.MaskedArray):
        raise ArgumentError(
            f"{where} is a masked array, and kernels do not support masks: pass its .data, or .filled(...)"
        )
    if isinstance(x, np.ndarray):
        return np.asarray(x)
    if isinstance(x, np.generic):
        raise ArgumentError(f"{where} is one number of NumPy, expected an array")
    if hasattr(x, "__array_interface__"):
        try:
            return np.asarray(x)
        except Exception as e:
            raise ArgumentError(f"{where} has no usable __array_interface__: {e}") from None
    if type(x) is DLPack:
        return x.array
    if hasattr(x, "__dlpack__"):
        return _through_dlpack(where, x, "used in place")
    try:
        view = memoryview(x)
    except TypeError:
        if isinstance(x, _values.Memory):
            raise ArgumentError(
                f"{where} is an array of the kernel that is being compiled: a kernel cannot launch "
                "another; take @iv.kernel off what kernels share, and call it"
            ) from None
        raise ArgumentError(
            f"{where} is a {type(x).__name__}, expected an array: anything with the buffer "
            "protocol, __array_interface__ or DLPack" + ("; pass its .to_numpy()" if hasattr(x, "to_numpy") else "")
        ) from None
    return np.asarray(view)


def copied_of(where, x):
    """An argument as an array that is copied at once: DLPack's memory may be another device's."""
    if hasattr(x, "__dlpack__") and not hasattr(x, "__array_interface__"):
        return _through_dlpack(where, x, "copied", copy=True)
    return array_of(where, x)


def _through_dlpack(where, x, how, copy=False):
    try:
        return from_dlpack(x, copy)
    except Error:
        raise  # The argument fits; a launch that wrote it failed, and that is told as by `numpy()`.
    except Exception as e:  # Whatever its own code raises.
        raise ArgumentError(f"{where} cannot be {how} through DLPack: {e}") from None


# DLPack's codes of types, and NumPy's letters.
_DL_UINT, _DL_BFLOAT = 1, 4
_DL_LETTERS = {0: "i", _DL_UINT: "u", 2: "f", 5: "c", 6: "b"}
_DL_READ_ONLY, _DL_IS_COPIED = 1, 2
# Devices whose memory the CPU reads and writes: its own, and what CUDA pins there.
_DL_CPU, _DL_CUDA_HOST = 1, 3
# NumPy's limit since version 2; before that it is 32, which NumPy says itself.
_MOST_DIMENSIONS = 64


class _Tensor(ctypes.Structure):
    """DLPack's ``DLTensor``."""

    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class _Versioned(ctypes.Structure):
    """DLPack's ``DLManagedTensorVersioned``."""

    _fields_ = [
        ("version", ctypes.c_uint32 * 2), ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", _Tensor),
    ]  # fmt: skip


def _tensor(capsule):
    """What a capsule holds, and its flags; ``None`` where it has no version, and so no flags."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    valid = ctypes.pythonapi.PyCapsule_IsValid
    valid.restype, valid.argtypes = ctypes.c_int, (ctypes.py_object, ctypes.c_char_p)
    if valid(capsule, b"dltensor_versioned"):
        managed = _Versioned.from_address(get(capsule, b"dltensor_versioned"))
        if managed.version[0] != 1:
            raise BufferError(f"it speaks version {managed.version[0]} of DLPack, not 1")
        return managed.tensor, managed.flags
    return _Tensor.from_address(get(capsule, b"dltensor")), None


def _is_tensor(x):
    """Whether it is a tensor of PyTorch; without loading that."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, getattr(torch, "Tensor", ()))


def _is_transformed(x):
    """Whether it stands for other tensors of PyTorch, which ``torch.func`` takes through a function."""
    functions = getattr(sys.modules["torch"]._C, "_functorch", None)
    is_wrapped = getattr(functions, "is_functorch_wrapped_tensor", None)
    return is_wrapped is not None and is_wrapped(x)


def _not_written(x, flags):
    """Why a kernel must not write what a capsule holds; ``None`` if it may."""
    if flags is None:
        # Tensors of PyTorch may be written, whatever version of DLPack they know. So may some others' arrays,
        # but those of JAX, TensorFlow and others never change, and what is computed of them is kept.
        if _is_tensor(x):
            return None
        return (
            f"({type(x).__name__}) comes through DLPack without a version, which does not say that its "
            "memory may change"
        )
    if flags & _DL_READ_ONLY:
        return "is read-only memory"
    if flags & _DL_IS_COPIED:
        return "comes through DLPack as a copy, so that what is written to it would be lost"
    return None


def from_dlpack(x, copy=False):
    """An object of DLPack's protocol as an array on its memory; with ``copy`` on a copy that it makes,
    where its memory is not the CPU's."""
    if _is_tensor(x) and _is_transformed(x):
        raise BufferError(
            "torch.func takes it through a function, so make the launch an operation by torch.library.custom_op"
        )
    if _is_tensor(x) and x.is_neg():
        raise BufferError("its memory holds the numbers negated, so use tensor.resolve_neg()")
    kind = int(x.__dlpack_device__()[0])
    options = {}
    if kind not in (_DL_CPU, _DL_CUDA_HOST):
        if not copy:
            raise BufferError(f"its memory is on a device of kind {kind}, not the CPU's")
        options = {"dl_device": (_DL_CPU, 0), "copy": True}
    try:
        capsule = x.__dlpack__(max_version=(1, 0), **options)
    except TypeError:
        if options:
            raise BufferError(f"its memory is on a device of kind {kind}, and it makes no copy on the CPU") from None
        capsule = x.__dlpack__()
    tensor, flags = _tensor(capsule)
    if tensor.device_type not in (_DL_CPU, _DL_CUDA_HOST):
        raise BufferError(f"its memory is on a device of kind {tensor.device_type}, and it says the CPU's")
    if not 0 <= tensor.ndim <= _MOST_DIMENSIONS:
        raise BufferError(f"it has {tensor.ndim} dimensions; arrays have at most {_MOST_DIMENSIONS}")
    if (tensor.code, tensor.bits) == (_DL_BFLOAT, 16):
        try:
            dtype = _types.type_named("bf16").numpy()
        except Error as e:
            raise BufferError(str(e)) from None
    elif tensor.code in _DL_LETTERS and tensor.bits % 8 == 0:
        dtype = np.dtype(f"{_DL_LETTERS[tensor.code]}{tensor.bits // 8}")
    else:
        raise BufferError(f"its type has code {tensor.code} and {tensor.bits} bits")
    if tensor.lanes != 1:
        raise BufferError(f"its elements have {tensor.lanes} lanes")
    shape, strides = tensor.shape[: tensor.ndim], None
    if 0 in shape:
        return np.zeros(shape, dtype)
    if not tensor.data:
        raise BufferError("it has no memory")
    extent = math.prod(shape) * dtype.itemsize
    if tensor.strides:
        strides = [n * dtype.itemsize for n in tensor.strides[: tensor.ndim]]
        if min(strides, default=0) < 0:
            raise BufferError("its strides are negative")
        extent = dtype.itemsize + sum((n - 1) * stride for n, stride in zip(shape, strides))
    memory = (ctypes.c_char * extent).from_address(tensor.data + tensor.byte_offset)
    # The capsule frees the memory when nothing refers to it any more.
    memory.capsule = capsule
    array = np.ndarray(shape, dtype, memory, strides=strides)
    why = _not_written(x, flags)
    if why is not None:
        memory.not_written = why
        array.flags.writeable = False
    return array


class DLPack:
    """An array for other libraries' ``from_dlpack``, on the same memory; bfloat16 too."""

    def __init__(self, array: Any):
        self.array = array_of("the array", array)

    def __dlpack__(self, *, copy: bool | None = None, **options: Any) -> Any:
        if copy:
            raise BufferError("the memory is shared, not copied")
        brain = self.array.dtype.name == "bfloat16"
        source = self.array.view(np.uint16) if brain else self.array
        try:
            capsule = source.__dlpack__(**options)
        except TypeError:
            # NumPy before 2.1 knows no versions.
            capsule = source.__dlpack__()
        if brain:
            _tensor(capsule)[0].code = _DL_BFLOAT
        return capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (_DL_CPU, 0)
