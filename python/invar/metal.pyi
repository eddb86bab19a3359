# The types of invar.metal; its functions carry their documentation.
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from . import Device, LoadedKernel, Module, Report, Size

def load(
    file: str | os.PathLike[str],
    *,
    text: str | None = None,
    constants: Mapping[str | int, float | bool | Iterable[float | bool]] | None = None,
    includes: Iterable[str | os.PathLike[str]] = (),
    defines: Mapping[str, Any] | None = None,
) -> Library: ...
def metal_kernel(
    name: str,
    input_names: Sequence[str],
    output_names: Sequence[str],
    source: str,
    header: str = "",
    ensure_row_contiguous: bool = True,
    atomic_outputs: bool = False,
) -> MetalKernel: ...

class Library(Module):
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, name: str) -> LoadedKernel: ...

class MetalKernel:
    def __call__(
        self,
        *,
        inputs: Sequence[Any],
        output_shapes: Sequence[Sequence[int]],
        output_dtypes: Sequence[Any],
        grid: Size,
        threadgroup: Size,
        template: Iterable[tuple[str, Any]] = (),
        init_value: float | None = None,
        verbose: bool = False,
        device: Device | str | None = None,
    ) -> list[np.ndarray[Any, Any]]: ...
    def check(
        self,
        *,
        inputs: Sequence[Any],
        output_shapes: Sequence[Sequence[int]],
        output_dtypes: Sequence[Any],
        grid: Size,
        threadgroup: Size,
        template: Iterable[tuple[str, Any]] = (),
        init_value: float | None = None,
        **options: Any,
    ) -> Report: ...
