//! Proofs that a kernel has no data race and stays in bounds, for every launch.
//!
//! [`prove()`] reads a verified kernel before any pass. It asks of each access whether it can be out of
//! bounds, and of each two accesses that no barrier orders whether two threads can make them to one
//! location; a solver for integers shows that neither can be, in launches that fulfil conditions which it
//! finds. Each of its proofs is checked by [`mod@certificate`], which shares no code with it. Where a proof
//! fails, a launch is looked for, and believed only when the checkers of the reference machine report it.
//!
//! - [`linear`], [`solve`], [`certificate`]: problems, the solver, and the checker of its proofs;
//! - [`condition`], [`launch`]: what a launch has to fulfil, and launches; what a kernel requires is given;
//! - [`mod@file`], [`words`]: proofs as text, and reports.
//!
//! Deliberately absent: floats, what acquire and release order, async copies, and indices of which only the
//! contents of memory tell: these stay open.

mod bits;
pub mod certificate;
pub mod condition;
mod constants;
mod extremes;
pub mod file;
mod forms;
mod held;
mod invariants;
mod iterations;
mod kernel;
pub mod launch;
pub mod linear;
mod loads;
mod made;
mod multiples;
mod positions;
mod prove;
mod query;
mod rational;
mod required;
mod shape;
mod simplex;
pub mod solve;
mod steps;
mod strides;
mod subject;
mod tables;
mod textures;
mod thread;
mod tickets;
mod tried;
mod unroll;
mod value;
mod vocabulary;
mod weaken;
mod witness;
pub mod words;

pub use prove::{
    Counterexample, Doubt, Options, Report, Unasked, Verdict, problems, prove, read_certificates,
    verify_certificate,
};
pub use required::with_whole_threadgroups;
