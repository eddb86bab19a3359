//! One access in 64 bits: who made it, when, where in the source, and of which kind.
//!
//! From the top: threadgroup, simdgroup, lane, time, site, flags. The widths are chosen for each
//! dispatch, so that a small grid leaves more bits for time. A word of 0 means "no access".
//!
//! Time is counted within a threadgroup and advances at its barriers and releases; an access
//! carries the time of the last one that concerned its simdgroup and space.

use super::{Access, Config, Error, Performer, RacingAccess, Site};

/// Who made the access: one known lane.
pub(super) const LANE: u64 = 1;
/// Some lane of the simdgroup that the program cannot know (O6).
pub(super) const COLLECTIVE: u64 = 2;
/// A finished async copy: some unknown lane, but ordered before all its simdgroup does now (O5).
pub(super) const COPY: u64 = 3;
const PERFORMER_MASK: u64 = 3;

const KIND_SHIFT: u32 = 2;
/// A plain read.
pub(super) const READ: u64 = 0 << KIND_SHIFT;
/// An atomic write or read-modify-write.
pub(super) const ATOMIC_WRITE: u64 = 1 << KIND_SHIFT;
/// An atomic read.
pub(super) const ATOMIC_READ: u64 = 2 << KIND_SHIFT;
/// A plain write.
pub(super) const WRITE: u64 = 3 << KIND_SHIFT;
pub(super) const KIND_MASK: u64 = 3 << KIND_SHIFT;

/// In the plane of last writes the kind is known, and its bits say from which level on an equal
/// store would race with more than equal stores.
pub(super) const MIXED_SHIFT: u32 = KIND_SHIFT;
/// In the plane of last writes: an `equal-stores` race was reported here.
pub(super) const EQUAL_REPORTED: u64 = 1 << 4;
/// In a slot: an access before the last write which races with plain writes of any value.
pub(super) const FORMER: u64 = 1 << 4;
const FLAG_BITS: u32 = 5;

/// The fewest bits of time with which the detector works (it renumbers time when they run out).
const MIN_TIME_BITS: u32 = 4;
/// The fewest for kernels with acquire or release, where time cannot be renumbered.
const MIN_TIME_BITS_ORDERED: u32 = 12;

/// Where the fields of a word lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) time_shift: u32,
    pub(super) lane_shift: u32,
    pub(super) simdgroup_shift: u32,
    pub(super) threadgroup_shift: u32,
    /// The bits of the time field, in place.
    pub(super) time_mask: u64,
    /// Every bit but those of the site and of `FORMER`.
    pub(super) epoch_mask: u64,
}

fn bits_for(count: u64) -> u32 {
    // Bits that number `count` things from 0.
    64 - count.saturating_sub(1).leading_zeros()
}

impl Layout {
    pub(super) fn new(config: &Config) -> Result<Self, Error> {
        let size = config.simdgroup_size;
        if !size.is_power_of_two() || !(4..=128).contains(&size) {
            return Err(Error::SimdgroupSize { size });
        }
        let site_bits = bits_for(u64::from(config.sites));
        let lane_bits = size.trailing_zeros();
        let simdgroups = config.threads_per_threadgroup.div_ceil(size);
        let simdgroup_bits = bits_for(u64::from(simdgroups));
        // One number stays unused, so that no word is all ones, which marks a location as done.
        let threadgroup_bits = bits_for(config.threadgroups.saturating_add(1));
        let used = FLAG_BITS + site_bits + lane_bits + simdgroup_bits + threadgroup_bits;
        let needed = if config.acquire_release {
            MIN_TIME_BITS_ORDERED
        } else {
            MIN_TIME_BITS
        };
        if used + needed > 64 {
            return Err(Error::TooLarge {
                threadgroups: config.threadgroups,
                threads: config.threads_per_threadgroup,
                sites: config.sites,
            });
        }
        let time_bits = (64 - used).min(32);
        let time_shift = FLAG_BITS + site_bits;
        let lane_shift = time_shift + time_bits;
        let simdgroup_shift = lane_shift + lane_bits;
        let site_mask = ((1_u64 << site_bits) - 1) << FLAG_BITS;
        Ok(Self {
            time_shift,
            lane_shift,
            simdgroup_shift,
            threadgroup_shift: simdgroup_shift + simdgroup_bits,
            time_mask: ((1_u64 << time_bits) - 1) << time_shift,
            epoch_mask: !(site_mask | FORMER),
        })
    }

    /// The greatest time that fits.
    pub(super) fn last_time(&self) -> u64 {
        self.time_mask >> self.time_shift
    }

    pub(super) fn site(&self, site: Site) -> u64 {
        u64::from(site.0) << FLAG_BITS
    }

    pub(super) fn lane(&self, lane: u32) -> u64 {
        u64::from(lane) << self.lane_shift
    }

    pub(super) fn time(&self, word: u64) -> u64 {
        (word & self.time_mask) >> self.time_shift
    }

    pub(super) fn threadgroup_of(&self, word: u64) -> u64 {
        // A width of 64 cannot occur: there is at least one threadgroup and one number unused.
        word >> self.threadgroup_shift
    }

    pub(super) fn simdgroup_of(&self, word: u64) -> u64 {
        (word >> self.simdgroup_shift)
            & ((1 << (self.threadgroup_shift - self.simdgroup_shift)) - 1)
    }

    pub(super) fn lane_of(&self, word: u64) -> u64 {
        (word >> self.lane_shift) & ((1 << (self.simdgroup_shift - self.lane_shift)) - 1)
    }

    pub(super) fn same_threadgroup(&self, x: u64, y: u64) -> bool {
        (x ^ y) >> self.threadgroup_shift == 0
    }

    pub(super) fn same_simdgroup(&self, x: u64, y: u64) -> bool {
        (x ^ y) >> self.simdgroup_shift == 0
    }

    /// What a report says about the access.
    pub(super) fn party(&self, word: u64) -> RacingAccess {
        let lane = u32::try_from(self.lane_of(word)).expect("a lane has at most 7 bits");
        RacingAccess {
            site: Site(((word & (self.time_mask_below())) >> FLAG_BITS) as u32),
            threadgroup: self.threadgroup_of(word),
            simdgroup: u32::try_from(self.simdgroup_of(word)).expect("fewer than 2^32 threads"),
            performer: if performer_of(word) == LANE {
                Performer::Lane(lane)
            } else {
                Performer::SomeLane
            },
            access: match kind_of(word) {
                READ => Access::Read,
                ATOMIC_WRITE => Access::AtomicWrite,
                ATOMIC_READ => Access::AtomicRead,
                _ => Access::Write,
            },
        }
    }

    fn time_mask_below(&self) -> u64 {
        (1 << self.time_shift) - 1
    }
}

pub(super) fn performer_of(word: u64) -> u64 {
    word & PERFORMER_MASK
}

pub(super) fn kind_of(word: u64) -> u64 {
    word & KIND_MASK
}

/// Whether two accesses of these kinds conflict (R1): one writes and not both are atomic.
pub(super) fn conflicts(x: u64, y: u64) -> bool {
    let writes = |kind| kind == WRITE || kind == ATOMIC_WRITE;
    let atomic = |kind| kind == ATOMIC_READ || kind == ATOMIC_WRITE;
    (writes(x) || writes(y)) && !(atomic(x) && atomic(y))
}

/// Whether a record of an access of kind `x` makes one of kind `y` by the same thread redundant:
/// all that conflicts with `y` conflicts with `x`. A plain write covers nothing, since a race
/// with it may be one of equal stores, and a race with what it covered is none of those.
pub(super) fn covers(x: u64, y: u64) -> bool {
    x == y || (y == ATOMIC_READ && (x == READ || x == ATOMIC_WRITE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn covers_is_inclusion_of_conflicts_but_for_plain_writes() {
        let kinds = [READ, ATOMIC_WRITE, ATOMIC_READ, WRITE];
        for x in kinds {
            for y in kinds {
                let mut others = kinds.iter();
                let included = others.all(|&z| !conflicts(y, z) || conflicts(x, z));
                let expected = included && (x != WRITE || x == y);
                assert_eq!(covers(x, y), expected, "{x} {y}");
            }
        }
    }
}
