"""Shapes and other nested tuples."""

from ..layout import product, repeat_like, select

__all__ = ["product", "repeat_like", "select"]
