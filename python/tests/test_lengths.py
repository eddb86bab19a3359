"""Lengths of buffers, indices by a shape, and arguments that newcomers give."""

import numpy as np
import pytest

import invar as iv


def test_the_length_of_a_buffer_meets_integers_of_any_type():
    @iv.kernel
    def k(x: iv.Buffer[iv.f32], out: iv.Buffer[iv.f32], n: iv.Scalar[iv.i32]):
        i = iv.thread_position_in_grid("x")
        if i < len(x):
            out[i] = x[len(x) - 1 - i]
        if n < len(x) and len(x) > i:
            out[len(x)] += 0.5
        total = 0.0
        for j in iv.range(i, len(x), 2):
            total += x[j]
        if i == iv.buffer_length(x):
            out[i + 1] = total + iv.f32(min(len(x), i + 1))

    x = np.arange(5, dtype=np.float32)
    out = np.zeros(8, np.float32)
    k[1, 1](x, out, -1)
    assert out.tolist() == [4, 0, 0, 0, 0, 0.5, 0, 0]
    out[:] = 0
    k[8, 8](x, out, 7)
    assert out.tolist() == [4, 3, 2, 1, 0, 0, 5, 0]
    assert "cast u64 %i" in k.ir


def test_the_smaller_of_a_length_and_a_number_meets_integers_of_any_type():
    @iv.kernel
    def k(x: iv.Buffer[iv.f32], out: iv.Buffer[iv.f32], m: iv.Scalar[iv.u32]):
        i = iv.thread_position_in_grid("x")
        j = iv.min(i + 2, len(x) - 1)
        if j < m:
            out[i] = x[j]
        elif iv.clamp(i, m - 1, len(x) - 1) == m - 1:
            out[i] = x[iv.max(j, m)]

    x = np.arange(6, dtype=np.float32)
    out = np.full(6, -1, np.float32)
    k[6, 6](x, out, 5)
    assert out.tolist() == [2, 3, 4, 5, 5, -1]


def test_an_element_by_two_indices_of_a_shape():
    @iv.kernel
    def transposed(x: iv.Buffer[iv.f32, (None, 6)], out: iv.Buffer[iv.f32, (6, 4)]):
        i, j = iv.thread_position_in_grid("x"), iv.thread_position_in_grid("y")
        out[i, j] = x[j, i]
        out[i, 0] += iv.f32(x.shape[1])

    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    out = np.zeros((6, 4), np.float32)
    transposed[(6, 1), (6, 1)](x, out)
    assert out[:, 0].tolist() == (x[0] + 6).tolist()
    transposed[(6, 4), (6, 1)](x, out)
    assert out[:, 1:].tolist() == x.T[:, 1:].tolist()


def test_the_shape_of_an_array_is_as_numpy_has_it():
    @iv.kernel
    def k(x: iv.Buffer[iv.f32, (None, 3)], y: iv.Buffer[iv.u32x2, (None, 2, 2)], out: iv.Buffer[iv.u32, (8,)]):
        height, width = x.shape
        i = iv.thread_position_in_grid("x")
        if i < x.shape[0]:
            x[x.shape[0] - 1 - i, width - 1] = 7.0
        if i == 0:
            out[0] = iv.u32(height)
            out[1] = iv.u32(x.shape[-2])
            out[2] = iv.u32(y.shape[0]) + y.shape[1] * 10
            out[3] = len(y.shape) + len(out.shape)
            out[4] = out.shape[0]
            out[5] = iv.u32(y.shape[:2][0])
            out[6] = iv.u32(len(x))
            for j in iv.range(0, x.shape[0]):
                out[7] += iv.u32(j)

    x, y, out = np.zeros((5, 3), np.float32), np.zeros((4, 2, 2, 2), np.uint32), np.zeros(8, np.uint32)
    k[64, 64](x, y, out)
    assert (x[:, 2] == 7).all() and (x[:, :2] == 0).all()
    assert out.tolist() == [5, 5, 24, 4, 8, 4, 15, 10]

    @iv.kernel
    def known(x: iv.Buffer[iv.f32, (None, 3)]):
        x[0, 0] = iv.f32(x.shape[1])

    assert "buffer_length" not in known.ir


def test_an_array_has_the_shape_of_its_annotation():
    @iv.kernel
    def k(x: iv.Buffer[iv.f32, (None, 6)], y: iv.Buffer[iv.f32x4, (None, 3)], z: iv.Buffer[iv.f32, (5,)]):
        x[1, 2] = z[4]
        y[1, 2] = iv.f32x4(1.0)

    x, y, z = (np.zeros(s, np.float32) for s in [(4, 6), (2, 3, 4), 5])
    z[4] = 7
    k[1, 1](x, y, z)
    assert x[1, 2] == 7 and y[1, 2].tolist() == [1] * 4 and x.sum() + y.sum() == 11
    ready = k[1, 1].prepare(x, y, z)
    there = iv.device("cpu").array(x.reshape(-1))
    for name, wrong, shape, reshape in [
        ("x", x.reshape(-1), "(24,)", "-1, 6"),
        ("x", x.reshape(6, 4), "(6, 4)", "-1, 6"),
        ("x", x.reshape(2, 2, 6), "(2, 2, 6)", "-1, 6"),
        ("x", x[0], "(6,)", "-1, 6"),
        ("x", memoryview(x.reshape(-1)), "(24,)", "-1, 6"),
        ("x", there, "(24,)", "-1, 6"),
        ("y", y.reshape(6, 4), "(6,)", "-1, 3, 4"),
        ("z", np.zeros(4, np.float32), "(4,)", "5"),
        ("z", np.zeros((5, 1), np.float32), "(5, 1)", "5"),
    ]:
        given = {"x": x, "y": y, "z": z, name: wrong}
        for launch in (
            lambda: k[1, 1](**given),
            lambda: k[1, 1].submit(**given),
            lambda: k[1, 1].prepare(**given),
            lambda: iv.check(k, grid=1, threadgroup=1)(**given),
            lambda: ready.set(**{name: wrong}),
        ):
            with pytest.raises(iv.ArgumentError) as e:
                launch()
            said = f"argument `{name}` of `k` has shape {shape}, and its annotation says ("
            assert str(e.value).startswith(said), e.value
            assert f"such as its .reshape({reshape})" in str(e.value)


@pytest.mark.parametrize("shape", [(), (0, 4), (4, None), (4, -1), (None, 2.0)])
def test_shapes_that_are_none(shape):
    with pytest.raises(iv.Error, match="is not a shape: write the extents"):
        iv.Buffer[iv.f32, shape]


def test_two_indices_of_an_array_without_a_shape():
    @iv.kernel
    def k(x: iv.Buffer[iv.f32]):
        x[0, 1] = 1.0

    with pytest.raises(iv.KernelError, match=r"write `x\[j \* width \+ i\]`, or the shape in the annot"):
        k.ir


def test_a_double_is_one_of_pythons_floats():
    @iv.kernel
    def k(x: iv.Buffer[iv.f32], by: iv.Scalar[iv.f32]):
        x[0] = by

    x = np.zeros(1, np.float32)
    k[1, 1](x, np.float64(2.5))
    assert x[0] == 2.5

    @iv.kernel
    def whole(x: iv.Buffer[iv.f32], by: iv.Scalar[iv.u32]):
        x[0] = iv.f32(by)

    with pytest.raises(iv.ArgumentError, match="expected a value of type u32"):
        whole[1, 1](x, np.float64(2.5))


def test_a_kernel_without_annotations():
    @iv.kernel
    def k(x, n):
        x[0] = n

    with pytest.raises(iv.ArgumentError, match=r"`x` of kernel `k` has no annotation.*an array: annotate"):
        k[1, 1](np.zeros(1, np.float32), 3)


def test_a_method_is_no_kernel():
    class Model:
        @iv.kernel
        def k(self, x: iv.Buffer[iv.f32]):
            x[0] = 1.0

    with pytest.raises(iv.ArgumentError, match="`x`: a kernel is a function, not a method"):
        Model().k[1, 1](np.zeros(1, np.float32))


def test_random_numbers_of_numpy_are_refused():
    @iv.kernel
    def k(x: iv.Buffer[iv.f32]):
        x[0] = np.random.rand()

    with pytest.raises(iv.KernelError, match="gives one number when the kernel is compiled"):
        k.ir
