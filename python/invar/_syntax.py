"""The source of functions, and what its syntax tells without running it.

A function's tree is found by its code object. A ``Scope`` says which names are its own, as Python's
compiler decides it; ``jumps`` and ``stores`` say what a statement may leave by and assign.

Absent: what names stand for, which is known only when the code runs, and bytecode.
"""

from __future__ import annotations

import ast
import enum
import functools
import linecache
import os
import time
import types

from ._beside import is_standard
from ._errors import KernelError

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_SCOPES = (*_FUNCTIONS, ast.ClassDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_STARTED = time.time()
_definitions = {}


def own_module(name):
    """Whether a module is the author's: not this package, NumPy or the standard library."""
    module = (name or "").partition(".")[0]
    return module not in ("invar", "numpy", "ml_dtypes") and not is_standard(module)


def own(thing):
    """Whether a function or class is the author's."""
    return own_module(getattr(thing, "__module__", None))


@functools.lru_cache(maxsize=1024)
def own_class(cls):
    """Whether objects of a class are the author's, with attributes that a kernel may store to."""
    if cls is types.SimpleNamespace:
        return True
    apart = (enum.Enum, type, BaseException, types.ModuleType, types.FunctionType)
    return own(cls) and not issubclass(cls, apart)


@functools.lru_cache(maxsize=64)
def parse(filename, text):
    """The tree of a source text."""
    return ast.parse(text, filename)


def definition(function):
    """The tree of a function, as its file was when it was first looked at, and the file's name."""
    code = function.__code__
    if code not in _definitions:
        _definitions[code] = _find(function)
    return _definitions[code]


def _find(function):
    code, name = function.__code__, function.__name__
    filename = code.co_filename
    # The file may have changed, and the function been loaded again since.
    linecache.checkcache(filename)
    lines = linecache.getlines(filename, function.__globals__)
    if not lines:
        where = (
            "it was written at a prompt or made by exec()"
            if filename.startswith("<")
            else f"there is no file {filename}"
        )
        raise KernelError(
            f"the source of `{name}` cannot be had, as {where}: a kernel and what it calls must be in "
            "a file or a notebook cell"
        )
    changed = f"the source of `{name}` in {filename} has changed since it was loaded: load it again"
    text = "".join(lines)
    try:
        tree = parse(filename, text)
    except SyntaxError:
        raise KernelError(changed) from None
    if _changed_since(filename) and not _holds(filename, text, code):
        raise KernelError(changed)
    found = _lambdas(code, tree) if code.co_name == "<lambda>" else _defs(code, tree)
    if found is None:
        raise KernelError(changed)
    return found, filename


def _defs(code, tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if code.co_firstlineno in (first, node.lineno):
                return node
    return None


def _lambdas(code, tree):
    """The lambda of a code object; ``None`` if that is not sure."""
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Lambda)
        and node.lineno == code.co_firstlineno
        and parameters(node) == code.co_varnames[:count]
    ]
    if len(found) > 1 and hasattr(code, "co_positions"):
        # The smallest whose body holds every place of the code.
        places = [p for p in code.co_positions() if None not in p and p[2] != p[3]]
        found = [
            node
            for node in found
            if all(
                (node.body.lineno, node.body.col_offset) <= (line, column)
                and (end, end_column) <= (node.body.end_lineno, node.body.end_col_offset)
                for line, end, column, end_column in places
            )
        ]
        found.sort(key=lambda node: -node.body.col_offset)
        del found[1:]
    return found[0] if len(found) == 1 else None


def _changed_since(filename):
    """Whether a file may be newer than the code that was loaded from it."""
    try:
        return os.stat(filename).st_mtime > _STARTED
    except OSError:
        return False


@functools.lru_cache(maxsize=64)
def _codes(filename, tree):
    """All code objects of a tree."""
    found = [compile(tree, filename, "exec", dont_inherit=True)]
    for code in found:
        found.extend(c for c in code.co_consts if isinstance(c, types.CodeType))
    return found


def _holds(filename, text, code):
    """Whether a text compiles to this code: as a whole, or a statement by itself, as in a notebook, where
    it need not know what the rest of the file imports."""
    whole, first = parse(filename, text), code.co_firstlineno
    alone = [
        ast.Module([node], [])
        for node in whole.body
        if node.lineno <= first <= node.end_lineno or isinstance(node, _FUNCTIONS)
    ]
    return any(
        (other.co_name, other.co_firstlineno) == (code.co_name, first) and _alike(code, other)
        for tree in (whole, *alone)
        for other in _codes(filename, tree)
    )


def _alike(one, two):
    """Whether two code objects do the same: line tables and file names do not count."""
    if one.co_code != two.co_code or one.co_names != two.co_names:
        return False
    if one.co_varnames != two.co_varnames or len(one.co_consts) != len(two.co_consts):
        return False
    return all(
        _alike(a, b)
        if isinstance(a, types.CodeType) and isinstance(b, types.CodeType)
        else type(a) is type(b) and repr(a) == repr(b)
        for a, b in zip(one.co_consts, two.co_consts)
    )


def position(filename, node):
    """Where a node stands: file, line, column, end line and end column, counted from 1."""
    column = _characters(filename, node.lineno, node.col_offset)
    end = _characters(filename, node.end_lineno, node.end_col_offset)
    return filename, node.lineno, column + 1, node.end_lineno, end + 1


def _characters(filename, line, column):
    # Python counts bytes of UTF-8, reports count characters.
    text = linecache.getline(filename, line)
    return column if text.isascii() else len(text.encode()[:column].decode(errors="replace"))


def parameters(node):
    """The names of a function's parameters."""
    a = node.args
    named = [x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
    return (*named, *(x.arg for x in (a.vararg, a.kwarg) if x is not None))


# ---- scopes ----


class Scope:
    """Whose the names of a function are."""

    def __init__(self, node):
        self.params = parameters(node)
        body = [node.body] if isinstance(node, ast.Lambda) else node.body
        self.globals, self.nonlocals, self.is_generator = set(), set(), False
        #: The first part of it that kernels do not have, and the sentence that says so.
        self.refused = None
        for part in _walk(body):
            if isinstance(part, ast.Global):
                self.globals.update(part.names)
            elif isinstance(part, ast.Nonlocal):
                self.nonlocals.update(part.names)
            elif isinstance(part, (ast.Yield, ast.YieldFrom)):
                self.is_generator = True
            elif isinstance(part, (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await)):
                self.refused = self.refused or (part, "kernels have no `async`")
            elif type(part).__name__ == "TryStar":
                why = "kernels have no `except*`: they have no exceptions"
                self.refused = self.refused or (part, why)
        self.locals = {*self.params, *stores(body)} - self.globals - self.nonlocals
        self.jumps = set().union(*(jumps(part) for part in body))


#: What a tree says is found once.
_once = functools.lru_cache(maxsize=None)


@_once
def scope(node):
    """The scope of a function's tree."""
    return Scope(node)


def _walk(nodes):
    """The nodes of statements, without those of inner functions and classes."""
    stack = list(reversed(nodes))
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, _SCOPES):
            stack.extend(reversed(list(ast.iter_child_nodes(node))))


def stores(nodes):
    """The names that statements assign."""
    found = []
    stack = list(reversed(nodes))
    while stack:
        node = stack.pop()
        kind = type(node).__name__  # Patterns are newer than the oldest Python.
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            found.append(node.name)
            continue
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, COMPREHENSIONS):
            # Only `:=` assigns to a variable outside it.
            found.extend(n.target.id for n in ast.walk(node) if isinstance(n, ast.NamedExpr))
            continue
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.append(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found.extend((a.asname or a.name).partition(".")[0] for a in node.names)
        elif kind in ("MatchAs", "MatchStar", "ExceptHandler") and node.name is not None:
            found.append(node.name)
        elif kind == "MatchMapping" and node.rest is not None:
            found.append(node.rest)
        stack.extend(reversed(list(ast.iter_child_nodes(node))))
    return list(dict.fromkeys(found))


@_once
def assigned(node):
    """The names that a loop's body, its test and its target assign, in whole or in part."""
    head = [node.target] if isinstance(node, ast.For) else [node.test]
    return list(dict.fromkeys([*stores([*head, *node.body]), *roots(node.body)]))


def roots(nodes):
    """The variables of which statements assign a part: of ``v.x = 1`` that is ``v``."""
    found = []
    for part in _walk(nodes):
        if isinstance(part, (ast.Attribute, ast.Subscript)) and not isinstance(part.ctx, ast.Load):
            while isinstance(part, (ast.Attribute, ast.Subscript)):
                part = part.value
            if isinstance(part, ast.Name):
                found.append(part.id)
    return found


_JUMPS = {ast.Return: "return", ast.Break: "break", ast.Continue: "continue"}


@_once
def jumps(node):
    """By what a statement may be left: a set of ``return``, ``break`` and ``continue``."""
    if isinstance(node, (ast.expr, *_SCOPES)):
        return frozenset()
    found = {_JUMPS[type(node)]} if type(node) in _JUMPS else set()
    for part in ast.iter_child_nodes(node):
        inside = jumps(part)
        if isinstance(node, (ast.For, ast.While)) and part not in node.orelse:
            inside = inside - {"break", "continue"}
        found |= inside
    return frozenset(found)


def leaving(body):
    """The first jump that leaves a block, or ``None``."""
    for node in body:
        if isinstance(node, (ast.Return, ast.Break, ast.Continue)):
            return node
        if jumps(node):
            parts = [x for x in ast.iter_child_nodes(node) if not isinstance(x, ast.expr)]
            if isinstance(node, (ast.For, ast.While)):
                returns = [x for part in parts for x in _walk([part]) if isinstance(x, ast.Return)]
                return returns[0] if returns else None
            return leaving(parts)
    return None
