"""What keeps drivers from printing at their start.

Absent: what drivers say later, and who asked them for a GPU.
"""

import os


def quiet_drivers():
    """Leaves out Mesa's layer that sorts GPUs by the desktop they show on, where there is none.

    It would say "error:" about that. Drivers read the variable when somebody asks for a GPU; a process that
    has set it keeps what it says.
    """
    if "XDG_RUNTIME_DIR" not in os.environ:
        os.environ.setdefault("NODEVICE_SELECT", "1")
