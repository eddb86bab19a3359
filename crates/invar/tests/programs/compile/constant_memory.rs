use invar::prelude::*;

const SQUARES: [u32; 6] = [0, 1, 4, 9, 16, 25];

#[kernel]
fn looked_up(weights: &Constants<u32>, out: &mut [u32]) {
    let i = thread_position_in_grid().x;
    let squares = constant!(SQUARES);
    out[i] = squares[i] * weights[0];
}

fn main() -> invar::Result<()> {
    let mut out = [0; 6];
    looked_up::check(Grid::threads(6), &[10], &mut out)?.into_result()?;
    assert_eq!(out, [0, 10, 40, 90, 160, 250]);
    Ok(())
}
