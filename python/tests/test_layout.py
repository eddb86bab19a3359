"""The layout algebra through Python: every recorded case, every docstring's example, and laws."""

import doctest
import json
import pathlib
import pickle

import numpy as np
import pytest

from invar import layout as ly
from invar.layout import Layout, LayoutError, Swizzle, SwizzledLayout

DATA = pathlib.Path(__file__).parents[2] / "tests" / "data"
CASES = json.loads((DATA / "layout_cases.json").read_text())["cases"]


def tup(value):
    return tuple(tup(v) for v in value) if isinstance(value, list) else value


def layout(value):
    value = value.get("layout", value)
    return Layout(tup(value["shape"]), tup(value["stride"]))


def tiler(value):
    if isinstance(value, dict):
        return tuple(tiler(v) for v in value["tile"]) if "tile" in value else layout(value)
    return value


def run(case):
    op, args = case["op"], case["args"]
    a = layout(args["A"]) if "A" in args else None
    if op in ("coalesce", "filter", "right_inverse", "left_inverse"):
        return getattr(ly, op)(a)
    if op == "coalesce_profile":
        return ly.coalesce(a, tup(args["profile"]))
    if op == "complement":
        return ly.complement(a, args["cotarget"])
    if op == "slice_and_offset":
        return ly.slice_and_offset(tup(args["coord"]), a)[0]
    if op == "crd2idx":
        return ly.crd2idx(tup(args["crd"]), a.shape, a.stride)
    if op == "idx2crd":
        return ly.idx2crd(args["idx"], tup(args["shape"]))
    if op == "prefix_product":
        return ly.prefix_product(tup(args["a"]))
    if op in ("shape_div", "inner_product"):
        return getattr(ly, op)(tup(args["a"]), tup(args["b"]))
    if op == "swizzle":
        swizzle = Swizzle(args["bits"], args["base"], args["shift"])
        return [swizzle(i) for i in range(len(case["fn"]))]
    if op == "swizzled_layout":
        return ly.swizzle(a, args["bits"], args["base"], args["shift"]).offsets()
    if op in ("blocked_product", "raked_product"):
        b = args["B"]
        return getattr(ly, op)(a, layout(b) if isinstance(b, dict) else Layout(b, 1))
    return getattr(ly, op.removesuffix("_tile"))(a, tiler(args["B"]))


def holds(case, result):
    """The operation's own definition, where the case records only that it must hold."""
    a = layout(case["args"]["A"])
    if case["op"] == "right_inverse":
        return all(a(result(i)) == i for i in range(result.size()))
    if case["op"] == "left_inverse":
        return all(result(a(i)) == i for i in range(a.size()))
    assert case["op"] == "composition_tile"
    tiles = [Layout(t, 1) if isinstance(t, int) else layout(t) for t in case["args"]["B"]["tile"]]
    return len(tiles) == result.rank() and all(
        part.size() == tile.size() and all(part(i) == mode(tile(i)) for i in range(tile.size()))
        for part, mode, tile in zip(result, a, tiles)
    )


def test_every_recorded_case():
    kinds = {}
    for case in CASES:
        kind = case["expect"]["kind"]
        kinds[kind] = kinds.get(kind, 0) + 1
        try:
            given = run(case)
        except LayoutError as error:
            assert kind in ("reject", "accept_or_reject", "pycute_only"), (case["id"], error)
            continue
        if kind in ("exact", "exact_but_property_fails"):
            if case["op"] in ("swizzle", "swizzled_layout"):
                wanted = case["fn"]
            elif isinstance(given, Layout):
                wanted = layout(case["expect"].get("layout", case["result"]))
            else:
                wanted = tup(case["result"])
            assert given == wanted, case["id"]
        elif kind == "function":
            for other in case["expect"]["layouts"]:
                assert given.offsets() == layout(other).offsets(), case["id"]
        elif kind == "accept_or_reject":
            assert given.offsets() == layout(case["expect"]).offsets(), case["id"]
        else:
            assert kind == "property" and holds(case, given), case["id"]
    assert sum(kinds.values()) == 1696 and kinds["exact"] > 1000


@pytest.mark.parametrize("name", ly.__all__)
def test_examples_of_docstrings(name):
    thing = getattr(ly, name)
    if name == "LayoutError":
        return
    found = doctest.DocTestParser().get_doctest(thing.__doc__, {}, name, None, 0)
    assert found.examples, f"{name} has no example"
    assert doctest.DocTestRunner().run(found).failed == 0


def test_example_of_the_module():
    assert doctest.testmod(ly).attempted >= 4
    assert doctest.testmod(ly).failed == 0


def test_calls_take_indices_coordinates_and_none():
    tile = Layout("((4,2),8):((1,32),4)")
    assert tile(5) == tile((5, 0)) == tile(5, 0) == tile(((1, 1), 0)) == 33
    assert tile(None, 3) == Layout(((4, 2),), ((1, 32),))
    assert tile(np.int32(5)) == 33
    assert [mode.size() for mode in tile] == [8, 8] and tile[-1] == Layout(8, 4)
    with pytest.raises(IndexError):
        tile[2]


def test_equal_layouts_hash_alike_and_pickle():
    a, b = Layout((4, 8)), Layout((4, 8), (1, 4))
    assert a == b and hash(a) == hash(b) and a != Layout((4, 8), (8, 1))
    assert pickle.loads(pickle.dumps(a)) == a
    tile = ly.swizzle(a, 2, 0, 3)
    assert eval(repr(tile)) == tile and eval(repr(a)) == a
    assert pickle.loads(pickle.dumps(Swizzle(2, 1, 3))) == Swizzle(2, 1, 3)
    swizzled = ly.swizzle(Layout((8, 8)), 3, 0, 3)
    assert pickle.loads(pickle.dumps(swizzled)) == swizzled


@pytest.mark.parametrize(
    "wrong, exception, part",
    [
        (lambda: Layout((4, 8), (1,)), LayoutError, "(4,8)"),
        (lambda: Layout(2**70), LayoutError, "64 bits"),
        (lambda: Layout((2**40, 2**40)), LayoutError, "64"),
        (lambda: Layout(4.5), TypeError, "4.5"),
        (lambda: Layout(True), TypeError, "True"),
        (lambda: Layout("(4,"), LayoutError, ""),
        (lambda: Layout("(4):(1)", 3), LayoutError, "leave the second argument out"),
        (lambda: ly.composition("x", 4), TypeError, "'x'"),
        (lambda: ly.composition(Swizzle(1, 0, 1), (2, 2)), LayoutError, "one Layout"),
        (lambda: ly.select((2, 3), 5), LayoutError, "5"),
        (lambda: ly.select((2, 3), -1), LayoutError, "there is no mode -1: modes are numbered from 0"),
        (lambda: ly.select(Layout((2, 3)), [0, -1]), LayoutError, "there is no mode -1"),
        (lambda: ly.size(Layout((2, 3)), mode=[-1]), LayoutError, "there is no mode -1"),
        (lambda: ly.size((2, (3, 5)), mode=[1, 2]), LayoutError, "there is no mode 2"),
        (lambda: ly.size((2, 3), mode="1"), TypeError, "expected the number of a mode, or a list"),
        (lambda: ly.group(Layout((1, 2, 3)), 2, 1), LayoutError, "modes from 2 to before 1 are not part"),
        (lambda: ly.group(Layout((1, 2, 3)), -1, 1), LayoutError, "modes from -1 to before 1"),
        (lambda: ly.zipped_divide(3, 4), TypeError, "expected a Layout or a SwizzledLayout, found 3"),
        (lambda: ly.complement(Layout(4), 1 << 70), LayoutError, "does not fit 64 bits"),
        (lambda: ly.bank_conflicts([0], 4, banks=-1), LayoutError, "banks: -1 is outside"),
        (lambda: Swizzle(3, 0, 1), LayoutError, ""),
        (lambda: ly.composition(Layout((4, 6), (1, 8)), Layout(6)), LayoutError, "divi"),
        (lambda: Layout((4, 8))((1, 2, 3)), LayoutError, ""),
    ],
)
def test_what_is_refused_says_why(wrong, exception, part):
    with pytest.raises(exception) as caught:
        wrong()
    assert part in str(caught.value) and len(str(caught.value)) > 10


def test_endless_nesting_is_refused():
    deep = ()
    for _ in range(5000):
        deep = (deep,)
    for use in (Layout, ly.depth, lambda d: ly.logical_divide(Layout(4), d), lambda d: Layout(4)(d)):
        with pytest.raises(LayoutError, match="nests deeper"):
            use(deep)
    loop = []
    loop.append(loop)
    with pytest.raises(LayoutError, match="nests deeper"):
        Layout(loop)


def test_pictures():
    tile = Layout("((4,2),8):((1,32),4)")
    assert tile.svg().startswith("<svg") and tile._repr_svg_() == tile.svg()
    assert "60" in tile.table()
    huge = Layout((1 << 20, 1 << 20))
    assert huge._repr_svg_() is None
    with pytest.raises(LayoutError, match="cells"):
        huge.svg()
    assert SwizzledLayout(Layout((8, 8)), Swizzle(3, 0, 3))._repr_svg_().startswith("<svg")


# ---- against a reference of our own in plain Python, which is also the peer of the benchmark ----


def offsets(shape, stride):
    """Every offset, leftmost coordinate fastest."""
    if isinstance(shape, int):
        return [i * stride for i in range(shape)]
    out = [0]
    for s, d in zip(shape, stride):
        mode = offsets(s, d)
        out = [low + high for high in mode for low in out]
    return out


def random_layout(rng, depth=2):
    def go(depth):
        if depth == 0 or rng.random() < 0.5:
            return int(rng.integers(1, 5)), int(rng.integers(0, 20))
        modes = [go(depth - 1) for _ in range(rng.integers(1, 4))]
        return tuple(m[0] for m in modes), tuple(m[1] for m in modes)

    return go(depth)


def test_laws_on_random_layouts():
    rng = np.random.default_rng(1)
    composed = 0
    for _ in range(500):
        shape, stride = random_layout(rng)
        a = Layout(shape, stride)
        wanted = offsets(shape, stride)
        assert a.offsets() == wanted == [a(i) for i in range(a.size())]
        assert a.size() == len(wanted) and a.cosize() == max(wanted) + 1
        assert (a.shape, a.stride) == (shape, stride)
        assert Layout(str(a)) == a
        assert ly.coalesce(a).offsets() == wanted == ly.flatten(a).offsets()
        assert [a.index(a.coordinate(i)) for i in range(a.size())] == list(range(a.size()))
        assert ly.is_injective(a) == (len(set(wanted)) == len(wanted))
        b = Layout(*random_layout(rng))
        try:
            c = ly.composition(a, b)
        except LayoutError:
            continue
        composed += 1
        if b.cosize() <= a.size():
            assert c.offsets() == [wanted[i] for i in b.offsets()]
    assert composed > 150


def test_the_stub_has_every_name_and_its_parameters():
    import ast
    import inspect

    stub = ast.parse((pathlib.Path(ly.__file__).with_suffix(".pyi")).read_text())
    functions = {n.name: n for n in stub.body if isinstance(n, ast.FunctionDef)}
    classes = {n.name for n in stub.body if isinstance(n, ast.ClassDef)}
    assert {*functions, *classes} == set(ly.__all__)
    for name, node in functions.items():
        have = list(inspect.signature(getattr(ly, name)).parameters.values())
        assert [a.arg for a in node.args.args] == [p.name for p in have], name
        optional = sum(p.default is not p.empty for p in have)
        assert len(node.args.defaults) == optional, name
