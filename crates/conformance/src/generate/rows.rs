//! Rows: values that are the same along a row of a threadgroup and go on from iteration to iteration around barriers,
//! as the sum of each row does. Compilers may keep one for many threads, which must hold where the grid ends
//! within a threadgroup, too: some kernels are about nothing else ([`threadgroup_of_rows`]).

use invar_interp::Grid;
use invar_ir::inst::InstKind;
use invar_ir::{Dim, Level, Memory, Place, Scalar, Scope, Spaces, Step, Type, Value};

use super::generator::{AFTER, Generator, Loop};
use super::objects::Owner;
use crate::random::Random;

/// Threadgroups whose rows are several vectors long for one processor or another.
const OF_ROWS: [[u32; 3]; 16] = [
    [32, 1, 4],
    [32, 1, 4],
    [32, 4, 1],
    [64, 1, 2],
    [64, 2, 1],
    [32, 2, 2],
    [48, 1, 3],
    [100, 1, 2],
    [40, 3, 1],
    [16, 1, 5],
    [16, 4, 2],
    [8, 4, 1],
    [128, 1, 1],
    [160, 1, 1],
    [128, 1, 2],
    [256, 1, 1],
];

/// A threadgroup of at most so many threads with rows, and a grid that mostly ends within one.
pub(super) fn threadgroup_of_rows(random: &mut Random, most: u32) -> Option<([u32; 3], Grid)> {
    let fits = OF_ROWS.into_iter().filter(|[x, y, z]| x * y * z <= most);
    let fits: Vec<[u32; 3]> = fits.collect();
    if fits.is_empty() {
        return None;
    }
    let size = random.pick(&fits);
    let groups = [1 + random.below(2) as u32, 1, 1 + random.below(2) as u32];
    let grid = std::array::from_fn(|d| {
        let missing = match random.below(6) {
            0 => 0,
            1 => random.below(size[d] as usize),
            // So few that more than one vector of threads is mostly left.
            _ => random.below(size[d].div_ceil(2) as usize),
        };
        groups[d] * size[d] - missing as u32
    });
    Some((size, Grid::Threads(grid)))
}

/// What a loop has at hand.
#[derive(Clone, Default)]
struct Hand {
    /// What follows from the row, the iteration and what is the same for all.
    of_rows: Vec<Value>,
    /// What follows from the column, too.
    of_threads: Vec<Value>,
}

/// A value that goes round.
#[derive(Clone, Copy)]
struct Carried {
    scalar: Scalar,
    by_row: bool,
}

impl Hand {
    fn add(&mut self, value: Value, by_row: bool) {
        match by_row {
            true => self.of_rows.push(value),
            false => self.of_threads.push(value),
        }
    }
}

impl Generator<'_> {
    /// The dimensions that number the rows of a threadgroup, if it has some and they can meet here.
    pub(super) fn row_dims(&self) -> Vec<Dim> {
        let can = self.size[0] >= 2 && self.control >= Level::Threadgroup && self.around.is_none();
        let dims = [(Dim::Y, self.size[1]), (Dim::Z, self.size[2])];
        let rows = dims.into_iter().filter(|(_, size)| can && *size >= 2);
        rows.map(|(dim, _)| dim).collect()
    }

    /// What a kernel about rows does, and how much may follow: little before them, for the code of long kernels
    /// is for fewer threads; for most of them where a short loop is all that follows.
    pub(super) fn about_rows(&mut self) -> usize {
        let mut dims = self.row_dims();
        if dims.is_empty() {
            // Threadgroups of one row, of which the grid has several.
            dims = vec![Dim::Z];
        }
        if self.random.one_in(2) {
            self.budget = 0;
            let hand = self.rows_of(&dims, 0);
            self.behind(&hand);
            return 0;
        }
        self.budget = self.random.below(self.options.instructions.min(20) / 2);
        self.body(1);
        self.budget = 4;
        self.rows(&dims);
        if self.random.one_in(4) {
            self.rows(&dims);
        }
        self.budget = 0;
        AFTER
    }

    /// A loop of rows, and what it begins with.
    pub(super) fn rows(&mut self, dims: &[Dim]) {
        self.rows_of(dims, 1);
    }

    /// The same, with so many loops of its kind inside one another; and what is at hand then.
    fn rows_of(&mut self, dims: &[Dim], depth: u32) -> Hand {
        let number = self.k.kernel().allocs.len();
        let tile = self
            .k
            .alloc_threadgroup(&format!("line{number}"), Scalar::U32, self.threads);
        let mut hand = Hand::default();
        for dim in dims {
            let row = match self.random.below(2) {
                0 => self.k.thread_position_in_grid(*dim),
                _ => self.k.thread_position_in_threadgroup(*dim),
            };
            hand.of_rows.push(row);
        }
        let factor = self.random_small(7);
        let factor = self.constant_u32(factor);
        let row = self.random.pick(&hand.of_rows);
        hand.of_rows.push(self.k.mul(row, factor));
        let column = match self.random.below(2) {
            0 => self.k.thread_position_in_grid(Dim::X),
            _ => self.lane,
        };
        hand.of_threads.push(column);
        if self.random.one_in(2) {
            let value = self.read(&hand, true);
            hand.of_rows.extend(value);
        }
        self.iterations(&mut hand, tile, depth);
        hand
    }

    /// A loop that adds up what threads read, to what a row has.
    fn behind(&mut self, hand: &Hand) {
        let like = Carried {
            scalar: self.number_type(),
            by_row: false,
        };
        let of_row = Carried {
            by_row: true,
            ..like
        };
        let init = self.operand(hand, of_row);
        let any = self.uniform(Scalar::U32);
        let most = self.constant_u32(7);
        let upper = self.k.and(any, most);
        let sum = self.add_up_to(upper, hand, like, &[init]);
        self.add(sum, Level::Varying);
    }

    /// A loop around barriers whose iterations are the same for the threadgroup.
    fn iterations(&mut self, hand: &mut Hand, tile: Memory, depth: u32) {
        let carried: Vec<Carried> = (0..1 + self.random.below(3))
            .map(|at| Carried {
                scalar: self.number_type(),
                by_row: at == 0 || !self.random.one_in(3),
            })
            .collect();
        let init: Vec<Value> = carried.iter().map(|c| self.operand(hand, *c)).collect();
        let upper = match self.random.below(4) {
            0 => {
                let any = self.uniform(Scalar::U32);
                let most = self.constant_u32(4);
                self.k.rem(any, most)
            }
            1 => self.constant_u32(1),
            _ => {
                let iterations = 2 + self.random_small(2);
                self.constant_u32(iterations)
            }
        };
        let [lower, step] = [0, 1].map(|n| self.constant_u32(n));
        let types: Vec<Type> = carried.iter().map(|c| Type::Scalar(c.scalar)).collect();
        let mark = self.mark();
        self.control = self.control.min(Level::Threadgroup);
        self.around = Some(Loop {
            carried: types.clone(),
            counter: None,
            control: self.control,
        });
        let with_index: Vec<Type> = [Type::U32].into_iter().chain(types.clone()).collect();
        let params = self.k.open_region(&with_index);
        let mut inner = hand.clone();
        inner.of_rows.push(params[0]);
        for (param, carried) in params[1..].iter().zip(&carried) {
            inner.add(*param, carried.by_row);
            self.add(*param, Level::Varying);
        }
        let counter = self.random.one_in(4).then(|| {
            let done = self.k.ge(params[0], upper);
            self.k.if_(done, |k| k.break_(&params));
            self.k.add(params[0], step)
        });
        self.iteration(&mut inner, tile, depth, (params[0], counter), &carried);
        let next = self.next_of(&inner, &params[1..], &carried);
        let next: Vec<Value> = counter.into_iter().chain(next).collect();
        self.k.yield_(&next);
        let body = self.k.close_region();
        self.release(mark);
        let results = if counter.is_some() {
            let init = [lower].into_iter().chain(init).collect();
            let results = self.k.push(InstKind::Loop { init, body }, &with_index);
            results[1..].iter().copied().collect()
        } else {
            let kind = InstKind::For {
                lower,
                upper,
                step,
                init: init.into(),
                body,
            };
            self.k.push(kind, &types)
        };
        for (value, carried) in results.into_iter().zip(&carried) {
            hand.add(value, carried.by_row);
            self.add(value, Level::Varying);
        }
    }

    /// What an iteration does: something on both sides of a barrier, and perhaps it leaves or begins the next, of a
    /// `loop` with this counter.
    fn iteration(
        &mut self,
        hand: &mut Hand,
        tile: Memory,
        depth: u32,
        (index, counter): (Value, Option<Value>),
        carried: &[Carried],
    ) {
        if self.random.one_in(4) {
            self.step(hand, tile, depth);
        }
        let spaces = [Spaces::NONE, Spaces::THREADGROUP, Spaces::DEFAULT];
        let spaces = self.random.pick(&spaces);
        self.k.barrier(Scope::Threadgroup, spaces);
        for _ in 0..1 + self.random.below(2) {
            self.step(hand, tile, depth);
        }
        if self.random.one_in(5) {
            let at = self.random_small(3);
            let at = self.constant_u32(at);
            let here = self.k.eq(index, at);
            let values = carried.iter().map(|c| self.operand(hand, *c));
            let values: Vec<Value> = counter.into_iter().chain(values).collect();
            let leaves = self.random.one_in(2);
            self.k.if_(here, |k| match leaves {
                true => k.break_(&values),
                false => k.continue_(&values),
            });
        }
        if self.random.one_in(4) {
            self.k.barrier(Scope::Threadgroup, spaces);
            self.step(hand, tile, depth);
        }
    }

    /// What goes on to the next iteration: mostly what follows from its earlier self, or what another had.
    fn next_of(&mut self, hand: &Hand, params: &[Value], carried: &[Carried]) -> Vec<Value> {
        let mut next = Vec::new();
        for (param, own) in params.iter().zip(carried) {
            let others = params.iter().zip(carried);
            let others = others.filter(|(_, c)| c.scalar == own.scalar && c.by_row == own.by_row);
            let others: Vec<Value> = others.map(|(param, _)| *param).collect();
            next.push(match self.random.below(5) {
                0 => self.random.pick(&others),
                1 => self.add_up(hand, *own, &[*param]),
                2 | 3 => {
                    let more = self.operand(hand, *own);
                    self.combine(*param, more)
                }
                _ => self.operand(hand, *own),
            });
        }
        next
    }

    /// Something of an iteration, of which mostly a value comes.
    fn step(&mut self, hand: &mut Hand, tile: Memory, depth: u32) {
        self.budget = self.budget.saturating_sub(1);
        let like = Carried {
            scalar: self.number_type(),
            by_row: !self.random.one_in(4),
        };
        let value = match self.random.below(12) {
            0..=2 => {
                let init: Vec<Value> = (0..1 + self.random.below(2))
                    .map(|_| self.operand(hand, like))
                    .collect();
                Some(self.add_up(hand, like, &init))
            }
            3 | 4 => Some(self.choice(hand, like)),
            5 => self.read(hand, like.by_row),
            6 => Some(self.exchange_line(hand, tile, like)),
            7 => Some(self.through_array(hand, like)),
            8 if depth > 0 => {
                self.iterations(hand, tile, depth - 1);
                None
            }
            9 if self.budget > 0 => {
                self.statement(0);
                None
            }
            _ => Some(self.combined(hand, like)),
        };
        if let Some(value) = value {
            hand.add(value, like.by_row);
            self.add(value, Level::Varying);
        }
    }

    /// A type that can be added up.
    fn number_type(&mut self) -> Scalar {
        let numbers = self.palette.iter().copied();
        let numbers: Vec<Scalar> = numbers.filter(|s| *s != Scalar::Bool).collect();
        self.random.pick(&numbers)
    }

    /// Something at hand of that type, rather late.
    fn operand(&mut self, hand: &Hand, like: Carried) -> Value {
        let from = match like.by_row || self.random.one_in(4) {
            true => &hand.of_rows,
            false => &hand.of_threads,
        };
        let back = (self.random.below(from.len())).min(self.random.below(from.len()));
        let value = from[from.len() - 1 - back];
        let ty = Type::Scalar(like.scalar);
        match self.k.ty(value) == ty {
            true => value,
            false => self.k.cast(value, ty),
        }
    }

    /// An operation on two of those at hand.
    fn combined(&mut self, hand: &Hand, like: Carried) -> Value {
        let [a, b] = [0; 2].map(|_| self.operand(hand, like));
        self.combine(a, b)
    }

    fn combine(&mut self, a: Value, b: Value) -> Value {
        let is_float = self.k.ty(a).scalar().is_some_and(Scalar::is_float);
        match self.random.below(6) {
            0..=2 => self.k.add(a, b),
            3 => self.k.mul(a, b),
            4 => self.k.min(a, b),
            _ if is_float => {
                let root = self.k.sqrt(b);
                self.k.div(a, root)
            }
            _ => self.k.xor(a, b),
        }
    }

    /// Goes on from values in a loop whose iterations the row, the column or a constant counts; threads may leave it
    /// one by one.
    fn add_up(&mut self, hand: &Hand, like: Carried, init: &[Value]) -> Value {
        let count = self.count_like(like);
        let most = self.constant_u32(3);
        let upper = match self.random.below(2) {
            0 => {
                let count = self.operand(hand, count);
                self.k.and(count, most)
            }
            _ => most,
        };
        self.add_up_to(upper, hand, like, init)
    }

    /// A number of iterations: what a row adds up counts for all of it.
    fn count_like(&mut self, like: Carried) -> Carried {
        Carried {
            scalar: Scalar::U32,
            by_row: like.by_row || self.random.one_in(2),
        }
    }

    fn add_up_to(&mut self, upper: Value, hand: &Hand, like: Carried, init: &[Value]) -> Value {
        let [lower, step] = [0, 1].map(|n| self.constant_u32(n));
        let types: Vec<Type> = init.iter().map(|v| self.k.ty(*v)).collect();
        let with_index: Vec<Type> = [Type::U32].into_iter().chain(types.clone()).collect();
        let params = self.k.open_region(&with_index);
        let mut inner = hand.clone();
        inner.of_rows.push(params[0]);
        let mut next = Vec::new();
        for param in &params[1..] {
            let read = match self.random.below(2) {
                0 => self.read(&inner, like.by_row),
                _ => None,
            };
            if let Some(read) = read {
                inner.add(read, like.by_row);
            }
            let other = self.operand(&inner, like);
            let value = self.combine(*param, other);
            inner.add(value, like.by_row);
            next.push(value);
        }
        if self.random.one_in(6) {
            let count = self.count_like(like);
            let limit = self.operand(hand, count);
            let enough = self.k.gt(params[0], limit);
            self.k.if_(enough, |k| k.break_(&params[1..]));
        }
        if self.random.one_in(4) {
            next.reverse();
        }
        self.k.yield_(&next);
        let kind = InstKind::For {
            lower,
            upper,
            step,
            init: init.iter().copied().collect(),
            body: self.k.close_region(),
        };
        self.k.push(kind, &types)[0]
    }

    /// One value or another, as the row or the thread says.
    fn choice(&mut self, hand: &Hand, like: Carried) -> Value {
        let [a, b, c, d] = [0; 4].map(|_| self.operand(hand, like));
        let condition = self.k.lt(a, b);
        if self.random.one_in(2) {
            return self.k.select(c, d, condition);
        }
        self.k.open_region(&[]);
        let then = self.combined(hand, like);
        self.k.yield_(&[then]);
        let then = self.k.close_region();
        self.k.open_region(&[]);
        self.k.yield_(&[d]);
        let otherwise = self.k.close_region();
        self.k.if_regions(condition, then, otherwise)[0]
    }

    /// Through the threadgroup: each thread leaves a value and takes another's, rows one for all their threads.
    fn exchange_line(&mut self, hand: &Hand, tile: Memory, like: Carried) -> Value {
        let number = |by_row| Carried {
            scalar: Scalar::U32,
            by_row,
        };
        let by_row = self.random.one_in(2);
        let left = self.operand(hand, number(by_row));
        self.k.store(Place::element(tile, self.lane), left);
        self.k.barrier(Scope::Threadgroup, Spaces::THREADGROUP);
        let from = self.operand(hand, number(like.by_row));
        let threads = self.constant_u32(self.threads);
        let from = self.k.rem(from, threads);
        let taken = self.k.load(Place::element(tile, from));
        self.k.barrier(Scope::Threadgroup, Spaces::THREADGROUP);
        taken
    }

    /// Through an array of the thread.
    fn through_array(&mut self, hand: &Hand, like: Carried) -> Value {
        let length = 1 + self.random_small(3);
        let array = self.k.alloc_thread("kept", like.scalar, length);
        let count = Carried {
            scalar: Scalar::U32,
            by_row: like.by_row,
        };
        let length = self.constant_u32(length);
        let [to, from] = [0; 2].map(|_| {
            let index = self.operand(hand, count);
            self.k.rem(index, length)
        });
        let value = self.operand(hand, like);
        self.k.store(Place::element(array, to), value);
        self.k.load(Place::element(array, from))
    }

    /// A scalar of an input, at an element that the row or the thread says; mostly there is one.
    fn read(&mut self, hand: &Hand, by_row: bool) -> Option<Value> {
        let object = self.choose(|object| object.owner == Owner::Input)?;
        let [a, b] = [0; 2].map(|_| {
            let scalar = Scalar::U32;
            self.operand(hand, Carried { scalar, by_row })
        });
        let index = self.k.add(a, b);
        let length = self.constant_u32(object.length as u32 + 1);
        let index = self.k.rem(index, length);
        let mut place = Place::element(object.memory, index);
        let first = self.constant_u32(0);
        let steps = match self.first_value(object.element, first, &mut place) {
            Type::Matrix { .. } => 2,
            Type::Vector(..) => 1,
            Type::Scalar(_) | Type::SimdgroupMatrix { .. } | Type::Event => 0,
        };
        place.path.extend((0..steps).map(|_| Step::Index(first)));
        Some(self.k.load(place))
    }
}
