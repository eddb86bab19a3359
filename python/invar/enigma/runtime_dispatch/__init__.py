"""Running compiled kernels."""

from .runtime import MetalRuntime
