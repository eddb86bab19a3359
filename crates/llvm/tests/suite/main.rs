//! What the CPU compiler promises.

mod driver;
mod long;
mod missing;
mod promises;
mod random;
mod run;
mod workarounds;
