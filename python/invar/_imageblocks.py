"""Imageblocks: memory of a threadgroup with an element for each of its positions.

Absent: what coordinates and slices become, which the builder writes out (``docs/memory-model.md``, section 11).
"""

from __future__ import annotations

from collections.abc import Mapping

from . import _ops, _trace
from ._types import Struct, Type, element_of, type_named
from ._values import Memory, describe, field_of, index_value, made, to_type

__all__ = "Imageblock imageblock_alloc".split()


class Imageblock(Memory):
    """An imageblock of a kernel: ``block[x, y]`` is the element at a column and a row of the threadgroup."""

    def __init__(self, handle, name, element, size):
        super().__init__(handle, name, "imageblock", element, size[0] * size[1])
        self.size = size

    @property
    def width(self):
        """How many columns it has: those of the threadgroup."""
        return self.size[0]

    @property
    def height(self):
        """How many rows it has."""
        return self.size[1]

    @property
    def samples(self):
        """How many samples a position has: 1."""
        return 1

    def index(self, index):
        """The number of the element at coordinates."""
        if not isinstance(index, (tuple, list)) or len(index) != 2:
            raise _trace.error(
                f"an element of the imageblock `{self.name}` has a column and a row: write `{self.name}[x, y]`"
            )
        x, y = (index_value(i) for i in index)
        return made("imageblock_element", self.handle, x.id, y.id)

    def at(self, offset):
        """Refused: elements are reached by coordinates."""
        raise _trace.error(f"`{self.name}` is an imageblock: add to the coordinates in `{self.name}[x, y]`")

    def run(self, index, width, group=False):
        """Refused: elements side by side have coordinates each."""
        if width == 1:
            return self.place(index)
        raise _trace.error(f"`{self.name}` is an imageblock, which has no vector accesses: write `{self.name}[x, y]`")

    def read(self, x, y):
        """The element at a column and a row; outside it is zeros."""
        return self[x, y]

    def write(self, x, y, value):
        """Stores the element at a column and a row; outside nothing."""
        self[x, y] = value

    def slice(self, field=None, *, origin=(0, 0), size=None):
        """One field of all elements, or of the rectangle of so many from ``origin`` on, which
        ``texture.write(x, y, block.slice("depth"))`` copies to a texture."""
        return ImageblockSlice(self, field, origin, size)


class ImageblockSlice:
    """A field of a rectangle of elements of an imageblock."""

    def __init__(self, memory, field, origin, size):
        self.memory, self.path, element = memory, [], memory.element
        if not isinstance(field, (str, type(None))):
            raise _trace.error(f"the field of a slice of `{memory.name}` is given by its name, not {describe(field)}")
        for name in [] if field is None else field.split("."):
            step, element = field_of(element, name, memory)
            self.path.append(step)
        if not isinstance(element, Type):
            raise _trace.error(
                f'a slice of `{memory.name}` is of one field of {element}: name it, as in `slice("depth")`'
            )
        (x, y), size = _pair(memory, origin), _pair(memory, memory.size if size is None else size)
        whole = all(type(n) is int for n in (x, y, *size)) and (x, y, *size) == (0, 0, *memory.size)
        self.region = None if whole else [self._number(n) for n in (x, y, *size)]

    def _number(self, number):
        u32 = type_named("u32")
        what = f"the region of a slice of `{self.memory.name}`"
        if type(number) is int and not 0 <= number < 1 << 32:
            raise _trace.error(f"{what} is of numbers from 0 on, found {number}")
        return to_type(number, u32, what)

    def emit(self, texture, at):
        """Copies it to a texture, from the texel at these coordinates on."""
        region = self.region and [value.id for value in self.region]
        _trace.emit("texture_write_slice", texture, at, self.memory.handle, self.path, region)


def _pair(memory, pair):
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise _trace.error(
            f"the region of a slice of `{memory.name}` is given by two pairs: write origin=(x, y), size=(width, height)"
        )
    return pair


def imageblock_alloc(element: Element, formats: Mapping[str, str] | str | None = None) -> Imageblock:
    """An imageblock: memory of the threadgroup with an element for each of its positions, all zeros when it
    starts (I2). ``block[x, y]`` is one. The kernel says the size of its threadgroups, as in
    ``@iv.kernel(threadgroup=(16, 16))``; barriers with ``"imageblock"`` order it.

    ``formats={"depth": "r16float"}`` stores a field in a pixel format, ``formats="rgba8unorm"`` an element
    that is not a struct: as the nearest code, which is read as the number that it stands for."""
    t = _trace.current()
    if isinstance(formats, str):
        formats = {"": formats}
    if not isinstance(formats, (dict, type(None))):
        raise _trace.error(
            f'formats={formats!r}: write the format of each field, as in formats={{"depth": "r16float"}}'
        )
    element = element_of(element)
    if isinstance(element, Struct) and "" in (formats or {}):
        raise _trace.error(
            f'{element} has fields, each with a format of its own: name them, as in formats={{"depth": "r16float"}}'
        )
    size = t.threadgroup
    if size is None:
        raise _trace.error(
            "an imageblock has an element for each position of the threadgroup, whose size the kernel does not "
            "say: write `@iv.kernel(threadgroup=(16, 16))`"
        )
    _ops.declare(element)
    name, t.hint = t.hint or "imageblock", None
    stored = [(str(field), str(format)) for field, format in (formats or {}).items()]
    handle = t.emit("imageblock", name, str(element), list(size), stored)
    return Imageblock(tuple(handle), name, element, (size[0], size[1]))
