//! Leaving early what takes long, at the caller's wish: Ctrl-C in a language that looks for it itself.

use std::cell::Cell;

use invar_ir::Rule;

use crate::Error;

type InterruptCheck<'a> = &'a dyn Fn() -> bool;

thread_local! {
    static ASKED: Cell<Option<InterruptCheck<'static>>> = const { Cell::new(None) };
    /// Whether that gave true: who wants to leave says so once, as Ctrl-C does.
    static LEAVES: Cell<bool> = const { Cell::new(false) };
}

/// Does something during which `asked` is looked at now and then, on this thread: once it gives true, what is waited
/// for is left (`cancelled`), be it a compilation, or a dispatch before an access of the host or before another
/// submission. It may give true once only. What is left goes on; dispatches are stopped by [`crate::Submission::cancel`].
///
/// ```
/// use invar_ir::{text, verify};
/// use invar_runtime::{Device, interruptible};
///
/// let module = verify(text::parse("k.inv", "kernel @k() threadgroup(1) {}")?)?;
/// let program = interruptible(&|| false, || Device::default()?.compile(&module, "k"))?;
/// # Ok::<(), invar_runtime::Error>(())
/// ```
pub fn interruptible<R>(asked: &dyn Fn() -> bool, f: impl FnOnce() -> R) -> R {
    struct Restore(Option<InterruptCheck<'static>>, bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            ASKED.set(self.0);
            LEAVES.set(self.1);
        }
    }
    // SAFETY: only the lifetime changes; it is taken out again before this function returns or unwinds, and no
    // other thread sees it.
    let asked =
        unsafe { std::mem::transmute::<InterruptCheck<'_>, InterruptCheck<'static>>(asked) };
    let _restore = Restore(ASKED.replace(Some(asked)), LEAVES.replace(false));
    f()
}

/// Whether the caller may want to leave.
pub(crate) fn is_possible() -> bool {
    ASKED.get().is_some()
}

/// Why a wait was left.
pub(crate) fn left() -> Error {
    Error::new(
        Rule::Cancelled,
        "the wait for dispatches under way was interrupted; they go on",
    )
}

/// Whether the caller wants to leave. A caller that wanted to once still does.
pub(crate) fn is_asked() -> bool {
    if !LEAVES.get() && ASKED.get().is_some_and(|asked| asked()) {
        LEAVES.set(true);
    }
    LEAVES.get()
}
