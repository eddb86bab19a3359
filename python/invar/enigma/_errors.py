"""Exceptions of the Enigma DSL, and how Invar's become such."""

from __future__ import annotations

import re

from .. import _trace
from .._errors import Error, KernelError, ReportError


class EnigmaError(Error):
    """What the Enigma DSL cannot do, or was asked wrongly."""


class EnigmaRuntimeError(EnigmaError, RuntimeError):
    """What is passed to a kernel does not fit it."""


class EnigmaKernelError(EnigmaError, KernelError):
    """A kernel is not what the DSL allows."""


def error(message):
    """The exception for what is wrong at the author's current line."""
    return EnigmaKernelError(message, _trace.here())


_KINDS = {KernelError: EnigmaKernelError}


def _kind(kind):
    if kind not in _KINDS:
        name, module = f"Enigma{kind.__name__}", EnigmaError.__module__
        _KINDS[kind] = type(name, (EnigmaError, kind), {"__module__": module})
    return _KINDS[kind]


def enigma_error(e):
    """An exception of ours or of the layout algebra as an ``EnigmaError``, with the author's line."""
    position = _trace.place_of(e)
    if not isinstance(e, ReportError) and getattr(e, "filename", None) is None and position:
        return EnigmaKernelError(str(e), position)
    if not isinstance(e, Error):
        return EnigmaError(str(e))
    if not isinstance(e, EnigmaError):
        e.__class__ = _kind(type(e))
        said = getattr(e, "message", None)
        if said is not None and "iv." in said and e.args[0].startswith(said):
            e.message = _NAMED.sub(_ours, said)
            e.args = (e.message + e.args[0][len(said) :],)
    return e


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
