//! Loops inside of a chunk: iterations, with masks where lanes leave at different times.

use inkwell::basic_block::BasicBlock;
use inkwell::values::VectorValue;
use invar_codegen::analysis::lanes::Class;
use invar_ir::inst::{InstKind, Region, Value};
use invar_ir::{Inst, Scalar};

use crate::function::FunctionLowering;
use crate::segments::holds_loop;
use crate::state::{Cells, Frame, FrameMasks};
use crate::value::{Mask, Part, Parts};

/// A counted loop whose code is being made.
pub(crate) struct Counted<'a, 'c> {
    pub inst: &'a Inst,
    pub index: &'a Cells<'c>,
    pub bounds: &'a [Parts<'c>; 3],
    /// The types of the index and the step.
    pub scalars: [Scalar; 2],
    pub carried: &'a [Cells<'c>],
    pub results: &'a [Cells<'c>],
    pub masks: Option<&'a FrameMasks<'c>>,
    pub exit: BasicBlock<'c>,
}

impl<'a, 'c> Counted<'a, 'c> {
    /// The values of [`Counted::state`].
    pub fn values(&self) -> &'a [Value] {
        let InstKind::For { body, .. } = &self.inst.kind else {
            unreachable!("a `for`");
        };
        &body.params
    }

    /// What an iteration hands to the next.
    pub fn state(&self) -> Vec<&'a Cells<'c>> {
        std::iter::once(self.index).chain(self.carried).collect()
    }
}

impl<'c, 'k> FunctionLowering<'c, 'k> {
    pub fn frame(&mut self, inst: &Inst, body: &Region, masked: bool) -> Frame<'c> {
        let carried = inst.carried().iter();
        let carried = carried.map(|v| self.cells_of(*v)).collect();
        let results = inst.results.iter();
        let results = results.map(|v| self.cells_of(*v)).collect();
        let masks = masked.then(|| FrameMasks {
            divergence: self.chunk_ref().divergence + 1,
            continues: body.exits().continues,
            continued: self.mask_cells(),
            left: self.mask_cells(),
        });
        Frame {
            carried,
            results,
            masks,
            next: self.e.block("next"),
            exit: self.e.block("left"),
        }
    }

    /// Runs an iteration: reads what is carried, runs the body, and writes what the next iteration gets. Gives
    /// the lanes of the next iteration, if the loop has masks.
    pub fn iteration(
        &mut self,
        body: &'k Region,
        frame: Frame<'c>,
        first: usize,
        mask: Mask<'c>,
    ) -> Option<Vec<VectorValue<'c>>> {
        let carried = frame.carried.clone();
        let (masks, next) = (frame.masks.clone(), frame.next);
        for (param, cells) in body.params[first..].iter().zip(&carried) {
            let parts = self.read(cells);
            self.define(*param, parts, &mask);
        }
        let continues = body.exits().continues;
        if let Some(masks) = &masks {
            self.write_mask(&masks.continued, &self.constant_mask(false));
        }
        self.chunk().divergence += u32::from(masks.is_some());
        self.chunk().frames.push(frame);
        let falls = self.sequence(&body.insts, mask);
        self.chunk().frames.pop();
        self.chunk().divergence -= u32::from(masks.is_some());
        let fell = masks.as_ref().map(|_| self.mask_cells());
        if let Some(falls) = &falls {
            for (cells, parts) in carried.iter().zip(&falls.values) {
                if masks.is_some() && continues {
                    self.write_lanes(cells, parts, &falls.mask);
                } else {
                    self.write(cells, parts);
                }
            }
        }
        if self.e.is_open() {
            if let Some(fell) = &fell {
                let none = || self.constant_mask(false);
                let lanes = falls.map_or_else(none, |falls| self.lanes(&falls.mask));
                self.write_mask(fell, &lanes);
            }
            self.e.branch(next);
        }
        self.e.go(next);
        let (Some(masks), Some(fell)) = (masks, fell) else {
            return None;
        };
        let cells = fell;
        let fell = self.read_mask(&cells);
        self.free([&cells]);
        if !continues {
            return Some(fell);
        }
        let continued = self.read_mask(&masks.continued);
        let pairs = fell.iter().zip(&continued);
        Some(pairs.map(|(a, b)| self.e.or(*a, *b)).collect())
    }

    /// The results of a loop, and the lanes that come out of it.
    pub fn after(
        &mut self,
        inst: &'k Inst,
        results: &[Cells<'c>],
        left: Option<&Cells<'c>>,
        mask: &Mask<'c>,
    ) -> Mask<'c> {
        for (result, cells) in inst.results.iter().zip(results) {
            let parts = self.read(cells);
            self.define(*result, parts, mask);
        }
        match left {
            Some(left) if inst.exits().returns => Mask::Some(self.read_mask(left)),
            Some(_) | None => mask.clone(),
        }
    }

    /// A `loop`.
    pub fn repeat(&mut self, inst: &'k Inst, mask: &Mask<'c>) -> Mask<'c> {
        let InstKind::Loop { init, body } = &inst.kind else {
            unreachable!("a `loop`");
        };
        let masked = self.is_masked(inst);
        let frame = self.frame(inst, body, masked);
        let (carried, results) = (frame.carried.clone(), frame.results.clone());
        let (masks, exit) = (frame.masks.clone(), frame.exit);
        for (cells, value) in carried.iter().zip(init) {
            let parts = self.get(*value);
            self.write(cells, &parts);
        }
        self.zero(&results);
        let head = self.e.block("loop");
        let live = self.mask_cells();
        if let Some(masks) = &masks {
            self.write_mask(&live, &self.lanes(mask));
            self.write_mask(&masks.left, &self.constant_mask(false));
        }
        self.e.branch(head);
        self.e.go(head);
        self.poll();
        let inside = if masked {
            Mask::Some(self.read_mask(&live))
        } else {
            mask.clone()
        };
        let on = self.iteration(body, frame, 0, inside);
        match on {
            Some(on) => {
                self.write_mask(&live, &on);
                let any = self.e.any(&on);
                self.e.branch_if(any, head, exit);
            }
            None => self.e.branch(head),
        }
        self.e.go(exit);
        let out = self.after(inst, &results, masks.as_ref().map(|m| &m.left), mask);
        self.free(carried.iter().chain(&results).chain([&live]));
        self.free(masks.iter().flat_map(FrameMasks::cells));
        out
    }

    /// A `for`.
    pub fn count(&mut self, inst: &'k Inst, mask: &Mask<'c>) -> Mask<'c> {
        let InstKind::For {
            lower,
            upper,
            step,
            init,
            body,
        } = &inst.kind
        else {
            unreachable!("a `for`");
        };
        let masked = self.is_masked(inst);
        let frame = self.frame(inst, body, masked);
        let (carried, results) = (frame.carried.clone(), frame.results.clone());
        let (masks, exit, next) = (frame.masks.clone(), frame.exit, frame.next);
        let scalar = self
            .analysis
            .kernel
            .ty(*lower)
            .scalar()
            .unwrap_or(Scalar::U32);
        let step_scalar = self.analysis.kernel.ty(*step).scalar().unwrap_or(scalar);
        let index = self.cells_of(body.params[0]);
        let bounds = [*lower, *upper, *step].map(|v| self.get(v));
        self.write(&index, &bounds[0]);
        for (cells, value) in carried.iter().zip(init) {
            let parts = self.get(*value);
            self.write(cells, &parts);
        }
        let head = self.e.block("for");
        let live = self.mask_cells();
        self.zero(&results);
        let counted = Counted {
            inst,
            index: &index,
            bounds: &bounds,
            scalars: [scalar, step_scalar],
            carried: &carried,
            results: &results,
            masks: masks.as_ref(),
            exit,
        };
        // Iterations that all lanes make come first, without masks.
        let narrow = scalar.bits().max(step_scalar.bits()) <= 32;
        let latch = if masked && self.begins_unmasked(body, narrow, &bounds, mask) {
            let latch = self.unmasked_iterations(body, &counted, mask);
            if latch.is_none() {
                self.close(&[head, next]);
                return self.after_counted(inst, &counted, &live, mask);
            }
            latch
        } else {
            self.iterations_made(&counted)
        };
        let goes = self.for_each_part(&bounds, |m, b| m.e.goes(scalar, step_scalar, b));
        match &masks {
            None => {
                let Part::Scalar(goes) = goes.part(0, 0) else {
                    unreachable!("a value of the chunk");
                };
                for (result, cells) in results.iter().zip(&carried) {
                    let parts = self.read(cells);
                    self.write(result, &parts);
                }
                self.e.branch_if(goes.into_int_value(), head, exit);
            }
            Some(masks) => {
                let goes = self.vectors(&goes);
                let on = self.both_masks(mask, &goes);
                let done = self.both_masks(mask, &self.inverse(&goes));
                self.finish_lanes(&results, &carried, &done);
                self.write_mask(&masks.left, &done);
                self.write_mask(&live, &on);
                let any = self.e.any(&on);
                self.e.branch_if(any, head, exit);
            }
        }
        if let (Some(latch), Some(masks)) = (latch, &masks) {
            // Lanes that made their last iteration together with others go apart.
            self.e.go(latch);
            self.take_over(&counted);
            self.write_mask(&masks.left, &self.constant_mask(false));
            self.next_lanes(&counted, masks, &live, self.lanes(mask), head);
        }
        self.e.go(head);
        if !self.is_short(inst) {
            self.poll_sometimes();
        }
        let now = self.read_index(&index, &bounds[0]);
        let inside = if masked {
            Mask::Some(self.read_mask(&live))
        } else {
            mask.clone()
        };
        if self.is_small(body.params[0], &inside) && now.is_uniform() {
            self.sums.note_small(now.part(0, 0));
        }
        self.define(body.params[0], now, mask);
        let on = self.iteration(body, frame, 1, inside);
        match (&masks, on) {
            (Some(masks), Some(on)) => self.next_lanes(&counted, masks, &live, on, head),
            (_, _) => {
                let more = self.advance(&counted);
                let Part::Scalar(more) = more.part(0, 0) else {
                    unreachable!("a value of the chunk");
                };
                for (result, cells) in results.iter().zip(&carried) {
                    let parts = self.read(cells);
                    self.write(result, &parts);
                }
                self.e.branch_if(more.into_int_value(), head, exit);
            }
        }
        self.after_counted(inst, &counted, &live, mask)
    }

    /// A `for` that each lane makes by itself.
    pub fn count_lane_by_lane(&mut self, inst: &'k Inst, mask: &Mask<'c>) -> Mask<'c> {
        let InstKind::For {
            lower,
            upper,
            step,
            init,
            body,
        } = &inst.kind
        else {
            unreachable!("a `for`");
        };
        let mut given = Vec::new();
        for (result, value) in inst.results.iter().zip(init) {
            let parts = self.get(*value);
            given.push(self.spread_out(*result, &parts));
        }
        let lanes = self.begin_lanes(inst, body, mask);
        let kernel = self.analysis.kernel;
        let scalar = kernel.ty(*lower).scalar().unwrap_or(Scalar::U32);
        let scalars = [scalar, kernel.ty(*step).scalar().unwrap_or(scalar)];
        let one = |maker: &mut Self, value: &Value| {
            let types = maker.lowered_types(kernel.ty(*value), Class::Uniform);
            maker.cells(types, Class::Uniform)
        };
        let index = one(self, &body.params[0]);
        let carried: Vec<_> = inst.carried().iter().map(|v| one(self, v)).collect();
        let bounds = [*lower, *upper, *step].map(|v| self.get(v));
        self.write(&index, &bounds[0]);
        for (cells, value) in carried.iter().zip(init) {
            let parts = self.get(*value);
            self.write(cells, &parts);
        }
        let [head, next, exit] = ["for", "next", "left"].map(|name| self.e.block(name));
        let counted = Counted {
            inst,
            index: &index,
            bounds: &bounds,
            scalars,
            carried: &carried,
            results: &carried,
            masks: None,
            exit,
        };
        let number = |parts: &Parts<'c>| match parts.part(0, 0) {
            Part::Scalar(one) => one,
            Part::Affine { .. } | Part::Vector(_) => unreachable!("a value of the lane"),
        };
        let goes = self.for_each_part(&bounds, |m, b| m.e.goes(scalars[0], scalars[1], b));
        self.e.branch_if(number(&goes).into_int_value(), head, exit);
        self.e.go(head);
        self.poll_sometimes();
        let now = self.read(&index);
        self.define(body.params[0], now, &Mask::All);
        let frame = Frame {
            carried: carried.clone(),
            results: carried.clone(),
            masks: None,
            next,
            exit,
        };
        self.iteration(body, frame, 1, Mask::All);
        let more = self.advance(&counted);
        self.e.branch_if(number(&more).into_int_value(), head, exit);
        self.e.go(exit);
        for (array, cells) in given.iter().zip(&carried) {
            let parts = self.read(cells);
            self.give(&lanes, array, number(&parts));
        }
        self.end_lanes(lanes);
        for (result, array) in inst.results.iter().zip(&given) {
            let parts = self.put_together(array);
            self.define(*result, parts, mask);
        }
        self.free(carried.iter().chain([&index]));
        mask.clone()
    }

    /// Whether a `for` has so few iterations, and no other loop in them, that whatever is around it looks for requests
    /// to stop soon enough.
    fn is_short(&self, inst: &Inst) -> bool {
        const ITERATIONS: i128 = 64;
        let InstKind::For {
            lower,
            upper,
            step,
            body,
            ..
        } = &inst.kind
        else {
            return false;
        };
        let bounds = [lower, upper, step].map(|v| self.analysis.constant_index(*v));
        let [Some(lower), Some(upper), Some(step)] = bounds else {
            return false;
        };
        step > 0 && (upper - lower) / step < ITERATIONS && !body.insts.iter().any(holds_loop)
    }

    /// Goes on behind a `for`.
    pub fn after_counted(
        &mut self,
        inst: &'k Inst,
        counted: &Counted<'_, 'c>,
        live: &Cells<'c>,
        mask: &Mask<'c>,
    ) -> Mask<'c> {
        self.e.go(counted.exit);
        let left = counted.masks.map(|m| &m.left);
        let out = self.after(inst, counted.results, left, mask);
        let both = counted.carried.iter().chain(counted.results);
        self.free(both.chain([counted.index, live]));
        self.free(counted.masks.into_iter().flat_map(FrameMasks::cells));
        out
    }

    /// The index of the next iteration; gives whether there is one.
    pub fn advance(&self, counted: &Counted<'_, 'c>) -> Parts<'c> {
        let [scalar, step_scalar] = counted.scalars;
        let [first, upper, step] = counted.bounds;
        let now = self.read_index(counted.index, first);
        let bounds = [now, upper.clone(), step.clone()];
        let more = self.for_each_part(&bounds, |m, b| m.e.following(scalar, step_scalar, b).0);
        let following = self.next_index(counted.index, &bounds, scalar, step_scalar);
        self.write(counted.index, &following);
        more
    }

    /// Ends an iteration of the lanes `on`: those that have another one go on with the loop.
    pub fn next_lanes(
        &self,
        counted: &Counted<'_, 'c>,
        masks: &FrameMasks<'c>,
        live: &Cells<'c>,
        on: Vec<VectorValue<'c>>,
        head: BasicBlock<'c>,
    ) {
        let more = self.vectors(&self.advance(counted));
        let pairs = || on.iter().zip(&more);
        let stay: Vec<_> = pairs().map(|(a, b)| self.e.and(*a, *b)).collect();
        let done: Vec<_> = pairs()
            .map(|(a, b)| self.e.and(*a, self.e.not(*b)))
            .collect();
        self.finish_lanes(counted.results, counted.carried, &done);
        self.add_to_mask(&masks.left, &done);
        self.write_mask(live, &stay);
        let any = self.e.any(&stay);
        self.e.branch_if(any, head, counted.exit);
    }

    /// Lanes that leave a counted loop by its end take what it carries.
    pub fn finish_lanes(
        &self,
        results: &[Cells<'c>],
        carried: &[Cells<'c>],
        done: &[VectorValue<'c>],
    ) {
        let mask = Mask::Some(done.to_vec());
        for (result, cells) in results.iter().zip(carried) {
            let parts = self.read(cells);
            self.write_lanes(result, &parts, &mask);
        }
    }

    /// The index of an iteration. Its vectors stay as far from each other as they were in the first.
    pub fn read_index(&self, index: &Cells<'c>, first: &Parts<'c>) -> Parts<'c> {
        let now = self.read(index);
        let along = self.shape.along as usize;
        if now.is_uniform() || along == 1 {
            return now;
        }
        let count = self.shape.parts() as usize;
        let list = (0..count)
            .map(|u| {
                let beside = [u, u - u % along].map(|u| match (first.part(0, u), now.part(0, u)) {
                    (Part::Affine { base, .. }, Part::Affine { base: now, .. }) => {
                        Some((base, now))
                    }
                    _other => None,
                });
                match (beside, now.part(0, u)) {
                    (
                        [Some((own, _)), Some((first, now))],
                        Part::Affine {
                            stride,
                            exact,
                            aligned,
                            ..
                        },
                    ) => self.sums.distance(own, first).map(|by| Part::Affine {
                        base: self.sums.plus(&self.e, now, by),
                        stride,
                        exact,
                        aligned,
                    }),
                    _other => None,
                }
                .unwrap_or_else(|| now.part(0, u))
            })
            .collect();
        Parts::of(list, count)
    }

    /// The index of the next iteration; it keeps its stride.
    pub fn next_index(
        &self,
        index: &Cells<'c>,
        bounds: &[Parts<'c>; 3],
        scalar: Scalar,
        step_scalar: Scalar,
    ) -> Parts<'c> {
        if let Class::Line(line) = index.class
            && line.stride != 0
        {
            let count = self.shape.parts() as usize;
            let step = |u: usize| match bounds[2].part(0, u) {
                Part::Scalar(s) => s.into_int_value(),
                Part::Affine { .. } | Part::Vector(_) => unreachable!("one step for all"),
            };
            let list = (0..count)
                .map(|u| match bounds[0].part(0, u) {
                    Part::Affine { base, .. } => Part::Affine {
                        base: self.e.add(base, step(u)),
                        stride: line.stride,
                        exact: line.exact,
                        aligned: line.aligned,
                    },
                    other => other,
                })
                .collect();
            return Parts::of(list, count);
        }
        // The end does not matter here, and may differ where the index does not.
        let [index, _, step] = bounds.clone();
        let bounds = [index.clone(), index, step];
        self.for_each_part(&bounds, |m, b| m.e.following(scalar, step_scalar, b).1)
    }
}
