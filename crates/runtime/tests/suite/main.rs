//! What devices promise to their users.

mod allocations;
mod common;
mod dispatch;
mod files;
#[cfg(feature = "gpu")]
#[path = "../../../ir/tests/suite/golden_values/mod.rs"]
mod golden_values;
mod gpu;
mod gpu_cancel;
mod gpu_functions;
mod gpu_iterations;
mod gpu_limits;
mod gpu_line;
mod gpu_loss;
mod gpu_proofs;
mod gpu_random;
mod gpu_times;
mod guards;
mod host;
mod mutants;
mod print;
mod processes;
mod proofs;
mod regrouping;
mod small_stacks;
mod textures;
mod untold;
