"""The command of the package, on kernels of Python files, and what notebooks show."""

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest

import invar as iv
from invar.__main__ import main

KERNELS = '''
import invar as iv

def put(x, i, v):
    x[i] = v

@iv.kernel
def good(x: iv.Buffer[iv.f32], by: iv.Scalar[iv.f32], times=1):
    i = iv.thread_position_in_grid("x")
    for _ in range(times):
        x[i] *= by

@iv.kernel
def racy(x: iv.Buffer[iv.u32]):
    put(x, 0, iv.thread_position_in_grid("x"))

@iv.kernel
def diverges(x: iv.Buffer[iv.u32]):
    if iv.thread_position_in_grid("x") > x[0]:
        iv.barrier()

@iv.kernel
def mixes(x: iv.Buffer[iv.f32], n: iv.Scalar[iv.i32]):
    x[0] = x[1] * n

@iv.kernel
def sized(x: iv.Buffer[iv.f32], n):
    x[n] = n
'''


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "kernels.py"
    path.write_text(KERNELS)
    return path


def sizes(n, group=32):
    return ["--grid", str(n), "--threadgroup", str(group)]


def test_check_of_a_clean_kernel(file, capfd):
    argv = ["check", f"{file}:good", *sizes(8), "--arg", "x=iota(8)", "--arg", "by=2"]
    assert main(argv) == 0
    assert "clean @good: no findings" in capfd.readouterr().out


def test_run_of_a_kernel_with_compile_time_values(file, capfd):
    argv = ["run", f"{file}:good", *sizes(8), "--arg", "x=iota(8)", "--arg", "by=2"]
    assert main([*argv, "--arg=times=3"]) == 0
    assert "x = [0.0, 8.0, 16.0" in capfd.readouterr().out
    assert main([*argv, "--arg", "times=["]) == 2
    assert "`[` is not a Python number" in capfd.readouterr().err


def test_check_reports_a_race_with_the_files_lines(file, capfd):
    assert main(["check", f"{file}:racy", *sizes(64), "--arg", "x=zeros(1)"]) == 1
    found = capfd.readouterr()
    assert "error[data-race]" in found.err and "x[i] = v" in found.err
    assert f"{file}:5:" in found.err
    assert "put" in found.err
    assert main(["check", f"{file}:racy", "--json", *sizes(64), "--arg", "x=zeros(1)"]) == 1
    document = json.loads(capfd.readouterr().out)
    assert document["results"][0]["diagnostics"][0]["labels"][0]["line"] == 5


def test_what_the_verifier_refuses_is_reported_by_the_command(file, capfd):
    assert main(["check", f"{file}:diverges", *sizes(8), "--arg", "x=zeros(1)"]) == 1
    assert "error[barrier-not-uniform]" in capfd.readouterr().err


def test_what_the_tracer_refuses(file, capfd):
    assert main(["check", f"{file}:mixes", *sizes(8)]) == 1
    found = capfd.readouterr().err
    assert "error: `*` of f32 and i32" in found and "x[0] = x[1] * n" in found
    assert main(["check", "--json", f"{file}:mixes", *sizes(8)]) == 1
    document = json.loads(capfd.readouterr().out)
    assert not document["clean"]
    assert document["results"][0]["diagnostics"][0]["labels"][0]["line"] == 24


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("kernels.py", "several kernels: say which with"),
        ("kernels.py:none", "has no kernel `none`; it has `good`, `racy`"),
        ("missing.py:k", "there is no such file"),
        ("empty.py", "has no kernel: a kernel is a function with @iv.kernel"),
        ("broken.py", "cannot be imported: ZeroDivisionError"),
        ("kernels.py:sized", "to trace kernel `sized`, --arg n= is missing"),
    ],
)
def test_usage(file, name, sentence, capfd):
    (file.parent / "empty.py").write_text("x = 1\n")
    (file.parent / "broken.py").write_text("1 / 0\n")
    assert main(["check", str(file.parent / name)]) == 2
    assert sentence in capfd.readouterr().err


def test_print_and_the_rest_of_the_command(file, capfd):
    assert main(["print", f"{file}:racy"]) == 0
    assert "kernel @racy(%x: device" in capfd.readouterr().out
    assert main(["explain", "data-race"]) == 0
    assert "data-race" in capfd.readouterr().out
    assert main(["explain", "nonsense"]) == 2
    assert main(["nonsense"]) == 2
    assert main(["--version"]) == 0
    assert iv.__version__ in capfd.readouterr().out


def test_a_file_in_the_text_form(tmp_path, capfd):
    path = tmp_path / "k.inv"
    path.write_text(
        "kernel @k(%x: device read_write u32) {\n    %i = thread_position_in_grid x\n"
        "    store %x[%i], %i\n}\n; run: @k(x = zeros(4)) grid(4) threadgroup(4) -> x == iota(4)\n"
    )
    assert main(["check", str(path)]) == 0
    assert "clean @k" in capfd.readouterr().out


def test_the_module_and_the_console_script(file):
    argv = ["run", f"{file}:good", *sizes(4), "--arg", "x=iota(4)", "--arg", "by=3"]
    script = Path(sysconfig.get_path("scripts")) / "invar"
    for command in ([sys.executable, "-m", "invar"], [str(script)]):
        done = subprocess.run([*command, *argv], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "x = [0.0, 3.0, 6.0, 9.0]" in done.stdout


def test_kernels_and_reports_as_html():
    @iv.kernel
    def k(x: iv.Buffer[iv.u32], n: iv.Scalar[iv.i32]):
        x[0] = iv.thread_position_in_grid("x") & 1

    @iv.kernel
    def wrong(x: iv.Buffer[iv.f32]):
        x[0] = iv.u32(1) < 2

    @iv.kernel
    def sized(n):
        pass

    shown = k._repr_html_()
    # Exported notebooks style nothing: carets would point elsewhere.
    assert all("font-family:monospace" in part.split(">")[0] for part in shown.split("<pre")[1:])
    assert "<b>k</b>" in shown and "x: Buffer[u32]" in shown and "%x: device write u32" in shown
    assert "a store to `x`: bool where f32 is needed" in wrong._repr_html_()
    assert "n: a compile-time value" in sized._repr_html_()
    report = iv.check(k, grid=64, threadgroup=32, raises=False)(np.zeros(1, np.uint32), 1)
    shown = report._repr_html_()
    assert "failed" in shown and "error[data-race]" in shown and "&amp; 1" in shown
    assert "every schedule" in shown
    # Each finding once, its head in its colour.
    assert shown.count("error[data-race]</b>: `x[0]` is") == shown.count("`x[0]` is") == len(report.findings)
    clean = iv.check(k, grid=1, threadgroup=32)(np.zeros(1, np.uint32), 1)._repr_html_()
    assert "clean</b>: no findings" in clean
