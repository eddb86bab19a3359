//! The command that proves kernels.

use std::path::PathBuf;

use crate::files::{self, Destination};
use clap::Args;
use invar::report;
use invar_ir::diagnostic::path_text;
use invar_ir::text::case::RunCase;
use invar_ir::{
    Const, Diagnostics, ElementType, Kernel, Memory, Module, ParamKind, StructDef, Verified, verify,
};
use invar_prove::file::{Certificate, write};
use invar_prove::{Options, Report};
use serde_json::{Value as Json, json};

use crate::console::{say, show};
use crate::declared::{in_source, of_param};
use crate::input::Loaded;
use crate::options::Machine;
use crate::outcome::{Refusal, Verdict};
use crate::{input, options, read, shader};

#[derive(Args)]
pub struct ProveArgs {
    /// A module in the text form (.inv) or the binary form (.invb), a shader (.wgsl) or a Metal source
    /// (.metal); with the Python package also a kernel in a Python file, as FILE.py:KERNEL.
    file: PathBuf,
    /// The kernel to prove; without it, all of the module.
    #[arg(long, visible_alias = "entry", value_name = "NAME")]
    kernel: Option<String>,
    /// The value of a shader's override that decides a size, or of a function constant of a Metal source.
    #[arg(long = "const", value_name = "NAME=VALUE")]
    constants: Vec<String>,
    #[command(flatten)]
    with: crate::metal::With,
    /// Prove launches in threadgroups of this size, where the kernel says none: X, X,Y or X,Y,Z.
    #[arg(long, value_name = "X,Y,Z", value_parser = options::size)]
    threadgroup: Option<[u32; 3]>,
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
        let all = shader::advised(&args.file, all);
        say(report::render_for(module, &all, input::style()).trim_end());
        Ok(Verdict::Errors)
    };
    let asked = read::Asked {
        entry: args.kernel.as_deref(),
        constants: &args.constants,
        with: Some(&args.with),
        of_runs: true,
    };
    let read = match input::parsed(&args.file, loaded, asked)? {
        Ok(read) => read,
        Err((sources, all)) => {
            input::tell(&args.file, &sources, &all);
            return Ok(Verdict::Errors);
        }
    };
    let read::Read {
        mut module,
        entries,
        refused: mut left_out,
        ..
    } = read;
    if let Some(size) = args.threadgroup {
        in_threadgroups(&mut module, args.kernel.as_deref(), size)?;
    }
    // A dispatch of a browser is of whole workgroups.
    if shader::is_shader(&args.file) {
        invar_prove::with_whole_threadgroups(&mut module);
    }
    if let Some(given) = shader::still_open(&args.file, &module, &args.constants).first() {
        return Err(Refusal(format!(
            "--const {given}: a kernel is proved for every value of its constants; only overrides of a \
             shader that decide a size have to be given"
        )));
    }
    let (module, invalid) = match valid_kernels(&module, args.kernel.as_deref()) {
        Ok(valid) => valid,
        Err(Diagnostics(all)) => return refused(&module, &all),
    };
    left_out.extend(invalid);
    let mut cases = match module.sources.first().map(|s| shader::cases(&args.file, s)) {
        None => Vec::new(),
        Some(Ok((cases, _programs))) => cases,
        Some(Err(Diagnostics(all))) => return refused(&module, &all),
    };
    if let Some(size) = args.threadgroup {
        cases.retain(|case| case.threadgroup.is_none_or(|its| its == size));
    }
    let chosen: Vec<&Kernel> = match &args.kernel {
        Some(name) => vec![crate::plan::the_kernel(&module, &args.file, Some(name))?],
        None => module.kernels.iter().collect(),
    };
    let destination = match &args.certificate {
        None => None,
        Some(path) => {
            let destination = Destination::of(path)?;
            if input::is_the_kernel(&args.file, &destination) {
                return Err(Refusal(format!(
                    "--certificate: {} is the kernel's own file; name another",
                    path_text(path)
                )));
            }
            Some(destination)
        }
    };
    let certificates = match &args.verify {
        None => None,
        Some(path) => {
            let text = files::text(path).map_err(|e| Refusal(format!("--verify {e}")))?;
            let read = invar_prove::read_certificates(&text);
            Some(read.map_err(|why| Refusal(format!("--verify {}: {why}", path_text(path))))?)
        }
    };
    let shader = shader::shader_of(&args.file);
    let given = match &shader {
        Some(_) => shader::values(&args.constants)?,
        None => Vec::new(),
    };
    let mut verdict = Verdict::Clean;
    let mut told = Vec::new();
    let mut written = Vec::new();
    for (name, Diagnostics(why)) in &left_out {
        verdict = Verdict::Errors;
        if args.machine.json {
            let why = shader::advised(&args.file, why);
            let why = report::to_json(&module.sources, &module.calls, &why);
            told.push(json!({ "kernel": name, "verdict": "refused", "diagnostics": why }));
        } else {
            refused(&module, why)?;
            show(&format!("@{name}: refused"));
        }
    }
    for kernel in chosen {
        let found = one(&module, kernel, &cases, certificates.as_deref())?;
        let Some(mut report) = found else {
            verdict = Verdict::Errors;
            let message = format!("@{}: the file has no certificate of it", kernel.name);
            if args.machine.json {
                told.push(json!({ "kernel": &*kernel.name, "verdict": "open", "why": message }));
            } else {
                show(&message);
            }
            continue;
        };
        as_declared(&module, &entries, &mut report);
        say_elements(&module, &entries, &mut report);
        say_launch(&module, &entries, &mut report);
        if let Some(size) = args.threadgroup {
            say_size(&mut report, size);
        }
        if let Some(shader) = &shader {
            let settings = shader.settings(&report.kernel);
            say_overrides(&mut report, &module, settings, &given);
        }
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
                launch: report.witness,
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

/// A module with those of its kernels that are valid, or the one that is asked for, and why the others are not.
///
/// # Errors
/// What is wrong with the kernel that is asked for, with all of them, or with the module.
fn valid_kernels(
    module: &Module,
    asked: Option<&str>,
) -> Result<(Verified, Vec<(String, Diagnostics)>), Diagnostics> {
    let whole = match verify(module.clone()) {
        Ok(valid) => return Ok((valid, Vec::new())),
        Err(whole) => whole,
    };
    let alone = |name: &str| {
        let mut alone = module.clone();
        alone.kernels.retain(|kernel| *kernel.name == *name);
        verify(alone)
    };
    if let Some(name) = asked.filter(|name| module.kernel(name).is_some()) {
        return alone(name).map(|valid| (valid, Vec::new()));
    }
    let mut rest = module.clone();
    let mut invalid = Vec::new();
    rest.kernels.retain(|kernel| match alone(&kernel.name) {
        Ok(_) => true,
        Err(why) => {
            invalid.push((kernel.name.to_string(), why));
            false
        }
    });
    match verify(rest) {
        Ok(valid) if !valid.kernels.is_empty() => Ok((valid, invalid)),
        Ok(_) | Err(_) => Err(whole),
    }
}

/// Has the kernel that is asked for, or all of them, be launched in threadgroups of a size only.
fn in_threadgroups(module: &mut Module, name: Option<&str>, size: [u32; 3]) -> Result<(), Refusal> {
    let is_asked = |kernel: &&mut Kernel| name.is_none_or(|name| *kernel.name == *name);
    for kernel in module.kernels.iter_mut().filter(is_asked) {
        invar::emit::check_size(kernel, size).map_err(|error| {
            let why = match error {
                invar::Error::Runtime { message, .. } => message,
                other => other.to_string(),
            };
            Refusal(format!("--threadgroup: {why}"))
        })?;
        kernel.threadgroup_size = Some(size);
    }
    Ok(())
}

/// Names the size of threadgroups among the conditions, for the launches are those.
fn say_size(report: &mut Report, size: [u32; 3]) {
    let said = ["x", "y", "z"].into_iter().zip(size);
    let said = said
        .filter(|(axis, threads)| *threads != 1 || !report.flat_dimensions.contains(axis))
        .map(|(axis, threads)| format!("threadgroup.{axis} == {threads}"));
    let rest = report.texts.iter().cloned();
    report.texts = said.chain(rest).collect();
}

/// Names the values that overrides of a shader have among the conditions, of those that decide a size: they are part of
/// the kernel.
fn say_overrides(
    report: &mut Report,
    module: &Module,
    settings: Vec<(String, Option<Const>)>,
    given: &[(String, f64)],
) {
    let is_open = |name: &str| module.function_constants.iter().any(|c| *c.name == *name);
    let fixed = settings.into_iter().filter(|(name, _)| !is_open(name));
    let said = fixed.filter_map(|(name, default)| {
        let given = given.iter().find(|(given, _)| *given == name);
        let value = match given {
            Some((_, value)) => value.to_string(),
            None => default?.to_string(),
        };
        Some(format!("{name} == {value}"))
    });
    let rest = report.texts.iter().cloned();
    report.texts = said.chain(rest).collect();
}

/// What is known of a kernel: by its certificate, if there are any.
fn one(
    module: &Verified,
    kernel: &Kernel,
    cases: &[RunCase],
    certificates: Option<&[Certificate]>,
) -> Result<Option<Report>, Refusal> {
    let report = match certificates {
        None => invar_prove::prove(module, &kernel.name, cases, Options::default()),
        Some(all) => {
            let Some(its) = all.iter().find(|c| *c.kernel == *kernel.name) else {
                return Ok(None);
            };
            invar_prove::verify_certificate(module, cases, its)
        }
    };
    Ok(Some(report?))
}

/// Gives a launch that was found what the file's own types demand, if the checkers report it all the same: textures their
/// formats, and variables and references as many elements as they have.
fn as_declared(module: &Verified, entries: &[invar_wgsl::Entry], report: &mut Report) {
    let Some(found) = &mut report.counterexample else {
        return;
    };
    let entry = entries.iter().find(|e| e.name == report.kernel);
    let resources = || entry.iter().flat_map(|e| &e.resources);
    let kernel = module.kernel(&report.kernel);
    let mut launch = found.launch.clone();
    for (name, data) in &mut launch.args {
        let mut resources = resources().filter(|r| r.params.first() == Some(name));
        let Some(resource) = resources.next() else {
            continue;
        };
        if let Some(format) = resource.format
            && let Some(rest) = data.strip_prefix("texture(")
            && let Some((_, rest)) = rest.split_once(',')
        {
            *data = format!("texture({},{rest}", format.name());
        }
        let param = kernel.and_then(|k| k.params.iter().find(|p| *p.name == **name));
        let element = param.and_then(|param| match &param.kind {
            ParamKind::Buffer { element, .. } | ParamKind::Constant { element } => Some(element),
            ParamKind::Threadgroup { .. }
            | ParamKind::Scalar { .. }
            | ParamKind::Texture(_)
            | ParamKind::Sampler => None,
        });
        let each = element.and_then(|element| element.extent(&module.structs));
        // Of what the kernel never names one is enough.
        let place = kernel.and_then(|k| k.params.iter().position(|p| *p.name == **name));
        let unnamed = place.filter(|place| kernel.is_some_and(|k| !names(k, *place)));
        let length = resource.length.or(unnamed.map(|_| 1));
        if let (Some(length), Some(each), [_only]) = (length, each, &resource.params[..])
            && let Some(shorter) = of_length(data, length, each.location_count)
        {
            *data = shorter;
        }
    }
    if launch != found.launch
        && let Ok(findings) = invar_prove::launch::run(module, &report.kernel, &launch)
        && !findings.is_empty()
    {
        (found.launch, found.findings) = (launch, findings);
    }
}

/// Has a launch that was found and what the checkers report of it be in the types of the source, where those of the kernel
/// are others.
fn say_launch(module: &Verified, entries: &[invar_wgsl::Entry], report: &mut Report) {
    let (Some(found), Some(kernel)) = (&mut report.counterexample, module.kernel(&report.kernel))
    else {
        return;
    };
    // Long data is zeros if the checkers report such a launch too.
    for is_short in [true, false] {
        let (mut launch, mut said) = (found.launch.clone(), found.launch.clone());
        let args = launch.args.iter_mut().zip(&mut said.args);
        for ((name, data), (_, words)) in args {
            if let Some(both) = in_source(module, kernel, entries, name, data, is_short) {
                (*data, *words) = both;
            }
        }
        if said == found.launch {
            break;
        }
        if let Ok(findings) = invar_prove::launch::run(module, &report.kernel, &launch)
            && !findings.is_empty()
        {
            (found.launch, found.findings) = (said, findings);
            break;
        }
    }
    let written = invar_wgsl::written(module, entries);
    for written in written.iter().filter(|w| w.kernel == report.kernel) {
        found.findings.iter_mut().for_each(|f| written.tell(f));
    }
}

/// Has conditions count the elements of buffers as their source does, where a kernel accesses parts of them.
fn say_elements(module: &Verified, entries: &[invar_wgsl::Entry], report: &mut Report) {
    let Some(kernel) = module.kernel(&report.kernel) else {
        return;
    };
    for param in &kernel.params {
        let (ParamKind::Buffer { element, .. } | ParamKind::Constant { element }) = &param.kind
        else {
            continue;
        };
        let bytes = |element: &ElementType, structs: &[StructDef]| {
            element.extent(structs).map_or(0, |e| e.size_bytes)
        };
        let Some(declared) = of_param(entries, &report.kernel, &param.name) else {
            continue;
        };
        let of_kernel = bytes(element, &module.structs);
        let of_source = bytes(&declared.element, &declared.structs);
        let is_part = of_kernel > 0 && of_source.is_multiple_of(of_kernel);
        if is_part && of_source > of_kernel {
            for text in &mut report.texts {
                *text = in_elements(text, &param.name, of_source / of_kernel);
            }
        }
    }
}

/// A condition on how many parts of elements a buffer has, as one on its elements, of so many parts each: `a * 48 <= 48 n`
/// is `a <= n`, and `a * 48 + 5 <= 48 n` is `a + 1 <= n`.
fn in_elements(text: &str, param: &str, parts: u64) -> String {
    let length = format!("length({param})");
    let whole = |side: &str| {
        let mut terms = Vec::new();
        for term in side.split(" + ") {
            let (numbers, factor) = match term.rsplit_once(" * ") {
                Some((numbers, factor)) => (Some(numbers), factor),
                None => (None, term),
            };
            let factor: u64 = factor.parse().ok()?;
            terms.push(match numbers {
                None => factor.div_ceil(parts).to_string(),
                Some(numbers) if factor == parts => numbers.to_string(),
                Some(numbers) if factor.is_multiple_of(parts) => {
                    format!("{numbers} * {}", factor / parts)
                }
                Some(_) => return None,
            });
        }
        // Two numbers by themselves would both be more than they are.
        let alone = terms.iter().filter(|t| t.parse::<u64>().is_ok()).count();
        (alone <= 1).then(|| terms.join(" + "))
    };
    let side = text
        .strip_suffix(&*length)
        .and_then(|t| t.strip_suffix(" <= "));
    match side.and_then(whole) {
        Some(side) => format!("{side} <= {length}"),
        None => text.replace(&*length, &format!("{length} * {parts}")),
    }
}

/// Whether an instruction of a kernel names a parameter, by its place, or what it requires might.
fn names(kernel: &Kernel, place: usize) -> bool {
    let mut named = !kernel.requires.is_empty();
    kernel.for_each_inst(&mut |inst| {
        let param = Memory::Param(place as u32);
        inst.kind.for_each_memory(|memory| named |= memory == param);
    });
    named
}

/// Data of so many elements in place of more, each of so many scalars; `None` if it has no more.
fn of_length(data: &str, length: u32, scalars: u64) -> Option<String> {
    if let Some(list) = data.strip_prefix('[').and_then(|d| d.strip_suffix(']')) {
        let items: Vec<&str> = list.split(", ").collect();
        let kept = usize::try_from(u64::from(length).checked_mul(scalars)?).ok()?;
        return (items.len() > kept).then(|| format!("[{}]", items[..kept].join(", ")));
    }
    let (word, rest) = data.split_once('(')?;
    let end = rest.find([',', ')'])?;
    let (count, rest) = rest.split_at(end);
    let is_longer = count.parse::<u64>().ok()? > u64::from(length);
    let is_of_elements = matches!(word, "iota" | "zeros" | "fill" | "random");
    (is_longer && is_of_elements).then(|| format!("{word}({length}{rest}"))
}

/// The command that runs a launch, as a shell takes it.
fn check_command(args: &ProveArgs, report: &Report) -> Option<String> {
    let file = invar_prove::words::quoted(&args.file.display().to_string());
    let options = match shader::is_shader(&args.file) {
        true => of_workgroups(report)?,
        false => report.check_options()?,
    };
    // What the file was read with belongs to it.
    let launch = &report.counterexample.as_ref()?.launch;
    let mut given = args.with.options();
    for constant in &args.constants {
        let name = constant
            .split('=')
            .next()
            .unwrap_or_default()
            .trim_start_matches('@');
        if launch.constants.iter().all(|(said, _)| said != name) {
            given.extend(["--const".to_string(), constant.clone()]);
        }
    }
    let given = given
        .iter()
        .map(|word| format!(" {}", invar_prove::words::quoted(word)));
    Some(format!(
        "invar check {file} {options}{}",
        given.collect::<String>()
    ))
}

/// As [`Report::check_options`], for a dispatch of whole workgroups.
fn of_workgroups(report: &Report) -> Option<String> {
    let launch = &report.counterexample.as_ref()?.launch;
    let (grid, size) = (launch.grid, launch.threadgroup);
    let groups = [0, 1, 2].map(|axis| grid[axis].div_ceil(size[axis].max(1)));
    let groups = match groups {
        [x, 1, 1] => x.to_string(),
        [x, y, z] => format!("{x},{y},{z}"),
    };
    let sized = ["--entry", &report.kernel, "--groups", &groups].map(str::to_string);
    let options = launch.options(&report.kernel);
    // Those behind the kernel, the grid and the threadgroup.
    let words = sized.iter().chain(options.iter().skip(6));
    let quoted: Vec<String> = words.map(|word| invar_prove::words::quoted(word)).collect();
    Some(quoted.join(" "))
}

fn tell(args: &ProveArgs, module: &Module, report: &Report, checked: bool) {
    if let Some(found) = &report.counterexample {
        let findings = shader::advised(&args.file, &found.findings);
        let rendered = report::render_for(module, &findings, input::style());
        say(rendered.trim_end());
    }
    show(&shader::named(&args.file, report.in_words(module, checked)));
    if let Some(command) = check_command(args, report) {
        show(&format!("    {command}"));
    }
}

fn document(args: &ProveArgs, module: &Module, report: &Report) -> Json {
    // In the words of the text.
    let said = |text: &str| shader::named(&args.file, text.to_string());
    let all_said = |texts: &[String]| texts.iter().map(|t| said(t)).collect::<Vec<String>>();
    let doubts: Vec<Json> = (report.doubts.iter())
        .map(|doubt| {
            let lines: Vec<u32> = doubt.spans.iter().map(|s| s.start.line).collect();
            json!({ "lines": lines, "place": doubt.place(module), "what": said(&doubt.what), "why": said(doubt.why) })
        })
        .collect();
    let findings = report.counterexample.iter();
    let findings: Vec<Json> = findings
        .flat_map(|found| shader::advised(&args.file, &found.findings))
        .map(
            |d| json!({ "rule": d.rule.name(), "message": d.message, "line": d.span().start.line }),
        )
        .collect();
    json!({
        "kernel": report.kernel,
        "verdict": report.verdict.name(),
        "conditions": all_said(&report.texts),
        "requires": all_said(&report.required),
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

#[cfg(test)]
mod tests {
    use super::in_elements;

    #[test]
    fn parts_become_elements() {
        for (text, said) in [
            ("grid.x * 12 <= length(q)", "grid.x <= length(q)"),
            (
                "grid.x * 24 + 5 <= length(q)",
                "grid.x * 2 + 1 <= length(q)",
            ),
            ("a * b * 12 <= length(q)", "a * b <= length(q)"),
            ("13 <= length(q)", "2 <= length(q)"),
            ("grid.x * 3 <= length(q)", "grid.x * 3 <= length(q) * 12"),
            ("grid.x <= length(q)", "grid.x <= length(q) * 12"),
            ("length(q) % 4 == 0", "length(q) * 12 % 4 == 0"),
            ("grid.x <= length(p)", "grid.x <= length(p)"),
        ] {
            assert_eq!(in_elements(text, "q", 12), said);
        }
    }
}
