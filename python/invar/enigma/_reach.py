"""What a ``with`` block changes in the lists, dicts, objects, closures and globals within its reach.

A block of the kernel is traced once and may run never or many times, so what it sets in Python
objects has no value behind it, as the names that it rebinds have none. ``Reach`` takes what is
within reach when the block begins (``_state``); what the block has changed says so when it is used.
"""

from __future__ import annotations

import re
import types

from .. import _state, _trace
from .._values import Undefined, Value
from ._errors import EnigmaKernelError, error
from ._rounds import rounds

REASON = (
    "is set inside a `with` block, which does not carry it: pass it through `init=` of for_range, "
    "or keep it in a register_tensor"
)
_MISSING = object()


def _same(a, b):
    return a is b or (a is not _MISSING and b is not _MISSING and _state.same(a, b))


def _value(root):
    try:
        return root.get()
    except (ValueError, KeyError, AttributeError):
        return _MISSING


def _first_step(label):
    """A label as a name and its first step: ``acc[0].x`` as ``acc`` and ``[0]``."""
    name, step = re.match(r"([^.\[]*)(\.\w+|\[[^\]]*\])?", label).groups()
    return name, step or ""


def _reads_of(value, seen=None):
    """The variables of outer functions that a function reads, and those that it calls in turn."""
    seen = set() if seen is None else seen
    known = callable(value) and not isinstance(value, (Undefined, Value))
    function = getattr(value, "__invar_function__", value) if known else None
    if not isinstance(function, types.FunctionType) or id(function) in seen:
        return set()
    seen.add(id(function))
    found = set()
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        if name.startswith("_invar_"):
            continue
        found.add(name)
        try:
            found |= _reads_of(cell.cell_contents, seen)
        except ValueError:
            continue
    return found


class Reach:
    """What is within reach of where a block stands, and how it was when the block began."""

    def __init__(self, frame, loop=False):
        scope = {n: x for n, x in frame.f_locals.items() if not n.startswith("_invar_")}
        # A block sets names through nobody: what it rebinds is the rewritten kernel's to say.
        variables = _state.Variables(tuple(scope), (), lambda: list(scope.values()), lambda _: None)
        self.before = _state.State(variables)
        self.rounds = rounds(_trace.here()) if loop else None
        names = self.rounds.names() if self.rounds else ()
        self.names = {name: scope.get(name, _MISSING) for name in names}
        #: Variables that functions read which the body names, before it sets them.
        self.through = {}
        if self.rounds:
            for name, written in self.rounds.named.items():
                for read in _reads_of(scope.get(name)) - written:
                    self.through.setdefault(read, name)
            for read in self.through:
                self.names.setdefault(read, scope.get(read, _MISSING))

    def _changed(self):
        """What the block changed within objects: label, kind, object and key; the key is ``None``
        for what is compared as a whole."""
        self.before.sync()
        for kind, thing, old in self.before.saved:
            path, new = self.before.paths[id(thing)], kind.read(thing)
            if kind in _state._CONTENT:
                if new != old:
                    yield _state.label(path), kind, thing, None
                continue
            was, now = dict(kind.items(old)), dict(kind.items(new))
            for key in (*was, *(key for key in now if key not in was)):
                if not _same(was.get(key, _MISSING), now.get(key, _MISSING)):
                    yield _state.label((*path, key)), kind, thing, key

    def check_rounds(self, frame):
        """Refuses a loop whose rounds read what the round before set."""
        if self.rounds is None:
            return
        for name, old in self.names.items():
            new = frame.f_locals.get(name, _MISSING)
            if old is not _MISSING and not isinstance(old, Undefined) and not _same(old, new):
                self._refuse(name, name, "")
        for label, *_ in self._changed():
            name, step = _first_step(label)
            # What is not set in the block's own text is set by what it calls.
            called = self.rounds.place(name, step) is None
            if called or name in self.through or self.rounds.reads(name, step):
                self._refuse(label, name, step)

    def _refuse(self, label, name, step):
        raise EnigmaKernelError(
            f"`{label}` is set inside a `with` block, which does not carry it to the next round, and "
            "is read there: pass it through `init=` of for_range, keep it in a register_tensor, or "
            "write the loop as `for i in enigma.range(...)`",
            self.rounds.place(name, step) or _trace.here(),
        )

    def forget(self, *known):
        """What the block changed has no value behind it, but for variables that hold one of
        ``known``."""
        for label, kind, thing, key in list(self._changed()):
            if key is None:
                raise error(f"`{label}` {REASON}")
            nothing = Undefined(label, REASON)
            if kind in (_state.List, _state.Deque):
                # What the block took out of a list had a value, which is unknown too.
                while len(thing) <= key:
                    thing.append(nothing)
            kind.put(thing, key, nothing)
        for root, old in self.before.roots.items():
            new = _value(root)
            if not _same(old, new) and not any(new is x for x in known):
                root.put(Undefined(root.label, REASON))
