//! Every `; run:` directive of `tests/ir/run/*.inv`, compiled for each processor that this machine can
//! stand in for, with several shapes of chunks, and run in one thread.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU32;

use invar_interp::case::{Bound, bind, mismatches};
use invar_interp::{Arg, Grid, Options};
use invar_ir::text::{case::cases, parse};
use invar_ir::{ElementType, ParamKind, Verified, verify};
use invar_llvm::abi::{Argument, DONE, Launch, SCRATCH_ALIGNMENT};
use invar_llvm::{CompileOptions, KernelInfo, Object, Program, Target, compile};

/// Words around a buffer that nothing may change.
const FENCE: usize = 16;
const FENCE_WORD: u64 = 0x5ca1_ab1e_0ddb_a115;

/// Memory of 8-byte alignment between fences.
struct Fenced {
    words: Vec<u64>,
    bytes: usize,
}

impl Fenced {
    fn new(bytes: &[u8]) -> Fenced {
        let inner = bytes.len().div_ceil(8);
        let mut words = vec![FENCE_WORD; inner + 2 * FENCE];
        for (word, chunk) in words[FENCE..].iter_mut().zip(bytes.chunks(8)) {
            let mut all = FENCE_WORD.to_le_bytes();
            all[..chunk.len()].copy_from_slice(chunk);
            *word = u64::from_le_bytes(all);
        }
        Fenced {
            words,
            bytes: bytes.len(),
        }
    }

    fn data(&mut self) -> *mut u8 {
        self.words[FENCE..].as_mut_ptr().cast()
    }

    fn contents(&self) -> Result<Vec<u8>, String> {
        let all: Vec<u8> = self.words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let (before, rest) = all.split_at(FENCE * 8);
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

/// Runs a compiled kernel on a directive's arguments, which hold the results afterwards.
fn run_native(module: &Verified, program: &Program, bound: &mut Bound) -> Result<(), String> {
    let kernel = module.kernel(&bound.kernel).ok_or("no such kernel")?;
    let mut memory = Vec::new();
    let mut lengths = Vec::new();
    for (param, arg) in kernel.params.iter().zip(&bound.args) {
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
    let group = bound.dispatch.threadgroup;
    let threads = match bound.dispatch.grid {
        Grid::Threads(threads) => threads,
        Grid::Threadgroups(groups) => std::array::from_fn(|d| groups[d] * group[d]),
    };
    let stop = AtomicU32::new(0);
    let launch = Launch {
        arguments: arguments.as_ptr(),
        stop: &stop,
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
    for (memory, arg) in memory.iter().zip(&mut bound.args) {
        let after = memory.contents()?;
        if matches!(arg, Arg::OwnedBuffer(_)) {
            *arg = Arg::OwnedBuffer(after);
        }
    }
    Ok(())
}

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/ir")
        .join(folder);
    let entries =
        std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "inv"))
        .collect();
    files.sort();
    files
}

#[derive(Default)]
struct Counts {
    runs: u32,
    skipped: Vec<String>,
}

/// The ways to compile that each directive is tried with.
fn ways(target: Target, group: [u32; 3]) -> Vec<CompileOptions> {
    [
        (None, None),
        (None, Some([2, 1])),
        (Some(group), None),
        (Some(group), Some([2, 2])),
    ]
    .into_iter()
    .map(|(threadgroup_size, interleave)| CompileOptions {
        target,
        threadgroup_size,
        interleave,
        ..CompileOptions::default()
    })
    .collect()
}

fn run_file(path: &Path, target: Target, counts: &mut Counts) -> Result<(), String> {
    let source = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let name = path
        .file_name()
        .and_then(|n| n.to_str())
        .unwrap_or_default();
    let module = parse(name, &source)
        .and_then(verify)
        .map_err(|e| e.to_string())?;
    for case in &cases(&source).map_err(|e| e.to_string())? {
        let bound = || {
            let mut no_files = |n: &str, _: &ElementType| Err(format!("no file `{n}`"));
            bind(&module, case, &Options::default(), &mut no_files).map_err(|e| e.to_string())
        };
        let mut reference = bound()?;
        if let Some(size) = reference.options.simdgroup_size
            && size != invar_llvm::SIMDGROUP_SIZE
        {
            let skip = format!("{name}: it is about simdgroups of {size}");
            counts.skipped.push(skip);
            continue;
        }
        let special = module
            .clone()
            .specialise(&reference.options.constants)
            .map_err(|e| e.to_string())?;
        invar_interp::run(
            &module,
            &reference.kernel,
            &reference.dispatch,
            &mut reference.args,
            &reference.options,
            &mut [],
        )
        .map_err(|e| e.to_string())?;
        for options in ways(target, reference.dispatch.threadgroup) {
            let object = match compile(&special, &reference.kernel, &options) {
                Ok(object) => object,
                Err(error) => {
                    counts
                        .skipped
                        .push(format!("{name}: {}", error.0[0].message));
                    break;
                }
            };
            let kept = KernelInfo::from_bytes(&object.info.to_bytes());
            assert_eq!(kept.as_ref(), Some(&object.info));
            let object = Object {
                bytes: object.bytes,
                info: kept.expect("it was written"),
            };
            let program = Program::load(&object).map_err(|e| e.to_string())?;
            let mut now = bound()?;
            let how = format!(
                "{}, threadgroup {:?}, chunks {:?}",
                target.name(),
                options.threadgroup_size,
                options.interleave
            );
            run_native(&special, &program, &mut now).map_err(|e| format!("{how}: {e}"))?;
            let mut no_files = |n: &str, _: &ElementType| Err(format!("no file `{n}`"));
            let wrong = mismatches(&module, case, &now.args, &reference.args, &mut no_files);
            if let Some(first) = wrong.first() {
                return Err(format!("{how}: {first}"));
            }
            counts.runs += 1;
        }
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "a test says how much it ran")]
fn every_directive(target: Target) {
    if !target.runs_here() {
        println!(
            "skipped: this machine cannot run code for {}",
            target.name()
        );
        return;
    }
    let only = std::env::var("INVAR_TEST_FILE").ok();
    let mut counts = Counts::default();
    let mut failures = Vec::new();
    for path in &files("run") {
        let wanted = |o: &String| path.to_string_lossy().contains(o.as_str());
        if !only.as_ref().is_none_or(wanted) {
            continue;
        }
        let run = || run_file(path, target, &mut counts);
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run))
            .unwrap_or_else(|_| Err("it panicked".to_string()));
        if let Err(error) = result {
            failures.push(format!("{}: {error}", path.display()));
        }
    }
    println!("{}: {} runs", target.name(), counts.runs);
    println!("skipped {}:", counts.skipped.len());
    counts.skipped.iter().for_each(|s| println!("  {s}"));
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn directives_hold_natively() {
    every_directive(Target::Native);
}

#[test]
fn directives_hold_on_any_x86_64() {
    every_directive(Target::X86V1);
}

#[test]
fn directives_hold_with_avx2() {
    every_directive(Target::X86V3);
}
