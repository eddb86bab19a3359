//! Expressions but for the functions that are built in.

use invar_ir::{Const, ConstantArray, Imm, Memory, Op, Scalar, Swizzle, Type, Value};
use naga::proc::TypeResolution;
use naga::{
    Arena, BinaryOperator, Expression, Handle, Literal, RelationalFunction, ScalarKind,
    SwizzleComponent, TypeInner, UnaryOperator,
};
use smallvec::SmallVec;

use crate::overrides::literal;
use crate::texture::Load;
use crate::translator::{Done, Translator};
use crate::types::{scalar, value_type};
use crate::value::{At, Index, Layout, MemPtr, Ptr, Val};

/// Arrays of constants with more elements than these become tables; of fewer, those of which a computed index chooses.
const MAX_INLINE_CONSTANTS: usize = 4;

impl<'a> Translator<'a> {
    fn inner(&self, handle: Handle<Expression>) -> &'a TypeInner {
        self.frame().info[handle].ty.inner_with(&self.shader.types)
    }

    /// The type of an expression that is one value.
    pub fn type_of(&self, handle: Handle<Expression>) -> Done<Type> {
        match value_type(self.inner(handle)) {
            Some(ty) => Ok(ty),
            None => Err(self.unexpected("an expression without a value")),
        }
    }

    /// The value of an expression.
    pub fn expr(&mut self, handle: Handle<Expression>) -> Done<Val> {
        if let Some(value) = self.frame().values.get(&handle) {
            return Ok(value.clone());
        }
        let function = self.frame().function;
        match &function.expressions[handle] {
            Expression::FunctionArgument(number) => {
                match self.frame().arguments.get(*number as usize) {
                    Some(value) => Ok(value.clone()),
                    None => Err(self.unexpected("an argument that is not there")),
                }
            }
            Expression::LocalVariable(local) => match self.frame().locals.get(local) {
                Some(tree) => Ok(Val::Pointer(Ptr::Tree(tree.clone()))),
                None => Err(self.unexpected("a variable that is not there")),
            },
            Expression::GlobalVariable(global) if self.textures.contains_key(global) => {
                Ok(self.textures[global].clone())
            }
            Expression::GlobalVariable(global) => match self.globals.get(global) {
                Some(ptr) => Ok(Val::Pointer(ptr.clone())),
                None => {
                    let variable = &self.shader.global_variables[*global];
                    let name = variable.name.clone().unwrap_or_default();
                    let inner = &self.shader.types[variable.ty].inner;
                    let what = crate::types::describe(inner);
                    Err(self.refuse(&format!("{what} (`{name}`)")))
                }
            },
            // What need not be emitted is computed where it is used.
            _computed => self.compute(handle),
        }
    }

    /// The value of an expression of the module: constants' and private variables' initial values.
    pub fn global_expr(&mut self, handle: Handle<Expression>) -> Done<Val> {
        let arena = &self.shader.global_expressions;
        if let Some(table) = self.table(handle)? {
            return Ok(table);
        }
        match &arena[handle] {
            Expression::Literal(l) => Ok(Val::One(self.literal(*l)?)),
            Expression::Constant(c) => self.global_expr(self.shader.constants[*c].init),
            Expression::Override(o) => self.override_value(*o),
            Expression::ZeroValue(ty) => {
                let constants = self.shader.constants.iter();
                let named = constants.filter(|(_, c)| c.init == handle);
                let name = named.filter_map(|(_, c)| c.name.clone()).next();
                self.zero(*ty, &name.unwrap_or_else(|| "array".to_string()))
            }
            Expression::Compose { ty, components } => {
                let mut values = Vec::new();
                for component in components {
                    values.push(self.global_expr(*component)?);
                }
                self.compose(*ty, &values)
            }
            Expression::Splat { size, value } => {
                let value = self.global_expr(*value)?;
                let value = self.one(&value)?;
                let Type::Scalar(of) = self.k.ty(value) else {
                    return Err(self.unexpected("a vector of vectors"));
                };
                Ok(Val::One(
                    self.construct(Type::Vector(of, *size as u8), &[value]),
                ))
            }
            _computed => match self.overrides.evaluate(handle) {
                Some(l) => Ok(Val::One(self.literal(l)?)),
                None => Err(self.refuse("this initial value")),
            },
        }
    }

    /// A long array of constants, as a program-scope constant.
    fn table(&mut self, handle: Handle<Expression>) -> Done<Option<Val>> {
        let shader = self.shader;
        let Expression::Compose { ty, .. } = shader.global_expressions[handle] else {
            return Ok(None);
        };
        let known = match self.tables.get(&handle) {
            Some(known) => *known,
            None => {
                let name = shader.constants.iter().find(|(_, c)| c.init == handle);
                let name = name.and_then(|(_, c)| c.name.clone());
                let known = (&shader.global_expressions, handle, MAX_INLINE_CONSTANTS);
                let known = self.declare_table(known, ty, name)?;
                self.tables.insert(handle, known);
                known
            }
        };
        Ok(known.map(|memory| Self::stored(memory, ty)))
    }

    /// An array of constants of which a computed index chooses, as a program-scope constant, however short it is.
    fn short_table(
        &mut self,
        base: Handle<Expression>,
        ty: Handle<naga::Type>,
    ) -> Done<Option<Val>> {
        let (shader, function) = (self.shader, self.frame().function);
        let (arena, handle, name) = match &function.expressions[base] {
            Expression::Constant(c) => {
                let constant = &shader.constants[*c];
                let name = constant.name.clone();
                (&shader.global_expressions, constant.init, name)
            }
            Expression::Compose { .. } => {
                let name = function.named_expressions.get(&base).cloned();
                (&function.expressions, base, name)
            }
            _computed => return Ok(None),
        };
        let known = self.declare_table((arena, handle, 0), ty, name)?;
        Ok(known.map(|memory| Self::stored(memory, ty)))
    }

    fn stored(memory: Memory, ty: Handle<naga::Type>) -> Val {
        Val::Stored(MemPtr {
            memory,
            index: None,
            path: SmallVec::new(),
            at: At::Type(ty, Layout::Own),
        })
    }

    fn declare_table(
        &mut self,
        (arena, handle, inline): (&Arena<Expression>, Handle<Expression>, usize),
        ty: Handle<naga::Type>,
        name: Option<String>,
    ) -> Done<Option<Memory>> {
        let TypeInner::Array { base, size, .. } = self.shader.types[ty].inner else {
            return Ok(None);
        };
        let Some(length) = self.array_length(size) else {
            return Ok(None);
        };
        let mut values = Vec::new();
        if !self.flatten(arena, handle, &mut values) || values.len() <= inline {
            return Ok(None);
        }
        let element = self.array_element(base, Layout::Own)?;
        let span = self.k.span();
        let constants = &mut self.k.module_mut().constants;
        let wanted = name.unwrap_or_else(|| "table".to_string());
        let same =
            |c: &ConstantArray| c.values == values && c.element == element && c.length == length;
        if let Some(at) = constants.iter().position(same) {
            return Ok(Some(Memory::Constant(at as u32)));
        }
        let mut name = wanted.clone();
        let mut number = 0;
        while constants.iter().any(|c| *c.name == *name) {
            number += 1;
            name = format!("{wanted}.{number}");
        }
        constants.push(ConstantArray {
            name: name.into(),
            element,
            length,
            values,
            span,
        });
        Ok(Some(Memory::Constant(constants.len() as u32 - 1)))
    }

    /// The scalars of an expression made of constants; whether it is.
    fn flatten(
        &self,
        arena: &Arena<Expression>,
        handle: Handle<Expression>,
        out: &mut Vec<Const>,
    ) -> bool {
        let globals = &self.shader.global_expressions;
        match &arena[handle] {
            Expression::Literal(l) => match literal(*l) {
                Some(constant) => {
                    out.push(constant);
                    true
                }
                None => false,
            },
            Expression::Constant(c) => self.flatten(globals, self.shader.constants[*c].init, out),
            Expression::Compose { components, .. } => {
                components.iter().all(|c| self.flatten(arena, *c, out))
            }
            Expression::Splat { size, value } => {
                (0..*size as u8).all(|_| self.flatten(arena, *value, out))
            }
            Expression::ZeroValue(ty) => self.flatten_zero(*ty, out),
            _computed => false,
        }
    }

    fn flatten_zero(&self, ty: Handle<naga::Type>, out: &mut Vec<Const>) -> bool {
        let inner = &self.shader.types[ty].inner;
        if let Some(ty) = value_type(inner) {
            let Some(scalar) = ty.scalar() else {
                return false;
            };
            let zeros =
                std::iter::repeat_n(Const { scalar, bits: 0 }, ty.component_count() as usize);
            out.extend(zeros);
            return true;
        }
        match inner {
            TypeInner::Struct { members, .. } => {
                members.iter().all(|m| self.flatten_zero(m.ty, out))
            }
            TypeInner::Array { base, size, .. } => {
                let length = self.array_length(*size).unwrap_or(0);
                (0..length).all(|_| self.flatten_zero(*base, out))
            }
            _any_other => false,
        }
    }

    pub fn literal(&mut self, l: Literal) -> Done<Value> {
        match literal(l) {
            Some(constant) => Ok(self.constant(constant)),
            None => Err(self.unexpected("a number without a type")),
        }
    }

    fn override_value(&mut self, handle: Handle<naga::Override>) -> Done<Val> {
        if let Some(number) = self.overrides.function_constant(handle) {
            return Ok(Val::One(self.k.function_constant(number)));
        }
        match self.overrides.value(handle) {
            Some(l) => Ok(Val::One(self.literal(l)?)),
            None => Err(self.unexpected("an override without a value")),
        }
    }

    fn compose(&mut self, ty: Handle<naga::Type>, components: &[Val]) -> Done<Val> {
        let Some(value) = value_type(&self.shader.types[ty].inner) else {
            return Ok(Val::Many(components.into()));
        };
        let mut parts = Vec::new();
        for component in components {
            parts.push(self.one(component)?);
        }
        if let Type::Matrix { scalar, rows, .. } = value
            && parts
                .first()
                .is_some_and(|p| self.k.ty(*p) == Type::Scalar(scalar))
        {
            let columns: Vec<Value> = parts
                .chunks(rows as usize)
                .map(|column| self.construct(Type::Vector(scalar, rows), column))
                .collect();
            parts = columns;
        }
        if let Type::Scalar(_) = value {
            return Ok(components[0].clone());
        }
        // Vectors of scalars and shorter vectors: by scalars, where they are known.
        let mut scalars = Vec::new();
        for part in &parts {
            match self.parts.get(part) {
                Some(known) if matches!(value, Type::Vector(..)) => {
                    scalars.extend(known.iter().copied())
                }
                _unknown => scalars.push(*part),
            }
        }
        Ok(Val::One(self.construct(value, &scalars)))
    }

    /// Computes an expression.
    pub fn compute(&mut self, handle: Handle<Expression>) -> Done<Val> {
        self.count()?;
        let function = self.frame().function;
        Ok(match &function.expressions[handle] {
            Expression::Literal(l) => Val::One(self.literal(*l)?),
            Expression::Constant(c) => {
                let init = self.shader.constants[*c].init;
                self.global_expr(init)?
            }
            Expression::Override(o) => self.override_value(*o)?,
            Expression::ZeroValue(ty) => self.zero(*ty, &self.called(handle))?,
            Expression::Compose { ty, components } => {
                let name = function.named_expressions.get(&handle).cloned();
                let own = (&function.expressions, handle, MAX_INLINE_CONSTANTS);
                if let Some(memory) = self.declare_table(own, *ty, name)? {
                    return Ok(Self::stored(memory, *ty));
                }
                let mut values = Vec::new();
                for component in components {
                    values.push(self.expr(*component)?);
                }
                self.compose(*ty, &values)?
            }
            Expression::Access { base, index } => self.access(*base, *index)?,
            Expression::AccessIndex { base, index } => {
                let value = self.expr(*base)?;
                self.part(&value, Index::Constant(*index))?
            }
            Expression::Splat { value, .. } => {
                let value = self.expr(*value)?;
                let value = self.one(&value)?;
                let ty = self.type_of(handle)?;
                Val::One(self.construct(ty, &[value]))
            }
            Expression::Swizzle {
                size,
                vector,
                pattern,
            } => self.swizzle(handle, *vector, &pattern[..*size as usize])?,
            Expression::Load { pointer } => {
                let pointer = self.pointer(*pointer)?;
                self.load(&pointer)?
            }
            Expression::Unary { op, expr } => {
                let value = self.expr(*expr)?;
                let value = self.one(&value)?;
                let op = match op {
                    UnaryOperator::Negate => Op::Neg,
                    UnaryOperator::LogicalNot | UnaryOperator::BitwiseNot => Op::Not,
                };
                Val::One(self.op(op, &[value]))
            }
            Expression::Binary { op, left, right } => {
                let (a, b) = (self.expr(*left)?, self.expr(*right)?);
                let (a, b) = (self.one(&a)?, self.one(&b)?);
                Val::One(self.binary(*op, a, b)?)
            }
            Expression::Select {
                condition,
                accept,
                reject,
            } => {
                let condition = self.expr(*condition)?;
                let (yes, no) = (self.expr(*accept)?, self.expr(*reject)?);
                let condition = self.one(&condition)?;
                let (yes, no) = (self.one(&yes)?, self.one(&no)?);
                Val::One(self.op(Op::Select, &[no, yes, condition]))
            }
            Expression::Relational { fun, argument } => {
                let value = self.expr(*argument)?;
                let value = self.one(&value)?;
                let scalar = matches!(self.k.ty(value), Type::Scalar(_));
                Val::One(match fun {
                    RelationalFunction::All | RelationalFunction::Any if scalar => value,
                    RelationalFunction::All => self.op(Op::All, &[value]),
                    RelationalFunction::Any => self.op(Op::Any, &[value]),
                    RelationalFunction::IsNan => self.op(Op::IsNan, &[value]),
                    RelationalFunction::IsInf => self.op(Op::IsInf, &[value]),
                })
            }
            Expression::As {
                expr,
                kind,
                convert,
            } => {
                let value = self.expr(*expr)?;
                let value = self.one(&value)?;
                Val::One(self.convert(value, *kind, *convert)?)
            }
            Expression::Math {
                fun,
                arg,
                arg1,
                arg2,
                arg3,
            } => {
                let mut args = Vec::new();
                for arg in [Some(*arg), *arg1, *arg2, *arg3].into_iter().flatten() {
                    let value = self.expr(arg)?;
                    args.push(self.one(&value)?);
                }
                self.math(*fun, &args)?
            }
            Expression::ArrayLength(pointer) => {
                let Ptr::Memory(memory) = self.pointer(*pointer)? else {
                    return Err(self.unexpected("the length of what is not in memory"));
                };
                let length = self.k.buffer_length(memory.memory);
                Val::One(self.k.op(Op::Cast, Type::U32, &[length]))
            }
            Expression::FunctionArgument(_)
            | Expression::GlobalVariable(_)
            | Expression::LocalVariable(_) => self.expr(handle)?,
            Expression::CallResult(_)
            | Expression::AtomicResult { .. }
            | Expression::WorkGroupUniformLoadResult { .. }
            | Expression::SubgroupBallotResult
            | Expression::SubgroupOperationResult { .. } => {
                return Err(self.unexpected("a result before its statement"));
            }
            Expression::ImageSample { .. } => {
                let function = self.frame().function;
                self.texture_sample(&function.expressions[handle])?
            }
            Expression::ImageLoad {
                image,
                coordinate,
                array_index,
                sample,
                level,
            } => self.texture_load(&Load {
                image: *image,
                coordinate: *coordinate,
                element: *array_index,
                sample: *sample,
                level: *level,
            })?,
            Expression::ImageQuery { image, query } => self.texture_query(*image, query)?,
            Expression::Derivative { .. } => return Err(self.refuse("a derivative")),
            Expression::RayQueryVertexPositions { .. }
            | Expression::RayQueryProceedResult
            | Expression::RayQueryGetIntersection { .. } => {
                return Err(self.refuse("a ray query"));
            }
            Expression::CooperativeLoad { .. } | Expression::CooperativeMultiplyAdd { .. } => {
                return Err(self.refuse("a cooperative matrix"));
            }
        })
    }

    /// What an author calls the value of an expression: by its name, or as it is written.
    fn called(&self, handle: Handle<Expression>) -> String {
        let function = self.frame().function;
        let name = function.named_expressions.get(&handle).cloned();
        let span = function.expressions.get_span(handle);
        let name = name.or_else(|| self.lines.written_at(span).map(str::to_string));
        name.unwrap_or_else(|| "array".to_string())
    }

    /// A part of a value at an index that is computed.
    fn access(&mut self, base: Handle<Expression>, index: Handle<Expression>) -> Done<Val> {
        let value = self.expr(base)?;
        let index = self.expr(index)?;
        let index = self.one(&index)?;
        let index = match self.known.get(&index) {
            Some(known) if i32::try_from(known.bits).is_ok() => Index::Constant(known.bits as u32),
            _unknown => Index::Value(index),
        };
        let value = match (&value, index) {
            (Val::Many(_), Index::Value(_)) => {
                let TypeResolution::Handle(ty) = self.frame().info[base].ty else {
                    return Err(self.unexpected("an array without a type"));
                };
                match self.short_table(base, ty)? {
                    Some(table) => table,
                    None => self.spill(&value, ty, &self.called(base))?,
                }
            }
            _as_it_is => value,
        };
        self.part(&value, index)
    }

    /// Some components of a vector.
    fn swizzle(
        &mut self,
        handle: Handle<Expression>,
        vector: Handle<Expression>,
        pattern: &[SwizzleComponent],
    ) -> Done<Val> {
        let vector = self.expr(vector)?;
        let vector = self.one(&vector)?;
        let pattern: Vec<u8> = pattern.iter().map(|c| *c as u8).collect();
        if let Some(parts) = self.parts.get(&vector).cloned() {
            let ty = self.type_of(handle)?;
            let chosen: Vec<Value> = pattern
                .iter()
                .filter_map(|i| parts.get(*i as usize).copied())
                .collect();
            return Ok(Val::One(self.construct(ty, &chosen)));
        }
        let Some(swizzle) = Swizzle::new(&pattern) else {
            return Err(self.unexpected("components that no vector has"));
        };
        Ok(Val::One(self.k.op(Op::Swizzle, swizzle, &[vector])))
    }

    /// An expression that is a pointer.
    pub fn pointer(&mut self, handle: Handle<Expression>) -> Done<Ptr> {
        match self.expr(handle)? {
            Val::Pointer(ptr) => Ok(ptr),
            Val::One(_) | Val::Many(_) | Val::Stored(_) | Val::Texture(_) | Val::Sampler(_) => {
                Err(self.unexpected("a value as a pointer"))
            }
        }
    }

    fn convert(&mut self, value: Value, kind: ScalarKind, width: Option<u8>) -> Done<Value> {
        let from = self.k.ty(value);
        let Some(width) = width else {
            // The same bits as another kind of the same width.
            let bytes = from.scalar().map_or(4, |s| s.size_bytes() as u8);
            let to = scalar(naga::Scalar { kind, width: bytes });
            let Some(to) = to.and_then(|to| from.with_scalar(to)) else {
                return Err(self.unexpected("bits as a type that has other bits"));
            };
            if to == from {
                return Ok(value);
            }
            return Ok(self.k.op(Op::AsType, to, &[value]));
        };
        let to = scalar(naga::Scalar { kind, width });
        let Some(to) = to.and_then(|to| from.with_scalar(to)) else {
            return Err(self.unexpected("a conversion to no type"));
        };
        if to == from {
            return Ok(value);
        }
        if let Type::Matrix {
            scalar: s,
            columns,
            rows,
        } = to
        {
            let mut parts = Vec::new();
            for column in 0..columns {
                let part = self.part(&Val::One(value), Index::Constant(u32::from(column)))?;
                let part = self.one(&part)?;
                parts.push(self.k.op(Op::Cast, Type::Vector(s, rows), &[part]));
            }
            return Ok(self.construct(to, &parts));
        }
        Ok(self.k.op(Op::Cast, Imm::from(to), &[value]))
    }

    /// Both operands of the shape of the wider.
    fn same_shape(&mut self, a: Value, b: Value) -> (Value, Value) {
        let spread = |t: &mut Self, one: Value, like: Type| match (t.k.ty(one), like) {
            (Type::Scalar(scalar), Type::Vector(_, n)) => {
                t.construct(Type::Vector(scalar, n), &[one])
            }
            _same => one,
        };
        let (ta, tb) = (self.k.ty(a), self.k.ty(b));
        (spread(self, a, tb), spread(self, b, ta))
    }

    fn binary(&mut self, op: BinaryOperator, a: Value, b: Value) -> Done<Value> {
        use BinaryOperator as B;
        let matrix = |t: &Self, v| matches!(t.k.ty(v), Type::Matrix { .. });
        if op == B::Multiply && (matrix(self, a) || matrix(self, b)) {
            return self.matrix_product(a, b);
        }
        let (a, mut b) = self.same_shape(a, b);
        let ty = self.k.ty(a);
        let is_float = ty.scalar().is_some_and(Scalar::is_float);
        if matches!(op, B::ShiftLeft | B::ShiftRight) && self.k.ty(b) != ty {
            b = self.k.op(Op::Cast, ty, &[b]);
        }
        let op = match op {
            B::Add => Op::Add,
            B::Subtract => Op::Sub,
            B::Multiply => Op::Mul,
            B::Divide if is_float => Op::Div,
            B::Divide => return self.divide(a, b),
            B::Modulo if is_float => Op::Fmod,
            B::Modulo => Op::Rem,
            B::Equal => Op::Eq,
            B::NotEqual => Op::Ne,
            B::Less => Op::Lt,
            B::LessEqual => Op::Le,
            B::Greater => Op::Gt,
            B::GreaterEqual => Op::Ge,
            B::And | B::LogicalAnd => Op::And,
            B::ExclusiveOr => Op::Xor,
            B::InclusiveOr | B::LogicalOr => Op::Or,
            B::ShiftLeft => Op::Shl,
            B::ShiftRight => Op::Shr,
        };
        Ok(self.op(op, &[a, b]))
    }

    /// An integer quotient: in WGSL `x / 0` is `x`, here 0 (A2).
    fn divide(&mut self, a: Value, b: Value) -> Done<Value> {
        let quotient = self.op(Op::Div, &[a, b]);
        let parts = self.parts.get(&b).cloned().unwrap_or_default();
        let nonzero = |t: &Self, v: &Value| t.known.get(v).is_some_and(|c| c.bits != 0);
        if nonzero(self, &b) || (!parts.is_empty() && parts.iter().all(|p| nonzero(self, p))) {
            return Ok(quotient);
        }
        let zero = self.zero_of(self.k.ty(b))?;
        let by_zero = self.op(Op::Eq, &[b, zero]);
        Ok(self.op(Op::Select, &[quotient, a, by_zero]))
    }

    fn matrix_product(&mut self, a: Value, b: Value) -> Done<Value> {
        let (matrix, factor) = match (self.k.ty(a), self.k.ty(b)) {
            (_, Type::Scalar(_)) => (a, b),
            (Type::Scalar(_), _) => (b, a),
            _matrices_and_vectors => return Ok(self.op(Op::MatrixMultiply, &[a, b])),
        };
        let ty = self.k.ty(matrix);
        let Type::Matrix {
            scalar,
            columns,
            rows,
        } = ty
        else {
            return Err(self.unexpected("expected a matrix"));
        };
        let factor = self.construct(Type::Vector(scalar, rows), &[factor]);
        let mut parts = Vec::new();
        for column in 0..columns {
            let part = self.part(&Val::One(matrix), Index::Constant(u32::from(column)))?;
            let part = self.one(&part)?;
            parts.push(self.op(Op::Mul, &[part, factor]));
        }
        Ok(self.construct(ty, &parts))
    }
}
