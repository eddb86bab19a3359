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
