"""The expressions of a kernel: each node of the syntax tree gives its value.

Parts are evaluated once and in Python's order. A value of the kernel makes an operation of the IR; all
else is computed here, when the kernel is compiled.

Absent: statements (``_compile``), and what a call or an operator does (``_calls``).
"""

from __future__ import annotations

import ast
import builtins

from . import _calls, _control, _trace
from ._calls import binary, contains, identity
from ._control import MISSING, remember, truth
from ._foreign import check_iterator
from ._functions import Environment, Function
from ._operators import SYMBOLS
from ._values import Undefined, Value, describe, plain

_KNOWN_LATER = "a traced value, known only when the kernel runs: "
_FILTER = (
    f"the `if` of a comprehension is {_KNOWN_LATER}write a conditional expression for the element, as "
    "in `[x if keep else 0 for x in xs]`"
)


class Expressions:
    """Evaluates expressions of one function, with its variables."""

    def __init__(self, function, environment):
        self.function, self.environment = function, environment
        self.filename = function.filename

    def at(self, node):
        """What follows is of this node."""
        _trace.current().place = self.filename, node

    def fail(self, node, message):
        """Raises the error of what is wrong at a node."""
        self.at(node)
        raise _trace.error(message)

    def eval(self, node):
        """The value of an expression; what has none here says why."""
        value = getattr(self, type(node).__name__, self.refused)(node)
        if isinstance(value, Undefined):
            value.fail()
        return value

    def static(self, node, what):
        """An expression that has to be known when the kernel is compiled."""
        value = self.eval(node)
        if isinstance(plain(value), Value):
            self.fail(node, what)
        return value

    # -- names --

    def Constant(self, node):
        return node.value

    def Name(self, node):
        self.at(node)
        return self.load(node.id)

    def load(self, name):
        """What a variable holds."""
        t, place = _trace.current(), self.environment.place(name)
        if place is None:
            if hasattr(builtins, name):
                t.reads.name(self.function.space, name, MISSING)
                return getattr(builtins, name)
            raise NameError(f"name '{name}' is not defined")
        value = _control.read(*place)
        if value is MISSING:
            raise _trace.error(f"`{name}` has no value here: assign it first")
        if isinstance(value, Undefined):
            value.fail()
        if not isinstance(place[0], _control.Variables):
            t.reads.name(*place, value)
        return value

    def NamedExpr(self, node):
        value = self.eval(node.value)
        self.at(node)
        self.assign_name(node.target.id, value)
        return value

    def assign_name(self, name, value):
        """Assigns to a variable, of a function around or a global where the function says so."""
        environment = self.environment
        while environment.hidden_names is not None:
            if name in environment.hidden_names:
                environment.variables[name] = value
                return
            environment = environment.parent
        place = environment.place(name) or (self.function.space, name)
        if isinstance(value, Value):
            _trace.current().builder.name(value.id, name)
        _control.store(*place, value)

    # -- operators --

    def BoolOp(self, node):
        name = "and" if isinstance(node.op, ast.And) else "or"
        thunks = [lambda x=x: self.operand(x) for x in node.values]
        return _control.logical(name, thunks)

    def operand(self, node):
        """An operand of a logical operator, which says if it is not a condition."""
        x = self.eval(node)
        self.at(node)
        return x

    def IfExp(self, node):
        c = truth(self.operand(node.test))
        self.at(node)
        return _control.if_exp(c, lambda: self.operand(node.body), lambda: self.operand(node.orelse))

    def UnaryOp(self, node):
        x = self.eval(node.operand)
        self.at(node)
        if isinstance(node.op, ast.Not):
            return _calls.not_(x)
        return _calls.unary(SYMBOLS[type(node.op)], x)

    def BinOp(self, node):
        left, right = self.eval(node.left), self.eval(node.right)
        self.at(node)
        return binary(SYMBOLS[type(node.op)], left, right)

    def Compare(self, node):
        left = self.eval(node.left)
        symbols = [SYMBOLS[type(op)] for op in node.ops]
        if len(symbols) == 1:
            right = self.eval(node.comparators[0])
            self.at(node)
            return self.compared(symbols[0], left, right)
        last = [left]

        def step(symbol, operand):
            right = self.eval(operand)
            self.at(node)
            result = self.compared(symbol, last[0], right)
            last[0] = right
            return result

        pairs = zip(symbols, node.comparators)
        return _control.logical("and", [lambda s=s, x=x: step(s, x) for s, x in pairs])

    @staticmethod
    def compared(symbol, left, right):
        """One comparison."""
        if symbol in ("is", "is not"):
            return identity(symbol, left, right)
        if symbol in ("in", "not in"):
            found = contains(left, right)
            return found if symbol == "in" else _calls.not_(found)
        return binary(symbol, left, right)

    # -- parts --

    def Attribute(self, node):
        base = self.eval(node.value)
        self.at(node)
        return _calls.attribute(base, node.attr)

    def Subscript(self, node):
        base, key = self.eval(node.value), self.eval(node.slice)
        self.at(node)
        return _calls.item(base, key)

    def Slice(self, node):
        parts = (node.lower, node.upper, node.step)
        return slice(*(None if part is None else self.eval(part) for part in parts))

    # -- displays --

    def elements(self, nodes):
        """The values of a display or of arguments, with what is starred taken apart."""
        values = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                values.extend(self.items(node.value, self.eval(node.value)))
            else:
                values.append(self.eval(node))
        return values

    def items(self, node, x):
        """What a loop or an assignment goes through."""
        self.at(node)
        x = _calls.iterable(x)
        if not hasattr(x, "__iter__") and not hasattr(x, "__getitem__"):
            raise _trace.error(
                f"`for` over {describe(x)}: write a list, range(...) to unroll it, or iv.range(...) for "
                "a loop in the kernel"
            )
        check_iterator(x)
        _trace.current().reads.note(x)
        return iter(x)

    def Tuple(self, node):
        return tuple(self.elements(node.elts))

    def List(self, node):
        return remember(self.elements(node.elts))

    def Set(self, node):
        return remember(set(self.elements(node.elts)))

    def Dict(self, node):
        made = {}
        for key, value in zip(node.keys, node.values):
            if key is None:
                made.update(self.eval(value))
            else:
                key = self.eval(key)
                made[key] = self.eval(value)
        return remember(made)

    def JoinedStr(self, node):
        return "".join(self.eval(part) for part in node.values)

    def FormattedValue(self, node):
        x = self.eval(node.value)
        how = self.eval(node.format_spec) if node.format_spec is not None else ""
        self.at(node)
        if node.conversion == -1:
            return _calls.formatted(x, how)
        shown = {115: str, 114: repr, 97: ascii}[node.conversion]
        return format(_calls.call(shown, (x,), {}), how)

    # -- comprehensions --

    def comprehension(self, node, make):
        """Gives ``make(body)`` for each iteration of a comprehension, one by one."""
        targets = {
            part.id
            for generator in node.generators
            for part in ast.walk(generator.target)
            if isinstance(part, ast.Name)
        }
        inner = Environment(targets, self.environment, self.function)
        inner.hidden_names = targets
        body = type(self)(self.function, inner)
        # Python evaluates the first iterable in the function around.
        first = self.items(node.generators[0].iter, self.eval(node.generators[0].iter))

        def iterations(number):
            if number == len(node.generators):
                yield make(body)
                return
            generator = node.generators[number]
            if generator.is_async:
                self.fail(node, "kernels have no `async`")
            items = first
            if number:
                items = body.items(generator.iter, body.eval(generator.iter))
            for item in items:
                body.assign(generator.target, item)
                if all(body.static(test, _FILTER) for test in generator.ifs):
                    yield from iterations(number + 1)

        return iterations(0)

    def ListComp(self, node):
        return remember(list(self.comprehension(node, lambda body: body.eval(node.elt))))

    def SetComp(self, node):
        return remember(set(self.comprehension(node, lambda body: body.eval(node.elt))))

    def DictComp(self, node):
        pairs = self.comprehension(node, lambda body: (body.eval(node.key), body.eval(node.value)))
        return remember(dict(pairs))

    def GeneratorExp(self, node):
        return remember(self.comprehension(node, lambda body: body.eval(node.elt)))

    # -- functions and calls --

    def Lambda(self, node):
        return self.closure(node, "<lambda>")

    def closure(self, node, name):
        """An inner function."""
        a = node.args
        defaults = [self.eval(x) for x in a.defaults]
        named = {x.arg: self.eval(value) for x, value in zip(a.kwonlyargs, a.kw_defaults) if value is not None}
        space = self.function.space
        return Function(node, self.filename, name, self.environment, space, defaults, named)

    def Call(self, node):
        special = node.func.id if isinstance(node.func, ast.Name) else None
        if special == "super" and not node.args:
            return self.super(node)
        if special == "locals" and self.environment.place("locals") is None:
            return dict(self.environment.variables)
        function = self.eval(node.func)
        args, kwargs = self.elements(node.args), {}
        for keyword in node.keywords:
            value = self.eval(keyword.value)
            if keyword.arg is None:
                kwargs.update(value)
            else:
                kwargs[keyword.arg] = value
        self.at(node)
        if function is builtins.globals:
            return self.function.space
        return _calls.call(function, args, kwargs)

    def super(self, node):
        """``super()`` without arguments: the class is a variable of the method's."""
        cell = self.function.closure.get("__class__")
        if cell is None or not self.function.scope.params:
            self.fail(node, "super() stands in a method of a class")
        return super(cell.cell_contents, self.load(self.function.scope.params[0]))

    def refused(self, node):
        """An expression or statement that kernels do not have."""
        self.fail(node, f"kernels have no `{type(node).__name__.lower()}`")
