//! What LLVM and processors get wrong, and what is done about each. `docs/drivers.md` has the same table, and a test
//! holds the two against each other.

use invar_codegen::drivers::Workaround;

/// Those of LLVM and of processors.
pub const PROCESSORS: &[Workaround] = &[
    Workaround {
        driver: "LLVM 19, x86 with GFNI",
        symptom: "shifts bytes by different amounts with one matrix, which is one amount",
        remedy: "the native processor has no GFNI (`llvm/src/target.rs`)",
        test: "tests/ir/run/A3-bytes-shifted-by-different-amounts.inv",
        until: "the test passes with a newer LLVM",
    },
    Workaround {
        driver: "LLVM 19",
        symptom: "moves a division of constants into the sides of a `select`, and takes a side with a zero in any lane for poison",
        remedy: "divisors become safe by sums (`llvm/src/ops/integer.rs`)",
        test: "tests/ir/run/A2-a-constant-by-the-lanes-of-a-small-threadgroup.inv",
        until: "the test passes with a newer LLVM",
    },
    Workaround {
        driver: "LLVM 19, x86 without AVX-512",
        symptom: "does not end over counts of ones of bytes that are shifted by 4 and stored side by side",
        remedy: "counts by shifts and sums (`llvm/src/ops/integer.rs`)",
        test: "tests/ir/run/ops-ones-of-bytes.inv",
        until: "the test ends with a newer LLVM",
    },
    Workaround {
        driver: "LLVM 19, x86 with AVX-512",
        symptom: "takes the shift of an index into the scale of a gather's address, and for `4 << 63` finds a scale of 0",
        remedy: "such indices lose the bits that no place in memory has (`llvm/src/far_indices.rs`)",
        test: "tests/ir/run/A1-indices-that-wrap-or-clamp-at-borders.inv",
        until: "the test passes with a newer LLVM",
    },
    Workaround {
        driver: "AMD Zen 4 (`znver4`)",
        symptom: "a load of half of what a 512-bit store wrote waits for the store",
        remedy: "threads' own vectors are stored as two (`llvm/src/memory.rs`)",
        test: "scripts/bench.sh",
        until: "no such processor is in use",
    },
];
