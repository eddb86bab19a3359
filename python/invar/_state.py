"""What a piece of a kernel can change: its variables, and every object of Python within its reach.

A construct of the kernel (a branch, a loop) takes a ``State`` before it traces its body and after,
and compares: what changed and is a number or a value of the kernel is carried by its path, wherever
it stands; what changed and cannot be carried is an error that names it. Within reach are the
variables that the statement names, and what the functions under way can name: variables of outer
functions, globals, attributes of classes; from there through containers, objects and functions.

A path is a variable's name, or a ``Root`` for one that the statement does not name, and then keys,
indices and attributes. An object is walked along the first path that leads to it; others have an
``Alias`` in its place.

Absent: what only compiled code can reach, and iterators that do not show where they are.
"""

from __future__ import annotations

import array
import collections
import copy
import dis
import enum
import functools
import operator
import sys
import types

import numpy as np

from . import _trace
from ._values import Memory, Place, Undefined, Value, is_number

_STANDARD = getattr(sys, "stdlib_module_names", frozenset(sys.builtin_module_names)) | {
    "numpy", "ml_dtypes", "builtins",
}  # fmt: skip
#: Modules of the standard library whose objects are walked like the author's own.
_PLAIN = {"types", "argparse", "dataclasses", "collections"}


def own_module(name):
    """Whether a module is the author's: not this package, NumPy or the standard library."""
    module = (name or "").partition(".")[0]
    return module != "invar" and (module not in _STANDARD or module == "__main__")


def own(thing):
    """Whether a function or class is the author's."""
    return own_module(getattr(thing, "__module__", None))


#: What is the kernel's own, or stands for it.
_OF_KERNELS = (Value, Memory, Place, Undefined)
_PLAIN_ITEMS = {int, float, bool, str, type(None)}


class Carried:
    """An object of the surface whose list ``state`` loops and branches carry like a list."""

    def __init__(self, state):
        self.state = state


class Attribute:
    """The key of an attribute in a path."""

    known: dict = {}

    def __init__(self, name):
        self.name = name


def attribute(name):
    """The key of the attribute of that name; there is one for each."""
    found = Attribute.known.get(name)
    if found is None:
        found = Attribute.known[name] = Attribute(name)
    return found


# ---- the kinds of objects ----


class Atom:
    """Nothing in it can change, or nothing that concerns a kernel: numbers, values, buffers."""


class List:
    """A list."""

    read, copy = staticmethod(list), staticmethod(copy.copy)

    @staticmethod
    def keys(value, content):
        return len(content)

    @staticmethod
    def items(content):
        return enumerate(content)

    @staticmethod
    def write(value, content):
        list.__setitem__(value, slice(None), content)

    @staticmethod
    def put(value, key, child):
        list.__setitem__(value, key, child)


class Deque(List):
    """A deque."""

    @staticmethod
    def write(value, content):
        if len(value) == len(content):
            # An iterator that stands in it stays good.
            for key, x in enumerate(content):
                value[key] = x
            return
        value.clear()
        value.extend(content)

    @staticmethod
    def put(value, key, child):
        value[key] = child


class Tuple(List):
    """A tuple, which is made anew where a part changes."""


class Dict(List):
    """A dict."""

    read = staticmethod(dict)

    @staticmethod
    def keys(value, content):
        return tuple(id(k) if isinstance(k, Value) else k for k in content)

    @staticmethod
    def items(content):
        return content.items()

    @staticmethod
    def write(value, content):
        if list(map(id, value)) != list(map(id, content)):
            dict.clear(value)
        # Else an iterator that stands in it stays good.
        dict.update(value, content)

    @staticmethod
    def put(value, key, child):
        dict.__setitem__(value, key, child)


def slots(cls):
    """The names of a class's slots."""
    names = []
    for base in cls.__mro__:
        own = base.__dict__.get("__slots__", ())
        names.extend((own,) if isinstance(own, str) else own)
    return [name for name in names if name not in ("__dict__", "__weakref__")]


class Object(Dict):
    """An object with attributes."""

    @staticmethod
    def read(value):
        content = {attribute(name): x for name, x in getattr(value, "__dict__", {}).items()}
        for name in slots(type(value)):
            try:
                content[attribute(name)] = object.__getattribute__(value, name)
            except AttributeError:
                continue
        return content

    @staticmethod
    def keys(value, content):
        return tuple(content)

    @staticmethod
    def write(value, content):
        for key in Object.read(value):
            if key not in content:
                object.__delattr__(value, key.name)
        for key, x in content.items():
            object.__setattr__(value, key.name, x)

    @staticmethod
    def put(value, key, child):
        # As frozen dataclasses do it: carrying is no assignment of the author's.
        object.__setattr__(value, key.name, child)


class Bound(Object):
    """A method with its object, or a partial call: what it holds is fixed."""

    @staticmethod
    def read(value):
        if isinstance(value, functools.partial):
            names = "func", "args", "keywords"
        else:
            names = "__self__", "__func__"
        return {attribute(name): getattr(value, name) for name in names}

    @staticmethod
    def write(value, content):
        """It is fixed."""

    @staticmethod
    def put(value, key, child):
        """It is fixed; what it holds has been changed in place."""


class Objects(List):
    """A NumPy array of objects."""

    @staticmethod
    def read(value):
        return value.copy()

    @staticmethod
    def keys(value, content):
        return content.shape

    @staticmethod
    def items(content):
        flat = content.ndim == 1
        return ((key[0] if flat else key, x) for key, x in np.ndenumerate(content))

    @staticmethod
    def write(value, content):
        value[...] = content

    @staticmethod
    def put(value, key, child):
        value[key] = child


# Kinds whose content is compared as a whole, and never carried.


class Numbers:
    """A NumPy array of numbers."""

    advice = (
        "an array of NumPy holds no values of the kernel: keep what changes in a list, or in an "
        "array of objects (dtype=object)"
    )

    @staticmethod
    def read(value):
        first = _trace.current().first if _trace.active() else {}
        known = first.get(id(value))
        if known is not None and _same_array(value, known[1].array):
            return known[1]
        content = _Array(value.copy())
        first.setdefault(id(value), (value, content))
        return content

    @staticmethod
    def write(value, content):
        if not _same_array(value, content.array):
            value[...] = content.array


class _Array:
    """An array's content, compared by its type, shape and bytes."""

    def __init__(self, array):
        self.array = array

    def __eq__(self, other):
        return self is other or _same_array(self.array, other.array)


def _same_array(one, two):
    """Whether two arrays have the same type, shape and bytes."""
    if one.dtype != two.dtype or one.shape != two.shape:
        return False
    if one.flags.c_contiguous and two.flags.c_contiguous and not one.dtype.hasobject:
        word = np.uint64 if one.nbytes % 8 == 0 else np.uint8
        flat = [x.reshape(-1).view(np.uint8).view(word) for x in (one, two)]
        return np.array_equal(*flat)
    return one.tobytes() == two.tobytes()


class Bytes:
    """A bytearray, or an array of the module ``array``."""

    advice = "it holds no values of the kernel: keep what changes in a list"
    read = staticmethod(bytes)

    @staticmethod
    def write(value, content):
        memoryview(value).cast("B")[:] = content


class Set:
    """A set."""

    advice = "a set that differs on two paths cannot be carried: keep flags in a list or dict"

    @staticmethod
    def read(value):
        return _Members(value)

    @staticmethod
    def write(value, content):
        if _Members(value) != content:
            value.clear()
            value.update(content.members)


class _Members:
    """A set's members, compared without the operators of the kernel's values."""

    def __init__(self, value):
        self.members = set(value)
        self.ids = {id(x) if isinstance(x, Value) else x for x in value}

    def __eq__(self, other):
        return self.ids == other.ids


class Iterator:
    """An iterator, as far as it shows where it is."""

    advice = "take its values before, into a list"

    @staticmethod
    def read(value):
        if isinstance(value, types.GeneratorType):
            return None if value.gi_frame is None else value.gi_frame.f_lasti
        left = operator.length_hint(value, -1)
        if left >= 0 and hasattr(value, "__length_hint__"):
            return left
        if type(value) in (zip, map, filter, enumerate):
            try:
                return [
                    Iterator.read(x) if hasattr(x, "__next__") else x
                    for x in value.__reduce__()[1]
                    if hasattr(x, "__next__") or isinstance(x, int)
                ]
            except TypeError:
                return None
        return repr(value)


class Function:
    """A function of the author's: it reaches what it can name."""


class Class:
    """A class of the author's: it reaches what its methods can name, and its attributes."""


_CONTENT = (Numbers, Bytes, Set, Iterator)
_kinds: dict = {}


def kind_of(value):
    """The kind of an object."""
    cls = type(value)
    found = _kinds.get(cls)
    if found is None:
        found = _classify(cls)
        if len(_kinds) > 4096:
            _kinds.clear()
        _kinds[cls] = found
    if found is Numbers and value.dtype.hasobject and value.dtype == object:
        return Objects
    if found in (Function, Class) and not own(value):
        return Atom
    return found


def _classify(cls):
    if issubclass(cls, (Value, Memory, Place, Undefined, type(None), enum.Enum)):
        return Atom
    for base, kind in (
        (Carried, Carried), (list, List), (dict, Dict), (tuple, Tuple),
        (collections.deque, Deque), (set, Set), (np.ndarray, Numbers),
        ((bytearray, array.array), Bytes), (types.FunctionType, Function), (type, Class),
        ((types.MethodType, functools.partial), Bound),
    ):  # fmt: skip
        if issubclass(cls, base):
            return kind
    module = (getattr(cls, "__module__", None) or "").partition(".")[0]
    if hasattr(cls, "__next__") and hasattr(cls, "__iter__") and not own(cls):
        return Iterator if module in ("builtins", "itertools") else Atom
    if (own(cls) or module in _PLAIN) and not issubclass(cls, types.ModuleType):
        if getattr(cls, "__dictoffset__", 0) or slots(cls):
            return Object
    return Atom


# ---- variables that a statement does not name ----


class Root:
    """A variable of an outer function, a global, or an attribute of a class."""

    __slots__ = ("label", "owner", "name")

    def __init__(self, label, owner, name):
        self.label, self.owner, self.name = label, owner, name

    def __eq__(self, other):
        return isinstance(other, Root) and self.owner is other.owner and self.name == other.name

    def __hash__(self):
        return hash((id(self.owner), self.name))

    def get(self):
        """Its value; raises KeyError, ValueError or AttributeError if it has none."""
        if isinstance(self.owner, types.CellType):
            return self.owner.cell_contents
        if isinstance(self.owner, dict):
            return self.owner[self.name]
        return getattr(self.owner, self.name)

    def put(self, value):
        if isinstance(self.owner, types.CellType):
            self.owner.cell_contents = value
        elif isinstance(self.owner, dict):
            self.owner[self.name] = value
        elif getattr(self.owner, self.name) is not value:
            raise _trace.error(
                f"`{self.label}` changes in a branch or loop of the kernel, which cannot carry it: "
                "keep it in a variable of the kernel"
            )


def code_names(code):
    """The names that code and the functions in it look up, and the globals that it assigns."""
    found = _names.get(code)
    if found is None:
        names, stored = set(), set()
        for instruction in dis.get_instructions(code):
            if instruction.opcode not in dis.hasname:
                continue
            if instruction.opname == "STORE_GLOBAL":
                stored.add(instruction.argval)
            if not instruction.opname.startswith(("STORE_", "DELETE_")):
                names.add(instruction.argval)
        rewritten = "_invar_" in code.co_freevars
        for inner in code.co_consts:
            if rewritten and isinstance(inner, str) and inner.isidentifier():
                names.add(inner)  # Attributes are read by a call that has their names.
            if isinstance(inner, types.CodeType):
                more, also = code_names(inner)
                names |= more
                stored |= also
        if len(_names) > 4096:
            _names.clear()
        found = _names[code] = frozenset(names), frozenset(stored)
    return found


_names: dict = {}


class Reach:
    """What the functions of one trace can name, besides the cells of their closures."""

    def __init__(self):
        self.functions, self.classes = {}, {}

    def of(self, function):
        """The roots of a function: globals that hold something that can change, and defaults."""
        # A rewritten function names what the written one does; both stand for themselves.
        key = function.__code__, id(function.__globals__)
        found = self.functions.get(key)
        if found is not None and found[0] is function.__globals__:
            return found[1]
        space, roots = function.__globals__, []
        names, stored = code_names(function.__code__)
        for name in sorted(names | stored):
            if name not in space:
                continue
            value = space[name]
            if isinstance(value, types.ModuleType):
                if own_module(value.__name__) and value.__dict__ is not space:
                    for inner in sorted(names & value.__dict__.keys()):
                        if kind_of(value.__dict__[inner]) is not Atom:
                            roots.append(Root(f"{name}.{inner}", value.__dict__, inner))
            elif name in stored or kind_of(value) is not Atom:
                roots.append(Root(name, space, name))
        self.functions[key] = space, roots
        return roots

    def within(self, cls):
        """The roots of a class, and the functions of its methods."""
        found = self.classes.get(cls)
        if found is None:
            roots, functions = [], []
            for base in cls.__mro__:
                if not own(base):
                    continue
                for name, x in list(vars(base).items()):
                    for part in (x, *(getattr(x, n, None) for n in ("__func__", "fget", "fset"))):
                        if isinstance(part, types.FunctionType):
                            functions.append(part)
                    if name.startswith("__") or kind_of(x) in (Atom, Function):
                        continue
                    roots.append(Root(f"{base.__name__}.{name}", base, name))
            found = self.classes[cls] = roots, functions
        return found


def reaches(thunk):
    """Whether a part of an expression can change anything: it calls something, or assigns."""
    names = code_names(thunk.__code__)[0]
    return "call" in names or "let" in names


# ---- what nobody has changed ----


class Entry:
    """An object and what it held when the trace first saw it; ``thawed`` if it may hold something
    else since, or leads to what does."""

    __slots__ = ("value", "kind", "content", "parents", "thawed", "leads")

    def __init__(self, value, kind, content):
        self.value, self.kind, self.content = value, kind, content
        self.parents, self.thawed = [], False
        #: The functions and classes that it leads to, once they are asked for.
        self.leads = None

    def changed(self):
        """Whether it holds something else now."""
        kind, value, content = self.kind, self.value, self.content
        if kind in (Tuple, Bound):
            return False
        if kind in _CONTENT:
            return kind.read(value) != content
        if kind is Objects:
            return value.shape != content.shape or not all(map(operator.is_, value.flat, content.flat))
        now = kind.read(value) if kind is Object else value
        if len(now) != len(content) or not all(map(operator.is_, now, content)):
            return True
        return isinstance(content, dict) and not all(map(operator.is_, now.values(), content.values()))


class Ledger:
    """The objects that are still as a trace first saw them, so that it need not look at them again,
    nor put them back.

    The kernel's own code says what it changes (``touch``); before code runs that does not say it,
    such as compiled functions and generators, it says that (``suspect``, or for good ``tainted``), and
    the next look compares all. So what other threads do to objects that the kernel only reads stays.
    Nothing with a value of the kernel in it is still, and what has been changed never is again.
    """

    def __init__(self):
        self.entries, self.loose = {}, {}
        self.suspect = self.tainted = False
        #: Lazy iterators of Python's own over plain containers: taking from them runs nobody's code.
        self.plain = {}

    def look(self):
        """Compares what may have been changed unsaid."""
        if self.suspect or self.tainted:
            self.suspect = False
            for entry in list(self.entries.values()):
                if not entry.thawed and entry.changed():
                    self._thaw(entry)

    def touch(self, value):
        """The kernel's code changes an object."""
        entry = self.entries.get(id(value))
        if entry is not None:
            self._thaw(entry)

    @staticmethod
    def _thaw(entry):
        stack = [entry]
        while stack:
            entry = stack.pop()
            if not entry.thawed:
                entry.thawed = True
                stack.extend(entry.parents)

    def still(self, value):
        """The entry of an object if it is still as it was first seen, or ``None``."""
        entry = self.entries.get(id(value))
        if entry is None and id(value) not in self.loose:
            entry = self._take(value)
        return None if entry is None or entry.thawed else entry

    def _take(self, value):
        """Takes an object and what it leads to down, if nothing in there is the kernel's."""
        found, parents, stack = {}, {}, [(value, None)]
        while stack:
            x, parent = stack.pop()
            kind = kind_of(x)
            if kind in (Function, Class) or kind is Atom and not isinstance(x, _OF_KERNELS):
                continue
            known = self.entries.get(id(x))
            if (
                kind in (Atom, Carried, Iterator)
                or id(x) in self.loose
                or (known is not None and known.thawed)
            ):
                self._loosen(parent, found, parents)
                return None
            if parent is not None:
                parents.setdefault(id(x), []).append(parent)
            if known is not None or id(x) in found:
                continue
            content = kind.read(x)
            found[id(x)] = Entry(x, kind, content)
            if kind in _CONTENT:
                continue
            items = content.values() if isinstance(content, dict) else content
            if kind is not Objects and all(type(child) in _PLAIN_ITEMS for child in items):
                continue
            stack.extend((child, id(x)) for _, child in kind.items(content))
        self.entries.update(found)
        for number, holders in parents.items():
            self.entries[number].parents.extend(self.entries[n] for n in holders)
        return self.entries[id(value)]

    def _loosen(self, number, found, parents):
        """What leads to something of the kernel's is not looked at as a whole again."""
        stack = [number]
        while stack:
            number = stack.pop()
            if number is not None and number not in self.loose and number in found:
                self.loose[number] = found[number].value
                stack.extend(parents.get(number, ()))

    def around(self, numbers):
        """The ids of objects with those of all that leads to them."""
        found, stack = set(), [self.entries[n] for n in numbers]
        while stack:
            entry = stack.pop()
            if id(entry.value) not in found:
                found.add(id(entry.value))
                stack.extend(entry.parents)
        return found

    def leads(self, entry):
        """The functions and classes that an object leads to."""
        if entry.leads is None:
            functions, classes, stack, seen = {}, {}, [entry.value], set()
            while stack:
                x = stack.pop()
                kind = kind_of(x)
                if kind is Function:
                    functions[id(x)] = x
                elif kind is Class:
                    classes[x] = True
                if kind in (Atom, Function, Class) or kind in _CONTENT or id(x) in seen:
                    continue
                seen.add(id(x))
                if kind is Object:
                    classes[type(x)] = True
                content = self.entries[id(x)].content
                stack.extend(child for _, child in kind.items(content))
            entry.leads = list(functions.values()), list(classes)
        return entry.leads


# ---- leaves ----


class Shape:
    """Stands for a container or object among the leaves."""

    def __init__(self, value, kind, keys):
        self.value, self.kind, self.keys = value, kind, keys

    def same(self, other):
        return isinstance(other, Shape) and (type(self.value), self.keys) == (
            type(other.value), other.keys,
        )  # fmt: skip

    def fixed(self):
        return self.kind in (Tuple, Bound)


class Still(Shape):
    """Stands for an object that is still as the trace first saw it, with all that it leads to: what it
    holds is not among the leaves."""

    def __init__(self, value, kind):
        super().__init__(value, kind, None)

    def same(self, other):
        return isinstance(other, Still) and self.value is other.value


class Content:
    """The content of what is compared as a whole."""

    def __init__(self, value, kind, content):
        self.value, self.kind, self.content = value, kind, content

    def same(self, other):
        return (
            isinstance(other, Content)
            and self.value is other.value
            and self.content == other.content
        )


class Alias:
    """An object that another path led to before."""

    def __init__(self, value):
        self.value = value

    def fixed(self):
        return False

    def same(self, other):
        return isinstance(other, Alias) and self.value is other.value


def object_of(leaf):
    """The object that a leaf stands for, or ``None`` for what has no parts."""
    return leaf.value if isinstance(leaf, (Shape, Content, Alias)) else None


class Variables:
    """The variables that a statement may change: their names, and how to read and set them.

    ``assigned`` are those that it assigns; of the others only what they hold can change.
    """

    def __init__(self, names, assigned, get, set):
        self.names, self.assigned, self.get, self.set = names, assigned, get, set


NONE = Variables((), (), tuple, lambda values: None)


class State:
    """The variables at one moment, and the contents of all within reach.

    ``fresh`` are paths that are walked even where another path led to the same object before: they
    are about to hold a copy of it. ``also`` are functions whose reach counts. Variables that hold
    something else than in the state ``like`` are walked last: an object keeps the path that it had.
    """

    def __init__(self, variables, extra=(), fresh=(), also=(), like=None):
        self.variables, self.fresh, self._like = variables, fresh, like
        t = _trace.current()
        if t.reach is None:
            t.reach, t.ledger = Reach(), Ledger()
        self._ledger = t.ledger
        self._ledger.look()
        self._late = []
        self.values = list(variables.get())
        #: What stands at each path; where each object was found; objects with their contents.
        self.leaves, self.paths, self.saved = {}, {}, []
        #: Variables that the statement does not name, with their values.
        self.roots, self._functions, self._classes = {}, list(also), {}
        self._seen_classes = set()
        #: The paths where the walk began, in order, with what stood there; what is walked though it is
        #: still; what objects held at this moment, once it is gone through again.
        self._tops, self._open, self._past = [], set(), None
        #: Variables of which aliases of others are walked, too, and where the one that is under way
        #: leads to.
        self._apart, self._mine = set(), {}
        #: The entries of the objects that were still.
        self.stills = {}
        known = dict(zip(like.variables.names, like.values)) if like is not None else {}
        for name, value in zip(variables.names, self.values):
            if name in known and known[name] is not value and kind_of(value) is not Atom:
                self._late.append(((name,), value))
            else:
                self._begin((name,), value)
        for name, value in extra:
            self._begin((name,), value)
        self._walk_reach()
        if self._late:
            for path, value in self._late:
                self._begin(path, value)
            self._walk_reach()
        self._like = None

    def _begin(self, path, value):
        self._tops.append((path, value))
        self._walk(path, value)

    def _walk_reach(self):
        t = _trace.current()
        cells = {id(cell) for cell in getattr(self.variables.get, "__closure__", None) or ()}
        functions, done = self._functions, set()
        functions.extend(f for _, f in t.functions)
        while functions or self._classes:
            if self._classes:
                roots, methods = t.reach.within(self._classes.popitem()[0])
                functions.extend(methods)
                self._walk_roots(roots)
                continue
            function = functions.pop()
            if id(function) in done:
                continue
            done.add(id(function))
            closure = function.__closure__
            if closure:
                for name, cell in zip(function.__code__.co_freevars, closure):
                    if name.startswith("_invar_let_"):
                        functions.append(cell.cell_contents)
                    if id(cell) not in cells and not name.startswith("_invar_"):
                        cells.add(id(cell))
                        self._walk_roots((Root(name, cell, None),))
            self._walk_roots(t.reach.of(function))
            for held in ("__defaults__", "__kwdefaults__", "__dict__"):
                if getattr(function, held):
                    self._walk_roots((Root(f"{function.__name__}.{held}", function, held),))

    def _walk_roots(self, roots):
        for root in roots:
            if root in self.roots:
                continue
            try:
                value = root.get()
            except (ValueError, KeyError, AttributeError):
                continue
            self.roots[root] = value
            like = self._like
            if like is not None and root in like.roots and like.roots[root] is not value:
                self._late.append(((root,), value))
            else:
                self._begin((root,), value)

    def _walk(self, path, value):
        kind = kind_of(value)
        if kind is Atom:
            self.leaves[path] = value
            return
        if kind is Function:
            self.leaves[path] = value
            self._functions.append(value)
            return
        if kind is Class:
            self.leaves[path] = value
            self._class(value)
            return
        if kind is Carried:
            self.leaves[path] = value
            path, value, kind = (*path, "state"), value.state, List
        apart = path[:1] in self._apart
        known = self._mine if apart else self.paths
        if id(value) in known and kind is not Tuple and id(value) not in self.stills:
            first = known[id(value)]
            if path not in self.fresh or path[: len(first)] == first:
                self.leaves[path] = Alias(value)
                return
        entry = None if kind in (Tuple, Bound, Iterator) or self.fresh else self._entry(value)
        if apart and len(path) == 1:
            entry = None
        if entry is not None:
            self.leaves[path] = Still(value, kind)
            self.paths.setdefault(id(value), path)
            self.stills[id(value)] = entry
            functions, classes = self._ledger.leads(entry)
            self._functions.extend(functions)
            for cls in classes:
                self._class(cls)
            return
        if apart:
            self._mine[id(value)] = path
        first = id(value) not in self.paths
        content = self._content(kind, value)
        if kind is not Tuple and first:
            self.paths[id(value)] = path
            self.saved.append((kind, value, content))
        if kind in _CONTENT:
            self.leaves[path] = Content(value, kind, content)
            return
        if kind is Object:
            self._class(type(value))
        self.leaves[path] = Shape(value, kind, kind.keys(value, content))
        for key, child in kind.items(content):
            self._walk((*path, key), child)

    def _entry(self, value):
        """The entry of an object that is to stand for all it leads to, or ``None``."""
        if self._past is None:
            return self._ledger.still(value)
        entry = None if id(value) in self._past else self._ledger.entries.get(id(value))
        return None if entry is None or entry.thawed or id(value) in self._open else entry

    def _content(self, kind, value):
        """What an object held at this moment."""
        if self._past is None or kind in (Tuple, Bound):
            return kind.read(value)
        if id(value) in self._past:
            return self._past[id(value)]
        return self._ledger.entries[id(value)].content

    def _class(self, cls):
        if cls not in self._seen_classes:
            self._seen_classes.add(cls)
            self._classes[cls] = True

    # -- going back --

    def restore(self):
        """Puts everything back to this moment."""
        self.sync()
        for kind, value, content in self.saved:
            if kind is not Iterator:
                kind.write(value, content)
            elif kind.read(value) != content:
                raise _trace.error(
                    f"`{label(self.paths[id(value)])}` moves on in a part of the kernel that not "
                    f"every thread runs, or that is traced more than once: {kind.advice}"
                )
        for root, value in self.roots.items():
            if root.get() is not value:
                root.put(value)
        self.variables.set(self.values)

    def replace(self, changes, fresh=()):
        """Puts everything back to this moment, with other values at some paths; at those of
        ``fresh`` stand copies of the objects."""
        self.restore()
        if not changes and not fresh:
            return
        parts = parts_of(changes, fresh)
        self.variables.set(
            [
                rebuild((name,), value, changes, fresh, parts)
                for name, value in zip(self.variables.names, self.values)
            ]
        )
        for root, value in self.roots.items():
            if (root,) in parts:
                new = rebuild((root,), value, changes, fresh, parts)
                if new is not value:
                    if isinstance(new, Undefined) and not isinstance(root.owner, types.CellType):
                        raise _trace.error(f"`{new.name}` {new.reason}")
                    root.put(new)

    def forget(self, before):
        """Takes traced values out of what outlives the trace: such objects are as they were, but
        those that grew."""
        before.sync()
        contents = {id(value): (kind, value, content) for kind, value, content in before.saved}
        for path, x in self.leaves.items():
            if not isinstance(x, (Value, Undefined, Memory, Place)):
                continue
            for n in range(len(path) - 1, 0, -1):
                value = object_of(self.leaves.get(path[:n]))
                if id(value) in contents:
                    kind, value, content = contents[id(value)]
                    if kind not in _CONTENT and kind.keys(value, content) == self.leaves[path[:n]].keys:
                        kind.write(value, content)
                    break
            else:
                if path[0] in before.roots:
                    path[0].put(before.roots[path[0]])

    # -- what was still --

    def _again(self, numbers):
        """Walks the same again, also through those objects, in what they held at this moment."""
        self._open |= numbers
        if self._past is None:
            self._past = {}
        self._past.update((id(value), content) for _, value, content in self.saved)
        self.leaves, self.paths, self.saved, self.stills = {}, {}, [], {}
        for path, value in self._tops:
            self._mine = {}
            self._walk(path, value)

    def set_apart(self, other):
        """Where a variable is another object than in another state, walks it last in both, so that
        objects keep the paths that they have in both; of two objects, walks what each leads to."""
        self.sync()
        other.sync()
        values, late, apart = dict(other._tops), set(), set()
        for path, a in self._tops:
            b = values.get(path)
            objects = [kind_of(x) not in (Atom, Function, Class) for x in (a, b)]
            if a is not b and any(objects):
                late.add(path)
                if all(objects):
                    apart.add(path)
        if late:
            for state in (self, other):
                state._tops.sort(key=lambda top: top[0] in late)
                state._apart = apart
                state._again(set())

    def sync(self):
        """Puts what has been changed since this moment among the leaves, as it was."""
        self._ledger.look()
        if any(entry.thawed for entry in self.stills.values()):
            self._again(set())

    def expose(self, value):
        """Puts every path to an object among the leaves."""
        if id(value) in self._ledger.entries:
            numbers = self._ledger.around([id(value)])
            if not numbers <= self._open:
                self._again(numbers)

    def leaf(self, path):
        """What stands at a path, or ``None``."""
        self.sync()
        while path not in self.leaves:
            above = (self.leaves.get(path[:n]) for n in range(1, len(path)))
            found = next((x for x in above if isinstance(x, Still)), None)
            if found is None:
                return None
            self.expose(found.value)
        return self.leaves[path]

    def align(self, other):
        """Makes two states show the parts of the same objects."""
        self.sync()
        other.sync()
        while self.stills or other.stills:
            numbers = set()
            for path, a in self.leaves.items():
                b = other.leaves.get(path)
                if a is b or not (isinstance(a, Still) or isinstance(b, Still)):
                    continue
                if object_of(a) is None or object_of(b) is None:
                    continue
                if not same(a, b):
                    numbers.update(id(x.value) for x in (a, b) if isinstance(x, Still))
            if not numbers:
                break
            numbers = self._ledger.around(numbers)
            self._again(numbers)
            other._again(numbers)

    # -- comparing --

    def alike(self, path, other):
        """Whether the same stands at a path in another state."""
        a, b = self.leaves.get(path), other.leaves.get(path)
        if isinstance(a, Alias) == isinstance(b, Alias):
            return same(a, b)
        if object_of(a) is not object_of(b):
            return False
        # One object, found along two paths: it is what it was if its parts are.
        mine, its = self.paths[id(a.value)], other.paths[id(a.value)]
        return all(
            same(x, other.leaves.get((*its, *p[len(mine) :])))
            for p, x in self.leaves.items()
            if p[: len(mine)] == mine
        )

    def moved(self, path, other):
        """Whether a container at a path is another than in another state, or shared there."""
        a, b = self.leaves.get(path), other.leaves.get(path)
        return (
            isinstance(a, (Shape, Alias))
            and isinstance(b, (Shape, Alias))
            and a.value is not b.value
            and not kind_of(a.value) in (Tuple, Bound)
        )

    def misses(self, path):
        """Whether the variable that a path begins with was not within reach."""
        return isinstance(path[0], Root) and path[0] not in self.roots

    def hidden(self, path):
        """Whether a path leads through an object that another path led to before."""
        return any(isinstance(self.leaves.get(path[:n]), Alias) for n in range(1, len(path)))


def parts_of(changes, fresh=()):
    """All paths on the way to changes."""
    return {path[:n] for path in (*changes, *fresh) for n in range(1, len(path) + 1)}


def rebuild(path, value, changes, fresh, parts):
    """A variable's value with some of what it holds replaced; in place but at ``fresh``."""
    if path not in parts:
        return value
    if path in changes:
        return changes[path]
    kind = kind_of(value)
    if kind is Carried:
        rebuild((*path, "state"), value.state, changes, fresh, parts)
        return value
    if kind in (Atom, Function, Class) or kind in _CONTENT:
        return value
    content = kind.read(value)
    new = [
        (key, child, rebuild((*path, key), child, changes, fresh, parts))
        for key, child in kind.items(content)
    ]
    if kind is Tuple:
        items = [child for _, _, child in new]
        if all(a is b for a, b in zip(items, value)):
            return value
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if path in fresh:
        value = kind.copy(value)
    for key, old, child in new:
        if child is not old:
            kind.put(value, key, child)
    return value


def same(a, b):
    """Whether two leaves are one compile-time thing, or one value."""
    if a is b:
        return True
    if isinstance(a, (Shape, Content, Alias)):
        return a.same(b)
    if isinstance(a, Value) or isinstance(b, Value):
        return isinstance(a, Value) and isinstance(b, Value) and a.id == b.id
    if isinstance(a, Undefined) or isinstance(b, Undefined):
        return False
    if is_number(a) and is_number(b):
        # 0.0 and -0.0 differ, and so do 1 and 1.0 and True.
        return type(a) is type(b) and repr(a) == repr(b)
    return isinstance(a, str) and isinstance(b, str) and a == b


def label(path):
    """A path as the author writes it: ``acc[2]``, ``self.total``."""
    name, *keys = path
    text = name.label if isinstance(name, Root) else name
    for key in keys:
        if isinstance(key, Attribute):
            text += "" if key.name in ("__self__", "__func__") else f".{key.name}"
        elif isinstance(key, tuple):
            text += f"[{', '.join(map(repr, key))}]"
        else:
            text += f"[{key!r}]"
    return text
