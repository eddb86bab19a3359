use invar::prelude::*;

#[kernel]
fn count(x: &[u32], bins: &mut [u32]) {
    atomic_add(&mut bins[x[thread_position_in_grid().x] % 2], 1);
    atomic_max_explicit(&mut bins[2], 7, Order::AcqRel, Scope::Device);
}

fn main() -> invar::Result<()> {
    let mut bins = [0; 3];
    count::check(Grid::threads(3), &[1, 3, 4], &mut bins)?.into_result()?;
    assert_eq!(bins, [1, 2, 7]);
    Ok(())
}
