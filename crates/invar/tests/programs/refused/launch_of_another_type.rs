use invar::prelude::*;

#[kernel]
fn k(x: &mut [f32]) {
    x[0] = 1.0;
}

fn main() -> invar::Result<()> {
    let device = Device::checked();
    let mut x = device.buffer_zeroed::<u32>(4)?;
    k::launch(&device, Grid::threads(4), &mut x)?.wait()?;
    Ok(())
}
