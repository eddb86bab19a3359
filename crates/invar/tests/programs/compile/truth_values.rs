use invar::prelude::*;

#[kernel]
fn between(x: &mut [i32], low: i32, high: i32, outside: bool) {
    let i = thread_position_in_grid().x;
    let inside = x[i] >= low && x[i] < high;
    x[i] = if inside ^ outside && !(x[i] == 0 || x[i] == 1) { 1 } else { 0 };
}

fn main() -> invar::Result<()> {
    let mut x = [-5, 2, 50];
    between::check(Grid::threads(3), &mut x, -1, 10, false)?.into_result()?;
    assert_eq!(x, [0, 1, 0]);
    Ok(())
}
