//! The closures of kernels that are being built, which run on this thread: what a program builds in one of another
//! kernel is not what its author meant.
//!
//! Deliberately absent: kernels. Here they have names.

use std::cell::{Cell, RefCell};

thread_local! {
    /// The kernels whose closures are being run, innermost last.
    static OPEN: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Those of one kernel.
pub struct Closures {
    /// How many are being run.
    open: Cell<usize>,
    /// How many of any kernel's were being run when this one was begun: it may be built as a whole inside of them.
    begun: usize,
}

impl Closures {
    pub fn of_a_new_kernel() -> Closures {
        Closures {
            open: Cell::new(0),
            begun: OPEN.with_borrow(Vec::len),
        }
    }

    /// One is run, until what this gives is dropped.
    pub fn enter(&self, kernel: String) -> Inside<'_> {
        OPEN.with_borrow_mut(|open| open.push(kernel));
        self.open.set(self.open.get() + 1);
        Inside(self)
    }

    /// The kernel in whose closure this runs, if it is another one's and none of this kernel's is around.
    pub fn of_another(&self) -> Option<String> {
        match self.open.get() {
            0 => OPEN.with_borrow(|open| open.get(self.begun..)?.last().cloned()),
            _inside => None,
        }
    }
}

/// From [`Closures::enter`].
pub struct Inside<'k>(&'k Closures);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let _left = OPEN.with_borrow_mut(Vec::pop);
        self.0.open.set(self.0.open.get() - 1);
    }
}
