use invar::prelude::*;

#[kernel]
fn turned(x: &mut [[i32; 2]]) {
    let i = thread_position_in_grid().x;
    let mut v = x[i].yx();
    v.x = -v.x;
    v.y += 1;
    x[i] = v;
    x[i].x -= 1;
}

fn main() -> invar::Result<()> {
    let mut x = [[1, 2]];
    turned::check(Grid::threads(1), &mut x)?.into_result()?;
    assert_eq!(x, [[-3, 2]]);
    Ok(())
}
