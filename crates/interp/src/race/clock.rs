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

    /// Whether the access `word` happens before what the owner of this clock does, who is lane
    /// `own` if its simdgroup made the access. `lanes_of` gives the number of lanes that exist in a simdgroup.
    pub(super) fn knows(
        &self,
        layout: &Layout,
        word: u64,
        own: Option<u64>,
        lanes_of: impl Fn(u64, u64) -> u32,
    ) -> bool {
        if self.0.is_empty() && own.is_none() {
            return false;
        }
        let threadgroup = layout.threadgroup_of(word);
        let simdgroup = layout.simdgroup_of(word);
        let known = |part| u64::from(self.time(part)) > layout.time(word);
        if known(Part::threadgroup(threadgroup)) || known(Part::simdgroup(threadgroup, simdgroup)) {
            return true;
        }
        let lane_known =
            |lane| own == Some(lane) || known(Part::lane(threadgroup, simdgroup, lane));
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
    /// What the thread knows, and the spaces accessed since it does.
    clock: Arc<Clock>,
    accessed: Spaces,
    /// What it knew before, latest first, with the spaces not accessed since.
    older: Vec<(Arc<Clock>, Spaces)>,
    /// What barriers brought, each with the spaces that the barrier named; mostly there is one.
    pending: Option<(Arc<Clock>, Spaces)>,
    more_pending: Vec<(Arc<Clock>, Spaces)>,
}

impl Knowledge {
    pub(super) fn new(nothing: &Arc<Clock>) -> Self {
        Self {
            clock: Arc::clone(nothing),
            accessed: Spaces::NONE,
            older: Vec::new(),
            pending: None,
            more_pending: Vec::new(),
        }
    }

    /// What the thread knows now.
    pub(super) fn clock(&self) -> &Arc<Clock> {
        &self.clock
    }

    /// The thread accesses `space`.
    #[inline]
    pub(super) fn access(&mut self, space: Space) {
        if self.pending.is_some() || !self.accessed.contains(space) {
            self.access_first(space);
        }
    }

    fn access_first(&mut self, space: Space) {
        let mut clock = Arc::clone(&self.clock);
        let pending = self.pending.take().into_iter();
        for (brought, named) in pending.chain(std::mem::take(&mut self.more_pending)) {
            if named.contains(space) {
                clock = join(&clock, &brought);
            } else {
                self.bring(&brought, named);
            }
        }
        self.know(clock, space);
    }

    /// The thread acquires `message` with an access to `space`.
    pub(super) fn acquire(&mut self, message: &Arc<Clock>, space: Space) {
        self.know(join(&self.clock, message), space);
    }

    /// From this access to `space` on, the thread knows `clock`.
    fn know(&mut self, clock: Arc<Clock>, space: Space) {
        if Arc::ptr_eq(&self.clock, &clock) {
            self.accessed = self.accessed.with(space);
        } else {
            let known = std::mem::replace(&mut self.clock, clock);
            self.older.insert(0, (known, self.accessed));
            self.accessed = Spaces::of(space);
        }
        // What was known earlier matters only for spaces not accessed since.
        self.older.retain_mut(|(_, accessed)| {
            *accessed = accessed.without(Spaces::of(space));
            !accessed.is_empty()
        });
    }

    /// What a barrier naming `spaces` passes on from this thread.
    pub(super) fn known_at(&self, spaces: Spaces) -> Option<&Arc<Clock>> {
        if self.accessed.meets(spaces) {
            return Some(&self.clock);
        }
        let mut older = self.older.iter();
        let known = older.find(|(_, accessed)| accessed.meets(spaces));
        known.map(|(clock, _)| clock)
    }

    /// A barrier naming `spaces` brings `clock`.
    pub(super) fn bring(&mut self, clock: &Arc<Clock>, spaces: Spaces) {
        for (brought, named) in self.pending.iter_mut().chain(&mut self.more_pending) {
            if *named == spaces {
                *brought = join(brought, clock);
                return;
            }
        }
        let brought = (Arc::clone(clock), spaces);
        if self.pending.is_none() {
            self.pending = Some(brought);
        } else {
            self.more_pending.push(brought);
        }
    }

    /// What an access by this thread is ordered after, were it made now to a space that every
    /// pending barrier of this knowledge names.
    pub(super) fn clock_with_pending(&self) -> Arc<Clock> {
        let pending = self.pending.iter().chain(&self.more_pending);
        pending.fold(Arc::clone(&self.clock), |clock, (brought, _)| {
            join(&clock, brought)
        })
    }
}
