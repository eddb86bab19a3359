//! Edges: elements that threads load where a condition says that their place has one. Elsewhere the index lies
//! anywhere, mostly far away: what a compiler proves of the threads that go on holds for no others.

use invar_interp::Grid;
use invar_ir::{Const, Dim, Level, Place, Scalar, Scope, Spaces, Step, Type, Value};

use super::generator::{AFTER, Generator};
use super::objects::Owner;
use crate::case::Data;
use crate::random::Random;

/// Threadgroups of several rows, and some of one.
const WITH_EDGES: [[u32; 3]; 14] = [
    [8, 8, 1],
    [16, 8, 1],
    [16, 16, 1],
    [32, 2, 1],
    [32, 4, 1],
    [32, 8, 1],
    [64, 4, 1],
    [128, 2, 1],
    [16, 4, 4],
    [33, 3, 1],
    [5, 5, 1],
    [4, 32, 1],
    [64, 1, 1],
    [256, 1, 1],
];
/// From one place to the next where only one has an element.
const FAR: [u64; 4] = [1, 300, 100_000, 0x1000_0000];
/// The most iterations of a loop at an edge.
const ITERATIONS: u64 = 5;

/// A threadgroup of at most so many threads, and a grid of a few.
pub(super) fn threadgroup_with_edges(random: &mut Random, most: u32) -> Option<([u32; 3], Grid)> {
    let fits = WITH_EDGES.into_iter().filter(|[x, y, z]| x * y * z <= most);
    let fits: Vec<[u32; 3]> = fits.collect();
    if fits.is_empty() {
        return None;
    }
    let size = random.pick(&fits);
    let groups = [1 + random.below(2) as u32, 1 + random.below(2) as u32, 1];
    let missing = match random.below(3) {
        0 => random.below(size[0] as usize) as u32,
        _ => 0,
    };
    let mut grid: [u32; 3] = std::array::from_fn(|d| groups[d] * size[d]);
    grid[0] -= missing;
    Some((size, Grid::Threads(grid)))
}

/// Which threads load which elements: those at `from` and the next, `count` together, from one to the next
/// `step` elements further; behind each of them there are `rest` more.
struct Edge {
    from: u64,
    count: u64,
    step: u64,
    rest: u64,
}

impl Edge {
    /// Of an object with so many elements, at least one.
    fn of(length: u64, random: &mut Random) -> Edge {
        let from = match random.below(3) {
            0 => 1 + random.below(3) as u64,
            _ => 0,
        };
        let count = (1 + random.below(5) as u64).min(length);
        if count == 1 {
            let (step, rest) = (random.pick(&FAR), length - 1);
            return Edge {
                from,
                count,
                step,
                rest,
            };
        }
        let most = (length - 1) / (count - 1);
        let step = match random.below(3) {
            0 => 1 + random.below(most as usize) as u64,
            _ => most,
        };
        let rest = length - 1 - (count - 1) * step;
        Edge {
            from,
            count,
            step,
            rest,
        }
    }
}

impl Generator<'_> {
    /// What a kernel about edges does, and how much may follow: little, since accesses that are not at edges leave
    /// their buffers often, and compilers give those ways of their own.
    pub(super) fn about_edges(&mut self) -> usize {
        for _ in 0..1 + self.random.below(3) {
            self.at_an_edge();
            if self.random.one_in(4) {
                self.k.barrier(Scope::Threadgroup, Spaces::DEFAULT);
            }
        }
        self.budget = 0;
        match self.random.below(3) {
            0 => AFTER,
            _ => 0,
        }
    }

    /// Where a thread stands, in one of the dimensions.
    fn coordinate(&mut self) -> Value {
        match self.random.below(8) {
            0..=2 => self.k.thread_position_in_grid(Dim::Y),
            3 => self.k.thread_position_in_threadgroup(Dim::Y),
            4 => self.k.thread_position_in_grid(Dim::Z),
            5 => self.lane,
            _ => self.k.thread_position_in_grid(Dim::X),
        }
    }

    /// A number that the host gives, or a constant.
    fn given(&mut self, number: u64) -> Value {
        let count = self.k.kernel().params.len();
        let bits = number;
        let scalar = Scalar::U32;
        if count > 14 || self.random.one_in(2) {
            return self.k.constant(Const { scalar, bits });
        }
        self.data.push(Data::Scalar(vec![Const { scalar, bits }]));
        self.k.scalar(&format!("edge{count}"), Type::Scalar(scalar))
    }

    /// A load of the threads that a condition on their place picks.
    pub(super) fn at_an_edge(&mut self) {
        let Some(object) = self.choose(|o| o.owner == Owner::Input && o.length > 0) else {
            return;
        };
        let edge = Edge::of(object.length, &mut self.random);
        let at = self.coordinate();
        let end = self.given(edge.from + edge.count);
        let mut condition = self.k.lt(at, end);
        if edge.from > 0 {
            let first = self.given(edge.from);
            let reached = self.k.ge(at, first);
            condition = self.k.and(condition, reached);
        }
        // Beside it another place of the thread, a loop's index, or nothing.
        let beside = match self.random.below(3) {
            0 => {
                let other = self.coordinate();
                let limit = self.given(edge.rest + 1);
                let inside = self.k.lt(other, limit);
                condition = self.k.and(condition, inside);
                Some(other)
            }
            _ => None,
        };
        if self.random.one_in(3) {
            let any = self.condition();
            condition = self.k.and(condition, any);
        }
        // What has an effect before an `if` keeps threads together that would part.
        if self.random.one_in(2) {
            self.store();
        }
        let zero = self.constant_u32(0);
        let mut place = Place::element(object.memory, zero);
        let ty = self.first_value(object.element, zero, &mut place);
        let (ty, place) = match ty {
            Type::Matrix { scalar, rows, .. } => {
                place.path.push(Step::Index(zero));
                (Type::Vector(scalar, rows), place)
            }
            ty => (ty, place),
        };
        let mark = self.mark();
        self.control = Level::Varying;
        self.k.open_region(&[]);
        let first = self.given(edge.from);
        let step = self.given(edge.step);
        let back = self.k.sub(at, first);
        let mut index = self.k.mul(back, step);
        if let Some(beside) = beside {
            index = self.k.add(index, beside);
        }
        let value = match beside {
            None if self.random.one_in(2) => self.iterations_at(index, edge.rest, place, ty),
            _ => self.load_at(index, place),
        };
        self.k.yield_(&[value]);
        let then = self.k.close_region();
        self.release(mark);
        let mark = self.mark();
        self.control = Level::Varying;
        self.k.open_region(&[]);
        let other = self.get(ty).value;
        self.k.yield_(&[other]);
        let otherwise = self.k.close_region();
        self.release(mark);
        for value in self.k.if_regions(condition, then, otherwise) {
            self.add(value, Level::Varying);
        }
    }

    /// A load at an index, which is called otherwise at times.
    fn load_at(&mut self, index: Value, mut place: Place) -> Value {
        let ty = match self.random.below(6) {
            0 => Type::I32,
            1 if self.wide() => Type::U64,
            2 if self.wide() => Type::Scalar(Scalar::I64),
            _ => Type::U32,
        };
        place.index = match ty == self.k.ty(index) {
            true => index,
            false => self.k.cast(index, ty),
        };
        self.k.load(place)
    }

    /// What is loaded at an index and those behind it, added up if it is an integer, else the last.
    fn iterations_at(&mut self, index: Value, rest: u64, place: Place, ty: Type) -> Value {
        let iterations = self.given(rest.min(ITERATIONS - 1) + 1);
        let [lower, step] = [0, 1].map(|n| self.constant_u32(n));
        let init = self.get(ty).value;
        let adds = ty.is_integer_scalar();
        let results = self
            .k
            .for_(lower, iterations, step, &[init], |k, i, carried| {
                let mut place = place.clone();
                place.index = k.add(index, i);
                let value = k.load(place);
                vec![if adds {
                    k.add(carried[0], value)
                } else {
                    value
                }]
            });
        results[0]
    }
}
