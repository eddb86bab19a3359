"""What a ``with`` block changes: the lists, dicts, objects and closures that its author can reach.

A block of the kernel is traced once and may run never or many times, so what it sets in Python
objects has no value behind it, as the names that it rebinds have none. ``Reach`` remembers what can
be reached from the function that holds the block and finds what the block changed; each such
element, attribute or variable of a closure then says so when it is used.

Not looked into: objects of packages (but for arrays) and of the standard library (but for its
containers), classes and modules.
"""

from __future__ import annotations

import collections
import functools
import re
import sys
import types

import numpy as np

from .. import _control, _rewrite, _state, _trace
from .._values import Undefined
from ._errors import EnigmaKernelError, error
from ._rounds import rounds

REASON = (
    "is set inside a `with` block, which does not carry it: pass it through `init=` of for_range, "
    "or keep it in a register_tensor"
)
_MISSING = object()


def author():
    """The innermost Python frame that is not of this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_trace._OWN) and not name.startswith("<frozen"):
            break
        frame = frame.f_back
    return frame


class _List:
    """A list or deque: its elements by number."""

    def __init__(self, name, thing):
        self.name, self.thing, self.before = name, thing, list(thing)

    def entries(self):
        return enumerate(self.before)

    def label(self, key):
        return f"{self.name}[{key!r}]"

    def changed(self):
        after = list(self.thing)
        for i in range(max(len(after), len(self.before))):
            old = self.before[i] if i < len(self.before) else _MISSING
            new = after[i] if i < len(after) else _MISSING
            if not _same(old, new):
                yield i

    def put(self, key, value):
        while len(self.thing) <= key:
            self.thing.append(value)
        self.thing[key] = value

    def restore(self):
        self.thing.clear()
        self.thing.extend(self.before)


class _Dict:
    """A dict, or the attributes of an object."""

    def __init__(self, name, thing, owner=None):
        self.name, self.thing, self.owner, self.before = name, thing, owner, dict(thing)

    def entries(self):
        return self.before.items()

    def label(self, key):
        return f"{self.name}[{key!r}]" if self.owner is None else f"{self.name}.{key}"

    def changed(self):
        for key in [*self.before, *(k for k in self.thing if k not in self.before)]:
            if not _same(self.before.get(key, _MISSING), self.thing.get(key, _MISSING)):
                yield key

    def put(self, key, value):
        self.thing[key] = value

    def restore(self):
        self.thing.clear()
        self.thing.update(self.before)


class _Slots:
    """An object's attributes in ``__slots__``."""

    def __init__(self, name, thing):
        self.name, self.thing = name, thing
        self.before = dict(self._now())

    def _now(self):
        for kind in type(self.thing).__mro__:
            slots = kind.__dict__.get("__slots__", ())
            for slot in (slots,) if isinstance(slots, str) else slots:
                if slot not in ("__dict__", "__weakref__"):
                    yield slot, getattr(self.thing, slot, _MISSING)

    def entries(self):
        return self.before.items()

    def label(self, key):
        return f"{self.name}.{key}"

    def changed(self):
        return [key for key, new in self._now() if not _same(self.before[key], new)]

    def put(self, key, value):
        object.__setattr__(self.thing, key, value)

    def restore(self):
        for key in self.changed():
            if self.before[key] is not _MISSING:
                self.put(key, self.before[key])


class _Cell:
    """A variable of a closure."""

    def __init__(self, name, thing):
        self.name, self.thing, self.before = name, thing, self._now(thing)

    @staticmethod
    def _now(cell):
        try:
            return cell.cell_contents
        except ValueError:
            return _MISSING

    def entries(self):
        return [(self.name, self.before)]

    def label(self, key):
        return key

    def changed(self):
        return [] if _same(self.before, self._now(self.thing)) else [self.name]

    def put(self, key, value):
        self.thing.cell_contents = value

    def restore(self):
        if self.before is not _MISSING:
            self.thing.cell_contents = self.before


class _Whole:
    """A set or an array, which cannot hold what stands for no value."""

    def __init__(self, name, thing):
        self.name, self.thing, self.before = name, thing, thing.copy()

    def entries(self):
        return ()

    def label(self, key):
        return self.name

    def changed(self):
        if isinstance(self.thing, set):
            same = {*map(id, self.thing)} == {*map(id, self.before)}
        elif self.thing.dtype == object:
            same = all(_same(a, b) for a, b in zip(self.thing.flat, self.before.flat))
        else:
            same = self.thing.tobytes() == self.before.tobytes()
        return [] if same else [None]

    def put(self, key, value):
        raise error(f"`{self.name}` {REASON}")

    def restore(self):
        if isinstance(self.thing, np.ndarray):
            self.thing[...] = self.before
        else:
            self.thing.clear()
            self.thing.update(self.before)


def _same(a, b):
    return a is b or (a is not _MISSING and b is not _MISSING and _control.same(a, b))


@functools.lru_cache(maxsize=None)
def _authors(kind):
    """Whether a class is the author's own: of no package that is installed."""
    if not _state.own(kind):
        return False
    module = sys.modules.get(kind.__module__)
    return "-packages" not in (getattr(module, "__file__", None) or "")


def _first_step(label):
    """A label as a name and its first step: ``acc[0].x`` as ``acc`` and ``[0]``."""
    name, step = re.match(r"([^.\[]*)(\.\w+|\[[^\]]*\])?", label).groups()
    return name, step or ""


class Reach:
    """What can be reached from where a block stands, and how it was when the block began."""

    def __init__(self, frame, loop=False):
        self.found, self.globals, self.seen = [], {}, {}
        self.rounds = rounds(_trace.here()) if loop else None
        names = self.rounds.names() if self.rounds else ()
        self.names = {name: frame.f_locals.get(name, _MISSING) for name in names}
        for name, value in frame.f_locals.items():
            self._walk(name, value)
        self._globals(frame.f_code, frame.f_globals)

    def _globals(self, code, scope):
        """The module's variables that code names: what they hold, and they themselves."""
        if id(code) in self.seen:
            return
        self.seen[id(code)] = code
        for name in code.co_names:
            if name in scope:
                self.globals[id(scope), name] = scope, scope[name]
                self._walk(name, scope[name])
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self._globals(constant, scope)

    def _walk(self, name, x):
        if x is None or isinstance(x, (bool, int, float, str, bytes, type, types.ModuleType)):
            return
        if id(x) in self.seen or isinstance(x, Undefined):
            return
        self.seen[id(x)] = x
        if isinstance(x, _control.Carried):
            return self._walk(name, x.state)
        if isinstance(x, tuple):
            for i, part in enumerate(x):
                self._walk(f"{name}[{i}]", part)
            return None
        if isinstance(x, types.FunctionType):
            if _state.own(x) or x.__code__ in _rewrite._inner:
                for variable, cell in zip(x.__code__.co_freevars, x.__closure__ or ()):
                    if id(cell) not in self.seen:
                        self.seen[id(cell)] = cell
                        self._add(_Cell(variable, cell))
                self._globals(x.__code__, x.__globals__)
            return None
        if isinstance(x, types.MethodType):
            self._walk(name, x.__self__)
            return self._walk(name, x.__func__)
        if isinstance(x, (list, collections.deque)):
            self._add(_List(name, x))
        elif isinstance(x, dict):
            self._add(_Dict(name, x))
        elif isinstance(x, (set, np.ndarray)):
            self._add(_Whole(name, x))
        if isinstance(x, types.SimpleNamespace) or _authors(type(x)):
            if hasattr(x, "__dict__"):
                self._add(_Dict(name, vars(x), x))
            if any("__slots__" in kind.__dict__ for kind in type(x).__mro__):
                self._add(_Slots(name, x))
        return None

    def _add(self, holder):
        self.found.append(holder)
        for key, value in holder.entries():
            self._walk(holder.label(key), value)

    def check_rounds(self, frame):
        """Refuses a loop whose rounds read what the round before set."""
        if self.rounds is None:
            return
        for name, old in self.names.items():
            new = frame.f_locals.get(name, _MISSING)
            if old is _MISSING or isinstance(old, Undefined) or _same(old, new):
                continue
            self._refuse(name, self.rounds.place(name, ""))
        for holder in self.found:
            for key in holder.changed():
                label = holder.label(key)
                name, step = _first_step(label)
                if self.rounds.reads(name, step):
                    self._refuse(label, self.rounds.place(name, step))

    @staticmethod
    def _refuse(label, place):
        raise EnigmaKernelError(
            f"`{label}` is set inside a `with` block, which does not carry it to the next round, and "
            "is read there: pass it through `init=` of for_range, keep it in a register_tensor, or "
            "write the loop as `for i in enigma.range(...)`",
            place or _trace.here(),
        )

    def forget(self, *known):
        """What the block changed has no value behind it, but for what holds one of ``known``."""
        for scope, name in list(self.globals):
            module, old = self.globals[scope, name]
            if not _same(old, module.get(name, _MISSING)):
                module[name] = Undefined(name, REASON)
        for holder in self.found:
            if isinstance(holder, _Cell) and any(holder._now(holder.thing) is x for x in known):
                continue
            for key in list(holder.changed()):
                holder.put(key, Undefined(holder.label(key), REASON))

    def restore(self):
        """Puts all back as it was when the block began."""
        for holder in self.found:
            holder.restore()
