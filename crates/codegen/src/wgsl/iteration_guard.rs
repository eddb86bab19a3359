//! Noticing a driver that ends loops early.
//!
//! Mesa's processor device counts the iterations of all loops of a vector of invocations, and from the 65,535th
//! on it leaves every loop after one iteration, without a word. Once it has run out, loops stay cut short, hence the
//! end of the kernel shows it: there an invocation walks a list in a few iterations, and where it does not come to the
//! end, some loop before may have been left too early. It says so in a word that the host looks at.
//!
//! The compiler knows nothing of that limit either: to it, who leaves a loop has met its condition. So what
//! is looked at behind the loop is how far the list was walked, which only memory tells.

/// What the host puts in [`Bound::IterationGuard`](super::Bound::IterationGuard) before a dispatch: a word that is no longer
/// 0 when some loop was left too early, and the list, where each entry is the place of the next.
pub const ITERATION_GUARD: [u32; 8] = [0, 2, 3, 4, 5, 6, 7, 0];

/// The declaration of [`ITERATION_GUARD`].
pub(super) fn declaration(attributes: &str) -> String {
    format!(
        "\n// Whether the driver has left a loop too early, and a list to find that out.\n\
         {attributes} var<storage, read_write> iterations__left: array<atomic<u32>, {}>;\n",
        ITERATION_GUARD.len()
    )
}

/// The end of an entry point: walks the list.
pub(super) fn check() -> String {
    format!(
        "    var at = 1u;
    loop {{
        let next = atomicLoad(&iterations__left[at]);
        if (next == 0u) {{
            break;
        }}
        at = next;
    }}
    if (at != {}u) {{
        atomicStore(&iterations__left[0], 1u);
    }}
",
        ITERATION_GUARD.len() - 1
    )
}
