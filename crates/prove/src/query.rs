//! Symbols and facts of one question about one thread or two.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use invar_ir::{Dim, Memory};

use crate::linear::{Formula, Linear, Problem, Products, Var};

/// A product of more factors is not followed.
const MAX_FACTORS: usize = 4;
/// A form of more terms is not multiplied.
const MAX_TERMS: usize = 24;

/// A way into an element: the fields, and none where an index stands.
pub type Way = Vec<Option<u32>>;
/// Loads: where each is, and what it gives.
pub type Loads = Vec<(Vec<Linear>, Linear)>;

/// An integer of a kernel: a form, and bounds that hold whatever else does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Int {
    /// The form.
    pub form: Linear,
    /// It is at least this.
    pub low: i128,
    /// It is at most this.
    pub high: i128,
}

impl Int {
    /// A number.
    pub fn constant(number: i128) -> Int {
        Int {
            form: Linear::constant(number),
            low: number,
            high: number,
        }
    }

    /// The number that it is, if it is one.
    pub fn as_constant(&self) -> Option<i128> {
        self.form.as_constant()
    }
}

/// A question under construction.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Variables, products and facts.
    pub problem: Problem,
    symbols: HashMap<String, Var>,
    /// What variables that are not products are between, as the facts about them say.
    bounds: HashMap<Var, (i128, i128)>,
    said: HashSet<String>,
    /// Numbers that are multiples, by name: the divisor, the quotient, and the condition that says so.
    times: BTreeMap<String, (i128, Var, usize)>,
    /// The conditions that say so of numbers of which a remainder was taken: it may have lost them.
    divided: BTreeSet<usize>,
    /// Loads of what the dispatch does not write, by the way into the element: where, and the value.
    pub loads: BTreeMap<(Memory, Way), Loads>,
    /// Quotients, by what is divided by, a constant: of what, and the quotient, rounded down.
    floors: BTreeMap<i128, Vec<(Linear, Linear)>>,
    /// Levels of textures, by the direction: the level, and how many texels it has.
    pub levels: BTreeMap<(Memory, Dim), Vec<(Linear, Linear)>>,
    /// Threes of numbers of which each is the exclusive or of the others.
    pub exclusive: Vec<[Linear; 3]>,
    /// What counters hold at first of which each thread takes a number: the object, the index, and what.
    pub firsts: Vec<(Memory, i128, Linear)>,
    /// Whether the two threads are of one threadgroup.
    pub same: bool,
    /// Whether quotients of the same number of two threads are such numbers, too.
    pub pairs_quotients: bool,
    /// Whether of what is mapped one to one nothing else is said: neither which number of a table is where, nor bits.
    pub only_one_to_one: bool,
    /// Whether loads from such a table were compared.
    pub has_distinct: bool,
    /// Facts that are conditions on the launch: the place of the fact, and that of the condition.
    pub condition_facts: Vec<(usize, usize)>,
}

impl Query {
    /// A question about threads of one threadgroup, or of two.
    pub fn new(same: bool) -> Query {
        Query {
            same,
            ..Query::default()
        }
    }

    /// A fact.
    pub fn say(&mut self, fact: Option<Formula>) {
        // A fact whose numbers are too large is left out: fewer facts prove less, not more.
        if let Some(fact) = fact
            && !fact.is_true()
        {
            self.problem.facts.push(fact);
        }
    }

    /// Whether something is said for the first time.
    pub fn first_time(&mut self, key: &str) -> bool {
        self.said.insert(key.to_string())
    }

    /// Writes a number within bounds as so many times another: a condition, by its place, says that it is a
    /// multiple. Nothing may have been said of it.
    pub fn write_as_times(
        &mut self,
        key: &str,
        of: i128,
        (low, high): (i128, i128),
        condition: usize,
    ) {
        if !self.times.contains_key(key) && !self.symbols.contains_key(key) {
            let quotient = self.problem.names.len() as Var;
            let name = format!("multiples of {of}: {key}");
            self.symbol(&name, low.div_euclid(of), high.div_euclid(of));
            self.times
                .insert(key.to_string(), (of, quotient, condition));
        }
    }

    /// What a number is so many times, if it is written as a multiple of that.
    pub fn quotient(&self, key: &str, of: i128) -> Option<Linear> {
        let (times, quotient, _) = self.times.get(key)?;
        (times % of == 0).then(|| Linear::var(*quotient).times(times / of))?
    }

    /// Whether a number is written as so many times another.
    pub fn is_times(&self, key: &str, of: i128) -> bool {
        self.times.get(key).is_some_and(|(times, ..)| *times == of)
    }

    /// Conditions that are not facts, but the way in which numbers are written that these facts speak of.
    pub fn ways(&self, problem: &Problem, used: &BTreeSet<usize>) -> BTreeSet<usize> {
        fn mentions(fact: &Formula, products: &Products, var: Var) -> bool {
            let is =
                |v: &Var| *v == var || products.factors.get(v).is_some_and(|f| f.contains(&var));
            match fact {
                Formula::AtLeast(form) => form.terms.iter().any(|(v, _)| is(v)),
                Formula::All(parts) | Formula::Any(parts) => {
                    parts.iter().any(|part| mentions(part, products, var))
                }
            }
        }
        let facts = || used.iter().filter_map(|f| problem.facts.get(*f));
        let times = self.times.values();
        let times = times.filter(|(_, quotient, _)| {
            facts().any(|fact| mentions(fact, &problem.products, *quotient))
        });
        let mentioned = times.map(|(.., condition)| *condition);
        mentioned.chain(self.divided.iter().copied()).collect()
    }

    /// Says how far a quotient is from those of numbers that are a constant further, such as that of the next
    /// iteration: floor((a + c) / d) - floor(a / d) is floor(c / d), or one more.
    pub fn say_near(&mut self, divisor: i128, of: &Linear, quotient: &Linear) {
        let others = self.floors.entry(divisor).or_default();
        others.push((of.clone(), quotient.clone()));
        let others = others[..others.len() - 1].to_vec();
        for (other, its) in others {
            if self.pairs_quotients {
                self.note_twins((&other, &its), (of, quotient));
            }
            let Some(apart) = of.plus(-1, &other).and_then(|form| form.as_constant()) else {
                continue;
            };
            let least = Linear::constant(apart.div_euclid(divisor));
            let most = Linear::constant(-(-apart).div_euclid(divisor));
            if let Some(steps) = quotient.plus(-1, &its) {
                self.say(Formula::le(&least, &steps));
                self.say(Formula::le(&steps, &most));
            }
        }
    }

    /// Whether something of the two threads is compared that is mapped one to one.
    pub fn maps_one_to_one(&self) -> bool {
        self.has_distinct || self.exclusive.len() > 1
    }

    /// Says of a quotient that it is less than that of a multiple of what is divided by, if the number is less than the
    /// multiple: so of rows that are padded to whole vectors.
    pub fn say_below_multiples(&mut self, divisor: i128, of: &Linear, quotient: &Linear) {
        let whole = |(times, var, _): &(i128, Var, usize)| {
            let its = Linear::var(*var).times(times / divisor)?;
            let beyond = Formula::le(&its.times(divisor)?, of)?;
            let is_part = of.terms.iter().any(|(v, _)| v == var);
            (times % divisor == 0 && !is_part)
                .then(|| Some(Formula::any([beyond, Formula::lt(quotient, &its)?])))?
        };
        let facts: Vec<Formula> = self.times.values().filter_map(whole).collect();
        facts.into_iter().for_each(|fact| self.say(Some(fact)));
    }

    /// Notes that two quotients are of the same number of two threads, if they are: how far they are apart is branched
    /// on before what either is.
    fn note_twins(&mut self, (a, one): (&Linear, &Linear), (b, other): (&Linear, &Linear)) {
        let ([(one, 1)], [(other, 1)]) = (&one.terms[..], &other.terms[..]) else {
            return;
        };
        let (one, other) = (*one.min(other), *one.max(other));
        let mut pairs = a.terms.iter().zip(&b.terms);
        let is_twin = |((x, f), (y, g)): (&(Var, i128), &(Var, i128))| {
            f == g && (x == y || self.problem.twins.contains(&(*x.min(y), *x.max(y))))
        };
        let is_like = a.constant == b.constant && a.terms.len() == b.terms.len() && a != b;
        if is_like && pairs.all(is_twin) {
            self.problem.twins.insert((one, other));
        }
    }

    /// Notes that a form is a multiple of what is divided by, so that no fact about the remainder speaks of it.
    pub fn divides(&mut self, whole: &Linear) {
        for (_, quotient, condition) in self.times.values() {
            let factors = &self.problem.products.factors;
            let is =
                |v: &Var| v == quotient || factors.get(v).is_some_and(|f| f.contains(quotient));
            if whole.terms.iter().any(|(v, _)| is(v)) {
                self.divided.insert(*condition);
            }
        }
    }

    /// The form of a number of that name, if there is one.
    pub fn form(&self, key: &str) -> Option<Linear> {
        match self.times.get(key) {
            Some((of, quotient, _)) => Linear::var(*quotient).times(*of),
            None => self.symbols.get(key).map(|var| Linear::var(*var)),
        }
    }

    /// The variable of that name, within bounds.
    pub fn symbol(&mut self, key: &str, low: i128, high: i128) -> Int {
        if self.times.contains_key(key)
            && let Some(form) = self.form(key)
        {
            if self.first_time(&format!("{key} in its bounds")) {
                self.say(Formula::le(&Linear::constant(low), &form));
                self.say(Formula::le(&form, &Linear::constant(high)));
            }
            return Int { form, low, high };
        }
        let form = match self.symbols.get(key) {
            Some(var) => Linear::var(*var),
            None => {
                let var = self.problem.names.len() as Var;
                self.problem.names.push(key.to_string());
                self.symbols.insert(key.to_string(), var);
                self.bounds.insert(var, (low, high));
                if let Some(twin) = twin(key).and_then(|twin| self.find(&twin)) {
                    self.problem.twins.insert((twin, var));
                }
                let form = Linear::var(var);
                self.say(Formula::le(&Linear::constant(low), &form));
                self.say(Formula::le(&form, &Linear::constant(high)));
                form
            }
        };
        Int { form, low, high }
    }

    /// The variable of that name, if there is one.
    fn find(&self, key: &str) -> Option<Var> {
        self.symbols.get(key).copied()
    }

    /// What a form is between, by the bounds of its variables alone; `None` where numbers get too large.
    pub fn bounds(&self, form: &Linear) -> Option<(i128, i128)> {
        let times = |a: (i128, i128), b: (i128, i128)| {
            let mut ends = [a.0, a.1, a.0, a.1];
            for (end, other) in ends.iter_mut().zip([b.0, b.1, b.1, b.0]) {
                *end = end.checked_mul(other)?;
            }
            Some((*ends.iter().min()?, *ends.iter().max()?))
        };
        let (mut low, mut high) = (form.constant, form.constant);
        for &(var, factor) in &form.terms {
            let mut of = (factor, factor);
            match self.problem.products.factors.get(&var) {
                Some(factors) => {
                    for factor in factors {
                        of = times(of, *self.bounds.get(factor)?)?;
                    }
                }
                None => of = times(of, *self.bounds.get(&var)?)?,
            }
            (low, high) = (low.checked_add(of.0)?, high.checked_add(of.1)?);
        }
        Some((low, high))
    }

    /// All names and their forms, in order.
    pub fn forms(&self) -> BTreeMap<&str, Linear> {
        let keys = self.symbols.keys().chain(self.times.keys());
        keys.filter_map(|key| Some((key.as_str(), self.form(key)?)))
            .collect()
    }

    /// The variable of a product of variables that are not products themselves, in order.
    fn monomial(&mut self, factors: Vec<Var>) -> Option<Var> {
        if let [only] = factors[..] {
            return Some(only);
        }
        if let Some(var) = self.problem.products.of.get(&factors) {
            return Some(*var);
        }
        if factors.len() > MAX_FACTORS {
            return None;
        }
        let names: Vec<&str> = factors
            .iter()
            .map(|f| self.problem.names[*f as usize].as_str())
            .collect();
        let name = names.join("*");
        let var = self.problem.names.len() as Var;
        self.problem.names.push(name);
        self.problem.products.factors.insert(var, factors.clone());
        self.problem.products.of.insert(factors.clone(), var);
        // Of factors that are not negative neither is the product: with that it is multiplied further.
        if let Some((low @ 0.., _)) = self.bounds(&Linear::var(var)) {
            self.say(Formula::le(&Linear::constant(low), &Linear::var(var)));
        }
        // With one factor less each, so that inequalities can be multiplied by the one.
        if factors.len() > 2 {
            for i in 0..factors.len() {
                let mut rest = factors.clone();
                rest.remove(i);
                self.monomial(rest)?;
            }
        }
        Some(var)
    }

    /// The product of two forms; `None` where it gets too large.
    pub fn product(&mut self, a: &Linear, b: &Linear) -> Option<Linear> {
        if let Some(number) = a.as_constant() {
            return b.times(number);
        }
        if let Some(number) = b.as_constant() {
            return a.times(number);
        }
        if a.terms.len() * b.terms.len() > MAX_TERMS {
            return None;
        }
        let mut sum = Linear::constant(a.constant.checked_mul(b.constant)?);
        let linear = |form: &Linear| Linear {
            terms: form.terms.clone(),
            constant: 0,
        };
        sum = sum.plus(a.constant, &linear(b))?;
        sum = sum.plus(b.constant, &linear(a))?;
        for &(x, f) in &a.terms {
            for &(y, g) in &b.terms {
                let factors = self.problem.products.joined(x, y);
                let var = self.monomial(factors)?;
                sum = sum.plus(f.checked_mul(g)?, &Linear::var(var))?;
            }
        }
        Some(sum)
    }
}

/// The name that the same number of the other thread has.
fn twin(key: &str) -> Option<String> {
    let (one, two) = ("thread1", "thread2");
    let (first, second) = ("group1", "group2");
    let other = [(one, two), (two, one), (first, second), (second, first)];
    let (own, other) = other.into_iter().find(|(own, _)| key.contains(own))?;
    Some(key.replace(own, other))
}
