use invar::prelude::*;

#[derive(KernelData)]
#[repr(C)]
struct Body {
    position: [f32; 3],
    mass: f32,
}

#[kernel]
fn fall(bodies: &mut [Body]) {
    let i = thread_position_in_grid().x;
    let mut one = bodies[i];
    one.position.y -= one.mass;
    bodies[i] = one;
}

fn main() -> invar::Result<()> {
    let device = Device::default()?;
    let body = Body { position: [0.0; 3], mass: 1.0 };
    let mut bodies = device.buffer_from(&[body])?;
    fall::launch(&device, Grid::threads(1), &mut bodies)?.wait()?;
    Ok(())
}
