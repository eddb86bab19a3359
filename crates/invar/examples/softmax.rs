//! The softmax of each row of a matrix, a threadgroup a row.

use invar::prelude::*;

/// What each simdgroup of the threadgroup has found, in a place for each.
#[device_fn]
fn share(own: f32, parts: &mut ThreadgroupArray<f32>) {
    if thread_index_in_simdgroup() == 0 {
        parts[simdgroup_index_in_threadgroup()] = own;
    }
    threadgroup_barrier_of(Spaces::THREADGROUP);
}

/// Of each row of `n` numbers.
#[kernel(threadgroup(256), simdgroup(32))]
pub fn softmax(x: &[f32], y: &mut [f32], n: u32) {
    let maxima = threadgroup!([f32; 8]);
    let sums = threadgroup!([f32; 8]);
    let t = thread_index_in_threadgroup();
    let start = threadgroup_position_in_grid().x * n;
    let (mut most, mut max) = (f32::NEG_INFINITY, f32::NEG_INFINITY);
    for i in (t..n).step_by(256) {
        most = most.fmax(x[start + i]);
    }
    share(simd_max(most), &mut maxima);
    for i in 0..8 {
        max = max.fmax(maxima[i]);
    }
    let (mut part, mut sum) = (0.0, 0.0);
    for i in (t..n).step_by(256) {
        part += exp(x[start + i] - max);
    }
    share(simd_sum(part), &mut sums);
    for i in 0..8 {
        sum += sums[i];
    }
    for i in (t..n).step_by(256) {
        y[start + i] = exp(x[start + i] - max) / sum;
    }
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
    for (row, scores) in found.chunks(n).zip(scores.chunks(n)) {
        let weights: Vec<f64> = scores.iter().map(|s| f64::from(*s).exp()).collect();
        let all: f64 = weights.iter().sum();
        let mut pairs = row.iter().zip(weights);
        assert!(pairs.all(|(found, weight)| (f64::from(*found) - weight / all).abs() < 1e-6));
    }
    Ok(())
}
