"""The extension uses nothing beyond the stable interface of the Python that it is built for."""

import importlib.util
import subprocess
import sys

import pytest

from invar import _invar


def test_the_extension_keeps_to_the_stable_interface_of_python_3_9():
    if importlib.util.find_spec("abi3audit") is None:
        pytest.skip("abi3audit is not installed")
    assert ".abi3." in _invar.__file__ or sys.platform == "win32"
    command = [sys.executable, "-m", "abi3audit", "--strict", "--assume-minimum-abi3", "3.9"]
    done = subprocess.run([*command, _invar.__file__], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
