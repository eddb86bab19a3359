"""Calls of code that is not the kernel's own: of Python, NumPy and packages. They run when the kernel is
compiled.

In a branch or loop of the kernel only what is listed here runs, as it changes nothing that is older than the
branch: certain functions, classes and methods. What the author hands over to be called, as to ``map``, is
compiled there; arrays are handed over as ones that cannot be written. What a call gives may be changed there only
if it is sure to be new and to share nothing with what is older (``owns``).

Absent: methods of the author's that Python's own code calls by itself (``__lt__`` in ``sorted``,
``__post_init__``), which run as Python.
"""

from __future__ import annotations

import builtins
import collections
import copy
import decimal
import enum
import fractions
import functools
import operator
import re
import sys
import types

import numpy as np

from . import _ops, _trace
from ._control import check_change, check_identity, check_met, in_region, remember
from ._errors import Error
from ._functions import written
from ._syntax import own
from ._values import Elements, Memory, Value, _Still


def traced(args):
    """Whether values of the kernel are among some arguments."""
    return any(isinstance(a, (Value, Elements)) for a in args)


def _name(function):
    names = (getattr(function, name, None) for name in ("__qualname__", "__name__"))
    return next(filter(None, names), type(function).__name__)


def _named(function):
    module = _module(function).lstrip("_")  # `_operator` is what `operator` is made of.
    return f"{module}.{_name(function)}" if module not in ("", "builtins", "main__") else _name(function)


def foreign(function, args, kwargs):
    """A call of what is not the kernel's own code."""
    t = _trace.current()
    _check_values(function, args)
    _check_class(function, args, kwargs)
    holder = getattr(function, "__self__", None)
    for module in (_module(function), _module(type(holder))):
        if module == "random" or module.startswith("numpy.random"):
            raise _trace.error(
                f"{_named(function)}() gives one number when the kernel is compiled, the same for all "
                "threads and launches: pass random numbers in a buffer"
            )
    if not _is_harmless(function) or "out" in kwargs:
        for x in args:
            check_met(x)
        if in_region():
            raise _refusal(function)
    identified = any(function is x for x in (builtins.id, builtins.hash))
    if identified or isinstance(holder, (list, tuple, dict, set, frozenset)):
        check_identity(*args, always=function is builtins.id)
    for x in args:
        t.reads.note(x)
    made, run = None, function
    if in_region():
        # What is read-only here, as its array.
        made = {}
        if isinstance(holder, np.ndarray):
            run = getattr(_guarded(holder, made), function.__name__)
    args = [_handed(function, x, made) for x in args]
    kwargs = {name: _handed(function, x, made, name == "key") for name, x in kwargs.items()}
    try:
        result = run(*args, **kwargs)
    except (TypeError, ValueError) as e:
        if made is not None and "read-only" in str(e):
            if isinstance(holder, np.ndarray):
                check_changing_method(holder, function.__name__)
            raise _refusal(function) from None
        held = [x for a in args if isinstance(a, (list, tuple)) for x in a]
        if isinstance(e, Error) or not traced((*args, *kwargs.values(), *held)):
            raise
        raise _trace.error(
            f"{_name(function)}() of a traced value, which is known only when the kernel runs: {e}"
        ) from e
    if made and id(result) in made:
        return made[id(result)][1]
    if _is_new(function, args, result):
        remember(result)
    return result


def _refusal(function):
    return _trace.error(
        f"`{_named(function)}()` is called in a branch or loop of the kernel, but is not part of the "
        "kernel's code: it runs when the kernel is compiled, whichever threads come here; call it "
        "before the branch or loop, and use what it gives"
    )


# ---- what is handed over ----

#: Functions that call what they are given.
_CALLERS = (map, filter, sorted, min, max, iter, functools.reduce)


def _handed(function, x, made, is_key=False):
    """An argument as the call gets it."""
    if isinstance(x, types.FunctionType) and own(x):
        return written(x) or x
    if made is None:
        return x
    check_iterator(x)
    if isinstance(x, np.ndarray):
        return _guarded(x, made)
    if isinstance(x, functools.partial):
        held = {name: _handed(function, value, made) for name, value in x.keywords.items()}
        held_first = (_handed(function, value, made) for value in x.args)
        return functools.partial(_handed(function, x.func, made, is_key), *held_first, **held)
    if isinstance(x, types.MethodType) and own(x.__func__):
        return types.MethodType(written(x.__func__) or x.__func__, x.__self__)
    called = is_key or any(function is caller for caller in _CALLERS)
    asks = isinstance(function, types.BuiltinFunctionType) and _module(function) == "builtins"
    calls = called or not asks and function is not functools.partial
    if called and isinstance(x, type) or calls and isinstance(x, _COMPILED) and x is not _again:
        return functools.partial(_again, x)
    if called and own(type(x)):
        method = written(getattr(type(x), "__call__", None))
        return x if method is None else types.MethodType(method, x)
    return x


def _again(function, *args, **kwargs):
    return foreign(function, args, kwargs)


def _guarded(array, made):
    """An array as one that cannot be written, if it is older than the branch or loop."""
    t = _trace.current()
    known = t.made.get(id(array))
    if known is not None and known[1] is t.regions[-1] or not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    made[id(view)] = view, array
    return view


def check_iterator(items):
    """Refuses to take from an iterator that is older than the branch or loop."""
    if hasattr(type(items), "__next__"):
        check_change(items, "an iterator moves on", "take its values before, into a list, and go through that")


def check_changing_method(holder, name):
    """Refuses a method that changes an object which may not change here."""
    instead = "give a list its full length before, and assign its elements"
    if isinstance(holder, dict):
        instead = "make it with all its keys before, and assign their values"
    elif isinstance(holder, set):
        instead = "keep a list with a bool for each thing that it may hold"
    elif not isinstance(holder, list):
        instead = "keep what changes in a list"
    check_change(
        holder,
        f"`{name}()` changes a Python {type(holder).__name__}",
        f"{instead}, or keep values in iv.thread_alloc(...)",
    )


def _check_class(function, args, kwargs):
    """Refuses a call that makes a class."""
    if not isinstance(function, type) or len(args) + len(kwargs) < 2 or not args:
        return
    if issubclass(function, type) or issubclass(function, enum.Enum) and not len(function):
        raise _trace.error(f"the class `{args[0]}` is made in a kernel: write it outside of the kernel")


# ---- what is new ----

#: Functions that make an object.
_MAKERS = (sorted, iter, copy.copy, copy.deepcopy)
#: Classes whose objects are new when they are made, and are all that a change of them changes.
_OWNERS = {
    object, list, tuple, dict, set, frozenset, bytearray, np.ndarray, types.SimpleNamespace,
    collections.deque, collections.OrderedDict, collections.defaultdict, collections.Counter,
    collections.UserDict, collections.UserList, collections.UserString,
}  # fmt: skip
#: Modules of classes without anything of their own, which others derive from.
_BASES = ("abc", "typing", "typing_extensions", "collections.abc")
#: Modules of iterators that are new when they are made.
_ITERATORS = ("builtins", "itertools", "collections")
#: Methods by which an author's class may say what a copy is.
_COPYING = ("__copy__", "__deepcopy__", "__reduce__", "__reduce_ex__", "__setstate__")


def owns(cls, ignored=("__init__",)):
    """Whether an object of a class is new when it is made, and is all that a change of it changes: nothing
    that it is made of says otherwise, but methods that are ``ignored``."""
    if getattr(type(cls), "__call__", None) is not type.__call__:
        return False
    return all(_adds_owned(base, ignored) for base in cls.__mro__)


def _adds_owned(base, ignored):
    if base in _OWNERS or _module(base) in _BASES:
        return True
    if not own(base):
        return _module(base) == "builtins" and issubclass(base, BaseException)
    space = vars(base)
    new = getattr(space.get("__new__"), "__func__", space.get("__new__"))
    if new is not None and not _module(new).startswith("namedtuple_"):
        return False
    init = space.get("__init__")
    if init is None or "__init__" in ignored or _module(init) in _BASES:
        return True
    file = getattr(getattr(init, "__code__", None), "co_filename", "")
    return file.startswith("<") and ("__dataclass_fields__" in space or "__attrs_attrs__" in space)


def _is_new(function, args, result):
    """Whether what a call gave was made by it, and shares nothing that changes with what is older."""
    cls, is_class = type(result), isinstance(function, type)
    if not is_class and not any(function is x for x in _MAKERS):
        if getattr(function, "__name__", None) != "copy" or isinstance(function, types.FunctionType) and own(function):
            return False
    if any(result is x for x in args):
        return False
    if hasattr(cls, "__next__") and not own(cls):
        said = [getattr(type(x), "__iter__", None) for x in args]
        mine = any(isinstance(x, types.FunctionType) and own(x) for x in said)
        return _module(cls).lstrip("_") in _ITERATORS and not mine
    if isinstance(result, np.ndarray):
        return result.base is None and result.flags.owndata and (not own(cls) or owns(cls, ()))
    if function is copy.copy or function is copy.deepcopy:
        said = [vars(base).get(name) for base in cls.__mro__ for name in _COPYING if own(base)]
        return owns(cls) and cls is type(args[0]) and not any(said)
    return owns(cls, ()) and (cls is function or not is_class)


# ---- what changes nothing ----

#: Functions that are not compiled here.
_COMPILED = (
    types.BuiltinFunctionType, types.MethodWrapperType, types.MethodDescriptorType,
    types.WrapperDescriptorType, types.ClassMethodDescriptorType, types.FunctionType, np.ufunc,
    type(np.copyto),
)  # fmt: skip
#: Of types that change, their like that does not: what has no method there changes the object.
_LIKE = {list: tuple, dict: types.MappingProxyType, set: frozenset, bytearray: bytes}
#: Types by which methods of theirs change the object, or more.
_METHODS = {
    cls: {*dir(cls), "__init__", "__ior__"}
    - (set(dir(like)) - {"__init__", "__ior__"})
    - {"copy", "fromkeys", "__reversed__"}
    for cls, like in _LIKE.items()
}
_METHODS[np.ndarray] = {"dump", "resize", "setflags", "tofile", "__init__", "__setstate__"}
_METHODS[np.generic] = {*_METHODS[np.ndarray], "setfield", "__setitem__"}
_METHODS.update(dict.fromkeys((str, bytes, tuple, frozenset, int, float, complex, range, bool), ()))
#: Types of whose objects no method changes anything, but what has a row above.
_VALUES = (enum.Enum, fractions.Fraction, decimal.Decimal, re.Pattern, re.Match, np.generic, np.dtype)
#: Modules whose classes make objects, and do nothing else.
_CLASSES = (
    "ml_dtypes", "enum", "fractions", "_invar", "layout", "builtins", "functools", "itertools", "operator",
    "collections", "types", "dataclasses", "string", "numbers",
)  # fmt: skip
#: Such classes of other modules: each may stand for those that derive from it there, but for ``_WRITERS``.
_MAKING = (*_VALUES, np.ndarray, np.poly1d, np.finfo, np.iinfo, np.vectorize, np.broadcast, np.ndindex, np.ndenumerate)
_WRITERS = (np.memmap,)
#: Functions of modules that change nothing, nor take from an iterator that is older.
_FUNCTIONS = {
    "builtins": "abs all any ascii bin callable chr divmod format getattr hasattr hash hex id isinstance "
    "issubclass iter len max min next oct ord pow repr round sorted sum vars".split(),
    "functools": ["reduce", "cmp_to_key"],
    "dataclasses": ["replace", "fields", "asdict", "astuple", "is_dataclass"],
    "copy": ["copy", "deepcopy", "replace"],
    "itertools": ["tee"],
    # All but those that change their operand, such as `iadd` and `ior`.
    "operator": [
        name
        for name in operator.__all__
        if name not in ("setitem", "delitem")
        and not (name[0] == "i" and {name[1:], f"{name[1:]}_"} & {*operator.__all__})
    ],
}
#: Functions of NumPy that do something else than to compute; arrays that it would write are read-only.
_EFFECTS = (
    "save savez savez_compressed savetxt seterr seterrcall setbufsize set_printoptions "
    "set_string_function write_array open_memmap"
).split()
#: Modules of this package whose functions and objects are parts of the language.
_LANGUAGE = (
    "_values", "_ops", "_operators", "_types", "_tiles", "_views", "_imageblocks", "_quantised", "_control", "_calls",
    "layout", "enigma",
)  # fmt: skip
_LANGUAGE = tuple(f"invar.{name}" for name in _LANGUAGE)
#: Those of them that run kernels.
_RUNNING = ("invar.enigma.runtime_dispatch", "invar.enigma.compiler", "invar.enigma.benchmark")


def _module(thing):
    return getattr(thing, "__module__", None) or ""


def _is_harmless(function):
    """Whether a call is sure to change nothing of Python's; raises for one that would change an
    object that may not change here."""
    name, holder = getattr(function, "__name__", ""), getattr(function, "__self__", None)
    if isinstance(function, type):
        return _makes_only(function)
    own_modules = [m for m in map(_module, (function, type(function), type(holder))) if m.startswith("invar.")]
    if own_modules:
        # Textures and samplers of kernels stand beside those of the host.
        return isinstance(holder, _Still) or all(_is_of_language(module) for module in own_modules)
    if holder is not None and not isinstance(holder, (types.ModuleType, type)):
        for cls, changing in _METHODS.items():
            if isinstance(holder, cls):
                if name in changing:
                    check_changing_method(holder, name)
                return True
        if isinstance(holder, np.ufunc):
            # `np.add.at` writes what is read-only.
            return _is_of_numpy(holder) and name != "at"
        return isinstance(holder, _VALUES) or _module(type(holder)) in ("invar", "layout", "ml_dtypes")
    if isinstance(function, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        return name not in _METHODS.get(function.__objclass__, (name,))
    module = _module(function).partition(".")[0].lstrip("_")
    if module in ("invar", "layout", "math", "cmath", "ml_dtypes"):
        return True  # What the extension makes is of its own modules.
    if isinstance(function, np.ufunc) or module == "numpy":
        return _is_of_numpy(function)
    if isinstance(holder, type):
        return _makes_only(holder)  # A method of a class, such as `dict.fromkeys`.
    if isinstance(function, (operator.attrgetter, operator.itemgetter)):
        return True
    return name in _FUNCTIONS.get(module, ()) or _module(type(function)) == "invar"


def _is_of_language(module):
    return module.startswith(_LANGUAGE) and not module.startswith(_RUNNING)


def _is_of_numpy(function):
    """Whether NumPy itself has a function, and it only computes: neither ``np.vectorize`` nor ``np.frompyfunc`` say
    what they call."""
    name = getattr(function, "__name__", "")
    module = sys.modules.get(_module(function) or "numpy")
    return getattr(module, name, None) is function and name not in _EFFECTS


def _makes_only(cls):
    """Whether objects of a class are made without code that Python would run by itself and that is not
    known here."""
    if _module(cls).startswith("invar."):
        return _is_of_language(_module(cls)) or issubclass(cls, BaseException)
    if not own(cls):
        made = issubclass(cls, _MAKING) and not issubclass(cls, _WRITERS)
        return made or _module(cls).partition(".")[0] in _CLASSES
    if issubclass(cls, BaseException):
        return True
    code = cls.__new__, cls.__init__, getattr(type(cls), "__call__", None)
    return not any(written(method) for method in code)


# ---- values of the kernel ----

#: What to write instead of a builtin that takes no value of the kernel.
_INSTEAD = {
    builtins.range: "for a loop in the kernel write iv.range(...)",
    builtins.int: "write iv.i32(...)",
    builtins.float: "write iv.f32(...)",
    builtins.bool: "compare it, as in `x != 0`; of several take any(...) or all(...)",
    builtins.divmod: "write `a // b` and `a % b`, which truncate",
    builtins.round: "write iv.round(...) or iv.rint(...)",
    builtins.print: 'a kernel prints with iv.print("x is {}", x)',
}
#: What functions of NumPy and of `math` are called here, where the names differ.
_OURS = {
    "absolute": "abs", "fabs": "abs", "maximum": "max", "minimum": "min", "power": "pow",
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "where": "select",
    "clip": "clamp", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
}  # fmt: skip


def _check_values(function, args):
    """Refuses traced values where a function of Python, NumPy or ``math`` needs numbers."""
    arrays = [x for x in args if isinstance(x, Memory)]
    if arrays and (isinstance(function, np.ufunc) or _module(function).partition(".")[0] == "numpy"):
        raise _trace.error(
            f"np.{_name(function)}() of `{arrays[0].name}`, whose elements are known only when the kernel runs: "
            "write a loop over iv.range(...)"
        )
    if not traced(args):
        return
    name = getattr(function, "__name__", "")
    if isinstance(function, (types.BuiltinFunctionType, type)) and function in _INSTEAD:
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
