"""GPU kernels with one enforced memory model: write, check and run them.

A kernel is a Python function with ``@iv.kernel``; it is compiled from its source, with ``if``,
``while`` and ``for`` over ``iv.range`` becoming the kernel's own control flow, and launched over a grid
of threads::

    import numpy as np, invar as iv

    @iv.kernel
    def scale(x: iv.Buffer[iv.f32], by: iv.Scalar[iv.f32]):
        x[iv.thread_position_in_grid("x")] *= by

    x = np.ones(1000, np.float32)
    scale[1000, 256](x, 2.0)
    iv.check(scale, grid=1000, threadgroup=256)(x, 2.0)

Its names are those that its modules list, and the operations that the extension lists.

Absent: what the names do, which the modules say (all but ``explain``); and ``invar.enigma``, which is imported by
itself.
"""
# Written by scripts/stubs.py from the op table and the package: do not edit.
#
# Arithmetic of values gives Any: a Python number that meets a value takes its type, which type
# checkers cannot follow, and `total = 0.0; total += x[i]` must stay right.
import builtins
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Generic, Literal, TypeVar, overload

import numpy as np

from . import metal as metal
from ._textures import Depth2D as Depth2D
from ._textures import Depth2DArray as Depth2DArray
from ._textures import DepthCube as DepthCube
from ._textures import DepthCubeArray as DepthCubeArray
from ._textures import Texture1D as Texture1D
from ._textures import Texture1DArray as Texture1DArray
from ._textures import Texture2D as Texture2D
from ._textures import Texture2DArray as Texture2DArray
from ._textures import Texture2DMS as Texture2DMS
from ._textures import Texture2DMSArray as Texture2DMSArray
from ._textures import Texture3D as Texture3D
from ._textures import TextureBuffer as TextureBuffer
from ._textures import TextureCube as TextureCube
from ._textures import TextureCubeArray as TextureCubeArray
from .layout import Layout

__version__: str

_T = TypeVar("_T")
Operand = Value | int | float | np.generic
Index = Value | int | np.integer[Any]
Element = Any
Space = Literal["device", "threadgroup", "texture", "imageblock"]
Filter = Literal["nearest", "linear"]
Edges = Literal["clamp_to_edge", "clamp_to_zero", "clamp_to_border", "repeat", "mirrored_repeat"]
Coordinates = Literal["normalized", "pixel"]
Mip = Literal["none", "nearest", "linear"]
Border = Literal["transparent_black", "opaque_black", "opaque_white"]
Compare = Literal["less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "always", "never"]
Spaces = Space | Sequence[Space]
Scope = Literal["threadgroup", "device"]
Order = Literal["relaxed", "acquire", "release", "acq_rel", "seq_cst"]
Size = int | tuple[int, ...]


class Type(type):
    """A type of values: ``iv.f32``, ``iv.u32x4``, ``iv.f32x4x4``."""
    kind: str
    scalar: Type
    shape: tuple[int, ...]
    is_float: builtins.bool
    is_integer: builtins.bool
    is_signed: builtins.bool
    is_bool: builtins.bool
    bits: int
    size_bytes: int
    limits: tuple[int, int]
    def with_scalar(self, scalar: Type) -> Type:
        """The same shape with another scalar."""
    def numpy(self) -> np.dtype[Any]:
        """NumPy's dtype of the scalar."""

class Value:
    """A value of a kernel: a scalar, vector, small matrix, simdgroup matrix or event.

    ``//`` and ``%`` of integers truncate toward zero, as in Metal. Components of a vector are
    ``v.x`` ... ``v.w``, ``v.zyx`` or ``v[i]``.
    """
    type: Type
    def __add__(self, other: Operand, /) -> Any: ...
    def __radd__(self, other: Operand, /) -> Any: ...
    def __sub__(self, other: Operand, /) -> Any: ...
    def __rsub__(self, other: Operand, /) -> Any: ...
    def __mul__(self, other: Operand, /) -> Any: ...
    def __rmul__(self, other: Operand, /) -> Any: ...
    def __truediv__(self, other: Operand, /) -> Any: ...
    def __rtruediv__(self, other: Operand, /) -> Any: ...
    def __floordiv__(self, other: Operand, /) -> Any: ...
    def __rfloordiv__(self, other: Operand, /) -> Any: ...
    def __mod__(self, other: Operand, /) -> Any: ...
    def __rmod__(self, other: Operand, /) -> Any: ...
    def __pow__(self, other: Operand, /) -> Any: ...
    def __rpow__(self, other: Operand, /) -> Any: ...
    def __and__(self, other: Operand, /) -> Any: ...
    def __rand__(self, other: Operand, /) -> Any: ...
    def __or__(self, other: Operand, /) -> Any: ...
    def __ror__(self, other: Operand, /) -> Any: ...
    def __xor__(self, other: Operand, /) -> Any: ...
    def __rxor__(self, other: Operand, /) -> Any: ...
    def __lshift__(self, other: Operand, /) -> Any: ...
    def __rlshift__(self, other: Operand, /) -> Any: ...
    def __rshift__(self, other: Operand, /) -> Any: ...
    def __rrshift__(self, other: Operand, /) -> Any: ...
    def __matmul__(self, other: Operand, /) -> Any: ...
    def __rmatmul__(self, other: Operand, /) -> Any: ...
    def __lt__(self, other: Operand, /) -> Any: ...
    def __le__(self, other: Operand, /) -> Any: ...
    def __gt__(self, other: Operand, /) -> Any: ...
    def __ge__(self, other: Operand, /) -> Any: ...
    def __neg__(self) -> Any: ...
    def __pos__(self) -> Any: ...
    def __abs__(self) -> Any: ...
    def __invert__(self) -> Any: ...
    def __eq__(self, other: object, /) -> Any: ...
    def __ne__(self, other: object, /) -> Any: ...
    def __getitem__(self, index: Index, /) -> Any: ...
    def __setitem__(self, index: Index, part: Operand, /) -> None: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...
    def __getattr__(self, name: str, /) -> Any: ...
    def __setattr__(self, name: str, value: Any, /) -> None: ...

class Memory(Generic[_T]):
    """A buffer or array of a kernel: ``x[i]`` loads an element, ``x[i] = v`` stores one."""
    def __getitem__(self, index: Index, /) -> _T: ...
    def __setitem__(self, index: Index, value: Operand, /) -> None: ...
    def __len__(self) -> int: ...
    @property
    def shape(self) -> tuple[Any, ...]:
        """The extents that the annotation gives; the first is a value of the kernel where it is left open."""
    def at(self, offset: Index) -> Memory[_T]:
        """The same memory with its elements counted from ``offset`` on."""
    def load(self, index: Index, width: int = 1, group: builtins.bool = False) -> Any:
        """The ``width`` consecutive elements from ``index`` on as a vector."""
    def store(self, index: Index, value: Operand, group: builtins.bool = False) -> None:
        """Stores a vector's components to consecutive elements."""

class Place:
    """A part of an element in memory that is not a value yet: a struct or an array in it."""
    def __getitem__(self, index: Index, /) -> Any: ...
    def __setitem__(self, index: Index, value: Operand, /) -> None: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __getattr__(self, name: str, /) -> Any: ...
    def __setattr__(self, name: str, value: Any, /) -> None: ...

class Buffer(Memory[_T]):
    """A buffer in device memory; what the kernel does with it is inferred."""

class Constant(Memory[_T]):
    """A buffer in constant memory, which kernels only read."""

class Threadgroup(Memory[_T]):
    """Threadgroup memory; the launch passes its length in elements."""

class Imageblock:
    """An imageblock of a kernel: ``block[x, y]`` is the element at a column and a row of the threadgroup."""
    width: int
    height: int
    samples: int
    def __getitem__(self, index: tuple[Index, Index], /) -> Any: ...
    def __setitem__(self, index: tuple[Index, Index], value: Any, /) -> None: ...
    def __len__(self) -> int: ...
    def read(self, x: Index, y: Index) -> Any:
        """The element at a column and a row; outside it is zeros."""
    def write(self, x: Index, y: Index, value: Any) -> None:
        """Stores the element at a column and a row; outside nothing."""
    def slice(
        self,
        field: str | None = None,
        *,
        origin: tuple[Index, Index] = (0, 0),
        size: tuple[Index, Index] | None = None,
    ) -> Any:
        """One field of all elements, or of the rectangle of so many from ``origin`` on, which
        ``texture.write(x, y, block.slice("depth"))`` copies to a texture."""

#: A scalar, vector or small matrix, passed by value.
Scalar = Annotated[_T, "passed by value"]

class bool(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> bool: ...
class boolx2(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> boolx2: ...
class boolx3(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> boolx3: ...
class boolx4(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> boolx4: ...
class i8(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> i8: ...
class i8x2(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> i8x2: ...
class i8x3(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> i8x3: ...
class i8x4(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> i8x4: ...
class i16(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> i16: ...
class i16x2(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> i16x2: ...
class i16x3(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> i16x3: ...
class i16x4(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> i16x4: ...
class i32(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> i32: ...
class i32x2(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> i32x2: ...
class i32x3(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> i32x3: ...
class i32x4(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> i32x4: ...
class i64(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> i64: ...
class i64x2(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> i64x2: ...
class i64x3(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> i64x3: ...
class i64x4(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> i64x4: ...
class u8(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> u8: ...
class u8x2(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> u8x2: ...
class u8x3(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> u8x3: ...
class u8x4(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> u8x4: ...
class u16(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> u16: ...
class u16x2(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> u16x2: ...
class u16x3(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> u16x3: ...
class u16x4(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> u16x4: ...
class u32(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> u32: ...
class u32x2(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> u32x2: ...
class u32x3(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> u32x3: ...
class u32x4(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> u32x4: ...
class u64(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> u64: ...
class u64x2(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> u64x2: ...
class u64x3(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> u64x3: ...
class u64x4(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> u64x4: ...
class f16(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> f16: ...
class f16x2(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> f16x2: ...
class f16x3(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> f16x3: ...
class f16x4(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> f16x4: ...
class f16x2x2(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> f16x2x2: ...
class f16x2x3(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> f16x2x3: ...
class f16x2x4(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> f16x2x4: ...
class f16x3x2(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> f16x3x2: ...
class f16x3x3(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> f16x3x3: ...
class f16x3x4(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> f16x3x4: ...
class f16x4x2(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> f16x4x2: ...
class f16x4x3(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> f16x4x3: ...
class f16x4x4(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> f16x4x4: ...
class bf16(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> bf16: ...
class bf16x2(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> bf16x2: ...
class bf16x3(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> bf16x3: ...
class bf16x4(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> bf16x4: ...
class bf16x2x2(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> bf16x2x2: ...
class bf16x2x3(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> bf16x2x3: ...
class bf16x2x4(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> bf16x2x4: ...
class bf16x3x2(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> bf16x3x2: ...
class bf16x3x3(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> bf16x3x3: ...
class bf16x3x4(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> bf16x3x4: ...
class bf16x4x2(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> bf16x4x2: ...
class bf16x4x3(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> bf16x4x3: ...
class bf16x4x4(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> bf16x4x4: ...
class f32(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> f32: ...
class f32x2(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> f32x2: ...
class f32x3(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> f32x3: ...
class f32x4(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> f32x4: ...
class f32x2x2(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> f32x2x2: ...
class f32x2x3(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> f32x2x3: ...
class f32x2x4(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> f32x2x4: ...
class f32x3x2(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> f32x3x2: ...
class f32x3x3(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> f32x3x3: ...
class f32x3x4(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> f32x3x4: ...
class f32x4x2(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> f32x4x2: ...
class f32x4x3(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> f32x4x3: ...
class f32x4x4(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> f32x4x4: ...
class f64(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> f64: ...
class f64x2(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> f64x2: ...
class f64x3(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> f64x3: ...
class f64x4(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> f64x4: ...
class f64x2x2(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> f64x2x2: ...
class f64x2x3(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> f64x2x3: ...
class f64x2x4(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> f64x2x4: ...
class f64x3x2(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> f64x3x2: ...
class f64x3x3(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> f64x3x3: ...
class f64x3x4(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> f64x3x4: ...
class f64x4x2(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> f64x4x2: ...
class f64x4x3(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> f64x4x3: ...
class f64x4x4(Value, metaclass=Type):
    def __new__(cls, *parts: Any) -> f64x4x4: ...

class _Query:
    """A position or size: ``query("y")``, or ``query.y``, is a component, as ``u32``."""
    def __call__(self, dim: Literal['x', 'y', 'z'] = 'x') -> u32: ...
    @property
    def x(self) -> u32:
        """The first component."""
    @property
    def y(self) -> u32:
        """The second component."""
    @property
    def z(self) -> u32:
        """The third component."""

def zeros(shape: int | tuple[int, ...], ty: Element) -> np.ndarray[Any, Any]:
    """An array of zeros for a kernel's buffer: of ``shape`` elements of a type or struct.

    Components of vectors and matrices are its last dimensions. The memory begins at a multiple of 64
    bytes.
    """

class DeviceArray:
    """An array in a device's memory, from ``device.array(x)`` or ``device.zeros(shape, type)``.

    It is an argument of launches on that device, which leave it there; ``numpy()`` copies it, once the
    launches submitted so far that write it have ended. So do NumPy's functions and, through DLPack,
    other libraries. It has no slices: it is passed, read and written as a whole.
    """
    def __init__(self, device: Any, dtype: Any, shape: tuple[int, ...]) -> None: ...
    @property
    def ndim(self) -> int:
        """How many dimensions it has."""
    @property
    def size(self) -> int:
        """How many elements it has, the components of vectors counted."""
    @property
    def nbytes(self) -> int:
        """Its bytes."""
    def __len__(self) -> Any: ...
    def numpy(self) -> np.ndarray[Any, Any]:
        """A copy on the host, as the launches submitted so far leave it."""
    def write(self, x: Any) -> None:
        """Replaces its contents by those of an array of the same shape and type."""
    def __dlpack__(self, *, copy: builtins.bool | None = None, **options: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

class range:
    """``iv.range``: a loop in the kernel."""
    def __init__(self, *args: Any) -> None: ...
    def __iter__(self) -> Any: ...
    def values(self) -> Any:
        """First index, bound and step as values, and the index's type."""

class ArgumentError(Error, TypeError):
    """An argument of a launch does not fit its parameter; nothing was run."""

class CheckError(ReportError):
    """A check failed."""

class Error(Exception):
    """Whatever Invar refuses."""

class Finding:
    """One thing that is wrong: the rule it breaks, the sentence, and the places, first the place itself.
    """
    severity: str
    rule: str
    message: str
    labels: tuple[Label, ...]
    calls: tuple[Any, ...]
    help: str | None
    @property
    def line(self) -> Any:
        """The line of the place itself, from 1; ``None`` for code that no author wrote."""

class KernelError(Error):
    """A kernel is not what the language allows.

    ``message`` is the sentence, ``filename``, ``line`` and ``column`` (both from 1) say where.
    """
    def __init__(self, message: Any, position: Any = None) -> None: ...

class Label:
    """A place in the author's text, what it has to do with a finding, and the inlined calls that led there,
    innermost first.
    """
    file: str | None
    line: int
    column: int
    end_line: int
    end_column: int
    text: str
    calls: tuple[Any, ...]

class LaunchError(ReportError, ArgumentError):
    """A grid, threadgroup size or argument that the kernel or the device refuses; nothing was run.
    """

class Proof:
    """What is known of every launch of a kernel; true if it was proved.

    ``verdict`` is ``"proved"`` (no launch that fulfils the ``conditions``, and what the kernel itself
    ``requires``, has a data race or an access out of bounds), ``"broken"`` (``launch``, as options of
    ``invar check``, has one: the checkers ran it, and ``findings`` is what they report) or ``"open"``.
    ``command`` is the whole of that command, where a file has the kernel under its name.
    """
    verdict: str
    conditions: list[str]
    requires: list[str]
    words: str
    launch: str
    findings: list[Finding]
    text: str
    command: str
    def __bool__(self) -> Any: ...

class Report:
    """What a check found, and how far its verdict on data races reaches.

    ``allowed`` says how many findings were left out of each rule that was allowed.
    """
    passed: builtins.bool
    findings: list[Finding]
    text: str
    reach: str
    allowed: dict[str, int]
    def __bool__(self) -> Any: ...

class ReportError(Error):
    """The verifier, a run or a check found something: ``findings`` are objects, ``str`` is the report.
    """
    def __init__(self, text: Any, findings: Any) -> None: ...

class VerifyError(ReportError, KernelError):
    """The verifier refused the kernel."""
    def __init__(self, text: Any, findings: Any) -> None: ...

class DLPack:
    """An array for other libraries' ``from_dlpack``, on the same memory; bfloat16 too."""
    def __init__(self, array: Any) -> None: ...
    def __dlpack__(self, *, copy: builtins.bool | None = None, **options: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

def imageblock_alloc(
    element: Element,
    formats: Mapping[str, str] | str | None = None,
) -> Imageblock:
    """An imageblock: memory of the threadgroup with an element for each of its positions, all zeros when it
    starts (I2). ``block[x, y]`` is one. The kernel says the size of its threadgroups, as in
    ``@iv.kernel(threadgroup=(16, 16))``; barriers with ``"imageblock"`` order it.

    ``formats={"depth": "r16float"}`` stores a field in a pixel format, ``formats="rgba8unorm"`` an element
    that is not a struct: as the nearest code, which is read as the number that it stands for.
    """

class Kernel:
    """A kernel, from ``@iv.kernel``.

    ``kernel[grid, threadgroup](...)`` runs it: the grid in threads, the threadgroup's size, each a
    number or a tuple of up to three. ``kernel.ir`` is its text form.
    """
    def __init__(
        self,
        function: Callable[..., Any],
        *,
        threadgroup: Size | None = None,
        simdgroup: int | None = None,
        float_mode: Literal['strict', 'contract', 'fast'] = 'contract',
        allow: Sequence[Literal['out_of_bounds_loads', 'out_of_bounds_stores', 'uninitialised_reads']] = (),
    ) -> None: ...
    @property
    def threadgroup(self) -> tuple[int, int, int] | None:
        """The size of its threadgroups, if it has one."""
    @property
    def params(self) -> Any:
        """The parameters, in order."""
    @property
    def defaults(self) -> Any:
        """The default values of parameters, by name."""
    def bind(self, args: Any, kwargs: Any) -> Any:
        """Arguments in the order of the parameters."""
    def for_arguments(self, args: Any, kwargs: Any) -> Any:
        """The kernel compiled for these arguments, and those that are not compile-time values.
        """
    def compile(self, values: Any = (), elements: Any = ()) -> Any:
        """The kernel for these compile-time values, and element types where the annotations have
        none; traced and verified.
        """
    @property
    def ir(self) -> str:
        """The text form. One that is compiled for each value or type of a parameter is specialised first.
        """
    def source(
        self,
        target: str,
        *,
        threadgroup: Size | None = None,
        constants: Mapping[str, Any] | None = None,
        async_copies: str = 'expanded',
        matrices: str = 'expanded',
        formats: Mapping[str, str] | None = None,
    ) -> str:
        """The kernel as the code of a target, such as ``"msl"``.

        ``"wgsl"`` fixes the threadgroup size: it needs ``threadgroup`` where the kernel says none.
        Async copies are ``"expanded"``, made by the simdgroup's lanes, or in ``"msl"`` left to the
        copy ``"engine"`` of Apple's GPUs of family 9 and newer, by functions that are not documented.
        Simdgroup matrices are ``"expanded"``, arrays in plain code, or in ``"wgsl"``
        ``"cooperative"`` ones, on GPUs that list those of 8 rows and columns. ``"wgsl"`` names the pixel format of
        each texture that the kernel writes: ``formats={"dst": "rgba8unorm"}``; a shader says those of its own.
        """
    def specialise(self, **given: Any) -> Specialised:
        """The kernel with its compile-time parameters given, and types for the parameters that have
        none: ``kernel.specialise(width=4, x=iv.f32).ir``.
        """
    def __getitem__(self, sizes: Any) -> Any: ...
    def __call__(self, *_: Any, **__: Any) -> Any: ...

class Specialised:
    """A kernel with its compile-time parameters and element types given."""
    def __init__(self, kernel: Kernel, given: Any) -> None: ...
    @property
    def ir(self) -> str:
        """The text form. One that is compiled for each value or type of a parameter is specialised first.
        """
    def source(
        self,
        target: str,
        *,
        threadgroup: Size | None = None,
        constants: Mapping[str, Any] | None = None,
        async_copies: str = 'expanded',
        matrices: str = 'expanded',
        formats: Mapping[str, str] | None = None,
    ) -> str:
        """The kernel as the code of a target, such as ``"msl"``.

        ``"wgsl"`` fixes the threadgroup size: it needs ``threadgroup`` where the kernel says none.
        Async copies are ``"expanded"``, made by the simdgroup's lanes, or in ``"msl"`` left to the
        copy ``"engine"`` of Apple's GPUs of family 9 and newer, by functions that are not documented.
        Simdgroup matrices are ``"expanded"``, arrays in plain code, or in ``"wgsl"``
        ``"cooperative"`` ones, on GPUs that list those of 8 rows and columns. ``"wgsl"`` names the pixel format of
        each texture that the kernel writes: ``formats={"dst": "rgba8unorm"}``; a shader says those of its own.
        """

def prove(kernel: Kernel | Specialised | LoadedKernel) -> Proof:
    """Proves that no launch of a kernel has a data race or an access out of bounds.

    Gives a ``Proof``, with the conditions that launches have to fulfil, or with a launch that breaks the
    kernel, which the checkers have run. What is compiled for each value of a parameter is proved for those
    that it is given: ``iv.prove(kernel.specialise(width=4))``.
    """

class BenchResult:
    """What ``iv.bench`` measured: the device's times of the runs, in seconds."""
    def __init__(self, times: Sequence[float], size_bytes: int) -> None: ...
    @property
    def median(self) -> float:
        """The median time, in seconds."""
    @property
    def best(self) -> float:
        """The least time, in seconds."""
    @property
    def gigabytes_per_second(self) -> float:
        """The arrays' bytes by the median time; 0 where nothing ran, as on an empty grid."""

class Device:
    """Something that runs kernels: ``cpu``, ``gpu`` (``gpu:1`` and so on where there are several), or
    ``checked``, the reference machine with its checkers.
    """
    def __init__(self, inner: Any) -> None: ...
    def capabilities(self) -> dict[str, Any]:
        """What it can do: sizes and limits as numbers, types, memory orders and features by name.
        """
    def array(self, x: Any) -> DeviceArray:
        """A copy of an array in this device's memory, where launches leave it.

        An array that comes through DLPack alone may have no negative strides.
        """
    def zeros(self, shape: int | tuple[int, ...], ty: Element) -> DeviceArray:
        """An array of zeros in this device's memory, as ``iv.zeros`` makes one on the host."""

class Future:
    """A launch that goes on by itself: wait for it with ``result()``, or ``await`` it."""
    def __init__(self, submission: Any, alive: Any, back: Any) -> None: ...
    def arrays(self) -> Any:
        """The arrays that it uses until it has ended, those it copies back to among them."""
    def done(self) -> builtins.bool:
        """Whether it has ended."""
    def cancel(self) -> None:
        """Asks it to end; ``result()`` then raises, unless it ended before."""
    def result(self, timeout: float | None = None) -> None:
        """Waits until it has ended; raises what went wrong, or TimeoutError after so many seconds.
        """
    def exception(self, timeout: float | None = None) -> Exception | None:
        """Waits until it has ended; gives what went wrong, or ``None``."""
    @property
    def seconds(self) -> float:
        """How long it ran on the device; waits until it has ended."""

class Launch:
    """A kernel with its grid and threadgroup size; calling it runs it and waits.

    Keywords, beside those of the kernel's parameters: ``device`` (a name or a device), ``constants``
    (values of function constants by name), ``time_limit`` (in seconds), ``copy`` (whether arrays that
    are not contiguous are copied, and copied back where the kernel writes them).
    """
    def __init__(self, kernel: Any, grid: Any, threadgroup: Any) -> None: ...
    def __call__(
        self,
        *args: Any,
        device: Device | str | None = None,
        constants: Mapping[str, Any] | None = None,
        time_limit: float | None = None,
        copy: builtins.bool = False,
        **kwargs: Any,
    ) -> None:
        """Runs the kernel, and waits until it has ended."""
    def submit(
        self,
        *args: Any,
        device: Device | str | None = None,
        constants: Mapping[str, Any] | None = None,
        time_limit: float | None = None,
        copy: builtins.bool = False,
        **kwargs: Any,
    ) -> Future:
        """Starts the kernel and returns. Launches that share an array which one of them writes run in
        the order in which they were submitted (O3).

        Until the future is done the arrays are the kernel's; with ``copy`` what it wrote is copied back
        when its ``result()`` is asked for, or when another launch is given memory of such an array. A
        copy is made when launches under way that use its memory have ended.
        """
    def prepare(
        self,
        *args: Any,
        device: Device | str | None = None,
        constants: Mapping[str, Any] | None = None,
        time_limit: float | None = None,
        prove: builtins.bool = False,
        **kwargs: Any,
    ) -> Prepared:
        """The launch with its arguments converted once, for loops: call what this gives.

        ``prove`` has the device prove first in which launches no access can be out of bounds: they run code
        without bounds checks. That takes up to some seconds, once for a kernel and device.
        """

class Prepared:
    """A launch that is ready to run, as often as it is called."""
    def __init__(
        self,
        launch: Any,
        compiled: Any,
        program: Any,
        bound: Any,
        time_limit: Any,
    ) -> None: ...
    def __call__(self) -> float:
        """Runs it and waits; gives the seconds that it took on the device."""
    def submit(self) -> Future:
        """Starts it and returns."""
    def set(self, **arguments: Any) -> None:
        """Other arguments from now on, by the names of their parameters."""

def bench(
    kernel: Kernel | LoadedKernel,
    *,
    grid: Size | threadgroups,
    threadgroup: Size | None = None,
    runs: int = 20,
    warmup: int = 3,
    device: Device | str | None = None,
    constants: Mapping[str, Any] | None = None,
    prove: builtins.bool = False,
) -> Callable[..., BenchResult]:
    """Measures a kernel: ``iv.bench(kernel, grid=..., threadgroup=...)(args)``.

    The arrays are those passed, so a kernel that changes its input runs on what it left. A kernel that
    has a threadgroup size of its own needs none here. ``prove`` is that of prepared launches.
    """

def check(
    kernel: Kernel | LoadedKernel,
    *,
    grid: Size | threadgroups,
    threadgroup: Size | None = None,
    seeds: int | None = None,
    seed: int = 0,
    allow: Sequence[str] = (),
    deny_warnings: builtins.bool = False,
    raises: builtins.bool = True,
    constants: Mapping[str, Any] | None = None,
    time_limit: float | None = None,
) -> Callable[..., Report]:
    """Runs a kernel under every checker: data races, bounds, divergence, uninitialised reads.

    ``iv.check(kernel, grid=..., threadgroup=...)(args)`` gives a ``Report``, or raises
    ``CheckError`` with the findings; with ``raises=False`` it always gives the report. The arrays
    are not changed; what a launch refuses is refused, and ``copy=True`` beside the arguments is for
    arrays that are not contiguous. ``seeds`` is how many schedules to try: by default one where its
    verdict holds for every schedule, else up to 16. ``allow`` has the rules to leave out. A kernel that
    has a threadgroup size of its own needs none here.
    """

def device(name: str = 'default', *, seed: int = 0, simdgroup: int | None = None) -> Device:
    """The device of that name; ``default`` is the one that launches take. A GPU is ``gpu``, ``gpu:1``
    and so on, or a part of its own name.

    ``seed`` (the order in which threads run; 0 is the natural one) and ``simdgroup`` (the size of
    simdgroups where a kernel requires none) are for the checked device, which then is a new one.
    """

def devices() -> list[Device]:
    """Every device of this machine that can be used, the default one first. ``iv.device(name)`` says why
    another cannot.
    """

class threadgroups:
    """A grid in full threadgroups: ``kernel[iv.threadgroups(16), 256](...)``."""
    def __init__(self, *sizes: Size) -> None: ...

class LoadedKernel:
    """A kernel of a file; it is launched and checked as any other.

    ``kernel[grid, threadgroup](...)`` counts threads; ``kernel[iv.threadgroups(16)](...)`` is a dispatch
    of 16 workgroups of the size that the kernel has. Arguments go by the names of variables, in the order
    of their groups and bindings, or by those: ``kernel[...](**{"0.1": y})``. An array is used in place if
    its bytes are what the variable holds: of the type of its elements (``kernel.dtype("x")``), of the one
    scalar that they are made of, or of bytes (``np.uint8``). What a kernel only reads, and whose length is
    fixed, may also be a number, a list, or the fields of a struct by name.
    """
    threadgroup: tuple[int, int, int] | None
    params: list[Variable]
    def __init__(self, name: str, module: Any, resources: Any) -> None: ...
    @property
    def ir(self) -> str:
        """The text form. One that is compiled for each value or type of a parameter is specialised first.
        """
    def source(
        self,
        target: str,
        *,
        threadgroup: Size | None = None,
        constants: Mapping[str, Any] | None = None,
        async_copies: str = 'expanded',
        matrices: str = 'expanded',
        formats: Mapping[str, str] | None = None,
    ) -> str:
        """The kernel as the code of a target, such as ``"msl"``.

        ``"wgsl"`` fixes the threadgroup size: it needs ``threadgroup`` where the kernel says none.
        Async copies are ``"expanded"``, made by the simdgroup's lanes, or in ``"msl"`` left to the
        copy ``"engine"`` of Apple's GPUs of family 9 and newer, by functions that are not documented.
        Simdgroup matrices are ``"expanded"``, arrays in plain code, or in ``"wgsl"``
        ``"cooperative"`` ones, on GPUs that list those of 8 rows and columns. ``"wgsl"`` names the pixel format of
        each texture that the kernel writes: ``formats={"dst": "rgba8unorm"}``; a shader says those of its own.
        """
    def dtype(self, name: str) -> np.dtype[Any]:
        """NumPy's type of the elements of a variable, with which arrays for it are made."""
    def __getitem__(self, sizes: Any) -> Any: ...
    def __call__(self, *_: Any, **__: Any) -> Any: ...
    def for_arguments(self, args: Any, kwargs: Any) -> Any:
        """The kernel, and arrays for its parameters."""

class Module(Mapping[str, LoadedKernel]):
    """The kernels of a file, by their names; from ``iv.load``."""
    def __init__(
        self,
        path: Any,
        inner: Any,
        constants: Any = None,
        file: str | None = None,
    ) -> None: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    @property
    def lints(self) -> list[Finding]:
        """What a browser refuses of a shader, though its kernels run here: ``wgsl-alias`` and
        ``wgsl-uniformity``.
        """
    def __getitem__(self, name: str) -> LoadedKernel:
        """The kernel of that name."""

class Variable:
    """What an argument is for: a variable of a shader, or a parameter.

    ``dtype`` and ``shape`` are those of NumPy for one of its elements, ``length`` the number of its
    elements if that is fixed. A variable that ends in an array of no fixed length is two parameters.
    """
    name: str
    place: str | None
    length: int | None
    steps: Any
    head_bytes: int | None
    format: str | None
    @property
    def kind(self) -> str:
        """What it is: ``buffer``, ``constant``, ``texture``, ``sampler``, or of modules that are not shaders
        also ``scalar`` and ``threadgroup``.
        """
    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its elements, of a variable that is two parameters those of the array."""
    @property
    def shape(self) -> tuple[int, ...]:
        """The last dimensions of an array for it: those of vectors and matrices."""

def load(
    file: str | os.PathLike[str],
    *,
    text: str | None = None,
    constants: Mapping[str, float | builtins.bool] | None = None,
) -> Module:
    """The kernels of a file: ``iv.load("boids.wgsl")["main"]``.

    A file is a shader in WGSL (``.wgsl``), or a module in Invar's text form (``.inv``) or binary form
    (``.invb``). With ``text`` that is what the file holds, and ``file`` what reports call it.
    ``constants`` are values of a shader's overrides, by name or by the number of their ``@id``; one that
    decides no size can also be given to each launch.
    """

def assert_uniform(
    value: Operand,
    scope: Literal['threadgroup', 'simdgroup'] = 'threadgroup',
) -> Any:
    """Asserts that a value is the same for all threads of the scope, and gives it (X5)."""

def async_copy(
    destination: Memory[Any],
    destination_index: Index,
    source: Memory[Any],
    source_index: Index,
    count: Index,
) -> Value:
    """Starts a copy of ``count`` elements by the simdgroup; gives its event (O5)."""

def async_copy_2d(
    destination: Memory[Any],
    destination_index: Index,
    destination_row: Index,
    source: Memory[Any],
    source_index: Index,
    source_row: Index,
    columns: Index,
    rows: Index,
) -> Value:
    """Starts a copy of ``rows`` runs of ``columns`` elements; rows are so many elements apart.
    """

def atomic_add(
    memory: Memory[Any] | Place,
    index: Index | str,
    value: Operand,
    *,
    order: Order = 'relaxed',
    scope: Scope | None = None,
) -> Any:
    """Adds ``value`` to ``memory[index]``, wrapping, indivisibly; gives the value just before (T2). The scope is by default `device` for device memory, `threadgroup` for threadgroup memory (T3). Of a struct the field is named: ``(x[i], "field", value)``.
    """

def atomic_and(
    memory: Memory[Any] | Place,
    index: Index | str,
    value: Operand,
    *,
    order: Order = 'relaxed',
    scope: Scope | None = None,
) -> Any:
    """Leaves the bitwise and of ``value`` and ``memory[index]``, indivisibly; gives the value just before (T2). The scope is by default `device` for device memory, `threadgroup` for threadgroup memory (T3). Of a struct the field is named: ``(x[i], "field", value)``.
    """

def atomic_compare_exchange(
    memory: Memory[Any] | Place,
    index: Index | str,
    expected: Operand,
    desired: Operand,
    *,
    order: Order = 'relaxed',
    scope: Scope | None = None,
) -> tuple[Any, Value]:
    """Replaces ``memory[index]`` by ``desired`` if it equals ``expected``; never fails spuriously.

    Gives the value just before, and whether it was replaced.
    """

def atomic_exchange(
    memory: Memory[Any] | Place,
    index: Index | str,
    value: Operand,
    *,
    order: Order = 'relaxed',
    scope: Scope | None = None,
) -> Any:
    """Replaces ``memory[index]`` by ``value``, indivisibly; gives the value just before (T2). The scope is by default `device` for device memory, `threadgroup` for threadgroup memory (T3). Of a struct the field is named: ``(x[i], "field", value)``.
    """

def atomic_load(
    memory: Memory[Any] | Place,
    index: Index | str,
    *,
    order: Order = 'relaxed',
    scope: Scope | None = None,
) -> Any:
    """Loads ``memory[index]`` atomically (T2)."""

def atomic_max(
    memory: Memory[Any] | Place,
    index: Index | str,
    value: Operand,
    *,
    order: Order = 'relaxed',
    scope: Scope | None = None,
) -> Any:
    """Leaves the larger of ``value`` and ``memory[index]``, indivisibly; gives the value just before (T2). The scope is by default `device` for device memory, `threadgroup` for threadgroup memory (T3). Of a struct the field is named: ``(x[i], "field", value)``.
    """

def atomic_min(
    memory: Memory[Any] | Place,
    index: Index | str,
    value: Operand,
    *,
    order: Order = 'relaxed',
    scope: Scope | None = None,
) -> Any:
    """Leaves the smaller of ``value`` and ``memory[index]``, indivisibly; gives the value just before (T2). The scope is by default `device` for device memory, `threadgroup` for threadgroup memory (T3). Of a struct the field is named: ``(x[i], "field", value)``.
    """

def atomic_or(
    memory: Memory[Any] | Place,
    index: Index | str,
    value: Operand,
    *,
    order: Order = 'relaxed',
    scope: Scope | None = None,
) -> Any:
    """Leaves the bitwise or of ``value`` and ``memory[index]``, indivisibly; gives the value just before (T2). The scope is by default `device` for device memory, `threadgroup` for threadgroup memory (T3). Of a struct the field is named: ``(x[i], "field", value)``.
    """

def atomic_store(
    memory: Memory[Any] | Place,
    index: Index | str,
    value: Operand,
    *,
    order: Order = 'relaxed',
    scope: Scope | None = None,
) -> None:
    """Stores to ``memory[index]`` atomically (T2)."""

def atomic_sub(
    memory: Memory[Any] | Place,
    index: Index | str,
    value: Operand,
    *,
    order: Order = 'relaxed',
    scope: Scope | None = None,
) -> Any:
    """Subtracts ``value`` from ``memory[index]``, wrapping, indivisibly; gives the value just before (T2). The scope is by default `device` for device memory, `threadgroup` for threadgroup memory (T3). Of a struct the field is named: ``(x[i], "field", value)``.
    """

def atomic_xor(
    memory: Memory[Any] | Place,
    index: Index | str,
    value: Operand,
    *,
    order: Order = 'relaxed',
    scope: Scope | None = None,
) -> Any:
    """Leaves the bitwise exclusive or of both, indivisibly; gives the value just before (T2). The scope is by default `device` for device memory, `threadgroup` for threadgroup memory (T3). Of a struct the field is named: ``(x[i], "field", value)``.
    """

def barrier(
    scope: Literal['threadgroup', 'simdgroup'] = 'threadgroup',
    spaces: Spaces = ('device', 'threadgroup'),
) -> None:
    """Makes the threads of a scope wait for each other, and orders the spaces (O2)."""

def buffer_length(memory: Memory[Any]) -> u64:
    """How many elements are bound to a buffer or threadgroup parameter, as ``u64``; ``len(x)`` is the
    same. Integers of other types that meet it take 64 bits, as in ``i < len(x)``.
    """

def constant_array(
    values: Any,
    element: Element | None = None,
    name: str | None = None,
) -> Memory[Any]:
    """An array of the program's own in constant memory: ``TABLE[i]`` loads an element.

    ``values`` is anything that NumPy makes an array of. The element type is by default that of the
    array; lists of Python numbers are ``i32`` or ``f32``.
    """

def copy(
    destination: Memory[Any] | Tensor,
    destination_index: Index | Tensor | None = None,
    source: Memory[Any] | None = None,
    source_index: Index | None = None,
    count: Index | None = None,
    *,
    mask: Any = True,
) -> None:
    """Copies ``count`` elements, made by the calling thread in order of index; or, as in
    ``iv.copy(to, of)`` with two tensors, all elements of one view to another of as many.

    Where ``mask`` does not hold nothing is read or written. It is a ``bool`` for all elements, or a
    function that gives one for the number of an element, counted from 0. Two tensors are copied by
    the widest vectors that both allow where one condition holds for them all, and the whole view is
    read before it is written.
    """

def function_constant(
    name: str,
    ty: Type,
    default: int | float | builtins.bool | None = None,
    id: int | None = None,
) -> Value:
    """A value that is fixed when the kernel is compiled, the same for the whole grid.

    A launch gives it by name, ``constants={"TILE": 8}``; without a default it must.
    """

def load_if(mask: Operand, memory: Memory[Any], index: Index, otherwise: Operand = 0) -> Any:
    """``memory[index]`` where ``mask`` holds, else ``otherwise``; no access where it does not.
    """

def print(text: str, *values: Operand) -> None:
    """Prints a line from each thread that comes here: the text with each ``{}`` replaced by the next
    value, each ``{:x}`` by the next integer in hexadecimal, each ``{:c}`` by the character of which the
    next integer is the number, and ``{{`` and ``}}`` by braces (P1).

    The lines are written to ``sys.stdout`` when the launch has ended, for which it waits. The lines of
    a thread come in their order (P3); a launch keeps 1 MiB of them and counts the rest (P5).
    """

def requires(*conditions: str) -> None:
    """Requires something of every launch (S5): ``iv.requires("n * n <= length(a)", "grid.x <= n")``.

    A condition compares sums of whole numbers, integer parameters, function constants, ``length(x)`` of a buffer,
    ``width(t)``, ``height(t)``, ``slices(t)`` and ``levels(t)`` of a texture, ``grid.x``, ``groups.x``
    and ``threadgroup.x``, and products of them; ``n % 4 == 0`` is a remainder. ``each v of column: v < n``
    speaks of the elements of a buffer that the kernel only reads, ``ascending row`` of their order. A
    launch whose numbers break it is refused; the checked device also looks at what buffers hold.
    ``iv.prove`` takes it as given.
    """

def simdgroup_barrier(*spaces: Space) -> None:
    """``barrier`` of the simdgroup; orders the spaces named, by default all (O2)."""

def simdgroup_load(
    memory: Memory[Any],
    index: Index,
    elements_per_row: Index,
    transpose: builtins.bool = False,
) -> Value:
    """Reads an 8x8 simdgroup matrix whose entry (r, c) is ``memory[index + r*elements_per_row + c]``.
    """

def simdgroup_matrix(ty: Type, value: Operand = 0.0) -> Value:
    """An 8x8 simdgroup matrix of a float type with every entry the same."""

def simdgroup_multiply_accumulate(a: Value, b: Value, c: Value) -> Value:
    """``a * b + c`` of simdgroup matrices."""

def simdgroup_store(
    matrix: Value,
    memory: Memory[Any],
    index: Index,
    elements_per_row: Index,
    transpose: builtins.bool = False,
) -> None:
    """Writes an 8x8 simdgroup matrix; the counterpart of ``simdgroup_load``."""

def store_if(mask: Operand, memory: Memory[Any], index: Index, value: Operand) -> None:
    """Stores ``memory[index] = value`` where ``mask`` holds; no access where it does not."""

def thread_alloc(element: Element, length: int) -> Memory[Any]:
    """An array of the thread's own, all zeros here (I3)."""

def threadgroup_alloc(element: Element, length: int) -> Memory[Any]:
    """An array in threadgroup memory, all zeros when the threadgroup starts (I2)."""

def threadgroup_barrier(*spaces: Space) -> None:
    """``barrier`` of the threadgroup; orders the spaces named, by default all (O2)."""

def wait(*events: Value) -> None:
    """Waits for async copies to be finished (O5)."""

def where(condition: Operand, on_true: Operand, on_false: Operand) -> Any:
    """``on_true`` where the condition holds, else ``on_false``; both are evaluated."""

def dequantize(x: Value, scale: Operand, zero_point: Operand = 0) -> Value:
    """``(x - zero_point) * scale`` in the type of ``scale``; ``x`` is an integer or a vector of them.

    The difference is taken after both became floats.
    """

def pack_int4x2(low: Operand, high: Operand) -> Value:
    """The low 4 bits of two integers in one ``u8``."""

def pack_int4x8(*parts: Operand) -> Value:
    """The low 4 bits of eight integers in one ``u32``."""

def pack_int8x4(*parts: Operand) -> Value:
    """The low 8 bits of four signed integers, or of a vector of 4, in one ``u32``."""

def pack_uint8x4(*parts: Operand) -> Value:
    """The low 8 bits of four integers, or of a vector of 4, in one ``u32``."""

def quantize(x: Value, scale: Operand, zero_point: Operand = 0, ty: Type = ...) -> Value:
    """``rint(x / scale) + zero_point`` as an integer of 8 bits or more, saturating at its limits.
    """

def unpack_int4x2(byte: Operand) -> tuple[Value, Value]:
    """The two signed 4-bit integers of a byte, as a tuple of ``i32``, the lower one first."""

def unpack_int4x8(word: Value) -> tuple[Value, ...]:
    """The eight signed 4-bit integers of a ``u32``, as a tuple of ``i32``."""

def unpack_int8x4(word: Value) -> Value:
    """The four signed bytes of a ``u32`` as an ``i32x4``."""

def unpack_uint4x8(word: Value) -> tuple[Value, ...]:
    """The eight unsigned 4-bit integers of a ``u32``, as a tuple of ``u32``."""

def unpack_uint8x4(word: Value) -> Value:
    """The four bytes of a ``u32`` as a ``u32x4``."""

class Sampler:
    """How textures are sampled: passed to kernels with a parameter ``s: iv.Sampler``, which sample by it:
    ``t.sample(u, v, sampler=s)``.

    The words are those of ``sample``.
    """
    def __init__(
        self,
        filter: Filter = 'nearest',
        edges: Edges = 'clamp_to_edge',
        coordinates: Coordinates = 'normalized',
        mip: Mip = 'none',
        border: Border = 'transparent_black',
        lod: tuple[float, float] | None = None,
        compare: Compare | None = None,
    ) -> None: ...

class Texture:
    """A picture for kernels: an array of NumPy, used in place, and the pixel format of its texels.

    ``iv.Texture(array, "rgba8unorm")`` takes an array of shape ``(height, width, 4)`` and of the type of the
    format's codes, here ``uint8``; of a format of one channel ``(height, width)``. An array of slices or
    elements has their number in front, one of one row no height; for an ``iv.Texture1DArray`` a row is an
    element: ``(elements, width)``. Launches change the array itself: ``numpy()`` gives it. In a notebook it is
    shown as the picture.

    With ``levels=3``, or ``"all"`` of them, it is a copy of the array and levels of half its size each, whose
    texels are means of what they cover; ``level(1)`` is one of them. Levels of an ``iv.Texture3D`` have half
    the slices too, which ``dimensions=3`` says: without it slices are elements of an array. With ``samples=4``
    the array has the samples of each texel in front, one after the other, of an array those of the first element first.
    ``element(1)`` is an element of an array, or a slice, in place. Two views that share texels are refused in a
    launch that writes one of them.
    """
    format: str
    width: int
    height: int
    depth: int
    levels: int
    samples: int
    def __init__(
        self,
        x: Any,
        format: str,
        levels: int | Literal['all'] = 1,
        samples: int = 1,
        dimensions: Literal[2, 3] = 2,
    ) -> None: ...
    @staticmethod
    def zeros(
        shape: tuple[int, ...],
        format: str,
        levels: int | Literal['all'] = 1,
        dimensions: Literal[2, 3] = 2,
    ) -> Texture:
        """A texture of zeros: ``iv.Texture.zeros((height, width), "rgba8unorm")``, with so many levels.
        """
    def level(self, level: int) -> Texture:
        """One level of it, in place: a texture of one level."""
    def element(self, element: int, level: int = 0) -> Texture:
        """One element of an array, or a slice, in place: a texture of one level."""
    def clear(self, colour: Sequence[float] = (0, 0, 0, 0)) -> None:
        """Makes every texel the colour, as a kernel that writes it does: four numbers."""
    def fill_levels(self) -> None:
        """Makes each level but the first of the one before: a texel is the mean of the area that it covers there,
        where the number of columns or rows is odd of parts of texels too.
        """
    def numpy(self) -> np.ndarray[Any, Any]:
        """The array that it is made of, not a copy: of several levels that of the first."""

class Pipeline:
    """Stages of one size in one threadgroup array, and which of them is in front.

    While the front stage is read, the back stage, the one that comes to the front last, is filled;
    where there is one stage only, it is both.
    Loops of the kernel carry which stage is in front.
    """
    def __init__(self, memory: Any, size: Any, stages: Any) -> None: ...
    def stage(self, ahead: int) -> Memory[Any]:
        """The stage that is in front after so many calls of ``advance``; ``ahead`` is a number.
        """
    @property
    def front(self) -> Memory[Any]:
        """The stage that is read."""
    @property
    def back(self) -> Memory[Any]:
        """The stage that is filled."""
    def advance(self) -> None:
        """Brings the next stage to the front; the one that was there becomes the back."""

class RegisterTensor:
    """A thread's own array of any shape: ``acc[i, j]`` is an element.

    A compile-time index is checked against its dimension. A traced one is not: the element is the
    one at ``i * columns + j`` in row-major order, and none if that lies outside of the array (B1,
    B2).
    """
    def __init__(self, memory: Any, shape: Any) -> None: ...
    @property
    def name(self) -> str:
        """The name of its memory."""
    def __len__(self) -> int: ...
    def __iter__(self) -> Any: ...
    def __getitem__(self, indices: Index | tuple[Index, ...]) -> Any: ...
    def __setitem__(self, indices: Index | tuple[Index, ...], value: Operand) -> None: ...
    def fill(self, value: Operand) -> None:
        """Stores one value to every element."""
    def __bool__(self, *_: Any) -> Any: ...

def gemm(
    c: Memory[Any] | list[list[Value]],
    a: Memory[Any],
    b: Memory[Any],
    m: int,
    n: int,
    k: int,
    *,
    a_row: Index | None = None,
    b_row: Index | None = None,
    c_row: Index | None = None,
    transpose_a: builtins.bool = False,
    transpose_b: builtins.bool = False,
) -> None:
    """``c += a @ b`` for a tile of ``m`` by ``n`` by ``k`` elements, each a multiple of 8.

    ``a`` and ``b`` are memory: a buffer, a threadgroup array or ``x.at(offset)``, with rows
    ``a_row`` and ``b_row`` elements apart (by default without gaps). ``c`` is either

    - a tile of ``simdgroup_tile``, which the simdgroup that calls this adds to in registers, or
    - memory, with rows ``c_row`` elements apart: the simdgroups of the threadgroup share the work,
      and every thread must call this. It has no barrier: put one before, between the writes of
      ``a``, ``b`` and ``c`` and this, and one after, before they are used or written again.

    With ``transpose_a``, ``a`` holds the k by m transpose, with ``transpose_b``, ``b`` the n by k one.
    """

def pipeline(element: Element, size: int, stages: int = 2) -> Pipeline:
    """``stages`` tiles of ``size`` elements in one threadgroup array, to fill one while another is
    read.
    """

def register_tensor(
    element: Element,
    *shape: int | tuple[int, ...],
    fill: Operand | None = None,
) -> RegisterTensor:
    """An array of the thread's own of any shape, all zeros or all ``fill``: ``acc[i, j]``.

    It lives in registers where its indices are known when the kernel is compiled. The shape is
    numbers or one tuple.
    """

def simdgroup_tile(
    element: Element,
    rows: int,
    columns: int,
    value: Operand = 0.0,
) -> list[list[Value]]:
    """A tile of simdgroup matrices, as a list of rows: what ``gemm`` adds to in registers.

    ``rows`` and ``columns`` count elements and are multiples of 8.
    """

def simdgroup_tile_store(
    tile: list[list[Value]],
    memory: Memory[Any],
    index: Index,
    elements_per_row: Index,
) -> None:
    """Writes a tile of simdgroup matrices; its first element goes to ``memory[index]``."""

class Struct:
    """A struct element type: named fields, laid out by C's rules.

    Made from a NumPy structured dtype, where a field of a subarray type is an array, or from the types of
    its fields: ``iv.Struct("Pixel", {"colour": iv.f32x4, "depth": iv.f32})``.
    """
    def __init__(self, name: Any, dtype: Any) -> None: ...

class Elements:
    """A value of several elements: operators and functions of one value go element by element, and
    a scalar stands beside each. ``len()``, indexing and iteration give its elements.
    """
    def __bool__(self) -> Any: ...
    def __getitem__(self, index: Any) -> Any: ...
    def __setitem__(self, index: Any, value: Any) -> Any: ...

class Tensor:
    """A buffer or array seen through a layout.

    ``t[i, j]`` is the element at a coordinate, ``t[i]`` the one with that index; ``t[None, j]`` is
    the part of the tensor that ``None`` keeps. Coordinates are numbers or traced values. ``load()``
    and ``store()`` move whole views, by the widest vectors that their offsets allow.

    ``layout`` may be a shape: then the leftmost coordinate is contiguous.
    """
    def __init__(self, memory: Memory[Any], layout: Any, offset: Index = 0) -> None: ...
    @property
    def memory(self) -> Memory[Any]:
        """What it is a view of."""
    @property
    def element(self) -> Type:
        """The type of an element."""
    @property
    def name(self) -> str:
        """The name of its memory."""
    @property
    def shape(self) -> Any:
        """The layout's shape."""
    @property
    def stride(self) -> Any:
        """The layout's stride."""
    def size(self, mode: Any = None) -> int:
        """How many elements, of all modes or of those given."""
    def __len__(self) -> int: ...
    def __iter__(self) -> Any: ...
    def view(self, layout: Any, base: Any, inner: Any = 0) -> Any:
        """Another view of the same memory."""
    def offset(self, coord: Any) -> Index:
        """The index in memory of the element at a coordinate, where ``None`` keeps modes of the first in them.
        """
    def slice(self, coord: Any) -> Tensor:
        """The part of the tensor that ``None`` keeps."""
    def __getitem__(self, coord: Any) -> Any: ...
    def __setitem__(self, coord: Any, value: Operand) -> None: ...
    def load(self, mask: Any = True, otherwise: Operand = 0) -> Any:
        """Every element of the view, in order: one value, a vector of 2 to 4 neighbours, or
        ``Elements``.

        Where ``mask`` does not hold there is no access, and ``otherwise`` instead. A mask is a
        ``bool`` for all, ``Elements`` of them, or a function that gives one for the number of an
        element, counted from 0 in the view's order.
        """
    def store(self, value: Any, mask: Any = True) -> None:
        """Stores every element of the view; one value goes to all of them.

        Where ``mask`` does not hold there is no access; a mask is as for ``load``.
        """
    def zipped_divide(self, tiler: Any) -> Tensor:
        """The tensor as ((tile), (rest)): mode 0 is one tile, mode 1 counts tiles."""
    def composition(self, owners: Layout, tiler: Any = None) -> Tensor:
        """The tensor in other coordinates: ``t.composition(owners)[thread, None]`` is a thread's
        part, where ``owners`` maps (thread, value) to the index in a tile of shape ``tiler``.
        """
    def __bool__(self, *_: Any) -> Any: ...

def add(a: Operand, b: Operand, /) -> Any:
    """The sum; integers wrap (A1).

    ``(T, T) -> T, T: integer or float scalar, vector or matrix``
    """

def sub(a: Operand, b: Operand, /) -> Any:
    """The difference; integers wrap (A1).

    ``(T, T) -> T, T: integer or float scalar, vector or matrix``
    """

def mul(a: Operand, b: Operand, /) -> Any:
    """The product, component by component; integers wrap (A1).

    ``(T, T) -> T, T: integer or float scalar or vector``
    """

def div(a: Operand, b: Operand, /) -> Any:
    """The quotient. Integers truncate toward zero, and `x / 0` is 0 (A2).

    ``(T, T) -> T, T: integer or float scalar or vector``
    """

def rem(a: Operand, b: Operand, /) -> Any:
    """The remainder of `div`, with the sign of `a`; `x % 0` is 0 (A2).

    ``(T, T) -> T, T: integer scalar or vector``
    """

def neg(x: Operand, /) -> Any:
    """`-x`: integers wrap (A1), of a float only the sign bit changes.

    ``(T) -> T, T: integer or float scalar, vector or matrix``
    """

def fma(a: Operand, b: Operand, c: Operand, /) -> Any:
    """`a * b + c` with one rounding.

    ``(T, T, T) -> T, T: float scalar or vector``
    """

def sqrt(x: Operand, /) -> Any:
    """The square root, correctly rounded; NaN of a negative number, -0 of -0.

    ``(T) -> T, T: float scalar or vector``
    """

def abs(x: Operand, /) -> Any:
    """The magnitude: integers wrap (A1), so that of the most negative one is itself; of a float
    only the sign bit changes.

    ``(T) -> T, T: integer or float scalar or vector``
    """

def min(a: Operand, b: Operand, /) -> Any:
    """The smaller. Of floats the same as `fmin`.

    ``(T, T) -> T, T: integer or float scalar or vector``
    """

def max(a: Operand, b: Operand, /) -> Any:
    """The larger. Of floats the same as `fmax`.

    ``(T, T) -> T, T: integer or float scalar or vector``
    """

def fmin(a: Operand, b: Operand, /) -> Any:
    """The smaller; the operand that is not NaN if one is, NaN if both are; -0 is less than +0 (A7).

    ``(T, T) -> T, T: float scalar or vector``
    """

def fmax(a: Operand, b: Operand, /) -> Any:
    """The larger; the operand that is not NaN if one is, NaN if both are; -0 is less than +0 (A7).

    ``(T, T) -> T, T: float scalar or vector``
    """

def ceil(x: Operand, /) -> Any:
    """Rounds up to an integer.

    ``(T) -> T, T: float scalar or vector``
    """

def floor(x: Operand, /) -> Any:
    """Rounds down to an integer.

    ``(T) -> T, T: float scalar or vector``
    """

def trunc(x: Operand, /) -> Any:
    """Rounds toward zero to an integer.

    ``(T) -> T, T: float scalar or vector``
    """

def rint(x: Operand, /) -> Any:
    """Rounds to the nearest integer, ties to even.

    ``(T) -> T, T: float scalar or vector``
    """

def xor(a: Operand, b: Operand, /) -> Any:
    """Bitwise, or of truth values: `a` or `b`, but not both.

    ``(T, T) -> T, T: bool or integer scalar or vector``
    """

def shl(a: Operand, b: Operand, /) -> Any:
    """`a << b`; the count is taken modulo the width (A3).

    ``(T, T) -> T, T: integer scalar or vector``
    """

def shr(a: Operand, b: Operand, /) -> Any:
    """`a >> b`: signed integers keep their sign; the count is taken modulo the width (A3).

    ``(T, T) -> T, T: integer scalar or vector``
    """

def popcount(x: Operand, /) -> Any:
    """How many bits are 1.

    ``(T) -> T, T: integer scalar or vector``
    """

def clz(x: Operand, /) -> Any:
    """How many bits above the highest 1; the width, of 0 (A4).

    ``(T) -> T, T: integer scalar or vector``
    """

def ctz(x: Operand, /) -> Any:
    """How many bits below the lowest 1; the width, of 0 (A4).

    ``(T) -> T, T: integer scalar or vector``
    """

def reverse_bits(x: Operand, /) -> Any:
    """The bits in the opposite order.

    ``(T) -> T, T: integer scalar or vector``
    """

def mul_hi(a: Operand, b: Operand, /) -> Any:
    """The upper half of the product at twice the width.

    ``(T, T) -> T, T: integer scalar or vector``
    """

def eq(a: Operand, b: Operand, /) -> Any:
    """Whether `a` equals `b`; a NaN equals nothing.

    ``(T, T) -> bool of T's shape, T: bool or integer or float scalar or vector``
    """

def ne(a: Operand, b: Operand, /) -> Any:
    """Whether `a` differs from `b`; a NaN differs from everything.

    ``(T, T) -> bool of T's shape, T: bool or integer or float scalar or vector``
    """

def lt(a: Operand, b: Operand, /) -> Any:
    """Whether `a` is less than `b`; false if one is NaN.

    ``(T, T) -> bool of T's shape, T: integer or float scalar or vector``
    """

def le(a: Operand, b: Operand, /) -> Any:
    """Whether `a` is less than `b` or equal; false if one is NaN.

    ``(T, T) -> bool of T's shape, T: integer or float scalar or vector``
    """

def gt(a: Operand, b: Operand, /) -> Any:
    """Whether `a` is greater than `b`; false if one is NaN.

    ``(T, T) -> bool of T's shape, T: integer or float scalar or vector``
    """

def ge(a: Operand, b: Operand, /) -> Any:
    """Whether `a` is greater than `b` or equal; false if one is NaN.

    ``(T, T) -> bool of T's shape, T: integer or float scalar or vector``
    """

def select(on_false: Operand, on_true: Operand, condition: Operand, /) -> Any:
    """`on_true` where the condition holds, else `on_false`, by component.

    ``(T, T, bool or bool of T's shape) -> T, T: bool or integer or float scalar or vector``
    """

def as_type(ty: type[_T], x: Operand, /) -> _T:
    """The same bits as the named type, of as many bits in all; the first component is lowest.

    ``type U, (T) -> U, U of as many bits as T, T: integer or float scalar or vector``
    """

def extract(x: Operand, index: Operand, /) -> Any:
    """A component of a vector or a column of a matrix; 0 if the index is out of bounds (B4).

    ``(vector, index) -> component; (matrix, index) -> column``
    """

def insert(x: Operand, index: Operand, part: Operand, /) -> Any:
    """`x` with a component (of a vector) or column (of a matrix) replaced; `x` itself if the
    index is out of bounds (B4).

    ``(vector, index, component) -> vector; (matrix, index, column) -> matrix``
    """

def swizzle(x: Operand, components: str, /) -> Any:
    """Components of a vector in the order named.

    ``components, (vector) -> component or vector of them``
    """

def round(x: Operand, /) -> Any:
    """Rounds to the nearest integer, ties away from zero.

    ``(T) -> T, T: float scalar or vector``
    """

def sign(x: Operand, /) -> Any:
    """1, 0 or -1 as `x` is; a zero itself, and 0 of NaN.

    ``(T) -> T, T: signed integer or float scalar or vector``
    """

def saturate(x: Operand, /) -> Any:
    """`x` limited to 0 up to 1; 0 of NaN.

    ``(T) -> T, T: float scalar or vector``
    """

def fract(x: Operand, /) -> Any:
    """`x - floor(x)`, but never 1: the largest value below it instead; NaN of an infinity.

    ``(T) -> T, T: float scalar or vector``
    """

def step(edge: Operand, x: Operand, /) -> Any:
    """0 if `x` is less than `edge`, else 1.

    ``(T, T) -> T, T: float scalar or vector``
    """

def clamp(x: Operand, low: Operand, high: Operand, /) -> Any:
    """`min(max(x, low), high)`; so `low` of NaN, and `high` if `low` is greater.

    ``(T, T, T) -> T, T: integer or float scalar or vector``
    """

def mix(x: Operand, y: Operand, a: Operand, /) -> Any:
    """`x + (y - x) * a`, of steps whose rounding errors are kept, so within its bound also where the
    terms cancel and where steps or the result underflow, as long as none of the steps overflows.
    `fma(y - x, a, x)` is shorter, and as good where the terms do not cancel.

    ``(T, T, T) -> T, T: float scalar or vector``
    """

def smoothstep(low: Operand, high: Operand, x: Operand, /) -> Any:
    """`t * t * (3 - 2 * t)` for `t` the saturated `(x - low) / (high - low)`; within its bound also where
    the differences overflow.

    ``(T, T, T) -> T, T: float scalar or vector``
    """

def copysign(x: Operand, sign: Operand, /) -> Any:
    """`x` with the sign of `sign`; NaNs too.

    ``(T, T) -> T, T: float scalar or vector``
    """

def ldexp(x: Operand, exponent: Operand, /) -> Any:
    """`x` times 2 to the power of `exponent`, rounded once.

    ``(T, i32 of T's shape) -> T, T: float scalar or vector``
    """

def isnan(x: Operand, /) -> Any:
    """Whether it is NaN, in every float mode.

    ``(T) -> bool of T's shape, T: float scalar or vector``
    """

def isinf(x: Operand, /) -> Any:
    """Whether it is an infinity, in every float mode.

    ``(T) -> bool of T's shape, T: float scalar or vector``
    """

def isfinite(x: Operand, /) -> Any:
    """Whether it is neither NaN nor an infinity, in every float mode.

    ``(T) -> bool of T's shape, T: float scalar or vector``
    """

def isnormal(x: Operand, /) -> Any:
    """Whether it is neither zero, subnormal, infinite nor NaN.

    ``(T) -> bool of T's shape, T: float scalar or vector``
    """

def signbit(x: Operand, /) -> Any:
    """Whether its sign bit is set; of zeros and NaNs too.

    ``(T) -> bool of T's shape, T: float scalar or vector``
    """

def abs_diff(a: Operand, b: Operand, /) -> Any:
    """The distance of `a` and `b`. Where it does not fit a signed type its bits are still those
    of the distance, as an unsigned integer.

    ``(T, T) -> T, T: integer scalar or vector``
    """

def add_sat(a: Operand, b: Operand, /) -> Any:
    """The sum, or the nearest number that the type has.

    ``(T, T) -> T, T: integer scalar or vector``
    """

def sub_sat(a: Operand, b: Operand, /) -> Any:
    """The difference, or the nearest number that the type has.

    ``(T, T) -> T, T: integer scalar or vector``
    """

def mad_hi(a: Operand, b: Operand, c: Operand, /) -> Any:
    """`mul_hi(a, b) + c`.

    ``(T, T, T) -> T, T: integer scalar or vector``
    """

def mad_sat(a: Operand, b: Operand, c: Operand, /) -> Any:
    """`a * b + c`, or the nearest number that the type has.

    ``(T, T, T) -> T, T: integer scalar or vector``
    """

def rotate(x: Operand, count: Operand, /) -> Any:
    """The bits moved up by `count`, taken modulo the width; those that leave come back below.

    ``(T, T) -> T, T: integer scalar or vector``
    """

def shr_exact(x: Operand, count: Operand, /) -> Any:
    """`x >> count`, as of an offset in bytes that becomes an index. Where a bit that is 1 is shifted out, the
    checked device reports `misaligned-access` (L4).

    ``(T, T) -> T, T: integer scalar or vector``
    """

def extract_bits(x: Operand, offset: Operand, count: Operand, /) -> Any:
    """The `count` bits from bit `offset` on, extended by their sign if the type is signed. The
    offset is limited to the width, the count to the bits that are left (A6).

    ``(T, u32, u32) -> T, T: integer scalar or vector``
    """

def insert_bits(x: Operand, part: Operand, offset: Operand, count: Operand, /) -> Any:
    """`x` with its `count` bits from bit `offset` on replaced by the lowest ones of `part`. The
    offset is limited to the width, the count to the bits that are left (A6).

    ``(T, T, u32, u32) -> T, T: integer scalar or vector``
    """

def all(x: Operand, /) -> Any:
    """Whether every component is true.

    ``(T) -> T's scalar, T: bool vector``
    """

def any(x: Operand, /) -> Any:
    """Whether some component is true.

    ``(T) -> T's scalar, T: bool vector``
    """

def dot(a: Operand, b: Operand, /) -> Any:
    """The sum of the products of components, accumulated in index order by fma (A11); of f16 and
    bf16 in f32. A11 says which roundings are made, and the products may cancel, so its error is
    relative to their magnitudes, and no bound relative to the result holds.

    ``(T, T) -> T's scalar, T: float vector``
    """

def length(x: Operand, /) -> Any:
    """The square root of the sum of squares, accumulated in index order by fma (A11), of which the
    rounding errors are added at the end. The squares are those of the components times a power of two,
    so the result alone overflows or underflows. Of f16 and bf16 it is computed in f32.

    ``(T) -> T's scalar, T: float vector``
    """

def distance(a: Operand, b: Operand, /) -> Any:
    """`length(a - b)`, of differences and squares whose rounding errors are kept. As that of `length`, the
    result alone overflows or underflows. Of f16 and bf16 it is computed in f32.

    ``(T, T) -> T's scalar, T: float vector``
    """

def normalize(x: Operand, /) -> Any:
    """`x / length(x)`, of a length whose rounding errors are kept, also where `length(x)` would overflow;
    NaN of a zero vector.

    ``(T) -> T, T: float vector``
    """

def cross(a: Operand, b: Operand, /) -> Any:
    """The cross product. Each component is a difference of products, computed so that products
    that cancel leave no error of their own (Kahan): `cross(x, x)` is 0. It overflows only where a
    component does. Where a product is below 2^-101 (in f64 below 2^-968), its last digits underflow, and
    the component may be another quarter of an ulp off.

    ``(T, T) -> T, T: float vector of 3``
    """

def reflect(incident: Operand, normal: Operand, /) -> Any:
    """What comes back from a surface: `incident - 2 * dot(normal, incident) * normal`; the normal
    should be of length 1. The rounding errors of its products and sums are kept; the terms are the
    incident component and, for every component of the dot product, twice its product with the
    normal's. It is within its bound where no step overflows or underflows.

    ``(T, T) -> T, T: float vector``
    """

def refract(incident: Operand, normal: Operand, eta: Operand, /) -> Any:
    """What goes through a surface, for `eta` the ratio of refractive indices: with `d =
    dot(normal, incident)` and `k = 1 - eta * eta * (1 - d * d)`, `eta * incident - (eta * d +
    sqrt(k)) * normal`, or 0 if `k` is negative. Both vectors should be of length 1. The rounding
    errors of all steps are kept, short of overflow and underflow. The terms are the products that the formula sums up, and the root
    counts as `K / sqrt(k)`, since a root magnifies what a small `k` lacks; `K` is `1 + eta * eta *
    (1 + D * D)`, and `D` the sum of the magnitudes of which `d` is the sum. At the critical angle,
    where `k` is within 2^-42 (in f64 2^-100) of `K` from 0, the result may be that of a `k` of the
    other sign.

    ``(T, T, T's scalar) -> T, T: float vector``
    """

def faceforward(normal: Operand, incident: Operand, reference: Operand, /) -> Any:
    """`normal` if `dot(reference, incident)` is negative, else `-normal`.

    ``(T, T, T) -> T, T: float vector``
    """

def matrix_multiply(a: Operand, b: Operand, /) -> Any:
    """The product of matrices, of a matrix and a column vector, or of a row vector and a matrix.
    Each entry is a `dot` (A11), with its error.

    ``(matrix, matrix) -> matrix; (matrix, vector) -> vector; (vector, matrix) -> vector``
    """

def transpose(x: Operand, /) -> Any:
    """Rows become columns.

    ``(matrix) -> matrix``
    """

def determinant(x: Operand, /) -> Any:
    """The determinant, by minors of two columns, of which the rounding errors are kept; its terms are
    the products of one entry of each column and row. Where a step would overflow, or underflow so far that
    it counts, it is computed of numbers with exponents of their own: the result alone overflows or
    underflows, but of three and four columns also where the magnitudes of its terms add up to more than
    the largest float, though they cancel. Of two columns it is within its ulp also where the terms cancel
    (Kahan), but for another quarter where a product is below 2^-101 (in f64 below 2^-968). Of f16 and bf16 it
    is computed in f32.

    ``(square matrix) -> scalar``
    """

def pack_float_to_unorm4x8(x: Operand, /) -> u32:
    """Each component limited to 0 up to 1, times 255, rounded to nearest even, into 8 bits; the
    first is lowest, NaN becomes 0.

    ``(f32x4) -> u32``
    """

def pack_float_to_snorm4x8(x: Operand, /) -> u32:
    """Each component limited to -1 up to 1, times 127, rounded to nearest even, into 8 bits; the
    first is lowest, NaN becomes 0.

    ``(f32x4) -> u32``
    """

def pack_float_to_srgb_unorm4x8(x: Operand, /) -> u32:
    """As `pack_float_to_unorm4x8`, the first three components
    encoded as sRGB before; off by a level at most, and only within a thousandth of a tie.

    ``(f32x4) -> u32``
    """

def pack_float_to_unorm2x16(x: Operand, /) -> u32:
    """Each component limited to 0 up to 1, times 65535, rounded to nearest even, into 16 bits;
    the first is lowest, NaN becomes 0.

    ``(f32x2) -> u32``
    """

def pack_float_to_snorm2x16(x: Operand, /) -> u32:
    """Each component limited to -1 up to 1, times 32767, rounded to nearest even, into 16 bits;
    the first is lowest, NaN becomes 0.

    ``(f32x2) -> u32``
    """

def pack_float_to_unorm10a2(x: Operand, /) -> u32:
    """As `pack_float_to_unorm4x8`, into 10, 10, 10 and 2 bits.

    ``(f32x4) -> u32``
    """

def unpack_unorm4x8_to_float(x: Operand, /) -> f32x4:
    """Each 8 bits, the lowest first, divided by 255.

    ``(u32) -> f32x4``
    """

def unpack_snorm4x8_to_float(x: Operand, /) -> f32x4:
    """Each 8 bits as a signed integer, the lowest first, divided by 127, and at least -1.

    ``(u32) -> f32x4``
    """

def unpack_srgb_unorm4x8_to_float(x: Operand, /) -> f32x4:
    """As `unpack_unorm4x8_to_float`, the first three components
    decoded from sRGB, all correctly rounded.

    ``(u32) -> f32x4``
    """

def unpack_unorm2x16_to_float(x: Operand, /) -> f32x2:
    """Each 16 bits, the lowest first, divided by 65535.

    ``(u32) -> f32x2``
    """

def unpack_snorm2x16_to_float(x: Operand, /) -> f32x2:
    """Each 16 bits as a signed integer, the lowest first, divided by 32767, and at least -1.

    ``(u32) -> f32x2``
    """

def unpack_unorm10a2_to_float(x: Operand, /) -> f32x4:
    """10, 10, 10 and 2 bits, the lowest first, each divided by its largest value.

    ``(u32) -> f32x4``
    """

def exp(x: Operand, /) -> Any:
    """e to the power `x`.

    ``(T) -> T, T: float scalar or vector``
    """

def exp2(x: Operand, /) -> Any:
    """2 to the power `x`.

    ``(T) -> T, T: float scalar or vector``
    """

def exp10(x: Operand, /) -> Any:
    """10 to the power `x`.

    ``(T) -> T, T: float scalar or vector``
    """

def log(x: Operand, /) -> Any:
    """The natural logarithm; of 0 minus infinity, of less NaN.

    ``(T) -> T, T: float scalar or vector``
    """

def log2(x: Operand, /) -> Any:
    """The logarithm to the base 2; of 0 minus infinity, of less NaN.

    ``(T) -> T, T: float scalar or vector``
    """

def log10(x: Operand, /) -> Any:
    """The logarithm to the base 10; of 0 minus infinity, of less NaN.

    ``(T) -> T, T: float scalar or vector``
    """

def pow(x: Operand, y: Operand, /) -> Any:
    """`x` to the power `y`, with the special cases of C99, F.9.4.4: `pow(x, 0)` and `pow(1, y)` are 1.

    ``(T, T) -> T, T: float scalar or vector``
    """

def powr(x: Operand, y: Operand, /) -> Any:
    """`x` to the power `y` as e to the power `y log(x)`: of a negative `x`, and of 0 to the power 0, NaN.

    ``(T, T) -> T, T: float scalar or vector``
    """

def rsqrt(x: Operand, /) -> Any:
    """1 over the square root.

    ``(T) -> T, T: float scalar or vector``
    """

def sin(x: Operand, /) -> Any:
    """The sine of `x` radians, for every finite `x`; never beyond 1.

    ``(T) -> T, T: float scalar or vector``
    """

def cos(x: Operand, /) -> Any:
    """The cosine of `x` radians, for every finite `x`; never beyond 1.

    ``(T) -> T, T: float scalar or vector``
    """

def tan(x: Operand, /) -> Any:
    """The tangent of `x` radians, for every finite `x`.

    ``(T) -> T, T: float scalar or vector``
    """

def sinpi(x: Operand, /) -> Any:
    """The sine of pi `x`; at integers a zero with the sign of `x`.

    ``(T) -> T, T: float scalar or vector``
    """

def cospi(x: Operand, /) -> Any:
    """The cosine of pi `x`; between integers +0.

    ``(T) -> T, T: float scalar or vector``
    """

def tanpi(x: Operand, /) -> Any:
    """The tangent of pi `x`; at odd integers the zero's sign is against that of `x`.

    ``(T) -> T, T: float scalar or vector``
    """

def asin(x: Operand, /) -> Any:
    """The angle in [-pi/2, pi/2] whose sine is `x`; NaN beyond 1.

    ``(T) -> T, T: float scalar or vector``
    """

def acos(x: Operand, /) -> Any:
    """The angle in [0, pi] whose cosine is `x`; NaN beyond 1.

    ``(T) -> T, T: float scalar or vector``
    """

def atan(x: Operand, /) -> Any:
    """The angle in [-pi/2, pi/2] whose tangent is `x`.

    ``(T) -> T, T: float scalar or vector``
    """

def atan2(y: Operand, x: Operand, /) -> Any:
    """The angle of the point (`x`, `y`) in [-pi, pi]; zeros keep their signs.

    ``(T, T) -> T, T: float scalar or vector``
    """

def sinh(x: Operand, /) -> Any:
    """The hyperbolic sine.

    ``(T) -> T, T: float scalar or vector``
    """

def cosh(x: Operand, /) -> Any:
    """The hyperbolic cosine.

    ``(T) -> T, T: float scalar or vector``
    """

def tanh(x: Operand, /) -> Any:
    """The hyperbolic tangent.

    ``(T) -> T, T: float scalar or vector``
    """

def asinh(x: Operand, /) -> Any:
    """The number whose hyperbolic sine is `x`.

    ``(T) -> T, T: float scalar or vector``
    """

def acosh(x: Operand, /) -> Any:
    """The number, not negative, whose hyperbolic cosine is `x`; NaN below 1.

    ``(T) -> T, T: float scalar or vector``
    """

def atanh(x: Operand, /) -> Any:
    """The number whose hyperbolic tangent is `x`; NaN beyond 1.

    ``(T) -> T, T: float scalar or vector``
    """

def erf(x: Operand, /) -> Any:
    """The error function.

    ``(T) -> T, T: float scalar or vector``
    """

def fmod(x: Operand, y: Operand, /) -> Any:
    """`x - y trunc(x / y)`, exactly; NaN of an infinite `x` or a zero `y`.

    ``(T, T) -> T, T: float scalar or vector``
    """

def simd_sum(x: Operand, /) -> Any:
    """The sum over the simdgroup. Lanes are combined by xor 1, 2, 4, ... (A11).

    ``(T) -> T, T: integer or float scalar or vector``

    Needs a device with simdgroups.
    """

def simd_product(x: Operand, /) -> Any:
    """The product over the simdgroup. Lanes are combined by xor 1, 2, 4, ... (A11).

    ``(T) -> T, T: integer or float scalar or vector``

    Needs a device with simdgroups.
    """

def simd_min(x: Operand, /) -> Any:
    """The `min` over the simdgroup.

    ``(T) -> T, T: integer or float scalar or vector``

    Needs a device with simdgroups.
    """

def simd_max(x: Operand, /) -> Any:
    """The `max` over the simdgroup.

    ``(T) -> T, T: integer or float scalar or vector``

    Needs a device with simdgroups.
    """

def simd_and(x: Operand, /) -> Any:
    """The `and` over the simdgroup.

    ``(T) -> T, T: bool or integer scalar or vector``

    Needs a device with simdgroups.
    """

def simd_or(x: Operand, /) -> Any:
    """The `or` over the simdgroup.

    ``(T) -> T, T: bool or integer scalar or vector``

    Needs a device with simdgroups.
    """

def simd_xor(x: Operand, /) -> Any:
    """The `xor` over the simdgroup.

    ``(T) -> T, T: bool or integer scalar or vector``

    Needs a device with simdgroups.
    """

def simd_prefix_inclusive_sum(x: Operand, /) -> Any:
    """The sum over the lanes of the simdgroup up to this one, by doubling (A11).

    ``(T) -> T, T: integer or float scalar or vector``

    Needs a device with simdgroups.
    """

def simd_prefix_exclusive_sum(x: Operand, /) -> Any:
    """The sum over the lanes of the simdgroup before this one, by doubling (A11); 0 in the
    first lane.

    ``(T) -> T, T: integer or float scalar or vector``

    Needs a device with simdgroups.
    """

def simd_prefix_inclusive_product(x: Operand, /) -> Any:
    """The product over the lanes of the simdgroup up to this one, by doubling (A11).

    ``(T) -> T, T: integer or float scalar or vector``

    Needs a device with simdgroups.
    """

def simd_prefix_exclusive_product(x: Operand, /) -> Any:
    """The product over the lanes of the simdgroup before this one, by doubling (A11); 1 in the
    first lane.

    ``(T) -> T, T: integer or float scalar or vector``

    Needs a device with simdgroups.
    """

def simd_shuffle(x: Operand, lane: Operand, /) -> Any:
    """The value of `x` in that lane; 0 if there is none (X6).

    ``(T, integer scalar) -> T, T: bool or integer or float scalar or vector``

    Needs a device with simdgroups.
    """

def simd_shuffle_up(x: Operand, delta: Operand, /) -> Any:
    """The value of `x` in the lane `delta` below; 0 if there is none (X6).

    ``(T, integer scalar) -> T, T: bool or integer or float scalar or vector``

    Needs a device with simdgroups.
    """

def simd_shuffle_down(x: Operand, delta: Operand, /) -> Any:
    """The value of `x` in the lane `delta` above; 0 if there is none (X6).

    ``(T, integer scalar) -> T, T: bool or integer or float scalar or vector``

    Needs a device with simdgroups.
    """

def simd_shuffle_xor(x: Operand, mask: Operand, /) -> Any:
    """The value of `x` in the lane whose number is this one's xor `mask`; 0 if there is none (X6).

    ``(T, integer scalar) -> T, T: bool or integer or float scalar or vector``

    Needs a device with simdgroups.
    """

def simd_shuffle_rotate_up(x: Operand, delta: Operand, /) -> Any:
    """The value of `x` in the lane `delta` below, counted around a full simdgroup; 0 if there is
    none (X6).

    ``(T, integer scalar) -> T, T: bool or integer or float scalar or vector``

    Needs a device with simdgroups.
    """

def simd_shuffle_rotate_down(x: Operand, delta: Operand, /) -> Any:
    """The value of `x` in the lane `delta` above, counted around a full simdgroup; 0 if there is
    none (X6).

    ``(T, integer scalar) -> T, T: bool or integer or float scalar or vector``

    Needs a device with simdgroups.
    """

def simd_broadcast(x: Operand, lane: Operand, /) -> Any:
    """The value of `x` in that lane, for all lanes of the simdgroup; 0 if there is none (X6). The
    number that the first lane gives counts.

    ``(T, integer scalar) -> T, T: bool or integer or float scalar or vector``

    Needs a device with simdgroups.
    """

def simd_broadcast_first(x: Operand, /) -> Any:
    """The value of `x` in the first lane of the simdgroup.

    ``(T) -> T, T: bool or integer or float scalar or vector``

    Needs a device with simdgroups.
    """

def simd_ballot(x: Operand, /) -> u32x4:
    """One bit for each lane of the simdgroup, the first lane's lowest: whether `x` holds there.

    ``(bool) -> u32x4``

    Needs a device with simdgroups.
    """

def simd_all(x: Operand, /) -> bool:
    """Whether `x` holds in every lane of the simdgroup that exists.

    ``(bool) -> bool``

    Needs a device with simdgroups.
    """

def simd_any(x: Operand, /) -> bool:
    """Whether `x` holds in some lane of the simdgroup.

    ``(bool) -> bool``

    Needs a device with simdgroups.
    """

def quad_sum(x: Operand, /) -> Any:
    """The sum over the quadgroup. Lanes are combined by xor 1, 2, 4, ... (A11).

    ``(T) -> T, T: integer or float scalar or vector``

    Needs a device with quadgroups.
    """

def quad_product(x: Operand, /) -> Any:
    """The product over the quadgroup. Lanes are combined by xor 1, 2, 4, ... (A11).

    ``(T) -> T, T: integer or float scalar or vector``

    Needs a device with quadgroups.
    """

def quad_min(x: Operand, /) -> Any:
    """The `min` over the quadgroup.

    ``(T) -> T, T: integer or float scalar or vector``

    Needs a device with quadgroups.
    """

def quad_max(x: Operand, /) -> Any:
    """The `max` over the quadgroup.

    ``(T) -> T, T: integer or float scalar or vector``

    Needs a device with quadgroups.
    """

def quad_and(x: Operand, /) -> Any:
    """The `and` over the quadgroup.

    ``(T) -> T, T: bool or integer scalar or vector``

    Needs a device with quadgroups.
    """

def quad_or(x: Operand, /) -> Any:
    """The `or` over the quadgroup.

    ``(T) -> T, T: bool or integer scalar or vector``

    Needs a device with quadgroups.
    """

def quad_xor(x: Operand, /) -> Any:
    """The `xor` over the quadgroup.

    ``(T) -> T, T: bool or integer scalar or vector``

    Needs a device with quadgroups.
    """

def quad_prefix_inclusive_sum(x: Operand, /) -> Any:
    """The sum over the lanes of the quadgroup up to this one, by doubling (A11).

    ``(T) -> T, T: integer or float scalar or vector``

    Needs a device with quadgroups.
    """

def quad_prefix_exclusive_sum(x: Operand, /) -> Any:
    """The sum over the lanes of the quadgroup before this one, by doubling (A11); 0 in the
    first lane.

    ``(T) -> T, T: integer or float scalar or vector``

    Needs a device with quadgroups.
    """

def quad_prefix_inclusive_product(x: Operand, /) -> Any:
    """The product over the lanes of the quadgroup up to this one, by doubling (A11).

    ``(T) -> T, T: integer or float scalar or vector``

    Needs a device with quadgroups.
    """

def quad_prefix_exclusive_product(x: Operand, /) -> Any:
    """The product over the lanes of the quadgroup before this one, by doubling (A11); 1 in the
    first lane.

    ``(T) -> T, T: integer or float scalar or vector``

    Needs a device with quadgroups.
    """

def quad_shuffle(x: Operand, lane: Operand, /) -> Any:
    """The value of `x` in that lane; 0 if there is none (X6).

    ``(T, integer scalar) -> T, T: bool or integer or float scalar or vector``

    Needs a device with quadgroups.
    """

def quad_shuffle_up(x: Operand, delta: Operand, /) -> Any:
    """The value of `x` in the lane `delta` below; 0 if there is none (X6).

    ``(T, integer scalar) -> T, T: bool or integer or float scalar or vector``

    Needs a device with quadgroups.
    """

def quad_shuffle_down(x: Operand, delta: Operand, /) -> Any:
    """The value of `x` in the lane `delta` above; 0 if there is none (X6).

    ``(T, integer scalar) -> T, T: bool or integer or float scalar or vector``

    Needs a device with quadgroups.
    """

def quad_shuffle_xor(x: Operand, mask: Operand, /) -> Any:
    """The value of `x` in the lane whose number is this one's xor `mask`; 0 if there is none (X6).

    ``(T, integer scalar) -> T, T: bool or integer or float scalar or vector``

    Needs a device with quadgroups.
    """

def quad_shuffle_rotate_up(x: Operand, delta: Operand, /) -> Any:
    """The value of `x` in the lane `delta` below, counted around a full quadgroup; 0 if there is
    none (X6).

    ``(T, integer scalar) -> T, T: bool or integer or float scalar or vector``

    Needs a device with quadgroups.
    """

def quad_shuffle_rotate_down(x: Operand, delta: Operand, /) -> Any:
    """The value of `x` in the lane `delta` above, counted around a full quadgroup; 0 if there is
    none (X6).

    ``(T, integer scalar) -> T, T: bool or integer or float scalar or vector``

    Needs a device with quadgroups.
    """

def quad_broadcast(x: Operand, lane: Operand, /) -> Any:
    """The value of `x` in that lane, for all lanes of the quadgroup; 0 if there is none (X6). The
    number that the first lane gives counts.

    ``(T, integer scalar) -> T, T: bool or integer or float scalar or vector``

    Needs a device with quadgroups.
    """

def quad_broadcast_first(x: Operand, /) -> Any:
    """The value of `x` in the first lane of the quadgroup.

    ``(T) -> T, T: bool or integer or float scalar or vector``

    Needs a device with quadgroups.
    """

def quad_ballot(x: Operand, /) -> u32x4:
    """One bit for each lane of the quadgroup, the first lane's lowest: whether `x` holds there.

    ``(bool) -> u32x4``

    Needs a device with quadgroups.
    """

def quad_all(x: Operand, /) -> bool:
    """Whether `x` holds in every lane of the quadgroup that exists.

    ``(bool) -> bool``

    Needs a device with quadgroups.
    """

def quad_any(x: Operand, /) -> bool:
    """Whether `x` holds in some lane of the quadgroup.

    ``(bool) -> bool``

    Needs a device with quadgroups.
    """

thread_position_in_grid: _Query
"""The thread's position in the grid.

``x, y or z, () -> u32``
"""

thread_position_in_threadgroup: _Query
"""The thread's position in its threadgroup.

``x, y or z, () -> u32``
"""

def thread_index_in_threadgroup() -> u32:
    """The thread's number in its threadgroup: x + y*size_x + z*size_x*size_y (X2).

    ``() -> u32``
    """

threadgroup_position_in_grid: _Query
"""The threadgroup's position in the grid.

``x, y or z, () -> u32``
"""

threads_per_threadgroup: _Query
"""The size of this threadgroup, smaller at an edge of the grid (X2).

``x, y or z, () -> u32``
"""

dispatch_threads_per_threadgroup: _Query
"""The size of a threadgroup that is not at an edge of the grid (X2): the one dispatched with.

``x, y or z, () -> u32``
"""

threads_per_grid: _Query
"""The size of the grid in threads.

``x, y or z, () -> u32``
"""

threadgroups_per_grid: _Query
"""The size of the grid in threadgroups, those at its edges counted whole.

``x, y or z, () -> u32``
"""

grid_origin: _Query
"""Where the grid begins: 0.

``x, y or z, () -> u32``
"""

grid_size: _Query
"""The size of the grid in threads: `threads_per_grid`.

``x, y or z, () -> u32``
"""

def thread_index_in_simdgroup() -> u32:
    """The thread's number in its simdgroup: its lane (X2).

    ``() -> u32``

    Needs a device with simdgroups.
    """

def simdgroup_index_in_threadgroup() -> u32:
    """The simdgroup's number in its threadgroup (X2).

    ``() -> u32``

    Needs a device with simdgroups.
    """

def simdgroups_per_threadgroup() -> u32:
    """How many simdgroups this threadgroup has, the last one perhaps not full.

    ``() -> u32``

    Needs a device with simdgroups.
    """

def dispatch_simdgroups_per_threadgroup() -> u32:
    """How many simdgroups a threadgroup has that is not at an edge of the grid.

    ``() -> u32``

    Needs a device with simdgroups.
    """

def threads_per_simdgroup() -> u32:
    """How many lanes a full simdgroup has: the simdgroup size (X2).

    ``() -> u32``

    Needs a device with simdgroups.
    """

def thread_execution_width() -> u32:
    """The simdgroup size: `threads_per_simdgroup`.

    ``() -> u32``

    Needs a device with simdgroups.
    """

def thread_index_in_quadgroup() -> u32:
    """The thread's number in its quadgroup (X2).

    ``() -> u32``

    Needs a device with quadgroups.
    """

def quadgroup_index_in_threadgroup() -> u32:
    """The quadgroup's number in its threadgroup (X2).

    ``() -> u32``

    Needs a device with quadgroups.
    """

def quadgroups_per_threadgroup() -> u32:
    """How many quadgroups this threadgroup has, the last one perhaps not full.

    ``() -> u32``

    Needs a device with quadgroups.
    """

def dispatch_quadgroups_per_threadgroup() -> u32:
    """How many quadgroups a threadgroup has that is not at an edge of the grid.

    ``() -> u32``

    Needs a device with quadgroups.
    """

def explain(rule: Any = None) -> Any:
    """What a rule says, why, and what to do; without an argument the names of all rules."""

@overload
def kernel(function: Callable[..., Any]) -> Kernel:
    """Makes a kernel of a function: code that runs once for every thread of a grid.

    Parameters are annotated ``iv.Buffer[...]``, ``iv.Constant[...]``, ``iv.Scalar[...]`` or
    ``iv.Threadgroup[...]``; one without annotation is a compile-time value. Attributes:
    ``threadgroup`` (the only size it may be launched with), ``simdgroup`` (the size it requires),
    ``float_mode`` (``"strict"``, ``"contract"`` or ``"fast"``), ``allow`` (a tuple of
    ``"out_of_bounds_loads"``, ``"out_of_bounds_stores"`` and ``"uninitialised_reads"``).
    """
@overload
def kernel(
    *,
    threadgroup: Size | None = None,
    simdgroup: int | None = None,
    float_mode: Literal['strict', 'contract', 'fast'] = 'contract',
    allow: Sequence[Literal['out_of_bounds_loads', 'out_of_bounds_stores', 'uninitialised_reads']] = (),
) -> Callable[[Callable[..., Any]], Kernel]:
    """Makes a kernel of a function: code that runs once for every thread of a grid.

    Parameters are annotated ``iv.Buffer[...]``, ``iv.Constant[...]``, ``iv.Scalar[...]`` or
    ``iv.Threadgroup[...]``; one without annotation is a compile-time value. Attributes:
    ``threadgroup`` (the only size it may be launched with), ``simdgroup`` (the size it requires),
    ``float_mode`` (``"strict"``, ``"contract"`` or ``"fast"``), ``allow`` (a tuple of
    ``"out_of_bounds_loads"``, ``"out_of_bounds_stores"`` and ``"uninitialised_reads"``).
    """
