"""What a kernel's code calls: its own functions, which are compiled in the place of the call, methods
that Python's operators stand for, and functions of others.

A function of the author's is compiled from its source, also where a function of Python's calls it
(``map``, ``functools.reduce``). Functions of Python, NumPy and packages run when the kernel is
compiled. In a branch or loop of the kernel only those run of which it is known that they change
nothing (``_harmless``).

Absent: generators, and methods that compiled code calls (``sorted``); those run as Python.
"""

from __future__ import annotations

import ast
import builtins
import copy
import functools
import operator
import types

import numpy as np

from . import _control, _ops, _trace, _values, _views
from ._control import check_change, in_region, joined, remember, store
from ._errors import Error, KernelError
from ._operators import BINARY, COMPARISONS, UNARY
from ._syntax import definition, own, own_class, position, scope
from ._values import Elements, Memory, Place, Undefined, Value
from .layout import Layout, SwizzledLayout

#: So many calls of one function may be under way in each other.
MAX_DEPTH = 24


class Environment:
    """The variables of a function, or of a comprehension in one."""

    def __init__(self, names, parent, function):
        self.names, self.parent, self.function = names, parent, function
        self.variables = _control.Variables()
        #: The names, if it is of a comprehension: other assignments are of the function around.
        self.hidden_names = None

    def place(self, name):
        """Where a variable stands, as a container and a key; ``None`` if it is nowhere."""
        around = self
        while around is not None:
            if name in around.names:
                return around.variables, name
            if name in around.function.scope.globals:
                break
            around = around.parent
        function = self.function
        cell = None if around else function.closure.get(name)
        if cell is not None:
            return cell, "cell_contents"
        return (function.space, name) if name in function.space else None


class Function:
    """A function of the author's as its source, with the variables around it."""

    #: What compiles a function's tree with an environment: ``_compile`` sets it.
    run = None

    def __init__(self, node, filename, name, outer, space, defaults, kw_defaults, closure=None):
        self.node, self.filename, self.outer, self.space = node, filename, outer, space
        self.__name__ = self.__qualname__ = name
        self.__defaults__, self.__kwdefaults__ = defaults, kw_defaults
        self.scope, self.closure = scope(node), closure or (outer.function.closure if outer else {})
        self.__wrapped__ = None

    @staticmethod
    def of(function):
        """A Python function as its source."""
        node, filename = definition(function)
        closure = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
        return Function(
            node, filename, function.__name__, None, function.__globals__,
            function.__defaults__ or (), function.__kwdefaults__ or {}, closure,
        )  # fmt: skip

    def __call__(self, *args, **kwargs):
        return inline(self, args, kwargs)

    def __get__(self, instance, owner):
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self):
        return f"<function {self.__name__}>"

    def bind(self, args, kwargs):
        """The parameters with the arguments of a call."""
        try:
            return self._binder(*args, **kwargs)
        except TypeError as e:
            raise _trace.error(str(e)) from None

    @functools.cached_property
    def _binder(self):
        """A function of Python's with the same parameters, which gives them by their names: arguments
        are bound, and refused, as Python does it."""
        tree, a = ast.parse("lambda: locals()", mode="eval"), self.node.args
        no_defaults = [None] * len(a.kwonlyargs)
        tree.body.args = ast.arguments(
            a.posonlyargs, a.args, a.vararg, a.kwonlyargs, no_defaults, a.kwarg, []
        )
        binder = eval(compile(tree, self.filename, "eval"))
        # Python says the one or the other name.
        binder.__code__, binder.__qualname__ = binder.__code__.replace(co_name=self.__name__), self.__name__
        binder.__defaults__, binder.__kwdefaults__ = tuple(self.__defaults__), dict(self.__kwdefaults__)
        return binder


def inline(function, args, kwargs):
    """Compiles a function in the place of its call; gives what it returns."""
    t = _trace.current()
    name, place, outer = function.__name__, t.place, t.call
    if sum(known is function.node for known in t.functions) == MAX_DEPTH:
        raise _trace.error(
            f"`{name}` calls itself, {MAX_DEPTH} calls deep: kernels have no recursion but what "
            "compile-time values end; write a loop"
        )
    if function.scope.is_generator:
        raise _trace.error(
            f"`{name}` is a generator, which a kernel cannot run step by step: give a list instead"
        )
    if function.scope.refused is not None:
        node, why = function.scope.refused
        raise KernelError(why, position(function.filename, node))
    bound = function.bind(args, kwargs)
    frame = _control.Frame("function", function.scope.jumps & {"return"}, f"the function `{name}`")
    here = _trace.here()
    t.frames.append(frame)
    t.functions.append(function.node)
    if here is not None:
        t.call = t.builder.call(name, t.span(here))
    signal = Function.run(function, bound)
    t.call, t.place = outer, place
    _, value = _control.leave_frame(frame, signal)
    t.functions.pop()
    t.place = place
    return value


# ---- calls ----


def call(function, args, kwargs):
    """A call in a kernel's code."""
    t = _trace.current()
    if isinstance(function, (Value, Memory, Place)):
        raise _trace.error(f"{_values.describe(function)} is no function to call")
    if isinstance(function, Function):
        return inline(function, args, kwargs)
    if isinstance(function, functools.partial):
        return call(function.func, (*function.args, *args), {**function.keywords, **kwargs})
    if isinstance(function, types.MethodType) and not isinstance(function.__self__, types.ModuleType):
        inner = function.__func__
        if isinstance(inner, (Function, functools.partial)) or own(inner):
            return call(inner, (function.__self__, *args), kwargs)
    replaced = _BUILTINS.get(function) if isinstance(function, _HASHED) else None
    if replaced is not None:
        return replaced(function, args, kwargs)
    if isinstance(function, (Layout, SwizzledLayout)):
        return _views.called(function, args, kwargs)
    kernel = getattr(function, "__invar_kernel__", None)
    if kernel is not None:
        raise _trace.error(
            f"kernel `{kernel}` is called in a kernel: take @iv.kernel off what kernels share"
        )
    target = function.__wrapped__ if hasattr(function, "cache_info") else function
    if isinstance(target, types.FunctionType) and own(target):
        t.reads.function(target)
        if target.__code__.co_flags & (0x20 | 0x80 | 0x200):
            raise _trace.error(
                f"`{target.__name__}` is a generator, which a kernel cannot run step by step: give a "
                "list instead"
            )
        source = written(target)
        if source is not None:
            return inline(source, args, kwargs)
        if _traced((*args, *kwargs.values())):
            raise _trace.error("the source of this lambda cannot be told: write it with `def`")
    method = _made_by(function)
    if method is not None:
        if not isinstance(function, type):
            return call(method, (function, *args), kwargs)
        t.reads.attribute(function, "__init__")
        made = remember(object.__new__(function))
        call(method, (made, *args), kwargs)
        return made
    return foreign(function, args, kwargs)


_HASHED = (types.BuiltinFunctionType, type)


def written(function):
    """A function of the author's as its source; ``None`` for a lambda whose source cannot be told."""
    if isinstance(function, Function):
        return function
    if not isinstance(function, types.FunctionType) or not own(function):
        return None
    code = function.__code__
    if code.co_name != "<lambda>" and not code.co_filename.startswith("<"):
        return Function.of(function)
    try:
        return Function.of(function)
    except KernelError:
        return None


def _made_by(function):
    """The author's method that a call of an object or class runs, or ``None``."""
    if isinstance(function, type):
        plain = type(function) is type and function.__new__ is object.__new__
        found = function.__init__ if plain and own(function) else None
    else:
        found = getattr(type(function), "__call__", None) if own(type(function)) else None
    has_text = isinstance(found, types.FunctionType) and not found.__code__.co_filename.startswith("<")
    return found if has_text or isinstance(found, Function) else None


def _named(function):
    module = getattr(function, "__module__", None)
    name = getattr(function, "__qualname__", None) or type(function).__name__
    return f"{module}.{name}" if module not in (None, "builtins", "__main__") else name


def foreign(function, args, kwargs):
    """A call of what is not the kernel's own code: it runs when the kernel is compiled."""
    t = _trace.current()
    _check_foreign(function, args)
    holder = getattr(function, "__self__", None)
    random = getattr(type(holder), "__module__", None) if holder is not None else None
    for module in (getattr(function, "__module__", None) or "", random or ""):
        if module == "random" or module.startswith("numpy.random"):
            raise _trace.error(
                f"{_named(function)}() gives one number when the kernel is compiled, the same for all "
                "threads and launches: pass random numbers in a buffer"
            )
    harmless = _harmless(function, holder) and "out" not in kwargs
    for x in () if harmless else args:
        if id(x) in t.frozen:
            raise _trace.error(t.frozen[id(x)][1])
    if in_region():
        for x in (*args, *kwargs.values()):
            check_iterator(x)
            # What is handed over is called, as by `map`.
            while isinstance(x, functools.partial):
                x = x.func
            if isinstance(x, (types.BuiltinFunctionType, types.MethodWrapperType)):
                harmless = harmless and _harmless(x, getattr(x, "__self__", None))
    if in_region() and not harmless:
        raise _trace.error(
            f"`{_named(function)}()` is called in a branch or loop of the kernel, but is none of the "
            "kernel's code: it runs when the kernel is compiled, whichever threads come here; call it "
            "before the branch or loop, and use what it gives"
        )
    args = tuple(
        written(x) or x if isinstance(x, types.FunctionType) and own(x) else x for x in args
    )
    for x in args:
        t.reads.note(x)
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
    if isinstance(function, type) or any(function is x for x in _MAKERS):
        if not any(result is x for x in args) and type(result) not in (int, float, bool, str):
            remember(result)
    elif getattr(function, "__name__", None) == "copy":
        remember(result)
    return result


#: Functions that make an object.
_MAKERS = (sorted, iter, copy.copy, copy.deepcopy)
#: Of types that change, their like that does not: what has no method there changes the object.
_LIKE = {list: tuple, dict: types.MappingProxyType, set: frozenset, bytearray: bytes}
_KEEPING = {"copy", "fromkeys", "__reversed__"}
#: Types by which methods of theirs change the object, or more.
_METHODS = {
    cls: {*dir(cls), "__init__", "__ior__"} - (set(dir(like)) - {"__init__", "__ior__"}) - _KEEPING
    for cls, like in _LIKE.items()
}
_METHODS[np.ndarray] = {
    *"fill sort put resize partition itemset setfield setflags byteswap tofile dump".split(),
    *(f"__{name}__" for name in "setitem delitem setstate init".split()),
    *(name for name in dir(np.ndarray) if name[:3] == "__i" and hasattr(np.ndarray, f"__{name[3:]}")),
}  # fmt: skip
_METHODS.update(dict.fromkeys((str, bytes, tuple, frozenset, int, float, complex, range, bool), ()))
#: Functions that change nothing, nor take from an iterator that is older.
_PURE = {
    getattr(builtins, name)
    for name in "abs all any ascii bin callable chr divmod filter format getattr hasattr hash hex id "
    "isinstance issubclass iter len map max min oct ord pow repr round sorted sum type vars zip".split()
}
_MODULES = ("math", "cmath", "numpy", "functools", "itertools", "ml_dtypes", "dataclasses", "copy")
_CHANGING = {"setitem", "delitem", "copyto", "put", "place", "putmask", "fill_diagonal", "setattr"}


def _harmless(function, holder):
    """Whether a call is sure to change nothing of Python's; raises for one that would change an
    object that may not change here."""
    name = getattr(function, "__name__", "")
    module = (getattr(function, "__module__", None) or "").partition(".")[0]
    if function is next:
        return True
    if holder is not None and not isinstance(holder, types.ModuleType):
        for cls, changing in _METHODS.items():
            if isinstance(holder, cls):
                if name in changing:
                    kind = type(holder).__name__
                    check_change(
                        holder,
                        f"`{name}()` changes a Python {kind}",
                        "give a list its full length before, and assign its elements, or keep values "
                        "in iv.thread_alloc(...)",
                    )
                return True
        if module == "invar" or (type(holder).__module__ or "").partition(".")[0] in ("invar", "numpy"):
            return True
        return type(holder).__module__ in ("enum", "re")
    if isinstance(function, type):
        return True
    if module in ("invar", "layout", "_invar") or isinstance(function, np.ufunc):
        return True  # What the extension makes is of its own modules.
    if function in _PURE if isinstance(function, types.BuiltinFunctionType) else False:
        return True
    if module in ("operator", "_operator"):
        return name not in _CHANGING and not name.startswith("i") or name in ("index", "inv", "invert")
    if type(function).__module__.partition(".")[0] in ("operator", "invar"):
        return True
    return module in _MODULES and name not in _CHANGING


def _traced(args):
    return any(isinstance(a, (Value, Elements)) for a in args)


# ---- builtins that mean something else in a kernel ----


def _fold(name):
    def run(function, args, kwargs):
        items = list(args[0]) if len(args) == 1 else list(args)
        if not _traced(items):
            return foreign(function, args if len(args) > 1 else (items,), kwargs)
        if "key" in kwargs:
            raise _trace.error(
                f"{function.__name__}(key=...) of traced values: compare the keys, as in "
                "`a if key(a) < key(b) else b`"
            )
        return functools.reduce(lambda a, b: _values.binary(name, a, b, name), items)

    return run


_PLAIN_ITEMS = (list, tuple, dict, set, frozenset, range, str, np.ndarray, Value)


def _any_or_all(name):
    def run(function, args, kwargs):
        if len(args) != 1 or kwargs or isinstance(args[0], Memory):
            return function(*args, **kwargs)
        if not isinstance(args[0], _PLAIN_ITEMS):
            return joined(name, args[0], f"{function.__name__}()", lambda x: x)
        items, settles = [], name == "or"
        for x in args[0]:
            x = _values.plain(x)
            items.append(x if isinstance(x, (Value, Elements, Undefined)) else bool(x))
            if items[-1] is settles:
                break  # As Python does, which takes no more.
        if not _traced(items):
            return function(items)
        return _control.logical(name, [lambda x=x: x for x in items])

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
    return foreign(function, args, kwargs)


def check_iterator(items):
    """Refuses to take from an iterator that is older than the branch or loop."""
    if hasattr(type(items), "__next__"):
        check_change(
            items, "an iterator moves on", "take its values before, into a list, and go through that"
        )


def _pow(function, args, kwargs):
    if len(args) + len(kwargs) > 2 and _traced((*args, *kwargs.values())):
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


def _getattr(function, args, kwargs):
    try:
        return attribute(*args[:2])
    except AttributeError:
        if len(args) < 3:
            raise
        return args[2]


def _hasattr(function, args, kwargs):
    try:
        attribute(*args)
    except AttributeError:
        return False
    return True


def _setattr(function, args, kwargs):
    set_attribute(*args)


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
    builtins.getattr: _getattr,
    builtins.hasattr: _hasattr,
    builtins.setattr: _setattr,
}
#: What to write instead of a builtin that takes no value of the kernel.
_INSTEAD = {
    builtins.range: "for a loop in the kernel write iv.range(...)",
    builtins.int: "write iv.i32(...)",
    builtins.float: "write iv.f32(...)",
    builtins.bool: "compare it, as in `x != 0`; of several take any(...) or all(...)",
    builtins.divmod: "write `a // b` and `a % b`, which truncate",
    builtins.round: "write iv.round(...) or iv.rint(...)",
    builtins.print: "a kernel prints with iv.print(\"x is {}\", x)",
}
#: What functions of NumPy and of `math` are called here, where the names differ.
_OURS = {
    "absolute": "abs", "fabs": "abs", "maximum": "max", "minimum": "min", "power": "pow",
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "where": "select",
    "clip": "clamp", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
}  # fmt: skip


def _check_foreign(function, args):
    """Refuses traced values where a function of Python, NumPy or ``math`` needs numbers."""
    if not _traced(args):
        return
    name = getattr(function, "__name__", "")
    if isinstance(function, _HASHED) and function in _INSTEAD:
        raise _trace.error(f"{name}() of a traced value: {_INSTEAD[function]}")
    module = getattr(function, "__module__", None)
    numpy = isinstance(function, np.ufunc) or module == "numpy" and name in _OURS
    if not numpy and module not in ("math", "cmath"):
        return
    ours = _OURS.get(name, name)
    advice = f"write iv.{ours}(...)" if ours in _ops.GENERATED else "write it with functions of iv"
    raise _trace.error(
        f"{'np' if numpy else module}.{name}() of a traced value runs when the kernel is compiled: {advice}"
    )


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
    raise TypeError(
        f"unsupported operand type(s) for {symbol}: '{type(left).__name__}' and "
        f"'{type(right).__name__}'"
    )


def in_place(symbol, left, right):
    """What ``left += right`` makes of ``left``."""
    name = f"__i{BINARY[symbol].method[2:]}"
    found = method(left, name)
    if found is not None:
        result = call(found, (left, right), {})
        return binary(symbol, left, right) if result is NotImplemented else result
    if isinstance(left, Value) or not hasattr(type(left), name):
        return binary(symbol, left, right)
    if isinstance(left, np.ndarray) and _traced((right,)):
        raise _trace.error(ARRAY_ADVICE)
    check_change(
        left,
        f"`{symbol}=` changes a Python {type(left).__name__}",
        f"write `a = a {symbol} b`, which makes another",
    )
    return getattr(operator, name)(left, right)


ARRAY_ADVICE = (
    "an array of NumPy holds no values of the kernel: keep what changes in a list, or in "
    "iv.thread_alloc(...)"
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


def attribute(base, name):
    """``base.name``: a property is a call."""
    cls, t = type(base), _trace.current()
    if cls in _PLAIN and cls is not types.ModuleType:
        return getattr(base, name)
    if own_class(cls):
        found = getattr(cls, name, None)
        if isinstance(found, property) and written(found.fget) is not None:
            t.reads.attribute(cls, name)
            return call(found.fget, (base,), {})
        if isinstance(found, functools.cached_property) and written(found.func) is not None:
            if name not in base.__dict__:
                result = call(found.func, (base,), {})
                check_change(base, f"`{name}` is computed and kept", "read it once before")
                store(base.__dict__, name, result)
            return base.__dict__[name]
        space = getattr(base, "__dict__", base)
        _control.read(space, name)
    t.reads.attribute(base, name)
    return getattr(base, name)


def set_attribute(base, name, value):
    """``base.name = value``."""
    cls, instead = type(base), "keep it in a variable of the kernel"
    if _ours(base):
        setattr(base, name, value)
        return
    if isinstance(base, (type, types.ModuleType)):
        check_change(base, f"`{base.__name__}.{name}` is assigned", instead)
        setattr(base, name, value)
        return
    setter = method(base, "__setattr__")
    found = getattr(cls, name, None)
    if setter is not None:
        call(setter, (base, name, value), {})
    elif isinstance(found, property) and found.fset is not None and written(found.fset) is not None:
        call(found.fset, (base, value), {})
    elif own_class(cls) and not dataclass_frozen(cls):
        space = getattr(base, "__dict__", None)
        slot = space is None or hasattr(found, "__set__")
        if _control.get(base if slot else space, name) is _control.MISSING:
            check_change(
                base,
                f"the attribute `{name}` of an object begins",
                "make it an attribute of the object before",
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
        if _traced((value, *(key if isinstance(key, tuple) else (key,)))):
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
        if key not in base:
            check_change(base, f"a key is added to a Python {kind}", "make it with all its keys before")
        store(base, key, value)
    else:
        what, instead = "an element", "keep what changes in a list, or in iv.thread_alloc(...)"
        if isinstance(base, list):
            what, instead = "a slice", "assign its elements one by one"
        check_change(base, f"{what} of a Python {kind} is assigned", instead)
        base[key] = value


def identity(symbol, a, b):
    """``a is b`` and ``a is not b``, which Python answers when the kernel is compiled."""
    for one, other in ((a, b), (b, a)):
        if isinstance(one, Value) and _values.is_number(other):
            advice = "`x == True`, or `x`" if isinstance(other, bool) else f"`x == {other}`"
            raise _trace.error(
                f"`{symbol}` of a traced {one.type} and {other} asks when the kernel is compiled: "
                f"write {advice}"
            )
    return (a is b) == (symbol == "is")


_SEARCHED = (type({}.values()), type({}.keys()), type({}.items()))
_LAZY = (map, filter, zip, enumerate, reversed, types.GeneratorType)


def contains(item, holder):
    """``item in holder``: of a traced value, or among such, any of the comparisons."""
    found = method(holder, "__contains__")
    if found is not None:
        return _control.truth(call(found, (holder, item), {}))
    if isinstance(holder, _LAZY):
        return joined("or", holder, "`in`", lambda x: binary("==", x, item))
    if isinstance(holder, _SEARCHED):
        holder = list(holder)
    if isinstance(item, Value) and isinstance(holder, (set, frozenset, dict)):
        holder = list(holder)
    if isinstance(item, Value) and isinstance(holder, range) and holder.step == 1:
        return _control.and_(lambda: item >= holder.start, lambda: item < holder.stop)
    if isinstance(holder, (list, tuple)) and _traced((item, *holder)):
        tests = [lambda x=x: item == x for x in holder]
        return _control.logical("or", tests) if tests else False
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
