//! Bugs and limits of drivers of GPUs, and what is done about each. `docs/drivers.md` has the same table, and a test
//! holds the two against each other.
//!
//! A driver that needs one is told by a field of [`Features`](crate::wgsl::Features), which the runtime sets by the
//! kind of adapter and the driver's name; what costs nothing elsewhere is done for all.
//!
//! Deliberately absent: what GPUs may do by their specifications, such as to round differently.

/// Something that a driver or a compiler gets wrong, and what is done about it.
#[derive(Clone, Copy, Debug)]
pub struct Workaround {
    /// Whose, and the versions that were seen to.
    pub driver: &'static str,
    /// What happens.
    pub symptom: &'static str,
    /// What is done instead, and where.
    pub remedy: &'static str,
    /// The test that fails without it: a file, or a file and a function.
    pub test: &'static str,
    /// When it may go.
    pub until: &'static str,
}

impl Workaround {
    /// Its row of the table in `docs/drivers.md`.
    pub fn row(&self) -> String {
        let Workaround {
            driver,
            symptom,
            remedy,
            test,
            until,
        } = self;
        format!("| {driver} | {symptom} | {remedy} | `{test}` | {until} |")
    }
}

/// Those of GPUs.
pub const GPUS: &[Workaround] = &[
    Workaround {
        driver: "Mesa llvmpipe 22.3",
        symptom: "ends all loops of a vector of invocations after 65,535 iterations in all, without a word",
        remedy: "`ends_loops`: a kernel with loops finds out in the end, and the dispatch fails (`wgsl/iteration_guard.rs`)",
        test: "crates/runtime/tests/suite/gpu_iterations.rs: many_iterations_are_right_or_told",
        until: "no driver counts iterations",
    },
    Workaround {
        driver: "Mesa llvmpipe 22.3",
        symptom: "a last vector of invocations that is not full may leave a kernel at a loop with barriers, in a branch that is not taken",
        remedy: "`barrier_multiple`: workgroups with barriers are rounded up (`wgsl/mod.rs`)",
        test: "crates/codegen/tests/suite/wgsl.rs: workgroups_with_barriers_are_rounded_up_where_the_target_needs_it",
        until: "the test passes on Mesa without it",
    },
    Workaround {
        driver: "Mesa llvmpipe 22.3",
        symptom: "takes a product or a quotient of a zero that it knows for zero, also where the other operand is infinite or NaN",
        remedy: "`hides_zeros`: zeros come from bits that it does not know (`wgsl/literals.rs`)",
        test: "tests/ir/run/A9-a-constant-zero-swallows-nothing.inv",
        until: "the test passes on Mesa without it",
    },
    Workaround {
        driver: "Mesa llvmpipe 22.3",
        symptom: "keeps sums of `f16` wider than `f16`",
        remedy: "it is not asked for `f16` (`runtime/src/gpu/handle.rs`)",
        test: "tests/ir/run/A5-f16-is-rounded-to-the-nearest-even.inv",
        until: "the test passes on Mesa with `f16`",
    },
    Workaround {
        driver: "Mesa llvmpipe 22.3, SwiftShader",
        symptom: "rounds the product of an `fma`",
        remedy: "`fma`: by `f64` or by integers (`wgsl/fused.rs`)",
        test: "crates/runtime/tests/suite/gpu_functions.rs: a_product_and_a_sum_are_rounded_once",
        until: "processors' drivers fuse",
    },
    Workaround {
        driver: "Mesa llvmpipe 22.3",
        symptom: "takes each entry of an array that goes by value, or begins as zero in a loop, for a value, and minutes for products of tiles",
        remedy: "`matrices_in_place`, `clears_arrays`: arrays stay where they are declared (`wgsl/values.rs`, `wgsl/body.rs`)",
        test: "tests/ir/run/I3-large-thread-arrays-start-as-zero.inv",
        until: "the test takes no longer without it",
    },
    Workaround {
        driver: "Mesa llvmpipe 22.3",
        symptom: "writes beyond its stack for thread arrays that cross a barrier",
        remedy: "thread arrays may take 16 KiB together (`runtime/src/gpu/handle.rs`)",
        test: "tests/ir/run/I3-large-thread-arrays-start-as-zero.inv",
        until: "its stack grows with arrays",
    },
    Workaround {
        driver: "Mesa llvmpipe 22.3",
        symptom: "the upper half of a product of `i64` by choices between two values is wrong for constants",
        remedy: "by masks, on every target (`wgsl/helpers.rs`)",
        test: "tests/ir/run/ops-high-halves-of-constants.inv",
        until: "costs nothing: it stays",
    },
    Workaround {
        driver: "Mesa 22.3, all drivers",
        symptom: "compares what was extended with its sign to 64 bits wrongly with constants",
        remedy: "`hides_extensions`: by bits that it does not know (`wgsl/operations.rs`)",
        test: "tests/ir/run/A5-extended-integers-compare-with-constants.inv",
        until: "the test passes on Mesa without it",
    },
    Workaround {
        driver: "Mesa 22.3, all drivers",
        symptom: "follows what decides a branch through every use of every number, in exponential time",
        remedy: "`follows_uniforms`: values end the walk (`wgsl/value_walks.rs`)",
        test: "crates/codegen/tests/suite/wgsl.rs: what_a_driver_would_follow_for_long_ends_where_it_is_computed",
        until: "Mesa remembers what it has seen",
    },
    Workaround {
        driver: "Mesa's device-select layer",
        symptom: "prints `error:` where there is no desktop",
        remedy: "the command sets `NODEVICE_SELECT` (`cli/src/main.rs`)",
        test: "crates/cli/src/main.rs",
        until: "the layer is silent",
    },
    Workaround {
        driver: "NVIDIA 580.159",
        symptom: "takes `abs` of an `i32` for never negative",
        remedy: "by way of `u32`, on every target (`wgsl/operations.rs`)",
        test: "tests/ir/run/ops-integer-arithmetic.inv",
        until: "costs nothing: it stays",
    },
    Workaround {
        driver: "NVIDIA 580.159",
        symptom: "a store to a workgroup array of `bool` changes others",
        remedy: "a `bool` is a word, on every target (`wgsl/plan.rs`)",
        test: "tests/ir/run/L2-bools-of-a-threadgroup-leave-their-neighbours-alone.inv",
        until: "costs little: it stays",
    },
    Workaround {
        driver: "Mesa and NVIDIA 580.159",
        symptom: "cancel `(a + b) - a`, though nothing allows it on Vulkan",
        remedy: "`keeps_floats`: `NoContraction` in SPIR-V (`runtime/src/gpu/no_contraction.rs`), else an `fma` (`wgsl/fused.rs`)",
        test: "crates/codegen/tests/suite/wgsl.rs: what_rounding_lost_is_kept_from_being_cancelled",
        until: "WGSL can say that floats are exact",
    },
];
