//! The state of every location of one memory object, and the general rule that updates it.
//!
//! Four words a location, in four planes. `last` holds the last plain write. `slots` hold the
//! other accesses that may still race, filled from the first: reads, then atomic writes, then
//! atomic reads, then further plain writes. A location with more than three of those keeps them
//! all in the side table `spilled`, and its third slot says so.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use super::clock::Clock;
use super::word::{
    ATOMIC_READ, ATOMIC_WRITE, COPY, EQUAL_REPORTED, FORMER, KIND_MASK, LANE, Layout, MIXED_SHIFT,
    READ, WRITE, conflicts, covers, kind_of, performer_of,
};

/// In `last`: a race was reported and nothing more is recorded. In the third slot: see `spilled`.
pub(super) const DONE: u64 = u64::MAX;
const SPILLED: u64 = u64::MAX;

/// The levels of the hierarchy at which two accesses may be told apart, as `mixed` counts them.
const THREAD: u64 = 3;
const SIMDGROUP: u64 = 2;
const THREADGROUP: u64 = 1;

/// An access about to be made, and what its thread knows.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) layout: Layout,
    /// Threadgroup, simdgroup, lane, time, site and performer; the kind is 0.
    pub(super) me: u64,
    /// The time, in place in a word, of the last threadgroup barrier that names the space.
    pub(super) threadgroup_time: u64,
    /// The same for simdgroup barriers of this simdgroup.
    pub(super) simdgroup_time: u64,
    /// The performer is one known lane: it is one, or its simdgroup has no other.
    pub(super) single: bool,
    pub(super) clocks: Option<Clocks<'a>>,
}

/// The clocks of the lanes that may make the access.
#[derive(Clone, Copy)]
pub(super) struct Clocks<'a> {
    pub(super) clocks: &'a [Arc<Clock>],
    pub(super) sizes: &'a Sizes,
}

/// How many threads the threadgroups have.
#[derive(Clone, Debug)]
pub(super) struct Sizes {
    pub(super) simdgroup: u32,
    pub(super) nominal: u32,
    /// Those that differ from the nominal size.
    pub(super) other: HashMap<u64, u32>,
}

impl Sizes {
    pub(super) fn lanes_of(&self, threadgroup: u64, simdgroup: u64) -> u32 {
        let threads = *self.other.get(&threadgroup).unwrap_or(&self.nominal);
        let before = u64::from(self.simdgroup) * simdgroup;
        let left = u64::from(threads).saturating_sub(before);
        u32::try_from(left).map_or(self.simdgroup, |left| left.min(self.simdgroup))
    }
}

impl View<'_> {
    /// Whether `word` happens before the access `me`, as this one but for its lane, by program order
    /// and barriers of its own threadgroup.
    #[inline]
    pub(super) fn ordered_by_barriers(&self, word: u64, me: u64) -> bool {
        let differ = word ^ me;
        if differ >> self.layout.threadgroup_shift != 0 {
            return false;
        }
        let time = word & self.layout.time_mask;
        if time < self.threadgroup_time {
            return true;
        }
        if differ >> self.layout.simdgroup_shift != 0 {
            return false;
        }
        if time < self.simdgroup_time {
            return true;
        }
        match performer_of(word) {
            LANE => self.single && differ >> self.layout.lane_shift == 0,
            performer => performer == COPY,
        }
    }

    /// Whether `word` happens before this access, whichever lane makes it.
    pub(super) fn ordered(&self, word: u64) -> bool {
        if self.ordered_by_barriers(word, self.me) {
            return true;
        }
        let Some(Clocks { clocks, sizes }) = self.clocks else {
            return false;
        };
        let own = self.layout.same_simdgroup(word, self.me);
        let first = self.layout.lane_of(self.me);
        clocks.iter().zip(first..).all(|(clock, lane)| {
            let own = own.then_some(lane);
            clock.knows(&self.layout, word, own, |g, s| sizes.lanes_of(g, s))
        })
    }

    /// The part of the hierarchy all of which `word` happens before, of those that `me` can
    /// know: its threadgroup or its simdgroup.
    fn ordered_before_all_of(&self, word: u64, me: u64) -> Option<u64> {
        if !self.layout.same_threadgroup(word, me) {
            return None;
        }
        let time = word & self.layout.time_mask;
        if time < self.threadgroup_time {
            return Some(THREADGROUP);
        }
        if self.layout.same_simdgroup(word, me)
            && (time < self.simdgroup_time || performer_of(word) == COPY)
        {
            return Some(SIMDGROUP);
        }
        None
    }

    /// The level of the part of the hierarchy all of which `word`, which happens before `me`,
    /// happens before.
    #[inline]
    pub(super) fn level(&self, word: u64, me: u64) -> u64 {
        self.ordered_before_all_of(word, me).unwrap_or(THREAD)
    }

    /// The level at which this access and an unordered one part: they have no smaller part of
    /// the hierarchy in common.
    fn parts_at(&self, word: u64) -> u64 {
        if !self.layout.same_threadgroup(word, self.me) {
            THREADGROUP
        } else if !self.layout.same_simdgroup(word, self.me) {
            SIMDGROUP
        } else {
            THREAD
        }
    }

    #[inline]
    pub(super) fn same_epoch(&self, word: u64) -> bool {
        ((word ^ self.me) & self.layout.epoch_mask & !KIND_MASK) == 0
    }
}

/// What an access met at its location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Met {
    /// Nothing new.
    Nothing,
    /// The first race of equal stores, with this earlier one.
    EqualStores(u64),
    /// A race with this earlier access; `upgraded` if equal stores were reported before.
    Race { with: u64, upgraded: bool },
}

/// The locations that an async copy in flight reads or writes. Its rows may meet, and there may be many.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) copy: u64,
    /// Performer, site, simdgroup, and kind.
    pub(super) word: u64,
    /// Where runs of locations begin, with where they end; none touches another.
    runs: BTreeMap<u32, u32>,
}

impl Flight {
    /// Whether it touches a location.
    pub(super) fn touches(&self, at: u32) -> bool {
        self.meets(at, at)
    }

    /// Whether it touches one of these locations, the last included.
    fn meets(&self, first: u32, last: u32) -> bool {
        let before = self.runs.range(..=last).next_back();
        before.is_some_and(|(_, end)| first < *end)
    }

    /// Its locations, each once.
    pub(super) fn runs(&self) -> impl Iterator<Item = Range<u32>> {
        self.runs.iter().map(|(start, end)| *start..*end)
    }

    fn add(&mut self, range: Range<u32>) {
        let Range { mut start, mut end } = range;
        if let Some((before, until)) = self.runs.range(..start).next_back()
            && start <= *until
        {
            (start, end) = (*before, end.max(*until));
        }
        while let Some((own, until)) = self.runs.range(start..=end).next() {
            let own = *own;
            end = end.max(*until);
            self.runs.remove(&own);
        }
        self.runs.insert(start, end);
    }
}

/// The accesses of a location that has more than its slots hold.
#[derive(Debug)]
struct Spilled {
    words: Vec<u64>,
    /// Whether a read may race with one of them.
    writes: bool,
    /// The number of words at which to look again for what has become redundant.
    look_at: usize,
}

/// The state of every location of one memory object.
#[derive(Debug, Default)]
pub(super) struct Shadow {
    pub(super) last: Vec<u64>,
    pub(super) slots: [Vec<u64>; 3],
    /// Whether the second or third slot of any location may be in use.
    pub(super) deep: bool,
    spilled: HashMap<u32, Spilled>,
    /// Words in `spilled`, for the memory limit.
    pub(super) spilled_words: usize,
    pub(super) flights: Vec<Flight>,
}

impl Shadow {
    pub(super) fn new(locations: u32) -> Self {
        let plane = || vec![0; locations as usize];
        Self {
            last: plane(),
            slots: [plane(), plane(), plane()],
            ..Self::default()
        }
    }

    /// Forgets everything, for the next threadgroup's memory.
    pub(super) fn clear(&mut self) {
        self.last.fill(0);
        self.slots[0].fill(0);
        if self.deep {
            self.slots[1].fill(0);
            self.slots[2].fill(0);
        }
        self.deep = false;
        self.spilled.clear();
        self.spilled_words = 0;
        self.flights.clear();
    }

    /// Whether nothing is recorded here any more.
    pub(super) fn is_done(&self, at: usize) -> bool {
        self.last[at] == DONE
    }

    /// Stops recording at a location whose race has been reported; says whether equal stores
    /// were reported there before.
    pub(super) fn finish(&mut self, at: usize) -> bool {
        let reported = self.last[at] & EQUAL_REPORTED != 0;
        self.forget_spilled(at);
        self.last[at] = DONE;
        for slot in &mut self.slots {
            slot[at] = 0;
        }
        reported
    }

    fn forget_spilled(&mut self, at: usize) {
        if self.slots[2][at] == SPILLED
            && let Some(spilled) = self.spilled.remove(&(at as u32))
        {
            self.spilled_words -= spilled.words.len();
        }
    }

    /// The copy in flight, if any, that an access of this kind to this location races with; those
    /// with number `own` are left out.
    pub(super) fn flight_against(&self, at: u32, kind: u64, own: Option<u64>) -> Option<u64> {
        let mut flights = self.flights.iter().filter(|f| Some(f.copy) != own);
        flights
            .find(|f| f.touches(at) && conflicts(kind_of(f.word), kind))
            .map(|f| f.word)
    }

    /// Puts a row of a copy in flight.
    pub(super) fn begin_flight(&mut self, copy: u64, word: u64, row: Range<u32>) {
        let known = (self.flights.iter_mut()).rfind(|f| (f.copy, f.word) == (copy, word));
        match known {
            Some(flight) => flight.add(row),
            None => self.flights.push(Flight {
                copy,
                word,
                runs: BTreeMap::from([(row.start, row.end)]),
            }),
        }
    }

    /// Whether a copy in flight may touch a location of this range.
    pub(super) fn in_flight(&self, first: i64, last: i64) -> bool {
        let location = |at: i64| at.clamp(0, i64::from(u32::MAX)) as u32;
        let (first, end) = (location(first), location(last.saturating_add(1)));
        first < end && (self.flights.iter()).any(|f| f.meets(first, end - 1))
    }

    /// Reads the accesses of a location into `words`, each with its kind; gives the level from
    /// which its writes are mixed and whether equal stores were reported.
    fn load(&self, at: usize, words: &mut Vec<u64>) -> (u64, u64) {
        words.clear();
        let last = self.last[at];
        if last != 0 {
            words.push((last & !(KIND_MASK | EQUAL_REPORTED)) | WRITE);
        }
        if self.slots[2][at] == SPILLED {
            words.extend(&self.spilled[&(at as u32)].words);
        } else {
            let slots = self.slots.iter().map(|slot| slot[at]);
            words.extend(slots.take_while(|&word| word != 0));
        }
        ((last >> MIXED_SHIFT) & 3, last & EQUAL_REPORTED)
    }

    /// Writes back what `load` read and an access changed.
    fn store(&mut self, at: usize, words: &mut Vec<u64>, mixed: u64, reported: u64) {
        self.forget_spilled(at);
        let is_last = |&word: &u64| kind_of(word) == WRITE && word & FORMER == 0;
        let last = words.iter().position(is_last);
        self.last[at] = last.map_or(0, |i| {
            (words.remove(i) & !KIND_MASK) | mixed << MIXED_SHIFT | reported
        });
        words.sort_unstable_by_key(|&word| kind_of(word));
        for (slot, i) in self.slots.iter_mut().zip(0..) {
            slot[at] = words.get(i).copied().unwrap_or(0);
        }
        self.deep |= words.len() > 1;
        if words.len() > 3 {
            self.slots[2][at] = SPILLED;
            self.spilled_words += words.len();
            let writes =
                |&word: &u64| word & FORMER == 0 && matches!(kind_of(word), ATOMIC_WRITE | WRITE);
            let spilled = Spilled {
                words: words.clone(),
                writes: words.iter().any(writes),
                look_at: 2 * words.len(),
            };
            self.spilled.insert(at as u32, spilled);
        }
    }

    /// The earlier access that this one would race with, by the state alone.
    pub(super) fn race_against(
        &self,
        at: usize,
        view: &View,
        kind: u64,
        words: &mut Vec<u64>,
    ) -> Option<u64> {
        self.load(at, words);
        let mut unordered = words
            .iter()
            .filter(|&&x| x & FORMER == 0 && conflicts(kind_of(x), kind) && !view.ordered(x));
        unordered.next().copied()
    }

    /// The general rule: checks an access against the state of its location and records it.
    ///
    /// `unchanged`: it is a plain write that leaves the location's value as it was.
    pub(super) fn access(
        &mut self,
        at: usize,
        view: &View,
        kind: u64,
        unchanged: bool,
        words: &mut Vec<u64>,
    ) -> Met {
        let again = self.slots[0][at];
        let again = covers(kind_of(again), kind) && view.same_epoch(again);
        if self.is_done(at) || (again && kind != WRITE) {
            return Met::Nothing;
        }
        if (kind == READ || kind == ATOMIC_READ) && self.add_to_spilled(at, view, kind) {
            return Met::Nothing;
        }
        let (mixed, reported) = self.load(at, words);
        let by_copy = |word| performer_of(word) == COPY;
        let mut equal = None;
        for &x in words.iter() {
            if !conflicts(kind_of(x), kind) || view.ordered(x) {
                continue;
            }
            if x & FORMER != 0 && kind != WRITE {
                continue; // the last write, unordered as well, races with it
            }
            let both_write = kind == WRITE && kind_of(x) == WRITE && x & FORMER == 0;
            let same_value = unchanged && mixed < view.parts_at(x);
            if both_write && same_value && !by_copy(x) && !by_copy(view.me) {
                equal = Some(x);
                continue;
            }
            let with = x & !FORMER;
            let upgraded = self.finish(at);
            return Met::Race { with, upgraded };
        }
        let mut mixed = mixed;
        if kind == WRITE {
            mixed = insert_write(words, view, mixed, unchanged);
        } else {
            insert_other(words, view, kind);
        }
        match equal {
            Some(with) if reported == 0 => {
                self.store(at, words, mixed, EQUAL_REPORTED);
                Met::EqualStores(with)
            }
            _ => {
                self.store(at, words, mixed, reported);
                Met::Nothing
            }
        }
    }

    /// Records a read in the side table without looking at the others there, so that many readers
    /// of one location each take constant time. Returns whether it did.
    fn add_to_spilled(&mut self, at: usize, view: &View, kind: u64) -> bool {
        if self.slots[2][at] != SPILLED || view.clocks.is_none() {
            return false;
        }
        let last = self.last[at];
        let Some(spilled) = self.spilled.get_mut(&(at as u32)) else {
            return false;
        };
        let ordered = last == 0 || view.ordered(last);
        if !ordered || spilled.writes || spilled.words.len() >= spilled.look_at {
            return false;
        }
        spilled.words.push(view.me | kind);
        self.spilled_words += 1;
        true
    }

    /// Renumbers the time of every access by `threadgroup` to 0, 1 or 2: before its last barrier,
    /// before the last one of its simdgroup, and later.
    pub(super) fn renumber(
        &mut self,
        layout: &Layout,
        threadgroup: u64,
        threadgroup_time: u64,
        simdgroup_time: impl Fn(u64) -> u64,
    ) {
        let renumber = |word: &mut u64| {
            if *word == 0 || *word == DONE || layout.threadgroup_of(*word) != threadgroup {
                return;
            }
            let time = *word & layout.time_mask;
            let new = if time < threadgroup_time {
                0
            } else if time < simdgroup_time(layout.simdgroup_of(*word)) {
                1
            } else {
                2
            };
            *word = (*word & !layout.time_mask) | new << layout.time_shift;
        };
        self.last.iter_mut().for_each(renumber);
        for slot in &mut self.slots {
            slot.iter_mut().for_each(renumber);
        }
        for spilled in self.spilled.values_mut() {
            spilled.words.iter_mut().for_each(renumber);
        }
    }
}

/// Records a plain write that raced with nothing but equal stores; gives the level from which
/// writes are mixed. All that is recorded besides those happens before it, so whatever will race
/// with that will race with this write too, and need not be kept: only that the race is worse than
/// one of equal stores.
fn insert_write(words: &mut Vec<u64>, view: &View, mixed: u64, unchanged: bool) -> u64 {
    let new = view.me | WRITE;
    let by_copy = |word| performer_of(word) == COPY;
    let different = |word| kind_of(word) != WRITE || !unchanged || by_copy(word) || by_copy(new);
    if view.clocks.is_some() {
        // What becomes former now happens after all that was former.
        let becomes_former = |x| x & FORMER == 0 && different(x) && view.ordered(x);
        let any = words.iter().any(|&x| becomes_former(x));
        words.retain_mut(|x| {
            if *x & FORMER != 0 {
                return !any;
            }
            let ordered = view.ordered(*x);
            let keep = !ordered || different(*x);
            if ordered {
                *x |= FORMER;
            }
            keep
        });
        words.push(new);
        return 0;
    }
    let mut mixed = mixed;
    let mut worse = 0;
    words.retain(|&x| {
        let ordered = view.ordered(x);
        if ordered && kind_of(x) == WRITE {
            mixed = mixed_after(mixed, view.level(x, view.me), different(x));
        } else if ordered {
            worse = worse.max(view.level(x, view.me));
        }
        !ordered
    });
    add_to_pair(words, view, WRITE);
    mixed.max(worse)
}

/// The level from which writes are mixed, after one that replaces a write known at `level`.
pub(super) fn mixed_after(mixed: u64, level: u64, different: bool) -> u64 {
    if different { level } else { mixed.min(level) }
}

/// Records an access other than a plain write, and drops what it makes redundant.
fn insert_other(words: &mut Vec<u64>, view: &View, kind: u64) {
    let redundant = |&x: &u64| x & FORMER == 0 && covers(kind_of(x), kind) && view.same_epoch(x);
    if words.iter().any(redundant) {
        return;
    }
    // This access too races with plain writes of any value, and happens after all that is former.
    words.retain(|&x| x & FORMER == 0 && (!covers(kind, kind_of(x)) || !view.ordered(x)));
    if view.clocks.is_some() {
        words.push(view.me | kind);
        return;
    }
    // Accesses of one kind that happen before the same whole are one to all that come after.
    for other in [READ, ATOMIC_WRITE, ATOMIC_READ] {
        let mut seen = [false; 4];
        words.retain(|&x| {
            let covered = kind_of(x) == other || kind_of(x) == ATOMIC_READ;
            let Some(level) = view.ordered_before_all_of(x, view.me).filter(|_| covered) else {
                return true;
            };
            !std::mem::replace(&mut seen[level as usize], true)
        });
    }
    if kind == ATOMIC_READ
        && [READ, ATOMIC_WRITE]
            .iter()
            .any(|&k| pair_meets(words, view, k))
    {
        return;
    }
    add_to_pair(words, view, kind);
    if kind != ATOMIC_READ && parted_by_threadgroup(words, view, kind) {
        words.retain(|&x| kind_of(x) != ATOMIC_READ);
    }
}

/// The recorded accesses of one kind: none, one, or two that differ as high up as any.
fn pair(words: &[u64], kind: u64) -> (Option<u64>, Option<u64>) {
    let mut of_kind = words.iter().copied().filter(|&x| kind_of(x) == kind);
    (of_kind.next(), of_kind.next())
}

fn parted_by_threadgroup(words: &[u64], view: &View, kind: u64) -> bool {
    matches!(pair(words, kind), (Some(x), Some(y)) if !view.layout.same_threadgroup(x, y))
}

/// Whether two accesses of this kind, between them, already race with all that this access could.
fn pair_meets(words: &[u64], view: &View, kind: u64) -> bool {
    let (Some(x), Some(y)) = pair(words, kind) else {
        return false;
    };
    let layout = &view.layout;
    if !layout.same_threadgroup(x, y) {
        return true;
    }
    if !layout.same_threadgroup(x, view.me) || view.ordered(x) || view.ordered(y) {
        return false;
    }
    !layout.same_simdgroup(x, y) || layout.same_simdgroup(x, view.me)
}

/// Adds an access to those of its kind, none of which happens before it, and keeps two that have
/// the largest part of the hierarchy as the least that holds both.
fn add_to_pair(words: &mut Vec<u64>, view: &View, kind: u64) {
    let layout = &view.layout;
    let new = view.me | kind;
    let of_kind = |&x: &u64| kind_of(x) == kind;
    if performer_of(new) == COPY
        && words
            .iter()
            .filter(|x| of_kind(x))
            .any(|&x| layout.same_simdgroup(x, new))
    {
        return; // that one, unordered with its simdgroup's lanes, races with more
    }
    match pair(words, kind) {
        (Some(x), Some(y)) => {
            if !layout.same_threadgroup(x, y) {
                return;
            }
            let replaces = if layout.same_threadgroup(x, new) {
                layout.same_simdgroup(x, y) && !layout.same_simdgroup(x, new)
            } else {
                true
            };
            if replaces {
                let second = words.iter().rposition(|&word| word == y);
                words[second.expect("it was just found")] = new;
            }
        }
        _ => words.push(new),
    }
}
