//! The text form: the language of `.inv` files, which `Display` prints and [`parse`] reads.
//!
//! Printing and parsing are inverse up to spans: `parse(print(m))` is `m` with new spans, and
//! `print(parse(t))` is `t` for a text that printing could have made. Comments, blank lines and the
//! numbers of unnamed values (`%12`) are not kept; names are, quoted where they are not identifiers
//! (`%"two words"`).
//!
//! The parser builds through [`crate::KernelBuilder`] and checks only what it must know to build:
//! syntax, names, and the types of operands. What a module must obey beside that, the verifier says; of a
//! broken text it looks at all that could be read, so that every error is reported at once.
//! Whatever the text, parsing ends in time and memory proportional to its length: sizes are limited
//! ([`MAX_TEXT_BYTES`], [`crate::inst::MAX_NESTING`]), and of its errors [`MAX_ERRORS`] are kept and the
//! rest counted.
//!
//! Comments hold what a text says of itself beside its kernels: how to run them ([`cases`], [`programs`])
//! and what is wrong where ([`expectations`]).
//!
//! Files: `lexer.rs` makes tokens, `literal.rs` reads and writes scalars, `parser.rs` reads modules
//! `requires.rs` what kernels require of launches and `kernel.rs`, `texture.rs` and `imageblock.rs` the bodies of kernels, `printer.rs` prints; `case.rs` reads comments and `data.rs`
//! makes and compares the bytes that they speak of.

pub mod case;
pub mod data;
mod imageblock;
mod kernel;
mod lexer;
mod literal;
mod parser;
mod printer;
mod requires;
mod texture;

pub use case::{cases, expectations, programs};
pub(crate) use lexer::{name_text, shorten};
pub use parser::parse;
pub(crate) use requires::parse_requirement;

/// The longest text that is read.
pub const MAX_TEXT_BYTES: usize = 16 << 20;

pub use crate::verify::MAX_ERRORS;
