//! The verifier: the one door between what a front end built and what a device takes.
//!
//! It knows no device. What it passes can only be refused later for a stated limit of a device.
//! All independent errors are reported at once, in the order of the text, at most [`MAX_ERRORS`] and how
//! many more there are; what would follow from an error already reported is not. A front end whose
//! kernel could not be built whole hands over a `Draft`: the rest is checked all the same. The rules, each explained where [`Rule`] lists it:
//!
//! The module (`declarations.rs`)
//! - there is a kernel; names are unique and not empty; ids of sources and calls are in range, and a
//!   call was made from an earlier one;
//! - structs have fields, and hold only what memory can hold and earlier structs; arrays have elements;
//!   sizes are limited;
//! - program-scope constants have one value for each of their scalars; function constants have unique
//!   ids, and defaults of their type;
//! - a threadgroup size is not empty, a simdgroup size a power of two from 4 to 128.
//!
//! What a kernel requires of a launch (`requires.rs`)
//! - S5: comparisons of integers that a launch says, and of elements of buffers that it only reads.
//!
//! The shape of a kernel (`structure.rs`)
//! - regions nest at most [`crate::inst::MAX_NESTING`] deep; each has one terminator, at its end, which
//!   suits the place; loops' bodies have the parameters of their loop;
//! - all ids are in range; values and arrays are numbered in the order of the text; each use is in the
//!   region of the definition, or inside it, and after it.
//!
//! Types (`types.rs`)
//! - operands and results fit the op table's row, or the instruction; a `for`'s bounds and step match;
//! - `yield`, `break` and `continue` give what the `if` or the loop takes. The results of a loop have
//!   the types of what it carries.
//!
//! Memory (`memory.rs`)
//! - S1, S2: no store to or atomic on what is read only, no load from what is write only;
//! - imageblocks have as many elements as the threadgroup has positions, and no atomics or copies;
//! - arrays, atomics, copies, async copies and simdgroup matrices are in spaces where they work;
//! - textures are reached by their functions only (`textures.rs`), with coordinates and values of their types;
//!   integers are not filtered;
//! - T1, T3, O2, X5: atomics' types, orders and scopes, the scopes of barriers and assertions.
//!
//! Convergence (`convergence.rs`)
//! - X4: barriers and collective operations are reached by all threads of their scope together, which
//!   [`crate::uniformity`] proves; what a simdgroup does together has uniform operands.
//!
//! A kernel whose ids or nesting are broken is not looked at further; the later checks rely on both.
//! Time and memory are linear in the module, and recursion is as deep as regions nest.

use std::collections::{HashMap, HashSet};
use std::ops::Deref;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::inst::Value;
use crate::module::{Kernel, Module};
use crate::room::{PASSES_BYTES, with_room};
use crate::rules::Rule;
use crate::span::Span;

mod convergence;
mod declarations;
mod memory;
mod requires;
mod specialise;
mod structure;
mod textures;
mod types;

pub use specialise::ConstantKey;

/// No more errors than these are reported.
pub const MAX_ERRORS: usize = 100;

/// The most threadgroup memory that the arrays of a kernel may take together, in bytes.
pub const MAX_THREADGROUP_BYTES: u64 = 16 << 20;

/// The most thread memory that the arrays of a kernel may take together, in bytes.
pub const MAX_THREAD_BYTES: u64 = 256 << 10;

/// The most bytes that the program-scope constants of a module may take together.
pub const MAX_CONSTANT_BYTES: u64 = 64 << 20;

/// A module that obeys every rule. Only [`verify()`] and [`Verified::specialise`] make one, so a function that
/// takes one need not check again.
#[derive(Clone, Debug)]
pub struct Verified(Module);

impl Deref for Verified {
    type Target = Module;

    fn deref(&self) -> &Module {
        &self.0
    }
}

impl Verified {
    /// The module, to change it; it must be verified again.
    pub fn into_module(self) -> Module {
        self.0
    }
}

/// Checks a module against every rule.
///
/// ```
/// use invar_ir::{KernelBuilder, Module, Rule, Scope, Spaces, verify};
///
/// let mut k = KernelBuilder::new(Module::default(), "late");
/// let n = k.scalar("n", invar_ir::Scalar::U32);
/// let i = k.thread_index_in_threadgroup();
/// let early = k.lt(i, n);
/// k.if_(early, |k| k.barrier(Scope::Threadgroup, Spaces::DEFAULT));
/// let errors = verify(k.finish()?).unwrap_err();
/// assert_eq!(errors.0.len(), 1);
/// assert_eq!(errors.0[0].rule, Rule::BarrierNotUniform);
/// # Ok::<(), invar_ir::Diagnostics>(())
/// ```
///
/// # Errors
/// Every independent violation, each with its span, the author's names and what to do.
pub fn verify(module: Module) -> Result<Verified, Diagnostics> {
    let draft = Draft {
        module,
        ..Draft::default()
    };
    let errors = draft.check();
    if errors.list.is_empty() {
        Ok(Verified(draft.module))
    } else {
        Err(errors.conclude())
    }
}

/// A module that may not be whole: what is wrong with it was reported where it was written, and what
/// could not be built is poison. The rest is checked like any other module; poison has no type, no
/// place and no uniformity of which anything could be said.
#[derive(Default)]
pub(crate) struct Draft {
    pub module: Module,
    /// What was reported already.
    pub errors: Vec<Diagnostic>,
    /// How many more there are than are kept.
    pub more: usize,
    /// By the number of the kernel, the values that could not be built.
    pub poison: HashMap<usize, HashSet<Value>>,
}

impl Draft {
    /// All errors: those reported already, and what the rules say of the rest.
    pub fn diagnostics(self) -> Diagnostics {
        self.check().conclude()
    }

    fn check(&self) -> Errors {
        with_room(PASSES_BYTES, || self.checked())
    }

    fn checked(&self) -> Errors {
        let mut errors = Errors {
            more: self.more,
            ..Errors::default()
        };
        for error in &self.errors {
            errors.push(error.clone());
        }
        let module = &self.module;
        let broken = !self.errors.is_empty();
        let sound = declarations::check(module, broken, &mut errors);
        let none = HashSet::new();
        for (i, kernel) in module.kernels.iter().enumerate() {
            let poison = self.poison.get(&i).unwrap_or(&none);
            let types = declarations::check_kernel(module, kernel, &sound, &mut errors);
            requires::check(module, kernel, &mut errors);
            if structure::check(module, kernel, poison, &mut errors) && types {
                types::check(module, kernel, poison, &mut errors);
                memory::check(module, kernel, &mut errors);
                convergence::check(module, kernel, &mut errors);
            }
        }
        errors
    }
}

/// What to do about a module that no front end builds.
const MALFORMED_HELP: &str = "build it with the builder, or renumber it after changing it";

/// The errors found so far.
#[derive(Default)]
struct Errors {
    list: Vec<Diagnostic>,
    /// How many there are beside.
    more: usize,
    /// What was reported already: one place breaks one rule once.
    seen: HashSet<(Rule, Span, String)>,
}

impl Errors {
    fn push(&mut self, error: Diagnostic) {
        let key = (error.rule, error.span(), error.message.clone());
        if self.seen.contains(&key) {
            return;
        }
        if self.list.len() < MAX_ERRORS {
            self.seen.insert(key);
            self.list.push(error);
        } else {
            self.more += 1;
        }
    }

    fn error(&mut self, rule: Rule, span: Span, message: impl Into<String>, help: &str) {
        self.push(Diagnostic::error(rule, span, message).help(help));
    }

    /// All of them in the order of the text, and how many are not among them.
    fn conclude(mut self) -> Diagnostics {
        self.list.sort_by_key(|error| {
            let span = error.span();
            (span.source.map(|source| source.0), span.start)
        });
        if self.more > 0 {
            let (are, s) = if self.more == 1 {
                ("is", "")
            } else {
                ("are", "s")
            };
            let message = format!("{} more error{s} {are} not shown", self.more);
            let at = self.list.last().map_or(Span::NONE, Diagnostic::span);
            self.list.push(
                Diagnostic::error(Rule::LimitExceeded, at, message).help("mend those above first"),
            );
        }
        Diagnostics(self.list)
    }
}

/// Values' names in a message: `%a`, `%b` and 3 more.
fn names(module: &Module, kernel: &Kernel, values: &[Value]) -> String {
    let shown: Vec<String> = values
        .iter()
        .take(4)
        .map(|v| format!("`{}`", module.called(kernel, *v)))
        .collect();
    match values.len().saturating_sub(4) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
