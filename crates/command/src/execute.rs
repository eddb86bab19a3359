//! Commands that run kernels: `check` and `run`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use invar_interp::case::{Bound, mismatches};
use invar_interp::{self as interp, Arg, CheckOptions, Schedules};
use invar_ir::diagnostic::path_text;
use invar_ir::text::case::RunCase;
use invar_ir::texture::stored;
use invar_ir::{
    Access, AddressSpace, Diagnostic, Diagnostics, ElementType, Kernel, Memory, ParamKind, Rule,
    Severity, Type,
};
use invar_texture::TextureShape;
use invar_wgsl::{Declared, Shader};
use serde_json::{Value as Json, json};

use crate::declared::of_param;
use crate::files::Destination;
use crate::input::Loaded;
use crate::npy::{self, Array};
use crate::options::{count, split};
use crate::outcome::{Refusal, Verdict};
use crate::output::{Output, refused, time};
use crate::place::Place;
use crate::plan::{Inputs, Plan, Planned, bound, no_parameter, options, plan, usage_or_findings};
use crate::preview::previews;
use crate::progress::Bar;
use crate::{input, picture, program, shader};

#[derive(Args)]
pub struct CheckArgs {
    #[command(flatten)]
    pub inputs: Inputs,
    /// How many schedules to try, by seeds from --seed on. By default one where its verdict holds for
    /// every schedule, else up to 16.
    #[arg(long, value_name = "N")]
    seeds: Option<u32>,
    /// Leave out the findings of a rule (repeatable).
    #[arg(long, value_name = "RULE")]
    allow: Vec<String>,
    /// Fail on warnings too: --deny warnings.
    #[arg(long, value_name = "WHAT", value_parser = ["warnings"])]
    deny: Option<String>,
    /// The most memory for the data-race checker, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = CheckOptions::default().race_memory_bytes)]
    race_memory_bytes: u64,
    /// Prove the kernel first, as `invar prove` does: memory on which no two threads race is then not watched
    /// for races.
    #[arg(long)]
    prove: bool,
}

#[derive(Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub inputs: Inputs,
    /// Where to run: a device of `invar devices`, or reference: the reference machine without its
    /// checkers. The default device unless --seed, --simdgroup or a run line's simdgroup(n) ask for
    /// the reference machine.
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
    /// Write a buffer to an array file after the run (repeatable).
    #[arg(long = "out", value_name = "NAME=@FILE")]
    outs: Vec<String>,
}

pub fn check(args: &CheckArgs, loaded: &Loaded) -> Result<Verdict, Refusal> {
    let mut allow = Vec::new();
    for name in &args.allow {
        allow.push(Rule::from_name(name).ok_or_else(|| {
            Refusal(format!(
                "there is no rule `{name}`; `invar explain` lists them all"
            ))
        })?);
    }
    if args.seeds == Some(0) {
        return Err(Refusal(
            "--seeds 0 would check nothing; say at least 1".to_string(),
        ));
    }
    let plan = match plan(&args.inputs, loaded)? {
        Planned::Ready(plan) => plan,
        Planned::Invalid {
            sources,
            calls,
            diagnostics,
        } => return refused(&args.inputs, sources, calls, &diagnostics),
    };
    let options = options(&args.inputs)?;
    let mut output = Output::new(&args.inputs, &plan);
    output.allows = true;
    let mut lints = plan.shader.as_ref().map_or_else(Vec::new, Shader::lints);
    lints.retain(|lint| !allow.contains(&lint.rule));
    if !lints.is_empty() {
        output.result("", &lints, "", json!({}));
        output.errors |= args.deny.is_some();
    }
    let mut proofs = args.prove.then(Proofs::default);
    for case in &plan.cases {
        match bound(&plan, case, &options)? {
            Ok(bound) => {
                let known = proofs.as_mut().map(|p| p.of(&plan, case, &bound));
                let known = known.transpose()?;
                check_one(&plan, args, &allow, case, (bound, known), &mut output)?;
            }
            Err(diagnostics) => {
                output.result(&case.kernel.name, &diagnostics, "", json!({}));
            }
        }
    }
    program::check(&plan, args, &allow, &options, (&mut proofs, &mut output))?;
    output.finish()
}

/// What is proved of the kernels that are checked, each once.
#[derive(Default)]
pub struct Proofs(HashMap<String, invar_prove::Report>);

/// Which memory is not watched for races, and which is, of that which a kernel writes and threads share.
#[derive(Default)]
pub struct Known {
    race_free: Vec<Memory>,
    names: Vec<String>,
    watched: Vec<String>,
    /// The launches that a proof is about, where this is none of them.
    beyond: Option<String>,
}

impl Proofs {
    /// What a proof says of a launch that is about to run.
    ///
    /// # Errors
    /// There is no memory to prove.
    pub fn of(&mut self, plan: &Plan, case: &RunCase, bound: &Bound) -> Result<Known, Refusal> {
        let Some(kernel) = plan.module.kernel(&bound.kernel) else {
            return Ok(Known::default());
        };
        if !self.0.contains_key(&bound.kernel) {
            let options = invar_prove::Options {
                refute: false,
                ..invar_prove::Options::default()
            };
            let mut cases = plan.cases.clone();
            cases.push(case.clone());
            let report = invar_prove::prove(&plan.module, &bound.kernel, &cases, options)?;
            self.0.insert(bound.kernel.clone(), report);
        }
        let Some(report) = self.0.get(&bound.kernel) else {
            return Ok(Known::default());
        };
        let launch = invar_prove::launch::bound(&plan.module, kernel, bound);
        let covers = report.covers(&launch);
        let mut known = Known::default();
        let params = (0..kernel.params.len() as u32).map(Memory::Param);
        for memory in params.chain((0..kernel.allocs.len() as u32).map(Memory::Alloc)) {
            let Some(info) = plan.module.memory(kernel, memory) else {
                continue;
            };
            let is_shared = match info.space {
                AddressSpace::Device
                | AddressSpace::Threadgroup
                | AddressSpace::Texture
                | AddressSpace::Imageblock => true,
                AddressSpace::Thread | AddressSpace::Constant => false,
            };
            if !is_shared || !info.access.can_write() {
                continue;
            }
            let name = info.name.to_string();
            if covers && report.race_free.contains(&memory) {
                known.race_free.push(memory);
                known.names.push(name);
            } else {
                known.watched.push(name);
            }
        }
        if !covers && !report.race_free.is_empty() {
            known.beyond = Some(report.launches());
        }
        Ok(known)
    }
}

impl Known {
    fn in_words(&self) -> String {
        let list = |names: &[String]| match names {
            [] => "nothing".to_string(),
            names => names.join(", "),
        };
        let beyond = match &self.beyond {
            Some(launches) => format!(", for the proof is of {launches}"),
            None => String::new(),
        };
        let (proved, watched) = (list(&self.names), list(&self.watched));
        format!("; proved free of races: {proved}; watched: {watched}{beyond}")
    }
}

/// Checks one run, of which something may be known, and tells the findings. Gives what it left in its arguments,
/// unless errors leave that open.
pub fn check_one(
    plan: &Plan,
    args: &CheckArgs,
    allow: &[Rule],
    case: &RunCase,
    (bound, known): (Bound, Option<Known>),
    output: &mut Output,
) -> Result<Option<Vec<Arg<'static>>>, Refusal> {
    let name = &case.kernel.name;
    let check_options = CheckOptions {
        run: bound.options,
        seeds: args.seeds,
        allow: allow.to_vec(),
        deny_warnings: args.deny.is_some(),
        race_memory_bytes: args.race_memory_bytes,
        race_free: known.as_ref().map_or(Vec::new(), |k| k.race_free.clone()),
    };
    let start = Instant::now();
    let mut bar = Bar::new();
    let checked = interp::check_observed(
        &plan.module,
        &bound.kernel,
        &bound.dispatch,
        &bound.args,
        &check_options,
        &mut [&mut bar],
    );
    drop(bar);
    let checked = match checked {
        Ok(checked) => checked,
        Err(Diagnostics(all)) => {
            let all = usage_or_findings(&plan.file, Some(case), all)?;
            output.result(name, &all, "", json!({}));
            return Ok(None);
        }
    };
    output.lines(&checked.printed);
    let mut diagnostics = checked.diagnostics.clone();
    let outputs = checked.outputs.iter().cloned();
    let after: Vec<Arg> = (bound.args.iter().zip(outputs))
        .map(|(arg, bytes)| arg.holding(bytes))
        .collect();
    diagnostics.extend(plan.with_files(case.span, |files| {
        mismatches(&plan.module, case, &after, &after, files)
    })?);
    let passes =
        checked.verdict == interp::Verdict::Pass && diagnostics.len() == checked.diagnostics.len();
    let closing = format!(
        "{} @{name}: {}; {}{}",
        match (passes, checked.allowed.is_empty()) {
            (true, true) => "clean",
            // What is allowed is there all the same.
            (true, false) => "passed",
            (false, _) => "failed",
        },
        checked.summary(diagnostics.len() - checked.diagnostics.len()),
        checked.reach(),
        known.as_ref().map_or(String::new(), Known::in_words),
    );
    let allowed: serde_json::Map<String, Json> = checked
        .allowed
        .iter()
        .map(|(rule, count)| (rule.name().to_string(), json!(count)))
        .collect();
    output.errors |= !passes;
    output.result(
        name,
        &diagnostics,
        &closing,
        json!({
            "clean": passes && checked.allowed.is_empty(),
            "passed": passes,
            "allowed": allowed,
            "every_schedule": matches!(checked.schedules, Schedules::All),
            "reach": checked.reach(),
            "simdgroup_size": checked.simdgroup_size,
            "seeds": checked.seeds,
            "steps": checked.steps,
            "seconds": start.elapsed().as_secs_f64(),
            "proved_free_of_races": known.as_ref().map(|k| &k.names),
            "watched": known.as_ref().map(|k| &k.watched),
        }),
    );
    // Out of bounds a load gives zeros and a store does nothing: what comes after is as certain as without.
    let is_certain = |d: &Diagnostic| d.severity != Severity::Error || d.rule == Rule::OutOfBounds;
    let certain = passes || diagnostics.iter().all(is_certain);
    Ok(certain.then_some(after))
}

/// A buffer to write to a file.
pub struct Out<'a> {
    /// Its place: among the kernel's parameters, or the buffers of a program.
    pub number: usize,
    /// The parameter whose bytes follow, where a variable of a shader is two.
    rest: Option<usize>,
    pub name: &'a str,
    pub path: PathBuf,
    destination: Destination,
    /// The type of its elements, if they are plain numbers: others are written as their bytes.
    ty: Option<Type>,
}

/// What `--out` names.
pub struct Written {
    /// As [`Out::number`].
    pub number: usize,
    /// As [`Out::rest`].
    pub rest: Option<usize>,
    /// As [`Out::ty`].
    pub ty: Option<Type>,
}

/// What `--out` says of a kernel's parameters, or of the variables of a shader that these are.
fn outs<'a>(args: &'a RunArgs, kernel: &Kernel, plan: &Plan) -> Result<Vec<Out<'a>>, Refusal> {
    outs_of(args, |name| {
        let param = |name: &str| kernel.params.iter().position(|p| *p.name == *name);
        let params = shader::params(&plan.entries, &kernel.name, name)?;
        let number = param(params.first().map_or(name, String::as_str));
        let number = number.ok_or_else(|| no_parameter("--out", name, kernel))?;
        let rest = params.get(1).and_then(|rest| param(rest));
        match &kernel.params[number].kind {
            ParamKind::Buffer {
                element,
                access: Access::Write | Access::ReadWrite,
            } => {
                let written = of_param(&plan.entries, &kernel.name, &kernel.params[number].name);
                let ty = match written.and_then(Declared::only_scalar) {
                    Some(scalar) => Some(Type::Scalar(scalar)),
                    None => numbers(element).filter(|_| rest.is_none()),
                };
                Ok(Written { number, rest, ty })
            }
            ParamKind::Texture(texture) if texture.access.memory().can_write() => Ok(Written {
                number,
                rest: None,
                ty: Some(texture.texel()),
            }),
            _not_written => Err(Refusal(format!(
                "--out {name}: the parameter is not a texture and no buffer that the kernel writes"
            ))),
        }
    })
}

/// The type of elements that are plain numbers.
pub fn numbers(element: &ElementType) -> Option<Type> {
    match element {
        ElementType::Value(ty) => Some(*ty),
        ElementType::Array(..) | ElementType::Struct(_) => None,
    }
}

/// What `--out` says, checked before anything runs. `find` gives the place of what is named, and the type
/// of its elements, if they are plain numbers.
pub fn outs_of<'a>(
    args: &'a RunArgs,
    find: impl Fn(&str) -> Result<Written, Refusal>,
) -> Result<Vec<Out<'a>>, Refusal> {
    let mut out: Vec<Out> = Vec::new();
    for given in &args.outs {
        let (name, file) = split(given, "--out", "y=@y.npy")?;
        let path = file.strip_prefix('@').unwrap_or(file).trim_matches('"');
        if path.is_empty() {
            return Err(Refusal(format!(
                "--out {name}: give the name of a file, such as {name}=@{name}.npy"
            )));
        }
        let Written { number, rest, ty } = find(name)?;
        let is_array = Path::new(path).extension().is_some_and(|e| e == "npy");
        if is_array && ty.is_none() {
            return Err(Refusal(format!(
                "--out {name}: array files hold plain numbers, and the elements are structs or arrays; write \
                 their bytes, {name}=@{name}.bin"
            )));
        }
        let destination = Destination::of(Path::new(path))?;
        if out.iter().any(|o| o.destination.is_same(&destination)) {
            return Err(Refusal(format!("two --out name the file {path}")));
        }
        if input::is_the_kernel(&args.inputs.file, &destination) {
            return Err(Refusal(format!(
                "--out {name}: {path} is the kernel's own file; name another"
            )));
        }
        out.push(Out {
            number,
            rest,
            name,
            path: PathBuf::from(path),
            destination,
            ty,
        });
    }
    Ok(out)
}

pub fn run(args: &RunArgs, loaded: &Loaded) -> Result<Verdict, Refusal> {
    let plan = match plan(&args.inputs, loaded)? {
        Planned::Ready(plan) => plan,
        Planned::Invalid {
            sources,
            calls,
            diagnostics,
        } => return refused(&args.inputs, sources, calls, &diagnostics),
    };
    if !args.outs.is_empty() && plan.cases.len() + plan.programs.len() > 1 {
        return Err(Refusal(
            "--out needs one run: choose it with --kernel, or give --grid and --arg".to_string(),
        ));
    }
    let options = options(&args.inputs)?;
    let mut output = Output::new(&args.inputs, &plan);
    for case in &plan.cases {
        let name = &case.kernel.name;
        let outs = match plan.module.kernel(name) {
            Some(kernel) => outs(args, kernel, &plan)?,
            None => Vec::new(),
        };
        let mut bound = match bound(&plan, case, &options)? {
            Ok(bound) => bound,
            Err(diagnostics) => {
                output.result(name, &diagnostics, "", json!({}));
                continue;
            }
        };
        for out in &outs {
            out.check(&bound.args[out.number])?;
        }
        let place = match Place::of(args.device.as_deref(), &args.inputs, &plan.module, &bound)? {
            Ok(place) => place,
            Err(why) => {
                output.skip(&plan, name, why)?;
                continue;
            }
        };
        let reference = match place.reference(&plan.module, case, &bound) {
            Ok(reference) => reference,
            Err(Diagnostics(all)) => {
                output.result(
                    name,
                    &usage_or_findings(&plan.file, Some(case), all)?,
                    "",
                    json!({}),
                );
                continue;
            }
        };
        let ran = match place.run(&plan.module, &mut bound) {
            Ok(ran) => ran,
            Err(Diagnostics(all)) => {
                let all = usage_or_findings(&plan.file, Some(case), all)?;
                output.result(name, &all, "", json!({}));
                continue;
            }
        };
        output.lines(&ran.printed);
        let seconds = ran.seconds;
        let reference = reference.as_ref().unwrap_or(&bound.args);
        let mut wrong = plan.with_files(case.span, |files| {
            mismatches(&plan.module, case, &bound.args, reference, files)
        })?;
        let missed = wrong.len();
        // What a run that was stopped left behind replaces nothing.
        let ended = !ran.findings.iter().any(|d| d.severity == Severity::Error);
        wrong.extend(ran.findings);
        for out in outs.iter().filter(|_| ended) {
            match &bound.args[out.number] {
                Arg::Texture(shape, memory) => write_texture(out, *shape, memory.bytes())?,
                arg => {
                    let rest = out.rest.map_or(&[][..], |rest| bound.args[rest].bytes());
                    write_out(out, &[arg.bytes(), rest])?;
                }
            }
        }
        let clean = !wrong.iter().any(|d| d.severity == Severity::Error);
        let mut closing = vec![match (case.expects.len(), missed) {
            _ if missed == 0 && !clean => format!("@{name}: failed the checks"),
            (0, 0) => format!("@{name}: done in {}", time(seconds)),
            (n, 0) => format!(
                "@{name}: right, {} met, in {}",
                count(n, "expectation"),
                time(seconds)
            ),
            (n, w) => format!("@{name}: {}", missed_of(n, w, &wrong)),
        }];
        for out in &outs {
            closing.push(if ended {
                format!("wrote {} to {}", out.name, path_text(&out.path))
            } else {
                format!("{} is not written: the run has errors", out.name)
            });
        }
        if let Some(kernel) = plan.module.kernel(name)
            && outs.is_empty()
            && case.expects.is_empty()
        {
            closing.extend(previews(&plan.module, &plan.entries, kernel, &bound.args));
        }
        let written: serde_json::Map<String, Json> = outs
            .iter()
            .filter(|_| ended)
            .map(|o| (o.name.to_string(), json!(o.path.display().to_string())))
            .collect();
        output.result(
            name,
            &wrong,
            &closing.join("\n"),
            json!({
                "clean": clean,
                "expectations": case.expects.len(),
                "device": place.name(),
                "steps": ran.steps,
                "seconds": seconds,
                "written": written,
            }),
        );
    }
    program::run(&plan, args, &options, &mut output)?;
    output.finish()
}

/// What is said of expectations of which so many are not met, by what was found; one for which there is no memory is
/// not known to be wrong.
pub fn missed_of(expectations: usize, missed: usize, found: &[Diagnostic]) -> String {
    let all = count(expectations, "expectation");
    let of_expectations = found.iter().take(missed);
    match of_expectations
        .filter(|d| d.rule == Rule::OutOfMemory)
        .count()
    {
        0 => format!("wrong, {missed} of {all} not met"),
        n => format!("not compared, there is no memory for {n} of {all}"),
    }
}

impl Out<'_> {
    /// Refuses what cannot be written to the file that is named.
    fn check(&self, arg: &Arg) -> Result<(), Refusal> {
        let name = self.name;
        match (arg, picture::is_picture(&self.path)) {
            (Arg::Texture(shape, _), true) if shape.depth > 1 => Err(Refusal(format!(
                "--out {name}: the texture has {} slices, and a picture is one; write {name}=@{name}.npy",
                shape.depth
            ))),
            (Arg::Texture(shape, _), true) => {
                let kind = picture::kind(shape.format);
                kind.map_err(|why| Refusal(format!("--out {name}: {why}")))?;
                Ok(())
            }
            (_, true) => Err(Refusal(format!(
                "--out {name}: the parameter is not a texture, and {} is a picture; write {name}=@{name}.npy",
                path_text(&self.path)
            ))),
            (Arg::Texture(..), false) if picture::is_other_picture(&self.path) => {
                Err(Refusal(format!(
                    "--out {name}: {} is a picture of a kind that is not written; write {name}=@{name}.png, or an array {name}=@{name}.npy",
                    path_text(&self.path)
                )))
            }
            (_, false) => Ok(()),
        }
    }
}

/// Writes a texture: a picture, or an array of rows of texels.
fn write_texture(out: &Out, shape: TextureShape, bytes: &[u8]) -> Result<(), Refusal> {
    if picture::is_picture(&out.path) {
        // A picture shows the first level.
        let shape = shape.level(0);
        let bytes = &bytes[..shape.size_bytes() as usize];
        picture::write(&out.destination, &out.path, shape, bytes)?;
        return Ok(());
    }
    let [width, height, depth] = shape.extents().map(u64::from);
    let texels = match (shape.levels, depth) {
        (1, 1) => vec![height, width],
        (1, _) => vec![depth, height, width],
        // Levels have sizes of their own.
        (_, _) => vec![shape.texels()],
    };
    let codes = u64::from(shape.format.codes());
    let array = Array {
        scalar: stored(shape.format),
        shape: texels.into_iter().chain([codes]).collect(),
        bytes: bytes.to_vec(),
    };
    npy::write_to(&out.destination, &array)?;
    Ok(())
}

/// Writes a buffer, or the two that a variable of a shader is, one behind the other: numbers as an array file, unless it
/// is named as another.
pub fn write_out(out: &Out, parts: &[&[u8]]) -> Result<(), Refusal> {
    let is_array = out.path.extension().is_none_or(|e| e == "npy");
    let Some(ty) = out.ty.filter(|_| is_array) else {
        out.destination.write(parts)?;
        return Ok(());
    };
    let bytes = parts.first().copied().unwrap_or_default();
    let Some(scalar) = ty.scalar() else {
        return Ok(());
    };
    let components = u64::from(ty.component_count());
    let elements = bytes.len() as u64 / (scalar.size_bytes() * components);
    let used = (elements * components * scalar.size_bytes()) as usize;
    let mut shape = vec![elements];
    if components > 1 {
        shape.push(components);
    }
    npy::write_to(
        &out.destination,
        &Array {
            scalar,
            shape,
            bytes: bytes[..used].to_vec(),
        },
    )?;
    Ok(())
}
