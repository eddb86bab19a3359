"""The package runs on Python 3.9: the extension uses nothing beyond its stable interface,
and the sources nothing beyond its syntax."""

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import invar
from invar import _invar


def test_the_extension_keeps_to_the_stable_interface_of_python_3_9():
    if importlib.util.find_spec("abi3audit") is None:
        pytest.skip("abi3audit is not installed")
    assert ".abi3." in _invar.__file__ or sys.platform == "win32"
    command = [sys.executable, "-m", "abi3audit", "--strict", "--assume-minimum-abi3", "3.9"]
    done = subprocess.run([*command, _invar.__file__], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_sources_keep_to_the_syntax_of_python_3_9():
    files = sorted(Path(invar.__file__).parent.rglob("*.py*"))
    files = [path for path in files if path.suffix in (".py", ".pyi")]
    assert len(files) > 20
    for path in files:
        ast.parse(path.read_text(encoding="utf-8"), str(path), feature_version=(3, 9))
