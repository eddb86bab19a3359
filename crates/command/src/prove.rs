//! The command that proves kernels.

use std::path::PathBuf;

use crate::files::Destination;
use clap::Args;
use invar::report;
use invar_ir::text::case::RunCase;
use invar_ir::{Diagnostics, Kernel, Module, Verified, text, verify};
use invar_prove::file::{Certificate, write};
use invar_prove::{Doubt, Options, Report};
use serde_json::{Value as Json, json};

use crate::{Loaded, Machine, Refusal, Verdict, input, say, show};

#[derive(Args)]
pub struct ProveArgs {
    /// A module in the text form (.inv) or the binary form (.invb); with the Python package also a
    /// kernel in a Python file, as FILE.py:KERNEL.
    file: PathBuf,
    /// The kernel to prove; without it, all of the module.
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// Fail also where neither a proof nor a launch that breaks the kernel is found: --deny open.
    #[arg(long, value_name = "WHAT", value_parser = ["open"])]
    deny: Option<String>,
    /// Write the proofs to this file.
    #[arg(long, value_name = "FILE", conflicts_with = "verify")]
    certificate: Option<PathBuf>,
    /// Check the proofs of this file against the kernels, and look for none.
    #[arg(long, value_name = "FILE")]
    verify: Option<PathBuf>,
    #[command(flatten)]
    machine: Machine,
}

pub fn prove(args: &ProveArgs, loaded: &Loaded) -> Result<Verdict, Refusal> {
    let refused = |module: &Module, all: &[invar_ir::Diagnostic]| {
        say(report::render_for(module, all, input::style()).trim_end());
        Ok(Verdict::Errors)
    };
    let asked = input::Asked {
        entry: args.kernel.as_deref(),
        ..input::Asked::default()
    };
    let Some(module) = input::module(&args.file, loaded, asked)? else {
        return Ok(Verdict::Errors);
    };
    let module = match verify(module.clone()) {
        Ok(module) => module,
        Err(Diagnostics(all)) => return refused(&module, &all),
    };
    let cases = match module.sources.first().map(|s| text::cases(&s.text)) {
        None => Vec::new(),
        Some(Ok(cases)) => cases,
        Some(Err(Diagnostics(all))) => return refused(&module, &all),
    };
    let chosen: Vec<&Kernel> = match &args.kernel {
        Some(name) => vec![crate::execute::the_kernel(&module, &args.file, Some(name))?],
        None => module.kernels.iter().collect(),
    };
    let destination = match &args.certificate {
        None => None,
        Some(path) => {
            let destination = Destination::of(path)?;
            if input::is_the_kernel(&args.file, &destination) {
                return Err(Refusal(format!(
                    "--certificate: {} is the kernel's own file; name another",
                    path.display()
                )));
            }
            Some(destination)
        }
    };
    let certificates = match &args.verify {
        None => None,
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|e| Refusal(format!("--verify {}: {e}", path.display())))?;
            let read = invar_prove::read_certificates(&text);
            Some(read.map_err(|why| Refusal(format!("--verify {}: {why}", path.display())))?)
        }
    };
    let mut verdict = Verdict::Clean;
    let mut told = Vec::new();
    let mut written = Vec::new();
    for kernel in chosen {
        let found = one(&module, kernel, &cases, certificates.as_deref());
        let Some(report) = found else {
            verdict = Verdict::Errors;
            let message = format!("@{}: the file has no certificate of it", kernel.name);
            if args.machine.json {
                told.push(json!({ "kernel": &*kernel.name, "verdict": "open", "why": message }));
            } else {
                show(&message);
            }
            continue;
        };
        let fails = match report.verdict {
            invar_prove::Verdict::Proved => false,
            invar_prove::Verdict::Broken => true,
            invar_prove::Verdict::Open => args.deny.is_some() || certificates.is_some(),
        };
        if fails {
            verdict = Verdict::Errors;
        }
        let checked = certificates.is_some();
        if args.machine.json {
            told.push(document(args, &module, &report));
        } else {
            tell(args, &module, &report, checked);
        }
        if report.verdict == invar_prove::Verdict::Proved {
            written.push(Certificate {
                kernel: report.kernel,
                conditions: report.conditions,
                proofs: report.proofs,
            });
        }
    }
    if args.machine.json {
        show(&format!("{:#}", Json::Array(told)));
    }
    if let Some(destination) = destination {
        destination.write(&[write(&written).as_bytes()])?;
    }
    Ok(verdict)
}

/// What is known of a kernel: by its certificate, if there are any.
fn one(
    module: &Verified,
    kernel: &Kernel,
    cases: &[RunCase],
    certificates: Option<&[Certificate]>,
) -> Option<Report> {
    match certificates {
        None => invar_prove::prove(module, &kernel.name, cases, Options::default()),
        Some(all) => {
            let its = all.iter().find(|c| *c.kernel == *kernel.name)?;
            invar_prove::verify_certificate(
                module,
                &its.kernel,
                cases,
                &its.conditions,
                its.proofs.clone(),
            )
        }
    }
}

/// `every launch`, and what it has to fulfil.
fn launches(report: &Report) -> String {
    let dimensions = match &report.flat_dimensions[..] {
        [] => String::new(),
        ["z"] => "two-dimensional ".to_string(),
        ["y", "z"] => "one-dimensional ".to_string(),
        _others => String::new(),
    };
    let mut conditions: Vec<String> = Vec::new();
    if dimensions.is_empty() {
        let ones = report
            .flat_dimensions
            .iter()
            .map(|d| format!("grid.{d} == 1"));
        conditions.extend(ones);
    }
    conditions.extend(report.texts.iter().cloned());
    let with = if conditions.is_empty() { "" } else { " with " };
    format!("every {dimensions}launch{with}{}", conditions.join(" and "))
}

fn accesses(report: &Report) -> String {
    match report.accesses {
        0 => "no access to memory".to_string(),
        1 => "its access in bounds".to_string(),
        n => format!("all {n} accesses in bounds"),
    }
}

/// The command that runs a launch, as a shell takes it.
fn check_command(args: &ProveArgs, report: &Report) -> Option<String> {
    let found = report.counterexample.as_ref()?;
    let mut words = vec!["invar".to_string(), "check".to_string()];
    words.push(args.file.display().to_string());
    words.extend(found.launch.options(&report.kernel));
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,=:%@".contains(c);
    let quoted = words.iter().map(|word| {
        if word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    Some(quoted.collect::<Vec<_>>().join(" "))
}

fn place(module: &Module, doubt: &Doubt) -> String {
    let lines: Vec<String> = (doubt.spans.iter())
        .map(|span| {
            let source = span.source.and_then(|s| module.sources.get(s.0 as usize));
            let name = source.map_or("?", |s| &s.name);
            format!("{name}:{}", span.start.line)
        })
        .collect();
    let mut lines = lines;
    lines.dedup();
    lines.join(" and ")
}

fn tell(args: &ProveArgs, module: &Module, report: &Report, checked: bool) {
    let name = &report.kernel;
    match report.verdict {
        invar_prove::Verdict::Proved => {
            let word = if checked { "verified" } else { "proved" };
            show(&format!(
                "{word} @{name}: no data race, {}, for {}",
                accesses(report),
                launches(report)
            ));
        }
        invar_prove::Verdict::Broken => {
            if let Some(found) = &report.counterexample {
                let rendered = report::render_for(module, &found.findings, input::style());
                say(rendered.trim_end());
            }
            let command = check_command(args, report).unwrap_or_default();
            show(&format!(
                "broken @{name}: the checkers report this launch\n    {command}"
            ));
        }
        invar_prove::Verdict::Open => {
            show(&format!(
                "open @{name}: {} of {} accesses in bounds and {} of {} pairs of accesses free of races, \
                 for {}",
                report.in_bounds,
                report.accesses,
                report.apart,
                report.pairs,
                launches(report)
            ));
            for doubt in &report.doubts {
                show(&format!(
                    "    {}: {}; {}",
                    place(module, doubt),
                    doubt.what,
                    doubt.why
                ));
            }
        }
    }
}

fn document(args: &ProveArgs, module: &Module, report: &Report) -> Json {
    let verdict = match report.verdict {
        invar_prove::Verdict::Proved => "proved",
        invar_prove::Verdict::Broken => "broken",
        invar_prove::Verdict::Open => "open",
    };
    let doubts: Vec<Json> = (report.doubts.iter())
        .map(|doubt| {
            let lines: Vec<u32> = doubt.spans.iter().map(|s| s.start.line).collect();
            json!({ "lines": lines, "place": place(module, doubt), "what": doubt.what, "why": doubt.why })
        })
        .collect();
    let findings: Vec<Json> = (report.counterexample.iter())
        .flat_map(|found| &found.findings)
        .map(
            |d| json!({ "rule": d.rule.name(), "message": d.message, "line": d.span().start.line }),
        )
        .collect();
    json!({
        "kernel": report.kernel,
        "verdict": verdict,
        "conditions": report.texts,
        "grid_is_1_in": report.flat_dimensions,
        "accesses": report.accesses,
        "in_bounds": report.in_bounds,
        "pairs": report.pairs,
        "free_of_races": report.apart,
        "open": doubts,
        "command": check_command(args, report),
        "findings": findings,
        "problems": report.problems,
        "proofs": report.proofs.len(),
    })
}
