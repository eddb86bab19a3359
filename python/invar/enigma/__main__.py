"""``python -m invar.enigma script.py [arguments]``: runs a program with ``import enigma`` as ours."""

import importlib
import os
import pkgutil
import runpy
import sys


def stand_in():
    """From now on ``import enigma``, and its modules, are ours."""
    import invar.enigma as package

    sys.modules["enigma"] = package
    for found in pkgutil.walk_packages(package.__path__, "invar.enigma."):
        if not found.name.endswith("__main__"):
            module = importlib.import_module(found.name)
            sys.modules["enigma" + found.name[len("invar.enigma") :]] = module


def main():
    del sys.argv[0]
    device = None
    if sys.argv[:1] == ["--device"] and len(sys.argv) > 1:
        device = sys.argv[1]
        del sys.argv[:2]
    if not sys.argv or sys.argv[0].startswith("-"):
        print("usage: python -m invar.enigma [--device NAME] SCRIPT [ARGUMENTS]", file=sys.stderr)
        return 2
    script = sys.argv[0]
    if os.path.isdir(script):
        script = os.path.join(script, "__main__.py")
    if not os.path.isfile(script):
        print(f"python -m invar.enigma: {script}: there is no such file", file=sys.stderr)
        return 2
    stand_in()
    if device is not None:
        from invar.enigma import EnigmaError, MetalRuntime

        try:
            MetalRuntime.default_device = MetalRuntime(device=device).device
        except EnigmaError as e:
            print(f"python -m invar.enigma: {e}", file=sys.stderr)
            return 2
    # As Python has it for a script: what lies beside it can be imported.
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
