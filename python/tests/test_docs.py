"""The documentation's Python runs as written, and prints what it says.

With BLESS=1 what it prints is put into the documents.
"""

import contextlib
import io
import linecache
import os
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", re.M | re.S)


def blocks(text):
    """Each Python block with the line it begins on, and what it prints or ``None``."""
    for match in BLOCK.finditer(text):
        yield text.count("\n", 0, match.start(1)), match[1], match[2]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="places in reports have columns from 3.11 on")
@pytest.mark.parametrize(("document", "least"), [("docs/tutorial.md", 10), ("docs/wgsl.md", 1), ("docs/textures.md", 1), ("README.md", 1)])
def test_documents_run_as_written(document, least, tmp_path, monkeypatch):
    text = (ROOT / document).read_text()
    name = f"{Path(document).stem.lower()}.py"
    # A file of the Python alone, each line where it stands in the document.
    lines = [""] * (text.count("\n") + 1)
    for start, code, _ in blocks(text):
        for i, line in enumerate(code.splitlines()):
            lines[start + i] = line
    (tmp_path / name).write_text("\n".join(lines) + "\n")
    monkeypatch.chdir(tmp_path)
    linecache.checkcache()
    scope, count = {"__name__": "document"}, 0
    for start, code, expected in blocks(text):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * start + code, name, "exec"), scope)
        if expected is not None and os.environ.get("BLESS"):
            block = f"{code}```\n```text\n"
            text = text.replace(block + expected, block + printed.getvalue().rstrip() + "\n")
        elif expected is not None:
            assert printed.getvalue().rstrip() == expected.rstrip(), f"line {start} of {document}"
        count += 1
    assert count >= least
    if os.environ.get("BLESS"):
        (ROOT / document).write_text(text)
