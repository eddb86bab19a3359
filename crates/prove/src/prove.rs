//! Proving a kernel: every access in bounds, every pair of accesses ordered or apart; the conditions that
//! this needs; and launches that show where it fails.

use std::collections::{BTreeMap, BTreeSet};

use invar_ir::text::case::RunCase;
use invar_ir::{AccessMode, Memory, Requirement, Rule, Span, Verified};

use crate::certificate::Proof;
use crate::condition::{Condition, Number, texts};
use crate::file::Certificate;
use crate::launch::{
    Launch, MAX_STEPS, Spelled, run, run_within, spelled, spelled_as_written, written,
};
use crate::linear::Problem;
use crate::required;
use crate::subject::{Engine, Finding, Pair, Relation, Subject};
use crate::thread::Slot;
use crate::vocabulary::Vocabulary;

/// How to prove.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether conditions on the launch are looked for.
    pub infer: bool,
    /// Whether those may speak of what buffers hold, such as fields of parameters.
    pub contents: bool,
    /// Whether a launch is looked for where a proof fails.
    pub refute: bool,
    /// The most problems that are put to the solver.
    pub problems: usize,
    /// The most pivots that those may take.
    pub pivots: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            infer: true,
            contents: true,
            refute: true,
            problems: 3000,
            pivots: 200_000,
        }
    }
}

/// What came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No launch within the conditions has a data race or an access out of bounds.
    Proved,
    /// A launch has one: the checker ran it and reports it.
    Broken,
    /// Neither is known.
    Open,
}

/// Something that was not proved.
#[derive(Clone, Debug)]
pub struct Doubt {
    /// The access, or two that may race.
    pub spans: Vec<Span>,
    /// What may be, in a sentence without the line.
    pub what: String,
    /// Why it is not known, if the reason has a name.
    pub why: &'static str,
}

/// A launch that breaks a kernel, and what the checker says of it.
#[derive(Clone, Debug)]
pub struct Counterexample {
    /// The launch.
    pub launch: Spelled,
    /// What the checker reports of it.
    pub findings: Vec<invar_ir::Diagnostic>,
    /// Whether it is one that the author wrote, and not one that was looked for.
    pub is_written: bool,
}

/// What is known of a kernel.
#[derive(Clone, Debug)]
pub struct Report {
    /// The kernel's name.
    pub kernel: String,
    /// The verdict.
    pub verdict: Verdict,
    /// How many accesses to memory it has.
    pub accesses: usize,
    /// How many of them are in bounds in every launch within the conditions.
    pub in_bounds: usize,
    /// How many pairs of accesses could race, were it not for order and indices.
    pub pairs: usize,
    /// How many of them do not.
    pub apart: usize,
    /// What a launch has to fulfil.
    pub conditions: Vec<Condition>,
    /// The same, in the author's names.
    pub texts: Vec<String>,
    /// What the kernel itself requires of a launch, in the author's names.
    pub required: Vec<String>,
    /// Those of them that say that threadgroups are whole, which [`Report::launches`] says in words.
    pub whole: Vec<String>,
    /// Dimensions in which a grid has one thread: the kernel does not ask for them.
    pub flat_dimensions: Vec<&'static str>,
    /// What was not proved.
    pub doubts: Vec<Doubt>,
    /// Memory that the kernel writes, without atomics on it, whose accesses are all in bounds, or allowed
    /// beyond, and of which no two race: in launches within the conditions, whatever else is open.
    pub race_free: Vec<Memory>,
    /// A launch that breaks it.
    pub counterexample: Option<Counterexample>,
    /// A launch that fulfils the conditions and what the kernel requires of numbers, if there are any.
    pub witness: Option<Launch>,
    /// How many problems the solver was asked.
    pub problems: usize,
    /// How many pivots those took.
    pub pivots: u64,
    /// The proofs that were asked for at last, by the fingerprint of the problem.
    pub proofs: BTreeMap<u128, Proof>,
}

/// Why nothing was asked of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unasked {
    /// There is no such kernel.
    Kernel,
    /// There is no memory for the stack of the prover (`out-of-memory`).
    Memory,
}

impl std::fmt::Display for Unasked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unasked::Kernel => write!(f, "there is no such kernel"),
            Unasked::Memory => write!(
                f,
                "there is no memory for the prover's stack of {STACK_BYTES} bytes: allow the process more, as by \
                 `ulimit -v unlimited`"
            ),
        }
    }
}

impl std::error::Error for Unasked {}

/// The stack of the thread that proves.
const STACK_BYTES: usize = 256 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Goal {
    /// That an access is in bounds in one of its directions.
    Bounds(usize, usize),
    Part(usize),
    /// That an offset in bytes is a multiple.
    Offset(usize),
    Race(usize),
}

/// Whether more is known of a kernel under a condition, that a loop makes steps or strides, so that launches in which a
/// goal failed before say nothing.
pub(crate) fn tells_more(condition: &Condition) -> bool {
    match condition {
        Condition::Together(..) => true,
        // No more than a constant: else it says how large an object is, or the grid.
        Condition::AtMost(_, bound) => bound.numbers.is_empty(),
        Condition::Below(number, bound) => {
            let is_passed = |n: &Number| {
                use Number::{Argument, Constant, Field};
                matches!(n, Argument(_) | Constant(_) | Field(..))
            };
            let is_length = matches!(number, Number::Length(_)) && *bound != i32::MAX.into();
            is_passed(number) || is_length
        }
        Condition::More(..) | Condition::Sum(..) | Condition::Multiple(..) => false,
    }
}

pub(crate) struct Session<'s, 'k> {
    pub(crate) subject: &'s Subject<'k>,
    pub(crate) verified: &'s Verified,
    options: Options,
    pub(crate) pairs: Vec<Pair>,
    /// By access, values that do not wrap there, and the conditions under which they do not.
    pub(crate) exact: Vec<BTreeSet<Slot>>,
    pub(crate) exact_needs: Vec<BTreeSet<Condition>>,
    /// Launches that the author wrote.
    pub(crate) runs: Vec<Launch>,
    /// The same in words, those that can be run here.
    written: Vec<Spelled>,
    /// A launch that was found to fulfil the conditions, as they were then.
    pub(crate) known_launch: Option<Launch>,
    pub(crate) vocabulary: Vocabulary,
    /// The problems that were proved before any goal was tried.
    at_first: BTreeSet<u128>,
    /// What each goal that was reached needs.
    pub(crate) reached: BTreeMap<Goal, BTreeSet<Condition>>,
    /// Whether conditions were found for any goal, though none of them may be left.
    inferred: bool,
    /// The problems and pivots after which nothing more is asked.
    last: (usize, u64),
    /// How many more conditions are tried for the goal at hand.
    attempts: usize,
    /// How many more questions about many conditions at once may come to nothing: the dearest there are.
    patience: usize,
    /// Goals that failed in a launch only since objects were too short.
    short: BTreeSet<Goal>,
}

/// What is known of a kernel under conditions: values that do not wrap, what that needs, and what each goal needs.
pub(crate) type Known = (
    Vec<BTreeSet<Slot>>,
    Vec<BTreeSet<Condition>>,
    BTreeMap<Goal, BTreeSet<Condition>>,
);

/// How many times as much as is meant to be is tried for a kernel, and as much again once its conditions are known.
const TIMES: usize = 6;
/// How many conditions are tried for a goal.
const ATTEMPTS: usize = 80;
/// How many questions about many conditions at once may come to nothing.
const PATIENCE: usize = 24;
/// How many elements or texels an object is given at most that a launch is not about.
const MOST_ROOM: i128 = 1 << 14;
/// How many elements an object is given to see whether it was only too short.
const LONG: i128 = 1 << 16;

/// Proves a kernel, as far as it can. `runs` are the launches that its author wrote: no condition is ever
/// taken that one of them breaks.
///
/// ```
/// use invar_ir::{text, verify};
/// use invar_prove::{Options, Verdict, prove};
///
/// let text = "kernel @double(%x: device read_write f32) {
///     %i = thread_position_in_grid x
///     %v = load %x[%i]
///     %w = add %v, %v
///     store %x[%i], %w
/// }";
/// let module = verify(text::parse("double.inv", text)?)?;
/// let report = prove(&module, "double", &[], Options::default()).expect("there is such a kernel");
/// assert_eq!(report.verdict, Verdict::Proved);
/// assert_eq!(report.texts, ["grid.x <= length(x)"]);
/// # Ok::<(), invar_ir::Diagnostics>(())
/// ```
///
/// # Errors
/// There is no such kernel, or no memory.
pub fn prove(
    module: &Verified,
    kernel: &str,
    runs: &[RunCase],
    options: Options,
) -> Result<Report, Unasked> {
    let found =
        with_room(|| prove_with(module, kernel, runs, options, Engine::Solver, None, false));
    found?.map(|(report, _)| report).ok_or(Unasked::Kernel)
}

/// The problems that are decided while a kernel is proved, each with whether it was refuted: what another
/// solver can be asked, too.
///
/// # Errors
/// As [`prove`].
pub fn problems(
    module: &Verified,
    kernel: &str,
    runs: &[RunCase],
    options: Options,
) -> Result<Vec<(Problem, bool)>, Unasked> {
    let found = with_room(|| prove_with(module, kernel, runs, options, Engine::Solver, None, true));
    found?.map(|(_, problems)| problems).ok_or(Unasked::Kernel)
}

/// Reads certificates, with room for proofs that nest deeply.
///
/// # Errors
/// As [`crate::file::read`], or there is no memory.
pub fn read_certificates(text: &str) -> Result<Vec<Certificate>, String> {
    with_room(|| crate::file::read(text)).map_err(|e| e.to_string())?
}

/// Checks proofs that were written down: the verdict is `Proved` if they, and nothing else, show that no
/// launch within these conditions has a data race or an access out of bounds, and its launch is one within them. `runs`
/// are the launches that its author wrote, as when it was proved.
///
/// # Errors
/// As [`prove`].
pub fn verify_certificate(
    module: &Verified,
    runs: &[RunCase],
    certificate: &Certificate,
) -> Result<Report, Unasked> {
    let options = Options {
        infer: false,
        refute: false,
        ..Options::default()
    };
    let engine = Engine::Certificate(certificate.proofs.clone().into_iter().collect());
    let (kernel, given) = (&certificate.kernel, Some(certificate));
    let found = with_room(|| prove_with(module, kernel, runs, options, engine, given, false));
    found?.map(|(report, _)| report).ok_or(Unasked::Kernel)
}

/// Runs on a stack with room for kernels whose values depend on each other in long chains.
fn with_room<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, Unasked> {
    std::thread::scope(|scope| {
        let started = std::thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, work);
        match started.map(|thread| thread.join()) {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(_) => Err(Unasked::Memory),
        }
    })
}

fn prove_with(
    module: &Verified,
    kernel: &str,
    runs: &[RunCase],
    options: Options,
    engine: Engine,
    given: Option<&Certificate>,
    keep: bool,
) -> Option<(Report, Vec<(Problem, bool)>)> {
    let kernel = module.kernel(kernel)?;
    let cases = runs.iter().filter(|case| *case.kernel.name == *kernel.name);
    let (mut runs, mut words) = (Vec::new(), Vec::new());
    for case in cases {
        let run = written(module, kernel, case);
        // A launch that is refused is none.
        let fulfils = |r| required::holds(r, &run) != Some(false);
        if kernel.requires.iter().all(fulfils) {
            runs.push(run);
            words.extend(spelled_as_written(kernel, case));
        }
    }
    let is_wide = |d: usize| runs.iter().any(|run| run.grid[d] != Some(1));
    let subject = Subject::new(module, kernel, engine, [0, 1, 2].map(is_wide));
    if let Some(given) = given {
        subject
            .conditions
            .borrow_mut()
            .clone_from(&given.conditions);
    }
    if keep {
        *subject.decided.borrow_mut() = Some(Vec::new());
    }
    let at_first = subject.needed.borrow().clone();
    let mut vocabulary = Vocabulary::of(&subject);
    if !options.contents {
        vocabulary.leave_out_contents();
    }
    let mut session = Session {
        pairs: subject.pairs(),
        exact: vec![BTreeSet::new(); subject.sites.len()],
        exact_needs: vec![BTreeSet::new(); subject.sites.len()],
        runs,
        written: words,
        vocabulary,
        reached: BTreeMap::new(),
        inferred: false,
        last: (0, 0),
        attempts: 0,
        patience: PATIENCE,
        short: BTreeSet::new(),
        known_launch: given.and_then(|given| given.launch.clone()),
        at_first,
        subject: &subject,
        verified: module,
        options,
    };
    session.begin();
    if options.infer {
        session.assume_signed();
    }
    session.reach_all();
    if options.infer {
        session.minimise();
        session.weaken();
    }
    let report = session.report();
    let decided = subject.decided.borrow_mut().take();
    Some((report, decided.unwrap_or_default()))
}

impl Session<'_, '_> {
    fn goals(&self) -> Vec<Goal> {
        let sites = 0..self.subject.sites.len();
        let bounds = sites.flat_map(|site| {
            let directions = 0..self.subject.directions(site).len();
            directions.map(move |direction| Goal::Bounds(site, direction))
        });
        // What is passed has to be there before it can be asked whether it is a multiple, and of what is a multiple
        // the other indices are computed.
        let is_passed = |goal: &Goal| match goal {
            Goal::Bounds(site, _) => self.subject.is_constant(self.subject.sites[*site].index),
            Goal::Part(_) | Goal::Offset(_) | Goal::Race(_) => false,
        };
        let (passed, computed): (Vec<Goal>, Vec<Goal>) = bounds.partition(is_passed);
        let offsets = (0..self.subject.offsets.len()).map(Goal::Offset);
        (passed.into_iter().chain(offsets).chain(computed))
            .chain((0..self.subject.parts.len()).map(Goal::Part))
            .chain((0..self.pairs.len()).map(Goal::Race))
            .collect()
    }

    /// Whether the author allows an access to be out of bounds.
    fn is_allowed(&self, goal: Goal) -> bool {
        let kernel = self.subject.kernel;
        match goal {
            Goal::Bounds(site, _) => match self.subject.sites[site].mode {
                AccessMode::Read => kernel.allow_out_of_bounds_loads,
                AccessMode::Write | AccessMode::Atomic { .. } => kernel.allow_out_of_bounds_stores,
            },
            Goal::Part(part) if self.subject.parts[part].is_taken => {
                kernel.allow_out_of_bounds_loads
            }
            Goal::Part(_) => kernel.allow_out_of_bounds_stores,
            Goal::Offset(_) | Goal::Race(_) => false,
        }
    }

    fn named(&self, numbers: &BTreeSet<usize>) -> BTreeSet<Condition> {
        let all = self.subject.conditions.borrow();
        numbers
            .iter()
            .filter_map(|n| all.get(*n).cloned())
            .collect()
    }

    /// From here on as much may be tried as for a kernel.
    fn begin(&mut self) {
        self.last = (
            self.subject.asked.get() + self.options.problems * TIMES,
            self.subject.pivots.get() + self.options.pivots * TIMES as u64,
        );
    }

    /// Whether all was tried that may be.
    fn is_over(&self) -> bool {
        self.subject.asked.get() > self.last.0 || self.subject.pivots.get() > self.last.1
    }

    /// Tries to reach a goal under the present conditions.
    fn attempt(&mut self, goal: Goal, limits: Option<i128>) -> Finding {
        if self.is_over() {
            return Finding::Open;
        }
        match goal {
            Goal::Bounds(site, direction) => {
                let (finding, exact) = self.subject.bounds(site, direction, limits);
                if limits.is_none() {
                    let needs = self.subject.used.borrow().clone();
                    self.exact_needs[site] = self.named(&needs);
                    self.exact[site] = exact;
                }
                finding
            }
            Goal::Part(part) => self.subject.part(part, limits),
            Goal::Offset(offset) => self.subject.offset(offset, limits),
            Goal::Race(pair) => self.subject.race(&self.pairs[pair], &self.exact, limits),
        }
    }

    /// What a goal that was reached needs, by the conditions that its proof used.
    fn needs(&self, goal: Goal, used: &BTreeSet<usize>) -> BTreeSet<Condition> {
        let mut needs = self.named(used);
        if let Goal::Race(pair) = goal {
            let pair = &self.pairs[pair];
            for site in [pair.a.0, pair.b.0] {
                needs.extend(self.exact_needs[site].iter().cloned());
            }
        }
        needs
    }

    fn reach_all(&mut self) {
        for goal in self.goals() {
            if self.is_over() {
                return;
            }
            self.hurry_if_late();
            let finding = self.attempt(goal, None);
            match finding {
                Finding::Excluded(used) => {
                    let needs = self.needs(goal, &used);
                    self.reached.insert(goal, needs);
                }
                Finding::Possible(launch) => {
                    if self.options.infer && !self.is_allowed(goal) {
                        self.infer(goal, vec![*launch]);
                    }
                }
                Finding::Open => {
                    if self.options.infer && !self.is_allowed(goal) {
                        self.infer(goal, Vec::new());
                    }
                }
            }
        }
    }

    /// Whether so many times as much was tried as is meant to be.
    pub(crate) fn is_spent(&self, times: usize) -> bool {
        self.subject.asked.get() > self.options.problems * times
            || self.subject.pivots.get() > self.options.pivots * times as u64
    }

    /// Gives what is left to ask little time, where much was spent: kernels of hundreds of accesses.
    fn hurry_if_late(&self) {
        self.subject.hurried.set(self.is_spent(4));
    }

    /// Whether every launch that the author wrote fulfils a condition, as far as it says.
    pub(crate) fn admits(&self, condition: &Condition) -> bool {
        self.runs
            .iter()
            .all(|run| condition.holds(run) != Some(false))
    }

    /// How large the object of an access is in the direction of a goal, if that may have to be found: where
    /// the kernel requires something of it, the author has said it.
    fn open_room(&self, goal: Goal) -> Option<Number> {
        match goal {
            Goal::Bounds(site, direction) => {
                let room = self.subject.room(site, direction)?;
                (!self.subject.is_required(room)).then_some(room)
            }
            // How large an object is tells nothing of who meets whom.
            Goal::Part(_) | Goal::Offset(_) | Goal::Race(_) => None,
        }
    }

    /// Takes what lets numbers with a sign count; what nothing needs of it is left out again.
    fn assume_signed(&mut self) {
        let all = self.vocabulary.within_signed();
        let all: Vec<Condition> = all.filter(|c| self.admits(c)).collect();
        self.inferred |= !all.is_empty();
        self.subject.conditions.borrow_mut().extend(all);
    }

    /// Candidates for a goal in tiers: what is asked for first is preferred.
    fn candidates(&self, goal: Goal) -> Vec<Vec<Condition>> {
        let tops: Vec<i128> = self.subject.tops.borrow().iter().copied().collect();
        let lengths = match self.open_room(goal) {
            Some(room) => self.vocabulary.lengths(room, &tops),
            None => Vec::new(),
        };
        let sizes = self.vocabulary.sizes(self.subject);
        let mut few = Vec::new();
        if !self.runs.is_empty() {
            for d in &self.vocabulary.dims {
                few.push(Condition::Below(Number::Groups(*d), 1));
                let bounds = self.vocabulary.constants.iter().filter(|c| **c >= 4);
                few.extend(bounds.rev().map(|c| Condition::Below(Number::Grid(*d), *c)));
            }
        }
        let keep = |list: Vec<Condition>| -> Vec<Condition> {
            list.into_iter().filter(|c| self.admits(c)).collect()
        };
        vec![keep(lengths), keep(sizes), keep(few)]
    }

    /// Looks for conditions under which a goal is reached, and keeps them. A condition that a launch
    /// fulfils in which the goal fails is not tried.
    fn infer(&mut self, goal: Goal, mut failing: Vec<Launch>) -> bool {
        if let Goal::Offset(offset) = goal {
            return self.infer_multiples(offset);
        }
        let tiers = self.candidates(goal);
        // Where it fails with a number of 0 it is likely that several conditions are needed: that the number is
        // none, and what else.
        let positive = self.vocabulary.positive();
        let positive: Vec<Condition> = positive.filter(|c| self.admits(c)).collect();
        let is_0 = |launch: &Launch| positive.iter().any(|c| c.holds(launch) == Some(false));
        if failing.iter().any(is_0) {
            self.subject.hurried.set(true);
        }
        self.attempts = ATTEMPTS;
        for condition in tiers.iter().flatten() {
            if self.tries(goal, std::slice::from_ref(condition), &mut failing) {
                self.hurry_if_late();
                return true;
            }
        }
        self.hurry_if_late();
        // Several together. First what relates the grid to what the author passes, with buffers as long as
        // anything that the kernel speaks of; then how long they have to be.
        let object = self.open_room(goal);
        let mild = self.vocabulary.mild(self.subject);
        let mild: Vec<Condition> = mild.into_iter().filter(|c| self.admits(c)).collect();
        // A guard may say all of how large an object is.
        if object.is_some()
            && let Some(chosen) = self.core(goal, &[], &mild, &mut failing)
        {
            self.attempts = 1;
            if self.tries(goal, &chosen, &mut failing) {
                return true;
            }
        }
        let others = || tiers[1].iter().chain(&tiers[2]).cloned();
        // No constants above 1: each is tried by itself.
        let orders = |c: &Condition| match c {
            Condition::AtMost(term, _) => !term.numbers.is_empty() || term.factor <= 1,
            _another => false,
        };
        let passed = self.vocabulary.passed_strides(self.subject);
        let mut sets = vec![
            positive,
            mild,
            passed.into_iter().filter(|c| self.admits(c)).collect(),
            tiers[1].iter().filter(|c| orders(c)).cloned().collect(),
        ];
        sets.extend(others().map(|c| vec![c]));
        sets.push(tiers[1].clone());
        sets.push(others().collect());
        for (number, set) in sets.iter().enumerate() {
            // Alone without lengths each was tried.
            if object.is_none() && set.len() < 2 || sets[..number].contains(set) {
                continue;
            }
            // Where buffers have much room to spare, all else may seem needless.
            let room = if set.len() < 2 { 4 } else { 1 };
            let ample = object.map(|o| self.vocabulary.ample(o, room));
            let ample: Vec<Condition> = ample.into_iter().flatten().collect();
            let Some(mut chosen) = self.core(goal, &ample, set, &mut failing) else {
                continue;
            };
            // Which numbers have to be more than 0 shows where buffers have no more than they need: all, until the
            // end.
            if set.len() < 2 || number == 0 {
                chosen.clone_from(set);
            }
            self.attempts = 2 * ATTEMPTS;
            for first in &tiers[0] {
                let mut more = vec![first.clone()];
                more.extend(chosen.iter().cloned());
                if self.tries(goal, &more, &mut failing) {
                    return true;
                }
            }
            // Room to spare hides what is wrong: it is not a condition.
            if room > 1 {
                continue;
            }
            self.attempts = 1;
            let mut more = chosen;
            more.extend(ample.iter().filter(|c| self.admits(c)).cloned());
            if self.tries(goal, &more, &mut failing) {
                return true;
            }
        }
        let channels = object.map(|object| self.vocabulary.channels(object));
        self.attempts = ATTEMPTS;
        channels.into_iter().flatten().any(|condition| {
            let mut more = vec![condition];
            self.admits(&more[0])
                && (self.tries(goal, &more, &mut failing) || {
                    more.extend(sets[0].iter().cloned());
                    self.tries(goal, &more, &mut failing)
                })
        })
    }

    /// Looks for numbers that have to be multiples for an offset to be one.
    fn infer_multiples(&mut self, offset: usize) -> bool {
        let goal = Goal::Offset(offset);
        let Some(of) = self.subject.offsets[offset].of else {
            return false;
        };
        let multiples = self.vocabulary.multiples_of(of);
        let multiples: Vec<Condition> = multiples.filter(|c| self.admits(c)).collect();
        self.attempts = ATTEMPTS;
        // How many of the lowest bits are zero is not asked of the solver: the launches that it finds, in which products
        // wrap as it likes, say nothing of another condition.
        for condition in &multiples {
            if self.tries(goal, std::slice::from_ref(condition), &mut Vec::new()) {
                return true;
            }
        }
        let chosen = self.core(goal, &[], &multiples, &mut Vec::new());
        chosen.is_some_and(|chosen| self.tries(goal, &chosen, &mut Vec::new()))
    }

    /// Which of `others` a goal needs beside `ample`, none of which can be left out; `None` if all together
    /// are not enough, or too many to tell.
    fn core(
        &mut self,
        goal: Goal,
        ample: &[Condition],
        others: &[Condition],
        failing: &mut Vec<Launch>,
    ) -> Option<Vec<Condition>> {
        let before = self.subject.conditions.borrow().clone();
        let saved = (self.exact.clone(), self.exact_needs.clone());
        let mut chosen = self.enough(goal, &before, (ample, others), failing);
        if let Some(chosen) = &mut chosen {
            chosen.sort_by_key(|c| std::cmp::Reverse(c.weight()));
            let mut kept = 0;
            while kept < chosen.len() {
                let mut fewer = chosen.clone();
                fewer.remove(kept);
                match self.enough(goal, &before, (ample, &fewer), failing) {
                    Some(fewer) => *chosen = fewer,
                    None => kept += 1,
                }
            }
        }
        *self.subject.conditions.borrow_mut() = before;
        (self.exact, self.exact_needs) = saved;
        chosen
    }

    /// Whether a goal is reached under all of these conditions; then those of `others` that it uses, in
    /// their order.
    fn enough(
        &mut self,
        goal: Goal,
        before: &[Condition],
        (ample, others): (&[Condition], &[Condition]),
        failing: &mut Vec<Launch>,
    ) -> Option<Vec<Condition>> {
        let explained = |launch: &Launch| {
            let mut more = ample.iter().chain(others);
            more.all(|condition| condition.holds(launch) == Some(true))
        };
        let spent = self.patience == 0 || self.is_spent(1);
        let tells_more = others.iter().any(tells_more);
        if spent || !tells_more && failing.iter().any(explained) {
            return None;
        }
        let mut all = before.to_vec();
        for condition in ample.iter().chain(others) {
            if !all.contains(condition) {
                all.push(condition.clone());
            }
        }
        *self.subject.conditions.borrow_mut() = all;
        self.subject.hurried.set(true);
        let finding = self.attempt_anew(goal);
        self.hurry_if_late();
        let used = match finding {
            Finding::Excluded(used) => used,
            Finding::Possible(launch) if !tells_more => {
                failing.push(*launch);
                return None;
            }
            Finding::Possible(_) | Finding::Open => {
                self.patience -= 1;
                return None;
            }
        };
        let needs = self.needs(goal, &used);
        let used = others.iter().filter(|c| needs.contains(c));
        Some(used.cloned().collect())
    }

    /// As [`Session::attempt`], with what is known of the values of its accesses found anew.
    fn attempt_anew(&mut self, goal: Goal) -> Finding {
        if let Goal::Race(pair) = goal {
            let pair = self.pairs[pair].clone();
            for site in [pair.a.0, pair.b.0] {
                self.attempt(Goal::Bounds(site, 0), None);
            }
        }
        self.attempt(goal, None)
    }

    fn tries(&mut self, goal: Goal, more: &[Condition], failing: &mut Vec<Launch>) -> bool {
        if self.is_spent(1) {
            return false;
        }
        let explained = |launch: &Launch| {
            more.iter()
                .all(|condition| condition.holds(launch) == Some(true))
        };
        let tells_more = more.iter().any(tells_more);
        if self.attempts == 0 || !tells_more && failing.iter().any(explained) {
            return false;
        }
        self.attempts -= 1;
        let before = self.subject.conditions.borrow().clone();
        if more.iter().all(|c| before.contains(c)) {
            return false;
        }
        let fresh = more.iter().filter(|c| !before.contains(c));
        self.subject.conditions.borrow_mut().extend(fresh.cloned());
        let saved = (self.exact.clone(), self.exact_needs.clone());
        match self.attempt_anew(goal) {
            // Of launches that there are none of anything can be proved.
            Finding::Excluded(_) if !self.leaves_launches(goal, &before) => {}
            Finding::Excluded(used) => {
                let needs = self.needs(goal, &used);
                self.subject
                    .conditions
                    .borrow_mut()
                    .retain(|c| before.contains(c) || needs.contains(c));
                self.reached.insert(goal, needs);
                self.inferred = true;
                return true;
            }
            Finding::Possible(_) if tells_more => {}
            Finding::Possible(launch) => failing.push(*launch),
            Finding::Open => {}
        }
        *self.subject.conditions.borrow_mut() = before;
        (self.exact, self.exact_needs) = saved;
        false
    }

    /// Leaves out conditions that nothing needs, those that ask most first.
    pub(crate) fn minimise(&mut self) {
        let mut all = self.subject.conditions.borrow().clone();
        all.sort_by_key(|c| std::cmp::Reverse(c.weight()));
        for condition in all {
            if self.is_spent(2) {
                break;
            }
            let before = self.subject.conditions.borrow().clone();
            let saved = (
                self.exact.clone(),
                self.exact_needs.clone(),
                self.reached.clone(),
            );
            self.subject
                .conditions
                .borrow_mut()
                .retain(|c| *c != condition);
            if !self.still_reached(std::slice::from_ref(&condition)) {
                *self.subject.conditions.borrow_mut() = before;
                (self.exact, self.exact_needs, self.reached) = saved;
            }
        }
    }

    /// Whether every goal that was reached is reached anew under the conditions at hand.
    pub(crate) fn all_reached(&mut self) -> bool {
        let goals: Vec<Goal> = self.reached.keys().copied().collect();
        goals
            .into_iter()
            .all(|goal| match self.attempt(goal, None) {
                Finding::Excluded(used) => {
                    let needs = self.needs(goal, &used);
                    self.reached.insert(goal, needs);
                    true
                }
                Finding::Possible(_) | Finding::Open => false,
            })
    }

    /// Whether every goal that needed one of these conditions is reached without them.
    pub(crate) fn still_reached(&mut self, without: &[Condition]) -> bool {
        let goals: Vec<Goal> = self.reached.keys().copied().collect();
        let mut again: BTreeSet<usize> = BTreeSet::new();
        let is_of = |needs: &BTreeSet<Condition>| without.iter().any(|c| needs.contains(c));
        for site in 0..self.subject.sites.len() {
            if is_of(&self.exact_needs[site]) {
                again.insert(site);
            }
        }
        for goal in goals {
            let affected = match goal {
                Goal::Bounds(site, _) => again.contains(&site),
                Goal::Part(_) | Goal::Offset(_) => false,
                Goal::Race(pair) => {
                    let pair = &self.pairs[pair];
                    again.contains(&pair.a.0) || again.contains(&pair.b.0)
                }
            };
            if !affected && !is_of(&self.reached[&goal]) {
                continue;
            }
            match self.attempt(goal, None) {
                Finding::Excluded(used) => {
                    let needs = self.needs(goal, &used);
                    self.reached.insert(goal, needs);
                }
                Finding::Possible(_) | Finding::Open => return false,
            }
        }
        true
    }

    pub(crate) fn doubt(&self, goal: Goal) -> Doubt {
        let span = |site: usize| {
            self.subject.shape.statements[self.subject.sites[site].id]
                .inst
                .span
        };
        let name = |site: usize| {
            let memory = self.subject.sites[site].memory;
            let info = self.subject.module.memory(self.subject.kernel, memory);
            info.map_or(String::new(), |info| format!("`%{}`", info.name))
        };
        let of_index = |index| {
            if self.subject.depends_on_memory(index) {
                "the index depends on what memory holds"
            } else {
                "neither a proof nor a launch was found"
            }
        };
        let why = |site: usize, index| self.subject.beyond(site).unwrap_or(of_index(index));
        let of_site = |site: usize| why(site, self.subject.sites[site].index);
        match goal {
            Goal::Bounds(site, direction) => Doubt {
                spans: vec![span(site)],
                what: format!("an access to {} may be out of bounds", name(site)),
                why: match self.subject.directions(site).get(direction) {
                    _too_short if self.short.contains(&goal) => {
                        "no condition was found that says how long it has to be: longer, the launches that were found break \
                         nothing"
                    }
                    Some(direction) => why(site, direction.index),
                    None => of_site(site),
                },
            },
            Goal::Part(part) => {
                let part = self.subject.parts[part];
                Doubt {
                    spans: vec![self.subject.shape.statements[part.id].inst.span],
                    what: format!(
                        "a component may be beyond the {} that the value has",
                        part.count
                    ),
                    why: of_index(part.index),
                }
            }
            Goal::Offset(offset) => {
                let offset = self.subject.offsets[offset];
                let of = offset
                    .of
                    .map_or("what it is shifted by".to_string(), |of| of.to_string());
                Doubt {
                    spans: vec![self.subject.shape.statements[offset.id].inst.span],
                    what: format!("an offset in bytes may be no multiple of {of}"),
                    why: of_index(offset.value),
                }
            }
            Goal::Race(pair) => {
                let pair = &self.pairs[pair];
                let where_ = match pair.relation {
                    Relation::SameGroup => "threads of a threadgroup",
                    Relation::SameSimdgroup => "threads of a simdgroup",
                    Relation::OtherSimdgroup => "threads of two simdgroups of a threadgroup",
                    Relation::OtherGroup if self.subject.flat => "threads",
                    Relation::OtherGroup => "threads of two threadgroups",
                };
                let first = of_site(pair.a.0);
                let reason = if self.subject.beyond(pair.a.0).is_none()
                    && self.subject.beyond(pair.b.0).is_some()
                {
                    of_site(pair.b.0)
                } else {
                    first
                };
                Doubt {
                    spans: vec![span(pair.a.0), span(pair.b.0)],
                    what: format!("two {where_} may race on {}", name(pair.a.0)),
                    why: reason,
                }
            }
        }
    }

    /// A launch that was found for a goal, with room for other accesses that are open: where their objects are
    /// too short it is no wonder that they fail.
    fn with_room(&self, launch: Launch, goal: Goal, open: &[Goal]) -> Launch {
        let own = self.open_room(goal);
        let mut roomy = launch.clone();
        let others = open.iter().filter_map(|g| self.open_room(*g));
        for number in others.filter(|number| Some(*number) != own) {
            let ample = self.vocabulary.ample(number, 1);
            let needed = ample.iter().filter_map(|c| c.needs(&launch)).max();
            let needed = needed.filter(|n| *n <= MOST_ROOM && number.of(&launch) < Some(*n));
            if let Some(needed) = needed {
                number.set(&mut roomy, needed);
            }
        }
        let conditions = self.subject.conditions.borrow();
        let fulfils = conditions.iter().all(|c| c.holds(&roomy) != Some(false));
        if fulfils { roomy } else { launch }
    }

    /// A launch, and the same in whole threadgroups if it is then within the conditions: what the prover does not know
    /// of a value may keep the threads of the first apart.
    fn near(&self, launch: Launch) -> Vec<Launch> {
        let mut whole = launch.clone();
        for d in 0..3 {
            let size = match self.subject.kernel.threadgroup_size {
                Some(size) => Some(i128::from(size[d])),
                None => launch.threadgroup[d],
            };
            if let (Some(grid), Some(size)) = (whole.grid[d], size)
                && !self.subject.unused[d]
                && size > 0
            {
                whole.grid[d] = Some((grid + size - 1) / size * size);
            }
        }
        let conditions = self.subject.conditions.borrow();
        let fulfils = conditions.iter().all(|c| c.holds(&whole) != Some(false));
        let is_new = fulfils && whole != launch;
        let mut all = vec![launch];
        all.extend(is_new.then_some(whole));
        all
    }

    /// A launch in which a goal fails, which the checker has run.
    fn refute(&mut self, goal: Goal, open: &[Goal], budget: &mut usize) -> Option<Counterexample> {
        // What a launch costs in which objects are only too short.
        const SHORT: usize = 8;
        let spans = self.doubt(goal).spans;
        let conditions = self.subject.conditions.borrow().clone();
        let mut tried: Vec<Spelled> = Vec::new();
        // A buffer that is too short breaks any kernel. What counts is a launch whose buffers are as long
        // as anything that the kernel speaks of, or one within the conditions that others need.
        let mut ample = conditions.clone();
        if let Some(room) = self.open_room(goal) {
            ample.extend(self.vocabulary.ample(room, 4));
        }
        let mut sizes = conditions.clone();
        sizes.retain(Condition::is_of_size);
        // Of a small launch more is known: no index of a loop leaves its type.
        let steps = self.vocabulary.steps(self.subject);
        for assumed in [&mut ample, &mut sizes] {
            assumed.extend(steps.iter().cloned());
        }
        let races = matches!(goal, Goal::Race(_));
        // A launch beyond the conditions breaks much: only this goal counts, and no buffer that is too short.
        let lines = |d: &invar_ir::Diagnostic| {
            let mut labels = d.labels.iter();
            let is_here = |line: u32| spans.iter().any(|s| s.start.line == line);
            d.rule != Rule::OutOfBounds && labels.any(|l| is_here(l.span.start.line))
        };
        let counts = |within: bool| {
            move |findings: &[invar_ir::Diagnostic]| match within {
                true => !findings.is_empty(),
                false => findings.iter().any(lines),
            }
        };
        let mut endless = None;
        let is_less = conditions.iter().any(|c| !c.is_of_size());
        let tiers = if races && is_less { 2 } else { 1 };
        'tiers: for (tier, assumed) in [ample, sizes].into_iter().enumerate().take(tiers) {
            let within = tier == 0;
            *self.subject.conditions.borrow_mut() = assumed;
            for limit in [40, 300, 3000, 70_000, 1 << 20] {
                if *budget == 0 || self.is_spent(3) {
                    break;
                }
                *budget -= 1;
                let found = match goal {
                    Goal::Bounds(site, direction) => {
                        self.subject.bounds(site, direction, Some(limit)).0
                    }
                    Goal::Part(_) | Goal::Offset(_) | Goal::Race(_) => {
                        self.attempt(goal, Some(limit))
                    }
                };
                let Finding::Possible(launch) = found else {
                    continue;
                };
                let launch = self.with_room(*launch, goal, open);
                for launch in self.near(launch) {
                    let Some(found) = self.confirmed(&launch, &mut tried, &counts(within)) else {
                        continue;
                    };
                    // As much is tried of others, but no more of this one.
                    if self.is_only_short(open, &launch, &found) {
                        *budget = budget.saturating_sub(SHORT);
                        continue 'tiers;
                    }
                    if found.launch.time_limit.is_none() {
                        *self.subject.conditions.borrow_mut() = conditions;
                        return Some(found);
                    }
                    endless.get_or_insert(found);
                }
            }
        }
        *self.subject.conditions.borrow_mut() = conditions;
        endless
    }

    /// A launch as the checkers report it, the first of several ways to write it: where none comes to its end, it is to
    /// stop after some seconds.
    fn confirmed(
        &self,
        launch: &Launch,
        tried: &mut Vec<Spelled>,
        counts: &impl Fn(&[invar_ir::Diagnostic]) -> bool,
    ) -> Option<Counterexample> {
        const SECONDS: u32 = 10;
        let kernel = self.subject.kernel;
        let written = spelled(self.subject.module, kernel, launch)?;
        let each = written.in_simdgroups(kernel, launch).into_iter();
        let mut endless = None;
        for written in each.flat_map(Spelled::shortest_first) {
            if tried.contains(&written) {
                continue;
            }
            tried.push(written.clone());
            let found = run_within(self.verified, &kernel.name, &written, MAX_STEPS);
            let Ok((findings, steps)) = found else {
                continue;
            };
            if !counts(&findings) {
                continue;
            }
            let mut found = Counterexample {
                launch: written,
                findings,
                is_written: false,
            };
            if steps.is_some() {
                return Some(found);
            }
            found.launch.time_limit = Some(SECONDS);
            endless.get_or_insert(found);
        }
        endless
    }

    /// Whether all that is wrong with a launch is that objects are too short whose lengths are to be found: then a
    /// condition is missing, and the kernel may be as it should be. Not where what memory holds is an index: of that no
    /// length is enough.
    fn is_only_short(&mut self, open: &[Goal], launch: &Launch, found: &Counterexample) -> bool {
        let is_outside = |d: &invar_ir::Diagnostic| d.rule == Rule::OutOfBounds;
        if !found.findings.iter().all(is_outside) {
            return false;
        }
        let mut longer = launch.clone();
        let mut short = Vec::new();
        for goal in open {
            if let Goal::Bounds(site, _) = *goal
                && let Some(room @ Number::Length(_)) = self.open_room(*goal)
                && !self
                    .subject
                    .depends_on_memory(self.subject.sites[site].index)
            {
                room.set(&mut longer, LONG.max(room.of(launch).unwrap_or(0)));
                short.push(*goal);
            }
        }
        if short.is_empty() {
            return false;
        }
        let written = spelled(self.subject.module, self.subject.kernel, &longer);
        let written = written.map(|written| Spelled {
            simdgroup: found.launch.simdgroup,
            ..written
        });
        let kernel = &self.subject.kernel.name;
        let again = written.and_then(|w| run_within(self.verified, kernel, &w, MAX_STEPS).ok());
        let is_clean =
            again.is_some_and(|(findings, steps)| findings.is_empty() && steps.is_some());
        if is_clean {
            self.short.extend(short);
        }
        is_clean
    }

    /// A launch that the author wrote and that the checkers report.
    fn broken_as_written(&self) -> Option<Counterexample> {
        self.written.iter().find_map(|launch| {
            let findings = run(self.verified, &self.subject.kernel.name, launch).ok()?;
            (!findings.is_empty()).then(|| Counterexample {
                launch: launch.clone(),
                findings,
                is_written: true,
            })
        })
    }

    /// The objects that are written, of which nothing is open, and that have no atomics: how those are
    /// ordered shows in other objects.
    fn race_free(&self, open: &[Goal]) -> Vec<Memory> {
        let sites = &self.subject.sites;
        let of_goal = |goal: &Goal| match *goal {
            Goal::Bounds(site, _) => Some(sites[site].memory),
            Goal::Part(_) | Goal::Offset(_) => None,
            Goal::Race(pair) => Some(sites[self.pairs[pair].a.0].memory),
        };
        let left: BTreeSet<Memory> = open.iter().filter_map(of_goal).collect();
        let atomic = |mode| matches!(mode, AccessMode::Atomic { .. });
        let written = sites.iter().filter(|site| site.mode.writes());
        let written: BTreeSet<Memory> = written.map(|site| site.memory).collect();
        let is_free = |memory: &Memory| {
            let mut its = sites.iter().filter(|site| site.memory == *memory);
            self.subject.is_shared_memory(*memory)
                && !left.contains(memory)
                && !its.any(|site| atomic(site.mode))
        };
        written.into_iter().filter(is_free).collect()
    }

    /// Of launches that there are none of anything can be proved.
    fn doubt_of_launches(&self) -> Doubt {
        let subject = self.subject;
        let is_found_out = matches!(subject.engine, Engine::Solver);
        let unfulfilled = match is_found_out && !subject.kernel.requires.is_empty() {
            true => subject.unfulfilled(&self.runs),
            false => Vec::new(),
        };
        if !unfulfilled.is_empty() {
            let requires = unfulfilled.iter().map(|r| &subject.kernel.requires[*r]);
            let words = requires
                .clone()
                .map(|r| r.in_words(subject.module, subject.kernel));
            let words: Vec<String> = words.collect();
            let none = match subject.is_possible() {
                true => "no launch was found that fulfils",
                false => "no launch fulfils",
            };
            return Doubt {
                spans: requires.map(|r| r.span).collect(),
                what: format!("{none} what the kernel requires: {}", words.join(", ")),
                why: "where none does, a proof says nothing",
            };
        }
        let conditions = subject.conditions.borrow();
        let given = self.known_launch.as_ref().filter(|_| !is_found_out);
        let (what, why) = match given {
            Some(given) => {
                let unlike = subject.is_unlike(given, &conditions);
                let unlike = unlike.map_or(String::new(), |why| format!(": {why}"));
                let what = format!("the certificate's launch is none of these{unlike}");
                (
                    what,
                    "no launch is known that the proof is about, and of none anything can be proved",
                )
            }
            None => {
                let why = match is_found_out {
                    true => "none was found",
                    false => "the certificate has none",
                };
                ("no launch is known that is one of these".to_string(), why)
            }
        };
        Doubt {
            spans: vec![subject.kernel.span],
            what,
            why,
        }
    }

    fn report(mut self) -> Report {
        let subject = self.subject;
        // What counts is what holds under the conditions that are printed, in their order: all proofs once
        // more, if any condition was found.
        subject.conditions.borrow_mut().sort();
        if self.inferred {
            subject.needed.replace(std::mem::take(&mut self.at_first));
            subject.strides.borrow_mut().clear();
            self.reached.clear();
            self.exact.iter_mut().for_each(BTreeSet::clear);
            self.exact_needs.iter_mut().for_each(BTreeSet::clear);
        }
        let goals = self.goals();
        subject
            .proofs
            .borrow_mut()
            .retain(|_, proof| proof.is_some());
        self.begin();
        let mut open = Vec::new();
        // Those of them that were not asked.
        let mut left = Vec::new();
        let mut apart = 0;
        let mut outside: BTreeSet<usize> = BTreeSet::new();
        for goal in goals {
            self.hurry_if_late();
            let is_over = self.is_over();
            let reached = match self.reached.get(&goal) {
                Some(_) => true,
                None => matches!(self.attempt(goal, None), Finding::Excluded(_)),
            };
            match goal {
                Goal::Bounds(site, _) if !reached => drop(outside.insert(site)),
                Goal::Bounds(..) | Goal::Part(_) | Goal::Offset(_) => {}
                Goal::Race(_) => apart += usize::from(reached),
            }
            if !reached && !self.is_allowed(goal) {
                open.push(goal);
                if is_over {
                    left.push(goal);
                }
            }
        }
        let mut counterexample = None;
        if self.options.refute {
            let mut budget = 40;
            for goal in &open {
                if budget == 0 || self.is_spent(3) {
                    break;
                }
                counterexample = self.refute(*goal, &open, &mut budget);
                if counterexample.is_some() {
                    break;
                }
            }
            // Those that are found are small; what the prover does not know may show in those that are
            // written.
            if counterexample.is_none() && !open.is_empty() {
                counterexample = self.broken_as_written();
            }
            if counterexample.is_none() {
                counterexample = self.tried_out(&open);
            }
        }
        let asked = &open[..open.len() - left.len()];
        let mut doubts: Vec<Doubt> = asked.iter().map(|g| self.doubt(*g)).collect();
        doubts.extend(left.first().map(|goal| Doubt {
            spans: self.doubt(*goal).spans,
            what: format!(
                "{} more accesses, or pairs of them, were not looked at",
                left.len()
            ),
            why: "the kernel has more than the prover tries for one",
        }));
        // An access that may be beyond two edges.
        doubts.dedup_by(|a, b| (&a.spans, &a.what, a.why) == (&b.spans, &b.what, b.why));
        let requires = &subject.kernel.requires;
        let is_of_all = requires.is_empty() && subject.conditions.borrow().is_empty();
        let witness = (!is_of_all).then(|| self.witness()).flatten();
        if !is_of_all && witness.is_none() {
            doubts.insert(0, self.doubt_of_launches());
        }
        let required = requires
            .iter()
            .filter(|r| !required::is_of_a_type(subject.kernel, r))
            .map(|r| r.in_words(subject.module, subject.kernel))
            .collect();
        let of_whole = |r: &&Requirement| required::is_of_whole_threadgroups(subject.kernel, r);
        let whole = requires.iter().filter(of_whole);
        let whole = whole.map(|r| r.in_words(subject.module, subject.kernel));
        let verdict = if counterexample.is_some() {
            Verdict::Broken
        } else if doubts.is_empty() {
            Verdict::Proved
        } else {
            Verdict::Open
        };
        let mut conditions = subject.conditions.borrow().clone();
        conditions.sort();
        let texts = texts(&conditions, subject.module, subject.kernel);
        let dims = invar_ir::Dim::ALL.into_iter();
        let flat = dims
            .filter(|d| subject.unused[*d as usize])
            .map(|d| d.name())
            .collect();
        let race_free = self.race_free(&open);
        let (proofs, needed) = (subject.proofs.borrow(), subject.needed.borrow());
        let proofs = (proofs.iter())
            .filter(|(k, _)| needed.contains(k))
            .filter_map(|(k, p)| p.clone().map(|p| (*k, p)))
            .collect();
        Report {
            kernel: subject.kernel.name.to_string(),
            verdict,
            accesses: subject.sites.len(),
            in_bounds: subject.sites.len() - outside.len(),
            pairs: self.pairs.len(),
            apart,
            conditions,
            texts,
            required,
            whole: whole.collect(),
            flat_dimensions: flat,
            doubts,
            race_free,
            counterexample,
            witness,
            problems: subject.asked.get(),
            pivots: subject.pivots.get(),
            proofs,
        }
    }
}
