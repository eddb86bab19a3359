use invar::prelude::*;

mod shapes {
    use invar::prelude::*;

    #[derive(Clone, Copy, KernelData)]
    #[repr(C)]
    pub struct Disc {
        pub radius: f32,
        pub height: f32,
    }

    #[device_fn]
    pub fn area(disc: Disc) -> f32 {
        disc.radius * disc.radius * 3.0
    }
}

#[kernel]
fn volume(discs: &[shapes::Disc], out: &mut [f32]) {
    let i = thread_position_in_grid().x;
    out[i] = shapes::area(discs[i]) * discs[i].height;
}

fn main() -> invar::Result<()> {
    let mut out = [0.0];
    let discs = [shapes::Disc { radius: 2.0, height: 0.5 }];
    volume::check(Grid::threads(1), &discs, &mut out)?.into_result()?;
    assert_eq!(out, [6.0]);
    Ok(())
}
