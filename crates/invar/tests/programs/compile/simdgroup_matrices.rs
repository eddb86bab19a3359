use invar::prelude::*;

#[kernel(threadgroup(32), simdgroup(32))]
fn square(x: &[f32], y: &mut [f32]) {
    let m = simdgroup_load(&x[0], 8u32);
    simdgroup_store(simdgroup_multiply_accumulate(m, m, simdgroup_matrix(1.0)), &mut y[0], 8u32);
}

fn main() -> invar::Result<()> {
    let mut y = [0.0; 64];
    square::check(Grid::threads(32), &[0.5; 64], &mut y)?.into_result()?;
    assert_eq!(y, [3.0; 64]);
    Ok(())
}
