//! Threadgroups that wait in memory, and what wakes them.
//!
//! A threadgroup of which no simdgroup can do more than read again what it has read *sleeps*: it is put off until
//! another changes one of the words that it looked at. So what it costs to wait does not grow with how many
//! wait. Sleep is only a matter of who comes first: sleepers get a turn now and then, and when no other has
//! anything to do, for what looks like waiting may be a loop that counts its rounds.
//!
//! Only words of buffers are noted: no other reaches the threadgroup memory of one that sleeps.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;

use crate::access::{NOWHERE, for_each_lane};
use crate::program::Slot;
use crate::schedule::InFlight;

/// A word of a buffer: the number of the argument, and which word.
pub(crate) type Word = (u32, u64);

/// Bytes of a word; no atomic is smaller.
const WORD: u64 = 4;

/// The words of an argument that these bytes lie in.
fn words(argument: u32, address: u64, bytes: u64) -> std::ops::RangeInclusive<Word> {
    let last = address.saturating_add(bytes - 1);
    (argument, address / WORD)..=(argument, last / WORD)
}

/// What a simdgroup has looked at since it last saw something new.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vigil {
    /// The accesses that saw nothing new.
    sites: Vec<u32>,
    pub words: Vec<Word>,
    /// One of them has come again.
    pub is_round: bool,
}

impl Vigil {
    /// Something new was seen.
    pub fn end(&mut self) {
        self.sites.clear();
        self.words.clear();
        self.is_round = false;
    }

    /// The access at a site saw nothing new in these lanes.
    pub fn note(&mut self, site: u32, slot: Slot, lanes: u128, addresses: &[u64], bytes: u64) {
        self.is_round = self.sites.contains(&site);
        if !self.is_round {
            self.sites.push(site);
        }
        let Slot::Argument(argument) = slot else {
            return;
        };
        for_each_lane(lanes, |lane| {
            if addresses[lane] != NOWHERE {
                let range = words(argument, addresses[lane], bytes);
                for word in range.start().1..=range.end().1 {
                    if !self.words.contains(&(argument, word)) {
                        self.words.push((argument, word));
                    }
                }
            }
        });
    }
}

/// Memory that threads share, seen from those who wait for it to change.
#[derive(Default)]
pub(crate) struct Changes {
    /// How often it may have changed.
    pub count: u64,
    /// Words and the slots of those who look at them.
    watched: BTreeSet<(Word, u32)>,
    /// The slots of those whose word has changed.
    woken: BTreeSet<u32>,
}

impl Changes {
    /// Bytes of an object may have changed.
    #[inline]
    pub fn note(&mut self, slot: Slot, address: u64, bytes: u64) {
        self.count += 1;
        if !self.watched.is_empty() && bytes != 0 {
            self.wake(slot, address, bytes);
        }
    }

    /// The same, in these lanes.
    #[inline]
    pub fn note_lanes(&mut self, slot: Slot, lanes: u128, addresses: &[u64], by: u64, bytes: u64) {
        self.count += u64::from(lanes != 0);
        if !self.watched.is_empty() {
            for_each_lane(lanes, |lane| {
                if addresses[lane] != NOWHERE {
                    self.wake(slot, addresses[lane].saturating_add(by), bytes);
                }
            });
        }
    }

    #[cold]
    fn wake(&mut self, slot: Slot, address: u64, bytes: u64) {
        if let Slot::Argument(argument) = slot {
            let range = words(argument, address, bytes);
            let looks = (*range.start(), 0)..=(*range.end(), u32::MAX);
            let woken = self.watched.range(looks).map(|(_, slot)| *slot);
            self.woken.extend(woken);
        }
    }
}

/// Threadgroups that sleep, by their slots.
#[derive(Default)]
pub(crate) struct Sleepers {
    list: BTreeMap<u32, (InFlight, Vec<Word>)>,
    /// Turns of others since all were woken.
    turns: usize,
}

/// How many turns of others pass for each sleeper before all are woken.
const TURNS_EACH: usize = 16;

impl Sleepers {
    pub fn count(&self) -> usize {
        self.list.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &InFlight> {
        self.list.values().map(|(group, _)| group)
    }

    /// Puts a threadgroup to sleep until one of these words changes.
    pub fn add(&mut self, group: InFlight, words: Vec<Word>, changes: &mut Changes) {
        let slot = group.place.who.slot;
        changes
            .watched
            .extend(words.iter().map(|word| (*word, slot)));
        self.list.insert(slot, (group, words));
    }

    /// Those whose time has come, after one more turn.
    pub fn woken(&mut self, changes: &mut Changes) -> Vec<InFlight> {
        self.turns += 1;
        if self.turns > TURNS_EACH * self.list.len() {
            return self.all(changes);
        }
        let slots = take(&mut changes.woken);
        let mut woken = Vec::new();
        for slot in slots {
            if let Some((group, words)) = self.list.remove(&slot) {
                for word in words {
                    changes.watched.remove(&(word, slot));
                }
                woken.push(group);
            }
        }
        woken.iter_mut().for_each(InFlight::look_again);
        woken
    }

    /// Everyone.
    pub fn all(&mut self, changes: &mut Changes) -> Vec<InFlight> {
        self.turns = 0;
        changes.watched.clear();
        changes.woken.clear();
        let list = take(&mut self.list).into_values();
        let mut all: Vec<InFlight> = list.map(|(group, _)| group).collect();
        all.iter_mut().for_each(InFlight::look_again);
        all
    }
}
