//! Uniformity: over which threads a value is the same, and over which threads code is reached
//! together (X4).
//!
//! Everything here is one of four [`Level`]s, ordered. A value's level is about the threads that
//! reach its definition together: where only some threads run the code, it speaks of those. The
//! *control* of an instruction says over whom the threads reach it together at all: all threads of
//! that scope, in the same iterations of the same loops.
//!
//! The method: every level is the least of some others and of a constant of its own, so the whole
//! analysis is reachability in a graph. Nodes are values, thread arrays and points of control; an
//! edge leads from what is used to what depends on it. The edges are:
//! - operands to results, as the op table's rows say; stored values and indices to the array;
//! - an `if`'s condition to what both sides yield, and to the control of both sides;
//! - a loop's initial, yielded and continued values to its parameters, and, where there are several
//!   ways into the next iteration, the control of each: threads that took different ways differ;
//! - the control of each `break`, and a `for`'s bounds, to the loop's results (threads leave in
//!   different iterations) and to the control of the loop's whole body (later iterations lack threads);
//! - `break` and `continue` to the control of the rest of the iteration, `return` to that of
//!   everything after it and of the iterations of every loop around it.
//!
//! Levels are spread from the lowest up; each node is lowered at most three times, so time and memory
//! are linear in the kernel. What lowered a node is kept: it is the reason in the verifier's messages.
//!
//! Loads are uniform only from `constant` or `read` memory at a uniform index (X4), and from thread
//! arrays. A thread array is one variable: the least of all that is stored to it, the indices, and the
//! control of the stores since its `alloc`.
//!
//! Deliberately absent: relations between values (`i + 1` differs from `i`), with one exception: the
//! number of a thread in its threadgroup, divided by a multiple of the simdgroup size or asked whether it is less than
//! one.

use crate::inst::{AtomicOp, Inst, InstKind, Memory, Place, Region, Scope, Step, Value, Values};
use crate::module::{Access, AddressSpace, Kernel, Module};
use crate::ops::{Dim, Imm, Op, ResultUniformity};
use crate::room::{PASSES_BYTES, with_room};
use crate::span::Span;
use crate::types::{Scalar, Type};

/// Over which threads something is the same, from none to all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// It may differ from thread to thread.
    Varying,
    /// The same for the threads of a simdgroup.
    Simdgroup,
    /// The same for the threads of a threadgroup.
    Threadgroup,
    /// The same for all threads of the grid.
    Grid,
}

impl Level {
    /// Whether it holds over that scope.
    pub fn is_over(self, scope: Scope) -> bool {
        self >= Level::from(scope)
    }
}

impl From<Scope> for Level {
    fn from(scope: Scope) -> Level {
        match scope {
            Scope::Simdgroup => Level::Simdgroup,
            Scope::Threadgroup => Level::Threadgroup,
            Scope::Device => Level::Grid,
        }
    }
}

/// What is known of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionUniformity {
    /// Of an `if`'s region: the level of its condition. Of a loop's body: over whom the threads run
    /// the same number of iterations. Of a kernel's body: the grid.
    pub entry: Level,
    /// Over whom the threads begin it together.
    pub control: Level,
}

/// The uniformity of one kernel's values, arrays and code.
#[derive(Clone, Debug)]
pub struct Uniformity {
    value_count: usize,
    array_count: usize,
    /// Of values, then arrays, then points of control.
    levels: Vec<Level>,
    /// What lowered each node: another node, or itself if it was so from the start.
    causes: Vec<Node>,
    /// For the points of control, what they are.
    points: Vec<Point>,
    /// The control of each instruction.
    controls: Vec<Node>,
    /// Entry and control of each region.
    regions: Vec<(Node, Node)>,
}

/// A node of the graph.
type Node = u32;

/// Not a node: no constraint.
const FREE: Node = u32::MAX;

/// What a point of control is, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    /// Where several others come together.
    Meet,
    /// The regions of an `if`.
    If {
        /// The `if`.
        span: Span,
        /// Its number in the order of the kernel's instructions.
        number: u32,
    },
    /// The iterations of a `for`.
    Iterations {
        /// The `for`.
        span: Span,
    },
    /// A way out of an iteration, a loop or the kernel.
    Exit {
        /// The terminator.
        span: Span,
        /// Its name.
        name: &'static str,
    },
}

/// Why something is less uniform than needed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reason {
    /// The points of control on the way from the place itself, nearest first, each with what it
    /// depends on, if that is a value.
    pub points: Vec<(Point, Option<Value>)>,
    /// The nearest value that carries the variation.
    pub value: Option<Value>,
    /// Where the variation comes from.
    pub root: Option<Value>,
    /// A number that is the same for places that have the nearest point in common.
    pub key: u32,
}

/// Analyses a kernel of a module.
///
/// ```
/// use invar_ir::{Access, KernelBuilder, Level, Module, Place, Scalar, analyse};
///
/// let mut k = KernelBuilder::new(Module::default(), "scale");
/// let x = k.buffer("x", Access::ReadWrite, Scalar::F32);
/// let n = k.scalar("n", Scalar::U32);
/// let i = k.thread_index_in_threadgroup();
/// let sum = k.add(i, n);
/// let v = k.load(Place::element(x, n));
/// let module = k.finish()?;
/// let uniformity = analyse(&module, &module.kernels[0]);
/// assert_eq!(uniformity.of(n), Level::Grid);
/// assert_eq!(uniformity.of(sum), Level::Varying);
/// assert_eq!(uniformity.of(v), Level::Varying, "other threads may write `x`");
/// # Ok::<(), invar_ir::Diagnostics>(())
/// ```
///
/// # Panics
/// If the kernel is not one that [`crate::verify()`] would pass in its ids and its nesting.
pub fn analyse(module: &Module, kernel: &Kernel) -> Uniformity {
    with_room(PASSES_BYTES, || analysed(module, kernel))
}

fn analysed(module: &Module, kernel: &Kernel) -> Uniformity {
    let array_count = kernel.allocs.len();
    let count = kernel.values.len() + array_count;
    let threads = kernel.threadgroup_size.map(thread_count);
    let mut walk = Walk {
        module,
        kernel,
        seeds: vec![Level::Grid; count],
        floors: vec![Level::Varying; count],
        edges: Vec::new(),
        points: Vec::new(),
        controls: Vec::new(),
        regions: Vec::new(),
        flow: Flow {
            control: FREE,
            in_loop: FREE,
            left: FREE,
            returned: FREE,
        },
        frames: Vec::new(),
        loops: Vec::new(),
        array_depth: vec![0; array_count],
        definitions: vec![None; kernel.values.len()],
        one_thread: threads == Some(1),
        one_simdgroup: match (threads, kernel.simdgroup_size) {
            (Some(threads), Some(simdgroup)) => threads <= u128::from(simdgroup),
            (Some(_), None) | (None, Some(_)) | (None, None) => false,
        },
    };
    walk.begin_region(FREE);
    walk.region(&kernel.body);
    let (levels, causes) = solve(&walk.seeds, &walk.floors, &walk.edges);
    Uniformity {
        value_count: kernel.values.len(),
        array_count,
        levels,
        causes,
        points: walk.points,
        controls: walk.controls,
        regions: walk.regions,
    }
}

impl Uniformity {
    /// Over whom a value is the same, of the threads that reach its definition together.
    ///
    /// # Panics
    /// If the value is of another kernel.
    pub fn of(&self, value: Value) -> Level {
        assert!(
            (value.0 as usize) < self.value_count,
            "a value of another kernel"
        );
        self.levels[value.0 as usize]
    }

    /// Over whom the contents of a thread array are the same, at every point of its life. Of a
    /// threadgroup array it says nothing: loads from it are varying.
    ///
    /// # Panics
    /// If there is no such array.
    pub fn array(&self, alloc: u32) -> Level {
        assert!(
            (alloc as usize) < self.array_count,
            "an array of another kernel"
        );
        self.levels[self.value_count + alloc as usize]
    }

    /// Over whom the threads reach an instruction together, by its number in the order of
    /// [`Kernel::for_each_inst`], from 0.
    ///
    /// # Panics
    /// If there is no such instruction.
    pub fn control(&self, instruction: usize) -> Level {
        self.level(self.controls[instruction])
    }

    /// What is known of a region, by its number: the body is 0, the others are counted in the order
    /// in which their texts begin.
    ///
    /// # Panics
    /// If there is no such region.
    pub fn region(&self, region: usize) -> RegionUniformity {
        let (entry, control) = self.regions[region];
        RegionUniformity {
            entry: self.level(entry),
            control: self.level(control),
        }
    }

    fn level(&self, node: Node) -> Level {
        if node == FREE {
            Level::Grid
        } else {
            self.levels[node as usize]
        }
    }

    /// Why an instruction is not reached together.
    pub(crate) fn why_control(&self, instruction: usize) -> Reason {
        self.why(self.controls[instruction])
    }

    /// Why a value is not the same.
    pub(crate) fn why_value(&self, value: Value) -> Reason {
        self.why(value.0)
    }

    fn why(&self, mut node: Node) -> Reason {
        let mut reason = Reason {
            key: node,
            ..Reason::default()
        };
        while node != FREE {
            let cause = self.causes[node as usize];
            let value = |node: Node| ((node as usize) < self.value_count).then_some(Value(node));
            if let Some(value) = value(node) {
                reason.value = reason.value.or(Some(value));
                reason.root = Some(value);
            } else if let Some(point) = (node as usize)
                .checked_sub(self.value_count + self.array_count)
                .map(|i| self.points[i])
                && point != Point::Meet
            {
                if reason.points.is_empty() {
                    reason.key = node;
                }
                let on = if cause == FREE { None } else { value(cause) };
                reason.points.push((point, on));
            }
            if cause == node {
                break;
            }
            node = cause;
        }
        reason
    }
}

/// Spreads the seeds along the edges, from the lowest level up. A node's level is the least of its
/// seed and of what its edges bring, but what edges bring counts as its floor at least.
fn solve(seeds: &[Level], floors: &[Level], edges: &[(Node, Node)]) -> (Vec<Level>, Vec<Node>) {
    // Edges by source: those of node i are targets[starts[i]..starts[i + 1]].
    let mut starts = vec![0u32; seeds.len() + 1];
    for (from, _) in edges {
        starts[*from as usize + 1] += 1;
    }
    for i in 0..seeds.len() {
        starts[i + 1] += starts[i];
    }
    let mut next = starts.clone();
    let mut targets = vec![0; edges.len()];
    for (from, to) in edges {
        let slot = &mut next[*from as usize];
        targets[*slot as usize] = *to;
        *slot += 1;
    }

    let mut levels = seeds.to_vec();
    let mut causes: Vec<Node> = (0..seeds.len() as Node).collect();
    // What is at each level and has not passed it on; what was lowered since is passed over.
    let mut queues: [Vec<Node>; 3] = Default::default();
    for (node, seed) in seeds.iter().enumerate() {
        if *seed < Level::Grid {
            queues[*seed as usize].push(node as Node);
        }
    }
    for level in [Level::Varying, Level::Simdgroup, Level::Threadgroup] {
        // First in, first out, so that reasons are the shortest.
        let mut at = 0;
        while let Some(&node) = queues[level as usize].get(at) {
            at += 1;
            if levels[node as usize] != level {
                continue;
            }
            let (from, to) = (starts[node as usize], starts[node as usize + 1]);
            for &target in &targets[from as usize..to as usize] {
                let new = level.max(floors[target as usize]);
                if new < levels[target as usize] {
                    levels[target as usize] = new;
                    causes[target as usize] = node;
                    queues[new as usize].push(target);
                }
            }
        }
    }
    (levels, causes)
}

/// Where the walk stands. Each is a node.
#[derive(Clone, Copy)]
struct Flow {
    /// Over whom this point is reached together.
    control: Node,
    /// The same, of the threads that began the iteration of the innermost loop together.
    in_loop: Node,
    /// The `break`s and `continue`s of this iteration before this point.
    left: Node,
    /// The `return`s before this point.
    returned: Node,
}

/// A loop around the walk.
struct Loop<'a> {
    /// Its bounds and its `break`s.
    iterations: Node,
    /// The `return`s in it.
    returns: Node,
    /// The ways into the next iteration: control, and the values that they carry.
    next: Vec<(Node, &'a Values)>,
    /// What each `break` gives.
    breaks: Vec<&'a Values>,
    /// [`Flow::left`] of the loop around it.
    outer_left: Node,
    /// How many regions are around its body.
    depth: usize,
}

struct Walk<'a> {
    module: &'a Module,
    kernel: &'a Kernel,
    seeds: Vec<Level>,
    floors: Vec<Level>,
    edges: Vec<(Node, Node)>,
    points: Vec<Point>,
    controls: Vec<Node>,
    regions: Vec<(Node, Node)>,
    flow: Flow,
    /// The entry of each region around this point, without the body.
    frames: Vec<Node>,
    loops: Vec<Loop<'a>>,
    /// How many regions are around each array's `alloc`.
    array_depth: Vec<usize>,
    definitions: Vec<Option<&'a Inst>>,
    /// A threadgroup is one thread.
    one_thread: bool,
    /// A threadgroup is one simdgroup.
    one_simdgroup: bool,
}

impl<'a> Walk<'a> {
    // ---- the graph ----

    fn point(&mut self, point: Point) -> Node {
        self.seeds.push(Level::Grid);
        self.floors.push(Level::Varying);
        self.points.push(point);
        self.seeds.len() as Node - 1
    }

    fn edge(&mut self, from: Node, to: Node) {
        if from != FREE && to != FREE && from != to {
            self.edges.push((from, to));
        }
    }

    fn meet(&mut self, a: Node, b: Node) -> Node {
        if a == b || b == FREE {
            return a;
        }
        if a == FREE {
            return b;
        }
        let node = self.point(Point::Meet);
        self.edge(a, node);
        self.edge(b, node);
        node
    }

    fn array(&self, alloc: u32) -> Node {
        (self.kernel.values.len() + alloc as usize) as Node
    }

    /// A level, raised where a threadgroup is a single thread or simdgroup.
    fn lifted(&self, level: Level) -> Level {
        match level {
            Level::Varying if self.one_thread => Level::Threadgroup,
            Level::Simdgroup if self.one_simdgroup || self.one_thread => Level::Threadgroup,
            Level::Varying | Level::Simdgroup | Level::Threadgroup | Level::Grid => level,
        }
    }

    /// Says of its own accord over whom the results of an instruction are the same.
    fn seed(&mut self, inst: &Inst, level: Level) {
        let level = self.lifted(level);
        for result in &inst.results {
            self.seeds[result.0 as usize] = level;
        }
    }

    fn results_from(&mut self, inst: &Inst, from: Node) {
        for result in &inst.results {
            self.edge(from, result.0);
        }
    }

    // ---- the walk ----

    fn begin_region(&mut self, entry: Node) {
        self.regions.push((entry, self.flow.control));
    }

    fn region(&mut self, region: &'a Region) {
        for inst in &region.insts {
            self.inst(inst);
        }
    }

    fn inst(&mut self, inst: &'a Inst) {
        self.controls.push(self.flow.control);
        for result in &inst.results {
            self.definitions[result.0 as usize] = Some(inst);
        }
        match &inst.kind {
            InstKind::Op { op, imm, args } => self.op(inst, *op, *imm, args),
            InstKind::Load(place) => {
                if let Some(contents) = self.contents(place.memory) {
                    self.results_from(inst, contents);
                    for index in indices(place) {
                        self.results_from(inst, index.0);
                    }
                } else {
                    self.seed(inst, Level::Varying);
                }
            }
            InstKind::Store { place, value } => {
                if let Memory::Alloc(alloc) = place.memory {
                    let array = self.array(alloc);
                    for index in indices(place) {
                        self.edge(index.0, array);
                    }
                    self.edge(value.0, array);
                    self.control_since(alloc, array);
                }
            }
            InstKind::Atomic { op, .. } => {
                if *op != AtomicOp::Store {
                    self.seed(inst, Level::Varying);
                }
            }
            InstKind::Alloc(alloc) => self.array_depth[*alloc as usize] = self.frames.len(),
            InstKind::Copy { operands, count } => {
                if let Memory::Alloc(alloc) = operands.destination {
                    let array = self.array(alloc);
                    for value in [operands.destination_index, operands.source_index, *count] {
                        self.edge(value.0, array);
                    }
                    match self.contents(operands.source) {
                        Some(contents) => self.edge(contents, array),
                        None => self.seeds[array as usize] = self.lifted(Level::Varying),
                    }
                    self.control_since(alloc, array);
                }
            }
            InstKind::AssertUniform { value, scope } => {
                let floor = self.lifted(Level::from(*scope));
                for result in &inst.results {
                    self.floors[result.0 as usize] = floor;
                    self.edge(value.0, result.0);
                }
            }
            InstKind::If {
                condition,
                then,
                otherwise,
            } => self.if_(inst, *condition, then, otherwise),
            InstKind::For {
                lower,
                upper,
                step,
                init,
                body,
            } => {
                let bounds = self.point(Point::Iterations { span: inst.span });
                for value in [upper, lower, step] {
                    self.edge(value.0, bounds);
                }
                if let Some((index, carried)) = body.params.split_first() {
                    self.edge(lower.0, index.0);
                    self.edge(step.0, index.0);
                    self.loop_(inst, bounds, init, carried, body);
                    // Without a `break` a thread leaves with what it carries.
                    for (result, carried) in inst.results.iter().zip(carried) {
                        self.edge(carried.0, result.0);
                    }
                }
            }
            InstKind::Loop { init, body } => self.loop_(inst, FREE, init, &body.params, body),
            // The walk over the `if` or loop takes a `yield` at the region's end.
            InstKind::Yield(_) => {}
            InstKind::Break(values) => {
                let exit = self.exit(inst, "break", self.flow.in_loop);
                self.flow.left = self.meet(self.flow.left, exit);
                if let Some(around) = self.loops.last_mut() {
                    around.breaks.push(values);
                    let iterations = around.iterations;
                    self.edge(exit, iterations);
                }
            }
            InstKind::Continue(values) => {
                let exit = self.exit(inst, "continue", self.flow.in_loop);
                self.flow.left = self.meet(self.flow.left, exit);
                if let Some(around) = self.loops.last_mut() {
                    around.next.push((exit, values));
                }
            }
            InstKind::Return => {
                let exit = self.exit(inst, "return", self.flow.control);
                self.flow.returned = self.meet(self.flow.returned, exit);
                if let Some(around) = self.loops.last() {
                    let returns = around.returns;
                    self.edge(exit, returns);
                }
            }
            other => match other.meets() {
                // Events and simdgroup matrices are the simdgroup's together.
                Some(scope) => self.seed(inst, Level::from(scope)),
                None if other.accesses().is_empty() => {
                    other.for_each_use(|value| self.results_from(inst, value.0));
                }
                None => self.seed(inst, Level::Varying),
            },
        }
    }

    /// A way out at this point; free if all threads take it together.
    fn exit(&mut self, inst: &Inst, name: &'static str, control: Node) -> Node {
        if control == FREE {
            return FREE;
        }
        let span = inst.span;
        let exit = self.point(Point::Exit { span, name });
        self.edge(control, exit);
        exit
    }

    /// What stands for the contents of a memory object; none if they may change between one
    /// thread's load and another's.
    fn contents(&self, memory: Memory) -> Option<Node> {
        let info = self.module.memory(self.kernel, memory)?;
        match (info.space, memory) {
            (AddressSpace::Constant, _) => Some(FREE),
            (AddressSpace::Device, _) => (info.access == Access::Read).then_some(FREE),
            (AddressSpace::Thread, Memory::Alloc(alloc)) => Some(self.array(alloc)),
            (AddressSpace::Thread, Memory::Param(_) | Memory::Constant(_))
            | (AddressSpace::Threadgroup | AddressSpace::Texture | AddressSpace::Imageblock, _) => {
                None
            }
        }
    }

    /// Threads that an `if` or a loop since the array's `alloc` keeps from this point do not store.
    fn control_since(&mut self, alloc: u32, array: Node) {
        let depth = self.array_depth[alloc as usize];
        for i in depth..self.frames.len() {
            self.edge(self.frames[i], array);
        }
        let mut left = self.flow.left;
        for i in (0..self.loops.len()).rev() {
            if self.loops[i].depth < depth {
                break;
            }
            self.edge(left, array);
            left = self.loops[i].outer_left;
        }
    }

    fn if_(&mut self, inst: &'a Inst, condition: Value, then: &'a Region, otherwise: &'a Region) {
        let entry = self.point(Point::If {
            span: inst.span,
            number: self.controls.len() as u32 - 1,
        });
        self.edge(condition.0, entry);
        self.frames.push(entry);
        let before = self.flow;
        let inside = Flow {
            control: self.meet(before.control, entry),
            in_loop: self.meet(before.in_loop, entry),
            ..before
        };
        let mut yields = Vec::new();
        let mut after = before;
        for region in [then, otherwise] {
            self.flow = inside;
            self.begin_region(entry);
            self.region(region);
            if self.flow.left != before.left {
                after.left = self.meet(after.left, self.flow.left);
            }
            if self.flow.returned != before.returned {
                after.returned = self.meet(after.returned, self.flow.returned);
            }
            yields.extend(yielded(region));
        }
        self.frames.pop();
        if after.left != before.left {
            after.control = self.meet(after.control, after.left);
            after.in_loop = self.meet(after.in_loop, after.left);
        }
        if after.returned != before.returned {
            after.control = self.meet(after.control, after.returned);
        }
        self.flow = after;
        for values in &yields {
            for (result, value) in inst.results.iter().zip(values.iter()) {
                self.edge(value.0, result.0);
            }
        }
        // If only one side comes to its end, all who come after took that one.
        if yields.len() == 2 {
            self.results_from(inst, entry);
        }
    }

    fn loop_(
        &mut self,
        inst: &'a Inst,
        bounds: Node,
        init: &'a Values,
        carried: &'a [Value],
        body: &'a Region,
    ) {
        let iterations = self.point(Point::Meet);
        self.edge(bounds, iterations);
        let returns = self.point(Point::Meet);
        let before = self.flow;
        self.loops.push(Loop {
            iterations,
            returns,
            next: Vec::new(),
            breaks: Vec::new(),
            outer_left: before.left,
            depth: self.frames.len(),
        });
        self.frames.push(iterations);
        let control = self.meet(before.control, iterations);
        self.flow = Flow {
            control: self.meet(control, returns),
            in_loop: FREE,
            left: FREE,
            returned: before.returned,
        };
        self.begin_region(iterations);
        self.region(body);
        let end = self.flow;
        self.frames.pop();
        let Some(mut this) = self.loops.pop() else {
            return;
        };
        if let Some(values) = yielded(body) {
            this.next.push((end.in_loop, values));
        }
        let ways = this.next.len();
        for (param, value) in carried.iter().zip(init) {
            self.edge(value.0, param.0);
        }
        for (control, values) in this.next {
            for (param, value) in carried.iter().zip(values) {
                self.edge(value.0, param.0);
                if ways > 1 {
                    self.edge(control, param.0);
                }
            }
        }
        for values in this.breaks {
            for (result, value) in inst.results.iter().zip(values) {
                self.edge(value.0, result.0);
            }
        }
        self.results_from(inst, iterations);
        self.flow = before;
        if end.returned != before.returned {
            self.flow.returned = end.returned;
            self.flow.control = self.meet(before.control, end.returned);
            if let Some(around) = self.loops.last() {
                let outer = around.returns;
                self.edge(returns, outer);
            }
        }
    }

    fn op(&mut self, inst: &Inst, op: Op, imm: Imm, args: &Values) {
        if self.is_simdgroup_number(op, args) || self.is_end_of_simdgroups(op, args) {
            self.seed(inst, Level::Simdgroup);
            return;
        }
        match op.row().uniformity {
            ResultUniformity::Operands => {
                for arg in args {
                    self.results_from(inst, arg.0);
                }
            }
            ResultUniformity::Over(scope) => self.seed(inst, Level::from(scope)),
            ResultUniformity::Varying => {
                let level = self.fixed_position(op, imm).unwrap_or(Level::Varying);
                self.seed(inst, level);
            }
        }
    }

    /// In a dimension in which a threadgroup is one thread wide, a thread's position is 0 in the
    /// threadgroup, and the threadgroup's in the grid.
    fn fixed_position(&self, op: Op, imm: Imm) -> Option<Level> {
        let (size, Imm::Dim(dim)) = (self.kernel.threadgroup_size?, imm) else {
            return None;
        };
        if size[dim as usize] != 1 {
            return None;
        }
        match op {
            Op::ThreadPositionInThreadgroup => Some(Level::Grid),
            Op::ThreadPositionInGrid => Some(Level::Threadgroup),
            _other_row => None,
        }
    }

    /// Whether this divides threads' numbers by a multiple of the simdgroup size, which gives all
    /// threads of a simdgroup one quotient (X2).
    fn is_simdgroup_number(&self, op: Op, args: &[Value]) -> bool {
        let (Some(simdgroup), &[number, by]) = (self.kernel.simdgroup_size, args) else {
            return false;
        };
        let Some(InstKind::Const(by)) = self.definition(by) else {
            return false;
        };
        let divisor = match op {
            // Of a signed type the sign bit is set in a negative divisor, which is none.
            Op::Div if by.scalar.is_signed_integer() && by.bits >> (by.scalar.bits() - 1) != 0 => 0,
            Op::Div => by.bits,
            // Counts are taken modulo the width (A3).
            Op::Shr | Op::ShrExact => 1 << (by.bits % u64::from(by.scalar.bits())),
            _other_row => 0,
        };
        divisor > 0
            && simdgroup > 0
            && divisor % u64::from(simdgroup) == 0
            && self.is_thread_number(number, simdgroup)
    }

    /// Whether this asks on which side of a multiple of the simdgroup size threads' numbers lie, where the threads of
    /// a simdgroup are all on one (X2).
    fn is_end_of_simdgroups(&self, op: Op, args: &[Value]) -> bool {
        let (Some(simdgroup), &[a, b]) = (self.kernel.simdgroup_size, args) else {
            return false;
        };
        let constant = |value| match self.definition(value) {
            Some(InstKind::Const(constant)) => Some(*constant),
            _other => None,
        };
        let (op, number, end) = match (op, constant(a), constant(b)) {
            (_, None, Some(end)) => (op, a, end),
            (Op::Lt, Some(end), None) => (Op::Gt, b, end),
            (Op::Le, Some(end), None) => (Op::Ge, b, end),
            (Op::Gt, Some(end), None) => (Op::Lt, b, end),
            (Op::Ge, Some(end), None) => (Op::Le, b, end),
            _other => return false,
        };
        let is_negative =
            end.scalar.is_signed_integer() && end.bits >> (end.scalar.bits() - 1) != 0;
        // The first number on the other side.
        let first = match op {
            Op::Lt | Op::Ge => Some(end.bits),
            Op::Le | Op::Gt => end.bits.checked_add(1),
            _other_row => None,
        };
        !is_negative
            && simdgroup > 0
            && first.is_some_and(|first| first % u64::from(simdgroup) == 0)
            && self.is_thread_number(number, simdgroup)
    }

    fn definition(&self, value: Value) -> Option<&'a InstKind> {
        self.definitions[value.0 as usize].map(|inst| &inst.kind)
    }

    /// Whether a value numbers threads so that each simdgroup has an aligned run of numbers: the
    /// thread's number in its threadgroup; its x position in a threadgroup of one dimension; its x
    /// position in the grid if such threadgroups are whole simdgroups. Conversions that keep the
    /// number may stand in between.
    fn is_thread_number(&self, value: Value, simdgroup: u32) -> bool {
        let size = self.kernel.threadgroup_size;
        let mut at = value;
        let mut narrowed = false;
        // Chains of conversions are short; a longer one is not looked through.
        for _ in 0..4 {
            let Some(InstKind::Op { op, imm, args }) = self.definition(at) else {
                return false;
            };
            match (*op, *imm, size) {
                (Op::Cast, Imm::Type(Type::Scalar(to)), _) => {
                    match to {
                        Scalar::U32 | Scalar::U64 | Scalar::I64 => {}
                        Scalar::I32 => narrowed = true,
                        _too_narrow => return false,
                    }
                    at = args[0];
                }
                (Op::ThreadIndexInThreadgroup, _, size) => {
                    return !narrowed || size.is_some_and(|size| thread_count(size) <= 1 << 31);
                }
                (Op::ThreadPositionInThreadgroup, Imm::Dim(Dim::X), Some([x, 1, 1])) => {
                    return !narrowed || x <= 1 << 31;
                }
                (Op::ThreadPositionInGrid, Imm::Dim(Dim::X), Some([x, 1, 1])) => {
                    return !narrowed && x % simdgroup == 0;
                }
                _other_row => return false,
            }
        }
        false
    }
}

fn thread_count(size: [u32; 3]) -> u128 {
    size.into_iter().map(u128::from).product()
}

/// The values that a region yields, if it comes to its end.
fn yielded(region: &Region) -> Option<&Values> {
    match region.insts.last().map(|inst| &inst.kind) {
        Some(InstKind::Yield(values)) => Some(values),
        _leaves_or_empty => None,
    }
}

/// The indices of a place.
fn indices(place: &Place) -> impl Iterator<Item = Value> + '_ {
    let path = place.path.iter().filter_map(|step| match step {
        Step::Field(_) => None,
        Step::Index(value) => Some(*value),
    });
    std::iter::once(place.index).chain(path)
}
