//! A run of a kernel: its simdgroups, which are coroutines, the threadgroups that they belong to, and what all of them
//! share. What they do stands in the modules that need this one.

use invar_ir::{Diagnostic, Diagnostics, Rule};

use crate::access::{Addresses, first_lanes};
use crate::changes::{Changes, SpinState};
use crate::dispatch::{Arg, GridSizes, Options};
use crate::observe::{Observer, Who};
use crate::program::{Copy, Program, Slot, Splat, Target};
use crate::random::Random;

/// Why a simdgroup stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// All its threads are done.
    Finished,
    /// It waits for the threadgroup, at the instruction before its place.
    Rendezvous,
    /// An atomic in a loop gave what it gave the last time, or plain loads did for long.
    Spinning,
    /// Others get a turn, by chance.
    Preempted,
    /// It has used many atomics in loops: others get a turn, in case it waits for them.
    LongTurn,
}

/// An open `if` or loop.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Frame {
    If {
        /// Its instruction.
        at: Target,
        /// Lanes that have come to its end.
        joined: u128,
        /// Lanes that have yet to run the other side, and where that is.
        pending: u128,
        other: Target,
        end: Target,
    },
    Loop {
        /// Its instruction.
        at: Target,
        /// Lanes that wait for the next iteration.
        next: u128,
        /// Lanes that have left.
        left: u128,
        /// Iterations so far.
        iteration: u64,
    },
}

/// A simdgroup of a running threadgroup.
pub(crate) struct Simdgroup {
    pub number: u32,
    /// Lanes that exist.
    pub existing: u128,
    /// Those of the strand at work: all that exist, unless there are others.
    pub lanes: u128,
    /// The other strands.
    pub parked: Vec<Strand>,
    pub registers: Vec<u64>,
    /// Thread arrays, lane after lane.
    pub thread_memory: Vec<u8>,
    /// Where each lane stands in its threadgroup.
    pub positions: Vec<[u32; 3]>,
    pub pc: Target,
    pub mask: u128,
    pub frames: Vec<Frame>,
    pub copies: Vec<Pending>,
    /// What each atomic inside a loop saw last, and each plain load inside one without a count.
    pub seen: Vec<u64>,
    /// How many such loads in a row saw what they saw the last time.
    pub repeats: u32,
    pub spin: SpinState,
    /// Atomics inside loops since the last barrier or long turn.
    pub atomics: u32,
    pub state: State,
}

/// Whether a simdgroup can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Ready,
    Waiting,
    Finished,
}

impl Simdgroup {
    pub fn new(program: &Program, args: &[Arg], lengths: &[u64]) -> Simdgroup {
        let size = program.simdgroup_size as usize;
        let mut registers = vec![0; program.registers];
        for (column, splat) in &program.splats {
            let bits = match *splat {
                Splat::Bits(bits) => bits,
                Splat::Length(object) => lengths[object as usize],
                Splat::Argument { param, component } => match &args[param as usize] {
                    Arg::Scalar(components) => components[component as usize].bits,
                    Arg::Buffer(_)
                    | Arg::ReadBuffer(_)
                    | Arg::OwnedBuffer(_)
                    | Arg::ThreadgroupLength(_)
                    | Arg::Texture(..) => 0,
                },
            };
            registers[*column as usize..*column as usize + size].fill(bits);
        }
        Simdgroup {
            number: 0,
            existing: 0,
            lanes: 0,
            parked: Vec::new(),
            registers,
            thread_memory: vec![0; program.thread_bytes as usize * size],
            positions: Vec::new(),
            pc: 0,
            mask: 0,
            frames: Vec::new(),
            copies: Vec::new(),
            seen: vec![0; program.spin_sites],
            repeats: 0,
            spin: SpinState::default(),
            atomics: 0,
            state: State::Ready,
        }
    }

    /// Makes it the simdgroup of that number in a threadgroup of that size.
    pub fn begin(&mut self, number: u32, size: [u32; 3], simdgroup_size: u32) {
        let threads = size[0] * size[1] * size[2];
        let first = number * simdgroup_size;
        let lanes = simdgroup_size.min(threads - first);
        self.number = number;
        self.existing = first_lanes(lanes);
        self.lanes = self.existing;
        self.parked.clear();
        self.positions.clear();
        // Missing lanes get the place they would have; nothing shows it.
        self.positions.extend(
            (first..first + simdgroup_size).map(|thread| GridSizes::thread_position(size, thread)),
        );
        self.pc = 0;
        self.mask = self.existing;
        self.frames.clear();
        self.copies.clear();
        self.seen.fill(u64::MAX);
        self.repeats = 0;
        self.spin.end();
        self.atomics = 0;
        self.state = State::Ready;
    }

    /// The iteration of each loop it is in: where it stands beside its place in the program.
    pub fn iterations(&self) -> impl Iterator<Item = u64> + '_ {
        self.frames.iter().filter_map(|f| match f {
            Frame::Loop { iteration, .. } => Some(*iteration),
            Frame::If { .. } => None,
        })
    }
}

/// A strand that does not run now.
#[derive(Clone, Debug)]
pub(crate) struct Strand {
    pub lanes: u128,
    pub pc: Target,
    pub mask: u128,
    pub frames: Vec<Frame>,
    /// What its atomics and loads in loops saw last.
    pub seen: Vec<u64>,
    /// It has come to where the whole simdgroup must meet.
    pub arrived: bool,
}

/// An async copy that was issued and not waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    pub id: u64,
    pub copy: Copy,
    pub plan: Plan,
    /// The data has been moved.
    pub moved: bool,
}

/// The indices and counts of a copy, as mathematical integers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub destination: i128,
    pub source: i128,
    pub destination_row: i128,
    pub source_row: i128,
    pub columns: i128,
    pub rows: i128,
}

/// A running threadgroup, less its simdgroups.
pub(crate) struct Place {
    pub who: Who,
    pub position: [u32; 3],
    pub size: [u32; 3],
    /// Threadgroup memory: arrays, then parameters.
    pub memory: Vec<Vec<u8>>,
}

impl Place {
    /// Who a simdgroup of it is.
    pub fn who(&self, simd: &Simdgroup) -> Who {
        Who {
            simdgroup: simd.number,
            ..self.who
        }
    }
}

/// A run of a kernel.
pub(crate) struct Run<'a, 'b, 'o> {
    pub program: &'a Program,
    pub args: &'a mut [Arg<'b>],
    pub options: &'a Options,
    pub grid: GridSizes,
    /// Elements of each object.
    pub lengths: Vec<u64>,
    pub observers: &'a mut [&'o mut dyn Observer],
    /// Objects whose accesses some observer wants.
    pub watched: Vec<bool>,
    pub random: Random,
    /// Orders of lanes to choose from; one, the natural, for seed 0.
    pub orders: Vec<Vec<u8>>,
    pub addresses: Addresses,
    pub scratch: Vec<u64>,
    pub steps: u64,
    /// The step at which to look at the clock and the limits again.
    pub look_at: u64,
    pub deadline: Option<std::time::Instant>,
    pub done: u64,
    pub copies: u64,
    /// What has happened to memory that threads share.
    pub changes: Changes,
    /// Whether to end the run when it is sure that it would never end.
    pub ends_standstill: bool,
}

/// The bytes of an object.
pub(crate) fn bytes_of<'m>(
    slot: Slot,
    program: &'m Program,
    args: &'m [Arg],
    group: &'m [Vec<u8>],
    thread: &'m [u8],
) -> &'m [u8] {
    match slot {
        Slot::Argument(i) => args[i as usize].bytes(),
        Slot::Constant(i) => &program.constants[i as usize],
        Slot::Threadgroup(i) => &group[i as usize],
        Slot::Thread { .. } => thread,
    }
}

/// The bytes of an object, to change them.
pub(crate) fn bytes_of_mut<'m>(
    slot: Slot,
    args: &'m mut [Arg],
    group: &'m mut [Vec<u8>],
    thread: &'m mut [u8],
) -> &'m mut [u8] {
    match slot {
        Slot::Argument(i) => args[i as usize].bytes_mut(),
        Slot::Constant(_) => &mut [],
        Slot::Threadgroup(i) => &mut group[i as usize],
        Slot::Thread { .. } => thread,
    }
}

/// How many steps pass between looks at the clock.
const STEPS_A_LOOK: u64 = 1 << 14;

impl Run<'_, '_, '_> {
    pub(crate) fn observed(&self) -> bool {
        !self.observers.is_empty()
    }

    /// Counts work and sees to the limits.
    ///
    /// # Errors
    /// `step-limit`, `deadline-exceeded`, or `cancelled` by an observer.
    #[inline(always)]
    pub(crate) fn step(&mut self, work: u64, at: Target) -> Result<(), Diagnostics> {
        self.steps = self.steps.saturating_add(work);
        if self.steps >= self.look_at {
            self.look(at)?;
        }
        Ok(())
    }

    #[cold]
    fn look(&mut self, at: Target) -> Result<(), Diagnostics> {
        let span = self.program.spans[at as usize];
        let name = &self.program.kernel().name;
        let fail = |rule, message: String, help: &str| {
            let diagnostic = Diagnostic::error(rule, span, message).help(help);
            Err(Diagnostics(vec![diagnostic]))
        };
        let limit = self.options.step_limit;
        if self.steps > limit {
            return fail(
                Rule::StepLimit,
                format!("kernel `{name}` has not ended after {limit} instructions"),
                "raise `step_limit` if it is meant to run that long; otherwise a thread waits for \
                 what never comes, or a loop has no end",
            );
        }
        if self
            .deadline
            .is_some_and(|d| std::time::Instant::now() >= d)
        {
            return fail(
                Rule::DeadlineExceeded,
                format!("kernel `{name}` has not ended in the time allowed"),
                "raise the time limit or dispatch less; a thread that waits for another by other \
                 means than a barrier may never end (X3)",
            );
        }
        let (done, total) = (self.done, self.grid.count() as u64);
        for observer in self.observers.iter_mut() {
            if observer.progress(done, total).is_break() {
                return fail(
                    Rule::Cancelled,
                    format!(
                        "the run of `{name}` was cancelled after {done} of {total} threadgroups"
                    ),
                    "buffers hold what was stored so far (F3)",
                );
            }
        }
        self.look_at = (self.steps + STEPS_A_LOOK).min(limit.saturating_add(1));
        Ok(())
    }
}
