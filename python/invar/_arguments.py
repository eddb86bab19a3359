"""Arguments of a launch: arrays used in place, values as bits; what does not fit is refused here.

Nothing of a launch has begun when this raises. Absent: running the launch.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from . import _invar, _types, _values
from ._array import DeviceArray
from ._errors import ArgumentError, Error, entry
from ._host import array_of
from ._textures import Sampler, Texture

__all__ = "zeros".split()

# NumPy's flags: C-contiguous, aligned, writeable.
_IN_PLACE, _WRITEABLE = 0x001 | 0x100, 0x400
#: The kinds of parameters whose arguments are memory.
IN_MEMORY = ("buffer", "constant", "texture")


class Step:
    """How the argument of one parameter is converted."""

    __slots__ = ("kernel", "name", "kind", "element", "dtype", "shape", "extents", "flags", "where", "is_of_rows")

    def __init__(self, kernel, param):
        self.kernel, self.name, self.kind, self.element = kernel, param.name, param.kind, param.element
        self.where = f"argument `{param.name}` of `{kernel}`"
        self.dtype, self.shape, self.flags = None, (), 0
        #: Of a texture, whether it is an array of rows.
        self.is_of_rows = self.kind == "texture" and str(self.element).startswith(("texture1d_array", "Texture1DArray"))
        #: What the annotation says of the shape, if anything; ``shape`` is an element's own.
        self.extents = param.shape
        if self.kind in ("buffer", "constant"):
            self.dtype, self.shape = _types.numpy_element(self.element)
            self.flags = _IN_PLACE | (_WRITEABLE if param.access & 2 else 0)
        elif self.kind == "texture":
            self.flags = _WRITEABLE if param.access & 2 else 0


#: Launches under way (``_launch.Future``), and those of them that copy back at their end.
in_flight: set = set()
copying: set = set()


def wait_for(array, launches):
    """Ends the launches of some that use memory of an array: before it is copied, and before a launch
    uses what another has yet to copy back."""
    for future in list(launches):
        if any(isinstance(x, np.ndarray) and np.may_share_memory(x, array) for x in future.arrays()):
            future.exception()


def bound_by(kernel, names, args, kwargs, named, defaults=()):
    """Arguments by the names of what they are for; ``named`` says what a keyword is for."""
    if len(args) > len(names):
        raise ArgumentError(f"kernel `{kernel}` takes {len(names)} arguments ({', '.join(names)}), found {len(args)}")
    bound = dict(zip(names, args))
    for keyword, x in kwargs.items():
        name = named(keyword)
        if name in bound:
            raise ArgumentError(f"kernel `{kernel}` got parameter `{name}` twice")
        bound[name] = x
    bound = {**dict(defaults), **bound}
    for name in names:
        if name not in bound:
            method = ": a kernel is a function, not a method; write it outside of the class"
            advice = method if names[0] == "self" else ""
            raise ArgumentError(f"kernel `{kernel}` needs an argument for `{name}`{advice}")
    return bound


def convert(steps, bound, copy=False):
    """The arguments as the extension takes them: an array's interface, bits, or a length; of a
    texture the interface and its size.

    Gives those, the arrays that must live until the run has ended, and what is copied back then.
    """
    given, alive, back = [], [], []
    for step, x in zip(steps, bound):
        kind = step.kind
        if kind == "buffer" or kind == "constant":
            if type(x) is DeviceArray:
                _check_type(step, x, "make an array of that type")
                if step.extents is not None:
                    _check_extents(step, x)
                given.append(x._memory)
                alive.append(x)
                continue
            if type(x) is not np.ndarray:
                x = array_of(step.where, x)
            flags = x.flags.num & step.flags
            shape = step.shape
            if x.dtype != step.dtype or flags != step.flags or (shape and x.shape[-len(shape) :] != shape):
                x = _other(step, x, copy, back)
            elif copying:
                wait_for(x, copying)
            if step.extents is not None:
                _check_extents(step, x)
            given.append(x.__array_struct__)
            alive.append(x)
        elif kind == "scalar":
            given.append(scalar(step.where, step.element, x))
        elif kind == "texture":
            array = _texture(step, x)
            given.append((array.__array_struct__, x._size_as(step.is_of_rows)))
            alive.append(array)
        elif kind == "sampler":
            _check_class(step, x, Sampler, 'a sampler: write iv.Sampler("linear")')
            given.append(x._words)
        elif kind == "threadgroup":
            if isinstance(x, bool) or not isinstance(x, (int, np.integer)) or x < 0:
                raise ArgumentError(f"{step.where} is {x!r}, expected a length in elements")
            given.append(int(x))
    if back:
        # Copies hide overlaps from the device: the arrays that were passed must not overlap either.
        passed = {step: x for step, x, _ in back}
        memory = [step for step in steps if step.kind in IN_MEMORY]
        check_overlap(steps, [passed.get(s, x) for s, x in zip(memory, alive)])
    return given, alive, back


def _check_class(step, x, cls, expected):
    if type(x) is not cls:
        raise ArgumentError(f"{step.where} is a {type(x).__name__}, expected {expected}")


def _texture(step, x):
    """The array of a texture."""
    advice = 'a texture: write iv.Texture(array, "rgba8unorm"), with the format of its texels'
    _check_class(step, x, Texture, advice)
    array = x._memory
    if step.flags & _WRITEABLE and not array.flags.writeable:
        raise ArgumentError(f"{step.where} is read-only memory, but the kernel writes it: pass a copy")
    if copying:
        wait_for(array, copying)
    return array


def check_overlap(steps, arrays):
    """Refuses arrays that overlap where the kernel writes one of them (S3), as a launch does."""
    seen = []
    for step, x in zip([s for s in steps if s.kind in IN_MEMORY], arrays):
        for other, y in seen:
            if (step.flags | other.flags) & _WRITEABLE and _share(x, y):
                which = step if step.flags & _WRITEABLE else other
                raise ArgumentError(
                    f"arguments `{other.name}` and `{step.name}` of `{step.kernel}` overlap in memory, and the kernel "
                    f"may write `{which.name}`: give each a buffer of its own [overlapping-buffers]"
                )
        seen.append((step, x))


def _other(step, x, copy, back):
    """An array that cannot be used as it is: refused, or copied if that was asked for."""
    writes = step.flags & _WRITEABLE
    closed = writes and not x.flags.writeable
    raw = isinstance(x.base, memoryview) and x.dtype == np.uint8
    dtype = repr(step.dtype.name) if step.dtype.names is None else "its dtype"
    if raw and closed:
        advice = (
            f"its memory is read-only and the kernel writes it, so pass np.empty(n, {dtype}), or "
            f"np.frombuffer(bytearray(...), {dtype})"
        )
    else:
        advice = f"convert it with np.frombuffer(..., {dtype})" if raw else f"convert it with .astype({dtype})"
    _check_type(step, x, advice)
    if closed:
        why = getattr(x.base, "not_written", "is read-only memory")
        # NumPy makes one string of bytes, not an array.
        of_bytes = raw and isinstance(x.base.obj, bytes)
        copied = "bytearray(...)" if of_bytes else "np.array(...)"
        raise ArgumentError(f"{step.where} {why}, but the kernel writes it: pass a copy, such as {copied} of it")
    if not copy:
        what, how = "not contiguous", "np.ascontiguousarray(...)"
        if x.flags.c_contiguous:
            what, how = "not aligned in memory", ".copy()"
        raise ArgumentError(
            f"{step.where} is {what}: pass {how} of it, or copy=True, which copies it, and copies back "
            "what the kernel writes"
        )
    if writes and _repeats(x):
        raise ArgumentError(
            f"{step.where} has elements that share memory, by its strides of {x.strides} bytes, and "
            "the kernel writes it: pass a copy"
        )
    wait_for(x, in_flight)
    copied = np.array(x, order="C", copy=True)
    back.append((step, x, copied if writes else None))
    return copied


def _check_type(step, x, advice):
    if x.dtype != step.dtype:
        raise ArgumentError(f"{step.where} has dtype {x.dtype}, expected {step.dtype}: {advice}")
    shape = step.shape
    if shape and x.shape[-len(shape) :] != shape:
        raise ArgumentError(
            f"{step.where} has shape {x.shape}; elements of {step.element} need its last "
            f"dimension{'s' if len(shape) > 1 else ''} to be {shape}"
        )


def _check_extents(step, x):
    """Refuses an array of another shape than the annotation's: its indices would go elsewhere."""
    found = x.shape[: len(x.shape) - len(step.shape)]
    wanted = step.extents
    if len(found) != len(wanted) or any(n not in (None, m) for n, m in zip(wanted, found)):
        sizes = ", ".join("-1" if n is None else str(n) for n in (*wanted, *step.shape))
        raise ArgumentError(
            f"{step.where} has shape {tuple(found)}, and its annotation says {wanted}: pass an array of "
            f"that shape, such as its .reshape({sizes})"
        )


def _repeats(x):
    """Whether elements of an array may lie in the same memory."""
    extent = x.itemsize
    for stride, n in sorted((abs(s), n) for s, n in zip(x.strides, x.shape) if n > 1):
        if stride < extent:
            return True
        extent += stride * (n - 1)
    return False


def _share(x, y):
    """Whether two arrays have an element in common; also where that is too hard to tell."""
    if DeviceArray in (type(x), type(y)):
        return bool(x.nbytes) and getattr(x, "_memory", x) is getattr(y, "_memory", y)
    try:
        return np.shares_memory(x, y, max_work=100_000)
    except RuntimeError:
        return True


def copy_back(back):
    """Puts what a kernel wrote to copies where it belongs."""
    for _, array, copied in back:
        if copied is not None:
            array[...] = copied


# ---- arrays ----


def extents(shape, dtype, inner):
    """The extents that a user gives for an array of elements of a dtype and shape."""
    try:
        given = tuple(operator.index(n) for n in ([shape] if hasattr(shape, "__index__") else shape))
    except TypeError:
        raise ArgumentError(f"{shape!r} is not a shape: give an integer or a tuple of them") from None
    if any(n < 0 for n in given):
        raise ArgumentError(f"an array of shape {given} has an extent below 0")
    if math.prod((*given, *inner)) * dtype.itemsize >= 2**63:
        raise ArgumentError(f"an array of shape {given} is larger than any memory")
    return given


@entry
def zeros(shape: int | tuple[int, ...], ty: Element) -> np.ndarray[Any, Any]:
    """An array of zeros for a kernel's buffer: of ``shape`` elements of a type or struct.

    Components of vectors and matrices are its last dimensions. The memory begins at a multiple of 64
    bytes.
    """
    dtype, inner = _types.numpy_element(_types.element_of(ty))
    shape = (*extents(shape, dtype, inner), *inner)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    memory = np.zeros(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size].view(dtype).reshape(shape)


# ---- values ----


def scalar(where, ty, x):
    """A value's components as bits."""
    if type(x) is np.float64:
        x = float(x)  # It is one of Python's floats.
    if ty.shape:
        try:
            parts = np.asarray(x)
        except ValueError:
            raise ArgumentError(f"{where} is {x!r}, expected {ty}") from None
        if parts.shape != ty.shape:
            raise ArgumentError(f"{where} has shape {parts.shape}, expected {ty.shape} for {ty}")
        parts = [part.item() if isinstance(part, np.generic) else part for part in parts.reshape(-1)]
        return tuple(_bits(where, ty.scalar, part) for part in parts)
    if type(x) not in (int, float) and isinstance(x, (np.generic, np.ndarray)) and np.ndim(x) == 0:
        own = _types.scalar_of(x.dtype)
        if own is not None and own != ty and (own.is_float or ty.is_bool or own.is_bool):
            raise ArgumentError(f"{where} is {x!r} of type {own}, expected {ty}: convert it with iv.{ty}(...)")
        x = x.item()
    return (_bits(where, ty, x),)


def _bits(where, ty, part):
    try:
        bits = _invar.bits(ty.name, part)
    except TypeError:
        raise ArgumentError(f"{where} is {part!r} ({type(part).__name__}), expected a value of type {ty}") from None
    if bits is None:
        raise ArgumentError("{} is {}, which does not fit {}: {}".format(where, *_values.misfit(ty, part)))
    return bits


def constants(kernel, given, declared):
    """Values of function constants, by the types that the kernel declares: name, type and bits."""
    named = []
    if not isinstance(given or {}, Mapping):
        raise ArgumentError(f'constants={given!r}: write them by their names, as in {{"n": 4}}')
    for name, value in (given or {}).items():
        if name not in declared:
            known = ", ".join(declared)
            raise ArgumentError(
                f"kernel `{kernel}` has no function constant {name!r}"
                + (f"; it has {known}" if known else "; it has none")
            )
        ty = declared[name]
        (bits,) = scalar(f"function constant `{name}` of `{kernel}`", ty, value)
        named.append((name, ty.name, bits))
    return named


# ---- types that arguments give ----


def element_of_argument(where, kind, x, name):
    """The element type of a parameter that was annotated without one; a struct takes ``name``."""
    if kind == "scalar":
        if isinstance(x, (np.generic, np.ndarray)) and np.ndim(x) == 0:
            ty = _types.scalar_of(x.dtype)
            if ty is not None:
                return ty
        for python, name in ((bool, "bool"), (int, "i32"), (float, "f32")):
            if type(x) is python:
                return _types.type_named(name)
        raise ArgumentError(f"{where} is a {type(x).__name__}, expected a number")
    try:
        array = x if type(x) is DeviceArray else array_of(where, x)
        return _types.element_of(array.dtype, name)
    except ArgumentError:
        raise
    except Error as e:
        raise ArgumentError(f"{where}: {e}") from None
