//! Launches that are only tried: where two threads may race, or one leave an array of the kernel's own, and neither a
//! proof nor a launch was found, many launches are about as likely to show it as one.
//!
//! Products of several numbers are more than the solver finds a launch for, and what it does not know of a value, such
//! as a float that is compared, it cannot choose. Each launch lies within the conditions, but for those that numbers are
//! multiples, and the checkers say whether it breaks the kernel. Deliberately absent: indices that follow from what memory
//! holds, beside the numbers that atomics give and tables of constants, for there much may be passed that nobody would.

use std::collections::BTreeSet;

use invar_ir::{AccessMode, InstKind, Memory, ParamKind, Rule, Scalar, Type, Value};

use crate::condition::{Condition, Number};
use crate::launch::{Launch, Spelled, run_within, spelled};
use crate::prove::{Counterexample, Goal, Session};
use crate::required;
use crate::shape::Definition;
use crate::subject::Subject;
use crate::thread::range;

/// Elements of buffers.
const LENGTH: i128 = 1 << 12;
/// Threads of a grid at most.
const MOST_THREADS: i128 = 1 << 11;
/// Launches at most.
const MOST_RUNS: usize = 256;
/// So many of them may be refused.
const MOST_REFUSED: usize = 3;
/// Once so many of them came to no end, no further numbers are tried, but other contents of buffers.
const MOST_ENDLESS: usize = 3;
/// The most instructions of each of them, in one schedule.
const MOST_STEPS: u64 = 200_000;
/// Once all together had so many instructions, no further one is begun.
const STEPS: u64 = 2_000_000;
/// Threadgroups.
const GROUPS: [[i128; 3]; 8] = [
    [2, 2, 2],
    [3, 2, 2],
    [2, 3, 2],
    [2, 2, 3],
    [1, 2, 2],
    [2, 2, 1],
    [1, 1, 1],
    [5, 1, 1],
];
/// Of grids of one, two and three dimensions all are tried of up to so many threads in each: odd ones, too, and squares.
const SMALL: [i128; 3] = [9, 4, 3];
/// What numbers are that are passed: the last lead out of types.
const NUMBERS: [i128; 6] = [2, 3, 5, 100, 1 << 31, (1 << 31) - 1];
/// How many of them several numbers are of which each is another.
const MIXED: usize = 4;
/// Of so many launches other contents are tried, too.
const WITH_CONTENTS: usize = 12;

impl Session<'_, '_> {
    /// A small launch, with buffers as long as anything, that breaks what is open: within the
    /// conditions first, then also with numbers that are no multiples.
    pub(crate) fn tried_out(&self, open: &[Goal]) -> Option<Counterexample> {
        let (races, bounds) = (self.lines_of_races(open), self.lines_of_bounds(open));
        if races.is_empty() && bounds.is_empty() {
            return None;
        }
        let of_open = |d: &invar_ir::Diagnostic| {
            let mut labels = d.labels.iter();
            let lines = match d.rule {
                Rule::OutOfBounds => &bounds,
                _race => &races,
            };
            labels.any(|l| lines.contains(&l.span.start.line))
        };
        let (module, kernel) = (self.subject.module, self.subject.kernel);
        let mut launches: Vec<Spelled> = Vec::new();
        let mut beyond: Vec<Spelled> = Vec::new();
        let is_of_divisors = |c: &&Condition| matches!(c, Condition::Multiple(..));
        for launch in self.subject.small_launches() {
            let conditions = self.subject.conditions.borrow();
            let broken = conditions
                .iter()
                .filter(|c| c.holds(&launch) == Some(false));
            let broken: Vec<&Condition> = broken.collect();
            let is_required = |r| required::holds(r, &launch) != Some(false);
            if kernel.requires.iter().all(is_required)
                && broken.iter().all(is_of_divisors)
                && let Some(launch) = spelled(module, kernel, &launch)
                && !launches.contains(&launch)
                && !beyond.contains(&launch)
            {
                let list = match broken.is_empty() {
                    true => &mut launches,
                    false => &mut beyond,
                };
                list.push(launch);
            }
        }
        // That numbers are multiples was not enough for a proof: others may show the same.
        launches.extend(beyond);
        let others = launches.iter().take(WITH_CONTENTS);
        let others: Vec<Spelled> = others.flat_map(with_other_contents).collect();
        let of_numbers = launches.len();
        let all = launches.into_iter().chain(others).take(MOST_RUNS);
        let (mut refused, mut endless, mut steps) = (0, 0, 0);
        for (place, launch) in all.enumerate() {
            if steps > STEPS {
                break;
            }
            // The first numbers are small, and the other contents are of launches with these.
            if endless >= MOST_ENDLESS && place < of_numbers {
                continue;
            }
            match run_within(self.verified, &kernel.name, &launch, MOST_STEPS) {
                Ok((findings, _)) if findings.iter().any(of_open) => {
                    return Some(Counterexample {
                        launch,
                        findings,
                        is_written: false,
                    });
                }
                Ok((_, Some(its))) => steps += its,
                // A loop that hardly ends is as long in the others.
                Ok((_, None)) if endless == 2 * MOST_ENDLESS => return None,
                Ok((_, None)) => endless += 1,
                Err(_) if refused == MOST_REFUSED => return None,
                Err(_) => refused += 1,
            }
        }
        None
    }

    /// The lines of accesses that may be beyond what the kernel itself has, such as arrays of threads: however long
    /// buffers are, those are not.
    fn lines_of_bounds(&self, open: &[Goal]) -> BTreeSet<u32> {
        let subject = self.subject;
        let own = open.iter().filter(|goal| match **goal {
            Goal::Bounds(site, _) => {
                let its = &subject.sites[site];
                let is_own = matches!(its.memory, Memory::Alloc(_));
                is_own && subject.beyond(site).is_none() && !subject.is_loaded(its.index)
            }
            Goal::Part(_) | Goal::Offset(_) | Goal::Race(_) => false,
        });
        let spans = own.flat_map(|goal| self.doubt(*goal).spans);
        spans.map(|span| span.start.line).collect()
    }

    /// The lines of accesses that may race, whose indices follow from what is passed.
    fn lines_of_races(&self, open: &[Goal]) -> BTreeSet<u32> {
        let subject = self.subject;
        let mut lines = BTreeSet::new();
        for goal in open {
            if let Goal::Race(pair) = *goal {
                let sites = [self.pairs[pair].a.0, self.pairs[pair].b.0];
                let is_known = |site: &usize| {
                    let index = subject.sites[*site].index;
                    subject.beyond(*site).is_none() && !subject.is_loaded(index)
                };
                if sites.iter().all(is_known) {
                    lines.extend(self.doubt(*goal).spans.iter().map(|s| s.start.line));
                }
            }
        }
        lines
    }
}

/// The same launch with buffers that hold no ascending numbers.
fn with_other_contents(launch: &Spelled) -> Vec<Spelled> {
    let changed = |other: &dyn Fn(&str) -> String| {
        let mut launch = launch.clone();
        for (_, data) in &mut launch.args {
            let count = data.strip_prefix("iota(").and_then(|d| d.strip_suffix(')'));
            if let Some(count) = count {
                *data = other(count);
            }
        }
        launch
    };
    let all = [
        changed(&|count| format!("zeros({count})")),
        changed(&|count| format!("rev(iota({count}))")),
        changed(&|count| format!("random({count}, 1)")),
    ];
    all.into_iter().filter(|other| other != launch).collect()
}

impl Subject<'_> {
    /// Whether an index follows from what a load gives, beside numbers by reference and those of constant arrays.
    fn is_loaded(&self, index: Value) -> bool {
        let mut open = vec![index];
        let mut seen = BTreeSet::new();
        while let Some(value) = open.pop() {
            if !seen.insert(value) {
                continue;
            }
            if let Some(Definition::Result(id, _)) = self.shape.definition(value) {
                let kind = self.shape.kind(id);
                let mut accesses = kind.accesses().into_iter();
                let loads = accesses.any(|a| matches!(a.mode, AccessMode::Read));
                if loads && !self.is_passed(kind) && !Self::is_of_a_constant(kind) {
                    return true;
                }
                // What the atomic adds is no place.
                if !matches!(kind, InstKind::Atomic { .. }) {
                    kind.for_each_use(|v| open.push(v));
                }
            }
        }
        false
    }

    /// All grids of few threads, in the dimensions that the kernel asks for.
    fn small_grids(&self) -> Vec<[i128; 3]> {
        let used = self.unused.iter().filter(|unused| !**unused).count();
        let most = SMALL[used.saturating_sub(1)];
        let side = |d: usize| 1..=if self.unused[d] { 1 } else { most };
        let planes = side(2).flat_map(|z| side(1).map(move |y| (y, z)));
        planes
            .flat_map(|(y, z)| side(0).map(move |x| [x, y, z]))
            .collect()
    }

    /// Small launches, in which numbers that are passed are the same or differ.
    fn small_launches(&self) -> Vec<Launch> {
        let params = &self.kernel.params;
        let mut passed: Vec<(Number, Scalar)> = Vec::new();
        for (i, param) in params.iter().enumerate() {
            if let ParamKind::Scalar { value } = &param.kind
                && let Type::Scalar(scalar) = self.kernel.ty(*value)
                && scalar.is_integer()
            {
                passed.push((Number::Argument(i), scalar));
            }
        }
        for field in self.fields_loaded() {
            let (least, _) = field.range(self);
            let scalar = if least < 0 { Scalar::I32 } else { Scalar::U32 };
            passed.push((field, scalar));
        }
        let same = NUMBERS.iter().map(|n| vec![*n; passed.len()]);
        let mixed = (0..MIXED).map(|first| {
            let places = 0..passed.len();
            let numbers = places.map(|k| NUMBERS[(first + MIXED - k % MIXED) % MIXED]);
            numbers.collect()
        });
        let values: Vec<Vec<i128>> = match passed.len() {
            0 => vec![Vec::new()],
            1 => same.collect(),
            _several => same.take(MIXED).chain(mixed).collect(),
        };
        let sizes = [4, 2, 1];
        let size = |d: usize| match self.kernel.threadgroup_size {
            Some(size) => i128::from(size[d]),
            None => sizes[d],
        };
        let whole = GROUPS.map(|groups| [0, 1, 2].map(|d| size(d) * groups[d]));
        let small = self.small_grids();
        let with_whole = values
            .iter()
            .flat_map(|v| whole.iter().map(move |g| (g, v)));
        let with_small = values
            .iter()
            .flat_map(|v| small.iter().map(move |g| (g, v)));
        let mut launches: Vec<Launch> = Vec::new();
        for (grid, values) in with_whole.chain(with_small) {
            let mut launch = Launch::default();
            for (d, threads) in grid.iter().enumerate() {
                launch.threadgroup[d] = Some(size(d));
                launch.grid[d] = Some(if self.unused[d] { 1 } else { *threads });
            }
            launch.numbers = vec![Some(LENGTH); params.len()];
            for ((number, scalar), value) in passed.iter().zip(values) {
                let (_, most) = range(*scalar);
                let value = if *value > most {
                    *value - (most + 1) * 2
                } else {
                    *value
                };
                number.set(&mut launch, value);
                // Their element is the only one.
                if let Number::Field(i, at) = *number {
                    launch.numbers[i] = Some(1);
                    let known = launch.contents.entry(Memory::Param(i as u32)).or_default();
                    known.insert(at.into(), value);
                }
            }
            let threads: i128 = launch.grid.iter().flatten().product();
            if threads <= MOST_THREADS && !launches.contains(&launch) {
                launches.push(launch);
            }
        }
        launches
    }
}
