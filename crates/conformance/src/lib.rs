//! What shows that a device keeps the memory model: random valid kernels, the file tests, and the
//! comparison of both with the reference machine.
//!
//! - [`generate`]: a kernel, its arguments and its dispatch from a seed;
//! - [`compare`]: random kernels on a target and on the reference machine; what differs comes back
//!   small, as an `.inv` file;
//! - [`mutant`]: a file test with something changed in it;
//! - [`with_prints`]: a random kernel that prints, for comparing lines thread by thread;
//! - [`reduce`]: makes a failing case small;
//! - [`file_tests`]: the `; run:` lines of a folder through a target;
//! - [`metal`]: MSL run on the CPU by clang, since no other machine here takes it;
//! - [`Guarded`]: memory that an access beyond either end does not survive.
//!
//! Invariant: a generated kernel passes the verifier, ends, races with nothing, and obeys R4, so
//! that every device with `ieee-float` must leave the same bytes.
//!
//! Deliberately absent: the runtime's devices. Who has one passes a function that runs a kernel on it.

mod case;
mod compare;
mod files;
mod generate;
#[cfg(unix)]
mod guarded;
pub mod metal;
mod mutate;
mod print;
mod random;
mod reduce;
mod target;

pub use case::{Case, Data};
pub use compare::{Failure, Prepared, Summary, Trial, compare, compare_case};
pub use files::{FileOptions, FileSummary, file_tests};
pub use generate::{Floats, Options, generate};
#[cfg(unix)]
pub use guarded::{Guarded, Running, Side, owned, run_guarded};
pub use mutate::{compare_mutant, judge_mutant, mutant};
pub use print::with_prints;
pub use reduce::reduce;
pub use target::Target;
