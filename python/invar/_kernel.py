"""Kernels: tracing a function, and launching it."""

from __future__ import annotations

import functools
import threading
import typing

import numpy as np

from . import _control, _ops, _rewrite, _trace, _types, _values
from ._errors import (
    ArgumentError,
    CheckError,
    Error,
    KernelError,
    Report,
    ReportError,
    VerifyError,
    findings_of,
)
from ._invar import DiagnosticsError


class Param:
    """A parameter: its name, kind (``buffer``, ``constant``, ``scalar``, ``threadgroup`` or
    ``value`` for a compile-time one), what it holds, and what the kernel does with it."""

    def __init__(self, name, kind, element):
        self.name, self.kind, self.element, self.access = name, kind, element, 0

    def __str__(self):
        if self.kind == "value":
            return f"{self.name}: a compile-time value"
        return f"{self.name}: {self.kind.capitalize()}[{self.element}]"


class Compiled:
    """A kernel for certain compile-time values."""

    def __init__(self, module, params, position):
        self.module, self.params, self.position = module, params, position


def _span_of(function):
    node, filename = _rewrite._definition(function)
    line = node.lineno
    end = node.col_offset + len("def ") + len(node.name)
    return filename, line, node.col_offset + 1, line, end + 1


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
        float_mode: Literal["strict", "contract", "fast"] = "contract",
        allow: Sequence[Literal["out_of_bounds_loads", "out_of_bounds_stores"]] = (),
    ):
        self.function = function
        self.attributes = {
            "threadgroup": None if threadgroup is None else _size(threadgroup, "threadgroup size"),
            "simdgroup": simdgroup,
            "float_mode": float_mode,
            "allow_out_of_bounds_loads": "out_of_bounds_loads" in allow,
            "allow_out_of_bounds_stores": "out_of_bounds_stores" in allow,
        }
        unknown = set(allow) - {"out_of_bounds_loads", "out_of_bounds_stores"}
        if unknown:
            raise Error(
                f"allow={sorted(unknown)[0]!r} is nothing that a kernel allows: write "
                "out_of_bounds_loads or out_of_bounds_stores"
            )
        self._compiled = {}
        self._lock = threading.Lock()
        self.__invar_kernel__ = function.__name__
        functools.update_wrapper(self, function)

    def __repr__(self):
        return f"<kernel {self.__name__}>"

    def _repr_html_(self):
        from . import _html

        return _html.kernel(self)

    @functools.cached_property
    def params(self):
        """The parameters, in order."""
        function = self.function
        code = function.__code__
        if code.co_flags & 0x0C or code.co_kwonlyargcount:
            raise KernelError(
                f"kernel `{self.__name__}` has *args, ** or keyword-only parameters: name each one",
                _span_of(function),
            )
        cells = function.__closure__ or ()
        local = {}
        for name, cell in zip(code.co_freevars, cells):
            try:
                local[name] = cell.cell_contents
            except ValueError:
                continue
        try:
            hints = typing.get_type_hints(function, None, local)
        except NameError as e:
            raise KernelError(
                f"an annotation of kernel `{self.__name__}` cannot be resolved: {e}",
                _span_of(function),
            ) from None
        except TypeError:
            # typing insists on classes and forward references; ours are neither.
            hints = {}
            for name, hint in function.__annotations__.items():
                if isinstance(hint, str):
                    hint = eval(hint, {**function.__globals__, **local})
                hints[name] = hint
        params = []
        for name in code.co_varnames[: code.co_argcount]:
            hint = hints.get(name)
            if isinstance(hint, _types._Annotation):
                struct = name.capitalize()
                element = _types.element_of(hint.element, struct)
                if hint.kind == "scalar" and not isinstance(element, _types.Type):
                    raise KernelError(
                        f"parameter `{name}` of kernel `{self.__name__}` is passed by value and "
                        "cannot be a struct or array",
                        _span_of(function),
                    )
                params.append(Param(name, hint.kind, element))
            elif isinstance(hint, (_types.Type, _types._AnnotationMaker)):
                raise KernelError(
                    f"parameter `{name}` of kernel `{self.__name__}` is annotated {hint!r}: write "
                    "iv.Buffer[iv.f32] for a buffer, iv.Scalar[iv.f32] for a value",
                    _span_of(function),
                )
            else:
                params.append(Param(name, "value", None))
        return params

    @property
    def defaults(self):
        """The default values of parameters, by name."""
        names = [p.name for p in self.params]
        return dict(zip(reversed(names), reversed(self.function.__defaults__ or ())))

    def bind(self, args, kwargs):
        """Arguments in the order of the parameters."""
        names = [p.name for p in self.params]
        if len(args) > len(names):
            raise ArgumentError(
                f"kernel `{self.__name__}` takes {len(names)} arguments ({', '.join(names)}), "
                f"found {len(args)}"
            )
        bound = dict(zip(names, args))
        for name, value in kwargs.items():
            if name not in names:
                raise ArgumentError(f"kernel `{self.__name__}` has no parameter `{name}`")
            if name in bound:
                raise ArgumentError(f"kernel `{self.__name__}` got parameter `{name}` twice")
            bound[name] = value
        defaults = self.defaults
        for name in names:
            if name not in bound:
                if name not in defaults:
                    raise ArgumentError(f"kernel `{self.__name__}` needs an argument for `{name}`")
                bound[name] = defaults[name]
        return [bound[name] for name in names]

    def compile(self, values=()):
        """The kernel for these compile-time values, traced and verified."""
        key = tuple((type(v), v) for v in values)
        try:
            found = self._compiled.get(key)
        except TypeError:
            names = [p.name for p in self.params if p.kind == "value"]
            raise ArgumentError(
                f"a compile-time argument of kernel `{self.__name__}` ({', '.join(names)}) is not "
                "hashable: pass numbers, strings or tuples, or annotate the parameter"
            ) from None
        if found is None:
            with self._lock:
                found = self._compiled.get(key)
                if found is None:
                    found = self._build(values)
                    try:
                        found.module.verify()
                    except DiagnosticsError as e:
                        raise _reported(e, VerifyError) from None
                    self._compiled[key] = found
        return found

    def _build(self, values):
        """The kernel for these compile-time values, traced and not yet verified."""
        t = _trace.Trace(self.__name__)
        params = [Param(p.name, p.kind, p.element) for p in self.params]
        with _trace.tracing(t):
            position = _span_of(self.function)
            span = t.span(position)
            t.builder.set_span(span)
            converted = _rewrite.convert(self.function)
            args, values = [], iter(values)
            numbers = {}
            for param in params:
                if param.kind == "value":
                    args.append(next(values))
                    continue
                numbers[len(numbers)] = param
                if param.kind == "scalar":
                    number = t.builder.scalar(param.name, str(param.element))
                    args.append(_values.Value(number, param.element))
                    continue
                _ops.declare(param.element)
                handle = t.builder.parameter(param.kind, param.name, str(param.element))
                space = "device" if param.kind == "buffer" else param.kind
                args.append(_values.Memory(tuple(handle), param.name, space, param.element))
            frame = _control.Frame("function")
            frame.kernel = True
            t.frames.append(frame)
            signal = converted(*args)
            if signal is not None and signal is not _control.UNREACHABLE:
                _control._check_kernel_return(signal)
            try:
                module = t.builder.finish(list(t.access.items()), span=span, **self.attributes)
            except DiagnosticsError as e:
                raise _reported(e, VerifyError) from None
            except ValueError as e:
                raise KernelError(str(e), position) from None
        for number, param in numbers.items():
            param.access = t.access.get(number, 0) or 1
        return Compiled(module, params, position)

    @property
    def ir(self):
        """The text form, of a kernel without compile-time parameters."""
        values = [p.name for p in self.params if p.kind == "value"]
        if values:
            raise Error(
                f"kernel `{self.__name__}` has compile-time parameters ({', '.join(values)}): write "
                "kernel.specialise(...).ir"
            )
        return self.compile().module.text()

    def specialise(self, **values):
        """The kernel with its compile-time parameters given; what it has is ``ir``."""
        return Specialised(self, values)

    def __getitem__(self, sizes):
        if not isinstance(sizes, tuple) or len(sizes) != 2:
            raise ArgumentError(
                f"write {self.__name__}[grid, threadgroup](...): the grid in threads and the "
                "threadgroup's size, each a number or a tuple of up to three"
            )
        return Launch(self, *sizes)

    def __call__(self, *_, **__):
        if _trace.active():
            raise _trace.error(
                f"kernel `{self.__name__}` is called in a kernel: take @iv.kernel off what kernels "
                "share"
            )
        raise ArgumentError(
            f"kernel `{self.__name__}` is launched with a grid: "
            f"{self.__name__}[grid, threadgroup](...)"
        )


class Specialised:
    """A kernel with its compile-time parameters given."""

    def __init__(self, kernel, values):
        names = [p.name for p in kernel.params if p.kind == "value"]
        for name in values:
            if name not in names:
                raise ArgumentError(
                    f"kernel `{kernel.__name__}` has no compile-time parameter `{name}`"
                )
        for name in names:
            if name not in values:
                raise ArgumentError(f"kernel `{kernel.__name__}` needs a value for `{name}`")
        self.kernel, self.values = kernel, [values[name] for name in names]

    @property
    def ir(self):
        """The text form."""
        return self.kernel.compile(self.values).module.text()


def _reported(error, kind):
    text, found = error.args
    return kind(text, findings_of(found))


def kernel(function=None, **attributes):
    """Makes a kernel of a function: code that runs once for every thread of a grid.

    Parameters are annotated ``iv.Buffer[...]``, ``iv.Constant[...]``, ``iv.Scalar[...]`` or
    ``iv.Threadgroup[...]``; one without annotation is a compile-time value. Attributes:
    ``threadgroup`` (the only size it may be launched with), ``simdgroup`` (the size it requires),
    ``float_mode`` (``"strict"``, ``"contract"`` or ``"fast"``), ``allow`` (a tuple of
    ``"out_of_bounds_loads"`` and ``"out_of_bounds_stores"``).
    """
    if function is None:
        return lambda function: Kernel(function, **attributes)
    if not hasattr(function, "__code__"):
        raise Error("@iv.kernel goes on a function")
    return Kernel(function, **attributes)


# ---- launches ----


def _size(size, what):
    sizes = size if isinstance(size, tuple) else (size,)
    if not 1 <= len(sizes) <= 3:
        raise ArgumentError(f"a {what} has one to three dimensions, not {len(sizes)}")
    for n in sizes:
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)):
            raise ArgumentError(f"a {what} is made of whole numbers, not {n!r}")
        if not 0 <= n < 1 << 32:
            raise ArgumentError(f"a {what} has a dimension of {n}; each is from 0 to 4294967295")
    return [int(n) for n in (*sizes, 1, 1)[:3]]


class threadgroups:
    """A grid in full threadgroups: ``kernel[iv.threadgroups(16), 256](...)``."""

    def __init__(self, *sizes):
        self.sizes = _size(tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], tuple)
                           else sizes, "grid")  # fmt: skip


def _sizes(grid, threadgroup):
    threadgroup = _size(threadgroup, "threadgroup size")
    if isinstance(grid, threadgroups):
        return grid.sizes, True, threadgroup
    return _size(grid, "grid"), False, threadgroup


def _array(name, kernel, x):
    """An argument as an array on its own memory."""
    if isinstance(x, np.ndarray):
        return x
    if hasattr(x, "__array_interface__"):
        return np.asarray(x)
    if hasattr(x, "__dlpack__"):
        try:
            return np.from_dlpack(x)
        except (BufferError, RuntimeError, TypeError) as e:
            raise ArgumentError(
                f"argument `{name}` of `{kernel}` cannot be used in place through DLPack: {e}"
            ) from None
    try:
        view = memoryview(x)
    except TypeError:
        raise ArgumentError(
            f"argument `{name}` of `{kernel}` is a {type(x).__name__}, expected an array: anything "
            "with the buffer protocol, __array_interface__ or DLPack"
        ) from None
    return np.asarray(view)


def _buffer(param, kernel, x):
    array = _array(param.name, kernel, x)
    where = f"argument `{param.name}` of `{kernel}`"
    dtype, shape = _ops._numpy_element(param.element)
    if array.dtype != dtype:
        raise ArgumentError(
            f"{where} has dtype {array.dtype}, expected {dtype}: convert it with "
            f".astype({dtype.name!r})"
        )
    if shape and array.shape[-len(shape) :] != shape:
        raise ArgumentError(
            f"{where} has shape {array.shape}; elements of {param.element} need its last "
            f"dimension{'s' if len(shape) > 1 else ''} to be {shape}"
        )
    if not array.flags.c_contiguous:
        raise ArgumentError(
            f"{where} is not contiguous: pass np.ascontiguousarray(...) of it, and copy results back"
        )
    writes = bool(param.access & 2)
    if writes and not array.flags.writeable:
        raise ArgumentError(f"{where} is read-only memory, but the kernel writes it: pass a copy")
    return array, writes


def _scalar(param, kernel, x):
    ty = param.element
    where = f"argument `{param.name}` of `{kernel}`"
    if ty.shape:
        parts = np.asarray(x)
        if parts.shape != ty.shape:
            raise ArgumentError(f"{where} has shape {parts.shape}, expected {ty.shape} for {ty}")
        parts = [part.item() for part in parts.reshape(-1)]
    else:
        parts = [x.item() if isinstance(x, (np.generic, np.ndarray)) and np.ndim(x) == 0 else x]
    bits = []
    for part in parts:
        number = isinstance(part, (int, float)) and not (isinstance(part, bool) != ty.is_bool)
        if not number or (isinstance(part, float) and not ty.is_float):
            raise ArgumentError(
                f"{where} is {part!r} ({type(part).__name__}), expected a value of type {ty}"
            )
        if ty.is_integer and not ty.limits[0] <= part <= ty.limits[1]:
            raise ArgumentError(
                f"{where} is {part}, which does not fit {ty}: it goes from {ty.limits[0]} to "
                f"{ty.limits[1]}"
            )
        bits.append(_values.bits_of(ty.scalar, part))
    return ty.scalar.name, bits


def _arguments(kernel, compiled, bound):
    """The arguments as the extension takes them, and the arrays that must stay alive."""
    given, arrays = [], []
    for param, x in zip(compiled.params, bound):
        if param.kind == "value":
            continue
        if param.kind == "scalar":
            given.append(_scalar(param, kernel, x))
        elif param.kind == "threadgroup":
            if isinstance(x, bool) or not isinstance(x, (int, np.integer)) or x < 0:
                raise ArgumentError(
                    f"argument `{param.name}` of `{kernel}` is {x!r}, expected a length in elements"
                )
            given.append(int(x))
        else:
            array, writes = _buffer(param, kernel, x)
            address = array.__array_interface__["data"][0]
            given.append((address, array.nbytes, writes))
            arrays.append((param.name, array, address, writes))
    spans = sorted((address, address + a.nbytes, name, w) for name, a, address, w in arrays)
    for i, (_, end, name, writes) in enumerate(spans):
        for start, _, other, other_writes in spans[i + 1 :]:
            if start >= end:
                break
            if writes or other_writes:
                raise ArgumentError(
                    f"arguments `{name}` and `{other}` of `{kernel}` overlap in memory, and the "
                    "kernel writes one of them (S3): pass a copy of one"
                )
    return given, arrays


def _constants(kernel, constants):
    named = []
    for name, value in (constants or {}).items():
        ty = None
        if isinstance(value, np.generic):
            ty, value = _types.scalar_of(value.dtype), value.item()
        if ty is None:
            raise ArgumentError(
                f"function constant `{name}` of `{kernel}` needs a type: write iv.u32({value!r})"
            )
        named.append((name, ty.name, _values.bits_of(ty, value)))
    return named


class Launch:
    """A kernel with its grid and threadgroup size; calling it runs it."""

    def __init__(self, kernel, grid, threadgroup):
        self.kernel, self.sizes = kernel, _sizes(grid, threadgroup)

    def _ready(self, args, kwargs):
        bound = self.kernel.bind(args, kwargs)
        values = [x for p, x in zip(self.kernel.params, bound) if p.kind == "value"]
        compiled = self.kernel.compile(values)
        return compiled, *_arguments(self.kernel.__name__, compiled, bound)

    def __call__(self, *args, device="checked", constants=None, seed=0, time_limit=None, **kwargs):
        if device != "checked":
            raise Error(f"there is no device {device!r}: this build has \"checked\"")
        compiled, given, arrays = self._ready(args, kwargs)
        name = self.kernel.__name__
        try:
            compiled.module.run(
                name, self.sizes, given, _constants(name, constants), seed=seed,
                time_limit=time_limit,
            )  # fmt: skip
        except DiagnosticsError as e:
            raise _reported(e, ReportError) from None
        del arrays


def check(kernel, *, grid, threadgroup, seeds=1, seed=0, allow=(), deny_warnings=False,
          raises=True, constants=None, time_limit=None):  # fmt: skip
    """Runs a kernel under every checker: data races, bounds, divergence, uninitialised reads.

    ``iv.check(kernel, grid=..., threadgroup=...)(args)`` gives a ``Report``, or raises
    ``CheckError`` with the findings; with ``raises=False`` it always gives the report. The arrays
    are not changed. ``seeds`` is how many schedules to try, ``allow`` the rules to leave out.
    """
    if not isinstance(kernel, Kernel):
        raise ArgumentError(f"iv.check() takes a kernel, not {kernel!r}")
    launch = Launch(kernel, grid, threadgroup)

    def run(*args, **kwargs):
        compiled, given, arrays = launch._ready(args, kwargs)
        name = kernel.__name__
        try:
            text, found, passed, reach = compiled.module.check(
                name, launch.sizes, given, _constants(name, constants), seed=seed, seeds=seeds,
                allow=list(allow), deny_warnings=deny_warnings, time_limit=time_limit,
            )  # fmt: skip
        except DiagnosticsError as e:
            raise _reported(e, CheckError) from None
        except ValueError as e:
            raise Error(str(e)) from None
        del arrays
        report = Report(passed, findings_of(found), text, reach)
        if raises and not passed:
            raise CheckError(str(report), report.findings)
        return report

    return run
