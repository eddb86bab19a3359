//! What naga says is wrong with a shader that it has read, in the standard's words, of the author's names and lines.
//! What it says seldom stays as it is, without the numbers that things have inside.

use invar_ir::{Diagnostic, Rule};
use naga::back::binary_operation_str;
use naga::common::wgsl::{TryToWgsl, TypeContext};
use naga::front::Typifier;
use naga::front::wgsl::ParseError;
use naga::proc::{ResolveContext, TypeResolution};
use naga::valid::{
    CallError, ComposeError, EntryPointError, ExpressionError, FunctionError, GlobalUse,
    GlobalVariableError, LocalVariableError, OverrideError, TypeError, ValidationError,
    VaryingError,
};
use naga::{
    AddressSpace, BinaryOperator, Expression, Function, GlobalVariable, Handle, ImageDimension,
    Module, Scalar, Span, Statement, StorageAccess, Type, TypeInner, UnaryOperator, VectorSize,
};

use crate::enable::language_extensions;
use crate::place::Lines;
use crate::tree::{blocks, root};

/// What is wrong, where, and what else has to do with it.
struct Said {
    message: String,
    /// Where, if it is not where naga says.
    place: Option<Span>,
    /// Further places.
    others: Vec<(Span, String)>,
    help: Option<String>,
}

impl Said {
    fn new(message: impl Into<String>) -> Said {
        Said {
            message: message.into(),
            place: None,
            others: Vec::new(),
            help: None,
        }
    }

    fn at(self, place: Span) -> Said {
        let place = Some(place).filter(Span::is_defined).or(self.place);
        Said { place, ..self }
    }

    fn and(mut self, place: Span, text: String) -> Said {
        self.others.push((place, text));
        self
    }

    fn help(self, help: impl Into<String>) -> Said {
        Said {
            help: Some(help.into()),
            ..self
        }
    }
}

/// What naga says of a module, which `lines` are the text of. `span` is where.
pub(crate) fn diagnostic(
    shader: &Module,
    error: &ValidationError,
    span: Span,
    lines: &Lines,
) -> Diagnostic {
    let said = said(shader, error, lines).unwrap_or_else(|| Said::new(plain(error)));
    let fallback = match error {
        ValidationError::EntryPoint { name, .. } | ValidationError::Function { name, .. } => {
            lines.head(name)
        }
        ValidationError::Layouter(_) => lines.longest_array(),
        _placed => None,
    };
    let span = lines.span_or(said.place.unwrap_or(span), fallback);
    let mut diagnostic = Diagnostic::error(Rule::TypeMismatch, span, said.message);
    for (place, text) in said.others {
        if place.is_defined() {
            diagnostic = diagnostic.and(lines.span(place), text);
        }
    }
    match said.help {
        Some(help) => diagnostic.help(help),
        None => diagnostic,
    }
}

/// The language extension of the standard that is not supported.
const BUFFER_VIEW: &str = "`buffer_view`";

/// The operators that naga may say to have operands that do not fit.
const OPERATORS: [BinaryOperator; 18] = [
    BinaryOperator::Add,
    BinaryOperator::Subtract,
    BinaryOperator::Multiply,
    BinaryOperator::Divide,
    BinaryOperator::Modulo,
    BinaryOperator::Equal,
    BinaryOperator::NotEqual,
    BinaryOperator::Less,
    BinaryOperator::LessEqual,
    BinaryOperator::Greater,
    BinaryOperator::GreaterEqual,
    BinaryOperator::And,
    BinaryOperator::ExclusiveOr,
    BinaryOperator::InclusiveOr,
    BinaryOperator::LogicalAnd,
    BinaryOperator::LogicalOr,
    BinaryOperator::ShiftLeft,
    BinaryOperator::ShiftRight,
];

/// What naga says of a text that it does not read.
pub(crate) fn message(error: &ParseError) -> String {
    let message = error.message();
    if message.contains("unknown language extension") && message.contains(BUFFER_VIEW) {
        return format!("the language extension {BUFFER_VIEW} is not supported");
    }
    if let Some(operands) = message.strip_prefix("Incompatible operands: ")
        && let Some((name, types)) = operands.split_once('(')
        && let Some(op) = OPERATORS.iter().find(|op| format!("{op:?}") == name)
    {
        let types = types.trim_end_matches(')').split(", ");
        let named = |ty: &str| match ty {
            "_" => "another type".to_string(),
            ty => format!("`{ty}`"),
        };
        let types: Vec<String> = types.map(named).collect();
        return format!(
            "`{}` cannot be of {}",
            binary_operation_str(*op),
            types.join(" and ")
        );
    }
    for (begins, is) in [
        ("Invalid access into", "this has no such element or member"),
        (
            "Invalid sub-access into",
            "this has no such element or member",
        ),
        ("Invalid scalar [", "a scalar is expected here"),
        ("Invalid vector [", "a vector is expected here"),
        ("Invalid pointer [", "a pointer is expected here"),
        ("Invalid image [", "a texture is expected here"),
    ] {
        if message.starts_with(begins) {
            return is.to_string();
        }
    }
    let message = message.replace(
        "unknown language extension",
        "there is no language extension",
    );
    let message = match message.split_once(" for expression [") {
        Some((said, _)) => said.to_string(),
        None => message,
    };
    abstract_types(&message)
}

/// A text with the standard's words for types that have no name to be written.
pub(crate) fn abstract_types(text: &str) -> String {
    let text = text.replace("{AbstractFloat}", "AbstractFloat");
    text.replace("{AbstractInt}", "AbstractInt")
}

/// What naga says to do about a text that it does not read.
pub(crate) fn notes(error: &ParseError) -> Option<String> {
    let message = error.message();
    if message.contains("unknown language extension") && !message.contains(BUFFER_VIEW) {
        let names: Vec<String> = language_extensions()
            .map(|name| format!("`{name}`"))
            .collect();
        return Some(format!("there are {}", names.join(", ")));
    }
    if message.contains(BUFFER_VIEW) {
        return Some(
            "declare variables with the types of what they hold, not as `buffer`".to_string(),
        );
    }
    if message.contains("unknown enable-extension") {
        return Some(
            "there are `f16`, `subgroups`, and those of other stages than compute".to_string(),
        );
    }
    let mut help = String::new();
    for note in error.notes() {
        if note.contains("assignments to swizzles") {
            return Some("assign each component individually".to_string());
        }
        let goes_on = help.ends_with(':') || help.is_empty();
        let between = match (help.is_empty(), goes_on || note.starts_with('(')) {
            (true, _) => "",
            (false, true) => " ",
            (false, false) => "; ",
        };
        help.push_str(between);
        help.push_str(note.strip_prefix("allowed type: ").unwrap_or(note));
    }
    (!help.is_empty()).then(|| abstract_types(&help))
}

/// Naga's own words, but for those that only say which part of the module is meant.
fn plain(error: &ValidationError) -> String {
    let mut words = Vec::new();
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(one) = cause {
        words.push(one.to_string());
        cause = one.source();
    }
    if words.len() > 1 {
        words.retain(|one| !one.ends_with("is invalid"));
    }
    let words = words.join(": ");
    let mut letters = words.chars();
    let second = words.chars().nth(1);
    match letters.next() {
        Some(first) if second.is_some_and(char::is_lowercase) => {
            first.to_lowercase().collect::<String>() + letters.as_str()
        }
        _other => words,
    }
}

fn said(shader: &Module, error: &ValidationError, lines: &Lines) -> Option<Said> {
    let type_name = |ty: Handle<Type>| type_name(shader, ty);
    match error {
        ValidationError::Function { handle, source, .. } => {
            In::new(shader, &shader.functions[*handle], lines).function(source)
        }
        ValidationError::EntryPoint { name, source, .. } => {
            let point = shader.entry_points.iter().find(|p| p.name == *name)?;
            let inside = In::new(shader, &point.function, lines);
            match source {
                EntryPointError::Function(error) => inside.function(error),
                other => inside.entry_point(name, other),
            }
        }
        ValidationError::GlobalVariable { handle, source, .. } => {
            global_variable(shader, *handle, source)
        }
        ValidationError::Layouter(error) => {
            Some(Said::new(format!("a type is too large: {error}")))
        }
        ValidationError::Override {
            handle,
            name,
            source: OverrideError::TypeNotScalar,
        } => Some(Said::new(format!(
            "the override `{name}` has type `{}`, and only scalars can be overrides",
            type_name(shader.overrides[*handle].ty)
        ))),
        ValidationError::Type { handle, source, .. } => {
            let holds = match source {
                TypeError::InvalidArrayBaseType(base) => {
                    format!("an array of `{}`", type_name(*base))
                }
                TypeError::InvalidData(member) => {
                    format!("a struct with a `{}` in it", type_name(*member))
                }
                TypeError::InvalidDynamicArray(field, _) => {
                    let message = format!(
                        "`{field}` of `{}` is an array of no fixed length, which only the last member of a struct can be",
                        type_name(*handle)
                    );
                    return Some(Said::new(message));
                }
                _other => return None,
            };
            let said = Said::new(format!(
                "there can be no {}",
                &holds[holds.find(' ')? + 1..]
            ));
            // A type without a name stands where it is used.
            let takes = |(_, f): &(_, &Function)| f.arguments.iter().any(|a| a.ty == *handle);
            let place = shader.functions.iter().find(takes);
            let place = place.and_then(|(_, f)| lines.head(f.name.as_deref()?));
            Some(match (shader.types.get_span(*handle), place) {
                (span, Some(place)) if !span.is_defined() => said.at(place),
                _placed => said,
            })
        }
        _other => None,
    }
}

fn type_name(shader: &Module, ty: Handle<Type>) -> String {
    spaced(&shader.to_ctx().type_to_string(ty))
}

/// A type with a blank behind each comma, as it is written.
fn spaced(ty: &str) -> String {
    ty.replace(", ", ",").replace(',', ", ")
}

fn global_variable(
    shader: &Module,
    handle: Handle<GlobalVariable>,
    error: &GlobalVariableError,
) -> Option<Said> {
    let variable = &shader.global_variables[handle];
    let name = variable.name.as_deref().unwrap_or_default();
    let ty = type_name(shader, variable.ty);
    let space = match variable.space {
        AddressSpace::Storage { .. } => "in storage",
        AddressSpace::Uniform => "a uniform",
        AddressSpace::WorkGroup => "in workgroup memory",
        AddressSpace::Private => "private",
        AddressSpace::Immediate => "an immediate",
        _other => return None,
    };
    Some(match error {
        GlobalVariableError::MissingTypeFlags { .. }
        | GlobalVariableError::InvalidType(_)
        | GlobalVariableError::Alignment(..) => {
            let said = Said::new(format!(
                "`{name}` has type `{ty}`, and no variable that is {space} can have it"
            ));
            match variable.space {
                AddressSpace::Storage { .. } | AddressSpace::Uniform if ty.contains("bool") => {
                    said.help("a host has no `bool`: use `u32`")
                }
                AddressSpace::Uniform | AddressSpace::WorkGroup => {
                    said.help("its length must be fixed")
                }
                _other => said,
            }
        }
        GlobalVariableError::InvalidBinding if variable.binding.is_none() => Said::new(format!(
            "`{name}` is {space} and has no `@group` and `@binding`"
        )),
        GlobalVariableError::InvalidBinding => Said::new(format!(
            "`{name}` is {space} and can have no `@group` and `@binding`"
        )),
        GlobalVariableError::InitializerNotAllowed(_) => {
            Said::new(format!("`{name}` is {space} and can have no initial value"))
        }
        GlobalVariableError::InitializerType => Said::new(format!(
            "the initial value of `{name}` is not of its type, `{ty}`"
        )),
        _other => return None,
    })
}

/// The first statement in a block, and in those inside, of which something holds.
fn find<'a>(
    block: &'a naga::Block,
    holds: &impl Fn(&Statement) -> bool,
) -> Option<(&'a Statement, Span)> {
    for (statement, span) in block.span_iter() {
        if holds(statement) {
            return Some((statement, *span));
        }
        let inside = blocks(statement).into_iter();
        if let Some(found) = inside.filter_map(|block| find(block, holds)).next() {
            return Some(found);
        }
    }
    None
}

/// Where the first statement is of which something holds; naga knows no place of what it puts into loops.
fn place_of(
    block: &naga::Block,
    holds: &impl Fn(&Statement) -> bool,
    around: Span,
) -> Option<Span> {
    for (statement, span) in block.span_iter() {
        let here = if span.is_defined() { *span } else { around };
        if holds(statement) {
            return Some(here);
        }
        let inside = blocks(statement).into_iter();
        if let Some(found) = inside.filter_map(|b| place_of(b, holds, here)).next() {
            return Some(found);
        }
    }
    None
}

/// A function that something is wrong with.
struct In<'a> {
    shader: &'a Module,
    function: &'a Function,
    lines: &'a Lines,
    /// Of the expressions up to the first that has none.
    types: Typifier,
    known: usize,
}

impl<'a> In<'a> {
    fn new(shader: &'a Module, function: &'a Function, lines: &'a Lines) -> In<'a> {
        let context =
            ResolveContext::with_locals(shader, &function.local_variables, &function.arguments);
        let mut types = Typifier::new();
        let mut known = 0;
        for (handle, _) in function.expressions.iter() {
            if types.grow(handle, &function.expressions, &context).is_err() {
                break;
            }
            known += 1;
        }
        In {
            shader,
            function,
            lines,
            types,
            known,
        }
    }

    fn resolution(&self, handle: Handle<Expression>) -> Option<&TypeResolution> {
        (handle.index() < self.known).then(|| &self.types[handle])
    }

    fn ty(&self, handle: Handle<Expression>) -> String {
        let context = self.shader.to_ctx();
        let ty = self.resolution(handle);
        let ty = ty.map(|ty| spaced(&context.type_resolution_to_string(ty)));
        ty.unwrap_or_else(|| "another type".to_string())
    }

    fn inner_name(&self, inner: &TypeInner) -> String {
        let mut name = String::new();
        match self.shader.to_ctx().write_type_inner(inner, &mut name) {
            Ok(()) => spaced(&name),
            Err(_) => "another type".to_string(),
        }
    }

    fn span(&self, handle: Handle<Expression>) -> Span {
        let span = self.function.expressions.get_span(handle);
        match &self.function.expressions[handle] {
            // What a variable holds stands where the variable does.
            Expression::Load { pointer } if !span.is_defined() => self.span(*pointer),
            _placed => span,
        }
    }

    /// As the author wrote it.
    fn written(&self, handle: Handle<Expression>) -> String {
        if let Some(text) = self.lines.written_at(self.span(handle)) {
            return format!("`{text}`");
        }
        // Naga keeps no place of variables.
        let name = match &self.function.expressions[handle] {
            Expression::Load { pointer } => return self.written(*pointer),
            Expression::LocalVariable(variable) => {
                self.function.local_variables[*variable].name.clone()
            }
            Expression::GlobalVariable(variable) => {
                self.shader.global_variables[*variable].name.clone()
            }
            Expression::FunctionArgument(number) => {
                let argument = self.function.arguments.get(*number as usize);
                argument.and_then(|a| a.name.clone())
            }
            _another => None,
        };
        name.map_or_else(|| "this".to_string(), |name| format!("`{name}`"))
    }

    /// It, and its type.
    fn typed(&self, handle: Handle<Expression>) -> String {
        let (written, ty) = (self.written(handle), self.ty(handle));
        let is_variable = matches!(
            self.function.expressions[handle],
            Expression::LocalVariable(_) | Expression::GlobalVariable(_)
        );
        match written.strip_prefix('`') {
            Some(name) if is_variable && ty.starts_with("ptr<") && !name.starts_with('&') => {
                format!("`&{name} has type `{ty}`")
            }
            _value => format!("{written} has type `{ty}`"),
        }
    }

    fn name(&self) -> &str {
        self.function.name.as_deref().unwrap_or("the function")
    }

    fn function(&self, error: &FunctionError) -> Option<Said> {
        Some(match error {
            FunctionError::Expression { handle, source } => {
                return self.expression(*handle, source);
            }
            FunctionError::InvalidImageStore(source) => return self.image_store(source),
            FunctionError::InvalidStoreValue {
                actual,
                expected_ty,
                ..
            } => Said::new(format!(
                "what is stored: {}, expected `{}`",
                self.typed(*actual),
                self.inner_name(expected_ty)
            ))
            .at(self.span(*actual)),
            FunctionError::InvalidCall {
                function,
                error: CallError::ArgumentCount { required, seen },
            } => {
                let name = &self.shader.functions[*function].name;
                let name = name.as_deref().unwrap_or_default();
                let plural = if *required == 1 { "" } else { "s" };
                Said::new(format!(
                    "`{name}` takes {required} argument{plural}, and gets {seen}"
                ))
            }
            FunctionError::InvalidReturnType {
                expression,
                expected_ty,
            } => {
                let expected = expected_ty.map(|ty| type_name(self.shader, ty));
                match (expression, expected) {
                    (Some(value), Some(expected)) => Said::new(format!(
                        "{}, and `{}` returns `{expected}`",
                        self.typed(*value),
                        self.name()
                    )),
                    (Some(value), None) => Said::new(format!(
                        "{}, and `{}` returns nothing",
                        self.typed(*value),
                        self.name()
                    )),
                    (None, Some(expected)) => Said::new(format!(
                        "`{}` returns `{expected}`, and can end without",
                        self.name()
                    )),
                    (None, None) => return None,
                }
            }
            FunctionError::InvalidIfType(value) => {
                let is_it = |s: &Statement| matches!(s, Statement::If { condition, .. } if condition == value);
                let place = place_of(&self.function.body, &is_it, Span::UNDEFINED);
                Said::new(format!(
                    "the condition: {}, expected `bool`",
                    self.typed(*value)
                ))
                .at(place.unwrap_or(Span::UNDEFINED))
                .at(self.span(*value))
            }
            FunctionError::InvalidSwitchType(value) => Said::new(format!(
                "the selector: {}, expected `i32` or `u32`",
                self.typed(*value)
            ))
            .at(self.span(*value)),
            FunctionError::ConflictingSwitchCase(_) | FunctionError::ConflictingCaseType => {
                return self.switch(error);
            }
            FunctionError::MissingDefaultCase => {
                Said::new("a `switch` has a `default`, and this has none").help("add `default {}`")
            }
            FunctionError::InvalidStorePointer(pointer) => self.no_store(*pointer),
            FunctionError::InvalidStoreTypes { pointer, value } => Said::new(format!(
                "{}, and it is stored in {}, which holds `{}`",
                self.typed(*value),
                self.written(*pointer),
                self.pointee(*pointer)
            )),
            FunctionError::LocalVariable { name, source, .. } => match source {
                LocalVariableError::InvalidType(ty) => {
                    let inner = &self.shader.types[*ty].inner;
                    let ty = type_name(self.shader, *ty);
                    let said = Said::new(format!(
                        "`{name}` has type `{ty}`, and no `var` of a function can have it"
                    ));
                    match inner {
                        TypeInner::Image { .. }
                        | TypeInner::Sampler { .. }
                        | TypeInner::Pointer { .. }
                        | TypeInner::ValuePointer { .. } => said.help("use `let`"),
                        _other => said,
                    }
                }
                LocalVariableError::InitializerType => {
                    Said::new(format!("the initial value of `{name}` is not of its type"))
                }
                LocalVariableError::NonConstOrOverrideInitializer => return None,
            },
            FunctionError::InvalidArgumentType { index, name }
            | FunctionError::InvalidArgumentPointerSpace { index, name, .. } => {
                let ty = self.function.arguments.get(*index)?.ty;
                let ty = type_name(self.shader, ty);
                Said::new(format!(
                    "`{name}` has type `{ty}`, and no parameter can have it"
                ))
                .at(self.lines.head(self.name())?)
            }
            FunctionError::NonConstructibleReturnType => {
                let ty = self.function.result.as_ref()?.ty;
                let ty = type_name(self.shader, ty);
                Said::new(format!(
                    "`{}` returns `{ty}`, which no function can",
                    self.name()
                ))
                .at(self.lines.head(self.name())?)
            }
            _other => return None,
        })
    }

    /// What a pointer leads to.
    fn pointee(&self, pointer: Handle<Expression>) -> String {
        match self
            .resolution(pointer)
            .map(|ty| ty.inner_with(&self.shader.types))
        {
            Some(TypeInner::Pointer { base, .. }) => type_name(self.shader, *base),
            Some(TypeInner::ValuePointer { size, scalar, .. }) => self.inner_name(&match size {
                Some(size) => TypeInner::Vector {
                    size: *size,
                    scalar: *scalar,
                },
                None => TypeInner::Scalar(*scalar),
            }),
            _no_pointer => "another type".to_string(),
        }
    }

    fn switch(&self, error: &FunctionError) -> Option<Said> {
        let value = match error {
            FunctionError::ConflictingSwitchCase(value) => Some(*value),
            _types => None,
        };
        let holds = |statement: &Statement| match (statement, value) {
            (Statement::Switch { cases, .. }, Some(value)) => {
                cases.iter().filter(|c| c.value == value).count() > 1
            }
            (Statement::Switch { .. }, None) => true,
            _another => false,
        };
        let (_, place) = find(&self.function.body, &holds)?;
        let message = match value {
            Some(naga::SwitchValue::I32(n)) => format!("two cases of this `switch` are for {n}"),
            Some(naga::SwitchValue::U32(n)) => format!("two cases of this `switch` are for {n}"),
            _types => "the cases of this `switch` are not all of the selector's type".to_string(),
        };
        Some(Said::new(message).at(place))
    }

    /// Nothing can be stored through this pointer.
    fn no_store(&self, pointer: Handle<Expression>) -> Said {
        let said = Said::new(format!(
            "nothing can be stored in {}",
            self.written(pointer)
        ));
        let Some(Expression::GlobalVariable(global)) = root(self.function, pointer) else {
            return said;
        };
        let variable = &self.shader.global_variables[*global];
        let name = variable.name.as_deref().unwrap_or_default();
        let place = self.shader.global_variables.get_span(*global);
        match variable.space {
            AddressSpace::Storage { .. } => {
                Said::new(format!("this stores to `{name}`, which is declared `read`"))
                    .and(place, "declared here".to_string())
                    .help("declare it `read_write`")
            }
            AddressSpace::Uniform => {
                Said::new(format!("this stores to `{name}`, which is a uniform"))
                    .and(place, "declared here".to_string())
                    .help("declare it `var<storage, read_write>`")
            }
            _other => said,
        }
    }

    fn image_store(&self, error: &ExpressionError) -> Option<Said> {
        let is_store = |s: &Statement| matches!(s, Statement::ImageStore { .. });
        // The first of several: naga's place says which.
        let (statement, _) = find(&self.function.body, &is_store)?;
        match (error, statement) {
            (ExpressionError::InvalidImageCoordinateType(dim, at), _) => {
                Some(self.coordinates(*dim, *at, false))
            }
            (ExpressionError::InvalidImageArrayIndexType(at), _) => Some(Said::new(format!(
                "the array index: {}, expected `i32` or `u32`",
                self.typed(*at)
            ))),
            _other => None,
        }
    }

    fn coordinates(&self, dim: ImageDimension, at: Handle<Expression>, floats: bool) -> Said {
        let scalar = if floats { Scalar::F32 } else { Scalar::U32 };
        let vector = |size| TypeInner::Vector { size, scalar };
        let expected = self.inner_name(&match dim {
            ImageDimension::D1 => TypeInner::Scalar(scalar),
            ImageDimension::D2 => vector(VectorSize::Bi),
            ImageDimension::D3 | ImageDimension::Cube => vector(VectorSize::Tri),
        });
        let signed = expected.replace("u32", "i32");
        let expected = match floats {
            true => format!("`{expected}`"),
            false => format!("`{signed}` or `{expected}`"),
        };
        Said::new(format!(
            "the coordinates: {}, expected {expected}",
            self.typed(at)
        ))
        .at(self.span(at))
    }

    fn expression(&self, handle: Handle<Expression>, error: &ExpressionError) -> Option<Said> {
        let expected = |what: &str, value: Handle<Expression>, ty: &str| {
            Said::new(format!("{what}: {}, expected {ty}", self.typed(value))).at(self.span(value))
        };
        Some(match error {
            ExpressionError::InvalidBinaryOperandTypes {
                op,
                lhs_expr,
                rhs_expr,
                ..
            } => {
                let (left, right) = (self.ty(*lhs_expr), self.ty(*rhs_expr));
                Said::new(format!(
                    "`{}` cannot be of `{left}` and `{right}`",
                    binary_operation_str(*op)
                ))
                .and(self.span(*lhs_expr), format!("this is `{left}`"))
                .and(self.span(*rhs_expr), format!("this is `{right}`"))
            }
            ExpressionError::InvalidUnaryOperandType(op, value) => {
                let op = match op {
                    UnaryOperator::Negate => "-",
                    UnaryOperator::LogicalNot => "!",
                    UnaryOperator::BitwiseNot => "~",
                };
                Said::new(format!("`{op}` cannot be of `{}`", self.ty(*value)))
            }
            ExpressionError::InvalidPointerType(pointer) => Said::new(format!(
                "{} is no value: it has type `{}`",
                self.written(*pointer),
                self.pointee(*pointer)
            ))
            .at(self.span(*pointer)),
            ExpressionError::InvalidArrayType(pointer) => Said::new(format!(
                "`arrayLength` takes a pointer to an array of no fixed length, and {}",
                self.typed(*pointer)
            )),
            ExpressionError::IndexOutOfBounds(base, index) => {
                let Some(array) = self.indexed(*base) else {
                    return Some(Said::new(format!("the index {index} is out of bounds")));
                };
                Said::new(format!("the index {index} is out of bounds of {array}"))
            }
            ExpressionError::NegativeIndex(_) => Said::new("the index is negative"),
            ExpressionError::InvalidIndexType(index) => {
                expected("the index", *index, "`i32` or `u32`")
            }
            ExpressionError::Compose(ComposeError::ComponentCount { given, expected }) => {
                let ty = self.ty(handle);
                Said::new(format!("`{ty}` is made of {expected}, and gets {given}"))
            }
            ExpressionError::Compose(ComposeError::ComponentType { index }) => {
                let part = match &self.function.expressions[handle] {
                    Expression::Compose { components, .. } => components.get(*index as usize)?,
                    _another => return None,
                };
                Said::new(format!(
                    "{}, which is not what part {} of `{}` is",
                    self.typed(*part),
                    index + 1,
                    self.ty(handle)
                ))
            }
            ExpressionError::SelectValuesTypeMismatch { accept, reject } => {
                let (accept, reject) = (self.inner_name(accept), self.inner_name(reject));
                Said::new(format!(
                    "`select` takes two values of one type, and gets `{reject}` and `{accept}`"
                ))
            }
            ExpressionError::SelectConditionNotABool { actual } => Said::new(format!(
                "the condition of `select` has type `{}`, expected `bool`",
                self.inner_name(actual)
            )),
            ExpressionError::InvalidBooleanVector(value) => {
                let fun = match &self.function.expressions[handle] {
                    Expression::Relational {
                        fun: naga::RelationalFunction::Any,
                        ..
                    } => "any",
                    _all => "all",
                };
                Said::new(format!("`{fun}` takes `bool`s, and {}", self.typed(*value)))
            }
            ExpressionError::InvalidArgumentType(fun, number, value) => Said::new(format!(
                "argument {} of `{}`: {}, which it does not take",
                number + 1,
                fun.to_wgsl_for_diagnostics(),
                self.typed(*value)
            )),
            ExpressionError::ShiftAmountTooLarge { lhs_type, .. } => Said::new(format!(
                "the shift is by as many bits as a `{}` has, or more",
                self.inner_name(lhs_type)
            )),
            ExpressionError::DivideByZero => Said::new("this divides by zero"),
            ExpressionError::InvalidCastArgument => Said::new(format!(
                "{} cannot be converted to that",
                self.written(handle)
            )),
            _other => return self.texture(handle, error),
        })
    }

    /// What is wrong with a function of textures.
    fn texture(&self, handle: Handle<Expression>, error: &ExpressionError) -> Option<Said> {
        let expected = |what: &str, value: Handle<Expression>, ty: &str| {
            Said::new(format!("{what}: {}, expected {ty}", self.typed(value))).at(self.span(value))
        };
        let integer = "`i32` or `u32`";
        Some(match error {
            ExpressionError::InvalidImageCoordinateType(dim, at) => {
                let samples = matches!(
                    self.function.expressions[handle],
                    Expression::ImageSample { .. }
                );
                self.coordinates(*dim, *at, samples)
            }
            ExpressionError::InvalidImageClass(_) => {
                let image = match &self.function.expressions[handle] {
                    Expression::ImageSample { image, .. }
                    | Expression::ImageLoad { image, .. }
                    | Expression::ImageQuery { image, .. } => *image,
                    _another => return None,
                };
                Said::new(format!(
                    "{}, which {} does not take",
                    self.typed(image),
                    self.written(handle)
                ))
            }
            ExpressionError::InvalidImageArrayIndexType(value) => {
                // Naga says the same of a level.
                let what = match &self.function.expressions[handle] {
                    Expression::ImageLoad {
                        level: Some(level),
                        array_index,
                        ..
                    } if level == value && array_index.as_ref() != Some(value) => "the level",
                    _another => "the array index",
                };
                expected(what, *value, integer)
            }
            ExpressionError::InvalidImageOtherIndexType(value) => {
                let what = match &self.function.expressions[handle] {
                    Expression::ImageLoad { .. } => "the sample",
                    _query => "the level",
                };
                expected(what, *value, integer)
            }
            ExpressionError::ExpectedImageType(_) | ExpressionError::ExpectedSamplerType(_) => {
                let (value, ty) = match (&self.function.expressions[handle], error) {
                    (
                        Expression::ImageSample { sampler, .. },
                        ExpressionError::ExpectedSamplerType(_),
                    ) => (*sampler, "a sampler"),
                    (
                        Expression::ImageSample { image, .. }
                        | Expression::ImageLoad { image, .. }
                        | Expression::ImageQuery { image, .. },
                        _,
                    ) => (*image, "a texture"),
                    _another => return None,
                };
                Said::new(format!("{}, expected {ty}", self.typed(value))).at(self.span(value))
            }
            ExpressionError::ComparisonSamplingMismatch { has_ref, .. } => {
                let Expression::ImageSample { image, sampler, .. } =
                    self.function.expressions[handle]
                else {
                    return None;
                };
                let takes = match has_ref {
                    true => "a depth texture and a `sampler_comparison`",
                    false => "a `sampler`",
                };
                let given = match has_ref {
                    true => format!("`{}` and `{}`", self.ty(image), self.ty(sampler)),
                    false => format!("`{}`", self.ty(sampler)),
                };
                Said::new(format!(
                    "{} takes {takes}, and gets {given}",
                    self.written(handle)
                ))
            }
            ExpressionError::InvalidSampleOffset(_, value) => Said::new(format!(
                "the offset: {}, expected as many `i32` as the texture has dimensions",
                self.typed(*value)
            ))
            .at(self.span(*value)),
            ExpressionError::InvalidDepthReference(value) => {
                expected("what is compared with", *value, "`f32`")
            }
            ExpressionError::InvalidSampleLevelExactType(value) => {
                let image = match &self.function.expressions[handle] {
                    Expression::ImageSample { image, .. } => self.resolution(*image),
                    _another => None,
                };
                let is_depth = matches!(
                    image.map(|ty| ty.inner_with(&self.shader.types)),
                    Some(TypeInner::Image {
                        class: naga::ImageClass::Depth { .. },
                        ..
                    })
                );
                let ty = if is_depth { integer } else { "`f32`" };
                expected("the level", *value, ty)
            }
            ExpressionError::InvalidSampleLevelBiasType(value) => {
                expected("the bias", *value, "`f32`")
            }
            ExpressionError::InvalidSampleLevelGradientType(_, value) => expected(
                "the gradient",
                *value,
                "as many `f32` as the coordinates have",
            ),
            _other => return None,
        })
    }

    /// What an index is into: the variable, or its type.
    fn indexed(&self, base: Handle<Expression>) -> Option<String> {
        let ty = match self.resolution(base)?.inner_with(&self.shader.types) {
            TypeInner::Pointer { .. } | TypeInner::ValuePointer { .. } => self.pointee(base),
            _value => self.ty(base),
        };
        Some(match self.lines.written_at(self.span(base)) {
            Some(text) => format!("`{text}`, which is `{ty}`"),
            None => format!("`{ty}`"),
        })
    }

    fn entry_point(&self, name: &str, error: &EntryPointError) -> Option<Said> {
        let argument = |number: &u32| {
            let argument = self.function.arguments.get(*number as usize);
            argument.and_then(|a| a.name.clone()).unwrap_or_default()
        };
        Some(match error {
            EntryPointError::OutOfRangeWorkgroupSize => Said::new(format!(
                "the workgroup of `{name}` has no size that it can have"
            ))
            .help("each number is at least 1, and their product at most 16384"),
            EntryPointError::ForbiddenStageOperations => {
                let said = Said::new(format!(
                    "`{name}` reaches what only other stages than compute have, such as `discard`"
                ));
                let kills = |s: &Statement| matches!(s, Statement::Kill);
                match find(&self.function.body, &kills) {
                    Some((_, place)) => said.at(place),
                    None => said,
                }
            }
            EntryPointError::InvalidGlobalUsage(global, usage) => self.usage(*global, *usage)?,
            EntryPointError::BindingCollision(global) => {
                let variable = &self.shader.global_variables[*global];
                let binding = variable.binding?;
                let same = |(handle, other): &(Handle<GlobalVariable>, &GlobalVariable)| {
                    handle != global && other.binding == Some(binding)
                };
                let (other, named) = self.shader.global_variables.iter().find(same)?;
                let of = |variable: &GlobalVariable| variable.name.clone().unwrap_or_default();
                Said::new(format!(
                    "`{name}` uses `{}` and `{}`, which have the same `@group({}) @binding({})`",
                    of(named),
                    of(variable),
                    binding.group,
                    binding.binding
                ))
                .and(
                    self.shader.global_variables.get_span(other),
                    "the other is here".to_string(),
                )
            }
            EntryPointError::Argument(number, error) => match error {
                VaryingError::InvalidBuiltInType(builtin, given) => {
                    let builtin = builtin.to_wgsl_for_diagnostics();
                    let ty = self.inner_name(given);
                    Said::new(format!(
                        "`{}` has type `{ty}`, which `{builtin}` is not of",
                        argument(number)
                    ))
                }
                VaryingError::DuplicateBuiltIn(builtin) => Said::new(format!(
                    "`{}` is `{}`, which another parameter of `{name}` is already",
                    argument(number),
                    builtin.to_wgsl_for_diagnostics()
                )),
                VaryingError::MissingBinding => Said::new(format!(
                    "`{}` is a parameter of an entry point and has no `@builtin`",
                    argument(number)
                )),
                VaryingError::InvalidBuiltInStage(builtin) => Said::new(format!(
                    "`{}` is `{}`, which compute shaders do not have",
                    argument(number),
                    crate::enable::linear_index(*builtin)
                        .map_or_else(|| builtin.to_wgsl_for_diagnostics(), str::to_string)
                )),
                _other => return None,
            },
            EntryPointError::Result(VaryingError::MissingBinding) => Said::new(format!(
                "`{name}` is a compute shader and can return nothing"
            )),
            _other => return None,
        })
    }

    /// A texture is used otherwise than its access says.
    fn usage(&self, global: Handle<GlobalVariable>, usage: GlobalUse) -> Option<Said> {
        let variable = &self.shader.global_variables[global];
        let name = variable.name.as_deref().unwrap_or_default();
        let TypeInner::Image {
            class: naga::ImageClass::Storage { access, .. },
            ..
        } = self.shader.types[variable.ty].inner
        else {
            return None;
        };
        let (reads, adds) = (
            usage.contains(GlobalUse::READ),
            usage.contains(GlobalUse::ATOMIC),
        );
        let declared = match access {
            StorageAccess::LOAD => "read",
            StorageAccess::STORE => "write",
            _both if access.contains(StorageAccess::ATOMIC) => "atomic",
            _both => "read_write",
        };
        let (does, help) = match (adds, reads && !access.contains(StorageAccess::LOAD)) {
            (true, _) => ("acts atomically on", "declare it `atomic`"),
            (false, true) => ("reads", "declare it `read` or `read_write`"),
            (false, false) => ("stores to", "declare it `write` or `read_write`"),
        };
        let is_it = |f: &Function, image: Handle<Expression>| matches!(f.expressions[image], Expression::GlobalVariable(g) if g == global);
        let place = |f: &Function| {
            let load = |(_, e): &(Handle<Expression>, &Expression)| matches!(e, Expression::ImageLoad { image, .. } if is_it(f, *image));
            let acts = |s: &Statement| match s {
                Statement::ImageStore { image, .. } => does == "stores to" && is_it(f, *image),
                Statement::ImageAtomic { image, .. } => adds && is_it(f, *image),
                _another => false,
            };
            match does {
                "reads" => f
                    .expressions
                    .iter()
                    .find(load)
                    .map(|(h, _)| f.expressions.get_span(h)),
                _acts => find(&f.body, &acts).map(|(_, span)| span),
            }
        };
        let others = self.shader.functions.iter().map(|(_, f)| f);
        let place = std::iter::once(self.function).chain(others).find_map(place);
        let said = Said::new(format!(
            "this {does} `{name}`, which is declared `{declared}`"
        ))
        .and(
            self.shader.global_variables.get_span(global),
            "declared here".to_string(),
        )
        .help(help);
        Some(match place {
            Some(place) => said.at(place),
            None => said,
        })
    }
}

/// A call of a function with an argument that is not of its parameter's type, of which naga speaks in numbers, or
/// nothing at all where it is given something else to check.
pub(crate) fn wrong_argument(shader: &Module, lines: &Lines) -> Option<(Diagnostic, Span)> {
    let points = shader.entry_points.iter().map(|p| &p.function);
    let functions = shader.functions.iter().map(|(_, f)| f);
    functions.chain(points).find_map(|function| {
        let has_calls = |s: &Statement| matches!(s, Statement::Call { .. });
        find(&function.body, &has_calls)?;
        let inside = In::new(shader, function, lines);
        let wrong = |s: &Statement| inside.mismatch(s).is_some();
        let (statement, span) = find(&function.body, &wrong)?;
        let said = inside.mismatch(statement)?;
        let place = said.place.unwrap_or(span);
        let at = lines.span_or(place, Some(span));
        Some((
            Diagnostic::error(Rule::TypeMismatch, at, said.message),
            place,
        ))
    })
}

impl In<'_> {
    fn mismatch(&self, statement: &Statement) -> Option<Said> {
        let Statement::Call {
            function,
            arguments,
            ..
        } = statement
        else {
            return None;
        };
        let callee = &self.shader.functions[*function];
        let context = self.shader.to_ctx();
        let pairs = arguments.iter().zip(&callee.arguments);
        for (number, (given, parameter)) in pairs.enumerate() {
            let Some(ty) = self.resolution(*given) else {
                continue;
            };
            if context.compare_types(ty, &TypeResolution::Handle(parameter.ty)) {
                continue;
            }
            let name = callee.name.as_deref().unwrap_or_default();
            let expected = type_name(self.shader, parameter.ty);
            let said = Said::new(format!(
                "argument {} of `{name}`: {}, expected `{expected}`",
                number + 1,
                self.typed(*given)
            ));
            return Some(said.at(self.span(*given)));
        }
        None
    }
}
