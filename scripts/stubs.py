#!/usr/bin/env python3
"""Writes python/invar/__init__.pyi, the types of the package, from the op table and the package.

Run it with the package installed; ``--check`` only says whether the file is stale. Functions and
classes are what the package has, with their signatures and docstrings. Written by hand here is what
Python cannot tell: the types of kernels, which are objects at run time and classes for a type
checker, so that ``iv.Buffer[iv.f32]`` is an annotation and its elements are known.
"""

import inspect
import pathlib
import re
import sys
import textwrap

import invar as iv

TARGET = pathlib.Path(__file__).parents[1] / "python" / "invar" / "__init__.pyi"

HEAD = '''\
# Written by scripts/stubs.py from the op table and the package: do not edit.
#
# Arithmetic of values gives Any: a Python number that meets a value takes its type, which type
# checkers cannot follow, and `total = 0.0; total += x[i]` must stay right.
import builtins
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Generic, Literal, TypeVar, overload

import numpy as np

from . import metal as metal
from ._textures import Depth2D as Depth2D
from ._textures import Depth2DArray as Depth2DArray
from ._textures import DepthCube as DepthCube
from ._textures import DepthCubeArray as DepthCubeArray
from ._textures import Texture1D as Texture1D
from ._textures import Texture1DArray as Texture1DArray
from ._textures import Texture2D as Texture2D
from ._textures import Texture2DArray as Texture2DArray
from ._textures import Texture2DMS as Texture2DMS
from ._textures import Texture2DMSArray as Texture2DMSArray
from ._textures import Texture3D as Texture3D
from ._textures import TextureBuffer as TextureBuffer
from ._textures import TextureCube as TextureCube
from ._textures import TextureCubeArray as TextureCubeArray
from .layout import Layout

__version__: str

_T = TypeVar("_T")
Operand = Value | int | float | np.generic
Index = Value | int | np.integer[Any]
Element = Any
Space = Literal["device", "threadgroup", "texture", "imageblock"]
Filter = Literal["nearest", "linear"]
Edges = Literal["clamp_to_edge", "clamp_to_zero", "clamp_to_border", "repeat", "mirrored_repeat"]
Coordinates = Literal["normalized", "pixel"]
Mip = Literal["none", "nearest", "linear"]
Border = Literal["transparent_black", "opaque_black", "opaque_white"]
Compare = Literal["less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "always", "never"]
Spaces = Space | Sequence[Space]
Scope = Literal["threadgroup", "device"]
Order = Literal["relaxed", "acquire", "release", "acq_rel", "seq_cst"]
Size = int | tuple[int, ...]
'''

OPERATORS = {
    "binary": "add sub mul truediv floordiv mod pow and or xor lshift rshift matmul".split(),
    "compare": "lt le gt ge".split(),
    "unary": "neg pos abs invert".split(),
}


def doc(text, indent):
    text = inspect.cleandoc(text or "").replace("\\", "\\\\")
    lines = text.splitlines() or [""]
    if len(lines) == 1 and len(lines[0]) + len(indent) < 92:
        return [f'{indent}"""{lines[0]}"""']
    wrapped = [f'{indent}"""{lines[0]}']
    wrapped += [f"{indent}{line}".rstrip() for line in lines[1:]]
    return [*wrapped, f'{indent}"""']


def shown(annotation):
    """An annotation as text; the names of types that hide Python's are spelled out."""
    if annotation is inspect.Parameter.empty:
        return "Any"
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "Any")
    text = re.sub(r"\bMemory\b", "Memory[Any]", text)
    return re.sub(r"\bbool\b", "builtins.bool", text)


def default(value):
    plain = value is None or isinstance(value, (bool, int, float, str, tuple))
    return repr(value) if plain else "..."


def parameters(signature):
    parts, star, slash = [], False, False
    last = None
    for p in signature.parameters.values():
        if last == p.POSITIONAL_ONLY and p.kind != p.POSITIONAL_ONLY:
            parts.append("/")
        if p.kind == p.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        prefix = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        star = star or p.kind == p.VAR_POSITIONAL
        text = p.name if p.name == "self" else f"{prefix}{p.name}: {shown(p.annotation)}"
        if p.default is not p.empty:
            text += f" = {default(p.default)}"
        parts.append(text)
        last = p.kind
    if last == inspect.Parameter.POSITIONAL_ONLY:
        parts.append("/")
    return parts


def function(name, of, indent="", value_types=False):
    signature = inspect.signature(of)
    result = signature.return_annotation
    if name == "__init__":
        returns = "None"
    elif value_types:
        returns = result  # `bool` is the kernel's.
    else:
        returns = shown(result)
    parts = parameters(signature)
    line = f"{indent}def {name}({', '.join(parts)}) -> {returns}:"
    if len(line) > 100:
        inner = "".join(f"{indent}    {part},\n" for part in parts)
        line = f"{indent}def {name}(\n{inner}{indent}) -> {returns}:"
    if not of.__doc__:
        return [line + " ..."]
    return [line, *doc(of.__doc__, indent + "    ")]


DUNDERS = {"__init__", "__call__", "__getitem__", "__setitem__", "__len__", "__iter__", "__enter__",
           "__exit__", "__bool__", "__dlpack__", "__dlpack_device__"}  # fmt: skip


def cls(name, of):
    bases = [b.__name__ for b in of.__bases__ if b is not object and not b.__name__.startswith("_")]
    bases = [b for b in bases if hasattr(iv, b) or b in ("Exception", "TypeError", "Mapping")]
    # Classes know at run time only that they are mappings.
    bases = ["Mapping[str, LoadedKernel]" if b == "Mapping" else b for b in bases]
    lines = [f"class {name}({', '.join(bases)}):" if bases else f"class {name}:"]
    lines += doc(of.__doc__, "    ")
    fields = getattr(of, "__dataclass_fields__", {})
    for field, info in fields.items():
        if not field.startswith("_"):
            lines.append(f"    {field}: {shown(info.type)}")
    for annotated, ty in of.__dict__.get("__annotations__", {}).items():
        if annotated not in fields:
            lines.append(f"    {annotated}: {shown(ty)}")
    for member, value in vars(of).items():
        if member.startswith("_") and member not in DUNDERS or member == "__init__" and fields:
            continue
        if name.startswith("_") and member == "__init__":
            continue
        if isinstance(value, property) or type(value).__name__ == "kept":
            getter = value.fget if isinstance(value, property) else value._make
            lines += ["    @property", *function(member, getter, "    ")]
        elif isinstance(value, staticmethod):
            lines += ["    @staticmethod", *function(member, value.__func__, "    ")]
        elif inspect.isfunction(inspect.unwrap(value)):
            lines += function(member, value, "    ")
    return lines


def types():
    lines = []
    for kind in ("binary", "compare", "unary"):
        for name in OPERATORS[kind]:
            if kind == "unary":
                lines.append(f"    def __{name}__(self) -> Any: ...")
                continue
            lines.append(f"    def __{name}__(self, other: Operand, /) -> Any: ...")
            if kind == "binary":
                lines.append(f"    def __r{name}__(self, other: Operand, /) -> Any: ...")
    operators = "\n".join(lines)
    meta = '''
class Type(type):
    """A type of values: ``iv.f32``, ``iv.u32x4``, ``iv.f32x4x4``."""
    kind: str
    scalar: Type
    shape: tuple[int, ...]
    is_float: builtins.bool
    is_integer: builtins.bool
    is_signed: builtins.bool
    is_bool: builtins.bool
    bits: int
    size_bytes: int
    limits: tuple[int, int]
    def with_scalar(self, scalar: Type) -> Type:
        """The same shape with another scalar."""
    def numpy(self) -> np.dtype[Any]:
        """NumPy's dtype of the scalar."""

class Value:
    """A value of a kernel: a scalar, vector, small matrix, simdgroup matrix or event.

    ``//`` and ``%`` of integers truncate toward zero, as in Metal. Components of a vector are
    ``v.x`` ... ``v.w``, ``v.zyx`` or ``v[i]``.
    """
    type: Type
OPERATORS_HERE
    def __eq__(self, other: object, /) -> Any: ...
    def __ne__(self, other: object, /) -> Any: ...
    def __getitem__(self, index: Index, /) -> Any: ...
    def __setitem__(self, index: Index, part: Operand, /) -> None: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...
    def __getattr__(self, name: str, /) -> Any: ...
    def __setattr__(self, name: str, value: Any, /) -> None: ...

class Memory(Generic[_T]):
    """A buffer or array of a kernel: ``x[i]`` loads an element, ``x[i] = v`` stores one."""
    def __getitem__(self, index: Index, /) -> _T: ...
    def __setitem__(self, index: Index, value: Operand, /) -> None: ...
    def __len__(self) -> int: ...
    @property
    def shape(self) -> tuple[Any, ...]:
        """The extents that the annotation gives; the first is a value of the kernel where it is left open."""
    def at(self, offset: Index) -> Memory[_T]:
        """The same memory with its elements counted from ``offset`` on."""
    def load(self, index: Index, width: int = 1, group: builtins.bool = False) -> Any:
        """The ``width`` consecutive elements from ``index`` on as a vector."""
    def store(self, index: Index, value: Operand, group: builtins.bool = False) -> None:
        """Stores a vector's components to consecutive elements."""

class Place:
    """A part of an element in memory that is not a value yet: a struct or an array in it."""
    def __getitem__(self, index: Index, /) -> Any: ...
    def __setitem__(self, index: Index, value: Operand, /) -> None: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __getattr__(self, name: str, /) -> Any: ...
    def __setattr__(self, name: str, value: Any, /) -> None: ...

class Buffer(Memory[_T]):
    """A buffer in device memory; what the kernel does with it is inferred."""

class Constant(Memory[_T]):
    """A buffer in constant memory, which kernels only read."""

class Threadgroup(Memory[_T]):
    """Threadgroup memory; the launch passes its length in elements."""

class Imageblock:
    """An imageblock of a kernel: ``block[x, y]`` is the element at a column and a row of the threadgroup."""
    width: int
    height: int
    samples: int
    def __getitem__(self, index: tuple[Index, Index], /) -> Any: ...
    def __setitem__(self, index: tuple[Index, Index], value: Any, /) -> None: ...
    def __len__(self) -> int: ...
    def read(self, x: Index, y: Index) -> Any:
        """The element at a column and a row; outside it is zeros."""
    def write(self, x: Index, y: Index, value: Any) -> None:
        """Stores the element at a column and a row; outside nothing."""
    def slice(
        self,
        field: str | None = None,
        *,
        origin: tuple[Index, Index] = (0, 0),
        size: tuple[Index, Index] | None = None,
    ) -> Any:
        """One field of all elements, or of the rectangle of so many from ``origin`` on, which
        ``texture.write(x, y, block.slice("depth"))`` copies to a texture."""

#: A scalar, vector or small matrix, passed by value.
Scalar = Annotated[_T, "passed by value"]
'''
    out = [meta.replace("OPERATORS_HERE", operators)]
    for name, value in vars(iv).items():
        if isinstance(value, iv.Type):
            out.append(f"class {name}(Value, metaclass=Type):")
            out.append(f"    def __new__(cls, *parts: Any) -> {name}: ...")
    return out


#: What is not among functions and classes, or stands in HEAD and `types`.
BY_HAND = {
    "Buffer", "Constant", "Imageblock", "Memory", "Place", "Scalar", "Threadgroup", "Type", "Value", "kernel",
    "Depth2D", "Depth2DArray", "DepthCube", "DepthCubeArray", "Texture1D", "Texture1DArray", "Texture2D",
    "Texture2DArray", "Texture2DMS", "Texture2DMSArray", "Texture3D", "TextureBuffer", "TextureCube", "TextureCubeArray",
}  # fmt: skip


def decorator():
    """``kernel``, with and without attributes."""
    signature = inspect.signature(iv.Kernel).parameters.values()
    named = [
        f"{p.name}: {shown(p.annotation)} = {default(p.default)}"
        for p in signature
        if p.kind == p.KEYWORD_ONLY
    ]
    text = doc(iv.kernel.__doc__, "    ")
    return [
        "", "@overload", "def kernel(function: Callable[..., Any]) -> Kernel:", *text, "@overload",
        "def kernel(", "    *,", *(f"    {n}," for n in named),
        ") -> Callable[[Callable[..., Any]], Kernel]:", *text,
    ]  # fmt: skip


def stub():
    from invar import _ops

    lines = [*doc(iv.__doc__, ""), HEAD, *types(), "", *cls("_Query", _ops.Query)]
    for name, value in vars(iv).items():
        if name.startswith("_") or name in BY_HAND or isinstance(value, (iv.Type, type(sys))):
            continue
        if inspect.isclass(value):
            lines += ["", *cls(name, value)]
        elif isinstance(value, _ops.Query):
            lines += ["", f"{name}: _Query", *doc(value.__doc__, "")]
        elif callable(value):
            lines += ["", *function(name, value, value_types=name in _ops.GENERATED)]
        else:
            raise SystemExit(f"scripts/stubs.py does not know what invar.{name} is")
    lines += decorator()
    return textwrap.dedent("\n".join(lines)).rstrip() + "\n"


if __name__ == "__main__":
    text = stub()
    if "--check" in sys.argv:
        if TARGET.read_text() != text:
            sys.exit(f"{TARGET} is stale: run scripts/stubs.py")
    else:
        TARGET.write_text(text)
