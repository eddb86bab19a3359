"""The ``invar`` command, with kernels of Python files: ``invar check file.py:kernel --grid ...``.

The command is the one of the Rust crate. Here a Python file that its arguments name is imported,
and its kernel compiled; compile-time parameters come from ``--arg`` too, as Python literals. Absent:
the command's own options, which are the crate's.
"""

from __future__ import annotations

import sys

from ._beside import standard_first

with standard_first():
    import ast
    import importlib.util
    import json
    import pathlib
    import signal

from ._errors import Error, KernelError, path_text
from ._invar import command
from ._kernel import Kernel
from .enigma.__main__ import stand_in
from .enigma.compiler.kernel import CompiledKernel, Kernel as EnigmaKernel


class _Usage(Exception):
    """What was typed makes no sense: exit code 2."""


def _is_kernel(argument):
    path, _, name = argument.partition(":")
    return path.endswith(".py") and not argument.startswith("-") and (not name or name.isidentifier())


def _import(path):
    if not pathlib.Path(path).is_file():
        raise _Usage(f"{path_text(path)}: there is no such file")
    name = "_invar_" + "".join(c if c.isalnum() else "_" for c in pathlib.Path(path).stem)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    # What a script imports from its own folder is found as when it runs.
    sys.path.insert(0, str(pathlib.Path(path).resolve().parent))
    # A program of the Enigma DSL that was left unchanged.
    if b"enigma" in pathlib.Path(path).read_bytes() and importlib.util.find_spec("enigma") is None:
        stand_in()
    try:
        spec.loader.exec_module(module)
    except Error:
        raise
    except Exception as e:
        raise _Usage(f"{path_text(path)} cannot be imported: {type(e).__name__}: {e}") from e
    return module


def _kernel(argument):
    path, _, name = argument.partition(":")
    found, file = vars(_import(path)), path_text(path)
    known = {k: v for k, v in found.items() if isinstance(v, (Kernel, EnigmaKernel))}
    if isinstance(found.get(name), CompiledKernel):
        return found[name]
    if not known:
        raise _Usage(f"{file} has no kernel: a kernel is a function with @iv.kernel or @enigma.kernel")
    names = ", ".join(f"`{k}`" for k in known)
    if name:
        if name not in known:
            raise _Usage(f"{file} has no kernel `{name}`; it has {names}")
        return known[name]
    if len(known) > 1:
        raise _Usage(f"{file} has several kernels: say which with {file}:KERNEL: {names}")
    return next(iter(known.values()))


def _compile_time(kernel, argv):
    """The values of a kernel's compile-time parameters, and the arguments without them."""
    if not isinstance(kernel, Kernel):
        return (), argv  # One of the Enigma DSL has none.
    for p in kernel.params:
        if p.kind != "value" and p.element is None:
            raise _Usage(
                f"parameter `{p.name}` of `{kernel.__name__}` has no element type: annotate it, as in iv.Buffer[iv.f32]"
            )
    names = [p.name for p in kernel.params if p.kind == "value"]
    found, rest = dict(kernel.defaults), []
    arguments = iter(argv)
    for argument in arguments:
        given = argument
        if argument == "--arg":
            given = "--arg=" + next(arguments, "")
        name, _, value = given[len("--arg=") :].partition("=")
        if not given.startswith("--arg=") or name.strip() not in names:
            rest += [argument] if given is argument else ["--arg", given[len("--arg=") :]]
            continue
        try:
            found[name.strip()] = ast.literal_eval(value.strip())
        except (ValueError, SyntaxError):
            raise _Usage(f"--arg {name}: `{value}` is not a Python number, string or tuple") from None
    missing = [f"--arg {name}=" for name in names if name not in found]
    if missing:
        raise _Usage(
            f"to trace kernel `{kernel.__name__}`, {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} missing: its compile-time parameters"
        )
    return [found[name] for name in names], rest


def main(argv=None):
    """Runs the command with these arguments, by default those of the process; gives its exit code."""
    argv = list(sys.argv[1:] if argv is None else argv)
    loaded = []
    try:
        file = next((a for a in argv[1:] if _is_kernel(a)), None)
        if file is not None:
            kernel = _kernel(file)
            values, argv = _compile_time(kernel, argv)
            if isinstance(kernel, Kernel):
                loaded.append((file, kernel._build(values).module))
            else:
                loaded.append((file, kernel.module()))
    except _Usage as e:
        print(f"invar: {e}", file=sys.stderr)
        if "--json" in argv:
            print(json.dumps({"error": str(e)}, indent=2))
        return 2
    except Error as e:
        # No module, so there is nothing that the command itself could report.
        if "--json" in argv:
            print(json.dumps({"file": file, "clean": False, "results": [_refusal(e)]}, indent=2))
        else:
            print(f"error: {e}", file=sys.stderr)
        return 1
    sys.stdout.flush()
    sys.stderr.flush()
    before = None
    try:
        # The command runs outside of Python, which would notice Ctrl-C only after it.
        before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    except ValueError:
        pass  # Only the main thread may.
    try:
        return command(["invar", *argv], loaded)
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)


def _refusal(e):
    place = isinstance(e, KernelError) and e.filename is not None
    labels = [{"file": e.filename, "line": e.line, "column": e.column}] if place else []
    message = getattr(e, "message", str(e))
    return {"diagnostics": [{"severity": "error", "message": message, "labels": labels}]}


if __name__ == "__main__":
    sys.exit(main())
