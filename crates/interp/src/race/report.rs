//! What the detector says in the end.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::word::Layout;
use super::{Access, Class, Object, RacingAccess, RacyLocation, Report, Site};

type Pair = (Class, Object, (Site, Access), (Site, Access));

/// An object, the threadgroup if it has its own, and the number of the location.
pub(super) type Key = (u32, Option<u64>, u32);

/// Of how many locations with equal stores it is known which report has them.
const EQUAL_LOCATIONS: usize = 1 << 16;

/// How many racy locations are kept for each report that may be.
const RACY_PER_REPORT: usize = 16;

/// The reports so far: the first few pairs of source lines, and a count of all locations.
#[derive(Debug)]
pub(super) struct Reports {
    limit: usize,
    pub(super) kept: Vec<Report>,
    pub(super) racy: Vec<RacyLocation>,
    by_pair: HashMap<Pair, usize>,
    pub(super) data_races: u64,
    /// The objects that have them.
    pub(super) data_races_in: BTreeSet<u32>,
    pub(super) equal_stores: u64,
    /// By object: its locations with equal stores and no data race.
    pub(super) equal_stores_in: BTreeMap<u32, u64>,
    /// By location with equal stores and no data race, the first few: the report that has it.
    equal_at: HashMap<Key, usize>,
    /// The same, by report, with the accesses' words.
    equal_of: BTreeMap<(usize, Key), (u64, u64)>,
    pub(super) not_kept: u64,
}

impl Reports {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            kept: Vec::new(),
            racy: Vec::new(),
            by_pair: HashMap::new(),
            data_races: 0,
            data_races_in: BTreeSet::new(),
            equal_stores: 0,
            equal_stores_in: BTreeMap::new(),
            equal_at: HashMap::new(),
            equal_of: BTreeMap::new(),
            not_kept: 0,
        }
    }

    /// Counts a racy location. `first` and `second` are the accesses' words; `upgraded`: the
    /// location was counted among the equal stores before.
    #[cold]
    pub(super) fn add(
        &mut self,
        layout: &Layout,
        class: Class,
        key: Key,
        words: (u64, u64),
        upgraded: bool,
    ) {
        let (object, location) = (Object(key.0), key.2);
        if upgraded {
            self.upgrade(layout, key);
        }
        match class {
            Class::DataRace => {
                self.data_races += 1;
                self.data_races_in.insert(object.0);
            }
            Class::EqualStores => self.equal_stores += 1,
        }
        self.equal_stores -= u64::from(upgraded);
        if class == Class::EqualStores {
            *self.equal_stores_in.entry(object.0).or_insert(0) += 1;
        } else if upgraded && let Some(count) = self.equal_stores_in.get_mut(&object.0) {
            *count -= 1;
        }
        let (first, second) = (layout.party(words.0), layout.party(words.1));
        let of = |party: &RacingAccess| (party.site, party.access);
        let pair = (class, object, of(&first), of(&second));
        let is_new = !self.by_pair.contains_key(&pair) && self.kept.len() < self.limit;
        if is_new || self.racy.len() < self.limit * RACY_PER_REPORT {
            self.racy.push(RacyLocation {
                object,
                threadgroup: second.threadgroup,
                location,
                class,
            });
        }
        if class == Class::EqualStores && self.equal_at.len() < EQUAL_LOCATIONS {
            let at = self.by_pair.get(&pair).copied();
            if let Some(at) = at.or(is_new.then_some(self.kept.len())) {
                self.equal_at.insert(key, at);
                self.equal_of.insert((at, key), words);
            }
        }
        if let Some(&at) = self.by_pair.get(&pair) {
            self.kept[at].locations += 1;
            self.kept[at].within_simdgroup &= first.same_simdgroup(&second);
            self.kept[at].within_threadgroup &= first.threadgroup == second.threadgroup;
        } else if self.kept.len() < self.limit {
            self.by_pair.insert(pair, self.kept.len());
            self.kept.push(Report {
                class,
                object,
                location,
                first,
                second,
                locations: 1,
                within_simdgroup: first.same_simdgroup(&second),
                within_threadgroup: first.threadgroup == second.threadgroup,
            });
        } else {
            self.not_kept += 1;
        }
    }

    /// Takes a location that has a data race from the equal stores' report, which speaks of another one then.
    fn upgrade(&mut self, layout: &Layout, key: Key) {
        let Some(at) = self.equal_at.remove(&key) else {
            return;
        };
        self.equal_of.remove(&(at, key));
        let report = &mut self.kept[at];
        report.locations -= 1;
        let others = (at, (0, None, 0))..(at + 1, (0, None, 0));
        if report.location == key.2
            && let Some(((_, other), words)) = self.equal_of.range(others).next()
        {
            report.location = other.2;
            report.first = layout.party(words.0);
            report.second = layout.party(words.1);
        }
    }

    /// The reports that are of any location in the end.
    pub(super) fn of_locations(kept: Vec<Report>) -> Vec<Report> {
        kept.into_iter().filter(|r| r.locations > 0).collect()
    }
}
