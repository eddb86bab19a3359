"""The Enigma DSL's surface on Invar: its programs run on any machine.

Change a program's ``import enigma`` to ``from invar import enigma``, or run it unchanged with
``python -m invar.enigma script.py``::

    from invar import enigma
    import numpy as np

    @enigma.kernel
    def add(a: enigma.Float32, b: enigma.Float32, out: enigma.Float32):
        i = enigma.thread_position_in_grid
        out[i] = a[i] + b[i]

    x = np.arange(1000, dtype=np.float32)
    run = enigma.MetalRuntime()
    got = run.execute(enigma.compile(add), [x, x], x.nbytes, (1000, 1, 1), (256, 1, 1))

The left operand's type wins and the right converts; integer literals are ``uint``.
"""

from .. import __version__
from .._beside import standard_first as _standard_first

with _standard_first():
    from . import _tracing, benchmark, core, ops, tensor, testing, tuple, typing
    from ._control_flow import Carry, for_range, if_, range, range_constexpr, while_
    from ._functions import *
    from ._memory import Pipeline, RegisterTensor, Tensor, pipeline, register_tensor
    from .compiler.compiler import compile
    from .compiler.kernel import CompiledKernel, EnigmaError, jit, kernel
    from .core import *
    from .core import size
    from .ops import *
    from .runtime_dispatch.runtime import DeviceCapabilities, MetalRuntime, PreparedKernel
    from .tensor import make_identity_tensor, tensor_composition, tensor_zipped_divide
    from .tuple import product, repeat_like, select
    from .typing import *

#: `from enigma import *` leaves Python's `tuple` alone.
__all__ = [_name for _name in globals() if not _name.startswith("_") and _name != "tuple"]
