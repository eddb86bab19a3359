//! What a query to the solver is made of: linear forms over integers, formulas of inequalities, and
//! products of variables. Data only: the solver and the checker of its proofs have this in common and
//! nothing else.

use std::collections::{BTreeSet, HashMap};

/// An integer variable of a [`Problem`].
pub type Var = u32;

/// Forms with larger numbers are not built: arithmetic on them could overflow.
const LARGEST: i128 = 1 << 96;

/// An integer linear form: a sum of multiples of variables, and a constant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Linear {
    /// Variables with their coefficients, none of them 0, in the order of the variables.
    pub terms: Vec<(Var, i128)>,
    /// The constant.
    pub constant: i128,
}

impl Linear {
    /// A number.
    pub fn constant(constant: i128) -> Linear {
        let terms = Vec::new();
        Linear { terms, constant }
    }

    /// A variable.
    pub fn var(var: Var) -> Linear {
        let terms = vec![(var, 1)];
        Linear { terms, constant: 0 }
    }

    /// The number that it is, if it has no variable.
    pub fn as_constant(&self) -> Option<i128> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// `self + factor * other`; `None` where numbers get too large.
    pub fn plus(&self, factor: i128, other: &Linear) -> Option<Linear> {
        let mut terms = Vec::with_capacity(self.terms.len() + other.terms.len());
        let (mut i, mut j) = (0, 0);
        loop {
            let next = match (self.terms.get(i), other.terms.get(j)) {
                (None, None) => break,
                (Some(&(v, a)), Some(&(w, b))) if v == w => {
                    (i, j) = (i + 1, j + 1);
                    (v, a.checked_add(b.checked_mul(factor)?)?)
                }
                (Some(&(v, a)), Some(&(w, _))) if v < w => {
                    i += 1;
                    (v, a)
                }
                (Some(&(v, a)), None) => {
                    i += 1;
                    (v, a)
                }
                (_, Some(&(w, b))) => {
                    j += 1;
                    (w, b.checked_mul(factor)?)
                }
            };
            if next.1.abs() > LARGEST {
                return None;
            }
            if next.1 != 0 {
                terms.push(next);
            }
        }
        let constant = (self.constant).checked_add(other.constant.checked_mul(factor)?)?;
        (constant.abs() <= LARGEST).then_some(Linear { terms, constant })
    }

    /// `factor * self`; `None` where numbers get too large.
    pub fn times(&self, factor: i128) -> Option<Linear> {
        Linear::default().plus(factor, self)
    }

    /// `self + number`; `None` where numbers get too large.
    pub fn shifted(&self, number: i128) -> Option<Linear> {
        self.plus(1, &Linear::constant(number))
    }

    /// What it is where the variables have these values; `None` where numbers get too large.
    pub fn value(&self, values: &[i128]) -> Option<i128> {
        let mut sum = self.constant;
        for &(var, factor) in &self.terms {
            sum = sum.checked_add(values[var as usize].checked_mul(factor)?)?;
        }
        Some(sum)
    }
}

/// A formula in negation normal form. Over integers the negation of `form >= 0` is `-form - 1 >= 0`, so
/// none needs a sign of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Formula {
    /// `form >= 0`.
    AtLeast(Linear),
    /// All of them: with none, true.
    All(Vec<Formula>),
    /// One of them: with none, false.
    Any(Vec<Formula>),
}

impl Formula {
    /// What always holds.
    pub const TRUE: Formula = Formula::All(Vec::new());
    /// What never holds.
    pub const FALSE: Formula = Formula::Any(Vec::new());

    /// Whether it is [`Formula::TRUE`].
    pub fn is_true(&self) -> bool {
        matches!(self, Formula::All(all) if all.is_empty())
    }

    /// Whether it is [`Formula::FALSE`].
    pub fn is_false(&self) -> bool {
        matches!(self, Formula::Any(any) if any.is_empty())
    }

    /// `form >= 0`, decided where it has no variable.
    pub fn at_least(form: Linear) -> Formula {
        match form.as_constant() {
            Some(number) if number >= 0 => Formula::TRUE,
            Some(_) => Formula::FALSE,
            None => Formula::AtLeast(form),
        }
    }

    /// `a <= b`.
    pub fn le(a: &Linear, b: &Linear) -> Option<Formula> {
        b.plus(-1, a).map(Formula::at_least)
    }

    /// `a < b`.
    pub fn lt(a: &Linear, b: &Linear) -> Option<Formula> {
        b.plus(-1, a)?.shifted(-1).map(Formula::at_least)
    }

    /// `a == b`.
    pub fn eq(a: &Linear, b: &Linear) -> Option<Formula> {
        Some(Formula::all([Formula::le(a, b)?, Formula::le(b, a)?]))
    }

    /// `a != b`.
    pub fn ne(a: &Linear, b: &Linear) -> Option<Formula> {
        Some(Formula::any([Formula::lt(a, b)?, Formula::lt(b, a)?]))
    }

    /// All of them.
    pub fn all(parts: impl IntoIterator<Item = Formula>) -> Formula {
        let mut out = Vec::new();
        for part in parts {
            match part {
                Formula::All(inner) => out.extend(inner),
                part if part.is_false() => return Formula::FALSE,
                part => out.push(part),
            }
        }
        match out.len() {
            1 => out.remove(0),
            _ => Formula::All(out),
        }
    }

    /// One of them.
    pub fn any(parts: impl IntoIterator<Item = Formula>) -> Formula {
        let mut out = Vec::new();
        for part in parts {
            match part {
                Formula::Any(inner) => out.extend(inner),
                part if part.is_true() => return Formula::TRUE,
                part => out.push(part),
            }
        }
        match out.len() {
            1 => out.remove(0),
            _ => Formula::Any(out),
        }
    }

    /// Its negation; `None` where numbers get too large.
    pub fn negated(&self) -> Option<Formula> {
        Some(match self {
            Formula::AtLeast(form) => Formula::at_least(form.times(-1)?.shifted(-1)?),
            Formula::All(parts) => {
                let parts: Option<Vec<Formula>> = parts.iter().map(Formula::negated).collect();
                Formula::any(parts?)
            }
            Formula::Any(parts) => {
                let parts: Option<Vec<Formula>> = parts.iter().map(Formula::negated).collect();
                Formula::all(parts?)
            }
        })
    }

    /// Whether it holds where the variables have these values; `None` where numbers get too large.
    pub fn holds(&self, values: &[i128]) -> Option<bool> {
        Some(match self {
            Formula::AtLeast(form) => form.value(values)? >= 0,
            Formula::All(parts) => {
                for part in parts {
                    if !part.holds(values)? {
                        return Some(false);
                    }
                }
                true
            }
            Formula::Any(parts) => {
                for part in parts {
                    if part.holds(values)? {
                        return Some(true);
                    }
                }
                false
            }
        })
    }
}

/// Variables that stand for products of others.
#[derive(Clone, Debug, Default)]
pub struct Products {
    /// By variable, the factors of its product, in order; no factor is a product itself.
    pub factors: HashMap<Var, Vec<Var>>,
    /// The variable of a product, by its factors.
    pub of: HashMap<Vec<Var>, Var>,
}

impl Products {
    /// The factors of a variable: itself, unless it stands for a product.
    pub fn factors(&self, var: Var) -> &[Var] {
        self.factors.get(&var).map_or(&[], Vec::as_slice)
    }

    /// The variable that stands for the product of two, if there is one.
    pub fn find(&self, a: Var, b: Var) -> Option<Var> {
        self.of.get(&self.joined(a, b)).copied()
    }

    /// The factors of the product of two variables.
    pub fn joined(&self, a: Var, b: Var) -> Vec<Var> {
        let mut all = Vec::new();
        for var in [a, b] {
            match self.factors.get(&var) {
                Some(factors) => all.extend_from_slice(factors),
                None => all.push(var),
            }
        }
        all.sort_unstable();
        all
    }
}

/// A question: can the variables have integer values so that every fact holds, and every variable that
/// stands for a product has its value?
#[derive(Clone, Debug, Default)]
pub struct Problem {
    /// What the variables are called, for messages.
    pub names: Vec<String>,
    /// Those that stand for products.
    pub products: Products,
    /// What must hold.
    pub facts: Vec<Formula>,
    /// Pairs of variables, the smaller first, that are the same number of one thread and of another: a
    /// hint where to look first.
    pub twins: BTreeSet<(Var, Var)>,
}

impl Problem {
    /// Whether these values are an answer; `None` where numbers get too large.
    pub fn is_answered_by(&self, values: &[i128]) -> Option<bool> {
        for (&var, factors) in &self.products.factors {
            let mut product = 1i128;
            for &factor in factors {
                product = product.checked_mul(values[factor as usize])?;
            }
            if product != values[var as usize] {
                return Some(false);
            }
        }
        for fact in &self.facts {
            if !fact.holds(values)? {
                return Some(false);
            }
        }
        Some(true)
    }
}

/// That an index is none of those before 0, nor of those from `end` on.
pub fn within(index: &Linear, end: &Linear) -> Option<Formula> {
    let sides = [
        Formula::le(&Linear::constant(0), index)?,
        Formula::lt(index, end)?,
    ];
    Some(Formula::all(sides))
}
