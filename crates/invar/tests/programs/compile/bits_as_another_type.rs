use invar::prelude::*;

#[kernel]
fn halved(x: &mut [f32]) {
    let i = thread_position_in_grid().x;
    x[i] = as_type::<f32>(as_type::<u32>(x[i]) - (1 << 23));
}

fn main() -> invar::Result<()> {
    let mut x = [3.0];
    halved::check(Grid::threads(1), &mut x)?.into_result()?;
    assert_eq!(x, [1.5]);
    Ok(())
}
