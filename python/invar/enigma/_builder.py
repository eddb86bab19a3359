"""A kernel traced from the lines of a ``with`` block, without a function of its own.

Absent: the list of traced operations and their regions. What was traced is told as text, by
``compiler.mlir_emitter``.
"""

from __future__ import annotations

from .. import _control, _reads, _trace, _values
from .._errors import Error
from . import _plain
from . import typing as _typing
from ._dialect import Dialect
from ._errors import EnigmaError, enigma_error
from ._functions import thread_position_in_grid, thread_position_in_threadgroup
from ._functions import threadgroup_position_in_grid, threads_per_threadgroup
from .compiler.kernel import compiled, declared, finished, wrap


class KernelBuilder:
    """A kernel of a ``with`` block::

        builder = KernelBuilder("twice")
        builder.args.append(("a", 0, "float"))
        with builder:
            a = Tensor("a", 0, "float")
            a[thread_position_in_grid] = a[thread_position_in_grid] * 2.0
        source = emit_msl(builder)

    ``args`` are the parameters: name, index and Metal's type of each. Of Python's own control flow the
    block has what is known at compile time; ``if_``, ``for_range`` and ``while_`` are the kernel's.
    """

    def __init__(self, kernel_name):
        self.kernel_name, self.args, self.scalar_params = kernel_name, [], []
        self._function = self._made = None

    def __repr__(self):
        return f"<kernel builder {self.kernel_name}>"

    @classmethod
    def traced(cls, kernel):
        """The builder of a kernel with annotated parameters."""
        builder = cls(kernel.name)
        builder._function = kernel
        params = builder.compiled().param_names
        types = [_typing.metal_name(p.type) for p in builder.compiled()._compiled.params]
        builder.args = [(name, i, ty) for i, (name, ty) in enumerate(zip(params, types))]
        builder.scalar_params = builder.compiled().scalar_params
        return builder

    def compiled(self, vec_width=0):
        """The kernel that was traced."""
        if self._function is not None:
            if self._made is None or self._made[0] != vec_width:
                self._made = vec_width, wrap(self._function, (), vec_width, True)
            return self._made[1]
        if self._made is None:
            raise EnigmaError(f"the builder of `{self.kernel_name}` has traced nothing yet")
        if vec_width not in (0, 1):
            raise EnigmaError("vec_width= is for kernels that are functions, not for a builder's block")
        return self._made[1]

    def __enter__(self):
        if self._function is not None or self._made is not None:
            raise EnigmaError(f"the builder of `{self.kernel_name}` has traced a kernel already")
        _trace.lock.acquire()
        try:
            self._begin()
        except BaseException:
            _trace.lock.release()
            raise
        return self

    def _begin(self):
        self._position = _plain.here()
        trace = _trace.Trace(self.kernel_name, Dialect(self.kernel_name))
        trace.dialect.builder = self
        trace.locate, trace.reads = _plain.here, _reads.Reads()
        trace.regions.append(_control.Region())
        self._tracing = _trace.tracing(trace)
        self._tracing.__enter__()
        if self._position is not None:
            trace.builder.set_span(trace.span(self._position))
        self._params = [
            declared(trace, name, _typing.type_of(ty))
            for name, _, ty in sorted(self.args, key=lambda arg: arg[1])
        ]
        trace.frames.append(_control.Frame("kernel"))

    def __exit__(self, kind, *_):
        trace = _trace.current()
        try:
            if kind is None:
                try:
                    made = finished(trace, self.kernel_name, self._params, self._position)
                except Error as e:
                    raise enigma_error(e) from None
                self._made = 0, compiled(made, emit_only=True)
        finally:
            self._tracing.__exit__()
            _trace.lock.release()

    def make_const(self, dtype, value):
        """A constant of a type."""
        return _values.to_type(value, _typing.type_of(dtype), "a constant")

    def get_thread_position_in_grid(self):
        """The thread's position in the grid, its x component."""
        return thread_position_in_grid("x")

    def get_thread_idx(self):
        """The thread's position in its threadgroup, its x component."""
        return thread_position_in_threadgroup("x")

    def get_block_idx(self):
        """The threadgroup's position in the grid, its x component."""
        return threadgroup_position_in_grid("x")

    def get_block_dim(self):
        """The threadgroup's size, its x component."""
        return threads_per_threadgroup("x")


def get_builder():
    """The builder of the kernel that is being traced; ``None`` outside a kernel."""
    dialect = _trace.current().dialect if _trace.active() else None
    if dialect is None:
        return None
    if dialect.builder is None:
        dialect.builder = KernelBuilder(dialect.kernel_name)
    return dialect.builder
