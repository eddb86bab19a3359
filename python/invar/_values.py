"""Values and memory of a kernel while it is traced, and how their types meet.

A traced value wraps a number of the builder. Python numbers are weak: they stay Python values
until they meet a traced one, whose type they take. A value that a kernel loop carries and that
began as a Python number is weak too while its loop is compiled: the first strong type that it meets
becomes its type, and the loop's body is compiled again with it (``_control``).

Absent: memory seen through a layout (``_views``), and where control flow makes values meet.
"""

from __future__ import annotations

import functools
import math
import operator

import numpy as np

from . import _invar, _trace
from ._errors import Error, KernelError, method_entry
from ._operators import BINARY, COMPARISONS, METHODS, give
from ._types import Array, Struct, Type, scalar_of, type_named

__all__ = "Elements Memory Place Value".split()

BOOL, I32, U32, F32 = (type_named(n) for n in ("bool", "i32", "u32", "f32"))
_NUMBERS = (bool, int, float)


def _dialect():
    """Another surface's rules for how types meet, or ``None`` (see ``enigma._dialect.Dialect``)."""
    return _trace.current().dialect


def is_number(x):
    """Whether it is a compile-time number: Python's or NumPy's."""
    return isinstance(x, (bool, int, float, np.generic))


def bits_of(ty, number):
    """The bits of a number as a scalar type, of a float that is too large those of infinity; a sentence if it does not
    fit."""
    number = number.item() if isinstance(number, np.generic) else number
    number = bool(number) if ty.is_bool else +number
    try:
        bits = _invar.bits(ty.name, number)
    except TypeError:
        raise _trace.error(f"{number!r} is not a value of type {ty}") from None
    if bits is None and isinstance(number, float):
        bits = _invar.bits(ty.name, math.copysign(math.inf, number))
    if bits is None:
        raise _trace.error("{} does not fit {}: {}".format(*misfit(ty, number)))
    return bits


def misfit(ty, number):
    """A number that does not fit a scalar type, as messages show it, the type, and why."""
    if ty.is_integer:
        return number, ty, "it goes from {} to {}".format(*ty.limits)
    if isinstance(number, int) and abs(number) >= 10**40:
        # Python refuses to write very long integers.
        number = f"a number of {math.floor(math.log10(abs(number))) + 1} digits"
    return number, ty, "it would be infinite"


def constant(ty, number):
    """A constant; of a vector type, one number for all components."""
    scalar = ty.scalar
    value = Value(_trace.emit("constant", scalar.name, bits_of(scalar, number)), scalar)
    return value if ty == scalar else _splat(ty, value)


def zero(ty):
    """The zero of a type."""
    if ty.kind == "simdgroup_matrix":
        return Value(_trace.emit("matrix_fill", ty.name, constant(ty.scalar, 0).id), ty)
    if ty.kind == "matrix":
        column = constant(type_named(f"{ty.scalar.name}x{ty.shape[1]}"), 0)
        return op("construct", [column] * ty.shape[0], ty)
    if ty.kind == "event":
        raise _trace.error("an event of an async copy cannot leave the branch or loop it began in")
    return constant(ty, 0)


def _splat(ty, value):
    splat = made("op", "construct", 1, ty.name, [value.id])
    splat.weak = value.weak
    return splat


def weak_kind(x):
    """What a weak operand is, ``bool``, ``int`` or ``float``; ``None`` if it has a type of its own."""
    if isinstance(x, Value):
        if x.weak and all(slot.active for slot in x.weak):
            return "float" if x.type.is_float else "int"
        return None
    # Members of an IntEnum are integers; NumPy's numbers have types of their own.
    if isinstance(x, _NUMBERS) and not isinstance(x, np.generic):
        return next(kind.__name__ for kind in _NUMBERS if isinstance(x, kind))
    return None


def own_type(x, what="an operation"):
    """The type that an operand has of its own, or ``None`` if it is weak."""
    if weak_kind(x):
        return None
    ty = x.type if isinstance(x, Value) else scalar_of(x.dtype) if isinstance(x, np.generic) else None
    if ty is not None:
        return ty
    advice = ""
    if isinstance(x, np.ndarray):
        advice = ": pass it as a buffer, or put it in iv.constant_array(...)"
    elif isinstance(x, Memory):
        advice = ": index it"
    elif hasattr(type(x), "_invar_instead"):
        advice = f": {x._invar_instead}"
    elif x is None:
        advice = ": `is None` asks for it when the kernel is compiled"
    raise _trace.error(f"{describe(x)} cannot be an operand of {what}{advice}")


def describe(x):
    """How an object is called in messages."""
    if isinstance(x, Undefined):
        x.fail()
    if isinstance(x, Memory):
        return f"the array `{x.name}`"
    if isinstance(x, Place):
        return f"a part of `{x.memory.name}`"
    if isinstance(x, Value):
        return f"a value of type {x.type}"
    return f"a Python {type(x).__name__}"


def default_type(x):
    """The type that a weak operand has alone."""
    kind = weak_kind(x)
    if kind == "int" and _dialect() and (isinstance(x, Value) or x >= 0):
        return _dialect().integer
    return {"bool": BOOL, "int": I32, "float": F32}[kind] if kind else own_type(x)


def fits(kind, ty):
    """Whether a weak operand can take a type."""
    if kind == "bool":
        return ty.is_bool
    return ty.is_float or (kind == "int" and ty.is_integer)


def _literal(x, kind):
    """How a weak operand is called in messages."""
    return f"a {kind} number" if isinstance(x, Value) else repr(x)


def to_type(x, ty, what):
    """An operand as a value of a type that it has or, being weak, can take."""
    if _dialect():
        return _dialect().to_type(x, ty, what)
    kind = weak_kind(x)
    if kind is None:
        own = own_type(x, what)
        if own == ty:
            if not isinstance(x, Value):
                return constant(ty, x.item())
            alive(x)
            return x
        if own == ty.scalar and ty.kind == "vector":
            return _splat(ty, to_type(x, own, what))
        raise _trace.error(f"{what}: {own} where {ty} is needed; convert it with iv.{ty}(...)")
    if not fits(kind, ty):
        needs = f"where {ty} is needed; convert it with iv.{ty}(...)"
        raise _trace.error(f"{what}: {_literal(x, kind)} {needs}")
    if isinstance(x, Value):
        if x.type == ty:
            return x
        if x.type == ty.scalar:
            return _splat(ty, x)
        for slot in x.weak:
            if slot.type.scalar != ty.scalar:
                slot.retype(ty)
        return constant(ty, 0)
    return constant(ty, x)


def common_type(operands, what):
    """The type at which operands meet.

    Raises where they do not: mixing signs, or integers and floats, takes a cast.
    """
    if _dialect():
        return _dialect().common_type(operands, what)
    strong, shape = None, None
    for i, x in enumerate(operands):
        own = own_type(x, what)
        if own is None:
            if isinstance(x, Value) and x.type.kind == "vector":
                shape = x.type
            continue
        if own.kind == "vector":
            if shape is not None and shape.shape != own.shape:
                raise _trace.error(f"{what} of {shape} and {own}: the lengths differ")
            shape = own
        elif own.kind != "scalar":
            if strong is not None and strong != own:
                raise _trace.error(f"{what} of {strong} and {own}")
            strong = own
            continue
        if strong is not None and strong.scalar != own.scalar:
            raise _trace.error(_mixed(what, strong.scalar, own.scalar, i))
        strong = strong or own.scalar
    if strong is None:
        kinds = {weak_kind(x) for x in operands}
        if "bool" in kinds and len(kinds) > 1:
            raise _trace.error(f"{what} of bool and a number: convert the bool with iv.i32(...)")
        strong = BOOL if "bool" in kinds else F32 if "float" in kinds else I32
        # A weak integer that meets a float literal is carried as a float from the start.
        for x in operands:
            if isinstance(x, Value) and x.type.scalar != strong:
                for slot in x.weak:
                    slot.retype(strong, "float")
    if strong.kind != "scalar":
        return strong
    for x in operands:
        kind = weak_kind(x)
        if kind and not fits(kind, strong):
            literal = _literal(x, kind)
            if strong.is_bool:
                advice = "convert the bool with iv.i32(...)"
            elif kind == "bool":
                advice = f"convert the bool, as in iv.{strong}({literal})"
            else:
                mine = F32 if kind == "float" else I32
                advice = f"convert the {strong} with iv.{mine}(...), or the number with iv.{strong}(...)"
            raise _trace.error(f"{what} of {strong} and {literal}: {advice}")
    return shape.with_scalar(strong) if shape is not None else strong


def _mixed(what, left, right, index):
    if left.is_bool or right.is_bool:
        number = right if left.is_bool else left
        return f"{what} of {left} and {right}: convert the bool with iv.{number}(...)"
    place = "second" if index == 1 else "third" if index == 2 else f"{index + 1}th"
    return (
        f"{what} of {left} and {right}: types do not mix; convert the {place} operand with "
        f"iv.{left}(...), or the first with iv.{right}(...)"
    )


def weak_of(operands):
    """The slots that a result is weak in: all operands are weak, at least one is traced."""
    slots = frozenset()
    for x in operands:
        if weak_kind(x) is None:
            return None
        if isinstance(x, Value):
            slots |= x.weak
    return slots or None


def alive(x):
    """Raises for a value of another kernel, or one that was made in a region which has ended."""
    if x.trace is not _trace.current():
        raise _trace.error("a value belongs to another kernel: it cannot be kept between kernels")
    for first, end in x.trace.ended:
        if first <= x.id < end:
            raise _trace.error(
                "a value made inside a `with` block is used after it: pass it through `init=` of "
                "for_range, or keep it in a register_tensor"
            )


def made(name, *args):
    """The value of an instruction that the builder makes of the author's current line."""
    number, ty = _trace.emit(name, *args)
    return Value(number, type_named(ty))


def op(name, args, imm=None):
    """An operation of the table on values; ``imm`` is a type, or the kind of what is known, and that."""
    t = _trace.current()
    for x in args:
        if x.trace is not t or t.ended:
            alive(x)
    if isinstance(imm, Type):
        imm = 1, imm.name
    return made("op", name, *(imm or (0, "")), [a.id for a in args])


def atomic(name, place, ty, args, what, order="relaxed", scope="device"):
    """An atomic of values of a type at a place; gives nothing, a value or several."""
    ids = [to_type(x, ty, what).id for x in args]
    results = _trace.emit("atomic", name, place, ids, order, scope)
    values = [Value(number, type_named(ty)) for number, ty in results]
    return values[0] if len(values) == 1 else tuple(values) or None


#: What to write instead of an operator that integers, or floats, have not.
_ADVICE = {
    ("/", True): "`//`, which truncates, or convert the operands with iv.f32(...)",
    ("**", True): "products, as in `x * x`, or convert the operands with iv.f32(...)",
    ("//", False): "iv.floor(a / b) or iv.trunc(a / b)",
}
#: Operators of numbers, which bools are not.
_OF_NUMBERS = {"+", "-", "*", "/", "//", "%", "**", "<<", ">>"}


def binary(name, a, b, symbol):
    """An operation of two operands of one type; messages call it by the symbol."""
    what = f"`{symbol}`"
    t = _trace.current()
    if isinstance(a, (tuple, list)) or isinstance(b, (tuple, list)):
        if isinstance(a, Elements) or isinstance(b, Elements):
            return elementwise(lambda x, y: binary(name, x, y, symbol), a, b)
    a, b = beside_length((a, b))
    ty = common_type((a, b), what)
    if t.dialect and symbol == "//" and ty.is_float:
        return op("floor", [binary("div", a, b, "/")])
    advice = _ADVICE.get((symbol, ty.is_integer))
    if advice and (ty.is_float or ty.is_integer and not t.dialect):
        raise _trace.error(f"`{symbol}` of {ty}: write {advice}")
    if symbol == "%" and ty.is_float:
        name = "fmod"
    weak = None if t.dialect else weak_of((a, b))
    if ty.is_bool and symbol in _OF_NUMBERS:
        raise _trace.error(f"{what} of bools: convert them with iv.i32(...)")
    result = op(name, [to_type(a, ty, what), to_type(b, ty, what)])
    if not result.type.is_bool:
        result.weak = weak
        result.is_length = any(isinstance(x, Value) and x.is_length for x in (a, b))
    return result


def beside_length(operands):
    """Integers that meet the length of a buffer, in its 64 bits: no length is too long for them."""
    if not any(isinstance(x, Value) and x.is_length for x in operands) or _dialect():
        return operands
    strong = [x for x in operands if isinstance(x, Value) and weak_kind(x) is None]
    if any(x.type.kind != "scalar" or not x.type.is_integer for x in strong):
        return operands
    ty = type_named("i64" if any(x.type.is_signed for x in strong) else "u64")
    return tuple(to_cast(x, ty) if any(x is y for y in strong) and x.type != ty else x for x in operands)


def unary(name, x):
    """An operation of one operand."""
    result = op(name, [x])
    result.weak = x.weak
    return result


def convert(ty, args):
    """``iv.f32(x)``, ``iv.f32x4(a, b, c, d)``: a cast, or a vector or matrix from its parts."""
    if not args:
        raise _trace.error(f"iv.{ty}() needs a value")
    if ty.kind in ("event", "simdgroup_matrix"):
        raise _trace.error(f"{ty} is made by its own functions only")
    if not _trace.active():
        if ty.kind != "scalar" or len(args) != 1 or not is_number(args[0]):
            raise Error(f"iv.{ty}(...) outside a kernel takes one number, for a scalar type")
        return ty.numpy().type(args[0])
    x, *others = args
    if not others:
        if isinstance(x, Elements):
            return elementwise(lambda x: convert(ty, (x,)), x)
        x = x.item() if isinstance(x, np.generic) else x
        if isinstance(x, _NUMBERS) and ty.kind in ("scalar", "vector"):
            if isinstance(x, float) and ty.is_integer:
                if not math.isfinite(x):
                    raise _trace.error(f"{x} has no value as {ty}")
                x = int(x)
            return constant(ty, x)
        if not isinstance(x, Value):
            raise _trace.error(f"iv.{ty}() of {describe(x)}")
        if x.type == ty:
            return Value(x.id, ty)
        if ty.kind == "vector" and x.type.kind == "scalar":
            return _splat(ty, to_cast(x, ty.scalar))
        return to_cast(x, ty)
    if ty.kind == "scalar":
        raise _trace.error(f"iv.{ty}() takes one value, found {len(args)}")
    part = ty.scalar if ty.kind == "vector" else type_named(f"{ty.scalar.name}x{ty.shape[1]}")
    parts = []
    for x in args:
        if isinstance(x, Value) and x.type.kind == "vector" and x.type.scalar == ty.scalar:
            parts.append(x)
        else:
            parts.append(to_type(x, part, f"iv.{ty}()"))
    return op("construct", parts, ty)


Type.__call__ = method_entry(lambda self, *args: convert(self, args))


def to_cast(x, ty):
    if ty.kind == "scalar" and x.type.kind == "vector":
        # What a view's load() gives is cast as Elements are, by the type of an element.
        ty = type_named(f"{ty}x{len(x)}")
    return op("cast", [x], ty)


def beside(condition, choices, what):
    """What a vector of conditions chooses from: scalars and numbers as so many equal components."""
    if any(not is_number(x) and getattr(x, "type", condition.type).kind != "scalar" for x in choices):
        return choices
    ty = type_named(f"{common_type(choices, what)}x{len(condition)}")
    return tuple(to_type(x, ty, what) for x in choices)


class NoAttributeError(KernelError, AttributeError):
    """Something of a kernel has no such attribute. ``hasattr`` of the author's helpers takes no other exception for
    that; it is told as the one that authors can name."""

    __module__ = "invar"


NoAttributeError.__name__ = NoAttributeError.__qualname__ = "KernelError"


def no_attribute(what, name, advice):
    """The exception for an attribute that something of a kernel has not."""
    if name.startswith("_") or not _trace.active():
        return AttributeError(name)
    return NoAttributeError(f"{what} has no `{name}`{advice}", _trace.here())


def refuses(message):
    """A method that says why something of a kernel, ``{0}`` in the message, has no such method."""

    def method(self, *_):
        raise _trace.error(message.format(self))

    return method


class _Still:
    """What stands for something of the kernel, of which a copy in Python makes no other."""

    __slots__ = ()

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


class Value(_Still):
    """A value of a kernel: a scalar, vector, small matrix, simdgroup matrix or event.

    It has Python's operators; ``//`` and ``%`` of integers truncate toward zero, as in Metal.
    Components of a vector are ``v.x`` ... ``v.w``, ``v.zyx`` or ``v[i]``.
    """

    __slots__ = ("id", "type", "weak", "trace", "is_length")
    # NumPy leaves operators to us.
    __array_ufunc__ = None

    def __init__(self, number, ty, weak=None):
        self.id, self.type, self.weak, self.is_length = number, ty, weak, False
        self.trace = _trace.current()

    def __repr__(self):
        return f"<traced {self.type}>"

    __hash__ = refuses(
        "a traced {0.type} cannot be a key of a dict or set, which need to know it when the kernel is "
        "compiled: compare with ==, or put the table in a buffer or iv.constant_array(...)"
    )

    def __pos__(self):
        return self

    def __matmul__(self, other):
        return op("matrix_multiply", [self, other])

    __bool__ = refuses(
        "a traced value is used as a Python condition, by code that is not the kernel's: Python compares lists, "
        "tuples and dataclasses by itself, and so do functions such as sorted() and filter(); compare the parts "
        "one by one in the kernel's own code"
    )
    __index__ = refuses(
        "a traced value is used where Python needs a number at compile time; for a loop write iv.range(...)"
    )
    __int__ = refuses("int() of a traced value: write iv.i32(...)")
    __float__ = refuses("float() of a traced value: write iv.f32(...)")
    __delitem__ = refuses("a component of a value of type {0.type} cannot be deleted")

    def __str__(self):
        if not _trace.active():
            return repr(self)
        raise _trace.error(
            f"a traced {self.type} as text: it is known only when the kernel runs; store it and "
            "print it afterwards (repr(), or `!r`, tells its type)"
        )

    def __format__(self, how):
        return str(self)

    def __len__(self):
        if self.type.kind == "vector":
            return self.type.shape[0]
        raise _trace.error(f"{self.type} has no length")

    def __iter__(self):
        if self.type.kind != "vector":
            raise _trace.error(f"{self.type} cannot be iterated: write iv.range(...) for a loop")
        return (self[i] for i in range(len(self)))

    def __getattr__(self, name):
        if self.type.kind == "vector" and (not name.strip("xyzw") or not name.strip("rgba")):
            return op("swizzle", [self], (3, name))
        dialect = _dialect() if _trace.active() else None
        found = dialect.attribute(self, name) if dialect else None
        if found is None:
            raise no_attribute(str(self.type), name, "")
        return found

    def __getitem__(self, index):
        if self.type.kind not in ("vector", "matrix"):
            raise _trace.error(f"{self.type} has nothing to index")
        if isinstance(index, int) and not 0 <= index < self.type.shape[0]:
            raise _trace.error(f"{self.type} has no component {index}")
        return op("extract", [self, index_value(index)])

    def with_part(self, index, part):
        """The same with one component (of a vector) or column (of a matrix) replaced."""
        if self.type.kind == "vector":
            part = to_type(part, self.type.scalar, "a component")
        return op("insert", [self, index_value(index), part])


def component_index(name):
    """The number of a component by its letter; ``None`` if it is none."""
    return "xyzwrgba".index(name) % 4 if len(name) == 1 and name in "xyzwrgba" else None


def plain(x):
    """What stands for a value in another surface, as that value."""
    dialect = _dialect() if _trace.active() else None
    return dialect.traced(x) if dialect else x


class Elements(tuple):
    """A value of several elements: operators and functions of one value go element by element, and
    a scalar stands beside each. ``len()``, indexing and iteration give its elements."""

    __slots__ = ()
    __array_ufunc__ = None
    __hash__ = tuple.__hash__

    def __repr__(self):
        return f"<{len(self)} traced elements>"

    def __bool__(self):
        raise _trace.error(f"{len(self)} elements are not a condition: write any(...) or all(...) of them")

    def __getattr__(self, name):
        dialect = _dialect() if _trace.active() else None
        found = dialect.attribute(tuple.__getitem__(self, 0), name) if dialect and len(self) else None
        if found is None:
            raise AttributeError(f"'Elements' object has no attribute {name!r}")
        return found

    def __getitem__(self, index):
        part = tuple.__getitem__(self, index)
        return Elements(part) if isinstance(index, slice) else part

    def __setitem__(self, index, value):
        raise _trace.error(
            f"one of {len(self)} elements is assigned, and they do not change: make others, as with "
            "iv.where(...), or keep them in an array of iv.thread_alloc(...)"
        )

    __matmul__ = refuses("`@` of elements: write sum(a * b), or iv.gemm(...) for matrices")
    __rmatmul__ = __matmul__


def elementwise(function, *args):
    """Applies a function of values to each element."""
    args = [plain(x) for x in args]
    counts = {len(x) for x in args if isinstance(x, Elements)}
    if not counts:
        return function(*args)
    if len(counts) > 1:
        found = " and ".join(map(str, sorted(counts)))
        raise _trace.error(f"values of {found} elements do not meet")
    (count,) = counts
    rows = [spread(x, count) for x in args]
    return Elements(function(*row) for row in zip(*rows))


def spread(x, count):
    """An operand as so many elements."""
    if isinstance(x, Value) and x.type.kind == "vector":
        x = Elements(x[i] for i in range(len(x)))
    if isinstance(x, Elements):
        if len(x) != count:
            raise _trace.error(f"values of {len(x)} and {count} elements do not meet")
        return x
    return [x] * count


def _give_operators():
    """Gives values the operators, and elements the same, one by one."""

    def method(function, swapped):
        if swapped:
            return lambda self, other: function(other, self)
        return lambda self, other: function(self, other)

    for symbol, (function, name, reflected, row) in BINARY.items():
        if symbol == "@":
            continue
        of_values = functools.partial(binary, row, symbol=symbol)
        of_elements = functools.partial(elementwise, function)
        for cls, what in ((Value, of_values), (Elements, of_elements)):
            setattr(cls, name, method(what, False))
            if symbol not in COMPARISONS:
                setattr(cls, reflected, method(what, True))
    for name, row in (("neg", "neg"), ("pos", None), ("abs", "abs"), ("invert", "not")):
        one = getattr(operator, name)
        setattr(Elements, f"__{name}__", lambda self, one=one: elementwise(one, self))
        if row is not None:
            setattr(Value, f"__{name}__", lambda self, row=row: unary(row, self))


_give_operators()


def index_value(index):
    """An index as a value: any integer scalar."""
    if _dialect():
        index = _dialect().traced(index)
    if isinstance(index, (int, np.integer)) and not isinstance(index, bool):
        index = int(index)
        for name in ("u32", "i32", "u64", "i64"):
            low, high = type_named(name).limits
            if low <= index <= high:
                return constant(type_named(name), index)
        raise _trace.error(f"the index {index} fits no integer type")
    if isinstance(index, Value) and index.type.kind == "scalar" and index.type.is_integer:
        alive(index)
        return index
    if isinstance(index, Value):
        raise _trace.error(f"an index has type {index.type}; it must be an integer: convert it with iv.u32(...)")
    raise _trace.error(f"{describe(index)} is not an index: an index is one integer")


def index_of(operation, first, second):
    """A sum or product of two indexes, of any integer types, in the bits that an index has.

    That is 64 if one of them has or needs 64, else 32: never so few that a small type wraps.
    """
    pair = [plain(x) for x in (first, second)]
    own = [index_value(x).type for x in pair if weak_kind(x) is None and not isinstance(x, np.integer)]
    wide = [ty for ty in own if ty.bits == 64]
    if wide:
        ty = wide[0]
    elif any(not isinstance(x, Value) and not -(2**31) <= x < 2**32 for x in pair):
        ty = type_named("i64")
    else:
        ty = type_named("i32" if all(ty.is_signed for ty in own) else "u32")

    def widened(x):
        if not isinstance(x, Value):
            low, high = ty.limits
            return constant(ty, (int(x) - low) % (high - low + 1) + low)
        if weak_kind(x) is not None:
            return to_type(x, ty, "an index")
        return x if x.type == ty else to_cast(x, ty)

    return op(operation, list(map(widened, pair)))


def plus(a, b):
    """A sum of indexes or offsets, computed here as far as it is known."""
    a, b = (b, a) if isinstance(a, int) else (a, b)
    if isinstance(a, int):
        return a + b
    return a if isinstance(b, int) and b == 0 else index_of("add", a, b)


def row_major(name, shape, indices):
    """The index of an element of some memory by one index for each dimension."""
    if len(indices) != len(shape):
        raise _trace.error(
            f"`{name}` has {len(shape)} dimensions, found {len(indices)} ind{'ex' if len(indices) == 1 else 'ices'}"
        )
    kept = Value, bool
    indices = (operator.index(x) if hasattr(x, "__index__") and not isinstance(x, kept) else x for x in indices)
    first, *others = indices = list(indices)
    for index, extent in zip(indices, shape):
        if type(index) is int and not 0 <= index < (index + 1 if extent is None else extent):
            raise _trace.error(
                f"`{name}` of shape {shape} has no index {index} there: that dimension goes from 0"
                + ("" if extent is None else f" to {extent - 1}")
            )
    for index, extent in zip(others, shape[1:]):
        row = first * extent if isinstance(first, int) else index_of("mul", first, extent)
        first = plus(row, index)
    return first


class Shape(tuple):
    """The extents of a buffer whose annotation leaves the first one open: that is how many rows of the others' size the
    buffer has, which is computed where it is asked for."""

    def __new__(cls, memory):
        shape = super().__new__(cls, memory.extents)
        shape.memory = memory
        return shape

    def __getitem__(self, index):
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        extent = super().__getitem__(index)
        return self.memory.rows() if extent is None else extent

    def __iter__(self):
        return (self[i] for i in range(len(self)))


class Memory(_Still):
    """A buffer or array of a kernel: ``x[i]`` loads an element, ``x[i] = v`` stores one."""

    #: What the annotation gives, of which the first may be ``None``.
    extents = None

    def __init__(self, handle, name, space, element, length=None, offset=None):
        self.handle, self.name, self.space = handle, name, space
        self.element, self.length, self.offset = element, length, offset
        self.trace = _trace.current()

    def at(self, offset):
        """The same memory with its elements counted from ``offset`` on.

        Bounds stay those of the whole: an element before or behind a part is not an error. Offset and
        index are added in 64 bits if one of them has 64, else in 32.
        """
        return Memory(self.handle, self.name, self.space, self.element, None, self.index(offset))

    def index(self, index):
        """An index of this part as a value, counted from the start of the memory."""
        if isinstance(index, (tuple, list)):
            index = self._row_major(index)
        if self.offset is None:
            if type(index) is int and index < 0:
                raise _trace.error(f"`{self.name}` has no element {index}: indices count from its start")
            return index_value(index)
        if isinstance(index, int) and index == 0:
            return self.offset
        return index_of("add", self.offset, index)

    def _row_major(self, indices):
        """The index of an element by one index for each extent of the annotation."""
        shape = self.extents
        if shape is None:
            raise _trace.error(
                f"a Python {type(indices).__name__} is not an index of `{self.name}`: write `{self.name}[j * "
                f"width + i]`, or the shape in the annotation, as in `{self.name}: "
                "iv.Buffer[iv.f32, (None, width)]`"
            )
        return row_major(self.name, shape, indices)

    @property
    def shape(self):
        """The extents that the annotation gives: numbers, and a value for one that it leaves open."""
        if self.extents is None:
            raise AttributeError
        return Shape(self) if self.extents[0] is None else self.extents

    def length_value(self):
        """How many elements are bound to it, as ``u64``."""
        length = Value(_trace.current().emit("buffer_length", self.handle), type_named("u64"))
        length.is_length = True
        return length

    def rows(self):
        """How many rows of the other extents' size it has, as ``u64``."""
        return self.length_value() // math.prod(self.extents[1:])

    def __len__(self):
        if self.length is None:
            raise _trace.error(f"len() of `{self.name}`: its length is known when it runs: write iv.buffer_length(...)")
        return self.length

    def __repr__(self):
        return f"<{self.space} array {self.name} of {self.element}>"

    __hash__ = object.__hash__

    def __getattr__(self, name):
        advice = ""
        if name in ("shape", "size"):
            advice = f": its length is len({self.name})"
        raise no_attribute(f"the array `{self.name}`", name, advice)

    __iter__ = refuses("`{0.name}` cannot be iterated: write iv.range(len({0.name})) and index it")
    __bool__ = refuses("`{0.name}` is an array, not a condition")
    __delitem__ = refuses("an element of `{0.name}` cannot be deleted: store another value")

    def _use(self, access):
        if self.trace is not _trace.current():
            raise _trace.error(f"`{self.name}` belongs to another kernel")
        if self.handle[0] == 0:
            uses = self.trace.access
            uses[self.handle[1]] = uses.get(self.handle[1], 0) | access
        if self.space == "constant" and access & 2:
            raise _trace.error(f"`{self.name}` is in constant memory, which kernels only read")

    def place(self, index):
        return Place(self, self.index(index), self.element, ())

    def __getitem__(self, index):
        return self.place(index).get()

    def __setitem__(self, index, value):
        self.place(index).put(value)

    def load(self, index, width=1, group=False):
        """The ``width`` (2 to 4) consecutive elements from ``index`` on as a vector; with ``group``
        those from ``index * width`` on."""
        return self.run(index, width, group).get()

    def store(self, index, value, group=False):
        """Stores a vector's components to consecutive elements; the counterpart of ``load``."""
        if not isinstance(value, Value) or value.type.kind != "vector":
            self[index] = value
        elif value.type.scalar != self.element:
            raise _trace.error(f"`{self.name}` holds {self.element}, the value is {value.type}: convert it")
        else:
            self.run(index, value.type.shape[0], group).put(value)

    def run(self, index, width, group=False):
        """The place of consecutive elements."""
        if width == 1:
            return self.place(index)
        if not (isinstance(self.element, Type) and self.element.kind == "scalar"):
            raise _trace.error(f"`{self.name}` holds no scalars, so it has no vector accesses")
        if type(width) is not int or not 2 <= width <= 4:
            raise _trace.error("a vector access covers 2 to 4 elements")
        if group and self.offset is not None:
            raise _trace.error(
                f"`{self.name}` is counted from an offset here, which need not be a whole number of "
                "groups: write the index of the first element, without group=True"
            )
        element = type_named(f"{self.element.name}x{width}")
        return Place(self, self.index(index), element, (), (width, group))


give(
    Memory,
    [*METHODS, "__eq__", "__ne__", "__matmul__"],
    lambda name: refuses("`{0.name}` is an array, not a value: index it"),
)
Memory.__array_ufunc__ = None


#: So many values a struct may have that is assigned as a whole.
MAX_PARTS = 64


def same_make(one, other):
    """Whether two element types are alike but for the names of structs."""
    if isinstance(one, Struct) and isinstance(other, Struct):
        names = list(one.fields) == list(other.fields)
        return names and all(map(same_make, one.fields.values(), other.fields.values()))
    if isinstance(one, Array) and isinstance(other, Array):
        return one.length == other.length and same_make(one.element, other.element)
    return one == other


def _make_of(element):
    if isinstance(element, Struct):
        return f"a struct ({', '.join(element.fields)})"
    return f"an array {element}" if isinstance(element, Array) else str(element)


def field_of(element, name, memory):
    """The way to a field of an element of some memory, as the builder takes it, and what the field is."""
    if not isinstance(element, Struct) or name not in element.fields:
        known = f"; it has {', '.join(element.fields)}" if isinstance(element, Struct) else ""
        raise _trace.error(f"{element} in `{memory.name}` has no field `{name}`{known}")
    return (True, list(element.fields).index(name)), element.fields[name]


class Place(_Still):
    """A part of an element in memory that is not a value yet: a struct or an array in it. ``width`` says how
    many elements it covers, and whether its index counts groups of so many."""

    __slots__ = ("memory", "index", "element", "path", "width")

    def __init__(self, memory, index, element, path, width=(1, False)):
        for name, value in zip(self.__slots__, (memory, index, element, path, width)):
            object.__setattr__(self, name, value)

    def get(self):
        """The value here, or this place itself if it stops at a struct or array."""
        if not isinstance(self.element, Type):
            return self
        self.memory._use(1)
        return made("load", self.raw())

    def put(self, value):
        """Stores a value here; to a struct or an array another of the same make, part by part."""
        if not isinstance(self.element, Type):
            self._copy(value)
            return
        self.memory._use(2)
        value = to_type(value, self.element, f"a store to `{self.memory.name}`")
        _trace.emit("store", self.raw(), value.id)

    def _copy(self, source):
        what = f"a store to `{self.memory.name}` of {_make_of(self.element)}"
        if not isinstance(source, Place):
            raise _trace.error(f"{what} takes another of them, not {describe(source)}: store its parts")
        if not same_make(self.element, source.element):
            raise _trace.error(
                f"{what} takes another of them, and `{source.memory.name}` holds "
                f"{_make_of(source.element)}, of other fields or types: store its parts"
            )
        into, out = self._parts(), source._parts()
        if len(into) > MAX_PARTS:
            raise _trace.error(f"{what}, which has {len(into)} parts: write a loop over iv.range(...) that stores them")
        # All is loaded before anything is stored: both may lie in one array.
        for place, value in zip(into, [place.get() for place in out]):
            place.put(value)

    def _parts(self):
        """The places of the values in a struct or array, in order."""
        if isinstance(self.element, Struct):
            inner = [self.field(name) for name in self.element.fields]
        elif isinstance(self.element, Array):
            if self.element.length > MAX_PARTS:
                return [self] * self.element.length  # Only counted.
            inner = [self.part(i) for i in range(self.element.length)]
        else:
            return [self]
        return [part for place in inner for part in place._parts()]

    def raw(self):
        """As the builder takes it."""
        return (self.memory.handle, self.index.id, *self.width, list(self.path))

    def field(self, name):
        if isinstance(self.element, Type) and self.element.kind == "vector":
            index = component_index(name)
            if index is not None and index < self.element.shape[0]:
                return self.part(index)
            raise _trace.error(f"{self.element} in `{self.memory.name}` has no component `{name}` to assign to")
        step, element = field_of(self.element, name, self.memory)
        return Place(self.memory, self.index, element, (*self.path, step))

    def part(self, index):
        if isinstance(self.element, Struct) and isinstance(index, str):
            return self.field(index)
        if isinstance(self.element, Array):
            element = self.element.element
        elif isinstance(self.element, Type) and self.element.kind == "vector":
            element = self.element.scalar
        elif isinstance(self.element, Type) and self.element.kind == "matrix":
            element = type_named(f"{self.element.scalar.name}x{self.element.shape[1]}")
        else:
            raise _trace.error(f"{self.element} in `{self.memory.name}` has nothing to index")
        return Place(self.memory, self.index, element, (*self.path, (False, index_value(index).id)))

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self.field(name).get()

    def __getitem__(self, index):
        return self.part(index).get()

    def __setattr__(self, name, value):
        self.field(name).put(value)

    def __setitem__(self, index, value):
        self.part(index).put(value)

    def __iter__(self):
        if isinstance(self.element, Array):
            return (self[i] for i in range(self.element.length))
        raise _trace.error(f"{self.element} cannot be iterated")


class Phrase(str):
    """What messages call something that has no name in the author's code."""

    __slots__ = ()


def shown(name):
    """A name as messages show it: what stands in the author's code is quoted."""
    return name if isinstance(name, Phrase) else f"`{name}`"


class Undefined:
    """Stands for a variable that has no value here, and says why when it is used."""

    def __init__(self, name, reason=None):
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "reason", reason)

    def fail(self, *_, **__):
        name = object.__getattribute__(self, "name")
        reason = object.__getattribute__(self, "reason")
        raise _trace.error(f"{shown(name)} {reason or 'has no value here: assign it first'}")

    def __getattribute__(self, name):
        if name in ("name", "reason", "fail", "__class__", "__dict__"):
            return object.__getattribute__(self, name)
        object.__getattribute__(self, "fail")()

    def __repr__(self):
        return f"<undefined {self.name}>"


_ASKED = "eq ne hash matmul bool index int float len iter getitem setitem call contains".split()
give(
    Undefined, [*METHODS, *(f"__{name}__" for name in _ASKED)], lambda name: lambda self, *_, **__: Undefined.fail(self)
)
