"""What a kernel changes is carried out of its branches and loops, wherever it stands.

Each kernel runs as Python too, thread by thread, in a fresh world; where the tracer cannot carry a
change it says so, naming what changes.
"""

import collections
import operator
import re
import types
from dataclasses import dataclass

import numpy as np
import pytest

import invar as iv

N = 16
TOTALS = [0, 0]
COUNT = 0
TABLE = np.zeros(4, np.int32)


@dataclass
class Pair:
    a: object
    b: object


class Slotted:
    __slots__ = ("a",)


class Counter:
    shared = [0]

    def __init__(self):
        self.total, self.steps = 0, [0, 0]

    def add(self, v):
        self.total += v
        self.steps[1] += 1


class Summed:
    def __init__(self, re, im):
        self.re, self.im = re, im

    def __add__(self, other):
        return Summed(self.re + other.re, self.im + other.im)


def refuses(message):
    def add(function):
        REFUSED.append(pytest.param(function, message, id=function.__name__))
        return function

    return add


def bump(values, v):
    values[0] += v


CASES, REFUSED = [], []


def case(function):
    CASES.append(pytest.param(function, id=function.__name__))
    return function


@case
def lists_of_a_closure(i, _):
    acc = [0]

    def add(v):
        acc[0] += v

    if i > 5:
        add(i)
    for j in _.range(i):
        add(j)
    return acc[0]


@case
def lists_of_an_argument(i, _):
    acc = [0]
    if i % 2 == 0:
        bump(acc, 7)
    for j in _.range(3):
        if j == 1:
            bump(acc, i)
    return acc[0]


@case
def variables_of_an_outer_function(i, _):
    total = 0

    def add(v):
        nonlocal total
        total += v

    if i > 5:
        add(i)
    else:
        add(1)
    for j in _.range(i):
        add(j)
    return total


@case
def variables_that_a_branch_of_an_inner_function_assigns(i, _):
    total = 0

    def add(v):
        nonlocal total
        if v > 3:
            total = v
        while total > 10:
            total -= 3

    for j in _.range(i):
        add(j)
    add(i)
    return total


@case
def globals_that_are_lists(i, _):
    TOTALS[0] = 0
    if i > 3:
        TOTALS[0] = i
    for j in _.range(i):
        TOTALS[0] += j
    return TOTALS[0]


@case
def globals_that_are_numbers(i, _):
    global COUNT
    COUNT = 0
    if i > 3:
        COUNT = i
    for j in _.range(i):
        COUNT += j
    return COUNT


@case
def attributes(i, _):
    p = Pair(0, [1, 2])
    if i > 3:
        p.a = i
    for j in _.range(i):
        p.b[1] += p.a
    return p.a * 1000 + p.b[1]


@case
def attributes_in_slots(i, _):
    p = Slotted()
    p.a = 0
    for j in _.range(i):
        p.a += j
    return p.a


@case
def attributes_of_a_namespace(i, _):
    p = types.SimpleNamespace(x=0, y=types.SimpleNamespace(z=1))
    while p.x < i:
        p.x += 3
        p.y.z += p.x
    return p.x * 100 + p.y.z


@case
def methods(i, _):
    counter = Counter()
    add = counter.add
    for j in _.range(i):
        if j % 2 == 0:
            counter.add(j)
        else:
            add(1)
    return counter.total * 100 + counter.steps[1]


@case
def attributes_of_classes(i, _):
    counter = Counter()
    counter.shared[0] = 0
    if i > 5:
        Counter.shared[0] = i
    return counter.shared[0]


@refuses(r"a slice of a Python list is assigned in a branch .*: assign its elements one by one")
def slices_of_lists(i, _):
    acc = [0, 1, 2]
    if i > 5:
        acc[0:2] = [i, i]
    return acc[0]


@refuses(r"an element of a Python ndarray is assigned in a branch or loop of the kernel")
def arrays_of_objects(i, _):
    acc = np.array([[0, 1], [2, 3]], dtype=object)
    if i > 5:
        acc[1, 0] = i
    for j in _.range(i):
        acc[0, 1] += j
    return acc[1, 0] * 1000 + acc[0, 1]


@refuses(r"an element of a Python deque is assigned in a branch or loop of the kernel")
def deques_and_default_dicts(i, _):
    queue = collections.deque([0, 1, 2])
    sums = collections.defaultdict(int, even=0, odd=0)
    for j in _.range(i):
        if j % 2 == 0:
            sums["even"] += j
        else:
            sums["odd"] += queue[1]
            queue[1] += 1
    return sums["even"] * 100 + sums["odd"]


@case
def objects_made_anew_each_round(i, _):
    total = Summed(0, 1)
    start = total
    for j in _.range(i):
        total = total + Summed(j, 2)
    if i > 10:
        total = Summed(total.im, total.re)
    return total.re * 100 + total.im + start.re * 7 + start.im


@case
def a_name_of_a_list_that_is_rebound(i, _):
    first = [1, 2]
    acc = first
    for j in _.range(i):
        acc = [v + j for v in acc]
    return acc[0] * 100 + acc[1] + first[0] + 10 * first[1]


@refuses(r"is a different object on each path through .*, so it can only be read behind it")
def a_list_that_is_rebound_and_changed(i, _):
    acc = [1, 2]
    for j in _.range(i):
        acc = [v + j for v in acc]
        acc[1] += 1
    if i > 3:
        acc[0] = 50
    return acc[0] * 100 + acc[1]


@refuses(r"is a different object on each path through .*, so it can only be read behind it")
def a_list_that_one_branch_rebinds(i, _):
    acc = TOTALS[:]
    acc[0] = acc[1] = 3
    if i > 3:
        acc = [i, i]
    acc[0] += 1
    return acc[0] + 100 * acc[1]


@refuses(r"is a different object on each path through .*, so it can only be read behind it")
def lists_that_each_branch_makes(i, _):
    if i > 3:
        row = Pair([1, i], 2)
    else:
        row = Pair([3, 4], i)
    row.a[1] += 1
    row.b += row.a[0]
    return row.a[0] + 10 * row.a[1] + 100 * row.b


@refuses(r"is a different object on each path through .*, so it can only be read behind it")
def two_lists_that_change_places(i, _):
    one, two = [1, i], [3, 4]
    for j in _.range(i):
        one[0] += j
        if j % 3 == 1:
            one, two = two, one
        two[1] += 1
    return one[0] + 10 * one[1] + 100 * two[0] + 1000 * two[1]


@refuses(r"is a different object on each path through .*, so it can only be read behind it")
def a_function_that_returns_a_list_made_on_each_path(i, _):
    def pick():
        if i > 3:
            return [i, 1]
        return [2, i]

    pair = pick()
    pair[0] += 5
    return pair[0] * 100 + pair[1]


@case
def one_of_two_lists_that_is_only_read(i, _):
    a, b = [i, 1], [2, i]
    if i > 3:
        chosen = a
    else:
        chosen = b
    return chosen[0] * 100 + chosen[1] * 10 + a[0] + b[1]


@case
def a_name_that_a_branch_changes_and_rebinds(i, _):
    a, b = [i, 1], [2, i]
    d = a
    if i > 4:
        d[0] += 1
        d = [1, 5]
        b = a
    return a[0] * 10000 + b[0] * 100 + d[0]


@case
def a_second_name_that_begins_in_a_branch(i, _):
    a = [i, 1]
    if i > 4:
        b = a
        b[1] = 5
    else:
        a[0] = 7
    return a[0] * 10 + a[1]


@case
def objects_of_a_list_in_turn_in_a_branch(i, _):
    pairs = [Pair(i, 1), Pair(2, 3)]
    if i > 4:
        for p in pairs:
            p.a += 1
    elif i > 2:
        q = pairs[1]
        q.a = 9
    return pairs[0].a * 10 + pairs[1].a


@case
def what_a_branch_changes_and_rebinds(i, _):
    c = [3, 4]
    h = [c]
    if i > 4:
        c[1] += 1
        c = [i, i]
    return h[0][1] + c[0]


@case
def one_of_two_rows_in_each_branch(i, _):
    rows = [[i, 1], [2, 3]]
    if i > 4:
        r = rows[1]
        r[0] += i
    else:
        r = rows[0]
        r[0] += 5
    return rows[0][0] * 1000 + rows[1][0] * 10 + r[1]


@case
def one_of_two_entries_of_a_dict_in_each_branch(i, _):
    state, t = {"a": [i, 2], "b": [3]}, None
    if i > 4:
        cur = state["a"]
        cur[0] *= 2
        t = cur
        if i > 6:
            t[0] += 1
    else:
        cur = state["b"]
        cur[0] *= 2
    return state["a"][0] * 100 + state["b"][0]


@case
def tuples_of_one_of_two(i, _):
    a, b = [i], [1]
    if i > 4:
        pair = (a, 1)
        a[0] += 3
    else:
        pair = (b, 2)
    return pair[0][0] * 100 + pair[1] * 10 + a[0]


@case
def two_names_of_a_list_that_changes(i, _):
    first = [1, 2]
    second = first
    for j in _.range(i):
        first[0] += j
    if i > 4:
        second[1] = i
    return first[0] + 100 * second[1] + 1000 * second[0] + first[1]


@case
def default_arguments(i, _):
    def add(v, acc=[0]):  # noqa: B006
        acc[0] += v
        return acc[0]

    if i > 4:
        add(i)
    return add(0)


@case
def early_returns_of_functions_that_change_objects(i, _):
    p = Pair(0, 0)

    def step(j):
        if j == 3:
            return 5
        p.a += 1
        if j > 6:
            p.b += 2
            return 1
        return 2

    total = 0
    for j in _.range(i):
        total += step(j)
    return total * 10000 + p.a * 100 + p.b


@case
def breaks_out_of_nested_loops(i, _):
    p = Pair(0, [0])
    for j in range(3):
        for k in _.range(i):
            p.b[0] += 1
            if p.b[0] > 9:
                break
            p.a += k
        if p.b[0] > 9:
            break
    return p.a * 100 + p.b[0]


@case
def lists_in_lists_of_a_closure(i, _):
    rows = [[0, 0], [0, 0]]

    def put(r, v):
        rows[r][1] = rows[r][0] + v
        rows[r][0] += 1

    for j in _.range(i):
        put(0, j)
        if j > 4:
            put(1, j)
    return rows[0][1] + rows[1][1] * 10 + rows[1][0] * 100


@case
def second_names_in_loops(i, _):
    parts = [Pair(i, 0), Pair(2, 1)]
    named = {"b": parts[1]}
    for j in _.range(3):
        for p in parts:
            p.a = p.a + j
        chosen = parts[0]
        chosen.b += 1
        q = named["b"]
        if q.a > 4:
            q.b -= 1
        else:
            q.b += 3
    return parts[0].a + 10 * parts[0].b + 100 * parts[1].a + 1000 * parts[1].b


@case
def second_names_in_while(i, _):
    rows = [[i], [1]]
    row, n = None, i
    while n > 0:
        row = rows[1]
        row[0] += n
        for row in rows:
            row[0] += 1
        n -= 1
    return rows[0][0] + 100 * rows[1][0]


@case
def copies_of_what_differs_may_change(i, _):
    acc = [1, 2]
    for j in _.range(i):
        acc = [v + j for v in acc]
    acc = list(acc)
    if i > 3:
        acc[0] = 50
    return acc[0] * 100 + acc[1]


@case
def what_an_iteration_makes_may_change_in_it(i, _):
    total = 0
    for j in _.range(i):
        parts = []
        for k in range(3):
            parts.append(j * k)
        state = {}
        state["first"] = parts.pop()
        total += sum(parts) + state["first"]
    return total


class Python:
    range = staticmethod(range)


@pytest.mark.parametrize("function", CASES)
def test_carries(function):
    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        i = iv.i32(iv.thread_position_in_grid("x"))
        out[i] = function(i, iv)

    out = np.zeros(N, np.int32)
    k[N, 8](out)
    expected = []
    for i in range(N):
        # Default arguments of inner functions are made anew with each call.
        expected.append(function(i, Python))
    TOTALS[:], Counter.shared[:] = [0, 0], [0]
    assert out.tolist() == expected


def refused(function, message, *args):
    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        i = iv.i32(iv.thread_position_in_grid("x"))
        out[i] = function(i, *args)

    with pytest.raises(iv.KernelError, match=message) as e:
        k.ir
    return e.value


@pytest.mark.parametrize("function, message", REFUSED)
def test_refuses_what_is_no_single_object_behind_a_branch_or_holds_no_values(function, message):
    refused(function, message, iv)


SHARED = []


def shares(name):
    def add(function):
        SHARED.append(pytest.param(function, name, id=function.__name__))
        return function

    return add


@shares("ys")
def another_name_beside_a_branch(i):
    xs = [i, 1]
    ys = xs
    if i > 4:
        ys = [0, 0]
    ys[0] += 5
    return xs[0] * 100 + ys[0]


@shares("ys")
def the_other_name_is_changed(i):
    xs = [i, 1]
    ys = xs
    if i > 4:
        ys = [0, 0]
    xs.append(5)
    return len(ys)


@shares("ys")
def a_name_is_extended(i):
    xs = [i, 1]
    ys = xs
    if i > 4:
        ys = [0, 0]
    ys += [3]
    return len(xs)


@shares("ys")
def an_element_is_deleted(i):
    xs = [i, 1]
    ys = xs
    if i > 4:
        ys = [0, 0]
    del ys[0]
    return xs[0] + ys[0]


@shares("a")
def a_third_name_beside_a_swap(i):
    a, b = [i], [1]
    z = a
    if i > 4:
        a, b = b, a
    a[0] += 10
    return z[0] * 100 + b[0]


@shares("a")
def a_third_name_beside_swaps_in_a_loop(i):
    a, b = [0], [100]
    z = a
    for j in iv.range(i):
        a[0] += 1
        a, b = b, a
    return z[0]


@shares("b")
def a_swap_that_brings_it_to_the_other_name(i):
    a, b = [0], [100]
    z = a
    for j in iv.range(i):
        if j > 0:
            b[0] += 1
        a, b = b, a
    return z[0]


@shares("q")
def objects_with_attributes(i):
    p = Pair(i, 0)
    q = p
    if i > 4:
        q = Pair(0, 0)
    q.a += 5
    return p.a * 100 + q.a


@shares("t")
def one_of_two_to_update(i):
    a, b = [i], [1]
    if i > 4:
        t = a
    else:
        t = b
    t[0] += 50
    return a[0] * 100 + b[0]


@shares("h.a")
def an_attribute_that_holds_another(i):
    a = Pair(i, 0)
    h = Pair(a, 0)
    if i > 4:
        h.a = Pair(0, 0)
    h.a.a += 7
    return a.a * 100 + h.a.a


@shares("the returned value")
def a_function_that_returns_one_of_two(i):
    a, b = [i], [1]

    def pick():
        if i > 4:
            return a
        return b

    pick()[0] += 50
    return a[0] * 100 + b[0]


@shares("xs")
def a_parameter_that_is_rebound(i):
    def change(xs):
        if i > 4:
            xs = [0]
        xs[0] += 1
        return xs[0]

    mine = [i]
    return change(mine) * 100 + mine[0]


@shares("ys")
def a_branch_in_a_loop(i):
    xs = [i]
    ys = xs
    for j in iv.range(i):
        if j == 2:
            ys = [0]
        ys[0] += 1
    return xs[0] * 100 + ys[0]


@shares("best")
def a_name_for_the_best_so_far(i):
    best, cur = [0, 0], [i, 1]
    for _ in iv.range(4):
        cur[0] = cur[0] * 3 % 7
        if cur[0] > best[0]:
            best = cur
    return best[0]


@shares("a")
def what_a_loop_in_a_branch_shares(i):
    a, b = [i, 1], [2, i]
    c = [3, 4]
    if i > 5:
        c = b
        for _ in iv.range(3):
            a = b
            b = [i, 7]
    a[1] += 1
    return a[1] + b[1] + c[1]


@shares("t[0]")
def tuples_of_lists(i):
    xs = [i]
    t = (xs, [1])
    if i > 4:
        t = ([1], xs)
    t[0][0] += 5
    return xs[0]


@pytest.mark.parametrize("function, name", SHARED)
def test_objects_with_two_names_do_not_change_behind_a_merge(function, name):
    what = r"is a different object on each path through .*, so it can only be read behind it: change it"
    # What has no name in the code is not quoted.
    quoted = name if " " in name else f"`{name}`"
    refused(function, f"{re.escape(quoted)} {what}")


def test_arrays_of_numbers_cannot_hold_what_differs():
    def f(i):
        local = np.zeros(4, np.int32)
        if i > 3:
            local[1] = 5
        return int(local[1])

    e = refused(f, r"an element of a Python ndarray is assigned in a branch or loop of the kernel")
    assert e.line == f.__code__.co_firstlineno + 3

    def loop(i):
        for j in iv.range(i):
            TABLE[0] += 1
        return int(TABLE[0])

    e = refused(loop, "`\\+=` changes a Python|an element of a Python ndarray is assigned in a branch")
    assert e.line == loop.__code__.co_firstlineno + 2
    assert TABLE[0] == 0


def test_sets_and_bytes_cannot_differ():
    def f(i):
        seen = set()
        if i > 3:
            seen.add(1)
        return len(seen)

    refused(f, r"`add\(\)` changes a Python set in a branch or loop of the kernel")

    def g(i):
        seen = bytearray(2)
        for j in iv.range(i):
            seen[0] = 1
        return seen[0]

    refused(g, "an element of a Python bytearray is assigned in a branch or loop of the kernel")


def test_iterators_cannot_move_on():
    def f(i):
        it = iter([1, 2, 3])
        v = 0
        if i > 3:
            v = next(it)
        return v + next(it)

    refused(f, r"an iterator moves on in a branch or loop of the kernel, .* into a list")

    def g(i):
        it = (n for n in (1, 2, 3))
        v = 0
        for j in iv.range(i):
            v += next(it)
        return v

    refused(g, "an iterator moves on in a branch or loop of the kernel, .* into a list")


@pytest.mark.parametrize(
    "take",
    [
        lambda values, it: 2 in it,
        lambda values, it: values.__iadd__(it),
        pytest.param(lambda values, it: operator.methodcaller("extend", it)(values), id="methodcaller"),
    ],
)
def test_iterators_do_not_move_on_by_operators(take):
    def f(i):
        it = iter([1, 2, 3])
        if i > 3:
            take([], it)
        return len(list(it))

    refused(f, "an iterator moves on in a branch or loop|methodcaller.* is called in a branch or loop")

    def in_place(i):
        it = iter([1, 2, 3])
        if i > 3:
            values = []
            values += it
        return len(list(it))

    refused(in_place, "an iterator moves on in a branch or loop")

    def a_slice(i):
        it = iter([1, 2, 3])
        if i > 3:
            values = []
            values[:] = it
        return len(list(it))

    refused(a_slice, "an iterator moves on in a branch or loop")


WHICH = r"`c` is a different object on each path through the `if` on line \d+, and which one is known only when"


@pytest.mark.parametrize(
    "asked",
    [
        lambda a, b, c: c is a,
        lambda a, b, c: b is not c,
        lambda a, b, c: c == a,
        lambda a, b, c: c in [a],
        lambda a, b, c: c in {a: 1},
        lambda a, b, c: [a, b].count(c) == 1,
        lambda a, b, c: {a: 1}.get(c) == 1,
        lambda a, b, c: id(c) == id(a),
    ],
)
def test_which_object_one_is_behind_a_branch_is_not_known(asked):
    class Node:
        def __init__(self, v):
            self.v = v

    def f(i):
        a, b = Node(1), Node(2)
        c = a
        if i > 3:
            c = b
        return 1 if asked(a, b, c) else 2

    refused(f, WHICH)


def test_that_an_object_is_one_is_known_behind_a_branch():
    class Node:
        def __init__(self, v):
            self.v = v

    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        i = iv.i32(iv.thread_position_in_grid("x"))
        a, b = Node(1), Node(2)
        c = a
        if i > 3:
            c = b
        d = c
        known = c is d and c is not None and a is not b and a in [a, b] and c == c
        out[i] = c.v if known else 0

    out = np.zeros(N, np.int32)
    k[N, N](out)
    assert out.tolist() == [1 + (i > 3) for i in range(N)]


def test_attributes_of_inner_functions_are_not_assigned_in_a_branch():
    def f(i):
        def inner():
            return 1

        inner.calls = 0
        if i > 3:
            inner.calls = 5
        return inner.calls

    refused(f, "the attribute `calls` of a function is assigned in a branch or loop of the kernel")


def test_membership_asks_the_authors_iterator():
    class Asked:
        def __init__(self):
            self.times = 0

        def __iter__(self):
            self.times += 1
            return iter([1, 2, 3])

    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        i = iv.i32(iv.thread_position_in_grid("x"))
        asked = Asked()
        if i > 3:
            if 2 in asked:
                asked.times += 10
        out[i] = asked.times

    out = np.zeros(N, np.int32)
    k[N, N](out)
    assert out.tolist() == [11 * (i > 3) for i in range(N)]


def test_an_object_that_answers_to_every_name_is_no_kernel():
    class Every:
        def __getattr__(self, name):
            return len(name)

        def __call__(self, v):
            return v * 2

    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        i = iv.i32(iv.thread_position_in_grid("x"))
        every = Every()
        out[i] = every(i) + every.abc

    out = np.zeros(N, np.int32)
    k[N, N](out)
    assert out.tolist() == [2 * i + 3 for i in range(N)]


def test_lists_that_two_names_share_keep_their_length():
    def f(i):
        kept = []
        names = {"kept": kept}
        if i > 3:
            kept.append(i)
        return len(names["kept"])

    refused(f, r"`append\(\)` changes a Python list in a branch or loop .* its full length before")


def test_lists_of_an_outer_function_keep_their_length():
    kept = []

    def f(i):
        if i > 3:
            kept.append(i)
        return len(kept)

    refused(f, r"`append\(\)` changes a Python list in a branch or loop of the kernel")


def test_attributes_that_one_path_lacks():
    def f(i):
        p = types.SimpleNamespace()
        if i > 3:
            p.v = i
        return p.v

    refused(f, r"the attribute `v` is added to an object in a branch or loop .* an attribute of the object before")


def test_attributes_of_modules_and_classes_are_not_carried():
    def f(i):
        if i > 3:
            Counter.size = 3
        return 1

    refused(f, "`Counter.size` is assigned in a branch or loop of the kernel")


def test_changes_in_operands():
    def f(i):
        acc = [0]

        def add():
            acc[0] += 1
            return True

        if i > 3 and add():
            return acc[0]
        return 0

    refused(f, r"`acc\[0\]` changes in a part of `and` that not every thread evaluates")

    def g(i):
        acc = [0]

        def add():
            acc[0] += 1
            return 1

        return (add() if i > 3 else 2) + acc[0]

    refused(g, r"`acc\[0\]` changes in a part of a conditional expression")


def test_objects_that_outlive_the_trace_hold_no_traced_values():
    kept = Pair(1, [2, 3])

    @iv.kernel
    def k(x: iv.Buffer):
        kept.b[0] = x[0]
        kept.a = x[1]
        x[2] = kept.a + kept.b[0]

    for dtype in (np.float32, np.int32):
        x = np.array([3, 4, 0], dtype)
        k[1, 1](x)
        assert x[2] == 7
        assert kept == Pair(1, [2, 3])
