"""Annotations as text, as all are after the import below."""

from __future__ import annotations

import numpy as np

import invar as iv


def scaled(T, n):
    @iv.kernel
    def k(x: iv.Buffer[T], o: iv.Buffer[T]):
        i = iv.thread_position_in_grid("x")
        o[i] = x[i] * n

    return k


def test_annotations_in_text_name_what_is_known_where_the_kernel_is_defined():
    for kind, dtype in ((iv.f32, np.float32), (iv.i32, np.int32)):
        o = np.zeros(4, dtype)
        scaled(kind, 3)[4, 4](np.arange(4, dtype=dtype), o)
        assert o.tolist() == [0, 3, 6, 9]
