"""Arrays of other libraries: a kernel never writes memory that may not change, and reads all that it can.

A library that is not installed skips its tests, with the reason.
"""

import array
import ctypes
import mmap
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import invar as iv
from invar import _host

VERSIONED = np.lib.NumpyVersion(np.__version__) >= "2.1.0"


@iv.kernel
def fill(x: iv.Buffer[iv.f32], value: iv.Scalar[iv.f32]):
    x[iv.thread_position_in_grid("x")] = value


@iv.kernel
def double(x: iv.Buffer[iv.f32], out: iv.Buffer[iv.f32]):
    i = iv.thread_position_in_grid("x")
    out[i] = 2 * x[i]


def numbers(n=4):
    return np.arange(n, dtype=np.float32)


class Interface:
    """An object that has only NumPy's array interface."""

    def __init__(self, array, read_only):
        self.array = array
        data = array.__array_interface__["data"][0], read_only
        self.__array_interface__ = {**array.__array_interface__, "data": data}


class Tensor:
    """An object that has only DLPack's protocol, and says of itself what the flags are."""

    def __init__(self, array, flags):
        self.array, self.flags = array, flags

    def __dlpack__(self, **options):
        if self.flags is None:
            return self.array.__dlpack__()
        capsule = self.array.__dlpack__(max_version=(1, 0))
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
        address = get(capsule, b"dltensor_versioned")
        _host._Versioned.from_address(address).flags = self.flags
        return capsule

    def __dlpack_device__(self):
        return (1, 0)


def is_read_and_never_written(x, expected, why):
    """Every way to launch refuses it where the kernel writes it, in a sentence that says what to do."""
    out = np.zeros(len(expected), np.float32)
    double[out.size, 4](x, out)
    assert (out == 2 * np.asarray(expected)).all()
    grid = len(expected), 4
    ready = fill[grid].prepare(out, 1)
    for launch in (
        lambda: fill[grid](x, 7),
        lambda: fill[grid](x, 7, copy=True),
        lambda: fill[grid].submit(x, 7).result(),
        lambda: fill[grid].prepare(x, 7),
        lambda: ready.set(x=x),
        lambda: iv.check(fill, grid=grid[0], threadgroup=4)(x, 7),
    ):
        with pytest.raises(iv.ArgumentError) as e:
            launch()
        assert str(e.value).startswith("argument `x` of `fill` ")
        assert why in str(e.value)
        assert "the kernel writes it: pass a copy, such as np.array(...) of it" in str(e.value)
    double[out.size, 4](x, out)
    assert (out == 2 * np.asarray(expected)).all()


def test_memory_that_is_read_only_is_read_and_never_written(tmp_path):
    x, why = numbers(), "is read-only memory"
    data = x.tobytes()
    view = x.view()
    view.flags.writeable = False
    is_read_and_never_written(view, x, why)
    is_read_and_never_written(np.broadcast_to(np.float32(3), 1), [3], why)
    is_read_and_never_written(np.frombuffer(data, np.float32), x, why)
    is_read_and_never_written(memoryview(data).cast("f"), x, why)
    is_read_and_never_written(memoryview(array.array("f", x)).toreadonly(), x, why)
    is_read_and_never_written(Interface(x, True), x, why)
    file = tmp_path / "numbers"
    file.write_bytes(data)
    with open(file, "rb") as opened:
        mapped = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        is_read_and_never_written(memoryview(mapped).cast("f"), x, why)
    is_read_and_never_written(np.memmap(file, np.float32, "r"), x, why)
    assert file.read_bytes() == data and (x == numbers()).all()


def test_bytes_are_read_and_never_written():
    @iv.kernel
    def sums(x: iv.Buffer[iv.u8], out: iv.Buffer[iv.u8]):
        i = iv.thread_position_in_grid("x")
        out[i] = x[i] + iv.u8(1)

    out = np.zeros(3, np.uint8)
    sums[3, 4](b"abc", out)
    assert out.tobytes() == b"bcd"
    constant = b"abc"
    with pytest.raises(iv.ArgumentError, match="`out` of `sums` is read-only memory") as e:
        sums[3, 4](out, constant)
    assert "such as bytearray(...) of it" in str(e.value)
    sums[3, 4](out, (there := bytearray(constant)))
    assert constant == b"abc" and bytes(there) == b"cde"


def test_what_is_advised_of_bytes_can_be_written():
    out = np.zeros(2, np.float32)
    data = out.tobytes()
    # What is only read may stay where it is.
    with pytest.raises(iv.ArgumentError, match=r"convert it with np.frombuffer\(\.\.\., 'float32'\)"):
        double[2, 4](data, out)
    double[2, 4](np.frombuffer(data, np.float32), out)
    with pytest.raises(iv.ArgumentError) as e:
        fill[2, 4](data, 7)
    advice = "so pass np.empty(n, 'float32'), or np.frombuffer(bytearray(...), 'float32')"
    assert str(e.value).endswith(advice), e.value
    for there in (np.empty(2, "float32"), np.frombuffer(bytearray(data), "float32")):
        fill[2, 4](there, 7)
        assert there.tolist() == [7, 7]


@pytest.mark.skipif(not VERSIONED, reason="this NumPy's DLPack has no versions")
def test_what_dlpack_says_of_memory_holds():
    x = numbers()
    is_read_and_never_written(Tensor(x, 1), x, "is read-only memory")
    is_read_and_never_written(Tensor(x, 2), x, "comes through DLPack as a copy")
    fill[4, 4](Tensor(x, 0), 5)
    assert (x == 5).all()


@pytest.mark.skipif(not VERSIONED, reason="this NumPy's DLPack has no versions")
@pytest.mark.parametrize(
    ("field", "lie", "why"),
    [
        ("ndim", 1_000_000, "it has 1000000 dimensions"),
        ("ndim", -1, "it has -1 dimensions"),
        ("device_type", 2, "on a device of kind 2, and it says the CPU's"),
    ],
)
def test_a_capsule_that_contradicts_itself_is_refused(field, lie, why):
    class Liar(Tensor):
        def __dlpack__(self, **options):
            capsule = super().__dlpack__(**options)
            setattr(_host._tensor(capsule)[0], field, lie)
            return capsule

    x = numbers()
    with pytest.raises(iv.ArgumentError, match=why):
        fill[4, 4](Liar(x, 0), 5)
    assert (x == numbers()).all()


def test_dlpack_without_a_version_does_not_say_that_memory_may_change():
    x = numbers()
    is_read_and_never_written(Tensor(x, None), x, "(Tensor) comes through DLPack without a version")
    # What this package exports is its own.
    fill[4, 4](iv.DLPack(x), 5)
    assert (x == 5).all()


@pytest.mark.filterwarnings("ignore")
def test_an_object_that_fails_while_it_is_asked_is_refused_in_a_sentence():
    class Half:
        def __dlpack__(self, **options):
            raise KeyError("memory")

    class Gone(Half):
        def __dlpack_device__(self):
            return (1, 0)

    out = np.zeros(4, np.float32)
    for x, why in ((Half(), "'Half' object has no attribute '__dlpack_device__'"), (Gone(), "'memory'")):
        with pytest.raises(iv.ArgumentError) as e:
            double[4, 4](x, out)
        assert str(e.value) == f"argument `x` of `double` cannot be used in place through DLPack: {why}"


def test_arrays_of_jax_never_change():
    jax = pytest.importorskip("jax")
    x = jax.numpy.arange(1000, dtype=jax.numpy.float32)
    total = jax.jit(lambda x: x.sum())
    before = float(total(x))
    is_read_and_never_written(x, numbers(1000), "(ArrayImpl) comes through DLPack without a version")
    assert float(total(x)) == before == float(jax.jit(lambda x: x.sum() + 0)(x))
    is_read_and_never_written(np.asarray(x), numbers(1000), "is read-only memory")

    def launched(x):
        double[4, 4](x, np.zeros(4, np.float32))
        return x

    # What stands for an array while JAX traces a function is none.
    with pytest.raises(iv.ArgumentError, match="^argument `x` of `double` cannot be used in place through DLPack"):
        jax.jit(launched)(x)
    there = iv.device().array(x)
    there.write(x)
    assert (there.numpy() == numbers(1000)).all()


def test_arrays_of_pyarrow_never_change():
    pyarrow = pytest.importorskip("pyarrow")
    x = pyarrow.array(numbers())
    is_read_and_never_written(x, numbers(), "is read-only memory" if VERSIONED else "DLPack")
    is_read_and_never_written(x.to_numpy(), numbers(), "is read-only memory")
    assert x.to_pylist() == [0, 1, 2, 3]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_are_passed_as_arrays_of_numpy(library):
    series = pytest.importorskip(library).Series(numbers())
    with pytest.raises(iv.ArgumentError, match=r"is a Series, expected an array.*to_numpy\(\)"):
        fill[4, 4](series, 1)
    x = series.to_numpy()
    if not x.flags.writeable:
        is_read_and_never_written(x, numbers(), "is read-only memory")
    assert list(series) == [0, 1, 2, 3]


def test_tensors_of_pytorch():
    torch = pytest.importorskip("torch")
    x = torch.arange(4.0)
    fill[4, 4](x, 5)
    assert x.tolist() == [5] * 4
    brain = torch.ones(4, dtype=torch.bfloat16)

    @iv.kernel
    def more(x: iv.Buffer[iv.bf16]):
        x[iv.thread_position_in_grid("x")] += 1

    pytest.importorskip("ml_dtypes")
    more[4, 4](brain)
    assert brain.tolist() == [2] * 4
    with pytest.raises(iv.ArgumentError, match=r"use tensor.detach\(\)"):
        fill[4, 4](torch.zeros(4, requires_grad=True), 5)
    with torch.inference_mode():
        inferred = torch.zeros(4)
        fill[4, 4](inferred, 5)
    assert inferred.tolist() == [5] * 4
    # Its elements share memory, and it is not contiguous.
    with pytest.raises(iv.ArgumentError, match="is not contiguous"):
        fill[4, 4](torch.zeros(1).expand(4), 5)
    with pytest.raises(iv.ArgumentError, match="elements that share memory"):
        fill[4, 4](torch.zeros(1).expand(4), 5, copy=True)
    # The memory of these is another number's, by a bit that DLPack does not pass on.
    negated = torch.complex(torch.zeros(4), torch.ones(4)).conj().imag
    assert negated.is_neg()
    out = np.zeros(4, np.float32)
    with pytest.raises(iv.ArgumentError, match=r"use tensor.resolve_neg\(\)"):
        double[4, 4](negated, out, copy=True)
    double[4, 4](negated.resolve_neg(), out)
    assert (out == -2).all()


def test_an_operation_of_pytorch_may_launch(tmp_path):
    pytest.importorskip("torch")
    # In a process of its own, which has the operation alone.
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(OPERATION))
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=600)
    assert run.returncode == 0 and run.stdout == "passed\n", run.stdout + run.stderr


OPERATION = """
    import torch
    import invar as iv

    @iv.kernel
    def twice(x: iv.Buffer[iv.f32], out: iv.Buffer[iv.f32]):
        i = iv.thread_position_in_grid("x")
        out[i] = 2 * x[i]

    @torch.library.custom_op("invar::double", mutates_args=())
    def double(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        twice[x.numel(), 4](x.detach().contiguous(), out)
        return out

    @double.register_fake
    def _(x):
        return torch.empty_like(x)

    double.register_autograd(lambda context, gradient: double(gradient))
    x = torch.arange(4.0, requires_grad=True)
    torch.library.opcheck(double, (x,))
    y = torch.compile(lambda x: double(x + 1).sum(), backend="aot_eager", fullgraph=True)(x)
    y.backward()
    assert y == 20 and x.grad.tolist() == [2] * 4, (y, x.grad)

    def refused(launch, sentence):
        try:
            launch()
        except iv.ArgumentError as e:
            assert sentence in str(e), e
        else:
            raise AssertionError(sentence)

    out = torch.zeros(4)
    batched = torch.func.vmap(lambda x: twice[4, 4](x, out))
    refused(lambda: batched(torch.ones(3, 4)), "make the launch an operation by torch.library")
    refused(lambda: twice[4, 4](torch._efficientzerotensor((4,)), out), "it has no memory")
    print("passed")
"""


COMPILED = """
    @iv.kernel
    def double(x: iv.Buffer[iv.f32], out: iv.Buffer[iv.f32]):
        i = iv.thread_position_in_grid("x")
        out[i] = 2 * x[i]

    x, out, host = torch.arange(4.0), torch.zeros(4), np.zeros(4, np.float32)
    held, ready = double[4, 4], double[4, 4].prepare(x, out)

    def launched(x, out):
        y = x + 1
        double[4, 4](y, out)
        return out + 1

    def submitted(x, out):
        double[4, 4].submit(x + 1, out).result()
        return out + 1

    def was_held(x, out):
        held(x + 1, out)
        return out + 1

    def checked(x, out):
        y = x + 1
        assert iv.check(double, grid=4, threadgroup=4)(y, host).passed
        return 2 * y + 1

    for function in (launched, submitted, was_held, checked):
        function = torch.compile(function, backend="eager")
        for step in range(3):
            out.zero_()
            assert function(x + step, out).tolist() == [2 * (n + step + 1) + 1 for n in range(4)]

    def was_prepared(x, out):
        out = out * 0
        ready()
        return out + 1

    assert torch.compile(was_prepared, backend="eager")(x, out).tolist() == [1] * 4
    assert out.tolist() == [0, 2, 4, 6]
    torch._dynamo.reset()
    try:
        torch.compile(launched, backend="eager", fullgraph=True)(x, out)
    except torch._dynamo.exc.Unsupported as e:
        assert "__getitem__" in str(e), e
    else:
        raise AssertionError("a launch is part of a graph")
    print("passed")
"""


@pytest.mark.parametrize("first", ["torch", "invar as iv"])
def test_a_launch_breaks_the_graph_of_torch_compile(first, tmp_path):
    pytest.importorskip("torch")
    # In a process of its own, which loads the one or the other first.
    script = tmp_path / "program.py"
    head = f"import {first}\nimport torch\nimport invar as iv\nimport numpy as np\n"
    script.write_text(head + textwrap.dedent(COMPILED))
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=600)
    assert run.returncode == 0 and run.stdout == "passed\n", run.stdout + run.stderr
