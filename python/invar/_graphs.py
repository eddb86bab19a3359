"""Launches in functions that ``torch.compile`` compiles: they break the graph, and run as they do elsewhere.

Dynamo, which records what such a function does, follows the calls of Python functions, and memory that is
passed by its address is nothing that it could record. So the functions that a program begins with are marked
as those that it does not enter, and once it is there, it learns to leave all code of this package alone.

Absent: PyTorch, which is never loaded from here.
"""

from __future__ import annotations

import sys

_DYNAMO = "torch._dynamo"
_loaded = sys.modules
#: Whether Dynamo knows.
_told = False


def outside(function):
    """Marks a function as one that Dynamo does not enter; it has to begin with ``leave()``."""
    function._torchdynamo_disable = True
    function._torchdynamo_disable_msg = (
        "Invar's kernels run outside of graphs: leave out fullgraph=True, or make the launch an "
        "operation by torch.library.custom_op"
    )
    return function


def leave():
    """Has Dynamo, if it is there, leave this package alone from now on."""
    global _told
    if _told or _DYNAMO not in _loaded:
        return
    dynamo = _loaded[_DYNAMO]
    # It was called so before PyTorch 2.2.
    rules = getattr(dynamo, "trace_rules", None) or getattr(dynamo, "skipfiles", None)
    if hasattr(rules, "add"):
        rules.add(__package__)
        _told = True


outside(leave)
