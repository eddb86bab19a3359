"""What a trace took from outside the kernel: globals, variables of outer functions, attributes.

They are values at compile time, so a launch looks at them again: where one has changed since, the
kernel is traced anew. Numbers, strings and tuples are compared by value, all else is by identity,
and by what it holds: the elements of lists, dicts and sets, attributes that the kernel names, and
the bytes of small arrays. What the kernel itself changes while it is traced is left out.

So is what is not there and would hide something: an object's own attribute where the kernel reads
one of its class.

Absent: the contents of what is large (``MAX_ELEMENTS``, ``MAX_BYTES``), which would make launches
slow, and what packages hold, such as the variables of the environment.
"""

from __future__ import annotations

import collections
import dataclasses
import operator
import types

import numpy as np

from . import _state

#: So many elements of lists, dicts and sets are compared for each kernel; of more, none.
MAX_ELEMENTS = 1024
#: The bytes of an array are compared up to this size.
MAX_BYTES = 16384
_MISSING = object()
#: Functions that read attributes whose names are values.
_BY_NAME = {"getattr", "hasattr", "vars", "__dict__"}
#: Classes whose methods, of the standard library, read attributes that the kernel does not name.
_UNNAMED = (collections.UserDict, collections.UserList, collections.UserString)


def equal(a, b):
    """Whether two objects are one, or the same number, string or tuple."""
    if a is b:
        return True
    kind = type(a)
    if kind is not type(b):
        return False
    if kind is int or kind is str or kind is bytes:
        return a == b
    if kind is float or kind is complex:
        # 0.0 and -0.0 differ, and a NaN is a NaN.
        return repr(a) == repr(b)
    if isinstance(a, np.generic):
        return a.tobytes() == b.tobytes()
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(equal, a, b))
    if kind is types.MethodType:
        return a.__self__ is b.__self__ and a.__func__ is b.__func__
    return False


def key_of(value):
    """What a compile-time value is known by in a table: equal keys are one and the same program."""
    kind = type(value)
    if kind in (int, str, bytes, bool, type(None)):
        return kind, value
    if kind in (float, complex):
        return kind, repr(value)
    if isinstance(value, np.generic):
        return kind, value.tobytes()
    if isinstance(value, (tuple, frozenset)):
        return kind, kind_of_keys(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = tuple(key_of(getattr(value, f.name)) for f in dataclasses.fields(value))
        # Equal by its author's rules, and of the same parts.
        return kind, value, fields
    return kind, value


def kind_of_keys(values):
    """The keys of a tuple's or a frozenset's values."""
    keys = map(key_of, values)
    return frozenset(keys) if isinstance(values, frozenset) else tuple(keys)


class _Slots:
    """An object's slots as a mapping of those that are set."""

    def __init__(self, value, names):
        self._value, self._names = value, names

    def keys(self):
        return {name for name in self._names if hasattr(self._value, name)}

    def __getitem__(self, name):
        return getattr(self._value, name)

    def get(self, name, default):
        return getattr(self._value, name, default)


class Reads:
    """What a kernel's function can name, with the values of now."""

    def __init__(self, function, values):
        #: Mappings with a name and its value; cells with their values; containers with contents.
        self.names, self.cells, self.contents = [], [], []
        #: Mappings with all their names, where the kernel computes those; functions with defaults.
        self.spaces, self.defaults = [], []
        self._words, self._functions, self._objects = set(), [], []
        self._seen, self._noted, self._elements = {}, set(), 0
        self._visit(function)
        for value in values:
            self._visit(value)
        while self._functions or self._pending():
            while self._functions:
                self._function(self._functions.pop())
            for space, holder in list(self._objects):
                for word in self._named(space, holder):
                    self._name(space, word)
        self._lacking()
        del self._words, self._functions, self._objects, self._seen, self._noted

    def _lacking(self):
        """Notes what is not there, and would hide what is found in a class: of an object's own
        attributes, and of those of classes before that one."""
        for space, holder in self._objects:
            if isinstance(holder, types.ModuleType):
                continue
            of_class = isinstance(holder, type)
            mro = holder.__mro__ if of_class else type(holder).__mro__
            if not of_class and (self._words & _BY_NAME or hasattr(mro[0], "__getattr__")):
                self.spaces.append((space, set(space.keys())))
            for word in self._words:
                before = []
                for base in mro:
                    if word in vars(base):
                        break
                    if _state.own(base):
                        before.append(vars(base))
                else:
                    continue
                if not of_class and not hasattr(type(vars(base)[word]), "__set__"):
                    before.append(space)
                for lacks in before:
                    if (id(lacks), word) not in self._noted and word not in lacks.keys():
                        self._noted.add((id(lacks), word))
                        self.names.append((lacks, word, _MISSING))

    def _pending(self):
        return any(
            (id(space), word) not in self._noted
            for space, holder in self._objects
            for word in self._named(space, holder)
        )

    def _named(self, space, holder):
        """The attributes that the kernel may read: where it computes their names, all of them."""
        if self._words & _BY_NAME and not isinstance(holder, types.ModuleType):
            return set(space.keys())
        if isinstance(holder, _UNNAMED):
            return set(space.keys())
        return self._words & space.keys()

    def _name(self, space, name):
        if (id(space), name) in self._noted:
            return
        self._noted.add((id(space), name))
        value = space[name]
        if isinstance(value, types.ModuleType):
            if not _state.own_module(value.__name__):
                return
            self._visit(value)
        elif isinstance(value, (staticmethod, classmethod, property)):
            for part in ("__func__", "fget"):
                if isinstance(getattr(value, part, None), types.FunctionType):
                    self._visit(getattr(value, part))
        else:
            self._visit(value)
        self.names.append((space, name, value))

    def _function(self, function):
        words = _state.code_names(function.__code__)[0]
        self._words |= words
        for name in words & function.__globals__.keys():
            self._name(function.__globals__, name)
        for cell in function.__closure__ or ():
            if id(cell) not in self._seen:
                self._seen[id(cell)] = cell
                try:
                    value = cell.cell_contents
                except ValueError:
                    continue
                self.cells.append((cell, value))
                self._visit(value)
        self.defaults.append((function, function.__defaults__, function.__kwdefaults__))
        for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self._visit(value)
        self._visit(getattr(function, "__wrapped__", None))

    def _visit(self, value):
        kind = _state.kind_of(value)
        if isinstance(value, types.ModuleType):
            self._object(value, value.__dict__)
            return
        if kind in (_state.Atom, _state.Carried, _state.Iterator) or id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if kind is _state.Function:
            self._functions.append(value)
        elif kind is _state.Class:
            self._class(value)
        elif kind is _state.Object:
            self._class(type(value))
            self._object(value, getattr(value, "__dict__", {}))
            if slots := _state.slots(type(value)):
                self._object(value, _Slots(value, slots))
        elif kind is _state.Numbers:
            if value.nbytes <= MAX_BYTES:
                self.contents.append((kind, value, kind.read(value)))
        elif kind in (_state.Tuple, _state.Bound):
            for _, child in kind.items(kind.read(value)):
                self._visit(child)
        else:
            count = value.size if kind is _state.Objects else len(value)
            self._elements += count
            if self._elements <= MAX_ELEMENTS:
                content = kind.read(value)
                self.contents.append((kind, value, content))
                if kind is not _state.Set and kind is not _state.Bytes:
                    for _, child in kind.items(content):
                        self._visit(child)

    def _class(self, cls):
        for base in cls.__mro__:
            if _state.own(base) and id(base) not in self._seen or base is cls:
                self._seen[id(base)] = base
                self._object(base, vars(base))
                for name, x in vars(base).items():
                    # Operators are called without their names.
                    if name.startswith("__") and isinstance(x, types.FunctionType):
                        self._visit(x)

    def _object(self, value, space):
        if not any(space is known for known, _ in self._objects):
            self._objects.append((space, value))

    def settle(self):
        """Leaves out what has changed since: the trace itself did that."""
        self.names = [n for n in self.names if equal(n[0].get(n[1], _MISSING), n[2])]
        self.cells = [c for c in self.cells if equal(_content(c[0]), c[1])]
        self.contents = [c for c in self.contents if _alike(*c)]
        self.spaces = [s for s in self.spaces if s[0].keys() == s[1]]

    def current(self):
        """Whether all is as it was."""
        for space, name, value in self.names:
            now = space.get(name, _MISSING)
            if now is not value and not equal(now, value):
                return False
        for cell, value in self.cells:
            now = _content(cell)
            if now is not value and not equal(now, value):
                return False
        for content in self.contents:
            if not _alike(*content):
                return False
        for function, defaults, named in self.defaults:
            if function.__defaults__ is not defaults or function.__kwdefaults__ is not named:
                return False
        for space, names in self.spaces:
            if space.keys() != names:
                return False
        return True


def _content(cell):
    try:
        return cell.cell_contents
    except ValueError:
        return _MISSING


def _all_equal(these, those):
    # Mostly nothing has changed, which is quick to see.
    return all(map(operator.is_, these, those)) or all(map(equal, these, those))


def _alike(kind, value, content):
    if kind is _state.List or kind is _state.Deque:
        return len(value) == len(content) and _all_equal(value, content)
    now = kind.read(value)
    if kind is _state.Dict:
        return (
            len(now) == len(content)
            and _all_equal(now, content)
            and _all_equal(now.values(), content.values())
        )
    if kind is _state.Objects:
        return now.shape == content.shape and all(map(equal, now.flat, content.flat))
    return now == content
