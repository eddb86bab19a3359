use invar::prelude::*;

#[device_fn]
fn clipped(x: f32) -> f32 {
    if x > 1.0 {
        return 1.0;
    }
    if x < 0.0 {
        return 0.0;
    }
    x
}

#[kernel]
fn clip(x: &mut [f32]) {
    let i = thread_position_in_grid().x;
    x[i] = clipped(x[i]);
}

fn main() -> invar::Result<()> {
    let mut x = [-1.0, 0.5, 2.0];
    clip::check(Grid::threads(3), &mut x)?.into_result()?;
    assert_eq!(x, [0.0, 0.5, 1.0]);
    Ok(())
}
