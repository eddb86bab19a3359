"""Kernels in Metal's language."""

import shutil

import numpy as np
import pytest

import invar as iv

CLANGS = ["clang-19", "clang-20", "clang-21", "clang-22"]
pytestmark = pytest.mark.skipif(
    not any(shutil.which(name) for name in CLANGS), reason="Metal sources need clang 19 or newer"
)

SOURCE = """
#include <metal_stdlib>
using namespace metal;

struct Scale { float by; int first; };
constant int factor [[function_constant(3)]];

kernel void scale(device const float * x [[buffer(0)]], device float * y [[buffer(1)]],
                  constant Scale & scale [[buffer(2)]], constant uint & count [[buffer(4)]],
                  uint i [[thread_position_in_grid]]) {
    if (i < count) { y[i] = x[i + scale.first] * scale.by; }
}

kernel void times(device int * y, uint i [[thread_position_in_grid]]) { y[i] *= factor; }

kernel void shift(device float * y, threadgroup float * room [[threadgroup(0)]],
                  uint i [[thread_position_in_threadgroup]]) {
    room[i] = y[i];
    y[i] = room[(i + 1) % 32]; // here
}
"""


@pytest.fixture(scope="module")
def library():
    return iv.metal.load("things.metal", text=SOURCE)


def test_a_kernel_is_launched_on_arrays(library):
    assert list(library) == ["scale", "times", "shift"] and "scale" in library
    kernel = library["scale"]
    x, y = np.arange(9, dtype=np.float32), np.zeros(8, np.float32)
    kernel[8, 4](x, y, {"by": 2.0, "first": 1}, 6)
    assert y.tolist() == [2, 4, 6, 8, 10, 12, 0, 0]
    y[:] = 0
    kernel[8, 4](**{"0": x, "1": y, "scale": {"by": 1.0, "first": 0}, "4": np.uint32(2)})
    assert y.tolist() == [0, 1, 0, 0, 0, 0, 0, 0]
    assert iv.check(kernel, grid=8, threadgroup=4)(x, y, {"by": 2.0, "first": 1}, 8)


def test_function_constants_have_values_by_name_or_number(library):
    for name in ("factor", 3):
        y = np.arange(4, dtype=np.int32)
        iv.metal.load("things.metal", text=SOURCE, constants={name: 5})["times"][4, 4](y)
        assert y.tolist() == [0, 5, 10, 15]
    with pytest.raises(iv.VerifyError, match=r"`factor`(?s:.*)constants=\{"):
        library["times"]
    with pytest.raises(iv.ArgumentError, match="give it a number"):
        iv.metal.load("things.metal", text=SOURCE, constants={"factor": "5"})
    with pytest.raises(iv.VerifyError, match="no function constant `other`"):
        iv.metal.load("things.metal", text=SOURCE, constants={"other": 5})["times"]


def test_vectors_by_reference_and_in_constants_are_lists_of_numbers():
    source = """
        constant float3 weights [[function_constant(0)]];
        kernel void k(device float * y [[buffer(0)]], constant uint2 & size [[buffer(1)]],
                      uint i [[thread_position_in_grid]]) {
            y[i] = weights.x * size.x + weights.y * size.y + weights.z * i;
        }"""
    for weights in ([1, 10, 100], (1, 10, 100), np.array([1, 10, 100], np.float32)):
        kernel = iv.metal.load("k.metal", text=source, constants={"weights": weights})["k"]
        for size in ((6, 7), [6, 7], [[6, 7]], np.array([6, 7], np.uint32)):
            y = np.zeros(2, np.float32)
            kernel[2, 2](y, size)
            assert y.tolist() == [76, 176], (weights, size)
    with pytest.raises(iv.ArgumentError, match="element 0 of argument `size`"):
        kernel[2, 2](y, (6, 7, 8))
    with pytest.raises(iv.ArgumentError, match="or a list of them"):
        iv.metal.load("k.metal", text=source, constants={"weights": [1, "x", 2]})


def test_a_check_names_the_lines_of_the_source(library):
    with pytest.raises(iv.CheckError) as caught:
        iv.check(library["shift"], grid=32, threadgroup=32)(np.zeros(32, np.float32), 32)
    assert {f.rule for f in caught.value.findings} == {"data-race"}
    assert "room[(i + 1) % 32]" in str(caught.value)
    assert "put `threadgroup_barrier(mem_flags::mem_threadgroup)` between them" in str(caught.value)


def test_what_is_wrong_with_a_source_is_an_error(library, tmp_path):
    with pytest.raises(iv.VerifyError, match="there is no kernel `other`"):
        library["other"]
    text = "#include <metal_stdlib>\nkernel void k(device int * y) { y[0] = z; }"
    with pytest.raises(iv.VerifyError, match="undeclared identifier 'z'(?s:.*)wrong.metal:2:40"):
        iv.metal.load("wrong.metal", text=text)["k"]
    with pytest.raises(iv.Error, match="No such file"):
        iv.metal.load(tmp_path / "none.metal")


PARTLY = """
#include <metal_stdlib>
using namespace metal;

static float half_of(float x) { return missing * x; }

kernel void good(device float * y, uint i [[thread_position_in_grid]]) { y[i] = 2 * y[i]; }
kernel void bad(device float * y, uint i [[thread_position_in_grid]]) { y[i] = half_of(y[i]); }
kernel void fenced(device atomic_uint * y) {
    atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst);
    atomic_store_explicit(y, 1, memory_order_relaxed);
}
kernel void uneven(device float * y, uint i [[thread_position_in_threadgroup]]) {
    if (i < 2) { threadgroup_barrier(mem_flags::mem_device); }
    y[i] += 1;
}
"""


def test_what_is_refused_keeps_nobody_from_the_others():
    library = iv.metal.load("partly.metal", text=PARTLY)
    assert list(library) == ["good", "bad", "fenced", "uneven"]
    for name, why in {
        "bad": r"missing(?s:.*)partly\.metal:5:40",
        "fenced": r"`atomic_thread_fence` is not supported(?s:.*)partly\.metal:10:",
        "uneven": r"barrier-not-uniform(?s:.*)partly\.metal:14:",
    }.items():
        for _again in range(2):
            with pytest.raises(iv.VerifyError, match=why):
                library[name]
        y = np.arange(4, dtype=np.float32)
        library["good"][4, 4](y)
        assert y.tolist() == [0, 2, 4, 6]


def test_files_include_others(tmp_path):
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "value.h").write_text("#include <metal_stdlib>\nconstant int value = WIDTH + 1;\n")
    file = tmp_path / "k.metal"
    file.write_text('#include "value.h"\nkernel void k(device int * y) { y[0] = value; }\n')
    y = np.zeros(1, np.int32)
    library = iv.metal.load(file, includes=[tmp_path / "inc"], defines={"WIDTH": 6})
    library["k"][1, 1](y)
    assert y.tolist() == [7]


def run(kernel, inputs, shape, dtype, **more):
    (out,) = kernel(
        inputs=inputs,
        output_shapes=[shape],
        output_dtypes=[dtype],
        grid=(int(np.prod(shape)), 1, 1),
        threadgroup=(32, 1, 1),
        **more,
    )
    return out


def test_a_kernel_of_a_string_is_mlx_s():
    kernel = iv.metal.metal_kernel(
        name="axpy",
        input_names=["a", "x"],
        output_names=["y"],
        source="""
            uint i = thread_position_in_grid.x;
            y[i] = T(a) * T(x[i]) + T(N);
        """,
    )
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    out = run(kernel, [2.0, x], (8, 8), np.float32, template=[("T", np.float32), ("N", 3)])
    np.testing.assert_array_equal(out, 2 * x + 3)
    out = run(kernel, [2, x[0]], (8,), np.int32, template=[("T", np.int32), ("N", -1)])
    np.testing.assert_array_equal(out, 2 * np.arange(8) - 1)
    with pytest.raises(iv.ArgumentError, match="has 2 inputs"):
        run(kernel, [x], (8,), np.int32)
    with pytest.raises(iv.ArgumentError, match="which Metal does not have"):
        run(kernel, [1.0, x.astype(np.float64)], (8,), np.float32)


def test_a_body_sees_shapes_and_strides_and_may_start_from_a_value():
    kernel = iv.metal.metal_kernel(
        name="negate",
        input_names=["x"],
        output_names=["y"],
        source="""
            uint i = thread_position_in_grid.x;
            if (i < 6) { y[i] = -x[elem_to_loc(i, x_shape, x_strides, x_ndim)] + twice(x_shape[1]); }
        """,
        header="static int twice(int x) { return 2 * x; }",
        ensure_row_contiguous=False,
    )
    x = np.arange(24, dtype=np.float32).reshape(4, 6)[1:4:2, 1:6:2]
    out = run(kernel, [x], (8,), np.float32, init_value=7)
    np.testing.assert_array_equal(out, [*(6 - x.reshape(-1)), 7, 7])


def test_a_kernel_of_a_string_is_checked():
    kernel = iv.metal.metal_kernel(
        name="total",
        input_names=["x"],
        output_names=["y"],
        source="y[0] += x[thread_position_in_grid.x];",
    )
    what = dict(
        inputs=[np.ones(64, np.float32)],
        output_shapes=[(1,)],
        output_dtypes=[np.float32],
        grid=(64, 1, 1),
        threadgroup=(32, 1, 1),
    )
    with pytest.raises(iv.CheckError, match="y\\[0\\] \\+= x"):
        kernel.check(**what)
    atomic = iv.metal.metal_kernel(
        name="total",
        input_names=["x"],
        output_names=["y"],
        source="atomic_fetch_add_explicit(&y[0], x[thread_position_in_grid.x], memory_order_relaxed);",
        atomic_outputs=True,
    )
    what.update(inputs=[np.ones(64, np.int32)], output_dtypes=[np.int32])
    assert atomic.check(**what)
    assert atomic(**what)[0].tolist() == [64]


TYPES = """
#include <metal_stdlib>
using namespace metal;

struct Inner { float x; uint k; };
struct Many { uint n; bool negative; float3 way; float w[3]; Inner in[2]; };
struct Pair { ushort key; uchar value; };
struct Node { float v; int next; };

kernel void fields(constant Many & p [[buffer(0)]], device float * y [[buffer(1)]],
                   uint i [[thread_position_in_grid]]) {
    y[i] = p.w[i % 3] + p.way.z + (p.negative ? 100 : 0) + p.in[i & 1].k;
}
kernel void sizes(constant int3 & size [[buffer(0)]], constant bool & odd [[buffer(1)]],
                  device int * y [[buffer(2)]]) {
    y[0] = size.x; y[1] = size.y; y[2] = size.z; y[3] = odd;
}
kernel void halves(device const float * x [[buffer(0)]], device uint * y [[buffer(1)]],
                   uint i [[thread_position_in_grid]]) {
    ((device half2 *) y)[i] = half2(x[i], 1);
}
kernel void turned(device Pair * y [[buffer(0)]], threadgroup Pair * room [[threadgroup(0)]],
                   uint i [[thread_position_in_threadgroup]]) {
    room[i] = y[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[i] = room[(i + 1) % 4];
}
kernel void follow(device const Node * n [[buffer(0)]], device float * y [[buffer(1)]],
                   uint i [[thread_position_in_grid]]) {
    y[i] = n[n[i].next].v;
}
kernel void ways(device const float3 * x [[buffer(0)]], device float * y [[buffer(1)]],
                 uint i [[thread_position_in_grid]]) {
    y[i] = x[i].z;
}
"""


@pytest.fixture(scope="module")
def types():
    return iv.metal.load("types.metal", text=TYPES)


def test_structs_are_given_by_their_fields(types):
    y = np.zeros(2, np.float32)
    many = {"negative": True, "way": [0, 0, 7.0], "w": [1, 2, 3], "in": [{"k": 10}, {"x": 1.5, "k": 20}]}
    types["fields"][2, 2](many, y)
    assert y.tolist() == [118, 129]
    # The same as the source has them in memory.
    dtype = types["fields"].dtype("p")
    assert dtype.names[0] == "n" and dtype["negative"] == np.bool_
    one = np.zeros(1, dtype)
    one["w"], one["in"]["k"] = [1, 2, 3], [10, 20]
    types["fields"][2, 2](one, y)
    assert y.tolist() == [11, 22]
    types["fields"][2, 2](one.view(np.uint8), y)
    assert y.tolist() == [11, 22]
    with pytest.raises(iv.ArgumentError, match="field `negative` of argument `p` .* is 2 .*expected a value of type bool"):
        types["fields"][2, 2]({"negative": 2}, y)
    with pytest.raises(iv.ArgumentError, match="field `x` of element 0 of field `in` of argument `p` .* is 'a'"):
        types["fields"][2, 2]({"in": [{"x": "a"}, {}]}, y)
    with pytest.raises(iv.ArgumentError, match="field `way` of argument `p` .*expected .* for f32x3"):
        types["fields"][2, 2]({"way": [1.0, 2.0]}, y)
    with pytest.raises(iv.ArgumentError, match="has no field 'm'; it has n, negative, way, w, in"):
        types["fields"][2, 2]({"m": 2}, y)


def test_numbers_by_reference_are_of_every_type(types):
    y = np.zeros(4, np.int32)
    for size in ([4, 5, 6], np.array([4, 5, 6], np.int32)):
        for odd in (True, np.bool_(True), np.array([True])):
            y[:] = 0
            types["sizes"][1, 1](size, odd, y)
            assert y.tolist() == [4, 5, 6, 1]


def test_arrays_have_the_types_of_the_source(types):
    x, y = np.array([1, 2], np.float32), np.zeros(2, np.uint32)
    assert types["halves"].dtype("y") == np.uint32
    types["halves"][2, 2](x, y)
    assert y.tolist() == [0x3C003C00, 0x3C004000]
    with pytest.raises(iv.ArgumentError, match="`y` .* has dtype float32, expected uint32"):
        types["halves"][2, 2](x, np.zeros(2, np.float32))
    pairs = np.array([(1, 10), (2, 20), (3, 30), (4, 40)], types["turned"].dtype("y"))
    types["turned"][4, 4](pairs, 4)
    assert pairs["key"].tolist() == [2, 3, 4, 1] and pairs["value"].tolist() == [20, 30, 40, 10]
    assert iv.check(types["turned"], grid=4, threadgroup=4)(pairs, 4)
    y = np.zeros(2, np.float32)
    nodes = np.array([(1.5, 1), (2.5, 0)], [("v", "f4"), ("next", "i4")])
    types["follow"][2, 2](nodes, y)
    assert y.tolist() == [2.5, 1.5]
    types["follow"][2, 2]([{"v": 3, "next": 1}, {"v": 4}], y)
    assert y.tolist() == [4, 3]
    with pytest.raises(iv.ArgumentError, match="field `next`, at byte 4 of @Node, is of type int32"):
        types["follow"][2, 2](np.zeros(2, [("v", "f4"), ("next", "f4")]), y)
    with pytest.raises(iv.ArgumentError, match=r"expected kernel.dtype\('n'\)"):
        types["follow"][2, 2](np.zeros(4, np.float32), y)
    for rows in (np.arange(6, dtype=np.float32).reshape(2, 3), np.array([[0, 1, 2, 9], [3, 4, 5, 9]], np.float32)):
        types["ways"][2, 2](rows, y)
        assert y.tolist() == [2, 5]


@pytest.mark.parametrize("name", ["cpu"])
def test_arrays_of_devices_have_the_types_of_the_source(types, name):
    device = iv.device(name)
    x, y = device.array(np.array([1, 2], np.float32)), device.array(np.zeros(2, np.uint32))
    types["halves"][2, 2](x, y)
    assert y.numpy().tolist() == [0x3C003C00, 0x3C004000]


def test_reports_name_fields(types):
    nodes = np.array([(1.5, 1), (2.5, 5)], types["follow"].dtype("n"))
    with pytest.raises(iv.CheckError, match=r"reads `n\[5\].v`, and `n` has 2 elements"):
        iv.check(types["follow"], grid=2, threadgroup=2)(nodes, np.zeros(2, np.float32))


def test_a_buffer_may_be_left_out():
    text = """#include <metal_stdlib>
    kernel void k(device const float * mask, device float * y, uint i [[thread_position_in_grid]]) {
        y[i] = mask ? mask[i] : 7;
    }"""
    kernel, y = iv.metal.load("k.metal", text=text)["k"], np.zeros(2, np.float32)
    kernel[2, 2](None, y)
    assert y.tolist() == [7, 7]
    assert iv.check(kernel, grid=2, threadgroup=2)(None, y)
    kernel[2, 2](np.ones(2, np.float32), y)
    assert y.tolist() == [1, 1]


def test_a_matrix_by_reference_is_its_columns():
    text = """#include <metal_stdlib>
    using namespace metal;
    kernel void k(constant float3x3 & m, constant float2x4 & w, device const packed_float3 * x, device float4 * y,
                  uint i [[thread_position_in_grid]]) { y[i] = float4(m * float3(x[i]), w[1][3]); }"""
    kernel = iv.metal.load("matrix.metal", text=text)["k"]
    m, w = np.arange(9, dtype=np.float32).reshape(3, 3), np.arange(8, dtype=np.float32).reshape(2, 4)
    x = np.array([[1, 2, 3], [0, 1, 0]], np.float32)
    for given in ((m, w), (m.tolist(), w.tolist()), (np.pad(m, ((0, 0), (0, 1))), w)):
        y = np.zeros((2, 4), np.float32)
        kernel[2, 2](*given, x, y)
        assert y[:, :3].tolist() == (x @ m).tolist() and y[:, 3].tolist() == [7, 7]
