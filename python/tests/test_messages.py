"""Every sentence with which a kernel is refused: each function below is one, with what it says.

Each must be refused at a line of its own body.
"""

import contextlib
import dis
import math
import re
import traceback

import numpy as np
import pytest

import invar as iv

CASES = []
tid = iv.thread_position_in_grid
PAIR = np.dtype([("a", np.float32), ("b", np.int32, 2)])
F, I, U, B = iv.Buffer[iv.f32], iv.Buffer[iv.i32], iv.Buffer[iv.u32], iv.Buffer[iv.bool]
V, M = iv.Buffer[iv.f32x3], iv.Buffer[iv.f32x2x2]


def says(pattern, **attributes):
    def add(function):
        CASES.append(pytest.param(function, pattern, attributes, id=function.__name__))
        return function

    return add


# ---- types that do not meet ----


@says(r"`\+` of u32 and i32: types do not mix; convert the second operand with iv\.u32\(")
def signs(x: U, y: I):
    x[0] = x[1] + y[0]


@says(r"`-` of i32 and f32: types do not mix; .* iv\.i32\(.*, or the first with iv\.f32\(")
def integers_and_floats(x: F, y: I):
    x[0] = y[0] - x[1]


@says(r"`<` of u32 and i32: types do not mix")
def comparisons(x: U, y: I):
    if x[0] < y[0]:
        x[0] = 1


@says(r"`==` of f32 and f64: types do not mix")
def widths(x: F, y: iv.Buffer[iv.f64]):
    if x[0] == y[0]:
        x[0] = 1.0


@says(r"iv\.max\(\) of i32 and u32: types do not mix")
def functions(x: I, y: U):
    x[0] = iv.max(x[0], y[0])


@says(r"iv\.clamp\(\) of f32 and i32: types do not mix; convert the third operand")
def third_operands(x: F, y: I):
    x[0] = iv.clamp(x[0], x[1], y[0])


@says(r"`\*` of u32 and 0\.5: convert the u32 with iv\.f32\(\.\.\.\), or the number with iv\.u32\(")
def literals(x: U):
    x[0] = x[1] * 0.5


@says(r"`\+` of i32 and a float number: convert the i32 with iv\.f32\(")
def carried_literals(x: I):
    total = 0.5
    for i in iv.range(4):
        total = total * 2
        x[0] = x[1] + total


@says(r"-1 does not fit u32: it goes from 0 to 4294967295")
def negative_literals(x: U):
    x[0] = x[1] & -1


@says(r"1\.5 is not a value of type u32")
def defaults_of_another_kind(x: U):
    x[0] = iv.function_constant("n", iv.u32, 1.5)


@says(r"`\+` of bool and 1: convert the bool with iv\.i32\(")
def bools_and_literals(x: I):
    x[0] = (x[0] > 1) + 1


@says(r"`&` of i32 and True: convert")
def integers_and_bools(x: I):
    x[0] = x[0] & True


@says(r"`\+` of bool and a number: convert the bool with iv\.i32\(")
def carried_bools(x: I):
    n = 0
    for i in iv.range(4):
        n = n + True
        x[0] = n


@says(r"a store to `x`: i32 where f32 is needed; convert it with iv\.f32\(")
def stores(x: F, y: I):
    x[0] = y[0]


@says(r"a store to `x`: 0\.5 where i32 is needed; convert it with iv\.i32\(")
def stores_of_literals(x: I):
    x[0] = 0.5


@says(r"`\+` of f32x3 and f32x2: the lengths differ")
def lengths(v: V):
    v[0] = v[0] + iv.f32x2(1, 2)


@says(r"`\+` of f32x2x2 and f32x3x3")
def matrices(m: M, n: iv.Buffer[iv.f32x3x3]):
    m[0] = m[0] + n[0]


@says(r"`/` of i32: write `//`, which truncates, or convert the operands with iv\.f32\(")
def division(x: I):
    x[0] = x[1] / 2


@says(r"`/` of i32: write `//`")
def division_from_the_right(x: I):
    x[0] = 2 / x[1]


@says(r"`//` of f32: write iv\.floor\(a / b\) or iv\.trunc\(a / b\)")
def floor_division(x: F):
    x[0] = x[1] // 2


@says(r"a Python str cannot be an operand of `\+`")
def strings(x: F):
    x[0] = x[1] + "a"


@says(r"the array `y` cannot be an operand of `\+`: index it")
def arrays_as_operands(x: F, y: F):
    x[0] = x[1] + y


@says(r"a part of `p` cannot be an operand")
def structs_as_operands(x: F, p: iv.Buffer[PAIR]):
    x[0] = x[1] + p[0]


# ---- conversions ----


@says(r"iv\.f32\(\) needs a value")
def conversion_of_nothing(x: F):
    x[0] = iv.f32()


@says(r"iv\.f32\(\) of a Python str")
def conversion_of_text(x: F):
    x[0] = iv.f32("1")


@says(r"iv\.f32\(\) of the array `x`")
def conversion_of_an_array(x: F):
    x[0] = iv.f32(x)


@says(r"iv\.f32\(\) takes one value, found 2")
def conversion_of_two(x: F):
    x[0] = iv.f32(x[0], x[1])


@says(r"inf has no value as i32")
def conversion_of_infinity(x: I):
    x[0] = iv.i32(float("inf"))


@says(r"300 does not fit u8")
def conversion_that_does_not_fit(x: iv.Buffer[iv.u8]):
    x[0] = iv.u8(300)


@says(r"iv\.as_type\(\) takes a type first, such as iv\.u32")
def bit_casts_without_a_type(x: F):
    x[0] = iv.as_type(x[0], iv.u32)


@says(r"`as_type`: the bits of f32 make a type of 32 bits")
def bit_casts_of_other_widths(x: F):
    x[0] = iv.f32(iv.as_type(iv.u16, x[0]))


# ---- Python on values of a kernel ----


@says(r"a traced value is used where Python needs a number at compile time")
def numbers_for_python(x: U):
    x[0] = ord(chr(x[1]))


@says(r"int\(\) of a traced value: write iv\.i32\(")
def int_of_values(x: I):
    x[0] = int(x[1])


@says(r"float\(\) of a traced value: write iv\.f32\(")
def float_of_values(x: F):
    x[0] = float(x[1])


@says(r"range\(\) of a traced value: for a loop in the kernel write iv\.range")
def range_of_values(x: U):
    for i in range(x[0]):
        x[i] = 1


@says(r"bool\(\) of a traced value: compare it")
def conditions_of_python(x: B):
    x[0] = bool(x[1])


@says(r"f32 has no length")
def lengths_of_scalars(x: F):
    x[0] = len(x[1])


@says(r"f32 cannot be iterated: write iv\.range")
def iteration_of_scalars(x: F):
    for v in x[0]:
        x[0] = v


@says(r"`x` cannot be iterated")
def iteration_of_arrays(x: F):
    for v in x:
        x[0] = v


@says(r"`x` is an array, not a condition")
def arrays_as_conditions(x: F):
    if x:
        x[0] = 1.0


@says(r"f32 has no `y`")
def components_of_scalars(x: F):
    x[0] = x[1].y


@says(r"f32 has nothing to index")
def indices_of_scalars(x: F):
    x[0] = x[1][0]


@says(r"f32x3 has no component 3")
def components_beyond(v: V):
    v[0] = v[0][3] * v[0]


@says(r"f32x3 has no `xq`")
def unknown_components(v: V):
    v[0] = v[0].xq


@says(r"a condition has type f32: compare it, as in `x != 0`")
def conditions_of_numbers(x: F):
    if x[0]:
        x[0] = 1.0


@says(r"a condition has type boolx3: reduce it with iv\.all\(\.\.\.\) or iv\.any\(")
def conditions_of_vectors(v: V):
    if v[0] > 0:
        v[0] = v[1]


# ---- memory ----


@says(r"an index has type f32; it must be an integer: convert it with iv\.u32\(")
def indices_of_floats(x: F):
    x[x[0]] = 1.0


@says(r"a Python float is not an index: an index is one integer")
def indices_of_python_floats(x: F):
    x[1.5] = 1.0


@says(r"a Python tuple is not an index")
def indices_of_tuples(x: F):
    x[0, 1] = 1.0


@says(r"fits no integer type")
def indices_beyond_all(x: F):
    x[1 << 70] = 1.0


@says(r"an array's length must be known at compile time")
def lengths_of_arrays(x: U):
    iv.thread_alloc(iv.f32, x[0])


@says(r"an array's length is a compile-time number of at least 1, not 0")
def empty_arrays():
    iv.threadgroup_alloc(iv.f32, 0)


@says(r"'nonsense' is not an element type: write one of Invar's types")
def elements_of_text():
    iv.thread_alloc("nonsense", 4)


@says(r"memory cannot hold event: store it with its own function")
def elements_of_events():
    iv.thread_alloc(iv._types.type_named("event"), 4)


@says(r"has no field `c`; it has a, b")
def unknown_fields(p: iv.Buffer[PAIR]):
    p[0].c = 1.0


@says(r"the array `p` has no field `a`: index it first")
def fields_of_arrays(p: iv.Buffer[PAIR]):
    p.a = 1.0


@says(r"a store to `p` of a struct \(a, b\) takes another of them, not a Python float: store its parts")
def stores_to_structs(p: iv.Buffer[PAIR]):
    p[0] = 1.0


@says(r"to `p` of a struct \(a, b\) takes another .* `q` holds a struct \(a, c\), of other fields")
def stores_of_other_structs(p: iv.Buffer[PAIR], q: iv.Buffer[[("a", np.float32), ("c", np.int32, 2)]]):
    p[0] = q[0]


@says(r"a store to `p` of an array i32\[65\], which has 65 parts: write a loop over iv\.range")
def stores_of_long_arrays(p: iv.Buffer[[("a", np.int32, 65)]]):
    p[0].a = p[1].a


@says(r"`\+` of i32 and True: convert the bool, as in iv\.i32\(True\)")
def bools_as_numbers(x: I):
    x[0] = x[1] + True


@says(r"`\*` of f32 and bool: convert the bool with iv\.f32\(")
def conditions_as_numbers(x: F):
    x[0] = x[1] * (x[1] > 0)


@says(r"iv\.thread_position_in_grid has no `w`: it has x, y and z")
def components_of_positions(x: F):
    x[tid.w] = 1.0


@says(r"f32 in `p` has nothing to index")
def indices_of_fields(p: iv.Buffer[PAIR]):
    p[0].a[0] = 1.0


@says(r"`c` is in constant memory, which kernels only read")
def stores_to_constants(c: iv.Constant[iv.f32]):
    c[0] = 1.0


@says(r"where a buffer or an array is needed")
def copies_of_values(x: F):
    iv.copy(x, 0, x[0], 0, 1)


@says(r"`s` is an array of fixed size: write len\(\) of it")
def buffer_lengths_of_arrays(x: U):
    s = iv.threadgroup_alloc(iv.f32, 4)
    x[0] = iv.u32(iv.buffer_length(s))


@says(r"`v` holds no scalars, so it has no vector accesses")
def vector_loads_of_vectors(v: V):
    v[0] = v.load(0, 3)


@says(r"a vector access covers 2 to 4 elements")
def vector_loads_too_wide(x: F):
    x.store(0, x.load(0, 8))


@says(r"`x` holds f32, the value is i32x2: convert it")
def vector_stores_of_other_types(x: F):
    x.store(0, iv.i32x2(1, 2))


@says(r"iv\.atomic_add\(\) needs an element")
def atomics_of_structs(p: iv.Buffer[iv.Struct("Outer", np.dtype([("i", PAIR)]))]):
    iv.atomic_add(p[0], "i", 1)


@says(r"iv\.atomic_add\(\): 0\.5 where u32 is needed")
def atomics_of_other_types(x: U):
    iv.atomic_add(x, 0, 0.5)


# ---- loops ----


@says(r"iv\.range\(\) takes 1 to 3 arguments, found 0")
def ranges_of_nothing(x: F):
    for i in iv.range():
        x[i] = 1.0


@says(r"iv\.range\(\) of a Python float: its arguments are integers")
def ranges_of_floats(x: F):
    for i in iv.range(1.5):
        x[i] = 1.0


@says(r"iv\.range\(\) of f32: its arguments are integers")
def ranges_of_float_values(x: F):
    for i in iv.range(x[0]):
        x[0] = 1.0


@says(r"iv\.range\(\) with a step of 0 has no iterations")
def ranges_without_a_step(x: F):
    for i in iv.range(0, 4, 0):
        x[i] = 1.0


@says(r"iv\.range\(\) stands in a `for` statement, directly after `in`: .* range\(\.\.\.\)")
def ranges_in_lists(x: F):
    for i in list(iv.range(4)):
        x[i] = 1.0


@says(r"iv\.range\(\) of u32 and i32: types do not mix")
def ranges_of_mixed_types(x: U, y: I):
    for i in iv.range(x[0], y[0]):
        x[i] = 1


@says(r"kernels have no `else` of a loop: test after the loop instead")
def else_of_loops(x: F):
    for i in range(3):
        x[i] = 1.0
    else:
        x[0] = 2.0


@says(r"`append\(\)` changes a Python list in a branch or loop of the kernel, .*: give a list its full length")
def lists_that_grow(x: F):
    acc = [x[0]]
    for i in iv.range(4):
        acc.append(x[i])
    x[0] = acc[0]


@says(r"`v` is a bool on one path through the `if` on line \d+ and a number on another")
def bools_that_become_numbers(x: I):
    v = True
    if x[0] > 1:
        v = 2
    x[0] = iv.i32(v)


@says(r"`v` is a different object on each path")
def objects_that_differ(x: F, y: F):
    v = x
    if x[0] > 1:
        v = y
    v[0] = 1.0


@says(r"`name` is another object after an iteration of the loop; only values can change")
def text_that_changes_in_a_loop(x: F):
    name = "a"
    for i in iv.range(3):
        if name == "b":
            x[0] = 1.0
        name = "b"


@says(r"`best` is None before the loop and a number after an iteration: begin with a number")
def none_before_a_loop(x: I):
    best = None
    for i in iv.range(4):
        if best is None or x[i] > best:
            best = x[i]
    x[0] = best


@says(r"`best` is None on one path through the `if` on line \d+ and a number on another")
def none_before_a_branch(x: I):
    best = None
    if x[0] > 1:
        best = x[0]
    x[0] = best


@says(r"`v` changes its type in the loop: it is bool at first and an int after an iteration")
def bools_that_become_numbers_in_a_loop(x: I):
    v = False
    for i in iv.range(4):
        v = 1
    x[0] = v


@says(r"`\+` of bools: convert them with iv\.i32\(")
def sums_of_bools(x: I):
    x[0] = (x[1] > 0) + (x[2] > 0)


@says(r"`update\(\)` changes a Python dict in a branch .*: make it with all its keys before")
def dicts_that_grow(x: I):
    sums = {"a": 0}
    if x[0] > 1:
        sums.update(a=x[0])
    x[0] = sums["a"]


@contextlib.contextmanager
def _managed():
    yield 1


@says(r"`_managed` is a context manager made of a generator, .*: write a class with `__enter__` and `__exit__`")
def context_managers_made_of_generators(x: I):
    with _managed():
        x[0] = 1


async def _later():
    return 1


@says(r"`_later` is an `async` function: kernels have no `async`")
def calls_of_coroutines(x: I):
    _later()


@says(r"np\.sum\(\) of `x`, whose elements are known only when the kernel runs: write a loop over iv\.range")
def functions_of_numpy_for_arrays_of_the_kernel(x: F):
    x[0] = np.sum(x)


@says(r"iv\.range\(\) stands in a `for` statement, directly after `in`")
def ranges_in_reverse(x: F):
    for i in reversed(iv.range(4)):
        x[i] = 1.0


@says(r"`pair` differs in its length or shape")
def tuples_that_differ(x: F):
    pair = (x[0], x[1])
    if x[0] > 1:
        pair = (x[0], x[1], x[2])
    x[0] = pair[0]


@says(r"^the value of the conditional expression changes its type: it is f32")
def conditional_expressions(x: F, y: I):
    x[0] = x[0] if x[1] > 0 else y[0]


@says(r"^the value of the conditional expression is a different object on each path")
def lists_of_conditional_expressions_that_change(x: F):
    a, b = [x[0]], [x[1]]
    c = a if x[1] > 0 else b
    c[0] = 1.0


@says(r"^element 1 of the value of the conditional expression changes its type: it is f32")
def parts_of_conditional_expressions(x: F, y: I):
    pair = (x[0], x[1]) if x[1] > 0 else (x[0], y[1])
    x[0] = pair[1]


def _picked(x, y):
    if x[0] > 1:
        return (x[0], x[1])
    return (x[0], y[1])


@says(r"^element 1 of the returned value changes its type: it is f32")
def parts_of_returned_values(x: F, y: I):
    x[0] = _picked(x, y)[1]


@says(r"`v` has no value here: assign it first")
def variables_without_a_value(x: F):
    if x[0] > 1:
        x[1] = v  # noqa: F821
    v = 1.0


# ---- functions ----


@says(r"iv\.clamp\(\) takes 3 operands, found 2")
def too_few_operands(x: F):
    x[0] = iv.clamp(x[0], x[1])


@says(r"operand 1 of `popcount` has type f32, expected integer")
def operands_of_other_types(x: F):
    x[0] = iv.popcount(x[0])


@says(r"`w` is not a component: write \"x\", \"y\" or \"z\"")
def unknown_dimensions(x: U):
    x[0] = tid("w")


@says(r"`xyq` is not a swizzle")
def unknown_swizzles(v: V):
    v[0] = iv.swizzle(v[0], "xyq")


@says(r"iv\.wait\(\) of a value of type f32: it waits for events of async copies")
def waits_for_values(x: F):
    iv.wait(x[0])


@says(r"a simdgroup matrix holds floats, not i32", simdgroup=32)
def matrices_of_integers():
    iv.simdgroup_matrix(iv.i32)


@says(r"a value of type f32 where a simdgroup matrix is needed", simdgroup=32)
def products_of_values(x: F):
    iv.simdgroup_multiply_accumulate(x[0], x[0], x[0])


@says(r"where simdgroup_f32x8x8 is needed for `x`", simdgroup=32)
def stores_of_other_matrices(x: F):
    iv.simdgroup_store(iv.simdgroup_matrix(iv.f16), x, 0, 8)


@says(r"simdgroup_f32x8x8 is made by its own functions only", simdgroup=32)
def conversion_to_matrices(x: F):
    iv._types.type_named("simdgroup_f32x8x8")(x[0])


@says(r"an event of an async copy cannot leave the branch or loop it began in", simdgroup=32)
def events_that_leave_loops(x: F):
    s = iv.threadgroup_alloc(iv.f32, 64)
    event = iv.async_copy(s, 0, x, 0, 8)
    for i in range(2):
        if tid() > 5:
            continue
        event = iv.async_copy(s, 0, x, 0, 8)
    iv.wait(event)


@says(r"a register tensor holds values, not @Pair")
def register_tensors_of_structs():
    iv.register_tensor(iv.Struct("Pair", PAIR), 4)


@says(r"iv\.quantize\(\) gives an integer type, not f32")
def quantising_to_floats(x: F):
    x[0] = iv.quantize(x[0], 1.0, ty=iv.f32)


@says(r"iv\.pack_int4x2\(\) of a value of type f32: it takes integers")
def packing_of_floats(x: F):
    x[0] = iv.f32(iv.pack_int4x2(x[0], 1))


@says(r"two structs of one kernel are called `Pair`")
def structs_of_one_name():
    iv.thread_alloc(iv.Struct("Pair", PAIR), 1)
    iv.thread_alloc(iv.Struct("Pair", np.dtype([("z", np.float32)])), 1)


@says(r"kernel `inner` is called in a kernel: take @iv\.kernel off what kernels share")
def kernels_in_kernels(x: F):
    inner(x)


@iv.kernel
def inner(x: F):
    x[0] = 1.0


@says(r"`\*\*` of i32: write products, as in `x \* x`, or convert the operands with iv\.f32")
def powers_of_integers(x: I):
    x[0] = x[0] ** 2


@says(r"math\.sin\(\) of a traced value runs when the kernel is compiled: write iv\.sin\(")
def functions_of_math(x: F):
    x[0] = math.sin(x[0])


@says(r"np\.maximum\(\) of a traced value runs when the kernel is compiled: write iv\.max\(")
def functions_of_numpy(x: F):
    x[0] = np.maximum(x[0], 2.0)


@says(r"divmod\(\) of a traced value: write `a // b` and `a % b`, which truncate")
def quotients_with_remainders(x: I):
    x[0], x[1] = divmod(x[0], 2)


@says(r"sorted\(\) of traced values: their order is known only when the kernel runs")
def sorting(x: I):
    x[0] = sorted([x[0], x[1]])[0]


@says(r"`in` a Python range of a traced value: a list, tuple, set or dict is searched by compari")
def searches_in_ranges(x: I):
    if x[0] in range(0, 9, 3):
        x[0] = 1


@says(r"`in` the array `x`: write a loop over iv\.range\(\.\.\.\) that compares")
def searches_in_buffers(x: I):
    if 3 in x:
        x[0] = 1


@says(r"`v` changes in a part of `and` that not every thread evaluates")
def assignments_right_of_and(x: I):
    if x[0] > 3 and (v := x[1]) > 0:
        x[0] = v


def _on_one_path(v):
    if v > 3:
        return v


@says(r"the function `_on_one_path` returns a value on one path and nothing on another")
def returns_on_one_path(x: I):
    x[0] = _on_one_path(x[0])


@pytest.mark.parametrize(("function", "pattern", "attributes"), CASES)
def test_a_kernel_is_refused(function, pattern, attributes):
    with pytest.raises(iv.KernelError) as caught:
        iv.Kernel(function, **attributes).ir
    error = caught.value
    assert re.search(pattern, error.message), error.message
    first = function.__code__.co_firstlineno
    last = max(line for _, line in dis.findlinestarts(function.__code__))
    assert error.filename == __file__ and first <= error.line <= last, str(error)


# ---- kernels and types that are none ----


def test_parameters_that_kernels_cannot_have():
    def variadic(*x):
        pass

    def by_struct(p: iv.Scalar[PAIR]):
        pass

    def bare(x: iv.f32):
        pass

    def open_length(x: iv.Threadgroup):
        pass

    def unresolved(x: "iv.Buffer[nowhere]"):  # noqa: F821
        pass

    for function, pattern in (
        (variadic, r"kernel `variadic` has \*args, \*\* or keyword-only parameters: name each one"),
        (by_struct, r"parameter `p` of kernel `by_struct` is passed by value and cannot be a struct"),
        (bare, r"parameter `x` of kernel `bare` is annotated invar\.f32: write iv\.Buffer\[iv\.f32\]"),
        (open_length, r"parameter `x` of kernel `open_length` is annotated invar\.Threadgroup"),
        (unresolved, r"an annotation of kernel `unresolved` cannot be resolved: name 'nowhere'"),
    ):
        with pytest.raises(iv.KernelError, match=pattern):
            iv.kernel(function).ir


def test_attributes_that_kernels_cannot_have():
    def k(x: F):
        x[0] = 1.0

    with pytest.raises(iv.Error, match="allow='races' is not something that a kernel can allow"):
        iv.kernel(allow=["races"])(k)
    with pytest.raises(iv.Error, match="`loose` is not a float mode"):
        iv.kernel(float_mode="loose")(k).ir
    with pytest.raises(iv.Error, match="simdgroup"):
        iv.kernel(simdgroup=48)(k).ir
    with pytest.raises(iv.Error, match="@iv.kernel goes on a function"):
        iv.kernel(3)


def test_types_that_memory_cannot_hold():
    for dtype, pattern in (
        (np.float32, "`S` needs a structured dtype"),
        (np.dtype([("a", np.uint8), ("b", np.float32)]), "field `b` of `S` lies at byte 1, .* align=True"),
        (
            np.dtype({"names": ["a"], "formats": [np.float32], "itemsize": 8}),
            "`S` is padded otherwise than in C",
        ),
        (np.dtype([("a", np.complex64)]), "no type for NumPy's complex64"),
    ):
        with pytest.raises(iv.Error, match=pattern):
            iv.Struct("S", dtype)
    with pytest.raises(iv.Error, match="is not an element type"):
        iv.zeros(4, object())


def test_conversions_outside_of_kernels():
    assert iv.u8(7) == 7 and isinstance(iv.f16(1.5), np.float16)
    with pytest.raises(iv.Error, match=r"iv\.f32x2\(\.\.\.\) outside a kernel takes one number"):
        iv.f32x2(1, 2)
    with pytest.raises(iv.Error, match=r"iv\.f32\(\.\.\.\) outside a kernel takes one number"):
        iv.f32("1")


def test_values_of_one_kernel_in_another():
    kept = []

    @iv.kernel
    def first(x: F):
        kept.append(x)

    @iv.kernel
    def second(x: F):
        x[0] = kept[0][0]

    assert first.ir
    with pytest.raises(iv.KernelError, match="`x` belongs to another kernel"):
        second.ir


def test_specialisations_that_lack_something():
    @iv.kernel
    def k(x: iv.Buffer, n):
        x[0] = n

    with pytest.raises(iv.ArgumentError, match="needs a value for `n`"):
        k.specialise(x=iv.f32)
    with pytest.raises(iv.ArgumentError, match="has no compile-time parameter `m`"):
        k.specialise(x=iv.f32, n=1, m=2)
    with pytest.raises(iv.ArgumentError, match="got parameter `n` twice"):
        k[1, 1](np.zeros(1, np.float32), 1, n=1)
    with pytest.raises(iv.ArgumentError, match=r"iv\.check\(\) takes a kernel"):
        iv.check(len, grid=1, threadgroup=1)


def test_a_place_without_columns_marks_the_line():
    error = iv.KernelError("what is wrong", ("nowhere.py", 3, 5, 4, 9))
    assert "--> nowhere.py:3:5" in str(error) and error.line == 3


def test_types_and_structs_show_themselves():
    import pickle

    assert pickle.loads(pickle.dumps(iv.f32x4)) is iv.f32x4
    assert repr(iv.f32x4) == "invar.f32x4" and repr(iv.Buffer[iv.f32]) == "invar.Buffer[f32]"
    assert iv.f32x4.size_bytes == 16 and iv.bool.size_bytes == 1
    struct = iv.Struct("P", PAIR)
    assert struct == iv.Struct("P", PAIR) and "Struct('P'" in repr(struct)
    assert len({struct, iv.Struct("P", PAIR)}) == 1


def test_a_return_of_a_value_is_shown_at_its_line():
    @iv.kernel
    def k(x: F):
        x[0] = 1.0
        return x[0]

    with pytest.raises(iv.KernelError, match="a kernel returns nothing: write results") as e:
        k.ir
    assert e.value.line == k.function.__code__.co_firstlineno + 3


def test_coroutines_and_generators_are_no_kernels():
    async def waits(x: F):
        x[0] = 1.0

    def yields(x: F):
        yield x[0]

    for function, message in (
        (waits, "`waits` is an `async def`: a kernel is a plain function"),
        (yields, "`yields` is a generator: a kernel yields nothing"),
    ):
        with pytest.raises(iv.KernelError, match=message) as e:
            iv.kernel(function)
        assert e.value.line == function.__code__.co_firstlineno


def test_advice_of_a_check_is_in_pythons_words():
    @iv.kernel
    def neighbours(x: iv.Buffer[iv.f32]):
        t = iv.thread_position_in_threadgroup("x")
        tile = iv.threadgroup_alloc(iv.f32, 64)
        tile[t] = x[t]
        x[t] = tile[63 - t]

    x = np.ones(64, np.float32)
    report = iv.check(neighbours, grid=64, threadgroup=64, raises=False)(x)
    assert 'put `iv.threadgroup_barrier("threadgroup")` between them' in report.text
    assert report.findings[0].help == 'put `iv.threadgroup_barrier("threadgroup")` between them'


def test_a_traced_value_is_no_key():
    table = {0: 10, 1: 11}

    @iv.kernel
    def looked_up(x: iv.Buffer[iv.i32], o: iv.Buffer[iv.i32]):
        o[0] = table.get(x[0], -1)

    @iv.kernel
    def counted(x: iv.Buffer[iv.i32], o: iv.Buffer[iv.i32]):
        o[0] = len({x[0], x[1]})

    for kernel in (looked_up, counted):
        with pytest.raises(iv.KernelError, match="a traced i32 cannot be a key of a dict or set"):
            kernel.ir


def test_a_missing_attribute_is_told_as_an_error_that_authors_can_name():
    @iv.kernel
    def k(x: iv.Buffer[iv.f32]):
        x[0] = x[0].foo

    with pytest.raises(iv.KernelError) as raised:
        k[1, 1](np.zeros(1, np.float32))
    told = traceback.format_exception_only(raised.type, raised.value)[0]
    assert told.startswith("invar.KernelError: f32 has no `foo`"), told
    assert isinstance(raised.value, AttributeError)
