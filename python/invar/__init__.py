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
"""

from ._beside import standard_first as _standard_first

with _standard_first():
    # All that the package is made of, and with it what that needs.
    from . import _kernel, _launch, _load, _ops, _quantised, _tiles, _types, _views, layout
from ._arguments import zeros
from ._array import DeviceArray
from ._control import Range as range
from ._errors import (
    ArgumentError,
    CheckError,
    Error,
    Finding,
    KernelError,
    Label,
    LaunchError,
    Proof,
    Report,
    ReportError,
    VerifyError,
)
from ._errors import entry as _entry
from ._host import DLPack
from ._invar import __version__
from ._invar import rules as _rules
from ._kernel import Kernel, Specialised, kernel, prove
from ._launch import (
    BenchResult,
    Device,
    Future,
    Launch,
    Prepared,
    bench,
    check,
    device,
    devices,
    threadgroups,
)
from ._load import LoadedKernel, Module, Variable, load
from ._ops import (
    assert_uniform,
    async_copy,
    async_copy_2d,
    atomic_add,
    atomic_and,
    atomic_compare_exchange,
    atomic_exchange,
    atomic_load,
    atomic_max,
    atomic_min,
    atomic_or,
    atomic_store,
    atomic_sub,
    atomic_xor,
    barrier,
    buffer_length,
    constant_array,
    copy,
    function_constant,
    load_if,
    print,
    simdgroup_barrier,
    simdgroup_load,
    simdgroup_matrix,
    simdgroup_multiply_accumulate,
    simdgroup_store,
    store_if,
    thread_alloc,
    threadgroup_alloc,
    threadgroup_barrier,
    wait,
    where,
)
from ._quantised import (
    dequantize,
    pack_int4x2,
    pack_int4x8,
    pack_int8x4,
    pack_uint8x4,
    quantize,
    unpack_int4x2,
    unpack_int4x8,
    unpack_int8x4,
    unpack_uint4x8,
    unpack_uint8x4,
)
from ._tiles import (
    Pipeline,
    RegisterTensor,
    gemm,
    pipeline,
    register_tensor,
    simdgroup_tile,
    simdgroup_tile_store,
)
from ._types import Buffer, Constant, Scalar, Struct, Threadgroup, Type
from ._values import Elements, Memory, Place, Value
from ._views import Tensor

from ._quiet import quiet_drivers as _quiet_drivers

_quiet_drivers()
globals().update(_ops.GENERATED)
globals().update(
    {name: ty for name, ty in _types._types.items() if ty.kind in ("scalar", "vector", "matrix")}
)


@_entry
def explain(rule=None):
    """What a rule says, why, and what to do; without an argument the names of all rules."""
    known = dict(_rules())
    if rule is None:
        return sorted(known)
    if rule not in known:
        raise Error(f"there is no rule `{rule}`: see invar.explain() for their names")
    return known[rule]
