"""The types that the package ships: up to date, and right in the eyes of a type checker."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import invar as iv
from invar import _ops

HERE = Path(__file__).parent
STUBS = HERE.parents[1] / "scripts" / "stubs.py"


def test_the_stubs_are_what_the_script_writes():
    arguments = [] if os.environ.get("BLESS") else ["--check"]
    done = subprocess.run([sys.executable, STUBS, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_package_says_that_it_is_typed():
    assert (Path(iv.__file__).parent / "py.typed").exists()


def test_signatures_of_functions_of_the_table():
    import inspect

    assert str(inspect.signature(iv.clamp)).startswith("(x: 'Operand', low: 'Operand', high:")
    assert [*inspect.signature(iv.thread_position_in_grid).parameters] == ["dim"]
    for name, function in _ops.GENERATED.items():
        assert inspect.signature(function) and function.__doc__.splitlines()[0], name


def mypy(*arguments):
    pytest.importorskip("mypy", reason="mypy is not installed")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=HERE.parent)


def test_a_type_checker_agrees_with_an_example():
    done = mypy(str(HERE / "typed_example.py"))
    assert done.returncode == 0, done.stdout + done.stderr
    sys.path.insert(0, str(HERE))
    import typed_example

    assert typed_example.main() == 1024


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("iv.barrier(scope='grid')", "arg-type"),
        ("iv.no_such_function(1)", "attr-defined"),
        ("iv.clamp(1, 2)", "call-arg"),
        ("iv.thread_position_in_grid('w')", "arg-type"),
        ("iv.atomic_add(1, 2, 3)", "arg-type"),
    ],
)
def test_a_type_checker_finds_mistakes(line, error, tmp_path):
    path = tmp_path / "mistake.py"
    path.write_text(f"import invar as iv\n{line}\n")
    done = mypy(str(path))
    assert done.returncode == 1 and f"[{error}]" in done.stdout, done.stdout + done.stderr
