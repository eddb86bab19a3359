//! What the IR promises: text and binary form, verifier, operations, uniformity.

mod binary;
mod fuzz_corpus;
mod golden;
mod golden_values;
mod op_files;
mod ops;
mod text;
mod text_cases;
mod text_files;
mod uniformity;
mod verify_files;
mod verify_modules;
