use invar::prelude::*;

#[kernel(threadgroup(N))]
fn reverse<const N: u32>(x: &mut [u32]) {
    let tile = threadgroup!([u32; N]);
    let (i, t) = (thread_position_in_grid().x, thread_index_in_threadgroup());
    tile[t] = x[i];
    threadgroup_barrier();
    x[i] = tile[N - 1 - t];
}

fn main() -> invar::Result<()> {
    let mut x = [1, 2, 3, 4];
    reverse::<2>::check(Grid::threads(4), &mut x)?.into_result()?;
    assert_eq!(x, [2, 1, 4, 3]);
    Ok(())
}
