"""What lies beside the author's script, and has the name of a module of the standard library.

Python looks in the script's folder first, so that a ``queue.py`` there is what this package and NumPy would
import, and fail on. While ``standard_first`` is in force the standard library comes first; afterwards the author's
``import queue`` is the author's file again. Whether a module is of the standard library goes by where it lies.

Absent: packages of other names, of which the one in the script's folder is meant to be found.
"""

import os
import sys

_LIBRARY = os.path.dirname(os.path.abspath(os.__file__))


def _names():
    """The names of all modules of the standard library."""
    known = getattr(sys, "stdlib_module_names", None)
    if known is None:  # Before CPython 3.10.
        folders = [_LIBRARY, os.path.join(_LIBRARY, "lib-dynload")]
        files = [file for folder in folders if os.path.isdir(folder) for file in os.listdir(folder)]
        known = frozenset(file.partition(".")[0] for file in files) | frozenset(sys.builtin_module_names)
    return known


_STANDARD = _names()
#: What Python looks for again: the one at its end, the other each time that `ast.walk` runs.
_KEPT = ("threading", "collections")


def is_standard(module):
    """Whether the module of this name that is loaded is the standard library's."""
    if module not in _STANDARD or module == "__main__":
        return False
    file = getattr(sys.modules.get(module), "__file__", None)
    # Libraries of machine code lie elsewhere on some systems, and are nobody's but Python's.
    return file is None or not file.endswith((".py", ".pyc")) or _in_library(file)


def _in_library(path):
    return (os.path.abspath(path) + os.sep).startswith(_LIBRARY + os.sep)


class standard_first:
    """While it is in force, imports find the standard library before what lies beside the script."""

    def __enter__(self):
        self.folder = sys.path[0] if sys.path else None
        self.names = self._shadowed()
        if self.names:
            # Last, and not away: NumPy itself may lie there.
            sys.path.append(sys.path.pop(0))
            self.theirs = self._taken(lambda name: not is_standard(name.partition(".")[0]))

    def __exit__(self, *error):
        if self.names:
            sys.path.reverse()
            sys.path.remove(self.folder)
            sys.path.append(self.folder)
            sys.path.reverse()
            self._taken(lambda name: name.partition(".")[0] not in _KEPT and name not in self.before)
            sys.modules.update(self.theirs)

    def _shadowed(self):
        """The modules of the standard library of whose names there are files in the script's folder."""
        folder = self.folder
        if folder is None or _in_library(folder):
            return frozenset()
        try:
            files = os.listdir(folder or ".")
        except OSError:
            return frozenset()
        names = {file[:-3] for file in files if file.endswith(".py")}
        names.update(file for file in files if file in _STANDARD and os.path.isdir(os.path.join(folder, file)))
        self.before = set(sys.modules)
        return frozenset((names & _STANDARD) - set(sys.builtin_module_names))

    def _taken(self, which):
        """Takes the loaded modules of those names, and what is in them, out of Python's table, and gives them."""
        loaded = [name for name in sys.modules if name.partition(".")[0] in self.names and which(name)]
        return {name: sys.modules.pop(name) for name in loaded}
