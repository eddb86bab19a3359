use invar::prelude::*;

#[kernel]
fn odd(x: &mut [u32]) {
    let i = thread_position_in_grid().x;
    if i % 2 == 0 {
        return;
    }
    x[i] = i;
}

fn main() -> invar::Result<()> {
    let mut x = [9; 4];
    odd::check(Grid::threads(4), &mut x)?.into_result()?;
    assert_eq!(x, [9, 1, 9, 3]);
    Ok(())
}
