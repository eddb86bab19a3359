"""Kernels: a function, and the programs that compiling it gives.

Absent: the compiler itself (``_compile``), and running what it gives (``_launch``).
"""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from . import _arguments, _compile, _graphs, _html, _ops, _reads, _syntax, _textures, _trace, _types, _values
from ._errors import (
    ArgumentError, Error, KernelError, Proof, ReportError, VerifyError, asked, entries, entry,
    findings_of, told,
)  # fmt: skip
from ._kept import kept
from ._launch import OPTIONS, Launch, size_of, threadgroups

__all__ = "Kernel Specialised kernel prove".split()


#: What kernels cannot be, by the flag of the code.
_NO_KERNEL = {
    inspect.CO_COROUTINE: "an `async def`: a kernel is a plain function; launches are awaited, as "
    "in `await kernel[grid, threadgroup].submit(...)`",
    inspect.CO_GENERATOR: "a generator: a kernel yields nothing; write results to a buffer",
    inspect.CO_ASYNC_GENERATOR: "an asynchronous generator: a kernel is a plain function",
}

#: What kernels may allow their threads.
_ALLOWED = ("out_of_bounds_loads", "out_of_bounds_stores", "uninitialised_reads")
#: How many traces are kept that differ in what they took from outside.
_KEPT = 8


class Param:
    """A parameter: its name, kind (``buffer``, ``constant``, ``scalar``, ``threadgroup``, ``texture``,
    ``sampler`` or ``value`` for a compile-time one), what it holds, and what the kernel does with it."""

    def __init__(self, name, kind, element, shape=None):
        self.name, self.kind, self.element, self.access = name, kind, element, 0
        #: The extents that the annotation gives, of which the first may be ``None``.
        self.shape = shape

    def __str__(self):
        held = "" if self.element is None else f"[{self.element}]"
        shown = {"value": "a compile-time value", "texture": str(self.element), "sampler": "Sampler"}
        return f"{self.name}: {shown.get(self.kind, self.kind.capitalize() + held)}"

    def declare(self, trace):
        """The parameter of the kernel being built, as its code uses it."""
        if self.kind == "scalar":
            number = trace.builder.scalar(self.name, str(self.element))
            return _values.Value(number, self.element)
        if self.kind == "sampler":
            return _textures.KernelSampler(trace, self.name)
        if self.kind == "texture":
            return _textures.KernelTexture(trace, self.name, self.element)
        _ops.declare(self.element)
        handle = trace.builder.parameter(self.kind, self.name, str(self.element))
        space = "device" if self.kind == "buffer" else self.kind
        memory = _values.Memory(tuple(handle), self.name, space, self.element)
        memory.extents = self.shape
        return memory


def ir(self) -> str:
    """The text form. One that is compiled for each value or type of a parameter is specialised first."""
    return self._closed("{}.ir").module.text()


def source(
    self,
    target: str,
    *,
    threadgroup: Size | None = None,
    constants: Mapping[str, Any] | None = None,
    async_copies: str = "expanded",
    matrices: str = "expanded",
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
    compiled = self._closed("{}.source(...)")
    if not isinstance(target, str):
        raise ArgumentError(f'source({target!r}): write the target\'s name, such as "wgsl"')
    size = None if threadgroup is None else size_of(threadgroup, "threadgroup size")
    named = compiled.named(constants) if constants else []
    formats = {**(compiled.formats if target == "wgsl" else {}), **(formats or {})}
    try:
        options = target, size, named, async_copies, matrices, list(formats.items())
        return told(ReportError, compiled.module.source, compiled.name, *options)
    except ValueError as e:
        # The command's option is our keyword.
        raise Error(str(e).replace("--threadgroup", "threadgroup=")) from None


class Compiled:
    """A kernel for certain compile-time values and element types."""

    def __init__(self, name, module, params, reads=None, constants=()):
        self.name, self.module, self.params = name, module, params
        #: The types of the function constants, by name.
        self.constant_types = dict(constants)
        self._programs = {}
        #: The pixel formats that a shader demands of the textures that the kernel writes.
        self.formats = {}
        #: What the trace took from outside: a launch looks whether it is still so.
        self.reads = reads

    @kept
    def steps(self):
        """How the arguments of a launch are converted."""
        return [_arguments.Step(self.name, p) for p in self.params if p.kind != "value"]

    def named(self, constants):
        """Values of function constants as the extension takes them."""
        return _arguments.constants(self.name, constants, self.constant_types)

    def _closed(self, what):
        return self

    source = source

    def program(self, device, constants=(), time_limit=None, prove=False):
        """The program for a device and values of function constants: names, types and bits."""
        key = (device, prove, *constants) if constants or prove else device
        found = self._programs.get(key)
        if found is None:
            compile = device._inner.compile
            found = asked(compile, self.module, self.name, list(constants), time_limit, prove)
            self._programs[key] = found
        return found


def _span_of(function):
    node, filename = _syntax.definition(function)
    if isinstance(node, ast.Lambda):
        return _syntax.position(filename, node)
    line = node.lineno
    end = node.col_offset + len("def ") + len(node.name)
    return filename, line, node.col_offset + 1, line, end + 1


def _plain_size(size):
    """Whether a size is whole numbers of Python's: 8.0 and True are none, though they equal some."""
    if type(size) is int:
        return True
    if type(size) is tuple:
        return all(type(n) is int for n in size)
    return isinstance(size, threadgroups)


def author():
    """The frame of the author's code that calls us."""
    frame = sys._getframe(1)
    while frame.f_back is not None and ((frame.f_globals.get("__package__") or "").partition(".")[0] == "invar"):
        frame = frame.f_back
    return frame


def around(function):
    """What annotations in text may name beside globals: what the code that defines the kernel knows."""
    names = set()
    for hint in function.__annotations__.values():
        if isinstance(hint, str):
            with contextlib.suppress(SyntaxError):
                names.update(compile(hint, "<annotation>", "eval").co_names)
    known = author().f_locals if names else {}
    return {name: known[name] for name in names if name in known}


@entries
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
        allow: Sequence[Literal["out_of_bounds_loads", "out_of_bounds_stores", "uninitialised_reads"]] = (),
    ):
        for flag, what in _NO_KERNEL.items():
            if function.__code__.co_flags & flag:
                code = function.__code__
                where = code.co_filename, code.co_firstlineno, 1, code.co_firstlineno, None
                raise KernelError(f"`{function.__name__}` is {what}", where)
        self.function = function
        if isinstance(allow, str):
            raise Error(f"allow={allow!r} is one name: write allow=[{allow!r}]")
        for name in sorted(set(allow) - {*_ALLOWED}):
            raise Error(
                f"allow={name!r} is not something that a kernel can allow: "
                f"write {', '.join(_ALLOWED[:-1])} or {_ALLOWED[-1]}"
            )
        self.attributes = {
            "threadgroup": None if threadgroup is None else size_of(threadgroup, "threadgroup size"),
            "simdgroup": simdgroup,
            "float_mode": float_mode,
            **{f"allow_{name}": name in allow for name in _ALLOWED},
        }
        #: The newest for each key, and more of them, for other values of what is outside.
        self._compiled, self._kept, self._launches = {}, {}, {}
        #: Whether it is being traced.
        self._building = False
        self._around = around(function)
        self.__invar_kernel__ = function.__name__
        functools.update_wrapper(self, function)

    @property
    def threadgroup(self) -> tuple[int, int, int] | None:
        """The size of its threadgroups, if it has one."""
        size = self.attributes["threadgroup"]
        return None if size is None else tuple(size)

    def __repr__(self):
        return f"<kernel {self.__name__}>"

    def __reduce__(self):
        # As functions are: by name. A deep copy is the kernel itself.
        return self.__qualname__

    def _file(self):
        """The file that has it, and its name there, as the command takes it; none of a cell or of a function."""
        file = self.function.__code__.co_filename
        if not os.path.isfile(file) or self.function.__globals__.get(self.__name__) is not self:
            return None
        near = os.path.relpath(file)
        return f"{file if near.startswith(os.pardir) else near}:{self.__name__}"

    def _repr_html_(self):
        return _html.kernel(self, Error)

    @kept
    def params(self):
        """The parameters, in order."""
        code = self.function.__code__
        if code.co_flags & 0x0C or code.co_kwonlyargcount:
            raise self._refused("kernel `{}` has *args, ** or keyword-only parameters: name each one")
        hints = self._hints()
        return [self._param(name, hints.get(name)) for name in code.co_varnames[: code.co_argcount]]

    def _refused(self, message):
        return KernelError(message.replace("{}", self.__name__, 1), _span_of(self.function))

    def _hints(self):
        """The annotations, as objects."""
        function, local = self.function, dict(self._around)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            with contextlib.suppress(ValueError):
                local[name] = cell.cell_contents
        hints = dict(function.__annotations__)
        try:
            for name, hint in hints.items():
                while isinstance(hint, str):
                    hint = hints[name] = eval(hint, {**function.__globals__, **local})
        except (NameError, AttributeError, SyntaxError) as e:
            raise self._refused(
                f"an annotation of kernel `{{}}` cannot be resolved: {e}; it must be known where the kernel is defined"
            ) from None
        return hints

    def _param(self, name, hint):
        """The parameter of a name and annotation."""
        of = f"parameter `{name}` of kernel `{{}}`"
        if name in OPTIONS:
            raise self._refused(f"{of} has the name of an option of launches ({', '.join(OPTIONS)}): rename it")
        if hint is _textures.Sampler:
            return Param(name, "sampler", hint)
        if isinstance(hint, _textures.TextureType):
            return Param(name, "texture", hint)
        if isinstance(hint, _textures._TextureMaker):
            raise self._refused(
                f'{of} is annotated {hint!r}: write {hint!r}[iv.f32, "read"], with the type of components and '
                "the access"
            )
        if isinstance(hint, _types._Annotation):
            element = _types.element_of(hint.element, name.capitalize())
            if hint.kind == "scalar" and not isinstance(element, _types.Type):
                raise self._refused(f"{of} is passed by value and cannot be a struct or array")
            return Param(name, hint.kind, element, hint.shape)
        if isinstance(hint, _types._AnnotationMaker) and hint.kind != "threadgroup":
            # What it holds comes from the argument.
            return Param(name, hint.kind, None)
        if isinstance(hint, (_types.Type, _types._AnnotationMaker)):
            raise self._refused(
                f"{of} is annotated {hint!r}: write iv.Buffer[iv.f32] for a buffer, iv.Scalar[iv.f32] for a value"
            )
        return Param(name, "value", None)

    @property
    def defaults(self):
        """The default values of parameters, by name."""
        names = [p.name for p in self.params]
        return dict(zip(reversed(names), reversed(self.function.__defaults__ or ())))

    def bind(self, args, kwargs):
        """Arguments in the order of the parameters."""
        names = [p.name for p in self.params]

        def named(name):
            if name in names:
                return name
            has = f"it has {', '.join(f'`{n}`' for n in names)}" if names else "it has none"
            raise ArgumentError(f"kernel `{self.__name__}` has no parameter `{name}`; {has}")

        bound = _arguments.bound_by(self.__name__, names, args, kwargs, named, self.defaults)
        return [bound[name] for name in names]

    def for_arguments(self, args, kwargs):
        """The kernel compiled for these arguments, and those that are not compile-time values."""
        if kwargs or len(args) != len(self.params):
            args = self.bind(args, kwargs)
        if self._plain:
            found = self._compiled.get(())
            if found is None or not found.reads.current():
                found = self.compile()
            return found, args
        given = list(zip(self.params, args))
        elements = [
            _arguments.element_of_argument(f"argument `{p.name}` of `{self.__name__}`", p.kind, x, p.name.capitalize())
            for p, x in given
            if p.element is None and p.kind != "value"
        ]
        values = [x for p, x in given if p.kind == "value"]
        return self.compile(values, elements), [x for p, x in given if p.kind != "value"]

    @kept
    def _plain(self):
        """Whether it is compiled once, for all arguments."""
        return all(p.kind != "value" and p.element is not None for p in self.params)

    def compile(self, values=(), elements=()):
        """The kernel for these compile-time values, and element types where the annotations have
        none; traced and verified."""
        key = tuple(map(_reads.key_of, values))
        if key or elements:
            key = key, tuple(elements)
        try:
            found = self._compiled.get(key)
        except TypeError:
            raise self._not_hashable(values) from None
        if found is None or not found.reads.current():
            with _trace.lock:
                if self._building:
                    raise _trace.error(
                        f"kernel `{self.__name__}` launches or shows itself: take @iv.kernel off what kernels share"
                    )
                kept = self._kept.setdefault(key, [])
                found = next((k for k in kept if k.reads.current()), None)
                if found is None:
                    self._building = True
                    try:
                        found = self._build(values, elements)
                    finally:
                        self._building = False
                    told(VerifyError, found.module.verify)
                    kept.append(found)
                    del kept[:-_KEPT]
                self._compiled[key] = found
        return found

    def _not_hashable(self, values):
        """What is wrong with compile-time values that are none."""
        names = [p.name for p in self.params if p.kind == "value"]
        for name, value in zip(names, values):
            where = f"parameter `{name}` of kernel `{self.__name__}`"
            hint = self.function.__annotations__.get(name)
            if hint is not None:
                shown = hint if isinstance(hint, str) else getattr(hint, "__name__", hint)
                return ArgumentError(
                    f"{where} is annotated {shown}, which makes it a compile-time value, and those are "
                    "numbers, strings and tuples: write iv.Buffer[iv.f32] for an array, "
                    "iv.Scalar[iv.f32] for a number"
                )
            if hasattr(value, "__array_interface__") or hasattr(value, "__dlpack__"):
                return ArgumentError(
                    f"{where} has no annotation, which makes it a compile-time value, and is given an "
                    f"array: annotate it, as in `{name}: iv.Buffer[iv.f32]`, and numbers with "
                    "iv.Scalar[iv.u32]"
                )
        return ArgumentError(
            f"a compile-time argument of kernel `{self.__name__}` ({', '.join(names)}) is not "
            "hashable: pass numbers, strings or tuples, or annotate the parameter"
        )

    def _build(self, values, elements=()):
        """The kernel for these compile-time values, traced and not yet verified."""
        t = _trace.Trace(self.__name__, threadgroup=self.attributes["threadgroup"])
        params, elements = [], iter(elements)
        for p in self.params:
            given = p.element is not None or p.kind == "value"
            params.append(Param(p.name, p.kind, p.element if given else next(elements), p.shape))
        with _trace.tracing(t), _trace.reported(t):
            position = _span_of(self.function)
            span = t.span(position)
            t.builder.set_span(span)
            values = list(values)
            rest = iter(values)
            args = [next(rest) if p.kind == "value" else p.declare(t) for p in params]
            t.reads = reads = _reads.Reads(self.function, values)
            _compile.kernel(self.function, args)
            try:
                access = list(t.access.items())
                module = told(VerifyError, t.builder.finish, access, span=span, **self.attributes)
            except ValueError as e:
                raise KernelError(str(e), position) from None
        for number, param in enumerate(p for p in params if p.kind != "value"):
            given = param.element.bits if param.kind == "texture" else t.access.get(number, 0)
            param.access = given or 1
        reads.settle()
        constants = {name: ty for name, (_, ty) in t.function_constants.items()}
        return Compiled(self.__name__, module, params, reads, constants)

    def _closed(self, what):
        """The kernel compiled, if it needs no values or types for that."""
        names = [p.name for p in self.params if p.element is None]
        if names:
            raise Error(
                f"kernel `{self.__name__}` is compiled for each value or type of its parameters "
                f"{', '.join(names)}: write {what.format('kernel.specialise(...)')}"
            )
        return self.compile()

    ir, source = property(ir), source

    def specialise(self, **given: Any) -> Specialised:
        """The kernel with its compile-time parameters given, and types for the parameters that have
        none: ``kernel.specialise(width=4, x=iv.f32).ir``."""
        return Specialised(self, given)

    def __getitem__(self, sizes):
        _graphs.leave()
        if not isinstance(sizes, tuple) or len(sizes) != 2:
            raise ArgumentError(
                f"write {self.__name__}[grid, threadgroup](...): the grid in threads and the "
                "threadgroup's size, each a number or a tuple of up to three"
            )
        if not (_plain_size(sizes[0]) and _plain_size(sizes[1])):
            return Launch(self, *sizes)
        found = self._launches.get(sizes)
        if found is None:
            found = Launch(self, *sizes)
            if len(self._launches) > 64:
                self._launches.clear()
            self._launches[sizes] = found
        return found

    def __call__(self, *_, **__):
        if _trace.active():
            raise _trace.error(
                f"kernel `{self.__name__}` is called in a kernel: take @iv.kernel off what kernels share"
            )
        raise ArgumentError(
            f"kernel `{self.__name__}` is launched with a grid: {self.__name__}[grid, threadgroup](...)"
        )


@entries
class Specialised:
    """A kernel with its compile-time parameters and element types given."""

    def __init__(self, kernel: Kernel, given: Any):
        names = [p.name for p in kernel.params if p.element is None]
        for name in given:
            if name not in names:
                raise ArgumentError(f"kernel `{kernel.__name__}` has no compile-time parameter `{name}`")
        given = {**kernel.defaults, **given}
        self.kernel, self.values, self.elements = kernel, [], []
        for p in kernel.params:
            if p.element is None and p.name not in given:
                raise ArgumentError(f"kernel `{kernel.__name__}` needs a value for `{p.name}`")
            if p.kind == "value":
                self.values.append(given[p.name])
            elif p.element is None:
                self.elements.append(_types.element_of(given[p.name], p.name.capitalize()))

    def _closed(self, what):
        return self.kernel.compile(self.values, self.elements)

    def _file(self):
        # The command has no values for what is compiled.
        return None

    ir, source = property(ir), source


@entry
def prove(kernel: Kernel | Specialised | LoadedKernel) -> Proof:
    """Proves that no launch of a kernel has a data race or an access out of bounds.

    Gives a ``Proof``, with the conditions that launches have to fulfil, or with a launch that breaks the
    kernel, which the checkers have run. What is compiled for each value of a parameter is proved for those
    that it is given: ``iv.prove(kernel.specialise(width=4))``.
    """
    # Kernels of files too.
    if not hasattr(type(kernel), "_closed"):
        raise ArgumentError(f"iv.prove() takes a kernel, not {kernel!r}")
    compiled = kernel._closed("iv.prove({})")
    verdict, words, conditions, requires, launch, text, found = compiled.module.prove(compiled.name)
    file = launch and kernel._file()
    command = f"invar check {shlex.quote(file)} {launch}" if file else ""
    return Proof(verdict, conditions, requires, words, launch, findings_of(found), text, command)


@entry
def kernel(function=None, **attributes):
    """Makes a kernel of a function: code that runs once for every thread of a grid.

    Parameters are annotated ``iv.Buffer[...]``, ``iv.Constant[...]``, ``iv.Scalar[...]`` or
    ``iv.Threadgroup[...]``; one without annotation is a compile-time value. Attributes:
    ``threadgroup`` (the only size it may be launched with), ``simdgroup`` (the size it requires),
    ``float_mode`` (``"strict"``, ``"contract"`` or ``"fast"``), ``allow`` (a tuple of
    ``"out_of_bounds_loads"``, ``"out_of_bounds_stores"`` and ``"uninitialised_reads"``).
    """
    if function is None:
        return entry(lambda function: Kernel(function, **attributes))
    if not hasattr(function, "__code__"):
        raise Error("@iv.kernel goes on a function")
    return Kernel(function, **attributes)
