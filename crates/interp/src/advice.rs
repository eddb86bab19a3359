//! What to do about a race: advice that can be followed in this kernel.
//!
//! A barrier is advised only where the verifier would take it (X4), and an update of one location is
//! told as the atomic that it wants to be. Statements are quoted in the text form.

use std::collections::{HashMap, HashSet};

use invar_ir::{
    AtomicOp, Inst, InstKind, Kernel, Module, Op, Place, Region, Scalar, Scope, Source, Span, Type,
    Uniformity, Value, analyse,
};

/// Where an instruction stands.
#[derive(Clone, Copy, Debug)]
struct Spot {
    /// The instruction that holds its region, and which of that one's regions it is.
    parent: Option<(u32, usize)>,
    span: Span,
    /// What it is called, for those that hold regions.
    name: &'static str,
}

/// A store of what a load of the same place gave, changed.
#[derive(Clone, Debug)]
struct Update {
    load: u32,
    /// The atomic that does the same, as the author would write it, as far as that can be told: in
    /// backticks, with what is to be said of it.
    text: Option<String>,
}

/// What advice needs to know of a kernel.
#[derive(Debug)]
pub(crate) struct Advice {
    spots: Vec<Spot>,
    uniformity: Uniformity,
    /// By the instruction of the store.
    updates: HashMap<u32, Update>,
    /// Loads by which a loop waits, each with its loop.
    waits: HashMap<u32, u32>,
    /// Whether the size of simdgroups is the kernel's own.
    fixed_simdgroups: bool,
}

impl Advice {
    pub(crate) fn of(module: &Module, kernel: &Kernel) -> Advice {
        let mut spots = Vec::new();
        lay_out(module, &kernel.body, None, &mut spots);
        Advice {
            spots,
            uniformity: analyse(module, kernel),
            updates: updates(module, kernel),
            waits: waits(kernel),
            fixed_simdgroups: kernel.simdgroup_size.is_some(),
        }
    }

    /// The instruction itself and those around it, from the inside.
    fn around(&self, instruction: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(Some(instruction), |i| {
            self.spots[*i as usize].parent.map(|(parent, _)| parent)
        })
    }

    /// The instruction, itself or around `b`, in the innermost region that holds both.
    fn beside(&self, a: u32, b: u32) -> u32 {
        let regions: Vec<_> = self
            .around(a)
            .map(|i| self.spots[i as usize].parent)
            .collect();
        let shares = |i: &u32| regions.contains(&self.spots[*i as usize].parent);
        self.around(b).find(shares).unwrap_or(b)
    }

    /// Whether two instructions are on different sides of one `if`, beside which both stand.
    fn are_sides(&self, at: u32, a: u32, b: u32) -> bool {
        let holds = |i: u32| i != at && self.around(i).any(|i| i == at);
        holds(a) && holds(b)
    }

    /// Where an instruction begins, if that is known.
    fn line(&self, instruction: u32) -> String {
        let span = self.spots[instruction as usize].span;
        match span.source {
            Some(_) => format!(" on line {}", span.start.line),
            None => String::new(),
        }
    }

    /// A barrier between two instructions; `near`: the threads are of one simdgroup.
    pub(crate) fn barrier(&self, (a, b): (u32, u32), near: bool, space: &str) -> String {
        let at = self.beside(a, b);
        let reached = |i: u32, scope| self.uniformity.control(i as usize).is_over(scope);
        let statement = |scope: Scope| format!("`barrier {} [{space}]`", scope.name());
        if self.are_sides(at, a, b) && reached(at, Scope::Threadgroup) {
            let name = self.spots[at as usize].name;
            let parts = match name {
                "switch" => "one for the cases of each",
                _ => "one for each side",
            };
            return format!(
                "make two of the `{name}`{}, {parts}, and put {} between them",
                self.line(at),
                statement(Scope::Threadgroup)
            );
        }
        if near && self.fixed_simdgroups && reached(at, Scope::Simdgroup) {
            return format!("put {} between them", statement(Scope::Simdgroup));
        }
        if reached(at, Scope::Threadgroup) {
            return format!("put {} between them", statement(Scope::Threadgroup));
        }
        if near && reached(at, Scope::Simdgroup) {
            return format!("put {} between them", statement(Scope::Simdgroup));
        }
        // What keeps some threads from coming there.
        let outside = self.around(at).find(|i| reached(*i, Scope::Threadgroup));
        let Some(outside) = outside else {
            return "nothing orders threads that do not meet: make both accesses atomic, or give each \
                    thread a location of its own"
                .to_string();
        };
        let statement = statement(Scope::Threadgroup);
        let line = self.line(outside);
        match self.spots[outside as usize].name {
            name @ ("if" | "switch") => format!(
                "end the `{name}`{line} between them, put {statement} there, where all threads of the \
                 threadgroup come, and begin it again behind"
            ),
            _ => format!(
                "let all threads of the threadgroup run the iterations of the loop{line} together, with \
                 the work of some in an `if`, and put {statement} between them"
            ),
        }
    }

    /// Whether one of the two is a load by which a loop waits for what the other does.
    pub(crate) fn waits(&self, a: u32, b: u32) -> bool {
        let for_other = |load: u32, other: u32| {
            let found = self.waits.get(&load);
            found.is_some_and(|at| self.around(other).all(|i| i != *at))
        };
        for_other(a, b) || for_other(b, a)
    }

    /// What to make of an update, if the two are its load and its store or both its store.
    pub(crate) fn update(&self, a: u32, b: u32) -> Option<String> {
        let of = |load: u32, store: u32| {
            let update = self.updates.get(&store)?;
            (load == store || load == update.load).then_some(update)
        };
        let update = of(a, b).or_else(|| of(b, a))?;
        // A barrier would order the load, and leave the stores as they are.
        Some(match &update.text {
            Some(atomic) => {
                format!("make the update one {atomic}, or give each thread a location of its own")
            }
            None => {
                "no atomic makes this update: give each thread a location of its own, and let one \
                     thread put them together behind a barrier, or in another dispatch"
                    .to_string()
            }
        })
    }
}

fn lay_out(module: &Module, region: &Region, parent: Option<(u32, usize)>, spots: &mut Vec<Spot>) {
    for inst in &region.insts {
        let number = spots.len() as u32;
        spots.push(Spot {
            parent,
            span: inst.span,
            name: called(module, inst),
        });
        for (i, inner) in inst.kind.regions().into_iter().enumerate() {
            lay_out(module, inner, Some((number, i)), spots);
        }
    }
}

/// What an instruction is called: a front end makes `if`s of a `switch`, too.
fn called(module: &Module, inst: &Inst) -> &'static str {
    let is_switch = || {
        let written = module.written(inst.span).unwrap_or_default();
        let rest = written.strip_prefix("switch");
        rest.is_some_and(|rest| rest.starts_with([' ', '(', '{']))
    };
    match &inst.kind {
        InstKind::If { .. } if is_switch() => "switch",
        other => other.name(),
    }
}

/// The loads of one place in every iteration of a loop without a count that decide whether it is left.
fn waits(kernel: &Kernel) -> HashMap<u32, u32> {
    let mut definitions: HashMap<Value, (u32, &Inst)> = HashMap::new();
    let mut insts: Vec<&Inst> = Vec::new();
    kernel.for_each_inst(&mut |inst| {
        for result in &inst.results {
            definitions.insert(*result, (insts.len() as u32, inst));
        }
        insts.push(inst);
    });
    let mut found = HashMap::new();
    for (at, inst) in (0..).zip(&insts) {
        let InstKind::Loop { body, .. } = &inst.kind else {
            continue;
        };
        // What decides one way out may decide others too, and be made of equals.
        let mut seen = HashSet::new();
        for inner in &body.insts {
            let InstKind::If {
                condition,
                then,
                otherwise,
            } = &inner.kind
            else {
                continue;
            };
            let leaves = |r: &Region| {
                let last = r.insts.last();
                last.is_some_and(|i| matches!(i.kind, InstKind::Break(_)))
            };
            if leaves(then) || leaves(otherwise) {
                let mut values = vec![*condition];
                while let Some(value) = values.pop() {
                    let Some((number, inst)) = definitions.get(&value) else {
                        continue;
                    };
                    if *number < at || !seen.insert(value) {
                        continue;
                    }
                    if let InstKind::Op { args, .. } = &inst.kind {
                        values.extend(args);
                    } else if let InstKind::Load(place) = &inst.kind
                        && definitions.get(&place.index).is_none_or(|(i, _)| *i < at)
                    {
                        found.insert(*number, at);
                    }
                }
            }
        }
    }
    found
}

/// The stores of a kernel that update what they load.
fn updates(module: &Module, kernel: &Kernel) -> HashMap<u32, Update> {
    let mut known = Known {
        module,
        kernel,
        definitions: HashMap::new(),
    };
    let mut found = HashMap::new();
    let mut number = 0;
    kernel.for_each_inst(&mut |inst| {
        for result in &inst.results {
            known.definitions.insert(*result, (number, inst));
        }
        if let InstKind::Store { place, value } = &inst.kind {
            if let Some((load, atomic)) = known.update(place, *value) {
                let source = inst
                    .span
                    .source
                    .and_then(|s| module.sources.get(s.0 as usize));
                let operand = || operand(kernel, atomic.operand);
                let text = source.and_then(|s| spell(s, inst.span, &atomic, operand));
                let text = Some(text.unwrap_or_else(|| match atomic.negated {
                    true => format!("`{}` of the negative", atomic.op.name()),
                    false => format!("`{}`", atomic.op.name()),
                }));
                found.insert(number, Update { load, text });
            } else if let Some(load) = known.changed_load(place, *value, DEEPEST) {
                found.insert(number, Update { load, text: None });
            }
        }
        number += 1;
    });
    found
}

/// How many operations may lie between the load of an update and its store, or between two values and
/// what they are both computed from.
const DEEPEST: u32 = 4;

/// The atomic that an update wants to be.
struct Atomic {
    op: AtomicOp,
    operand: Value,
    /// Whether it takes the operand's negative: no atomic subtracts floats.
    negated: bool,
}

/// What is known of values at an instruction: those that were made before it.
struct Known<'a> {
    module: &'a Module,
    kernel: &'a Kernel,
    definitions: HashMap<Value, (u32, &'a Inst)>,
}

impl Known<'_> {
    /// The load of the same place that a value is computed from.
    fn changed_load(&self, place: &Place, value: Value, depth: u32) -> Option<u32> {
        let (number, inst) = self.definitions.get(&value)?;
        match &inst.kind {
            InstKind::Load(from) => self.same_place(from, place, DEEPEST).then_some(*number),
            InstKind::Op { args, .. } if depth > 0 => {
                let load = |v: &Value| self.changed_load(place, *v, depth - 1);
                args.iter().find_map(load)
            }
            _ => None,
        }
    }

    /// The load and the atomic, if the value is made of what the place holds.
    fn update(&self, place: &Place, value: Value) -> Option<(u32, Atomic)> {
        let (_, inst) = self.definitions.get(&value)?;
        let InstKind::Op { op, args, .. } = &inst.kind else {
            return None;
        };
        let Type::Scalar(scalar) = self.kernel.ty(value) else {
            return None;
        };
        let float = scalar == Scalar::F32;
        if !float && !matches!(scalar, Scalar::I32 | Scalar::U32) {
            return None;
        }
        // WGSL has no atomics of floats.
        let is_shader = |s: &Source| s.name.ends_with(".wgsl");
        if float && self.module.sources.iter().any(is_shader) {
            return None;
        }
        let (atomic, either) = match op {
            Op::Add => (AtomicOp::Add, true),
            // x - y is x + (-y), of floats too, and to the bit.
            Op::Sub if float => (AtomicOp::Add, false),
            Op::Sub => (AtomicOp::Sub, false),
            Op::Min if !float => (AtomicOp::Min, true),
            Op::Max if !float => (AtomicOp::Max, true),
            Op::And => (AtomicOp::And, true),
            Op::Or => (AtomicOp::Or, true),
            Op::Xor => (AtomicOp::Xor, true),
            _ => return None,
        };
        let [x, y] = args[..] else {
            return None;
        };
        let loads = |v: Value| {
            let (number, inst) = self.definitions.get(&v)?;
            let InstKind::Load(from) = &inst.kind else {
                return None;
            };
            self.same_place(from, place, DEEPEST).then_some(*number)
        };
        let (load, operand) = match (loads(x), loads(y)) {
            (Some(load), _) => (load, y),
            (None, Some(load)) if either => (load, x),
            (None, _) => return None,
        };
        let negated = float && *op == Op::Sub;
        let atomic = Atomic {
            op: atomic,
            operand,
            negated,
        };
        Some((load, atomic))
    }

    fn same_place(&self, a: &Place, b: &Place, depth: u32) -> bool {
        a.memory == b.memory
            && a.width == b.width
            && a.path == b.path
            && self.same_value(a.index, b.index, depth)
    }

    /// Whether two values are surely equal: computed alike, to some depth.
    fn same_value(&self, a: Value, b: Value, depth: u32) -> bool {
        if a == b {
            return true;
        }
        let of = |value| self.definitions.get(value).map(|(_, inst)| &inst.kind);
        match (of(&a), of(&b)) {
            (Some(InstKind::Const(x)), Some(InstKind::Const(y))) => x == y,
            (Some(InstKind::BufferLength(x)), Some(InstKind::BufferLength(y))) => x == y,
            // What nobody writes is the same both times.
            (Some(InstKind::Load(x)), Some(InstKind::Load(y))) => {
                depth > 0
                    && self.module.is_read_only(self.kernel, x.memory)
                    && self.same_place(x, y, depth - 1)
            }
            (
                Some(InstKind::Op { op, imm, args }),
                Some(InstKind::Op {
                    op: o,
                    imm: i,
                    args: others,
                }),
            ) => {
                let mut pairs = args.iter().zip(others);
                depth > 0
                    && (op, imm, args.len()) == (o, i, others.len())
                    && pairs.all(|(a, b)| self.same_value(*a, *b, depth - 1))
            }
            _ => false,
        }
    }
}

fn operand(kernel: &Kernel, value: Value) -> Option<String> {
    let name = kernel.values[value.0 as usize].name.as_ref()?;
    Some(format!("%{name}"))
}

/// The atomic in the author's own words: the place and the operand as they stand in the statement,
/// a store of the text form or an assignment of a language with brackets.
fn spell(
    source: &Source,
    span: Span,
    atomic: &Atomic,
    operand: impl Fn() -> Option<String>,
) -> Option<String> {
    let line = source.line(span.start.line)?;
    let from = (span.start.column as usize).checked_sub(1)?;
    let rest = line.chars().skip(from);
    let statement: String = rest.take_while(|c| *c != ';').collect();
    let name = atomic.op.name();
    if let Some(rest) = statement.strip_prefix("store ") {
        let (place, _) = rest.split_once(", ")?;
        let operand = operand()?;
        return Some(match atomic.negated {
            true => format!(
                "`{name}` on `{}` of the negative of `{operand}`",
                place.trim()
            ),
            false => format!("`{name} {place}, {operand}`"),
        });
    }
    let (place, operand) = assignment(&statement)?;
    let is_one = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '[' | ']');
    Some(match atomic.negated {
        true if operand.chars().all(is_one) => format!("`{name} {place}, -{operand}`"),
        true => format!("`{name} {place}, -({operand})`"),
        false => format!("`{name} {place}, {operand}`"),
    })
}

/// The place and the other operand of `place op= operand` and of `place = place op operand`.
fn assignment(statement: &str) -> Option<(&str, &str)> {
    let mut depth = 0;
    let outside = statement.char_indices().find(|(_, c)| {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        *c == '=' && depth == 0
    });
    let (at, _) = outside?;
    let (left, right) = (statement[..at].trim_end(), statement[at + 1..].trim());
    let right = right.split(" #").next().unwrap_or(right).trim();
    let signs = ['+', '-', '&', '|', '^'];
    let (place, operand) = match left.strip_suffix(signs) {
        Some(place) => (place.trim_end(), right),
        None => {
            let rest = right.strip_prefix(left)?.trim_start();
            (left, rest.strip_prefix(signs)?.trim())
        }
    };
    let whole = place.ends_with(']') && !operand.is_empty() && !operand.starts_with('=');
    let name = place.split('[').next()?;
    let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '_') && !name.is_empty();
    (whole && is_name).then_some((place, operand))
}
