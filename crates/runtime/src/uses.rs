//! What a dispatch, or an access of the host, does with memory: by which their order follows (O3).

use std::ops::Range;

/// A range of addresses that a task reads or writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Use {
    pub(crate) addresses: Range<usize>,
    pub(crate) writes: bool,
}

impl Use {
    /// Whether two uses have a byte in common that one of them writes.
    pub(crate) fn conflicts(&self, other: &Use) -> bool {
        (self.writes || other.writes)
            && self.addresses.start.max(other.addresses.start)
                < self.addresses.end.min(other.addresses.end)
    }
}
