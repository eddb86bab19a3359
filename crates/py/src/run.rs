//! Modules: their text, the verifier, and runs on the reference machine.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use invar::Error;
use invar::emit::{self, AsyncCopies, Matrices, Target, emit};
use invar_interp::{Arg, CheckOptions, Observer, Options, Verdict, check_observed};
use invar_ir::{Const, ConstantKey, Diagnostics, Rule, Verified};
use invar_runtime::leavable;
use invar_wgsl::Written;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::away::{Signals, away, interruptible};
use crate::convert::{diagnostics, is_shader, named, refuse, reported, scalar};
use crate::device::{Given, Sizes, given};
use crate::print::show;

/// A module of kernels.
#[pyclass(module = "invar._invar", frozen)]
pub struct Module {
    module: invar_ir::Module,
    verified: OnceLock<Result<Verified, Diagnostics>>,
    /// How a source has the elements of its kernels' parameters.
    written: Vec<Written>,
}

impl Module {
    /// A module that no one has verified yet.
    pub fn new(module: invar_ir::Module) -> Module {
        Module {
            module,
            verified: OnceLock::new(),
            written: Vec::new(),
        }
    }

    /// A module of a source.
    pub fn of_source(module: invar_ir::Module, written: Vec<Written>) -> Module {
        Module {
            written,
            ..Module::new(module)
        }
    }

    /// The module, verified.
    pub fn verified(&self) -> PyResult<&Verified> {
        self.verified
            .get_or_init(|| invar_ir::verify(self.module.clone()))
            .as_ref()
            .map_err(|errors| diagnostics(&self.module, errors))
    }
}

/// Values of function constants, by name.
pub fn named_constants(list: Vec<(String, String, u64)>) -> PyResult<Vec<(ConstantKey, Const)>> {
    list.into_iter()
        .map(|(name, ty, bits)| {
            let scalar = scalar(&ty)?;
            Ok((ConstantKey::Name(name.into()), Const { scalar, bits }))
        })
        .collect()
}

/// What a caller means by a name.
fn one_of<T: Copy>(what: &str, given: &str, all: &[T], name: fn(T) -> &'static str) -> PyResult<T> {
    let found = all.iter().find(|value| name(**value) == given);
    found.copied().ok_or_else(|| {
        let names = all.iter().map(|value| format!("\"{}\"", name(*value)));
        let names: Vec<String> = names.collect();
        refuse(format!(
            "there is no {what} \"{given}\"; there is {}",
            names.join(", ")
        ))
    })
}

/// The arguments of a check.
///
/// # Safety
/// Each buffer's memory must be valid for its size, and writable where it says so, for as long as
/// the arguments are used.
unsafe fn arguments<'a>(list: Vec<Given>) -> PyResult<Vec<Arg<'a>>> {
    // SAFETY: the caller vouches for the memory.
    let arguments = list.into_iter().map(|given| unsafe { argument(given) });
    arguments.collect()
}

/// As [`arguments`], of one.
///
/// # Safety
/// As there.
unsafe fn argument<'a>(given: Given) -> PyResult<Arg<'a>> {
    match given {
        Given::Buffer(_, 0, true) => Ok(Arg::OwnedBuffer(Vec::new())),
        Given::Buffer(_, 0, false) => Ok(Arg::ReadBuffer(&[])),
        Given::Buffer(_, size, _) if size > isize::MAX as usize => {
            Err(refuse("a buffer is larger than memory"))
        }
        // SAFETY: the caller vouches for the memory; u8 has no alignment.
        Given::Buffer(start, size, true) => Ok(Arg::Buffer(unsafe {
            std::slice::from_raw_parts_mut(start, size)
        })),
        // SAFETY: as above.
        Given::Buffer(start, size, false) => Ok(Arg::ReadBuffer(unsafe {
            std::slice::from_raw_parts(start, size)
        })),
        Given::Texture(start, size, writable, shape) => {
            // SAFETY: as above.
            let memory = unsafe { argument(Given::Buffer(start, size, writable)) }?;
            Ok(Arg::Texture(shape, Box::new(memory)))
        }
        Given::Memory(_) => Err(refuse("memory of a device is checked as an array")),
        Given::Scalar(parts) => Ok(Arg::Scalar(parts)),
        Given::Length(length) => Ok(Arg::ThreadgroupLength(length)),
    }
}

#[pymethods]
impl Module {
    /// The text form.
    fn text(&self) -> String {
        self.module.to_string()
    }

    /// The kernels' names.
    fn kernels(&self) -> Vec<String> {
        let names = self.module.kernels.iter().map(|k| k.name.to_string());
        names.collect()
    }

    /// Raises `DiagnosticsError` unless the module obeys every rule.
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        away(py, || self.verified().map(|_| ()))
    }

    /// A kernel as the code of a target.
    #[expect(
        clippy::too_many_arguments,
        reason = "all that the code of a target depends on"
    )]
    fn source(
        &self,
        py: Python<'_>,
        kernel: &str,
        target: &str,
        threadgroup: Option<[u32; 3]>,
        constants: Vec<(String, String, u64)>,
        async_copies: &str,
        matrices: &str,
        formats: Vec<(String, String)>,
    ) -> PyResult<String> {
        let target = one_of("target", target, &Target::ALL, Target::name)?;
        let options = emit::Options {
            threadgroup_size: threadgroup,
            constants: named_constants(constants)?,
            processor: None,
            async_copies: one_of(
                "way to make async copies",
                async_copies,
                &AsyncCopies::ALL,
                AsyncCopies::name,
            )?,
            matrices: one_of("kind of matrices", matrices, &Matrices::ALL, Matrices::name)?,
            formats: formats
                .into_iter()
                .map(|(name, format)| Ok((name, crate::texture::format(&format)?)))
                .collect::<PyResult<_>>()?,
            threadgroup_lengths: Vec::new(),
            prove: false,
        };
        let module = away(py, || self.verified())?.clone();
        let name = kernel.to_string();
        let written = interruptible(py, || {
            leavable(kernel, move || emit(&module, &name, target, &options))
        })?;
        written.map_err(|error| match error {
            Error::Runtime { message, .. } => refuse(message),
            Error::Diagnostics(errors) => diagnostics(&self.module, &errors),
        })
    }

    /// Runs a kernel under every checker, on copies of the buffers. Gives the findings as text and
    /// as JSON, whether it passed, how far the verdict reaches, and how many findings of each rule were
    /// allowed.
    #[pyo3(signature = (kernel, sizes, args, constants=Vec::new(), *, seed=0, seeds=None,
        simdgroup=None, allow=Vec::new(), deny_warnings=false, step_limit=None, time_limit=None))]
    #[expect(clippy::too_many_arguments, reason = "a check's options, by keyword")]
    fn check(
        &self,
        py: Python<'_>,
        kernel: &str,
        sizes: &Sizes,
        args: &Bound<'_, PyList>,
        constants: Vec<(String, String, u64)>,
        seed: u64,
        seeds: Option<u32>,
        simdgroup: Option<u32>,
        allow: Vec<String>,
        deny_warnings: bool,
        step_limit: Option<u64>,
        time_limit: Option<f64>,
    ) -> PyResult<Checked> {
        let allow = allow
            .iter()
            .map(|name| {
                Rule::from_name(name).ok_or_else(|| {
                    refuse(format!(
                        "`{name}` is not a rule: see invar.explain() for their names"
                    ))
                })
            })
            .collect::<PyResult<Vec<Rule>>>()?;
        let options = CheckOptions {
            run: options(constants, seed, simdgroup, step_limit, time_limit)?,
            seeds,
            allow,
            deny_warnings,
            ..CheckOptions::default()
        };
        let verified = self.verified()?;
        let found = verified.kernel(kernel);
        let found = found.ok_or_else(|| refuse(format!("there is no kernel `{kernel}`")))?;
        // SAFETY: the caller holds the arrays until this returns.
        let args = unsafe { arguments(given(found, args)?) }?;
        away(py, || {
            let mut signals = Signals::new();
            let dispatch = &sizes.dispatch;
            let observers: &mut [&mut dyn Observer] = &mut [&mut signals];
            let found = check_observed(verified, kernel, dispatch, &args, &options, observers);
            if let Some(interrupted) = signals.interrupted {
                return Err(interrupted);
            }
            let found = found.map_err(|errors| diagnostics(&self.module, &errors))?;
            if let Some(kernel) = verified.kernel(kernel) {
                show(kernel, &found.printed);
            }
            let mut diagnostics = found.diagnostics.clone();
            for written in self.written.iter().filter(|w| w.kernel == kernel) {
                diagnostics.iter_mut().for_each(|d| written.tell(d));
            }
            let (text, json) = reported(&self.module, &diagnostics);
            let allowed = found.allowed.iter();
            let allowed = allowed.map(|(rule, count)| (rule.name().to_string(), *count));
            let passed = found.verdict == Verdict::Pass;
            Ok((text, json, passed, found.reach(), allowed.collect()))
        })
    }

    /// Proves a kernel. Gives the verdict, in a word and in sentences, the conditions, what it requires, the options of
    /// `invar check` with which the launch that breaks it is run, and what is found there as text and as
    /// JSON.
    fn prove(&self, py: Python<'_>, kernel: &str) -> PyResult<Proved> {
        let mut verified = away(py, || self.verified())?.clone();
        // A dispatch of a browser is of whole workgroups.
        if is_shader(&self.module) {
            let mut module = invar_ir::Module::clone(&verified);
            invar_prove::with_whole_threadgroups(&mut module);
            verified =
                invar_ir::verify(module).map_err(|errors| diagnostics(&self.module, &errors))?;
        }
        let name = kernel.to_string();
        let prove = move || {
            let options = invar_prove::Options::default();
            Ok(invar_prove::prove(&verified, &name, &[], options))
        };
        let report = interruptible(py, || leavable(kernel, prove))?;
        let report = report.map_err(|error| refuse(error.to_string()))?;
        let report = report.map_err(|why| refuse(format!("kernel `{kernel}`: {why}")))?;
        let findings = report.counterexample.as_ref();
        let findings = findings.map_or(&[][..], |found| &found.findings);
        let (text, json) = reported(&self.module, findings);
        let words = named(&self.module, report.in_words(&self.module, false));
        let launch = report.check_options().unwrap_or_default();
        let verdict = report.verdict.name();
        Ok((
            verdict,
            words,
            report.texts,
            report.required,
            launch,
            text,
            json,
        ))
    }
}

/// What a proof gives to Python.
type Proved = (
    &'static str,
    String,
    Vec<String>,
    Vec<String>,
    String,
    String,
    String,
);

/// What a check gives to Python.
type Checked = (String, String, bool, String, BTreeMap<String, usize>);

fn options(
    constants: Vec<(String, String, u64)>,
    seed: u64,
    simdgroup: Option<u32>,
    step_limit: Option<u64>,
    time_limit: Option<f64>,
) -> PyResult<Options> {
    let mut options = Options {
        seed,
        simdgroup_size: simdgroup,
        constants: named_constants(constants)?,
        ..Options::default()
    };
    if let Some(limit) = step_limit {
        options.step_limit = limit;
    }
    /// As at the command line, for the same command says so.
    const TIME_LIMIT: Duration = Duration::from_secs(600);
    let limit = match time_limit {
        Some(seconds) => Duration::try_from_secs_f64(seconds)
            .map_err(|_| refuse(format!("{seconds} seconds is not a time limit")))?,
        None => invar_runtime::environment_time_limit()
            .map_err(|error| match error {
                Error::Runtime { message, .. } => refuse(message),
                Error::Diagnostics(all) => refuse(all.to_string()),
            })?
            .unwrap_or(TIME_LIMIT),
    };
    options.time_limit = Some(limit);
    Ok(options)
}

/// Reads the text form.
#[pyfunction]
pub fn parse(name: &str, text: &str) -> PyResult<Module> {
    invar_ir::text::parse(name, text)
        .map(Module::new)
        .map_err(|errors| {
            let module = invar_ir::Module {
                sources: vec![invar_ir::Source {
                    name: name.into(),
                    text: text.into(),
                }],
                ..Default::default()
            };
            diagnostics(&module, &errors)
        })
}

/// Runs the `invar` command, the program's name first in its arguments; gives its exit code. Files
/// that `loaded` names are those modules.
#[pyfunction]
pub fn command(py: Python<'_>, args: Vec<OsString>, loaded: Vec<(PathBuf, Py<Module>)>) -> u8 {
    let loaded: Vec<(PathBuf, invar_ir::Module)> = loaded
        .into_iter()
        .map(|(name, module)| (name, module.get().module.clone()))
        .collect();
    away(py, || invar_command::command(args, &loaded))
}
