"""``python -m invar.enigma script.py [arguments]``: runs a program with ``import enigma`` as ours."""

import importlib
import os
import pkgutil
import runpy
import sys


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print("usage: python -m invar.enigma SCRIPT [ARGUMENTS]", file=sys.stderr)
        return 2
    import invar.enigma as package

    sys.modules["enigma"] = package
    for found in pkgutil.walk_packages(package.__path__, "invar.enigma."):
        if not found.name.endswith("__main__"):
            module = importlib.import_module(found.name)
            sys.modules["enigma" + found.name[len("invar.enigma") :]] = module
    del sys.argv[0]
    # As Python has it for a script: what lies beside it can be imported.
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except FileNotFoundError as e:
        if e.filename != sys.argv[0]:
            raise
        print(f"python -m invar.enigma: {e.filename}: there is no such file", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
