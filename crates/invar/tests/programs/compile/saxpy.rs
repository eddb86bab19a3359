use invar::prelude::*;

#[kernel]
fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
    let i = thread_position_in_grid().x;
    y[i] = a * x[i] + y[i];
}

fn main() -> invar::Result<()> {
    let mut y = [1.0; 3];
    saxpy::check(Grid::threads(3), 2.0, &[1.0, 2.0, 3.0], &mut y)?.into_result()?;
    assert_eq!(y, [3.0, 5.0, 7.0]);
    Ok(())
}
