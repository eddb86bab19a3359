"""The operators of Python: how they are written, their methods, and their rows in the op table.

Absent: what an operator does with values (``_values``), and with objects of the author's (``_calls``).
"""

from __future__ import annotations

import ast
import operator
from typing import Any, NamedTuple


class Operator(NamedTuple):
    """An operator of two operands: Python's function for it, the methods of the left and of the right
    operand, and the row of the op table."""

    function: Any
    method: str
    reflected: str
    row: str


#: By how they are written: the node of the syntax tree, the name of the method, and the row.
_ARITHMETIC = {
    "+": (ast.Add, "add", "add"), "-": (ast.Sub, "sub", "sub"), "*": (ast.Mult, "mul", "mul"),
    "/": (ast.Div, "truediv", "div"), "//": (ast.FloorDiv, "floordiv", "div"),
    "%": (ast.Mod, "mod", "rem"), "**": (ast.Pow, "pow", "pow"), "&": (ast.BitAnd, "and", "and"),
    "|": (ast.BitOr, "or", "or"), "^": (ast.BitXor, "xor", "xor"),
    "<<": (ast.LShift, "lshift", "shl"), ">>": (ast.RShift, "rshift", "shr"),
}  # fmt: skip
_COMPARISONS = {
    "<": (ast.Lt, "lt", "gt"), "<=": (ast.LtE, "le", "ge"), ">": (ast.Gt, "gt", "lt"),
    ">=": (ast.GtE, "ge", "le"), "==": (ast.Eq, "eq", "eq"), "!=": (ast.NotEq, "ne", "ne"),
}  # fmt: skip
_MATMUL = (ast.MatMult, "matmul", "matrix_multiply")
_UNARY = {"-": (ast.USub, "neg"), "+": (ast.UAdd, "pos"), "~": (ast.Invert, "invert")}


def _function(name):
    return getattr(operator, f"__{name}__")


BINARY = {
    symbol: Operator(_function(name), f"__{name}__", f"__r{name}__", row)
    for symbol, (_, name, row) in {**_ARITHMETIC, "@": _MATMUL}.items()
}
BINARY.update({
    symbol: Operator(_function(name), f"__{name}__", f"__{swapped}__", name)
    for symbol, (_, name, swapped) in _COMPARISONS.items()
})  # fmt: skip
COMPARISONS = frozenset(_COMPARISONS)
#: Of those with one operand: Python's function and the method.
UNARY = {symbol: (_function(name), f"__{name}__") for symbol, (_, name) in _UNARY.items()}
#: How the operator of a node of the syntax tree is written.
SYMBOLS = {
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in", ast.MatMult: "@",
    **{
        entry[0]: symbol
        for table in (_ARITHMETIC, _COMPARISONS, _UNARY)
        for symbol, entry in table.items()
    },
}  # fmt: skip
#: The methods of what values do, but for `==`, `!=` and `@`, which other things have as well.
METHODS = [
    *(f"__{swapped}{name}__" for swapped in ("", "r") for _, name, _ in _ARITHMETIC.values()),
    *(f"__{name}__" for name in "lt le gt ge neg pos abs invert".split()),
]


def give(cls, names, make):
    """Gives a class methods by their names, which ``make`` makes for each."""
    for name in names:
        method = make(name)
        method.__name__ = name
        setattr(cls, name, method)
