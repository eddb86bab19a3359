"""What the rounds of a ``with`` loop would hand on: names and elements that a body reads before it
sets them.

A body is traced once, so a later round would read what the name was before the loop. Which names
those are is read off the source, in the order in which Python evaluates it; a loop asks at its end
which of them have changed. A function that the body names may read, at that place, whatever it can
name. Deliberately absent: in which order such functions read and set, so what they set is refused.
"""

from __future__ import annotations

import ast
import copy
import functools
import linecache

from .. import _source

#: An element by an index that is no constant.
ANY = "[*]"


class _Order(ast.NodeVisitor):
    """Walks code in the order of its evaluation. A key is a name and "", or a name and the first
    step from there: ``("acc", "[0]")``, ``("state", ".total")``."""

    def __init__(self):
        self.written, self.early, self.places = set(), set(), {}
        self.hidden = []
        #: Names that the body reads, with what it has set before each is read first: they may be
        #: functions.
        self.named = {}

    def _read(self, key):
        name, step = key
        if any(name in names for names in self.hidden):
            return
        self.named.setdefault(name, frozenset(n for n, s in self.written if not s))
        if not {(name, ""), key, (name, ANY) if step else key} & self.written:
            self.early.add(key)

    def _write(self, key, node):
        self.written.add(key)
        self.places.setdefault(key, node)

    def visit_Name(self, node):
        key = node.id, ""
        if isinstance(node.ctx, ast.Load):
            self._read(key)
        else:
            self._write(key, node)

    def _part(self, node):
        parts = []
        root = node
        while isinstance(root, (ast.Subscript, ast.Attribute)):
            parts.append(root)
            root = root.value
        named = isinstance(root, ast.Name)
        if named:
            self._read((root.id, ""))
        else:
            self.visit(root)
        for part in parts:
            if isinstance(part, ast.Subscript):
                self.visit(part.slice)
        if not named:
            return
        first = parts[-1]
        if isinstance(first, ast.Attribute):
            step = f".{first.attr}"
        else:
            constant = isinstance(first.slice, ast.Constant)
            step = f"[{first.slice.value!r}]" if constant else ANY
        if isinstance(node.ctx, ast.Load):
            self._read((root.id, step))
        else:
            self._write((root.id, step), node)

    visit_Subscript = visit_Attribute = _part

    def visit_Assign(self, node):
        self.visit(node.value)
        for target in node.targets:
            self.visit(target)

    def visit_AnnAssign(self, node):
        if node.value is not None:
            self.visit(node.value)
            self.visit(node.target)

    def visit_NamedExpr(self, node):
        self.visit(node.value)
        self.visit(node.target)

    def visit_AugAssign(self, node):
        read = copy.copy(node.target)
        read.ctx = ast.Load()
        self.visit(read)
        self.visit(node.value)
        self.visit(node.target)

    def _all(self, nodes):
        for node in nodes:
            self.visit(node)

    def visit_If(self, node):
        self.visit(node.test)
        before = set(self.written)
        self._all(node.body)
        then, self.written = self.written, before
        before = set(before)
        self._all(node.orelse)
        self.written = before | (then & self.written)

    def visit_For(self, node):
        self.visit(node.iter)
        self.visit(node.target)
        self._all(node.body)

    def visit_Lambda(self, node):
        self.hidden.append({a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)})
        self.visit(node.body)
        self.hidden.pop()

    def _comprehension(self, node):
        names = set()
        for generator in node.generators:
            self.visit(generator.iter)
            names |= {n.id for n in ast.walk(generator.target) if isinstance(n, ast.Name)}
        self.hidden.append(names)
        for generator in node.generators:
            self._all(generator.ifs)
        self._all([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt])
        self.hidden.pop()

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = _comprehension

    def visit_FunctionDef(self, node):
        self._write((node.name, ""), node)

    visit_ClassDef = visit_FunctionDef


class Rounds:
    """The keys that the body of a ``with`` statement reads before it sets them."""

    def __init__(self, filename, node):
        order = _Order()
        for item in node.items:
            # What a `while_` tests is read at the start of each round.
            for part in ast.walk(item.context_expr):
                if isinstance(part, ast.Lambda):
                    order.visit(part)
                elif isinstance(part, ast.Name):
                    order.named.setdefault(part.id, frozenset())
            if item.optional_vars is not None:
                order.visit(item.optional_vars)
        order._all(node.body)
        self.early = {key for key in order.early if self._set(key, order.places)}
        self.places, self.filename = order.places, filename
        self.named = order.named

    @staticmethod
    def _set(key, places):
        name, step = key
        return any(n == name and bool(s) == bool(step) for n, s in places)

    def names(self):
        """The names among them."""
        return [name for name, step in self.early if not step]

    def reads(self, name, step):
        """Whether a round reads this element, or one that may be it, before setting it."""
        return bool({(name, step), (name, ANY)} & self.early)

    def place(self, name, step):
        """Where the body sets it first: file, line, column, end line and end column."""
        for key in ((name, step), (name, ANY)):
            node = self.places.get(key)
            if node is not None:
                column, end = node.col_offset + 1, node.end_col_offset + 1
                return self.filename, node.lineno, column, node.end_lineno, end
        return None


@functools.lru_cache(maxsize=256)
def _found(filename, text, line):
    for node in ast.walk(_source.parse(filename, text)):
        if isinstance(node, ast.With) and node.lineno == line:
            return Rounds(filename, node)
    return None


def rounds(position):
    """What the loop whose ``with`` statement stands at a position hands on, if its source is there."""
    if position is None:
        return None
    return _found(position[0], "".join(linecache.getlines(position[0])), position[1])
