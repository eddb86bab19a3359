//! The op table's arithmetic against golden values from elsewhere, and what expansions promise.

mod columns;
mod golden;
