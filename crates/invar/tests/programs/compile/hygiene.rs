use invar::prelude::*;

#[kernel]
fn names(new: &[u32], to: &mut [u32], given: u32) {
    let (after, scope, device) = (new[0], given, 1);
    let mut old = after;
    if scope > 1 {
        old += device;
    }
    for grid in 0..given {
        old += grid;
    }
    to[0] = old;
}

fn main() -> invar::Result<()> {
    let mut to = [0];
    names::check(Grid::threads(1), &[5], &mut to, 3)?.into_result()?;
    assert_eq!(to, [9]);
    Ok(())
}
