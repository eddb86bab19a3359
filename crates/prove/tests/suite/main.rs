//! What the prover promises: a proof is never beside a finding of the checkers, and every proof is one that
//! a checker of its own accepts.

mod campaign;
mod certificates;
mod conditions;
mod files;
mod found;
mod required;
mod rules;
mod shapes;
mod solver;
mod soundness;
mod within;
