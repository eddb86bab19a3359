//! The product of two matrices by tiles: each threadgroup brings tiles of both into its own memory,
//! where 16 by 16 threads share them.

use invar::prelude::*;

const TILE: u32 = 16;

/// `c = a * b`, of `m` by `k` and `k` by `n` numbers, row by row.
#[kernel(threadgroup(TILE, TILE))]
pub fn product(a: &[f32], b: &[f32], c: &mut [f32], k: u32, n: u32) {
    let (column, row) = (thread_position_in_grid().x, thread_position_in_grid().y);
    let (x, y) = (
        thread_position_in_threadgroup().x,
        thread_position_in_threadgroup().y,
    );
    let tile_a = threadgroup!([f32; TILE * TILE]);
    let tile_b = threadgroup!([f32; TILE * TILE]);
    let mut sum = 0.0;
    for first in (0..k).step_by(TILE) {
        tile_a[y * TILE + x] = a[row * k + first + x];
        tile_b[y * TILE + x] = b[(first + y) * n + column];
        threadgroup_barrier_of(Spaces::THREADGROUP);
        for i in 0..TILE {
            sum = fma(tile_a[y * TILE + i], tile_b[i * TILE + x], sum);
        }
        threadgroup_barrier_of(Spaces::THREADGROUP);
    }
    c[row * n + column] = sum;
}

fn main() -> invar::Result<()> {
    let (m, k, n) = (64, 48, 32);
    let number = |i: usize| ((i * 7) % 13) as f32 - 6.0;
    let a: Vec<f32> = (0..m * k).map(number).collect();
    let b: Vec<f32> = (0..k * n).map(number).collect();
    let grid = Grid::threads([n as u32, m as u32]);

    // Under all checkers, and on this machine's fastest device.
    let mut checked = vec![0.0; m * n];
    product::check(grid, &a, &b, &mut checked, k as u32, n as u32)?.into_result()?;
    let device = Device::default()?;
    let (a_there, b_there) = (device.buffer_from(&a)?, device.buffer_from(&b)?);
    let mut c = device.buffer_zeroed::<f32>(m * n)?;
    product::launch(
        &device, grid, &a_there, &b_there, &mut c, k as u32, n as u32,
    )?
    .wait()?;
    assert_eq!(c.read()?, checked);

    let exact = |i: usize| {
        (0..k)
            .map(|j| a[i / n * k + j] * b[j * n + i % n])
            .sum::<f32>()
    };
    assert!(
        (0..m * n).all(|i| checked[i] == exact(i)),
        "the numbers are small integers"
    );
    Ok(())
}
