use invar::prelude::*;

const LIMIT: u32 = 3;
mod inner {
    pub const STEP: u32 = 2;
}

#[kernel]
fn count(x: &mut [u32]) {
    const LOCAL: u32 = 100;
    let i = thread_position_in_grid().x;
    x[i] = if i < LIMIT { i * inner::STEP } else { u32::MAX - LOCAL };
}

fn main() -> invar::Result<()> {
    let mut x = [0; 4];
    count::check(Grid::threads(4), &mut x)?.into_result()?;
    assert_eq!(x, [0, 2, 4, u32::MAX - 100]);
    Ok(())
}
