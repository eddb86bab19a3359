//! Copies: by each thread for itself, and async ones by a simdgroup.
//!
//! An async copy moves its data when it is waited for, or when its threadgroup ends; with a seed,
//! by chance already where it is issued. Either is a time at which O5 lets it happen, so a wait that
//! is missing shows in the results, of some seed at least.

use std::ops::Range;

use invar_ir::Diagnostics;

use crate::access::{self, NOWHERE, for_each_lane};
use crate::observe::{self, Kind, Touched};
use crate::program::{Column, Copy, Index, ObjectId, Shape, Slot, Target};
use crate::state::{Pending, Place, Plan, Run, Simdgroup, bytes_of, bytes_of_mut};

/// One row of a copy: consecutive elements.
struct Row {
    destination: i128,
    source: i128,
    /// Those of the run's elements that lie inside the destination.
    inside: Range<i128>,
}

impl Plan {
    fn of(copy: &Copy, simd: &Simdgroup, lane: usize) -> Plan {
        let value = |i: Index| i.scalar.integer(simd.registers[i.column as usize + lane]);
        let (destination_row, source_row, columns, rows) = match copy.shape {
            Shape::Linear { count } => (0, 0, value(count), 1),
            Shape::Tile {
                destination_row,
                source_row,
                columns,
                rows,
            } => (
                value(destination_row),
                value(source_row),
                value(columns),
                value(rows),
            ),
        };
        Plan {
            destination: value(copy.destination_index),
            source: value(copy.source_index),
            destination_row,
            source_row,
            columns: columns.max(0),
            rows: rows.max(0),
        }
    }

    /// Run `row`. A product that no `i128` holds is far outside every object either way.
    fn run(&self, row: i128, destination_length: u64) -> Row {
        let start = |first: i128, stride: i128| first.saturating_add(row.saturating_mul(stride));
        let destination = start(self.destination, self.destination_row);
        let from = destination.saturating_neg().max(0).min(self.columns);
        let to = i128::from(destination_length).saturating_sub(destination);
        Row {
            destination,
            source: start(self.source, self.source_row),
            inside: from..to.clamp(from, self.columns),
        }
    }

    /// The rows that may have elements in an object of this length, where they begin at `first` and each
    /// `stride` behind the one before. As long as a copy may be, there are few, unless the stride is 0.
    fn rows_near(&self, first: i128, stride: i128, length: u64) -> Range<i128> {
        let length = i128::from(length);
        let up = |n: i128, by: i128| n.div_euclid(by) + i128::from(n.rem_euclid(by) != 0);
        // -columns < first + row * stride < length
        let (from, to) = match stride {
            0 if first > -self.columns && first < length => (0, self.rows),
            0 => (0, 0),
            1.. => (
                (-self.columns - first).div_euclid(stride) + 1,
                up(length - first, stride),
            ),
            ..0 => (
                (first - length).div_euclid(-stride) + 1,
                up(first + self.columns, -stride),
            ),
        };
        let from = from.clamp(0, self.rows);
        from..to.clamp(from, self.rows)
    }

    /// Where the rows end that are like `row` for who looks at where they lie, if these are the lengths of the
    /// destination and of the source: those out of bounds on the same side, and those that are one and the same.
    fn alike_until(&self, row: i128, [destination, source]: [u64; 2]) -> i128 {
        let outside = |near: Range<i128>| match row {
            _before if row < near.start => near.start,
            _behind if row >= near.end => self.rows,
            _inside => row + 1,
        };
        if self.destination_row != 0 {
            outside(self.rows_near(self.destination, self.destination_row, destination))
        } else if self.source_row != 0 {
            outside(self.rows_near(self.source, self.source_row, source))
        } else {
            self.rows
        }
    }
}

/// The part of `start + inside` that lies in `0..length`.
fn bound(start: i128, inside: &Range<i128>, length: u64) -> Range<u64> {
    let length = i128::from(length);
    let from = start.saturating_add(inside.start).clamp(0, length);
    let to = start.saturating_add(inside.end).clamp(from, length);
    from as u64..to as u64
}

impl Run<'_, '_, '_> {
    /// Where an object's memory begins for a lane.
    fn base(&self, object: ObjectId, lane: usize) -> u64 {
        match self.program.objects[object as usize].slot {
            Slot::Thread { offset, .. } => offset + lane as u64 * self.program.thread_bytes,
            Slot::Argument(_) | Slot::Constant(_) | Slot::Threadgroup(_) => 0,
        }
    }

    fn show_copy_outside(
        &mut self,
        group: &Place,
        simd: &Simdgroup,
        copy: &Copy,
        load: bool,
        (lane, count): (u32, u64),
        index: i128,
    ) {
        let object = if load { copy.source } else { copy.destination };
        let event = observe::OutOfBounds {
            who: group.who(simd),
            site: copy.site,
            object: Some(object),
            load,
            lane,
            lanes: 1 << lane,
            count,
            index,
            length: self.lengths[object as usize],
            what: "element",
            within: None,
        };
        for observer in self.observers.iter_mut() {
            observer.out_of_bounds(&event);
        }
    }

    /// The first element of a run that is out of bounds, in the destination and in the source; `times` is the
    /// lane, and how many runs there are like this one.
    fn show_run_outside(
        &mut self,
        group: &Place,
        simd: &Simdgroup,
        copy: &Copy,
        (run, columns): (&Row, i128),
        times: (u32, u64),
    ) {
        if columns > 0 && run.inside.start > 0 {
            self.show_copy_outside(group, simd, copy, false, times, run.destination);
        } else if run.inside.end < columns {
            let index = run.destination.saturating_add(run.inside.end);
            self.show_copy_outside(group, simd, copy, false, times, index);
        }
        if run.inside.is_empty() {
            return;
        }
        let length = i128::from(self.lengths[copy.source as usize]);
        let first = run.source.saturating_add(run.inside.start);
        let end = run.source.saturating_add(run.inside.end);
        if first < 0 || first >= length {
            self.show_copy_outside(group, simd, copy, true, times, first);
        } else if end > length {
            self.show_copy_outside(group, simd, copy, true, times, length);
        }
    }

    /// `copy`: each thread copies its elements in the order of their indices.
    pub(crate) fn copy_by_threads(
        &mut self,
        group: &mut Place,
        simd: &mut Simdgroup,
        copy: &Copy,
        at: Target,
    ) -> Result<(), Diagnostics> {
        let size = self.program.simdgroup_size as usize;
        let length = self.lengths[copy.destination as usize];
        let plan = |simd: &Simdgroup, lane| Plan::of(copy, simd, lane);
        let mut runs: Vec<Option<Row>> = (0..size).map(|_| None).collect();
        let mut iterations = 0;
        for_each_lane(simd.mask, |lane| {
            let run = plan(simd, lane).run(0, length);
            iterations = iterations.max(run.inside.end - run.inside.start);
            runs[lane] = Some(run);
        });
        if self.observed() {
            for (lane, run) in runs.iter().enumerate() {
                if let Some(run) = run {
                    let columns = plan(simd, lane).columns;
                    self.show_run_outside(group, simd, copy, (run, columns), (lane as u32, 1));
                }
            }
        }
        let locations = self.program.objects[copy.source as usize].locations.clone();
        let mut values = vec![0; size * locations.len()];
        for iteration in 0..iterations {
            self.step(1, at)?;
            let element = |start: fn(&Row) -> i128, run: &Option<Row>| {
                let run = run.as_ref()?;
                let i = run.inside.start + iteration;
                (i < run.inside.end).then(|| start(run).saturating_add(i))
            };
            self.address(copy.source, |lane| element(|r| r.source, &runs[lane]));
            let slot = self.program.objects[copy.source as usize].slot;
            let thread = &simd.thread_memory;
            let memory = bytes_of(slot, self.program, self.args, &group.memory, thread);
            for (out, (offset, scalar)) in values.chunks_mut(size).zip(&locations) {
                access::gather(memory, &self.addresses.bytes, *offset, *scalar, out);
            }
            self.show_copy(group, simd, copy, Kind::Read, &[]);
            self.address(copy.destination, |lane| {
                element(|r| r.destination, &runs[lane])
            });
            let slot = self.program.objects[copy.destination as usize].slot;
            let memory = bytes_of_mut(slot, self.args, &mut group.memory, &mut simd.thread_memory);
            let order = &self.orders[0];
            let unchanged: Vec<u128> = values
                .chunks(size)
                .zip(&locations)
                .map(|(values, (offset, scalar))| {
                    let addresses = &self.addresses.bytes;
                    let same =
                        access::scatter_watched(memory, addresses, *offset, *scalar, values, order);
                    let (changed, bytes) = (simd.mask & !same, scalar.size_bytes());
                    self.changes
                        .note_lanes(slot, changed, addresses, *offset, bytes);
                    same
                })
                .collect();
            self.show_copy(group, simd, copy, Kind::Write, &unchanged);
        }
        Ok(())
    }

    /// Sets the addresses of an object's elements, a lane each.
    fn address(&mut self, object: ObjectId, element: impl Fn(usize) -> Option<i128>) {
        let length = i128::from(self.lengths[object as usize]);
        let about = &self.program.objects[object as usize];
        for lane in 0..self.program.simdgroup_size as usize {
            let inside = element(lane).filter(|e| (0..length).contains(e));
            self.addresses.bytes[lane] = inside.map_or(NOWHERE, |e| {
                self.base(object, lane) + e as u64 * about.element_bytes
            });
            self.addresses.locations[lane] =
                inside.map_or(0, |e| e as u64 * about.element_locations);
        }
    }

    fn show_copy(
        &mut self,
        group: &Place,
        simd: &Simdgroup,
        copy: &Copy,
        kind: Kind,
        unchanged: &[u128],
    ) {
        let object = if kind == Kind::Read {
            copy.source
        } else {
            copy.destination
        };
        let lanes = self.addresses.present();
        if lanes == 0 || !self.watched[object as usize] {
            return;
        }
        let event = observe::Access {
            who: group.who(simd),
            site: copy.site,
            object,
            kind,
            lanes,
            locations: &self.addresses.locations,
            width: self.program.objects[object as usize].element_locations as u32,
            order: &self.orders[0],
            unchanged,
        };
        for observer in self.observers.iter_mut() {
            observer.access(&event);
        }
    }

    /// Starts an async copy.
    pub(crate) fn issue(
        &mut self,
        group: &mut Place,
        simd: &mut Simdgroup,
        copy: &Copy,
        event: Column,
        at: Target,
    ) -> Result<(), Diagnostics> {
        self.copies += 1;
        let id = self.copies;
        let size = self.program.simdgroup_size as usize;
        simd.registers[event as usize..event as usize + size].fill(id);
        let plan = Plan::of(copy, simd, simd.mask.trailing_zeros() as usize);
        if self.observed() {
            self.show_issue(group, simd, copy, &plan, (id, at))?;
        }
        let mut pending = Pending {
            id,
            copy: *copy,
            plan,
            moved: false,
        };
        if self.options.seed != 0 && self.random.flip() {
            self.transfer(group, simd, &pending, at)?;
            pending.moved = true;
        }
        simd.copies.push(pending);
        Ok(())
    }

    fn show_issue(
        &mut self,
        group: &Place,
        simd: &Simdgroup,
        copy: &Copy,
        plan: &Plan,
        (id, at): (u64, Target),
    ) -> Result<(), Diagnostics> {
        let lengths = [copy.destination, copy.source].map(|o| self.lengths[o as usize]);
        let lane = simd.mask.trailing_zeros();
        let mut ranges: [Vec<Range<u64>>; 2] = Default::default();
        let (mut row, mut alike_until) = (0, 0);
        while row < plan.rows {
            self.step(1, at)?;
            let run = plan.run(row, lengths[0]);
            // Of rows that are alike, the second stands for all others.
            let times = if row < alike_until {
                alike_until - row
            } else {
                alike_until = plan.alike_until(row, lengths);
                1
            };
            let count = u64::try_from(times).unwrap_or(u64::MAX);
            self.show_run_outside(group, simd, copy, (&run, plan.columns), (lane, count));
            let parts = [
                (
                    copy.destination,
                    bound(run.destination, &run.inside, lengths[0]),
                ),
                (copy.source, bound(run.source, &run.inside, lengths[1])),
            ];
            for (list, (object, elements)) in ranges.iter_mut().zip(parts) {
                let each = self.program.objects[object as usize].element_locations;
                let range = elements.start * each..elements.end * each;
                // Of rows that a stride of 0 repeats, two show that rows meet.
                let again = list
                    .iter()
                    .rev()
                    .take_while(|r| **r == range)
                    .take(2)
                    .count();
                if !range.is_empty() && again < 2 {
                    list.push(range);
                }
            }
            row += times;
        }
        let [destination, source] = &ranges;
        let event = observe::AsyncCopy {
            who: group.who(simd),
            site: copy.site,
            copy: id,
            source: Touched {
                object: copy.source,
                ranges: source,
            },
            destination: Touched {
                object: copy.destination,
                ranges: destination,
            },
        };
        for observer in self.observers.iter_mut() {
            observer.issue(&event);
        }
        Ok(())
    }

    /// Finishes the copies that events name, in the order in which they were issued.
    pub(crate) fn wait(
        &mut self,
        group: &mut Place,
        simd: &mut Simdgroup,
        events: &[Column],
        at: Target,
    ) -> Result<(), Diagnostics> {
        let mut ids: Vec<u64> = Vec::new();
        for event in events {
            for_each_lane(simd.mask, |lane| {
                let id = simd.registers[*event as usize + lane];
                if !ids.contains(&id) {
                    ids.push(id);
                }
            });
        }
        let (due, rest): (Vec<_>, Vec<_>) =
            simd.copies.iter().partition(|copy| ids.contains(&copy.id));
        simd.copies = rest;
        for pending in due {
            if !pending.moved {
                self.transfer(group, simd, &pending, at)?;
            }
            let who = group.who(simd);
            for observer in self.observers.iter_mut() {
                observer.complete(who, pending.id);
            }
        }
        Ok(())
    }

    /// Finishes what was never waited for: the threadgroup ends.
    pub(crate) fn finish_copies(
        &mut self,
        group: &mut Place,
        simd: &mut Simdgroup,
    ) -> Result<(), Diagnostics> {
        let who = group.who(simd);
        for pending in std::mem::take(&mut simd.copies) {
            if !pending.moved {
                self.transfer(group, simd, &pending, simd.pc.saturating_sub(1))?;
            }
            for observer in self.observers.iter_mut() {
                observer.never_waited(who, pending.copy.site);
            }
        }
        Ok(())
    }

    /// Moves a copy's data.
    fn transfer(
        &mut self,
        group: &mut Place,
        simd: &mut Simdgroup,
        pending: &Pending,
        at: Target,
    ) -> Result<(), Diagnostics> {
        let Pending { copy, plan, .. } = pending;
        let [to, from] = [copy.destination, copy.source].map(|o| &self.program.objects[o as usize]);
        let lengths = [copy.destination, copy.source].map(|o| self.lengths[o as usize]);
        let size = u64::from(self.program.simdgroup_size);
        let mut values = vec![0; from.locations.len()];
        let mut rows = plan.rows_near(plan.destination, plan.destination_row, lengths[0]);
        if plan.destination_row == 0 && copy.destination != copy.source {
            // Each writes over all of the one before.
            rows.start = rows.start.max(rows.end - 1);
        }
        for row in rows {
            let run = plan.run(row, lengths[0]);
            self.step(1 + (run.inside.end - run.inside.start) as u64 / size, at)?;
            for i in run.inside {
                let source = run.source.saturating_add(i);
                let source = (0..i128::from(lengths[1]))
                    .contains(&source)
                    .then_some(source);
                let address = source.map_or(NOWHERE, |e| e as u64 * from.element_bytes);
                let memory = bytes_of(
                    from.slot,
                    self.program,
                    self.args,
                    &group.memory,
                    &simd.thread_memory,
                );
                for (value, (offset, scalar)) in values.iter_mut().zip(&from.locations) {
                    *value = access::read(memory, address.saturating_add(*offset), *scalar);
                }
                let address = (run.destination + i) as u64 * to.element_bytes;
                self.changes.note(to.slot, address, to.element_bytes);
                let memory = bytes_of_mut(
                    to.slot,
                    self.args,
                    &mut group.memory,
                    &mut simd.thread_memory,
                );
                for (value, (offset, scalar)) in values.iter().zip(&to.locations) {
                    access::write(memory, address + offset, *scalar, *value);
                }
            }
        }
        Ok(())
    }
}
