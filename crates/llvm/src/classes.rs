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
    /// Grows by this much from lane to lane of each vector; if `exact`, without wrapping. In the first
    /// lane it is a multiple of two to the `aligned`.
    Stride { by: i64, exact: bool, aligned: u32 },
    /// In any way.
    Varying,
}

/// The same in the lanes of each vector.
pub(crate) const BY_VECTOR: Class = Class::Stride {
    by: 0,
    exact: true,
    aligned: 0,
};

impl Class {
    fn join(self, other: Class) -> Class {
        match (self, other) {
            (Class::Unknown, c) | (c, Class::Unknown) => c,
            (a, b) if a == b => a,
            (Class::Uniform, BY_VECTOR) | (BY_VECTOR, Class::Uniform) => BY_VECTOR,
            (Class::Stride { .. }, Class::Stride { .. }) if self.stride() == other.stride() => {
                let (a, b) = (self.line(), other.line());
                Class::Stride {
                    by: a.stride,
                    exact: a.exact && b.exact,
                    aligned: a.aligned.min(b.aligned),
                }
            }
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

    /// The class of a counted loop's index that begins with this one, by its step.
    fn aligned_at_most(self, step: Option<i64>) -> Class {
        match self {
            Class::Stride { by, exact, aligned } => Class::Stride {
                by,
                exact,
                aligned: aligned.min(step.map_or(0, i64::trailing_zeros)),
            },
            Class::Uniform | Class::Unknown | Class::Varying => self,
        }
    }

    /// As an operand of [`affine`]; of what has no stride it means nothing.
    fn line(self) -> Line {
        match self {
            Class::Stride { by, exact, aligned } => Line {
                stride: by,
                exact,
                aligned,
            },
            Class::Uniform | Class::Unknown | Class::Varying => Line {
                stride: 0,
                exact: self != Class::Varying,
                aligned: 0,
            },
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
    /// The full size of threadgroups, if it is known.
    pub threadgroup_size: Option<[u32; 3]>,
}

impl Question<'_> {
    fn aligned(&self, op: Op) -> u32 {
        alignment(op, self.shape, self.threadgroup_size)
    }
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
    // What nothing reached is in code that cannot run. Uniform, it can be handed on as any class.
    for class in &mut walk.classes.values {
        if *class == Class::Unknown {
            *class = Class::Uniform;
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
                    [lower, _, Class::Uniform | Class::Unknown] => {
                        lower.aligned_at_most(self.constants.get(step).copied())
                    }
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
        if classes.iter().any(|c| c.stride().is_none()) {
            return Class::Varying;
        }
        let lines: Vec<Line> = classes.iter().map(|c| c.line()).collect();
        let constant = |i: usize| self.constants.get(&args[i]).copied();
        let types = (self.q.kernel.ty(args[0]), ty);
        affine(op, types, self.q.shape.width, &lines, constant).map_or(Class::Varying, |line| {
            if line.stride == 0 {
                BY_VECTOR
            } else {
                Class::Stride {
                    by: line.stride,
                    exact: line.exact,
                    aligned: line.aligned,
                }
            }
        })
    }

    fn query(&self, op: Op, imm: Imm) -> Class {
        let grows = |aligned| Class::Stride {
            by: 1,
            exact: true,
            aligned,
        };
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
                let aligned = self.q.aligned(op);
                match (self.q.positions, dim) {
                    (Positions::Anywhere, _) => Class::Varying,
                    (Positions::Rows | Positions::InRow, Dim::X) => grows(aligned),
                    (Positions::Rows, Dim::Y) if self.q.shape.rows > 1 => BY_VECTOR,
                    (Positions::Rows | Positions::InRow, Dim::Y | Dim::Z) => Class::Uniform,
                }
            }
            (Op::ThreadIndexInThreadgroup | Op::ThreadIndexInSimdgroup, _) => {
                grows(self.q.aligned(op))
            }
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

/// Positions and indices in lane 0 of a vector are multiples of two to this. `fixed`: the full size of
/// threadgroups, if it is known.
pub(crate) fn alignment(op: Op, shape: Shape, fixed: Option<[u32; 3]>) -> u32 {
    let vector = shape.width.trailing_zeros();
    // In one row, chunks are cut at multiples of their lanes, by number or by x.
    let one_row = fixed.is_some_and(|[_, y, z]| y == 1 && z == 1);
    let x = if one_row || !shape.linear { vector } else { 0 };
    match op {
        Op::ThreadIndexInSimdgroup => vector,
        Op::ThreadIndexInThreadgroup if one_row || shape.linear => vector,
        Op::ThreadPositionInThreadgroup => x,
        Op::ThreadPositionInGrid => fixed.map_or(0, |[size, _, _]| x.min(size.trailing_zeros())),
        _differs => 0,
    }
}

/// What [`Class::Stride`] says, and of a value that is the same for a vector: a stride of 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub stride: i64,
    pub exact: bool,
    pub aligned: u32,
}

/// What an operation makes of lines, in vectors of `width` lanes; `None` if no line. `constant` gives
/// the value of an operand that is one; `types` are the first operand's and the result's.
pub(crate) fn affine(
    op: Op,
    (from, to): (Type, Type),
    width: u32,
    lines: &[Line],
    constant: impl Fn(usize) -> Option<i64>,
) -> Option<Line> {
    const LIMIT: i64 = 1 << 32;
    let (Some(from), Some(to)) = (from.scalar(), to.scalar()) else {
        return None;
    };
    if !from.is_integer() || !to.is_integer() {
        return None;
    }
    let zeros = |n: i64| if n == 0 { 64 } else { n.trailing_zeros() };
    let aligned = |i: usize| match constant(i) {
        Some(c) => zeros(c),
        None => lines[i].aligned,
    };
    let wraps = |stride: i64, aligned: u32| {
        (-LIMIT..LIMIT).contains(&stride).then_some(Line {
            stride,
            exact: false,
            aligned: aligned.min(to.bits()),
        })
    };
    let times = |i: usize, c: i64| wraps(lines[i].stride.checked_mul(c)?, aligned(i) + zeros(c));
    // All lanes lie between two multiples of `by`, because they begin with one of a number that divides
    // `by` and go less far: `floor((base + step) / by) = floor(base / by)`, and remainders grow as the
    // lanes do.
    let within = |by: i64| {
        let aligned = aligned(0).min(zeros(by));
        let last = lines[0].stride.checked_mul(i64::from(width) - 1)?;
        let fits = from.is_unsigned_integer() && by > 0 && (0..64).contains(&aligned);
        (fits && (0..1i64 << aligned.min(62)).contains(&last)).then_some(aligned)
    };
    let quotient = |by: i64| {
        within(by).map(|_| Line {
            stride: 0,
            exact: true,
            aligned: 0,
        })
    };
    let remainder = |by: i64| {
        within(by).map(|aligned| Line {
            exact: true,
            aligned,
            ..lines[0]
        })
    };
    match op {
        Op::Add => wraps(
            lines[0].stride + lines[1].stride,
            aligned(0).min(aligned(1)),
        ),
        Op::Sub => wraps(
            lines[0].stride - lines[1].stride,
            aligned(0).min(aligned(1)),
        ),
        Op::Neg => wraps(-lines[0].stride, aligned(0)),
        Op::Mul if lines[1].stride == 0 && constant(1).is_some() => times(0, constant(1)?),
        Op::Mul if lines[0].stride == 0 => times(1, constant(0)?),
        Op::Shl if lines[1].stride == 0 => {
            let count = constant(1).filter(|c| (0..8).contains(c))?;
            times(0, 1 << count)
        }
        Op::Div if lines[1].stride == 0 => quotient(constant(1)?),
        Op::Rem if lines[1].stride == 0 => remainder(constant(1)?),
        Op::Shr if lines[1].stride == 0 => {
            let count = constant(1).filter(|c| (0..i64::from(from.bits().min(62))).contains(c))?;
            quotient(1 << count)
        }
        Op::And if lines[1].stride == 0 => {
            let by = constant(1)?.checked_add(1)?;
            remainder((by > 0 && by & (by - 1) == 0).then_some(by)?)
        }
        Op::Cast if from.bits() >= to.bits() => Some(Line {
            exact: lines[0].exact && from == to,
            aligned: aligned(0).min(to.bits()),
            ..lines[0]
        }),
        Op::Cast => lines[0].exact.then_some(Line {
            exact: from.is_unsigned_integer() || to.is_signed_integer(),
            ..lines[0]
        }),
        _no_line => None,
    }
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

/// Whether a region of a loop's body holds a `break` of that loop.
pub(crate) fn has_break(region: &Region) -> bool {
    leaves(region, &|kind| matches!(kind, InstKind::Break(_)))
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
