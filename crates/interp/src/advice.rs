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
    /// The atomic that does the same, as the author would write it, as far as that can be told.
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
        lay_out(&kernel.body, None, &mut spots);
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
            return format!(
                "make two of the `if`{}, one for each side, and put {} between them",
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
            "if" => format!(
                "end the `if`{line} between them, put {statement} there, where all threads of the \
                 threadgroup come, and begin it again behind"
            ),
            _ => format!(
                "let all threads of the threadgroup run the rounds of the loop{line} together, with \
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
                format!("make the update one `{atomic}`, or give each thread a location of its own")
            }
            None => {
                "no atomic makes this update: give each thread a location of its own, and let one \
                     thread put them together behind a barrier, or in another dispatch"
                    .to_string()
            }
        })
    }
}

fn lay_out(region: &Region, parent: Option<(u32, usize)>, spots: &mut Vec<Spot>) {
    for inst in &region.insts {
        let number = spots.len() as u32;
        spots.push(Spot {
            parent,
            span: inst.span,
            name: inst.kind.name(),
        });
        for (i, inner) in inst.kind.regions().into_iter().enumerate() {
            lay_out(inner, Some((number, i)), spots);
        }
    }
}

/// The loads of one place in every round of a loop without a count that decide whether it is left.
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
    let mut definitions: HashMap<Value, (u32, &Inst)> = HashMap::new();
    let mut found = HashMap::new();
    let mut number = 0;
    kernel.for_each_inst(&mut |inst| {
        for result in &inst.results {
            definitions.insert(*result, (number, inst));
        }
        if let InstKind::Store { place, value } = &inst.kind {
            if let Some((load, op, with)) = update(kernel, &definitions, place, *value) {
                let source = inst
                    .span
                    .source
                    .and_then(|s| module.sources.get(s.0 as usize));
                let operand = || operand(kernel, with);
                let text = source.and_then(|s| spell(s, inst.span, op, operand));
                let text = Some(text.unwrap_or_else(|| op.name().to_string()));
                found.insert(number, Update { load, text });
            } else if let Some(load) = changed_load(&definitions, place, *value, DEEPEST) {
                found.insert(number, Update { load, text: None });
            }
        }
        number += 1;
    });
    found
}

/// How many operations may lie between the load of an update and its store.
const DEEPEST: u32 = 4;

/// The load of the same place that a value is computed from.
fn changed_load(
    definitions: &HashMap<Value, (u32, &Inst)>,
    place: &Place,
    value: Value,
    depth: u32,
) -> Option<u32> {
    let (number, inst) = definitions.get(&value)?;
    match &inst.kind {
        InstKind::Load(from) => same_place(definitions, from, place).then_some(*number),
        InstKind::Op { args, .. } if depth > 0 => {
            let load = |v: &Value| changed_load(definitions, place, *v, depth - 1);
            args.iter().find_map(load)
        }
        _ => None,
    }
}

/// The load, the atomic and the other operand, if the value is made of what the place holds.
fn update(
    kernel: &Kernel,
    definitions: &HashMap<Value, (u32, &Inst)>,
    place: &Place,
    value: Value,
) -> Option<(u32, AtomicOp, Value)> {
    let (_, inst) = definitions.get(&value)?;
    let InstKind::Op { op, args, .. } = &inst.kind else {
        return None;
    };
    let Type::Scalar(scalar) = kernel.ty(value) else {
        return None;
    };
    let float = scalar == Scalar::F32;
    if !float && !matches!(scalar, Scalar::I32 | Scalar::U32) {
        return None;
    }
    let (atomic, either) = match op {
        Op::Add => (AtomicOp::Add, true),
        Op::Sub if !float => (AtomicOp::Sub, false),
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
        let (number, inst) = definitions.get(&v)?;
        let InstKind::Load(from) = &inst.kind else {
            return None;
        };
        same_place(definitions, from, place).then_some(*number)
    };
    match (loads(x), loads(y)) {
        (Some(load), _) => Some((load, atomic, y)),
        (None, Some(load)) if either => Some((load, atomic, x)),
        (None, _) => None,
    }
}

fn same_place(definitions: &HashMap<Value, (u32, &Inst)>, a: &Place, b: &Place) -> bool {
    a.memory == b.memory
        && a.width == b.width
        && a.path == b.path
        && same_value(definitions, a.index, b.index, 4)
}

/// Whether two values are surely equal: computed alike, to some depth.
fn same_value(definitions: &HashMap<Value, (u32, &Inst)>, a: Value, b: Value, depth: u32) -> bool {
    if a == b {
        return true;
    }
    let (Some((_, x)), Some((_, y))) = (definitions.get(&a), definitions.get(&b)) else {
        return false;
    };
    if let (InstKind::Const(x), InstKind::Const(y)) = (&x.kind, &y.kind) {
        return x == y;
    }
    let (
        InstKind::Op { op, imm, args },
        InstKind::Op {
            op: o,
            imm: i,
            args: others,
        },
    ) = (&x.kind, &y.kind)
    else {
        return false;
    };
    let mut pairs = args.iter().zip(others);
    depth > 0
        && (op, imm, args.len()) == (o, i, others.len())
        && pairs.all(|(a, b)| same_value(definitions, *a, *b, depth - 1))
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
    op: AtomicOp,
    operand: impl Fn() -> Option<String>,
) -> Option<String> {
    let line = source.line(span.start.line)?;
    let from = (span.start.column as usize).checked_sub(1)?;
    let rest = line.chars().skip(from);
    let statement: String = rest.take_while(|c| *c != ';').collect();
    if let Some(rest) = statement.strip_prefix("store ") {
        let (place, _) = rest.split_once(", ")?;
        return Some(format!("{} {place}, {}", op.name(), operand()?));
    }
    let (place, operand) = assignment(&statement)?;
    Some(format!("{} {place}, {operand}", op.name()))
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
