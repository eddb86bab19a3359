"""Running compiled kernels on Invar's default device."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np

from ..._array import DeviceArray
from ..._errors import Error
from ..._invar import DeviceError, DiagnosticsError
from ..._launch import device_of, failure, sizes_of
from .. import typing as _typing
from .._errors import EnigmaRuntimeError, EnigmaTypeError, runtime_error
from ..compiler.kernel import CompiledKernel, _three, bits_of
from . import mlx_interop

__all__ = ["DeviceCapabilities", "MetalRuntime", "PreparedKernel"]


#: Bytes of threadgroup memory that all of Apple's GPUs have.
THREADGROUP_MEMORY = 32768


class DeviceCapabilities:
    """What the device can do, in Metal's terms."""

    def __init__(self, gpu_family="apple9", gpu_family_raw=1009, supports_async_copy=True,
                 supports_simdgroup_matrix=True, simdgroup_size=32, max_threadgroup_memory=THREADGROUP_MEMORY,
                 max_threads_per_threadgroup=1024, device_name="Invar"):  # fmt: skip
        self.gpu_family, self.gpu_family_raw = gpu_family, gpu_family_raw
        self.supports_async_copy = supports_async_copy
        self.supports_simdgroup_matrix = supports_simdgroup_matrix
        self.simdgroup_size = simdgroup_size
        self.max_threadgroup_memory = max_threadgroup_memory
        self.max_threads_per_threadgroup = max_threads_per_threadgroup
        self.device_name = device_name

    def __repr__(self):
        return f"<{self.device_name}: {self.gpu_family}, simdgroups of {self.simdgroup_size}>"

    @property
    def is_m3_or_newer(self):
        """Whether it has what Apple's family 9 brought."""
        return self.gpu_family_raw >= 1009

    def require_m3(self, feature):
        """Raises unless the device has what Apple's family 9 brought."""
        if not self.is_m3_or_newer:
            raise EnigmaRuntimeError(f"{feature} needs an M3 or newer; {self.device_name} is {self.gpu_family}")


class MetalRuntime:
    """Executes compiled kernels, on Invar's default device or on ``device``: with ``"checked"`` every
    checker runs, and what it finds is raised.

    A kernel with more threadgroup memory than Apple's GPUs have, 32,768 bytes, is refused, but on a
    GPU that states more. ``max_threadgroup_memory`` sets another limit, in bytes.
    """

    #: Where no runtime says otherwise: the name of a device, or ``None`` for Invar's default.
    default_device = None

    def __init__(self, dylib_path=None, *, device=None, max_threadgroup_memory=None):
        self._device = None if device is None else _device(device)
        self._threadgroup_memory = None if max_threadgroup_memory is None else _size(max_threadgroup_memory)
        # A path to Apple's bridge has no meaning here; programs pass one and get this runtime.
        self.dylib_path = dylib_path

    @property
    def device(self):
        """The device that it executes on."""
        return self._device or _device(self.default_device)

    def device_capabilities(self):
        """What the device can do; its family is Apple's 9 if it has what that brought."""
        found = self.device.capabilities()
        matrices = bool(found["simdgroup_matrices"])
        family = 9 if found["async_copy"] and matrices else 8
        return DeviceCapabilities(
            gpu_family=f"apple{family}", gpu_family_raw=1000 + family,
            supports_async_copy=found["async_copy"], supports_simdgroup_matrix=matrices,
            simdgroup_size=32 if 32 in found["simdgroup_sizes"] else found["simdgroup_size"],
            max_threadgroup_memory=self._limit(found["threadgroup_memory_bytes"]),
            max_threads_per_threadgroup=found["threads_per_threadgroup"],
            device_name=found["description"],
        )  # fmt: skip

    def _limit(self, stated):
        """The bytes of threadgroup memory that a kernel may have, where the device states so many."""
        if self._threadgroup_memory is not None:
            return min(stated, self._threadgroup_memory)
        # Devices of the processor stand for Apple's GPUs; a GPU stands for itself.
        return min(stated, THREADGROUP_MEMORY) if self.device.name in ("cpu", "checked") else stated

    def check_memory(self, compiled):
        """Refuses a kernel with more threadgroup memory than there is."""
        made = getattr(compiled, "_compiled", None)
        used = made.threadgroup_bytes if made is not None else 0
        if used <= THREADGROUP_MEMORY and self._threadgroup_memory is None:
            return
        limit = self._limit(self.device.capabilities()["threadgroup_memory_bytes"])
        if used > limit:
            raise EnigmaRuntimeError(
                f"kernel `{compiled.kernel_name}` has {used} bytes of threadgroup memory, the limit is "
                f"{limit}: use less, or give MetalRuntime(max_threadgroup_memory=...) if the kernel is "
                "for devices that have more"
            )

    def execute(self, compiled, inputs, output_size=None, grid=(1, 1, 1), threads=(1, 1, 1), *,
                scalars=None, output_sizes=None, constants=None, output_shapes=None,
                output_dtypes=None):  # fmt: skip
        """Runs a kernel, whose inputs stay as they are; gives its outputs, which begin as zeros.

        Buffers are the inputs and then the outputs, in the order of the parameters; sizes are in
        bytes, ``grid`` in threads. Gives bytes, a list of such where ``output_sizes`` is given, and
        where ``output_shapes`` or ``output_dtypes`` say what they are, an array or a list of several:
        of MLX for a type of MLX, else of NumPy.
        """
        shapes = _outputs(output_size, output_sizes, output_shapes, output_dtypes)
        self.check_memory(compiled)
        buffers = _inputs(compiled, inputs)
        outputs = [_Output(size, dtype) for size, _, dtype in shapes]
        given = [] if scalars is None else scalars
        arrays = [output.array for output in outputs]
        _dispatch(self.device, compiled, buffers + arrays, given, constants, grid, threads)
        results = [output.result(shape) for output, (_, shape, _) in zip(outputs, shapes)]
        listed = output_sizes is not None and output_shapes is None
        return results if listed or len(results) > 1 else results[0]

    def prepare(self, compiled, inputs, output_size):
        """Keeps copies of the inputs and an output of so many bytes for many dispatches."""
        device = self.device
        try:
            self.check_memory(compiled)
            buffers = [device.array(x) for x in _inputs(compiled, inputs)]
            output = device.zeros(_size(output_size), np.uint8)
        except Error as e:
            raise runtime_error(e) from None
        return PreparedKernel(
            self, compiled, None, buffers, buffers + [output], output, output.nbytes,
            compiled.kernel_name,
        )  # fmt: skip


def _device(name):
    try:
        return device_of(name)
    except Error as e:
        raise runtime_error(e) from None


class PreparedKernel:
    """A kernel with its buffers, to dispatch many times."""

    def __init__(self, runtime, pso, mtl_lib, gpu_bufs, buf_arr, out_buf, output_size, kernel_name=""):
        self.runtime, self.compiled, self.metal_lib = runtime, pso, mtl_lib
        self.inputs, self.buffers, self.output = gpu_bufs, buf_arr, out_buf
        self.output_size, self.kernel_name = output_size, kernel_name

    def dispatch(self, grid, threads):
        """Runs it: the grid in threads, the threadgroup's size."""
        self._run(grid, threads)

    def _run(self, grid, threads):
        if self.buffers is None:
            raise EnigmaRuntimeError(f"prepared kernel `{self.kernel_name}` was released")
        return _dispatch(self.runtime.device, self.compiled, self.buffers, [], None, grid, threads)

    def dispatch_timed(self, grid, threads):
        """Runs it; gives the microseconds that it took on the device."""
        return self._run(grid, threads) * 1e6

    def read_output(self):
        """The output's bytes."""
        if self.buffers is None:
            raise EnigmaRuntimeError(f"prepared kernel `{self.kernel_name}` was released")
        return self.output.numpy().tobytes()

    def release(self):
        """Lets the buffers go."""
        self.inputs = self.buffers = self.output = None


def _size(size):
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 0:
        raise EnigmaRuntimeError(f"the size of an output is a number of bytes, not {size!r}")
    return int(size)


def _dtype(dtype):
    """NumPy's type of an output, and MLX's if it is to be an array of MLX."""
    if mlx_interop.is_mlx_dtype(dtype):
        ty = _typing.type_of(mlx_interop.mlx_dtype_to_metal(dtype))
        return np.dtype(np.uint16) if ty.name == "bf16" else np.dtype(ty.numpy()), dtype
    try:
        ty = _typing.type_of(dtype)
    except Error:
        ty = None
    if ty is not None and ty.kind != "scalar":
        raise EnigmaRuntimeError(
            f"an output of type {dtype!r}: write its scalar, \"{_typing.metal_name(ty.scalar)}\", and "
            "the components as the last dimension of its shape"
        )
    try:
        return np.dtype(ty.numpy() if ty is not None else dtype), None
    except Error as e:
        raise runtime_error(e) from None
    except TypeError:
        raise EnigmaRuntimeError(
            f"{dtype!r} is not a type of an output: write one such as \"float\" or np.float32"
        ) from None


def _shape(i, shape):
    sizes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    for n in sizes:
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0:
            raise EnigmaRuntimeError(f"the shape of output {i} is made of numbers of at least 0, not {shape!r}")
    return tuple(int(n) for n in sizes)


def _outputs(output_size, sizes, shapes, dtypes):
    """Bytes, shape and dtype of each output."""
    given = [x for x in (sizes, shapes, dtypes) if x is not None]
    if output_size is not None and sizes is not None:
        raise EnigmaRuntimeError("give output_size or output_sizes, not both")
    if output_size is not None:
        sizes = [output_size]
        given.append(sizes)
    for what, listed in (("sizes", sizes), ("shapes", shapes), ("dtypes", dtypes)):
        if listed is not None and not isinstance(listed, (list, tuple)):
            raise EnigmaRuntimeError(f"output_{what} is a list with one for each output, not {listed!r}")
    if sizes is None and shapes is None:
        raise EnigmaRuntimeError("the outputs' sizes are missing: give output_size, output_sizes or output_shapes")
    count = len(sizes if sizes is not None else shapes)
    for other in given:
        if len(other) != count:
            raise EnigmaRuntimeError(f"the outputs are {count} here and {len(other)} there")
    out = []
    for i in range(count):
        dtype = _dtype(dtypes[i]) if dtypes is not None else None
        shape = _shape(i, shapes[i]) if shapes is not None else None
        if shape is not None and dtype is None:
            dtype = np.dtype(np.float32), None
        item_bytes = dtype[0].itemsize if dtype is not None else 1
        needed = int(np.prod(shape, dtype=np.int64)) * item_bytes if shape is not None else None
        size = _size(sizes[i]) if sizes is not None else needed
        if needed is not None and size != needed:
            raise EnigmaRuntimeError(f"output {i} has {size} bytes, its shape {shape} takes {needed}")
        if size % item_bytes:
            raise EnigmaRuntimeError(
                f"output {i} has {size} bytes, which is not a whole number of {dtype[0]}"
            )
        out.append((size, shape, dtype))
    return out


class _Output:
    """An output's memory, zeros at first."""

    #: Below this, bytes are copied: Python keeps short ones and gives them to others too.
    _COPIED = 4096

    def __init__(self, size, dtype):
        self.dtype, self.bytes = dtype, None
        if dtype is None and size >= self._COPIED:
            # These bytes are not shared before execute() returns them, so the kernel writes them in
            # place, as an extension does.
            self.bytes = bytes(size)
            address = _address(self.bytes)
            _want_large_pages(address, size)
            self.array = np.ctypeslib.as_array((ctypes.c_ubyte * size).from_address(address))
        else:
            self.array = np.zeros(size, np.uint8)

    def result(self, shape):
        if self.dtype is None:
            return self.bytes if self.bytes is not None else self.array.tobytes()
        dtype, mlx = self.dtype
        array = self.array.view(dtype)
        array = array if shape is None else array.reshape(shape)
        return array if mlx is None else mlx_interop.of_array(array, mlx)


_address = ctypes.pythonapi.PyBytes_AsString
_address.restype, _address.argtypes = ctypes.c_void_p, [ctypes.py_object]


def _want_large_pages(address, size):
    """Asks the system for large pages, as NumPy does for its arrays: the first store to each small one
    takes longer than the kernel."""
    advice = getattr(mmap, "MADV_HUGEPAGE", None)
    if advice is None or size < _LARGE:
        return
    start = -(-address // mmap.PAGESIZE) * mmap.PAGESIZE
    length = (address + size - start) // mmap.PAGESIZE * mmap.PAGESIZE
    # Advice that the system does not take changes nothing.
    ctypes.CDLL(None).madvise(ctypes.c_void_p(start), ctypes.c_size_t(length), advice)


#: Bytes from which on large pages are asked for, two of them.
_LARGE = 1 << 22


def _inputs(compiled, inputs):
    """The bytes of the inputs: copies where the kernel may write them, else what the caller has."""
    if not isinstance(inputs, (list, tuple)):
        raise EnigmaTypeError(f"the inputs are a list of arrays, not {type(inputs).__name__}")
    made = getattr(compiled, "_compiled", None)
    params = [p for p in made.params if p.kind == "buffer"] if made is not None else []
    params += [None] * len(inputs)
    return [_bytes_of(x, i, param) for i, (x, param) in enumerate(zip(inputs, params))]


def _bytes_of(x, index, param):
    if isinstance(x, (bytes, bytearray)) or isinstance(x, memoryview) and x.c_contiguous:
        x = np.frombuffer(x, np.uint8)
    elif mlx_interop.is_mlx_array(x):
        x = mlx_interop.array_of(x)
    # Numbers of Python have no bytes of their own: they take the parameter's.
    bare = isinstance(x, (list, tuple, bool, int, float)) and param is not None
    try:
        array = np.asarray(x, param.type.numpy() if bare else None)
    except (TypeError, ValueError, OverflowError) as e:
        raise EnigmaRuntimeError(f"input {index} is not an array: {e}") from None
    except Error as e:
        raise runtime_error(e) from None
    if array.dtype.kind in "OUSmM":
        raise EnigmaRuntimeError(f"input {index} is not an array of numbers")
    if param is not None:
        _check_dtype(array.dtype, index, param)
    if not array.nbytes:
        return np.zeros(0, np.uint8)
    written = param is None or param.access & 2
    shared = array.flags.c_contiguous and not written and array.ctypes.data % 16 == 0
    array = array if shared else np.array(array, order="C", copy=True)
    return array.reshape(-1).view(np.uint8)


def _check_dtype(dtype, index, param):
    """Refuses an array whose elements would be taken apart or put together: such as Python's own
    floats, of 64 bits, for a buffer of ``float``."""
    scalar = param.type.scalar
    size_bytes = scalar.size_bytes
    same = dtype.itemsize == size_bytes and dtype.kind != "c"
    # Bytes are bytes of anything, and what is packed in words is unpacked from its bytes.
    packed = dtype.kind == "u" and size_bytes == 1
    if same or packed or dtype.itemsize == 1 or dtype.kind == "V":
        return
    wanted = param.type.scalar.numpy() if scalar.name != "bf16" else "uint16"
    raise EnigmaTypeError(
        f"input {index} is an array of {dtype}, parameter `{param.name}` a buffer of "
        f"{_typing.metal_name(param.type)}, whose elements have {size_bytes} bytes: convert it, as by "
        f"x.astype(np.{np.dtype(wanted)}); to pass its bytes as they are, write x.view(np.uint8)"
    )


def _memory(buffer):
    """A buffer as the extension takes it."""
    return buffer._memory if isinstance(buffer, DeviceArray) else buffer.__array_struct__


def _dispatch(device, compiled, buffers, scalars, constants, grid, threads):
    """Runs a kernel; gives the seconds that it took on the device."""
    if not isinstance(compiled, CompiledKernel):
        raise EnigmaRuntimeError(f"execute() takes what compile() gives, not {compiled!r}")
    made = compiled._compiled
    if made is None:
        raise EnigmaRuntimeError(
            f"`{compiled.kernel_name}` was not made by compile(), so there is no kernel to execute: "
            "Metal source alone does not run here"
        )
    if compiled.emit_only:
        raise EnigmaRuntimeError(f"`{compiled.kernel_name}` was compiled for its source only (emit_only)")
    if not isinstance(scalars, (list, tuple)) and np.ndim(scalars) != 1:
        raise EnigmaRuntimeError(f"the scalars are a list of numbers, not {scalars!r}")
    wanted = [p for p in made.params if p.kind == "buffer"]
    scalar_params = [p for p in made.params if p.kind == "scalar"]
    if len(wanted) != len(buffers) or len(scalar_params) != len(scalars):
        listed = ", ".join(map(str, made.params)) or "none"
        raise EnigmaRuntimeError(
            f"kernel `{compiled.kernel_name}` takes {len(wanted)} buffers and {len(scalar_params)} "
            f"scalars, found {len(buffers)} buffers and {len(scalars)} scalars; its parameters are: "
            f"{listed}"
        )
    buffers, scalars = iter(buffers), iter(scalars)
    # One array may be passed twice: each is a copy of its own by now.
    args = [
        bits_of(f"scalar `{param.name}`", param.type, next(scalars), param)
        if param.kind == "scalar"
        else _memory(next(buffers))
        for param in made.params
    ]
    sizes = sizes_of(_three(grid, "grid"), _three(threads, "threadgroup size"))
    try:
        program = made.program(device, tuple(made.named(constants)))
        return program.run(sizes, args)
    except (DeviceError, DiagnosticsError) as e:
        raise runtime_error(failure(e)) from None
    except Error as e:
        raise runtime_error(e) from None
