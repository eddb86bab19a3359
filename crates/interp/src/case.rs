//! `; run:` directives on the reference machine: from a directive to a dispatch and its arguments,
//! and from what a run left to what was expected.

use invar_ir::text::case::{self, Expect, ExprKind, Named, RunCase};
use invar_ir::text::data::{FileReader, compare, evaluate, evaluate_texture};
use invar_ir::texture::stored;
use invar_ir::{
    Const, ConstantKey, Diagnostic, Diagnostics, ElementType, Kernel, Module, ParamKind, Rule, Type,
};

use crate::dispatch::{Arg, Dispatch, Grid, Options};

/// What a directive says to run.
#[derive(Debug)]
pub struct Bound {
    /// The kernel's name.
    pub kernel: String,
    /// The grid.
    pub dispatch: Dispatch,
    /// Arguments in the order of the parameters.
    pub args: Vec<Arg<'static>>,
    /// The options given, with what the directive says of them.
    pub options: Options,
}

impl Bound {
    /// The same with memory of its own.
    pub fn copy(&self) -> Bound {
        Bound {
            kernel: self.kernel.clone(),
            dispatch: self.dispatch,
            args: self.args.iter().map(Arg::copy).collect(),
            options: self.options.clone(),
        }
    }
}

pub(crate) fn kernel_of<'m>(module: &'m Module, case: &RunCase) -> Result<&'m Kernel, Diagnostic> {
    let name = &case.kernel.name;
    module.kernel(name).ok_or_else(|| {
        let message = format!("there is no kernel `@{name}`");
        Diagnostic::error(Rule::UndefinedName, case.kernel.span, message)
    })
}

/// Makes arguments of what a directive says. Files are read by `files`.
///
/// # Errors
/// Every argument that is missing, unknown, or does not fit its parameter.
pub fn bind(
    module: &Module,
    case: &RunCase,
    options: &Options,
    files: FileReader<'_>,
) -> Result<Bound, Diagnostics> {
    bind_but(module, case, &[], options, files)
}

/// The same, but for parameters that get their buffer later: nothing till then.
pub(crate) fn bind_but(
    module: &Module,
    case: &RunCase,
    later: &[(Named, usize)],
    options: &Options,
    files: FileReader<'_>,
) -> Result<Bound, Diagnostics> {
    let kernel = kernel_of(module, case).map_err(|d| Diagnostics(vec![d]))?;
    let mut errors = Vec::new();
    let mut args = Vec::new();
    let given = case.args.iter().map(|(given, _)| given);
    for given in given.chain(later.iter().map(|(given, _)| given)) {
        if !kernel.params.iter().any(|p| *p.name == *given.name) {
            let message = format!(
                "kernel `@{}` has no parameter `%{}`",
                kernel.name, given.name
            );
            let names = kernel.params.iter().map(|p| format!("`%{}`", p.name));
            let names: Vec<String> = names.collect();
            let error = Diagnostic::error(Rule::UndefinedName, given.span, message);
            errors.push(match names.is_empty() {
                true => error.help("it has none"),
                false => error.help(format!("it has {}", names.join(", "))),
            });
        }
    }
    for param in &kernel.params {
        if later.iter().any(|(n, _)| *n.name == *param.name) {
            args.push(Arg::OwnedBuffer(Vec::new()));
            continue;
        }
        let mut given = case.args.iter().filter(|(n, _)| *n.name == *param.name);
        let Some((_, expr)) = given.next() else {
            let message = format!("parameter `%{}` gets nothing", param.name);
            errors.push(Diagnostic::error(Rule::InvalidArgument, case.span, message));
            continue;
        };
        if let Some((again, _)) = given.next() {
            let message = format!("parameter `%{}` gets something twice", param.name);
            errors.push(Diagnostic::error(Rule::DuplicateName, again.span, message));
        }
        match argument(module, kernel, &param.kind, expr, &mut *files) {
            Ok(arg) => args.push(arg),
            Err(mut error) => {
                error.message = format!("argument for `%{}`: {}", param.name, error.message);
                errors.push(error);
            }
        }
    }
    let mut constants = options.constants.clone();
    for (name, literal) in &case.constants {
        let found = module
            .function_constants
            .iter()
            .find(|c| *c.name == *name.name);
        let Some(found) = found else {
            let message = format!("there is no function constant `@{}`", name.name);
            errors.push(Diagnostic::error(Rule::UndefinedName, name.span, message));
            continue;
        };
        match literal.as_const(found.scalar) {
            Ok(value) => constants.push((ConstantKey::Name(name.name.as_str().into()), value)),
            Err(error) => errors.push(error),
        }
    }
    let threadgroup = case.threadgroup.or(kernel.threadgroup_size);
    let Some(threadgroup) = threadgroup else {
        let message = format!(
            "neither the directive nor kernel `@{}` says a threadgroup size: add one, such as threadgroup(64)",
            kernel.name
        );
        errors.push(Diagnostic::error(Rule::InvalidDispatch, case.span, message));
        return Err(Diagnostics(errors));
    };
    if !errors.is_empty() {
        return Err(Diagnostics(errors));
    }
    Ok(Bound {
        kernel: case.kernel.name.clone(),
        dispatch: Dispatch {
            grid: match case.grid {
                case::Grid::Threads(n) => Grid::Threads(n),
                case::Grid::Threadgroups(n) => Grid::Threadgroups(n),
            },
            threadgroup,
        },
        args,
        options: Options {
            constants,
            simdgroup_size: case.simdgroup.or(options.simdgroup_size),
            seed: case.seed.unwrap_or(options.seed),
            ..options.clone()
        },
    })
}

fn argument(
    module: &Module,
    kernel: &Kernel,
    kind: &ParamKind,
    expr: &case::Expr,
    files: FileReader<'_>,
) -> Result<Arg<'static>, Diagnostic> {
    match kind {
        ParamKind::Buffer { element, .. } | ParamKind::Constant { element } => {
            // One value is all that a uniform of one number holds.
            let is_buffer = matches!(kind, ParamKind::Buffer { .. });
            if let (true, ExprKind::Scalar(value)) = (is_buffer, &expr.kind) {
                // What is not a number at all is not advised.
                if let ElementType::Value(ty) = element {
                    value.as_const(ty.component_scalar())?;
                }
                let value = &value.text;
                return Err(Diagnostic::error(
                    Rule::InvalidArgument,
                    expr.span,
                    format!(
                        "the parameter is a buffer, and this is one value: `fill(n, {value})` is n \
                         elements of {value}, `[{value}]` is one"
                    ),
                ));
            }
            evaluate(expr, element, &module.structs, files).map(Arg::OwnedBuffer)
        }
        ParamKind::Threadgroup { .. } => match &expr.kind {
            ExprKind::Length(length) => Ok(Arg::ThreadgroupLength(*length)),
            ExprKind::Scalar(_)
            | ExprKind::List(_)
            | ExprKind::Random { .. }
            | ExprKind::Zeros(_)
            | ExprKind::Fill { .. }
            | ExprKind::Iota(_)
            | ExprKind::File(_)
            | ExprKind::Rev(_)
            | ExprKind::Texture { .. }
            | ExprKind::Sampler(_)
            | ExprKind::Reference => Err(Diagnostic::error(
                Rule::InvalidArgument,
                expr.span,
                "a threadgroup parameter gets a length in elements: `length(64)`",
            )),
        },
        ParamKind::Texture(_) => match &expr.kind {
            ExprKind::Texture { shape, contents } => {
                let bytes = evaluate_texture(*shape, contents.as_deref(), expr.span, files)?;
                Ok(Arg::Texture(*shape, Box::new(Arg::OwnedBuffer(bytes))))
            }
            ExprKind::Scalar(_)
            | ExprKind::List(_)
            | ExprKind::Random { .. }
            | ExprKind::Zeros(_)
            | ExprKind::Fill { .. }
            | ExprKind::Iota(_)
            | ExprKind::File(_)
            | ExprKind::Rev(_)
            | ExprKind::Length(_)
            | ExprKind::Sampler(_)
            | ExprKind::Reference => Err(Diagnostic::error(
                Rule::InvalidArgument,
                expr.span,
                "a texture parameter gets a texture: `texture(rgba8unorm, 640, 480)` is one of \
                 zeros, and behind a comma its numbers may follow, as in \
                 `texture(r8uint, 2, 2, [1, 2, 3, 4])`",
            )),
        },
        ParamKind::Sampler => match &expr.kind {
            ExprKind::Sampler(sampler) => Ok(Arg::Scalar(sampler.code().map(Const::from).to_vec())),
            _none => Err(Diagnostic::error(
                Rule::InvalidArgument,
                expr.span,
                "a sampler parameter gets a sampler, such as `sampler(linear, repeat)`",
            )),
        },
        ParamKind::Scalar { value } => {
            let ty: Type = kernel.ty(*value);
            let bytes = evaluate(expr, &ElementType::Value(ty), &module.structs, files)?;
            let scalar = ty.component_scalar();
            let each = scalar.size_bytes() as usize;
            if bytes.len() != each * ty.component_count() as usize {
                let message = format!("this is not one value of type {ty}");
                return Err(Diagnostic::error(Rule::InvalidArgument, expr.span, message));
            }
            let bits = |c: &[u8]| crate::access::read(c, 0, scalar);
            let components = bytes.chunks(each).map(|c| Const {
                scalar,
                bits: bits(c),
            });
            Ok(Arg::Scalar(components.collect()))
        }
    }
}

/// What differs from a directive's expectations after a run that left these arguments. `reference`
/// holds the arguments after a run on the reference machine, for expectations that name it.
pub fn mismatches(
    module: &Module,
    case: &RunCase,
    after: &[Arg],
    reference: &[Arg],
    files: FileReader<'_>,
) -> Vec<Diagnostic> {
    let kernel = match kernel_of(module, case) {
        Ok(kernel) => kernel,
        Err(error) => return vec![error],
    };
    let mut found = Vec::new();
    for expect in &case.expects {
        let name = &expect.param.name;
        let Some(i) = kernel.params.iter().position(|p| *p.name == **name) else {
            let message = format!("kernel `@{}` has no parameter `%{name}`", kernel.name);
            let span = expect.param.span;
            found.push(Diagnostic::error(Rule::UndefinedName, span, message));
            continue;
        };
        let texels;
        let element = match (&kernel.params[i].kind, &after[i]) {
            (ParamKind::Buffer { element, .. } | ParamKind::Constant { element }, _) => element,
            (ParamKind::Texture(_), Arg::Texture(shape, _)) => {
                texels = stored(shape.format).into();
                &texels
            }
            _no_memory => {
                let message =
                    format!("`%{name}` is not a buffer, so nothing can be expected of it");
                let span = expect.param.span;
                found.push(Diagnostic::error(Rule::InvalidArgument, span, message));
                continue;
            }
        };
        let (after, reference) = (after[i].bytes(), reference[i].bytes());
        found.extend(mismatch(module, expect, element, after, reference, files));
    }
    found
}

/// What differs from one expectation of a buffer with these elements.
pub(crate) fn mismatch(
    module: &Module,
    expect: &Expect,
    element: &ElementType,
    after: &[u8],
    reference: &[u8],
    files: FileReader<'_>,
) -> Option<Diagnostic> {
    let structs = &module.structs;
    let evaluated;
    let expected = match &expect.value.kind {
        ExprKind::Reference => reference,
        ExprKind::Scalar(_)
        | ExprKind::List(_)
        | ExprKind::Random { .. }
        | ExprKind::Zeros(_)
        | ExprKind::Fill { .. }
        | ExprKind::Iota(_)
        | ExprKind::File(_)
        | ExprKind::Rev(_)
        | ExprKind::Texture { .. }
        | ExprKind::Sampler(_)
        | ExprKind::Length(_) => match evaluate(&expect.value, element, structs, files) {
            Ok(bytes) => {
                evaluated = bytes;
                &evaluated
            }
            Err(error) => return Some(error),
        },
    };
    let compared = compare(expect.tolerance, expected, after, element, structs);
    compared.err().map(|mismatch| {
        let name = &expect.param.name;
        let message = format!("`{name}` is not as expected: {mismatch}");
        Diagnostic::error(Rule::Expectation, expect.span, message)
    })
}
