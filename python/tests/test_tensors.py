"""Tensors: buffers and arrays seen through layouts, in Invar's own kernels."""

import re

import numpy as np
import pytest

import invar as iv
from invar import layout as ly
from invar._errors import KernelError


@pytest.mark.large
def test_coordinates_slices_and_whole_views():
    @iv.kernel
    def moves(x: iv.Buffer[iv.f32], y: iv.Buffer[iv.f32]):
        i = iv.thread_position_in_grid("x")
        a = iv.Tensor(x, iv.layout.Layout((4, 8), (8, 1)), i * 32)
        b = iv.Tensor(y, iv.layout.Layout((8, 4), (4, 1)), i * 32)
        assert a.shape == (4, 8) and a.stride == (8, 1) and a.size() == len(a) == 32
        assert a.size(1) == 8 and a.element == iv.f32
        for k in range(8):
            b[k, None] = a[None, k].load()
        for k in iv.range(4):
            b[i, k] = a[k, i] + 100
        b[7, 3] = a[31] + 1000

    x = np.arange(64, dtype=np.float32)
    y = np.zeros(64, np.float32)
    moves[2, 2](x, y)
    wanted = x.reshape(2, 4, 8).transpose(0, 2, 1).copy()
    for i in range(2):
        wanted[i, i] += 100
        wanted[i, 7, 3] = x.reshape(2, 32)[i, 31] + 1000
    np.testing.assert_array_equal(y.reshape(2, 8, 4), wanted)


def test_neighbours_are_vectors():
    @iv.kernel
    def rows(x: iv.Buffer[iv.f32], y: iv.Buffer[iv.f32]):
        a = iv.Tensor(x, ly.Layout((8, 6), (6, 1)))
        b = iv.Tensor(y, ly.Layout((8, 6), (6, 1)))
        i = iv.thread_position_in_grid("x")
        v = a[i, None].load()
        assert len(v) == 6 and isinstance(v, iv.Elements)
        w = a[0, None].composition(ly.Layout(4)).load()
        assert w.type == iv.f32x4
        b[i, None].store(iv.sqrt(v * v) + 1 - iv.f32(iv.u32(v)))

    assert rows.ir.count(": 4]") == 3 and rows.ir.count(": 2]") == 2
    x = np.arange(48, dtype=np.float32)
    y = np.zeros(48, np.float32)
    rows[8, 8](x, y)
    assert (y == 1).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32])
def test_thread_value_tiles(dtype):
    element = iv.Buffer[dtype]
    tile, owners = ly.make_layout_tv(ly.Layout((4, 64), (64, 1)), ly.Layout((4, 4), (4, 1)))

    def add(x, y, z, rows, columns):
        thread = iv.thread_index_in_threadgroup()
        block = iv.threadgroup_position_in_grid("x")
        mine = []
        for buffer in (x, y, z):
            tensor = iv.Tensor(buffer, ly.Layout((rows, columns), (columns, 1)))
            tiles = tensor.zipped_divide(tile)
            mine.append(tiles[None, block].composition(owners, tile)[thread, None])
        mine[2].store(mine[0].load() + mine[1].load())

    add.__annotations__ = {name: element for name in "xyz"}
    kernel = iv.kernel(add)
    x = np.arange(64 * 512).astype(dtype).reshape(64, 512)
    y, z = x[::-1].copy(), np.zeros_like(x)
    launch = kernel[8 * 256, 256]
    launch(x, y, z, 64, 512)
    np.testing.assert_array_equal(z, x + y)
    assert iv.check(kernel, grid=8 * 256, threadgroup=256)(x, y, z, 64, 512).passed


def test_swizzled_threadgroup_tiles_transpose():
    layout = ly.swizzle(ly.Layout((32, 32), (32, 1)), 5, 0, 5)
    column = [layout((i, 3)) for i in range(32)]
    assert ly.bank_conflicts(column, 4) == 0

    @iv.kernel(threadgroup=(32, 32))
    def transpose(x: iv.Buffer[iv.f32], y: iv.Buffer[iv.f32], n: iv.Scalar[iv.u32]):
        tile = iv.Tensor(iv.threadgroup_alloc(iv.f32, 1024), layout)
        i, j = iv.thread_position_in_threadgroup("x"), iv.thread_position_in_threadgroup("y")
        column = iv.threadgroup_position_in_grid("x") * 32
        row = iv.threadgroup_position_in_grid("y") * 32
        tile[j, i] = x[(row + j) * n + column + i]
        iv.barrier()
        y[(column + j) * n + row + i] = tile[i, j]

    x = np.arange(96 * 96, dtype=np.float32).reshape(96, 96)
    y = np.zeros_like(x)
    transpose[(96, 96), (32, 32)](x, y, 96)
    np.testing.assert_array_equal(y, x.T)
    assert iv.check(transpose, grid=(96, 96), threadgroup=(32, 32))(x, y, 96).passed


def test_a_slice_of_a_swizzled_tensor():
    layout = ly.swizzle(ly.Layout((8, 8), (8, 1)), 3, 0, 3)

    @iv.kernel
    def rows(x: iv.Buffer[iv.f32], y: iv.Buffer[iv.f32]):
        t = iv.thread_position_in_grid("x")
        tensor = iv.Tensor(x, layout)
        iv.Tensor(y, ly.Layout((8, 8), (8, 1)))[t, None] = tensor[t, None].load()
        if t == 2:
            iv.Tensor(y, ly.Layout((8, 8), (8, 1)), 64)[2, None] = tensor[2, None].load()

    x, y = np.arange(64, dtype=np.float32), np.zeros(128, np.float32)
    rows[8, 8](x, y)
    assert y[:64].tolist() == [layout((i, j)) for i in range(8) for j in range(8)]
    assert y[64 + 16 : 64 + 24].tolist() == [layout((2, j)) for j in range(8)]


def test_elements_are_carried_by_loops():
    @iv.kernel
    def sums(x: iv.Buffer[iv.f32], y: iv.Buffer[iv.f32], n: iv.Scalar[iv.u32]):
        t = iv.thread_position_in_grid("x")
        total = iv.Tensor(x, ly.Layout((4, 6), (6, 1)))[t, None].load() * 0
        for k in iv.range(n):
            row = iv.Tensor(x, ly.Layout((4, 6), (6, 1)), k * 24)[t, None]
            total = total + row.load()
        iv.Tensor(y, ly.Layout((4, 6), (6, 1)))[t, None].store(total)

    x, y = np.arange(72, dtype=np.float32), np.zeros(24, np.float32)
    sums[4, 4](x, y, 3)
    np.testing.assert_array_equal(y, x.reshape(3, 24).sum(0))


def test_register_tensors_through_layouts():
    @iv.kernel
    def fills(y: iv.Buffer[iv.f32]):
        acc = iv.register_tensor(iv.f32, 2, 4, fill=1.0)
        view = iv.Tensor(acc, ly.Layout((2, 4), (4, 1)))
        view[None, 2] = 5.0
        iv.Tensor(y, 8).store(iv.Tensor(acc, 8).load())

    y = np.zeros(8, np.float32)
    fills[1, 1](y)
    assert y.tolist() == [1, 1, 5, 1, 1, 1, 5, 1]


@pytest.mark.parametrize(
    "body, message",
    [
        (lambda x: iv.Tensor(x, (4, 8))[1, 2, 3], r"coordinate \(1,2,3\) does not fit the shape \(4, 8\)"),
        (lambda x: iv.Tensor(x, (4, 8))[1.5, 0], "no coordinate"),
        (lambda x: iv.Tensor(x, (4, 8))["a"], "no coordinate"),
        (lambda x: iv.Tensor(x, (128, 128)).load(), "16384 elements; at most 4096"),
        (lambda x: iv.Tensor(3, (4, 8)), "Python int is not memory"),
        (lambda x: iv.Tensor(x, 4).load() + iv.Tensor(x, 6).load(), "values of 4 and 6 elements|meet"),
        (lambda x: iv.Tensor(x, 4).store("a"), "Python str where a value"),
        (lambda x: iv.Tensor(x, 4)[None].store(iv.Tensor(x, 6).load()), "6 and 4 elements"),
    ],
)
def test_what_is_wrong_names_the_line(body, message):
    @iv.kernel
    def wrong(x: iv.Buffer[iv.f32]):
        body(x)

    with pytest.raises(KernelError, match=message) as caught:
        wrong.ir
    assert "test_tensors.py" in str(caught.value)


@pytest.mark.parametrize("form", ["number", "bool", "elements"])
def test_a_masked_copy_of_views_makes_no_other_access(form):
    @iv.kernel
    def copies(x: iv.Buffer[iv.f32], y: iv.Buffer[iv.f32], n: iv.Scalar[iv.u32]):
        t = iv.thread_position_in_grid("x")
        a = iv.Tensor(x, ly.Layout((8, 6), (6, 1)))[t, None]
        b = iv.Tensor(y, ly.Layout((8, 6), (6, 1)))[t, None]
        if form == "number":
            iv.copy(b, a, mask=lambda i: t * 6 + i < n)
        elif form == "bool":
            iv.copy(b, a, mask=t < n)
        else:
            iv.copy(b, a, mask=iv.Tensor(x, ly.Layout((8, 6), (6, 1)), 20)[0, None].load() < iv.f32(n))

    x = np.arange(48, dtype=np.float32) + 1
    size = {"number": 20, "bool": 3, "elements": 24}[form]
    y = np.zeros(48, np.float32)
    copies[8, 8](x, y, size)
    wanted = {"number": np.arange(48) < 20, "bool": np.arange(48) < 18, "elements": np.arange(48) % 6 < 3}
    np.testing.assert_array_equal(y, np.where(wanted[form], x, 0))
    if form == "number":
        short = np.zeros(20, np.float32)
        assert iv.check(copies, grid=8, threadgroup=8)(x[:20], short, 20).passed
        assert not iv.check(copies, grid=8, threadgroup=8, raises=False)(x[:20], short, 21).passed
    # One condition for all keeps the vectors.
    assert copies.ir.count(": 4]") == (2 if form == "bool" else 0 if form == "number" else 1)


def test_an_unmasked_copy_of_views_is_of_vectors():
    @iv.kernel
    def transposes(x: iv.Buffer[iv.f32], y: iv.Buffer[iv.f32], z: iv.Buffer[iv.f32]):
        iv.copy(iv.Tensor(y, ly.Layout(8)), iv.Tensor(x, ly.Layout(8), 4))
        iv.copy(iv.Tensor(z, ly.Layout((4, 4), (4, 1))), iv.Tensor(x, ly.Layout((4, 4))))

    assert transposes.ir.count("load %x[") == 6 and "if " not in transposes.ir
    x, y, z = np.arange(16, dtype=np.float32), np.zeros(8, np.float32), np.zeros((4, 4), np.float32)
    transposes[1, 1](x, y, z)
    np.testing.assert_array_equal(y, x[4:12])
    np.testing.assert_array_equal(z, x.reshape(4, 4).T)


def test_masked_loads_and_stores_of_views_and_memory():
    @iv.kernel
    def masked(x: iv.Buffer[iv.f32], y: iv.Buffer[iv.f32], n: iv.Scalar[iv.u32]):
        row = iv.Tensor(x, ly.Layout((4, 3), (3, 1)))[1, None]
        iv.Tensor(y, 3).store(row.load(mask=n > 9, otherwise=-1))
        iv.Tensor(y, 3, 3).store(row.load(mask=lambda i: i != 1))
        iv.Tensor(y, 3, 6).store(7, mask=lambda i: i + 1 != n)
        iv.copy(y, 10, x, 1, n, mask=lambda i: i != 0)
        iv.copy(y, 0, x, 0, n, mask=n > 9)

    y = np.zeros(14, np.float32)
    masked[1, 1](np.arange(12, dtype=np.float32), y, 3)
    assert y.tolist() == [-1, -1, -1, 3, 0, 5, 7, 7, 0, 0, 0, 2, 3, 0]


@pytest.mark.parametrize(
    "body, message",
    [
        (lambda x, t: iv.copy(t, t, mask="a"), "Python str is not a mask"),
        (lambda x, t: t.load(mask=lambda i: x[i]), "a condition has type f32"),
        (lambda x, t: iv.copy(t, iv.Tensor(x, 6)), "of 6 elements of `x` to 4 of `x`"),
        (lambda x, t: iv.copy(t, iv.Tensor(iv.thread_alloc(iv.f16, 4), 4)), "of f16 to f32: convert"),
        (lambda x, t: iv.copy(t, 0, t, 0, 4), "takes two of them"),
        (lambda x, t: iv.copy(t, x), "takes two of them"),
        (lambda x, t: iv.copy(x, x), "takes two tensors, .* or two memories"),
        (lambda x, t: iv.copy(x), "takes two tensors, .* or two memories"),
    ],
)
def test_a_copy_that_is_wrong_names_the_line(body, message):
    @iv.kernel
    def wrong(x: iv.Buffer[iv.f32]):
        body(x, iv.Tensor(x, 4))

    with pytest.raises(KernelError, match=message) as caught:
        wrong.ir
    assert "test_tensors.py" in str(caught.value)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int64])
def test_coordinates_of_every_type_reach_every_element(dtype):
    layout = ly.Layout((100, (4, 8)), (400, (8, 33)))
    column = ly.Layout((4, 100), (-1, 300))

    @iv.kernel
    def reads(x: iv.Buffer[iv.f32], at: iv.Buffer[dtype], out: iv.Buffer[iv.f32]):
        t = iv.Tensor(x, layout)
        out[0] = t[at[0], at[1]]
        out[1] = t[at[0], None].load()[9]
        out[2] = x[layout(at[0], at[1])]
        # A negative stride takes from an offset of any type.
        down = iv.Tensor(x, column, iv.u32(at[2]))
        out[3] = down[at[3], at[0]]
        out[4] = down[None, at[0]].load()[3]

    x = np.arange(60000, dtype=np.float32)
    out = np.zeros(5, np.float32)
    reads[1, 1](x, np.array([99, 30, 100, 3], dtype), out)
    assert list(out) == [
        layout(99, 30),
        layout(99, 9),
        layout(99, 30),
        100 - 3 + 99 * 300,
        100 - 3 + 99 * 300,
    ]


def test_what_load_gives_is_used_alike_for_every_layout():
    """A vector (neighbours) and Elements (others), each on both sides of what stands beside them."""

    @iv.kernel
    def meets(x: iv.Buffer[iv.f32], out: iv.Buffer[iv.f32]):
        t = iv.Tensor(x, ly.Layout((4, 4), (4, 1)))
        near, far, gain = t[1, None].load(), t[None, 1].load(), x[2]
        assert near.type == iv.f32x4 and isinstance(far, iv.Elements)
        results = [near + far, far + near, gain - far, near - gain, 2 * far % near]
        for view in (near, far):
            results.append(iv.where(view > 6.0, 1.0, gain))
            results.append(iv.f32(iv.i32(view)))
            results.append(iv.f32(iv.u32(view > gain)))
        for i, result in enumerate(results):
            iv.Tensor(out, (4,), i * 4).store(result)

    x = np.arange(1, 17, dtype=np.float32)
    near, far, gain = x[4:8], x[1::4], x[2]
    wanted = [near + far, far + near, gain - far, near - gain, np.fmod(2 * far, near)]
    for view in (near, far):
        wanted += [np.where(view > 6, 1, gain), view, view > gain]
    out = np.zeros((len(wanted), 4), np.float32)
    meets[1, 1](x, out.reshape(-1))
    np.testing.assert_array_equal(out, np.array(wanted, np.float32))


@pytest.mark.parametrize(
    "use, sentence",
    [
        (lambda t: t + 1, "`x` is a tensor, not a value: index it, or load() it"),
        (lambda t: t.store(t), "load() it"),
        (lambda t: iv.sqrt(t), "index it, or load() it"),
        (lambda t: list(t), "`x` is a tensor, which no loop goes through"),
    ],
)
def test_a_tensor_is_no_value(use, sentence):
    @iv.kernel
    def misuses(x: iv.Buffer[iv.f32]):
        use(iv.Tensor(x, (4,)))

    with pytest.raises(KernelError, match=re.escape(sentence)):
        misuses[1, 1](np.zeros(4, np.float32))


@pytest.mark.parametrize(
    "use",
    [
        lambda v: 1.0 if v > 100 else 2.0,
        lambda v: 1.0 if not (v > 100) else 2.0,
        lambda v: 1.0 if v > 3 and v < 1 else 2.0,
        lambda v: 1.0 if v > 3 or v < 1 else 2.0,
        lambda v: 1.0 if v == v else 2.0,
    ],
)
def test_several_elements_are_no_condition(use):
    @iv.kernel
    def asks(x: iv.Buffer[iv.f32]):
        x[0] = use(iv.Tensor(x, (8,)).load())

    with pytest.raises(KernelError, match=re.escape("8 elements are not a condition: write any(...)")):
        asks[1, 1](np.zeros(8, np.float32))


def test_statements_ask_any_or_all_of_elements():
    def branches(x: iv.Buffer[iv.f32]):
        if iv.Tensor(x, (8,)).load() > 1:
            x[0] = 1.0

    def loops(x: iv.Buffer[iv.f32]):
        while iv.Tensor(x, (8,)).load() > 1:
            x[0] = 1.0

    def converts(x: iv.Buffer[iv.f32]):
        x[0] = 1.0 if bool(iv.Tensor(x, (8,)).load() > 1) else 2.0

    for function in (branches, loops, converts):
        with pytest.raises(KernelError, match=re.escape("any(...) or all(...)")):
            iv.kernel(function)[1, 1](np.zeros(8, np.float32))

    @iv.kernel
    def right(x: iv.Buffer[iv.f32], out: iv.Buffer[iv.f32]):
        v = iv.Tensor(x, (8,)).load()
        out[0] = 1.0 if any(v > 6) else 2.0
        out[1] = 1.0 if all(v > 6) else 2.0
        out[2] = 1.0 if x[5] in v else 2.0

    out = np.zeros(3, np.float32)
    right[1, 1](np.arange(8, dtype=np.float32), out)
    assert out.tolist() == [1, 2, 1]


def test_parts_and_choices_of_elements_are_elements():
    @iv.kernel
    def parts(x: iv.Buffer[iv.f32], out: iv.Buffer[iv.f32]):
        v = iv.Tensor(x, (8,)).load()
        iv.Tensor(out, (4,)).store((v[:4] + v[4:]) * 2)
        iv.Tensor(out, (8,), 4).store(v[::-1])
        iv.Tensor(out, (8,), 12).store(v if x[1] > 0 else v * 0.0)
        iv.Tensor(out, (8,), 20).store(v if x[1] > 1 else x[2])
        w = iv.Tensor(x, (8,)).load(mask=x[1] > 1) if x[1] > 5 else max(v, v[::-1])
        iv.Tensor(out, (8,), 28).store(w)
        # Neighbours are a vector, others are Elements.
        far, near = iv.Tensor(x, ly.Layout((4,), (2,))), iv.Tensor(x, (4,))
        iv.Tensor(out, (4,), 36).store(far.load() if x[1] > 0 else near.load())
        iv.Tensor(out, (4,), 40).store(far.load() if x[1] > 1 else near.load())

    x = np.arange(8, dtype=np.float32)
    out = np.zeros(44, np.float32)
    parts[1, 1](x, out)
    wanted = [(x[:4] + x[4:]) * 2, x[::-1], x, np.full(8, 2), np.maximum(x, x[::-1])]
    wanted += [x[::2], x[:4]]
    np.testing.assert_array_equal(out, np.concatenate(wanted))


def assigns(v):
    v[2] = 5.0


@pytest.mark.parametrize(
    "use, sentence",
    [
        (assigns, "one of 8 elements is assigned, and they do not change"),
        (lambda v: divmod(v, 3.0), "write `a // b` and `a % b`"),
        (lambda v: v @ v, "`@` of elements: write sum(a * b)"),
        (lambda v: np.exp(v), "write iv.exp(...)"),
    ],
)
def test_what_elements_do_not_do(use, sentence):
    @iv.kernel
    def misuses(x: iv.Buffer[iv.f32]):
        use(iv.Tensor(x, (8,)).load())

    with pytest.raises(KernelError, match=re.escape(sentence)):
        misuses[1, 1](np.zeros(8, np.float32))


def test_any_and_all_take_no_more_than_settles_them():
    @iv.kernel
    def takes(x: iv.Buffer[iv.f32], out: iv.Buffer[iv.f32]):
        numbers = iter([1, 2, 3])
        out[0] = 1.0 if any(n == 2 for n in numbers) else 0.0
        out[1] = float(sum(numbers))
        numbers = iter([1, 2, 3])
        out[2] = 1.0 if all(n < 2 for n in numbers) else 0.0
        out[3] = float(sum(numbers))
        out[4] = float(max((len(r) for r in ([1, 2], [3])), default=0))
        out[5] = 1.0 if any(x[i] > 2 for i in range(4)) else 0.0
        out[6] = 1.0 if all(x[i] > 2 for i in range(4)) else 0.0

    out = np.zeros(7, np.float32)
    takes[1, 1](np.arange(4, dtype=np.float32), out)
    assert out.tolist() == [1, 3, 0, 3, 2, 1, 0]
