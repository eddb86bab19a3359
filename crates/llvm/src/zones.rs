//! Red zones, for tests: room around the objects of threadgroup and thread memory, of which nothing may
//! change a byte.
//!
//! Only the layout of scratch memory knows of them: the caller of the kernel fills that memory before
//! and looks at the zones afterwards. So that all thread arrays have some, they are all in the memory of
//! chunks, and threadgroups side by side, which have one such memory each, do not run as one.
//!
//! Deliberately absent: code in the kernel that fills zones or looks at them.

use std::ops::Range;

use crate::object::ALIGN;

/// Bytes of a zone, at least.
pub(crate) const ZONE_BYTES: u64 = 2 * ALIGN;

/// Where zones are in scratch memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Zones {
    /// Around threadgroup arrays: none unless zones were asked for.
    fixed: Vec<Range<u64>>,
    /// Where they begin in the memory of each vector of threads.
    of_part: Vec<u64>,
    /// Bytes of that memory.
    part_bytes: u64,
}

impl Zones {
    /// Zones, the first of which is where scratch memory begins.
    pub fn asked() -> Zones {
        Zones {
            fixed: std::iter::once(0..ZONE_BYTES).collect(),
            ..Zones::default()
        }
    }

    /// Whether there are any.
    pub fn are_there(&self) -> bool {
        !self.fixed.is_empty()
    }

    /// The bytes that each object takes more.
    pub fn each_bytes(&self) -> u64 {
        if self.are_there() { ZONE_BYTES } else { 0 }
    }

    /// Where what follows an object begins, which ends at `end`, or at `aligned` with what fills it up.
    pub fn behind(&mut self, end: u64, aligned: u64) -> u64 {
        let after = aligned + self.each_bytes();
        if self.are_there() {
            self.fixed.push(end..after);
        }
        after
    }

    /// The same in the memory of a vector of threads, where a zone may begin.
    pub fn in_part(&mut self, at: u64) -> u64 {
        if self.are_there() {
            self.of_part.push(at);
        }
        at + self.each_bytes()
    }

    /// Says how much memory a vector of threads has, and whether nothing changes its zones.
    pub fn finish_part(&mut self, bytes: u64, keeps_zones: bool) {
        self.part_bytes = bytes;
        if !keeps_zones {
            self.of_part.clear();
        }
    }

    /// All of them, if the memory of vectors of threads begins at `chunks` and ends at `end`, and threadgroup
    /// parameters have these.
    pub fn all(&self, parameters: &[Range<u64>], chunks: u64, end: u64) -> Vec<Range<u64>> {
        if !self.are_there() {
            return Vec::new();
        }
        let mut all = [&self.fixed, parameters].concat();
        if !self.of_part.is_empty() {
            let parts = (chunks..end).step_by(self.part_bytes as usize);
            let of_part = parts.flat_map(|part| self.of_part.iter().map(move |at| part + at));
            all.extend(of_part.map(|at| at..at + ZONE_BYTES));
        }
        all
    }

    /// As words, to be kept.
    pub fn to_words(&self) -> Vec<u64> {
        let fixed = self.fixed.iter().flat_map(|zone| [zone.start, zone.end]);
        let lengths = [self.fixed.len() as u64, self.of_part.len() as u64];
        let all = lengths.into_iter().chain([self.part_bytes]).chain(fixed);
        all.chain(self.of_part.iter().copied()).collect()
    }

    /// What [`Zones::to_words`] gave; `None` if there are too few words.
    pub fn from_words(words: &mut impl Iterator<Item = u64>) -> Option<Zones> {
        let [fixed, of_part, part_bytes] = [words.next()?, words.next()?, words.next()?];
        let zone = |_| Some(words.next()?..words.next()?);
        let fixed = (0..fixed).map(zone).collect::<Option<_>>()?;
        let of_part = (0..of_part).map(|_| words.next()).collect::<Option<_>>()?;
        Some(Zones {
            fixed,
            of_part,
            part_bytes,
        })
    }
}
