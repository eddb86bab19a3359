//! Imageblocks of Rust kernels.

use invar::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, KernelData)]
#[repr(C)]
struct Pixel {
    colour: [f32; 4],
    depth: f32,
}

/// Each threadgroup turns its part of a picture by half, and its first thread writes the part at once.
#[kernel(threadgroup(4, 2))]
fn turned(from: &Texture2d<f32>, to: &mut Texture2d<f32>, sizes: &mut [u32]) {
    let p = thread_position_in_grid();
    let t = thread_position_in_threadgroup();
    let block = imageblock!(Pixel, depth: R8Unorm, colour: Rgba32Float);
    block[block.element(t.x, t.y)].depth = from.read(p.x, p.y).x;
    threadgroup_barrier_of(Spaces::IMAGEBLOCK);
    let depth = block[block.element(3 - t.x, 1 - t.y)].depth;
    block[block.element(t.x, t.y)].colour = [depth, depth, 0.0, 1.0];
    threadgroup_barrier_of(Spaces::IMAGEBLOCK);
    if thread_index_in_threadgroup() == 0 {
        to.write_slice(p.x, p.y, &block[0].colour);
        sizes[0] = block.width();
        sizes[1] = block.height();
        sizes[2] = block.samples();
    }
}

#[test]
fn an_imageblock_is_turned_on_every_device() -> invar::Result<()> {
    for device in [Device::checked(), Device::named("cpu")?] {
        let texels: Vec<u8> = (0..8).collect();
        let from = Texture::new(&device, PixelFormat::R8Unorm, 4, 2, &texels)?;
        let mut to = Texture::zeroed(&device, PixelFormat::Rg8Unorm, 4, 2)?;
        let mut sizes = device.buffer_zeroed::<u32>(3)?;
        turned::launch(&device, Grid::threads([4, 2]), &from, &mut to, &mut sizes)?.wait()?;
        let expected: Vec<u8> = (0..8).rev().flat_map(|n| [n, n]).collect();
        assert_eq!(to.read()?, expected);
        assert_eq!(sizes.read()?, [4, 2, 1]);
    }
    Ok(())
}

/// Without the first barrier a thread reads what another one writes.
#[kernel(threadgroup(4, 2))]
fn raced(to: &mut [f32]) {
    let t = thread_position_in_threadgroup();
    let block = imageblock!(Pixel);
    block[block.element(t.x, t.y)].depth = 1.0;
    if t.y == 0 {
        to[t.x] = block[block.element(3 - t.x, 1)].depth;
    }
}

#[test]
fn a_race_is_told_by_element_and_field() -> invar::Result<()> {
    let mut to = [0.0f32; 4];
    let findings = raced::check(Grid::threads([4, 2]), &mut to)?;
    let text = findings.into_result().expect_err("a race").to_string();
    assert!(text.contains("].depth` is"), "{text}");
    assert!(text.contains("`block["), "{text}");
    Ok(())
}

/// A kernel that does not say the size of its threadgroups.
#[kernel]
fn unsized_block(to: &mut [f32]) {
    let block = imageblock!(f32);
    to[0] = block[0];
}

#[test]
fn a_kernel_says_the_size_of_its_threadgroups() {
    let error = unsized_block::to_inv().expect_err("no size").to_string();
    assert!(
        error.contains("imageblock `block` has an element for each position"),
        "{error}"
    );
}
