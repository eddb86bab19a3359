//! Operations between the lanes of a simdgroup: `lanes.rs` of each one of a chunk.

use inkwell::values::VectorValue;
use invar_ir::Scalar;
use invar_ir::ops::{Group, LaneRule};

use crate::function::FunctionLowering;
use crate::lanes::{Present, lane_rule};
use crate::value::{Mask, Part, Parts};

impl<'c, 'k> FunctionLowering<'c, 'k> {
    pub fn between_lanes(
        &self,
        group: Group,
        rule: LaneRule,
        types: &[Scalar],
        parts: &[Parts<'c>],
        mask: &Mask<'c>,
    ) -> Parts<'c> {
        let each = self.simdgroup_parts();
        let count = self.shape.parts() as usize;
        // Over the active threads (X7), or else all that exist, which are all there.
        let active = self.analysis.kernel.active_collectives;
        let there = if active {
            mask
        } else {
            &self.chunk_ref().exist
        };
        debug_assert!(count.is_multiple_of(each), "chunks are of whole simdgroups");
        let mut list = Vec::new();
        for c in 0..parts[0].components() {
            // The vectors of each result.
            let mut results: Vec<Vec<Part<'c>>> = Vec::new();
            for number in 0..count / each {
                let lanes = |list: &[VectorValue<'c>]| self.e.join(&list[number * each..][..each]);
                let present = match there {
                    Mask::All => Present::All,
                    Mask::Some(list) if active => Present::Active(lanes(list)),
                    Mask::Some(list) => Present::Existing(lanes(list)),
                };
                let value = self.simdgroup(&parts[0], c, number);
                let by = parts
                    .get(1)
                    .map(|lane| (types[1], self.simdgroup(lane, 0, number)));
                let own = lane_rule(&self.e, group, rule, types[0], value, by, present);
                results.resize(own.len(), Vec::new());
                for (result, vector) in results.iter_mut().zip(own) {
                    result.extend(self.e.split(vector, self.shape.width));
                }
            }
            list.extend(results.into_iter().flatten());
        }
        Parts::of(list, count)
    }

    /// A component of a simdgroup of the chunk as one vector.
    pub fn simdgroup(&self, parts: &Parts<'c>, component: usize, number: usize) -> VectorValue<'c> {
        let each = self.simdgroup_parts();
        let vectors: Vec<_> = (number * each..(number + 1) * each)
            .map(|u| self.e.vector(parts.part(component, u), self.shape.width))
            .collect();
        self.e.join(&vectors)
    }
}
