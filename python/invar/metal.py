"""Kernels in Metal's language, on any machine: files, and kernels that are given as a string.

``load`` reads a ``.metal`` file, whose kernels are launched and checked like others::

    kernel = iv.metal.load("softmax.metal", constants={"WIDTH": 64})["softmax"]
    kernel[1024, 64](x, y, n=1024)

``metal_kernel`` takes the body of a kernel and the names of its arrays, as ``mx.fast.metal_kernel`` of MLX
does, and makes the rest. It needs clang (``docs/metal.md``). Absent: a Mac.
"""

from __future__ import annotations

import os
import pathlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from . import _invar
from ._errors import ArgumentError, VerifyError, entries, entry, told
from ._launch import check as _check
from ._load import LoadedKernel, Module, _text

__all__ = "Library load metal_kernel".split()


@entry
def load(
    file: str | os.PathLike[str],
    *,
    text: str | None = None,
    constants: Mapping[str | int, float | bool | Iterable[float | bool]] | None = None,
    includes: Iterable[str | os.PathLike[str]] = (),
    defines: Mapping[str, Any] | None = None,
) -> Library:
    """The kernels of a Metal source: ``iv.metal.load("k.metal")["name"]``.

    With ``text`` that is what the source holds, and ``file`` what reports call it. ``constants`` are the
    values of function constants, by name or number, a list for one of a vector's type; ``includes`` are
    folders of files that it includes, and ``defines`` macros. A kernel is compiled when it is asked for, and
    nothing else of the file.
    """
    path = pathlib.Path(file)
    text = _text(path) if text is None else text
    values = [(str(name), _number(name, value)) for name, value in (constants or {}).items()]
    macros = [name if value is None else f"{name}={value}" for name, value in (defines or {}).items()]
    folders = [os.fspath(folder) for folder in includes]
    return Library(path, _invar.MetalSource(str(path), text, folders, macros, values))


def _number(name, value):
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value)).lower()
    if isinstance(value, (int, float, np.generic)):
        return repr(value.item() if isinstance(value, np.generic) else value)
    if isinstance(value, (list, tuple)) or isinstance(value, np.ndarray) and value.ndim == 1:
        return f"[{', '.join(_number(name, one) for one in value)}]"
    raise ArgumentError(
        f"the function constant {name!r} is {value!r}: give it a number, True or False, or a list of them"
    )


@entries
class Library(Module):
    """The kernels of a Metal source, by the names that hosts know them by; from ``iv.metal.load``."""

    def __repr__(self):
        return f"<Metal source {self._path}>"

    def __getitem__(self, name: str) -> LoadedKernel:
        """The kernel of that name."""
        found = self._kernels.get(name)
        if found is None:
            if not isinstance(name, str):
                raise ArgumentError(f"a kernel goes by its name, not by {name!r}")
            found = self._kernels[name] = told(VerifyError, self._kernel, name)
        return found


# ---- kernels of a string ----

_TYPES = {
    "bool": "bool",
    **{f"{sign}int{n}": f"{sign}int{n}_t" for n in (8, 16, 32, 64) for sign in ("", "u")},
    "float16": "half", "bfloat16": "bfloat", "float32": "float",
}  # fmt: skip

#: What a body may ask of the thread, by name.
_POSITIONS = {
    **dict.fromkeys(
        "dispatch_simdgroups_per_threadgroup simdgroup_index_in_threadgroup simdgroups_per_threadgroup "
        "thread_execution_width thread_index_in_quadgroup thread_index_in_simdgroup "
        "thread_index_in_threadgroup threads_per_simdgroup".split(),
        "uint",
    ),
    **dict.fromkeys(
        "dispatch_threads_per_threadgroup thread_position_in_grid thread_position_in_threadgroup "
        "threadgroup_position_in_grid threadgroups_per_grid threads_per_grid "
        "threads_per_threadgroup".split(),
        "uint3",
    ),
}

#: In front of every body: the elements of an array whose strides are known, by their number.
_HEAD = """#include <metal_stdlib>
using namespace metal;
typedef half float16_t;
typedef bfloat bfloat16_t;
template <typename I, typename S, typename T>
METAL_FUNC I elem_to_loc(I elem, constant const S *shape, constant const T *strides, int ndim) {
    I at = 0;
    for (int i = ndim - 1; i >= 0 && elem > 0; --i) {
        at += I(elem % shape[i]) * I(strides[i]);
        elem /= shape[i];
    }
    return at;
}
"""


@entries
class metal_kernel:
    """A kernel whose body is ``source``, as ``mx.fast.metal_kernel`` takes it.

    The body uses the arrays by their names, of an input ``x`` also ``x_shape``, ``x_strides`` and
    ``x_ndim``, and what it asks of the thread by Metal's names, such as ``thread_position_in_grid``.
    ``header`` stands in front of it. Inputs are made contiguous unless ``ensure_row_contiguous`` is false.
    """

    def __init__(
        self, name, input_names, output_names, source, header="", ensure_row_contiguous=True,
        atomic_outputs=False,
    ):  # fmt: skip
        if not name.isidentifier():
            raise ArgumentError(f"name={name!r}: a kernel's name is one word of letters, digits and `_`")
        self.__name__ = name
        self._inputs, self._outputs = list(input_names), list(output_names)
        names = self._inputs + self._outputs
        for given in names:
            if not isinstance(given, str) or not given.isidentifier() or names.count(given) > 1:
                raise ArgumentError(f"{given!r}: each array has a name of its own, which is one word")
        self._source, self._header = source, header
        self._contiguous, self._atomic = ensure_row_contiguous, atomic_outputs
        self._kernels: dict[str, LoadedKernel] = {}

    def __repr__(self):
        return f"<Metal kernel {self.__name__}>"

    def __call__(
        self, *, inputs, output_shapes, output_dtypes, grid, threadgroup, template=(), init_value=None,
        verbose=False, stream=None, device=None,
    ):  # fmt: skip
        """Runs it over a grid of so many threads, and gives new arrays of the shapes and types asked for,
        which begin as ``init_value`` or 0. ``template`` gives types and numbers to names of the body;
        ``verbose`` prints the kernel that was made. A call returns when the kernel is done, so that any
        ``stream`` of MLX is the same."""
        kernel, bound, outputs = self._made(inputs, output_shapes, output_dtypes, template, init_value, verbose)
        kernel[grid, threadgroup](**bound, device=device)
        return outputs

    def check(
        self, *, inputs, output_shapes, output_dtypes, grid, threadgroup, template=(), init_value=None, **options
    ) -> Any:  # fmt: skip
        """Checks such a run, as ``iv.check`` does, whose options it takes."""
        kernel, bound, _ = self._made(inputs, output_shapes, output_dtypes, template, init_value)
        return _check(kernel, grid=grid, threadgroup=threadgroup, **options)(**bound)

    def _made(self, inputs, output_shapes, output_dtypes, template, init_value, verbose=False):
        if len(inputs) != len(self._inputs):
            raise ArgumentError(
                f"kernel `{self.__name__}` has {len(self._inputs)} inputs "
                f"({', '.join(self._inputs)}), found {len(inputs)}"
            )
        if not len(output_shapes) == len(output_dtypes) == len(self._outputs):
            raise ArgumentError(
                f"kernel `{self.__name__}` has {len(self._outputs)} outputs "
                f"({', '.join(self._outputs)}): give a shape and a dtype for each"
            )
        arrays = [self._input(n, x) for n, x in zip(self._inputs, inputs)]
        fill = 0 if init_value is None else init_value
        outputs = [np.full(tuple(s), fill, d) for s, d in zip(output_shapes, output_dtypes)]
        params, bound = [], {}
        for name, x in zip(self._inputs, arrays):
            of = f"const {_type(name, x.dtype)}"
            if x.ndim == 0:
                params.append(f"constant {of} &{name}")
            else:
                params.append(f"{'constant' if x.size < 8 else 'device'} {of} *{name}")
            bound[name] = _memory(x)
            for what, ty, values in (
                ("shape", "const int *", np.array(x.shape, np.int32)),
                ("strides", "const int64_t *", np.array(x.strides, np.int64) // max(x.itemsize, 1)),
                ("ndim", "const int &", np.array([x.ndim], np.int32)),
            ):
                if self._uses(f"{name}_{what}") and (x.ndim or what == "ndim"):
                    params.append(f"constant {ty}{name}_{what}")
                    bound[f"{name}_{what}"] = values
        for name, x in zip(self._outputs, outputs):
            ty = _type(name, x.dtype)
            params.append(f"device {f'atomic<{ty}>' if self._atomic else ty} *{name}")
            bound[name] = x.reshape(-1)
        params = [f"{p} [[buffer({i})]]" for i, p in enumerate(params)]
        params += [f"{ty} {p} [[{p}]]" for p, ty in _POSITIONS.items() if self._uses(p)]
        text = self._text(params, list(template))
        if verbose:
            print(text)
        kernel = self._kernels.get(text)
        if kernel is None:
            kernel = load(f"{self.__name__}.metal", text=text)[self.__name__]
            self._kernels[text] = kernel
        # What a body does not use is not a parameter to give.
        known = {variable.name for variable in kernel.params}
        return kernel, {n: x for n, x in bound.items() if n in known}, outputs

    def _input(self, name, x):
        x = np.asarray(x) if isinstance(x, (np.ndarray, np.generic)) else _plain(name, x)
        return np.ascontiguousarray(x).reshape(x.shape) if self._contiguous else x

    def _uses(self, word):
        return re.search(rf"\b{word}\b", self._source) is not None

    def _text(self, params, template):
        list_of = ",\n    ".join(params)
        head = _HEAD + self._header + "\n"
        body = f"({list_of}) {{\n{self._source}\n}}\n"
        if not template:
            return f"{head}[[kernel]] void {self.__name__}{body}"
        kinds = ((bool, np.bool_), "bool"), ((int, np.integer), "int")
        names, values = [], []
        for name, value in template:
            kind = next((kind for classes, kind in kinds if isinstance(value, classes)), "typename")
            names.append(f"{kind} {name}")
            values.append(_type(name, value) if kind == "typename" else _number(name, value))
        made = f"{self.__name__}_of<{', '.join(values)}>"
        return (
            f"{head}template <{', '.join(names)}>\n[[kernel]] void {self.__name__}_of{body}"
            f'template [[host_name("{self.__name__}")]] [[kernel]] decltype({made}) {made};\n'
        )


def _plain(name, x):
    for kind, dtype in ((bool, np.bool_), (int, np.int32), (float, np.float32)):
        if isinstance(x, kind):
            return np.array(x, dtype)
    raise ArgumentError(f"input `{name}` is {x!r}: pass an array of NumPy or a number")


def _type(name, dtype):
    try:
        known = np.dtype(dtype).name
    except TypeError:
        known = None
    if known not in _TYPES:
        known = ", ".join(_TYPES)
        raise ArgumentError(f"`{name}` has type {dtype}, which Metal does not have: it has {known}")
    return _TYPES[known]


def _memory(x):
    """All elements from an array's first to its last, as they lie in memory."""
    if x.flags.c_contiguous:
        return x.reshape(-1)
    if any(stride < 0 or stride % x.itemsize for stride in x.strides):
        raise ArgumentError("an input whose elements lie backwards in memory: pass a copy of it")
    count = 1 + sum((n - 1) * s // x.itemsize for n, s in zip(x.shape, x.strides)) if x.size else 0
    return np.lib.stride_tricks.as_strided(x, (count,), (x.itemsize,))
