"""What kernels print: iv.print and where its lines go."""

import numpy as np
import pytest

import invar as iv


@iv.kernel
def say(x: iv.Buffer[iv.f32], n: iv.Scalar[iv.u32]):
    i = iv.thread_position_in_grid("x")
    if i < n:
        iv.print("x[{}] is {}", i, x[i])
        for j in iv.range(i):
            iv.print("{} of {:x} {{}}", j, i)
    iv.print("done {} {}", 3, True)


@pytest.mark.parametrize("device", [d.name for d in iv.devices()])
def test_lines_go_to_standard_output(capsys, device):
    x = np.array([0.5, 2, 1e30], np.float32)
    say[3, 64](x, 2, device=device)
    lines = capsys.readouterr().out.splitlines()
    assert lines.count("done 3 true") == 3
    assert lines.count("x[0] is 0.5") == 1
    assert lines.index("x[1] is 2.0") < lines.index("0 of 1 {}")
    assert len(lines) == 6


def test_a_check_shows_lines_too(capsys):
    iv.check(say, grid=3, threadgroup=64)(np.zeros(3, np.float32), 1)
    assert "x[0] is 0.0" in capsys.readouterr().out.splitlines()


def test_what_does_not_fit_is_said(capsys):
    @iv.kernel
    def much():
        iv.print("a line")

    much[70000, 256]()
    told = capsys.readouterr()
    assert told.out == "a line\n" * 65536
    assert "4464 more lines of `print` left out" in told.err


def test_a_text_that_does_not_fit_names_the_line():
    @iv.kernel
    def wrong(n: iv.Scalar[iv.u32]):
        iv.print("{} and {}", n)

    with pytest.raises(iv.KernelError, match="2 of `{}`"):
        wrong[1, 1](1)

    @iv.kernel
    def builtin(n: iv.Scalar[iv.u32]):
        print(n)

    with pytest.raises(iv.KernelError, match="iv.print"):
        builtin[1, 1](1)
