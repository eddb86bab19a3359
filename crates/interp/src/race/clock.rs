//! Vector clocks, for kernels with acquire or release: what one thread knows of the others.
//!
//! A clock maps parts of the grid (a threadgroup, a simdgroup, a lane) to times: every access that
//! a thread of the part made at an earlier time happens before what the clock's owner does now.
//! It is sparse: a part that was never heard of has no entry; and hierarchical: a barrier of a
//! threadgroup is one entry, which absorbs those of its simdgroups and lanes.
//!
//! Threadgroups pass on what they know along chains as long as the grid. So the entries hang in a
//! tree by the threadgroup's number, whose branches clocks share: to add an entry copies one path,
//! and to join two clocks looks only at the branches in which they differ.

use std::sync::Arc;

use super::word::{COPY, LANE, Layout, performer_of};
use super::{Space, Spaces};

/// A threadgroup, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    threadgroup: u64,
    // 0 for the whole threadgroup, else simdgroup + 1 in the upper bits and, in the lower eight,
    // 0 for the whole simdgroup, else lane + 1. So a whole sorts right before its parts.
    code: u32,
}

fn simdgroup_code(simdgroup: u64) -> u32 {
    u32::try_from(simdgroup + 1).expect("fewer simdgroups than 2^24") << 8
}

fn lane_code(simdgroup: u64, lane: u64) -> u32 {
    simdgroup_code(simdgroup) | u32::try_from(lane + 1).expect("a lane has at most 7 bits")
}

impl Part {
    pub(super) fn threadgroup(threadgroup: u64) -> Self {
        let code = 0;
        Self { threadgroup, code }
    }

    pub(super) fn simdgroup(threadgroup: u64, simdgroup: u64) -> Self {
        let code = simdgroup_code(simdgroup);
        Self { threadgroup, code }
    }

    pub(super) fn lane(threadgroup: u64, simdgroup: u64, lane: u64) -> Self {
        let code = lane_code(simdgroup, lane);
        Self { threadgroup, code }
    }
}

/// Times of one threadgroup's parts by their codes, in order; no entry is implied by that of a whole
/// which holds its part.
type Times = Vec<(u32, u32)>;

/// How many branches a node has, as a power of two.
const BRANCH_BITS: u32 = 4;

#[derive(Debug)]
enum Node {
    /// By the digits of the threadgroup's number, the highest first.
    Branch([Option<Arc<Node>>; 1 << BRANCH_BITS]),
    Leaf(Times),
}

/// Times by part.
#[derive(Debug, Default)]
pub(super) struct Clock {
    /// How many levels of branches stand above the leaves.
    height: u32,
    root: Option<Arc<Node>>,
}

fn digit(threadgroup: u64, level: u32) -> usize {
    (threadgroup >> (BRANCH_BITS * level)) as usize & ((1 << BRANCH_BITS) - 1)
}

/// The tree that has only these times.
fn single(threadgroup: u64, height: u32, times: Times) -> Arc<Node> {
    let leaf = Arc::new(Node::Leaf(times));
    (0..height).fold(leaf, |node, level| {
        let mut children: [Option<Arc<Node>>; 1 << BRANCH_BITS] = Default::default();
        children[digit(threadgroup, level)] = Some(node);
        Arc::new(Node::Branch(children))
    })
}

fn join_children(
    x: &[Option<Arc<Node>>; 1 << BRANCH_BITS],
    y: &[Option<Arc<Node>>; 1 << BRANCH_BITS],
) -> (bool, bool, [Option<Arc<Node>>; 1 << BRANCH_BITS]) {
    let (mut is_x, mut is_y) = (true, true);
    let joined = std::array::from_fn(|i| {
        let child = match (&x[i], &y[i]) {
            (Some(x), Some(y)) => Some(join_nodes(x, y)),
            (x, y) => x.as_ref().or(y.as_ref()).cloned(),
        };
        let is = |other: &Option<Arc<Node>>| match (&child, other) {
            (Some(child), Some(other)) => Arc::ptr_eq(child, other),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        is_x &= is(&x[i]);
        is_y &= is(&y[i]);
        child
    });
    (is_x, is_y, joined)
}

/// Shares one of the two where it knows all that the other does.
fn join_nodes(x: &Arc<Node>, y: &Arc<Node>) -> Arc<Node> {
    if Arc::ptr_eq(x, y) {
        return Arc::clone(x);
    }
    let (is_x, is_y, joined) = match (&**x, &**y) {
        (Node::Branch(a), Node::Branch(b)) => {
            let (is_x, is_y, joined) = join_children(a, b);
            (is_x, is_y, Node::Branch(joined))
        }
        (Node::Leaf(a), Node::Leaf(b)) => {
            let joined = merge(a, b);
            (joined == *a, joined == *b, Node::Leaf(joined))
        }
        (Node::Branch(_), Node::Leaf(_)) | (Node::Leaf(_), Node::Branch(_)) => {
            unreachable!("trees that are joined have one height")
        }
    };
    match (is_x, is_y) {
        (true, _) => Arc::clone(x),
        (false, true) => Arc::clone(y),
        (false, false) => Arc::new(joined),
    }
}

/// The least times that know what both know.
fn merge(mut left: &[(u32, u32)], mut right: &[(u32, u32)]) -> Times {
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut threadgroup, mut simdgroup) = (None, None);
    let mut push = |(code, time): (u32, u32)| {
        // Entries come in order, each whole before its parts.
        let implied = |whole: Option<(u32, u32)>, inside: fn(u32, u32) -> bool| {
            whole.is_some_and(|(whole, t)| inside(whole, code) && time <= t)
        };
        if implied(threadgroup, |_, _| true) || implied(simdgroup, |w, p| w >> 8 == p >> 8) {
            return;
        }
        if code == 0 {
            threadgroup = Some((code, time));
        } else if code & 0xff == 0 {
            simdgroup = Some((code, time));
        }
        merged.push((code, time));
    };
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
            (None, None) => return merged,
        }
    }
}

impl Clock {
    fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// What is known of a threadgroup and its parts.
    fn times(&self, threadgroup: u64) -> &[(u32, u32)] {
        if threadgroup
            .checked_shr(BRANCH_BITS * self.height)
            .unwrap_or(0)
            != 0
        {
            return &[];
        }
        let mut node = self.root.as_deref();
        let mut level = self.height;
        loop {
            match node {
                None => return &[],
                Some(Node::Leaf(times)) => return times,
                Some(Node::Branch(children)) => {
                    level -= 1;
                    node = children[digit(threadgroup, level)].as_deref();
                }
            }
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
        if self.is_empty() && own.is_none() {
            return false;
        }
        let threadgroup = layout.threadgroup_of(word);
        let simdgroup = layout.simdgroup_of(word);
        let times = self.times(threadgroup);
        let known = |code| match times.binary_search_by_key(&code, |entry| entry.0) {
            Ok(at) => u64::from(times[at].1) > layout.time(word),
            Err(_) => false,
        };
        if known(0) || known(simdgroup_code(simdgroup)) {
            return true;
        }
        let lane_known = |lane| own == Some(lane) || known(lane_code(simdgroup, lane));
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
        let mut height = self.height;
        while part
            .threadgroup
            .checked_shr(BRANCH_BITS * height)
            .unwrap_or(0)
            != 0
        {
            height += 1;
        }
        let new = single(part.threadgroup, height, vec![(part.code, time)]);
        let root = match self.raised(height) {
            Some(root) => join_nodes(&root, &new),
            None => new,
        };
        let root = Some(root);
        Self { height, root }
    }

    /// The root of this clock as a tree of that height, at least its own.
    fn raised(&self, height: u32) -> Option<Arc<Node>> {
        let root = Arc::clone(self.root.as_ref()?);
        Some((self.height..height).fold(root, |node, _| {
            let mut children: [Option<Arc<Node>>; 1 << BRANCH_BITS] = Default::default();
            children[0] = Some(node);
            Arc::new(Node::Branch(children))
        }))
    }
}

/// The least clock that knows what both know; shares one of them where it can.
pub(super) fn join(x: &Arc<Clock>, y: &Arc<Clock>) -> Arc<Clock> {
    if Arc::ptr_eq(x, y) || y.is_empty() {
        return Arc::clone(x);
    }
    let height = x.height.max(y.height);
    let (Some(a), Some(b)) = (x.raised(height), y.raised(height)) else {
        return Arc::clone(y);
    };
    let root = join_nodes(&a, &b);
    if Arc::ptr_eq(&root, &a) && height == x.height {
        Arc::clone(x)
    } else if Arc::ptr_eq(&root, &b) && height == y.height {
        Arc::clone(y)
    } else {
        let root = Some(root);
        Arc::new(Clock { height, root })
    }
}

/// Joins clocks, and remembers the last two: lanes one after another mostly join the same.
#[derive(Debug, Default)]
pub(super) struct Joiner(Option<[Arc<Clock>; 3]>);

impl Joiner {
    fn join(&mut self, x: &Arc<Clock>, y: &Arc<Clock>) -> Arc<Clock> {
        if let Some([a, b, joined]) = &self.0
            && Arc::ptr_eq(a, x)
            && Arc::ptr_eq(b, y)
        {
            return Arc::clone(joined);
        }
        let joined = join(x, y);
        self.0 = Some([x, y, &joined].map(Arc::clone));
        joined
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
    pub(super) fn access(&mut self, space: Space, joiner: &mut Joiner) {
        if self.pending.is_some() || !self.accessed.contains(space) {
            self.access_first(space, joiner);
        }
    }

    fn access_first(&mut self, space: Space, joiner: &mut Joiner) {
        let mut clock = Arc::clone(&self.clock);
        let pending = self.pending.take().into_iter();
        for (brought, named) in pending.chain(std::mem::take(&mut self.more_pending)) {
            if named.contains(space) {
                clock = joiner.join(&clock, &brought);
            } else {
                self.bring(&brought, named, joiner);
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
    pub(super) fn bring(&mut self, clock: &Arc<Clock>, spaces: Spaces, joiner: &mut Joiner) {
        for (brought, named) in self.pending.iter_mut().chain(&mut self.more_pending) {
            if *named == spaces {
                *brought = joiner.join(brought, clock);
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
