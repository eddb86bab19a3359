"""What a kernel's code calls, and what its operators, subscripts and attributes do.

A function of the author's is compiled in the place of its call, also where a function of Python's calls it
(``map``, ``functools.reduce``), and so are the methods that Python's operators stand for. Builtins mean
something else where they are given values of the kernel.

Absent: what has no source (``_foreign``), generators, and methods that Python's own code calls.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import inspect
import operator
import types

import numpy as np

from . import _control, _ops, _trace, _values, _views
from ._control import MISSING, check_change, check_identity, in_region, joined, remember, store
from ._foreign import check_iterator, foreign, owns, traced
from ._functions import Function, generator_error, inline, written
from ._operators import BINARY, COMPARISONS, UNARY
from ._syntax import own, own_class
from ._values import Elements, Memory, Place, Undefined, Value
from .layout import Layout, SwizzledLayout

# ---- calls ----


def call(function, args, kwargs):
    """A call in a kernel's code."""
    t = _trace.current()
    if isinstance(function, (Value, Memory, Place)):
        raise _trace.error(f"{_values.describe(function)} is not a function")
    if isinstance(function, Function):
        return inline(function, args, kwargs)
    if isinstance(function, functools.partial):
        return call(function.func, (*function.args, *args), {**function.keywords, **kwargs})
    if isinstance(function, types.MethodType) and not isinstance(function.__self__, types.ModuleType):
        inner = function.__func__
        if isinstance(inner, (Function, functools.partial)) or own(inner):
            return call(inner, (function.__self__, *args), kwargs)
    if isinstance(function, _HASHED):
        if function in _ITERATING and (len(args) == 1 or function not in (max, min)):
            args = [iterable(x) for x in args]
        if function in _BUILTINS:
            return _BUILTINS[function](function, args, kwargs)
    if isinstance(function, (Layout, SwizzledLayout)):
        return _views.called(function, args, kwargs)
    kernel = getattr(function, "__dict__", {}).get("__invar_kernel__")  # Not what ``__getattr__`` makes up.
    if kernel is not None:
        raise _trace.error(f"kernel `{kernel}` is called in a kernel: take @iv.kernel off what kernels share")
    target = function.__wrapped__ if hasattr(function, "cache_info") else function
    if isinstance(target, types.FunctionType) and own(target):
        t.reads.function(target)
        made_of = getattr(target, "__wrapped__", None)
        if target.__code__.co_filename == contextlib.__file__ and inspect.isgeneratorfunction(made_of):
            raise _trace.error(
                f"`{target.__name__}` is a context manager made of a generator, which a kernel cannot run step "
                "by step: write a class with `__enter__` and `__exit__`"
            )
        flags = target.__code__.co_flags
        if flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
            raise generator_error(target.__name__, flags)
        source = written(target)
        if source is not None:
            return inline(source, args, kwargs)
        if traced((*args, *kwargs.values())):
            raise _trace.error("the source of this lambda cannot be told: write it with `def`")
    method = _made_by(function)
    if method is not None:
        if not isinstance(function, type):
            return call(method, (function, *args), kwargs)
        t.reads.attribute(function, "__init__")
        made = object.__new__(function)
        if owns(function) or not in_region():
            remember(made)
        call(method, (made, *args), kwargs)
        return made
    return foreign(function, args, kwargs)


_HASHED = (types.BuiltinFunctionType, type)
#: Builtins that go through what they are given.
_ITERATING = {
    all, any, enumerate, filter, frozenset, iter, list, map, max, min, reversed, set, sorted, sum, tuple,
    zip,
}  # fmt: skip


def iterable(x):
    """What goes through an object: what a method of the author's says, if it has one."""
    found = method(x, "__iter__")
    return x if found is None else call(found, (x,), {})


def _made_by(function):
    """The author's method that a call of an object or class runs, or ``None``."""
    if isinstance(function, type):
        plain = type(function) is type and function.__new__ is object.__new__
        found = function.__init__ if plain and own(function) else None
    else:
        found = getattr(type(function), "__call__", None) if own(type(function)) else None
    has_text = isinstance(found, types.FunctionType) and not found.__code__.co_filename.startswith("<")
    return found if has_text or isinstance(found, Function) else None


# ---- builtins that mean something else in a kernel ----


def _fold(name):
    def run(function, args, kwargs):
        items = list(args[0]) if len(args) == 1 else list(args)
        if not traced(items):
            return foreign(function, args if len(args) > 1 else (items,), kwargs)
        if "key" in kwargs:
            raise _trace.error(
                f"{function.__name__}(key=...) of traced values: compare the keys, as in `a if key(a) < key(b) else b`"
            )
        return functools.reduce(lambda a, b: _values.binary(name, a, b, name), items)

    return run


def _any_or_all(name):
    def run(function, args, kwargs):
        if len(args) != 1 or kwargs or isinstance(args[0], Memory):
            return function(*args, **kwargs)
        return joined(name, args[0], f"{function.__name__}()", lambda x: x)

    return run


def _sorted(function, args, kwargs):
    if args and not isinstance(args[0], Memory):
        items = list(args[0])
        if traced(items):
            raise _trace.error(
                "sorted() of traced values: their order is known only when the kernel runs; swap "
                "them with iv.min(...) and iv.max(...)"
            )
        args = items, *args[1:]
    return foreign(function, args, kwargs)


def _pow(function, args, kwargs):
    if len(args) + len(kwargs) > 2 and traced((*args, *kwargs.values())):
        raise _trace.error("pow() with a modulus of traced values: write a loop of products and `%`")
    return function(*args, **kwargs)


def _len(function, args, kwargs):
    x = args[0] if args else None
    if isinstance(x, Memory) and x.length is None and x.offset is None and not _trace.current().dialect:
        return _ops.buffer_length(x)
    return _asked("__len__")(function, args, kwargs)


def _asked(name):
    """A builtin that asks the author's method."""

    def run(function, args, kwargs):
        found = method(args[0], name) if len(args) == 1 and not kwargs else None
        return foreign(function, args, kwargs) if found is None else call(found, args, {})

    return run


def formatted(x, how=""):
    """``format(x, how)``, as the author's methods say."""
    found, text = method(x, "__format__"), method(x, "__str__")
    if found is not None:
        return call(found, (x, how), {})
    return foreign(format, (x, how), {}) if text is None or how != "" else call(text, (x,), {})


def _format(function, args, kwargs):
    return formatted(*args) if len(args) in (1, 2) and not kwargs else function(*args, **kwargs)


def _getattr(function, args, kwargs):
    try:
        return attribute(*args[:2])
    except AttributeError:
        if len(args) < 3:
            raise
        return args[2]


_BUILTINS = {
    builtins.abs: _asked("__abs__"),
    builtins.min: _fold("min"),
    builtins.max: _fold("max"),
    builtins.len: _len,
    builtins.any: _any_or_all("or"),
    builtins.all: _any_or_all("and"),
    builtins.sorted: _sorted,
    builtins.pow: _pow,
    builtins.isinstance: lambda function, args, kwargs: function(*args, **kwargs),
    builtins.format: _format,
    builtins.getattr: _getattr,
    builtins.hasattr: lambda function, args, kwargs: _getattr(function, (*args, MISSING), kwargs) is not MISSING,
    builtins.setattr: lambda function, args, kwargs: set_attribute(*args),
    **{function: _asked(f"__{function.__name__}__") for function in (complex, float, hash, int, next, repr, str)},
}
# ---- operators, subscripts and attributes ----

_PLAIN = {Value, Memory, Place, int, float, bool, str, list, tuple, dict, type(None), types.ModuleType}


def method(value, name):
    """The author's method that Python calls for an operator of a value, or ``None``."""
    cls = type(value)
    if cls in _PLAIN or not own(cls):
        return None
    found = getattr(cls, name, None)
    return found if isinstance(found, types.FunctionType) and own(found) and written(found) else None


def binary(symbol, left, right):
    """``left + right``, with Python's rules for whose method is asked first."""
    plainly, name, reflected, _ = BINARY[symbol]
    mine, its = method(left, name), method(right, reflected)
    if mine is None and its is None:
        if symbol == "!=" and type(left).__ne__ is object.__ne__ and method(left, "__eq__"):
            return not_(binary("==", left, right))
        if symbol in ("==", "!=") and left is not right and type(left) is type(right):
            check_identity(left, right)
        result = plainly(left, right)
        return remember(result) if type(result) is list else result
    foreigners = [x for x, found in ((left, mine), (right, its)) if found is None]
    if any(isinstance(x, (np.ndarray, np.generic)) for x in foreigners):
        return plainly(left, right)
    turns = [(mine, left, right), (its, right, left)]
    if type(left) is type(right) and symbol not in COMPARISONS:
        turns.pop()
    elif type(left) is not type(right) and issubclass(type(right), type(left)):
        turns.reverse()
    for found, of, other in turns:
        if found is not None:
            result = call(found, (of, other), {})
            if result is not NotImplemented:
                return result
    if foreigners and isinstance(foreigners[0], Value):
        return plainly(left, right)
    if symbol in ("==", "!="):
        return (left is right) == (symbol == "==")
    raise TypeError(f"unsupported operand type(s) for {symbol}: '{type(left).__name__}' and '{type(right).__name__}'")


def in_place(symbol, left, right):
    """What ``left += right`` makes of ``left``."""
    name = f"__i{BINARY[symbol].method[2:]}"
    found = method(left, name)
    if found is not None:
        result = call(found, (left, right), {})
        return binary(symbol, left, right) if result is NotImplemented else result
    if isinstance(left, Value) or not hasattr(type(left), name):
        return binary(symbol, left, right)
    if isinstance(left, np.ndarray) and traced((right,)):
        raise _trace.error(ARRAY_ADVICE)
    check_iterator(right)
    check_change(
        left, f"`{symbol}=` changes a Python {type(left).__name__}", f"write `a = a {symbol} b`, which makes another"
    )
    return getattr(operator, name)(left, right)


ARRAY_ADVICE = (
    "an array of NumPy holds no values of the kernel: keep what changes in a list, or in iv.thread_alloc(...)"
)


def unary(symbol, x):
    """``-x``."""
    plainly, name = UNARY[symbol]
    found = method(x, name)
    return plainly(x) if found is None else call(found, (x,), {})


def not_(x):
    """``not x``."""
    c = _control.truth(x)
    return _values.op("not", [c]) if isinstance(c, Value) else not c


def _truth(x):
    """Whether an object of Python is true, as methods of the author's say."""
    asks = "__bool__" if hasattr(type(x), "__bool__") else "__len__"
    found = method(x, asks)
    return bool(x) if found is None else _control.truth(call(found, (x,), {}))


_control.ask = _truth


def _of_class(cls, name):
    """What a class has by a name, as it stands there."""
    return next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)


def attribute(base, name):
    """``base.name``: a property is a call, and so is what the author's methods make up."""
    cls, t = type(base), _trace.current()
    if cls is Place and not name.startswith("__"):
        return base.field(name).get()  # A field may have the name of one of ours.
    if cls in _PLAIN and cls is not types.ModuleType:
        return getattr(base, name)
    if own_class(cls):
        found = _of_class(cls, name)
        if hasattr(type(found), "__set__") or name not in getattr(base, "__dict__", ()):
            getter, given = method(found, "__get__"), (found, base, cls)
            if found is None:
                getter, given = method(base, "__getattr__"), (base, name)
            if getter is not None:
                t.reads.attribute(base, name)
                return call(getter, given, {})
        if isinstance(found, property) and written(found.fget) is not None:
            t.reads.attribute(cls, name)
            return call(found.fget, (base,), {})
        space = getattr(base, "__dict__", base)
        if _is_computed_once(found) and type(space) is dict and name not in space:
            return _computed_once(base, found)
        _control.read(space, name)
    t.reads.attribute(base, name)
    return getattr(base, name)


def _is_computed_once(found):
    """Whether an attribute is one that a method of the author's computes when it is first read."""
    return isinstance(found, functools.cached_property) and written(found.func) is not None and bool(found.attrname)


def _computed_once(base, found):
    """Such an attribute, which is kept by the name that it was defined with."""
    t, space, name = _trace.current(), base.__dict__, found.attrname
    t.reads.attribute(base, name)
    if name not in space:
        result = call(found.func, (base,), {})
        check_change(base, f"`{name}` is computed and kept", "read it once before")
        store(space, name, result)
        t.reads.kept(base, name, result)
    return _control.read(space, name)


def set_attribute(base, name, value):
    """``base.name = value``."""
    cls, instead = type(base), "keep it in a variable of the kernel"
    if isinstance(base, Function):
        check_change(base, f"the attribute `{name}` of a function is assigned", instead)
    if _ours(base):
        setattr(base, name, value)
        return
    if isinstance(base, (type, types.ModuleType)):
        check_change(base, f"`{base.__name__}.{name}` is assigned", instead)
        setattr(base, name, value)
        return
    setter = method(base, "__setattr__")
    found = _of_class(cls, name)
    if setter is not None:
        call(setter, (base, name, value), {})
    elif method(found, "__set__") is not None:
        call(method(found, "__set__"), (found, base, value), {})
    elif isinstance(found, property) and found.fset is not None and written(found.fset) is not None:
        call(found.fset, (base, value), {})
    elif own_class(cls) and not dataclass_frozen(cls):
        space = getattr(base, "__dict__", None)
        slot = space is None or hasattr(found, "__set__")
        if _control.get(base if slot else space, name) is MISSING:
            check_change(
                base, f"the attribute `{name}` is added to an object", "make it an attribute of the object before"
            )
        store(base if slot else space, name, value)
    else:
        check_change(base, f"`{name}` of a Python {cls.__name__} is assigned", instead)
        setattr(base, name, value)


def _ours(thing):
    """Whether an object is of this package: it says itself what it allows."""
    return (type(thing).__module__ or "").partition(".")[0] == "invar"


def dataclass_frozen(cls):
    """Whether objects of a class refuse assignments."""
    parameters = getattr(cls, "__dataclass_params__", None)
    return parameters is not None and parameters.frozen


#: What Python indexes itself.
_INDEXED = (list, tuple, str, bytes, range, np.ndarray, dict)


def item(base, key):
    """``base[key]``."""
    found = method(base, "__getitem__")
    if found is not None:
        return call(found, (base, key), {})
    if isinstance(base, _INDEXED):
        keys = key if isinstance(key, tuple) else (key,)
        if not isinstance(base, dict) and any(isinstance(_values.plain(x), Value) for x in keys):
            raise _trace.error(
                f"{_values.describe(base)} is indexed by a traced value, known only when the kernel "
                "runs: put it in iv.constant_array(...), in a buffer, or in an array of "
                "iv.thread_alloc(...)"
            )
        if isinstance(base, dict) and type(base) is not dict and in_region() and key not in base:
            check_change(base, f"a missing key is looked up in a {type(base).__name__}", "add it before")
        elif type(base) is list and type(key) is int and _trace.current().regions:
            if -len(base) <= key < len(base):
                _control.read(base, key % len(base))
        elif type(base) is dict:
            check_identity(key)
            _control.read(base, key)
    else:
        _trace.current().reads.note(base)
    value = base[key]
    if isinstance(key, slice) and type(value) is list:
        remember(value)
    return value


def set_item(base, key, value):
    """``base[key] = value``."""
    found = method(base, "__setitem__")
    kind = type(base).__name__
    if found is not None:
        call(found, (base, key, value), {})
        return
    if isinstance(base, np.ndarray) and not base.dtype.hasobject:
        if traced((value, *(key if isinstance(key, tuple) else (key,)))):
            raise _trace.error(ARRAY_ADVICE)
    if isinstance(base, list) and not isinstance(key, slice):
        if isinstance(key, Value):
            item(base, key)
        index = operator.index(key)
        base[index]
        store(base, index % len(base), value)
    elif _ours(base):
        base[key] = value
    elif isinstance(base, dict):
        check_identity(key)
        if key not in base:
            check_change(base, f"a key is added to a Python {kind}", "make it with all its keys before")
        store(base, key, value)
    else:
        what, instead = "an element", "keep what changes in a list, or in iv.thread_alloc(...)"
        if isinstance(base, list):
            what, instead = "a slice", "assign its elements one by one"
            check_iterator(value)
        check_change(base, f"{what} of a Python {kind} is assigned", instead)
        base[key] = value


def identity(symbol, a, b):
    """``a is b`` and ``a is not b``, which Python answers when the kernel is compiled."""
    for one, other in ((a, b), (b, a)):
        if isinstance(one, Value) and _values.is_number(other):
            advice = "`x == True`, or `x`" if isinstance(other, bool) else f"`x == {other}`"
            raise _trace.error(
                f"`{symbol}` of a traced {one.type} and {other} asks when the kernel is compiled: write {advice}"
            )
    if a is not b and type(a) is type(b):
        check_identity(a, b, always=True)
    return (a is b) == (symbol == "is")


_SEARCHED = (type({}.values()), type({}.keys()), type({}.items()))
_KEYED = (set, frozenset, dict)
_LAZY = (map, filter, zip, enumerate, reversed, types.GeneratorType, type(iter([])), type(iter(())))


def contains(item, holder):
    """``item in holder``: of a traced value, or among such, any of the comparisons."""
    found = method(holder, "__contains__")
    if found is not None:
        return _control.truth(call(found, (holder, item), {}))
    holder = iterable(holder)
    check_iterator(holder)
    if isinstance(holder, _SEARCHED) or isinstance(item, Value) and isinstance(holder, _KEYED):
        holder = list(holder)
    if isinstance(holder, (list, tuple, *_KEYED)):
        others = [x for x in holder if type(x) is type(item) and x is not item]
        check_identity(*others, *([item] if others else []))
    if isinstance(item, Value) and isinstance(holder, range) and holder.step == 1:
        tests = lambda: item >= holder.start, lambda: item < holder.stop
        return _control.logical("and", tests)
    searched = isinstance(holder, (list, tuple))
    if searched and (traced((item, *holder)) or any(method(x, "__eq__") for x in (item, *holder))):
        holder = iter(holder)
    if isinstance(holder, _LAZY):
        same = lambda x: x is item and not isinstance(x, Value)
        return joined("or", holder, "`in`", lambda x: same(x) or binary("==", x, item))
    if isinstance(item, Value):
        raise _trace.error(
            f"`in` {_values.describe(holder)} of a traced value: a list, tuple, set or dict is "
            "searched by comparisons; for others write them, as in `low <= x and x < high`"
        )
    if isinstance(holder, Memory):
        raise _trace.error(f"`in` the array `{holder.name}`: write a loop over iv.range(...) that compares")
    return item in holder
