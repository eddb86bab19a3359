//! Measures the error of every `f32` function of one argument over all 2^32 inputs.
//!
//! `exhaustive [STRIDE] [FUNCTION...]` evaluates each function as the op table defines
//! it and compares it with the same function in `f64`, from the system's libm or the `libm`
//! crate, whose errors are some 2^-28 of the unit. It prints a table, and fails if an error exceeds
//! the bound in the op table. A STRIDE of n takes every n-th input only. `scripts/exhaustive.sh`
//! builds it for this machine and runs it.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line program"
)]

use std::f64::consts::PI;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use invar_ir::ops::evaluate::Program;
use invar_ir::ops::{Accuracy, Classes, Signature};
use invar_ir::{Imm, Op, Type};

/// Inputs evaluated together.
const COLUMN: usize = 4096;

/// n and pi r of x = n/2 + r, |r| <= 1/4, for x >= 0.
fn quarter_turns(x: f64) -> (u8, f64) {
    let n = (2.0 * x).round_ties_even();
    (n.rem_euclid(4.0) as u8, (x - n / 2.0) * PI)
}

fn sinpi(x: f64) -> f64 {
    let (n, r) = quarter_turns(x.abs());
    let s = [r.sin(), r.cos(), -r.sin(), -r.cos()][usize::from(n)];
    if s == 0.0 { 0.0 * x } else { s.copysign(s * x) }
}

fn cospi(x: f64) -> f64 {
    let (n, r) = quarter_turns(x.abs());
    [r.cos(), -r.sin(), -r.cos(), r.sin()][usize::from(n)] + 0.0
}

fn tanpi(x: f64) -> f64 {
    let (n, r) = quarter_turns(x.abs());
    let t = match (n, r == 0.0) {
        (0, true) => 0.0,
        (1, true) => f64::INFINITY,
        (2, true) => -0.0,
        (3, true) => f64::NEG_INFINITY,
        (0 | 2, _) => r.tan(),
        _ => -1.0 / r.tan(),
    };
    if x.is_sign_negative() { -t } else { t }
}

/// The function in `f64`.
fn reference(op: Op) -> Option<fn(f64) -> f64> {
    Some(match op {
        Op::Exp => f64::exp,
        Op::Exp2 => f64::exp2,
        Op::Exp10 => libm::exp10,
        Op::Log => f64::ln,
        Op::Log2 => f64::log2,
        Op::Log10 => f64::log10,
        Op::Rsqrt => |x| 1.0 / x.sqrt(),
        Op::Sin => f64::sin,
        Op::Cos => f64::cos,
        Op::Tan => f64::tan,
        Op::Sinpi => sinpi,
        Op::Cospi => cospi,
        Op::Tanpi => tanpi,
        Op::Asin => f64::asin,
        Op::Acos => f64::acos,
        Op::Atan => f64::atan,
        Op::Sinh => f64::sinh,
        Op::Cosh => f64::cosh,
        Op::Tanh => f64::tanh,
        Op::Asinh => libm::asinh,
        // Of some negative numbers the crate returns one.
        Op::Acosh => |x| if x < 1.0 { f64::NAN } else { libm::acosh(x) },
        Op::Atanh => libm::atanh,
        Op::Erf => libm::erf,
        _ => return None,
    })
}

/// The error in units in the last place of the exact value; infinite where not even the kind of
/// number, or a zero's sign, is right.
fn error(got: f32, exact: f64) -> f64 {
    let right_kind = |right: bool| if right { 0.0 } else { f64::INFINITY };
    if exact.is_nan() || got.is_nan() {
        return right_kind(exact.is_nan() && got.is_nan());
    }
    if exact == 0.0 && got == 0.0 {
        return right_kind(exact.is_sign_negative() == got.is_sign_negative());
    }
    if exact.is_infinite() {
        return right_kind(f64::from(got) == exact);
    }
    // Infinity stands where the next number after the largest would.
    let beyond = 2f64.powi(128);
    let limit = |x: f64| x.clamp(-beyond, beyond);
    let (got, want) = (limit(f64::from(got)), limit(exact));
    let exponent = ((want.to_bits() >> 52 & 0x7ff) as i64 - 1023).clamp(-126, 127);
    let units_in_one = f64::from_bits(((23 - exponent + 1023) as u64) << 52);
    // Where both round to infinity, there is no error to speak of.
    let overflow = beyond - 2f64.powi(103);
    if got.abs() == beyond && want.abs() >= overflow {
        return 0.0;
    }
    ((got - want) * units_in_one).abs()
}

#[derive(Clone, Copy, Default)]
struct Report {
    worst: f64,
    at: u32,
    beyond_one: u64,
    /// Inputs at which a sine or cosine leaves [-1, 1].
    out_of_range: u64,
}

fn measure(program: &Program, exact: fn(f64) -> f64, stride: u64, bounded: bool) -> Report {
    const CHUNK: u64 = 1 << 20;
    let next = AtomicU64::new(0);
    let work = || {
        let mut report = Report::default();
        let (mut inputs, mut results) = (vec![0; COLUMN], vec![0; COLUMN]);
        loop {
            let start = next.fetch_add(CHUNK, Ordering::Relaxed);
            if start >= 1 << 32 {
                return report;
            }
            let mut first = start.next_multiple_of(stride);
            while first < start + CHUNK {
                for (k, input) in inputs.iter_mut().enumerate() {
                    *input = (first + k as u64 * stride) & 0xffff_ffff;
                }
                program.run(&[&inputs], &mut [&mut results]);
                for (input, result) in inputs.iter().zip(&results) {
                    let (input, got) = (*input as u32, f32::from_bits(*result as u32));
                    let error = error(got, exact(f64::from(f32::from_bits(input))));
                    report.beyond_one += u64::from(error > 1.0);
                    report.out_of_range += u64::from(bounded && got.abs() > 1.0);
                    if error > report.worst {
                        (report.worst, report.at) = (error, input);
                    }
                }
                first += COLUMN as u64 * stride;
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let reports: Vec<Report> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .map(|w| w.join().expect("a worker that does not panic"))
            .collect()
    });
    reports.into_iter().fold(Report::default(), |a, b| Report {
        worst: a.worst.max(b.worst),
        at: if b.worst > a.worst { b.at } else { a.at },
        beyond_one: a.beyond_one + b.beyond_one,
        out_of_range: a.out_of_range + b.out_of_range,
    })
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).peekable();
    let stride = arguments.peek().and_then(|a| a.parse::<u64>().ok());
    if stride.is_some() {
        arguments.next();
    }
    let stride = stride.unwrap_or(1).max(1);
    let wanted: Vec<String> = arguments.collect();
    if let Some(name) = wanted.iter().find(|name| Op::from_name(name).is_none()) {
        eprintln!("no operation is named `{name}`");
        return ExitCode::FAILURE;
    }
    println!("function  largest error (ulp)  at                     beyond 1 ulp  seconds");
    let mut good = true;
    for op in Op::all() {
        let row = op.row();
        let Accuracy::Ulp { f32: bound, .. } = row.accuracy else {
            continue;
        };
        let unary = row.signature == Signature::Same(1, Classes::FLOAT);
        if !unary || !(wanted.is_empty() || wanted.iter().any(|w| w == op.name())) {
            continue;
        }
        let Some(exact) = reference(op) else {
            eprintln!("`{op}` has no reference here; add one");
            good = false;
            continue;
        };
        let program = match Program::compile(op, Imm::None, &[Type::F32]) {
            Ok(program) => program,
            Err(error) => {
                eprintln!("`{op}`: {error}");
                return ExitCode::FAILURE;
            }
        };
        let start = Instant::now();
        let bounded = matches!(
            op,
            Op::Sin | Op::Cos | Op::Sinpi | Op::Cospi | Op::Erf | Op::Tanh
        );
        let report = measure(&program, exact, stride, bounded);
        println!(
            "{:8}  {:<19.4}  {:<21e}  {:<12}  {:.0}",
            op.name(),
            report.worst,
            f32::from_bits(report.at),
            report.beyond_one,
            start.elapsed().as_secs_f64(),
        );
        if report.worst > f64::from(bound) || report.out_of_range > 0 {
            let outside = report.out_of_range;
            println!("          the op table says {bound}; {outside} results are beyond 1");
            good = false;
        }
    }
    if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
