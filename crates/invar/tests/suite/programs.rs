//! Programs with Rust kernels: those that compile and run, and those that rustc refuses, each with what it says.
//!
//! `TRYBUILD=overwrite cargo test -p invar-lang --test suite programs -- --ignored` writes the messages anew.

#[test]
#[ignore = "builds the library once more: minutes (scripts/test.sh --all)"]
fn programs_compile_or_say_why_not() {
    let programs = trybuild::TestCases::new();
    programs.pass("tests/programs/compile/*.rs");
    programs.compile_fail("tests/programs/refused/*.rs");
}
