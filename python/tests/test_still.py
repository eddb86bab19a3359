"""Large objects of Python in branches of a kernel: what its own code changes is carried, and what
other code would change is refused.

Each body changes something nested in a branch; what it gives must be what the same body gives as
Python, thread by thread.
"""

import abc
import collections
import copy
import dataclasses
import decimal
import email.message
import enum
import functools
import heapq
import operator
import random
import subprocess
import sys
import threading

import numpy as np
import pytest

import invar as iv

N = 8


class Tree:
    def __init__(self, depth):
        self.v, self.log = depth, []
        self.kids = [Tree(depth - 1) for _ in range(3)] if depth else []

    def __str__(self):
        self.log.append(1)
        return "tree"

    def __format__(self, how):
        return str(self)

    def __len__(self):
        self.log.append(2)
        return 3

    def __iter__(self):
        self.log.append(3)
        return iter(self.kids)

    def __eq__(self, other):
        return self is other

    __hash__ = object.__hash__

    def __del__(self):
        pass


class Noisy:
    def __get__(self, instance, owner):
        if instance is not None:
            instance.log.append(4)
        return 7


class Kept:
    """Keeps twice what it is given."""

    def __get__(self, instance, owner):
        return instance.twice

    def __set__(self, instance, value):
        instance.twice = value * 2


class Chosen:
    def __init__(self, choice):
        self.choice = choice

    def __bool__(self):
        return self.choice

    def __eq__(self, other):
        return self.choice == other.choice

    __hash__ = object.__hash__


class Alike:
    def __eq__(self, other):
        other.calls.append(1)
        return True

    __hash__ = object.__hash__


class Loud(Tree):
    noise, kept = Noisy(), Kept()

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        self.log.append(5)
        return 9


class Counter:
    """What counts wherever Python runs it."""

    made = [0]

    def __init__(self):
        self.calls = [0]

    def __call__(self, x):
        self.calls.append(x)
        return x

    def step(self, x):
        self.calls.append(x)
        return x


class Made(Counter):
    def __new__(cls):
        cls.made.append(1)
        return object.__new__(cls)


class Chained(collections.ChainMap):
    """A class of the author's over one that keeps what it is given."""

    def __init__(self, table):
        self.maps = [table]


class Letter(email.message.Message):
    """Another such, with an object's own way to be made."""

    def __init__(self, headers):
        self._headers = headers


class Again:
    """An object that says itself what a copy of it is."""

    def __init__(self):
        self.v = 0

    def __copy__(self):
        return self.other


class Choice(enum.Enum):
    FIRST, SECOND = 1, 2


@dataclasses.dataclass
class Pair:
    left: int
    right: int = 2


class Plain:
    pass


class Point(collections.namedtuple("Point", "x y")):
    pass


class Several(list):
    pass


class Listed(list):
    def __init__(self):
        Counter.made.append(2)


@iv.kernel
def another(x: iv.Buffer[iv.f64]):
    x[0] = 9.0


class Stack:
    def __init__(self):
        self.items = [0]

    def __enter__(self):
        self.items.append(1)

    def __exit__(self, *_):
        self.items.append(2)


def world():
    """Everything that the bodies change: too large to be compared each time."""
    return {
        "rows": [[i * j for j in range(20)] for i in range(20)],
        "byname": {f"k{i}": {"a": i, "b": [i, i + 1]} for i in range(50)},
        "tree": Tree(3),
        "loud": Loud(2),
        "stack": Stack(),
        "array": np.arange(100),
        "made": collections.defaultdict(list),
        "user": collections.UserDict(a=1),
        "chain": collections.ChainMap({"b": 1}, {"c": 2}),
        "deep": {"a": [{"b": [0] * 70}]},
        "kinds": {1, 2},
        "counter": Counter(),
        "bytes": bytearray(8),
        "again": Again(),
        "two": [1, 2],
        "texture": iv.Texture(np.zeros((2, 2), np.uint8), "r8unorm"),
        "as_numpy": np.frompyfunc(Counter().step, 1, 1),
        "context": decimal.Context(),
        "steps": np.nditer(np.arange(4)),
        "record": np.zeros(1, [("a", np.int32)])[0],
        "polynomial": np.poly1d([1, 2]),
    }


BODIES = []


REFUSED = []


def refused(message):
    def add(function):
        REFUSED.append(pytest.param(function, message, id=function.__name__))
        return function

    return add


def body(function):
    BODIES.append(pytest.param(function, id=function.__name__))
    return function


@body
def an_element(w, i):
    if i > 3:
        w["rows"][7][3] = 5
    return w["rows"][7][3]


@body
def an_element_by_another_name(w, i):
    row = w["rows"][7]
    if i > 3:
        w["rows"][7][3] = i
    return row[3] + w["rows"][7][3]


@body
def a_row_of_two(w, i):
    row = w["rows"][1]
    if i > 3:
        row = w["rows"][2]
    return row[5]


@body
def an_object_far_in(w, i):
    w["tree"].kids[1].kids[2].v = 0
    for j in range(3):
        if i > j:
            w["tree"].kids[1].kids[2].v += i
    return w["tree"].kids[1].kids[2].v


@refused(r"`operator\.setitem\(\)` is called in a branch or loop")
def a_function_that_is_compiled(w, i):
    heap = w["byname"]["k7"]["b"]
    if i > 3:
        operator.setitem(heap, 0, 100)
    return heap[0]


@refused(r"`__setitem__\(\)` changes a Python list")
def a_method_that_is_compiled(w, i):
    w["deep"]["a"][0]["b"].__setitem__(2, 4)
    if i > 3:
        w["deep"]["a"][0]["b"].__setitem__(2, 5)
    return w["deep"]["a"][0]["b"][2]


@refused(r"`update\(\)` changes a Python dict")
def an_update_of_a_dict(w, i):
    if i > 3:
        w["byname"]["k3"].update(a=44)
    return w["byname"]["k3"]["a"]


@refused(r"`symmetric_difference_update\(\)` changes a Python set")
def an_update_of_a_set(w, i):
    if i > 3:
        w["kinds"].symmetric_difference_update({2, 3})
    return len(w["kinds"])


CALLED = r"\(\)` is called in a branch or loop of the kernel"
CHANGES = r"`append\(\)` changes a Python list"
ELSEWHERE = {
    "a_ufunc_in_place": (f"at{CALLED}", lambda w: np.add.at(w["array"], 0, 1)),
    "a_ufunc_into_an_array": (f"add{CALLED}", lambda w: np.add(1, 2, w["array"])),
    "a_function_that_writes": (
        f"`numpy.put_along_axis{CALLED}",
        lambda w: np.put_along_axis(w["array"], np.array([0]), 3, 0),
    ),
    "a_method_of_an_array": (r"`sort\(\)` changes a Python ndarray", lambda w: w["array"].sort()),
    "a_file": (f"`numpy.save{CALLED}", lambda w: np.save("nowhere", w["array"])),
    "a_setting": (f"`numpy.seterr{CALLED}", lambda w: np.seterr(all="ignore")),
    "a_method_without_an_object": (
        f"`list.append{CALLED}", lambda w: list(map(list.append, [w["rows"][0]], [5]))
    ),
    "a_function_handed_over": (
        f"`numpy.copyto{CALLED}", lambda w: list(map(np.copyto, [w["array"]], [1]))
    ),
    "a_function_handed_over_with_an_argument": (
        f"`numpy.copyto{CALLED}", lambda w: list(map(functools.partial(np.copyto, w["array"]), [1]))
    ),
    "a_ufunc_handed_over": (f"add{CALLED}", lambda w: list(map(np.add, [1], [2], [w["array"]]))),
    "a_method_of_arrays_handed_over": (
        f"`ndarray.sort{CALLED}", lambda w: list(map(np.ndarray.sort, [w["array"][::-1]]))
    ),
    "a_method_handed_over": (CHANGES, lambda w: list(map(w["counter"].step, [1]))),
    "an_object_handed_over": (CHANGES, lambda w: list(map(w["counter"], [1]))),
    "a_key": (CHANGES, lambda w: max([1, 2], key=w["counter"].step)),
    "a_step_of_a_reduction": (
        CHANGES, lambda w: functools.reduce(lambda a, b: w["rows"][0].append(b) or a, [1, 2])
    ),
    "a_process": (f"`subprocess.Popen{CALLED}", lambda w: subprocess.Popen(["true"])),
    "a_launch": (f"Launch{CALLED}", lambda w: another[1, 1](w["array"])),
    "a_texture_of_the_authors": (rf"clear{CALLED}", lambda w: w["texture"].clear((1, 1, 1, 1))),
    "levels_of_a_texture": (rf"fill_levels{CALLED}", lambda w: w["texture"].fill_levels()),
    "a_function_for_each_element": (CALLED, lambda w: np.vectorize(w["counter"].step)([1])),
    "a_function_as_one_of_numpy": (CALLED, lambda w: w["as_numpy"]([1, 2])),
    "settings_of_decimals": (rf"clear_traps{CALLED}", lambda w: w["context"].clear_traps()),
    "an_iterator_of_numpy": (rf"iternext{CALLED}", lambda w: w["steps"].iternext()),
    "a_file_of_a_number": (r"`tofile\(\)` changes a Python", lambda w: np.float32(1).tofile("none")),
    "a_part_of_a_record": (r"`setfield\(\)` changes a Python", lambda w: w["record"].setfield(2, np.int32)),
    "a_coefficient_of_a_polynomial": (CALLED, lambda w: w["polynomial"].__setitem__(0, 7)),
    "a_file_as_an_array": (rf"memmap{CALLED}", lambda w: np.memmap("none", np.uint8, "w+", shape=4)),
    "an_object_that_is_made_by_its_author": (f"Made{CALLED}", lambda w: Made()),
    "a_list_of_the_authors": (f"Listed{CALLED}", lambda w: Listed()),
}  # fmt: skip


@pytest.mark.parametrize("name", ELSEWHERE)
def test_what_runs_by_itself_is_refused_in_a_branch(name):
    (message, change), w = ELSEWHERE[name], world()
    before = w["array"].tolist(), w["rows"][0][:], w["counter"].calls[:], Counter.made[:]

    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        if out[0] > 3:
            change(w)

    with pytest.raises(iv.KernelError, match=message) as found:
        k.ir
    assert found.value.filename == __file__
    assert before == (w["array"].tolist(), w["rows"][0], w["counter"].calls, Counter.made)


def assigns_a_setting(w, i):
    type(w["tree"]).setting = i


def assigns_a_setting_by_its_name(w, i):
    setattr(type(w["tree"]), "setting", i)


def adds_to_a_setting(w, i):
    type(w["tree"]).setting += 1


def copies_a_class(w, i):
    copy.copy(type(w["tree"])).setting = i


def assigns_to_a_member(w, i):
    Choice(1).seen = i


def assigns_to_a_member_by_its_name(w, i):
    Choice["FIRST"].seen = i


def assigns_to_a_view(w, i):
    memoryview(w["bytes"])[0] = 100


def assigns_to_an_array_of_other_memory(w, i):
    np.ndarray((1,), np.uint8, w["bytes"])[0] = 100


def assigns_to_a_chain(w, i):
    collections.ChainMap(w["byname"])["k1"] = 5


def assigns_to_a_copy_of_a_chain(w, i):
    collections.ChainMap({}, w["byname"]).copy().maps[1]["new"] = 5


def assigns_to_a_chain_of_the_authors(w, i):
    Chained(w["byname"])["k1"] = 5


def adds_to_a_letter_of_the_authors(w, i):
    Letter(w["rows"][0])["k"] = "v"


def assigns_to_a_copy_that_is_another(w, i):
    copy.copy(w["again"]).new = i


SHARED = {
    assigns_a_setting: r"`Tree\.setting` is assigned in a branch or loop",
    assigns_a_setting_by_its_name: r"`Tree\.setting` is assigned in a branch or loop",
    adds_to_a_setting: r"`Tree\.setting` is assigned in a branch or loop",
    copies_a_class: r"`Tree\.setting` is assigned in a branch or loop",
    assigns_to_a_member: r"`seen` of a Python Choice is assigned in a branch or loop",
    assigns_to_a_member_by_its_name: r"`seen` of a Python Choice is assigned in a branch or loop",
    assigns_to_a_view: "an element of a Python memoryview is assigned in a branch or loop",
    assigns_to_an_array_of_other_memory: "an element of a Python ndarray is assigned in a branch or loop",
    assigns_to_a_chain: "an element of a Python ChainMap is assigned in a branch or loop",
    assigns_to_a_copy_of_a_chain: rf"`collections\.ChainMap\.copy{CALLED}",
    assigns_to_a_chain_of_the_authors: rf"Chained{CALLED}",
    adds_to_a_letter_of_the_authors: "the attribute `_headers` is added to an object in a branch or loop",
    assigns_to_a_copy_that_is_another: "the attribute `new` is added to an object in a branch or loop",
}


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("change", SHARED, ids=lambda change: change.__name__)
def test_what_a_call_gives_and_is_older_does_not_change_in_a_branch(change, loops):
    w, other = world(), Plain()
    Tree.setting, Choice.FIRST.seen, w["again"].other = 3, 3, other
    before = dict(w["byname"]), w["rows"][0][:]

    @iv.kernel
    def branch(out: iv.Buffer[iv.i32]):
        i = iv.thread_position_in_grid.x
        if i < 3:
            change(w, i)

    @iv.kernel
    def loop(out: iv.Buffer[iv.i32]):
        for i in iv.range(out[0]):
            change(w, i)

    try:
        with pytest.raises(iv.KernelError, match=SHARED[change]) as found:
            (loop if loops else branch).ir
        assert found.value.filename == __file__
        assert Tree.setting == 3 and Choice.FIRST.seen == 3 and vars(other) == {}
    finally:
        del Tree.setting, Choice.FIRST.seen
    assert w["bytes"] == bytes(8) and (w["byname"], w["rows"][0]) == before


def makes_plain_objects(i):
    a, b = Plain(), Point(1, i)
    a.v = i
    b.v = 1
    return a.v + b.x + b.v


def makes_dataclasses(i):
    a = Pair(1)
    a.left = i
    a.more = 1
    b = dataclasses.replace(a, right=5)
    return a.left + b.right + copy.copy(a).more


def makes_containers(i):
    a, b, c = Several([1]), collections.deque([1]), bytearray(2)
    a.append(i)
    b[0] = i
    c[0] = 3
    return a[1] + b[0] + c[0]


def makes_mappings(i):
    a, b, c = collections.OrderedDict(k=1), collections.Counter("aab"), collections.UserDict(k=1)
    a["n"], b["n"], c["n"] = i, i, i
    return a["n"] + b["a"] + c["n"]


def makes_arrays(i):
    a, b = np.ndarray(2, np.int32), TABLE.copy()
    a[0], b[0] = 4, 5
    return int(a[0] + b[0] + TABLE[0]) + i


def makes_iterators(i):
    a, b = iter([1, 2]), zip([3], [4])
    return next(a) + next(a) + next(b)[0] + i


def copies_what_is_older(i):
    a, b, c = sorted([3, 1]), copy.deepcopy(KEPT), copy.copy(KEPT)
    a.append(i)
    b["n"] = i
    c["n"] = i
    return a[2] + b["k"][0] + b["n"] + c["n"]


TABLE, KEPT = np.arange(4), {"k": [1]}
MAKING = [
    makes_plain_objects, makes_dataclasses, makes_containers, makes_mappings, makes_arrays, makes_iterators,
    copies_what_is_older,
]  # fmt: skip


@pytest.mark.parametrize("make", MAKING, ids=lambda make: make.__name__)
def test_what_a_call_makes_changes_in_any_way(make):
    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        i = iv.i32(iv.thread_position_in_grid.x)
        if i < 6:
            out[i] = make(i)

    out = np.zeros(N, np.int32)
    k[N, N](out)
    assert out.tolist() == [make(i) if i < 6 else 0 for i in range(N)]
    assert TABLE.tolist() == [0, 1, 2, 3] and KEPT == {"k": [1]}


@pytest.mark.parametrize(
    "make",
    [lambda: type("Made", (), {}), lambda: abc.ABCMeta("Made", (), {}), lambda: enum.Enum("Made", "A B")],
    ids=["type", "another_metaclass", "enum"],
)
def test_a_call_makes_no_class_in_a_kernel(make):
    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        make()

    with pytest.raises(iv.KernelError, match="the class `Made` is made in a kernel: write it outside of the kernel"):
        k.ir


ADVICE = {
    "list": (lambda w: w["rows"][0].append(1), "give a list its full length before, and assign its elements"),
    "dict": (lambda w: w["byname"].update(a=1), "make it with all its keys before, and assign their values"),
    "set": (lambda w: w["kinds"].add(3), "keep a list with a bool for each thing that it may hold"),
    "ndarray": (lambda w: w["array"].fill(3), "keep what changes in a list"),
    "bytearray": (lambda w: w["bytes"].append(3), "keep what changes in a list"),
}


@pytest.mark.parametrize("kind", ADVICE)
def test_what_is_advised_fits_what_would_change(kind):
    w, (change, advice) = world(), ADVICE[kind]

    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        if out[0] > 3:
            change(w)

    with pytest.raises(iv.KernelError) as found:
        k.ir
    assert f"changes a Python {kind} in a branch or loop" in str(found.value)
    assert f": {advice}, or keep values in iv.thread_alloc(...)" in str(found.value)


class Spelled:
    def __init__(self, text):
        self.text = text

    def __str__(self):
        return self.text


class Formatted(Spelled):
    def __format__(self, how):
        return self.text + how


def test_a_format_is_what_the_authors_methods_say():
    said = []

    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        a, b = Formatted("a"), Spelled("b")
        said.append((format(a), format(a, ">3"), f"{a}", f"{a:>3}", format(b), f"{b}", format(3, "02"), f"{3:02}"))

    k.ir
    a, b = Formatted("a"), Spelled("b")
    assert said == [(format(a), format(a, ">3"), f"{a}", f"{a:>3}", format(b), f"{b}", "03", "03")]


def test_a_format_that_an_object_has_not_is_refused():
    b = Spelled("b")

    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        f"{b:>3}"

    with pytest.raises(iv.KernelError, match="unsupported format string"):
        k.ir


def test_what_only_computes_runs_in_a_branch():
    table = np.arange(4)

    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        if out[0] >= 0:
            mine = np.asarray(table)
            out[0] = int(mine.sum()) + sum(map(operator.neg, [1])) + int(np.add(table, 1)[2])
            out[1] = functools.reduce(operator.add, [1, 2]) + len(collections.deque([1]))
            out[2] = int(mine is table)

    out = np.zeros(3, np.int32)
    k[1, 1](out)
    assert out.tolist() == [8, 4, 1] and table.flags.writeable


@refused(r"`__init__\(\)` changes a Python list")
def a_list_that_is_made_again(w, i):
    row = w["rows"][2]
    if i > 3:
        row.__init__([7])
    return row[0]


@refused(r"`heapq\.heapreplace\(\)` is called in a branch or loop")
def a_heap(w, i):
    heap = w["byname"]["k9"]["b"]
    if i > 3:
        heapq.heapreplace(heap, 1000)
    return heap[0] + heap[1]


@refused(r"gives one number when the kernel is compiled")
def a_shuffle(w, i):
    row = w["rows"][3]
    if i > 3:
        random.Random(4).shuffle(row)
    return row[0] * 7 + row[5]


@body
def an_older_list_or_another_one(w, i):
    row = w["two"]
    if i > 3:
        mine = row
        mine[0] = 9
    else:
        mine = [4, 5]
    return mine[0] * 10 + mine[1] + row[0] * 100


@body
def an_older_list_that_was_the_best(w, i):
    best = w["two"]
    if i > 3:
        w["two"][0] = 7
        best = [1, 2]
    return best[0] + w["two"][0] * 10


@refused(r"is a different object on each path through")
def a_change_behind_where_lists_meet(w, i):
    row = w["two"]
    mine = row
    if i > 3:
        row[0] = 9
        mine = [4, 5]
    row[1] = 3
    return mine[1]


@body
def an_in_place_operator(w, i):
    row = w["rows"][3]
    row += [5]
    if i > 3:
        w["rows"][3][20] += 2
    return row[20]


@refused(r"`operator\.setitem\(\)` is called in a branch or loop")
def a_partial_call(w, i):
    put = functools.partial(operator.setitem, w["rows"][4])
    if i > 3:
        put(0, 77)
    return w["rows"][4][0]


@refused(r"`steps` is a generator")
def a_generator(w, i):
    def steps():
        w["rows"][5][0] = 31
        yield 1
        w["rows"][5][0] = 32
        yield 2

    total = 0
    if i > 3:
        for step in steps():
            total += step
    return w["rows"][5][0] + total


@refused(r"`steps` is a generator")
def a_generator_in_a_comprehension(w, i):
    def steps():
        for k in range(3):
            w["rows"][5][k] = 31
            yield k

    seen = 0
    if i > 3:
        seen = sum([k for k in steps()])
    return w["rows"][5][0] + w["rows"][5][2] + seen


@refused(r"is called in a branch or loop of the kernel")
def a_lazy_map(w, i):
    row = w["rows"][6]
    if i > 3:
        list(map(functools.partial(operator.setitem, row, 1), [8]))
    return row[1]


@refused(r"`append\(\)` changes a Python list")
def text_of_an_object(w, i):
    w["tree"].log.append(0)
    a = 0
    if i > 3:
        a = len(f"{w['tree']}")
        w["tree"].log[-1] += a
    else:
        w["tree"].log.append(3)
    return w["tree"].log[-1] + a


@body
def unpacking_an_object(w, i):
    w["tree"].log[:] = [0, 0]
    a, *b = w["tree"]
    if i > 3:
        w["tree"].log[2] = 11
    return w["tree"].log[2] + len(b)


@body
def arguments_from_an_object(w, i):
    def count(*values):
        return len(values)

    w["tree"].log[:] = [0]
    n = count(*w["tree"])
    if i > 3:
        w["tree"].log[1] = n
    return w["tree"].log[1]


@body
def a_descriptor(w, i):
    w["loud"].log[:] = [0]
    n = w["loud"].noise
    if i > 3:
        w["loud"].log[1] += n
    return w["loud"].log[1]


@body
def an_attribute_that_is_made_up(w, i):
    w["loud"].log[:] = [0]
    n = w["loud"].whatever
    if i > 3:
        w["loud"].log[1] += n
    return w["loud"].log[1]


@body
def a_length_as_a_condition(w, i):
    w["tree"].log[:] = [0]
    n = 1 if w["tree"] else 0
    if i > 3:
        w["tree"].log[1] += n
    return w["tree"].log[1]


@refused(CHANGES)
def a_descriptor_in_a_branch(w, i):
    return w["loud"].noise if i > 3 else 0


@refused(CHANGES)
def an_attribute_that_is_made_up_in_a_branch(w, i):
    n = 0
    if i > 3:
        n = w["loud"].whatever
    return n


@refused(CHANGES)
def a_length_as_a_condition_in_a_branch(w, i):
    n = 0
    if i > 3:
        if w["tree"]:
            n = 1
    return n


@refused(CHANGES)
def a_list_of_an_object_in_a_branch(w, i):
    return len(list(w["tree"])) if i > 3 else 0


@refused(CHANGES)
def a_sum_over_an_object_in_a_branch(w, i):
    return sum(kid.v for kid in w["tree"]) if i > 3 else 0


@refused(CHANGES)
def a_text_of_an_object_in_a_branch(w, i):
    return len(str(w["tree"])) if i > 3 else 0


@body
def what_goes_through_an_object(w, i):
    return sum([kid.v for kid in list(w["tree"])]) + len(str(w["tree"])) + i


@refused(CHANGES)
def a_comparison_by_a_search_in_a_branch(w, i):
    n = 0
    if i > 3:
        n = 1 if Alike() in [w["counter"]] else 2
    return n


@body
def a_search_that_values_decide(w, i):
    return 1 if Chosen(i) in (Chosen(2), Chosen(5)) else 0


@body
def what_a_descriptor_keeps(w, i):
    w["loud"].kept = 1
    if i > 3:
        w["loud"].kept = i
    return w["loud"].kept


@body
def a_condition_that_a_value_decides(w, i):
    return 1 if Chosen(i > 3) else 2


@body
def a_decorator(w, i):
    def marking(function):
        w["rows"][8][0] = 5
        return function

    @marking
    def plain(v):
        return v + 1

    if i > 3:
        w["rows"][8][0] += i
    return plain(w["rows"][8][0])


@refused(r"the class `Setting` is made in a kernel")
def the_body_of_a_class(w, i):
    class Setting:
        w["rows"][9][0] = 5

    if i > 3:
        w["rows"][9][0] += i
    return w["rows"][9][0]


@body
def a_deletion(w, i):
    del w["rows"][10][0]
    if i > 3:
        w["rows"][10][0] = 7
    return w["rows"][10][0] + len(w["rows"][10])


@body
def a_context_manager(w, i):
    with w["stack"]:
        if i > 3:
            w["stack"].items[1] = 50
    return w["stack"].items[1] + w["stack"].items[2]


@body
def an_array_of_numpy(w, i):
    w["array"][3] = 50
    total = 0
    if i > 3:
        total += int(w["array"][3])
    return total


@body
def an_entry_that_reading_makes(w, i):
    made = w["made"]
    made["kept"].append(i)
    if i > 3:
        made["kept"][0] += 1
    return made["kept"][0] + len(made)


@refused(r"an element of a Python UserDict is assigned in a branch")
def what_an_object_of_collections_holds(w, i):
    w["user"]["a"] = 5
    w["chain"]["b"] = i
    if i > 3:
        w["user"]["a"] += 2
        w["chain"]["b"] += 1
    return w["user"].data["a"] * 100 + w["chain"].maps[0]["b"]


@body
def a_copy(w, i):
    mine = copy.deepcopy(w["rows"])
    if i > 3:
        mine[0][0] = 9
    return mine[0][0] + w["rows"][0][0]


@body
def a_loop_of_the_kernel(w, i):
    for j in RANGE[0](4):
        w["rows"][11][2] += j
        w["byname"]["k5"]["b"][0] = w["rows"][11][2]
    return w["byname"]["k5"]["b"][0]


@body
def a_helper_with_an_early_return(w, i):
    def step(k):
        w["rows"][12][k] += 1
        if i > k:
            return w["rows"][12][k]
        w["rows"][12][k] += i
        return w["rows"][12][k] * 2

    return step(1) + step(5) + w["rows"][12][1]


RANGE = [range]


@pytest.mark.parametrize("function", BODIES)
def test_a_change_is_noticed(function):
    expected = []
    for i in range(N):
        expected.append(function(world(), i))
    w = world()

    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        t = iv.thread_position_in_grid.x
        for j in range(2):  # All is looked at before anything changes.
            if t > 100 + j:
                out[t] = w["rows"][0][0]
        out[t] = function(w, iv.i32(t))

    out = np.zeros(N, np.int32)
    RANGE[0] = iv.range
    try:
        k[N, N](out)
    finally:
        RANGE[0] = range
    assert out.tolist() == expected


@pytest.mark.parametrize("function, message", REFUSED)
def test_a_change_by_other_code_than_the_kernels_is_refused(function, message):
    w = world()

    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        t = iv.thread_position_in_grid.x
        out[t] = function(w, iv.i32(t))

    with pytest.raises(iv.KernelError, match=message) as found:
        k.ir
    assert found.value.filename == __file__


def test_what_other_threads_change_stays():
    class App:
        def __init__(self):
            self.scale, self.frames, self.parts = 2, 0, [[0] * 10 for _ in range(10)]

    app, ended = App(), threading.Event()

    def count():
        while not ended.is_set():
            app.frames += 1
            app.parts[3][4] += 1

    counting = threading.Thread(target=count)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    counting.start()
    seen = []
    try:
        for n in range(3):

            @iv.kernel
            def k(out: iv.Buffer[iv.i32]):
                t = iv.i32(iv.thread_position_in_grid.x)
                seen.append(app.frames)
                for j in range(60):
                    if t > j:
                        out[t] += app.scale + n
                seen.append(app.frames)

            out = np.zeros(N, np.int32)
            k[N, N](out)
            assert out.tolist() == [i * (2 + n) for i in range(N)]
    finally:
        ended.set()
        counting.join()
        sys.setswitchinterval(before)
    # Only ever more: nothing was put back.
    assert seen == sorted(seen) and app.frames == app.parts[3][4]
    assert all(type(x) is int for x in (app.frames, app.parts[3][4]))


def test_what_numpy_would_write_in_place_is_refused_in_a_branch():
    table = np.zeros(4)

    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        if out[0] > 3:
            np.add(table, 1, out=table)
        out[0] = int(table[0])

    with pytest.raises(iv.KernelError, match="is called in a branch or loop of the kernel"):
        k.ir
    assert (table == 0).all()


def test_a_launch_does_not_look_at_what_the_kernel_made():
    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        parts = [out[0], 2]
        total = Stack()
        total.items[0] = sum(parts)
        out[0] = total.items[0] + len(parts)

    k.ir
    reads = k.compile().reads
    assert reads.contents == [] and all(type(value) is not list for _, _, value in reads.names)
