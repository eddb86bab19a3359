"""What tests ask of the machine."""

import platform
import sys

__all__ = ["is_apple_silicon", "is_darwin", "is_metal_available"]


def is_darwin():
    """Whether this is macOS."""
    return sys.platform == "darwin"


def is_apple_silicon():
    """Whether this is a Mac with Apple's own processor."""
    return is_darwin() and platform.machine() == "arm64"


def is_metal_available():
    """Whether kernels run here: they do wherever Invar has a device."""
    return True
