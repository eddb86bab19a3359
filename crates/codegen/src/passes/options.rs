//! What passes are told beside the kernel.

/// Limits of the passes.
#[derive(Clone, Debug)]
pub struct PassOptions {
    /// The most cheap instructions that an `if` without effects may hold to become `select`s.
    pub if_conversion_instructions: usize,
    /// The most rounds of a `for` that is unrolled.
    pub unroll_rounds: u32,
    /// The most instructions that an unrolled `for` becomes.
    pub unroll_instructions: usize,
    /// Whether the verifier looks at what each pass leaves.
    pub verify: bool,
}

impl Default for PassOptions {
    fn default() -> PassOptions {
        PassOptions {
            if_conversion_instructions: 6,
            unroll_rounds: 8,
            unroll_instructions: 64,
            verify: cfg!(debug_assertions),
        }
    }
}
