"""The functions that kernels call: the rows of the op table, and the structural instructions.

Absent: what the operations mean, which the table and the memory model say.
"""

from __future__ import annotations

import functools
import inspect

import numpy as _np

from . import _control, _trace
from ._invar import ops as _table
from ._types import Array, Struct, Type, element_of, numpy_element, type_named
from ._values import (
    Elements, Memory, Place, Value, atomic, beside, beside_length, bits_of, common_type, constant,
    default_type, describe, elementwise, index_value, made, no_attribute, op, to_type,
    weak_kind, weak_of,
)  # fmt: skip
from ._views import RegisterLike, Tensor, masks

__all__ = (
    "assert_uniform async_copy async_copy_2d atomic_add atomic_and atomic_compare_exchange "
    "atomic_exchange atomic_load atomic_max atomic_min atomic_or atomic_store atomic_sub atomic_xor "
    "barrier buffer_length constant_array copy function_constant load_if print requires "
    "simdgroup_barrier simdgroup_load simdgroup_matrix simdgroup_multiply_accumulate simdgroup_store "
    "store_if thread_alloc threadgroup_alloc threadgroup_barrier wait where"
).split()

#: Rows that are written otherwise: as operators, as calls of types, by indexing.
OPERATORS = {"and": "&", "or": "|", "not": "~", "cast": "iv.f32(x)", "construct": "iv.f32x4(...)"}


def _operands(name, kinds, args):
    """The operands of a row as values of one type, where the row says so, and whether weak."""
    what = f"iv.{name}()"
    if all(kind == "T" for kind in kinds):
        args = beside_length(args)
    shared = [x for x, kind in zip(args, kinds) if kind == "T"]
    ty = common_type(shared, what) if shared else None
    values = []
    for x, kind in zip(args, kinds):
        if kind == "T":
            values.append(to_type(x, ty, what))
        elif kind == "S":
            values.append(to_type(x, ty.scalar, what))
        elif isinstance(x, Value) and (kind == "" or not weak_kind(x)):
            # One condition for all components, or one each; a lane is any integer.
            values.append(x)
        else:
            named = type_named(kind) if kind else default_type(x)
            if name == "ldexp" and ty.kind == "vector":
                named = ty.with_scalar(named)
            values.append(to_type(x, named, what))
    return values, weak_of(shared) if shared else None


_KNOWN = {"bool", "u32", "f32x2", "f32x4", "u32x4"}


def _signature(imm, kinds, names, signature):
    """The Python signature of a row's function: every parameter by position only."""
    given = functools.partial(inspect.Parameter, kind=inspect.Parameter.POSITIONAL_ONLY)
    parameters = [given(n, annotation="Operand") for n in names]
    # ``Any`` where it takes after the operands.
    result = signature.partition("->")[2].split(",")[0].strip()
    result = result if result in _KNOWN else "Any"
    if imm == 1:
        parameters.insert(0, given("ty", annotation="type[_T]"))
        result = "_T"
    elif imm == 2:
        parameters = [*inspect.signature(Query.__call__).parameters.values()][1:]
    elif imm == 3:
        parameters.append(given("components", annotation="str"))
    if not kinds:
        result = "u32"
    return inspect.Signature(parameters, return_annotation=result)


def _component(dim, which):
    def get(self) -> u32:
        return self(dim)

    get.__doc__ = f"The {which} component."
    return property(get)


class Query:
    """A position or size: ``query("y")``, or ``query.y``, is a component, as ``u32``."""

    def __init__(self, name):
        self.__name__ = self.__qualname__ = name

    def __repr__(self):
        return f"<function invar.{self.__name__}>"

    def __call__(self, dim: Literal["x", "y", "z"] = "x") -> u32:
        if not isinstance(dim, str):
            raise _trace.error(f'iv.{self.__name__}({dim!r}): write "x", "y" or "z"')
        return op(self.__name__, [], (2, dim))

    x, y, z = map(_component, "xyz", ("first", "second", "third"))

    def __getattr__(self, name):
        raise no_attribute(f"iv.{self.__name__}", name, ": it has x, y and z")


def _function(row):
    name, imm, kinds, names, signature, capability, doc = row

    if imm == 2:
        function = Query(name)
    elif imm == 1:

        def function(ty, x):
            if not isinstance(ty, Type):
                raise _trace.error(f"iv.{name}() takes a type first, such as iv.u32")
            return op(name, _operands(name, kinds, (x,))[0], ty)

    elif imm == 3:

        def function(x, components):
            return op(name, _operands(name, kinds, (x,))[0], (3, components))

    else:

        def function(*args):
            if len(args) != len(kinds):
                raise _trace.error(f"iv.{name}() takes {len(kinds)} operands, found {len(args)}")
            if any(isinstance(x, Elements) for x in args):
                return elementwise(function, *args)
            values, weak = _operands(name, kinds, args)
            result = op(name, values)
            if values and result.type == values[0].type:
                result.weak = weak
                # The smaller of a length and a number meets other numbers as a length does.
                result.is_length = any(isinstance(x, Value) and x.is_length for x in args)
            return result

    function.__name__ = function.__qualname__ = name
    function.__module__ = "invar"
    function.__signature__ = _signature(imm, kinds, names, signature)
    needs = "" if capability == "core" else f"\n\nNeeds a device with {capability}s."
    function.__doc__ = f"{doc.strip()}\n\n``{signature}``{needs}"
    return function


#: Every function generated from the table, by name.
GENERATED = {row[0]: _function(row) for row in _table() if row[0] not in OPERATORS}


def _made(ty, name, *args):
    """The value, of a type known here, of an instruction that the builder makes."""
    return Value(_trace.emit(name, *args), type_named(str(ty)))


# ---- memory ----


def _alloc(space, element, length):
    t = _trace.current()
    element = element_of(element)
    if type(length) is not int or not 1 <= length < 1 << 32:
        raise _trace.error(
            f"an array's length is a compile-time number of at least 1, not {length!r}"
            if not isinstance(length, Value)
            else "an array's length must be known at compile time"
        )
    declare(element)
    name, t.hint = t.hint or space, None
    handle = t.emit("alloc", space, name, str(element), length)
    return Memory(tuple(handle), name, space, element, length)


def threadgroup_alloc(element: Element, length: int) -> Memory:
    """An array in threadgroup memory, all zeros when the threadgroup starts (I2)."""
    return _alloc("threadgroup", element, length)


def thread_alloc(element: Element, length: int) -> Memory:
    """An array of the thread's own, all zeros here (I3)."""
    return _alloc("thread", element, length)


def declare(element):
    """Declares a struct, and those in it, in the module being built."""
    t = _trace.current()
    if isinstance(element, Array):
        declare(element.element)
    if isinstance(element, Struct) and t.structs.get(element.name) != element:
        if element.name in t.structs:
            raise _trace.error(f"two structs of one kernel are called `{element.name}`")
        for field in element.fields.values():
            declare(field)
        fields = [(name, str(field)) for name, field in element.fields.items()]
        t.builder.structure(element.name, fields)
        t.structs[element.name] = element


def buffer_length(memory: Memory) -> u64:
    """How many elements are bound to a buffer or threadgroup parameter, as ``u64``; ``len(x)`` is the
    same. Integers of other types that meet it take 64 bits, as in ``i < len(x)``."""
    memory = _memory(memory)
    if memory.handle[0] != 0:
        raise _trace.error(f"`{memory.name}` is an array of fixed size: write len() of it")
    return memory.length_value()


def _memory(x):
    if isinstance(x, Tensor):
        raise _trace.error(
            f"the tensor `{x.name}` where a buffer or an array is needed: give what it is a view of, "
            "as in `t.memory.at(t.offset(0))`; its layout does not go along"
        )
    if isinstance(x, RegisterLike):
        raise _trace.error(f"the register tensor `{x.name}` where a buffer or an array is needed: write `r.memory`")
    if not isinstance(x, Memory):
        raise _trace.error(f"{describe(x)} where a buffer or an array is needed")
    return x


def load_if(mask: Operand, memory: Memory, index: Index, otherwise: Operand = 0) -> Any:
    """``memory[index]`` where ``mask`` holds, else ``otherwise``; no access where it does not."""
    return _control.if_exp(mask, lambda: _memory(memory)[index], lambda: otherwise)


def store_if(mask: Operand, memory: Memory, index: Index, value: Operand) -> None:
    """Stores ``memory[index] = value`` where ``mask`` holds; no access where it does not."""
    _memory(memory)

    def store():
        memory[index] = value

    _control.if_stmt(mask, store)


def function_constant(name: str, ty: Type, default: int | float | bool | None = None, id: int | None = None) -> Value:
    """A value that is fixed when the kernel is compiled, the same for the whole grid.

    A launch gives it by name, ``constants={"TILE": 8}``; without a default it must.
    """
    t = _trace.current()
    if not isinstance(ty, Type) or ty.kind != "scalar":
        raise _trace.error(f"function constant `{name}` has a scalar type, not {ty}")
    known = t.function_constants.get(name)
    if known is None:
        number = len(t.function_constants) if id is None else id
        bits = None if default is None else bits_of(ty, default)
        known = t.builder.declare_function_constant(name, number, ty.name, bits), ty
        t.function_constants[name] = known
    elif known[1] != ty:
        raise _trace.error(f"function constant `{name}` is {known[1]} elsewhere in the kernel")
    return made("function_constant", known[0])


def constant_array(values: Any, element: Element | None = None, name: str | None = None) -> Memory:
    """An array of the program's own in constant memory: ``TABLE[i]`` loads an element.

    ``values`` is anything that NumPy makes an array of. The element type is by default that of the
    array; lists of Python numbers are ``i32`` or ``f32``.
    """
    t = _trace.current()
    array = _np.asarray(values)
    if element is None:
        plain = not isinstance(values, (_np.ndarray, _np.generic))
        defaults = {"i": type_named("i32"), "f": type_named("f32")}
        element = defaults.get(array.dtype.kind) if plain else None
        element = element or element_of(array.dtype)
    element = element_of(element)
    dtype, shape = numpy_element(element)
    if array.ndim != 1 + len(shape) or array.shape[1:] != shape or not len(array):
        raise _trace.error(
            f"a constant array of {element} needs values of shape (n{''.join(f', {n}' for n in shape)}"
            f"{'' if shape else ','}) with n at least 1, found {array.shape}"
        )
    bits = []
    for one in array:
        _flatten(element, one, dtype, bits)
    declare(element)
    key = str(element), tuple(bits)
    if key not in t.constants:
        names = {memory.name for memory in t.constants.values()}
        name = name or t.hint or "constants"
        if name in names:
            name = f"{name}_{len(names)}"
        handle = t.emit("constant_array", name, str(element), len(array), bits)
        t.constants[key] = Memory(tuple(handle), name, "constant", element, len(array))
    t.hint = None
    return t.constants[key]


def _flatten(element, one, dtype, bits):
    """The bits of each scalar of an element, in order."""
    if isinstance(element, Struct):
        if getattr(one, "dtype", None) != dtype:
            raise _trace.error(f"a constant array of {element} needs values of its dtype")
        for name, field in element.fields.items():
            _flatten(field, one[name], numpy_element(field)[0], bits)
    elif isinstance(element, Array):
        for part in one:
            _flatten(element.element, part, dtype, bits)
    else:
        for number in _np.asarray(one).reshape(-1):
            number = number.item()
            if isinstance(number, float) and not element.is_float:
                raise _trace.error(f"{number} in a constant array of {element}: convert the values")
            bits.append(bits_of(element.scalar, number))


# ---- barriers, uniformity ----


def barrier(
    scope: Literal["threadgroup", "simdgroup"] = "threadgroup", spaces: Spaces = ("device", "threadgroup")
) -> None:
    """Makes the threads of a scope wait for each other, and orders the spaces (O2)."""
    _trace.emit("barrier", scope, [spaces] if isinstance(spaces, str) else list(spaces))


def threadgroup_barrier(*spaces: Space) -> None:
    """``barrier`` of the threadgroup; orders the spaces named, by default all (O2)."""
    barrier("threadgroup", spaces or ("device", "threadgroup"))


def simdgroup_barrier(*spaces: Space) -> None:
    """``barrier`` of the simdgroup; orders the spaces named, by default all (O2)."""
    barrier("simdgroup", spaces or ("device", "threadgroup"))


def requires(*conditions: str) -> None:
    """Requires something of every launch (S5): ``iv.requires("n * n <= length(a)", "grid.x <= n")``.

    A condition compares sums of whole numbers, integer parameters, function constants, ``length(x)`` of a buffer,
    ``width(t)``, ``height(t)``, ``slices(t)`` and ``levels(t)`` of a texture, ``grid.x``, ``groups.x``
    and ``threadgroup.x``, and products of them; ``n % 4 == 0`` is a remainder. ``each v of column: v < n``
    speaks of the elements of a buffer that the kernel only reads, ``ascending row`` of their order. A
    launch whose numbers break it is refused; the checked device also looks at what buffers hold.
    ``iv.prove`` takes it as given.
    """
    if not conditions:
        raise _trace.error('iv.requires() takes one condition or more: iv.requires("n <= length(x)")')
    for condition in conditions:
        if not isinstance(condition, str):
            raise _trace.error(
                f"iv.requires() takes each condition as a string, not {describe(condition)}: "
                'iv.requires("n <= length(x)")'
            )
    if len(_trace.current().regions) > 1:
        raise _trace.error("iv.requires() is for every launch: write it in front of branches and loops")
    for condition in conditions:
        _trace.emit("requires", condition)


def print(text: str, *values: Operand) -> None:
    """Prints a line from each thread that comes here: the text with each ``{}`` replaced by the next
    value, each ``{:x}`` by the next integer in hexadecimal, each ``{:c}`` by the character of which the
    next integer is the number, and ``{{`` and ``}}`` by braces (P1).

    The lines are written to ``sys.stdout`` when the launch has ended, for which it waits. The lines of
    a thread come in their order (P3); a launch keeps 1 MiB of them and counts the rest (P5).
    """
    if not isinstance(text, str):
        raise _trace.error(f"iv.print() begins with the text to print, not {describe(text)}")
    what = "iv.print()"
    parts = [x if isinstance(x, Value) else to_type(x, default_type(x), what) for x in values]
    _trace.emit("print", text, [x.id for x in parts])


def assert_uniform(value: Operand, scope: Literal["threadgroup", "simdgroup"] = "threadgroup") -> Any:
    """Asserts that a value is the same for all threads of the scope, and gives it (X5)."""
    if not isinstance(value, Value):
        return value
    return _made(value.type, "assert_uniform", value.id, scope)


# ---- atomics ----


def _atomic(name, place, args, order, scope):
    if not isinstance(place, Place) or not isinstance(place.element, Type):
        raise _trace.error(f"iv.atomic_{name}() needs an element: iv.atomic_{name}(x, index, ...)")
    # Any atomic needs memory that is read and written.
    place.memory._use(3)
    if scope is None:
        scope = "threadgroup" if place.memory.space == "threadgroup" else "device"
    return atomic(name, place.raw(), place.element, args, f"iv.atomic_{name}()", order, scope)


def _place(memory, index):
    if isinstance(memory, Place):
        return memory.field(index) if isinstance(index, str) else memory.part(index)
    return _memory(memory).place(index)


def _atomic_function(name, text):
    def function(
        memory: Memory | Place,
        index: Index | str,
        value: Operand,
        *,
        order: Order = "relaxed",
        scope: Scope | None = None,
    ) -> Any:
        return _atomic(name, _place(memory, index), [value], order, scope)

    function.__name__ = function.__qualname__ = f"atomic_{name}"
    function.__doc__ = (
        f"{text}, indivisibly; gives the value just before (T2). The scope is by default "
        "`device` for device memory, `threadgroup` for threadgroup memory (T3). Of a struct "
        'the field is named: ``(x[i], "field", value)``.'
    )
    return function


atomic_exchange = _atomic_function("exchange", "Replaces ``memory[index]`` by ``value``")
atomic_add = _atomic_function("add", "Adds ``value`` to ``memory[index]``, wrapping")
atomic_sub = _atomic_function("sub", "Subtracts ``value`` from ``memory[index]``, wrapping")
atomic_min = _atomic_function("min", "Leaves the smaller of ``value`` and ``memory[index]``")
atomic_max = _atomic_function("max", "Leaves the larger of ``value`` and ``memory[index]``")
atomic_and = _atomic_function("and", "Leaves the bitwise and of ``value`` and ``memory[index]``")
atomic_or = _atomic_function("or", "Leaves the bitwise or of ``value`` and ``memory[index]``")
atomic_xor = _atomic_function("xor", "Leaves the bitwise exclusive or of both")


def atomic_load(
    memory: Memory | Place, index: Index | str, *, order: Order = "relaxed", scope: Scope | None = None
) -> Any:
    """Loads ``memory[index]`` atomically (T2)."""
    return _atomic("load", _place(memory, index), [], order, scope)


def atomic_store(
    memory: Memory | Place, index: Index | str, value: Operand, *, order: Order = "relaxed", scope: Scope | None = None
) -> None:
    """Stores to ``memory[index]`` atomically (T2)."""
    _atomic("store", _place(memory, index), [value], order, scope)


def atomic_compare_exchange(
    memory: Memory | Place,
    index: Index | str,
    expected: Operand,
    desired: Operand,
    *,
    order: Order = "relaxed",
    scope: Scope | None = None,
) -> tuple[Any, Value]:
    """Replaces ``memory[index]`` by ``desired`` if it equals ``expected``; never fails spuriously.

    Gives the value just before, and whether it was replaced.
    """
    place = _place(memory, index)
    return _atomic("compare_exchange", place, [expected, desired], order, scope)


# ---- copies ----


def _index(x):
    return index_value(x).id


def _ends(destination, destination_index, source, source_index):
    _memory(destination)._use(2)
    _memory(source)._use(1)
    to = destination.handle, destination.index(destination_index).id
    return to, (source.handle, source.index(source_index).id)


def copy(
    destination: Memory | Tensor,
    destination_index: Index | Tensor | None = None,
    source: Memory | None = None,
    source_index: Index | None = None,
    count: Index | None = None,
    *,
    mask: Any = True,
) -> None:
    """Copies ``count`` elements, made by the calling thread in order of index; or, as in
    ``iv.copy(to, of)`` with two tensors, all elements of one view to another of as many.

    Where ``mask`` does not hold nothing is read or written. It is a ``bool`` for all elements, or a
    function that gives one for the number of an element, counted from 0. Two tensors are copied by
    the widest vectors that both allow where one condition holds for them all, and the whole view is
    read before it is written.
    """
    if isinstance(destination, Tensor) or isinstance(destination_index, Tensor):
        rest = [x for x in (source, source_index, count) if x is not None]
        if rest or not isinstance(destination, Tensor) or not isinstance(destination_index, Tensor):
            raise _trace.error(
                "iv.copy() of tensors takes two of them, `iv.copy(to, of)`: slice them to what is "
                "copied, and see a buffer through `iv.Tensor(buffer, layout)`"
            )
        return _copy_views(destination, destination_index, mask)
    if any(x is None for x in (destination_index, source, source_index, count)):
        raise _trace.error(
            "iv.copy() takes two tensors, `iv.copy(to, of)`, or two memories with their indices, "
            "`iv.copy(to, to_index, of, of_index, count)`"
        )
    if mask is True:
        to, origin = _ends(destination, destination_index, source, source_index)
        _trace.emit("copy", to, origin, _index(count))
        return None
    to, of = _memory(destination).at(destination_index), _memory(source).at(source_index)

    def one(i):
        def move():
            to[i] = of[i]

        (holds,) = masks(mask if not callable(mask) else mask(i), 1)
        _control.if_stmt(holds, move)

    return _control.kernel_for(_control.Range(count), one)


def _copy_views(to, of, mask):
    if to.size() != of.size():
        raise _trace.error(
            f"iv.copy() of {of.size()} elements of `{of.name}` to {to.size()} of `{to.name}`: both views have as many"
        )
    if to.element != of.element:
        raise _trace.error(
            f"iv.copy() of {of.element} to {to.element}: convert them, as in `to.store(iv.{to.element}(of.load()))`"
        )
    mask = masks(mask, to.size())
    if mask and all(c is mask[0] for c in mask):
        # One condition: one branch for all.
        mine = [True] * len(mask)
        move = lambda: to._store_view(of._load_view(mine), mine)
        _control.if_stmt(mask[0], move)
    else:
        to._store_view(of._load_view(mask), mask)


def async_copy(
    destination: Memory, destination_index: Index, source: Memory, source_index: Index, count: Index
) -> Value:
    """Starts a copy of ``count`` elements by the simdgroup; gives its event (O5)."""
    to, origin = _ends(destination, destination_index, source, source_index)
    return _made("event", "async_copy", to, origin, _index(count))


def async_copy_2d(
    destination: Memory,
    destination_index: Index,
    destination_row: Index,
    source: Memory,
    source_index: Index,
    source_row: Index,
    columns: Index,
    rows: Index,
) -> Value:
    """Starts a copy of ``rows`` runs of ``columns`` elements; rows are so many elements apart."""
    to, origin = _ends(destination, destination_index, source, source_index)
    to, origin = (*to, _index(destination_row)), (*origin, _index(source_row))
    return _made("event", "async_copy_2d", to, origin, _index(columns), _index(rows))


def wait(*events: Value) -> None:
    """Waits for async copies to be finished (O5)."""
    for event in events:
        if not isinstance(event, Value) or event.type.name != "event":
            raise _trace.error(f"iv.wait() of {describe(event)}: it waits for events of async copies")
    _trace.emit("wait", [event.id for event in events])


# ---- simdgroup matrices ----


def _matrix_type(memory):
    element = _memory(memory).element
    if not isinstance(element, Type) or element.kind != "scalar" or not element.is_float:
        raise _trace.error(f"`{memory.name}` holds {element}, a simdgroup matrix holds floats")
    return type_named(f"simdgroup_{element.name}x8x8")


def simdgroup_matrix(ty: Type, value: Operand = 0.0) -> Value:
    """An 8x8 simdgroup matrix of a float type with every entry the same."""
    if not isinstance(ty, Type) or ty.kind != "scalar" or not ty.is_float:
        raise _trace.error(f"a simdgroup matrix holds floats, not {ty}")
    result = f"simdgroup_{ty.name}x8x8"
    return _made(result, "matrix_fill", result, to_type(value, ty, "iv.simdgroup_matrix()").id)


def simdgroup_load(memory: Memory, index: Index, elements_per_row: Index, transpose: bool = False) -> Value:
    """Reads an 8x8 simdgroup matrix whose entry (r, c) is ``memory[index + r*elements_per_row + c]``."""
    ty = _matrix_type(memory)
    memory._use(1)
    place = memory.handle, memory.index(index).id, _index(elements_per_row), bool(transpose)
    return _made(ty, "matrix_load", ty.name, place)


def simdgroup_store(
    matrix: Value, memory: Memory, index: Index, elements_per_row: Index, transpose: bool = False
) -> None:
    """Writes an 8x8 simdgroup matrix; the counterpart of ``simdgroup_load``."""
    ty = _matrix_type(memory)
    if not isinstance(matrix, Value) or matrix.type != ty:
        raise _trace.error(f"{describe(matrix)} where {ty} is needed for `{memory.name}`")
    memory._use(2)
    place = memory.handle, memory.index(index).id, _index(elements_per_row), bool(transpose)
    _trace.emit("matrix_store", place, matrix.id)


def simdgroup_multiply_accumulate(a: Value, b: Value, c: Value) -> Value:
    """``a * b + c`` of simdgroup matrices."""
    for x in (a, b, c):
        if not isinstance(x, Value) or x.type.kind != "simdgroup_matrix":
            raise _trace.error(f"{describe(x)} where a simdgroup matrix is needed")
    return _made(c.type, "matrix_multiply_accumulate", a.id, b.id, c.id)


# ---- choice ----


def where(condition: Operand, on_true: Operand, on_false: Operand) -> Any:
    """``on_true`` where the condition holds, else ``on_false``; both are evaluated."""
    choices = (on_false, on_true)
    if isinstance(condition, Value) and condition.type.kind == "vector":
        choices = beside(condition, choices, "iv.where()")
    return GENERATED["select"](*choices, condition)
