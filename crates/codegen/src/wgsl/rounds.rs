//! Noticing a driver that ends loops early.
//!
//! Mesa's processor device counts the rounds of all loops of a vector of invocations, and from the 65,535th
//! on it leaves every loop after one round, without a word. What has run out stays so, hence the end of
//! the kernel shows it: there an invocation walks a list in a few rounds, and where it does not come to the
//! end, some loop before may have been left too early. It says so in a word that the host looks at.
//!
//! The compiler knows nothing of that limit either: to it, who leaves a loop has met its condition. So what
//! is looked at behind the loop is how far the list was walked, which only memory tells.

//!
//! Mesa's compiler also takes a loop without effects for one that ends, and what follows a loop that nobody
//! leaves for dead, the check included. So a loop that only its body ends walks a circle in the list, which
//! only memory tells from one with an end.

/// What the host puts in [`Bound::Rounds`](super::Bound::Rounds) before a dispatch: a word that is no longer
/// 0 when some loop was left too early; the list, where each entry is the place of the next; and a circle, the
/// place of itself.
pub const ROUNDS: [u32; 9] = [0, 2, 3, 4, 5, 6, 7, 0, CIRCLE];

/// The end of the list.
const END: u32 = 7;
/// The circle.
const CIRCLE: u32 = 8;

/// The declaration of [`ROUNDS`].
pub(super) fn declaration(binding: usize) -> String {
    format!(
        "\n// Whether the driver has left a loop too early, and a list to find that out.\n\
         @group(0) @binding({binding}) var<storage, read_write> rounds__left: array<atomic<u32>, {}>;\n",
        ROUNDS.len()
    )
}

/// Whether a piece of the module has a loop.
pub(super) fn has_loop(text: &str) -> bool {
    text.contains("loop {") || text.contains("for (")
}

/// The end of an entry point: walks the list.
pub(super) fn check() -> String {
    format!(
        "    var at = 1u;
    loop {{
        let next = atomicLoad(&rounds__left[at]);
        if (next == 0u) {{
            break;
        }}
        at = next;
    }}
    if (at != {END}u) {{
        atomicStore(&rounds__left[0], 1u);
    }}
"
    )
}

/// What keeps a loop until its body ends it: a walk of the circle, by a variable of that name.
pub(super) struct Kept(String);

impl Kept {
    pub(super) fn new(variable: String) -> Kept {
        Kept(variable)
    }

    /// The line before the loop.
    pub(super) fn before(&self) -> String {
        format!("var {} = {CIRCLE}u;", self.0)
    }

    /// The first line in it.
    pub(super) fn inside(&self) -> String {
        let at = &self.0;
        format!("    {at} = atomicLoad(&rounds__left[{at}]); if ({at} == 0u) {{ break; }}")
    }

    /// The line behind it, which needs what the walk has come to.
    pub(super) fn behind(&self) -> String {
        let at = &self.0;
        format!("if ({at} != {CIRCLE}u) {{ atomicStore(&rounds__left[0], 1u); }}")
    }
}
