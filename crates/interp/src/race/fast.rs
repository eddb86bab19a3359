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
        unchanged: impl FnOnce() -> bool,
    ) -> bool {
        match KIND {
            READ => self.read_fast(at, view),
            WRITE => self.write_fast(at, view, unchanged),
            _ => self.atomic_fast::<KIND>(at, view),
        }
    }

    #[inline(always)]
    fn read_fast(&mut self, at: usize, view: &View) -> bool {
        let new = view.me | READ;
        let last = self.last[at];
        if last != 0 && !view.ordered_by_barriers(last) {
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
            if view.ordered_by_barriers(first) {
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
        if !view.layout.same_threadgroup(first, view.me) {
            return false;
        }
        let ordered = (
            view.ordered_by_barriers(first),
            view.ordered_by_barriers(second),
        );
        if ordered == (false, false) {
            if !view.layout.same_simdgroup(first, second)
                || view.layout.same_simdgroup(first, view.me)
            {
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
    fn write_fast(&mut self, at: usize, view: &View, unchanged: impl FnOnce() -> bool) -> bool {
        let last = self.last[at];
        let read = self.slots[0][at];
        if read != 0 {
            let only = self.slots[1][at] == 0 && kind_of(read) == READ;
            if !only || !view.ordered_by_barriers(read) {
                return false;
            }
        }
        let (mut mixed, mut reported) = (0, 0);
        if last != 0 {
            if !view.ordered_by_barriers(last) {
                return last == DONE;
            }
            let different = performer_of(last) == COPY || !unchanged();
            mixed = mixed_after((last >> MIXED_SHIFT) & 3, view.level(last), different);
            reported = last & EQUAL_REPORTED;
        }
        if read != 0 {
            mixed = mixed.max(view.level(read));
            self.slots[0][at] = 0;
        }
        self.last[at] = view.me | mixed << MIXED_SHIFT | reported;
        true
    }

    #[inline(always)]
    fn atomic_fast<const KIND: u64>(&mut self, at: usize, view: &View) -> bool {
        let new = view.me | KIND;
        let last = self.last[at];
        if last != 0 && !view.ordered_by_barriers(last) {
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

    /// A whole run at once, if nothing was recorded there yet or only this very access.
    /// Returns whether it is dealt with.
    #[inline(always)]
    pub(super) fn run_fast<const KIND: u64>(&mut self, run: Run, view: &View) -> bool {
        let Run {
            location,
            lanes,
            first_lane,
            width,
        } = run;
        if width != 1 {
            return false;
        }
        let range = location..location + lanes as usize;
        let step = 1_u64 << view.layout.lane_shift;
        let new = (view.me | if KIND == WRITE { 0 } else { KIND }) + step * u64::from(first_lane);
        let last = &mut self.last[range.clone()];
        let slot = &mut self.slots[0][range];
        let any_last = last.iter().fold(0, |any, &word| any | word);
        let any_slot = slot.iter().fold(0, |any, &word| any | word);
        if any_last != 0 {
            return false;
        }
        if any_slot == 0 {
            let mut word = new;
            for place in if KIND == WRITE { last } else { slot } {
                *place = word;
                word += step;
            }
            return true;
        }
        if KIND == WRITE {
            return false;
        }
        let (mut word, mut other) = (new, 0);
        for &recorded in slot.iter() {
            other |= recorded ^ word;
            word += step;
        }
        other & view.layout.epoch_mask == 0
    }
}

/// The plane of last writes has other flags where a word has its kind.
const _: () = assert!(KIND_MASK == 3 << MIXED_SHIFT);
