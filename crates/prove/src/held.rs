//! What constant arrays hold, as far as an access reaches it.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use invar_ir::Memory;

use crate::query::Way;

/// A number that a constant array holds: where, by the index of the element and those of its way into it, and what.
pub type Held = (Vec<i128>, i128);

/// The numbers of a constant array that indices within bounds can reach.
#[derive(Debug)]
pub struct Reached {
    /// Each with its place.
    pub held: Vec<Held>,
    /// The least and the largest of them, and the 0 of an access out of bounds (B1).
    pub between: Option<(i128, i128)>,
    /// Whether no two are the same.
    pub are_distinct: bool,
}

impl Reached {
    /// Looks at them.
    pub fn of(held: Vec<Held>) -> Reached {
        let values: BTreeSet<i128> = held.iter().map(|(_, value)| *value).collect();
        let ends = values.first().zip(values.last());
        Reached {
            between: ends.map(|(least, most)| ((*least).min(0), (*most).max(0))),
            are_distinct: held.len() > 1 && values.len() == held.len(),
            held,
        }
    }
}

/// What was reached of constant arrays, by the way into their elements and the bounds of the indices.
pub type AllReached = HashMap<(Memory, Way, Vec<(i128, i128)>), Rc<Reached>>;
