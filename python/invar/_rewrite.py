"""Rewrites a function's source so that its control flow can become that of the kernel.

``if``, ``while``, ``for``, ``and``, ``or``, ``not``, chained comparisons, conditional expressions,
calls, operators, attributes and stores to parts of things become calls of ``_control``, of
``_protocol`` and of the functions here, in the order in which Python evaluates them; a block
that was a statement's body becomes a function that reads and sets the outer function's variables
and gives the signal of how it was left. All else stays as it is. Every new node has the place of
the one it stands for, so that lines and columns stay the author's.
"""

from __future__ import annotations

import ast
import builtins
import collections
import functools
import sys
import time
import types

import numpy as np

from . import _control, _protocol, _sharing, _source, _trace, _values, _views
from ._errors import Error, KernelError
from .layout import Layout, SwizzledLayout
from ._state import Numbers, Variables, own
from ._values import Memory, Place, Undefined, Value

_RT = "_invar_"
#: So many calls of one function may be under way in each other.
MAX_DEPTH = 24


class Runtime:
    """What rewritten code calls."""

    and_ = staticmethod(_control.and_)
    or_ = staticmethod(_control.or_)
    not_ = staticmethod(_control.not_)
    if_exp = staticmethod(_control.if_exp)
    if_stmt = staticmethod(_control.if_stmt)
    while_stmt = staticmethod(_control.while_stmt)
    for_stmt = staticmethod(_control.for_stmt)
    finally_stmt = staticmethod(_control.finally_stmt)
    marked = staticmethod(_control.marked)
    caught = staticmethod(_control.caught)
    Variables = Variables
    BREAK = _control.BREAK
    CONTINUE = _control.CONTINUE
    returns = staticmethod(_control.returns)
    Undefined = Undefined

    @staticmethod
    def load(value):
        """The value of a variable that may have none."""
        if isinstance(value, Undefined):
            value.fail()
        return value

    @staticmethod
    def is_region(managers):
        """Whether one of a `with` statement's managers makes its block a region of the kernel."""
        return any(getattr(manager, "is_region", False) for manager in managers)

    @staticmethod
    def rebound(name):
        """What a name is behind a `with` block that is a region and that rebinds it."""
        return Undefined(
            name,
            "is rebound inside a `with` block, which does not carry it: pass it through `init=` of "
            "for_range, or keep it in a register_tensor",
        )

    @staticmethod
    def hint(name):
        """The variable that what is evaluated next is for: an array takes its name."""
        _trace.current().hint = name
        return name

    @staticmethod
    def named(name, value):
        """A value that is assigned to a variable: messages and the text form use its name."""
        if isinstance(value, Value):
            _trace.current().builder.name(value.id, name)
        return value

    @staticmethod
    def let(name, assign, value):
        """``name := value``."""
        _trace.watch()
        assign(Runtime.named(name, value))
        return value

    @staticmethod
    def contains(item, holder):
        """``item in holder``: of a traced value, or among such, any of the comparisons."""
        found = _protocol.method(holder, "__contains__")
        if found is not None:
            return _control.truth(_call(found, (holder, item), {}))
        if isinstance(holder, (*_SEARCHED, types.GeneratorType)) or type(holder) in _LAZY:
            if _trace.active() and not _control.plain_iterable(holder):
                return _control.joined("or", holder, "`in`", lambda x: Runtime.operate("==", x, item))
            holder = list(holder)
        if isinstance(item, Value) and isinstance(holder, (set, frozenset, dict)):
            holder = list(holder)
        if isinstance(item, Value) and isinstance(holder, range) and holder.step == 1:
            return _control.and_(lambda: item >= holder.start, lambda: item < holder.stop)
        if isinstance(holder, (list, tuple)) and _traced((item, *holder)):
            return _control.or_(*(lambda x=x: item == x for x in holder)) if len(holder) else False
        if isinstance(item, Value):
            raise _trace.error(
                f"`in` {_values.describe(holder)} of a traced value: a list, tuple, set or dict is "
                "searched by comparisons; for others write them, as in `low <= x and x < high`"
            )
        if isinstance(holder, Memory):
            raise _trace.error(
                f"`in` the array `{holder.name}`: write a loop over iv.range(...) that compares"
            )
        return item in holder

    identity = staticmethod(_control.identity)

    @staticmethod
    def changing(base):
        """What ``del`` takes a part from."""
        _trace.touch(base)
        return Runtime.unsaid(base)

    @staticmethod
    def unsaid(value):
        """What Python is about to run methods of, if its class is the author's."""
        if type(value) not in _HARMLESS:
            _trace.suspect()
        return value

    @staticmethod
    def iterated(value):
        """What Python is about to take items from."""
        if not _control.plain_iterable(value):
            _trace.taint()
        return value

    @staticmethod
    def operate(symbol, left, right):
        """``left + right``, or a comparison."""
        return _protocol.binary(_call, symbol, left, right)

    @staticmethod
    def unary(symbol, x):
        """``-x``."""
        return _protocol.unary(_call, symbol, x)

    @staticmethod
    def attribute(base, name):
        """``base.name``."""
        return _protocol.attribute(_call, base, name)

    @staticmethod
    def compare(symbols, left, *thunks):
        """``a < b < c``."""
        return _control.compare(_compared, symbols, left, *thunks)

    @staticmethod
    def binary(symbol, left, right):
        """An augmented assignment's operation."""
        for x in (left, right):
            if isinstance(x, Undefined):
                x.fail()
        if isinstance(left, Value):
            return _AUGMENTED[symbol](left, right)
        if _trace.active():
            _sharing.check(left)
        _trace.touch(left)
        plain = symbol[:-1]
        name = f"__i{_protocol.BINARY[plain][1][2:]}"
        found = _protocol.method(left, name)
        if found is not None:
            result = _call(found, (left, right), {})
            return Runtime.operate(plain, left, right) if result is NotImplemented else result
        if hasattr(type(left), name):
            Runtime.unsaid(left)
            return _AUGMENTED[symbol](left, right)
        return Runtime.operate(plain, left, right)

    @staticmethod
    def store(value, root, variable, *steps):
        """``root.a[i] = value``; where the root is a variable, ``variable`` reads it, and what it is
        now is given: of a vector another value."""
        return _put(_way(root, steps), value, variable)

    @staticmethod
    def update(symbol, value, root, variable, *steps):
        """``root.a[i] += value()``: what is there is read before the value is evaluated."""
        way = _way(root, steps)
        old = _get(*way[-1])
        if not isinstance(old, Place):
            return _put(way, Runtime.binary(symbol, old, value()), variable)
        old.put(Runtime.binary(symbol, old.get(), value()))
        return variable and variable()

    @staticmethod
    def item(base, key):
        """``base[key]``."""
        if isinstance(base, _INDEXED):
            parts = key if isinstance(key, tuple) else (key,)
            if _trace.active() and any(isinstance(_views.plain(part), Value) for part in parts):
                raise _trace.error(
                    f"{_values.describe(base)} is indexed by a traced value, known only when the "
                    "kernel runs: put it in iv.constant_array(...), in a buffer, or in an array of "
                    "iv.thread_alloc(...)"
                )
        return _protocol.item(_call, base, key)

    @staticmethod
    def static(what, value):
        """What Python needs to know when the kernel is compiled."""
        if isinstance(_views.plain(value), Value):
            raise _trace.error(f"{what}")
        return value

    @staticmethod
    def statement(value):
        """An expression that stands alone: a function there was meant to be called."""
        if callable(value) and not isinstance(value, (type, Value, Memory)):
            name = getattr(value, "__name__", None)
            raise _trace.error(
                "this does nothing: a function is named and not called"
                + (f"; write `{name}()`" if name else "")
            )

    @staticmethod
    def raised(exception):
        """What ``raise`` raises: of the author's own will, so it stays what it is."""
        if isinstance(exception, type) and issubclass(exception, BaseException):
            exception = exception()
        t = _trace.current()
        if any(frame.kind == "if" for frame in t.frames):
            raise _trace.error(
                "`raise` in a branch that only some threads take: kernels have no exceptions; write "
                "to a buffer what went wrong, and check what is known at compile time before the "
                "branch"
            ) from (exception if isinstance(exception, BaseException) else None)
        t.raised = exception
        return exception

    @staticmethod
    def manager(value):
        """What a ``with`` statement holds."""
        if getattr(value, "is_region", False):
            return value
        cls = type(value)
        if isinstance(value, Undefined):
            value.fail()
        if not (hasattr(cls, "__enter__") and hasattr(cls, "__exit__")):
            raise _trace.error(f"`with` takes a context manager, not {_values.describe(value)}")
        return _Manager(value)

    @staticmethod
    def call(function, *args, **kwargs):
        """A call: of the author's own functions the rewritten form, inlined."""
        return _call(function, args, kwargs)

    @staticmethod
    def converted(function):
        """A function of a kernel's own, rewritten: also for callers that are not, as in ``map``."""
        _inner.add(function.__code__)
        return _inlined(function, function)


class _Manager:
    """The author's context manager: its methods are inlined, and it hides no error of ours."""

    def __init__(self, value):
        self.value = value

    def __enter__(self):
        return _call(types.MethodType(type(self.value).__enter__, self.value), (), {})

    def __exit__(self, kind, found, traceback):
        leave = types.MethodType(type(self.value).__exit__, self.value)
        if found is None:
            return _call(leave, (None, None, None), {})
        ours = not isinstance(found, Exception) or isinstance(found, KernelError)
        _trace.suspect()
        return leave(kind, found, traceback) and not ours


def _operator(symbol):
    scope = {}
    # In this file's name, so that reports point at the author's line and not into this one.
    exec(compile(f"def f(a, b):\n    a {symbol} b\n    return a", __file__, "exec"), scope)
    return scope["f"]


_AUGMENTED = {
    s: _operator(s)
    for s in ("+=", "-=", "*=", "/=", "//=", "%=", "**=", "&=", "|=", "^=", "<<=", ">>=", "@=")
}
_inner = set()
#: What Python indexes itself; what ``in`` looks through by taking its values.
_INDEXED = (list, tuple, str, bytes, range, np.ndarray)
_SEARCHED = (type({}.values()), type({}.keys()), type({}.items()))
_LAZY = {map, filter, zip, enumerate, reversed}
#: Types whose methods are Python's own.
_HARMLESS = {
    Value, Memory, Place, _views.Elements, int, float, complex, bool, str, bytes, type(None), list, tuple,
    dict, set, frozenset, collections.deque, range, slice, np.ndarray, types.ModuleType,
}


def _get(base, kind, key):
    if isinstance(base, Memory):
        if kind == "attribute":
            raise _trace.error(f"the array `{base.name}` has no field `{key}`: index it first")
        return base.place(key)
    if isinstance(base, Place):
        return base.field(key) if kind == "attribute" else base.part(key)
    if isinstance(base, Value):
        return base[_component(base, kind, key)]
    if kind == "attribute":
        return _protocol.attribute(_call, base, key)
    return _protocol.item(_call, base, key)


def _component(value, kind, key):
    if value.type.kind not in ("vector", "matrix"):
        raise _trace.error(f"a value of type {value.type} has no parts to assign to")
    if kind == "item":
        return key
    if len(key) != 1 or key not in "xyzwrgba":
        raise _trace.error(f"assign to one component of {value.type}, not to `{key}`")
    return ("xyzw" if key in "xyzw" else "rgba").index(key)


def _read(x):
    return x.get() if isinstance(x, Place) else x


def _way(root, steps):
    """The way to a part that is assigned: what each step goes from, its kind and its key.

    A key that is evaluated only once the steps before it are gone comes as a function.
    """
    way = []
    for number, (kind, key) in enumerate(steps):
        base = _get(*way[-1]) if way else root
        if isinstance(base, Undefined):
            base.fail()
        if kind == "later":
            kind, key = "item", key()
        way.append((base, kind, key))
    return way


def _now(way, number, variable):
    """What a step goes from, as it is now: another value may have taken its place since."""
    base = way[number][0]
    if not isinstance(base, Value):
        return base
    if number:
        return _read(_get(_now(way, number - 1, variable), *way[number - 1][1:]))
    return variable() if variable else base


def _put(way, value, variable):
    """Assigns to what a way leads to; gives what its variable is then."""
    number = len(way) - 1
    base, kind, key = way[number]
    while isinstance(base, Value):
        # Values do not change: what stands there now, with another part, takes its place.
        base = _now(way, number, variable)
        value = base.with_part(_component(base, kind, key), value)
        if not number and variable is None:
            raise _trace.error(
                f"a part of a value of type {base.type} is assigned that no variable of this function "
                "holds: assign it in the function that has it, or say `nonlocal`"
            )
        if not number:
            return value
        number -= 1
        base, kind, key = way[number]
    if isinstance(base, (Memory, Place)):
        _get(base, kind, key).put(value)
        return variable and variable()
    t = _trace.current()
    t.changed[id(base)] = _trace.here()
    _sharing.check(base)
    _trace.touch(base)
    if isinstance(base, np.ndarray) and not base.dtype.hasobject:
        if isinstance(value, Value) or _traced(key if isinstance(key, tuple) else (key,)):
            raise _trace.error(Numbers.advice)
    if kind == "attribute":
        if isinstance(base, (type, types.ModuleType)) and any(f.kind != "function" for f in t.frames):
            raise _trace.error(
                f"`{base.__name__}.{key}` is assigned in a branch or loop of the kernel, which does "
                "not carry it: keep it in a variable of the kernel"
            )
        _protocol.set_attribute(_call, base, key, value)
    else:
        _protocol.set_item(_call, base, key, value)
    return variable and variable()


def _compared(symbol, left, right):
    if symbol in ("is", "is not"):
        return _control.identity(symbol, left, right)
    if symbol in ("in", "not in"):
        found = Runtime.contains(left, right)
        return found if symbol == "in" else _control.not_(found)
    return Runtime.operate(symbol, left, right)


# ---- calls ----

def _call(function, args, kwargs):
    _trace.watch()
    if isinstance(function, Undefined):
        function.fail()
    if isinstance(function, (Value, Memory, Place)):
        raise _trace.error(f"{_values.describe(function)} is no function to call")
    if isinstance(function, functools.partial):
        return _call(function.func, (*function.args, *args), {**function.keywords, **kwargs})
    replaced = _BUILTINS.get(function) if getattr(function, "__hash__", None) else None
    if replaced is not None:
        if kwargs or not all(type(x) in _HARMLESS for x in args):
            _trace.suspect()
        return replaced(function, args, kwargs)
    if isinstance(function, (Layout, SwizzledLayout)):
        return _views.called(function, args, kwargs)
    kernel = getattr(function, "__invar_kernel__", None)
    if kernel is not None:
        raise _trace.error(
            f"kernel `{kernel}` is called in a kernel: take @iv.kernel off what kernels share"
        )
    bound = ()
    target = function
    if isinstance(target, types.MethodType):
        target, bound = target.__func__, (target.__self__,)
    target = getattr(target, "__invar_function__", target)
    target = getattr(target, "__wrapped__", target) if hasattr(target, "cache_info") else target
    if not isinstance(target, types.FunctionType):
        method = _method(function)
        if method is not None:
            made = object.__new__(function) if isinstance(function, type) else function
            result = _call(method, (made, *args), kwargs)
            return made if isinstance(function, type) else result
        return _foreign(function, args, kwargs)
    if target.__code__ not in _inner:
        if not own(target):
            if not target.__module__.startswith("invar"):
                _trace.suspect()
            return function(*args, **kwargs)
        if _as_it_is(target):
            _trace.suspect()
            return function(*args, **kwargs)
        if target.__code__.co_flags & (0x20 | 0x80 | 0x200):  # generators and coroutines
            _trace.taint()
            return function(*args, **kwargs)
    t = _trace.current()
    code = target.__code__
    key = getattr(code, "co_qualname", code.co_name), code.co_filename, code.co_firstlineno
    if code.co_name == "<lambda>":
        key = code  # There may be several on a line.
    if sum(key == known for known, _ in t.functions) == MAX_DEPTH:
        raise _trace.error(
            f"`{target.__name__}` calls itself, {MAX_DEPTH} calls deep: kernels have no recursion but "
            "what compile-time values end; write a loop"
        )
    converted = target if code in _inner else convert(target)
    t.functions.append((key, converted))
    try:
        return _control.inline(converted, target.__name__, (*bound, *args), kwargs)
    finally:
        if t.functions and t.functions[-1][0] == key:
            t.functions.pop()


def _foreign(function, args, kwargs):
    """A call of what is compiled, or of a class or object whose call Python makes."""
    _check_foreign(function, args)
    # By identity: what is called may stand for a value, whose `==` is an operation of the kernel.
    if any(function is c for c in _CALLERS) and args and isinstance(args[0], types.FunctionType):
        if own(args[0]) and not _as_it_is(args[0]):
            args = _inlined(args[0], args[0]), *args[1:]
    holder = getattr(function, "__self__", None)
    if holder is not None and not isinstance(holder, types.ModuleType):
        _trace.current().changed[id(holder)] = _trace.here()
    _say(function, holder, args, kwargs)
    try:
        result = function(*args, **kwargs)
    except (TypeError, ValueError) as e:
        held = [x for a in args if isinstance(a, (list, tuple)) for x in a]
        if isinstance(e, Error) or not _traced((*args, *kwargs.values(), *held)):
            raise
        name = getattr(function, "__qualname__", None) or type(function).__name__
        raise _trace.error(
            f"{name}() of a traced value, which is known only when the kernel runs: {e}"
        ) from e
    if function in _LAZY and all(map(_control.plain_iterable, args)) and not kwargs:
        if function is not map and function is not filter and _trace.current().ledger is not None:
            _trace.current().ledger.plain[id(result)] = result
    if _trace.active():
        _sharing.check()
    return result


def _say(function, holder, args, kwargs):
    """Says what a call of what is compiled may change."""
    if isinstance(function, np.ufunc) and not kwargs and len(args) == function.nin:
        return
    if type(holder) in _HARMLESS and type(holder) not in (types.ModuleType, type(None)):
        _trace.touch(holder)
        if not kwargs and all(map(_control.plain_iterable, args)):
            return
    module = getattr(function, "__module__", None) or type(function).__module__
    if module in ("math", "cmath") or module.partition(".")[0] == "invar":
        return
    if function in _LAZY and function is not map and function is not filter:
        if all(map(_control.plain_iterable, args)):
            return
    _trace.suspect()


def _method(function):
    """The author's method that a call of an object or class runs, or ``None``."""
    if isinstance(function, type):
        plain = type(function) is type and function.__new__ is object.__new__
        found = function.__init__ if plain and own(function) else None
    else:
        found = getattr(type(function), "__call__", None) if own(type(function)) else None
    written = isinstance(found, types.FunctionType) and not found.__code__.co_filename.startswith("<")
    return found if written else None


def _as_it_is(function):
    """Whether a function is a lambda that is rewritten already, or whose source cannot be had."""
    code = function.__code__
    if code.co_name != "<lambda>":
        return False
    if _RT in code.co_freevars:
        return True
    try:
        _source.definition(function)
    except KernelError:
        return True
    return False


def _inlined(function, shown):
    """A function that callers outside the kernel may call, such as ``map`` and ``partial``."""

    def inlined(*args, **kwargs):
        return _call(function, args, kwargs)

    functools.update_wrapper(inlined, shown)
    inlined.__invar_function__ = function
    return inlined


#: Functions that call what they are given.
_CALLERS = (map, filter, functools.reduce, functools.partial)


def _traced(args):
    return any(isinstance(a, (Value, _views.Elements)) for a in args)


def _fold(name):
    def run(function, args, kwargs):
        items = list(args[0]) if len(args) == 1 else list(args)
        if not _traced(items):
            return function(*(args if len(args) > 1 else (items,)), **kwargs)
        if "key" in kwargs:
            raise _trace.error(
                f"{function.__name__}(key=...) of traced values: compare the keys, as in "
                "`a if key(a) < key(b) else b`"
            )
        return functools.reduce(lambda a, b: _values.binary(name, a, b, name), items)

    return run


def _no_traced(advice):
    def run(function, args, kwargs):
        if _traced(args):
            raise _trace.error(f"{function.__name__}() of a traced value: {advice}")
        return function(*args, **kwargs)

    return run


def _any_or_all(join, settles):
    def run(function, args, kwargs):
        if len(args) != 1 or kwargs or isinstance(args[0], Memory):
            return function(*args, **kwargs)
        if _trace.active() and not _control.plain_iterable(args[0]):
            name = "or" if settles else "and"
            return _control.joined(name, args[0], f"{function.__name__}()", lambda x: x)
        items = []
        for x in args[0]:
            x = _views.plain(x)
            items.append(x if isinstance(x, (Value, _views.Elements, Undefined)) else bool(x))
            if items[-1] is settles:
                break  # As Python does, which takes no more.
        if not _traced(items):
            return function(items)
        return join(*(lambda x=x: x for x in items))

    return run


def _sorted(function, args, kwargs):
    if args and not isinstance(args[0], Memory):
        items = list(args[0])
        if _traced(items):
            raise _trace.error(
                "sorted() of traced values: their order is known only when the kernel runs; swap "
                "them with iv.min(...) and iv.max(...)"
            )
        args = items, *args[1:]
    return function(*args, **kwargs)


#: What functions of NumPy and of `math` are called here, where the names differ.
_OURS = {
    "absolute": "abs", "fabs": "abs", "maximum": "max", "minimum": "min", "power": "pow",
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "where": "select",
    "clip": "clamp", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
}  # fmt: skip


def _check_foreign(function, args):
    """Refuses a function of NumPy or of ``math`` on traced values."""
    name = getattr(function, "__name__", "")
    module = getattr(function, "__module__", None)
    numpy = isinstance(function, np.ufunc) or module == "numpy" and name in _OURS
    if not numpy and module not in ("math", "cmath") or not _traced(args):
        return
    import invar

    ours = _OURS.get(name, name)
    advice = f"write iv.{ours}(...)" if hasattr(invar, ours) else "write it with functions of iv"
    raise _trace.error(
        f"{'np' if numpy else module}.{name}() of a traced value runs while tracing: {advice}"
    )


def _pow(function, args, kwargs):
    if len(args) + len(kwargs) > 2 and _traced((*args, *kwargs.values())):
        raise _trace.error("pow() with a modulus of traced values: write a loop of products and `%`")
    return function(*args, **kwargs)


def _len(function, args, kwargs):
    if args and isinstance(args[0], Memory):
        length = args[0].length
        if length is None:
            raise _trace.error(
                f"len() of `{args[0].name}`, whose length the launch gives: write iv.buffer_length"
            )
        return length
    return _asked("__len__")(function, args, kwargs)


def _asked(name):
    """A builtin that asks the author's method."""

    def run(function, args, kwargs):
        found = _protocol.method(args[0], name) if len(args) == 1 and not kwargs else None
        if found is None:
            return function(*args, **kwargs)
        return _call(found, args, {})

    return run


_BUILTINS = {
    builtins.abs: _asked("__abs__"),
    builtins.min: _fold("min"),
    builtins.max: _fold("max"),
    builtins.len: _len,
    builtins.range: _no_traced("for a loop in the kernel write iv.range(...)"),
    builtins.int: _no_traced("write iv.i32(...)"),
    builtins.float: _no_traced("write iv.f32(...)"),
    builtins.bool: _no_traced("compare it, as in `x != 0`; of several take any(...) or all(...)"),
    builtins.any: _any_or_all(_control.or_, True),
    builtins.all: _any_or_all(_control.and_, False),
    builtins.sorted: _sorted,
    builtins.pow: _pow,
    builtins.divmod: _no_traced("write `a // b` and `a % b`, which truncate"),
    builtins.round: _no_traced("write iv.round(...) or iv.rint(...)"),
    builtins.print: _no_traced("a kernel cannot print; store the value and print it afterwards"),
    builtins.isinstance: lambda function, args, kwargs: function(*args, **kwargs),
}


# ---- compiling what is rewritten ----

_converted = {}


def convert(function):
    """The rewritten form of a function, with the same closure and globals."""
    code = function.__code__
    if code not in _converted:
        node, filename = _source.definition(function)
        try:
            _converted[code] = _compile(node, filename, code.co_freevars, code.co_name)
        except RecursionError:
            raise KernelError(
                f"`{function.__name__}` holds an expression or statements that nest too deep for "
                "Python's recursion limit: split them",
                _position(filename, node),
            ) from None
    factory_code, names = _converted[code]
    cells = dict(zip(code.co_freevars, function.__closure__ or ()))
    cells[_RT] = types.CellType(Runtime)
    closure = tuple(cells[name] for name in factory_code.co_freevars)
    new = types.FunctionType(
        factory_code, function.__globals__, function.__name__, function.__defaults__, closure
    )
    new.__kwdefaults__, new.__qualname__ = function.__kwdefaults__, function.__qualname__
    return new


def _copied(node):
    """A copy of a tree, with fewer calls under way than ``copy.deepcopy``."""
    if isinstance(node, list):
        return [_copied(x) if isinstance(x, ast.AST) else x for x in node]
    if not isinstance(node, ast.AST):
        return node
    new = type(node)(**{name: _copied(value) for name, value in ast.iter_fields(node)})
    return ast.copy_location(new, node)


def _compile(node, filename, free, name):
    node = _copied(node)
    if node.name == name and name not in free:
        # The factory must not hide the variable of that name which the body may read.
        node.name = f"_invar_{name}"
    node.decorator_list = []
    node.returns = None
    for arg in ast.walk(node.args):
        if isinstance(arg, ast.arg):
            arg.annotation = None
    new = _Function(filename, node).rewritten()
    # A factory around it makes its free variables free again.
    factory = ast.parse("def _factory(): pass").body[0]
    names = [*free, _RT]
    factory.args.args = [ast.arg(arg=name) for name in names]
    factory.body = [new, ast.Return(ast.Name(new.name, ast.Load()))]
    for part in (factory, *ast.walk(factory)):
        if hasattr(part, "lineno") or isinstance(part, (ast.stmt, ast.expr, ast.arg)):
            if not hasattr(part, "lineno"):
                ast.copy_location(part, node)
    factory.lineno = factory.end_lineno = node.lineno
    module = ast.Module([factory], [])
    ast.fix_missing_locations(module)
    code = compile(module, filename, "exec", dont_inherit=True)
    factory_code = next(c for c in code.co_consts if isinstance(c, types.CodeType))
    inner = next(
        c
        for c in factory_code.co_consts
        if isinstance(c, types.CodeType) and c.co_name == new.name
    )
    return inner, names


def _position(filename, node):
    return (
        filename, node.lineno, node.col_offset + 1, node.end_lineno, node.end_col_offset + 1,
    )  # fmt: skip


class _Function(ast.NodeTransformer):
    """Rewrites one function; inner functions have one of their own."""

    def __init__(self, filename, node):
        self.filename, self.node = filename, node
        self.count = 0
        self.loops = 0
        self.params = [
            a.arg
            for a in ast.walk(node.args)
            if isinstance(a, ast.arg)
        ]  # fmt: skip
        plain = self._plain_stores()
        #: Variables of others that it assigns, and its own; parts of others may be stored to, too.
        self.declared = _source.declared(node.body)
        self.locals = {*self.params, *plain}.difference(*self.declared.values())
        self.shadowed = []
        #: The names that the `finally` of each `try` around assigns, and those that it loads.
        self.finals = []
        #: The names that `:=` assigns; and how many lambdas of the author's are around.
        self.let, self.lambdas = {}, 0

    def _plain_stores(self):
        stores = []
        for name in _source.names(self.node.body, ast.Store):
            stores.append(name)
        parts = set()
        direct = set()
        for n in ast.walk(self.node):
            if isinstance(n, ast.Name) and isinstance(n.ctx, (ast.Store, ast.Del)):
                direct.add(n.id)
            if isinstance(n, (ast.FunctionDef, ast.ClassDef)):
                direct.add(n.name)
            if isinstance(n, (ast.Import, ast.ImportFrom)):
                direct.update((a.asname or a.name).partition(".")[0] for a in n.names)
            if _source.captured(n) is not None:
                direct.add(_source.captured(n))
        return [name for name in stores if name in direct and name not in parts]

    # -- making nodes --

    def at(self, node, like):
        """Gives a new tree the place of the node it stands for; parts with a place keep theirs."""
        for part in ast.walk(node):
            if isinstance(part, (ast.expr, ast.stmt, ast.arg, ast.keyword)) and not hasattr(
                part, "lineno"
            ):
                ast.copy_location(part, like)
        return node

    def runtime(self, name, *args, like):
        function = ast.Attribute(ast.Name(_RT, ast.Load()), name, ast.Load())
        return self.at(ast.Call(function, list(args), []), like)

    def thunk(self, body):
        empty = ast.arguments([], [], None, [], [], None, [])
        return self.at(ast.Lambda(empty, body), body)

    def fail(self, node, message):
        raise KernelError(message, _position(self.filename, node))

    # -- the function --

    def rewritten(self):
        node = self.node
        for part in ast.walk(node):
            if isinstance(part, (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await)):
                self.fail(part, "kernels have no `async`")
        self.maybe_undefined = sorted(self.locals - set(self.params))
        body = self.block(node.body)
        start = []
        for name in self.maybe_undefined:
            value = self.runtime("Undefined", ast.Constant(name), like=node.body[0])
            start.append(self.at(ast.Assign([ast.Name(name, ast.Store())], value), node.body[0]))
        lets = [self.let_function(name, like) for name, like in self.let.items()]
        node.body = self.declarations(node) + start + lets + body
        return node

    def let_function(self, name, like):
        """A function that assigns to a variable: an expression may stand in a function of its own."""
        value = ast.arguments([], [ast.arg("_invar_value")], None, [], [], None, [])
        kind = ast.Global if name in self.declared[ast.Global] else ast.Nonlocal
        assign = ast.Assign([ast.Name(name, ast.Store())], ast.Name("_invar_value", ast.Load()))
        return self.definition(f"_invar_let_{name}", value, [kind([name]), assign], like)

    def visit_NamedExpr(self, node):
        name = node.target.id
        value = self.visit(node.value)
        if self.lambdas:
            return self.at(ast.NamedExpr(node.target, value), node)
        self.let.setdefault(name, node)
        function = ast.Name(f"_invar_let_{name}", ast.Load())
        return self.runtime("let", ast.Constant(name), function, value, like=node)

    def visit_Delete(self, node):
        new = []
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id in self.locals:
                reason = ast.Constant("has been deleted: assign it again first")
                value = self.runtime("Undefined", ast.Constant(target.id), reason, like=node)
                name = ast.Name(target.id, ast.Store())
                new.append(self.at(ast.Assign([name], value), node))
            else:
                target = self.visit(target)
                if isinstance(target, (ast.Subscript, ast.Attribute)):
                    target.value = self.runtime("changing", target.value, like=node)
                new.append(self.at(ast.Delete([target]), node))
        return new

    def declarations(self, like):
        """The function's ``global`` and ``nonlocal`` statements, for it or for one of its blocks."""
        return [
            self.at(kind(list(dict.fromkeys(names))), like)
            for kind, names in self.declared.items()
            if names
        ]

    def visit_Global(self, node):
        # They stand at the start of each block's function.
        return self.at(ast.Pass(), node)

    visit_Nonlocal = visit_Global

    def block(self, statements):
        new = []
        for statement in statements:
            result = self.visit(statement)
            new.extend(result if isinstance(result, list) else [result])
            if isinstance(statement, (ast.Break, ast.Continue, ast.Return)):
                break
        return new

    def generic_visit(self, node):
        for field, old in ast.iter_fields(node):
            if isinstance(old, list) and old and all(isinstance(x, ast.stmt) for x in old):
                setattr(node, field, self.block(old))
            elif isinstance(old, list):
                setattr(node, field, [self.visit(x) if isinstance(x, ast.AST) else x for x in old])
            elif isinstance(old, ast.AST):
                setattr(node, field, self.visit(old))
        return node

    def visit_FunctionDef(self, node):
        node.args = self.generic_visit(node.args)
        for arg in ast.walk(node.args):
            if isinstance(arg, ast.arg):
                arg.annotation = None
        node.returns = None
        like, before, decorators = node, [], []
        for decorator in node.decorator_list:
            self.count += 1
            slot = f"_invar_decorator_{self.count}"
            value = self.visit(decorator)
            before.append(self.at(ast.Assign([ast.Name(slot, ast.Store())], value), decorator))
            decorators.append(ast.copy_location(ast.Name(slot, ast.Load()), decorator))
        defaults, kw_defaults = node.args.defaults, node.args.kw_defaults
        name = node.name
        # A generator runs as Python: its blocks cannot become functions.
        plain = _source.yields(node.body)
        inner = node if plain else _Function(self.filename, node).rewritten()
        inner.decorator_list = []
        inner.args.defaults, inner.args.kw_defaults = defaults, kw_defaults
        value = ast.Name(name, ast.Load())
        if not plain:
            value = self.runtime("converted", value, like=like)
        for decorator in reversed(decorators):
            decorator = self.runtime("unsaid", decorator, like=like)
            value = self.at(ast.Call(decorator, [value], []), like)
        return [*before, inner, self.at(ast.Assign([ast.Name(name, ast.Store())], value), like)]

    def visit_ClassDef(self, node):
        # Its body runs as Python.
        said = self.runtime("unsaid", ast.Constant(...), like=node)
        return [self.at(ast.Expr(said), node), node]

    def visit_FormattedValue(self, node):
        node = self.generic_visit(node)
        node.value = self.runtime("unsaid", node.value, like=node)
        return node

    def visit_Starred(self, node):
        node = self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            node.value = self.runtime("iterated", node.value, like=node)
        return node

    def visit_Lambda(self, node):
        self.shadowed.append({a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)})
        self.lambdas += 1
        node.body = self.visit(node.body)
        self.lambdas -= 1
        self.shadowed.pop()
        return node

    def _comprehension(self, node):
        names = {
            n.id
            for generator in node.generators
            for n in ast.walk(generator.target)
            if isinstance(n, ast.Name)
        }
        self.shadowed.append(names)
        node = self.generic_visit(node)
        self.shadowed.pop()
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_comprehension(self, node):
        node.iter = self.runtime("iterated", self.visit(node.iter), like=node.iter)
        node.ifs = [self.static(_FILTER, c) for c in node.ifs]
        return node

    # -- jumps --

    def visit_Return(self, node):
        value = [self.visit(node.value)] if node.value is not None else []
        return self.at(ast.Return(self.runtime("returns", *value, like=node)), node)

    def visit_Break(self, node):
        value = ast.Attribute(ast.Name(_RT, ast.Load()), "BREAK", ast.Load())
        return self.at(ast.Return(value), node)

    def visit_Continue(self, node):
        value = ast.Attribute(ast.Name(_RT, ast.Load()), "CONTINUE", ast.Load())
        return self.at(ast.Return(value), node)

    # -- statements --

    def parts(self, node, bodies, extra=()):
        """Functions for a statement's blocks, and its variables; gives definitions and names.

        What stands in a ``try`` uses the names of its ``finally`` too: a jump runs that.
        """
        self.count += 1
        number = self.count
        blocks = [s for _, _, body in bodies for s in body] + list(extra)
        stores = [*_source.names(blocks, ast.Store), *(n for names, _ in self.finals for n in names)]
        loads = [*_source.names(blocks, ast.Load), *(n for _, names in self.finals for n in names)]
        assigned = [n for n in dict.fromkeys(stores) if n in self.locals]
        loaded = [n for n in loads if n in self.locals]
        names = list(dict.fromkeys([*assigned, *loaded]))
        definitions = []
        nonlocals = [ast.Nonlocal(names)] if names else []
        for name, args, body in bodies:
            if name == "_invar_final":
                # It does not stand in its own `try`.
                self.finals.pop()
            new = self.block(body)
            arguments = ast.arguments([], [ast.arg(a) for a in args], None, [], [], None, [])
            new = nonlocals + self.declarations(node) + new
            definitions.append(self.definition(f"{name}_{number}", arguments, new, node))
        tuple_of = lambda ctx: ast.Tuple([ast.Name(n, ctx()) for n in names], ctx())
        empty = ast.arguments([], [], None, [], [], None, [])
        get = ast.Lambda(empty, tuple_of(ast.Load))
        value = ast.arguments([], [ast.arg("_invar_values")], None, [], [], None, [])
        body = [ast.Pass()]
        if names:
            assign = ast.Assign([tuple_of(ast.Store)], ast.Name("_invar_values", ast.Load()))
            body = [ast.Nonlocal(names), assign]
        set_name = f"_invar_set_{number}"
        definitions.append(self.definition(set_name, value, body, node))
        variables = self.runtime(
            "Variables",
            ast.Tuple([ast.Constant(n) for n in names], ast.Load()),
            ast.Tuple([ast.Constant(n) for n in assigned], ast.Load()),
            get,
            ast.Name(set_name, ast.Load()),
            like=node,
        )
        functions = [ast.Name(f"{name}_{number}", ast.Load()) for name, _, _ in bodies]
        return definitions, functions, variables

    def definition(self, name, args, body, like):
        options = {"type_params": []} if sys.version_info >= (3, 12) else {}
        node = ast.FunctionDef(name, args, body, [], None, None, **options)
        return self.at(node, like)

    def statement(self, call, node):
        """The call that stands for a statement, and what to do if it was left by a jump."""
        signal = f"_invar_signal_{self.count}"
        assign = ast.Assign([ast.Name(signal, ast.Store())], call)
        test = ast.Compare(ast.Name(signal, ast.Load()), [ast.IsNot()], [ast.Constant(None)])
        leave = ast.If(test, [ast.Return(ast.Name(signal, ast.Load()))], [])
        return [self.at(assign, node), self.at(leave, node)]

    def head(self, node, first):
        """The place of a statement's head: its reports point at what stands before its body."""
        place = ast.Pass()
        place.lineno, place.col_offset = node.lineno, node.col_offset
        place.end_lineno, place.end_col_offset = first.end_lineno, first.end_col_offset
        return place

    def visit_If(self, node):
        """A chain of ``elif`` is flat: each is a function that the one before calls."""
        like = self.head(node, node.test)
        chain = [node]
        while len(chain[-1].orelse) == 1 and isinstance(chain[-1].orelse[0], ast.If):
            chain.append(chain[-1].orelse[0])
        test, *tests = (self.visit(part.test) for part in chain)
        bodies = [(f"_invar_then_{i}", (), part.body) for i, part in enumerate(chain)]
        bodies.append(("_invar_else", (), chain[-1].orelse or [self.at(ast.Pass(), like)]))
        extra = [ast.Expr(part.test) for part in chain[1:]]
        definitions, functions, variables = self.parts(like, bodies, extra)
        number = self.count
        if tests:
            name = f"_invar_variables_{number}"
            definitions.append(self.at(ast.Assign([ast.Name(name, ast.Store())], variables), like))
            variables = ast.Name(name, ast.Load())
        rest = [f"_invar_elif_{number}_{i}" for i in range(len(tests))]
        after = [*(ast.Name(name, ast.Load()) for name in rest), functions[-1]]
        call = self.runtime("if_stmt", test, functions[0], after[0], variables, like=like)
        none = ast.arguments([], [], None, [], [], None, [])
        for i, name in enumerate(rest):
            part = chain[i + 1]
            place = self.head(part, part.test)
            value = self.runtime(
                "if_stmt", tests[i], functions[i + 1], after[i + 1], variables, like=place
            )
            body = [self.at(ast.Return(value), place)]
            definitions.append(self.definition(name, none, body, place))
        return definitions + self.statement(call, like)

    def visit_While(self, node):
        if node.orelse:
            self.fail(node.orelse[0], "kernels have no `else` of a loop: test after the loop instead")
        like = self.head(node, node.test)
        forever = isinstance(node.test, ast.Constant) and bool(node.test.value)
        loads = [ast.Expr(node.test)]
        definitions, functions, variables = self.parts(
            like, [("_invar_body", (), node.body)], extra=loads
        )
        test = self.thunk(self.visit(node.test))
        call = self.runtime(
            "while_stmt", test, *functions, variables, ast.Constant(forever), like=like
        )
        return definitions + self.statement(call, like)

    def visit_For(self, node):
        if node.orelse:
            self.fail(node.orelse[0], "kernels have no `else` of a loop: test after the loop instead")
        like = self.head(node, node.iter)
        item = ast.Name("_invar_item", ast.Load())
        assign = self.at(ast.Assign([node.target], item), node.target)
        loads = [ast.Expr(node.iter)]
        definitions, functions, variables = self.parts(
            like, [("_invar_body", ("_invar_item",), [assign, *node.body])], extra=loads
        )
        plain = ast.Constant(_source.changes_nothing(node.iter))
        iterable = self.thunk(self.visit(node.iter))
        call = self.runtime("for_stmt", iterable, plain, *functions, variables, like=like)
        return definitions + self.statement(call, like)

    def visit_Try(self, node):
        if not node.finalbody:
            return self.handled(node)
        jump = _source.leaving(node.finalbody)
        if jump is not None:
            self.fail(jump, "a jump cannot leave a `finally` of a kernel: write it behind the `try`")
        like = self.head(node, node)
        like.end_lineno, like.end_col_offset = node.lineno, node.col_offset + 3
        self.finals.append([_source.names(node.finalbody, kind) for kind in (ast.Store, ast.Load)])
        final, node.finalbody = node.finalbody, []
        body = [node] if node.handlers else node.body
        definitions, functions, variables = self.parts(
            like, [("_invar_try", (), body), ("_invar_final", (), final)]
        )
        call = self.runtime("finally_stmt", *functions, variables, like=like)
        return definitions + self.statement(call, like)

    def handled(self, node):
        """A ``try`` without ``finally``: Python's own exceptions are caught while the kernel is
        compiled; ours pass through."""
        self.count += 1
        mark = f"_invar_try_{self.count}"
        marked = ast.Assign([ast.Name(mark, ast.Store())], self.runtime("marked", like=node))
        node.body, node.orelse = self.block(node.body), self.block(node.orelse)
        for handler in node.handlers:
            start = [ast.Expr(self.runtime("caught", ast.Name(mark, ast.Load()), like=handler))]
            if handler.name is not None:
                # Python would delete the variable at the handler's end.
                name, handler.name = handler.name, f"_invar_exception_{self.count}"
                value = ast.Name(handler.name, ast.Load())
                start.append(ast.Assign([ast.Name(name, ast.Store())], value))
            start = [self.at(statement, handler) for statement in start]
            if handler.type is not None:
                handler.type = self.visit(handler.type)
            handler.body = start + self.block(handler.body)
        return [self.at(marked, node), node]

    def visit_With(self, node):
        """A block that may be a region of the kernel: names that it rebinds have no value after."""
        jump = _source.leaving(node.body)
        if jump is not None:
            self.fail(
                jump,
                "a jump cannot leave a `with` block in a kernel: write it with `if`, or set a variable in "
                "the block and jump behind it",
            )
        targets = _source.names([i.optional_vars for i in node.items if i.optional_vars], ast.Store)
        direct = {
            part.id
            for statement in node.body
            for part in ast.walk(statement)
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
        }
        rebound = sorted(direct & self.locals - set(targets))
        new, managers = [], []
        for item in node.items:
            self.count += 1
            name = f"_invar_with_{self.count}"
            managers.append(name)
            value = self.visit(item.context_expr)
            value = self.runtime("manager", value, like=item.context_expr)
            new.append(self.at(ast.Assign([ast.Name(name, ast.Store())], value), node))
            item.context_expr = self.at(ast.Name(name, ast.Load()), node)
        node.body = self.block(node.body)
        new.append(node)
        loads = ast.Tuple([ast.Name(name, ast.Load()) for name in managers], ast.Load())
        gone = []
        for name in rebound:
            value = self.runtime("rebound", ast.Constant(name), like=node)
            gone.append(ast.Assign([ast.Name(name, ast.Store())], value))
        if gone:
            new.append(self.at(ast.If(self.runtime("is_region", loads, like=node), gone, []), node))
        return new

    def static(self, what, node):
        """An expression that Python itself looks at, so that it must be known at compile time."""
        return self.runtime("static", ast.Constant(what), self.visit(node), like=node)

    def visit_Match(self, node):
        subject = self.static(_SUBJECT, node.subject)
        node.subject = self.runtime("unsaid", subject, like=node.subject)
        for case in node.cases:
            if case.guard is not None:
                case.guard = self.static(_GUARD, case.guard)
            case.body = self.block(case.body)
        return node

    def visit_Assert(self, node):
        node.test = self.static(_ASSERT, node.test)
        if node.msg is not None:
            node.msg = self.visit(node.msg)
        return node

    def visit_Raise(self, node):
        if node.exc is not None:
            node.exc = self.runtime("raised", self.visit(node.exc), like=node)
        return node

    def visit_Expr(self, node):
        value = self.visit(node.value)
        if isinstance(node.value, (ast.Name, ast.Attribute)):
            value = self.runtime("statement", value, like=node)
        node.value = value
        return node

    def visit_TryStar(self, node):
        self.fail(node, "kernels have no `except*`: they have no exceptions")

    # -- assignments --

    def visit_Assign(self, node):
        value = self.visit(node.value)
        simple = len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
        if simple:
            name = node.targets[0].id
            hint = self.runtime("hint", ast.Constant(name), like=node)
            value = self.runtime("named", hint, value, like=node)
            return self.at(ast.Assign(node.targets, value), node)
        if len(node.targets) == 1 and isinstance(node.targets[0], (ast.Subscript, ast.Attribute)):
            return self.store(node.targets[0], value, node)
        self.count += 1
        name = f"_invar_value_{self.count}"
        new = [self.at(ast.Assign([ast.Name(name, ast.Store())], value), node)]
        for target in node.targets:
            new.extend(self.unpack(target, ast.Name(name, ast.Load()), node))
        return new

    def unpack(self, target, value, node):
        """Assigns to a target of any make."""
        if isinstance(target, ast.Name):
            value = self.runtime("named", ast.Constant(target.id), value, like=node)
            return [self.at(ast.Assign([target], value), node)]
        if isinstance(target, (ast.Subscript, ast.Attribute)):
            return [self.store(target, value, node)]
        if isinstance(target, ast.Starred):
            return self.unpack(target.value, value, node)
        temporary, after = [], []
        for part in target.elts:
            self.count += 1
            name = f"_invar_part_{self.count}"
            slot = ast.Name(name, ast.Store())
            temporary.append(ast.Starred(slot, ast.Store()) if isinstance(part, ast.Starred) else slot)
            after.extend(self.unpack(part, ast.Name(name, ast.Load()), node))
        value = self.runtime("iterated", value, like=node)
        unpacked = ast.Assign([ast.Tuple(temporary, ast.Store())], value)
        return [self.at(unpacked, node), *after]

    def visit_AnnAssign(self, node):
        if node.value is None:
            return self.at(ast.Pass(), node)
        return self.visit(self.at(ast.Assign([node.target], node.value), node))

    def steps(self, target):
        """A target's root, and the steps from there to the part that is assigned."""
        steps = []
        while isinstance(target, (ast.Subscript, ast.Attribute)):
            steps.append(target)
            target = target.value
        made = []
        for number, step in enumerate(reversed(steps)):
            if isinstance(step, ast.Attribute):
                kind, key = "attribute", ast.Constant(step.attr)
            elif not number or isinstance(step.slice, ast.Constant):
                kind, key = "item", self.visit(step.slice)
            else:
                kind, key = "later", self.thunk(self.visit(step.slice))
            made.append(ast.Tuple([ast.Constant(kind), key], ast.Load()))
        return target, made

    def store(self, target, value, node, symbol=None):
        """A store to a part of something; with ``symbol`` an update of it."""
        root, steps = self.steps(target)
        if isinstance(root, ast.Name):
            root = ast.copy_location(ast.Name(root.id, ast.Load()), root)
        variable = isinstance(root, ast.Name) and not self.hidden(root.id)
        variable = variable and any(root.id in x for x in (self.locals, *self.declared.values()))
        again = ast.Constant(None)
        if variable:
            again = self.thunk(ast.copy_location(ast.Name(root.id, ast.Load()), root))
        loaded = self.visit(root)
        if symbol is None:
            call = self.runtime("store", value, loaded, again, *steps, like=node)
        else:
            value = self.thunk(value)
            symbol = ast.Constant(symbol)
            call = self.runtime("update", symbol, value, loaded, again, *steps, like=node)
        if variable:
            return self.at(ast.Assign([ast.Name(root.id, ast.Store())], call), node)
        return self.at(ast.Expr(call), node)

    def visit_AugAssign(self, node):
        symbol = _AUGMENTED_SYMBOLS[type(node.op)]
        value = self.visit(node.value)
        if not isinstance(node.target, ast.Name):
            return self.store(node.target, value, node, symbol)
        name = node.target.id
        old = self.visit(ast.copy_location(ast.Name(name, ast.Load()), node.target))
        value = self.runtime("binary", ast.Constant(symbol), old, value, like=node)
        value = self.runtime("named", ast.Constant(name), value, like=node)
        return self.at(ast.Assign([ast.Name(name, ast.Store())], value), node)

    # -- expressions --

    def hidden(self, name):
        return any(name in names for names in self.shadowed)

    def visit_Name(self, node):
        if isinstance(node.ctx, ast.Load) and node.id in self.locals and not self.hidden(node.id):
            return self.runtime("load", node, like=node)
        return node

    def visit_BoolOp(self, node):
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        return self.runtime(name, *(self.thunk(self.visit(v)) for v in node.values), like=node)

    def visit_UnaryOp(self, node):
        if isinstance(node.op, ast.Not):
            return self.runtime("not_", self.visit(node.operand), like=node)
        if isinstance(node.operand, ast.Constant):
            return node
        symbol = ast.Constant(_UNARY_SYMBOLS[type(node.op)])
        return self.runtime("unary", symbol, self.visit(node.operand), like=node)

    def visit_BinOp(self, node):
        symbol = ast.Constant(_AUGMENTED_SYMBOLS[type(node.op)][:-1])
        return self.runtime("operate", symbol, self.visit(node.left), self.visit(node.right), like=node)

    def visit_Attribute(self, node):
        node = self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            return node
        return self.runtime("attribute", node.value, ast.Constant(node.attr), like=node)

    def visit_Compare(self, node):
        if len(node.ops) == 1 and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            left, right = self.visit(node.left), self.visit(node.comparators[0])
            found = self.runtime("contains", left, right, like=node)
            return found if isinstance(node.ops[0], ast.In) else self.runtime("not_", found, like=node)
        if len(node.ops) == 1 and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            symbol = ast.Constant(_COMPARE_SYMBOLS[type(node.ops[0])])
            sides = self.visit(node.left), self.visit(node.comparators[0])
            return self.runtime("identity", symbol, *sides, like=node)
        if len(node.ops) == 1:
            symbol = ast.Constant(_COMPARE_SYMBOLS[type(node.ops[0])])
            sides = self.visit(node.left), self.visit(node.comparators[0])
            return self.runtime("operate", symbol, *sides, like=node)
        symbols = [ast.Constant(_COMPARE_SYMBOLS[type(o)]) for o in node.ops]
        return self.runtime(
            "compare",
            ast.Tuple(symbols, ast.Load()),
            self.visit(node.left),
            *(self.thunk(self.visit(c)) for c in node.comparators),
            like=node,
        )

    def visit_IfExp(self, node):
        return self.runtime(
            "if_exp",
            self.visit(node.test),
            self.thunk(self.visit(node.body)),
            self.thunk(self.visit(node.orelse)),
            like=node,
        )

    def visit_Subscript(self, node):
        node = self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            return node
        key = node.slice
        if any(isinstance(part, (ast.Slice, ast.Starred)) for part in getattr(key, "elts", (key,))):
            node.value = self.runtime("unsaid", node.value, like=node)
            return node
        return self.runtime("item", node.value, key, like=node)

    def visit_Call(self, node):
        if isinstance(node.func, ast.Name) and node.func.id in ("super", "locals", "globals"):
            if node.func.id == "super" and not node.args and self.params:
                # A block's function has no first parameter for it.
                node.args = [ast.Name("__class__", ast.Load()), ast.Name(self.params[0], ast.Load())]
                return self.at(node, node)
            return self.generic_visit(node)
        node = self.generic_visit(node)
        function = ast.Attribute(ast.Name(_RT, ast.Load()), "call", ast.Load())
        return self.at(ast.Call(function, [node.func, *node.args], node.keywords), node)


_KNOWN_LATER = "a traced value, known only when the kernel runs: "
_FILTER = (
    f"the `if` of a comprehension is {_KNOWN_LATER}write a conditional expression for the element, as "
    "in `[x if keep else 0 for x in xs]`"
)
_SUBJECT = f"`match` of {_KNOWN_LATER}write `if`"
_GUARD = f"the guard of a `case` is {_KNOWN_LATER}write `if` in its body"
_ASSERT = (
    f"`assert` of {_KNOWN_LATER}kernels have no exceptions; write to a buffer what went wrong, or "
    "leave bounds and races to iv.check(...)"
)
_AUGMENTED_SYMBOLS = {
    ast.Add: "+=", ast.Sub: "-=", ast.Mult: "*=", ast.Div: "/=", ast.FloorDiv: "//=",
    ast.Mod: "%=", ast.Pow: "**=", ast.BitAnd: "&=", ast.BitOr: "|=", ast.BitXor: "^=",
    ast.LShift: "<<=", ast.RShift: ">>=", ast.MatMult: "@=",
}  # fmt: skip
_UNARY_SYMBOLS = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~"}
_COMPARE_SYMBOLS = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
