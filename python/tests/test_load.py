"""Kernels of files: shaders in WGSL, and modules in Invar's own forms."""

import pathlib

import numpy as np
import pytest

import invar as iv

SHADER = """
override by = 2.0;
struct Params { first: u32, scale: vec3f, last: u32 }
struct List { count: u32, items: array<u32> }
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;
@group(1) @binding(0) var<storage, read_write> points: array<vec3f>;
@group(1) @binding(1) var<storage, read_write> list: List;
@group(1) @binding(2) var<uniform> n: u32;
@group(1) @binding(3) var<uniform> m: mat3x3f;

@compute @workgroup_size(64)
fn scale(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < n) { y[id.x] = by * x[id.x]; }
}

@compute @workgroup_size(4)
fn move_points(@builtin(global_invocation_id) id: vec3u) {
  points[id.x] += params.scale * f32(params.last - params.first);
}

@compute @workgroup_size(4)
fn fill(@builtin(global_invocation_id) id: vec3u) {
  list.items[id.x] = list.count + id.x;
}

@compute @workgroup_size(1)
fn rotate() { points[0] = m * points[0]; }

@compute @workgroup_size(8)
fn race(@builtin(local_invocation_index) i: u32) {
  y[0] = f32(i); // here
}
"""


PARAMS = {"first": 1, "scale": (1, 1, 1), "last": 2}


@pytest.fixture(scope="module")
def shader():
    return iv.load("things.wgsl", text=SHADER)


def test_a_shader_is_launched_like_a_kernel(shader):
    assert list(shader) == ["scale", "move_points", "fill", "rotate", "race"]
    kernel = shader["scale"]
    x, y = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    kernel[iv.threadgroups(2)](x, y, n=100)
    np.testing.assert_array_equal(y, 2 * x)
    kernel[128](**{"0.0": x, "0.1": y, "1.2": 50}, constants={"by": 3.0})
    np.testing.assert_array_equal(y, np.where(x < 50, 3 * x, 2 * x))
    y[:] = 0
    ready = kernel[100, 64].prepare(x=x, y=y, n=np.uint32(100))
    ready()
    kernel[iv.threadgroups(2)].submit(x, y, 100).result()
    np.testing.assert_array_equal(y, 2 * x)
    assert iv.check(kernel, grid=iv.threadgroups(2))(x, y, 100)
    assert iv.bench(kernel, grid=iv.threadgroups(2), runs=2)(x, y, 100).median >= 0


def test_vectors_of_three_are_lists_of_three():
    text = """
    struct Box { corners: array<vec3f, 2>, by: f32 }
    @group(0) @binding(0) var<uniform> box: Box;
    @group(0) @binding(1) var<storage, read> at: array<vec3f, 2>;
    @group(0) @binding(2) var<uniform> turn: mat3x3f;
    @group(0) @binding(3) var<storage, read_write> y: array<vec3f>;
    @compute @workgroup_size(2)
    fn main(@builtin(local_invocation_index) i: u32) {
      y[i] = box.corners[i] * box.by;
      y[i + 2] = turn * at[i];
    }
    """
    kernel = iv.load("box.wgsl", text=text)["main"]
    corners, at = [[1, 2, 3], [4, 5, 6]], [(7, 8, 9), (10, 11, 12)]
    swap = [[0, 1, 0], [1, 0, 0], [0, 0, 1]]
    expected = [[2, 4, 6, 0], [8, 10, 12, 0], [8, 7, 9, 0], [11, 10, 12, 0]]
    as_array = lambda rows: np.array(rows, np.float32)
    for of in (lambda rows: rows, as_array, tuple):
        y = np.zeros((4, 4), np.float32)
        kernel[iv.threadgroups(1)](box={"corners": of(corners), "by": 2}, at=of(at), turn=of(swap), y=y)
        np.testing.assert_array_equal(y, expected)
    for wrong in ([[1, 2, 3]], [[1, 2], [3, 4]], as_array(corners).T):
        with pytest.raises(iv.ArgumentError, match="field `corners` of argument `box` of `main`"):
            kernel[iv.threadgroups(1)](box={"corners": wrong, "by": 2}, at=at, turn=swap, y=y)


def test_overrides_are_given_when_a_shader_is_loaded_or_launched():
    text = """
    @id(7) override size: u32;
    @group(0) @binding(0) var<storage, read_write> y: array<u32>;
    @compute @workgroup_size(size) fn main(@builtin(local_invocation_index) i: u32) { y[i] = size; }
    """
    y = np.zeros(8, np.uint32)
    kernel = iv.load("sized.wgsl", text=text, constants={"size": 8})["main"]
    assert kernel.threadgroup == (8, 1, 1)
    kernel[iv.threadgroups(1)](y)
    assert y.tolist() == [8] * 8
    with pytest.raises(iv.VerifyError, match="override `size` .*needs a value") as error:
        iv.load("sized.wgsl", text=text)["main"]
    assert 'give one: constants={"size": 64}' in str(error.value)
    with pytest.raises(iv.ArgumentError, match="write numbers by their names"):
        iv.load("sized.wgsl", text=text, constants={"size": "8"})


def test_what_a_buffer_holds_may_be_passed_in_each_of_its_forms(shader):
    kernel = shader["move_points"]
    wanted = np.array([[0.5, 1, 2], [1.5, 2, 3]], np.float32) + [3, 6, 9]
    for points in (
        np.zeros(2, kernel.dtype("points")),
        np.zeros((2, 4), np.float32),
        np.zeros(8, np.float32),
        np.zeros(32, np.uint8),
        bytearray(32),
    ):
        plain = np.frombuffer(points, np.float32) if isinstance(points, bytearray) else points
        plain = plain.reshape(-1).view(np.float32).reshape(2, 4)
        plain[:, :3] = [[0.5, 1, 2], [1.5, 2, 3]]
        for params in (
            {"first": 1, "scale": (1.0, 2.0, 3.0), "last": 4},
            np.array((1, [0] * 3, [1, 2, 3], 4), kernel.dtype("params")),
            np.array([(1, [0] * 3, [1, 2, 3], 4)], kernel.dtype("params")).tobytes(),
        ):
            before = plain.copy()
            kernel[2, 4](points=points, params=params)
            np.testing.assert_array_equal(plain[:, :3], wanted)
            plain[:] = before
    m = np.zeros((3, 4), np.float32)
    m[:, :3] = [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    points = np.array([[1, 2, 3, 0]], np.float32)
    shader["rotate"][iv.threadgroups(1)](points=points, m=m)
    assert points.tolist() == [[3, 1, 2, 0]]


ZEROS = """
var<workgroup> tile: array<u32, 8>;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) { y[i] = tile[i]; y[4] = i; }
"""


def test_workgroup_memory_that_is_zero_at_first_is_no_finding():
    clean = iv.load("zeros.wgsl", text=ZEROS.replace("y[4] = i;", ""))["main"]
    y = np.full(5, 9, np.uint32)
    report = iv.check(clean, grid=4)(y)
    assert report.passed and not report.findings and not report.allowed
    clean[4](y, device="checked")
    assert y.tolist() == [0, 0, 0, 0, 9]
    # Beside an error all is told that was found.
    racy = iv.load("racy.wgsl", text=ZEROS)["main"]
    with pytest.raises(iv.ReportError) as launched:
        racy[4](y, device="checked")
    with pytest.raises(iv.CheckError) as checked:
        iv.check(racy, grid=4)(y)
    for error in (launched.value, checked.value):
        assert [f.rule for f in error.findings] == ["data-race"], error

    @iv.kernel(allow=["uninitialised_reads"])
    def zeros(y: iv.Buffer[iv.u32]):
        tile = iv.threadgroup_alloc(iv.u32, 4)
        y[iv.thread_index_in_threadgroup()] = tile[iv.thread_index_in_threadgroup()]

    assert not iv.check(zeros, grid=4, threadgroup=4)(y).findings


def test_a_struct_that_ends_in_an_array_is_one_argument_or_two(shader):
    kernel = shader["fill"]
    whole = np.zeros(6, np.uint32)
    whole[0] = 7
    kernel[5, 4](whole)
    assert whole.tolist() == [7, 7, 8, 9, 10, 11]
    items = np.zeros(3, np.uint32)
    kernel[3, 4](np.array([5], np.uint32), **{"list.items": items})
    assert items.tolist() == [5, 6, 7]
    with pytest.raises(iv.ArgumentError, match="pass both as one array of bytes"):
        kernel[3, 4](7)
    with pytest.raises(iv.ArgumentError, match="has 2 bytes, and what stands before its array has 4"):
        kernel[3, 4](np.zeros(2, np.uint8))


def test_arrays_on_a_device_are_arguments_too(shader):
    device = iv.device()
    x = device.array(np.arange(4, dtype=np.float32))
    y = device.zeros(4, iv.f32)
    shader["scale"][4](x, y, 4, device=device)
    np.testing.assert_array_equal(y.numpy(), [0, 2, 4, 6])
    points = device.zeros(2, iv.Struct("P", shader["rotate"].dtype("points")))
    m = np.zeros((3, 4), np.float32)
    shader["rotate"][iv.threadgroups(1)](points, m, device=device)
    np.testing.assert_array_equal(points.numpy()["v"], np.zeros((2, 3)))


def test_a_check_names_the_lines_of_the_shader(shader):
    y = np.zeros(8, np.float32)
    with pytest.raises(iv.CheckError) as caught:
        iv.check(shader["race"], grid=iv.threadgroups(1))(y)
    (race,) = caught.value.findings
    assert race.rule == "data-race"
    assert race.labels[0].file == "things.wgsl"
    assert SHADER.splitlines()[race.line - 1].endswith("// here")


def test_workgroup_memory_that_is_read_first_is_no_finding():
    text = """
    var<workgroup> w: array<u32, 8>;
    @group(0) @binding(0) var<storage, read_write> y: array<u32>;
    @compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) { y[i] = w[i] + 1u; }
    """
    y = np.zeros(8, np.uint32)
    report = iv.check(iv.load("w.wgsl", text=text)["main"], grid=8)(y)
    assert report and not report.findings and not report.allowed
    assert y.tolist() == [0] * 8


def test_what_a_browser_refuses_is_told():
    text = """
    fn add(to: ptr<function, u32>, by: ptr<function, u32>) { *to += *by; }
    @compute @workgroup_size(1) fn main() { var x = 1u; add(&x, &x); }
    """
    (alias,) = iv.load("twice.wgsl", text=text).lints
    assert (alias.rule, alias.severity, alias.line) == ("wgsl-alias", "warning", 3)
    assert iv.load("once.wgsl", text=text.replace("*by", "1u")).lints == []
    assert iv.load("none.inv", text="kernel @k() {\n}\n").lints == []


@pytest.mark.parametrize(
    ("name", "arguments", "sentence"),
    [
        ("scale", {}, "needs an argument for `x`"),
        ("scale", {"z": 1}, r"has no parameter `z`; it has `x` \(0.0\), `y` \(0.1\), `n` \(1.2\)"),
        ("scale", {"x": np.zeros(4), "y": 1, "n": 1}, "has dtype float64, expected float32: convert it"),
        ("scale", {"x": np.zeros(4, np.float32), "y": 1, "n": 1}, "is a int, expected an array"),
        ("scale", {"x": np.zeros(3, np.uint8), "y": 1, "n": 1}, "not a multiple of an element's 4"),
        (
            "scale",
            {"x": np.zeros(4, np.float32), "y": np.zeros(4, np.float32), "n": -1},
            "-1, which does not fit u32",
        ),
        (
            "scale",
            {"x": np.zeros(4, np.float32), "y": np.zeros(4, np.float32), "n": [1, 2]},
            "is .1, 2. .list., expected a value of type u32",
        ),
        (
            "scale",
            {"x": np.zeros(4, np.float32), "y": np.zeros(4, np.float32), "n": np.zeros(2, np.uint32)},
            "has 8 bytes, expected 4: the variable has 1 element of 4 bytes",
        ),
        ("scale", {"x": np.zeros((4, 4), np.float32)[:, 1], "y": 1, "n": 1}, "is a int, expected"),
        (
            "move_points",
            {"points": np.zeros(4, np.int32), "params": PARAMS},
            r"has dtype int32, expected kernel.dtype\('points'\)",
        ),
        (
            "move_points",
            {"points": np.zeros(3, np.float32), "params": PARAMS},
            "12 bytes, which is not a multiple of an element's 16",
        ),
        (
            "move_points",
            {"points": np.zeros((4, 4), np.float32)[::2, :], "params": PARAMS},
            "is not contiguous",
        ),
        (
            "move_points",
            {"points": np.zeros(4, np.float32), "params": {"first": 1}},
            "needs a value for 'scale', 'last'",
        ),
        (
            "move_points",
            {"points": np.zeros(4, np.float32), "params": {"frist": 1}},
            "has no field 'frist'; it has first, scale, last",
        ),
        (
            "move_points",
            {"points": np.zeros(4, np.float32), "params": 3},
            "is 3, expected the fields of @Params by name",
        ),
        (
            "move_points",
            {"points": np.zeros(4, np.float32), "params": {"first": 1, "scale": 2, "last": 1}},
            "field `scale` of .* has shape \\(\\), expected \\(3,\\) for f32x3",
        ),
    ],
)
def test_what_does_not_fit_is_refused(shader, name, arguments, sentence):
    with pytest.raises(iv.ArgumentError, match=sentence):
        shader[name][4, shader[name].threadgroup](**arguments)


def test_what_is_no_kernel_or_file_is_refused(shader, tmp_path):
    with pytest.raises(iv.ArgumentError, match="has no kernel 'main'; it has scale, move_points"):
        shader["main"]
    with pytest.raises(iv.Error, match="is not a .wgsl, .inv or .invb file"):
        iv.load("things.txt")
    with pytest.raises(iv.Error, match=r"^two\\nlines.txt is not a .wgsl, .inv or .invb file"):
        iv.load("two\nlines.txt")
    with pytest.raises(iv.Error, match="No such file"):
        iv.load(tmp_path / "none.wgsl")
    with pytest.raises(iv.VerifyError, match="bad.wgsl:1:4"):
        iv.load("bad.wgsl", text="fn (")
    with pytest.raises(iv.VerifyError, match="a .texture_external. is not supported"):
        iv.load(
            "textures.wgsl",
            text="@group(0) @binding(0) var t: texture_external;\n"
            "@compute @workgroup_size(1) fn main() { _ = textureDimensions(t); }",
        )["main"]
    (tmp_path / "latin.wgsl").write_bytes(b"// \xe9")
    with pytest.raises(iv.Error, match="is not text in UTF-8"):
        iv.load(tmp_path / "latin.wgsl")
    (tmp_path / "bad.invb").write_bytes(b"nothing")
    with pytest.raises(iv.Error, match="bad.invb"):
        iv.load(tmp_path / "bad.invb")
    with pytest.raises(iv.ArgumentError, match="launched with a grid"):
        shader["scale"](1)
    with pytest.raises(iv.ArgumentError, match="write scale.iv.threadgroups"):
        shader["scale"][4, 4, 4]


def test_shaders_are_shown_and_printed(shader):
    kernel = shader["move_points"]
    assert "kernel @move_points" in kernel.ir
    assert "kernel void" in kernel.source("msl")
    assert [str(p) for p in kernel.params] == [
        "params (0.2): Constant[@Params, 1]",
        "points (1.0): Buffer[@vec3.f32]",
    ]
    html = kernel._repr_html_()
    assert "points (1.0)" in html and "text form" in html
    assert repr(shader).startswith("<module things.wgsl: scale, move_points")


def test_modules_in_the_text_form_are_loaded(tmp_path):
    text = """
    kernel @add(%x: device read_write f32, %by: f32) {
        %i = thread_position_in_grid x
        %v = load %x[%i]
        %w = add %v, %by
        store %x[%i], %w
    }
    """
    path = tmp_path / "add.inv"
    path.write_text(text)
    kernel = iv.load(path)["add"]
    x = np.zeros(4, np.float32)
    kernel[4, 4](x, 1.5)
    assert x.tolist() == [1.5] * 4
    with pytest.raises(iv.ArgumentError, match=r"write add\[grid, threadgroup\]"):
        kernel[4]
    with pytest.raises(iv.ArgumentError, match="has no threadgroup size of its own"):
        iv.check(kernel, grid=4)
    assert iv.check(kernel, grid=4, threadgroup=4)(x, 1.0)
    with pytest.raises(iv.ArgumentError, match="give those of .* to each launch"):
        iv.load(path, constants={"n": 1})


@pytest.mark.parametrize("name", ["loops", "layouts", "half"])
def test_the_shaders_of_the_file_tests_are_loaded(name):
    folder = pathlib.Path(__file__).parents[2] / "tests" / "wgsl"
    module = iv.load(folder / f"{name}.wgsl")
    for kernel in module.values():
        assert kernel.ir.count("kernel @") == 1


def test_shaders_take_textures_and_samplers(tmp_path):
    path = tmp_path / "half.wgsl"
    path.write_text("""
@group(0) @binding(0) var src: texture_2d<f32>;
@group(0) @binding(1) var how: sampler;
@group(0) @binding(2) var dst: texture_storage_2d<rgba8unorm, write>;
@compute @workgroup_size(8, 8)
fn half(@builtin(global_invocation_id) id: vec3u) {
  let size = textureDimensions(dst);
  if (id.x >= size.x || id.y >= size.y) { return; }
  let place = (vec2f(id.xy) + 0.5) / vec2f(size);
  textureStore(dst, id.xy, textureSampleLevel(src, how, place, 0.0));
}
""")
    kernel = iv.load(str(path))["half"]
    assert [str(p) for p in kernel.params] == [
        "src (0.0): texture2d f32 sample",
        "how (0.1): sampler",
        "dst (0.2): texture2d f32 write",
    ]
    # The shader says the format; an argument wins over it.
    assert "texture_storage_2d<rgba8unorm, write>" in kernel.source("wgsl")
    assert "texture_storage_2d<rgba16float, write>" in kernel.source("wgsl", formats={"dst": "rgba16float"})
    assert "texture2d" in kernel.source("msl")
    src = iv.Texture(np.array([[[10, 0, 0, 255], [30, 0, 8, 255]]], np.uint8), "rgba8unorm")
    dst = iv.Texture.zeros((1, 1), "rgba8unorm")
    for device in ("cpu", "checked"):
        dst.numpy()[...] = 0
        kernel[iv.threadgroups(1)](src=src, how=iv.Sampler("linear"), dst=dst, device=device)
        assert dst.numpy().tolist() == [[[20, 0, 4, 255]]]
    wrong = iv.Texture.zeros((1, 1), "rgba16unorm")
    with pytest.raises(iv.ArgumentError, match="is a texture of rgba16unorm, and the variable is one of rgba8unorm"):
        kernel[iv.threadgroups(1)](src=src, how=iv.Sampler(), dst=wrong)
    with pytest.raises(iv.ArgumentError, match="expected a texture"):
        kernel[iv.threadgroups(1)](src=np.zeros((1, 1, 4), np.uint8), how=iv.Sampler(), dst=dst)


def test_a_printed_shader_is_bound_as_the_shader_is():
    shader = """
    struct List { by: u32, items: array<u32> }
    @group(0) @binding(1) var<storage, read> x: array<u32>;
    @group(0) @binding(0) var<storage, read_write> list: List;
    @compute @workgroup_size(4)
    fn main(@builtin(global_invocation_id) id: vec3u) { list.items[id.x] = list.by * x[id.x]; }
    """
    printed = iv.load("k.wgsl", text=shader)["main"].ir
    assert "binding(0, 1)" in printed
    kernel = iv.load("k.inv", text=printed)["main"]
    both = np.array([3, 0, 0, 0, 0], np.uint32)
    kernel[iv.threadgroups(1)](**{"0.0": both, "0.1": np.arange(4, dtype=np.uint32)})
    assert both.tolist() == [3, 0, 3, 6, 9]
    # Without names in the order of the parameters; those without a place go by their names.
    text = """kernel @k(%n: u32, %y: device write u32 binding(0, 5)) {
        %i = thread_position_in_grid x
        store %y[%i], %n
    }"""
    kernel = iv.load("own.inv", text=text)["k"]
    y = np.zeros(4, np.uint32)
    kernel[4, 4](7, y)
    kernel[2, 2](n=8, **{"0.5": y})
    assert y.tolist() == [8, 8, 7, 7]
