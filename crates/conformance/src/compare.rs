//! Random kernels on a target and on the reference machine.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use invar_interp::{Arg, CheckOptions, Options as RunOptions, Schedules, Verdict, check, run};
use invar_ir::text::case::Tolerance;
use invar_ir::{
    Diagnostic, Diagnostics, ElementType, InstKind, Kernel, Module, Op, ParamKind, Rule, Value,
    Verified, verify,
};

use crate::case::Case;
use crate::generate::{Options, generate};
use crate::reduce::reduce;
use crate::target::Target;

/// What a case showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trial {
    /// The same bytes.
    Same,
    /// The target says that it lacks something.
    Refused(String),
    /// A buffer differs.
    Differs(String),
    /// The target failed.
    Failed(String),
    /// The case itself is none: it does not verify, races, or does not end.
    Invalid(String),
}

impl Trial {
    /// Whether the target did something wrong.
    pub fn is_failure(&self) -> bool {
        matches!(self, Trial::Differs(_) | Trial::Failed(_))
    }

    /// Whether both are failures of one kind.
    pub(crate) fn is_like(&self, other: &Trial) -> bool {
        self.is_failure() && std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trial::Same => f.write_str("the same bytes"),
            Trial::Refused(why) => write!(f, "the target refuses it: {why}"),
            Trial::Differs(what) => write!(f, "the target differs: {what}"),
            Trial::Failed(why) => write!(f, "the target fails: {why}"),
            Trial::Invalid(why) => write!(f, "the case is not valid: {why}"),
        }
    }
}

/// How many cases ended how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Kernels whose bytes were equal.
    pub same: u64,
    /// Kernels that the target refused, by its reason.
    pub refused: BTreeMap<String, u64>,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} kernels leave the same bytes", self.same)?;
        for (why, count) in &self.refused {
            write!(f, "\n{count} refused: {why}")?;
        }
        Ok(())
    }
}

/// A kernel on which the target differs from the reference machine.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The seed that made it.
    pub seed: u64,
    /// What the seed's kernel showed.
    pub trial: Trial,
    /// What the reduced kernel shows.
    pub reduced_trial: Trial,
    /// The reduced case.
    pub reduced: Case,
}

impl fmt::Display for Failure {
    /// An `.inv` file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let comment = |text: &str| text.replace('\n', "\n; ");
        writeln!(
            f,
            "; seed {}: {}",
            self.seed,
            comment(&self.trial.to_string())
        )?;
        writeln!(f, "; reduced: {}", comment(&self.reduced_trial.to_string()))?;
        self.reduced.fmt(f)
    }
}

impl std::error::Error for Failure {}

/// Runs the kernels of these seeds on the reference machine and on the target and compares all
/// buffers byte by byte, the bits of NaNs excepted.
///
/// ```
/// use invar_conformance::{Options, compare};
///
/// // The reference machine agrees with itself.
/// let mut target = |module: &_, kernel: &str, dispatch: &_, args: &mut [_]| {
///     let options = invar_interp::Options { seed: 5, ..Default::default() };
///     invar_interp::run(module, kernel, dispatch, args, &options, &mut []).map(|_| ())
/// };
/// let summary = compare(&mut target, &Options::default(), 0..20)?;
/// assert_eq!(summary.same, 20);
/// # Ok::<(), Box<invar_conformance::Failure>>(())
/// ```
///
/// # Errors
/// The first kernel on which they differ, reduced.
pub fn compare(
    target: &mut Target<'_>,
    options: &Options,
    seeds: Range<u64>,
) -> Result<Summary, Box<Failure>> {
    let mut summary = Summary::default();
    for seed in seeds {
        let case = generate(seed, options);
        let trial = compare_case(&case, target);
        match trial {
            Trial::Same => summary.same += 1,
            Trial::Refused(why) => *summary.refused.entry(why).or_default() += 1,
            Trial::Differs(_) | Trial::Failed(_) => {
                let (reduced, reduced_trial) = reduce(&case, &trial, target);
                return Err(Box::new(Failure {
                    seed,
                    trial,
                    reduced_trial,
                    reduced,
                }));
            }
            Trial::Invalid(_) => {
                return Err(Box::new(Failure {
                    seed,
                    reduced_trial: trial.clone(),
                    trial,
                    reduced: case,
                }));
            }
        }
    }
    Ok(summary)
}

/// The module verified and with its function constants fixed.
pub(crate) fn verified(case: &Case) -> Result<Verified, Diagnostics> {
    verify(case.module.clone())?.specialise(&case.constants)
}

/// How the reference machine runs a case.
fn run_options() -> RunOptions {
    RunOptions {
        step_limit: 20_000_000,
        ..RunOptions::default()
    }
}

/// A case verified, and what the reference machine leaves of it.
#[derive(Debug)]
pub struct Prepared<'c> {
    case: &'c Case,
    module: Verified,
    expected: Vec<Arg<'static>>,
}

impl<'c> Prepared<'c> {
    /// Runs a case on the reference machine.
    ///
    /// # Errors
    /// Why the case is none.
    pub fn new(case: &'c Case) -> Result<Prepared<'c>, Diagnostics> {
        let module = verified(case)?;
        let mut expected = case.args()?;
        let name = &module.kernels[0].name;
        run(
            &module,
            name,
            &case.dispatch,
            &mut expected,
            &run_options(),
            &mut [],
        )?;
        Ok(Prepared {
            case,
            module,
            expected,
        })
    }

    /// The module, its function constants fixed.
    pub fn module(&self) -> &Verified {
        &self.module
    }

    /// What it shows that a target left these arguments, or said this.
    pub fn judge(&self, result: Result<&[Arg<'_>], Diagnostics>) -> Trial {
        match result {
            Err(errors) if errors.0.iter().all(lacks) => {
                let first = errors.0.first().map(|d| d.message.clone());
                Trial::Refused(first.unwrap_or_default())
            }
            Err(errors) => Trial::Failed(errors.to_string()),
            Ok(actual) => {
                match difference(
                    &self.module,
                    &self.module.kernels[0],
                    &self.expected,
                    actual,
                ) {
                    None => Trial::Same,
                    Some(what) => Trial::Differs(what),
                }
            }
        }
    }

    /// Runs it on a target.
    pub fn compare(&self, target: &mut Target<'_>) -> Trial {
        let mut actual = match self.case.args() {
            Ok(actual) => actual,
            Err(errors) => return Trial::Invalid(errors.to_string()),
        };
        let name = &self.module.kernels[0].name;
        // A panic is a failure of the target like any other.
        let result = catch_unwind(AssertUnwindSafe(|| {
            target(&self.module, name, &self.case.dispatch, &mut actual)
        }));
        match result {
            Err(panic) => {
                let text = panic
                    .downcast_ref::<String>()
                    .map(String::as_str)
                    .or_else(|| panic.downcast_ref::<&str>().copied());
                Trial::Failed(format!("panic: {}", text.unwrap_or("no message")))
            }
            Ok(result) => self.judge(result.map(|()| &actual[..])),
        }
    }
}

/// Runs one case on both.
pub fn compare_case(case: &Case, target: &mut Target<'_>) -> Trial {
    match Prepared::new(case) {
        Ok(prepared) => prepared.compare(target),
        Err(errors) => Trial::Invalid(errors.to_string()),
    }
}

/// Whether a rule says that a device lacks something.
pub(crate) fn is_refusal(rule: Rule) -> bool {
    [
        Rule::UnsupportedFeature,
        Rule::UnsupportedFloatMode,
        Rule::UnsupportedMemoryOrder,
    ]
    .contains(&rule)
}

/// Whether a target says that it lacks something: a feature, or the memory in which it has lanes exchange
/// values, beside that of a kernel that keeps to the limit itself.
fn lacks(said: &Diagnostic) -> bool {
    let memory = "bytes of threadgroup memory on this GPU";
    is_refusal(said.rule) || said.rule == Rule::InvalidArgument && said.message.contains(memory)
}

/// The first buffer that differs, and how.
fn difference(
    module: &Module,
    kernel: &Kernel,
    expected: &[Arg<'_>],
    actual: &[Arg<'_>],
) -> Option<String> {
    let args = expected.iter().zip(actual);
    kernel.params.iter().zip(args).find_map(|(param, (e, a))| {
        let texels: ElementType;
        let element: &ElementType = match &param.kind {
            ParamKind::Buffer { element, .. } | ParamKind::Constant { element } => element,
            ParamKind::Texture(_) => match e {
                Arg::Texture(shape, _) => {
                    texels = invar_ir::texture::stored(shape.format).into();
                    &texels
                }
                _refused => return None,
            },
            ParamKind::Scalar { .. } | ParamKind::Threadgroup { .. } | ParamKind::Sampler => {
                return None;
            }
        };
        let structs = &module.structs;
        let compared =
            invar_ir::text::data::compare(Tolerance::Exact, e.bytes(), a.bytes(), element, structs);
        compared
            .err()
            .map(|what| format!("`{}`: {what}", param.name))
    })
}

/// Why R4 does not promise a case's bytes, if it does not: a race, what depends on the schedule, or the bits
/// of a NaN looked at.
/// What reduction leaves must still be promised.
pub(crate) fn unpromised(case: &Case) -> Option<String> {
    if let Some(op) = looks_at_a_nan(case.kernel()) {
        return Some(format!("`{op}` may look at the bits of a NaN"));
    }
    let report = verified(case).and_then(|module| {
        let options = CheckOptions {
            run: run_options(),
            seeds: Some(2),
            allow: vec![
                Rule::OutOfBounds,
                Rule::MisalignedAccess,
                Rule::UninitialisedRead,
                Rule::NeverWaited,
            ],
            ..CheckOptions::default()
        };
        let name = module.kernels[0].name.clone();
        check(&module, &name, &case.dispatch, &case.args()?, &options)
    });
    match report {
        Err(errors) => Some(errors.to_string()),
        Ok(report) if report.verdict == Verdict::Fail => {
            let first = report.diagnostics.first();
            Some(first.map_or(String::new(), |d| d.message.clone()))
        }
        Ok(report) => {
            let mut told = report.diagnostics.iter();
            match (
                &report.schedules,
                told.find(|d| d.rule == Rule::UnorderedAtomics),
            ) {
                (_, Some(unordered)) => Some(unordered.message.clone()),
                (Schedules::All, None) => None,
                (Schedules::Tried { reason, .. }, None) => Some(reason.clone()),
            }
        }
    }
}

/// An operation on the bits of a float that is not made free of NaNs just before, by a `select` on
/// `isnan`.
fn looks_at_a_nan(kernel: &Kernel) -> Option<Op> {
    let mut definitions: Vec<Option<&InstKind>> = vec![None; kernel.values.len()];
    kernel.for_each_inst(&mut |inst| {
        for result in &inst.results {
            definitions[result.0 as usize] = Some(&inst.kind);
        }
    });
    let is = |value: Value, wanted: Op| {
        let found = definitions[value.0 as usize].and_then(InstKind::as_op);
        found
            .filter(|(op, ..)| *op == wanted)
            .map(|(.., args)| args)
    };
    let mut found = None;
    kernel.for_each_inst(&mut |inst| {
        let Some((op, _, args)) = inst.kind.as_op() else {
            return;
        };
        let looked_at = match op {
            Op::AsType | Op::Signbit => args[0],
            Op::Copysign => args[1],
            _others_compute => return,
        };
        if !kernel.ty(looked_at).scalar().is_some_and(|s| s.is_float()) {
            return;
        }
        // The other value of the `select` is 0, which the generator makes of constants.
        let clean = is(looked_at, Op::Select).is_some_and(|select| {
            is(select[2], Op::IsNan).is_some_and(|tested| tested[0] == select[0])
        });
        if !clean {
            found = found.or(Some(op));
        }
    });
    found
}
