//! X4: what must be reached together is, and what is done together is one thing.

use std::collections::HashMap;

use super::Errors;
use crate::diagnostic::Diagnostic;
use crate::inst::{CopyShape, Inst, InstKind, Scope, Value};
use crate::module::{AddressSpace, Kernel, Module};
use crate::ops::{Capability, Meaning, Op};
use crate::rules::Rule;
use crate::types::Type;
use crate::uniformity::{Level, Point, Reason, Uniformity, analyse};

/// Checks it. All ids are in range and regions have the parameters that they need.
pub(super) fn check(module: &Module, kernel: &Kernel, errors: &mut Errors) {
    let uniformity = analyse(module, kernel);
    let mut check = Check {
        module,
        kernel,
        uniformity: &uniformity,
        definitions: None,
        found: Vec::new(),
        by_key: HashMap::new(),
    };
    let mut number = 0;
    kernel.for_each_inst(&mut |inst| {
        check.inst(inst, number);
        number += 1;
    });
    for (error, more) in check.found {
        let mut error = error;
        if more > 0 {
            let s = if more == 1 { "" } else { "s" };
            error.message +=
                &format!(" (so may {more} more operation{s} here, for the same reason)");
        }
        errors.push(error);
    }
}

struct Check<'a> {
    module: &'a Module,
    kernel: &'a Kernel,
    uniformity: &'a Uniformity,
    /// What defines each value; made when the first error needs it.
    definitions: Option<Vec<Option<&'a Inst>>>,
    /// Errors, each with how many others it stands for.
    found: Vec<(Diagnostic, usize)>,
    /// Places in `found` by rule and by what is the reason.
    by_key: HashMap<(Rule, u32), usize>,
}

/// What must be reached together, and by whom.
struct Collective {
    rule: Rule,
    scope: Scope,
    what: String,
}

impl<'a> Check<'a> {
    fn inst(&mut self, inst: &'a Inst, number: usize) {
        if let Some(collective) = collective(inst)
            && !self.uniformity.control(number).is_over(collective.scope)
        {
            let reason = self.uniformity.why_control(number);
            self.missed(inst, &collective, &reason);
        }
        self.operands(inst);
    }

    /// The operands of what a simdgroup does together.
    fn operands(&mut self, inst: &'a Inst) {
        let values: Vec<(Value, &str)> = match &inst.kind {
            InstKind::AsyncCopy { operands, shape } => {
                let mut values = vec![
                    (operands.destination_index, "the destination's index"),
                    (operands.source_index, "the source's index"),
                ];
                match *shape {
                    CopyShape::Linear { count } => values.push((count, "the number of elements")),
                    CopyShape::Tile {
                        destination_row,
                        source_row,
                        columns,
                        rows,
                    } => values.extend([
                        (destination_row, "the destination's row length"),
                        (source_row, "the source's row length"),
                        (columns, "the number of columns"),
                        (rows, "the number of rows"),
                    ]),
                }
                values
            }
            InstKind::Wait { events } => events.iter().map(|v| (*v, "the event")).collect(),
            InstKind::MatrixFill { value } => vec![(*value, "the entry")],
            InstKind::MatrixLoad { place } => {
                vec![(place.index, "the index"), (place.row, "the row length")]
            }
            InstKind::MatrixStore { place, matrix } => vec![
                (place.index, "the index"),
                (place.row, "the row length"),
                (*matrix, "the matrix"),
            ],
            InstKind::MatrixMultiplyAccumulate { a, b, c } => {
                vec![(*a, "a factor"), (*b, "a factor"), (*c, "the addend")]
            }
            InstKind::Const(_)
            | InstKind::FunctionConstant(_)
            | InstKind::Op { .. }
            | InstKind::BufferLength(_)
            | InstKind::Load(_)
            | InstKind::Store { .. }
            | InstKind::Atomic { .. }
            | InstKind::Alloc(_)
            | InstKind::Copy { .. }
            | InstKind::Barrier { .. }
            | InstKind::AssertUniform { .. }
            | InstKind::If { .. }
            | InstKind::For { .. }
            | InstKind::Loop { .. }
            | InstKind::Yield(_)
            | InstKind::Break(_)
            | InstKind::Continue(_)
            | InstKind::Return => return,
        };
        for (value, what) in values {
            if !self.uniformity.of(value).is_over(Scope::Simdgroup) {
                self.differs(inst, value, what);
            }
        }
    }

    fn add(&mut self, key: u32, error: Diagnostic) {
        let key = (error.rule, key);
        match self.by_key.get(&key) {
            Some(at) => self.found[*at].1 += 1,
            None => {
                self.by_key.insert(key, self.found.len());
                self.found.push((error, 0));
            }
        }
    }

    fn name(&self, value: Value) -> String {
        self.kernel.value_name(value)
    }

    fn differs(&mut self, inst: &Inst, value: Value, what: &str) {
        let reason = self.uniformity.why_value(value);
        let name = self.name(value);
        let message = format!("{what} `{name}` may differ between the threads of a simdgroup");
        let mut error = Diagnostic::error(Rule::OperandNotUniform, inst.span, message);
        if let Some((Point::If { span }, Some(on))) = reason.points.first() {
            let label = format!(
                "`{name}` depends on this `if`, and so on `{}`",
                self.name(*on)
            );
            error = error.and(*span, label);
        }
        error = self.root(error, &reason);
        let help = match self.kernel.ty(value) {
            Type::Event | Type::SimdgroupMatrix { .. } => {
                "choose it by a condition that the whole simdgroup shares".to_string()
            }
            Type::Scalar(_) | Type::Vector(..) | Type::Matrix { .. } => format!(
                "make it the same for the simdgroup; if it is, say so: `assert_uniform simdgroup \
                 {name}`"
            ),
        };
        self.add(value.0, error.help(help));
    }

    fn missed(&mut self, inst: &Inst, collective: &Collective, reason: &Reason) {
        let Collective { rule, scope, what } = collective;
        let scope_name = scope.name();
        // The nearest way out that threads take apart, or else the nearest condition around.
        let (point, on) = reason
            .points
            .first()
            .copied()
            .unwrap_or((Point::Meet, None));
        let on = on.or_else(|| reason.points.iter().find_map(|(_, on)| *on));
        let (on, varies) = match on {
            Some(value) => (
                format!("`{}`", self.name(value)),
                varies(self.uniformity.of(value)),
            ),
            None => ("a condition".to_string(), varies(Level::Varying)),
        };
        let begin = format!("{what} may be missed by threads of the {scope_name}");
        let (why, label, help) = match point {
            Point::If { span } => (
                format!("it is in an `if`, and {on} {varies}"),
                Some((span, format!("this `if` depends on {on}"))),
                format!(
                    "move it out of the `if`, or let {on} be the same for the whole {scope_name}"
                ),
            ),
            Point::Rounds { span } => (
                format!("threads run different numbers of rounds: {on} {varies}"),
                Some((span, format!("the rounds of this `for` depend on {on}"))),
                format!(
                    "let all threads of the {scope_name} run as many rounds, and guard the rest of \
                     the body with an `if`"
                ),
            ),
            Point::Exit { span, name } => (
                format!("some threads `{name}`, and {on} {varies}"),
                Some((span, format!("the threads that take this `{name}` miss it"))),
                match name {
                    "return" => "let all threads run on, and guard with an `if` only what the \
                                 returned ones must not do"
                        .to_string(),
                    "break" => "move it after the loop, or leave the loop by a condition that is \
                                the same for all"
                        .to_string(),
                    _continue => {
                        "guard the rest of the round with an `if` that ends before it".to_string()
                    }
                },
            ),
            Point::Meet => (
                "not all of them come here together".to_string(),
                None,
                format!("let the whole {scope_name} come here together"),
            ),
        };
        let mut error = Diagnostic::error(*rule, inst.span, format!("{begin}: {why}"));
        if let Some((span, label)) = label {
            error = error.and(span, label);
        }
        // The condition under which threads leave.
        if let Point::Exit { .. } = point {
            let outer = reason.points[1..]
                .iter()
                .find_map(|(point, on)| match point {
                    Point::If { span } => Some((*span, *on)),
                    Point::Meet | Point::Rounds { .. } | Point::Exit { .. } => None,
                });
            if let Some((span, Some(on))) = outer {
                error = error.and(span, format!("this `if` depends on `{}`", self.name(on)));
            }
        }
        let error = self.root(error, reason).help(help);
        self.add(reason.key, error);
    }

    /// Shows where the variation comes from.
    fn root(&mut self, error: Diagnostic, reason: &Reason) -> Diagnostic {
        let Some(root) = reason.root else {
            return error;
        };
        let kernel = self.kernel;
        let definitions = self.definitions.get_or_insert_with(|| {
            let mut definitions = vec![None; kernel.values.len()];
            kernel.for_each_inst(&mut |inst| {
                for result in &inst.results {
                    definitions[result.0 as usize] = Some(inst);
                }
            });
            definitions
        });
        let Some(inst) = definitions[root.0 as usize] else {
            return error;
        };
        let name = self.name(root);
        let label = match &inst.kind {
            InstKind::Load(place) => {
                let info = self.module.memory(kernel, place.memory);
                match info {
                    Some(info) if info.space == AddressSpace::Threadgroup => format!(
                        "`{name}` is loaded from threadgroup memory, which other threads write"
                    ),
                    Some(info) => format!(
                        "`{name}` is loaded from `{}`, which other threads may write",
                        info.name
                    ),
                    None => format!("`{name}` is loaded here"),
                }
            }
            InstKind::Atomic { .. } => {
                format!("`{name}` is an atomic's result, which differs from thread to thread")
            }
            InstKind::Op { op, .. } => {
                format!(
                    "`{name}` is `{op}`: it {}",
                    varies(self.uniformity.of(root))
                )
            }
            _other => format!("`{name}` {}", varies(self.uniformity.of(root))),
        };
        error.and(inst.span, label)
    }
}

fn varies(level: Level) -> &'static str {
    match level {
        Level::Varying => "may differ from thread to thread",
        Level::Simdgroup => "may differ from simdgroup to simdgroup",
        Level::Threadgroup | Level::Grid => "may differ",
    }
}

fn collective(inst: &Inst) -> Option<Collective> {
    let simdgroup = |what: &str| {
        Some(Collective {
            rule: Rule::CollectiveNotUniform,
            scope: Scope::Simdgroup,
            what: what.to_string(),
        })
    };
    match &inst.kind {
        InstKind::Barrier { scope, .. } => Some(Collective {
            rule: Rule::BarrierNotUniform,
            // A barrier over the device is refused by its scope.
            scope: (*scope).min(Scope::Threadgroup),
            what: format!("a {} barrier", scope.name()),
        }),
        InstKind::AssertUniform { scope, .. } => Some(Collective {
            rule: Rule::CollectiveNotUniform,
            scope: (*scope).min(Scope::Threadgroup),
            what: "`assert_uniform`".to_string(),
        }),
        InstKind::Op { op, .. } if exchanges(*op) => simdgroup(&format!("`{op}`")),
        InstKind::AsyncCopy { .. } => simdgroup("an async copy"),
        InstKind::Wait { .. } => simdgroup("a `wait`"),
        InstKind::MatrixFill { .. } => simdgroup("`matrix_fill`"),
        InstKind::MatrixLoad { .. } => simdgroup("`matrix_load`"),
        InstKind::MatrixStore { .. } => simdgroup("`matrix_store`"),
        InstKind::MatrixMultiplyAccumulate { .. } => simdgroup("`matrix_multiply_accumulate`"),
        InstKind::Const(_)
        | InstKind::FunctionConstant(_)
        | InstKind::Op { .. }
        | InstKind::BufferLength(_)
        | InstKind::Load(_)
        | InstKind::Store { .. }
        | InstKind::Atomic { .. }
        | InstKind::Alloc(_)
        | InstKind::Copy { .. }
        | InstKind::If { .. }
        | InstKind::For { .. }
        | InstKind::Loop { .. }
        | InstKind::Yield(_)
        | InstKind::Break(_)
        | InstKind::Continue(_)
        | InstKind::Return => None,
    }
}

/// Whether a row exchanges values between lanes, itself or in what defines it. What takes no values
/// only asks.
fn exchanges(op: Op) -> bool {
    let row = op.row();
    match row.meaning {
        Meaning::Lanes(..) => true,
        Meaning::Expand(_) => match row.capability {
            Capability::Simdgroup | Capability::Quadgroup => row.signature.operand_count().1 > 0,
            Capability::Core => false,
        },
        Meaning::Eval(_) | Meaning::Arrange | Meaning::Query => false,
    }
}
