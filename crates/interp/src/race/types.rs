//! What the detector is told, and what it answers.

use std::fmt;

/// An address space whose accesses can race (section 2 of the memory model).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// Buffers in `device`.
    Device,
    /// Arrays in `threadgroup`.
    Threadgroup,
    /// Textures: memory in `device` which only barriers order (O4).
    Texture,
    /// Imageblocks: memory of one threadgroup which only barriers order (O4).
    Imageblock,
}

impl Space {
    pub(super) const ALL: [Self; 4] = [
        Self::Device,
        Self::Threadgroup,
        Self::Texture,
        Self::Imageblock,
    ];

    pub(super) fn index(self) -> usize {
        self as usize
    }

    /// Whether each threadgroup has its own.
    pub(super) fn is_of_threadgroup(self) -> bool {
        matches!(self, Self::Threadgroup | Self::Imageblock)
    }
}

/// A set of spaces, as a barrier names them.
///
/// ```
/// use invar_interp::race::{Space, Spaces};
/// let both = Spaces::of(Space::Device).with(Space::Threadgroup);
/// assert_eq!(both, Spaces::DEVICE_AND_THREADGROUP);
/// assert!(!both.contains(Space::Texture));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spaces(u8);

impl Spaces {
    /// No space: threads wait for each other and no memory is ordered.
    pub const NONE: Self = Self(0);
    /// What a barrier names by default (O2).
    pub const DEVICE_AND_THREADGROUP: Self = Self::of(Space::Device).with(Space::Threadgroup);

    /// One space.
    pub const fn of(space: Space) -> Self {
        Self(1 << space as u8)
    }

    /// This set and one space more.
    #[must_use]
    pub const fn with(self, space: Space) -> Self {
        self.union(Self::of(space))
    }

    /// The spaces of both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the set has this space.
    pub const fn contains(self, space: Space) -> bool {
        self.meets(Self::of(space))
    }

    pub(super) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(super) const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// A place in the kernel that accesses memory: a number that the caller gives it, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Site(pub u32);

/// A memory object: its position in the list given to [`Detector::new`](super::Detector::new). One in `threadgroup` or
/// `threadgroup_imageblock` stands for every threadgroup's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Object(pub u32);

/// What the detector is told of a memory object.
#[derive(Clone, Copy, Debug)]
pub struct Declaration {
    /// Where the object lies.
    pub space: Space,
    /// Its number of locations (L1: scalars; L2: two for a 64-bit one).
    pub locations: u32,
    /// Whether the kernel can write it. One that it cannot costs nothing: nothing races there,
    /// since what is `read` overlaps nothing that is written (S3).
    pub writable: bool,
}

/// What the detector is told of a dispatch.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Threadgroups in the grid.
    pub threadgroups: u64,
    /// Threads in the largest threadgroup; those at the edge of the grid may be smaller.
    pub threads_per_threadgroup: u32,
    /// Threads in a full simdgroup: a power of two from 4 to 128.
    pub simdgroup_size: u32,
    /// The number of [`Site`]s.
    pub sites: u32,
    /// Whether any atomic of the kernel acquires or releases. Then the verdict is for the
    /// schedule that was run, else for every schedule (R3).
    pub acquire_release: bool,
    /// How many reports to keep, each for one pair of sites; all locations are counted.
    pub report_limit: usize,
    /// The most memory for the state of locations.
    pub memory_limit_bytes: u64,
}

/// Which lanes make an access, and where.
#[derive(Clone, Copy, Debug)]
pub enum Lanes<'a> {
    /// Lane `l` of the mask begins at location `base + l * stride`. With a stride equal to the
    /// width this is the fast form, and a stride of 0 is cheap for reads and atomics.
    Affine {
        /// Bit `l` for lane `l`.
        mask: u128,
        /// The first location of lane 0, whether or not it takes part.
        base: i64,
        /// From one lane's first location to the next one's.
        stride: i64,
    },
    /// Each lane of the list begins at the location beside it. Atomics that acquire or release
    /// must be listed in the order in which they took place.
    Each {
        /// Lanes, each at most once.
        lanes: &'a [u8],
        /// As many locations.
        locations: &'a [u32],
    },
}

/// One access instruction as a simdgroup executes it. Elements out of bounds are left out: they
/// access nothing (B1-B3).
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// Who executes it.
    pub simdgroup: Simdgroup,
    /// Where it stands in the kernel.
    pub site: Site,
    /// The object.
    pub object: Object,
    /// The lanes and their locations.
    pub lanes: Lanes<'a>,
    /// Consecutive locations that each lane accesses, such as the components of a vector.
    pub width: u32,
}

/// A threadgroup that is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Threadgroup(pub(super) u32);

/// A simdgroup of a running threadgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Simdgroup(pub(super) u32);

/// An async copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CopyId(pub(super) u64);

/// The part of an object that a collective access or a copy reads or writes.
#[derive(Clone, Copy, Debug)]
pub struct Region<'a> {
    /// The object.
    pub object: Object,
    /// Its locations, in any order; those out of bounds are left out.
    pub ranges: &'a [std::ops::Range<u32>],
}

/// What an atomic does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicAccess {
    /// A load, or a compare-exchange that failed (T2).
    Load,
    /// A store.
    Store,
    /// A read-modify-write.
    Update,
}

/// The order of an atomic (T3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Orders nothing.
    Relaxed,
    /// Acquires, where it reads.
    Acquire,
    /// Releases, where it writes.
    Release,
    /// Both.
    AcquireRelease,
    /// Both. The one order of all such atomics adds nothing to happens-before.
    SequentiallyConsistent,
}

impl Order {
    pub(super) fn acquires(self) -> bool {
        match self {
            Self::Acquire | Self::AcquireRelease | Self::SequentiallyConsistent => true,
            Self::Relaxed | Self::Release => false,
        }
    }

    pub(super) fn releases(self) -> bool {
        match self {
            Self::Release | Self::AcquireRelease | Self::SequentiallyConsistent => true,
            Self::Relaxed | Self::Acquire => false,
        }
    }
}

/// How far the order of an atomic reaches (T3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Threads of the same threadgroup.
    Threadgroup,
    /// Every thread of the grid.
    Device,
}

/// An atomic access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Atomic {
    /// What it does.
    pub access: AtomicAccess,
    /// What it orders.
    pub order: Order,
    /// For whom.
    pub scope: Scope,
}

impl Atomic {
    /// An atomic that orders nothing.
    pub fn relaxed(access: AtomicAccess) -> Self {
        Self {
            access,
            order: Order::Relaxed,
            scope: Scope::Device,
        }
    }
}

/// Kinds of atomics that commute with their own kind: in whatever order they come, they leave the
/// same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Commuting {
    /// Additions and subtractions of integers.
    Add,
    /// The smaller value stays.
    Min,
    /// The larger value stays.
    Max,
    /// Bits are cleared.
    And,
    /// Bits are set.
    Or,
    /// Bits are flipped.
    Xor,
}

/// A kind of access, as reports name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// A plain read.
    Read,
    /// A plain write.
    Write,
    /// An atomic that only reads.
    AtomicRead,
    /// An atomic store or read-modify-write.
    AtomicWrite,
}

/// Who of a simdgroup made an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Performer {
    /// This lane.
    Lane(u32),
    /// Some lane that the program cannot know: a collective access or a copy (O5, O6).
    SomeLane,
}

/// One of the two accesses of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RacingAccess {
    /// Its place in the kernel; of an async copy, where it was issued.
    pub site: Site,
    /// The number of the threadgroup in the grid.
    pub threadgroup: u64,
    /// The number of the simdgroup in the threadgroup.
    pub simdgroup: u32,
    /// The lane.
    pub performer: Performer,
    /// What it did.
    pub access: Access,
}

/// How bad a race is (R3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// The outcome depends on the schedule.
    DataRace,
    /// All that race at the location are plain stores of one and the same value.
    EqualStores,
}

impl RacingAccess {
    pub(super) fn same_simdgroup(&self, other: &RacingAccess) -> bool {
        (self.threadgroup, self.simdgroup) == (other.threadgroup, other.simdgroup)
    }
}

/// A race between two places in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// The class of the pair below. A location at which equal stores are followed by worse counts as
    /// one with a data race.
    pub class: Class,
    /// The object.
    pub object: Object,
    /// The first location at which this pair of sites was the first to race.
    pub location: u32,
    /// The access that was executed first.
    pub first: RacingAccess,
    /// The one executed later.
    pub second: RacingAccess,
    /// At how many locations this pair of sites was the first to race.
    pub locations: u64,
    /// At each of them the two accesses were of one simdgroup.
    pub within_simdgroup: bool,
    /// At each of them the two accesses were of one threadgroup.
    pub within_threadgroup: bool,
}

/// A location at which a race was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RacyLocation {
    /// The object.
    pub object: Object,
    /// The threadgroup whose own the object is; where it is the grid's, one that accessed it.
    pub threadgroup: u64,
    /// The location.
    pub location: u32,
    /// How bad the race is.
    pub class: Class,
}

/// What the detector found.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The first races of distinct pairs of sites, in the order found.
    pub reports: Vec<Report>,
    /// The first racy locations, some of each pair of sites, for [`Detector::watching`](super::Detector::watching). One with
    /// equal stores that turned out worse is there twice.
    pub racy: Vec<RacyLocation>,
    /// Locations with a data race.
    pub data_races: u64,
    /// The objects that have such locations.
    pub data_races_in: Vec<Object>,
    /// Locations with equal stores and no data race.
    pub equal_stores: u64,
    /// The objects that have such locations.
    pub equal_stores_in: Vec<Object>,
    /// The objects with a location that atomics changed which do not commute and which no barrier
    /// orders, of those that [`Detector::note_atomics`](super::Detector::note_atomics) was told of.
    pub unordered_atomics_in: Vec<Object>,
    /// Findings whose pair of sites is not among the reports because of the limit.
    pub not_kept: u64,
    /// The verdict is for the schedule that was run alone: the kernel acquires or releases.
    pub only_this_schedule: bool,
}

/// Why there is no verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The simdgroup size is not one the detector knows.
    SimdgroupSize {
        /// The size asked for.
        size: u32,
    },
    /// Threads, sites and time do not fit in a word together.
    TooLarge {
        /// Threadgroups of the grid.
        threadgroups: u64,
        /// Threads in the largest.
        threads: u32,
        /// Sites of the kernel.
        sites: u32,
    },
    /// More barriers and releases in a threadgroup than the detector can number.
    TooManyBarriers {
        /// The threadgroup.
        threadgroup: u64,
        /// How many it can number.
        limit: u64,
    },
    /// The state of the locations needs more memory than allowed.
    Memory {
        /// Bytes needed so far.
        needed: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// The system has no memory for the state of the locations.
    NoMemory {
        /// Bytes asked for.
        needed: u64,
    },
    /// A site is not below the number of sites given.
    Site {
        /// The site.
        site: Site,
        /// The number given.
        sites: u32,
    },
    /// A threadgroup has no thread or more than the number given, or is not in the grid.
    Threads {
        /// The threadgroup.
        threadgroup: u64,
        /// Its threads.
        threads: u32,
    },
    /// An atomic acquires or releases though the kernel was said not to.
    UnexpectedOrder {
        /// Where.
        site: Site,
    },
    /// A write to an object that was said never to be written.
    UnexpectedWrite {
        /// Where.
        site: Site,
        /// The object.
        object: Object,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SimdgroupSize { size } => write!(
                f,
                "the race detector cannot take a simdgroup size of {size}: use a power of two \
                 from 4 to 128"
            ),
            Self::TooLarge {
                threadgroups,
                threads,
                sites,
            } => write!(
                f,
                "the race detector cannot number {threadgroups} threadgroups of {threads} threads \
                 with {sites} memory accesses in the kernel: check a smaller grid"
            ),
            Self::TooManyBarriers { threadgroup, limit } => write!(
                f,
                "threadgroup {threadgroup} executed more than {limit} barriers and releases, \
                 which is all the race detector can number in this grid: check a smaller grid or \
                 fewer iterations"
            ),
            Self::Memory { needed, limit } => write!(
                f,
                "the race detector needs {needed} bytes and may use {limit}: check smaller \
                 buffers, or allow it more (`invar check --race-memory-bytes`, in Rust \
                 `CheckOptions::race_memory_bytes`)"
            ),
            Self::NoMemory { needed } => write!(
                f,
                "there is no memory for the {needed} bytes that the race detector needs: check smaller buffers"
            ),
            Self::Site { site, sites } => write!(
                f,
                "memory access {} is not among the {sites} announced to the race detector",
                site.0
            ),
            Self::Threads {
                threadgroup,
                threads,
            } => write!(
                f,
                "threadgroup {threadgroup} with {threads} threads is not in the grid announced to \
                 the race detector"
            ),
            Self::UnexpectedOrder { site } => write!(
                f,
                "memory access {} acquires or releases, but the kernel was announced to the race \
                 detector as one that does not",
                site.0
            ),
            Self::UnexpectedWrite { site, object } => write!(
                f,
                "memory access {} writes object {}, which was announced to the race detector as \
                 never written",
                site.0, object.0
            ),
        }
    }
}

impl std::error::Error for Error {}
