"""Functions of whole tiles, and of small integers packed in words."""

from .gemm import gemm
from .quant import dequantize_int8, pack_int4x2, pack_uint8x4, unpack_int4x2, unpack_uint8x4

__all__ = [
    "dequantize_int8", "gemm", "pack_int4x2", "pack_uint8x4", "unpack_int4x2", "unpack_uint8x4",
]  # fmt: skip
