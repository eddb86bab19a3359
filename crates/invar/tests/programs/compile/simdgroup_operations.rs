use invar::prelude::*;

#[kernel(threadgroup(32), simdgroup(32))]
fn sums(x: &[u32], out: &mut [u32]) {
    let i = thread_position_in_grid().x;
    out[i] = simd_sum(x[i]) + simd_ballot(x[i] > 0).x;
}

fn main() -> invar::Result<()> {
    let mut out = [0; 32];
    sums::check(Grid::threads(32), &[1; 32], &mut out)?.into_result()?;
    assert_eq!(out, [31; 32]);
    Ok(())
}
