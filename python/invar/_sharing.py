"""Objects that two paths of a kernel share differently, and that so can no longer be changed.

Where a variable is another list or object on each path, what goes on stands for all of them: a copy
with the merged contents. That is right for as long as nothing changes the copy or them in place, or
if nothing else leads to them. So where something else does, the copy and the objects are *guarded*:
a later change of one is an error, found at the change itself for what the kernel's own code stores,
and by comparing contents for what other code does.

Absent: what is only in the middle of an expression is not looked for; it has no name to be read by.
"""

from __future__ import annotations

import sys

from . import _trace
from ._state import Alias, Carried, Content, Root, Shape, State, Variables, kind_of, label, object_of, same


class Guard:
    """An object that may not change, the sentence that says why, and what it held."""

    def __init__(self, value, reason):
        self.value, self.reason = value, reason
        self.look()

    def look(self):
        """Takes what it holds now as what it has to hold."""
        kind = kind_of(self.value)
        content = kind.read(self.value)
        self.content = kind.keys(self.value, content), [x for _, x in kind.items(content)]

    def changed(self):
        """Whether it holds something else."""
        keys, items = self.content
        self.look()
        now_keys, now = self.content
        self.content = keys, items
        return keys != now_keys or any(a is not b and not same(a, b) for a, b in zip(items, now))


def check(value=None):
    """Raises if a guarded object has changed, or is ``value``, which is about to."""
    guards = _trace.current().guards
    if value is not None:
        found = guards.get(id(value))
        if found is not None:
            raise _trace.error(found.reason)
        return
    for guard in guards.values():
        if guard.changed():
            raise _trace.error(guard.reason)


def settle():
    """What guarded objects hold is what it should be: paths have been merged."""
    for guard in _trace.current().guards.values():
        guard.look()


def guard(values, path, where):
    """Guards objects that stand at a path on the ways through ``where``."""
    name = label(path)
    for value in values:
        if hasattr(kind_of(value), "items") and id(value) not in _trace.current().guards:
            _trace.current().guards[id(value)] = Guard(
                value,
                f"`{name}` is another object on each path through {where}, and on one of them "
                "something else has the same object, so that a change of it would be lost: write "
                f"the change in each branch, or give `{name}` a copy of its own, as in list(...)",
            )


def resolve(path, variables):
    """The object at a path now, or ``None``."""
    name, *keys = path
    try:
        if isinstance(name, Root):
            value = name.get()
        else:
            value = dict(zip(variables.names, variables.get()))[name]
        return part(value, keys)
    except (LookupError, ValueError, AttributeError):
        return None


def part(value, keys):
    """The object that keys lead to from another; raises LookupError if there is none."""
    for key in keys:
        kind = kind_of(value)
        if kind is Carried:
            value = value.state
        elif not hasattr(kind, "items"):
            raise LookupError(key)
        else:
            value = dict(kind.items(kind.read(value)))[key]
    return value


def _own_paths(state, variables, value, path, names_count):
    """Whether a state finds an object at another path too."""
    for other, leaf in state.leaves.items():
        if other == path or object_of(leaf) is not value:
            continue
        if names_count or other[0] not in variables.names:
            return True
    return False


def shared(sides, path, variables, names_count=True):
    """Whether the object that stands at a path on a side is guarded, or has another place there, or
    one that the statement does not name. ``names_count`` if the statement's variables are the author's."""
    values = []
    for side in sides:
        leaf = side.leaf(path)
        if not isinstance(leaf, (Shape, Alias, Content)):
            continue
        if id(leaf.value) in _trace.current().guards:
            return True
        side.expose(leaf.value)
        if _own_paths(side, variables, leaf.value, path, names_count):
            return True
        values.append(leaf.value)
    around = held(variables)
    for value in values:
        around.expose(value)
        for place, leaf in around.leaves.items():
            if object_of(leaf) is value and not _within(around, place, sides, value):
                return True
    return False


def unmerged(before, side):
    """The objects of a state before that a side has changed, with where they stand behind it."""
    before.sync()
    side.sync()
    contents = {id(value): content for _, value, content in side.saved}
    found = {}
    for kind, value, content in before.saved:
        if not hasattr(kind, "items"):
            continue
        known = id(value) in contents
        now = contents[id(value)] if known else kind.read(value)
        was, has = ([x for _, x in kind.items(c)] for c in (content, now))
        moved = kind.keys(value, content) != kind.keys(value, now)
        if moved or any(a is not b and not same(a, b) for a, b in zip(was, has)):
            found[id(value)] = value, before.paths[id(value)]
    return found


def check_lost(changed, sides, poisoned, variables, where):
    """Raises where an object that a side has changed is not what the same place holds on both,
    though something else has it."""
    around = None
    for number, (value, before) in changed.items():
        places = [side.paths.get(number) for side in sides]
        path = places[0]
        if path is not None and all(x == path for x in places):
            if not any(path[:n] in poisoned for n in range(1, len(path) + 1)):
                continue
        around = around or held(variables)
        for state in (around, *sides):
            state.expose(value)
        kept = any(
            object_of(leaf) is value
            and all(object_of(side.leaves.get(place)) is value for side in sides)
            and not any(place[:n] in poisoned for n in range(1, len(place) + 1))
            for place, leaf in sides[0].leaves.items()
        ) or any(
            object_of(leaf) is value and not _within(around, place, sides, value)
            for place, leaf in around.leaves.items()
        )
        if kept:
            name = label(before)
            raise _trace.error(
                f"`{name}` changes in {where} and is another object on each path through it, "
                "while something else has the one that changes: change it in a statement of its "
                f"own, or give `{name}` a copy before, as in list(...)"
            )


def _within(around, place, sides, value):
    """Whether the states of the sides look at a place themselves."""
    for side in sides:
        if isinstance(place[0], Root) and place[0] in side.roots:
            return True
        for n in range(1, len(place)):
            holder = object_of(around.leaves.get(place[:n]))
            if holder is not None and holder is not value and id(holder) in side.paths:
                return True
    return False


def held(variables):
    """A state of what the author's functions under way hold, but for the statement's own variables."""
    found, nest, outer = [], True, ()
    frame, entry = sys._getframe(1), _trace.current().entry
    while frame is not None and frame.f_code is not entry:
        code = frame.f_code
        ours = code.co_filename.startswith(_trace._OWN)
        if not ours and not code.co_filename.startswith("<frozen"):
            for name, value in list(frame.f_locals.items()):
                mine = name in variables.names and (nest or name in outer)
                if not mine and not name.startswith("_invar_"):
                    found.append((f"{name} {id(frame)}", value))
            # A statement's body is a function of its own; the written one's free variables are
            # those of the functions around it.
            if nest and not code.co_name.startswith("_invar_"):
                nest, outer = False, code.co_freevars
        frame = frame.f_back
    return State(Variables((), (), variables.get, lambda values: None), extra=found)
