use invar::prelude::*;

#[device_fn]
fn divided(a: u32, b: u32) -> (u32, u32) {
    (a / b, a % b)
}

#[kernel]
fn split(x: &mut [u32], y: &mut [u32]) {
    let i = thread_position_in_grid().x;
    let (whole, rest) = divided(x[i], 10);
    x[i] = whole;
    y[i] = rest;
}

fn main() -> invar::Result<()> {
    let (mut x, mut y) = ([42], [0]);
    split::check(Grid::threads(1), &mut x, &mut y)?.into_result()?;
    assert_eq!((x, y), ([4], [2]));
    Ok(())
}
