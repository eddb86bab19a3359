"""Textures: pictures on the host, and what kernels do with them.

Absent: what the functions of textures give, which the memory model says (``docs/memory-model.md``), and how a
launch passes a picture (``_arguments``).
"""

from __future__ import annotations

import math
import struct
import zlib
from typing import Any, Literal

import numpy as np

from . import _host, _invar, _trace, _types
from ._errors import ArgumentError, Error, entries
from ._values import _Still, alive, index_value, made, to_type

__all__ = "Sampler Texture Texture1D Texture1DArray Texture2D Texture2DArray Texture3D TextureBuffer TextureCube TextureCubeArray".split()

#: What accesses do, in the bits of ``Param.access``.
_ACCESS = {"read": 1, "sample": 1, "write": 2, "read_write": 3}
#: Arrangements of texels that may have several levels.
_WITH_LEVELS = {"texture2d", "texture2d_array", "texturecube", "texturecube_array"}
#: What components of a texel may be.
_COMPONENTS = {"f32", "i32", "u32", "f16", "i16", "u16"}


# ---- on the host ----


@entries
class Texture:
    """A picture for kernels: an array of NumPy, used in place, and the pixel format of its texels.

    ``iv.Texture(array, "rgba8unorm")`` takes an array of shape ``(height, width, 4)`` and of the type of the
    format's codes, here ``uint8``; of a format of one channel ``(height, width)``. An array of slices or
    elements has their number in front, one of one row no height. Launches change the array itself:
    ``numpy()`` gives it. In a notebook it is shown as the picture.

    With ``levels=3``, or ``"all"`` of them, it is a copy of the array and levels of half its size each, made
    by a box filter; ``level(1)`` is one of them.
    """

    #: The pixel format.
    format: str
    #: Texels in a row.
    width: int
    #: Rows.
    height: int
    #: Slices, or elements of an array.
    depth: int
    #: Levels.
    levels: int

    def __init__(self, x: Any, format: str, levels: int | Literal["all"] = 1):
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
        self.width, self.height, self.depth, self.levels = width, height, depth, 1
        #: The codes of all levels.
        self._memory = array
        if levels != 1:
            self._with_levels(levels)
            self.numpy()[...] = array
            self.fill_levels()

    @staticmethod
    def zeros(shape: tuple[int, ...], format: str, levels: int | Literal["all"] = 1) -> Texture:
        """A texture of zeros: ``iv.Texture.zeros((height, width), "rgba8unorm")``, with so many levels."""
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
        texture = Texture(np.zeros((*extents, *inner), _types.type_named(stored).numpy()), format)
        if levels != 1:
            texture._with_levels(levels)
        return texture

    def _with_levels(self, levels):
        """Gives it memory of zeros for so many levels."""
        if levels == "all":
            levels = max(self.width, self.height).bit_length()
        if isinstance(levels, bool) or not isinstance(levels, (int, np.integer)) or levels < 0:
            raise ArgumentError(f'levels={levels!r}: write how many, or "all"')
        _texels(self.format, self.width, self.height, self.depth, int(levels))
        self.levels = int(levels)
        sizes = [math.prod(self._level_shape(level)) for level in range(self.levels)]
        self._memory = np.zeros(sum(sizes), self._array.dtype)
        self._array = self._view(0)

    def _level_shape(self, level):
        """The shape of a level's array: that of the first, with other rows and columns."""
        first = self._array.shape
        _, codes, _ = _texels(self.format, 1, 1, 1)
        inner = first[len(first) - 1:] if codes > 1 else ()
        extents = list(first[: len(first) - len(inner)])
        for axis in range(max(0, len(extents) - 2), len(extents)):
            extents[axis] = max(extents[axis] >> level, 1)
        return (*extents, *inner)

    def _view(self, level):
        """A level's array, in place."""
        start = sum(math.prod(self._level_shape(before)) for before in range(level))
        shape = self._level_shape(level)
        return self._memory.reshape(-1)[start : start + math.prod(shape)].reshape(shape)

    @property
    def __array_interface__(self):
        return self._array.__array_interface__

    def level(self, level: int) -> Texture:
        """One level of it, in place: a texture of one level."""
        if isinstance(level, bool) or not isinstance(level, (int, np.integer)) or not 0 <= level < self.levels:
            raise ArgumentError(f"{self!r} has no level {level!r}: write one from 0 to {self.levels - 1}")
        return Texture(self._view(int(level)), self.format)

    def fill_levels(self) -> None:
        """Makes each level but the first of the one before, by a box filter."""
        try:
            filled = _invar.fill_levels(self._size(), self._memory.tobytes())
        except ValueError as e:
            raise ArgumentError(str(e)) from None
        self._memory.reshape(-1)[...] = np.frombuffer(filled, self._memory.dtype)

    def __repr__(self):
        size = f"{self.width}x{self.height}" + (f"x{self.depth}" if self.depth > 1 else "")
        levels = f" in {self.levels} levels" if self.levels > 1 else ""
        return f"<{self.format} texture of {size}{levels}>"

    def numpy(self) -> np.ndarray[Any, Any]:
        """The array that it is made of, not a copy: of several levels that of the first."""
        return self._array

    def _size(self):
        """Its format and size as the extension takes them."""
        return (self.format, self.width, self.height, self.depth, self.levels)

    def _repr_png_(self):
        picture = _picture(self)
        return None if picture is None else _png(picture)


def _texels(format, width, height, depth, levels=1):
    """What texels of a format are made of; refuses formats and sizes that no texture has."""
    if not isinstance(format, str):
        raise ArgumentError(f"{format!r} is no pixel format: write its name, such as \"rgba8unorm\"")
    if any(not 0 <= n < 1 << 32 for n in (width, height, depth, levels)):
        raise ArgumentError(f"there is no texture of {width}x{height}x{depth}")
    try:
        return _invar.texels((format, width, height, depth, levels))
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
        if not set(names) & _COMPONENTS or access not in _ACCESS:
            known = ", ".join(f'"{name}"' for name in _ACCESS)
            raise Error(
                f"{self!r}[...] takes the type of components, a float or integer of 16 or 32 bits such as iv.f32, "
                f"and the access, one of {known}, as in {self!r}[iv.f32, \"read\"]"
            )
        return TextureType(self, component, access)

    def __repr__(self):
        return f"iv.{self.name}"


Texture1D = _TextureMaker("Texture1D", "texture1d", 1, 1)
Texture1DArray = _TextureMaker("Texture1DArray", "texture1d_array", 1, 2)
Texture2D = _TextureMaker("Texture2D", "texture2d", 2, 2)
Texture2DArray = _TextureMaker("Texture2DArray", "texture2d_array", 2, 3)
Texture3D = _TextureMaker("Texture3D", "texture3d", 3, 3)
TextureCube = _TextureMaker("TextureCube", "texturecube", 3, 3)
TextureCubeArray = _TextureMaker("TextureCubeArray", "texturecube_array", 3, 4)
TextureBuffer = _TextureMaker("TextureBuffer", "texture_buffer", 0, 1)


# ---- in kernels ----

Filter = Literal["nearest", "linear"]
Edges = Literal["clamp_to_edge", "clamp_to_zero", "repeat", "mirrored_repeat"]
Coordinates = Literal["normalized", "pixel"]
Mip = Literal["none", "nearest", "linear"]


@entries
class Sampler:
    """How textures are sampled: passed to kernels with a parameter ``s: iv.Sampler``, which sample by it:
    ``t.sample(u, v, sampler=s)``.

    The words are those of ``sample``.
    """

    def __init__(
        self,
        filter: Filter = "nearest",
        edges: Edges = "clamp_to_edge",
        coordinates: Coordinates = "normalized",
        mip: Mip = "none",
    ):
        given = (filter, edges, coordinates, mip)
        for word, known in zip(given, (Filter, Edges, Coordinates, Mip)):
            if word not in known.__args__:
                shown = ", ".join(f'"{name}"' for name in known.__args__)
                raise ArgumentError(f"no sampler has {word!r}: write one of {shown}")
        self._words = [filter, edges, coordinates, f"mip_{mip}"]

    def __repr__(self):
        return f"<sampler {' '.join(self._words)}>"


class SamplerType:
    """The type of a sampler parameter."""

    kind, shape, bits = "sampler", None, 1

    def __repr__(self):
        return "invar.Sampler"

    def declare(self, trace, name):
        """The parameter of the kernel being built."""
        return KernelSampler(name, trace.emit("sampler", name))


class KernelSampler(_Still):
    """A sampler in a kernel."""

    def __init__(self, name, handle):
        self.name, self.handle = name, tuple(handle)
        self.trace = _trace.current()

    def __repr__(self):
        return f"<sampler {self.name}>"


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

    def read(self, *at: Index, level: Index | None = None) -> Any:
        """The texel at integer coordinates: four components. Beyond the edges it is zeros."""
        at = self._texel("read", at, level)
        return made("texture_function", *self._call("texture_read", at))

    def write(self, *at_and_value: Any, level: Index | None = None) -> None:
        """``t.write(x, y, value)`` writes a texel; beyond the edges nothing."""
        if not at_and_value:
            raise _trace.error(f"`{self.name}.write()` takes coordinates and a value")
        *at, value = at_and_value
        at = self._texel("write", at, level, ", and then the value")
        texel = _types.type_named(f"{self.type.component}x4")
        value = to_type(value, texel, f"a write to `{self.name}`")
        _trace.emit("texture_function", *self._call("texture_write", [*at, value]))

    def sample(
        self,
        *at: Operand,
        level: Operand | None = None,
        filter: Filter = "nearest",
        edges: Edges = "clamp_to_edge",
        coordinates: Coordinates = "normalized",
        mip: Mip = "none",
        sampler: Any = None,
    ) -> Any:
        """A sample at coordinates of ``f32``; of an array the last is the element, an integer. Where there is
        a level, an ``f32``, ``mip`` says what one between two levels means. A sampler says all of it instead."""
        words = self._by(sampler, (filter, edges, coordinates, mip))
        if level is not None and mip == "none" and sampler is None:
            raise _trace.error(f'`{self.name}.sample()` of a level takes mip="nearest" or "linear"')
        place = self._place("sample", at)
        if level is not None:
            self._has_levels()
            place.append(to_type(level, _types.type_named("f32"), f"the level of `{self.name}`"))
        return made("texture_function", *self._call("texture_sample", place, words))

    def gather(
        self,
        *at: Operand,
        component: Literal["x", "y", "z", "w"] = "x",
        edges: Edges = "clamp_to_edge",
        coordinates: Coordinates = "normalized",
        sampler: Any = None,
    ) -> Any:
        """A component of the four texels that a linear sample is made of: those at the lower left, the lower
        right, the upper right and the upper left."""
        if component not in tuple("xyzw"):
            raise _trace.error(f'component={component!r}: write "x", "y", "z" or "w"')
        words = self._by(sampler, ("nearest", edges, coordinates, "none"))
        place = self._place("gather", at)
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

    @property
    def levels(self) -> Any:
        """Levels, as ``u32``."""
        self._has_levels()
        return made("texture_function", *self._call("texture_levels"))

    def size(self, level: Index) -> tuple[Any, Any]:
        """Width and height of a level, as ``u32``; 0 of one that is not there."""
        self._has_levels()
        at = [index_value(level)]
        width = made("texture_function", *self._call("texture_width", at))
        return width, made("texture_function", *self._call("texture_height", at))

    def _has_levels(self):
        if self.type.maker.dimension not in _WITH_LEVELS:
            raise _trace.error(f"`{self.name}` is a {self.type.maker.name}, which has one level")

    def _call(self, function, args=(), words=(), component=0):
        """A function's call as the builder takes it."""
        if self.trace is not _trace.current():
            raise _trace.error(f"`{self.name}` belongs to another kernel")
        for x in args:
            alive(x)
        words = words if isinstance(words, tuple) else list(words)
        return self.handle, function, words, component, [x.id for x in args]

    def _count(self, function, at, then=""):
        wanted = self.type.maker.coordinates
        if len(at) != wanted:
            plural = "" if wanted == 1 else "s"
            raise _trace.error(
                f"`{self.name}.{function}()` takes {wanted} coordinate{plural}{then}, found {len(at)}"
            )

    def _texel(self, function, at, level, then=""):
        self._count(function, at, then)
        if level is not None:
            self._has_levels()
            at = [*at, level]
        return [index_value(x) for x in at]

    def _place(self, function, at):
        self._count(function, at)
        axes, f32 = self.type.maker.axes, _types.type_named("f32")
        between = [to_type(x, f32, f"a coordinate of `{self.name}`") for x in at[:axes]]
        return [*between, *map(index_value, at[axes:])]

    def _by(self, sampler, words):
        """What says how a sample is taken: the parameter that is a sampler, or words."""
        if sampler is not None:
            if words != ("nearest", "clamp_to_edge", "normalized", "none"):
                raise _trace.error(f"`{self.name}` is sampled by {sampler!r}, which says all of it: give no words")
            if not isinstance(sampler, KernelSampler) or sampler.trace is not _trace.current():
                raise _trace.error(f"{sampler!r} is no sampler of this kernel: declare a parameter `s: iv.Sampler`")
            return sampler.handle
        for word, known in zip(words, (Filter, Edges, Coordinates, Mip)):
            if word not in known.__args__:
                shown = ", ".join(f'"{name}"' for name in known.__args__)
                raise _trace.error(f"no sampler has {word!r}: write one of {shown}")
        return [*words[:3], f"mip_{words[3]}"]
