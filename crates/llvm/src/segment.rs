//! Segments: loops over the chunks of a threadgroup.
//!
//! The body of the loop is made twice: for full chunks, without a mask, and for any chunk, with one and
//! in pieces, which is less code.
//! What is computed lane by lane for the whole chunk is in `control.rs` (branches), `loops.rs`, `instructions.rs`
//! (operations) and `memory.rs`; what is known of a segment before, in `segments.rs`.

use std::collections::HashMap;

use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::values::{IntValue, PhiValue, PointerValue};
use invar_codegen::analysis::lanes::{Positions, Shape};
use invar_ir::Inst;
use invar_ir::inst::{InstKind, Value};

use crate::cold_paths::ColdPath;
use crate::emit::BUILT;
use crate::function::FunctionLowering;
use crate::neighbour_rows::tells_rows;
use crate::plan::{Home, holds_masked_loop};
use crate::segments::{Work, conditions, loops};
use crate::sides::Side;
use crate::state::Chunk;
use crate::value::{Mask, Parts};

/// Which chunks code is made for.
#[derive(Clone, Copy)]
enum Way<'c> {
    /// Full ones. Where the code for any chunk begins, if there is some.
    Full(Option<BasicBlock<'c>>),
    Any,
}

/// The row that a chunk is in.
#[derive(Clone, Copy, Default)]
struct RowOfChunks<'c> {
    /// Where it ends, if everything in it is proved.
    full_x: Option<IntValue<'c>>,
    /// Where it ends, and where to go then, if that is still to be tested.
    until: Option<(IntValue<'c>, BasicBlock<'c>)>,
    /// Where its last full chunk begins, and whether there is one: it may reach back into the one before.
    again: Option<(IntValue<'c>, IntValue<'c>)>,
}

/// A loop in steps.
struct Counted<'c> {
    head: BasicBlock<'c>,
    exit: BasicBlock<'c>,
    phi: PhiValue<'c>,
    step: u32,
}

impl<'c, 'k> FunctionLowering<'c, 'k> {
    fn begin(&self, end: IntValue<'c>, step: u32) -> (Counted<'c>, IntValue<'c>) {
        self.begin_side(
            Side {
                low: self.e.i32(0),
                high: end,
            },
            step,
        )
    }

    fn begin_side(&self, side: Side<'c>, step: u32) -> (Counted<'c>, IntValue<'c>) {
        let (counted, index) = self.begin_untested(side.low, step);
        self.test((side.high, counted.exit), index);
        (counted, index)
    }

    /// Begins a loop in which whether there is more to do is still to be tested.
    fn begin_untested(&self, low: IntValue<'c>, step: u32) -> (Counted<'c>, IntValue<'c>) {
        let e = &self.e;
        let before = e.here();
        let head = e.block("chunks");
        let exit = e.block("chunks.end");
        e.branch(head);
        e.go(head);
        let ty = e.context.i32_type();
        let phi = e.builder.build_phi(ty, "").expect(BUILT);
        phi.add_incoming(&[(&low, before)]);
        let counted = Counted {
            head,
            exit,
            phi,
            step,
        };
        (counted, phi.as_basic_value().into_int_value())
    }

    /// Leaves a loop unless there is more to do.
    fn test(&self, (end, exit): (IntValue<'c>, BasicBlock<'c>), index: IntValue<'c>) {
        let e = &self.e;
        let body = e.block("chunk");
        let more = e.compare(IntPredicate::ULT, index, end);
        e.branch_if(more, body, exit);
        e.go(body);
    }

    fn finish(&self, counted: &Counted<'c>) {
        let e = &self.e;
        let index = counted.phi.as_basic_value().into_int_value();
        let next = e.add(index, e.i32(counted.step));
        counted.phi.add_incoming(&[(&next, e.here())]);
        e.branch(counted.head);
        e.go(counted.exit);
    }

    /// Makes a loop over the chunks of the threadgroup.
    pub fn emit_segment(&mut self, work: Work<'_, 'k>) {
        if let Work::Run(insts) = work {
            for inst in insts {
                if self.analysis.plan.is_hoisted(inst) {
                    self.hoisted(inst);
                }
            }
            if insts.iter().all(|inst| self.analysis.plan.is_hoisted(inst)) {
                return;
            }
        }
        let limit = match work {
            Work::Run(insts) => self.limit(insts),
            Work::Assign(_) => None,
        };
        self.segment.of_first_threads = limit.is_some();
        self.shape = self.analysis.segment_shape(work, limit.is_some());
        let shape = self.shape;
        let under = match work {
            Work::Run(insts) if self.analysis.begins_anywhere && limit.is_none() => {
                self.conditions(insts)
            }
            Work::Run(_) | Work::Assign(_) => None,
        };
        let (proved, places) = match work {
            Work::Run(insts) => self.guards(insts, &under.unwrap_or_default()),
            Work::Assign(_) => (None, [None; 3]),
        };
        let e = &self.e;
        let limited = |all: IntValue<'c>| limit.map_or(all, |limit| e.smaller(limit, all));
        let one_chunk = e.i32(shape.lanes());
        let chunk_of = |n: IntValue<'c>, lanes: u32| e.divide(n, e.i32(lanes));
        let zero = e.i32(0);
        // A threadgroup that one chunk holds needs no loop, unless there may be nothing to do.
        let is_one = |dim: usize, span: u32| limit.is_none() && self.analysis.spans(dim, span);
        if shape.linear {
            let counted = (!self.analysis.is_one_chunk(shape) || limit.is_some())
                .then(|| self.begin(limited(self.group.threads), shape.lanes()));
            let number = counted.as_ref().map_or(zero, |c| c.1);
            let e = &self.e;
            let end = e.add(number, one_chunk);
            let full = e.compare(IntPredicate::ULE, end, self.group.threads);
            let [sx, sy, sz] = self.group.size;
            let one = |n: IntValue<'c>| n.get_zero_extended_constant() == Some(1);
            let (at, in_row) = if one(sy) && one(sz) {
                ([number, zero, zero], None)
            } else {
                let row = e.divide(number, sx);
                let x = e.remainder(number, sx);
                let at = [x, e.remainder(row, sy), e.divide(row, sy)];
                let fits = e.compare(IntPredicate::ULE, e.add(x, one_chunk), sx);
                (at, Some(fits))
            };
            let all = self.analysis.full_shape.lanes();
            let index = chunk_of(number, all);
            let part = chunk_of(e.remainder(number, e.i32(all)), shape.width);
            let full = in_row.map_or(full, |fits| e.and(full, fits));
            let memory = self.memory_of(index, part);
            let full = proved.map_or(full, |p| e.and(full, p));
            let row_of = RowOfChunks::default();
            self.emit_full_and_masked(work, full, row_of, at, number, memory, in_row.is_some());
            if let Some((counted, _)) = counted {
                self.finish(&counted);
            }
            self.shape = self.analysis.full_shape;
            return;
        }
        let [sx, sy, _] = self.group.size;
        let span_x = shape.along * shape.width;
        let sides = self.sides(places, proved);
        // Chunks reach back only where conditions leave threads out, whom masked code would be for.
        let reaches_back = self.analysis.may_be_repeated && sides.iter().any(Option::is_some);
        let [of_x, of_y, of_z] = [0, 1, 2].map(|dim| {
            sides[dim].unwrap_or(Side {
                low: zero,
                high: self.group.size[dim],
            })
        });
        // Where nothing is proved, no chunk is full: one comparison tells both.
        let full_x = proved.map_or(of_x.high, |proved| {
            e.select(proved.into(), of_x.high.into(), zero.into())
                .into_int_value()
        });
        let planes = (!self.analysis.spans(2, 1)).then(|| self.begin_side(of_z, 1));
        let rows = (!self.analysis.spans(1, shape.rows)).then(|| {
            let (counted, y) = self.begin_side(of_y, shape.rows);
            let y = if reaches_back {
                self.back(y, of_y, shape.rows)
            } else {
                y
            };
            (counted, y)
        });
        // A full chunk is one more: only where one is not full it is asked whether the row has ended.
        let late = self.analysis.has_fast() && limit.is_none() && matches!(work, Work::Run(_));
        let columns = (!is_one(0, span_x)).then(|| {
            if late {
                self.begin_untested(of_x.low, span_x)
            } else {
                self.begin(limited(sx), span_x)
            }
        });
        let until =
            (columns.as_ref().filter(|_| late)).map(|(counted, _)| (of_x.high, counted.exit));
        let e = &self.e;
        let [z, y, x] = [&planes, &rows, &columns].map(|c| c.as_ref().map_or(zero, |c| c.1));
        let row = e.add(e.mul(z, sy), y);
        let number = e.add(e.mul(row, sx), x);
        let span = e.i32(span_x);
        let mut full = e.compare(IntPredicate::ULE, e.add(x, span), full_x);
        let last_x = e.sub(full_x, span);
        let mut again = e.compare(IntPredicate::SGE, last_x, of_x.low);
        if shape.rows > 1 {
            let last = e.add(y, e.i32(shape.rows));
            let fits = e.compare(IntPredicate::ULE, last, of_y.high);
            (full, again) = (e.and(full, fits), e.and(again, fits));
        }
        let again = (reaches_back && until.is_some()).then_some((last_x, again));
        let up = |n: IntValue<'c>, by: u32| {
            let by = e.i32(by);
            e.divide(e.add(n, e.sub(by, e.i32(1))), by)
        };
        let memory = if self.analysis.layout.size > 0 {
            let all = self.analysis.full_shape.along * shape.width;
            let rows = up(sy, shape.rows);
            let row = e.add(e.mul(z, rows), e.divide(y, e.i32(shape.rows)));
            let index = e.add(e.mul(row, up(sx, all)), chunk_of(x, all));
            let part = chunk_of(e.remainder(x, e.i32(all)), shape.width);
            self.memory_of(index, part)
        } else {
            [self.launch.chunks; 2]
        };
        let row_of = RowOfChunks {
            full_x: Some(full_x),
            until,
            again,
        };
        self.emit_full_and_masked(work, full, row_of, [x, y, z], number, memory, false);
        for counted in [columns, rows, planes].into_iter().flatten() {
            self.finish(&counted.0);
        }
        self.shape = self.analysis.full_shape;
    }

    /// The memory of a piece that begins with a vector of a chunk, and that of the chunk.
    fn memory_of(&self, index: IntValue<'c>, part: IntValue<'c>) -> [PointerValue<'c>; 2] {
        let e = &self.e;
        let at = |n: IntValue<'c>, bytes: u64| e.mul(e.widen(n), e.i64(bytes));
        let whole = e.byte_offset(self.launch.chunks, at(index, self.analysis.layout.size));
        [
            e.byte_offset(whole, at(part, self.analysis.layout.part_bytes)),
            whole,
        ]
    }

    /// How many of the first threads do anything in a segment: what has an effect stands under conditions
    /// that tell them by their number.
    fn limit(&self, insts: &'k [Inst]) -> Option<IntValue<'c>> {
        let one = |n: &IntValue<'c>| n.get_zero_extended_constant() == Some(1);
        let in_line = self.group.size[1..].iter().all(one);
        let from_slot = |v: &Value| self.analysis.plan.home(*v) == Home::Slot;
        let in_variables = self.analysis.slots_are_variables
            && self.analysis.plan.inputs(insts).iter().any(from_slot);
        if !in_line || self.analysis.layout.returned.is_some() || in_variables {
            return None;
        }
        let mut limit: Option<IntValue<'c>> = None;
        for condition in self.conditions(insts)? {
            let own = self.first_threads(condition)?;
            limit = Some(limit.map_or(own, |l| {
                let more = self.e.compare(IntPredicate::UGT, l, own);
                self.e
                    .select(more.into(), l.into(), own.into())
                    .into_int_value()
            }));
        }
        limit
    }

    /// Makes a chunk's code for full chunks in which everything is proved, and for any; before that, where
    /// its row ends, if that is still to be tested.
    #[expect(clippy::too_many_arguments, reason = "where the chunk is")]
    fn emit_full_and_masked(
        &mut self,
        work: Work<'_, 'k>,
        full: IntValue<'c>,
        row_of: RowOfChunks<'c>,
        at: [IntValue<'c>; 3],
        number: IntValue<'c>,
        memory: [PointerValue<'c>; 2],
        anywhere: bool,
    ) {
        let RowOfChunks {
            full_x,
            mut until,
            again,
        } = row_of;
        let e = &self.e;
        let end = e.block("chunk.end");
        let of_full = if self.shape.linear {
            Positions::InRow
        } else {
            Positions::Rows
        };
        let assigns = matches!(work, Work::Assign(_));
        if assigns && self.analysis.slots_are_variables && !anywhere {
            // Registers change names, those of threads that do not exist too.
            self.emit_chunk(work, Way::Full(None), of_full, at, number, memory, end);
            self.e.go(end);
            return;
        }
        let slow = e.block("chunk.any");
        let with_fast = self.analysis.has_fast();
        self.segment.handover = match work {
            Work::Run(insts) if with_fast => self.handover(insts, slow),
            Work::Run(_) | Work::Assign(_) => None,
        };
        if with_fast {
            let fast = e.block("chunk.full");
            let again = again.filter(|_| self.segment.handover.is_none());
            let (mut at, mut number) = (at, number);
            if let (Some(again), Some(row)) = (again, until.take_if(|_| again.is_some())) {
                let x = self.or_again((full, fast, slow), again, row, at[0]);
                number = self.e.add(self.e.sub(number, at[0]), x);
                at[0] = x;
            } else {
                self.e.branch_mostly(full, fast, slow);
                self.e.go(fast);
            }
            self.emit_chunk(
                work,
                Way::Full(Some(slow)),
                of_full,
                at,
                number,
                memory,
                end,
            );
        } else {
            e.branch(slow);
        }
        self.e.go(slow);
        // Each row ends here, so that this is not put apart.
        if let Some(until) = until {
            self.test(until, at[0]);
        }
        let first = self.e.here();
        let apart = with_fast && !self.segment.of_first_threads;
        self.e.tables.set_apart(apart);
        let positions = match (self.shape.linear, anywhere) {
            (true, true) => Positions::Anywhere,
            (true, false) => Positions::InRow,
            (false, _) => Positions::Rows,
        };
        let (full, piece) = (self.shape, self.analysis.piece_shape(work));
        if piece == full {
            self.emit_chunk(work, Way::Any, positions, at, number, memory, end);
        } else {
            let (before, after) = self.slots_of(work);
            self.move_slots(&before, memory, true);
            self.shape = piece;
            self.segment.of_whole_chunk = self.taken_by_all(work, memory);
            let full_x = full_x.filter(|_| self.has_full_pieces(work));
            self.emit_subchunks(work, full, full_x, positions, at, number, memory);
            self.segment.of_whole_chunk.clear();
            self.shape = full;
            self.move_slots(&after, memory, false);
            self.e.branch(end);
        }
        self.shape = full;
        self.segment.handover = None;
        if apart {
            let back = vec![end, self.blocks.stopped];
            self.cold_paths.push(ColdPath { first, back });
        }
        self.e.tables.set_apart(false);
        self.e.go(end);
    }

    /// Goes to where code for full chunks begins, also with the last chunk that is full instead of one that is not; gives
    /// the place of either there. Where the row ends is tested before.
    fn or_again(
        &self,
        (full, fast, slow): (IntValue<'c>, BasicBlock<'c>, BasicBlock<'c>),
        (last, may): (IntValue<'c>, IntValue<'c>),
        row: (IntValue<'c>, BasicBlock<'c>),
        x: IntValue<'c>,
    ) -> IntValue<'c> {
        let e = &self.e;
        let (first, short) = (e.here(), e.block("chunk.short"));
        e.branch_mostly(full, fast, short);
        e.go(short);
        self.test(row, x);
        let second = e.here();
        e.branch_if(may, fast, slow);
        e.go(fast);
        let phi = e.builder.build_phi(x.get_type(), "").expect(BUILT);
        phi.add_incoming(&[(&x, first), (&last, second)]);
        phi.as_basic_value().into_int_value()
    }

    /// The row in which a block of rows begins, which may reach back where it is the last and would not be full.
    fn back(&self, y: IntValue<'c>, side: Side<'c>, rows: u32) -> IntValue<'c> {
        let e = &self.e;
        let last = e.sub(side.high, e.i32(rows));
        let beyond = e.compare(IntPredicate::SGT, y, last);
        let is_there = e.compare(IntPredicate::SGE, last, side.low);
        let back = e.and(beyond, is_there);
        e.select(back.into(), last.into(), y.into())
            .into_int_value()
    }

    /// The conditions under which all stands that a segment does.
    fn conditions(&self, insts: &'k [Inst]) -> Option<Vec<Value>> {
        let plan = &self.analysis.plan;
        let is_kept = |v: &Value| matches!(plan.home(*v), Home::Slot | Home::Threadgroup);
        conditions(insts, |inst| plan.is_hoisted(inst), is_kept)
    }

    /// The values that a segment takes from slots, and those that it leaves there, where slots are
    /// variables.
    fn slots_of(&self, work: Work<'_, 'k>) -> (Vec<Value>, Vec<Value>) {
        if !self.analysis.slots_are_variables || self.shape != self.analysis.full_shape {
            return Default::default();
        }
        let mut before = self.analysis.taken(work);
        before.retain(|v| self.analysis.plan.home(*v) == Home::Slot);
        (before, self.analysis.left(work))
    }

    /// What the pieces of a chunk take from slots that it has one of: all of them take what was there before the
    /// first, which may leave something else there.
    fn taken_by_all(
        &self,
        work: Work<'_, 'k>,
        [memory, whole]: [PointerValue<'c>; 2],
    ) -> HashMap<Value, Parts<'c>> {
        let read = |v: Value| (v, self.read_slot_in_memory(v, memory, whole));
        let all = self.analysis.taken(work).into_iter();
        all.filter(|v| self.analysis.has_one(*v))
            .map(read)
            .collect()
    }

    /// Moves what is in variables to slots in memory, or back: pieces of a chunk have their parts there.
    fn move_slots(&self, values: &[Value], [memory, whole]: [PointerValue<'c>; 2], out: bool) {
        for value in values {
            if out {
                let parts = self.read_slot(*value, memory, whole);
                self.write_slot_in_memory(*value, &parts, memory, whole);
            } else {
                let parts = self.read_slot_in_memory(*value, memory, whole);
                self.write_slot(*value, &parts);
            }
        }
    }

    /// Whether pieces of which all threads exist have code of their own: the rest of a row of threadgroups would
    /// take several times as long as the others, where threads only go round loops together, and so would chunks at
    /// both ends of every row, of which a condition lets all but a few threads through.
    fn has_full_pieces(&self, work: Work<'_, 'k>) -> bool {
        let Work::Run(insts) = work else {
            return false;
        };
        self.analysis.has_fast()
            && self.segment.handover.is_none()
            && self.analysis.plan.collective.is_empty()
            && (loops(work)
                || tells_rows(self.analysis.kernel) && self.analysis.first_choice(insts).is_some())
            && !insts.iter().any(|i| {
                self.analysis.fast.is_masked(i)
                    || i.kind
                        .regions()
                        .iter()
                        .any(|r| holds_masked_loop(r, &self.analysis.fast))
            })
    }

    /// Goes through a chunk of a shape piece by piece, as far as there are threads. Those of which all exist
    /// and that end before `full_x` have code of their own.
    #[expect(clippy::too_many_arguments, reason = "where the chunk is")]
    fn emit_subchunks(
        &mut self,
        work: Work<'_, 'k>,
        full: Shape,
        full_x: Option<IntValue<'c>>,
        positions: Positions,
        at: [IntValue<'c>; 3],
        number: IntValue<'c>,
        [memory, whole_memory]: [PointerValue<'c>; 2],
    ) {
        let shape = self.shape;
        let span = |shape: Shape| shape.along * shape.width;
        let e = &self.e;
        // Where the chunk ends, or the row, or the threads.
        let left = |first: IntValue<'c>, all: IntValue<'c>, own: u32| {
            e.smaller(e.i32(own), e.sub(all, first))
        };
        let (first, all) = if shape.linear {
            (number, self.group.threads)
        } else {
            (at[0], self.group.size[0])
        };
        let end = left(first, all, span(full));
        let rows = (shape.rows < full.rows).then(|| {
            let end = left(at[1], self.group.size[1], full.rows);
            self.begin(end, shape.rows)
        });
        let columns = (shape.along < full.along).then(|| self.begin(end, span(shape)));
        let e = &self.e;
        let [row, offset] = [&rows, &columns].map(|c| c.as_ref().map_or(e.i32(0), |c| c.1));
        let in_row = e.divide(offset, e.i32(shape.width));
        let row_parts = self.analysis.full_shape.along;
        let part = e.add(e.mul(row, e.i32(row_parts)), in_row);
        if let Some(handover) = &mut self.segment.handover {
            handover.part = part;
        }
        let bytes = e.mul(e.widen(part), e.i64(self.analysis.layout.part_bytes));
        let own_memory = e.byte_offset(memory, bytes);
        let at = match positions {
            Positions::Rows | Positions::InRow => [e.add(at[0], offset), e.add(at[1], row), at[2]],
            // Only its number says where it is.
            Positions::Anywhere => at,
        };
        let before = e.mul(row, self.group.size[0]);
        let number = e.add(e.add(number, before), offset);
        let next = e.block("piece.end");
        let memory = [own_memory, whole_memory];
        if let Some(full_x) = full_x {
            let [full, any] = ["piece.full", "piece.any"].map(|name| e.block(name));
            let ends = |at: IntValue<'c>, by: u32, all: IntValue<'c>| {
                e.compare(IntPredicate::ULE, e.add(at, e.i32(by)), all)
            };
            let in_row = ends(at[0], span(shape), full_x);
            let exists = e.and(in_row, ends(at[1], shape.rows, self.group.size[1]));
            e.branch_if(exists, full, any);
            e.go(full);
            self.emit_chunk(
                work,
                Way::Full(Some(any)),
                positions,
                at,
                number,
                memory,
                next,
            );
            self.e.go(any);
        }
        self.emit_chunk(work, Way::Any, positions, at, number, memory, next);
        self.e.go(next);
        for counted in [columns, rows].into_iter().flatten() {
            self.finish(&counted.0);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "where the chunk is")]
    fn emit_chunk(
        &mut self,
        work: Work<'_, 'k>,
        way: Way<'c>,
        positions: Positions,
        at: [IntValue<'c>; 3],
        number: IntValue<'c>,
        [memory, whole_memory]: [PointerValue<'c>; 2],
        end: BasicBlock<'c>,
    ) {
        let fast = matches!(way, Way::Full(_));
        let retreat = match (way, work) {
            (Way::Full(Some(any)), Work::Run(insts)) => {
                self.analysis.first_choice(insts).map(|key| (key, any))
            }
            (Way::Full(_) | Way::Any, _) => None,
        };
        self.chunk = Some(Chunk {
            values: HashMap::new(),
            fast,
            positions,
            at,
            number,
            memory,
            whole_memory,
            end,
            divergence: 0,
            one_lane: false,
            twice: 0,
            frames: Vec::new(),
            spare_cells: HashMap::new(),
            arrays: HashMap::new(),
            matrices: HashMap::new(),
            stacks: HashMap::new(),
            ahead: HashMap::new(),
            behind: HashMap::new(),
            exist: Mask::All,
            retreat,
        });
        let mask = if fast { Mask::All } else { self.existing() };
        self.chunk().exist = mask.clone();
        if let Mask::Some(lanes) = &mask
            && self.analysis.layout.returned.is_some()
        {
            let here = self.e.block("piece.here");
            let any = self.e.any(lanes);
            self.e.branch_if(any, here, end);
            self.e.go(here);
        }
        self.take_in(&self.analysis.taken(work), &mask);
        match work {
            Work::Run(insts) => {
                let falls = self.sequence(insts, mask);
                if self.e.is_open() {
                    let none = || Mask::Some(self.constant_mask(false));
                    let left = falls.map_or_else(none, |falls| falls.mask);
                    self.keep_returned(&left);
                }
            }
            Work::Assign(pairs) => {
                // All are read before any is written: they may be each other's.
                let sources: Vec<_> = pairs.iter().map(|(_, s)| self.get(*s)).collect();
                for ((target, _), parts) in pairs.iter().zip(sources) {
                    self.write_slot(*target, &parts);
                }
            }
        }
        if self.e.is_open() {
            self.e.branch(end);
        }
        self.chunk = None;
    }

    // ---- values ----

    /// Reads or computes again what the chunk takes from elsewhere.
    fn take_in(&mut self, inputs: &[Value], mask: &Mask<'c>) {
        for value in inputs {
            match self.analysis.plan.home(*value) {
                Home::Slot => {
                    let chunk = self.chunk_ref();
                    let parts = self.read_slot(*value, chunk.memory, chunk.whole_memory);
                    self.chunk().values.insert(*value, parts);
                }
                Home::Rematerialize => {
                    let inst = self.analysis.plan.definitions[value];
                    self.flat(inst, mask);
                }
                Home::Segment | Home::Threadgroup => {}
            }
        }
    }

    // ---- where threads stand ----

    /// A value that is computed again, of the first thread of the threadgroup.
    pub fn rematerialize_for_first_thread(&mut self, value: Value) -> Parts<'c> {
        let zero = self.e.i32(0);
        self.shape = self.analysis.slow_shape;
        self.chunk = Some(Chunk {
            values: HashMap::new(),
            fast: false,
            positions: if self.shape.linear {
                Positions::Anywhere
            } else {
                Positions::Rows
            },
            at: [zero; 3],
            number: zero,
            memory: self.launch.chunks,
            whole_memory: self.launch.chunks,
            end: self.e.here(),
            divergence: 0,
            one_lane: false,
            twice: 0,
            frames: Vec::new(),
            spare_cells: HashMap::new(),
            arrays: HashMap::new(),
            matrices: HashMap::new(),
            stacks: HashMap::new(),
            ahead: HashMap::new(),
            behind: HashMap::new(),
            exist: Mask::All,
            retreat: None,
        });
        let inputs = self.analysis.plan.taken_for([value]);
        self.take_in(&inputs, &Mask::All);
        let parts = self.get(value);
        let parts = self.make_uniform(&parts, &Mask::All);
        self.chunk = None;
        self.shape = self.analysis.full_shape;
        parts
    }

    /// Computes what is the same for all threads, in front of the segment.
    fn hoisted(&mut self, inst: &'k Inst) {
        debug_assert!(self.chunk.is_none());
        debug_assert!(!matches!(inst.kind, InstKind::Store { .. }));
        self.flat(inst, &Mask::All);
    }
}
