//! The shape of a kernel: nesting, terminators, numbering, and where names can be used.

use std::collections::HashSet;

use super::declarations::is_canonical;
use super::{Errors, MALFORMED_HELP};
use crate::builder::NESTING_HELP;
use crate::diagnostic::Diagnostic;
use crate::inst::{Inst, InstKind, MAX_NESTING, Memory, Region, Spaces, Value};
use crate::module::{Kernel, Module, ParamKind};
use crate::rules::Rule;
use crate::span::Span;
use crate::texture::SamplerSource;

/// Checks it. Gives whether all ids are in range and the nesting is within limits, so that the kernel
/// can be looked at further.
pub(super) fn check(
    module: &Module,
    kernel: &Kernel,
    poison: &HashSet<Value>,
    errors: &mut Errors,
) -> bool {
    if let Some(span) = too_deep(kernel) {
        let message = format!(
            "blocks of `@{}` nest more than {MAX_NESTING} deep",
            kernel.name
        );
        errors.push(Diagnostic::error(Rule::LimitExceeded, span, message).help(NESTING_HELP));
        return false;
    }
    let mut walk = Walk {
        module,
        kernel,
        poison,
        errors,
        fine: true,
        canonical: true,
        next_value: 0,
        next_array: 0,
        values: vec![State::Unknown; kernel.values.len()],
        arrays: vec![State::Unknown; kernel.allocs.len()],
        visible: Vec::new(),
        loops: 0,
    };
    for param in &kernel.params {
        if let ParamKind::Scalar { value } = param.kind {
            walk.number(value, param.span);
            walk.show(Name::Value(value));
        }
    }
    walk.region(&kernel.body, Holder::Kernel, kernel.span);
    if walk.canonical && walk.next_value as usize != kernel.values.len() {
        walk.malformed(kernel.span, "it lists values that nothing defines");
    }
    if walk.canonical && walk.next_array as usize != kernel.allocs.len() {
        walk.malformed(kernel.span, "it lists arrays without an `alloc`");
    }
    walk.fine
}

/// The first instruction whose regions are too deep. It keeps its own stack.
fn too_deep(kernel: &Kernel) -> Option<Span> {
    let mut regions = vec![(&kernel.body, 0)];
    while let Some((region, depth)) = regions.pop() {
        for inst in &region.insts {
            let inner = inst.kind.regions();
            if !inner.is_empty() && depth >= MAX_NESTING {
                return Some(inst.span);
            }
            regions.extend(inner.into_iter().map(|region| (region, depth + 1)));
        }
    }
    None
}

/// Where a value or array stands in the walk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not defined yet.
    Unknown,
    /// Its definition is being read; it cannot be used yet.
    Numbered(Span),
    /// It can be used.
    Visible(Span),
    /// Its region has ended.
    Gone(Span),
}

#[derive(Clone, Copy)]
enum Name {
    Value(Value),
    Array(u32),
}

/// What a region belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holder {
    Kernel,
    If,
    Loop,
}

struct Walk<'a> {
    module: &'a Module,
    kernel: &'a Kernel,
    poison: &'a HashSet<Value>,
    errors: &'a mut Errors,
    fine: bool,
    /// Whether the numbering was right so far.
    canonical: bool,
    next_value: u32,
    next_array: u32,
    values: Vec<State>,
    arrays: Vec<State>,
    /// What can be used here, outermost first.
    visible: Vec<Name>,
    /// Loops around.
    loops: usize,
}

impl Walk<'_> {
    fn malformed(&mut self, span: Span, what: impl AsRef<str>) {
        self.fine = false;
        let message = format!(
            "kernel `@{}` is malformed: {}",
            self.kernel.name,
            what.as_ref()
        );
        self.errors
            .push(Diagnostic::error(Rule::MalformedModule, span, message).help(MALFORMED_HELP));
    }

    // ---- definitions ----

    /// Takes a value's definition in the order of numbering.
    fn number(&mut self, value: Value, span: Span) {
        if value.0 != self.next_value {
            if self.canonical {
                let message = format!(
                    "value {} is defined where {} is due",
                    value.0, self.next_value
                );
                self.malformed(span, message);
            }
            self.canonical = false;
        }
        self.next_value = self.next_value.saturating_add(1);
        match self.values.get_mut(value.0 as usize) {
            Some(state) => *state = State::Numbered(span),
            None => self.fine = false,
        }
    }

    fn state(&mut self, name: Name) -> Option<&mut State> {
        match name {
            Name::Value(value) => self.values.get_mut(value.0 as usize),
            Name::Array(id) => self.arrays.get_mut(id as usize),
        }
    }

    /// Makes a numbered name usable.
    fn show(&mut self, name: Name) {
        if let Some(state) = self.state(name)
            && let State::Numbered(span) = *state
        {
            *state = State::Visible(span);
            self.visible.push(name);
        }
    }

    /// Ends the use of all names since `from`.
    fn hide(&mut self, from: usize) {
        for name in self.visible.split_off(from) {
            if let Some(state) = self.state(name)
                && let State::Visible(span) = *state
            {
                *state = State::Gone(span);
            }
        }
    }

    // ---- uses ----

    fn use_value(&mut self, value: Value, span: Span) {
        let Some(state) = self.values.get(value.0 as usize).copied() else {
            self.fine = false;
            if value.0 == u32::MAX {
                // What renumbering leaves of a use without a definition.
                self.errors.error(
                    Rule::UndefinedName,
                    span,
                    "an operand is a value that nothing defines",
                    "define it before this",
                );
            } else {
                self.malformed(span, format!("there is no value {}", value.0));
            }
            return;
        };
        if self.poison.contains(&value) {
            return;
        }
        let name = self.kernel.value_name(value);
        self.check_use(state, name, span, "yield it from the block that defines it");
    }

    fn check_use(&mut self, state: State, name: String, span: Span, help: &str) {
        let error = match state {
            State::Visible(_) => return,
            State::Unknown => Diagnostic::error(
                Rule::UndefinedName,
                span,
                format!("`{name}` is used before it is defined"),
            )
            .help("define it first"),
            State::Numbered(at) => Diagnostic::error(
                Rule::UndefinedName,
                span,
                format!("`{name}` is used before the instruction that defines it ends"),
            )
            .and(at, "defined here")
            .help("an instruction's results can be used after it"),
            State::Gone(at) => Diagnostic::error(
                Rule::UndefinedName,
                span,
                format!("`{name}` is used outside the block that defines it"),
            )
            .and(at, "defined here")
            .help(help),
        };
        self.errors.push(error);
    }

    fn use_memory(&mut self, memory: Memory, span: Span) {
        if self.module.memory(self.kernel, memory).is_none() {
            self.fine = false;
            match memory {
                Memory::Alloc(u32::MAX) => self.errors.error(
                    Rule::UndefinedName,
                    span,
                    "an operand is an array that nothing declares",
                    "declare it with `alloc` before this",
                ),
                Memory::Param(_) | Memory::Alloc(_) | Memory::Constant(_) => {
                    self.malformed(span, "an operand is memory that is not there");
                }
            }
        } else if let Memory::Alloc(id) = memory {
            let state = self.arrays[id as usize];
            let name = format!("%{}", self.kernel.allocs[id as usize].name);
            let help = "move its `alloc` before the block";
            self.check_use(state, name, span, help);
        }
    }

    // ---- the walk ----

    fn region(&mut self, region: &Region, holder: Holder, span: Span) {
        let from = self.visible.len();
        for param in &region.params {
            self.show(Name::Value(*param));
        }
        let last = region.insts.len().saturating_sub(1);
        let mut ended = None;
        let mut said = false;
        for (i, inst) in region.insts.iter().enumerate() {
            if let Some((name, at)) = ended.take() {
                let message =
                    format!("nothing here can run: the `{name}` before it ends the block");
                self.errors.push(
                    Diagnostic::error(Rule::MisplacedTerminator, inst.span, message)
                        .and(at, "the block ends here")
                        .help("remove what follows, or end the block later"),
                );
                // One report a region is enough; the rest is numbered and looked at.
                said = true;
            }
            if inst.kind.is_terminator() {
                self.terminator(inst, holder);
                if i < last && !said {
                    ended = Some((inst.kind.name(), inst.span));
                }
            }
            self.inst(inst);
        }
        if !region
            .insts
            .last()
            .is_some_and(|inst| inst.kind.is_terminator())
        {
            let at = region.insts.last().map_or(span, |inst| inst.span);
            self.errors.push(
                Diagnostic::error(Rule::MisplacedTerminator, at, "a block has no end")
                    .help("end it with `yield`, `break`, `continue` or `return`"),
            );
        }
        self.hide(from);
    }

    fn terminator(&mut self, inst: &Inst, holder: Holder) {
        let name = inst.kind.name();
        let (why, help) = match (&inst.kind, holder) {
            (InstKind::Break(_) | InstKind::Continue(_), _) if self.loops == 0 => (
                format!("there is no loop around this `{name}`"),
                "put it into a `for` or `loop`, or end the thread with `return`",
            ),
            (InstKind::Yield(_), Holder::Kernel) => (
                "a kernel's body yields to nothing".to_string(),
                "a kernel's body ends with `return`",
            ),
            _fits => return,
        };
        self.errors
            .error(Rule::MisplacedTerminator, inst.span, why, help);
    }

    fn inst(&mut self, inst: &Inst) {
        let span = inst.span;
        let mut uses = Vec::new();
        inst.kind.for_each_use(|value| uses.push(value));
        for value in uses {
            self.use_value(value, span);
        }
        self.operands(inst);
        for result in &inst.results {
            self.number(*result, span);
        }
        if let InstKind::Alloc(id) = inst.kind {
            if id != self.next_array {
                if self.canonical {
                    let message =
                        format!("array {id} is declared where {} is due", self.next_array);
                    self.malformed(span, message);
                }
                self.canonical = false;
            }
            self.next_array = self.next_array.saturating_add(1);
            match self.arrays.get_mut(id as usize) {
                Some(state) => *state = State::Numbered(span),
                None => self.fine = false,
            }
            self.show(Name::Array(id));
        }
        let (holder, params) = match &inst.kind {
            InstKind::For { init, .. } => (Holder::Loop, init.len() + 1),
            InstKind::Loop { init, .. } => (Holder::Loop, init.len()),
            _no_loop => (Holder::If, 0),
        };
        for region in inst.kind.regions() {
            if region.params.len() != params {
                let found = region.params.len();
                self.malformed(
                    span,
                    format!("a region has {found} parameters, not {params}"),
                );
            }
            for param in &region.params {
                self.number(*param, span);
            }
            self.loops += usize::from(holder == Holder::Loop);
            self.region(region, holder, span);
            self.loops -= usize::from(holder == Holder::Loop);
        }
        for result in &inst.results {
            self.show(Name::Value(*result));
        }
    }

    /// Ids and constants that are not values.
    fn operands(&mut self, inst: &Inst) {
        let span = inst.span;
        let sampler = match &inst.kind {
            InstKind::Texture { function, .. } => function.sampler(),
            _no_texture => None,
        };
        inst.kind.for_each_memory(|memory| {
            // A sampler is not memory, and stands in its own place only.
            let is_sampler = sampler.and_then(SamplerSource::param) == Some(memory);
            if !is_sampler || !self.kernel.is_sampler(memory) {
                self.use_memory(memory, span);
            }
        });
        match &inst.kind {
            InstKind::Const(constant) if !is_canonical(*constant) => {
                let message = format!("a constant has bits outside {}", constant.scalar);
                self.malformed(span, message);
            }
            InstKind::FunctionConstant(id)
                if *id as usize >= self.module.function_constants.len() =>
            {
                self.malformed(span, "there is no such function constant");
            }
            InstKind::Barrier { spaces, .. } => {
                let all = Spaces::NAMES
                    .iter()
                    .fold(Spaces::NONE, |all, (one, _)| all.with(*one));
                if !all.contains(*spaces) {
                    self.malformed(span, "a barrier names a space that is not there");
                }
            }
            _values_and_objects => {}
        }
    }
}
