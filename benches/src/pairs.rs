//! The kernels of the examples as Rust functions and as text, each pair on inputs of its own, ready to be run
//! again and again.

use std::path::Path;
use std::time::Duration;

use invar::ir::text::parse;
use invar::ir::verify;
use invar::kernel::Prepared;
use invar::{Arg, Buffer, Device, Dispatch, Grid, Program, Result};

/// An example, of which its kernels are used.
macro_rules! example {
    ($name:ident, $path:literal) => {
        #[path = $path]
        #[allow(dead_code, reason = "it is a program of its own")]
        mod $name;
    };
}
example!(histogram, "../../crates/invar/examples/histogram.rs");
example!(
    matrix_product,
    "../../crates/invar/examples/matrix_product.rs"
);
example!(n_body, "../../crates/invar/examples/n_body.rs");
example!(nearest, "../../crates/invar/examples/nearest.rs");
example!(scan, "../../crates/invar/examples/scan.rs");
example!(sobel, "../../crates/invar/examples/sobel.rs");
example!(softmax, "../../crates/invar/examples/softmax.rs");

/// A kernel in both forms.
pub trait Pair {
    /// The example's name, and on how much it runs.
    fn name(&self) -> &str;
    /// Runs the Rust form: how long the device took.
    fn rust(&mut self) -> Result<Duration>;
    /// Runs the text form: how long the device took.
    fn text(&mut self) -> Result<Duration>;
    /// The bytes that each has left in its outputs.
    fn outputs(&self) -> Result<[Vec<u8>; 2]>;
}

/// A kernel of a file of `examples/`, and its grid.
struct Text {
    program: Program,
    dispatch: Dispatch,
}

impl Text {
    fn new(device: &Device, kernel: [&str; 2], grid: Grid, threadgroup: [u32; 3]) -> Result<Text> {
        let [file, kernel] = kernel;
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let path = here
            .ancestors()
            .map(|folder| folder.join("examples").join(file))
            .find(|path| path.is_file());
        let text = path.and_then(|path| std::fs::read_to_string(path).ok());
        let module = verify(parse(file, &text.unwrap_or_default())?)?;
        Ok(Text {
            program: device.compile(&module, kernel)?,
            dispatch: Dispatch { grid, threadgroup },
        })
    }
}

/// The arguments of a launch of the text form.
type Args<I, O> = for<'a> fn(&'a I, &'a O) -> Vec<Arg<'a>>;

/// A launch of the text form.
fn step<I, O>(text: Text, args: Args<I, O>) -> (Text, Args<I, O>) {
    (text, args)
}

/// A pair: what both forms read, what each writes, and how they are launched.
struct Forms<I, O> {
    name: String,
    device: Device,
    inputs: I,
    outputs: [O; 2],
    rust: fn(&I, &mut O) -> Result<Duration>,
    text: Vec<(Text, Args<I, O>)>,
    bytes: fn(&O) -> Result<Vec<u8>>,
}

impl<I, O> Pair for Forms<I, O> {
    fn name(&self) -> &str {
        &self.name
    }

    fn rust(&mut self) -> Result<Duration> {
        (self.rust)(&self.inputs, &mut self.outputs[0])
    }

    fn text(&mut self) -> Result<Duration> {
        let queue = self.device.queue();
        let mut took = Duration::ZERO;
        for (text, args) in &self.text {
            let args = args(&self.inputs, &self.outputs[1]);
            let submission = queue.dispatch(&text.program, text.dispatch, &args)?;
            took += submission.wait()?.duration();
        }
        Ok(took)
    }

    fn outputs(&self) -> Result<[Vec<u8>; 2]> {
        let [rust, text] = &self.outputs;
        Ok([(self.bytes)(rust)?, (self.bytes)(text)?])
    }
}

/// Numbers from -1 to 1 times a scale.
fn numbers(count: usize, scale: f32) -> Vec<f32> {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((state >> 8) as f32 / (1 << 23) as f32 - 1.0) * scale
    };
    (0..count).map(|_| next()).collect()
}

fn bytes(count: usize) -> Vec<u8> {
    let all = numbers(count, 128.0);
    all.iter().map(|x| (x + 128.0) as u8).collect()
}

fn fours(count: usize) -> Vec<[f32; 4]> {
    let all = numbers(4 * count, 100.0);
    all.chunks_exact(4)
        .map(|p| [p[0], p[1], p[2], p[3]])
        .collect()
}

fn bits<T: invar::Element>(buffer: &Buffer<T>) -> Result<Vec<u8>> {
    let mut out = vec![0; buffer.bytes().size_bytes()];
    buffer.bytes().read_bytes(0, &mut out)?;
    Ok(out)
}

/// All of them, on inputs for the reference machine or on large ones.
///
/// # Errors
/// What is wrong with a kernel, or that the device cannot run it.
pub fn pairs(device: &Device, large: bool) -> Result<Vec<Box<dyn Pair>>> {
    let sized = |small: usize, much: usize| if large { much } else { small };
    Ok(vec![
        product(device, sized(48, 1024))?,
        weights(device, sized(3, 4096), sized(1000, 4096))?,
        edges(device, sized(40, 4096))?,
        counts(device, sized(10_000, 1 << 26))?,
        bodies(device, sized(40, 1 << 14))?,
        sums(device, sized(9000, 10_000_000))?,
        neighbours(device, sized(200, 10_000), sized(70, 1000))?,
    ])
}

fn product(device: &Device, n: usize) -> Result<Box<dyn Pair>> {
    type Inputs = (
        Prepared<matrix_product::product>,
        Buffer<f32>,
        Buffer<f32>,
        u32,
    );
    let (count, grid) = (n * n, Grid::threads([n as u32; 2]));
    let kernel = ["matrix_product.inv", "product"];
    let inputs: Inputs = (
        matrix_product::product::prepare(device)?,
        device.buffer_from(&numbers(count, 1.0))?,
        device.buffer_from(&numbers(count, 2.0))?,
        n as u32,
    );
    Ok(Box::new(Forms {
        name: format!("matrix product by tiles {n}"),
        device: device.clone(),
        inputs,
        outputs: [device.buffer_zeroed(count)?, device.buffer_zeroed(count)?],
        rust: |(kernel, a, b, n): &Inputs, c: &mut Buffer<f32>| {
            let grid = Grid::threads([*n; 2]);
            let launched = matrix_product::product::launch(kernel, grid, a, b, c, *n, *n)?;
            Ok(launched.wait()?.duration())
        },
        text: vec![step::<Inputs, Buffer<f32>>(
            Text::new(device, kernel, grid, [16, 16, 1])?,
            |(_, a, b, n), c| vec![a.into(), b.into(), c.into(), (*n).into(), (*n).into()],
        )],
        bytes: bits,
    }))
}

fn weights(device: &Device, rows: usize, n: usize) -> Result<Box<dyn Pair>> {
    type Inputs = (Prepared<softmax::softmax>, Buffer<f32>, u32, Grid);
    let (count, grid) = (rows * n, Grid::threadgroups(rows as u32));
    let inputs: Inputs = (
        softmax::softmax::prepare(device)?,
        device.buffer_from(&numbers(count, 8.0))?,
        n as u32,
        grid,
    );
    let kernel = ["softmax.inv", "softmax"];
    Ok(Box::new(Forms {
        name: format!("softmax {rows} rows of {n}"),
        device: device.clone(),
        inputs,
        outputs: [device.buffer_zeroed(count)?, device.buffer_zeroed(count)?],
        rust: |(kernel, x, n, grid): &Inputs, y: &mut Buffer<f32>| {
            let launched = softmax::softmax::launch(kernel, *grid, x, y, *n)?;
            Ok(launched.wait()?.duration())
        },
        text: vec![step::<Inputs, Buffer<f32>>(
            Text::new(device, kernel, grid, [256, 1, 1])?,
            |(_, x, n, _), y| vec![x.into(), y.into(), (*n).into()],
        )],
        bytes: bits,
    }))
}

fn edges(device: &Device, n: usize) -> Result<Box<dyn Pair>> {
    type Inputs = (Prepared<sobel::sobel>, Buffer<u8>, u32);
    let (count, grid) = (n * n, Grid::threads([n as u32; 2]));
    let inputs: Inputs = (
        sobel::sobel::prepare(device)?,
        device.buffer_from(&bytes(count))?,
        n as u32,
    );
    Ok(Box::new(Forms {
        name: format!("Sobel {n}"),
        device: device.clone(),
        inputs,
        outputs: [device.buffer_zeroed(count)?, device.buffer_zeroed(count)?],
        rust: |(kernel, picture, n): &Inputs, edges: &mut Buffer<u8>| {
            let grid = Grid::threads([*n; 2]);
            let launched = sobel::sobel::launch(kernel, grid, picture, edges, *n, *n)?;
            Ok(launched.wait()?.duration())
        },
        text: vec![step::<Inputs, Buffer<u8>>(
            Text::new(device, ["sobel.inv", "sobel"], grid, [32, 2, 1])?,
            |(_, picture, n), edges| vec![picture.into(), edges.into(), (*n).into(), (*n).into()],
        )],
        bytes: bits,
    }))
}

fn counts(device: &Device, count: usize) -> Result<Box<dyn Pair>> {
    type Inputs = (Prepared<histogram::histogram>, Buffer<u8>, Grid);
    let grid = Grid::threads((count / 64) as u32);
    let inputs: Inputs = (
        histogram::histogram::prepare(device)?,
        device.buffer_from(&bytes(count))?,
        grid,
    );
    let kernel = ["byte_histogram.inv", "byte_histogram"];
    Ok(Box::new(Forms {
        name: format!("histogram of {count} bytes"),
        device: device.clone(),
        inputs,
        outputs: [device.buffer_zeroed(256)?, device.buffer_zeroed(256)?],
        rust: |(kernel, data, grid): &Inputs, bins: &mut Buffer<u32>| {
            let launched = histogram::histogram::launch(kernel, *grid, data, bins)?;
            Ok(launched.wait()?.duration())
        },
        text: vec![step::<Inputs, Buffer<u32>>(
            Text::new(device, kernel, grid, [256, 1, 1])?,
            |(_, data, _), bins| vec![data.into(), bins.into()],
        )],
        bytes: bits,
    }))
}

fn bodies(device: &Device, count: usize) -> Result<Box<dyn Pair>> {
    type Inputs = (Prepared<n_body::advance>, Buffer<n_body::Body>, Grid);
    let grid = Grid::threads(count as u32);
    let some = fours(2 * count);
    let body = |parts: &[[f32; 4]]| n_body::Body {
        position: [parts[0][0], parts[0][1], parts[0][2]],
        mass: parts[0][3].abs(),
        velocity: [parts[1][0], parts[1][1], parts[1][2]],
    };
    let all: Vec<n_body::Body> = some.chunks_exact(2).map(body).collect();
    let inputs: Inputs = (
        n_body::advance::prepare(device)?,
        device.buffer_from(&all)?,
        grid,
    );
    Ok(Box::new(Forms {
        name: format!("n-body {count}"),
        device: device.clone(),
        inputs,
        outputs: [device.buffer_zeroed(count)?, device.buffer_zeroed(count)?],
        rust: |(kernel, now, grid): &Inputs, after: &mut Buffer<n_body::Body>| {
            let launched = n_body::advance::launch(kernel, *grid, now, after, YEARS)?;
            Ok(launched.wait()?.duration())
        },
        text: vec![step::<Inputs, Buffer<n_body::Body>>(
            Text::new(device, ["n_body.inv", "advance"], grid, [32, 1, 1])?,
            |(_, now, _), after| vec![now.into(), after.into(), YEARS.into()],
        )],
        bytes: bits,
    }))
}

/// A step of bodies in years.
const YEARS: f32 = 0.001;

/// The sums within parts, those of the parts, their sums, and that of all.
type Sums = (Buffer<u32>, Buffer<u32>, Buffer<u32>, Buffer<u32>);

fn sums(device: &Device, count: usize) -> Result<Box<dyn Pair>> {
    type Inputs = (Prepared<scan::scan>, Prepared<scan::add>, Buffer<u32>);
    let groups = count.div_ceil(4096);
    let numbers: Vec<u32> = bytes(count).into_iter().map(u32::from).collect();
    let inputs: Inputs = (
        scan::scan::prepare(device)?,
        scan::add::prepare(device)?,
        device.buffer_from(&numbers)?,
    );
    let outputs = || -> Result<Sums> {
        let of = |length| device.buffer_zeroed(length);
        Ok((of(count)?, of(groups)?, of(groups)?, of(1)?))
    };
    let text = |kernel, grid| Text::new(device, ["scan.inv", kernel], grid, [256, 1, 1]);
    Ok(Box::new(Forms {
        name: format!("scan of {count}"),
        device: device.clone(),
        inputs,
        outputs: [outputs()?, outputs()?],
        rust: |(scan, add, x): &Inputs, (before, totals, starts, whole): &mut Sums| {
            let parts = Grid::threadgroups(totals.len() as u32);
            let first = scan::scan::launch(scan, parts, x, before, totals)?.wait()?;
            let one = Grid::threadgroups(1);
            let second = scan::scan::launch(scan, one, totals, starts, whole)?.wait()?;
            let all = Grid::threads(before.len() as u32);
            let third = scan::add::launch(add, all, before, starts)?.wait()?;
            Ok(first.duration() + second.duration() + third.duration())
        },
        text: vec![
            step::<Inputs, Sums>(
                text("scan", Grid::threadgroups(groups as u32))?,
                |(_, _, x), (before, totals, _, _)| vec![x.into(), before.into(), totals.into()],
            ),
            step::<Inputs, Sums>(
                text("scan", Grid::threadgroups(1))?,
                |_, (_, totals, starts, whole)| vec![totals.into(), starts.into(), whole.into()],
            ),
            step::<Inputs, Sums>(
                text("add", Grid::threads(count as u32))?,
                |_, (before, _, starts, _)| vec![before.into(), starts.into()],
            ),
        ],
        bytes: |(before, _, _, whole)| Ok([bits(before)?, bits(whole)?].concat()),
    }))
}

fn neighbours(device: &Device, points: usize, queries: usize) -> Result<Box<dyn Pair>> {
    type Inputs = (
        Prepared<nearest::nearest>,
        Buffer<[f32; 4]>,
        Buffer<[f32; 4]>,
    );
    let grid = Grid::threads(queries as u32);
    let some = fours(points + queries);
    let inputs: Inputs = (
        nearest::nearest::prepare(device)?,
        device.buffer_from(&some[queries..])?,
        device.buffer_from(&some[..queries])?,
    );
    let output = || device.buffer_zeroed(8 * queries);
    Ok(Box::new(Forms {
        name: format!("nearest of {points} to {queries}"),
        device: device.clone(),
        inputs,
        outputs: [output()?, output()?],
        rust: |(kernel, points, queries): &Inputs, found: &mut Buffer<u32>| {
            let grid = Grid::threads(queries.len() as u32);
            let launched = nearest::nearest::launch(kernel, grid, points, queries, found)?;
            Ok(launched.wait()?.duration())
        },
        text: vec![step::<Inputs, Buffer<u32>>(
            Text::new(device, ["nearest.inv", "nearest"], grid, [64, 1, 1])?,
            |(_, points, queries), found| vec![points.into(), queries.into(), found.into()],
        )],
        bytes: bits,
    }))
}
