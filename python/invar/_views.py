"""Memory seen through a layout.

A tensor is a buffer or array, a layout, and an offset. Coordinates may be values of the kernel; what
is known when it is compiled is computed then, so a layout costs no more than the index written by
hand. Absent: the algebra of layouts, which the extension has.
"""

from __future__ import annotations

from . import _control, _trace
from . import layout as _layout
from ._operators import METHODS, give
from ._types import Type, type_named
from ._values import (
    Elements, Memory, Undefined, Value, constant, convert, describe, index_of, is_number, op,
    plain, plus, refuses, spread, to_type, weak_kind,
)  # fmt: skip
from .layout import Layout, SwizzledLayout

__all__ = "Tensor".split()

#: A view of more elements is not loaded or stored at once.
MAX_ELEMENTS = 4096


# ---- offsets of traced coordinates ----


def offset_of(coord, shape, stride):
    """The offset of a coordinate of numbers and traced values, of 0 where it keeps a mode; a number where all are."""
    leaves = _leaves(shape, stride)
    reach = sum((size - 1) * abs(step) for size, step in leaves)
    # What a coordinate of 32 bits counts as, so that no offset of the layout wraps.
    if reach >= 2**31:
        count = type_named("i64")
    else:
        count = type_named("i32") if any(step < 0 for _, step in leaves) else None
    return _offset_of(coord, shape, stride, count)


def _offset_of(coord, shape, stride, count):
    coord = plain(coord)
    if coord is None:
        return 0
    if isinstance(coord, (tuple, list)):
        total = 0
        for c, s, d in _paired(coord, shape, stride):
            total = plus(total, _offset_of(c, s, d, count))
        return total
    if not isinstance(coord, bool) and hasattr(coord, "__index__") and not isinstance(coord, Value):
        return _layout.crd2idx(int(coord), shape, stride)
    if isinstance(coord, Undefined):
        coord.fail()
    if not isinstance(coord, Value) or coord.type.kind != "scalar" or not coord.type.is_integer:
        raise _trace.error(f"{describe(coord)} is not a coordinate: coordinates are made of integers and None")
    coord = _counted(coord, count)
    # The index of a nested mode is taken apart: leftmost fastest, the last takes what is left.
    leaves = _leaves(shape, stride)
    total, before = 0, 1
    for i, (size, step) in enumerate(leaves):
        part = coord if before == 1 else op("div", [coord, constant(coord.type, before)])
        if i + 1 < len(leaves):
            part = op("rem", [part, constant(part.type, size)])
        before *= size
        if step:
            total = plus(total, part if step == 1 else index_of("mul", part, step))
    return total


def _counted(coord, count):
    """A coordinate in the bits that an index has, signed where the layout asks for it."""
    if weak_kind(coord) is not None:
        return to_type(coord, count or type_named("i32"), "a coordinate")
    if coord.type.bits < 32:
        count = count or type_named("i32" if coord.type.name[0] == "i" else "u32")
    elif coord.type.bits == 64 or count is None:
        return coord
    return convert(count, (coord,))


def _leaves(shape, stride):
    if isinstance(shape, int):
        return [(shape, stride)]
    return [leaf for s, d in zip(shape, stride) for leaf in _leaves(s, d)]


def shown(coord):
    """A coordinate as messages write it."""
    if isinstance(coord, (tuple, list)):
        return "(" + ",".join(shown(c) for c in coord) + ")"
    return "_" if coord is None else str(coord) if isinstance(coord, int) else "?"


def _parts(coord):
    """The numbers, values and ``None`` of a coordinate, in order."""
    coord = plain(coord)
    return [x for c in coord for x in _parts(c)] if isinstance(coord, (tuple, list)) else [coord]


def has_none(coord):
    """Whether a coordinate keeps a mode."""
    return any(x is None for x in _parts(coord))


def _zeroed(coord):
    """The coordinate with 0 for every number and traced value: what it keeps is the same."""
    if isinstance(coord, (tuple, list)):
        return tuple(map(_zeroed, coord))
    return None if coord is None else 0


def _paired(coord, *of):
    """The parts of a coordinate, each with those of the shape that it is in."""
    if isinstance(of[0], int) or len(coord) != len(of[0]):
        raise _trace.error(f"the coordinate {shown(coord)} does not fit the shape {of[0]}")
    return zip(coord, *of)


def swizzled(layout, offset):
    """An offset through a layout's swizzle, if it has one."""
    if not isinstance(layout, SwizzledLayout) or layout.swizzle.bits == 0:
        return offset
    swizzle = layout.swizzle
    if isinstance(offset, int):
        return swizzle(offset)
    # The field at `base` is changed by the one `shift` higher, or that one by it.
    field = ((1 << swizzle.bits) - 1) << swizzle.base
    if swizzle.shift >= 0:
        return offset ^ ((offset & (field << swizzle.shift)) >> swizzle.shift)
    return offset ^ ((offset & field) << -swizzle.shift)


def masks(mask, count):
    """A mask as one condition for each of so many elements."""
    mask = plain(mask)
    if callable(mask) and not isinstance(mask, (Value, Undefined)):
        return [_control.truth(mask(i)) for i in range(count)]
    if isinstance(mask, Elements) or isinstance(mask, Value) and mask.type.kind == "vector":
        return [_control.truth(m) for m in spread(mask, count)]
    if isinstance(mask, (Value, Undefined, bool)):
        return [_control.truth(mask)] * count
    raise _trace.error(
        f"{describe(mask)} is not a mask: a mask is a bool, Elements of bools, or a function of an "
        "element's number that gives one"
    )


def called(layout, args, kwargs):
    """``layout(coord)`` in a kernel: the offset of a traced coordinate is computed there."""
    coord = kwargs.get("coord", args[0] if len(args) == 1 else args)
    if not any(isinstance(x, (Value, Undefined)) for x in _parts(coord)):
        return layout(*args, **kwargs)
    if has_none(coord):
        raise _trace.error("a layout is sliced by compile-time coordinates; slice a Tensor instead")
    return swizzled(layout, offset_of(coord, layout.shape, layout.stride))


def _unswizzled(layout):
    return layout.layout if isinstance(layout, SwizzledLayout) else layout


def _again(layout, new):
    """A layout with the swizzle of another."""
    return SwizzledLayout(new, layout.swizzle) if isinstance(layout, SwizzledLayout) else new


class Tensor:
    """A buffer or array seen through a layout.

    ``t[i, j]`` is the element at a coordinate, ``t[i]`` the one with that index; ``t[None, j]`` is
    the part of the tensor that ``None`` keeps. Coordinates are numbers or traced values. ``load()``
    and ``store()`` move whole views, by the widest vectors that their offsets allow.

    ``layout`` may be a shape: then the leftmost coordinate is contiguous.
    """

    __array_ufunc__ = None
    _invar_instead = "index it, or load() it"

    def __init__(self, memory: Memory, layout: Any, offset: Index = 0):
        if isinstance(memory, RegisterLike):
            memory = memory.memory
        if not isinstance(memory, Memory):
            raise _trace.error(f"{describe(memory)} is not memory to see through a layout")
        if not isinstance(memory.element, Type):
            raise _trace.error(f"a tensor holds values, `{memory.name}` holds {memory.element}")
        if not isinstance(layout, (Layout, SwizzledLayout)):
            layout = Layout(layout)
        self._memory, self.layout, self.base, self.inner = memory, layout, plain(offset), 0

    @property
    def memory(self) -> Memory:
        """What it is a view of."""
        return self._memory

    @property
    def element(self) -> Type:
        """The type of an element."""
        return self.memory.element

    @property
    def name(self) -> str:
        """The name of its memory."""
        return self.memory.name

    def _laid_out(self):
        return self.layout

    def __repr__(self):
        return f"<tensor {self.name}: {self.element}, {self.layout}>"

    __hash__ = object.__hash__

    @property
    def shape(self):
        """The layout's shape."""
        return self._laid_out().shape

    @property
    def stride(self):
        """The layout's stride."""
        return self._laid_out().stride

    def size(self, mode: Any = None) -> int:
        """How many elements, of all modes or of those given."""
        return self._laid_out().size(mode)

    def __len__(self) -> int:
        return self.size()

    def __iter__(self):
        raise _trace.error(f"`{self.name}` is a tensor, which no loop goes through: write a loop over its indices")

    def view(self, layout, base, inner=0):
        """Another view of the same memory."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.layout, other.base, other.inner = layout, base, inner
        return other

    # -- elements --

    def offset(self, coord: Any) -> Index:
        """The index in memory of the element at a coordinate, where ``None`` keeps modes of the first in them."""
        layout = self._laid_out()
        inner = plus(self.inner, offset_of(coord, layout.shape, layout.stride))
        return plus(self.base, swizzled(layout, inner))

    def slice(self, coord: Any) -> Tensor:
        """The part of the tensor that ``None`` keeps."""
        layout = self._laid_out()
        bare = _unswizzled(layout)
        kept, _ = _layout.slice_and_offset(_zeroed(coord), bare)
        start = offset_of(coord, bare.shape, bare.stride)
        if isinstance(layout, SwizzledLayout):
            return self.view(_again(layout, kept), self.base, plus(self.inner, start))
        return self.view(kept, plus(self.base, start))

    def __getitem__(self, coord: Any) -> Any:
        if has_none(coord):
            return self.slice(coord)
        return self.memory[self.offset(coord)]

    def __setitem__(self, coord: Any, value: Operand) -> None:
        if has_none(coord):
            self.slice(coord).store(value)
        else:
            self.memory[self.offset(coord)] = value

    # -- whole views --

    def _here(self):
        """Refuses to be used outside a kernel."""
        _trace.current()

    def _runs(self):
        """The view as runs of up to four consecutive elements: (index, count)."""
        layout = self._laid_out()
        if layout.size() > MAX_ELEMENTS:
            raise _trace.error(
                f"a view of `{self.name}` has {layout.size()} elements; at most {MAX_ELEMENTS} are "
                "loaded or stored at once: slice it, as by thread"
            )
        bare = _unswizzled(layout).offsets()
        if isinstance(layout, SwizzledLayout) and not isinstance(self.inner, int):
            return [(plus(self.base, swizzled(layout, plus(self.inner, o))), 1) for o in bare]
        runs = []
        for o in bare:
            o = swizzled(layout, plus(self.inner, o))
            if runs and runs[-1][0] + runs[-1][1] == o and runs[-1][1] < 4:
                runs[-1] = runs[-1][0], runs[-1][1] + 1
            else:
                runs.append((o, 1))
        return [(plus(self.base, o), count) for o, count in runs]

    def _accesses(self, mask):
        """The accesses of the view: index, count and the condition of each. A run whose elements have several
        conditions, or are not scalars, is one element each."""
        at = 0
        for index, count in self._runs():
            mine, at = mask[at : at + count], at + count
            if count > 1 and self.element.kind == "scalar" and all(c is mine[0] for c in mine):
                yield index, count, mine[0]
            else:
                yield from ((plus(index, i), 1, condition) for i, condition in enumerate(mine))

    def load(self, mask: Any = True, otherwise: Operand = 0) -> Any:
        """Every element of the view, in order: one value, a vector of 2 to 4 neighbours, or
        ``Elements``.

        Where ``mask`` does not hold there is no access, and ``otherwise`` instead. A mask is a
        ``bool`` for all, ``Elements`` of them, or a function that gives one for the number of an
        element, counted from 0 in the view's order.
        """
        self._here()
        return self._load_view(masks(mask, self.size()), otherwise)

    def _load_view(self, mask, otherwise=0):
        memory, parts, accesses = self.memory, [], list(self._accesses(mask))
        what = f"what a masked load of `{memory.name}` gives instead"
        for index, count, condition in accesses:
            place = memory.run(index, count)
            instead = lambda: to_type(otherwise, place.element, what)
            part = _control.if_exp(condition, place.get, instead)
            if len(accesses) == 1:
                return part
            parts.extend(part if count > 1 else [part])
        return Elements(parts)

    def store(self, value: Any, mask: Any = True) -> None:
        """Stores every element of the view; one value goes to all of them.

        Where ``mask`` does not hold there is no access; a mask is as for ``load``.
        """
        self._here()
        self._store_view(value, masks(mask, self.size()))

    def _store_view(self, value, mask):
        memory = self.memory
        value = plain(value)
        if not (isinstance(value, (Value, Elements)) or is_number(value)):
            advice = ": load() it" if isinstance(value, Tensor) else ""
            raise _trace.error(f"{describe(value)} where a value for `{memory.name}` is needed{advice}")
        element, what = memory.element, f"a store to `{memory.name}`"
        if element.kind != "scalar":
            parts = list(value) if isinstance(value, Elements) else [value] * self.size()
        else:
            parts = spread(value, self.size())

        parts = iter(parts)
        for index, count, condition in self._accesses(mask):
            mine = [to_type(next(parts), element, what) for _ in range(count)]
            value = convert(type_named(f"{element.name}x{count}"), mine) if count > 1 else mine[0]
            _control.if_stmt(condition, lambda: memory.run(index, count).put(value))

    # -- layout algebra --

    def zipped_divide(self, tiler: Any) -> Tensor:
        """The tensor as ((tile), (rest)): mode 0 is one tile, mode 1 counts tiles."""
        divided = _layout.zipped_divide(self._laid_out(), tiler)
        return self.view(divided, self.base, self.inner)

    def composition(self, owners: Layout, tiler: Any = None) -> Tensor:
        """The tensor in other coordinates: ``t.composition(owners)[thread, None]`` is a thread's
        part, where ``owners`` maps (thread, value) to the index in a tile of shape ``tiler``."""
        layout = self._laid_out()
        if isinstance(tiler, tuple) and layout.rank() == 1 and len(tiler) > 1:
            # What `t[None, block]` leaves of a divided tensor: the tile as one mode.
            layout = _again(layout, _unswizzled(layout)[0])
        if tiler is not None and tiler != layout.size():
            layout = _layout.composition(layout, tiler)
        return self.view(_layout.composition(layout, owners), self.base, self.inner)


def not_a_value(advice):
    """What makes an operator of its name, where something with elements is not a value."""
    return lambda name: refuses(f"`{{0.name}}` is a tensor, not a value: {advice}")


#: What values do and tensors do not.
VALUE_OPERATORS = [*METHODS, "__bool__"]
give(Tensor, VALUE_OPERATORS, not_a_value("index it, or load() it"))


class RegisterLike:
    """What has a ``memory`` that a tensor can be a view of."""
