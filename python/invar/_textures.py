"""Textures: pictures on the host, and what kernels do with them.

Absent: what the functions of textures give, which the memory model says (``docs/memory-model.md``), and how a
launch passes a picture (``_arguments``).
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from . import _host, _invar, _trace, _types
from ._errors import ArgumentError, Error, entries
from ._values import Value, _Still, alive, index_value, made, to_type

__all__ = (
    "Depth2D Depth2DArray DepthCube DepthCubeArray Sampler Texture Texture1D Texture1DArray Texture2D Texture2DArray "
    "Texture2DMS Texture2DMSArray Texture3D TextureBuffer TextureCube TextureCubeArray"
).split()

#: What accesses do, in the bits of ``Param.access``.
_ACCESS = {"read": 1, "sample": 1, "write": 2, "read_write": 3}
#: Arrangements of texels that may have several levels.
_WITH_LEVELS = {
    "texture2d", "texture2d_array", "texturecube", "texturecube_array",
    "depth2d", "depth2d_array", "depthcube", "depthcube_array",
}
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
    by a box filter; ``level(1)`` is one of them. With ``samples=4`` the array has the samples of each texel in
    front, one after the other, of an array those of the first element first. ``element(1)`` is an element of an
    array, or a slice, in place.
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
    #: Samples of a texel.
    samples: int

    def __init__(self, x: Any, format: str, levels: int | Literal["all"] = 1, samples: int = 1):
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
        self.samples = self._several(samples)
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

    def _several(self, samples):
        """How many samples there are, of as many slices each."""
        if isinstance(samples, bool) or samples not in (1, 2, 4, 8):
            raise ArgumentError(f"samples={samples!r}: a texel has 1, 2, 4 or 8")
        if self.depth % samples:
            raise ArgumentError(
                f"{self.format} pictures of shape {self._array.shape} are not {samples} samples of each texel: "
                "their number in front has to be a multiple"
            )
        _texels(self.format, self.width, self.height, self.depth // int(samples), 1, int(samples))
        return int(samples)

    def _with_levels(self, levels):
        """Gives it memory of zeros for so many levels."""
        if levels == "all":
            levels = max(self.width, self.height).bit_length()
        if isinstance(levels, bool) or not isinstance(levels, (int, np.integer)) or levels < 0:
            raise ArgumentError(f'levels={levels!r}: write how many, or "all"')
        if levels != 1 and self.samples != 1:
            raise ArgumentError(f"levels={levels}: a texture with {self.samples} samples of each texel has one level")
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
        return Texture(self._view(int(level)), self.format, samples=self.samples)

    def element(self, element: int, level: int = 0) -> Texture:
        """One element of an array, or a slice, in place: a texture of one level."""
        count = self.depth // self.samples
        if isinstance(element, bool) or not isinstance(element, (int, np.integer)) or not 0 <= element < count:
            raise ArgumentError(f"{self!r} has no element {element!r}: write one from 0 to {count - 1}")
        whole = self.level(level)._array
        _, codes, _ = _texels(self.format, 1, 1, 1)
        if whole.ndim - (codes > 1) < 3:
            return Texture(whole, self.format)
        first = int(element) * self.samples
        return Texture(whole[first : first + self.samples], self.format, samples=self.samples)

    def clear(self, colour: Sequence[float] = (0, 0, 0, 0)) -> None:
        """Makes every texel the colour, as a kernel that writes it does: four numbers."""
        try:
            numbers = [float(number) for number in colour]
        except (TypeError, ValueError):
            numbers = []
        if len(numbers) != 4:
            raise ArgumentError(f"{colour!r} is no colour: write four numbers")
        texel = np.frombuffer(_invar.encoded(self.format, numbers), self._memory.dtype)
        self._memory.reshape(-1, len(texel))[...] = texel

    def fill_levels(self) -> None:
        """Makes each level but the first of the one before, by a box filter."""
        try:
            filled = _invar.fill_levels(self._size(), self._memory.tobytes())
        except ValueError as e:
            raise ArgumentError(str(e)) from None
        self._memory.reshape(-1)[...] = np.frombuffer(filled, self._memory.dtype)

    def __repr__(self):
        depth = self.depth // self.samples
        size = f"{self.width}x{self.height}" + (f"x{depth}" if depth > 1 else "")
        size += f" with {self.samples} samples" if self.samples > 1 else ""
        levels = f" in {self.levels} levels" if self.levels > 1 else ""
        return f"<{self.format} texture of {size}{levels}>"

    def numpy(self) -> np.ndarray[Any, Any]:
        """The array that it is made of, not a copy: of several levels that of the first."""
        return self._array

    def _size(self):
        """Its format and size as the extension takes them."""
        return (self.format, self.width, self.height, self.depth // self.samples, self.levels, self.samples)

    def _repr_png_(self):
        picture = _picture(self)
        return None if picture is None else _png(picture)


def _texels(format, width, height, depth, levels=1, samples=1):
    """What texels of a format are made of; refuses formats and sizes that no texture has."""
    if not isinstance(format, str):
        raise ArgumentError(f"{format!r} is no pixel format: write its name, such as \"rgba8unorm\"")
    if any(not 0 <= n < 1 << 32 for n in (width, height, depth, levels)):
        raise ArgumentError(f"there is no texture of {width}x{height}x{depth}")
    try:
        return _invar.texels((format, width, height, depth, levels, samples))
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
Texture2DMS = _TextureMaker("Texture2DMS", "texture2d_ms", 0, 3)
Texture2DMSArray = _TextureMaker("Texture2DMSArray", "texture2d_ms_array", 0, 4)
Texture3D = _TextureMaker("Texture3D", "texture3d", 3, 3)
TextureCube = _TextureMaker("TextureCube", "texturecube", 3, 3)
TextureCubeArray = _TextureMaker("TextureCubeArray", "texturecube_array", 3, 4)
TextureBuffer = _TextureMaker("TextureBuffer", "texture_buffer", 0, 1)
Depth2D = _TextureMaker("Depth2D", "depth2d", 2, 2)
Depth2DArray = _TextureMaker("Depth2DArray", "depth2d_array", 2, 3)
DepthCube = _TextureMaker("DepthCube", "depthcube", 3, 3)
DepthCubeArray = _TextureMaker("DepthCubeArray", "depthcube_array", 3, 4)


# ---- in kernels ----

Filter = Literal["nearest", "linear"]
Edges = Literal["clamp_to_edge", "clamp_to_zero", "clamp_to_border", "repeat", "mirrored_repeat"]
Coordinates = Literal["normalized", "pixel"]
Mip = Literal["none", "nearest", "linear"]
Border = Literal["transparent_black", "opaque_black", "opaque_white"]
Compare = Literal["less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "always", "never"]


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
        border: Border = "transparent_black",
        lod: tuple[float, float] | None = None,
        compare: Compare | None = None,
    ):
        given = (filter, edges, coordinates, mip, border)
        for word, known in zip(given, (Filter, Edges, Coordinates, Mip, Border)):
            if word not in known.__args__:
                shown = ", ".join(f'"{name}"' for name in known.__args__)
                raise ArgumentError(f"no sampler has {word!r}: write one of {shown}")
        self._words = [filter, edges, coordinates, f"mip_{mip}", f"border_{border}"]
        if compare is not None:
            if compare not in Compare.__args__:
                shown = ", ".join(f'"{name}"' for name in Compare.__args__)
                raise ArgumentError(f"no sampler compares as {compare!r} says: write one of {shown}")
            self._words.append(f"compare_{compare}")
        try:
            least, most = (float(np.float32(limit)) for limit in (lod or (0, math.inf)))
        except (TypeError, ValueError):
            raise ArgumentError(f"lod={lod!r}: write the least and the most level, as in (0, 2)") from None
        if not 0 <= least <= most:
            raise ArgumentError(f"there are no levels from {least:g} to {most:g}: write the least and the most, as in (0, 2)")
        if (least, most) != (0, math.inf):
            self._words.append(f"lod_clamp({least!r}, {most!r})")

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
        border: Border = "transparent_black",
        sampler: Any = None,
        offset: tuple[int, ...] = (),
        gradient: Any = None,
    ) -> Any:
        """A sample at coordinates of ``f32``; of an array the last is the element, an integer. Where there is
        a level, an ``f32``, ``mip`` says what one between two levels means. A sampler says all of it instead.
        ``offset`` is so many texels further along each axis; ``gradient=((ax, ay), (bx, by))``, how much
        coordinates change from a sample to its neighbours, leads to a level."""
        words = self._by(sampler, (filter, edges, coordinates, mip, border))
        if gradient is not None:
            level = self._gradient(gradient, level)
        if level is not None and mip == "none" and sampler is None:
            raise _trace.error(f'`{self.name}.sample()` of a level takes mip="nearest" or "linear"')
        place = self._place("sample", at)
        if level is not None:
            self._has_levels()
            place.append(to_type(level, _types.type_named("f32"), f"the level of `{self.name}`"))
        return made("texture_function", *self._call("texture_sample", place, words, offset=self._offset(offset)))

    def gather(
        self,
        *at: Operand,
        component: Literal["x", "y", "z", "w"] = "x",
        edges: Edges = "clamp_to_edge",
        coordinates: Coordinates = "normalized",
        border: Border = "transparent_black",
        sampler: Any = None,
        offset: tuple[int, ...] = (),
    ) -> Any:
        """A component of the four texels that a linear sample is made of: those at the lower left, the lower
        right, the upper right and the upper left."""
        if component not in tuple("xyzw"):
            raise _trace.error(f'component={component!r}: write "x", "y", "z" or "w"')
        words = self._by(sampler, ("nearest", edges, coordinates, "none", border))
        place = self._place("gather", at)
        call = self._call("texture_gather", place, words, "xyzw".index(component), self._offset(offset))
        return made("texture_function", *call)

    def sample_compare(
        self,
        *at_and_reference: Operand,
        compare: Compare | None = None,
        level: Operand | None = None,
        filter: Filter = "nearest",
        edges: Edges = "clamp_to_edge",
        coordinates: Coordinates = "normalized",
        mip: Mip = "none",
        border: Border = "transparent_black",
        sampler: Any = None,
        offset: tuple[int, ...] = (),
    ) -> Any:
        """``t.sample_compare(u, v, reference, compare="less")`` of depths: how much of a sample is of texels for which
        the reference is less, from 0 to 1. What else is said is as of ``sample``; a sampler says how it compares too."""
        words = self._compared((filter, edges, coordinates, mip, border), compare, sampler)
        if level is not None and mip == "none" and sampler is None:
            raise _trace.error(f'`{self.name}.sample_compare()` of a level takes mip="nearest" or "linear"')
        place, reference = self._referred("sample_compare", at_and_reference)
        if level is not None:
            self._has_levels()
            place.append(to_type(level, _types.type_named("f32"), f"the level of `{self.name}`"))
        call = self._call("texture_sample_compare", [*place, reference], words, offset=self._offset(offset))
        return made("texture_function", *call)

    def gather_compare(
        self,
        *at_and_reference: Operand,
        compare: Compare | None = None,
        edges: Edges = "clamp_to_edge",
        coordinates: Coordinates = "normalized",
        border: Border = "transparent_black",
        sampler: Any = None,
        offset: tuple[int, ...] = (),
    ) -> Any:
        """``t.gather_compare(u, v, reference, compare="less")`` of depths: 1 for each of the four texels that a linear
        sample is made of for which the reference is less, and 0 for the others."""
        words = self._compared(("nearest", edges, coordinates, "none", border), compare, sampler)
        place, reference = self._referred("gather_compare", at_and_reference)
        call = self._call("texture_gather_compare", [*place, reference], words, offset=self._offset(offset))
        return made("texture_function", *call)

    def _referred(self, function, at_and_reference):
        """The place of a sample that compares, and what with."""
        if not self.type.maker.dimension.startswith("depth"):
            raise _trace.error(f"`{self.name}` is a {self.type.maker.name}: only depths, such as iv.Depth2D, compare")
        if not at_and_reference:
            raise _trace.error(f"`{self.name}.{function}()` takes coordinates and a reference")
        *at, reference = at_and_reference
        reference = to_type(reference, _types.type_named("f32"), f"the reference of `{self.name}`")
        return self._place(function, at), reference

    def _compared(self, words, compare, sampler):
        """What says how a sample that compares is taken."""
        by = self._by(sampler, words)
        if (compare is None) == (sampler is None):
            raise _trace.error(f'`{self.name}` compares by compare="less" and its like, or by a sampler that does')
        if sampler is not None:
            return by
        if compare not in Compare.__args__:
            shown = ", ".join(f'"{name}"' for name in Compare.__args__)
            raise _trace.error(f"no sampler compares as {compare!r} says: write one of {shown}")
        return [*by, f"compare_{compare}"]

    @property
    def samples(self) -> Any:
        """Samples of a texel, as ``u32``."""
        return made("texture_function", *self._call("texture_samples"))

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

    def _call(self, function, args=(), words=(), component=0, offset=(0, 0, 0)):
        """A function's call as the builder takes it."""
        if self.trace is not _trace.current():
            raise _trace.error(f"`{self.name}` belongs to another kernel")
        for x in args:
            alive(x)
        words = words if isinstance(words, tuple) else list(words)
        return self.handle, function, words, (component, offset), [x.id for x in args]

    def _offset(self, offset):
        """An offset as the builder takes it: three numbers."""
        axes = 0 if "cube" in self.type.maker.dimension else self.type.maker.axes
        numbers = list(offset) if isinstance(offset, (tuple, list)) else [offset]
        fits = all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) and -8 <= n <= 7 for n in numbers)
        if not fits or len(numbers) > axes:
            raise _trace.error(
                f"offset={offset!r}: write a number from -8 to 7 for each of the {axes} axes between texels"
            )
        return [*map(int, numbers), *[0] * (3 - len(numbers))]

    def _gradient(self, gradient, level):
        """The level that gradients lead to."""
        if level is not None:
            raise _trace.error(f"`{self.name}.sample()` takes a level or a gradient, which leads to one")
        if self.type.maker.dimension not in ("texture2d", "texture2d_array", "depth2d", "depth2d_array"):
            raise _trace.error(f"`{self.name}` is a {self.type.maker.name}, which is not sampled with gradients")
        try:
            (ax, ay), (bx, by) = gradient
        except (TypeError, ValueError):
            raise _trace.error(f"gradient={gradient!r}: write ((ax, ay), (bx, by))") from None
        f32 = _types.type_named("f32")
        a, b = ([to_type(x, f32, f"a gradient of `{self.name}`").id for x in pair] for pair in ((ax, ay), (bx, by)))
        return made("texture_gradient_level", self.handle, a, b)

    def _atomic(self, name, at, count):
        """An atomic on a texel: its coordinates and then so many values."""
        wanted, what = self.type.maker.coordinates, f"`{self.name}.atomic_{name}()`"
        if len(at) != wanted + count:
            then = {0: "", 1: ", and then the value", 2: ", and then the expected and the new value"}[count]
            plural = "" if wanted == 1 else "s"
            raise _trace.error(f"{what} takes {wanted} coordinate{plural}{then}, found {len(at)}")
        if self.trace is not _trace.current():
            raise _trace.error(f"`{self.name}` belongs to another kernel")
        component = self.type.component
        ids = [to_type(x, component, what).id for x in at[wanted:]]
        coordinates = [index_value(x) for x in at[:wanted]]
        for x in coordinates:
            alive(x)
        first, *others = [x.id for x in coordinates]
        place = (self.handle, first, 1, False, [(False, other) for other in others])
        results = _trace.emit("atomic", name, place, ids, "relaxed", "device")
        values = [Value(number, _types.type_named(ty)) for number, ty in results]
        return values[0] if len(values) == 1 else tuple(values) or None

    def atomic_load(self, *at: Index) -> Any:
        """A texel's first component, read atomically."""
        return self._atomic("load", at, 0)

    def atomic_store(self, *at_and_value: Any) -> None:
        """``t.atomic_store(x, y, value)`` writes a texel's first component atomically."""
        self._atomic("store", at_and_value, 1)

    def atomic_exchange(self, *at_and_value: Any) -> Any:
        """Replaces a texel's first component; gives the one just before."""
        return self._atomic("exchange", at_and_value, 1)

    def atomic_compare_exchange(self, *at_and_values: Any) -> Any:
        """``t.atomic_compare_exchange(x, y, expected, new)`` gives the value just before, and whether it was replaced."""
        return self._atomic("compare_exchange", at_and_values, 2)

    def atomic_add(self, *at_and_value: Any) -> Any:
        """``t.atomic_add(x, y, value)`` adds to a texel's first component; gives the one just before."""
        return self._atomic("add", at_and_value, 1)

    def atomic_sub(self, *at_and_value: Any) -> Any:
        """Subtracts from a texel's first component; gives the one just before."""
        return self._atomic("sub", at_and_value, 1)

    def atomic_min(self, *at_and_value: Any) -> Any:
        """Leaves the smaller; gives the value just before."""
        return self._atomic("min", at_and_value, 1)

    def atomic_max(self, *at_and_value: Any) -> Any:
        """Leaves the larger; gives the value just before."""
        return self._atomic("max", at_and_value, 1)

    def atomic_and(self, *at_and_value: Any) -> Any:
        """Leaves the bitwise and; gives the value just before."""
        return self._atomic("and", at_and_value, 1)

    def atomic_or(self, *at_and_value: Any) -> Any:
        """Leaves the bitwise or; gives the value just before."""
        return self._atomic("or", at_and_value, 1)

    def atomic_xor(self, *at_and_value: Any) -> Any:
        """Leaves the bitwise exclusive or; gives the value just before."""
        return self._atomic("xor", at_and_value, 1)

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
            if words != ("nearest", "clamp_to_edge", "normalized", "none", "transparent_black"):
                raise _trace.error(f"`{self.name}` is sampled by {sampler!r}, which says all of it: give no words")
            if not isinstance(sampler, KernelSampler) or sampler.trace is not _trace.current():
                raise _trace.error(f"{sampler!r} is no sampler of this kernel: declare a parameter `s: iv.Sampler`")
            return sampler.handle
        for word, known in zip(words, (Filter, Edges, Coordinates, Mip, Border)):
            if word not in known.__args__:
                shown = ", ".join(f'"{name}"' for name in known.__args__)
                raise _trace.error(f"no sampler has {word!r}: write one of {shown}")
        return [*words[:3], f"mip_{words[3]}", f"border_{words[4]}"]
