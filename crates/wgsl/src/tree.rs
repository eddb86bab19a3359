//! Statements and expressions as naga has them: what lies inside one.

use naga::{Block, Expression, Function, Handle, Statement};

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
