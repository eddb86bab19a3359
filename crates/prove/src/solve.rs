//! The solver: whether the facts of a [`Problem`] contradict each other, with a proof.
//!
//! Everything is driven by a point that fulfils what was assumed so far (`simplex`): only what it breaks is
//! looked at. In this order:
//! 1. products of two assumed inequalities that the point breaks are assumed too (the
//!    reformulation-linearisation of Sherali and Adams, SIAM J. Discrete Math. 3, 1990; as lazily as cuts);
//! 2. a disjunction that the point breaks is split, the one with the fewest parts that are possible;
//! 3. where products that share a factor disagree with the sum of their other factors, the sign of that sum
//!    is split; then where two disagree with the order of their other factors, that order;
//! 4. what is not a whole number is branched on: how far the same numbers of two threads are apart, then the
//!    variable or the form with the fewest values;
//! 5. a factor of a product is fixed at its value.
//!
//! A case whose proof does not use what the case assumed is a proof of the whole: the others are left out.
//! So each proof holds little beside what it needs, and the facts it uses are the reason for the answer.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::certificate::Proof;
use crate::linear::{Formula, Linear, Problem, Var};
use crate::rational::Fraction;
use crate::simplex::{Failure, Hypothesis, Simplex, tightened};

/// What the solver found.
#[derive(Debug)]
pub enum Answer {
    /// The facts contradict each other.
    Refuted(Proof),
    /// They do not: values of all variables.
    Values(Vec<i128>),
    /// It was not found out within the limits.
    Unknown,
}

/// How much the solver tries: counts, so that an answer does not depend on the machine.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Splits and branches.
    pub nodes: u32,
    /// Pivots of the simplex; one that changes many terms counts as several.
    pub pivots: u64,
}

/// Looks for a proof that a problem has no answer, or for an answer.
///
/// ```
/// use invar_prove::linear::{Formula, Linear, Problem};
/// use invar_prove::solve::{Answer, Limits, solve};
///
/// // 2x is odd.
/// let mut problem = Problem { names: vec!["x".into(), "y".into()], ..Problem::default() };
/// let twice = |var| Linear::var(var).times(2).expect("it is small");
/// let odd = twice(1).shifted(1).expect("it is small");
/// problem.facts.push(Formula::eq(&twice(0), &odd).expect("it is small"));
/// let limits = Limits { nodes: 100, pivots: 1000 };
/// let Answer::Refuted(proof) = solve(&problem, limits) else { panic!("no number is both") };
/// assert!(invar_prove::certificate::check(&problem, &proof).is_ok());
/// ```
pub fn solve(problem: &Problem, limits: Limits) -> Answer {
    solve_counted(problem, limits).0
}

/// As [`solve`], with how many pivots that took.
pub fn solve_counted(problem: &Problem, limits: Limits) -> (Answer, u64) {
    let mut search = Search {
        problem,
        simplex: Simplex::new(problem.names.len(), limits.pivots),
        known: Vec::new(),
        factors: Factors::of(problem),
        decided: Vec::new(),
        nodes: limits.nodes,
    };
    let mut conflict = None;
    for fact in &problem.facts {
        if let Err(why) = search.learn(fact) {
            conflict = Some(why);
            break;
        }
    }
    let outcome = match conflict {
        Some(failure) => search.closed(failure),
        None => search.node(0),
    };
    let answer = match outcome {
        Outcome::Closed(proof, _) => Answer::Refuted(proof),
        Outcome::Values(values) => match problem.is_answered_by(&values) {
            Some(true) => Answer::Values(values),
            Some(false) | None => Answer::Unknown,
        },
        Outcome::Unknown => Answer::Unknown,
    };
    (answer, limits.pivots - search.simplex.work)
}

#[derive(Debug)]
enum Known {
    AtLeast(Linear),
    Any(Vec<Formula>),
}

#[derive(Debug)]
enum Outcome {
    /// With the hypotheses that the proof uses.
    Closed(Proof, BTreeSet<Hypothesis>),
    Values(Vec<i128>),
    Unknown,
}

/// The variables that are factors, and with which others each makes a product that has a variable.
#[derive(Debug)]
struct Factors {
    /// Factor; pairs of a partner and their product.
    partners: Vec<(Var, Vec<(Var, Var)>)>,
    /// Product; pairs of a factor and its partner.
    of: HashMap<Var, Vec<(Var, Var)>>,
}

impl Factors {
    fn of(problem: &Problem) -> Factors {
        let products = &problem.products;
        let mut single: BTreeSet<Var> = BTreeSet::new();
        for factors in products.factors.values() {
            single.extend(factors);
        }
        let mut partners = Vec::new();
        let mut of: HashMap<Var, Vec<(Var, Var)>> = HashMap::new();
        for factor in single {
            let mut list = Vec::new();
            for (&product, factors) in &products.factors {
                let Some(at) = factors.iter().position(|f| *f == factor) else {
                    continue;
                };
                let mut rest = factors.clone();
                rest.remove(at);
                let partner = match rest[..] {
                    [only] => Some(only),
                    _ => products.of.get(&rest).copied(),
                };
                if let Some(partner) = partner {
                    list.push((partner, product));
                    of.entry(product).or_default().push((factor, partner));
                }
            }
            list.sort_unstable();
            partners.push((factor, list));
        }
        Factors { partners, of }
    }
}

struct Search<'a> {
    problem: &'a Problem,
    simplex: Simplex,
    known: Vec<Known>,
    factors: Factors,
    /// Disjunctions that were split already.
    decided: Vec<Hypothesis>,
    nodes: u32,
}

/// How deep splits may nest: the search and the checker recurse.
const MAX_DEPTH: u32 = 120;
/// How many products are assumed at once.
const PRODUCTS_AT_ONCE: usize = 6;
/// How often products are looked for before anything is split.
const PRODUCT_ITERATIONS: usize = 12;
/// Factors are fixed at values at most so far above their lower bounds first.
const SMALL: i128 = 40;
/// How many disjunctions are tried out before one is split.
const TRIED: usize = 6;

impl Search<'_> {
    /// Adds what a fact says, in the order in which a proof numbers it. All of it is added, also after a
    /// conflict, so that numbers stay what they are.
    fn learn(&mut self, fact: &Formula) -> Result<(), Failure> {
        match fact {
            Formula::All(parts) => {
                let mut first = Ok(());
                for part in parts {
                    let done = self.learn(part);
                    if first.is_ok() {
                        first = done;
                    }
                }
                first
            }
            Formula::AtLeast(form) => self.add(tightened(form)),
            Formula::Any(parts) => {
                self.known.push(Known::Any(parts.clone()));
                Ok(())
            }
        }
    }

    fn add(&mut self, form: Linear) -> Result<(), Failure> {
        let number = self.known.len();
        let done = self.simplex.assume(&form, number);
        self.known.push(Known::AtLeast(form));
        done
    }

    fn closed(&self, failure: Failure) -> Outcome {
        match failure {
            Failure::Lost => Outcome::Unknown,
            Failure::Conflict(parts) => {
                let used = parts.iter().map(|(h, _)| *h).collect();
                Outcome::Closed(Proof::Sum(parts), used)
            }
        }
    }

    fn back_to(&mut self, mark: (usize, usize)) {
        self.simplex.back_to(mark.0);
        self.known.truncate(mark.1);
    }

    fn mark(&self) -> (usize, usize) {
        (self.simplex.mark(), self.known.len())
    }

    /// Decides what is assumed now.
    fn node(&mut self, depth: u32) -> Outcome {
        if let Err(failure) = self.simplex.check() {
            return self.closed(failure);
        }
        // Each with what it was made of.
        let mut made: Vec<(Hypothesis, Hypothesis, Hypothesis)> = Vec::new();
        let mut outcome = None;
        'iterations: for _ in 0..PRODUCT_ITERATIONS {
            let mut found = self.broken_products(false);
            if found.is_empty() {
                found = self.broken_products(true);
            }
            if found.is_empty() {
                break;
            }
            for (a, b, form) in found {
                let label = self.known.len();
                made.push((label, a, b));
                if let Err(failure) = self.add(tightened(&form)) {
                    outcome = Some(self.closed(failure));
                    break 'iterations;
                }
            }
            if let Err(failure) = self.simplex.check() {
                outcome = Some(self.closed(failure));
                break;
            }
        }
        let outcome = match outcome {
            Some(outcome) => outcome,
            None => self.split(depth),
        };
        match outcome {
            Outcome::Closed(mut proof, mut used) => {
                for (label, a, b) in made.into_iter().rev() {
                    if used.remove(&label) {
                        used.extend([a, b]);
                        let then = Box::new(proof);
                        proof = Proof::Product { a, b, label, then };
                    }
                }
                Outcome::Closed(proof, used)
            }
            other @ (Outcome::Values(_) | Outcome::Unknown) => other,
        }
    }

    /// Products of known inequalities that the point breaks, the most broken first.
    fn broken_products(&self, upper_too: bool) -> Vec<(Hypothesis, Hypothesis, Linear)> {
        let mut found: Vec<(Fraction, Hypothesis, Hypothesis, Linear)> = Vec::new();
        for (factor, partners) in &self.factors.partners {
            // `factor - bound >= 0` and `bound - factor >= 0`
            let lower = self.simplex.lower(*factor).map(|(b, h)| (1, -b, h));
            let lower = lower.filter(|(_, b, _)| b.abs() < 1 << 20);
            let upper = self.simplex.upper(*factor).map(|(b, h)| (-1, b, h));
            let upper = upper.filter(|(_, b, _)| *b < 1 << 20);
            for (number, known) in self.known.iter().enumerate() {
                let Known::AtLeast(form) = known else {
                    continue;
                };
                let product_of = |var: Var| {
                    let at = partners.binary_search_by_key(&var, |p| p.0).ok()?;
                    Some(partners[at].1)
                };
                if form.terms.is_empty() || form.terms.len() > 12 || form.constant.abs() > 1 << 20 {
                    continue;
                }
                let products: Option<Vec<(Var, i128)>> = (form.terms.iter())
                    .map(|(var, f)| Some((product_of(*var)?, *f)))
                    .collect();
                let Some(products) = products else {
                    continue;
                };
                let bounds = if upper_too {
                    [lower, upper]
                } else {
                    [lower, None]
                };
                for (sign, constant, reason) in bounds.into_iter().flatten() {
                    let broken = self.product(*factor, sign, constant, form, &products);
                    if let Some((value, form)) = broken {
                        found.push((value, reason, number, form));
                    }
                }
            }
        }
        found.sort_by(|a, b| {
            let order = a.0.minus(b.0).sign().cmp(&0);
            order.then_with(|| a.3.cmp(&b.3))
        });
        found.dedup_by(|a, b| a.3 == b.3);
        found.truncate(PRODUCTS_AT_ONCE);
        found.into_iter().map(|(_, a, b, f)| (a, b, f)).collect()
    }

    /// `(sign * factor + constant) * form`, if the point breaks it.
    fn product(
        &self,
        factor: Var,
        sign: i128,
        constant: i128,
        form: &Linear,
        products: &[(Var, i128)],
    ) -> Option<(Fraction, Linear)> {
        let mut terms = products.to_vec();
        terms.sort_unstable();
        let mut out = Linear { terms, constant: 0 };
        out = out.plus(form.constant, &Linear::var(factor))?;
        out = out.times(sign)?.plus(constant, form)?;
        if out.terms.is_empty() {
            return None;
        }
        let value = self.simplex.evaluate(&out);
        (value.sign() < 0 && !value.is_lost()).then_some((value, out))
    }

    fn holds(&self, formula: &Formula) -> bool {
        match formula {
            Formula::AtLeast(form) => self.simplex.evaluate(form).sign() >= 0,
            Formula::All(parts) => parts.iter().all(|p| self.holds(p)),
            Formula::Any(parts) => parts.iter().any(|p| self.holds(p)),
        }
    }

    /// Splits what the point breaks; nothing broken is an answer.
    fn split(&mut self, depth: u32) -> Outcome {
        if self.nodes == 0 || depth > MAX_DEPTH {
            return Outcome::Unknown;
        }
        self.nodes -= 1;
        let broken: Vec<Hypothesis> = (0..self.known.len())
            .filter(|h| match &self.known[*h] {
                Known::Any(parts) => {
                    !self.decided.contains(h) && !parts.iter().any(|p| self.holds(p))
                }
                Known::AtLeast(_) => false,
            })
            .collect();
        if !broken.is_empty() {
            return self.split_any(&broken, depth);
        }
        if let Some(form) = self.disputed_sum().or_else(|| self.disputed_order()) {
            return self.branch(form, depth, false);
        }
        // The same number of two threads: how far they are apart says more than what either is.
        for &(a, b) in &self.problem.twins {
            let apart = self.simplex.value(a).minus(self.simplex.value(b));
            if apart.is_whole() {
                continue;
            }
            let form = Linear::var(a).plus(-1, &Linear::var(b));
            let form = form.and_then(|form| form.shifted(-apart.floor() - 1));
            return match form {
                Some(form) => self.branch(form, depth, false),
                None => Outcome::Unknown,
            };
        }
        // The one with the fewest values: a quotient, a carry or a remainder decides what the large ones can
        // be, and not the other way round.
        if let Some((form, value)) = self.simplex.fractional() {
            return match form.shifted(-value.floor() - 1) {
                Some(form) => self.branch(form, depth, false),
                None => Outcome::Unknown,
            };
        }
        self.split_product(depth)
    }

    /// Splits a disjunction that the point breaks.
    fn split_any(&mut self, broken: &[Hypothesis], depth: u32) -> Outcome {
        struct Tried {
            of: Hypothesis,
            cases: Vec<Option<(Proof, BTreeSet<Hypothesis>)>>,
            open: usize,
        }
        let mut best: Option<Tried> = None;
        for &of in broken.iter().take(TRIED) {
            let Known::Any(parts) = &self.known[of] else {
                continue;
            };
            let parts = parts.clone();
            let mut cases = Vec::new();
            let mut open = 0;
            for part in &parts {
                let mark = self.mark();
                let done = self.learn(part).and_then(|()| self.simplex.check());
                let case = match done {
                    Ok(()) => None,
                    Err(failure) => match self.closed(failure) {
                        Outcome::Closed(proof, used) => Some((proof, used)),
                        Outcome::Values(_) | Outcome::Unknown => None,
                    },
                };
                let label = mark.1;
                self.back_to(mark);
                if let Some((proof, used)) = &case
                    && !used.iter().any(|h| *h >= label)
                {
                    return Outcome::Closed(proof.clone(), used.clone());
                }
                open += usize::from(case.is_none());
                cases.push(case);
            }
            if best.as_ref().is_none_or(|b| open < b.open) {
                best = Some(Tried { of, cases, open });
            }
            if open <= 1 {
                break;
            }
        }
        let Some(tried) = best else {
            return Outcome::Unknown;
        };
        let Known::Any(parts) = &self.known[tried.of] else {
            return Outcome::Unknown;
        };
        let parts = parts.clone();
        let label = self.known.len();
        let mut used = BTreeSet::from([tried.of]);
        let mut proofs = Vec::new();
        let mut unknown = false;
        for (part, case) in parts.iter().zip(tried.cases) {
            let (proof, its) = match case {
                Some(closed) => closed,
                None => {
                    let mark = self.mark();
                    self.decided.push(tried.of);
                    let outcome = match self.learn(part) {
                        Ok(()) => self.node(depth + 1),
                        Err(failure) => self.closed(failure),
                    };
                    self.decided.pop();
                    self.back_to(mark);
                    match outcome {
                        Outcome::Closed(proof, its) => (proof, its),
                        Outcome::Values(values) => return Outcome::Values(values),
                        Outcome::Unknown => {
                            if self.nodes == 0 {
                                return Outcome::Unknown;
                            }
                            // Another case may still have an answer.
                            unknown = true;
                            continue;
                        }
                    }
                }
            };
            if !its.iter().any(|h| *h >= label) {
                return Outcome::Closed(proof, its);
            }
            used.extend(its.into_iter().filter(|h| *h < label));
            proofs.push(proof);
        }
        if unknown {
            return Outcome::Unknown;
        }
        let (of, cases) = (tried.of, proofs);
        Outcome::Closed(Proof::Cases { of, label, cases }, used)
    }

    /// `form >= 0` or `form <= -1`: the second first, if asked.
    fn branch(&mut self, form: Linear, depth: u32, below_first: bool) -> Outcome {
        let Some(negated) = form.times(-1).and_then(|f| f.shifted(-1)) else {
            return Outcome::Unknown;
        };
        let label = self.known.len();
        let mut used = BTreeSet::new();
        let mut proofs = [None, None];
        let order = if below_first { [1, 0] } else { [0, 1] };
        let mut unknown = false;
        for side in order {
            let assumed = [&form, &negated][side];
            let mark = self.mark();
            let outcome = match self.add(tightened(assumed)) {
                Ok(()) => self.node(depth + 1),
                Err(failure) => self.closed(failure),
            };
            self.back_to(mark);
            match outcome {
                Outcome::Closed(proof, its) => {
                    if !its.contains(&label) {
                        return Outcome::Closed(proof, its);
                    }
                    used.extend(its.into_iter().filter(|h| *h != label));
                    proofs[side] = Some(Box::new(proof));
                }
                Outcome::Values(values) => return Outcome::Values(values),
                Outcome::Unknown => {
                    if self.nodes == 0 {
                        return Outcome::Unknown;
                    }
                    unknown = true;
                }
            }
        }
        match proofs {
            [Some(at_least), Some(below)] if !unknown => {
                let proof = Proof::Branch {
                    form,
                    label,
                    at_least,
                    below,
                };
                Outcome::Closed(proof, used)
            }
            _ => Outcome::Unknown,
        }
    }

    /// Every value is whole and no disjunction is broken: looks at products that are not the product of
    /// their factors.
    fn split_product(&mut self, depth: u32) -> Outcome {
        let whole = |var: Var| self.simplex.value(var).numerator();
        let mut wrong: Vec<(Var, &[Var])> = Vec::new();
        for (&product, factors) in &self.problem.products.factors {
            let mut value = Some(1i128);
            for factor in factors {
                value = value.and_then(|v| v.checked_mul(whole(*factor)));
            }
            if value != Some(whole(product)) {
                wrong.push((product, factors));
            }
        }
        if wrong.is_empty() {
            let all = 0..self.problem.names.len() as Var;
            return Outcome::Values(all.map(whole).collect());
        }
        wrong.sort_unstable();
        // A factor that is not fixed, the one with the smallest value.
        let mut open: Vec<(i128, Var)> = Vec::new();
        for (_, factors) in &wrong {
            for &factor in *factors {
                let (low, high) = (self.simplex.lower(factor), self.simplex.upper(factor));
                let fixed = matches!((low, high), (Some(l), Some(h)) if l.0 == h.0);
                if !fixed {
                    open.push((whole(factor).abs(), factor));
                }
            }
        }
        let Some(&(_, factor)) = open.iter().min() else {
            return Outcome::Unknown;
        };
        // Small values keep numbers small, and launches that can be run.
        let low = self.simplex.lower(factor).map_or(0, |b| b.0);
        let value = whole(factor).min(low.saturating_add(SMALL));
        let at_most = self.simplex.upper(factor).is_some_and(|b| b.0 <= value);
        // First where it has this value at most; there, where it has this value at least.
        let form = if at_most { -value } else { -value - 1 };
        match Linear::var(factor).shifted(form) {
            Some(form) => self.branch(form, depth, !at_most),
            None => Outcome::Unknown,
        }
    }

    /// A sum that is multiplied by a factor in what is known, if the products disagree with it and its sign
    /// is open: that which disagrees most. Rows of a matrix are such sums: what is a row apart is as far
    /// apart as a row is long, whatever the sum is made of.
    fn disputed_sum(&self) -> Option<Linear> {
        let value = |var: Var| self.simplex.value(var);
        let mut best: Option<(Fraction, Linear)> = None;
        for known in &self.known {
            let Known::AtLeast(form) = known else {
                continue;
            };
            // By factor: the sum, and what its products come to.
            let mut sums: BTreeMap<Var, (Vec<(Var, i128)>, Fraction)> = BTreeMap::new();
            for &(var, f) in &form.terms {
                for &(factor, partner) in self.factors.of.get(&var).into_iter().flatten() {
                    let (terms, products) = sums
                        .entry(factor)
                        .or_insert_with(|| (Vec::new(), Fraction::ZERO));
                    terms.push((partner, f));
                    *products = products.plus(value(var).times(Fraction::whole(f)));
                }
            }
            for (factor, (mut terms, products)) in sums {
                // Of two the order is split elsewhere.
                if terms.len() < 3 {
                    continue;
                }
                terms.sort_unstable();
                let sum = Linear { terms, constant: 0 };
                let of_sum = self.simplex.evaluate(&sum);
                let gap = products.minus(of_sum.times(value(factor)));
                if gap.is_lost() || gap.sign() == 0 {
                    continue;
                }
                let gap = if gap.sign() < 0 { gap.negated() } else { gap };
                let is_better = (best.as_ref()).is_none_or(|(most, _)| gap.minus(*most).sign() > 0);
                if is_better && let Some(form) = self.open_sign(&tightened(&sum), of_sum) {
                    best = Some((gap, form));
                }
            }
        }
        best.map(|(_, form)| form)
    }

    /// The difference of two partners of a factor whose products disagree with it, if its sign is open:
    /// that of the pair that disagrees most.
    fn disputed_order(&self) -> Option<Linear> {
        let value = |var: Var| self.simplex.value(var);
        let mut best: Option<(bool, Fraction, Linear)> = None;
        for (factor, partners) in &self.factors.partners {
            for (i, (x, xy)) in partners.iter().enumerate() {
                for (z, zy) in &partners[i + 1..] {
                    let order = value(*x).minus(value(*z));
                    let expected = order.times(value(*factor));
                    let gap = value(*xy).minus(value(*zy)).minus(expected);
                    if gap.is_lost() || gap.sign() == 0 {
                        continue;
                    }
                    let gap = if gap.sign() < 0 { gap.negated() } else { gap };
                    let twins = self.problem.twins.contains(&(*x, *z));
                    let is_better = best.as_ref().is_none_or(|(are, most, _)| {
                        twins && !are || twins == *are && gap.minus(*most).sign() > 0
                    });
                    if is_better && let Some(form) = self.open_order(*x, *z, order) {
                        best = Some((twins, gap, form));
                    }
                }
            }
        }
        best.map(|(_, _, form)| form)
    }

    /// A form that splits the order of two variables whose difference has this value, unless what is known
    /// says as much.
    fn open_order(&self, x: Var, z: Var, order: Fraction) -> Option<Linear> {
        self.open_sign(&Linear::var(x).plus(-1, &Linear::var(z))?, order)
    }

    /// A form that splits the sign of one that has this value, unless what is known says as much.
    fn open_sign(&self, ahead: &Linear, value: Fraction) -> Option<Linear> {
        let behind = ahead.times(-1)?;
        let above = ahead.shifted(-1)?;
        let is_known = |wanted: &Linear| {
            self.known.iter().any(|known| match known {
                Known::AtLeast(known) => {
                    known.terms == wanted.terms && known.constant <= wanted.constant
                }
                Known::Any(_) => false,
            })
        };
        // Above 0 or not; then at least 0 or not.
        let below = behind.shifted(-1)?;
        let splits = [(above, behind), (ahead.clone(), below)];
        let splits: Vec<Linear> = (splits.into_iter())
            .filter(|(yes, no)| !is_known(yes) && !is_known(no))
            .map(|(yes, _)| yes)
            .collect();
        match splits.len() {
            0 => None,
            1 => splits.into_iter().next(),
            _ if value.sign() > 0 => splits.into_iter().next(),
            _ => splits.into_iter().nth(1),
        }
    }
}
