"""Files beside the author's script that have the names of modules of the standard library."""

import subprocess
import sys

import pytest


def run(folder, *arguments):
    done = subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


LOADED = """
import sys
before = set(sys.modules)
import invar, invar.enigma
after = set(sys.modules) - before - set(sys.builtin_module_names)
print(*sorted({name.partition(".")[0] for name in after}))
"""

FOUND = """
import os, sys
from _frozen_importlib import _find_spec
for name in sys.argv[1:]:
    if name not in sys.modules and _find_spec(name, None).origin == os.path.join(os.getcwd(), name + ".py"):
        print(name)
"""


@pytest.fixture
def shadowed(tmp_path):
    """A folder with a file for every module of the standard library that the package needs, and their names."""
    names = set(run(tmp_path, "-I", "-c", LOADED).split())
    if sys.version_info >= (3, 10):
        names &= sys.stdlib_module_names
    else:
        names -= {"numpy", "invar", "ml_dtypes"}
    assert {"ast", "inspect", "typing", "json"} <= names
    for name in names:
        (tmp_path / f"{name}.py").write_text('WHOSE = "the author"\n')
    # Some are inside of the interpreter, which looks for two others again.
    found = run(tmp_path, "-c", FOUND, *names).split()
    assert "inspect" in found
    return tmp_path, sorted({*found} - {"threading", "collections"})


KERNEL = """
import numpy as np
@iv.kernel
def add(x: iv.Buffer[iv.f32]):
    x[iv.thread_position_in_grid("x")] += 1.0
if __name__ == "__main__":
    x = np.ones(4, np.float32)
    add[4, 4](x, device="checked")
    assert (x == 2).all()
"""


@pytest.mark.parametrize("package", ["import invar as iv", "import invar.enigma, invar as iv"])
def test_the_standard_library_is_found_by_the_package_and_the_authors_files_by_the_author(shadowed, package):
    folder, names = shadowed
    mine = "\n".join(f"import {name}; assert {name}.WHOSE == 'the author'" for name in names)
    (folder / "script.py").write_text(f"{package}\n{mine}\n{KERNEL}print('done')\n")
    assert run(folder, "script.py") == "done\n"


def test_the_authors_files_stay_loaded(shadowed):
    folder, names = shadowed
    mine = "\n".join(f"import {name}; {name}.WHOSE = 'still'" for name in names)
    still = "\n".join(f"import {name}; assert {name}.WHOSE == 'still'" for name in names)
    (folder / "script.py").write_text(f"{mine}\nimport invar as iv\n{still}\n{KERNEL}print('done')\n")
    assert run(folder, "script.py") == "done\n"


def test_a_script_may_have_such_a_name_itself(tmp_path):
    (tmp_path / "inspect.py").write_text(f"import invar as iv\n{KERNEL}print('done')\n")
    assert run(tmp_path, "inspect.py") == "done\n"
    said = run(tmp_path, "-m", "invar", "check", "inspect.py:add", "--grid", "4", "--threadgroup", "4", "--arg", "x=zeros(4)")
    assert "clean" in said


def test_the_path_is_as_it_was(tmp_path):
    (tmp_path / "inspect.py").write_text("")
    program = "import sys; before = list(sys.path); import invar; assert sys.path == before; print('done')"
    assert run(tmp_path, "-c", program) == "done\n"


HELPER = """
class Sum:
    def __init__(self):
        self.total = 0.0

def grow(into, by):
    into.total = into.total + by
"""


def test_what_the_author_has_in_such_a_file_is_the_authors(tmp_path):
    (tmp_path / "statistics.py").write_text(HELPER)
    (tmp_path / "script.py").write_text("""
import numpy as np, invar as iv, statistics

@iv.kernel
def sums(x: iv.Buffer[iv.f32], n: iv.Scalar[iv.u32]):
    state = statistics.Sum()
    for i in iv.range(n):
        if x[i] > 1.0:
            statistics.grow(state, x[i])
    x[0] = state.total

x = np.arange(5, dtype=np.float32)
sums[1, 1](x, 5, device="checked")
print(x[0])
""")
    assert run(tmp_path, "script.py") == "9.0\n"
