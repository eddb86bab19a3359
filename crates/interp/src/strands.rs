//! Threads of one simdgroup out of step: with a seed, the lanes of a simdgroup part by chance, and each
//! part, a *strand*, runs by itself up to where all must meet (X4) or to its end. So a lane is seen
//! ahead of another by any number of statements, as X3 allows.
//!
//! A strand has its own place, mask and open `if`s and loops. Registers are the simdgroup's: a value
//! belongs to its lanes, and what a strand computes for lanes that are not its own they compute
//! again, from the same values, before they use it. Loads and moves go by the mask.

use invar_ir::Diagnostics;

use crate::program::{Code, Target};
use crate::state::{Frame, Place, Run, Simdgroup, Stop, Strand};

/// The most strands of a simdgroup.
const MAX_STRANDS: usize = 4;

impl Frame {
    /// The same for these lanes alone.
    fn of(self, lanes: u128) -> Frame {
        match self {
            Frame::If {
                at,
                joined,
                pending,
                other,
                end,
            } => Frame::If {
                at,
                joined: joined & lanes,
                pending: pending & lanes,
                other,
                end,
            },
            Frame::Loop {
                at,
                next,
                left,
                iteration,
            } => Frame::Loop {
                at,
                next: next & lanes,
                left: left & lanes,
                iteration,
            },
        }
    }

    /// Those that wait here.
    pub(crate) fn lanes(self) -> u128 {
        match self {
            Frame::If {
                joined, pending, ..
            } => joined | pending,
            Frame::Loop { next, left, .. } => next | left,
        }
    }

    /// The same with the lanes of another strand, which stands in the same iteration of the same loop or
    /// in the same `if`.
    fn and(self, other: Frame) -> Option<Frame> {
        match (self, other) {
            (
                Frame::If {
                    at,
                    joined,
                    pending,
                    other,
                    end,
                },
                Frame::If {
                    at: at_too,
                    joined: joined_too,
                    pending: pending_too,
                    ..
                },
            ) if at == at_too => Some(Frame::If {
                at,
                joined: joined | joined_too,
                pending: pending | pending_too,
                other,
                end,
            }),
            (
                Frame::Loop {
                    at,
                    next,
                    left,
                    iteration,
                },
                Frame::Loop {
                    at: at_too,
                    next: next_too,
                    left: left_too,
                    iteration: iteration_too,
                },
            ) if at == at_too && iteration == iteration_too => Some(Frame::Loop {
                at,
                next: next | next_too,
                left: left | left_too,
                iteration,
            }),
            (Frame::If { .. } | Frame::Loop { .. }, _) => None,
        }
    }
}

impl Run<'_, '_, '_> {
    /// Parts the lanes of the strand at work, by chance; in kernels with collectives over the active threads
    /// never. Whether it did.
    #[cold]
    pub(crate) fn part_lanes(&mut self, simd: &mut Simdgroup, at: Target) -> bool {
        // Which lanes are active is told by lanes in step (X7).
        if self.program.kernel().active_collectives
            || simd.parked.len() + 1 >= MAX_STRANDS
            || self.random.below(4) != 0
        {
            return false;
        }
        let waiting = simd.frames.iter().map(|f| f.lanes());
        let alive = waiting.fold(simd.mask, |all, lanes| all | lanes);
        let bits = u128::from(self.random.bits()) << 64 | u128::from(self.random.bits());
        let (go, stay) = (alive & bits, alive & !bits);
        if go == 0 || stay == 0 {
            return false;
        }
        let frames = |lanes| simd.frames.iter().map(|f| f.of(lanes)).collect();
        let parked = Strand {
            lanes: stay,
            pc: at,
            mask: simd.mask & stay,
            frames: frames(stay),
            seen: simd.seen.clone(),
            arrived: false,
        };
        simd.frames = frames(go);
        simd.lanes = go;
        simd.mask &= go;
        simd.pc = at;
        simd.parked.push(parked);
        true
    }

    /// Puts the strand at work aside and takes up another.
    fn exchange_strands(&mut self, simd: &mut Simdgroup, other: usize, arrived: bool) {
        let mut strand = simd.parked.swap_remove(other);
        std::mem::swap(&mut strand.lanes, &mut simd.lanes);
        std::mem::swap(&mut strand.pc, &mut simd.pc);
        std::mem::swap(&mut strand.mask, &mut simd.mask);
        std::mem::swap(&mut strand.frames, &mut simd.frames);
        std::mem::swap(&mut strand.seen, &mut simd.seen);
        strand.arrived = arrived;
        simd.parked.push(strand);
    }

    /// One of the strands put aside that can run and has none of these lanes.
    fn a_strand(&mut self, simd: &Simdgroup, without: u128) -> Option<usize> {
        let able = |s: &Strand| !s.arrived && s.lanes & without == 0;
        let count = simd.parked.iter().filter(|s| able(s)).count();
        if count == 0 {
            return None;
        }
        let chosen = self.random.below(count as u64) as usize;
        let mut found = simd.parked.iter().enumerate().filter(|(_, s)| able(s));
        found.nth(chosen).map(|(i, _)| i)
    }

    /// Runs a simdgroup, one of its strands after another, until it stops.
    pub(crate) fn slice(
        &mut self,
        group: &mut Place,
        simd: &mut Simdgroup,
    ) -> Result<Stop, Diagnostics> {
        if !simd.parked.is_empty()
            && self.random.flip()
            && let Some(other) = self.a_strand(simd, 0)
        {
            self.exchange_strands(simd, other, false);
        }
        let mut spinning = 0;
        loop {
            let stop = self.strand(group, simd)?;
            if stop != Stop::Spinning {
                return Ok(stop);
            }
            spinning |= simd.lanes;
            match self.a_strand(simd, spinning) {
                Some(other) => self.exchange_strands(simd, other, false),
                None => return Ok(stop),
            }
        }
    }

    /// The strand at work has come to where the whole simdgroup meets. Whether all are there: then
    /// they are one again.
    ///
    /// # Errors
    /// `barrier-divergence`: another is elsewhere or in another iteration.
    pub(crate) fn assemble(
        &mut self,
        group: &Place,
        simd: &mut Simdgroup,
        at: Target,
    ) -> Result<bool, Diagnostics> {
        if let Some(other) = self.a_strand(simd, 0) {
            simd.pc = at;
            self.exchange_strands(simd, other, true);
            return Ok(false);
        }
        for strand in std::mem::take(&mut simd.parked) {
            let apart = || crate::diverge::lanes_apart(self.program, group, simd, at);
            if strand.pc != at || strand.frames.len() != simd.frames.len() {
                return Err(apart());
            }
            let pairs = simd.frames.iter().zip(&strand.frames);
            let frames: Option<Vec<Frame>> = pairs.map(|(a, b)| a.and(*b)).collect();
            simd.frames = frames.ok_or_else(apart)?;
            simd.mask |= strand.mask;
            simd.lanes |= strand.lanes;
        }
        Ok(true)
    }

    /// No lane of the strand is active: takes up those that wait nearest, or another strand. Whether
    /// all threads are done.
    pub(crate) fn go_on(&mut self, simd: &mut Simdgroup) -> bool {
        loop {
            if !self.take_up(simd) {
                return false;
            }
            if simd.parked.is_empty() {
                return true;
            }
            let next = self.a_strand(simd, 0).unwrap_or(0);
            let strand = simd.parked.swap_remove(next);
            (simd.lanes, simd.mask) = (strand.lanes, strand.mask);
            (simd.pc, simd.frames, simd.seen) = (strand.pc, strand.frames, strand.seen);
            if simd.mask != 0 {
                return false;
            }
        }
    }
}

impl Code {
    /// Whether every existing lane of the simdgroup must be there (X4).
    pub(crate) fn brings_together(&self) -> bool {
        match self {
            Code::AsyncCopy { .. }
            | Code::Wait { .. }
            | Code::Barrier { .. }
            | Code::Lanes(_)
            | Code::MatrixFill { .. }
            | Code::MatrixLoad { .. }
            | Code::MatrixStore { .. }
            | Code::MatrixMultiplyAccumulate { .. }
            | Code::AssertUniform { .. } => true,
            Code::Eval { .. }
            | Code::Gather { .. }
            | Code::AsType { .. }
            | Code::Query { .. }
            | Code::Load { .. }
            | Code::Store { .. }
            | Code::Atomic { .. }
            | Code::Move(_)
            | Code::If { .. }
            | Code::EndSide
            | Code::Loop { .. }
            | Code::Next { .. }
            | Code::Break { .. }
            | Code::Return
            | Code::Print(_)
            | Code::Selected { .. }
            | Code::Misaligned { .. }
            | Code::Extract { .. }
            | Code::Insert { .. }
            | Code::Zero { .. }
            | Code::Copy(_)
            | Code::Texture(_) => false,
        }
    }
}
