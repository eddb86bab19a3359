//! Which process this is: a child of `fork` has its parent's memory, but none of its threads.
//!
//! What threads of the parent had begun never ends in the child, and what they held stays held. So whatever is
//! shared with threads knows the process that it was made in, and is made anew in another.
//!
//! Deliberately absent: children that are made without the C library's `fork`.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use invar_ir::{Rule, once};

use crate::Error;

/// How many forks lie between the process that first asked and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// A number that differs in a child of `fork` from its parent's.
pub(crate) fn process() -> u32 {
    watch();
    FORKS.load(Ordering::Acquire)
}

/// Has forks wait until nothing is half made that a process makes once ([`invar_ir::once`]), and LLVM is not at work,
/// whose own such values are among its code. What gives out devices does it by itself.
pub fn watch() {
    #[cfg(unix)]
    {
        static WATCHED: std::sync::Once = std::sync::Once::new();
        WATCHED.call_once(add_handlers);
    }
}

/// What is done before a fork, and after it in both processes: by the thread that forks.
static AROUND: OnceLock<[fn(); 2]> = OnceLock::new();

/// Has something done before each fork, and something after it in the parent and in the child. Only once.
pub(crate) fn around(before: fn(), after: fn()) {
    let _ = AROUND.set([before, after]);
}

/// What is said of something that a thread of the parent would have ended.
pub(crate) fn left_behind(what: &str) -> Error {
    Error::new(
        Rule::DeviceLost,
        format!(
            "{what} was under way when this process was forked, and a child has none of its parent's threads: \
             it goes on in the parent; submit it again here, or wait for it before `fork`"
        ),
    )
}

#[cfg(unix)]
fn add_handlers() {
    use std::ffi::c_int;

    unsafe extern "C" {
        fn pthread_atfork(
            before: Option<extern "C" fn()>,
            in_parent: Option<extern "C" fn()>,
            in_child: Option<extern "C" fn()>,
        ) -> c_int;
    }
    extern "C" fn before() {
        once::before_fork();
        if let Some([before, _]) = AROUND.get() {
            before();
        }
    }
    extern "C" fn in_parent() {
        if let Some([_, after]) = AROUND.get() {
            after();
        }
        once::after_fork();
    }
    extern "C" fn in_child() {
        in_parent();
        FORKS.fetch_add(1, Ordering::AcqRel);
    }
    // SAFETY: the functions unwind not, and take no lock but those of the executor's state and of what is made
    // once, under which no thread forks. Where the system has no memory for them, a child is as if it had never asked.
    let _ = unsafe { pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
}
