//! The function of a kernel: the loop over threadgroups, and what all threads of one go through
//! together.
//!
//! The function is `abi::Entry`. For each threadgroup it zeroes the threadgroup memory whose zeros somebody
//! may see and walks the body: segments become loops over chunks (`segment.rs`), what stands between them
//! plain control flow.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};

use inkwell::IntPredicate;
use inkwell::values::IntValue;
use invar_codegen::analysis::order::LaunchOrder;
use invar_codegen::analysis::zeroing::{Threadgroups, observed};
use invar_ir::inst::{InstKind, Memory, Region, Value};
use invar_ir::{AddressSpace, Inst, Scalar, Scope};

use crate::abi;
use crate::analysis::Analysis;
use crate::emit::{BUILT, Emit};
use crate::function::FunctionLowering;
use crate::object::ALIGN;
use crate::plan::{Home, Item};
use crate::segments::Work;
use crate::state::{Blocks, Grid, Group, Launch, SegmentState, ThreadgroupLoop, ThreadgroupValues};
use crate::sums::Sums;
use crate::tuning::MOST_MERGED_THREADGROUPS;
use crate::value::{Mask, Parts};

impl<'c, 'k> FunctionLowering<'c, 'k> {
    /// Begins the function: reads the launch and ends where the first threadgroup begins.
    pub fn new(e: Emit<'c>, analysis: &'k Analysis<'k>) -> FunctionLowering<'c, 'k> {
        let entry = e.block("entry");
        let start = e.block("start");
        let stopped = e.block("stopped");
        let group_end = e.block("threadgroup.end");
        e.go(start);
        let parameter = |i: u32| e.function.get().get_nth_param(i).expect("four parameters");
        let launch = parameter(0).into_pointer_value();
        let field = |offset: usize| e.byte_offset(launch, e.i64(offset as u64));
        let pointer = |offset: usize| {
            let ty = e.pointer_type().into();
            e.load(ty, field(offset), 8).into_pointer_value()
        };
        let triple = |offset: usize| {
            std::array::from_fn(|d| {
                let ty = e.context.i32_type().into();
                e.load(ty, field(offset + 4 * d), 4).into_int_value()
            })
        };
        let arguments = pointer(std::mem::offset_of!(abi::Launch, arguments));
        let stop = pointer(std::mem::offset_of!(abi::Launch, stop));
        let streamed_at = std::mem::offset_of!(abi::Launch, least_streamed_bytes);
        let least_streamed_bytes = e.load(e.context.i64_type().into(), field(streamed_at), 8);
        let least_streamed_bytes = least_streamed_bytes.into_int_value();
        let grid = Grid {
            threads: triple(std::mem::offset_of!(abi::Launch, threads)),
            threadgroup: match analysis.threadgroup_size {
                Some(size) => size.map(|n| e.i32(n)),
                None => triple(std::mem::offset_of!(abi::Launch, threadgroup)),
            },
            threadgroups: triple(std::mem::offset_of!(abi::Launch, threadgroups)),
        };
        let scratch_pointer = parameter(3).into_pointer_value();
        let zero = e.i32(0);
        let placeholder = Group {
            position: [zero; 3],
            origin: [zero; 3],
            size: [zero; 3],
            threads: zero,
        };
        let mut lowering = FunctionLowering {
            analysis,
            shape: analysis.full_shape,
            blocks: Blocks {
                entry,
                stopped,
                group_end,
                stop,
                budget: scratch_pointer,
            },
            launch: Launch {
                grid,
                objects: HashMap::new(),
                streams: HashMap::new(),
                chunks: scratch_pointer,
            },
            group: placeholder,
            shared: ThreadgroupValues::default(),
            slot_variables: HashMap::new(),
            segment: SegmentState::default(),
            chunk: None,
            entries: None,
            sums: Sums::default(),
            anchors: RefCell::new(Vec::new()),
            edges: Cell::new(0),
            made_twice: 0,
            cold_paths: Vec::new(),
            refused: Vec::new(),
            e,
        };
        lowering.blocks.budget = lowering.alloca(lowering.e.context.i32_type().into(), 4);
        lowering.e.store(zero.into(), lowering.blocks.budget, 4);
        if analysis.slots_are_variables {
            lowering.make_slot_variables();
        }
        lowering.find_objects(arguments, scratch_pointer);
        lowering.find_streams(least_streamed_bytes);
        lowering
    }

    /// Makes the whole function.
    pub fn make(&mut self) {
        let function = self.e.function.get();
        let parameter = |i: u32| function.get_nth_param(i).expect("four parameters");
        let first = parameter(1).into_int_value();
        let count = parameter(2).into_int_value();
        let end = self.e.add(first, count);
        let head = self.e.block("threadgroup");
        let check = self.e.block("threadgroup.check");
        let body = self.e.block("threadgroup.body");
        let done = self.e.block("done");
        let before = self.e.here();
        self.e.branch(head);
        self.e.go(head);
        let i64_type = self.e.context.i64_type();
        let index = self.e.builder.build_phi(i64_type, "").expect(BUILT);
        let group = index.as_basic_value().into_int_value();
        let more = self.e.compare(IntPredicate::ULT, group, end);
        self.e.branch_if(more, check, done);
        self.e.go(check);
        self.branch_if_stopped(body);
        self.e.go(body);
        let count = self.groups_at_once(group, end);
        self.group = self.place_group(group, count);
        self.zero_threadgroup_memory();
        let kernel = self.analysis.kernel;
        if self.collective_region(&kernel.body).is_some() && self.e.is_open() {
            self.e.branch(self.blocks.group_end);
        }
        self.e.go(self.blocks.group_end);
        let next = self.e.add(group, count);
        self.e.branch(head);
        index.add_incoming(&[(&first, before), (&next, self.blocks.group_end)]);
        for (block, result) in [(done, abi::DONE), (self.blocks.stopped, abi::STOPPED)] {
            self.e.go(block);
            self.fence_streams();
            let result = self.e.i32(result);
            self.e.builder.build_return(Some(&result)).expect(BUILT);
        }
        self.e.go(self.blocks.entry);
        let start = self.blocks.entry.get_next_basic_block().expect("the start");
        self.e.branch(start);
    }

    /// How many threadgroups from this one on run as one.
    fn groups_at_once(&self, index: IntValue<'c>, end: IntValue<'c>) -> IntValue<'c> {
        let e = &self.e;
        if !self.analysis.merges {
            return e.i64(1);
        }
        let x = e.widen(self.launch.grid.threadgroups[0]);
        let in_row = e.sub(x, e.remainder(index, x));
        e.smaller(
            e.smaller(in_row, e.sub(end, index)),
            e.i64(MOST_MERGED_THREADGROUPS),
        )
    }

    /// Where so many threadgroups along x are.
    fn place_group(&self, index: IntValue<'c>, count: IntValue<'c>) -> Group<'c> {
        let e = &self.e;
        let narrow = |v: IntValue<'c>| {
            let ty = e.context.i32_type();
            e.builder.build_int_truncate(v, ty, "").expect(BUILT)
        };
        let [x, y, _] = self.launch.grid.threadgroups.map(|n| e.widen(n));
        let (first, second) = if self.analysis.launch_order == LaunchOrder::ColumnMajor {
            (y, x)
        } else {
            (x, y)
        };
        let rest = e.divide(index, first);
        let mut position = [
            narrow(e.remainder(index, first)),
            narrow(e.remainder(rest, second)),
            narrow(e.divide(rest, second)),
        ];
        if self.analysis.launch_order == LaunchOrder::ColumnMajor {
            position.swap(0, 1);
        }
        let origin: [_; 3] =
            std::array::from_fn(|d| e.mul(position[d], self.launch.grid.threadgroup[d]));
        let size: [_; 3] = std::array::from_fn(|d| {
            let full = self.launch.grid.threadgroup[d];
            // A threadgroup of one thread is never smaller.
            if full.get_zero_extended_constant() == Some(1) {
                return full;
            }
            let rest = e.sub(self.launch.grid.threads[d], origin[d]);
            if d == 0 && self.analysis.merges {
                let all = e.mul(e.widen(full), count);
                return narrow(e.smaller(all, e.widen(rest)));
            }
            e.smaller(full, rest)
        });
        Group {
            position,
            origin,
            size,
            threads: e.mul(e.mul(size[0], size[1]), size[2]),
        }
    }

    /// Makes the threadgroup memory zero of which somebody may see that it is (I2): in threadgroups that
    /// are not full more than in full ones.
    fn zero_threadgroup_memory(&self) {
        let e = &self.e;
        let seen = |full: bool| {
            let size = self.analysis.threadgroup_size?;
            let threadgroups = Threadgroups {
                size,
                full,
                simdgroup_size: self.analysis.simdgroup_size,
                // Those of parameters are the launch's.
                lengths: &[],
            };
            Some(observed(
                self.analysis.module,
                self.analysis.kernel,
                &threadgroups,
            ))
        };
        let (always, at_edges) = (seen(true), seen(false));
        let is_in = |set: &Option<BTreeSet<Memory>>, memory: Memory| {
            set.as_ref().is_none_or(|set| set.contains(&memory))
        };
        let mut objects: Vec<(Memory, IntValue<'c>)> = Vec::new();
        for (i, alloc) in self.analysis.kernel.allocs.iter().enumerate() {
            if alloc.space == AddressSpace::Threadgroup {
                // Whole vectors are quicker, and nothing is behind it but a zone.
                let own = self.analysis.threadgroup_array_bytes(i);
                let bytes = match self.analysis.zones.are_there() {
                    true => own,
                    false => own.next_multiple_of(ALIGN),
                };
                let bytes = e.i64(bytes);
                objects.push((Memory::Alloc(i as u32), bytes));
            }
        }
        for (parameter, element_bytes) in &self.analysis.scratch.parameters {
            let memory = Memory::Param(*parameter);
            let bytes = e.mul(self.launch.objects[&memory].length, e.i64(*element_bytes));
            objects.push((memory, bytes));
        }
        let (always, rest): (Vec<_>, Vec<_>) =
            (objects.into_iter()).partition(|(memory, _)| is_in(&always, *memory));
        for (memory, bytes) in always {
            self.e
                .fill_with_zeros(self.launch.objects[&memory].base, bytes);
        }
        let rest: Vec<_> = (rest.into_iter())
            .filter(|(memory, _)| is_in(&at_edges, *memory))
            .collect();
        if !rest.is_empty() {
            let [x, y, z] = self.launch.grid.threadgroup;
            let all = e.mul(e.mul(x, y), z);
            let full = e.compare(IntPredicate::EQ, self.group.threads, all);
            let (edge, on) = (e.block("threadgroup.edge"), e.block("threadgroup.zeroed"));
            e.branch_if(full, on, edge);
            e.go(edge);
            for (memory, bytes) in rest {
                self.e
                    .fill_with_zeros(self.launch.objects[&memory].base, bytes);
            }
            e.branch(on);
            e.go(on);
        }
        if self.analysis.layout.returned.is_some() {
            let chunks = self.chunk_count();
            self.e.fill_with_zeros(
                self.launch.chunks,
                e.mul(chunks, e.i64(self.analysis.layout.size)),
            );
        }
    }

    /// How many chunks this threadgroup has, 64 bits.
    fn chunk_count(&self) -> IntValue<'c> {
        let e = &self.e;
        let up = |n: IntValue<'c>, by: u32| {
            let by = e.i32(by);
            e.widen(e.divide(e.add(n, e.sub(by, e.i32(1))), by))
        };
        if self.shape.linear {
            return up(self.group.threads, self.shape.lanes());
        }
        let [x, y, z] = self.group.size;
        let along = up(x, self.shape.along * self.shape.width);
        e.mul(e.mul(along, up(y, self.shape.rows)), e.widen(z))
    }

    // ---- what all threads go through together ----

    /// Hands values on: each target gets what its source is now.
    fn assign(&mut self, targets: &[Value], sources: &[Value]) {
        let mut shared = Vec::new();
        let mut slots = Vec::new();
        for (target, source) in targets.iter().zip(sources) {
            match self.analysis.plan.home(*target) {
                Home::Threadgroup => {
                    let parts = self.shared_value(*source).expect("one value for all");
                    shared.push((*target, parts));
                }
                Home::Slot => {
                    let slot = |v: &Value| self.analysis.layout.slots.get(v);
                    if slot(source).is_none() || slot(source) != slot(target) {
                        slots.push((*target, *source));
                    }
                }
                // Nothing uses it.
                Home::Segment | Home::Rematerialize => {}
            }
        }
        // What threads keep may come from what is shared: that is written last.
        if !slots.is_empty() {
            self.emit_segment(Work::Assign(&slots));
        }
        for (target, parts) in shared {
            self.share(target, &parts);
        }
    }

    /// The items of a region; `None` if control does not come to its end, else what it yields.
    fn collective_region(&mut self, region: &'k Region) -> Option<Vec<Value>> {
        for item in self.analysis.plan.items(region) {
            match item {
                Item::Segment(insts) => {
                    let ends = matches!(insts[0].kind, InstKind::Return | InstKind::Yield(_));
                    if !ends {
                        self.emit_segment(Work::Run(insts));
                    }
                    match &insts[insts.len() - 1].kind {
                        InstKind::Return => {
                            self.e.branch(self.blocks.group_end);
                            return None;
                        }
                        InstKind::Yield(values) => return Some(values.to_vec()),
                        _flows_on => {}
                    }
                }
                Item::Collective(inst) => match &inst.kind {
                    InstKind::Yield(values) => return Some(values.to_vec()),
                    InstKind::Break(values) => {
                        let frame = self.shared.loops.last().expect("a loop around");
                        let (results, exit) = (frame.results.clone(), frame.exit);
                        self.assign(&results, values);
                        self.e.branch(exit);
                        return None;
                    }
                    InstKind::Continue(values) => {
                        let frame = self.shared.loops.last().expect("a loop around");
                        let (carried, next) = (frame.carried.clone(), frame.next);
                        self.assign(&carried, values);
                        self.e.branch(next);
                        return None;
                    }
                    InstKind::Return => {
                        self.e.branch(self.blocks.group_end);
                        return None;
                    }
                    _flows_on => {
                        self.collective_inst(inst);
                        if !self.e.is_open() {
                            return None;
                        }
                    }
                },
            }
        }
        Some(Vec::new())
    }

    fn collective_inst(&mut self, inst: &'k Inst) {
        match &inst.kind {
            // The worker is one thread of the machine: what came before is done.
            InstKind::Barrier { .. } => {}
            InstKind::AssertUniform { value, scope } => {
                debug_assert!(*scope >= Scope::Threadgroup);
                let parts = match self.shared_value(*value) {
                    Some(parts) => parts,
                    None => self.first_thread(*value),
                };
                self.share(inst.results[0], &parts);
            }
            InstKind::If {
                condition,
                then,
                otherwise,
            } => {
                let condition = self.scalar(*condition).into_int_value();
                let yes = self.e.block("then");
                let no = self.e.block("else");
                let join = self.e.block("join");
                self.e.branch_if(condition, yes, no);
                let mut reached = false;
                for (block, region) in [(yes, then), (no, otherwise)] {
                    self.e.go(block);
                    if let Some(values) = self.collective_region(region) {
                        self.assign(&inst.results, &values);
                        self.e.branch(join);
                        reached = true;
                    }
                }
                self.e.go(join);
                if !reached {
                    self.e.builder.build_unreachable().expect(BUILT);
                }
            }
            InstKind::For {
                lower,
                upper,
                step,
                init,
                body,
            } => {
                let scalar = self
                    .analysis
                    .kernel
                    .ty(*lower)
                    .scalar()
                    .unwrap_or(Scalar::U32);
                let carried = &body.params[1..];
                self.assign(carried, init);
                let index_type = self.e.scalar_type(scalar);
                let index = self.alloca(index_type, 8);
                let bounds = [*lower, *upper, *step].map(|v| self.scalar(v));
                let step_scalar = self.analysis.kernel.ty(*step).scalar().unwrap_or(scalar);
                self.e.store(bounds[0], index, 8);
                let goes = self.e.goes(scalar, step_scalar, bounds).into_int_value();
                let head = self.e.block("for");
                let next = self.e.block("for.next");
                let over = self.e.block("for.over");
                let exit = self.e.block("for.end");
                self.e.branch_if(goes, head, over);
                self.e.go(head);
                let now = self.e.load(index_type, index, 8);
                // The index has no other home: it is this load, in every iteration.
                self.shared
                    .values
                    .insert(body.params[0], Parts::uniform(vec![now]));
                self.shared.loops.push(ThreadgroupLoop {
                    index: Some(body.params[0]),
                    next,
                    exit,
                    carried: carried.to_vec(),
                    results: inst.results.to_vec(),
                });
                if let Some(values) = self.collective_region(body) {
                    self.assign(carried, &values);
                    self.e.branch(next);
                }
                self.shared.loops.pop();
                self.e.go(next);
                self.poll();
                let bounds = [now, bounds[1], bounds[2]];
                let (more, following) = self.e.following(scalar, step_scalar, bounds);
                self.e.store(following, index, 8);
                self.e.branch_if(more.into_int_value(), head, over);
                self.e.go(over);
                self.assign(&inst.results, carried);
                self.e.branch(exit);
                self.e.go(exit);
            }
            InstKind::Loop { init, body } => {
                self.assign(&body.params, init);
                let head = self.e.block("loop");
                let next = self.e.block("loop.next");
                let exit = self.e.block("loop.end");
                self.e.branch(head);
                self.e.go(head);
                self.shared.loops.push(ThreadgroupLoop {
                    index: None,
                    next,
                    exit,
                    carried: body.params.clone(),
                    results: inst.results.to_vec(),
                });
                if let Some(values) = self.collective_region(body) {
                    self.assign(&body.params, &values);
                    self.e.branch(next);
                }
                self.shared.loops.pop();
                self.e.go(next);
                self.poll();
                self.e.branch(head);
                self.e.go(exit);
                // What follows a loop without an end has no values to work with.
                if exit.get_first_use().is_none() {
                    self.close(&[exit]);
                }
            }
            other => unreachable!("`{}` stands in a segment", other.name()),
        }
    }

    /// The value of the first thread, from the first chunk's slot.
    fn first_thread(&mut self, value: Value) -> Parts<'c> {
        if self.analysis.plan.home(value) == Home::Rematerialize {
            // It is computed from positions: those of the first thread.
            return self.rematerialize_for_first_thread(value);
        }
        let stored = self.read_slot(value, self.launch.chunks, self.launch.chunks);
        let components = (0..stored.components())
            .map(|c| {
                let part = [stored.part(c, 0)];
                self.e.first_active(&part, &Mask::All, self.shape.width)
            })
            .collect();
        Parts::uniform(components)
    }
}
