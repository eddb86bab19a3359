"""Imageblocks: elements by coordinates, formats of fields, slices to textures, and what is refused."""

import numpy as np
import pytest

import invar as iv


Pixel = iv.Struct("Pixel", np.dtype([("depth", np.float32), ("colour", np.float32, 4)], align=True))


@pytest.mark.parametrize("device", ["checked", "cpu"])
def test_elements_are_reached_by_column_and_row(device):
    @iv.kernel(threadgroup=(4, 2))
    def turned(src: iv.Texture2D[iv.f32, "read"], dst: iv.Texture2D[iv.f32, "write"], sizes: iv.Buffer[iv.u32]):
        x, y = iv.thread_position_in_threadgroup("x"), iv.thread_position_in_threadgroup("y")
        block = iv.imageblock_alloc(Pixel, formats={"depth": "r8unorm"})
        colours = iv.imageblock_alloc(iv.f32x4, formats="rgba8unorm")
        block[x, y].depth = src.read(x, y).x
        iv.threadgroup_barrier("imageblock")
        block[x, y].colour[1] = block[3 - x, 1 - y].depth
        colours[x, y] = iv.f32x4(block[x, y].colour[1], 0.0, 2.0, 1.0)
        iv.threadgroup_barrier("imageblock")
        if iv.thread_index_in_threadgroup() == 0:
            dst.write(0, 0, colours.slice())
            sizes[0] = block.width * 1000 + block.height * 100 + block.samples * 10 + len(colours)

    picture = np.arange(8, dtype=np.uint8).reshape(2, 4)
    out, sizes = iv.Texture.zeros((2, 4), "rgba8unorm"), np.zeros(1, np.uint32)
    launch = turned[(4, 2), (4, 2)]
    launch(iv.Texture(picture, "r8unorm"), out, sizes, device=device)
    assert (out.numpy()[..., 0] == picture[::-1, ::-1]).all()
    assert (out.numpy()[..., 1:] == [0, 255, 255]).all()
    assert sizes[0] == 4218


@pytest.mark.parametrize("device", ["checked", "cpu"])
def test_fields_that_are_vectors(device):
    fields = {"depth": iv.f32, "colour": iv.f32x4, "tag": iv.u16x3}
    vectors = iv.Struct("Vectors", fields)
    assert vectors.dtype == np.dtype([("depth", "f4"), ("colour", "f4", 4), ("tag", "u2", 3)], align=True)
    assert vectors != iv.Struct("Vectors", vectors.dtype)

    @iv.kernel(threadgroup=(4, 2))
    def turned(dst: iv.Texture2D[iv.f32, "write"], out: iv.Buffer[vectors]):
        x, y = iv.thread_position_in_threadgroup("x"), iv.thread_position_in_threadgroup("y")
        i = iv.thread_index_in_threadgroup()
        block = iv.imageblock_alloc(vectors, formats={"colour": "rgba8unorm"})
        block[x, y].colour = iv.f32x4(iv.f32(x), 0.5, 0.25, 1.0)
        iv.threadgroup_barrier("imageblock")
        other = block[3 - x, 1 - y]
        out[i].colour = other.colour * 2.0
        out[i].colour.y = 9.0
        out[i].tag = iv.u16x3(iv.u16(i), 2, 3)
        if i == 0:
            dst.write(0, 0, block.slice("colour"))

    picture, out = iv.Texture.zeros((2, 4), "rgba8unorm"), np.zeros(8, vectors.dtype)
    turned[(4, 2), (4, 2)](picture, out, device=device)
    assert (picture.numpy() == [[0, 128, 64, 255], *[[255, 128, 64, 255]] * 3]).all()
    green = np.float32(64) / np.float32(255) * 2
    assert (out["colour"][:4] == [[2, 9, green, 2]] * 3 + [[0, 9, green, 2]]).all()
    assert (out["tag"][:, 0] == np.arange(8)).all() and (out["depth"] == 0).all()


@pytest.mark.parametrize("made", [{}, 3, None, "x", {3: iv.f32}, {"a": 7}, np.float32])
def test_what_makes_no_struct(made):
    with pytest.raises(iv.Error, match="needs a|neither a structured dtype nor fields|not an element type"):
        iv.Struct("S", made)


def test_a_part_of_an_element_that_is_no_struct():
    @iv.kernel(threadgroup=(4, 4))
    def part(dst: iv.Texture2D[iv.f32, "write"]):
        x, y = iv.thread_position_in_threadgroup("x"), iv.thread_position_in_threadgroup("y")
        block = iv.imageblock_alloc(iv.f32x2)
        block.write(x, y, iv.f32x2(iv.f32(x), iv.f32(y)))
        iv.threadgroup_barrier("imageblock")
        if (x == 0) & (y == 0):
            dst.write(0, 1, block.slice(origin=(2, 1), size=(2, 3)))

    out = iv.Texture.zeros((5, 2), "rg32float")
    part[(4, 4), (4, 4)](out)
    expected = np.zeros((5, 2, 2), np.float32)
    expected[1:4] = np.stack(np.meshgrid([2, 3], [1, 2, 3]), -1)
    assert (out.numpy() == expected).all()


def test_a_race_is_told_by_element_and_field_and_advice_is_python():
    @iv.kernel(threadgroup=(4, 2))
    def raced(y: iv.Buffer[iv.f32]):
        tx, ty = iv.thread_position_in_threadgroup("x"), iv.thread_position_in_threadgroup("y")
        block = iv.imageblock_alloc(Pixel)
        block[tx, ty].depth = 1.0
        iv.threadgroup_barrier()
        y[iv.thread_index_in_threadgroup()] = block[3 - tx, ty].depth

    with pytest.raises(iv.CheckError, match=r"`block\[\d, \d\]\.depth`") as error:
        iv.check(raced, grid=(4, 2))(np.zeros(8, np.float32))
    assert 'iv.threadgroup_barrier("imageblock")' in str(error.value)


def refused(body, threadgroup=(4, 2)):
    def kernel(y: iv.Buffer[iv.f32]):
        body(y)

    size = threadgroup or (4, 2)
    with pytest.raises(iv.Error) as error:
        iv.kernel(threadgroup=threadgroup)(kernel)[size, size](np.zeros(8, np.float32))
    return str(error.value)


def test_what_an_imageblock_does_not_have_is_refused():
    def one_index(y):
        block = iv.imageblock_alloc(iv.f32)
        y[0] = block[0]

    def field(y):
        block = iv.imageblock_alloc(Pixel)
        block.slice("height")

    def whole(y):
        block = iv.imageblock_alloc(Pixel)
        block.slice()

    def array(y):
        iv.imageblock_alloc(Pixel, formats={"colour": "rgba8unorm"})

    def packed(y):
        iv.imageblock_alloc(iv.f32x4, formats="rgb10a2unorm")

    def unknown(y):
        iv.imageblock_alloc(iv.f32, formats="r8norm")

    def unsized(y):
        iv.imageblock_alloc(iv.f32)

    def text(y):
        iv.imageblock_alloc(Pixel, formats="r16float")

    def vector(y):
        iv.imageblock_alloc(iv.f32).load((0, 0), 4)

    def shifted(y):
        iv.imageblock_alloc(iv.f32).at((1, 0))

    def number(y):
        iv.imageblock_alloc(Pixel).slice(0)

    def corner(y):
        iv.imageblock_alloc(iv.f32).slice(origin=1)

    def negative(y):
        iv.imageblock_alloc(iv.f32).slice(size=(-1, 2))

    def fraction(y):
        iv.imageblock_alloc(iv.f32).slice(origin=(0.5, 0))

    def atomic(y):
        iv.atomic_add(iv.imageblock_alloc(iv.u32), (0, 0), 1)

    def volume(y):
        iv.imageblock_alloc(iv.f32)

    def space(y):
        iv.threadgroup_barrier("imageblocks")

    assert "has fields, each with a format of its own" in refused(text)
    assert "has no vector accesses" in refused(vector)
    assert "add to the coordinates in" in refused(shifted)
    assert "is given by its name, not" in refused(number)
    assert "write origin=(x, y), size=(width, height)" in refused(corner)
    assert "is of numbers from 0 on, found -1" in refused(negative)
    assert "0.5 where u32 is needed" in refused(fraction)
    assert "there are no atomics on its elements" in refused(atomic)
    assert "the threadgroups of `@kernel` have three" in refused(volume, (2, 2, 2))
    assert '"texture" or "imageblock"' in refused(space)
    assert "has a column and a row: write `block[x, y]`" in refused(one_index)
    assert "has no field `height`; it has depth, colour" in refused(field)
    assert 'name it, as in `slice("depth")`' in refused(whole)
    assert "field `colour` has a format, but is not a scalar or vector" in refused(array)
    assert "whose channels share a word" in refused(packed)
    assert "r8norm" in refused(unknown)
    assert "write `@iv.kernel(threadgroup=(16, 16))`" in refused(unsized, None)
