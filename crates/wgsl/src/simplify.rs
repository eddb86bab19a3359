//! What the translation leaves behind is made short: values that `if`s and loops hand on and nothing
//! uses, or that are what they were before, are taken out, and loops that count become `for`.
//!
//! A kernel must be as uniform as one written by hand: what a loop hands from iteration to iteration differs
//! between threads that leave it in different iterations, so what it need not hand on, it must not.
//! Loads stay, even if what they read is not used: the checkers do.

use std::collections::{HashMap, HashSet};

use invar_ir::{
    Access, AddressSpace, Const, Inst, InstKind, Kernel, Memory, Module, Op, Region, Scalar, Type,
    Value, ValueInfo, Values,
};
use smallvec::SmallVec;

/// A kernel of a front end without what loops and branches need not hand on, and with the loops that count
/// as such; its values are numbered anew.
pub fn simplified(module: &Module, mut kernel: Kernel) -> Kernel {
    // Each iteration can make more the same; what is left after many is left.
    for _ in 0..16 {
        let mut same = Same {
            values: (0..kernel.values.len() as u32).map(Value).collect(),
            changed: false,
        };
        same.region(&kernel.body, None);
        if same.changed {
            let find = |v: &mut Value| *v = same.find(*v);
            replace(&mut kernel.body, &find);
        }
        let swept = sweep(&mut kernel);
        if !same.changed && !swept {
            break;
        }
    }
    let mut constants = HashMap::new();
    kernel.for_each_inst(&mut |inst| {
        if let (InstKind::Const(c), Some(value)) = (&inst.kind, inst.results.first()) {
            constants.insert(*value, signed(*c));
        }
    });
    let mut counting = Counting {
        module,
        used: used(&kernel),
        constants,
        kernel: &mut kernel,
    };
    let mut body = std::mem::take(&mut counting.kernel.body);
    counting.region(&mut body);
    kernel.body = body;
    // What a `for` computed that nothing needs goes with it.
    for _ in 0..16 {
        if !sweep(&mut kernel) {
            break;
        }
    }
    kernel.renumber();
    kernel
}

fn replace(region: &mut Region, find: &impl Fn(&mut Value)) {
    for inst in &mut region.insts {
        inst.kind.for_each_use_mut(find);
        for inner in inst.kind.regions_mut() {
            replace(inner, find);
        }
    }
}

// ---- values that are the same ----

struct Same {
    /// What each value is.
    values: Vec<Value>,
    changed: bool,
}

/// What goes into what a loop hands on.
#[derive(Default)]
struct Ways {
    next: Vec<Values>,
    out: Vec<Values>,
}

impl Same {
    fn find(&self, mut value: Value) -> Value {
        while self.values[value.0 as usize] != value {
            value = self.values[value.0 as usize];
        }
        value
    }

    fn join(&mut self, value: Value, other: Value) {
        let other = self.find(other);
        if self.find(value) == value && other != value {
            self.values[value.0 as usize] = other;
            self.changed = true;
        }
    }

    /// Looks through a region. `around` collects what the innermost loop around it hands on.
    fn region(&mut self, region: &Region, mut around: Option<&mut Ways>) {
        for inst in &region.insts {
            match &inst.kind {
                InstKind::If {
                    then, otherwise, ..
                } => {
                    self.region(then, around.as_deref_mut());
                    self.region(otherwise, around.as_deref_mut());
                    if let (Some(yes), Some(no)) = (given(then), given(otherwise)) {
                        for ((result, yes), no) in inst.results.iter().zip(yes).zip(no) {
                            // What both sides can see is from outside.
                            if self.find(*yes) == self.find(*no) {
                                self.join(*result, *yes);
                            }
                        }
                    }
                }
                InstKind::Loop { init, body } => {
                    let mut ways = Ways::default();
                    self.region(body, Some(&mut ways));
                    ways.next.extend(given(body).cloned());
                    self.carried(inst, init, &body.params, &ways, true);
                }
                InstKind::For { init, body, .. } => {
                    let mut ways = Ways::default();
                    self.region(body, Some(&mut ways));
                    ways.next.extend(given(body).cloned());
                    self.carried(inst, init, &body.params[1..], &ways, false);
                }
                InstKind::Break(values) => {
                    if let Some(ways) = around.as_deref_mut() {
                        ways.out.push(values.clone());
                    }
                }
                InstKind::Continue(values) => {
                    if let Some(ways) = around.as_deref_mut() {
                        ways.next.push(values.clone());
                    }
                }
                _hands_nothing_on => {}
            }
        }
    }

    fn carried(
        &mut self,
        inst: &Inst,
        init: &Values,
        params: &[Value],
        ways: &Ways,
        is_loop: bool,
    ) {
        for (i, (param, first)) in params.iter().zip(init).enumerate() {
            let kept = |s: &Same, values: &Values| {
                values
                    .get(i)
                    .is_some_and(|v| [s.find(*param), s.find(*first)].contains(&s.find(*v)))
            };
            if !ways.next.iter().all(|values| kept(self, values)) {
                continue;
            }
            self.join(*param, *first);
            // A loop ends by `break` only; a `for` also by itself.
            let has_way_out = !is_loop || !ways.out.is_empty();
            if has_way_out
                && ways.out.iter().all(|values| kept(self, values))
                && let Some(result) = inst.results.get(i)
            {
                self.join(*result, *first);
            }
        }
    }
}

/// What a region gives at its end.
fn given(region: &Region) -> Option<&Values> {
    match &region.insts.last()?.kind {
        InstKind::Yield(values) => Some(values),
        _ends_otherwise => None,
    }
}

// ---- what is not needed ----

/// What is needed for what.
struct Needs {
    /// By value, what it is made of.
    of: Vec<SmallVec<[Value; 4]>>,
    /// What is needed in any case.
    roots: Vec<Value>,
}

/// Takes out what computes a value that nothing needs; whether anything was.
fn sweep(kernel: &mut Kernel) -> bool {
    let mut needs = Needs {
        of: vec![SmallVec::new(); kernel.values.len()],
        roots: Vec::new(),
    };
    let arrays = Arrays::new(kernel);
    needs.region(&arrays, &kernel.body, None);
    let mut live = vec![false; kernel.values.len()];
    let mut left = needs.roots;
    while let Some(value) = left.pop() {
        let at = value.0 as usize;
        if !live[at] {
            live[at] = true;
            left.extend(needs.of[at].iter().copied());
        }
    }
    let mut body = std::mem::take(&mut kernel.body);
    let mut sweeping = Sweep {
        live,
        arrays,
        changed: false,
    };
    sweeping.region(&mut body, &[]);
    kernel.body = body;
    sweeping.changed
}

fn uses_of_arrays(region: &Region, named: &mut [bool]) {
    for inst in &region.insts {
        if !matches!(inst.kind, InstKind::Alloc(_)) {
            inst.kind.for_each_memory(|memory| {
                if let Memory::Alloc(id) = memory {
                    named[id as usize] = true;
                }
            });
        }
        for inner in inst.kind.regions() {
            uses_of_arrays(inner, named);
        }
    }
}

/// The arrays of a kernel.
struct Arrays {
    /// By array, whether it is in thread memory.
    thread: Vec<bool>,
    /// By array, whether something accesses it.
    named: Vec<bool>,
}

impl Arrays {
    fn new(kernel: &Kernel) -> Arrays {
        let spaces = kernel.allocs.iter().map(|a| a.space);
        let mut named = vec![false; kernel.allocs.len()];
        uses_of_arrays(&kernel.body, &mut named);
        Arrays {
            thread: spaces.map(|s| s == AddressSpace::Thread).collect(),
            named,
        }
    }
}

/// Whether leaving out an instruction without regions can be told only by its results.
fn is_idle(arrays: &Arrays, kind: &InstKind) -> bool {
    match kind {
        InstKind::Load(place) => match place.memory {
            Memory::Alloc(id) => arrays.thread[id as usize],
            Memory::Constant(_) => true,
            Memory::Param(_) => false,
        },
        InstKind::Alloc(_) => true,
        // Checks look at it.
        InstKind::Op {
            op: Op::ShrExact, ..
        } => false,
        other => !other.has_regions() && !other.is_terminator() && other.is_removable(),
    }
}

/// Whether a region does anything but compute. One that does not, and of which nothing is needed, is swept out.
fn acts(arrays: &Arrays, region: &Region) -> bool {
    region.insts.iter().any(|inst| match &inst.kind {
        InstKind::Yield(_) => false,
        InstKind::If {
            then, otherwise, ..
        } => acts(arrays, then) || acts(arrays, otherwise),
        // A loop may be one that never ends.
        InstKind::Loop { .. } => true,
        InstKind::For { body, .. } => acts(arrays, body),
        InstKind::Alloc(id) => arrays.named[*id as usize],
        other => !is_idle(arrays, other),
    })
}

impl Needs {
    /// `around` is what the innermost loop hands on: its parameters.
    fn region(&mut self, arrays: &Arrays, region: &Region, around: Option<&[Value]>) {
        for inst in &region.insts {
            match &inst.kind {
                InstKind::If {
                    condition,
                    then,
                    otherwise,
                } => {
                    if acts(arrays, then) || acts(arrays, otherwise) {
                        self.roots.push(*condition);
                    }
                    for (i, result) in inst.results.iter().enumerate() {
                        let mut needed: SmallVec<[Value; 4]> = SmallVec::new();
                        needed.push(*condition);
                        for side in [then, otherwise] {
                            needed.extend(given(side).and_then(|v| v.get(i)).copied());
                        }
                        self.of[result.0 as usize].extend(needed);
                    }
                    self.region(arrays, then, around);
                    self.region(arrays, otherwise, around);
                }
                InstKind::Loop { init, body } => {
                    self.carried(&inst.results, init, &body.params);
                    self.region(arrays, body, Some(&body.params));
                    self.handed_on(given(body), &body.params);
                }
                InstKind::For {
                    lower,
                    upper,
                    step,
                    init,
                    body,
                } => {
                    let bounds = [*lower, *upper, *step];
                    if acts(arrays, body) {
                        self.roots.extend(bounds);
                    }
                    for result in &inst.results {
                        self.of[result.0 as usize].extend(bounds);
                    }
                    self.carried(&inst.results, init, &body.params[1..]);
                    self.region(arrays, body, Some(&body.params[1..]));
                    self.handed_on(given(body), &body.params[1..]);
                }
                InstKind::Break(values) | InstKind::Continue(values) => {
                    self.handed_on(Some(values), around.unwrap_or_default());
                }
                InstKind::Yield(_) => {}
                kind if is_idle(arrays, kind) => {
                    let mut needed: SmallVec<[Value; 4]> = SmallVec::new();
                    kind.for_each_use(|v| needed.push(v));
                    for result in &inst.results {
                        self.of[result.0 as usize].extend(needed.iter().copied());
                    }
                }
                kind => kind.for_each_use(|v| self.roots.push(v)),
            }
        }
    }

    /// A parameter and the result of a loop need each other, and what comes first.
    fn carried(&mut self, results: &[Value], init: &Values, params: &[Value]) {
        for (i, param) in params.iter().enumerate() {
            if let Some(first) = init.get(i) {
                self.of[param.0 as usize].push(*first);
            }
            if let Some(result) = results.get(i) {
                self.of[param.0 as usize].push(*result);
                self.of[result.0 as usize].push(*param);
            }
        }
    }

    fn handed_on(&mut self, values: Option<&Values>, params: &[Value]) {
        for (value, param) in values.into_iter().flatten().zip(params) {
            self.of[param.0 as usize].push(*value);
        }
    }
}

struct Sweep {
    live: Vec<bool>,
    arrays: Arrays,
    changed: bool,
}

/// Those of a list that belong to what is kept.
fn keep<L: FromIterator<Value>>(list: &[Value], kept: &[bool]) -> L {
    let both = list.iter().zip(kept);
    both.filter_map(|(value, kept)| kept.then_some(*value))
        .collect()
}

impl Sweep {
    fn live_ones(&mut self, values: &[Value]) -> Vec<bool> {
        let kept: Vec<bool> = values.iter().map(|v| self.live[v.0 as usize]).collect();
        self.changed |= kept.contains(&false);
        kept
    }

    /// `around` says which of what the innermost loop hands on is kept.
    fn region(&mut self, region: &mut Region, around: &[bool]) {
        let mut stays = Vec::with_capacity(region.insts.len());
        for mut inst in std::mem::take(&mut region.insts) {
            if self.inst(&mut inst, around) {
                stays.push(inst);
            } else {
                self.changed = true;
            }
        }
        region.insts = stays;
    }

    /// Whether an instruction stays.
    fn inst(&mut self, inst: &mut Inst, around: &[bool]) -> bool {
        match &mut inst.kind {
            InstKind::If {
                then, otherwise, ..
            } => {
                let kept = self.live_ones(&inst.results);
                inst.results = keep(&inst.results, &kept);
                for side in [&mut *then, &mut *otherwise] {
                    self.region(side, around);
                    trim(side, &kept);
                }
                !(inst.results.is_empty() && is_empty(then) && is_empty(otherwise))
            }
            InstKind::Loop { init, body } => {
                let kept = self.live_ones(&body.params);
                *init = keep(init, &kept);
                body.params = keep(&body.params, &kept);
                inst.results = keep(&inst.results, &kept);
                self.region(body, &kept);
                trim(body, &kept);
                true
            }
            InstKind::For { init, body, .. } => {
                let kept = self.live_ones(&body.params[1..]);
                *init = keep(init, &kept);
                let mut params = vec![body.params[0]];
                params.extend(keep::<Vec<Value>>(&body.params[1..], &kept));
                body.params = params;
                inst.results = keep(&inst.results, &kept);
                self.region(body, &kept);
                trim(body, &kept);
                !(inst.results.is_empty() && is_empty(body))
            }
            InstKind::Break(values) | InstKind::Continue(values) => {
                *values = keep(values, around);
                true
            }
            InstKind::Alloc(id) => self.arrays.named[*id as usize],
            kind => {
                let dead = inst.results.iter().all(|r| !self.live[r.0 as usize]);
                !(dead && is_idle(&self.arrays, kind))
            }
        }
    }
}

fn trim(region: &mut Region, kept: &[bool]) {
    if let Some(last) = region.insts.last_mut()
        && let InstKind::Yield(values) = &mut last.kind
    {
        *values = keep(values, kept);
    }
}

/// Whether a region does nothing and gives nothing.
fn is_empty(region: &Region) -> bool {
    region.insts.len() == 1 && given(region).is_some_and(|values| values.is_empty())
}

// ---- loops that count ----

struct Counting<'a> {
    module: &'a Module,
    kernel: &'a mut Kernel,
    /// By value, whether something uses it.
    used: Vec<bool>,
    /// The constants of integers of 32 bits.
    constants: HashMap<Value, i64>,
}

/// How a loop counts.
struct Count {
    /// The number among what it carries.
    slot: usize,
    /// Where the `if` stands that ends it.
    end: usize,
    upper: Bound,
    step: i64,
}

enum Bound {
    Value(Value),
    Constant(i64),
}

fn used(kernel: &Kernel) -> Vec<bool> {
    let mut used = vec![false; kernel.values.len()];
    kernel.for_each_inst(&mut |inst| inst.kind.for_each_use(|v| used[v.0 as usize] = true));
    used
}

impl Counting<'_> {
    fn region(&mut self, region: &mut Region) {
        let mut out = Vec::with_capacity(region.insts.len());
        for mut inst in std::mem::take(&mut region.insts) {
            for inner in inst.kind.regions_mut() {
                self.region(inner);
            }
            if let InstKind::Loop { init, body } = &mut inst.kind {
                hoist(self.module, self.kernel, body, &mut out);
                if let Some(count) = self.count(&inst.results, body) {
                    let (init, body) = (std::mem::take(init), std::mem::take(body));
                    let inst = self.counted(&count, init, body, inst, &mut out);
                    out.push(inst);
                    continue;
                }
            }
            out.push(inst);
        }
        region.insts = out;
    }

    fn constant(&self, value: Value) -> Option<i64> {
        self.constants.get(&value).copied()
    }

    /// How a loop counts, if it does: it is left by a first `if` when a number is not below a bound
    /// that stays, and the number grows by a constant at the end of each iteration.
    fn count(&self, results: &[Value], body: &Region) -> Option<Count> {
        let end = body
            .insts
            .iter()
            .position(|inst| matches!(inst.kind, InstKind::If { .. }))?;
        let idle = |inst: &Inst| matches!(inst.kind, InstKind::Const(_) | InstKind::Op { .. });
        if !body.insts[..end].iter().all(idle) {
            return None;
        }
        let InstKind::If {
            condition,
            then,
            otherwise,
        } = &body.insts[end].kind
        else {
            return None;
        };
        // `if goes_on { } else { break }`, or `if ends { break } else { }`.
        let (left, negated) = match (is_empty(then), is_empty(otherwise)) {
            (true, false) => (otherwise, false),
            (false, true) => (then, true),
            (true, true) | (false, false) => return None,
        };
        let (last, before) = left.insts.split_last()?;
        let InstKind::Break(out) = &last.kind else {
            return None;
        };
        if !before.iter().all(|i| matches!(i.kind, InstKind::Const(_))) {
            return None;
        }
        let next = given(body)?;
        if body.exits().continues {
            return None;
        }
        let compare = defined(&body.insts[..end], *condition)?;
        let (mut op, _, args) = compare.kind.as_op()?;
        let (mut a, mut b) = (*args.first()?, *args.get(1)?);
        if !body.params.contains(&a) {
            (a, b) = (b, a);
            op = mirrored(op)?;
        }
        if negated {
            op = opposite(op)?;
        }
        let slot = body.params.iter().position(|p| *p == a)?;
        let scalar = match self.kernel.ty(a) {
            Type::Scalar(s @ (Scalar::U32 | Scalar::I32)) => s,
            _another => return None,
        };
        // What it hands on when it ends is what the iteration began with; the number itself is not used.
        if results.get(slot).is_some_and(|r| self.used[r.0 as usize]) {
            return None;
        }
        for (i, param) in body.params.iter().enumerate() {
            let needed = results.get(i).is_some_and(|r| self.used[r.0 as usize]);
            if i != slot && needed && out.get(i) != Some(param) {
                return None;
            }
        }
        let step = self.step(body, a, *next.get(slot)?)?;
        let bound = self.constant(b);
        if bound.is_none() && is_inside(body, b) {
            return None;
        }
        let (least, most) = match scalar {
            Scalar::U32 => (0, i64::from(u32::MAX)),
            _signed => (i64::from(i32::MIN), i64::from(i32::MAX)),
        };
        let upper = match (op, bound) {
            // The number must not wrap before it reaches the bound.
            (Op::Lt, Some(n)) if step > 0 && n + step - 1 <= most => Bound::Constant(n),
            (Op::Lt, None) if step == 1 => Bound::Value(b),
            (Op::Le, Some(n)) if step > 0 && n + step <= most => Bound::Constant(n + 1),
            (Op::Gt, Some(n)) if step < 0 && n + step + 1 >= least => Bound::Constant(n),
            (Op::Gt, None) if step == -1 => Bound::Value(b),
            (Op::Ge, Some(n)) if step < 0 && n + step >= least && n > least => {
                Bound::Constant(n - 1)
            }
            _may_wrap => return None,
        };
        Some(Count {
            slot,
            end,
            upper,
            step,
        })
    }

    /// By how much a number grows: `next` is `number + constant` or `number - constant`.
    fn step(&self, body: &Region, number: Value, next: Value) -> Option<i64> {
        let inst = defined(&body.insts, next)?;
        let (op, _, args) = inst.kind.as_op()?;
        let (a, b) = (*args.first()?, *args.get(1)?);
        let word = |n: i64| i64::from(n as i32);
        match op {
            Op::Add if a == number => Some(word(self.constant(b)?)),
            Op::Add if b == number => Some(word(self.constant(a)?)),
            Op::Sub if a == number => Some(word(self.constant(b)?).checked_neg()?),
            _another => None,
        }
        .filter(|step| *step != 0 && step.unsigned_abs() < 1 << 30)
    }

    fn number(&mut self, scalar: Scalar, number: i64, out: &mut Vec<Inst>, like: &Inst) -> Value {
        self.kernel.values.push(ValueInfo {
            ty: Type::Scalar(scalar),
            name: None,
        });
        self.used.push(true);
        let value = Value(self.kernel.values.len() as u32 - 1);
        let bits = u64::from(number as u32);
        out.push(Inst {
            kind: InstKind::Const(Const { scalar, bits }),
            results: SmallVec::from_iter([value]),
            span: like.span,
        });
        value
    }

    /// The loop as a `for`.
    fn counted(
        &mut self,
        count: &Count,
        mut init: Values,
        mut body: Region,
        mut inst: Inst,
        out: &mut Vec<Inst>,
    ) -> Inst {
        let lower = init.remove(count.slot);
        let Type::Scalar(scalar) = self.kernel.ty(lower) else {
            return inst;
        };
        let upper = match count.upper {
            Bound::Value(value) => value,
            Bound::Constant(n) => self.number(scalar, n, out, &inst),
        };
        let of_step = if count.step < 0 { Scalar::I32 } else { scalar };
        let step = self.number(of_step, count.step, out, &inst);
        let index = body.params.remove(count.slot);
        body.params.insert(0, index);
        body.insts.remove(count.end);
        if let Some(last) = body.insts.last_mut()
            && let InstKind::Yield(values) = &mut last.kind
        {
            values.remove(count.slot);
        }
        without_slot(&mut body, count.slot);
        inst.results.remove(count.slot);
        inst.kind = InstKind::For {
            lower,
            upper,
            step,
            init,
            body,
        };
        inst
    }
}

/// Moves what a loop computes anew in each iteration, in front of the `if` that ends it and of nothing
/// that changes, out of it: it is computed at least once.
fn hoist(module: &Module, kernel: &Kernel, body: &mut Region, out: &mut Vec<Inst>) {
    let Some(end) = body
        .insts
        .iter()
        .position(|inst| matches!(inst.kind, InstKind::If { .. }))
    else {
        return;
    };
    let still = |inst: &Inst| match &inst.kind {
        InstKind::Const(_) | InstKind::FunctionConstant(_) | InstKind::BufferLength(_) => true,
        InstKind::Op { op, .. } => !op.exchanges_lanes(),
        InstKind::Load(place) => module
            .memory(kernel, place.memory)
            .is_some_and(|info| info.access == Access::Read),
        _another => false,
    };
    if !body.insts[..end].iter().all(still) {
        return;
    }
    let mut varying: HashSet<Value> = body.params.iter().copied().collect();
    let mut stays = Vec::with_capacity(body.insts.len());
    for (at, inst) in std::mem::take(&mut body.insts).into_iter().enumerate() {
        let mut depends = at >= end;
        inst.kind.for_each_use(|v| depends |= varying.contains(&v));
        if !depends {
            out.push(inst);
            continue;
        }
        varying.extend(inst.results.iter().copied());
        stays.push(inst);
    }
    body.insts = stays;
}

fn defined(insts: &[Inst], value: Value) -> Option<&Inst> {
    insts.iter().find(|inst| inst.results.contains(&value))
}

/// Whether a value is defined in a loop's body, outside of the regions in it.
fn is_inside(body: &Region, value: Value) -> bool {
    body.params.contains(&value) || defined(&body.insts, value).is_some()
}

fn signed(constant: Const) -> i64 {
    match constant.scalar {
        Scalar::I32 => i64::from(constant.bits as u32 as i32),
        _unsigned => i64::from(constant.bits as u32),
    }
}

/// The comparison with its operands exchanged.
fn mirrored(op: Op) -> Option<Op> {
    Some(match op {
        Op::Lt => Op::Gt,
        Op::Le => Op::Ge,
        Op::Gt => Op::Lt,
        Op::Ge => Op::Le,
        _another => return None,
    })
}

/// The comparison of integers that holds where this one does not.
fn opposite(op: Op) -> Option<Op> {
    Some(match op {
        Op::Lt => Op::Ge,
        Op::Le => Op::Gt,
        Op::Gt => Op::Le,
        Op::Ge => Op::Lt,
        _another => return None,
    })
}

/// Takes a value out of what a loop's `break`s hand on.
fn without_slot(region: &mut Region, slot: usize) {
    for inst in &mut region.insts {
        match &mut inst.kind {
            InstKind::Break(values) => {
                values.remove(slot);
            }
            InstKind::If {
                then, otherwise, ..
            } => {
                without_slot(then, slot);
                without_slot(otherwise, slot);
            }
            _hands_nothing_on => {}
        }
    }
}
