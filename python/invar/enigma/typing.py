"""Element types by their names in the Enigma DSL and in Metal, and what annotations are made of."""

from __future__ import annotations

import re
import typing as _typing

from .. import _types, _values
from ._dialect import traced
from ._errors import EnigmaTypeError

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
_SPELLINGS.update({"bfloat16": "bfloat", "float16": "half", "float32": "float", "i1": "bool"})
#: What `dtype` says of a vector and of a simdgroup matrix.
_DTYPE = re.compile(r"(?:vec<(?P<n>\d)|simdgroup_matrix<8,8),\s*(?P<scalar>\w+)>")


class _Meta(type):
    def __repr__(cls):
        return f"enigma.{cls.__name__}"


class Numeric(metaclass=_Meta):
    """A scalar type. As the annotation of a kernel's parameter it is a buffer of that type; called
    in a kernel with a value it converts that. ``f32`` and the like are the types' only instances,
    which ``Float32()`` gives too."""

    #: Invar's type.
    type = None
    #: Metal's name of it.
    metal_name = ""
    #: The number of its bits; 1 of a ``bool``.
    width = 0
    _instance = None

    def __new__(cls, *value):
        if cls.type is None:
            raise TypeError("Numeric is the base of the types: call one of them")
        if not value:
            if cls._instance is None:
                cls._instance = super().__new__(cls)
            return cls._instance
        return _values.convert(cls.type, tuple(traced(x) for x in value))

    def __call__(self, value):
        return _values.convert(self.type, (traced(value),))

    def __repr__(self):
        return self.metal_name


def _numeric(name, ours, short):
    ty = _types.type_named(ours)
    body = {"type": ty, "metal_name": _NAMES[ours], "width": 1 if ours == "bool" else ty.bits,
            "__module__": __name__, "__doc__": f"Metal's `{_NAMES[ours]}`."}  # fmt: skip
    cls = globals()[name] = _Meta(name, (Numeric,), body)
    globals()[short] = cls()
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
            raise EnigmaTypeError("a simdgroup matrix is not passed by value")
        #: Metal's name of the type, and the bits of a component.
        self.metal_name = metal_name(self.type)
        self.width = 1 if self.type.scalar.name == "bool" else self.type.scalar.bits

    def __class_getitem__(cls, dtype):
        return cls(dtype)

    def __repr__(self):
        return f"Scalar({self.metal_name})"


def _spelled(match):
    """A vector's name in Metal, a simdgroup matrix's here."""
    scalar = _SPELLINGS.get(match["scalar"], match["scalar"])
    if match["n"]:
        return f"{scalar}{match['n']}"
    return f"simdgroup_{METAL.get(scalar, scalar)}x8x8"


def dtype_of(ty):
    """What a value of a type has as its ``dtype``: ``float``, ``i1`` for a ``bool``,
    ``vec<4,float>`` and ``simdgroup_matrix<8,8,float>``."""
    scalar = "i1" if ty.scalar.name == "bool" else _NAMES.get(ty.scalar.name, ty.scalar.name)
    if ty.kind == "simdgroup_matrix":
        return f"simdgroup_matrix<8,8,{scalar}>"
    if ty.kind == "vector":
        return f"vec<{ty.shape[0]},{scalar}>"
    return scalar if ty.kind == "scalar" else metal_name(ty)


def parse_vec_dtype(dt):
    """The number of components and the scalar of ``vec<4,float>``; ``None`` of what is not a vector."""
    found = _DTYPE.fullmatch(dt) if isinstance(dt, str) else None
    return (int(found["n"]), found["scalar"]) if found and found["n"] else None


def type_of(dtype):
    """Invar's type of a type of ours, of Metal's name, or of Invar's own."""
    if isinstance(dtype, _types.Type):
        return dtype
    known = isinstance(dtype, Numeric) or isinstance(dtype, type) and issubclass(dtype, Numeric)
    if known and dtype.type is not None:
        return dtype.type
    if isinstance(dtype, str):
        name = _DTYPE.sub(_spelled, dtype.strip())
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
        raise EnigmaTypeError(
            f"{dtype!r} is not a type of Metal's: write one such as \"float\", \"uint\", \"half\" or "
            '"float4"'
        )
    raise EnigmaTypeError(f"{dtype!r} is not a type: write enigma.Float32 or \"float\"")


def metal_name(ty):
    """Metal's name of a type."""
    if ty.kind == "simdgroup_matrix":
        return f"simdgroup_{_NAMES[ty.scalar.name]}8x8"
    if ty.scalar.name not in _NAMES:
        raise EnigmaTypeError(f"Metal has no {ty}")
    return _NAMES[ty.scalar.name] + "x".join(str(n) for n in ty.shape)
