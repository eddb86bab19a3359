"""What kernels of the Enigma DSL hold: tensors, values of several elements, register tensors."""

from __future__ import annotations

import math

from .. import _control, _ops, _trace, _values
from .. import layout as _layout
from .._types import Type
from .._values import Memory, Value, constant, is_number
from . import typing as _typing
from ._dialect import current, traced
from .core import Layout, SwizzledLayout

IRValue = Value
_SPACES = ("device", "constant", "threadgroup", "thread")


def value(x):
    """An operand as a traced value or a Python number."""
    x = traced(x)
    if isinstance(x, (Value, Elements)) or is_number(x):
        return x
    raise _trace.error(f"{_values.describe(x)} where a value is needed")


_operand = value


def to(x, ty):
    """An operand converted to a type."""
    return _values.to_type(traced(x), ty, "a conversion")


def uint(x):
    return to(x, _values.U32)


class Elements:
    """A value of several elements: operators and functions go element by element, and a scalar
    stands beside each."""

    __array_ufunc__ = None

    def __init__(self, parts):
        self.parts = list(parts)

    def __len__(self):
        return len(self.parts)

    def __getitem__(self, index):
        return self.parts[index]

    def __iter__(self):
        return iter(self.parts)

    def __repr__(self):
        return f"<{len(self.parts)} traced elements>"

    __hash__ = object.__hash__


def elementwise(function, *args):
    """Applies a function of values to each element."""
    args = [traced(x) for x in args]
    counts = {len(x) for x in args if isinstance(x, Elements)}
    if not counts:
        return function(*args)
    if len(counts) > 1:
        raise _trace.error(f"values of {' and '.join(map(str, sorted(counts)))} elements do not meet")
    (count,) = counts
    rows = [spread(x, count) for x in args]
    return Elements(function(*row) for row in zip(*rows))


def spread(x, count):
    """An operand as so many elements."""
    if isinstance(x, Elements):
        return x.parts
    if isinstance(x, Value) and x.type.kind == "vector":
        if len(x) != count:
            raise _trace.error(f"values of {len(x)} and {count} elements do not meet")
        return [x[i] for i in range(count)]
    return [x] * count


def _operators():
    import operator

    def method(function, swapped):
        if swapped:
            return lambda self, other: elementwise(lambda a, b: function(b, a), self, other)
        return lambda self, *other: elementwise(function, self, *other)

    pairs = "add sub mul truediv floordiv mod pow and_ or_ xor lshift rshift".split()
    for name in pairs:
        short = name.rstrip("_")
        setattr(Elements, f"__{short}__", method(getattr(operator, name), False))
        setattr(Elements, f"__r{short}__", method(getattr(operator, name), True))
    for name in "eq ne lt le gt ge neg pos abs invert".split():
        setattr(Elements, f"__{name}__", method(getattr(operator, name), False))


_operators()


# ---- offsets with traced coordinates ----


def _flat(shape, stride):
    if isinstance(shape, int):
        return [(shape, stride)]
    return [leaf for s, d in zip(shape, stride) for leaf in _flat(s, d)]


def offset_of(coord, shape, stride):
    """The offset of a coordinate of numbers and traced values; a number where all are."""
    coord = traced(coord)
    if isinstance(coord, (tuple, list)):
        if isinstance(shape, int) or len(coord) != len(shape):
            raise _trace.error(f"the coordinate {_shown(coord)} does not fit the shape {shape}")
        total = 0
        for c, s, d in zip(coord, shape, stride):
            total = plus(total, offset_of(c, s, d))
        return total
    if isinstance(coord, int):
        return _layout.crd2idx(coord, shape, stride)
    coord = _integer(coord)
    leaves = _flat(shape, stride)
    total, before = 0, 1
    for i, (size, step) in enumerate(leaves):
        part = coord if before == 1 else coord // before
        if i + 1 < len(leaves):
            part = part % size
        before *= size
        if step:
            total = plus(total, part if step == 1 else part * step)
    return total


def _integer(x):
    x = traced(x)
    if isinstance(x, Value) and x.type.kind == "scalar" and x.type.is_integer:
        return x
    raise _trace.error(f"{_values.describe(x)} is no coordinate: it is made of integers and None")


def _shown(coord):
    if isinstance(coord, (tuple, list)):
        return "(" + ",".join(_shown(c) for c in coord) + ")"
    return "_" if coord is None else str(coord) if isinstance(coord, int) else "?"


def plus(a, b):
    """A sum of offsets, without adding zeros."""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if isinstance(a, int):
        a, b = b, a
    return a if isinstance(b, int) and b == 0 else a + b


def _has_none(coord):
    if isinstance(coord, (tuple, list)):
        return any(_has_none(c) for c in coord)
    return coord is None


def _zeroed(coord):
    """The coordinate with every number and traced value as 0: what it keeps is the same."""
    if isinstance(coord, (tuple, list)):
        return tuple(_zeroed(c) for c in coord)
    return None if coord is None else 0


def _kept_zero(coord, shape):
    """The coordinate with 0 where it keeps a mode: what it adds to the offset is the same."""
    if coord is None:
        return 0
    if isinstance(coord, (tuple, list)):
        if isinstance(shape, int) or len(coord) != len(shape):
            raise _trace.error(f"the coordinate {_shown(coord)} does not fit the shape {shape}")
        return tuple(_kept_zero(c, s) for c, s in zip(coord, shape))
    return coord


class Tensor:
    """A view of memory: ``tensor[i]`` is an element by its flat index, ``tensor[i, j]`` one by its
    coordinate, ``tensor[None, j]`` a part of the view.

    In a kernel ``Tensor(name, buffer_index, dtype, layout, base_offset=...)`` is a view of the
    parameter of that index; outside one it says what a ``@jit`` function is compiled for.
    """

    __array_ufunc__ = None

    def __init__(self, name, buffer_index, metal_dtype, layout=None, base_offset=0,
                 address_space="device", shape=None):  # fmt: skip
        ty = _typing.type_of(metal_dtype)
        if address_space not in _SPACES:
            raise _typing.Error(f"there is no address space {address_space!r}")
        self.name, self.buffer_index = name, buffer_index
        self.metal_dtype, self._type = _typing.metal_name(ty), ty
        if layout is None and shape is not None:
            layout = Layout(shape)
        self.layout, self.base_offset, self.address_space = layout, base_offset, address_space
        #: Added to every index, flat ones too: where a stage of a pipeline begins.
        self.origin = 0
        #: Added to a coordinate's offset before a swizzle.
        self.inner_offset = 0
        self._memory = None

    @classmethod
    def on(cls, memory, index=-1, layout=None, origin=0):
        """A tensor on memory of the kernel being traced."""
        tensor = cls(memory.name, index, memory.element, layout, 0, memory.space)
        tensor._memory, tensor.origin = memory, origin
        return tensor

    def view(self, layout, base_offset, inner_offset=0):
        """Another view of the same memory."""
        tensor = Tensor(
            self.name, self.buffer_index, self._type, layout, base_offset, self.address_space
        )
        tensor._memory, tensor.origin, tensor.inner_offset = self._memory, self.origin, inner_offset
        return tensor

    def __repr__(self):
        return f"<tensor {self.name}: {self.metal_dtype}, {self.layout or 'no layout'}>"

    __hash__ = object.__hash__

    @property
    def memory(self):
        """The memory of the kernel that it is a view of."""
        if self._memory is None:
            parameters = current().parameters
            if not isinstance(self.buffer_index, int) or not 0 <= self.buffer_index < len(parameters):
                raise _trace.error(
                    f"tensor `{self.name}` is parameter {self.buffer_index}, the kernel has "
                    f"{len(parameters)}"
                )
            found = parameters[self.buffer_index]
            if not isinstance(found, Tensor):
                raise _trace.error(
                    f"tensor `{self.name}` is parameter {self.buffer_index}, which is no buffer"
                )
            if found._type != self._type:
                raise _trace.error(
                    f"tensor `{self.name}` is of {self.metal_dtype}, parameter "
                    f"{self.buffer_index} of {found.metal_dtype}"
                )
            self._memory = found.memory
        elif self._memory.trace is not _trace.current():
            raise _trace.error(f"tensor `{self.name}` belongs to another kernel")
        return self._memory

    # -- what a layout says --

    def _laid_out(self, what):
        if self.layout is None:
            raise _trace.error(f"tensor `{self.name}` has no layout, so it has no {what}")
        return self.layout

    @property
    def shape(self):
        return self._laid_out("shape").shape

    @property
    def stride(self):
        return self._laid_out("stride").stride

    @property
    def element_type(self):
        """Metal's name of what an element is."""
        return self.metal_dtype

    def size(self, mode=None):
        """How many elements, of all modes or of those given."""
        return self._laid_out("size").size(mode)

    # -- elements --

    def _width(self):
        dialect = current()
        device = self.address_space in ("device", "constant")
        return dialect.vec_width if device and self._type.kind == "scalar" else 0

    def _index(self, index):
        index = traced(index)
        if isinstance(index, Tensor):
            raise _trace.error(f"tensor `{index.name}` is no index: load an element of it")
        return plus(self.origin, index) if not isinstance(self.origin, int) or self.origin else index

    def _load(self, index):
        width = self._width()
        if width:
            return self.memory.load(self._index(index), width, group=True)
        return self.memory[self._index(index)]

    def _store(self, index, x):
        x = value(x)
        if isinstance(x, Elements):
            raise _trace.error(f"an element of `{self.name}` takes one value, not {len(x)}")
        width = self._width()
        if width:
            x = to(x, _typing.type_of(f"{self._type.name}x{width}"))
            self.memory.store(self._index(index), x, group=True)
        else:
            self.memory[self._index(index)] = to(x, self._type)

    def offset(self, coord):
        """The index of the element at a coordinate of the layout."""
        layout = self._laid_out("coordinates")
        inner = plus(self.inner_offset, offset_of(coord, layout.shape, layout.stride))
        return plus(self.base_offset, _swizzled(layout, inner))

    def __getitem__(self, coord):
        if isinstance(coord, (tuple, list)) or coord is None:
            coord = tuple(coord) if coord is not None else None
            if _has_none(coord):
                return self._slice(coord)
            return self._load(self.offset(coord))
        return self._load(coord)

    def __setitem__(self, coord, value):
        if isinstance(coord, (tuple, list)) or coord is None:
            coord = tuple(coord) if coord is not None else None
            if _has_none(coord):
                self._slice(coord).store(value)
            else:
                self._store(self.offset(coord), value)
        else:
            self._store(coord, value)

    def _slice(self, coord):
        layout = self._laid_out("slices")
        plain = layout.layout if isinstance(layout, SwizzledLayout) else layout
        kept, _ = _layout.slice_and_offset(_zeroed(coord), plain)
        start = offset_of(_kept_zero(coord, plain.shape), plain.shape, plain.stride)
        if isinstance(layout, SwizzledLayout):
            kept = SwizzledLayout(kept, layout.swizzle)
            return self.view(kept, self.base_offset, plus(self.inner_offset, start))
        return self.view(kept, plus(self.base_offset, start))

    # -- whole views --

    def _offsets(self):
        layout = self._laid_out("size")
        if layout.size() > 4096:
            raise _trace.error(
                f"tensor `{self.name}` has {layout.size()} elements: load and store at most 4096 at "
                "once, as by a thread's slice"
            )
        if isinstance(layout, SwizzledLayout) and not isinstance(self.inner_offset, int):
            plain = layout.layout.offsets()
            return [plus(self.base_offset, _swizzled(layout, plus(self.inner_offset, o))) for o in plain]
        if isinstance(layout, SwizzledLayout):
            plain = layout.layout.offsets()
            found = [layout.swizzle(self.inner_offset + o) for o in plain]
        else:
            found = layout.offsets()
        return found

    def _runs(self):
        """The view as runs of up to four consecutive elements: (index, count)."""
        found = self._offsets()
        if any(not isinstance(o, int) for o in found):
            return [(o, 1) for o in found]
        runs = []
        for o in found:
            if runs and runs[-1][0] + runs[-1][1] == o and runs[-1][1] < 4:
                runs[-1] = runs[-1][0], runs[-1][1] + 1
            else:
                runs.append((o, 1))
        return [(plus(self.base_offset, o), count) for o, count in runs]

    def load(self):
        """Every element of the view: one value, a vector of 2 to 4 neighbours, or elements."""
        memory, parts = self.memory, []
        runs = self._runs()
        for index, count in runs:
            index = self._index(index)
            if count == 1 or self._type.kind != "scalar":
                parts.extend(memory[plus(index, i)] for i in range(count))
                continue
            vector = memory.load(index, count)
            if len(runs) == 1:
                return vector
            parts.extend(vector[i] for i in range(count))
        return parts[0] if len(parts) == 1 else Elements(parts)

    def store(self, value):
        """Stores every element of the view; one value goes to all of them."""
        memory, runs = self.memory, self._runs()
        parts = spread(_operand(value), sum(n for _, n in runs))
        at = 0
        for index, n in runs:
            index = self._index(index)
            mine = [to(part, self._type) for part in parts[at : at + n]]
            at += n
            if n == 1 or self._type.kind != "scalar":
                for i, part in enumerate(mine):
                    memory[plus(index, i)] = part
            else:
                ty = _typing.type_of(f"{self._type.name}x{n}")
                memory.store(index, _values.convert(ty, mine))

    # -- atomics --

    def _atomic(self, name, index, *args, order="relaxed"):
        function = getattr(_ops, f"atomic_{name}")
        args = [to(x, self._type) for x in args]
        return function(self.memory, self._index(index), *args, order=_order(order))

    def atomic_load(self, index, order="relaxed"):
        return self._atomic("load", index, order=order)

    def atomic_store(self, index, value, order="relaxed"):
        self._atomic("store", index, value, order=order)

    def atomic_exchange(self, index, value, order="relaxed"):
        return self._atomic("exchange", index, value, order=order)

    def atomic_compare_exchange_weak(self, index, expected, desired, success_order="relaxed",
                                     failure_order="relaxed"):  # fmt: skip
        """Replaces the element by ``desired`` if it equals ``expected``; gives whether it did."""
        order = _stronger(_order(success_order), _order(failure_order))
        return self._atomic("compare_exchange", index, expected, desired, order=order)[1]


def _fetch(name):
    def method(self, index, value, order="relaxed"):
        return self._atomic(name, index, value, order=order)

    method.__name__ = method.__qualname__ = f"atomic_fetch_{name}"
    method.__doc__ = f"The atomic `{name}` on an element; gives the value just before."
    return method


for _name in "add sub min max and or xor".split():
    setattr(Tensor, f"atomic_fetch_{_name}", _fetch(_name))

_ORDERS = ("relaxed", "acquire", "release", "acq_rel", "seq_cst")


def _order(order):
    name = str(order).removeprefix("memory_order_")
    if name not in _ORDERS:
        raise _trace.error(f"there is no memory order {order!r}: it is one of {', '.join(_ORDERS)}")
    return name


def _stronger(success, failure):
    if failure in ("release", "acq_rel"):
        raise _trace.error(f"a compare-exchange that fails stores nothing, so it cannot {failure}")
    if success == failure or failure == "relaxed":
        return success
    if "seq_cst" in (success, failure):
        return "seq_cst"
    return {"relaxed": "acquire", "release": "acq_rel"}.get(success, success)


def _swizzled(layout, offset):
    """An offset through a layout's swizzle, if it has one."""
    if not isinstance(layout, SwizzledLayout):
        return offset
    swizzle = layout.swizzle
    if isinstance(offset, int):
        return swizzle(offset)
    if swizzle.bits == 0:
        return offset
    # The bits at `base` are changed by those `shift` higher, or those higher by the lower ones.
    field = ((1 << swizzle.bits) - 1) << swizzle.base
    if swizzle.shift >= 0:
        return offset ^ ((offset & (field << swizzle.shift)) >> swizzle.shift)
    return offset ^ ((offset & field) << -swizzle.shift)


# ---- register tensors, pipelines ----


class RegisterTensor:
    """An array of the thread's own, which lives through loops and branches."""

    __array_ufunc__ = None

    def __init__(self, shape, dtype="float", fill=0):
        self.shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        for n in self.shape:
            if type(n) is not int or n < 1:
                raise _trace.error(f"a register tensor's shape is made of numbers of at least 1, not {n!r}")
        self._type = _typing.type_of(dtype)
        self.metal_dtype = _typing.metal_name(self._type)
        self.memory = _ops.thread_alloc(self._type, math.prod(self.shape))
        self.name = self.memory.name
        fill = value(fill)
        if not (is_number(fill) and fill == 0 and math.copysign(1, fill) > 0):
            fill = to(fill, self._type)
            for i in range(self.memory.length):
                self.memory[i] = fill

    def size(self, mode=None):
        if mode is None:
            return math.prod(self.shape)
        modes = [mode] if isinstance(mode, int) else mode
        return math.prod(self.shape[m] for m in modes)

    def __len__(self):
        return self.shape[0]

    def __repr__(self):
        return f"<register tensor of {self.metal_dtype}, {self.shape}>"

    __hash__ = object.__hash__

    def _index(self, key):
        if not isinstance(key, (tuple, list)):
            return traced(key)
        if len(key) != len(self.shape):
            raise _trace.error(f"a register tensor of shape {self.shape} has no element {_shown(key)}")
        total = 0
        for part, n in zip(key, self.shape):
            part = traced(part)
            total = plus(total * n if not isinstance(total, int) or total else 0, part)
        return total

    def __getitem__(self, key):
        return self.memory[self._index(key)]

    def __setitem__(self, key, value):
        self.memory[self._index(key)] = to(value, self._type)

    def load(self):
        """Every element, in order."""
        parts = [self.memory[i] for i in range(self.memory.length)]
        return parts[0] if len(parts) == 1 else Elements(parts)

    def store(self, x):
        """Stores every element; one value goes to all of them."""
        for i, part in enumerate(spread(value(x), self.memory.length)):
            self.memory[i] = to(part, self._type)


class Pipeline:
    """Stages of threadgroup memory in one allocation, and a phase that says which is in front.

    ``front()`` is the stage to read, ``back()`` the one to fill, ``stage(k)`` the one ``k`` places
    behind the front; ``advance()`` (``swap``, ``rotate``) brings the next to the front.
    """

    def __init__(self, dtype, size, stages=2):
        for what, n in (("size", size), ("number of stages", stages)):
            if type(n) is not int or n < 1:
                raise _trace.error(f"a pipeline's {what} is a number of at least 1, not {n!r}")
        self.dtype, self.size, self.stages = dtype, size, stages
        self.memory = _ops.threadgroup_alloc(_typing.type_of(dtype), size * stages)
        # An array of one, so that the phase is carried through every kind of loop.
        self.phase = _ops.thread_alloc(_values.U32, 1)

    def stage(self, k):
        """The stage ``k`` places behind the front, as a tensor."""
        k = traced(k)
        if isinstance(k, int):
            k %= self.stages
        place = self.phase[0] if isinstance(k, int) and k == 0 else (self.phase[0] + k) % self.stages
        return Tensor.on(self.memory, layout=Layout(self.size), origin=place * self.size)

    def front(self):
        """The stage to read."""
        return self.stage(0)

    def back(self):
        """The stage to fill: the last behind the front."""
        return self.stage(self.stages - 1)

    def advance(self):
        """Brings the next stage to the front."""
        self.phase[0] = (self.phase[0] + 1) % self.stages

    swap = rotate = advance


def register_tensor(shape, dtype="float", fill=0):
    """An array of the thread's own, which lives through loops and branches."""
    return RegisterTensor(shape, dtype, fill)


def pipeline(dtype, size, stages=2):
    """Stages of threadgroup memory in one allocation."""
    return Pipeline(dtype, size, stages)
