use invar::prelude::*;

#[kernel(threadgroup(32), simdgroup(32))]
fn through(x: &[u32], y: &mut [u32]) {
    let tile = threadgroup!([u32; 32]);
    wait(async_copy(&mut tile[0], &x[0], 32u32));
    threadgroup_barrier();
    y[thread_position_in_grid().x] = tile[31 - thread_index_in_threadgroup()];
}

fn main() -> invar::Result<()> {
    let x: Vec<u32> = (0..32).collect();
    let mut y = [0; 32];
    through::check(Grid::threads(32), &x, &mut y)?.into_result()?;
    assert_eq!(y[1], 30);
    Ok(())
}
