//! Accesses of one thread side by side, where its neighbours' lie far away: rows of blocks, which registers transpose.
//!
//! This is for threads that each go along a row of their own (sums and norms of rows, products with a transposed
//! matrix, tiles that are read across), where a loop's iterations are written out (`codegen/src/passes/lines.rs`) or
//! the author wrote them, and for matrices and other fixed lists of each thread. Of a vector of lanes, each lane's
//! elements are read as a vector, a whole line of a cache at best; of as many vectors as a block has columns the lanes'
//! first elements are put together, their second ones, and so on. Gathers would read every line as often as it has
//! elements.
//!
//! ```text
//! lane 0: a b c d        a e i m
//! lane 1: e f g h   ->   b f j n      with 4 lanes, by swapping what lies beside the diagonal,
//! lane 2: i j k l        c g k o      first of squares of 2, then of 4, and so on
//! lane 3: m n o p        d h l p
//! ```
//!
//! Where threads side by side along y access what lies side by side (transpositions), rows of threads are the columns.
//!
//! Stores go the other way; where the lanes' blocks lie side by side too (pixels, complex numbers), they are vectors.
//!
//! Which accesses are a block is known before code is made (`codegen/src/analysis/blocks.rs`): nothing between them
//! writes what they read, so that the first of them can load for all. It does where all lanes are on and every load
//! of the block is proved to be in bounds; what lies between a lane's first and its last element is then in the
//! object too. Of stores, the last one stores for all, and they have all elements in between.
//!
//! Deliberately absent: elements that are not scalars, and what lies a few scalars apart from lane to lane, which
//! `places.rs` knows as vectors.

use std::collections::HashMap;

use inkwell::values::{IntValue, PointerValue, VectorValue};
use invar_codegen::analysis::blocks::Block;
use invar_ir::Inst;

use crate::emit::BUILT;
use crate::function::FunctionLowering;
use crate::places::{Spot, Target};
use crate::state::Proof;
use crate::target::CACHE_LINE_BYTES;
use crate::tuning::{LEAST_STORES_APART, MOST_STORES_SIDE_BY_SIDE};
use crate::value::{Mask, Part, Parts};

/// Whether lanes so many elements apart have blocks of so many side by side.
fn is_side_by_side(stride: i64, span: u32) -> bool {
    stride == i64::from(span) && span <= MOST_STORES_SIDE_BY_SIDE
}

impl<'c, 'k> FunctionLowering<'c, 'k> {
    /// The value of a load that was made with others, or that others are made with.
    pub fn load_of_block(
        &mut self,
        inst: &Inst,
        t: &Target<'c>,
        mask: &Mask<'c>,
    ) -> Option<Parts<'c>> {
        let key = std::ptr::from_ref(inst);
        if let Some(parts) = self.chunk.as_mut()?.ahead.remove(&key) {
            return Some(parts);
        }
        if self.analysis.plan.down.contains(&key) {
            return self.load_down(inst, t, mask);
        }
        let analysis = self.analysis;
        let block = analysis.plan.blocks.get(&key)?;
        let is_proved = |load: &Inst| match self.proved(load) {
            Some(Proof::Lanes) => true,
            Some(Proof::Active) => *mask == Mask::All,
            None => false,
        };
        if !self.chunk_ref().fast
            || !self.is_simple(t)
            || !block.accesses().iter().all(|(load, _)| is_proved(load))
        {
            return None;
        }
        let count = self.shape.parts() as usize;
        let is_far = |u: usize| match t.index.part(0, u) {
            Part::Vector(_) => true,
            Part::Affine { stride, .. } => {
                let apart = stride != 1 && self.spread(t, u, 0).is_none();
                apart || self.has_quarters(t, block, stride)
            }
            Part::Scalar(_) => false,
        };
        if !(0..count).all(is_far) {
            return None;
        }
        let own = block.accesses()[0].1;
        let mut columns: Vec<HashMap<u32, Part<'c>>> = Vec::new();
        for u in 0..count {
            let index = t.index.part(0, u);
            let same = (0..u).find(|v| t.index.part(0, *v) == index);
            columns.push(match same {
                Some(same) => columns[same].clone(),
                None => self.columns(t, u, block, own),
            });
        }
        let value = |at: u32| {
            let list = columns.iter().map(|found| found[&at]).collect();
            Parts::of(list, count)
        };
        let all: Vec<_> = (block.accesses().iter())
            .map(|(load, at)| (std::ptr::from_ref(*load), value(*at)))
            .collect();
        self.chunk().ahead.extend(all);
        self.chunk().ahead.remove(&key)
    }

    /// The elements of a block that its loads read, for part `u`, by their distances from the first. The address
    /// of a target is that of a load at the distance `own`.
    fn columns(
        &self,
        t: &Target<'c>,
        u: usize,
        block: &Block<'k>,
        own: u32,
    ) -> HashMap<u32, Part<'c>> {
        let e = &self.e;
        let lanes = self.lane_pointers(t, u);
        if let Part::Affine { stride, .. } = t.index.part(0, u)
            && self.has_quarters(t, block, stride)
        {
            return self.quarters(t, lanes[0], block, own);
        }
        let most = block.span().min(self.shape.width);
        let square = 1 << most.ilog2();
        let mut found = HashMap::new();
        let mut begin = 0;
        while begin < block.span() {
            // The last one begins early rather than to read beyond.
            let first = begin.min(block.span() - square);
            begin += square;
            let wanted = |at: &u32| (first..first + square).contains(at) && !found.contains_key(at);
            if !block.accesses().iter().any(|(_, at)| wanted(at)) {
                continue;
            }
            let ty = e.memory_type(t.scalar, e.vector_type(t.scalar, square).into());
            let rows: Vec<VectorValue<'c>> = (lanes.iter())
                .map(|lane| {
                    let row = e.byte_offset(*lane, self.bytes_between(t, own, first));
                    let row = e.load(ty, row, t.scalar.size_bytes() as u32);
                    self.mark_constant(&t.object, row);
                    row.into_vector_value()
                })
                .collect();
            found.extend((first..).zip(self.settled_columns(t, &rows, square)));
        }
        // Behind the loads, as `memory.rs` says.
        let size = u64::from(block.span()) * t.scalar.size_bytes();
        let is_line = size.is_multiple_of(CACHE_LINE_BYTES);
        if is_line && (t.object.shared || t.object.constant) && !self.chunk_ref().frames.is_empty()
        {
            lanes.iter().for_each(|lane| self.prefetch_along(*lane));
        }
        found
    }

    /// Whether the lanes' blocks lie side by side and are best taken apart together.
    fn has_quarters(&self, t: &Target<'c>, block: &Block<'k>, stride: i64) -> bool {
        let (width, span) = (self.shape.width, block.span());
        is_side_by_side(stride, span) && self.e.has_quarters(t.scalar, width, span)
    }

    /// The elements of blocks that lie side by side, from where the first lane's access at the distance `own` is.
    fn quarters(
        &self,
        t: &Target<'c>,
        first: PointerValue<'c>,
        block: &Block<'k>,
        own: u32,
    ) -> HashMap<u32, Part<'c>> {
        let from = (self.e).byte_offset(first, self.bytes_between(t, own, 0));
        let columns = self.read_quarters(t, from).into_iter();
        (0..block.span()).zip(columns.map(Part::Vector)).collect()
    }

    fn settled_columns(
        &self,
        t: &Target<'c>,
        rows: &[VectorValue<'c>],
        square: u32,
    ) -> Vec<Part<'c>> {
        let columns = self.transposed(rows, square).into_iter();
        columns
            .map(|column| {
                let column = self.settled(&t.object, t.scalar, column.into());
                Part::Vector(column.into_vector_value())
            })
            .collect()
    }

    /// A load of what lies side by side along y, if rows of threads are enough and all lanes are in bounds.
    fn load_down(&self, inst: &Inst, t: &Target<'c>, mask: &Mask<'c>) -> Option<Parts<'c>> {
        let loads = match self.proved(inst)? {
            Proof::Lanes => true,
            Proof::Active => *mask == Mask::All,
        };
        let square = self.square_down(t).filter(|_| loads)?;
        let e = &self.e;
        let (along, count) = (self.shape.along, self.shape.parts());
        let ty = e.memory_type(t.scalar, e.vector_type(t.scalar, square).into());
        let mut list: Vec<Option<Part<'c>>> = vec![None; count as usize];
        for u in (0..count).filter(|u| (u / along).is_multiple_of(square)) {
            let rows: Vec<VectorValue<'c>> = (self.lane_pointers(t, u as usize).into_iter())
                .map(|lane| {
                    let row = e.load(ty, lane, t.scalar.size_bytes() as u32);
                    self.mark_constant(&t.object, row);
                    row.into_vector_value()
                })
                .collect();
            let columns = self.settled_columns(t, &rows, square);
            for (row, column) in (0..).zip(columns) {
                list[(u + row * along) as usize] = Some(column);
            }
        }
        let list: Option<Vec<_>> = list.into_iter().collect();
        Some(Parts::of(list?, count as usize))
    }

    /// Stores what lies side by side along y, if rows of threads are enough and all lanes do; says whether it did.
    fn store_down(&self, inst: &Inst, t: &Target<'c>, value: &Parts<'c>, mask: &Mask<'c>) -> bool {
        let all = *mask == Mask::All && self.proved(inst).is_some();
        let Some(square) = self.square_down(t).filter(|_| all) else {
            return false;
        };
        let e = &self.e;
        let (along, width) = (self.shape.along, self.shape.width);
        for u in (0..self.shape.parts()).filter(|u| (u / along).is_multiple_of(square)) {
            let column = |row: u32| {
                let own = e.vector(value.part(0, (u + row * along) as usize), width);
                e.in_memory(t.scalar, own.into()).into_vector_value()
            };
            let columns = (0..square).map(column).collect();
            self.store_rows(t, &self.lane_pointers(t, u as usize), columns, e.i64(0));
        }
        true
    }

    /// How many rows of threads make a square, of a target that lies side by side for them.
    fn square_down(&self, t: &Target<'c>) -> Option<u32> {
        let shape = self.shape;
        let square = 1 << shape.rows.min(shape.width).ilog2();
        let far = |u: u32| match t.index.part(0, u as usize) {
            Part::Vector(_) => true,
            Part::Affine { stride, .. } => stride.unsigned_abs() >= LEAST_STORES_APART.into(),
            Part::Scalar(_) => false,
        };
        let fits = self.chunk_ref().fast
            && !shape.linear
            && self.is_simple(t)
            && square >= LEAST_STORES_APART
            // Rows are a power of two (`shapes.rs`), so this holds; a square that hangs over would store in rows
            // that are not there.
            && shape.rows.is_multiple_of(square)
            && (0..shape.parts()).all(far);
        fits.then_some(square)
    }

    /// Writes columns as rows, each so many bytes behind the address of its lane.
    fn store_rows(
        &self,
        t: &Target<'c>,
        lanes: &[PointerValue<'c>],
        columns: Vec<VectorValue<'c>>,
        behind: IntValue<'c>,
    ) {
        let e = &self.e;
        let square = columns.len() as u32;
        let rows = self.transposed_squares(columns, square);
        for (lane, to) in (0..).zip(lanes) {
            let from = lane / square * square;
            let row = rows[(lane % square) as usize];
            let row = e.lanes_of(row, None, from..from + square);
            let to = e.byte_offset(*to, behind);
            e.store(row.into(), to, t.scalar.size_bytes() as u32);
        }
    }

    /// Takes a store that is made with others; says whether it did.
    pub fn store_of_block(
        &mut self,
        inst: &Inst,
        t: &Target<'c>,
        value: &Parts<'c>,
        mask: &Mask<'c>,
    ) -> bool {
        let analysis = self.analysis;
        let Some(block) = analysis.plan.block_of_store(inst) else {
            let is_down = analysis.plan.down.contains(&std::ptr::from_ref(inst));
            return is_down && self.store_down(inst, t, value, mask);
        };
        let first = std::ptr::from_ref(block.accesses()[0].0);
        if std::ptr::eq(inst, first) {
            let all = self.can_store(block, t, mask);
            let behind = &mut self.chunk().behind;
            behind.remove(&first);
            if all {
                behind.insert(first, Vec::new());
            }
        }
        let Some(values) = self.chunk().behind.get_mut(&first) else {
            return false;
        };
        values.push(value.clone());
        let count = values.len();
        if count == block.accesses().len() {
            let values = self.chunk().behind.remove(&first).unwrap_or_default();
            for u in 0..self.shape.parts() as usize {
                self.store_columns(t, u, block, &values);
            }
        }
        true
    }

    /// Whether all lanes make all stores of a block, and that is worth it. The target is the first one's.
    fn can_store(&self, block: &Block<'k>, t: &Target<'c>, mask: &Mask<'c>) -> bool {
        let span = block.span();
        let far = span >= LEAST_STORES_APART && span.is_multiple_of(2);
        let fits = |u: usize| match t.index.part(0, u) {
            Part::Vector(_) => far,
            Part::Affine { stride, .. } => {
                is_side_by_side(stride, span) || far && stride.unsigned_abs() >= span.into()
            }
            Part::Scalar(_) => false,
        };
        self.chunk_ref().fast
            && *mask == Mask::All
            && self.is_simple(t)
            && (block.accesses().iter()).all(|(store, _)| self.proved(store).is_some())
            && (0..self.shape.parts() as usize).all(fits)
    }

    /// Writes the elements of a block, for part `u`: the values of its stores in their order. The target is the last
    /// one's.
    fn store_columns(&self, t: &Target<'c>, u: usize, block: &Block<'k>, values: &[Parts<'c>]) {
        let e = &self.e;
        let (width, span) = (self.shape.width, block.span());
        let stores = block.accesses();
        let own = stores.last().map_or(0, |(_, at)| *at);
        let mut columns = vec![e.vector_type(t.scalar, width).get_poison(); span as usize];
        for ((_, at), value) in stores.iter().zip(values) {
            let vector = e.vector(value.part(0, u), width);
            columns[*at as usize] = e.in_memory(t.scalar, vector.into()).into_vector_value();
        }
        let align = t.scalar.size_bytes() as u32;
        let lanes = self.lane_pointers(t, u);
        if let Part::Affine { stride, .. } = t.index.part(0, u)
            && is_side_by_side(stride, span)
        {
            let to = e.byte_offset(lanes[0], self.bytes_between(t, own, 0));
            e.write_together(t.scalar, &columns, |bytes, vector| {
                e.store(vector.into(), e.byte_offset(to, e.i64(bytes)), align);
            });
            return;
        }
        let mut first = 0;
        while first < span {
            let square = 1 << (span - first).min(width).ilog2();
            let rows = &columns[first as usize..(first + square) as usize];
            let behind = self.bytes_between(t, own, first);
            self.store_rows(t, &lanes, rows.to_vec(), behind);
            first += square;
        }
    }

    /// Whether elements of a target are scalars that an index of its own counts.
    fn is_simple(&self, t: &Target<'c>) -> bool {
        t.components == 1
            && t.scale == 1
            && t.element_bytes == t.scalar.size_bytes()
            && t.index_scalar.bits() >= 32
            && self.shape.width.is_power_of_two()
    }

    /// The addresses of a target's lanes, which differ.
    fn lane_pointers(&self, t: &Target<'c>, u: usize) -> Vec<PointerValue<'c>> {
        let e = &self.e;
        if let Some(apart) = self.apart(t, u, 0) {
            return self.pointers_apart(&apart);
        }
        let Spot::Lanes(pointers, _) = self.spot(t, u, 0, true) else {
            unreachable!("lanes differ");
        };
        (0..self.shape.width)
            .map(|lane| {
                let lane = e.builder.build_extract_element(pointers, e.i32(lane), "");
                lane.expect(BUILT).into_pointer_value()
            })
            .collect()
    }

    fn bytes_between(&self, t: &Target<'c>, from: u32, to: u32) -> IntValue<'c> {
        let elements = i64::from(to) - i64::from(from);
        self.e.i64((elements * t.scalar.size_bytes() as i64) as u64)
    }

    /// As many vectors as rows are long: the first elements of all rows, the second, and so on.
    fn transposed(&self, rows: &[VectorValue<'c>], square: u32) -> Vec<VectorValue<'c>> {
        let e = &self.e;
        // Squares side by side: the first has the first rows.
        let side_by_side = (0..square).map(|row| {
            let own = rows.iter().skip(row as usize).step_by(square as usize);
            e.join(&own.copied().collect::<Vec<_>>())
        });
        self.transposed_squares(side_by_side.collect(), square)
    }

    /// Squares side by side, each transposed.
    fn transposed_squares(&self, rows: Vec<VectorValue<'c>>, square: u32) -> Vec<VectorValue<'c>> {
        let e = &self.e;
        let lanes = rows[0].get_type().get_size();
        let mut now = rows;
        let mut by = 1;
        while by < square {
            for upper in (0..square).filter(|row| row & by == 0) {
                let [a, b] = [upper, upper + by].map(|row| now[row as usize]);
                let right = |lane: u32| lane & by != 0;
                let first = (0..lanes).map(|l| if right(l) { lanes + l - by } else { l });
                now[upper as usize] = e.lanes_of(a, Some(b), first);
                let second = (0..lanes).map(|l| if right(l) { lanes + l } else { l + by });
                now[(upper + by) as usize] = e.lanes_of(a, Some(b), second);
            }
            by *= 2;
        }
        now
    }
}
