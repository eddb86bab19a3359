use invar::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, KernelData)]
#[repr(C)]
struct Particle {
    position: [f32; 3],
    mass: f32,
}

#[kernel]
fn moved(all: &mut [Particle]) {
    let i = thread_position_in_grid().x;
    all[i].position.z += all[i].mass;
}

fn main() -> invar::Result<()> {
    let mut all = [Particle { position: [1.0, 2.0, 3.0], mass: 0.5 }];
    moved::check(Grid::threads(1), &mut all)?.into_result()?;
    assert_eq!(all[0].position, [1.0, 2.0, 3.5]);
    Ok(())
}
