//! What the variables hold at a place of the shader.
//!
//! Invariants: changes are recorded, so that a branch or a loop costs what it changes, however many variables there
//! are.

use std::collections::{BTreeMap, HashMap};
use std::ops::Index;

use invar_ir::Value;

use crate::value::Slot;

#[derive(Default)]
pub(crate) struct Variables {
    values: HashMap<Slot, Value>,
    /// What changed since the beginning, with what was there before.
    changes: Vec<(Slot, Option<Value>)>,
}

/// What the variables hold that a part of a shader changed; none where they are gone.
pub(crate) type Changed = BTreeMap<Slot, Option<Value>>;

/// A place to which changes can be taken back.
#[derive(Clone, Copy)]
pub(crate) struct Mark(usize);

impl Variables {
    pub fn get(&self, slot: Slot) -> Option<Value> {
        self.values.get(&slot).copied()
    }

    pub fn insert(&mut self, slot: Slot, value: Value) {
        let before = self.values.insert(slot, value);
        self.changes.push((slot, before));
    }

    pub fn remove(&mut self, slot: Slot) {
        let before = self.values.remove(&slot);
        self.changes.push((slot, before));
    }

    pub fn mark(&self) -> Mark {
        Mark(self.changes.len())
    }

    /// Takes back what changed since; gives what it had become.
    pub fn undo(&mut self, mark: Mark) -> Changed {
        let mut changed = Changed::new();
        for (slot, before) in self.changes.drain(mark.0..).rev() {
            let now = match before {
                Some(value) => self.values.insert(slot, value),
                None => self.values.remove(&slot),
            };
            // The last change is met first.
            changed.entry(slot).or_insert(now);
        }
        changed
    }

    /// Makes changes again.
    pub fn redo(&mut self, changed: Changed) {
        for (slot, value) in changed {
            match value {
                Some(value) => self.insert(slot, value),
                None => self.remove(slot),
            }
        }
    }
}

impl Index<Slot> for Variables {
    type Output = Value;

    fn index(&self, slot: Slot) -> &Value {
        &self.values[&slot]
    }
}
