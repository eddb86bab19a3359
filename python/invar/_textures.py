"""Textures: pictures on the host, and what kernels do with them.

Absent: what the functions of textures give, which the memory model says (``docs/memory-model.md``), and how a
launch passes a picture (``_arguments``).
"""

from __future__ import annotations

import struct
import zlib
from typing import Any, Literal

import numpy as np

from . import _host, _invar, _trace, _types
from ._errors import ArgumentError, Error, entries
from ._values import _Still, alive, index_value, made, to_type

__all__ = "Texture Texture1D Texture2D Texture2DArray Texture3D".split()

#: What accesses do, in the bits of ``Param.access``.
_ACCESS = {"read": 1, "sample": 1, "write": 2, "read_write": 3}


# ---- on the host ----


@entries
class Texture:
    """A picture for kernels: an array of NumPy, used in place, and the pixel format of its texels.

    ``iv.Texture(array, "rgba8unorm")`` takes an array of shape ``(height, width, 4)`` and of the type of the
    format's codes, here ``uint8``; of a format of one channel ``(height, width)``. An array of slices or
    elements has their number in front, one of one row no height. Launches change the array itself:
    ``numpy()`` gives it. In a notebook it is shown as the picture.
    """

    #: The pixel format.
    format: str
    #: Texels in a row.
    width: int
    #: Rows.
    height: int
    #: Slices, or elements of an array.
    depth: int

    def __init__(self, x: Any, format: str):
        where = "the picture"
        array = _host.array_of(where, x)
        stored, codes, _ = _texels(format, 1, 1, 1)
        dtype = _types.type_named(stored).numpy()
        if array.dtype != dtype:
            raise ArgumentError(
                f"{where} has dtype {array.dtype}, and texels of {format} are made of {dtype}: convert it"
            )
        inner = (codes,) if codes > 1 else ()
        extents = array.shape[: array.ndim - len(inner)]
        if array.shape[len(extents) :] != inner or not 1 <= len(extents) <= 3:
            shown = f"(height, width, {codes})" if inner else "(height, width)"
            raise ArgumentError(f"{where} has shape {array.shape}, and one of {format} has {shown}")
        if not (array.flags.c_contiguous and array.flags.aligned):
            raise ArgumentError(f"{where} is not contiguous: pass np.ascontiguousarray(...) of it")
        depth, height, width = ((1, 1) + extents)[-3:]
        _texels(format, width, height, depth)
        self._array, self.format = array, format
        self.width, self.height, self.depth = width, height, depth

    @staticmethod
    def zeros(shape: tuple[int, ...], format: str) -> Texture:
        """A texture of zeros: ``iv.Texture.zeros((height, width), "rgba8unorm")``."""
        stored, codes, _ = _texels(format, 1, 1, 1)
        try:
            extents = tuple(int(n) for n in shape)
        except TypeError:
            raise ArgumentError(f"{shape!r} is no shape: write (height, width)") from None
        if not 1 <= len(extents) <= 3:
            raise ArgumentError(f"a texture has one to three dimensions, not {len(extents)}")
        # Sizes that no texture has are refused before there is memory.
        depth, height, width = ((1, 1) + extents)[-3:]
        _texels(format, width, height, depth)
        inner = (codes,) if codes > 1 else ()
        return Texture(np.zeros((*extents, *inner), _types.type_named(stored).numpy()), format)

    @property
    def __array_interface__(self):
        return self._array.__array_interface__

    def __repr__(self):
        size = f"{self.width}x{self.height}" + (f"x{self.depth}" if self.depth > 1 else "")
        return f"<{self.format} texture of {size}>"

    def numpy(self) -> np.ndarray[Any, Any]:
        """The array that it is made of, not a copy."""
        return self._array

    def _size(self):
        """Its format and size as the extension takes them."""
        return (self.format, self.width, self.height, self.depth)

    def _repr_png_(self):
        picture = _picture(self)
        return None if picture is None else _png(picture)


def _texels(format, width, height, depth):
    """What texels of a format are made of; refuses formats and sizes that no texture has."""
    if not isinstance(format, str):
        raise ArgumentError(f"{format!r} is no pixel format: write its name, such as \"rgba8unorm\"")
    if any(not 0 <= n < 1 << 32 for n in (width, height, depth)):
        raise ArgumentError(f"there is no texture of {width}x{height}x{depth}")
    try:
        return _invar.texels((format, width, height, depth))
    except ValueError as e:
        raise ArgumentError(str(e)) from None


def _picture(texture):
    """The first slice as RGBA of 8 bits; ``None`` of formats that no screen shows: integers, packed channels
    and those below zero."""
    format, array = texture.format, texture.numpy()
    name = format.removesuffix("_srgb")
    if not name.endswith(("8unorm", "16unorm", "16float", "32float")):
        return None
    channels = 1 if name.startswith(("r8", "r16", "r32")) else array.shape[-1]
    codes = array.reshape(texture.depth, texture.height, texture.width, channels)[0]
    if codes.dtype == np.uint16:
        codes = (codes.astype(np.uint32) * 255 + 32767) // 65535
    elif codes.dtype != np.uint8:
        codes = np.rint(np.clip(np.nan_to_num(codes.astype(np.float32)), 0, 1) * 255)
    rgba = np.zeros((texture.height, texture.width, 4), np.uint8)
    rgba[..., 3] = 255
    rgba[..., :channels] = codes
    if channels == 1:
        rgba[..., 1:3] = rgba[..., :1]
    return rgba[..., [2, 1, 0, 3]] if name.startswith("bgra") else rgba


def _png(rgba):
    """A PNG file of a picture of 8 bits a channel."""

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    height, width = rgba.shape[:2]
    # Each row begins with the number of its filter, here none.
    rows = np.concatenate([np.zeros((height, 1), np.uint8), rgba.reshape(height, -1)], axis=1)
    head = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    parts = (b"IHDR", head), (b"IDAT", zlib.compress(rows.tobytes())), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


# ---- parameters ----


class TextureType:
    """The type of a texture parameter: how texels are arranged, their components, and the access."""

    kind, shape = "texture", None

    def __init__(self, maker, component, access):
        self.maker, self.component, self.access = maker, component, access
        #: What the kernel does with it, in the bits of ``Param.access``.
        self.bits = _ACCESS[access]

    def __repr__(self):
        return f"invar.{self}"

    def __str__(self):
        return f'{self.maker.name}[{self.component}, "{self.access}"]'

    def declare(self, trace, name):
        """The parameter of the kernel being built."""
        words = self.maker.dimension, str(self.component), self.access
        return KernelTexture(name, self, trace.emit("texture", name, *words))


@entries
class _TextureMaker:
    """``iv.Texture2D[iv.f32, "sample"]``: how a kernel says that a parameter is a texture."""

    def __init__(self, name, dimension, axes, coordinates):
        self.name, self.dimension = name, dimension
        #: Coordinates of a sample that lie between texels, and all, the element of an array included.
        self.axes, self.coordinates = axes, coordinates

    def __getitem__(self, what):
        component, access = what if isinstance(what, tuple) and len(what) == 2 else (None, None)
        names = [component.name] if isinstance(component, _types.Type) else []
        if names not in (["f32"], ["i32"], ["u32"]) or access not in _ACCESS:
            known = ", ".join(f'"{name}"' for name in _ACCESS)
            raise Error(
                f"{self!r}[...] takes the type of components, iv.f32, iv.i32 or iv.u32, and the access, one "
                f"of {known}, as in {self!r}[iv.f32, \"read\"]"
            )
        return TextureType(self, component, access)

    def __repr__(self):
        return f"iv.{self.name}"


Texture1D = _TextureMaker("Texture1D", "texture1d", 1, 1)
Texture2D = _TextureMaker("Texture2D", "texture2d", 2, 2)
Texture2DArray = _TextureMaker("Texture2DArray", "texture2d_array", 2, 3)
Texture3D = _TextureMaker("Texture3D", "texture3d", 3, 3)


# ---- in kernels ----

Filter = Literal["nearest", "linear"]
Edges = Literal["clamp_to_edge", "clamp_to_zero", "repeat", "mirrored_repeat"]
Coordinates = Literal["normalized", "pixel"]


class KernelTexture(_Still):
    """A texture in a kernel: texels are read and written at integer coordinates, or sampled between them."""

    def __init__(self, name, ty, handle):
        self.name, self.type, self.handle = name, ty, tuple(handle)
        self.trace = _trace.current()

    def __repr__(self):
        return f"<texture {self.name}: {self.type}>"

    def __getitem__(self, at):
        raise _trace.error(f"`{self.name}` is a texture: write `{self.name}.read(x, y)`")

    def __setitem__(self, at, value):
        raise _trace.error(f"`{self.name}` is a texture: write `{self.name}.write(x, y, value)`")

    def read(self, *at: Index) -> Any:
        """The texel at integer coordinates: four components. Beyond the edges it is zeros."""
        return made("texture_function", *self._call("texture_read", self._texel("read", at)))

    def write(self, *at_and_value: Any) -> None:
        """``t.write(x, y, value)`` writes a texel; beyond the edges nothing."""
        if not at_and_value:
            raise _trace.error(f"`{self.name}.write()` takes coordinates and a value")
        *at, value = at_and_value
        at = self._texel("write", at, ", and then the value")
        texel = _types.type_named(f"{self.type.component}x4")
        value = to_type(value, texel, f"a write to `{self.name}`")
        _trace.emit("texture_function", *self._call("texture_write", [*at, value]))

    def sample(
        self,
        *at: Operand,
        filter: Filter = "nearest",
        edges: Edges = "clamp_to_edge",
        coordinates: Coordinates = "normalized",
    ) -> Any:
        """A sample at coordinates of ``f32``; of an array the last is the element, an integer."""
        words = self._sampler(filter, edges, coordinates)
        return made("texture_function", *self._call("texture_sample", self._place("sample", at), words))

    def gather(
        self,
        *at: Operand,
        component: Literal["x", "y", "z", "w"] = "x",
        edges: Edges = "clamp_to_edge",
        coordinates: Coordinates = "normalized",
    ) -> Any:
        """A component of the four texels that a linear sample is made of: those at the lower left, the lower
        right, the upper right and the upper left."""
        if component not in tuple("xyzw"):
            raise _trace.error(f'component={component!r}: write "x", "y", "z" or "w"')
        words, place = self._sampler("nearest", edges, coordinates), self._place("gather", at)
        call = self._call("texture_gather", place, words, "xyzw".index(component))
        return made("texture_function", *call)

    @property
    def width(self) -> Any:
        """Texels in a row, as ``u32``."""
        return made("texture_function", *self._call("texture_width"))

    @property
    def height(self) -> Any:
        """Rows, as ``u32``."""
        return made("texture_function", *self._call("texture_height"))

    @property
    def depth(self) -> Any:
        """Slices of a texture of three dimensions, as ``u32``."""
        return made("texture_function", *self._call("texture_depth"))

    @property
    def array_size(self) -> Any:
        """Elements of an array, as ``u32``."""
        return made("texture_function", *self._call("texture_array_size"))

    def _call(self, function, args=(), words=(), component=0):
        """A function's call as the builder takes it."""
        if self.trace is not _trace.current():
            raise _trace.error(f"`{self.name}` belongs to another kernel")
        for x in args:
            alive(x)
        return self.handle, function, list(words), component, [x.id for x in args]

    def _count(self, function, at, then=""):
        wanted = self.type.maker.coordinates
        if len(at) != wanted:
            plural = "" if wanted == 1 else "s"
            raise _trace.error(
                f"`{self.name}.{function}()` takes {wanted} coordinate{plural}{then}, found {len(at)}"
            )

    def _texel(self, function, at, then=""):
        self._count(function, at, then)
        return [index_value(x) for x in at]

    def _place(self, function, at):
        self._count(function, at)
        axes, f32 = self.type.maker.axes, _types.type_named("f32")
        between = [to_type(x, f32, f"a coordinate of `{self.name}`") for x in at[:axes]]
        return [*between, *map(index_value, at[axes:])]

    def _sampler(self, *words):
        for word, known in zip(words, (Filter, Edges, Coordinates)):
            if word not in known.__args__:
                shown = ", ".join(f'"{name}"' for name in known.__args__)
                raise _trace.error(f"no sampler has {word!r}: write one of {shown}")
        return list(words)
