//! Runs compiled kernels as a runtime would, with all memory between pages that nobody may touch.

use std::ops::Range;
use std::sync::atomic::AtomicU32;

use invar_codegen::passes::print::BUFFER_BYTES;
use invar_conformance::{Guarded, Running, Side};
use invar_interp::{Arg, Dispatch, Grid};
use invar_ir::{ParamKind, Verified};
use invar_llvm::abi::{Argument, DONE, Launch, SCRATCH_ALIGNMENT};
use invar_llvm::{Program, compile_cold_paths};

/// A launch that several workers read.
#[derive(Clone, Copy)]
struct Shared<'a>(&'a Launch);

// SAFETY: the launch is only read, and what it points to outlives the workers; the kernel's own accesses
// are what the test is about.
unsafe impl Send for Shared<'_> {}

fn work(
    program: &Program,
    launch: Shared<'_>,
    first: u64,
    count: u64,
    (bytes, zones, side): (usize, &[Range<u64>], Side),
) -> Result<(), String> {
    // What scratch memory holds on entry does not matter.
    const BEFORE: u8 = 0xaa;
    let scratch = Guarded::new(&vec![BEFORE; bytes], side).map_err(|e| e.to_string())?;
    assert_eq!(scratch.start().align_offset(SCRATCH_ALIGNMENT), 0);
    // SAFETY: the launch fits the kernel, and the scratch memory is as large as asked for.
    let result = unsafe { program.entry()(launch.0, first, count, scratch.start()) };
    if result != DONE {
        return Err("it was stopped".to_string());
    }
    let beside = |e| format!("{e}: beside the scratch memory");
    let after = scratch.contents().map_err(beside)?;
    for zone in zones {
        let held = &after[zone.start as usize..zone.end as usize];
        if let Some(at) = held.iter().position(|byte| *byte != BEFORE) {
            let at = zone.start + at as u64;
            return Err(format!(
                "byte {at} of the scratch memory was written, in the red zone {zone:?}"
            ));
        }
    }
    Ok(())
}

/// Runs a compiled kernel on arguments, which hold the results afterwards. All memory that it gets has pages
/// on that side which nobody may touch, and what it only reads cannot be written; a fault is reported with
/// `name`.
pub fn run_native(
    module: &Verified,
    kernel: &str,
    program: &Program,
    dispatch: &Dispatch,
    args: &mut [Arg<'static>],
    (name, side): (&str, Side),
) -> Result<(), String> {
    let _running = Running::named(&format!("{name}, guarded at its {side:?}"));
    let kernel = module.kernel(kernel).ok_or("no such kernel")?;
    let mut memory = Vec::new();
    let mut lengths = Vec::new();
    for (param, arg) in kernel.params.iter().zip(args.iter()) {
        let (bytes, length) = match (&param.kind, arg) {
            (ParamKind::Buffer { element, .. } | ParamKind::Constant { element }, arg) => {
                let extent = element.extent(&module.structs).ok_or("no extent")?;
                let bytes = arg.bytes().to_vec();
                let length = bytes.len() as u64 / extent.size_bytes;
                (bytes, length)
            }
            (ParamKind::Scalar { .. }, Arg::Scalar(components)) => {
                let bytes = components.iter().flat_map(|c| {
                    let size = c.scalar.size_bytes() as usize;
                    c.bits.to_le_bytes()[..size].to_vec()
                });
                (bytes.collect(), 1)
            }
            (ParamKind::Threadgroup { .. }, Arg::ThreadgroupLength(n)) => (Vec::new(), *n),
            (_, arg) => return Err(format!("{arg:?} does not fit its parameter")),
        };
        let guarded = Guarded::new(&bytes, side).map_err(|e| e.to_string())?;
        let is_written = match &param.kind {
            ParamKind::Buffer { access, .. } => access.can_write(),
            ParamKind::Constant { .. }
            | ParamKind::Scalar { .. }
            | ParamKind::Threadgroup { .. }
            | ParamKind::Texture(_)
            | ParamKind::Sampler => false,
        };
        if !is_written {
            guarded.forbid_writes().map_err(|e| e.to_string())?;
        }
        memory.push(guarded);
        lengths.push(length);
    }
    if kernel.prints() {
        // The last parameter is where the compiler puts lines.
        let lines = Guarded::new(&vec![0; BUFFER_BYTES], side).map_err(|e| e.to_string())?;
        memory.push(lines);
        lengths.push(BUFFER_BYTES as u64 / 4);
    }
    run_in(program, dispatch, (&memory, &lengths), side)?;
    for (memory, arg) in memory.iter().zip(args) {
        let after = memory.contents()?;
        if matches!(arg, Arg::OwnedBuffer(_)) {
            *arg = Arg::OwnedBuffer(after);
        }
    }
    Ok(())
}

/// Runs a compiled kernel in this memory, one for each parameter, and how many elements each has.
pub fn run_in(
    program: &Program,
    dispatch: &Dispatch,
    (memory, lengths): (&[Guarded], &[u64]),
    side: Side,
) -> Result<(), String> {
    let arguments: Vec<Argument> = memory
        .iter()
        .zip(lengths)
        .map(|(memory, length)| Argument {
            data: memory.start(),
            length: *length,
        })
        .collect();
    let group = dispatch.threadgroup;
    let threads = match dispatch.grid {
        Grid::Threads(threads) => threads,
        Grid::Threadgroups(groups) => std::array::from_fn(|d| groups[d] * group[d]),
    };
    let stop = AtomicU32::new(0);
    let launch = Launch {
        arguments: arguments.as_ptr(),
        stop: &stop,
        least_streamed_bytes: 0,
        cold_paths: program
            .cold_paths(compile_cold_paths)
            .map_err(|e| e.to_string())?,
        threads,
        threadgroup: group,
        threadgroups: std::array::from_fn(|d| threads[d].div_ceil(group[d])),
    };
    // SAFETY: there is an argument for each parameter.
    let (bytes, zones) = unsafe {
        (
            program.scratch_bytes(&launch) as usize,
            program.red_zones(&launch),
        )
    };
    let count: u64 = launch.threadgroups.iter().map(|n| u64::from(*n)).product();
    // A few threadgroups run side by side, as some wait for each other; many in two calls.
    let calls: Vec<(u64, u64)> = if count <= 16 {
        (0..count).map(|group| (group, 1)).collect()
    } else {
        vec![(0, count / 2), (count / 2, count - count / 2)]
    };
    let shared = Shared(&launch);
    let scratch = (bytes, &zones[..], side);
    let results: Vec<Result<(), String>> = std::thread::scope(|scope| {
        let workers: Vec<_> = calls
            .iter()
            .map(|(first, count)| {
                scope.spawn(move || work(program, shared, *first, *count, scratch))
            })
            .collect();
        let join = |w: std::thread::ScopedJoinHandle<'_, _>| w.join().expect("no panic");
        workers.into_iter().map(join).collect()
    });
    results.into_iter().collect()
}
