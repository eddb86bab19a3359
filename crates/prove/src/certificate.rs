//! Proofs that a [`Problem`] has no answer, and their checker.
//!
//! A proof is a tree. Its leaves are sums of hypotheses that come to a negative number (Farkas' lemma); its
//! branches split a fact that says "one of these", or an integer form into the cases `form >= 0` and
//! `form <= -1`; its other steps add a hypothesis that follows from two: the product of two forms that are
//! not negative is not negative.
//!
//! The checker shares no code with the solver. It trusts nothing but this file and the problem: every
//! number of a proof is used only as something to try.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::linear::{Formula, Linear, Problem, Var};

/// What a hypothesis is called in a proof. The facts of a problem are numbered from 0 in their order, a
/// conjunction by its parts; what a proof adds has the label that the step gives it.
pub type Label = usize;

/// A proof that hypotheses contradict each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The sum of these multiples is a negative number. Factors are positive.
    Sum(Vec<(Label, i128)>),
    /// From `a >= 0` and `b >= 0` follows that the product of the forms is at least 0.
    Product {
        /// A hypothesis.
        a: Label,
        /// Another, or the same.
        b: Label,
        /// What the product is called.
        label: Label,
        /// The rest.
        then: Box<Proof>,
    },
    /// Either `form >= 0` or `form <= -1`.
    Branch {
        /// The form.
        form: Linear,
        /// What either is called in its case.
        label: Label,
        /// Where `form >= 0`.
        at_least: Box<Proof>,
        /// Where `form <= -1`.
        below: Box<Proof>,
    },
    /// One proof for each part of a disjunction, whose hypotheses are labelled from `label` on.
    Cases {
        /// The disjunction.
        of: Label,
        /// Where the labels begin.
        label: Label,
        /// In the order of its parts.
        cases: Vec<Proof>,
    },
}

#[derive(Clone)]
enum Known {
    AtLeast(BTreeMap<Var, i128>, i128),
    Any(Vec<Formula>),
}

struct Checker<'a> {
    problem: &'a Problem,
    known: HashMap<Label, Known>,
    used: BTreeSet<Label>,
}

/// Checks a proof that a problem has no answer; gives the facts that it uses, by their places.
///
/// # Errors
/// The first step that does not hold.
pub fn check(problem: &Problem, proof: &Proof) -> Result<BTreeSet<usize>, String> {
    let mut checker = Checker {
        problem,
        known: HashMap::new(),
        used: BTreeSet::new(),
    };
    let mut label = 0;
    let mut fact_of = Vec::new();
    for (number, fact) in problem.facts.iter().enumerate() {
        checker.learn(fact, &mut label)?;
        fact_of.resize(label, number);
    }
    checker.prove(proof)?;
    let used = checker.used.iter();
    Ok(used.filter_map(|l| fact_of.get(*l)).copied().collect())
}

fn too_large() -> String {
    "a number is too large".to_string()
}

/// `form >= 0` of integers, divided by what divides its factors, the constant rounded down.
fn rounded(form: &BTreeMap<Var, i128>, constant: i128) -> (BTreeMap<Var, i128>, i128) {
    let mut divisor = 0i128;
    for factor in form.values() {
        let (mut a, mut b) = (divisor, factor.abs());
        while b != 0 {
            (a, b) = (b, a % b);
        }
        divisor = a;
    }
    if divisor <= 1 {
        return (form.clone(), constant);
    }
    let form = form.iter().map(|(v, f)| (*v, f / divisor)).collect();
    (form, constant.div_euclid(divisor))
}

/// How many hypotheses a fact is.
fn size(fact: &Formula) -> usize {
    match fact {
        Formula::All(parts) => parts.iter().map(size).sum(),
        Formula::AtLeast(_) | Formula::Any(_) => 1,
    }
}

impl Checker<'_> {
    fn learn(&mut self, fact: &Formula, label: &mut Label) -> Result<(), String> {
        match fact {
            Formula::All(parts) => {
                for part in parts {
                    self.learn(part, label)?;
                }
                return Ok(());
            }
            Formula::AtLeast(form) => {
                let mut terms = BTreeMap::new();
                for (var, factor) in &form.terms {
                    let sum = terms.entry(*var).or_insert(0i128);
                    *sum = sum.checked_add(*factor).ok_or_else(too_large)?;
                }
                terms.retain(|_, f| *f != 0);
                let (terms, constant) = rounded(&terms, form.constant);
                self.known.insert(*label, Known::AtLeast(terms, constant));
            }
            Formula::Any(parts) => {
                self.known.insert(*label, Known::Any(parts.clone()));
            }
        }
        *label += 1;
        Ok(())
    }

    fn inequality(&mut self, label: Label) -> Result<(BTreeMap<Var, i128>, i128), String> {
        self.used.insert(label);
        match self.known.get(&label) {
            Some(Known::AtLeast(form, constant)) => Ok((form.clone(), *constant)),
            Some(Known::Any(_)) => Err(format!("hypothesis {label} is not an inequality")),
            None => Err(format!("there is no hypothesis {label}")),
        }
    }

    /// The product of two forms, with the variables that stand for products in their places.
    fn product(
        &self,
        a: &(BTreeMap<Var, i128>, i128),
        b: &(BTreeMap<Var, i128>, i128),
    ) -> Result<(BTreeMap<Var, i128>, i128), String> {
        let factors = |var: Var| -> Vec<Var> {
            let product = self.problem.products.factors.get(&var);
            product.cloned().unwrap_or_else(|| vec![var])
        };
        let list = |form: &(BTreeMap<Var, i128>, i128)| -> Vec<(Vec<Var>, i128)> {
            let terms = form.0.iter().map(|(v, f)| (factors(*v), *f));
            terms.chain([(Vec::new(), form.1)]).collect()
        };
        let mut sum: BTreeMap<Vec<Var>, i128> = BTreeMap::new();
        for (x, f) in list(a) {
            for (y, g) in list(b) {
                let mut all: Vec<Var> = x.iter().chain(&y).copied().collect();
                all.sort_unstable();
                let part = f.checked_mul(g).ok_or_else(too_large)?;
                let old = sum.entry(all).or_insert(0);
                *old = old.checked_add(part).ok_or_else(too_large)?;
            }
        }
        let mut terms = BTreeMap::new();
        let mut constant = 0;
        for (all, factor) in sum {
            match &all[..] {
                [] => constant = factor,
                _ if factor == 0 => {}
                [var] => {
                    terms.insert(*var, factor);
                }
                _ => {
                    let products = &self.problem.products;
                    let found = products.of.get(&all).copied();
                    let found = found.filter(|var| products.factors.get(var) == Some(&all));
                    terms.insert(found.ok_or("a product has no variable")?, factor);
                }
            }
        }
        Ok(rounded(&terms, constant))
    }

    fn prove(&mut self, proof: &Proof) -> Result<(), String> {
        match proof {
            Proof::Sum(parts) => {
                let mut terms: BTreeMap<Var, i128> = BTreeMap::new();
                let mut constant = 0i128;
                for (label, factor) in parts {
                    if *factor <= 0 {
                        return Err("a factor of a sum is not positive".to_string());
                    }
                    let (form, number) = self.inequality(*label)?;
                    for (var, f) in form {
                        let part = f.checked_mul(*factor).ok_or_else(too_large)?;
                        let sum = terms.entry(var).or_insert(0);
                        *sum = sum.checked_add(part).ok_or_else(too_large)?;
                    }
                    let part = number.checked_mul(*factor).ok_or_else(too_large)?;
                    constant = constant.checked_add(part).ok_or_else(too_large)?;
                }
                if terms.values().any(|f| *f != 0) || constant >= 0 {
                    return Err("a sum of hypotheses is not a contradiction".to_string());
                }
                Ok(())
            }
            Proof::Product { a, b, label, then } => {
                let (a, b) = (self.inequality(*a)?, self.inequality(*b)?);
                let (form, constant) = self.product(&a, &b)?;
                self.with(*label, Known::AtLeast(form, constant), then)
            }
            Proof::Branch {
                form,
                label,
                at_least,
                below,
            } => {
                let negated = form.times(-1).and_then(|f| f.shifted(-1));
                let negated = negated.ok_or_else(too_large)?;
                let ordered = form.terms.windows(2).all(|pair| pair[0].0 < pair[1].0);
                let exists = |var: &Var| (*var as usize) < self.problem.names.len();
                if !ordered || !form.terms.iter().all(|(var, _)| exists(var)) {
                    return Err("a branch is on no form of the problem".to_string());
                }
                for (form, proof) in [(form, at_least), (&negated, below)] {
                    let terms = form.terms.iter().copied().collect();
                    let (terms, constant) = rounded(&terms, form.constant);
                    self.with(*label, Known::AtLeast(terms, constant), proof)?;
                }
                Ok(())
            }
            Proof::Cases { of, label, cases } => {
                self.used.insert(*of);
                let parts = match self.known.get(of) {
                    Some(Known::Any(parts)) => parts.clone(),
                    Some(Known::AtLeast(..)) | None => {
                        return Err(format!("hypothesis {of} has no cases"));
                    }
                };
                if parts.len() != cases.len() {
                    return Err(format!("hypothesis {of} has {} cases", parts.len()));
                }
                for (part, proof) in parts.iter().zip(cases) {
                    let labels = *label..label + size(part);
                    if labels.clone().any(|l| self.known.contains_key(&l)) {
                        return Err(format!("label {label} is taken"));
                    }
                    self.learn(part, &mut { *label })?;
                    self.prove(proof)?;
                    for label in labels {
                        self.known.remove(&label);
                    }
                }
                Ok(())
            }
        }
    }

    /// Goes on with a further hypothesis.
    fn with(&mut self, label: Label, known: Known, proof: &Proof) -> Result<(), String> {
        if self.known.insert(label, known).is_some() {
            return Err(format!("label {label} is taken"));
        }
        self.prove(proof)?;
        self.known.remove(&label);
        Ok(())
    }
}
