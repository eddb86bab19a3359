"""Programs as users of the Enigma DSL write them, each against NumPy."""

import concurrent.futures

import numpy as np
import pytest

from invar import enigma
from invar.enigma import Float16, Float32, Int32, Scalar, UInt32

RUN = enigma.MetalRuntime()
rng = np.random.default_rng(0)


SCALE = enigma.function_constant("float", 0)
DOUBLED = enigma.function_constant("bool", index=1)


def ex(k, ins, n, grid, thr, dtype=np.float32, **options):
    """One output of n elements: the grid in threads, the threadgroup's size."""
    compiled = k if isinstance(k, enigma.CompiledKernel) else enigma.compile(k)
    grid = grid if isinstance(grid, tuple) else (grid, 1, 1)
    thr = thr if isinstance(thr, tuple) else (thr, 1, 1)
    size = n * np.dtype(dtype).itemsize
    return np.frombuffer(RUN.execute(compiled, ins, size, grid, thr, **options), dtype)


def close(a, b, t=1e-5):
    np.testing.assert_allclose(a, b, rtol=t, atol=t)


def test_tree_reduction():
    @enigma.kernel
    def k(a: Float32, out: Float32):
        t = enigma.thread_position_in_threadgroup()
        g = enigma.threadgroup_position_in_grid("x")
        s = enigma.threadgroup_alloc("float", 256)
        s[t] = a[enigma.thread_position_in_grid]
        enigma.barrier()
        for k in enigma.range_constexpr(8):
            stride = 128 >> k
            with enigma.if_(t < stride):
                s[t] = s[t] + s[t + stride]
            enigma.barrier("mem_threadgroup")
        with enigma.if_(t == 0):
            out[g] = s[0]

    a = rng.random(1024, dtype=np.float32)
    close(ex(k, [a], 4, 1024, 256), a.reshape(4, 256).sum(1))


def test_two_level_simd():
    @enigma.kernel
    def k(a: Float32, out: Float32):
        lane = enigma.thread_index_in_simdgroup()
        sg = enigma.simdgroup_index_in_threadgroup()
        part = enigma.threadgroup_alloc("float", 32)
        s = enigma.simd_sum(a[enigma.thread_position_in_grid])
        with enigma.if_(lane == 0):
            part[sg] = s
        enigma.barrier()
        with enigma.if_(sg == 0):
            v = enigma.where(0.0, part[lane], lane < enigma.simdgroups_per_threadgroup())
            total = enigma.simd_sum(v)
            with enigma.if_(lane == 0):
                out[enigma.threadgroup_position_in_grid()] = total

    a = rng.random(2048, dtype=np.float32)
    close(ex(k, [a], 4, 2048, 512), a.reshape(4, 512).sum(1), 0.0001)


def test_softmax_rows():
    @enigma.kernel
    def k(a: Float32, out: Float32, n: Scalar("uint")):
        row = enigma.threadgroup_position_in_grid()
        lane = enigma.thread_index_in_simdgroup()
        with enigma.for_range(lane, n, 32, "uint", [-1e30]) as (i, c):
            c[0] = enigma.fmax(c[0], a[row * n + i])
        m = enigma.simd_max(c[0])
        with enigma.for_range(lane, n, 32, dtype="uint", init=[0.0]) as (i, c2):
            c2[0] = c2[0] + enigma.exp(a[row * n + i] - m)
        s = enigma.simd_sum(c2[0])
        with enigma.for_range(lane, n, 32, dtype="uint") as i:
            out[row * n + i] = enigma.exp(a[row * n + i] - m) / s

    a = rng.normal(size=(8, 100)).astype(np.float32)
    got = ex(k, [a], 800, 8 * 32, 32, scalars=[100]).reshape(8, 100)
    e = np.exp(a - a.max(1, keepdims=True))
    close(got, e / e.sum(1, keepdims=True), 0.0001)


def test_prefix_scans():
    @enigma.kernel
    def k(a: Float32, out: Float32):
        i = enigma.thread_position_in_grid
        out[i] = enigma.simd_prefix_inclusive_sum(a[i])
        out[i + 32] = enigma.simd_prefix_exclusive_sum(a[i])
        out[i + 64] = enigma.simd_prefix_exclusive_product(a[i])
        out[i + 96] = enigma.quad_prefix_inclusive_sum(a[i])

    a = rng.random(32, dtype=np.float32) + 0.5
    g = ex(k, [a], 128, 32, 32).reshape(4, 32)
    close(g[0], np.cumsum(a))
    close(g[1], np.cumsum(a) - a)
    close(g[2], np.cumprod(a) / a, 0.0001)
    close(g[3], np.cumsum(a.reshape(8, 4), 1).reshape(-1))


def test_int_reductions():
    @enigma.kernel
    def k(a: Int32, out: Int32):
        i = enigma.thread_position_in_grid
        found = [enigma.simd_and(a[i]), enigma.simd_or(a[i]), enigma.simd_xor(a[i])]
        found += [enigma.simd_min(a[i]), enigma.simd_max(a[i]), enigma.simd_product(a[i] & 1 | 1)]
        with enigma.if_(i == 0):
            for n, x in enumerate(found):
                out[n] = x

    a = rng.integers(-1000, 1000, 32).astype(np.int32)
    g = ex(k, [a], 6, 32, 32, np.int32)
    w = [
        np.bitwise_and.reduce(a),
        np.bitwise_or.reduce(a),
        np.bitwise_xor.reduce(a),
        a.min(),
        a.max(),
        1,
    ]
    assert g.tolist() == [int(x) for x in w], (g, w)


def test_histogram():
    @enigma.kernel
    def k(a: UInt32, hist: UInt32, n: Scalar(UInt32)):
        i = enigma.thread_position_in_grid
        t = enigma.thread_index_in_threadgroup()
        local = enigma.threadgroup_alloc("uint", 16)
        with enigma.if_(enigma.cmp_ult(i, n)):
            local.atomic_fetch_add(a[i] % 16, 1)
        enigma.barrier()
        with enigma.if_(t < 16):
            enigma.atomic_fetch_add(hist, t, local[t])

    a = rng.integers(0, 1 << 30, 1000).astype(np.uint32)
    g = ex(k, [a], 16, 1024, 128, np.uint32, scalars=[1000])
    assert (g == np.bincount(a % 16, minlength=16)).all(), g


def test_float_atomic_via_cas():
    @enigma.kernel
    def k(a: Float32, out: UInt32):
        i = enigma.thread_position_in_grid
        done = enigma.register_tensor(1, "int", 0)
        with enigma.while_(lambda: done[0] == 0):
            old = out.atomic_load(0)
            new = enigma.as_type(enigma.as_type(old, "float") + a[i], "uint")
            won = out.atomic_compare_exchange_weak(0, old, new)
            with enigma.if_(won):
                done[0] = 1

    a = np.ones(64, np.float32)
    g = ex(k, [a], 1, 64, 32, np.uint32).view(np.float32)
    assert g[0] == 64, g


def test_tiled_matmul():
    T = 16

    @enigma.kernel
    def k(A: Float32, B: Float32, C: Float32, M: Scalar("int"), N: Scalar("int"), K: Scalar("int")):
        tx = enigma.thread_position_in_threadgroup("x")
        ty = enigma.thread_position_in_threadgroup("y")
        col = enigma.threadgroup_position_in_grid("x") * T + tx
        row = enigma.threadgroup_position_in_grid("y") * T + ty
        As = enigma.threadgroup_alloc("float", T * T)
        Bs = enigma.threadgroup_alloc("float", T * T)
        acc = enigma.register_tensor(1, "float", 0.0)
        with enigma.for_range(0, K, T) as k0:
            As[ty * T + tx] = A[row * K + k0 + tx]
            Bs[ty * T + tx] = B[(k0 + ty) * N + col]
            enigma.barrier()
            for kk in enigma.range_constexpr(T):
                acc[0] = enigma.fma(As[ty * T + kk], Bs[kk * T + tx], acc[0])
            enigma.barrier()
        C[row * N + col] = acc[0]

    a = rng.random((32, 48), dtype=np.float32)
    b = rng.random((48, 64), dtype=np.float32)
    g = ex(k, [a, b], 32 * 64, (64, 32, 1), (16, 16, 1), scalars=[32, 64, 48]).reshape(32, 64)
    close(g, a @ b, 0.0001)


def test_simdgroup_matmul():
    @enigma.kernel
    def k(A: Float32, B: Float32, C: Float32):
        acc = enigma.make_filled_simdgroup_matrix(0.0)
        for kk in range(0, 16, 8):
            ta = enigma.Tensor("A", 0, "float", base_offset=kk)
            tb = enigma.Tensor("B", 1, "float", base_offset=kk * 8)
            acc = enigma.simdgroup_multiply_accumulate(
                enigma.simdgroup_matrix_load(ta, 16), enigma.simdgroup_matrix_load(tb, 8), acc
            )
        enigma.simdgroup_matrix_store(acc, C, 8)

    a = rng.random((8, 16), dtype=np.float32)
    b = rng.random((16, 8), dtype=np.float32)
    close(ex(k, [a, b], 64, 32, 32).reshape(8, 8), a @ b, 0.0001)


def test_simdgroup_matmul_loop_half():
    @enigma.kernel
    def k(A: Float16, B: Float16, C: Float32):
        tA = enigma.threadgroup_alloc("half", 16 * 32)
        tB = enigma.threadgroup_alloc("half", 32 * 16)
        tC = enigma.threadgroup_alloc("float", 16 * 16)
        enigma.copy(A, tA, 512)
        enigma.copy(B, tB, 512)
        enigma.barrier()
        enigma.gemm(tA, tB, tC, M=16, N=16, K=32)
        enigma.barrier()
        enigma.copy(tC, C, 256)

    a = rng.random((16, 32)).astype(np.float16)
    b = rng.random((32, 16)).astype(np.float16)
    close(
        ex(k, [a, b], 256, 64, 64).reshape(16, 16),
        a.astype(np.float32) @ b.astype(np.float32),
        0.001,
    )


def test_pipeline3():
    S = 3

    @enigma.kernel
    def k(a: Float32, out: Float32, n: Scalar("uint")):
        t = enigma.thread_index_in_threadgroup()
        p = enigma.pipeline("float", 32, S)
        for s in range(S - 1):
            p.stage(s)[t] = a[s * 32 + t]
        enigma.barrier()
        with enigma.for_range(0, n, init=[0.0], dtype="uint") as (i, c):
            with enigma.if_(i + (S - 1) < n):
                p.back()[t] = a[(i + S - 1) * 32 + t]
            c[0] = c[0] + p.front()[31 - t]
            p.advance()
            enigma.barrier()
        out[t] = c[0]

    a = rng.random((7, 32), dtype=np.float32)
    close(ex(k, [a], 32, 32, 32, scalars=[7]), a[:, ::-1].sum(0))


def test_async_pipeline():
    @enigma.kernel
    def k(a: Float32, out: Float32):
        t = enigma.thread_index_in_threadgroup()
        tile = enigma.threadgroup_alloc("float", 32)
        back = enigma.threadgroup_alloc("float", 32)
        ev = enigma.async_copy_1d_d2t(tile, 0, a, 0, 32)
        tok = enigma.async_copy_commit(ev)
        enigma.async_copy_wait(tok)
        enigma.barrier()
        back[t] = tile[31 - t] * 2.0
        enigma.barrier()
        e = enigma.async_copy_1d_t2d(out, 0, back, 0, 32)
        enigma.async_copy_wait(e)

    a = rng.random(32, dtype=np.float32)
    close(ex(k, [a], 32, 32, 32), a[::-1] * 2)


def test_async_to_threadgroup_kw():
    @enigma.kernel
    def k(a: Float32, out: Float32):
        t = enigma.thread_index_in_threadgroup()
        tile = enigma.threadgroup_alloc("float", 32)
        enigma.async_copy_to_threadgroup(src=a, dst=tile, count=32, src_offset=4)
        enigma.async_copy_wait()
        enigma.barrier()
        out[t] = tile[t]

    a = rng.random(64, dtype=np.float32)
    close(ex(k, [a], 32, 32, 32), a[4:36])


def test_async_2d_store():
    @enigma.kernel
    def k(a: Float32, out: Float32):
        tile = enigma.threadgroup_alloc("float", 32)
        e = enigma.async_copy_2d_d2t(tile, 0, 8, a, 2, 16, 8, 4)
        enigma.async_copy_wait(e)
        enigma.barrier()
        e2 = enigma.async_copy_2d_t2d(out, 0, 12, tile, 0, 8, 8, 4)
        enigma.async_copy_wait(e2)

    a = np.arange(64, dtype=np.float32)
    g = ex(k, [a], 48, 32, 32).reshape(4, 12)
    w = np.zeros((4, 12), np.float32)
    w[:, :8] = a.reshape(4, 16)[:, 2:10]
    assert (g == w).all(), g


def test_vec4_saxpy():
    @enigma.kernel
    def k(x: Float32, y: Float32, out: Float32, alpha: Scalar(Float32)):
        i = enigma.thread_position_in_grid
        out[i] = alpha * x[i] + y[i]

    x, y = rng.random((2, 256), dtype=np.float32)
    c = enigma.compile(k, vec_width=4)
    close(ex(c, [x, y], 256, 64, 64, scalars=[2.5]), 2.5 * x + y)


def test_int_division():
    @enigma.kernel
    def k(a: Int32, b: UInt32, out: Int32):
        i = enigma.thread_position_in_grid
        out[i] = a[i] / 3
        out[i + 4] = enigma.as_type(b[i] // 3, "int")
        out[i + 8] = a[i] % 3
        out[i + 12] = a[i] / b[i]

    a = np.array([-7, 7, -1, 100], np.int32)
    b = np.array([7, 8, 9, 4294967295], np.uint32)
    g = ex(k, [a, b], 16, 4, 4, np.int32)
    w = [-2, 2, 0, 33, 2, 2, 3, 1431655765, -1, 1, -1, 1]
    w += [-7 // 7, 0, 0, int(100 / -1)]
    assert g.tolist() == w, (g.tolist(), w)


def test_grid3d():
    @enigma.kernel
    def k(out: UInt32):
        x = enigma.thread_position_in_grid.x
        y = enigma.thread_position_in_grid_xyz("y")
        z = enigma.thread_position_in_grid_xyz(dim="z")
        w = enigma.threads_per_grid("x")
        h = enigma.grid_size("y")
        out[(z * h + y) * w + x] = x + 10 * y + 100 * z

    g = ex(k, [], 4 * 3 * 2, (4, 3, 2), (2, 3, 1), np.uint32).reshape(2, 3, 4)
    z, y, x = np.mgrid[:2, :3, :4]
    assert (g == x + 10 * y + 100 * z).all()


def test_where_vectors():
    @enigma.kernel
    def k(a: Float32, out: Float32):
        i = enigma.thread_position_in_grid
        v = enigma.make_float4(a[i], a[i] + 1, a[i] + 2, a[i] + 3)
        w = enigma.where(v * 2.0, v, v > 1.0)
        out[i] = w.x + w.y * 10.0 + enigma.vec_extract(w, 2) * 100.0 + w.w * 1000.0

    a = np.array([-2, 0, 1, 5], np.float32)
    g = ex(k, [a], 4, 4, 4)
    v = a[:, None] + np.arange(4)
    w = np.where(v > 1, v, v * 2)
    close(g, w @ np.array([1, 10, 100, 1000.0]))


def test_packs():
    @enigma.kernel
    def k(a: Float32, out: UInt32):
        i = enigma.thread_position_in_grid
        v = enigma.make_float4(a[4 * i], a[4 * i + 1], a[4 * i + 2], a[4 * i + 3])
        p = enigma.pack_float_to_unorm4x8(v)
        out[i] = p
        u = enigma.unpack_unorm4x8_to_float(p)
        out[i + 4] = enigma.as_type(u.x, "uint")

    a = rng.random(16, dtype=np.float32)
    g = ex(k, [a], 8, 4, 4, np.uint32)
    assert (g[:4].view(np.uint8) == np.rint(a * 255).astype(np.uint8)).all()
    close(g[4:].view(np.float32), np.rint(a[::4] * 255) / 255)


@enigma.jit
def tv_scale(x: enigma.Tensor, y: enigma.Tensor):
    thr = enigma.make_ordered_layout((4, 32), order=(1, 0))
    val = enigma.make_ordered_layout((2, 4), order=(1, 0))
    tiler_mn, tv = enigma.make_layout_tv(thr, val)
    gX = enigma.tensor_zipped_divide(x, tiler_mn)
    gY = enigma.tensor_zipped_divide(y, tiler_mn)
    k_scale(gX, gY, tv, tiler_mn).launch(
        grid=(enigma.size(gX, mode=[1]) * enigma.size(tv, mode=[0]), 1, 1),
        block=(enigma.size(tv, mode=[0]), 1, 1),
    )


@enigma.kernel
def k_scale(gX, gY, tv, tiler):
    tidx, _, _ = enigma.arch.thread_idx()
    bidx, _, _ = enigma.arch.block_idx()
    blk = ((None, None), bidx)
    bX = gX[blk]
    bY = gY[blk]
    tX = enigma.tensor_composition(bX, tv, tiler)
    tY = enigma.tensor_composition(bY, tv, tiler)
    mine, theirs = (tX[tidx, None], tY[tidx, None])
    theirs.store(mine.load() * 3.0 + 1.0)


def test_jit_cute_style():
    L = enigma.make_layout((64, 256), (256, 1))
    c = enigma.compile(
        tv_scale, enigma.Tensor("x", 0, "float", L), enigma.Tensor("y", 1, "float", L)
    )
    a = rng.random((64, 256), dtype=np.float32)
    g = np.frombuffer(RUN.execute(c, [a], a.nbytes, c.grid, c.block), np.float32).reshape(64, 256)
    close(g, a * 3 + 1)


def test_jit_with_arrays():
    a = rng.random((64, 256), dtype=np.float32)
    c = enigma.compile(tv_scale, a, np.empty_like(a))
    g = np.frombuffer(RUN.execute(c, [a], a.nbytes, c.grid, c.block), np.float32).reshape(64, 256)
    close(g, a * 3 + 1)


def test_jit_in_threads():
    tensors = [
        enigma.Tensor(n, i, "float", enigma.make_layout((64, 256), (256, 1)))
        for i, n in enumerate("xy")
    ]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: enigma.compile(tv_scale, *tensors).mlir_source, range(16)))
    assert len(set(made)) == 1
    with pytest.raises(enigma.EnigmaError, match="runs through compile"):
        k_scale(None, None, None, None)


def test_simd_sum_on_tensor():
    @enigma.kernel
    def k(a: Float32, out: Float32):
        t = enigma.thread_index_in_simdgroup()
        x = enigma.Tensor("a", 0, "float", enigma.make_layout((32, 4), (4, 1)))
        v = x[t, None].load()
        s = enigma.simd_sum(v)
        m = enigma.simd_max(v)
        out[t] = s
        out[t + 32] = m
        e = enigma.exp(v - m)
        x2 = enigma.Tensor("out", 1, "float", enigma.make_layout((32, 4), (4, 1)), base_offset=64)
        x2[t, None].store(e / enigma.simd_sum(e))

    a = rng.normal(size=128).astype(np.float32)
    g = ex(k, [a], 192, 32, 32)
    close(g[0], a.sum(), 0.0001)
    close(g[32], a.max())
    e = np.exp(a - a.max())
    close(g[64:], e / e.sum(), 0.0001)


def test_bf16_kernel():
    ml_dtypes = pytest.importorskip("ml_dtypes")

    @enigma.kernel
    def k(a: enigma.BFloat16, out: "bfloat"):
        i = enigma.thread_position_in_grid
        out[i] = a[i] * 2.0 + 1.0

    a = np.arange(8).astype(ml_dtypes.bfloat16)
    r = RUN.execute(
        enigma.compile(k),
        [a],
        grid=(8, 1, 1),
        threads=(8, 1, 1),
        output_shapes=[(8,)],
        output_dtypes=["bfloat"],
    )
    assert r.astype(np.float32).tolist() == [2 * i + 1 for i in range(8)]


def test_game_of_life():
    @enigma.kernel
    def k(a: Int32, out: Int32, w: Scalar("int"), h: Scalar("int")):
        x = enigma.metal_cast(enigma.thread_position_in_grid_xyz("x"), "int")
        y = enigma.metal_cast(enigma.thread_position_in_grid_xyz("y"), "int")
        n = 0
        for dy in (-1, 0, 1):
            for dx in (-1, 0, 1):
                if dx or dy:
                    n = n + a[(y + dy + h) % h * w + (x + dx + w) % w]
        alive = a[y * w + x]
        out[y * w + x] = enigma.where(0, 1, (n == 3) | (alive == 1) & (n == 2))

    a = rng.integers(0, 2, (16, 24)).astype(np.int32)
    g = ex(k, [a], 384, (24, 16, 1), (8, 8, 1), np.int32, scalars=[24, 16]).reshape(16, 24)
    n = sum((np.roll(a, (dy, dx), (0, 1)) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dx or dy))
    assert (g == (n == 3) | (a == 1) & (n == 2)).all()


def test_bitonic_sort():
    @enigma.kernel
    def k(a: Float32, out: Float32):
        t = enigma.thread_index_in_threadgroup()
        s = enigma.threadgroup_alloc("float", 64)
        s[t] = a[t]
        enigma.barrier()
        size = 2
        while size <= 64:
            stride = size // 2
            while stride > 0:
                p = t ^ stride
                with enigma.if_(enigma.cmp_ugt(p, t)):
                    up = t & size == 0
                    x = s[t]
                    y = s[p]
                    swap = enigma.where(x < y, x > y, up)
                    s[t] = enigma.where(x, y, swap)
                    s[p] = enigma.where(y, x, swap)
                enigma.barrier()
                stride //= 2
            size *= 2
        out[t] = s[t]

    a = rng.random(64, dtype=np.float32)
    assert (ex(k, [a], 64, 64, 64) == np.sort(a)).all()


def test_newton_while_register():
    @enigma.kernel
    def k(a: Float32, out: Float32):
        i = enigma.thread_position_in_grid
        x = enigma.register_tensor(1, "float", 1.0)
        n = enigma.register_tensor((1,), dtype="int")
        with enigma.while_(lambda: (enigma.abs(x[0] * x[0] - a[i]) > 0.0001) & (n[0] < 50)):
            x[0] = 0.5 * (x[0] + a[i] / x[0])
            n[0] = n[0] + 1
        out[i] = x[0]

    a = rng.random(32, dtype=np.float32) * 10 + 0.1
    close(ex(k, [a], 32, 32, 32), np.sqrt(a), 0.001)


def test_reg_tile_matmul():
    TM = 4

    @enigma.kernel
    def k(A: Float32, B: Float32, C: Float32, n: Scalar("int")):
        x = enigma.thread_position_in_grid_xyz("x")
        y = enigma.thread_position_in_grid_xyz("y")
        acc = enigma.register_tensor((TM, TM), "float", 0)
        with enigma.for_range(0, n) as kk:
            ra = [A[(y * TM + i) * n + kk] for i in range(TM)]
            rb = [B[kk * n + x * TM + j] for j in range(TM)]
            for i in range(TM):
                for j in range(TM):
                    acc[i, j] = acc[i, j] + ra[i] * rb[j]
        for i in enigma.range_constexpr(TM):
            for j in enigma.range_constexpr(TM):
                C[(y * TM + i) * n + x * TM + j] = acc[i, j]

    a, b = rng.random((2, 32, 32), dtype=np.float32)
    close(ex(k, [a, b], 1024, (8, 8, 1), (8, 8, 1), scalars=[32]).reshape(32, 32), a @ b, 0.0001)


def test_online_softmax_attention():
    D = 32

    @enigma.kernel
    def k(Q: Float32, K: Float32, V: Float32, O: Float32, n: Scalar("uint")):
        row = enigma.threadgroup_position_in_grid()
        lane = enigma.thread_index_in_simdgroup()
        q = Q[row * D + lane]
        with enigma.for_range(0, n, dtype="uint", init=[-1e30, 0.0, 0.0]) as (j, c):
            s = enigma.simd_sum(q * K[j * D + lane]) * 0.17677669
            m = enigma.fmax(c[0], s)
            corr = enigma.exp(c[0] - m)
            p = enigma.exp(s - m)
            c[1] = c[1] * corr + p
            c[2] = c[2] * corr + p * V[j * D + lane]
            c[0] = m
        O[row * D + lane] = c[2] / c[1]

    q, kk, v = rng.normal(size=(3, 16, D)).astype(np.float32)
    g = ex(k, [q, kk, v], 16 * D, 16 * D, 32, scalars=[16]).reshape(16, D)
    s = q @ kk.T / np.sqrt(D)
    p = np.exp(s - s.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    close(g, p @ v, 0.001)


def test_int4_dequant_gemv():
    @enigma.kernel
    def k(w: enigma.UInt8, x: Float32, out: Float32, n: Scalar("uint")):
        row = enigma.thread_position_in_grid
        with enigma.for_range(0, n / 2, dtype="uint", init=[0.0]) as (i, c):
            lo, hi = enigma.unpack_int4x2(w[row * (n / 2) + i])
            c[0] = (
                c[0]
                + enigma.metal_cast(lo, "float") * x[2 * i]
                + enigma.dequantize_int8(hi, 1.0) * x[2 * i + 1]
            )
        out[row] = c[0]

    q = rng.integers(-8, 8, (8, 16))
    packed = (q[:, ::2] & 15 | (q[:, 1::2] & 15) << 4).astype(np.uint8)
    x = rng.random(16, dtype=np.float32)
    close(ex(k, [packed, x], 8, 8, 8, scalars=[16]), q @ x, 0.0001)


def test_identity_tensor_predication():
    @enigma.kernel
    def k(a: Float32, out: Float32):
        t = enigma.thread_index_in_threadgroup()
        ident = enigma.make_identity_tensor((4, 8))
        x = enigma.Tensor("a", 0, "float", enigma.make_layout((4, 8), (8, 1)))
        for j in range(8):
            r, c = ident[3, j]
            out[j] = x[r, c]

    a = np.arange(32, dtype=np.float32)
    assert ex(k, [a], 8, 1, 1).tolist() == list(range(24, 32))


def test_carry_int_float_types():
    @enigma.kernel
    def k(a: Int32, out: Int32):
        with enigma.for_range(0, 10, init=[enigma.Int32(0), 1, 0.5]) as (i, c):
            c[0] = c[0] + i
            c[1] = c[1] * 2
            c[2] = c[2] + i
        out[0] = c[0]
        out[1] = c[1]
        out[2] = c[2] * 2.0

    assert ex(k, [np.zeros(1, np.int32)], 3, 1, 1, np.int32).tolist() == [45, 1024, 91]


def test_helper_functions():

    def load4(t, i):
        return [t[i * 4 + k] for k in range(4)]

    def dot4(p, q):
        s = 0.0
        for x, y in zip(p, q):
            s = s + x * y
        return s

    @enigma.kernel
    def k(a: Float32, b: Float32, out: Float32):
        i = enigma.thread_position_in_grid
        out[i] = dot4(load4(a, i), load4(b, i))

    a, b = rng.random((2, 8, 4), dtype=np.float32)
    close(ex(k, [a, b], 8, 8, 8), (a * b).sum(1))


def test_early_return_natural_if():
    @enigma.kernel
    def k(a: Float32, out: Float32, n: Scalar("uint")):
        i = enigma.thread_position_in_grid
        if i >= n:
            return
        x = a[i]
        if x > 0.5:
            y = x * 2
        elif x > 0.25:
            y = -x
        else:
            y = 0.0
        out[i] = y

    a = rng.random(50, dtype=np.float32)
    g = ex(k, [a], 50, 64, 64, scalars=[50])
    close(g, np.where(a > 0.5, a * 2, np.where(a > 0.25, -a, 0)))


def test_literal_operands():
    @enigma.kernel
    def k(a: Float32, out: Float32):
        i = enigma.thread_position_in_grid
        x = a[i]
        s = (
            enigma.clamp(x, 0, 1)
            + enigma.fmax(x, 0)
            + enigma.pow(enigma.abs(x), 2)
            + enigma.mix(0, 1, x)
            + enigma.step(0, x)
        )
        s += (
            enigma.fma(x, 2, 1)
            + enigma.smoothstep(0, 1, x)
            + enigma.where(0, 1, x > 0)
            + enigma.copysign(1, x)
        )
        out[i] = s

    a = np.array([-1.5, 0.25, 0.5, 2], np.float32)
    sm = np.clip(a, 0, 1)
    sm = sm * sm * (3 - 2 * sm)
    w = (
        np.clip(a, 0, 1)
        + np.maximum(a, 0)
        + a * a
        + a
        + (a >= 0)
        + (2 * a + 1)
        + sm
        + (a > 0)
        + np.copysign(1, a)
    )
    close(ex(k, [a], 4, 4, 4), w)


def test_int_functions():
    @enigma.kernel
    def k(a: Int32, b: UInt32, out: Int32):
        i = enigma.thread_position_in_grid
        x = a[i]
        out[i * 10 + 0] = enigma.abs(x)
        out[i * 10 + 1] = enigma.clamp(x, -5, 5)
        out[i * 10 + 2] = enigma.imin(x, 3)
        out[i * 10 + 3] = enigma.imax(3, x)
        out[i * 10 + 4] = enigma.popcount(b[i])
        out[i * 10 + 5] = enigma.clz(b[i])
        out[i * 10 + 6] = enigma.ctz(b[i])
        out[i * 10 + 7] = enigma.as_type(enigma.rotate(b[i], 4), "int")
        out[i * 10 + 8] = enigma.add_sat(x, 2147483647)
        out[i * 10 + 9] = enigma.mul_hi(x, 65536)

    a = np.array([-100, 7], np.int32)
    b = np.array([2147483649, 12], np.uint32)
    g = ex(k, [a, b], 20, 2, 2, np.int32).reshape(2, 10)

    def rot(v, n):
        return int(np.array([(v << n | v >> 32 - n) & 4294967295], np.uint32).view(np.int32)[0])

    assert g[0].tolist() == [
        100,
        -5,
        -100,
        3,
        2,
        0,
        0,
        rot(2147483649, 4),
        2147483547,
        -100 * 65536 >> 32,
    ], g[0].tolist()
    assert g[1].tolist() == [7, 5, 3, 7, 2, 28, 2, rot(12, 4), 2147483647, 0], g[1].tolist()


def test_vec_width_mixed():
    @enigma.kernel
    def k(a: Float32, b: Float32, out: Float32, n: Scalar("uint")):
        i = enigma.thread_position_in_grid
        x = enigma.load_if(a, i, i < n, 1.0)
        enigma.store_if(
            out, i, enigma.fmax(x, enigma.load_if(b, i, i < n)) + enigma.exp(x - x), i < n
        )

    c = enigma.compile(k, vec_width=4)
    a, b = rng.random((2, 64), dtype=np.float32)
    close(ex(c, [a, b], 64, 32, 16, scalars=[16]), np.maximum(a, b) + 1)


def test_vec_width_reduce():
    @enigma.kernel
    def k(a: Float32, out: Float32):
        i = enigma.thread_position_in_grid
        s = enigma.simd_sum(a[i])
        with enigma.if_(i == 0):
            enigma.Tensor("out", 1, "float", enigma.make_layout(1))[None].store(s)

    c = enigma.compile(k, vec_width=4)
    a = rng.random(128, dtype=np.float32)
    close(ex(c, [a], 1, 32, 32)[0], a.sum(), 0.0001)


def test_matrices():
    @enigma.kernel
    def k(a: "float2x2", v: "float2", out: "float2x2", o2: "float2", o3: Float32):
        m = a[0]
        out[0] = enigma.matmul(enigma.transpose(m), m)
        o2[0] = enigma.matmul(m, v[0])
        o3[0] = enigma.determinant(m)

    m = rng.random((2, 2), dtype=np.float32)
    v = rng.random(2, dtype=np.float32)
    M = m.T
    r = RUN.execute(
        enigma.compile(k), [m, v], grid=(1, 1, 1), threads=(1, 1, 1), output_sizes=[16, 8, 4]
    )
    g = np.frombuffer(r[0], np.float32).reshape(2, 2).T
    close(g, M.T @ M)
    close(np.frombuffer(r[1], np.float32), M @ v)
    close(np.frombuffer(r[2], np.float32)[0], np.linalg.det(M), 0.0001)


def test_quad_ops():
    @enigma.kernel
    def k(a: Float32, out: Float32):
        i = enigma.thread_position_in_grid
        out[i] = (
            enigma.quad_sum(a[i])
            + enigma.quad_broadcast(a[i], 2)
            + enigma.quad_shuffle_xor(a[i], mask=1)
            + enigma.quad_shuffle_down(a[i], delta=0)
            + enigma.quad_max(a[i])
        )

    a = rng.random(32, dtype=np.float32)
    q = a.reshape(8, 4)
    w = q.sum(1, keepdims=True) + q[:, 2:3] + q[:, [1, 0, 3, 2]] + q + q.max(1, keepdims=True)
    close(ex(k, [a], 32, 32, 32), w.reshape(-1))


def test_simd_shuffles():
    @enigma.kernel
    def k(a: Float32, out: Float32):
        i = enigma.thread_index_in_simdgroup()
        out[i] = enigma.simd_shuffle(a[i], 31 - i)
        out[32 + i] = enigma.simd_shuffle_up(a[i], 1)
        out[64 + i] = enigma.simd_shuffle_down(value=a[i], delta=2)
        out[96 + i] = enigma.simd_broadcast(a[i], 5)

    a = rng.random(32, dtype=np.float32)
    g = ex(k, [a], 128, 32, 32).reshape(4, 32)
    assert (
        (g[0] == a[::-1]).all()
        and (g[1][1:] == a[:-1]).all()
        and (g[2][:-2] == a[2:]).all()
        and (g[3] == a[5]).all()
    )


def test_grid_position_forms():
    @enigma.kernel
    def k(out: UInt32):
        p = enigma.thread_position_in_grid
        q = p + 1
        out[p] = q * 2 - p % 4 + (p >> 1) + enigma.thread_position_in_grid.x
        x, _, _ = enigma.arch.thread_idx()
        b, _, _ = enigma.arch.block_idx()
        d, _, _ = enigma.arch.block_dim()
        with enigma.if_(b * d + x == p):
            out[p] = out[p] + 100

    g = ex(k, [], 64, 64, 16, np.uint32)
    p = np.arange(64)
    assert (g == (p + 1) * 2 - p % 4 + (p >> 1) + p + 100).all()


def test_laplacian_stencil():
    @enigma.kernel
    def k(u: Float32, out: Float32, n: Scalar("int")):
        i = enigma.metal_cast(enigma.thread_position_in_grid, "int")
        tile = enigma.threadgroup_alloc("float", 66)
        t = enigma.metal_cast(enigma.thread_index_in_threadgroup(), "int")
        tile[t + 1] = u[i]
        with enigma.if_(t == 0):
            tile[0] = enigma.load_if(u, i - 1, i > 0)
        with enigma.if_(t == 63):
            tile[65] = enigma.load_if(u, i + 1, i < n - 1)
        enigma.barrier()
        out[i] = tile[t] - 2.0 * tile[t + 1] + tile[t + 2]

    u = rng.random(256, dtype=np.float32)
    p = np.pad(u, 1)
    close(ex(k, [u], 256, 256, 64, scalars=[256]), p[:-2] - 2 * u + p[2:])


def test_heat_steps_scratch_input():
    @enigma.kernel
    def k(u: Float32, out: Float32, steps: Scalar("uint")):
        t = enigma.thread_index_in_threadgroup()
        with enigma.for_range(0, steps) as s:
            l = enigma.load_if(u, t - 1, t > 0)
            r = enigma.load_if(u, t + 1, t < 63)
            v = u[t] + 0.25 * (l - 2.0 * u[t] + r)
            enigma.barrier("mem_device")
            u[t] = v
            enigma.barrier("mem_device")
        out[t] = u[t]

    u = rng.random(64, dtype=np.float32)
    u0 = u.copy()
    g = ex(k, [u], 64, 64, 64, scalars=[5])
    for _ in range(5):
        p = np.pad(u0, 1)
        u0 = (u0 + np.float32(0.25) * (p[:-2] - 2 * u0 + p[2:])).astype(np.float32)
    close(g, u0, 0.0001)


def test_multi_outputs_scalars_constants():
    @enigma.kernel
    def k(a: Float32, b: Float32, s: Scalar(Float32), c: Float32, d: Int32, n: Scalar("int")):
        i = enigma.thread_position_in_grid
        c[i] = a[i] * s + b[i] * enigma.function_constant("float", 2)
        d[i] = n + i

    a, b = rng.random((2, 8), dtype=np.float32)
    c, d = RUN.execute(
        enigma.compile(k),
        [a, b],
        grid=(8, 1, 1),
        threads=(8, 1, 1),
        scalars=[2.0, 5],
        constants={2: ("float", 3.0)},
        output_shapes=[(2, 4), (8,)],
        output_dtypes=[np.float32, "int"],
    )
    close(c.reshape(-1), a * 2 + b * 3)
    assert (d == 5 + np.arange(8)).all()


def test_gemm_register_c():
    @enigma.kernel
    def k(a: Float32, b: Float32, out: Float32):
        C = enigma.register_tensor((2, 2), "float")
        enigma.gemm(a, b, C, M=2, N=2, K=3)
        for i in range(2):
            for j in range(2):
                out[i * 2 + j] = C[i, j]

    a = rng.random((2, 3), dtype=np.float32)
    b = rng.random((3, 2), dtype=np.float32)
    close(ex(k, [a, b], 4, 1, 1).reshape(2, 2), a @ b)


def test_gemm_transposes():
    for ta in (0, 1):
        for tb in (0, 1):

            @enigma.kernel
            def k(a: Float16, b: Float16, out: Float32):
                enigma.gemm(a, b, out, M=16, N=8, K=24, transpose_A=bool(ta), transpose_B=bool(tb))

            a = rng.random((16, 24)).astype(np.float16)
            b = rng.random((24, 8)).astype(np.float16)
            A = np.ascontiguousarray(a.T) if ta else a
            B = np.ascontiguousarray(b.T) if tb else b
            close(
                ex(k, [A, B], 128, 64, 64).reshape(16, 8),
                a.astype(np.float32) @ b.astype(np.float32),
                0.001,
            )


def test_copy_offsets_mask():
    @enigma.kernel
    def k(a: Float32, out: Float32, n: Scalar("uint")):
        s = enigma.threadgroup_alloc("float", 128)
        enigma.copy(
            src=a,
            dst=s,
            count=100,
            src_offset=5,
            dst_offset=10,
            mask_fn=lambda i: i < n,
            coalesced_width=4,
        )
        enigma.barrier()
        enigma.copy(s, out, 128)

    a = rng.random(200, dtype=np.float32)
    w = np.zeros(128, np.float32)
    w[10 : 10 + 77] = a[5 : 5 + 77]
    assert (ex(k, [a], 128, 32, 32, scalars=[77]) == w).all()


def test_pipeline_surface():
    @enigma.kernel
    def k(a: Float32, out: Float32):
        t = enigma.thread_index_in_threadgroup()
        p = enigma.Pipeline("float", 32, stages=3)
        for s in range(3):
            p.stage(s)[t] = a[32 * s + t]
        enigma.barrier()
        out[t] = p.front()[t]
        out[32 + t] = p.back()[t]
        p.advance()
        out[64 + t] = p.front()[t]
        p.rotate()
        out[96 + t] = p.front()[t]
        p.advance()
        out[128 + t] = p.front()[t]

    a = np.arange(96, dtype=np.float32)
    g = ex(k, [a], 160, 32, 32).reshape(5, 32)
    assert g[:, 0].tolist() == [0, 64, 32, 64, 0]


def test_tensor_base_offset_traced():
    @enigma.kernel
    def k(a: Float32, out: Float32):
        g = enigma.threadgroup_position_in_grid()
        t = enigma.thread_index_in_threadgroup()
        row = enigma.Tensor("a", 0, "float", enigma.make_layout(32, 1), base_offset=g * 32)
        dst = enigma.Tensor(
            "out", 1, "float", enigma.make_layout((4, 8), (1, 4)), base_offset=g * 32
        )
        dst[t % 4, t // 4] = row[t,]
        assert (
            row.name == "a"
            and row.buffer_index == 0
            and (row.metal_dtype == "float")
            and (enigma.size(dst, mode=[1]) == 8)
            and (dst.stride == (1, 4))
        )

    a = rng.random(64, dtype=np.float32)
    assert (ex(k, [a], 64, 64, 32) == a).all()


def test_composition_directly():
    L = enigma.make_layout((8, 8), (8, 1))
    assert (
        enigma.size(L) == 64 and enigma.size(L, mode=[1]) == 8 and (enigma.size((4, (2, 3))) == 24)
    )
    assert enigma.composition(L, enigma.make_layout(8, 2))(3) == L(6)
    assert enigma.product((2, (3, 4))) == 24 and enigma.select((1, 2, 3), [0, 2]) == (1, 3)
    assert enigma.repeat_like(1, (2, (3, 4))) == (1, (1, 1))
    zd = enigma.zipped_divide(L, (2, 4))
    assert enigma.size(zd, mode=[0]) == 8
    ld = enigma.logical_divide(L, (2, 4))
    bp = enigma.blocked_product(enigma.make_layout((2, 2)), enigma.make_layout((3, 3)))
    assert enigma.size(bp) == 36
    assert enigma.recast_layout(16, 32, enigma.make_layout(8)).size() == 16
    assert enigma.coalesce(enigma.make_layout((2, 4), (1, 2))).shape in (8, (8,))
    enigma.complement(enigma.make_layout(4, 2), 16)


def test_bools():
    @enigma.kernel
    def k(a: Float32, f: "bool", out: "bool"):
        i = enigma.thread_position_in_grid
        c = (a[i] > 0.25) & (a[i] < 0.75) | f[i]
        out[i] = c

    a = rng.random(16, dtype=np.float32)
    f = rng.integers(0, 2, 16).astype(bool)
    assert (ex(k, [a, f], 16, 16, 16, np.bool_) == (a > 0.25) & (a < 0.75) | f).all()


def test_not_bool_and_invert():
    @enigma.kernel
    def k(a: Float32, out: UInt32):
        i = enigma.thread_position_in_grid
        c = a[i] > 0.5
        with enigma.if_(not c):
            out[i] = 1
        with enigma.if_(~c):
            out[i] = out[i] + 1

    a = rng.random(16, dtype=np.float32)
    assert (ex(k, [a], 16, 16, 16, np.uint32) == 2 * (a <= 0.5)).all()


def test_uchar_short():
    @enigma.kernel
    def k(a: enigma.Int8, b: "short", out: "ushort"):
        i = enigma.thread_position_in_grid
        out[i] = b[i] + a[i]

    a = rng.integers(-100, 100, 16).astype(np.int8)
    b = rng.integers(0, 1000, 16).astype(np.int16)
    assert (ex(k, [a, b], 16, 16, 16, np.uint16) == (b + a).astype(np.uint16)).all()


def test_rms_norm():
    @enigma.kernel
    def k(x: Float16, w: Float16, out: Float16, n: Scalar("uint"), eps: Scalar("float")):
        row = enigma.threadgroup_position_in_grid()
        t = enigma.thread_index_in_threadgroup()
        nt = enigma.threads_per_threadgroup()
        part = enigma.threadgroup_alloc("float", 32)
        with enigma.for_range(t, n, nt, dtype="uint", init=[0.0]) as (i, c):
            v = enigma.metal_cast(x[row * n + i], "float")
            c[0] = c[0] + v * v
        s = enigma.simd_sum(c[0])
        with enigma.if_(enigma.thread_index_in_simdgroup() == 0):
            part[enigma.simdgroup_index_in_threadgroup()] = s
        enigma.barrier()
        with enigma.for_range(0, enigma.simdgroups_per_threadgroup(), dtype="uint", init=[0.0]) as (
            i,
            d,
        ):
            d[0] = d[0] + part[i]
        r = enigma.rsqrt(d[0] / enigma.metal_cast(n, "float") + eps)
        with enigma.for_range(t, n, nt, dtype="uint") as i:
            out[row * n + i] = enigma.metal_cast(x[row * n + i], "float") * r * w[i]

    x = rng.normal(size=(4, 200)).astype(np.float16)
    w = rng.random(200).astype(np.float16)
    g = ex(k, [x, w], 800, 4 * 64, 64, np.float16, scalars=[200, 1e-05]).reshape(4, 200)
    X = x.astype(np.float32)
    close(g.astype(np.float32), X / np.sqrt((X * X).mean(1, keepdims=True) + 1e-05) * w, 0.005)


def test_shared_list_of_tensors():
    @enigma.kernel
    def k(a: Float32, b: Float32, out: Float32):
        i = enigma.thread_position_in_grid
        bufs = [a, b]
        acc = enigma.register_tensor(2, "float")
        with enigma.for_range(0, 4) as j:
            for n, t in enumerate(bufs):
                acc[n] = acc[n] + t[i * 4 + j]
        out[i] = acc[0] * acc[1]

    a, b = rng.random((2, 8, 4), dtype=np.float32)
    close(ex(k, [a, b], 8, 8, 8), a.sum(1) * b.sum(1))


def test_function_constants_at_module_level():
    @enigma.kernel
    def k(a: Float32, out: Float32):
        i = enigma.thread_position_in_grid
        x = a[i] * SCALE
        if DOUBLED:
            x = x * 2.0
        out[i] = x
        with enigma.if_(DOUBLED):
            out[i] = out[i] + SCALE

    @enigma.kernel
    def other(a: Float32, out: Float32):
        out[0] = SCALE + a[0]

    compiled = enigma.compile(k)
    a = np.arange(4, dtype=np.float32)
    for doubled in (True, False):
        constants = {0: ("float", 2.5), 1: ("bool", doubled)}
        got = ex(compiled, [a], 4, 4, 4, constants=constants)
        assert got.tolist() == (a * 5 + 2.5 if doubled else a * 2.5).tolist()
    assert ex(other, [a[2:]], 1, 1, 1, constants={0: ("float", 1.5)}).tolist() == [3.5]
    with pytest.raises(enigma.EnigmaError, match="scalar type"):
        enigma.function_constant("float4", 0)


def test_lists_of_numbers_take_the_parameter_s_type():
    @enigma.kernel
    def k(a: Float32, b: UInt32, out: Float32):
        i = enigma.thread_position_in_grid
        out[i] = a[i] + b[i]

    assert ex(k, [[1, 2.5], (3, 4)], 2, 2, 2).tolist() == [4.0, 6.5]


def test_numbers_take_the_type_of_what_they_meet():
    @enigma.kernel
    def k(u: UInt32, s: Int32, f: Float32, out: Int32):
        out[0] = -7 / u[0]
        out[1] = -7 / s[0]
        out[2] = u[0] - 8
        out[3] = f[0] * 2 + 1
        out[4] = 2.5 * s[0]
        out[5] = s[0] * 2.5
        out[6] = enigma.Int32(-7) / u[0]

    got = ex(k, [[2], [2], [1.5]], 7, 1, 1, np.int32)
    # -7 is 4294967289 as a uint; 2.5 on the left is a float, on the right it becomes 2.
    assert got.tolist() == [4294967289 // 2, -3, -6, 4, 5, 4, -3]


def test_a_view_of_a_threadgroup_array():
    @enigma.kernel
    def k(a: Float32, out: Float32):
        t = enigma.thread_index_in_threadgroup()
        smem = enigma.threadgroup_alloc("float", 64)
        other = enigma.threadgroup_alloc("float", 64)
        layout = enigma.make_layout((8, 8), (8, 1))
        view = enigma.Tensor(
            smem.name, smem.buffer_index, "float", layout, address_space="threadgroup"
        )
        view[t // 8, t % 8] = a[t]
        other[t] = 0.0
        enigma.barrier()
        out[t] = view[t % 8, t // 8]

    a = rng.random((8, 8), dtype=np.float32)
    assert (ex(k, [a], 64, 64, 64).reshape(8, 8) == a.T).all()


def test_kernels_compiled_for_tensors():
    @enigma.kernel
    def bare(a, out):
        i = enigma.thread_position_in_grid
        out[i % 8, i // 8] = a[i] * 2.0

    @enigma.kernel
    def annotated(a: Float32, n: Scalar(UInt32), out: Float32):
        out[enigma.thread_position_in_grid] = a[enigma.thread_position_in_grid] * n

    layout = enigma.make_layout((8, 8), (8, 1))
    a, b = (enigma.Tensor(n, i, "float", layout) for i, n in enumerate("ab"))
    x = rng.random((8, 8), dtype=np.float32)
    for given in ((a, b), (x, x)):
        got = ex(enigma.compile(bare, *given), [x], 64, 64, 64)
        assert (got.reshape(8, 8) == 2 * x.T).all()
    compiled = enigma.compile(annotated, a, 3, b)
    assert (ex(compiled, [x], 64, 64, 64, scalars=[3]) == 3 * x.reshape(-1)).all()
    with pytest.raises(enigma.EnigmaError, match="missing a required argument: 'out'"):
        enigma.compile(bare, a)
    with pytest.raises(enigma.EnigmaError, match="`a` of kernel `annotated` is a float.*holds int"):
        enigma.compile(annotated, np.zeros(4, np.int32), 3, b)


def test_what_a_jit_function_does_wrongly():
    @enigma.kernel
    def k(x, y):
        y[0] = x[0]

    def twice(a, b):
        for _ in range(2):
            k(a, b).launch(4, 4)

    def never(a, b):
        k(a, b)

    def half(a, b):
        k(a).launch(4, 4)

    tensors = [enigma.Tensor(n, i, "float", enigma.make_layout(4)) for i, n in enumerate("ab")]
    for function, message in (
        (twice, "`twice` launches 2 kernels"),
        (never, "`never` launches 0 kernels"),
        (half, "kernel `k`: missing a required argument: 'y'"),
    ):
        with pytest.raises(enigma.EnigmaError, match=message):
            enigma.compile(enigma.jit(function), *tensors)
    with pytest.raises(enigma.EnigmaError, match="`never`: missing a required argument: 'b'"):
        enigma.compile(enigma.jit(never), tensors[0])


def test_copies_count_elements_whatever_an_index_means():
    @enigma.kernel
    def k(a: Float32, out: Float32):
        tile = enigma.threadgroup_alloc("float", 64)
        enigma.copy(a, tile, 64)
        enigma.barrier()
        enigma.copy(tile, out, 64)

    a = rng.random(64, dtype=np.float32)
    assert (ex(enigma.compile(k, vec_width=4), [a], 64, 32, 32) == a).all()


def test_loops_that_count_down():
    @enigma.kernel
    def k(n: Scalar("int"), out: UInt32):
        with enigma.for_range(5, 0, -1, dtype="uint", init=[0]) as (i, c):
            c[0] = c[0] * 10 + i
        out[0] = c[0]
        with enigma.for_range(4, 0, n, dtype="uint", init=[0]) as (i, c):
            c[0] = c[0] * 10 + i
        out[1] = c[0]

    assert ex(k, [], 2, 1, 1, np.uint32, scalars=[-2]).tolist() == [54321, 42]


def test_layouts_of_traced_coordinates():
    layout = enigma.make_layout((4, (2, 4)), (8, (1, 2)))
    swizzled = enigma.swizzle(enigma.make_layout((8, 8), (8, 1)), 3, 0, 3)

    @enigma.kernel
    def k(a: Float32, out: Float32):
        t = enigma.thread_position_in_grid
        out[t] = a[layout((t % 4, t / 4))]
        with enigma.if_(t == 0):
            out[32] = a[layout(coord=(1, t + 2))] + layout(3)
        out[64 + swizzled((t / 8, t % 8))] = t

    a = np.arange(64, dtype=np.float32)
    got = ex(k, [a], 128, 32, 32)
    assert (got[:32].reshape(8, 4) == a[:32].reshape(4, 8).T).all()
    assert got[32] == 8 + 2 + 24
    assert [got[64 + swizzled((i // 8, i % 8))] for i in range(32)] == list(range(32))


def test_register_tensors():
    @enigma.kernel
    def k(a: Float32, out: Float32):
        r = enigma.RegisterTensor(shape=(2, 3), dtype="float", fill=1.5)
        r[0, 1] = a[0]
        r[(1, 2)] = a[1]
        r[3] = 7
        found = [r[1], r[1, 2], r[1, 0], r[0, 0], r.size(), enigma.size(r, mode=[1])]
        found.append(r[enigma.Int32(a[1])])
        r.store(r.load() * 2.0)
        for n, x in enumerate([*found, r[0]]):
            out[n] = x

    assert ex(k, [[2, 3]], 8, 1, 1).tolist() == [2, 3, 7, 1.5, 6, 3, 7, 3]
