//! Samples that choose their level by what neighbours sample, and derivatives, which fragment shaders have.
//!
//! naga refuses a whole file where a compute entry point reaches one. What it checks instead is the module in which
//! such a sample is of the first level, and a derivative the negative of what it is of, which have the same types. No
//! expression moves, so that what naga finds out of each holds for the module as it was read; the entry point that
//! reaches one is refused when it is translated, by the function's name and line.

use naga::{Expression, Function, Module, SampleLevel, UnaryOperator};

/// What stands in a function for an expression that compute shaders do not have.
fn stand_in(expression: &Expression) -> Option<Expression> {
    match expression {
        Expression::ImageSample {
            level: SampleLevel::Auto | SampleLevel::Bias(_),
            ..
        } => {
            let mut sample = expression.clone();
            if let Expression::ImageSample { level, .. } = &mut sample {
                *level = SampleLevel::Zero;
            }
            Some(sample)
        }
        Expression::Derivative { expr, .. } => Some(Expression::Unary {
            op: UnaryOperator::Negate,
            expr: *expr,
        }),
        _another => None,
    }
}

fn functions(shader: &mut Module) -> impl Iterator<Item = &mut Function> {
    let entries = shader.entry_points.iter_mut().map(|e| &mut e.function);
    shader.functions.iter_mut().map(|(_, f)| f).chain(entries)
}

/// The module that naga checks instead of one with such expressions.
pub(crate) fn without(shader: &Module) -> Option<Module> {
    let ours = shader.functions.iter().map(|(_, f)| f);
    let all = ours.chain(shader.entry_points.iter().map(|e| &e.function));
    let mut expressions = all.flat_map(|function| function.expressions.iter());
    if !expressions.any(|(_, e)| stand_in(e).is_some()) {
        return None;
    }
    let mut module = shader.clone();
    for function in functions(&mut module) {
        for (_, expression) in function.expressions.iter_mut() {
            if let Some(stands) = stand_in(expression) {
                *expression = stands;
            }
        }
    }
    Some(module)
}
