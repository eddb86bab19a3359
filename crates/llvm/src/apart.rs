//! Accesses of lanes that go apart by distances known before code is made
//! (`codegen/src/analysis/distances.rs`): one address for a vector, and vectors where lanes lie side by side.
//!
//! For tiles filled by the numbers of threads with fewer pieces a row than a vector has lanes. Lane by lane each
//! would need an address of its own, of which half of the time is taken out of vectors again.
//!
//! Deliberately absent: lanes that are off, or not proved to be in bounds.

use inkwell::values::{BasicValueEnum, PointerValue, VectorValue};
use invar_ir::Scalar;

use crate::emit::BUILT;
use crate::function::FunctionLowering;
use crate::places::Target;
use crate::value::Part;

/// Where the lanes of a vector are.
pub(crate) struct Apart<'c> {
    /// Of the first lane.
    pointer: PointerValue<'c>,
    /// From the first lane to each, in bytes.
    by: Vec<i64>,
}

impl<'c> FunctionLowering<'c, '_> {
    /// Component `c` of part `u`'s lanes, if their distances are known, where all are on and in bounds.
    pub fn apart(&self, t: &Target<'c>, u: usize, c: usize) -> Option<Apart<'c>> {
        let e = &self.e;
        let (Part::Vector(index), Some(by)) = (t.index.part(0, u), &t.distances) else {
            return None;
        };
        let fits = index.get_type().get_size() as usize == by.len();
        if !fits || t.never || !t.dynamic.is_empty() || t.index_scalar.bits() < 32 {
            return None;
        }
        let first = e.builder.build_extract_element(index, e.i32(0), "");
        let step = (t.scale * t.element_bytes) as i64;
        Some(Apart {
            pointer: self.component_at(t, first.expect(BUILT).into_int_value(), c),
            by: by.iter().map(|by| by * step).collect(),
        })
    }

    /// The address of each lane.
    pub fn pointers_apart(&self, apart: &Apart<'c>) -> Vec<PointerValue<'c>> {
        apart.by.iter().map(|by| self.at(apart, *by)).collect()
    }

    fn at(&self, apart: &Apart<'c>, by: i64) -> PointerValue<'c> {
        self.e.byte_offset(apart.pointer, self.e.i64(by as u64))
    }

    /// Whether runs take fewer instructions than to gather or to scatter the lanes.
    fn is_better(&self, scalar: Scalar, lanes: usize, runs: usize) -> bool {
        !self.e.target.has_avx512 || scalar.size_bytes() < 4 || 2 * runs <= lanes
    }

    /// Reads the lanes, if that is better than to gather them. `mark` is told what was loaded.
    pub fn load_apart(
        &self,
        scalar: Scalar,
        apart: &Apart<'c>,
        mark: impl Fn(BasicValueEnum<'c>),
    ) -> Option<VectorValue<'c>> {
        let e = &self.e;
        let (size, lanes) = (scalar.size_bytes(), apart.by.len() as u32);
        let places = in_order(&apart.by);
        let runs = runs(&places, size);
        if !self.is_better(scalar, apart.by.len(), runs.len()) {
            return None;
        }
        let vector = |count| e.memory_type(scalar, e.vector_type(scalar, count).into());
        let mut packed = vector(lanes).into_vector_type().get_poison();
        let mut begin = 0;
        for run in runs {
            let count = run.len() as u32;
            let some = e.load(vector(count), self.at(apart, run[0]), size as u32);
            mark(some);
            let order = (0..lanes).map(|lane| lane.saturating_sub(begin).min(count - 1));
            let some = e.lanes_of(some.into_vector_value(), None, order);
            let here = begin..begin + count;
            let own = |lane| lane + lanes * u32::from(here.contains(&lane));
            packed = e.lanes_of(packed, Some(some), (0..lanes).map(own));
            begin += count;
        }
        let place = |by: &i64| places.partition_point(|place| place < by) as u32;
        Some(e.lanes_of(packed, None, apart.by.iter().map(place)))
    }

    /// Writes the lanes, each to a place of its own, if that is better than to scatter them; says whether it did.
    pub fn store_apart(&self, t: &Target<'c>, apart: &Apart<'c>, stored: VectorValue<'c>) -> bool {
        let e = &self.e;
        let size = t.scalar.size_bytes();
        let places = in_order(&apart.by);
        let runs = runs(&places, size);
        if places.len() < apart.by.len() || !self.is_better(t.scalar, places.len(), runs.len()) {
            return false;
        }
        let lane = |place: &i64| apart.by.iter().position(|by| by == place).unwrap_or(0) as u32;
        let packed = e.lanes_of(stored, None, places.iter().map(lane));
        let mut begin = 0;
        for run in runs {
            let count = run.len() as u32;
            let some = e.lanes_of(packed, None, begin..begin + count);
            e.store(some.into(), self.at(apart, run[0]), size as u32);
            begin += count;
        }
        true
    }
}

/// Places in their order, each once.
fn in_order(by: &[i64]) -> Vec<i64> {
    let mut places = by.to_vec();
    places.sort_unstable();
    places.dedup();
    places
}

/// Places in order, cut where they do not lie side by side.
fn runs(places: &[i64], size: u64) -> Vec<&[i64]> {
    places.chunk_by(|a, b| b - a == size as i64).collect()
}
