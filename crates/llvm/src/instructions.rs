//! Instructions without regions: operations, and what moves components about.

use inkwell::types::{BasicTypeEnum, VectorType};
use inkwell::values::{BasicValueEnum, IntValue, PointerValue, VectorValue};
use invar_codegen::analysis::lanes::{Line, affine};
use invar_ir::inst::{InstKind, MatrixPlace, Value};
use invar_ir::ops::{Group, Imm, LaneRule, Meaning};
use invar_ir::{ElementType, Inst, Op, Scalar, Scope, Type};

use crate::emit::{BUILT, vector_of};
use crate::kernel::FunctionLowering;
use crate::lanes::{LANES, lane_rule};
use crate::matrices::{self, MatrixMemory, Rows};
use crate::ops::{Known, cast_within};
use crate::plan::uses;
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
                let constant = &self.module.function_constants[*index as usize];
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
                let length = self.objects[memory].length;
                self.define(inst.results[0], Parts::uniform(vec![length.into()]), mask);
            }
            InstKind::Load(place) => {
                // What is only stored elsewhere is read there.
                if self.plan.copied(inst.results[0]).is_none() {
                    let parts = self.load(inst, place, mask);
                    self.define(inst.results[0], parts, mask);
                }
            }
            InstKind::Store { place, value } => match self.plan.copied(*value) {
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
        }
    }

    fn op(&mut self, inst: &Inst, op: Op, imm: Imm, args: &[Value], mask: &Mask<'c>) -> Parts<'c> {
        let result = self.kernel.ty(inst.results[0]);
        let parts: Vec<Parts<'c>> = args.iter().map(|v| self.get(*v)).collect();
        let scalar = |v: &Value| self.kernel.ty(*v).scalar().unwrap_or(Scalar::U32);
        match op.row().meaning {
            Meaning::Eval(_) => {
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
                self.between_lanes(group, rule, &types, &parts)
            }
            Meaning::Expand(_) => unreachable!("`{op}` was written out"),
        }
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
                    self.note_small(part);
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
            let result = self.eval(op, from, to, &scalars);
            self.note_values(op, result, &scalars);
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
                range: self.plan.floats.of(args[0]),
                low_bits: self.plan.low_bits.of(result),
            };
            cast_within(&self.e, from, to, vectors[0], known)
        } else {
            self.eval(op, from, to, &vectors)
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
            (Part::Affine { base: a, .. }, Part::Affine { base: b, .. }) => self.difference(a, b),
            _unknown => None,
        };
        let constant = |i: usize| match self.plan.definitions.get(&args[i]).map(|d| &d.kind) {
            Some(InstKind::Const(c)) => Some(signed(c.scalar, c.bits)),
            _computed => None,
        };
        let more = match op {
            Op::Add => by(0)?.wrapping_add(by(1)?),
            Op::Sub => by(0)?.wrapping_sub(by(1)?),
            Op::Neg => by(0)?.wrapping_neg(),
            Op::Mul if by(1) == Some(0) => by(0)?.wrapping_mul(constant(1)?),
            Op::Mul if by(0) == Some(0) => by(1)?.wrapping_mul(constant(0)?),
            // What is not exact keeps its type; what is does not wrap.
            Op::Cast => by(0)?,
            _other => return None,
        };
        Some(Part::Affine {
            base: self.plus(base, more),
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
                self.difference(a.into_int_value(), b.into_int_value())
            }
            _differs_by_lane => None,
        };
        let factor = |i: usize| match operands[i] {
            Part::Scalar(factor) => Some(factor.into_int_value()),
            Part::Affine { .. } | Part::Vector(_) => None,
        };
        let own = match op {
            Op::Add => self.plus(above, by(0)?.wrapping_add(by(1)?)),
            Op::Sub => self.plus(above, by(0)?.wrapping_sub(by(1)?)),
            Op::Mul if (by(0), by(1)) == (Some(1), Some(0)) => self.added(above, factor(1)?),
            Op::Mul if (by(0), by(1)) == (Some(0), Some(1)) => self.added(above, factor(0)?),
            _other => return None,
        };
        Some(Part::Scalar(own.into()))
    }

    fn added(&self, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
        let sum = self.e.add(a, b);
        self.note(Op::Add, sum, [a, b]);
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
        let constant = |i: usize| match self.plan.definitions.get(&args[i]).map(|d| &d.kind) {
            Some(InstKind::Const(c)) => Some(signed(c.scalar, c.bits)),
            _computed => None,
        };
        let types = (Type::Scalar(from), Type::Scalar(to));
        let line = affine(op, types, self.shape.width, &lines?, constant)?;
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
                    Some(by) if op == Op::Add => self.plus(*a, by).into(),
                    Some(by) => self.plus(*a, by.wrapping_neg()).into(),
                    None => self.eval(op, from, to, &bases),
                }
            }
            _other => self.eval(op, from, to, &bases),
        };
        self.note_values(op, base, &bases);
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

    fn arrange(
        &self,
        op: Op,
        imm: Imm,
        args: &[Value],
        parts: &[Parts<'c>],
        result: Type,
    ) -> Parts<'c> {
        let count = self.shape.parts() as usize;
        match (op, imm) {
            (Op::Construct, _) => {
                let all = Parts::concat(parts, count);
                let wanted = result.component_count() as usize;
                if all.components() == 1 && wanted > 1 {
                    return Parts::concat(&vec![all; wanted], count);
                }
                all
            }
            (Op::Swizzle, Imm::Swizzle(swizzle)) => {
                let picked: Vec<Parts<'c>> = swizzle
                    .components()
                    .iter()
                    .map(|c| parts[0].component(usize::from(*c)))
                    .collect();
                Parts::concat(&picked, count)
            }
            (Op::AsType, _) => {
                let from = self.kernel.ty(args[0]).scalar().unwrap_or(Scalar::U32);
                let to = result.scalar().unwrap_or(Scalar::U32);
                self.as_type(from, to, &parts[0], result.component_count() as usize)
            }
            (Op::Extract, _) => {
                let each = result.component_count() as usize;
                let groups = parts[0].components() / each;
                let group = |k: usize| {
                    let list: Vec<_> = (0..each)
                        .map(|c| parts[0].component(k * each + c))
                        .collect();
                    Parts::concat(&list, count)
                };
                if let Some(k) = self.constant_index(args[1]) {
                    return match usize::try_from(k).ok().filter(|k| *k < groups) {
                        Some(k) => group(k),
                        None => self.zeros(result),
                    };
                }
                let index = self.kernel.ty(args[1]).scalar().unwrap_or(Scalar::U32);
                (0..groups).fold(self.zeros(result), |old, k| {
                    let here = self.equals(index, &parts[1], k as u64);
                    self.choose(&here, &group(k), &old)
                })
            }
            (Op::Insert, _) => {
                let each = parts[2].components();
                let groups = parts[0].components() / each;
                let index = self.kernel.ty(args[1]).scalar().unwrap_or(Scalar::U32);
                let known = self.constant_index(args[1]);
                let mut list = Vec::new();
                for k in 0..groups {
                    for c in 0..each {
                        let old = parts[0].component(k * each + c);
                        let new = parts[2].component(c);
                        list.push(match known {
                            Some(known) if known == k as i128 => new,
                            Some(_) => old,
                            None => {
                                let here = self.equals(index, &parts[1], k as u64);
                                self.choose(&here, &new, &old)
                            }
                        });
                    }
                }
                Parts::concat(&list, count)
            }
            (other, _) => unreachable!("`{other}` moves nothing about"),
        }
    }

    /// An index that is a constant.
    pub fn constant_index(&self, value: Value) -> Option<i128> {
        match self.plan.definitions.get(&value).map(|d| &d.kind) {
            Some(InstKind::Const(c)) if c.scalar.is_integer() => {
                let value = signed(c.scalar, c.bits);
                Some(if c.scalar.is_signed_integer() {
                    value.into()
                } else {
                    (c.bits).into()
                })
            }
            _computed => None,
        }
    }

    /// Zeros of a type.
    pub fn zeros(&self, ty: Type) -> Parts<'c> {
        let zero = self.e.component_type(ty).const_zero();
        Parts::uniform(vec![zero; crate::value::component_count(ty)])
    }

    fn equals(&self, scalar: Scalar, index: &Parts<'c>, k: u64) -> Parts<'c> {
        let k = Parts::uniform(vec![self.e.constant(scalar, k)]);
        self.by_part(&[index.clone(), k], |m, v| {
            m.eval(Op::Eq, scalar, Scalar::Bool, v)
        })
    }

    fn choose(&self, condition: &Parts<'c>, yes: &Parts<'c>, no: &Parts<'c>) -> Parts<'c> {
        let list: Vec<Parts<'c>> = (0..yes.components())
            .map(|c| {
                let operands = [condition.clone(), yes.component(c), no.component(c)];
                self.by_part(&operands, |m, v| m.e.select(v[0], v[1], v[2]))
            })
            .collect();
        Parts::concat(&list, self.shape.parts() as usize)
    }

    /// Applies a function of scalars or vectors to values of one component each.
    pub fn by_part(
        &self,
        values: &[Parts<'c>],
        f: impl Fn(&Self, &[BasicValueEnum<'c>]) -> BasicValueEnum<'c>,
    ) -> Parts<'c> {
        let whole = values.iter().all(Parts::is_uniform);
        let count = if whole {
            1
        } else {
            self.shape.parts() as usize
        };
        let list = (0..count)
            .map(|u| {
                let parts: Vec<Part<'c>> = values.iter().map(|v| v.part(0, u)).collect();
                if parts.iter().all(|p| matches!(p, Part::Scalar(_))) {
                    let scalars: Vec<_> = parts.iter().map(|p| self.bits_or_vector(*p)).collect();
                    return Part::Scalar(f(self, &scalars));
                }
                let vectors: Vec<_> = parts
                    .iter()
                    .map(|p| self.e.vector(*p, self.shape.width).into())
                    .collect();
                Part::Vector(f(self, &vectors).into_vector_value())
            })
            .collect();
        Parts::of(list, count)
    }

    fn bits_or_vector(&self, part: Part<'c>) -> BasicValueEnum<'c> {
        match part {
            Part::Scalar(s) => s,
            Part::Vector(v) => v.into(),
            Part::Affine { .. } => self.e.vector(part, self.shape.width).into(),
        }
    }

    /// The same bits as other components; the first is lowest.
    fn as_type(&self, from: Scalar, to: Scalar, x: &Parts<'c>, wanted: usize) -> Parts<'c> {
        let (width, out) = (from.bits() as usize, to.bits() as usize);
        let components: Vec<Parts<'c>> = (0..wanted)
            .map(|k| {
                if width >= out {
                    let parts = width / out;
                    let shift = out * (k % parts);
                    self.by_part(&[x.component(k / parts)], |m, v| {
                        let bits = m.to_bits(v[0], width as u32);
                        let bits = m.shift(bits, shift as u64, false);
                        m.as_scalar(m.resize(bits, out as u32), to)
                    })
                } else {
                    let parts = out / width;
                    let list: Vec<Parts<'c>> =
                        (0..parts).map(|j| x.component(k * parts + j)).collect();
                    self.by_part(&list, |m, v| {
                        let mut all: Option<BasicValueEnum<'c>> = None;
                        for (j, part) in v.iter().enumerate() {
                            let bits = m.to_bits(*part, width as u32);
                            let bits =
                                m.shift(m.resize(bits, out as u32), (width * j) as u64, true);
                            all = Some(all.map_or(bits, |a| m.or_any(a, bits)));
                        }
                        m.as_scalar(all.expect("a part"), to)
                    })
                }
            })
            .collect();
        Parts::concat(&components, self.shape.parts() as usize)
    }

    /// The integer type of that many bits, of the shape of a value.
    fn shaped(&self, like: BasicValueEnum<'c>, bits: u32) -> BasicTypeEnum<'c> {
        match like {
            BasicValueEnum::VectorValue(v) => {
                let lanes = v.get_type().get_size();
                vector_of(self.e.int_type(bits).into(), lanes).into()
            }
            _scalar => self.e.int_type(bits).into(),
        }
    }

    fn to_bits(&self, value: BasicValueEnum<'c>, bits: u32) -> BasicValueEnum<'c> {
        let ty = self.shaped(value, bits);
        self.e.builder.build_bit_cast(value, ty, "").expect(BUILT)
    }

    fn as_scalar(&self, bits: BasicValueEnum<'c>, scalar: Scalar) -> BasicValueEnum<'c> {
        let one = self.e.scalar_type(scalar);
        let ty = match bits {
            BasicValueEnum::VectorValue(v) => vector_of(one, v.get_type().get_size()).into(),
            _scalar => one,
        };
        self.e.builder.build_bit_cast(bits, ty, "").expect(BUILT)
    }

    fn or_any(&self, a: BasicValueEnum<'c>, b: BasicValueEnum<'c>) -> BasicValueEnum<'c> {
        match (a, b) {
            (BasicValueEnum::VectorValue(a), BasicValueEnum::VectorValue(b)) => {
                self.e.or(a, b).into()
            }
            (a, b) => self.e.or(a.into_int_value(), b.into_int_value()).into(),
        }
    }

    fn shift(&self, value: BasicValueEnum<'c>, count: u64, left: bool) -> BasicValueEnum<'c> {
        if count == 0 {
            return value;
        }
        let b = &self.e.builder;
        match value {
            BasicValueEnum::VectorValue(v) => {
                let ty = v.get_type().get_element_type().into_int_type();
                let count = ty.const_int(count, false);
                let count =
                    VectorType::const_vector(&vec![count; v.get_type().get_size() as usize]);
                if left {
                    b.build_left_shift(v, count, "").expect(BUILT).into()
                } else {
                    b.build_right_shift(v, count, false, "")
                        .expect(BUILT)
                        .into()
                }
            }
            scalar => {
                let v = scalar.into_int_value();
                let count = v.get_type().const_int(count, false);
                if left {
                    b.build_left_shift(v, count, "").expect(BUILT).into()
                } else {
                    b.build_right_shift(v, count, false, "")
                        .expect(BUILT)
                        .into()
                }
            }
        }
    }

    fn resize(&self, value: BasicValueEnum<'c>, bits: u32) -> BasicValueEnum<'c> {
        let ty = self.shaped(value, bits);
        let b = &self.e.builder;
        match (value, ty) {
            (BasicValueEnum::VectorValue(v), BasicTypeEnum::VectorType(ty)) => {
                let own = v
                    .get_type()
                    .get_element_type()
                    .into_int_type()
                    .get_bit_width();
                match own.cmp(&bits) {
                    std::cmp::Ordering::Less => {
                        b.build_int_z_extend(v, ty, "").expect(BUILT).into()
                    }
                    std::cmp::Ordering::Equal => value,
                    std::cmp::Ordering::Greater => {
                        b.build_int_truncate(v, ty, "").expect(BUILT).into()
                    }
                }
            }
            (value, ty) => {
                let (v, ty) = (value.into_int_value(), ty.into_int_type());
                match v.get_type().get_bit_width().cmp(&bits) {
                    std::cmp::Ordering::Less => {
                        b.build_int_z_extend(v, ty, "").expect(BUILT).into()
                    }
                    std::cmp::Ordering::Equal => value,
                    std::cmp::Ordering::Greater => {
                        b.build_int_truncate(v, ty, "").expect(BUILT).into()
                    }
                }
            }
        }
    }

    // ---- between lanes ----

    /// Vectors of a simdgroup.
    pub fn simdgroup_parts(&self) -> usize {
        (LANES / self.shape.width) as usize
    }

    /// A component of a simdgroup of the chunk as one vector.
    fn simdgroup(&self, parts: &Parts<'c>, component: usize, number: usize) -> VectorValue<'c> {
        let each = self.simdgroup_parts();
        let vectors: Vec<_> = (number * each..(number + 1) * each)
            .map(|u| self.e.vector(parts.part(component, u), self.shape.width))
            .collect();
        self.join(&vectors)
    }

    /// Vectors one after another, as many as are a power of two.
    pub fn join(&self, vectors: &[VectorValue<'c>]) -> VectorValue<'c> {
        let mut list = vectors.to_vec();
        while list.len() > 1 {
            list = list
                .chunks(2)
                .map(|pair| {
                    let lanes = pair[0].get_type().get_size() * 2;
                    let order: Vec<_> = (0..lanes).map(|l| self.e.i32(l)).collect();
                    let order = VectorType::const_vector(&order);
                    self.e
                        .builder
                        .build_shuffle_vector(pair[0], pair[1], order, "")
                        .expect(BUILT)
                })
                .collect();
        }
        list[0]
    }

    /// A vector in parts of the chunk's width.
    pub fn split(&self, vector: VectorValue<'c>) -> Vec<Part<'c>> {
        let width = self.shape.width;
        let poison = vector.get_type().get_poison();
        (0..vector.get_type().get_size() / width)
            .map(|u| {
                let order: Vec<_> = (0..width).map(|l| self.e.i32(u * width + l)).collect();
                let order = VectorType::const_vector(&order);
                let part = self
                    .e
                    .builder
                    .build_shuffle_vector(vector, poison, order, "");
                Part::Vector(part.expect(BUILT))
            })
            .collect()
    }

    // ---- simdgroup matrices ----

    /// A value that is the same for the simdgroup.
    fn one_scalar(&mut self, value: Value, mask: &Mask<'c>) -> BasicValueEnum<'c> {
        let parts = self.get(value);
        match self.make_uniform(&parts, mask).part(0, 0) {
            Part::Scalar(one) => one,
            Part::Affine { .. } | Part::Vector(_) => unreachable!("it was made uniform"),
        }
    }

    fn matrix(&mut self, value: Value) -> (Scalar, Rows<'c>) {
        let parts = self.get(value);
        let row = |r| match parts.part(r, 0) {
            Part::Scalar(row) => row.into_vector_value(),
            Part::Affine { .. } | Part::Vector(_) => unreachable!("the simdgroup has one"),
        };
        let scalar = self.kernel.ty(value).scalar().unwrap_or(Scalar::F32);
        (scalar, (0..parts.components()).map(row).collect())
    }

    /// Whether products that are not yet made may be made after this instruction instead of before it:
    /// it needs none of them, and if it is one too, registers hold them all.
    pub fn can_wait(&self, products: &[&'k Inst], inst: &Inst) -> bool {
        let goes_on = inst.kind.regions().is_empty() && !inst.kind.is_terminator();
        let needs = |v: &Value| products.iter().any(|p| p.results[0] == *v);
        let one_more = match &inst.kind {
            InstKind::MatrixMultiplyAccumulate { c, .. } => {
                let scalar = self.kernel.ty(*c).scalar().unwrap_or(Scalar::F32);
                products.len() < matrices::products_at_once(&self.e, scalar)
            }
            _other => true,
        };
        products.is_empty() || (goes_on && one_more && !uses(inst).iter().any(needs))
    }

    /// Reads a matrix; keeps where it is for those who may read it there.
    fn load_matrix(&mut self, inst: &'k Inst, place: &MatrixPlace, mask: &Mask<'c>) {
        let (scalar, memory) = self.matrix_memory(inst, place, mask);
        let value = inst.results[0];
        if self.is_rare() {
            let stack = matrices::load_aside(&self.e, scalar, &memory);
            self.define_on_stack(value, scalar, stack, mask);
            return;
        }
        if let Some(rows) = matrices::rows_in_memory(&self.e, scalar, &memory) {
            self.chunk().matrices.insert(value, rows);
        }
        let rows = matrices::load(&self.e, scalar, &memory);
        self.define_matrix(value, rows, mask);
    }

    /// Makes products that do not need each other.
    pub fn multiply(&mut self, products: &mut Vec<&'k Inst>, mask: &Mask<'c>) {
        let factors: Vec<_> = (products.drain(..))
            .map(|inst| match &inst.kind {
                InstKind::MatrixMultiplyAccumulate { a, b, c } => (inst.results[0], [*a, *b, *c]),
                _other => unreachable!("a product of matrices"),
            })
            .collect();
        if factors.is_empty() {
            return;
        }
        if self.is_rare() {
            for (result, factors) in factors {
                let factors = factors.map(|v| self.matrix_on_stack(v));
                let scalar = factors[2].0;
                let stack = matrices::multiply_aside(&self.e, factors);
                self.define_on_stack(result, scalar, stack, mask);
            }
            return;
        }
        let operands: Vec<_> = (factors.iter())
            .map(|(_, factors)| factors.map(|v| self.matrix(v)))
            .collect();
        let in_memory = &self.chunk_ref().matrices;
        let rights: Vec<_> = (factors.iter())
            .map(|(_, [_, b, _])| in_memory.get(b).copied())
            .collect();
        let e = &self.e;
        let places = *self
            .entries
            .get_or_insert_with(|| matrices::first_entries(e));
        let sums = matrices::multiply_by_rows(e, places, &operands, &rights)
            .unwrap_or_else(|| matrices::multiply_accumulate(e, places, &operands));
        for ((result, _), rows) in factors.into_iter().zip(sums) {
            self.define_matrix(result, rows, mask);
        }
    }

    /// A matrix on the stack, where the code is rare: most are there already.
    fn matrix_on_stack(&mut self, value: Value) -> (Scalar, PointerValue<'c>) {
        let (scalar, rows) = self.matrix(value);
        let known = self.chunk_ref().stacks.get(&value).copied();
        let stack = known.unwrap_or_else(|| matrices::to_stack(&self.e, scalar, &rows));
        (scalar, stack)
    }

    fn define_on_stack(
        &mut self,
        value: Value,
        scalar: Scalar,
        stack: PointerValue<'c>,
        mask: &Mask<'c>,
    ) {
        self.chunk().stacks.insert(value, stack);
        let rows = matrices::read_stack(&self.e, scalar, stack);
        self.define_matrix(value, rows, mask);
    }

    fn define_matrix(&mut self, value: Value, rows: Rows<'c>, mask: &Mask<'c>) {
        let rows = rows.into_iter().map(Into::into).collect();
        self.define(value, Parts::uniform(rows), mask);
    }

    fn matrix_memory(
        &mut self,
        inst: &Inst,
        place: &MatrixPlace,
        mask: &Mask<'c>,
    ) -> (Scalar, MatrixMemory<'c>) {
        let object = self.objects[&place.memory].clone();
        let ElementType::Value(element) = object.element else {
            unreachable!("the elements are scalars");
        };
        let mut integer = |value: Value| {
            let scalar = self.kernel.ty(value).scalar().unwrap_or(Scalar::U32);
            (scalar, self.one_scalar(value, mask).into_int_value())
        };
        let memory = MatrixMemory {
            base: object.base,
            length: object.length,
            index: integer(place.index),
            row: integer(place.row),
            transpose: place.transpose,
            inside: self.proved(inst).is_some(),
            races: object.shared && !object.constant,
        };
        (element.scalar().unwrap_or(Scalar::F32), memory)
    }

    // ---- between lanes ----

    fn between_lanes(
        &self,
        group: Group,
        rule: LaneRule,
        types: &[Scalar],
        parts: &[Parts<'c>],
    ) -> Parts<'c> {
        let each = self.simdgroup_parts();
        let count = self.shape.parts() as usize;
        debug_assert!(count.is_multiple_of(each), "chunks are of whole simdgroups");
        let mut list = Vec::new();
        for c in 0..parts[0].components() {
            // The vectors of each result.
            let mut results: Vec<Vec<Part<'c>>> = Vec::new();
            for number in 0..count / each {
                let present = match &self.chunk_ref().exist {
                    Mask::All => None,
                    Mask::Some(list) => Some(self.join(&list[number * each..][..each])),
                };
                let value = self.simdgroup(&parts[0], c, number);
                let by = parts
                    .get(1)
                    .map(|lane| (types[1], self.simdgroup(lane, 0, number)));
                let own = lane_rule(&self.e, group, rule, types[0], value, by, present);
                results.resize(own.len(), Vec::new());
                for (result, vector) in results.iter_mut().zip(own) {
                    result.extend(self.split(vector));
                }
            }
            list.extend(results.into_iter().flatten());
        }
        Parts::of(list, count)
    }
}

/// An integer constant's value, of 64 bits.
pub(crate) fn signed(scalar: Scalar, bits: u64) -> i64 {
    let shift = 64 - scalar.bits();
    if scalar.is_signed_integer() {
        ((bits << shift) as i64) >> shift
    } else {
        bits as i64
    }
}
