"""Exceptions of the Enigma DSL, and how Invar's become such."""

from __future__ import annotations

import dataclasses
import re

from .. import _trace
from .._errors import Error, KernelError, ReportError


class EnigmaError(Error):
    """What the Enigma DSL cannot do, or was asked wrongly."""


class EnigmaRuntimeError(EnigmaError, RuntimeError):
    """What is passed to a kernel does not fit it."""


class EnigmaTypeError(EnigmaError, TypeError):
    """Something is of the wrong type."""


class EnigmaKernelError(EnigmaError, KernelError):
    """A kernel is not what the DSL allows."""


class EnigmaAnnotationError(EnigmaKernelError, TypeError):
    """A parameter of a kernel has no type."""


class EnigmaOutsideError(EnigmaKernelError, RuntimeError):
    """What is for kernels is used outside of one."""


def error(message):
    """The exception for what is wrong at the author's current line."""
    return EnigmaKernelError(message, _trace.here())


_KINDS = {(KernelError, EnigmaError): EnigmaKernelError}


def _kind(kind, ours):
    """The class of ours for one of Invar's exceptions; ``ours`` is the base that it gets."""
    if (kind, ours) not in _KINDS:
        name, module = f"{ours.__name__[:-5]}{kind.__name__}", EnigmaError.__module__
        _KINDS[kind, ours] = type(name, (ours, kind), {"__module__": module})
    return _KINDS[kind, ours]


def enigma_error(e, ours=EnigmaError):
    """An exception of ours or of the layout algebra as an ``EnigmaError``, with the author's line."""
    position = getattr(e, "place", None)
    if not isinstance(e, ReportError) and getattr(e, "filename", None) is None and position:
        return EnigmaKernelError(str(e), position)
    if not isinstance(e, Error):
        return ours(str(e))
    if not isinstance(e, ours):
        e.__class__ = _kind(type(e), ours)
        said = getattr(e, "message", None)
        if said is not None and "iv." in said and e.args[0].startswith(said):
            e.message = _NAMED.sub(_ours, said)
            e.args = (e.message + e.args[0][len(said) :],)
        if isinstance(e, ReportError):
            text, findings = in_its_names(e.args[0], e.findings)
            e.args, e.findings = (text, *e.args[1:]), findings
    return e


def runtime_error(e):
    """An exception of a device or launch as one that is a ``RuntimeError`` too."""
    return enigma_error(e, EnigmaRuntimeError)


def in_its_names(text, findings):
    """A report whose advice names what the DSL calls it."""
    new = []
    for finding in findings:
        words = {"message": finding.message, "help": finding.help}
        said = {key: _advice(old) for key, old in words.items() if old}
        for key, other in said.items():
            text = text.replace(words[key], other)
        new.append(dataclasses.replace(finding, **said))
    return text, new


#: Calls that advice quotes, and what they are in the DSL.
_CALLS = (
    (re.compile(r'iv\.threadgroup_barrier\("(\w+)"\)'), r'enigma.barrier("mem_\1")'),
    (re.compile(r'iv\.simdgroup_barrier\("(\w+)"\)'), r'enigma.simd_barrier("mem_\1")'),
    (re.compile(r"`iv\.wait`"), "`enigma.async_copy_wait`"),
    # What a kernel of Invar's own says for itself is here said with the access.
    (
        re.compile(r"guard the access or (size the buffer|pass a larger texture); if it is meant, say `.*` on the kernel"),
        r"guard the access, as with `enigma.load_if` and `enigma.store_if`, or \1",
    ),
    (
        re.compile(r"if it is meant, allow `equal-stores`"),
        'if it is meant, check the kernel by `invar.check(..., allow=["equal-stores"])`',
    ),
)


def _advice(text):
    for pattern, ours in _CALLS:
        text = pattern.sub(ours, text)
    return _NAMED.sub(_ours, text)


#: Invar's names in messages, which advise.
_NAMED = re.compile(r"\biv\.(\w+)")
_TYPES = {"bool": "Bool", "bf16": "BFloat16"}


def _ours(match):
    name = match[1]
    number = re.fullmatch(r"([iuf])(\d+)", name)
    if number:
        kind = {"i": "Int", "u": "UInt", "f": "Float"}[number[1]]
        return f"enigma.{kind}{number[2]}"
    return f"enigma.{_TYPES.get(name, name)}"
