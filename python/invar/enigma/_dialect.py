"""How types meet in the Enigma DSL: the left operand's type wins, integer literals are ``uint``."""

from __future__ import annotations

from .. import _ops, _trace, _values
from ._errors import EnigmaKernelError, EnigmaOutsideError


class Dialect:
    """The rules, and what a trace remembers beside."""

    #: The type of an integer literal alone.
    integer = _values.U32

    def __init__(self, kernel_name, vec_width=0):
        self.kernel_name = kernel_name
        #: The ``KernelBuilder`` of the kernel, once one is asked for.
        self.builder = None
        #: Elements that an index stands for; 0 for one.
        self.vec_width = vec_width
        #: Whether a simdgroup function was used, so that simdgroups of 32 are required.
        self.simdgroup = False
        #: Bytes of the kernel's threadgroup arrays.
        self.threadgroup_bytes = 0
        #: Parameters by their index, as tensors.
        self.parameters = []
        #: Blocks that were made and not entered: what they are called, and where.
        self.waiting = {}

    def check_blocks(self):
        """Refuses a block that no `with` statement has entered."""
        for block, position in self.waiting.items():
            name = type(block).__name__
            raise EnigmaKernelError(
                f"{name} has no effect outside a `with` statement: write `with {name}(...):`", position
            )

    @staticmethod
    def traced(x):
        """What stands for a value, as that value."""
        return traced(x)

    @staticmethod
    def attribute(value, name):
        """What there is as a value's attribute, or ``None``."""
        if name == "dtype":
            from .typing import dtype_of

            return dtype_of(value.type)
        return f"_v{value.id}" if name == "name" else None

    @staticmethod
    def to_type(x, ty, what):
        """An operand as a value of a type, by a cast where its own is another."""
        x = traced(x)
        if not isinstance(x, _values.Value):
            if not _values.is_number(x) or ty.kind not in ("scalar", "vector"):
                raise _trace.error(f"{what}: {_values.describe(x)} where {ty} is needed")
            if isinstance(x, int) and x < 0 and ty.is_integer and not ty.is_signed:
                x += 1 << ty.bits
            return _values.convert(ty, (x,))
        _values.alive(x)
        if x.type == ty:
            return x
        plain = ("scalar", "vector")
        fits = x.type.kind == "scalar" or x.type.shape == ty.shape
        if x.type.kind not in plain or ty.kind not in plain or not fits:
            raise _trace.error(f"{what}: {x.type} where {ty} is needed")
        return _values.convert(ty, (x,))

    def common_type(self, operands, what):
        """The type of the first operand that has one, in the shape of the first vector."""
        operands = [traced(x) for x in operands]
        strong = [x for x in operands if _values.own_type(x) is not None]
        if not strong:
            kinds = {_values.weak_kind(x) for x in operands}
            return _values.F32 if "float" in kinds else self.integer if "int" in kinds else _values.BOOL
        first = _values.own_type(strong[0])
        if first.kind not in ("scalar", "vector"):
            return first
        # A float literal on the left is a float, whatever comes after it.
        scalar = first.scalar
        if _values.weak_kind(operands[0]) == "float" and not first.is_float:
            scalar = _values.F32
        shape = None
        for x in strong:
            own = _values.own_type(x)
            if own.kind != "vector":
                continue
            if shape is not None and shape.shape != own.shape:
                raise _trace.error(f"{what} of {shape} and {own}: the lengths differ")
            shape = shape or own
        return shape.with_scalar(scalar) if shape is not None else scalar


def current():
    """The dialect of the kernel being traced."""
    dialect = _trace.current().dialect if _trace.active() else None
    if dialect is None:
        raise EnigmaOutsideError("this works only inside a kernel with @enigma.kernel", _trace.here())
    return dialect


def traced(x):
    """What stands for a value (``thread_position_in_grid``, a scalar tensor), as that value."""
    value = getattr(type(x), "_invar_value", None)
    return value(x) if value is not None else x


class GridPosition:
    """``enigma.thread_position_in_grid``: in a kernel the x component of the thread's position."""

    __slots__ = ()

    def _invar_value(self):
        return self("x")

    def __repr__(self):
        return "enigma.thread_position_in_grid"

    def __call__(self, dim="x"):
        current()
        return _ops.GENERATED["thread_position_in_grid"](dim)

    def __getattr__(self, name):
        if name in ("x", "y", "z"):
            return self(name)
        raise AttributeError(f"thread_position_in_grid has x, y and z, not `{name}`")

    __array_ufunc__ = None
    __hash__ = object.__hash__


def forward(cls):
    """Gives a class that stands for a value that value's operators."""

    def operator(name):
        def method(self, *args):
            return getattr(traced(self), name)(*(traced(x) for x in args))

        method.__name__ = name
        return method

    for name in (
        "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow and rand "
        "or ror xor rxor lshift rlshift rshift rrshift eq ne lt le gt ge neg pos abs invert bool "
        "index int float"
    ).split():
        setattr(cls, f"__{name}__", operator(f"__{name}__"))
    return cls


forward(GridPosition)
