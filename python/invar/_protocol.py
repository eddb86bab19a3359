"""Operators, subscripts and attributes: what Python makes a call of the author's method for.

Such a method is called as the kernel's own code calls functions, so that its control flow becomes that
of the kernel. Where a class of the author's has no method written in Python, Python does what it always does.

Absent: methods that compiled code calls (``sorted``, ``sum``), and slices of the author's objects;
those run as Python.
"""

from __future__ import annotations

import functools
import operator
import types

import numpy as np

from . import _control, _trace
from ._state import own
from ._values import Memory, Place, Value

_PLAIN = {Value, Memory, Place, int, float, bool, str, list, tuple, dict, type(None), types.ModuleType}

#: Operators: what they do, and the methods of the left and of the right operand.
BINARY = {
    "+": (operator.add, "add"), "-": (operator.sub, "sub"), "*": (operator.mul, "mul"),
    "/": (operator.truediv, "truediv"), "//": (operator.floordiv, "floordiv"),
    "%": (operator.mod, "mod"), "**": (operator.pow, "pow"), "&": (operator.and_, "and"),
    "|": (operator.or_, "or"), "^": (operator.xor, "xor"), "<<": (operator.lshift, "lshift"),
    ">>": (operator.rshift, "rshift"), "@": (operator.matmul, "matmul"),
}  # fmt: skip
BINARY = {s: (f, f"__{name}__", f"__r{name}__") for s, (f, name) in BINARY.items()}
COMPARE = {
    "<": (operator.lt, "__lt__", "__gt__"), "<=": (operator.le, "__le__", "__ge__"),
    ">": (operator.gt, "__gt__", "__lt__"), ">=": (operator.ge, "__ge__", "__le__"),
    "==": (operator.eq, "__eq__", "__eq__"), "!=": (operator.ne, "__ne__", "__ne__"),
}  # fmt: skip
UNARY = {
    "-": (operator.neg, "__neg__"), "+": (operator.pos, "__pos__"),
    "~": (operator.invert, "__invert__"),
}  # fmt: skip


def _written(function):
    """Whether it is a function of the author's whose source can be had."""
    return (
        isinstance(function, types.FunctionType)
        and own(function)
        and not function.__code__.co_filename.startswith("<")
    )


def _unsaid(*values):
    """Before Python runs what a class of the author's may have written for it."""
    for value in values:
        if type(value) not in _PLAIN and own(type(value)):
            _trace.suspect()


def method(value, name):
    """The author's method that Python calls for an operator of a value, or ``None``."""
    cls = type(value)
    if cls in _PLAIN or not own(cls):
        return None
    found = getattr(cls, name, None)
    return found if _written(found) else None


def binary(call, symbol, left, right):
    """``left + right``, with Python's rules for whose method is asked first."""
    compared = symbol in COMPARE
    plainly, name, reflected = (COMPARE if compared else BINARY)[symbol]
    mine, its = method(left, name), method(right, reflected)
    if mine is None and its is None:
        if symbol == "!=" and type(left).__ne__ is object.__ne__ and method(left, "__eq__"):
            return _control.not_(binary(call, "==", left, right))
        _unsaid(left, right)
        return plainly(left, right)
    foreign = [x for x, found in ((left, mine), (right, its)) if found is None]
    if any(isinstance(x, (np.ndarray, np.generic)) for x in foreign):
        return plainly(left, right)
    turns = [(mine, left, right), (its, right, left)]
    if type(left) is type(right) and not compared:
        turns.pop()
    elif type(left) is not type(right) and issubclass(type(right), type(left)):
        turns.reverse()
    for found, of, other in turns:
        if found is not None:
            result = call(found, (of, other), {})
            if result is not NotImplemented:
                return result
    if foreign and isinstance(foreign[0], Value):
        return plainly(left, right)
    if symbol in ("==", "!="):
        return (left is right) == (symbol == "==")
    raise TypeError(
        f"unsupported operand type(s) for {symbol}: '{type(left).__name__}' and "
        f"'{type(right).__name__}'"
    )


def unary(call, symbol, x):
    """``-x``."""
    plainly, name = UNARY[symbol]
    found = method(x, name)
    _unsaid(x)
    return plainly(x) if found is None else call(found, (x,), {})


def attribute(call, base, name):
    """``base.name``: a property is a call."""
    cls = type(base)
    if cls in _PLAIN or not own(cls):
        return getattr(base, name)
    found = getattr(cls, name, None)
    if isinstance(found, property) and _written(found.fget):
        return call(found.fget, (base,), {})
    if isinstance(found, functools.cached_property) and _written(found.func):
        if name not in base.__dict__:
            _trace.touch(base)
            base.__dict__[name] = call(found.func, (base,), {})
        return base.__dict__[name]
    written = next((vars(c)[name] for c in cls.__mro__ if name in vars(c)), None)
    if isinstance(written, property) or own(type(written)) or hasattr(cls, "__getattr__"):
        _trace.suspect()
    return getattr(base, name)


def set_attribute(call, base, name, value):
    """``base.name = value``."""
    found = getattr(type(base), name, None)
    _trace.touch(base)
    if found is not None or not own(type(base)):
        _trace.suspect()
    setter = method(base, "__setattr__")
    if setter is not None:
        call(setter, (base, name, value), {})
    elif isinstance(found, property) and _written(found.fset) and type(base) is not type:
        call(found.fset, (base, value), {})
    else:
        setattr(base, name, value)


def item(call, base, key):
    """``base[key]``."""
    found = method(base, "__getitem__")
    if type(base) not in _PLAIN and not isinstance(base, np.ndarray):
        # Even reading may change it, as of a defaultdict.
        _trace.suspect()
    return base[key] if found is None else call(found, (base, key), {})


def set_item(call, base, key, value):
    """``base[key] = value``."""
    found = method(base, "__setitem__")
    _trace.touch(base)
    if type(base) not in _PLAIN and not isinstance(base, np.ndarray):
        _trace.suspect()
    if found is None:
        base[key] = value
    else:
        call(found, (base, key, value), {})
