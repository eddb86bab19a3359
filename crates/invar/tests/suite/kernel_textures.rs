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

fn shaped(
    format: PixelFormat,
    [width, height]: [u32; 2],
    then: impl FnOnce(TextureShape) -> Result<TextureShape, String>,
) -> TextureShape {
    let shape = TextureShape::new(format, width, height).and_then(then);
    shape.expect("there is such a shape")
}

/// The devices that all of this is the same on.
fn devices() -> invar::Result<[Device; 2]> {
    Ok([Device::checked(), Device::named("cpu")?])
}

const MIXED: Sampler = Sampler {
    mip: Mip::Linear,
    ..Sampler::LINEAR
};

/// What all ways to a level give.
#[kernel]
fn of_levels(picture: &Texture2d<f32>, out: &mut [f32]) {
    out[0] = picture.sample_level(0.5, 0.5, 0.5, MIXED).x;
    out[1] = picture.read_level(0, 0, 1).x;
    out[2] = picture
        .sample_gradient(0.5, 0.5, [1.0, 0.0], [0.0, 0.5], MIXED)
        .x;
    out[3] =
        (picture.levels() * 100 + picture.level_width(0) * 10 + picture.level_height(7)) as f32;
}

#[kernel]
fn fills(picture: &mut Texture2d<f32>) {
    let level = thread_position_in_grid().x;
    picture.write_level(0, 0, level, [level as f32, 0.0, 0.0, 0.0]);
}

#[test]
fn levels_are_sampled_read_and_written() -> invar::Result<()> {
    for device in devices()? {
        let shape = shaped(PixelFormat::R32Float, [2, 1], |s| s.with_levels(2));
        let mut picture = Texture::of_shape(&device, shape)?;
        let numbers = [10.0f32, 10.0, 30.0].map(f32::to_le_bytes).concat();
        picture.write(&numbers)?;
        let mut out = device.buffer_zeroed::<f32>(4)?;
        of_levels::launch(&device, Grid::threads(1), &picture, &mut out)?.wait()?;
        assert_eq!(out.read()?, [20.0, 30.0, 30.0, 220.0]);
        fills::launch(&device, Grid::threads(2), &mut picture)?.wait()?;
        let texels = [0.0f32, 10.0, 1.0].map(f32::to_le_bytes).concat();
        assert_eq!(picture.read()?, texels);
    }
    Ok(())
}

/// A sample by a sampler of whoever calls.
#[device_fn]
fn taken(row: &Texture2d<f32>, u: f32, how: Sampler) -> f32 {
    row.sample(u, 0.5, how).x
}

#[kernel]
fn by_samplers(row: &Texture2d<f32>, how: Sampler, out: &mut [f32]) {
    out[0] = taken(row, 1.25, how);
    out[1] = taken(row, 1.25, Sampler::NEAREST);
    out[2] = row.sample(0.25, 0.5, how.offset::<1, 0, 0>()).x;
    out[3] = row
        .sample(0.75, 0.5, Sampler::NEAREST.offset::<-1, 0, 0>())
        .x;
    out[4] = row.gather::<0>(0.25, 0.5, how.offset::<1, 0, 0>()).y;
}

#[test]
fn samplers_are_parameters_and_samples_lie_further() -> invar::Result<()> {
    let how = Sampler {
        address: Address::Repeat,
        ..Sampler::NEAREST
    };
    for device in devices()? {
        let row = Texture::new(&device, PixelFormat::R8Unorm, 2, 1, &[0, 255])?;
        let mut out = device.buffer_zeroed::<f32>(5)?;
        by_samplers::launch(&device, Grid::threads(1), &row, how, &mut out)?.wait()?;
        assert_eq!(out.read()?, [0.0, 1.0, 1.0, 0.0, 0.0]);
    }
    let row = Texture::new(&Device::checked(), PixelFormat::R8Unorm, 2, 1, &[0, 255])?;
    let mut out = [0.0; 5];
    by_samplers::check(Grid::threads(1), &row, how, &mut out)?.into_result()?;
    assert_eq!(out, [0.0, 1.0, 1.0, 0.0, 0.0]);
    let text = by_samplers::to_inv()?;
    assert!(text.contains("%how: sampler"), "{text}");
    Ok(())
}

const NEAREST_LEVEL: Sampler = Sampler {
    mip: Mip::Nearest,
    ..Sampler::NEAREST
};

/// The faces that directions lead to, and what is written to one.
#[kernel]
fn of_cubes(sky: &TextureCube<u32>, skies: &mut TextureCubeArray<u32>, out: &mut [u32]) {
    out[0] = sky.sample(1.0, 0.0, 0.0, Sampler::NEAREST).x;
    out[1] = sky.sample_level(0.0, -1.0, 0.5, 0.0, NEAREST_LEVEL).x;
    out[2] = sky.read(0, 0, 5).x;
    out[3] = skies.array_size() * 10 + skies.width();
    skies.write(0, 0, 4, 1, [sky.width(), 0, 0, 0]);
}

#[test]
fn cubes_are_sampled_in_directions() -> invar::Result<()> {
    for device in devices()? {
        let sky = Texture::of_shape(
            &device,
            shaped(PixelFormat::R8Uint, [1, 1], |s| s.with_depth(6)),
        )?;
        sky.write(&[10, 11, 12, 13, 14, 15])?;
        let shape = shaped(PixelFormat::R8Uint, [1, 1], |s| s.with_depth(12));
        let mut skies = Texture::of_shape(&device, shape)?;
        let mut out = device.buffer_zeroed::<u32>(4)?;
        of_cubes::launch(&device, Grid::threads(1), &sky, &mut skies, &mut out)?.wait()?;
        assert_eq!(out.read()?, [10, 13, 15, 21]);
        assert_eq!(skies.read()?, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
    }
    Ok(())
}

const NEARER_OF_LEVELS: Sampler = Sampler {
    mip: Mip::Nearest,
    ..NEARER
};
const NEARER: Sampler = Sampler {
    compare: Some(Compare::Less),
    ..Sampler::LINEAR
};

#[kernel]
fn of_depths(map: &Depth2d<f32>, out: &mut [f32]) {
    out[0] = map.sample_compare(0.5, 0.5, 0.5, NEARER);
    out[1] = map.read(1, 0);
    out[2] = map.sample(0.0, 0.5, Sampler::NEAREST);
    let which = map.gather_compare(0.5, 0.5, 0.5, NEARER);
    let around = map.gather(0.5, 0.5, Sampler::NEAREST);
    out[3] = which.x + which.y * 10.0;
    out[4] = around.y;
    out[5] = map.sample_compare_level(0.5, 0.5, 0.0, 0.1, NEARER_OF_LEVELS);
}

#[test]
fn depths_are_compared() -> invar::Result<()> {
    for device in devices()? {
        let numbers = [0.25f32, 0.75].map(f32::to_le_bytes).concat();
        let map = Texture::new(&device, PixelFormat::Depth32Float, 2, 1, &numbers)?;
        let mut out = device.buffer_zeroed::<f32>(6)?;
        of_depths::launch(&device, Grid::threads(1), &map, &mut out)?.wait()?;
        assert_eq!(out.read()?, [0.5, 0.75, 0.25, 10.0, 0.75, 1.0]);
    }
    let text = of_depths::to_inv()?;
    assert!(text.contains("%map: depth2d f32 sample"), "{text}");
    Ok(())
}

/// Levels of a volume, gradients of three numbers, and what lies around a direction.
#[kernel]
fn deep_and_around(
    deep: &Texture3d<f32>,
    sky: &TextureCube<f32>,
    shadows: &DepthCubeArray<f32>,
    out: &mut [f32],
) {
    out[0] = deep.read_level(0, 0, 1, 1).x;
    out[1] = (deep.levels() * 10 + deep.level_depth(1)) as f32;
    out[2] = deep.sample_level(0.5, 0.5, 0.5, 2.0, MIXED).x;
    out[3] = deep
        .sample_gradient(0.5, 0.5, 0.5, [0.0, 0.0, 0.5], [0.0; 3], MIXED)
        .x;
    out[4] = sky
        .sample_gradient(1.0, 0.0, 0.0, [0.0, 2.0, 0.0], [0.0; 3], MIXED)
        .x;
    out[5] = sky.gather::<0>(1.0, 0.0, 0.0, Sampler::NEAREST).y;
    out[6] = shadows.gather_compare(1.0, 0.0, 0.0, 1, 25.5, NEARER).x;
    out[7] = shadows.gather(1.0, 0.0, 0.0, 1, Sampler::NEAREST).x;
}

#[kernel]
fn fills_volumes(deep: &mut Texture3d<f32>) {
    let level = thread_position_in_grid().x;
    let last = deep.level_depth(level) - 1;
    deep.write_level(0, 0, last, level, [level as f32, 0.0, 0.0, 0.0]);
}

#[test]
fn volumes_have_levels_and_cubes_what_is_around() -> invar::Result<()> {
    let numbers =
        |count: u32| -> Vec<u8> { (0..count).flat_map(|n| (n as f32).to_le_bytes()).collect() };
    for device in devices()? {
        let shape = TextureShape::volume(PixelFormat::R32Float, 1, 1, 4);
        let shape = shape.and_then(|s| s.with_levels(3)).expect("a volume");
        let mut deep = Texture::of_shape(&device, shape)?;
        deep.write(&numbers(7))?;
        let shape = shaped(PixelFormat::R32Float, [2, 2], |s| {
            s.with_depth(6)?.with_levels(2)
        });
        let sky = Texture::of_shape(&device, shape)?;
        sky.write(&numbers(30))?;
        let shape = shaped(PixelFormat::Depth32Float, [2, 2], |s| s.with_depth(12));
        let shadows = Texture::of_shape(&device, shape)?;
        shadows.write(&numbers(48))?;
        let mut out = device.buffer_zeroed::<f32>(8)?;
        deep_and_around::launch(&device, Grid::threads(1), &deep, &sky, &shadows, &mut out)?
            .wait()?;
        assert_eq!(out.read()?, [5.0, 32.0, 6.0, 4.5, 24.0, 3.0, 1.0, 26.0]);
        fills_volumes::launch(&device, Grid::threads(3), &mut deep)?.wait()?;
        let texels = [0.0f32, 1.0, 2.0, 0.0, 4.0, 1.0, 2.0];
        assert_eq!(deep.read()?, texels.map(f32::to_le_bytes).concat());
    }
    Ok(())
}

/// Samples of a texel, rows of an array, and a long row.
#[kernel]
fn arranged(
    picture: &Texture2dMs<u32>,
    rows: &Texture1dArray<i32>,
    long: &mut TextureBuffer<u32>,
    out: &mut [i32],
) {
    out[0] = picture.read(0, 0, 1).x as i32 + picture.samples() as i32 * 100;
    out[1] = rows.read(1, 1).x + rows.array_size() as i32 * 100;
    out[2] = rows.sample(0.75, 0, Sampler::NEAREST).x;
    long.write(long.width() - 1, [7, 0, 0, 0]);
    long.fence();
    out[3] = long.read(69_999).x as i32;
}

#[test]
fn samples_of_texels_and_rows_are_read() -> invar::Result<()> {
    for device in devices()? {
        let picture = Texture::of_shape(
            &device,
            shaped(PixelFormat::R8Uint, [1, 1], |s| s.with_samples(2)),
        )?;
        picture.write(&[3, 4])?;
        let rows = Texture::of_shape(
            &device,
            shaped(PixelFormat::R8Sint, [2, 1], |s| s.with_depth(2)),
        )?;
        rows.write(&[1, 0xfe, 3, 0xfc])?;
        let row = TextureShape::buffer(PixelFormat::R32Uint, 70_000).expect("a shape");
        let mut long = Texture::of_shape(&device, row)?;
        let mut out = device.buffer_zeroed::<i32>(4)?;
        arranged::launch(
            &device,
            Grid::threads(1),
            &picture,
            &rows,
            &mut long,
            &mut out,
        )?
        .wait()?;
        assert_eq!(out.read()?, [204, 196, -2, 7]);
    }
    Ok(())
}

#[kernel]
fn counts(from: &Texture2d<f32>, bins: &mut Texture2d<u32>, found: &mut [u32]) {
    let p = thread_position_in_grid();
    let bin = (from.read(p.x, p.y).x * 255.0) as u32;
    bins.atomic_add(bin, 0, 1);
    bins.atomic_max(0, 1, bin);
    let (before, is_first) = bins.atomic_compare_exchange(1, 1, 0, 9);
    if is_first {
        found[0] = before + 1;
    }
}

#[test]
fn atomics_act_on_texels() -> invar::Result<()> {
    for device in devices()? {
        let from = Texture::new(&device, PixelFormat::R8Unorm, 2, 2, &[0, 3, 3, 0])?;
        let mut bins = Texture::zeroed(&device, PixelFormat::R32Uint, 4, 2)?;
        let mut found = device.buffer_zeroed::<u32>(1)?;
        counts::launch(&device, Grid::threads([2, 2]), &from, &mut bins, &mut found)?.wait()?;
        let wanted = [2u32, 0, 0, 2, 3, 9, 0, 0].map(u32::to_le_bytes).concat();
        assert_eq!(bins.read()?, wanted);
        assert_eq!(found.read()?, [1]);
    }
    let text = counts::to_inv()?;
    assert!(text.contains("texture2d u32 read_write"), "{text}");
    Ok(())
}
