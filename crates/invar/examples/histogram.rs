//! How often each byte occurs in a file: this one, or that of the first argument.

use invar::prelude::*;

/// Counts in threadgroup memory first, where threads of other threadgroups do not wait.
#[kernel(threadgroup(256))]
pub fn histogram(bytes: &[u8], bins: &mut [u32]) {
    let t = thread_index_in_threadgroup();
    let own = threadgroup!([u32; 256]);
    let (first, step) = (thread_position_in_grid().x, threads_per_grid().x);
    for i in (first as u64..bytes.len()).step_by(step as u64) {
        atomic_add(&mut own[bytes[i]], 1);
    }
    threadgroup_barrier_of(Spaces::THREADGROUP);
    atomic_add(&mut bins[t], own[t]);
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1);
    let bytes = std::fs::read(file.as_deref().unwrap_or(file!()))
        .unwrap_or_else(|_| include_bytes!("histogram.rs").to_vec());

    let device = Device::default()?;
    let mut bins = device.buffer_zeroed::<u32>(256)?;
    let grid = Grid::threads(1 << 10);
    histogram::launch(&device, grid, &device.buffer_from(&bytes)?, &mut bins)?.wait()?;

    let mut expected = [0u32; 256];
    bytes.iter().for_each(|b| expected[usize::from(*b)] += 1);
    assert_eq!(bins.read()?, expected);
    Ok(())
}
