use invar::prelude::*;

#[kernel]
fn pairs(x: &mut [u32], n: u32) {
    let mut found = 0;
    'outer: for a in 1..n {
        for b in a..n {
            if a * b == 35 {
                found = a * 100 + b;
                break 'outer;
            }
        }
    }
    x[thread_position_in_grid().x] = found;
}

fn main() -> invar::Result<()> {
    let mut x = [0];
    pairs::check(Grid::threads(1), &mut x, 10)?.into_result()?;
    assert_eq!(x, [507]);
    Ok(())
}
