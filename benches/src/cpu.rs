//! The CPU device against the same kernels in C with OpenMP, OpenBLAS, PoCL and Numba, on the same
//! inputs. The two sides take turns; before a row counts, what both computed is compared.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use invar::Device;

use crate::cases::{Case, Ready, cases};
use crate::peer::{Kind, Peer, Peers};
use crate::table::{Row, Table, median};

/// How long the two sides of a row take turns, and how often at least: a shared machine has slow seconds,
/// and they should hit both alike.
const TIME: Duration = Duration::from_secs(10);
const TURNS: usize = 5;
/// Before each turn: threads of the other side may go on spinning, waiting for work, after their answer, and
/// would take the processors from this side. OpenBLAS's do for 2^28 cycles of the processor's clock, a
/// tenth of a second at 2.6 GHz.
const PAUSE: Duration = Duration::from_millis(200);
/// The runs of a turn that count, after one that does not.
const RUNS: usize = 8;

/// A case, whose kernel it is measured against, that kernel's name, and what is promised.
const ROWS: [(&str, Kind, &str, &str, f64); 18] = [
    (
        "naive matmul 1024",
        Kind::C,
        "matmul",
        "hand-blocked C",
        0.65,
    ),
    ("naive matmul 1024", Kind::Blas, "matmul", "OpenBLAS", 0.85),
    ("naive matmul 1040", Kind::Blas, "matmul", "OpenBLAS", 1.0),
    (
        "simdgroup matmul 1024",
        Kind::Blas,
        "matmul",
        "OpenBLAS",
        0.8,
    ),
    ("Mandelbrot 2048", Kind::C, "mandelbrot", "scalar C", 20.0),
    (
        "Mandelbrot 2048",
        Kind::C,
        "mandelbrot_by_hand",
        "hand-vectorised C",
        0.7,
    ),
    ("exp * sin 1M", Kind::C, "exp_sin", "C with libmvec", 1.5),
    ("saxpy 16M", Kind::C, "saxpy", "C", 0.95),
    ("triad 16M", Kind::C, "triad", "C", 0.95),
    ("saxpy 16M", Kind::C, "copy", "copy of as many bytes", 0.9),
    ("triad 16M", Kind::C, "copy", "copy of as many bytes", 0.9),
    ("threadgroup reduction 16M", Kind::C, "reduction", "C", 0.9),
    ("softmax 4096 rows of 4096", Kind::C, "softmax", "C", 0.9),
    ("RMSNorm 4096 rows of 4096", Kind::C, "rms_norm", "C", 0.9),
    ("transpose 4096", Kind::C, "transpose", "C", 0.9),
    ("histogram of 64 MiB", Kind::C, "histogram", "C", 1.0),
    ("8-point stencil 4096", Kind::C, "stencil", "C", 1.0),
    ("n-body 16k", Kind::C, "n_body", "C", 1.0),
];

/// How many threads each side has.
pub fn threads() -> String {
    std::env::var("INVAR_THREADS").unwrap_or_else(|_| {
        let all = std::thread::available_parallelism().map_or(1, usize::from);
        all.to_string()
    })
}

/// Adds the rows against peers that come with promises.
pub fn rows(table: &mut Table) -> Result<(), String> {
    let (device, peers) = prepare(table, &[Kind::C, Kind::Blas])?;
    let cases = cases();
    for (name, kind, kernel, label, bound) in ROWS {
        let case = find(&cases, name)?;
        // Both move three arrays.
        let size = if kernel == "copy" {
            case.size / 2 * 3
        } else {
            case.size
        };
        if let Some(command) = peers.command(kind, kernel, size) {
            let compared = kernel != "copy";
            let row = format!("{name}, {label}");
            add(table, &device, case, row, command, compared, Some(bound));
        }
    }
    let (tiled, naive) = (
        find(&cases, "tiled matmul 1024")?,
        find(&cases, "naive matmul 1024")?,
    );
    let name = format!("{}, {} (ours)", tiled.name, naive.name);
    if !table.wants(&name) {
        return Ok(());
    }
    match beside(&device, name, tiled, naive) {
        Ok(row) => table.row(row),
        Err(sentence) => table.failure(format!("{}: {sentence}", tiled.name)),
    }
    Ok(())
}

/// Adds the rows against PoCL and Numba, of which nothing is promised.
pub fn more_peers(table: &mut Table) -> Result<(), String> {
    let (device, peers) = prepare(table, &[Kind::OpenCl, Kind::Numba])?;
    for case in cases() {
        if [
            "naive matmul 1040",
            "tiled matmul 1024",
            "simdgroup matmul 1024",
        ]
        .contains(&case.name)
        {
            continue;
        }
        for (kind, label) in [(Kind::OpenCl, "PoCL"), (Kind::Numba, "Numba")] {
            if let Some(command) = peers.command(kind, case.kernel, case.size) {
                let row = format!("{}, {label}", case.name);
                add(table, &device, &case, row, command, true, None);
            }
        }
    }
    Ok(())
}

fn prepare(table: &mut Table, kinds: &[Kind]) -> Result<(Device, Peers), String> {
    let device = Device::named("cpu").map_err(|e| e.to_string())?;
    let threads = threads();
    table.note(format!(
        "CPU rows: {threads} threads on each side, all checks on, medians of runs in turns"
    ));
    let peers = Peers::build(Path::new(env!("CARGO_MANIFEST_DIR")), &threads);
    for note in peers.missing(kinds) {
        table.note(note);
    }
    Ok((device, peers))
}

fn find<'c>(cases: &'c [Case], name: &str) -> Result<&'c Case, String> {
    let found = cases.iter().find(|c| c.name == name);
    found.ok_or_else(|| format!("no case `{name}`"))
}

fn add(
    table: &mut Table,
    device: &Device,
    case: &Case,
    name: String,
    command: Command,
    compared: bool,
    bound: Option<f64>,
) {
    if !table.wants(&name) {
        return;
    }
    match measure(device, case, command, compared) {
        Ok((ours, peer)) => table.row(Row {
            name,
            ours,
            peer,
            unit: "ms",
            bound,
        }),
        Err(sentence) => table.failure(format!("{name}: {sentence}")),
    }
}

/// The medians of both sides, in milliseconds.
fn measure(
    device: &Device,
    case: &Case,
    peer: Command,
    compared: bool,
) -> Result<(f64, f64), String> {
    let ready = Ready::new(device, case)?;
    ready.run()?;
    let (sum, magnitude) = ready.sums(case)?;
    let mut peer = Peer::start(peer)?;
    let expected = peer.answer()?;
    if compared && !agree(sum, expected, case.tolerance * magnitude) {
        return Err(format!("ours adds up to {sum}, the peer's to {expected}"));
    }
    peer.run()?;
    let medians = turns(&mut || ready.run(), &mut || peer.run())?;
    peer.end()?;
    Ok(medians)
}

/// Whether two sums differ by no more than that; nothing agrees with a NaN.
fn agree(sum: f64, other: f64, allowed: f64) -> bool {
    (sum - other).abs() <= allowed
}

/// The medians of two sides that take turns, in milliseconds, from the seconds of each turn.
pub fn turns(
    ours: &mut dyn FnMut() -> Result<f64, String>,
    peer: &mut dyn FnMut() -> Result<f64, String>,
) -> Result<(f64, f64), String> {
    let mut times = (Vec::new(), Vec::new());
    let start = Instant::now();
    while times.0.len() < TURNS * RUNS || start.elapsed() < TIME {
        turn(ours, &mut times.0)?;
        turn(peer, &mut times.1)?;
    }
    Ok((median(times.0), median(times.1)))
}

/// A turn of one side: adds milliseconds.
fn turn(side: &mut dyn FnMut() -> Result<f64, String>, times: &mut Vec<f64>) -> Result<(), String> {
    std::thread::sleep(PAUSE);
    side()?;
    for _ in 0..RUNS {
        times.push(side()? * 1e3);
    }
    Ok(())
}

/// One of ours beside another that computes the same.
fn beside(device: &Device, name: String, case: &Case, other: &Case) -> Result<Row, String> {
    let (ours, peer) = (Ready::new(device, case)?, Ready::new(device, other)?);
    ours.run()?;
    peer.run()?;
    let ((sum, magnitude), (expected, _)) = (ours.sums(case)?, peer.sums(other)?);
    if !agree(sum, expected, case.tolerance * magnitude) {
        return Err(format!("it adds up to {sum}, the other to {expected}"));
    }
    let (ours, peer) = turns(&mut || ours.run(), &mut || peer.run())?;
    Ok(Row {
        name,
        ours,
        peer,
        unit: "ms",
        bound: Some(0.9),
    })
}
