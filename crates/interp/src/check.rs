//! A fully checked run: every checker, as many schedules as the verdict needs, one report.
//!
//! Where the first run's verdict on races holds for every schedule, it is the only one. Else others
//! follow, and one that does not end keeps none of them from running.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use invar_ir::memory_layout::has_room;
use invar_ir::print::Printed;
use invar_ir::room::{PASSES_BYTES, with_room};
use invar_ir::texture::stored;
use invar_ir::{Const, Diagnostic, Diagnostics, Memory, Rule, Severity, Span, Verified};

use crate::checkers::{
    MisalignedAccesses, NeverWaited, OutOfBoundsAccesses, UniformityDisagreements,
    UninitialisedReads,
};
use crate::data_race::{DataRaces, RaceKey};
use crate::dispatch::{Arg, Dispatch, Given, Options, check_arguments, check_grid};
use crate::observe::{Lines, ObjectInfo, Observer, texel_name};
use crate::pairs::Pairs;
use crate::program::{Program, Slot};
use crate::requires::{check_contents, check_requirements};
use crate::schedule::{prepare, run_program};
use crate::unordered::UnorderedAtomics;
use crate::verdict::{Schedules, Shown, depends_on_simdgroup_size, schedules};

/// How to check.
#[derive(Clone, Debug)]
pub struct CheckOptions {
    /// How to run; its seed is the first of those tried.
    pub run: Options,
    /// How many seeds to try. `None`: one where its verdict on races holds for every schedule, else
    /// [`SCHEDULES`], or fewer of a kernel that runs long: no further one is begun after
    /// [`STEPS_OF_SCHEDULES`] instructions, but a second one always is.
    pub seeds: Option<u32>,
    /// Rules whose findings are left out.
    pub allow: Vec<Rule>,
    /// Whether a warning fails the check.
    pub deny_warnings: bool,
    /// The most memory for the data-race checker's state.
    pub race_memory_bytes: u64,
    /// Objects without atomics on which no two threads race in this launch, as something else has proved
    /// (`invar_prove`): the data-race checker keeps nothing of them and does not watch them.
    pub race_free: Vec<Memory>,
}

impl Default for CheckOptions {
    fn default() -> CheckOptions {
        CheckOptions {
            run: Options::default(),
            seeds: None,
            allow: Vec::new(),
            deny_warnings: false,
            race_memory_bytes: 4 << 30,
            race_free: Vec::new(),
        }
    }
}

/// How many schedules a check tries by default where its verdict is for those tried.
pub const SCHEDULES: u32 = 16;

/// After how many instructions, all schedules together, a check begins no further schedule by default.
pub const STEPS_OF_SCHEDULES: u64 = 2_000_000;

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
    /// Findings, errors first, less those of the rules allowed.
    pub diagnostics: Vec<Diagnostic>,
    /// How many findings each of the rules allowed had.
    pub allowed: Vec<(Rule, usize)>,
    /// Whether it passed.
    pub verdict: Verdict,
    /// For which schedules the absence of races was shown (R3).
    pub schedules: Schedules,
    /// How many seeds were run.
    pub seeds: u32,
    /// Threads of a simdgroup, if another size might give another verdict.
    pub simdgroup_size: Option<u32>,
    /// What the first run left in each argument's buffer; empty for other arguments.
    pub outputs: Vec<Vec<u8>>,
    /// Instructions run, all seeds together.
    pub steps: u64,
    /// What the first run printed.
    pub printed: Printed,
}

impl Report {
    /// One sentence on how far the verdict on races reaches (R3).
    pub fn reach(&self) -> String {
        let size = match self.simdgroup_size {
            Some(size) => format!(" with simdgroups of {size} threads"),
            None => String::new(),
        };
        match &self.schedules {
            Schedules::All => {
                format!("the verdict on data races holds for every schedule of this input{size}")
            }
            Schedules::Tried { reason, .. } => format!(
                "the verdict on data races is for the {} tried{size}: {reason}",
                match self.seeds {
                    1 => "schedule".to_string(),
                    n => format!("{n} schedules"),
                }
            ),
        }
    }

    /// How many findings there are, and of what was allowed: `no findings`, or `2 findings beside 3
    /// allowed (data-race)`. `more` are counted too.
    pub fn summary(&self, more: usize) -> String {
        let count = match self.diagnostics.len() + more {
            0 => "no findings".to_string(),
            1 => "1 finding".to_string(),
            n => format!("{n} findings"),
        };
        if self.allowed.is_empty() {
            return count;
        }
        let names: Vec<&str> = self.allowed.iter().map(|(rule, _)| rule.name()).collect();
        let allowed: usize = self.allowed.iter().map(|(_, n)| n).sum();
        format!("{count} beside {allowed} allowed ({})", names.join(", "))
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
    with_room(PASSES_BYTES, || {
        checked(module, kernel, dispatch, args, options, observers)
    })
}

fn checked(
    module: &Verified,
    kernel: &str,
    dispatch: &Dispatch,
    args: &[Arg],
    options: &CheckOptions,
    observers: &mut [&mut dyn Observer],
) -> Result<Report, Diagnostics> {
    let program = prepare(module, kernel, &options.run)?;
    check_promises(&program, dispatch, args, &options.run)?;
    // The copies that are run on, and what they are at the end.
    let needed = args.iter().map(|arg| 2 * arg.bytes().len() as u64).sum();
    if !has_room(needed) {
        let message = format!(
            "there is no memory for copies of the buffers, {needed} bytes: check smaller buffers"
        );
        return Err(Diagnostics(vec![Diagnostic::error(
            Rule::OutOfMemory,
            program.kernel().span,
            message,
        )]));
    }
    let mut check = Check {
        program: &program,
        dispatch,
        args,
        options,
        found: Vec::new(),
        known: HashSet::new(),
        pairs: Pairs::default(),
        races: HashSet::new(),
        shown: Shown::default(),
        unfinished: None,
        first: None,
        printed: Lines::default(),
        steps: 0,
        rest: None,
    };
    let mut seeds = 0;
    let mut reach = Schedules::All;
    while check.goes_on(seeds, &reach) {
        check.run(seeds, observers)?;
        seeds += 1;
        reach = check.reach();
    }
    let Check {
        mut found,
        pairs,
        first,
        printed,
        steps,
        ..
    } = check;
    pairs.tell_of_more(&mut found);
    let mut allowed: BTreeMap<usize, usize> = BTreeMap::new();
    let mut diagnostics = Vec::new();
    for diagnostic in found {
        match options.allow.iter().position(|r| *r == diagnostic.rule) {
            Some(at) => *allowed.entry(at).or_default() += 1,
            None => diagnostics.push(diagnostic),
        }
    }
    diagnostics.sort_by_key(|d| std::cmp::Reverse(d.severity));
    let fails = |d: &Diagnostic| match d.severity {
        Severity::Error => true,
        Severity::Warning => options.deny_warnings,
    };
    let depends = depends_on_simdgroup_size(program.kernel());
    Ok(Report {
        verdict: if diagnostics.iter().any(fails) {
            Verdict::Fail
        } else {
            Verdict::Pass
        },
        diagnostics,
        allowed: allowed
            .into_iter()
            .map(|(at, count)| (options.allow[at], count))
            .collect(),
        schedules: reach,
        seeds,
        simdgroup_size: depends.then_some(program.simdgroup_size),
        outputs: first.unwrap_or_default(),
        steps,
        printed: printed.0,
    })
}

/// Checks what the kernel requires of what its buffers hold (S5), once for all schedules.
fn check_promises(
    program: &Program,
    dispatch: &Dispatch,
    args: &[Arg],
    run: &Options,
) -> Result<(), Diagnostics> {
    let (module, kernel) = (&program.module, program.kernel());
    if kernel.requires.is_empty() {
        return Ok(());
    }
    let grid = check_grid(kernel, dispatch, run.threads_per_threadgroup)?;
    // Runs are on copies, which can be written.
    let given = args.iter().map(|arg| match Given::from(arg) {
        Given::Texture {
            shape, size_bytes, ..
        } => Given::Texture {
            writable: true,
            shape,
            size_bytes,
        },
        Given::Buffer {
            holds, size_bytes, ..
        } => Given::Buffer {
            writable: true,
            holds,
            size_bytes,
        },
        another => another,
    });
    check_arguments(module, kernel, given.clone(), run.threadgroup_memory_bytes)?;
    check_requirements(module, kernel, &grid, given)?;
    check_contents(module, kernel, &grid, args)
}

/// A check on its way.
struct Check<'a> {
    program: &'a Program,
    dispatch: &'a Dispatch,
    args: &'a [Arg<'a>],
    options: &'a CheckOptions,
    found: Vec<Diagnostic>,
    known: HashSet<FindingKey>,
    /// Places that race, and which findings say so.
    pairs: Pairs,
    /// Races that were looked at twice.
    races: HashSet<RaceKey>,
    shown: Shown,
    /// What kept a run from being checked to its end.
    unfinished: Option<(Span, &'static str)>,
    /// What the first run left.
    first: Option<Vec<Vec<u8>>>,
    /// What it printed.
    printed: Lines,
    steps: u64,
    /// After a run that took all its time: until when others may be tried.
    rest: Option<Instant>,
}

/// What part of the time limit the other schedules have together once one has used up its own.
const REST: u32 = 4;

impl Check<'_> {
    /// Whether to try another schedule after so many.
    fn goes_on(&self, done: u32, reach: &Schedules) -> bool {
        if self.rest.is_some_and(|end| Instant::now() >= end) {
            return false;
        }
        match (self.options.seeds, reach) {
            _ if done == 0 => true,
            (Some(seeds), _) => done < seeds,
            (None, Schedules::All) => false,
            (None, Schedules::Tried { .. }) => {
                done < 2 || done < SCHEDULES && self.steps < STEPS_OF_SCHEDULES
            }
        }
    }

    fn reach(&self) -> Schedules {
        match self.unfinished {
            None => schedules(&self.program.module, self.program.kernel(), &self.shown),
            Some((span, reason)) => Schedules::Tried {
                span,
                reason: reason.to_string(),
            },
        }
    }

    /// How the schedule of that number is run.
    fn run_options(&self, seed: u32) -> Options {
        let run = &self.options.run;
        Options {
            seed: run.seed.wrapping_add(seed.into()),
            time_limit: self.half_of_the_rest().or(run.time_limit),
            ..run.clone()
        }
    }

    /// Half of the time that is left, once a run has taken all of its own.
    fn half_of_the_rest(&self) -> Option<Duration> {
        let left = |end: Instant| end.saturating_duration_since(Instant::now()) / 2;
        self.rest.map(left)
    }

    fn run(&mut self, seed: u32, observers: &mut [&mut dyn Observer]) -> Result<(), Diagnostics> {
        let run = self.run_options(seed);
        let mut copies: Vec<Arg> = self.args.iter().map(Arg::copy).collect();
        let race_free = self.options.race_free.clone();
        let mut races = DataRaces::new(self.options.race_memory_bytes).but(race_free);
        let mut bounds = OutOfBoundsAccesses::default();
        let mut aligned = MisalignedAccesses::default();
        let mut reads = UninitialisedReads::default();
        let mut waits = NeverWaited::default();
        let mut uniform = UniformityDisagreements::default();
        let mut unordered = UnorderedAtomics::default();
        let own: [&mut dyn Observer; 7] = [
            &mut races,
            &mut bounds,
            &mut aligned,
            &mut reads,
            &mut waits,
            &mut uniform,
            &mut unordered,
        ];
        let mut list: Vec<&mut dyn Observer> = own.into_iter().collect();
        for observer in observers.iter_mut() {
            list.push(&mut **observer);
        }
        if self.first.is_none() {
            list.push(&mut self.printed);
        }
        let mut ended = true;
        match run_program(
            self.program,
            self.dispatch,
            &mut copies,
            &run,
            true,
            &mut list,
        ) {
            Ok(outcome) => self.steps += outcome.steps,
            Err(errors) if errors.0.iter().all(|d| is_finding(d.rule)) => {
                ended = false;
                for error in errors.0 {
                    if error.rule == Rule::DeadlineExceeded && self.rest.is_none() {
                        let rest = run.time_limit.unwrap_or(Duration::from_secs(60)) / REST;
                        self.rest = Instant::now().checked_add(rest);
                    }
                    self.unfinished = self
                        .unfinished
                        .or(Some((error.span(), "a run did not end")));
                    self.merge(error, None);
                }
            }
            Err(errors) => return Err(errors),
        }
        match races.conclude() {
            Ok(()) => {
                self.look_again(&mut races, &run, observers)?;
                self.pairs.add(&races, &mut self.found);
                if let Some(more) = races.not_listed() {
                    self.merge(more, None);
                }
            }
            Err(limit) => {
                let reason = "a checker could not follow the run";
                self.unfinished = self.unfinished.or(Some((limit.span(), reason)));
                self.merge(limit, None);
            }
        }
        let mut small = bounds.found();
        small.extend(reads.found());
        small.extend(unordered.found());
        let disagreements = uniform.finish();
        let span = disagreements.first().map(Diagnostic::span);
        self.shown.disagreement = self.shown.disagreement.or(span);
        let theirs = observers.iter_mut().flat_map(|o| o.finish());
        let rest = aligned
            .finish()
            .into_iter()
            .chain(waits.finish())
            .chain(disagreements)
            .chain(theirs);
        small.extend(rest.map(|d| (None, d)));
        small
            .into_iter()
            .for_each(|(object, d)| self.merge(d, object));
        self.note(&races);
        self.compare(&run, &copies, ended);
        Ok(())
    }

    /// Runs a schedule that has races of a new kind once more, to find all that there is to say of
    /// them.
    fn look_again(
        &mut self,
        races: &mut DataRaces,
        run: &Options,
        observers: &mut [&mut dyn Observer],
    ) -> Result<(), Diagnostics> {
        let new: Vec<RaceKey> = races
            .keys()
            .filter(|key| !self.races.contains(key))
            .collect();
        if new.is_empty() {
            return Ok(());
        }
        let mut second = races.second_look();
        if second.is_empty() {
            self.races.extend(new);
            return Ok(());
        }
        let mut copies: Vec<Arg> = self.args.iter().map(Arg::copy).collect();
        let mut progress = Progress(observers);
        let mut list: Vec<&mut dyn Observer> = vec![&mut progress];
        list.extend(second.iter_mut().map(|look| look as &mut dyn Observer));
        // A run that took all of its time takes it once: what is found in a part of it is found.
        let run = &Options {
            time_limit: self.half_of_the_rest().or(run.time_limit),
            ..run.clone()
        };
        match run_program(
            self.program,
            self.dispatch,
            &mut copies,
            run,
            true,
            &mut list,
        ) {
            // A run that did not end does not end again.
            Ok(_) => {}
            Err(errors) if errors.0.iter().all(|d| is_finding(d.rule)) => {}
            Err(errors) => return Err(errors),
        }
        races.learn(second);
        // Which barriers come between the two may differ by the schedule.
        self.races.extend(races.keys_of_data_races());
        Ok(())
    }

    /// Notes what the verdict's reach depends on.
    fn note(&mut self, races: &DataRaces) {
        for (number, memory) in (0..).zip(crate::objects::memories(self.program)) {
            if races.equal_stores().contains(&number) {
                self.shown.equal_stores.insert(memory);
            }
            if races.data_races().contains(&number) {
                self.shown.data_races.insert(memory);
            }
            if races.unordered_atomics().contains(&number) {
                self.shown.unordered_atomics.insert(memory);
            }
        }
    }

    /// Compares what a run has left with what the first one left.
    fn compare(&mut self, run: &Options, copies: &[Arg], ended: bool) {
        let after: Vec<Vec<u8>> = copies.iter().map(|arg| arg.bytes().to_vec()).collect();
        let Some(before) = &self.first else {
            self.first = Some(after);
            return;
        };
        // What a run has left that did not end says nothing.
        if !ended || self.unfinished.is_some() {
            return;
        }
        let lengths = crate::schedule::lengths(self.program, self.args);
        let objects = crate::objects::describe(self.program, &lengths, self.args);
        let mut found = Vec::new();
        for (i, (first, now)) in before.iter().zip(&after).enumerate() {
            let found_here = match &self.args[i] {
                Arg::Texture(..) => texel_difference(&objects[i], first, now),
                _no_texture => difference(self.program, &objects, i, first, now),
            };
            if let Some(difference) = found_here {
                let span = self.program.kernel().params[i].span;
                let (location, first, now) = difference;
                let message = format!(
                    "`{location}` is {first} with seed {} and {now} with seed {}",
                    self.options.run.seed, run.seed
                );
                let found_here = Diagnostic::warning(Rule::ScheduleDependent, span, message);
                let help = "the result depends on the order in which threads run (R4)";
                found.push((found_here.help(help), i as u32));
            }
        }
        found
            .into_iter()
            .for_each(|(d, object)| self.merge(d, Some(object)));
    }

    /// Adds a finding unless one of the same rule at the same places and in the same object is there.
    fn merge(&mut self, new: Diagnostic, object: Option<u32>) {
        if self.known.insert(finding_key(&new, object)) {
            self.found.push(new);
        }
    }
}

/// What two findings have in common that are one to the reader: their rule, the object, the places, and what is said
/// where there is no place.
type FindingKey = (Rule, Option<u32>, Vec<Span>, Option<String>);

fn finding_key(finding: &Diagnostic, object: Option<u32>) -> FindingKey {
    // That a run takes too long is said once, wherever each was stopped.
    if finding.rule == Rule::DeadlineExceeded {
        return (finding.rule, None, Vec::new(), None);
    }
    let mut spans: Vec<Span> = finding.labels.iter().map(|l| l.span).collect();
    // The same two places race whichever comes first.
    spans.sort_by_key(|s| (s.source, s.start, s.end));
    let message = finding.span().source.is_none();
    let message = message.then(|| finding.message.clone());
    (finding.rule, object, spans, message)
}

/// Lets observers see a second look's progress, and nothing else of it.
struct Progress<'a, 'o>(&'a mut [&'o mut dyn Observer]);

impl Observer for Progress<'_, '_> {
    fn wants(&self, _object: &ObjectInfo) -> bool {
        false
    }

    fn progress(&mut self, done: u64, total: u64) -> ControlFlow<()> {
        let mut flow = ControlFlow::Continue(());
        for observer in self.0.iter_mut() {
            if observer.progress(done, total).is_break() {
                flow = ControlFlow::Break(());
            }
        }
        flow
    }
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

/// The first location in which two runs differ, and its value after each.
fn difference(
    program: &Program,
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

/// The first component of a texel in which two runs differ, and its stored value after each.
fn texel_difference(
    object: &ObjectInfo,
    first: &[u8],
    now: &[u8],
) -> Option<(String, Const, Const)> {
    let (dimension, shape) = object.texture?;
    let name = &object.name;
    let at = first.iter().zip(now).position(|(a, b)| a != b)? as u64;
    let scalar = stored(shape.format);
    let address = at / scalar.size_bytes() * scalar.size_bytes();
    let value = |bytes: &[u8]| Const {
        scalar,
        bits: crate::access::read(bytes, address, scalar),
    };
    let texel = at / shape.format.texel_bytes();
    let channel = at % shape.format.texel_bytes() / scalar.size_bytes();
    let component = shape.format.component(channel as u32) as usize;
    if shape.format.is_packed() {
        let place = texel_name(dimension, shape, texel);
        return Some((format!("{name}{place}"), value(first), value(now)));
    }
    let place = texel_name(dimension, shape, texel);
    let part = ["x", "y", "z", "w"][component];
    Some((format!("{name}{place}.{part}"), value(first), value(now)))
}
