//! Overrides: which are function constants of the kernel, and the values of the others.
//!
//! What decides how large something is has its value when the shader is read: an override of which a
//! workgroup size, the length of an array, another override or the initial value of a variable is made.

use std::collections::{HashMap, HashSet};

use invar_ir::{Const, Diagnostic, FunctionConstant, Rule, Scalar};
use naga::{
    ArraySize, BinaryOperator, Block, EntryPoint, Expression, Function, Handle, Literal,
    MathFunction, Override, ScalarKind, Statement, TypeInner, UnaryOperator,
};

use crate::place::Lines;
use crate::tree::{blocks, operands};
use crate::types::{scalar, value_type};

/// The constant of Invar that a literal is.
pub(crate) fn literal(l: Literal) -> Option<Const> {
    Some(match l {
        Literal::F64(x) => x.into(),
        Literal::F32(x) => x.into(),
        Literal::F16(x) => Const {
            scalar: Scalar::F16,
            bits: u64::from(x.to_bits()),
        },
        Literal::U16(x) => x.into(),
        Literal::I16(x) => x.into(),
        Literal::U32(x) => x.into(),
        Literal::I32(x) => x.into(),
        Literal::U64(x) => x.into(),
        Literal::I64(x) => x.into(),
        Literal::Bool(x) => x.into(),
        Literal::AbstractInt(_) | Literal::AbstractFloat(_) => return None,
    })
}

/// What a shader's overrides are.
#[derive(Default)]
pub(crate) struct Overrides {
    values: HashMap<Handle<Override>, Literal>,
    constants: HashMap<Handle<Override>, u32>,
    expressions: HashMap<Handle<Expression>, Literal>,
    lengths: HashMap<Handle<Override>, u32>,
}

/// A number while it is computed.
#[derive(Clone, Copy)]
enum Number {
    Bool(bool),
    Integer(i128, Scalar),
    Float(f64, Scalar),
}

struct Evaluation<'a> {
    shader: &'a naga::Module,
    values: &'a HashMap<Handle<Override>, Literal>,
}

impl Overrides {
    /// Sorts them, with the values that the caller gives; the function constants come with it. Those that are not
    /// `used` need none.
    pub fn new(
        shader: &naga::Module,
        lines: &Lines,
        given: &[(String, f64)],
        used: &HashSet<Handle<Override>>,
    ) -> Result<(Overrides, Vec<FunctionConstant>), Diagnostic> {
        let fixed = fixed(shader);
        check_names(shader, given)?;
        let mut all = Overrides::default();
        let mut declared: Vec<FunctionConstant> = Vec::new();
        let taken: HashSet<u32> = shader
            .overrides
            .iter()
            .filter_map(|(_, o)| o.id.map(u32::from))
            .collect();
        let mut next = 0;
        for (handle, o) in shader.overrides.iter() {
            let span = lines.span(shader.overrides.get_span(handle));
            let ty = value_type(&shader.types[o.ty].inner).and_then(|t| t.scalar());
            let Some(of) = ty else {
                return Err(Diagnostic::error(
                    Rule::MalformedModule,
                    span,
                    format!("override `{}` is not a number", called(o)),
                ));
            };
            let chosen = given.iter().find(|(name, _)| is_called(o, name));
            let value = match chosen {
                Some((_, number)) => Some(from_f64(of, *number).ok_or_else(|| {
                    Diagnostic::error(
                        Rule::FunctionConstant,
                        span,
                        format!("override `{}` cannot be {number}: it is a {of}", called(o)),
                    )
                })?),
                None => o.init.and_then(|init| {
                    let evaluation = Evaluation {
                        shader,
                        values: &all.values,
                    };
                    evaluation.literal(init, of)
                }),
            };
            // Nobody sees it.
            let value = match used.contains(&handle) {
                true => value,
                false => value.or(from_f64(of, 0.0)),
            };
            if fixed.contains(&handle) {
                let Some(value) = value else {
                    return Err(Diagnostic::error(
                        Rule::FunctionConstant,
                        span,
                        format!(
                            "override `{}` {}, so it needs a value when the shader is read",
                            called(o),
                            match sizes(shader).contains(&handle) {
                                true => "decides a size",
                                false =>
                                    "is in the value of another override or of a private variable",
                            }
                        ),
                    )
                    .help(format!(
                        "give one: --const {}={}",
                        called(o),
                        if of == Scalar::Bool { "true" } else { "64" }
                    )));
                };
                all.values.insert(handle, value);
                continue;
            }
            let id = match o.id {
                Some(id) => u32::from(id),
                None => {
                    while taken.contains(&next) {
                        next += 1;
                    }
                    next += 1;
                    next - 1
                }
            };
            all.constants.insert(handle, declared.len() as u32);
            declared.push(FunctionConstant {
                name: called(o).into(),
                id,
                scalar: of,
                default: value.and_then(literal),
                span,
            });
        }
        all.compute(shader);
        Ok((all, declared))
    }

    /// The values of what is made of overrides.
    fn compute(&mut self, shader: &naga::Module) {
        let evaluation = Evaluation {
            shader,
            values: &self.values,
        };
        let mut expressions = HashMap::new();
        for (handle, _) in shader.global_expressions.iter() {
            if let Some(number) = evaluation.number(handle, 0)
                && let Some(l) = number.literal()
            {
                expressions.insert(handle, l);
            }
        }
        self.expressions = expressions;
        for (handle, value) in &self.values {
            let length = match value {
                Literal::U32(n) => Some(*n),
                Literal::I32(n) => u32::try_from(*n).ok(),
                _no_length => None,
            };
            if let Some(length) = length.filter(|n| *n > 0) {
                self.lengths.insert(*handle, length);
            }
        }
    }

    /// The threads of a workgroup.
    pub fn workgroup_size(&self, point: &EntryPoint) -> [u32; 3] {
        let mut size = point.workgroup_size;
        for (slot, chosen) in size
            .iter_mut()
            .zip(point.workgroup_size_overrides.unwrap_or_default())
        {
            match chosen.and_then(|handle| self.evaluate(handle)) {
                Some(Literal::U32(n)) => *slot = n,
                Some(Literal::I32(n)) => *slot = u32::try_from(n).unwrap_or(0),
                _as_written => {}
            }
        }
        size
    }

    /// The length of an array that is an override.
    pub fn length(&self, handle: Handle<Override>) -> Option<u32> {
        self.lengths.get(&handle).copied()
    }

    /// The number of an override among the function constants, if it is one.
    pub fn function_constant(&self, handle: Handle<Override>) -> Option<u32> {
        self.constants.get(&handle).copied()
    }

    /// The value of an override that is fixed.
    pub fn value(&self, handle: Handle<Override>) -> Option<Literal> {
        self.values.get(&handle).copied()
    }

    /// The value of an expression of the module.
    pub fn evaluate(&self, handle: Handle<Expression>) -> Option<Literal> {
        self.expressions.get(&handle).copied()
    }
}

/// The overrides that have their values when the shader is read.
fn fixed(shader: &naga::Module) -> HashSet<Handle<Override>> {
    let overrides = shader.overrides.iter().filter_map(|(_, o)| o.init);
    let variables = shader.global_variables.iter().filter_map(|(_, v)| v.init);
    let mut fixed = sizes(shader);
    fixed.extend(made_of(shader, overrides.chain(variables).collect()));
    fixed
}

/// The overrides that decide how large something is.
fn sizes(shader: &naga::Module) -> HashSet<Handle<Override>> {
    let mut sizes = HashSet::new();
    let mut expressions: Vec<Handle<Expression>> = Vec::new();
    for point in &shader.entry_points {
        let sizes = point.workgroup_size_overrides.iter().flatten();
        expressions.extend(sizes.filter_map(|s| *s));
    }
    for (_, ty) in shader.types.iter() {
        if let TypeInner::Array {
            size: ArraySize::Pending(handle),
            ..
        } = ty.inner
        {
            sizes.insert(handle);
            expressions.extend(shader.overrides[handle].init);
        }
    }
    sizes.extend(made_of(shader, expressions));
    sizes
}

/// The overrides that expressions are made of.
fn made_of(
    shader: &naga::Module,
    mut expressions: Vec<Handle<Expression>>,
) -> HashSet<Handle<Override>> {
    let mut found = HashSet::new();
    let mut seen = HashSet::new();
    while let Some(expression) = expressions.pop() {
        if !seen.insert(expression) {
            continue;
        }
        if let Expression::Override(handle) = shader.global_expressions[expression] {
            found.insert(handle);
            expressions.extend(shader.overrides[handle].init);
        }
        operands(&shader.global_expressions[expression], &mut expressions);
    }
    found
}

/// As [`crate::Shader::open_sizes`].
pub(crate) fn open_sizes(
    shader: &naga::Module,
    given: &[(String, f64)],
    used: &HashSet<Handle<Override>>,
) -> Vec<String> {
    let fixed = fixed(shader);
    let is_open = |(handle, o): &(Handle<Override>, &Override)| {
        let is_given = given.iter().any(|(name, _)| is_called(o, name));
        fixed.contains(handle) && used.contains(handle) && o.init.is_none() && !is_given
    };
    let open = shader.overrides.iter().filter(is_open);
    open.map(|(_, o)| called(o)).collect()
}

/// The overrides among those that are not made of others, with the values that they have by themselves.
pub(crate) fn settings(
    shader: &naga::Module,
    used: &HashSet<Handle<Override>>,
) -> Vec<(String, Option<Const>)> {
    let none = HashMap::new();
    let evaluation = Evaluation {
        shader,
        values: &none,
    };
    let used = shader
        .overrides
        .iter()
        .filter(|(handle, _)| used.contains(handle));
    used.filter_map(|(_, o)| {
        let Some(init) = o.init else {
            return Some((called(o), None));
        };
        let of = value_type(&shader.types[o.ty].inner)?.scalar()?;
        // What is made of others has no value without theirs.
        let value = evaluation.literal(init, of).and_then(literal)?;
        Some((called(o), Some(value)))
    })
    .collect()
}

/// The overrides that entry points statically use, as the standard says: in functions that they call, and in what
/// those and other overrides that they use are made of.
pub(crate) fn used<'a>(
    shader: &'a naga::Module,
    points: impl Iterator<Item = &'a EntryPoint>,
) -> HashSet<Handle<Override>> {
    let mut used = HashSet::new();
    let mut expressions: Vec<Handle<Expression>> = Vec::new();
    let (mut functions, mut called) = (Vec::new(), HashSet::new());
    for point in points {
        let sizes = point.workgroup_size_overrides.iter().flatten();
        expressions.extend(sizes.filter_map(|s| *s));
        functions.push(&point.function);
    }
    let (mut variables, mut seen_types) = (HashSet::new(), HashSet::new());
    let mut types = Vec::new();
    while let Some(function) = functions.pop() {
        calls(&function.body, &mut |callee| {
            if called.insert(callee) {
                functions.push(&shader.functions[callee]);
            }
        });
        for (_, expression) in function.expressions.iter() {
            match expression {
                Expression::Override(handle) if used.insert(*handle) => {
                    expressions.extend(shader.overrides[*handle].init);
                }
                Expression::GlobalVariable(handle) if variables.insert(*handle) => {
                    let variable = &shader.global_variables[*handle];
                    expressions.extend(variable.init);
                    types.push(variable.ty);
                }
                _other => {}
            }
        }
    }
    while let Some(ty) = types.pop() {
        if !seen_types.insert(ty) {
            continue;
        }
        match &shader.types[ty].inner {
            TypeInner::Array { base, size, .. } => {
                types.push(*base);
                if let ArraySize::Pending(handle) = size
                    && used.insert(*handle)
                {
                    expressions.extend(shader.overrides[*handle].init);
                }
            }
            TypeInner::Struct { members, .. } => types.extend(members.iter().map(|m| m.ty)),
            _one_value => {}
        }
    }
    let mut seen = HashSet::new();
    while let Some(expression) = expressions.pop() {
        if !seen.insert(expression) {
            continue;
        }
        if let Expression::Override(handle) = shader.global_expressions[expression]
            && used.insert(handle)
        {
            expressions.extend(shader.overrides[handle].init);
        }
        operands(&shader.global_expressions[expression], &mut expressions);
    }
    used
}

/// The functions that a block calls.
fn calls(block: &Block, found: &mut impl FnMut(Handle<Function>)) {
    for statement in block.iter() {
        if let Statement::Call { function, .. } = statement {
            found(*function);
        }
        for inner in blocks(statement) {
            calls(inner, found);
        }
    }
}

/// Refuses names that no override has, and two values for one, by its name and by its number too.
fn check_names(shader: &naga::Module, given: &[(String, f64)]) -> Result<(), Diagnostic> {
    let mut used: HashMap<Handle<Override>, &str> = HashMap::new();
    for (name, _) in given {
        let mut all = shader.overrides.iter();
        let message = match all.find(|(_, o)| is_called(o, name)) {
            None => {
                let names = shader.overrides.iter();
                let names: Vec<String> = names.map(|(_, o)| format!("`{}`", called(o))).collect();
                let has = match names.is_empty() {
                    true => "none".to_string(),
                    false => names.join(", "),
                };
                format!("there is no override `{name}`; the shader has {has}")
            }
            Some((handle, _)) => match used.insert(handle, name) {
                None => continue,
                Some(before) if before == name => format!("override `{name}` gets two values"),
                Some(before) => {
                    format!("override `{before}` gets two values: the other by `{name}`")
                }
            },
        };
        let place = invar_ir::Span::NONE;
        return Err(Diagnostic::error(Rule::FunctionConstant, place, message));
    }
    Ok(())
}

/// What a caller calls it: its name, or the number of its `@id`.
fn called(o: &Override) -> String {
    match (&o.name, o.id) {
        (Some(name), _) if !name.is_empty() => name.clone(),
        (_, Some(id)) => id.to_string(),
        (_, None) => "override".to_string(),
    }
}

fn is_called(o: &Override, name: &str) -> bool {
    o.name.as_deref() == Some(name) || o.id.is_some_and(|id| id.to_string() == name)
}

/// The number as a literal of that type; `None` if the type has no such number.
fn from_f64(of: Scalar, number: f64) -> Option<Literal> {
    let whole = (number.fract() == 0.0 && number.abs() < 9.1e18).then_some(number as i128);
    match of {
        Scalar::Bool => Some(Literal::Bool(number != 0.0)),
        Scalar::F32 if (number as f32).is_finite() => Some(Literal::F32(number as f32)),
        Scalar::F64 if number.is_finite() => Some(Literal::F64(number)),
        Scalar::F16 => {
            let half = half::f16::from_f64(number);
            half.is_finite().then_some(Literal::F16(half))
        }
        Scalar::I32 => Some(Literal::I32(i32::try_from(whole?).ok()?)),
        Scalar::U32 => Some(Literal::U32(u32::try_from(whole?).ok()?)),
        Scalar::I64 => Some(Literal::I64(i64::try_from(whole?).ok()?)),
        Scalar::U64 => Some(Literal::U64(u64::try_from(whole?).ok()?)),
        Scalar::I8
        | Scalar::I16
        | Scalar::U8
        | Scalar::U16
        | Scalar::BF16
        | Scalar::F32
        | Scalar::F64 => None,
    }
}

impl Number {
    fn of(l: Literal) -> Option<Number> {
        Some(match l {
            Literal::Bool(b) => Number::Bool(b),
            Literal::F64(x) => Number::Float(x, Scalar::F64),
            Literal::F32(x) => Number::Float(f64::from(x), Scalar::F32),
            Literal::F16(x) => Number::Float(x.to_f64(), Scalar::F16),
            Literal::U32(x) => Number::Integer(x.into(), Scalar::U32),
            Literal::I32(x) => Number::Integer(x.into(), Scalar::I32),
            Literal::U64(x) => Number::Integer(x.into(), Scalar::U64),
            Literal::I64(x) => Number::Integer(x.into(), Scalar::I64),
            Literal::U16(_) | Literal::I16(_) => return None,
            Literal::AbstractInt(_) | Literal::AbstractFloat(_) => return None,
        })
    }

    fn literal(self) -> Option<Literal> {
        Some(match self {
            Number::Bool(b) => Literal::Bool(b),
            Number::Integer(n, Scalar::U32) => Literal::U32(n as u32),
            Number::Integer(n, Scalar::I32) => Literal::I32(n as i32),
            Number::Integer(n, Scalar::U64) => Literal::U64(n as u64),
            Number::Integer(n, Scalar::I64) => Literal::I64(n as i64),
            Number::Float(x, Scalar::F64) => Literal::F64(x),
            Number::Float(x, Scalar::F32) => Literal::F32(x as f32),
            Number::Float(x, Scalar::F16) => Literal::F16(half::f16::from_f64(x)),
            Number::Integer(..) | Number::Float(..) => return None,
        })
    }

    /// Rounded or wrapped to its own type.
    fn settled(self) -> Option<Number> {
        Number::of(self.literal()?)
    }
}

impl Evaluation<'_> {
    fn literal(&self, handle: Handle<Expression>, of: Scalar) -> Option<Literal> {
        let l = self.number(handle, 0)?.literal()?;
        (literal(l)?.scalar == of).then_some(l)
    }

    fn number(&self, handle: Handle<Expression>, depth: u32) -> Option<Number> {
        if depth > 200 {
            return None;
        }
        let number = |handle: Handle<Expression>| self.number(handle, depth + 1);
        match &self.shader.global_expressions[handle] {
            Expression::Literal(l) => Number::of(*l),
            Expression::Constant(c) => number(self.shader.constants[*c].init),
            Expression::Override(o) => Number::of(*self.values.get(o)?),
            Expression::ZeroValue(ty) => match value_type(&self.shader.types[*ty].inner)? {
                invar_ir::Type::Scalar(of) => Number::of(from_f64(of, 0.0)?),
                _no_scalar => None,
            },
            Expression::Unary { op, expr } => match (op, number(*expr)?) {
                (UnaryOperator::LogicalNot, Number::Bool(b)) => Some(Number::Bool(!b)),
                (UnaryOperator::Negate, Number::Integer(n, s)) => Number::Integer(-n, s).settled(),
                (UnaryOperator::Negate, Number::Float(x, s)) => Some(Number::Float(-x, s)),
                (UnaryOperator::BitwiseNot, Number::Integer(n, s)) => {
                    Number::Integer(!n, s).settled()
                }
                _mixed => None,
            },
            Expression::Binary { op, left, right } => binary(*op, number(*left)?, number(*right)?),
            Expression::Select {
                condition,
                accept,
                reject,
            } => match number(*condition)? {
                Number::Bool(true) => number(*accept),
                Number::Bool(false) => number(*reject),
                Number::Integer(..) | Number::Float(..) => None,
            },
            Expression::As {
                expr,
                kind,
                convert: Some(width),
            } => {
                let to = scalar(naga::Scalar {
                    kind: *kind,
                    width: *width,
                })?;
                convert(number(*expr)?, *kind, to)
            }
            Expression::Math { fun, arg, arg1, .. } => {
                let b = match arg1 {
                    Some(arg) => Some(number(*arg)?),
                    None => None,
                };
                math(*fun, number(*arg)?, b)
            }
            _unknown => None,
        }
    }
}

fn convert(from: Number, kind: ScalarKind, to: Scalar) -> Option<Number> {
    match (from, kind) {
        (Number::Bool(b), ScalarKind::Bool) => Some(Number::Bool(b)),
        (Number::Integer(n, _), ScalarKind::Bool) => Some(Number::Bool(n != 0)),
        (Number::Float(x, _), ScalarKind::Bool) => Some(Number::Bool(x != 0.0)),
        (Number::Bool(b), ScalarKind::Float) => Some(Number::Float(f64::from(u8::from(b)), to)),
        (Number::Bool(b), _) => Some(Number::Integer(i128::from(b), to)),
        (Number::Integer(n, _), ScalarKind::Float) => Number::Float(n as f64, to).settled(),
        (Number::Integer(n, _), _) => Number::Integer(n, to).settled(),
        (Number::Float(x, _), ScalarKind::Float) => Number::Float(x, to).settled(),
        (Number::Float(x, _), _) => {
            let (low, high) = match to {
                Scalar::I32 => (i128::from(i32::MIN), i128::from(i32::MAX)),
                Scalar::I64 => (i128::from(i64::MIN), i128::from(i64::MAX)),
                Scalar::U64 => (0, i128::from(u64::MAX)),
                _word => (0, i128::from(u32::MAX)),
            };
            Some(Number::Integer((x as i128).clamp(low, high), to))
        }
    }
}

fn math(function: MathFunction, a: Number, b: Option<Number>) -> Option<Number> {
    match (function, a, b) {
        (MathFunction::Min, Number::Integer(a, s), Some(Number::Integer(b, _))) => {
            Some(Number::Integer(a.min(b), s))
        }
        (MathFunction::Max, Number::Integer(a, s), Some(Number::Integer(b, _))) => {
            Some(Number::Integer(a.max(b), s))
        }
        (MathFunction::Min, Number::Float(a, s), Some(Number::Float(b, _))) => {
            Some(Number::Float(a.min(b), s))
        }
        (MathFunction::Max, Number::Float(a, s), Some(Number::Float(b, _))) => {
            Some(Number::Float(a.max(b), s))
        }
        (MathFunction::Abs, Number::Integer(a, s), None) => Number::Integer(a.abs(), s).settled(),
        (MathFunction::Abs, Number::Float(a, s), None) => Some(Number::Float(a.abs(), s)),
        (MathFunction::Ceil, Number::Float(a, s), None) => Some(Number::Float(a.ceil(), s)),
        (MathFunction::Floor, Number::Float(a, s), None) => Some(Number::Float(a.floor(), s)),
        (MathFunction::Trunc, Number::Float(a, s), None) => Some(Number::Float(a.trunc(), s)),
        _another => None,
    }
}

fn binary(op: BinaryOperator, a: Number, b: Number) -> Option<Number> {
    use BinaryOperator as B;
    match (a, b) {
        (Number::Bool(a), Number::Bool(b)) => Some(Number::Bool(match op {
            B::And | B::LogicalAnd => a && b,
            B::InclusiveOr | B::LogicalOr => a || b,
            B::Equal => a == b,
            B::NotEqual => a != b,
            _no_logic => return None,
        })),
        (Number::Integer(a, s), Number::Integer(b, _)) => {
            let shift = || u32::try_from(b.rem_euclid(i128::from(s.bits()))).ok();
            let value = match op {
                B::Equal => return Some(Number::Bool(a == b)),
                B::NotEqual => return Some(Number::Bool(a != b)),
                B::Less => return Some(Number::Bool(a < b)),
                B::LessEqual => return Some(Number::Bool(a <= b)),
                B::Greater => return Some(Number::Bool(a > b)),
                B::GreaterEqual => return Some(Number::Bool(a >= b)),
                B::Add => a + b,
                B::Subtract => a - b,
                B::Multiply => a.checked_mul(b)?,
                B::Divide if b == 0 => a,
                B::Divide => a / b,
                B::Modulo if b == 0 => 0,
                B::Modulo => a % b,
                B::And => a & b,
                B::ExclusiveOr => a ^ b,
                B::InclusiveOr => a | b,
                B::ShiftLeft => a << shift()?,
                B::ShiftRight => a >> shift()?,
                B::LogicalAnd | B::LogicalOr => return None,
            };
            Number::Integer(value, s).settled()
        }
        (Number::Float(a, s), Number::Float(b, _)) => {
            let value = match op {
                B::Equal => return Some(Number::Bool(a == b)),
                B::NotEqual => return Some(Number::Bool(a != b)),
                B::Less => return Some(Number::Bool(a < b)),
                B::LessEqual => return Some(Number::Bool(a <= b)),
                B::Greater => return Some(Number::Bool(a > b)),
                B::GreaterEqual => return Some(Number::Bool(a >= b)),
                B::Add => a + b,
                B::Subtract => a - b,
                B::Multiply => a * b,
                B::Divide => a / b,
                B::Modulo => a % b,
                B::And
                | B::ExclusiveOr
                | B::InclusiveOr
                | B::LogicalAnd
                | B::LogicalOr
                | B::ShiftLeft
                | B::ShiftRight => return None,
            };
            Number::Float(value, s).settled()
        }
        _mixed => None,
    }
}
