use invar::prelude::*;

#[device_fn]
fn total(tile: &ThreadgroupArray<u32>, n: u32) -> u32 {
    let mut sum = 0;
    for i in 0..n {
        sum += tile[i];
    }
    sum
}

#[kernel(threadgroup(4))]
fn sums(x: &[u32], out: &mut [u32]) {
    let tile = threadgroup!([u32; 4]);
    tile[thread_index_in_threadgroup()] = x[thread_position_in_grid().x];
    threadgroup_barrier();
    out[thread_position_in_grid().x] = total(&tile, 4);
}

fn main() -> invar::Result<()> {
    let mut out = [0; 4];
    sums::check(Grid::threads(4), &[1, 2, 3, 4], &mut out)?.into_result()?;
    assert_eq!(out, [10; 4]);
    Ok(())
}
