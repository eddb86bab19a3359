"""Forms of Python that a kernel may be written with: each works, or is refused by one sentence."""

import contextlib
import copy
import dataclasses
import functools
import importlib.util
import pickle
import re
import sys
import threading

import numpy as np
import pytest

import invar as iv

N = 32
I = iv.Buffer[iv.i32]
X = range(N)
WORK, REFUSED = [], []


def thread():
    return iv.i32(iv.thread_position_in_grid("x"))


def gives(model, since=(3, 9)):
    """The function writes what `model` gives for each thread's number."""
    old = sys.version_info < since
    marks = pytest.mark.skipif(old, reason="lambdas on one line are told apart from 3.11 on")

    def add(function):
        WORK.append(pytest.param(function, model, id=function.__name__, marks=marks))
        return function

    return add


def says(pattern):
    def add(function):
        REFUSED.append(pytest.param(function, pattern, id=function.__name__))
        return function

    return add


# ---- lambdas, and what else is called ----

between = lambda a: a if a > 3 and not a > 9 else -a  # noqa: E731
pair = (lambda a: 1 if a > 3 else 2), (lambda a: 5 if a > 3 else 6)
nested = lambda a: (lambda b: b if b > a else a)(5)  # noqa: E731
longer = (
    lambda a, *rest, scale=2: a * scale if a > rest[0] else rest[1]
)  # fmt: skip


@gives(lambda i: i if 3 < i <= 9 else -i)
def lambdas(out: I):
    i = thread()
    out[i] = between(i)


@gives(lambda i: 15 if i > 3 else 26, since=(3, 11))
def lambdas_that_share_a_line(out: I):
    i = thread()
    out[i] = pair[0](i) * 10 + pair[1](i)


@gives(lambda i: max(i, 5))
def lambdas_in_lambdas(out: I):
    i = thread()
    out[i] = nested(i)


@gives(lambda i: i * 3 if i > 7 else 9)
def lambdas_with_all_kinds_of_parameters(out: I):
    i = thread()
    out[i] = longer(i, 7, 9, scale=3)


@gives(lambda i: pair[0](i) + pair[0](1) + pair[1](i), since=(3, 11))
def lambdas_called_by_python(out: I):
    i = thread()
    out[i] = sum(map(pair[0], [1, i])) + functools.reduce(lambda a, b: a + b, [pair[1](i)])


def smaller(a, b):
    if b > a:
        return a
    return b


@gives(lambda i: min(7, i))
def partial_calls(out: I):
    i = thread()
    out[i] = bound(i)


bound = functools.partial(smaller, 7)


class Scale:
    def __init__(self, by):
        kept = 3
        if by > 3:
            kept = by
        self.by = kept

    def __call__(self, x):
        if x > 10:
            return x * self.by
        return x


class Offset(Scale):
    def __init__(self, by, offset):
        if offset:
            super().__init__(by)
        self.offset = offset


@gives(lambda i: i * 4 if i > 10 else i)
def objects_that_are_called(out: I):
    i = thread()
    out[i] = scale(i)


scale = Scale(4)


@gives(lambda i: 12 * max(i, 3) + 1)
def objects_made_of_traced_values(out: I):
    i = thread()
    made = Offset(i, 1)
    out[i] = made(iv.i32(12)) + made.offset


@dataclasses.dataclass
class Pair:
    a: object
    b: object = 2


@gives(lambda i: i + 2)
def dataclasses_of_values(out: I):
    p = Pair(thread())
    out[p.a] = p.a + p.b


# ---- statements ----


@gives(lambda i: [5, i][i > 3])
def exceptions_at_compile_time(out: I):
    i = thread()
    known = {"a": 5}
    try:
        a = known["b"]
    except KeyError as e:
        reason = e
        a = known["a"]
    else:
        a = 7
    if i > 3:
        a = i
    out[i] = a if reason.args == ("b",) else 0


@gives(lambda i: 3)
def carried_variables_in_a_try(out: I):
    i = thread()
    total = 0.0
    try:
        # The body is compiled again where it learns that `n` is a float.
        n = 0
        for _ in iv.range(2):
            n = n + 1.5
        total += n
    except:  # noqa: E722
        total = -1.0
    out[i] = iv.i32(total)


class Doubled:
    """A context manager whose methods are a kernel's code."""

    def __init__(self, out, i):
        self.out, self.i = out, i

    def __enter__(self):
        if self.i > 3:
            self.out[self.i] += 1
        return self.i

    def __exit__(self, kind, found, traceback):
        if self.i > 3:
            self.out[self.i] *= 2


@gives(lambda i: (1 + i) * 2 if i > 3 else i)
def context_managers(out: I):
    i = thread()
    with Doubled(out, i) as x, contextlib.suppress(KeyError), threading.Lock():
        out[i] += x


@gives(lambda i: i * 2 if i > 3 else i)
def nonlocal_variables(out: I):
    i = thread()
    a = i

    def change():
        nonlocal a
        if i > 3:
            a = a * 2

    change()
    out[i] = a


@gives(lambda i: int(i in (1, 4, 9)) + int(0 <= i < 5) + 2 * int(i in (7, 8)) + int(i == 3))
def searches(out: I):
    i = thread()
    n = iv.i32(i in {1, 4, 9}) + iv.i32(i in range(5)) + 2 * iv.i32(i in {7: 0, 8: 0})
    out[i] = n + iv.i32(3 in (x for x in [i]))


@gives(lambda i: i * 2)
def copies_of_values(out: I):
    i = thread()
    x, (y,) = copy.deepcopy([i, [i]])
    out[i] = x + copy.copy(y)


class Once:
    """Keeps what it computes, as `functools.cached_property` does."""

    @functools.cached_property
    def number(self):
        return thread()


def once():
    once.count += 1
    return once.count


once.count = 0


@gives(lambda i: 3)
def attributes_of_functions(out: I):
    i = thread()
    before = once.count
    out[i] = iv.i32(once() - before) + (2 if i is not None else 0)


@gives(lambda i: len(f"{3}k") + i)
def text_of_numbers(out: I):
    i = thread()
    out[i] = i + len(f"{3}k") + 0 * len(repr(i))


@pytest.mark.parametrize("function, model", WORK)
def test_form_works(function, model):
    out = np.zeros(N, np.int32)
    iv.kernel(function)[N, N](out)
    assert out.tolist() == [model(i) for i in X]


# ---- what is refused ----


@says(r"`raise` in a branch that only some threads take: kernels have no exceptions")
def raise_under_a_condition(out: I):
    i = thread()
    if i > 3:
        raise ValueError(i)
    out[i] = 1


@says(r"`assert` of a traced value, known only when the kernel runs")
def assert_of_values(out: I):
    assert thread() < 3


@says(r"an element of `out` cannot be deleted")
def deleted_elements(out: I):
    del out[0]


@says(r"`with` takes a context manager, not a Python int")
def with_of_numbers(out: I):
    with 5:
        out[0] = 1


@says(r"a store to `out`: 1\.5 where i32 is needed")
def errors_of_the_kernel_are_not_caught(out: I):
    try:
        out[0] = 1.5
    except Exception:
        out[0] = 2


@says(r"a store to `out`: 1\.5 where i32 is needed")
def errors_of_the_kernel_are_not_suppressed(out: I):
    with contextlib.suppress(Exception):
        out[0] = 1.5
    out[0] = 2


@says(r"KeyError leaves a branch or loop of the kernel, which only some threads run, for this `exce")
def exceptions_that_leave_a_branch(out: I):
    try:
        if thread() > 3:
            out[{}["a"]] = 1
    except KeyError:
        out[0] = 2


@says(r"kernels have no `async`")
def coroutines(out: I):
    async def wait():
        return 1

    out[0] = 1


@says(r"`values` is a generator, which a kernel cannot run step by step: give a list instead")
def generators(out: I):
    def values():
        if thread() > 3:
            yield 1

    out[0] = sum(values())


@says(r"the class `Inner` is made in a kernel: write it outside of the kernel")
def class_bodies(out: I):
    class Inner:
        x = 1 if thread() > 3 else 2

    out[0] = Inner.x


@says(r"the source of this lambda cannot be told: write it with `def`")
def lambdas_without_source(out: I):
    out[0] = unseen(thread())


unseen = eval("lambda a: 1 if a > 3 else 2")


@says(r"the `if` of a comprehension is a traced value, known only when the kernel runs")
def filters(out: I):
    out[0] = len([k for k in range(4) if thread() > k])


@says(r"Python compares lists, tuples and dataclasses by itself")
def comparisons_of_lists(out: I):
    out[0] = 1 if [1, thread()] == [1, 3] else 2


@says(r"a Python ndarray is indexed by a traced value, known only when the kernel runs")
def indexed_arrays(out: I):
    out[0] = np.arange(4)[thread()]


@says(r"an array of NumPy holds no values of the kernel")
def stores_to_arrays(out: I):
    held = np.zeros(4, np.int32)
    held[0] = thread()


@says(r"a traced i32 as text: it is known only when the kernel runs")
def text_of_values(out: I):
    out[0] = len(f"{thread()}")


@says(r"str\.join\(\) of a traced value, which is known only when the kernel runs: sequence item 0")
def functions_of_python(out: I):
    out[0] = len("".join([thread()]))


@says(r"pow\(\) with a modulus of traced values")
def three_arguments(out: I):
    out[0] = pow(thread(), 2, 3)


@says(r"max\(key=\.\.\.\) of traced values")
def keys(out: I):
    out[0] = max([1, thread()], key=lambda a: -a)


@says(r"`out` is an array, not a value: index it")
def arrays_that_are_compared(out: I):
    if out == 1:
        out[0] = 1


@says(r"the array `out` has no `shape`: its length is len\(out\)")
def shapes_of_arrays(out: I):
    out[0] = out.shape[0]


@says(r"`out` has no element -1: indices count from its start")
def negative_elements(out: I):
    out[-1] = 1


@says(r"a value of type i32 is not a function")
def calls_of_values(out: I):
    out[0] = thread()(3)


@says(r"this does nothing: a function is named and not called; write `barrier\(\)`")
def functions_that_are_named(out: I):
    iv.barrier  # noqa: B018
    out[0] = 1


@says(r"iv\.thread_position_in_grid\(0\): write \"x\", \"y\" or \"z\"")
def components_by_number(out: I):
    out[0] = iv.thread_position_in_grid(0)


@says(r"`is` of a traced bool and True asks when the kernel is compiled: write `x == True`, or `x`")
def identity_of_flags(out: I):
    out[0] = 1 if (thread() > 3) is True else 0


@says(r"`is not` of a traced i32 and 3 asks")
def identity_of_numbers(out: I):
    three = 3
    out[0] = 1 if 5 > thread() is not three else 0


@says(r"`factorial` calls itself, \d+ calls deep: kernels have no recursion")
def recursion_of_module_functions(out: I):
    out[0] = factorial(out[0])


def factorial(n):
    return 1 if n <= 1 else n * factorial(n - 1)


@says(r"a number of 401 digits does not fit f32")
def huge_numbers(out: I):
    y = iv.f32(1)
    out[0] = iv.i32(y * 10**400)


@says(r"`for` over a Python int")
def loops_over_numbers(out: I):
    for _ in 5:
        out[0] = 1


@says(r"smaller\(\) missing 1 required positional argument: 'b'")
def calls_that_lack_something(out: I):
    out[0] = smaller(thread())


@says(r"NameError while the kernel is compiled: name 'nowhere' is not defined")
def names_of_nothing(out: I):
    out[0] = nowhere  # noqa: F821


@says(r"IndexError while the kernel is compiled: list index out of range")
def exceptions_of_python(out: I):
    out[0] = [1, 2][len([3, 4, 5])]


@pytest.mark.parametrize("function, pattern", REFUSED)
def test_form_is_refused(function, pattern):
    with pytest.raises(iv.KernelError) as found:
        iv.kernel(function)[N, N](np.zeros(N, np.int32))
    assert re.search(pattern, found.value.message), found.value.message
    assert found.value.filename == __file__
    first = function.__code__.co_firstlineno
    assert first < found.value.line < first + 10


def test_what_the_author_raises_stays_what_it_is():
    width = 3

    @iv.kernel
    def k(out: I):
        if width % 2:
            raise ValueError(f"width is {width}, and must be even")
        out[0] = 1

    with pytest.raises(ValueError, match="width is 3, and must be even"):
        k[1, 1](np.zeros(1, np.int32))

    @iv.kernel
    def asserts(out: I):
        assert width % 2 == 0, "even"
        out[0] = 1

    with pytest.raises(AssertionError, match="even"):
        asserts[1, 1](np.zeros(1, np.int32))


def test_hasattr_of_values_and_arrays():
    @iv.kernel
    def k(out: I):
        i = thread()
        out[i] = int(hasattr(i, "real")) + 2 * int(hasattr(out, "shape")) + 4 * getattr(i, "w", 1)

    out = np.zeros(4, np.int32)
    k[4, 4](out)
    assert (out == 4).all()


MATCHES = '''
import invar as iv
from enum import Enum

class Mode(Enum):
    A = 1
    B = 2

@iv.kernel
def works(out: iv.Buffer[iv.i32], mode):
    i = iv.i32(iv.thread_position_in_grid("x"))
    x = 1
    for n in range(2):
        match (n, 5), mode:
            case (0, x), Mode.A:
                pass
            case (_, *rest), Mode.B if n == 1:
                x = rest[0] * 10
            case _:
                if i > 3:
                    x = x + i
                else:
                    x = x - 1
    out[i] = x

@iv.kernel
def leaves(out: iv.Buffer[iv.i32]):
    with open(__file__):
        match 3:
            case 3:
                return

@iv.kernel
def subject(out: iv.Buffer[iv.i32]):
    match iv.thread_position_in_grid("x"):
        case 3:
            out[0] = 1

@iv.kernel
def guard(out: iv.Buffer[iv.i32]):
    match 3:
        case n if iv.thread_position_in_grid("x") > n:
            out[0] = 1

@iv.kernel
def groups(out: iv.Buffer[iv.i32]):
    try:
        out[0] = 1
    except* ValueError:
        out[0] = 2
'''


def written(path, text):
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(sys.version_info < (3, 10), reason="`match` is newer than this Python")
def test_match_statements(tmp_path):
    matches, _, groups = MATCHES.partition("\n@iv.kernel\ndef groups")
    m = written(tmp_path / "matches.py", matches)
    for mode, model in (
        (m.Mode.A, lambda i: 5 + i if i > 3 else 4),
        (m.Mode.B, lambda i: 50),
    ):
        out = np.zeros(N, np.int32)
        m.works[N, N](out, mode)
        assert out.tolist() == [model(i) for i in X]
    for kernel, sentence in (
        (m.leaves, "a jump cannot leave a `with` block"),
        (m.subject, "`match` of a traced value, known only when the kernel runs: write `if`"),
        (m.guard, "the guard of a `case` is a traced value"),
    ):
        with pytest.raises(iv.KernelError, match=re.escape(sentence)):
            kernel[N, N](out)
    if sys.version_info >= (3, 11):
        m = written(tmp_path / "groups.py", f"import invar as iv\n@iv.kernel\ndef groups{groups}")
        with pytest.raises(iv.KernelError, match=re.escape("kernels have no `except*`")):
            m.groups[N, N](out)


def test_what_a_kernel_keeps_in_an_object_ends_with_it():
    kept = Once()

    @iv.kernel
    def one(out: I):
        out[kept.number] = kept.number

    @iv.kernel
    def other(out: I):
        iv.threads_per_grid("x")
        out[kept.number] = 5

    out = np.zeros(N, np.int32)
    one[N, N](out)
    assert out.tolist() == list(X)
    other[N, N](out)
    assert out.tolist() == [5] * N and not vars(kept)


def test_components_of_elements_are_assigned():
    @iv.kernel
    def k(points: iv.Buffer[iv.f32x3], out: iv.Buffer[iv.f32]):
        i = iv.thread_position_in_grid("x")
        shared = iv.threadgroup_alloc(iv.f32x2, N)
        shared[i].y = 4.0
        points[i].x = 5.0
        points[i].y += shared[i].y
        out[i] = points[i].x + points[i].y

    points, out = np.ones((N, 3), np.float32), np.zeros(N, np.float32)
    k[N, N](points, out)
    assert (points == [5, 5, 1]).all() and (out == 10).all()


def test_structs_without_a_name_take_their_parameters():
    @iv.kernel
    def k(x: iv.Buffer, y: iv.Buffer):
        y[0].b = x[0].a

    x = np.array([(3.0,)], [("a", np.float32)])
    y = np.array([(0.0, 1)], [("b", np.float32), ("c", np.int32)])
    k[1, 1](x, y)
    assert y["b"][0] == 3


def test_an_annotation_that_names_nothing():
    @iv.kernel
    def k(x: "iv.Bufer[iv.f32]"):
        x[0] = 1.0

    with pytest.raises(iv.KernelError, match="annotation of kernel `k` cannot be resolved.*Bufer"):
        k[1, 1](np.zeros(1, np.float32))


@iv.kernel
def launches_itself(out: I):
    launches_itself[1, 1](out)


@iv.kernel
def shows_itself(out: I):
    out[0] = len(shows_itself.ir)


@iv.kernel
def launched(out: I):
    out[0] = 1


@iv.kernel
def launches_another(out: I):
    launched[1, 1](out)


@pytest.mark.parametrize(
    ("kernel", "error", "pattern"),
    [
        (launches_itself, iv.KernelError, "kernel `launches_itself` launches or shows itself"),
        (shows_itself, iv.KernelError, "kernel `shows_itself` launches or shows itself"),
        (launches_another, iv.ArgumentError, "a kernel cannot launch another; take @iv.kernel off"),
    ],
)
def test_a_kernel_cannot_launch(kernel, error, pattern):
    with pytest.raises(error, match=pattern):
        kernel[1, 1](np.zeros(1, np.int32))


def chain(count, test):
    """A kernel's file with as many `elif`."""
    lines = ["import invar as iv", "MODE = 77", "@iv.kernel", "def k(o: iv.Buffer[iv.i32]):"]
    lines += ["    t = iv.i32(iv.thread_position_in_grid.x)", "    if t < 0: x = 0"]
    lines += [f"    elif {test} == {i}: x = t + {2 * i}" for i in range(count)]
    return "\n".join([*lines, "    else: x = -1", "    o[t] = x", ""])


def loaded(path, name, text):
    path = path / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_chains_of_elif(tmp_path):
    out = np.zeros(N, np.int32)
    loaded(tmp_path, "chain_traced", chain(60, "t")).k[N, N](out)
    assert out.tolist() == [3 * i for i in X]
    # What is known when the kernel is compiled makes no blocks.
    loaded(tmp_path, "chain_known", chain(180, "MODE")).k[N, N](out)
    assert out.tolist() == [i + 154 for i in X]
    with pytest.raises(iv.KernelError, match="at most 64 deep, where each `elif` counts as one: end"):
        loaded(tmp_path, "chain_long", chain(70, "t")).k[N, N](out)
    # Deeper than the functions that read a kernel's source can go, which some releases of Python do not bound.
    with pytest.raises(iv.KernelError, match="nest too|nest at most 64 deep"):
        loaded(tmp_path, "chain_longer", chain(600, "t")).k[N, N](out)


def test_an_expression_of_too_many_terms(tmp_path):
    text = "import invar as iv\n@iv.kernel\ndef k(o: iv.Buffer[iv.i32]):\n    o[0] = "
    with pytest.raises(iv.KernelError, match="nest too|nest at most 64 deep"):
        loaded(tmp_path, "terms", text + " + ".join(["o[0]"] * 900) + "\n").k.ir


def test_a_type_asks_whether_a_value_is_of_it():
    seen = []

    @iv.kernel
    def k(out: I, x: iv.Buffer[iv.f32]):
        seen[:] = [isinstance(v, iv.f32) for v in (x[0], out[0], 1.0)]
        seen.append(isinstance(out[0], (float, iv.u32, iv.i32)))
        out[0] = 1

    k.ir
    assert seen == [True, False, False, True]


def test_kernels_that_share_an_object_are_traced_one_after_another():
    shared, found = [0], {}

    def make(number):
        @iv.kernel
        def k(out: I):
            t = thread()
            shared[0] = number
            for i in range(20):
                if t > i:
                    shared[0] += 1
            out[t] = shared[0]

        return k

    def run(number):
        out = np.zeros(N, np.int32)
        make(number)[N, N](out)
        found[number] = out.tolist()

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    threads = [threading.Thread(target=run, args=(100 * i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    sys.setswitchinterval(before)
    assert found == {100 * i: [100 * i + min(t, 20) for t in X] for i in range(6)}


def test_a_kernel_is_pickled_by_name_and_copied_as_itself():
    assert pickle.loads(pickle.dumps(launched)) is launched
    assert copy.deepcopy({"k": launched})["k"] is launched


def test_annotations_that_are_none_of_ours():
    @iv.kernel
    def k(x: np.ndarray):
        x[0] = 1

    with pytest.raises(iv.ArgumentError, match="`x` of kernel `k` is annotated ndarray, which makes it"):
        k[1, 1](np.zeros(1, np.float32))


def test_what_a_kernel_allows_is_a_list():
    with pytest.raises(iv.Error, match=r"allow='out_of_bounds_loads' is one name: write allow=\["):
        iv.kernel(allow="out_of_bounds_loads")(lambda x: None)


def test_fields_of_structs_by_their_names():
    @iv.kernel
    def k(x: iv.Buffer[[("in", np.int32), ("pos", np.float32, 2)]]):
        i = iv.thread_position_in_grid.x
        x[i]["in"] += 1
        x[i]["pos"][1] = x[i]["pos"][0] + iv.f32(x[i]["in"])

    x = np.array([(1, (2, 0)), (3, (4, 0))], [("in", np.int32), ("pos", np.float32, 2)])
    k[2, 2](x)
    assert x["in"].tolist() == [2, 4] and x["pos"][:, 1].tolist() == [4, 8]
