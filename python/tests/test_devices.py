"""Every device of this machine, the GPU too: launches on arrays of the host, and arrays that stay there."""

import asyncio
import os
import subprocess
import sys

import numpy as np
import pytest

import invar as iv
from invar import enigma


@pytest.fixture(params=["cpu", "checked", "gpu"])
def device(request):
    try:
        return iv.device(request.param)
    except iv.ArgumentError as e:
        pytest.skip(str(e))


def test_drivers_say_nothing_where_there_is_no_desktop():
    environment = {k: v for k, v in os.environ.items() if k not in ("XDG_RUNTIME_DIR", "NODEVICE_SELECT")}
    done = subprocess.run(
        [sys.executable, "-c", "import invar; print(len(invar.devices()) > 1)"],
        env=environment, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("True\n", "")


def tid():
    return iv.thread_position_in_grid("x")


@iv.kernel
def scale(x: iv.Buffer[iv.f32], by: iv.Scalar[iv.f32]):
    x[tid()] *= by


@iv.kernel
def add(x: iv.Buffer[iv.f32], y: iv.Buffer[iv.f32], out: iv.Buffer[iv.f32]):
    out[tid()] = x[tid()] + y[tid()]


@iv.kernel
def spin(x: iv.Buffer[iv.u32]):
    while iv.atomic_load(x, 0) == 0:
        pass


@iv.kernel(threadgroup=64)
def sums(x: iv.Buffer[iv.u32], out: iv.Buffer[iv.u32]):
    part = iv.threadgroup_alloc(iv.u32, 64)
    i = iv.thread_position_in_threadgroup("x")
    part[i] = x[tid()]
    iv.threadgroup_barrier()
    if i == 0:
        total = iv.u32(0)
        for k in iv.range(64):
            total += part[k]
        iv.atomic_add(out, 0, total)


def test_arrays_of_the_host_go_there_and_back(device):
    x, y, out = np.arange(100, dtype=np.float32), np.ones(100, np.float32), np.full(100, 7, np.float32)
    kept = x.copy()
    add[90, 32](x, y, out, device=device)
    assert (out[:90] == kept[:90] + 1).all() and (out[90:] == 7).all()
    assert (x == kept).all() and (y == 1).all()
    counts, total = np.arange(256, dtype=np.uint32), np.zeros(1, np.uint32)
    sums[256, 64](counts, total, device=device.name)
    assert total[0] == counts.sum()


def test_futures_and_prepared_launches(device):
    x = np.ones(64, np.float32)
    first = scale[64, 64].submit(x, 2, device=device)
    second = scale[64, 64].submit(x, 3, device=device)
    second.result()
    first.result()
    assert (x == 6).all()

    async def both():
        await scale[64, 64].submit(x, 0.5, device=device)

    asyncio.run(both())
    ready = scale[64, 64].prepare(x, 2, device=device)
    assert ready() >= 0 and (x == 6).all()
    ready.set(by=5)
    ready.submit().result()
    assert (x == 30).all()


def test_an_array_stays_on_its_device(device):
    x = device.array(np.arange(8, dtype=np.float32))
    out = device.zeros(8, iv.f32)
    assert x.shape == (8,) and x.dtype == np.float32 and x.nbytes == 32 and len(x) == 8
    assert f"on device {device.name}" in repr(x)
    scale[8, 8](x, 2, device=device)
    add[8, 8](x, x, out, device=device)
    assert out.numpy().tolist() == [4 * i for i in range(8)]
    assert np.asarray(x).tolist() == [2 * i for i in range(8)]
    # Parts of it that a launch does not reach stay, and the host changes all of it.
    out.write(np.full(8, 5, np.float32))
    add[4, 4].submit(x, x, out, device=device)
    assert out.numpy().tolist() == [0, 4, 8, 12, 5, 5, 5, 5]
    # Beside an array of the host.
    y = np.ones(8, np.float32)
    add[8, 8](x, out, y, device=device)
    assert y.tolist() == [0, 6, 12, 18, 13, 15, 17, 19]
    ready = add[8, 8].prepare(x, x, out, device=device)
    ready()
    assert out.numpy().tolist() == [4 * i for i in range(8)]
    # A check runs on a copy.
    assert iv.check(scale, grid=8, threadgroup=8)(x, 3).passed
    assert x.numpy().tolist() == [2 * i for i in range(8)]


def test_an_array_of_a_device_comes_and_goes_through_dlpack(device):
    x = device.array(iv.DLPack(np.arange(6, dtype=np.int16).reshape(2, 3)))
    assert x.shape == (2, 3) and x.dtype == np.int16
    back = np.from_dlpack(x)
    assert back.tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(BufferError, match="only as a copy"):
        x.__dlpack__(copy=False)


def test_tensors_of_other_devices_are_copied():
    class Tensor:
        """A tensor on a GPU of CUDA's, which copies itself to the CPU when asked to."""

        def __init__(self, array, copies):
            self.array, self.copies = array, copies

        def __dlpack_device__(self):
            return (2, 0)

        def __dlpack__(self, *, max_version=None, **options):
            if not self.copies and options:
                raise TypeError("unexpected arguments")
            assert options == {"dl_device": (1, 0), "copy": True}
            return iv.DLPack(self.array.copy()).__dlpack__()

    array = np.arange(3, dtype=np.float32)
    assert iv.device("cpu").array(Tensor(array, True)).numpy().tolist() == [0, 1, 2]
    with pytest.raises(iv.ArgumentError, match="device of kind 2, and it makes no copy on the CPU"):
        iv.device("cpu").array(Tensor(array, False))


READS = {
    "numpy()": lambda device, x: x.numpy(),
    "np.asarray": lambda device, x: np.asarray(x),
    "np.from_dlpack": lambda device, x: np.from_dlpack(x),
    "iv.DLPack": lambda device, x: iv.DLPack(x),
    "device.array": lambda device, x: device.array(x),
    "write": lambda device, x: device.zeros(1, iv.u32).write(x),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_every_reader_of_an_array_whose_launch_failed_raises_the_same(device, read):
    x = device.zeros(1, iv.u32)
    spin[1, 1].submit(x, device=device, time_limit=0.02)
    with pytest.raises(iv.Error, match="an earlier dispatch on the same memory failed") as caught:
        read(device, x)
    assert type(caught.value) is iv.Error
    assert "deadline-exceeded" in str(caught.value)


def test_arrays_that_do_not_fit_are_refused(device):
    x = device.array(np.ones(8, np.float64))
    with pytest.raises(iv.ArgumentError, match="`x` of `scale` has dtype float64, expected float32"):
        scale[8, 8](x, 2, device=device)
    x, y = device.zeros(8, iv.f32), device.zeros(8, iv.f32)
    for launch in (add[8, 8], add[8, 8].prepare):
        with pytest.raises(iv.ArgumentError, match="arguments `x` and `out` of `add` overlap"):
            launch(x, y, x, device=device)
    with pytest.raises(iv.ArgumentError, match=r"shape \(4,\) .* does not replace one of shape \(8,\)"):
        x.write(np.ones(4, np.float32))
    with pytest.raises(iv.ArgumentError, match="list, expected an array"):
        device.array([1, 2, 3])


@pytest.mark.parametrize("dtype", [object, "<U1", np.complex64, ">i4"])
def test_a_device_takes_only_what_kernels_have_types_for(device, dtype):
    with pytest.raises(iv.ArgumentError, match="the array: kernels have no type for NumPy's"):
        device.array(np.zeros(3, dtype))


def test_zeros_have_a_shape_that_there_can_be(device):
    assert device.zeros(np.int64(3), iv.u8).numpy().tolist() == [0, 0, 0]
    for shape, why in (
        (-1, "extent below 0"), ((2, -1), "extent below 0"), (2**63, "larger than any memory"),
        ((2**32, 2**32), "larger than any memory"), (3.5, "is not a shape"), ("ab", "is not a shape"),
    ):  # fmt: skip
        with pytest.raises(iv.ArgumentError, match=why):
            device.zeros(shape, iv.u8)
        with pytest.raises(iv.ArgumentError, match=why):
            iv.zeros(shape, iv.u8)
    for ty in ("u8", None):
        with pytest.raises(iv.Error, match="write"):
            device.zeros(3, ty)


def test_a_gpus_array_is_an_argument_there_only():
    try:
        gpu = iv.device("gpu")
    except iv.ArgumentError as e:
        pytest.skip(str(e))
    x = gpu.zeros(8, iv.f32)
    with pytest.raises(iv.ArgumentError, match="`x` of `scale` lies on device `gpu`, but .* `cpu`"):
        scale[8, 8](x, 2, device="cpu")
    assert gpu.capabilities()["name"] == "gpu" and gpu in iv.devices()
    assert iv.device("gpu:0") is gpu


@enigma.kernel
def doubled(a: enigma.Float32, out: enigma.Float32):
    i = enigma.thread_position_in_grid
    out[i] = a[i] * 2.0


def test_the_metal_runtime_on_every_device(device):
    compiled, x = enigma.compile(doubled), np.arange(64, dtype=np.float32)
    runtime = enigma.MetalRuntime(device=device.name)
    assert runtime.device is device
    assert runtime.device_capabilities().device_name == device.capabilities()["description"]
    got = runtime.execute(compiled, [x], x.nbytes, (64, 1, 1), (64, 1, 1))
    assert np.frombuffer(got, np.float32).tolist() == (2 * x).tolist()
    prepared = runtime.prepare(compiled, [x], x.nbytes)
    for _ in range(2):
        prepared.dispatch((64, 1, 1), (64, 1, 1))
    assert np.frombuffer(prepared.read_output(), np.float32).tolist() == (2 * x).tolist()
    prepared.release()


MEMORY = '''
import resource
import invar as iv

@iv.kernel
def next_number(x: iv.Buffer[iv.u32]):
    x[iv.thread_position_in_grid("x")] += 1

gpu = iv.device("gpu")
small = gpu.zeros(8, iv.u32)
next_number[8, 8](small, device=gpu)
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + (1 << 30)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
kept = []
try:
    for _ in range(64):
        kept.append(gpu.zeros(1 << 25, iv.u32))
        next_number[8, 8](kept[-1], device=gpu)
    print("all of it was there")
except iv.Error as e:
    print(e)
kept.clear()
next_number[8, 8](small, device=gpu)
print(small.numpy().tolist())
'''


def test_a_gpu_without_memory_left_says_so_and_goes_on(tmp_path):
    """In a process of its own with a gigabyte to spare, where the GPU's memory is the processor's."""
    try:
        gpu = iv.device("gpu")
    except iv.ArgumentError as e:
        pytest.skip(str(e))
    if "llvmpipe" not in repr(gpu) or sys.platform != "linux":
        pytest.skip("only lavapipe's memory can be limited for a process")
    script = tmp_path / "memory.py"
    script.write_text(MEMORY)
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    said, numbers = ran.stdout.splitlines()
    assert "no memory for a buffer of 134217728 bytes" in said and "out-of-memory" in said
    assert numbers == "[2, 2, 2, 2, 2, 2, 2, 2]"
