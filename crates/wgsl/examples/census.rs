//! What becomes of shaders: of each file named, and each compute entry point in it, whether it is read,
//! translated and verified, and with `--check` what the checkers find on inputs that are made up.
//! `scripts/corpora.sh` runs it on folders.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use invar_interp::{Arg, CheckOptions, Dispatch, Grid, Options, check};
use invar_ir::text::data::random_scalar;
use invar_ir::{
    Const, ConstantKey, Diagnostics, ElementType, Kernel, Module, ParamKind, Scalar, Type,
    Verified, verify,
};
use invar_wgsl::{Kernels, Shader};

/// Elements of a buffer of no fixed length.
const ELEMENTS: u32 = 1024;

fn main() {
    let mut checks = false;
    let mut verbose = false;
    let mut totals: BTreeMap<String, usize> = BTreeMap::new();
    let mut slowest = (Duration::ZERO, String::new());
    let mut entries = 0;
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    if let Some(at) = args.iter().position(|a| a == "--files") {
        // The names stand in a file, one a line.
        let list = args.get(at + 1).map(std::fs::read_to_string);
        let Some(Ok(list)) = list else {
            say("--files needs a file of names");
            std::process::exit(2);
        };
        args.splice(at..at + 2, list.lines().map(str::to_string));
    }
    for path in args {
        match path.as_str() {
            "--check" => checks = true,
            "--verbose" => verbose = true,
            file => {
                let start = Instant::now();
                let outcomes = census(file, checks, verbose);
                let taken = start.elapsed();
                if !checks && taken > slowest.0 {
                    slowest = (taken, file.to_string());
                }
                for (entry, outcome, detail) in outcomes {
                    say(&format!("{file}\t{entry}\t{outcome}\t{detail}"));
                    if entry != "*" {
                        entries += 1;
                    }
                    *totals.entry(outcome).or_default() += 1;
                }
            }
        }
    }
    say(&format!("compute entry points: {entries}"));
    for (outcome, count) in totals {
        say(&format!("{count:6} {outcome}"));
    }
    if !checks {
        say(&format!("slowest: {} in {:?}", slowest.1, slowest.0));
    }
}

fn say(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stdout(), "{line}");
}

fn first(Diagnostics(all): &Diagnostics) -> String {
    all.first().map(|d| d.to_string()).unwrap_or_default()
}

/// For each entry point its name, what became of it, and why.
fn census(file: &str, checks: bool, verbose: bool) -> Vec<(String, String, String)> {
    let whole = |what: &str, why: String| vec![("*".to_string(), what.to_string(), why)];
    let text = match std::fs::read(file) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => return whole("cannot be read", error.to_string()),
    };
    let shader = match Shader::parse(file, &text) {
        Ok(shader) => shader,
        Err(errors) => return whole("not accepted by naga", first(&errors)),
    };
    let names: Vec<String> = shader.entries().map(str::to_string).collect();
    if names.is_empty() {
        return whole("no compute entry point", String::new());
    }
    let mut out = Vec::new();
    for name in names {
        let mut given: Vec<(String, f64)> = Vec::new();
        let kernels = loop {
            match shader.kernels(Some(&name), &given) {
                Ok(kernels) => break Ok(kernels),
                Err(errors) => {
                    // An override without a value gets one.
                    let message = first(&errors);
                    let missing = message
                        .split("override `")
                        .nth(1)
                        .filter(|_| message.contains("needs a value"))
                        .and_then(|rest| rest.split('`').next())
                        .map(str::to_string);
                    match missing {
                        Some(missing) if !given.iter().any(|(n, _)| *n == missing) => {
                            given.push((missing, 32.0));
                        }
                        _another => break Err(message),
                    }
                }
            }
        };
        let (outcome, detail) = match kernels {
            Err(why) => ("not supported".to_string(), why),
            Ok(kernels) => {
                let size = |m: &Module| {
                    let mut count = 0;
                    m.kernels[0].for_each_inst(&mut |_| count += 1);
                    format!("{count} instructions")
                };
                let size = size(&kernels.module);
                if verbose {
                    say(&kernels.module.to_string());
                }
                match verify(kernels.module.clone()) {
                    Err(errors) => ("not verified".to_string(), first(&errors)),
                    Ok(module) if checks => checked(&module, &kernels),
                    Ok(_) => ("verified".to_string(), size),
                }
            }
        };
        out.push((name, outcome, detail));
    }
    out
}

/// Bytes for a buffer: small numbers, so that what is an index or a count is a likely one.
fn made_up(module: &Module, element: &ElementType, count: u32, seed: u64) -> Vec<u8> {
    let Some(extent) = element.extent(&module.structs) else {
        return Vec::new();
    };
    let mut bytes = vec![0; (extent.size_bytes * u64::from(count)) as usize];
    let locations = element.locations(&module.structs);
    let mut number = 0;
    for chunk in bytes.chunks_mut(extent.size_bytes as usize) {
        for (offset, scalar) in &locations {
            let mut bits = random_scalar(*scalar, seed, number).bits;
            if scalar.is_integer() {
                bits %= 64;
            }
            number += 1;
            let size = scalar.size_bytes() as usize;
            let at = *offset as usize;
            chunk[at..at + size].copy_from_slice(&bits.to_le_bytes()[..size]);
        }
    }
    bytes
}

fn arguments(module: &Verified, kernel: &Kernel, kernels: &Kernels) -> Vec<Arg<'static>> {
    let mut args = Vec::new();
    for (number, param) in kernel.params.iter().enumerate() {
        let resources = kernels.entries.iter().flat_map(|e| &e.resources);
        let mut of = resources.filter(|r| r.params.contains(&param.name.to_string()));
        let resource = of.next();
        let fixed = resource.and_then(|r| match r.head_bytes {
            Some(_) if r.params.first().map(String::as_str) == Some(&param.name) => Some(1),
            Some(_) => None,
            None => r.length,
        });
        let count = fixed.unwrap_or(ELEMENTS);
        args.push(match &param.kind {
            ParamKind::Buffer { element, .. } | ParamKind::Constant { element } => {
                Arg::OwnedBuffer(made_up(module, element, count, number as u64))
            }
            ParamKind::Threadgroup { .. } => Arg::ThreadgroupLength(u64::from(ELEMENTS)),
            ParamKind::Scalar { value } => {
                let scalar = match kernel.ty(*value) {
                    Type::Scalar(scalar) => scalar,
                    _another => Scalar::U32,
                };
                Arg::Scalar(vec![random_scalar(scalar, 1, 1)])
            }
        });
    }
    args
}

fn checked(module: &Verified, kernels: &Kernels) -> (String, String) {
    let Some(kernel) = module.kernels.first() else {
        return ("not supported".to_string(), String::new());
    };
    let args = arguments(module, kernel, kernels);
    let dispatch = Dispatch {
        grid: Grid::Threadgroups([2, 1, 1]),
        threadgroup: kernel.threadgroup_size.unwrap_or([1; 3]),
    };
    // A function constant without a value is 1.
    let open = module
        .function_constants
        .iter()
        .filter(|c| c.default.is_none());
    let constants = open.map(|c| {
        let bits = match c.scalar {
            Scalar::F32 => u64::from(1.0_f32.to_bits()),
            Scalar::F64 => 1.0_f64.to_bits(),
            Scalar::F16 => 0x3c00,
            _integer => 1,
        };
        let value = Const {
            scalar: c.scalar,
            bits,
        };
        (ConstantKey::Name(c.name.clone()), value)
    });
    let options = CheckOptions {
        run: Options {
            constants: constants.collect(),
            step_limit: 20_000_000,
            time_limit: Some(Duration::from_secs(20)),
            ..Options::default()
        },
        seeds: Some(1),
        ..CheckOptions::default()
    };
    match check(module, &kernel.name, &dispatch, &args, &options) {
        Err(errors) => ("not run".to_string(), first(&errors)),
        Ok(report) => {
            let mut rules: Vec<String> = report
                .diagnostics
                .iter()
                .map(|d| d.rule.to_string())
                .collect();
            rules.sort();
            rules.dedup();
            if rules.is_empty() {
                ("clean".to_string(), String::new())
            } else {
                let detail = report.diagnostics.first().map(|d| d.to_string());
                (rules.join(", "), detail.unwrap_or_default())
            }
        }
    }
}
