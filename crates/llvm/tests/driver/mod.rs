//! Runs compiled kernels as a runtime would, with memory around buffers that nothing may change.

use std::sync::atomic::AtomicU32;

use invar_interp::{Arg, Dispatch, Grid};
use invar_ir::{ParamKind, Verified};
use invar_llvm::abi::{Argument, DONE, Launch, SCRATCH_ALIGNMENT};
use invar_llvm::{Program, compile_detours};

/// Words around a buffer that nothing may change.
const FENCE: usize = 16;
/// Words of a line.
const LINE: usize = 8;
const FENCE_WORD: u64 = 0x5ca1_ab1e_0ddb_a115;

/// Memory that begins with a line of the processor's, so that it is written past the caches too, between
/// fences.
struct Fenced {
    words: Vec<u64>,
    /// The word that it begins with.
    start: usize,
    bytes: usize,
}

impl Fenced {
    fn new(bytes: &[u8]) -> Fenced {
        let inner = bytes.len().div_ceil(8);
        let mut words = vec![FENCE_WORD; inner + 2 * FENCE + LINE];
        let start = FENCE + words.as_ptr().align_offset(8 * LINE);
        for (word, chunk) in words[start..].iter_mut().zip(bytes.chunks(8)) {
            let mut all = FENCE_WORD.to_le_bytes();
            all[..chunk.len()].copy_from_slice(chunk);
            *word = u64::from_le_bytes(all);
        }
        Fenced {
            words,
            start,
            bytes: bytes.len(),
        }
    }

    fn data(&mut self) -> *mut u8 {
        self.words[self.start..].as_mut_ptr().cast()
    }

    fn contents(&self) -> Result<Vec<u8>, String> {
        let all: Vec<u8> = self.words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let (before, rest) = all.split_at(self.start * 8);
        let (inside, after) = rest.split_at(self.bytes);
        let fence = FENCE_WORD.to_le_bytes();
        let whole = |bytes: &[u8], start: usize| {
            bytes
                .iter()
                .enumerate()
                .all(|(i, b)| *b == fence[(start + i) % 8])
        };
        if !whole(before, 0) || !whole(after, self.bytes % 8) {
            return Err("something outside of a buffer was written".to_string());
        }
        Ok(inside.to_vec())
    }
}

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
    bytes: usize,
) -> Result<(), String> {
    // What scratch memory holds on entry does not matter.
    let mut scratch = vec![0xaau8; bytes + 2 * SCRATCH_ALIGNMENT];
    let start = scratch.as_ptr().align_offset(SCRATCH_ALIGNMENT);
    // SAFETY: the launch fits the kernel, and the scratch memory is as large as asked for.
    let result = unsafe {
        let memory = scratch.as_mut_ptr().add(start);
        program.entry()(launch.0, first, count, memory)
    };
    if result != DONE {
        return Err("it was stopped".to_string());
    }
    if scratch[start + bytes..].iter().any(|b| *b != 0xaa) {
        return Err("something outside of the scratch memory was written".to_string());
    }
    Ok(())
}

/// Runs a compiled kernel on arguments, which hold the results afterwards.
pub fn run_native(
    module: &Verified,
    kernel: &str,
    program: &Program,
    dispatch: &Dispatch,
    args: &mut [Arg<'static>],
) -> Result<(), String> {
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
        memory.push(Fenced::new(&bytes));
        lengths.push(length);
    }
    let arguments: Vec<Argument> = memory
        .iter_mut()
        .zip(&lengths)
        .map(|(memory, length)| Argument {
            data: memory.data(),
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
        detours: program
            .detours(compile_detours)
            .map_err(|e| e.to_string())?,
        threads,
        threadgroup: group,
        threadgroups: std::array::from_fn(|d| threads[d].div_ceil(group[d])),
    };
    // SAFETY: there is an argument for each parameter.
    let bytes = unsafe { program.scratch_bytes(&launch) } as usize;
    let count: u64 = launch.threadgroups.iter().map(|n| u64::from(*n)).product();
    // A few threadgroups run side by side, as some wait for each other; many in two calls.
    let calls: Vec<(u64, u64)> = if count <= 16 {
        (0..count).map(|group| (group, 1)).collect()
    } else {
        vec![(0, count / 2), (count / 2, count - count / 2)]
    };
    let shared = Shared(&launch);
    let results: Vec<Result<(), String>> = std::thread::scope(|scope| {
        let workers: Vec<_> = calls
            .iter()
            .map(|(first, count)| scope.spawn(move || work(program, shared, *first, *count, bytes)))
            .collect();
        let join = |w: std::thread::ScopedJoinHandle<'_, _>| w.join().expect("no panic");
        workers.into_iter().map(join).collect()
    });
    results.into_iter().collect::<Result<(), String>>()?;
    for (memory, arg) in memory.iter().zip(args) {
        let after = memory.contents()?;
        if matches!(arg, Arg::OwnedBuffer(_)) {
            *arg = Arg::OwnedBuffer(after);
        }
    }
    Ok(())
}
