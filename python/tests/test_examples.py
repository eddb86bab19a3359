"""The example kernels: right, and free of races."""

import importlib.util
import pathlib

import numpy as np
import pytest

import invar as iv

FOLDER = pathlib.Path(__file__).parents[2] / "examples" / "python"


def load(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_example_is_tested():
    names = {path.stem for path in FOLDER.glob("*.py")}
    assert names == {"attention", "decoder", "gemm", "heat", "rms_norm", "transpose", "vector_add"}


@pytest.mark.parametrize("kernel", ["tiled", "hand"])
def test_vector_add(kernel):
    module = load("vector_add")
    assert module.run(getattr(module, kernel)) == 0
    x = np.ones((64, 512), np.float32)
    checked = iv.check(getattr(module, kernel), grid=x.size // 16, threadgroup=256)
    assert checked(x, x.copy(), x.copy(), 64, 512).passed


@pytest.mark.parametrize("kernel", ["double_buffered", "tiled"])
def test_gemm(kernel):
    module = load("gemm")
    kernel = getattr(module, kernel)
    assert module.run(kernel) < 2e-6
    assert module.run(kernel, 64, 64, 16) < 2e-6
    grid, threadgroup = module.grid(kernel, 64, 128)
    a, b, c = np.ones((64, 48)), np.ones((48, 128)), np.zeros((64, 128))
    checked = iv.check(kernel, grid=grid, threadgroup=threadgroup)
    assert checked(*(x.astype(np.float32) for x in (a, b, c)), 64, 128, 48).passed


def test_a_pipeline_without_its_barrier_is_reported(tmp_path):
    """The double-buffered product with the barrier of its loop taken out."""
    text = (FOLDER / "gemm.py").read_text()
    barrier = '        iv.barrier("threadgroup", "threadgroup")\n'
    assert barrier in text
    path = tmp_path / "broken.py"
    path.write_text(text.replace(barrier, "", 1))
    spec = importlib.util.spec_from_file_location("broken", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernel = module.double_buffered
    grid, threadgroup = module.grid(kernel, 64, 64)
    a, b, c = (np.ones(s, np.float32) for s in ((64, 48), (48, 64), (64, 64)))
    with pytest.raises(iv.CheckError, match="data-race") as caught:
        iv.check(kernel, grid=grid, threadgroup=threadgroup)(a, b, c, 64, 64, 48)
    assert "broken.py" in str(caught.value)


def test_transpose():
    module = load("transpose")
    assert module.run() and module.run(64, 32)
    x, y = np.ones((40, 33), np.float32), np.ones((33, 40), np.float32)
    checked = iv.check(module.transpose, grid=iv.threadgroups(2, 2), threadgroup=(32, 8))
    assert checked(x, y, 40, 33).passed


def test_rms_norm():
    module = load("rms_norm")
    assert module.run() < 1e-5 and module.run(1, 7) < 1e-5
    x, y = np.ones((2, 300), np.float32), np.zeros((2, 300), np.float32)
    checked = iv.check(module.rms_norm, grid=512, threadgroup=256)
    assert checked(x, x[0].copy(), y, 300, 1e-6).passed


def test_attention():
    module = load("attention")
    assert module.run() < 1e-5 and module.run(2, 3) < 1e-5
    q, k = np.ones((2, 64), np.float32), np.ones((9, 64), np.float32)
    checked = iv.check(module.attention, grid=2 * 128, threadgroup=128)
    assert checked(q, k, k.copy(), np.zeros_like(q), 9, 0.125).passed


def test_heat():
    module = load("heat")
    first, many = module.run()
    assert first < 1e-6 and many < 1e-6
    x, y = np.ones(300, np.float32), np.zeros(300, np.float32)
    assert iv.check(module.laplacian, grid=300, threadgroup=256)(x, y, 300).passed
    assert iv.check(module.heat, grid=512, threadgroup=256)(x, y, 300, 0.1).passed


def test_decoder():
    module = load("decoder")
    assert module.run() < 1e-4
    x, *weights = (a.astype(np.float32) for a in module.arguments(2))
    checked = iv.check(module.decoder, grid=2 * module.THREADS, threadgroup=module.THREADS)
    assert checked(x, *weights, np.zeros_like(x)).passed
