//! R3 against every schedule: random small kernels, checked through the public
//! [`check_observed`], and the
//! verdict compared with all interleavings of their accesses, run by a small interpreter of its own
//! with happens-before by definition (O1, O2, O4, O7) and races by theirs (R1).
//!
//! - Where the report promises every schedule, it names a race of a class exactly when some
//!   interleaving has one.
//! - Whatever it promises, each race it names is one of the interleaving that was run, by class,
//!   location and lines, none of that one's is worse, and every pair of lines that races there is
//!   named.
//!
//! `INVAR_RACE_PROGRAMS` sets how many programs to try, `INVAR_RACE_SEED` where to begin, and
//! `INVAR_RACE_SCHEDULES` the most interleavings of a program; one with more is not tried.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::common::Random;
use invar_interp::observe::{Access, Launch};
use invar_interp::{
    Arg, CheckOptions, Dispatch, Observer, Options, Report, Schedules, check_observed,
};
use invar_ir::text::parse;
use invar_ir::{Diagnostic, Rule, verify};

const SIMDGROUP_SIZE: u32 = 4;
const THREADS_PER_THREADGROUP: u32 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Object {
    /// `%x`, in device memory.
    X,
    /// `%tile`, in threadgroup memory.
    Tile,
}

/// The spaces a barrier names: device and threadgroup.
type Spaces = [bool; 2];

/// A constant, or a value computed before: 0 in a thread that did not compute it.
#[derive(Clone, Copy, Debug)]
enum Operand {
    Const(u32),
    Value(usize),
}

#[derive(Clone, Copy, Debug)]
enum Index {
    Const(u32),
    /// The lowest bit of a value.
    Computed(usize),
}

#[derive(Clone, Copy, Debug)]
enum Update {
    Exchange,
    Add,
    Sub,
    Min,
    Max,
    And,
    Or,
    Xor,
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Load,
    Store(Operand),
    AtomicLoad,
    AtomicStore(Operand),
    Update(Update, Operand),
    CompareExchange(Operand, Operand),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Relaxed,
    Acquire,
    Release,
    AcqRel,
    SeqCst,
}

impl Order {
    fn acquires(self) -> bool {
        matches!(self, Order::Acquire | Order::AcqRel | Order::SeqCst)
    }

    fn releases(self) -> bool {
        matches!(self, Order::Release | Order::AcqRel | Order::SeqCst)
    }

    fn name(self) -> &'static str {
        match self {
            Order::Relaxed => "relaxed",
            Order::Acquire => "acquire",
            Order::Release => "release",
            Order::AcqRel => "acq_rel",
            Order::SeqCst => "seq_cst",
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Op {
    /// Only where this value is this constant.
    guard: Option<(usize, u32)>,
    object: Object,
    index: Index,
    action: Action,
    order: Order,
    /// Whether an atomic's scope is the device, not the threadgroup.
    device_scope: bool,
    /// The number of the value that it gives.
    result: usize,
}

#[derive(Clone, Debug)]
enum Item {
    /// These of the program's threads run these accesses; the last one's result is the block's.
    Block {
        threads: Vec<usize>,
        ops: Vec<Op>,
        result: usize,
    },
    Barrier {
        simdgroup: bool,
        spaces: Spaces,
    },
}

#[derive(Clone, Debug)]
struct Program {
    /// Positions in the grid of the threads that do anything.
    threads: Vec<u32>,
    items: Vec<Item>,
    values: usize,
}

// ---- making programs ----

/// What a program may do where.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Anything anywhere.
    Mixed,
    /// The first location has only atomics, and the other one plain stores of what they return,
    /// which decides whether stores are equal.
    Values,
    /// The first location has only atomics, and what they return decides which plain accesses are
    /// made to the others.
    Steered,
    /// The first location has atomics that order, and what they return decides which plain accesses
    /// are made to the other.
    Messages,
}

struct Maker<'a> {
    random: &'a mut Random,
    locations: Vec<(Object, u32)>,
    kind: Kind,
    /// Of messages, which of data and flag comes next.
    turn: usize,
    orders: bool,
    values: usize,
    known: Vec<usize>,
}

impl Maker<'_> {
    fn value(&mut self) -> usize {
        self.values += 1;
        self.values - 1
    }

    fn operand(&mut self) -> Operand {
        if !self.known.is_empty() && self.random.chance(45) {
            Operand::Value(self.random.pick(&self.known))
        } else {
            Operand::Const(self.random.below(3) as u32)
        }
    }

    fn order(&mut self, action: Action) -> Order {
        if !self.orders || self.random.chance(30) {
            return Order::Relaxed;
        }
        match action {
            Action::Load | Action::Store(_) => Order::Relaxed,
            Action::AtomicLoad => self.random.pick(&[Order::Acquire, Order::SeqCst]),
            Action::AtomicStore(_) => self.random.pick(&[Order::Release, Order::SeqCst]),
            Action::Update(..) | Action::CompareExchange(..) => {
                self.random
                    .pick(&[Order::Acquire, Order::Release, Order::AcqRel, Order::SeqCst])
            }
        }
    }

    fn action(&mut self, atomics: usize) -> Action {
        let operand = self.operand();
        if !self.random.chance(atomics) {
            return if self.random.chance(40) {
                Action::Load
            } else {
                Action::Store(operand)
            };
        }
        match self.random.below(10) {
            0..=2 => Action::AtomicLoad,
            3..=5 => Action::AtomicStore(operand),
            6 => Action::CompareExchange(self.operand(), operand),
            _ => {
                let update = self.random.pick(&[
                    Update::Add,
                    Update::Add,
                    Update::Sub,
                    Update::Min,
                    Update::Max,
                    Update::And,
                    Update::Or,
                    Update::Xor,
                    Update::Exchange,
                ]);
                Action::Update(update, operand)
            }
        }
    }

    fn op(&mut self, atomics: usize) -> Op {
        let mut place = self.random.pick(&self.locations);
        let atomic_first = match self.kind {
            Kind::Mixed => 0,
            Kind::Values => 80,
            Kind::Steered | Kind::Messages => 40,
        };
        if self.known.is_empty() && self.random.chance(atomic_first) {
            place = self.locations[0];
        }
        if self.kind == Kind::Messages && self.random.chance(85) {
            place = self.locations[(self.turn + 1) % 2];
            self.turn += 1;
        }
        let (object, number) = place;
        let last = self.known.last().copied();
        let first = place == self.locations[0];
        let action = match self.kind {
            Kind::Mixed => self.action(atomics),
            Kind::Values | Kind::Steered | Kind::Messages if first => self.action(100),
            Kind::Values => Action::Store(last.map_or(Operand::Const(0), Operand::Value)),
            Kind::Steered | Kind::Messages if self.random.chance(30) => Action::Load,
            Kind::Steered | Kind::Messages => {
                Action::Store(Operand::Const(self.random.below(2) as u32))
            }
        };
        // How often an access has a computed index, and how often a guard.
        let (computed, guarded) = match self.kind {
            Kind::Mixed => (12, 15),
            Kind::Steered if !first => (50, 25),
            Kind::Messages if !first => (0, 50),
            Kind::Values | Kind::Steered | Kind::Messages => (0, 0),
        };
        let both = self.locations.iter().filter(|l| l.0 == object).count() == 2;
        let index = if both && !self.known.is_empty() && self.random.chance(computed) {
            Index::Computed(self.random.pick(&self.known))
        } else {
            Index::Const(number)
        };
        let guard = (!self.known.is_empty() && self.random.chance(guarded))
            .then(|| (self.random.pick(&self.known), self.random.below(2) as u32));
        let result = self.value();
        if guard.is_none() && !matches!(action, Action::Store(_) | Action::AtomicStore(_)) {
            self.known.push(result);
        }
        Op {
            guard,
            object,
            index,
            action,
            order: self.order(action),
            device_scope: self.random.chance(60),
            result,
        }
    }
}

fn random_program(random: &mut Random) -> Program {
    let two_groups = random.chance(50);
    let mut places = vec![0, 1, 4, 5];
    if two_groups {
        places = vec![0, random.pick(&[1, 4]), 8, random.pick(&[9, 12])];
    }
    let count = random.pick(&[2, 2, 2, 3, 3, 4]);
    let mut threads: Vec<u32> = Vec::new();
    while threads.len() < count {
        let place = random.pick(&places);
        if !threads.contains(&place) {
            threads.push(place);
        }
    }
    threads.sort_unstable();
    let (kind, locations) = match random.below(19) {
        0..=2 => (Kind::Mixed, vec![(Object::X, 0)]),
        3 => (Kind::Mixed, vec![(Object::Tile, 0)]),
        4 => (Kind::Mixed, vec![(Object::X, 0), (Object::X, 1)]),
        5 => (Kind::Mixed, vec![(Object::Tile, 0), (Object::Tile, 1)]),
        6 => (Kind::Mixed, vec![(Object::X, 0), (Object::Tile, 0)]),
        7 => (Kind::Values, vec![(Object::X, 0), (Object::X, 1)]),
        8 => (Kind::Values, vec![(Object::X, 0), (Object::Tile, 0)]),
        9 => (Kind::Values, vec![(Object::Tile, 0), (Object::X, 0)]),
        10..=12 => (Kind::Messages, vec![(Object::X, 0), (Object::X, 1)]),
        13 => (Kind::Messages, vec![(Object::X, 0), (Object::Tile, 0)]),
        14 => (Kind::Messages, vec![(Object::Tile, 0), (Object::X, 0)]),
        15 | 16 => {
            let plain = [(Object::Tile, 0), (Object::Tile, 1)];
            (Kind::Steered, vec![(Object::X, 0), plain[0], plain[1]])
        }
        _ => {
            let plain = [(Object::X, 0), (Object::X, 1)];
            (Kind::Steered, vec![(Object::Tile, 0), plain[0], plain[1]])
        }
    };
    let atomics = random.pick(&[0, 30, 60, 90]);
    let max_ops = if count == 2 { 4 } else { 3 };
    let mut left = vec![max_ops; count];
    let orders = match kind {
        Kind::Mixed => random.chance(50),
        Kind::Values | Kind::Steered => false,
        Kind::Messages => true,
    };
    let mut make = Maker {
        random,
        locations,
        kind,
        turn: 0,
        orders,
        values: 0,
        known: Vec::new(),
    };
    let mut items = Vec::new();
    for _ in 0..2 + make.random.below(6) {
        if make.random.chance(25) {
            let some = [make.random.chance(80), make.random.chance(80)];
            items.push(Item::Barrier {
                simdgroup: make.random.chance(30),
                spaces: some,
            });
            continue;
        }
        let shared = make.random.chance(20);
        let first = make.random.below(count);
        let threads: Vec<usize> = (0..count)
            .filter(|&t| t == first || (shared && make.random.chance(70)))
            .collect();
        let most = threads.iter().map(|&t| left[t]).min().unwrap_or(0);
        if most == 0 {
            continue;
        }
        let length = 1 + make.random.below(most.min(3));
        threads.iter().for_each(|&t| left[t] -= length);
        let before = make.known.clone();
        // The one thread writes data and then the flag, the other reads them the other way round.
        make.turn = first;
        let ops: Vec<Op> = (0..length).map(|_| make.op(atomics)).collect();
        let last = make.known.last().copied();
        make.known = before;
        let result = make.value();
        if last.is_some_and(|v| ops.iter().any(|op| op.result == v)) {
            make.known.push(result);
        }
        items.push(Item::Block {
            threads,
            ops,
            result,
        });
    }
    Program {
        threads,
        items,
        values: make.values,
    }
}

/// The number of the value that a block gives: the last that one of its accesses gave.
fn given(ops: &[Op]) -> Option<usize> {
    let gives = |op: &&Op| {
        op.guard.is_none() && !matches!(op.action, Action::Store(_) | Action::AtomicStore(_))
    };
    ops.iter().rev().find(gives).map(|op| op.result)
}

// ---- the program as a kernel ----

/// The kernel, and the line of each access in the order of blocks.
fn kernel(program: &Program) -> (String, Vec<Vec<u32>>) {
    let mut text = String::from(
        "kernel @k(%x: device read_write u32) threadgroup(8) simdgroup(4) {\n\
         %tile = alloc threadgroup u32[2]\n\
         %i = thread_position_in_grid x\n",
    );
    let constants = program.threads.iter().copied().chain(0..3);
    for c in constants.collect::<BTreeSet<u32>>() {
        writeln!(text, "%c{c} = const u32 {c}").unwrap();
    }
    let mut lines = Vec::new();
    for (number, item) in program.items.iter().enumerate() {
        let (threads, ops, result) = match item {
            Item::Block {
                threads,
                ops,
                result,
            } => (threads, ops, result),
            Item::Barrier { simdgroup, spaces } => {
                let scope = if *simdgroup {
                    "simdgroup"
                } else {
                    "threadgroup"
                };
                let names = match spaces {
                    [true, true] => "device, threadgroup",
                    [true, false] => "device",
                    [false, true] => "threadgroup",
                    [false, false] => "",
                };
                writeln!(text, "barrier {scope} [{names}]").unwrap();
                lines.push(Vec::new());
                continue;
            }
        };
        for (at, &t) in threads.iter().enumerate() {
            let thread = program.threads[t];
            writeln!(text, "%is{number}_{at} = eq %i, %c{thread}").unwrap();
            if at > 0 {
                let (before, now) = (at - 1, at);
                writeln!(
                    text,
                    "%any{number}_{now} = or %{}{number}_{before}, %is{number}_{now}",
                    if before == 0 { "is" } else { "any" }
                )
                .unwrap();
            }
        }
        let last = threads.len() - 1;
        let name = if last == 0 { "is" } else { "any" };
        writeln!(text, "%v{result} = if %{name}{number}_{last} {{").unwrap();
        let mut of_block = Vec::new();
        for op in ops {
            of_block.push(access(&mut text, op));
        }
        match given(ops) {
            Some(value) => writeln!(text, "yield %v{value}"),
            None => writeln!(text, "yield %c0"),
        }
        .unwrap();
        text.push_str("} else {\nyield %c0\n}\n");
        lines.push(of_block);
    }
    text.push_str("}\n");
    (text, lines)
}

fn operand(operand: Operand) -> String {
    match operand {
        Operand::Const(c) => format!("%c{c}"),
        Operand::Value(v) => format!("%v{v}"),
    }
}

/// Writes an access; gives its line.
fn access(text: &mut String, op: &Op) -> u32 {
    let r = op.result;
    let index = match op.index {
        Index::Const(c) => format!("%c{c}"),
        Index::Computed(v) => {
            writeln!(text, "%a{r} = and %v{v}, %c1").unwrap();
            format!("%a{r}")
        }
    };
    if let Some((value, constant)) = op.guard {
        writeln!(text, "%g{r} = eq %v{value}, %c{constant}\nif %g{r} {{").unwrap();
    }
    let object = match op.object {
        Object::X => "%x",
        Object::Tile => "%tile",
    };
    let place = format!("{object}[{index}]");
    let scope = if op.device_scope {
        "device"
    } else {
        "threadgroup"
    };
    let how = format!("{} {scope}", op.order.name());
    let line = text.lines().count() as u32 + 1;
    match op.action {
        Action::Load => writeln!(text, "%v{r} = load {place}"),
        Action::Store(v) => writeln!(text, "store {place}, {}", operand(v)),
        Action::AtomicLoad => writeln!(text, "%v{r} = atomic_load {place} {how}"),
        Action::AtomicStore(v) => writeln!(text, "atomic_store {place}, {} {how}", operand(v)),
        Action::Update(update, v) => {
            let name = match update {
                Update::Exchange => "exchange",
                Update::Add => "add",
                Update::Sub => "sub",
                Update::Min => "min",
                Update::Max => "max",
                Update::And => "and",
                Update::Or => "or",
                Update::Xor => "xor",
            };
            let v = operand(v);
            writeln!(text, "%v{r} = atomic_{name} {place}, {v} {how}")
        }
        Action::CompareExchange(expected, desired) => {
            let (e, d) = (operand(expected), operand(desired));
            writeln!(
                text,
                "%v{r}, %ok{r} = atomic_compare_exchange {place}, {e}, {d} {how}"
            )
        }
    }
    .unwrap();
    if op.guard.is_some() {
        text.push_str("}\n");
    }
    line
}

// ---- all its schedules ----

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    None,
    EqualStores,
    DataRace,
}

/// A race: its class, the object and the index, and the lines of both accesses in order.
type Race = (Class, Object, u32, [u32; 2]);

/// What a thread does next: an access on a line, the end of a block, or a barrier.
#[derive(Clone, Copy)]
enum Step {
    Access(Op, u32),
    /// A block's value becomes that of one of its accesses.
    Give(usize, usize),
    Barrier(usize),
}

#[derive(Clone, Copy)]
enum Deed {
    Read,
    Write(u32),
    Atomic { writes: bool },
}

impl Deed {
    fn writes(self) -> bool {
        match self {
            Deed::Read => false,
            Deed::Write(_) => true,
            Deed::Atomic { writes } => writes,
        }
    }
}

#[derive(Clone, Copy)]
struct Event {
    thread: usize,
    /// How many barriers the thread had passed.
    barriers: usize,
    object: Object,
    index: u32,
    /// The memory cell.
    cell: usize,
    deed: Deed,
    line: u32,
    /// A release that what reads this may acquire.
    releases: bool,
    /// A read-modify-write: it continues what it read.
    updates: bool,
    device_scope: bool,
    /// The releases that it acquires, by their places in the schedule.
    acquires: u32,
}

#[derive(Clone)]
struct State {
    at: Vec<usize>,
    barriers: Vec<usize>,
    values: Vec<Vec<u32>>,
    cells: [u32; 6],
    events: Vec<Event>,
}

/// All schedules of a program.
struct Enumerator<'a> {
    program: &'a Program,
    steps: Vec<Vec<Step>>,
    barriers: Vec<(bool, Spaces)>,
    most: u64,
    schedules: u64,
    /// Whether an acquire reads from a release in any.
    messages: bool,
    /// The worst race of the schedule that has the mildest.
    least: Class,
    /// The worst of all.
    worst: Class,
}

impl Enumerator<'_> {
    fn group(&self, thread: usize) -> u32 {
        self.program.threads[thread] / THREADS_PER_THREADGROUP
    }

    fn simdgroup(&self, thread: usize) -> u32 {
        self.program.threads[thread] / SIMDGROUP_SIZE
    }

    /// Whether both are in the scope of one barrier.
    fn together(&self, barrier: usize, a: usize, b: usize) -> bool {
        if self.barriers[barrier].0 {
            self.simdgroup(a) == self.simdgroup(b)
        } else {
            self.group(a) == self.group(b)
        }
    }

    /// Runs what needs no schedule: guards that do not hold, blocks' values, and barriers at which
    /// all threads of the scope have arrived.
    fn settle(&self, state: &mut State) {
        loop {
            let mut moved = false;
            for t in 0..self.steps.len() {
                while let Some(step) = self.steps[t].get(state.at[t]) {
                    match step {
                        Step::Access(op, _) => {
                            let holds = |(v, c): (usize, u32)| state.values[t][v] == c;
                            if op.guard.is_none_or(holds) {
                                break;
                            }
                        }
                        Step::Give(to, from) => state.values[t][*to] = state.values[t][*from],
                        Step::Barrier(b) => {
                            let here = |o: usize| match self.steps[o].get(state.at[o]) {
                                Some(Step::Barrier(other)) => other == b,
                                Some(Step::Access(..) | Step::Give(..)) | None => false,
                            };
                            let passed = |o: usize| state.barriers[o] > *b;
                            let others = (0..self.steps.len()).filter(|&o| self.together(*b, t, o));
                            if !others.into_iter().all(|o| here(o) || passed(o)) {
                                break;
                            }
                            state.barriers[t] += 1;
                        }
                    }
                    state.at[t] += 1;
                    moved = true;
                }
            }
            if !moved {
                return;
            }
        }
    }

    fn explore(&mut self, mut state: State) {
        self.settle(&mut state);
        let mut ended = true;
        for t in 0..self.steps.len() {
            if let Some(Step::Access(op, line)) = self.steps[t].get(state.at[t]).copied() {
                ended = false;
                if self.schedules > self.most {
                    return;
                }
                let mut next = state.clone();
                next.at[t] += 1;
                self.execute(&mut next, t, &op, line);
                self.explore(next);
            }
        }
        if ended {
            let done = |(at, steps): (&usize, &Vec<Step>)| *at == steps.len();
            assert!(state.at.iter().zip(&self.steps).all(done), "a deadlock");
            self.schedules += 1;
            self.judge(&state.events);
        }
    }

    fn execute(&self, state: &mut State, thread: usize, op: &Op, line: u32) {
        let value = |operand| match operand {
            Operand::Const(c) => c,
            Operand::Value(v) => state.values[thread][v],
        };
        let index = match op.index {
            Index::Const(c) => c,
            Index::Computed(v) => state.values[thread][v] & 1,
        };
        let cell = match op.object {
            Object::X => index as usize,
            Object::Tile => (2 + 2 * self.group(thread) + index) as usize,
        };
        let old = state.cells[cell];
        let (new, deed) = match op.action {
            Action::Load => (None, Deed::Read),
            Action::Store(v) => (Some(value(v)), Deed::Write(value(v))),
            Action::AtomicLoad => (None, Deed::Atomic { writes: false }),
            Action::AtomicStore(v) => (Some(value(v)), Deed::Atomic { writes: true }),
            Action::Update(update, v) => {
                let v = value(v);
                let new = match update {
                    Update::Exchange => v,
                    Update::Add => old.wrapping_add(v),
                    Update::Sub => old.wrapping_sub(v),
                    Update::Min => old.min(v),
                    Update::Max => old.max(v),
                    Update::And => old & v,
                    Update::Or => old | v,
                    Update::Xor => old ^ v,
                };
                (Some(new), Deed::Atomic { writes: true })
            }
            Action::CompareExchange(expected, desired) => {
                let new = (old == value(expected)).then(|| value(desired));
                let writes = new.is_some();
                (new, Deed::Atomic { writes })
            }
        };
        let atomic = matches!(deed, Deed::Atomic { .. });
        let reads = !matches!(op.action, Action::Store(_) | Action::AtomicStore(_));
        // O4: the store that it reads from, and those before it along a chain of updates.
        let mut acquires = 0;
        if atomic && reads && op.order.acquires() {
            for (i, e) in state.events.iter().enumerate().rev() {
                if e.cell != cell || !e.deed.writes() {
                    continue;
                }
                let near = self.group(e.thread) == self.group(thread);
                if e.releases && (near || (e.device_scope && op.device_scope)) {
                    acquires |= 1 << i;
                }
                if !e.updates {
                    break;
                }
            }
        }
        if let Some(new) = new {
            state.cells[cell] = new;
        }
        if reads && op.guard.is_none() {
            state.values[thread][op.result] = old;
        }
        state.events.push(Event {
            thread,
            barriers: state.barriers[thread],
            object: op.object,
            index,
            cell,
            deed,
            line,
            releases: atomic && op.order.releases(),
            updates: atomic && reads,
            device_scope: op.device_scope,
            acquires,
        });
    }

    /// Whether the happens-before of a space has an edge from one event to a later one.
    fn edge(&self, space: usize, events: &[Event], x: usize, y: usize) -> bool {
        let (a, b) = (&events[x], &events[y]);
        if a.thread == b.thread || b.acquires >> x & 1 == 1 {
            return true; // O1, O4
        }
        // O2: a barrier that the one made its access before, and the other after.
        (a.barriers..b.barriers).any(|barrier| {
            let spaces = self.barriers[barrier].1;
            self.together(barrier, a.thread, b.thread)
                && spaces[space]
                && spaces[a.object as usize]
                && spaces[b.object as usize]
        })
    }

    /// The races of one schedule.
    fn races(&self, events: &[Event]) -> BTreeSet<Race> {
        let n = events.len();
        let mut found: Vec<(usize, Race)> = Vec::new();
        for object in [Object::X, Object::Tile] {
            let mut after = vec![0_u32; n];
            for x in (0..n).rev() {
                for y in x + 1..n {
                    if self.edge(object as usize, events, x, y) {
                        after[x] |= 1 << y | after[y];
                    }
                }
            }
            for y in 0..n {
                for x in 0..y {
                    let (a, b) = (&events[x], &events[y]);
                    if a.object != object || a.cell != b.cell || a.thread == b.thread {
                        continue;
                    }
                    let class = match (a.deed, b.deed) {
                        (Deed::Read, Deed::Read) | (Deed::Atomic { .. }, Deed::Atomic { .. }) => {
                            continue;
                        }
                        (Deed::Write(v), Deed::Write(w)) if v == w => Class::EqualStores,
                        (first, second) if first.writes() || second.writes() => Class::DataRace,
                        _ => continue,
                    };
                    if after[x] >> y & 1 == 1 {
                        continue;
                    }
                    let lines = [a.line.min(b.line), a.line.max(b.line)];
                    found.push((a.cell, (class, object, a.index, lines)));
                }
            }
        }
        let mut races = BTreeSet::new();
        for (cell, race) in &found {
            let of_cell = found.iter().filter(|(other, _)| other == cell);
            let class = of_cell.map(|(_, race)| race.0).max().unwrap_or(race.0);
            // Where some accesses of a location are worse than equal stores, all its races may be
            // named as that.
            races.insert(*race);
            races.insert((class, race.1, race.2, race.3));
        }
        races
    }

    fn judge(&mut self, events: &[Event]) {
        self.messages |= events.iter().any(|e| e.acquires != 0);
        let worst = worst(&self.races(events));
        self.worst = self.worst.max(worst);
        self.least = self.least.min(worst);
    }

    fn start(&self) -> State {
        let count = self.program.threads.len();
        State {
            at: vec![0; count],
            barriers: vec![0; count],
            values: vec![vec![0; self.program.values]; count],
            cells: [0; 6],
            events: Vec::new(),
        }
    }

    /// The races of the schedule in which these threads, by their positions in the grid, make the
    /// accesses on these lines.
    fn replay(&self, schedule: &[(u32, u32)]) -> Result<BTreeSet<Race>, String> {
        let mut state = self.start();
        for &(position, line) in schedule {
            self.settle(&mut state);
            let thread = self.program.threads.iter().position(|p| *p == position);
            let thread = thread.ok_or("a thread ran that does nothing")?;
            match self.steps[thread].get(state.at[thread]) {
                Some(Step::Access(op, next)) if *next == line => {
                    let op = *op;
                    state.at[thread] += 1;
                    self.execute(&mut state, thread, &op, line);
                }
                _ => return Err(format!("thread {position} should not be on line {line}")),
            }
        }
        self.settle(&mut state);
        let done = |(at, steps): (&usize, &Vec<Step>)| *at == steps.len();
        if !state.at.iter().zip(&self.steps).all(done) {
            return Err("an access is missing".to_string());
        }
        Ok(self.races(&state.events))
    }
}

fn worst(races: &BTreeSet<Race>) -> Class {
    races.iter().map(|race| race.0).max().unwrap_or(Class::None)
}

/// The schedule that the machine ran: each access's thread, by its position in the grid, and line.
#[derive(Default)]
struct Watch {
    lines: Vec<u32>,
    schedule: Vec<(u32, u32)>,
}

impl Observer for Watch {
    fn begin(&mut self, launch: &Launch) -> Result<(), Diagnostic> {
        self.lines = launch.sites.iter().map(|s| s.span.start.line).collect();
        Ok(())
    }

    fn access(&mut self, access: &Access) {
        let group = access.who.threadgroup as u32 * THREADS_PER_THREADGROUP;
        let first = group + access.who.simdgroup * SIMDGROUP_SIZE;
        for lane in access.order {
            if access.lanes >> lane & 1 == 1 {
                let line = self.lines[access.site as usize];
                self.schedule.push((first + u32::from(*lane), line));
            }
        }
    }
}

/// All schedules of a program, unless they are too many.
fn enumerate<'a>(program: &'a Program, lines: &[Vec<u32>], most: u64) -> Option<Enumerator<'a>> {
    let mut barriers = Vec::new();
    let mut steps: Vec<Vec<Step>> = vec![Vec::new(); program.threads.len()];
    for (item, lines) in program.items.iter().zip(lines) {
        match item {
            Item::Barrier { simdgroup, spaces } => {
                for steps in &mut steps {
                    steps.push(Step::Barrier(barriers.len()));
                }
                barriers.push((*simdgroup, *spaces));
            }
            Item::Block {
                threads,
                ops,
                result,
            } => {
                for &t in threads {
                    let accesses = ops.iter().zip(lines);
                    steps[t].extend(accesses.map(|(op, line)| Step::Access(*op, *line)));
                    steps[t].extend(given(ops).map(|from| Step::Give(*result, from)));
                }
            }
        }
    }
    let mut all = Enumerator {
        program,
        steps,
        barriers,
        most,
        schedules: 0,
        messages: false,
        least: Class::DataRace,
        worst: Class::None,
    };
    all.explore(all.start());
    (all.schedules <= most).then_some(all)
}

// ---- the comparison ----

#[derive(Debug, Default)]
struct Counts {
    programs: u64,
    too_many_schedules: u64,
    schedules: u64,
    clean: u64,
    equal_stores: u64,
    data_races: u64,
    /// Verdicts for every schedule, of kernels with atomics too.
    every_schedule: u64,
    /// Verdicts for the schedule tried, though all schedules are of one class.
    cautious: u64,
    /// Equal stores in one schedule and a data race in another.
    undecided: u64,
    /// An acquire reads from a release.
    messages: u64,
}

fn checked(source: &str, program: &Program, seed: u64, watch: &mut Watch) -> Report {
    let module = parse("program.inv", source).and_then(verify);
    let module = module.unwrap_or_else(|e| panic!("{e}\n{source}"));
    let threads = program.threads.iter().max().expect("there are some") + 1;
    let threads = threads.next_multiple_of(THREADS_PER_THREADGROUP);
    let options = CheckOptions {
        run: Options {
            seed,
            ..Options::default()
        },
        seeds: Some(1),
        ..CheckOptions::default()
    };
    let dispatch = Dispatch::linear(threads, THREADS_PER_THREADGROUP);
    check_observed(
        &module,
        "k",
        &dispatch,
        &[Arg::zeros(8)],
        &options,
        &mut [watch],
    )
    .unwrap_or_else(|e| panic!("{e}\n{source}"))
}

/// The races that a report names.
fn named(report: &Report) -> BTreeSet<Race> {
    let mut races = BTreeSet::new();
    for d in &report.diagnostics {
        if d.message.contains("more pairs of places") {
            continue;
        }
        let class = match d.rule {
            Rule::DataRace | Rule::ExecutionOnlyBarrier => Class::DataRace,
            Rule::EqualStores => Class::EqualStores,
            Rule::UninitialisedRead | Rule::UnorderedAtomics => continue,
            _ => panic!("not expected: {d}"),
        };
        let location = d.message.split('`').nth(1).expect("a location");
        let object = match location.split('[').next() {
            Some("x") => Object::X,
            _ => Object::Tile,
        };
        let index = u32::from(location.ends_with("[1]"));
        let lines = d.labels.iter().map(|l| l.span.start.line);
        let (first, last) = (lines.clone().min(), lines.max());
        let lines = [first, last].map(|line| line.expect("a label"));
        races.insert((class, object, index, lines));
    }
    races
}

fn compare(program: &Program, seed: u64, most: u64, counts: &mut Counts) -> Result<(), String> {
    let (source, lines) = kernel(program);
    let Some(all) = enumerate(program, &lines, most) else {
        counts.too_many_schedules += 1;
        return Ok(());
    };
    let mut watch = Watch::default();
    let report = checked(&source, program, seed, &mut watch);
    let found = named(&report);
    let fail = |what: &str| {
        Err(format!(
            "{what}\nseed {seed}, {}\nreported {found:?}\nrun {:?}, its races {:?}\n{source}",
            report.reach(),
            watch.schedule,
            all.replay(&watch.schedule),
        ))
    };
    let of_run = match all.replay(&watch.schedule) {
        Ok(races) => races,
        Err(error) => return fail(&error),
    };
    if !found.is_subset(&of_run) {
        return fail("a race is reported that the schedule does not have");
    }
    let worst_found = worst(&found);
    if worst_found != worst(&of_run) {
        return fail("a race of the schedule is not reported");
    }
    let pairs = |races: &BTreeSet<Race>| -> BTreeSet<(Object, [u32; 2])> {
        races.iter().map(|race| (race.1, race.3)).collect()
    };
    let cut = |d: &Diagnostic| d.message.contains("more pairs of places");
    if !report.diagnostics.iter().any(cut) && pairs(&found) != pairs(&of_run) {
        return fail("a pair of lines that races is not named");
    }
    let every = report.schedules == Schedules::All;
    if every && worst_found != all.worst {
        return fail("the verdict is not that of every schedule");
    }
    counts.programs += 1;
    counts.schedules += all.schedules;
    match all.worst {
        Class::None => counts.clean += 1,
        Class::EqualStores => counts.equal_stores += 1,
        Class::DataRace => counts.data_races += 1,
    }
    let atomics = source.contains("atomic_");
    counts.every_schedule += u64::from(every && atomics);
    counts.cautious += u64::from(!every && all.least == all.worst);
    counts.messages += u64::from(all.messages);
    counts.undecided += u64::from(all.worst == Class::DataRace && all.least == Class::EqualStores);
    Ok(())
}

/// The program without one of its accesses or barriers.
fn without(program: &Program, item: usize, op: usize) -> Option<Program> {
    let mut smaller = program.clone();
    match &mut smaller.items[item] {
        Item::Barrier { .. } if op == 0 => {
            smaller.items.remove(item);
        }
        Item::Block { ops, .. } if op < ops.len() => {
            // What used its result would have nothing to use.
            let gone = ops.remove(op).result;
            let uses = |o: &Op| {
                let value = |v: &Operand| matches!(v, Operand::Value(v) if *v == gone);
                o.guard.is_some_and(|(v, _)| v == gone)
                    || matches!(o.index, Index::Computed(v) if v == gone)
                    || match &o.action {
                        Action::Load | Action::AtomicLoad => false,
                        Action::Store(v) | Action::AtomicStore(v) | Action::Update(_, v) => {
                            value(v)
                        }
                        Action::CompareExchange(e, d) => value(e) || value(d),
                    }
            };
            if ops.iter().any(uses) {
                return None;
            }
        }
        Item::Barrier { .. } | Item::Block { .. } => return None,
    }
    Some(smaller)
}

/// A smaller program that fails too, and how.
fn shrink(mut program: Program, seed: u64, most: u64, mut error: String) -> String {
    loop {
        let mut places = (0..program.items.len()).flat_map(|i| (0..4).map(move |o| (i, o)));
        let smaller = places.find_map(|(item, op)| {
            let candidate = without(&program, item, op)?;
            let error = compare(&candidate, seed, most, &mut Counts::default()).err()?;
            Some((candidate, error))
        });
        match smaller {
            Some((candidate, now)) => (program, error) = (candidate, now),
            None => return error,
        }
    }
}

fn setting(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.map_or(default, |v| v.parse().expect("a number"))
}

#[test]
#[expect(
    clippy::print_stdout,
    reason = "what a long campaign tried, and how many programs it left out"
)]
fn r3_the_verdict_is_that_of_all_interleavings() {
    let programs = setting("INVAR_RACE_PROGRAMS", 5000);
    let first = setting("INVAR_RACE_SEED", 1);
    let most = setting("INVAR_RACE_SCHEDULES", 2000);
    let mut counts = Counts::default();
    for number in 0..programs {
        let mut random = Random(first << 40 ^ number);
        let program = random_program(&mut random);
        let seed = random.next();
        if let Err(error) = compare(&program, seed, most, &mut counts) {
            let error = shrink(program, seed, most, error);
            panic!("program {number}: {error}");
        }
    }
    println!("{counts:?}");
    // The programs are of use only if all kinds of them are many.
    assert!(counts.too_many_schedules < programs / 5, "{counts:?}");
    assert!(counts.clean > programs / 20, "{counts:?}");
    assert!(counts.equal_stores > programs / 100, "{counts:?}");
    assert!(counts.data_races > programs / 5, "{counts:?}");
    assert!(counts.every_schedule > programs / 10, "{counts:?}");
    assert!(counts.messages > programs / 20, "{counts:?}");
    assert!(counts.undecided > programs / 250, "{counts:?}");
}
