"""Control flow of kernels: each form gives what Python gives, thread by thread."""

import functools

import numpy as np
import pytest

import invar as iv

N = 64


def run(kernel, *args, n=N, dtype=np.int32, out=None):
    """What a kernel of (out, ...) leaves in `out`, which begins as zeros."""
    out = np.zeros(n, dtype) if out is None else out
    kernel[n, 32](out, *args)
    return out


def thread():
    return iv.i32(iv.thread_position_in_grid("x"))


X = np.arange(N, dtype=np.int32)


def expect(function, dtype=np.int32):
    return np.array([function(int(i)) for i in X], dtype)


def test_if_elif_else_merges_what_the_branches_assign():
    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        i = thread()
        if i < 10:
            v = i
            w = 1
        elif i < 20:
            v = i * 2
            w = 2
        else:
            v = 7
            w = i
        out[i] = v * 100 + w

    def model(i):
        v, w = (i, 1) if i < 10 else (i * 2, 2) if i < 20 else (7, i)
        return v * 100 + w

    assert (run(k) == expect(model)).all()


def test_if_on_a_python_value_leaves_no_branch():
    flag = True

    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        i = thread()
        if flag:
            out[i] = i
        else:
            out[i] = "not traced"

    assert "if" not in k.ir
    assert (run(k) == X).all()


def test_variable_keeps_its_value_where_a_branch_does_not_assign_it():
    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        i = thread()
        v = 5
        if i > 30:
            v = i
        out[i] = v

    assert (run(k) == expect(lambda i: i if i > 30 else 5)).all()


def test_range_loop_carries_several_variables():
    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        i = thread()
        a, b = 0, 1
        for _ in iv.range(i):
            a, b = b, a + b
        out[i] = a

    def fib(n):
        a, b = 0, 1
        for _ in range(n):
            a, b = b, (a + b + 2**31) % 2**32 - 2**31
        return a

    assert (run(k) == expect(fib)).all()


def test_range_with_start_stop_and_negative_step():
    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        i = thread()
        total = 0
        for j in iv.range(i, 0, -2):
            total += j
        out[i] = total

    assert (run(k) == expect(lambda i: sum(range(i, 0, -2)))).all()


def test_range_counts_down_in_unsigned_numbers():
    @iv.kernel
    def k(out: iv.Buffer[iv.u32]):
        i = iv.thread_position_in_grid("x")
        total = 0
        for j in iv.range(i, 0, -1):
            total += j
        out[i] = total

    assert (run(k, dtype=np.uint32) == expect(lambda i: sum(range(i + 1)), np.uint32)).all()


def test_break_and_continue_in_a_range_loop():
    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        i = thread()
        total = 0
        for j in iv.range(100):
            if j % 3 == 0:
                continue
            if j > i:
                break
            total += j
        out[i] = total

    def model(i):
        total = 0
        for j in range(100):
            if j % 3 == 0:
                continue
            if j > i:
                break
            total += j
        return total

    assert (run(k) == expect(model)).all()


def test_while_on_a_traced_value():
    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        i = thread()
        n, steps = i + 1, 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        out[i] = steps

    def collatz(i):
        n, steps = i + 1, 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        return steps

    assert (run(k) == expect(collatz)).all()


def test_while_true_ends_by_break():
    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        i = thread()
        n = 0
        while True:
            if n * n > i:
                break
            n += 1
        out[i] = n

    assert (run(k) == expect(lambda i: next(n for n in range(99) if n * n > i))).all()


def test_break_and_continue_of_traced_conditions_in_an_unrolled_loop():
    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        i = thread()
        total = 0
        for j in range(6):
            if i == j:
                continue
            if i < j * j:
                break
            total += j + i
        out[i] = total

    def model(i):
        total = 0
        for j in range(6):
            if i == j:
                continue
            if i < j * j:
                break
            total += j + i
        return total

    assert (run(k) == expect(model)).all()


def test_break_of_a_python_condition_in_an_unrolled_loop():
    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        i = thread()
        total = i
        for j in [1, 2, None, 4]:
            if j is None:
                break
            total += j
        out[i] = total

    assert "loop" not in k.ir
    assert (run(k) == X + 3).all()


def test_early_return_of_a_kernel():
    @iv.kernel
    def k(out: iv.Buffer[iv.i32], n: iv.Scalar[iv.i32]):
        i = thread()
        if i >= n:
            return
        for j in iv.range(10):
            if j == i:
                return
        out[i] = i

    assert (run(k, 40) == expect(lambda i: i if 10 <= i < 40 else 0)).all()


def test_what_stands_before_a_jump_happens_once():
    # What follows such a branch stands in a loop of one iteration.
    def ticket(counter, limit):
        mine = iv.atomic_add(counter, 0, 1)
        if mine >= limit:
            return -1
        return iv.i32(mine)

    @iv.kernel
    def k(out: iv.Buffer[iv.i32], counter: iv.Buffer[iv.u32]):
        i = iv.thread_position_in_grid("x")
        out[i] = ticket(counter, 40)
        for n in range(4):
            iv.atomic_add(counter, 1, 1)
            if n == 2 and i >= n:
                break

    counter, out = np.zeros(2, np.uint32), np.zeros(N, np.int32)
    k[N, 32](out, counter)
    assert sorted(out) == [-1] * (N - 40) + list(range(40))
    assert counter.tolist() == [N, 3 * (N - 2) + 4 * 2]

    def shared(x, i):
        scratch = iv.threadgroup_alloc(iv.i32, 32)
        scratch[i] = x
        if x > 3:
            return scratch[i]
        return 0

    @iv.kernel(threadgroup=32)
    def allocates(out: iv.Buffer[iv.i32]):
        i = iv.i32(iv.thread_position_in_threadgroup("x"))
        out[i] = shared(i, i)

    assert allocates.ir.count("alloc threadgroup") == 1
    assert run(allocates, n=32).tolist() == [i if i > 3 else 0 for i in range(32)]


def test_barriers_before_a_jump_of_a_helper():
    def sync(scratch, t, x):
        scratch[t] = x
        iv.barrier()
        first = scratch[0]
        for j in iv.range(3):
            if j == t:
                break
            first += 1
        iv.barrier()
        if first > t:
            return first
        return first + 100

    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        t = iv.i32(iv.thread_position_in_threadgroup("x"))
        out[t] = sync(iv.threadgroup_alloc(iv.i32, 32), t, t + 5)

    model = [5 + min(t, 3) + (0 if 5 + min(t, 3) > t else 100) for t in range(32)]
    assert run(k, n=32).tolist() == model

    def late(t):
        if t > 3:
            return 1
        iv.barrier()
        return 2

    @iv.kernel
    def refused(out: iv.Buffer[iv.i32]):
        t = iv.i32(iv.thread_position_in_threadgroup("x"))
        out[t] = late(t)

    with pytest.raises(iv.VerifyError, match="a threadgroup barrier may be missed"):
        run(refused, n=32)


def test_return_from_everywhere_in_a_helper():
    def find(limit, i):
        if i == 3:
            return -1
        for j in iv.range(limit):
            for m in iv.range(limit):
                if j * m == i:
                    return j * 1000 + m
        if i > 50:
            return i
        return -2

    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        i = thread()
        found = find(6, i)
        out[i] = found

    def model(i):
        if i == 3:
            return -1
        for j in range(6):
            for m in range(6):
                if j * m == i:
                    return j * 1000 + m
        return i if i > 50 else -2

    assert (run(k) == expect(model)).all()


def test_branches_of_which_every_side_leaves():
    def sign(n):
        if n > 2:
            return 10
        else:
            return 20

    def first(n):
        for j in range(3):
            if n + j == 4:
                return j
            elif n + j > 4:
                break
            else:
                continue
        return 7

    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        i = thread()
        total = sign(i) + 100 * first(i)
        for j in iv.range(10):
            total += 1000
            if j + i > 6:
                break
            else:
                continue
        if i > 30:
            out[i] = -total
            return
        else:
            out[i] = total
            return

    def model(i):
        total = sign(i) + 100 * first(i)
        for j in range(10):
            total += 1000
            if j + i > 6:
                break
        return -total if i > 30 else total

    assert (run(k) == expect(model)).all()


def test_return_from_a_loop_in_an_unrolled_loop_of_a_helper():
    def first(i):
        for j in range(3):
            for m in iv.range(5):
                if m * 10 + j == i:
                    return m, j
            if i == 60 + j:
                break
        return 9, i

    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        i = thread()
        a, b = first(i)
        out[i] = a * 100 + b

    def model(i):
        for j in range(3):
            for m in range(5):
                if m * 10 + j == i:
                    return m * 100 + j
            if i == 60 + j:
                break
        return 900 + i

    assert (run(k) == expect(model)).all()


def test_lists_tuples_and_dicts_are_carried_by_element():
    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        i = thread()
        acc = [0, 0, 0]
        point = (0, i)
        table = {"even": 0, "odd": [0]}
        for j in iv.range(i):
            for m in range(3):
                acc[m] += j * m
            point = (point[0] + 1, point[1])
            if j % 2 == 0:
                table["even"] += 1
            else:
                table["odd"][0] += 1
        out[i] = sum(acc) + 1000 * point[0] + point[1] + table["even"] - table["odd"][0]

    def model(i):
        acc = sum(j * m for j in range(i) for m in range(3))
        return acc + 1000 * i + i + (i + 1) // 2 - i // 2

    assert (run(k) == expect(model)).all()


def test_list_elements_are_merged_behind_an_if():
    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        i = thread()
        v = [i, 2]
        if i > 5:
            v[0] = 1
            v[1] += i
        out[i] = v[0] * 100 + v[1]

    assert (run(k) == expect(lambda i: 100 + 2 + i if i > 5 else i * 100 + 2)).all()


class Pair:
    def __init__(self, first):
        self.first, self.rest = first, [first, 1]


def test_objects_made_on_the_only_path_go_on_with_what_they_hold():
    @iv.kernel
    def k(x: iv.Buffer[iv.i32], y: iv.Buffer[iv.i32]):
        i = iv.thread_position_in_grid("x")
        if i > 3:
            return
        else:
            items = [x[i], 2]
            table = {"twice": x[i] * 2}
            pair = Pair(x[i] + 5)
        items[0] += 1
        table["twice"] += 3
        pair.first += 1
        pair.rest[1] += pair.rest[0]
        y[i] = items[0] * 1000 + table["twice"] * 100 + pair.first * 10 + pair.rest[1] + items[1]

    x, y = np.arange(6, dtype=np.int32), np.zeros(6, np.int32)
    k[6, 6](x, y)
    assert y.tolist() == [1368, 2579, 3790, 5001, 0, 0]


def test_logical_operators_and_chained_comparisons():
    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        i = thread()
        v = 0
        if 3 < i <= 10 or i == 40 and not i == 41:
            v += 1
        if not (i < 20 or i > 30):
            v += 2
        out[i] = v

    def model(i):
        return (3 < i <= 10 or i == 40) + 2 * (20 <= i <= 30)

    assert (run(k) == expect(model)).all()


def test_the_right_side_of_and_does_not_access_where_the_left_is_false():
    @iv.kernel
    def k(out: iv.Buffer[iv.i32], x: iv.Buffer[iv.i32], n: iv.Scalar[iv.i32]):
        i = thread()
        if i < n and x[i] > 0:
            out[i] = x[i]
        out[i] += x[i] if i < n else -1
        out[i] += iv.load_if(i < n, x, i, 5)

    x = np.arange(-5, 15, dtype=np.int32)
    out = np.zeros(N, np.int32)
    assert iv.check(k, grid=N, threadgroup=32)(out, x, 20)
    k[N, 32](out, x, 20)

    def model(i):
        return max(x[i], 0) + 2 * x[i] if i < 20 else 4

    assert (out == expect(model)).all()


def test_comprehensions_closures_and_globals_are_compile_time():
    weights = [3, 5, 7]

    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        i = thread()
        parts = [w * i for w in weights]
        out[i] = sum(p + j for j, p in enumerate(parts)) + N

    assert (run(k) == X * 15 + 3 + N).all()


def test_inner_functions_and_lambdas():
    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        i = thread()
        double = lambda v: v * 2

        def clamp(v, high):
            if v > high:
                return high
            return v

        out[i] = clamp(double(i), 50)

    assert (run(k) == np.minimum(X * 2, 50)).all()


def test_a_literal_carried_by_a_loop_takes_the_type_carried_back():
    @iv.kernel
    def k(out: iv.Buffer[iv.f16], x: iv.Buffer[iv.f16]):
        i = thread()
        total, count = 0, 0.0
        for j in iv.range(4):
            for m in iv.range(2):
                total += x[i]
            count += 1
        out[i] = total + iv.f16(count)

    x = np.linspace(0, 1, N).astype(np.float16)
    out = np.zeros(N, np.float16)
    k[N, 32](out, x)
    total = np.zeros(N, np.float16)
    for _ in range(8):
        total = total + x
    assert (out == total + np.float16(4)).all()


def test_a_loop_in_a_branch_in_a_loop():
    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        i = thread()
        total = 0
        for j in iv.range(i):
            if j % 2 == 0:
                m = 0
                while m < j:
                    total += m
                    m += 1
            else:
                total -= 1
        out[i] = total

    def model(i):
        return sum(sum(range(j)) if j % 2 == 0 else -1 for j in range(i))

    assert (run(k) == expect(model)).all()


def test_string_annotations_resolve(tmp_path, monkeypatch):
    source = (
        "from __future__ import annotations\n"
        "import invar as iv\n"
        "@iv.kernel\n"
        "def k(out: iv.Buffer[iv.u32]):\n"
        "    i = iv.thread_position_in_grid()\n"
        "    out[i] = i + 1\n"
    )
    (tmp_path / "future_kernel.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    import future_kernel

    assert (run(future_kernel.k, dtype=np.uint32) == X + 1).all()


def test_many_jumps_agree_with_python():
    def shape(i, a, b):
        total = 0
        for j in iv.range(a):
            if (i + j) % 5 == 4:
                continue
            n = j
            while n < b:
                n += 3
                if n == i % 7 + 4:
                    continue
                if n > i % 11 + 6:
                    break
                if (n + total) % 37 == 36:
                    return total - 1000
                total += n
            if total > 60 + i:
                break
        for j in range(4):
            if total % (j + 2) == 0:
                if (total + i) % 3 == 1:
                    return total * 2
                continue
            total += j
            if total % 13 == 0:
                break
        return total

    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        i = thread()
        out[i] = shape(i, 9, 20) + 10000

    def model(i):
        source = shape.__code__
        scope = {"iv": type("iv", (), {"range": range}), "__builtins__": __builtins__}
        import types

        return types.FunctionType(source, scope)(i, 9, 20) + 10000

    assert (run(k) == expect(model)).all()


# ---- assignments in expressions, deleted variables, searches ----


def test_assignment_in_the_condition_of_a_loop():
    @iv.kernel
    def k(out: iv.Buffer[iv.i32], x: iv.Buffer[iv.i32]):
        i, n, total = thread(), 0, 0
        while (v := x[n]) < 20 and n < i:
            total += v
            n += 1
        out[i] = total

    assert (run(k, X) == expect(lambda i: sum(range(min(i, 20))))).all()


def test_assignment_left_of_and_in_a_comprehension_and_in_a_conditional_expression():
    @iv.kernel
    def k(out: iv.Buffer[iv.i32], x: iv.Buffer[iv.i32]):
        i = thread()
        if (v := x[i] - 20) > 0 and v < 9:
            out[i] = v
        else:
            parts = [(last := x[j] + i) for j in range(3)]
            out[i] = (w if (w := last + parts[0]) > 50 else -w)

    def model(i):
        return i - 20 if 20 < i < 29 else (2 * i + 2 if 2 * i + 2 > 50 else -2 * i - 2)

    assert (run(k, X) == expect(model)).all()


def test_a_deleted_variable_has_no_value():
    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        i, v = thread(), 3
        if i > 2:
            w = i
            out[i] = w + v
            del w

    assert (run(k) == expect(lambda i: i + 3 if i > 2 else 0)).all()

    @iv.kernel
    def bad(out: iv.Buffer[iv.i32]):
        v = 3
        if thread() > 2:
            del v
        out[0] = v

    with pytest.raises(iv.KernelError, match="`v` has been deleted: assign it again first"):
        bad.ir


def test_in_any_and_all_of_traced_values():
    @iv.kernel
    def k(out: iv.Buffer[iv.i32], x: iv.Buffer[iv.i32]):
        i = thread()
        out[i] = 0
        if x[i] in (3, 7, i - 1) and x[i] not in [7]:
            out[i] = 1
        if any(x[j] == i for j in range(5)):
            out[i] += 10
        if all([x[i] > 20, x[i] < 30]):
            out[i] += 100

    def model(i):
        return (i == 3) + 10 * (i < 5) + 100 * (20 < i < 30)

    assert (run(k, X) == expect(model)).all()


def test_any_and_all_of_a_generator_stop_at_what_settles_them():
    @iv.kernel
    def claim(slots: iv.Buffer[iv.u32], won: iv.Buffer[iv.u32], log: iv.Buffer[iv.u32]):
        i = iv.thread_position_in_grid.x
        if any(iv.atomic_exchange(slots, k, 1) == 0 for k in range(4)):
            won[i] = 1

        def counted(v):
            log[i] += 1
            return v

        if all(map(counted, [i > 0, i > 1, True, i > 2])):
            won[i] += 10
        if i in (counted(v) for v in (2, i, 3)):
            won[i] += 100

    slots, won, log = np.zeros(4, np.uint32), np.zeros(4, np.uint32), np.zeros(4, np.uint32)
    claim[2, 2](slots, won, log)
    assert slots.tolist() == [1, 1, 0, 0] and won.tolist()[:2] == [101, 101]
    slots[:] = log[:] = won[:] = 0
    claim[4, 4](slots, won, log)
    assert slots.tolist() == [1] * 4 and won.tolist() == [101, 101, 101, 111]
    assert log.tolist() == [1 + 2, 2 + 2, 4 + 1, 4 + 2]


@pytest.mark.parametrize("function", [any, all])
def test_any_and_all_refuse_items_that_change_python(function):
    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        i, seen = thread(), [0]

        def check(v):
            seen[0] += 1
            return v > 3

        out[i] = seen[0] if function(check(v) for v in (i, i + 1)) else 0

    with pytest.raises(iv.KernelError, match=rf"`seen\[0\]` changes while an item is taken for {function.__name__}\(\)"):
        k.ir


def combined(a, b):
    if a > b:
        return a
    return b


def test_functions_of_a_kernel_are_called_by_functions_of_python():
    @iv.kernel
    def k(out: iv.Buffer[iv.i32], x: iv.Buffer[iv.i32]):
        i, seen = thread(), [0]

        def note(v, by=1):
            seen[0] += v * by
            if v > 20:
                return v
            return 20

        def halves(n):
            found = []
            while n >= 1:
                found.append(n)
                n //= 2
            return found

        total = sum(map(note, [x[i], 1]))
        if i > 40:
            total += functools.partial(note, by=2)(i)
        for h in halves(4):
            total += h
        out[i] = total + 1000 * seen[0] + functools.reduce(combined, [i, 3, x[i] - 1])

    def model(i):
        note = lambda v: v if v > 20 else 20
        return note(i) + 20 + (i > 40) * i + 7 + 1000 * (i + 1 + 2 * i * (i > 40)) + max(i, 3, i - 1)

    assert (run(k, X) == expect(model)).all()


def _put(x, i, value):
    x[i] = value
    return True


def test_what_an_and_calls_stores_for_the_threads_that_evaluate_it():
    @iv.kernel
    def k(x: iv.Buffer[iv.f32], y: iv.Buffer[iv.f32], z: iv.Buffer[iv.f32]):
        i = iv.thread_position_in_grid("x")
        if x[i] > 1.0 and _put(y, i, 5.0):
            z[i] = 7.0
        if x[i] > 2.0 or _put(y, i, 6.0):
            z[i] += 0.5

    x = np.array([0, 2, 3], np.float32)
    y, z = np.zeros(3, np.float32), np.zeros(3, np.float32)
    k[3, 1](x, y, z)
    assert y.tolist() == [6, 6, 5] and z.tolist() == [0.5, 7.5, 7.5]
    iv.check(k, grid=3, threadgroup=1)(x, y, z)
