"""Control flow as `with` blocks, and the loops of the Enigma DSL.

A block is a region of the kernel. What it assigns to Python names, or sets in lists, objects and
closures, is not carried: ``for_range`` carries the values of ``init=``, and register tensors live
through everything.
"""

from __future__ import annotations

import builtins

from .. import _control, _syntax, _trace, _values
from .._types import type_named
from . import _plain
from . import typing as _typing
from ._dialect import current, traced
from ._errors import EnigmaKernelError, error
from ._memory import to, value

REASON = (
    "is set inside a `with` block, which does not carry it: pass it through `init=` of for_range, "
    "or keep it in a register_tensor"
)


def _block():
    """The innermost `with` block around the current line, or ``None``."""
    if not _trace.active():
        return None
    frames = [f for f in _trace.current().frames if f.kind == "with"]
    return frames[-1] if frames else None


class _Region:
    #: The compiler asks this: what the block stores is not its to merge.
    is_region = True
    #: Whether its block may run more than once.
    is_loop = False

    def __init__(self):
        current().waiting[self] = _trace.here()

    def __iter__(self):
        raise error(
            "a `with` block is not iterated: write `with for_range(...) as i:`, or a loop "
            "`for i in enigma.range(...):`"
        )

    def __bool__(self):
        raise error("a `with` block is not a condition: write `with if_(...):`, or a plain `if`")

    def open(self, params=()):
        t = _trace.current()
        t.at()
        self.first = t.builder.value_count()
        self.frames = len(t.frames)
        params = _control.open_region(params)
        t.frames.append(_control.Frame("with"))
        self.region = _control.Region()
        if self.is_loop:
            self.region.reads = {}
        self.iterations = _plain.Iterations() if self.is_loop and t.locate is not None else None
        t.regions.append(self.region)
        return params

    def enter(self, params=()):
        """Opens the block's region, and remembers what the block could change."""
        current().waiting.pop(self, None)
        return self.open(params)

    def close(self, ids=()):
        """Ends the region with what it yields; gives its number."""
        t = _trace.current()
        if ids:
            t.builder.yield_(list(ids))
        del t.frames[self.frames :]
        t.regions.remove(self.region)
        _control.undo(self.region)
        region = t.builder.close_region()
        t.ended.append((self.first, t.builder.value_count()))
        return region

    def __exit__(self, kind, *_):
        if kind is None:
            changed = self.changed()
            self.leave()
            for container, key, new in changed:
                if not any(new is x for x in self.known()):
                    new = _values.Undefined(_control.label(container, key), REASON)
                _control.store(container, key, new)

    def changed(self):
        """The places that the block has changed, and what stands there now. Refuses a loop whose
        iterations read what the iteration before set."""
        found = []
        for place, (container, key, old) in self.region.log.items():
            new = _control.get(container, key)
            made = _trace.current().made.get(place[0])
            if made is not None and made[1] not in _trace.current().regions[:-1]:
                continue
            if _control.same(old, new) or any(container is x for x in self.states()):
                continue
            found.append((container, key, new))
            known = old is not _control.MISSING and not isinstance(old, _values.Undefined)
            if known and place in (self.region.reads or ()):
                where = self.region.writes[place]
                self.refuse(_control.label(container, key), where and _syntax.position(*where))
        name = self.iterations.changed() if self.iterations is not None else None
        if name is not None:
            self.refuse(name, _trace.here())
        return found

    @staticmethod
    def refuse(name, place):
        raise EnigmaKernelError(
            f"`{name}` is set inside a `with` block, which does not carry it to the next iteration, and is "
            "read there: pass it through `init=` of for_range, keep it in a register_tensor, or write "
            "the loop as `for i in enigma.range(...)`",
            place,
        )

    def known(self):
        """What the block's own names hold."""
        return ()

    def states(self):
        """Lists that the block carries itself."""
        return ()


class if_(_Region):
    """``with if_(condition):`` runs its block where the condition holds.

    ``with if_(condition) as (then_b, else_b):`` has two arms, ``with then_b:`` and ``with else_b:`` in
    its block, either of which may be left out; nothing else of the kernel stands in the block then.
    """

    def __init__(self, condition):
        super().__init__()
        self.condition = to(value(condition), _values.BOOL)
        #: Whether the block is being traced, and in it which arm.
        self.entered, self.inside = False, None
        #: The arms' regions by their numbers, where the block has arms.
        self.arms = None

    def __enter__(self):
        self.enter()
        self.entered, self.moment = True, _trace.current().builder.mark()
        self.names = Arm(self, 0), Arm(self, 1)
        return self.names

    def known(self):
        return self.names

    def begin(self, which):
        """An arm's block begins."""
        t = _trace.current()
        around = self.frames + (self.arms is None)
        if not self.entered or self.inside is not None or len(t.frames) != around:
            raise error("an arm of an if_ stands in the block of that if_, and in no other arm of it")
        self.check_rest()
        if self.arms is None:
            # What was opened as the only arm's region is empty.
            del t.frames[self.frames :]
            t.builder.close_region()
            self.arms = {}
        if which in self.arms:
            raise error("this arm of the if_ has a block already: an arm is one `with` statement")
        self.inside = which

    def end(self, region):
        """An arm's block has ended, with its region."""
        self.arms[self.inside], self.inside = region, None
        self.moment = _trace.current().builder.mark()

    def check_rest(self):
        """Refuses what stands beside the arms: it would be in neither."""
        if _trace.current().builder.mark() != self.moment:
            raise error(
                "a statement of the kernel stands beside the arms of an if_, where it would belong to "
                "neither: put it into `with then_b:` or `with else_b:`, or before the if_"
            )

    def leave(self):
        t = _trace.current()
        self.entered = False
        if self.arms is None:
            then, otherwise = self.close(), None
        else:
            self.check_rest()
            t.regions.remove(self.region)
            _control.undo(self.region)
            then, otherwise = self.arms.get(0), self.arms.get(1)
        sides = []
        for side in (then, otherwise):
            if side is None:
                _control.open_region()
                side = t.builder.close_region()
            sides.append((side, []))
        t.at()
        t.builder.if_(self.condition.id, *sides)


class Arm(_Region):
    """One arm of an ``if_``: ``with then_b:``."""

    def __init__(self, whole, which):
        self.whole, self.which = whole, which

    def __enter__(self):
        self.whole.begin(self.which)
        self.enter()

    def leave(self):
        self.whole.end(self.close())


class Carry:
    """The values that a ``for_range`` carries: ``carry[k] = ...`` in the block gives the next
    iteration's, and behind the loop ``carry[k]`` is the last."""

    def __init__(self, initial):
        self.state = list(initial)
        #: The `with` block in which its values are set.
        self.block = _block()

    def __getitem__(self, i):
        return self.state[self._number(i)]

    def __setitem__(self, i, value):
        i = self._number(i)
        if _block() is not self.block:
            raise error(
                f"element {i} of a loop's carry is set inside another `with` block, which does not "
                "carry it: write a plain `if`, or set it behind the block to where(otherwise, then, "
                "condition)"
            )
        old = self.state[i]
        new = to(value, old.type) if isinstance(old, _values.Value) else value
        _control.store(self.state, i, new)

    def _number(self, i):
        if type(i) is not int or not -len(self.state) <= i < len(self.state):
            raise error(f"this loop carries {len(self.state)} values, there is no {i!r}")
        return i % len(self.state)

    def __len__(self):
        return len(self.state)

    def __iter__(self):
        return iter(self.state)


class for_range(_Region):
    """``with for_range(lo, hi, step) as i:`` is a loop in the kernel; with ``init=[...]`` it is
    ``as (i, carry)``."""

    is_loop = True

    def __init__(self, lo, hi, step=1, dtype="int", init=None):
        super().__init__()
        self.type = _typing.type_of(dtype)
        if self.type.kind != "scalar" or not self.type.is_integer:
            raise error(f"a loop counts in an integer type, not {dtype!r}")
        if _values.is_number(step) and step == 0:
            raise error("for_range with a step of 0 has no iterations")
        # A step down has a sign, whatever the index's type.
        signed = type_named(f"i{self.type.bits}")
        down = step < 0 if _values.is_number(step) else getattr(traced(step), "type", None) == signed
        types = self.type, self.type, signed if down else self.type
        self.bounds = [to(value(x), ty) for x, ty in zip((lo, hi, step), types)]
        self.carry = None
        if init is not None:
            items = list(init) if isinstance(init, (list, tuple, Carry)) else [init]
            items = [value(x) for x in items]
            self.init = [to(x, _values.default_type(x)) for x in items]
            self.carry = Carry(self.init)

    def __enter__(self):
        types = [x.type for x in self.init] if self.carry else []
        index, *carried = self.enter([self.type.name, *(ty.name for ty in types)])
        self.index = _values.Value(index, self.type)
        if self.carry is None:
            return self.index
        self.carry.block = _block()
        self.carry.state[:] = [_values.Value(n, ty) for n, ty in zip(carried, types)]
        return self.index, self.carry

    def known(self):
        return self.index, self.carry

    def states(self):
        return () if self.carry is None else (self.carry.state,)

    def leave(self):
        t = _trace.current()
        ids, init = [], []
        if self.carry:
            for x in self.carry:
                _values.alive(x)
            ids, init = [x.id for x in self.carry], [x.id for x in self.init]
        region = self.close(ids)
        t.at()
        results = t.builder.for_(*(x.id for x in self.bounds), init, region)
        if self.carry:
            self.carry.block = _block()
            self.carry.state[:] = [_values.Value(n, x.type) for n, x in zip(results, self.init)]


class while_(_Region):
    """``with while_(lambda: condition):`` repeats its block as long as the condition holds, which is
    evaluated before each iteration: keep what it depends on in memory or a register_tensor."""

    is_loop = True

    def __init__(self, cond_fn):
        super().__init__()
        if not callable(cond_fn):
            raise error("while_ takes a function that gives the condition: while_(lambda: ...)")
        self.condition = cond_fn

    def __enter__(self):
        t = _trace.current()
        self.enter()
        c = to(value(self.condition()), _values.BOOL)
        t.at()
        _control.open_region()
        then = t.builder.close_region()
        _control.open_region()
        t.builder.break_([])
        t.builder.if_(c.id, (then, []), (t.builder.close_region(), None))

    def leave(self):
        t = _trace.current()
        t.at()
        t.builder.loop_([], self.close())


class range(_control.Range):
    """``for i in enigma.range(n):`` is a loop in the kernel, which carries what it assigns."""

    def __init__(self, *args):
        super().__init__(*(value(x) for x in args))


#: ``for i in enigma.range_constexpr(4):`` is unrolled at compile time.
range_constexpr = builtins.range
