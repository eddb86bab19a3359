"""The kernel being compiled: the builder, what runs around the current line, and where that line is.

Absent: looking at Python's own frames for lines; the compiler says at which node of the author's
syntax tree it is.
"""

from __future__ import annotations

import linecache
import os
import threading

from . import _syntax
from ._errors import Error, KernelError
from ._invar import Builder

_local = threading.local()
#: One kernel is compiled at a time: kernels may share objects of Python, which compiling changes and
#: puts back. A fork waits for its end: a child has none of the threads that would put them back.
lock = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)


class Trace:
    """One kernel being compiled."""

    def __init__(self, name, dialect=None, threadgroup=None):
        self.builder = Builder(name)
        #: The size of its threadgroups, if the kernel says one.
        self.threadgroup = threadgroup
        #: Other rules for how types meet, or ``None`` for Invar's own: see ``enigma._dialect.Dialect``.
        self.dialect = dialect
        #: Branches, loops and functions around the current line, outermost first.
        self.frames = []
        #: The functions under way, outermost first: what names each.
        self.functions = []
        #: The regions around the current line, which remember what changes in them (``_control``).
        self.regions = []
        #: Objects of Python that the kernel made: the object and the region, by their ids.
        self.made = {}
        #: Objects of which one or another came here, and those that stand for them, by their ids (``_control.meet``).
        self.met = {}
        #: What was taken from outside (``_reads``).
        self.reads = None
        #: The file and the node of the author's code that is running.
        self.place = None
        #: Of which place and call the builder's instructions are.
        self.told = None
        #: What tells the position instead, for a surface whose code runs as Python.
        self.locate = None
        self.access = {}
        #: Memory of the kernel's own that was found by name: arrays of another surface.
        self.arrays = []
        self.sources = {}
        self.structs = {}
        self.function_constants = {}
        self.constants = {}
        self.call = None
        #: Ranges of numbers of values whose region, a ``with`` block, has ended.
        self.ended = []
        #: The variable that is being assigned, for the names of arrays.
        self.hint = None
        #: The target of the assignment under way, and the first for each place: messages name it.
        self.target, self.labels = None, {}
        #: What the author's own `raise` raised last.
        self.raised = None

    def source(self, filename):
        """The number of a source text in the module."""
        if filename not in self.sources:
            text = "".join(linecache.getlines(filename))
            self.sources[filename] = self.builder.source(filename, text)
        return self.sources[filename]

    def span(self, position):
        filename, line, column, end_line, end_column = position
        return (self.source(filename), line, column, end_line, end_column, self.call)

    def at(self):
        """Tells the builder which line of the author's is running."""
        if self.place is not None and self.told == (self.place, self.call):
            return
        position = here()
        if position is not None:
            self.builder.set_span(self.span(position))
            self.told = self.place, self.call

    def emit(self, name, *args):
        """Makes an instruction of the author's current line, by a method of the builder; what the builder
        refuses is an error there."""
        self.at()
        try:
            return getattr(self.builder, name)(*args)
        except ValueError as e:
            raise error(str(e)) from None


def active():
    """Whether a kernel is being compiled on this thread."""
    return getattr(_local, "trace", None) is not None


def current():
    """The trace under way on this thread."""
    trace = getattr(_local, "trace", None)
    if trace is None:
        raise Error("this works only inside a kernel: a function with @iv.kernel, or one it calls")
    return trace


class tracing:
    """Makes a trace the current one."""

    def __init__(self, trace):
        self.trace = trace

    def __enter__(self):
        self.before = getattr(_local, "trace", None)
        _local.trace = self.trace
        return self.trace

    def __exit__(self, *_):
        _local.trace = self.before


def emit(name, *args):
    """Makes an instruction of the kernel under way: see ``Trace.emit``."""
    return current().emit(name, *args)


def here():
    """Where the author's code is running: file, line, column, end line, end column, or ``None``."""
    trace = getattr(_local, "trace", None)
    if trace is None:
        return None
    if trace.place is None:
        return trace.locate() if trace.locate is not None else None
    return _syntax.position(*trace.place)


def error(message, place=None):
    """The exception for what is wrong at a place, or else at the author's current line."""
    return KernelError(message, place or here())


class reported:
    """Makes Python's own exceptions of the author's code errors of the kernel, at their lines."""

    def __init__(self, trace):
        self.trace = trace

    def __enter__(self):
        return self

    def __exit__(self, kind, found, traceback):
        if isinstance(found, Error):
            found.place = here()
        if not isinstance(found, Exception) or isinstance(found, Error):
            return
        place = here()
        # What the author's code raises itself is for the author's code to say.
        if found is self.trace.raised or isinstance(found, AssertionError):
            found.__invar_place__ = place
            if place is not None and hasattr(found, "add_note"):
                found.add_note(f"  --> {place[0]}:{place[1]}, when the kernel was compiled")
        elif place is not None:
            said = str(found) or "it says nothing more"
            text = f"{type(found).__name__} while the kernel is compiled: {said}"
            raise KernelError(text, place) from found.with_traceback(None)
