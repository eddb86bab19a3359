#![allow(clippy::print_stdout, reason = "an example that prints")]
//! Proves every kernel of the files named, one line each: verdict, time, conditions. Of what is proved: whether its
//! certificate, written and read again, is accepted, how long a look at its conditions takes, and how long the proof
//! where the kernel requires them.

use std::hint::black_box;
use std::time::Instant;

use invar_ir::requires::{Comparison, Product, Relation, Sum};
use invar_ir::text::case::RunCase;
use invar_ir::{Dim, LaunchNumber, Required, Requirement, Verified, text, verify};
use invar_prove::condition::{Condition, Launches, Number, Term};
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
        launch: report.witness.clone(),
        proofs: report.proofs.clone(),
    }]);
    let Ok(Ok([read])) = read_certificates(&written).map(<[Certificate; 1]>::try_from) else {
        return false;
    };
    let again = verify_certificate(module, cases, &read);
    again.is_ok_and(|again| again.verdict == Verdict::Proved)
}

/// Launches as they are common: threads along x, threadgroups, threads of a threadgroup, and what parameters are.
const COMMON: [[u64; 4]; 3] = [[1024, 4, 256, 1024], [64, 1, 64, 64], [1, 1, 1, 1]];

/// Nanoseconds of a look at the conditions of a launch that fulfils them all, as a device looks at them; `None` if
/// no common one does.
fn look(launches: &Launches) -> Option<f64> {
    const ROUNDS: u32 = 2_000;
    // The threads of a launch in y and z, elements of buffers, texels of textures in a direction and their levels.
    const OTHERS: [u64; 4] = [1, 1 << 30, 1 << 14, 8];
    let number_of = |launch: &[u64; 8], number| {
        let place = match number {
            Number::Grid(Dim::X) => 0,
            Number::Groups(Dim::X) => 1,
            Number::Threadgroup(Dim::X) => 2,
            Number::Argument(_) | Number::Constant(_) | Number::Field(..) => 3,
            Number::Grid(_) | Number::Groups(_) | Number::Threadgroup(_) => 4,
            Number::Length(_) => 5,
            Number::Texels(..) => 6,
            Number::Levels(_) => 7,
        };
        Some(launch[place])
    };
    let mut common = COMMON.into_iter().map(|[grid, groups, size, argument]| {
        let [one, length, texels, levels] = OTHERS;
        [grid, groups, size, argument, one, length, texels, levels]
    });
    let launch = common.find(|launch| launches.have(&|number| number_of(launch, number)))?;
    let mut least = f64::INFINITY;
    for _ in 0..200 {
        let start = Instant::now();
        for _ in 0..ROUNDS {
            let (launches, launch) = black_box((launches, &launch));
            black_box(launches.have(&|number| number_of(launch, number)));
        }
        least = least.min(start.elapsed().as_secs_f64() / f64::from(ROUNDS));
    }
    Some(least * 1e9)
}

/// A condition as a kernel requires it.
fn required(condition: &Condition) -> Required {
    let of = |number: &Number| match *number {
        Number::Argument(i) => LaunchNumber::Argument(i as u32),
        Number::Constant(i) => LaunchNumber::Constant(i as u32),
        Number::Grid(d) => LaunchNumber::Grid(d),
        Number::Groups(d) => LaunchNumber::Groups(d),
        Number::Threadgroup(d) => LaunchNumber::Threadgroup(d),
        Number::Length(i) => LaunchNumber::Length(i as u32),
        Number::Texels(i, d) => LaunchNumber::Texels(i as u32, d),
        Number::Levels(i) => LaunchNumber::Levels(i as u32),
        Number::Field(i, location) => LaunchNumber::Field(i as u32, location),
    };
    let sum = |term: &Term| Sum {
        products: vec![Product {
            factor: term.factor,
            numbers: term.numbers.iter().map(of).collect(),
        }],
        modulus: None,
    };
    let one = |number: &Number| sum(&Term::of(1, [*number]));
    let (left, relation, right) = match condition {
        Condition::AtMost(term, bound) => (sum(term), Relation::LessEqual, sum(bound)),
        Condition::Together(a, b, bound) => {
            let mut both = sum(a);
            both.products.extend(sum(b).products);
            (both, Relation::LessEqual, sum(&Term::of(*bound, [])))
        }
        Condition::More(term, more, bound) => {
            let mut both = sum(term);
            both.products.extend(sum(&Term::of(*more, [])).products);
            (both, Relation::LessEqual, one(bound))
        }
        Condition::Sum(a, b, bound) => {
            let mut both = sum(a);
            both.products.extend(sum(b).products);
            (both, Relation::LessEqual, one(bound))
        }
        Condition::Below(number, bound) => {
            (one(number), Relation::LessEqual, sum(&Term::of(*bound, [])))
        }
        Condition::Multiple(number, divisor) => {
            let mut left = one(number);
            left.modulus = Some(u32::try_from(*divisor).expect("a constant of the kernel"));
            (left, Relation::Equal, sum(&Term::of(0, [])))
        }
    };
    Required::Holds(Comparison {
        left,
        relation,
        right,
    })
}

/// How long it takes to prove a kernel that requires what was found; `None` if it is not proved then.
fn given(module: &Verified, report: &Report, cases: &[RunCase]) -> Option<f64> {
    let mut module = module.clone().into_module();
    let kernel = module
        .kernels
        .iter_mut()
        .find(|k| *k.name == *report.kernel)?;
    let span = kernel.span;
    let found = report.conditions.iter().map(required);
    let found = found.map(|required| Requirement { required, span });
    kernel.requires.extend(found);
    let module = verify(module).expect("what is found can be required");
    let options = Options {
        infer: false,
        refute: false,
        ..Options::default()
    };
    let start = processor_seconds();
    let report = prove(&module, &report.kernel, cases, options).ok()?;
    (report.verdict == Verdict::Proved).then(|| processor_seconds() - start)
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
            let given = match report.verdict {
                Verdict::Proved => match given(&module, &report, &cases) {
                    Some(seconds) => format!("{seconds:.2} s given"),
                    None => "open given".to_string(),
                },
                Verdict::Broken | Verdict::Open => String::new(),
            };
            println!(
                "{:?}\t{seconds:.2} s\t{} problems, {} pivots\t{file} @{}\tbounds {}/{} pairs {}/{}\t{}\t{certified}\t{look}\t{given}",
                report.verdict,
                report.problems,
                report.pivots,
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
