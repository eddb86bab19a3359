"""The trace under way: the builder, what runs around the current line, and where that line is."""

from __future__ import annotations

import itertools
import linecache
import sys
import threading

from ._errors import Error, KernelError
from ._invar import Builder

_local = threading.local()
#: One kernel is traced at a time: kernels may share objects of Python, which a trace changes and
#: puts back.
lock = threading.RLock()
_positions = {}


class Retype(BaseException):
    """A weak value met a type: the loop that carries it is traced anew with that type."""

    def __init__(self, slots, ty, weak):
        self.slots, self.type, self.weak = slots, ty, weak


class Restart(BaseException):
    """A construct learned something that it had to know from its start: it is traced anew."""

    def __init__(self, plan):
        self.plan = plan


class Unwatched(BaseException):
    """A part of an expression calls the author's code, which was not to be seen: it is traced anew,
    with what it could change remembered."""


class Trace:
    """One kernel being traced."""

    def __init__(self, name, dialect=None):
        self.builder = Builder(name)
        #: Other rules for how types meet, or ``None`` for Invar's own: see ``_values.Dialect``.
        self.dialect = dialect
        self.frames = []
        #: The functions under way, outermost first: what names each, and its rewritten form.
        self.functions = []
        #: What functions can name (``_state.Reach``), and where objects of Python were changed.
        self.reach, self.changed = None, {}
        #: The objects of Python that nobody has changed (``_state.Ledger``), from the first look on.
        self.ledger = None
        #: Objects that may not be changed, by their ids (``_sharing``).
        self.guards = {}
        #: The iterators whose items unrolled loops are taking, outermost first.
        self.iterated = []
        #: Whether what runs is taken to change nothing (``Unwatched``).
        self.unwatched = False
        #: The code that runs the kernel's functions.
        self.entry = None
        #: The contents of large containers and arrays as they were first seen.
        self.first = {}
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
        position = here()
        if position is not None:
            self.builder.set_span(self.span(position))


def active():
    """Whether a kernel is being traced on this thread."""
    return getattr(_local, "trace", None) is not None


def watch():
    """Before anything that may change what is around it."""
    trace = getattr(_local, "trace", None)
    if trace is not None and trace.unwatched:
        raise Unwatched


def touch(value):
    """Before an object of Python is changed."""
    trace = getattr(_local, "trace", None)
    if trace is not None and trace.ledger is not None:
        trace.ledger.touch(value)


def suspect():
    """Before code runs that may change any object without saying so."""
    trace = getattr(_local, "trace", None)
    if trace is not None and trace.ledger is not None:
        trace.ledger.suspect = True


def taint():
    """Before something is made, or taken from, whose code may run at any time: a generator."""
    suspect()
    trace = getattr(_local, "trace", None)
    if trace is not None and trace.ledger is not None:
        trace.ledger.tainted = True


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
        self.trace.entry = sys._getframe(1).f_code
        return self.trace

    def __exit__(self, *_):
        _local.trace = self.before


_OWN = __file__.rpartition("_trace.py")[0]


def _has_text(filename):
    """Whether a file's lines can be shown: those of ``exec`` cannot, those of notebooks can."""
    return not filename.startswith("<") or bool(linecache.getlines(filename))


def here():
    """Where the author's code is running: file, line, column, end line, end column, or ``None``.

    The innermost Python frame that is not of this package; columns need Python 3.11.
    """
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(_OWN) and _has_text(code.co_filename):
            return _position(code, frame.f_lasti, frame.f_lineno)
        frame = frame.f_back
    return None


def _position(code, instruction, line):
    key = (code, instruction)
    if key not in _positions:
        end_line, column, end_column = line, None, None
        if hasattr(code, "co_positions"):
            places = itertools.islice(code.co_positions(), instruction // 2, None)
            line, end_line, column, end_column = next(places, (line, line, None, None))
        if column is None:
            text = linecache.getline(code.co_filename, line).rstrip()
            column, end_column = len(text) - len(text.lstrip()), len(text)
        else:
            column = _characters(code.co_filename, line, column)
            end_column = _characters(code.co_filename, end_line, end_column)
        _positions[key] = (code.co_filename, line, column + 1, end_line, end_column + 1)
    return _positions[key]


def _characters(filename, line, column):
    # Python counts bytes of UTF-8, reports count characters.
    text = linecache.getline(filename, line)
    if text.isascii():
        return column
    return len(text.encode()[:column].decode(errors="replace"))


def error(message, place=None):
    """The exception for what is wrong at a place, or else at the author's current line."""
    return KernelError(message, place or here())


def place_of(found):
    """The innermost line of the author's in an exception's traceback."""
    place, traceback = None, found.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not code.co_filename.startswith((_OWN, "<")):
            place = _position(code, traceback.tb_lasti, traceback.tb_lineno)
        traceback = traceback.tb_next
    return place


class reported:
    """Makes Python's own exceptions of the author's code errors of the kernel, at their lines."""

    def __init__(self, trace):
        self.trace = trace

    def __enter__(self):
        return self

    def __exit__(self, kind, found, traceback):
        if not isinstance(found, Exception) or isinstance(found, (Error, AssertionError)):
            return
        # What the author's code raises itself is for the author's code to say.
        place = place_of(found)
        if found is not self.trace.raised and place is not None:
            said = str(found) or "it says nothing more"
            text = f"{type(found).__name__} while the kernel is compiled: {said}"
            raise KernelError(text, place) from found


def author():
    """The innermost Python frame that is not of this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_OWN) and not name.startswith("<frozen"):
            break
        frame = frame.f_back
    return frame
