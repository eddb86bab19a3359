"""Textures: pictures on the host, the functions of kernels, races, and what is refused."""

import struct
import zlib

import numpy as np
import pytest

import invar as iv

DEVICES = ["cpu", "checked"]


@iv.kernel
def resize(src: iv.Texture2D[iv.f32, "sample"], dst: iv.Texture2D[iv.f32, "write"]):
    x, y = iv.thread_position_in_grid("x"), iv.thread_position_in_grid("y")
    u = (iv.f32(x) + 0.5) / iv.f32(dst.width)
    v = (iv.f32(y) + 0.5) / iv.f32(dst.height)
    dst.write(x, y, src.sample(u, v, filter="linear"))


@iv.kernel(allow=("out_of_bounds_loads",))
def shifted(src: iv.Texture2D[iv.u32, "read"], dst: iv.Texture2D[iv.u32, "write"]):
    x, y = iv.thread_position_in_grid("x"), iv.thread_position_in_grid("y")
    dst.write(x, y, src.read(iv.i32(x) - 1, y))


@pytest.mark.parametrize("device", DEVICES)
def test_a_picture_is_resized_in_the_memory_of_the_array(device):
    small = np.zeros((1, 1, 4), np.uint8)
    src = np.array([[[10, 0, 0, 255], [30, 0, 8, 255]]], np.uint8)
    to = iv.Texture(small, "rgba8unorm")
    resize[(1, 1), (8, 8)](iv.Texture(src, "rgba8unorm"), to, device=device)
    assert small.tolist() == [[[20, 0, 4, 255]]]
    assert to.numpy() is small or np.shares_memory(to.numpy(), small)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("format", "dtype"), [("r8uint", np.uint8), ("r16uint", np.uint16), ("r32uint", np.uint32)])
def test_beyond_an_edge_a_texel_reads_as_zeros(device, format, dtype):
    src = np.arange(1, 13, dtype=dtype).reshape(3, 4)
    dst = iv.Texture.zeros((3, 4), format)
    shifted[(4, 3), (4, 4)](iv.Texture(src, format), dst, device=device)
    expected = np.zeros_like(src)
    expected[:, 1:] = src[:, :-1]
    assert np.array_equal(dst.numpy(), expected)


@pytest.mark.parametrize("device", DEVICES)
def test_sizes_gathers_arrays_and_volumes(device):
    @iv.kernel
    def sizes(
        line: iv.Texture1D[iv.f32, "read"],
        several: iv.Texture2DArray[iv.f32, "sample"],
        volume: iv.Texture3D[iv.f32, "sample"],
        out: iv.Buffer[iv.u32],
        seen: iv.Buffer[iv.f32x4],
    ):
        out[0] = line.width
        out[1] = several.height
        out[2] = several.array_size
        out[3] = volume.depth
        seen[0] = line.read(2)
        seen[1] = several.gather(0.5, 0.5, 1)
        seen[2] = volume.sample(0.5, 0.5, 0.5, coordinates="pixel", edges="clamp_to_zero")
        seen[3] = several.sample(1.25, 0.25, 0, edges="repeat")

    line = iv.Texture(np.array([1, 2, 3], np.float32), "r32float")
    several = iv.Texture(np.arange(8, dtype=np.float32).reshape(2, 2, 2), "r32float")
    volume = iv.Texture(np.arange(24, dtype=np.float32).reshape(2, 3, 4) + 5, "r32float")
    out, seen = np.zeros(4, np.uint32), np.zeros((4, 4), np.float32)
    sizes[1, 1](line, several, volume, out, seen, device=device)
    assert out.tolist() == [3, 2, 2, 2]
    assert seen[0].tolist() == [3, 0, 0, 1]
    assert seen[1].tolist() == [6, 7, 5, 4]
    assert seen[2].tolist() == [5, 0, 0, 1]
    assert seen[3].tolist() == [0, 0, 0, 1]


@iv.kernel
def smaller(src: iv.Texture2D[iv.f32, "sample"], dst: iv.Texture2D[iv.f32, "write"], level: iv.Scalar[iv.f32]):
    x, y = iv.thread_position_in_grid("x"), iv.thread_position_in_grid("y")
    u = (iv.f32(x) + 0.5) / iv.f32(dst.width)
    v = (iv.f32(y) + 0.5) / iv.f32(dst.height)
    dst.write(x, y, src.sample(u, v, level=level, filter="linear", mip="linear"))


@pytest.mark.parametrize("device", DEVICES)
def test_levels_are_made_by_a_box_filter_sampled_and_views(device):
    photo = np.array([[10, 20], [30, 40], [50, 60]], np.uint8)
    src = iv.Texture(photo, "r8unorm", levels="all")
    assert src.levels == 2 and src.level(1).numpy().tolist() == [[35]]
    assert src.numpy().tolist() == photo.tolist() and not np.shares_memory(src.numpy(), photo)
    assert repr(src) == "<r8unorm texture of 2x3 in 2 levels>"
    dst = iv.Texture.zeros((1, 1), "r8unorm")
    smaller[(1, 1), (8, 8)](src, dst, 1.0, device=device)
    assert dst.numpy().tolist() == [[35]]
    both = iv.Texture.zeros((2, 2), "r8unorm", levels=2)
    smaller[(1, 1), (8, 8)](src, both.level(1), 0.0, device=device)
    assert both.numpy().tolist() == [[0, 0], [0, 0]] and both.level(1).numpy().tolist() == [[35]]


@pytest.mark.parametrize("device", DEVICES)
def test_levels_are_read_written_and_measured(device):
    @iv.kernel
    def copies(t: iv.Texture2D[iv.u16, "read_write"], out: iv.Buffer[iv.u32]):
        t.write(0, 0, t.read(1, 1), level=1)
        width, height = t.size(1)
        out[0] = t.levels
        out[1] = width
        out[2] = height

    t = iv.Texture.zeros((2, 4), "r16uint", levels=2)
    t.numpy()[...] = np.arange(8, dtype=np.uint16).reshape(2, 4)
    out = np.zeros(3, np.uint32)
    copies[1, 1](t, out, device=device)
    assert t.level(1).numpy().tolist() == [[5, 0]] and out.tolist() == [2, 2, 1]


@pytest.mark.parametrize("device", DEVICES)
def test_samplers_are_arguments(device):
    @iv.kernel
    def look(t: iv.Texture1DArray[iv.f32, "sample"], s: iv.Sampler, out: iv.Buffer[iv.f32]):
        out[0] = t.sample(0.0, 1, sampler=s).x

    rows = iv.Texture(np.array([[[9, 9]], [[1, 3]]], np.float32), "r32float")
    out = np.zeros(1, np.float32)
    for sampler, expected in [(iv.Sampler(), 1), (iv.Sampler("linear", "repeat"), 2)]:
        look[1, 1](rows, sampler, out, device=device)
        assert out[0] == expected
    with pytest.raises(iv.ArgumentError, match="is a str, expected a sampler"):
        look[1, 1](rows, "linear", out, device=device)


@pytest.mark.parametrize("device", DEVICES)
def test_cubes_and_buffers_of_texels(device):
    @iv.kernel
    def look(sky: iv.TextureCube[iv.f32, "sample"], row: iv.TextureBuffer[iv.u32, "read"], out: iv.Buffer[iv.f32]):
        out[0] = sky.sample(0.0, -3.0, 0.5).x
        out[1] = sky.read(0, 0, 5).x
        out[2] = iv.f32(row.read(69999).x)
        out[3] = iv.f32(row.width)

    sky = iv.Texture(np.arange(6, dtype=np.float32).reshape(6, 1, 1), "r32float")
    row = iv.Texture(np.arange(70000, dtype=np.uint32), "r32uint")
    out = np.zeros(4, np.float32)
    look[1, 1](sky, row, out, device=device)
    assert out.tolist() == [3, 5, 69999, 70000]


def test_what_no_texture_has_of_levels_and_samplers_is_refused():
    with pytest.raises(iv.ArgumentError, match="has 1 to 2 levels, not 3"):
        iv.Texture.zeros((2, 2), "r8unorm", levels=3)
    with pytest.raises(iv.ArgumentError, match="no levels are made of r8uint"):
        iv.Texture(np.zeros((2, 2), np.uint8), "r8uint", levels=2)
    with pytest.raises(iv.ArgumentError, match="has no level 1"):
        iv.Texture.zeros((2, 2), "r8unorm").level(1)
    with pytest.raises(iv.ArgumentError, match="no sampler has 'sharp'"):
        iv.Sampler("sharp")

    @iv.kernel
    def unsaid(t: iv.Texture2D[iv.f32, "sample"], out: iv.Buffer[iv.f32x4]):
        out[0] = t.sample(0.5, 0.5, level=1.0)

    with pytest.raises(iv.Error, match='takes mip="nearest" or "linear"'):
        unsaid.ir


def mirror(ordered):
    @iv.kernel(threadgroup=8)
    def mirror(t: iv.Texture2D[iv.f32, "read_write"], to: iv.Buffer[iv.f32]):
        x = iv.thread_position_in_grid("x")
        t.write(x, 0, iv.f32x4(iv.f32(x)))
        iv.threadgroup_barrier("texture" if ordered else "device")
        to[x] = t.read(7 - x, 0).x

    return mirror


def test_only_a_barrier_with_texture_orders_texels():
    to = np.zeros(8, np.float32)
    t = iv.Texture.zeros((1, 8), "r32float")
    assert iv.check(mirror(True), grid=8)(t, to).passed
    assert not t.numpy().any()
    with pytest.raises(iv.CheckError) as failed:
        iv.check(mirror(False), grid=8)(t, to)
    assert {finding.rule for finding in failed.value.findings} == {"execution-only-barrier"}
    assert 'iv.threadgroup_barrier("texture")' in str(failed.value)
    mirror(True)[8, 8](t, to)
    assert to.tolist() == [7, 6, 5, 4, 3, 2, 1, 0]


def test_a_texture_that_is_written_overlaps_no_other():
    array = np.zeros((2, 2), np.uint8)
    src, dst = iv.Texture(array, "r8uint"), iv.Texture(array, "r8uint")
    with pytest.raises(iv.ArgumentError, match="overlap"):
        shifted[(2, 2), (2, 2)](src, dst)


def test_launches_that_are_prepared_or_submitted_take_textures():
    src = iv.Texture(np.array([[1, 2, 3]], np.uint8), "r8uint")
    one, other = (iv.Texture.zeros((1, 3), "r8uint") for _ in range(2))
    launch = shifted[(3, 1), (4, 1)].prepare(src, one)
    launch()
    launch.set(dst=other)
    launch.submit().result()
    shifted[(3, 1), (4, 1)].submit(src, one).result()
    assert one.numpy().tolist() == other.numpy().tolist() == [[0, 1, 2]]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: iv.Texture(np.zeros((2, 2), np.uint8), "r9"), 'there is no pixel format "r9"'),
        (lambda: iv.Texture(np.zeros((2, 2), np.float32), "r8unorm"), "made of uint8"),
        (lambda: iv.Texture(np.zeros((2, 2), np.uint8), "rgba8unorm"), r"\(height, width, 4\)"),
        (lambda: iv.Texture(np.zeros((2, 4), np.uint8)[:, ::2], "r8unorm"), "not contiguous"),
        (lambda: iv.Texture(np.zeros((0, 4), np.uint8), "r8unorm"), "1 to 65536 texels"),
        (lambda: iv.Texture.zeros((70000, 1), "r8unorm"), "1 to 65536 texels"),
        (lambda: iv.Texture.zeros((1, 1, 1, 1), "r8unorm"), "one to three dimensions"),
        (lambda: iv.Texture.zeros((2.5, 4), "r8unorm"), "is not a shape"),
        (lambda: iv.Texture(np.frombuffer(bytes(4), np.uint8).reshape(2, 2), "r8unorm").clear(), "is read-only"),
    ],
)
def test_pictures_that_are_none_are_refused(make, says):
    with pytest.raises(iv.ArgumentError, match=says):
        make()


def test_arguments_that_do_not_fit_are_refused():
    dst = iv.Texture.zeros((1, 1), "r8uint")
    launch = shifted[(1, 1), (1, 1)]
    with pytest.raises(iv.ArgumentError, match=r"is a ndarray, expected a texture: write iv.Texture\("):
        launch(np.zeros((1, 1), np.uint8), dst)
    with pytest.raises(iv.Error, match="r8unorm, which kernels see as f32"):
        launch(iv.Texture.zeros((1, 1), "r8unorm"), dst)
    with pytest.raises(iv.Error, match="has 2 slices"):
        launch(iv.Texture.zeros((2, 1, 1), "r8uint"), dst)
    closed = np.zeros((1, 1), np.uint8)
    closed.flags.writeable = False
    with pytest.raises(iv.ArgumentError, match="read-only"):
        launch(dst, iv.Texture(closed, "r8uint"))


def body(make):
    """What tracing a kernel of one texture says."""

    @iv.kernel
    def k(t: iv.Texture2D[iv.f32, "sample"]):
        make(t)

    with pytest.raises(iv.Error) as failed:
        k.ir
    return str(failed.value)


def test_mistakes_in_kernels_are_sentences():
    assert "takes 2 coordinates, found 1" in body(lambda t: t.read(1))
    assert "write `t.read(x, y)`" in body(lambda t: t[0, 0])
    assert 'no sampler has \'sharp\': write one of "nearest", "linear"' in body(
        lambda t: t.sample(0.5, 0.5, filter="sharp")
    )
    assert "`sample`" in body(lambda t: t.write(0, 0, iv.f32x4(0.0)))
    assert "must be an integer" in body(lambda t: t.read(iv.f32(0.5), 0))
    assert "takes coordinates and a value" in body(lambda t: t.write())
    assert 'component=\'q\': write "x"' in body(lambda t: t.gather(0.5, 0.5, component="q"))
    assert "gather() got an unexpected keyword argument 'mip'" in body(lambda t: t.gather(0.5, 0.5, mip="linear"))
    assert "sample() got an unexpected keyword argument 'compare'" in body(
        lambda t: t.sample(0.5, 0.5, compare="less")
    )
    assert "only depths, such as iv.Depth2D, compare" in body(
        lambda t: t.sample_compare(0.5, 0.5, 1.0, compare="less")
    )
    assert "`t.atomic_add()` takes 2 coordinates, and then the value, found 2" in body(lambda t: t.atomic_add(0, 0))
    assert "takes a level or a gradient" in body(
        lambda t: t.sample(0.5, 0.5, level=1.0, mip="nearest", gradient=((0, 1), (1, 0)))
    )
    with pytest.raises(iv.Error, match="takes the type of components"):
        iv.Texture2D[iv.f64, "read"]
    with pytest.raises(iv.Error, match="as in iv.Texture2D"):
        iv.Texture2D[iv.f32]


def row_of(png):
    """The pixels of a PNG file of one row, whose bytes are told from those of the pixel on the left."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n") and png[24:26] == b"\x08\x06"
    (width, height), start = struct.unpack(">II", png[16:24]), png.index(b"IDAT") + 4
    (count,) = struct.unpack(">I", png[start - 8 : start - 4])
    how, *row = zlib.decompress(png[start : start + count])
    assert height == 1 and len(row) == 4 * width
    # Above the first row are zeros.
    of_left = {0: lambda x: 0, 1: lambda x: x, 2: lambda x: 0, 3: lambda x: x // 2, 4: lambda x: x}[how]
    for i in range(4, len(row)):
        row[i] = (row[i] + of_left(row[i - 4])) % 256
    return [row[i : i + 4] for i in range(0, len(row), 4)]


def test_a_notebook_shows_the_picture():
    array = np.array([[[1, 2, 3, 4], [5, 6, 7, 8]]], np.uint8)
    for format, pixels in (("bgra8unorm", [[3, 2, 1, 4], [7, 6, 5, 8]]), ("rgba8unorm_srgb", array[0].tolist())):
        assert row_of(iv.Texture(array, format)._repr_png_()) == pixels
    wide = iv.Texture(np.array([[[0, 32896], [65535, 129]]], np.uint16), "rg16unorm")
    assert row_of(wide._repr_png_()) == [[0, 128, 0, 255], [255, 1, 0, 255]]
    for format in ("r32float", "depth32float"):
        grey = iv.Texture(np.array([[0, 0.5, 2, np.nan]], np.float32), format)
        assert row_of(grey._repr_png_()) == [[n, n, n, 255] for n in (0, 128, 255, 0)]
    assert iv.Texture.zeros((1, 1), "r8uint")._repr_png_() is None
    assert iv.Texture.zeros((1, 1), "r8snorm")._repr_png_() is None
    # The first slice, and of that the first level.
    several = iv.Texture.zeros((2, 1, 2), "r8unorm", levels=2)
    several.numpy()[0] = 7
    assert row_of(several._repr_png_()) == [[7, 7, 7, 255]] * 2
    # Red 1, green a half, blue 0, and of the first format alpha a third.
    for format, word, shown in [
        ("rgb10a2unorm", 1023 | 512 << 10 | 1 << 30, [255, 128, 0, 85]),
        ("rg11b10float", 15 << 6 | (14 << 6) << 11, [255, 128, 0, 255]),
        ("rgb9e5float", 256 | 128 << 9 | 16 << 27, [255, 128, 0, 255]),
    ]:
        packed = iv.Texture(np.array([[word]], np.uint32), format)._repr_png_()
        assert row_of(packed) == [shown], format
    assert repr(iv.Texture.zeros((2, 3, 4), "r8uint")) == "<r8uint texture of 4x3x2>"


@pytest.mark.parametrize("device", DEVICES)
def test_offsets_borders_gradients_and_levels_of_samplers(device):
    @iv.kernel
    def looks(t: iv.Texture2D[iv.f32, "sample"], s: iv.Sampler, out: iv.Buffer[iv.f32x4]):
        out[0] = t.sample(0.5, 0.5, coordinates="pixel", offset=(1, 1))
        out[1] = t.sample(9.0, 0.5, edges="clamp_to_border", border="opaque_white")
        out[2] = t.sample(0.5, 0.5, gradient=((1.0, 0.0), (0.0, 0.25)), mip="nearest")
        out[3] = t.sample(0.5, 0.5, sampler=s)
        out[4] = t.gather(0.5, 0.5, edges="clamp_to_zero", offset=(1,))

    picture = iv.Texture(np.array([[1, 2], [3, 6]], np.float32), "r32float", levels=2)
    out = np.zeros((5, 4), np.float32)
    looks[1, 1](picture, iv.Sampler(mip="nearest", lod=(1, 5)), out, device=device)
    assert out[:4, 0].tolist() == [6, 1, 3, 3]
    assert out[4].tolist() == [6, 0, 0, 2]
    with pytest.raises(iv.Error, match="from -8 to 7"):

        @iv.kernel
        def far(t: iv.Texture2D[iv.f32, "sample"], out: iv.Buffer[iv.f32x4]):
            out[0] = t.sample(0.5, 0.5, offset=(8, 0))

        far[1, 1](picture, out, device=device)
    with pytest.raises(iv.Error, match="`t` is a TextureCube, which is not sampled with an offset"):

        @iv.kernel
        def around(t: iv.TextureCube[iv.f32, "sample"], out: iv.Buffer[iv.f32x4]):
            out[0] = t.sample(1.0, 0.0, 0.0, offset=(1, 0))

        around[1, 1](picture, out, device=device)
    with pytest.raises(iv.Error, match="no levels from 2 to 1"):
        iv.Sampler(lod=(2, 1))

    @iv.kernel
    def graded(t: iv.Texture2D[iv.f32, "sample"], s: iv.Sampler, out: iv.Buffer[iv.f32x4]):
        out[0] = t.sample(0.5, 0.5, gradient=((1.0, 0.0), (0.0, 0.25)), sampler=s)

    graded[1, 1](picture, iv.Sampler(mip="nearest"), out, device=device)
    assert out[0, 0] == 3
    with pytest.raises(iv.Error, match="`s` of `graded` is a sampler of pixel coordinates"):
        graded[1, 1](picture, iv.Sampler(mip="nearest", coordinates="pixel"), out, device=device)


@pytest.mark.parametrize("device", DEVICES)
def test_atomics_act_on_texels(device):
    @iv.kernel
    def counts(bins: iv.Texture1D[iv.u32, "read_write"], out: iv.Buffer[iv.u32]):
        i = iv.thread_position_in_grid("x")
        bins.atomic_add(i % 3, 1)
        bins.atomic_max(3, i)
        old, did = bins.atomic_compare_exchange(4, 0, i + 1)
        out[i] = iv.u32(did)

    bins, out = iv.Texture.zeros((1, 5), "r32uint"), np.zeros(8, np.uint32)
    counts[8, 8](bins, out, device=device)
    assert bins.numpy()[0, :4].tolist() == [3, 3, 2, 7]
    assert out.sum() == 1 and bins.numpy()[0, 4] == 1 + out.argmax()
    with pytest.raises(iv.Error, match="act on texels of r32uint or r32sint"):
        counts[8, 8](iv.Texture.zeros((1, 5), "r16uint"), out, device=device)


@pytest.mark.parametrize("device", DEVICES)
def test_depths_compare_and_several_samples_are_read(device):
    @iv.kernel
    def shadows(
        depth: iv.Depth2D[iv.f32, "sample"],
        how: iv.Sampler,
        edges: iv.Texture2DMS[iv.u32, "read"],
        out: iv.Buffer[iv.f32],
        seen: iv.Buffer[iv.u32x4],
    ):
        out[0] = depth.read(1, 0)
        out[1] = depth.sample_compare(0.5, 0.5, 3.0, compare="less", filter="linear")
        out[2] = depth.sample_compare(0.75, 0.5, 3.0, sampler=how)
        out[3] = depth.gather_compare(0.5, 0.5, 3.0, compare="greater_equal").x
        out[4] = iv.f32(edges.samples)
        seen[0] = edges.read(1, 0, 3)

    depth = iv.Texture(np.array([[1, 4]], np.float32), "depth32float")
    edges = iv.Texture(np.arange(8, dtype=np.uint8).reshape(4, 1, 2), "r8uint", samples=4)
    assert repr(edges) == "<r8uint texture of 2x1 with 4 samples>" and edges.samples == 4
    out, seen = np.zeros(5, np.float32), np.zeros((1, 4), np.uint32)
    shadows[1, 1](depth, iv.Sampler(compare="less"), edges, out, seen, device=device)
    assert out.tolist() == [4, 0.5, 1, 1, 4]
    assert seen[0].tolist() == [7, 0, 0, 1]
    with pytest.raises(iv.Error, match="does not compare"):
        shadows[1, 1](depth, iv.Sampler(), edges, out, seen, device=device)


def test_mistakes_of_samples_that_compare_are_sentences():
    def says(make):
        @iv.kernel
        def k(t: iv.Depth2D[iv.f32, "sample"], s: iv.Sampler):
            make(t, s)

        with pytest.raises(iv.Error) as failed:
            k.ir
        return str(failed.value)

    assert "is a depth, one number" in says(lambda t, s: t.gather(0.5, 0.5, component="y"))
    assert "takes coordinates and a reference" in says(lambda t, s: t.gather_compare(sampler=s))
    assert "or by a sampler that does" in says(lambda t, s: t.sample_compare(0.5, 0.5, 1.0))
    assert "or by a sampler that does" in says(lambda t, s: t.sample_compare(0.5, 0.5, 1.0, compare="less", sampler=s))
    assert "no sampler compares as 'near' says" in says(lambda t, s: t.gather_compare(0.5, 0.5, 1.0, compare="near"))
    assert "which says all of it: give no words" in says(lambda t, s: t.sample(0.5, 0.5, filter="linear", sampler=s))
    assert "is not a sampler of this kernel" in says(lambda t, s: t.sample(0.5, 0.5, sampler=3))


@pytest.mark.parametrize("device", DEVICES)
def test_elements_are_views_and_textures_are_cleared(device):
    @iv.kernel
    def fill(t: iv.Texture2D[iv.f32, "write"]):
        t.write(iv.thread_position_in_grid("x"), 0, iv.f32x4(1.0))

    frames = iv.Texture.zeros((3, 1, 2), "r8unorm")
    fill[2, 2](frames.element(1), device=device)
    assert frames.numpy().tolist() == [[[0, 0]], [[255, 255]], [[0, 0]]]
    frames.clear((0.5, 0, 0, 0))
    assert frames.numpy().tolist() == [[[128, 128]]] * 3
    several = iv.Texture.zeros((2, 2, 4), "r8unorm", levels=2)
    several.element(1, level=1).clear((1, 0, 0, 0))
    assert several.level(1).numpy().tolist() == [[[0, 0]], [[255, 255]]]
    assert not several.numpy().any()
    words = iv.Texture.zeros((1, 1), "rg16sint")
    words.clear((-7, 40000, 0, 0))
    assert words.numpy().tolist() == [[[-7, 32767]]]
    with pytest.raises(iv.Error, match="no element 3"):
        frames.element(3)


def test_rows_are_the_elements_of_an_array_of_rows():
    @iv.kernel
    def look(t: iv.Texture1DArray[iv.u32, "read"], out: iv.Buffer[iv.u32]):
        out[0] = t.read(2, 1).x
        out[1] = t.array_size

    rows = np.arange(12, dtype=np.uint8).reshape(3, 4)
    for array in (rows, rows.reshape(3, 1, 4)):
        out = np.zeros(2, np.uint32)
        look[1, 1](iv.Texture(array, "r8uint"), out)
        assert [*out] == [6, 3]


def test_a_variable_of_a_shader_may_be_called_constants():
    text = """
        @group(0) @binding(0) var<uniform> constants: vec2u;
        @group(0) @binding(1) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(1) fn main() { y[0] = constants.x + constants.y; }"""
    kernel = iv.load("constants.wgsl", text=text)["main"]
    y = np.zeros(1, np.uint32)
    kernel[iv.threadgroups(1)](constants=np.array([3, 4], np.uint32), y=y)
    assert [*y] == [7]
    kernel[iv.threadgroups(1)].prepare(constants=np.array([5, 4], np.uint32), y=y)()
    assert [*y] == [9]


def of_axis(u, n):
    """The two places of a linear sample along an axis clamped to its edges, and how much of the second."""
    x = u * n - 0.5
    base = int(np.floor(x))
    return min(max(base, 0), n - 1), min(max(base + 1, 0), n - 1), x - base


def of_volume(texels, u, v, w):
    """A linear sample of a volume, in double precision."""
    (z0, z1, c), (y0, y1, b), (x0, x1, a) = (of_axis(p, n) for p, n in zip((w, v, u), texels.shape))
    total = 0.0
    for z, wz in ((z0, 1 - c), (z1, c)):
        for y, wy in ((y0, 1 - b), (y1, b)):
            for x, wx in ((x0, 1 - a), (x1, a)):
                total += wz * wy * wx * texels[z, y, x]
    return total


def between_levels(of_level, count, lod):
    """A sample between two levels."""
    lod = min(max(lod, 0.0), count - 1)
    first = int(np.floor(lod))
    a, b = of_level(first), of_level(min(first + 1, count - 1))
    return a + (lod - first) * (b - a)


def halved(texels):
    """The next level of a volume: the integral over the box of each texel, in double precision."""
    for axis, n in enumerate(texels.shape):
        m = max(n // 2, 1)
        edges = np.linspace(0, n, m + 1)
        shares = np.array([[max(0.0, min(j + 1, edges[i + 1]) - max(j, edges[i])) for j in range(n)] for i in range(m)])
        texels = np.moveaxis(np.tensordot(shares / (n / m), texels, axes=(1, axis)), 0, axis)
    return texels


@pytest.mark.parametrize("device", DEVICES)
def test_levels_of_volumes_are_what_double_precision_gives(device):
    @iv.kernel
    def look(
        t: iv.Texture3D[iv.f32, "sample"],
        at: iv.Buffer[iv.f32],
        out: iv.Buffer[iv.f32],
        sizes: iv.Buffer[iv.u32],
        n: iv.Scalar[iv.u32],
    ):
        i = iv.thread_position_in_grid("x")
        if i < n:
            u, v, w, lod = at[4 * i], at[4 * i + 1], at[4 * i + 2], at[4 * i + 3]
            out[2 * i] = t.sample(u, v, w, level=lod, filter="linear", mip="linear").x
            graded = t.sample(u, v, w, gradient=((lod, 0.1, 0.05), (0.0, lod, 0.2)), filter="linear", mip="linear")
            out[2 * i + 1] = graded.x
            width, height, depth = t.size(i)
            sizes[i] = width * 10000 + height * 100 + depth + t.levels * 1000000
    random = np.random.default_rng(7)
    for shape in ((8, 4, 6), (5, 7, 3), (1, 2, 9)):
        texels = random.random(shape, np.float32)
        volume = iv.Texture(texels, "r32float", levels="all", dimensions=3)
        levels = [texels.astype(np.float64)]
        while max(levels[-1].shape) > 1:
            levels.append(halved(levels[-1]))
        assert volume.levels == len(levels) == max(shape).bit_length()
        for number, level in enumerate(levels):
            assert volume.level(number).numpy().shape == level.shape
            np.testing.assert_allclose(volume.level(number).numpy(), level, rtol=0, atol=1e-6)
        assert volume.element(level.shape[0] - 1, level=len(levels) - 1).depth == 1
        count = 64
        at = random.random((count, 4), np.float32)
        at[:, 3] *= 4
        out, sizes = np.zeros((count, 2), np.float32), np.zeros(count, np.uint32)
        look[count, 32](volume, at.reshape(-1), out.reshape(-1), sizes, count, device=device)
        depth, height, width = shape
        for (u, v, w, lod), (sampled, graded) in zip(at.astype(np.float64), out):
            of_level = lambda l: of_volume(levels[l], u, v, w)
            assert abs(sampled - between_levels(of_level, len(levels), lod)) < 1e-4
            a = (lod * width) ** 2 + (0.1 * height) ** 2 + (0.05 * depth) ** 2
            b = (lod * height) ** 2 + (0.2 * depth) ** 2
            assert abs(graded - between_levels(of_level, len(levels), np.log2(max(a, b)) / 2)) < 1e-4
        expected = [len(levels) * 1000000 + l.shape[2] * 10000 + l.shape[1] * 100 + l.shape[0] for l in levels]
        assert sizes[: len(levels)].tolist() == expected
        assert sizes[len(levels)] == len(levels) * 1000000


#: The rows of "Cube Map Face Selection" in the Vulkan specification: across, down and along of (x, y, z).
FACES = [
    (lambda x, y, z: (-z, -y, x)), (lambda x, y, z: (z, -y, -x)), (lambda x, y, z: (x, z, y)),
    (lambda x, y, z: (x, -z, -y)), (lambda x, y, z: (x, -y, z)), (lambda x, y, z: (-x, -y, -z)),
]  # fmt: skip


def face_of(direction):
    """The face that a direction leads to, and the place on it."""
    axis = max((2, 1, 0), key=lambda i: abs(direction[i]))
    face = 2 * axis + (direction[axis] < 0)
    across, down, along = FACES[face](*direction)
    return face, across / along / 2 + 0.5, down / along / 2 + 0.5


@pytest.mark.parametrize("device", DEVICES)
def test_gradients_of_cubes_are_what_double_precision_gives(device):
    @iv.kernel
    def look(t: iv.TextureCube[iv.f32, "sample"], at: iv.Buffer[iv.f32], out: iv.Buffer[iv.f32], n: iv.Scalar[iv.u32]):
        i = iv.thread_position_in_grid("x")
        if i < n:
            v = [at[9 * i + j] for j in range(9)]
            # Each level has one value: what is sampled says the level.
            out[i] = t.sample(*v[:3], gradient=(v[3:6], v[6:]), filter="linear", mip="linear").x

    levels = 6
    cube = iv.Texture.zeros((6, 32, 32), "r32float", levels=levels)
    for level in range(levels):
        cube.level(level).numpy()[...] = level
    random = np.random.default_rng(8)
    count = 256
    at = random.normal(size=(count, 3, 3)).astype(np.float32)
    at[:, 1:] *= np.exp2(random.uniform(-7, 1, size=(count, 1, 1))).astype(np.float32)
    out = np.zeros(count, np.float32)
    look[count, 32](cube, at.reshape(-1), out, count, device=device)
    chosen = set()
    for (direction, *changes), found in zip(at.astype(np.float64), out):
        face, *place = face_of(direction)
        squares = []
        for change in changes:
            # How the place on the same face changes, as a difference so small that it is a derivative.
            step = 1e-7
            across, down, along = FACES[face](*(direction + step * change))
            moved = np.array([across / along / 2 + 0.5, down / along / 2 + 0.5]) - place
            squares.append(np.sum((moved / step * 32) ** 2))
        lod = min(max(np.log2(max(squares)) / 2, 0), levels - 1)
        assert abs(found - lod) < 1e-3, (direction, changes)
        chosen.add(int(found))
    assert chosen >= {0, 1, 2, 3, 4, 5}


def middles(n):
    """The middle of each texel of a cube's faces, by face, row and column: where its row of the table leads back to."""
    found = {}
    for face, row in enumerate(FACES):
        back = np.linalg.inv(np.array([row(*axis) for axis in np.eye(3)]).T)
        for j, i in np.ndindex(n, n):
            found[face, j, i] = back @ np.array([(2 * i + 1) / n - 1, (2 * j + 1) / n - 1, 1.0])
    return found


def texel_of(face, i, j, n, middle):
    """The texel of a face, or of one beyond an edge across or else down the nearest of the face that lies there."""
    if 0 <= i < n and 0 <= j < n:
        return face, j, i
    side = (np.sign(i), 0, 0) if not 0 <= i < n else (0, np.sign(j), 0)
    back = np.linalg.inv(np.array([FACES[face](*axis) for axis in np.eye(3)]).T)
    other, _, _ = face_of(back @ np.array(side, float))
    near = middle[face, min(max(j, 0), n - 1), min(max(i, 0), n - 1)]
    return min((at for at in middle if at[0] == other), key=lambda at: np.sum((middle[at] - near) ** 2))


@pytest.mark.parametrize("device", DEVICES)
def test_gathers_of_cubes_are_those_of_a_cube_in_space(device):
    @iv.kernel
    def look(
        t: iv.TextureCubeArray[iv.f32, "sample"],
        d: iv.DepthCube[iv.f32, "sample"],
        at: iv.Buffer[iv.f32],
        out: iv.Buffer[iv.f32x4],
        n: iv.Scalar[iv.u32],
    ):
        i = iv.thread_position_in_grid("x")
        if i < n:
            v = [at[3 * i + j] for j in range(3)]
            out[3 * i] = t.gather(*v, 1, component="y")
            out[3 * i + 1] = d.gather(*v)
            out[3 * i + 2] = d.gather_compare(*v, 40.0, compare="less")

    random = np.random.default_rng(9)
    for n in (1, 2, 3, 5):
        texels = np.arange(12 * n * n * 2, dtype=np.float32).reshape(12, n, n, 2)
        depths = np.arange(6 * n * n, dtype=np.float32).reshape(6, n, n)
        at = random.normal(size=(200, 3)).astype(np.float32)
        # Close to edges and corners of the cube, too.
        at[100:] = np.sign(at[100:]) * random.choice([0.5, 0.97, 1], size=(100, 3)).astype(np.float32)
        out = np.zeros((len(at), 3, 4), np.float32)
        look[len(at), 32](
            iv.Texture(texels, "rg32float"), iv.Texture(depths, "depth32float"), at.reshape(-1), out.reshape(-1, 4),
            len(at), device=device,
        )  # fmt: skip
        middle = middles(n)
        for direction, (gathered, deep, less) in zip(at.astype(np.float64), out):
            face, u, v = face_of(direction)
            i, j = int(np.floor(u * n - 0.5)), int(np.floor(v * n - 0.5))
            found = [texel_of(face, i + a, j + b, n, middle) for a, b in ((0, 1), (1, 1), (1, 0), (0, 0))]
            assert gathered.tolist() == [texels[6 + f, y, x, 1] for f, y, x in found], direction
            assert deep.tolist() == [depths[at] for at in found]
            assert less.tolist() == [float(depths[at] > 40) for at in found]


def test_volumes_say_that_they_are():
    with pytest.raises(iv.ArgumentError, match=r"dimensions=3: an array of shape \(2, 2\) has no slices"):
        iv.Texture.zeros((2, 2), "r8unorm", dimensions=3)
    with pytest.raises(iv.ArgumentError, match="dimensions=4: write 3"):
        iv.Texture.zeros((2, 2), "r8unorm", dimensions=4)
    with pytest.raises(iv.ArgumentError, match="a texture of 1x2x4 has 1 to 3 levels, not 4"):
        iv.Texture.zeros((4, 2, 1), "r8unorm", levels=4, dimensions=3)
    with pytest.raises(iv.ArgumentError, match=r"zeros\(\(2, 2, 2\), \"r8uint\", levels=2, dimensions=3\)"):
        iv.Texture(np.zeros((2, 2, 2), np.uint8), "r8uint", levels=2, dimensions=3)
    assert iv.Texture.zeros((8, 2, 2), "r8unorm", levels="all").levels == 2
    assert "write ((ax, ay, az), (bx, by, bz))" in refused_sample(iv.Texture3D, ((0, 1), (1, 0)))
    assert "write ((ax, ay), (bx, by))" in refused_sample(iv.Texture2D, ((0, 1, 2), (1, 0, 2)))
    assert "is not sampled with gradients" in refused_sample(iv.Texture1D, ((0,), (1,)))
    pixel = "of normalized coordinates: leave out coordinates"
    assert f"gradients are {pixel}" in refused_sample(iv.Texture2D, ((0, 1), (1, 0)), coordinates="pixel")
    assert f"the directions of a TextureCube are {pixel}" in refused_sample(iv.TextureCube, None, coordinates="pixel")

    @iv.kernel
    def read(t: iv.Texture3D[iv.f32, "read"], out: iv.Buffer[iv.f32x4]):
        out[0] = t.read(0, 0, 0, level=1)

    array = iv.Texture.zeros((2, 2, 2), "r8unorm", levels=2)
    with pytest.raises(iv.ArgumentError, match="has 2 slices in each of 2 levels, and is not a volume"):
        read[1, 1](array, np.zeros(4, np.float32))


def refused_sample(maker, gradient, **how):
    """Why a kernel that samples so is refused."""
    count = {"Texture1D": 1, "Texture2D": 2}.get(maker.name, 3)

    @iv.kernel
    def k(t: maker[iv.f32, "sample"], out: iv.Buffer[iv.f32x4]):
        out[0] = t.sample(*[0.5] * count, gradient=gradient, mip="linear", **how)

    with pytest.raises(iv.Error) as error:
        k.ir  # noqa: B018
    return str(error.value)
