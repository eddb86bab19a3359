"""Element types by their names in the Enigma DSL and in Metal, and what annotations are made of."""

from __future__ import annotations

import typing as _typing

from .. import _types, _values
from ._dialect import traced
from ._errors import EnigmaError

Shape = _typing.Union[int, _typing.Tuple["Shape", ...]]
Stride = _typing.Union[int, _typing.Tuple["Stride", ...]]
Coord = _typing.Union[int, None, _typing.Tuple["Coord", ...]]

#: Metal's names of scalar types.
METAL = {
    "bool": "bool", "char": "i8", "short": "i16", "int": "i32", "long": "i64", "uchar": "u8",
    "ushort": "u16", "uint": "u32", "ulong": "u64", "half": "f16", "bfloat": "bf16",
    "float": "f32",
}  # fmt: skip
_NAMES = {ours: metal for metal, ours in METAL.items()}
_SPELLINGS = {f"{n}_t": m for n, m in (("int8", "char"), ("int16", "short"), ("int32", "int"),
              ("int64", "long"), ("uint8", "uchar"), ("uint16", "ushort"), ("uint32", "uint"),
              ("uint64", "ulong"), ("size", "ulong"))}  # fmt: skip
_SPELLINGS.update({"bfloat16": "bfloat", "float16": "half", "float32": "float"})


class _Meta(type):
    def __repr__(cls):
        return f"enigma.{cls.__name__}"


class Numeric(metaclass=_Meta):
    """A scalar type. As the annotation of a kernel's parameter it is a buffer of that type; called
    in a kernel it converts a value."""

    #: Invar's type, and Metal's name of it.
    type = None
    metal_dtype = None
    width = 0

    def __new__(cls, value=0):
        if cls.type is None:
            raise TypeError("Numeric is the base of the types: call one of them")
        return _values.convert(cls.type, (traced(value),))


def _numeric(name, ours, short):
    ty = _types.type_named(ours)
    body = {"type": ty, "metal_dtype": _NAMES[ours], "width": ty.bits, "__module__": __name__,
            "__doc__": f"Metal's `{_NAMES[ours]}`."}  # fmt: skip
    cls = _Meta(name, (Numeric,), body)
    globals()[name] = globals()[short] = cls
    return name, short


_ALL = [
    _numeric(*row)
    for row in (
        ("Bool", "bool", "b1"),
        ("Int8", "i8", "i8"), ("Int16", "i16", "i16"), ("Int32", "i32", "i32"),
        ("Int64", "i64", "i64"), ("UInt8", "u8", "u8"), ("UInt16", "u16", "u16"),
        ("UInt32", "u32", "u32"), ("UInt64", "u64", "u64"), ("Float16", "f16", "f16"),
        ("BFloat16", "bf16", "bf16"), ("Float32", "f32", "f32"),
    )
]  # fmt: skip

__all__ = ["Numeric", "Scalar", "Shape", "Stride", "Coord", *(n for row in _ALL for n in row)]


class Scalar:
    """The annotation of a parameter that is passed by value: ``n: Scalar(UInt32)``."""

    def __init__(self, dtype):
        self.dtype = dtype
        self.type = type_of(dtype)
        if self.type.kind == "simdgroup_matrix":
            raise EnigmaError("a simdgroup matrix is not passed by value")

    def __class_getitem__(cls, dtype):
        return cls(dtype)

    def __repr__(self):
        return f"enigma.Scalar({self.dtype!r})"


def type_of(dtype):
    """Invar's type of a type of ours, of Metal's name, or of Invar's own."""
    if isinstance(dtype, _types.Type):
        return dtype
    if isinstance(dtype, type) and issubclass(dtype, Numeric) and dtype.type is not None:
        return dtype.type
    if isinstance(dtype, str):
        name = dtype.strip()
        name = _SPELLINGS.get(name, name)
        base = name.rstrip("0123456789x")
        rest = name[len(base) :]
        scalar = METAL.get(base)
        if scalar is not None:
            known = scalar if not rest else f"{scalar}x{rest}"
            if known in _types._types:
                return _types._types[known]
        if name in _types._types and name not in ("event",):
            return _types._types[name]
        raise EnigmaError(
            f"{dtype!r} is no type of Metal's: write one such as \"float\", \"uint\", \"half\" or "
            '"float4"'
        )
    raise EnigmaError(f"{dtype!r} is no type: write enigma.Float32 or \"float\"")


def metal_name(ty):
    """Metal's name of a type."""
    if ty.kind == "simdgroup_matrix":
        return f"simdgroup_{_NAMES[ty.scalar.name]}8x8"
    if ty.scalar.name not in _NAMES:
        raise EnigmaError(f"Metal has no {ty}")
    return _NAMES[ty.scalar.name] + "x".join(str(n) for n in ty.shape)
