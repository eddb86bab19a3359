"""Arrays that lie on a device, and stay there between launches.

Absent: slices and operators; an array is passed, read and written as a whole.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _graphs, _host
from ._errors import ArgumentError, asked, entries

__all__ = "DeviceArray".split()


@entries
class DeviceArray:
    """An array in a device's memory, from ``device.array(x)`` or ``device.zeros(shape, type)``.

    It is an argument of launches on that device, which leave it there; ``numpy()`` copies it, once the
    launches submitted so far that write it have ended. So do NumPy's functions and, through DLPack,
    other libraries. It has no slices: it is passed, read and written as a whole.
    """

    __slots__ = ("device", "dtype", "shape", "_memory")

    def __init__(self, device: Any, dtype: Any, shape: tuple[int, ...]):
        #: Where it lies.
        self.device = device
        #: The type of its elements, as NumPy names it.
        self.dtype: np.dtype[Any] = dtype
        #: Its extents, those of an element's own last.
        self.shape: tuple[int, ...] = shape
        self._memory = asked(device._inner.memory, self.nbytes)

    def _as(self, step):
        """The same memory as an array of a parameter's elements."""
        other = object.__new__(DeviceArray)
        other.device, other.dtype, other._memory = self.device, step.dtype, self._memory
        size = step.dtype.itemsize * int(np.prod(step.shape, dtype=np.int64))
        if self.nbytes % size:
            raise ArgumentError(f"{step.where} has {self.nbytes} bytes, which is not a multiple of an element's {size}")
        other.shape = (self.nbytes // size, *step.shape)
        return other

    def __repr__(self):
        return f"<array of shape {self.shape} and dtype {self.dtype} on device {self.device.name}>"

    @property
    def ndim(self) -> int:
        """How many dimensions it has."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements it has, the components of vectors counted."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        """Its bytes."""
        return self.size * self.dtype.itemsize

    def __len__(self):
        if not self.shape:
            raise TypeError("an array without dimensions has no length")
        return self.shape[0]

    def numpy(self) -> np.ndarray[Any, Any]:
        """A copy on the host, as the launches submitted so far leave it."""
        _graphs.leave()
        out = np.empty(self.shape, self.dtype)
        asked(self._memory.read, out.__array_struct__)
        return out

    def write(self, x: Any) -> None:
        """Replaces its contents by those of an array of the same shape and type."""
        _graphs.leave()
        x = _host.copied_of("the array", x)
        if x.dtype != self.dtype or x.shape != self.shape:
            raise ArgumentError(
                f"an array of shape {x.shape} and dtype {x.dtype} does not replace one of shape "
                f"{self.shape} and dtype {self.dtype}"
            )
        asked(self._memory.write, np.ascontiguousarray(x).__array_struct__)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError(f"an array on device {self.device.name} is on the host only as a copy")
        array = self.numpy()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __dlpack__(self, *, copy: bool | None = None, **options: Any) -> Any:
        if copy is False:
            raise BufferError(f"an array on device {self.device.name} is passed on only as a copy")
        return _host.DLPack(self.numpy()).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)
