//! What the CPU compiler promises.

mod driver;
mod far;
mod long;
mod missing;
mod promises;
mod random;
mod run;
mod workarounds;
