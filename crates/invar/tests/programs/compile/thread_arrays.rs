use invar::prelude::*;

#[device_fn]
fn swap(own: &mut ThreadArray<u32>) {
    let first = own[0];
    own[0] = own[1];
    own[1] = first;
}

#[kernel]
fn ends(x: &mut [u32]) {
    let own = thread!([u32; 2]);
    own[0] = x[0];
    own[1] = x[1];
    swap(&mut own);
    x[0] = own[0];
    x[1] = own[1];
}

fn main() -> invar::Result<()> {
    let mut x = [1, 2];
    ends::check(Grid::threads(1), &mut x)?.into_result()?;
    assert_eq!(x, [2, 1]);
    Ok(())
}
