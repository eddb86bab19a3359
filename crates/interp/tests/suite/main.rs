//! What the reference machine and its checkers promise.

mod advice;
mod basics;
mod checkers;
mod common;
mod control_flow;
mod effects;
mod layout;
mod litmus;
mod math;
mod op_table;
mod print;
mod promises;
mod race_collective;
mod race_enumeration;
mod race_files;
mod race_oracle;
mod race_pairs;
mod race_rules;
mod refusals;
mod run_files;
mod waiting;
mod warnings;
