//! A fully checked run: every checker, several schedules, one report.

use std::collections::HashSet;

use invar_ir::{Const, Diagnostic, Diagnostics, Memory, Rule, Severity, Verified};

use crate::checkers::{
    NeverWaited, OutOfBoundsAccesses, UniformityDisagreements, UninitialisedReads,
};
use crate::data_race::DataRaces;
use crate::dispatch::{Arg, Dispatch, Options};
use crate::observe::{ObjectInfo, Observer};
use crate::program::Slot;
use crate::schedule::{prepare, run_program};
use crate::verdict::{Schedules, schedules};

/// How to check.
#[derive(Clone, Debug)]
pub struct CheckOptions {
    /// How to run; its seed is the first of those tried.
    pub run: Options,
    /// How many seeds to try, at least 1.
    pub seeds: u32,
    /// Rules whose findings are left out.
    pub allow: Vec<Rule>,
    /// Whether a warning fails the check.
    pub deny_warnings: bool,
    /// The most memory for the data-race checker's state.
    pub race_memory_bytes: u64,
}

impl Default for CheckOptions {
    fn default() -> CheckOptions {
        CheckOptions {
            run: Options::default(),
            seeds: 1,
            allow: Vec::new(),
            deny_warnings: false,
            race_memory_bytes: 4 << 30,
        }
    }
}

/// Whether a check passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing that fails a check was found.
    Pass,
    /// An error was found, or a warning where warnings are denied.
    Fail,
}

/// What a check found.
#[derive(Clone, Debug)]
pub struct Report {
    /// Findings, errors first.
    pub diagnostics: Vec<Diagnostic>,
    /// Whether it passed.
    pub verdict: Verdict,
    /// For which schedules the absence of races was shown (R3).
    pub schedules: Schedules,
    /// How many seeds were run.
    pub seeds: u32,
    /// What the first run left in each argument's buffer; empty for other arguments.
    pub outputs: Vec<Vec<u8>>,
    /// Instructions run, all seeds together.
    pub steps: u64,
}

impl Report {
    /// One sentence on how far the verdict on races reaches (R3).
    pub fn reach(&self) -> String {
        match &self.schedules {
            Schedules::All => {
                "the verdict on data races holds for every schedule of this input".into()
            }
            Schedules::Tried { reason, .. } => format!(
                "the verdict on data races is for the {} tried: {reason}",
                match self.seeds {
                    1 => "schedule".to_string(),
                    n => format!("{n} schedules"),
                }
            ),
        }
    }
}

/// Runs a kernel under every checker, with as many seeds as asked.
///
/// The arguments are not changed: each run works on copies.
///
/// ```
/// use invar_interp::{Arg, CheckOptions, Dispatch, Verdict, check};
/// use invar_ir::{Access, Dim, KernelBuilder, Module, Place, Scalar, verify};
///
/// // Every thread stores its number into the one element that there is.
/// let mut k = KernelBuilder::new(Module::default(), "clash");
/// let x = k.buffer("x", Access::Write, Scalar::U32);
/// let i = k.thread_position_in_grid(Dim::X);
/// let zero = k.const_u32(0);
/// k.store(Place::element(x, zero), i);
/// let module = verify(k.finish()?)?;
///
/// let args = [Arg::zeros(4)];
/// let report = check(&module, "clash", &Dispatch::linear(64, 64), &args, &CheckOptions::default())?;
/// assert_eq!(report.verdict, Verdict::Fail);
/// assert_eq!(report.diagnostics[0].rule.name(), "data-race");
/// # Ok::<(), invar_ir::Diagnostics>(())
/// ```
///
/// # Errors
/// What keeps it from running at all: an argument, a size or a limit that does not fit.
pub fn check(
    module: &Verified,
    kernel: &str,
    dispatch: &Dispatch,
    args: &[Arg],
    options: &CheckOptions,
) -> Result<Report, Diagnostics> {
    check_observed(module, kernel, dispatch, args, options, &mut [])
}

/// As [`check`], with further observers of each run: to show progress, to cancel, to look for more.
///
/// # Errors
/// As [`check`], and `cancelled` if an observer says so.
pub fn check_observed(
    module: &Verified,
    kernel: &str,
    dispatch: &Dispatch,
    args: &[Arg],
    options: &CheckOptions,
    observers: &mut [&mut dyn Observer],
) -> Result<Report, Diagnostics> {
    let program = prepare(module, kernel, &options.run)?;
    let mut found: Vec<Diagnostic> = Vec::new();
    let mut outputs: Vec<Vec<u8>> = Vec::new();
    let mut steps = 0;
    let mut unfinished = None;
    let mut equal_stores: HashSet<Memory> = HashSet::new();
    let mut seeds = 0;
    // What exceeds its time with one seed is not run with another.
    let mut in_time = true;
    while in_time && seeds < options.seeds.max(1) {
        let seed = seeds;
        seeds += 1;
        let mut copies: Vec<Arg> = args.iter().map(copy).collect();
        let run = Options {
            seed: options.run.seed.wrapping_add(seed.into()),
            ..options.run.clone()
        };
        let mut races = DataRaces::new(options.race_memory_bytes);
        let mut bounds = OutOfBoundsAccesses::default();
        let mut reads = UninitialisedReads::default();
        let mut waits = NeverWaited::default();
        let mut uniform = UniformityDisagreements::default();
        let own: [&mut dyn Observer; 5] = [
            &mut races,
            &mut bounds,
            &mut reads,
            &mut waits,
            &mut uniform,
        ];
        let mut list: Vec<&mut dyn Observer> = own.into_iter().collect();
        for observer in observers.iter_mut() {
            list.push(&mut **observer);
        }
        match run_program(&program, dispatch, &mut copies, &run, &mut list) {
            Ok(outcome) => steps += outcome.steps,
            Err(errors) if errors.0.iter().all(|d| is_finding(d.rule)) => {
                for error in errors.0 {
                    in_time &= error.rule != Rule::DeadlineExceeded;
                    unfinished = unfinished.or(Some((error.span(), "a run did not end")));
                    merge(&mut found, error);
                }
            }
            Err(errors) => return Err(errors),
        }
        for observer in &mut list {
            for diagnostic in observer.finish() {
                if diagnostic.rule == Rule::CheckLimit {
                    let reason = "a checker could not follow the run";
                    unfinished = unfinished.or(Some((diagnostic.span(), reason)));
                }
                merge(&mut found, diagnostic);
            }
        }
        let mut memories = crate::objects::memories(&program).enumerate();
        let equal = |number: usize| races.equal_stores().contains(&(number as u32));
        equal_stores.extend(memories.by_ref().filter(|(i, _)| equal(*i)).map(|(_, m)| m));
        let after: Vec<Vec<u8>> = copies.iter().map(|arg| arg.bytes().to_vec()).collect();
        if outputs.is_empty() {
            outputs = after;
        } else {
            let lengths = crate::schedule::lengths(&program, args);
            let objects = crate::objects::describe(&program, &lengths);
            for (i, (first, now)) in outputs.iter().zip(&after).enumerate() {
                if let Some(difference) = difference(&program, &objects, i, first, now) {
                    let span = program.kernel().params[i].span;
                    let (location, first, now) = difference;
                    let message = format!(
                        "`{location}` is {first} with seed {} and {now} with seed {}",
                        options.run.seed, run.seed
                    );
                    merge(
                        &mut found,
                        Diagnostic::warning(Rule::ScheduleDependent, span, message)
                            .help("the result depends on the order in which threads run (R4)"),
                    );
                }
            }
        }
    }
    found.retain(|d| !options.allow.contains(&d.rule));
    found.sort_by_key(|d| std::cmp::Reverse(d.severity));
    let fails = |d: &Diagnostic| match d.severity {
        Severity::Error => true,
        Severity::Warning => options.deny_warnings,
    };
    Ok(Report {
        verdict: if found.iter().any(fails) {
            Verdict::Fail
        } else {
            Verdict::Pass
        },
        diagnostics: found,
        schedules: match unfinished {
            None => schedules(&program.module, program.kernel(), &equal_stores),
            Some((span, reason)) => Schedules::Tried {
                span,
                reason: reason.to_string(),
            },
        },
        seeds,
        outputs,
        steps,
    })
}

/// Whether an error of a run is something that a check finds, not something that keeps it from
/// running.
fn is_finding(rule: Rule) -> bool {
    [
        Rule::BarrierDivergence,
        Rule::StepLimit,
        Rule::DeadlineExceeded,
    ]
    .contains(&rule)
}

fn copy(arg: &Arg) -> Arg<'static> {
    match arg {
        Arg::Scalar(components) => Arg::Scalar(components.clone()),
        Arg::ThreadgroupLength(length) => Arg::ThreadgroupLength(*length),
        Arg::Buffer(_) | Arg::ReadBuffer(_) | Arg::OwnedBuffer(_) => {
            Arg::OwnedBuffer(arg.bytes().to_vec())
        }
    }
}

/// Adds a finding unless one of the same rule at the same places is there.
fn merge(found: &mut Vec<Diagnostic>, new: Diagnostic) {
    let places = |d: &Diagnostic| {
        let mut spans: Vec<_> = d.labels.iter().map(|l| l.span).collect();
        // The same two places race whichever comes first.
        spans.sort_by_key(|s| (s.source, s.start, s.end));
        spans
    };
    let known = found.iter().any(|old| {
        old.rule == new.rule
            && places(old) == places(&new)
            && (old.span().source.is_some() || old.message == new.message)
    });
    if !known {
        found.push(new);
    }
}

/// The first location in which two runs differ, and its value after each.
fn difference(
    program: &crate::program::Program,
    objects: &[ObjectInfo],
    param: usize,
    first: &[u8],
    now: &[u8],
) -> Option<(String, Const, Const)> {
    let at = first.iter().zip(now).position(|(a, b)| a != b)? as u64;
    let object = program
        .objects
        .iter()
        .position(|o| o.slot == Slot::Argument(param as u32))?;
    let layout = &program.objects[object];
    let (element, offset) = (at / layout.element_bytes, at % layout.element_bytes);
    let part = layout
        .locations
        .iter()
        .position(|(start, s)| (*start..start + s.size_bytes()).contains(&offset))?;
    let scalar = layout.locations[part].1;
    let address = element * layout.element_bytes + layout.locations[part].0;
    let value = |bytes: &[u8]| Const {
        scalar,
        bits: crate::access::read(bytes, address, scalar),
    };
    let name = objects[object].location_name(element * layout.element_locations + part as u64);
    Some((name, value(first), value(now)))
}
