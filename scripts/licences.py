#!/usr/bin/env python3
"""Writes the licences of what is in the wheel and the command beside Invar's own code: licences.py FILE LLVM-CONFIG

They are those of every crate that the extension links, of Rust's standard library, and of LLVM with what it
links: each text once, above it what it is of. A crate without a text of its own is listed with what it declares.
Where a text should be and is not, the script fails: nothing is given to others without it.
"""

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
NAMES = ("LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE", "COPYRIGHT")
#: Licences of which a crate may come without a text: Invar's own copy is one.
OWN = {"MIT": "LICENSE-MIT", "Apache-2.0": "LICENSE-APACHE"}


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout


def read(path):
    return path.read_text(encoding="utf-8", errors="replace").strip().replace("\r\n", "\n")


def crates():
    """The packages that the extension links on this system, but for Invar's own."""
    host = next(line[6:] for line in output("rustc", "-vV").splitlines() if line.startswith("host: "))
    found = json.loads(output(
        "cargo", "metadata", "--format-version", "1", "--locked", "--features", "llvm-static",
        "--filter-platform", host, "--manifest-path", "crates/py/Cargo.toml"))
    nodes = {node["id"]: node for node in found["resolve"]["nodes"]}
    linked, waiting = set(), [found["resolve"]["root"]]
    while waiting:
        at = waiting.pop()
        if at not in linked:
            linked.add(at)
            waiting += [d["pkg"] for d in nodes[at]["deps"] if any(k["kind"] is None for k in d["dep_kinds"])]
    packages = [p for p in found["packages"] if p["id"] in linked and p["source"]]
    return sorted(packages, key=lambda p: (p["name"], p["version"]))


def texts_in(folder):
    files = [f for f in folder.iterdir() if f.is_file() and f.name.upper().startswith(NAMES)]
    return [read(file) for file in sorted(files)]


def first(what, paths):
    for path in paths:
        if path.is_file():
            return read(path)
    sys.exit(f"there is no licence of {what}: looked for {', '.join(map(str, paths))}")


def main(out, llvm_config):
    texts = {}  # text: what it is of

    def add(what, text):
        texts.setdefault(text, []).append(what)

    release = output(llvm_config, "--version").strip()
    prefix = pathlib.Path(output(llvm_config, "--prefix").strip())
    debian = pathlib.Path("/usr/share/doc")
    listed = [f"LLVM {release}: Apache-2.0 WITH LLVM-exception", "zlib: Zlib", "Zstandard: BSD-3-Clause",
              "Rust's standard library: MIT OR Apache-2.0"]
    llvm = [prefix / "LICENSE.TXT", prefix / "include/llvm/Support/LICENSE.TXT", prefix / "build/utils/lit/LICENSE.TXT",
            debian / f"llvm-{release.split('.')[0]}-dev/copyright"]
    add(f"LLVM {release}", first("LLVM", llvm))
    if sys.platform != "win32":  # There LLVM's releases link neither.
        brew = prefix.parent
        add("zlib", first("zlib", [debian / "zlib1g-dev/copyright", brew / "zlib/LICENSE"]))
        add("Zstandard", first("Zstandard", [debian / "libzstd-dev/copyright", brew / "zstd/LICENSE"]))
    for name in OWN.values():
        add("Rust's standard library", read(ROOT / name))
    for package in crates():
        of = f"{package['name']} {package['version']}"
        licence = package["license"] or ""
        listed.append(f"{of}: {licence or 'see its text'}")
        own = texts_in(pathlib.Path(package["manifest_path"]).parent)
        own = own or [read(ROOT / file) for name, file in OWN.items() if name in licence]
        if not own:
            sys.exit(f"crate {of} has no licence's text, and its licence ({licence}) is none that is known here")
        for text in own:
            add(of, text)
    parts = ["What is in this distribution beside Invar's own code, and under which licence.\n", "\n".join(listed)]
    for text, of in texts.items():
        parts.append(f"{'=' * 100}\n{', '.join(of)}\n{'=' * 100}\n\n{text}")
    pathlib.Path(out).write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    print(f"{len(listed)} licences, {len(texts)} texts")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__.splitlines()[0])
    main(*sys.argv[1:])
