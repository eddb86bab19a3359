"""Functions of the author's as their source, and their code in the place of a call.

Absent: what compiles a function's tree (``_compile``, which says so to ``Function``), and calls of what has
no source (``_foreign``).
"""

from __future__ import annotations

import ast
import functools
import inspect
import types

from . import _control, _trace
from ._errors import KernelError
from ._syntax import definition, own, position, scope

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
        """The parameters with the arguments of a call; arguments are refused as Python does it."""
        name, code = self.__name__, _binder(self.node, self.__name__)
        binder = types.FunctionType(code, {"locals": locals}, name, tuple(self.__defaults__))
        binder.__kwdefaults__, binder.__qualname__ = dict(self.__kwdefaults__), name
        try:
            return binder(*args, **kwargs)
        except TypeError as e:
            raise _trace.error(str(e)) from None


@functools.lru_cache(maxsize=None)
def _binder(node, name):
    """The code of a function of Python's that has the same parameters, and gives them by their names."""
    tree, a = ast.parse("lambda: locals()", mode="eval"), node.args
    no_defaults = [None] * len(a.kwonlyargs)
    tree.body.args = ast.arguments(a.posonlyargs, a.args, a.vararg, a.kwonlyargs, no_defaults, a.kwarg, [])
    return eval(compile(tree, "<call>", "eval")).__code__.replace(co_name=name)


def generator_error(name, flags=0):
    """The exception for a function that yields, or whose code's flags say so."""
    if flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return _trace.error(f"`{name}` is an `async` function: kernels have no `async`")
    return _trace.error(f"`{name}` is a generator, which a kernel cannot run step by step: give a list instead")


def inline(function, args, kwargs):
    """Compiles a function in the place of its call; gives what it returns."""
    t = _trace.current()
    name, place, outer = function.__name__, t.place, t.call
    if sum(known is function.node for known in t.functions) == MAX_DEPTH:
        raise _trace.error(
            f"`{name}` calls itself, {MAX_DEPTH} calls deep: kernels have no recursion, except where "
            "compile-time values end it; write a loop"
        )
    if function.scope.is_generator:
        raise generator_error(name)
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
