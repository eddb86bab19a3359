"""Register tensors, pipelines, async copies, simdgroup matrices, products of tiles, quantisation."""

import numpy as np
import pytest

import invar as iv

RANDOM = np.random.default_rng(11)


def tid():
    return iv.thread_position_in_grid("x")


def refused(kernel, pattern):
    with pytest.raises(iv.KernelError, match=pattern):
        kernel.ir


def test_indices_of_shaped_buffers_stay_in_their_extents():
    @iv.kernel
    def negative(x: iv.Buffer[iv.f32, (None, 4)]):
        x[1, -1] = 7.0

    @iv.kernel
    def behind(x: iv.Buffer[iv.f32, (3, 4)]):
        x[1, 4] = 7.0

    @iv.kernel
    def rows(x: iv.Buffer[iv.f32, (3, 4)]):
        x[3, 0] = 7.0

    @iv.kernel
    def open_rows(x: iv.Buffer[iv.f32, (None, 4)]):
        x[3, 3] = 7.0

    refused(negative, r"`x` of shape \(None, 4\) has no index -1 there.*from 0 to 3")
    refused(behind, r"`x` of shape \(3, 4\) has no index 4 there.*from 0 to 3")
    refused(rows, r"`x` of shape \(3, 4\) has no index 3 there.*from 0 to 2")
    x = np.zeros((4, 4), np.float32)
    open_rows[1, 1](x)
    assert x[3, 3] == 7.0 and x.sum() == 7.0


def test_register_tensors_survive_loops():
    @iv.kernel
    def k(x: iv.Buffer[iv.f32], out: iv.Buffer[iv.f32]):
        acc = iv.register_tensor(iv.f32, 2, 3, fill=1.0)
        for i in iv.range(4):
            for r in iv.range(2):
                acc[r, i % 3] += x[tid() * 4 + iv.u32(i)]
            acc[1, 2] *= 2
        for r in range(2):
            for c in range(3):
                out[tid() * 6 + r * 3 + c] = acc[r, c]

    x = RANDOM.random((8, 4), np.float32)
    out = np.zeros((8, 2, 3), np.float32)
    k[8, 8](x, out)
    acc = np.ones((8, 2, 3), np.float32)
    for i in range(4):
        acc[:, :, i % 3] += x[:, i, None]
        acc[:, 1, 2] *= 2
    np.testing.assert_allclose(out, acc, rtol=1e-6)


def test_register_tensors_start_at_zero_and_fill():
    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        a = iv.register_tensor(iv.i32, (2, 2))
        out[0] = a[1, 1]
        a.fill(5)
        out[1] = a[1, 0] + len(a)

    out = np.full(2, -1, np.int32)
    k[1, 1](out)
    assert out.tolist() == [0, 7]


def test_register_tensors_check_what_they_can():
    @iv.kernel
    def outside(out: iv.Buffer[iv.i32]):
        a = iv.register_tensor(iv.i32, 2, 3)
        out[0] = a[1, 3]

    @iv.kernel
    def few(out: iv.Buffer[iv.i32]):
        a = iv.register_tensor(iv.i32, 2, 3)
        out[0] = a[1]

    @iv.kernel
    def traced(out: iv.Buffer[iv.i32]):
        iv.register_tensor(iv.i32, tid())

    @iv.kernel
    def floating(out: iv.Buffer[iv.i32]):
        out[0] = iv.register_tensor(iv.i32, 4)[1.5]

    refused(outside, r"`a` of shape \(2, 3\) has no index 3 there.*from 0 to 2")
    refused(few, r"`a` has 2 dimensions, found 1 index")
    refused(traced, r"an extent of a register tensor is a compile-time number")
    refused(floating, r"a Python float is not an index")


def test_parts_of_memory_count_from_an_offset():
    @iv.kernel
    def k(x: iv.Buffer[iv.i32], out: iv.Buffer[iv.i32]):
        part = x.at(tid() * 4).at(1)
        out[tid()] = part[0] + part[iv.i32(2)] * 10 + part[1] * 100
        out.at(8).store(tid() * 2, part.load(0, 2))

    x = np.arange(32, dtype=np.int32)
    out = np.zeros(24, np.int32)
    k[8, 8](x, out)
    rows = x.reshape(8, 4)
    assert (out[:8] == rows[:, 1] + rows[:, 3] * 10 + rows[:, 2] * 100).all()
    assert (out[8:].reshape(8, 2) == rows[:, 1:3]).all()


def test_the_length_of_a_part_is_not_known():
    @iv.kernel
    def k(x: iv.Buffer[iv.i32]):
        x[0] = iv.i32(len(x.at(1)))

    @iv.kernel
    def grouped(x: iv.Buffer[iv.i32]):
        x.at(1).store(0, iv.i32x2(1, 2), group=True)

    refused(k, r"len\(\) of `x`.*iv\.buffer_length")
    refused(grouped, r"counted from an offset.*without group=True")


@pytest.mark.parametrize("stages", [2, 3])
def test_a_pipeline_of_async_copies(stages):
    tile, tiles = 32, 7

    @iv.kernel(simdgroup=32)
    def k(x: iv.Buffer[iv.f32], out: iv.Buffer[iv.f32], n: iv.Scalar[iv.u32]):
        lane = iv.thread_index_in_threadgroup()
        pipe = iv.pipeline(iv.f32, tile, stages)
        iv.wait(iv.async_copy(pipe.front, 0, x, 0, tile))
        iv.barrier()
        total = 0.0
        for i in iv.range(n):
            more = iv.min((n - 1 - i) * tile, tile)
            event = iv.async_copy(pipe.stage(1), 0, x, (i + 1) * tile, more)
            total += pipe.front[31 - lane] * iv.f32(i + 1)
            iv.wait(event)
            iv.barrier()
            pipe.advance()
        out[lane] = total

    x = RANDOM.random(tiles * tile, np.float32)
    out = np.zeros(tile, np.float32)
    assert iv.check(k, grid=32, threadgroup=32)(x, out, tiles)
    k[32, 32](x, out, tiles)
    expected = (x.reshape(tiles, tile)[:, ::-1] * np.arange(1, tiles + 1)[:, None]).sum(0)
    np.testing.assert_allclose(out, expected, rtol=1e-5)


def test_a_pipeline_fills_its_back_while_the_front_is_read():
    @iv.kernel
    def k(out: iv.Buffer[iv.u32]):
        pipe = iv.pipeline(iv.u32, 4, 3)
        for i in range(5):
            pipe.back[tid()] = tid() + 10 * i
            pipe.advance()
            pipe.advance()
            pipe.advance()
            pipe.advance()
            out[i * 4 + tid()] = pipe.stage(-2)[tid()]

    out = np.zeros(20, np.uint32)
    k[4, 4](out)
    assert out.tolist() == [t + 10 * i for i in range(5) for t in range(4)]


def test_pipelines_in_branches_and_helpers():
    def step(pipe):
        pipe.advance()

    @iv.kernel
    def k(out: iv.Buffer[iv.u32], n: iv.Scalar[iv.u32]):
        pipe = iv.pipeline(iv.u32, 1)
        pipe.front[0] = 1
        pipe.back[0] = 2
        for i in iv.range(n):
            if i % 2 == 0:
                step(pipe)
        out[0] = pipe.front[0]

    for n in range(6):
        out = np.zeros(1, np.uint32)
        k[1, 1](out, n)
        assert out[0] == [1, 2][-(-n // 2) % 2]


def test_a_pipeline_of_one_stage():
    @iv.kernel
    def k(out: iv.Buffer[iv.u32]):
        pipe = iv.pipeline(iv.u32, 2, 1)
        for i in iv.range(3):
            pipe.back[1] = iv.u32(i + 5)
            pipe.advance()
        out[0] = pipe.front[1]

    out = np.zeros(1, np.uint32)
    k[1, 1](out)
    assert out[0] == 7


def test_what_is_no_memory_and_no_value_says_so():
    @iv.kernel(simdgroup=32)
    def tensor(x: iv.Buffer[iv.f32]):
        iv.gemm(iv.Tensor(x, (8, 8)), x, x, 8, 8, 8)

    @iv.kernel(simdgroup=32)
    def copied(x: iv.Buffer[iv.f32]):
        iv.async_copy(iv.threadgroup_alloc(iv.f32, 8), 0, iv.Tensor(x, (8,)), 0, 8)

    @iv.kernel(simdgroup=32)
    def registers(x: iv.Buffer[iv.f32]):
        iv.gemm(iv.register_tensor(iv.f32, 8, 8), x, x, 8, 8, 8)

    @iv.kernel(simdgroup=32)
    def types(x: iv.Buffer[iv.f32], y: iv.Buffer[iv.f16]):
        iv.gemm(x, y, x, 8, 8, 8)

    @iv.kernel
    def adds():
        r = iv.register_tensor(iv.f32, 4)
        r += 1

    @iv.kernel
    def loops():
        for part in iv.register_tensor(iv.f32, 4):
            part + 1

    refused(tensor, r"the tensor `x` where a buffer or an array is needed.*t\.memory\.at\(t\.offset")
    refused(copied, r"the tensor `x` where a buffer or an array is needed")
    refused(registers, r"the register tensor `thread` where a buffer.*write `r\.memory`")
    refused(types, r"iv\.gemm\(\) of `y`, which holds f16, by `x`, which holds f32: both need one")
    refused(adds, "`r` is a tensor, not a value: index it$|`r` is a tensor, not a value: index it\n")
    refused(loops, "`thread` is a register tensor, which no loop goes through")


def test_pipelines_refuse_what_makes_no_sense():
    @iv.kernel
    def none():
        iv.pipeline(iv.f32, 8, 0)

    @iv.kernel
    def traced():
        iv.pipeline(iv.f32, 8).stage(tid())

    refused(none, "the number of stages is a compile-time number of at least 1, not 0")
    refused(traced, "named by a compile-time number")


def test_async_copies_of_runs_and_tiles_both_ways():
    @iv.kernel(simdgroup=32)
    def k(x: iv.Buffer[iv.f32], out: iv.Buffer[iv.f32]):
        tile = iv.threadgroup_alloc(iv.f32, 64)
        row = iv.threadgroup_alloc(iv.f32, 16)
        a = iv.async_copy_2d(tile, 0, 8, x, 3, 20, 8, 6)
        b = iv.async_copy(row, 1, x, 40, 12)
        iv.wait(a, b)
        iv.barrier()
        c = iv.async_copy_2d(out, 0, 10, tile, 0, 8, 8, 6)
        d = iv.async_copy(out, 60, row, 0, 16)
        iv.wait(c)
        iv.wait(d)

    x = np.arange(200, dtype=np.float32)
    out = np.zeros(80, np.float32)
    assert iv.check(k, grid=32, threadgroup=32)(x, out)
    k[32, 32](x, out)
    expected = np.zeros(80, np.float32)
    expected[:60].reshape(6, 10)[:, :8] = x[3:123].reshape(6, 20)[:, :8]
    expected[61:73] = x[40:52]
    assert (out == expected).all()


@pytest.mark.large
def test_simdgroup_matrices():
    @iv.kernel(simdgroup=32)
    def k(a: iv.Buffer[iv.f32], b: iv.Buffer[iv.f32], out: iv.Buffer[iv.f32]):
        left = iv.simdgroup_load(a, 0, 8)
        right = iv.simdgroup_load(b, 0, 8, transpose=True)
        total = iv.simdgroup_matrix(iv.f32, 0.5)
        for _ in iv.range(2):
            total = iv.simdgroup_multiply_accumulate(left, right, total)
        iv.simdgroup_store(total, out, 0, 8)
        iv.simdgroup_store(total, out, 64, 8, transpose=True)

    a, b = RANDOM.random((8, 8), np.float32), RANDOM.random((8, 8), np.float32)
    out = np.zeros((2, 8, 8), np.float32)
    k[32, 32](a, b, out)
    np.testing.assert_allclose(out[0], 2 * a @ b.T + 0.5, rtol=1e-5)
    assert (out[1] == out[0].T).all()


@pytest.mark.parametrize("transpose", ["", "a", "b", "ab"])
@pytest.mark.parametrize(("m", "n", "k"), [(8, 8, 8), (24, 16, 40), (16, 32, 8)])
def test_gemm_of_threadgroup_tiles(m, n, k, transpose):
    @iv.kernel(simdgroup=32)
    def product(a: iv.Buffer[iv.f32], b: iv.Buffer[iv.f32], c: iv.Buffer[iv.f32]):
        t = iv.thread_index_in_threadgroup()
        ta = iv.threadgroup_alloc(iv.f32, m * k)
        tb = iv.threadgroup_alloc(iv.f32, k * n)
        tc = iv.threadgroup_alloc(iv.f32, m * n)
        for i in iv.range(t, m * k, 96):
            ta[i] = a[i]
        for i in iv.range(t, k * n, 96):
            tb[i] = b[i]
        for i in iv.range(t, m * n, 96):
            tc[i] = c[i]
        iv.barrier()
        iv.gemm(tc, ta, tb, m, n, k, transpose_a="a" in transpose, transpose_b="b" in transpose)
        iv.barrier()
        for i in iv.range(t, m * n, 96):
            c[i] = tc[i]

    a, b = RANDOM.random((m, k), np.float32), RANDOM.random((k, n), np.float32)
    c = RANDOM.random((m, n), np.float32)
    expected = c + a @ b
    given = [np.ascontiguousarray(x.T if s in transpose else x) for x, s in ((a, "a"), (b, "b"))]
    assert iv.check(product, grid=96, threadgroup=96)(*given, c)
    product[96, 96](*given, c)
    np.testing.assert_allclose(c, expected, rtol=1e-5)


@pytest.mark.large
@pytest.mark.parametrize("ty", ["f32", "f16"])
def test_gemm_in_registers_over_a_loop(ty):
    ty = getattr(iv, ty)

    @iv.kernel(simdgroup=32)
    def product(a: iv.Buffer[ty], b: iv.Buffer[ty], c: iv.Buffer[iv.f32], n: iv.Scalar[iv.u32]):
        row = iv.threadgroup_position_in_grid("y") * 16
        column = iv.threadgroup_position_in_grid("x") * 8
        tile = iv.simdgroup_tile(iv.f32, 16, 8)
        for k in iv.range(0, n, 16):
            iv.gemm(tile, a.at(row * n + k), b.at(k * n + column), 16, 8, 16, a_row=n, b_row=n)
        iv.simdgroup_tile_store(tile, c, row * n + column, n)

    n = 32
    a, b = (RANDOM.random((n, n), np.float32).astype(ty.numpy()) for _ in range(2))
    c = np.zeros((n, n), np.float32)
    product[iv.threadgroups(n // 8, n // 16), 32](a, b, c, n)
    np.testing.assert_allclose(c, a.astype(np.float32) @ b.astype(np.float32), rtol=1e-5)
    assert iv.check(product, grid=iv.threadgroups(4, 2), threadgroup=32)(a, b, c, n)


def test_gemm_refuses_other_extents():
    @iv.kernel(simdgroup=32)
    def odd(x: iv.Buffer[iv.f32]):
        iv.gemm(x, x, x, 8, 12, 8)

    @iv.kernel(simdgroup=32)
    def shape(x: iv.Buffer[iv.f32]):
        iv.gemm(iv.simdgroup_tile(iv.f32, 8, 8), x, x, 16, 8, 8)

    @iv.kernel(simdgroup=32)
    def integers(x: iv.Buffer[iv.i32]):
        iv.gemm(x, x, x, 8, 8, 8)

    refused(odd, r"`n` of iv\.gemm\(\) is a compile-time multiple of 8, not 12")
    refused(shape, "takes a tile of 2 by 1 matrices, found 1 by 1")
    refused(integers, "`x` holds i32, a simdgroup matrix holds floats")


def test_bytes_in_words():
    @iv.kernel
    def k(x: iv.Buffer[iv.u32], out: iv.Buffer[iv.u32], signed: iv.Buffer[iv.i32x4]):
        i = tid()
        parts = iv.unpack_uint8x4(x[i])
        out[i * 3] = iv.pack_uint8x4(parts.w, parts.z, parts.y, parts.x)
        signed[i] = iv.unpack_int8x4(x[i])
        out[i * 3 + 1] = iv.pack_int8x4(signed[i])
        out[i * 3 + 2] = iv.pack_int4x8(*iv.unpack_int4x8(x[i])[::-1])

    x = RANDOM.integers(0, 1 << 32, 16, np.uint64).astype(np.uint32)
    out, signed = np.zeros((16, 3), np.uint32), np.zeros((16, 4), np.int32)
    k[16, 16](x, out, signed)
    assert (out[:, 0] == x.byteswap()).all()
    assert (signed == x.view(np.int8).reshape(16, 4)).all()
    assert (out[:, 1] == x).all()
    assert [f"{v:08x}" for v in out[:, 2]] == [f"{v:08x}"[::-1] for v in x]


def test_four_bit_integers():
    @iv.kernel
    def k(x: iv.Buffer[iv.u32], y: iv.Buffer[iv.u8], out: iv.Buffer[iv.i32], two: iv.Buffer[iv.u8]):
        for i, v in enumerate(iv.unpack_uint4x8(x[0])):
            out[i] = iv.i32(v)
        for i, v in enumerate(iv.unpack_int4x8(x[0])):
            out[8 + i] = v
        low, high = iv.unpack_int4x2(y[0])
        out[16], out[17] = low, high
        two[0] = iv.pack_int4x2(high, low)
        two[1] = iv.pack_int4x2(-3, 5)

    out, two = np.zeros(18, np.int32), np.zeros(2, np.uint8)
    k[1, 1](np.uint32([0xFEDCBA98 - 0x80000000 + 0x12]), np.uint8([0x7C]), out, two)
    nibbles = [0x7EDCBAAA >> (4 * i) & 15 for i in range(8)]
    assert out[:8].tolist() == nibbles
    assert out[8:16].tolist() == [(n ^ 8) - 8 for n in nibbles]
    assert out[16:].tolist() == [-4, 7]
    assert two.tolist() == [0xC7, 0x5D]


def test_dequantising_and_quantising():
    @iv.kernel
    def k(
        q: iv.Buffer[iv.u32],
        scale: iv.Buffer[iv.f32],
        x: iv.Buffer[iv.f32],
        out: iv.Buffer[iv.f32x4],
        back: iv.Buffer[iv.i8],
    ):
        i = tid()
        out[i] = iv.dequantize(iv.unpack_int8x4(q[i]), scale[0], 3)
        back[i * 2] = iv.quantize(x[i], scale[0], 3)
        back[i * 2 + 1] = iv.quantize(x[i], 0.5)

    q = RANDOM.integers(0, 1 << 32, 16, np.uint64).astype(np.uint32)
    x = RANDOM.uniform(-9, 9, 16).astype(np.float32)
    x[:2] = 1e9, -1e9
    out, back = np.zeros((16, 4), np.float32), np.zeros((16, 2), np.int8)
    scale = np.float32([0.25])
    k[16, 16](q, scale, x, out, back)
    assert (out == (q.view(np.int8).reshape(16, 4).astype(np.float32) - 3) * scale).all()
    assert (back[:, 0] == np.clip(np.rint(x / 0.25) + 3, -128, 127)).all()
    assert (back[:, 1] == np.clip(np.rint(x / 0.5), -128, 127)).all()


def test_quantisation_refuses_other_types():
    @iv.kernel
    def scale(x: iv.Buffer[iv.i32]):
        x[0] = iv.dequantize(x[0], 2)

    @iv.kernel
    def floats(x: iv.Buffer[iv.f32]):
        x[0] = iv.dequantize(x[0], 2.0)

    @iv.kernel
    def integers(x: iv.Buffer[iv.i32]):
        x[0] = iv.quantize(x[0], 2.0)

    @iv.kernel
    def words(x: iv.Buffer[iv.i32]):
        x[0] = iv.unpack_int8x4(x[0]).x

    @iv.kernel
    def few(x: iv.Buffer[iv.u32]):
        x[0] = iv.pack_uint8x4(1, 2)

    refused(scale, "the scale is i32, it must be a float")
    refused(floats, "iv.dequantize.. of a value of type f32: it takes integers")
    refused(integers, "iv.quantize.. of a value of type i32: it takes floats")
    refused(words, "iv.unpack_int8x4.. takes a u32, found i32")
    refused(few, "takes 4 integers, found 2")
