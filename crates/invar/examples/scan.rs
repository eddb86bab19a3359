//! On which line each of ten million bytes stands: the sums of all numbers before each, over as many
//! threadgroups as it takes.
//!
//! Each threadgroup scans its own part and gives its sum; the sums are scanned by one threadgroup, and then
//! added to the parts. The text is this file, or that of the first argument, over and over.

use invar::prelude::*;

const THREADS: u32 = 256;
const EACH: u32 = 16;

/// The sum of what the threads before this one have, and that of all in the threadgroup.
#[device_fn]
fn sums(own: u32, parts: &mut ThreadgroupArray<u32>) -> (u32, u32) {
    let simdgroup = simdgroup_index_in_threadgroup();
    let before = simd_prefix_exclusive_sum(own);
    if thread_index_in_simdgroup() == threads_per_simdgroup() - 1 {
        parts[simdgroup] = before + own;
    }
    threadgroup_barrier_of(Spaces::THREADGROUP);
    let (mut start, mut total) = (0, 0);
    for s in 0..simdgroups_per_threadgroup() {
        start += if s < simdgroup { parts[s] } else { 0 };
        total += parts[s];
    }
    (start + before, total)
}

/// Exclusive sums in each threadgroup's part of `x`, and the sum of each part.
#[kernel(threadgroup(THREADS))]
pub fn scan(x: &[u32], before: &mut [u32], total: &mut [u32]) {
    let parts = threadgroup!([u32; 256]);
    let first = thread_position_in_grid().x * EACH;
    let end = min(first + EACH, x.len() as u32);
    let mut own = 0;
    for i in first..end {
        own += x[i];
    }
    let (mut sum, all) = sums(own, &mut parts);
    for i in first..end {
        before[i] = sum;
        sum += x[i];
    }
    if thread_index_in_threadgroup() == 0 {
        total[threadgroup_position_in_grid().x] = all;
    }
}

/// Adds to each part the sum of all parts before it.
#[kernel(threadgroup(THREADS))]
pub fn add(before: &mut [u32], start: &[u32]) {
    let i = thread_position_in_grid().x;
    before[i] += start[i / (THREADS * EACH)];
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1);
    let text = match &file {
        Some(file) => std::fs::read(file)?,
        None => include_bytes!("scan.rs").to_vec(),
    };
    let count = 10_000_000;
    let ends = text.iter().map(|byte| u32::from(*byte == b'\n'));
    let ends: Vec<u32> = ends.cycle().take(count).collect();

    let device = Device::default()?;
    let x = device.buffer_from(&ends)?;
    let mut line = device.buffer_zeroed::<u32>(ends.len())?;
    let groups = ends.len().div_ceil((THREADS * EACH) as usize);
    assert!(
        groups <= (THREADS * EACH) as usize,
        "one threadgroup scans the sums"
    );
    let mut totals = device.buffer_zeroed::<u32>(groups)?;
    let mut starts = device.buffer_zeroed::<u32>(groups)?;
    let mut whole = device.buffer_zeroed::<u32>(1)?;
    scan::launch(
        &device,
        Grid::threadgroups(groups as u32),
        &x,
        &mut line,
        &mut totals,
    )?;
    scan::launch(
        &device,
        Grid::threadgroups(1),
        &totals,
        &mut starts,
        &mut whole,
    )?;
    add::launch(
        &device,
        Grid::threads(ends.len() as u32),
        &mut line,
        &starts,
    )?
    .wait()?;

    let mut sum = 0;
    for (end, found) in ends.iter().zip(line.as_slice()?) {
        assert_eq!(sum, *found);
        sum += end;
    }
    assert_eq!(whole.read()?, [sum]);
    Ok(())
}
