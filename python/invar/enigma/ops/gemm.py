"""Products of tiles."""

from __future__ import annotations

from ... import _control, _ops, _tiles
from ..._views import plus
from .. import typing as _typing
from .._dialect import current
from .._errors import error
from .._functions import start_of, tensor_of
from .._memory import RegisterTensor, Tensor, to, uint
from ..core import Layout, coalesce

__all__ = ["gemm"]


def gemm(A_s, B_s, C, *, M, N, K, transpose_A=False, transpose_B=False, accum_dtype="float",
         use_simdgroup=None):  # fmt: skip
    """``C += A_s * B_s``, of row-major tiles: M x K, K x N and M x N. The layout of a tensor says how
    far apart its rows are; other layouts are refused.

    Into a register tensor of shape ``(M, N)`` each thread computes the whole product. Into memory the
    threadgroup does, after a barrier that makes what was stored before seen: sizes that are multiples
    of 8 go through simdgroup matrices, 8x8 tiles of C shared among the simdgroups, others element by
    element, shared among the threads. A barrier afterwards is the caller's. ``use_simdgroup`` chooses
    between the two ways, and is refused where a tile cannot go through simdgroup matrices.
    """
    for name, n in (("M", M), ("N", N), ("K", K)):
        if type(n) is not int or n < 1:
            raise error(f"gemm: {name} is a number of at least 1, not {n!r}")
    A, B, C = tensor_of(A_s), tensor_of(B_s), tensor_of(C)
    registers = isinstance(C, RegisterTensor)
    if registers and C.shape != (M, N):
        raise error(f"gemm: C is a register tensor of shape {C.shape}, the product is {M}x{N}")
    accum = _typing.type_of(accum_dtype)
    own = registers or C.memory.space == "thread"
    whole = not any(n % 8 for n in (M, N, K))
    simdgroup = use_simdgroup
    if simdgroup is None:
        simdgroup = whole and A._type.is_float and A._type == B._type and not own
    if simdgroup and not whole:
        raise error(f"gemm: simdgroup matrices need multiples of 8, not {M}x{N}x{K}")
    if simdgroup and own:
        raise error("gemm: simdgroup matrices are shared by threads, so C is not a register tensor")
    rows = _row(C, M, N), _row(A, *((K, M) if transpose_A else (M, K)))
    rows = *rows, _row(B, *((N, K) if transpose_B else (K, N)))
    if not own:
        spaces = {t.memory.space for t in (A, B, C)}
        _ops.barrier("threadgroup", ["threadgroup", *(["device"] if "device" in spaces else [])])
    if simdgroup:
        if C._type != accum:
            raise error(
                f"gemm: C holds {C.metal_dtype}, the sums are {accum_dtype}: give C that type"
            )
        current().simdgroup = True
        parts = [t.memory.at(start_of(t, 0)) for t in (C, A, B)]
        rows = dict(zip(("c_row", "a_row", "b_row"), rows))
        _tiles.gemm(*parts, M, N, K, **rows, transpose_a=transpose_A, transpose_b=transpose_B)
    else:
        _by_elements(A, B, C, M, N, K, rows, transpose_A, transpose_B, accum, own)


def _row(tensor, rows, columns):
    """How far apart the rows of a factor or of the sums of gemm() are."""
    layout = tensor.chosen_layout() if isinstance(tensor, Tensor) else None
    if layout is None:
        return columns
    if isinstance(layout, Layout):
        if layout.rank() == 1 and not isinstance(layout.shape, int):
            layout = layout[0]
        if layout.rank() == 1 and (layout.size() == 1 or coalesce(layout).stride == 1):
            return columns  # Memory without a shape: the stage of a pipeline.
        if layout.rank() == 2 and layout[0].size() >= rows and layout[1].size() >= columns:
            down, across = (layout[i].offsets()[:n] for i, n in ((0, rows), (1, columns)))
            step = down[1] if rows > 1 else columns
            even = down == [r * step for r in range(rows)] and across == [*range(columns)]
            if even and step >= columns:
                return step
    raise error(
        f"gemm: `{tensor.name}` has the layout {tensor.layout}, where {rows} rows of {columns} "
        f"neighbours are needed, as of ({rows},{columns}):({columns},1): transpose_A and "
        "transpose_B take factors the other way round; else copy() it into such a tile"
    )


def _by_elements(A, B, C, M, N, K, rows, transpose_A, transpose_B, accum, own):
    """The product element by element: all by each thread where C is the thread's own, else shared."""

    def at(tensor, row, column, step):
        # Element by element, whatever an index stands for elsewhere.
        return tensor.memory, plus(start_of(tensor, 0), plus(row * step, column))

    def element(number):
        row, column = number // N, number % N
        memory, place = at(C, row, column, rows[0])
        total = to(memory[place], accum)
        for k in range(K):
            a, i = at(A, *((k, row) if transpose_A else (row, k)), rows[1])
            b, j = at(B, *((column, k) if transpose_B else (k, column)), rows[2])
            left, right = to(a[i], accum), to(b[j], accum)
            total = _ops.GENERATED["fma"](left, right, total) if accum.is_float else total + left * right
        memory[place] = to(total, C._type)

    if own:
        first, stride = uint(0), uint(1)
    else:
        threads = _ops.GENERATED["threads_per_threadgroup"]
        first = _ops.GENERATED["thread_index_in_threadgroup"]()
        stride = threads("x") * threads("y") * threads("z")
    _control.kernel_for(_control.Range(first, uint(M * N), stride), element)
