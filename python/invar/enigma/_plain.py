"""Blocks of a builder, which run as plain Python: their lines, and the names that loops rebind.

The compiler sees no statement of such a block, so where it stands is asked of Python's frames, and
what the iterations of a loop would hand on is read off its text.

Absent: what functions that a block calls read and set, and lists and objects that it changes.
"""

from __future__ import annotations

import ast
import linecache

from .. import _syntax
from .._kernel import author
from .._values import Undefined

_MISSING = object()


def here():
    """The line that runs, as ``_trace.here()`` gives it; ``None`` where its text cannot be had."""
    frame = author()
    filename, line = frame.f_code.co_filename, frame.f_lineno
    text = linecache.getline(filename, line).rstrip()
    if not text:
        return None
    return filename, line, len(text) - len(text.lstrip()) + 1, line, len(text) + 1


def _names(node):
    """The names in code, in the order in which Python evaluates it, and whether each is read. What a
    branch or an inner loop may leave unset counts as read only."""
    if isinstance(node, ast.Name):
        yield node, isinstance(node.ctx, ast.Load)
        return
    targets, rest = [], ast.iter_child_nodes(node)
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        rest = () if node.value is None else [node.value]
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        yield node.target, True
    unsure = (ast.If, ast.For, ast.While, ast.Try, ast.FunctionDef, ast.Lambda, ast.IfExp, ast.BoolOp)
    for part in (*rest, *targets):
        for name, read in _names(part):
            if read or not isinstance(node, unsure):
                yield name, read


class Iterations:
    """What the names that a loop's iterations read before they set them hold as the loop begins."""

    def __init__(self):
        self.frame = author()
        self.before = {}
        written = set()
        for name, read in self._body():
            if not read:
                written.add(name.id)
            elif name.id not in written:
                self.before[name.id] = self.frame.f_locals.get(name.id, _MISSING)

    def _body(self):
        """The names of the `with` statement at the line that runs."""
        filename, line = self.frame.f_code.co_filename, self.frame.f_lineno
        tree = _syntax.parse(filename, "".join(linecache.getlines(filename)))
        for node in ast.walk(tree):
            if isinstance(node, ast.With) and node.lineno <= line < node.body[0].lineno:
                for part in (*(item.optional_vars for item in node.items), *node.body):
                    if part is not None:
                        yield from _names(part)

    def changed(self):
        """A name that the iterations hand on, or ``None``."""
        for name, old in self.before.items():
            new = self.frame.f_locals.get(name, _MISSING)
            if old is not _MISSING and not isinstance(old, Undefined) and new is not old:
                return name
        return None
