//! When batches run, by the GPU's own clock where it has one that can be read.
//!
//! A [`Stopwatch`] notes on the GPU when steps of it begin and end; [`Clock`] says when that was by the host's
//! clock. Where the GPU's zero lies is not known, but a batch begins after it was sent and ends before that is
//! seen: each one shows how early and how late the zero can be, and the clock keeps to that.
//!
//! Invariant: a stopwatch is used again only when what it noted before is no longer read.

use std::time::{Duration, Instant};

use super::mapping::Mapping;

/// What notes on a GPU when so many parts of a submission begin and end.
pub(crate) struct Stopwatch {
    pub(crate) parts: u32,
    set: wgpu::QuerySet,
    read: wgpu::Buffer,
}

/// What of its parts a submission notes.
#[derive(Clone, Copy)]
pub(crate) struct Noted<'a> {
    pub(crate) stopwatch: &'a Stopwatch,
    pub(crate) begin: bool,
    pub(crate) end: bool,
}

impl Noted<'_> {
    /// What the pass of a part writes.
    pub(crate) fn writes(&self, part: u32) -> wgpu::ComputePassTimestampWrites<'_> {
        wgpu::ComputePassTimestampWrites {
            query_set: &self.stopwatch.set,
            beginning_of_pass_write_index: self.begin.then_some(part * 2),
            end_of_pass_write_index: self.end.then_some(part * 2 + 1),
        }
    }

    /// Brings what was noted to where it can be read, once it is all.
    pub(crate) fn bring(&self, encoder: &mut wgpu::CommandEncoder) {
        if self.end {
            let Stopwatch { parts, set, read } = self.stopwatch;
            encoder.resolve_query_set(set, 0..parts * 2, read, 0);
        }
    }
}

impl Stopwatch {
    /// One that notes to such a set, which is then brought to memory that the host reads.
    pub(crate) fn new(parts: u32, set: wgpu::QuerySet, read: wgpu::Buffer) -> Stopwatch {
        Stopwatch { parts, set, read }
    }

    /// Asks for what was noted, when it was submitted.
    pub(crate) fn ask(&self) -> Mapping {
        Mapping::ask(&self.read, self.read.size())
    }

    /// When each part began and ended, in steps of the GPU's clock.
    pub(crate) fn ticks(noted: &[u8]) -> Vec<[u64; 2]> {
        let (words, _) = noted.as_chunks();
        let ticks: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let (pairs, _) = ticks.as_chunks();
        pairs.to_vec()
    }
}

/// Tells when something was by the host's clock that a GPU noted by its own.
pub(crate) struct Clock {
    /// Nanoseconds of a step of the GPU's clock.
    step_ns: f64,
    /// A moment, and how many steps the GPU's clock had made by then.
    at: Option<(Instant, u64)>,
}

impl Clock {
    pub(crate) fn new(step_ns: f32) -> Clock {
        Clock {
            step_ns: f64::from(step_ns),
            at: None,
        }
    }

    /// How long so many steps take.
    pub(crate) fn duration(&self, steps: u64) -> Duration {
        Duration::from_nanos((steps as f64 * self.step_ns) as u64)
    }

    /// When a batch began and ended which was sent at one moment and seen to have ended at another. `None`:
    /// what the GPU noted cannot be.
    pub(crate) fn times(
        &mut self,
        [begin, end]: [u64; 2],
        sent: Instant,
        seen: Instant,
    ) -> Option<[Instant; 2]> {
        let duration = self.duration(end.checked_sub(begin)?);
        let latest = seen.checked_sub(duration)?;
        if latest < sent {
            return None;
        }
        let began = match self.at {
            Some((at, steps)) if begin >= steps => at + self.duration(begin - steps),
            // It was set back, or nothing is known of it yet.
            _ => latest,
        };
        let began = began.clamp(sent, latest);
        self.at = Some((began, begin));
        Some([began, began + duration])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many microseconds after the first moment.
    fn moments() -> impl Fn(u64) -> Instant {
        let first = Instant::now();
        move |us| first + Duration::from_micros(us)
    }

    #[test]
    fn a_batch_lies_between_when_it_was_sent_and_when_its_end_was_seen() {
        let at = moments();
        // Ten steps a microsecond; the host learns of the first end 40 microseconds late.
        let mut clock = Clock::new(100.0);
        assert_eq!(
            clock.times([7_000, 7_100], at(100), at(150)),
            Some([at(140), at(150)])
        );
        // The second shows that the zero was taken for 35 microseconds too late.
        assert_eq!(
            clock.times([7_300, 7_500], at(130), at(155)),
            Some([at(135), at(155)])
        );
        // Nothing new: the third is where the second says.
        assert_eq!(
            clock.times([7_600, 7_700], at(160), at(200)),
            Some([at(165), at(175)])
        );
        // By the third it began before it was sent: the zero lies later.
        assert_eq!(
            clock.times([8_000, 8_100], at(209), at(300)),
            Some([at(209), at(219)])
        );
    }

    #[test]
    fn what_cannot_be_is_not_told() {
        let at = moments();
        let mut clock = Clock::new(1000.0);
        // Its end before its beginning, and longer than between sending and seeing.
        assert_eq!(clock.times([20, 10], at(100), at(200)), None);
        assert_eq!(clock.times([10, 111], at(100), at(200)), None);
        assert_eq!(
            clock.times([10, 110], at(100), at(200)),
            Some([at(100), at(200)])
        );
        // A clock that was set back is learnt anew.
        assert_eq!(
            clock.times([5, 15], at(300), at(320)),
            Some([at(310), at(320)])
        );
    }

    #[test]
    fn ticks_come_in_pairs() {
        let noted: Vec<u8> = [1u64, 1 << 40, 3, 4]
            .iter()
            .flat_map(|n| n.to_le_bytes())
            .collect();
        assert_eq!(Stopwatch::ticks(&noted), [[1, 1 << 40], [3, 4]]);
    }
}
