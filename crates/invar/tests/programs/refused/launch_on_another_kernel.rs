use invar::prelude::*;

#[kernel]
fn a(x: &mut [f32]) {
    x[0] = 1.0;
}

#[kernel]
fn b(x: &mut [f32]) {
    x[0] = 2.0;
}

fn main() -> invar::Result<()> {
    let device = Device::checked();
    let mut x = device.buffer_zeroed::<f32>(4)?;
    b::launch(&a::prepare(&device)?, Grid::threads(4), &mut x)?.wait()?;
    Ok(())
}
