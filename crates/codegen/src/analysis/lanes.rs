//! Lane affinity: how values differ over the lanes of vectors that run threads side by side, and which
//! loops need masks.
//!
//! A target that runs the threads of a threadgroup in *chunks*, each some vectors of lanes, asks how it
//! cuts them ([`Question`]). What is the same for a chunk it computes once; what grows evenly from lane
//! to lane it knows by the first lane, and an access there is one of consecutive elements; the rest takes
//! a vector.
//!
//! A forward analysis to a fixed point, optimistic at loops. What it says of a value is what a target
//! counts on where ways meet (results of an `if`, values that a loop carries); elsewhere the target may
//! know better. Its rules must be those of the target, so both call [`affine`] and [`alignment`]: a value
//! that is computed less regular than its class would lose lanes.
//!
//! Deliberately absent: relations between chunks. That is [`invar_ir::uniformity`]'s.

use std::collections::{HashMap, HashSet};
use std::fmt;

use invar_ir::ops::Meaning;
use invar_ir::{
    AddressSpace, Const, Dim, Imm, Inst, InstKind, Kernel, Level, Memory, Op, ParamKind, Place,
    Region, Scalar, Step, Type, Uniformity, Value,
};

use crate::passes::common::{constants, integer, yielded};

use super::ranges::{Ranges, of_type};

/// How the threads of a threadgroup are cut into chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Lanes of a vector: a power of two.
    pub width: u32,
    /// Vectors side by side along x.
    pub along: u32,
    /// Rows.
    pub rows: u32,
    /// Chunks are cut from the threads in the order of their numbers; there is one row.
    pub linear: bool,
}

impl Shape {
    /// Vectors of a chunk.
    pub const fn parts(self) -> u32 {
        self.along * self.rows
    }

    /// Threads of a chunk.
    pub const fn lanes(self) -> u32 {
        self.parts() * self.width
    }
}

/// How positions differ over a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Positions {
    /// A chunk lies in rows: x grows, y is that of the vector.
    Rows,
    /// A chunk is cut from a row by number: x grows, y and z are its own.
    InRow,
    /// A chunk is cut by number from anywhere: only the number grows.
    Anywhere,
}

/// An integer that grows by the same amount from lane to lane of each vector of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// By how much.
    pub stride: i64,
    /// Whether it grows without wrapping, in the lanes of threads that exist.
    pub exact: bool,
    /// In the first lane it is a multiple of two to this.
    pub aligned: u32,
}

impl Line {
    /// The same in the lanes of a vector.
    pub const SAME: Line = Line {
        stride: 0,
        exact: true,
        aligned: 0,
    };
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.stride == 0 {
            return write!(f, "by vector");
        }
        let wraps = if self.exact { "" } else { "wrapping " };
        write!(f, "{wraps}stride {}", self.stride)?;
        if self.aligned > 0 {
            write!(f, " from multiples of {}", 1u128 << self.aligned)?;
        }
        Ok(())
    }
}

/// How a value differs over a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The same for the chunk.
    Uniform,
    /// Evenly in each vector. Of stride 0, the same in its lanes, a value of any type.
    Line(Line),
    /// In any way.
    Varying,
}

impl Class {
    /// The same in the lanes of each vector.
    pub const BY_VECTOR: Class = Class::Line(Line::SAME);

    fn line(self) -> Option<Line> {
        match self {
            Class::Uniform => Some(Line::SAME),
            Class::Line(line) => Some(line),
            Class::Varying => None,
        }
    }

    fn is_same_in_vectors(self) -> bool {
        self.line().is_some_and(|line| line.stride == 0)
    }

    /// What two values are of which a chunk has one or the other.
    fn join(self, other: Class) -> Class {
        if self == other {
            return self;
        }
        match (self.line(), other.line()) {
            (Some(a), Some(b)) if a.stride == b.stride => Class::Line(Line {
                stride: a.stride,
                exact: a.exact && b.exact,
                aligned: a.aligned.min(b.aligned),
            }),
            _uneven => Class::Varying,
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Class::Uniform => write!(f, "uniform"),
            Class::Line(line) => line.fmt(f),
            Class::Varying => write!(f, "varying"),
        }
    }
}

/// What is asked.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    /// Of which kernel.
    pub kernel: &'a Kernel,
    /// Its uniformity.
    pub uniformity: &'a Uniformity,
    /// The level from which a value is the same for a chunk.
    pub level: Level,
    /// How threads are cut into chunks.
    pub shape: Shape,
    /// How positions differ over one.
    pub positions: Positions,
    /// Whether all threads of a threadgroup go through an instruction together, outside of chunks.
    pub together: &'a dyn Fn(&Inst) -> bool,
    /// Values that differ at least like this, whatever computes them.
    pub at_least: &'a HashMap<Value, Class>,
    /// The full size of threadgroups, if it is known.
    pub threadgroup_size: Option<[u32; 3]>,
    /// Where its integers lie, whatever conditions say.
    pub ranges: &'a Ranges,
}

/// The classes of a kernel's values, and its loops that need masks.
#[derive(Clone, Debug)]
pub struct Classes {
    values: Vec<Class>,
    /// By their place in memory.
    masked: HashSet<*const Inst>,
}

impl Classes {
    /// How a value differs over a chunk.
    pub fn of(&self, value: Value) -> Class {
        self.values[value.0 as usize]
    }

    /// Whether the threads of a chunk may take different numbers of iterations of a loop. The loop must be
    /// one of the kernel that was asked about, not of a copy.
    pub fn is_masked(&self, inst: &Inst) -> bool {
        self.masked.contains(&std::ptr::from_ref(inst))
    }

    /// How many loops need masks.
    pub fn masked_loops(&self) -> usize {
        self.masked.len()
    }
}

/// Finds how the values of a kernel differ over chunks.
///
/// ```
/// use std::collections::HashMap;
/// use invar_codegen::analysis::lanes::{Class, Line, Positions, Question, Shape, analyse};
/// use invar_codegen::analysis::ranges::{Known, analyse_unguarded};
/// use invar_ir::{Level, Value};
///
/// let text = "kernel @k(%x: device write u32) {
///     %t = thread_index_in_threadgroup
///     %four = const u32 4
///     %i = mul %t, %four
///     store %x[%i], %four
/// }";
/// let module = invar_ir::text::parse("k.inv", text)?;
/// let kernel = &module.kernels[0];
/// let classes = analyse(&Question {
///     kernel,
///     uniformity: &invar_ir::analyse(&module, kernel),
///     level: Level::Threadgroup,
///     shape: Shape { width: 8, along: 2, rows: 1, linear: false },
///     positions: Positions::Rows,
///     together: &|_| false,
///     at_least: &HashMap::new(),
///     threadgroup_size: Some([64, 1, 1]),
///     ranges: &analyse_unguarded(kernel, &Known::default()),
/// });
/// // The index begins with a multiple of 8 in each vector, and this one with a multiple of 32.
/// let line = Line { stride: 4, exact: false, aligned: 5 };
/// assert_eq!(classes.of(Value(2)), Class::Line(line));
/// assert_eq!(classes.of(Value(1)), Class::Uniform);
/// # Ok::<(), invar_ir::Diagnostics>(())
/// ```
pub fn analyse(question: &Question<'_>) -> Classes {
    let mut walk = Walk {
        q: question,
        values: vec![None; question.kernel.values.len()],
        masked: HashSet::new(),
        constants: constants(question.kernel),
        changed: true,
        divergence: 0,
        loops: Vec::new(),
    };
    for param in &question.kernel.params {
        if let ParamKind::Scalar { value } = param.kind {
            walk.values[value.0 as usize] = Some(Class::Uniform);
        }
    }
    while walk.changed {
        walk.changed = false;
        walk.region(&question.kernel.body);
    }
    // What nothing reached is in code that cannot run. Uniform, it can be handed on as any class.
    let values = walk.values.into_iter();
    Classes {
        values: values
            .map(|class| class.unwrap_or(Class::Uniform))
            .collect(),
        masked: walk.masked,
    }
}

/// What is known of a value so far: nothing before something computes it.
type Found = Option<Class>;

fn join(a: Found, b: Found) -> Found {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.join(b)),
        (class, None) | (None, class) => class,
    }
}

struct Frame<'a> {
    inst: &'a Inst,
    /// The divergence right inside.
    divergence: u32,
}

struct Walk<'a> {
    q: &'a Question<'a>,
    values: Vec<Found>,
    masked: HashSet<*const Inst>,
    constants: HashMap<Value, Const>,
    changed: bool,
    /// How many divergent ifs and masked loops are around.
    divergence: u32,
    loops: Vec<Frame<'a>>,
}

impl<'a> Walk<'a> {
    fn of(&self, value: Value) -> Found {
        self.values[value.0 as usize]
    }

    fn may_be_uniform(&self, value: Value) -> bool {
        self.of(value).is_none_or(|class| class == Class::Uniform)
    }

    fn constant(&self, value: Value) -> Option<i64> {
        // Of the largest unsigned numbers the bits are meant: lines wrap.
        integer(*self.constants.get(&value)?).map(|n| n as i64)
    }

    fn set(&mut self, value: Value, found: Found) {
        let ty = self.q.kernel.ty(value);
        let whole = matches!(ty, Type::SimdgroupMatrix { .. } | Type::Event);
        let class = if whole {
            found.map(|_| Class::Uniform)
        } else {
            join(found, self.q.at_least.get(&value).copied())
        };
        let old = self.of(value);
        let new = join(old, class);
        if new != old {
            self.values[value.0 as usize] = new;
            self.changed = true;
        }
    }

    /// Gives values further names, lane by lane if they are `mixed`: if lanes may have them from
    /// different iterations.
    fn hand_on(&mut self, mixed: bool, to: &[Value], values: &[Value]) {
        for (to, value) in to.iter().zip(values) {
            let class = if mixed {
                Some(Class::Varying)
            } else {
                self.of(*value)
            };
            self.set(*to, class);
        }
    }

    fn is_masked(&self, inst: &Inst) -> bool {
        self.masked.contains(&std::ptr::from_ref(inst))
    }

    fn mask(&mut self, inst: &Inst) {
        if !(self.q.together)(inst) && self.masked.insert(std::ptr::from_ref(inst)) {
            self.changed = true;
        }
    }

    fn region(&mut self, region: &'a Region) {
        for inst in &region.insts {
            self.inst(inst);
        }
    }

    fn inst(&mut self, inst: &'a Inst) {
        match &inst.kind {
            InstKind::Op { op, imm, args } => {
                let class = self.op(*op, *imm, args, inst.results[0]);
                self.set(inst.results[0], class);
            }
            InstKind::Load(place) => {
                let class = self.load(place, inst.results[0]);
                self.set(inst.results[0], class);
            }
            InstKind::If {
                condition,
                then,
                otherwise,
            } => self.branch(inst, *condition, [then, otherwise]),
            InstKind::For {
                lower,
                upper,
                step,
                init,
                body,
            } => self.counted(inst, [*lower, *upper, *step], init, body),
            InstKind::Loop { init, body } => self.iterations(inst, init, body),
            InstKind::Break(values) => self.leave(values, |inst| &inst.results),
            InstKind::Continue(values) => self.leave(values, Inst::carried),
            InstKind::Return => {
                if self.divergence > 0 {
                    for i in 0..self.loops.len() {
                        let target = self.loops[i].inst;
                        self.mask(target);
                    }
                }
            }
            // What it hands on, the instruction around it says.
            InstKind::Yield(_) => {}
            other => {
                let one = other.is_constant() || other.meets().is_some();
                let class = if one { Class::Uniform } else { Class::Varying };
                for result in &inst.results {
                    self.set(*result, Some(class));
                }
            }
        }
    }

    fn branch(&mut self, inst: &Inst, condition: Value, sides: [&'a Region; 2]) {
        let divergent = !(self.q.together)(inst) && !self.may_be_uniform(condition);
        self.divergence += u32::from(divergent);
        sides.into_iter().for_each(|side| self.region(side));
        self.divergence -= u32::from(divergent);
        let yields: Vec<&[Value]> = sides.into_iter().filter_map(yielded).collect();
        // Of two values one is picked lane by lane.
        let picked = divergent && yields.len() > 1;
        for values in yields {
            self.hand_on(picked, &inst.results, values);
        }
    }

    fn counted(&mut self, inst: &'a Inst, bounds: [Value; 3], init: &[Value], body: &'a Region) {
        if !bounds.iter().all(|v| self.may_be_uniform(*v)) {
            self.mask(inst);
        }
        let [lower, _, step] = bounds;
        let index = self.index(lower, step);
        self.set(body.params[0], index);
        self.iterations(inst, init, body);
        self.hand_on(self.is_masked(inst), &inst.results, inst.carried());
    }

    /// A counted loop's index.
    fn index(&self, lower: Value, step: Value) -> Found {
        let first = self.of(lower)?;
        if self.may_be_uniform(step) {
            let Class::Line(line) = first else {
                return Some(first);
            };
            let step = self.constant(step).map_or(0, i64::trailing_zeros);
            let aligned = line.aligned.min(step);
            return Some(Class::Line(Line { aligned, ..line }));
        }
        let is_same = |class: Class| class.is_same_in_vectors();
        Some(if is_same(first) && self.of(step).is_some_and(is_same) {
            Class::BY_VECTOR
        } else {
            Class::Varying
        })
    }

    /// The iterations of a loop, which begins with the values `init`.
    fn iterations(&mut self, inst: &'a Inst, init: &[Value], body: &'a Region) {
        self.hand_on(false, inst.carried(), init);
        let masked = self.is_masked(inst);
        self.divergence += u32::from(masked);
        self.loops.push(Frame {
            inst,
            divergence: self.divergence,
        });
        self.region(body);
        self.loops.pop();
        self.divergence -= u32::from(masked);
        if let Some(values) = yielded(body) {
            self.hand_on(masked && body.exits().continues, inst.carried(), values);
        }
    }

    /// A `break` or `continue`, whose values its loop gets by the names `to`.
    fn leave(&mut self, values: &[Value], to: impl Fn(&'a Inst) -> &'a [Value]) {
        let Some(frame) = self.loops.last() else {
            return;
        };
        let (target, own) = (frame.inst, frame.divergence);
        if self.divergence > own {
            self.mask(target);
        }
        self.hand_on(self.is_masked(target), to(target), values);
    }

    fn op(&self, op: Op, imm: Imm, args: &[Value], result: Value) -> Found {
        match op.row().meaning {
            Meaning::Query => return Some(self.query(op, imm)),
            Meaning::Lanes(..) => {
                let level = self.q.uniformity.of(result);
                return Some(if level >= self.q.level {
                    Class::Uniform
                } else if level >= Level::Simdgroup {
                    Class::BY_VECTOR
                } else {
                    Class::Varying
                });
            }
            Meaning::Eval(_) | Meaning::Expand(_) | Meaning::Arrange => {}
        }
        let classes: Vec<Class> = args.iter().map(|v| self.of(*v)).collect::<Option<_>>()?;
        if classes.iter().all(|c| *c == Class::Uniform) {
            return Some(Class::Uniform);
        }
        if classes.iter().all(|c| c.is_same_in_vectors()) {
            return Some(Class::BY_VECTOR);
        }
        let line = self.line(op, args, &classes, result);
        Some(match line {
            Some(Line { stride: 0, .. }) => Class::BY_VECTOR,
            Some(line) => Class::Line(line),
            None => Class::Varying,
        })
    }

    fn line(&self, op: Op, args: &[Value], classes: &[Class], result: Value) -> Option<Line> {
        let ty = self.q.kernel.ty(result);
        if !ty.is_integer_scalar() {
            return None;
        }
        let lines: Vec<Line> = classes.iter().map(|c| c.line()).collect::<Option<_>>()?;
        let constant = |i: usize| self.constant(args[i]);
        let types = (self.q.kernel.ty(args[0]), ty);
        let fits = fits(self.q.ranges, args[0], types.1);
        affine(op, types, self.q.shape.width, &lines, constant, fits)
    }

    fn query(&self, op: Op, imm: Imm) -> Class {
        let aligned = alignment(op, self.q.shape, self.q.threadgroup_size);
        let grows = Class::Line(Line {
            stride: 1,
            exact: true,
            aligned,
        });
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
                    (Positions::Rows | Positions::InRow, Dim::X) => grows,
                    (Positions::Rows, Dim::Y) if self.q.shape.rows > 1 => Class::BY_VECTOR,
                    (Positions::Rows | Positions::InRow, Dim::Y | Dim::Z) => Class::Uniform,
                }
            }
            (Op::ThreadIndexInThreadgroup | Op::ThreadIndexInSimdgroup, _) => grows,
            (Op::ThreadIndexInQuadgroup | Op::QuadgroupIndexInThreadgroup, _) => Class::Varying,
            (Op::SimdgroupIndexInThreadgroup, _) if self.q.level > Level::Simdgroup => {
                Class::BY_VECTOR
            }
            _same_for_a_simdgroup => Class::Uniform,
        }
    }

    fn load(&self, place: &Place, result: Value) -> Found {
        if self.q.uniformity.of(result) >= self.q.level {
            return Some(Class::Uniform);
        }
        if is_thread_memory(self.q.kernel, place.memory) {
            return Some(Class::Varying);
        }
        let mut class = self.of(place.index);
        for step in &place.path {
            if let Step::Index(index) = step {
                class = join(class, self.of(*index));
            }
        }
        match class? {
            same if same == Class::Uniform || same == Class::BY_VECTOR => Some(same),
            _other_elements => Some(Class::Varying),
        }
    }
}

/// Whether a memory object is a thread array.
fn is_thread_memory(kernel: &Kernel, memory: Memory) -> bool {
    match memory {
        Memory::Alloc(i) => kernel.allocs[i as usize].space == AddressSpace::Thread,
        Memory::Param(_) | Memory::Constant(_) => false,
    }
}

/// Positions and indices in the first lane of a vector are multiples of two to this. `fixed`: the full
/// size of threadgroups, if it is known.
pub fn alignment(op: Op, shape: Shape, fixed: Option<[u32; 3]>) -> u32 {
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

/// Whether a value lies where the numbers of a type do, in all threads that exist.
pub fn fits(ranges: &Ranges, value: Value, ty: Type) -> bool {
    let both = ranges.of(value).zip(of_type(ty));
    both.is_some_and(|(range, all)| all.0 <= range.0 && range.1 <= all.1)
}

/// What an operation makes of lines, in vectors of `width` lanes; `None` if no line. `constant` gives
/// the value of an operand that is one; `types` are the first operand's and the result's; `fits`: the
/// first operand fits the result's type.
pub fn affine(
    op: Op,
    types: (Type, Type),
    width: u32,
    lines: &[Line],
    constant: impl Fn(usize) -> Option<i64>,
    fits: bool,
) -> Option<Line> {
    let (from, to) = (types.0.scalar()?, types.1.scalar()?);
    if !from.is_integer() || !to.is_integer() {
        return None;
    }
    let of = Operands {
        from,
        to,
        width,
        lines,
        constant: &constant,
    };
    let same = |i: usize| lines[i].stride == 0;
    match op {
        Op::Add => of.wraps(lines[0].stride + lines[1].stride, of.both_aligned()),
        Op::Sub => of.wraps(lines[0].stride - lines[1].stride, of.both_aligned()),
        Op::Neg => of.wraps(-lines[0].stride, of.aligned(0)),
        Op::Mul if same(1) && constant(1).is_some() => of.times(0, constant(1)?),
        Op::Mul if same(0) => of.times(1, constant(0)?),
        Op::Shl if same(1) => {
            let count = constant(1).filter(|c| (0..8).contains(c))?;
            of.times(0, 1 << count)
        }
        Op::Div if same(1) => of.quotient(constant(1)?),
        Op::Rem if same(1) => of.remainder(constant(1)?),
        Op::Shr | Op::ShrExact if same(1) => {
            let bits = i64::from(from.bits().min(62));
            let count = constant(1).filter(|c| (0..bits).contains(c))?;
            of.quotient(1 << count)
        }
        Op::And if same(1) => {
            let by = constant(1)?.checked_add(1)?;
            of.remainder((by > 0 && by & (by - 1) == 0).then_some(by)?)
        }
        Op::Cast if from.bits() >= to.bits() => Some(Line {
            // Of lanes that grow the first is the least: where it does not fit, none is of a thread that is on.
            exact: lines[0].exact && (from == to || fits && lines[0].stride >= 0),
            aligned: of.aligned(0).min(to.bits()),
            ..lines[0]
        }),
        Op::Cast => lines[0].exact.then_some(Line {
            exact: from.is_unsigned_integer() || to.is_signed_integer(),
            ..lines[0]
        }),
        _no_line => None,
    }
}

/// What [`affine`] is about.
struct Operands<'a> {
    from: Scalar,
    to: Scalar,
    width: u32,
    lines: &'a [Line],
    constant: &'a dyn Fn(usize) -> Option<i64>,
}

impl Operands<'_> {
    fn aligned(&self, i: usize) -> u32 {
        (self.constant)(i).map_or(self.lines[i].aligned, i64::trailing_zeros)
    }

    fn both_aligned(&self) -> u32 {
        self.aligned(0).min(self.aligned(1))
    }

    /// A line of arithmetic that wraps (A1). Strides stay far from where their own sums would.
    fn wraps(&self, stride: i64, aligned: u32) -> Option<Line> {
        const LIMIT: i64 = 1 << 32;
        (-LIMIT..LIMIT).contains(&stride).then_some(Line {
            stride,
            exact: false,
            aligned: aligned.min(self.to.bits()),
        })
    }

    fn times(&self, i: usize, factor: i64) -> Option<Line> {
        let stride = self.lines[i].stride.checked_mul(factor)?;
        self.wraps(stride, self.aligned(i) + factor.trailing_zeros())
    }

    /// Whether all lanes of the first operand lie between two multiples of `by`, because they begin with
    /// one of a number that divides `by` and go less far: `floor((base + step) / by) = floor(base / by)`,
    /// and remainders grow as the lanes do. Gives how the remainder in the first lane is aligned.
    fn within(&self, by: i64) -> Option<u32> {
        let aligned = self.aligned(0).min(by.trailing_zeros());
        let last = self.lines[0]
            .stride
            .checked_mul(i64::from(self.width) - 1)?;
        let fits = self.from.is_unsigned_integer() && by > 0 && aligned < 64;
        (fits && (0..1i64 << aligned.min(62)).contains(&last)).then_some(aligned)
    }

    fn quotient(&self, by: i64) -> Option<Line> {
        self.within(by).map(|_| Line::SAME)
    }

    fn remainder(&self, by: i64) -> Option<Line> {
        self.within(by).map(|aligned| Line {
            exact: true,
            aligned,
            ..self.lines[0]
        })
    }
}
