"""Kernels of files: shaders in WGSL, and modules in Invar's text and binary form.

A shader's variables are the arguments of its kernels, by their names or as ``group.binding``; what is
passed for one is what a buffer of the host would hold. Absent: reading the files, which the extension
does, and running what they hold (``_launch``).
"""

from __future__ import annotations

import functools
import math
import os
import pathlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import _arguments, _graphs, _html, _invar, _types
from ._array import DeviceArray
from ._errors import (
    ArgumentError, Error, Finding, VerifyError, entries, entry, findings_of, path_text, told,
)  # fmt: skip
from ._kernel import Compiled, Param, ir, source
from ._kept import kept
from ._launch import Launch

__all__ = "LoadedKernel Module Variable load".split()


@entry
def load(
    file: str | os.PathLike[str], *, text: str | None = None, constants: Mapping[str, float | bool] | None = None
) -> Module:
    """The kernels of a file: ``iv.load("boids.wgsl")["main"]``.

    A file is a shader in WGSL (``.wgsl``), or a module in Invar's text form (``.inv``) or binary form
    (``.invb``). With ``text`` that is what the file holds, and ``file`` what reports call it.
    ``constants`` are values of a shader's overrides, by name or by the number of their ``@id``; one that
    decides no size can also be given to each launch.
    """
    path = pathlib.Path(file)
    if path.suffix not in (".wgsl", ".inv", ".invb"):
        raise Error(
            f"{path_text(path)} is not a .wgsl, .inv or .invb file" + ("" if text is None else ": give it such a name")
        )
    values = []
    for name, value in (constants or {}).items():
        if not isinstance(name, str) or not isinstance(value, (bool, int, float, np.generic)):
            raise ArgumentError(f'constants={constants!r}: write numbers by their names, as in {{"n": 4}}')
        values.append((name, float(value)))
    if values and path.suffix != ".wgsl":
        raise ArgumentError(f"constants= are the overrides of a shader; give those of {path_text(path)} to each launch")
    if path.suffix == ".invb":
        if text is not None:
            raise Error(f"{path_text(path)}: the binary form is not text")
        try:
            return Module(path, _invar.decode(_content(path)), file=str(path))
        except ValueError as e:
            raise Error(f"{path_text(path)}: {e}") from None
    # Text is none that a command could name, and values would have to be given to it.
    of_file = None if text is not None or values else str(path)
    text = _text(path) if text is None else text
    if path.suffix == ".wgsl":
        return Module(path, told(VerifyError, _invar.Shader, str(path), text), values, file=of_file)
    return Module(path, told(VerifyError, _invar.parse, str(path), text), file=of_file)


def _content(path):
    try:
        return path.read_bytes()
    except OSError as e:
        raise Error(f"{path_text(path)}: {e.strerror}") from None


def _text(path):
    try:
        return _content(path).decode()
    except UnicodeDecodeError as e:
        raise Error(f"{path_text(path)} is not text in UTF-8: {e.reason} at byte {e.start}") from None


@entries
class Module(Mapping[str, "LoadedKernel"]):
    """The kernels of a file, by their names; from ``iv.load``."""

    def __init__(self, path: Any, inner: Any, constants: Any = None, file: str | None = None):
        self._path, self._inner, self._kernels = path, inner, {}
        #: The file as a command names it, if it is one.
        self._file = file
        #: Values of a shader's overrides; ``None`` if it is none.
        self._constants = constants

    @kept
    def _names(self):
        of_module = isinstance(self._inner, _invar.Module)
        return told(VerifyError, self._inner.kernels if of_module else self._inner.entries)

    def _kernel(self, name):
        if isinstance(self._inner, _invar.Module):
            made = self._inner, None
        elif self._constants is None:
            made = self._inner.kernel(name)
        else:
            made = self._inner.kernel(name, self._constants)
        loaded = LoadedKernel(name, *made)
        loaded._origin = self._file
        return loaded

    def __repr__(self):
        return f"<module {path_text(self._path)}: {', '.join(self._names) or 'no kernel'}>"

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name):
        return name in self._names

    @property
    def lints(self) -> list[Finding]:
        """What a browser refuses of a shader, though its kernels run here: ``wgsl-alias`` and
        ``wgsl-uniformity``."""
        return [] if self._constants is None else findings_of(self._inner.lints()[1])

    def __getitem__(self, name: str) -> LoadedKernel:
        """The kernel of that name."""
        if name not in self._names:
            known = ", ".join(self._names)
            raise ArgumentError(f"{path_text(self._path)} has no kernel {name!r}; it has {known or 'none'}")
        found = self._kernels.get(name)
        if found is None:
            found = self._kernels[name] = told(VerifyError, self._kernel, name)
        return found


@dataclass(frozen=True)
class Variable:
    """What an argument is for: a variable of a shader, or a parameter.

    ``dtype`` and ``shape`` are those of NumPy for one of its elements, ``length`` the number of its
    elements if that is fixed. A variable that ends in an array of no fixed length is two parameters.
    """

    name: str
    #: Its ``group.binding``, or of a Metal source the number of its buffer.
    place: str | None
    #: How many elements it has, if that is fixed.
    length: int | None
    steps: Any = field(repr=False)
    #: Of two parameters, the bytes of the first.
    head_bytes: int | None = field(repr=False)
    #: Of a storage texture, the pixel format that a browser demands.
    format: str | None = None
    #: Where the kernel accesses parts of the elements that the source has, what these are.
    _written: Written | None = field(default=None, repr=False)

    def __str__(self):
        place = f" ({self.place})" if self.place else ""
        if self.kind in ("texture", "sampler"):
            return f"{self.name}{place}: {self.steps[-1].element}"
        count = "" if self.length is None else f", {self.length}"
        return f"{self.name}{place}: {self.kind.capitalize()}[{self._step.element}{count}]"

    @property
    def kind(self) -> str:
        """What it is: ``buffer``, ``constant``, ``texture``, ``sampler``, or of modules that are not shaders
        also ``scalar`` and ``threadgroup``."""
        return self.steps[-1].kind

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its elements, of a variable that is two parameters those of the array."""
        return self._step.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The last dimensions of an array for it: those of vectors and matrices."""
        return self._step.shape

    @property
    def _step(self):
        unit = None if self._written is None else self._written.unit
        return self.steps[-1] if unit is None else unit


class Written:
    """The types that a source gives the elements of a parameter whose kernel accesses parts of them."""

    def __init__(self, kernel, param, whole, counted):
        self._kernel, self._param, self._whole = kernel, param, whole
        #: What numbers of elements count, how many of the kernel's elements one of them is, and how many of them
        #: the kernel accesses at once.
        self._unit, self.parts, self.at_a_time = counted or (None, 1, 1)

    def _step(self, holds):
        param = Param(self._param.name, self._param.kind, _element(holds, {}))
        param.access = self._param.access
        return _arguments.Step(self._kernel, param)

    @kept
    def whole(self):
        """An element, with its fields."""
        return self._step(self._whole)

    @kept
    def unit(self):
        """What arrays and numbers of elements count, if that is not the kernel's elements."""
        return None if self._unit is None else self._step(self._unit)

    def given(self, step, x, length):
        """An argument as one of the kernel's elements, on its own memory if it is an array; ``length`` is how many
        elements there are, if that is fixed."""
        if step.kind == "threadgroup":
            is_number = isinstance(x, (int, np.integer)) and not isinstance(x, bool)
            if not is_number:
                return x
            if x * self.parts % self.at_a_time:
                raise ArgumentError(
                    f"{step.where} gets {x} elements, and the kernel accesses {self.at_a_time} at once: give it a "
                    f"multiple of {self.at_a_time}"
                )
            return int(x) * self.parts // self.at_a_time
        writes = step.flags & _arguments._WRITEABLE
        of_numbers = isinstance(x, (list, tuple)) and not any(hasattr(i, "__len__") for i in x)
        if _is_plain(x):
            if of_numbers and length == 1 and not writes and (self.unit or step).shape == (len(x),):
                # One vector by reference.
                x, of_numbers = [x], False
            if writes or of_numbers and self._unit is None:
                return x
            is_one = length == 1 and isinstance(x, (list, tuple)) and not of_numbers and len(x) > 1
            return _raw(step, self._filled(x if isinstance(x, (list, tuple)) and not is_one else [x], of_numbers))
        if type(x) is not DeviceArray:
            x = _arguments.array_of(step.where, x)
        has_own = x.dtype == step.dtype
        if has_own and (self._unit is None or step.dtype.kind in "uV"):
            return x
        whole = self.whole
        if _vector(whole.element) and x.dtype.names is None and x.shape[-1:] == (3,):
            if writes or type(x) is DeviceArray:
                raise ArgumentError(
                    f"{step.where} has rows of 3, and each of its vectors has the place of 4: pass an array "
                    "of shape (n, 4)"
                )
            return _raw(step, self._filled(x.reshape(-1, 3), False))
        element = np.dtype((whole.dtype, whole.shape))
        is_matrix = isinstance(x, np.ndarray) and x.dtype.names is None and x.ndim > 1
        if length == 1 and is_matrix and not writes and x.nbytes < element.itemsize:
            # Columns of 3 have the place of 4.
            return _raw(step, self._filled([x], False))
        if not _fits(x.dtype, element):
            raise ArgumentError(f"{step.where} has dtype {x.dtype}, {self._other(x.dtype, element)}")
        return x._as(step) if type(x) is DeviceArray else _raw(step, x)

    def _filled(self, items, of_numbers):
        """An array of the values of elements."""
        step = self.whole
        if of_numbers and isinstance(self.unit.element, _types.Type):
            step = self.unit
        elif of_numbers and _vector(step.element):
            if len(items) % 3:
                raise ArgumentError(f"{step.where} is {items!r}, expected vectors of 3")
            items = [items[i : i + 3] for i in range(0, len(items), 3)]
        return _filled(step, items, partial=True)

    def _other(self, given, element):
        """What an array would have."""
        expected = self.unit or self.whole
        if expected.dtype.names is None:
            return f"expected {expected.dtype}: convert it, or pass its bytes with .view(np.uint8)"
        there = {at: ty for _, at, ty, _ in _scalars(given)}
        for name, at, ty, padding in _scalars(element):
            if given.names is not None and not padding and there.get(at) != ty:
                return f"and field `{name}`, at byte {at} of {expected.element}, is of type {ty}"
        return (
            f"expected kernel.dtype({expected.name!r}), which has the fields of {expected.element}: make an "
            "array of that, or pass its bytes with .view(np.uint8)"
        )


@entries
class LoadedKernel:
    """A kernel of a file; it is launched and checked as any other.

    ``kernel[grid, threadgroup](...)`` counts threads; ``kernel[iv.threadgroups(16)](...)`` is a dispatch
    of 16 workgroups of the size that the kernel has. Arguments go by the names of variables, in the order
    of their groups and bindings, or by those: ``kernel[...](**{"0.1": y})``. An array is used in place if
    its bytes are what the variable holds: of the type of its elements (``kernel.dtype("x")``), of the one
    scalar that they are made of, or of bytes (``np.uint8``). What a kernel only reads, and whose length is
    fixed, may also be a number, a list, or the fields of a struct by name.
    """

    #: The size of its threadgroups, if it has one.
    threadgroup: tuple[int, int, int] | None
    #: What its arguments are for, in order.
    params: list[Variable]

    def __init__(self, name: str, module: Any, resources: Any):
        self.__name__ = name
        #: The file that it was loaded from, if it is one.
        self._origin = None
        params, threadgroup, constants = _invar.signature(module, name)
        self.threadgroup = threadgroup and tuple(threadgroup)
        structs: dict = {}
        own = []
        for param, kind, writes, holds in params:
            of_texels = kind in ("texture", "sampler")
            own.append(Param(param, kind, holds if of_texels else _element(holds, structs)))
            own[-1].access = 3 if writes else 1
        written = {param: writes for param, _kind, writes, _holds in params}
        named = {c: _types.type_named(ty) for c, ty in constants}
        self._compiled = Compiled(name, module, own, None, named)
        steps = {step.name: step for step in self._compiled.steps}
        if resources is None:
            resources = _invar.bindings(module, name)
            bound = {p for resource in resources for p in resource[3]}
            resources += [(p, None, None, [p], *[None] * 4) for p in steps if p not in bound]
            place_of = {p: i for i, p in enumerate(steps)}
            resources.sort(key=lambda resource: place_of[resource[3][0]])
        self.params = []
        of_name = {param.name: param for param in own}
        for variable, group, binding, names, head_bytes, length, format, types in resources:
            place = None if binding is None else str(binding) if group is None else f"{group}.{binding}"
            mine = [steps[n] for n in names]
            of_source = types and Written(name, of_name[names[0]], *types)
            self.params.append(Variable(variable, place, length, mine, head_bytes, format, of_source))
            if format is not None and written[names[0]]:
                self._compiled.formats[names[0]] = format

        #: Launches then take values for it by ``constants=``, and those of overrides when the file is loaded.
        self.has_variable_constants = any(v.name == "constants" for v in self.params)

    def __repr__(self):
        return f"<kernel {self.__name__}>"

    def _repr_html_(self):
        return _html.kernel(self, Error)

    def _closed(self, what):
        return self._compiled

    def _file(self):
        return self._origin

    ir, source = property(ir), source

    def dtype(self, name: str) -> np.dtype[Any]:
        """NumPy's type of the elements of a variable, with which arrays for it are made."""
        return self._variable(name).dtype

    def __getitem__(self, sizes):
        _graphs.leave()
        grid, threadgroup = sizes, self.threadgroup
        if isinstance(sizes, tuple):
            if len(sizes) != 2:
                raise ArgumentError(self._how_to_launch())
            grid, threadgroup = sizes
        if threadgroup is None:
            raise ArgumentError(self._how_to_launch())
        return Launch(self, grid, threadgroup)

    def _how_to_launch(self):
        if self.threadgroup is None:
            return (
                f"write {self.__name__}[grid, threadgroup](...): the grid in threads and the "
                "threadgroup's size, each a number or a tuple of up to three"
            )
        return (
            f"write {self.__name__}[iv.threadgroups(...)](...), a dispatch of so many threadgroups of "
            f"{self.threadgroup} threads, or {self.__name__}[grid, threadgroup](...)"
        )

    def __call__(self, *_, **__):
        raise ArgumentError(f"kernel `{self.__name__}` is launched with a grid: {self._how_to_launch()}")

    def _variable(self, name):
        for variable in self.params:
            if name in (variable.name, variable.place):
                return variable
        has = ", ".join(f"`{v.name}`" + (f" ({v.place})" if v.place else "") for v in self.params)
        raise ArgumentError(
            f"kernel `{self.__name__}` has no parameter `{name}`; " + (f"it has {has}" if has else "it has none")
        )

    def for_arguments(self, args, kwargs):
        """The kernel, and arrays for its parameters."""
        # The array at the end of a struct may be given by itself.
        tails = [v.steps[-1].name for v in self.params if len(v.steps) == 2]
        named = lambda name: name if name in tails else self._variable(name).name
        given = _arguments.bound_by(self.__name__, [v.name for v in self.params], args, kwargs, named)
        bound = {}
        for variable in self.params:
            self._bind(variable, given[variable.name], given, bound)
        return self._compiled, [bound[step.name] for step in self._compiled.steps]

    def _bind(self, variable, x, given, bound):
        if len(variable.steps) == 1:
            (step,) = variable.steps
            if variable.format is not None and getattr(x, "format", variable.format) != variable.format:
                raise ArgumentError(
                    f"{step.where} is a texture of {x.format}, and the variable is one of {variable.format}"
                )
            if x is None and step.kind == "buffer" and variable.length is None:
                x = np.zeros((0, *step.shape), step.dtype)  # The host leaves it out.
            if variable._written is not None:
                x = variable._written.given(step, x, variable.length)
            bound[step.name] = _arranged(step, x, variable.length)
            return
        head, tail = variable.steps
        if tail.name in given:
            bound[head.name] = _arranged(head, x, 1)
            bound[tail.name] = _arranged(tail, given[tail.name], None)
            return
        size = variable.head_bytes
        if type(x) is DeviceArray or isinstance(x, (Mapping, list, tuple, int, float, np.generic)):
            raise ArgumentError(
                f"{head.where} is its {size} bytes and an array behind them: pass both as one array of "
                f"bytes, or the array as `{tail.name}`, by name"
            )
        whole = _bytes(head, _arguments.array_of(head.where, x))
        if len(whole) < size:
            raise ArgumentError(f"{head.where} has {len(whole)} bytes, and what stands before its array has {size}")
        bound[head.name] = _arranged(head, whole[:size], 1)
        bound[tail.name] = _arranged(tail, whole[size:], None)


# ---- elements ----


def _element(holds, structs):
    """An element type as the extension describes it."""
    if isinstance(holds, str):
        return _types.type_named(holds)
    what, rest = holds
    if isinstance(rest, int):
        return _types.Array(_element(what, structs), rest)
    if what not in structs:
        structs[what] = _types.Struct(what, {name: _element(inner, structs) for name, inner in rest})
    return structs[what]


def _padding(name):
    """Whether a field may be one that fills a gap."""
    return name.startswith("pad.")


def _scalars(dtype, name="", start=0, padding=False):
    """The scalars in a dtype: the way to each, where it begins, its own dtype, and whether nobody uses it."""
    if dtype.subdtype is not None:
        inner, shape = dtype.subdtype
        for i in range(math.prod(shape)):
            yield from _scalars(inner, f"{name}[{i}]", start + i * inner.itemsize, padding)
    elif dtype.names is not None:
        for field in dtype.names:
            inner, offset = dtype.fields[field][:2]
            way = f"{name}.{field}" if name else field
            yield from _scalars(inner, way, start + offset, padding or _padding(field))
    else:
        yield name, start, dtype, padding


@functools.lru_cache(maxsize=256)
def _fits(given, element):
    """Whether the bytes of an array of a dtype are scalars of an element, in their places."""
    if given == np.uint8 or element.kind in "iu" and element.itemsize == 1:
        return True
    if given.itemsize == 0 or element.itemsize % given.itemsize:
        return False
    there = {}
    for i in range(element.itemsize // given.itemsize):
        there.update((at, ty) for _, at, ty, _ in _scalars(given, start=i * given.itemsize))
    return all(padding or there.get(at) == ty for _, at, ty, padding in _scalars(element))


def _bytes(step, x):
    """The bytes of an array, in place."""
    if not x.flags.c_contiguous:
        raise ArgumentError(f"{step.where} is not contiguous: pass np.ascontiguousarray(...) of it")
    return x.reshape(-1).view(np.uint8)


def _arranged(step, x, length):
    """An argument as an array of a parameter's elements, on its own memory; ``length`` is how many there
    are, if that is fixed."""
    if step.kind not in ("buffer", "constant"):
        return x
    if type(x) is not DeviceArray:
        writes = step.flags & _arguments._WRITEABLE
        if length is None and step.kind == "constant" and _is_plain(x):
            length = len(x) if isinstance(x, (list, tuple)) else 1
        if length is not None and not writes and (_is_plain(x) or _is_rows(step, x, length)):
            alone = length == 1 and (not isinstance(x, (list, tuple)) or len(x) != 1 or step.shape)
            x = _filled(step, [x] if alone else _counted(step.where, x, length))
        else:
            x = _viewed(step, _arguments.array_of(step.where, x))
    inner = math.prod(step.shape) * step.dtype.itemsize
    if length is not None and x.nbytes != length * inner:
        raise ArgumentError(
            f"{step.where} has {x.nbytes} bytes, expected {length * inner}: the variable has {length} "
            f"element{'' if length == 1 else 's'} of {inner} bytes"
        )
    return x


def _viewed(step, x):
    own = x.dtype == step.dtype and (not step.shape or x.shape[-len(step.shape) :] == step.shape)
    if own:
        return x
    if not _fits(x.dtype, np.dtype((step.dtype, step.shape))):
        own = step.dtype if step.dtype.names is None else f"kernel.dtype({step.name!r})"
        of = f" for elements of {step.element}" if step.shape else ""
        raise ArgumentError(
            f"{step.where} has dtype {x.dtype}, expected {own}{of}: convert it, or pass its bytes with .view(np.uint8)"
        )
    return _raw(step, x)


def _raw(step, x):
    """An array of a parameter's elements on the memory of another."""
    raw = _bytes(step, x)
    size = step.dtype.itemsize * math.prod(step.shape)
    if len(raw) % size:
        raise ArgumentError(f"{step.where} has {len(raw)} bytes, which is not a multiple of an element's {size}")
    return raw.view(step.dtype).reshape(-1, *step.shape)


# ---- values ----


def _is_plain(x):
    return isinstance(x, (bool, int, float, list, tuple, Mapping)) or (
        isinstance(x, np.generic) and not isinstance(x, np.void)
    )


def _vector(element):
    """The field of a struct that is a vector of 3 in the place of 4, whose name no author can write."""
    of_three = isinstance(element, _types.Struct) and element.name.startswith("vec3.")
    return next(name for name in element.fields if not _padding(name)) if of_three else None


def _is_rows(step, x, length):
    """Whether it is an array of rows of 3, for vectors that each have the place of 4."""
    element, shape = step.element, () if length == 1 else (length,)
    while isinstance(element, _types.Array):
        element, shape = element.element, (*shape, element.length)
    return _vector(element) is not None and isinstance(x, np.ndarray) and x.shape == (*shape, 3)


def _filled(step, items, partial=False):
    """An array of the values of elements; ``partial`` leaves fields that are not named."""
    array = np.zeros((len(items), *step.shape), step.dtype)
    if len(items) == 1:
        _fill(step.where, step.element, array.reshape(step.shape), items[0], partial)
    else:
        _each(step.where, step.element, array, items, partial)
    return array


def _fill(where, element, array, x, partial=False):
    """Puts the value of an element into its place in an array."""
    if (vector := _vector(element)) and not isinstance(x, Mapping):
        _fill(where, element.fields[vector], array[vector], x, partial)
    elif isinstance(element, _types.Struct):
        if not isinstance(x, Mapping):
            raise ArgumentError(f"{where} is {x!r}, expected the fields of {element} by name")
        known = [name for name in element.fields if not _padding(name)]
        for name, value in x.items():
            if name not in element.fields:
                raise ArgumentError(f"{where} has no field {name!r}; it has {', '.join(known)}")
            _fill(f"field `{name}` of {where}", element.fields[name], array[name], value, partial)
        missing = [repr(name) for name in known if name not in x and not partial]
        if missing:
            raise ArgumentError(f"{where} needs a value for {', '.join(missing)}")
    elif isinstance(element, _types.Array):
        _each(where, element.element, array, _counted(where, x, element.length), partial)
    else:
        bits = _arguments.scalar(where, element, x)
        bits = np.array(bits, f"u{array.dtype.itemsize}")
        array[...] = bits.view(array.dtype).reshape(array.shape)


def _counted(where, x, length):
    """The values of so many elements."""
    if isinstance(x, (str, Mapping)) or not hasattr(x, "__len__") or len(x) != length:
        raise ArgumentError(f"{where} is {x!r}, expected {length} values")
    return x


def _each(where, element, array, items, partial):
    for i, value in enumerate(items):
        _fill(f"element {i} of {where}", element, array[i : i + 1].reshape(array.shape[1:]), value, partial)
