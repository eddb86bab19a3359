"""The types of values, and what the annotations of kernel parameters are made of.

Absent: what calling a type does, which ``_values`` gives it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _trace
from ._errors import Error, entries

__all__ = "Buffer Constant Scalar Struct Threadgroup Type".split()

_SCALARS = "bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64".split()

_types = {}


def _refuse(message):
    """The exception for a type that is none, at the author's line if a kernel is being traced."""
    return _trace.error(message) if _trace.active() else Error(message)


class Type:
    """The type of a value: a scalar, vector, small matrix, simdgroup matrix or event.

    Called in a kernel it converts: ``iv.f32(n)``, ``iv.f32x4(a, b, c, d)``. Called outside with a
    number, a scalar type gives NumPy's scalar of it.
    """

    __slots__ = (
        "name", "kind", "scalar", "shape", "is_float", "is_integer", "is_signed", "is_bool", "bits",
        "limits",
    )  # fmt: skip

    def __init__(self, name, kind, scalar, shape):
        self.name, self.kind, self.scalar, self.shape = name, kind, scalar or self, shape
        one = self.scalar.name
        self.is_float, self.is_integer = "f" in one, one[0] in "iu"
        self.is_signed, self.is_bool = one[0] == "i", one == "bool"
        #: Width of the scalar in bits; 1 for `bool`.
        self.bits = 1 if self.is_bool else int(one.lstrip("biuf")) if one in _SCALARS else 0
        #: Least and greatest value of an integer type.
        self.limits = (0, (1 << self.bits) - 1)
        if self.is_signed:
            self.limits = -(1 << self.bits - 1), (1 << self.bits - 1) - 1

    def __repr__(self):
        return f"invar.{self.name}"

    def __str__(self):
        return self.name

    def __hash__(self):
        return hash(self.name)

    def __eq__(self, other):
        return isinstance(other, Type) and self.name == other.name

    def __instancecheck__(self, value):
        # Where the written code asks whether a value is of a type, types are classes of values.
        return getattr(value, "type", None) is self

    def __reduce__(self):
        return type_named, (self.name,)

    @property
    def size_bytes(self):
        """Size in memory."""
        return max(1, self.bits // 8) * math.prod(self.shape)

    def with_scalar(self, scalar):
        """The same shape with another scalar."""
        return type_named(scalar.name + self.name[len(self.scalar.name) :])

    def numpy(self):
        """NumPy's dtype of the scalar."""
        if self.scalar.name == "bf16":
            try:
                import ml_dtypes
            except ImportError:
                raise _refuse("bfloat16 arrays need the package ml_dtypes: install it") from None
            return np.dtype(ml_dtypes.bfloat16)
        return np.dtype("?" if self.is_bool else f"{self.scalar.name[0]}{self.bits // 8}")


def _all_types():
    """Every type: its name, kind, scalar and shape."""
    for scalar in _SCALARS:
        yield scalar, "scalar", None, ()
        yield from ((f"{scalar}x{n}", "vector", scalar, (n,)) for n in (2, 3, 4))
        if "f" in scalar:
            for columns, rows in itertools.product((2, 3, 4), repeat=2):
                yield f"{scalar}x{columns}x{rows}", "matrix", scalar, (columns, rows)
            yield f"simdgroup_{scalar}x8x8", "simdgroup_matrix", scalar, (8, 8)
    yield "event", "event", None, ()


for _name, _kind, _scalar, _shape in _all_types():
    _types[_name] = Type(_name, _kind, _types.get(_scalar), _shape)


def type_named(name):
    """The type of that name in the text form."""
    return _types[name]


def scalar_of(dtype):
    """The scalar type of a NumPy dtype, or ``None``."""
    dtype = np.dtype(dtype)
    if not dtype.isnative and dtype.itemsize > 1:
        return None
    known = {"bfloat16": "bf16", "bool": "bool"}
    ty = _types.get(known.get(dtype.name, f"{dtype.kind}{dtype.itemsize * 8}"))
    # Other packages have types of the same kind and size that are others.
    return ty if ty is not None and (ty.name == "bf16" or ty.numpy() == dtype) else None


@entries
class Struct:
    """A struct element type: named fields, laid out by C's rules.

    Made from a NumPy structured dtype, where a field of a subarray type is an array, or from the types of
    its fields: ``iv.Struct("Pixel", {"colour": iv.f32x4, "depth": iv.f32})``.
    """

    def __init__(self, name, dtype):
        self.name = name
        given = {}
        if isinstance(dtype, Mapping):
            if not dtype:
                raise _refuse(f"`{name}` needs a field")
            given = {field: element_of(what, f"{name}_{field}") for field, what in dtype.items()}
            dtype = [(field, *numpy_element(element)) for field, element in given.items()]
        try:
            if dtype is None:
                raise TypeError
            self.dtype = np.dtype(dtype, align=True) if given else np.dtype(dtype)
        except (TypeError, ValueError):
            raise _refuse(
                f"`{name}` is made from {dtype!r}, which is neither a structured dtype nor fields with their "
                'types, as in iv.Struct("Pixel", {"colour": iv.f32x4, "depth": iv.f32})'
            ) from None
        if self.dtype.names is None:
            raise _refuse(f"`{name}` needs a structured dtype, with named fields")
        self.fields = {}
        offset, alignment = 0, 1
        for field in self.dtype.names:
            inner, place = self.dtype.fields[field][:2]
            element = given[field] if given else element_of(inner, f"{name}_{field}")
            align = element_alignment(element)
            offset = -(-offset // align) * align
            if offset != place:
                raise _refuse(
                    f"field `{field}` of `{name}` lies at byte {place}, by C's rules it lies at "
                    f"{offset}: make the dtype with align=True"
                )
            offset += inner.itemsize
            alignment = max(alignment, align)
            self.fields[field] = element
        if -(-offset // alignment) * alignment != self.dtype.itemsize:
            raise _refuse(f"`{name}` is padded otherwise than in C: make the dtype with align=True")

    def __repr__(self):
        return f"invar.Struct({self.name!r}, {self.dtype!r})"

    def __str__(self):
        return "@" + self.name

    def __eq__(self, other):
        return (
            isinstance(other, Struct)
            and (self.name, self.dtype) == (other.name, other.dtype)
            and self.fields == other.fields
        )

    def __hash__(self):
        return hash((self.name, str(self.dtype)))


@dataclass(frozen=True)
class Array:
    """A fixed array in memory: ``f32[4]``."""

    element: Any
    length: int

    def __str__(self):
        return f"{self.element}[{self.length}]"


def element_alignment(element):
    if isinstance(element, Array):
        return element_alignment(element.element)
    if isinstance(element, Struct):
        return max(element_alignment(field) for field in element.fields.values())
    return max(1, element.bits // 8)


def element_of(what, name="Element"):
    """An element type from a type, a struct or a NumPy dtype."""
    if isinstance(what, (Type, Struct, Array)):
        if isinstance(what, Type) and what.kind in ("simdgroup_matrix", "event"):
            raise _refuse(f"memory cannot hold {what}: store it with its own function")
        return what
    if isinstance(what, str) and what in _types and what != "bool":
        raise _refuse(f"{what!r} may be meant as NumPy's or as Invar's: write iv.{what}, or a NumPy dtype")
    try:
        if what is None:
            raise TypeError
        dtype = np.dtype(what)
    except TypeError:
        raise _refuse(
            f"{what!r} is not an element type: write one of Invar's types, such as iv.f32, or a NumPy dtype"
        ) from None
    if dtype.subdtype is not None:
        inner, shape = dtype.subdtype
        element = element_of(inner, name)
        for length in reversed(shape):
            element = Array(element, length)
        return element
    if dtype.names is not None:
        return Struct(name, dtype)
    scalar = scalar_of(dtype)
    if scalar is None:
        raise _refuse(f"kernels have no type for NumPy's {dtype}")
    return scalar


def numpy_element(element):
    """The dtype and trailing shape of arrays of an element type."""
    if isinstance(element, Struct):
        return element.dtype, ()
    if isinstance(element, Array):
        dtype, shape = numpy_element(element.element)
        return dtype, (element.length, *shape)
    return element.numpy(), element.shape


class _Annotation:
    def __init__(self, kind, element, shape=None):
        self.kind, self.element, self.shape = kind, element, shape

    def __repr__(self):
        name = self.kind.capitalize()
        return f"invar.{name}[{self.element}{'' if self.shape is None else f', {self.shape}'}]"


@entries
class _AnnotationMaker:
    """``iv.Buffer[iv.f32]``: how a kernel says what its parameters are. With a shape, as in
    ``iv.Buffer[iv.f32, (None, 640)]``, ``x[j, i]`` is the element at ``j * 640 + i``."""

    def __init__(self, kind, doc):
        self.kind, self.__doc__ = kind, doc

    def __getitem__(self, element):
        shape = None
        if isinstance(element, tuple) and len(element) == 2 and isinstance(element[1], tuple):
            element, shape = element
            # Only the first extent may be left to the launch.
            fits = all(type(n) is int and n > 0 or n is None and not i for i, n in enumerate(shape))
            if not fits or not shape or self.kind not in ("buffer", "constant"):
                raise Error(
                    f"{self!r}[..., {shape}] is not a shape: write the extents of a buffer or constant, of "
                    "which the first may be None, as in iv.Buffer[iv.f32, (None, 640)]"
                )
        return _Annotation(self.kind, element, shape)

    def __repr__(self):
        return f"invar.{self.kind.capitalize()}"


Buffer = _AnnotationMaker("buffer", "A buffer in device memory; what the kernel does with it is inferred.")
Constant = _AnnotationMaker("constant", "A buffer in constant memory, which kernels only read.")
Scalar = _AnnotationMaker("scalar", "A scalar, vector or small matrix, passed by value.")
Threadgroup = _AnnotationMaker("threadgroup", "Threadgroup memory; the launch passes its length in elements.")
