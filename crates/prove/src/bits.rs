//! Bits of numbers: `and`, `or` and `xor`.
//!
//! With a constant, each bit that the mask has is a number by itself. Of two numbers the low bits are that, as many as
//! the smaller of the two can have: swizzles are of few. What is above them is as in the other number. Of exclusive ors
//! any two of the three numbers say the third, how many bits they may have.

use invar_ir::{Op, Value};

use crate::linear::{Formula, Linear};
use crate::query::{Int, Query};
use crate::subject::Subject;
use crate::thread::Thread;

/// Of so many bits of a mask that is a constant each is a number by itself.
const MOST_OF_A_MASK: usize = 12;
/// As that, of a number that is less than two to so many.
const MOST_OF_A_NUMBER: u32 = 6;

/// All bits that a number up to this can have.
fn all_bits(most: i128) -> i128 {
    (1i128 << (128 - most.leading_zeros())) - 1
}

impl Subject<'_> {
    /// `and`, `or` or `xor` of two integers.
    pub fn bitwise(
        &self,
        q: &mut Query,
        t: &Thread,
        value: Value,
        op: Op,
        a: Int,
        b: Int,
    ) -> Option<Int> {
        let (a, b) = if a.as_constant().is_some() {
            (b, a)
        } else {
            (a, b)
        };
        if let (Some(x), Some(y)) = (a.as_constant(), b.as_constant()) {
            return Some(Int::constant(match op {
                Op::And => x & y,
                Op::Or => x | y,
                _exclusive => x ^ y,
            }));
        }
        if let Some(mask) = b.as_constant()
            && let Some(masked) = self.masked(q, op, &a, mask)
        {
            return Some(masked);
        }
        if a.low < 0 || b.low < 0 {
            return None;
        }
        let (wide, narrow) = if a.high < b.high { (b, a) } else { (a, b) };
        if narrow.high < 1 << MOST_OF_A_NUMBER
            && let Some(found) = self.of_few_bits(q, op, &wide, &narrow)
        {
            return Some(found);
        }
        let key = self.key(q, t, value, "");
        let high = match op {
            Op::And => narrow.high,
            _both => all_bits(wide.high),
        };
        let result = q.symbol(&key, 0, high);
        if q.first_time(&key) {
            say_of_bits(q, op, [&wide.form, &narrow.form], &result.form);
        }
        Some(result)
    }

    /// The same of a number and a constant; `None` if the mask has too many bits.
    fn masked(&self, q: &mut Query, op: Op, a: &Int, mask: i128) -> Option<Int> {
        if op == Op::And && mask >= 0 && mask & (mask + 1) == 0 {
            return self.floor_of_bits(q, a, mask + 1).map(|(_, rest)| rest);
        }
        if a.low < 0 || mask < 0 || a.high >= 1 << 64 {
            return None;
        }
        let rest = !mask & all_bits(a.high);
        if op == Op::And && rest & (rest + 1) == 0 {
            let (_, low) = self.floor_of_bits(q, a, rest + 1)?;
            return Some(Int {
                form: a.form.plus(-1, &low.form)?,
                low: 0,
                high: a.high,
            });
        }
        let bits: Vec<u32> = (0..64).filter(|i| mask >> i & 1 == 1).collect();
        if bits.len() > MOST_OF_A_MASK {
            return None;
        }
        // The bits of `a` that the mask has.
        let mut both = Linear::constant(0);
        for bit in bits {
            both = both.plus(1 << bit, &self.bit(q, a, bit)?.form)?;
        }
        let high = all_bits(a.high.max(mask));
        let (low, high) = match op {
            Op::And => (0, mask.min(a.high)),
            Op::Or => (mask, high),
            _exclusive => (0, high),
        };
        let form = of_both(op, &a.form, &Linear::constant(mask), &both)?;
        Some(Int { form, low, high })
    }

    /// One bit of a number.
    fn bit(&self, q: &mut Query, a: &Int, bit: u32) -> Option<Int> {
        let (upper, _) = self.floor_of_bits(q, a, 1 << bit)?;
        self.floor_of_bits(q, &upper, 2).map(|(_, bit)| bit)
    }

    /// The same of two numbers, of which one has few bits.
    fn of_few_bits(&self, q: &mut Query, op: Op, wide: &Int, narrow: &Int) -> Option<Int> {
        let all = all_bits(narrow.high);
        let (_, low) = self.floor_of_bits(q, wide, all + 1)?;
        if op == Op::Xor && q.only_one_to_one {
            let key = format!("exclusive or of {:?} {:?}", low.form, narrow.form);
            let lows = q.symbol(&key, 0, all).form;
            if q.first_time(&key) {
                say_of_bits(q, op, [&low.form, &narrow.form], &lows);
            }
            return Some(Int {
                form: wide.form.plus(-1, &low.form)?.plus(1, &lows)?,
                low: 0,
                high: all_bits(wide.high),
            });
        }
        // The bits that both have.
        let mut both = Linear::constant(0);
        for bit in 0..all.count_ones() {
            let (x, y) = (self.bit(q, wide, bit)?, self.bit(q, narrow, bit)?);
            let one = self.both(q, &x, &y)?;
            both = both.plus(1 << bit, &one)?;
        }
        let lows = of_both(op, &low.form, &narrow.form, &both)?;
        q.say(Some(Formula::at_least(lows.clone())));
        q.say(Formula::le(&lows, &Linear::constant(all)));
        if op == Op::Xor {
            q.say_exclusive([low.form, narrow.form.clone(), lows]);
        }
        Some(Int {
            form: of_both(op, &wide.form, &narrow.form, &both)?,
            low: 0,
            high: match op {
                Op::And => narrow.high,
                _either => all_bits(wide.high),
            },
        })
    }

    /// Whether both of two bits are 1.
    fn both(&self, q: &mut Query, x: &Int, y: &Int) -> Option<Linear> {
        let zero = Linear::constant(0);
        match (x.as_constant(), y.as_constant()) {
            (Some(0), _) | (_, Some(0)) => return Some(zero),
            (Some(_), _) => return Some(y.form.clone()),
            (_, Some(_)) => return Some(x.form.clone()),
            (None, None) => {}
        }
        if x.form == y.form {
            return Some(x.form.clone());
        }
        let key = format!("both of {:?} {:?}", x.form, y.form);
        let both = q.symbol(&key, 0, 1);
        if q.first_time(&key) {
            q.say(Formula::le(&both.form, &x.form));
            q.say(Formula::le(&both.form, &y.form));
            let sum = x.form.plus(1, &y.form)?;
            q.say(Formula::le(&sum.shifted(-1)?, &both.form));
        }
        Some(both.form)
    }
}

/// What two numbers give, by the bits that both have.
fn of_both(op: Op, a: &Linear, b: &Linear, both: &Linear) -> Option<Linear> {
    match op {
        Op::And => Some(both.clone()),
        Op::Or => a.plus(1, b)?.plus(-1, both),
        _exclusive => a.plus(1, b)?.plus(-2, both),
    }
}

/// What is known of two numbers whose bits are not looked at, and of what they give.
fn say_of_bits(q: &mut Query, op: Op, [a, b]: [&Linear; 2], result: &Linear) {
    let sum = a.plus(1, b);
    let within = sum.and_then(|sum| Formula::le(result, &sum));
    match op {
        Op::And => {
            q.say(Formula::le(result, a));
            q.say(Formula::le(result, b));
        }
        Op::Or => {
            q.say(Formula::le(a, result));
            q.say(Formula::le(b, result));
            q.say(within);
        }
        _exclusive => {
            q.say(within);
            q.say_exclusive([a.clone(), b.clone(), result.clone()]);
        }
    }
}

impl Query {
    /// Says of three numbers, of which each is the exclusive or of the others, and of all such before: if two are the same
    /// in both, so is the third.
    fn say_exclusive(&mut self, these: [Linear; 3]) {
        if self.exclusive.contains(&these) {
            return;
        }
        for others in self.exclusive.clone() {
            for last in 0..3 {
                let [one, two] = [(last + 1) % 3, (last + 2) % 3];
                let same = Formula::eq(&these[last], &others[last]);
                let differ = |at: usize| Formula::ne(&these[at], &others[at]);
                let fact = same.zip(differ(one)).zip(differ(two));
                self.say(fact.map(|((same, a), b)| Formula::any([same, a, b])));
            }
        }
        self.exclusive.push(these);
    }
}
