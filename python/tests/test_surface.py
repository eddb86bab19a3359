"""The surface: operations, memory, structs, vectors, atomics, launches, checks."""

import numpy as np
import pytest

import invar as iv


def tid():
    return iv.thread_position_in_grid("x")


def test_row_sum_and_its_race():
    def make(first_barrier):
        @iv.kernel
        def row_sum(x: iv.Buffer[iv.f32], out: iv.Buffer[iv.f32], n: iv.Scalar[iv.u32]):
            row = iv.threadgroup_position_in_grid("x")
            t = iv.thread_position_in_threadgroup("x")
            scratch = iv.threadgroup_alloc(iv.f32, 256)
            total = 0.0
            for i in iv.range(t, n, 256):
                total += x[row * n + i]
            scratch[t] = total  # written
            if first_barrier:
                iv.barrier()
            step = 128
            while step > 0:
                if t < step:
                    scratch[t] += scratch[t + step]  # read
                iv.barrier()
                step //= 2
            if t == 0:
                out[row] = scratch[0]

        return row_sum

    x = np.random.default_rng(1).random((10, 1000), np.float32)
    out = np.zeros(10, np.float32)
    good, bad = make(True), make(False)
    good[10 * 256, 256](x, out, 1000)
    np.testing.assert_allclose(out, x.sum(1), rtol=1e-5)
    assert iv.check(good, grid=2560, threadgroup=256)(x, out, 1000)
    with pytest.raises(iv.CheckError) as caught:
        iv.check(bad, grid=2560, threadgroup=256)(x, out, 1000)
    race = next(f for f in caught.value.findings if f.rule == "data-race")
    lines = open(__file__).read().splitlines()
    assert lines[race.labels[0].line - 1].endswith("# read")
    assert lines[race.labels[1].line - 1].endswith("# written")
    assert "# written" in str(caught.value)


UNARY = {
    "sqrt": np.sqrt, "abs": np.abs, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,
    "rint": np.rint, "exp": np.exp, "log": np.log, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "exp2": np.exp2, "log2": np.log2, "log10": np.log10, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
}  # fmt: skip


@pytest.mark.parametrize("name", [n for n in UNARY if hasattr(iv, n)])
def test_functions_of_one_argument_agree_with_numpy(name):
    function = getattr(iv, name)

    @iv.kernel
    def k(x: iv.Buffer[iv.f32], out: iv.Buffer[iv.f32]):
        out[tid()] = function(x[tid()])

    x = np.linspace(0.01, 0.99, 100).astype(np.float32)
    out = np.zeros_like(x)
    k[100, 32](x, out)
    np.testing.assert_allclose(out, UNARY[name](x.astype(np.float64)), rtol=1e-6)


INTEGER = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
    "&": lambda a, b: a & b, "|": lambda a, b: a | b, "^": lambda a, b: a ^ b,
}  # fmt: skip


@pytest.mark.parametrize("symbol", INTEGER)
@pytest.mark.parametrize("ty", ["i8", "u16", "i32", "u64"])
def test_integer_operators_agree_with_numpy(symbol, ty):
    function, ty = INTEGER[symbol], getattr(iv, ty)

    @iv.kernel
    def k(a: iv.Buffer[ty], b: iv.Buffer[ty], out: iv.Buffer[ty]):
        i = tid()
        out[i] = function(a[i], b[i])

    random = np.random.default_rng(2)
    a, b = (np.frombuffer(random.bytes(50 * ty.size_bytes), ty.numpy()) for _ in range(2))
    out = np.zeros(50, ty.numpy())
    k[50, 32](a, b, out)
    with np.errstate(over="ignore"):
        assert (out == function(a, b)).all()


def test_floor_division_and_remainder_truncate_as_in_metal():
    @iv.kernel
    def k(x: iv.Buffer[iv.i32], out: iv.Buffer[iv.i32]):
        i = tid()
        out[2 * i] = x[i] // 3
        out[2 * i + 1] = x[i] % 3

    x = np.array([-7, -3, -1, 0, 1, 7], np.int32)
    out = np.zeros(12, np.int32)
    k[6, 8](x, out)
    assert out.tolist() == [-2, -1, -1, 0, 0, -1, 0, 0, 0, 1, 2, 1]


def test_casts_and_strong_constants():
    @iv.kernel
    def k(out: iv.Buffer[iv.f32], wide: iv.Buffer[iv.u64]):
        i = tid()
        out[i] = iv.f32(i) / 4 + np.float32(0.5) + iv.f32(1)
        wide[i] = iv.u64(i) * 2**40

    out, wide = np.zeros(8, np.float32), np.zeros(8, np.uint64)
    k[8, 8](out, wide)
    assert (out == np.arange(8) / 4 + 1.5).all()
    assert (wide == np.arange(8, dtype=np.uint64) << np.uint64(40)).all()


def test_vectors():
    @iv.kernel
    def k(x: iv.Buffer[iv.f32x4], y: iv.Buffer[iv.f32], out: iv.Buffer[iv.f32x3]):
        i = tid()
        v = x[i] * 2
        v.x = 10
        v[1] += 1
        y[i] = iv.dot(v, iv.f32x4(1, 1, 1, 1)) + v.w
        out[i] = v.zyx

    x = np.arange(32, dtype=np.float32).reshape(8, 4)
    y, out = np.zeros(8, np.float32), np.zeros((8, 3), np.float32)
    k[8, 8](x, y, out)
    v = x * 2
    v[:, 0] = 10
    v[:, 1] += 1
    assert (y == v.sum(1) + v[:, 3]).all()
    assert (out == v[:, 2::-1]).all()


def test_vector_accesses_of_scalar_buffers():
    @iv.kernel
    def k(x: iv.Buffer[iv.f32], out: iv.Buffer[iv.f32]):
        i = tid()
        out.store(i, x.load(i, 4, group=True) + x.load(i * 4, 4), group=True)

    x = np.arange(32, dtype=np.float32)
    out = np.zeros(32, np.float32)
    k[8, 8](x, out)
    assert (out == 2 * x).all()


PARTICLE = np.dtype(
    [("position", np.float32, 3), ("mass", np.float32), ("tags", np.uint8, 4)], align=True
)


def test_struct_elements():
    @iv.kernel
    def k(p: iv.Buffer[PARTICLE]):
        i = tid()
        for d in range(3):
            p[i].position[d] += p[i].mass * d
        p[i].tags[i % 4] = 7
        p[i].mass *= 2

    p = np.zeros(6, PARTICLE)
    p["mass"] = np.arange(6)
    expected = p.copy()
    expected["position"] += np.arange(6)[:, None] * np.arange(3)
    expected["tags"][np.arange(6), np.arange(6) % 4] = 7
    expected["mass"] *= 2
    k[6, 8](p)
    assert (p == expected).all()


def test_a_struct_that_is_not_laid_out_as_in_c_is_refused():
    with pytest.raises(iv.Error, match="align=True"):
        iv.Struct("Odd", np.dtype([("a", np.uint8), ("b", np.float32)]))


def test_atomics():
    @iv.kernel
    def k(counts: iv.Buffer[iv.u32], x: iv.Buffer[iv.u32], old: iv.Buffer[iv.u32]):
        i = tid()
        iv.atomic_add(counts, x[i], 1)
        iv.atomic_max(counts, 8, x[i] + i)
        old[i], swapped = iv.atomic_compare_exchange(counts, 9, 0, i + 1)
        if swapped:
            iv.atomic_store(counts, 10, i)

    x = (np.arange(100) * 7 % 8).astype(np.uint32)
    counts, old = np.zeros(11, np.uint32), np.zeros(100, np.uint32)
    k[100, 32](counts, x, old)
    assert (counts[:8] == np.bincount(x, minlength=8)).all()
    assert counts[8] == (x + np.arange(100)).max()
    assert (old == 0).sum() == 1 and counts[9] == counts[10] + 1


def test_thread_and_threadgroup_arrays():
    @iv.kernel(allow=["out_of_bounds_loads"])
    def k(x: iv.Buffer[iv.i32], out: iv.Buffer[iv.i32], tile: iv.Threadgroup[iv.i32]):
        t = iv.thread_position_in_threadgroup()
        mine = iv.thread_alloc(iv.i32, 4)
        for j in iv.range(4):
            mine[j] = x[tid()] * j
        tile[t] = mine[3]
        iv.barrier(spaces="threadgroup")
        out[tid()] = tile[31 - t] + mine[9]

    x = np.arange(64, dtype=np.int32)
    out = np.zeros(64, np.int32)
    k[64, 32](x, out, 32)
    assert (out == (x * 3).reshape(2, 32)[:, ::-1].reshape(-1)).all()


def test_constant_buffers_lengths_and_copies():
    @iv.kernel
    def k(w: iv.Constant[iv.f32], x: iv.Buffer[iv.f32], out: iv.Buffer[iv.f32]):
        i = tid()
        if i == 0:
            iv.copy(out, 0, x, 2, 3)
            out[3] = iv.f32(iv.buffer_length(w))
        out[4 + i] = w[i % 2]

    out = np.zeros(8, np.float32)
    k[4, 4](np.float32([5, 6]), np.arange(9, dtype=np.float32), out)
    assert out.tolist() == [2, 3, 4, 2, 5, 6, 5, 6]


def test_function_constants():
    @iv.kernel
    def k(out: iv.Buffer[iv.u32]):
        out[tid()] = iv.function_constant("TILE", iv.u32, 16) + tid()

    out = np.zeros(4, np.uint32)
    k[4, 4](out)
    assert out.tolist() == [16, 17, 18, 19]
    k[4, 4](out, constants={"TILE": iv.u32(3)})
    assert out.tolist() == [3, 4, 5, 6]


def test_compile_time_parameters_specialise():
    @iv.kernel
    def k(out: iv.Buffer[iv.i32], width, scale=2):
        for j in range(width):
            out[tid() * width + j] = j * scale

    out = np.zeros(8, np.int32)
    k[4, 4](out, 2)
    assert out.tolist() == [0, 2] * 4
    k[2, 4](out, width=4, scale=3)
    assert out.tolist() == [0, 3, 6, 9] * 2
    assert "const i32 9" in k.specialise(width=4, scale=3).ir


def test_access_is_inferred_from_use():
    @iv.kernel
    def k(a: iv.Buffer[iv.i32], b: iv.Buffer[iv.i32], c: iv.Buffer[iv.i32], d: iv.Buffer[iv.i32]):
        b[0] = a[0]
        c[0] += 1

    head = k.ir.splitlines()[0]
    assert "%a: device read i32" in head and "%b: device write i32" in head
    assert "%c: device read_write i32" in head and "%d: device read i32" in head


def test_attributes_of_kernels():
    @iv.kernel(threadgroup=(8, 2), float_mode="strict", allow=("out_of_bounds_stores",))
    def k(out: iv.Buffer[iv.i32]):
        out[tid()] = 1

    assert "threadgroup(8, 2) strict allow(out_of_bounds_stores)" in k.ir

    @iv.kernel(threadgroup=(8, 2))
    def fixed(out: iv.Buffer[iv.i32]):
        out[tid()] = 1

    with pytest.raises(iv.ReportError, match="requires threadgroups of 8x2x1"):
        fixed[8, 8](np.zeros(8, np.int32))


def test_grids_of_several_dimensions_and_of_threadgroups():
    @iv.kernel
    def k(out: iv.Buffer[iv.u32]):
        x, y = iv.thread_position_in_grid("x"), iv.thread_position_in_grid("y")
        out[y * iv.threads_per_grid("x") + x] = x * 10 + y

    out = np.zeros((3, 5), np.uint32)
    k[(5, 3), (2, 2)](out)
    assert (out == np.arange(5) * 10 + np.arange(3)[:, None]).all()
    out = np.zeros((4, 6), np.uint32)
    k[iv.threadgroups(3, 2), (2, 2)](out)
    assert (out == np.arange(6) * 10 + np.arange(4)[:, None]).all()


def test_arrays_are_used_in_place():
    @iv.kernel
    def k(x: iv.Buffer[iv.i32]):
        x[tid()] += 1

    memory = bytearray(16)
    k[2, 4](np.frombuffer(memory, np.int32)[1:3])
    assert np.frombuffer(memory, np.int32).tolist() == [0, 1, 1, 0]
    view = memoryview(memory).cast("i")
    k[4, 4](view)
    assert view.tolist() == [1, 2, 2, 1]


def test_half_and_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")

    @iv.kernel
    def k(a: iv.Buffer[iv.f16], b: iv.Buffer[iv.bf16]):
        i = tid()
        a[i] = a[i] * 2 + 0.5
        b[i] = b[i] + 1.1

    a = np.arange(8, dtype=np.float16)
    b = np.arange(8).astype(ml_dtypes.bfloat16)
    expected = (b.astype(np.float32) + np.float32(ml_dtypes.bfloat16(1.1))).astype(b.dtype)
    k[8, 8](a, b)
    assert (a == np.arange(8) * 2 + 0.5).all()
    assert (b == expected).all()


@pytest.mark.parametrize("number", [0.1, 1.1, -3.3e-39, 3.4e38, 1e300, float("inf"), 1.00390625, 1.01171875])
def test_bfloat16_constants_are_rounded_once(number):
    ml_dtypes = pytest.importorskip("ml_dtypes")

    @iv.kernel
    def k(out: iv.Buffer[iv.bf16], number):
        out[0] = number

    out = np.zeros(1, ml_dtypes.bfloat16)
    k[1, 1](out, number)
    with np.errstate(over="ignore"):
        assert out[0] == ml_dtypes.bfloat16(number)


def test_check_reports_without_raising_and_leaves_arrays_alone():
    @iv.kernel
    def k(x: iv.Buffer[iv.i32]):
        x[0] = iv.i32(tid())

    x = np.full(1, 77, np.int32)
    report = iv.check(k, grid=64, threadgroup=32, raises=False)(x)
    assert not report and report.findings[0].rule == "data-race"
    assert x[0] == 77
    assert iv.check(k, grid=64, threadgroup=32, allow=["data-race"])(x)
    with pytest.raises(iv.Error, match="`nonsense` is not a rule"):
        iv.check(k, grid=64, threadgroup=32, allow=["nonsense"])(x)


def test_every_generated_function_has_documentation():
    from invar import _ops

    assert len(_ops.GENERATED) > 100
    for name, function in _ops.GENERATED.items():
        assert getattr(iv, name) is function and function.__doc__.strip()


def test_explain():
    assert "data-race" in iv.explain()
    assert iv.explain("data-race")
    with pytest.raises(iv.Error, match="no rule `nothing`"):
        iv.explain("nothing")


def test_help_shows_functions_and_methods_with_what_they_take():
    import pydoc

    for thing, line in (
        (iv.device, "device(name: 'str' = 'default', *, seed"),
        (iv.check, "check(kernel: 'Kernel | LoadedKernel', *, grid"),
        (iv.Device, "zeros(self, shape"),
        (iv.Launch, "submit(self, *args"),
    ):
        assert line in pydoc.plain(pydoc.render_doc(thing)), line
