"""The statements of a kernel: a function's syntax tree becomes instructions of the builder.

Under control flow of the kernel may stand assignments, stores to memory, calls and expressions; what
they change of Python's objects is remembered by ``_control``. Conditions and loops that are known
when the kernel is compiled run as Python's. See ``docs/python.md`` for the language.

Absent: what an expression means (``_expr``), and how branches and loops are built (``_control``).
"""

from __future__ import annotations

import ast
import operator
import types

from . import _calls, _control, _trace
from ._control import BREAK, CONTINUE, UNREACHABLE, Frame, Region, Signal, truth
from ._errors import KernelError
from ._expr import _KNOWN_LATER, Expressions
from ._foreign import check_iterator
from ._functions import Environment, Function, written
from ._operators import SYMBOLS
from ._syntax import assigned, jumps, leaving, own_class, stores
from ._values import Memory, Place, Undefined, Value, component_index, describe

_SUBJECT = f"`match` of {_KNOWN_LATER}write `if`"
_GUARD = f"the guard of a `case` is {_KNOWN_LATER}write `if` in its body"
_ASSERT = (
    f"`assert` of {_KNOWN_LATER}kernels have no exceptions; write to a buffer what went wrong, or "
    "leave bounds and races to iv.check(...)"
)

_NOTHING = "a kernel returns nothing: write results to a buffer"

#: Not the author's to catch.
_OURS = KernelError, _control._Again


class Body(Expressions):
    """Compiles statements of one function."""

    def block(self, statements):
        """Compiles a block; gives the signal of how it was left."""
        for statement in statements:
            signal = getattr(self, type(statement).__name__, self.refused)(statement)
            if signal is not None:
                return signal
        return None

    # -- branches and loops --

    def If(self, node):
        c = truth(self.operand(node.test))
        if not isinstance(c, Value):
            return self.block(node.body if c else node.orelse)
        _control.enclose(jumps(node))
        return _control.if_stmt(c, lambda: self.block(node.body), lambda: self.block(node.orelse))

    def check_else(self, node):
        """Refuses what a loop does that ends by itself."""
        if node.orelse:
            self.fail(node.orelse[0], "kernels have no `else` of a loop: test after the loop instead")

    def While(self, node):
        self.check_else(node)
        if isinstance(node.test, ast.Constant) and node.test.value:
            return self.kernel_while(node)
        rest = []
        return self.unrolled(node, self.iterations_of_while(node, rest), "while", rest)

    def kernel_while(self, node):
        self.at(node.test)
        _control.enclose(jumps(node))
        places = self.places(assigned(node))
        test = lambda: self.operand(node.test)
        return _control.kernel_while(test, lambda: self.block(node.body), places)

    def iterations_of_while(self, node, rest):
        """The iterations of a ``while`` as long as its condition is known; ``rest`` gets what follows."""
        t = _trace.current()
        while True:
            start, region = t.builder.mark(), Region()
            t.regions.append(region)
            c = truth(self.operand(node.test))
            t.regions.pop()
            if isinstance(c, Value):
                _control.undo(region)
                t.builder.unwind(start)
                rest.append(lambda: self.kernel_while(node))
                return
            _control.hand_up(region)
            if not c:
                return
            yield lambda: self.block(node.body)

    def For(self, node):
        self.check_else(node)
        items = self.eval(node.iter)
        self.at(node)
        if isinstance(items, _control.Range):
            self.at(node.iter)
            _control.enclose(jumps(node))

            def body(index):
                self.assign(node.target, index)
                return self.block(node.body)

            return _control.kernel_for(items, body, self.places(assigned(node)))
        plain = not hasattr(type(items), "__next__")
        return self.unrolled(node, self.iterations_of_for(node, self.items(node.iter, items), plain), "for")

    def iterations_of_for(self, node, items, plain):
        """The iterations of an unrolled ``for``."""
        held = not plain and isinstance(node.iter, (ast.Name, ast.Attribute, ast.Subscript))
        while True:
            if held:
                check_iterator(items)
            try:
                item = next(items)
            except StopIteration:
                return

            def body():
                self.assign(node.target, item)
                return self.block(node.body)

            yield body

    def unrolled(self, node, iterations, word, rest=()):
        """A loop whose iterations are known when the kernel is compiled, and what follows on them."""
        t, inside = _trace.current(), set().union(*map(jumps, node.body))
        whole = Frame("unrolled", inside & {"break"}, f"this `{word}`")
        t.frames.append(whole)
        signal = None
        for count, body in enumerate(iterations):
            if count == _control.MAX_ITERATIONS:
                self.fail(
                    node,
                    f"this `{word}` unrolls more than {_control.MAX_ITERATIONS} iterations: for a loop in the "
                    "kernel " + ("write iv.range(...)" if word == "for" else "make its condition a traced value"),
                )
            frame = Frame("iteration", inside & {"continue"}, "an iteration of the loop")
            t.frames.append(frame)
            signal, _ = _control.leave_frame(frame, body())
            if signal is CONTINUE:
                signal = None
            if signal is not None:
                break
        else:
            for last in rest:
                signal = last()
        return _control.leave_frame(whole, None if signal is BREAK else signal)[0]

    def places(self, names):
        """The places of variables."""
        found = (self.environment.place(name) for name in names)
        return [place for place in found if place is not None]

    def Return(self, node):
        value = None if node.value is None else self.eval(node.value)
        self.at(node)
        if value is not None and len(_trace.current().functions) == 1:
            raise _trace.error(_NOTHING)
        return Signal("return", value)

    def Break(self, node):
        return BREAK

    def Continue(self, node):
        return CONTINUE

    def Pass(self, node):
        """Nothing; names that are declared are looked at beforehand."""

    Global = Nonlocal = Pass

    # -- assignments --

    def Assign(self, node):
        t = _trace.current()
        t.hint = node.targets[0].id if isinstance(node.targets[0], ast.Name) else None
        value = self.eval(node.value)
        t.hint = None
        for target in node.targets:
            self.at(node)
            self.assign(target, value)

    def AnnAssign(self, node):
        if node.value is not None:
            value = self.eval(node.value)
            self.at(node)
            self.assign(node.target, value)

    def assign(self, target, value):
        """Assigns to a target of any make."""
        if isinstance(target, ast.Name):
            self.assign_name(target.id, value)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            place = _trace.current().place
            values = self.unpacked(target.elts, list(self.items(target, value)))
            _trace.current().place = place
            for part, x in zip(target.elts, values):
                self.assign(part, x)
        else:
            place = _trace.current().place
            _, put = self.place(target)
            _trace.current().place = place
            put(value)

    @staticmethod
    def unpacked(targets, values):
        """The values for each of several targets, one of which may be starred."""
        starred = [i for i, part in enumerate(targets) if isinstance(part, ast.Starred)]
        least = len(targets) - len(starred)
        if len(values) < least or (len(values) > least and not starred):
            few = "not enough" if len(values) < least else "too many"
            got = f", got {len(values)}" if len(values) < least else ""
            raise ValueError(f"{few} values to unpack (expected {least}{got})")
        if starred:
            start, count = starred[0], len(values) - least
            values[start : start + count] = [_control.remember(values[start : start + count])]
        return values

    def AugAssign(self, node):
        get, put = self.place(node.target)
        self.at(node.target if isinstance(node.target, ast.Name) else node)
        old = get()
        in_memory = isinstance(old, Place)
        before = old.get() if in_memory else old
        value = self.eval(node.value)
        self.at(node)
        new = _calls.in_place(SYMBOLS[type(node.op)], before, value)
        (old.put if in_memory else put)(new)

    def place(self, target):
        """What is assigned to, as what gives what stands there and what puts something there; what it
        consists of is evaluated once."""
        if isinstance(target, ast.Name):
            return lambda: self.load(target.id), lambda value: self.assign_name(target.id, value)
        if not isinstance(target, (ast.Attribute, ast.Subscript)):
            x = self.eval(target)
            return lambda: x, self.unnamed
        get_base, put_base = self.place(target.value)
        self.at(target.value)
        base, named = get_base(), isinstance(target, ast.Attribute)
        key = target.attr if named else self.eval(target.slice)

        def now():
            # Values do not change, and another may have taken its place since.
            return get_base() if isinstance(base, Value) else base

        def get():
            return self.part(now(), named, key)

        def put(value):
            x = now()
            if isinstance(x, Value):
                put_base(x.with_part(_component(x, named, key), value))
            elif isinstance(x, (Memory, Place)):
                self.part(x, named, key).put(value)
            else:
                _trace.current().target = target
                (_calls.set_attribute if named else _calls.set_item)(x, key, value)
                _trace.current().target = None

        return get, put

    @staticmethod
    def unnamed(value):
        """Refuses to change a value that stands nowhere."""
        raise _trace.error(
            f"a part of a value of type {value.type} is assigned that no variable holds: give it a name first"
        )

    @staticmethod
    def part(base, named, key):
        """A part: in memory of the kernel a place."""
        if isinstance(base, Memory):
            if named:
                raise _trace.error(f"the array `{base.name}` has no field `{key}`: index it first")
            return base.place(key)
        if isinstance(base, Place):
            return base.field(key) if named else base.part(key)
        if isinstance(base, Value):
            return base[_component(base, named, key)]
        found = _calls.attribute(base, key) if named else _calls.item(base, key)
        if isinstance(found, Undefined):
            found.fail()
        return found

    def Delete(self, node):
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.at(target)
                self.load(target.id)
                gone = Undefined(target.id, "has been deleted: assign it again first")
                self.assign_name(target.id, gone)
                continue
            if isinstance(target, (ast.Tuple, ast.List)):
                self.Delete(ast.copy_location(ast.Delete(target.elts), node))
                continue
            named = isinstance(target, ast.Attribute)
            base = self.eval(target.value)
            key = target.attr if named else self.eval(target.slice)
            self.at(node)
            if not isinstance(base, (Memory, Place, Value)):
                what = f"a part of a Python {type(base).__name__} is deleted"
                _control.check_change(base, what, "make another without it")
            (delattr if named else operator.delitem)(base, key)

    # -- functions --

    def FunctionDef(self, node):
        decorators = [self.eval(decorator) for decorator in node.decorator_list]
        made = self.closure(node, node.name)
        for decorator in reversed(decorators):
            self.at(node)
            made = _calls.call(decorator, (made,), {})
        self.at(node)
        self.assign_name(node.name, made)

    def ClassDef(self, node):
        self.fail(node, f"the class `{node.name}` is made in a kernel: write it outside of the kernel")

    def Import(self, node):
        """Python imports by itself; what it assigns becomes variables of the kernel's function."""
        space = dict(self.function.space)
        exec(compile(ast.Module([node], []), self.filename, "exec"), space)
        for name in stores([node]):
            self.assign_name(name, space[name])

    ImportFrom = Import

    # -- what only the compiler sees --

    def Expr(self, node):
        value = self.eval(node.value)
        if isinstance(node.value, (ast.Name, ast.Attribute)) and callable(value):
            if not isinstance(value, (type, Value, Memory)):
                name = getattr(value, "__name__", None)
                self.fail(
                    node,
                    "this does nothing: a function is named and not called" + (f"; write `{name}()`" if name else ""),
                )

    def Assert(self, node):
        if not truth(self.static(node.test, _ASSERT)):
            said = () if node.msg is None else (self.eval(node.msg),)
            self.at(node)
            raise AssertionError(*said)

    def Raise(self, node):
        t = _trace.current()
        exception = None if node.exc is None else self.eval(node.exc)
        self.at(node)
        if isinstance(exception, type) and issubclass(exception, BaseException):
            exception = exception()
        if any(frame.kind == "if" for frame in t.frames):
            raise _trace.error(
                "`raise` in a branch that only some threads take: kernels have no exceptions; write "
                "to a buffer what went wrong, and check what is known at compile time before the "
                "branch"
            ) from (exception if isinstance(exception, BaseException) else None)
        if exception is None:
            exception = t.raised or RuntimeError("No active exception to reraise")
        t.raised = exception
        raise exception from (None if node.cause is None else self.eval(node.cause))

    def Try(self, node):
        t = _trace.current()
        if not node.finalbody:
            return self.handled(node)
        jump = leaving(node.finalbody)
        if jump is not None:
            self.fail(jump, "a jump cannot leave a `finally` of a kernel: write it behind the `try`")
        frames = len(t.frames)
        t.frames.append(Frame("finally", final=lambda: self.block(node.finalbody)))
        mark = self.mark()
        try:
            signal = self.handled(node)
        except _OURS:
            raise
        except Exception as e:
            if t.builder.depth() == mark[0]:
                self.back(mark, e)
                del t.frames[frames:]
                self.block(node.finalbody)
            raise
        del t.frames[frames:]
        if signal is not UNREACHABLE:
            self.block(node.finalbody)
        return signal

    def mark(self):
        """Where in the kernel a ``try`` begins."""
        t = _trace.current()
        return t.builder.depth(), len(t.frames), len(t.functions), t.call

    def back(self, mark, found):
        """Goes back to a ``try``."""
        t = _trace.current()
        depth, frames, functions, call = mark
        if t.builder.depth() != depth:
            raise _trace.error(
                f"{type(found).__name__} leaves a branch or loop of the kernel, which only some "
                "threads run, for this `except`: kernels have no exceptions"
            ) from found
        del t.frames[frames:]
        del t.functions[functions:]
        t.call = call

    def handled(self, node):
        """A ``try`` without its ``finally``: Python's own exceptions are caught while the kernel is
        compiled; ours pass through."""
        mark = self.mark()
        try:
            signal = self.block(node.body)
        except _OURS:
            raise
        except Exception as e:
            for handler in node.handlers:
                if isinstance(e, Exception if handler.type is None else self.eval(handler.type)):
                    self.at(handler)
                    self.back(mark, e)
                    if handler.name is not None:
                        self.assign_name(handler.name, e)
                    return self.block(handler.body)
            raise
        return self.block(node.orelse) if signal is None else signal

    # -- with --

    def With(self, node):
        jump = leaving(node.body)
        if jump is not None:
            self.fail(
                jump,
                "a jump cannot leave a `with` block in a kernel: write it with `if`, or set a variable in "
                "the block and jump behind it",
            )
        return self.entered(node, node.items)

    def entered(self, node, items):
        if not items:
            return self.block(node.body)
        first, *rest = items
        manager = self.eval(first.context_expr)
        self.at(first.context_expr)
        cls = type(manager)
        if getattr(manager, "is_region", False):
            value = manager.__enter__()
            self.target(first, value)
            signal = self.entered(node, rest)
            self.at(node)
            manager.__exit__(None, None, None)
            return signal
        if not (hasattr(cls, "__enter__") and hasattr(cls, "__exit__")):
            raise _trace.error(f"`with` takes a context manager, not {describe(manager)}")
        enter, leave = (types.MethodType(getattr(cls, n), manager) for n in ("__enter__", "__exit__"))
        if _control.in_region() and not (own_class(cls) and written(cls.__enter__) is not None):
            raise _trace.error(
                f"`with` of a Python {cls.__name__} in a branch or loop of the kernel: it is entered when "
                "the kernel is compiled, whichever threads come here; write the `with` around the kernel"
            )
        value = _calls.call(enter, (), {})
        self.target(first, value)
        mark = self.mark()
        try:
            signal = self.entered(node, rest)
        except _OURS:
            raise
        except Exception as e:
            if not leave(type(e), e, e.__traceback__):
                raise
            self.back(mark, e)
            return None
        self.at(node)
        _calls.call(leave, (None, None, None), {})
        return signal

    def target(self, item, value):
        """Assigns what a manager gives."""
        if item.optional_vars is not None:
            self.assign(item.optional_vars, value)

    # -- match --

    def Match(self, node):
        subject = self.static(node.subject, _SUBJECT)
        for case in node.cases:
            captured = self.matched(case.pattern, subject)
            if captured is None:
                continue
            for name, value in captured.items():
                self.assign_name(name, value)
            if case.guard is not None and not truth(self.static(case.guard, _GUARD)):
                continue
            return self.block(case.body)
        return None

    def matched(self, pattern, subject):
        """What a pattern captures of a subject, by Python's own rules; ``None`` if it does not fit."""
        names = stores([pattern])
        text = "def matched(subject):\n match subject:\n  case _: return captured"
        tree = ast.parse(text)
        case = tree.body[0].body[0].cases[0]
        case.pattern = pattern
        captured = [ast.Name(name, ast.Load()) for name in names]
        case.body[0].value = ast.Dict([ast.Constant(name) for name in names], captured)
        ast.fix_missing_locations(tree)
        space = dict(self.function.space)
        around = {part.id for part in ast.walk(pattern) if isinstance(part, ast.Name)}
        space.update({name: self.load(name) for name in around})
        exec(compile(tree, self.filename, "exec"), space)
        return space["matched"](subject)


def _component(value, named, key):
    if value.type.kind not in ("vector", "matrix"):
        raise _trace.error(f"a value of type {value.type} has no parts to assign to")
    if not named:
        return key
    index = component_index(key)
    if index is None:
        raise _trace.error(f"assign to one component of {value.type}, not to `{key}`")
    return index


def _run(function, bound):
    """Compiles a function's body with its parameters; gives the signal of how it ended."""
    environment = Environment(function.scope.locals, function.outer, function)
    environment.variables.update(bound)
    t = _trace.current()
    t.made[id(environment.variables)] = environment.variables, t.regions[-1]
    body = Body(function, environment)
    if isinstance(function.node, ast.Lambda):
        return Signal("return", body.eval(function.node.body))
    return body.block(function.node.body)


Function.run = staticmethod(_run)


def kernel(function, args, kwargs=types.MappingProxyType({})):
    """Compiles a kernel's function with its arguments."""
    try:
        _kernel(function, args, kwargs)
    except RecursionError:
        raise KernelError(
            f"`{function.__name__}` holds an expression or statements that nest too deep for Python's "
            "recursion limit: split them",
            _trace.here(),
        ) from None


def _kernel(function, args, kwargs):
    t = _trace.current()
    source = Function.of(function)
    if source.scope.refused is not None:
        node, why = source.scope.refused
        t.place = source.filename, node
        raise _trace.error(why)
    t.frames.append(Frame("kernel"))
    t.functions.append(source.node)
    root = Region()
    t.regions.append(root)
    try:
        signal = _run(source, source.bind(args, kwargs))
        if signal is not None and signal.value is not None:
            raise _trace.error(_NOTHING)  # A lambda gives what it holds.
    finally:
        for region in reversed(t.regions[1:]):
            _control.undo(region)
        forget(root)


def forget(region):
    """Takes values of the kernel, and what holds some, out of what outlives it."""
    without = set()
    for container, key, old in region.log.values():
        if _has_values(_control.get(container, key), without):
            _control.put(container, key, old)


def _has_values(x, without):
    """Whether something is or holds a value of the kernel. ``without`` are objects that hold none, by their ids."""
    seen, left = set(), [x]
    while left:
        x = left.pop()
        if isinstance(x, (Value, Undefined, Memory, Place)):
            return True
        parts = x if isinstance(x, (list, tuple)) else x.values() if isinstance(x, dict) else ()
        if own_class(type(x)):
            parts = getattr(x, "__dict__", {}).values()
        if id(x) not in seen and id(x) not in without and len(parts):
            seen.add(id(x))
            left.extend(parts)  # Elements define `+`.
    without |= seen
    return False
