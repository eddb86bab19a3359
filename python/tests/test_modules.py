"""The package's modules: what each header says, and that none needs another that needs it."""

import ast
from pathlib import Path

import invar as iv

FOLDER = Path(iv.__file__).parent
MODULES = sorted(FOLDER.glob("*.py"))


def needs(path):
    """The modules of the package that one imports, anywhere in its text."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            names = [node.module] if node.module else [name.name for name in node.names]
            found.update(name for name in names if (FOLDER / f"{name}.py").exists())
    return found


def test_modules_form_no_circle():
    graph = {path.stem: needs(path) for path in MODULES}
    assert graph["_calls"] >= {"_control", "_values"}

    def reach(name, seen):
        for other in graph.get(name, ()):
            if other not in seen:
                seen.add(other)
                reach(other, seen)
        return seen

    assert [name for name in graph if name in reach(name, set())] == []


def test_each_header_says_what_is_absent():
    for path in MODULES:
        assert "Absent:" in ast.get_docstring(ast.parse(path.read_text())), path
