use invar::prelude::*;

#[kernel]
fn twice<T: Number>(x: &mut [T]) {
    let i = thread_position_in_grid().x;
    x[i] += x[i];
}

fn main() -> invar::Result<()> {
    let (mut a, mut b) = ([1.5f64], [7u8]);
    twice::<f64>::check(Grid::threads(1), &mut a)?.into_result()?;
    twice::<u8>::check(Grid::threads(1), &mut b)?.into_result()?;
    assert_eq!((a, b), ([3.0], [14]));
    Ok(())
}
