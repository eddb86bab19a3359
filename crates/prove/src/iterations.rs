//! What is known of loops that constants run, by the numbers of their iterations: data only.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use invar_ir::{AddressSpace, Value};

use crate::shape::{Id, Iterations};

/// What is known of the values of an iteration.
pub type Known = HashMap<Value, i128>;
/// Instructions and the iterations in which each may be reached, by intervals: none where there are too many.
pub type Intervals = Option<Vec<BTreeSet<(Id, Iterations)>>>;
/// What is known in each iteration of a loop, if constants say which is the last.
pub type Loop = Option<Rc<Vec<Known>>>;
/// The intervals of a space for a threadgroup or a simdgroup, and those of the whole kernel as one.
pub type BySpace = HashMap<Option<(AddressSpace, bool)>, Rc<Intervals>>;

/// What is known of the loops of a kernel that constants run.
#[derive(Default)]
pub struct Unrolled {
    /// The loops whose iterations are told by their numbers.
    pub loops: OnceCell<BTreeSet<Id>>,
    /// What is known in each iteration of a loop, by those of the loops around it.
    pub iterations: RefCell<HashMap<(Id, Iterations), Loop>>,
    /// The intervals between barriers, once they are asked for.
    pub intervals: RefCell<BySpace>,
    /// What loops give that are in no other, by which of their results it is.
    pub ends: RefCell<HashMap<(Id, usize), Option<i128>>>,
}
