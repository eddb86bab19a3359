#![allow(clippy::print_stdout, reason = "an example that prints")]
//! Proves every kernel of the files named, one line each: verdict, time, conditions.

use invar_ir::{text, verify};
use invar_prove::{Options, prove};

/// Seconds that this process has computed, whatever else the machine does: Linux counts them in hundredths.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let (_, numbers) = stat.rsplit_once(')').unwrap_or_default();
    let numbers: Vec<f64> = (numbers.split_whitespace().skip(11).take(2))
        .filter_map(|n| n.parse().ok())
        .collect();
    numbers.iter().sum::<f64>() / 100.0
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
            println!(
                "{:?}\t{seconds:.2} s\t{} problems\t{file} @{}\tbounds {}/{} pairs {}/{}\t{}",
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
