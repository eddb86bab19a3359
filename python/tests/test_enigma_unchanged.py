"""What unchanged programs of the Enigma DSL rely on beside the surface's names: arms of branches, whole
copies, slices, the modules' names, attributes, exceptions, and how programs are started."""

import importlib
import subprocess
import sys
import unittest

import numpy as np
import pytest

import invar
from invar import enigma
from invar.enigma import _tracing, benchmark, core, ops, testing, tuple as tuples
from invar.enigma.compiler.mlir_emitter import emit_mlir, emit_msl

RUN = enigma.MetalRuntime()


def run(kernel, inputs, count, threads=1, group=None, dtype=np.float32, **options):
    """One output of a kernel, as an array of so many elements."""
    compiled = kernel if isinstance(kernel, enigma.CompiledKernel) else enigma.compile(kernel)
    size = count * np.dtype(dtype).itemsize
    raw = RUN.execute(compiled, inputs, size, (threads, 1, 1), (group or threads, 1, 1), **options)
    return np.frombuffer(raw, dtype)


# ---- arms of an if_ ----


def test_an_if_of_two_arms():
    @enigma.kernel
    def sides(a: enigma.Float32, out: enigma.Float32):
        i = enigma.thread_position_in_grid
        with enigma.if_(enigma.cmp_gt(a[i], 0.0)) as (then_b, else_b):
            with then_b:
                out[i] = a[i] * 2.0
            with else_b:
                with enigma.if_(enigma.cmp_lt(a[i], -2.0)) as (low, high):
                    with high:
                        out[i] = 7.0
                    with low:
                        out[i] = -7.0

    assert run(sides, [np.float32([1, -1, -3, 4])], 4, threads=4).tolist() == [2, 7, -7, 8]
    assert enigma.compile(sides).mlir_source.count("if %") == 2


@pytest.mark.parametrize("arm, right", [(0, [5, 0]), (1, [0, 5])])
def test_an_arm_may_be_left_out(arm, right):
    @enigma.kernel
    def one(out: enigma.Float32):
        i = enigma.thread_position_in_grid
        with enigma.if_(enigma.cmp_eq(i, 0)) as arms:
            with arms[arm]:
                out[i] = 5.0

    assert run(one, [], 2, threads=2).tolist() == right


def test_arms_that_no_with_enters_leave_the_block_as_it_is():
    @enigma.kernel
    def plain(out: enigma.Float32):
        i = enigma.thread_position_in_grid
        with enigma.if_(enigma.cmp_eq(i, 0)) as (then_b, _else_b):
            out[i] = 5.0

    assert run(plain, [], 2, threads=2).tolist() == [5, 0]


@enigma.kernel
def between_arms(out: enigma.Float32):
    with enigma.if_(enigma.cmp_eq(enigma.thread_position_in_grid, 0)) as (then_b, else_b):
        with then_b:
            out[0] = 1.0
        out[1] = 1.0
        with else_b:
            out[2] = 1.0


@enigma.kernel
def before_arms(out: enigma.Float32):
    with enigma.if_(enigma.cmp_eq(enigma.thread_position_in_grid, 0)) as (then_b, else_b):
        out[1] = 1.0
        with then_b:
            out[0] = 1.0


@enigma.kernel
def behind_arms(out: enigma.Float32):
    with enigma.if_(enigma.cmp_eq(enigma.thread_position_in_grid, 0)) as (then_b, else_b):
        with then_b:
            out[0] = 1.0
        out[1] = 1.0


@enigma.kernel
def arm_twice(out: enigma.Float32):
    with enigma.if_(enigma.cmp_eq(enigma.thread_position_in_grid, 0)) as (then_b, else_b):
        with then_b:
            out[0] = 1.0
        with then_b:
            out[1] = 1.0


@enigma.kernel
def arm_outside(out: enigma.Float32):
    with enigma.if_(enigma.cmp_eq(enigma.thread_position_in_grid, 0)) as (then_b, else_b):
        with then_b:
            out[0] = 1.0
    with else_b:
        out[1] = 1.0


@enigma.kernel
def arm_in_a_branch(out: enigma.Float32):
    i = enigma.thread_position_in_grid
    with enigma.if_(enigma.cmp_eq(i, 0)) as (then_b, else_b):
        with then_b:
            out[0] = 1.0
        if i > 3:
            with else_b:
                out[1] = 1.0


@enigma.kernel
def rebound_in_an_arm(a: enigma.Float32, out: enigma.Float32):
    x = a[0]
    with enigma.if_(enigma.cmp_eq(enigma.thread_position_in_grid, 0)) as (then_b, else_b):
        with then_b:
            x = a[1]
    out[0] = x


@pytest.mark.parametrize(
    "kernel, said",
    [
        (between_arms, "beside the arms"),
        (before_arms, "beside the arms"),
        (behind_arms, "beside the arms"),
        (arm_twice, "has a block already"),
        (arm_outside, "stands in the block of that if_"),
        (arm_in_a_branch, "arm"),
        (rebound_in_an_arm, "`x` is set inside a `with` block"),
    ],
    ids=lambda x: getattr(x, "name", ""),
)
def test_what_arms_cannot_be(kernel, said):
    with pytest.raises(enigma.EnigmaError, match=said):
        enigma.compile(kernel)


# ---- copy ----


def test_each_thread_makes_its_copy():
    @enigma.kernel
    def own(a: enigma.Float32, out: enigma.Float32):
        t = enigma.thread_position_in_grid
        enigma.copy(a, out, count=4, src_offset=t * 4, dst_offset=t * 4)

    x = np.arange(256, dtype=np.float32)
    assert run(own, [x], 256, threads=64).tolist() == x.tolist()


@pytest.mark.parametrize("width", [1, 2, 4])
def test_a_copy_of_one_thread_is_whole(width):
    @enigma.kernel
    def one(a: enigma.Float32, out: enigma.Float32):
        with enigma.if_(enigma.cmp_eq(enigma.thread_position_in_grid, 0)):
            enigma.copy(a, out, count=64, coalesced_width=width)

    x = np.arange(64, dtype=np.float32)
    assert run(one, [x], 64, threads=64).tolist() == x.tolist()


def test_a_copy_is_seen_by_its_own_thread_at_once():
    @enigma.kernel
    def reads(a: enigma.Float32, out: enigma.Float32):
        t = enigma.thread_position_in_grid
        tile = enigma.threadgroup_alloc("float", 64)
        enigma.copy(a, tile, count=64)
        out[t] = tile[63 - t]

    x = np.arange(64, dtype=np.float32)
    assert run(reads, [x], 64, threads=64).tolist() == x[::-1].tolist()


def test_a_copy_s_mask_counts_in_signed_numbers():
    @enigma.kernel
    def masked(a: enigma.Float32, out: enigma.Float32):
        inside = lambda i: (i - 2 < 2) & (i - 2 >= 0)
        enigma.copy(a, out, count=6, mask_fn=inside, coalesced_width=2)

    assert run(masked, [np.arange(1, 7, dtype=np.float32)], 6).tolist() == [0, 0, 3, 4, 0, 0]


def test_a_copy_of_other_widths_is_refused():
    @enigma.kernel
    def wide(a: enigma.Float32, out: enigma.Float32):
        enigma.copy(a, out, count=6, coalesced_width=3)

    with pytest.raises(enigma.EnigmaError, match="coalesced_width is 1, 2 or 4, not 3"):
        enigma.compile(wide)


# ---- gemm ----


@pytest.mark.parametrize("size", [8, 12])
def test_gemm_into_memory_begins_with_a_barrier(size):
    @enigma.kernel
    def product(a: enigma.Float32, b: enigma.Float32, out: enigma.Float32):
        t = enigma.thread_index_in_threadgroup()
        left = enigma.threadgroup_alloc("float", size * size)
        right = enigma.threadgroup_alloc("float", size * size)
        total = enigma.threadgroup_alloc("float", size * size)
        for i in enigma.range(t, size * size, 64):
            left[i] = a[i]
            right[i] = b[i]
        enigma.gemm(left, right, total, M=size, N=size, K=size)
        enigma.barrier()
        for i in enigma.range(t, size * size, 64):
            out[i] = total[i]

    rng = np.random.default_rng(1)
    a, b = (rng.random((size, size), dtype=np.float32) for _ in range(2))
    checked = enigma.MetalRuntime(device="checked")
    compiled = enigma.compile(product)
    for runtime in (RUN, checked):
        got = runtime.execute(compiled, [a, b], a.nbytes, (64, 1, 1), (64, 1, 1))
        assert np.allclose(np.frombuffer(got, np.float32).reshape(size, size), a @ b, rtol=1e-5)


@pytest.mark.parametrize("m, n, k", [(16, 16, 16), (8, 8, 8), (3, 4, 2)])
def test_gemm_into_a_register_tensor_of_any_size(m, n, k):
    @enigma.kernel
    def product(a: enigma.Float32, b: enigma.Float32, out: enigma.Float32):
        left = enigma.threadgroup_alloc("float", m * k)
        right = enigma.threadgroup_alloc("float", k * n)
        enigma.copy(a, left, count=m * k)
        enigma.copy(b, right, count=k * n)
        enigma.barrier()
        total = enigma.register_tensor((m, n), dtype="float", fill=1.0)
        enigma.gemm(left, right, total, M=m, N=n, K=k)
        with enigma.if_(enigma.cmp_eq(enigma.thread_position_in_grid, 1)):
            for i in range(m):
                for j in range(n):
                    out[i * n + j] = total[i, j]

    rng = np.random.default_rng(2)
    a, b = rng.random((m, k), dtype=np.float32), rng.random((k, n), dtype=np.float32)
    got = run(product, [a, b], m * n, threads=2).reshape(m, n)
    assert np.allclose(got, a @ b + 1, rtol=1e-5)


def test_gemm_of_stages_and_of_tensors_of_a_length():
    @enigma.kernel
    def product(a: enigma.Float32, b: enigma.Float32, out: enigma.Float32):
        pipe = enigma.pipeline("float", 64, stages=2)
        enigma.copy(a, pipe.front(), count=64)
        enigma.copy(b, pipe.back(), count=64)
        total = enigma.Tensor("out", 2, "float", shape=64)
        enigma.gemm(pipe.front(), pipe.back(), total, M=8, N=8, K=8)

    rng = np.random.default_rng(3)
    a, b = (rng.random((8, 8), dtype=np.float32) for _ in range(2))
    assert np.allclose(run(product, [a, b], 64, threads=32).reshape(8, 8), a @ b, rtol=1e-5)


def test_gemm_refuses_a_register_tensor_of_another_shape():
    @enigma.kernel
    def product(a: enigma.Float32, b: enigma.Float32):
        enigma.gemm(a, b, enigma.register_tensor((4, 3)), M=3, N=4, K=2)

    with pytest.raises(enigma.EnigmaError, match=r"of shape \(4, 3\), the product is 3x4"):
        enigma.compile(product)


# ---- layouts ----


def test_slices_have_no_needless_parentheses():
    t = enigma.Tensor("t", 0, "float", enigma.Layout((4, 8), (8, 1)))
    assert str(t[(None, 2)].layout) == "4:8" and t[(None, 2)].base_offset == 2
    assert str(t[(None,)].layout) == "4:8" and t[(None,)].base_offset == 0
    assert str(t[None].layout) == "4:8"
    tiles = enigma.tensor_zipped_divide(t, (2, 4))
    block = tiles[((None, None), 3)]
    assert str(block.layout) == "(2,4):(8,1)" and block.base_offset == 20
    assert str(block[(1, None)].layout) == "4:1" and block[(1, None)].base_offset == 28
    assert str(tiles[((None, 1), None)].layout) == "(2,(2,2)):(8,(16,4))"
    with pytest.raises(enigma.EnigmaError, match="does not fit"):
        t[None, 1, 2]


def test_a_coordinate_may_name_fewer_modes():
    @enigma.kernel
    def rows(a: enigma.Float32, out: enigma.Float32):
        i = enigma.thread_position_in_grid
        t = enigma.Tensor("a", 0, "float", enigma.Layout((4, 8), (8, 1)))
        out[i] = t[(i,)] + t[(None,)][i]

    x = np.arange(32, dtype=np.float32)
    # `t[(None,)]` is a view from element 0 on, and a flat index ignores its layout.
    assert run(rows, [x], 4, threads=4).tolist() == [0, 9, 18, 27]


def test_a_layout_of_one_mode_divides_into_two():
    assert str(enigma.zipped_divide(enigma.Layout(64, 1), 16)) == "(16,4):(1,16)"
    assert str(enigma.zipped_divide(enigma.Layout((64,), (2,)), (16,))) == "(16,4):(2,32)"
    assert str(enigma.zipped_divide(enigma.Layout((8, 6), (6, 1)), (4,))) == "((4,1),(2,6)):((6,1),(24,1))"
    assert enigma.zipped_divide(enigma.Layout((8, 6)), (4, 3)).size() == 48
    swizzled = enigma.swizzle(enigma.Layout(64), 1, 0, 3)
    divided = enigma.zipped_divide(swizzled, 16)
    assert divided.shape == (16, 4) and divided((1, 0)) == swizzled(1) and divided((9, 1)) == swizzled(25)


def test_thread_value_layouts_keep_their_modes():
    def tv(*sizes):
        layouts = [enigma.make_ordered_layout(size, order) for size, order in sizes]
        return enigma.make_layout_tv(*layouts)

    tiler, layout = tv(((32,), (0,)), ((2,), (0,)))
    assert tiler == (64,) and layout.shape == ((32,), (2,)) and layout.stride == ((2,), (1,))
    tiler, layout = tv(((4, 64), (1, 0)), ((4, 4), (1, 0)))
    assert tiler == (16, 256) and str(layout) == "((64,4),(4,4)):((64,4),(16,1))"
    tiler, layout = tv(((8, 2), (0, 1)), ((1, 1), (0, 1)))
    assert str(layout) == "((8,2),(1,1)):((1,8),(1,8))" and enigma.size(layout, mode=[0, 1]) == 2
    # What does not keep the modes that it has is as the algebra has it.
    wide = enigma.make_layout_tv(enigma.Layout((4, (2, 4))), enigma.Layout((2, 2)))
    assert wide == invar.layout.make_layout_tv(enigma.Layout((4, (2, 4))), enigma.Layout((2, 2)))


def test_a_tile_larger_than_its_tensor_is_refused():
    t = enigma.Tensor("t", 0, "float", enigma.Layout((4, 8), (8, 1)))
    with pytest.raises(enigma.EnigmaError, match="mode 1 of `t` has 8 elements, the tile 16"):
        enigma.tensor_zipped_divide(t, (4, 16))
    assert enigma.tensor_zipped_divide(t, (4, 8)).size() == 32


def test_a_list_of_modes_is_a_path():
    shape = ((2, 3), (4, 5))
    t = enigma.Tensor("t", 0, "float", enigma.Layout(shape))
    for x in (shape, enigma.Layout(shape), enigma.swizzle(enigma.Layout(shape), 1, 0, 3), t):
        assert enigma.size(x, mode=[1, 0]) == 4 and enigma.size(x, mode=[1]) == 20
        assert enigma.size(x, mode=0) == 6 and enigma.size(x, mode=[]) == enigma.size(x) == 120
    assert enigma.Layout(shape).size(mode=[0, 1]) == t.size(mode=[0, 1]) == 3
    with pytest.raises(invar.layout.LayoutError, match="no mode 2"):
        enigma.size(shape, mode=[1, 2])


def test_an_identity_tensor_is_a_tensor():
    t = enigma.make_identity_tensor((4, 8))
    assert isinstance(t, enigma.Tensor) and t.name == "__identity__" and t.element_type == "uint"
    assert t[3, 5] == (3, 5) and t[9] == (1, 2) and t(9) == (1, 2)
    assert str(t[None, 2].layout) == "4:1" and enigma.size(t, mode=[1]) == 8


def test_tuples():
    shape = (4, (2, 3))
    assert tuples.flatten(shape) == (4, 2, 3) and tuples.flatten(5) == (5,)
    assert (tuples.rank(shape), tuples.rank(8), tuples.depth(shape), tuples.depth(8)) == (2, 1, 2, 0)
    assert tuples.compact_col_major(shape) == (1, (4, 8)) and tuples.compact_col_major(8) == 1
    assert tuples.compact_order((4, 64), (1, 0)) == (64, 1) and tuples.compact_order(8, (0,)) == 1
    assert tuples.compact_order(((2, 3), 5), (1, 0)) == ((5, 10), 1)
    assert tuples.prefix_product(shape) == (1, 4, 8) and tuples.prefix_product(shape, 2) == (2, 8, 16)
    for i in range(24):
        coord = tuples.idx2crd(i, shape)
        assert tuples.crd2idx(coord, shape, tuples.compact_col_major(shape)) == i
        assert tuples.crd2idx(i, shape, (6, (3, 1))) == tuples.crd2idx(coord, shape, (6, (3, 1)))
    assert tuples.inner_product((2, (3, 4)), (1, (10, 100))) == 432
    with pytest.raises(ValueError, match="2 by 3"):
        tuples.inner_product((1, 2), (1, 2, 3))
    assert (tuples.ceil_div(7, 2), tuples.gcd(12, 18)) == (4, 6)
    assert [tuples.shape_div(*x) for x in ((8, 2), (2, 8), (7, 1), (7, 2))] == [4, 1, 7, 3]
    assert tuples.elem_scale((2, (3, 4)), (10, 2)) == (20, (6, 8)) and tuples.elem_scale(3, (1, 2)) == (3, 6)
    assert tuples.is_congruent((4, 8), (4, 8)) and not tuples.is_congruent((4, 8), (8, 4))
    assert not tuples.is_congruent((4, 8), 32) and tuples.is_compatible((4, 8), (32,))
    assert tuples.is_int(3) and tuples.is_tuple((3,)) and not tuples.is_tuple([3])


# ---- names and attributes ----


@pytest.mark.parametrize(
    "module, names",
    [
        ("benchmark", "BenchResult bench bench_gpu format_bench_result"),
        (
            "testing",
            "is_apple_silicon is_darwin is_metal_available requires_apple_silicon requires_metal "
            "skip_if_no_metal",
        ),
        (
            "core",
            "Layout Swizzle SwizzledLayout blocked_product ceil_div coalesce compact_col_major "
            "compact_order complement composition cosize crd2idx depth flatten gcd is_int is_tuple "
            "left_inverse logical_divide make_identity_layout make_layout make_layout_tv "
            "make_ordered_layout product recast_layout right_inverse size swizzle zipped_divide",
        ),
        ("tensor", "Tensor make_identity_tensor tensor_composition tensor_zipped_divide product"),
        ("ops.gemm", "gemm"),
        ("ops.quant", "dequantize_int8 pack_int4x2 pack_uint8x4 unpack_int4x2 unpack_uint8x4"),
        ("ops", "gemm dequantize_int8 pack_int4x2 pack_uint8x4 unpack_int4x2 unpack_uint8x4"),
        ("compiler", "compile"),
        ("compiler.compiler", "CompiledKernel compile"),
        ("compiler.kernel", "JitDef KernelDef KernelHandle jit kernel trace_kernel"),
        ("compiler.preprocessor", "preprocess_kernel"),
        ("compiler.mlir_emitter", "emit_mlir emit_msl"),
        ("runtime_dispatch", "MetalRuntime"),
        ("runtime_dispatch.runtime", "DeviceCapabilities MetalRuntime PreparedKernel"),
        (
            "runtime_dispatch.mlx_interop",
            "is_mlx_array make_mlx_output mlx_buffer_ptr_and_size mlx_dtype_to_metal mlx_nbytes",
        ),
        (
            "_tracing",
            "Carry EnigmaError IRValue KernelBuilder Pipeline RegisterTensor Tensor abs acos "
            "async_copy_1d_d2t async_copy_wait atomic_fetch_add barrier clamp cmp_uge copy "
            "extract_bits fma for_range function_constant get_builder if_ load_if make_float4 "
            "metal_cast parse_vec_dtype pipeline quad_sum register_tensor select simd_sum "
            "simdgroup_matrix_load sqrt store_if threadgroup_alloc unpack_snorm4x8_to_float "
            "vec_extract while_",
        ),
        ("typing", "Numeric Scalar Float32 Bool f32 b1"),
    ],
)
def test_modules_have_their_names(module, names):
    found = importlib.import_module(f"invar.enigma.{module}")
    missing = [name for name in names.split() if not hasattr(found, name)]
    assert not missing
    assert ops.gemm is enigma.gemm and _tracing.select is enigma.where


def test_types_have_instances():
    assert isinstance(enigma.f32, enigma.Float32) and isinstance(enigma.f32, enigma.typing.Numeric)
    assert enigma.Float32() is enigma.f32 and repr(enigma.f32) == "float"
    assert (enigma.f16.metal_name, enigma.u64.width, enigma.b1.width) == ("half", 64, 1)
    scalar = enigma.Scalar(enigma.u32)
    assert (scalar.metal_name, scalar.width, repr(scalar)) == ("uint", 32, "Scalar(uint)")
    with pytest.raises(TypeError, match="not a type"):
        enigma.Scalar(3)

    @enigma.kernel
    def halves(a: enigma.Float32(), out: enigma.f16):
        i = enigma.thread_position_in_grid
        out[i] = enigma.f16(a[i]) + enigma.Float16(1)

    assert run(halves, [np.float32([1, 2])], 2, threads=2, dtype=np.float16).tolist() == [2, 3]


def test_values_tensors_and_kernels_tell_what_they_are():
    seen = {}

    @enigma.kernel
    def tells(a: enigma.Float32, n: enigma.Scalar(enigma.u32), out: enigma.Float32):
        i = enigma.thread_position_in_grid_xyz("x")
        tile = enigma.threadgroup_alloc("half", 48)
        seen["size"] = tile.size(), enigma.size(tile)
        seen["dtypes"] = [
            x.dtype
            for x in (
                a[i], i, n, enigma.cmp_lt(i, n), enigma.make_float4(a[i], 0, 0, 0), tile[i],
                enigma.make_filled_simdgroup_matrix(0.0), enigma.register_tensor((2, 2), dtype="half"),
            )
        ]  # fmt: skip
        view = enigma.Tensor("a", 0, "float", enigma.Layout((2, 3), (3, 2)))
        seen["elements"] = view.load().dtype
        seen["again"] = enigma.metal_cast(i, enigma.cmp_lt(i, n).dtype).dtype
        seen["name"] = i.name
        out[i] = a[i]

    compiled = enigma.compile(tells)
    assert seen["elements"] == "float"
    assert seen["size"] == (48, 48) and seen["again"] == "i1" and seen["name"].startswith("_v")
    assert seen["dtypes"] == [
        "float", "uint", "uint", "i1", "vec<4,float>", "half", "simdgroup_matrix<8,8,float>", "half",
    ]  # fmt: skip
    assert tells.name == "tells" and repr(tells) == "<enigma.kernel tells>"
    assert compiled.scalar_params == [("n", 1, "uint")] and compiled.num_params == 3
    assert compiled.param_names == ["a", "n", "out"]
    for dtype in ("vec<4,float>", "simdgroup_matrix<8,8,float>", "i1", "uint"):
        assert enigma.typing.dtype_of(enigma.typing.type_of(dtype)) == dtype
    assert enigma.typing.parse_vec_dtype("vec<3,half>") == (3, "half")
    assert enigma.typing.parse_vec_dtype("float") is None


def test_a_compiled_kernel_of_the_program_s_own():
    kernel = enigma.CompiledKernel("k", "k.metallib", b"..", "kernel void k() {}")
    assert kernel.has_metallib and kernel.metal_source == "kernel void k() {}"
    with pytest.raises(RuntimeError, match="not made by compile"):
        RUN.execute(kernel, [], 4)


def test_choices_go_by_their_names():
    @enigma.kernel
    def larger(a: enigma.Float32, b: enigma.Float32, out: enigma.Float32):
        i = enigma.thread_position_in_grid
        out[i] = enigma.where(false_val=b[i], true_val=a[i], condition=a[i] > b[i])

    assert run(larger, [np.float32([1, 4]), np.float32([3, 2])], 2, threads=2).tolist() == [3, 4]


def test_packed_integers_are_words():
    @enigma.kernel
    def packs(out: enigma.UInt32):
        byte = enigma.pack_int4x2(-3, 5)
        lo, hi = enigma.unpack_int4x2(byte)
        out[0] = byte << 8
        out[1] = enigma.as_type(lo, "uint")
        out[2] = enigma.as_type(hi, "uint")
        out[3] = enigma.pack_uint8x4(257, 2, 3, 4)
        out[4] = enigma.as_type(enigma.dequantize_int8(enigma.metal_cast(-5, "int"), 0.5, 3), "uint")

    got = run(packs, [], 5, dtype=np.uint32)
    assert got[:4].tolist() == [0x5D00, 2**32 - 3, 5, 0x04030201]
    assert got[4:].view(np.float32).tolist() == [-4.0]


def test_benchmarks():
    calls = []
    result = benchmark.bench(calls.append, 1, repeat=4, warmup=2, label="append")
    assert len(calls) == 6 and (result.n, result.warmup, result.label) == (4, 2, "append")
    assert 0 <= result.min_us <= result.median_us <= result.max_us and result.stdev_us >= 0
    line = benchmark.format_bench_result(benchmark.BenchResult("x", [1.0, 3.0], 0), throughput_gbps=12.5)
    assert line == "x  n=2  median=2.00us  min=1.00us  max=3.00us  BW=12.50GB/s"
    assert benchmark.BenchResult("none", [], 0).median_us == 0
    for options in (dict(repeat=0), dict(warmup=-1)):
        with pytest.raises(ValueError, match="at least"):
            benchmark.bench(calls.append, 1, **options)


def test_tests_are_skipped_where_there_is_no_metal(monkeypatch):
    assert testing.is_metal_available() and testing.skip_if_no_metal is testing.requires_metal
    assert not getattr(testing.requires_metal(lambda: None), "__unittest_skip__", False)
    monkeypatch.setenv("ENIGMA_FORCE_NO_METAL", "1")
    assert not testing.is_metal_available()

    class Cases(unittest.TestCase):
        @testing.requires_metal
        def test_it(self):
            raise AssertionError("it was to be skipped")

    result = unittest.TestResult()
    Cases("test_it").run(result)
    assert len(result.skipped) == 1 and not result.failures


def test_layouts_from_core():
    layout = enigma.Layout((4, 8), (8, 1))
    right = core.right_inverse(layout)
    assert [layout(right(i)) for i in range(32)] == [*range(32)] and core.cosize(layout) == 32
    left = core.left_inverse(layout)
    assert [left(layout(i)) for i in range(32)] == [*range(32)]


# ---- builders ----


def test_a_builder_traces_a_block():
    builder = _tracing.KernelBuilder("twice")
    builder.args += [("a", 0, "float"), ("out", 1, "float")]
    with builder:
        assert _tracing.get_builder() is builder
        a, out = enigma.Tensor("a", 0, "float"), enigma.Tensor("out", 1, "float")
        i = enigma.thread_position_in_grid
        with enigma.if_(enigma.cmp_lt(i, builder.make_const("int", 2))) as (then_b, else_b):
            with then_b:
                out[i] = a[i] * builder.make_const("float", 2)
        with pytest.raises(enigma.EnigmaError, match="at least 2"):
            enigma.pipeline("float", 4, stages=1)
    assert _tracing.get_builder() is None
    assert "kernel void twice(" in emit_msl(builder) and "kernel @twice" in emit_mlir(builder)
    with pytest.raises(enigma.EnigmaError, match="already"):
        builder.__enter__()


def test_a_builder_s_loops_carry_no_names():
    def summed(init):
        builder = _tracing.KernelBuilder("summed")
        builder.args += [("a", 0, "float"), ("out", 1, "float")]
        with builder:
            a, out = enigma.Tensor("a", 0, "float"), enigma.Tensor("out", 1, "float")
            total = a[0]
            if init:
                with enigma.for_range(1, 4, init=[total]) as (i, carry):
                    here = a[i]
                    here = here + 1.0
                    carry[0] = carry[0] + here
                total = carry[0]
            else:
                with enigma.for_range(1, 4) as i:
                    total += a[i]
                    out[i] = total
            out[0] = total
        return emit_mlir(builder)

    assert "kernel @summed" in summed(True)
    with pytest.raises(enigma.EnigmaError, match="`total` is set .* next iteration") as e:
        summed(False)
    assert e.value.line is not None


def test_a_builder_says_which_line():
    builder = _tracing.KernelBuilder("wrong")
    builder.args += [("a", 0, "float")]
    with pytest.raises(enigma.EnigmaError, match="there is no threadgroup array") as e:
        with builder:
            enigma.Tensor("b", 0, "float", address_space="threadgroup")[0] = 1.0  # Here.
    assert "# Here." in str(e.value)


def test_a_kernel_s_builder():
    from invar.enigma.compiler.kernel import trace_kernel

    @enigma.kernel
    def scaled(a: enigma.Float32, n: enigma.Scalar(enigma.f32), out: enigma.Float32):
        i = enigma.thread_position_in_grid
        out[i] = a[i] * n

    builder = trace_kernel(scaled)
    assert builder.kernel_name == "scaled"
    assert builder.args == [("a", 0, "float"), ("n", 1, "float"), ("out", 2, "float")]
    assert builder.scalar_params == [("n", 1, "float")]
    assert "kernel void scaled(" in emit_msl(builder) and emit_msl(builder, 4) != emit_msl(builder)


def test_pipelines_are_of_two_stages_or_more():
    @enigma.kernel
    def swaps():
        enigma.pipeline("float", 4, stages=3).swap()

    @enigma.kernel
    def beyond():
        enigma.pipeline("float", 4, stages=3).stage(3)

    with pytest.raises(enigma.EnigmaError, match="swap.. is for pipelines of two stages"):
        enigma.compile(swaps)
    with pytest.raises(enigma.EnigmaError, match="stages 0 to 2, not 3"):
        enigma.compile(beyond)


def test_async_copies_by_name_and_lists_of_events():
    @enigma.kernel
    def moves(a: enigma.Float32, out: enigma.Float32):
        tile = enigma.threadgroup_alloc("float", 32)
        first = enigma.async_copy_1d_d2t(tile, 0, "a", 0, 16)
        second = enigma.async_copy_1d_d2t("tile", 16, a, 16, 16)
        enigma.async_copy_wait([first, second])
        enigma.barrier()
        out[enigma.thread_position_in_grid] = tile[31 - enigma.thread_position_in_grid]
        enigma.async_copy_wait([])

    x = np.arange(32, dtype=np.float32)
    assert run(moves, [x], 32, threads=32).tolist() == x[::-1].tolist()


# ---- what a launch takes and gives ----


@enigma.kernel
def plus_one(a: enigma.Float32, out: enigma.Float32):
    i = enigma.thread_position_in_grid
    out[i] = a[i] + 1.0


def test_output_sizes_give_a_list():
    compiled, x = enigma.compile(plus_one), np.arange(4, dtype=np.float32)
    (raw,) = RUN.execute(compiled, [x], output_sizes=[16], grid=(4, 1, 1), threads=(4, 1, 1))
    assert isinstance(raw, bytes) and np.frombuffer(raw, np.float32).tolist() == [1, 2, 3, 4]
    one = RUN.execute(compiled, [x], output_shapes=[(4,)], grid=(4, 1, 1), threads=(4, 1, 1))
    assert one.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("count", [1, 1000, 100000])
def test_inputs_are_not_copied_and_stay_as_they_are(count):
    compiled = enigma.compile(plus_one)
    x = np.arange(count, dtype=np.float32)
    x.flags.writeable = False
    grid = (count, 1, 1), (min(count, 256), 1, 1)
    for given in (x, x.tobytes(), memoryview(x), np.repeat(x, 2)[::2], x.tobytes() + b"   "):
        before = np.array(given).tobytes()
        raw = RUN.execute(compiled, [given], x.nbytes, *grid)
        assert np.array_equal(np.frombuffer(raw, np.float32), x + 1)
        assert np.array(given).tobytes() == before


def test_short_outputs_are_bytes_of_their_own():
    @enigma.kernel
    def fills(out: enigma.UInt8):
        out[0] = 7

    assert RUN.execute(enigma.compile(fills), [], 1) == b"\7" and bytes(1) == b"\0"


@pytest.mark.parametrize(
    "kind, dtype, fits",
    [
        ("float", np.float64, False), ("float", np.complex64, False), ("float", np.float16, False),
        ("half", np.float32, False), ("int", np.int64, False), ("uint", np.uint64, False),
        ("float", np.float32, True), ("float", np.uint32, True), ("uint", np.uint8, True),
        ("uchar", np.uint32, True), ("uchar", np.int64, False), ("bfloat", np.uint16, True),
        ("long", np.int64, True), ("float4", np.float32, True), ("float4", np.float64, False),
        ("bool", np.bool_, True), ("float", [("x", np.float32)], True),
    ],
)  # fmt: skip
def test_arrays_of_another_element_size_are_refused(kind, dtype, fits):
    @enigma.kernel
    def reads(a: kind, out: "uint"):
        out[0] = 1

    compiled = enigma.compile(reads)
    x = np.zeros(8, dtype)
    for call in (RUN.execute, RUN.prepare):
        if fits:
            call(compiled, [x], 4)
            continue
        with pytest.raises(TypeError, match=f"array of {x.dtype}, parameter `a` a buffer of {kind}"):
            call(compiled, [x], 4)
        call(compiled, [x.view(np.uint8)], 4)


def test_threadgroup_memory_is_metal_s():
    def kernel(count):
        @enigma.kernel
        def fills(out: enigma.Float32):
            tile = enigma.threadgroup_alloc("float", count - 64)
            pipe = enigma.pipeline("float", 32)
            tile[0] = 1.0
            pipe.front()[0] = 2.0
            out[0] = tile[0]

        return enigma.compile(fills)

    runtime = enigma.MetalRuntime(device="cpu")
    assert runtime.device_capabilities().max_threadgroup_memory == 32768
    assert len(runtime.execute(kernel(8192), [], 4)) == 4
    for call in (runtime.execute, runtime.prepare):
        with pytest.raises(RuntimeError, match="has 32772 bytes of threadgroup memory, the limit is 32768"):
            call(kernel(8193), [], 4)
    larger = enigma.MetalRuntime(device="cpu", max_threadgroup_memory=40960)
    assert larger.device_capabilities().max_threadgroup_memory == 40960
    assert len(larger.execute(kernel(10240), [], 4)) == 4
    with pytest.raises(RuntimeError, match="the limit is 40960"):
        larger.execute(kernel(10241), [], 4)


def test_exceptions_are_those_of_the_original():
    @enigma.kernel
    def bare(a):
        pass

    @enigma.jit
    def idle(a):
        pass

    with pytest.raises(TypeError, match="no annotation"):
        enigma.compile(bare)
    with pytest.raises(TypeError, match="@kernel or @jit"):
        enigma.compile(len)
    with pytest.raises(RuntimeError, match="launches 0 kernels"):
        enigma.compile(idle, enigma.Tensor("a", 0, "float"))
    compiled = enigma.compile(plus_one)
    with pytest.raises(RuntimeError, match="takes 2 buffers"):
        RUN.execute(compiled, [], 4)
    with pytest.raises(RuntimeError, match="threadgroup"):
        RUN.execute(compiled, [np.zeros(1, np.float32)], 4, (4096, 1, 1), (4096, 1, 1))
    with pytest.raises(ValueError, match="bit count -1"):
        enigma.Swizzle(-1, 0, 3)
    old = enigma.DeviceCapabilities("apple7", 1007, False, True, 32, 32768, 1024, "M1")
    with pytest.raises(RuntimeError, match="M3"):
        old.require_m3("async copies")


@pytest.mark.parametrize(
    "call",
    [
        lambda: enigma.thread_position_in_grid + 1,
        lambda: enigma.thread_position_in_grid.y,
        lambda: enigma.thread_position_in_threadgroup(),
        lambda: enigma.thread_index_in_simdgroup(),
        lambda: enigma.arch.block_idx(),
        lambda: enigma.barrier(),
        lambda: enigma.threadgroup_alloc("float", 4),
        lambda: enigma.register_tensor((2, 2)),
        lambda: enigma.pipeline("float", 4),
        lambda: enigma.pack_uint8x4(1, 2, 3, 4),
        lambda: enigma.sqrt(1.0),
        lambda: enigma.for_range(0, 4),
        lambda: enigma.Tensor("a", 0, "float")[0],
    ],
)
def test_what_is_for_kernels_says_so_outside(call):
    with pytest.raises(enigma.EnigmaError, match="only inside a kernel with @enigma.kernel") as caught:
        call()
    assert isinstance(caught.value, RuntimeError)


def test_what_compile_refuses_is_short_to_read():
    @enigma.kernel
    def wrong(a: enigma.Int32):
        a[0] = enigma.sqrt(a[0])

    with pytest.raises(enigma.EnigmaError) as caught:
        enigma.compile(wrong)
    assert len(caught.traceback) < 5


# ---- MLX ----


def test_arrays_of_mlx():
    mx = pytest.importorskip("mlx.core", reason="MLX is not installed")
    from invar.enigma.runtime_dispatch import mlx_interop

    x = mx.arange(8, dtype=mx.float32)
    options = dict(grid=(8, 1, 1), threads=(8, 1, 1))
    got = RUN.execute(
        enigma.compile(plus_one), [x], output_shapes=[(2, 4)], output_dtypes=[mx.float32], **options
    )
    assert isinstance(got, mx.array) and got.tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]

    @enigma.kernel
    def halves(a: enigma.bf16, out: enigma.bf16, flags: enigma.b1):
        i = enigma.thread_position_in_grid
        out[i] = a[i] * 0.5
        flags[i] = a[i] > 3.0

    half, flags = RUN.execute(
        enigma.compile(halves), [x.astype(mx.bfloat16)], output_shapes=[(8,), (8,)],
        output_dtypes=[mx.bfloat16, mx.bool_], **options,
    )  # fmt: skip
    assert half.dtype == mx.bfloat16 and half.astype(mx.float32).tolist() == [i / 2 for i in range(8)]
    assert flags.tolist() == [i > 3 for i in range(8)]
    assert mlx_interop.is_mlx_array(x) and not mlx_interop.is_mlx_array(np.zeros(1))
    assert mlx_interop.mlx_dtype_to_metal(mx.bfloat16) == "bfloat"
    assert mlx_interop.mlx_nbytes((2, 3), mx.int64) == 48
    assert mlx_interop.mlx_buffer_ptr_and_size(x)[1] == 32
    assert mlx_interop.make_mlx_output((3,), mx.int32).tolist() == [0, 0, 0]
    with pytest.raises(TypeError):
        mlx_interop.mlx_dtype_to_metal(mx.complex64)


# ---- Metal source ----


def test_the_source_says_which_buffer_it_needs_besides():
    source = enigma.compile(plus_one).metal_source
    first = source.splitlines()[:3]
    assert "[[buffer(2)]]" in first[0] and "how many elements a, out have, a ulong each" in first[1]
    assert "every load gives 0" in first[2]

    @enigma.kernel
    def one(out: enigma.Float32):
        out[0] = 1.0

    assert "how many elements out has, a ulong each" in enigma.compile(one).metal_source


def test_a_source_for_buffers_of_given_sizes(tmp_path):
    compiled = enigma.compile(plus_one)
    path = compiled.export_metal(tmp_path / "k.metal", sizes=[1024, 512])
    source = open(path).read()
    assert "constant invar_lengths lengths = {1024ul, 512ul};" in source
    assert "[[buffer(2)]]" not in source and "lengths.a" in source

    # Two parameters of a name that the source keeps for itself.
    @enigma.kernel
    def named(lengths: enigma.Float32, n: enigma.Scalar("uint"), invar: enigma.Float32):
        invar[n] = lengths[enigma.thread_position_in_grid]

    text = open(enigma.compile(named).export_metal(tmp_path / "n.metal", sizes=[3, 5])).read()
    assert "lengths = {3ul, 5ul};" in text and "[[buffer(3)]]" not in text
    named = compiled.export_metal(tmp_path / "named.metal", sizes={"out": 512, "a": 1024})
    assert open(named).read() == source
    for sizes, said in (([1024], "has 2 buffers"), ({"a": 1}, "which are a, out"), ([1, -1], "not -1")):
        with pytest.raises(enigma.EnigmaError, match=said):
            compiled.export_metal(tmp_path / "k.metal", sizes=sizes)


# ---- how programs are started ----

PROGRAM = """
import sys
import numpy as np
import enigma

@enigma.kernel
def twice(a: enigma.f32, out: enigma.f32):
    i = enigma.thread_position_in_grid
    if i < 2:
        out[i] = a[i] * 2.0

raw = enigma.MetalRuntime().execute(enigma.compile(twice), [np.ones(3, np.float32)], 12, (3, 1, 1), (3, 1, 1))
print(__name__, sys.argv, np.frombuffer(raw, np.float32).tolist())
"""


def started(*arguments, text=None, cwd=None):
    command = [sys.executable, "-m", "invar.enigma", *map(str, arguments)]
    done = subprocess.run(command, input=text, capture_output=True, text=True, cwd=cwd)
    return done.returncode, done.stdout, done.stderr


def test_programs_of_the_command_line_and_of_the_standard_input():
    right = "[2.0, 2.0, 0.0]\n"
    assert started("-c", PROGRAM, "x") == (0, f"__main__ ['-c', 'x'] {right}", "")
    assert started("-", "y", text=PROGRAM) == (0, f"__main__ ['-', 'y'] {right}", "")
    assert started("--device", "checked", "-c", PROGRAM) == (0, f"__main__ ['-c'] {right}", "")


def test_programs_that_are_modules(tmp_path):
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "__init__.py").write_text("")
    (tmp_path / "part" / "prog.py").write_text(PROGRAM)
    code, out, err = started("-m", "part.prog", "z", cwd=tmp_path)
    assert (code, err) == (0, "") and out.startswith("__main__ [") and out.endswith("'z'] [2.0, 2.0, 0.0]\n")
    (tmp_path / "test_it.py").write_text(
        "import enigma\nfrom enigma.ops.gemm import gemm\n\ndef test_it():\n    assert gemm is enigma.gemm\n"
    )
    code, out, err = started("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py", cwd=tmp_path)
    assert (code, err) == (0, "") and "1 passed" in out


@pytest.mark.parametrize(
    "arguments, said",
    [
        ([], "usage: "), (["-x"], "usage: "), (["-m"], "-m needs a module"),
        (["-c"], "-c needs a program"), (["none.py"], "none.py: there is no such file"),
        (["-m", "no_such_module"], "there is no module no_such_module"),
    ],
)  # fmt: skip
def test_what_cannot_be_started(arguments, said, tmp_path):
    code, out, err = started(*arguments, cwd=tmp_path)
    assert (code, out) == (2, "") and said in err and len(err.splitlines()) == 1
