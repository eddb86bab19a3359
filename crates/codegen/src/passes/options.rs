//! What passes are told beside the kernel.

use crate::tuning::{CONVERTED_INSTRUCTIONS, UNROLLED_INSTRUCTIONS, UNROLLED_ITERATIONS};

/// Limits of the passes.
#[derive(Clone, Debug)]
pub struct PassOptions {
    /// The most cheap instructions that an `if` without effects may hold to become `select`s.
    pub if_conversion_instructions: usize,
    /// The most iterations of a `for` that is unrolled.
    pub unroll_iterations: u32,
    /// The most instructions that an unrolled `for` becomes.
    pub unroll_instructions: usize,
    /// How many threads a simdgroup has, where no dispatch can choose.
    pub simdgroup_size: Option<u32>,
    /// Whether the verifier looks at what each pass leaves.
    pub verify: bool,
}

impl Default for PassOptions {
    fn default() -> PassOptions {
        PassOptions {
            if_conversion_instructions: CONVERTED_INSTRUCTIONS,
            unroll_iterations: UNROLLED_ITERATIONS,
            unroll_instructions: UNROLLED_INSTRUCTIONS,
            simdgroup_size: None,
            verify: cfg!(debug_assertions),
        }
    }
}
