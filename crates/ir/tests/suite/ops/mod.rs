//! The op table: what its operations compute, what its rows say, and what is written from it.

mod arithmetic;
mod cast;
mod contract;
mod docs;
mod evaluate;
mod exact;
mod expansions;
mod floats;
mod integers;
mod lanes;
mod packing;
mod vectors;
