//! What has happened to memory that threads share, and what those who wait for it have looked at.

use std::collections::BTreeSet;

use crate::access::{NOWHERE, for_each_lane};
use crate::program::Slot;

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
pub(crate) struct SpinState {
    /// The accesses that saw nothing new.
    sites: Vec<u32>,
    pub words: Vec<Word>,
    /// One of them has come again.
    pub is_round: bool,
}

impl SpinState {
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
    pub watched: BTreeSet<(Word, u32)>,
    /// The slots of those whose word has changed.
    pub woken: BTreeSet<u32>,
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
