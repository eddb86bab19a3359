//! For which schedules a race verdict holds (R3): those tried, or all.
//!
//! The verdict holds for all schedules if the kernel has no acquire or release, and no address,
//! branch or plainly loaded value depends on what an atomic returned or on what unordered atomics that
//! do not commute left behind. Then the pairs of accesses that race are those of every schedule, and
//! which atomics barriers order is the same in all of them, so a run tells. But whether stores that
//! race are of equal value is not, if a stored value depends on the above: where a run found equal
//! stores in an object that takes such values, its verdict is for those tried. So it is where threads
//! disagreed on a value asserted to be uniform (X5), for then all get that of any of them.
//!
//! A load of a location that races, or that stores raced for, gives another value in another schedule
//! (R2). A run with races, of whatever class but equal stores and also of classes that are allowed,
//! tells of all schedules only if no address, no branch and no value of equal stores depends on what is
//! loaded from the objects with such locations.
//!
//! The analysis follows values and whole memory objects, without regard to order, so it errs towards
//! "those tried".

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use invar_ir::{
    AccessMode, AtomicOp, Inst, InstKind, Kernel, Memory, Module, Op, Purpose, Region, Scope, Span,
    Value, Values,
};

use crate::race::Commuting;

/// For which schedules a verdict holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Schedules {
    /// For every schedule of this input.
    All,
    /// For the schedules that were tried; the place and reason why it is no more.
    Tried {
        /// What makes other schedules possibly different.
        span: Span,
        /// Why, in words.
        reason: String,
    },
}

/// Whether any atomic of the kernel acquires or releases.
pub(crate) fn orders_anything(kernel: &Kernel) -> bool {
    let mut found = false;
    kernel.for_each_inst(&mut |inst| {
        if let InstKind::Atomic { order, .. } = &inst.kind {
            found |= order.acquires() || order.releases();
        }
    });
    found
}

/// Whether who shares a simdgroup with whom makes a difference to a kernel that leaves the size open.
pub(crate) fn depends_on_simdgroup_size(kernel: &Kernel) -> bool {
    let mut found = false;
    kernel.for_each_inst(&mut |inst| {
        let tells = |op| {
            matches!(
                op,
                Op::ThreadIndexInSimdgroup
                    | Op::SimdgroupIndexInThreadgroup
                    | Op::SimdgroupsPerThreadgroup
                    | Op::DispatchSimdgroupsPerThreadgroup
                    | Op::ThreadsPerSimdgroup
            )
        };
        let kind = &inst.kind;
        found |= kind.meets() == Some(Scope::Simdgroup);
        found |= kind.as_op().is_some_and(|(op, ..)| tells(op));
    });
    found && kernel.simdgroup_size.is_none()
}

/// What the runs of a kernel have shown beside races.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shown {
    /// The objects in which stores of equal value race, and nothing worse at those locations.
    pub equal_stores: HashSet<Memory>,
    /// The objects with a data race, whatever it is called.
    pub data_races: HashSet<Memory>,
    /// The objects with a location that atomics changed which no barrier orders and which do not
    /// commute.
    pub unordered_atomics: HashSet<Memory>,
    /// Where threads disagreed on a value that they assert to be uniform.
    pub disagreement: Option<Span>,
}

/// What unordered atomics of one kind on an object commute with; `None` if with nothing, or if the
/// atomic changes nothing.
pub(crate) fn commuting(op: AtomicOp, floats: bool) -> Option<Commuting> {
    match op {
        _ if floats => None,
        AtomicOp::Load | AtomicOp::Store | AtomicOp::Exchange | AtomicOp::CompareExchange => None,
        // Adds and subtractions commute with each other.
        AtomicOp::Add | AtomicOp::Sub => Some(Commuting::Add),
        AtomicOp::Min => Some(Commuting::Min),
        AtomicOp::Max => Some(Commuting::Max),
        AtomicOp::And => Some(Commuting::And),
        AtomicOp::Or => Some(Commuting::Or),
        AtomicOp::Xor => Some(Commuting::Xor),
    }
}

/// The objects whose atomics do not all commute: what they leave depends on the schedule unless
/// barriers order them.
pub(crate) fn mixed_atomics(module: &Module, kernel: &Kernel) -> HashSet<Memory> {
    let mut kinds: HashMap<Memory, Option<Commuting>> = HashMap::new();
    let mut mixed = HashSet::new();
    kernel.for_each_inst(&mut |inst| {
        let InstKind::Atomic { op, place, .. } = &inst.kind else {
            return;
        };
        if *op == AtomicOp::Load {
            return;
        }
        let kind = commuting(*op, holds_floats(module, kernel, place.memory));
        let known = *kinds.entry(place.memory).or_insert(kind);
        if kind.is_none() || known != kind {
            mixed.insert(place.memory);
        }
    });
    mixed
}

pub(crate) fn holds_floats(module: &Module, kernel: &Kernel, memory: Memory) -> bool {
    module.memory(kernel, memory).is_none_or(|info| {
        let locations = info.element.locations(&module.structs);
        locations.iter().any(|(_, scalar)| scalar.is_float())
    })
}

/// For which schedules the verdict of runs of this kernel holds.
pub(crate) fn schedules(module: &Module, kernel: &Kernel, shown: &Shown) -> Schedules {
    if let Some(span) = shown.disagreement {
        return Schedules::Tried {
            span,
            reason:
                "threads disagree on a value asserted to be uniform, and may all get that of any"
                    .to_string(),
        };
    }
    let mixed = mixed_atomics(module, kernel);
    let races = shown.data_races.iter().map(|m| (*m, Cause::Race));
    let unordered = mixed.intersection(&shown.unordered_atomics);
    let unordered = unordered.map(|m| (*m, Cause::Atomic));
    let mut a = Analysis {
        values: HashMap::new(),
        // The later ones count.
        memories: races.chain(unordered).collect(),
        equal_stores: &shown.equal_stores,
        changed: true,
        found: None,
    };
    kernel.for_each_inst(&mut |inst| a.note_order(inst));
    while a.changed && a.found.is_none() {
        a.changed = false;
        a.region(&kernel.body, &[]);
    }
    match a.found {
        None => Schedules::All,
        Some((span, reason)) => Schedules::Tried {
            span,
            reason: reason.to_string(),
        },
    }
}

/// What makes a value another in another schedule; the one that counts where there are both comes last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    /// A load of what races.
    Race,
    /// What an atomic returned, or what atomics left.
    Atomic,
}

/// Notes a cause; whether that is new.
fn note<K: Eq + Hash>(causes: &mut HashMap<K, Cause>, of: K, cause: Cause) -> bool {
    match causes.entry(of) {
        Entry::Vacant(entry) => {
            entry.insert(cause);
            true
        }
        Entry::Occupied(mut entry) => cause > entry.insert(cause.max(*entry.get())),
    }
}

struct Analysis<'a> {
    /// Values that depend on the schedule.
    values: HashMap<Value, Cause>,
    /// Objects whose contents do.
    memories: HashMap<Memory, Cause>,
    /// Objects in which stores of equal value race.
    equal_stores: &'a HashSet<Memory>,
    changed: bool,
    found: Option<(Span, &'static str)>,
}

impl Analysis<'_> {
    fn note_order(&mut self, inst: &Inst) {
        if let InstKind::Atomic { order, .. } = &inst.kind
            && (order.acquires() || order.releases())
        {
            self.refuse(inst.span, "the kernel acquires or releases");
        }
    }

    fn taint(&mut self, value: Value, cause: Cause) {
        self.changed |= note(&mut self.values, value, cause);
    }

    fn taint_memory(&mut self, memory: Memory, cause: Cause) {
        self.changed |= note(&mut self.memories, memory, cause);
    }

    fn cause(&self, value: Value) -> Option<Cause> {
        self.values.get(&value).copied()
    }

    fn refuse(&mut self, span: Span, reason: &'static str) {
        self.found = self.found.or(Some((span, reason)));
    }

    fn address(&mut self, span: Span, value: Value) {
        match self.cause(value) {
            Some(Cause::Atomic) => {
                self.refuse(span, "an address depends on what an atomic returned");
            }
            Some(Cause::Race) => {
                self.refuse(
                    span,
                    "an address depends on what was loaded where there is a race",
                );
            }
            None => {}
        }
    }

    fn branch(&mut self, span: Span, value: Value) {
        match self.cause(value) {
            Some(Cause::Atomic) => {
                self.refuse(span, "a branch depends on what an atomic returned");
            }
            Some(Cause::Race) => {
                self.refuse(
                    span,
                    "a branch depends on what was loaded where there is a race",
                );
            }
            None => {}
        }
    }

    /// What makes the value of a plain load depend on the schedule.
    fn plain_load(&mut self, span: Span, memory: Memory) -> Option<Cause> {
        let cause = self.memories.get(&memory).copied();
        if cause == Some(Cause::Atomic) {
            self.refuse(
                span,
                "a plain load may give what an atomic returned, or what atomics left that do not \
                 commute",
            );
        }
        cause
    }

    fn plain_store(&mut self, span: Span, memory: Memory, cause: Cause) {
        self.taint_memory(memory, cause);
        if self.equal_stores.contains(&memory) {
            self.refuse(
                span,
                match cause {
                    Cause::Atomic => {
                        "whether stores that race are of equal value depends on what an atomic \
                         returned"
                    }
                    Cause::Race => {
                        "whether stores that race are of equal value depends on what was loaded \
                         where there is a race"
                    }
                },
            );
        }
    }

    /// `outer` is what receives the values of a `yield`.
    fn region(&mut self, region: &Region, outer: &[Value]) {
        for inst in &region.insts {
            self.inst(inst, outer, &[], &[]);
        }
    }

    fn flow(&mut self, from: &[Value], to: &[Value]) {
        for (from, to) in from.iter().zip(to) {
            if let Some(cause) = self.cause(*from) {
                self.taint(*to, cause);
            }
        }
    }

    fn body(&mut self, region: &Region, results: &[Value], carried: &[Value]) {
        for inst in &region.insts {
            self.inst(inst, carried, results, carried);
        }
    }

    /// `yields`, `breaks` and `continues` receive what those terminators carry.
    fn inst(&mut self, inst: &Inst, yields: &[Value], breaks: &[Value], continues: &[Value]) {
        let span = inst.span;
        let mut data = Values::new();
        inst.kind
            .for_each_operand(|role, value| match role.purpose() {
                Purpose::Address => self.address(span, value),
                Purpose::Control => self.branch(span, value),
                Purpose::Data => data.push(value),
            });
        match &inst.kind {
            InstKind::If {
                then, otherwise, ..
            } => {
                for side in [then, otherwise] {
                    for inner in &side.insts {
                        self.inst(inner, &inst.results, breaks, continues);
                    }
                }
            }
            InstKind::For { init, body, .. } => {
                let carried = &body.params[1..];
                self.flow(init, carried);
                self.body(body, &inst.results, carried);
                self.flow(carried, &inst.results);
            }
            InstKind::Loop { init, body } => {
                self.flow(init, &body.params);
                self.body(body, &inst.results, &body.params);
            }
            InstKind::Yield(values) => self.flow(values, yields),
            InstKind::Break(values) => self.flow(values, breaks),
            InstKind::Continue(values) => self.flow(values, continues),
            other => {
                let mut cause = data.iter().filter_map(|v| self.cause(*v)).max();
                // A copy writes what it reads.
                for access in other.accesses() {
                    if access.mode == AccessMode::Read {
                        cause = cause.max(self.plain_load(span, access.memory));
                    }
                }
                for access in other.accesses() {
                    match access.mode {
                        AccessMode::Read => {}
                        AccessMode::Write => {
                            if let Some(cause) = cause {
                                self.plain_store(span, access.memory, cause);
                            }
                        }
                        AccessMode::Atomic { .. } => {
                            if let Some(cause) = cause {
                                self.taint_memory(access.memory, cause);
                            }
                            cause = Some(Cause::Atomic);
                        }
                    }
                }
                if let Some(cause) = cause {
                    inst.results.iter().for_each(|v| self.taint(*v, cause));
                }
            }
        }
    }
}
