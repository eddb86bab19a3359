//! Statements and expressions as naga has them: what lies inside one.

use naga::{Block, Expression, Function, Handle, SampleLevel, Statement};

/// The blocks inside a statement.
pub(crate) fn blocks(statement: &Statement) -> Vec<&Block> {
    match statement {
        Statement::Block(block) => vec![block],
        Statement::If { accept, reject, .. } => vec![accept, reject],
        Statement::Switch { cases, .. } => cases.iter().map(|c| &c.body).collect(),
        Statement::Loop {
            body, continuing, ..
        } => vec![body, continuing],
        _simple => Vec::new(),
    }
}

/// Whether a block leaves the loop whose body it is, by `break`.
pub(crate) fn breaks(block: &Block) -> bool {
    block.iter().any(|s| match s {
        Statement::Break => true,
        Statement::Switch { .. } | Statement::Loop { .. } => false,
        nested => blocks(nested).into_iter().any(breaks),
    })
}

/// The variable or argument at the root of a pointer.
pub(crate) fn root(function: &Function, mut pointer: Handle<Expression>) -> Option<&Expression> {
    loop {
        match &function.expressions[pointer] {
            Expression::Access { base, .. } | Expression::AccessIndex { base, .. } => {
                pointer = *base;
            }
            found @ (Expression::LocalVariable(_)
            | Expression::GlobalVariable(_)
            | Expression::FunctionArgument(_)) => return Some(found),
            _no_variable => return None,
        }
    }
}

/// What an expression of numbers is made of, and what a function of textures takes.
pub(crate) fn operands(expression: &Expression, out: &mut Vec<Handle<Expression>>) {
    match expression {
        Expression::Compose { components, .. } => out.extend(components),
        Expression::Access { base, index } => out.extend([*base, *index]),
        Expression::AccessIndex { base, .. } => out.push(*base),
        Expression::Splat { value, .. } => out.push(*value),
        Expression::Swizzle { vector, .. } => out.push(*vector),
        Expression::Unary { expr, .. } | Expression::As { expr, .. } => out.push(*expr),
        Expression::Binary { left, right, .. } => out.extend([*left, *right]),
        Expression::Select {
            condition,
            accept,
            reject,
        } => out.extend([*condition, *accept, *reject]),
        Expression::Relational { argument, .. } => out.push(*argument),
        Expression::Math {
            arg,
            arg1,
            arg2,
            arg3,
            ..
        } => {
            out.push(*arg);
            out.extend([arg1, arg2, arg3].into_iter().flatten());
        }
        Expression::ImageSample {
            coordinate,
            array_index,
            level,
            depth_ref,
            ..
        } => {
            out.push(*coordinate);
            out.extend([array_index, depth_ref].into_iter().flatten());
            match level {
                SampleLevel::Exact(value) | SampleLevel::Bias(value) => out.push(*value),
                SampleLevel::Gradient { x, y } => out.extend([*x, *y]),
                SampleLevel::Auto | SampleLevel::Zero => {}
            }
        }
        Expression::ImageLoad {
            coordinate,
            array_index,
            sample,
            level,
            ..
        } => {
            out.push(*coordinate);
            out.extend([array_index, sample, level].into_iter().flatten());
        }
        _made_of_nothing => {}
    }
}
