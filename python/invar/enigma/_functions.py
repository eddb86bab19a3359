"""The functions that kernels of the Enigma DSL call."""

from __future__ import annotations

from .. import _control, _ops, _trace, _values
from .. import layout as _layout
from .._types import type_named
from .._values import Elements, Value, elementwise
from .._views import plus
from . import typing as _typing
from ._dialect import GridPosition, current, forward, traced
from ._errors import error
from ._memory import RegisterTensor, Tensor, threadgroup_array, to, uint, value

_G = _ops.GENERATED
#: Functions that go element by element, by their parameters.
_ELEMENTWISE = {
    "x": "abs ceil floor trunc round sign saturate fract sqrt rsqrt exp exp2 log log2 log10 sin cos "
    "tan sinh cosh tanh asin acos atan isnan isinf isfinite isnormal signbit popcount clz ctz "
    "reverse_bits",
    "a, b": "atan2 pow fmod fmin fmax copysign abs_diff add_sat sub_sat mul_hi rotate",
    "a, b, c": "fma mad_sat",
    "x, lo, hi": "clamp",
    "a, b, t": "mix",
    "e0, e1, x": "smoothstep",
    "edge, x": "step",
}
#: Functions of whole vectors, by their parameters.
_WHOLE = {
    "a, b": "dot distance cross",
    "v": "length normalize",
    "incident, normal": "reflect",
    "incident, normal, eta": "refract",
    "n, incident, nref": "faceforward",
}
_PACK = [name for name in _G if name.startswith(("pack_float", "unpack_"))]
_SIMD = [
    name
    for name in _G
    if name.startswith(("simd_", "quad_")) and not name.endswith(("ballot", "any", "all"))
]
_QUERIES = (
    "thread_index_in_threadgroup thread_index_in_simdgroup simdgroup_index_in_threadgroup "
    "simdgroups_per_threadgroup threads_per_simdgroup"
).split()
_DIMENSIONS = (
    "thread_position_in_threadgroup threadgroup_position_in_grid threads_per_threadgroup "
    "threads_per_grid threadgroups_per_grid grid_size"
).split()


def _function(name, parameters, body, text):
    """A public function with these parameters, which calls ``body`` with them in order."""
    names = ", ".join(p.partition("=")[0].strip() for p in parameters.split(","))
    scope = {"body": body}
    # In this file's name, so that reports point at the author's line and not into this one.
    exec(compile(f"def {name}({parameters}): return body({names})", __file__, "exec"), scope)
    function = globals()[name] = scope[name]
    function.__module__ = "invar.enigma"
    function.__doc__ = text


def _by_element(name, parameters):
    row = _G[name]
    _function(
        name, parameters, lambda *args: elementwise(row, *(value(x) for x in args)), row.__doc__
    )


def _whole(name, parameters):
    row = _G[name]
    _function(name, parameters, lambda *args: row(*(_vector(value(x)) for x in args)), row.__doc__)


def _vector(x):
    """Two to four elements as a vector."""
    if isinstance(x, Elements):
        return make_vec(*x)
    return x


_REDUCTIONS = {"sum": "add", "product": "mul", "min": "min", "max": "max", "and": "and", "or": "or",
               "xor": "xor"}  # fmt: skip


def _simd(name):
    row = _G[name]
    kind = name.partition("_")[2]
    lane = {"broadcast": "lane", "shuffle": "lane", "shuffle_xor": "mask"}.get(kind, "delta")
    moves = kind == "broadcast" or kind.startswith("shuffle")
    parameters = f"value, {lane}" if moves else "x"
    # A thread's own elements are combined first.
    combine = _REDUCTIONS.get(kind)

    def function(x, *lane):
        current().simdgroup = True
        x = value(x)
        lane = [uint(n) for n in lane]
        if combine and (isinstance(x, Elements) or _is_vector(x)):
            total, *rest = x
            for part in rest:
                total = _values.binary(combine, total, part, combine)
            x = total
        return elementwise(lambda x: row(x, *lane), x)

    _function(name, parameters, function, row.__doc__)


def _query(name):
    row = _G[name]
    simdgroup = "simd" in name

    def function():
        current().simdgroup |= simdgroup
        return row()

    function.__name__ = function.__qualname__ = name
    function.__doc__ = row.__doc__
    globals()[name] = function


def _dimension(name):
    row = _G[name]

    def function(dim="x"):
        current()
        if dim not in ("x", "y", "z"):
            raise error(f"a dimension is \"x\", \"y\" or \"z\", not {dim!r}")
        return row(dim)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = row.__doc__
    globals()[name] = function


for _make, _table in ((_by_element, _ELEMENTWISE), (_whole, _WHOLE)):
    for _parameters, _names in _table.items():
        for _name in _names.split():
            _make(_name, _parameters)
for _name in _PACK:
    _by_element(_name, "x" if _name.startswith("unpack") else "v")
for _name in _SIMD:
    _simd(_name)
for _name in _QUERIES:
    _query(_name)
for _name in _DIMENSIONS:
    _dimension(_name)

thread_position_in_grid = GridPosition()


def thread_position_in_grid_xyz(dim="x"):
    """The thread's position in the grid, in one dimension."""
    return thread_position_in_grid(dim)


class arch:
    """Names as in CUDA, each giving ``(value, 0, 0)``."""

    @staticmethod
    def thread_idx():
        """The thread's position in its threadgroup."""
        return thread_position_in_threadgroup("x"), 0, 0

    @staticmethod
    def block_idx():
        """The threadgroup's position in the grid."""
        return threadgroup_position_in_grid("x"), 0, 0

    @staticmethod
    def block_dim():
        """The size of the threadgroup."""
        return threads_per_threadgroup("x"), 0, 0


# ---- comparisons, choice ----


def _compare(name, sign):
    def function(a, b):
        def one(a, b):
            a, b = traced(a), traced(b)
            ty = _values.common_type((a, b), f"cmp_{name}")
            if sign and ty.is_integer:
                ty = ty.with_scalar(type_named(f"{sign}{ty.bits}"))
            return _values.op(name, [to(a, ty), to(b, ty)])

        return elementwise(one, value(a), value(b))

    return function


def _comparison(public, name, sign, text):
    function = _compare(name, sign)
    function.__name__ = function.__qualname__ = public
    function.__doc__ = text
    globals()[public] = function


for _name in ("lt", "le", "gt", "ge"):
    _comparison(f"cmp_{_name}", _name, "i", f"`{_name}`, with integers taken as signed.")
    _comparison(f"cmp_u{_name}", _name, "u", f"`{_name}`, with integers taken as unsigned.")
_comparison("cmp_eq", "eq", "", "Whether both are equal.")
_comparison("cmp_ne", "ne", "", "Whether they differ.")


def where(false_val, true_val, condition):
    """``true_val`` where the condition holds, else ``false_val``; both are evaluated."""

    def one(no, yes, c):
        if _is_vector(c):
            return _G["select"](*_values.beside(c, (no, yes), "where()"), c)
        return _G["select"](no, yes, _control.truth(c))

    return elementwise(one, value(false_val), value(true_val), value(condition))


def _is_vector(x):
    return isinstance(x, Value) and x.type.kind == "vector"


def imin(a, b):
    """The smaller of two integers."""
    return elementwise(_G["min"], value(a), value(b))


def imax(a, b):
    """The larger of two integers."""
    return elementwise(_G["max"], value(a), value(b))


def iclamp(x, lo, hi):
    """An integer kept between two others."""
    def one(x, lo, hi):
        return _values.binary("min", _values.binary("max", x, lo, "max"), hi, "min")

    return elementwise(one, value(x), value(lo), value(hi))


def abs_diff_unary(x):
    """The distance of an integer from 0."""
    return elementwise(lambda x: _G["abs_diff"](x, 0), value(x))


# ---- types, vectors, matrices ----


def metal_cast(x, dtype):
    """The value converted to a type, as Metal's ``static_cast``."""
    ty = _typing.type_of(dtype)
    return elementwise(lambda x: _values.convert(ty, (x,)), value(x))


def as_type(x, dtype):
    """The value's bits as another type of the same size."""
    ty = _typing.type_of(dtype)
    return elementwise(lambda x: _G["as_type"](ty, x), value(x))


def extract_bits(value, offset, bits):
    """``bits`` bits of an integer from bit ``offset`` on (A6)."""
    return elementwise(lambda x: _G["extract_bits"](x, uint(offset), uint(bits)), traced(value))


def insert_bits(base, insert, offset, bits):
    """``base`` with ``bits`` bits from bit ``offset`` on replaced by the lowest of ``insert``."""
    return elementwise(
        lambda b, i: _G["insert_bits"](b, i, uint(offset), uint(bits)), traced(base), traced(insert)
    )


def make_vec(*components):
    """A vector of two to four components; the first one's type wins."""
    if not 2 <= len(components) <= 4:
        raise error(f"a vector has 2 to 4 components, not {len(components)}")
    components = [value(x) for x in components]
    ty = _values.common_type(components, "a vector").scalar
    return _values.convert(type_named(f"{ty.name}x{len(components)}"), [to(x, ty) for x in components])


def make_float2(x, y):
    """A ``float2``."""
    return _float_vector(x, y)


def make_float3(x, y, z):
    """A ``float3``."""
    return _float_vector(x, y, z)


def make_float4(x, y, z, w):
    """A ``float4``."""
    return _float_vector(x, y, z, w)


def _float_vector(*parts):
    ty = type_named(f"f32x{len(parts)}")
    return _values.convert(ty, [to(value(x), ty.scalar) for x in parts])


def vec_extract(v, lane):
    """A component of a vector, or one of several elements."""
    v = value(v)
    return v[traced(lane)]


def matmul(a, b, result_dtype=None):
    """The product of small matrices, or of a matrix and a vector."""
    return _result(_G["matrix_multiply"](value(a), value(b)), result_dtype)


def transpose(m, result_dtype=None):
    """The transpose of a small matrix."""
    return _result(_G["transpose"](value(m)), result_dtype)


def determinant(m, scalar_dtype=None):
    """The determinant of a small square matrix."""
    return _result(_G["determinant"](value(m)), scalar_dtype)


def _result(x, dtype):
    if dtype is None or _typing.type_of(dtype) == x.type:
        return x
    return _values.convert(_typing.type_of(dtype), (x,))


# ---- memory ----


def threadgroup_alloc(dtype, size):
    """Threadgroup memory of so many elements, all zeros at the start (I2)."""
    memory = threadgroup_array(_typing.type_of(dtype), size)
    _trace.current().arrays.append(memory)
    return Tensor.on(memory, memory.handle[1])


def tensor_of(x):
    """A tensor in memory or registers."""
    if not isinstance(x, (Tensor, RegisterTensor)):
        raise error(f"{_values.describe(x)} where a tensor is needed")
    return x


def load_if(buf, index, mask, default=0):
    """``buf[index]`` where ``mask`` holds, else ``default``; no access where it does not."""
    buf = tensor_of(buf)
    width = buf._width() if isinstance(buf, Tensor) else 0
    ty = buf._type if not width else type_named(f"{buf._type.name}x{width}")
    return _control.if_exp(_condition(mask), lambda: buf[index], lambda: to(default, ty))


def store_if(buf, index, value, mask):
    """Stores ``buf[index] = value`` where ``mask`` holds; no access where it does not."""

    def store():
        buf[index] = value

    tensor_of(buf)
    _control.if_stmt(_condition(mask), store)


def _condition(mask):
    return _control.truth(value(mask))


def copy(src, dst, count, src_offset=0, dst_offset=0, mask_fn=None, coalesced_width=1):
    """Copies ``count`` elements, in order. Each thread that comes here makes the whole copy, so that it
    sees the data at once and others do behind a barrier; to share the work give each thread offsets
    of its own. ``mask_fn(i)`` says which elements are copied; ``coalesced_width`` is how many
    neighbours, 1, 2 or 4, an iteration of the loop copies where that divides a known ``count``.

    Element ``i`` of a tensor with a layout is its ``i``-th as ``load()`` and ``store()`` walk it; of
    one without a layout, and of an array given to compile(), it is element ``i`` of the memory from
    the tensor's offset on.
    """
    src, dst = tensor_of(src), tensor_of(dst)
    for tensor, offset in ((src, src_offset), (dst, dst_offset)):
        _fits(tensor, offset, count)
    if type(coalesced_width) is not int or coalesced_width not in (1, 2, 4):
        raise error(f"coalesced_width is 1, 2 or 4, not {coalesced_width!r}")
    count = traced(count)
    wide = mask_fn is None and type(count) is int and count % coalesced_width == 0
    width = coalesced_width if wide else 1

    def one(i):
        def move():
            # Element by element, whatever an index stands for elsewhere.
            element = src.memory[_nth(src, plus(i, traced(src_offset)))]
            dst.memory[_nth(dst, plus(i, traced(dst_offset)))] = to(element, dst._type)

        if mask_fn is None:
            move()
        else:
            _control.if_stmt(_condition(mask_fn(i)), move)

    def body(start):
        for k in range(width):
            one(plus(start, k))

    ty = count.type if isinstance(count, Value) else type_named("i32")
    _control.kernel_for(_control.Range(to(0, ty), to(count, ty), to(width, ty)), body)


def _nth(tensor, i):
    """The index in memory of a tensor's element number ``i``."""
    return tensor.nth(i) if isinstance(tensor, Tensor) else i


def _fits(tensor, offset, count):
    """Refuses a copy that is known to go beyond what a tensor's layout covers."""
    if not isinstance(tensor, Tensor) or tensor.chosen_layout() is None:
        return
    if type(offset) is int and type(count) is int and offset + count > tensor.size():
        where = f" from element {offset} on" if offset else ""
        raise error(
            f"copy() of {count} elements{where}: the layout of `{tensor.name}` has {tensor.size()}; "
            "copy no more, or give the tensor without a layout"
        )


# ---- barriers ----

_FLAGS = {"mem_none": (), "mem_device": ("device",), "mem_threadgroup": ("threadgroup",),
          "mem_texture": ("texture",), "mem_threadgroup_imageblock": ("imageblock",),
          "mem_device_and_threadgroup": ("device", "threadgroup")}  # fmt: skip


def _spaces(flags):
    spaces = []
    for flag in str(flags).replace("mem_flags::", "").split("|"):
        if flag.strip() not in _FLAGS:
            raise error(f"there is no {flag.strip()!r}: barriers take {', '.join(_FLAGS)}")
        spaces.extend(s for s in _FLAGS[flag.strip()] if s not in spaces)
    return spaces


def barrier(mem_flags="mem_threadgroup"):
    """Makes the threads of the threadgroup wait for each other, and orders memory (O2)."""
    current()
    _ops.barrier("threadgroup", _spaces(mem_flags))


def simd_barrier(mem_flags="mem_threadgroup"):
    """Makes the threads of the simdgroup wait for each other, and orders memory (O2)."""
    current().simdgroup = True
    _ops.barrier("simdgroup", _spaces(mem_flags))


# ---- atomics ----


def _atomic(method, parameters, text):
    def body(buf, *args):
        if not isinstance(buf, Tensor):
            raise error(f"{_values.describe(buf)} where a tensor in memory is needed")
        return getattr(buf, method)(*args)

    _function(method, f"buf, {parameters}", body, text)


_atomic("atomic_load", "index, order='relaxed'", "Loads ``buf[index]`` atomically.")
_atomic("atomic_store", "index, value, order='relaxed'", "Stores to ``buf[index]`` atomically.")
_atomic(
    "atomic_exchange",
    "index, value, order='relaxed'",
    "Replaces ``buf[index]``; gives the value just before.",
)
_atomic(
    "atomic_compare_exchange_weak",
    "index, expected, desired, success_order='relaxed', failure_order='relaxed'",
    "Replaces ``buf[index]`` by ``desired`` if it equals ``expected``; gives whether it did.",
)
for _name in "add sub min max and or xor".split():
    _atomic(
        f"atomic_fetch_{_name}",
        "index, value, order='relaxed'",
        f"The atomic `{_name}` on ``buf[index]``; gives the value before.",
    )


# ---- async copies ----


def _named(x):
    """A tensor, or the name of a parameter or threadgroup array, as the tensor."""
    if not isinstance(x, str):
        return tensor_of(x)
    for tensor in current().parameters:
        if isinstance(tensor, Tensor) and tensor.name == x:
            return tensor
    for memory in reversed(_trace.current().arrays):
        if memory.name == x:
            return Tensor.on(memory, memory.handle[1])
    raise error(f"there is no buffer and no threadgroup array `{x}`")


def _at(tensor, offset):
    tensor = _named(tensor)
    return tensor.memory, start_of(tensor, offset)


def start_of(tensor, offset):
    """The index in memory of the element ``offset`` elements behind where a tensor begins."""
    offset = traced(offset)
    return plus(tensor.offset_of_first(), offset) if isinstance(tensor, Tensor) else offset


def _check_run(tensor, count):
    """Refuses a copy of consecutive elements of a view that has others in between."""
    layout = tensor.layout if isinstance(tensor, Tensor) else None
    if layout is None or _layout.cosize(layout) == _layout.size(layout):
        return
    run = 1
    modes = [] if isinstance(layout, _layout.SwizzledLayout) else list(_modes(layout))
    for shape, stride in sorted(modes, key=lambda mode: mode[1]):
        if stride == run:
            run *= shape
    if not isinstance(count, int) or count > run:
        raise error(
            f"a copy of {count if isinstance(count, int) else 'so many'} consecutive elements of "
            f"`{tensor.name}`, whose layout {layout} has at most {run} side by side: copy row by row, "
            "or with async_copy_2d_d2t(...)"
        )


def _modes(layout):
    """The shapes and strides of a layout's innermost modes."""

    def pairs(shape, stride):
        if isinstance(shape, int):
            yield shape, stride
            return
        for n, step in zip(shape, stride):
            yield from pairs(n, step)

    return pairs(layout.shape, layout.stride)


def _event(event):
    current().simdgroup = True
    events = getattr(current(), "events", None)
    if events is None:
        events = current().events = []
    events.append(event)
    return event


def async_copy_1d_d2t(dst, dst_offset, src, src_offset, count):
    """Starts a copy of ``count`` elements from device to threadgroup memory; gives its event."""
    count = traced(count)
    dst, src = _named(dst), _named(src)
    for tensor in (dst, src):
        _check_run(tensor, count)
    return _event(_ops.async_copy(*_at(dst, dst_offset), *_at(src, src_offset), count))


def async_copy_1d_t2d(dst, dst_offset, src, src_offset, count):
    """Starts a copy of ``count`` elements from threadgroup to device memory; gives its event."""
    return async_copy_1d_d2t(dst, dst_offset, src, src_offset, count)


def async_copy_2d_d2t(dst, dst_offset, dst_elements_per_row, src, src_offset,
                      src_elements_per_row, tile_cols, tile_rows):  # fmt: skip
    """Starts a copy of a tile from device to threadgroup memory; gives its event."""
    return _event(
        _ops.async_copy_2d(
            *_at(dst, dst_offset), traced(dst_elements_per_row),
            *_at(src, src_offset), traced(src_elements_per_row), traced(tile_cols), traced(tile_rows),
        )
    )  # fmt: skip


def async_copy_2d_t2d(dst, dst_offset, dst_elements_per_row, src, src_offset,
                      src_elements_per_row, tile_cols, tile_rows):  # fmt: skip
    """Starts a copy of a tile from threadgroup to device memory; gives its event."""
    return async_copy_2d_d2t(dst, dst_offset, dst_elements_per_row, src, src_offset,
                             src_elements_per_row, tile_cols, tile_rows)  # fmt: skip


def async_copy_to_threadgroup(src, dst, count, src_offset=0, dst_offset=0):
    """Starts a copy of ``count`` elements to threadgroup memory; gives its event."""
    return async_copy_1d_d2t(dst, dst_offset, src, src_offset, count)


def async_copy_commit(token):
    """The event of a copy that was started: a copy begins where it is written."""
    return token


def async_copy_wait(*events):
    """Waits for copies, given as events or lists of events; without, for all that this kernel started
    so far and did not wait for so."""
    listed = [e for event in events for e in (event if isinstance(event, (list, tuple)) else [event])]
    if not events:
        listed, current().events = getattr(current(), "events", []), []
    if listed:
        _ops.wait(*listed)


# ---- simdgroup matrices ----


def _square(rows, cols):
    if (rows, cols) != (8, 8):
        raise error(f"simdgroup matrices are 8x8, not {rows}x{cols}")


def make_filled_simdgroup_matrix(value, elem="float", rows=8, cols=8):
    """A simdgroup matrix with every entry the same."""
    _square(rows, cols)
    current().simdgroup = True
    ty = _typing.type_of(elem)
    return _ops.simdgroup_matrix(ty, to(value, ty))


def simdgroup_matrix_load(buf, elements_per_row, elem="float", rows=8, cols=8):
    """Reads a simdgroup matrix from where a tensor begins."""
    _square(rows, cols)
    current().simdgroup = True
    if _typing.type_of(elem) != tensor_of(buf)._type:
        raise error(f"`{buf.name}` holds {buf.metal_dtype}, not {elem}")
    return _ops.simdgroup_load(*_at(buf, 0), traced(elements_per_row))


def simdgroup_matrix_store(matrix, buf, elements_per_row):
    """Writes a simdgroup matrix to where a tensor begins."""
    current().simdgroup = True
    _ops.simdgroup_store(matrix, *_at(buf, 0), traced(elements_per_row))


def simdgroup_multiply_accumulate(a, b, c):
    """``a * b + c`` of simdgroup matrices."""
    current().simdgroup = True
    return _ops.simdgroup_multiply_accumulate(a, b, c)


# ---- constants ----


class FunctionConstant:
    """A function constant made outside a kernel: in each kernel that uses it, its value there."""

    __slots__ = ("dtype", "type", "index")
    __array_ufunc__ = None
    __hash__ = object.__hash__

    def __init__(self, dtype, index):
        self.dtype, self.type, self.index = dtype, _typing.type_of(dtype), index

    def _invar_value(self):
        return _ops.function_constant(f"fc{self.index}", self.type, id=self.index)

    def __repr__(self):
        return f"enigma.function_constant({self.dtype!r}, {self.index})"


forward(FunctionConstant)


def function_constant(dtype, index):
    """A value that is fixed when the kernel is compiled; ``execute(constants={index: ...})``.

    It may be made in a kernel, or outside, for all kernels that use it.
    """
    constant = FunctionConstant(dtype, index)
    if constant.type.kind != "scalar":
        raise error(f"a function constant has a scalar type, not {dtype!r}")
    if type(index) is not int or not 0 <= index < 1 << 16:
        raise error(f"a function constant's index is from 0 to 65535, not {index!r}")
    return constant._invar_value() if _trace.active() else constant


#: What this file takes from its neighbours, and its own classes that programs do not name.
_INNER = {
    "FunctionConstant", "GridPosition", "RegisterTensor", "Tensor", "current", "error", "forward",
    "start_of", "tensor_of", "threadgroup_array", "to", "traced", "uint", "value",
}  # fmt: skip

__all__ = sorted(
    name
    for name, thing in globals().items()
    if not name.startswith("_")
    and str(getattr(thing, "__module__", None)).startswith("invar.enigma")
    and name not in _INNER
)
