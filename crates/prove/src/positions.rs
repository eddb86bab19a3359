//! What a launch says of a thread: its position and number, the sizes of threadgroups and of the grid, and the lengths of
//! buffers.

use invar_ir::{Dim, Imm, Level, Memory, Op};

use crate::linear::{Formula, Linear};
use crate::query::{Int, Query};
use crate::subject::Subject;
use crate::thread::{LARGEST_BUFFER, LARGEST_GRID, LARGEST_THREADGROUP, Thread};

pub(crate) fn dim(imm: Imm) -> Dim {
    match imm {
        Imm::Dim(dim) => dim,
        Imm::None | Imm::Type(_) | Imm::Swizzle(_) => Dim::X,
    }
}

impl Subject<'_> {
    fn is_unused(&self, d: Dim) -> bool {
        self.unused[d as usize]
    }

    /// Threads of a full threadgroup.
    pub fn full_size(&self, q: &mut Query, d: Dim) -> Int {
        match self.kernel.threadgroup_size {
            Some(size) => Int::constant(i128::from(size[d as usize])),
            None => q.symbol(&format!("threadgroup.{}", d.name()), 1, LARGEST_THREADGROUP),
        }
    }

    /// Threads of the grid.
    pub fn grid(&self, q: &mut Query, d: Dim) -> Int {
        if self.is_unused(d) {
            return Int::constant(1);
        }
        q.symbol(&format!("grid.{}", d.name()), 1, LARGEST_GRID)
    }

    /// Threadgroups of the grid.
    pub fn groups(&self, q: &mut Query, d: Dim) -> Int {
        if self.is_unused(d) {
            return Int::constant(1);
        }
        let key = format!("groups.{}", d.name());
        // Of whole ones there are as many as the threads of the grid are times theirs.
        if let Some(size) = self.full_size(q, d).as_constant()
            && let Some(form) = q.quotient(&format!("grid.{}", d.name()), size)
        {
            self.grid(q, d);
            return Int {
                form,
                low: 1,
                high: LARGEST_GRID,
            };
        }
        let groups = q.symbol(&key, 1, LARGEST_GRID);
        if q.first_time(&key) {
            let (size, grid) = (self.full_size(q, d), self.grid(q, d));
            if let Some(all) = q.product(&size.form, &groups.form) {
                // size * (groups - 1) < grid <= size * groups
                q.say(Formula::le(&grid.form, &all));
                q.say(
                    all.plus(-1, &size.form)
                        .and_then(|a| Formula::lt(&a, &grid.form)),
                );
            }
        }
        groups
    }

    fn group(&self, q: &mut Query, t: &Thread, d: Dim) -> Int {
        if self.is_unused(d) {
            return Int::constant(0);
        }
        let scope = self.scope(q, t, Level::Threadgroup);
        let key = format!("{scope} threadgroup_position_in_grid.{}", d.name());
        let group = q.symbol(&key, 0, LARGEST_GRID);
        if q.first_time(&key) {
            let groups = self.groups(q, d);
            q.say(Formula::lt(&group.form, &groups.form));
        }
        group
    }

    fn position_in_group(&self, q: &mut Query, t: &Thread, d: Dim) -> Int {
        if self.is_unused(d) {
            return Int::constant(0);
        }
        let size = self.full_size(q, d);
        let key = format!(
            "thread{} thread_position_in_threadgroup.{}",
            t.tag,
            d.name()
        );
        let position = q.symbol(&key, 0, size.high - 1);
        if q.first_time(&key) {
            q.say(Formula::lt(&position.form, &size.form));
            let group = self.group(q, t, d);
            let grid = self.grid(q, d);
            let start = q.product(&group.form, &size.form);
            let own = start.and_then(|s| s.plus(1, &position.form));
            q.say(own.and_then(|own| Formula::lt(&own, &grid.form)));
        }
        position
    }

    /// Where a thread's threadgroup is in the grid.
    pub fn place_of_group(&self, q: &mut Query, t: &Thread, d: Dim) -> Linear {
        self.group(q, t, d).form
    }

    /// Where a thread is in its threadgroup.
    pub fn place_in_group(&self, q: &mut Query, t: &Thread, d: Dim) -> Linear {
        self.position_in_group(q, t, d).form
    }

    /// The position in the grid.
    pub fn position(&self, q: &mut Query, t: &Thread, d: Dim) -> Option<Int> {
        if self.is_unused(d) {
            return Some(Int::constant(0));
        }
        if self.flat {
            let key = format!("thread{} thread_position_in_grid.{}", t.tag, d.name());
            let position = q.symbol(&key, 0, LARGEST_GRID - 1);
            if q.first_time(&key) {
                let grid = self.grid(q, d);
                q.say(Formula::lt(&position.form, &grid.form));
            }
            return Some(position);
        }
        let inner = self.position_in_group(q, t, d);
        let group = self.group(q, t, d);
        let size = self.full_size(q, d);
        let form = q.product(&group.form, &size.form)?.plus(1, &inner.form)?;
        Some(Int {
            form,
            low: 0,
            high: LARGEST_GRID - 1,
        })
    }

    /// Threads of this threadgroup, which is smaller at an edge.
    fn own_size(&self, q: &mut Query, t: &Thread, d: Dim) -> Option<Int> {
        if self.is_unused(d) {
            return Some(Int::constant(1));
        }
        let size = self.full_size(q, d);
        let scope = self.scope(q, t, Level::Threadgroup);
        let key = format!("{scope} threads_per_threadgroup.{}", d.name());
        let own = q.symbol(&key, 1, size.high);
        if q.first_time(&key) {
            let group = self.group(q, t, d);
            let start = q.product(&group.form, &size.form)?;
            let rest = self.grid(q, d).form.plus(-1, &start)?;
            q.say(Formula::le(&own.form, &rest));
            q.say(Formula::le(&own.form, &size.form));
            let full = Formula::eq(&own.form, &size.form)?;
            let edge = Formula::eq(&own.form, &rest)?;
            q.say(Some(Formula::any([full, edge])));
        }
        let inner = self.position_in_group(q, t, d);
        let bounded = format!("thread{} in {key}", t.tag);
        if q.first_time(&bounded) {
            q.say(Formula::lt(&inner.form, &own.form));
        }
        Some(own)
    }

    /// The number of the thread in its threadgroup (X2).
    pub fn thread_index(&self, q: &mut Query, t: &Thread) -> Option<Int> {
        let x = self.position_in_group(q, t, Dim::X);
        let y = self.position_in_group(q, t, Dim::Y);
        let z = self.position_in_group(q, t, Dim::Z);
        if y.as_constant().is_some() && z.as_constant().is_some() {
            return Some(x);
        }
        let own_x = self.own_size(q, t, Dim::X)?;
        let mut sum = q.product(&y.form, &own_x.form)?.plus(1, &x.form)?;
        if z.as_constant().is_none() {
            let own_y = self.own_size(q, t, Dim::Y)?;
            let plane = q.product(&own_x.form, &own_y.form)?;
            sum = q.product(&z.form, &plane)?.plus(1, &sum)?;
        }
        let high = self.largest_threadgroup() - 1;
        let key = format!("thread{} thread_index_in_threadgroup", t.tag);
        let index = q.symbol(&key, 0, high);
        if q.first_time(&key) {
            q.say(Formula::eq(&index.form, &sum));
        }
        Some(index)
    }

    /// Threads of a simdgroup.
    fn simdgroup_size(&self, q: &mut Query) -> Int {
        if let Some(size) = self.kernel.simdgroup_size {
            return Int::constant(i128::from(size));
        }
        let size = q.symbol("simdgroup", 4, 128);
        if q.first_time("simdgroup") {
            let sizes = [4, 8, 16, 32, 64, 128];
            let one = |n| Formula::eq(&size.form, &Linear::constant(n));
            let one: Option<Vec<Formula>> = sizes.into_iter().map(one).collect();
            q.say(one.map(Formula::any));
        }
        size
    }

    /// The number of the thread's simdgroup.
    pub fn simdgroup_index(&self, q: &mut Query, t: &Thread) -> Option<Int> {
        let (index, size) = (self.thread_index(q, t)?, self.simdgroup_size(q));
        self.quotient(q, &index, &size)
            .map(|(quotient, _)| quotient)
    }

    /// Threads of this threadgroup.
    fn threads(&self, q: &mut Query, t: &Thread) -> Option<Int> {
        let mut all = Linear::constant(1);
        for d in Dim::ALL {
            let own = self.own_size(q, t, d)?;
            all = q.product(&all, &own.form)?;
        }
        let most = self.largest_threadgroup();
        let key = format!("{} threads", self.scope(q, t, Level::Threadgroup));
        let threads = q.symbol(&key, 1, most);
        if q.first_time(&key) {
            q.say(Formula::eq(&threads.form, &all));
        }
        // Each thread is one of them.
        let bounded = format!("thread{} in {key}", t.tag);
        let index = self.thread_index(q, t)?;
        if q.first_time(&bounded) {
            q.say(Formula::lt(&index.form, &threads.form));
        }
        Some(threads)
    }

    /// How many simdgroups or quadgroups of a size a threadgroup has: as many as its threads fill, and one
    /// for the rest (X2).
    fn parts_of_threadgroup(&self, q: &mut Query, t: &Thread, size: &Int) -> Option<Int> {
        let threads = self.threads(q, t)?;
        let last = Int {
            form: threads.form.shifted(-1)?,
            low: 0,
            high: threads.high - 1,
        };
        let (quotient, _) = self.quotient(q, &last, size)?;
        Some(Int {
            form: quotient.form.shifted(1)?,
            low: quotient.low + 1,
            high: quotient.high + 1,
        })
    }

    /// The most threads of a threadgroup.
    pub fn largest_threadgroup(&self) -> i128 {
        match self.kernel.threadgroup_size {
            Some([x, y, z]) => i128::from(x) * i128::from(y) * i128::from(z),
            None => LARGEST_THREADGROUP,
        }
    }

    /// How many elements a memory object has.
    pub fn length(&self, q: &mut Query, memory: Memory) -> Int {
        let Some(info) = self.module.memory(self.kernel, memory) else {
            return Int::constant(0);
        };
        match info.length {
            Some(length) => Int::constant(i128::from(length)),
            None => q.symbol(&format!("length({})", info.name), 0, LARGEST_BUFFER),
        }
    }

    /// What a query asks for: `None` if it is not a query, `Some(None)` if nothing is known of the answer.
    pub fn asked(&self, q: &mut Query, t: &Thread, op: Op, imm: Imm) -> Option<Option<Int>> {
        Some(match op {
            Op::ThreadPositionInGrid => self.position(q, t, dim(imm)),
            Op::ThreadPositionInThreadgroup => Some(self.position_in_group(q, t, dim(imm))),
            Op::ThreadgroupPositionInGrid => Some(self.group(q, t, dim(imm))),
            Op::ThreadsPerThreadgroup => self.own_size(q, t, dim(imm)),
            Op::DispatchThreadsPerThreadgroup => Some(self.full_size(q, dim(imm))),
            Op::ThreadsPerGrid => Some(self.grid(q, dim(imm))),
            Op::ThreadgroupsPerGrid => Some(self.groups(q, dim(imm))),
            Op::ThreadIndexInThreadgroup => self.thread_index(q, t),
            Op::ThreadsPerSimdgroup => Some(self.simdgroup_size(q)),
            Op::ThreadIndexInSimdgroup => {
                let index = self.thread_index(q, t);
                let size = self.simdgroup_size(q);
                index
                    .and_then(|i| self.quotient(q, &i, &size))
                    .map(|(_, rest)| rest)
            }
            Op::SimdgroupIndexInThreadgroup => self.simdgroup_index(q, t),
            Op::SimdgroupsPerThreadgroup => {
                let size = self.simdgroup_size(q);
                self.parts_of_threadgroup(q, t, &size)
            }
            Op::QuadgroupsPerThreadgroup => self.parts_of_threadgroup(q, t, &Int::constant(4)),
            Op::ThreadIndexInQuadgroup => {
                let index = self.thread_index(q, t);
                index
                    .and_then(|i| self.floor(q, &i, 4))
                    .map(|(_, rest)| rest)
            }
            Op::QuadgroupIndexInThreadgroup => {
                let index = self.thread_index(q, t);
                index
                    .and_then(|i| self.floor(q, &i, 4))
                    .map(|(quotient, _)| quotient)
            }
            _no_query => return None,
        })
    }
}
