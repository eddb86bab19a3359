//! Textures of Rust kernels.

use invar::TextureShape;
use invar::prelude::*;

/// A picture in another size, a thread for each texel of the new one.
#[kernel(threadgroup(8, 8))]
fn resize(from: &Texture2d<f32>, to: &mut Texture2d<f32>) {
    let p = thread_position_in_grid();
    let (u, v) = (
        (p.x as f32 + 0.5) / to.width() as f32,
        (p.y as f32 + 0.5) / to.height() as f32,
    );
    let colour = from.sample(u, v, Sampler::LINEAR);
    to.write(p.x, p.y, colour);
}

#[test]
fn a_picture_is_resized_on_every_device() -> invar::Result<()> {
    let device = Device::checked();
    let from = Texture::new(&device, PixelFormat::R8Unorm, 2, 1, &[10, 30])?;
    let mut to = Texture::zeroed(&device, PixelFormat::R8Unorm, 4, 1)?;
    resize::launch(&device, Grid::threads([4, 1]), &from, &mut to)?.wait()?;
    assert_eq!(to.read()?, [10, 15, 25, 30]);
    to.write(&[0; 4])?;
    resize::check(Grid::threads([4, 1]), &from, &mut to)?.into_result()?;
    assert_eq!(to.read()?, [10, 15, 25, 30]);
    let text = resize::to_inv()?;
    for parameter in ["%from: texture2d f32 sample", "%to: texture2d f32 write"] {
        assert!(text.contains(parameter), "{text}");
    }
    Ok(())
}

/// The texels around the middle of a picture and of an element, of two components.
#[kernel]
fn around(picture: &Texture2d<f32>, cells: &Texture2dArray<u32>, out: &mut [[u32; 4]]) {
    let green = picture.gather::<1>(0.5, 0.5, Sampler::NEAREST);
    out[0] = (green * 255.0).rint() as [u32; 4];
    out[1] = cells.gather::<0>(0.5, 0.5, 1, Sampler::NEAREST);
}

#[test]
fn a_gather_gives_a_component_of_four_texels() -> invar::Result<()> {
    for device in [Device::checked(), Device::named("cpu")?] {
        let texels: Vec<u8> = (0..16).collect();
        let picture = Texture::new(&device, PixelFormat::Rgba8Unorm, 2, 2, &texels)?;
        let shape = TextureShape::new(PixelFormat::R32Uint, 2, 2).and_then(|s| s.with_depth(2));
        let cells = Texture::of_shape(&device, shape.expect("a shape"))?;
        let numbers: Vec<u8> = (0..8u32).flat_map(u32::to_le_bytes).collect();
        cells.write(&numbers)?;
        let mut out = device.buffer_zeroed::<[u32; 4]>(2)?;
        around::launch(&device, Grid::threads(1), &picture, &cells, &mut out)?.wait()?;
        // The lower left, the lower right, the upper right, the upper left: rows count downward.
        assert_eq!(out.read()?, [[9, 13, 5, 1], [6, 7, 5, 4]]);
    }
    Ok(())
}

#[device_fn]
fn doubled(cells: &mut Texture2dArray<u32>, x: u32, element: u32) {
    let cell = cells.read(x, 0, element);
    cells.write(x, 0, element, cell * 2);
}

#[kernel]
fn doubles(cells: &mut Texture2dArray<u32>, sizes: &mut [u32]) {
    let p = thread_position_in_grid();
    doubled(cells, p.x, p.y);
    if p.y == 0 {
        sizes[p.x] = cells.array_size() * 100 + cells.width() * 10 + cells.height();
    }
}

#[test]
fn elements_of_integers_are_read_and_written() -> invar::Result<()> {
    let device = Device::checked();
    let shape = TextureShape::new(PixelFormat::R8Uint, 2, 1).and_then(|s| s.with_depth(2));
    let mut cells = Texture::of_shape(&device, shape.expect("a shape"))?;
    cells.write(&[1, 2, 3, 200])?;
    let mut sizes = [0; 2];
    doubles(Grid::threads([2, 2]), &mut cells, &mut sizes);
    assert_eq!(cells.read()?, [2, 4, 6, 255]);
    assert_eq!(sizes, [221; 2]);
    let text = doubles::to_inv()?;
    assert!(text.contains("texture2d_array u32 read_write"), "{text}");
    Ok(())
}

const TILES: Sampler = Sampler {
    address: Address::Repeat,
    ..Sampler::NEAREST
};

#[kernel]
fn tiled(row: &Texture1d<f32>, volume: &Texture3d<i32>, out: &mut [f32]) {
    let i = thread_position_in_grid().x;
    let c = row.sample(i as f32 / 2.0 + 0.25, TILES);
    out[i] = c.x + volume.read(0, 0, i % 2).y as f32 + volume.depth() as f32;
}

#[test]
fn rows_and_volumes_are_textures() -> invar::Result<()> {
    let device = Device::checked();
    let row = Texture::new(&device, PixelFormat::R8Unorm, 2, 1, &[0, 255])?;
    let shape = TextureShape::new(PixelFormat::Rg8Sint, 1, 1).and_then(|s| s.with_depth(2));
    let volume = Texture::of_shape(&device, shape.expect("a shape"))?;
    volume.write(&[9, 0xff, 9, 0xfd])?;
    let mut out = [0.0; 3];
    tiled::check(Grid::threads(3), &row, &volume, &mut out)?.into_result()?;
    assert_eq!(out, [1.0, 0.0, 1.0]);
    Ok(())
}

#[kernel]
fn racing(to: &mut Texture2d<f32>) {
    let x = thread_position_in_grid().x;
    to.write(x / 2, 0, [x as f32, 0.0, 0.0, 1.0]);
}

#[test]
fn races_for_texels_are_reported_on_the_line() -> invar::Result<()> {
    let mut to = Texture::zeroed(&Device::checked(), PixelFormat::R32Float, 2, 1)?;
    let found = racing::check(Grid::threads([4, 1]), &mut to)?;
    assert_eq!(found.diagnostics()[0].rule.name(), "data-race");
    assert!(found.to_string().contains("to.write(x / 2, 0"), "{found}");
    Ok(())
}
