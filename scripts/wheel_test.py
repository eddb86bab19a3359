"""What a wheel must do where nothing but Python is installed: scripts/wheel.sh runs it there."""

from importlib import metadata

import numpy as np

import invar as iv


@iv.kernel
def saxpy(a: iv.Scalar[iv.f32], x: iv.Buffer[iv.f32], y: iv.Buffer[iv.f32]):
    i = iv.thread_position_in_grid("x")
    if i < len(x):
        y[i] = a * x[i] + y[i]


@iv.kernel
def racy(x: iv.Buffer[iv.f32]):
    x[0] = iv.f32(iv.thread_position_in_grid("x"))


x = np.arange(1000, dtype=np.float32)
y = np.ones(1000, np.float32)
saxpy[1000, 64](2.0, x, y)
assert (y == 2 * x + 1).all(), y
assert iv.check(saxpy, grid=1000, threadgroup=64)(2.0, x, y)
report = iv.check(racy, grid=64, threadgroup=64, raises=False)(x)
assert not report and "data-race" in str(report), report
print(f"invar {iv.__version__}: import, launch and check are right")

# The wheel has the licences of all that is in it.
licences = [file for file in metadata.files("invar-lang") if file.name.startswith("LICENSE")]
assert {file.name for file in licences} == {"LICENSE-MIT", "LICENSE-APACHE", "LICENSE-THIRD-PARTY"}, licences
third = next(file for file in licences if file.name == "LICENSE-THIRD-PARTY").read_text(encoding="utf-8")
assert "LLVM Exceptions to the Apache 2.0 License" in third and "pyo3" in third and "Zstandard" in third
