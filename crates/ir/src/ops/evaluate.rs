//! Any operation whose result depends on its operands alone, on columns of values: what folds
//! constants, and what tests and error measurements call.
//!
//! A [`Program`] is an operation with its expansions written out once, for operands of given types;
//! it then runs on as many values as there are. A value of several components takes as many columns,
//! a vector's in order, a matrix's column by column. Expansions may hold `if` and `for`: both sides
//! are computed where some value needs them, and each value keeps what is its own.
//!
//! Not here: what depends on the thread, exchange between lanes (see [`super::lanes`]), memory.

use std::collections::HashMap;
use std::fmt;

use smallvec::SmallVec;

use super::{Arrangement, Evaluator, Imm, Meaning, Op, SignatureError};
use crate::builder::KernelBuilder;
use crate::expand::expand;
use crate::inst::{Inst, InstKind, Place, Region, Value};
use crate::module::{Access, Kernel, Module};
use crate::types::{Scalar, Type};

/// How many values are computed together: few enough that columns stay in the cache.
const CHUNK: usize = 512;

/// Why an operation cannot be evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvaluateError {
    /// The operands do not fit it.
    Signature(SignatureError),
    /// Its result does not depend on its operands alone: it asks where a thread stands, or exchanges
    /// values between lanes.
    DependsOnThread(Op),
}

impl fmt::Display for EvaluateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EvaluateError::Signature(SignatureError::Count { expected, found }) => {
                write!(f, "it takes {expected} operands, found {found}")
            }
            EvaluateError::Signature(SignatureError::Operand { index, expected }) => {
                write!(f, "operand {} is not {expected}", index + 1)
            }
            EvaluateError::Signature(SignatureError::Imm(what)) => f.write_str(what),
            EvaluateError::DependsOnThread(op) => write!(
                f,
                "the result of `{op}` depends on the thread; run it in a kernel"
            ),
        }
    }
}

impl std::error::Error for EvaluateError {}

/// An operation made ready for columns of values.
///
/// ```
/// use invar_ir::ops::evaluate::Program;
/// use invar_ir::{Imm, Op, Type};
///
/// let mix = Program::compile(Op::Mix, Imm::None, &[Type::F32; 3])?;
/// let (x, y) = ([1.0f32.to_bits().into(); 2], [3.0f32.to_bits().into(); 2]);
/// let a = [0.5f32.to_bits().into(), 1.0f32.to_bits().into()];
/// let mut result = [0; 2];
/// mix.run(&[&x, &y, &a], &mut [&mut result]);
/// assert_eq!(result.map(|bits| f32::from_bits(bits as u32)), [2.0, 3.0]);
/// # Ok::<(), invar_ir::ops::evaluate::EvaluateError>(())
/// ```
pub struct Program {
    result_type: Type,
    argument_columns: usize,
    /// Each constant as a column.
    constants: Vec<Vec<u64>>,
    steps: Vec<Step>,
    slots: u32,
    results: Vec<Source>,
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Argument(u32),
    Constant(u32),
    Slot(u32),
}

enum Step {
    Eval {
        evaluator: Evaluator,
        from: Scalar,
        to: Scalar,
        args: SmallVec<[Source; 4]>,
        slot: u32,
    },
    /// Bits taken as another type.
    AsType {
        from: Scalar,
        to: Scalar,
        args: Vec<Source>,
        slots: Vec<u32>,
    },
    /// One of several, by an index; 0 if there is none.
    Pick {
        index: Source,
        index_type: Scalar,
        choices: Vec<Source>,
        slot: u32,
    },
    /// `new` where the index is `at`, else `old`.
    Replace {
        index: Source,
        index_type: Scalar,
        at: u64,
        old: Source,
        new: Source,
        slot: u32,
    },
    If {
        condition: Source,
        then: Body,
        otherwise: Body,
        slots: Vec<u32>,
    },
    For {
        lower: Source,
        upper: Source,
        step: Source,
        index_type: Scalar,
        step_type: Scalar,
        index: u32,
        init: Vec<Source>,
        carried: Vec<u32>,
        body: Body,
    },
}

/// A region and what it yields.
struct Body {
    steps: Vec<Step>,
    yields: Vec<Source>,
}

impl Program {
    /// Makes an operation ready for operands of these types.
    ///
    /// # Errors
    /// If the operands do not fit, or the result does not depend on them alone.
    pub fn compile(op: Op, imm: Imm, types: &[Type]) -> Result<Program, EvaluateError> {
        let result_type = op
            .result_type(imm, types)
            .map_err(EvaluateError::Signature)?;
        let mut builder = KernelBuilder::new(Module::default(), "evaluate");
        let args: Vec<Value> = types.iter().map(|ty| builder.scalar("x", *ty)).collect();
        let result = builder.op(op, imm, &args);
        // A store keeps the result: what it stores is what the program gives.
        let memory = builder.buffer("result", Access::Write, result_type);
        let index = builder.const_u32(0);
        builder.store(Place::element(memory, index), result);
        let module = builder.finish().and_then(|m| expand(m, &|_, _, _| false));
        let Some(kernel) = module.ok().and_then(|mut m| m.kernels.pop()) else {
            unreachable!("a test expands every operation for every type");
        };
        let mut compiler = Compiler::new(&kernel);
        let mut argument_columns = 0;
        for (i, ty) in types.iter().enumerate() {
            let next = argument_columns + ty.component_count();
            let columns = (argument_columns..next).map(Source::Argument).collect();
            compiler.define(Value(i as u32), columns);
            argument_columns = next;
        }
        let body = compiler
            .region(&kernel.body)
            .ok_or(EvaluateError::DependsOnThread(op))?;
        Ok(Program {
            result_type,
            argument_columns: argument_columns as usize,
            constants: compiler.constants.iter().map(|c| vec![*c; CHUNK]).collect(),
            steps: body.steps,
            slots: compiler.references.len() as u32,
            results: body.yields,
        })
    }

    /// The type of the result.
    pub fn result_type(&self) -> Type {
        self.result_type
    }

    /// Computes the operation: `args` holds a column for each component of each operand in order,
    /// `out` one for each component of the result. Scalars are bits in the low end, the rest 0; a
    /// `bool` is 0 or 1.
    ///
    /// # Panics
    /// If the number of columns is wrong or they differ in length.
    pub fn run(&self, args: &[&[u64]], out: &mut [&mut [u64]]) {
        assert_eq!(args.len(), self.argument_columns, "columns of operands");
        assert_eq!(out.len(), self.results.len(), "columns of the result");
        let length = out.first().map_or(0, |column| column.len());
        let columns = args.iter().map(|c| c.len());
        assert!(
            columns
                .chain(out.iter().map(|c| c.len()))
                .all(|l| l == length),
            "columns differ in length"
        );
        let mut run = Run {
            program: self,
            args: Vec::new(),
            slots: vec![vec![0; CHUNK.min(length)]; self.slots as usize],
            length: 0,
        };
        for start in (0..length).step_by(CHUNK) {
            let end = length.min(start + CHUNK);
            run.length = end - start;
            run.args = args.iter().map(|column| &column[start..end]).collect();
            run.steps(&self.steps, None);
            for (source, column) in self.results.iter().zip(out.iter_mut()) {
                column[start..end].copy_from_slice(run.column(*source));
            }
        }
    }
}

/// [`Program::compile`] and [`Program::run`] in one.
///
/// # Errors
/// As [`Program::compile`].
///
/// # Panics
/// As [`Program::run`].
pub fn evaluate(
    op: Op,
    imm: Imm,
    types: &[Type],
    args: &[&[u64]],
) -> Result<Vec<Vec<u64>>, EvaluateError> {
    let program = Program::compile(op, imm, types)?;
    let length = args.first().map_or(1, |column| column.len());
    let mut out = vec![vec![0; length]; program.results.len()];
    let mut columns: Vec<&mut [u64]> = out.iter_mut().map(Vec::as_mut_slice).collect();
    program.run(args, &mut columns);
    Ok(out)
}

/// `as_type` on columns: a column for each component of the operand and of the result, which have as
/// many bits in all. The first component is lowest, as in memory.
///
/// # Panics
/// If they have not as many bits.
pub fn as_type(from: Scalar, to: Scalar, args: &[&[u64]], out: &mut [&mut [u64]]) {
    let (width, out_width) = (from.bits() as usize, to.bits() as usize);
    assert_eq!(width * args.len(), out_width * out.len(), "bits in all");
    for (k, column) in out.iter_mut().enumerate() {
        if width >= out_width {
            let parts = width / out_width;
            let shift = out_width * (k % parts);
            let mask = u64::MAX >> (64 - out_width);
            for (o, a) in column.iter_mut().zip(args[k / parts]) {
                *o = (a >> shift) & mask;
            }
        } else {
            let parts = out_width / width;
            column.fill(0);
            for (j, part) in args[k * parts..(k + 1) * parts].iter().enumerate() {
                for (o, a) in column.iter_mut().zip(*part) {
                    *o |= a << (width * j);
                }
            }
        }
    }
}

struct Run<'a> {
    program: &'a Program,
    args: Vec<&'a [u64]>,
    slots: Vec<Vec<u64>>,
    length: usize,
}

impl Run<'_> {
    fn column(&self, source: Source) -> &[u64] {
        match source {
            Source::Argument(i) => self.args[i as usize],
            Source::Constant(i) => &self.program.constants[i as usize][..self.length],
            Source::Slot(i) => &self.slots[i as usize][..self.length],
        }
    }

    /// Computes a slot from other columns.
    fn fill(&mut self, slot: u32, f: impl FnOnce(&Self, &mut [u64])) {
        let mut column = std::mem::take(&mut self.slots[slot as usize]);
        f(self, &mut column[..self.length]);
        self.slots[slot as usize] = column;
    }

    /// Runs steps; of what they compute only the values under the mask count, all if there is none.
    fn steps(&mut self, steps: &[Step], mask: Option<&[u64]>) {
        for step in steps {
            self.step(step, mask);
        }
    }

    fn step(&mut self, step: &Step, mask: Option<&[u64]>) {
        match step {
            Step::Eval {
                evaluator,
                from,
                to,
                args,
                slot,
            } => self.fill(*slot, |run, out| {
                let args: SmallVec<[&[u64]; 4]> = args.iter().map(|a| run.column(*a)).collect();
                evaluator(*from, *to, &args, out);
            }),
            Step::AsType {
                from,
                to,
                args,
                slots,
            } => {
                let mut taken: Vec<Vec<u64>> = slots
                    .iter()
                    .map(|slot| std::mem::take(&mut self.slots[*slot as usize]))
                    .collect();
                let args: Vec<&[u64]> = args.iter().map(|a| self.column(*a)).collect();
                let mut out: Vec<&mut [u64]> =
                    taken.iter_mut().map(|c| &mut c[..self.length]).collect();
                as_type(*from, *to, &args, &mut out);
                for (slot, column) in slots.iter().zip(taken) {
                    self.slots[*slot as usize] = column;
                }
            }
            Step::Pick {
                index,
                index_type,
                choices,
                slot,
            } => self.fill(*slot, |run, out| {
                let index = run.column(*index);
                for (i, o) in out.iter_mut().enumerate() {
                    let at = in_bounds(*index_type, index[i], choices.len());
                    *o = at.map_or(0, |at| run.column(choices[at])[i]);
                }
            }),
            Step::Replace {
                index,
                index_type,
                at,
                old,
                new,
                slot,
            } => self.fill(*slot, |run, out| {
                let (index, old, new) = (run.column(*index), run.column(*old), run.column(*new));
                for (i, o) in out.iter_mut().enumerate() {
                    let here = in_bounds(*index_type, index[i], usize::MAX) == Some(*at as usize);
                    *o = if here { new[i] } else { old[i] };
                }
            }),
            Step::If {
                condition,
                then,
                otherwise,
                slots,
            } => {
                let holds = self.column(*condition).to_vec();
                let active = |i: usize| mask.is_none_or(|m| m[i] != 0);
                for (side, wanted) in [(then, 1), (otherwise, 0)] {
                    let here: Vec<u64> = (0..self.length)
                        .map(|i| u64::from(active(i) && holds[i] == wanted))
                        .collect();
                    if here.contains(&1) {
                        self.steps(&side.steps, Some(&here));
                        self.assign(slots, &side.yields, &here);
                    }
                }
            }
            Step::For {
                lower,
                upper,
                step,
                index_type,
                step_type,
                index,
                init,
                carried,
                body,
            } => {
                let integers = |source: &Source, ty: Scalar| -> Vec<i128> {
                    let column = self.column(*source).iter();
                    column.map(|bits| ty.integer(*bits)).collect()
                };
                let mut at = integers(lower, *index_type);
                let upper = integers(upper, *index_type);
                let by = integers(step, *step_type);
                let mut here = mask.map_or_else(|| vec![1; self.length], <[u64]>::to_vec);
                self.assign(carried, init, &here);
                loop {
                    for (i, h) in here.iter_mut().enumerate() {
                        let goes_on = if by[i] > 0 {
                            at[i] < upper[i]
                        } else {
                            by[i] < 0 && at[i] > upper[i]
                        };
                        *h &= u64::from(goes_on);
                    }
                    if !here.contains(&1) {
                        break;
                    }
                    self.fill(*index, |_, out| {
                        let bits = u64::MAX >> (64 - index_type.bits());
                        for (o, at) in out.iter_mut().zip(&at) {
                            *o = *at as u64 & bits;
                        }
                    });
                    self.steps(&body.steps, Some(&here));
                    self.assign(carried, &body.yields, &here);
                    for (at, by) in at.iter_mut().zip(&by) {
                        *at += by;
                    }
                }
            }
        }
    }

    /// Gives slots new values under the mask, all at once.
    fn assign(&mut self, slots: &[u32], sources: &[Source], mask: &[u64]) {
        let new: Vec<Vec<u64>> = sources.iter().map(|s| self.column(*s).to_vec()).collect();
        for (slot, new) in slots.iter().zip(new) {
            for ((o, new), here) in self.slots[*slot as usize].iter_mut().zip(new).zip(mask) {
                if *here != 0 {
                    *o = new;
                }
            }
        }
    }
}

/// An index below `count`.
fn in_bounds(index_type: Scalar, bits: u64, count: usize) -> Option<usize> {
    usize::try_from(index_type.integer(bits))
        .ok()
        .filter(|at| *at < count)
}

/// Turns a kernel that ends with one store into steps. A slot is used again once no value to come
/// needs what it holds.
struct Compiler<'a> {
    kernel: &'a Kernel,
    /// The columns of each value that is defined.
    columns: Vec<Vec<Source>>,
    /// How many instructions are still to use a value: those of its own region and, once more, those
    /// of every region inside, so that only its own region can use it for the last time.
    uses: Vec<u32>,
    known: HashMap<Value, u64>,
    constants: Vec<u64>,
    /// For each slot how many values live in it.
    references: Vec<u32>,
    free: Vec<u32>,
}

impl<'a> Compiler<'a> {
    fn new(kernel: &'a Kernel) -> Compiler<'a> {
        let mut uses = vec![0; kernel.values.len()];
        kernel.for_each_inst(&mut |inst| {
            for value in used_values(inst) {
                uses[value.0 as usize] += 1;
            }
        });
        Compiler {
            kernel,
            columns: vec![Vec::new(); kernel.values.len()],
            uses,
            known: HashMap::new(),
            constants: Vec::new(),
            references: Vec::new(),
            free: Vec::new(),
        }
    }

    fn slot(&mut self) -> u32 {
        let slot = self.free.pop().unwrap_or(self.references.len() as u32);
        if slot as usize == self.references.len() {
            self.references.push(0);
        }
        slot
    }

    fn define(&mut self, value: Value, columns: Vec<Source>) {
        for column in &columns {
            if let Source::Slot(slot) = column {
                self.references[*slot as usize] += 1;
            }
        }
        self.columns[value.0 as usize] = columns;
    }

    /// Frees the slots in which a value lives alone, if nothing is to use it.
    fn release(&mut self, value: Value) {
        if self.uses[value.0 as usize] == 0 {
            for column in std::mem::take(&mut self.columns[value.0 as usize]) {
                if let Source::Slot(slot) = column {
                    self.references[slot as usize] -= 1;
                    if self.references[slot as usize] == 0 {
                        self.free.push(slot);
                    }
                }
            }
        }
    }

    fn of(&self, value: Value) -> Vec<Source> {
        self.columns[value.0 as usize].clone()
    }

    fn scalar(&self, value: Value) -> Option<Scalar> {
        self.kernel.ty(value).scalar()
    }

    /// The steps of a region; `None` if one depends on the thread.
    fn region(&mut self, region: &Region) -> Option<Body> {
        let mut body = Body {
            steps: Vec::new(),
            yields: Vec::new(),
        };
        for inst in &region.insts {
            self.inst(inst, &mut body)?;
            for value in used_values(inst) {
                self.uses[value.0 as usize] -= 1;
                // What a region yields, and what the last store keeps, is read after its end: by
                // nothing that could take its slot before.
                self.release(value);
            }
            for value in &inst.results {
                self.release(*value);
            }
        }
        Some(body)
    }

    fn inst(&mut self, inst: &Inst, body: &mut Body) -> Option<()> {
        match &inst.kind {
            InstKind::Const(constant) => {
                let known = self.constants.iter().position(|c| *c == constant.bits);
                let place = known.unwrap_or_else(|| {
                    self.constants.push(constant.bits);
                    self.constants.len() - 1
                });
                self.known.insert(inst.results[0], constant.bits);
                self.define(inst.results[0], vec![Source::Constant(place as u32)]);
                Some(())
            }
            InstKind::Op { op, imm, args } => {
                self.op(*op, *imm, args, inst.results[0], &mut body.steps)
            }
            InstKind::If {
                condition,
                then,
                otherwise,
            } => {
                let counts = inst.results.iter().map(|v| self.kernel.ty(*v));
                let counts: Vec<u32> = counts.map(Type::component_count).collect();
                let slots: Vec<u32> = (0..counts.iter().sum()).map(|_| self.slot()).collect();
                let condition = self.of(*condition)[0];
                let then = self.region(then)?;
                let otherwise = self.region(otherwise)?;
                self.results(inst, &slots);
                body.steps.push(Step::If {
                    condition,
                    then,
                    otherwise,
                    slots,
                });
                Some(())
            }
            InstKind::For {
                lower,
                upper,
                step,
                init,
                body: inner,
            } => {
                let init: Vec<Source> = init.iter().flat_map(|v| self.of(*v)).collect();
                let index = self.slot();
                let carried: Vec<u32> = init.iter().map(|_| self.slot()).collect();
                // Values that left the loop keep theirs, so these slots are taken until its end.
                for slot in &carried {
                    self.references[*slot as usize] += 1;
                }
                self.define(inner.params[0], vec![Source::Slot(index)]);
                let mut rest = carried.iter();
                for param in &inner.params[1..] {
                    let count = self.kernel.ty(*param).component_count() as usize;
                    let columns = rest.by_ref().take(count).map(|s| Source::Slot(*s));
                    let columns = columns.collect();
                    self.define(*param, columns);
                }
                let (lower_column, upper_column) = (self.of(*lower)[0], self.of(*upper)[0]);
                let step_column = self.of(*step)[0];
                let inner = self.region(inner)?;
                self.results(inst, &carried);
                for slot in &carried {
                    self.references[*slot as usize] -= 1;
                }
                body.steps.push(Step::For {
                    lower: lower_column,
                    upper: upper_column,
                    step: step_column,
                    index_type: self.scalar(*lower)?,
                    step_type: self.scalar(*step)?,
                    index,
                    init,
                    carried,
                    body: inner,
                });
                Some(())
            }
            InstKind::Yield(values) => {
                body.yields = values.iter().flat_map(|v| self.of(*v)).collect();
                Some(())
            }
            InstKind::Store { value, .. } => {
                body.yields = self.of(*value);
                Some(())
            }
            InstKind::Return => Some(()),
            _more_than_computation => None,
        }
    }

    /// The results of an `if` or `for` live in these slots.
    fn results(&mut self, inst: &Inst, slots: &[u32]) {
        let mut rest = slots.iter();
        for value in &inst.results {
            let count = self.kernel.ty(*value).component_count() as usize;
            let columns = rest.by_ref().take(count).map(|s| Source::Slot(*s));
            let columns = columns.collect();
            self.define(*value, columns);
        }
    }

    fn op(
        &mut self,
        op: Op,
        imm: Imm,
        args: &[Value],
        result: Value,
        steps: &mut Vec<Step>,
    ) -> Option<()> {
        let ty = self.kernel.ty(result);
        let count = ty.component_count();
        match op.row().meaning {
            Meaning::Eval(evaluator) => {
                let (from, to) = (self.scalar(args[0])?, ty.scalar()?);
                let mut columns = Vec::new();
                for component in 0..count as usize {
                    let slot = self.slot();
                    columns.push(Source::Slot(slot));
                    // One operand may serve all components: `select` by one `bool`.
                    let of = args.iter().map(|v| self.of(*v));
                    let args = of.map(|c| c[component.min(c.len() - 1)]).collect();
                    steps.push(Step::Eval {
                        evaluator,
                        from,
                        to,
                        args,
                        slot,
                    });
                }
                self.define(result, columns);
                Some(())
            }
            Meaning::Arrange => {
                let columns = self.arrange(op, imm, args, ty, steps)?;
                self.define(result, columns);
                Some(())
            }
            Meaning::Expand(_) => unreachable!("`{op}` has been expanded"),
            Meaning::Lanes(..) | Meaning::Query => None,
        }
    }

    fn arrange(
        &mut self,
        op: Op,
        imm: Imm,
        args: &[Value],
        ty: Type,
        steps: &mut Vec<Step>,
    ) -> Option<Vec<Source>> {
        let mut whole = self.of(args[0]);
        let arrangement = op.arrangement(imm)?;
        match arrangement {
            Arrangement::Construct => {
                let parts: Vec<Source> = args.iter().flat_map(|v| self.of(*v)).collect();
                let count = ty.component_count() as usize;
                Some(if parts.len() == 1 {
                    vec![parts[0]; count]
                } else {
                    parts
                })
            }
            Arrangement::Swizzle(swizzle) => {
                let components = swizzle.components().iter();
                Some(components.map(|c| whole[usize::from(*c)]).collect())
            }
            Arrangement::AsType => {
                let (from, to) = (self.scalar(args[0])?, ty.scalar()?);
                if from.bits() == to.bits() {
                    return Some(whole);
                }
                let slots: Vec<u32> = (0..ty.component_count()).map(|_| self.slot()).collect();
                let columns = slots.iter().map(|slot| Source::Slot(*slot)).collect();
                steps.push(Step::AsType {
                    from,
                    to,
                    args: whole,
                    slots,
                });
                Some(columns)
            }
            Arrangement::Extract | Arrangement::Insert => {
                let inserts = arrangement == Arrangement::Insert;
                let part = if inserts {
                    self.of(args[2])
                } else {
                    Vec::new()
                };
                // Components of a part: 1 of a vector's, a matrix's column otherwise.
                let size = if inserts {
                    part.len()
                } else {
                    ty.component_count() as usize
                };
                let parts = whole.len() / size;
                let index_type = self.scalar(args[1])?;
                let known = self.known.get(&args[1]).copied();
                if let Some(at) = known.and_then(|bits| in_bounds(index_type, bits, parts)) {
                    let range = at * size..(at + 1) * size;
                    return Some(if inserts {
                        whole.splice(range, part);
                        whole
                    } else {
                        whole[range].to_vec()
                    });
                }
                let index = self.of(args[1])[0];
                let mut columns = Vec::new();
                for k in 0..ty.component_count() as usize {
                    let slot = self.slot();
                    columns.push(Source::Slot(slot));
                    steps.push(if inserts {
                        Step::Replace {
                            index,
                            index_type,
                            at: (k / size) as u64,
                            old: whole[k],
                            new: part[k % size],
                            slot,
                        }
                    } else {
                        Step::Pick {
                            index,
                            index_type,
                            choices: whole.iter().skip(k).step_by(size).copied().collect(),
                            slot,
                        }
                    });
                }
                Some(columns)
            }
        }
    }
}

/// The values that an instruction uses, in its regions too, each once.
fn used_values(inst: &Inst) -> Vec<Value> {
    fn collect(inst: &Inst, values: &mut Vec<Value>) {
        inst.kind.for_each_use(|v| values.push(v));
        for region in inst.kind.regions() {
            region.insts.iter().for_each(|inner| collect(inner, values));
        }
    }
    let mut values = Vec::new();
    collect(inst, &mut values);
    values.sort_unstable();
    values.dedup();
    values
}
