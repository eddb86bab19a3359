//! What a process makes once and keeps, which a fork must not come in the middle of.
//!
//! A child of `fork` has none of its parent's threads. What one of them was making would stay half made in the child,
//! and whoever asks for it there would wait for ever. So a fork waits until no thread makes such a value; who watches
//! forks calls [`before_fork`] and [`after_fork`] around each.
//!
//! Deliberately absent: watching forks, and threads that wait for the one that forks while they make a value.

use std::cell::{Cell, RefCell};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

/// How many threads make values.
static MAKING: Mutex<usize> = Mutex::new(0);
static DONE: Condvar = Condvar::new();

thread_local! {
    /// How many values this thread makes, one for the sake of another.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// What a thread holds while it forks: none begins to make a value.
    static HELD: RefCell<Option<MutexGuard<'static, usize>>> = const { RefCell::new(None) };
}

fn making() -> MutexGuard<'static, usize> {
    MAKING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// While it lives, no other thread forks.
#[must_use]
pub struct Making(());

impl Making {
    /// Begins; waits for a fork that is under way.
    pub fn begin() -> Making {
        DEPTH.with(|depth| {
            if depth.get() == 0 {
                *making() += 1;
            }
            depth.set(depth.get() + 1);
        });
        Making(())
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        DEPTH.with(|depth| {
            depth.set(depth.get() - 1);
            if depth.get() == 0 {
                *making() -= 1;
                DONE.notify_all();
            }
        });
    }
}

/// A value that is made once.
///
/// ```
/// use invar_ir::once::Once;
///
/// static SQUARES: Once<Vec<u32>> = Once::new();
/// let squares = SQUARES.get_or_make(|| (0..4).map(|n| n * n).collect());
/// assert_eq!(squares, &[0, 1, 4, 9]);
/// ```
#[derive(Debug)]
pub struct Once<T>(OnceLock<T>);

impl<T> Once<T> {
    /// One that is not made yet.
    pub const fn new() -> Once<T> {
        Once(OnceLock::new())
    }

    /// The value, which the first caller makes.
    pub fn get_or_make(&self, make: impl FnOnce() -> T) -> &T {
        if let Some(made) = self.0.get() {
            return made;
        }
        let _making = Making::begin();
        self.0.get_or_init(make)
    }
}

impl<T> Default for Once<T> {
    fn default() -> Once<T> {
        Once::new()
    }
}

/// Waits until no other thread makes a value, and keeps them from it; for the thread that forks. One that forks while
/// it makes a value itself waits for nobody: others may wait for it.
pub fn before_fork() {
    if DEPTH.try_with(Cell::get).unwrap_or(0) > 0 {
        return;
    }
    let mut count = making();
    while *count > 0 {
        count = DONE.wait(count).unwrap_or_else(PoisonError::into_inner);
    }
    // A thread that is ending has nothing to hold it in.
    let _ = HELD.try_with(|held| *held.borrow_mut() = Some(count));
}

/// Lets go, in the parent and in the child.
pub fn after_fork() {
    let _ = HELD.try_with(|held| *held.borrow_mut() = None);
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::Duration;

    use super::{Making, Once, after_fork, before_fork};

    #[test]
    fn forks_wait_for_what_others_make() {
        static MADE: Once<u32> = Once::new();
        let (begun, has_begun) = channel();
        let (go, may_end) = channel::<()>();
        let maker = thread::spawn(move || {
            let make = || {
                // One value for the sake of another.
                let _also = Making::begin();
                begun.send(()).expect("someone waits");
                may_end.recv().expect("it is said");
                7
            };
            *MADE.get_or_make(make)
        });
        has_begun.recv().expect("it begins");
        let (forked, has_forked) = channel();
        let forker = thread::spawn(move || {
            before_fork();
            after_fork();
            forked.send(()).expect("someone waits");
        });
        assert!(has_forked.recv_timeout(Duration::from_millis(50)).is_err());
        go.send(()).expect("it waits");
        assert_eq!(maker.join().expect("it ends"), 7);
        has_forked.recv().expect("it goes on");
        forker.join().expect("it ends");
        // Who forks while it makes a value itself does not wait for itself.
        let _making = Making::begin();
        before_fork();
        after_fork();
        assert_eq!(*MADE.get_or_make(|| 8), 7);
    }
}
