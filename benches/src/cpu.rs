//! The CPU device against the same kernels in C with OpenMP and against OpenBLAS, on the same inputs.
//!
//! A peer is a process that runs its kernel once for each line that it is sent, and says how long it
//! took; so the two sides take turns. Before it counts, what both computed is compared.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use invar::ir::text::parse;
use invar::ir::{Verified, verify};
use invar::{Arg, Buffer, CompileOptions, Device, Dispatch, Grid};

use crate::table::{Row, Table, median};

/// How long the two sides of a row take turns, after the first turn, and how often at least.
const TIME: Duration = Duration::from_millis(1500);
const TURNS: usize = 5;

/// What stands in the place of a parameter.
enum Input {
    /// -1 to 1 times a scale, by the seed.
    Numbers(u32, usize, f32),
    /// Bytes, by the seed.
    Bytes(u32, usize),
    /// Where the kernel leaves what it computed: so many numbers or counts.
    Result(usize),
    Counts(usize),
    Count(u32),
    Number(f32),
}

use Input::{Bytes, Count, Counts, Number, Numbers, Result as Output};

/// A kernel and its peer.
struct Case {
    row: &'static str,
    file: &'static str,
    kernel: &'static str,
    inputs: Vec<Input>,
    grid: [u32; 3],
    threadgroup: [u32; 3],
    peer: PeerKind,
    peer_kernel: &'static str,
    peer_size: usize,
    /// How far the sums may differ, relative to the sum of magnitudes: both sides round, in different
    /// orders.
    tolerance: f64,
    bound: f64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PeerKind {
    C,
    Blas,
}

/// Adds the rows.
pub fn rows(table: &mut Table) -> Result<(), String> {
    let benches = Path::new(env!("CARGO_MANIFEST_DIR"));
    let device = Device::named("cpu").map_err(|e| e.to_string())?;
    let threads = std::env::var("INVAR_THREADS").unwrap_or_else(|_| {
        let all = std::thread::available_parallelism().map_or(1, usize::from);
        all.to_string()
    });
    table.note(format!(
        "CPU rows: {threads} threads on each side, safety on"
    ));
    compile_time(table, benches)?;
    let c = match build(benches) {
        Ok(program) => Some(program),
        Err(sentence) => {
            table.note(format!("rows against C are left out: {sentence}"));
            None
        }
    };
    let python = benches.join("../target/bench-python/bin/python");
    let blas = python.exists().then_some(python);
    if blas.is_none() {
        table.note("NumPy is not installed (scripts/bench.sh does): rows against it are left out");
    }
    for case in cases() {
        let mut command = match (case.peer, &c, &blas) {
            (PeerKind::C, Some(program), _) => Command::new(program),
            (PeerKind::Blas, _, Some(python)) => {
                let mut command = Command::new(python);
                command.arg(benches.join("peers/cpu/blas.py"));
                command
            }
            (PeerKind::C, None, _) | (PeerKind::Blas, _, None) => continue,
        };
        command
            .args([case.peer_kernel, &case.peer_size.to_string()])
            .env("OMP_NUM_THREADS", &threads)
            .env("OPENBLAS_NUM_THREADS", &threads)
            .env("OMP_WAIT_POLICY", "passive");
        match measure(&device, benches, &case, command) {
            Ok(row) => table.row(row),
            Err(sentence) => table.failure(format!("{}: {sentence}", case.row)),
        }
    }
    Ok(())
}

fn cases() -> Vec<Case> {
    let linear = |threads: u32| [threads, 1, 1];
    let million = 1 << 20;
    let large = 1 << 24;
    let case = |row, kernel, inputs, grid, threadgroup, peer_size, tolerance, bound| Case {
        row,
        file: "kernels/cpu.inv",
        kernel,
        inputs,
        grid,
        threadgroup,
        peer: PeerKind::C,
        peer_kernel: kernel,
        peer_size,
        tolerance,
        bound,
    };
    let matmul = |row, n: usize, peer, bound| Case {
        peer,
        ..case(
            row,
            "matmul",
            vec![
                Numbers(1, n * n, 1.0),
                Numbers(2, n * n, 1.0),
                Output(n * n),
                Count(n as u32),
            ],
            [n as u32, n as u32, 1],
            [64, 16, 1],
            n,
            1e-5,
            bound,
        )
    };
    let mandelbrot = |row, peer_kernel, bound| Case {
        peer_kernel,
        ..case(
            row,
            "mandelbrot",
            vec![Output(2048 * 2048), Count(2048), Count(256)],
            [2048, 2048, 1],
            [64, 4, 1],
            2048,
            1e-3,
            bound,
        )
    };
    let square = 4096 * 4096;
    vec![
        matmul("naive matmul 1024, hand-blocked C", 1024, PeerKind::C, 0.65),
        matmul("naive matmul 1024, OpenBLAS", 1024, PeerKind::Blas, 0.85),
        matmul("naive matmul 1040, OpenBLAS", 1040, PeerKind::Blas, 1.0),
        Case {
            file: "kernels/gemm.inv",
            kernel: "gemm",
            grid: [1024 / 64 * 512, 1024 / 64, 1],
            threadgroup: [512, 1, 1],
            ..matmul(
                "matmul of simdgroup matrices 1024, OpenBLAS",
                1024,
                PeerKind::Blas,
                0.8,
            )
        },
        mandelbrot("Mandelbrot 2048, scalar C", "mandelbrot", 20.0),
        mandelbrot(
            "Mandelbrot 2048, hand-vectorised C",
            "mandelbrot_by_hand",
            0.7,
        ),
        case(
            "exp * sin 1M, C with libmvec",
            "exp_sin",
            vec![Numbers(1, million, 10.0), Output(million)],
            linear(million as u32),
            [256, 1, 1],
            million,
            1e-5,
            1.5,
        ),
        case(
            "saxpy 16M, C",
            "saxpy",
            vec![Number(0.001), Numbers(1, large, 1.0), Output(large)],
            linear(large as u32),
            [1024, 1, 1],
            large,
            1e-5,
            0.95,
        ),
        case(
            "triad 16M, C",
            "triad",
            vec![
                Number(0.5),
                Numbers(1, large, 1.0),
                Numbers(2, large, 1.0),
                Output(large),
            ],
            linear(large as u32),
            [1024, 1, 1],
            large,
            1e-5,
            0.95,
        ),
        case(
            "threadgroup reduction 16M, C",
            "reduction",
            vec![Numbers(1, large, 1.0), Output(large / 4096)],
            linear((large / 16) as u32),
            [256, 1, 1],
            large,
            1e-4,
            0.9,
        ),
        Case {
            file: "../examples/softmax.inv",
            ..case(
                "softmax 4096 rows of 4096, C",
                "softmax",
                vec![Numbers(1, square, 5.0), Output(square), Count(4096)],
                linear(4096 * 256),
                [256, 1, 1],
                4096,
                1e-4,
                0.9,
            )
        },
        Case {
            file: "../examples/rms_norm.inv",
            ..case(
                "RMSNorm 4096 rows of 4096, C",
                "rms_norm",
                vec![
                    Numbers(1, square, 5.0),
                    Numbers(2, 4096, 1.0),
                    Output(square),
                    Count(4096),
                    Number(1e-6),
                ],
                linear(4096 * 256),
                [256, 1, 1],
                4096,
                1e-4,
                0.9,
            )
        },
        case(
            "transpose 4096, C",
            "transpose",
            vec![Numbers(1, square, 1.0), Output(square), Count(4096)],
            [4096, 1024, 1],
            [32, 8, 1],
            4096,
            0.0,
            0.9,
        ),
        case(
            "histogram of 64 MiB, C",
            "histogram",
            vec![Bytes(1, 1 << 26), Counts(256)],
            linear(1 << 18),
            [256, 1, 1],
            1 << 26,
            0.0,
            1.0,
        ),
        case(
            "8-point stencil 4096, C",
            "stencil",
            vec![Numbers(1, square, 1.0), Output(square), Count(4096)],
            [4096, 4096, 1],
            [256, 4, 1],
            4096,
            1e-5,
            1.0,
        ),
        case(
            "n-body 16k, C",
            "n_body",
            vec![
                Numbers(1, 1 << 14, 1.0),
                Numbers(2, 1 << 14, 1.0),
                Numbers(3, 1 << 14, 1.0),
                Numbers(4, 1 << 14, 1.0),
                Output(3 << 14),
                Count(1 << 14),
            ],
            linear(1 << 14),
            [256, 1, 1],
            1 << 14,
            1e-3,
            1.0,
        ),
    ]
}

/// The module of a file.
fn module(file: &Path) -> Result<Verified, String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let name = file.display().to_string();
    parse(&name, &text)
        .and_then(verify)
        .map_err(|e| e.to_string())
}

/// A first compilation, without the cache, of the kernel that takes longest.
fn compile_time(table: &mut Table, benches: &Path) -> Result<(), String> {
    let module = module(&benches.join("kernels/cpu.inv"))?;
    let mut slowest: Option<(f64, String)> = None;
    for kernel in &module.kernels {
        let options = invar::llvm::CompileOptions {
            threadgroup_size: Some([256, 1, 1]),
            ..Default::default()
        };
        let mut times = Vec::new();
        for _ in 0..3 {
            let start = Instant::now();
            if let Err(error) = invar::llvm::compile(&module, &kernel.name, &options) {
                table.failure(format!("@{}: {error}", kernel.name));
                break;
            }
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
        if times.is_empty() {
            continue;
        }
        let time = median(times);
        if slowest.as_ref().is_none_or(|(most, _)| time > *most) {
            slowest = Some((time, kernel.name.to_string()));
        }
    }
    let Some((ours, kernel)) = slowest else {
        return Ok(());
    };
    table.row(Row {
        name: format!("slowest first compile (@{kernel}), limit"),
        ours,
        peer: 50.0,
        unit: "ms",
        bound: Some(1.0),
    });
    Ok(())
}

/// Compiles the C peers: without fast-math, except where a row names libmvec; that `sqrt` sets no
/// `errno` changes no result, and lets it be a vector instruction.
fn build(benches: &Path) -> Result<PathBuf, String> {
    let source = benches.join("peers/cpu");
    let out = benches.join("../target/bench-peers");
    std::fs::create_dir_all(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    let gcc = |args: &[&str], inputs: &[PathBuf], output: &Path| {
        let mut command = Command::new("gcc");
        command.args(args).args(inputs).arg("-o").arg(output);
        command.arg("-lm");
        let done = command.output().map_err(|e| format!("gcc: {e}"))?;
        if done.status.success() {
            Ok(())
        } else {
            Err(String::from_utf8_lossy(&done.stderr).into_owned())
        }
    };
    let (exp_sin, peers) = (out.join("exp_sin.o"), out.join("peers"));
    let fast = ["-Ofast", "-march=native", "-fopenmp", "-c"];
    gcc(&fast, &[source.join("exp_sin.c")], &exp_sin)?;
    let strict = ["-O3", "-march=native", "-fopenmp", "-fno-math-errno"];
    gcc(&strict, &[source.join("peers.c"), exp_sin], &peers)?;
    Ok(peers)
}

/// A running peer.
struct Peer {
    process: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    fn start(mut command: Command) -> Result<Peer, String> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().map_err(|e| format!("{command:?}: {e}"))?;
        let (Some(requests), Some(answers)) = (process.stdin.take(), process.stdout.take()) else {
            return Err("the peer has no pipes".to_string());
        };
        Ok(Peer {
            process,
            requests,
            answers: BufReader::new(answers),
        })
    }

    fn answer(&mut self) -> Result<f64, String> {
        let mut line = String::new();
        self.answers
            .read_line(&mut line)
            .map_err(|e| format!("the peer: {e}"))?;
        let number = line.trim().parse();
        number.map_err(|_| format!("the peer said `{}`, not a number", line.trim()))
    }

    /// Runs once: the seconds that it took.
    fn run(&mut self) -> Result<f64, String> {
        writeln!(self.requests, "run").map_err(|e| format!("the peer: {e}"))?;
        self.answer()
    }

    fn end(mut self) -> Result<(), String> {
        drop(self.requests);
        let status = self.process.wait().map_err(|e| format!("the peer: {e}"))?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("the peer ended with {status}"))
        }
    }
}

/// xorshift32.
fn xorshift(seed: u32) -> impl Iterator<Item = u32> {
    std::iter::successors(Some(seed), |s| {
        let s = s ^ s << 13;
        let s = s ^ s >> 17;
        Some(s ^ s << 5)
    })
    .skip(1)
}

fn numbers(seed: u32, count: usize, scale: f32) -> Vec<f32> {
    let one = |s: u32| ((s >> 8) as f32 / 8_388_608.0 - 1.0) * scale;
    xorshift(seed).take(count).map(one).collect()
}

/// A parameter's memory.
enum Memory {
    Floats(Buffer<f32>),
    Bytes(Buffer<u8>),
    Counts(Buffer<u32>),
    Count(u32),
    Number(f32),
}

fn measure(device: &Device, benches: &Path, case: &Case, peer: Command) -> Result<Row, String> {
    let told = |e: invar::Error| e.to_string();
    let module = module(&benches.join(case.file))?;
    let options = CompileOptions {
        threadgroup_size: Some(case.threadgroup),
        ..CompileOptions::default()
    };
    let program = device
        .compile_with(&module, case.kernel, &options)
        .map_err(told)?;
    let memory = |input: &Input| {
        Ok(match *input {
            Numbers(seed, count, scale) => {
                Memory::Floats(Buffer::from_slice(device, &numbers(seed, count, scale))?)
            }
            Bytes(seed, count) => {
                let bytes: Vec<u8> = xorshift(seed)
                    .take(count)
                    .map(|s| (s >> 24) as u8)
                    .collect();
                Memory::Bytes(Buffer::from_slice(device, &bytes)?)
            }
            Output(count) => Memory::Floats(Buffer::zeroed(device, count)?),
            Counts(count) => Memory::Counts(Buffer::zeroed(device, count)?),
            Count(count) => Memory::Count(count),
            Number(number) => Memory::Number(number),
        })
    };
    let memory: Vec<Memory> = case
        .inputs
        .iter()
        .map(memory)
        .collect::<Result<_, _>>()
        .map_err(told)?;
    let args: Vec<Arg<'_>> = memory
        .iter()
        .map(|m| match m {
            Memory::Floats(b) => Arg::from(b),
            Memory::Bytes(b) => Arg::from(b),
            Memory::Counts(b) => Arg::from(b),
            Memory::Count(n) => Arg::from(*n),
            Memory::Number(x) => Arg::from(*x),
        })
        .collect();
    let queue = device.queue();
    let dispatch = Dispatch {
        grid: Grid::Threads(case.grid),
        threadgroup: case.threadgroup,
    };
    let run = || -> Result<f64, String> {
        let start = Instant::now();
        queue.run(&program, dispatch, &args).map_err(told)?;
        Ok(start.elapsed().as_secs_f64())
    };
    run()?;
    let result = case
        .inputs
        .iter()
        .position(|i| matches!(i, Output(_) | Counts(_)))
        .map(|at| &memory[at]);
    let result: Vec<f64> = match result {
        Some(Memory::Floats(b)) => b.read().map_err(told)?.into_iter().map(f64::from).collect(),
        Some(Memory::Counts(b)) => b.read().map_err(told)?.into_iter().map(f64::from).collect(),
        Some(Memory::Bytes(_) | Memory::Count(_) | Memory::Number(_)) | None => {
            return Err("no parameter takes the result".to_string());
        }
    };
    let weighted = |f: fn(f64) -> f64| -> f64 {
        let terms = result.iter().enumerate();
        terms.map(|(i, x)| f(*x) * (i % 7 + 1) as f64).sum()
    };
    let (sum, magnitude) = (weighted(|x| x), weighted(f64::abs));
    let mut peer = Peer::start(peer)?;
    let expected = peer.answer()?;
    if (sum - expected).abs() > case.tolerance * magnitude {
        return Err(format!("ours adds up to {sum}, the peer's to {expected}"));
    }
    peer.run()?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let start = Instant::now();
    while ours.len() < TURNS || start.elapsed() < TIME {
        ours.push(run()? * 1e3);
        theirs.push(peer.run()? * 1e3);
    }
    peer.end()?;
    Ok(Row {
        name: case.row.to_string(),
        ours: median(ours),
        peer: median(theirs),
        unit: "ms",
        bound: Some(case.bound),
    })
}
