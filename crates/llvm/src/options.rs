//! How to compile.

use crate::target::Target;
use crate::tuning::LEAST_APART;

/// How to compile.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CompileOptions {
    /// For which processor.
    pub target: Target,
    /// The only threadgroup size that the kernel will be launched with; `None` reads it from the
    /// launch. A kernel that requires a size is always compiled for it.
    pub threadgroup_size: Option<[u32; 3]>,
    /// Whether accesses are checked. Without, one that a thread makes out of bounds, in what [`crate::lowered`] makes
    /// of the kernel, is undefined, and so are accesses to a buffer of 2^31 elements and more: this is for launches of
    /// which it is proved that none is, and for measuring what checks cost.
    pub checks: bool,
    /// How many vectors of threads a chunk has along x and how many rows; `None` leaves it to the
    /// compiler. Kernels with simdgroup functions have whole simdgroups along x, and one row.
    pub interleave: Option<[u32; 2]>,
    /// What only chunks of threads that are not full run is compiled apart, when it is first needed, if it has
    /// at least so many of LLVM's instructions before its passes.
    pub least_apart: usize,
    /// Whether the objects of threadgroup and thread memory have room around them that nothing may change
    /// ([`crate::Program::red_zones`]): for tests.
    pub red_zones: bool,
    /// A function of more of the machine's instructions than about this is compiled without the passes that
    /// improve machine code: for long ones some of them take much longer than for short ones.
    pub most_improved: u32,
}

impl Default for CompileOptions {
    fn default() -> CompileOptions {
        CompileOptions {
            target: Target::Native,
            threadgroup_size: None,
            checks: true,
            interleave: None,
            least_apart: LEAST_APART,
            red_zones: false,
            most_improved: MOST_IMPROVED,
        }
    }
}

/// Longer than any kernel whose time is worth more than its compilation's.
const MOST_IMPROVED: u32 = 50_000;

/// Lanes of a simdgroup on this device.
pub const SIMDGROUP_SIZE: u32 = 32;
