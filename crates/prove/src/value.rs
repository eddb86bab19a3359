//! The values of a kernel's threads as integers of a [`Query`].
//!
//! A value is what it is mathematically where it is shown not to wrap under the conditions of the access
//! that uses it, else `form - 2^w * q` with a bounded `q`: exact, too. What has no form here is any number
//! of its type. A value that is uniform (X4) is one variable for both threads, in the same iteration of the
//! same loops.

use std::collections::{BTreeSet, HashMap, HashSet};

use invar_ir::{AddressSpace, Dim, Imm, InstKind, Level, Memory, Op, Scalar, Step, Type, Value};

use crate::kernel::{Invariant, Subject};
use crate::linear::{Formula, Linear};
use crate::query::{Int, Query};
use crate::shape::{Definition, Id, Iteration, Iterations};

/// Grids and positions fit 32 bits (X1).
pub const LARGEST_GRID: i128 = (1 << 32) - 1;
/// The most elements of a buffer of which anything is proved.
pub const LARGEST_BUFFER: i128 = (1 << 32) - 1;
/// The most texels of a texture in a direction.
pub const LARGEST_TEXTURE: i128 = invar_texture::MAX_EXTENT as i128;
/// The most texels of a row that is not sampled.
pub const LARGEST_ROW: i128 = invar_texture::MAX_TEXELS as i128;
/// The most levels of a texture: the last has one texel.
pub const MOST_LEVELS: i128 = LARGEST_TEXTURE.ilog2() as i128 + 1;
/// The most threads of a threadgroup of which anything is proved.
pub const LARGEST_THREADGROUP: i128 = 1024;

/// A value.
#[derive(Clone, Debug)]
pub enum Val {
    /// An integer.
    Int(Int),
    /// A truth value.
    Bool(Formula),
}

/// A value, or a component of a vector.
pub type Slot = (Value, Option<u8>);

/// One thread at a place whose loops are in these iterations.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Which of the two.
    pub tag: u8,
    /// The iterations of the loops around.
    pub iterations: Iterations,
    /// What holds where it is.
    pub path: Vec<Formula>,
    /// Values known not to wrap there.
    pub exact: BTreeSet<Slot>,
    /// Whether it is asked of further values whether they wrap.
    pub asks: bool,
    /// Which component of vectors is asked for, if one is.
    pub lane: Option<u8>,
    memo: HashMap<Slot, Option<Val>>,
    busy: HashSet<Slot>,
}

impl Thread {
    /// A thread about which nothing is known.
    pub fn new(tag: u8, iterations: Iterations) -> Thread {
        Thread {
            tag,
            iterations,
            path: Vec::new(),
            exact: BTreeSet::new(),
            asks: false,
            lane: None,
            memo: HashMap::new(),
            busy: HashSet::new(),
        }
    }

    /// What a value was found to be.
    pub fn known(&self, value: Value) -> Option<&Val> {
        self.memo.get(&(value, None)).and_then(Option::as_ref)
    }
}

/// The least and the largest number of an integer type.
pub fn range(scalar: Scalar) -> (i128, i128) {
    let bits = scalar.bits();
    if scalar.is_signed_integer() {
        (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    } else {
        (0, (1 << bits) - 1)
    }
}

/// What a form is a multiple of a divisor by, as far as its factors are, and the rest.
fn divided(form: &Linear, divisor: i128) -> Option<(Linear, Linear)> {
    let mut whole = Linear::constant(form.constant.div_euclid(divisor));
    let mut rest = Linear::constant(form.constant.rem_euclid(divisor));
    for &(var, factor) in &form.terms {
        let (to, factor) = match factor % divisor {
            0 => (&mut whole, factor / divisor),
            _left => (&mut rest, factor),
        };
        *to = to.plus(factor, &Linear::var(var))?;
    }
    Some((whole, rest))
}

pub(crate) fn dim(imm: Imm) -> Dim {
    match imm {
        Imm::Dim(dim) => dim,
        Imm::None | Imm::Type(_) | Imm::Swizzle(_) => Dim::X,
    }
}

/// What a launch says.
impl Subject<'_> {
    fn scope(&self, q: &Query, t: &Thread, level: Level) -> String {
        match level {
            Level::Grid => "grid".to_string(),
            Level::Threadgroup if q.same => "group".to_string(),
            Level::Threadgroup => format!("group{}", t.tag),
            Level::Simdgroup | Level::Varying => format!("thread{}", t.tag),
        }
    }

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
}

/// Values.
impl Subject<'_> {
    /// What tells the iterations of a value's loops.
    fn iterations_key(&self, t: &Thread, loops: &[Id]) -> String {
        let mut key = String::new();
        let mut any = false;
        for l in loops {
            let iteration = t.iterations.get(l).copied().unwrap_or(Iteration::Any);
            key += &format!(" {l}{iteration:?}");
            any |= iteration == Iteration::Any;
        }
        if any {
            key += &format!(" of thread{}", t.tag);
        }
        key
    }

    pub fn key(&self, q: &Query, t: &Thread, value: Value, what: &str) -> String {
        let scope = self.scope(q, t, self.uniformity.of(value));
        let loops = self.iterations_key(t, &self.shape.loops_of(value));
        let lane = t.lane.map_or(String::new(), |lane| format!(".{lane}"));
        // By its number: names may be anything, that of a number without a name too.
        format!("{scope} %{}{lane}{what}{loops}", value.0)
    }

    /// Any value of its type.
    pub fn anything(&self, q: &mut Query, t: &Thread, value: Value) -> Option<Val> {
        match self.scalar_of(t, value)? {
            Scalar::Bool => {
                let key = self.key(q, t, value, "");
                Some(Val::Bool(self.truth(q, &key)))
            }
            scalar if scalar.is_integer() => {
                let (low, high) = range(scalar);
                let key = self.key(q, t, value, "");
                Some(Val::Int(q.symbol(&key, low, high)))
            }
            _float => None,
        }
    }

    /// A truth value of that name.
    fn truth(&self, q: &mut Query, key: &str) -> Formula {
        let var = q.symbol(key, 0, 1);
        match var.form.shifted(-1) {
            Some(form) => Formula::at_least(form),
            None => Formula::TRUE,
        }
    }

    /// What a value is for a thread.
    pub fn of(&self, q: &mut Query, t: &mut Thread, value: Value) -> Option<Val> {
        // A scalar has no components, whichever of a vector is asked for.
        let lane = t.lane.filter(|_| self.parts(value).is_some());
        let slot = (value, lane);
        if let Some(known) = t.memo.get(&slot) {
            return known.clone();
        }
        let around = std::mem::replace(&mut t.lane, lane);
        let is_new = t.busy.insert(slot);
        let found = is_new.then(|| self.compute(q, t, value)).flatten();
        let found = found.or_else(|| self.anything(q, t, value));
        t.lane = around;
        if is_new {
            t.busy.remove(&slot);
            t.memo.insert(slot, found.clone());
        }
        found
    }

    /// As [`Subject::of`], of an integer.
    pub fn int(&self, q: &mut Query, t: &mut Thread, value: Value) -> Option<Int> {
        match self.of(q, t, value) {
            Some(Val::Int(int)) => Some(int),
            Some(Val::Bool(_)) | None => None,
        }
    }

    /// As [`Subject::of`], of a truth value.
    pub fn truth_of(&self, q: &mut Query, t: &mut Thread, value: Value) -> Formula {
        match self.of(q, t, value) {
            Some(Val::Bool(formula)) => formula,
            Some(Val::Int(_)) | None => {
                let key = self.key(q, t, value, " unknown");
                self.truth(q, &key)
            }
        }
    }

    fn compute(&self, q: &mut Query, t: &mut Thread, value: Value) -> Option<Val> {
        match self.shape.definition(value)? {
            Definition::Parameter(number) => {
                let name = &self.kernel.params[number].name;
                match self.kernel.ty(value) {
                    Type::Scalar(scalar) if scalar.is_integer() => {
                        let (low, high) = range(scalar);
                        Some(Val::Int(q.symbol(&format!("%{name}"), low, high)))
                    }
                    _another => None,
                }
            }
            Definition::Counter(id) => self.counter(q, t, id).map(Val::Int),
            Definition::Carried(id, number) => self.carried(q, t, id, number, value),
            Definition::Result(id, number) => self.result(q, t, id, number, value),
        }
    }

    fn result(
        &self,
        q: &mut Query,
        t: &mut Thread,
        id: Id,
        number: usize,
        value: Value,
    ) -> Option<Val> {
        match self.shape.kind(id) {
            InstKind::Const(constant) => match constant.scalar {
                Scalar::Bool if constant.bits == 0 => Some(Val::Bool(Formula::FALSE)),
                Scalar::Bool => Some(Val::Bool(Formula::TRUE)),
                scalar if scalar.is_integer() => {
                    Some(Val::Int(Int::constant(scalar.integer(constant.bits))))
                }
                _float => None,
            },
            InstKind::FunctionConstant(number) => {
                let constant = &self.module.function_constants[*number as usize];
                if !constant.scalar.is_integer() {
                    return None;
                }
                let (low, high) = range(constant.scalar);
                Some(Val::Int(q.symbol(
                    &format!("@{}", constant.name),
                    low,
                    high,
                )))
            }
            InstKind::Op { op, imm, args } => self.operation(q, t, value, (*op, *imm, args)),
            InstKind::BufferLength(memory) => Some(Val::Int(self.length(q, *memory))),
            InstKind::Texture {
                texture,
                function,
                args,
            } => {
                let number = self.texture_number(q, t, (*texture, *function), args);
                number.map(Val::Int)
            }
            InstKind::Load(place) => {
                let part = (self.kernel.ty(value), t.lane.map(i128::from));
                self.loaded(q, t, place, part).map(Val::Int)
            }
            InstKind::If { condition, .. } => {
                let yielded = |side: usize| -> Option<Value> {
                    let last = *self.shape.region(Some(id), side).last()?;
                    match self.shape.kind(last) {
                        InstKind::Yield(values) => values.get(number).copied(),
                        _leaves => None,
                    }
                };
                match (yielded(0), yielded(1)) {
                    (Some(then), Some(otherwise)) => {
                        let condition = self.truth_of(q, t, *condition);
                        let (a, b) = (self.of(q, t, then)?, self.of(q, t, otherwise)?);
                        self.choice(q, t, value, condition, a, b)
                    }
                    // The other side leaves.
                    (Some(only), None) | (None, Some(only)) => self.of(q, t, only),
                    (None, None) => None,
                }
            }
            InstKind::For { .. } | InstKind::Loop { .. } => self.left_by(q, t, id, number, value),
            // Nothing is known of what others give; of `assert_uniform`, which thread's value it is is not specified (X5).
            _other => None,
        }
    }

    /// One of two values.
    pub fn choice(
        &self,
        q: &mut Query,
        t: &Thread,
        value: Value,
        condition: Formula,
        a: Val,
        b: Val,
    ) -> Option<Val> {
        if condition.is_true() {
            return Some(a);
        }
        if condition.is_false() {
            return Some(b);
        }
        let not = condition.negated()?;
        match (a, b) {
            (Val::Int(a), Val::Int(b)) => {
                let (low, high) = (a.low.min(b.low), a.high.max(b.high));
                let key = self.key(q, t, value, " chosen");
                // What it is depends on the operands: each pair has a name of its own.
                let key = format!("{key} {:?} {:?}", a.form, b.form);
                let chosen = q.symbol(&key, low, high);
                if q.first_time(&key) {
                    let first = Formula::eq(&chosen.form, &a.form)?;
                    let second = Formula::eq(&chosen.form, &b.form)?;
                    let first = Formula::all([condition, first]);
                    let second = Formula::all([not, second]);
                    q.say(Some(Formula::any([first, second])));
                }
                Some(Val::Int(chosen))
            }
            (Val::Bool(a), Val::Bool(b)) => Some(Val::Bool(Formula::any([
                Formula::all([condition, a]),
                Formula::all([not, b]),
            ]))),
            (Val::Int(_), Val::Bool(_)) | (Val::Bool(_), Val::Int(_)) => None,
        }
    }

    /// The number of the iteration, from 0.
    fn iteration(&self, q: &mut Query, t: &Thread, loop_: Id) -> Option<Int> {
        let iteration = t.iterations.get(&loop_).copied().unwrap_or(Iteration::Any);
        let around = self.iterations_key(t, &self.shape.loops_around(loop_));
        let shared = self.scope(q, t, Level::Threadgroup);
        let key = match iteration {
            Iteration::First => return Some(Int::constant(0)),
            Iteration::Numbered(number) => return Some(Int::constant(number as i128)),
            Iteration::Any => format!("thread{} iteration of {loop_}{around}", t.tag),
            Iteration::Same | Iteration::Next => format!("{shared} iteration of {loop_}{around}"),
        };
        let count = q.symbol(&key, 0, 1 << 64);
        if iteration == Iteration::Next {
            return Some(Int {
                form: count.form.shifted(1)?,
                low: 1,
                high: (1 << 64) + 1,
            });
        }
        Some(count)
    }

    /// The index of a `for`: lower + step * iteration, on its side of the upper bound.
    fn counter(&self, q: &mut Query, t: &mut Thread, id: Id) -> Option<Int> {
        let InstKind::For {
            lower, upper, step, ..
        } = self.shape.kind(id)
        else {
            return None;
        };
        let scalar = self.kernel.ty(*lower).scalar()?;
        let (least, most) = range(scalar);
        let iteration = self.iteration(q, t, id)?;
        let (a, b) = (self.int(q, t, *lower)?, self.int(q, t, *upper)?);
        let c = self.int(q, t, *step)?;
        let form = q.product(&c.form, &iteration.form)?.plus(1, &a.form)?;
        let around = self.iterations_key(t, &self.shape.loops_around(id));
        let own = t.iterations.get(&id).copied().unwrap_or(Iteration::Any);
        let key = format!("thread{} index of {id} {own:?}{around}", t.tag);
        let rises = Formula::all([
            Formula::at_least(c.form.shifted(-1)?),
            Formula::lt(&form, &b.form)?,
            Formula::le(&a.form, &form)?,
        ]);
        let falls = Formula::all([
            Formula::at_least(c.form.times(-1)?.shifted(-1)?),
            Formula::lt(&b.form, &form)?,
            Formula::le(&form, &a.form)?,
        ]);
        if q.first_time(&key) {
            let fact = if c.low >= 0 {
                rises
            } else {
                Formula::any([rises, falls])
            };
            q.say(Some(fact));
        }
        let (low, high) = if c.low >= 0 {
            (a.low, a.low.max(b.high - 1))
        } else {
            (least, most)
        };
        Some(Int { form, low, high })
    }

    fn carried(
        &self,
        q: &mut Query,
        t: &mut Thread,
        id: Id,
        number: usize,
        value: Value,
    ) -> Option<Val> {
        let iteration = t.iterations.get(&id).copied().unwrap_or(Iteration::Any);
        let init = *self.shape.initial(id).get(number)?;
        let again = self.shape.exits(id, true);
        if let Some(number) = self.in_numbered_iterations(&t.iterations).get(&value) {
            return Some(Val::Int(Int::constant(*number)));
        }
        if matches!(iteration, Iteration::First | Iteration::Numbered(0)) {
            return self.of(q, t, init);
        }
        if iteration == Iteration::Next
            && let [(_, values)] = again[..]
            && self.shape.has_barrier(id)
            && self.steps_by(id, number).is_none()
        {
            let mut before = Thread::new(t.tag, t.iterations.clone());
            before.iterations.insert(id, Iteration::Same);
            before.lane = t.lane;
            if let Some(value) = self.of(q, &mut before, *values.get(number)?) {
                return Some(value);
            }
        }
        let any = self.anything(q, t, value)?;
        let Val::Int(mut int) = any else {
            return Some(any);
        };
        if let Some(values) = self.table(id, number) {
            self.say_row(q, t, id)?;
            int.low = int.low.max(*values.first()?);
            int.high = int.high.min(*values.last()?);
            return Some(Val::Int(int));
        }
        let start = self.int(q, t, init)?;
        // What counts is written as the index of a `for` is, so that all that is known of those holds of it.
        if let Some(step) = self.steps_by(id, number) {
            let iteration = self.iteration(q, t, id)?;
            int.form = start.form.plus(step, &iteration.form)?;
            let key = format!("{:?} in its type", int.form);
            if q.first_time(&key) {
                q.say(Formula::le(&Linear::constant(int.low), &int.form));
                q.say(Formula::le(&int.form, &Linear::constant(int.high)));
            }
        }
        for invariant in self.invariants_now(id, number) {
            let key = format!("{:?} {invariant:?} {:?}", int.form, start.form);
            let fact = match invariant {
                Invariant::NotBelow => {
                    int.low = int.low.max(start.low);
                    Formula::le(&start.form, &int.form)
                }
                Invariant::NotAbove => {
                    int.high = int.high.min(start.high);
                    Formula::le(&int.form, &start.form)
                }
                Invariant::Below(end) => {
                    let end = self.int(q, t, end)?;
                    int.high = int.high.min(end.high - 1);
                    Formula::lt(&int.form, &end.form)
                }
                Invariant::AtMost(end) => {
                    let end = self.int(q, t, end)?;
                    int.high = int.high.min(end.high);
                    Formula::le(&int.form, &end.form)
                }
                Invariant::Step(step) => {
                    let iteration = self.iteration(q, t, id)?;
                    let form = start.form.plus(step, &iteration.form);
                    form.and_then(|form| Formula::eq(&int.form, &form))
                }
                Invariant::Stride(stride) => {
                    let (iteration, stride) = (self.iteration(q, t, id)?, self.int(q, t, stride)?);
                    let far = q.product(&stride.form, &iteration.form);
                    let form = far.and_then(|far| far.plus(1, &start.form));
                    form.and_then(|form| Formula::eq(&int.form, &form))
                }
            };
            if q.first_time(&key) {
                q.say(fact);
            }
        }
        Some(Val::Int(int))
    }

    /// What a loop gives.
    fn left_by(
        &self,
        q: &mut Query,
        t: &mut Thread,
        id: Id,
        number: usize,
        value: Value,
    ) -> Option<Val> {
        let any = self.anything(q, t, value)?;
        let Val::Int(mut int) = any else {
            return Some(any);
        };
        let counts = matches!(self.shape.kind(id), InstKind::For { .. });
        let leaves = self.shape.exits(id, false);
        // Which of what it carries it hands on: that of its last iteration, if it is a `for`.
        let handed = match leaves.first() {
            Some((_, values)) if !counts => values.get(number).copied(),
            _last_or_none => self.shape.carried(id).get(number).copied(),
        };
        let mut carried = self.shape.carried(id).iter();
        let Some(its_number) = carried.position(|value| Some(*value) == handed) else {
            return Some(Val::Int(int));
        };
        let passes_on = leaves
            .iter()
            .all(|(_, values)| values.get(number).copied() == handed);
        let number = its_number;
        if (counts || !leaves.is_empty())
            && passes_on
            && let Some(values) = self.table(id, number)
        {
            let key = format!("{:?} in its table", int.form);
            if q.first_time(&key) {
                let one = |n: &i128| Formula::eq(&int.form, &Linear::constant(*n));
                let one: Option<Vec<Formula>> = values.iter().map(one).collect();
                q.say(one.map(Formula::any));
            }
            int.low = int.low.max(*values.first()?);
            int.high = int.high.min(*values.last()?);
        } else if (counts || !leaves.is_empty()) && passes_on {
            // What holds in every iteration holds of what the last iteration hands on.
            let init = *self.shape.initial(id).get(number)?;
            let start = self.int(q, t, init)?;
            for invariant in self.invariants(id, number) {
                let key = format!("{:?} left by {invariant:?} {:?}", int.form, start.form);
                let fact = match invariant {
                    Invariant::NotBelow => {
                        int.low = int.low.max(start.low);
                        Formula::le(&start.form, &int.form)
                    }
                    Invariant::NotAbove => {
                        int.high = int.high.min(start.high);
                        Formula::le(&int.form, &start.form)
                    }
                    Invariant::Below(_)
                    | Invariant::AtMost(_)
                    | Invariant::Step(_)
                    | Invariant::Stride(_) => None,
                };
                if q.first_time(&key) {
                    q.say(fact);
                }
            }
        }
        Some(Val::Int(int))
    }

    /// A form as a value of a type: itself if it does not wrap, else less a multiple of `2^w`.
    pub fn fitted(
        &self,
        q: &mut Query,
        t: &mut Thread,
        value: Value,
        form: Linear,
        bounds: (i128, i128),
    ) -> Option<Int> {
        let (least, most) = range(self.kernel.ty(value).scalar()?);
        let (low, high) = bounds;
        if least <= low && high <= most {
            return Some(Int { form, low, high });
        }
        let within = Int {
            low: low.max(least),
            high: high.min(most),
            form: form.clone(),
        };
        if form.as_constant().is_none() {
            let below = Formula::lt(&form, &Linear::constant(least))?;
            let above = Formula::lt(&Linear::constant(most), &form)?;
            let slot = (value, t.lane);
            let known = t.exact.contains(&slot);
            if !known && t.asks && self.excludes(q, t, Formula::any([below.clone(), above.clone()]))
            {
                t.exact.insert(slot);
            }
            if t.exact.contains(&slot) {
                q.say(below.negated());
                q.say(above.negated());
                return Some(within);
            }
        }
        let modulus = most - least + 1;
        let turns = (
            (low - least).div_euclid(modulus),
            (high - least).div_euclid(modulus),
        );
        if let Some(number) = form.as_constant() {
            return Some(Int::constant((number - least).rem_euclid(modulus) + least));
        }
        let key = format!("turns of {modulus} of {form:?} from {least}");
        let turn = q.symbol(&key, turns.0, turns.1);
        let form = form.plus(-modulus, &turn.form)?;
        if q.first_time(&key) {
            q.say(Formula::le(&Linear::constant(least), &form));
            q.say(Formula::le(&form, &Linear::constant(most)));
        }
        Some(Int {
            form,
            low: least,
            high: most,
        })
    }

    /// The quotient, rounded down, and the remainder of a number that is divided by a positive constant.
    pub fn floor(&self, q: &mut Query, a: &Int, divisor: i128) -> Option<(Int, Int)> {
        let (low, high) = (a.low.div_euclid(divisor), a.high.div_euclid(divisor));
        if low == high {
            let rest = a.form.shifted(-low * divisor)?;
            let rest = Int {
                form: rest,
                low: a.low - low * divisor,
                high: a.high - low * divisor,
            };
            return Some((Int::constant(low), rest));
        }
        let parts = self.floor_in_parts(q, a, divisor)?;
        if let Some((quotient, rest, is_exact)) = &parts
            && *is_exact
        {
            return Some((quotient.clone(), rest.clone()));
        }
        let key = format!("floor of {:?} by {divisor}", a.form);
        let quotient = q.symbol(&key, low, high);
        let rest = a.form.plus(-divisor, &quotient.form)?;
        if q.first_time(&key) {
            q.say(Some(Formula::at_least(rest.clone())));
            q.say(Formula::lt(&rest, &Linear::constant(divisor)));
            if let Some((sum, ..)) = &parts {
                q.say(Formula::eq(&quotient.form, &sum.form));
            }
            q.say_near(divisor, &a.form, &quotient.form);
            if divisor > 1 {
                q.say_below_multiples(divisor, &a.form, &quotient.form);
            }
        }
        if let Some((_, rest, _)) = parts {
            // One number is multiplied further more easily than a sum.
            return Some((quotient, rest));
        }
        let rest = Int {
            form: rest,
            low: 0,
            high: divisor - 1,
        };
        Some((quotient, rest))
    }

    /// As [`Subject::floor`], with the quotient as a sum: of what is a multiple of the divisor nothing is asked.
    /// `None` inside if nothing is; and whether the quotient of what is left is known.
    fn floor_in_parts(
        &self,
        q: &mut Query,
        a: &Int,
        divisor: i128,
    ) -> Option<Option<(Int, Int, bool)>> {
        // floor((divisor * whole + rest) / divisor) = whole + floor(rest / divisor)
        let (whole, rest) = divided(&a.form, divisor)?;
        q.divides(&whole);
        let bounds = q.bounds(&rest).filter(|_| whole.as_constant() != Some(0));
        let Some((low, high)) = bounds else {
            return Some(None);
        };
        let form = rest;
        let (quotient, rest) = self.floor(q, &Int { form, low, high }, divisor)?;
        let sum = Int {
            form: whole.plus(1, &quotient.form)?,
            low: a.low.div_euclid(divisor),
            high: a.high.div_euclid(divisor),
        };
        Some(Some((sum, rest, quotient.as_constant().is_some())))
    }

    /// As [`Subject::floor`], for bits: those of what is left are asked for next.
    pub fn floor_of_bits(&self, q: &mut Query, a: &Int, divisor: i128) -> Option<(Int, Int)> {
        match self.floor_in_parts(q, a, divisor)? {
            Some((quotient, rest, _)) => Some((quotient, rest)),
            None => self.floor(q, a, divisor),
        }
    }

    /// The quotient and the remainder (A2).
    pub fn quotient(&self, q: &mut Query, a: &Int, b: &Int) -> Option<(Int, Int)> {
        if let Some(divisor) = b.as_constant() {
            if divisor == 0 {
                return Some((Int::constant(0), Int::constant(0)));
            }
            if divisor > 0 && a.low >= 0 {
                return self.floor(q, a, divisor);
            }
            if divisor < 0 {
                return None;
            }
            // Toward zero: the remainder has the sign of the dividend.
            let key = format!("quotient of {:?} by {divisor}", a.form);
            let quotient = q.symbol(&key, a.low / divisor, a.high / divisor);
            let rest = a.form.plus(-divisor, &quotient.form)?;
            if q.first_time(&key) {
                let (zero, last) = (Linear::constant(0), divisor - 1);
                let up = Formula::all([
                    Formula::at_least(a.form.clone()),
                    Formula::le(&zero, &rest)?,
                    Formula::le(&rest, &Linear::constant(last))?,
                ]);
                let down = Formula::all([
                    Formula::lt(&a.form, &zero)?,
                    Formula::le(&rest, &zero)?,
                    Formula::le(&Linear::constant(-last), &rest)?,
                ]);
                q.say(Some(Formula::any([up, down])));
            }
            let rest = Int {
                form: rest,
                low: (-(divisor - 1)).max(a.low.min(0)),
                high: divisor - 1,
            };
            return Some((quotient, rest));
        }
        if a.low < 0 || b.low < 0 {
            return None;
        }
        let key = format!("quotient of {:?} by {:?}", a.form, b.form);
        let quotient = q.symbol(&key, 0, a.high);
        let rest = q.symbol(&format!("{key}, rest"), 0, a.high.min((b.high - 1).max(0)));
        if q.first_time(&key) {
            let whole = q.product(&b.form, &quotient.form)?;
            let sum = whole.plus(1, &rest.form)?;
            let divided = Formula::all([
                Formula::at_least(b.form.shifted(-1)?),
                Formula::eq(&a.form, &sum)?,
                Formula::lt(&rest.form, &b.form)?,
            ]);
            let zero = Linear::constant(0);
            let by_zero = Formula::all([
                Formula::eq(&b.form, &zero)?,
                Formula::eq(&quotient.form, &zero)?,
                Formula::eq(&rest.form, &zero)?,
            ]);
            let fact = if b.low >= 1 {
                divided
            } else {
                Formula::any([divided, by_zero])
            };
            q.say(Some(fact));
        }
        Some((quotient, rest))
    }

    fn operation(
        &self,
        q: &mut Query,
        t: &mut Thread,
        value: Value,
        (op, imm, args): (Op, Imm, &[Value]),
    ) -> Option<Val> {
        if let Some(query) = self.asked(q, t, op, imm) {
            return query.map(Val::Int);
        }
        if t.lane.is_some()
            && let Some(arranged) = self.arranged(q, t, value, (op, imm, args))
        {
            return arranged;
        }
        match self.scalar_of(t, value)? {
            Scalar::Bool => self.condition(q, t, value, op, args).map(Val::Bool),
            scalar if scalar.is_integer() => match op {
                Op::Select => {
                    let condition = self.truth_of(q, t, args[2]);
                    let (b, a) = (self.of(q, t, args[0])?, self.of(q, t, args[1])?);
                    self.choice(q, t, value, condition, a, b)
                }
                _arithmetic => self.arithmetic(q, t, value, op, args).map(Val::Int),
            },
            _float => None,
        }
    }

    /// What a query asks for: `None` if it is not a query, `Some(None)` if nothing is known of the answer.
    fn asked(&self, q: &mut Query, t: &Thread, op: Op, imm: Imm) -> Option<Option<Int>> {
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

    fn condition(
        &self,
        q: &mut Query,
        t: &mut Thread,
        value: Value,
        op: Op,
        args: &[Value],
    ) -> Option<Formula> {
        if matches!(op, Op::Eq | Op::Ne)
            && let Some(number) = self.constant_number(args[1])
            && (0..=1).contains(&number)
            && let Some(truth) = self.truth_as_number(q, t, args[0], 0)
        {
            return match (op == Op::Ne) == (number == 0) {
                true => Some(truth),
                false => truth.negated(),
            };
        }
        match op {
            Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge => {
                let (a, b) = (self.of(q, t, args[0])?, self.of(q, t, args[1])?);
                match (a, b) {
                    (Val::Int(a), Val::Int(b)) => {
                        let (a, b) = (&a.form, &b.form);
                        match op {
                            Op::Eq => Formula::eq(a, b),
                            Op::Ne => Formula::ne(a, b),
                            Op::Lt => Formula::lt(a, b),
                            Op::Le => Formula::le(a, b),
                            Op::Gt => Formula::lt(b, a),
                            _greater_or_equal => Formula::le(b, a),
                        }
                    }
                    (Val::Bool(a), Val::Bool(b)) => {
                        let same = Formula::any([
                            Formula::all([a.clone(), b.clone()]),
                            Formula::all([a.negated()?, b.negated()?]),
                        ]);
                        match op {
                            Op::Eq => Some(same),
                            Op::Ne => same.negated(),
                            _order => None,
                        }
                    }
                    (Val::Int(_), Val::Bool(_)) | (Val::Bool(_), Val::Int(_)) => None,
                }
            }
            Op::And | Op::Or | Op::Xor => {
                let (a, b) = (self.truth_of(q, t, args[0]), self.truth_of(q, t, args[1]));
                match op {
                    Op::And => Some(Formula::all([a, b])),
                    Op::Or => Some(Formula::any([a, b])),
                    _exclusive => Some(Formula::any([
                        Formula::all([a.clone(), b.negated()?]),
                        Formula::all([a.negated()?, b]),
                    ])),
                }
            }
            Op::Not => self.truth_of(q, t, args[0]).negated(),
            Op::Select => {
                let condition = self.truth_of(q, t, args[2]);
                let (b, a) = (self.of(q, t, args[0])?, self.of(q, t, args[1])?);
                match self.choice(q, t, value, condition, a, b)? {
                    Val::Bool(formula) => Some(formula),
                    Val::Int(_) => None,
                }
            }
            Op::Cast => match self.of(q, t, args[0])? {
                Val::Int(a) => Formula::ne(&a.form, &Linear::constant(0)),
                Val::Bool(a) => Some(a),
            },
            Op::All | Op::Any => self.of_all_components(q, t, op, args[0]),
            Op::Extract => match self.component(q, t, args)? {
                Val::Bool(formula) => Some(formula),
                Val::Int(_) => None,
            },
            _another => None,
        }
    }

    fn arithmetic(
        &self,
        q: &mut Query,
        t: &mut Thread,
        value: Value,
        op: Op,
        args: &[Value],
    ) -> Option<Int> {
        let scalar = self.kernel.ty(value).scalar()?;
        let (least, most) = range(scalar);
        match op {
            Op::Cast => {
                return match self.of(q, t, args[0])? {
                    Val::Int(a) => self.fitted(q, t, value, a.form, (a.low, a.high)),
                    Val::Bool(a) => {
                        let (one, zero) = (Int::constant(1), Int::constant(0));
                        let chosen = self.choice(q, t, value, a, Val::Int(one), Val::Int(zero));
                        match chosen? {
                            Val::Int(int) => Some(int),
                            Val::Bool(_) => None,
                        }
                    }
                };
            }
            // The same bits: of an integer the one that is equal to it modulo two to their number (A1).
            Op::AsType => {
                let a = self.int(q, t, *args.first()?)?;
                return self.fitted(q, t, value, a.form, (a.low, a.high));
            }
            Op::Extract => {
                return match self.component(q, t, args)? {
                    Val::Int(int) => Some(int),
                    Val::Bool(_) => None,
                };
            }
            _another => {}
        }
        let a = self.int(q, t, *args.first()?)?;
        match op {
            Op::Not => {
                return Some(Int {
                    form: a.form.times(-1)?.shifted(least + most)?,
                    low: least + most - a.high,
                    high: least + most - a.low,
                });
            }
            Op::Neg => return self.fitted(q, t, value, a.form.times(-1)?, (-a.high, -a.low)),
            Op::Abs => return self.distance(q, t, value, &a, &Int::constant(0)),
            Op::Popcount | Op::Clz | Op::Ctz => {
                let key = self.key(q, t, value, "");
                return Some(q.symbol(&key, 0, scalar.bits().into()));
            }
            _another => {}
        }
        let b = self.int(q, t, *args.get(1)?)?;
        match op {
            Op::Add => {
                let bounds = (a.low + b.low, a.high + b.high);
                self.fitted(q, t, value, a.form.plus(1, &b.form)?, bounds)
            }
            Op::Sub => {
                let bounds = (a.low - b.high, a.high - b.low);
                self.fitted(q, t, value, a.form.plus(-1, &b.form)?, bounds)
            }
            Op::Mul => {
                let mut ends = Vec::new();
                for x in [a.low, a.high] {
                    for y in [b.low, b.high] {
                        ends.push(x.checked_mul(y)?);
                    }
                }
                ends.sort_unstable();
                let product = q.product(&a.form, &b.form)?;
                // Two factors of 64 bits fill what the solver counts in.
                if ends[0] < -(1 << 90) || ends[3] > 1 << 90 {
                    return None;
                }
                self.fitted(q, t, value, product, (ends[0], ends[3]))
            }
            Op::Div => self.quotient(q, &a, &b).map(|(quotient, _)| quotient),
            Op::Rem => self.quotient(q, &a, &b).map(|(_, rest)| rest),
            Op::Min | Op::Max => self.lesser_or_greater(q, t, value, (op == Op::Min, &a, &b)),
            Op::Clamp => {
                let high = self.int(q, t, *args.get(2)?)?;
                let raised = self.lesser_or_greater(q, t, value, (false, &a, &b))?;
                self.lesser_or_greater(q, t, value, (true, &raised, &high))
            }
            Op::AbsDiff => self.distance(q, t, value, &a, &b),
            Op::AddSat => {
                let bounds = (a.low + b.low, a.high + b.high);
                let form = a.form.plus(1, &b.form)?;
                self.saturated(q, t, value, form, bounds)
            }
            Op::SubSat if least < 0 => {
                let bounds = (a.low - b.high, a.high - b.low);
                let form = a.form.plus(-1, &b.form)?;
                self.saturated(q, t, value, form, bounds)
            }
            Op::SubSat => {
                let difference = Int {
                    form: a.form.plus(-1, &b.form)?,
                    low: 0,
                    high: a.high,
                };
                let condition = Formula::le(&b.form, &a.form)?;
                let zero = Val::Int(Int::constant(0));
                match self.choice(q, t, value, condition, Val::Int(difference), zero)? {
                    Val::Int(int) => Some(int),
                    Val::Bool(_) => None,
                }
            }
            Op::Shl => {
                let count = b.as_constant()?.rem_euclid(i128::from(scalar.bits()));
                let factor = 1i128 << count;
                let bounds = (a.low.checked_mul(factor)?, a.high.checked_mul(factor)?);
                self.fitted(q, t, value, a.form.times(factor)?, bounds)
            }
            Op::Shr | Op::ShrExact => match b.as_constant() {
                Some(count) => {
                    let count = count.rem_euclid(i128::from(scalar.bits()));
                    self.floor(q, &a, 1 << count).map(|(quotient, _)| quotient)
                }
                None if a.low >= 0 => {
                    let key = self.key(q, t, value, "");
                    let shifted = q.symbol(&key, 0, a.high);
                    q.say(Formula::le(&shifted.form, &a.form));
                    Some(shifted)
                }
                None => None,
            },
            Op::And | Op::Or | Op::Xor => self.bitwise(q, t, value, op, a, b),
            _another => None,
        }
    }
}

/// Conditions under which an instruction is reached.
impl Subject<'_> {
    /// Whether a thread comes to the end of these instructions. A loop that returns inside counts as one
    /// that does not: that says less.
    fn falls_through(&self, q: &mut Query, t: &mut Thread, ids: &[Id]) -> Option<Formula> {
        let mut all = Vec::new();
        for &id in ids {
            match self.shape.kind(id) {
                InstKind::Break(_) | InstKind::Continue(_) | InstKind::Return => {
                    return Some(Formula::FALSE);
                }
                InstKind::If { condition, .. } => {
                    let then = self.shape.region(Some(id), 0).to_vec();
                    let otherwise = self.shape.region(Some(id), 1).to_vec();
                    let a = self.falls_through(q, t, &then)?;
                    let b = self.falls_through(q, t, &otherwise)?;
                    if a.is_true() && b.is_true() {
                        continue;
                    }
                    let condition = self.truth_of(q, t, *condition);
                    let not = condition.negated()?;
                    all.push(Formula::any([not, a]));
                    all.push(Formula::any([condition, b]));
                }
                _flat_or_loop => {}
            }
        }
        Some(Formula::all(all))
    }

    /// Adds to the thread's path what holds where it makes an instruction.
    pub fn reach(&self, q: &mut Query, t: &mut Thread, id: Id) {
        let mut chain = vec![id];
        let mut at = id;
        while let Some((holder, _)) = self.shape.statements[at].parent {
            chain.push(holder);
            at = holder;
        }
        chain.reverse();
        for (i, &at) in chain.iter().enumerate() {
            let statement = self.shape.statements[at];
            let (holder, number) = match statement.parent {
                Some((holder, number)) => (Some(holder), number),
                None => (None, 0),
            };
            let before = self.shape.region(holder, number)[..statement.place].to_vec();
            let falls = self.falls_through(q, t, &before);
            if let Some(falls) = falls.filter(|f| !f.is_true()) {
                t.path.push(falls);
            }
            let Some(&next) = chain.get(i + 1) else {
                continue;
            };
            let side = self.shape.statements[next]
                .parent
                .map_or(0, |(_, side)| side);
            match self.shape.kind(at) {
                InstKind::If { condition, .. } => {
                    let condition = self.truth_of(q, t, *condition);
                    let holds = if side == 0 {
                        Some(condition)
                    } else {
                        condition.negated()
                    };
                    t.path.extend(holds);
                }
                InstKind::For { body, .. } => {
                    if let Some(counter) = body.params.first() {
                        self.int(q, t, *counter);
                    }
                }
                _flat_or_loop => {}
            }
        }
    }

    /// The values that a path into an element is made of.
    pub fn steps(path: &[Step]) -> impl Iterator<Item = Value> + '_ {
        path.iter().filter_map(|step| match step {
            Step::Index(value) => Some(*value),
            Step::Field(_) => None,
        })
    }

    /// Whether races on a space's objects can be.
    pub fn is_shared(space: AddressSpace) -> bool {
        matches!(
            space,
            AddressSpace::Device
                | AddressSpace::Threadgroup
                | AddressSpace::Texture
                | AddressSpace::Imageblock
        )
    }
}
