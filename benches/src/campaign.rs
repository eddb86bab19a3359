//! A campaign: random kernels by the ten thousands on a device and on the reference machine, byte by
//! byte; what differs is made small and kept as an `.inv` file.
//!
//! Kernels run in processes of their own, one for each worker, which take seeds by lines and answer by
//! lines: so a kernel that crashes or hangs its process is a finding like any other, and the campaign
//! goes on. Compiled kernels are not kept on disk.
//!
//! Invariants: a seed gives the same case on every run; no file is ever written over.

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

use invar::interp::{Arg as Value, Dispatch};
use invar::ir::{Diagnostic, Diagnostics, FloatMode, Order, Rule, Scalar, Span, Verified};
use invar::{Arg, ByteBuffer, CompileOptions, Device, Error, Queue};
use invar_conformance::{Failure, Floats, Options, Trial, compare_case, generate, reduce};

const USAGE: &str =
    "usage: [--seeds FIRST..END] [--device cpu|checked|gpu] [--jobs N] [--into FOLDER]";

/// The first argument of a process that runs kernels.
const WORKER: &str = "--worker";
/// Bytes around each buffer that nothing may change, and what they are.
const FENCE: usize = 256;
const FENCE_BYTE: u8 = 0xa5;
/// How long one dispatch may run, and how long a kernel may take from its seed to the comparison or, once
/// something was found, to its reduction.
const DISPATCH_LIMIT: Duration = Duration::from_secs(30);
const ANSWER_LIMIT: Duration = Duration::from_secs(180);
const REDUCTION_LIMIT: Duration = Duration::from_secs(3600);
/// Kernels of one process: whatever it loses in memory goes with it.
const PROCESS_KERNELS: u32 = 500;
/// How often progress is printed.
const REPORT: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match args.split_first() {
        Some((first, [device, folder])) if first == WORKER => {
            work(device, Path::new(folder)).map(|()| true)
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

/// What the kernels of a seed may use on a device: mostly short ones, which cost least to compile, and
/// some without what acts on others' memory.
fn options(device: &Device, seed: u64) -> Options {
    let able = device.capabilities();
    let floats = [Scalar::F16, Scalar::BF16, Scalar::F32, Scalar::F64];
    let ieee = floats
        .iter()
        .all(|s| !able.types.contains(s) || able.ieee_float.contains(s));
    let plain = seed / 16 % 16 == 5;
    Options {
        instructions: match seed % 16 {
            0 => 60,
            1..=4 => 30,
            _ => 14,
        },
        floats: if ieee { Floats::Ieee } else { Floats::Exact },
        scalars: able.types.clone(),
        simdgroup_size: Some(able.simdgroup_size),
        matrices_and_async_copies: !plain && able.async_copy && !able.simdgroup_matrices.is_empty(),
        atomics: !plain,
        copies: !plain,
        wide_atomics: !plain && able.atomics.contains(&Scalar::U64),
        memory_orders: able.memory_orders.contains(&Order::Acquire),
        ..Options::default()
    }
}

// ---- a worker ----

/// Runs the kernels of the seeds that come by lines. For each, one line says how it ended; before that,
/// `found` says that something is being reduced.
fn work(device: &str, folder: &Path) -> Result<(), String> {
    let device = Device::named(device).map_err(|e| e.to_string())?;
    // The checked device has its own limits.
    let limit = (device.capabilities().name != "checked").then_some(DISPATCH_LIMIT);
    let queue = device.queue().with_time_limit(limit);
    for line in std::io::stdin().lines() {
        let line = line.map_err(|e| e.to_string())?;
        let seed: u64 = line.parse().map_err(|_| format!("no seed: {line}"))?;
        let case = generate(seed, &options(&device, seed));
        let mut target =
            |module: &Verified, kernel: &str, dispatch: &Dispatch, args: &mut [Value<'static>]| {
                on_device(&device, &queue, module, kernel, dispatch, args)
                    .map_err(Error::into_diagnostics)
            };
        let trial = compare_case(&case, &mut target);
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
                    reduce(&case, &trial, &mut target)
                } else {
                    (case, trial.clone())
                };
                let failure = Failure {
                    seed,
                    trial,
                    reduced_trial,
                    reduced,
                };
                let file = keep(folder, seed, &failure.to_string())?;
                format!("kept {}", file.display())
            }
        };
        answer(&ended)?;
    }
    Ok(())
}

/// Says a line to whoever gave the seed.
fn answer(line: &str) -> Result<(), String> {
    let mut out = std::io::stdout();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .map_err(|e| format!("nobody listens: {e}"))
}

/// Runs a kernel on a device, with memory around each buffer that nothing may change.
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
            (_, Some(buffer)) => Ok(Arg::Buffer(buffer.part(inner(buffer)))),
            (_, None) => unreachable!("every buffer has its memory"),
        })
        .collect::<Result<_, _>>()?;
    queue.run(&program, *dispatch, &given)?;
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
            let message = "something outside of a buffer was written";
            let error = Diagnostic::error(Rule::Expectation, Span::NONE, message);
            return Err(Diagnostics(vec![error]).into());
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
}

fn parse(args: &[String]) -> Result<Campaign, String> {
    let mut campaign = Campaign {
        seeds: 0..1000,
        device: "cpu".to_string(),
        jobs: std::thread::available_parallelism().map_or(1, usize::from),
        folder: PathBuf::from("target/conformance"),
    };
    let mut args = args.iter();
    while let Some(option) = args.next() {
        let value = args
            .next()
            .ok_or_else(|| format!("{option} needs a value; {USAGE}"));
        match option.as_str() {
            "--seeds" => {
                let value = value?;
                let wrong = || format!("`{value}` is no range of seeds, such as 0..1000");
                let (first, end) = value.split_once("..").ok_or_else(wrong)?;
                let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
                campaign.seeds = number(first)?..number(end)?;
                if campaign.seeds.is_empty() {
                    return Err(wrong());
                }
            }
            "--device" => campaign.device.clone_from(value?),
            "--jobs" => {
                let value = value?;
                let jobs = value.parse().ok().filter(|n| *n > 0);
                campaign.jobs = jobs.ok_or_else(|| format!("`{value}` is no number of jobs"))?;
            }
            "--into" => campaign.folder = PathBuf::from(value?),
            other => return Err(format!("unknown option `{other}`; {USAGE}")),
        }
    }
    Ok(campaign)
}

/// What is known so far.
struct Progress {
    next: u64,
    /// The seed of each worker.
    running: Vec<Option<u64>>,
    same: BTreeMap<String, u64>,
    refused: BTreeMap<String, u64>,
    findings: Vec<String>,
    slowest: (f64, u64),
    error: Option<String>,
    told: Instant,
}

impl Progress {
    fn tell(&self, start: Instant, first: u64, end: u64) {
        let done: u64 = self.same.values().chain(self.refused.values()).sum();
        let done = done + self.findings.len() as u64;
        let open = self.running.iter().flatten().min().copied();
        let same: Vec<String> = self.same.iter().map(|(m, n)| format!("{n} {m}")).collect();
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "{done} kernels in {seconds:.0} s ({:.1} a second): same bytes {}; {} refused; {} found; \
             slowest {:.1} s (seed {})",
            done as f64 / seconds,
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
    let device = Device::named(&campaign.device).map_err(|e| e.to_string())?;
    println!(
        "{} kernels on device `{}`: {}",
        campaign.seeds.end - campaign.seeds.start,
        device.capabilities().name,
        device.capabilities().description
    );
    let start = Instant::now();
    let progress = Mutex::new(Progress {
        next: campaign.seeds.start,
        running: vec![None; campaign.jobs],
        same: BTreeMap::new(),
        refused: BTreeMap::new(),
        findings: Vec::new(),
        slowest: (0.0, campaign.seeds.start),
        error: None,
        told: start,
    });
    std::thread::scope(|scope| {
        for job in 0..campaign.jobs {
            let (campaign, device, progress) = (&campaign, &device, &progress);
            scope.spawn(move || {
                if let Err(sentence) = supervise(campaign, device, progress, job, start) {
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
    device: &Device,
    progress: &Mutex<Progress>,
    job: usize,
    start: Instant,
) -> Result<(), String> {
    let lock = || progress.lock().unwrap_or_else(PoisonError::into_inner);
    let mut worker: Option<Worker> = None;
    loop {
        let seed = {
            let mut now = lock();
            now.running[job] = None;
            if now.told.elapsed() >= REPORT {
                now.told = Instant::now();
                now.tell(start, campaign.seeds.start, campaign.seeds.end);
            }
            if now.next >= campaign.seeds.end || now.error.is_some() {
                return Ok(());
            }
            now.running[job] = Some(now.next);
            now.next += 1;
            now.next - 1
        };
        let mut current = match worker.take() {
            Some(worker) if worker.kernels < PROCESS_KERNELS => worker,
            _ => Worker::start(campaign)?,
        };
        let began = Instant::now();
        let answer = current.run(seed);
        let mut now = lock();
        now.slowest = if began.elapsed().as_secs_f64() > now.slowest.0 {
            (began.elapsed().as_secs_f64(), seed)
        } else {
            now.slowest
        };
        match answer {
            Ok(line) => {
                let (kind, rest) = line.split_once(' ').unwrap_or((line.as_str(), ""));
                match kind {
                    "same" => *now.same.entry(rest.to_string()).or_default() += 1,
                    "refused" => *now.refused.entry(rest.to_string()).or_default() += 1,
                    "kept" => {
                        println!("seed {seed}: see {rest}");
                        now.findings.push(rest.to_string());
                    }
                    _ => return Err(format!("a worker answers `{line}`")),
                }
                worker = Some(current);
            }
            Err(how) => {
                drop(now);
                let case = generate(seed, &options(device, seed));
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
    fn start(campaign: &Campaign) -> Result<Worker, String> {
        let own = std::env::current_exe().map_err(|e| e.to_string())?;
        let mut command = Command::new(own);
        command
            .args([WORKER, &campaign.device])
            .arg(&campaign.folder)
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

    /// The answer for a seed, or how the process ended instead.
    fn run(&mut self, seed: u64) -> Result<String, String> {
        self.kernels += 1;
        // A process that is gone has closed its end: the answer says so.
        let _ = writeln!(self.seeds, "{seed}");
        let mut limit = ANSWER_LIMIT;
        loop {
            match self.answers.recv_timeout(limit) {
                Ok(line) if line == "found" => limit = REDUCTION_LIMIT,
                Ok(line) => return Ok(line),
                Err(RecvTimeoutError::Timeout) => {
                    return Err(format!("gave no answer for {} s", limit.as_secs()));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let status = self.process.wait().map_err(|e| e.to_string())?;
                    return Err(format!("ended: {status}"));
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
