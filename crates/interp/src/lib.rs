//! The reference machine and its memory checkers.
//!
//! The machine defines the language: what it computes is right, and everything else is tested
//! against it. It runs a verified kernel one simdgroup at a time, an instruction for all lanes under
//! a mask, and is sequentially consistent. Observers watch a run and say what was wrong with it.
//!
//! - [`run`]: a dispatch, with its arguments, options and observers;
//! - [`check`]: runs under every checker, with as many schedules as the verdict needs, and a report;
//! - [`case`], [`passes`]: the `; run:` and `; program:` directives of the text form;
//! - [`observe`]: what observers see; [`checkers`], [`DataRaces`] and [`UnorderedAtomics`] are
//!   observers.
//!
//! Deliberately absent: speed beyond what checking needs, more than one host thread.

mod access;
mod advice;
pub mod case;
mod changes;
mod check;
pub mod checkers;
mod compile;
mod copy;
mod data_race;
mod dispatch;
mod diverge;
mod machine;
mod matrix;
mod memory;
mod objects;
pub mod observe;
mod pairs;
pub mod passes;
mod program;
pub mod race;
mod random;
mod requires;
mod schedule;
mod sleepers;
mod state;
mod strands;
mod texture;
mod uniform;
mod unordered;
mod unpaired;
mod verdict;

pub use check::{
    CheckOptions, Report, SCHEDULES, STEPS_OF_SCHEDULES, Verdict, check, check_observed,
};
pub use data_race::DataRaces;
pub use dispatch::{
    Arg, Dispatch, Extent, Given, Grid, GridSizes, Options, Outcome, check_arguments, check_grid,
};
pub use observe::Observer;
pub use requires::{check_all_required, check_requirements};
pub use schedule::run;
pub use unordered::UnorderedAtomics;
pub use verdict::Schedules;
