//! What `check`, `run` and `bench` do with `; program:` lines: kernels that run one after the other on the same
//! buffers. Each run is told as one of a `; run:` line is; what comes after one with errors does not run. A check
//! goes on where all it found are accesses out of bounds, which change nothing else.

use std::time::Duration;

use invar_interp::Options;
use invar_interp::passes::BoundProgram;
use invar_ir::text::case::Program;
use invar_ir::{Diagnostic, Diagnostics, Rule, Severity};
use serde_json::{Value as Json, json};

use crate::bench::{BenchArgs, bench_one};
use crate::execute::{
    CheckArgs, Proofs, RunArgs, Written, check_one, missed_of, numbers, outs_of, write_out,
};
use crate::options::count;
use crate::outcome::Refusal;
use crate::output::{Output, time};
use crate::place::{Place, asks_for_reference, room_for_reference};
use crate::plan::{Plan, usage_or_findings};
use crate::shader;

/// Makes buffers and arguments; what is wrong with them is told.
fn bound(
    plan: &Plan,
    program: &Program,
    options: &Options,
    output: &mut Output,
) -> Result<Option<BoundProgram>, Refusal> {
    let bound = plan.with_files(program.span, |files| {
        BoundProgram::new(&plan.module, program, options, files)
    })?;
    match bound {
        Ok(bound) => {
            for number in 0..bound.pass_count() {
                shader::check_lengths(&plan.entries, &plan.module, &bound.pass(number))?;
            }
            Ok(Some(bound))
        }
        Err(Diagnostics(all)) => {
            output.result("", &all, "", json!({}));
            Ok(None)
        }
    }
}

/// How a program is called where it is told of: by its kernels.
fn title(program: &Program) -> String {
    let names = program.passes.iter().map(|pass| &pass.case.kernel.name);
    let names: Vec<String> = names.map(|name| format!("@{name}")).collect();
    format!("program {}", names.join(", "))
}

/// A run with errors ends its program.
fn stopped(program: &Program, number: usize, output: &mut Output) {
    let all = program.passes.len();
    let why = format!(
        "stopped after run {} of {all}, which has errors",
        number + 1
    );
    let closing = format!("{}: {why}", title(program));
    output.errors = true;
    output.result(
        "",
        &[],
        &closing,
        json!({"program": names(program), "clean": false}),
    );
}

fn names(program: &Program) -> Vec<&str> {
    let names = program.passes.iter().map(|pass| &*pass.case.kernel.name);
    names.collect()
}

/// Whether the expectations are met, in words.
fn met(program: &Program, wrong: &[Diagnostic]) -> String {
    match (program.expects.len(), wrong.len()) {
        (0, _) => "done".to_string(),
        (n, 0) => format!("right, {} met", count(n, "expectation")),
        (n, w) => missed_of(n, w, wrong),
    }
}

fn document(program: &Program, wrong: &[Diagnostic]) -> serde_json::Map<String, Json> {
    let pairs = [
        ("program", json!(names(program))),
        ("clean", json!(wrong.is_empty())),
        ("expectations", json!(program.expects.len())),
    ];
    pairs
        .map(|(key, value)| (key.to_string(), value))
        .into_iter()
        .collect()
}

pub fn check(
    plan: &Plan,
    args: &CheckArgs,
    allow: &[Rule],
    options: &Options,
    (proofs, output): (&mut Option<Proofs>, &mut Output),
) -> Result<(), Refusal> {
    'programs: for program in &plan.programs {
        let Some(mut bound) = bound(plan, program, options, output)? else {
            continue;
        };
        for (number, pass) in program.passes.iter().enumerate() {
            let run = bound.pass(number);
            let known = proofs.as_mut().map(|p| p.of(plan, &pass.case, &run));
            let known = known.transpose()?;
            match check_one(plan, args, allow, &pass.case, (run, known), output)? {
                Some(after) => bound.keep(number, &after),
                None => {
                    stopped(program, number, output);
                    continue 'programs;
                }
            }
        }
        let wrong = plan.with_files(program.span, |files| {
            bound.mismatches(&plan.module, program, &bound, files)
        })?;
        let closing = format!("{}: {}", title(program), met(program, &wrong));
        output.result(
            "",
            &wrong,
            &closing,
            Json::Object(document(program, &wrong)),
        );
    }
    Ok(())
}

pub fn run(
    plan: &Plan,
    args: &RunArgs,
    options: &Options,
    output: &mut Output,
) -> Result<(), Refusal> {
    for program in &plan.programs {
        if let Some(bound) = bound(plan, program, options, output)? {
            run_one(plan, args, program, bound, output)?;
        }
    }
    Ok(())
}

fn run_one(
    plan: &Plan,
    args: &RunArgs,
    program: &Program,
    mut bound: BoundProgram,
    output: &mut Output,
) -> Result<(), Refusal> {
    let outs = outs_of(args, |name| {
        let number = program.buffers.iter().position(|(b, _)| b.name == *name);
        match number.map(|number| (number, bound.buffer(number).0)) {
            Some((number, element)) => Ok(Written {
                number,
                rest: None,
                ty: numbers(element),
            }),
            None => {
                let names = program.buffers.iter().map(|(b, _)| format!("`{}`", b.name));
                let names: Vec<String> = names.collect();
                Err(Refusal(format!(
                    "--out {name}: the program has no buffer `{name}`; it has {}",
                    names.join(", ")
                )))
            }
        }
    })?;
    let asks = program.expects.iter().find(|e| asks_for_reference(e));
    if let Some(asks) = asks {
        let buffers = 0..program.buffers.len();
        let bytes = buffers.map(|number| bound.buffer(number).1.len() as u64);
        if let Err(Diagnostics(all)) = room_for_reference(asks, bytes.sum()) {
            output.result("", &all, "", json!({}));
            return Ok(());
        }
    }
    let mut reference = asks.map(|_| bound.copy());
    let mut seconds = 0.0;
    let mut device = String::new();
    for (number, pass) in program.passes.iter().enumerate() {
        let name = &pass.case.kernel.name;
        let mut run = bound.pass(number);
        let place = match Place::of(args.device.as_deref(), &args.inputs, &plan.module, &run)? {
            Ok(place) => place,
            Err(why) => return output.skip(plan, name, why),
        };
        let fail = |output: &mut Output, all: Vec<Diagnostic>| {
            let all = usage_or_findings(&plan.file, Some(&pass.case), all)?;
            output.result(name, &all, "", json!({}));
            stopped(program, number, output);
            Ok(())
        };
        if let Some(reference) = &mut reference {
            match place.reference_of(&plan.module, reference.pass(number)) {
                Ok(after) => reference.keep(number, &after),
                Err(Diagnostics(all)) => return fail(output, all),
            }
        }
        let ran = match place.run(&plan.module, &mut run) {
            Ok(ran) => ran,
            Err(Diagnostics(all)) => return fail(output, all),
        };
        output.lines(&ran.printed);
        if ran.findings.iter().any(|d| d.severity == Severity::Error) {
            return fail(output, ran.findings);
        }
        bound.keep(number, &run.args);
        seconds += ran.seconds;
        device = place.name().to_string();
        let closing = format!("@{name}: done in {}", time(ran.seconds));
        let more = json!({
            "clean": true,
            "expectations": 0,
            "device": device,
            "steps": ran.steps,
            "seconds": ran.seconds,
        });
        output.result(name, &ran.findings, &closing, more);
    }
    let wrong = plan.with_files(program.span, |files| {
        let reference = reference.as_ref().unwrap_or(&bound);
        bound.mismatches(&plan.module, program, reference, files)
    })?;
    let mut closing = format!(
        "{}: {}, in {}",
        title(program),
        met(program, &wrong),
        time(seconds)
    );
    let mut more = document(program, &wrong);
    let mut written = serde_json::Map::new();
    for out in &outs {
        write_out(out, &[bound.buffer(out.number).1])?;
        let path = out.path.display().to_string();
        closing.push_str(&format!("\nwrote {} to {path}", out.name));
        written.insert(out.name.to_string(), json!(path));
    }
    more.insert("device".to_string(), json!(device));
    more.insert("seconds".to_string(), json!(seconds));
    more.insert("written".to_string(), Json::Object(written));
    output.result("", &wrong, &closing, Json::Object(more));
    Ok(())
}

/// Measures each run with what those before it left.
pub fn bench(
    plan: &Plan,
    args: &BenchArgs,
    patience: Duration,
    options: &Options,
    output: &mut Output,
) -> Result<(), Refusal> {
    'programs: for program in &plan.programs {
        let Some(mut bound) = bound(plan, program, options, output)? else {
            continue;
        };
        for (number, pass) in program.passes.iter().enumerate() {
            let mut run = bound.pass(number);
            if !bench_one(plan, args, patience, &pass.case, bound.pass(number), output)? {
                continue 'programs;
            }
            let place = Place::of(Some(&args.device), &args.inputs, &plan.module, &run)?;
            let ran = match place {
                Ok(place) => place.run(&plan.module, &mut run),
                Err(why) => return output.skip(plan, &pass.case.kernel.name, why),
            };
            match ran {
                Ok(_) => bound.keep(number, &run.args),
                Err(Diagnostics(all)) => {
                    let all = usage_or_findings(&plan.file, Some(&pass.case), all)?;
                    output.result(&pass.case.kernel.name, &all, "", json!({}));
                    stopped(program, number, output);
                    continue 'programs;
                }
            }
        }
    }
    Ok(())
}
