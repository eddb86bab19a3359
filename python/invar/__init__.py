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

import os as _os

from ._beside import standard_first as _standard_first

with _standard_first():
    # All that the package is made of, and with it what that needs.
    from . import (
        _kernel, _launch, _load, _ops, _quantised, _textures, _tiles, _types, _views, layout, metal,
    )  # fmt: skip
from ._arguments import *
from ._array import *
from ._control import Range as range
from ._errors import *
from ._errors import entry as _entry
from ._host import *
from ._imageblocks import *
from ._invar import __version__
from ._invar import rules as _rules
from ._kernel import *
from ._launch import *
from ._load import *
from ._ops import *
from ._quantised import *
from ._textures import *
from ._tiles import *
from ._types import *
from ._values import *
from ._views import *

if "XDG_RUNTIME_DIR" not in _os.environ:
    # Mesa's layer that sorts GPUs by the desktop they show on says "error:" where there is none. Drivers read this
    # when somebody asks for a GPU; a process that has set it keeps what it says.
    _os.environ.setdefault("NODEVICE_SELECT", "1")
globals().update(_ops.GENERATED)
globals().update({name: ty for name, ty in _types._types.items() if ty.kind in ("scalar", "vector", "matrix")})


@_entry
def explain(rule=None):
    """What a rule says, why, and what to do; without an argument the names of all rules."""
    known = dict(_rules())
    if rule is None:
        return sorted(known)
    if rule not in known:
        raise Error(f"there is no rule `{rule}`: see invar.explain() for their names")
    return known[rule]
