use invar::prelude::*;

#[kernel(threadgroup(4, 2), simdgroup(8), strict, allow(out_of_bounds_loads, out_of_bounds_stores))]
fn beyond(x: &mut [f32]) {
    let i = thread_position_in_grid().x;
    x[i + 1] = x[i + 5] * 2.0 + 1.0;
}

fn main() -> invar::Result<()> {
    let mut x = [0.0; 4];
    beyond::check(Grid::threads([4, 1]), &mut x)?.into_result()?;
    assert_eq!(x, [0.0, 1.0, 1.0, 1.0]);
    Ok(())
}
