"""The example kernels: right, free of races, and the same as in the text form where there is one."""

import importlib.util
import pathlib
import subprocess
import sys

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
    layouts = {"attention", "decoder", "gemm", "heat", "resize", "rms_norm", "transpose", "vector_add"}
    assert names == layouts | set(FORMS)


def by_text(file, folder, grid, threadgroup, outs, kernel=None, **given):
    """What the kernel of a text file leaves in its outputs, as bytes."""
    command = [sys.executable, "-m", "invar", "run", str(FOLDER.parent / file)]
    command += ["--device", iv.device().name, "--grid", grid, "--threadgroup", threadgroup]
    command += ["--kernel", kernel] if kernel else []
    for name, value in given.items():
        if isinstance(value, np.ndarray):
            np.save(folder / f"{name}.npy", value)
            value = f"@{folder / name}.npy"
        command += ["--arg", f"{name}={value}"]
    for name in outs:
        command += ["--out", f"{name}=@{folder / name}.out.npy"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [np.load(folder / f"{name}.out.npy").tobytes() for name in outs]


def histogram_forms(module, folder):
    data, bins = np.random.default_rng(1).integers(0, 256, 10_000, np.uint8), np.zeros(256, np.uint32)
    module.histogram[512, 256](data, bins)
    given = dict(bytes=data, counts="zeros(256)")
    yield [bins], by_text("byte_histogram.inv", folder, "512", "256", ["counts"], **given)
    yield iv.check(module.histogram, grid=512, threadgroup=256)(data, bins)


def matrix_product_forms(module, folder):
    a, b = np.random.default_rng(1).random((2, 32, 48), np.float32)
    b, c = b.reshape(48, 32), np.zeros((32, 32), np.float32)
    module.product[(32, 32), (16, 16)](a, b, c, 48, 32)
    given = dict(a=a.ravel(), b=b.ravel(), c="zeros(1024)", k=48, n=32)
    yield [c], by_text("matrix_product.inv", folder, "32,32", "16,16", ["c"], **given)
    yield iv.check(module.product, grid=(32, 32), threadgroup=(16, 16))(a, b, c, 48, 32)


def n_body_forms(module, folder):
    now = module.solar_system()
    after = np.zeros_like(now)
    module.advance[9, 32](now, after, 0.001)
    # The command reads and writes arrays of numbers; structs stand in a line of the file.
    text = (FOLDER.parent / "n_body.inv").read_text().split("; run:")[0]

    def scalars(bodies):
        return "[" + ", ".join(map(str, bodies.view(np.float32).tolist())) + "]"

    for mass, code in ((0, 0), (1, 1)):
        after["mass"][8] += mass
        line = f"now = {scalars(now)}, after = zeros(9), years = 0.001) grid(9) -> after == {scalars(after)}"
        (folder / "n_body.inv").write_text(f"{text}; run: @advance({line}\n")
        command = [sys.executable, "-m", "invar", "run", str(folder / "n_body.inv")]
        assert subprocess.run([*command, "--device", iv.device().name]).returncode == code
    yield iv.check(module.advance, grid=9, threadgroup=32)(now, after, 0.001)


def nearest_forms(module, folder):
    points, queries = (np.random.default_rng(n).random((n, 4), np.float32) for n in (200, 70))
    found = np.zeros((70, 8), np.uint32)
    module.nearest[70, 64](points, queries, found)
    given = dict(points=points, queries=queries, found="zeros(560)")
    yield [found], by_text("nearest.inv", folder, "70", "64", ["found"], **given)
    yield iv.check(module.nearest, grid=70, threadgroup=64)(points, queries, found)


def scan_forms(module, folder):
    x, before = np.random.default_rng(1).integers(0, 256, 9000, np.uint32), np.zeros(9000, np.uint32)
    total = np.zeros(3, np.uint32)
    module.scan[768, 256](x, before, total)
    given = dict(x=x, before="zeros(9000)", total="zeros(3)")
    outs = ["before", "total"]
    yield [before, total], by_text("scan.inv", folder, "768", "256", outs, "scan", **given)
    again = before.copy()
    module.add[9000, 256](again, total)
    given = dict(before=before, start=total)
    yield [again], by_text("scan.inv", folder, "9000", "256", ["before"], "add", **given)
    assert (module.scanned(x) == np.cumsum(x, dtype=np.uint32) - x).all()
    assert iv.check(module.scan, grid=768, threadgroup=256)(x, before, total).passed
    yield iv.check(module.add, grid=9000, threadgroup=256)(before, total)


def sobel_forms(module, folder):
    picture = np.random.default_rng(1).integers(0, 256, (35, 40), np.uint8)
    edges = np.zeros_like(picture)
    module.sobel[(40, 35), (32, 2)](picture, edges, 40, 35)
    given = dict(picture=picture.ravel(), edges="zeros(1400)", width=40, height=35)
    yield [edges], by_text("sobel.inv", folder, "40,35", "32,2", ["edges"], **given)
    yield iv.check(module.sobel, grid=(40, 35), threadgroup=(32, 2))(picture, edges, 40, 35)


def softmax_forms(module, folder):
    x = 8 * np.random.default_rng(1).standard_normal((3, 1000), np.float32)
    y = np.zeros_like(x)
    module.softmax[768, 256](x, y, 1000)
    given = dict(x=x.ravel(), y="zeros(3000)", n=1000)
    yield [y], by_text("softmax.inv", folder, "768", "256", ["y"], **given)
    yield iv.check(module.softmax, grid=768, threadgroup=256)(x, y, 1000)


#: The examples that are there as text and in Rust too, and what their ``run`` differs from NumPy at most.
FORMS = {
    "histogram": (histogram_forms, 0),
    "matrix_product": (matrix_product_forms, 2e-6),
    "n_body": (n_body_forms, 2e-3),
    "nearest": (nearest_forms, 0),
    "scan": (scan_forms, 0),
    "sobel": (sobel_forms, 0),
    "softmax": (softmax_forms, 1e-6),
}


@pytest.mark.parametrize("name", FORMS)
def test_an_example_gives_what_its_text_form_gives(name, tmp_path):
    forms, _ = FORMS[name]
    *compared, report = forms(load(name), tmp_path)
    for arrays, texts in compared:
        assert [array.tobytes() for array in arrays] == texts
    assert report.passed


@pytest.mark.parametrize("name", FORMS)
def test_an_example_gives_what_numpy_gives(name):
    few = {"scan": (100_000,), "nearest": (500, 100)}
    assert load(name).run(*few.get(name, ())) <= FORMS[name][1]


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


def test_resize():
    module = load("resize")
    small, error = module.run()
    # Half a code is the rounding of a mean, and a little the weights'.
    assert small.numpy().any() and error <= 0.51
    other = iv.Texture.zeros((5, 9), "rgba8unorm")
    assert iv.check(module.resize, grid=(9, 5), threadgroup=(16, 16))(small, other).passed
