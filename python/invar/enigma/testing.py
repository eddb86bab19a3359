"""What tests ask of the machine, and decorators that skip what it has not.

``ENIGMA_FORCE_NO_METAL`` in the environment makes a machine count as one without Metal.
"""

import os
import platform
import sys
import unittest

__all__ = [
    "is_apple_silicon", "is_darwin", "is_metal_available", "requires_apple_silicon", "requires_metal",
    "skip_if_no_metal",
]  # fmt: skip


def is_darwin():
    """Whether this is macOS."""
    return sys.platform == "darwin"


def is_apple_silicon():
    """Whether this is a Mac with Apple's own processor."""
    return is_darwin() and platform.machine() == "arm64"


def is_metal_available():
    """Whether kernels run here: they do wherever Invar has a device."""
    return not os.environ.get("ENIGMA_FORCE_NO_METAL")


def requires_metal(fn):
    """Skips a test, or a class of tests, where kernels do not run."""
    return unittest.skipUnless(is_metal_available(), "requires a device for Metal's kernels")(fn)


def requires_apple_silicon(fn):
    """Skips a test, or a class of tests, on all but Macs with Apple's own processor."""
    return unittest.skipUnless(is_apple_silicon(), "requires a Mac with Apple's own processor")(fn)


skip_if_no_metal = requires_metal
