"""The source of functions, and what its syntax tells without running it.

Absent: what names stand for; that is known only when the code runs.
"""

from __future__ import annotations

import ast
import dis
import functools
import itertools
import linecache
import os
import sys
import time
import types

from ._errors import KernelError


@functools.lru_cache(maxsize=64)
def parse(filename, text):
    """The tree of a source text."""
    return ast.parse(text, filename)


_definitions = {}


def definition(function):
    """The tree of a function, as its file was when it was first looked at, and the file's name."""
    code = function.__code__
    if code not in _definitions:
        _definitions[code] = _found_definition(function)
    return _definitions[code]


def _found_definition(function):
    code = function.__code__
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
            f"the source of `{function.__name__}` cannot be had, as {where}: a kernel and what it "
            "calls must be in a file or a notebook cell"
        )
    try:
        tree = parse(filename, "".join(lines))
    except SyntaxError as e:
        raise KernelError(f"the source of `{function.__name__}` has changed: {e}") from None
    if _changed_since(filename) and not _holds(filename, "".join(lines), code):
        raise KernelError(
            f"the source of `{function.__name__}` in {filename} has changed since it was loaded: "
            "load it again"
        )
    if code.co_name == "<lambda>":
        node = _lambda(code, tree)
        if node is not None:
            return node, filename
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if first == code.co_firstlineno or node.lineno == code.co_firstlineno:
                return node, filename
    raise KernelError(
        f"the source of `{function.__name__}` has changed since it was loaded: load it again"
    )


_STARTED = time.time()


def _changed_since(filename):
    """Whether a file may be newer than the code that was loaded from it."""
    try:
        return os.stat(filename).st_mtime > _STARTED
    except OSError:
        return False


@functools.lru_cache(maxsize=64)
def _codes(filename, text):
    """The code objects of a source text, by their names and first lines."""
    found, stack = {}, [compile(text, filename, "exec", dont_inherit=True)]
    while stack:
        code = stack.pop()
        found.setdefault((code.co_name, code.co_firstlineno), []).append(code)
        stack.extend(c for c in code.co_consts if isinstance(c, types.CodeType))
    return found


def _holds(filename, text, code):
    """Whether a text compiles to this code."""
    same = _codes(filename, text).get((code.co_name, code.co_firstlineno), [])
    return any(_alike(code, other) for other in same)


def _alike(one, two):
    """Whether two code objects do the same: line tables and file names do not count."""
    return all(
        name == other
        and (
            _alike(a, b)
            if isinstance(a, types.CodeType) and isinstance(b, types.CodeType)
            else type(a) is type(b) and repr(a) == repr(b)
        )
        for (name, a), (other, b) in itertools.zip_longest(
            _instructions(one), _instructions(two), fillvalue=(None, None)
        )
    )


def _instructions(code):
    """What code does. A call of a module's function is compiled in another way where the file imports
    that module, so that does not count."""
    for i in dis.get_instructions(code):
        if i.opname == "PUSH_NULL":
            continue
        jump = i.opcode in dis.hasjrel or i.opcode in dis.hasjabs
        name = "LOAD_ATTR" if i.opname == "LOAD_METHOD" else i.opname
        yield name, None if jump else i.argval


def _lambda(code, tree):
    """The lambda of a code object as a function that returns its body; ``None`` if that is not sure."""
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Lambda)
        and node.lineno == code.co_firstlineno
        and parameters(node) == code.co_varnames[: _parameter_count(code)]
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
    if len(found) != 1:
        return None
    (node,) = found
    options = {"type_params": []} if sys.version_info >= (3, 12) else {}
    result = ast.copy_location(ast.Return(node.body), node.body)
    function = ast.FunctionDef("_invar_lambda", node.args, [result], [], None, None, **options)
    return ast.copy_location(function, node)


def parameters(node):
    a = node.args
    named = [x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
    return (*named, *(x.arg for x in (a.vararg, a.kwarg) if x is not None))


def _parameter_count(code):
    variadic = bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
    return code.co_argcount + code.co_kwonlyargcount + variadic


# ---- what the syntax tells ----

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def names(nodes, context):
    """Names with a context (load, store) in statements, not counting inner functions' own."""
    found = []
    stack = list(reversed(nodes if isinstance(nodes, list) else [nodes]))
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            if context is ast.Store:
                found.append(node.name)
                continue
        elif isinstance(node, _SCOPES):
            if context is ast.Store:
                continue
        elif isinstance(node, _COMPREHENSIONS) and context is ast.Store:
            # Only `:=` assigns to a variable outside it.
            found.extend(n.target.id for n in ast.walk(node) if isinstance(n, ast.NamedExpr))
            continue
        elif isinstance(node, ast.Name) and (
            isinstance(node.ctx, context) or context is ast.Store and isinstance(node.ctx, ast.Del)
        ):
            found.append(node.id)
        elif context is ast.Store and isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                found.extend(roots(target))
        elif context is ast.Store and isinstance(node, (ast.Import, ast.ImportFrom)):
            found.extend((a.asname or a.name).partition(".")[0] for a in node.names)
        elif context is ast.Store and (name := captured(node)) is not None:
            found.append(name)
        stack.extend(reversed(list(ast.iter_child_nodes(node))))
    return list(dict.fromkeys(found))


def captured(node):
    """The variable that a pattern or an ``except`` assigns, or ``None``."""
    kind = type(node).__name__  # Patterns are newer than the oldest Python.
    if kind in ("MatchAs", "MatchStar", "ExceptHandler"):
        return node.name
    return node.rest if kind == "MatchMapping" else None


def roots(target):
    """The variables of which an assignment's target is a part."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return [name for part in target.elts for name in roots(part)]
    if isinstance(target, ast.Starred):
        return roots(target.value)
    part = False
    while isinstance(target, (ast.Attribute, ast.Subscript)):
        target, part = target.value, True
    return [target.id] if part and isinstance(target, ast.Name) else []


def declared(body):
    """The names that a function declares ``global`` and ``nonlocal``, by the kind of statement."""
    found = {ast.Global: [], ast.Nonlocal: []}
    stack = list(body)
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            found[type(node)].extend(node.names)
        if not isinstance(node, _SCOPES):
            stack.extend(ast.iter_child_nodes(node))
    return found


def yields(body):
    """Whether a function's body makes it a generator."""
    stack = list(body)
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, _SCOPES):
            stack.extend(ast.iter_child_nodes(node))
    return False


def changes_nothing(node):
    """Whether it is sure that evaluating an expression changes nothing: names, numbers, a range."""
    if isinstance(node, ast.Call):
        called = node.func
        if getattr(called, "attr", getattr(called, "id", None)) != "range" or node.keywords:
            return False
        parts = [called, *node.args]
    else:
        parts = [node]
    plain = (
        ast.Name, ast.Attribute, ast.Constant, ast.Subscript, ast.BinOp, ast.UnaryOp, ast.operator,
        ast.unaryop, ast.expr_context,
    )  # fmt: skip
    return all(isinstance(part, plain) for root in parts for part in ast.walk(root))


def leaving(body, loops=0):
    """The first jump that leaves a block, or ``None``."""
    for node in body:
        if isinstance(node, ast.Return):
            return node
        if isinstance(node, (ast.Break, ast.Continue)) and not loops:
            return node
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            continue
        inside = loops + isinstance(node, (ast.For, ast.While))
        # Blocks stand in handlers and cases, too.
        parts = [x for x in ast.iter_child_nodes(node) if not isinstance(x, ast.expr)]
        found = leaving(parts, inside)
        if found is not None:
            return found
    return None
