//! X4: what must be reached together is, and what is done together is one thing.

use std::collections::{HashMap, HashSet};

use super::Errors;
use crate::diagnostic::Diagnostic;
use crate::inst::{Inst, InstKind, Region, Scope, Value};
use crate::module::{AddressSpace, Kernel, Module};
use crate::rules::Rule;
use crate::span::Span;
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
        told: HashSet::new(),
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
    /// Places of which an error was told, each with what is the reason.
    told: HashSet<(Span, u32)>,
}

/// What must be reached together, and by whom.
struct Collective {
    rule: Rule,
    scope: Scope,
    what: String,
}

impl<'a> Check<'a> {
    fn inst(&mut self, inst: &'a Inst, number: usize) {
        // What is over the active threads is for those that come (X7).
        let for_all = !self.kernel.active_collectives || inst.kind.as_op().is_none();
        if let Some(collective) = collective(inst)
            && for_all
            && !self.uniformity.control(number).is_over(collective.scope)
        {
            let reason = self.uniformity.why_control(number);
            self.missed(inst, &collective, &reason);
        }
        self.operands(inst);
    }

    /// The operands of what a simdgroup does together.
    fn operands(&mut self, inst: &'a Inst) {
        match &inst.kind {
            // Each lane brings its own value to these.
            InstKind::Op { .. } | InstKind::Barrier { .. } | InstKind::AssertUniform { .. } => {}
            kind if kind.meets() == Some(Scope::Simdgroup) => {
                kind.for_each_operand(|role, value| {
                    if !self.uniformity.of(value).is_over(Scope::Simdgroup) {
                        self.differs(inst, value, role.name());
                    }
                })
            }
            _each_thread_for_itself => {}
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

    /// What a value is called: a name, or, where a front end has made it of an expression, the expression.
    fn name(&mut self, value: Value) -> String {
        let name = self.kernel.value_name(value);
        if self.kernel.values[value.0 as usize].name.is_some() {
            return name;
        }
        let Some(inst) = self.definition(value) else {
            return name;
        };
        let written = self.module.written(inst.span).unwrap_or(name);
        // A `switch` compares what stands in its head.
        let head = written.strip_prefix("switch");
        let Some((head, _)) = head.and_then(|w| w.split_once('{')) else {
            return written;
        };
        let head = head.trim();
        let inner = head.strip_prefix('(').and_then(|h| h.strip_suffix(')'));
        inner.unwrap_or(head).to_string()
    }

    fn definition(&mut self, value: Value) -> Option<&'a Inst> {
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
        definitions[value.0 as usize]
    }

    fn differs(&mut self, inst: &Inst, value: Value, what: &str) {
        let reason = self.uniformity.why_value(value);
        let name = self.name(value);
        let message = format!("{what} `{name}` may differ between the threads of a simdgroup");
        let mut error = Diagnostic::error(Rule::OperandNotUniform, inst.span, message);
        if let Some((Point::If { span, .. }, Some(on))) = reason.points.first() {
            let (on, construct) = (self.name(*on), self.construct(*span, "if"));
            let label = format!("`{name}` depends on this `{construct}`, and so on `{on}`");
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
        // What a front end makes of one call waits and asserts: one error says it.
        if inst.span.source.is_some() && !self.told.insert((inst.span, reason.key)) {
            return;
        }
        let scope_name = scope.name();
        // The nearest way out that threads take apart, or else the nearest condition around.
        let (point, point_on) = reason
            .points
            .first()
            .copied()
            .unwrap_or((Point::Meet, None));
        let jump = self.passed_over(inst, point);
        // What the threads differ in that take it, and not what is made of that.
        let is_made = matches!((point, jump), (Point::If { span, .. }, Some((j, _))) if span == j);
        let further = || reason.points.iter().skip(1).find_map(|(_, on)| *on);
        // Of several conditions behind one another, that which takes the jump.
        let decides = jump.and_then(|(jump, _)| self.decides(jump, *scope));
        let on = decides.map(|(_, on)| on);
        let on = on.or_else(|| point_on.filter(|_| !is_made).or_else(further));
        let on = on.map(|on| self.made_of(Span::NONE, on, *scope).1);
        let (on, varies) = match on {
            Some(value) => (
                format!("`{}`", self.name(value)),
                varies(self.uniformity.of(value)),
            ),
            None => ("a condition".to_string(), varies(Level::Varying)),
        };
        let begin = format!("{what} may be missed by threads of the {scope_name}");
        let taken = |span: Span, name: &str, help: &str| {
            (
                format!("some threads `{name}`, and {on} {varies}"),
                Some((span, format!("the threads that take this `{name}` miss it"))),
                help.to_string(),
            )
        };
        let (why, label, help) = match point {
            Point::If { span, .. } if jump.is_none() => {
                let span = point_on.map_or(span, |on| self.made_of(span, on, *scope).0);
                let construct = self.construct(span, "if");
                let article = if construct == "if" { "an" } else { "a" };
                (
                    format!("it is in {article} `{construct}`, and {on} {varies}"),
                    Some((span, format!("this `{construct}` depends on {on}"))),
                    format!(
                        "move it out of the `{construct}`, or let {on} be the same for the whole {scope_name}"
                    ),
                )
            }
            Point::Iterations { span } => (
                format!("threads run different numbers of iterations: {on} {varies}"),
                Some((
                    span,
                    format!(
                        "the iterations of this `{}` depend on {on}",
                        self.construct(span, "for")
                    ),
                )),
                format!(
                    "let all threads of the {scope_name} run as many iterations, and guard the rest of \
                     the body with an `if`"
                ),
            ),
            // The condition of a loop, which a front end makes a way out of.
            Point::Exit {
                span,
                name: "break",
            } if is_condition(span, reason) => (
                format!("threads leave the loop in different iterations: {on} {varies}"),
                Some((span, format!("the iterations of this loop depend on {on}"))),
                "move it after the loop, or let all threads run as many iterations".to_string(),
            ),
            Point::Exit { span, name } => taken(span, name, after_exit(name)),
            Point::If { span, .. } => {
                let (span, name) = jump.unwrap_or((span, "return"));
                taken(span, name, after_jump(name))
            }
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
        let leaves = match point {
            Point::Exit { span, .. } => !is_condition(span, reason),
            Point::If { .. } => jump.is_some(),
            Point::Meet | Point::Iterations { .. } => false,
        };
        if leaves {
            let is_jump = |span: &Span| jump.is_some_and(|(jump, _)| jump == *span);
            let mut around = reason.points.iter().filter_map(|(point, on)| match point {
                Point::If { span, .. } => Some((*span, *on)),
                Point::Meet | Point::Iterations { .. } | Point::Exit { .. } => None,
            });
            let outer = around.find(|(span, _)| !is_jump(span));
            let decides = decides.map(|(span, on)| (span, Some(on)));
            if let Some((span, Some(on))) = decides.or(outer) {
                let (span, on) = self.made_of(span, on, *scope);
                let (on, construct) = (self.name(on), self.construct(span, "if"));
                error = error.and(span, format!("this `{construct}` depends on `{on}`"));
            }
        }
        let error = self.root(error, reason).help(help);
        self.add(reason.key, error);
    }

    /// The jump behind which an instruction stands that is in an `if` only because a front end has one: what a jump
    /// passes over is on the side that does not jump, or in an `if` that is where the jump is.
    fn passed_over(&mut self, inst: &Inst, point: Point) -> Option<(Span, &'static str)> {
        let Point::If { span, number } = point else {
            return None;
        };
        if let Some(name) = self.jump(span) {
            return Some((span, name));
        }
        let mut count = 0;
        let mut found = None;
        self.kernel.for_each_inst(&mut |inst| {
            if count == number {
                found = Some(inst);
            }
            count += 1;
        });
        let sides = found.map(|inst| inst.kind.regions()).unwrap_or_default();
        let mut jumps = sides.into_iter().filter_map(|side| self.jump_at_end(side));
        jumps.find(|(jump, _)| jump.call == span.call && self.is_before(*jump, inst.span))
    }

    /// The innermost condition around a jump of a front end that threads take apart.
    fn decides(&self, jump: Span, scope: Scope) -> Option<(Span, Value)> {
        fn is_in(region: &Region, jump: Span, around: &mut Vec<(Span, Value)>) -> bool {
            for inst in &region.insts {
                if matches!(inst.kind, InstKind::Yield(_)) && inst.span == jump {
                    return true;
                }
                let condition = match &inst.kind {
                    // Where the jump leads there may be another, for what it passes over.
                    InstKind::If { .. } if inst.span == jump => continue,
                    InstKind::If { condition, .. } => Some(*condition),
                    _other => None,
                };
                around.extend(condition.map(|on| (inst.span, on)));
                if inst
                    .kind
                    .regions()
                    .into_iter()
                    .any(|r| is_in(r, jump, around))
                {
                    return true;
                }
                if condition.is_some() {
                    around.pop();
                }
            }
            false
        }
        let mut around = Vec::new();
        is_in(&self.kernel.body, jump, &mut around);
        let differs = |(_, on): &(Span, Value)| !self.uniformity.of(*on).is_over(scope);
        around.into_iter().rev().find(differs)
    }

    /// Of a condition that is what an author's `if` leaves and has no name, which a front end makes of a long chain of
    /// `else if`s, the condition that it comes from, and its place; any other as it is.
    fn made_of(&mut self, mut span: Span, mut on: Value, scope: Scope) -> (Span, Value) {
        let uniformity = self.uniformity;
        let varying = |on: &Value| !uniformity.of(*on).is_over(scope);
        while let Some((inst, condition, given)) = self.left_by_if(on) {
            let inner = given.into_iter().find(|v| varying(v));
            match inner.filter(|v| self.left_by_if(*v).is_some()) {
                Some(inner) => on = inner,
                None if varying(&condition) => (span, on) = (inst.span, condition),
                None => break,
            }
        }
        (span, on)
    }

    /// The `if` of an author that leaves a value without a name, its condition, and what its sides give for the value.
    fn left_by_if(&mut self, value: Value) -> Option<(&'a Inst, Value, Vec<Value>)> {
        if self.kernel.values[value.0 as usize].name.is_some() {
            return None;
        }
        let inst = self.definition(value)?;
        let InstKind::If { condition, .. } = inst.kind else {
            return None;
        };
        let written = self.module.written(inst.span)?;
        if !["if", "else"].iter().any(|word| written.starts_with(word)) {
            return None;
        }
        let number = inst.results.iter().position(|result| *result == value)?;
        let given = |side: &Region| match &side.insts.last()?.kind {
            InstKind::Yield(values) => values.get(number).copied(),
            _leaves => None,
        };
        let sides = inst.kind.regions().into_iter();
        Some((inst, condition, sides.filter_map(given).collect()))
    }

    /// The jump that a front end has made the end of a region of.
    fn jump_at_end(&self, region: &Region) -> Option<(Span, &'static str)> {
        let (last, before) = region.insts.split_last()?;
        if !matches!(last.kind, InstKind::Yield(_)) {
            return None;
        }
        if let Some(name) = self.jump(last.span) {
            return Some((last.span, name));
        }
        let inner = before
            .last()
            .filter(|i| matches!(i.kind, InstKind::If { .. }))?;
        let mut sides = inner.kind.regions().into_iter();
        sides.find_map(|side| self.jump_at_end(side))
    }

    /// Which jump stands at a place.
    fn jump(&self, span: Span) -> Option<&'static str> {
        let written = self.module.written(span)?;
        let end = written.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let word = &written[..end.unwrap_or(written.len())];
        let known = ["return", "break", "continue"];
        known.into_iter().find(|k| *k == word)
    }

    /// Whether a place comes before another in the text of a function, or before the call that leads there.
    fn is_before(&self, place: Span, mut other: Span) -> bool {
        while other.call != place.call {
            let call = other
                .call
                .and_then(|id| self.module.calls.get(id.0 as usize));
            let Some(call) = call else {
                return false;
            };
            other = call.site;
        }
        let at = |span: Span| (span.start.line, span.start.column);
        place.source == other.source && at(place) < at(other)
    }

    /// What the author wrote where a front end has an `if` or a `for`.
    fn construct(&self, span: Span, otherwise: &'static str) -> &'static str {
        let written = self.module.written(span).unwrap_or_default();
        let end = written.find(|c: char| !c.is_ascii_alphabetic());
        let word = &written[..end.unwrap_or(written.len())];
        let known = ["if", "for", "while", "switch", "match"];
        let known = known.into_iter().find(|k| *k == word);
        known.unwrap_or(otherwise)
    }

    /// Shows where the variation comes from.
    fn root(&mut self, error: Diagnostic, reason: &Reason) -> Diagnostic {
        let Some(root) = reason.root else {
            return error;
        };
        let Some(inst) = self.definition(root) else {
            return error;
        };
        let name = self.name(root);
        let label = match &inst.kind {
            InstKind::Load(place) => {
                let info = self.module.memory(self.kernel, place.memory);
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

/// What to do about a way out before what all must reach.
fn after_exit(name: &str) -> &'static str {
    match name {
        "return" => {
            "let all threads run on, and guard with an `if` only what the returned ones must not do"
        }
        "break" => {
            "move it after the loop, or leave the loop by a condition that is the same for all"
        }
        _continue => "guard the rest of the iteration with an `if` that ends before it",
    }
}

/// The same of a jump that a front end has made an `if` of: its `break`s are those of a `switch`.
fn after_jump(name: &str) -> &'static str {
    match name {
        "break" => {
            "move it after the `switch`, or guard the rest of the case with an `if` that ends before it"
        }
        other => after_exit(other),
    }
}

/// Whether threads leave where the `if` around is by itself: no author writes two things in one place.
fn is_condition(exit: Span, reason: &Reason) -> bool {
    let around = reason.points[1..]
        .iter()
        .find_map(|(point, _)| match point {
            Point::If { span, .. } => Some(*span),
            Point::Meet | Point::Iterations { .. } | Point::Exit { .. } => None,
        });
    exit.source.is_some() && around == Some(exit)
}

fn varies(level: Level) -> &'static str {
    match level {
        Level::Varying => "may differ from thread to thread",
        Level::Simdgroup => "may differ from simdgroup to simdgroup",
        Level::Threadgroup | Level::Grid => "may differ",
    }
}

fn collective(inst: &Inst) -> Option<Collective> {
    // What is over the device is refused by its scope.
    let scope = inst.kind.meets()?.min(Scope::Threadgroup);
    let (rule, what) = match &inst.kind {
        InstKind::Barrier { scope, .. } => (
            Rule::BarrierNotUniform,
            format!("a {} barrier", scope.name()),
        ),
        InstKind::AsyncCopy { .. } => (Rule::CollectiveNotUniform, "an async copy".to_string()),
        InstKind::Wait { .. } => (Rule::CollectiveNotUniform, "a `wait`".to_string()),
        other => (Rule::CollectiveNotUniform, format!("`{}`", other.name())),
    };
    Some(Collective { rule, scope, what })
}
