//! A closer look at locations that are known to race: every pair of places that races there.
//!
//! The detector stops recording at a location with its first race, and merges accesses that race with
//! the same others. So what races with what, line by line, takes a second look at the same schedule,
//! with a history of the few locations that are looked at.

use std::collections::{HashMap, HashSet};

use super::shadow::{Flight, View};
use super::word::{KIND_MASK, Layout, conflicts, kind_of};
use super::{Access, Class, Declaration, Object, Party, Racy, Report, Site};

/// How many accesses of one kind at one place are kept for a location, the latest.
const RECENT: usize = 16;

type Pair = (Site, Access, Site, Access);

#[derive(Debug)]
struct Location {
    class: Class,
    words: Vec<u64>,
    pairs: HashSet<Pair>,
}

/// An object, the threadgroup if it has its own, and the number of the location.
type Key = (u32, Option<u64>, u32);

#[derive(Debug)]
pub(super) struct Watch {
    locations: HashMap<Key, Location>,
    reports: Vec<Report>,
    by_pair: HashMap<(Class, Object, Pair), usize>,
}

/// The same whichever was executed first.
fn pair_of(first: &Party, second: &Party) -> Pair {
    let rank = |party: &Party| (party.site.0, party.access as u8);
    let (a, b) = match rank(first) <= rank(second) {
        true => (first, second),
        false => (second, first),
    };
    (a.site, a.access, b.site, b.access)
}

impl Watch {
    pub(super) fn new(racy: &[Racy], objects: &[Declaration]) -> Self {
        let mut locations = HashMap::new();
        for racy in racy {
            let own = objects[racy.object.0 as usize].space.is_of_threadgroup();
            let key = (
                racy.object.0,
                own.then_some(racy.threadgroup),
                racy.location,
            );
            let location = locations.entry(key).or_insert_with(|| Location {
                class: racy.class,
                words: Vec::new(),
                pairs: HashSet::new(),
            });
            if racy.class == Class::DataRace {
                location.class = racy.class;
            }
        }
        Self {
            locations,
            reports: Vec::new(),
            by_pair: HashMap::new(),
        }
    }

    /// An access of this kind, `view.me`, to a location. `own` as in [`Recorder::check`].
    ///
    /// [`Recorder::check`]: super::memory::Recorder::check
    pub(super) fn look(
        &mut self,
        key: Key,
        view: &View,
        kind: u64,
        (flights, own): (&[Flight], Option<u64>),
        record: bool,
    ) {
        let Some(location) = self.locations.get_mut(&key) else {
            return;
        };
        let object = Object(key.0);
        let flying = flights.iter().filter(|f| Some(f.copy) != own);
        let flying = flying.filter(|f| f.touches(key.2)).map(|f| f.word);
        let unordered = location.words.iter().copied().filter(|w| !view.ordered(*w));
        let new = view.me | kind;
        for with in unordered.chain(flying) {
            if !conflicts(kind_of(with), kind) {
                continue;
            }
            let (first, second) = (view.layout.party(with), view.layout.party(new));
            let pair = pair_of(&first, &second);
            if !location.pairs.insert(pair) {
                continue;
            }
            let class = location.class;
            let known = self.by_pair.entry((class, object, pair));
            let at = *known.or_insert(self.reports.len());
            if let Some(report) = self.reports.get_mut(at) {
                report.locations += 1;
                report.within_simdgroup &= first.same_simdgroup(&second);
            } else {
                self.reports.push(Report {
                    class,
                    object,
                    location: key.2,
                    first,
                    second,
                    locations: 1,
                    within_simdgroup: first.same_simdgroup(&second),
                });
            }
        }
        if record {
            location.record(&view.layout, new);
        }
    }

    /// Every pair of places that was seen to race, in the order found.
    pub(super) fn reports(self) -> Vec<Report> {
        self.reports
    }
}

impl Location {
    fn record(&mut self, layout: &Layout, new: u64) {
        if self.words.contains(&new) {
            return;
        }
        let place = |word: u64| (layout.party(word).site, word & KIND_MASK);
        let mut alike = self.words.iter().enumerate();
        let first = alike
            .find(|(_, w)| place(**w) == place(new))
            .map(|(i, _)| i);
        let more = alike.filter(|(_, w)| place(**w) == place(new)).count();
        if let Some(first) = first.filter(|_| more + 1 >= RECENT) {
            self.words.remove(first);
        }
        self.words.push(new);
    }
}
