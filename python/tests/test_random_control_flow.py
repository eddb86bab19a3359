"""Random programs of control flow: the kernel gives what Python gives, thread by thread.

Programs use variables, a list, objects or memory, closures and globals, kernel loops, unrolled
loops, `while`, jumps from anywhere, and forms in which the order of evaluation is seen. The same source is traced as a kernel and run as Python, with `iv.range` as `range`.
"""

import importlib.util
import random
import sys

import numpy as np
import pytest

import invar as iv

PROGRAMS = 100
THREADS = 24


OBJECTS = """\
class Part:
    def __init__(self, u):
        self.u = u

    def raised(self, by):
        return Part((self.u + by) % 101)


g = [0, 0]


def bump(part, v):
    if (v + part.u) % 3 == 0:
        g[0] = (g[0] + v) % 101
        return
    part.u = (part.u + v) % 101


def f(i, iv, m):
    a, b = i, 1
    p = Part(i)
    g[0] = 0

    def swap():
        nonlocal a, b
        a, b = b, a
        if a > b:
            p.u += 1

"""


class Writer:
    #: The variables and parts of things that programs change, and calls that change them.
    places, calls = ["a", "b", "acc[0]", "acc[1]"], []

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = []
        self.loops = 0

    def expression(self):
        r = self.random
        leaf = lambda: r.choice(["a", "b", "i", *self.places[2:], str(r.randint(0, 9))])
        form = r.randrange(5)
        if form == 0:
            return leaf()
        if form == 1:
            return f"({leaf()} if {self.condition()} else {leaf()})"
        # Never negative, where Python's % and the kernel's differ, and small, so that nothing wraps.
        return f"({leaf()} {r.choice('+-')} {leaf()} + 5050) % 101"

    def condition(self):
        r = self.random
        one = lambda: (
            f"({r.choice(['a', 'b', 'i', *self.places[2:]])} + {r.randint(0, 9)}) % "
            f"{r.randint(2, 5)} {r.choice(['==', '!=', '<', '>='])} {r.randint(0, 2)}"
        )
        return r.choice([one(), one(), f"{one()} and {one()}", f"not ({one()} or {one()})"])

    def block(self, indent, depth, in_loop):
        for _ in range(self.random.randint(1, 3)):
            self.statement(indent, depth, in_loop)

    def statement(self, indent, depth, in_loop):
        r, pad = self.random, "    " * indent
        kinds = ["assign"] * 3 + ["augment"] * 2
        kinds += ["call"] * len(self.calls)
        if depth:
            kinds += ["if"] * 4 + ["for", "unrolled", "while"] * 2 + ["return"]
            kinds += ["break", "continue"] * 2 if in_loop else []
        kind = r.choice(kinds)
        if kind == "assign":
            target = r.choice(self.places)
            self.lines.append(f"{pad}{target} = {self.expression()}")
        elif kind == "augment":
            self.lines.append(f"{pad}{r.choice(self.places)} += {r.randint(1, 5)}")
        elif kind == "call":
            self.lines.append(f"{pad}{r.choice(self.calls)}".replace("EXPRESSION", self.expression()))
        elif kind == "if":
            self.lines.append(f"{pad}if {self.condition()}:")
            self.block(indent + 1, depth - 1, in_loop)
            if r.random() < 0.5:
                self.lines.append(f"{pad}else:")
                self.block(indent + 1, depth - 1, in_loop)
        elif kind in ("break", "continue", "return"):
            self.lines.append(f"{pad}if {self.condition()}:")
            value = f" ({self.expression()})" if kind == "return" else ""
            self.lines.append(f"{pad}    {kind}{value}")
        elif kind == "while":
            self.loops += 1
            n = f"n{self.loops}"
            self.lines.append(f"{pad}{n} = i % 4")
            self.lines.append(f"{pad}while {n} > 0:")
            self.lines.append(f"{pad}    {n} -= 1")
            self.block(indent + 1, depth - 1, True)
        else:
            self.loops += 1
            ranges = "iv.range" if kind == "for" else "range"
            self.lines.append(f"{pad}for j{self.loops} in {ranges}({r.randint(1, 3)}):")
            self.block(indent + 1, depth - 1, True)

    def program(self):
        self.lines = ["def f(i, iv, m):", "    a, b = i, 1", "    acc = [0, i]"]
        for _ in range(3):
            self.statement(1, 3, False)
        self.lines.append("    return a + 7 * b + 31 * acc[0] + 57 * acc[1]")
        return "\n".join(self.lines) + "\n"


class ObjectWriter(Writer):
    places = ["a", "b", "p.u", "g[0]"]
    calls = ["bump(p, EXPRESSION)", "swap()", "p.u = p.raised(EXPRESSION).u"]

    def program(self):
        self.lines = OBJECTS.splitlines()
        for _ in range(3):
            self.statement(1, 3, False)
        self.lines.append("    return a + 7 * b + 31 * p.u + 57 * g[0]")
        return "\n".join(self.lines) + "\n"


class MemoryWriter(Writer):
    """What is stored in memory happens once, and in the order of the program."""

    places = ["a", "b", "m[0]", "m[1]"]

    def program(self):
        self.lines = ["def f(i, iv, m):", "    a, b = i, 1"]
        for _ in range(3):
            self.statement(1, 3, False)
        self.lines.append("    return a + 7 * b")
        return "\n".join(self.lines) + "\n"


ORDER = """\
class Part:
    def __init__(self, u):
        self.u = u

    def next(self):
        self.u = (self.u * 3 + 1) % 101
        return self.u


def f(i, iv, m):
    a, b, n, flag = i, 1, 2, False
    l, p = [i, 1, 2, 3], Part(i)

    def bump(k):
        l[k] = (l[k] + a + k) % 101
        m[0] = (m[0] + l[k]) % 101
        return l[k] % 7

    def mix(u, v, w=0):
        nonlocal b
        b = (b + u + 2 * v) % 101
        if b % 3 == 0:
            return w
        return (u - v + w + 5050) % 101

    def fold(k, v):
        if k == 0:
            return v
        if v % 2 == 0:
            return fold(k - 1, (v + k) % 101)
        return (fold(k - 1, (v * 3) % 101) + 1) % 101

    def item(k):
        m[1] = (m[1] + l[k]) % 101
        return (l[k] + k) % 101

    def items(count):
        return (item(k) for k in range(count))

"""


class OrderWriter(Writer):
    """When items are taken, what is evaluated first, and what a ``finally`` sees."""

    places = ["a", "b", "l[0]", "l[1]", "l[2]", "p.u", "m[0]"]
    calls = [
        "l[0] += bump(0)",
        "l[1] += bump(1) + bump(0)",
        "p.u += p.next() % 5",
        "m[0] += bump(1)",
        "m[0] = (m[0] + bump(2) + p.next()) % 101",
        "l[(n := 1)] = (n := 2) + EXPRESSION",
        "l[(n := 1)] += (n := 0) + mix(a, n)",
        "a = l[1] = EXPRESSION",
        "l[0], (a, l[1]) = mix(a, b), (l[0], bump(0))",
        "a, b = b, a",
        "a = mix(bump(0), bump(1), w=p.next())",
        "t = {'x': bump(0), 'y': p.next()}; b = (t['x'] + 2 * t['y'] + l[0]) % 101",
        "b = (bump(0) + 2 * bump(1) + 3 * (4 if bump(0) < bump(1) else l[0])) % 101",
        "a = fold(2, EXPRESSION)",
        "flag = CONDITION",
        "flag = True",
        "flag = False",
    ]

    def condition(self):
        plain = super().condition()
        return self.random.choice([plain, plain, plain, "flag", f"not flag and {plain}"])

    def statement(self, indent, depth, in_loop):
        r, pad = self.random, "    " * indent
        form = r.randrange(4) if depth else 3
        if form == 0:
            self.lines.append(f"{pad}try:")
            self.block(indent + 1, depth - 1, in_loop)
            self.lines.append(f"{pad}finally:")
            self.block(indent + 1, 0, False)
        elif form == 1:
            self.loops += 1
            j = f"j{self.loops}"
            taken = r.choice(
                [
                    f"{j} in items({r.randint(1, 3)})",
                    f"{j} in (l[k] for k in range({r.randint(1, 3)}))",
                    f"{j} in map(lambda k: l[k], range({r.randint(1, 3)}))",
                    f"{j}, k{self.loops} in zip(l, items(2))",
                    f"{j}, l[2] in enumerate(items(2))",
                    f"{j} in l",
                ]
            )
            self.lines.append(f"{pad}for {taken}:")
            self.lines.append(f"{pad}    b = (b + {j}) % 101")
            self.block(indent + 1, depth - 1, True)
        elif form == 2 and r.random() < 0.3:
            self.loops += 1
            j, work = f"j{self.loops}", f"w{self.loops}"
            self.lines.append(f"{pad}{work} = [{r.randint(1, 4)}]")
            self.lines.append(f"{pad}for {j} in {work}:")
            self.lines.append(f"{pad}    if {j} > 1:")
            self.lines.append(f"{pad}        {work}.append({j} // 2)")
            self.block(indent + 1, 0, False)
        else:
            super().statement(indent, depth, in_loop)
            self.lines[-1] = self.lines[-1].replace("CONDITION", super().condition())

    def program(self):
        self.lines = ORDER.splitlines()
        for _ in range(3):
            self.statement(1, 2, False)
        self.lines.append("    if flag:")
        self.lines.append("        a += 1000")
        self.lines.append("    return a + 7 * b + 31 * l[0] + 57 * l[1] + 3 * l[2] + 5 * p.u + 11 * n")
        return "\n".join(self.lines) + "\n"


class Plain:
    range = range


@pytest.mark.large
@pytest.mark.parametrize("writer", [Writer, ObjectWriter, MemoryWriter, OrderWriter])
@pytest.mark.parametrize("chunk", range(10))
def test_random_programs_agree_with_python(chunk, writer, tmp_path):
    jumps = 0
    for seed in range(chunk * PROGRAMS // 10, (chunk + 1) * PROGRAMS // 10):
        source = writer(seed).program()
        jumps += source.count("break") + source.count("continue") + source.count("return (")
        path = tmp_path / f"program_{seed}.py"
        path.write_text(source)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        f = module.f

        @iv.kernel
        def k(out: iv.Buffer[iv.i32]):
            i = iv.i32(iv.thread_position_in_grid())
            m = iv.thread_alloc(iv.i32, 2)
            out[i] = f(i, iv, m) + 31 * m[0] + 57 * m[1]

        out = np.zeros(THREADS, np.int32)
        try:
            k[THREADS, 8](out)
        except iv.Error as e:
            pytest.fail(f"seed {seed}: {e}\n{source}")
        expected = []
        for i in range(THREADS):
            memory = [0, 0]
            expected.append(f(i, Plain, memory) + 31 * memory[0] + 57 * memory[1])
        assert out.tolist() == expected, f"seed {seed}\n{source}"
    assert jumps > 0


if __name__ == "__main__":
    chosen = {w.__name__: w for w in (Writer, ObjectWriter, MemoryWriter, OrderWriter)}
    print(chosen[sys.argv[2]](int(sys.argv[1])).program())
