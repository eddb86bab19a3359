"""Kernels and how they are compiled."""

from .compiler import compile
from .kernel import kernel
