"""What kernels of the Enigma DSL hold: tensors, register tensors, pipelines."""

from __future__ import annotations

import math

from .. import _ops, _trace, _values, _views
from .._operators import give
from .._values import Elements, Value, is_number, spread
from .._views import has_none, plus, shown
from . import typing as _typing
from ._dialect import current, traced
from ._errors import error
from .core import Layout, SwizzledLayout, size, zipped_divide

IRValue = Value
_SPACES = ("device", "constant", "threadgroup", "thread")


def value(x):
    """An operand as a traced value or a Python number."""
    x = traced(x)
    if isinstance(x, (Value, Elements)) or is_number(x):
        current()
        return x
    if isinstance(x, (Tensor, RegisterTensor)):
        raise error(f"`{x.name}` is a tensor, where a value is needed: index it, or load() it")
    raise error(f"{_values.describe(x)} where a value is needed")


_operand = value


def to(x, ty):
    """An operand converted to a type."""
    current()
    return _values.to_type(traced(x), ty, "a conversion")


def uint(x):
    return to(x, _values.U32)


class Tensor(_views.Tensor):
    """A view of memory: ``tensor[i]`` is an element by its flat index, ``tensor[i, j]`` one by its
    coordinate, ``tensor[None, j]`` a part of the view.

    In a kernel ``Tensor(name, buffer_index, dtype, layout, base_offset=...)`` is a view of the
    parameter of that index; outside one it says what a ``@jit`` function is compiled for.
    """

    def __init__(self, name, buffer_index, metal_dtype, layout=None, base_offset=0,
                 address_space="device", shape=None):  # fmt: skip
        ty = _typing.type_of(metal_dtype)
        if address_space not in _SPACES:
            raise error(f"there is no address space {address_space!r}")
        self._name, self.buffer_index = name, buffer_index
        self.metal_dtype, self._type = _typing.metal_name(ty), ty
        if layout is None:
            layout = shape
        if not (layout is None or isinstance(layout, (Layout, SwizzledLayout))):
            layout = Layout(layout)
        self.layout, self.base, self.inner = layout, traced(base_offset), 0
        self.address_space = address_space
        #: The layout that an array given to compile() has: its author chose none.
        self.array_layout = None
        self._memory = None

    @classmethod
    def on(cls, memory, index=-1, layout=None):
        """A tensor on memory of the kernel being traced."""
        tensor = cls(memory.name, index, memory.element, layout, 0, memory.space)
        tensor._memory = memory
        return tensor

    def __repr__(self):
        return f"<tensor {self.name}: {self.metal_dtype}, {self.layout or 'no layout'}>"

    __hash__ = object.__hash__

    @property
    def name(self):
        return self._name

    @property
    def base_offset(self):
        """Added to the offsets that the layout gives."""
        return self.base

    @property
    def element_type(self):
        """Metal's name of what an element is."""
        return self.metal_dtype

    @property
    def memory(self):
        """The memory of the kernel that it is a view of."""
        if self._memory is None and self.address_space in ("threadgroup", "thread"):
            return self._array()
        if self._memory is None:
            return self._parameter()
        if self._memory.trace is not _trace.current():
            raise error(f"tensor `{self.name}` belongs to another kernel")
        return self._memory

    def _parameter(self):
        """The buffer that the kernel's parameter of this index is."""
        parameters = current().parameters
        if not isinstance(self.buffer_index, int) or not 0 <= self.buffer_index < len(parameters):
            raise error(
                f"tensor `{self.name}` is parameter {self.buffer_index!r}, the kernel has "
                f"{len(parameters)}, numbered from 0"
            )
        found = parameters[self.buffer_index]
        if not isinstance(found, Tensor):
            raise error(
                f"tensor `{self.name}` is parameter {self.buffer_index}, which is not a buffer"
            )
        if found._type != self._type:
            raise error(
                f"tensor `{self.name}` is of {self.metal_dtype}, parameter "
                f"{self.buffer_index} of {found.metal_dtype}"
            )
        return found.memory

    def _array(self):
        """The kernel's own array of this name; of several, the one of this index, else the last."""
        named = [m for m in _trace.current().arrays if (m.name, m.space) == (self.name, self.address_space)]
        parameters = current().parameters
        if not named and type(self.buffer_index) is int and 0 <= self.buffer_index < len(parameters):
            # A parameter's name means the parameter, wherever the tensor says that it is.
            if getattr(parameters[self.buffer_index], "name", None) == self.name:
                return self._parameter()
        if not named:
            raise error(
                f"there is no {self.address_space} array `{self.name}`: give the name and the "
                "buffer_index of what threadgroup_alloc gives"
            )
        memory = next((m for m in named if m.handle[1] == self.buffer_index), named[-1])
        if memory.element != self._type:
            raise error(
                f"tensor `{self.name}` is of {self.metal_dtype}, the array of that name of "
                f"{_typing.metal_name(memory.element)}"
            )
        return memory

    def _laid_out(self):
        if self.layout is None:
            raise error(
                f"tensor `{self.name}` has no layout, so only flat indices: make a Tensor with one"
            )
        return self.layout

    def size(self, mode=None):
        """How many elements: of all modes, of one, or of what a path of modes leads to. Without a
        layout those of an array of the kernel's own."""
        if self.layout is None and self.address_space in ("threadgroup", "thread"):
            return size(self.memory.length, mode)
        return size(self._laid_out(), mode)

    # -- elements --

    def _here(self):
        current()
        super()._here()

    def _width(self):
        """Elements that an index stands for, or 0 for one."""
        device = self.address_space in ("device", "constant")
        return current().vec_width if device and self._type.kind == "scalar" else 0

    def _load(self, index):
        if self._width():
            return self.memory.load(traced(index), self._width(), group=True)
        return self.memory[traced(index)]

    def _store(self, index, x):
        x = value(x)
        if isinstance(x, Elements):
            raise error(f"an element of `{self.name}` takes one value, not {len(x)}")
        if self._width():
            x = to(x, _typing.type_of(f"{self._type.name}x{self._width()}"))
            self.memory.store(traced(index), x, group=True)
        else:
            self.memory[traced(index)] = to(x, self._type)

    def __getitem__(self, coord):
        if isinstance(coord, list):
            coord = tuple(coord)
        if has_none(coord):
            return self.slice(coord)
        return self._load(self._place(coord))

    def __setitem__(self, coord, value):
        if isinstance(coord, list):
            coord = tuple(coord)
        if has_none(coord):
            self.slice(coord).store(value)
        else:
            self._store(self._place(coord), value)

    def _place(self, coord):
        """The index in memory: a flat one as it is, a coordinate's by the layout."""
        if not isinstance(coord, tuple):
            return coord
        coord, shape, _ = self._modes(coord)
        return self.offset(coord if isinstance(shape, tuple) else coord[0])

    def _modes(self, coord):
        """A coordinate with 0 for the modes that it does not name, and the layout's shape and stride."""
        layout = self._laid_out()
        shape, stride = layout.shape, layout.stride
        if not isinstance(shape, tuple):
            if len(coord) > 1:
                raise error(f"the coordinate {shown(coord)} does not fit the shape {shape}")
            return coord, shape, stride
        return _filled(coord, shape), shape, stride

    def slice(self, coord):
        """The part of the tensor that ``None`` keeps. Modes that the coordinate does not name are at
        0, and a mode that is left alone has no parentheses."""
        coord, shape, stride = self._modes(coord if isinstance(coord, tuple) else (coord,))
        if not isinstance(shape, tuple):
            shape, stride = (shape,), (stride,)
        ((kept_shape, kept_stride),) = _kept(coord, shape, stride)
        start = _views.offset_of(coord, shape, stride)
        kept = Layout(kept_shape, kept_stride)
        if isinstance(self.layout, SwizzledLayout):
            kept = SwizzledLayout(kept, self.layout.swizzle)
            return self.view(kept, self.base, plus(self.inner, start))
        return self.view(kept, plus(self.base, start))

    def zipped_divide(self, tiler):
        """The tensor as (tile, rest): mode 0 is one tile, mode 1 counts tiles."""
        return self.view(zipped_divide(self._laid_out(), tiler), self.base, self.inner)

    def nth(self, i):
        """The index in memory of the view's element number ``i``, as load() and store() walk it."""
        return plus(self.base, i) if self.chosen_layout() is None else self.offset(i)

    def chosen_layout(self):
        """The layout, unless it is only the shape of an array that was given to compile()."""
        return None if self.layout is self.array_layout else self.layout

    def offset_of_first(self):
        """The index in memory where the view begins."""
        return plus(self.base, _views.swizzled(self.layout, self.inner) if self.layout else 0)

    # -- atomics --

    def _atomic(self, name, index, *args, order="relaxed"):
        function = getattr(_ops, f"atomic_{name}")
        args = [to(x, self._type) for x in args]
        return function(self.memory, traced(index), *args, order=_order(order))

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
        raise error(f"there is no memory order {order!r}: it is one of {', '.join(_ORDERS)}")
    return name


def _stronger(success, failure):
    if failure in ("release", "acq_rel"):
        raise error(f"a compare-exchange that fails stores nothing, so it cannot {failure}")
    if success == failure or failure == "relaxed":
        return success
    if "seq_cst" in (success, failure):
        return "seq_cst"
    return {"relaxed": "acquire", "release": "acq_rel"}.get(success, success)


# ---- coordinates ----


def _filled(coord, shape):
    """A coordinate with 0 for the modes that it does not name."""
    if not isinstance(coord, (tuple, list)):
        return coord
    if not isinstance(shape, tuple) or len(coord) > len(shape):
        raise error(f"the coordinate {shown(coord)} does not fit the shape {shape}")
    named = [_filled(c, s) for c, s in zip(coord, shape)]
    return (*named, *[0] * (len(shape) - len(named)))


def _kept(coord, shape, stride):
    """What ``None`` keeps, as a list of at most one shape and stride."""
    if coord is None:
        return [(shape, stride)]
    if not isinstance(coord, tuple):
        return []
    parts = [kept for part in zip(coord, shape, stride) for kept in _kept(*part)]
    return parts if len(parts) < 2 else [tuple(zip(*parts))]


class IdentityTensor(Tensor):
    """The tensor whose element at a coordinate is that coordinate; an index gives its coordinate."""

    def __init__(self, layout):
        super().__init__("__identity__", -1, "uint", layout)

    def __call__(self, *coord):
        return self[coord[0] if len(coord) == 1 else coord]

    def __getitem__(self, coord):
        if has_none(coord):
            part = self.slice(coord)
            part.__class__ = Tensor
            return part
        if isinstance(coord, int):
            return self.layout.coordinate(coord)
        self.layout.index(coord)
        return coord

    def __repr__(self):
        return f"make_identity_tensor({self.shape})"


def make_identity_tensor(shape):
    """The tensor whose element at a coordinate is that coordinate."""
    return IdentityTensor(Layout(shape))


# ---- register tensors, pipelines ----


class RegisterTensor:
    """An array of the thread's own, which lives through loops and branches."""

    __array_ufunc__ = None

    def __init__(self, shape, dtype="float", fill=0):
        current()
        self.shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        for n in self.shape:
            if type(n) is not int or n < 1:
                raise error(f"a register tensor's shape is made of numbers of at least 1, not {n!r}")
        self._type = _typing.type_of(dtype)
        #: Metal's name of what an element is.
        self.dtype = self.metal_dtype = _typing.metal_name(self._type)
        self.memory = _ops.thread_alloc(self._type, math.prod(self.shape))
        self.name = self.memory.name
        fill = _operand(fill)
        if not (is_number(fill) and fill == 0 and math.copysign(1, fill) > 0):
            fill = to(fill, self._type)
            for i in range(self.memory.length):
                self.memory[i] = fill

    def size(self, mode=None):
        """How many elements: of all modes, or of one."""
        return size(self.shape, mode)

    def __len__(self):
        return self.shape[0]

    def __repr__(self):
        return f"<register tensor of {self.metal_dtype}, {self.shape}>"

    __hash__ = object.__hash__

    def _index(self, key):
        if not isinstance(key, (tuple, list)):
            return self._part(key, self.memory.length)
        if len(key) != len(self.shape):
            raise error(f"a register tensor of shape {self.shape} has no element {shown(key)}")
        total = 0
        for part, n in zip(key, self.shape):
            row = total * n if isinstance(total, int) else _values.index_of("mul", total, n)
            total = plus(row, self._part(part, n))
        return total

    def _part(self, part, n):
        """One index of a dimension; one that is known now has to be in it."""
        part = traced(part)
        if isinstance(part, (Value, bool)) or not hasattr(part, "__index__"):
            return part
        part = int(part)
        if not 0 <= part < n:
            raise error(
                f"`{self.name}` of shape {self.shape} has no index {part} there: that dimension goes "
                f"from 0 to {n - 1}"
            )
        return part

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
        for i, part in enumerate(spread(_operand(x), self.memory.length)):
            self.memory[i] = to(part, self._type)


class Pipeline:
    """Stages of threadgroup memory in one allocation, and a phase that says which is in front.

    ``front()`` is the stage to read, ``back()`` the one to fill, ``stage(k)`` the one ``k`` places
    behind the front; ``advance()`` (``rotate``, of two stages also ``swap``) brings the next to the
    front.
    """

    def __init__(self, dtype, size, stages=2):
        for what, n, least in (("size", size, 1), ("number of stages", stages, 2)):
            if type(n) is not int or n < least:
                raise error(f"a pipeline's {what} is a number of at least {least}, not {n!r}")
        self.dtype, self.size, self.stages = dtype, size, stages
        self.memory = threadgroup_array(_typing.type_of(dtype), size * stages)
        # An array of one, so that the phase is carried through every kind of loop.
        self.phase = _ops.thread_alloc(_values.U32, 1)

    def stage(self, k):
        """The stage ``k`` places behind the front, as a tensor."""
        k = traced(k)
        if isinstance(k, int) and not 0 <= k < self.stages:
            raise error(f"a pipeline of {self.stages} stages has stages 0 to {self.stages - 1}, not {k}")
        place = self.phase[0] if isinstance(k, int) and k == 0 else (self.phase[0] + k) % self.stages
        return Tensor.on(self.memory.at(place * self.size), layout=Layout(self.size))

    def front(self):
        """The stage to read."""
        return self.stage(0)

    def back(self):
        """The stage to fill: the last behind the front."""
        return self.stage(self.stages - 1)

    def advance(self):
        """Brings the next stage to the front."""
        self.phase[0] = (self.phase[0] + 1) % self.stages

    rotate = advance

    def swap(self):
        """Changes front and back of a pipeline of two stages."""
        if self.stages != 2:
            raise error(
                f"swap() is for pipelines of two stages, this one has {self.stages}: write advance()"
            )
        self.advance()


def threadgroup_array(element, length):
    """Threadgroup memory of the kernel's own, counted for the limit of devices."""
    current()
    memory = _ops.threadgroup_alloc(element, length)
    current().threadgroup_bytes += memory.element.size_bytes * memory.length
    return memory


give(RegisterTensor, _views.VALUE_OPERATORS, _views.not_a_value("index it, or load() it"))


def register_tensor(shape, dtype="float", fill=0):
    """An array of the thread's own, which lives through loops and branches."""
    return RegisterTensor(shape, dtype, fill)


def pipeline(dtype, size, stages=2):
    """Stages of threadgroup memory in one allocation."""
    return Pipeline(dtype, size, stages)
