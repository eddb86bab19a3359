//! For which schedules a race verdict holds (R3): those tried, or all.
//!
//! The verdict holds for all schedules if the kernel has no acquire or release, and no address,
//! branch or plainly loaded value depends on what an atomic returned or on what atomics that do not
//! commute left behind. Then the pairs of accesses that race are those of every schedule. But whether
//! stores that race are of equal value is not, if a stored value depends on the above: where a run
//! found equal stores in an object that takes such values, its verdict is for those tried. The analysis follows values and whole memory objects, without regard to
//! order, so it errs towards "those tried".

use std::collections::{HashMap, HashSet};

use invar_ir::{
    AccessMode, AtomicOp, Inst, InstKind, Kernel, Memory, Module, Purpose, Region, Span, Value,
    Values,
};

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

/// For which schedules the verdict of runs of this kernel holds. `equal_stores`: the objects in which
/// they found stores of equal value that race, and nothing worse at those locations.
pub fn schedules(module: &Module, kernel: &Kernel, equal_stores: &HashSet<Memory>) -> Schedules {
    let mut a = Analysis {
        module,
        kernel,
        values: HashSet::new(),
        memories: HashSet::new(),
        kinds: HashMap::new(),
        equal_stores,
        changed: true,
        found: None,
    };
    kernel.for_each_inst(&mut |inst| a.note_atomic(inst));
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

struct Analysis<'a> {
    module: &'a Module,
    kernel: &'a Kernel,
    /// Values that depend on what an atomic returned.
    values: HashSet<Value>,
    /// Objects whose contents do.
    memories: HashSet<Memory>,
    /// The one kind of commuting atomics on each object.
    kinds: HashMap<Memory, AtomicOp>,
    /// Objects in which stores of equal value race.
    equal_stores: &'a HashSet<Memory>,
    changed: bool,
    found: Option<(Span, &'static str)>,
}

impl Analysis<'_> {
    fn note_atomic(&mut self, inst: &Inst) {
        let InstKind::Atomic {
            op, place, order, ..
        } = &inst.kind
        else {
            return;
        };
        if order.acquires() || order.releases() {
            self.found = self
                .found
                .or(Some((inst.span, "the kernel acquires or releases")));
        }
        // Adds and subtractions commute with each other.
        let kind = match op {
            AtomicOp::Load => return,
            AtomicOp::Sub => AtomicOp::Add,
            AtomicOp::Store
            | AtomicOp::Exchange
            | AtomicOp::CompareExchange
            | AtomicOp::Add
            | AtomicOp::Min
            | AtomicOp::Max
            | AtomicOp::And
            | AtomicOp::Or
            | AtomicOp::Xor => *op,
        };
        let commutes = match kind {
            AtomicOp::Load | AtomicOp::Store | AtomicOp::Exchange | AtomicOp::CompareExchange => {
                false
            }
            AtomicOp::Add
            | AtomicOp::Sub
            | AtomicOp::Min
            | AtomicOp::Max
            | AtomicOp::And
            | AtomicOp::Or
            | AtomicOp::Xor => !self.holds_floats(place.memory),
        };
        let known = *self.kinds.entry(place.memory).or_insert(kind);
        if !commutes || known != kind {
            self.memories.insert(place.memory);
        }
    }

    fn holds_floats(&self, memory: Memory) -> bool {
        self.module.memory(self.kernel, memory).is_none_or(|info| {
            let locations = info.element.locations(&self.module.structs);
            locations.iter().any(|(_, scalar)| scalar.is_float())
        })
    }

    fn taint(&mut self, value: Value) {
        self.changed |= self.values.insert(value);
    }

    fn taint_memory(&mut self, memory: Memory) {
        self.changed |= self.memories.insert(memory);
    }

    fn tainted(&self, value: Value) -> bool {
        self.values.contains(&value)
    }

    fn refuse(&mut self, span: Span, reason: &'static str) {
        self.found = self.found.or(Some((span, reason)));
    }

    fn address(&mut self, span: Span, value: Value) {
        if self.tainted(value) {
            self.refuse(span, "an address depends on what an atomic returned");
        }
    }

    fn branch(&mut self, span: Span, value: Value) {
        if self.tainted(value) {
            self.refuse(span, "a branch depends on what an atomic returned");
        }
    }

    fn plain_load(&mut self, span: Span, memory: Memory) {
        if self.memories.contains(&memory) {
            self.refuse(
                span,
                "a plain load may give what an atomic returned, or what atomics left that do not \
                 commute",
            );
        }
    }

    fn plain_store(&mut self, span: Span, memory: Memory, value: Value) {
        if !self.tainted(value) {
            return;
        }
        self.taint_memory(memory);
        if self.equal_stores.contains(&memory) {
            self.refuse(
                span,
                "whether stores that race are of equal value depends on what an atomic returned",
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
            if self.tainted(*from) {
                self.taint(*to);
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
                let mut tainted = data.iter().any(|v| self.tainted(*v));
                for access in other.accesses() {
                    match access.mode {
                        AccessMode::Read => self.plain_load(span, access.memory),
                        AccessMode::Write => {
                            for value in &data {
                                self.plain_store(span, access.memory, *value);
                            }
                        }
                        AccessMode::Atomic { .. } => {
                            if tainted {
                                self.taint_memory(access.memory);
                            }
                            tainted = true;
                        }
                    }
                }
                if tainted {
                    inst.results.iter().for_each(|v| self.taint(*v));
                }
            }
        }
    }
}
