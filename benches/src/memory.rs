//! What the data-race checker keeps for each location, as the operating system sees it.
//!
//! A process runs one kernel at one size, with the checker or without, and prints the most memory
//! that it ever had. The checker's share is the difference of the two, and its part that grows with
//! the locations the difference of that at two sizes.

use std::process::Command;

use invar_interp::{Arg, DataRaces, Dispatch, Observer, Options, run};
use invar_ir::{text, verify};

use crate::table::{Row, Table};

/// What the promise is, in bytes a location.
const LIMIT: f64 = 32.0;
/// Threads of the small and the large run; each has two locations.
const SIZES: [u32; 2] = [1 << 20, 1 << 22];
/// The first argument of a process that measures itself.
pub const CHILD: &str = "--peak-memory-of";

/// Adds the row.
pub fn rows(table: &mut Table) -> Result<(), String> {
    let mut shares = [0.0; 2];
    for (share, threads) in shares.iter_mut().zip(SIZES) {
        *share = peak(threads, "checked")? - peak(threads, "plain")?;
    }
    let locations = 2.0 * f64::from(SIZES[1] - SIZES[0]);
    table.row(Row {
        name: "checker memory per location, against its limit".to_string(),
        ours: (shares[1] - shares[0]) / locations,
        peer: LIMIT,
        unit: "bytes",
        bound: Some(1.0),
    });
    Ok(())
}

/// The most memory that a run took, in bytes.
fn peak(threads: u32, how: &str) -> Result<f64, String> {
    let own = std::env::current_exe().map_err(|e| e.to_string())?;
    let output = Command::new(own)
        .args([CHILD, &threads.to_string(), how])
        .output()
        .map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().map_err(|_| {
        format!(
            "the run of {threads} threads gave no figure: {}",
            String::from_utf8_lossy(&output.stderr)
        )
    })
}

/// Runs in the process that measures itself; gives its peak in bytes.
pub fn child(args: &[String]) -> Result<u64, String> {
    let (threads, checked) = match args {
        [threads, how] => (threads.parse::<u32>().ok(), how == "checked"),
        _ => (None, false),
    };
    let threads = threads.ok_or_else(|| format!("{CHILD} takes a number and checked or plain"))?;
    let source = include_str!("../kernels/locations.inv");
    let module = text::parse("locations.inv", source)
        .and_then(verify)
        .map_err(|e| e.to_string())?;
    let bytes = 4 * threads as usize;
    let mut buffers = [Arg::zeros(bytes), Arg::zeros(bytes)];
    let mut races = DataRaces::new(u64::MAX);
    let mut observers: Vec<&mut dyn Observer> = Vec::new();
    if checked {
        observers.push(&mut races);
    }
    let dispatch = Dispatch::linear(threads, 256);
    let options = Options::default();
    run(
        &module,
        "locations",
        &dispatch,
        &mut buffers,
        &options,
        &mut observers,
    )
    .map_err(|e| e.to_string())?;
    let found = races.finish();
    if !found.is_empty() {
        return Err(format!("the kernel races: {}", found[0]));
    }
    let status = std::fs::read_to_string("/proc/self/status").map_err(|e| e.to_string())?;
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"))
        .and_then(|kilobytes| kilobytes.trim().parse::<u64>().ok())
        .map(|kilobytes| kilobytes * 1024)
        .ok_or_else(|| "the operating system tells no peak of memory".to_string())
}
