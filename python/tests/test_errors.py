"""What kernels are refused for: the sentence, and the author's own line."""

import re
import traceback

import numpy as np
import pytest

import invar as iv


def refused(kernel, pattern, line=None):
    """The kernel is refused with such a sentence, at the line that has `line` in its text."""
    with pytest.raises(iv.KernelError) as caught:
        kernel.ir
    assert re.search(pattern, caught.value.message), caught.value.message
    assert caught.value.filename == __file__ if line else True
    if line is not None:
        text = open(__file__).read().splitlines()[caught.value.line - 1]
        assert text.endswith(line), f"{text!r} of {caught.value}"
    return caught.value


def tid():
    return iv.thread_position_in_grid("x")


def test_signed_and_unsigned_do_not_mix():
    @iv.kernel
    def k(out: iv.Buffer[iv.u32], n: iv.Scalar[iv.i32]):
        out[0] = tid() + n  # mixed

    refused(k, r"`\+` of u32 and i32.*iv\.u32\(\.\.\.\).*iv\.i32\(\.\.\.\)", "# mixed")


def test_integers_and_floats_do_not_mix():
    @iv.kernel
    def k(out: iv.Buffer[iv.f32], n: iv.Scalar[iv.i32]):
        out[0] = out[1] * n  # mixed

    refused(k, r"`\*` of f32 and i32.*iv\.f32", "# mixed")


def test_a_float_literal_does_not_meet_an_integer():
    @iv.kernel
    def k(out: iv.Buffer[iv.i32]):
        out[0] = out[1] + 1.5  # literal

    refused(k, r"`\+` of i32 and 1\.5: convert the i32 with iv\.f32", "# literal")


def test_a_literal_must_fit():
    @iv.kernel
    def k(out: iv.Buffer[iv.u8]):
        out[0] = out[1] + 300  # literal

    refused(k, r"300 does not fit u8", "# literal")


def test_division_of_integers_names_floor_division():
    @iv.kernel
    def k(out: iv.Buffer[iv.u32]):
        out[0] = out[1] / 2  # div

    refused(k, r"`/` of u32: write `//`.*iv\.f32", "# div")


def test_a_store_of_another_type_names_the_cast():
    @iv.kernel
    def k(out: iv.Buffer[iv.f32]):
        out[0] = tid()  # store

    refused(k, r"a store to `out`: u32 where f32 is needed; convert it with iv\.f32", "# store")


def test_undefined_on_one_path():
    @iv.kernel
    def k(out: iv.Buffer[iv.u32]):
        if tid() > 3:
            v = tid()
        out[0] = v  # use

    refused(k, r"`v` is not assigned on every path through the `if` on line \d+", "# use")


def test_undefined_on_one_path_is_fine_where_it_is_not_used():
    @iv.kernel
    def k(out: iv.Buffer[iv.u32]):
        if tid() > 3:
            v = tid()
            out[v] = v

    assert "if" in k.ir


def test_assigned_only_in_a_loop():
    @iv.kernel
    def k(out: iv.Buffer[iv.u32]):
        for i in iv.range(4):
            v = i
        out[0] = iv.u32(v)  # use

    refused(k, r"`v` is assigned only in the `for` on line \d+.*may have no iterations", "# use")


def test_type_changes_in_a_branch():
    @iv.kernel
    def k(out: iv.Buffer[iv.f32]):
        v = out[1]
        if tid() > 3:
            v = tid()
        out[0] = v  # use

    refused(k, r"`v` changes its type: it is u32 on one path .* and f32 on another", "# use")


def test_type_changes_in_a_loop():
    @iv.kernel
    def k(out: iv.Buffer[iv.f32]):
        v = out[1]
        for i in iv.range(4):
            out[0] = v  # use
            v = tid()

    refused(k, r"`v` changes its type in the loop: it is f32 at first and u32 after", "# use")


def test_an_endless_unrolled_while():
    @iv.kernel
    def k(out: iv.Buffer[iv.u32]):
        n = 4
        while n > 0:  # while
            out[0] = n

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("invar._control.MAX_ITERATIONS", 50)
        refused(k, r"unrolls more than \d+ iterations", "# while")


def test_recursion():
    def down(n):
        if n > 0:
            return down(n - 1)  # again
        return n

    @iv.kernel
    def k(out: iv.Buffer[iv.u32]):
        out[0] = down(tid())

    refused(k, r"`down` calls itself, \d+ calls deep: kernels have no recursion", "# again")


def test_a_kernel_that_returns_a_value():
    @iv.kernel
    def k(out: iv.Buffer[iv.u32]):
        return tid()

    refused(k, r"a kernel returns nothing")


def test_conditions_must_be_bool():
    @iv.kernel
    def k(out: iv.Buffer[iv.u32]):
        if tid():  # if
            out[0] = 1

    refused(k, r"a condition has type u32: compare it, as in `x != 0`", "# if")


def test_python_functions_of_traced_values():
    @iv.kernel
    def k(out: iv.Buffer[iv.u32]):
        for i in range(tid()):  # loop
            out[0] = 1

    refused(k, r"range\(\) of a traced value: for a loop in the kernel write iv\.range", "# loop")


def test_an_index_must_be_an_integer():
    @iv.kernel
    def k(out: iv.Buffer[iv.f32]):
        out[out[0]] = 1.0  # index

    refused(k, r"an index has type f32", "# index")


def test_source_that_cannot_be_had():
    scope = {"iv": iv}
    exec("def k(out: iv.Buffer[iv.u32]):\n    out[0] = 1\n", scope)
    with pytest.raises(iv.KernelError, match="source of `k` cannot be had.*in a file or a notebook"):
        iv.kernel(scope["k"]).ir


def test_functions_of_kernels_outside_of_one():
    with pytest.raises(iv.Error, match="only inside a kernel"):
        iv.sqrt(iv.f32(2))


def test_the_verifiers_findings_have_the_files_lines():
    @iv.kernel
    def k(out: iv.Buffer[iv.u32]):
        if tid() > 3:
            iv.barrier()  # barrier

    with pytest.raises(iv.VerifyError) as caught:
        k.ir
    finding = caught.value.findings[0]
    assert finding.rule == "barrier-not-uniform"
    line = open(__file__).read().splitlines()[finding.line - 1]
    assert line.endswith("# barrier")
    assert "iv.barrier()  # barrier" in str(caught.value)


def test_findings_in_helpers_name_the_calls():
    def meet():
        iv.barrier()

    @iv.kernel
    def k(out: iv.Buffer[iv.u32]):
        if tid() > 3:
            meet()

    with pytest.raises(iv.VerifyError) as caught:
        k.ir
    assert caught.value.findings[0].calls[0][0] == "meet"


def test_each_place_of_a_race_names_its_calls():
    def put(out, i):
        out[i] = i

    def take(out, i):
        return out[i]

    def following(out, i):
        return take(out, (i + 1) % 4)

    @iv.kernel
    def k(out: iv.Buffer[iv.u32], other: iv.Buffer[iv.u32]):
        put(out, tid())
        other[tid()] = following(out, tid())

    out, other = np.zeros(4, np.uint32), np.zeros(4, np.uint32)
    with pytest.raises(iv.CheckError) as caught:
        iv.check(k, grid=4, threadgroup=4)(out, other)
    (race,) = [finding for finding in caught.value.findings if finding.rule == "data-race"]
    names = {label.text.split()[0]: [call[0] for call in label.calls] for label in race.labels}
    assert names == {"read": ["take", "following"], "written": ["put"]}


@iv.kernel
def scale(x: iv.Buffer[iv.f32], y: iv.Buffer[iv.f32], by: iv.Scalar[iv.u32]):
    i = tid()
    y[i] = x[i] * iv.f32(by)


@pytest.mark.parametrize(
    ("change", "pattern"),
    [
        (dict(x=np.zeros(8)), r"argument `x` of `scale` has dtype float64, expected float32"),
        (dict(x=[1.0]), r"argument `x` of `scale` is a list, expected an array"),
        (dict(by=-1), r"argument `by` of `scale` is -1, which does not fit u32"),
        (dict(by=1.5), r"argument `by` of `scale` is 1\.5 \(float\), expected .* u32"),
        (dict(by=True), r"argument `by` of `scale` is True"),
        (dict(x=np.zeros((8, 2), np.float32)[:, 0]), r"argument `x` .* is not contiguous"),
        (dict(z=1), r"kernel `scale` has no parameter `z`"),
    ],
)
def test_arguments_that_do_not_fit(change, pattern):
    y = np.zeros(8, np.float32)
    args = dict(x=np.ones(8, np.float32), y=y, by=2, **{k: v for k, v in change.items() if k == "z"})
    args.update(change)
    with pytest.raises(iv.ArgumentError, match=pattern):
        scale[8, 8](**args)
    assert (y == 0).all()


def test_read_only_and_overlapping_arguments():
    x = np.ones(8, np.float32)
    y = np.zeros(8, np.float32)
    y.flags.writeable = False
    with pytest.raises(iv.ArgumentError, match="`y` of `scale` is read-only memory"):
        scale[8, 8](x, y, 2)
    with pytest.raises(iv.ArgumentError, match="`x` and `y` of `scale` overlap|`y` and `x`"):
        scale[4, 4](x[:5], x[4:], 2)
    # Read-only memory that is only read is fine, and so are neighbours.
    x.flags.writeable = False
    both = np.ones(8, np.float32)
    scale[4, 4](x, both, 2)
    scale[4, 4](both[:4], both[4:], 3)
    assert (both == [2, 2, 2, 2, 6, 6, 6, 6]).all()


def test_missing_and_too_many_arguments():
    x = np.ones(8, np.float32)
    with pytest.raises(iv.ArgumentError, match="needs an argument for `y`"):
        scale[8, 8](x)
    with pytest.raises(iv.ArgumentError, match=r"takes 3 arguments \(x, y, by\), found 4"):
        scale[8, 8](x, x, 1, 1)
    with pytest.raises(iv.ArgumentError, match=r"write scale\[grid, threadgroup\]"):
        scale[8]
    with pytest.raises(iv.ArgumentError, match=r"launched with a grid"):
        scale(x, x, 1)


def test_an_unknown_device():
    x = np.ones(8, np.float32)
    with pytest.raises(iv.Error, match="no device `metal9`"):
        scale[8, 8](x, x.copy(), 1, device="metal9")


def test_an_augmented_assignment_is_named_at_its_line():
    @iv.kernel
    def adds(x: iv.Buffer[iv.i32], y: iv.Buffer[iv.f32]):
        total = iv.f32(0.0)
        total += x[0]
        y[0] = total

    with pytest.raises(iv.KernelError, match="types do not mix") as caught:
        adds.ir
    assert "total += x[0]" in str(caught.value) and "<string>" not in str(caught.value)


def test_errors_show_the_authors_lines_only():
    def wrong(x):
        return x + tid()

    @iv.kernel
    def mixed(x: iv.Buffer[iv.f32]):
        x[0] = wrong(x[1])

    @iv.kernel
    def raises(x: iv.Buffer[iv.f32]):
        raise ValueError("odd")

    @iv.kernel
    def unknown(x: iv.Buffer[iv.f32]):
        x[0] = nowhere  # noqa: F821

    @iv.kernel
    def reads_past(x: iv.Buffer[iv.f32]):
        x[0] = x[9]

    x = np.zeros(1, np.float32)
    for call, kind in (
        (lambda: mixed[1, 1](x), iv.KernelError),
        (lambda: mixed[1, 1].submit(x), iv.KernelError),
        (lambda: mixed[1, 1].prepare(x), iv.KernelError),
        (lambda: mixed.ir, iv.KernelError),
        (lambda: mixed.source("msl"), iv.KernelError),
        (lambda: unknown.ir, iv.KernelError),
        (lambda: raises[1, 1](x), ValueError),
        (lambda: mixed[1, 1](x, x), iv.ArgumentError),
        (lambda: mixed[1], iv.ArgumentError),
        (lambda: mixed(x), iv.ArgumentError),
        (lambda: iv.check(reads_past, grid=1, threadgroup=1)(x), iv.CheckError),
        (lambda: iv.bench(mixed, grid=1, threadgroup=1)(x), iv.KernelError),
        (lambda: iv.bench(mixed, grid=1, threadgroup=1, runs=0), iv.ArgumentError),
        (lambda: iv.check(mixed, grid=1), iv.ArgumentError),
        (lambda: iv.kernel(allow="out")(lambda: None), iv.Error),
        (lambda: iv.prove(x), iv.ArgumentError),
        (lambda: iv.device("metal9"), iv.ArgumentError),
        (lambda: iv.device().array([1]), iv.ArgumentError),
        (lambda: iv.device().zeros(-1, iv.f32), iv.ArgumentError),
        (lambda: iv.device().zeros(1, iv.f32).write(np.zeros(2)), iv.ArgumentError),
        (lambda: iv.zeros(-1, iv.f32), iv.ArgumentError),
        (lambda: iv.threadgroups(-1), iv.ArgumentError),
        (lambda: iv.Buffer[iv.f32, ()], iv.Error),
        (lambda: iv.Struct("S", np.float32), iv.Error),
        (lambda: iv.f32(1, 2), iv.Error),
        (lambda: iv.load("nothing.txt"), iv.Error),
        (lambda: iv.explain("nothing"), iv.Error),
    ):
        with pytest.raises(kind) as caught:
            call()
        found = caught.value
        while found is not None:
            files = {frame.filename for frame in traceback.extract_tb(found.__traceback__)}
            assert files <= {__file__}, files
            found = found.__cause__
