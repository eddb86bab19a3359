//! The softmax of each row of a matrix, a threadgroup a row; the same bytes as `examples/softmax.inv`.

use invar::ir::{text, verify};
use invar::prelude::*;
use invar::{Arg, Program};

/// What the simdgroups of a threadgroup have found, each for its threads, in one number for all of them.
#[device_fn]
fn share(own: f32, parts: &mut ThreadgroupArray<f32>) {
    if thread_index_in_simdgroup() == 0 {
        parts[simdgroup_index_in_threadgroup()] = own;
    }
    threadgroup_barrier_of(Spaces::THREADGROUP);
}

#[kernel(threadgroup(256), simdgroup(32))]
fn softmax(x: &[f32], y: &mut [f32], n: u32) {
    let maxima = threadgroup!([f32; 8]);
    let sums = threadgroup!([f32; 8]);
    let t = thread_index_in_threadgroup();
    let start = threadgroup_position_in_grid().x * n;
    let mut most = f32::NEG_INFINITY;
    for i in (t..n).step_by(256) {
        most = most.fmax(x[start + i]);
    }
    share(simd_max(most), &mut maxima);
    let mut max = f32::NEG_INFINITY;
    for i in 0..8 {
        max = max.fmax(maxima[i]);
    }
    let mut part = 0.0;
    for i in (t..n).step_by(256) {
        part += exp(x[start + i] - max);
    }
    share(simd_sum(part), &mut sums);
    let mut sum = 0.0;
    for i in 0..8 {
        sum += sums[i];
    }
    for i in (t..n).step_by(256) {
        y[start + i] = exp(x[start + i] - max) / sum;
    }
}

/// The same kernel in the text form.
fn text_form(device: &Device) -> invar::Result<Program> {
    let source = include_str!("../../../examples/softmax.inv");
    device.compile(&verify(text::parse("softmax.inv", source)?)?, "softmax")
}

fn main() -> invar::Result<()> {
    let (rows, n) = (64, 1000);
    // Scores between -8 and 8, as a language model gives them for its next words.
    let score = |i: usize| (i as f32 * 12.9898).sin() * 8.0;
    let scores: Vec<f32> = (0..rows * n).map(score).collect();
    let grid = Grid::threadgroups(rows as u32);

    let device = Device::default()?;
    let x = device.buffer_from(&scores)?;
    let mut y = device.buffer_zeroed::<f32>(rows * n)?;
    softmax::launch(&device, grid, &x, &mut y, n as u32)?.wait()?;
    let found = y.read()?;
    for row in found.chunks(n) {
        assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5, "a row's sum");
    }

    let z = device.buffer_zeroed::<f32>(rows * n)?;
    let dispatch = Dispatch::linear(256 * rows as u32, 256);
    let args = [Arg::from(&x), Arg::from(&z), Arg::from(n as u32)];
    device.queue().run(&text_form(&device)?, dispatch, &args)?;
    assert_eq!(found, z.read()?, "as the text form computes it");
    Ok(())
}
