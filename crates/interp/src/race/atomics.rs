//! Whether atomics of different kinds on one location are ordered by barriers.
//!
//! Unordered atomics of one commuting kind leave the same in any order. What others leave depends on
//! the schedule, unless barriers order them. A location needs one entry for each kind: two accesses of
//! a kind that are unordered are told from all that come later by the least part of the grid that
//! holds both.

use std::collections::HashMap;

use super::Commuting;
use super::shadow::View;

/// The least part of the grid that holds all of an entry's accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Thread,
    Simdgroup,
    Threadgroup,
    Grid,
}

/// Unordered atomics of one kind.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// None: they commute with nothing.
    kind: Option<Commuting>,
    /// One of them, with the latest time of all.
    word: u64,
    part: Part,
}

impl Entry {
    /// Whether all of them happen before the access.
    fn ordered(&self, view: &View) -> bool {
        let layout = &view.layout;
        let time = self.word & layout.time_mask;
        match self.part {
            Part::Thread => view.ordered_by_barriers(self.word, view.me),
            Part::Simdgroup => {
                layout.same_threadgroup(self.word, view.me)
                    && (time < view.threadgroup_time
                        || layout.same_simdgroup(self.word, view.me) && time < view.simdgroup_time)
            }
            Part::Threadgroup => {
                layout.same_threadgroup(self.word, view.me) && time < view.threadgroup_time
            }
            Part::Grid => false,
        }
    }

    fn add(&mut self, view: &View) {
        let layout = &view.layout;
        let apart = if !layout.same_threadgroup(self.word, view.me) {
            Part::Grid
        } else if !layout.same_simdgroup(self.word, view.me) {
            Part::Threadgroup
        } else {
            Part::Simdgroup
        };
        self.part = self.part.max(apart);
        let time = (self.word & layout.time_mask).max(view.me & layout.time_mask);
        self.word = self.word & !layout.time_mask | time;
    }
}

/// The atomics that changed the locations of one object, by slot of the threadgroup and location.
#[derive(Debug, Default)]
pub(super) struct Changes {
    locations: HashMap<(u32, u32), Vec<Entry>>,
    /// Two of them do not commute and nothing orders them.
    pub(super) unordered: bool,
}

impl Changes {
    /// An atomic changes, or may change, a location.
    pub(super) fn note(&mut self, key: (u32, u32), view: &View, kind: Option<Commuting>) {
        if self.unordered {
            return;
        }
        let entries = self.locations.entry(key).or_default();
        let mut same = None;
        for (i, entry) in entries.iter().enumerate() {
            if entry.kind == kind && kind.is_some() {
                same = Some(i);
            } else if !entry.ordered(view) {
                self.unordered = true;
                self.locations.clear();
                return;
            }
        }
        let new = Entry {
            kind,
            word: view.me,
            part: Part::Thread,
        };
        match same {
            Some(i) if entries[i].ordered(view) => entries[i] = new,
            Some(i) => entries[i].add(view),
            // Whatever is unordered with one of those before is unordered with this one too.
            None if kind.is_none() => *entries = vec![new],
            None => entries.push(new),
        }
    }

    /// A threadgroup's own memory is gone.
    pub(super) fn forget(&mut self, slot: u32) {
        self.locations.retain(|(other, _), _| *other != slot);
    }
}
