"""Kernels of others' Metal sources on the processor against NumPy.

    python scripts/metal_numpy.py [--ggml FOLDER] [--mlx FOLDER] [--only WORD]

--ggml is a checkout of ggml, or llama.cpp's folder `ggml`; --mlx one of MLX. Each kernel is compiled as it stands,
launched as its host launches it, and compared with NumPy in double precision. A line says how far apart they are at
most, relative to the largest value; the exit status is 1 if that is more than the kernel's precision gives.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import invar as iv

Case = tuple[str, Callable[[], tuple[np.ndarray, np.ndarray]], float]

rng = np.random.default_rng(1)


def normal(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


class Source:
    """A file whose kernels are launched in threadgroups."""

    def __init__(self, file: Path, *includes: Path) -> None:
        self.file, self.includes = file, [str(folder) for folder in includes]

    def run(self, kernel: str, groups: tuple, threads: tuple, constants: dict | None = None, **args: object) -> None:
        library = iv.metal.load(str(self.file), includes=self.includes, constants=constants or {})
        grid = tuple(g * t for g, t in zip(groups, threads, strict=True))
        library[kernel][grid, threads](**args)


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float) -> np.ndarray:
    """Of rows of heads, in double precision."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = scale * q @ k.transpose(0, 2, 1)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v


# ---- ggml ----


def q4_0(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Blocks of 32 in 4 bits, and the numbers that they stand for."""
    n, k = rows.shape
    blocks = rows.reshape(n, k // 32, 32)
    scale = (np.abs(blocks).max(-1) / 7).astype(np.float16)
    q = np.clip(np.round(blocks / scale[..., None].astype(np.float32)) + 8, 0, 15).astype(np.uint8)
    packed = np.concatenate([scale[..., None].view(np.uint8), q[..., :16] | q[..., 16:] << 4], -1)
    numbers = scale[..., None].astype(np.float64) * (q.astype(np.float64) - 8)
    return packed.reshape(n, -1), numbers.reshape(n, k)


def q8_0(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Blocks of 32 in 8 bits, and the numbers that they stand for."""
    n, k = rows.shape
    blocks = rows.reshape(n, k // 32, 32)
    scale = (np.abs(blocks).max(-1) / 127).astype(np.float16)
    q = np.clip(np.round(blocks / scale[..., None].astype(np.float32)), -127, 127).astype(np.int8)
    packed = np.concatenate([scale[..., None].view(np.uint8), q.view(np.uint8)], -1)
    return packed.reshape(n, -1), (scale[..., None].astype(np.float64) * q).reshape(n, k)


def q4_k(n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Blocks of 256 in 4 bits, whose eight parts have scales and minima of 6 bits; and the numbers."""
    count = (n, k // 256)
    halves = rng.uniform(0.01, 0.02, (*count, 2)).astype(np.float16)
    scales, minima = rng.integers(0, 64, (2, *count, 8)).astype(np.uint8)
    q = rng.integers(0, 16, (*count, 4, 2, 32)).astype(np.uint8)
    low = scales[..., :4] | (scales[..., 4:] >> 4) << 6
    lowest = minima[..., :4] | (minima[..., 4:] >> 4) << 6
    rest = scales[..., 4:] & 15 | (minima[..., 4:] & 15) << 4
    quants = (q[..., 0, :] | q[..., 1, :] << 4).reshape(*count, 128)
    packed = np.concatenate([halves.view(np.uint8), low, lowest, rest, quants], -1)
    d, least = (halves[..., i, None].astype(np.float64) for i in range(2))
    numbers = (d * scales)[..., None] * q.reshape(*count, 8, 32) - (least * minima)[..., None]
    return packed.reshape(n, -1), numbers.reshape(n, k)


def ggml(root: Path) -> Iterator[Case]:
    folder = root / "src" / "ggml-metal"
    source = Source(folder / "ggml-metal.metal", root / "src", folder)
    f32 = np.dtype(np.float32).itemsize

    def soft_max() -> tuple[np.ndarray, np.ndarray]:
        rows, n = 6, 300
        x, y = normal(rows, n), np.zeros((rows, n), np.float32)
        args = dict(ne00=n, ne01=rows, ne02=1, nb01=n * f32, nb02=x.nbytes, nb03=x.nbytes, ne11=1, ne12=1, ne13=1,
                    nb11=0, nb12=0, nb13=0, nb1=n * f32, nb2=x.nbytes, nb3=x.nbytes, scale=0.5, max_bias=0.0, m0=0.0, m1=0.0,
                    n_head_log2=1)
        more = {"src1.is.src0": 1, "src2.is.src0": 1}
        source.run("kernel_soft_max_f32", (rows, 1, 1), (64, 1, 1), args=args, src0=x, src1=x, src2=x, dst=y, buf=32,
                   **more)
        e = np.exp(0.5 * x.astype(np.float64) - (0.5 * x.astype(np.float64)).max(1, keepdims=True))
        return y, e / e.sum(1, keepdims=True)

    def rms_norm() -> tuple[np.ndarray, np.ndarray]:
        rows, n, eps = 5, 320, 1e-5
        x, y = normal(rows, n), np.zeros((rows, n), np.float32)
        row, whole = n * f32, x.nbytes
        args = dict(ne00=n, ne00_t=n, nb1=row, nb2=whole, nb3=whole, eps=eps, nef1=[1] * 3, nef2=[1] * 3, nef3=[1] * 3,
                    nbf1=[row] * 3, nbf2=[whole] * 3, nbf3=[whole] * 3)
        source.run("kernel_rms_norm_f32", (rows, 1, 1), (64, 1, 1), args=args, src0=x, src1_0=x, src1_1=x, dst=y,
                   shmem_f32=32)
        wide = x.astype(np.float64)
        return y, wide / np.sqrt((wide * wide).mean(1, keepdims=True) + eps)

    def rope() -> tuple[np.ndarray, np.ndarray]:
        tokens, heads, n = 3, 2, 64
        x, y = normal(tokens, heads, n), np.zeros((tokens, heads, n), np.float32)
        at = np.array([0, 5, 9], np.uint32)
        nb = dict(nb00=f32, nb01=n * f32, nb02=heads * n * f32, nb03=x.nbytes)
        args = dict(ne00=n, ne01=heads, ne02=tokens, ne03=1, **nb, ne0=n, ne1=heads, ne2=tokens, ne3=1,
                    **{name.replace("nb0", "nb", 1): value for name, value in nb.items()}, n_dims=n, n_ctx_orig=4096,
                    freq_base=1e4, freq_scale=1.0, attn_factor=1.0, beta_fast=32.0, beta_slow=1.0, ext_factor=0.0,
                    n_past=0, n_offs=0, sect_0=0, sect_1=0, sect_2=0, sect_3=0, src2=0, inplace=0)
        source.run("kernel_rope_norm_f32", (heads, tokens, 1), (n, 1, 1),
                   {"FC_rope_is_imrope": 0, "FC_rope_is_back": 0}, args=args, src0=x, src1=at, src2=x, dst=y)
        angle = at[:, None, None] * 1e4 ** (-np.arange(0, n, 2) / n)
        c, s = np.cos(angle), np.sin(angle)
        want = np.empty((tokens, heads, n))
        want[..., 0::2] = x[..., 0::2] * c - x[..., 1::2] * s
        want[..., 1::2] = x[..., 0::2] * s + x[..., 1::2] * c
        return y, want

    def mul_mv(kind: str, packed: np.ndarray, numbers: np.ndarray, rows: int) -> tuple[np.ndarray, np.ndarray]:
        (m, k), simdgroups = numbers.shape, {"q8_0": 4}.get(kind, 2)
        x, y = normal(2, k), np.zeros((2, m), np.float32)
        row = packed.shape[1]
        args = dict(ne00=k, ne01=m, ne02=1, nb00=row, nb01=row, nb02=packed.nbytes, nb03=packed.nbytes, ne10=k, ne11=2,
                    ne12=1, nb10=f32, nb11=k * f32, nb12=x.nbytes, nb13=x.nbytes, ne0=m, ne1=2, nr0=rows, r2=1, r3=1)
        constants = dict(FC_mul_mv_nsg=simdgroups, FC_mul_mv_nxpsg=1, FC_mul_mv_ne12=1, FC_mul_mv_r2=1, FC_mul_mv_r3=1)
        memory = {} if kind == "q4_K" else {"shmem": 32 * rows * f32}
        per_group = rows if kind == "q8_0" else rows * simdgroups
        source.run(f"kernel_mul_mv_{kind}_f32", (-(-m // per_group), 2, 1), (32, simdgroups, 1), constants, args=args,
                   src0=packed, src1=x, dst=y, **memory)
        return y, x.astype(np.float64) @ numbers.T

    def mul_mm(kind: str, packed: np.ndarray, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        (m, k), n = numbers.shape, 40
        x, y = normal(n, k), np.zeros((n, m), np.float32)
        args = dict(ne00=k, ne02=1, nb01=packed.strides[0], nb02=packed.nbytes, nb03=packed.nbytes, ne12=1, nb10=f32,
                    nb11=k * f32, nb12=x.nbytes, nb13=x.nbytes, ne0=m, ne1=n, r2=1, r3=1)
        constants = dict(FC_mul_mm_bc_inp=0, FC_mul_mm_bc_out=1, FC_mul_mm_ne12=1, FC_mul_mm_ne13=1, FC_mul_mm_r2=1,
                         FC_mul_mm_r3=1)
        source.run(f"kernel_mul_mm_{kind}_f32", (-(-n // 32), -(-m // 64), 1), (128, 1, 1), constants, args=args,
                   src0=packed, src1=x, dst=y, shmem=8192)
        return y, x.astype(np.float64) @ numbers.T

    def flash_attention() -> tuple[np.ndarray, np.ndarray]:
        heads, queries, keys, n, simdgroups = 2, 12, 128, 64, 4
        q, y = normal(heads, queries, n), np.zeros((queries, heads, n), np.float32)
        k, v = (normal(heads, keys, n).astype(np.float16) for _ in range(2))
        rows = dict(nb11=2 * n, nb12=2 * keys * n, nb13=k.nbytes, nb21=2 * n, nb22=2 * keys * n, nb23=v.nbytes)
        args = dict(ne01=queries, ne02=heads, ne03=1, nb01=n * f32, nb02=queries * n * f32, nb03=q.nbytes, ne11=keys,
                    ne_12_2=heads, ne_12_3=1, ns10=n, **rows, ns20=n, ne31=1, ne32=1, ne33=1, nb31=0, nb32=0, nb33=0,
                    ne1=heads, ne2=queries, ne3=1, scale=0.125, max_bias=0.0, m0=0.0, m1=0.0, n_head_log2=1,
                    logit_softcap=0.0)
        off = ("has_mask", "has_sinks", "has_bias", "has_scap", "has_kvpad", "bc_mask")
        constants = {f"FC_flash_attn_ext_{name}": 0 for name in off}
        constants |= {f"FC_flash_attn_ext_{name}": value for name, value in (("ns10", n), ("ns20", n), ("nsg", simdgroups))}
        halves = 8 * (n + 2 * n + 2 * 2 * 64)
        unused = dict.fromkeys(("mask", "sinks", "pad", "blk"), np.zeros(64, np.float32))
        source.run("kernel_flash_attn_ext_f16_dk64_dv64", (-(-queries // 8), heads, 1), (32, simdgroups, 1), constants,
                   args=args, q=q, k=k, v=v, dst=y, shmem_f16=halves, **unused)
        return y, attention(q, k, v, 0.125).transpose(1, 0, 2)

    yield "soft_max", soft_max, 1e-5
    yield "rms_norm", rms_norm, 1e-5
    yield "rope", rope, 1e-5
    yield "mul_mv q4_0", lambda: mul_mv("q4_0", *q4_0(normal(24, 256)), 4), 1e-5
    yield "mul_mv q8_0", lambda: mul_mv("q8_0", *q8_0(normal(24, 512)), 2), 1e-5
    yield "mul_mv q4_K", lambda: mul_mv("q4_K", *q4_k(24, 512), 2), 1e-5
    half = normal(72, 64).astype(np.float16)
    yield "mul_mm f16", lambda: mul_mm("f16", half, half.astype(np.float64)), 2e-3
    yield "mul_mm q4_0", lambda: mul_mm("q4_0", *q4_0(normal(72, 64))), 2e-3
    yield "flash attention", flash_attention, 2e-3


# ---- MLX ----


def mlx(root: Path) -> Iterator[Case]:
    folder = root / "mlx" / "backend" / "metal" / "kernels"

    def source(name: str) -> Source:
        return Source(folder / name, root)

    def softmax() -> tuple[np.ndarray, np.ndarray]:
        x, y = normal(5, 500), np.zeros((5, 500), np.float32)
        arguments = {"in": x, "out": y, "axis_size": 500}
        source("softmax.metal").run("block_softmax_float32", (5, 1, 1), (128, 1, 1), **arguments)
        e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
        return y, e / e.sum(1, keepdims=True)

    def scan() -> tuple[np.ndarray, np.ndarray]:
        x, y = normal(3, 1000), np.zeros((3, 1000), np.float32)
        arguments = {"in": x, "out": y, "axis_size": 1000}
        kernel = "contig_scan_inclusive_sum_float32_float32"
        source("scan.metal").run(kernel, (1, 3, 1), (64, 1, 1), **arguments)
        return y, np.cumsum(x.astype(np.float64), 1)

    def reduce() -> tuple[np.ndarray, np.ndarray]:
        x, y = normal(5000), np.zeros(1, np.float32)
        arguments = {"in": x, "out": y, "in_size": 5000, "row_size": 5000}
        source("reduce.metal").run("all_reduce_sumfloat32", (1, 1, 1), (256, 1, 1), **arguments)
        return y, x.sum(keepdims=True, dtype=np.float64)

    def sort() -> tuple[np.ndarray, np.ndarray]:
        n = 500
        x, y = normal(4, n), np.zeros((4, n), np.float32)
        strides = dict(in_stride_sorted_axis=1, out_stride_sorted_axis=1, in_stride_segment_axis=n,
                       out_stride_segment_axis=n)
        kernel = "c_block_sort_float32_float32_bn128_tn4"
        source("sort.metal").run(kernel, (1, 4, 1), (128, 1, 1), inp=x, out=y, size_sorted_axis=n, **strides)
        return y, np.sort(x, 1)

    def gemm() -> tuple[np.ndarray, np.ndarray]:
        m, n, k = 70, 50, 40
        a, b, d = normal(m, k), normal(k, n), np.zeros((m, n), np.float32)
        tiles = (-(-n // 64), -(-m // 64))
        params = dict(M=m, N=n, K=k, lda=k, ldb=n, ldd=n, tiles_n=tiles[0], tiles_m=tiles[1],
                      gemm_k_iterations_aligned=k // 16, batch_ndim=1, batch_stride_a=0, batch_stride_b=0, batch_stride_d=0,
                      swizzle_log=0)
        constants = dict(has_batch=0, use_out_source=0, do_axpby=0, align_M=0, align_N=0, align_K=0)
        kernel = "steel_gemm_fused_nn_float32_float32_bm64_bn64_bk16_wm2_wn2"
        file = source("steel/gemm/kernels/steel_gemm_fused.metal")
        file.run(kernel, (*tiles, 1), (32, 2, 2), constants, A=a, B=b, D=d, params=params)
        return d, a.astype(np.float64) @ b

    def steel_attention() -> tuple[np.ndarray, np.ndarray]:
        heads, queries, keys, n = 2, 40, 50, 64
        q, k, v = normal(heads, queries, n), normal(heads, keys, n), normal(heads, keys, n)
        y = np.zeros((heads, queries, n), np.float32)
        of_queries, of_keys = [heads * queries * n, queries * n, n], [heads * keys * n, keys * n, n]
        params = dict(B=1, H=heads, D=n, qL=queries, kL=keys, gqa_factor=1, scale=0.125, NQ=2, NK=2, NQ_aligned=1,
                      NK_aligned=1, qL_rem=queries - 32, kL_rem=keys - 32, qL_off=keys - queries, Q_strides=of_queries,
                      K_strides=of_keys, V_strides=of_keys, O_strides=of_queries)
        constants = dict(align_Q=0, align_K=0, has_mask=0, do_causal=0, has_sinks=0)
        kernel = "steel_attention_float32_bq32_bk32_bd64_wm4_wn1_maskfloat32"
        file = source("steel/attn/kernels/steel_attention.metal")
        file.run(kernel, (2, heads, 1), (32, 4, 1), constants, Q=q, K=k, V=v, O=y, params=params)
        return y, attention(q, k, v, 0.125)

    yield "mlx softmax", softmax, 1e-5
    yield "mlx scan", scan, 1e-4
    yield "mlx reduce", reduce, 1e-4
    yield "mlx sort", sort, 0.0
    yield "mlx gemm", gemm, 1e-5
    yield "mlx steel attention", steel_attention, 1e-5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ggml", type=Path)
    parser.add_argument("--mlx", type=Path)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    cases: list[Case] = []
    if options.ggml:
        cases += ggml(options.ggml)
    if options.mlx:
        cases += mlx(options.mlx)
    cases = [case for case in cases if options.only in case[0]]
    if not cases:
        parser.error("no kernel is asked for: give --ggml or --mlx a folder")
    wrong = 0
    for name, run, bound in cases:
        try:
            got, want = run()
        except iv.Error as error:
            print(f"{name}: {error}", flush=True)
            wrong += 1
            continue
        apart = float(np.abs(got - want).max() / np.abs(want).max())
        is_right = apart <= bound
        wrong += not is_right
        print(f"{name}: {apart:.2g} apart, {'right' if is_right else f'WRONG: more than {bound:g}'}", flush=True)
    print(f"{len(cases) - wrong} of {len(cases)} right")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
