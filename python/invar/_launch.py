"""Launching kernels: on which device, with what, and when it is done.

Absent: how arguments are converted (``_arguments``), and the devices themselves.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _arguments, _graphs, _host, _invar, _types
from ._array import DeviceArray
from ._errors import (
    ArgumentError, CheckError, Error, Report, asked, entries, entry, failure, findings_of, told,
)  # fmt: skip
from ._invar import DeviceError, DiagnosticsError

__all__ = "BenchResult Device Future Launch Prepared bench check device devices threadgroups".split()

#: Names that keyword arguments of a launch have, so no parameter of a kernel may.
OPTIONS = ("device", "constants", "time_limit", "copy", "prove")


# ---- devices ----


@entries
class Device:
    """Something that runs kernels: ``cpu``, ``gpu`` (``gpu:1`` and so on where there are several), or
    ``checked``, the reference machine with its checkers."""

    def __init__(self, inner: Any):
        self._inner = inner
        #: How it is called.
        self.name: str = inner.name

    def __repr__(self):
        return f"<device {self.name}: {self._inner.capabilities()['description']}>"

    def capabilities(self) -> dict[str, Any]:
        """What it can do: sizes and limits as numbers, types, memory orders and features by name."""
        return self._inner.capabilities()

    def array(self, x: Any) -> DeviceArray:
        """A copy of an array in this device's memory, where launches leave it.

        An array that comes through DLPack alone may have no negative strides.
        """
        _graphs.leave()
        x = _host.copied_of("the array", x)
        try:
            _types.element_of(x.dtype)
        except Error as e:
            raise ArgumentError(f"the array: {e}") from None
        out = DeviceArray(self, x.dtype, x.shape)
        out.write(x)
        return out

    def zeros(self, shape: int | tuple[int, ...], ty: Element) -> DeviceArray:
        """An array of zeros in this device's memory, as ``iv.zeros`` makes one on the host."""
        dtype, inner = _types.numpy_element(_types.element_of(ty))
        return DeviceArray(self, dtype, (*_arguments.extents(shape, dtype, inner), *inner))


#: The devices that were asked for, by the names that they were asked for by: those of GPUs are slow to
#: open.
_known: dict = {}


def _named(name):
    found = _known.get(name)
    if found is None:
        try:
            inner = _invar.Device.named(name)
        except DeviceError as e:
            raise ArgumentError(e.args[0]) from None
        refusal = _invar.cache_refusal()
        if refusal is not None and not _known:
            warnings.warn(refusal, RuntimeWarning, stacklevel=3)
        found = _known[name] = _known.setdefault(inner.name, Device(inner))
    return found


@entry
def devices() -> list[Device]:
    """Every device of this machine that can be used, the default one first. ``iv.device(name)`` says why
    another cannot."""
    everything = [_named(inner.name) for inner in _invar.devices()]
    try:
        default = _named("default")
    except ArgumentError:
        return everything
    return [default, *(device for device in everything if device is not default)]


@entry
def device(name: str = "default", *, seed: int = 0, simdgroup: int | None = None) -> Device:
    """The device of that name; ``default`` is the one that launches take. A GPU is ``gpu``, ``gpu:1``
    and so on, or a part of its own name.

    ``seed`` (the order in which threads run; 0 is the natural one) and ``simdgroup`` (the size of
    simdgroups where a kernel requires none) are for the checked device, which then is a new one.
    """
    if seed or simdgroup:
        if name != "checked":
            raise ArgumentError('seed= and simdgroup= are for the device "checked"')
        return Device(_invar.Device.checked(seed, simdgroup))
    return _named(name)


def device_of(what):
    if isinstance(what, Device):
        return what
    if what is None or isinstance(what, str):
        return _named("default" if what is None else what)
    raise ArgumentError(f"device={what!r} is not a device: write its name, or one of iv.devices()")


# ---- grids ----


def size_of(size, what):
    """A size of one to three dimensions as three numbers."""
    sizes = size if isinstance(size, tuple) else (size,)
    if not 1 <= len(sizes) <= 3:
        raise ArgumentError(f"a {what} has one to three dimensions, not {len(sizes)}")
    for n in sizes:
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)):
            raise ArgumentError(f"a {what} is made of whole numbers, not {n!r}")
        if not 0 <= n < 1 << 32:
            raise ArgumentError(f"a {what} has a dimension of {n}; each is from 0 to 4294967295")
    return [int(n) for n in (*sizes, 1, 1)[:3]]


@entries
class threadgroups:
    """A grid in full threadgroups: ``kernel[iv.threadgroups(16), 256](...)``."""

    def __init__(self, *sizes: Size):
        if len(sizes) == 1 and isinstance(sizes[0], tuple):
            sizes = sizes[0]
        self.sizes = size_of(tuple(sizes), "grid")

    def __eq__(self, other):
        return isinstance(other, threadgroups) and self.sizes == other.sizes

    def __hash__(self):
        return hash(tuple(self.sizes))


def sizes_of(grid, threadgroup):
    """A grid and threadgroup size, checked."""
    threadgroup = size_of(threadgroup, "threadgroup size")
    if isinstance(grid, threadgroups):
        return _invar.Sizes(grid.sizes, True, threadgroup)
    return _invar.Sizes(size_of(grid, "grid"), False, threadgroup)


def _threadgroup_of(kernel, given):
    """The threadgroup size that is asked for, else the kernel's own."""
    if given is None:
        given = getattr(kernel, "threadgroup", None)
        if given is None:
            raise ArgumentError(f"{kernel!r} has no threadgroup size of its own: say threadgroup=")
    return given


# ---- launches ----


def _limit(seconds):
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds < 1e9:
        raise ArgumentError(f"time_limit={seconds!r} is not a limit: write a number of seconds")
    return float(seconds)


#: How long launches under way when Python ends may go on, in seconds.
_PATIENCE = 2.0


def _leave():
    # The interpreter frees the arrays soon after, so nothing may be under way then.
    _invar.leave(_PATIENCE)
    for future in list(_arguments.in_flight):
        if future.done():
            future._settle()


atexit.register(_leave)


def _after_fork():
    # A thread that the child has not may hold it, and have copied back a part: the child does it anew.
    for future in list(_arguments.in_flight):
        future._lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@entries
class Future:
    """A launch that goes on by itself: wait for it with ``result()``, or ``await`` it."""

    def __init__(self, submission: Any, alive: Any, back: Any):
        self._submission, self._alive, self._back = submission, alive, back
        self._lock = threading.Lock()
        self._outcome = None
        for other in [f for f in list(_arguments.in_flight) if f._submission.done()]:
            if other not in _arguments.copying:
                _arguments.in_flight.discard(other)
        _arguments.in_flight.add(self)
        if any(copied is not None for *_, copied in back):
            _arguments.copying.add(self)

    def __repr__(self):
        return f"<launch, {'done' if self.done() else 'running'}>"

    def arrays(self):
        """The arrays that it uses until it has ended, those it copies back to among them."""
        return [*(self._alive or ()), *(array for _, array, _ in self._back)]

    def done(self) -> bool:
        """Whether it has ended."""
        return self._submission.done()

    def cancel(self) -> None:
        """Asks it to end; ``result()`` then raises, unless it ended before."""
        self._submission.cancel()

    def result(self, timeout: float | None = None) -> None:
        """Waits until it has ended; raises what went wrong, or TimeoutError after so many seconds."""
        _graphs.leave()
        exception = self.exception(timeout)
        if exception is not None:
            raise exception

    def exception(self, timeout: float | None = None) -> Exception | None:
        """Waits until it has ended; gives what went wrong, or ``None``."""
        if not self._submission.join(timeout):
            raise TimeoutError(f"the launch has not ended within {timeout} seconds")
        with self._lock:
            self._end()
        return self._outcome[1]

    def _settle(self):
        """Copies back what a launch wrote that has ended, for the end of Python."""
        # A thread that was left where it was may hold it.
        if self._lock.acquire(blocking=False):
            try:
                self._end()
            finally:
                self._lock.release()

    def _end(self):
        if self._outcome is not None:
            return
        try:
            seconds = self._submission.wait(None)
            try:
                _arguments.copy_back(self._back)
            finally:
                self._outcome = seconds, None
        except (DeviceError, DiagnosticsError) as e:
            self._outcome = None, failure(e)
        self._alive = None
        _arguments.in_flight.discard(self)
        _arguments.copying.discard(self)

    @property
    def seconds(self) -> float:
        """How long it ran on the device; waits until it has ended."""
        self.result()
        return self._outcome[0]

    def __await__(self):
        return self._awaited().__await__()

    async def _awaited(self):
        try:
            await asyncio.get_running_loop().run_in_executor(None, self.result)
        except asyncio.CancelledError:
            # A thread of the loop's waits for it, and the loop for that thread.
            self.cancel()
            raise


@entries
class Launch:
    """A kernel with its grid and threadgroup size; calling it runs it and waits.

    Keywords, beside those of the kernel's parameters: ``device`` (a name or a device), ``constants``
    (values of function constants by name), ``time_limit`` (in seconds), ``copy`` (whether arrays that
    are not contiguous are copied, and copied back where the kernel writes them).
    """

    def __init__(self, kernel: Any, grid: Any, threadgroup: Any):
        self.kernel, self.sizes = kernel, sizes_of(grid, threadgroup)

    def __repr__(self):
        return f"<launch of {self.kernel.__name__}>"

    def _program(self, compiled, device, constants, time_limit, prove=False):
        named = compiled.named(constants) if constants else ()
        if device.__class__ is not Device:
            device = device_of(device)
        return compiled.program(device, named, time_limit, prove)

    def _ready(self, args, kwargs, device, constants, copy, time_limit):
        kwargs, constants = self._named(kwargs, constants)
        compiled, bound = self.kernel.for_arguments(args, kwargs)
        program = self._program(compiled, device, constants, time_limit)
        return program, *_arguments.convert(compiled.steps, bound, copy)

    def _named(self, kwargs, constants):
        """Of a shader with a variable of the name ``constants`` the keyword is that."""
        if constants is not None and getattr(self.kernel, "has_variable_constants", False):
            return {**kwargs, "constants": constants}, None
        return kwargs, constants

    def __call__(
        self,
        *args: Any,
        device: Device | str | None = None,
        constants: Mapping[str, Any] | None = None,
        time_limit: float | None = None,
        copy: bool = False,
        **kwargs: Any,
    ) -> None:
        """Runs the kernel, and waits until it has ended."""
        _graphs.leave()
        limit = _limit(time_limit)
        program, given, alive, back = self._ready(args, kwargs, device, constants, copy, limit)
        asked(program.run, self.sizes, given, limit)
        del alive
        if back:
            _arguments.copy_back(back)

    def submit(
        self,
        *args: Any,
        device: Device | str | None = None,
        constants: Mapping[str, Any] | None = None,
        time_limit: float | None = None,
        copy: bool = False,
        **kwargs: Any,
    ) -> Future:
        """Starts the kernel and returns. Launches that share an array which one of them writes run in
        the order in which they were submitted (O3).

        Until the future is done the arrays are the kernel's; with ``copy`` what it wrote is copied back
        when its ``result()`` is asked for, or when another launch is given memory of such an array. A
        copy is made when launches under way that use its memory have ended.
        """
        _graphs.leave()
        limit = _limit(time_limit)
        program, given, alive, back = self._ready(args, kwargs, device, constants, copy, limit)
        return Future(asked(program.submit, self.sizes, given, limit), alive, back)

    def prepare(
        self,
        *args: Any,
        device: Device | str | None = None,
        constants: Mapping[str, Any] | None = None,
        time_limit: float | None = None,
        prove: bool = False,
        **kwargs: Any,
    ) -> Prepared:
        """The launch with its arguments converted once, for loops: call what this gives.

        ``prove`` has the device prove first in which launches no access can be out of bounds: they run code
        without bounds checks. That takes up to some seconds, once for a kernel and device.
        """
        _graphs.leave()
        if "copy" in kwargs:
            raise ArgumentError(
                f"a prepared launch of `{self.kernel.__name__}` takes no copy=: it uses the arrays in "
                "place, each time; pass np.ascontiguousarray(...) of them"
            )
        kwargs, constants = self._named(kwargs, constants)
        compiled, bound = self.kernel.for_arguments(args, kwargs)
        if type(prove) is not bool:
            raise ArgumentError(f"prove={prove!r}: write True or False")
        program = self._program(compiled, device, constants, _limit(time_limit), prove)
        return Prepared(self, compiled, program, bound, time_limit)


@entries
class Prepared:
    """A launch that is ready to run, as often as it is called."""

    def __init__(self, launch: Any, compiled: Any, program: Any, bound: Any, time_limit: Any):
        self._launch, self._steps, self._program = launch, compiled.steps, program
        self._time_limit = _limit(time_limit)
        self._take(bound)

    def _take(self, bound):
        """Converts the arguments, in the order of the parameters."""
        # Arrays of launches in flight are held by their futures.
        given, alive, _ = _arguments.convert(self._steps, bound)
        _arguments.check_overlap(self._steps, alive)
        self._bound, self._given, self._alive = bound, given, alive

    def __repr__(self):
        return f"<prepared launch of {self._launch.kernel.__name__}>"

    def _wait_for_copies(self):
        if _arguments.copying:
            for x in self._alive:
                if isinstance(x, np.ndarray):
                    _arguments.wait_for(x, _arguments.copying)

    def __call__(self) -> float:
        """Runs it and waits; gives the seconds that it took on the device."""
        _graphs.leave()
        self._wait_for_copies()
        return asked(self._program.run, self._launch.sizes, self._given, self._time_limit)

    def submit(self) -> Future:
        """Starts it and returns."""
        _graphs.leave()
        self._wait_for_copies()
        submission = asked(self._program.submit, self._launch.sizes, self._given, self._time_limit)
        return Future(submission, list(self._alive), [])

    def set(self, **arguments: Any) -> None:
        """Other arguments from now on, by the names of their parameters."""
        known = dict(zip([step.name for step in self._steps], self._bound))
        for name in arguments:
            if name not in known:
                raise ArgumentError(
                    f"kernel `{self._launch.kernel.__name__}` has no parameter `{name}` that a "
                    f"prepared launch can set; it has {', '.join(known)}"
                )
        self._take([*{**known, **arguments}.values()])


# ---- measuring ----


class BenchResult:
    """What ``iv.bench`` measured: the device's times of the runs, in seconds."""

    def __init__(self, times: Sequence[float], size_bytes: int):
        self.times = sorted(times)
        #: The bytes of all arrays that were passed.
        self.size_bytes: int = size_bytes

    @property
    def median(self) -> float:
        """The median time, in seconds."""
        return self.times[len(self.times) // 2]

    @property
    def best(self) -> float:
        """The least time, in seconds."""
        return self.times[0]

    @property
    def gigabytes_per_second(self) -> float:
        """The arrays' bytes by the median time; 0 where nothing ran, as on an empty grid."""
        return self.size_bytes / self.median / 1e9 if self.median else 0.0

    def __repr__(self):
        return (
            f"<median {self.median * 1e6:.1f} us, best {self.best * 1e6:.1f} us of "
            f"{len(self.times)} runs, {self.gigabytes_per_second:.2f} GB/s>"
        )


@entry
def bench(
    kernel: Kernel | LoadedKernel,
    *,
    grid: Size | threadgroups,
    threadgroup: Size | None = None,
    runs: int = 20,
    warmup: int = 3,
    device: Device | str | None = None,
    constants: Mapping[str, Any] | None = None,
    prove: bool = False,
) -> Callable[..., BenchResult]:
    """Measures a kernel: ``iv.bench(kernel, grid=..., threadgroup=...)(args)``.

    The arrays are those passed, so a kernel that changes its input runs on what it left. A kernel that
    has a threadgroup size of its own needs none here. ``prove`` is that of prepared launches.
    """
    threadgroup = _threadgroup_of(kernel, threadgroup)
    for name, n, least in (("runs", runs, 1), ("warmup", warmup, 0)):
        if type(n) is not int or n < least:
            raise ArgumentError(f"{name}={n!r}: write a number of at least {least}")

    @entry
    def run(*args: Any, **kwargs: Any) -> BenchResult:
        _graphs.leave()
        ready = kernel[grid, threadgroup].prepare(*args, device=device, constants=constants, prove=prove, **kwargs)
        for _ in range(warmup):
            ready()
        times = [ready() for _ in range(runs)]
        return BenchResult(times, sum(x.nbytes for x in ready._alive))

    return run


# ---- checks ----


@entry
def check(
    kernel: Kernel | LoadedKernel,
    *,
    grid: Size | threadgroups,
    threadgroup: Size | None = None,
    seeds: int | None = None,
    seed: int = 0,
    allow: Sequence[str] = (),
    deny_warnings: bool = False,
    raises: bool = True,
    constants: Mapping[str, Any] | None = None,
    time_limit: float | None = None,
) -> Callable[..., Report]:
    """Runs a kernel under every checker: data races, bounds, divergence, uninitialised reads.

    ``iv.check(kernel, grid=..., threadgroup=...)(args)`` gives a ``Report``, or raises
    ``CheckError`` with the findings; with ``raises=False`` it always gives the report. The arrays
    are not changed; what a launch refuses is refused, and ``copy=True`` beside the arguments is for
    arrays that are not contiguous. ``seeds`` is how many schedules to try: by default one where its
    verdict holds for every schedule, else up to 16. ``allow`` has the rules to leave out. A kernel that
    has a threadgroup size of its own needs none here.
    """
    # Kernels of the Enigma DSL are checked too.
    if not hasattr(type(kernel), "for_arguments"):
        raise ArgumentError(f"iv.check() takes a kernel, not {kernel!r}")
    sizes = sizes_of(grid, _threadgroup_of(kernel, threadgroup))

    for what, n, least, bits in (("seeds", 1 if seeds is None else seeds, 1, 32), ("seed", seed, 0, 64)):
        if type(n) is not int or not least <= n < 1 << bits:
            raise ArgumentError(f"{what}={n!r}: write a whole number of at least {least}, of at most {bits} bits")

    @entry
    def run(*args: Any, copy: bool = False, **kwargs: Any) -> Report:
        _graphs.leave()
        compiled, bound = kernel.for_arguments(args, kwargs)
        name = kernel.__name__
        bound = [x.numpy() if type(x) is DeviceArray else x for x in bound]
        given, alive, _ = _arguments.convert(compiled.steps, bound, copy)
        _arguments.check_overlap(compiled.steps, alive)
        # A launch that is still running may write what is read here.
        for future in list(_arguments.in_flight):
            future.exception()
        try:
            text, found, passed, reach, allowed = told(
                CheckError, compiled.module.check, name, sizes, given, compiled.named(constants), seed=seed,
                seeds=seeds, allow=[*allow], deny_warnings=deny_warnings, time_limit=time_limit,
            )  # fmt: skip
        except ValueError as e:
            raise Error(str(e)) from None
        del alive
        report = Report(passed, findings_of(found), text, reach, dict(allowed))
        if raises and not passed:
            raise CheckError(str(report), report.findings)
        return report

    return run
