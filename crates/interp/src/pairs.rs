//! The pairs of places that race, as the reader counts them: over all runs of a check, whichever access came first,
//! and each told once, as the worst race there.

use std::collections::{BTreeMap, HashMap};

use invar_ir::{Diagnostic, Rule, Span};

use crate::data_race::DataRaces;
use crate::race::{Class, Site};

/// How many pairs at one object are told, of each class.
const SHOWN: usize = 8;

/// A place in the author's text, or in the kernel if no author wrote it.
pub(crate) type Place = (Span, Option<Site>);

/// Two places, the object at which they race, by its number in the run, and whether the same is done at both.
pub(crate) type Pair = (u32, Place, Place, bool);

#[derive(Debug)]
struct Known {
    class: Class,
    rule: Rule,
    /// Which of the findings tells of it.
    finding: Option<usize>,
}

/// What is known of an object.
#[derive(Debug, Default)]
struct About {
    name: String,
    /// More pairs may race there.
    cut: bool,
    /// How many pairs are told.
    data_races: usize,
    equal_stores: usize,
}

impl About {
    fn told(&mut self, class: Class) -> &mut usize {
        match class {
            Class::DataRace => &mut self.data_races,
            Class::EqualStores => &mut self.equal_stores,
        }
    }
}

/// The pairs that runs have shown.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    known: HashMap<Pair, Known>,
    objects: BTreeMap<u32, About>,
    kernel: Span,
}

impl Pairs {
    /// Adds what a run has shown to the findings of a check.
    pub(crate) fn add(&mut self, run: &DataRaces, found: &mut Vec<Diagnostic>) {
        self.kernel = run.kernel();
        for race in run.races() {
            let pair = run.pair(race);
            let (class, rule) = (race.class(), race.rule());
            let about = self.objects.entry(pair.0).or_insert_with(|| About {
                name: run.name(pair.0).to_string(),
                ..About::default()
            });
            about.cut |= run.misses_pairs_at(race);
            let known = self.known.entry(pair).or_insert(Known {
                class,
                rule,
                finding: None,
            });
            let is_worse = badness(rule) > badness(known.rule);
            match known.finding {
                Some(at) if is_worse => {
                    *about.told(known.class) -= 1;
                    *about.told(class) += 1;
                    found[at] = run.word(race);
                }
                None if badness(rule) >= badness(known.rule) && *about.told(class) < SHOWN => {
                    *about.told(class) += 1;
                    known.finding = Some(found.len());
                    found.push(run.word(race));
                }
                Some(_) | None => {}
            }
            if is_worse {
                (known.class, known.rule) = (class, rule);
            }
        }
    }

    /// Says of each object how many more pairs there are, behind the last that is told. Only once: findings after it
    /// have other numbers then.
    pub(crate) fn tell_of_more(self, found: &mut Vec<Diagnostic>) {
        let mut more = Vec::new();
        for (number, mut about) in self.objects {
            for class in [Class::DataRace, Class::EqualStores] {
                let of_object = self.known.iter().filter(|(pair, _)| pair.0 == number);
                let rest = of_object.filter(|(_, k)| k.class == class && k.finding.is_none());
                let rules: Vec<Rule> = rest.map(|(_, known)| known.rule).collect();
                let Some(rule) = rules.iter().copied().max_by_key(|rule| badness(*rule)) else {
                    continue;
                };
                let (shown, name) = (*about.told(class), &about.name);
                let least = if about.cut { "at least " } else { "" };
                let message = format!(
                    "at `{name}`, {least}{} more pairs of places race; {shown} are shown",
                    rules.len()
                );
                more.push(Diagnostic::error(rule, self.kernel, message));
            }
        }
        let told = self.known.values().filter_map(|known| known.finding);
        let behind = told.max().map_or(found.len(), |last| last + 1);
        found.splice(behind..behind, more);
    }
}

/// How bad a race of that rule is: stores of equal values leave the same in any order, and what a barrier of more
/// spaces would order is at least ordered in time.
fn badness(rule: Rule) -> u32 {
    match rule {
        Rule::EqualStores => 0,
        Rule::ExecutionOnlyBarrier => 1,
        _any_order => 2,
    }
}
