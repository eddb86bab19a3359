"""Atomics, copies, barriers, uniformity, constants, guarded accesses: against plain Python."""

import numpy as np
import pytest

import invar as iv


def tid():
    return iv.thread_position_in_grid("x")


def refused(kernel, pattern):
    with pytest.raises(iv.KernelError, match=pattern):
        kernel.ir


READ_MODIFY_WRITE = {
    "add": lambda old, v: old + v, "sub": lambda old, v: old - v, "min": min, "max": max,
    "and": lambda old, v: old & v, "or": lambda old, v: old | v, "xor": lambda old, v: old ^ v,
}  # fmt: skip


@pytest.mark.parametrize("space", ["device", "threadgroup"])
@pytest.mark.parametrize("ty", ["i32", "u32"])
@pytest.mark.parametrize("name", READ_MODIFY_WRITE)
def test_atomics_of_every_kind(name, ty, space):
    ty, function = getattr(iv, ty), getattr(iv, f"atomic_{name}")

    @iv.kernel
    def k(x: iv.Buffer[ty], total: iv.Buffer[ty], old: iv.Buffer[ty]):
        if space == "device":
            old[tid()] = function(total, 0, x[tid()])
        else:
            mine = iv.threadgroup_alloc(ty, 1)
            if tid() == 0:
                mine[0] = total[0]
            iv.barrier()
            old[tid()] = function(mine, 0, x[tid()])
            iv.barrier()
            if tid() == 0:
                total[0] = iv.atomic_load(mine, 0)

    x = (np.arange(1, 33) * 2654435761 % 1000).astype(ty.numpy())
    total, old = np.full(1, 500, ty.numpy()), np.zeros(32, ty.numpy())
    k[32, 32](x, total, old)
    expected = 500
    for v in x.tolist():
        expected = READ_MODIFY_WRITE[name](expected, v)
    assert total[0] == expected & 0xFFFFFFFF if ty == iv.u32 else total[0] == expected
    assert 500 in old


def test_exchange_load_and_store():
    @iv.kernel
    def k(x: iv.Buffer[iv.u32], out: iv.Buffer[iv.u32]):
        out[0] = iv.atomic_exchange(x, 0, 7)
        out[1] = iv.atomic_load(x, 0)
        iv.atomic_store(x, 0, 9)
        out[2] = iv.atomic_load(x, 0)
        out[3], done = iv.atomic_compare_exchange(x, 0, 9, 11)
        out[4], again = iv.atomic_compare_exchange(x, 0, 9, 13)
        out[5] = iv.u32(done) * 2 + iv.u32(again)

    x, out = np.uint32([5]), np.zeros(6, np.uint32)
    k[1, 1](x, out)
    assert out.tolist() == [5, 7, 9, 9, 11, 2] and x[0] == 11


ORDERS = {
    "load": ["relaxed", "acquire", "seq_cst"], "store": ["relaxed", "release", "seq_cst"],
    "add": ["relaxed", "acquire", "release", "acq_rel", "seq_cst"],
}  # fmt: skip


@pytest.mark.parametrize("scope", ["threadgroup", "device"])
@pytest.mark.parametrize(("name", "order"), [(n, o) for n, all in ORDERS.items() for o in all])
def test_orders_and_scopes_of_atomics(name, order, scope):
    @iv.kernel
    def k(x: iv.Buffer[iv.u32]):
        if name == "load":
            iv.atomic_load(x, 0, order=order, scope=scope)
        elif name == "store":
            iv.atomic_store(x, 0, 1, order=order, scope=scope)
        else:
            iv.atomic_add(x, 0, 1, order=order, scope=scope)

    line = next(line for line in k.ir.splitlines() if f"atomic_{name}" in line)
    assert order in line or order == "relaxed"
    x = np.zeros(1, np.uint32)
    k[4, 4](x)
    assert x[0] == {"load": 0, "store": 1, "add": 4}[name]


def test_orders_that_make_no_sense():
    @iv.kernel
    def load(x: iv.Buffer[iv.u32]):
        x[1] = iv.atomic_load(x, 0, order="release")

    @iv.kernel
    def name(x: iv.Buffer[iv.u32]):
        iv.atomic_add(x, 0, 1, order="strong")

    @iv.kernel
    def scope(x: iv.Buffer[iv.u32]):
        iv.atomic_add(x, 0, 1, scope="grid")

    @iv.kernel
    def vector(x: iv.Buffer[iv.f32x2]):
        iv.atomic_add(x, 0, 1.0)

    with pytest.raises(iv.VerifyError):
        load.ir
    refused(name, "`strong` is not a memory order: write one of relaxed, acquire")
    refused(scope, '`grid` is not a scope: write "simdgroup", "threadgroup" or "device"')
    with pytest.raises(iv.VerifyError):
        vector.ir


def test_message_passing_with_release_and_acquire():
    @iv.kernel
    def k(data: iv.Buffer[iv.u32], flag: iv.Buffer[iv.u32], out: iv.Buffer[iv.u32]):
        if tid() == 0:
            data[0] = 42
            iv.atomic_store(flag, 0, 1, order="release")
        else:
            while iv.atomic_load(flag, 0, order="acquire") == 0:
                pass
            out[0] = data[0]

    data, flag, out = (np.zeros(1, np.uint32) for _ in range(3))
    assert iv.check(k, grid=2, threadgroup=1)(data, flag, out)
    k[2, 1](data, flag, out)
    assert out[0] == 42


def test_atomics_of_struct_fields():
    counter = np.dtype([("hits", np.uint32), ("weights", np.int32, 2)])

    @iv.kernel
    def k(x: iv.Buffer[counter]):
        iv.atomic_add(x[0], "hits", 2)
        iv.atomic_max(x[0].weights, 1, iv.i32(tid()))

    x = np.zeros(1, counter)
    k[8, 8](x)
    assert x["hits"][0] == 16 and x["weights"].tolist() == [[0, 7]]


def test_load_if_and_store_if_do_not_access_where_the_mask_is_false():
    @iv.kernel
    def k(x: iv.Buffer[iv.f32], out: iv.Buffer[iv.f32], n: iv.Scalar[iv.u32]):
        i = tid()
        v = iv.load_if(i < n, x, i, -1.0)
        iv.store_if(i % 2 == 0, out, i, v)
        w = iv.load_if(i + 1 < n, x, i + 1)
        iv.store_if(i == 1, out, i, w)

    x, out = np.arange(1, 6, dtype=np.float32), np.zeros(7, np.float32)
    # The check fails on any access out of bounds: of x from 5 on, of out from 7 on.
    assert iv.check(k, grid=8, threadgroup=8)(x, out, 5)
    k[8, 8](x, out, 5)
    assert out.tolist() == [1, 3, 3, 0, 5, 0, -1]


def test_copies_between_spaces():
    @iv.kernel
    def k(x: iv.Buffer[iv.i32], out: iv.Buffer[iv.i32], n: iv.Scalar[iv.u32]):
        mine = iv.thread_alloc(iv.i32, 8)
        iv.copy(mine, 1, x, tid() * 4, n)
        iv.copy(out, tid() * 4, mine, 0, 4)

    x, out = np.arange(1, 9, dtype=np.int32), np.zeros(8, np.int32)
    k[2, 2](x, out, 3)
    assert out.tolist() == [0, 1, 2, 3, 0, 5, 6, 7]


def test_barriers_of_each_kind():
    @iv.kernel(simdgroup=8)
    def k(x: iv.Buffer[iv.u32], out: iv.Buffer[iv.u32]):
        t = iv.thread_index_in_threadgroup()
        s = iv.threadgroup_alloc(iv.u32, 16)
        s[t] = x[t]
        iv.simdgroup_barrier("threadgroup")
        v = s[t ^ 1]
        iv.threadgroup_barrier()
        s[t] = v
        iv.barrier("threadgroup", ["threadgroup"])
        out[t] = s[15 - t]
        iv.barrier(spaces=())
        x[t] = v

    x, out = np.arange(16, dtype=np.uint32), np.zeros(16, np.uint32)
    assert iv.check(k, grid=16, threadgroup=16)(x, out)
    k[16, 16](x, out)
    assert out.tolist() == [(15 - i) ^ 1 for i in range(16)]
    text = k.ir
    assert "barrier simdgroup [threadgroup]" in text and "barrier threadgroup []" in text


def test_a_barrier_of_unknown_spaces():
    @iv.kernel
    def k():
        iv.barrier(spaces="texture memory")

    refused(k, "`texture memory` is not an address space that a barrier orders")


def test_assert_uniform():
    @iv.kernel
    def k(x: iv.Buffer[iv.u32], out: iv.Buffer[iv.u32]):
        n = iv.assert_uniform(iv.atomic_load(x, 0))
        if n > 3:
            iv.barrier()
        out[tid()] = n + iv.assert_uniform(4)

    x, out = np.uint32([5]), np.zeros(8, np.uint32)
    k[8, 8](x, out)
    assert (out == 9).all()

    @iv.kernel
    def wrong(out: iv.Buffer[iv.u32]):
        out[tid()] = iv.assert_uniform(tid(), "simdgroup")

    report = iv.check(wrong, grid=8, threadgroup=8, raises=False)(out)
    assert not report
    assert "uniform" in report.findings[0].rule


def test_function_constants_of_every_type_and_their_errors():
    @iv.kernel
    def k(out: iv.Buffer[iv.f32]):
        scale = iv.function_constant("SCALE", iv.f32, 0.5)
        if iv.function_constant("ON", iv.bool, False):
            out[0] = scale * iv.f32(iv.function_constant("N", iv.i16, -2, id=9))

    out = np.zeros(1, np.float32)
    k[1, 1](out)
    assert out[0] == 0
    k[1, 1](out, constants={"ON": iv.bool(True), "SCALE": iv.f32(3)})
    assert out[0] == -6
    out[0] = 0
    k[1, 1](out, constants={"ON": 1})
    assert out[0] == -1
    with pytest.raises(iv.Error, match="`ON` of `k` is 2 .int., expected a value of type bool"):
        k[1, 1](out, constants={"ON": 2})
    with pytest.raises(iv.Error, match="NOPE"):
        k[1, 1](out, constants={"NOPE": iv.u32(1)})

    @iv.kernel
    def needed(out: iv.Buffer[iv.u32]):
        out[0] = iv.function_constant("NEEDED", iv.u32)

    with pytest.raises(iv.Error, match="NEEDED"):
        needed[1, 1](np.zeros(1, np.uint32))

    @iv.kernel
    def twice(out: iv.Buffer[iv.u32]):
        out[0] = iv.function_constant("A", iv.u32) + iv.u32(iv.function_constant("A", iv.i32))

    refused(twice, "function constant `A` is u32 elsewhere")

    @iv.kernel
    def vector(out: iv.Buffer[iv.u32]):
        iv.function_constant("A", iv.u32x2)

    refused(vector, "function constant `A` has a scalar type, not u32x2")


TABLE = [3, 1, 4, 1, 5]
POINTS = np.array([(1, (2.5, 3.5)), (4, (5.5, 6.5))], [("a", np.int32), ("b", np.float32, 2)])


def test_program_constants():
    @iv.kernel
    def k(out: iv.Buffer[iv.i32], floats: iv.Buffer[iv.f32]):
        digits = iv.constant_array(TABLE)
        same = iv.constant_array(TABLE)
        points = iv.constant_array(POINTS)
        rows = iv.constant_array([[1, 2], [3, 4]], iv.f32x2)
        i = tid()
        out[i] = digits[i] + same[0] + points[i % 2].a * 100
        floats[i] = points[i % 2].b[1] + rows[i % 2].x + iv.constant_array([0.25])[0]

    out, floats = np.zeros(5, np.int32), np.zeros(5, np.float32)
    k[5, 5](out, floats)
    i = np.arange(5)
    assert (out == np.array(TABLE) + 3 + POINTS["a"][i % 2] * 100).all()
    assert (floats == POINTS["b"][i % 2, 1] + np.float32([1, 3])[i % 2] + 0.25).all()
    # One array for equal contents.
    assert k.ir.count("i32[5]") == 1


def test_program_constants_are_only_read_and_bounded():
    @iv.kernel
    def stores():
        iv.constant_array([1])[0] = 2

    @iv.kernel
    def shape():
        iv.constant_array([1, 2], iv.f32x2)

    @iv.kernel
    def fits():
        iv.constant_array([300], iv.u8)

    @iv.kernel
    def floats():
        iv.constant_array([1.5], iv.i32)

    @iv.kernel
    def text():
        iv.constant_array(["a"])

    @iv.kernel(allow=["out_of_bounds_loads"])
    def outside(out: iv.Buffer[iv.i32]):
        out[0] = iv.constant_array([7, 8])[tid() + 5]

    refused(stores, "constant memory, which kernels only read")
    refused(shape, r"needs values of shape \(n, 2\) with n at least 1, found \(2,\)")
    refused(fits, "300 does not fit u8")
    refused(floats, r"1\.5 in a constant array of i32")
    refused(text, "no type for NumPy's")
    out = np.full(1, 9, np.int32)
    outside[1, 1](out)
    assert out[0] == 0


def test_fields_have_any_name():
    names = ["index", "width", "memory", "element", "path", "get", "put", "raw", "field", "part", "_parts", "name"]
    fields = np.dtype([(name, np.uint32) for name in names])

    @iv.kernel
    def k(x: iv.Buffer[fields], y: iv.Buffer[fields], out: iv.Buffer[iv.u32]):
        i = iv.thread_position_in_grid("x")
        sum = x[i].index
        for name in names:
            sum = sum * 3 + getattr(x[i], name)
        x[i].index += 100
        x[i].get, x[i].width = x[i].put, x[i].raw + x[i].field + x[i].part
        x[i].path = x[i].memory + x[i].element + x[i]._parts + x[i].name
        y[i] = x[i]
        out[i] = sum

    x, y, out = np.zeros(2, fields), np.zeros(2, fields), np.zeros(2, np.uint32)
    for number, name in enumerate(names):
        x[name] = [number + 1, 7 * number + 2]
    want, sums = x.copy(), x["index"].copy()
    for name in names:
        sums = sums * 3 + x[name]
    want["index"] += 100
    want["get"], want["width"] = x["put"], x["raw"] + x["field"] + x["part"]
    want["path"] = x["memory"] + x["element"] + x["_parts"] + x["name"]
    k[2, 1](x, y, out)
    assert (x == want).all() and (y == want).all() and (out == sums).all()


def test_struct_elements_in_every_space():
    inner = np.dtype([("x", np.float32), ("n", np.uint8, 3)], align=True)
    outer = np.dtype([("id", np.int16), ("parts", inner, 2), ("w", np.float64)], align=True)

    @iv.kernel
    def k(p: iv.Buffer[outer], q: iv.Constant[inner], out: iv.Buffer[iv.f32]):
        t = iv.thread_position_in_threadgroup("x")
        shared = iv.threadgroup_alloc(iv.Struct("Outer", outer), 4)
        shared[t].id = p[t].id + 1
        shared[t].parts[1].x = p[t].parts[0].x * q[0].x
        shared[t].parts[1].n[2] = p[t].parts[1].n[1]
        iv.barrier()
        other = shared[3 - t]
        p[t].id = other.id
        p[t].w += iv.f64(other.parts[1].x)
        out[t] = iv.f32(other.parts[1].n[2])

    random = np.random.default_rng(3)
    p = np.zeros(4, outer)
    p["id"] = [1, 2, 3, 4]
    p["parts"]["x"] = random.random((4, 2))
    p["parts"]["n"] = random.integers(0, 255, (4, 2, 3))
    q, out = np.zeros(1, inner), np.zeros(4, np.float32)
    q["x"] = 2
    expected = p.copy()
    expected["id"] = p["id"][::-1] + 1
    expected["w"] = (p["parts"]["x"][:, 0] * np.float32(2))[::-1].astype(np.float64)
    k[4, 4](p, q, out)
    assert (p == expected).all()
    assert (out == p["parts"]["n"][::-1, 1, 1]).all()


def test_structs_and_arrays_are_assigned_as_a_whole():
    inner = np.dtype([("x", np.float32), ("n", np.uint8, 3)], align=True)
    outer = np.dtype([("id", np.int16), ("parts", inner, 2)], align=True)

    @iv.kernel
    def k(p: iv.Buffer[outer], q: iv.Buffer[outer]):
        t = iv.thread_position_in_grid.x
        shared = iv.threadgroup_alloc(iv.Struct("Outer", outer), 4)
        shared[t] = p[t]
        iv.barrier()
        q[t] = shared[3 - t]
        q[t].parts[0].n = p[t].parts[1].n
        p[t] = q[t]

    random = np.random.default_rng(4)
    p, q = np.zeros(4, outer), np.zeros(4, outer)
    p["id"] = [1, 2, 3, 4]
    p["parts"]["x"] = random.random((4, 2))
    p["parts"]["n"] = random.integers(0, 255, (4, 2, 3))
    expected = p[::-1].copy()
    expected["parts"]["n"][:, 0] = p["parts"]["n"][:, 1]
    k[4, 4](p, q)
    assert (q == expected).all() and (p == expected).all()


def test_a_struct_is_exchanged_within_its_array():
    @iv.kernel
    def rotate(p: iv.Buffer[[("a", np.int32, 2)]]):
        p[0].a = p[1].a
        p[0] = p[0]

    p = np.array([([1, 2],), ([3, 4],)], [("a", np.int32, 2)])
    rotate[1, 1](p)
    assert p["a"].tolist() == [[3, 4], [3, 4]]


@pytest.mark.parametrize("ty", ["u32x2", "f32x3", "i16x4", "f32x2x3", "f16x4x4"])
def test_vectors_and_matrices_in_memory(ty):
    ty = getattr(iv, ty)

    @iv.kernel
    def k(x: iv.Buffer[ty], out: iv.Buffer[ty]):
        shared = iv.threadgroup_alloc(ty, 4)
        t = tid()
        shared[t] = x[t] + x[t]
        iv.barrier()
        out[t] = shared[3 - t]
        out[t][1] = x[t][0]

    x = np.random.default_rng(5).integers(0, 9, (4, *ty.shape)).astype(ty.numpy())
    out = np.zeros_like(x)
    k[4, 4](x, out)
    expected = 2 * x[::-1]
    expected[:, 1] = x[:, 0]
    assert (out == expected).all()


def test_scalar_parameters_of_every_shape():
    @iv.kernel
    def k(
        out: iv.Buffer[iv.f32], v: iv.Scalar[iv.f32x3], m: iv.Scalar[iv.f32x2x2], b: iv.Scalar[iv.bool]
    ):
        if b:
            out[0] = v.y + m[1][0]

    out = np.zeros(1, np.float32)
    k[1, 1](out, (1, 2, 3), np.float32([[10, 20], [30, 40]]), True)
    assert out[0] == 32
    with pytest.raises(iv.ArgumentError, match=r"`v` of `k` has shape \(2,\), expected \(3,\)"):
        k[1, 1](out, (1, 2), np.zeros((2, 2)), True)
    with pytest.raises(iv.ArgumentError, match="`b` of `k` is 2"):
        k[1, 1](out, (1, 2, 3), np.zeros((2, 2)), 2)


@pytest.mark.large
@pytest.mark.parametrize("kind", ["u8", "i8", "u16", "i16", "u32", "i64"])
def test_indexes_of_small_types_do_not_wrap(kind):
    kind = getattr(iv, kind)

    @iv.kernel
    def k(x: iv.Buffer[iv.i32], ix: iv.Buffer[kind], o: iv.Buffer[iv.i32], off: iv.Scalar[iv.u32]):
        t = iv.thread_position_in_grid("x")
        table = iv.register_tensor(iv.i32, 100, 20)
        for i in iv.range(100):
            table[i, 3] = i
        o[3 * t] = x.at(off)[ix[t]]
        o[3 * t + 1] = x.at(ix[t])[200]
        o[3 * t + 2] = table[ix[t], 3]

    x = np.arange(1000, dtype=np.int32)
    ix = np.arange(90, 98).astype(kind.numpy())
    o = np.zeros(24, np.int32)
    k[8, 8](x, ix, o, 300)
    n = ix.astype(int)
    np.testing.assert_array_equal(o, np.stack([n + 300, n + 200, n], 1).ravel())


def test_rows_of_a_tile_apart_by_a_small_type():
    @iv.kernel(simdgroup=32)
    def k(c: iv.Buffer[iv.f32], s: iv.Scalar[iv.u16]):
        one, two = (iv.simdgroup_matrix(iv.f32, x) for x in (1.0, 2.0))
        iv.simdgroup_tile_store([[one], [two]], c, 0, s)

    c = np.zeros(8200 * 16, np.float32)
    k[32, 32](c, 8200)
    rows = c.reshape(16, 8200)
    assert (rows[:8, :8] == 1).all() and (rows[8:, :8] == 2).all() and c.sum() == 64 + 128


def test_an_index_divided_by_what_is_no_power_of_two():
    # Its bounds are proved in 128 bits, whose division is a function that the process need not show to kernels.
    @iv.kernel
    def k(c: iv.Buffer[iv.f32], y: iv.Buffer[iv.f32], w: iv.Scalar[iv.u32], s: iv.Scalar[iv.u32]):
        i = iv.thread_position_in_grid("x")
        y[i] = c[i * w * s // 100]

    y = np.zeros(256, np.float32)
    k[256, 64](np.arange(1000, dtype=np.float32), y, 3, 50)
    np.testing.assert_array_equal(y, np.arange(256) * 150 // 100)
