use invar::prelude::*;

#[kernel]
fn lengths(x: &[[f32; 3]], out: &mut [f32]) {
    let i = thread_position_in_grid().x;
    let v = x[i] * 2.0;
    out[i] = v.length() + v.x;
}

fn main() -> invar::Result<()> {
    let mut out = [0.0];
    lengths::check(Grid::threads(1), &[[3.0, 0.0, 4.0]], &mut out)?.into_result()?;
    assert_eq!(out, [16.0]);
    Ok(())
}
