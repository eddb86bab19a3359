//! A closer look at locations that are known to race: every pair of places that races there.
//!
//! The detector stops recording at a location with its first race, and merges accesses that race with
//! the same others. So what races with what, line by line, takes a second look at the same schedule,
//! with a history of the few locations that are looked at.
//!
//! All pairs of n places are n² / 2. Of each location the history has the [`PLACES`] places that came last, so that
//! what is found, and the time that it takes, grow as the number of places does. Where there were more, there may be
//! more pairs.

use std::collections::{HashMap, HashSet, VecDeque};

use super::report::Key;
use super::shadow::{Flight, View};
use super::word::{KIND_MASK, conflicts, kind_of};
use super::{
    Access, Class, Declaration, Object, Performer, RacingAccess, RacyLocation, Report, Site,
};

/// How many accesses of one kind at one place are kept for a location: the latest of as many threads, of each
/// simdgroup alike. Enough for two of each simdgroup, of which one tells as much as all others of that simdgroup: where
/// nothing is acquired, what orders one of them orders all but the thread's own that came before.
const RECENT: usize = 128;
/// At how many places.
const PLACES: usize = 64;

type Pair = (Site, Access, Site, Access);

#[derive(Debug)]
struct Location {
    class: Class,
    /// In the order of their first accesses.
    places: VecDeque<Place>,
    pairs: HashSet<Pair>,
}

/// The accesses of one kind that one place has made, the latest last.
#[derive(Debug)]
struct Place {
    site: Site,
    kind: u64,
    words: VecDeque<u64>,
}

#[derive(Debug)]
pub(super) struct Watch {
    locations: HashMap<Key, Location>,
    reports: Vec<Report>,
    by_pair: HashMap<(Class, Object, Pair), usize>,
    /// Objects with a location whose history lacks places, or simdgroups that came to one.
    cut: HashSet<Object>,
}

/// What a second look has found.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    /// Every pair of places that was seen to race, in the order found, and at how many locations.
    pub(crate) reports: Vec<Report>,
    /// Objects at which more pairs may race.
    pub(crate) cut: HashSet<Object>,
}

/// The same whichever was executed first.
fn pair_of(first: &RacingAccess, second: &RacingAccess) -> Pair {
    let rank = |party: &RacingAccess| (party.site.0, party.access as u8);
    let (a, b) = match rank(first) <= rank(second) {
        true => (first, second),
        false => (second, first),
    };
    (a.site, a.access, b.site, b.access)
}

impl Watch {
    pub(super) fn new(racy: &[RacyLocation], objects: &[Declaration]) -> Self {
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
                places: VecDeque::new(),
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
            cut: HashSet::new(),
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
        let new = view.me | kind;
        let second = view.layout.party(new);
        let flying = flights.iter().filter(|f| Some(f.copy) != own);
        let flying = flying.filter(|f| f.touches(key.2)).map(|f| f.word);
        let mut found: Vec<u64> = Vec::new();
        for place in &location.places {
            let Some(last) = place.words.back().filter(|_| conflicts(place.kind, kind)) else {
                continue;
            };
            // Once a pair is known, it matters only whether its accesses are all of one simdgroup, or threadgroup.
            let pair = pair_of(&view.layout.party(*last), &second);
            let known = self.by_pair.get(&(location.class, object, pair));
            let within = known.is_none_or(|at| self.reports[*at].within_simdgroup);
            let within_all = known.is_none_or(|at| self.reports[*at].within_threadgroup);
            let mut unordered = place.words.iter().copied();
            let mut across = place.words.iter().copied().filter(|_| within);
            let mut across_all = place.words.iter().copied().filter(|_| within_all);
            if !location.pairs.contains(&pair) {
                found.extend(unordered.find(|w| !view.ordered(*w)));
            }
            let far = |w: u64| !view.layout.party(w).same_simdgroup(&second);
            found.extend(across.find(|w| far(*w) && !view.ordered(*w)));
            let apart = |w: u64| view.layout.party(w).threadgroup != second.threadgroup;
            found.extend(across_all.find(|w| apart(*w) && !view.ordered(*w)));
        }
        for with in found.into_iter().chain(flying) {
            if !conflicts(kind_of(with), kind) {
                continue;
            }
            let first = view.layout.party(with);
            let pair = pair_of(&first, &second);
            let is_new = location.pairs.insert(pair);
            let class = location.class;
            let known = self.by_pair.entry((class, object, pair));
            let at = *known.or_insert(self.reports.len());
            if let Some(report) = self.reports.get_mut(at) {
                report.locations += u64::from(is_new);
                report.within_simdgroup &= first.same_simdgroup(&second);
                report.within_threadgroup &= first.threadgroup == second.threadgroup;
            } else {
                self.reports.push(Report {
                    class,
                    object,
                    location: key.2,
                    first,
                    second,
                    locations: 1,
                    within_simdgroup: first.same_simdgroup(&second),
                    within_threadgroup: first.threadgroup == second.threadgroup,
                });
            }
        }
        if record && location.record(view, &second, new) {
            self.cut.insert(object);
        }
    }

    pub(super) fn found(self) -> Pairs {
        Pairs {
            reports: self.reports,
            cut: self.cut,
        }
    }
}

impl Location {
    /// Notes an access, `new`, by `party`; whether what others did is forgotten for it.
    fn record(&mut self, view: &View, party: &RacingAccess, new: u64) -> bool {
        let (site, kind) = (party.site, new & KIND_MASK);
        let known = self
            .places
            .iter_mut()
            .find(|p| p.site == site && p.kind == kind);
        if let Some(place) = known {
            return place.record(view, party, new);
        }
        let full = self.places.len() == PLACES;
        if full {
            self.places.pop_front();
        }
        self.places.push_back(Place {
            site,
            kind,
            words: VecDeque::from([new]),
        });
        full
    }
}

impl Place {
    /// Notes an access; whether a simdgroup is forgotten for it.
    fn record(&mut self, view: &View, party: &RacingAccess, new: u64) -> bool {
        // What comes after a thread's later access comes after its earlier ones.
        let replaces = |word: u64| match party.performer {
            Performer::Lane(_) => view.layout.party(word) == *party,
            Performer::SomeLane => word == new,
        };
        self.words.retain(|word| !replaces(*word));
        let mut is_forgotten = false;
        if self.words.len() == RECENT {
            let simdgroup = |word: u64| {
                let party = view.layout.party(word);
                (party.threadgroup, party.simdgroup)
            };
            let mut counts: HashMap<_, usize> = HashMap::new();
            for word in &self.words {
                *counts.entry(simdgroup(*word)).or_default() += 1;
            }
            let most = counts.values().copied().max().unwrap_or(0);
            let oldest = |word: &u64| counts[&simdgroup(*word)] == most;
            let oldest = self.words.iter().position(oldest);
            self.words.remove(oldest.unwrap_or(0));
            // Of other threadgroups one is as good as another.
            is_forgotten = most <= 2 && counts.keys().all(|(t, _)| *t == party.threadgroup);
        }
        self.words.push_back(new);
        is_forgotten
    }
}
