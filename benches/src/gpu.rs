//! Measures a GPU: each kernel of `kernels/gpu` is checked against a result of the host's own, then timed
//! by the GPU's clock, with the share of the best copy's bandwidth; and what one dispatch costs.
//!
//! `scripts/bench_gpu.sh` runs it. An argument names the adapter by its number, a second one divides
//! every size, for adapters that are not GPUs.

#![expect(
    clippy::print_stdout,
    reason = "a table for the reader is what this is for"
)]

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use invar_ir::text::parse;
use invar_ir::{Const, Verified, verify};
use invar_runtime::gpu::{Gpu, GpuArg, GpuBuffer, GpuProgram};
use invar_runtime::{Arg, Buffer, CompileOptions, Device, Dispatch, Grid};

const STREAMING: &str = include_str!("../kernels/gpu/streaming.inv");
const ROWS: &str = include_str!("../kernels/gpu/rows.inv");
const SQUARE: &str = include_str!("../kernels/gpu/square.inv");
const HISTOGRAM: &str = include_str!("../kernels/gpu/histogram.inv");

/// What the host makes of a row.
type OfRow<'a> = &'a dyn Fn(&[f32]) -> Vec<f32>;

/// How often each kernel is timed.
const TIMES: u32 = 40;

/// How many dispatches stand in a queue that is timed as a whole, each on buffers of its own: a GPU's cache
/// keeps nothing for the next that way, and none waits for another.
const QUEUED: usize = 8;

type Result<T> = std::result::Result<T, String>;

struct Bench {
    gpu: Gpu,
    /// Held while something is timed: then nothing else runs on the GPU.
    alone: Arc<Mutex<()>>,
    /// The best bandwidth of a copy, in bytes a second.
    ceiling: f64,
}

fn text(e: impl std::fmt::Display) -> String {
    e.to_string()
}

fn module(name: &str, source: &str) -> Result<Verified> {
    parse(name, source).and_then(verify).map_err(text)
}

fn bytes(floats: &[f32]) -> Vec<u8> {
    floats.iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes
        .chunks_exact(4)
        .map(|c| f32::from_le_bytes([c[0], c[1], c[2], c[3]]))
        .collect()
}

/// Numbers between -1 and 1 that repeat only after a long while.
fn noise(count: usize) -> Vec<f32> {
    let mut state = 0x2545_f491u32;
    (0..count)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state as f32 / 2_147_483_648.0 - 1.0
        })
        .collect()
}

/// The largest difference, as a share of the largest magnitude expected.
fn difference(found: &[f32], expected: &[f32]) -> f64 {
    let scale = expected.iter().fold(0f64, |m, x| m.max(f64::from(x.abs())));
    let pairs = found.iter().zip(expected);
    pairs.fold(0f64, |m, (a, b)| {
        let d = (f64::from(*a) - f64::from(*b)).abs();
        if d.is_nan() { f64::INFINITY } else { m.max(d) }
    }) / scale.max(1e-30)
}

fn agree(name: &str, found: &[f32], expected: &[f32], bound: f64) -> Result<()> {
    let d = difference(found, expected);
    if found.len() < expected.len() || d > bound {
        return Err(format!(
            "{name} is wrong: off by {d:.2e}, at most {bound:.2e} is right"
        ));
    }
    Ok(())
}

/// The arguments of a kernel of `rows.inv`: a length first, weights between the matrices.
fn row_arguments<'a>(others: &[GpuArg<'a>], x: &'a GpuBuffer, y: &'a GpuBuffer) -> Vec<GpuArg<'a>> {
    let is_length = |arg: &&GpuArg<'a>| matches!(arg, GpuArg::Scalar(_));
    let mut args: Vec<GpuArg<'a>> = others.iter().filter(is_length).copied().collect();
    args.push(GpuArg::Buffer(x));
    args.extend(others.iter().filter(|arg| !is_length(arg)));
    args.push(GpuArg::Buffer(y));
    args
}

impl Bench {
    fn compile(&self, module: &Verified, kernel: &str) -> Result<GpuProgram> {
        let options = CompileOptions::default();
        self.gpu.compile(module, kernel, &options).map_err(text)
    }

    fn upload(&self, data: &[f32]) -> Result<GpuBuffer> {
        self.gpu.buffer_from(&bytes(data)).map_err(text)
    }

    fn zeros(&self, count: usize) -> Result<GpuBuffer> {
        self.gpu.buffer(count as u64 * 4).map_err(text)
    }

    fn once(&self, program: &GpuProgram, dispatch: Dispatch, args: &[GpuArg<'_>]) -> Result<()> {
        self.gpu.dispatch(program, dispatch, args).map_err(text)?;
        self.gpu.wait().map_err(text)
    }

    /// The median time of a dispatch that runs alone, from its beginning to its end.
    fn time(
        &self,
        program: &GpuProgram,
        dispatch: Dispatch,
        args: &[GpuArg<'_>],
    ) -> Result<Duration> {
        self.time_queued(program, dispatch, &[args])
    }

    /// The median time of a dispatch in a queue of these.
    fn time_queued(
        &self,
        program: &GpuProgram,
        dispatch: Dispatch,
        queued: &[&[GpuArg<'_>]],
    ) -> Result<Duration> {
        let _alone = self.alone.lock();
        let measure = |times| {
            let all = self.gpu.measure_queued(program, dispatch, queued, times);
            all.map_err(text)
        };
        measure(8)?;
        let mut all = measure(TIMES)?;
        all.sort();
        Ok(all[all.len() / 2] / queued.len() as u32)
    }

    /// Prints a row of a kernel that moves that many bytes.
    fn memory_row(&self, name: &str, moved: f64, time: Duration) {
        let rate = moved / time.as_secs_f64();
        let share = if self.ceiling > 0.0 {
            format!("{:5.1} %", 100.0 * rate / self.ceiling)
        } else {
            String::new()
        };
        println!(
            "| {name:<28} | {:>9.1} us | {:>8.1} GB/s | {share:>8} |",
            time.as_secs_f64() * 1e6,
            rate / 1e9
        );
    }

    fn compute_row(&self, name: &str, operations: f64, time: Duration) {
        println!(
            "| {name:<28} | {:>9.1} us | {:>8.2} TFLOP/s |          |",
            time.as_secs_f64() * 1e6,
            operations / time.as_secs_f64() / 1e12
        );
    }

    fn streaming(&mut self, count: usize) -> Result<()> {
        let module = module("streaming.inv", STREAMING)?;
        let data = noise(count);
        let x = self.upload(&data)?;
        let y = self.zeros(count)?;
        let line = |threads: usize| Dispatch::linear(threads as u32, 256);
        let both = [GpuArg::Buffer(&x), GpuArg::Buffer(&y)];
        let mut rows = Vec::new();
        for (kernel, threads) in [("copy", count), ("copy4", count / 4)] {
            let program = self.compile(&module, kernel)?;
            self.once(&program, line(threads), &both)?;
            agree(kernel, &floats(&y.read().map_err(text)?), &data, 0.0)?;
            y.write(&vec![0; count * 4]).map_err(text)?;
            let time = self.time(&program, line(threads), &both)?;
            let moved = count as f64 * 8.0;
            self.ceiling = self.ceiling.max(moved / time.as_secs_f64());
            rows.push((kernel, moved, time));
        }
        for (kernel, moved, time) in rows {
            self.memory_row(kernel, moved, time);
        }
        let a = [Const::from(0.5f32)];
        for (kernel, threads) in [("saxpy", count), ("saxpy4", count / 4)] {
            let program = self.compile(&module, kernel)?;
            y.write(&bytes(&data)).map_err(text)?;
            let args = [GpuArg::Scalar(&a), both[0], both[1]];
            self.once(&program, line(threads), &args)?;
            let expected: Vec<f32> = data.iter().map(|x| 0.5f32.mul_add(*x, *x)).collect();
            agree(kernel, &floats(&y.read().map_err(text)?), &expected, 1e-6)?;
            let time = self.time(&program, line(threads), &args)?;
            self.memory_row(kernel, count as f64 * 12.0, time);
        }
        let program = self.compile(&module, "reduce")?;
        let groups = 2048.min(count / 1024).max(1);
        let sums = self.zeros(groups)?;
        let quarter = [Const::from((count / 4) as u32)];
        let args = [both[0], GpuArg::Scalar(&quarter), GpuArg::Buffer(&sums)];
        let dispatch = line(groups * 256);
        self.once(&program, dispatch, &args)?;
        let found: f64 = floats(&sums.read().map_err(text)?)
            .iter()
            .map(|x| f64::from(*x))
            .sum();
        let expected: f64 = data.iter().map(|x| f64::from(*x)).sum();
        let magnitude: f64 = data.iter().map(|x| f64::from(x.abs())).sum();
        if (found - expected).abs() > 1e-6 * magnitude {
            return Err(format!("reduce is wrong: {found}, expected {expected}"));
        }
        let time = self.time(&program, dispatch, &args)?;
        self.memory_row("reduce", count as f64 * 4.0, time);
        Ok(())
    }

    fn rows(&mut self, rows: usize) -> Result<()> {
        const COLUMNS: usize = 4096;
        let module = module("rows.inv", ROWS)?;
        let data = noise(rows * COLUMNS);
        let weight: Vec<f32> = (0..COLUMNS).map(|i| 1.0 + i as f32 / 8192.0).collect();
        let w = self.upload(&weight)?;
        let buffers: Vec<(GpuBuffer, GpuBuffer)> = (0..QUEUED)
            .map(|_| Ok((self.upload(&data)?, self.zeros(rows * COLUMNS)?)))
            .collect::<Result<_>>()?;
        let dispatch = Dispatch::linear((rows * 256) as u32, 256);
        let moved = (rows * COLUMNS) as f64 * 8.0;
        let some: Vec<usize> = (0..rows).step_by((rows / 16).max(1)).collect();

        // What a copy of as much takes, alone and in a queue.
        let streaming = self::module("streaming.inv", STREAMING)?;
        let mut copy = [Duration::MAX; 2];
        for (kernel, threads) in [("copy", rows * COLUMNS), ("copy4", rows * COLUMNS / 4)] {
            let program = self.compile(&streaming, kernel)?;
            let line = Dispatch::linear(threads as u32, 256);
            let times = self.alone_and_queued(&program, line, &buffers, &[])?;
            self.rows_of(&format!("{kernel} of {rows}x{COLUMNS}"), moved, times);
            copy = [copy[0].min(times[0]), copy[1].min(times[1])];
            self.ceiling = self.ceiling.max(moved / times[1].as_secs_f64());
        }

        let softmax = |row: &[f32]| -> Vec<f32> {
            let top = row.iter().fold(f32::MIN, |m, x| m.max(*x));
            let e: Vec<f64> = row.iter().map(|x| f64::from(x - top).exp()).collect();
            let total: f64 = e.iter().sum();
            e.iter().map(|x| (x / total) as f32).collect()
        };
        let rms_norm = |row: &[f32]| -> Vec<f32> {
            let mean = row.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / COLUMNS as f64;
            let scale = 1.0 / (mean + 1e-5).sqrt();
            row.iter()
                .zip(&weight)
                .map(|(x, w)| (f64::from(*x) * scale * f64::from(*w)) as f32)
                .collect()
        };
        let n = [Const::from(COLUMNS as u32)];
        let (n, w) = (GpuArg::Scalar(&n), GpuArg::Buffer(&w));
        let (x, y) = &buffers[0];
        let kernels: [(&str, &[GpuArg<'_>], OfRow<'_>); 6] = [
            ("softmax", &[], &softmax),
            ("softmax_n", &[n], &softmax),
            ("softmax4", &[], &softmax),
            ("rms_norm", &[w], &rms_norm),
            ("rms_norm_n", &[n, w], &rms_norm),
            ("rms_norm4", &[w], &rms_norm),
        ];
        for (kernel, others, expected) in kernels {
            y.write(&vec![0; rows * COLUMNS * 4]).map_err(text)?;
            let program = self.compile(&module, kernel)?;
            self.once(&program, dispatch, &row_arguments(others, x, y))?;
            let found = floats(&y.read().map_err(text)?);
            for row in &some {
                let at = row * COLUMNS..(row + 1) * COLUMNS;
                agree(kernel, &found[at.clone()], &expected(&data[at]), 1e-5)?;
            }
            let times = self.alone_and_queued(&program, dispatch, &buffers, others)?;
            self.rows_of(&format!("{kernel} {rows}x{COLUMNS}"), moved, times);
            let share = |i: usize| 100.0 * copy[i].as_secs_f64() / times[i].as_secs_f64();
            println!(
                "|   of the copy of as much      |              |               | {:5.1} %, {:.1} % |",
                share(0),
                share(1)
            );
        }
        Ok(())
    }

    /// The median time of a dispatch that runs alone, and of one in a queue.
    fn alone_and_queued(
        &self,
        program: &GpuProgram,
        dispatch: Dispatch,
        buffers: &[(GpuBuffer, GpuBuffer)],
        others: &[GpuArg<'_>],
    ) -> Result<[Duration; 2]> {
        let all: Vec<Vec<GpuArg<'_>>> = buffers
            .iter()
            .map(|(x, y)| row_arguments(others, x, y))
            .collect();
        let queued: Vec<&[GpuArg<'_>]> = all.iter().map(Vec::as_slice).collect();
        Ok([
            self.time(program, dispatch, queued[0])?,
            self.time_queued(program, dispatch, &queued)?,
        ])
    }

    fn rows_of(&self, name: &str, moved: f64, [alone, queued]: [Duration; 2]) {
        self.memory_row(name, moved, alone);
        self.memory_row("  in a queue", moved, queued);
    }

    fn square(&self, side: usize, product: usize) -> Result<()> {
        let module = module("square.inv", SQUARE)?;
        let data = noise(side * side);
        let (x, y) = (self.upload(&data)?, self.zeros(side * side)?);
        let n = [Const::from(side as u32)];
        let program = self.compile(&module, "transpose")?;
        let args = [GpuArg::Scalar(&n), GpuArg::Buffer(&x), GpuArg::Buffer(&y)];
        let tiles = (side / 32) as u32;
        let dispatch = Dispatch {
            grid: Grid::Threadgroups([tiles, tiles, 1]),
            threadgroup: [32, 8, 1],
        };
        self.once(&program, dispatch, &args)?;
        let found = floats(&y.read().map_err(text)?);
        for i in (0..side).step_by(61) {
            for j in (0..side).step_by(17) {
                if found[i * side + j].to_bits() != data[j * side + i].to_bits() {
                    return Err(format!("transpose is wrong at row {i}, column {j}"));
                }
            }
        }
        let time = self.time(&program, dispatch, &args)?;
        self.memory_row(
            &format!("transpose {side}x{side}"),
            (side * side) as f64 * 8.0,
            time,
        );

        let data = noise(2 * product * product);
        let (left, right) = data.split_at(product * product);
        let (a, b) = (self.upload(left)?, self.upload(right)?);
        let c = self.zeros(product * product)?;
        let n = [Const::from(product as u32)];
        let args = [
            GpuArg::Scalar(&n),
            GpuArg::Buffer(&a),
            GpuArg::Buffer(&b),
            GpuArg::Buffer(&c),
        ];
        let dispatch = Dispatch {
            grid: Grid::Threads([product as u32, product as u32, 1]),
            threadgroup: [16, 16, 1],
        };
        for kernel in ["matmul_naive", "matmul_tiled"] {
            let program = self.compile(&module, kernel)?;
            self.once(&program, dispatch, &args)?;
            let found = floats(&c.read().map_err(text)?);
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            for i in (0..product).step_by((product / 7).max(1)) {
                for j in (0..product).step_by((product / 5).max(1)) {
                    let sum: f64 = (0..product)
                        .map(|k| {
                            f64::from(left[i * product + k]) * f64::from(right[k * product + j])
                        })
                        .sum();
                    ours.push(found[i * product + j]);
                    theirs.push(sum as f32);
                }
            }
            agree(kernel, &ours, &theirs, 1e-4)?;
            let time = self.time(&program, dispatch, &args)?;
            let operations = 2.0 * (product as f64).powi(3);
            self.compute_row(&format!("{kernel} {product}"), operations, time);
        }
        Ok(())
    }

    fn histogram(&self, size: usize) -> Result<()> {
        let module = module("histogram.inv", HISTOGRAM)?;
        let data: Vec<u8> = noise(size / 4)
            .iter()
            .flat_map(|x| ((x * 1e9) as i32).to_le_bytes())
            .collect();
        let content = self.gpu.buffer_from(&data).map_err(text)?;
        let counts = self.zeros(256)?;
        let program = self.compile(&module, "histogram")?;
        let args = [GpuArg::Buffer(&content), GpuArg::Buffer(&counts)];
        let dispatch = Dispatch::linear((size / 65536 * 256) as u32, 256);
        self.once(&program, dispatch, &args)?;
        let mut expected = [0u32; 256];
        for byte in &data {
            expected[usize::from(*byte)] += 1;
        }
        let found = counts.read().map_err(text)?;
        let same = found
            .chunks_exact(4)
            .zip(expected)
            .all(|(c, n)| u32::from_le_bytes([c[0], c[1], c[2], c[3]]) == n);
        if !same {
            return Err("histogram is wrong".to_string());
        }
        let time = self.time(&program, dispatch, &args)?;
        self.memory_row(&format!("histogram {} MiB", size >> 20), size as f64, time);
        Ok(())
    }

    /// What a dispatch costs when many are queued.
    fn dispatches(&self, count: u32) -> Result<()> {
        let module = module("streaming.inv", STREAMING)?;
        let program = self.compile(&module, "copy")?;
        let (x, y) = (self.zeros(256)?, self.zeros(256)?);
        let args = [GpuArg::Buffer(&x), GpuArg::Buffer(&y)];
        let dispatch = Dispatch::linear(256, 256);
        self.once(&program, dispatch, &args)?;
        let _alone = self.alone.lock();
        let start = Instant::now();
        for _ in 0..count {
            self.gpu.dispatch(&program, dispatch, &args).map_err(text)?;
        }
        self.gpu.wait().map_err(text)?;
        let each = start.elapsed().as_secs_f64() / f64::from(count);
        println!(
            "one dispatch of {count} recorded ones costs {:.2} us",
            each * 1e6
        );
        Ok(())
    }
}

/// The same through a queue of the device, with its checks and its order of dispatches and host accesses.
fn queued(name: &str, count: u32) -> Result<()> {
    let module = module("streaming.inv", STREAMING)?;
    let device = Device::named(name).map_err(text)?;
    let program = device.compile(&module, "copy").map_err(text)?;
    let buffer = || Buffer::<f32>::zeroed(&device, 256).map_err(text);
    let (x, y) = (buffer()?, buffer()?);
    let args = [Arg::from(&x), Arg::from(&y)];
    let queue = device.queue();
    let dispatch = Dispatch::linear(256, 256);
    queue.run(&program, dispatch, &args).map_err(text)?;
    let start = Instant::now();
    for _ in 0..count {
        queue.dispatch(&program, dispatch, &args).map_err(text)?;
    }
    queue.wait().map_err(text)?;
    let each = start.elapsed().as_secs_f64() / f64::from(count);
    println!(
        "one dispatch of {count} queued ones costs {:.2} us",
        each * 1e6
    );
    let start = Instant::now();
    let alone = count.min(1000);
    for _ in 0..alone {
        queue.run(&program, dispatch, &args).map_err(text)?;
    }
    let each = start.elapsed().as_secs_f64() / f64::from(alone);
    println!("one dispatch that is waited for costs {:.2} us", each * 1e6);
    Ok(())
}

/// Keeps a GPU busy while the host computes: one that is idle for a moment lowers its clock, and takes
/// seconds to raise it again.
fn keep_busy(gpu: &Gpu, alone: &Arc<Mutex<()>>, stop: &Arc<AtomicBool>) -> Result<JoinHandle<()>> {
    let module = module("streaming.inv", STREAMING)?;
    let options = CompileOptions::default();
    let program = gpu.compile(&module, "copy4", &options).map_err(text)?;
    let count = 1u32 << 22;
    let x = gpu.buffer(u64::from(count) * 4).map_err(text)?;
    let y = gpu.buffer(u64::from(count) * 4).map_err(text)?;
    let (gpu, alone, stop) = (gpu.clone(), alone.clone(), stop.clone());
    Ok(std::thread::spawn(move || {
        let args = [GpuArg::Buffer(&x), GpuArg::Buffer(&y)];
        let dispatch = Dispatch::linear(count / 4, 256);
        while !stop.load(Ordering::Relaxed) {
            let turn = alone.lock();
            let all = (0..16).try_for_each(|_| gpu.dispatch(&program, dispatch, &args));
            if all.and_then(|()| gpu.wait()).is_err() {
                return;
            }
            drop(turn);
            // Others get their turn.
            std::thread::sleep(Duration::from_micros(200));
        }
    }))
}

fn measure() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: usize| -> Result<usize> {
        arguments
            .next()
            .map_or(Ok(default), |n| n.parse().map_err(text))
    };
    let (adapter, divisor) = (number(0)?, number(1)?.max(1));
    let gpu = Gpu::open(adapter).map_err(text)?;
    let about = gpu.capabilities().clone();
    println!(
        "{}, simdgroups of {}",
        about.description, about.simdgroup_size
    );
    println!("| kernel                       |         time |          rate | of copy |");
    println!("|---|---|---|---|");
    let alone = Arc::new(Mutex::new(()));
    let stop = Arc::new(AtomicBool::new(false));
    let busy = if about.description.contains("llvmpipe") {
        None
    } else {
        Some(keep_busy(&gpu, &alone, &stop)?)
    };
    let mut bench = Bench {
        gpu,
        alone,
        ceiling: 0.0,
    };
    let result = rows_of_table(&mut bench, divisor);
    stop.store(true, Ordering::Relaxed);
    if let Some(busy) = busy {
        busy.join()
            .map_err(|_| "the thread that keeps the GPU busy panicked")?;
    }
    result?;
    queued(&about.name, dispatch_count(divisor))
}

/// How many dispatches are queued.
fn dispatch_count(divisor: usize) -> u32 {
    20_000.min(2_000_000 / divisor as u32).max(100)
}

fn rows_of_table(bench: &mut Bench, divisor: usize) -> Result<()> {
    bench.streaming((1 << 28) / divisor)?;
    bench.rows((8192 / divisor).max(16))?;
    let side = (divisor as f64).sqrt().ceil() as usize;
    bench.square(8192 / side / 32 * 32, (4096 / side / 16 * 16).max(64))?;
    bench.histogram(((1 << 30) / divisor).max(65536) / 65536 * 65536)?;
    bench.dispatches(dispatch_count(divisor))
}

fn main() -> ExitCode {
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
