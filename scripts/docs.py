#!/usr/bin/env python3
"""Lays out the pages of the site for mdBook: docs.py FOLDER

The pages are those of docs/ and of the root, with links that fit where they lie then, and the page of the
Python API, which is made of the package's stubs. Absent: how pages look, which docs/book.toml says.
"""

import ast
import pathlib
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
#: Pages of the root, whose links begin there.
OF_ROOT = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"]

#: The languages of mdBook's highlight.js that the pages have blocks of, and how blocks of others are shown. Those of
#: the text form have a mark for docs/inv.js.
LANGUAGES = {"console", "cpp", "json", "python", "rust", "sh", "text", "text,inv", "toml", "yaml"}
SHOWN_AS = {"inv": "text,inv", "metal": "cpp", "wgsl": "text"}

RUST = """# Rust API

`cargo add invar-lang` adds the library, whose name in programs is `invar`. [Kernels in Rust](rust.md) is where to begin.

- [`invar`](rustdoc/invar/index.html): devices, buffers and launches; what the bodies of kernels call is in
  [`invar::kernel`](rustdoc/invar/kernel/index.html)
- [`invar::build`](rustdoc/invar/build/index.html): kernels that programs generate, of values with operators
- [`invar::ir`](rustdoc/invar/ir/index.html): types, modules, the verifier, the text form
- [`invar::emit`](rustdoc/invar/emit/index.html): a kernel as the code of a target
- [`invar::report`](rustdoc/invar/report/index.html): what is printed of a finding
- [`invar::wgsl`](rustdoc/invar_wgsl/index.html): kernels of shaders

The parts that it is made of are crates of their own, for programs that need one of them alone:

| crate | what it has |
|---|---|
| [`invar-ir`](rustdoc/invar_ir/index.html) | types, operations, the builder, the verifier, the text and the binary form |
| [`invar-interp`](rustdoc/invar_interp/index.html) | the reference machine and its checkers |
| [`invar-prove`](rustdoc/invar_prove/index.html) | proofs for every launch |
| [`invar-layout`](rustdoc/invar_layout/index.html) | layouts |
| [`invar-texture`](rustdoc/invar_texture/index.html) | pixel formats and samples |
| [`invar-cache`](rustdoc/invar_cache/index.html) | what is kept on disk |
| [`invar-codegen`](rustdoc/invar_codegen/index.html) | passes, and the writers of MSL and WGSL |
| [`invar-llvm`](rustdoc/invar_llvm/index.html) | the CPU compiler |
| [`invar-runtime`](rustdoc/invar_runtime/index.html) | devices, buffers, programs and queues |
| [`invar-wgsl`](rustdoc/invar_wgsl/index.html) | the reader of shaders |
| [`invar-msl`](rustdoc/invar_msl/index.html) | the reader of Metal sources |
| [`invar-macros`](rustdoc/invar_macros/index.html) | the attributes |
| [`invar-command`](rustdoc/invar_command/index.html) | the command |
"""


def rewritten(text):
    """A page of the root as one of the folder: `](docs/running.md)` leads beside it."""
    return re.sub(r"\]\(docs/", "](", text)


def without_sources(text, folder, source):
    """A page of a folder of the repository without its links to what is there and not on the site, such as
    ../crates/invar/examples: their words stay. A link to what is nowhere stays too, for the test of links."""
    def link(found):
        words, target = found.groups()
        absent = (folder / target).exists() and not (source / target).exists()
        return words if absent else found[0]

    return re.sub(r"(?<!!)\[([^\[\]]+)\]\(([\w./-]+)\)", link, text)


def languages_known(text):
    """A page whose blocks of code are of languages that the site's highlight.js has: another one is a warning in the
    reader's browser."""
    def fence(found):
        start, language = found.groups()
        language = SHOWN_AS.get(language, language)
        if language not in LANGUAGES:
            sys.exit(f"the site shows no `{language}`: SHOWN_AS of scripts/docs.py says as what to show it")
        return start + language

    return re.sub(r"^( *```)([\w+-]+)", fence, text, flags=re.M)


def figures_whole(text):
    """A page whose tables break no line between a figure and its unit."""
    unit = r"(?<=\d) (?=(?:[nuµm]?s|[KMG]i?B(?:/s)?|[GT]FLOP/s) *\|)"
    return "\n".join(re.sub(unit, "\u00a0", line) if line.startswith("|") else line for line in text.split("\n"))


def markdown(docstring):
    """A docstring's ``code``, and its examples, which stand behind `::`, as Markdown's."""
    out, block = [], False
    lines = docstring.splitlines()
    for n, line in enumerate(lines):
        if block and line and not line.startswith("    "):
            out.append("```\n")
            block = False
        if not block and line.startswith("    ") and not (n and lines[n - 1].startswith("    ")):
            out.append("```python")
            block = True
        out.append(line[4:] if block else line.replace("``", "`").removesuffix(":") if line.endswith("::") else line.replace("``", "`"))
    if block:
        out.append("```")
    return "\n".join(out)


def signature(function, name=None):
    result = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    return f"{name or function.name}({ast.unparse(function.args)}){result}"


def shown(node):
    """Whether a page has it: what users name, and what they write as `kernel[...]` or `launch(...)`, where a
    docstring says what that is."""
    spelled = node.name in ("__call__", "__getitem__") and ast.get_docstring(node)
    return bool(spelled) or not node.name.startswith("_")


def entry(level, name, signatures, docstring):
    text = "\n".join(signatures)
    return f"{'#' * level} {name}\n\n```python\n{text}\n```\n\n{markdown(docstring or '')}\n"


def functions(body):
    """Functions by name, each with its signatures (several, if it is overloaded) and docstring."""
    found = {}
    for node in body:
        if isinstance(node, ast.FunctionDef) and shown(node):
            signatures, docstring = found.get(node.name, ([], None))
            docs = ast.get_docstring(node) or docstring
            is_property = any(ast.unparse(d) == "property" for d in node.decorator_list)
            line = f"{node.name}: {ast.unparse(node.returns)}" if is_property else signature(node)
            found[node.name] = ([*signatures, line], docs)
    return found


def api(path, module):
    """The reference of a module: of its stub, or of itself where it says its types."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    out = [f"## {module}\n", markdown(ast.get_docstring(tree) or ""), ""]
    types = []
    for node in tree.body:
        if not isinstance(node, ast.ClassDef) or not shown(node):
            continue
        docstring = ast.get_docstring(node)
        # The types of values have but their names: `f32`, `u32x4`, ...
        if not docstring and any(ast.unparse(base) == "Value" for base in node.bases):
            types.append(node.name)
            continue
        bases = ", ".join(map(ast.unparse, node.bases))
        out.append(entry(3, node.name, [f"class {node.name}({bases})" if bases else f"class {node.name}"], docstring))
        for name, (signatures, docs) in functions(node.body).items():
            out.append(entry(4, f"{node.name}.{name}", signatures, docs))
    for name, (signatures, docs) in functions(tree.body).items():
        out.append(entry(3, name, signatures, docs))
    if types:
        out.append(f"### Types\n\n{', '.join(f'`{name}`' for name in types)}\n")
    return "\n".join(out)


def main(folder):
    source = folder / "src"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(ROOT / "docs", source)
    (source / "book.toml").rename(folder / "book.toml")
    for name in OF_ROOT:
        (source / name).write_text(rewritten((ROOT / name).read_text(encoding="utf-8")), encoding="utf-8")
    for name in ["LICENSE-MIT", "LICENSE-APACHE"]:
        shutil.copy(ROOT / name, source / name)
    for page in source.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        folder_of_page = ROOT if page.name in OF_ROOT else ROOT / "docs"
        text = languages_known(without_sources(text, folder_of_page, source))
        page.write_text(figures_whole(text), encoding="utf-8")
    (source / "rust-api.md").write_text(RUST, encoding="utf-8")
    package = ROOT / "python" / "invar"
    pages = [("# Python API\n\nWhat `import invar as iv` has. [The language of kernels](python.md) says what may stand in one.\n"),
             api(package / "__init__.pyi", "invar"), api(package / "layout.pyi", "invar.layout"),
             api(package / "metal.py", "invar.metal")]
    (source / "python-api.md").write_text("\n".join(pages), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__.splitlines()[0])
    main(pathlib.Path(sys.argv[1]))
