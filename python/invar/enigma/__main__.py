"""``python -m invar.enigma script.py [arguments]``: runs a program with ``import enigma`` as ours.

``-m MODULE``, ``-c PROGRAM`` and ``-`` (the standard input) stand where the script does, as in Python.
"""

import os
import sys

from .._beside import standard_first

with standard_first():
    import importlib.util
    import linecache
    import pkgutil
    import runpy
    import types

USAGE = "usage: python -m invar.enigma [--device NAME] (SCRIPT | -m MODULE | -c PROGRAM | -) [ARGUMENTS]"


def stand_in():
    """From now on ``import enigma``, and its modules, are ours."""
    import invar.enigma as package

    sys.modules["enigma"] = package
    for found in pkgutil.walk_packages(package.__path__, "invar.enigma."):
        if not found.name.endswith("__main__"):
            module = importlib.import_module(found.name)
            sys.modules["enigma" + found.name[len("invar.enigma") :]] = module


def _run_text(text, name):
    """Runs a program that is in no file, so that its kernels' lines can be had."""
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    program = compile(text, name, "exec")
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    exec(program, module.__dict__)


def _is_module(name):
    """Whether there is a module of that name, in the current folder or where Python looks."""
    sys.path[0] = os.getcwd()
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError as e:
        # One that an existing package asks for is for the package to say.
        return not f"{name}.".startswith(f"{e.name}.")


def _fail(sentence):
    print(f"python -m invar.enigma: {sentence}", file=sys.stderr)
    return 2


def main():
    del sys.argv[0]
    device = None
    if sys.argv[:1] == ["--device"] and len(sys.argv) > 1:
        device = sys.argv[1]
        del sys.argv[:2]
    what = sys.argv[0] if sys.argv else "-h"
    if what.startswith("-") and what not in ("-m", "-c", "-"):
        print(USAGE, file=sys.stderr)
        return 2
    if what in ("-m", "-c") and len(sys.argv) < 2:
        return _fail(f"{what} needs {'a module' if what == '-m' else 'a program'} behind it")
    script = os.path.join(what, "__main__.py") if os.path.isdir(what) else what
    if not what.startswith("-") and not os.path.isfile(script):
        return _fail(f"{script}: there is no such file")
    stand_in()
    if what == "-m" and not _is_module(sys.argv[1]):
        return _fail(f"there is no module {sys.argv[1]}")
    if device is not None:
        from invar.enigma import EnigmaError, MetalRuntime

        try:
            MetalRuntime.default_device = MetalRuntime(device=device).device
        except EnigmaError as e:
            return _fail(e)
    # As Python has it: what lies beside a script, else in the current folder, can be imported.
    if what == "-m":
        del sys.argv[0]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    elif what in ("-c", "-"):
        sys.path[0] = ""
        text = sys.argv.pop(1) if what == "-c" else sys.stdin.read()
        _run_text(text, what)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(what))
        runpy.run_path(what, run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
