//! How often each byte occurs in a file: this one, or that of the first argument.

use invar::prelude::*;

/// Counts in threadgroup memory first, where threads of other threadgroups do not wait.
#[kernel(threadgroup(256))]
fn histogram(bytes: &[u8], bins: &mut [u32]) {
    let i = thread_position_in_grid().x;
    let t = thread_index_in_threadgroup();
    let local = threadgroup!([u32; 256]);
    if (i as u64) < bytes.len() {
        atomic_add(&mut local[bytes[i]], 1);
    }
    threadgroup_barrier();
    let count = atomic_load(&local[t]);
    if count > 0 {
        atomic_add(&mut bins[t], count);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1);
    let bytes = std::fs::read(file.as_deref().unwrap_or(file!()))
        .unwrap_or_else(|_| include_bytes!("histogram.rs").to_vec());
    let grid = Grid::threadgroups(u32::try_from(bytes.len().div_ceil(256))?);

    let device = Device::default()?;
    let mut bins = device.buffer_zeroed::<u32>(256)?;
    histogram::launch(&device, grid, &device.buffer_from(&bytes)?, &mut bins)?.wait()?;

    let mut expected = [0u32; 256];
    bytes.iter().for_each(|b| expected[usize::from(*b)] += 1);
    assert_eq!(bins.read()?, expected);
    Ok(())
}
