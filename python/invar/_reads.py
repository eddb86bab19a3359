"""What a kernel took from outside: globals, variables of outer functions, attributes.

They are values at compile time, so a launch looks at them again: where one has changed since, the
kernel is compiled anew. Noted is what the compiler meets: each name and attribute that the kernel
reads, and what lists, dicts, sets and small arrays hold that it gets that way. Numbers, strings and
tuples are compared by value, all else by identity and by what it holds. What the kernel itself has
changed is left out. So is what is not there and would hide something: an object's own attribute where
the kernel reads one of its class.

Absent: the contents of what is large (``MAX_ELEMENTS``, ``MAX_BYTES``), which would make launches
slow, and what functions of packages read, such as the variables of the environment.
"""

from __future__ import annotations

import collections
import dataclasses
import operator
import types

import numpy as np

from . import _trace
from ._functions import Function
from ._control import MISSING, get, same
from ._syntax import own, own_class, own_module
from ._values import Memory, Place, Undefined, Value

#: So many elements of lists, dicts and sets are compared for each kernel; of more, none.
MAX_ELEMENTS = 1024
#: The bytes of an array are compared up to this size.
MAX_BYTES = 16384
_LISTS = (list, collections.deque)
_PLAIN = {int, float, bool, str, bytes, type(None), Value, Memory, Place, Undefined, Function}


def key_of(value):
    """What a compile-time value is known by in a table: equal keys are one and the same program."""
    kind = type(value)
    if kind in (int, str, bytes, bool, type(None)):
        return kind, value
    if kind in (float, complex):
        return kind, repr(value)
    if isinstance(value, np.generic):
        return kind, value.tobytes()
    if isinstance(value, tuple):
        return kind, tuple(map(key_of, value))
    if isinstance(value, frozenset):
        return kind, frozenset(map(key_of, value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = tuple(key_of(getattr(value, f.name)) for f in dataclasses.fields(value))
        # Equal by its author's rules, and of the same parts.
        return kind, value, fields
    return kind, value


def content_of(value):
    """What an object holds now, to be compared; ``None`` for what is compared by identity."""
    if isinstance(value, _LISTS):
        return list(value)
    if isinstance(value, dict):
        return dict(value)
    if isinstance(value, (set, bytearray)):
        return type(value)(value)
    if isinstance(value, np.ndarray) and value.nbytes <= MAX_BYTES:
        return list(value.flat) if value.dtype.hasobject else (value.dtype, value.shape, value.tobytes())
    return None


def _alike(value, content):
    """Whether an object holds what it held."""
    now = content_of(value)
    if isinstance(now, dict):
        now, content = [*now, *now.values()], [*content, *content.values()]
    if not isinstance(now, list):
        return now == content
    # Mostly nothing has changed, which is quick to see.
    return len(now) == len(content) and (all(map(operator.is_, now, content)) or all(map(same, now, content)))


class Reads:
    """What a kernel has read from outside, with the values of then."""

    def __init__(self, function=None, values=()):
        #: Containers (dicts, cells, objects) with a key and its value; objects with their contents.
        self.names, self.contents = {}, []
        self._noted, self._elements = {}, 0
        if function is not None:
            self.function(function)
        for value in values:
            self.note(value)

    def name(self, container, key, value):
        """A variable, or an entry of a namespace, was read."""
        if (id(container), key) not in self.names:
            self.names[id(container), key] = container, key, value
            self.note(value)

    def function(self, function):
        """A Python function was called."""
        for name in ("__defaults__", "__kwdefaults__"):
            self.name(function, name, getattr(function, name))

    def attribute(self, holder, name):
        """An attribute was read: where it was found, and where it was looked for before."""
        if isinstance(holder, types.ModuleType):
            if own_module(holder.__name__):
                self.name(vars(holder), name, vars(holder).get(name, MISSING))
            return
        of_class = isinstance(holder, type)
        cls = holder if of_class else type(holder)
        if not own_class(cls):
            return
        spaces = [vars(base) for base in cls.__mro__ if own(base)]
        found = next((space[name] for space in spaces if name in space), MISSING)
        if not of_class:
            if hasattr(type(found), "__set__"):
                if not isinstance(found, property):
                    self.name(holder, name, getattr(holder, name, MISSING))
            elif id(holder) not in _trace.current().made and hasattr(holder, "__dict__"):
                spaces.insert(0, vars(holder))
        for space in spaces:
            self.name(space, name, space.get(name, MISSING))
            if name in space:
                break

    def kept(self, holder, name, value):
        """An attribute was computed and kept: a launch looks whether it still stands there, or, where the kernel
        took it out again, whether there is none."""
        if id(holder) not in _trace.current().made:
            self.names[id(holder), name, "kept"] = vars(holder), name, value
            self.note(value)

    def note(self, value):
        """An object was met, with all that it holds."""
        if type(value) in _PLAIN or id(value) in self._noted or id(value) in _trace.current().made:
            return
        if isinstance(value, tuple):
            for x in value:
                self.note(x)
            return
        if isinstance(value, collections.UserDict):
            self.name(vars(value), "data", value.data)
            return
        content = content_of(value)
        if content is None:
            return
        self._noted[id(value)] = value
        self._elements += len(content)
        if self._elements <= MAX_ELEMENTS:
            self.contents.append((value, content))
            if isinstance(content, (list, dict)):
                for x in content.values() if isinstance(content, dict) else content:
                    self.note(x)

    def settle(self):
        """Leaves out what has changed since, as the kernel itself did that, and what is its own."""
        self.names = [n for n in self.names.values() if same(get(*n[:2]), n[2])]
        self.names = [n for n in self.names if type(n[2]) not in (Value, Undefined)]
        self.contents = [c for c in self.contents if _alike(*c)]
        del self._noted

    def current(self):
        """Whether all is as it was."""
        for container, key, value in self.names:
            now = get(container, key)
            if now is not value and not same(now, value):
                return False
        return all(_alike(*content) for content in self.contents)
