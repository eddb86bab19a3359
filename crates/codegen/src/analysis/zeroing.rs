//! Which threadgroup memory must be made zero before a kernel runs: that of which somebody may read an
//! element before it was certainly written (I2, I3's "a device may skip any zeroing that nobody can
//! observe").
//!
//! The walk computes indices and conditions for every thread of a threadgroup at once, as far as they
//! follow from where a thread stands, constants and the iterations of short loops. It keeps two sets of
//! elements: those that were written before the last barrier of the threadgroup, and those written since,
//! with a thread that wrote each. A read is fine if every element that it may touch is in the first set,
//! or in the second by the same thread. What a branch or loop leaves counts afterwards only if it is
//! certain that it ran.
//!
//! Two facts make this sound. A barrier is reached by all threads of the threadgroup (X4), so each of
//! them has run what stands before it in the same region and in those around. And both sets only grow,
//! so the first iteration of a loop is the one that sees least.
//!
//! Deliberately absent: threadgroups at an edge of the grid, which have fewer threads, so that less is
//! written; writes through copies and simdgroup matrices, which count for nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use invar_ir::ops::Meaning;
use invar_ir::{
    AddressSpace, Dim, Elements, Imm, Inst, InstKind, Kernel, Memory, Module, Op, Place, Region,
    Scalar, Scope, Spaces, Type, Value,
};

/// What is known of the threadgroups of a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threadgroups<'a> {
    /// The size of a full one.
    pub size: [u32; 3],
    /// Whether all are full: the grid is a multiple of the size.
    pub full: bool,
    /// Lanes of a simdgroup (X2).
    pub simdgroup_size: u32,
    /// The length in elements of each threadgroup parameter, in their order.
    pub lengths: &'a [u64],
}

/// The threadgroup memory of which somebody may see an initial zero.
///
/// ```
/// use invar_codegen::analysis::zeroing::{Threadgroups, observed};
///
/// let text = "kernel @k(%x: device read_write f32) threadgroup(64) {
///     %tile = alloc threadgroup f32[64]
///     %t = thread_index_in_threadgroup
///     %v = load %x[%t]
///     store %tile[%t], %v
///     barrier threadgroup [threadgroup]
///     %last = const u32 63
///     %r = sub %last, %t
///     %w = load %tile[%r]
///     store %x[%t], %w
/// }";
/// let module = invar_ir::text::parse("k.inv", text)?;
/// let mut groups = Threadgroups { size: [64, 1, 1], full: true, simdgroup_size: 32, lengths: &[] };
/// assert!(observed(&module, &module.kernels[0], &groups).is_empty());
/// groups.full = false;
/// assert_eq!(observed(&module, &module.kernels[0], &groups).len(), 1);
/// # Ok::<(), invar_ir::Diagnostics>(())
/// ```
pub fn observed(
    module: &Module,
    kernel: &Kernel,
    threadgroups: &Threadgroups<'_>,
) -> BTreeSet<Memory> {
    let threads: u64 = threadgroups.size.iter().map(|n| u64::from(*n)).product();
    let mut walk = Walk {
        kernel,
        threadgroups,
        threads: usize::try_from(threads).unwrap_or(usize::MAX),
        columns: HashMap::new(),
        state: BTreeMap::new(),
        observed: BTreeSet::new(),
        budget: BUDGET,
    };
    for (memory, length) in objects(module, kernel, threadgroups.lengths) {
        walk.state.insert(memory, Written::new(length));
    }
    if walk.threads as u64 != threads || threads > MAX_THREADS || !threadgroups.full {
        // Nothing is certain: whatever is read may be seen.
        walk.threads = 0;
    }
    let everyone = Rc::from(vec![true; walk.threads]);
    walk.region(&kernel.body, &Some(everyone));
    walk.observed
}

/// Threads of a threadgroup that are followed.
const MAX_THREADS: u64 = 4096;
/// Values and accesses of single threads that are looked at; beyond it nothing is known any more.
const BUDGET: usize = 1 << 18;
/// Elements of an object that cost as much as one of those.
const CHEAP: usize = 16;
/// Elements of an object that are followed.
const MAX_ELEMENTS: u64 = 1 << 16;
/// The most iterations of a loop that are followed one by one.
const MAX_ITERATIONS: i128 = 256;

/// The threadgroup memory of a kernel, with its lengths in elements.
fn objects(module: &Module, kernel: &Kernel, lengths: &[u64]) -> Vec<(Memory, u64)> {
    let mut lengths = lengths.iter();
    let mut found = Vec::new();
    let params = (0..kernel.params.len()).map(|i| Memory::Param(i as u32));
    let allocs = (0..kernel.allocs.len()).map(|i| Memory::Alloc(i as u32));
    for memory in params.chain(allocs) {
        let Some(info) = module.memory(kernel, memory) else {
            continue;
        };
        if info.space == AddressSpace::Threadgroup {
            let length = match memory {
                Memory::Param(_) => lengths.next().copied(),
                Memory::Alloc(_) | Memory::Constant(_) => info.length.map(u64::from),
            };
            // A length that was not given may be any.
            found.push((memory, length.unwrap_or(u64::MAX)));
        }
    }
    found
}

/// What was certainly written of an object.
#[derive(Clone)]
struct Written {
    length: u64,
    /// Elements that every thread sees written.
    visible: Vec<bool>,
    /// A thread that has written the element since the last barrier.
    since: Vec<Option<u32>>,
    /// How many are not visible.
    missing: u64,
}

impl Written {
    fn new(length: u64) -> Written {
        let followed = if length <= MAX_ELEMENTS {
            length as usize
        } else {
            0
        };
        Written {
            length,
            visible: vec![false; followed],
            since: vec![None; followed],
            missing: length,
        }
    }

    /// Whether a thread that reads the element sees what was written.
    fn is_written(&self, element: usize, thread: u32) -> bool {
        self.visible.get(element).is_some_and(|v| *v)
            || self.since.get(element).is_some_and(|t| *t == Some(thread))
    }

    fn is_whole(&self) -> bool {
        self.missing == 0
    }
}

/// The bits of a scalar integer or boolean, of each thread.
type Column = Rc<[u64]>;
/// Which threads come here, of those that come to the barriers around; `None` if that is not known.
type Mask = Option<Rc<[bool]>>;

struct Walk<'a> {
    kernel: &'a Kernel,
    threadgroups: &'a Threadgroups<'a>,
    threads: usize,
    columns: HashMap<Value, Column>,
    state: BTreeMap<Memory, Written>,
    observed: BTreeSet<Memory>,
    budget: usize,
}

impl Walk<'_> {
    fn region(&mut self, region: &Region, mask: &Mask) {
        for inst in &region.insts {
            self.inst(inst, mask);
        }
    }

    fn scalar(&self, value: Value) -> Option<Scalar> {
        match self.kernel.ty(value) {
            Type::Scalar(scalar) if scalar.is_integer() || scalar == Scalar::Bool => Some(scalar),
            _other => None,
        }
    }

    /// Pays for looking at so many things; without the means nothing is known any more.
    fn afford(&mut self, count: usize) -> bool {
        let cost = count.max(1);
        if cost > self.budget {
            self.budget = 0;
            self.threads = 0;
            self.columns.clear();
            for written in self.state.values_mut() {
                *written = Written::new(u64::MAX);
            }
            return false;
        }
        self.budget -= cost;
        true
    }

    /// Pays for looking at every element.
    fn afford_elements(&mut self) -> bool {
        let elements = self.state.values().map(|written| written.since.len());
        let elements: usize = elements.sum();
        self.afford(elements / CHEAP)
    }

    fn set(&mut self, value: Value, column: Option<Column>) {
        match column {
            Some(column) => self.columns.insert(value, column),
            None => self.columns.remove(&value),
        };
    }

    fn forget(&mut self, values: &[Value]) {
        for value in values {
            self.columns.remove(value);
        }
    }

    /// An integer that is the same for every thread.
    fn constant(&self, value: Value) -> Option<i128> {
        let scalar = self.scalar(value)?;
        let column = self.columns.get(&value)?;
        let first = *column.first()?;
        column
            .iter()
            .all(|bits| *bits == first)
            .then(|| scalar.integer(first))
    }

    fn inst(&mut self, inst: &Inst, mask: &Mask) {
        match &inst.kind {
            InstKind::Const(c) => {
                let known = self.scalar(inst.results[0]).is_some() && self.afford(self.threads);
                let column = known.then(|| Rc::from(vec![c.bits; self.threads]));
                self.set(inst.results[0], column);
            }
            InstKind::Op { op, imm, args } => {
                let column = self.op(*op, *imm, args, inst.results.first().copied());
                if let Some(result) = inst.results.first() {
                    self.set(*result, column);
                }
            }
            InstKind::Barrier { scope, spaces } => {
                if *scope >= Scope::Threadgroup && spaces.contains(Spaces::THREADGROUP) {
                    self.barrier();
                }
            }
            InstKind::If {
                condition,
                then,
                otherwise,
            } => {
                self.if_(*condition, then, otherwise, mask);
                self.forget(&inst.results);
            }
            InstKind::For {
                lower,
                upper,
                step,
                body,
                ..
            } => {
                self.for_((*lower, *upper, *step), body, mask);
                self.forget(&inst.results);
            }
            InstKind::Loop { body, .. } => {
                self.unknown_iterations(body);
                self.forget(&inst.results);
            }
            other => {
                for access in other.accesses() {
                    match access.elements {
                        Elements::Place(place) if access.mode.reads() => {
                            self.read(place.memory, Some(place), mask);
                        }
                        Elements::Place(place) => self.write(place, mask),
                        Elements::Run(_) | Elements::Shared(_) | Elements::Texels(_)
                            if access.mode.reads() =>
                        {
                            self.read(access.memory, None, mask);
                        }
                        // It may write nothing.
                        Elements::Run(_) | Elements::Shared(_) | Elements::Texels(_) => {}
                    }
                }
                self.forget(&inst.results);
            }
        }
    }

    // ---- memory ----

    /// The elements that a thread's access touches, as mathematical integers; `None` if that is not
    /// known.
    fn elements(&self, place: &Place, thread: usize) -> Option<std::ops::Range<i128>> {
        let scalar = self.scalar(place.index)?;
        let bits = *self.columns.get(&place.index)?.get(thread)?;
        let index = scalar.integer(bits);
        let count = i128::from(place.width.count());
        Some(match place.width {
            invar_ir::Width::Group(_) => index * count..(index + 1) * count,
            invar_ir::Width::One | invar_ir::Width::Run(_) => index..index + count,
        })
    }

    fn read(&mut self, memory: Memory, place: Option<&Place>, mask: &Mask) {
        let followed = |w: &&Written| !w.is_whole();
        if self.state.get(&memory).filter(followed).is_none() {
            return;
        }
        self.afford(self.threads);
        let Some(written) = self.state.get(&memory) else {
            return;
        };
        let seen = match place {
            None => true,
            Some(_) if self.threads == 0 => true,
            Some(place) => (0..self.threads).any(|thread| {
                let comes = mask.as_ref().is_none_or(|mask| mask[thread]);
                comes
                    && match self.elements(place, thread) {
                        None => true,
                        // What is out of bounds gives 0 and touches nothing.
                        Some(range) => range
                            .filter(|e| (0..i128::from(written.length)).contains(e))
                            .any(|e| !written.is_written(e as usize, thread as u32)),
                    }
            }),
        };
        if seen {
            self.observed.insert(memory);
        }
    }

    fn write(&mut self, place: &Place, mask: &Mask) {
        let Some(mask) = mask else {
            return;
        };
        // A part of an element leaves the rest as it was.
        if !self.state.contains_key(&place.memory) || !place.path.is_empty() {
            return;
        }
        self.afford(self.threads);
        for thread in 0..self.threads {
            let elements = match self.elements(place, thread) {
                Some(elements) if mask[thread] => elements,
                Some(_) | None => continue,
            };
            if let Some(written) = self.state.get_mut(&place.memory) {
                for element in elements {
                    if let Ok(element) = usize::try_from(element)
                        && let Some(by) = written.since.get_mut(element)
                    {
                        by.get_or_insert(thread as u32);
                    }
                }
            }
        }
    }

    fn barrier(&mut self) {
        self.afford_elements();
        for written in self.state.values_mut() {
            for (visible, by) in written.visible.iter_mut().zip(&mut written.since) {
                if by.take().is_some() && !*visible {
                    *visible = true;
                    written.missing -= 1;
                }
            }
        }
    }

    // ---- control flow ----

    fn if_(&mut self, condition: Value, then: &Region, otherwise: &Region, mask: &Mask) {
        let known = self.columns.get(&condition).cloned();
        match (known, mask) {
            (Some(condition), Some(mask)) => {
                let side = |taken: bool| {
                    let pairs = mask.iter().zip(condition.iter());
                    Some(pairs.map(|(m, c)| *m && (*c != 0) == taken).collect())
                };
                self.region(then, &side(true));
                self.region(otherwise, &side(false));
            }
            (_unknown, _) => {
                for side in [then, otherwise] {
                    self.perhaps(side);
                }
            }
        }
    }

    /// A region of which it is not known who runs it. If there is a barrier in it, everyone does.
    fn perhaps(&mut self, region: &Region) {
        self.afford_elements();
        let before = self.state.clone();
        let everyone = || Rc::from(vec![true; self.threads]);
        let mask = holds_barrier(region).then(everyone);
        self.region(region, &mask);
        self.state = before;
    }

    fn for_(&mut self, bounds: (Value, Value, Value), body: &Region, mask: &Mask) {
        let index = body.params[0];
        let iterations = self.iterations(bounds);
        let (Some(iterations), Some(scalar), false) =
            (iterations, self.scalar(index), body.exits().any())
        else {
            self.unknown_iterations(body);
            return;
        };
        for at in iterations {
            if !self.afford(self.threads) {
                // One walk stands for all iterations that are left.
                self.unknown_iterations(body);
                return;
            }
            self.forget(&body.params);
            let bits = at as u64 & (u64::MAX >> (64 - scalar.bits()));
            let column: Column = Rc::from(vec![bits; self.threads]);
            self.set(index, Some(column));
            self.region(body, mask);
        }
    }

    /// The index of each iteration, if there are few and they are the same for every thread.
    fn iterations(&self, (lower, upper, step): (Value, Value, Value)) -> Option<Vec<i128>> {
        let lower = self.constant(lower)?;
        let upper = self.constant(upper)?;
        let step = self.constant(step)?;
        let distance = match step {
            1.. => upper - lower,
            0 => 0,
            _down => lower - upper,
        };
        let count = if distance > 0 {
            (distance - 1) / step.abs() + 1
        } else {
            0
        };
        (count <= MAX_ITERATIONS).then(|| (0..count).map(|i| lower + i * step).collect())
    }

    fn unknown_iterations(&mut self, body: &Region) {
        self.forget(&body.params);
        self.perhaps(body);
    }

    // ---- values ----

    fn op(&mut self, op: Op, imm: Imm, args: &[Value], result: Option<Value>) -> Option<Column> {
        let to = self.scalar(result?)?;
        if !self.afford(self.threads) {
            return None;
        }
        match op.row().meaning {
            Meaning::Query => self.query(op, imm),
            Meaning::Eval(evaluator) => {
                let from = self.scalar(*args.first()?)?;
                let columns: Option<Vec<Column>> = args
                    .iter()
                    .map(|v| self.scalar(*v).and_then(|_| self.columns.get(v).cloned()))
                    .collect();
                let columns = columns?;
                let columns: Vec<&[u64]> = columns.iter().map(|c| &**c).collect();
                let mut out = vec![0; self.threads];
                evaluator(from, to, &columns, &mut out);
                Some(Rc::from(out))
            }
            Meaning::Expand(_) | Meaning::Arrange | Meaning::Lanes(..) => None,
        }
    }

    /// Where each thread stands in a full threadgroup.
    fn query(&self, op: Op, imm: Imm) -> Option<Column> {
        let d = match imm {
            Imm::Dim(dim) => Dim::ALL.iter().position(|x| *x == dim).unwrap_or(0),
            Imm::None | Imm::Type(_) | Imm::Swizzle(_) => 0,
        };
        let size = self.threadgroups.size.map(|n| n as usize);
        let lanes = (self.threadgroups.simdgroup_size as usize).max(1);
        let each: Box<dyn Fn(usize) -> usize> = match op {
            Op::ThreadIndexInThreadgroup => Box::new(|t| t),
            Op::ThreadPositionInThreadgroup => Box::new(move |t| match d {
                0 => t % size[0],
                1 => t / size[0] % size[1],
                _z => t / (size[0] * size[1]),
            }),
            Op::ThreadsPerThreadgroup | Op::DispatchThreadsPerThreadgroup => {
                Box::new(move |_| size[d])
            }
            Op::ThreadIndexInSimdgroup => Box::new(move |t| t % lanes),
            Op::SimdgroupIndexInThreadgroup => Box::new(move |t| t / lanes),
            Op::ThreadsPerSimdgroup => Box::new(move |_| lanes),
            Op::SimdgroupsPerThreadgroup | Op::DispatchSimdgroupsPerThreadgroup => {
                let count = self.threads.div_ceil(lanes);
                Box::new(move |_| count)
            }
            _of_the_grid => return None,
        };
        Some((0..self.threads).map(|t| each(t) as u64).collect())
    }
}

/// Whether threads of the threadgroup meet somewhere in a region.
fn holds_barrier(region: &Region) -> bool {
    region.insts.iter().any(|inst| {
        inst.kind.meets() >= Some(Scope::Threadgroup)
            || inst.kind.regions().into_iter().any(holds_barrier)
    })
}
