//! The kernels that the CPU device is measured with, with their arguments, ready to be run again and
//! again.

use std::path::Path;
use std::time::Instant;

use invar::{Arg, Buffer, CompileOptions, Device, Dispatch, Grid, Program, Queue};
use invar_ir::text::parse;
use invar_ir::{Verified, verify};

use crate::peer::{numbers, xorshift};

/// What stands in the place of a parameter.
pub enum Input {
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

/// A kernel and what it is run with.
pub struct Case {
    /// What it does, and on how much.
    pub name: &'static str,
    /// Below the folder of the benchmarks.
    pub file: &'static str,
    pub kernel: &'static str,
    pub inputs: Vec<Input>,
    pub grid: [u32; 3],
    pub threadgroup: [u32; 3],
    /// What a peer is told.
    pub size: usize,
    /// How far the sums may differ, relative to the sum of magnitudes: both sides round, in different
    /// orders.
    pub tolerance: f64,
}

/// All of them.
pub fn cases() -> Vec<Case> {
    let all = [products(), streams(), others()];
    all.into_iter().flatten().collect()
}

fn linear(threads: usize) -> [u32; 3] {
    [threads as u32, 1, 1]
}

const MILLION: usize = 1 << 20;
const LARGE: usize = 1 << 24;
const SQUARE: usize = 4096 * 4096;

fn case(
    name: &'static str,
    kernel: &'static str,
    inputs: Vec<Input>,
    grid: [u32; 3],
    threadgroup: [u32; 3],
    size: usize,
    tolerance: f64,
) -> Case {
    Case {
        name,
        file: "kernels/cpu.inv",
        kernel,
        inputs,
        grid,
        threadgroup,
        size,
        tolerance,
    }
}

/// Products of matrices of `n` by `n`, and Mandelbrot.
fn products() -> Vec<Case> {
    let matmul = |name, kernel, n: usize, threadgroup| {
        let inputs = vec![
            Numbers(1, n * n, 1.0),
            Numbers(2, n * n, 1.0),
            Output(n * n),
            Count(n as u32),
        ];
        case(
            name,
            kernel,
            inputs,
            [n as u32, n as u32, 1],
            threadgroup,
            n,
            1e-5,
        )
    };
    vec![
        matmul("naive matmul 1024", "matmul", 1024, [64, 16, 1]),
        matmul("naive matmul 1040", "matmul", 1040, [64, 16, 1]),
        matmul("tiled matmul 1024", "matmul_tiled", 1024, [16, 16, 1]),
        Case {
            file: "kernels/gemm.inv",
            grid: [1024 / 64 * 512, 1024 / 64, 1],
            ..matmul("simdgroup matmul 1024", "gemm", 1024, [512, 1, 1])
        },
        case(
            "Mandelbrot 2048",
            "mandelbrot",
            vec![Output(2048 * 2048), Count(2048), Count(256)],
            [2048, 2048, 1],
            [64, 4, 1],
            2048,
            1e-3,
        ),
    ]
}

/// What takes each element of long arrays once.
fn streams() -> Vec<Case> {
    vec![
        case(
            "exp * sin 1M",
            "exp_sin",
            vec![Numbers(1, MILLION, 10.0), Output(MILLION)],
            linear(MILLION),
            [256, 1, 1],
            MILLION,
            1e-5,
        ),
        case(
            "saxpy 16M",
            "saxpy",
            vec![Number(0.001), Numbers(1, LARGE, 1.0), Output(LARGE)],
            linear(LARGE),
            [1024, 1, 1],
            LARGE,
            1e-5,
        ),
        case(
            "triad 16M",
            "triad",
            vec![
                Number(0.5),
                Numbers(1, LARGE, 1.0),
                Numbers(2, LARGE, 1.0),
                Output(LARGE),
            ],
            linear(LARGE),
            [1024, 1, 1],
            LARGE,
            1e-5,
        ),
        case(
            "threadgroup reduction 16M",
            "reduction",
            vec![Numbers(1, LARGE, 1.0), Output(LARGE / 4096)],
            linear(LARGE / 16),
            [256, 1, 1],
            LARGE,
            1e-4,
        ),
    ]
}

/// Rows, neighbours, and all with all.
fn others() -> Vec<Case> {
    let rows = |name, file, kernel, inputs| Case {
        file,
        ..case(
            name,
            kernel,
            inputs,
            linear(4096 * 256),
            [256, 1, 1],
            4096,
            1e-4,
        )
    };
    vec![
        rows(
            "softmax 4096 rows of 4096",
            "../examples/softmax.inv",
            "softmax",
            vec![Numbers(1, SQUARE, 5.0), Output(SQUARE), Count(4096)],
        ),
        rows(
            "RMSNorm 4096 rows of 4096",
            "../examples/rms_norm.inv",
            "rms_norm",
            vec![
                Numbers(1, SQUARE, 5.0),
                Numbers(2, 4096, 1.0),
                Output(SQUARE),
                Count(4096),
                Number(1e-6),
            ],
        ),
        case(
            "transpose 4096",
            "transpose",
            vec![Numbers(1, SQUARE, 1.0), Output(SQUARE), Count(4096)],
            [4096, 1024, 1],
            [32, 8, 1],
            4096,
            0.0,
        ),
        case(
            "histogram of 64 MiB",
            "histogram",
            vec![Bytes(1, 1 << 26), Counts(256)],
            linear(1 << 18),
            [256, 1, 1],
            1 << 26,
            0.0,
        ),
        case(
            "8-point stencil 4096",
            "stencil",
            vec![Numbers(1, SQUARE, 1.0), Output(SQUARE), Count(4096)],
            [4096, 4096, 1],
            [256, 4, 1],
            4096,
            1e-5,
        ),
        case(
            "n-body 16k",
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
        ),
    ]
}

/// The module of a file below the folder of the benchmarks.
pub fn module(file: &str) -> Result<Verified, String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let text = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    let name = file.display().to_string();
    parse(&name, &text)
        .and_then(verify)
        .map_err(|e| e.to_string())
}

/// A parameter's memory.
enum Memory {
    Floats(Buffer<f32>),
    Bytes(Buffer<u8>),
    Counts(Buffer<u32>),
    Count(u32),
    Number(f32),
}

/// A compiled kernel with its arguments.
pub struct Ready {
    queue: Queue,
    program: Program,
    memory: Vec<Memory>,
    dispatch: Dispatch,
}

fn told(error: invar::Error) -> String {
    error.to_string()
}

impl Ready {
    /// Compiles a case for a device and makes its inputs.
    pub fn new(device: &Device, case: &Case) -> Result<Ready, String> {
        let options = CompileOptions {
            threadgroup_size: Some(case.threadgroup),
            ..CompileOptions::default()
        };
        let program = device
            .compile_with(&module(case.file)?, case.kernel, &options)
            .map_err(told)?;
        let memory = |input: &Input| {
            Ok(match *input {
                Numbers(seed, count, scale) => {
                    Memory::Floats(Buffer::from_slice(device, &numbers(seed, count, scale))?)
                }
                Bytes(seed, count) => {
                    let bytes = xorshift(seed).take(count).map(|s| (s >> 24) as u8);
                    Memory::Bytes(Buffer::from_slice(device, &bytes.collect::<Vec<u8>>())?)
                }
                Output(count) => Memory::Floats(Buffer::zeroed(device, count)?),
                Counts(count) => Memory::Counts(Buffer::zeroed(device, count)?),
                Count(count) => Memory::Count(count),
                Number(number) => Memory::Number(number),
            })
        };
        let memory: Result<Vec<Memory>, _> = case.inputs.iter().map(memory).collect();
        Ok(Ready {
            queue: device.queue(),
            program,
            memory: memory.map_err(told)?,
            dispatch: Dispatch {
                grid: Grid::Threads(case.grid),
                threadgroup: case.threadgroup,
            },
        })
    }

    /// Runs it once: the seconds that it took.
    pub fn run(&self) -> Result<f64, String> {
        // As many as a kernel of these has at most, so that nothing is allocated.
        let mut args = [const { Arg::ThreadgroupLength(0) }; 8];
        for (arg, memory) in args.iter_mut().zip(&self.memory) {
            *arg = match memory {
                Memory::Floats(b) => Arg::from(b),
                Memory::Bytes(b) => Arg::from(b),
                Memory::Counts(b) => Arg::from(b),
                Memory::Count(n) => Arg::from(*n),
                Memory::Number(x) => Arg::from(*x),
            };
        }
        let args = &args[..self.memory.len()];
        let start = Instant::now();
        self.queue
            .run(&self.program, self.dispatch, args)
            .map_err(told)?;
        Ok(start.elapsed().as_secs_f64())
    }

    /// What the last run of a case left: the sum that a peer gives too, and that of the magnitudes.
    pub fn sums(&self, case: &Case) -> Result<(f64, f64), String> {
        let at = case
            .inputs
            .iter()
            .position(|i| matches!(i, Output(_) | Counts(_)));
        let result: Vec<f64> = match at.map(|at| &self.memory[at]) {
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
        Ok((weighted(|x| x), weighted(f64::abs)))
    }
}
