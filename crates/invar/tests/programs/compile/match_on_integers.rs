use invar::prelude::*;

#[kernel]
fn name(x: &mut [i32]) {
    let i = thread_position_in_grid().x;
    x[i] = match x[i] {
        -1 => 10,
        0 | 1 => 20,
        2..=5 => 30,
        6..9 => 40,
        other => other * 2,
    };
}

fn main() -> invar::Result<()> {
    let mut x = [-1, 1, 5, 8, 9];
    name::check(Grid::threads(5), &mut x)?.into_result()?;
    assert_eq!(x, [10, 20, 30, 40, 18]);
    Ok(())
}
