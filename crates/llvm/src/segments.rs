//! What is known of segments before their code is made: their shape, what they take from slots and leave there.

use std::collections::HashSet;

use invar_codegen::analysis::lanes::{Class, Shape};
use invar_ir::inst::{InstKind, Memory, Region, Value};
use invar_ir::{AddressSpace, Exit, Inst};

use crate::analysis::Analysis;
use crate::plan::{Home, InstKey};

/// What is done for each chunk.
#[derive(Clone, Copy)]
pub(crate) enum Work<'w, 'k> {
    /// Runs instructions.
    Run(&'k [Inst]),
    /// Gives each target's slot what its source is.
    Assign(&'w [(Value, Value)]),
}

impl<'k> Analysis<'k> {
    /// What a segment goes through at once. Many vectors side by side are for loops, where they share
    /// loads and wait for each other's results; elsewhere they would only be more code. Where a chunk has one slot
    /// of a value that is replaced, it is gone through at once: a second part of it would take the new value.
    pub fn segment_shape(&self, work: Work<'_, 'k>, limited: bool) -> Shape {
        if loops(work) || self.replaces_for_all(work) {
            self.full_shape
        } else if limited {
            Shape {
                along: self.slow_shape.along,
                ..self.full_shape
            }
        } else {
            self.shape_without_loops()
        }
    }

    /// The pieces in which a chunk is gone through that is not full: one row where nothing loops, for
    /// which rows would only be more code.
    pub fn piece_shape(&self, work: Work<'_, 'k>) -> Shape {
        let rows = if loops(work) { self.slow_shape.rows } else { 1 };
        Shape {
            rows,
            ..self.slow_shape
        }
    }

    /// What a segment leaves in slots.
    pub fn left(&self, work: Work<'_, 'k>) -> Vec<Value> {
        let mut left: Vec<Value> = match work {
            Work::Run(insts) => insts.iter().flat_map(|inst| inst.results.clone()).collect(),
            Work::Assign(pairs) => pairs.iter().map(|(target, _)| *target).collect(),
        };
        left.retain(|v| self.plan.home(*v) == Home::Slot);
        left
    }

    /// Whether a chunk has one slot of a value.
    pub fn has_one(&self, value: Value) -> bool {
        self.plan.home(value) == Home::Slot && self.slots[&value] == Class::Uniform
    }

    /// Whether a segment takes from a slot that a chunk has one of, and leaves something there.
    pub fn replaces_for_all(&self, work: Work<'_, 'k>) -> bool {
        let left: HashSet<u64> = (self.left(work).iter())
            .map(|v| self.layout.slots[v])
            .collect();
        (self.taken(work).iter()).any(|v| self.has_one(*v) && left.contains(&self.layout.slots[v]))
    }

    /// What a chunk takes from slots or computes again, in the order in which it can be.
    pub fn taken(&self, work: Work<'_, 'k>) -> Vec<Value> {
        match work {
            Work::Run(insts) => self.plan.inputs(insts).to_vec(),
            Work::Assign(pairs) => self.plan.taken_for(pairs.iter().map(|(_, source)| *source)),
        }
    }

    /// Whether an instruction can be gone through twice: it has no effect and no regions, and writes over nothing
    /// that the segment takes in.
    pub fn only_computes(&self, inst: &Inst) -> bool {
        let writes_over =
            |v: &Value| self.plan.home(*v) == Home::Slot && self.plan.slot_leader(*v).is_some();
        only_computes(inst) && !inst.results.iter().any(writes_over)
    }

    /// The `if` that is the first instruction of a segment to have an effect, if one is; its threads go on behind it.
    /// It has no `else`, or one that accesses more element by element or by some lanes than the `if` does, which costs
    /// more than to come there with a mask.
    pub fn first_choice(&self, insts: &[Inst]) -> Option<InstKey> {
        let first = insts.iter().find(|inst| !self.only_computes(inst))?;
        let InstKind::If {
            then, otherwise, ..
        } = &first.kind
        else {
            return None;
        };
        let rare = matches!(otherwise.insts[0].kind, InstKind::Yield(_))
            || self.scattered(otherwise, false) > self.scattered(then, false);
        (rare && !first.exits().any()).then(|| std::ptr::from_ref(first))
    }

    /// How many accesses of a region are in any order along the lanes of a full chunk, or made by some of its lanes.
    fn scattered(&self, region: &Region, by_some: bool) -> usize {
        let varies = |value| self.fast.of(value) == Class::Varying;
        let of_thread = |memory: Memory| match memory {
            Memory::Alloc(i) => self.kernel.allocs[i as usize].space == AddressSpace::Thread,
            Memory::Param(_) | Memory::Constant(_) => false,
        };
        let of_one = |inst: &Inst| {
            let accesses = inst.kind.accesses();
            let shared = accesses.iter().filter(|access| !of_thread(access.memory));
            let own = shared.filter(|access| by_some || varies(access.elements.first()));
            let by_some = by_some
                || match &inst.kind {
                    InstKind::If { condition, .. } => varies(*condition),
                    _other => self.fast.is_masked(inst),
                };
            let inner = inst.kind.regions().into_iter();
            own.count() + inner.map(|r| self.scattered(r, by_some)).sum::<usize>()
        };
        region.insts.iter().map(of_one).sum()
    }
}

/// Whether an instruction has no effect and no regions, and no simdgroup does it as one.
fn only_computes(inst: &Inst) -> bool {
    let begins_array = matches!(inst.kind, InstKind::Alloc(_));
    begins_array || inst.kind.is_removable() && !inst.kind.is_of_whole_simdgroup()
}

/// Whether a loop is in the work.
pub(crate) fn loops(work: Work<'_, '_>) -> bool {
    match work {
        Work::Run(insts) => insts.iter().any(holds_loop),
        Work::Assign(_) => false,
    }
}

/// Whether an instruction is or holds a loop.
pub(crate) fn holds_loop(inst: &Inst) -> bool {
    inst.kind.is_loop()
        || inst
            .kind
            .regions()
            .iter()
            .any(|r| r.insts.iter().any(holds_loop))
}

/// Whether a region gives a value of this kind to others.
pub(crate) fn keeps(region: &Region, is: &dyn Fn(&Value) -> bool) -> bool {
    region.params.iter().any(is)
        || region.insts.iter().any(|inst| {
            inst.results.iter().any(is) || inst.kind.regions().iter().any(|r| keeps(r, is))
        })
}

/// The conditions under which all stands that instructions do, beside computing values that nothing behind them takes;
/// `None` if anything stands under none. `is_hoisted`: done elsewhere.
pub(crate) fn conditions(
    insts: &[Inst],
    is_hoisted: impl Fn(&Inst) -> bool,
    is_kept: impl Fn(&Value) -> bool,
) -> Option<Vec<Value>> {
    let mut conditions = Vec::new();
    for (i, inst) in insts.iter().enumerate() {
        // Nothing is to be done for what ends all threads.
        let ends = i + 1 == insts.len() && matches!(inst.kind, InstKind::Return);
        if ends || is_hoisted(inst) {
            continue;
        }
        if inst.results.iter().any(&is_kept) {
            return None;
        }
        let InstKind::If {
            condition,
            then,
            otherwise,
        } = &inst.kind
        else {
            let yields = inst.kind.exit() == Some(Exit::Yield);
            let computes = inst.kind.is_removable() && inst.kind.is_of_one_thread();
            if !computes && !yields {
                return None;
            }
            continue;
        };
        let trivial = matches!(otherwise.insts[0].kind, InstKind::Yield(_));
        if !trivial || then.exits().any() || keeps(then, &is_kept) {
            return None;
        }
        conditions.push(*condition);
    }
    Some(conditions)
}
