//! How values differ over the threads of a chunk, and which loops need masks.
//!
//! A forward analysis to a fixed point, optimistic at loops. What it says of a value is what the emitter
//! counts on where ways meet (results of an `if`, values that a loop carries); elsewhere the emitter may
//! know better. Its rules must be those of the emitter: a value that is emitted less regular than its
//! class would lose lanes.
//!
//! Deliberately absent: relations between chunks. That is `invar_ir::uniformity`'s.

use std::collections::{HashMap, HashSet};

use invar_ir::inst::{AtomicOp, InstKind, Memory, Place, Region, Step, Value};
use invar_ir::ops::{Dim, Imm, Meaning};
use invar_ir::{AddressSpace, Inst, Kernel, Level, Op, Type, Uniformity};

use crate::value::Shape;

/// How a value differs over a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Not known to be computed yet.
    Unknown,
    /// The same for the chunk.
    Uniform,
    /// Grows by this much from lane to lane of each vector; if `exact`, without wrapping.
    Stride { by: i64, exact: bool },
    /// In any way.
    Varying,
}

/// The same in the lanes of each vector.
pub(crate) const BY_VECTOR: Class = Class::Stride { by: 0, exact: true };

impl Class {
    fn join(self, other: Class) -> Class {
        match (self, other) {
            (Class::Unknown, c) | (c, Class::Unknown) => c,
            (a, b) if a == b => a,
            (Class::Uniform, BY_VECTOR) | (BY_VECTOR, Class::Uniform) => BY_VECTOR,
            (Class::Stride { by: a, .. }, Class::Stride { by: b, .. }) if a == b => Class::Stride {
                by: a,
                exact: false,
            },
            (Class::Uniform | Class::Stride { .. } | Class::Varying, _) => Class::Varying,
        }
    }

    const fn stride(self) -> Option<i64> {
        match self {
            Class::Uniform => Some(0),
            Class::Stride { by, .. } => Some(by),
            Class::Unknown | Class::Varying => None,
        }
    }

    const fn is_exact(self) -> bool {
        match self {
            Class::Uniform | Class::Unknown => true,
            Class::Stride { exact, .. } => exact,
            Class::Varying => false,
        }
    }
}

/// How positions differ over a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Positions {
    /// A chunk lies in rows: x grows, y is that of the vector.
    Rows,
    /// A chunk is cut from a row by number: x grows, y and z are its own.
    InRow,
    /// A chunk is cut by number from anywhere: only the number grows.
    Anywhere,
}

/// An instruction, by its place in memory.
pub(crate) type InstKey = *const Inst;

/// The result of the analysis.
#[derive(Clone, Debug)]
pub(crate) struct Classes {
    values: Vec<Class>,
    /// Loops whose threads take different numbers of rounds.
    masked: HashSet<InstKey>,
}

impl Classes {
    pub fn of(&self, value: Value) -> Class {
        self.values[value.0 as usize]
    }

    pub fn is_masked(&self, inst: &Inst) -> bool {
        self.masked.contains(&std::ptr::from_ref(inst))
    }

    /// How many loops need masks.
    pub fn masked_loops(&self) -> usize {
        self.masked.len()
    }
}

/// What the analysis is about.
pub(crate) struct Question<'a> {
    pub kernel: &'a Kernel,
    pub uniformity: &'a Uniformity,
    /// The level from which a value is the same for a chunk.
    pub level: Level,
    pub shape: Shape,
    pub positions: Positions,
    /// Instructions that all threads of a threadgroup go through together, outside of chunks.
    pub together: &'a HashSet<InstKey>,
    /// Values that have at least this class, whatever computes them.
    pub at_least: &'a HashMap<Value, Class>,
}

pub(crate) fn analyse(question: &Question<'_>) -> Classes {
    let mut walk = Walk {
        q: question,
        classes: Classes {
            values: vec![Class::Unknown; question.kernel.values.len()],
            masked: HashSet::new(),
        },
        constants: HashMap::new(),
        changed: true,
        divergence: 0,
        loops: Vec::new(),
    };
    question.kernel.for_each_inst(&mut |inst| {
        if let InstKind::Const(c) = inst.kind
            && c.scalar.is_integer()
        {
            let shift = 64 - c.scalar.bits();
            let value = if c.scalar.is_signed_integer() {
                ((c.bits << shift) as i64) >> shift
            } else {
                c.bits as i64
            };
            walk.constants.insert(inst.results[0], value);
        }
    });
    for param in &question.kernel.params {
        if let invar_ir::ParamKind::Scalar { value } = param.kind {
            walk.classes.values[value.0 as usize] = Class::Uniform;
        }
    }
    while walk.changed {
        walk.changed = false;
        walk.region(&question.kernel.body);
    }
    // What nothing reached is in code that cannot run.
    for class in &mut walk.classes.values {
        if *class == Class::Unknown {
            *class = Class::Varying;
        }
    }
    walk.classes
}

struct Frame<'a> {
    inst: &'a Inst,
    /// The divergence right inside.
    divergence: u32,
}

struct Walk<'a> {
    q: &'a Question<'a>,
    classes: Classes,
    constants: HashMap<Value, i64>,
    changed: bool,
    /// How many divergent ifs and masked loops are around.
    divergence: u32,
    loops: Vec<Frame<'a>>,
}

impl<'a> Walk<'a> {
    fn of(&self, value: Value) -> Class {
        self.classes.of(value)
    }

    fn set(&mut self, value: Value, class: Class) {
        let ty = self.q.kernel.ty(value);
        let whole = matches!(ty, Type::SimdgroupMatrix { .. } | Type::Event);
        let class = if whole && class != Class::Unknown {
            Class::Uniform
        } else {
            let least = self.q.at_least.get(&value).copied();
            class.join(least.unwrap_or(Class::Unknown))
        };
        let old = self.classes.values[value.0 as usize];
        let new = old.join(class);
        if new != old {
            self.classes.values[value.0 as usize] = new;
            self.changed = true;
        }
    }

    fn mask(&mut self, inst: &Inst) {
        let together = self.q.together.contains(&std::ptr::from_ref(inst));
        if !together && self.classes.masked.insert(std::ptr::from_ref(inst)) {
            self.changed = true;
        }
    }

    fn region(&mut self, region: &'a Region) {
        for inst in &region.insts {
            self.inst(inst);
        }
    }

    fn inst(&mut self, inst: &'a Inst) {
        let together = self.q.together.contains(&std::ptr::from_ref(inst));
        match &inst.kind {
            InstKind::Const(_) | InstKind::FunctionConstant(_) | InstKind::BufferLength(_) => {
                self.set(inst.results[0], Class::Uniform);
            }
            InstKind::Op { op, imm, args } => {
                let class = self.op(*op, *imm, args, inst.results[0]);
                self.set(inst.results[0], class);
            }
            InstKind::Load(place) => {
                let class = self.load(place, inst.results[0]);
                self.set(inst.results[0], class);
            }
            InstKind::Atomic { op, .. } => {
                debug_assert!(op.reads() || *op == AtomicOp::Store);
                for result in &inst.results {
                    self.set(*result, Class::Varying);
                }
            }
            InstKind::AsyncCopy { .. }
            | InstKind::MatrixFill { .. }
            | InstKind::MatrixLoad { .. }
            | InstKind::MatrixMultiplyAccumulate { .. }
            | InstKind::AssertUniform { .. } => self.set(inst.results[0], Class::Uniform),
            InstKind::Store { .. }
            | InstKind::Alloc(_)
            | InstKind::Copy { .. }
            | InstKind::Wait { .. }
            | InstKind::Barrier { .. }
            | InstKind::MatrixStore { .. } => {}
            InstKind::If {
                condition,
                then,
                otherwise,
            } => {
                let uneven = !matches!(self.of(*condition), Class::Uniform | Class::Unknown);
                let divergent = !together && uneven;
                self.divergence += u32::from(divergent);
                self.region(then);
                self.region(otherwise);
                self.divergence -= u32::from(divergent);
                let yields: Vec<&[Value]> = [then, otherwise]
                    .into_iter()
                    .filter_map(|r| match &r.insts.last()?.kind {
                        InstKind::Yield(values) => Some(&values[..]),
                        _leaves => None,
                    })
                    .collect();
                for (i, result) in inst.results.iter().enumerate() {
                    let joined = yields
                        .iter()
                        .fold(Class::Unknown, |c, values| c.join(self.of(values[i])));
                    // Of two values one is picked lane by lane.
                    let picked = divergent && yields.len() > 1;
                    let class = if picked { Class::Varying } else { joined };
                    self.set(*result, class);
                }
            }
            InstKind::For {
                lower,
                upper,
                step,
                init,
                body,
            } => {
                let bounds = [*lower, *upper, *step].map(|v| self.of(v));
                if bounds
                    .iter()
                    .any(|c| !matches!(c, Class::Uniform | Class::Unknown))
                {
                    self.mask(inst);
                }
                let index = match bounds {
                    [Class::Unknown, ..] => Class::Unknown,
                    [lower, _, Class::Uniform | Class::Unknown] => lower,
                    [lower, _, step] if [lower, step].iter().all(|c| c.stride() == Some(0)) => {
                        BY_VECTOR
                    }
                    _uneven => Class::Varying,
                };
                self.set(body.params[0], index);
                self.rounds(inst, init, &body.params[1..], body);
                let masked = self.classes.is_masked(inst);
                for (param, result) in body.params[1..].iter().zip(&inst.results) {
                    let class = if masked {
                        Class::Varying
                    } else {
                        self.of(*param)
                    };
                    self.set(*result, class);
                }
            }
            InstKind::Loop { init, body } => self.rounds(inst, init, &body.params, body),
            InstKind::Yield(values) => {
                // Of an `if` its results say; of a loop these are the next round's.
                debug_assert!(values.len() < usize::MAX);
            }
            InstKind::Break(values) => {
                if let Some(frame) = self.loops.last() {
                    let (target, own) = (frame.inst, frame.divergence);
                    if self.divergence > own {
                        self.mask(target);
                    }
                    let masked = self.classes.is_masked(target);
                    for (result, value) in target.results.iter().zip(values) {
                        let class = if masked {
                            Class::Varying
                        } else {
                            self.of(*value)
                        };
                        self.set(*result, class);
                    }
                }
            }
            InstKind::Continue(values) => {
                if let Some(frame) = self.loops.last() {
                    let (target, own) = (frame.inst, frame.divergence);
                    if self.divergence > own {
                        self.mask(target);
                    }
                    let mixed = self.classes.is_masked(target);
                    for (param, value) in carried(target).iter().zip(values) {
                        let class = if mixed {
                            Class::Varying
                        } else {
                            self.of(*value)
                        };
                        self.set(*param, class);
                    }
                }
            }
            InstKind::Return => {
                if self.divergence > 0 {
                    for i in 0..self.loops.len() {
                        let target = self.loops[i].inst;
                        self.mask(target);
                    }
                }
            }
        }
    }

    fn rounds(&mut self, inst: &'a Inst, init: &[Value], params: &[Value], body: &'a Region) {
        for (param, value) in params.iter().zip(init) {
            let class = self.of(*value);
            self.set(*param, class);
        }
        let masked = u32::from(self.classes.is_masked(inst));
        self.divergence += masked;
        self.loops.push(Frame {
            inst,
            divergence: self.divergence,
        });
        self.region(body);
        self.loops.pop();
        self.divergence -= masked;
        if let Some(InstKind::Yield(values)) = body.insts.last().map(|i| &i.kind) {
            let mixed = masked > 0 && has_continue(body);
            for (param, value) in params.iter().zip(values) {
                let class = if mixed {
                    Class::Varying
                } else {
                    self.of(*value)
                };
                self.set(*param, class);
            }
        }
    }

    fn op(&self, op: Op, imm: Imm, args: &[Value], result: Value) -> Class {
        let classes: Vec<Class> = args.iter().map(|v| self.of(*v)).collect();
        match op.row().meaning {
            Meaning::Query => return self.query(op, imm),
            Meaning::Lanes(..) => {
                let level = self.q.uniformity.of(result);
                return if level >= self.q.level {
                    Class::Uniform
                } else if level >= Level::Simdgroup {
                    BY_VECTOR
                } else {
                    Class::Varying
                };
            }
            Meaning::Eval(_) | Meaning::Expand(_) | Meaning::Arrange => {}
        }
        if classes.contains(&Class::Unknown) {
            return Class::Unknown;
        }
        if classes.iter().all(|c| *c == Class::Uniform) {
            return Class::Uniform;
        }
        if classes.iter().all(|c| c.stride() == Some(0)) {
            return BY_VECTOR;
        }
        let ty = self.q.kernel.ty(result);
        if !ty.is_integer_scalar() {
            return Class::Varying;
        }
        let strides: Option<Vec<i64>> = classes.iter().map(|c| c.stride()).collect();
        let Some(strides) = strides else {
            return Class::Varying;
        };
        let constant = |i: usize| self.constants.get(&args[i]).copied();
        affine(op, &strides, constant, || {
            let from = self.q.kernel.ty(args[0]);
            widening(from, ty, classes[0].is_exact())
        })
        .map_or(Class::Varying, |(by, exact)| {
            if by == 0 {
                BY_VECTOR
            } else {
                Class::Stride { by, exact }
            }
        })
    }

    fn query(&self, op: Op, imm: Imm) -> Class {
        const GROWS: Class = Class::Stride { by: 1, exact: true };
        // Where threadgroups are one thread, or one thread wide, the answer is a scalar.
        let size = self.q.kernel.threadgroup_size;
        match (op, imm) {
            (
                Op::ThreadIndexInThreadgroup
                | Op::ThreadIndexInSimdgroup
                | Op::ThreadIndexInQuadgroup
                | Op::QuadgroupIndexInThreadgroup,
                _,
            ) if size == Some([1; 3]) => Class::Uniform,
            (Op::ThreadPositionInGrid | Op::ThreadPositionInThreadgroup, Imm::Dim(dim))
                if size.is_some_and(|size| size[dim as usize] == 1) =>
            {
                Class::Uniform
            }
            (Op::ThreadPositionInGrid | Op::ThreadPositionInThreadgroup, Imm::Dim(dim)) => {
                match (self.q.positions, dim) {
                    (Positions::Anywhere, _) => Class::Varying,
                    (Positions::Rows | Positions::InRow, Dim::X) => GROWS,
                    (Positions::Rows, Dim::Y) if self.q.shape.rows > 1 => BY_VECTOR,
                    (Positions::Rows | Positions::InRow, Dim::Y | Dim::Z) => Class::Uniform,
                }
            }
            (Op::ThreadIndexInThreadgroup | Op::ThreadIndexInSimdgroup, _) => GROWS,
            (Op::ThreadIndexInQuadgroup | Op::QuadgroupIndexInThreadgroup, _) => Class::Varying,
            (Op::SimdgroupIndexInThreadgroup, _) if self.q.level > Level::Simdgroup => BY_VECTOR,
            _same_for_a_simdgroup => Class::Uniform,
        }
    }

    fn load(&self, place: &Place, result: Value) -> Class {
        if self.q.uniformity.of(result) >= self.q.level {
            return Class::Uniform;
        }
        if is_thread_memory(self.q.kernel, place.memory) {
            return Class::Varying;
        }
        let mut class = self.of(place.index);
        for step in &place.path {
            if let Step::Index(index) = step {
                class = class.join(self.of(*index));
            }
        }
        match class {
            Class::Unknown | Class::Uniform | BY_VECTOR => class,
            Class::Stride { .. } | Class::Varying => Class::Varying,
        }
    }
}

/// Whether a cast keeps the strides of what it widens: `None` if not, else whether the result is exact.
pub(crate) fn widening(from: Type, to: Type, exact: bool) -> Option<bool> {
    let (Some(from), Some(to)) = (from.scalar(), to.scalar()) else {
        return None;
    };
    if !from.is_integer() {
        return None;
    }
    if from.bits() >= to.bits() {
        return Some(exact && from == to);
    }
    exact.then_some(from.is_unsigned_integer() || to.is_signed_integer())
}

/// The stride of an operation's result from those of its operands, and whether it is exact; `None` if
/// it has none. `constant` gives the value of an operand that is one; `cast` says what [`widening`]
/// does.
pub(crate) fn affine(
    op: Op,
    strides: &[i64],
    constant: impl Fn(usize) -> Option<i64>,
    cast: impl FnOnce() -> Option<bool>,
) -> Option<(i64, bool)> {
    const LIMIT: i64 = 1 << 32;
    let by = match op {
        Op::Add => strides[0] + strides[1],
        Op::Sub => strides[0] - strides[1],
        Op::Neg => -strides[0],
        Op::Mul if strides[1] == 0 => strides[0].checked_mul(constant(1)?)?,
        Op::Mul if strides[0] == 0 => strides[1].checked_mul(constant(0)?)?,
        Op::Shl if strides[1] == 0 => {
            let count = constant(1).filter(|c| (0..8).contains(c))?;
            strides[0].checked_mul(1 << count)?
        }
        Op::Cast => return cast().map(|exact| (strides[0], exact)),
        _no_line => return None,
    };
    (-LIMIT..LIMIT).contains(&by).then_some((by, false))
}

/// Whether a memory object is a thread array.
pub(crate) fn is_thread_memory(kernel: &Kernel, memory: Memory) -> bool {
    match memory {
        Memory::Alloc(i) => kernel.allocs[i as usize].space == AddressSpace::Thread,
        Memory::Param(_) | Memory::Constant(_) => false,
    }
}

/// The parameters that a loop carries.
pub(crate) fn carried(inst: &Inst) -> &[Value] {
    match &inst.kind {
        InstKind::For { body, .. } => &body.params[1..],
        InstKind::Loop { body, .. } => &body.params,
        _no_loop => &[],
    }
}

/// Whether a loop's body holds a `continue` of that loop.
pub(crate) fn has_continue(body: &Region) -> bool {
    leaves(body, &|kind| matches!(kind, InstKind::Continue(_)))
}

/// Whether a loop's body holds a `break` or `continue` of that loop.
pub(crate) fn has_exit(body: &Region) -> bool {
    leaves(body, &|kind| {
        matches!(kind, InstKind::Break(_) | InstKind::Continue(_))
    })
}

/// Whether a region holds a terminator of this kind that is its own loop's, not one of a loop inside.
fn leaves(region: &Region, is: &dyn Fn(&InstKind) -> bool) -> bool {
    region.insts.iter().any(|inst| match &inst.kind {
        InstKind::If {
            then, otherwise, ..
        } => leaves(then, is) || leaves(otherwise, is),
        kind => is(kind),
    })
}

/// Whether an instruction holds a `break` or `continue` of a loop around it.
pub(crate) fn leaves_loop(inst: &Inst) -> bool {
    let is = |kind: &InstKind| matches!(kind, InstKind::Break(_) | InstKind::Continue(_));
    match &inst.kind {
        InstKind::If {
            then, otherwise, ..
        } => leaves(then, &is) || leaves(otherwise, &is),
        kind => is(kind),
    }
}

/// Whether an instruction is or holds a `return`.
pub(crate) fn returns(inst: &Inst) -> bool {
    matches!(inst.kind, InstKind::Return)
        || inst
            .kind
            .regions()
            .iter()
            .any(|r| r.insts.iter().any(returns))
}
