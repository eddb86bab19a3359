//! The CPU device against its own limits: what checks cost, compiling, the disk cache, small dispatches,
//! and memory beyond the buffers. The peer of such a row is the limit.

use std::path::Path;
use std::process::Command;

use invar::{CompileOptions, Device};

use crate::cases::{Case, Input, Ready, cases, module};
use crate::count::{allocations, live_bytes};
use crate::cpu::turns;
use crate::table::{Row, Table, median};

/// The first arguments of processes that measure one kernel.
pub const COMPILE: &str = "--compile-time-of";
pub const COLD_PATHS: &str = "--cold-paths-time-of";
pub const MEMORY: &str = "--memory-of";
/// Processes for each kernel whose compilation is measured.
const ROUNDS: usize = 5;

/// Adds the rows.
pub fn rows(table: &mut Table) -> Result<(), String> {
    checks(table)?;
    compilation(table)?;
    small_dispatch(table)?;
    memory(table)
}

/// Adds a row against a limit.
fn limit(table: &mut Table, name: String, ours: f64, peer: f64, unit: &'static str) {
    table.row(Row {
        name,
        ours,
        peer,
        unit,
        bound: Some(1.0),
    });
}

// ---- safety ----

/// Each kernel beside itself without checks, and the geometric mean, which is what is promised.
fn checks(table: &mut Table) -> Result<(), String> {
    let checked = Device::named("cpu").map_err(|e| e.to_string())?;
    // SAFETY: the same kernels run with the same arguments on the checked device first, and what they
    // leave there is compared with the peers' results: no access is out of bounds.
    let unchecked = unsafe { Device::cpu_without_checks() };
    let mut logarithms = (0.0, 0.0);
    let cases = cases();
    for case in &cases {
        let (with, without) = (Ready::new(&checked, case)?, Ready::new(&unchecked, case)?);
        with.run()?;
        without.run()?;
        if with.sums(case)? != without.sums(case)? {
            table.failure(format!(
                "{}: without checks it leaves another result",
                case.name
            ));
            continue;
        }
        let (ours, peer) = turns(&mut || with.run(), &mut || without.run())?;
        logarithms.0 += ours.ln();
        logarithms.1 += peer.ln();
        table.row(Row {
            name: format!("checks: {}, without", case.name),
            ours,
            peer,
            unit: "ms",
            bound: None,
        });
    }
    let count = cases.len() as f64;
    table.row(Row {
        name: "checks: geometric mean of all, without".to_string(),
        ours: f64::exp(logarithms.0 / count),
        peer: f64::exp(logarithms.1 / count),
        unit: "ms",
        bound: Some(1.0 / 1.05),
    });
    Ok(())
}

// ---- compilation ----

/// The slowest first compilation, and the slowest from the disk cache, each in a process of its own and
/// by its processor time.
fn compilation(table: &mut Table) -> Result<(), String> {
    let folder = std::env::temp_dir().join(format!("invar-bench-{}", std::process::id()));
    let mut slowest = [(0.0, ""), (0.0, "")];
    let mut all = Vec::new();
    let mut apart = Vec::new();
    let mut cases = cases();
    cases.retain(|c| c.name != "naive matmul 1040");
    let mut measured = vec![(Vec::new(), Vec::new()); cases.len()];
    // Each round goes through all kernels, so that a slow moment of the machine hits no kernel in all of its
    // rounds.
    for _ in 0..ROUNDS {
        for (case, times) in cases.iter().zip(&mut measured) {
            times.0.push(child(COMPILE, case.name, &folder)?);
            times.1.push(child(COMPILE, case.name, &folder)?);
            std::fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        }
    }
    for (case, times) in cases.iter().zip(measured) {
        let (first, cached) = (median(times.0), median(times.1));
        let cold_paths = child(COLD_PATHS, case.name, &folder)?;
        if cold_paths > 0.0 {
            apart.push(format!("{} {cold_paths:.1}", case.kernel));
        }
        all.push(format!("{} {first:.1} and {cached:.2}", case.kernel));
        for (most, time) in slowest.iter_mut().zip([first, cached]) {
            if time > most.0 {
                *most = (time, case.kernel);
            }
        }
    }
    let [(first, of_first), (cached, of_cached)] = slowest;
    let name = format!("slowest first compile (@{of_first}), limit");
    limit(table, name, first, 50.0, "ms");
    let name = format!("slowest from the disk cache (@{of_cached}), limit");
    limit(table, name, cached, 2.0, "ms");
    table.note(format!(
        "first compile and from the disk cache, ms of processor time in a new process: {}",
        all.join(", ")
    ));
    table.note(format!(
        "what chunks of threads that are not full run, compiled when the first one comes, ms: {}",
        apart.join(", ")
    ));
    Ok(())
}

/// What a process of this program that measures one case says.
fn child(what: &str, case: &str, cache: &Path) -> Result<f64, String> {
    let own = std::env::current_exe().map_err(|e| e.to_string())?;
    let output = Command::new(own)
        .args([what, case])
        .env("INVAR_CACHE_DIR", cache)
        .output()
        .map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().map_err(|_| {
        let error = String::from_utf8_lossy(&output.stderr);
        format!("{what} {case} gave no figure: {error}")
    })
}

fn named(name: Option<&String>) -> Result<Case, String> {
    let found = cases()
        .into_iter()
        .find(|c| Some(&c.name.to_string()) == name);
    found.ok_or_else(|| format!("no case {name:?}"))
}

/// How long the threads of this process have had a processor, in milliseconds: on a machine that others use too,
/// the time of something that one of them does at a time.
fn processor_time() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    now.tv_sec as f64 * 1e3 + now.tv_nsec as f64 / 1e6
}

/// Compiles one kernel, as the first thing that the process does with the device: milliseconds.
pub fn compile_child(args: &[String]) -> Result<f64, String> {
    let case = named(args.first())?;
    let module = module(case.file)?;
    let options = CompileOptions {
        threadgroup_size: Some(case.threadgroup),
        ..CompileOptions::default()
    };
    let start = processor_time();
    let device = Device::named("cpu").map_err(|e| e.to_string())?;
    let program = device.compile_with(&module, case.kernel, &options);
    let time = processor_time() - start;
    program.map(|_| time).map_err(|e| e.to_string())
}

/// Compiles one kernel, and gives how long what is compiled apart then takes: milliseconds.
pub fn cold_paths_child(args: &[String]) -> Result<f64, String> {
    let case = named(args.first())?;
    let module = module(case.file)?;
    let options = invar_llvm::CompileOptions {
        threadgroup_size: Some(case.threadgroup),
        ..Default::default()
    };
    let object = invar_llvm::compile(&module, case.kernel, &options).map_err(|e| e.to_string())?;
    let Some(cold_paths) = &object.cold_paths else {
        return Ok(0.0);
    };
    let start = processor_time();
    invar_llvm::compile_cold_paths(cold_paths, object.info.target)?;
    Ok(processor_time() - start)
}

// ---- dispatches ----

/// One threadgroup of 32 threads, from Rust.
fn small_dispatch(table: &mut Table) -> Result<(), String> {
    const FIRST: usize = 2_000;
    const MORE: usize = 20_000;
    let device = Device::named("cpu").map_err(|e| e.to_string())?;
    let case = Case {
        name: "one small threadgroup",
        file: "kernels/cpu.inv",
        kernel: "saxpy",
        inputs: vec![
            Input::Number(0.5),
            Input::Numbers(1, 32, 1.0),
            Input::Result(32),
        ],
        grid: [32, 1, 1],
        threadgroup: [32, 1, 1],
        size: 32,
        tolerance: 0.0,
    };
    let ready = Ready::new(&device, &case)?;
    for _ in 0..FIRST {
        ready.run()?;
    }
    let mut times = Vec::with_capacity(MORE);
    let before = allocations();
    for _ in 0..MORE {
        times.push(ready.run()? * 1e6);
    }
    let allocated = allocations() - before;
    let name = "dispatch of one small threadgroup, limit".to_string();
    limit(table, name, median(times), 5.0, "µs");
    let name = format!("allocations in {MORE} dispatches, limit");
    limit(table, name, allocated as f64, 0.0, "");
    Ok(())
}

// ---- memory ----

/// Cases with threadgroup memory, the bytes of it, and the bytes of the values that differ between
/// threads and are used after a barrier that they were made before.
const KEPT: [(&str, u64, u64); 4] = [
    // Two positions, four sums of them, and the sum so far.
    ("tiled matmul 1024", 2048, 28),
    // The thread's number.
    ("threadgroup reduction 16M", 1024, 4),
    // The thread's and the simdgroup's number, and whether it is the first lane.
    ("softmax 4096 rows of 4096", 64, 9),
    // Two positions.
    ("transpose 4096", 4224, 8),
];

/// What a dispatch has beyond its buffers.
fn memory(table: &mut Table) -> Result<(), String> {
    let cases = cases();
    let device = Device::named("cpu").map_err(|e| e.to_string())?;
    // The thread that waits for a dispatch takes part.
    let workers = 1 + u64::from(device.capabilities().host_threads);
    for (name, threadgroup_bytes, thread_bytes) in KEPT {
        let case = cases.iter().find(|c| c.name == name);
        let threads = case.map_or(0, |c| c.threadgroup.iter().map(|n| u64::from(*n)).product());
        let bytes = threadgroup_bytes + thread_bytes * threads;
        let ours = child(MEMORY, name, Path::new(""))?;
        let row = format!("memory beyond buffers: {name}, limit");
        limit(table, row, ours, (workers * bytes) as f64, "bytes");
    }
    Ok(())
}

/// Runs a case after a kernel that needs no memory: the bytes that stay allocated.
pub fn memory_child(args: &[String]) -> Result<f64, String> {
    let device = Device::named("cpu").map_err(|e| e.to_string())?;
    let plain = named(Some(&"saxpy 16M".to_string()))?;
    let plain = Ready::new(&device, &plain)?;
    let ready = Ready::new(&device, &named(args.first())?)?;
    // Several times, so that every worker has taken part.
    for _ in 0..20 {
        plain.run()?;
    }
    let before = live_bytes();
    for _ in 0..20 {
        ready.run()?;
    }
    Ok(live_bytes().saturating_sub(before) as f64)
}
