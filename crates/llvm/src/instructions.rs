//! Instructions without regions: operations, and what moves components about.

use inkwell::values::{BasicValueEnum, IntValue};
use invar_codegen::analysis::lanes::{Line, affine, fits};
use invar_ir::inst::{InstKind, Value};
use invar_ir::ops::{Imm, Meaning};
use invar_ir::{Diagnostic, Inst, Op, Rule, Scalar, Scope, Type};

use crate::analysis::signed;
use crate::defined;
use crate::function::FunctionLowering;
use crate::matrices;
use crate::ops::{Known, cast_within, divided};
use crate::value::{Mask, Part, Parts};

impl<'c, 'k> FunctionLowering<'c, 'k> {
    /// Runs an instruction without regions.
    pub fn flat(&mut self, inst: &'k Inst, mask: &Mask<'c>) {
        match &inst.kind {
            InstKind::Const(c) => {
                let value = self.e.constant(c.scalar, c.bits);
                self.define(inst.results[0], Parts::uniform(vec![value]), mask);
            }
            InstKind::FunctionConstant(index) => {
                let constant = &self.analysis.module.function_constants[*index as usize];
                match constant.default {
                    Some(c) => {
                        let value = self.e.constant(c.scalar, c.bits);
                        self.define(inst.results[0], Parts::uniform(vec![value]), mask);
                    }
                    None => {
                        let name = constant.name.clone();
                        self.refuse(
                            inst,
                            &format!("a function constant without a value: `{name}`"),
                        );
                    }
                }
            }
            InstKind::Op { op, imm, args } => {
                let parts = self.op(inst, *op, *imm, args, mask);
                self.define(inst.results[0], parts, mask);
            }
            InstKind::BufferLength(memory) => {
                let length = self.launch.objects[memory].length;
                self.define(inst.results[0], Parts::uniform(vec![length.into()]), mask);
            }
            InstKind::Load(place) => {
                // What is only stored elsewhere is read there.
                if self.analysis.plan.copied(inst.results[0]).is_none() {
                    let parts = self.load(inst, place, mask);
                    self.define(inst.results[0], parts, mask);
                }
            }
            InstKind::Store { place, value } => match self.analysis.plan.copied(*value) {
                Some(load) => self.copy(load, inst, mask),
                None => {
                    let parts = self.get(*value);
                    self.store(inst, place, &parts, mask);
                }
            },
            InstKind::Atomic { .. } => self.atomic(inst, mask),
            InstKind::Alloc(array) => self.begin_array(*array),
            InstKind::Copy { .. } => unreachable!("copies were written out"),
            // The loop in front of it has made the copy.
            InstKind::AsyncCopy { .. } => {
                self.define(inst.results[0], Parts::uniform(Vec::new()), mask);
            }
            InstKind::Wait { .. } => {}
            InstKind::Barrier { scope, .. } => {
                // The lanes of a simdgroup go through memory in step, in the order of the program.
                debug_assert!(*scope == Scope::Simdgroup, "a segment holds no other");
            }
            InstKind::MatrixFill { value } => {
                let value = self.one_scalar(*value, mask);
                let rows = matrices::fill(&self.e, value);
                self.define_matrix(inst.results[0], rows, mask);
            }
            InstKind::MatrixLoad { place } => self.load_matrix(inst, place, mask),
            InstKind::MatrixStore { place, matrix } => {
                let (scalar, memory) = self.matrix_memory(inst, place, mask);
                if self.is_rare() {
                    let (_, stack) = self.matrix_on_stack(*matrix);
                    matrices::store_aside(&self.e, scalar, &memory, stack);
                } else {
                    let (_, rows) = self.matrix(*matrix);
                    matrices::store(&self.e, scalar, &memory, &rows);
                }
            }
            InstKind::MatrixMultiplyAccumulate { .. } => self.multiply(&mut vec![inst], mask),
            InstKind::AssertUniform { value, .. } => {
                let parts = self.get(*value);
                let parts = self.make_uniform(&parts, mask);
                self.define(inst.results[0], parts, mask);
            }
            InstKind::If { .. }
            | InstKind::For { .. }
            | InstKind::Loop { .. }
            | InstKind::Yield(_)
            | InstKind::Break(_)
            | InstKind::Continue(_)
            | InstKind::Return => unreachable!("it has regions or ends one"),
            InstKind::Print { .. } => unreachable!("`print` has been written out"),
            InstKind::Texture { .. } => unreachable!("textures have been written out as buffers"),
        }
    }

    fn op(&mut self, inst: &Inst, op: Op, imm: Imm, args: &[Value], mask: &Mask<'c>) -> Parts<'c> {
        let result = self.analysis.kernel.ty(inst.results[0]);
        let parts: Vec<Parts<'c>> = args.iter().map(|v| self.get(*v)).collect();
        let scalar = |v: &Value| self.analysis.kernel.ty(*v).scalar().unwrap_or(Scalar::U32);
        let types = || -> Vec<Type> { args.iter().map(|v| self.analysis.kernel.ty(*v)).collect() };
        match op.row().meaning {
            Meaning::Expand(_) if let Some(types) = defined::whole(op, &types()) => {
                self.called(op, &types, &parts)
            }
            Meaning::Eval(_) | Meaning::Expand(_) => {
                let from = args.first().map_or(Scalar::U32, scalar);
                let to = result.scalar().unwrap_or(Scalar::U32);
                let is_small = self.is_small(inst.results[0], mask);
                self.elementwise(inst.results[0], op, (from, to), args, (&parts, is_small))
            }
            Meaning::Arrange => self.arrange(op, imm, args, &parts, result),
            Meaning::Query => {
                let dim = match imm {
                    Imm::Dim(dim) => dim as usize,
                    Imm::None | Imm::Type(_) | Imm::Swizzle(_) => 0,
                };
                self.query(op, dim)
            }
            Meaning::Lanes(group, rule) => {
                let types: Vec<Scalar> = args.iter().map(scalar).collect();
                self.between_lanes(group, rule, &types, &parts, mask)
            }
        }
    }

    /// An operation on whole vectors or matrices that was not written out.
    fn called(&self, op: Op, types: &[Type], parts: &[Parts<'c>]) -> Parts<'c> {
        let is_uniform = parts.iter().all(Parts::is_uniform);
        let count = match is_uniform {
            true => 1,
            false => self.shape.parts() as usize,
        };
        let results: Vec<Vec<BasicValueEnum<'c>>> = (0..count)
            .map(|u| {
                let components = parts.iter().flat_map(|p| {
                    let all = 0..p.components();
                    all.map(move |c| p.part(c, u))
                });
                let args: Vec<BasicValueEnum<'c>> = components
                    .map(|part| match part {
                        Part::Scalar(scalar) if is_uniform => scalar,
                        other => self.e.vector(other, self.shape.width).into(),
                    })
                    .collect();
                defined::call(&self.e, op, types, &args)
            })
            .collect();
        let part = |value: BasicValueEnum<'c>| match value {
            BasicValueEnum::VectorValue(vector) => Part::Vector(vector),
            scalar => Part::Scalar(scalar),
        };
        let components = 0..results[0].len();
        let list = components.flat_map(|c| results.iter().map(move |r| part(r[c])));
        Parts::of(list.collect(), count)
    }

    /// An operation component by component.
    fn elementwise(
        &self,
        result: Value,
        op: Op,
        (from, to): (Scalar, Scalar),
        args: &[Value],
        (parts, is_small): (&[Parts<'c>], bool),
    ) -> Parts<'c> {
        let components = parts.iter().map(Parts::components).max().unwrap_or(1);
        let whole = parts.iter().all(Parts::is_uniform);
        let count = if whole {
            1
        } else {
            self.shape.parts() as usize
        };
        let mut list: Vec<Part<'c>> = Vec::new();
        for c in 0..components {
            let mut done: Vec<Vec<Part<'c>>> = Vec::new();
            for u in 0..count {
                let operands: Vec<Part<'c>> = parts
                    .iter()
                    .map(|p| p.part(if p.components() == 1 { 0 } else { c }, u))
                    .collect();
                // What vectors have in common is computed once.
                let part = match done.iter().position(|d| *d == operands) {
                    Some(same) => list[c * count + same],
                    None => {
                        let along = self.shape.along as usize;
                        let first = u - u % along;
                        let of = |other: usize| (&done[other][..], list[c * count + other]);
                        let other = if first < u {
                            self.beside(op, args, &operands, of(first))
                        } else if u > 0 && from.is_integer() {
                            self.below(op, &operands, of(u - along))
                        } else {
                            None
                        };
                        other.unwrap_or_else(|| {
                            self.one_part(result, op, (from, to), args, &operands)
                        })
                    }
                };
                // What is only called otherwise here is small if it was before.
                if is_small && !operands.contains(&part) {
                    self.sums.note_small(part);
                }
                done.push(operands);
                list.push(part);
            }
        }
        Parts::of(list, count)
    }

    fn one_part(
        &self,
        result: Value,
        op: Op,
        (from, to): (Scalar, Scalar),
        args: &[Value],
        operands: &[Part<'c>],
    ) -> Part<'c> {
        let scalars: Option<Vec<BasicValueEnum<'c>>> = operands
            .iter()
            .map(|p| match p {
                Part::Scalar(s) => Some(*s),
                Part::Affine { .. } | Part::Vector(_) => None,
            })
            .collect();
        if let Some(scalars) = scalars {
            let result = self.e.eval(op, from, to, &scalars);
            self.sums.note_values(op, result, &scalars);
            return Part::Scalar(result);
        }
        if let Some(line) = self.line(op, from, to, args, operands) {
            return line;
        }
        let vectors: Vec<BasicValueEnum<'c>> = operands
            .iter()
            .map(|p| self.e.vector(*p, self.shape.width).into())
            .collect();
        let vector = if op == Op::Cast && from.is_float() && to.is_integer() {
            let known = Known {
                range: self.analysis.plan.floats.of(args[0]),
                is_number: self.analysis.plan.floats.is_number(args[0]),
                low_bits: self.analysis.plan.low_bits.of(result),
            };
            cast_within(&self.e, from, to, vectors[0], known)
        } else if let Some(by) = self.analysis.plan.quotients.get(&result)
            && self.e.target.has_fma
        {
            divided(&self.e, vectors[0], *by)
        } else {
            self.e.eval(op, from, to, &vectors)
        };
        Part::Vector(vector.into_vector_value())
    }

    /// A vector's result from that of the first in its row, where the operands are known to differ by
    /// constants.
    fn beside(
        &self,
        op: Op,
        args: &[Value],
        operands: &[Part<'c>],
        (first_operands, first): (&[Part<'c>], Part<'c>),
    ) -> Option<Part<'c>> {
        let Part::Affine {
            base,
            stride,
            exact,
            aligned,
        } = first
        else {
            return None;
        };
        let by = |i: usize| match (operands[i], first_operands[i]) {
            (a, b) if a == b => Some(0),
            (Part::Affine { base: a, .. }, Part::Affine { base: b, .. }) => {
                self.sums.difference(a, b)
            }
            _unknown => None,
        };
        let constant = |i: usize| match self
            .analysis
            .plan
            .definitions
            .get(&args[i])
            .map(|d| &d.kind)
        {
            Some(InstKind::Const(c)) => Some(signed(c.scalar, c.bits)),
            _computed => None,
        };
        let more = match op {
            Op::Add => by(0)?.wrapping_add(by(1)?),
            Op::Sub => by(0)?.wrapping_sub(by(1)?),
            Op::Neg => by(0)?.wrapping_neg(),
            Op::Mul if by(1) == Some(0) => by(0)?.wrapping_mul(constant(1)?),
            Op::Mul if by(0) == Some(0) => by(1)?.wrapping_mul(constant(0)?),
            // What is not exact keeps its type; what is does not wrap, and may be extended.
            Op::Cast => match (operands[0], first_operands[0]) {
                (Part::Affine { base: a, .. }, Part::Affine { base: b, .. }) => {
                    self.sums.distance(a, b)?
                }
                _unknown => return None,
            },
            _other => return None,
        };
        Some(Part::Affine {
            base: self.sums.plus(&self.e, base, more),
            stride,
            exact,
            aligned: aligned.min(more.trailing_zeros()),
        })
    }

    /// The result of a vector whose lanes have one, from that of the vector a row above, where the
    /// operands are known to differ by constants: sums instead of products.
    fn below(
        &self,
        op: Op,
        operands: &[Part<'c>],
        (above_operands, above): (&[Part<'c>], Part<'c>),
    ) -> Option<Part<'c>> {
        let Part::Scalar(BasicValueEnum::IntValue(above)) = above else {
            return None;
        };
        let by = |i: usize| match (operands[i], above_operands[i]) {
            (Part::Scalar(a), Part::Scalar(b)) => {
                self.sums.difference(a.into_int_value(), b.into_int_value())
            }
            _differs_by_lane => None,
        };
        let factor = |i: usize| match operands[i] {
            Part::Scalar(factor) => Some(factor.into_int_value()),
            Part::Affine { .. } | Part::Vector(_) => None,
        };
        let own = match op {
            Op::Add => self.sums.plus(&self.e, above, by(0)?.wrapping_add(by(1)?)),
            Op::Sub => self.sums.plus(&self.e, above, by(0)?.wrapping_sub(by(1)?)),
            Op::Mul if (by(0), by(1)) == (Some(1), Some(0)) => self.added(above, factor(1)?),
            Op::Mul if (by(0), by(1)) == (Some(0), Some(1)) => self.added(above, factor(0)?),
            _other => return None,
        };
        Some(Part::Scalar(own.into()))
    }

    fn added(&self, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
        let sum = self.e.add(a, b);
        self.sums.note(Op::Add, sum, [a, b]);
        sum
    }

    /// A result that grows evenly from lane to lane because the operands do.
    fn line(
        &self,
        op: Op,
        from: Scalar,
        to: Scalar,
        args: &[Value],
        operands: &[Part<'c>],
    ) -> Option<Part<'c>> {
        let lines: Option<Vec<Line>> = operands
            .iter()
            .map(|p| match *p {
                Part::Scalar(_) => Some(Line::SAME),
                Part::Affine {
                    stride,
                    exact,
                    aligned,
                    ..
                } => Some(Line {
                    stride,
                    exact,
                    aligned,
                }),
                Part::Vector(_) => None,
            })
            .collect();
        let constant = |i: usize| match self
            .analysis
            .plan
            .definitions
            .get(&args[i])
            .map(|d| &d.kind)
        {
            Some(InstKind::Const(c)) => Some(signed(c.scalar, c.bits)),
            _computed => None,
        };
        let types = (Type::Scalar(from), Type::Scalar(to));
        let fits = fits(&self.analysis.plan.ranges, args[0], types.1);
        let line = affine(op, types, self.shape.width, &lines?, constant, fits)?;
        let bases: Vec<BasicValueEnum<'c>> = operands
            .iter()
            .map(|p| match p {
                Part::Scalar(s) => *s,
                Part::Affine { base, .. } => (*base).into(),
                Part::Vector(v) => (*v).into(),
            })
            .collect();
        // What is a constant further is told as such: addresses become one, and constants.
        let constant = |base: &BasicValueEnum<'c>| match base {
            BasicValueEnum::IntValue(i) => i.get_sign_extended_constant(),
            _other => None,
        };
        let base = match (op, &bases[..]) {
            (Op::Add | Op::Sub, [BasicValueEnum::IntValue(a), b])
                if line.stride != 0 && to.bits() >= 32 =>
            {
                match constant(b) {
                    Some(by) if op == Op::Add => self.sums.plus(&self.e, *a, by).into(),
                    Some(by) => self.sums.plus(&self.e, *a, by.wrapping_neg()).into(),
                    None => self.e.eval(op, from, to, &bases),
                }
            }
            _other => self.e.eval(op, from, to, &bases),
        };
        self.sums.note_values(op, base, &bases);
        Some(if line.stride == 0 {
            Part::Scalar(base)
        } else {
            Part::Affine {
                base: base.into_int_value(),
                stride: line.stride,
                exact: line.exact,
                aligned: line.aligned,
            }
        })
    }

    // ---- components ----

    // ---- between lanes ----

    // ---- simdgroup matrices ----

    // ---- between lanes ----

    /// Refuses the kernel for something that the compiler does not do; zeros stand for the results.
    fn refuse(&mut self, inst: &Inst, what: &str) {
        let message = format!("the CPU device does not offer {what}");
        let error = Diagnostic::error(Rule::UnsupportedFeature, inst.span, message);
        self.refused.push(error);
        for result in &inst.results {
            let zeros = self.zeros(self.analysis.kernel.ty(*result));
            self.define(*result, zeros, &Mask::All);
        }
    }
}
