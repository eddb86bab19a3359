"""A machine without LLVM's library: the package is imported there, and all but the device ``cpu`` works."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import numpy as np
import invar as iv

@iv.kernel
def double(x: iv.Buffer[iv.f32], out: iv.Buffer[iv.f32]):
    i = iv.thread_position_in_grid("x")
    out[i] = 2 * x[i]

x, out = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
assert [d.name for d in iv.devices()][:1] == ["checked"]
double[4, 4](x, out, device="checked")
assert (out == 2 * x).all()
assert iv.check(double, grid=4, threadgroup=4)(x, out).passed
assert "kernel void double" in double.source("msl") and "double" in double.ir
assert iv.layout.Layout((4, 2)).size() == 8
for launch in (
    lambda: double[4, 4](x, out),
    lambda: double[4, 4](x, out, device="cpu"),
    lambda: iv.device("cpu"),
    lambda: iv.device(),
):
    try:
        launch()
    except iv.Error as e:
        assert WANTED in str(e) and "\\n" not in str(e), e
    else:
        raise AssertionError("there is a library")
print("passed")
"""


def passes(folder, wanted, environment):
    """Runs the program where the error of the device ``cpu`` is to say what is wanted."""
    program = folder / "program.py"
    program.write_text(f"WANTED = {wanted!r}\n{PROGRAM}")
    inherited = {k: v for k, v in os.environ.items() if k != "INVAR_LLVM"}
    done = subprocess.run(
        [sys.executable, program],
        env={**inherited, **environment}, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout == "passed\n", done.stdout + done.stderr


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="of the loader of Linux")
def test_without_llvm_all_but_the_cpu_device_works(tmp_path):
    # The loader finds these first, and they are not libraries.
    for release in (19, 20, 21, 22):
        for name in (f"libLLVM.so.{release}.1", f"libLLVM-{release}.so"):
            (tmp_path / name).touch()
    passes(tmp_path, "Debian and Ubuntu: libllvm", {"LD_LIBRARY_PATH": str(tmp_path)})


def test_the_librarys_path_can_be_given(tmp_path):
    none = str(tmp_path / "libLLVM.so")
    passes(tmp_path, "INVAR_LLVM names no library of LLVM", {"INVAR_LLVM": none})


TWICE = """
import numpy as np
import invar as iv

@iv.kernel
def triple(x: iv.Buffer[iv.f32]):
    i = iv.thread_position_in_grid("x")
    x[i] = 3 * x[i]

x = np.ones(64, np.float32)
triple[64, 64](x)
assert (x == 3).all()
print("libLLVM" in open("/proc/self/maps").read())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads what Linux says of a process")
def test_a_kernel_from_the_disk_cache_loads_no_library(tmp_path):
    program = tmp_path / "twice.py"
    program.write_text(TWICE)
    inherited = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    environment = {**inherited, "INVAR_CACHE_DIR": str(tmp_path / "cache")}
    said = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, program],
            env=environment, capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        said.append(done.stdout.strip())
    # The first has compiled it, unless the library is a part of the package.
    assert said in (["True", "False"], ["False", "False"]), said
