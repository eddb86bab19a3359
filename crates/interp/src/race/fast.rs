//! The general rule's common cases, location by location and run by run, without the clocks.
//!
//! Each function does exactly what [`Shadow::access`] would, or nothing: then it says so and the
//! caller takes the general rule. Why each case is the general one stands beside it.

use super::shadow::{DONE, Shadow, View, mixed_after};
use super::word::{
    COPY, EQUAL_REPORTED, KIND_MASK, MIXED_SHIFT, READ, WRITE, covers, kind_of, performer_of,
};

/// Lanes with consecutive numbers that access consecutive locations.
#[derive(Clone, Copy)]
pub(super) struct Run {
    pub(super) location: usize,
    pub(super) lanes: u32,
    pub(super) first_lane: u32,
    /// Locations a lane.
    pub(super) width: u32,
}

impl Shadow {
    /// One location, by one known lane. Returns whether the access is dealt with.
    #[inline(always)]
    pub(super) fn access_fast<const KIND: u64>(
        &mut self,
        at: usize,
        view: &View,
        me: u64,
        unchanged: impl FnOnce() -> bool,
    ) -> bool {
        match KIND {
            READ => self.read_fast(at, view, me),
            WRITE => self.write_fast(at, view, me, unchanged),
            _ => self.atomic_fast::<KIND>(at, view, me),
        }
    }

    #[inline(always)]
    fn read_fast(&mut self, at: usize, view: &View, me: u64) -> bool {
        let new = me | READ;
        let last = self.last[at];
        if last != 0 && !view.ordered_by_barriers(last, me) {
            return last == DONE;
        }
        let first = self.slots[0][at];
        if first == 0 {
            self.slots[0][at] = new;
            return true;
        }
        if (first ^ new) & view.layout.epoch_mask == 0 {
            return true;
        }
        if kind_of(first) != READ {
            return false;
        }
        let second = self.slots[1][at];
        if second == 0 {
            // One read is all there is: it is replaced, or becomes half of a pair.
            if view.ordered_by_barriers(first, me) {
                self.slots[0][at] = new;
            } else {
                self.slots[1][at] = new;
                self.deep = true;
            }
            return true;
        }
        if kind_of(second) != READ {
            return false;
        }
        // A pair of reads. A third slot may hold atomics, which happen before both of them; so
        // they happen before this read too, if it is within the least part that holds the pair.
        if !view.layout.same_threadgroup(first, second) {
            return true;
        }
        if !view.layout.same_threadgroup(first, me) {
            return false;
        }
        let ordered = (
            view.ordered_by_barriers(first, me),
            view.ordered_by_barriers(second, me),
        );
        if ordered == (false, false) {
            if !view.layout.same_simdgroup(first, second) || view.layout.same_simdgroup(first, me) {
                return true;
            }
            if self.slots[2][at] == 0 {
                self.slots[1][at] = new;
                return true;
            }
        } else if ordered == (true, true) && self.slots[2][at] == 0 {
            self.slots[0][at] = new;
            self.slots[1][at] = 0;
            return true;
        }
        false
    }

    #[inline(always)]
    fn write_fast(
        &mut self,
        at: usize,
        view: &View,
        me: u64,
        unchanged: impl FnOnce() -> bool,
    ) -> bool {
        let last = self.last[at];
        let read = self.slots[0][at];
        if read != 0 {
            let only = self.slots[1][at] == 0 && kind_of(read) == READ;
            if !only || !view.ordered_by_barriers(read, me) {
                return false;
            }
        }
        let (mut mixed, mut reported) = (0, 0);
        if last != 0 {
            if !view.ordered_by_barriers(last, me) {
                return last == DONE;
            }
            let different = performer_of(last) == COPY || !unchanged();
            mixed = mixed_after((last >> MIXED_SHIFT) & 3, view.level(last, me), different);
            reported = last & EQUAL_REPORTED;
        }
        if read != 0 {
            mixed = mixed.max(view.level(read, me));
            self.slots[0][at] = 0;
        }
        self.last[at] = me | mixed << MIXED_SHIFT | reported;
        true
    }

    #[inline(always)]
    fn atomic_fast<const KIND: u64>(&mut self, at: usize, view: &View, me: u64) -> bool {
        let new = me | KIND;
        let last = self.last[at];
        if last != 0 && !view.ordered_by_barriers(last, me) {
            return last == DONE;
        }
        let first = self.slots[0][at];
        if first == 0 {
            self.slots[0][at] = new;
            return true;
        }
        if (first ^ new) & view.layout.epoch_mask == 0 {
            return true;
        }
        // Two of a kind from different threadgroups race with all that this access could.
        let second = self.slots[1][at];
        kind_of(first) == kind_of(second)
            && second != 0
            && covers(kind_of(first), KIND)
            && !view.layout.same_threadgroup(first, second)
    }

    /// One location, by one known lane that may know more than barriers tell: only what needs
    /// none of that, and leaves nothing out. Returns whether the access is dealt with.
    #[inline]
    pub(super) fn access_simple(&mut self, at: usize, view: &View, kind: u64) -> bool {
        if !self.flights.is_empty() {
            return false;
        }
        let (last, slot) = (self.last[at], self.slots[0][at]);
        if kind == WRITE {
            let untouched = last == 0 && slot == 0;
            if untouched {
                self.last[at] = view.me;
            }
            return untouched;
        }
        let new = view.me | kind;
        if last != 0 && !view.ordered_by_barriers(last, view.me) {
            return last == DONE;
        }
        if slot == 0 {
            self.slots[0][at] = new;
        }
        slot == 0 || (slot ^ new) & view.layout.epoch_mask == 0
    }

    /// A whole run at once, if no location of it was written and all are alike: nothing recorded
    /// yet, this very access, or two of its kind from different threadgroups.
    /// Returns whether it is dealt with.
    #[inline(always)]
    pub(super) fn run_fast<const KIND: u64>(&mut self, run: Run, view: &View) -> bool {
        let Run {
            location,
            lanes,
            first_lane,
            width,
        } = run;
        if width != 1 || lanes < 4 {
            return false;
        }
        let range = location..location + lanes as usize;
        let layout = &view.layout;
        let step = 1_u64 << layout.lane_shift;
        let me = view.me + step * u64::from(first_lane);
        let any = |words: &[u64]| words.iter().fold(0, |any, &word| any | word) != 0;
        let fill = |words: &mut [u64], mut word: u64| {
            for place in words {
                *place = word;
                word += step;
            }
        };
        let last = &mut self.last[range.clone()];
        let [slot, second_slot, _] = &mut self.slots;
        let slot = &mut slot[range.clone()];
        if last[0] != 0 || any(last) {
            return false;
        }
        if slot[0] == 0 {
            if any(slot) {
                return false;
            }
            if KIND == WRITE {
                fill(last, me);
            } else {
                fill(slot, me | KIND);
            }
            return true;
        }
        if KIND == WRITE {
            return false;
        }
        if (slot[0] ^ (me | KIND)) & layout.epoch_mask == 0 {
            let (mut word, mut other) = (me | KIND, 0);
            for &recorded in slot.iter() {
                other |= recorded ^ word;
                word += step;
            }
            return other & layout.epoch_mask == 0;
        }
        let pairs = slot.iter().zip(&second_slot[range]);
        let mut alike = true;
        for (&first, &second) in pairs {
            alike &= ((first ^ KIND) | (second ^ KIND)) & KIND_MASK == 0
                && second != 0
                && !layout.same_threadgroup(first, second);
        }
        alike
    }
}

/// The plane of last writes has other flags where a word has its kind.
const _: () = assert!(KIND_MASK == 3 << MIXED_SHIFT);
