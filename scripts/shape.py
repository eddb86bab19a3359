#!/usr/bin/env python3
"""Prints the shape of the code: what a change has to touch, and how long and how tangled it is.

    scripts/shape.py [REVISION ...]      a column for each revision; without one, for the working tree

What must hold of it `crates/invar/tests/suite/tidy.rs` tests; this is for comparing. Tests and comments do not count.
Deliberately absent: anything that needs the code to be built.
"""

import argparse
import io
import os
import re
import statistics
import subprocess
import sys
import tarfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LONG = 150
METHOD = re.compile(r"^    (?:pub(?:\([a-z]+\))? )?fn (\w+)", re.M)


def files(revision):
    """The text of each source file by its path."""
    if revision is None:
        names = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout.splitlines()
        texts = {name: (ROOT / name).read_text() for name in names if is_source(name) and (ROOT / name).is_file()}
    else:
        archived = subprocess.run(["git", "archive", "--", revision], cwd=ROOT, capture_output=True)
        if archived.returncode != 0:
            sys.exit(f"scripts/shape.py: git knows no revision `{revision}`: give a commit, a branch or a tag")
        archive = archived.stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            members = [m for m in tar.getmembers() if m.isfile() and is_source(m.name)]
            texts = {m.name: tar.extractfile(m).read().decode() for m in members}
    return texts


def is_source(name):
    return bool(re.match(r"(crates/\w+/src|benches/src)/.*\.rs$|python/invar/.*\.py$", name))


def code(text):
    """Without tests and comments."""
    text = text.split("\nmod tests {")[0]
    return "\n".join(line.split("//")[0] for line in text.splitlines())


def instructions(texts):
    """Of each structural instruction the files that name it."""
    body = texts["crates/ir/src/inst.rs"].split("pub enum InstKind {")[1].split("\n}")[0]
    names = re.findall(r"^    (\w+)(?: \{|\(|,)", body, re.M)
    used = {name: 0 for name in names}
    for path, text in texts.items():
        if path.endswith(".rs"):
            found = set(re.findall(r"InstKind::(\w+)", code(text)))
            for name in found & used.keys():
                used[name] += 1
    return used


def functions(texts):
    """The lines of each function, in code as rustfmt writes it."""
    for path, text in texts.items():
        if not path.endswith(".rs"):
            continue
        lines = text.splitlines()
        for start, line in enumerate(lines):
            head = re.match(r'( *)(?:pub(?:\([^)]*\))? )?(?:const |unsafe |extern "C" )*fn (\w+).*[{(]$', line)
            if head:
                end = next((n for n in range(start, len(lines)) if lines[n] == head[1] + "}"), start)
                yield end - start + 1, f"{path}: {head[2]}"


def modules(texts, crate):
    """The code of each module of a crate by its name."""
    start = f"crates/{crate}/src/"
    own = {path[len(start) : -3]: code(text) for path, text in texts.items() if path.startswith(start)}
    return {re.sub("/mod$", "", name): text for name, text in own.items() if name not in ("lib", "main")}


def inherent(text):
    """The types with inherent methods in a module, and the code of these."""
    for block in re.finditer(r"^impl(?:<[^{]*?>)? (?:\w+::)*(\w+)[^{]*?\{\n(.*?)^\}", text, re.M | re.S):
        if " for " not in block[0].split("{")[0]:
            yield block[1], block[2]


def named(module, text, own):
    """The modules whose names a module uses."""
    found = set()
    for root, path, braces in re.findall(r"\b(crate|self|super(?:::super)*)((?:::\w+)*)(?:::\{([^}]*)\})?", text):
        if not path and not braces:
            continue  # `pub(super)`, `self.x`
        here = module.split("/")
        start = {"crate": [], "self": here}.get(root, here[: -(root.count("super"))])
        parts = start + path.split("::")[1:]
        ends = [parts] + [parts + name.strip().split("::")[:1] for name in braces.split(",")]
        for end in ends:
            known = ["/".join(end[:n]) for n in range(len(end), 0, -1) if "/".join(end[:n]) in own]
            found |= set(known[:1])
    return found


def circles(texts, crate, by_methods):
    """Sets of modules that need one another, by the names that they use, and by methods of the same type."""
    own = modules(texts, crate)
    defined = defaultdict(list)
    for name, text in own.items():
        for of in re.findall(r"\b(?:struct|enum) (\w+)", text):
            defined[of].append(name)

    def key(of, name):
        """Which type a module means by a name that several have: the one that is defined nearest."""
        here = name.split("/")
        return of, max(defined[of], key=lambda at: len(os.path.commonprefix([at.split("/"), here])), default="")

    homes = defaultdict(dict)
    for name, text in own.items():
        for of, block in inherent(text):
            homes[key(of, name)].update(dict.fromkeys(METHOD.findall(block), name))
    needs = {}
    for name, text in own.items():
        found = named(name, text, own)
        for of, block in inherent(text) if by_methods else ():
            home = homes[key(of, name)]
            found |= {home[call] for call in re.findall(r"\bself\s*\.\s*(\w+)\(", block) if call in home}
        needs[name] = found - {name}
    reach = {name: set(found) for name, found in needs.items()}
    changed = True
    while changed:
        changed = False
        for name, found in reach.items():
            more = found.union(*(reach[other] for other in found)) if found else found
            changed |= more != found
            reach[name] = more
    return {frozenset(o for o in found if name in reach[o]) for name, found in reach.items() if name in found}


def column(revision):
    texts = files(revision)
    if "crates/ir/src/inst.rs" not in texts:
        sys.exit(f"scripts/shape.py: `{revision}` is from before there was `crates/ir/src/inst.rs`: give a later one")
    used = instructions(texts)
    most = max(used, key=used.get)
    lengths = sorted(functions(texts), reverse=True)
    crates = sorted({path.split("/")[1] for path in texts if path.startswith("crates/")})
    lines = defaultdict(int)
    for path, text in texts.items():
        lines["/".join(path.split("/")[:2])] += text.count("\n")
    rows = {
        "files that name a structural instruction, median": statistics.median(used.values()),
        "the most, and of which": f"{used[most]} {most}",
        "longest function": f"{lengths[0][0]} {lengths[0][1]}",
        f"functions of more than {LONG} lines": sum(1 for n, _ in lengths if n > LONG),
    }
    for crate in crates:
        sizes = [max(map(len, circles(texts, crate, methods)), default=1) for methods in (False, True)]
        if max(sizes) > 1:
            rows[f"largest circle of modules by names, and by methods too: {crate}"] = "{}, {}".format(*sizes)
    rows.update({f"lines: {folder}": count for folder, count in sorted(lines.items())})
    return rows


def main():
    parser = argparse.ArgumentParser(
        description="Prints the shape of the code: what a change has to touch, and how long and how tangled it is."
    )
    parser.add_argument("revisions", nargs="*", metavar="REVISION", help="a column for it; by default the working tree")
    revisions = parser.parse_args().revisions or [None]
    columns = [column(revision) for revision in revisions]
    names = list(dict.fromkeys(name for rows in columns for name in rows))
    print("| |" + "|".join(revision or "here" for revision in revisions) + "|")
    print("|---" * (len(revisions) + 1) + "|")
    for name in names:
        print(f"| {name} | " + " | ".join(str(rows.get(name, "")) for rows in columns) + " |")


if __name__ == "__main__":
    main()
