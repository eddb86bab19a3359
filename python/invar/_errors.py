"""Exceptions, and where in the author's text they happened.

Absent: finding that place, which the compiler (``_trace``) and the extension do.
"""

from __future__ import annotations

import ctypes
import functools
import json
import linecache
import types
from dataclasses import dataclass, field
from typing import Any

from . import _graphs, _html
from ._invar import DeviceError, DiagnosticsError, Entry

__all__ = (
    "ArgumentError CheckError Error Finding KernelError Label LaunchError Proof Report ReportError VerifyError"
).split()


class Error(Exception):
    """Whatever Invar refuses."""


def path_text(path):
    """A path as it stands in a sentence, which is one line whatever is in the path."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(path))


#: Binds callables that are not Python functions as methods. Python gives it to C code only; what reads
#: classes, as ``torch.compile`` does, knows it for a method without code of Python, and ``help`` for a
#: function.
_bound = ctypes.pythonapi.PyInstanceMethod_New
_bound.restype, _bound.argtypes = ctypes.py_object, (ctypes.py_object,)


def entry(function):
    """Makes a function one that the author calls: its errors show the author's lines only, and no graph
    of PyTorch holds it."""
    return _bound(functools.update_wrapper(Entry(_graphs.outside(function), Error), function))


def method_entry(function):
    """The same for a method."""
    return _bound(entry(function))


#: What else of a class the author calls than what has a name of its own.
_CALLED = ("__init__", "__call__", "__getitem__")


def entries(cls):
    """Makes entries of a class's methods and properties that say their types; the others are the package's
    own, and quicker without."""
    for name, member in list(vars(cls).items()):
        if name.startswith("_") and name not in _CALLED:
            continue
        if isinstance(member, property) and member.fget.__annotations__:
            setattr(cls, name, property(entry(member.fget), doc=member.__doc__))
        elif isinstance(member, types.FunctionType) and (name in _CALLED or member.__annotations__):
            setattr(cls, name, method_entry(member))
    return cls


class KernelError(Error):
    """A kernel is not what the language allows.

    ``message`` is the sentence, ``filename``, ``line`` and ``column`` (both from 1) say where.
    """

    def __init__(self, message, position=None):
        self.message = message
        self.filename, self.line, self.column, end = None, None, None, None
        if position is not None:
            self.filename, self.line, self.column, end_line, end = position
            if end_line != self.line:
                end = None
        text = message
        if self.filename is not None:
            text += f"\n  --> {self.filename}:{self.line}:{self.column}"
            source = linecache.getline(self.filename, self.line).rstrip("\n")
            if source.strip():
                number = str(self.line)
                bar = " " * len(number)
                width = max(1, (end or len(source) + 1) - self.column)
                text += f"\n{bar} |\n{number} | {source}"
                text += f"\n{bar} | {' ' * (self.column - 1)}{'^' * width}"
        super().__init__(text)


class ArgumentError(Error, TypeError):
    """An argument of a launch does not fit its parameter; nothing was run."""


@dataclass(frozen=True)
class Label:
    """A place in the author's text, what it has to do with a finding, and the inlined calls that led there,
    innermost first."""

    file: str | None
    line: int
    column: int
    end_line: int
    end_column: int
    text: str
    calls: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong: the rule it breaks, the sentence, and the places, first the place itself."""

    severity: str
    rule: str
    message: str
    labels: tuple[Label, ...] = ()
    calls: tuple[Any, ...] = ()
    help: str | None = None

    @property
    def line(self):
        """The line of the place itself, from 1; ``None`` for code that no author wrote."""
        return self.labels[0].line if self.labels and self.labels[0].file else None


def findings_of(text):
    """The findings in a report's JSON."""
    found = []
    for one in json.loads(text):
        labels = tuple(Label(**{**label, "calls": _calls_of(label)}) for label in one["labels"])
        found.append(Finding(one["severity"], one["rule"], one["message"], labels, _calls_of(one), one["help"]))
    return found


def _calls_of(one):
    return tuple((call["function"], call["file"], call["line"]) for call in one.get("calls", ()))


def reported(e, kind):
    """An exception of ours for diagnostics of the extension."""
    text, found = e.args
    return kind(text, findings_of(found))


def told(kind, function, *args, **kwargs):
    """What the extension gives; its diagnostics are an exception of a class."""
    try:
        return function(*args, **kwargs)
    except DiagnosticsError as e:
        raise reported(e, kind) from None


class ReportError(Error):
    """The verifier, a run or a check found something: ``findings`` are objects, ``str`` is the report."""

    def __init__(self, text, findings):
        super().__init__(text)
        self.findings = findings


class VerifyError(ReportError, KernelError):
    """The verifier refused the kernel."""

    def __init__(self, text, findings):
        ReportError.__init__(self, text, findings)
        self.message = findings[0].message if findings else text


class LaunchError(ReportError, ArgumentError):
    """A grid, threadgroup size or argument that the kernel or the device refuses; nothing was run."""


#: Rules that a launch breaks, not the kernel.
_ARGUMENTS = ("invalid-argument", "invalid-dispatch", "overlapping-buffers", "broken-requirement")


def failure(e):
    """What a device refuses or finds, as an exception of ours."""
    if isinstance(e, DeviceError):
        sentence, rule = e.args
        return (ArgumentError if rule in _ARGUMENTS else Error)(f"{sentence} [{rule}]")
    found = reported(e, ReportError)
    if found.findings and found.findings[0].rule in _ARGUMENTS:
        return LaunchError(str(found), found.findings)
    return found


def asked(function, *args):
    """What a device gives; what it refuses or finds is an exception of ours."""
    try:
        return function(*args)
    except (DeviceError, DiagnosticsError) as e:
        raise failure(e) from None


class CheckError(ReportError):
    """A check failed."""


@dataclass
class Proof:
    """What is known of every launch of a kernel; true if it was proved.

    ``verdict`` is ``"proved"`` (no launch that fulfils the ``conditions``, and what the kernel itself
    ``requires``, has a data race or an access out of bounds), ``"broken"`` (``launch``, as options of
    ``invar check``, has one: the checkers ran it, and ``findings`` is what they report) or ``"open"``.
    ``command`` is the whole of that command, where a file has the kernel under its name.
    """

    verdict: str
    conditions: list[str] = field(default_factory=list)
    requires: list[str] = field(default_factory=list)
    words: str = ""
    launch: str = ""
    findings: list[Finding] = field(default_factory=list)
    text: str = ""
    command: str = ""

    def __bool__(self):
        return self.verdict == "proved"

    def __str__(self):
        launch = self.launch and f"    {self.command or self.launch}"
        return "\n".join(part for part in (self.text, self.words, launch) if part)

    def _repr_html_(self):
        return _html.proof(self)


@dataclass
class Report:
    """What a check found, and how far its verdict on data races reaches.

    ``allowed`` says how many findings were left out of each rule that was allowed.
    """

    passed: bool
    findings: list[Finding] = field(default_factory=list)
    text: str = ""
    reach: str = ""
    allowed: dict[str, int] = field(default_factory=dict)

    def __bool__(self):
        return self.passed

    def __str__(self):
        allowed = ", ".join(f"{count} of {rule}" for rule, count in self.allowed.items())
        allowed = allowed and f"allowed: {allowed}"
        return "\n\n".join(part for part in (self.text, allowed, self.reach) if part)

    def _repr_html_(self):
        return _html.report(self)


for _class in (Error, KernelError, ArgumentError, ReportError, VerifyError, LaunchError, CheckError):
    _class.__module__ = "invar"  # Where the author finds them, and what a traceback calls them.
