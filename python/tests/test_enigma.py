"""The Enigma DSL's surface: every name and signature, and what its programs rely on."""

import importlib
import inspect
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import pytest

import invar
from invar import enigma
from invar._errors import KernelError, VerifyError

SURFACE = json.loads(
    (pathlib.Path(__file__).parents[2] / "tests" / "data" / "enigma_surface.json").read_text()
)["names"]
RUN = enigma.MetalRuntime()


def run(kernel, inputs, count, threads=1, group=None, dtype=np.float32, **options):
    """One output of a kernel, as an array of so many elements."""
    compiled = kernel if isinstance(kernel, enigma.CompiledKernel) else enigma.compile(kernel)
    size = count * np.dtype(dtype).itemsize
    grid, group = (threads, 1, 1), (group or min(threads, 256), 1, 1)
    return np.frombuffer(RUN.execute(compiled, inputs, size, grid, group, **options), dtype)


# ---- the surface ----


def recorded_parameters(text):
    """Name, kind and default of each parameter, of a signature in text."""
    scope = {}
    head = text if text.startswith("def ") else f"def f{text}"
    exec(f"from __future__ import annotations\n{head}: pass", scope)
    return parameters(next(v for v in scope.values() if inspect.isfunction(v)))


def parameters(function):
    return [(p.name, p.kind.name, p.default) for p in inspect.signature(function).parameters.values()]


EXTENSION = "a class of the extension: its methods take `self` by position only, and no program names it"
#: Where the surface differs from the file, and why.
DIFFERENCES = {
    "where": "the file has the signature of `select` there; the order is the issue's",
    "coalesce": "takes a profile besides, which may be left out",
    "MetalRuntime.__init__": "takes a device and a limit of threadgroup memory besides",
    "CompiledKernel.export_metal": "takes the buffers' sizes besides",
    "compile": "takes `async_copies` besides, which may be left out",
    "Tensor.load": "takes a mask besides, and what stands where it does not hold",
    "Tensor.store": "takes a mask besides",
    **{
        f"{cls}.{method}": EXTENSION
        for cls in ("Layout", "SwizzledLayout")
        for method in "__init__ __call__ size rank depth cosize".split()
    },
    "Swizzle.__init__": EXTENSION,
    "Swizzle.__call__": EXTENSION,
}


def compared():
    """Every function and method of the file, and what is there; properties have no parameters."""
    for name, recorded in SURFACE.items():
        thing = getattr(enigma, name)
        if isinstance(recorded, dict):
            for method, signature in recorded.items():
                found = inspect.getattr_static(thing, method)
                if isinstance(found, property) or inspect.isgetsetdescriptor(found):
                    assert signature == "(self)", f"{name}.{method}"
                else:
                    yield f"{name}.{method}", signature, getattr(thing, method)
        elif isinstance(recorded, str) and recorded.startswith("def "):
            yield name, recorded, thing


def test_every_signature_is_the_recorded_one(capsys):
    different, seen = [], 0
    for name, recorded, thing in compared():
        seen += 1
        if recorded_parameters(recorded) != parameters(thing):
            different.append(name)
    assert seen > 250
    assert sorted(different) == sorted(DIFFERENCES)
    with capsys.disabled():
        print(f"\n{seen} signatures of the Enigma DSL, {len(different)} of them not as recorded:")
        for reason in dict.fromkeys(DIFFERENCES.values()):
            names = [name for name in different if DIFFERENCES[name] == reason]
            print(f"  {', '.join(names)}: {reason}")


def test_classes_of_the_extension_take_the_recorded_names():
    layout = enigma.Layout(shape=(4, 8), stride=(8, 1))
    swizzle = enigma.Swizzle(bits=1, base=0, shift=3)
    assert layout(coord=(1, 2)) == 10 and layout.size(mode=[1]) == 8 and swizzle(offset=8) == 9
    both = enigma.SwizzledLayout(layout=layout, swizzle=swizzle)
    assert both(coord=(1, 2)) == 11 and both.size(mode=0) == 4
    with pytest.raises(TypeError, match="one coordinate"):
        layout(1, coord=2)


@pytest.mark.parametrize("name", SURFACE)
def test_every_public_name_is_there(name):
    recorded, thing = SURFACE[name], getattr(enigma, name)
    assert not isinstance(recorded, str) or not recorded.startswith("def ") or callable(thing)
    assert not isinstance(recorded, dict) or inspect.isclass(thing)


@enigma.kernel
def keywords(a: enigma.f32, out: enigma.f32):
    i = enigma.thread_position_in_grid
    x = enigma.clamp(hi=1.0, lo=-1.0, x=a[i])
    y = enigma.exp(x=x) + enigma.fma(a=x, b=x, c=1.0) + enigma.mix(a=x, b=2.0, t=0.5)
    z = enigma.simd_shuffle_xor(value=y, mask=1) + enigma.simd_sum(x=x)
    v = enigma.make_float2(x=x, y=y)
    z = z + enigma.simd_broadcast(value=x, lane=3) + enigma.dot(a=v, b=v) - enigma.length(v=v) ** 2
    enigma.store_if(buf=out, index=i, value=z + enigma.step(edge=0.0, x=x), mask=i < 32)


def test_operands_go_by_keyword():
    a = np.linspace(-2, 2, 32, dtype=np.float32)
    got = run(keywords, [a], 32, threads=32)
    x = np.clip(a, -1, 1)
    y = np.exp(x) + x * x + 1 + (x + 2) / 2
    wanted = y.reshape(-1, 2)[:, ::-1].reshape(-1) + x.sum() + x[3] + (x >= 0)
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "module",
    "tensor core tuple typing ops testing benchmark compiler.compiler compiler.kernel "
    "runtime_dispatch.runtime _tracing".split(),
)
def test_submodules(module):
    found = importlib.import_module(f"invar.enigma.{module}")
    assert found.__doc__
    assert module != "_tracing" or found.Tensor is enigma.Tensor


def test_constants_of_the_package():
    assert enigma.__version__ == invar.__version__
    assert enigma.f32 is enigma.Float32() and enigma.b1 is enigma.Bool()
    assert list(enigma.range_constexpr(3)) == [0, 1, 2]
    assert enigma.testing.is_metal_available() is True
    assert enigma.testing.is_darwin() == (sys.platform == "darwin")
    assert not enigma.testing.is_apple_silicon() or enigma.testing.is_darwin()


# ---- arithmetic ----


@enigma.kernel
def mixes(a: enigma.Int32, b: enigma.Float32, out: enigma.Float32):
    out[0] = a[0] + b[0]
    out[1] = b[0] + a[0]
    out[2] = a[0] / 2
    out[3] = a[0] // 2
    out[4] = a[0] * 2.9
    out[5] = 2 * b[0]
    out[6] = 7 / a[0]


def test_the_left_operand_s_type_wins():
    got = run(mixes, [np.array([-7], np.int32), np.array([2.75], np.float32)], 7)
    # int + float: the float becomes 2; float + int; C's division; the literal 2.9 becomes 2.
    assert got.tolist() == [-5.0, -4.25, -3.0, -3.0, -14.0, 5.5, -1.0]


@enigma.kernel
def compares(a: enigma.UInt32, b: enigma.UInt32, out: enigma.Int32):
    out[0] = enigma.where(0, 1, enigma.cmp_lt(a[0], b[0]))
    out[1] = enigma.where(0, 1, enigma.cmp_ult(a[0], b[0]))
    out[2] = enigma.where(0, 1, enigma.cmp_ge(a[0], b[0]))
    out[3] = enigma.where(0, 1, enigma.cmp_uge(a[0], b[0]))
    both = (a[0] > 1) & (b[0] == 1)
    out[4] = enigma.where(7, 9, both | (a[0] == 0))


def test_comparisons_say_their_sign():
    a, b = np.array([0xFFFFFFFF], np.uint32), np.array([1], np.uint32)
    assert run(compares, [a, b], 5, dtype=np.int32).tolist() == [1, 0, 0, 1, 9]


@enigma.kernel
def literals(out: enigma.Int64):
    big = 4000000000
    n = 5
    out[0] = enigma.metal_cast(big, "uint")
    out[1] = enigma.as_type(enigma.metal_cast(n, "uint") - 6, "int")
    out[2] = enigma.as_type(enigma.Float32(1.0), "uint")


def test_literals_and_bits():
    assert run(literals, [], 3, dtype=np.int64).tolist() == [4000000000, -1, 0x3F800000]


@enigma.kernel
def functions(a: enigma.f32, out: enigma.f32):
    i = enigma.thread_position_in_grid
    v = enigma.make_float3(a[i], a[i] + 1, 2)
    out[i] = enigma.dot(v, v) + enigma.vec_extract(v, 1) + v.z
    out[i] += enigma.clamp(a[i], 0.0, 1.0) + enigma.fma(a[i], a[i], 1)


def test_functions_and_vectors():
    a = np.linspace(-2, 2, 8, dtype=np.float32)
    got = run(functions, [a], 8, threads=8)
    wanted = a * a + (a + 1) ** 2 + 4 + (a + 1) + 2 + np.clip(a, 0, 1) + (a * a + 1)
    np.testing.assert_allclose(got, wanted, rtol=1e-6)


@enigma.kernel
def packs(out: enigma.UInt32):
    word = enigma.pack_uint8x4(1, 2, 3, 4)
    out[0] = word
    a, b, c, d = enigma.unpack_uint8x4(word)
    out[1] = a + b * 10 + c * 100 + d * 1000
    lo, hi = enigma.unpack_int4x2(enigma.pack_int4x2(-3, 6))
    out[2] = enigma.as_type(lo * 100 + hi, "uint")
    out[3] = enigma.metal_cast(enigma.dequantize_int8(10, 0.5, 4), "uint")
    out[4] = enigma.extract_bits(word, 8, 8)
    out[5] = enigma.insert_bits(word, 9, 0, 8)
    out[6] = enigma.iclamp(enigma.metal_cast(-5, "int"), -2, 3) + 10
    out[7] = enigma.abs_diff_unary(enigma.metal_cast(-5, "int"))


def test_small_integers():
    got = run(packs, [], 8, dtype=np.uint32)
    assert got.tolist()[:2] == [0x04030201, 4321]
    assert got.view(np.int32)[2] == -294
    assert got.tolist()[3:] == [3, 2, 0x04030209, 8, 5]


# ---- control flow ----


@enigma.kernel
def blocks(a: enigma.Float32, out: enigma.Float32, n: enigma.Scalar(enigma.UInt32)):
    with enigma.for_range(0, n, init=[0.0, 1]) as (i, carry):
        with enigma.if_(a[i] > 2.0):
            enigma.store_if(out, 1, 5.0, i == 3)
        carry[0] = carry[0] + a[i]
        carry[1] = carry[1] * 2
    out[0] = carry[0]
    out[2] = carry[1]
    r = enigma.register_tensor((2, 2), "int", 1)
    with enigma.while_(lambda: r[1, 0] < 10):
        r[1, 0] = r[1, 0] + 3
    out[3] = r[1, 0]
    out[4] = r[0, 1]
    with enigma.for_range(5, 0, -2) as i:
        out[5] = i


def test_with_blocks():
    got = run(blocks, [np.arange(10, dtype=np.float32)], 6, scalars=[10])
    assert got.tolist() == [45, 5, 1024, 10, 1, 1]


@enigma.kernel
def carried(a: enigma.Float32, out: enigma.Float32, n: enigma.Scalar("int")):
    total = 0.0
    pair = [0.0, 1.0]
    for i in enigma.range(n):
        total += a[i]
        pair[0] = pair[0] + 1
        if a[i] == 3.0:
            continue
        pair[1] = pair[1] + a[i]
    for k in enigma.range_constexpr(2):
        out[k] = pair[k]
    out[2] = total


def test_range_carries_names_and_elements_of_lists():
    got = run(carried, [np.arange(5, dtype=np.float32)], 3, scalars=[5])
    assert got.tolist() == [5, 8, 10]


def test_a_name_rebound_in_a_block_is_refused_behind_it():
    @enigma.kernel
    def outer(a: enigma.Float32, out: enigma.Float32):
        x = a[0]
        y = a[1]
        with enigma.if_(a[2] > 0.0):
            x = y
        out[0] = x

    with pytest.raises(KernelError, match=r"`x` is set inside a `with` block.*init="):
        enigma.compile(outer)

    @enigma.kernel
    def leaks(a: enigma.Float32, out: enigma.Float32):
        kept = []
        with enigma.for_range(0, 4) as i:
            kept.append(a[i])
        out[0] = kept[0]

    with pytest.raises(KernelError, match=r"`append\(\)` changes a Python list in a branch or loop"):
        enigma.compile(leaks)

    @enigma.kernel
    def jumps(a: enigma.Float32):
        with enigma.if_(a[0] > 0.0):
            return
        a[1] = 1.0

    with pytest.raises(KernelError, match="jump cannot leave a `with` block"):
        enigma.compile(jumps)


# ---- threads and memory ----


@enigma.kernel
def reverses(a: enigma.Float32, out: enigma.Float32):
    t = enigma.arch.thread_idx()[0]
    group = enigma.arch.block_idx()[0]
    tile = enigma.threadgroup_alloc("float", 64)
    tile[t] = a[group * 64 + t]
    enigma.barrier()
    out[group * enigma.arch.block_dim()[0] + t] = tile[63 - t]


def test_threadgroup_memory():
    a = np.arange(256, dtype=np.float32)
    got = run(reverses, [a], 256, threads=256, group=64)
    assert (got == a.reshape(4, 64)[:, ::-1].reshape(-1)).all()
    assert "barrier threadgroup [threadgroup]" in enigma.compile(reverses).mlir_source


@enigma.kernel
def lanes(a: enigma.Float32, out: enigma.Float32):
    i = enigma.thread_position_in_grid
    out[i] = enigma.simd_sum(a[i]) + enigma.simd_shuffle_xor(a[i], 1)


def test_simdgroup_functions_require_simdgroups_of_32():
    compiled = enigma.compile(lanes)
    assert "simdgroup(32)" in compiled.mlir_source
    assert "simdgroup(" not in enigma.compile(reverses).mlir_source
    a = np.arange(64, dtype=np.float32)
    got = run(compiled, [a], 64, threads=64)
    wanted = np.repeat(a.reshape(2, 32).sum(1), 32) + a.reshape(-1, 2)[:, ::-1].reshape(-1)
    assert (got == wanted).all()


@enigma.kernel
def counts(a: enigma.UInt32, out: enigma.UInt32):
    i = enigma.thread_position_in_grid
    enigma.atomic_fetch_add(out, a[i] & 3, 1)
    out.atomic_fetch_max(4, a[i])
    won = enigma.atomic_compare_exchange_weak(out, 5, 0, 77)
    with enigma.if_(won):
        out.atomic_fetch_add(6, 1)


def test_atomics():
    got = run(counts, [np.arange(10, dtype=np.uint32)], 7, threads=10, dtype=np.uint32)
    assert got.tolist() == [3, 3, 2, 2, 9, 77, 1]


@enigma.kernel
def guarded(a: enigma.Float32, out: enigma.Float32):
    i = enigma.thread_position_in_grid
    out[i] = enigma.load_if(a, i, i < 3, -1.0)


def test_load_if_does_not_access_where_its_mask_is_false():
    got = run(guarded, [np.ones(3, np.float32)], 5, threads=5)
    assert got.tolist() == [1, 1, 1, -1, -1]
    text = enigma.compile(guarded).mlir_source
    assert text.index("if %") < text.index("load %a")


@enigma.kernel
def halves(a: enigma.Float16, out: enigma.Float32):
    i = enigma.thread_position_in_grid
    out[i] = a[i] * 2


def test_a_group_of_elements_an_index():
    @enigma.kernel
    def twice(a: enigma.Float32, out: enigma.Float32):
        i = enigma.thread_position_in_grid
        out[i] = a[i] * 2.0 + a[i]

    a = np.arange(64, dtype=np.float32)
    got = run(enigma.compile(twice, vec_width=4), [a], 64, threads=16)
    assert (got == a * 3).all()
    assert "* 4]" in enigma.compile(twice, vec_width=4).mlir_source
    assert (run(halves, [a.astype(np.float16)], 64, threads=64) == 2 * a).all()


@enigma.kernel
def staged(a: enigma.Float32, out: enigma.Float32, n: enigma.Scalar(enigma.UInt32)):
    t = enigma.thread_index_in_threadgroup()
    pipe = enigma.pipeline("float", 32, 2)
    pipe.back()[t] = a[t]
    total = 0.0
    for k in enigma.range(n):
        pipe.advance()
        enigma.barrier()
        total += pipe.front()[31 - t]
        with enigma.if_(k + 1 < n):
            pipe.back()[t] = a[(k + 1) * 32 + t]
    out[t] = total


def test_pipelines_carry_their_phase():
    a = np.random.default_rng(1).random(32 * 6, dtype=np.float32)
    got = run(staged, [a], 32, threads=32, scalars=[6])
    np.testing.assert_allclose(got, a.reshape(6, 32)[:, ::-1].sum(0), rtol=1e-6)
    assert enigma.compile(staged).mlir_source.count("alloc threadgroup") == 1


@enigma.kernel
def tiles(a: enigma.Float32, b: enigma.Float32, c: enigma.Float32):
    A = enigma.threadgroup_alloc("float", 256)
    B = enigma.threadgroup_alloc("float", 256)
    C = enigma.threadgroup_alloc("float", 256)
    t = enigma.thread_index_in_threadgroup()
    enigma.copy(a, A, 256)
    enigma.copy(b, B, 256, coalesced_width=4)
    enigma.barrier()
    enigma.gemm(A, B, C, M=16, N=16, K=16, transpose_B=True)
    enigma.barrier()
    enigma.copy(C, c, 256, mask_fn=lambda i: i < 255)


def test_gemm_and_copy():
    rng = np.random.default_rng(2)
    a, b = rng.random((2, 16, 16), dtype=np.float32)
    got = run(tiles, [a, b], 256, threads=64, group=64).reshape(16, 16)
    wanted = a @ b.T
    assert got[15, 15] == 0
    wanted[15, 15] = 0
    np.testing.assert_allclose(got, wanted, rtol=1e-5)


@enigma.kernel
def arrives(a: enigma.Float32, out: enigma.Float32):
    tile = enigma.threadgroup_alloc("float", 64)
    t = enigma.thread_index_in_threadgroup()
    enigma.async_copy_2d_d2t(tile, 0, 8, a, 2, 16, 8, 4)
    enigma.async_copy_wait()
    enigma.barrier()
    out[t] = tile[t]


def test_async_copies():
    a = np.arange(64, dtype=np.float32)
    got = run(arrives, [a], 32, threads=32).reshape(4, 8)
    assert (got == a.reshape(4, 16)[:, 2:10]).all()


# ---- tensors and layouts ----


def add_tiled(a, b, c):
    thr, val = enigma.make_layout((4, 64), (64, 1)), enigma.make_layout((4, 4), (4, 1))
    tile, owners = enigma.make_layout_tv(thr, val)
    divided = [enigma.tensor_zipped_divide(t, tile) for t in (a, b, c)]

    @enigma.kernel
    def add(x, y, z):
        thread = enigma.thread_index_in_threadgroup()
        block = enigma.threadgroup_position_in_grid()
        mine = [
            enigma.tensor_composition(t[None, block], owners, tile)[thread, None] for t in (x, y, z)
        ]
        mine[2].store(mine[0].load() + mine[1].load() * 2)

    blocks = enigma.size(divided[0], mode=[1])
    add(*divided).launch((blocks * 256, 1, 1), (256, 1, 1))


def test_thread_value_tiled_addition():
    shape = (64, 512)
    layout = enigma.make_layout(shape, (512, 1))
    tensors = [enigma.Tensor(n, i, "float", layout) for i, n in enumerate("abc")]
    compiled = enigma.compile(enigma.jit(add_tiled), *tensors)
    assert compiled.grid == (8 * 256, 1, 1) and compiled.block == (256, 1, 1)
    # Four neighbours of a row are one vector.
    assert ": 4]" in compiled.mlir_source
    assert "kernel @add(%a: device read f32, %b: device read f32, %c: device write f32)" in (
        compiled.mlir_source
    )
    rng = np.random.default_rng(3)
    a, b = rng.random((2, *shape), dtype=np.float32)
    got = RUN.execute(compiled, [a, b], a.nbytes, compiled.grid, compiled.block)
    np.testing.assert_array_equal(np.frombuffer(got, np.float32).reshape(shape), a + b * 2)


def test_tensors_in_a_kernel():
    @enigma.kernel
    def transposes(a: enigma.Float32, out: enigma.Float32):
        i = enigma.thread_position_in_grid_xyz("x")
        x = enigma.Tensor("a", 0, "float", enigma.make_layout((4, 8), (8, 1)), base_offset=i * 32)
        y = enigma.Tensor("out", 1, "float", enigma.make_layout((8, 4), (4, 1)), base_offset=i * 32)
        for k in range(8):
            y[k, None].store(x[None, k].load())
        assert x.size(mode=[1]) == 8 and enigma.size(x) == 32 and x.element_type == "float"
        # One flat index ignores the layout and the offset.
        with enigma.if_(i == 0):
            out[0] = x[5]

    a = np.arange(64, dtype=np.float32)
    got = run(transposes, [a], 64, threads=2).reshape(2, 8, 4)
    wanted = a.reshape(2, 4, 8).transpose(0, 2, 1).copy()
    wanted[0, 0, 0] = 5
    assert (got == wanted).all()


def test_swizzled_tensors():
    layout = enigma.swizzle(enigma.make_layout((8, 8), (8, 1)), 3, 0, 3)

    @enigma.kernel
    def through(a: enigma.Float32, out: enigma.Float32):
        t = enigma.thread_index_in_threadgroup()
        tile = enigma.threadgroup_alloc("float", 64)
        view = enigma.Tensor.on(tile.memory, layout=layout)
        row, column = t // 8, t % 8
        view[row, column] = a[t]
        enigma.barrier()
        out[t] = view[column, row]
        out[64 + t] = tile[t]

    a = np.arange(64, dtype=np.float32)
    got = run(through, [a], 128, threads=64)
    assert (got[:64].reshape(8, 8) == a.reshape(8, 8).T).all()
    assert [int(got[64 + layout((i, j))]) for i in range(8) for j in range(8)] == list(range(64))


def test_elements_are_reduced_before_lanes():
    @enigma.kernel
    def sums(a: enigma.Float32, out: enigma.Float32):
        t = enigma.thread_index_in_threadgroup()
        mine = enigma.Tensor("a", 0, "float", enigma.make_layout((32, 6), (6, 1)))[t, None].load()
        out[t] = enigma.simd_sum(mine * mine + 1)

    a = np.arange(192, dtype=np.float32)
    got = run(sums, [a], 32, threads=32)
    np.testing.assert_allclose(got, np.full(32, (a * a + 1).sum()), rtol=1e-5)


# ---- the runtime ----


def test_kernels_compile_in_threads_and_their_traces_die_anywhere():
    code = """
import gc, sys, threading
sys.path.insert(0, {folder!r})
import threads_kernel as k
gc.disable()
made = []
def work():
    for _ in range(5):
        made.append(k.enigma.compile(k.kernel).kernel_name)
        try:
            k.enigma.compile(k.wrong)
        except k.enigma.EnigmaError as e:
            made.append(e)
workers = [threading.Thread(target=work) for _ in range(4)]
for w in workers: w.start()
for w in workers: w.join()
assert len(made) == 40
del made[:]
gc.collect()
print("done")
"""
    kernel = """
from invar import enigma
@enigma.kernel
def kernel(a: enigma.Float32, out: enigma.Float32):
    i = enigma.thread_position_in_grid
    with enigma.if_(i < 4):
        out[i] = a[i]
@enigma.kernel
def wrong(a: enigma.Float32):
    a[0] = a[0] + "one"
"""
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "threads_kernel.py").write_text(kernel)
        program = [sys.executable, "-c", code.replace("{folder!r}", repr(folder))]
        done = subprocess.run(program, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_inputs_are_copies():
    @enigma.kernel
    def scratch(a: enigma.Float32, b: enigma.Float32, out: enigma.Float32):
        i = enigma.thread_position_in_grid
        a[i] = a[i] + 1.0
        out[i] = a[i] + b[i]

    x = np.arange(4, dtype=np.float32)
    assert run(scratch, [x, x], 4, threads=4).tolist() == [1, 3, 5, 7]
    assert x.tolist() == [0, 1, 2, 3]
    # Bytes are bytes, and what is not contiguous is copied so.
    assert run(scratch, [x.view(np.int32), x[::-1]], 4, threads=4).tolist() == [4, 4, 4, 4]


def test_outputs_by_size_shape_and_type():
    @enigma.kernel
    def two(n: enigma.Scalar(enigma.Float32), a: enigma.Float32, b: enigma.UInt32):
        i = enigma.thread_position_in_grid
        a[i] = n
        b[i] = i

    compiled = enigma.compile(two)
    options = dict(grid=(4, 1, 1), threads=(4, 1, 1), scalars=[1.5])
    a, b = RUN.execute(compiled, [], output_sizes=[16, 16], **options)
    assert isinstance(a, bytes) and np.frombuffer(b, np.uint32).tolist() == [0, 1, 2, 3]
    a, b = RUN.execute(
        compiled, [], output_shapes=[(2, 2), (4,)], output_dtypes=["float", np.uint32], **options
    )
    assert a.tolist() == [[1.5, 1.5], [1.5, 1.5]] and b.dtype == np.uint32
    with pytest.raises(RuntimeError, match=r"n: Scalar\(float\), a: float, b: uint"):
        RUN.execute(compiled, [], 16, (4, 1, 1), (4, 1, 1))
    with pytest.raises(enigma.EnigmaError, match="sizes are missing"):
        RUN.execute(compiled, [], **options)
    with pytest.raises(enigma.EnigmaError, match="takes 16"):
        RUN.execute(compiled, [], output_sizes=[16, 8], output_shapes=[(4,), (4,)], **options)


def test_function_constants():
    @enigma.kernel
    def scaled(out: enigma.Float32):
        out[0] = enigma.function_constant("float", 3) * enigma.function_constant("uint", 7)

    compiled = enigma.compile(scaled)
    options = dict(constants={3: ("float", 1.5), 7: ("uint", 4)})
    assert run(compiled, [], 1, **options).tolist() == [6.0]
    with pytest.raises(RuntimeError, match="needs function constant 7"):
        run(compiled, [], 1, constants={3: ("float", 1.5)})
    with pytest.raises(RuntimeError, match="no function constant 9; it has 3, 7"):
        run(compiled, [], 1, constants={9: ("float", 1.5)})


def test_prepared_kernels():
    compiled = enigma.compile(halves)
    a = np.arange(8, dtype=np.float16)
    prepared = RUN.prepare(compiled, [a], 32)
    prepared.dispatch((8, 1, 1), (8, 1, 1))
    assert prepared.dispatch_timed((8, 1, 1), (8, 1, 1)) > 0
    assert np.frombuffer(prepared.read_output(), np.float32).tolist() == (2 * a).tolist()
    result = enigma.benchmark.bench_gpu(prepared, (8, 1, 1), (8, 1, 1), warmup=1, repeat=3)
    assert isinstance(result, enigma.benchmark.BenchResult) and len(result.samples_us) == 3
    assert "halves" in enigma.benchmark.format_bench_result(result)
    prepared.release()
    with pytest.raises(enigma.EnigmaError, match="released"):
        prepared.dispatch((8, 1, 1), (8, 1, 1))


def test_what_cannot_be_executed_says_so(tmp_path, monkeypatch):
    with pytest.raises(enigma.EnigmaError, match="not made by compile"):
        RUN.execute(enigma.CompiledKernel("k", "kernel void k() {}"), [], 4)
    only = enigma.compile(halves, emit_only=True)
    with pytest.raises(enigma.EnigmaError, match="emit_only"):
        RUN.execute(only, [np.zeros(1, np.float16)], 4)
    monkeypatch.setenv("ENIGMA_EMIT_ONLY", "1")
    with pytest.raises(enigma.EnigmaError, match="emit_only"):
        RUN.execute(enigma.compile(halves), [np.zeros(1, np.float16)], 4)
    monkeypatch.delenv("ENIGMA_EMIT_ONLY")
    enigma.compile(halves, dump_ir=True, work_dir=tmp_path)
    assert "kernel @halves" in (tmp_path / "halves.inv").read_text()
    with pytest.raises(enigma.EnigmaError, match="vec_width is from 0 to 4"):
        enigma.compile(halves, vec_width=7)
    with pytest.raises(enigma.EnigmaError, match="@kernel or @jit"):
        enigma.compile(lambda: None)


def test_what_a_compiled_kernel_tells():
    compiled = enigma.compile(halves)
    assert compiled.kernel_name == "halves" and compiled.has_metallib is False
    assert compiled.metallib_path is None and compiled.metallib_bytes is None
    assert invar._invar.parse("k.inv", compiled.mlir_source).kernels() == ["halves"]


def test_metal_source(tmp_path, monkeypatch):
    compiled = enigma.compile(add_tiled_kernel())
    text = compiled.metal_source
    assert "kernel void add(" in text and "#include <metal_stdlib>" in text
    assert compiled.kernel_source == text
    monkeypatch.chdir(tmp_path)
    assert compiled.export_metal() == "add.metal"
    assert (tmp_path / "add.metal").read_text() == text
    with pytest.raises(enigma.EnigmaError, match="names no file"):
        compiled.export_metal("")
    kept = enigma.compile(halves, keep_metal_source=True, work_dir=tmp_path / "kept")
    assert (tmp_path / "kept" / "halves.metal").read_text() == kept.metal_source

    @enigma.kernel
    def scaled(out: enigma.Float32):
        out[0] = enigma.function_constant("float", 3)

    assert "[[function_constant(3)]]" in enigma.compile(scaled).metal_source

    engine = '__asm("air.simdgroup_async_copy_2d.p3i8.p1i8")'
    assert engine in enigma.compile(arrives).metal_source
    assert engine not in enigma.compile(arrives, async_copies="expanded").metal_source
    with pytest.raises(enigma.EnigmaError, match="async_copies is 'expanded' or 'engine'"):
        enigma.compile(arrives, async_copies="apple")


def add_tiled_kernel():
    @enigma.kernel
    def add(a: enigma.Float32, out: enigma.Float32):
        i = enigma.thread_position_in_grid
        out[i] = a[i] + 1.0

    return add


def test_device_capabilities():
    device = RUN.device_capabilities()
    assert (device.gpu_family, device.gpu_family_raw) == ("apple9", 1009)
    assert device.simdgroup_size == 32 and device.supports_simdgroup_matrix
    assert device.is_m3_or_newer and device.require_m3("async copies") is None
    old = enigma.DeviceCapabilities(gpu_family="apple8", gpu_family_raw=1008)
    with pytest.raises(enigma.EnigmaError, match="needs an M3 or newer"):
        old.require_m3("async copies")


@pytest.mark.parametrize(
    "annotation, message",
    [("np.float99", "no attribute|float99"), ("'floaty'", "cannot be resolved: name 'floaty'"), ("'float5'", "float5"), ("None", "has no annotation"),
     ("'float*'", r"`a` of kernel `k` is annotated 'float\*', which cannot be resolved: it is not a Python"),
     ("'Scalar(UInt99)'", "annotated 'Scalar\\(UInt99\\)'")],
)
def test_parameters_need_a_type(annotation, message, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        f"import numpy as np\nfrom invar import enigma\n@enigma.kernel\n"
        f"def k(a: {annotation}):\n    a[0] = 1\nenigma.compile(k)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert done.returncode == 1
    assert re.search(message, done.stderr), done.stderr


def test_annotations_are_metal_s_types_too():
    @enigma.kernel
    def k(a: "float4", b: "int32_t", n: "enigma.Scalar('uint')", out: "half"):
        out[0] = a[1].y + b[0] + n

    a, b = np.arange(8, dtype=np.float32), np.array([2], np.int32)
    assert run(k, [a, b], 1, dtype=np.float16, scalars=[3]).tolist() == [10.0]


def test_annotations_in_text_name_what_is_around(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        """from __future__ import annotations
from invar import enigma

def make(kind):
    @enigma.kernel
    def k(a: kind, n: enigma.Scalar(kind), out: "float"):
        out[0] = a[0] * n

    return enigma.compile(k)

print(*(str(p) for p in make(enigma.Int32)._compiled.params), sep=", ")
"""
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("a: int, n: Scalar(int), out: float\n", "")


def errors():
    def mixed(a: enigma.Float32):
        a[0] = a[0] + "one"

    def unknown(a: enigma.Float32):
        a[0] = enigma.threadgroup_alloc("floaty", 4)[0]

    def bad_layout(a: enigma.Float32):
        a[0] = enigma.complement(enigma.make_layout((4, 4), (1, 1)), 8).size()

    def unread(a: "float*"):
        a[0] = 1

    def stores_to_constant(a: enigma.Float32):
        enigma.register_tensor((0,))[0] = 1

    return [mixed, unknown, bad_layout, unread, stores_to_constant]


@pytest.mark.parametrize("function", errors(), ids=lambda f: f.__name__)
def test_what_compile_refuses_is_an_enigma_error_with_the_author_s_line(function):
    with pytest.raises(enigma.EnigmaError) as e:
        enigma.compile(enigma.kernel(function))
    first = function.__code__.co_firstlineno
    assert isinstance(e.value, KernelError) and e.value.filename == __file__
    assert e.value.line == (first if function.__name__ == "unread" else first + 1)


def misuse():
    def iterated(a: enigma.Float32):
        for i in enigma.for_range(0, 4): a[i] = 1.0  # with `with` block is not iterated

    def alone(a: enigma.Float32):
        enigma.if_(a[0] > 1.0)  # if_ has no effect outside a `with` statement
        a[0] = 2.0

    def condition(a: enigma.Float32):
        if enigma.if_(a[0] > 1.0): a[0] = 2.0  # block is not a condition

    def whole(a: enigma.Float32):
        a[0] = enigma.exp(a)  # `a` is a tensor, where a value is needed

    def operand(a: enigma.Float32):
        a[0] = a + 1.0  # `a` is a tensor, not a value

    def register(a: enigma.Float32):
        r = enigma.register_tensor(4)
        a[0] = 2.0 * r  # `r` is a tensor, not a value

    def no_array(a: enigma.Float32):
        a[0] = enigma.Tensor("s", 0, "float", address_space="threadgroup")[0]  # no threadgroup array `s`

    def advised(a: enigma.Float32):
        a[a[0]] = 1.0  # convert it with enigma.UInt32

    return [iterated, alone, condition, whole, operand, register, no_array, advised]


@pytest.mark.parametrize("function", misuse(), ids=lambda f: f.__name__)
def test_what_is_written_wrongly_is_shown_at_its_line(function):
    lines = inspect.getsource(function).splitlines()
    number, wanted = next((i, x.split("# ")[1]) for i, x in enumerate(lines) if "# " in x)
    with pytest.raises(enigma.EnigmaError) as e:
        enigma.compile(enigma.kernel(function))
    assert wanted.removeprefix("with ") in e.value.message, e.value
    assert e.value.line == function.__code__.co_firstlineno + number


def test_outside_a_kernel_the_surface_says_so():
    for function in (lambda: enigma.exp(1.0), lambda: enigma.if_(True), lambda: enigma.barrier()):
        with pytest.raises((enigma.EnigmaError, invar.Error), match="inside a kernel"):
            function()


def test_what_execute_refuses_is_an_enigma_error(monkeypatch):
    compiled = enigma.compile(halves)
    a = np.zeros(4, np.float16)
    for changed in (
        dict(threads=(0, 1, 1)), dict(grid=(1.5, 1, 1)), dict(threads=(1 << 20, 1, 1)),
        dict(scalars=[1]), dict(constants={0: ("float", 1.0)}), dict(constants={0: 1.0}),
        dict(output_dtypes=["floaty"]), dict(output_dtypes=["float4"]), dict(output_size=-1),
        dict(inputs=[object()]), dict(inputs=None), dict(inputs=[["a"]]), dict(scalars=3),
    ):  # fmt: skip
        given = {**dict(inputs=[a], output_size=16, grid=(4, 1, 1), threads=(4, 1, 1)), **changed}
        with pytest.raises(enigma.EnigmaError):
            RUN.execute(compiled, **given)
    with pytest.raises(RuntimeError, match="n: Scalar"):
        RUN.execute(enigma.compile(carried), [np.zeros(4, np.float32)], 16)
    with pytest.raises(enigma.EnigmaError, match="'x', which does not fit n"):
        RUN.execute(enigma.compile(carried), [np.zeros(4, np.float32)], 16, scalars=["x"])
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(enigma.EnigmaError, match="ml_dtypes"):
        RUN.execute(compiled, [a], 16, output_dtypes=["bfloat"])


def test_races_of_enigma_kernels_are_found_by_the_verifier_and_checkers():
    @enigma.kernel
    def misses(a: enigma.Float32, out: enigma.Float32):
        t = enigma.thread_index_in_threadgroup()
        with enigma.if_(enigma.cmp_eq(t, 0)):
            out[0] = enigma.simd_sum(a[t])

    with pytest.raises(VerifyError, match="collective-not-uniform"):
        enigma.compile(misses)


SCRIPT = """
import sys
import numpy as np
import enigma
from enigma.runtime_dispatch.runtime import MetalRuntime
from enigma.compiler.compiler import compile as build

@enigma.kernel
def add(a: enigma.Float32, b: enigma.Float32, out: enigma.Float32):
    i = enigma.thread_position_in_grid
    out[i] = a[i] + b[i]

x = np.arange(8, dtype=np.float32)
got = MetalRuntime().execute(build(add), [x, x], x.nbytes, (8, 1, 1), (8, 1, 1))
print(np.frombuffer(got, np.float32).tolist(), sys.argv[1:])
"""


def test_an_unchanged_script_runs(tmp_path):
    script = tmp_path / "program.py"
    (tmp_path / "beside.py").write_text("")
    script.write_text("import beside\n" + SCRIPT)
    command = [sys.executable, "-m", "invar.enigma", script, "one", "--two"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == f"{[2.0 * i for i in range(8)]} ['one', '--two']"
    command[3] = tmp_path / "missing.py"
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and "no such file" in done.stderr


def test_a_star_import_leaves_tuple_alone(tmp_path):
    script = tmp_path / "star.py"
    script.write_text("from enigma import *\nprint(tuple([f32 is Float32()]), cmp_lt.__name__)\n")
    command = [sys.executable, "-m", "invar.enigma", script]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("(True,) cmp_lt\n", "")


def test_the_page_s_examples(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (pathlib.Path(__file__).parents[2] / "docs" / "enigma.md").read_text()
    examples = re.findall(r"```python\n(.*?)```", page, re.S)
    assert len(examples) == 5
    # A kernel's source must be in a file.
    import linecache

    for i, code in enumerate(examples):
        name = f"enigma.md example {i}"
        linecache.cache[name] = len(code), None, code.splitlines(True), name
        exec(compile(code, name, "exec"), {"__name__": "page"})


@pytest.mark.parametrize("width", [1, 4])
def test_copy_goes_through_layouts_and_offsets(width):
    rows = enigma.make_layout((8, 8), (8, 1))

    @enigma.kernel
    def copies(a: enigma.Float32, out: enigma.Float32, n: enigma.Scalar("uint")):
        whole = enigma.Tensor("a", 0, "float", rows)
        tile = enigma.tensor_zipped_divide(whole, (4, 4))[(None, None), 3]
        enigma.copy(tile, out, 16, coalesced_width=width)
        back = enigma.Tensor("out", 1, "float", enigma.make_layout((4, 4), (4, 1)), base_offset=16)
        enigma.copy(tile, back, n, coalesced_width=width)
        row = whole[2, None]
        enigma.copy(row, out, 4, src_offset=3, dst_offset=32, coalesced_width=width)
        enigma.copy(enigma.Tensor("a", 0, "float", base_offset=5), out, 4, dst_offset=36)

    x = np.arange(64, dtype=np.float32)
    got = RUN.execute(
        enigma.compile(copies), [x], 160, (32, 1, 1), (32, 1, 1), scalars=[16], output_dtypes=["float"]
    )
    tile = x.reshape(8, 8)[4:, 4:]
    assert got[:16].tolist() == tile.T.ravel().tolist()
    assert got[16:32].tolist() == tile.ravel().tolist()
    assert got[32:].tolist() == [19, 20, 21, 22, 5, 6, 7, 8]


def test_copy_of_an_array_given_to_compile_is_in_its_order():
    @enigma.kernel
    def copies(a, out):
        enigma.copy(a, out, 12)

    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    compiled = enigma.compile(copies, x, np.zeros(12, np.float32))
    assert RUN.execute(compiled, [x], 48, 32, 32) == x.tobytes()


def test_a_copy_beyond_a_layout_is_refused():
    @enigma.kernel
    def copies(a: enigma.Float32, out: enigma.Float32):
        enigma.copy(enigma.Tensor("a", 0, "float", enigma.make_layout(8)), out, 6, src_offset=4)

    with pytest.raises(enigma.EnigmaError, match="copy.. of 6 elements from element 4 on: .* `a` has 8"):
        enigma.compile(copies)


@enigma.kernel
def racy_total(a: enigma.Float32, out: enigma.Float32):
    out[0] = out[0] + a[enigma.thread_position_in_grid]


@enigma.kernel
def scaled(a: enigma.Float32, out: enigma.Float32, n: enigma.Scalar("uint")):
    i = enigma.thread_position_in_grid
    with enigma.if_(i < n):
        out[i] = a[i] * enigma.function_constant("float", 0)


def test_kernels_are_checked():
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    for kernel in (racy_total, enigma.compile(racy_total)):
        with pytest.raises(invar.CheckError, match="data-race"):
            invar.check(kernel, grid=64, threadgroup=64)(x, y)
    constants = {0: ("float", 2.0)}
    check = invar.check(scaled, grid=64, threadgroup=32, constants=constants, raises=False)
    assert check(x, y, 64).passed and not check(x, y[:32], n=64).passed

    @enigma.kernel
    def bare(a, out):
        out[0] = a[70]

    with pytest.raises(invar.CheckError, match="out of bounds|out-of-bounds"):
        invar.check(bare, grid=1, threadgroup=1)(x, y)
    with pytest.raises(enigma.EnigmaError, match="needs function constant 0"):
        invar.check(scaled, grid=64, threadgroup=32)(x, y, 64)
    with pytest.raises(enigma.EnigmaError, match="missing a required argument: 'n'"):
        invar.check(scaled, grid=64, threadgroup=32)(x, y)
    with pytest.raises(enigma.EnigmaError, match="takes its parameters in order: a: float, out: float"):
        invar.check(enigma.compile(scaled), grid=64, threadgroup=32)(x, y)


def test_a_runtime_of_the_checked_device_reports_races():
    compiled, x = enigma.compile(racy_total), np.arange(64, dtype=np.float32)
    checked = enigma.MetalRuntime(device="checked")
    assert checked.device.name == "checked" and RUN.device is invar.device()
    with pytest.raises(enigma.EnigmaError, match="data-race"):
        checked.execute(compiled, [x], 256, 64, 64)
    with pytest.raises(enigma.EnigmaError, match="data-race"):
        checked.prepare(compiled, [x], 256).dispatch(64, 64)
    with pytest.raises(enigma.EnigmaError, match="there is no device `nope`"):
        enigma.MetalRuntime(device="nope")


RACE = """
import numpy as np, enigma

@enigma.kernel
def k(a: enigma.Float32, out: enigma.Float32):
    out[0] = out[0] + a[enigma.thread_position_in_grid]

compiled = enigma.compile(k)
if __name__ == "__main__":
    enigma.MetalRuntime().execute(compiled, [np.ones(64, np.float32)], 256, 64, 64)
"""


def test_commands_check_an_unchanged_program(tmp_path):
    script = tmp_path / "race.py"
    script.write_text(RACE)

    def ran(*arguments):
        command = [sys.executable, "-m", *arguments]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)

    done = ran("invar.enigma", "--device", "checked", "race.py")
    assert done.returncode == 1 and "data-race" in done.stderr and "race.py:6" in done.stderr
    sizes = ["--grid", "64", "--threadgroup", "64", "--arg", "a=iota(64)", "--arg", "out=zeros(1)"]
    for name in ("race.py:k", "race.py", "race.py:compiled"):
        done = ran("invar", "check", name, *sizes)
        assert done.returncode == 1 and "data-race" in done.stdout + done.stderr, name
    done = ran("invar.enigma", "nope.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "python -m invar.enigma: nope.py: there is no such file\n"
    done = ran("invar.enigma", "--device", "nope", "race.py")
    assert done.returncode == 2 and "there is no device `nope`" in done.stderr


@enigma.kernel
def constants_of_each(out: enigma.Float32):
    i, b = enigma.function_constant("int", 0), enigma.function_constant("bool", 1)
    out[0] = enigma.where(0.0, i, b) + enigma.function_constant("float", 2)


GOOD = {0: ("int", -3), 1: ("bool", True), 2: ("float", 0.5)}


@pytest.mark.parametrize(
    "constants, said",
    [
        ({0: ("int", 1.5)}, "function constant 0 .* is 1.5, which does not fit a int"),
        ({0: ("int", 1 << 31)}, "function constant 0 .* does not fit a int"),
        ({1: ("bool", "x")}, "function constant 1 .* is 'x', which does not fit a bool"),
        ({2: ("float", "x")}, "function constant 2 .* is 'x', which does not fit a float"),
        ({2: ("float", None)}, "function constant 2 .* is None"),
        ({2: ("float", [1, 2])}, "function constant 2 .* has 2 components"),
        ([1.5], "write {index: .type, value.}"),
    ],
)
def test_constants_are_refused_as_scalars_are(constants, said):
    compiled = enigma.compile(constants_of_each)
    got = RUN.execute(compiled, [], 4, 1, 1, constants=GOOD, output_dtypes=["float"])
    assert got.tolist() == [-2.5]
    given = {**GOOD, **constants} if isinstance(constants, dict) else constants
    with pytest.raises(enigma.EnigmaError, match=said):
        RUN.execute(compiled, [], 4, 1, 1, constants=given)


@pytest.mark.parametrize(
    "options, said",
    [
        (dict(output_size=4, scalars=[None]), "scalar `n` is None, which does not fit n: Scalar"),
        (dict(output_size=4, scalars=[[1, [2]]]), "scalar `n` is .*, which does not fit"),
        (dict(output_sizes=4), "output_sizes is a list with one for each output, not 4"),
        (dict(output_shapes=4), "output_shapes is a list"),
        (dict(output_shapes=[(-1,)]), "the shape of output 0 is made of numbers of at least 0"),
        (dict(output_shapes=[("a",)]), "the shape of output 0 is made of numbers"),
    ],
)
def test_what_execute_is_given_wrongly(options, said):
    options = {"scalars": [1], "constants": {0: ("float", 1)}, **options}
    with pytest.raises(enigma.EnigmaError, match=said):
        RUN.execute(enigma.compile(scaled), [np.ones(4, np.float32)], **options)


def test_a_strided_memoryview_is_copied(tmp_path):
    x = memoryview(np.arange(8, dtype=np.float32))[::2]
    compiled = enigma.compile(scaled)
    got = RUN.execute(compiled, [x], 16, 4, 4, scalars=[4], constants={0: ("float", 1)})
    assert np.frombuffer(got, np.float32).tolist() == [0, 2, 4, 6]
    (tmp_path / "file").write_text("")
    for options in (dict(dump_ir=True), dict(keep_metal_source=True)):
        with pytest.raises(enigma.EnigmaError, match="scaled.* cannot be written: "):
            enigma.compile(scaled, work_dir=tmp_path / "file", **options)


def test_reports_advise_in_the_names_of_the_dsl():
    @enigma.kernel
    def race(a: enigma.Float32, o: enigma.Float32):
        t = enigma.thread_position_in_grid
        shared = enigma.threadgroup_alloc("float", 64)
        shared[t] = a[t]
        o[t] = shared[63 - t]

    runtime = enigma.MetalRuntime(device="checked")
    with pytest.raises(enigma.EnigmaError) as e:
        compiled = enigma.compile(race)
        runtime.execute(compiled, [np.ones(64, np.float32)], 256, (64, 1, 1), (64, 1, 1))
    assert e.value.findings[0].rule == "data-race"
    assert e.value.findings[0].help == 'put `enigma.barrier("mem_threadgroup")` between them'
    assert "iv." not in str(e.value) and e.value.findings[0].help in str(e.value)

    @enigma.kernel
    def beyond(a: enigma.Float32, o: enigma.Float32):
        o[0] = a[7]

    with pytest.raises(enigma.EnigmaError) as e:
        runtime.execute(enigma.compile(beyond), [np.ones(4, np.float32)], 4, (1, 1, 1), (1, 1, 1))
    assert e.value.findings[0].help == (
        "guard the access, as with `enigma.load_if` and `enigma.store_if`, or size the buffer"
    )

    @enigma.kernel
    def same(o: enigma.Float32):
        o[0] = 1.0

    with pytest.raises(enigma.EnigmaError) as e:
        runtime.execute(enigma.compile(same), [], 4, (2, 1, 1), (2, 1, 1))
    assert e.value.findings[0].help.endswith('by `invar.check(..., allow=["equal-stores"])`')
    check = invar.check(same, grid=2, threadgroup=2, allow=["equal-stores"], raises=False)
    assert check(np.zeros(1, np.float32)).passed


def test_scalars_that_would_become_others():
    @enigma.kernel
    def k(o: enigma.Float32, half: enigma.Scalar("half"), n: enigma.Scalar("uint")):
        o[0] = enigma.metal_cast(half, "float")

    compiled = enigma.compile(k)
    inf, nan = float("inf"), float("nan")
    for scalars, name in (([1e6, 1], "half"), ([1, inf], "n"), ([1, nan], "n"), ([1, 1.5], "n")):
        with pytest.raises(enigma.EnigmaError, match=f"scalar `{name}` is .* which does not fit"):
            enigma.MetalRuntime().execute(compiled, [], 4, (1, 1, 1), (1, 1, 1), scalars=scalars)

    @enigma.kernel
    def defaults(o: enigma.Float32, n: enigma.Scalar("uint") = 4):
        o[0] = enigma.metal_cast(n, "float")

    with pytest.raises(enigma.EnigmaError, match="parameter `n` of kernel `defaults` has a default"):
        enigma.compile(defaults)

    @enigma.kernel
    def mistaken(o: enigma.Float32):
        o[0] = [1][3]

    with pytest.raises(enigma.EnigmaError, match="IndexError while the kernel is compiled: list inde"):
        enigma.compile(mistaken)


@pytest.mark.parametrize(
    ("layout", "count", "fits"),
    [
        (enigma.Layout((4, 4), (64, 1)), 16, False),
        (enigma.Layout((4, 4), (64, 1)), 4, True),
        (enigma.Layout((4, 4), (4, 1)), 16, True),
    ],
)
def test_copies_of_consecutive_elements_of_a_view(layout, count, fits):
    @enigma.kernel
    def k(a: enigma.Float32, o: enigma.Float32):
        shared = enigma.threadgroup_alloc("float", 16)
        view = enigma.Tensor("view", 0, "float", layout)
        enigma.async_copy_wait(enigma.async_copy_1d_d2t(shared, 0, view, 0, count))
        enigma.barrier()
        t = enigma.thread_position_in_grid
        o[t] = shared[t % 16]

    if not fits:
        with pytest.raises(enigma.EnigmaError, match="16 consecutive elements of `view`.* 4 side by"):
            enigma.compile(k)
        return
    a = np.arange(256, dtype=np.float32)
    out = enigma.MetalRuntime().execute(enigma.compile(k), [a], 128, (32, 1, 1), (32, 1, 1))
    assert (np.frombuffer(out, np.float32)[:count] == a[:count]).all()
