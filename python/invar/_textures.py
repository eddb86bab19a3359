"""Textures: pictures on the host, and what kernels do with them.

Absent: what the functions of textures give, which the memory model says (``docs/memory-model.md``), and how a
launch passes a picture (``_arguments``).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from . import _host, _invar, _trace, _types
from ._errors import ArgumentError, Error, entries
from ._imageblocks import ImageblockSlice
from ._values import F32, _Still, alive, atomic, index_value, made, refuses, to_type

#: How texels are arranged, by the names of the types of parameters: the word of the text form, the coordinates of a
#: sample that lie between texels, all coordinates (the element of an array included), and whether there may be
#: several levels.
_ARRANGEMENTS = {
    "Texture1D": ("texture1d", 1, 1, False), "Texture1DArray": ("texture1d_array", 1, 2, False),
    "Texture2D": ("texture2d", 2, 2, True), "Texture2DArray": ("texture2d_array", 2, 3, True),
    "Texture2DMS": ("texture2d_ms", 0, 3, False), "Texture2DMSArray": ("texture2d_ms_array", 0, 4, False),
    "Texture3D": ("texture3d", 3, 3, True), "TextureBuffer": ("texture_buffer", 0, 1, False),
    "TextureCube": ("texturecube", 3, 3, True), "TextureCubeArray": ("texturecube_array", 3, 4, True),
    "Depth2D": ("depth2d", 2, 2, True), "Depth2DArray": ("depth2d_array", 2, 3, True),
    "DepthCube": ("depthcube", 3, 3, True), "DepthCubeArray": ("depthcube_array", 3, 4, True),
}  # fmt: skip
__all__ = [*_ARRANGEMENTS, "Sampler", "Texture"]

#: What accesses do, in the bits of ``Param.access``.
_ACCESS = {"read": 1, "sample": 1, "write": 2, "read_write": 3}
#: What components of a texel may be.
_COMPONENTS = {"f32", "i32", "u32", "f16", "i16", "u16"}


# ---- on the host ----


@entries
class Texture:
    """A picture for kernels: an array of NumPy, used in place, and the pixel format of its texels.

    ``iv.Texture(array, "rgba8unorm")`` takes an array of shape ``(height, width, 4)`` and of the type of the
    format's codes, here ``uint8``; of a format of one channel ``(height, width)``. An array of slices or
    elements has their number in front, one of one row no height; for an ``iv.Texture1DArray`` a row is an
    element: ``(elements, width)``. Launches change the array itself: ``numpy()`` gives it. In a notebook it is
    shown as the picture.

    With ``levels=3``, or ``"all"`` of them, it is a copy of the array and levels of half its size each, whose
    texels are means of what they cover; ``level(1)`` is one of them. Levels of an ``iv.Texture3D`` have half
    the slices too, which ``dimensions=3`` says: without it slices are elements of an array. With ``samples=4``
    the array has the samples of each texel in front, one after the other, of an array those of the first element first.
    ``element(1)`` is an element of an array, or a slice, in place. Two views that share texels are refused in a
    launch that writes one of them.
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

    def __init__(
        self, x: Any, format: str, levels: int | Literal["all"] = 1, samples: int = 1, dimensions: Literal[2, 3] = 2
    ):
        where = "the picture"
        array = _host.array_of(where, x)
        #: The last dimension of the array, for the codes of a texel.
        dtype, self._inner = _codes(format)
        if array.dtype != dtype:
            raise ArgumentError(
                f"{where} has dtype {array.dtype}, and texels of {format} are made of {dtype}: convert it"
            )
        extents = array.shape[: array.ndim - len(self._inner)]
        if array.shape[len(extents) :] != self._inner or not 1 <= len(extents) <= 3:
            shown = f"(height, width, {self._inner[0]})" if self._inner else "(height, width)"
            raise ArgumentError(f"{where} has shape {array.shape}, and one of {format} has {shown}")
        if not (array.flags.c_contiguous and array.flags.aligned):
            raise ArgumentError(f"{where} is not contiguous: pass np.ascontiguousarray(...) of it")
        self._array, self.format, self.levels, self.samples = array, format, 1, 1
        self.depth, self.height, self.width = ((1, 1) + extents)[-3:]
        self._is_volume = _volume(dimensions, samples, array.shape, len(extents))
        #: The shape of each level: slices, rows and columns.
        self._levels = _texels(self._size())[2]
        if isinstance(samples, bool) or samples not in (1, 2, 4, 8):
            raise ArgumentError(
                f"samples={samples!r}: a texture has 2, 4 or 8 of each texel, or 1 where it is not multisampled"
            )
        if self.depth % samples:
            raise ArgumentError(
                f"{format} pictures of shape {array.shape} are not {samples} samples of each texel: their number in "
                "front has to be a multiple"
            )
        self.samples = int(samples)
        #: The codes of all levels.
        self._memory = array
        if levels != 1:
            self._with_levels(levels)
            self.numpy()[...] = array
            self.fill_levels()

    @staticmethod
    def zeros(
        shape: tuple[int, ...], format: str, levels: int | Literal["all"] = 1, dimensions: Literal[2, 3] = 2
    ) -> Texture:
        """A texture of zeros: ``iv.Texture.zeros((height, width), "rgba8unorm")``, with so many levels."""
        dtype, inner = _codes(format)
        try:
            extents = tuple(operator.index(n) for n in shape)
        except TypeError:
            raise ArgumentError(f"{shape!r} is not a shape: write (height, width)") from None
        if not 1 <= len(extents) <= 3:
            raise ArgumentError(f"a texture has one to three dimensions, not {len(extents)}")
        # Sizes that no texture has are refused before there is memory.
        depth, height, width = ((1, 1) + extents)[-3:]
        _texels((format, width, height, depth, 1, 1, False))
        texture = Texture(np.zeros((*extents, *inner), dtype), format, dimensions=dimensions)
        if levels != 1:
            texture._with_levels(levels)
        return texture

    def _with_levels(self, levels):
        """Gives it memory of zeros for so many levels."""
        if levels == "all":
            slices = self.depth if self._is_volume else 1
            levels = max(self.width, self.height, slices).bit_length()
        if isinstance(levels, bool) or not isinstance(levels, (int, np.integer)) or levels < 0:
            raise ArgumentError(f'levels={levels!r}: write how many, or "all"')
        if levels != 1 and self.samples != 1:
            raise ArgumentError(f"levels={levels}: a texture with {self.samples} samples of each texel has one level")
        self.levels = int(levels)
        self._levels = _texels(self._size())[2]
        self._memory = np.zeros(sum(map(math.prod, self._levels)) * math.prod(self._inner), self._array.dtype)
        self._array = self._view(0)

    def _view(self, level):
        """A level's array, in place: of as many dimensions as the first's."""
        shape = (*self._levels[level][3 + len(self._inner) - self._array.ndim :], *self._inner)
        start = sum(map(math.prod, self._levels[:level])) * math.prod(self._inner)
        return self._memory.reshape(-1)[start : start + math.prod(shape)].reshape(shape)

    @property
    def __array_interface__(self):
        return self._array.__array_interface__

    def _numbered(self, what, number, count):
        """The number of a level or an element, of which there are so many."""
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or not 0 <= number < count:
            raise ArgumentError(f"{self!r} has no {what} {number!r}: write one from 0 to {count - 1}")
        return int(number)

    def level(self, level: int) -> Texture:
        """One level of it, in place: a texture of one level."""
        level = self._numbered("level", level, self.levels)
        dimensions = 3 if self._is_volume else 2
        return Texture(self._view(level), self.format, samples=self.samples, dimensions=dimensions)

    def element(self, element: int, level: int = 0) -> Texture:
        """One element of an array, or a slice, in place: a texture of one level."""
        of_level = self.level(level)
        first = self._numbered("element", element, of_level.depth // self.samples) * self.samples
        whole = of_level._array
        if whole.ndim - len(self._inner) < 3:
            return Texture(whole, self.format)
        return Texture(whole[first : first + self.samples], self.format, samples=self.samples)

    def clear(self, colour: Sequence[float] = (0, 0, 0, 0)) -> None:
        """Makes every texel the colour, as a kernel that writes it does: four numbers."""
        try:
            numbers = [float(number) for number in colour]
        except (TypeError, ValueError):
            numbers = []
        if len(numbers) != 4:
            raise ArgumentError(f"{colour!r} is not a colour: write four numbers")
        if not self._memory.flags.writeable:
            raise ArgumentError(f"{self!r} is of an array that is read-only: make it of a copy")
        texel = np.frombuffer(_invar.encoded(self.format, numbers), self._memory.dtype)
        self._memory.reshape(-1, len(texel))[...] = texel

    def fill_levels(self) -> None:
        """Makes each level but the first of the one before: a texel is the mean of the area that it covers there,
        where the number of columns or rows is odd of parts of texels too."""
        try:
            filled = _invar.fill_levels(self._size(), self._memory.tobytes())
        except ValueError as e:
            extents = self._array.shape[: self._array.ndim - len(self._inner)]
            volume = ", dimensions=3" if self._is_volume else ""
            how = f'iv.Texture.zeros({extents}, "{self.format}", levels={self.levels}{volume})'
            raise ArgumentError(f"{e}, as in t = {how}; t.level(1).numpy()[...] = ...") from None
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
        depth = self.depth // self.samples
        return (self.format, self.width, self.height, depth, self.levels, self.samples, self._is_volume)

    def _size_as(self, is_of_rows):
        """The same as an argument: for an array of textures of one row its rows are the elements."""
        if is_of_rows and self.depth == 1:
            return (self.format, self.width, 1, self.height, self.levels, self.samples, False)
        return self._size()

    def _repr_png_(self):
        return _invar.png(self._size(), self._memory.tobytes())


def _volume(dimensions, samples, shape, found):
    """Whether a texture of an array of that shape, with so many extents, has three dimensions."""
    if isinstance(dimensions, bool) or dimensions not in (2, 3):
        raise ArgumentError(f"dimensions={dimensions!r}: write 3 of a volume, and 2 of all others")
    if dimensions == 3 and found != 3:
        raise ArgumentError(f"dimensions=3: an array of shape {shape} has no slices: write (depth, height, width)")
    if dimensions == 3 and samples != 1:
        raise ArgumentError(f"dimensions=3: a volume has one sample of each texel, not {samples}")
    return dimensions == 3


def _codes(format):
    """What texels of a format are made of: NumPy's type of a code, and the shape of one texel."""
    stored, codes, _ = _texels((format, 1, 1, 1, 1, 1, False))
    return _types.type_named(stored).numpy(), (codes,) if codes > 1 else ()


def _texels(size):
    """The scalar of codes, how many a texel has, and the shape of each level; refuses what no texture is."""
    format, width, height, depth, levels, *_ = size
    if not isinstance(format, str):
        raise ArgumentError(f'{format!r} is not a pixel format: write its name, such as "rgba8unorm"')
    if any(not 0 <= n < 1 << 32 for n in (width, height, depth, levels)):
        raise ArgumentError(f"there is no texture of {width}x{height}x{depth}")
    try:
        return _invar.texels(size)
    except ValueError as e:
        raise ArgumentError(str(e)) from None


# ---- parameters ----


class TextureType:
    """The type of a texture parameter: how texels are arranged, their components, and the access."""

    def __init__(self, maker, component, access):
        self.maker, self.component, self.access = maker, component, access
        #: What the kernel does with it, in the bits of ``Param.access``.
        self.bits = _ACCESS[access]

    def __repr__(self):
        return f"invar.{self}"

    def __str__(self):
        return f'{self.maker.name}[{self.component}, "{self.access}"]'


@entries
class _TextureMaker:
    """``iv.Texture2D[iv.f32, "sample"]``: how a kernel says that a parameter is a texture."""

    def __init__(self, name, dimension, axes, coordinates, has_levels):
        self.name, self.dimension, self.has_levels = name, dimension, has_levels
        self.axes, self.coordinates = axes, coordinates

    def __getitem__(self, what):
        component, access = what if isinstance(what, tuple) and len(what) == 2 else (None, None)
        names = [component.name] if isinstance(component, _types.Type) else []
        if not set(names) & _COMPONENTS or access not in _ACCESS:
            known = ", ".join(f'"{name}"' for name in _ACCESS)
            raise Error(
                f"{self!r}[...] takes the type of components, a float or integer of 16 or 32 bits such as iv.f32, "
                f'and the access, one of {known}, as in {self!r}[iv.f32, "read"]'
            )
        return TextureType(self, component, access)

    def __repr__(self):
        return f"iv.{self.name}"


globals().update({name: _TextureMaker(name, *row) for name, row in _ARRANGEMENTS.items()})


# ---- in kernels ----

Filter = Literal["nearest", "linear"]
Edges = Literal["clamp_to_edge", "clamp_to_zero", "clamp_to_border", "repeat", "mirrored_repeat"]
Coordinates = Literal["normalized", "pixel"]
Mip = Literal["none", "nearest", "linear"]
Border = Literal["transparent_black", "opaque_black", "opaque_white"]
Compare = Literal["less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "always", "never"]
#: The words of a sampler: what each may be, what stands in front of it in the text form, and what it is by itself.
_WORDS = {
    "filter": (Filter, "", "nearest"), "edges": (Edges, "", "clamp_to_edge"),
    "coordinates": (Coordinates, "", "normalized"), "mip": (Mip, "mip_", "none"),
    "border": (Border, "border_", "transparent_black"), "compare": (Compare, "compare_", None),
}  # fmt: skip


def _words(given, refuse):
    """The words of a sampler as the text form has them; others are refused."""
    words = []
    for name, (known, before, plain) in _WORDS.items():
        word = given.get(name, plain)
        if word is None and plain is None:
            continue
        if word not in known.__args__:
            said = f"compares as {word!r} says" if known is Compare else f"has {word!r}"
            shown = ", ".join(f'"{name}"' for name in known.__args__)
            raise refuse(f"no sampler {said}: write one of {shown}")
        words.append(before + word)
    return words


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
        given = (filter, edges, coordinates, mip, border, compare)
        self._words = _words(dict(zip(_WORDS, given)), ArgumentError)
        try:
            least, most = (float(np.float32(limit)) for limit in (lod or (0, math.inf)))
        except (TypeError, ValueError):
            raise ArgumentError(f"lod={lod!r}: write the least and the most level, as in (0, 2)") from None
        if not 0 <= least <= most:
            raise ArgumentError(
                f"there are no levels from {least:g} to {most:g}: write the least and the most, as in (0, 2)"
            )
        if (least, most) != (0, math.inf):
            self._words.append(f"lod_clamp({least!r}, {most!r})")

    def __repr__(self):
        return f"<sampler {' '.join(self._words)}>"


class KernelSampler(_Still):
    """A sampler in a kernel."""

    def __init__(self, trace, name):
        self.name, self.handle = name, tuple(trace.emit("sampler", name))
        self.trace = trace

    def __repr__(self):
        return f"<sampler {self.name}>"


def _query(name, what):
    def get(self):
        if name == "levels":
            self._has_levels()
        return self._made(name)

    return property(get, doc=f"{what}, as ``u32``.")


class KernelTexture(_Still):
    """A texture in a kernel: texels are read and written at integer coordinates, or sampled between them."""

    def __init__(self, trace, name, ty):
        words = ty.maker.dimension, str(ty.component), ty.access
        self.name, self.type, self.handle = name, ty, tuple(trace.emit("texture", name, *words))
        self.trace = trace

    def __repr__(self):
        return f"<texture {self.name}: {self.type}>"

    __getitem__ = refuses("`{0.name}` is a texture: write `{0.name}.read(x, y)`")
    __setitem__ = refuses("`{0.name}` is a texture: write `{0.name}.write(x, y, value)`")

    def read(self, *at: Index, level: Index | None = None) -> Any:
        """The texel at integer coordinates: four components. Beyond the edges it is zeros."""
        return self._made("read", self._texel("read", at, level))

    def write(self, *at_and_value: Any, level: Index | None = None) -> None:
        """``t.write(x, y, value)`` writes a texel; beyond the edges nothing. A slice of an imageblock is copied
        from there on, by the thread that calls this."""
        if not at_and_value:
            raise _trace.error(f"`{self.name}.write()` takes coordinates and a value")
        *at, value = at_and_value
        if isinstance(value, ImageblockSlice):
            at = self._texel("write", at, level, ", and then the slice")
            value.emit(self.handle, [x.id for x in at])
            return
        at = self._texel("write", at, level, ", and then the value")
        texel = _types.type_named(f"{self.type.component}x4")
        value = to_type(value, texel, f"a write to `{self.name}`")
        _trace.emit("texture_function", *self._call("write", [*at, value]))

    def sample(self, *at, level=None, gradient=None, sampler=None, offset=(), **words):
        """A sample at coordinates of ``f32``; of an array the last is the element, an integer. The words are those of
        ``iv.Sampler``: ``filter``, ``edges``, ``coordinates``, ``border``, and where there is a level, an ``f32``,
        ``mip``, which says what one between two levels means. A sampler says all of it instead. ``offset`` is so
        many texels further along each axis; ``gradient=((ax, ay), (bx, by))``, how much coordinates change from a
        sample to its neighbours, leads to a level; of three coordinates it has as many numbers."""
        return self._sampled("sample", at, sampler, words, offset, level, gradient)

    def gather(self, *at, component="x", sampler=None, offset=(), **words):
        """A component of the four texels that a linear sample is made of: those at the lower left, the lower
        right, the upper right and the upper left."""
        if component not in tuple("xyzw"):
            raise _trace.error(f'component={component!r}: write "x", "y", "z" or "w"')
        if component != "x" and self.type.maker.dimension.startswith("depth"):
            raise _trace.error(f"a texel of `{self.name}` is a depth, one number: gather it without a component")
        return self._sampled("gather", at, sampler, words, offset, component="xyzw".index(component))

    def sample_compare(self, *at_and_reference, level=None, sampler=None, offset=(), **words):
        """``t.sample_compare(u, v, reference, compare="less")`` of depths: how much of a sample is of texels for which
        the reference is less, from 0 to 1. What else is said is as of ``sample``; a sampler says how it compares."""
        return self._sampled("sample_compare", at_and_reference, sampler, words, offset, level)

    def gather_compare(self, *at_and_reference, sampler=None, offset=(), **words):
        """``t.gather_compare(u, v, reference, compare="less")`` of depths: 1 for each of the four texels that a linear
        sample is made of for which the reference is less, and 0 for the others."""
        return self._sampled("gather_compare", at_and_reference, sampler, words, offset)

    samples = _query("samples", "Samples of a texel")
    width = _query("width", "Texels in a row")
    height = _query("height", "Rows")
    depth = _query("depth", "Slices of a texture of three dimensions")
    array_size = _query("array_size", "Elements of an array")
    levels = _query("levels", "Levels")

    def size(self, level: Index) -> tuple[Any, ...]:
        """Width and height of a level, and of three dimensions its depth, as ``u32``; 0 of one that is not there."""
        self._has_levels()
        at = [index_value(level)]
        of = ("width", "height", "depth") if self.type.maker.dimension == "texture3d" else ("width", "height")
        return tuple(self._made(name, at) for name in of)

    def _sampled(self, function, at, sampler, words, offset, level=None, gradient=None, component=0):
        """A sample, or what is made of one; where one compares, the last coordinate is what with."""
        by = self._by(function, sampler, words)
        if gradient is not None and level is not None:
            raise _trace.error(f"`{self.name}.sample()` takes a level or a gradient, which leads to one")
        if words.get("coordinates") == "pixel" and (gradient is not None or "cube" in self.type.maker.dimension):
            what = "gradients are" if gradient is not None else f"the directions of a {self.type.maker.name} are"
            raise _trace.error(f'`{self.name}`: {what} of normalized coordinates: leave out coordinates="pixel"')
        of_first = gradient is None and level is None
        if not of_first and sampler is None and words.get("mip", "none") == "none":
            raise _trace.error(f'`{self.name}.{function}()` of a level takes mip="nearest" or "linear"')
        reference = []
        if function.endswith("compare"):
            if not self.type.maker.dimension.startswith("depth"):
                raise _trace.error(
                    f"`{self.name}` is a {self.type.maker.name}: only depths, such as iv.Depth2D, compare"
                )
            if not at:
                raise _trace.error(f"`{self.name}.{function}()` takes coordinates and a reference")
            *at, last = at
            reference = [to_type(last, F32, f"the reference of `{self.name}`")]
        place = self._place(function, at)
        if gradient is not None:
            place.append(self._gradient(gradient, place))
        if level is not None:
            self._has_levels()
            place.append(to_type(level, F32, f"the level of `{self.name}`"))
        return self._made(function, [*place, *reference], by, component, self._offset(offset))

    def _has_levels(self):
        if not self.type.maker.has_levels:
            raise _trace.error(f"`{self.name}` is a {self.type.maker.name}, which has one level")

    def _made(self, function, *args):
        """What a function gives."""
        return made("texture_function", *self._call(function, *args))

    def _call(self, function, args=(), words=(), component=0, offset=(0, 0, 0)):
        """A function's call as the builder takes it."""
        self._here(args)
        words = words if isinstance(words, tuple) else list(words)
        return self.handle, f"texture_{function}", words, (component, offset), [x.id for x in args]

    def _here(self, args):
        """Refuses what does not belong here."""
        if self.trace is not _trace.current():
            raise _trace.error(f"`{self.name}` belongs to another kernel")
        for x in args:
            alive(x)

    def _offset(self, offset):
        """An offset as the builder takes it: three numbers."""
        axes = 0 if "cube" in self.type.maker.dimension else self.type.maker.axes
        numbers = list(offset) if isinstance(offset, (tuple, list)) else [offset]
        if numbers and not axes:
            raise _trace.error(f"`{self.name}` is a {self.type.maker.name}, which is not sampled with an offset")
        fits = all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) and -8 <= n <= 7 for n in numbers)
        if not fits or len(numbers) > axes:
            raise _trace.error(
                f"offset={offset!r}: write a number from -8 to 7 for each of the {axes} axes between texels"
            )
        return [*map(int, numbers), *[0] * (3 - len(numbers))]

    def _gradient(self, gradient, place):
        """The level that gradients of a sample at a place lead to."""
        maker = self.type.maker
        if not maker.has_levels:
            raise _trace.error(f"`{self.name}` is a {maker.name}, which is not sampled with gradients")
        try:
            changes = [tuple(change) for change in gradient]
        except TypeError:
            changes = []
        if [len(change) for change in changes] != [maker.axes] * 2:
            shown = "((ax, ay), (bx, by))" if maker.axes == 2 else "((ax, ay, az), (bx, by, bz))"
            raise _trace.error(f"gradient={gradient!r}: write {shown}")
        what = f"a gradient of `{self.name}`"
        numbers = [[to_type(x, F32, what) for x in change] for change in changes]
        self._here([x for change in [place, *numbers] for x in change])
        ids = [[x.id for x in change] for change in [place[: maker.axes], *numbers]]
        return made("texture_gradient_level", self.handle, *ids)

    def _atomic(self, name, at, count):
        """An atomic on a texel: its coordinates and then so many values."""
        then = ("", ", and then the value", ", and then the expected and the new value")[count]
        wanted = self._count(f"atomic_{name}", at, then, count)
        coordinates = [index_value(x) for x in at[:wanted]]
        self._here(coordinates)
        first, *others = [x.id for x in coordinates]
        place = (self.handle, first, 1, False, [(False, other) for other in others])
        return atomic(name, place, self.type.component, at[wanted:], f"`{self.name}.atomic_{name}()`")

    def _count(self, function, at, then="", others=0):
        """How many coordinates there are, and so many others behind them; refuses more and less."""
        wanted = self.type.maker.coordinates
        if len(at) != wanted + others:
            plural = "" if wanted == 1 else "s"
            raise _trace.error(f"`{self.name}.{function}()` takes {wanted} coordinate{plural}{then}, found {len(at)}")
        return wanted

    def _texel(self, function, at, level, then=""):
        self._count(function, at, then)
        if level is not None:
            self._has_levels()
            at = [*at, level]
        return [index_value(x) for x in at]

    def _place(self, function, at):
        self._count(function, at)
        axes = self.type.maker.axes
        between = [to_type(x, F32, f"a coordinate of `{self.name}`") for x in at[:axes]]
        return [*between, *map(index_value, at[axes:])]

    def _by(self, function, sampler, words):
        """What says how a sample is taken: the parameter that is a sampler, or words."""
        compares = function.endswith("compare")
        others = () if function.startswith("sample") else ("filter", "mip")
        for name in words:
            if name not in _WORDS or name in others or name == "compare" and not compares:
                raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
        if sampler is not None:
            if any(word != _WORDS[name][2] for name, word in words.items() if name != "compare"):
                raise _trace.error(f"`{self.name}` is sampled by {sampler!r}, which says all of it: give no words")
            if not isinstance(sampler, KernelSampler) or sampler.trace is not _trace.current():
                raise _trace.error(f"{sampler!r} is not a sampler of this kernel: declare a parameter `s: iv.Sampler`")
        if compares and (words.get("compare") is None) == (sampler is None):
            raise _trace.error(f'`{self.name}` compares by compare="less" and its like, or by a sampler that does')
        return _words(words, _trace.error) if sampler is None else sampler.handle


def _atomic_method(name, values):
    def method(self, *at_and_values):
        return self._atomic(name, at_and_values, values)

    method.__name__ = f"atomic_{name}"
    method.__doc__ = f"As ``iv.atomic_{name}``, on a texel's first component: its coordinates come first."
    return method


_ONE_VALUE = dict.fromkeys("store exchange add sub min max and or xor".split(), 1)
for _name, _values in {"load": 0, **_ONE_VALUE, "compare_exchange": 2}.items():
    setattr(KernelTexture, f"atomic_{_name}", _atomic_method(_name, _values))
