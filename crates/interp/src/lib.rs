//! The reference machine: runs a kernel exactly as the memory model says, slowly and obviously.

pub mod race;
