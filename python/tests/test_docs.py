"""The documentation's Python runs as written, and prints what it says.

With BLESS=1 what it prints is put into the documents.
"""

import contextlib
import io
import linecache
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:```(?:text|inv)\n(.*?)^```\n)?", re.M | re.S)


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
            for language in ("text", "inv"):
                block = f"{code}```\n```{language}\n"
                text = text.replace(block + expected, block + printed.getvalue().rstrip() + "\n")
        elif expected is not None:
            assert printed.getvalue().rstrip() == expected.rstrip(), f"line {start} of {document}"
        count += 1
    assert count >= least
    if os.environ.get("BLESS"):
        (ROOT / document).write_text(text)


def test_the_page_of_packages_sends_nobody_to_what_they_lack(tmp_path):
    page = tmp_path / "README.md"
    script = [sys.executable, str(ROOT / "scripts" / "readme.py"), str(page)]
    for address in ("https://example.com/invar", ""):
        # An address that is none hides the one that the repository may have.
        env = {**os.environ, "INVAR_REPOSITORY": address or "none"}
        made = subprocess.run(script, env=env, capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stderr
        text = page.read_text(encoding="utf-8")
        assert "\n## Install\n\n`pip install invar-lang` " in text
        assert "<!--" not in text and "scripts/" not in text
        assert ("https://example.com/invar/blob/v" in text) == bool(address)
