"""Builds the package, with maturin, once it is known that this machine can.

pip shows nothing while a package is built, and of what fails all that was printed: hence one sentence on what is
missing before anything is compiled, and one at the terminal on how long it takes. Absent: how the package is
built, which is maturin's, as pyproject.toml tells it.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import maturin
from maturin import (  # noqa: F401  what pip asks a build backend for
    build_sdist,
    get_requires_for_build_sdist,
)

ROOT = Path(__file__).resolve().parents[2]


def _wanted():
    """The oldest release of Rust that compiles this."""
    manifest = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    return re.search(r'^rust-version = "(.*)"$', manifest, re.MULTILINE).group(1)


def _numbers(version):
    return [int(n) for n in re.findall(r"\d+", version)[:3]]


def _rust(wanted):
    """What is wrong with this machine's Rust, or None."""
    if shutil.which("cargo") is None or shutil.which("rustc") is None:
        return f"Rust {wanted} or newer (rustup, see https://rustup.rs)"
    said = subprocess.run(["rustc", "--version"], capture_output=True, text=True).stdout
    have = said.split()[1] if len(said.split()) > 1 else "0"
    if _numbers(have) < _numbers(wanted):
        return f"Rust {wanted} or newer, for {have} is too old (rustup update stable)"
    return None


def _missing():
    missing = [_rust(_wanted())]
    # What links: on Windows rustc finds it by itself, and says so if not.
    linkers = [os.environ.get("CC", "cc"), "gcc", "clang"]
    if os.name != "nt" and not any(map(shutil.which, linkers)):
        missing.append(
            "a C compiler (Debian and Ubuntu: build-essential, Fedora: gcc, macOS: xcode-select --install)"
        )
    return [what for what in missing if what]


def _ready():
    missing = _missing()
    if missing:
        sys.exit(f"invar-lang cannot be built, for these are missing: {'; '.join(missing)}")


def _tell(sentence):
    """At the terminal, past pip, which keeps what a build prints to itself."""
    try:
        with open("CONOUT$" if os.name == "nt" else "/dev/tty", "w", encoding="utf-8") as terminal:
            terminal.write(f"{sentence}\n")
    except OSError:
        print(sentence, flush=True)  # No terminal: for the log.


def get_requires_for_build_wheel(config_settings=None):
    _ready()
    return maturin.get_requires_for_build_wheel(config_settings)


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    _ready()
    return maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    _ready()
    _tell("invar-lang is compiled now, about ten minutes on two cores; pip install -v shows how far it is")
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def get_requires_for_build_editable(config_settings=None):
    _ready()
    return maturin.get_requires_for_build_editable(config_settings)


def prepare_metadata_for_build_editable(metadata_directory, config_settings=None):
    _ready()
    return maturin.prepare_metadata_for_build_editable(metadata_directory, config_settings)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    _ready()
    _tell("invar-lang is compiled now, about ten minutes on two cores; pip install -v shows how far it is")
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)
