//! The lesser and the greater of two numbers, how far they are apart, and numbers that saturate.

use invar_ir::Value;

use crate::linear::{Formula, Linear};
use crate::query::{Int, Query};
use crate::subject::Subject;
use crate::thread::{Thread, Val, range};

impl Subject<'_> {
    /// The lesser of two numbers, or the greater.
    pub fn lesser_or_greater(
        &self,
        q: &mut Query,
        t: &Thread,
        value: Value,
        (lesser, a, b): (bool, &Int, &Int),
    ) -> Option<Int> {
        let (x, y) = if lesser { (a, b) } else { (b, a) };
        let condition = Formula::le(&a.form, &b.form)?;
        let (x, y) = (Val::Int(x.clone()), Val::Int(y.clone()));
        let Some(Val::Int(mut int)) = self.choice(q, t, value, condition, x, y) else {
            return None;
        };
        if lesser {
            int.high = int.high.min(a.high.min(b.high));
        } else {
            int.low = int.low.max(a.low.max(b.low));
        }
        Some(int)
    }

    /// How far two numbers are apart, as bits of the type (`abs`, `abs_diff`).
    pub fn distance(
        &self,
        q: &mut Query,
        t: &mut Thread,
        value: Value,
        a: &Int,
        b: &Int,
    ) -> Option<Int> {
        let between = |from: &Int, to: &Int| {
            let int = Int {
                form: to.form.plus(-1, &from.form)?,
                low: to.low - from.high,
                high: to.high - from.low,
            };
            Some(Val::Int(int))
        };
        let condition = Formula::le(&b.form, &a.form)?;
        let (up, down) = (between(b, a)?, between(a, b)?);
        let Some(Val::Int(int)) = self.choice(q, t, value, condition, up, down) else {
            return None;
        };
        self.fitted(q, t, value, int.form, (0, int.high.max(0)))
    }

    /// A number, or the nearest one that the type has.
    pub fn saturated(
        &self,
        q: &mut Query,
        t: &Thread,
        value: Value,
        form: Linear,
        (low, high): (i128, i128),
    ) -> Option<Int> {
        let (least, most) = range(self.kernel.ty(value).scalar()?);
        let mut int = Int { form, low, high };
        if low < least {
            let end = Int::constant(least);
            int = self.lesser_or_greater(q, t, value, (false, &int, &end))?;
        }
        if high > most {
            let end = Int::constant(most);
            int = self.lesser_or_greater(q, t, value, (true, &int, &end))?;
        }
        Some(int)
    }
}
