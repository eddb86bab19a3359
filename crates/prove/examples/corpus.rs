#![allow(clippy::print_stdout, reason = "an example that prints")]
//! Proves every kernel of the files named, one line each: verdict, time, conditions. Of what is proved: whether its
//! certificate, written and read again, is accepted, and how long a look at its conditions takes.

use std::hint::black_box;
use std::time::Instant;

use invar_ir::text::case::RunCase;
use invar_ir::{Dim, Verified, text, verify};
use invar_prove::condition::{Launches, Number};
use invar_prove::file::{Certificate, write};
use invar_prove::{Options, Report, Verdict, prove, read_certificates, verify_certificate};

/// Seconds that this process has computed, whatever else the machine does: Linux counts them in hundredths.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let (_, numbers) = stat.rsplit_once(')').unwrap_or_default();
    let numbers: Vec<f64> = (numbers.split_whitespace().skip(11).take(2))
        .filter_map(|n| n.parse().ok())
        .collect();
    numbers.iter().sum::<f64>() / 100.0
}

/// Whether the proofs of a kernel show it, as `invar prove --verify` has it.
fn is_certified(module: &Verified, report: &Report, cases: &[RunCase]) -> bool {
    let written = write(&[Certificate {
        kernel: report.kernel.clone(),
        conditions: report.conditions.clone(),
        proofs: report.proofs.clone(),
    }]);
    let Ok(Ok([read])) = read_certificates(&written).map(<[Certificate; 1]>::try_from) else {
        return false;
    };
    let (name, conditions) = (&read.kernel, &read.conditions);
    let again = verify_certificate(module, name, cases, conditions, read.proofs.clone());
    again.is_some_and(|again| again.verdict == Verdict::Proved)
}

/// Nanoseconds of a look at the conditions of a launch that fulfils them all, as a device looks at them; `None` if
/// the one at hand does not.
fn look(launches: &Launches) -> Option<f64> {
    const ROUNDS: u32 = 20_000;
    let dispatch = [1u64 << 20, 1 << 12, 256, 1 << 60, 1];
    let number = |number| {
        let place = match number {
            Number::Grid(Dim::X) | Number::Argument(_) | Number::Constant(_) => 0,
            Number::Groups(Dim::X) | Number::Texels(..) => 1,
            Number::Threadgroup(Dim::X) => 2,
            Number::Length(_) => 3,
            Number::Grid(_) | Number::Groups(_) | Number::Threadgroup(_) => 4,
        };
        black_box(&dispatch).get(place).map(|n| i128::from(*n))
    };
    if !launches.have(&number) {
        return None;
    }
    let mut least = f64::INFINITY;
    for _ in 0..20 {
        let start = Instant::now();
        for _ in 0..ROUNDS {
            black_box(black_box(launches).have(&number));
        }
        least = least.min(start.elapsed().as_secs_f64() / f64::from(ROUNDS));
    }
    Some(least * 1e9)
}

fn main() {
    for file in std::env::args().skip(1) {
        let source = std::fs::read_to_string(&file).expect("a file");
        let Ok(module) = text::parse(&file, &source) else {
            continue;
        };
        let Ok(module) = verify(module) else {
            continue;
        };
        let cases = text::cases(&source).expect("its directives");
        for kernel in &module.kernels {
            let start = processor_seconds();
            let report =
                prove(&module, &kernel.name, &cases, Options::default()).expect("it is there");
            let seconds = processor_seconds() - start;
            let certified = match report.verdict {
                Verdict::Proved if is_certified(&module, &report, &cases) => "certified",
                Verdict::Proved => "not certified",
                Verdict::Broken | Verdict::Open => "",
            };
            let look = report.in_bounds_in().and_then(|launches| look(&launches));
            let look = look.map_or(String::new(), |ns| format!("{ns:.1} ns"));
            println!(
                "{:?}\t{seconds:.2} s\t{} problems\t{file} @{}\tbounds {}/{} pairs {}/{}\t{}\t{certified}\t{look}",
                report.verdict,
                report.problems,
                report.kernel,
                report.in_bounds,
                report.accesses,
                report.apart,
                report.pairs,
                report.texts.join(" and "),
            );
            for doubt in report.doubts.iter().take(6) {
                let lines: Vec<u32> = doubt.spans.iter().map(|s| s.start.line).collect();
                println!("    line {lines:?}: {}: {}", doubt.what, doubt.why);
            }
            if let Some(found) = &report.counterexample {
                println!(
                    "    {}",
                    found
                        .launch
                        .options(&report.kernel)
                        .join(" ")
                        .chars()
                        .take(200)
                        .collect::<String>()
                );
            }
        }
    }
}
