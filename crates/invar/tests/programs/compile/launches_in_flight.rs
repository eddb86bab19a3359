use invar::prelude::*;

#[kernel]
fn add(x: &mut [u32], n: u32) {
    let i = thread_position_in_grid().x;
    x[i] += n;
}

fn main() -> invar::Result<()> {
    let device = Device::checked();
    let (mut x, mut y) = (device.buffer_zeroed::<u32>(4)?, device.buffer_zeroed::<u32>(4)?);
    let prepared = add::prepare(&device)?;
    let first = add::launch(&prepared, Grid::threads(4), &mut x, 1)?;
    let second = add::launch(&device, Grid::threads(4), &mut y, 2)?;
    let third = add::launch(&device.queue(), Grid::threads(4), &mut x, 3)?;
    for launch in [first, second, third] {
        launch.wait()?;
    }
    assert_eq!((x.read()?, y.read()?), (vec![4; 4], vec![2; 4]));
    Ok(())
}
