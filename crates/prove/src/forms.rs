//! Integers of a [`Query`] that are made of others: quotients, choices, and what may wrap; and those of which nothing else
//! is known, by names that tell the threads and iterations for which they are one.

use invar_ir::{Level, Scalar, Type, Value};

use crate::linear::{Formula, Linear};
use crate::query::{Int, Query};
use crate::shape::{Id, Iteration};
use crate::subject::Subject;
use crate::thread::{Thread, Val, range};

/// What a form is a multiple of a divisor by, as far as its factors are, and the rest.
fn divided(form: &Linear, divisor: i128) -> Option<(Linear, Linear)> {
    let mut whole = Linear::constant(form.constant.div_euclid(divisor));
    let mut rest = Linear::constant(form.constant.rem_euclid(divisor));
    for &(var, factor) in &form.terms {
        let (to, factor) = match factor % divisor {
            0 => (&mut whole, factor / divisor),
            _left => (&mut rest, factor),
        };
        *to = to.plus(factor, &Linear::var(var))?;
    }
    Some((whole, rest))
}

impl Subject<'_> {
    pub fn scope(&self, q: &Query, t: &Thread, level: Level) -> String {
        match level {
            Level::Grid => "grid".to_string(),
            Level::Threadgroup if q.same => "group".to_string(),
            Level::Threadgroup => format!("group{}", t.tag),
            Level::Simdgroup | Level::Varying => format!("thread{}", t.tag),
        }
    }

    /// What tells the iterations of a value's loops.
    pub fn iterations_key(&self, t: &Thread, loops: &[Id]) -> String {
        let mut key = String::new();
        let mut any = false;
        for l in loops {
            let iteration = t.iterations.get(l).copied().unwrap_or(Iteration::Any);
            key += &format!(" {l}{iteration:?}");
            any |= iteration == Iteration::Any;
        }
        if any {
            key += &format!(" of thread{}", t.tag);
        }
        key
    }

    pub fn key(&self, q: &Query, t: &Thread, value: Value, what: &str) -> String {
        let scope = self.scope(q, t, self.uniformity.of(value));
        let loops = self.iterations_key(t, &self.shape.loops_of(value));
        let lane = t.lane.map_or(String::new(), |lane| format!(".{lane}"));
        // By its number: names may be anything, that of a number without a name too.
        format!("{scope} %{}{lane}{what}{loops}", value.0)
    }

    /// Any value of its type.
    pub fn anything(&self, q: &mut Query, t: &Thread, value: Value) -> Option<Val> {
        match self.scalar_of(t, value)? {
            Scalar::Bool => {
                let key = self.key(q, t, value, "");
                Some(Val::Bool(self.truth(q, &key)))
            }
            scalar if scalar.is_integer() => {
                let (low, high) = range(scalar);
                let key = self.key(q, t, value, "");
                Some(Val::Int(q.symbol(&key, low, high)))
            }
            _float => None,
        }
    }

    /// A truth value of that name.
    pub fn truth(&self, q: &mut Query, key: &str) -> Formula {
        let var = q.symbol(key, 0, 1);
        match var.form.shifted(-1) {
            Some(form) => Formula::at_least(form),
            None => Formula::TRUE,
        }
    }

    /// The type of what is asked for of a value: its own, or that of a component.
    pub fn scalar_of(&self, t: &Thread, value: Value) -> Option<Scalar> {
        match self.kernel.ty(value) {
            Type::Scalar(scalar) => Some(scalar),
            Type::Vector(scalar, _) => t.lane.map(|_| scalar),
            Type::Matrix { .. } | Type::SimdgroupMatrix { .. } | Type::Event => None,
        }
    }

    /// One of two values.
    pub fn choice(
        &self,
        q: &mut Query,
        t: &Thread,
        value: Value,
        condition: Formula,
        a: Val,
        b: Val,
    ) -> Option<Val> {
        if condition.is_true() {
            return Some(a);
        }
        if condition.is_false() {
            return Some(b);
        }
        let not = condition.negated()?;
        match (a, b) {
            (Val::Int(a), Val::Int(b)) => {
                let (low, high) = (a.low.min(b.low), a.high.max(b.high));
                let key = self.key(q, t, value, " chosen");
                // What it is depends on the operands: each pair has a name of its own.
                let key = format!("{key} {:?} {:?}", a.form, b.form);
                let chosen = q.symbol(&key, low, high);
                if q.first_time(&key) {
                    let first = Formula::eq(&chosen.form, &a.form)?;
                    let second = Formula::eq(&chosen.form, &b.form)?;
                    let first = Formula::all([condition, first]);
                    let second = Formula::all([not, second]);
                    q.say(Some(Formula::any([first, second])));
                }
                Some(Val::Int(chosen))
            }
            (Val::Bool(a), Val::Bool(b)) => Some(Val::Bool(Formula::any([
                Formula::all([condition, a]),
                Formula::all([not, b]),
            ]))),
            (Val::Int(_), Val::Bool(_)) | (Val::Bool(_), Val::Int(_)) => None,
        }
    }

    /// The number of the iteration, from 0.
    pub fn iteration(&self, q: &mut Query, t: &Thread, loop_: Id) -> Option<Int> {
        let iteration = t.iterations.get(&loop_).copied().unwrap_or(Iteration::Any);
        let around = self.iterations_key(t, &self.shape.loops_around(loop_));
        let shared = self.scope(q, t, Level::Threadgroup);
        let key = match iteration {
            Iteration::First => return Some(Int::constant(0)),
            Iteration::Numbered(number) => return Some(Int::constant(number as i128)),
            Iteration::Any => format!("thread{} iteration of {loop_}{around}", t.tag),
            Iteration::Same | Iteration::Next => format!("{shared} iteration of {loop_}{around}"),
        };
        let count = q.symbol(&key, 0, 1 << 64);
        if iteration == Iteration::Next {
            return Some(Int {
                form: count.form.shifted(1)?,
                low: 1,
                high: (1 << 64) + 1,
            });
        }
        Some(count)
    }

    /// A form as a value of a type: itself if it does not wrap, else less a multiple of `2^w`.
    pub fn fitted(
        &self,
        q: &mut Query,
        t: &mut Thread,
        value: Value,
        form: Linear,
        bounds: (i128, i128),
    ) -> Option<Int> {
        let (least, most) = range(self.kernel.ty(value).scalar()?);
        let (low, high) = bounds;
        if least <= low && high <= most {
            return Some(Int { form, low, high });
        }
        let within = Int {
            low: low.max(least),
            high: high.min(most),
            form: form.clone(),
        };
        if form.as_constant().is_none() {
            let below = Formula::lt(&form, &Linear::constant(least))?;
            let above = Formula::lt(&Linear::constant(most), &form)?;
            let slot = (value, t.lane);
            let known = t.exact.contains(&slot);
            if !known && t.asks && self.excludes(q, t, Formula::any([below.clone(), above.clone()]))
            {
                t.exact.insert(slot);
            }
            if t.exact.contains(&slot) {
                q.say(below.negated());
                q.say(above.negated());
                return Some(within);
            }
        }
        let modulus = most - least + 1;
        let turns = (
            (low - least).div_euclid(modulus),
            (high - least).div_euclid(modulus),
        );
        if let Some(number) = form.as_constant() {
            return Some(Int::constant((number - least).rem_euclid(modulus) + least));
        }
        let key = format!("turns of {modulus} of {form:?} from {least}");
        let turn = q.symbol(&key, turns.0, turns.1);
        let form = form.plus(-modulus, &turn.form)?;
        if q.first_time(&key) {
            q.say(Formula::le(&Linear::constant(least), &form));
            q.say(Formula::le(&form, &Linear::constant(most)));
        }
        Some(Int {
            form,
            low: least,
            high: most,
        })
    }

    /// The quotient, rounded down, and the remainder of a number that is divided by a positive constant.
    pub fn floor(&self, q: &mut Query, a: &Int, divisor: i128) -> Option<(Int, Int)> {
        let (low, high) = (a.low.div_euclid(divisor), a.high.div_euclid(divisor));
        if low == high {
            let rest = a.form.shifted(-low * divisor)?;
            let rest = Int {
                form: rest,
                low: a.low - low * divisor,
                high: a.high - low * divisor,
            };
            return Some((Int::constant(low), rest));
        }
        let parts = self.floor_in_parts(q, a, divisor)?;
        if let Some((quotient, rest, is_exact)) = &parts
            && *is_exact
        {
            return Some((quotient.clone(), rest.clone()));
        }
        let key = format!("floor of {:?} by {divisor}", a.form);
        let quotient = q.symbol(&key, low, high);
        let rest = a.form.plus(-divisor, &quotient.form)?;
        if q.first_time(&key) {
            q.say(Some(Formula::at_least(rest.clone())));
            q.say(Formula::lt(&rest, &Linear::constant(divisor)));
            if let Some((sum, ..)) = &parts {
                q.say(Formula::eq(&quotient.form, &sum.form));
            }
            q.say_near(divisor, &a.form, &quotient.form);
            if divisor > 1 {
                q.say_below_multiples(divisor, &a.form, &quotient.form);
            }
        }
        if let Some((_, rest, _)) = parts {
            // One number is multiplied further more easily than a sum.
            return Some((quotient, rest));
        }
        let rest = Int {
            form: rest,
            low: 0,
            high: divisor - 1,
        };
        Some((quotient, rest))
    }

    /// As [`Subject::floor`], with the quotient as a sum: of what is a multiple of the divisor nothing is asked.
    /// `None` inside if nothing is; and whether the quotient of what is left is known.
    fn floor_in_parts(
        &self,
        q: &mut Query,
        a: &Int,
        divisor: i128,
    ) -> Option<Option<(Int, Int, bool)>> {
        // floor((divisor * whole + rest) / divisor) = whole + floor(rest / divisor)
        let (whole, rest) = divided(&a.form, divisor)?;
        q.divides(&whole);
        let bounds = q.bounds(&rest).filter(|_| whole.as_constant() != Some(0));
        let Some((low, high)) = bounds else {
            return Some(None);
        };
        let form = rest;
        let (quotient, rest) = self.floor(q, &Int { form, low, high }, divisor)?;
        let sum = Int {
            form: whole.plus(1, &quotient.form)?,
            low: a.low.div_euclid(divisor),
            high: a.high.div_euclid(divisor),
        };
        Some(Some((sum, rest, quotient.as_constant().is_some())))
    }

    /// As [`Subject::floor`], for bits: those of what is left are asked for next.
    pub fn floor_of_bits(&self, q: &mut Query, a: &Int, divisor: i128) -> Option<(Int, Int)> {
        match self.floor_in_parts(q, a, divisor)? {
            Some((quotient, rest, _)) => Some((quotient, rest)),
            None => self.floor(q, a, divisor),
        }
    }

    /// The quotient and the remainder (A2).
    pub fn quotient(&self, q: &mut Query, a: &Int, b: &Int) -> Option<(Int, Int)> {
        if let Some(divisor) = b.as_constant() {
            if divisor == 0 {
                return Some((Int::constant(0), Int::constant(0)));
            }
            if divisor > 0 && a.low >= 0 {
                return self.floor(q, a, divisor);
            }
            if divisor < 0 {
                return None;
            }
            // Toward zero: the remainder has the sign of the dividend.
            let key = format!("quotient of {:?} by {divisor}", a.form);
            let quotient = q.symbol(&key, a.low / divisor, a.high / divisor);
            let rest = a.form.plus(-divisor, &quotient.form)?;
            if q.first_time(&key) {
                let (zero, last) = (Linear::constant(0), divisor - 1);
                let up = Formula::all([
                    Formula::at_least(a.form.clone()),
                    Formula::le(&zero, &rest)?,
                    Formula::le(&rest, &Linear::constant(last))?,
                ]);
                let down = Formula::all([
                    Formula::lt(&a.form, &zero)?,
                    Formula::le(&rest, &zero)?,
                    Formula::le(&Linear::constant(-last), &rest)?,
                ]);
                q.say(Some(Formula::any([up, down])));
            }
            let rest = Int {
                form: rest,
                low: (-(divisor - 1)).max(a.low.min(0)),
                high: divisor - 1,
            };
            return Some((quotient, rest));
        }
        if a.low < 0 || b.low < 0 {
            return None;
        }
        let key = format!("quotient of {:?} by {:?}", a.form, b.form);
        let quotient = q.symbol(&key, 0, a.high);
        let rest = q.symbol(&format!("{key}, rest"), 0, a.high.min((b.high - 1).max(0)));
        if q.first_time(&key) {
            let whole = q.product(&b.form, &quotient.form)?;
            let sum = whole.plus(1, &rest.form)?;
            let divided = Formula::all([
                Formula::at_least(b.form.shifted(-1)?),
                Formula::eq(&a.form, &sum)?,
                Formula::lt(&rest.form, &b.form)?,
            ]);
            let zero = Linear::constant(0);
            let by_zero = Formula::all([
                Formula::eq(&b.form, &zero)?,
                Formula::eq(&quotient.form, &zero)?,
                Formula::eq(&rest.form, &zero)?,
            ]);
            let fact = if b.low >= 1 {
                divided
            } else {
                Formula::any([divided, by_zero])
            };
            q.say(Some(fact));
        }
        Some((quotient, rest))
    }
}
