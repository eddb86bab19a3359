//! Commands that tell and run nothing: `print`, `explain`, `ops`, `devices`.

use std::path::PathBuf;

use crate::files::Destination;
use clap::Args;
use invar::{Capabilities, Device, report};
use invar_ir::diagnostic::path_text;
use invar_ir::ops::{Accuracy, Meaning, Signature};
use invar_ir::{Diagnostics, Op, Rule, Scalar, verify};
use invar_texture::{MAX_EXTENT, MAX_TEXELS};
use serde_json::json;

use crate::console::{say, show};
use crate::input::Loaded;
use crate::options::{Machine, usage};
use crate::outcome::{Refusal, Verdict};
use crate::{input, read, shader};

#[derive(Args)]
pub struct PrintArgs {
    /// A module in the text form (.inv) or the binary form (.invb), a shader (.wgsl) or a Metal source
    /// (.metal).
    file: PathBuf,
    /// The only kernel to print.
    #[arg(long, visible_alias = "entry", value_name = "NAME")]
    kernel: Option<String>,
    /// The value of a shader's override, or of a function constant of a Metal source.
    #[arg(long = "const", value_name = "NAME=VALUE")]
    constants: Vec<String>,
    #[command(flatten)]
    with: crate::metal::With,
    /// Write the binary form to this file instead.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

#[derive(Args)]
pub struct ExplainArgs {
    /// The rule's name, as in error[data-race]; without one, all are listed.
    rule: Option<String>,
}

#[derive(Args)]
pub struct OpsArgs {
    /// The operation's name; without one, all are listed.
    name: Option<String>,
    #[command(flatten)]
    machine: Machine,
}

#[derive(Args)]
pub struct DevicesArgs {
    #[command(flatten)]
    machine: Machine,
}

/// A module with one kernel of it.
fn only(mut module: invar_ir::Module, name: &str) -> Result<invar_ir::Module, Refusal> {
    module.kernels.retain(|kernel| *kernel.name == *name);
    match module.kernels.is_empty() {
        true => Err(Refusal(format!("there is no kernel `{name}`"))),
        false => Ok(module),
    }
}

pub fn print(args: &PrintArgs, loaded: &Loaded) -> Result<Verdict, Refusal> {
    let asked = read::Asked {
        entry: args.kernel.as_deref(),
        constants: &args.constants,
        with: Some(&args.with),
        of_runs: false,
    };
    let Some(read) = input::read(&args.file, loaded, asked)? else {
        return Ok(Verdict::Errors);
    };
    let refused = read.refused;
    let module = match &args.kernel {
        Some(name) => only(read.module, name)?,
        None => read.module,
    };
    // Where all entry points of a shader are read, those that the verifier refuses are left out already.
    if shader::is_shader(&args.file)
        && args.kernel.is_some()
        && let Err(Diagnostics(all)) = verify(module.clone())
    {
        let all = shader::advised(&args.file, &all);
        say(report::render_for(&module, &all, input::style()).trim_end());
        return Ok(Verdict::Errors);
    }
    match &args.binary {
        None => show(module.to_string().trim_end()),
        Some(path) => {
            let destination = Destination::of(path)?;
            if input::is_the_kernel(&args.file, &destination) {
                return Err(Refusal(format!(
                    "--binary: {} is the kernel's own file; name another",
                    path_text(path)
                )));
            }
            destination.write(&[&invar_ir::binary::encode(&module)])?;
        }
    }
    for (name, Diagnostics(why)) in &refused {
        let why = shader::advised(&args.file, why);
        let text = report::render_for(&module, &why, input::style());
        say(&format!("`{name}` is left out:\n{}", text.trim_end()));
    }
    Ok(match refused.is_empty() {
        true => Verdict::Clean,
        false => Verdict::Errors,
    })
}

pub fn explain(args: &ExplainArgs) -> Result<Verdict, Refusal> {
    let Some(name) = &args.rule else {
        for rule in Rule::ALL {
            let first = rule.explanation().lines().next().unwrap_or_default();
            show(&format!("{:28} {}", rule.name(), first.trim()));
        }
        return Ok(Verdict::Clean);
    };
    let rule = Rule::from_name(name).ok_or_else(|| {
        Refusal(format!(
            "there is no rule `{name}`; `invar explain` lists them all"
        ))
    })?;
    show(&format!("{}\n", rule.name()));
    for line in rule.explanation().lines() {
        show(line.strip_prefix(' ').unwrap_or(line));
    }
    Ok(Verdict::Clean)
}

pub fn ops(args: &OpsArgs) -> Result<Verdict, Refusal> {
    let chosen: Vec<Op> = match &args.name {
        None => Op::all().collect(),
        Some(name) => vec![Op::from_name(name).ok_or_else(|| {
            Refusal(format!(
                "there is no operation `{name}`; `invar ops` lists them all"
            ))
        })?],
    };
    if args.machine.json {
        let rows: Vec<_> = chosen
            .iter()
            .map(|op| {
                let row = op.row();
                json!({
                    "name": row.name,
                    "signature": signature(row.signature),
                    "defined_by": meaning(row.meaning),
                    "error": accuracy(row.accuracy),
                    "doc": row.text(),
                })
            })
            .collect();
        show(&serde_json::to_string_pretty(&rows)?);
    } else if args.name.is_some() {
        for op in chosen {
            let row = op.row();
            show(&format!("{}: {}\n", row.name, signature(row.signature)));
            show(&row.text());
            show(&format!(
                "\ndefined by {}; error: {}",
                meaning(row.meaning),
                accuracy(row.accuracy)
            ));
        }
    } else {
        for op in chosen {
            let row = op.row();
            show(&format!("{:34} {}", row.name, first_sentence(&row.text())));
        }
    }
    Ok(Verdict::Clean)
}

/// A text's first sentence, in one line.
fn first_sentence(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.split_once(". ") {
        Some((first, _)) => format!("{first}."),
        None => line,
    }
}

fn signature(signature: Signature) -> String {
    signature.to_string()
}

fn meaning(meaning: Meaning) -> &'static str {
    match meaning {
        Meaning::Eval(_) => "its evaluator",
        Meaning::Expand(_) => "its expansion into other operations",
        Meaning::Arrange => "moving components",
        Meaning::Lanes(..) => "exchange between lanes",
        Meaning::Query => "the thread's place in the grid",
    }
}

fn accuracy(accuracy: Accuracy) -> String {
    match accuracy {
        Accuracy::Exact => "none (exact or correctly rounded)".to_string(),
        Accuracy::Ulp { f32, f64 } => format!("at most {f32} ulp in f32, {f64} in f64"),
        Accuracy::Terms(ulp) => format!("at most {ulp} ulp of the sum of its terms' magnitudes"),
        Accuracy::Twofold(ulp) => format!(
            "at most {ulp} ulp or, where its terms cancel and that is more, 2^-42 (in f64 2^-100) of \
             the sum of their magnitudes"
        ),
    }
}

pub fn devices(args: &DevicesArgs) -> Result<Verdict, Refusal> {
    invar_runtime::check_environment().map_err(|e| usage(e.into_diagnostics().0))?;
    let devices = Device::all();
    if args.machine.json {
        let all: Vec<_> = devices
            .iter()
            .map(|d| report::capabilities_to_json(d.capabilities()))
            .collect();
        show(&serde_json::to_string_pretty(&all)?);
        return Ok(Verdict::Clean);
    }
    let default_device = Device::default();
    for device in &devices {
        let able = device.capabilities();
        let is_default = default_device
            .as_ref()
            .is_ok_and(|d| able.name == d.capabilities().name);
        let default = if is_default { " (the default)" } else { "" };
        show(&format!("{:10} {}{default}", able.name, able.description));
        for line in described(able) {
            show(&format!("{:10} {line}", ""));
        }
    }
    // The reference machine always can: it is the processor that lacks something.
    if let Err(error) = default_device {
        for why in error.into_diagnostics().0 {
            show(&format!(
                "{:10} (the default) cannot be used: {}",
                "cpu", why.message
            ));
        }
    }
    Ok(Verdict::Clean)
}

/// What a device can do, in lines for people.
fn described(able: &Capabilities) -> Vec<String> {
    fn list<T: ToString>(items: &[T]) -> String {
        let names: Vec<String> = items.iter().map(T::to_string).collect();
        match names.is_empty() {
            true => "none".to_string(),
            false => names.join(", "),
        }
    }
    let orders: Vec<&str> = able.memory_orders.iter().map(|o| o.name()).collect();
    let mut also = Vec::new();
    if able.async_copy {
        also.push("async copies");
    }
    if able.threadgroup_progress {
        also.push("threadgroup-progress");
    }
    if able.own_clock {
        also.push("a clock of its own");
    }
    vec![
        format!(
            "family {}{}",
            able.family,
            match able.host_threads {
                0 => String::new(),
                1 => "; 1 thread of the host".to_string(),
                n => format!("; {n} threads of the host"),
            }
        ),
        format!(
            "simdgroups of {} threads ({} where the kernel requires none)",
            list(&able.simdgroup_sizes),
            able.simdgroup_size
        ),
        format!(
            "threadgroups of at most {} threads and {} bytes of threadgroup memory; threads of at most {} bytes of \
             thread memory",
            able.threads_per_threadgroup, able.threadgroup_memory_bytes, able.thread_memory_bytes
        ),
        match able.buffer_bytes {
            bytes if bytes >= isize::MAX as u64 => "buffers as large as memory".to_string(),
            bytes => format!("buffers of at most {bytes} bytes"),
        },
        format!(
            "textures of every pixel format for every access, of at most {MAX_EXTENT} texels in a row and a column and {MAX_TEXELS} in all{}; atomics on r32uint and r32sint; linear samples {}",
            match able.buffer_bytes < MAX_TEXELS * 16 {
                true => format!(" and {} bytes", able.buffer_bytes),
                false => String::new(),
            },
            match able.ieee_float.contains(&Scalar::F32) {
                true => "to the bit of the formula (rule V3)",
                false =>
                    "by the formula (rule V3) in operations of f32 of this device, which rule A9 bounds",
            }
        ),
        format!("types: {}", list(&able.types)),
        format!("ieee-float: {}", list(&able.ieee_float)),
        format!(
            "atomics: {}; orders: {}",
            list(&able.atomics),
            orders.join(", ")
        ),
        format!(
            "simdgroup matrices: {}{}{}",
            list(&able.simdgroup_matrices),
            if also.is_empty() { "" } else { "; " },
            also.join(", ")
        ),
    ]
}
