//! Threadgroups that wait in memory, and what wakes them.
//!
//! A threadgroup of which no simdgroup can do more than read again what it has read *sleeps*: it is put off until
//! another changes one of the words that it looked at. So what it costs to wait does not grow with how many
//! wait. Sleep is only a matter of who comes first: sleepers get a turn now and then, and when no other has
//! anything to do, for what looks like waiting may be a loop that counts its iterations.
//!
//! Only words of buffers are noted: no other reaches the threadgroup memory of one that sleeps.

use std::collections::BTreeMap;
use std::mem::take;

use crate::changes::{Changes, Word};
use crate::schedule::InFlight;

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
