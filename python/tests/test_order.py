"""A kernel means what Python means: when items are taken, and in which order parts are evaluated.

Each case is one function that runs as Python on plain numbers, and in a kernel on traced ones.
"""

import enum
import functools
import itertools

import numpy as np
import pytest

import invar as iv

THREADS = 16
CASES = []


def case(function):
    CASES.append(function)
    return function


class Plain:
    """What stands for the package where a case runs as Python."""

    range, i32 = range, int


class Counter:
    def __init__(self, v):
        self.v = v

    def next(self):
        self.v += 1
        return self.v


# ---- items are taken one at a time ----


@case
def a_list_that_grows(x, i, iv):
    work, total = [4], 0
    for v in work:
        total += v * x
        if v > 1:
            work.append(v // 2)
    return total


@case
def a_generator_sees_what_iterations_did(x, i, iv):
    state = [x]

    total = 0
    for v in (state[0] + k for k in range(3)):
        state[0] = state[0] + v
        total += v
    return total


@case
def a_generator_expression_and_a_map(x, i, iv):
    a = [x, i, 1, 2, 3]
    for k, v in enumerate(a[j] for j in range(4)):
        a[k + 1] = v + 1
    for v in map(lambda j: a[j], range(3)):
        a[1] += v
        a[2] += v
    return a[4] + a[1] * 3 + a[2] * 5


@case
def a_call_until_a_value(x, i, iv):
    counter, total = Counter(0), x
    for k in iter(counter.next, 4):
        total += k * counter.v
    return total


@case
def items_of_a_dict_that_changes(x, i, iv):
    d, total = {0: 1, 1: x, 2: i}, 0
    del d[0]
    for k, v in d.items():
        if x > 4:
            d[k] = v + 1
        d[2] = d[2] * 2
        total += v
    return total + d[2]


@case
def a_break_ends_it_without_asking_for_more(x, i, iv):
    total, taken = x, []
    for k in ((taken.append(k), k)[1] for k in itertools.count()):
        if k == 4:
            break
        total += k
    return total * 10 + len(taken)


@case
def a_traced_break_leaves_a_generator(x, i, iv):
    seen = [0]
    for v in (k * 3 for k in range(5)):
        seen[0] += 1
        if v > x:
            break
    return seen[0] * 100 + v


@case
def a_traced_continue_and_a_zip(x, i, iv):
    a, total = [1, 2, 3, 4], 0
    for v, w in zip(a, a[1:]):
        if v == x:
            a[3] = 10
            continue
        total += v * w
    return total + a[3]


@case
def a_variable_of_an_iterator(x, i, iv):
    it, total = iter([x, i, 3, 4]), 0
    for v in it:
        total = total * 3 + v + next(it)
    return total


@case
def an_array_while_it_is_iterated_is_another_list(x, i, iv):
    a = [x, i, 2]
    total = 0
    for k, v in enumerate(a):
        total = total * 3 + v
        a = [9, 9, 9]
    return total + a[0]


# ---- order of evaluation ----


@case
def an_update_reads_the_old_value_first(x, i, iv):
    a = [x]

    def bump():
        a[0] += 10
        return 1

    a[0] += bump()
    counter = Counter(x)
    counter.v += counter.next()
    return a[0] * 100 + counter.v


@case
def a_store_evaluates_its_value_first(x, i, iv):
    counter, a = Counter(0), [x, i, 0, 0, 0]
    a[counter.next()] = counter.next()
    j = 0
    a[j] = (j := 3)
    return a[0] + 10 * a[1] + 100 * a[2] + 1000 * a[3]


@case
def the_way_to_a_part_is_evaluated_step_by_step(x, i, iv):
    rows = [[x, i], [1, 2]]

    def swap():
        rows[0], rows[1] = rows[1], rows[0]
        return 0

    rows[0][swap()] += 5
    rows[1][swap()] = 7
    return rows[0][0] * 100 + rows[1][0] * 10 + rows[0][1] + rows[1][1]


@case
def a_root_that_an_index_rebinds(x, i, iv):
    a, b = [x, i, 0, 0], [5, 6, 7, 8]
    old = a

    def rebind():
        nonlocal a
        a = b
        return 1

    a[rebind()] = 3
    a[rebind()] += 4
    return old[1] * 100 + a[1] * 10 + b[0]


@case
def chained_and_nested_targets(x, i, iv):
    a, log = [0, 0, 0, 0], []

    def at(k):
        log.append(k)
        return k

    a[at(0)] = a[at(1)] = b = x + len(log)
    (a[at(2)], (c, a[at(3)])) = i, (x, len(log))
    return a[0] + 3 * a[1] + 5 * a[2] + 7 * a[3] + 11 * b + 13 * c + 17 * sum(log)


@case
def arguments_displays_and_comparisons(x, i, iv):
    counter = Counter(0)
    f = lambda a, b, *rest, c=0, **more: a + 2 * b + 3 * sum(rest) + 5 * c + 7 * more["d"]
    v = f(counter.next(), *[counter.next(), counter.next()], c=counter.next(), **{"d": counter.next()})
    table = {counter.next(): counter.next(), counter.next(): counter.next()}
    for k in table:
        v = v * 3 + k + table[k]
    w = 1 if x < counter.next() + x < i + 9 else 0
    return v * 2 + w + counter.v


@case
def decorators_come_before_defaults(x, i, iv):
    counter = Counter(0)

    def times(n):
        def decorate(f):
            return lambda v: f(v) * n

        return decorate

    @times(counter.next())
    @times(counter.next() + 5)
    def f(v, k=counter.next()):
        return v + k

    return f(x)


# ---- finally ----


@case
def finally_on_a_traced_return(x, i, iv):
    log = [0]

    def f():
        try:
            if x > 4:
                return log[0] + 1
            return 2
        finally:
            log[0] += 5

    return f() * 10 + log[0]


@case
def finally_on_a_traced_break(x, i, iv):
    s = [0]
    for j in iv.range(5):
        try:
            if j == x:
                break
            s[0] += 1
        finally:
            s[0] += 10
    return s[0]


@case
def finally_on_a_traced_continue_of_a_variable(x, i, iv):
    s = 0
    for j in iv.range(5):
        try:
            if j == x:
                continue
            s += 1
        finally:
            s += 10
    return s


@case
def finally_around_loops_that_a_return_leaves(x, i, iv):
    g = [0]

    def f():
        s = 1
        try:
            for j in iv.range(6):
                for k in range(3):
                    if j * k == x:
                        return s
                    s += k
            s += 100
        finally:
            s += 1000
            g[0] += s
        return -s

    return f() + 3 * g[0]


@case
def finally_in_finally(x, i, iv):
    s, log = 0, []

    def f():
        nonlocal s
        for j in range(3):
            try:
                try:
                    if x + j == 4:
                        break
                    if x + j == 6:
                        return s
                    s += 1
                finally:
                    s = s * 2 + (1 if i > 3 else 0)
            finally:
                s += 7
        s += 100
        return s * 2

    return f() * 1000 + s


@case
def finally_and_except(x, i, iv):
    log = [0]

    def f(k):
        try:
            if k > 1:
                raise ValueError
            if x > 3:
                return 5
        except ValueError:
            if i > 7:
                return 6
            log[0] += 20
        else:
            log[0] += 30
        finally:
            log[0] += 1
        return 7

    return f(0) * 10000 + f(2) * 1000 + log[0]


@case
def an_exception_leaves_unrolled_loops_and_functions(x, i, iv):
    def find(k):
        for v in (1, 2, 3):
            if v == k:
                raise KeyError(k)
        return x

    total = 0
    for k in (5, 2, 7):
        try:
            total += find(k)
        except KeyError:
            if x > 2:
                continue
            total += 100
    return total


# ---- bools, loops that become those of the kernel ----


@case
def a_bool_is_carried(x, i, iv):
    found = False
    for j in iv.range(8):
        if j * j == x:
            found = True
            break
    first, v = True, 0
    for j in iv.range(4):
        if first:
            v = x
        else:
            v = v * 2 % 1000
        first = False
    return v + (1000 if found else 0)


@case
def nested_flags(x, i, iv):
    found, at = False, -1
    for j in iv.range(8):
        for k in iv.range(8):
            if j * k == x + 1:
                found, at = True, j * 10 + k
                break
        if found:
            break
    return at


@case
def a_while_whose_flag_the_kernel_sets(x, i, iv):
    found, j = False, 0
    while not found:
        if j * j >= x:
            found = True
        j += 1
    n = 4
    while n > 0:
        n = n - x - 1
    return j * 100 + n


# ---- what is called ----


@case
def closures_of_one_function(x, i, iv):
    def compose(f, g):
        def h(v):
            return f(g(v))

        return h

    def double(v):
        return v * 2 if v > 3 else v

    def twice(f):
        def w(*a):
            return f(*a) * 2

        return w

    @twice
    @twice
    def q(v):
        if v > 4:
            return v
        return 1

    a = lambda v: v + 1
    return compose(compose(a, double), compose(double, a))(x) + 100 * q(x)


@case
def recursion_that_compile_time_values_end(x, i, iv):
    def power(n):
        if n == 0:
            return 1
        half = power(n // 2)
        return half * half * (x if n % 2 else 1)

    return power(5)


class Level(enum.IntEnum):
    LOW = 2
    HIGH = 5


@case
def a_member_of_an_enum_is_an_integer(x, i, iv):
    a = [x, i, 4]
    v = Level.LOW
    if x > Level.HIGH:
        v = x + Level.LOW
    return v * 10 + a[Level.LOW] + (Level.HIGH if i > 3 else Level.LOW)


class Clamped:
    """An object whose methods Python calls for operators, each with control flow of the kernel."""

    def __init__(self, l):
        self.l = l

    def __getitem__(self, k):
        if k > 5:
            return self.l[1]
        return self.l[0]

    def __setitem__(self, k, v):
        if v > 3:
            self.l[k] = v
        else:
            self.l[k] = -v

    def __add__(self, o):
        if isinstance(o, str):
            return NotImplemented
        if self[0] > o[7]:
            return Clamped([self.l[0], 0])
        return Clamped([o.l[0], 1])

    def __rsub__(self, o):
        return o * 2 if self.l[0] > 4 else o - self.l[0]

    def __iadd__(self, o):
        if o > 3:
            self.l[0] += o
        return self

    def __lt__(self, o):
        if self.l[0] == 3:
            return self.l[0] < 100
        return self.l[0] < o.l[0]

    def __eq__(self, o):
        return self.l[0] == o.l[0] or self.l[1] == o.l[1]

    def __contains__(self, v):
        return v == self.l[0] or v == self.l[1]

    def __neg__(self):
        return -self.l[0] if self.l[0] > 5 else self.l[0]

    def __abs__(self):
        return self.l[0] if self.l[0] > self.l[1] else self.l[1]

    def __len__(self):
        return 2 if len(self.l) > 1 and True else 1

    @property
    def big(self):
        if self.l[0] > 5:
            return 1
        return 0

    @big.setter
    def big(self, v):
        if v > 4:
            self.l[0] = v

    @functools.cached_property
    def kept(self):
        self.l[1] += 1
        if self.l[0] > 5:
            return 10
        return 20


class Sharp(Clamped):
    def __radd__(self, o):
        return Clamped([o.l[0] * 3 if o.l[0] > 2 else 7, 5])


@case
def operators_of_objects(x, i, iv):
    c, d = Clamped([x, i]), Clamped([i, x])
    r, s = c + d, c + Sharp([i, 1])
    v = r.l[0] * 10 + r.l[1] + s.l[0] * 3 + s.l[1]
    v += 100 if c < d else 200
    v += 1000 if c == d else 2000
    v += 3000 if c != Clamped([4, 5]) else 5000
    v += 7 if 3 in c else 0
    v += 9 if 5 not in c else 0
    return v * 3 + (-c) + abs(c) + len(c) + (x - d) + c[x] * 11


@case
def stores_and_properties_of_objects(x, i, iv):
    c, d = Clamped([x, i]), Clamped([i, x])
    c[1] = x
    d[0] += 2
    c += x
    c.big = x + 1
    d.big += 4
    v = c.kept + c.kept * 3
    return v * 1000 + c.l[0] * 100 + c.l[1] * 10 + d.l[0] * 7 + d.l[1] + c.big


@case
def a_chain_of_comparisons_of_objects(x, i, iv):
    a, b, c = (Clamped([k, k]) for k in (x, i, 9))
    return (1 if a < b < c else 0) + (2 if a == b != c else 0)


@case
def a_call_in_a_chain_of_comparisons(x, i, iv):
    log = [0]

    def look(v):
        return v

    y = 0
    v = 1 if 2 < x < look(i) <= (look(9)) else 0
    if 2 < x < 5:
        y = log[0] = 3
    return v * 10 + y + log[0]


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_the_kernel_gives_what_python_gives(function):
    xs = (np.arange(THREADS) * 7 % 11).astype(np.int32)
    wanted = [function(int(x), i, Plain) for i, x in enumerate(xs)]

    @iv.kernel
    def k(xs: iv.Buffer[iv.i32], out: iv.Buffer[iv.i32]):
        t = iv.thread_position_in_grid()
        out[t] = function(xs[t], iv.i32(t), iv)

    out = np.zeros(THREADS, np.int32)
    k[THREADS, THREADS](xs, out)
    assert out.tolist() == wanted


def test_memory_is_read_before_the_value_that_is_added():
    @iv.kernel
    def k(out: iv.Buffer[iv.i32], v: iv.Buffer[iv.f32x2]):
        def other():
            out[0] += 10
            return 1

        out[0] += other()
        pair = v[0]

        def second():
            nonlocal pair
            pair.y = 5
            return 2.0

        pair.x += second()
        v[0] = pair

    out, v = np.array([3], np.int32), np.array([[1, 2]], np.float32)
    k[1, 1](out, v)
    assert out[0] == 4
    assert v.tolist() == [[3, 5]]


def test_a_generator_fills_and_reads_a_tile_between_barriers():
    @iv.kernel
    def k(out: iv.Buffer[iv.u32]):
        tile = iv.threadgroup_alloc(iv.u32, 4)
        t = iv.thread_position_in_grid()

        def stage(s):
            iv.threadgroup_barrier()
            tile[t] = t + 10 * s
            iv.threadgroup_barrier()
            return tile[3 - t]

        total = iv.u32(0)
        for v in (stage(s) for s in range(3)):
            total = total * 100 + v
        out[t] = total

    out = np.zeros(4, np.uint32)
    k[4, 4](out)
    assert out.tolist() == [(3 - t) * 10101 + 1020 for t in range(4)]


def refused(k, text):
    with pytest.raises(iv.KernelError, match=text):
        k[4, 4](np.zeros(4, np.int32))


def test_jumps_out_of_a_finally():
    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        for j in range(3):
            try:
                out[0] = 1
            finally:
                break

    refused(k, "a jump cannot leave a `finally`")


def test_an_exception_of_some_threads():
    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        try:
            if out[0] > 0:
                raise ValueError
        except ValueError:
            out[0] = 1

    refused(k, "`raise` in a branch that only some threads take")


def test_an_iterator_that_would_be_taken_from_twice():
    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        items = iter([1, 2, 3])
        for v in items:
            if out[0] > v:
                break
        out[1] = 1

    refused(k, "an iterator moves on .* take its values before, into a list")


def test_an_endless_for():
    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        for v in itertools.count():
            pass

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("invar._control.MAX_ITERATIONS", 50)
        refused(k, "this `for` unrolls more than 50 iterations")


def test_an_operator_that_only_some_threads_evaluate_changes_nothing():
    class Counting:
        def __init__(self):
            self.n = 0

        def __add__(self, o):
            self.n += 1
            return o

    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        c = Counting()
        out[0] = 1 if out[0] > 0 and c + 1 > 0 else 0
        out[1] = c.n

    refused(k, "changes in a part of `and` that not every thread evaluates")


def test_a_call_in_a_chain_of_comparisons_that_only_some_threads_make():
    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        log = [0]

        def count():
            log[0] += 1
            return 9

        out[0] = 1 if 2 < out[0] < count() else 0
        out[1] = log[0]

    refused(k, r"`log\[0\]` changes in a part of `and` that not every thread evaluates")


def test_operands_that_have_no_such_operator():
    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        out[0] = Clamped([1, 2]) + "text"

    refused(k, r"unsupported operand type\(s\) for \+: 'Clamped' and 'str'")
