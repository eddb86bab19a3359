use invar::prelude::*;

#[kernel]
fn transformed(m: [[f32; 2]; 2], x: &mut [[f32; 2]]) {
    let i = thread_position_in_grid().x;
    x[i] = transpose(m) * (m * x[i]);
}

fn main() -> invar::Result<()> {
    let mut x = [[1.0, 2.0]];
    let turn = [[0.0, 1.0], [-1.0, 0.0]];
    transformed::check(Grid::threads(1), turn, &mut x)?.into_result()?;
    assert_eq!(x, [[1.0, 2.0]]);
    Ok(())
}
