#!/usr/bin/env python3
"""Pages of the repository for those who read them elsewhere: on the pages of packages, and in releases.

readme.py FOLDER/README.md   writes the page of that name
readme.py PACKAGE ...        mends the description in the metadata of wheels and source distributions, and takes the
                             folder in which a wheel was built out of its bill of materials
readme.py -                  mends a page on standard input
readme.py --address          prints the repository's address, or nothing

What the links of a page name lies in the repository, and so they become links to there, of the release's tag. The
address is that of INVAR_REPOSITORY, of the workflow that runs this, or of the remote `origin`. Where there is
none, links become their words and pictures are left out, for a link that leads nowhere is worse.

What a page says of the repository's own scripts stands between `<!-- repository -->` and `<!-- end -->`, and is left
out. What it says to those who have a package instead stands in a comment that begins with `packages`.
"""

import base64
import hashlib
import io
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
#: A link or a picture of the repository: its words and what it names.
LINK = re.compile(r"(!?)\[([^\[\]]*)\]\(((?!https?:|#)[^()\s]+)\)")

#: What is for the repository alone, and what for pages elsewhere alone.
HERE = re.compile(r"^<!-- repository -->\n.*?^<!-- end -->\n", re.MULTILINE | re.DOTALL)
ELSEWHERE = re.compile(r"^<!-- packages\n(.*?)^-->\n", re.MULTILINE | re.DOTALL)
#: What a reader elsewhere does not have: nothing of it may be told to be run.
ABSENT = re.compile(r"scripts/|--path|cargo run|\bdist/")


def version():
    manifest = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    return re.search(r'^\[workspace\.package\]\nversion = "(.*)"$', manifest, re.MULTILINE).group(1)


def address():
    """Where the repository is read on the web, or None."""
    given = os.environ.get("INVAR_REPOSITORY", "")
    if not given and os.environ.get("GITHUB_REPOSITORY"):
        given = f"{os.environ['GITHUB_SERVER_URL']}/{os.environ['GITHUB_REPOSITORY']}"
    if not given:
        asked = subprocess.run(
            ["git", "config", "remote.origin.url"], cwd=ROOT, capture_output=True, text=True, check=False)
        given = asked.stdout.strip()
    given = re.sub(r"^(?:ssh://)?git@([^:/]+)[:/]", r"https://\1/", given)
    given = given.removesuffix("/").removesuffix(".git")
    return given if given.startswith("https://") else None


def elsewhere(text, at):
    """The text of a page with links that hold anywhere. What stands in blocks of code is left as it is."""
    def link(found):
        picture, words, target = found.groups()
        if not (ROOT / target.split("#")[0]).exists():
            sys.exit(f"a link names {target}, which is not there")
        if at is None:
            return "" if picture else words
        return f"{picture}[{words}]({at}/{'raw' if picture else 'blob'}/v{version()}/{target})"

    text = ELSEWHERE.sub(lambda found: found[1], HERE.sub("", text))
    left = [line for line in text.splitlines() if line.startswith("<!-- ")]
    if left:
        sys.exit(f"a page has a mark without its other half: {left[0]}")
    parts = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    parts[::2] = [LINK.sub(link, part) for part in parts[::2]]
    return re.sub(r"\n{3,}", "\n\n", "".join(parts))


def has_no_scripts(page):
    """Fails where a page of packages names what stands in the repository alone."""
    lines = [line for line in page.splitlines() if ABSENT.search(re.sub(r"\(https:[^()]*\)", "", line))]
    if lines:
        sys.exit(f"README.md sends readers of packages to what these lack: {lines[0]}")


def metadata(old, at):
    """The metadata of a package, with a description whose links hold, and the repository's address."""
    head, description = old.decode("utf-8").split("\n\n", 1)
    if at is not None and "\nProject-URL: Repository," not in head:
        head += f"\nProject-URL: Repository, {at}\nProject-URL: Changelog, {at}/blob/v{version()}/CHANGELOG.md"
    page = elsewhere(description, at)
    has_no_scripts(page)
    return f"{head}\n\n{page}".encode("utf-8")


def into_wheel(path, at):
    with zipfile.ZipFile(path) as wheel:
        entries = {entry: wheel.read(entry) for entry in wheel.infolist()}
    changed = {}
    for entry, data in entries.items():
        if entry.filename.endswith(".dist-info/METADATA"):
            changed[entry.filename] = metadata(data, at)
        elif "/sboms/" in entry.filename and not entry.is_dir():
            changed[entry.filename] = re.sub(rb'path\+file://[^"#]*/(?=crates/)', b"path+file:///", data)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as wheel:
        for entry, data in entries.items():
            data = changed.get(entry.filename, data)
            if entry.filename.endswith(".dist-info/RECORD"):
                record = data.decode()
                for name, new in changed.items():
                    digest = base64.urlsafe_b64encode(hashlib.sha256(new).digest()).rstrip(b"=").decode()
                    line = f"{name},sha256={digest},{len(new)}"
                    record, count = re.subn(rf"^{re.escape(name)},.*$", line, record, flags=re.MULTILINE)
                    assert count == 1, f"{path}: {count} lines of {name} in RECORD"
                data = record.encode()
            wheel.writestr(entry, data, compresslevel=9)
    path.write_bytes(made.getvalue())


def into_source(path, at):
    made = io.BytesIO()
    with tarfile.open(path) as old, tarfile.open(fileobj=made, mode="w:gz") as new:
        for entry in old:
            data = old.extractfile(entry).read() if entry.isfile() else None
            inside = pathlib.PurePosixPath(entry.name).parts[1:]
            if inside == ("PKG-INFO",):
                data = metadata(data, at)
            elif inside == ("README.md",):
                data = elsewhere(data.decode("utf-8"), at).encode("utf-8")
            if data is not None:
                entry.size = len(data)
            new.addfile(entry, io.BytesIO(data) if data is not None else None)
    path.write_bytes(made.getvalue())


def main(files):
    at = address()
    if files == ["--address"]:
        print(at or "")
        return
    if at is None:
        print("the repository's address is not known (INVAR_REPOSITORY): pages are without links", file=sys.stderr)
    for file in map(pathlib.Path, files):
        if file.name == "-":
            print(elsewhere(sys.stdin.read(), at), end="")
        elif file.suffix == ".whl":
            into_wheel(file, at)
        elif file.name.endswith(".tar.gz"):
            into_source(file, at)
        else:
            page = elsewhere((ROOT / file.name).read_text(encoding="utf-8"), at)
            if file.name == "README.md":
                has_no_scripts(page)
            file.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1:])
