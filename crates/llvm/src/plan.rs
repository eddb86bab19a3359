//! Which code runs once for a threadgroup and which for each chunk of its threads, and where values
//! live between the two.
//!
//! What holds a threadgroup barrier is gone through by all threads *together*: its control flow stands
//! outside of chunks. A longest run of instructions that need not be is a *segment*, a loop over the
//! chunks of the threadgroup. A value that is used outside of its segment lives in one of three ways:
//! once for the threadgroup, in a slot of each chunk's memory, or it is computed again where it is used.

use std::collections::{BTreeSet, HashMap, HashSet};

use invar_codegen::analysis::affine::{self, Affine};
use invar_codegen::analysis::blocks::{self, Block};
use invar_codegen::analysis::floats::{self, Floats};
use invar_codegen::analysis::lanes::Classes;
use invar_codegen::analysis::low_bits::{self, LowBits};
use invar_codegen::analysis::quotients::{self, Reciprocal};
use invar_codegen::analysis::ranges::{self, Known, Ranges};
use invar_codegen::passes::cost::{Cost, cost};
use invar_ir::inst::{InstKind, Memory, Region, Value};
use invar_ir::ops::{Meaning, ResultUniformity};
use invar_ir::{Inst, Kernel, Level, Module, Op, ParamKind, Scalar, Scope, Type, Uniformity};

/// An instruction, by its place in memory.
pub(crate) type InstKey = *const Inst;

const BOOL: Type = Type::Scalar(Scalar::Bool);

/// Where a value lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    /// In registers of the chunk, in its segment only.
    Segment,
    /// Once for the threadgroup.
    Threadgroup,
    /// In a slot of the chunk's memory.
    Slot,
    /// Computed again in each segment that uses it.
    Rematerialize,
}

/// A part of a region that is gone through by all threads together.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Item<'k> {
    /// A loop over chunks.
    Segment(&'k [Inst]),
    /// One instruction for all threads.
    Collective(&'k Inst),
}

#[derive(Debug)]
pub(crate) struct Plan<'k> {
    kernel: &'k Kernel,
    /// Instructions that all threads go through together.
    pub collective: HashSet<InstKey>,
    homes: Vec<Home>,
    /// Values that something uses.
    used: HashSet<Value>,
    /// Loads whose values the next instruction stores in another memory object, and nothing else uses.
    copies: HashSet<Value>,
    /// Loads that are made together, by the first of them.
    pub blocks: HashMap<InstKey, Block<'k>>,
    /// Stores that are made together, and which of these each is in.
    store_blocks: Vec<Block<'k>>,
    block_of_store: HashMap<InstKey, usize>,
    /// Accesses to what lies side by side along y.
    pub down: HashSet<InstKey>,
    /// Accesses of blocks, and modulo two to how many bits their distances are known.
    of_blocks: HashMap<InstKey, u32>,
    /// What defines each value, if that is an instruction.
    pub definitions: HashMap<Value, &'k Inst>,
    /// Instructions at the top of segments that are the same for all threads and run once before it.
    pub hoisted: HashSet<InstKey>,
    /// The values of each segment (by its first instruction) that come from slots or are computed
    /// again, in the order of their numbers.
    inputs: HashMap<InstKey, Vec<Value>>,
    /// Values that can live in another's slot, by that other: what a loop of all threads hands to its
    /// next iteration, and its results, in the slot of what it carries.
    slot_leaders: HashMap<Value, Value>,
    /// Thread arrays that are used in several segments.
    pub shared_arrays: BTreeSet<u32>,
    /// Which bits of integers count.
    pub low_bits: LowBits,
    /// Where integers lie in threads that compute them, whatever they are called.
    pub ranges: Ranges,
    /// What integers are sums of, in full threadgroups.
    pub affine: Affine<'k>,
    /// Where floats lie unless they are NaN.
    pub floats: Floats,
    /// Quotients that products are, where those can be fused.
    pub quotients: HashMap<Value, Reciprocal>,
    /// Threads may return in a segment after which others follow.
    pub returns_early: bool,
}

/// Whether an instruction makes all threads of the threadgroup meet.
fn meets(inst: &Inst) -> bool {
    let own = inst.kind.meets();
    let mut inner = inst.kind.regions().into_iter().flat_map(|r| &r.insts);
    own.is_some_and(|scope| scope >= Scope::Threadgroup) || inner.any(meets)
}

impl<'k> Plan<'k> {
    pub fn new(
        module: &Module,
        kernel: &'k Kernel,
        threadgroup_size: Option<[u32; 3]>,
        uniformity: &Uniformity,
    ) -> Plan<'k> {
        let known = Known {
            threadgroup_size,
            threads: None,
        };
        let ranges = ranges::analyse_unguarded(kernel, &known);
        let mut collective = HashSet::new();
        mark(&kernel.body, false, false, &mut collective);
        let mut plan = Plan {
            kernel,
            collective,
            homes: vec![Home::Segment; kernel.values.len()],
            used: HashSet::new(),
            copies: HashSet::new(),
            blocks: HashMap::new(),
            store_blocks: Vec::new(),
            block_of_store: HashMap::new(),
            down: HashSet::new(),
            of_blocks: HashMap::new(),
            definitions: HashMap::new(),
            hoisted: HashSet::new(),
            inputs: HashMap::new(),
            slot_leaders: HashMap::new(),
            shared_arrays: BTreeSet::new(),
            low_bits: low_bits::analyse(kernel),
            affine: affine::analyse(kernel, &ranges, threadgroup_size),
            quotients: quotients::analyse(kernel, &ranges),
            ranges,
            floats: floats::analyse(kernel),
            returns_early: false,
        };
        let mut again = HashSet::new();
        kernel.for_each_inst(&mut |inst| {
            for result in &inst.results {
                plan.definitions.insert(*result, inst);
            }
            for value in uses(inst) {
                if !plan.used.insert(value) {
                    again.insert(value);
                }
            }
        });
        find_copies(&kernel.body, &mut plan.copies);
        plan.copies.retain(|value| !again.contains(value));
        plan.find_blocks(module);
        let mut find = Find {
            module,
            uniformity,
            plan,
            segment: None,
            segments: 0,
            defined: vec![None; kernel.values.len()],
            used: vec![Vec::new(); kernel.values.len()],
            array_segments: HashMap::new(),
            return_segments: Vec::new(),
        };
        for param in &kernel.params {
            if let ParamKind::Scalar { value } = param.kind {
                find.plan.homes[value.0 as usize] = Home::Threadgroup;
            }
        }
        find.region(&kernel.body);
        find.finish()
    }

    /// Finds what is made together; it is copied by itself no more.
    fn find_blocks(&mut self, module: &Module) {
        // Threadgroups at the end of the grid have full chunks too.
        let affine = affine::analyse(self.kernel, &self.ranges, None);
        let loads = blocks::find(module, self.kernel, &affine);
        self.store_blocks = blocks::find_stores(self.kernel, &affine);
        let down = blocks::down(self.kernel, &affine);
        let mut together = down.clone();
        for block in loads.iter().chain(&self.store_blocks) {
            let accesses = block.accesses().iter();
            together.extend(accesses.map(|(inst, _)| (*inst, block.bits())));
        }
        for (inst, bits) in together {
            let value = match &inst.kind {
                InstKind::Store { value, .. } => *value,
                _load => inst.results[0],
            };
            self.copies.remove(&value);
            self.of_blocks.insert(std::ptr::from_ref(inst), bits);
        }
        self.down = (down.into_iter().map(|(inst, _)| std::ptr::from_ref(inst))).collect();
        for (number, block) in self.store_blocks.iter().enumerate() {
            let stores = block.accesses().iter();
            let stores = stores.map(|(store, _)| (std::ptr::from_ref(*store), number));
            self.block_of_store.extend(stores);
        }
        let first = |block: &Block<'k>| std::ptr::from_ref(block.accesses()[0].0);
        self.blocks = (loads.into_iter().map(|block| (first(&block), block))).collect();
    }

    /// The stores that a store is made with.
    pub fn block_of_store(&self, store: &Inst) -> Option<&Block<'k>> {
        let number = self.block_of_store.get(&std::ptr::from_ref(store))?;
        Some(&self.store_blocks[*number])
    }

    /// The conditions that hold together where this one does, each once and in their order, none of them a
    /// conjunction. However many there are, no stack is as deep.
    pub fn conjuncts(&self, condition: Value) -> Vec<Value> {
        let mut found = Vec::new();
        let mut seen = HashSet::from([condition]);
        let mut open = vec![condition];
        while let Some(value) = open.pop() {
            let definition = self.definitions.get(&value);
            match definition.and_then(|inst| inst.kind.as_op()) {
                Some((Op::And, _, args)) if self.kernel.ty(value) == BOOL => {
                    open.extend(args.iter().rev().filter(|arg| seen.insert(**arg)));
                }
                Some(_) | None => found.push(value),
            }
        }
        found
    }

    pub fn home(&self, value: Value) -> Home {
        self.homes[value.0 as usize]
    }

    /// Whether anything uses a value.
    pub fn is_used(&self, value: Value) -> bool {
        self.used.contains(&value)
    }

    /// The load of a value that is only copied to another memory object, lane by lane.
    pub fn copied(&self, value: Value) -> Option<&'k Inst> {
        let load = self
            .copies
            .contains(&value)
            .then(|| self.definitions[&value])?;
        (!self.is_hoisted(load)).then_some(load)
    }

    pub fn is_collective(&self, inst: &Inst) -> bool {
        self.collective.contains(&std::ptr::from_ref(inst))
    }

    /// Modulo two to how many bits it is known how far an access lies from the others of its block, if it is one of
    /// a block.
    pub fn bits_of_block(&self, inst: &Inst) -> Option<u32> {
        self.of_blocks.get(&std::ptr::from_ref(inst)).copied()
    }

    pub fn is_hoisted(&self, inst: &Inst) -> bool {
        self.hoisted.contains(&std::ptr::from_ref(inst))
    }

    /// The parts of a region that all threads go through together.
    pub fn items(&self, region: &'k Region) -> Vec<Item<'k>> {
        let mut items = Vec::new();
        let mut rest = &region.insts[..];
        while !rest.is_empty() {
            let end = rest
                .iter()
                .position(|i| self.is_collective(i))
                .unwrap_or(rest.len());
            if end > 0 {
                items.push(Item::Segment(&rest[..end]));
            }
            if let Some(inst) = rest.get(end) {
                items.push(Item::Collective(inst));
            }
            rest = rest.get(end + 1..).unwrap_or(&[]);
        }
        items
    }

    /// What a segment takes from slots or computes again.
    pub fn inputs(&self, segment: &[Inst]) -> &[Value] {
        let key = std::ptr::from_ref(&segment[0]);
        self.inputs.get(&key).map_or(&[], Vec::as_slice)
    }

    /// A value in whose slot this one can live as well.
    pub fn slot_leader(&self, value: Value) -> Option<Value> {
        self.slot_leaders.get(&value).copied()
    }

    /// The values that live in slots, in order.
    pub fn slots(&self) -> Vec<Value> {
        (0..self.homes.len())
            .filter(|i| self.homes[*i] == Home::Slot)
            .map(|i| Value(i as u32))
            .collect()
    }

    /// What is taken from slots or computed again to have these values, in the order in which it can be.
    pub fn taken_for(&self, values: impl IntoIterator<Item = Value>) -> Vec<Value> {
        let (mut seen, mut list) = (HashSet::new(), Vec::new());
        for value in values {
            self.rematerialized(value, &mut seen, &mut list);
        }
        list
    }

    /// Adds the values that must be computed for `value` to be computed again, itself last; `seen` are those
    /// that were asked for already.
    fn rematerialized(&self, value: Value, seen: &mut HashSet<Value>, list: &mut Vec<Value>) {
        if !seen.insert(value) {
            return;
        }
        if self.home(value) == Home::Rematerialize
            && let Some(inst) = self.definitions.get(&value)
        {
            for v in uses(inst) {
                self.rematerialized(v, seen, list);
            }
        }
        if matches!(self.home(value), Home::Rematerialize | Home::Slot) {
            list.push(value);
        }
    }
}

/// Finds loads that a store to another memory object follows.
fn find_copies(region: &Region, copies: &mut HashSet<Value>) {
    for pair in region.insts.windows(2) {
        if let (InstKind::Load(from), InstKind::Store { place, value }) =
            (&pair[0].kind, &pair[1].kind)
            && pair[0].results[..] == [*value]
            && from.memory != place.memory
        {
            copies.insert(*value);
        }
    }
    for inner in region.insts.iter().flat_map(|inst| inst.kind.regions()) {
        find_copies(inner, copies);
    }
}

/// Adds the values that an instruction, or one inside of it, uses.
fn mention(inst: &Inst, values: &mut HashSet<Value>) {
    values.extend(uses(inst));
    for inner in inst.kind.regions().into_iter().flat_map(|r| &r.insts) {
        mention(inner, values);
    }
}

/// Marks what all threads go through together. `in_loop`: the region is in a loop that they go through
/// together; `more`: something that they go through together comes after the region.
fn mark(region: &Region, in_loop: bool, more: bool, collective: &mut HashSet<InstKey>) {
    let mut more = more;
    for inst in region.insts.iter().rev() {
        let is = meets(inst)
            || (in_loop && (inst.exits().leaves_loop() || matches!(inst.kind, InstKind::Yield(_))))
            || (more && inst.exits().returns)
            || (more && matches!(inst.kind, InstKind::Yield(_)));
        if !is {
            continue;
        }
        collective.insert(std::ptr::from_ref(inst));
        let looping = inst.kind.is_loop();
        for inner in inst.kind.regions() {
            mark(inner, in_loop || looping, more || looping, collective);
        }
        // The terminators of its regions hand values on for all threads.
        if !matches!(inst.kind, InstKind::Yield(_)) {
            for inner in inst.kind.regions() {
                if let Some(last) = inner.insts.last() {
                    collective.insert(std::ptr::from_ref(last));
                }
            }
            more = true;
        }
    }
}

struct Find<'k, 'a> {
    module: &'a Module,
    uniformity: &'a Uniformity,
    plan: Plan<'k>,
    /// The segment that the walk is in, by number, with its first instruction.
    segment: Option<(u32, InstKey)>,
    segments: u32,
    /// The segment that defines each value; `None` if all threads do together.
    defined: Vec<Option<u32>>,
    /// The segments that use each value; `None` for a use by all threads together.
    used: Vec<Vec<Option<(u32, InstKey)>>>,
    array_segments: HashMap<u32, HashSet<u32>>,
    return_segments: Vec<u32>,
}

impl<'k> Find<'k, '_> {
    fn region(&mut self, region: &'k Region) {
        for item in self.plan.items(region) {
            match item {
                Item::Segment(insts) => {
                    self.segment = Some((self.segments, std::ptr::from_ref(&insts[0])));
                    self.segments += 1;
                    for inst in insts {
                        self.hoist(inst);
                        self.inst(inst);
                    }
                    self.segment = None;
                }
                Item::Collective(inst) => {
                    let first = self.segments;
                    self.uses(inst);
                    // A counted loop's results are what it carries at its end.
                    for param in inst.carried() {
                        self.used[param.0 as usize].push(None);
                    }
                    for inner in inst.kind.regions() {
                        for param in &inner.params {
                            self.define_collective(*param);
                        }
                        self.region(inner);
                    }
                    for result in &inst.results {
                        self.define_collective(*result);
                    }
                    self.find_slot_leaders(inst, first);
                }
            }
        }
    }

    /// Finds what can live in the slots of what a counted loop carries, whose segments are those from
    /// `first` on: its results, and the next iteration's values, if nothing uses this iteration's any more when
    /// they are computed.
    fn find_slot_leaders(&mut self, inst: &'k Inst, first: u32) {
        let InstKind::For { body, .. } = &inst.kind else {
            return;
        };
        let Some((
            Inst {
                kind: InstKind::Yield(next),
                ..
            },
            rest,
        )) = body.insts.split_last()
        else {
            return;
        };
        if rest.iter().any(|inst| inst.exits().leaves_loop()) {
            return;
        }
        let handed: HashSet<Value> = next.iter().copied().collect();
        let mut mentioned = HashSet::new();
        for inst in rest.iter().filter(|i| self.plan.is_collective(i)) {
            mention(inst, &mut mentioned);
        }
        for ((param, next_value), result) in inst.carried().iter().zip(next).zip(&inst.results) {
            self.plan.slot_leaders.insert(*result, *param);
            let own = self.defined[next_value.0 as usize].filter(|segment| *segment >= first);
            let Some(own) = own else {
                continue;
            };
            let mut segments = self.used[param.0 as usize].iter().flatten();
            let over = segments.all(|(number, _)| *number <= own)
                && !handed.contains(param)
                && !mentioned.contains(param);
            if over && !self.plan.slot_leaders.contains_key(next_value) {
                self.plan.slot_leaders.insert(*next_value, *param);
            }
        }
    }

    fn define(&mut self, value: Value) {
        self.defined[value.0 as usize] = self.segment.map(|(number, _)| number);
    }

    /// A value that all threads hand on together: one for the threadgroup, if it is the same for all.
    fn define_collective(&mut self, value: Value) {
        self.define(value);
        if self.uniformity.of(value) >= Level::Threadgroup {
            self.plan.homes[value.0 as usize] = Home::Threadgroup;
        }
    }

    fn uses(&mut self, inst: &Inst) {
        let segment = self.segment;
        uses(inst).into_iter().for_each(|v| {
            // A segment's uses come one after another.
            let list = &mut self.used[v.0 as usize];
            if list.last() != Some(&segment) {
                list.push(segment);
            }
        });
    }

    fn inst(&mut self, inst: &'k Inst) {
        // What is hoisted uses values of the threadgroup only.
        self.uses(inst);
        for result in &inst.results {
            self.define(*result);
        }
        if let Some((number, _)) = self.segment {
            for memory in memories(inst) {
                if let Memory::Alloc(array) = memory {
                    self.array_segments.entry(array).or_default().insert(number);
                }
            }
            if matches!(inst.kind, InstKind::Return) {
                self.return_segments.push(number);
            }
        }
        for inner in inst.kind.regions() {
            for param in &inner.params {
                self.define(*param);
            }
            for inst in &inner.insts {
                self.inst(inst);
            }
        }
    }

    /// Moves an instruction in front of its segment if it computes one thing for all threads from such
    /// things.
    fn hoist(&mut self, inst: &'k Inst) {
        let pure = inst.kind.is_pure(self.module, self.plan.kernel);
        let same = |v: &Value| self.uniformity.of(*v) >= Level::Threadgroup;
        if !pure || !inst.results.iter().all(same) {
            return;
        }
        let mut ready = true;
        for v in uses(inst) {
            ready &= self.plan.home(v) == Home::Threadgroup;
        }
        if let InstKind::Op { op, .. } = inst.kind
            && matches!(op.row().meaning, Meaning::Query)
        {
            // In a threadgroup of one thread even its position is one thing; it belongs to the chunk.
            ready &= matches!(
                op.row().uniformity,
                ResultUniformity::Over(Scope::Threadgroup | Scope::Device)
            );
        }
        if ready {
            self.plan.hoisted.insert(std::ptr::from_ref(inst));
            for result in &inst.results {
                self.plan.homes[result.0 as usize] = Home::Threadgroup;
            }
        }
    }

    fn finish(mut self) -> Plan<'k> {
        let count = self.defined.len();
        let outside = |find: &Find<'k, '_>, i: usize| {
            let own = find.defined[i];
            own.is_none() || find.used[i].iter().any(|u| u.map(|(n, _)| n) != own)
        };
        for i in 0..count {
            let value = Value(i as u32);
            if self.plan.homes[i] == Home::Threadgroup || !outside(&self, i) {
                continue;
            }
            self.plan.homes[i] = if self.uniformity.of(value) >= Level::Threadgroup {
                Home::Threadgroup
            } else {
                Home::Slot
            };
        }
        for i in 0..count {
            if self.plan.homes[i] == Home::Slot
                && let Some(list) = self.cheap(Value(i as u32))
            {
                for value in list {
                    self.plan.homes[value.0 as usize] = Home::Rematerialize;
                }
            }
        }
        let mut inputs: HashMap<InstKey, (HashSet<Value>, Vec<Value>)> = HashMap::new();
        for i in 0..count {
            let value = Value(i as u32);
            if !matches!(self.plan.homes[i], Home::Rematerialize | Home::Slot) {
                continue;
            }
            for (number, key) in self.used[i].iter().flatten() {
                if self.defined[i] != Some(*number) {
                    let (seen, list) = inputs.entry(*key).or_default();
                    self.plan.rematerialized(value, seen, list);
                }
            }
        }
        let lists = inputs.into_iter().map(|(key, (_, list))| (key, list));
        self.plan.inputs = lists.collect();
        for (array, segments) in &self.array_segments {
            if segments.len() > 1 {
                self.plan.shared_arrays.insert(*array);
            }
        }
        let last = self.segments.saturating_sub(1);
        self.plan.returns_early = self.return_segments.iter().any(|s| *s != last);
        self.plan
    }

    /// What to compute so as to have a value again, if it is a query, or a short sum of such and of what
    /// is the same for all threads, so that this is cheaper than keeping it.
    fn cheap(&self, value: Value) -> Option<Vec<Value>> {
        let mut list = Vec::new();
        let mut pending = vec![value];
        while let Some(value) = pending.pop() {
            if self.plan.home(value) == Home::Threadgroup || list.contains(&value) {
                continue;
            }
            let computes = cost(&self.plan.definitions.get(&value)?.kind) < Cost::Much;
            if !computes || list.len() > 6 {
                return None;
            }
            list.push(value);
            pending.extend(uses(self.plan.definitions[&value]));
        }
        Some(list)
    }
}

/// The values that an instruction itself uses (not those in its regions).
pub(crate) fn uses(inst: &Inst) -> Vec<Value> {
    let mut list = Vec::new();
    inst.kind.for_each_use(|v| list.push(v));
    list
}

/// The memory objects that an instruction names.
pub(crate) fn memories(inst: &Inst) -> Vec<Memory> {
    let mut list = Vec::new();
    if let InstKind::Alloc(array) = inst.kind {
        list.push(Memory::Alloc(array));
    }
    inst.kind.for_each_memory(|m| list.push(m));
    list
}

/// Whether a region holds a loop that lanes leave at different times.
pub(crate) fn holds_masked_loop(region: &Region, classes: &Classes) -> bool {
    region.insts.iter().any(|inst| {
        let mut inner = inst.kind.regions().into_iter();
        classes.is_masked(inst) || inner.any(|r| holds_masked_loop(r, classes))
    })
}
