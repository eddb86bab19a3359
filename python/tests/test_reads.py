"""Globals and variables of outer functions are values of the moment of a launch."""

import collections
import dataclasses
import functools
import importlib
import sys
import types

import numpy as np
import pytest

import invar as iv

SCALE = 2
OFFSETS = [1, 2]
SETTINGS = {"scale": 3}
TABLE = np.arange(4, dtype=np.int32)
OPTIONS = types.SimpleNamespace(scale=1, unused=0)


def scaled(x):
    return x * SCALE


class Model:
    factor = 2

    def __init__(self):
        self.weight, self.launches = 3, 0

    def apply(self, x):
        return x * self.weight * self.factor


MODEL = Model()
traces = []


def result(kernel):
    out = np.zeros(1, np.int32)
    kernel[1, 1](out)
    return int(out[0])


@iv.kernel
def by_global(out: iv.Buffer[iv.i32]):
    out[0] = SCALE


@iv.kernel
def by_helper(out: iv.Buffer[iv.i32]):
    out[0] = scaled(iv.i32(10))


@iv.kernel
def by_list(out: iv.Buffer[iv.i32]):
    out[0] = OFFSETS[0] + OFFSETS[1]


@iv.kernel
def by_dict(out: iv.Buffer[iv.i32]):
    out[0] = SETTINGS["scale"]


@iv.kernel
def by_array(out: iv.Buffer[iv.i32]):
    out[0] = TABLE[1]


@iv.kernel
def by_attribute(out: iv.Buffer[iv.i32]):
    out[0] = OPTIONS.scale


@iv.kernel
def by_method(out: iv.Buffer[iv.i32]):
    out[0] = MODEL.apply(iv.i32(10))


def set_global(name):
    def put(value):
        globals()[name] = value

    return put


def test_a_changed_value_is_seen_by_the_next_launch():
    for kernel, put, before, changed, after in (
        (by_global, set_global("SCALE"), 2, 5, 5),
        (by_helper, set_global("SCALE"), 20, 5, 50),
        (by_list, lambda v: OFFSETS.__setitem__(0, v), 3, 10, 12),
        (by_dict, lambda v: SETTINGS.__setitem__("scale", v), 3, 4, 4),
        (by_array, lambda v: TABLE.__setitem__(1, v), 1, 9, 9),
        (by_attribute, lambda v: setattr(OPTIONS, "scale", v), 1, 6, 6),
        (by_method, lambda v: setattr(MODEL, "weight", v), 60, 1, 20),
    ):
        olds = SCALE, OFFSETS[0], SETTINGS["scale"], TABLE[1].item(), OPTIONS.scale, MODEL.weight
        assert result(kernel) == before, kernel
        put(changed)
        assert result(kernel) == after, kernel
        assert str(after) in kernel.ir or kernel in (by_helper, by_method)
        globals()["SCALE"], OFFSETS[0], SETTINGS["scale"], TABLE[1], OPTIONS.scale, MODEL.weight = olds
        assert result(kernel) == before, kernel


def test_a_class_attribute_and_a_redefined_function_are_seen():
    assert result(by_method) == 60
    Model.factor = 1
    assert result(by_method) == 30
    Model.factor = 2
    old = scaled
    globals()["scaled"] = lambda x: x + 1
    try:
        assert result(by_helper) == 11
    finally:
        globals()["scaled"] = old
    assert result(by_helper) == 20


@pytest.mark.parametrize("values", [(1, 2), (1, 1.0), (0.0, -0.0), (True, 1), ((1, 2), (1, 3))])
def test_variables_of_an_outer_function_are_compared_by_value_and_type(values):
    seen = []
    value = values[0]

    @iv.kernel
    def k(out: iv.Buffer[iv.f32]):
        seen.append(value)
        out[0] = 1.0

    for value in (*values, *values):
        k[1, 1](np.zeros(1, np.float32))
    # Each is traced once: the traces of other values are kept.
    assert list(map(repr, seen)) == list(map(repr, values))


def test_what_the_kernel_does_not_name_or_changes_itself_makes_no_new_trace():
    traces.clear()

    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        traces.append(OPTIONS.scale)
        out[0] = OPTIONS.scale + MODEL.weight

    for n in range(3):
        OPTIONS.unused = MODEL.launches = n
        result(k)
    assert traces == [1]


def test_equal_values_of_other_objects_make_no_new_trace():
    count = []
    value = (1000, "name", 2.5)

    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        count.append(1)
        out[0] = value[0]

    for n in (1000, 2000, 1000):
        value = (n, "na" + "me" * bool(n), 2.5)
        assert result(k) == n
    assert len(count) == 2


def test_a_prepared_launch_keeps_what_it_was_prepared_with():
    value = 3

    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        out[0] = value

    out = np.zeros(1, np.int32)
    ready = k[1, 1].prepare(out)
    value = 4
    ready()
    assert out[0] == 3
    assert result(k) == 4


def test_slots_and_attributes_by_computed_names_are_looked_at_again():
    class Sized:
        __slots__ = ("width",)

    class Open:
        pass

    slotted, plain, name = Sized(), Open(), "width"
    slotted.width = plain.width = 1

    @iv.kernel
    def k(o: iv.Buffer[iv.i32]):
        o[0] = slotted.width
        o[1] = getattr(plain, name)

    o = np.zeros(2, np.int32)
    k[1, 1](o)
    slotted.width, plain.width = 50, 60
    k[1, 1](o)
    assert o.tolist() == [50, 60]


def test_equal_compile_time_values_of_other_parts_are_other_programs():
    @dataclasses.dataclass(frozen=True)
    class Scale:
        by: object
        note: str = dataclasses.field(default="", compare=False)

    @iv.kernel
    def k(out: iv.Buffer[iv.f32], value):
        held = value.by if isinstance(value, Scale) else value
        first = held[0] if isinstance(held, tuple) else held
        out[0] = iv.f32(first) if not isinstance(first, float) else first / 2
        if getattr(value, "note", ""):
            out[0] = 7.0

    def run(value):
        out = np.zeros(1, np.float32)
        k[1, 1](out, value)
        return out[0]

    assert str(run(0.0)) == "0.0" and str(run(-0.0)) == "-0.0"
    assert (run((1,)), run((1.0,)), run((True,))) == (1, 0.5, 1)
    assert (run(Scale(1)), run(Scale(1.0)), run(Scale(1, "other"))) == (1, 0.5, 7)
    count = len(k._compiled)
    for _ in range(3):
        run(float("nan"))
    assert len(k._compiled) == count + 1


def test_a_file_that_changes_is_read_again_with_its_module(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    path = tmp_path / "changing.py"

    def write(value):
        path.write_text(f"import invar as iv\n\n\n@iv.kernel\ndef k(o: iv.Buffer[iv.f32]):\n    o[0] = {value}\n")
        importlib.invalidate_caches()

    def run():
        out = np.zeros(1, np.float32)
        changing.k[1, 1](out)
        return out[0]

    write("1.0")
    import changing

    assert run() == 1
    write("22.0")
    assert run() == 1  # What was loaded runs until it is loaded again.
    importlib.reload(changing)
    assert run() == 22
    write("333.0")
    importlib.reload(changing)
    write("4444.0")
    with pytest.raises(iv.KernelError, match="has changed since it was loaded: load it again"):
        run()


class Base:
    scale = 1.0
    gain = 10.0

    def of(self):
        return self.gain


class Derived(Base):
    def __getattr__(self, name):
        if name == "made_up":
            return 3.0
        raise AttributeError(name)


def test_what_hides_an_attribute_of_a_class_is_seen():
    first, second = Base(), Derived()

    @iv.kernel
    def k(out: iv.Buffer[iv.f32], given):
        out[0] = first.scale + second.of() + given.scale + second.made_up
        if hasattr(first, "late"):
            out[0] += getattr(first, "later", 0.5)

    given = Base()

    def run():
        out = np.zeros(1, np.float32)
        k[1, 1](out, given)
        return out[0]

    assert run() == 15
    first.scale = 2.0
    assert run() == 16
    given.scale = 3.0
    assert run() == 18
    second.gain = 20.0
    assert run() == 28
    second.made_up = 4.0
    assert run() == 29
    del second.gain
    Derived.gain = 30.0
    try:
        assert run() == 39
    finally:
        del Derived.gain
    second.of = lambda: 0.0
    assert run() == 9
    first.late = 1
    assert run() == 9.5
    first.later = 1.0
    assert run() == 10
    del first.later, first.scale
    assert run() == 8.5


def test_defaults_of_helpers_and_objects_of_collections_are_compared():
    def helper(x=1.0):
        return x

    held = collections.UserDict(a=1.0)

    @iv.kernel
    def k(out: iv.Buffer[iv.f32]):
        out[0] = helper() + held["a"]

    def run():
        out = np.zeros(1, np.float32)
        k[1, 1](out)
        return out[0]

    assert run() == 2
    helper.__defaults__ = (2.0,)
    assert run() == 3
    held["a"] = 5.0
    assert run() == 7


def test_lists_are_compared_up_to_a_length():
    table = [[1.0] * 7 for _ in range(128)]  # 1024 elements in all.

    @iv.kernel
    def k(out: iv.Buffer[iv.f32]):
        out[0] = table[100][3]

    def run():
        out = np.zeros(1, np.float32)
        k[1, 1](out)
        return out[0]

    assert run() == 1
    table[100][3] = 2.0
    assert run() == 2


# ---- attributes that are computed once ----


class Counted:
    def __init__(self, size):
        self.size = size

    @functools.cached_property
    def twice(self):
        return self.size * 2

    @functools.cached_property
    def place(self):
        return iv.i32(iv.thread_position_in_grid.x)

    @functools.cached_property
    def places(self):
        return [self.place, (self.size, self.place)]


Counted.again = vars(Counted)["twice"]  # Kept by the name of the first.


def results(kernel):
    out = np.zeros(4, np.int32)
    kernel[4, 4](out)
    return out.tolist()


@pytest.mark.parametrize("name", ["twice", "again"])
@pytest.mark.parametrize("is_there", [False, True])
def test_a_kept_attribute_is_that_of_the_moment(name, is_there):
    counted = Counted(3)

    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        out[iv.thread_position_in_grid.x] = getattr(counted, name)

    if is_there:
        assert counted.twice == 6
    assert results(k) == [6] * 4
    counted.size = 5
    assert results(k) == [6] * 4  # As in Python: it was computed before.
    assert counted.twice == 6
    del counted.twice
    assert results(k) == [10] * 4
    counted.twice = 77
    assert results(k) == [77] * 4
    del counted.twice
    assert counted.twice == 10
    assert results(k) == [10] * 4
    counted.twice = 8
    assert results(k) == [8] * 4


def test_a_kept_value_of_a_kernel_is_not_kept_for_the_next():
    counted = Counted(3)

    @iv.kernel
    def first(out: iv.Buffer[iv.i32]):
        out[iv.thread_position_in_grid.x] = counted.place + counted.places[1][0]

    @iv.kernel
    def second(out: iv.Buffer[iv.i32]):
        out[iv.thread_position_in_grid.x] = counted.places[1][1] * 2 + counted.places[0]

    for _ in range(2):
        assert results(first) == [3, 4, 5, 6]
        assert results(second) == [0, 3, 6, 9]
        assert vars(counted) == {"size": 3}
    counted.place = 7
    assert results(first) == [10] * 4
    assert results(second) == [21] * 4


def test_an_object_without_a_place_to_keep_says_so():
    class Slotted:
        __slots__ = ()

        @functools.cached_property
        def number(self):
            return 1

    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        out[0] = Slotted().number

    with pytest.raises(iv.KernelError, match="No '__dict__' attribute on 'Slotted' instance to cache 'number'"):
        result(k)
