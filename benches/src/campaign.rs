//! A campaign: random kernels by the ten thousands on devices, as MSL that clang compiled, and on the
//! reference machine, byte by byte; what differs is made small and kept as an `.inv` file.
//!
//! Kernels run in processes of their own, one for each worker, which take chunks of seeds by lines and
//! answer by lines: so a kernel that crashes or hangs its process is a finding like any other, and the
//! campaign goes on. Where a device uses the host's memory, buffers lie between guard pages, so that an access
//! to one ends the process. Compiled kernels are not kept on disk. The MSL of a chunk goes through one call of
//! clang; every fourth chunk is optimised, which shows what undefined behaviour would become.
//!
//! Invariants: a seed gives the same case on every run with the same targets; no file is ever written over.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "progress on standard output is what this program is for"
)]

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use invar::{Arg, ByteBuffer, CompileOptions, Device, Error, Program, Queue};
use invar_conformance::metal::{self, Batch};
use invar_conformance::{
    Case, Failure, Floats, Options, Prepared, Trial, generate, judge_mutant, mutant, reduce,
};
#[cfg(unix)]
use invar_conformance::{Side, owned, run_guarded};
use invar_interp::{Arg as Value, Dispatch};
use invar_ir::text::{self, cases};
use invar_ir::{Diagnostic, Diagnostics, FloatMode, Order, Rule, Scalar, Span, Verified, verify};

const USAGE: &str = "usage: [--seeds FIRST..END] [--device cpu|checked|gpu|msl|all] [--jobs N] \
                     [--into FOLDER] [--mutants FOLDER]; `msl` is MSL compiled by clang for this \
                     processor, `all` is `cpu`, `gpu` and `msl`; with `--mutants` the kernels are those of \
                     the `.inv` files of a folder with something changed";

/// The first argument of a process that runs kernels.
const WORKER: &str = "--worker";
/// Bytes around each buffer that nothing may change, and what they are.
const FENCE: usize = 256;
const FENCE_BYTE: u8 = 0xa5;
/// How long one dispatch may run, and how long a kernel may take from its seed to the comparison or, once
/// something was found, to its reduction.
const DISPATCH_LIMIT: Duration = Duration::from_secs(30);
const ANSWER_LIMIT: Duration = Duration::from_secs(600);
const REDUCTION_LIMIT: Duration = Duration::from_secs(3600);
/// Kernels of one process: whatever it loses in memory goes with it.
const PROCESS_KERNELS: u32 = 500;
/// Kernels of one call of clang; every few calls one optimises.
const MSL_KERNELS: u64 = 40;
const OPTIMISED_CHUNKS: u64 = 4;
/// How often progress is printed.
const REPORT: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match args.split_first() {
        Some((first, [device, folder, scratch, mutants @ ..])) if first == WORKER => {
            let mutants = mutants.first().map(Path::new);
            work(device, Path::new(folder), Path::new(scratch), mutants).map(|()| true)
        }
        _ => campaign(&args),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(sentence) => {
            eprintln!("conformance: {sentence}");
            ExitCode::from(2)
        }
    }
}

// ---- what a seed is ----

/// What kernels run on.
struct Targets {
    devices: Vec<(Device, Queue)>,
    /// Whether they run as MSL, too.
    msl: bool,
}

impl Targets {
    fn named(name: &str) -> Result<Targets, String> {
        let (names, msl): (&[&str], bool) = match name {
            "all" => (&["cpu", "gpu"], true),
            "msl" => (&[], true),
            one => (&[one], false),
        };
        if let Some(why) = metal::missing().filter(|_| msl) {
            return Err(format!("no MSL here: {why}"));
        }
        let device = |name: &&str| {
            let device = Device::named(name).map_err(|e| e.to_string())?;
            // The checked device has its own limits.
            let limit = (device.capabilities().name != "checked").then_some(DISPATCH_LIMIT);
            let queue = device.queue().quiet().with_time_limit(limit);
            Ok((device, queue))
        };
        let devices = names.iter().map(device).collect::<Result<_, String>>()?;
        Ok(Targets { devices, msl })
    }

    /// How many seeds a worker takes at once.
    fn chunk(&self) -> u64 {
        if self.msl { MSL_KERNELS } else { 1 }
    }

    /// What all of them can do, as far as a generated kernel may show it.
    fn able(&self) -> Able {
        let devices = self.devices.iter().map(|(device, _)| Able::of(device));
        let msl = self.msl.then(Able::of_metal);
        let able = devices.chain(msl).reduce(Able::and);
        able.unwrap_or_else(|| unreachable!("there is a target"))
    }

    fn describe(&self) -> String {
        let name = |device: &Device| {
            let able = device.capabilities();
            format!("`{}` ({})", able.name, able.description)
        };
        let names = self.devices.iter().map(|(device, _)| name(device));
        let msl = self
            .msl
            .then(|| "`msl` (clang's code for this processor)".to_string());
        names.chain(msl).collect::<Vec<_>>().join(", ")
    }
}

/// What targets can do.
struct Able {
    scalars: Vec<Scalar>,
    ieee: bool,
    /// The preferred one first.
    simdgroup_sizes: Vec<u32>,
    matrices_and_async_copies: bool,
    wide_atomics: bool,
    memory_orders: bool,
    threadgroup_memory_bytes: u64,
    /// Whether a long kernel takes seconds to compile.
    compiles_slowly: bool,
}

impl Able {
    fn of(device: &Device) -> Able {
        let able = device.capabilities();
        let floats = [Scalar::F16, Scalar::BF16, Scalar::F32, Scalar::F64];
        let mut simdgroup_sizes = vec![able.simdgroup_size];
        simdgroup_sizes.extend(&able.simdgroup_sizes);
        Able {
            ieee: floats
                .iter()
                .all(|s| !able.types.contains(s) || able.ieee_float.contains(s)),
            scalars: able.types.clone(),
            simdgroup_sizes,
            matrices_and_async_copies: able.async_copy && !able.simdgroup_matrices.is_empty(),
            wide_atomics: able.atomics.contains(&Scalar::U64),
            memory_orders: able.memory_orders.contains(&Order::Acquire),
            threadgroup_memory_bytes: able.threadgroup_memory_bytes,
            compiles_slowly: !["cpu", "checked"].contains(&&*able.name),
        }
    }

    fn of_metal() -> Able {
        let mut scalars = Scalar::ALL.to_vec();
        scalars.retain(|s| *s != Scalar::F64);
        Able {
            scalars,
            ieee: true,
            simdgroup_sizes: vec![metal::SIMDGROUP_SIZE],
            matrices_and_async_copies: true,
            wide_atomics: false,
            memory_orders: true,
            threadgroup_memory_bytes: metal::THREADGROUP_MEMORY_BYTES,
            compiles_slowly: false,
        }
    }

    fn and(mut self, other: Able) -> Able {
        self.scalars.retain(|s| other.scalars.contains(s));
        let sizes = &other.simdgroup_sizes;
        self.simdgroup_sizes.retain(|n| sizes.contains(n));
        Able {
            ieee: self.ieee && other.ieee,
            matrices_and_async_copies: self.matrices_and_async_copies
                && other.matrices_and_async_copies,
            wide_atomics: self.wide_atomics && other.wide_atomics,
            memory_orders: self.memory_orders && other.memory_orders,
            threadgroup_memory_bytes: (self.threadgroup_memory_bytes)
                .min(other.threadgroup_memory_bytes),
            compiles_slowly: self.compiles_slowly || other.compiles_slowly,
            ..self
        }
    }

    /// What the kernels of a seed may use: mostly short ones, which cost least to compile, and some without what
    /// acts on others' memory.
    fn options(&self, seed: u64) -> Options {
        let plain = seed / 16 % 16 == 5;
        Options {
            instructions: match seed % 16 {
                0 if self.compiles_slowly => 30,
                0 => 60,
                1..=4 if self.compiles_slowly => 20,
                1..=4 => 30,
                _ => 14,
            },
            floats: if self.ieee {
                Floats::Ieee
            } else {
                Floats::Exact
            },
            scalars: self.scalars.clone(),
            simdgroup_size: self.simdgroup_sizes.first().copied(),
            matrices_and_async_copies: !plain && self.matrices_and_async_copies,
            atomics: !plain,
            copies: !plain,
            wide_atomics: !plain && self.wide_atomics,
            memory_orders: self.memory_orders,
            // What lanes exchange and matrices take comes on top.
            threadgroup_bytes: self.threadgroup_memory_bytes / 16 * 15,
            ..Options::default()
        }
    }
}

/// Where kernels come from.
enum Kernels {
    Random(Able),
    /// Of these texts, with something changed.
    Mutants(Vec<String>),
}

impl Kernels {
    fn new(targets: &Targets, mutants: Option<&Path>) -> Result<Kernels, String> {
        let Some(folder) = mutants else {
            return Ok(Kernels::Random(targets.able()));
        };
        let said = |error: std::io::Error| format!("{}: {error}", folder.display());
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(said)? {
            files.push(entry.map_err(said)?.path());
        }
        files.retain(|file| file.extension().is_some_and(|e| e == "inv"));
        files.sort();
        let texts = files.iter().map(std::fs::read_to_string);
        let texts: Vec<String> = texts.collect::<Result<_, _>>().map_err(said)?;
        if texts.is_empty() {
            return Err(format!("{}: there is no `.inv` file", folder.display()));
        }
        for (file, text) in files.iter().zip(&texts) {
            let file = file.display();
            let module = text::parse(&file.to_string(), text).and_then(verify);
            module.map_err(|e| format!("{file} has no kernel to change: {e}"))?;
            if cases(text).map_err(|e| e.to_string())?.is_empty() {
                return Err(format!("{file} has no `; run:` line"));
            }
        }
        Ok(Kernels::Mutants(texts))
    }

    fn are_mutants(&self) -> bool {
        matches!(self, Kernels::Mutants(_))
    }

    /// The kernel of a seed, if it has one.
    fn case(&self, seed: u64) -> Option<Case> {
        match self {
            Kernels::Random(able) => Some(generate(seed, &able.options(seed))),
            Kernels::Mutants(texts) => mutant(seed, texts),
        }
    }

    fn judge(&self, case: &Case, trial: Trial) -> Trial {
        match self {
            Kernels::Random(_) => trial,
            Kernels::Mutants(_) => judge_mutant(case, trial),
        }
    }
}

// ---- a worker ----

/// Runs the kernels of the chunks of seeds that come by lines. `begin SEED` says what is at hand, `found` that
/// something is being reduced, `ended TARGET ...` how a kernel ended, and `done` that a chunk is through.
fn work(target: &str, folder: &Path, own: &Path, mutants: Option<&Path>) -> Result<(), String> {
    let targets = Targets::named(target)?;
    let kernels = Kernels::new(&targets, mutants)?;
    for line in std::io::stdin().lines() {
        let line = line.map_err(|e| e.to_string())?;
        let seeds = range(&line)?;
        let mut cases = Vec::new();
        for seed in seeds.clone() {
            answer(&format!("begin {seed}"))?;
            match kernels.case(seed) {
                Some(case) => cases.push((seed, case)),
                None => answer("ended mutants refused the change leaves no valid kernel")?,
            }
        }
        let mut prepared = Vec::new();
        for (seed, case) in &cases {
            answer(&format!("begin {seed}"))?;
            match Prepared::new(case) {
                Ok(ready) => prepared.push((*seed, case, ready)),
                // A mutant may be endless, or meet no barrier.
                Err(errors) if kernels.are_mutants() => {
                    let rule = errors.0.first().map_or("", |error| error.rule.name());
                    answer(&format!(
                        "ended mutants refused by the reference machine: {rule}"
                    ))?;
                }
                Err(errors) => {
                    let trial = Trial::Invalid(errors.to_string());
                    conclude("case", folder, *seed, case, trial, &mut |_, _, _, _| Ok(()))?;
                }
            }
        }
        for (device, queue) in &targets.devices {
            let mut target = |module: &Verified,
                              kernel: &str,
                              dispatch: &Dispatch,
                              args: &mut [Value<'static>]| {
                on_device(device, queue, module, kernel, dispatch, args)
                    .map_err(Error::into_diagnostics)
            };
            let name = device.capabilities().name.clone();
            for (seed, case, ready) in &prepared {
                answer(&format!("begin {seed}"))?;
                let trial = kernels.judge(case, ready.compare(&mut target));
                conclude(&name, folder, *seed, case, trial, &mut target)?;
            }
        }
        if targets.msl {
            let optimise = (seeds.start / MSL_KERNELS).is_multiple_of(OPTIMISED_CHUNKS);
            as_msl(folder, own, &kernels, &prepared, optimise)?;
        }
        answer("done")?;
    }
    Ok(())
}

/// Says how a case ended on a target; reduces and keeps it if it differs.
fn conclude(
    target_name: &str,
    folder: &Path,
    seed: u64,
    case: &Case,
    trial: Trial,
    target: &mut invar_conformance::Target<'_>,
) -> Result<(), String> {
    let ended = match &trial {
        Trial::Same => match case.kernel().float_mode {
            FloatMode::Strict => "same strict".to_string(),
            FloatMode::Contract => "same contract".to_string(),
            FloatMode::Fast => "same fast".to_string(),
        },
        Trial::Refused(why) => format!("refused {}", why.replace('\n', " ")),
        Trial::Differs(_) | Trial::Failed(_) | Trial::Invalid(_) => {
            answer("found")?;
            let (reduced, reduced_trial) = if trial.is_failure() {
                reduce(case, &trial, target)
            } else {
                (case.clone(), trial.clone())
            };
            let failure = Failure {
                seed,
                trial,
                reduced_trial,
                reduced,
            };
            let file = keep(folder, seed, &format!("; on {target_name}\n{failure}"))?;
            format!("kept {}", file.display())
        }
    };
    answer(&format!("ended {target_name} {ended}"))
}

/// Runs cases as MSL, all in one call of clang. If that fails as a whole, each half is tried, down to the case
/// that is to blame.
fn as_msl(
    folder: &Path,
    own: &Path,
    kernels: &Kernels,
    prepared: &[(u64, &Case, Prepared<'_>)],
    optimise: bool,
) -> Result<(), String> {
    let Some((first, ..)) = prepared.first() else {
        return Ok(());
    };
    answer(&format!("begin {first}"))?;
    let order = |seed: u64| (seed / 3 % 4) as u32;
    let mut batch = Batch::default();
    let mut added = Vec::new();
    for (seed, case, ready) in prepared {
        let args = case.args().map_err(|e| e.to_string())?;
        let name = &case.kernel().name;
        let entry = batch.add_dispatch(ready.module(), name, &case.dispatch, &args, order(*seed));
        added.push(entry);
    }
    let outcomes = match batch.run(own, optimise) {
        Ok(outcomes) => outcomes,
        Err(_) if prepared.len() > 1 => {
            let (before, after) = prepared.split_at(prepared.len() / 2);
            as_msl(folder, own, kernels, before, optimise)?;
            return as_msl(folder, own, kernels, after, optimise);
        }
        Err(why) => vec![Err(why)],
    };
    let mut outcomes = outcomes.into_iter();
    for ((seed, case, ready), entry) in prepared.iter().zip(added) {
        answer(&format!("begin {seed}"))?;
        let trial = match entry.map(|()| outcomes.next()) {
            Err(errors) => ready.judge(Err(errors)),
            Ok(Some(Ok(after))) => ready.judge(Ok(&after)),
            Ok(Some(Err(why))) => Trial::Failed(why),
            Ok(None) => Trial::Failed("no outcome".to_string()),
        };
        let trial = kernels.judge(case, trial);
        let mut target =
            |module: &Verified, kernel: &str, dispatch: &Dispatch, args: &mut [Value<'static>]| {
                metal::run_one(own, module, kernel, dispatch, args, order(*seed), optimise)
            };
        conclude("msl", folder, *seed, case, trial, &mut target)?;
    }
    Ok(())
}

/// Seeds as they are written: `0..1000`.
fn range(text: &str) -> Result<Range<u64>, String> {
    let wrong = || format!("`{text}` is not a range of seeds, such as 0..1000");
    let (first, end) = text.split_once("..").ok_or_else(wrong)?;
    let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
    let range = number(first)?..number(end)?;
    if range.is_empty() {
        return Err(wrong());
    }
    Ok(range)
}

/// Says a line to the process that gave the seed.
fn answer(line: &str) -> Result<(), String> {
    let mut out = std::io::stdout();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .map_err(|e| format!("the process that gave the seed has ended: {e}"))
}

/// Runs a kernel on a device, with memory around each buffer that nothing may touch, or at least change.
fn on_device(
    device: &Device,
    queue: &Queue,
    module: &Verified,
    kernel: &str,
    dispatch: &Dispatch,
    args: &mut [Value<'static>],
) -> Result<(), Error> {
    let options = CompileOptions {
        threadgroup_size: Some(dispatch.threadgroup),
        ..CompileOptions::default()
    };
    let program = device.compile_with(module, kernel, &options)?;
    #[cfg(unix)]
    if ["cpu", "checked"].contains(&&*device.capabilities().name) {
        return between_pages(queue, &program, dispatch, args);
    }
    between_fences(device, queue, &program, dispatch, args)
}

fn wrong(message: impl Into<String>) -> Error {
    let error = Diagnostic::error(Rule::Expectation, Span::NONE, message);
    Diagnostics(vec![error]).into()
}

/// Runs a kernel of a device that uses the host's memory, twice: with guard pages before the
/// buffers, and behind them. An access to one ends the process.
#[cfg(unix)]
fn between_pages(
    queue: &Queue,
    program: &Program,
    dispatch: &Dispatch,
    args: &mut [Value<'static>],
) -> Result<(), Error> {
    let run = |args: &mut [Value<'static>], side| {
        run_guarded(program.kernel(), args, side, wrong, |args| {
            queue.run_host(program, *dispatch, args)?.wait()
        })
    };
    let mut once = owned(args);
    run(&mut once, Side::Start)?;
    run(args, Side::End)?;
    let same = |(a, b): (&Value<'_>, &Value<'_>)| a.bytes() == b.bytes();
    match once.iter().zip(&*args).all(same) {
        true => Ok(()),
        false => Err(wrong("what it leaves depends on where its buffers lie")),
    }
}

/// Runs a kernel with bytes around each buffer that nothing may change.
fn between_fences(
    device: &Device,
    queue: &Queue,
    program: &Program,
    dispatch: &Dispatch,
    args: &mut [Value<'static>],
) -> Result<(), Error> {
    let fenced = |arg: &Value<'_>| -> Result<Option<ByteBuffer>, Error> {
        if matches!(arg, Value::Scalar(_) | Value::ThreadgroupLength(_)) {
            return Ok(None);
        }
        let mut bytes = vec![FENCE_BYTE; FENCE];
        bytes.extend_from_slice(arg.bytes());
        bytes.resize(bytes.len() + FENCE, FENCE_BYTE);
        let buffer = ByteBuffer::zeroed(device, bytes.len())?;
        buffer.write_bytes(0, &bytes)?;
        Ok(Some(buffer))
    };
    let buffers: Vec<Option<ByteBuffer>> = args.iter().map(fenced).collect::<Result<_, _>>()?;
    let inner = |buffer: &ByteBuffer| FENCE..buffer.size_bytes() - FENCE;
    let given: Vec<Arg<'_>> = args
        .iter()
        .zip(&buffers)
        .map(|(arg, buffer)| match (arg, buffer) {
            (Value::Scalar(components), _) => Arg::components(components),
            (Value::ThreadgroupLength(length), _) => Ok(Arg::ThreadgroupLength(*length)),
            (_, Some(buffer)) => Ok(Arg::Buffer(buffer.slice(inner(buffer)))),
            (_, None) => unreachable!("every buffer has its memory"),
        })
        .collect::<Result<_, _>>()?;
    queue.run(program, *dispatch, &given)?;
    for (arg, buffer) in args.iter_mut().zip(&buffers) {
        let Some(buffer) = buffer else { continue };
        let mut bytes = vec![0; buffer.size_bytes()];
        buffer.read_bytes(0, &mut bytes)?;
        let range = inner(buffer);
        if bytes[..range.start]
            .iter()
            .chain(&bytes[range.end..])
            .any(|b| *b != FENCE_BYTE)
        {
            return Err(wrong("something outside of a buffer was written"));
        }
        if let Value::OwnedBuffer(own) = arg {
            own.copy_from_slice(&bytes[range]);
        }
    }
    Ok(())
}

/// Writes a case into a new file of the folder.
fn keep(folder: &Path, seed: u64, text: &str) -> Result<PathBuf, String> {
    std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for number in 1.. {
        let name = match number {
            1 => format!("seed-{seed}.inv"),
            more => format!("seed-{seed}-{more}.inv"),
        };
        let file = folder.join(name);
        match OpenOptions::new().write(true).create_new(true).open(&file) {
            Ok(mut opened) => {
                opened
                    .write_all(text.as_bytes())
                    .map_err(|e| format!("{}: {e}", file.display()))?;
                return Ok(file);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(format!("{}: {error}", file.display())),
        }
    }
    unreachable!("some number is free")
}

// ---- the campaign ----

/// What was asked for.
struct Campaign {
    seeds: Range<u64>,
    device: String,
    jobs: usize,
    folder: PathBuf,
    mutants: Option<PathBuf>,
}

fn parse(args: &[String]) -> Result<Campaign, String> {
    let mut campaign = Campaign {
        seeds: 0..1000,
        device: "cpu".to_string(),
        jobs: std::thread::available_parallelism().map_or(1, usize::from),
        folder: PathBuf::from("target/conformance"),
        mutants: None,
    };
    let mut args = args.iter();
    while let Some(option) = args.next() {
        let value = args
            .next()
            .ok_or_else(|| format!("{option} needs a value; {USAGE}"));
        match option.as_str() {
            "--seeds" => campaign.seeds = range(value?)?,
            "--device" => campaign.device.clone_from(value?),
            "--jobs" => {
                let value = value?;
                let jobs = value.parse().ok().filter(|n| *n > 0);
                campaign.jobs = jobs.ok_or_else(|| format!("`{value}` is not a number of jobs"))?;
            }
            "--into" => campaign.folder = PathBuf::from(value?),
            "--mutants" => campaign.mutants = Some(PathBuf::from(value?)),
            other => return Err(format!("unknown option `{other}`; {USAGE}")),
        }
    }
    Ok(campaign)
}

/// What is known so far.
struct Progress {
    /// The chunks that a process did not survive, without the seed that it died of.
    left: Vec<Range<u64>>,
    next: u64,
    /// The first seed of each worker's chunk.
    running: Vec<Option<u64>>,
    kernels: u64,
    /// By target and float mode.
    same: BTreeMap<String, u64>,
    refused: BTreeMap<String, u64>,
    findings: Vec<String>,
    slowest: (f64, u64),
    error: Option<String>,
    told: Instant,
}

impl Progress {
    /// The next seeds for a worker.
    fn take(&mut self, end: u64, chunk: u64) -> Option<Range<u64>> {
        if let Some(left) = self.left.pop() {
            return Some(left);
        }
        let seeds = self.next..end.min(self.next / chunk * chunk + chunk);
        self.next = seeds.end;
        (!seeds.is_empty()).then_some(seeds)
    }

    fn tell(&self, start: Instant, first: u64, end: u64) {
        let open = self.running.iter().flatten().copied();
        let open = open.chain(self.left.iter().map(|seeds| seeds.start)).min();
        let same: Vec<String> = self.same.iter().map(|(m, n)| format!("{n} {m}")).collect();
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "{} kernels in {seconds:.0} s ({:.1} a second): same bytes {}; {} refused; {} found; \
             slowest {:.1} s (from seed {})",
            self.kernels,
            self.kernels as f64 / seconds,
            if same.is_empty() {
                "0".to_string()
            } else {
                same.join(", ")
            },
            self.refused.values().sum::<u64>(),
            self.findings.len(),
            self.slowest.0,
            self.slowest.1,
        );
        let through = open.unwrap_or(self.next);
        if through < end {
            println!("    seeds {first}..{through} are done; go on with --seeds {through}..{end}");
        }
    }
}

/// Whether all kernels agree.
fn campaign(args: &[String]) -> Result<bool, String> {
    let campaign = parse(args)?;
    let targets = Targets::named(&campaign.device)?;
    let kernels = Kernels::new(&targets, campaign.mutants.as_deref())?;
    println!(
        "{} kernels on {}",
        campaign.seeds.end - campaign.seeds.start,
        targets.describe()
    );
    let start = Instant::now();
    let progress = Mutex::new(Progress {
        left: Vec::new(),
        next: campaign.seeds.start,
        running: vec![None; campaign.jobs],
        kernels: 0,
        same: BTreeMap::new(),
        refused: BTreeMap::new(),
        findings: Vec::new(),
        slowest: (0.0, campaign.seeds.start),
        error: None,
        told: start,
    });
    std::thread::scope(|scope| {
        for job in 0..campaign.jobs {
            let (campaign, targets, progress) = (&campaign, (&targets, &kernels), &progress);
            scope.spawn(move || {
                // What clang reads and writes for one worker.
                let scratch = format!("msl-{}-{job}", std::process::id());
                let scratch = campaign.folder.join(scratch);
                let ended = supervise(campaign, targets, progress, job, start, &scratch);
                // Without MSL there is none.
                let _ = std::fs::remove_dir_all(&scratch);
                if let Err(sentence) = ended {
                    progress
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .error = Some(sentence);
                }
            });
        }
    });
    let progress = progress
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    if let Some(sentence) = progress.error {
        return Err(sentence);
    }
    progress.tell(start, campaign.seeds.start, campaign.seeds.end);
    for (why, count) in &progress.refused {
        println!("{count} refused: {why}");
    }
    for finding in &progress.findings {
        println!("found: {finding}");
    }
    Ok(progress.findings.is_empty())
}

/// Gives seeds to worker processes until there are none left.
fn supervise(
    campaign: &Campaign,
    (targets, kernels): (&Targets, &Kernels),
    progress: &Mutex<Progress>,
    job: usize,
    start: Instant,
    scratch: &Path,
) -> Result<(), String> {
    let lock = || progress.lock().unwrap_or_else(PoisonError::into_inner);
    let mut worker: Option<Worker> = None;
    loop {
        let seeds = {
            let mut now = lock();
            now.running[job] = None;
            if now.told.elapsed() >= REPORT {
                now.told = Instant::now();
                now.tell(start, campaign.seeds.start, campaign.seeds.end);
            }
            if now.error.is_some() {
                return Ok(());
            }
            let Some(seeds) = now.take(campaign.seeds.end, targets.chunk()) else {
                return Ok(());
            };
            now.running[job] = Some(seeds.start);
            seeds
        };
        let mut current = match worker.take() {
            Some(worker) if worker.kernels < PROCESS_KERNELS => worker,
            _ => Worker::start(campaign, scratch)?,
        };
        let began = Instant::now();
        let answer = current.run(&seeds);
        let mut now = lock();
        if began.elapsed().as_secs_f64() > now.slowest.0 {
            now.slowest = (began.elapsed().as_secs_f64(), seeds.start);
        }
        match answer {
            Ok(lines) => {
                now.kernels += seeds.end - seeds.start;
                for line in lines {
                    let mut words = line.splitn(3, ' ');
                    let mut word = || words.next().unwrap_or_default();
                    match (word(), word(), word()) {
                        (target, "same", mode) => {
                            *now.same.entry(format!("{target} {mode}")).or_default() += 1;
                        }
                        (target, "refused", why) => {
                            *now.refused.entry(format!("{target}: {why}")).or_default() += 1;
                        }
                        (target, "kept", file) => {
                            println!("on {target}: see {file}");
                            now.findings.push(file.to_string());
                        }
                        _ => return Err(format!("a worker answers `{line}`")),
                    }
                }
                worker = Some(current);
            }
            Err((seed, how)) => {
                now.kernels += 1;
                let rest = [seeds.start..seed, seed + 1..seeds.end];
                now.left
                    .extend(rest.into_iter().filter(|seeds| !seeds.is_empty()));
                drop(now);
                let case = kernels
                    .case(seed)
                    .map_or(String::new(), |case| case.to_string());
                let text = format!("; seed {seed}: the process {how}\n{case}");
                let file = keep(&campaign.folder, seed, &text)?;
                println!("seed {seed}: the process {how}: see {}", file.display());
                lock().findings.push(file.display().to_string());
            }
        }
    }
}

/// A process that runs kernels.
struct Worker {
    process: Child,
    seeds: ChildStdin,
    answers: Receiver<String>,
    kernels: u32,
}

impl Worker {
    fn start(campaign: &Campaign, scratch: &Path) -> Result<Worker, String> {
        let own = std::env::current_exe().map_err(|e| e.to_string())?;
        let mut command = Command::new(own);
        command
            .args([WORKER, &campaign.device])
            .args([&*campaign.folder, scratch])
            .args(&campaign.mutants)
            .env("INVAR_CACHE", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut process = command.spawn().map_err(|e| format!("{command:?}: {e}"))?;
        let (Some(seeds), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err("a worker has no pipes".to_string());
        };
        let (sender, answers) = channel();
        // Ends with the process's output.
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Worker {
            process,
            seeds,
            answers,
            kernels: 0,
        })
    }

    /// How the kernels of a chunk ended on each target; or the seed at which the process ended, and how.
    fn run(&mut self, seeds: &Range<u64>) -> Result<Vec<String>, (u64, String)> {
        self.kernels += (seeds.end - seeds.start) as u32;
        // A process that is gone has closed its end: the answer says so.
        let _ = writeln!(self.seeds, "{}..{}", seeds.start, seeds.end);
        let mut limit = ANSWER_LIMIT;
        let mut seed = seeds.start;
        let mut ended = Vec::new();
        loop {
            match self.answers.recv_timeout(limit) {
                Ok(line) => match line.split_once(' ').unwrap_or((&line, "")) {
                    ("begin", number) => {
                        seed = number.parse().unwrap_or(seed);
                        limit = ANSWER_LIMIT;
                    }
                    ("found", _) => limit = REDUCTION_LIMIT,
                    ("ended", how) => ended.push(how.to_string()),
                    ("done", _) => return Ok(ended),
                    (_, _) => return Err((seed, format!("says `{line}`"))),
                },
                Err(RecvTimeoutError::Timeout) => {
                    return Err((seed, format!("gave no answer for {} s", limit.as_secs())));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let status = match self.process.wait() {
                        Ok(status) => status.to_string(),
                        Err(error) => error.to_string(),
                    };
                    return Err((seed, format!("ended: {status}")));
                }
            }
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may be in a kernel that never ends; both fail only if it is gone.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
