"""Register tensors, pipelines of tiles, and matrix products of tiles.

All of it is made of thread and threadgroup arrays, and of simdgroup matrices: nothing here is known
to the IR. Absent: copies into tiles (``_ops``), and layouts (``_views``).
"""

from __future__ import annotations

import math

from . import _control, _ops, _trace
from ._operators import give
from ._views import VALUE_OPERATORS, RegisterLike, not_a_value
from ._types import Type, element_of, type_named
from ._values import Value, constant, describe, index_of, op, plus, row_major, to_type

__all__ = "Pipeline RegisterTensor gemm pipeline register_tensor simdgroup_tile simdgroup_tile_store".split()

_U32 = type_named("u32")


def _whole(n, what, of=1):
    """A number that is known when the kernel is compiled: a multiple of some number."""
    if type(n) is not int or n < of or n % of:
        found = describe(n) if isinstance(n, Value) else repr(n)
        wanted = "number of at least 1" if of == 1 else f"multiple of {of}"
        raise _trace.error(f"{what} is a compile-time {wanted}, not {found}")
    return n


class RegisterTensor(RegisterLike):
    """A thread's own array of any shape: ``acc[i, j]`` is an element.

    A compile-time index is checked against its dimension. A traced one is not: the element is the
    one at ``i * columns + j`` in row-major order, and none if that lies outside of the array (B1,
    B2).
    """

    def __init__(self, memory, shape):
        self.memory, self.shape = memory, shape

    def __repr__(self):
        return f"<register tensor {self.memory.name} of {self.memory.element} {self.shape}>"

    __hash__ = object.__hash__

    @property
    def name(self) -> str:
        """The name of its memory."""
        return self.memory.name

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self):
        raise _trace.error(f"`{self.name}` is a register tensor, which no loop goes through: loop over its indices")

    def _index(self, indices):
        indices = indices if isinstance(indices, tuple) else (indices,)
        return row_major(self.name, self.shape, indices)

    def __getitem__(self, indices: Index | tuple[Index, ...]) -> Any:
        return self.memory[self._index(indices)]

    def __setitem__(self, indices: Index | tuple[Index, ...], value: Operand) -> None:
        self.memory[self._index(indices)] = value

    def fill(self, value: Operand) -> None:
        """Stores one value to every element."""
        value = to_type(value, self.memory.element, f"a fill of `{self.memory.name}`")
        for i in range(math.prod(self.shape)):
            self.memory[i] = value


give(RegisterTensor, VALUE_OPERATORS, not_a_value("index it"))


def register_tensor(element: Element, *shape: int | tuple[int, ...], fill: Operand | None = None) -> RegisterTensor:
    """An array of the thread's own of any shape, all zeros or all ``fill``: ``acc[i, j]``.

    It lives in registers where its indices are known when the kernel is compiled. The shape is
    numbers or one tuple.
    """
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = tuple(shape[0])
    count = math.prod(_whole(n, "an extent of a register tensor") for n in shape or (0,))
    element = element_of(element)
    if not isinstance(element, Type):
        raise _trace.error(f"a register tensor holds values, not {element}")
    tensor = RegisterTensor(_ops.thread_alloc(element, count), tuple(shape))
    if fill is not None:
        tensor.fill(fill)
    return tensor


class Pipeline:
    """Stages of one size in one threadgroup array, and which of them is in front.

    While the front stage is read, the back stage, the one that comes to the front last, is filled;
    where there is one stage only, it is both.
    Loops of the kernel carry which stage is in front.
    """

    def __init__(self, memory, size, stages):
        #: Which stage is in front: branches and loops of the kernel carry it, as an element of a list.
        self.state = [constant(_U32, 0)]
        self.memory, self.size, self.stages = memory, size, stages

    def stage(self, ahead: int) -> Memory:
        """The stage that is in front after so many calls of ``advance``; ``ahead`` is a number."""
        if type(ahead) is not int:
            raise _trace.error("a stage of a pipeline is named by a compile-time number")
        position, ahead = self.state[0], ahead % self.stages
        if ahead:
            moved = position + ahead
            position = op("select", [moved, moved - self.stages, moved >= self.stages])
        return self.memory.at(position * self.size)

    @property
    def front(self) -> Memory:
        """The stage that is read."""
        return self.stage(0)

    @property
    def back(self) -> Memory:
        """The stage that is filled."""
        return self.stage(self.stages - 1)

    def advance(self) -> None:
        """Brings the next stage to the front; the one that was there becomes the back."""
        moved = self.state[0] + 1
        _control.store(self.state, 0, op("select", [moved, constant(_U32, 0), moved >= self.stages]))


def pipeline(element: Element, size: int, stages: int = 2) -> Pipeline:
    """``stages`` tiles of ``size`` elements in one threadgroup array, to fill one while another is
    read."""
    _whole(size, "the size of a stage")
    _whole(stages, "the number of stages")
    return Pipeline(_ops.threadgroup_alloc(element, size * stages), size, stages)


# ---- matrix products ----


def simdgroup_tile(element: Element, rows: int, columns: int, value: Operand = 0.0) -> list[list[Value]]:
    """A tile of simdgroup matrices, as a list of rows: what ``gemm`` adds to in registers.

    ``rows`` and ``columns`` count elements and are multiples of 8.
    """
    for n, what in ((rows, "rows"), (columns, "columns")):
        _whole(n, f"the number of {what} of a tile", 8)
    return [[_ops.simdgroup_matrix(element, value) for _ in range(columns // 8)] for _ in range(rows // 8)]


def simdgroup_tile_store(tile: list[list[Value]], memory: Memory, index: Index, elements_per_row: Index) -> None:
    """Writes a tile of simdgroup matrices; its first element goes to ``memory[index]``."""
    start = _ops._memory(memory).at(index)
    for r, row in enumerate(tile):
        for c, matrix in enumerate(row):
            at = _offset(start, r * 8, c * 8, elements_per_row)
            _ops.simdgroup_store(matrix, at, 0, elements_per_row)


def _offset(memory, row, column, elements_per_row):
    """The memory from (row, column) of a tile on; ``row`` and ``column`` may be traced."""
    if not isinstance(row, Value) and not isinstance(elements_per_row, Value):
        row = row * elements_per_row
        return memory.at(row + column) if isinstance(column, Value) or row + column else memory
    if not isinstance(row, Value) and row == 0:
        return memory.at(column) if isinstance(column, Value) or column else memory
    return memory.at(index_of("add", index_of("mul", elements_per_row, row), column))


def _factor(memory, row, column, stride, transpose):
    if transpose:
        row, column = column, row
    return _ops.simdgroup_load(_offset(memory, row, column, stride), 0, stride, transpose)


def gemm(c: Memory | list[list[Value]], a: Memory, b: Memory, m: int, n: int, k: int, *, a_row: Index | None = None, b_row: Index | None = None, c_row: Index | None = None, transpose_a: bool = False,
         transpose_b: bool = False) -> None:  # fmt: skip
    """``c += a @ b`` for a tile of ``m`` by ``n`` by ``k`` elements, each a multiple of 8.

    ``a`` and ``b`` are memory: a buffer, a threadgroup array or ``x.at(offset)``, with rows
    ``a_row`` and ``b_row`` elements apart (by default without gaps). ``c`` is either

    - a tile of ``simdgroup_tile``, which the simdgroup that calls this adds to in registers, or
    - memory, with rows ``c_row`` elements apart: the simdgroups of the threadgroup share the work,
      and every thread must call this. It has no barrier: put one before, between the writes of
      ``a``, ``b`` and ``c`` and this, and one after, before they are used or written again.

    With ``transpose_a``, ``a`` holds the k by m transpose, with ``transpose_b``, ``b`` the n by k one.
    """
    for extent, what in ((m, "m"), (n, "n"), (k, "k")):
        _whole(extent, f"`{what}` of iv.gemm()", 8)
    a, b = _ops._memory(a), _ops._memory(b)
    if a.element != b.element:
        raise _trace.error(
            f"iv.gemm() of `{a.name}`, which holds {a.element}, by `{b.name}`, which holds "
            f"{b.element}: both need one type; convert one in a threadgroup array"
        )
    a_row = (m if transpose_a else k) if a_row is None else a_row
    b_row = (k if transpose_b else n) if b_row is None else b_row

    def accumulate(tile, row, column):
        for step in range(0, k, 8):
            left = [_factor(a, plus(row, r * 8), step, a_row, transpose_a) for r in range(len(tile))]
            for j in range(len(tile[0])):
                right = _factor(b, step, plus(column, j * 8), b_row, transpose_b)
                for i, line in enumerate(tile):
                    _control.store(line, j, _ops.simdgroup_multiply_accumulate(left[i], right, line[j]))

    if isinstance(c, list):
        if len(c) != m // 8 or any(len(row) != n // 8 for row in c):
            raise _trace.error(
                f"iv.gemm() of {m} by {n} takes a tile of {m // 8} by {n // 8} matrices, found "
                f"{len(c)} by {len(c[0]) if c else 0}"
            )
        accumulate(c, 0, 0)
        return
    c = _ops._memory(c)
    c_row = n if c_row is None else c_row
    across = n // 8

    def tile(number):
        row, column = number // across * 8, number % across * 8
        at = _offset(c, row, column, c_row)
        total = _control.remember([_ops.simdgroup_load(at, 0, c_row)])
        accumulate([total], row, column)
        # An element may be read by one lane and written by another (O6).
        _ops.simdgroup_barrier(c.space)
        _ops.simdgroup_store(total[0], at, 0, c_row)

    first = op("simdgroup_index_in_threadgroup", [])
    count = op("simdgroups_per_threadgroup", [])
    _control.kernel_for(_control.Range(first, m // 8 * across, count), tile)
