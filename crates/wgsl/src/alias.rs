//! The standard's rule on aliases: what a function writes through a pointer must not be reached in it by
//! another name, be it another pointer or the variable itself.
//!
//! As in the standard only variables count, not which part of one a pointer leads to, and any access that
//! stands in a function does, whether it is reached or not. Functions are visited before their callers.

use std::collections::BTreeSet;

use invar_ir::{Diagnostic, Rule};
use naga::{Block, Expression, Function, GlobalVariable, Handle, Module, Statement};

use crate::place::Lines;
use crate::tree::{blocks, root};

/// What a function does with memory that others know, too.
#[derive(Default)]
struct Accesses {
    reads: BTreeSet<Handle<GlobalVariable>>,
    writes: BTreeSet<Handle<GlobalVariable>>,
    /// Parameters through which it reads, by number.
    reads_through: BTreeSet<u32>,
    writes_through: BTreeSet<u32>,
}

/// One warning for each call that gives a function two names of what it writes.
pub(crate) fn lints(shader: &Module, lines: &Lines) -> Vec<Diagnostic> {
    let mut walk = Walk {
        shader,
        lines,
        known: Vec::new(),
        found: Vec::new(),
    };
    for (_, function) in shader.functions.iter() {
        let accesses = walk.function(function);
        walk.known.push(accesses);
    }
    for point in &shader.entry_points {
        walk.function(&point.function);
    }
    walk.found
}

struct Walk<'a> {
    shader: &'a Module,
    lines: &'a Lines,
    /// Of the functions so far, in their order.
    known: Vec<Accesses>,
    found: Vec<Diagnostic>,
}

impl Walk<'_> {
    fn function(&mut self, function: &Function) -> Accesses {
        let mut accesses = Accesses::default();
        self.block(function, &function.body, &mut accesses);
        accesses
    }

    fn block(&mut self, function: &Function, block: &Block, out: &mut Accesses) {
        let read = |pointer, out: &mut Accesses| match root(function, pointer) {
            Some(Expression::GlobalVariable(global)) => {
                out.reads.insert(*global);
            }
            Some(Expression::FunctionArgument(number)) => {
                out.reads_through.insert(*number);
            }
            _own_variable => {}
        };
        let written = |pointer, out: &mut Accesses| match root(function, pointer) {
            Some(Expression::GlobalVariable(global)) => {
                out.writes.insert(*global);
            }
            Some(Expression::FunctionArgument(number)) => {
                out.writes_through.insert(*number);
            }
            _own_variable => {}
        };
        for (statement, span) in block.span_iter() {
            match statement {
                Statement::Emit(range) => {
                    for handle in range.clone() {
                        if let Expression::Load { pointer } = &function.expressions[handle] {
                            read(*pointer, out);
                        }
                    }
                }
                Statement::Store { pointer, .. } => written(*pointer, out),
                Statement::Atomic { pointer, .. } => {
                    read(*pointer, out);
                    written(*pointer, out);
                }
                Statement::WorkGroupUniformLoad { pointer, .. } => read(*pointer, out),
                Statement::Call {
                    function: callee,
                    arguments,
                    ..
                } => {
                    self.call(function, *callee, arguments, *span);
                    let known = &self.known[callee.index()];
                    out.reads.extend(&known.reads);
                    out.writes.extend(&known.writes);
                    for (number, argument) in (0..).zip(arguments) {
                        if known.reads_through.contains(&number) {
                            read(*argument, out);
                        }
                        if known.writes_through.contains(&number) {
                            written(*argument, out);
                        }
                    }
                }
                nested => {
                    for block in blocks(nested) {
                        self.block(function, block, out);
                    }
                }
            }
        }
    }

    /// Looks at what a call gives names of.
    fn call(
        &mut self,
        function: &Function,
        callee: Handle<Function>,
        arguments: &[Handle<Expression>],
        span: naga::Span,
    ) {
        let known = &self.known[callee.index()];
        let name = |handle: Handle<Function>| {
            let name = self.shader.functions[handle].name.as_deref();
            name.unwrap_or("function").to_string()
        };
        let parameter = |number: u32| {
            let all = &self.shader.functions[callee].arguments;
            let name = all.get(number as usize).and_then(|a| a.name.as_deref());
            name.unwrap_or("a parameter").to_string()
        };
        let reads = |number| known.reads_through.contains(&number);
        let writes = |number| known.writes_through.contains(&number);
        let called = name(callee);
        let mut messages = Vec::new();
        for (number, argument) in (0..).zip(arguments) {
            if !reads(number) && !writes(number) {
                continue;
            }
            let Some(variable) = root(function, *argument) else {
                continue;
            };
            let what = self.name(function, variable);
            let own = parameter(number);
            if let Expression::GlobalVariable(global) = variable {
                let does = match (known.writes.contains(global), known.reads.contains(global)) {
                    (true, _) => "writes",
                    (false, true) if writes(number) => "reads",
                    (false, _) => "",
                };
                if !does.is_empty() {
                    messages.push(format!(
                        "`{called}` {does} `{what}` itself, and also reaches it by the pointer `{own}`"
                    ));
                }
            }
            for (other, argument) in (0..number).zip(arguments) {
                let accessed = reads(other) || writes(other);
                let written = writes(number) || writes(other);
                if accessed && written && root(function, *argument) == Some(variable) {
                    let writer = if writes(number) {
                        &own
                    } else {
                        &parameter(other)
                    };
                    messages.push(format!(
                        "the pointers `{}` and `{own}` of `{called}` both lead to `{what}`, and \
                         `{called}` writes through `{writer}`",
                        parameter(other)
                    ));
                }
            }
        }
        let place = self.lines.span(span);
        for message in messages {
            self.found.push(
                Diagnostic::warning(Rule::WgslAlias, place, format!("{message}; a browser refuses the shader"))
                    .labelled("in this call")
                    .help("hand over a copy of the value where the function only reads it, or use one name for it in the function"),
            );
        }
    }

    fn name(&self, function: &Function, variable: &Expression) -> String {
        let name = match variable {
            Expression::GlobalVariable(global) => {
                self.shader.global_variables[*global].name.clone()
            }
            Expression::LocalVariable(local) => function.local_variables[*local].name.clone(),
            Expression::FunctionArgument(number) => function
                .arguments
                .get(*number as usize)
                .and_then(|a| a.name.clone()),
            _no_variable => None,
        };
        name.unwrap_or_else(|| "a variable".to_string())
    }
}
