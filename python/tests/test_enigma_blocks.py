"""What `with` blocks of the Enigma DSL do not carry is an error where it is used, never a wrong result."""

import collections
import types

import numpy as np
import pytest

from invar import enigma
from invar._errors import KernelError
from invar.enigma import Float32, Int32

RUN = enigma.MetalRuntime()
A = np.arange(16, dtype=np.float32)
STATE = [0.0]
COUNT = 0


class Total:
    def __init__(self):
        self.value = 0.0

    def add(self, x):
        self.value = self.value + x


class Slotted:
    __slots__ = ("value",)

    def __init__(self):
        self.value = 0.0


def run(kernel, count, inputs=(A,)):
    size = (1, 1, 1)
    return np.frombuffer(
        RUN.execute(enigma.compile(kernel), list(inputs), count * 4, size, size), np.float32
    )


def in_list(a: Float32, out: Float32):
    acc = [0.0, 1.0]
    with enigma.for_range(0, 4) as i:
        acc[0] += a[i]
    out[1] = acc[1]
    out[0] = acc[0]


def number_in_list(a: Float32, out: Float32):
    acc = [0.0]
    with enigma.if_(a[0] > 1.0):
        acc[0] = 5.0
    out[0] = acc[0]


def in_dict(a: Float32, out: Float32):
    acc = {"sum": 0}
    with enigma.while_(lambda: a[0] > 1.0):
        acc["sum"] = 1
    out[0] = acc["sum"]


def in_attribute(a: Float32, out: Float32):
    acc = Total()
    with enigma.if_(a[0] > 1.0):
        acc.add(1.0)
    out[0] = acc.value


def in_slot(a: Float32, out: Float32):
    acc = Slotted()
    with enigma.if_(a[0] > 1.0):
        acc.value = 2.0
    out[0] = acc.value


def in_namespace(a: Float32, out: Float32):
    acc = types.SimpleNamespace(value=0.0)
    with enigma.if_(a[0] > 1.0):
        acc.value = 2.0
    out[0] = acc.value


def in_nested_list(a: Float32, out: Float32):
    acc = {"rows": [(Total(), [1.0])]}
    with enigma.if_(a[0] > 1.0):
        acc["rows"][0][1][0] = 2.0
    out[0] = acc["rows"][0][1][0]


def in_deque(a: Float32, out: Float32):
    last = collections.deque([1.0, 2.0])
    with enigma.if_(a[0] > 1.0):
        last.popleft()
    out[0] = last[0]


def in_closure(a: Float32, out: Float32):
    total = 0.0

    def add(x):
        nonlocal total
        total = total + x

    with enigma.if_(a[0] > 1.0):
        add(1.0)
    out[0] = total


def in_helper(a: Float32, out: Float32):
    acc = [0.0]

    def add(x):
        acc[0] = acc[0] + x

    with enigma.if_(a[0] > 1.0):
        add(1.0)
    out[0] = acc[0]


def in_global_list(a: Float32, out: Float32):
    with enigma.if_(a[0] > 1.0):
        STATE[0] = 1.0
    out[0] = STATE[0]


def set_count(n):
    global COUNT
    COUNT = n


def in_global(a: Float32, out: Float32):
    with enigma.if_(a[0] > 1.0):
        set_count(3)
    out[0] = COUNT


def shortened(a: Float32, out: Float32):
    parts = [1.0, 2.0]
    with enigma.if_(a[0] > 1.0):
        parts.pop()
    out[0] = parts[-1]


def in_array(a: Float32, out: Float32):
    acc = np.zeros(2)
    with enigma.if_(a[0] > 1.0):
        acc[1] = 2.0
    out[0] = acc[1]


def in_set(a: Float32, out: Float32):
    seen = {1}
    with enigma.if_(a[0] > 1.0):
        seen.add(2)
    out[0] = len(seen)


@pytest.mark.parametrize(
    "function, name",
    [
        (in_list, "acc[0]"),
        (number_in_list, "acc[0]"),
        (in_dict, "acc['sum']"),
        (in_attribute, "self.value"),
        (in_slot, "acc.value"),
        (in_namespace, "acc.value"),
        (in_nested_list, "acc['rows'][0][1][0]"),
        (in_closure, "total"),
        (in_helper, "acc[0]"),
        (in_global_list, "STATE[0]"),
        (in_global, "COUNT"),
    ],
)
def test_what_a_block_sets_has_no_value_behind_it(function, name):
    with pytest.raises(KernelError) as e:
        enigma.compile(enigma.kernel(function))
    assert e.value.message.startswith(f"`{name}` is set inside a `with` block"), e.value
    assert "init=" in e.value.message
    # The line that uses it; of what cannot be marked, the block's; of a loop's, where it is set.
    # What outlives the trace is as it was.
    assert STATE == [0.0] and COUNT == 0
    text = str(e.value)
    assert "out[0] = " in text or name in ("acc", "seen") or "acc[0] += a[i]" in text, text


@pytest.mark.parametrize("function", [in_deque, shortened, in_array, in_set])
def test_a_block_changes_no_other_objects(function):
    with pytest.raises(KernelError, match="in a branch or loop of the kernel"):
        enigma.compile(enigma.kernel(function))


@enigma.kernel
def scratch(a: Float32, out: Float32):
    parts = [0.0, 0.0, 7.0]
    with enigma.for_range(0, 4) as i:
        for j in range(2):
            parts[j] = a[i * 2 + j]
        out[i] = parts[0] * parts[1] + parts[2]
    parts[0] = a[1]
    out[4] = parts[0] + parts[2]


def counts(a: Float32, out: Float32):
    n = 0
    with enigma.for_range(0, 4) as i:
        out[i] = n
        n = n + 1


def ping_pong(a: Float32, out: Float32):
    front, back = 0, 1
    with enigma.for_range(0, 4) as i:
        out[i] = a[front]
        front, back = back, front


def branches(a: Float32, out: Float32):
    last = a[0]
    with enigma.for_range(0, 4) as i:
        if a[i] > 2.0:
            last = a[i]
        out[i] = last


def endless(a: Float32, out: Float32):
    n = 0
    with enigma.while_(lambda: n < a[0]):
        n += 1


def attributes(a: Float32, out: Float32):
    sums = Total()
    with enigma.for_range(0, 4) as i:
        sums.value += a[i]
        out[i] = sums.value


def entries(a: Float32, out: Float32):
    sums = {"x": 0.0}
    with enigma.for_range(0, 4) as i:
        out[i] = sums["x"]
        sums["x"] = a[i]


def inner_loops(a: Float32, out: Float32):
    acc = a[0]
    with enigma.for_range(0, 4) as i:
        for j in enigma.range(2):
            acc = acc + a[j]
        out[i] = acc


def inner_blocks(a: Float32, out: Float32):
    acc = a[0]
    with enigma.for_range(0, 4) as i:
        with enigma.if_(enigma.cmp_lt(i, 2)):
            acc = acc + a[i]
            out[i] = acc


def closures(a: Float32, out: Float32):
    acc = Float32(0.0)

    def added(x):
        return acc + x

    with enigma.for_range(0, 4) as i:
        acc = added(a[i])
        out[i] = acc


def named_conditions(a: Float32, out: Float32):
    n = enigma.UInt32(0)

    def more():
        return n < 4

    with enigma.while_(more):
        n = n + 1
        out[0] = a[0]


def methods(a: Float32, out: Float32):
    sums = Total()
    with enigma.for_range(0, 4) as i:
        sums.add(a[i])
        out[i] = a[i]


@pytest.mark.parametrize(
    "function, name, line",
    [
        (inner_loops, "acc", "acc = acc + a[j]"),
        (inner_blocks, "acc", "with enigma.if_("),
        (closures, "acc", "acc = added(a[i])"),
        (named_conditions, "n", "n = n + 1"),
        (methods, "self.value", "self.value = self.value + x"),
        (counts, "n", "n = n + 1"),
        (ping_pong, "front", "front, back = back, front"),
        (branches, "last", "if a[i] > 2.0:"),
        (endless, "n", "n += 1"),
        (attributes, "sums.value", "sums.value += a[i]"),
        (entries, "sums['x']", "sums[\"x\"] = a[i]"),
    ],
)
def test_what_a_later_iteration_would_read_is_refused_where_it_is_set(function, name, line):
    with pytest.raises(KernelError) as e:
        enigma.compile(enigma.kernel(function))
    assert f"`{name}` is set inside a `with` block" in str(e.value) or name in ("front", "back")
    assert "next iteration" in e.value.message and line in str(e.value), e.value


@enigma.kernel
def own_names(a: Float32, out: Float32):
    x, parts, weights = a[0], [0.0, 1.0], [2.0, 0.0]
    with enigma.for_range(0, 4) as i:
        x = a[i]
        for j in range(2):
            parts[j] = x + j
        if x > 1.0:
            y = parts[0]
        else:
            y = parts[1]
        weights[1] = weights[0] * y
        out[i] = sum(parts) + weights[1] + sum([x for x in parts])


def test_names_that_each_iteration_sets_anew_are_free():
    a = A[:4]
    wanted = 2 * (2 * a + 1) + 2 * np.where(a > 1, a, a + 1)
    assert run(own_names, 4).tolist() == wanted.tolist()


@enigma.kernel
def again(a: Float32, out: Float32):
    with enigma.for_range(0, 4, init=[0.0]) as (j, sums):
        sums[0] = sums[0] + a[j]
    with enigma.for_range(0, 2) as i:
        with enigma.for_range(0, 4, init=[0.0]) as (j, sums):
            x = a[j]
            sums[0] = sums[0] + x
        out[i] = sums[0]
    with enigma.for_range(2, 4) as i:
        with enigma.for_range(0, 2) as j:
            x = a[j]
            out[i + j] = x


def test_names_that_an_inner_block_sets_are_its_own():
    assert run(again, 5).tolist() == [A[:4].sum(), A[:4].sum(), A[0], A[0], A[1]]


def test_within_a_block_lists_are_free_and_what_stays_the_same_stays():
    assert run(scratch, 5).tolist() == [7.0, 13.0, 27.0, 49.0, 8.0]


@enigma.kernel
def carries(a: Float32, out: Float32):
    with enigma.for_range(0, 8, init=[0.0, 0]) as (i, carry):
        if a[i] > 3.0:
            carry[0] = carry[0] + a[i]
        for j in enigma.range(2):
            carry[1] = carry[1] + 1
        with enigma.for_range(0, 2, init=[carry[0]]) as (j, inner):
            inner[0] = inner[0] + 1.0
        carry[0] = inner[0]
    out[0] = carry[0]
    out[1] = carry[-1]


def test_carries_go_through_natural_control_flow():
    assert run(carries, 2).tolist() == [4 + 5 + 6 + 7 + 16, 16]


def test_a_carry_set_in_another_block_is_refused_at_that_line():
    @enigma.kernel
    def nested(a: Float32, out: Float32):
        with enigma.for_range(0, 4, init=[0.0]) as (i, carry):
            with enigma.if_(a[i] > 1.0):
                carry[0] = carry[0] + a[i]
        out[0] = carry[0]

    with pytest.raises(KernelError, match="another `with` block.*where") as e:
        enigma.compile(nested)
    assert "carry[0] = carry[0] + a[i]" in str(e.value)


@enigma.kernel
def automatic(a: Int32, out: Float32):
    acc, state, total = [0.0, 1.0], {"n": 0}, 0.0
    for i in enigma.range(5):
        acc[1] = acc[1] * 2.0
        state["n"] = state["n"] + a[i]
        total = total + 1.0
    out[0] = acc[1]
    out[1] = state["n"]
    out[2] = total


def test_enigma_range_carries_elements():
    got = run(automatic, 3, [np.arange(5, dtype=np.int32)])
    assert got.tolist() == [32, 10, 5]


def leaves_in_a_case(a: Float32, out: Float32):
    with enigma.if_(enigma.thread_position_in_grid > 3):
        try:
            out[{}["x"]] = a[0]
        except KeyError:
            return
    out[0] = a[0]


def test_a_jump_in_a_handler_cannot_leave_a_block():
    with pytest.raises(KernelError, match="a jump cannot leave a `with` block") as e:
        enigma.compile(enigma.kernel(leaves_in_a_case))
    assert "return" in str(e.value)


def product_of(layouts, offset, m, n, k, vec_width=0):
    """A product of tensors of these layouts at an offset, and the one that NumPy gives."""
    a, b = np.arange(512, dtype=np.float32) % 17, np.arange(512, dtype=np.float32) * 3 % 11

    @enigma.kernel
    def product(a: Float32, b: Float32, out: Float32):
        enigma.gemm(
            enigma.Tensor("a", 0, "float", layouts[0], base_offset=offset),
            enigma.Tensor("b", 1, "float", layouts[1], base_offset=offset + 5),
            enigma.Tensor("out", 2, "float", layouts[2], base_offset=offset),
            M=m, N=n, K=k,
        )  # fmt: skip

    code = enigma.compile(product, vec_width=vec_width)
    got = np.frombuffer(RUN.execute(code, [a, b], 2048, (32, 1, 1), (32, 1, 1)), np.float32)

    def entries(layout, start, rows, columns):
        return np.array([[start + layout(r, c) for c in range(columns)] for r in range(rows)])

    wanted = np.zeros(512, np.float32)
    factors = a[entries(layouts[0], offset, m, k)], b[entries(layouts[1], offset + 5, k, n)]
    wanted[entries(layouts[2], offset, m, n)] = factors[0] @ factors[1]
    return got, wanted


@pytest.mark.parametrize(
    "m, n, k, offset, vec_width",
    [(4, 8, 8, 64, 0), (4, 4, 4, 0, 4), (4, 4, 4, 64, 4), (8, 8, 8, 64, 0), (1, 3, 5, 7, 0)],
)
@pytest.mark.parametrize("gap", [0, 3, 16])
def test_gemm_goes_through_offsets_and_row_strides(m, n, k, offset, vec_width, gap):
    sizes = (m, k), (k, n), (m, n)
    layouts = [enigma.make_layout(s, (s[1] + gap, 1)) for s in sizes]
    got, wanted = product_of(layouts, offset, m, n, k, vec_width)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("kind, accum", [("int", "int"), ("uint", "uint"), ("char", "int"), ("int", "float")])
@pytest.mark.parametrize("m, n, k", [(8, 16, 8), (5, 3, 7)])
def test_gemm_of_integers(kind, accum, m, n, k):
    held = {"int": np.int32, "uint": np.uint32, "char": np.int8, "float": np.float32}
    types = {"int": Int32, "uint": enigma.UInt32, "char": enigma.Int8, "float": Float32}
    factor, total = types[kind], types[accum]

    @enigma.kernel
    def product(a: factor, b: factor, c: total):
        A = enigma.Tensor("a", 0, kind, enigma.Layout((m, k), (k, 1)))
        B = enigma.Tensor("b", 1, kind, enigma.Layout((k, n), (n, 1)))
        C = enigma.Tensor("c", 2, accum, enigma.Layout((m, n), (n, 1)))
        enigma.gemm(A, B, C, M=m, N=n, K=k, accum_dtype=accum)

    rng = np.random.default_rng(0)
    low = 0 if kind == "uint" else -100
    a, b = (rng.integers(low, 100, shape).astype(held[kind]) for shape in ((m, k), (k, n)))
    got = RUN.execute(enigma.compile(product), [a, b], m * n * 4, (1, 1, 1), (32, 1, 1))
    wanted = a.astype(np.int64) @ b.astype(np.int64)
    assert (np.frombuffer(got, held[accum]).reshape(m, n) == wanted).all()


def test_gemm_of_a_tile_of_a_wider_matrix():
    @enigma.kernel
    def tile(a: Float32, b: Float32, out: Float32):
        wide = enigma.Tensor("a", 0, "float", enigma.make_layout((16, 32), (32, 1)))
        enigma.gemm(enigma.tensor_zipped_divide(wide, (8, 8))[None, 1], b, out, M=8, N=8, K=8)

    a, b = np.arange(512, dtype=np.float32).reshape(16, 32) % 7, np.eye(8, dtype=np.float32) * 2
    raw = RUN.execute(enigma.compile(tile), [a, b], 256, (32, 1, 1), (32, 1, 1))
    np.testing.assert_array_equal(
        np.frombuffer(raw, np.float32).reshape(8, 8), a[8:16, :8] * 2
    )


@pytest.mark.parametrize("m", [4, 8])
def test_gemm_refuses_other_layouts(m):
    rows = [enigma.make_layout(s, (s[1], 1)) for s in ((m, 8), (8, 8), (m, 8))]
    rows[0] = enigma.make_layout((m, 8), (1, m))
    with pytest.raises(KernelError, match=rf"gemm: `a` has the layout \({m},8\):\(1,{m}\), where"):
        product_of(rows, 0, m, 8, 8)


def test_an_async_copy_does_not_run_over_a_gap():
    def copies(layout, count):
        @enigma.kernel
        def copy(a: Float32, out: Float32):
            source = enigma.Tensor("a", 0, "float", layout, base_offset=1)
            tile = enigma.threadgroup_alloc("float", 8)
            enigma.async_copy_wait(enigma.async_copy_to_threadgroup(source, tile, count))
            enigma.barrier()
            out[0] = tile[count - 1]

        size = (32, 1, 1)
        return np.frombuffer(RUN.execute(enigma.compile(copy), [A], 4, size, size), np.float32)[0]

    assert copies(enigma.make_layout((2, 4), (4, 1)), 8) == 8
    assert copies(enigma.make_layout((2, 4), (8, 1)), 4) == 4
    with pytest.raises(KernelError, match=r"layout \(2,4\):\(8,1\) has at most 4 side by side"):
        copies(enigma.make_layout((2, 4), (8, 1)), 8)


@pytest.mark.parametrize(
    "index, found, last",
    [((0, 5), 5, 3), ((4, 0), 4, 3), ((-1, 0), -1, 3), (16, 16, 15), (-1, -1, 15), (np.int64(16), 16, 15)],
)
def test_a_register_tensor_has_no_element_outside_of_a_dimension(index, found, last):
    @enigma.kernel
    def k(x: Float32):
        r = enigma.register_tensor((4, 4))
        r[3, 3] = r[15]
        x[0] = r[index]

    with pytest.raises(enigma.EnigmaError, match=rf"no index {found} there.* from 0 to {last}"):
        enigma.compile(k)


def test_a_register_tensor_is_indexed_by_narrow_types():
    @enigma.kernel
    def narrow(a: Float32, out: Float32):
        r = enigma.register_tensor((20, 30), "float", 0)
        r[enigma.metal_cast(a[15], "uchar"), enigma.metal_cast(a[5], "uchar")] = 5.0
        for i in enigma.range(600):
            if r[i] == 5.0:
                out[0] = i

    assert run(narrow, 1).tolist() == [15 * 30 + 5]


def test_the_position_in_the_grid_is_called_as_other_positions_are():
    @enigma.kernel
    def k(a: Float32, out: Float32):
        i = enigma.thread_position_in_grid()
        j = enigma.thread_position_in_grid("y")
        out[i] = a[i + 1] + j

    got = RUN.execute(enigma.compile(k), [A], 16, (4, 1, 1), (4, 1, 1))
    assert np.frombuffer(got, np.float32).tolist() == [1, 2, 3, 4]


def test_the_layout_of_a_tensor_may_be_a_shape_or_text():
    @enigma.kernel
    def k(a: Float32, out: Float32):
        out[0] = enigma.Tensor("a", 0, "float", (2, 4))[1, 2]
        out[1] = enigma.Tensor("a", 0, "float", "(2,4):(4,1)")[1, 2]
        out[2] = enigma.Tensor("a", 0, "float", shape=(2, 4))[1, 2]
        out[3] = enigma.Tensor("a", 0, "float", 8)[5]

    assert run(k, 4).tolist() == [5, 6, 5, 5]

    @enigma.kernel
    def named(a: Float32, out: Float32):
        out[0] = enigma.Tensor("a", "0", "float", (2, 4))[1, 2]

    with pytest.raises(enigma.EnigmaError, match="is parameter '0', the kernel has 2, numbered from 0"):
        enigma.compile(named)


def test_keyword_only_parameters_of_a_launched_kernel():
    @enigma.kernel
    def scaled(x, y, *, scale=2.0, offset):
        i = enigma.thread_position_in_grid.x
        y[i] = x[i] * scale + offset

    @enigma.jit
    def launches(x, y):
        scaled(x, y, offset=1.0).launch((4, 1, 1), (4, 1, 1))

    tensors = [enigma.Tensor(n, i, "float", enigma.make_layout(4)) for i, n in enumerate("xy")]
    code = enigma.compile(launches, *tensors)
    got = np.frombuffer(RUN.execute(code, [A[:4]], 16, code.grid, code.block), np.float32)
    assert got.tolist() == [1, 3, 5, 7]


def test_a_view_is_loaded_and_stored_in_a_kernel_only():
    tensor = enigma.Tensor("x", 0, "float", enigma.make_layout(8))
    for use in (lambda: tensor.load(), lambda: tensor.store(1.0)):
        with pytest.raises(enigma.EnigmaError, match="only inside a kernel with @enigma.kernel"):
            use()
