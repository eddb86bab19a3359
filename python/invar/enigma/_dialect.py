"""How types meet in the Enigma DSL: the left operand's type wins, integer literals are ``uint``."""

from __future__ import annotations

from .. import _ops, _trace, _values
from ._errors import EnigmaKernelError, EnigmaOutsideError


class Dialect(_values.Dialect):
    """The rules, and what a trace remembers beside."""

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
        return traced(x)

    @staticmethod
    def attribute(value, name):
        if name == "dtype":
            from .typing import dtype_of

            return dtype_of(value.type)
        return f"_v{value.id}" if name == "name" else None


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
