//! Blocks of statements, `if`, `for` and `loop`, and the ways out of them. Loops of rows (`rows.rs`) and sides of an `if`
//! about ends (`ends.rs`) hold statements, too: these three modules need one another, and no others do.

use invar_ir::{Const, InstKind, Level, Region, Scalar, Type, Value};

use super::generator::{Generator, Loop};

impl Generator<'_> {
    /// Statements here, in the current block.
    pub(super) fn body(&mut self, depth: u32) {
        while self.budget > 0 && !self.k.terminated() {
            self.statement(depth);
        }
    }

    /// A few statements.
    pub(super) fn some(&mut self, depth: u32) {
        for _ in 0..1 + self.random.below(5) {
            if self.budget == 0 || self.k.terminated() {
                return;
            }
            self.statement(depth);
        }
    }

    pub(super) fn statement(&mut self, depth: u32) {
        self.budget -= 1;
        let deep = depth > 0;
        if deep && self.about_ends && self.random.one_in(2) {
            return self.number_near_an_end(depth);
        }
        if self.options.textures && self.random.one_in(4) {
            return self.texture();
        }
        match self.random.below(24) {
            0..=7 => self.operation(),
            8 => self.exact_floats(),
            9..=11 => self.load(),
            12..=13 => self.store(),
            14 if self.options.atomics => self.atomic(),
            15 => self.thread_array(),
            16 if self.options.copies => self.copy(),
            17 if deep => self.if_(depth),
            18 if deep => self.if_(depth),
            19 if deep => self.for_(depth),
            20 if deep => self.loop_(depth),
            21 | 22 => self.collective(depth),
            23 => self.uniform_load(),
            _not_here => self.operation(),
        }
    }

    /// Values of these types, to yield or carry.
    fn values(&mut self, types: &[Type]) -> Vec<Value> {
        types.iter().map(|ty| self.get(*ty).value).collect()
    }

    fn some_types(&mut self) -> Vec<Type> {
        (0..self.random.below(3))
            .map(|_| self.simple_type())
            .collect()
    }

    /// A uniform or a varying condition, and over whom it is the same.
    fn some_condition(&mut self) -> (Value, Level) {
        if self.random.one_in(2) {
            let value = self.uniform(Scalar::U32);
            let limit = self.constant_u32(2);
            let rest = self.k.rem(value, limit);
            let zero = self.constant_u32(0);
            (self.k.eq(rest, zero), Level::Threadgroup)
        } else {
            (self.condition(), Level::Varying)
        }
    }

    fn if_(&mut self, depth: u32) {
        let (condition, level) = self.some_condition();
        let types = self.some_types();
        let mut sides = Vec::new();
        for _ in 0..2 {
            let mark = self.mark();
            self.control = self.control.min(level);
            self.k.open_region(&[]);
            if !self.random.one_in(4) {
                self.some(depth - 1);
            }
            self.way_out();
            if !self.k.terminated() {
                let values = self.values(&types);
                self.k.yield_(&values);
            }
            sides.push(self.k.close_region());
            self.release(mark);
        }
        let (Some(otherwise), Some(then)) = (sides.pop(), sides.pop()) else {
            return;
        };
        let yields = |region: &Region| {
            let last = region.insts.last().map(|inst| &inst.kind);
            matches!(last, Some(InstKind::Yield(_)))
        };
        let goes_on = yields(&then) || yields(&otherwise);
        let results = self.k.if_regions(condition, then, otherwise);
        if goes_on {
            for value in results {
                self.add(value, Level::Varying);
            }
        }
    }

    /// Perhaps leaves the innermost loop, begins its next iteration, or ends the thread.
    fn way_out(&mut self) {
        if self.k.terminated() || !self.random.one_in(4) {
            return;
        }
        if self.random.one_in(4) && self.tail {
            self.k.return_();
            return;
        }
        let Some(around) = self.around.clone() else {
            return;
        };
        // Threads part only where nothing in the loop needs them together.
        if self.control < around.control {
            return;
        }
        let mut values = Vec::new();
        let carried = self.values(&around.carried);
        if let Some(counter) = around.counter {
            values.push(self.next(counter));
        }
        values.extend(carried);
        if self.random.one_in(2) {
            self.k.break_(&values);
        } else {
            self.k.continue_(&values);
        }
    }

    fn next(&mut self, counter: Value) -> Value {
        let one = self.constant_u32(1);
        self.k.add(counter, one)
    }

    /// Bounds of at most six iterations, and over whom they are the same.
    fn bounds(&mut self) -> (Value, Value, Value, Level) {
        let integers = self.palette.iter().copied();
        let integers: Vec<Scalar> = integers.filter(|s| s.is_integer()).collect();
        let scalar = self.random.pick(&integers);
        let signed = scalar.is_signed_integer();
        let mask = u64::MAX >> (64 - scalar.bits());
        let constant = |maker: &mut Self, bits: u64| {
            let bits = bits & mask;
            maker.k.constant(Const { scalar, bits })
        };
        let down = signed && self.random.one_in(3);
        let distance = 1 + self.random.below(3) as u64;
        let step = match self.random.below(12) {
            0 => 0,
            _ if down => distance.wrapping_neg(),
            _ => distance,
        };
        let step = constant(self, step);
        // Near the type's end an index that wrapped would go on forever.
        if self.random.one_in(4) {
            let end = if signed { mask >> 1 } else { mask };
            let near = end - self.random.below(6) as u64;
            let (lower, upper) = if down {
                let last = end.wrapping_add(1);
                let near = last + self.random.below(6) as u64;
                (constant(self, near), constant(self, last))
            } else {
                (constant(self, near), constant(self, end))
            };
            return (lower, upper, step, Level::Grid);
        }
        let level = if self.random.one_in(2) {
            Level::Threadgroup
        } else {
            Level::Varying
        };
        let mut bound = || {
            let any = match level {
                Level::Varying => self.get(Type::Scalar(scalar)).value,
                _uniform => self.uniform(scalar),
            };
            let most = constant(self, 6);
            self.k.rem(any, most)
        };
        let (lower, upper) = (bound(), bound());
        (lower, upper, step, level)
    }

    /// Whether threads may leave the loop one by one, given over whom its iterations are the same.
    fn loop_control(&mut self, iterations: Level) -> Level {
        let control = self.control.min(iterations);
        if self.random.one_in(2) {
            Level::Varying
        } else {
            control
        }
    }

    fn for_(&mut self, depth: u32) {
        let (lower, upper, step, level) = self.bounds();
        let carried = self.some_types();
        let init = self.values(&carried);
        let mark = self.mark();
        self.control = self.loop_control(level);
        let mut types = vec![self.k.ty(lower)];
        types.extend(&carried);
        let params = self.k.open_region(&types);
        self.around = Some(Loop {
            carried: carried.clone(),
            counter: None,
            control: self.control,
        });
        let index_level = level;
        self.add(params[0], index_level);
        for param in &params[1..] {
            self.add(*param, Level::Varying);
        }
        self.some(depth - 1);
        self.way_out();
        if !self.k.terminated() {
            let values = self.values(&carried);
            self.k.yield_(&values);
        }
        let body = self.k.close_region();
        self.release(mark);
        let kind = InstKind::For {
            lower,
            upper,
            step,
            init: init.into(),
            body,
        };
        for value in self.k.push(kind, &carried) {
            self.add(value, Level::Varying);
        }
    }

    fn loop_(&mut self, depth: u32) {
        let uniform = self.random.one_in(2);
        let limit = if uniform {
            self.uniform(Scalar::U32)
        } else {
            self.get(Type::U32).value
        };
        let most = self.constant_u32(5);
        let limit = self.k.rem(limit, most);
        let level = match uniform {
            true => Level::Threadgroup,
            false => Level::Varying,
        };
        let carried = self.some_types();
        let zero = self.constant_u32(0);
        let mut init = vec![zero];
        init.extend(self.values(&carried));
        let mark = self.mark();
        self.control = self.loop_control(level);
        let mut types = vec![Type::U32];
        types.extend(&carried);
        let params = self.k.open_region(&types);
        self.add(params[0], level);
        for param in &params[1..] {
            self.add(*param, Level::Varying);
        }
        let done = self.k.ge(params[0], limit);
        self.k.open_region(&[]);
        self.k.break_(&params);
        let leave = self.k.close_region();
        self.k.open_region(&[]);
        self.k.yield_(&[]);
        let stay = self.k.close_region();
        self.k.if_regions(done, leave, stay);
        self.around = Some(Loop {
            carried: carried.clone(),
            counter: Some(params[0]),
            control: self.control,
        });
        self.some(depth - 1);
        self.way_out();
        if !self.k.terminated() {
            let mut values = vec![self.next(params[0])];
            values.extend(self.values(&carried));
            self.k.yield_(&values);
        }
        let body = self.k.close_region();
        self.release(mark);
        let kind = InstKind::Loop {
            init: init.into(),
            body,
        };
        for value in self.k.push(kind, &types) {
            self.add(value, Level::Varying);
        }
    }

    /// What a whole threadgroup or simdgroup meets for.
    fn collective(&mut self, depth: u32) {
        if let Some(size) = self.tile_size()
            && self.random.one_in(2)
        {
            return self.tile(size);
        }
        let rows = self.row_dims();
        if !rows.is_empty() && self.random.one_in(3) {
            return self.rows(&rows);
        }
        if let Some(shared) = self.together() {
            self.fenced(depth);
            self.end_sharing(shared);
        }
    }

    /// Statements in which no `break` or `continue` leaves a loop that is around them.
    pub(super) fn fenced(&mut self, depth: u32) {
        let around = self.around.take();
        let tail = std::mem::replace(&mut self.tail, false);
        self.some(depth);
        self.around = around;
        self.tail = tail;
    }
}
