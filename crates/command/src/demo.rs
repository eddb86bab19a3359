//! `invar demo`: what Invar does, on kernels that are in the program.
//!
//! Two mistakes in a kernel are caught, the corrected kernel runs on a file of floats, and six more run;
//! each answer is compared with one computed here by other means. The kernels, arrays and pictures are left in
//! a folder of the demo's own, to go on from.

use std::cell::Cell;
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::files::FileError;
use crate::npy;
use clap::{Args, Parser};
use invar::{Arg, Buffer, Device, Dispatch, Feature, Grid, Program, Queue};
use invar_ir::diagnostic::path_text;
use invar_ir::random::split_mix_64;
use invar_ir::{Scalar, text, verify};

use crate::action::{Command, perform};
use crate::console::show;
use crate::outcome::{Refusal, Verdict};

#[derive(Args)]
pub struct DemoArgs {
    /// A picture for the Sobel filter, in place of the Mandelbrot set that the demo draws.
    #[arg(value_name = "PICTURE.png")]
    picture: Option<PathBuf>,
    /// Where the kernels run: a device of `invar devices`.
    #[arg(long, value_name = "DEVICE", default_value = "default")]
    device: String,
    /// Sizes for a device that is slow.
    #[arg(long)]
    small: bool,
    /// The folder for kernels, arrays and pictures, which must not be there yet.
    #[arg(long, value_name = "FOLDER", default_value = "invar-demo")]
    out: PathBuf,
}

/// A kernel of the demo: its name, and its file.
macro_rules! kernels {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../kernels/", $name, ".inv")))),*]
    };
}
const KERNELS: &[(&str, &str)] = kernels! {
    "smooth-broken" "smooth" "noise" "matmul" "mandelbrot" "softmax" "rms_norm" "sobel" "byte_histogram"
};

fn kernel(name: &str) -> &'static str {
    let found = KERNELS.iter().find(|(known, _)| *known == name);
    found.expect("a kernel of the demo").1
}

/// Numbers that look random, the same in every run.
struct Random(u64);

impl Random {
    /// From -1 to 1.
    fn float(&mut self) -> f32 {
        (split_mix_64(&mut self.0) >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    fn floats(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.float()).collect()
    }
}

type Outcome = Result<(), Refusal>;

pub fn demo(args: &DemoArgs) -> Result<Verdict, Refusal> {
    let device = Device::named(&args.device)?;
    // What cannot be read is told before anything is made.
    let picture = args.picture.as_deref().map(read_png).transpose()?;
    let folder = &args.out;
    std::fs::create_dir(folder).map_err(|error| {
        let why = match error.kind() {
            std::io::ErrorKind::AlreadyExists => {
                "is there already: remove it, or name another folder with --out".to_string()
            }
            _ => format!("cannot be made: {error}"),
        };
        Refusal(format!("{} {why}", path_text(folder)))
    })?;
    for (name, text) in KERNELS {
        std::fs::write(folder.join(format!("{name}.inv")), text)?;
    }
    let demo = Demo {
        queue: device.queue(),
        device,
        name: &args.device,
        folder,
        small: args.small,
        wrong: Cell::new(false),
    };
    show("== 1. A kernel with a missing barrier and reads past the ends of its buffer\n");
    if demo.invar(&["check", &demo.file("smooth-broken.inv")])? != Verdict::Errors {
        show("the mistakes went unnoticed");
        demo.wrong.set(true);
    }
    show("\n== 2. The corrected kernel, under the same checkers\n");
    demo.expect_clean(&["check", &demo.file("smooth.inv")])?;
    demo.smooth()?;
    show("\n== 4. Kernels as one first writes them\n");
    demo.say_device();
    demo.matmul()?;
    demo.mandelbrot()?;
    demo.softmax()?;
    demo.rms_norm()?;
    demo.sobel(match picture {
        Some(picture) => picture,
        None => read_png(&folder.join("mandelbrot.png"))?,
    })?;
    demo.byte_histogram()?;
    if demo.wrong.get() {
        show("\nan answer is wrong");
        return Ok(Verdict::Errors);
    }
    show(&format!(
        "\nevery answer is right; kernels and pictures are in {}",
        path_text(folder)
    ));
    Ok(Verdict::Clean)
}

/// An argument as a shell takes it.
fn quoted(arg: &str) -> String {
    if arg.contains(['(', ' ']) {
        format!("\"{arg}\"")
    } else {
        arg.to_string()
    }
}

struct Demo<'a> {
    device: Device,
    queue: Queue,
    /// The device as the user named it.
    name: &'a str,
    folder: &'a Path,
    small: bool,
    /// Whether an answer was wrong.
    wrong: Cell<bool>,
}

impl Demo<'_> {
    /// The path of a file of the demo's folder.
    fn file(&self, name: &str) -> String {
        self.folder.join(name).to_string_lossy().into_owned()
    }

    /// Runs the command with these arguments, and shows them as somebody would type them.
    fn invar(&self, args: &[&str]) -> Result<Verdict, Refusal> {
        let typed: Vec<String> = args.iter().map(|arg| quoted(arg)).collect();
        show(&format!("$ invar {}", typed.join(" ")));
        let mut command = Command::try_parse_from(["invar"].iter().chain(args))?;
        perform(&mut command.action, &[])
    }

    fn expect_clean(&self, args: &[&str]) -> Outcome {
        if self.invar(args)? != Verdict::Clean {
            self.wrong.set(true);
        }
        Ok(())
    }

    /// Means of neighbours, from a file to a file.
    fn smooth(&self) -> Outcome {
        let count = if self.small { 65_536 } else { 4_194_304 };
        show(&format!(
            "\n== 3. The corrected kernel on {count} floats from a file\n"
        ));
        let (x, y) = (self.file("x.npy"), self.file("y.npy"));
        let (grid, zeros) = (count.to_string(), format!("zeros({count})"));
        let run = |kernel: &str, rest: &[&str]| {
            let file = self.file(kernel);
            let device = ["run", &file, "--device", self.name, "--grid", &grid];
            self.expect_clean(&[&device, rest].concat())
        };
        run(
            "noise.inv",
            &[
                "--arg",
                &format!("x={zeros}"),
                "--arg",
                "seed=7",
                "--out",
                &format!("x=@{x}"),
            ],
        )?;
        run(
            "smooth.inv",
            &[
                "--arg",
                &format!("x=@{x}"),
                "--arg",
                &format!("y={zeros}"),
                "--out",
                &format!("y=@{y}"),
            ],
        )?;
        let floats = |path: &str| -> Result<Vec<f64>, Refusal> {
            let array = npy::read(Path::new(path))?;
            let four = array.bytes.chunks_exact(4);
            Ok(four
                .map(|b| f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]])))
                .collect())
        };
        let (before, after) = (floats(&x)?, floats(&y)?);
        let last = before.len().saturating_sub(1);
        let right: Vec<f64> = (0..before.len())
            .map(|i| (before[i.saturating_sub(1)] + before[i] + before[(i + 1).min(last)]) / 3.0)
            .collect();
        let lost = before.len().abs_diff(count) + after.len().abs_diff(count);
        self.check("floats that are missing", lost as f64, 0.0);
        self.check("absolute error of the means", worst(&after, &right), 1e-6);
        Ok(())
    }

    fn say_device(&self) {
        let able = self.device.capabilities();
        let threads = match able.host_threads {
            0 => String::new(),
            n => format!(", {n} threads"),
        };
        show(&format!(
            "on device `{}`: {}{threads}\n",
            able.name, able.description
        ));
    }

    /// Prints how wrong a result is.
    fn check(&self, what: &str, error: f64, bound: f64) {
        // NaN is wrong too.
        let right = error <= bound;
        let verdict = if right { "" } else { ": WRONG" };
        show(&format!(
            "{:16} {what}: {error:.2e}, at most {bound:.0e} is right{verdict}",
            ""
        ));
        if !right {
            self.wrong.set(true);
        }
    }

    /// Whether single precision is as the host's (A9).
    fn is_exact(&self) -> bool {
        self.device
            .capabilities()
            .supports(Feature::IeeeFloat(Scalar::F32))
    }

    fn program(&self, source: &str, kernel: &str) -> Result<Program, Refusal> {
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
        show(&format!(
            "{:16} {:9.3} ms  {:8.2} {unit}",
            program.kernel().name,
            seconds * 1e3,
            work / seconds / 1e9
        ));
        Ok(())
    }

    fn matmul(&self) -> Outcome {
        let n = if self.small { 48 } else { 1024 };
        let mut random = Random(1);
        let (a, b) = (random.floats(n * n), random.floats(n * n));
        let program = self.program(kernel("matmul"), "matmul")?;
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
        self.check("the product", worst(&got, &right), 1e-8 * (n * n) as f64);
        Ok(())
    }

    fn mandelbrot(&self) -> Outcome {
        let (size, limit) = if self.small { (64, 64) } else { (2048, 256) };
        let (left, top, scale) = (-2.0f32, -1.25f32, 2.5 / size as f32);
        let mut source = kernel("mandelbrot").to_string();
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
        self.check("points that differ", wrong as f64, bound);
        let shade = |n: &u32| match *n {
            n if n >= limit => 0,
            n => (255.0 * (f64::from(n) / f64::from(limit)).powf(0.3)) as u8,
        };
        let picture: Vec<u8> = got.iter().map(shade).collect();
        write_png(&self.folder.join("mandelbrot.png"), size, size, &picture)
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
        let program = self.program(kernel("softmax"), "softmax")?;
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
                error = larger(error, (f64::from(*got) / right - 1.0).abs());
            }
        }
        self.check("relative error", error, 1e-5);
        Ok(())
    }

    fn rms_norm(&self) -> Outcome {
        let (rows, n) = self.rows();
        let mut random = Random(3);
        let (data, weights) = (random.floats(rows * n), random.floats(n));
        let program = self.program(kernel("rms_norm"), "rms_norm")?;
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
                error = larger(error, (f64::from(*got) - right).abs());
            }
        }
        self.check("absolute error", error, 1e-5);
        Ok(())
    }

    fn sobel(&self, (width, height, grey): Picture) -> Outcome {
        let program = self.program(kernel("sobel"), "sobel")?;
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
        self.check("points that differ", wrong as f64, 0.0);
        write_png(&self.folder.join("sobel.png"), width, height, &got)
    }

    fn byte_histogram(&self) -> Outcome {
        // Of the kernels' own text, again and again.
        let once = KERNELS.iter().map(|(_, text)| *text).collect::<String>();
        let once = once.as_bytes();
        let size = if self.small { once.len() } else { 64 << 20 };
        let bytes: Vec<u8> = once.iter().copied().cycle().take(size).collect();
        let program = self.program(kernel("byte_histogram"), "byte_histogram")?;
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
        self.check("counts that differ", wrong as f64, 0.0);
        Ok(())
    }
}

/// The largest difference; NaN if there is one.
fn worst(got: &[f64], right: &[f64]) -> f64 {
    let differences = got.iter().zip(right).map(|(a, b)| (a - b).abs());
    differences.fold(0.0, larger)
}

/// The larger error; NaN if one is.
fn larger(most: f64, error: f64) -> f64 {
    if error > most || error.is_nan() {
        error
    } else {
        most
    }
}

fn write_png(path: &Path, width: usize, height: usize, grey: &[u8]) -> Outcome {
    let file = BufWriter::new(File::create(path).map_err(|e| FileError::io(path, &e))?);
    let mut encoder = png::Encoder::new(file, width as u32, height as u32);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header()?.write_image_data(grey)?;
    show(&format!("{:16} picture: {}", "", path_text(path)));
    Ok(())
}

/// Width, height and the brightness of each point.
type Picture = (usize, usize, Vec<u8>);

fn read_png(path: &Path) -> Result<Picture, Refusal> {
    let file = File::open(path).map_err(|e| FileError::io(path, &e))?;
    let refuse = |why: String| Refusal(format!("{}: {why}", path_text(path)));
    let mut decoder = png::Decoder::new(BufReader::new(file));
    decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::STRIP_16);
    let mut reader = decoder
        .read_info()
        .map_err(|e| refuse(format!("not a PNG picture: {e}")))?;
    let size = reader.output_buffer_size();
    let mut bytes = vec![0; size.ok_or_else(|| refuse("the picture is too large".to_string()))?];
    let info = reader
        .next_frame(&mut bytes)
        .map_err(|e| refuse(e.to_string()))?;
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
