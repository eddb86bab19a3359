"""Control flow of a kernel at trace time: what ``_rewrite`` turns statements into.

A statement's parts come as functions; each gives ``None`` if it ran to its end, or a *signal*: how
it was left. Compile-time conditions run as Python. A traced condition makes regions of the IR: both
sides are traced, and what they left in the variables is merged. Loops of the kernel carry the
variables that their body assigns; lists, tuples and dicts are carried element by element.

What a construct carries, and with which types, must be known before its body is traced. Each has a
``Plan`` of that; where the body shows it wrong, ``Restart`` unwinds to the construct, which traces
the body anew by the corrected plan. Each restart settles at least one thing, so it ends.

A jump that has IR regions between itself and its target becomes a ``break``, ``continue`` or
``return`` of the IR. To leave an unrolled loop or an inlined function so, it is put into an IR loop
of one round, from its first jump on. A jump through several IR loops leaves them one by one, each carrying a flag.
"""

from __future__ import annotations

import collections
import sys

import numpy as np

from . import _sharing, _trace
from ._errors import KernelError
from ._state import (
    NONE,
    Alias,
    Carried,
    Content,
    Iterator,
    Object,
    Shape,
    State,
    Variables,
    kind_of,
    label,
    object_of,
    parts_of,
    reaches,
    rebuild,
    same,
)
from ._types import type_named
from ._values import (
    BOOL,
    Memory,
    Undefined,
    Value,
    common_type,
    constant,
    convert,
    default_type,
    describe,
    fits,
    is_number,
    op,
    to_type,
    weak_kind,
    weak_of,
    zero,
)

#: The name of what a function returns, among its variables.
RETURNED = "the returned value"
#: An unrolled loop may have no more rounds.
MAX_ROUNDS = 65536


class Signal:
    """How a block was left."""

    def __init__(self, kind, value=None, place=None):
        self.kind, self.value, self.place = kind, value, place


BREAK, CONTINUE = Signal("break"), Signal("continue")
#: Every path of the block jumps; where to is in the IR already.
UNREACHABLE = Signal("unreachable")


def returns(value=None):
    """``return value``."""
    return Signal("return", value, None if value is None else _trace.here())


# ---- how values meet ----


def line_of(position):
    return f"line {position[1]}" if position else "here"


class _Poison(Exception):
    def __init__(self, reason):
        self.reason = reason


def _numeric(x):
    return isinstance(x, Value) or is_number(x)


def _meet(a, b, where):
    """The type at which two ways' values of a variable meet; raises ``_Poison`` if there is none."""
    for x in (a, b):
        if isinstance(x, Undefined):
            raise _Poison(x.reason or f"is not assigned on every path through {where}")
    if not (_numeric(a) and _numeric(b)):
        raise _Poison(f"is another object on each path through {where}; only values can differ")
    kinds = weak_kind(a), weak_kind(b)
    if None not in kinds:
        if ("bool" in kinds) != (kinds[0] == kinds[1] == "bool"):
            raise _Poison(f"is a bool on one path through {where} and a number on another")
        types = default_type(a), default_type(b)
        return types[0] if types[0] == types[1] else common_type((a, b), "a variable")
    types = [default_type(x) for x in (a, b)]
    try:
        if kinds[0] or kinds[1]:
            strong = types[1] if kinds[0] else types[0]
            weak = a if kinds[0] else b
            to_type_checked(weak, strong)
            return strong
    except _Poison:
        pass
    if types[0] != types[1]:
        raise _Poison(
            f"changes its type: it is {types[0]} on one path through {where} and {types[1]} on "
            "another"
        )
    return types[0]


def to_type_checked(x, ty):
    if not fits(weak_kind(x), ty) or ty.kind not in ("scalar", "vector"):
        raise _Poison("")


# ---- frames: what runs around the current line ----


class Frame:
    """A branch, a loop or a function around the current line."""

    #: Whether an IR loop stands for it, which a jump can leave.
    in_ir = False
    #: Whether it is the kernel itself, which is left for good.
    kernel = False

    def __init__(self, kind):
        self.kind = kind


def _jump(signal):
    """Makes the IR's jump for a signal that leaves a region."""
    t = _trace.current()
    if signal is UNREACHABLE:
        # Nothing comes here; a region needs an end all the same.
        if not t.builder.terminated():
            t.builder.return_()
        return
    wanted = ("function",) if signal.kind == "return" else ("loop", "unrolled")
    index = max(i for i, frame in enumerate(t.frames) if frame.kind in wanted)
    target = t.frames[index]
    for i in range(len(t.frames) - 1, index, -1):
        if t.frames[i].in_ir and not (target.kind == "function" and target.kernel):
            break
        if isinstance(t.frames[i], FinallyFrame):
            _finally_and_jump(i, signal)
            return
    if target.kind == "function" and target.kernel:
        _check_kernel_return(signal)
        t.at()
        t.builder.return_()
        return
    crossed = [f for f in t.frames[index + 1 :] if f.in_ir]
    if target.kind == "unrolled" and signal.kind == "continue":
        # The round's own IR loop is what a `continue` leaves.
        rounds = [f for f in t.frames[index + 1 :] if f.kind == "round"]
        if not rounds[-1].plan.wrapped:
            rounds[-1].plan.wrapped = True
            raise _trace.Restart(rounds[-1].plan)
        target = rounds[-1]
        crossed = crossed[crossed.index(target) + 1 :]
    elif not target.in_ir:
        target.plan.wrapped = True
        raise _trace.Restart(target.plan)
    if crossed:
        crossed[-1].leave_for(target, signal)
    else:
        target.leave(signal)


class FinallyFrame(Frame):
    """A ``try`` whose ``finally`` every jump out of it runs."""

    def __init__(self, final, variables):
        super().__init__("finally")
        self.final, self.variables = final, variables


def _finally_and_jump(index, signal):
    """Runs the ``finally`` of the frame with an index, and goes on with a jump that leaves it."""
    t = _trace.current()
    frames = t.frames
    # What is done here is done in a branch, for those threads that jump.
    t.frames = [*frames[:index], Frame("if")]
    frames[index].final()
    _jump(signal)
    t.frames = frames


def _joined(variables, frames):
    """Variables, with those that the ``finally`` of some frames uses."""
    parts = [variables, *(f.variables for f in frames if isinstance(f, FinallyFrame))]
    if len(parts) == 1:
        return variables
    names = tuple(dict.fromkeys(name for part in parts for name in part.names))

    def get():
        now = {n: x for part in parts for n, x in zip(part.names, part.get())}
        return [now[name] for name in names]

    def put(values):
        new = dict(zip(names, values))
        for part in parts:
            part.set([new[name] for name in part.names])

    return Variables(names, (), get, put)


def finally_stmt(body, final, variables):
    """``try: body() finally: final()``; no jump leaves ``final``."""
    t = _trace.current()
    frames = len(t.frames)
    t.frames.append(FinallyFrame(final, variables))
    mark = marked()
    try:
        signal = body()
    except Exception as e:
        if t.builder.depth() == mark[0] and not isinstance(e, KernelError):
            caught(mark)
            del t.frames[frames:]
            final()
        raise
    del t.frames[frames:]
    if signal is not UNREACHABLE:
        final()
    return signal


def marked():
    """Where in the kernel a ``try`` begins."""
    t = _trace.current()
    return t.builder.depth(), len(t.frames), len(t.functions), t.call


def caught(mark):
    """At the start of an ``except``: goes back to the ``try``. Ours are not the author's to catch."""
    t = _trace.current()
    depth, frames, functions, call = mark
    found = sys.exc_info()[1]
    if not isinstance(found, Exception) or isinstance(found, KernelError):
        raise found
    if t.builder.depth() != depth:
        raise _trace.error(
            f"{type(found).__name__} leaves a branch or loop of the kernel, which only some "
            "threads run, for this `except`: kernels have no exceptions"
        ) from found
    del t.frames[frames:]
    del t.functions[functions:]
    t.call = call


def _check_kernel_return(signal):
    if signal.value is not None:
        raise _trace.error("a kernel returns nothing: write results to a buffer", signal.place)


class Plan:
    """What a construct knows of itself from earlier tries."""

    def __init__(self):
        #: Whether an IR loop of one round stands around it.
        self.wrapped = False
        #: What is to be done in its place, for an unrolled loop that must be one of the kernel.
        self.instead = None
        #: Carried leaves: path to slot.
        self.slots = None
        #: Leaves that cannot be carried, and why.
        self.poison = {}
        #: Where a round leaves another object than it found, so that what it found is copied.
        self.fresh = set()
        #: Where a round leaves an object that something else has too: none may change in a round.
        self.shared, self.held = set(), []
        #: Jumps that go through it: (target's plan, kind) to the slots of what they take along.
        self.exits = {}


class Slot:
    """One carried value: its type, and what it is (``int`` or ``float``) while it is weak."""

    def __init__(self, ty, weak=None):
        self.type, self.weak, self.active, self.plan = ty, weak, False, None


def _planned(plan, variables, attempt):
    """Traces a construct until its plan holds."""
    t = _trace.current()
    before = State(variables)
    start, frames, call = t.builder.mark(), len(t.frames), t.call
    arrays = len(t.arrays)
    functions, guards = len(t.functions), dict(t.guards)
    while True:
        try:
            return attempt(before)
        except _trace.Restart as r:
            if r.plan is not plan:
                raise
        except _trace.Retype as r:
            mine = [s for s in r.slots if s.plan is plan]
            outer = any(s.active and s.plan is not plan for s in r.slots)
            if outer or not mine:
                raise
            for slot in mine:
                slot.type, slot.weak = slot.type.with_scalar(r.type), r.weak
        finally:
            if plan.slots:
                for slot in plan.slots.values():
                    slot.active = False
        t.builder.unwind(start)
        del t.frames[frames:]
        del t.arrays[arrays:]
        del t.functions[functions:]
        t.call, t.guards = call, dict(guards)
        before.restore()
        if plan.fresh:
            before = State(variables, fresh=plan.fresh)


class LoopFrame(Frame):
    """An IR loop, of the author's or of one round."""

    in_ir = True

    def __init__(self, kind, plan, variables, before):
        super().__init__(kind)
        self.plan, self.variables, self.before = plan, variables, before
        #: The variables as they were before, without the copies of the plan.
        self._start = State(variables)
        self.where = "a round of the loop"
        #: What each way out left, of a loop of one round.
        self.ways = []
        #: The jumps that went through it, by the keys of the plan's exits: signal, variables of the
        #: target then, and the target; and what has no value on all of them.
        self.jumps, self.undefined = {}, {}
        self.known_exits = set(plan.exits)
        #: The targets' variables before the loop, and the first value that is made in it.
        frames = [f for f in _trace.current().frames if f.in_ir]
        self.target_states = {f: State(f.variables) for f in frames}
        self.first = _trace.current().builder.value_count()
        self.guards = frozenset(_trace.current().guards)

    # -- the ends of rounds and ways out --

    def leave(self, signal):
        t = _trace.current()
        t.at()
        if self.kind in ("round", "unrolled", "function"):
            returned = signal.value if signal.kind == "return" else None
            state = State(self.variables, ((RETURNED, returned),), like=self.before)
            state.returned = returned
            self.ways.append(state)
            values = self._one_round_values(state)
            t.builder.break_(values + self._no_exits())
            return
        values = self.collect() + self._no_exits()
        if signal.kind == "break":
            t.builder.break_(values)
        else:
            t.builder.continue_(values)

    def leave_for(self, target, signal):
        """Leaves this loop on the way to one further out, taking along what has changed."""
        t = _trace.current()
        key = (target.plan, signal.kind)
        slots = self.plan.exits.setdefault(key, {})
        like = self.target_states.get(target)
        around = t.frames[t.frames.index(target) : t.frames.index(self)]
        state = State(_joined(target.variables, around), ((RETURNED, signal.value),), like=like)
        before = {}
        if target in self.target_states:
            self.target_states[target].align(state)
            before = self.target_states[target].leaves
        missing = False
        for path, x in state.leaves.items():
            new = isinstance(x, Value) and x.id >= self.first
            if _numeric(x) and (new or path[0] == RETURNED or not same(x, before.get(path))):
                if path not in slots:
                    slots[path] = Slot(default_type(x), weak_kind(x))
                    missing = True
        if missing or key not in self.known_exits:
            raise _trace.Restart(self.plan)
        if key in self.jumps:
            self._same_shape(key, self.jumps[key][1], state)
        self.jumps[key] = signal, state, target
        t.at()
        if self.kind == "loop":
            values = self.collect(lenient=True)
        else:
            values = self._one_round_values(None)
        for other, others in self.plan.exits.items():
            values.append(constant(BOOL, other == key).id)
            for path, slot in others.items():
                x = state.leaf(path) if other == key else None
                value = self._take_along(slot, x) if _numeric(x) else zero(slot.type)
                values.append(value.id)
        t.builder.break_(values)

    def _same_shape(self, key, first, other):
        """What two jumps of one kind take along must be alike but for values."""
        first.align(other)
        for path in {**first.leaves, **other.leaves}:
            a, b = first.leaves.get(path), other.leaves.get(path)
            if path in self.plan.exits[key] and _numeric(a) and _numeric(b):
                continue
            alike = first.alike(path, other) and not first.moved(path, other)
            if alike or _unseen(path, first, other):
                continue
            if first.alike(path, other) and path[0] == RETURNED:
                variables = self.jumps[key][2].variables
                if not _sharing.shared((first, other), path, variables, False):
                    continue
                raise _trace.error(
                    "the function returns another object on each of its paths, which something else "
                    "has too: return a copy on each, as in list(...)"
                )
            if path[0] == RETURNED:
                raise _trace.error(
                    "the function returns different things on its paths: return values of the "
                    "same number and types on each"
                )
            self.undefined.setdefault(key, {})[path] = Undefined(
                label(path), "is not assigned on every path out of the loop"
            )

    def _take_along(self, slot, x):
        kind, own = weak_kind(x), default_type(x)
        if own != slot.type and slot.weak and fits(slot.weak, own):
            slot.type, slot.weak = own, kind
            raise _trace.Restart(self.plan)
        if kind is None and slot.weak:
            slot.weak = None
        return to_type(x, slot.type, "the value that the function returns")

    def _no_exits(self):
        values = []
        for types in self.plan.exits.values():
            values.append(constant(BOOL, False).id)
            values.extend(zero(slot.type).id for slot in types.values())
        return values

    def init_exits(self):
        """The first values and types of the exits' flags and values."""
        ids, types = self._no_exits(), []
        for carried in self.plan.exits.values():
            types.append("bool")
            types.extend(slot.type.name for slot in carried.values())
        return ids, types

    def take_exits(self, results):
        """Behind the loop: goes on with the jumps that went through it."""
        t = _trace.current()
        results = iter(results)
        for key, slots in self.plan.exits.items():
            flag = Value(next(results), BOOL)
            leaves = {p: Value(next(results), slot.type) for p, slot in slots.items()}
            if key not in self.jumps:
                continue
            signal, state, target = self.jumps[key]
            leaves.update(self.undefined.get(key, {}))
            now = State(state.variables)
            _open()
            t.frames.append(Frame("if"))
            guards, t.guards = t.guards, {}
            state.replace(leaves)
            value = rebuild((RETURNED,), signal.value, leaves, (), parts_of(leaves))
            _jump(Signal(signal.kind, value))
            t.frames.pop()
            now.restore()
            t.guards = {**t.guards, **guards}
            then = t.builder.close_region()
            _open()
            t.builder.if_(flag.id, (then, None), (t.builder.close_region(), []))

    # -- what is carried --

    def collect(self, lenient=False):
        """The carried values at the end of a round, as numbers of the builder.

        ``lenient`` is for ways out on which the variables are not looked at again.
        """
        before, plan = self.before, self.plan
        if not lenient:
            _sharing.check()
        now = State(self.variables, fresh=plan.fresh, like=before)
        values = []
        for path, slot in plan.slots.items():
            x = now.leaf(path)
            if lenient and not (isinstance(x, Value) and x.type == slot.type):
                values.append(zero(slot.type).id)
                continue
            values.append(self._carry(path, slot, x).id)
        if lenient:
            return values
        before.align(now)
        learned = self._learn_shared(now)
        for path, x in now.leaves.items():
            if path in plan.slots or self._settled(path) or _unseen(path, before, now):
                continue
            old = before.leaves.get(path)
            if path not in before.leaves:
                # Something grew, or began in the loop as a whole.
                name = path[:1]
                if len(path) > 1 and not isinstance(before.leaves.get(name), Undefined):
                    self._poison(name, "changes its length or shape in the loop")
                continue
            if before.alike(path, now):
                if path not in plan.fresh and before.moved(path, now):
                    plan.fresh.add(path)
                    learned = True
                continue
            if isinstance(old, Undefined):
                continue
            if _numeric(old) and _numeric(x):
                ty = default_type(x) if weak_kind(old) and weak_kind(x) is None else default_type(old)
                plan.slots[path] = Slot(ty, None if weak_kind(x) is None else weak_kind(old))
                learned = True
                continue
            if isinstance(old, Alias) and isinstance(x, Shape) and old.value is not x.value:
                if path not in plan.fresh:
                    plan.fresh.add(path)
                    learned = True
                    continue
            check_content(path, before, now, "the loop")
            if isinstance(old, Shape) and isinstance(x, Shape):
                self._poison(path, "changes its length or shape in the loop")
            self._poison(path, "is another object after a round of the loop; only values can change")
        if learned:
            raise _trace.Restart(plan)
        for path in before.leaves:
            if path in now.leaves or self._settled(path) or _unseen(path, before, now):
                continue
            self._poison(path[:1], "changes its length or shape in the loop")
        return values

    def _learn_shared(self, now):
        """Finds where a round leaves objects that another place has too; whether there are more."""
        plan, guards, found = self.plan, _trace.current().guards, set()
        for path, x in now.leaves.items():
            old = self.before.leaves.get(path)
            if path in plan.shared or not isinstance(x, (Shape, Alias)) or x.fixed():
                continue
            if not isinstance(old, (Shape, Alias)):
                continue
            if id(x.value) in guards:
                if id(old.value) not in self.guards or path in plan.fresh:
                    found.add(path)
            elif path in plan.fresh or self.before.moved(path, now):
                sides = State(self.variables), self._start
                if _sharing.shared(sides, path, self.variables):
                    found.update(p for p, y in now.leaves.items() if object_of(y) is x.value)
                    found.add(path)
                    plan.held.append(x.value)
        found -= plan.shared
        plan.shared |= found
        return bool(found)

    def _guard(self):
        """Guards what stands where objects are shared between rounds."""
        for path in self.plan.shared:
            values = object_of(self.before.leaf(path)), _sharing.resolve(path, self.variables)
            _sharing.guard((*values, *self.plan.held), path, self.where)

    def _settled(self, path):
        """Whether it, or what holds it, is known to be no value after a round."""
        return any(path[:n] in self.plan.poison for n in range(1, len(path) + 1))

    def _carry(self, path, slot, x):
        if _numeric(x):
            kind = weak_kind(x)
            if kind is None:
                own = default_type(x)
                if own == slot.type:
                    return to_type(x, own, "a carried value")
                if slot.weak and not own.is_bool and (own.is_float or slot.weak == "int"):
                    self._retype(slot, own, None)
                self._poison(path, f"changes its type in the loop: it is {slot.type} at first and "
                                   f"{own} after a round")
            if (kind == "bool") == slot.type.is_bool:
                if slot.weak == "int" and kind == "float":
                    self._retype(slot, default_type(x), "float")
                if fits(kind, slot.type):
                    return to_type(x, slot.type, f"`{label(path)}`")
            self._poison(path, f"changes its type in the loop: it is {slot.type} at first and a "
                               f"{kind} after a round")
        if isinstance(x, Undefined):
            self._poison(path, x.reason or "has no value at the end of a round of the loop")
        self._poison(path, f"is {slot.type} before the loop and another object after a round")

    def _retype(self, slot, ty, weak):
        slot.type, slot.weak = ty, weak
        raise _trace.Restart(self.plan)

    def _poison(self, path, reason):
        self.plan.poison[path] = reason
        self.plan.slots = {
            p: s for p, s in self.plan.slots.items() if p[: len(path)] != path
        }
        raise _trace.Restart(self.plan)

    def begin(self):
        """The first values of the slots; finds the slots at the first try."""
        plan = self.plan
        if plan.slots is None:
            plan.slots = {}
            for path, x in self.before.leaves.items():
                if path[0] in self.variables.assigned and len(path) == 1 and _numeric(x):
                    plan.slots[path] = Slot(default_type(x), weak_kind(x))
        ids = []
        for path, slot in plan.slots.items():
            slot.plan = plan
            ids.append(to_type(self.before.leaf(path), slot.type, f"`{label(path)}`").id)
        return ids

    def enter(self, params):
        """Sets the variables to the region's parameters."""
        changes = {}
        for (path, slot), number in zip(self.plan.slots.items(), params):
            slot.active = True
            weak = frozenset([slot]) if slot.weak and slot.weak != "bool" else None
            changes[path] = Value(number, slot.type, weak)
            _name(changes[path], path)
        for path, reason in self.plan.poison.items():
            changes[path] = Undefined(label(path), reason)
        self.before.replace(changes, self.plan.fresh)
        _sharing.settle()
        self._guard()

    def finish(self, results, reason):
        """Sets the variables behind the loop."""
        now = State(self.variables)
        changes = {}
        for path, x in now.leaves.items():
            old = self.before.leaves.get(path)
            if isinstance(old, Undefined) and not isinstance(x, Undefined):
                changes[path] = Undefined(label(path), reason)
        for (path, slot), number in zip(self.plan.slots.items(), results):
            slot.active = False
            changes[path] = Value(number, slot.type)
            _name(changes[path], path)
        for path, why in self.plan.poison.items():
            changes[path] = Undefined(label(path), why)
        self.before.replace(changes, self.plan.fresh)
        _sharing.settle()
        self._guard()

    # -- loops of one round --

    def _one_round_values(self, state):
        slots = self.plan.slots
        if slots is None or state is None:
            return [zero(slot.type).id for slot in (slots or {}).values()]
        values = []
        for path, slot in slots.items():
            values.append(to_type(state.leaf(path), slot.type, f"`{label(path)}`").id)
        return values

    def merge_ways(self, where):
        """What all ways out left: path to type or reason, of what is not the same on all; and where
        they left different objects that are alike."""
        first, *rest = self.ways
        found, fresh = {}, set()
        for way in (*rest, *rest):
            first.align(way)
        for path in list(first.leaves):
            leaves = [way.leaves.get(path) for way in self.ways]
            before = self.before.leaves.get(path)
            if any(_unseen(path, first, way) for way in self.ways):
                continue
            if all(first.alike(path, way) for way in rest) and (
                not isinstance(first.leaves[path], Value) or same(first.leaves[path], before)
            ):
                if any(first.moved(path, way) for way in rest):
                    fresh.add(path)
                continue
            for way in rest:
                check_content(path, first, way, where)
            try:
                if any(isinstance(x, (Shape, Alias)) for x in leaves):
                    raise _Poison(f"differs in its length or shape on paths through {where}")
                meeting = leaves[0]
                ty = _meet(meeting, meeting, where)
                for x in leaves[1:]:
                    ty = _meet(meeting, x, where)
                    if weak_kind(meeting):
                        meeting = x
                found[path] = ty
            except _Poison as p:
                found[path] = p.reason
        return found, fresh


def _unseen(path, one, two):
    """Whether only one of two states reaches a path on its own: its comparison is another path's."""
    return one.misses(path) or two.misses(path) or one.hidden(path) or two.hidden(path)


def check_content(path, one, two, where):
    """Raises for an object that is changed in place and that has no way to hold both contents."""
    a, b = one.leaves.get(path), two.leaves.get(path)
    value = object_of(a)
    if value is None or value is not object_of(b) or one.alike(path, two):
        return
    place = _trace.current().changed.get(id(value))
    name = f"`{label(path)}`"
    if isinstance(a, Content):
        raise _trace.error(f"{name} changes in {where}: {a.kind.advice}", place)
    if isinstance(a, Shape) and isinstance(b, Shape) and not a.same(b):
        how, do = "changes the length of", "with all its elements before, and assign those"
        if a.kind is Object:
            differ = (*(k for k in a.keys if k not in b.keys), *(k for k in b.keys if k not in a.keys))
            names = ", ".join(f"`{key.name}`" for key in differ)
            how, do = f"makes or deletes the attribute {names} of", "an attribute of the object before"
        raise _trace.error(
            f"{where} {how} {name}, on which other paths still count: make it {do}", place
        )


def _returned(ways, where, reason):
    """The sentence for what a function returns that has no value."""
    nothing = [way.returned is None for way in ways]
    if any(nothing) and not all(nothing):
        return f"{where} returns a value on one path and nothing on another: return one on each"
    return f"the value that {where} returns {reason}"


def _name(value, path):
    if len(path) == 1:
        _trace.current().builder.name(value.id, label(path))


def _one_round(kind, plan, variables, body, where):
    """Runs ``body`` in an IR loop of one round, which jumps can leave.

    Gives a signal, and what an inlined function returned.
    """

    def attempt(before):
        t = _trace.current()
        frame = LoopFrame(kind, plan, variables, before)
        slots = plan.slots or {}
        t.at()
        init = [zero(slot.type).id for slot in slots.values()]
        exit_init, exit_types = frame.init_exits()
        t.builder.open_region([slot.type.name for slot in slots.values()] + exit_types)
        t.frames.append(frame)
        signal = body()
        through = signal is not None and (
            signal is UNREACHABLE
            or (signal.kind == "return" and kind != "function")
            or (signal.kind == "break" and kind == "round")
        )
        if through:
            _jump(signal)
        else:
            frame.leave(signal if signal is not None else returns())
        t.frames.pop()
        region = t.builder.close_region()
        merged, fresh = frame.merge_ways(where) if frame.ways else ({}, ())
        wanted = {p: ty for p, ty in merged.items() if not isinstance(ty, str)}
        have = {p: slot.type for p, slot in slots.items()}
        if wanted != have:
            plan.slots = {p: Slot(ty) for p, ty in wanted.items()}
            raise _trace.Restart(plan)
        t.builder.hoist(region)
        results = t.builder.loop_(init + exit_init, region)
        changes = {p: Value(n, ty) for (p, ty), n in zip(have.items(), results)}
        for path, reason in merged.items():
            if isinstance(reason, str):
                if path[0] == RETURNED:
                    raise _trace.error(_returned(frame.ways, where, reason))
                changes[path] = Undefined(label(path), reason)
        own = kind != "function"
        guard = [p for p in fresh if _sharing.shared(frame.ways, p, variables, own)]
        if frame.ways:
            frame.ways[-1].replace(changes, fresh)
        _sharing.settle()
        for path in guard:
            values = [object_of(way.leaf(path)) for way in frame.ways]
            _sharing.guard((*values, _sharing.resolve(path, variables)), path, where)
        frame.take_exits(results[len(have) :])
        if not frame.ways:
            return UNREACHABLE, None
        parts = parts_of(changes, fresh)
        returned = rebuild((RETURNED,), frame.ways[-1].returned, changes, fresh, parts)
        for path in guard:
            if path[0] == RETURNED:
                _sharing.guard((_sharing.part(returned, path[1:]),), path, where)
        return None, returned

    return _planned(plan, variables, attempt)


# ---- statements ----


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
    if type(x) not in _ITERABLES:
        _trace.suspect()
    return bool(x)


def _open(params=()):
    try:
        return _trace.current().builder.open_region(list(params))
    except ValueError as e:
        raise _trace.error(
            f"{e}, where each `elif` counts as one: end a long chain, and go on with another `if` "
            "behind it"
        ) from None


def if_stmt(condition, body, otherwise, variables):
    """``if condition: body else: otherwise``."""
    c = truth(condition)
    if not isinstance(c, Value):
        return body() if c else otherwise()
    t = _trace.current()
    position = _trace.here()
    where = f"the `if` on {line_of(position)}"
    before = State(variables)
    known = {x.id for x in before.leaves.values() if isinstance(x, Value)}
    sides, guards, guarded, changed = [], t.guards, {}, {}
    for side in (body, otherwise):
        before.restore()
        t.at()
        _open()
        t.frames.append(Frame("if"))
        t.guards = dict(guards)
        signal = side()
        _sharing.check()
        after = State(variables) if signal is None else _jump(signal)
        if after is not None:
            changed.update(_sharing.unmerged(before, after))
        t.frames.pop()
        sides.append((after, t.builder.close_region()))
        guarded.update(t.guards)
    t.guards = guarded
    t.at()
    (then, then_region), (other, other_region) = sides
    if then is None and other is None:
        t.builder.if_(c.id, (then_region, None), (other_region, None))
        before.restore()
        return UNREACHABLE
    if then is None or other is None:
        left = then or other
        out = {
            p: x for p, x in left.leaves.items() if isinstance(x, Value) and x.id not in known
        }
        ids = [x.id for x in out.values()]
        results = t.builder.if_(
            c.id,
            (then_region, None if then is None else ids),
            (other_region, None if other is None else ids),
        )
        left.replace({p: _result(r, x.weak, p) for (p, x), r in zip(out.items(), results)})
        _sharing.settle()
        return None
    then.set_apart(other)
    pairs, changes, fresh = _merge(then, other, where)
    results = t.builder.if_(
        c.id,
        (then_region, [a.id for a, _, _ in pairs.values()]),
        (other_region, [b.id for _, b, _ in pairs.values()]),
    )
    for (path, (_, _, weak)), r in zip(pairs.items(), results):
        changes[path] = _result(r, weak, path)
    poisoned = {p for p, x in changes.items() if isinstance(x, Undefined)}
    _sharing.check_lost(changed, (then, other), poisoned, variables, where)
    guard = [p for p in fresh if _sharing.shared((then, other), p, variables)]
    other.replace(changes, fresh)
    _sharing.settle()
    for path in guard:
        copy = _sharing.resolve(path, variables)
        _sharing.guard((object_of(then.leaf(path)), object_of(other.leaf(path)), copy), path, where)
    return None


def _result(result, weak, path):
    value = Value(result[0], type_named(result[1]), weak)
    _name(value, path)
    return value


def _merge(then, other, where):
    """The pairs of values that differ behind two sides, what has no value behind them, and where
    they have different objects that are alike."""
    pairs, changes, fresh = {}, {}, set()
    then.align(other)
    for path in [*then.leaves, *(p for p in other.leaves if p not in then.leaves)]:
        if any(path[:n] in changes for n in range(1, len(path))) or _unseen(path, then, other):
            continue
        if then.alike(path, other):
            if then.moved(path, other):
                fresh.add(path)
            continue
        check_content(path, then, other, where)
        a, b = then.leaves.get(path), other.leaves.get(path)
        try:
            if isinstance(a, (Shape, Alias)) or isinstance(b, (Shape, Alias)):
                for x in (a, b):
                    if isinstance(x, Undefined):
                        raise _Poison(x.reason or f"is not assigned on every path through {where}")
                raise _Poison(f"differs in its length or shape on the paths through {where}")
            ty = _meet(a, b, where)
            what = f"`{label(path)}`"
            pairs[path] = to_type(a, ty, what), to_type(b, ty, what), weak_of((a, b))
        except _Poison as poison:
            changes[path] = Undefined(label(path), poison.reason)
    return pairs, changes, fresh


def _watched(thunk, run):
    """Gives what ``run`` gives for a part of an expression, with a state before it if it can change
    anything: if it calls something, or assigns, or turns out to call a method for an operator."""
    t = _trace.current()
    before = State(NONE, also=(thunk,)) if reaches(thunk) else None
    start, frames, outer = t.builder.mark(), len(t.frames), t.unwatched
    t.unwatched = before is None
    try:
        return run(before)
    except _trace.Unwatched:
        if before is not None:
            raise
        t.builder.unwind(start)
        del t.frames[frames:]
        t.unwatched = False
        return run(State(NONE, also=(thunk,)))
    finally:
        t.unwatched = outer


def _probe(test):
    """Evaluates a condition without leaving a trace of it if it is traced."""
    t = _trace.current()

    def run(before):
        _open()
        c = truth(test())
        region = t.builder.close_region()
        if not isinstance(c, Value):
            if not t.builder.is_empty(region):
                t.builder.splice(region)
        elif before is not None:
            before.restore()
        return c

    return _watched(test, run)


def while_stmt(test, body, variables, forever):
    """``while test(): body()``; ``forever`` if the author wrote ``while True``."""
    if forever:
        return _kernel_while(test, body, variables)
    plan = Plan()

    def rounds():
        count = 0
        while True:
            condition = _probe(test)
            if isinstance(condition, Value):
                if count:
                    # What the condition depends on changes in the kernel: so does the loop.
                    plan.instead = lambda: _kernel_while(test, body, variables)
                    raise _trace.Restart(plan)
                return _kernel_while(test, body, variables)
            if not condition:
                return None
            count += 1
            if count > MAX_ROUNDS:
                raise _trace.error(
                    f"this `while` has a compile-time condition and unrolls more than {MAX_ROUNDS} "
                    "rounds: for a loop in the kernel make its condition a traced value"
                )
            signal = _round(variables, body)
            if signal is BREAK:
                return None
            if signal is not None and signal is not CONTINUE:
                return signal

    return _unrolled(plan, variables, rounds, "while")


def _kernel_while(test, body, variables):
    plan = Plan()
    where = f"the `while` on {line_of(_trace.here())}"

    def attempt(before):
        t = _trace.current()
        t.at()
        frame = LoopFrame("loop", plan, variables, before)
        init = frame.begin()
        count = len(init)
        exit_init, exit_types = frame.init_exits()
        types = [slot.type.name for slot in plan.slots.values()]
        params = _open(types + exit_types)
        t.frames.append(frame)
        frame.enter(params)
        c = truth(test())
        if isinstance(c, Value):
            t.at()
            _open()
            then = t.builder.close_region()
            _open()
            frame.leave(BREAK)
            t.builder.if_(c.id, (then, []), (t.builder.close_region(), None))
        elif not c:
            raise _trace.error("the condition of this `while` becomes false at compile time in the loop")
        _end_of_round(frame, body())
        t.frames.pop()
        results = t.builder.loop_(init + exit_init, t.builder.close_region())
        frame.finish(
            results[:count],
            f"is assigned only in {where}: assign it before the loop, to give its type",
        )
        frame.take_exits(results[count:])
        return None

    return _planned(plan, variables, attempt)


def _end_of_round(frame, signal):
    t = _trace.current()
    if signal is None or signal is CONTINUE:
        t.builder.yield_(frame.collect() + frame._no_exits())
    else:
        _jump(signal)


_ITERABLES = {
    list, tuple, range, dict, set, frozenset, str, bytes, collections.deque, np.ndarray, Value,
    Memory, type({}.keys()), type({}.values()), type({}.items()), type(None), int, float, bool, slice,
}  # fmt: skip


def plain_iterable(x):
    """Whether taking items from it runs no code of the author's, as far as it has any."""
    if type(x) in _ITERABLES:
        return True
    t = _trace.current() if _trace.active() else None
    return t is not None and t.ledger is not None and id(x) in t.ledger.plain


class Range:
    """``iv.range``: a loop in the kernel."""

    def __init__(self, *args):
        if not 1 <= len(args) <= 3:
            raise _trace.error(f"iv.range() takes 1 to 3 arguments, found {len(args)}")
        start, stop, step = 0, None, 1
        if len(args) == 1:
            stop = args[0]
        else:
            start, stop, step = (*args, 1)[:3]
        for x in (start, stop, step):
            if not _numeric(x) or weak_kind(x) in ("bool", "float"):
                raise _trace.error(f"iv.range() of {describe(x)}: its arguments are integers")
        if is_number(step) and step == 0:
            raise _trace.error("iv.range() with a step of 0 has no rounds")
        self.start, self.stop, self.step = start, stop, step

    def __iter__(self):
        raise _trace.error("iv.range() is only for `for` loops of a kernel")

    def values(self):
        """First index, bound and step as values, and the index's type."""
        what = "iv.range()"
        ty = common_type((self.start, self.stop), what)
        if weak_kind(self.start) and weak_kind(self.stop) and weak_kind(self.step) is None:
            ty = default_type(self.step)
        if ty.kind != "scalar" or not ty.is_integer:
            raise _trace.error(f"iv.range() of {ty}: its arguments are integers")
        step_type = ty
        if is_number(self.step) and self.step < 0 and not ty.is_signed:
            step_type = type_named("i" + ty.name[1:])
        elif weak_kind(self.step) is None and default_type(self.step).name == "i" + ty.name[1:]:
            step_type = default_type(self.step)
        start, stop = to_type(self.start, ty, what), to_type(self.stop, ty, what)
        return start, stop, to_type(self.step, step_type, what), ty


def for_stmt(iterable, plain, body, variables):
    """``for item in iterable(): body(item)``: in the kernel over ``iv.range``, else unrolled.

    An item is taken when its round comes, as Python does. ``plain`` says that ``iterable`` changes
    nothing, so that it may be asked before it is known whether the loop is one of the kernel.
    """
    known, taken = [], []
    if plain:
        items = iterable()
        if isinstance(items, Range):
            return kernel_for(items, body, variables)
        known.append(items)

    def rounds():
        items = known.pop() if known else iterable()
        if isinstance(items, Range):
            return kernel_for(items, body, variables)
        if isinstance(items, Undefined):
            items.fail()
        if not hasattr(items, "__iter__") and not hasattr(items, "__getitem__"):
            raise _trace.error(
                f"`for` over {describe(items)}: write a list, range(...) to unroll it, or "
                "iv.range(...) for a loop in the kernel"
            )
        iterator = iter(items)
        if any(iterator is x for x in taken):
            raise _trace.error(
                "this `for` takes from an iterator in a part of the kernel that is traced more than "
                "once: take its values before, into a list"
            )
        if iterator is items and kind_of(items) is not Object and not hasattr(items, "gi_frame"):
            taken.append(items)
        iterated = _trace.current().iterated
        outer = len(iterated)
        iterated.append(iterator)
        try:
            plain = plain_iterable(items)
            for count, item in enumerate(iterator):
                if not plain:
                    _trace.suspect()
                if count == MAX_ROUNDS:
                    raise _trace.error(
                        f"this `for` unrolls more than {MAX_ROUNDS} rounds: for a loop in the kernel "
                        "write iv.range(...)"
                    )
                signal = _round(variables, lambda: body(item))
                if signal is BREAK:
                    return None
                if signal is not None and signal is not CONTINUE:
                    return signal
        finally:
            del iterated[outer:]
        return None

    return _unrolled(Plan(), variables, rounds, "for")


def kernel_for(items, body, variables):
    plan = Plan()
    where = f"the `for` on {line_of(_trace.here())}"

    def attempt(before):
        t = _trace.current()
        t.at()
        start, stop, step, ty = items.values()
        frame = LoopFrame("loop", plan, variables, before)
        init = frame.begin()
        count = len(init)
        exit_init, exit_types = frame.init_exits()
        types = [slot.type.name for slot in plan.slots.values()]
        params = _open([ty.name, *types, *exit_types])
        t.frames.append(frame)
        frame.enter(params[1:])
        _end_of_round(frame, body(Value(params[0], ty)))
        t.frames.pop()
        region = t.builder.close_region()
        results = t.builder.for_(start.id, stop.id, step.id, init + exit_init, region)
        frame.finish(
            results[:count],
            f"is assigned only in {where}, which may have no rounds: assign it before the loop too",
        )
        frame.take_exits(results[count:])
        return None

    return _planned(plan, variables, attempt)


def _unrolled(plan, variables, rounds, word):
    return _wrappable("unrolled", plan, variables, rounds, f"this `{word}`")[0]


def _round(variables, body):
    return _wrappable("round", Plan(), variables, body, "a round of the loop")[0]


def _wrappable(kind, plan, variables, body, where):
    """Runs ``body`` as compile-time code that jumps of the kernel may have to leave."""

    def attempt(before):
        if plan.instead is not None:
            return plan.instead(), None
        if plan.wrapped:
            return _one_round(kind, plan, variables, body, where)
        t = _trace.current()
        frame = Frame(kind)
        frame.plan = plan
        t.frames.append(frame)
        signal = body()
        t.frames.pop()
        if kind == "function":
            return None, signal.value if signal is not None else None
        return signal, None

    return _planned(plan, variables, attempt)


def inline(function, name, args, kwargs):
    """Calls a converted function in the place of its call; gives what it returns."""
    t = _trace.current()
    position = _trace.here()
    outer = t.call
    values = [*args, *kwargs.values()]
    variables = Variables(
        tuple(f"argument {i + 1} of {name}" for i in range(len(values))),
        (),
        lambda: values,
        lambda new: None,
    )

    def body():
        t.call = t.builder.call(name, t.span(position)) if position else outer
        try:
            return function(*args, **kwargs)
        except TypeError as e:
            if e.__traceback__.tb_next is None:  # The call itself does not fit.
                raise _trace.error(str(e).replace("_factory.<locals>.", "")) from None
            raise
        finally:
            t.call = outer

    result = _wrappable("function", Plan(), variables, body, f"the function `{name}`")[1]
    t.at()
    return result


# ---- expressions ----


def _pure(region):
    return _trace.current().builder.is_pure(region)


def _lazily(thunk, what):
    """Evaluates an operand in a region of its own."""
    t = _trace.current()

    def run(before):
        _open()
        t.frames.append(Frame("if"))
        x = thunk()
        t.frames.pop()
        region = t.builder.close_region()
        if before is not None:
            after = State(NONE, also=(thunk,))
            before.align(after)
            for path in (*before.leaves, *after.leaves):
                if not _unseen(path, before, after) and not before.alike(path, after):
                    raise _trace.error(
                        f"`{label(path)}` changes in a part of {what} that not every thread "
                        "evaluates: assign it before, or write the condition as an `if`"
                    )
        return x, region

    return _watched(thunk, run)


def _logical(name, thunks):
    first, *rest = thunks
    left = first()
    t = _trace.current()
    for thunk in rest:
        c = truth(left)
        if not isinstance(c, Value):
            if c == (name == "or"):
                return left
            left = thunk()
            continue
        right, region = _lazily(thunk, f"`{name}`")
        left = _join(name, c, truth(right), region)
    return left


def _join(name, c, right, region):
    """``c and right``, where ``right`` is evaluated in a region of its own."""
    t = _trace.current()
    t.at()
    right = to_type(right, BOOL, f"`{name}`")
    if _pure(region):
        t.builder.splice(region)
        return op(name, [c, right])
    known = constant(BOOL, name == "or")
    _open()
    other = t.builder.close_region()
    sides = [(region, [right.id]), (other, [known.id])]
    if name == "or":
        sides.reverse()
    return Value(t.builder.if_(c.id, *sides)[0][0], BOOL)


_ENDED = object()


def joined(name, items, what, test):
    """``any(test(x) for x in items)``, or ``all`` for the name ``and``: items are taken one by one,
    from the first traced one on only where none before settles it."""
    t = _trace.current()
    iterator, settles, result = iter(items), name == "or", None
    while True:
        _trace.suspect()
        if result is None:
            item = next(iterator, _ENDED)
            c = not settles if item is _ENDED else truth(test(item))
            if isinstance(c, Value):
                result = c
            elif item is _ENDED or c == settles:
                return c
            continue
        before = _sharing.held(NONE)
        _open()
        t.frames.append(Frame("if"))
        item = next(iterator, _ENDED)
        c = not settles if item is _ENDED else truth(test(item))
        t.frames.pop()
        region = t.builder.close_region()
        _trace.suspect()
        after = _sharing.held(NONE)
        before.align(after)
        for path in (*before.leaves, *after.leaves):
            old = before.leaves.get(path)
            if not (isinstance(old, Content) and old.kind is Iterator or _unseen(path, before, after) or before.alike(path, after)):
                # The names of frames come with their numbers.
                name = path[0].partition(" ")[0] if isinstance(path[0], str) else path[0]
                raise _trace.error(
                    f"`{label((name, *path[1:]))}` changes while {what} takes an item, which not every thread "
                    "does, as Python stops at the first that settles it: put the items in a list "
                    "before, to take all, or write a loop that ends with `break`"
                )
        if isinstance(c, Value) or not t.builder.is_empty(region):
            result = _join(name, result, c, region)
        if item is _ENDED or c is settles:
            return settles if c is settles else result


def and_(*thunks):
    """``a and b``: what follows runs only where all before holds."""
    return _logical("and", thunks)


def or_(*thunks):
    """``a or b``: what follows runs only where nothing before holds."""
    return _logical("or", thunks)


def not_(x):
    """``not x``."""
    c = truth(x)
    return op("not", [c]) if isinstance(c, Value) else not c


def identity(symbol, a, b):
    """``a is b`` and ``a is not b``, which Python answers when the kernel is compiled."""
    for one, other in ((a, b), (b, a)):
        if isinstance(one, Value) and is_number(other):
            advice = "`x == True`, or `x`" if isinstance(other, bool) else f"`x == {other}`"
            raise _trace.error(
                f"`{symbol}` of a traced {one.type} and {other} asks when the kernel is compiled: "
                f"write {advice}"
            )
    return (a is b) == (symbol == "is")


class _Last:
    """The last operand of a chain of comparisons."""

    __slots__ = ("value",)


def compare(compared, symbols, left, *thunks):
    """``a < b < c``: each operand is evaluated once, and only where all before holds. ``compared``
    compares two."""
    last = _Last()
    last.value = left

    def step(symbol, thunk):
        def run():
            right = thunk()
            result = compared(symbol, last.value, right)
            last.value = right
            return result

        return run

    return and_(*(step(symbol, thunk) for symbol, thunk in zip(symbols, thunks)))


def if_exp(condition, then, otherwise):
    """``then if condition else otherwise``."""
    c = truth(condition)
    if not isinstance(c, Value):
        return then() if c else otherwise()
    t = _trace.current()
    a, then_region = _lazily(then, "a conditional expression")
    b, other_region = _lazily(otherwise, "a conditional expression")
    t.at()
    if same(a, b) and not isinstance(a, Value):
        t.builder.if_(c.id, (then_region, []), (other_region, []))
        return a
    from ._views import Elements, spread

    counts = [len(x) for x in (a, b) if isinstance(x, Elements)]
    sides, regions = [[a], [b]], [then_region, other_region]
    for i, x in enumerate((a, b)) if counts else ():
        # A vector is taken apart where it is made.
        _open()
        t.builder.splice(regions[i])
        sides[i] = spread(x, counts[0])
        regions[i] = t.builder.close_region()
    then_region, other_region = regions
    try:
        types = [_meet(one, other, "a conditional expression") for one, other in zip(*sides)]
    except _Poison as poison:
        raise _trace.error(f"the value of the conditional expression {poison.reason}") from None
    pure = _pure(then_region) and _pure(other_region)
    if pure:
        t.builder.splice(then_region)
        t.builder.splice(other_region)
    weak = [weak_of(pair) for pair in zip(*sides)]
    a, b = ([to_type(x, ty, "a conditional expression") for x, ty in zip(s, types)] for s in sides)
    if pure:
        results = [op("select", [other, one, c]) for one, other in zip(a, b)]
        for result, kind in zip(results, weak):
            result.weak = kind
    else:
        made = t.builder.if_(
            c.id, (then_region, [x.id for x in a]), (other_region, [x.id for x in b])
        )
        results = [Value(r[0], type_named(r[1]), kind) for r, kind in zip(made, weak)]
    return Elements(results) if counts else results[0]
