//! The race detector (R1 to R3): told what a dispatch does, it says which locations race and how.
//!
//! It knows nothing of kernels or values: the caller numbers places and objects, hands over accesses
//! and barriers in the order in which they execute, and says of each plain store whether it left its
//! location as it was, from which equal stores are told.
//!
//! - Without acquire and release every order is fixed by program order and barriers (O1, O2), so a
//!   location needs four words, and the racy locations are those of every schedule.
//! - With them each lane has a vector clock, and the verdict is for the schedule that was run.
//!
//! Deliberately absent: values, names, wording, and which kernels' accesses depend on the schedule.

mod atomics;
mod clock;
mod detector;
mod fast;
mod memory;
mod release;
mod report;
mod shadow;
mod types;
mod watch;
mod word;

pub use detector::Detector;
pub use types::{
    Access, Atomic, AtomicAccess, Batch, Class, Commuting, Config, CopyId, Declaration, Error,
    Lanes, Object, Order, Performer, RacingAccess, RacyLocation, Region, Report, Scope, Simdgroup,
    Site, Space, Spaces, Threadgroup, Verdict,
};
