//! Who runs when: threadgroups one after another, simdgroups of a threadgroup in turn.
//!
//! A simdgroup runs until it waits for its threadgroup, is done, or *spins*: an atomic inside a loop
//! went where it went the last time and read what it read then. When every simdgroup of a
//! threadgroup that could run only spins, the next threadgroup is started beside it, and from then
//! on those in flight take turns; so a thread can wait for another, of a simdgroup or threadgroup
//! that comes later. One that has nothing to do but to spin has its turn when what it looks at has
//! changed, or no other has anything to do (`sleepers.rs`). As many are started as `resident_bytes` has room for. Threads of one simdgroup
//! that wait for each other may never end (X3); `step_limit` and `time_limit` stop them.
//!
//! With a seed, threadgroups and simdgroups come in another order, simdgroups stop by chance at
//! atomics, their lanes part by chance (`strands.rs`), and up to four threadgroups of a kernel with
//! atomics on device memory are in flight from the start.

use std::hash::{Hash, Hasher};

use invar_ir::memory_layout::has_room;
use invar_ir::room::{PASSES_BYTES, with_room};
use invar_ir::{Diagnostic, Diagnostics, Module, Rule, Verified};

use crate::access::Addresses;
use crate::changes::{Changes, Word};
use crate::compile::compile;
use crate::dispatch::{
    Arg, Dispatch, Given, Options, Outcome, check_arguments, check_grid, check_simdgroup_size,
    refuse,
};
use crate::observe::{Launch, Observer, Who};
use crate::program::{Code, Program, Slot};
use crate::random::{Permutation, Random};
use crate::requires::check_requirements;
use crate::sleepers::Sleepers;
use crate::state::{Place, Run, Simdgroup, State, Stop};

/// Runs a kernel of a verified module on the reference machine.
///
/// `args` has one entry for each parameter, in order; buffers are changed in place. Observers see
/// what happens and are asked for their findings by the caller, with [`Observer::finish`].
///
/// Threadgroups run one after another, and their simdgroups in turn, each up to a barrier. One that
/// sees nothing new at an atomic in a loop lets others go on, at last also threadgroups that have not
/// begun, as many as [`Options::resident_bytes`] has room for: so spin locks and messages between
/// threadgroups come to their end. Equal inputs, options and seed give equal results.
///
/// ```
/// use invar_interp::{Arg, Dispatch, Options, run};
/// use invar_ir::{Access, Dim, KernelBuilder, Module, Place, Scalar, verify};
///
/// let mut k = KernelBuilder::new(Module::default(), "scale");
/// let x = k.buffer("x", Access::ReadWrite, Scalar::F32);
/// let by = k.scalar("by", Scalar::F32);
/// let i = k.thread_position_in_grid(Dim::X);
/// let v = k.load(Place::element(x, i));
/// let scaled = k.mul(v, by);
/// k.store(Place::element(x, i), scaled);
/// let module = verify(k.finish()?)?;
///
/// let mut x: Vec<u8> = [1.0f32, 2.0, 3.0].iter().flat_map(|v| v.to_ne_bytes()).collect();
/// let mut args = [Arg::Buffer(&mut x), Arg::scalar(2.0f32)];
/// let dispatch = Dispatch::linear(3, 64);
/// run(&module, "scale", &dispatch, &mut args, &Options::default(), &mut [])?;
/// assert_eq!(x[8..], 6.0f32.to_ne_bytes());
/// # Ok::<(), invar_ir::Diagnostics>(())
/// ```
///
/// # Errors
/// An argument or a size that does not fit, threads that do not meet where they must
/// (`barrier-divergence`), a limit that was exceeded, or an observer that cancelled. After an error
/// buffers hold what was stored so far (F3).
pub fn run(
    module: &Verified,
    kernel: &str,
    dispatch: &Dispatch,
    args: &mut [Arg],
    options: &Options,
    observers: &mut [&mut dyn Observer],
) -> Result<Outcome, Diagnostics> {
    with_room(PASSES_BYTES, || {
        let program = prepare(module, kernel, options)?;
        run_program(&program, dispatch, args, options, false, observers)
    })
}

/// Compiles a kernel for a run.
pub(crate) fn prepare(
    module: &Verified,
    kernel: &str,
    options: &Options,
) -> Result<Program, Diagnostics> {
    let one = module.only(kernel).unwrap_or_else(|| module.clone());
    let fixed = one.specialise(&options.constants)?;
    prepare_fixed(&fixed, kernel, options)
}

/// Compiles a kernel of a module without function constants for a run.
pub(crate) fn prepare_fixed(
    module: &Module,
    kernel: &str,
    options: &Options,
) -> Result<Program, Diagnostics> {
    let Some(found) = module.kernel(kernel) else {
        let names: Vec<String> = module
            .kernels
            .iter()
            .map(|k| format!("`{}`", k.name))
            .collect();
        return Err(Diagnostics(vec![Diagnostic::error(
            Rule::InvalidDispatch,
            invar_ir::Span::NONE,
            format!(
                "the module has no kernel `{kernel}`; it has {}",
                names.join(", ")
            ),
        )]));
    };
    let size = check_simdgroup_size(found, options.simdgroup_size)?;
    compile(module, kernel, size)
}

/// Runs a compiled kernel. `ends_standstill`: a run in the natural order is ended as soon as it is
/// sure that it would never end.
pub(crate) fn run_program(
    program: &Program,
    dispatch: &Dispatch,
    args: &mut [Arg],
    options: &Options,
    ends_standstill: bool,
    observers: &mut [&mut dyn Observer],
) -> Result<Outcome, Diagnostics> {
    let kernel = program.kernel();
    let grid = check_grid(kernel, dispatch, options.threads_per_threadgroup)?;
    check_arguments(
        &program.module,
        kernel,
        args.iter().map(Given::from),
        options.threadgroup_memory_bytes,
    )?;
    check_requirements(&program.module, kernel, &grid, args.iter().map(Given::from))?;
    let lengths = lengths(program, args);
    let objects = crate::objects::describe(program, &lengths, args);
    let launch = Launch {
        module: &program.module,
        kernel,
        threadgroups: grid.count() as u64,
        grid,
        simdgroup_size: program.simdgroup_size,
        objects: &objects,
        sites: &program.sites,
        seed: options.seed,
    };
    for observer in observers.iter_mut() {
        observer.begin(&launch).map_err(|d| Diagnostics(vec![d]))?;
    }
    let watched = objects
        .iter()
        .map(|object| observers.iter().any(|o| o.wants(object)))
        .collect();
    let size = program.simdgroup_size as usize;
    let mut random = Random::new(options.seed);
    let mut orders: Vec<Vec<u8>> = vec![(0..size as u8).collect()];
    if options.seed != 0 {
        orders = vec![orders[0].clone(); 16];
        orders.iter_mut().for_each(|order| random.shuffle(order));
    }
    let count = grid.count() as u64;
    let order = match options.seed {
        0 => Permutation::identity(count),
        _ => Permutation::random(count, &mut random),
    };
    let abreast = match options.seed {
        0 => 1,
        _ if program.device_atomics => 1 + random.below(4) as usize,
        _ => 1,
    };
    let mut run = Run {
        program,
        args,
        options,
        grid,
        lengths,
        observers,
        watched,
        random,
        orders,
        addresses: Addresses::new(size),
        scratch: Vec::new(),
        steps: 0,
        look_at: 0,
        // A deadline that no clock reaches is none.
        deadline: options
            .time_limit
            .and_then(|limit| std::time::Instant::now().checked_add(limit)),
        done: 0,
        copies: 0,
        changes: Changes::default(),
        ends_standstill,
    };
    let (needed, limit) = (run.bytes_each(), options.resident_bytes);
    if needed > limit && count > 0 {
        return refuse(
            Rule::LimitExceeded,
            kernel,
            format!(
                "the values and arrays of one threadgroup of `{}` take {needed} bytes, more than \
                 the {limit} allowed: use smaller threadgroups, or raise `resident_bytes`",
                kernel.name
            ),
        );
    }
    run.all(order, abreast)?;
    Ok(Outcome {
        steps: run.steps,
        threadgroups: count,
        simdgroup_size: program.simdgroup_size,
    })
}

/// A digest of what simdgroups hold and where they stand.
fn digest<'s>(simds: impl Iterator<Item = &'s Simdgroup>) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    for simd in simds {
        (simd.pc, simd.mask, &simd.registers, &simd.thread_memory).hash(&mut hasher);
        simd.frames.iter().for_each(|f| f.lanes().hash(&mut hasher));
    }
    hasher.finish()
}

/// Elements of each object.
pub(crate) fn lengths(program: &Program, args: &[Arg]) -> Vec<u64> {
    let kernel = program.kernel();
    let arrays: Vec<u64> = kernel
        .allocs
        .iter()
        .filter(|a| a.space.is_of_threadgroup())
        .map(|a| a.length.into())
        .collect();
    let params = kernel
        .params
        .iter()
        .zip(args)
        .filter_map(|(_, arg)| match arg {
            Arg::ThreadgroupLength(length) => Some(*length),
            Arg::Buffer(_)
            | Arg::ReadBuffer(_)
            | Arg::OwnedBuffer(_)
            | Arg::Scalar(_)
            | Arg::Texture(..) => None,
        });
    let group: Vec<u64> = arrays.into_iter().chain(params).collect();
    let length = |object: &crate::program::Object| match object.slot {
        Slot::Argument(i) => match &args[i as usize] {
            Arg::Texture(shape, _) => shape.texels(),
            arg => arg.bytes().len() as u64 / object.element_bytes,
        },
        Slot::Constant(i) => program.module.constants[i as usize].length.into(),
        Slot::Threadgroup(i) => group[i as usize],
        Slot::Thread { length, .. } => length,
    };
    program.objects.iter().map(length).collect()
}

/// A threadgroup in flight.
pub(crate) struct InFlight {
    pub place: Place,
    simds: Vec<Simdgroup>,
    /// Long turns since a simdgroup last came to a barrier or its end.
    idle_turns: u32,
}

/// How a threadgroup's turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Finished,
    /// It seems to wait for another.
    InVain,
    /// Every simdgroup of it that could run only spins.
    Spins,
    Preempted,
}

/// After how many long turns without a barrier or an end a threadgroup counts as waiting for another.
const IDLE_TURNS: u32 = 64;

/// Tells when those in flight spin forever: nothing changes any more, neither memory nor what a
/// simdgroup holds and where it stands. In the natural order nothing will then.
#[derive(Default)]
struct LivelockDetector {
    /// How often all slept since something else than spinning.
    times: u64,
    /// At one of them, a digest of all in flight and how often memory had changed.
    then: Option<(u64, u64)>,
}

impl LivelockDetector {
    /// All sleep once more. `now`: a digest, and how often memory has changed. Whether the state of an earlier
    /// time has come again.
    fn is_livelock(&mut self, now: (u64, u64)) -> bool {
        self.times += 1;
        if self.then == Some(now) {
            return true;
        }
        // Looking back ever further finds a cycle of any length.
        if self.times.is_power_of_two() {
            self.then = Some(now);
        }
        false
    }
}

impl InFlight {
    /// Begins once more to look at all that it waits for.
    pub fn look_again(&mut self) {
        self.simds.iter_mut().for_each(|s| s.spin.end());
    }

    /// The words that it waits for, if none of its simdgroups that could run saw anything new when it last went
    /// through all that it looks at.
    fn spun_words(&self) -> Option<Vec<Word>> {
        let ready = || self.simds.iter().filter(|s| s.state == State::Ready);
        let sleeps = ready().all(|s| s.spin.is_round);
        sleeps.then(|| {
            let words = ready().flat_map(|s| &s.spin.words);
            words.copied().collect()
        })
    }
}

impl Run<'_, '_, '_> {
    /// Runs every threadgroup, `abreast` of them side by side from the start.
    fn all(&mut self, order: Permutation, abreast: usize) -> Result<(), Diagnostics> {
        let count = self.grid.count() as u64;
        let mut started = 0;
        let mut awake: Vec<InFlight> = Vec::new();
        let mut sleepers = Sleepers::default();
        let mut spare: Vec<InFlight> = Vec::new();
        let mut current = 0;
        let mut livelock = LivelockDetector::default();
        loop {
            while awake.len() + sleepers.count() < abreast && started < count {
                let slot = awake.len() + sleepers.count();
                let group = self.start(order.at(started), slot, spare.pop())?;
                awake.push(group);
                started += 1;
            }
            if awake.is_empty() {
                if sleepers.count() == 0 {
                    return Ok(());
                }
                if self.options.seed == 0 && self.ends_standstill {
                    let all = || sleepers.iter().flat_map(|group| &group.simds);
                    if livelock.is_livelock((digest(all()), self.changes.count)) {
                        return Err(self.never_ends(all()));
                    }
                }
                awake = sleepers.all(&mut self.changes);
            }
            current %= awake.len();
            let turn = self.turn(&mut awake[current])?;
            if turn != Turn::Spins {
                livelock = LivelockDetector::default();
            }
            match turn {
                Turn::Finished => {
                    let group = awake.swap_remove(current);
                    for observer in self.observers.iter_mut() {
                        observer.end_threadgroup(group.place.who);
                    }
                    spare.push(group);
                    self.done += 1;
                }
                Turn::InVain | Turn::Spins => {
                    let words = match turn {
                        Turn::Spins => awake[current].spun_words(),
                        _in_vain => None,
                    };
                    match words {
                        Some(words) => {
                            let group = awake.swap_remove(current);
                            sleepers.add(group, words, &mut self.changes);
                        }
                        None => current += 1,
                    }
                    let in_flight = awake.len() + sleepers.count();
                    let room =
                        self.bytes_each() * (in_flight as u64 + 1) <= self.options.resident_bytes;
                    if started < count && room {
                        let group = self.start(order.at(started), in_flight, spare.pop())?;
                        awake.push(group);
                        started += 1;
                        current = awake.len() - 1;
                        livelock = LivelockDetector::default();
                    }
                }
                Turn::Preempted => current += 1,
            }
            if sleepers.count() != 0 {
                awake.extend(sleepers.woken(&mut self.changes));
            }
        }
    }

    /// What to say when nothing changes any more.
    fn never_ends<'s>(&self, mut simds: impl Iterator<Item = &'s Simdgroup>) -> Diagnostics {
        let waiting = simds.find(|s| s.state == State::Ready);
        let at = waiting.map_or(0, |s| s.pc.saturating_sub(1));
        let message = format!(
            "kernel `{}` never ends in this schedule: every thread that is left waits for a change \
             that none of them makes",
            self.program.kernel().name
        );
        let span = self.program.spans[at as usize];
        let diagnostic = Diagnostic::error(Rule::DeadlineExceeded, span, message).help(
            "a thread that waits for another, of its own simdgroup too, by other means than a \
             barrier may never end (X3)",
        );
        Diagnostics(vec![diagnostic])
    }

    /// Bytes that a threadgroup takes while it is in flight.
    fn bytes_each(&self) -> u64 {
        let threads: u64 = self
            .grid
            .threadgroup
            .iter()
            .map(|n| u64::from(*n))
            .product();
        let size = u64::from(self.program.simdgroup_size);
        let simds = threads.div_ceil(size);
        let registers = self.program.registers as u64 * 8 + self.program.thread_bytes * size;
        let objects = self.program.objects.iter().zip(&self.lengths);
        let memory = objects.map(|(object, length)| match object.slot {
            Slot::Threadgroup(_) => object.element_bytes * length,
            Slot::Argument(_) | Slot::Constant(_) | Slot::Thread { .. } => 0,
        });
        memory.sum::<u64>() + simds * (registers + 1024)
    }

    /// # Errors
    /// `out-of-memory`.
    fn start(
        &mut self,
        index: u64,
        slot: usize,
        spare: Option<InFlight>,
    ) -> Result<InFlight, Diagnostics> {
        let needed = self.bytes_each();
        if spare.is_none() && !has_room(needed) {
            let kernel = self.program.kernel();
            return refuse(
                Rule::OutOfMemory,
                kernel,
                format!(
                    "there is no memory for the {needed} bytes of the values and arrays of a threadgroup of \
                     `{}`: use smaller threadgroups or arrays",
                    kernel.name
                ),
            );
        }
        let position = self.grid.position(index);
        let size = self.grid.size(position);
        let threads = size[0] * size[1] * size[2];
        // A slot belongs to what is in flight or spare: there are as many as both together.
        let who = Who {
            threadgroup: index,
            slot: spare.as_ref().map_or(slot as u32, |s| s.place.who.slot),
            simdgroup: 0,
        };
        let mut group = spare.unwrap_or_else(|| InFlight {
            place: Place {
                who,
                position,
                size,
                memory: self.group_memory(),
            },
            simds: Vec::new(),
            idle_turns: 0,
        });
        let place = &mut group.place;
        (place.position, place.size) = (position, size);
        place.who = who;
        place.memory.iter_mut().for_each(|m| m.fill(0));
        let count = threads.div_ceil(self.program.simdgroup_size) as usize;
        while group.simds.len() < count {
            group
                .simds
                .push(Simdgroup::new(self.program, self.args, &self.lengths));
        }
        group.simds.truncate(count);
        for (number, simd) in group.simds.iter_mut().enumerate() {
            simd.begin(number as u32, size, self.program.simdgroup_size);
        }
        group.idle_turns = 0;
        for observer in self.observers.iter_mut() {
            observer.begin_threadgroup(who, threads);
        }
        Ok(group)
    }

    fn group_memory(&self) -> Vec<Vec<u8>> {
        let mut memory = Vec::new();
        for (object, length) in self.program.objects.iter().zip(&self.lengths) {
            if let Slot::Threadgroup(i) = object.slot {
                memory.push((i, vec![0; (object.element_bytes * length) as usize]));
            }
        }
        memory.sort_by_key(|(i, _)| *i);
        memory.into_iter().map(|(_, bytes)| bytes).collect()
    }

    /// Runs a threadgroup until it ends, only spins, or others should have a turn.
    fn turn(&mut self, group: &mut InFlight) -> Result<Turn, Diagnostics> {
        let InFlight {
            place,
            simds,
            idle_turns,
        } = group;
        let mut order: Vec<usize> = (0..simds.len()).collect();
        loop {
            if self.options.seed != 0 {
                self.random.shuffle(&mut order);
            }
            let (mut moved, mut preempted, mut long) = (false, false, false);
            for i in &order {
                let simd = &mut simds[*i];
                if simd.state != State::Ready {
                    continue;
                }
                match self.slice(place, simd)? {
                    Stop::Finished => {
                        simd.state = State::Finished;
                        moved = true;
                        *idle_turns = 0;
                    }
                    Stop::Rendezvous => {
                        simd.state = State::Waiting;
                        moved = true;
                        *idle_turns = 0;
                    }
                    Stop::Preempted => {
                        moved = true;
                        preempted = true;
                    }
                    Stop::LongTurn => {
                        moved = true;
                        long = true;
                    }
                    Stop::Spinning => {}
                }
            }
            if simds.iter().all(|s| s.state == State::Finished) {
                for simd in simds.iter_mut() {
                    self.finish_copies(place, simd)?;
                }
                return Ok(Turn::Finished);
            }
            if simds.iter().all(|s| s.state != State::Ready) {
                self.meet(place, simds)?;
            } else if !moved {
                return Ok(Turn::Spins);
            } else if preempted || long {
                *idle_turns += u32::from(long);
                if *idle_turns >= IDLE_TURNS {
                    *idle_turns = 0;
                    return Ok(Turn::InVain);
                }
                return Ok(Turn::Preempted);
            }
        }
    }

    /// No simdgroup of a threadgroup can run: lets them on from where they all wait.
    fn meet(&mut self, place: &Place, simds: &mut [Simdgroup]) -> Result<(), Diagnostics> {
        let together = simds.iter().all(|s| {
            s.state == State::Waiting
                && s.pc == simds[0].pc
                && s.iterations().eq(simds[0].iterations())
        });
        if !together {
            return Err(crate::diverge::simdgroups_apart(self.program, place, simds));
        }
        match &self.program.code[simds[0].pc as usize - 1] {
            Code::Barrier {
                site,
                scope,
                spaces,
            } => {
                for observer in self.observers.iter_mut() {
                    observer.barrier(place.who, *site, *scope, *spaces);
                }
            }
            Code::AssertUniform {
                site,
                destination,
                columns,
                ..
            } => {
                let (at, columns) = (*destination as usize, *columns as usize);
                self.agree_in_threadgroup(place, simds, *site, at, columns);
            }
            other => unreachable!("threads meet at a barrier, not at {other:?}"),
        }
        for simd in simds {
            simd.state = State::Ready;
            simd.atomics = 0;
        }
        Ok(())
    }
}
