//! Runs the kernels of `examples/` on the default device, checks each against a result computed
//! here by other means, and prints how fast it was.
//!
//! ```sh
//! cargo run --release -p invar --example showcase -- TEXT_FILE PICTURE.png OUTPUT_FOLDER
//! ```
//!
//! With `--small` in front the sizes suit the checked device: `INVAR_SHOWCASE_DEVICE=checked`.

#![expect(clippy::print_stdout, reason = "an example tells what it does")]

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use invar::ir::{Scalar, text, verify};
use invar::{Arg, Buffer, Device, Dispatch, Feature, Grid, Program, Queue};

type Outcome = Result<(), Box<dyn Error>>;

/// Numbers that look random, the same in every run (Marsaglia's xorshift).
struct Random(u64);

impl Random {
    /// From -1 to 1.
    fn float(&mut self) -> f32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    fn floats(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.float()).collect()
    }
}

struct Showcase {
    device: Device,
    queue: Queue,
    small: bool,
}

impl Showcase {
    /// Whether single precision is as the host's (A9).
    fn is_exact(&self) -> bool {
        self.device
            .capabilities()
            .supports(Feature::IeeeFloat(Scalar::F32))
    }

    fn program(&self, source: &str, kernel: &str) -> Result<Program, Box<dyn Error>> {
        let module = verify(text::parse(kernel, source)?)?;
        Ok(self.device.compile(&module, kernel)?)
    }

    /// Runs a kernel several times and prints its rate: `work` of a unit each time.
    fn measure(
        &self,
        program: &Program,
        grid: [u32; 3],
        threadgroup: [u32; 3],
        args: &[Arg],
        (work, unit): (f64, &str),
    ) -> Outcome {
        let dispatch = Dispatch {
            grid: Grid::Threads(grid),
            threadgroup,
        };
        let patience = Duration::from_millis(if self.small { 0 } else { 500 });
        let start = Instant::now();
        let mut runs = Vec::new();
        while runs.len() < 3 || start.elapsed() < patience {
            runs.push(self.queue.run(program, dispatch, args)?.duration());
        }
        runs.sort();
        let seconds = runs[runs.len() / 2].as_secs_f64();
        println!(
            "{:16} {:9.3} ms  {:8.2} {unit}",
            program.kernel().name,
            seconds * 1e3,
            work / seconds / 1e9
        );
        Ok(())
    }

    fn matmul(&self) -> Outcome {
        let n = if self.small { 48 } else { 1024 };
        let mut random = Random(1);
        let (a, b) = (random.floats(n * n), random.floats(n * n));
        let program = self.program(include_str!("../../../examples/matmul.inv"), "matmul")?;
        let c = Buffer::<f32>::zeroed(&self.device, n * n)?;
        let buffers = [
            Buffer::from_slice(&self.device, &a)?,
            Buffer::from_slice(&self.device, &b)?,
        ];
        let args = [
            Arg::from(&buffers[0]),
            Arg::from(&buffers[1]),
            Arg::from(&c),
            Arg::from(n as u32),
        ];
        let size = n as u32;
        let work = 2.0 * (n as f64).powi(3);
        self.measure(
            &program,
            [size, size, 1],
            [64, 4, 1],
            &args,
            (work, "GFLOP/s"),
        )?;
        // c v = a (b v) for a vector v, in double precision (Freivalds' check).
        let v: Vec<f64> = random.floats(n).into_iter().map(f64::from).collect();
        let times = |m: &[f32], v: &[f64]| -> Vec<f64> {
            let row = |r: &[f32]| r.iter().zip(v).map(|(m, v)| f64::from(*m) * v).sum();
            m.chunks(n).map(row).collect()
        };
        let right = times(&a, &times(&b, &v));
        let got = times(&c.read()?, &v);
        check("the product", worst(&got, &right), 1e-8 * (n * n) as f64)
    }

    fn mandelbrot(&self, folder: &Path) -> Outcome {
        let (size, limit) = if self.small { (64, 64) } else { (2048, 256) };
        let (left, top, scale) = (-2.0f32, -1.25f32, 2.5 / size as f32);
        let mut source = include_str!("../../../examples/mandelbrot.inv").to_string();
        let mut bound = 0.0;
        if !self.is_exact() {
            // Rounded otherwise, points at the edge of the set take another number of steps.
            source = source.replace(") strict {", ") {");
            bound = 0.01 * (size * size) as f64;
        }
        let program = self.program(&source, "mandelbrot")?;
        let steps = Buffer::<u32>::zeroed(&self.device, size * size)?;
        let args = [
            Arg::from(&steps),
            Arg::from(size as u32),
            Arg::from(left),
            Arg::from(top),
            Arg::from(scale),
            Arg::from(limit),
        ];
        let steps_of = |x: usize, y: usize| {
            let (cx, cy) = (left + x as f32 * scale, top + y as f32 * scale);
            let (mut zx, mut zy, mut n) = (0.0f32, 0.0f32, 0);
            while zx * zx + zy * zy <= 4.0 && n < limit {
                (zx, zy) = (zx * zx - zy * zy + cx, 2.0 * zx * zy + cy);
                n += 1;
            }
            n
        };
        let right: Vec<u32> = (0..size * size)
            .map(|i| steps_of(i % size, i / size))
            .collect();
        // Seven operations a step.
        let work = 7.0 * right.iter().map(|n| f64::from(*n)).sum::<f64>();
        let edge = size as u32;
        self.measure(
            &program,
            [edge, edge, 1],
            [64, 4, 1],
            &args,
            (work, "GFLOP/s"),
        )?;
        let got = steps.read()?;
        let wrong = got.iter().zip(&right).filter(|(a, b)| a != b).count();
        check("points that differ", wrong as f64, bound)?;
        let shade = |n: &u32| match *n {
            n if n >= limit => 0,
            n => (255.0 * (f64::from(n) / f64::from(limit)).powf(0.3)) as u8,
        };
        let picture: Vec<u8> = got.iter().map(shade).collect();
        write_png(&folder.join("mandelbrot.png"), size, size, &picture)
    }

    fn rows(&self) -> (usize, usize) {
        if self.small { (3, 500) } else { (4096, 4096) }
    }

    fn softmax(&self) -> Outcome {
        let (rows, n) = self.rows();
        let data: Vec<f32> = Random(2)
            .floats(rows * n)
            .into_iter()
            .map(|v| 8.0 * v)
            .collect();
        let program = self.program(include_str!("../../../examples/softmax.inv"), "softmax")?;
        let x = Buffer::from_slice(&self.device, &data)?;
        let y = Buffer::<f32>::zeroed(&self.device, rows * n)?;
        let args = [Arg::from(&x), Arg::from(&y), Arg::from(n as u32)];
        let moved = (8 * rows * n) as f64;
        let grid = [256 * rows as u32, 1, 1];
        self.measure(&program, grid, [256, 1, 1], &args, (moved, "GB/s"))?;
        let mut error = 0.0f64;
        for (row, got) in data.chunks(n).zip(y.read()?.chunks(n)) {
            let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let exp = |v: &f32| (f64::from(*v) - f64::from(most)).exp();
            let sum: f64 = row.iter().map(exp).sum();
            for (v, got) in row.iter().zip(got) {
                let right = exp(v) / sum;
                error = error.max((f64::from(*got) / right - 1.0).abs());
            }
        }
        check("relative error", error, 1e-5)
    }

    fn rms_norm(&self) -> Outcome {
        let (rows, n) = self.rows();
        let mut random = Random(3);
        let (data, weights) = (random.floats(rows * n), random.floats(n));
        let program = self.program(include_str!("../../../examples/rms_norm.inv"), "rms_norm")?;
        let x = Buffer::from_slice(&self.device, &data)?;
        let weight = Buffer::from_slice(&self.device, &weights)?;
        let y = Buffer::<f32>::zeroed(&self.device, rows * n)?;
        let args = [
            Arg::from(&x),
            Arg::from(&weight),
            Arg::from(&y),
            Arg::from(n as u32),
            Arg::from(1e-5f32),
        ];
        let moved = (8 * rows * n) as f64;
        let grid = [256 * rows as u32, 1, 1];
        self.measure(&program, grid, [256, 1, 1], &args, (moved, "GB/s"))?;
        let mut error = 0.0f64;
        for (row, got) in data.chunks(n).zip(y.read()?.chunks(n)) {
            let squares: f64 = row.iter().map(|v| f64::from(*v).powi(2)).sum();
            let scale = 1.0 / (squares / n as f64 + f64::from(1e-5f32)).sqrt();
            for ((v, w), got) in row.iter().zip(&weights).zip(got) {
                let right = f64::from(*v) * scale * f64::from(*w);
                error = error.max((f64::from(*got) - right).abs());
            }
        }
        check("absolute error", error, 1e-5)
    }

    fn sobel(&self, picture: &Path, folder: &Path) -> Outcome {
        let (width, height, grey) = read_png(picture)?;
        let program = self.program(include_str!("../../../examples/sobel.inv"), "sobel")?;
        let x = Buffer::from_slice(&self.device, &grey)?;
        let y = Buffer::<u8>::zeroed(&self.device, grey.len())?;
        let (w, h) = (width as u32, height as u32);
        let args = [Arg::from(&x), Arg::from(&y), Arg::from(w), Arg::from(h)];
        let moved = 2.0 * grey.len() as f64;
        self.measure(&program, [w, h, 1], [128, 2, 1], &args, (moved, "GB/s"))?;
        let at = |x: isize, y: isize| {
            let x = x.clamp(0, width as isize - 1) as usize;
            let y = y.clamp(0, height as isize - 1) as usize;
            i32::from(grey[y * width + x])
        };
        let got = y.read()?;
        // Where roots may be rounded otherwise, that of a square can be a little less than whole.
        let slack = u8::from(!self.is_exact());
        let mut wrong = 0;
        for (i, got) in got.iter().enumerate() {
            let (x, y) = ((i % width) as isize, (i / width) as isize);
            let across = |d: isize| at(x + d, y - 1) + 2 * at(x + d, y) + at(x + d, y + 1);
            let down = |d: isize| at(x - 1, y + d) + 2 * at(x, y + d) + at(x + 1, y + d);
            let (gx, gy) = (across(1) - across(-1), down(1) - down(-1));
            let right = f64::from(gx * gx + gy * gy).sqrt() as u8;
            wrong += usize::from(got.abs_diff(right) > slack);
        }
        check("points that differ", wrong as f64, 0.0)?;
        write_png(&folder.join("sobel.png"), width, height, &got)
    }

    fn byte_histogram(&self, file: &Path) -> Outcome {
        let once = std::fs::read(file)?;
        if once.is_empty() {
            return Err(format!("{} is empty", file.display()).into());
        }
        let size = if self.small { once.len() } else { 64 << 20 };
        let bytes: Vec<u8> = once.iter().copied().cycle().take(size).collect();
        let program = self.program(
            include_str!("../../../examples/byte_histogram.inv"),
            "byte_histogram",
        )?;
        let x = Buffer::from_slice(&self.device, &bytes)?;
        let mut right = vec![0u32; 256];
        for byte in &bytes {
            right[usize::from(*byte)] += 1;
        }
        let threads = if self.small { 512 } else { 16384 };
        let counts = Buffer::<u32>::zeroed(&self.device, 256)?;
        let args = [Arg::from(&x), Arg::from(&counts)];
        let dispatch = Dispatch {
            grid: Grid::Threads([threads, 1, 1]),
            threadgroup: [256, 1, 1],
        };
        self.queue.run(&program, dispatch, &args)?;
        let got = counts.read()?;
        // Further runs count on.
        let work = (size as f64, "GB/s");
        self.measure(&program, [threads, 1, 1], [256, 1, 1], &args, work)?;
        let wrong = got.iter().zip(&right).filter(|(a, b)| a != b).count();
        check("counts that differ", wrong as f64, 0.0)
    }
}

/// Prints how wrong a result is, and fails if that is too much.
fn check(what: &str, error: f64, bound: f64) -> Outcome {
    println!(
        "{:16} {what}: {error:.2e}, at most {bound:.0e} is right",
        ""
    );
    if error <= bound {
        Ok(())
    } else {
        Err(format!("{what}: {error:e} is more than {bound:e}: the answer is wrong").into())
    }
}

/// The largest difference; NaN if there is one.
fn worst(got: &[f64], right: &[f64]) -> f64 {
    let differences = got.iter().zip(right).map(|(a, b)| (a - b).abs());
    differences.fold(0.0, |most, d| if d > most || d.is_nan() { d } else { most })
}

fn write_png(path: &Path, width: usize, height: usize, grey: &[u8]) -> Outcome {
    let file = BufWriter::new(File::create(path)?);
    let mut encoder = png::Encoder::new(file, width as u32, height as u32);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header()?.write_image_data(grey)?;
    println!("{:16} picture: {}", "", path.display());
    Ok(())
}

/// Width, height and the brightness of each point.
fn read_png(path: &Path) -> Result<(usize, usize, Vec<u8>), Box<dyn Error>> {
    let mut decoder = png::Decoder::new(std::io::BufReader::new(File::open(path)?));
    decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::STRIP_16);
    let mut reader = decoder.read_info()?;
    let size = reader
        .output_buffer_size()
        .ok_or("the picture is too large")?;
    let mut bytes = vec![0; size];
    let info = reader.next_frame(&mut bytes)?;
    let samples = info.color_type.samples();
    let brightness = |p: &[u8]| match p {
        // The weights of BT.601, in 256ths.
        [r, g, b, ..] => {
            ((77 * u32::from(*r) + 150 * u32::from(*g) + 29 * u32::from(*b)) >> 8) as u8
        }
        [grey, ..] => *grey,
        [] => 0,
    };
    let points = bytes[..info.buffer_size()].chunks(samples);
    let grey: Vec<u8> = points.map(brightness).collect();
    Ok((info.width as usize, info.height as usize, grey))
}

fn main() -> ExitCode {
    match show() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn show() -> Outcome {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let small = args.first().is_some_and(|a| a == "--small");
    if small {
        args.remove(0);
    }
    let [text, picture, folder] = &args[..] else {
        return Err("usage: showcase [--small] TEXT_FILE PICTURE.png OUTPUT_FOLDER".into());
    };
    let device = match std::env::var("INVAR_SHOWCASE_DEVICE") {
        Ok(name) => Device::named(&name)?,
        Err(_) => Device::default()?,
    };
    let able = device.capabilities();
    let threads = match able.host_threads {
        0 => String::new(),
        n => format!(", {n} threads"),
    };
    println!("on device `{}`: {}{threads}\n", able.name, able.description);
    let showcase = Showcase {
        queue: device.queue(),
        device,
        small,
    };
    let folder = Path::new(folder);
    showcase.matmul()?;
    showcase.mandelbrot(folder)?;
    showcase.softmax()?;
    showcase.rms_norm()?;
    showcase.sobel(Path::new(picture), folder)?;
    showcase.byte_histogram(Path::new(text))?;
    println!("\nevery answer is right");
    Ok(())
}
