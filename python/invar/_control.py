"""Branches and loops of the kernel, and what they hand on.

A block that is compiled gives ``None`` if it ran to its end, or a *signal*: how it was left.
Conditions known at compile time choose a block. A traced condition makes regions of the IR; each
*region* remembers what the kernel's code stored in it: variables, elements of lists and dicts,
attributes. Behind a branch what differs is merged, place by place; a loop carries the places that its
body stores to. Which these are, and their types, shows the body itself: a loop's body is compiled
again until what it was taken to carry (``Iterations``) holds. Nothing of Python changes by that, for what
cannot be put back is refused in a region (``check_change``).

A jump that has regions between itself and its target becomes a ``break``, ``continue`` or ``return``
of the IR. To leave an unrolled loop or an inlined function so, what follows the first such branch
stands in an IR loop of one iteration (``enclose``). A jump through several IR loops leaves them one by
one, each with a flag.

Absent: the syntax of Python (``_compile``), and changes that other code than the kernel's makes.
"""

from __future__ import annotations

import ast
import functools
import operator
import types

import numpy as np

from . import _trace
from ._syntax import own_class
from ._types import type_named
from ._values import (
    BOOL, Elements, Phrase, Undefined, Value, beside_length, common_type, constant, convert,
    default_type, describe, fits, is_number, op, shown, spread, to_type, weak_kind, weak_of,
    zero,
)  # fmt: skip

#: The most iterations that an unrolled loop may have.
MAX_ITERATIONS = 65536
MISSING = object()


class Signal:
    """How a block was left."""

    def __init__(self, kind, value=None):
        self.kind, self.value = kind, value


BREAK, CONTINUE = Signal("break"), Signal("continue")
#: Every path of the block jumps; where to is in the IR already.
UNREACHABLE = Signal("unreachable")


# ---- places that change ----


class Region:
    """A region of the kernel: what its code has stored, and what was there before."""

    def __init__(self):
        #: By id of the container and key: container, key, what was there.
        self.log = {}
        #: Where a place was read before it was stored to, and where it was stored to first, if that
        #: matters.
        self.reads, self.writes = None, {}


def get(container, key):
    """What stands at a place: in a list or dict, or in an attribute of anything else."""
    if isinstance(container, (dict, types.MappingProxyType)):
        return container.get(key, MISSING)
    if isinstance(container, list) and isinstance(key, int):
        return container[key]
    try:
        return getattr(container, key, MISSING)
    except ValueError:  # An empty cell of a closure.
        return MISSING


def put(container, key, value):
    """Puts something at a place."""
    if value is MISSING:
        if isinstance(container, dict):
            container.pop(key, None)
        elif get(container, key) is not MISSING:
            delattr(container, key)
    elif isinstance(container, dict):
        dict.__setitem__(container, key, value)
    elif isinstance(container, list):
        list.__setitem__(container, key, value)
    else:
        object.__setattr__(container, key, value)


def store(container, key, value):
    """Stores at a place, in the kernel's current region."""
    check_met(container)
    note_store(container, key, value)


def note_store(container, key, value):
    """Stores at a place, of an object that met others too: what ways changed before they met."""
    t = _trace.current()
    region = t.regions[-1]
    place = id(container), key
    if place not in region.log:
        region.log[place] = container, key, get(container, key)
        region.writes[place] = t.place
    if t.target is not None:
        t.labels[place] = t.target
    put(container, key, value)


def read(container, key):
    """What stands at a place, which the kernel reads."""
    t, place = _trace.current(), (id(container), key)
    for region in reversed(t.regions):
        if place in region.log:
            break  # What stands there was stored in this region, so those around it read nothing.
        if region.reads is not None:
            region.reads.setdefault(place, t.place)
    return get(container, key)


def undo(region):
    """Puts back what was there before a region, but in what the region made itself."""
    made = _trace.current().made
    for place, (container, key, old) in region.log.items():
        if place[0] not in made or made[place[0]][1] is not region:
            put(container, key, old)


def hand_up(region):
    """What a region stored was stored in the one around it."""
    for place, entry in region.log.items():
        _trace.current().regions[-1].log.setdefault(place, entry)


def remember(value):
    """Notes that the kernel made an object in its current region; gives the object."""
    t = _trace.current()
    t.made[id(value)] = value, t.regions[-1]
    if hasattr(value, "__dict__"):
        t.made[id(value.__dict__)] = value.__dict__, t.regions[-1]
    return value


def in_region():
    """Whether the current line stands in a branch or loop of the kernel."""
    return len(_trace.current().regions) > 1


def check_change(value, what, instead):
    """Raises where an object of Python may not change so: it met others, or it is older than the
    branch or loop of the kernel around the current line."""
    t = _trace.current()
    check_met(value)
    made = t.made.get(id(value))
    if len(t.regions) > 1 and (made is None or made[1] is not t.regions[-1]):
        raise _trace.error(
            f"{what} in a branch or loop of the kernel, which not every thread runs, or more than once: {instead}"
        )


def check_identity(*values, always=False):
    """Raises where it is asked which object one is of which only the parts are known: a merged one. Such as are
    equal by their parts may be asked for, but where it is ``always`` an object that is meant."""
    met = _trace.current().met
    for value in values if met else ():
        by_parts = type(value).__eq__ is not object.__eq__ and not always
        _, name, where, is_new = met.get(id(holder_of(value)), (None, "", "", False))
        if is_new and not by_parts:
            raise _trace.error(
                f"{shown(name)} is a different object on each path through {where}, and which one is known only "
                "when the kernel runs: compare its parts, or keep a number that tells which it is"
            )


def holder_of(value):
    """Where the parts of an object stand."""
    return value.__dict__ if hasattr(value, "__dict__") else value


def meet(value, name, where, is_new=False):
    """Notes that an object met others, or, if it is new, stands for those that met: neither may change."""
    holder = holder_of(value)
    _trace.current().met.setdefault(id(holder), (holder, name, where, is_new))


def check_met(holder):
    """Raises where an object changes that met others."""
    met = _trace.current().met.get(id(holder))
    if met is not None:
        _, name, where, _ = met
        raise _trace.error(
            f"{shown(name)} is a different object on each path through {where}, so it can only be read "
            f"behind it: change it before they meet, or make a copy of {shown(name)} to change, as in "
            "list(...)"
        )


# ---- objects with parts ----


def parts(value, changes=None):
    """The keys and contents of a list, tuple, dict or object of the author's, as they are after some
    changes; ``None`` for all else."""
    if isinstance(value, tuple):
        return list(enumerate(value))
    holder = value
    if own_class(type(value)) and type(getattr(value, "__dict__", None)) is dict:
        holder = value.__dict__
    elif type(value) not in (list, dict):
        return None
    items = enumerate(value) if type(value) is list else holder.items()
    if not changes:
        return list(items)
    found = []
    for key, x in items:
        x = changes.get((id(holder), key), x)
        if x is not MISSING:
            found.append((key, x))
    return found


def remade(value, items):
    """A copy of an object with other contents."""
    if isinstance(value, tuple):
        new = [x for _, x in items]
        if all(a is b for a, b in zip(new, value)):
            return value
        return type(value)(*new) if hasattr(value, "_fields") else type(value)(new)
    if type(value) is list:
        return [x for _, x in items]
    if type(value) is dict:
        return dict(items)
    new = object.__new__(type(value))
    new.__dict__.update(items)
    return new


def numeric(x):
    """Whether it is a value of the kernel or a number."""
    return isinstance(x, Value) or is_number(x)


def same(a, b):
    """Whether two are one thing, one value, or the same number, string or tuple."""
    if a is b:
        return True
    kind = type(a)
    if kind is not type(b):
        return False
    if kind is int or kind is str or kind is bytes:
        return a == b
    if kind is Value:
        return a.id == b.id
    if kind is float or kind is complex:
        # 0.0 and -0.0 differ, and a NaN is a NaN.
        return repr(a) == repr(b)
    if isinstance(a, np.generic):
        return a.tobytes() == b.tobytes()
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return kind is types.MethodType and a.__self__ is b.__self__ and a.__func__ is b.__func__


class _Poison(Exception):
    def __init__(self, reason):
        self.reason = reason


def _meet(a, b, where):
    """The type at which two ways' values meet; raises ``_Poison`` if there is none."""
    kinds = weak_kind(a), weak_kind(b)
    if None not in kinds:
        if ("bool" in kinds) != (kinds[0] == kinds[1] == "bool"):
            raise _Poison(f"is a bool on one path through {where} and a number on another")
        types = default_type(a), default_type(b)
        return types[0] if types[0] == types[1] else common_type((a, b), "a variable")
    types = [default_type(x) for x in (a, b)]
    if kinds[0] or kinds[1]:
        strong = types[1] if kinds[0] else types[0]
        if fits(kinds[0] or kinds[1], strong) and strong.kind in ("scalar", "vector"):
            return strong
    if types[0] != types[1]:
        raise _Poison(f"changes its type: it is {types[0]} on one path through {where} and {types[1]} on another")
    return types[0]


class Merge:
    """What several ways through a construct left at places: numbers that differ become results."""

    #: Whether objects that meet do so for good.
    is_certain = True
    #: Why there is no value where a way has none, where objects differ, and where they have different parts.
    unassigned = "is not assigned on every path through {}"
    other_object = "is a different object on each path through {}; only values can differ"
    other_shape = "differs in its length or shape on the paths through {}"
    no_number = "is None on one path through {} and a number on another: give it a number on each"

    def __init__(self, ways, first, where, olds, region=None):
        self.ways, self.first, self.where = ways, first, where
        #: The region that all ways share, of which objects may still be made.
        self.region = region
        #: Of each result: its type, the values of the ways, the weak slots and the name.
        self.slots = {}
        #: Of each place: container, key and what gives the new content from the results.
        self.places = []
        for place, (container, key, old) in olds.items():
            made = _trace.current().made.get(place[0])
            if made is None or made[1] is self.region or made[1] in _trace.current().regions:
                self._add(place, container, key, old)  # Else only one way has it.

    def _add(self, place, container, key, old):
        values = [way.changes.get(place, old) for way in self.ways]
        # An object that is made on one way has no other ways to meet.
        apart = place[0] in _trace.current().made and not isinstance(container, Variables)
        if any(place not in way.changes for way in self.ways):
            read(container, key)
        if (any if apart else all)(x is MISSING for x in values):
            return
        self.places.append((container, key, self.merged(values, label(container, key))))

    def merged(self, values, name):
        """What gives the value that stands for those of all ways."""
        a = values[0]
        alike = all(same(a, x) for x in values[1:])
        if alike and self._stays(a):
            return lambda results: a
        undefined = [x for x in values if isinstance(x, Undefined)]
        if undefined or any(x is MISSING for x in values):
            return self.without(name, undefined and undefined[0].reason or self.unassigned.format(self.where))
        if all(map(numeric, values)):
            try:
                return self._slot(values, name)
            except _Poison as poison:
                return self.without(name, poison.reason)
        apart = [parts(x, way.changes) for x, way in zip(values, self.ways)]
        if alike and not apart[0]:
            return lambda results: a
        if None in apart or any(type(x) is not type(a) for x in values):
            before = f"{default_type(a)} before the loop and " if numeric(a) else ""
            reason = self.other_object.format(self.where, before)
            if any(x is None for x in values) and any(map(numeric, values)):
                reason = self.no_number.format(self.where)
            return self.without(name, reason)
        keys = [key for key, _ in apart[0]]
        if any([key for key, _ in x] != keys for x in apart[1:]):
            return self.without(name, self.other_shape.format(self.where))
        names = [part_of(name, key, hasattr(a, "__dict__")) for key in keys]
        makers = [self.merged([x[i][1] for x in apart], part) for i, part in enumerate(names)]

        def close():
            for x in () if alike or isinstance(a, tuple) else values:
                meet(x, name, self.where)

        def make(results):
            items = [(key, maker(results)) for key, maker in zip(keys, makers)]
            if alike and not isinstance(a, tuple):
                for key, x in items:
                    put(holder_of(a), key, x)
                return remember(a)
            new = remade(a, items)
            if not isinstance(a, tuple):
                meet(new, name, self.where, True)
            close()
            return new

        if self.is_certain:
            close()
        return make

    def _stays(self, a):
        """Whether what is the same on all ways is it behind them too, with all its parts: it was not made on
        the ways."""
        if isinstance(a, Value):
            return a.id < self.first
        t = _trace.current()
        made = t.made.get(id(a))
        return not isinstance(a, tuple) and (made is None or made[1] in t.regions)

    def without(self, name, reason):
        """What gives no value, for a reason."""
        return lambda results: Undefined(name, reason)

    def _slot(self, values, name):
        meeting = values[0]
        ty = default_type(meeting)
        for x in values[1:]:
            ty = _meet(meeting, x, self.where)
            if weak_kind(meeting):
                meeting = x
        return self.slot(len(self.slots), ty, values, weak_of(values), name)

    def slot(self, number, ty, values, weak, name):
        """A result, by a number or whatever else tells it from others; gives what gives its value."""
        self.slots[number] = ty, values, weak, name
        return lambda results: results[number]

    def row(self, way):
        """What a way hands on, as numbers of the builder; zeros if it is none of these ways."""
        if way not in self.ways:
            return [zero(ty).id for ty, *_ in self.slots.values()]
        number = self.ways.index(way)
        return [to_type(values[number], ty, shown(name)).id for ty, values, _, name in self.slots.values()]

    def finish(self, results):
        """Stores what the ways left, with the results in their places; gives the values of these."""
        made = {}
        for (number, (ty, _, weak, name)), result in zip(self.slots.items(), results):
            made[number] = Value(result, ty, weak)
            if name.isidentifier():
                _trace.current().builder.name(result, name)
        for container, key, maker in self.places:
            note_store(container, key, maker(made))
        return made


class Variables(dict):
    """The variables of a function."""


#: A node of the syntax tree as text; places are named more often than they are written.
_text = functools.lru_cache(maxsize=1024)(ast.unparse)


def label(container, key):
    """A place as messages name it."""
    written = _trace.current().labels.get((id(container), key))
    if written is not None and not isinstance(container, Variables):
        return _text(written)
    if isinstance(key, str):
        return key
    return Phrase(f"element {key!r} of a Python {type(container).__name__}")


def part_of(name, key, attribute=False):
    """A part of a place as messages name it."""
    if isinstance(name, Phrase):
        return Phrase(f"{'attribute' if attribute else 'element'} {key!r} of {name}")
    return f"{name}.{key}" if attribute else f"{name}[{key!r}]"


class Way:
    """A way out of a block: what it has changed, and what it returns."""

    def __init__(self, changes, returned=None, kind="break", target=None):
        self.changes, self.returned, self.kind, self.target = changes, returned, kind, target


def changes_since(index, olds=None):
    """What has been stored since the region of an index began."""
    changes, olds = {}, {} if olds is None else olds
    for region in _trace.current().regions[index:]:
        for place, (container, key, old) in region.log.items():
            if place not in changes:
                changes[place] = get(container, key)
            olds.setdefault(place, (container, key, old))
    return changes


def open_region(params=()):
    """Opens a region of the IR; gives its parameters."""
    try:
        return _trace.current().builder.open_region(list(params))
    except ValueError as e:
        raise _trace.error(
            f"{e}, where each `elif` counts as one: end a long chain, and go on with another `if` behind it"
        ) from None


def no_region():
    """An empty region of the IR."""
    open_region()
    return _trace.current().builder.close_region()


def apart(body):
    """Runs code in a region that not every thread runs, and puts back what it changed; gives what it
    gives, what it stored, and the IR's region."""
    t = _trace.current()
    open_region()
    t.regions.append(Region())
    t.frames.append(Frame("if"))
    result = body()
    t.frames.pop()
    region = t.regions.pop()
    undo(region)
    return result, region, t.builder.close_region()


def construct(word):
    """What messages call the branch or loop of the current line."""
    position = _trace.here()
    return f"the `{word}` on line {position[1]}" if position else f"this `{word}`"


# ---- jumps ----


def jump(signal):
    """Makes the IR's jump for a signal that leaves a region."""
    t = _trace.current()
    if signal is UNREACHABLE:
        # Nothing comes here; a region needs an end all the same.
        if not t.builder.terminated():
            t.emit("return_")
        return
    wanted = ("function", "kernel") if signal.kind == "return" else ("loop", "unrolled")
    index = max(i for i, frame in enumerate(t.frames) if frame.kind in wanted)
    target = t.frames[index]
    if target.kind == "unrolled" and signal.kind == "continue":
        index = max(i for i, frame in enumerate(t.frames) if frame.kind == "iteration")
        target = t.frames[index]
    for i in range(len(t.frames) - 1, index, -1):
        if t.frames[i].ways is not None and target.kind != "kernel":
            break
        if t.frames[i].kind == "finally":
            # What is done here is done in a branch, for those threads that jump.
            frames = t.frames
            t.frames = [*frames[:i], Frame("if")]
            frames[i].final()
            jump(signal)
            t.frames = frames
            return
    if target.kind == "kernel":
        t.emit("return_")
        return
    last = [frame for frame in t.frames[index:] if frame.ways is not None][-1]
    last.leave(signal, None if last is target else target)


class Frame:
    """A branch, loop or function around the current line. ``kind`` is ``if``, ``with``, ``loop`` (of
    the kernel), ``unrolled``, ``iteration`` (of an unrolled loop), ``finally``, ``function``, or ``kernel``,
    which is left for good."""

    def __init__(self, kind, jumps=(), where="", final=None):
        self.kind, self.where, self.final = kind, where, final
        #: The jumps in its syntax that lead to it.
        self.jumps = jumps
        #: The ways out of its IR loop, of the author's or of one iteration; ``None`` where it has none.
        self.ways = None

    def open(self, first):
        """Begins its IR loop, in the region that was opened; ``first`` is the first value in it."""
        t = _trace.current()
        self.first, self.ways, self.olds, self.index = first, [], {}, len(t.regions)
        self.region = Region()
        t.regions.append(self.region)

    def leave(self, signal, target=None):
        """A jump: to the end or the next iteration of its IR loop, or on to a target further out."""
        t = _trace.current()
        kind = "exit" if target is not None else "break"
        if self.kind == "loop" and target is None and signal.kind in ("continue", "yield"):
            kind = signal.kind
        changes = changes_since(self.index, self.olds)
        self.ways.append(Way(changes, signal.value, kind, (target, signal.kind)))
        t.emit({"continue": "continue_", "yield": "yield_"}.get(kind, "break_"), [])

    def exits(self):
        """Of each target further out that jumps go on to: their kind, what they leave, and what gives the value
        that they return."""
        found = {}
        for way in self.ways:
            if way.kind == "exit":
                found.setdefault(way.target, []).append(way)
        for (target, kind), ways in found.items():
            merge = Merge(ways, self.first, "the loop", self.olds, self.region)
            yield kind, merge, self.returned(merge, target.where)

    @staticmethod
    def returned(merge, where):
        """What gives the value that a function returns on the ways of a merge."""
        values = [way.returned for way in merge.ways]
        nothing = [x is None for x in values]
        if any(nothing) and not all(nothing):
            raise _trace.error(f"{where} returns a value on one path and nothing on another: return one on each")
        maker = merge.merged(values, Phrase("the returned value"))

        def make(results):
            value = maker(results)
            if isinstance(value, Undefined):
                raise _trace.error(f"the value that {where} returns {value.reason}")
            return value

        return make

    def close(self, merge, init, make, behind):
        """Ends the IR loop, whose own results are those of a merge: ``make(init, rows)`` makes it of its first
        values (zeros for ``None``) and of what each jump hands on, which are the loop's own and, for each
        target further out, a flag and what it gets. Gives what ``behind`` makes of its results."""
        t, exits = _trace.current(), list(self.exits())
        t.regions.pop()
        undo(self.region)
        rows = []
        for way in self.ways:
            row = merge.row(way)
            for _, other, _ in exits:
                row += [constant(BOOL, way in other.ways).id, *other.row(way)]
            rows.append(row)
        init = merge.row(None) if init is None else list(init)
        for _, other, _ in exits:
            init += [constant(BOOL, False).id, *other.row(None)]
        results = iter(make(init, rows))
        value = behind(merge.finish([next(results) for _ in merge.slots]))
        for kind, other, returned in exits:
            flag = Value(next(results), BOOL)
            values = [next(results) for _ in other.slots]
            then = apart(lambda: jump(Signal(kind, returned(other.finish(values)))))[2]
            t.emit("if_", flag.id, (then, None), (no_region(), []))
        return value


# ---- loops of one iteration ----


def enclose(statement_jumps):
    """Before a branch or loop of the kernel that a jump may leave: puts what follows into IR loops,
    for the functions and unrolled loops around that some jump leads to."""
    t = _trace.current()
    if not statement_jumps:
        return
    start = len(t.frames)
    while start and t.frames[start - 1].kind in ("unrolled", "iteration", "function", "finally"):
        start -= 1
        if t.frames[start].kind == "function":
            break
    for frame in t.frames[start:]:
        if frame.ways is None and frame.jumps:
            first = t.builder.value_count()
            open_region()
            frame.open(first)


def leave_frame(frame, signal):
    """The end of a function, an unrolled loop or an iteration: ends its IR loop, if it has one. Gives the
    signal behind it, and what a function returns."""
    t = _trace.current()
    t.frames.pop()
    if frame.ways is None:
        return signal, signal.value if signal is not None else None
    if not frame.ways:
        # No jump of the kernel leads here: it needs no loop.
        region = t.regions.pop()
        hand_up(region)
        for number, (value, owner) in list(t.made.items()):
            if owner is region:
                t.made[number] = value, t.regions[-1]
        t.builder.splice(t.builder.close_region())
        return signal, signal.value if signal is not None else None
    through = signal is not None and (
        signal is UNREACHABLE
        or (signal.kind == "return" and frame.kind != "function")
        or (signal.kind == "break" and frame.kind == "iteration")
    )
    if through:
        t.frames.append(frame)
        jump(signal)
        t.frames.pop()
    else:
        frame.leave(signal or Signal("break"))
    region = t.builder.close_region()
    normal = [way for way in frame.ways if way.kind != "exit"]
    merge = Merge(normal, frame.first, frame.where, frame.olds if normal else {}, frame.region)
    returned = lambda results: None
    if normal and frame.kind == "function":
        returned = frame.returned(merge, frame.where)
    t.builder.hoist(region)
    make = lambda init, rows: t.emit("loop_", init, region, rows)
    value = frame.close(merge, None, make, returned)
    return None if normal else UNREACHABLE, value


# ---- branches ----


#: Says whether an object of Python is true; ``_calls`` asks methods of the author's.
ask = bool


def truth(x):
    """A condition: a Python bool, or a traced one."""
    if isinstance(x, Undefined):
        x.fail()
    dialect = _trace.current().dialect if _trace.active() else None
    if dialect:
        x = dialect.traced(x)
    if isinstance(x, Value):
        if x.type != BOOL and dialect and x.type.kind == "scalar":
            return convert(BOOL, (x,))
        if x.type != BOOL:
            raise _trace.error(
                f"a condition has type {x.type}: compare it, as in `x != 0`"
                if x.type.kind == "scalar"
                else f"a condition has type {x.type}: reduce it with iv.all(...) or iv.any(...)"
            )
        return x
    return ask(x)


def if_stmt(condition, body, otherwise=lambda: None):
    """``if condition: body() else: otherwise()``."""
    c = truth(condition)
    if not isinstance(c, Value):
        return body() if c else otherwise()
    t, where = _trace.current(), construct("if")
    first, olds, sides = t.builder.value_count(), {}, []
    place, index = t.place, len(t.regions)

    def end_of(block):
        signal = block()
        return jump(signal) if signal is not None else Way(changes_since(index, olds))

    for block in (body, otherwise):
        t.place = place
        sides.append(apart(lambda: end_of(block))[::2])
    t.place = place
    live = [way for way, _ in sides if way is not None]
    merge = Merge(live, first, where, olds if live else {})
    ends = [(region, merge.row(way) if way is not None else None) for way, region in sides]
    results = t.emit("if_", c.id, *ends)
    if not live:
        return UNREACHABLE
    merge.finish([number for number, _ in results])
    return None


# ---- loops of the kernel ----


class Slot:
    """One carried value: its type, what it is (``int`` or ``float``) while it is weak, and what it is
    before the loop."""

    def __init__(self, iterations, ty, weak, old, name):
        self.iterations, self.type, self.weak, self.old, self.name = iterations, ty, weak, old, name
        self.active = False

    def retype(self, ty, weak=None):
        """The value has met a type: the loop is compiled again with it."""
        self.type, self.weak, self.iterations.dirty = self.type.with_scalar(ty.scalar), weak, True

    def value(self, number):
        """The value that an iteration begins with."""
        self.active = True
        weak = frozenset([self]) if self.weak and self.weak != "bool" else None
        if self.name.isidentifier():
            _trace.current().builder.name(number, self.name)
        return Value(number, self.type, weak)

    def take(self, x):
        """Takes what an iteration hands on; changes its type for what is no longer weak."""
        kind, own = weak_kind(x), default_type(x)
        if kind is None:
            if own == self.type:
                return
            if self.weak and not own.is_bool and (own.is_float or self.weak == "int"):
                self.type, self.weak, self.iterations.dirty = own, None, True
                return
        elif (kind == "bool") == self.type.is_bool:
            if self.weak == "int" and kind == "float":
                self.retype(own, "float")
                return
            if fits(kind, self.type):
                return
        after = own if kind is None else "an int" if kind == "int" else f"a {kind}"
        raise _Poison(f"changes its type in the loop: it is {self.type} at first and {after} after an iteration")


class Iterations(Merge):
    """What a loop carries, as far as compiling its body has shown: what its iterations left, beside what was there
    before, the first way."""

    is_certain = False
    unassigned = "has no value at the end of an iteration of the loop"
    other_object = "is {1}another object after an iteration of the loop; only values can change"
    other_shape = "changes its length or shape in the loop"
    no_number = "is None before the loop and a number after an iteration: begin with a number"

    def __init__(self, assigned):
        #: What is carried, by place and name; of each place what gives its content from that.
        self.carried, self.begins = {}, []
        #: Why a place has no value in the loop, and the places that only the loop assigns.
        self.poison, self.only = {}, []
        self.dirty = False
        for container, key in assigned:
            old, number = get(container, key), ((id(container), key), label(container, key))
            if numeric(old):
                self.carried[number] = Slot(self, default_type(old), weak_kind(old), old, number[1])
                self.begins.append((container, key, operator.itemgetter(number)))

    def begin(self, numbers):
        """Puts what an iteration begins with at its places."""
        made = {key: slot.value(n) for (key, slot), n in zip(self.carried.items(), numbers)}
        for container, key, maker in self.begins:
            store(container, key, maker(made))
        self.forbid()

    def forbid(self):
        """Puts nothing where there is no value."""
        for container, key, reason in self.poison.values():
            store(container, key, Undefined(label(container, key), reason))

    def end(self, loop):
        """Takes what the iterations of a loop have shown: of its frame."""
        self.loop, self.place, self.only = loop, None, []
        ways = [way for way in loop.ways if way.kind != "exit"]
        super().__init__([Way({}), *ways], loop.first, "the loop", loop.olds)
        self.begins = self.places
        self.dirty |= self.carried.keys() != self.slots.keys()
        self.carried = {number: slot for number, slot in self.carried.items() if number in self.slots}
        self.slots = {number: self.slots[number] for number in self.carried}

    def _add(self, place, container, key, old):
        values = [way.changes.get(place, old) for way in self.ways]
        made = _trace.current().made.get(place[0])
        if place in self.poison or made is not None and made[1] is self.loop.region:
            return
        if old is MISSING or isinstance(old, Undefined):
            if not all(same(old, x) for x in values):
                self.only.append((container, key))
            return
        self.place, before = place, dict(self.slots)
        try:
            maker = self.merged(values, label(container, key))
        except _Poison as poison:
            self.slots = before
            self.poison[place] = container, key, poison.reason
            self.dirty = True
        else:
            if len(self.slots) > len(before):
                self.places.append((container, key, maker))

    def without(self, name, reason):
        raise _Poison(reason)

    def _slot(self, values, name):
        old, *ends = values
        number = self.place, name
        slot = self.carried.get(number)
        if slot is None:
            x = next((x for x in ends if not same(old, x)), old)
            ty = default_type(x if weak_kind(old) and weak_kind(x) is None else old)
            weak = None if weak_kind(x) is None else weak_kind(old)
            slot = self.carried[number] = Slot(self, ty, weak, old, name)
            self.dirty = True
        else:
            for x in ends:
                slot.take(x)
        return self.slot(number, slot.type, values, None, name)


def kernel_loop(where, assigned, header, body, undefined):
    """A loop of the kernel. ``assigned`` are places that its body may store to, as containers and
    keys; ``header(types)`` opens its region and gives the loop's own values and the parameters, and
    what closes it; ``body(own)`` compiles an iteration and gives its signal; ``undefined`` says what
    has no value behind the loop."""
    t, iterations = _trace.current(), Iterations(assigned)
    place = t.place
    saved = len(t.frames), len(t.regions), len(t.arrays), len(t.functions), t.call
    start = t.builder.mark()
    while True:
        iterations.dirty = False
        try:
            return _attempt(iterations, where, header, body, undefined)
        except _Again:
            pass
        except Exception:
            if not iterations.dirty:
                raise
        finally:
            for slot in iterations.carried.values():
                slot.active = False
        t.builder.unwind(start)
        frames, regions, arrays, functions, call = saved
        del t.frames[frames:], t.arrays[arrays:], t.functions[functions:]
        while len(t.regions) > regions:
            undo(t.regions.pop())
        t.call, t.place = call, place


class _Again(Exception):
    """A loop carries something else than was thought."""


def _attempt(iterations, where, header, body, undefined):
    t, slots = _trace.current(), list(iterations.carried.values())
    for container, key, _ in iterations.begins:
        read(container, key)
    init = [to_type(slot.old, slot.type, shown(slot.name)).id for slot in slots]
    first = t.builder.value_count()
    own, params, close = header([slot.type.name for slot in slots])
    frame = Frame("loop", where=where)
    frame.open(first)
    t.frames.append(frame)
    iterations.begin(params)
    signal = body(own)
    if signal is None or signal is CONTINUE:
        frame.leave(Signal("yield"))
    else:
        jump(signal)
    t.frames.pop()
    region = t.builder.close_region()
    iterations.end(frame)
    if iterations.dirty:
        raise _Again

    def behind(_):
        iterations.forbid()
        for container, key in iterations.only:
            store(container, key, Undefined(label(container, key), undefined))

    frame.close(iterations, init, lambda init, rows: close(init, region, rows), behind)


class Range:
    """``iv.range``: a loop in the kernel."""

    def __init__(self, *args):
        if not 1 <= len(args) <= 3:
            raise _trace.error(f"iv.range() takes 1 to 3 arguments, found {len(args)}")
        start, stop, step = (0, *args, 1) if len(args) == 1 else (*args, 1)[:3]
        for x in (start, stop, step):
            if not numeric(x) or weak_kind(x) in ("bool", "float"):
                raise _trace.error(f"iv.range() of {describe(x)}: its arguments are integers")
        if is_number(step) and step == 0:
            raise _trace.error("iv.range() with a step of 0 has no iterations")
        self.start, self.stop, self.step = start, stop, step

    def __iter__(self):
        raise _trace.error(
            "iv.range() stands in a `for` statement, directly after `in`: elsewhere write range(...), which is "
            "unrolled, or store in such a loop"
        )

    __reversed__ = __iter__

    def values(self):
        """First index, bound and step as values, and the index's type."""
        what = "iv.range()"
        self.start, self.stop, self.step = beside_length((self.start, self.stop, self.step))
        ty = common_type((self.start, self.stop), what)
        if weak_kind(self.start) and weak_kind(self.stop) and weak_kind(self.step) is None:
            ty = default_type(self.step)
        if ty.kind != "scalar" or not ty.is_integer:
            raise _trace.error(f"iv.range() of {ty}: its arguments are integers")
        # The step of unsigned indices may be signed.
        signed, strong = type_named("i" + ty.name[1:]), weak_kind(self.step) is None
        if default_type(self.step) == signed if strong else is_number(self.step) and self.step < 0:
            step_type = signed
        else:
            step_type = ty
        start, stop = to_type(self.start, ty, what), to_type(self.stop, ty, what)
        return start, stop, to_type(self.step, step_type, what), ty


def kernel_for(items, body, assigned=()):
    """``for index in items: body(index)`` for a ``Range``."""
    where = construct("for")

    def header(types):
        start, stop, step, ty = items.values()
        index, *params = open_region([ty.name, *types])

        def close(init, region, rows):
            return _trace.emit("for_", start.id, stop.id, step.id, init, region, rows)

        return Value(index, ty), params, close

    undefined = f"is assigned only in {where}, which may have no iterations: assign it before the loop too"
    return kernel_loop(where, assigned, header, body, undefined)


def kernel_while(test, body, assigned=()):
    """``while test(): body()`` as a loop of the kernel."""
    t, where = _trace.current(), construct("while")

    def header(types):
        return None, open_region(types), lambda *parts: t.emit("loop_", *parts)

    def iteration(_):
        c = truth(test())
        if isinstance(c, Value):
            then = no_region()
            open_region()
            t.frames[-1].leave(BREAK)
            t.emit("if_", c.id, (then, []), (t.builder.close_region(), None))
        elif not c:
            raise _trace.error("the condition of this `while` becomes false at compile time in the loop")
        return body()

    undefined = f"is assigned only in {where}: assign it before the loop, to give its type"
    return kernel_loop(where, assigned, header, iteration, undefined)


# ---- parts of expressions that not every thread evaluates ----


def lazily(thunk, what, how="in a part of"):
    """Evaluates an operand in a region of its own; gives its value and the region."""
    x, region, made_region = apart(thunk)
    for place, (container, key, old) in region.log.items():
        made = _trace.current().made.get(place[0])
        if made is not None and made[1] is region:
            continue
        raise _trace.error(
            f"{shown(label(container, key))} changes {how} {what} that not every thread evaluates: "
            "assign it before, or write the condition as an `if`"
        )
    return x, made_region


def logical(name, thunks):
    """``a and b``, ``a or b``: what follows is evaluated only where what is before leaves it open."""
    first, *rest = thunks
    left = first()
    for thunk in rest:
        c = truth(left)
        if not isinstance(c, Value):
            if c == (name == "or"):
                return left
            left = thunk()
            continue
        right, region = lazily(lambda: truth(thunk()), f"`{name}`")
        left = join(name, c, right, region)
    return left


def join(name, c, right, region):
    """``c and right``, where ``right`` is evaluated in a region of its own."""
    t = _trace.current()
    right = to_type(right, BOOL, f"`{name}`")
    if t.builder.is_pure(region):
        t.builder.splice(region)
        return op(name, [c, right])
    known = constant(BOOL, name == "or")
    sides = [(region, [right.id]), (no_region(), [known.id])]
    if name == "or":
        sides.reverse()
    return Value(t.emit("if_", c.id, *sides)[0][0], BOOL)


_ENDED = object()


def joined(name, items, what, test):
    """``any(test(x) for x in items)``, or ``all`` for the name ``and``: items are taken one by one,
    from the first traced one on only where none before settles it."""
    t = _trace.current()
    iterator, settles, result = iter(items), name == "or", None

    def take():
        item = next(iterator, _ENDED)
        return item is _ENDED, not settles if item is _ENDED else truth(test(item))

    while True:
        if result is None:
            ended, c = take()
            if isinstance(c, Value):
                result = c
            elif ended or c == settles:
                return c
            continue
        (ended, c), region = lazily(take, what, "while an item is taken for")
        if isinstance(c, Value) or not t.builder.is_empty(region):
            result = join(name, result, c, region)
        if ended or c is settles:
            return settles if c is settles else result


def if_exp(condition, then, otherwise):
    """``then() if condition else otherwise()``."""
    c = truth(condition)
    if not isinstance(c, Value):
        return then() if c else otherwise()
    t = _trace.current()
    first = t.builder.value_count()
    a, then_region = lazily(then, "a conditional expression")
    b, other_region = lazily(otherwise, "a conditional expression")
    regions = [then_region, other_region]
    counts = [len(x) for x in (a, b) if isinstance(x, Elements)]
    values = [a, b]
    if counts:
        for i, x in enumerate(values):
            # A vector is taken apart where it is made.
            open_region()
            t.builder.splice(regions[i])
            values[i] = spread(x, counts[0])
            regions[i] = t.builder.close_region()
        values = [Elements(x) for x in values]
    merge = Merge([Way({}), Way({})], first, "it", {})
    make = merge.merged(values, Phrase("the value of the conditional expression"))
    slots = list(merge.slots.values())
    sides = [[to_type(v[i], ty, "a conditional expression") for ty, v, _, _ in slots] for i in (0, 1)]
    if all(map(t.builder.is_pure, regions)):
        for region in regions:
            t.builder.splice(region)
        made = [op("select", [y, x, c]) for x, y in zip(*sides)]
        for value, slot in zip(made, slots):
            value.weak = slot[2]
    else:
        ends = [(region, [x.id for x in side]) for region, side in zip(regions, sides)]
        results = t.emit("if_", c.id, *ends)
        made = [Value(n, type_named(ty), slot[2]) for (n, ty), slot in zip(results, slots)]
    result = make(dict(zip(merge.slots, made)))
    if isinstance(result, Undefined):
        raise _trace.error(f"the value of the conditional expression {result.reason}")
    return result
