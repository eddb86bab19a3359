//! Vector clocks, for kernels with acquire or release: what one thread knows of the others.
//!
//! A clock maps parts of the grid (a threadgroup, a simdgroup, a lane) to times: every access that
//! a thread of the part made at an earlier time happens before what the clock's owner does now.
//! It is sparse: a part that was never heard of has no entry; and hierarchical: a barrier of a
//! threadgroup is one entry, which absorbs those of its simdgroups and lanes.

use std::sync::Arc;

use super::word::{COPY, LANE, Layout, performer_of};
use super::{Space, Spaces};

/// A threadgroup, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Part {
    threadgroup: u64,
    // 0 for the whole threadgroup, else simdgroup + 1 in the upper bits and, in the lower eight,
    // 0 for the whole simdgroup, else lane + 1. So a whole sorts right before its parts.
    code: u32,
}

impl Part {
    pub(super) fn threadgroup(threadgroup: u64) -> Self {
        let code = 0;
        Self { threadgroup, code }
    }

    pub(super) fn simdgroup(threadgroup: u64, simdgroup: u64) -> Self {
        let code = u32::try_from(simdgroup + 1).expect("fewer simdgroups than 2^24") << 8;
        Self { threadgroup, code }
    }

    pub(super) fn lane(threadgroup: u64, simdgroup: u64, lane: u64) -> Self {
        let mut part = Self::simdgroup(threadgroup, simdgroup);
        part.code |= u32::try_from(lane + 1).expect("a lane has at most 7 bits");
        part
    }

    fn is_threadgroup(self) -> bool {
        self.code == 0
    }

    fn is_simdgroup(self) -> bool {
        self.code & 0xff == 0
    }
}

/// Times by part, sorted by part; no entry is implied by that of a whole which holds its part.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Clock(Vec<(Part, u32)>);

impl Clock {
    /// The time up to which `part` itself is known, wholes not considered.
    fn time(&self, part: Part) -> u32 {
        match self.0.binary_search_by_key(&part, |entry| entry.0) {
            Ok(at) => self.0[at].1,
            Err(_) => 0,
        }
    }

    /// Whether the access `word` happens before what the owner of this clock does.
    ///
    /// `lanes_of` gives the number of lanes that exist in a simdgroup.
    pub(super) fn knows(
        &self,
        layout: &Layout,
        word: u64,
        lanes_of: impl Fn(u64, u64) -> u32,
    ) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let threadgroup = layout.threadgroup_of(word);
        let simdgroup = layout.simdgroup_of(word);
        let known = |part| u64::from(self.time(part)) > layout.time(word);
        if known(Part::threadgroup(threadgroup)) || known(Part::simdgroup(threadgroup, simdgroup)) {
            return true;
        }
        let lane_known = |lane| known(Part::lane(threadgroup, simdgroup, lane));
        match performer_of(word) {
            LANE => lane_known(layout.lane_of(word)),
            // Whatever any lane did after the wait comes after the copy.
            COPY => (0..u64::from(lanes_of(threadgroup, simdgroup))).any(lane_known),
            // The one lane that made the access may be any of them.
            _ => (0..u64::from(lanes_of(threadgroup, simdgroup))).all(lane_known),
        }
    }

    /// This clock, with all that `part` did before `time`.
    pub(super) fn with(&self, part: Part, time: u32) -> Self {
        self.merge(&[(part, time)])
    }

    fn merge(&self, other: &[(Part, u32)]) -> Self {
        let mut merged = Vec::with_capacity(self.0.len() + other.len());
        let (mut threadgroup, mut simdgroup) = (None, None);
        let mut push = |(part, time): (Part, u32)| {
            // Entries come in order, each whole before its parts.
            let implied = |whole: Option<(Part, u32)>, inside: fn(Part, Part) -> bool| {
                whole.is_some_and(|(w, t)| inside(w, part) && time <= t)
            };
            if implied(threadgroup, |w, p| w.threadgroup == p.threadgroup)
                || implied(simdgroup, |w, p| {
                    w.threadgroup == p.threadgroup && w.code >> 8 == p.code >> 8
                })
            {
                return;
            }
            if part.is_threadgroup() {
                threadgroup = Some((part, time));
            } else if part.is_simdgroup() {
                simdgroup = Some((part, time));
            }
            merged.push((part, time));
        };
        let (mut left, mut right) = (self.0.as_slice(), other);
        loop {
            match (left.first(), right.first()) {
                (Some(&x), Some(&y)) if x.0 == y.0 => {
                    push((x.0, x.1.max(y.1)));
                    (left, right) = (&left[1..], &right[1..]);
                }
                (Some(&x), Some(&y)) if x.0 < y.0 => {
                    push(x);
                    left = &left[1..];
                }
                (Some(&x), None) => {
                    push(x);
                    left = &left[1..];
                }
                (_, Some(&y)) => {
                    push(y);
                    right = &right[1..];
                }
                (None, None) => return Self(merged),
            }
        }
    }
}

/// The least clock that knows what both know; shares one of them where it can.
pub(super) fn join(x: &Arc<Clock>, y: &Arc<Clock>) -> Arc<Clock> {
    if Arc::ptr_eq(x, y) || y.0.is_empty() {
        return Arc::clone(x);
    }
    if x.0.is_empty() {
        return Arc::clone(y);
    }
    let joined = x.merge(&y.0);
    if joined == **x {
        Arc::clone(x)
    } else if joined == **y {
        Arc::clone(y)
    } else {
        Arc::new(joined)
    }
}

/// What one thread knows in the happens-before of one space.
///
/// O2 orders accesses to the *named* spaces only, and O7 closes over just those edges: a barrier
/// passes on what a thread knew when it last accessed a named space, and what it brings reaches a
/// thread with its next access to a named space. A release made before that access does not pass
/// it on.
#[derive(Clone, Debug)]
pub(super) struct Knowledge {
    /// What the thread has known, oldest first, each with the spaces accessed since.
    versions: Vec<(Arc<Clock>, Spaces)>,
    /// What barriers brought, each with the spaces that the barrier named.
    pending: Vec<(Arc<Clock>, Spaces)>,
}

impl Knowledge {
    pub(super) fn new(nothing: &Arc<Clock>) -> Self {
        Self {
            versions: vec![(Arc::clone(nothing), Spaces::NONE)],
            pending: Vec::new(),
        }
    }

    fn current(&self) -> &(Arc<Clock>, Spaces) {
        self.versions.last().expect("there is always a version")
    }

    /// What the thread knows now.
    pub(super) fn clock(&self) -> &Arc<Clock> {
        &self.current().0
    }

    /// The thread accesses `space`.
    pub(super) fn access(&mut self, space: Space) {
        if self.pending.is_empty() && self.current().1.contains(space) {
            return;
        }
        let mut clock = Arc::clone(self.clock());
        self.pending.retain(|(brought, named)| {
            let reaches = named.contains(space);
            if reaches {
                clock = join(&clock, brought);
            }
            !reaches
        });
        self.become_clock(clock, space);
    }

    /// The thread acquires `message` with an access to `space`.
    pub(super) fn acquire(&mut self, message: &Arc<Clock>, space: Space) {
        let clock = join(self.clock(), message);
        self.become_clock(clock, space);
    }

    fn become_clock(&mut self, clock: Arc<Clock>, space: Space) {
        let last = self.versions.last_mut().expect("there is always a version");
        if Arc::ptr_eq(&last.0, &clock) {
            last.1 = last.1.with(space);
        } else {
            self.versions.push((clock, Spaces::of(space)));
        }
        // A version matters only for spaces not accessed under a newer one.
        let mut newer = Spaces::NONE;
        let mut keep = self.versions.len();
        for at in (0..self.versions.len()).rev() {
            let spaces = self.versions[at].1.without(newer);
            newer = newer.union(spaces);
            if !spaces.is_empty() || at + 1 == self.versions.len() {
                keep -= 1;
                self.versions.swap(keep, at);
            }
        }
        self.versions.drain(..keep);
    }

    /// What a barrier naming `spaces` passes on from this thread.
    pub(super) fn known_at(&self, spaces: Spaces) -> Option<&Arc<Clock>> {
        let last_access = self.versions.iter().rev();
        let mut known = last_access.filter(|(_, accessed)| accessed.meets(spaces));
        known.next().map(|(clock, _)| clock)
    }

    /// A barrier naming `spaces` brings `clock`.
    pub(super) fn bring(&mut self, clock: &Arc<Clock>, spaces: Spaces) {
        for (brought, named) in &mut self.pending {
            if *named == spaces {
                *brought = join(brought, clock);
                return;
            }
        }
        self.pending.push((Arc::clone(clock), spaces));
    }

    /// What an access by this thread is ordered after, were it made now to a space that every
    /// pending barrier of this knowledge names.
    pub(super) fn clock_with_pending(&self) -> Arc<Clock> {
        let pending = self.pending.iter();
        pending.fold(Arc::clone(self.clock()), |clock, (brought, _)| {
            join(&clock, brought)
        })
    }
}
