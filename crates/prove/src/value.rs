//! The values of a kernel's threads as integers of a [`Query`].
//!
//! A value is what it is mathematically where it is shown not to wrap under the conditions of the access
//! that uses it, else `form - 2^w * q` with a bounded `q`: exact, too. What has no form here is any number
//! of its type. A value that is uniform (X4) is one variable for both threads, in the same iteration of the
//! same loops.

use invar_ir::{Imm, InstKind, Memory, Op, Scalar, TextureFunction, Type, Value};

use crate::linear::{Formula, Linear, within};
use crate::query::{Int, Query};
use crate::shape::{Definition, Id, Iteration};
use crate::subject::{Invariant, Subject};
use crate::thread::{Thread, Val, range};

/// Values.
impl Subject<'_> {
    /// What a value is for a thread.
    pub fn of(&self, q: &mut Query, t: &mut Thread, value: Value) -> Option<Val> {
        // A scalar has no components, whichever of a vector is asked for.
        let lane = t.lane.filter(|_| self.parts(value).is_some());
        let slot = (value, lane);
        if let Some(known) = t.memo.get(&slot) {
            return known.clone();
        }
        let around = std::mem::replace(&mut t.lane, lane);
        let is_new = t.busy.insert(slot);
        let found = is_new.then(|| self.compute(q, t, value)).flatten();
        let found = found.or_else(|| self.anything(q, t, value));
        t.lane = around;
        if is_new {
            t.busy.remove(&slot);
            t.memo.insert(slot, found.clone());
        }
        found
    }

    /// As [`Subject::of`], of an integer.
    pub fn int(&self, q: &mut Query, t: &mut Thread, value: Value) -> Option<Int> {
        match self.of(q, t, value) {
            Some(Val::Int(int)) => Some(int),
            Some(Val::Bool(_)) | None => None,
        }
    }

    /// As [`Subject::of`], of a truth value.
    pub fn truth_of(&self, q: &mut Query, t: &mut Thread, value: Value) -> Formula {
        match self.of(q, t, value) {
            Some(Val::Bool(formula)) => formula,
            Some(Val::Int(_)) | None => {
                let key = self.key(q, t, value, " unknown");
                self.truth(q, &key)
            }
        }
    }

    fn compute(&self, q: &mut Query, t: &mut Thread, value: Value) -> Option<Val> {
        match self.shape.definition(value)? {
            Definition::Parameter(number) => {
                let name = &self.kernel.params[number].name;
                match self.kernel.ty(value) {
                    Type::Scalar(scalar) if scalar.is_integer() => {
                        let (low, high) = range(scalar);
                        Some(Val::Int(q.symbol(&format!("%{name}"), low, high)))
                    }
                    _another => None,
                }
            }
            Definition::Counter(id) => self.counter(q, t, id).map(Val::Int),
            Definition::Carried(id, number) => self.carried(q, t, id, number, value),
            Definition::Result(id, number) => self.result(q, t, id, number, value),
        }
    }

    pub fn result(
        &self,
        q: &mut Query,
        t: &mut Thread,
        id: Id,
        number: usize,
        value: Value,
    ) -> Option<Val> {
        match self.shape.kind(id) {
            InstKind::Const(constant) => match constant.scalar {
                Scalar::Bool if constant.bits == 0 => Some(Val::Bool(Formula::FALSE)),
                Scalar::Bool => Some(Val::Bool(Formula::TRUE)),
                scalar if scalar.is_integer() => {
                    Some(Val::Int(Int::constant(scalar.integer(constant.bits))))
                }
                _float => None,
            },
            InstKind::FunctionConstant(number) => {
                let constant = &self.module.function_constants[*number as usize];
                if !constant.scalar.is_integer() {
                    return None;
                }
                let (low, high) = range(constant.scalar);
                Some(Val::Int(q.symbol(
                    &format!("@{}", constant.name),
                    low,
                    high,
                )))
            }
            InstKind::Op { op, imm, args } => self.operation(q, t, value, (*op, *imm, args)),
            InstKind::BufferLength(memory) => Some(Val::Int(self.length(q, *memory))),
            InstKind::Texture {
                texture,
                function,
                args,
            } => {
                let number = self.texture_number(q, t, (*texture, *function), args);
                number.map(Val::Int)
            }
            InstKind::Load(place) => {
                let part = (self.kernel.ty(value), t.lane.map(i128::from));
                self.loaded(q, t, place, part).map(Val::Int)
            }
            InstKind::If { condition, .. } => {
                let yielded = |side: usize| -> Option<Value> {
                    let last = *self.shape.region(Some(id), side).last()?;
                    match self.shape.kind(last) {
                        InstKind::Yield(values) => values.get(number).copied(),
                        _leaves => None,
                    }
                };
                match (yielded(0), yielded(1)) {
                    (Some(then), Some(otherwise)) => {
                        let condition = self.truth_of(q, t, *condition);
                        let (a, b) = (self.of(q, t, then)?, self.of(q, t, otherwise)?);
                        self.choice(q, t, value, condition, a, b)
                    }
                    // The other side leaves.
                    (Some(only), None) | (None, Some(only)) => self.of(q, t, only),
                    (None, None) => None,
                }
            }
            InstKind::For { .. } | InstKind::Loop { .. } => self.left_by(q, t, id, number, value),
            // Nothing is known of what others give; of `assert_uniform`, which thread's value it is is not specified (X5).
            _other => None,
        }
    }

    /// The index of a `for`: lower + step * iteration, on its side of the upper bound.
    fn counter(&self, q: &mut Query, t: &mut Thread, id: Id) -> Option<Int> {
        let InstKind::For {
            lower, upper, step, ..
        } = self.shape.kind(id)
        else {
            return None;
        };
        let scalar = self.kernel.ty(*lower).scalar()?;
        let (least, most) = range(scalar);
        let iteration = self.iteration(q, t, id)?;
        let (a, b) = (self.int(q, t, *lower)?, self.int(q, t, *upper)?);
        let c = self.int(q, t, *step)?;
        let form = q.product(&c.form, &iteration.form)?.plus(1, &a.form)?;
        let around = self.iterations_key(t, &self.shape.loops_around(id));
        let own = t.iterations.get(&id).copied().unwrap_or(Iteration::Any);
        let key = format!("thread{} index of {id} {own:?}{around}", t.tag);
        let rises = Formula::all([
            Formula::at_least(c.form.shifted(-1)?),
            Formula::lt(&form, &b.form)?,
            Formula::le(&a.form, &form)?,
        ]);
        let falls = Formula::all([
            Formula::at_least(c.form.times(-1)?.shifted(-1)?),
            Formula::lt(&b.form, &form)?,
            Formula::le(&form, &a.form)?,
        ]);
        if q.first_time(&key) {
            let fact = if c.low >= 0 {
                rises
            } else {
                Formula::any([rises, falls])
            };
            q.say(Some(fact));
        }
        let (low, high) = if c.low >= 0 {
            (a.low, a.low.max(b.high - 1))
        } else {
            (least, most)
        };
        Some(Int { form, low, high })
    }

    pub fn carried(
        &self,
        q: &mut Query,
        t: &mut Thread,
        id: Id,
        number: usize,
        value: Value,
    ) -> Option<Val> {
        let iteration = t.iterations.get(&id).copied().unwrap_or(Iteration::Any);
        let init = *self.shape.initial(id).get(number)?;
        let again = self.shape.exits(id, true);
        if let Some(number) = self.in_numbered_iterations(&t.iterations).get(&value) {
            return Some(Val::Int(Int::constant(*number)));
        }
        if matches!(iteration, Iteration::First | Iteration::Numbered(0)) {
            return self.of(q, t, init);
        }
        if iteration == Iteration::Next
            && let [(_, values)] = again[..]
            && self.shape.has_barrier(id)
            && self.steps_by(id, number).is_none()
        {
            let mut before = Thread::new(t.tag, t.iterations.clone());
            before.iterations.insert(id, Iteration::Same);
            before.lane = t.lane;
            if let Some(value) = self.of(q, &mut before, *values.get(number)?) {
                return Some(value);
            }
        }
        let any = self.anything(q, t, value)?;
        let Val::Int(mut int) = any else {
            return Some(any);
        };
        if let Some(values) = self.table(id, number) {
            self.say_row(q, t, id)?;
            int.low = int.low.max(*values.first()?);
            int.high = int.high.min(*values.last()?);
            return Some(Val::Int(int));
        }
        let start = self.int(q, t, init)?;
        // What counts is written as the index of a `for` is, so that all that is known of those holds of it.
        if let Some(step) = self.steps_by(id, number) {
            let iteration = self.iteration(q, t, id)?;
            int.form = start.form.plus(step, &iteration.form)?;
            let key = format!("{:?} in its type", int.form);
            if q.first_time(&key) {
                q.say(Formula::le(&Linear::constant(int.low), &int.form));
                q.say(Formula::le(&int.form, &Linear::constant(int.high)));
            }
        }
        for invariant in self.invariants_now(id, number) {
            let key = format!("{:?} {invariant:?} {:?}", int.form, start.form);
            let fact = match invariant {
                Invariant::NotBelow => {
                    int.low = int.low.max(start.low);
                    Formula::le(&start.form, &int.form)
                }
                Invariant::NotAbove => {
                    int.high = int.high.min(start.high);
                    Formula::le(&int.form, &start.form)
                }
                Invariant::Below(end) => {
                    let end = self.int(q, t, end)?;
                    int.high = int.high.min(end.high - 1);
                    Formula::lt(&int.form, &end.form)
                }
                Invariant::AtMost(end) => {
                    let end = self.int(q, t, end)?;
                    int.high = int.high.min(end.high);
                    Formula::le(&int.form, &end.form)
                }
                Invariant::Step(step) => {
                    let iteration = self.iteration(q, t, id)?;
                    let form = start.form.plus(step, &iteration.form);
                    form.and_then(|form| Formula::eq(&int.form, &form))
                }
                Invariant::Stride(stride) => {
                    let (iteration, stride) = (self.iteration(q, t, id)?, self.int(q, t, stride)?);
                    let far = q.product(&stride.form, &iteration.form);
                    let form = far.and_then(|far| far.plus(1, &start.form));
                    form.and_then(|form| Formula::eq(&int.form, &form))
                }
            };
            if q.first_time(&key) {
                q.say(fact);
            }
        }
        Some(Val::Int(int))
    }

    /// What a loop gives.
    fn left_by(
        &self,
        q: &mut Query,
        t: &mut Thread,
        id: Id,
        number: usize,
        value: Value,
    ) -> Option<Val> {
        let any = self.anything(q, t, value)?;
        let Val::Int(mut int) = any else {
            return Some(any);
        };
        let counts = matches!(self.shape.kind(id), InstKind::For { .. });
        let leaves = self.shape.exits(id, false);
        // Which of what it carries it hands on: that of its last iteration, if it is a `for`.
        let handed = match leaves.first() {
            Some((_, values)) if !counts => values.get(number).copied(),
            _last_or_none => self.shape.carried(id).get(number).copied(),
        };
        let mut carried = self.shape.carried(id).iter();
        let Some(its_number) = carried.position(|value| Some(*value) == handed) else {
            return Some(Val::Int(int));
        };
        let passes_on = leaves
            .iter()
            .all(|(_, values)| values.get(number).copied() == handed);
        let number = its_number;
        if (counts || !leaves.is_empty())
            && passes_on
            && let Some(values) = self.table(id, number)
        {
            let key = format!("{:?} in its table", int.form);
            if q.first_time(&key) {
                let one = |n: &i128| Formula::eq(&int.form, &Linear::constant(*n));
                let one: Option<Vec<Formula>> = values.iter().map(one).collect();
                q.say(one.map(Formula::any));
            }
            int.low = int.low.max(*values.first()?);
            int.high = int.high.min(*values.last()?);
        } else if (counts || !leaves.is_empty()) && passes_on {
            // What holds in every iteration holds of what the last iteration hands on.
            let init = *self.shape.initial(id).get(number)?;
            let start = self.int(q, t, init)?;
            for invariant in self.invariants(id, number) {
                let key = format!("{:?} left by {invariant:?} {:?}", int.form, start.form);
                let fact = match invariant {
                    Invariant::NotBelow => {
                        int.low = int.low.max(start.low);
                        Formula::le(&start.form, &int.form)
                    }
                    Invariant::NotAbove => {
                        int.high = int.high.min(start.high);
                        Formula::le(&int.form, &start.form)
                    }
                    Invariant::Below(_)
                    | Invariant::AtMost(_)
                    | Invariant::Step(_)
                    | Invariant::Stride(_) => None,
                };
                if q.first_time(&key) {
                    q.say(fact);
                }
            }
        }
        Some(Val::Int(int))
    }

    fn operation(
        &self,
        q: &mut Query,
        t: &mut Thread,
        value: Value,
        (op, imm, args): (Op, Imm, &[Value]),
    ) -> Option<Val> {
        if let Some(query) = self.asked(q, t, op, imm) {
            return query.map(Val::Int);
        }
        if t.lane.is_some()
            && let Some(arranged) = self.arranged(q, t, value, (op, imm, args))
        {
            return arranged;
        }
        match self.scalar_of(t, value)? {
            Scalar::Bool => self.condition(q, t, value, op, args).map(Val::Bool),
            scalar if scalar.is_integer() => match op {
                Op::Select => {
                    let condition = self.truth_of(q, t, args[2]);
                    let (b, a) = (self.of(q, t, args[0])?, self.of(q, t, args[1])?);
                    self.choice(q, t, value, condition, a, b)
                }
                _arithmetic => self.arithmetic(q, t, value, op, args).map(Val::Int),
            },
            _float => None,
        }
    }

    fn condition(
        &self,
        q: &mut Query,
        t: &mut Thread,
        value: Value,
        op: Op,
        args: &[Value],
    ) -> Option<Formula> {
        if matches!(op, Op::Eq | Op::Ne)
            && let Some(number) = self.constant_number(args[1])
            && (0..=1).contains(&number)
            && let Some(truth) = self.truth_as_number(q, t, args[0], 0)
        {
            return match (op == Op::Ne) == (number == 0) {
                true => Some(truth),
                false => truth.negated(),
            };
        }
        match op {
            Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge => {
                let (a, b) = (self.of(q, t, args[0])?, self.of(q, t, args[1])?);
                match (a, b) {
                    (Val::Int(a), Val::Int(b)) => {
                        let (a, b) = (&a.form, &b.form);
                        match op {
                            Op::Eq => Formula::eq(a, b),
                            Op::Ne => Formula::ne(a, b),
                            Op::Lt => Formula::lt(a, b),
                            Op::Le => Formula::le(a, b),
                            Op::Gt => Formula::lt(b, a),
                            _greater_or_equal => Formula::le(b, a),
                        }
                    }
                    (Val::Bool(a), Val::Bool(b)) => {
                        let same = Formula::any([
                            Formula::all([a.clone(), b.clone()]),
                            Formula::all([a.negated()?, b.negated()?]),
                        ]);
                        match op {
                            Op::Eq => Some(same),
                            Op::Ne => same.negated(),
                            _order => None,
                        }
                    }
                    (Val::Int(_), Val::Bool(_)) | (Val::Bool(_), Val::Int(_)) => None,
                }
            }
            Op::And | Op::Or | Op::Xor => {
                let (a, b) = (self.truth_of(q, t, args[0]), self.truth_of(q, t, args[1]));
                match op {
                    Op::And => Some(Formula::all([a, b])),
                    Op::Or => Some(Formula::any([a, b])),
                    _exclusive => Some(Formula::any([
                        Formula::all([a.clone(), b.negated()?]),
                        Formula::all([a.negated()?, b]),
                    ])),
                }
            }
            Op::Not => self.truth_of(q, t, args[0]).negated(),
            Op::Select => {
                let condition = self.truth_of(q, t, args[2]);
                let (b, a) = (self.of(q, t, args[0])?, self.of(q, t, args[1])?);
                match self.choice(q, t, value, condition, a, b)? {
                    Val::Bool(formula) => Some(formula),
                    Val::Int(_) => None,
                }
            }
            Op::Cast => match self.of(q, t, args[0])? {
                Val::Int(a) => Formula::ne(&a.form, &Linear::constant(0)),
                Val::Bool(a) => Some(a),
            },
            Op::All | Op::Any => self.of_all_components(q, t, op, args[0]),
            Op::Extract => match self.component(q, t, args)? {
                Val::Bool(formula) => Some(formula),
                Val::Int(_) => None,
            },
            _another => None,
        }
    }

    fn arithmetic(
        &self,
        q: &mut Query,
        t: &mut Thread,
        value: Value,
        op: Op,
        args: &[Value],
    ) -> Option<Int> {
        let scalar = self.kernel.ty(value).scalar()?;
        let (least, most) = range(scalar);
        match op {
            Op::Cast => {
                return match self.of(q, t, args[0])? {
                    Val::Int(a) => self.fitted(q, t, value, a.form, (a.low, a.high)),
                    Val::Bool(a) => {
                        let (one, zero) = (Int::constant(1), Int::constant(0));
                        let chosen = self.choice(q, t, value, a, Val::Int(one), Val::Int(zero));
                        match chosen? {
                            Val::Int(int) => Some(int),
                            Val::Bool(_) => None,
                        }
                    }
                };
            }
            // The same bits: of an integer the one that is equal to it modulo two to their number (A1).
            Op::AsType => {
                let a = self.int(q, t, *args.first()?)?;
                return self.fitted(q, t, value, a.form, (a.low, a.high));
            }
            Op::Extract => {
                return match self.component(q, t, args)? {
                    Val::Int(int) => Some(int),
                    Val::Bool(_) => None,
                };
            }
            _another => {}
        }
        let a = self.int(q, t, *args.first()?)?;
        match op {
            Op::Not => {
                return Some(Int {
                    form: a.form.times(-1)?.shifted(least + most)?,
                    low: least + most - a.high,
                    high: least + most - a.low,
                });
            }
            Op::Neg => return self.fitted(q, t, value, a.form.times(-1)?, (-a.high, -a.low)),
            Op::Abs => return self.distance(q, t, value, &a, &Int::constant(0)),
            Op::Popcount | Op::Clz | Op::Ctz => {
                let key = self.key(q, t, value, "");
                return Some(q.symbol(&key, 0, scalar.bits().into()));
            }
            _another => {}
        }
        let b = self.int(q, t, *args.get(1)?)?;
        match op {
            Op::Add => {
                let bounds = (a.low + b.low, a.high + b.high);
                self.fitted(q, t, value, a.form.plus(1, &b.form)?, bounds)
            }
            Op::Sub => {
                let bounds = (a.low - b.high, a.high - b.low);
                self.fitted(q, t, value, a.form.plus(-1, &b.form)?, bounds)
            }
            Op::Mul => {
                let mut ends = Vec::new();
                for x in [a.low, a.high] {
                    for y in [b.low, b.high] {
                        ends.push(x.checked_mul(y)?);
                    }
                }
                ends.sort_unstable();
                let product = q.product(&a.form, &b.form)?;
                // Two factors of 64 bits fill what the solver counts in.
                if ends[0] < -(1 << 90) || ends[3] > 1 << 90 {
                    return None;
                }
                self.fitted(q, t, value, product, (ends[0], ends[3]))
            }
            Op::Div => self.quotient(q, &a, &b).map(|(quotient, _)| quotient),
            Op::Rem => self.quotient(q, &a, &b).map(|(_, rest)| rest),
            Op::Min | Op::Max => self.lesser_or_greater(q, t, value, (op == Op::Min, &a, &b)),
            Op::Clamp => {
                let high = self.int(q, t, *args.get(2)?)?;
                let raised = self.lesser_or_greater(q, t, value, (false, &a, &b))?;
                self.lesser_or_greater(q, t, value, (true, &raised, &high))
            }
            Op::AbsDiff => self.distance(q, t, value, &a, &b),
            Op::AddSat => {
                let bounds = (a.low + b.low, a.high + b.high);
                let form = a.form.plus(1, &b.form)?;
                self.saturated(q, t, value, form, bounds)
            }
            Op::SubSat if least < 0 => {
                let bounds = (a.low - b.high, a.high - b.low);
                let form = a.form.plus(-1, &b.form)?;
                self.saturated(q, t, value, form, bounds)
            }
            Op::SubSat => {
                let difference = Int {
                    form: a.form.plus(-1, &b.form)?,
                    low: 0,
                    high: a.high,
                };
                let condition = Formula::le(&b.form, &a.form)?;
                let zero = Val::Int(Int::constant(0));
                match self.choice(q, t, value, condition, Val::Int(difference), zero)? {
                    Val::Int(int) => Some(int),
                    Val::Bool(_) => None,
                }
            }
            Op::Shl => {
                let count = b.as_constant()?.rem_euclid(i128::from(scalar.bits()));
                let factor = 1i128 << count;
                let bounds = (a.low.checked_mul(factor)?, a.high.checked_mul(factor)?);
                self.fitted(q, t, value, a.form.times(factor)?, bounds)
            }
            Op::Shr | Op::ShrExact => match b.as_constant() {
                Some(count) => {
                    let count = count.rem_euclid(i128::from(scalar.bits()));
                    self.floor(q, &a, 1 << count).map(|(quotient, _)| quotient)
                }
                None if a.low >= 0 => {
                    let key = self.key(q, t, value, "");
                    let shifted = q.symbol(&key, 0, a.high);
                    q.say(Formula::le(&shifted.form, &a.form));
                    Some(shifted)
                }
                None => None,
            },
            Op::And | Op::Or | Op::Xor => self.bitwise(q, t, value, op, a, b),
            _another => None,
        }
    }
}

/// Conditions under which an instruction is reached.
impl Subject<'_> {
    /// Whether a thread comes to the end of these instructions. A loop that returns inside counts as one
    /// that does not: that says less.
    fn falls_through(&self, q: &mut Query, t: &mut Thread, ids: &[Id]) -> Option<Formula> {
        let mut all = Vec::new();
        for &id in ids {
            match self.shape.kind(id) {
                InstKind::Break(_) | InstKind::Continue(_) | InstKind::Return => {
                    return Some(Formula::FALSE);
                }
                InstKind::If { condition, .. } => {
                    let then = self.shape.region(Some(id), 0).to_vec();
                    let otherwise = self.shape.region(Some(id), 1).to_vec();
                    let a = self.falls_through(q, t, &then)?;
                    let b = self.falls_through(q, t, &otherwise)?;
                    if a.is_true() && b.is_true() {
                        continue;
                    }
                    let condition = self.truth_of(q, t, *condition);
                    let not = condition.negated()?;
                    all.push(Formula::any([not, a]));
                    all.push(Formula::any([condition, b]));
                }
                _flat_or_loop => {}
            }
        }
        Some(Formula::all(all))
    }

    /// Adds to the thread's path what holds where it makes an instruction.
    pub fn reach(&self, q: &mut Query, t: &mut Thread, id: Id) {
        let mut chain = vec![id];
        let mut at = id;
        while let Some((holder, _)) = self.shape.statements[at].parent {
            chain.push(holder);
            at = holder;
        }
        chain.reverse();
        for (i, &at) in chain.iter().enumerate() {
            let statement = self.shape.statements[at];
            let (holder, number) = match statement.parent {
                Some((holder, number)) => (Some(holder), number),
                None => (None, 0),
            };
            let before = self.shape.region(holder, number)[..statement.place].to_vec();
            let falls = self.falls_through(q, t, &before);
            if let Some(falls) = falls.filter(|f| !f.is_true()) {
                t.path.push(falls);
            }
            let Some(&next) = chain.get(i + 1) else {
                continue;
            };
            let side = self.shape.statements[next]
                .parent
                .map_or(0, |(_, side)| side);
            match self.shape.kind(at) {
                InstKind::If { condition, .. } => {
                    let condition = self.truth_of(q, t, *condition);
                    let holds = if side == 0 {
                        Some(condition)
                    } else {
                        condition.negated()
                    };
                    t.path.extend(holds);
                }
                InstKind::For { body, .. } => {
                    if let Some(counter) = body.params.first() {
                        self.int(q, t, *counter);
                    }
                }
                _flat_or_loop => {}
            }
        }
    }
}

/// Components of vectors: each is a number by itself, of the components of the operands. [`Thread::lane`] says which is
/// asked for. What is asked of a vector then is asked of that component; scalars are what they are.
impl Subject<'_> {
    /// How many components a value has, if it is a vector.
    pub fn parts(&self, value: Value) -> Option<u8> {
        match self.kernel.ty(value) {
            Type::Vector(_, count) => Some(count),
            Type::Scalar(_) | Type::Matrix { .. } | Type::SimdgroupMatrix { .. } | Type::Event => {
                None
            }
        }
    }

    /// A component of a vector.
    fn part_of(&self, q: &mut Query, t: &mut Thread, vector: Value, lane: u8) -> Option<Val> {
        let around = t.lane.replace(lane);
        let part = self.of(q, t, vector);
        t.lane = around;
        part
    }

    /// The component of a vector that an instruction takes.
    pub fn component(&self, q: &mut Query, t: &mut Thread, args: &[Value]) -> Option<Val> {
        let count = self.parts(args[0])?;
        let index = self.int(q, t, args[1])?.as_constant()?;
        match u8::try_from(index) {
            Ok(lane) if lane < count => self.part_of(q, t, args[0], lane),
            // Out of bounds it gives 0 (B4).
            _beyond => match self.kernel.ty(args[0]) {
                Type::Vector(Scalar::Bool, _) => Some(Val::Bool(Formula::FALSE)),
                Type::Vector(scalar, _) if scalar.is_integer() => Some(Val::Int(Int::constant(0))),
                _float => None,
            },
        }
    }

    /// Whether every component is true, or some.
    pub fn of_all_components(
        &self,
        q: &mut Query,
        t: &mut Thread,
        op: Op,
        vector: Value,
    ) -> Option<Formula> {
        let mut parts = Vec::new();
        for lane in 0..self.parts(vector)? {
            match self.part_of(q, t, vector, lane)? {
                Val::Bool(formula) => parts.push(formula),
                Val::Int(_) => return None,
            }
        }
        Some(match op {
            Op::All => Formula::all(parts),
            _any => Formula::any(parts),
        })
    }

    /// The component that is asked for of a vector that an instruction puts together; `None` if it is computed of those of
    /// the operands, each of which has as many.
    pub fn arranged(
        &self,
        q: &mut Query,
        t: &mut Thread,
        value: Value,
        (op, imm, args): (Op, Imm, &[Value]),
    ) -> Option<Option<Val>> {
        let (Some(lane), Some(count)) = (t.lane, self.parts(value)) else {
            return Some(None);
        };
        match op {
            Op::Construct => {
                // One scalar stands for all components.
                if let [one] = args
                    && self.parts(*one).is_none()
                {
                    return Some(self.of(q, t, *one));
                }
                let mut first = 0;
                for arg in args {
                    let many = self.parts(*arg).unwrap_or(1);
                    if lane < first + many {
                        return Some(self.part_of(q, t, *arg, lane - first));
                    }
                    first += many;
                }
                Some(None)
            }
            Op::Swizzle => {
                let Imm::Swizzle(swizzle) = imm else {
                    return Some(None);
                };
                let list: Vec<u8> = swizzle.into();
                let from = list.get(usize::from(lane));
                Some(from.and_then(|from| self.part_of(q, t, args[0], *from)))
            }
            Op::Insert => {
                // The vector, the index and the part.
                let index = self
                    .int(q, t, args[1])
                    .and_then(|index| index.as_constant());
                Some(match index {
                    Some(index) if index == i128::from(lane) => self.of(q, t, args[2]),
                    Some(_) => self.part_of(q, t, args[0], lane),
                    None => None,
                })
            }
            // What is one condition for all components, and else nothing that is no vector of as many.
            op => {
                let is_of_parts = |(place, arg): (usize, &Value)| {
                    self.parts(*arg) == Some(count) || op == Op::Select && place == 2
                };
                let is_of_parts = args.iter().enumerate().all(is_of_parts);
                (!is_of_parts).then_some(None)
            }
        }
    }
}

/// Truth values that are numbers: 1 and 0, put together bit by bit. Languages without vectors of truth values say `all`
/// and `any` so, and compilers say them so where a truth value is kept in memory. Deliberately absent: numbers that are
/// neither 1 nor 0, and floats.
impl Subject<'_> {
    /// A constant of the kernel as a number.
    pub fn constant_number(&self, value: Value) -> Option<i128> {
        match self.shape.defining(value)? {
            InstKind::Const(constant) if constant.scalar.is_integer() => {
                Some(constant.scalar.integer(constant.bits))
            }
            _another => None,
        }
    }

    /// When a number is 1 that is a truth value, or several together bit by bit, and else 0: as languages without
    /// vectors of truth values say `all` and `any`.
    pub fn truth_as_number(
        &self,
        q: &mut Query,
        t: &mut Thread,
        value: Value,
        depth: usize,
    ) -> Option<Formula> {
        const DEEP: usize = 16;
        match self.constant_number(value) {
            Some(0) => return Some(Formula::FALSE),
            Some(1) => return Some(Formula::TRUE),
            Some(_) => return None,
            None if depth > DEEP => return None,
            None => {}
        }
        let InstKind::Op { op, args, .. } = self.shape.defining(value)? else {
            return None;
        };
        let is_integer = |value: Value| match self.kernel.ty(value) {
            Type::Scalar(scalar) => scalar.is_integer(),
            _several => false,
        };
        if !is_integer(value) {
            return None;
        }
        match (op, &args[..]) {
            (Op::Cast, [a]) if self.kernel.ty(*a) == Type::Scalar(Scalar::Bool) => {
                Some(self.truth_of(q, t, *a))
            }
            (Op::Cast | Op::AsType, [a]) => self.truth_as_number(q, t, *a, depth + 1),
            (Op::And | Op::Or, [a, b]) => {
                let a = self.truth_as_number(q, t, *a, depth + 1)?;
                let b = self.truth_as_number(q, t, *b, depth + 1)?;
                Some(match op {
                    Op::And => Formula::all([a, b]),
                    _or => Formula::any([a, b]),
                })
            }
            _another => None,
        }
    }
}

/// Numbers that textures say of themselves.
impl Subject<'_> {
    /// What a function of a texture that asks for a number gives.
    pub fn texture_number(
        &self,
        q: &mut Query,
        t: &mut Thread,
        (texture, function): (Memory, TextureFunction),
        args: &[Value],
    ) -> Option<Int> {
        match function {
            TextureFunction::Levels => Some(self.levels(q, texture)),
            TextureFunction::Samples => Some(self.samples(q, texture)),
            TextureFunction::ArraySize => Some(self.elements(q, texture)),
            TextureFunction::Width | TextureFunction::Height | TextureFunction::Depth => {
                let d = function.extent()?;
                let operands = function.operands(self.dimension(texture)?, args);
                let Some(level) = operands.level else {
                    return Some(self.texels(q, texture, d));
                };
                let level = self.int(q, t, level)?;
                let texels = self.texels_of_level(q, texture, d, &level)?;
                let levels = self.levels(q, texture);
                let there = within(&level.form, &levels.form)?;
                let key = format!("{:?} if it is there", texels.form);
                let given = q.symbol(&key, 0, texels.high);
                if q.first_time(&key) {
                    let none = Formula::eq(&given.form, &Linear::constant(0))?;
                    let all = Formula::eq(&given.form, &texels.form)?;
                    let absent = Formula::all([there.negated()?, none]);
                    q.say(Some(Formula::any([Formula::all([there, all]), absent])));
                }
                Some(given)
            }
            TextureFunction::Read
            | TextureFunction::Write
            | TextureFunction::Sample(_)
            | TextureFunction::Gather { .. }
            | TextureFunction::SampleCompare(_)
            | TextureFunction::GatherCompare(_)
            | TextureFunction::Fence => None,
        }
    }
}
