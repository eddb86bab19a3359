//! Linear arithmetic over the rationals: the general simplex of Dutertre and de Moura, "A Fast
//! Linear-Arithmetic Solver for DPLL(T)" (CAV 2006). Bounds come and go in the order of a stack; a conflict
//! names the bounds that it is made of, each with its factor (Farkas).
//!
//! Every form is kept once, as a column of its own; an inequality is a bound of a column. Bland's rule
//! keeps the search from going round in circles.

use std::cmp::Ordering;
use std::collections::HashMap;

use crate::linear::{Linear, Var};
use crate::rational::Fraction;

/// A hypothesis, by its number.
pub type Hypothesis = usize;

/// Hypotheses with positive factors: the sum of the multiples of their forms is a negative number.
pub type Conflict = Vec<(Hypothesis, i128)>;

/// Why there is no answer.
#[derive(Debug)]
pub enum Failure {
    /// The bounds contradict each other.
    Conflict(Conflict),
    /// Numbers got too large, or the work too much.
    Lost,
}

#[derive(Clone, Copy, Debug)]
struct Bound {
    value: i128,
    reason: Hypothesis,
}

#[derive(Debug)]
struct Row {
    basic: usize,
    /// Columns that are not basic, in order.
    terms: Vec<(usize, Fraction)>,
}

/// The state: columns, their bounds and values.
#[derive(Debug, Default)]
pub struct Simplex {
    lower: Vec<Option<Bound>>,
    upper: Vec<Option<Bound>>,
    value: Vec<Fraction>,
    row_of: Vec<Option<usize>>,
    rows: Vec<Row>,
    columns: HashMap<Vec<(Var, i128)>, usize>,
    /// The terms of the columns behind those of the variables.
    forms: Vec<Vec<(Var, i128)>>,
    /// Column, whether its upper bound was changed, and what that was.
    trail: Vec<(usize, bool, Option<Bound>)>,
    /// How many pivots may still be made; one that changes many terms counts as several.
    pub work: u64,
    lost: bool,
}

/// So many terms that a pivot changes count as another one.
const TERMS_OF_PIVOT: u64 = 256;

fn greatest_divisor(terms: &[(Var, i128)]) -> i128 {
    let step = |a: i128, b: i128| -> i128 {
        let (mut a, mut b) = (a.abs(), b.abs());
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    terms.iter().fold(0, |divisor, (_, f)| step(divisor, *f))
}

/// The strongest inequality between integers that follows from one: its form divided by the greatest
/// divisor of its factors, its constant rounded down.
pub fn tightened(form: &Linear) -> Linear {
    let divisor = greatest_divisor(&form.terms);
    if divisor <= 1 {
        return form.clone();
    }
    Linear {
        terms: (form.terms.iter())
            .map(|(v, f)| (*v, f / divisor))
            .collect(),
        constant: form.constant.div_euclid(divisor),
    }
}

fn add_to(row: &mut Vec<(usize, Fraction)>, factor: Fraction, other: &[(usize, Fraction)]) {
    let mut out = Vec::with_capacity(row.len() + other.len());
    let (mut i, mut j) = (0, 0);
    loop {
        match (row.get(i), other.get(j)) {
            (None, None) => break,
            (Some(&(v, a)), Some(&(w, b))) if v == w => {
                let sum = a.plus(b.times(factor));
                if sum.sign() != 0 || sum.is_lost() {
                    out.push((v, sum));
                }
                (i, j) = (i + 1, j + 1);
            }
            (Some(&(v, a)), Some(&(w, _))) if v < w => {
                out.push((v, a));
                i += 1;
            }
            (Some(&(v, a)), None) => {
                out.push((v, a));
                i += 1;
            }
            (_, Some(&(w, b))) => {
                out.push((w, b.times(factor)));
                j += 1;
            }
        }
    }
    *row = out;
}

impl Simplex {
    /// Variables without bounds.
    pub fn new(variables: usize, work: u64) -> Simplex {
        Simplex {
            lower: vec![None; variables],
            upper: vec![None; variables],
            value: vec![Fraction::ZERO; variables],
            row_of: vec![None; variables],
            work,
            ..Simplex::default()
        }
    }

    /// What the variables are where every bound holds, after [`Simplex::check`].
    pub fn value(&self, var: Var) -> Fraction {
        self.value[var as usize]
    }

    /// The lower bound of a variable and its hypothesis.
    pub fn lower(&self, var: Var) -> Option<(i128, Hypothesis)> {
        self.lower[var as usize].map(|b| (b.value, b.reason))
    }

    /// The upper bound of a variable and its hypothesis.
    pub fn upper(&self, var: Var) -> Option<(i128, Hypothesis)> {
        self.upper[var as usize].map(|b| (b.value, b.reason))
    }

    /// The variable or form whose value is not a whole number, and that value: the one with the fewest values.
    /// A form counts only where bounds of its own say how many: a remainder has few, though the numbers that
    /// it is the difference of have many.
    pub fn fractional(&self) -> Option<(Linear, Fraction)> {
        let variables = self.value.len() - self.forms.len();
        let mut best: Option<(i128, usize)> = None;
        for (column, value) in self.value.iter().enumerate() {
            if value.is_whole() {
                continue;
            }
            let room = match (self.lower[column], self.upper[column]) {
                (Some(low), Some(high)) => high.value - low.value,
                (Some(_), None) | (None, Some(_)) | (None, None) if column < variables => i128::MAX,
                (Some(_), None) | (None, Some(_)) | (None, None) => continue,
            };
            if best.is_none_or(|(least, _)| room < least) {
                best = Some((room, column));
            }
        }
        let (_, column) = best?;
        let form = match column.checked_sub(variables) {
            None => Linear::var(column as Var),
            Some(place) => Linear {
                terms: self.forms[place].clone(),
                constant: 0,
            },
        };
        Some((form, self.value[column]))
    }

    /// What a form is at the present values.
    pub fn evaluate(&self, form: &Linear) -> Fraction {
        let mut sum = Fraction::whole(form.constant);
        for &(var, factor) in &form.terms {
            sum = sum.plus(self.value(var).times(Fraction::whole(factor)));
        }
        sum
    }

    /// A place to go back to.
    pub fn mark(&self) -> usize {
        self.trail.len()
    }

    /// Takes back the bounds since then.
    pub fn back_to(&mut self, mark: usize) {
        while self.trail.len() > mark {
            if let Some((column, is_upper, old)) = self.trail.pop() {
                if is_upper {
                    self.upper[column] = old;
                } else {
                    self.lower[column] = old;
                }
            }
        }
    }

    /// The column of a form whose first factor is positive and which has no constant.
    fn column(&mut self, terms: Vec<(Var, i128)>) -> usize {
        if let [(var, 1)] = terms[..] {
            return var as usize;
        }
        if let Some(&column) = self.columns.get(&terms) {
            return column;
        }
        let column = self.value.len();
        let mut row = Vec::new();
        let mut value = Fraction::ZERO;
        for &(var, factor) in &terms {
            let (var, factor) = (var as usize, Fraction::whole(factor));
            value = value.plus(self.value[var].times(factor));
            match self.row_of[var] {
                Some(of) => add_to(&mut row, factor, &self.rows[of].terms),
                None => add_to(&mut row, factor, &[(var, Fraction::ONE)]),
            }
        }
        self.lower.push(None);
        self.upper.push(None);
        self.value.push(value);
        self.row_of.push(Some(self.rows.len()));
        self.rows.push(Row {
            basic: column,
            terms: row,
        });
        self.forms.push(terms.clone());
        self.columns.insert(terms, column);
        column
    }

    /// Assumes `form >= 0`, tightened.
    ///
    /// # Errors
    /// A bound of the same form contradicts it.
    pub fn assume(&mut self, form: &Linear, reason: Hypothesis) -> Result<(), Failure> {
        let Some(&(_, first)) = form.terms.first() else {
            return if form.constant >= 0 {
                Ok(())
            } else {
                Err(Failure::Conflict(vec![(reason, 1)]))
            };
        };
        let is_upper = first < 0;
        let sign = first.signum();
        let terms = form.terms.iter().map(|(v, f)| (*v, f * sign)).collect();
        let column = self.column(terms);
        // sign * column + constant >= 0
        let value = -form.constant * sign;
        let bound = Some(Bound { value, reason });
        let (lower, upper) = (self.lower[column], self.upper[column]);
        if is_upper {
            if upper.is_some_and(|b| b.value <= value) {
                return Ok(());
            }
            self.trail.push((column, true, upper));
            self.upper[column] = bound;
            if let Some(other) = lower.filter(|b| b.value > value) {
                return Err(Failure::Conflict(vec![(reason, 1), (other.reason, 1)]));
            }
            if self.row_of[column].is_none() && self.value[column].compare(value).is_gt() {
                self.set(column, Fraction::whole(value));
            }
        } else {
            if lower.is_some_and(|b| b.value >= value) {
                return Ok(());
            }
            self.trail.push((column, false, lower));
            self.lower[column] = bound;
            if let Some(other) = upper.filter(|b| b.value < value) {
                return Err(Failure::Conflict(vec![(reason, 1), (other.reason, 1)]));
            }
            if self.row_of[column].is_none() && self.value[column].compare(value).is_lt() {
                self.set(column, Fraction::whole(value));
            }
        }
        Ok(())
    }

    /// Gives a column that is not basic another value.
    fn set(&mut self, column: usize, value: Fraction) {
        let by = value.minus(self.value[column]);
        self.value[column] = value;
        for row in &self.rows {
            if let Ok(at) = row.terms.binary_search_by_key(&column, |t| t.0) {
                let new = self.value[row.basic].plus(row.terms[at].1.times(by));
                self.lost |= new.is_lost();
                self.value[row.basic] = new;
            }
        }
    }

    /// Finds values within all bounds.
    ///
    /// # Errors
    /// There are none, or they were not found.
    pub fn check(&mut self) -> Result<(), Failure> {
        loop {
            if self.lost || self.work == 0 {
                return Err(Failure::Lost);
            }
            let mut worst: Option<(usize, usize, bool)> = None;
            for (number, row) in self.rows.iter().enumerate() {
                let column = row.basic;
                if worst.is_some_and(|(_, least, _)| least < column) {
                    continue;
                }
                let value = self.value[column];
                let low = self.lower[column].is_some_and(|b| value.compare(b.value).is_lt());
                let high = self.upper[column].is_some_and(|b| value.compare(b.value).is_gt());
                if low || high {
                    worst = Some((number, column, high));
                }
            }
            let Some((row, column, too_high)) = worst else {
                return Ok(());
            };
            let free = |c: usize, up: bool| {
                if up {
                    self.upper[c].is_none_or(|b| self.value[c].compare(b.value) == Ordering::Less)
                } else {
                    self.lower[c]
                        .is_none_or(|b| self.value[c].compare(b.value) == Ordering::Greater)
                }
            };
            // Whether a column of the row has to rise for the basic one to come to its bound.
            let rises = |factor: Fraction| (factor.sign() > 0) != too_high;
            let entering = (self.rows[row].terms.iter())
                .find(|(c, factor)| free(*c, rises(*factor)))
                .copied();
            let Some((entering, factor)) = entering else {
                return Err(self.conflict(row, column, too_high));
            };
            let bound = if too_high {
                self.upper[column]
            } else {
                self.lower[column]
            };
            let Some(bound) = bound else {
                return Err(Failure::Lost);
            };
            let target = Fraction::whole(bound.value);
            let by = target.minus(self.value[column]).over(factor);
            let value = self.value[entering].plus(by);
            let terms = self.pivot(row, entering, factor);
            self.work = self.work.saturating_sub(1 + terms / TERMS_OF_PIVOT);
            // `column` is not basic any more; `entering` is, and follows it.
            self.value[entering] = value;
            self.value[column] = target;
            let entering_row = row;
            for (number, other) in self.rows.iter().enumerate() {
                if number == entering_row {
                    continue;
                }
                if other.terms.binary_search_by_key(&column, |t| t.0).is_ok() {
                    let mut sum = Fraction::ZERO;
                    for (c, f) in &other.terms {
                        sum = sum.plus(self.value[*c].times(*f));
                    }
                    self.lost |= sum.is_lost();
                    self.value[other.basic] = sum;
                }
            }
            self.lost |= value.is_lost();
        }
    }

    /// Makes `entering` basic in a row in which it has this factor; gives how many terms that changes.
    fn pivot(&mut self, row: usize, entering: usize, factor: Fraction) -> u64 {
        let mut changed = 0;
        let leaving = self.rows[row].basic;
        let mut terms = std::mem::take(&mut self.rows[row].terms);
        // leaving = factor * entering + rest: entering = leaving / factor - rest / factor
        let inverse = Fraction::ONE.over(factor);
        terms.retain(|(c, _)| *c != entering);
        for (_, f) in &mut terms {
            *f = f.times(inverse).negated();
        }
        let at = terms.partition_point(|(c, _)| *c < leaving);
        terms.insert(at, (leaving, inverse));
        for (number, other) in self.rows.iter_mut().enumerate() {
            if number == row {
                continue;
            }
            if let Ok(at) = other.terms.binary_search_by_key(&entering, |t| t.0) {
                changed += other.terms.len() + terms.len();
                let (_, f) = other.terms.remove(at);
                add_to(&mut other.terms, f, &terms);
                self.lost |= other.terms.iter().any(|(_, f)| f.is_lost());
            }
        }
        self.lost |= terms.iter().any(|(_, f)| f.is_lost());
        self.rows[row] = Row {
            basic: entering,
            terms,
        };
        self.row_of[leaving] = None;
        self.row_of[entering] = Some(row);
        changed as u64
    }

    /// Why a basic column cannot come to its bound: every column of its row is at one of its own.
    fn conflict(&self, row: usize, column: usize, too_high: bool) -> Failure {
        let mut parts: Vec<(Hypothesis, Fraction)> = Vec::new();
        let own = if too_high {
            self.upper[column]
        } else {
            self.lower[column]
        };
        let Some(own) = own else {
            return Failure::Lost;
        };
        parts.push((own.reason, Fraction::ONE));
        for (c, factor) in &self.rows[row].terms {
            let rises = (factor.sign() > 0) != too_high;
            let bound = if rises {
                self.upper[*c]
            } else {
                self.lower[*c]
            };
            let Some(bound) = bound else {
                return Failure::Lost;
            };
            let factor = if factor.sign() < 0 {
                factor.negated()
            } else {
                *factor
            };
            parts.push((bound.reason, factor));
        }
        // Whole numbers: times the least common multiple of the denominators.
        let mut common = 1i128;
        for (_, factor) in &parts {
            let d = factor.denominator();
            if d == 0 {
                return Failure::Lost;
            }
            let shared = greatest_divisor(&[(0, common), (0, d)]);
            match (common / shared).checked_mul(d) {
                Some(next) => common = next,
                None => return Failure::Lost,
            }
        }
        let mut whole = Vec::with_capacity(parts.len());
        for (reason, factor) in parts {
            match factor
                .numerator()
                .checked_mul(common / factor.denominator())
            {
                Some(factor) => whole.push((reason, factor)),
                None => return Failure::Lost,
            }
        }
        Failure::Conflict(whole)
    }
}
