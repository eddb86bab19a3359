use invar::prelude::*;

#[function_constant(0)]
const FACTOR: u32 = 2;

#[kernel]
fn scale(x: &mut [u32]) {
    let i = thread_position_in_grid().x;
    x[i] *= FACTOR;
}

fn main() -> invar::Result<()> {
    let device = Device::checked();
    let mut x = device.buffer_from(&[1u32, 2])?;
    let prepared = scale::prepare_with(&device, &[FACTOR.set(10)])?;
    scale::launch(&prepared, Grid::threads(2), &mut x)?.wait()?;
    assert_eq!(x.read()?, [10, 20]);
    Ok(())
}
