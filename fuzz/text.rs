//! Any text parses or is refused, and what parses prints and encodes to itself.
#![no_main]

#[allow(dead_code, reason = "each target uses one of the checks")]
#[path = "checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|source: &str| {
    checks::check_text(source);
});
