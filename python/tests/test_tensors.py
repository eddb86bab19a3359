"""Tensors: buffers and arrays seen through layouts, in Invar's own kernels."""

import numpy as np
import pytest

import invar as iv
from invar import layout as ly
from invar._errors import KernelError


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
        (lambda x: iv.Tensor(3, (4, 8)), "Python int is no memory"),
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
