//! What is known of loops that constants run, by the numbers of their iterations: data only.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use invar_ir::{AddressSpace, Value};

use crate::shape::{Id, Iteration, Iterations};

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

/// Brings the iterations of two accesses of one interval to as few cases as there are.
pub fn relate(a: &Iterations, b: &Iterations) -> (Iterations, Iterations) {
    let (mut a, mut b) = (a.clone(), b.clone());
    let loops: BTreeSet<Id> = a.keys().chain(b.keys()).copied().collect();
    for l in loops {
        match (a.get(&l).copied(), b.get(&l).copied()) {
            // Both in the iteration after: one iteration, as any.
            (Some(Iteration::Next), Some(Iteration::Next)) => {
                a.insert(l, Iteration::Same);
                b.insert(l, Iteration::Same);
            }
            (Some(x), Some(y)) => {
                let lone = |x, y| x == Iteration::Next && y != Iteration::Same;
                if lone(x, y) || lone(y, x) {
                    for (iterations, iteration) in [(&mut a, x), (&mut b, y)] {
                        if iteration == Iteration::Next {
                            iterations.insert(l, Iteration::Any);
                        }
                    }
                }
            }
            (Some(Iteration::Next), None) => {
                a.insert(l, Iteration::Any);
            }
            (None, Some(Iteration::Next)) => {
                b.insert(l, Iteration::Any);
            }
            (Some(_), None) | (None, Some(_)) | (None, None) => {}
        }
    }
    (a, b)
}
