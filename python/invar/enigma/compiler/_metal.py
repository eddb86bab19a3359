"""The Metal source of a kernel for a host of the user's own: what it binds besides the parameters.

Every access is inside its buffer (B1, B2), so a kernel asks how many elements are bound. The writer has
them in ``lengths``, a constant buffer behind the parameters (``docs/running.md``). Here the source says so
in its first lines, or is made for buffers of given sizes, without that buffer.
"""

from __future__ import annotations

import re

import numpy as np

from .._errors import EnigmaError

_BUFFER = re.compile(r",\s*constant invar_lengths& lengths \[\[buffer\((?P<index>\d+)\)\]\]")
_STRUCT = re.compile(r"struct invar_lengths \{\n(?P<fields>.*?)\};\n", re.S)
_COUNT = re.compile(r"ulong (\w+);")


def _lengths(source):
    """The struct and the parameter in the source, or ``None`` where it needs neither."""
    struct, buffer = _STRUCT.search(source), _BUFFER.search(source)
    return (struct, buffer) if struct and buffer else None


def said(source):
    """The source, and in its first lines what a host binds besides the kernel's parameters."""
    found = _lengths(source)
    if found is None:
        return source
    struct, buffer = found
    names = _COUNT.findall(struct["fields"])
    have = "have" if names[1:] else "has"
    return (
        f"// Besides its own parameters this kernel needs a constant buffer, [[buffer({buffer['index']})]]:\n"
        f"// how many elements {', '.join(names)} {have}, a ulong each.\n"
        "// Where zeros are bound there, every load gives 0 and no store is made.\n" + source
    )


def with_sizes(compiled, sizes):
    """The source for buffers of these numbers of elements."""
    if compiled._compiled is None:
        raise EnigmaError(f"`{compiled.kernel_name}` was not made by compile(), so its source stays as it is")
    source = compiled._compiled.source("msl", async_copies=compiled.async_copies)
    params = compiled._compiled.params
    given = _by_name(compiled.kernel_name, [p.name for p in params if p.kind == "buffer"], sizes)
    found = _lengths(source)
    if found is None:
        return source
    struct, buffer = found
    head = source[struct.end() : buffer.start()]
    values = []
    for field in _COUNT.findall(struct["fields"]):
        (index,) = re.findall(rf"\b{field} \[\[buffer\((\d+)\)\]\]", head)
        values.append(f"{given[params[int(index)].name]}ul")
    made = f"constant invar_lengths lengths = {{{', '.join(values)}}};\n"
    # The buffers stand before their lengths, so a comma does too.
    return source[: struct.end()] + made + head + source[buffer.end() :]


def _by_name(kernel, names, sizes):
    """The numbers of elements by the buffers' names."""
    if isinstance(sizes, (list, tuple)):
        if len(sizes) != len(names):
            raise EnigmaError(f"kernel `{kernel}` has {len(names)} buffers, {len(sizes)} sizes were given")
        sizes = dict(zip(names, sizes))
    if not isinstance(sizes, dict):
        raise EnigmaError(f"sizes={sizes!r}: write a list, or {{name: number of elements}}")
    if set(sizes) != set(names):
        raise EnigmaError(
            f"sizes= needs the number of elements of each buffer of kernel `{kernel}`, which are "
            f"{', '.join(names) or 'none'}"
        )
    for name, n in sizes.items():
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or not 0 <= n < 1 << 63:
            raise EnigmaError(f"the size of `{name}` is a number of elements, not {n!r}")
    return {name: int(n) for name, n in sizes.items()}
