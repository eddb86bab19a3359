"""Kernels, host functions that launch them, and what compiling gives."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import pathlib
import threading

import numpy as np

from ... import _compile, _invar, _reads, _trace, _values
from ..._errors import Error, KernelError, VerifyError, reported
from ..._invar import DiagnosticsError
from ..._kernel import Compiled, _span_of, around
from ...layout import LayoutError, make_ordered_layout
from .. import typing as _typing
from .._dialect import Dialect
from .._errors import (
    EnigmaAnnotationError,
    EnigmaError,
    EnigmaRuntimeError,
    EnigmaTypeError,
    enigma_error,
)
from .._memory import Tensor
from . import _metal


class Kernel:
    """A function with ``@enigma.kernel``.

    ``compile(kernel)`` compiles it; in a ``@jit`` function ``kernel(...).launch(grid, block)``
    launches it.
    """

    def __init__(self, fn):
        if not hasattr(fn, "__code__"):
            raise EnigmaTypeError("@enigma.kernel goes on a function")
        self.fn, self.name = fn, fn.__name__
        functools.update_wrapper(self, fn)
        self.__invar_kernel__ = fn.__name__
        self.around = around(fn)

    def __repr__(self):
        return f"<enigma.kernel {self.__name__}>"

    def __call__(self, *args, **kwargs):
        if _jit() is None:
            raise EnigmaError(
                f"kernel `{self.__name__}` runs through compile(...) and MetalRuntime().execute(...)"
            )
        return Call(self, _bound(f"kernel `{self.__name__}`", self.fn, args, kwargs))

    def for_arguments(self, args, kwargs):
        """The kernel compiled for these arguments, and them in the order of its parameters: what
        ``iv.check`` asks of a kernel."""
        bound = list(_bound(f"kernel `{self.__name__}`", self.fn, args, kwargs).arguments.values())
        given = bound if any(hint is None for _, hint in self.annotations()) else ()
        return wrap(self, given, 0, False)._compiled, bound

    def module(self):
        """The kernel's module, for the ``invar`` command."""
        return wrap(self, (), 0, False)._compiled.module

    def annotations(self):
        """The parameters' names and what they are annotated with."""
        fn = self.fn
        scope = {**fn.__globals__, **self.around}
        for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or ()):
            try:
                scope[name] = cell.cell_contents
            except ValueError:
                continue
        found = []
        for name in inspect.signature(fn).parameters:
            hint = fn.__annotations__.get(name)
            if isinstance(hint, str) and hint not in _typing.METAL:
                hint = self._resolved(name, hint, scope)
            found.append((name, hint))
        return found

    def _resolved(self, name, text, scope):
        """What an annotation in text is: Python, or one of Metal's types."""
        try:
            return eval(text, scope)
        except Exception as e:
            try:
                return _typing.type_of(text)
            except Error:
                pass
            raise EnigmaAnnotationError(
                f"parameter `{name}` of kernel `{self.__name__}` is annotated {text!r}, which cannot "
                f"be resolved: {_said(e)}; write a type such as Float32 or \"float\" for a buffer, "
                "Scalar(UInt32) for a value",
                _span_of(self.fn),
            ) from None


def kernel(fn):
    """Makes a kernel of a function.

    A parameter annotated with a type (``Float32``, ``"float"``) is a buffer of it, one with
    ``Scalar(...)`` a value.
    """
    return Kernel(fn)


def _bound(what, fn, args, kwargs):
    """The arguments of a call, by the names of the parameters."""
    try:
        found = inspect.signature(fn).bind(*args, **kwargs)
        found.apply_defaults()
        return found
    except TypeError as e:
        raise EnigmaError(f"{what}: {e}") from None


def _said(e):
    """What Python says of an annotation."""
    return "it is not a Python expression" if isinstance(e, SyntaxError) else str(e)


_local = threading.local()


def _jit():
    """The launches of the ``@jit`` function that runs on this thread, or ``None``."""
    return getattr(_local, "launched", None)


class Jit:
    """A function with ``@enigma.jit``: it does layout algebra and launches one kernel."""

    def __init__(self, fn):
        if not hasattr(fn, "__code__"):
            raise EnigmaTypeError("@enigma.jit goes on a function")
        self.fn, self.name = fn, fn.__name__
        functools.update_wrapper(self, fn)

    def __repr__(self):
        return f"<enigma.jit {self.__name__}>"

    def __call__(self, *args):
        raise EnigmaError(f"`{self.__name__}` is compiled with compile({self.__name__}, *tensors)")

    def run(self, args):
        """Runs the function on its tensors; gives the launch that it made."""
        _bound(f"`{self.__name__}`", self.fn, args, {})
        outer, _local.launched = _jit(), []
        try:
            self.fn(*args)
            launched = _jit()
        finally:
            _local.launched = outer
        if len(launched) != 1:
            advice = "write one @jit function for each launch, and execute them in order"
            if not launched:
                advice = "call `kernel(...).launch(grid, block)` in it"
            raise EnigmaRuntimeError(
                f"`{self.__name__}` launches {len(launched)} kernels, but a compiled kernel is one "
                f"launch: {advice}"
            )
        return launched[0]


def jit(fn):
    """Makes a host function, which does layout algebra and launches a kernel with
    ``kernel(...).launch(grid, block)``."""
    return Jit(fn)


class Call:
    """A kernel with its arguments, in a ``@jit`` function."""

    def __init__(self, kernel, bound):
        self.kernel, self.bound = kernel, bound
        self.grid = self.block = None

    def launch(self, grid=(1, 1, 1), block=(1, 1, 1)):
        """Launches it: ``grid`` counts threads, not threadgroups; ``block`` is a threadgroup's size."""
        self.grid, self.block = _three(grid, "grid"), _three(block, "block")
        if _jit() is None:
            raise EnigmaRuntimeError(f"kernel `{self.kernel.__name__}` is launched outside a @jit function")
        _jit().append(self)


def _three(size, what):
    sizes = tuple(size) if isinstance(size, (tuple, list)) else (size,)
    if not 1 <= len(sizes) <= 3 or any(
        isinstance(n, bool) or not isinstance(n, (int, np.integer)) or not 0 <= n < 1 << 32
        for n in sizes
    ):
        raise EnigmaRuntimeError(f"a {what} is one to three numbers from 0 to 4294967295, not {size!r}")
    return tuple(int(n) for n in (*sizes, 1, 1)[:3])


class Parameter:
    """A parameter of a compiled kernel: a buffer or a scalar."""

    #: Annotations of the DSL say nothing of it.
    shape = None

    def __init__(self, name, kind, ty):
        self.name, self.kind, self.type, self.access, self.number = name, kind, ty, 1, None

    @property
    def element(self):
        return self.type

    def __str__(self):
        metal = _typing.metal_name(self.type)
        return f"{self.name}: {metal}" if self.kind == "buffer" else f"{self.name}: Scalar({metal})"


class Made(Compiled):
    """What tracing a kernel gave, with function constants by their index."""

    def __init__(self, name, module, params, constants, threadgroup_bytes):
        super().__init__(name, module, params)
        #: Bytes of its threadgroup arrays.
        self.threadgroup_bytes = threadgroup_bytes
        #: Function constants by their index: name and type.
        self.constants = constants

    def named(self, constants):
        """Values of function constants as the extension takes them: name, type and bits."""
        known, out = self.constants, []
        if not isinstance(constants or {}, dict):
            raise EnigmaRuntimeError(
                f"constants={constants!r}: write {{index: (type, value)}}, as in {{0: (\"float\", 1.5)}}"
            )
        for index, pair in (constants or {}).items():
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise EnigmaRuntimeError(
                    f"constants={{{index}: {pair!r}}}: write the type and the value, as in "
                    f"constants={{{index}: (\"float\", 1.5)}}"
                )
            dtype, value = pair
            if index not in known:
                raise EnigmaRuntimeError(
                    f"kernel `{self.name}` has no function constant {index}; it has "
                    f"{', '.join(map(str, sorted(known))) or 'none'}"
                )
            name, ty = known[index]
            what = f"function constant {index} of `{self.name}`"
            if _typing.type_of(dtype) != ty:
                raise EnigmaRuntimeError(f"{what} is a {_typing.metal_name(ty)}, not {dtype}")
            (bits,) = bits_of(what, ty, value, f"a {_typing.metal_name(ty)}")
            out.append((name, ty.name, bits))
        missing = sorted(set(known) - set(constants or {}))
        if missing:
            raise EnigmaRuntimeError(
                f"kernel `{self.name}` needs function constant {missing[0]}: "
                f"constants={{{missing[0]}: (type, value)}}"
            )
        return out


def bits_of(what, ty, x, wanted):
    """The bits of a number's components, for a parameter by value or a function constant."""
    try:
        parts = np.asarray(x).reshape(-1)
    except ValueError:
        raise EnigmaRuntimeError(f"{what} is {x!r}, which does not fit {wanted}") from None
    count = int(np.prod(ty.shape, dtype=np.int64)) if ty.shape else 1
    if len(parts) != count:
        raise EnigmaRuntimeError(f"{what} has {len(parts)} components, {wanted} takes {count}")
    bits = []
    for part in parts:
        part = part.item() if isinstance(part, np.generic) else part
        number, found = part, None
        if ty.is_bool and isinstance(part, (int, float)):
            number = bool(part)
        elif isinstance(part, bool) or ty.is_integer and isinstance(part, float) and part.is_integer():
            number = int(part)
        with contextlib.suppress(TypeError):
            found = _invar.bits(ty.scalar.name, number)
        if found is None:
            raise EnigmaRuntimeError(f"{what} is {part!r}, which does not fit {wanted}")
        bits.append(found)
    return tuple(bits)


class CompiledKernel:
    """A compiled kernel: its name, its Metal source, its parameters, and the launch of a ``@jit``
    function.

    ``scalar_params`` has name, index and Metal's type of each parameter that is passed by value.
    """

    def __init__(self, kernel_name, metallib_path=None, metallib_bytes=None, metal_source="",
                 mlir_source=None, grid=None, block=None, scalar_params=None, num_params=None,
                 param_names=None):  # fmt: skip
        self.kernel_name, self._metal_source, self._mlir_source = kernel_name, metal_source, mlir_source
        self.metallib_path, self.metallib_bytes = metallib_path, metallib_bytes
        self.grid, self.block = grid, block
        self.scalar_params, self.num_params = scalar_params, num_params
        self.param_names = param_names
        self._compiled = None
        self.emit_only = False
        #: How its Metal source makes async copies.
        self.async_copies = "engine"

    def __repr__(self):
        return f"<compiled kernel {self.kernel_name}>"

    @property
    def __name__(self):
        return self.kernel_name

    def for_arguments(self, args, kwargs):
        """What ``iv.check`` asks of a kernel: it as it was compiled, and the arguments."""
        made = self._compiled
        if made is None:
            raise EnigmaError(f"`{self.kernel_name}` was not made by compile(), so it cannot be checked")
        names = [p.name for p in made.params]
        unknown = [name for name in kwargs if name not in names[len(args) :]]
        if unknown or len(args) + len(kwargs) != len(names):
            raise EnigmaRuntimeError(
                f"kernel `{self.kernel_name}` takes its parameters in order: "
                f"{', '.join(map(str, made.params)) or 'none'}"
            )
        return made, [*args, *(kwargs[name] for name in names[len(args) :])]

    def module(self):
        """The kernel's module, for the ``invar`` command."""
        return self.for_arguments([None] * len(self._compiled.params), {})[0].module

    @property
    def has_metallib(self):
        """Whether it has a library of Apple's compiler: never one that was made here."""
        return self.metallib_path is not None and self.metallib_bytes is not None

    @property
    def metal_source(self):
        """The kernel in the Metal Shading Language, and before it what a host has to bind besides."""
        if self._compiled is None:
            return self._metal_source
        return _metal.said(self._compiled.source("msl", async_copies=self.async_copies))

    @property
    def kernel_source(self):
        """The same as ``metal_source``."""
        return self.metal_source

    @property
    def mlir_source(self):
        """The kernel in Invar's text form."""
        return self._mlir_source if self._compiled is None else self._compiled.module.text()

    def export_metal(self, path=None, *, sizes=None):
        """Writes the Metal source to a file, ``NAME.metal`` unless given; gives its path.

        ``sizes`` are the numbers of elements of the buffers, by name or in the order of the
        parameters; with them the source is for these buffers, and a host binds nothing but the
        kernel's own parameters.
        """
        if path == "":
            raise EnigmaError("export_metal(\"\") names no file: give a path, or none for NAME.metal")
        path = pathlib.Path(path or f"{self.kernel_name}.metal")
        write(path, self.metal_source if sizes is None else _metal.with_sizes(self, sizes))
        return str(path)


def write(path, text):
    """Writes a file that the program asked for."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except OSError as e:
        raise EnigmaError(f"{path} cannot be written: {e.strerror}") from None


def build(fn, tensors, vec_width):
    """Traces a kernel or the kernel that a ``@jit`` function launches."""
    if isinstance(fn, Jit):
        tensors = [t if isinstance(t, Tensor) else _described(t, i) for i, t in enumerate(tensors)]
        _name(fn, tensors)
        call = fn.run(tensors)
        return _trace_kernel(call.kernel, call.bound, tensors, vec_width), call
    if not isinstance(fn, Kernel):
        raise EnigmaTypeError(f"compile() takes a function with @kernel or @jit, not {fn!r}")
    if tensors:
        _bound(f"kernel `{fn.__name__}`", fn.fn, tensors, {})
    return _trace_kernel(fn, None, tensors, vec_width), None


def _name(fn, tensors):
    """The tensors' places are those of the parameters that take them."""
    for i, tensor in enumerate(tensors):
        if tensor.buffer_index is None:
            tensor.buffer_index = i


def _described(x, index):
    """An array as the tensor that it is: row-major."""
    if hasattr(x, "__array_interface__") or hasattr(x, "__dlpack__"):
        array = np.asarray(x)
        ty = _values.scalar_of(array.dtype)
        if ty is not None and array.ndim:
            order = tuple(reversed(range(array.ndim)))
            tensor = Tensor(f"arg{index}", index, ty, make_ordered_layout(array.shape, order))
            tensor.array_layout = tensor.layout
            return tensor
    raise EnigmaError(f"argument {index} is {x!r}, expected a Tensor or an array of numbers")


def _trace_kernel(kernel, bound, tensors, vec_width):
    fn = kernel.fn
    name = kernel.__name__
    dialect = Dialect(name, vec_width)
    t = _trace.Trace(name, dialect)
    with _trace.lock, _trace.tracing(t), _trace.reported(t):
        position = _span_of(fn)
        span = t.span(position)
        t.builder.set_span(span)
        params, args, keywords = [], [], {}
        if bound is not None:
            # The Tensors that compile() was given are the parameters, by their index.
            ordered = sorted(tensors, key=lambda x: x.buffer_index)
            if [x.buffer_index for x in ordered] != list(range(len(ordered))):
                raise EnigmaError(
                    f"the tensors of `{name}` have buffer indices "
                    f"{[x.buffer_index for x in ordered]}: number them from 0"
                )
            for tensor in ordered:
                params.append(declared(t, tensor.name, tensor._type))
            args, keywords = bound.args, bound.kwargs
        else:
            if fn.__defaults__ or fn.__kwdefaults__:
                given = fn.__kwdefaults__ or fn.__code__.co_varnames[: fn.__code__.co_argcount]
                raise KernelError(
                    f"parameter `{list(given)[-1]}` of kernel `{name}` has a default value, which "
                    "nothing would use: pass it in scalars= of execute(...)",
                    position,
                )
            for i, (param, hint) in enumerate(kernel.annotations()):
                if isinstance(hint, _typing.Scalar):
                    number = t.builder.scalar(param, str(hint.type))
                    args.append(_values.Value(number, hint.type))
                    dialect.parameters.append(args[-1])
                    params.append(Parameter(param, "scalar", hint.type))
                    continue
                tensor = None
                if i < len(tensors):
                    tensor = tensors[i]
                    tensor = tensor if isinstance(tensor, Tensor) else _described(tensor, i)
                ty = tensor._type if tensor is not None and hint is None else None
                if ty is None:
                    ty = _buffer_type(name, param, hint, position)
                params.append(declared(t, param, ty))
                args.append(dialect.parameters[-1])
                if tensor is not None:
                    if tensor._type != ty:
                        raise EnigmaError(
                            f"parameter `{param}` of kernel `{name}` is a {_typing.metal_name(ty)}, "
                            f"the tensor for it holds {tensor.metal_dtype}"
                        )
                    args[-1].layout = tensor.layout
                    args[-1].array_layout = tensor.array_layout
            # What follows the `*` of a signature goes by its name.
            code = fn.__code__
            for param in code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount]:
                place = [name for name, _ in kernel.annotations()].index(param) - len(keywords)
                keywords[param] = args.pop(place)
        t.reads = _reads.Reads(fn)
        _compile.kernel(fn, args, keywords)
        return finished(t, name, params, position)


def finished(t, name, params, position):
    """What a trace has made, verified."""
    t.dialect.check_blocks()
    simdgroup = 32 if t.dialect.simdgroup else None
    span = t.span(position) if position is not None else None
    try:
        module = t.builder.finish(list(t.access.items()), span=span, simdgroup=simdgroup)
        module.verify()
    except DiagnosticsError as e:
        raise reported(e, VerifyError) from None
    except ValueError as e:
        raise KernelError(str(e), position) from None
    for p in params:
        if p.kind == "buffer":
            p.access = t.access.get(p.number, 0) or 1
    constants = {int(fc[2:]): (fc, ty) for fc, (_, ty) in t.function_constants.items()}
    return Made(name, module, params, constants, t.dialect.threadgroup_bytes)


def _buffer_type(kernel, param, hint, position):
    """The type of a parameter that is a buffer."""
    try:
        return _typing.type_of(hint)
    except Error:
        found = "has no annotation" if hint is None else f"is annotated {hint!r}"
        raise EnigmaAnnotationError(
            f"parameter `{param}` of kernel `{kernel}` {found}: write a type such as Float32 for a "
            "buffer, Scalar(UInt32) for a value",
            position,
        ) from None


def declared(t, name, ty):
    """A parameter that is a buffer, and its tensor among those of the kernel."""
    dialect = t.dialect
    handle = t.builder.parameter("buffer", name, str(ty))
    memory = _values.Memory(tuple(handle), name, "device", ty)
    index = len(dialect.parameters)
    dialect.parameters.append(Tensor.on(memory, index))
    parameter = Parameter(name, "buffer", ty)
    parameter.number = handle[1]
    return parameter


def wrap(fn, tensors, vec_width, emit_only):
    """The compiled kernel of a function."""
    try:
        made, call = build(fn, tensors, vec_width)
    except (Error, LayoutError) as e:
        # The kernel's own line is in the sentence; the frames between are ours.
        raise enigma_error(e).with_traceback(None) from None
    return compiled(made, call, emit_only)


def compiled(made, call=None, emit_only=False):
    """The compiled kernel of what tracing gave, and of its launch."""
    scalars = [
        (p.name, i, _typing.metal_name(p.type)) for i, p in enumerate(made.params) if p.kind == "scalar"
    ]
    kernel = CompiledKernel(
        made.name, grid=call.grid if call else None, block=call.block if call else None,
        scalar_params=scalars, num_params=len(made.params), param_names=[p.name for p in made.params],
    )  # fmt: skip
    kernel._compiled, kernel.emit_only = made, emit_only
    return kernel


def trace_kernel(kdef):
    """The builder that a kernel with annotated parameters was traced with."""
    from .._builder import KernelBuilder

    if not isinstance(kdef, Kernel):
        raise EnigmaTypeError(f"trace_kernel() takes a function with @kernel, not {kdef!r}")
    return KernelBuilder.traced(kdef)


def wants_only_source(emit_only):
    """Whether only the source is asked for: by the argument, else by ``ENIGMA_EMIT_ONLY``."""
    if emit_only is not None:
        return bool(emit_only)
    return os.environ.get("ENIGMA_EMIT_ONLY", "").lower() not in ("", "0", "false", "no", "off")


#: What the Enigma DSL calls these classes.
KernelDef, JitDef, KernelHandle = Kernel, Jit, Call

__all__ = [
    "CompiledKernel", "EnigmaError", "JitDef", "KernelDef", "KernelHandle", "jit", "kernel",
    "trace_kernel",
]  # fmt: skip
