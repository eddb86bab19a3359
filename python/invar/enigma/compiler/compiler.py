"""Compiling a kernel."""

from __future__ import annotations

import pathlib
import sys

from .kernel import CompiledKernel, EnigmaError, wants_only_source, wrap, write

__all__ = ["CompiledKernel", "compile"]


def compile(fn, *args, keep_metal_source=False, dump_ir=False, dump_mlir=False, work_dir=None,
            vec_width=0, emit_only=None, async_copies="engine"):  # fmt: skip
    """Compiles a ``@kernel``, or the kernel that a ``@jit`` function launches on these tensors.

    ``keep_metal_source`` writes ``NAME.metal`` to ``work_dir`` (else the current folder),
    ``dump_ir`` and ``dump_mlir`` write Invar's text form, as ``NAME.inv`` to ``work_dir`` or else to
    standard error. With ``vec_width=k`` (2 to 4) an index of a buffer means a group of k elements,
    and the grid that is passed is k times smaller. ``emit_only`` (or ``ENIGMA_EMIT_ONLY=1``) asks
    for the source alone: the kernel cannot be executed. ``async_copies="engine"`` leaves async copies
    to the copy engine of Apple's GPUs of family 9 and newer in the Metal source, as the Enigma DSL
    does; ``"expanded"`` ones are made by the simdgroup's lanes, on every GPU.
    """
    if type(vec_width) is not int or vec_width not in (0, 1, 2, 3, 4):
        raise EnigmaError(f"vec_width is from 0 to 4, not {vec_width!r}")
    if async_copies not in ("expanded", "engine"):
        raise EnigmaError(f"async_copies is 'expanded' or 'engine', not {async_copies!r}")
    compiled = wrap(fn, args, vec_width if vec_width > 1 else 0, wants_only_source(emit_only))
    compiled.async_copies = async_copies
    folder = None
    if work_dir is not None:
        folder = pathlib.Path(work_dir)
    if keep_metal_source:
        compiled.export_metal((folder or pathlib.Path()) / f"{compiled.kernel_name}.metal")
    if dump_ir or dump_mlir:
        if folder is not None:
            write(folder / f"{compiled.kernel_name}.inv", compiled.mlir_source)
        else:
            print(compiled.mlir_source, file=sys.stderr)
    return compiled
