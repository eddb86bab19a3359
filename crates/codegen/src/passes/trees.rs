//! Trees: the last steps of a reduction in threadgroup memory, which only the threads of the first simdgroup make, are
//! made in its registers.
//!
//! ```text
//! if t < 16 { s[t] = s[t] + s[t + 16] } barrier  ->  if t < 32 { v = s[t]
//! if t < 8 { s[t] = s[t] + s[t + 8] } barrier            v = t < 16 ? v + shuffle_down(v, 16) : v
//! ...                                                    v = t < 8 ? v + shuffle_down(v, 8) : v ...
//!                                                        if t < 16 { s[t] = v } } barrier
//! ```
//!
//! This is for sums, maxima, places of the largest and whatever else a threadgroup combines by halves, of one array or
//! several. Each step loads what the step before stored at other places, so that a processor waits for every store.
//!
//! A step is an `if` of the first `c` threads of a line of threads. It loads elements of threadgroup arrays at the
//! thread's own index and at most so much behind it that a thread of the first simdgroup has them, and stores at its
//! own. Between two steps stands a barrier, and nothing that accesses memory. What a step loads from another thread is
//! what that had before the step: a step that stores there too has a race. Each thread stores in the end if it stored
//! in one of the steps, and nothing reads what it stored in between. Threadgroups with fewer threads than a simdgroup
//! make the steps as they were written. What the first thread then does alone with its element is done with the register.
//!
//! Deliberately absent: steps of all simdgroups, such as those of a scan; arrays that the host gives the length of.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use invar_ir::inst::{Spaces, Width};
use invar_ir::ops::Meaning;
use invar_ir::{
    AddressSpace, Const, Dim, ElementType, Imm, Inst, InstKind, Kernel, Memory, Module, Op, Place,
    Region, Scalar, Span, Type, Value, ValueInfo,
};

use super::PassOptions;
use super::common::{Map, push_const, push_inst};
use crate::analysis::affine::{self, Affine, Product, Sum, Symbol};
use crate::analysis::ranges::{self, Known};

pub(super) fn run(module: &Module, kernel: &mut Kernel, options: &PassOptions) {
    let Some(simdgroup) = options.simdgroup_size.filter(|size| is_line(kernel, *size)) else {
        return;
    };
    let before = kernel.clone();
    let size = before.threadgroup_size;
    let known = Known {
        threadgroup_size: size,
        threads: None,
    };
    let ranges = ranges::analyse(&before, &known);
    let mut trees = Trees {
        find: Find {
            module,
            kernel: &before,
            affine: affine::analyse(&before, &ranges, size),
            simdgroup: i64::from(simdgroup),
        },
        values: std::mem::take(&mut kernel.values),
        found: false,
    };
    trees.region(&mut kernel.body);
    kernel.values = trees.values;
    if trees.found {
        kernel.simdgroup_size = Some(simdgroup);
    }
}

/// Whether a kernel's threadgroups are a line of whole simdgroups of a size.
fn is_line(kernel: &Kernel, simdgroup: u32) -> bool {
    let size = kernel.threadgroup_size;
    let is_line = size.is_some_and(|[x, y, z]| x.is_multiple_of(simdgroup) && y * z == 1);
    is_line && kernel.simdgroup_size.is_none_or(|own| own == simdgroup)
}

// ---- what is found ----

struct Find<'a> {
    module: &'a Module,
    kernel: &'a Kernel,
    affine: Affine<'a>,
    simdgroup: i64,
}

/// A step of a tree.
#[derive(Default)]
struct Step {
    /// The type of the elements of each array that it accesses.
    arrays: BTreeMap<Memory, Type>,
    /// The elements of other threads that it loads, by how far behind they stand.
    others: BTreeSet<(Memory, i64)>,
}

/// Steps of a region with their places, and the places of the barriers between them.
#[derive(Default)]
struct Tree {
    steps: Vec<(usize, Step)>,
    barriers: Vec<usize>,
    /// Where the first thread takes its element, if that follows.
    end: Option<usize>,
}

impl Tree {
    fn last(&self) -> usize {
        self.end.unwrap_or(self.steps[self.steps.len() - 1].0)
    }
}

impl Find<'_> {
    /// The first tree of a region from a place on.
    fn tree(&self, insts: &[Inst], from: usize) -> Option<Tree> {
        let mut tree = Tree::default();
        let mut barrier = None;
        for (at, inst) in insts.iter().enumerate().skip(from) {
            if computes(inst) {
                continue;
            }
            if barrier.is_none() && is_barrier(inst) {
                barrier = Some(at);
                continue;
            }
            if tree.steps.len() > 1 && barrier.is_none() {
                break;
            }
            let step = self.step(inst);
            if step.is_none() && tree.steps.len() > 1 {
                if self.is_end(inst, &tree) {
                    tree.end = Some(at);
                    tree.barriers.extend(barrier);
                }
                break;
            }
            if barrier.is_none() || step.is_none() {
                tree = Tree::default();
            }
            if let Some(step) = step {
                // A barrier in front of the first step stays.
                tree.barriers
                    .extend(barrier.filter(|_| !tree.steps.is_empty()));
                tree.steps.push((at, step));
            }
            barrier = None;
        }
        (tree.steps.len() > 1).then_some(tree)
    }

    /// What a step accesses, if an instruction is one.
    fn step(&self, inst: &Inst) -> Option<Step> {
        let (condition, then) = plain_if(inst)?;
        let mut step = Step::default();
        self.part(then, self.threads(condition)?, &mut step)?;
        Some(step)
    }

    /// The first threads for which a condition holds: how many they are.
    fn threads(&self, condition: Value) -> Option<i64> {
        let known = Some(condition).filter(|v| (v.0 as usize) < self.kernel.values.len());
        let (op, _, args) = self.affine.definition(known?)?.kind.as_op()?;
        let (low, high, more) = match op {
            Op::Lt => (args[0], args[1], 0),
            Op::Le => (args[0], args[1], 1),
            Op::Gt => (args[1], args[0], 0),
            Op::Ge => (args[1], args[0], 1),
            // The first thread's number is 0.
            Op::Eq if self.is_zero(args[1]) => (args[0], args[1], 1),
            Op::Eq if self.is_zero(args[0]) => (args[1], args[0], 1),
            _other => return None,
        };
        let most = self.affine.of(high).sum.as_constant()? + more;
        let is_own = self.behind(low) == Some(0);
        (is_own && (1..=self.simdgroup).contains(&most)).then_some(most)
    }

    fn is_zero(&self, value: Value) -> bool {
        self.affine.of(value).sum.as_constant() == Some(0)
    }

    /// Whether the first thread alone takes elements of a tree and does no more than to store to other memory.
    fn is_end(&self, inst: &Inst, tree: &Tree) -> bool {
        let Some((condition, then)) = plain_if(inst) else {
            return false;
        };
        let is_held = |memory| {
            tree.steps
                .iter()
                .any(|(_, step)| step.arrays.contains_key(&memory))
        };
        let is_device = |memory| {
            let info = self.module.memory(self.kernel, memory);
            info.is_some_and(|info| info.space == AddressSpace::Device)
        };
        let fits = |inst: &Inst| match &inst.kind {
            InstKind::Load(place) if is_held(place.memory) => {
                let whole = place.width == Width::One && place.path.is_empty();
                whole && (self.is_zero(place.index) || self.behind(place.index) == Some(0))
            }
            InstKind::Load(place) => self.module.is_read_only(self.kernel, place.memory),
            InstKind::Store { place, .. } => is_device(place.memory),
            InstKind::Yield(_) => true,
            _other => computes(inst),
        };
        self.threads(condition) == Some(1) && then.insts.iter().all(fits)
    }

    /// How far an index is behind the thread's own.
    fn behind(&self, index: Value) -> Option<i64> {
        let form = self.affine.of(index);
        let thread = Sum::of(Product::of(Symbol::Thread(Dim::X)));
        let behind = form.sum.plus(&thread, -1).as_constant()?;
        (form.bits >= 32 && (0..self.simdgroup).contains(&behind)).then_some(behind)
    }

    /// What a part of a step accesses that `threads` make; none if it does anything else than such a part may.
    fn part(&self, region: &Region, threads: i64, step: &mut Step) -> Option<()> {
        for inst in &region.insts {
            match &inst.kind {
                InstKind::Load(place) => {
                    let behind = self.element(place, step)?;
                    if threads + behind > self.simdgroup {
                        return None;
                    }
                    if behind > 0 {
                        step.others.insert((place.memory, behind));
                    }
                }
                InstKind::Store { place, .. } => {
                    self.element(place, step).filter(|behind| *behind == 0)?;
                }
                InstKind::Yield(values) if values.is_empty() => {}
                InstKind::If { .. } => self.part(plain_if(inst)?.1, threads, step)?,
                _other if computes(inst) => {}
                _other => return None,
            }
        }
        Some(())
    }

    /// How far behind the thread's own an element of a threadgroup array is, all of which the first simdgroup has.
    fn element(&self, place: &Place, step: &mut Step) -> Option<i64> {
        let Memory::Alloc(number) = place.memory else {
            return None;
        };
        let alloc = &self.kernel.allocs[number as usize];
        let whole = place.width == Width::One && place.path.is_empty();
        let long = i64::from(alloc.length) >= self.simdgroup;
        let ElementType::Value(element @ Type::Scalar(_)) = alloc.element else {
            return None;
        };
        if alloc.space != AddressSpace::Threadgroup || !whole || !long {
            return None;
        }
        step.arrays.insert(place.memory, element);
        self.behind(place.index)
    }
}

/// The condition and the side of an `if` that gives no values and has no `else`.
fn plain_if(inst: &Inst) -> Option<(Value, &Region)> {
    let InstKind::If {
        condition,
        then,
        otherwise,
    } = &inst.kind
    else {
        return None;
    };
    let nothing = |region: &Region| region.insts.len() == 1 && ends(region);
    (inst.results.is_empty() && nothing(otherwise) && ends(then)).then_some((*condition, then))
}

fn ends(region: &Region) -> bool {
    let last = region.insts.last().map(|inst| &inst.kind);
    matches!(last, Some(InstKind::Yield(values)) if values.is_empty())
}

/// Whether an instruction only computes, from values of its own thread.
fn computes(inst: &Inst) -> bool {
    let alone = |op: Op| !matches!(op.row().meaning, Meaning::Lanes(..));
    matches!(inst.kind, InstKind::Const(_)) || inst.kind.as_op().is_some_and(|(op, ..)| alone(op))
}

/// Whether an instruction is a barrier that orders threadgroup memory.
fn is_barrier(inst: &Inst) -> bool {
    matches!(inst.kind, InstKind::Barrier { spaces, .. } if spaces.0 & Spaces::THREADGROUP.0 != 0)
}

// ---- what becomes of it ----

struct Trees<'a> {
    find: Find<'a>,
    values: Vec<ValueInfo>,
    found: bool,
}

/// An array's element of a thread, in a register.
#[derive(Clone, Copy)]
struct Held {
    value: Value,
    stored: Stored,
}

/// Whether a thread has stored its element.
#[derive(Clone, Copy)]
enum Stored {
    No,
    Yes,
    Where(Value),
}

/// What a step's loads and stores are of.
struct Registers {
    held: BTreeMap<Memory, Held>,
    /// What threads behind held before the step.
    others: HashMap<(Memory, i64), Value>,
}

impl Trees<'_> {
    fn region(&mut self, region: &mut Region) {
        for inst in &mut region.insts {
            for inner in inst.kind.regions_mut() {
                self.region(inner);
            }
        }
        let mut from = 0;
        while let Some(tree) = self.find.tree(&region.insts, from) {
            self.found = true;
            from = self.replace(&mut region.insts, &tree);
        }
    }

    /// Replaces a tree; gives the place behind what took its place.
    fn replace(&mut self, insts: &mut Vec<Inst>, tree: &Tree) -> usize {
        let last = tree.last();
        let span = insts[last].span;
        let barrier = insts[tree.barriers[0]].clone();
        let mut then = Vec::new();
        let body = self.body(insts, tree, span);
        let condition = self.is_below(&mut then, Op::ThreadIndexInThreadgroup, Imm::None, span);
        then.push(make_if(condition, body, Vec::new(), span));
        let is_next = |inst: &&Inst| !computes(inst);
        let kind = |inst: Option<&Inst>| inst.map(|inst| inst.kind.clone());
        let before = kind(insts[..tree.steps[0].0].iter().rev().find(is_next));
        let next = kind(insts[last + 1..].iter().find(is_next));
        let missing = |side: Option<InstKind>| {
            (side.as_ref() != Some(&barrier.kind)).then(|| barrier.clone())
        };
        let mut kept = Vec::with_capacity(insts.len());
        let mut as_written = Vec::new();
        let mut behind = 0;
        for (at, inst) in std::mem::take(insts).into_iter().enumerate() {
            let is_step = tree.steps.iter().any(|(step, _)| *step == at);
            if is_step || tree.end == Some(at) || tree.barriers.contains(&at) {
                as_written.push(inst);
            } else {
                kept.push(inst);
            }
            if at == last {
                let (steps, in_registers) =
                    (std::mem::take(&mut as_written), std::mem::take(&mut then));
                let size = Imm::Dim(Dim::X);
                let few = self.is_below(&mut kept, Op::ThreadsPerThreadgroup, size, span);
                kept.extend(missing(before.clone()));
                kept.push(make_if(few, steps, in_registers, span));
                kept.extend(missing(next.clone()));
                behind = kept.len();
            }
        }
        *insts = kept;
        behind
    }

    /// Whether what a query gives is less than the threads of a simdgroup.
    fn is_below(&mut self, done: &mut Vec<Inst>, op: Op, imm: Imm, span: Span) -> Value {
        let kind = InstKind::Op {
            op,
            imm,
            args: [].into_iter().collect(),
        };
        let ty = Type::Scalar(Scalar::U32);
        let number = push_inst(&mut self.values, done, kind, ty, span);
        let size = self.number(done, self.find.simdgroup, span);
        self.op(done, Op::Lt, &[number, size], Type::BOOL, span)
    }

    fn thread(&mut self, done: &mut Vec<Inst>, span: Span) -> Value {
        let ty = Type::Scalar(Scalar::U32);
        self.op(done, Op::ThreadIndexInThreadgroup, &[], ty, span)
    }

    fn number(&mut self, done: &mut Vec<Inst>, number: i64, span: Span) -> Value {
        let constant = Const {
            scalar: Scalar::U32,
            bits: number as u64,
        };
        push_const(&mut self.values, done, constant, span)
    }

    fn op(&mut self, done: &mut Vec<Inst>, op: Op, args: &[Value], ty: Type, span: Span) -> Value {
        let kind = InstKind::Op {
            op,
            imm: Imm::None,
            args: args.iter().copied().collect(),
        };
        push_inst(&mut self.values, done, kind, ty, span)
    }

    /// What the threads of the first simdgroup do.
    fn body(&mut self, insts: &[Inst], tree: &Tree, span: Span) -> Vec<Inst> {
        let mut done = Vec::new();
        let thread = self.thread(&mut done, span);
        let mut registers = Registers {
            held: BTreeMap::new(),
            others: HashMap::new(),
        };
        let arrays = tree.steps.iter().flat_map(|(_, step)| &step.arrays);
        for (memory, ty) in arrays.collect::<BTreeMap<_, _>>() {
            let load = InstKind::Load(Place::element(*memory, thread));
            let value = push_inst(&mut self.values, &mut done, load, *ty, span);
            let stored = Stored::No;
            registers.held.insert(*memory, Held { value, stored });
        }
        for (at, step) in &tree.steps {
            registers.others.clear();
            for (memory, behind) in &step.others {
                let by = self.number(&mut done, *behind, span);
                let own = registers.held[memory].value;
                let ty = step.arrays[memory];
                let other = self.op(&mut done, Op::SimdShuffleDown, &[own, by], ty, span);
                registers.others.insert((*memory, *behind), other);
            }
            self.part(&insts[*at], &mut registers, &mut Map::new(), &mut done);
        }
        if let Some(end) = tree.end {
            self.end(&insts[end], &registers, &mut done);
        }
        for (memory, held) in registers.held {
            if let Stored::Where(stored) = held.stored {
                let store = InstKind::Store {
                    place: Place::element(memory, thread),
                    value: held.value,
                };
                done.push(make_if(stored, vec![plain(store, span)], Vec::new(), span));
            }
        }
        done
    }

    /// A step, or a part of one that some of its threads make.
    fn part(
        &mut self,
        inst: &Inst,
        registers: &mut Registers,
        map: &mut Map,
        done: &mut Vec<Inst>,
    ) {
        let (condition, then) = plain_if(inst).expect("an if of stores");
        let condition = map.get(&condition).copied().unwrap_or(condition);
        let before = registers.held.clone();
        for held in registers.held.values_mut() {
            held.stored = Stored::No;
        }
        for inst in &then.insts {
            match &inst.kind {
                InstKind::Load(place) => {
                    let behind = self.find.behind(place.index).expect("a place of the tree");
                    let value = match behind {
                        0 => registers.held[&place.memory].value,
                        _ => registers.others[&(place.memory, behind)],
                    };
                    map.insert(inst.results[0], value);
                }
                InstKind::Store { place, value } => {
                    let value = map.get(value).copied().unwrap_or(*value);
                    let stored = Stored::Yes;
                    registers.held.insert(place.memory, Held { value, stored });
                }
                InstKind::If { .. } => self.part(inst, registers, map, done),
                InstKind::Yield(_) => {}
                _computes => self.copy(inst, map, done),
            }
        }
        for (memory, old) in before {
            let new = registers.held[&memory];
            let held = self.together(old, new, condition, inst.span, done);
            registers.held.insert(memory, held);
        }
    }

    /// What a thread holds behind an `if`, from what it held in front of it and at the end of its side.
    fn together(
        &mut self,
        old: Held,
        new: Held,
        condition: Value,
        span: Span,
        done: &mut Vec<Inst>,
    ) -> Held {
        let here = match new.stored {
            Stored::No => return old,
            Stored::Yes => condition,
            Stored::Where(also) => self.op(done, Op::And, &[condition, also], Type::BOOL, span),
        };
        let ty = self.values[old.value.0 as usize].ty;
        let value = self.op(
            done,
            Op::Select,
            &[old.value, new.value, condition],
            ty,
            span,
        );
        let threads = |condition| self.find.threads(condition);
        let stored = match old.stored {
            // The threads of this step are some of those of an earlier one.
            Stored::Yes => Stored::Yes,
            Stored::No => Stored::Where(here),
            // The threads of this step are some of those of an earlier one.
            Stored::Where(before)
                if threads(condition).is_some_and(|few| threads(before) >= Some(few)) =>
            {
                Stored::Where(before)
            }
            Stored::Where(before) => {
                Stored::Where(self.op(done, Op::Or, &[before, here], Type::BOOL, span))
            }
        };
        Held { value, stored }
    }

    /// What the first thread does in the end.
    fn end(&mut self, inst: &Inst, registers: &Registers, done: &mut Vec<Inst>) {
        let (condition, then) = plain_if(inst).expect("an if");
        let mut map = Map::new();
        let mut side = Vec::new();
        for inst in &then.insts {
            let held = match &inst.kind {
                InstKind::Load(place) => registers.held.get(&place.memory),
                _other => None,
            };
            match held {
                Some(held) => {
                    map.insert(inst.results[0], held.value);
                }
                None if inst.results.is_empty() => {
                    let mut inst = inst.clone();
                    inst.kind
                        .for_each_use_mut(|v| *v = map.get(v).copied().unwrap_or(*v));
                    side.push(inst);
                }
                None => self.copy(inst, &mut map, &mut side),
            }
        }
        side.pop();
        done.push(make_if(condition, side, Vec::new(), inst.span));
    }

    /// An instruction with a value of its own.
    fn copy(&mut self, inst: &Inst, map: &mut Map, done: &mut Vec<Inst>) {
        let mut kind = inst.kind.clone();
        kind.for_each_use_mut(|v| *v = map.get(v).copied().unwrap_or(*v));
        let ty = self.values[inst.results[0].0 as usize].ty;
        let value = push_inst(&mut self.values, done, kind, ty, inst.span);
        map.insert(inst.results[0], value);
    }
}

fn plain(kind: InstKind, span: Span) -> Inst {
    Inst {
        kind,
        results: [].into_iter().collect(),
        span,
    }
}

fn make_if(condition: Value, mut then: Vec<Inst>, mut otherwise: Vec<Inst>, span: Span) -> Inst {
    for side in [&mut then, &mut otherwise] {
        side.push(plain(InstKind::Yield([].into_iter().collect()), span));
    }
    let region = |insts| Region {
        params: Vec::new(),
        insts,
    };
    let kind = InstKind::If {
        condition,
        then: region(then),
        otherwise: region(otherwise),
    };
    plain(kind, span)
}
