//! Any bytes decode or are refused, and what decodes encodes to the same bytes.
#![no_main]

#[allow(dead_code, reason = "each target uses one of the checks")]
#[path = "checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    checks::check_binary(bytes);
});
