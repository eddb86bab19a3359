//! Rows: values that are the same along a row of a threadgroup and go on from round to round around barriers,
//! as the sum of each row does. Compilers may keep one for many threads.

use invar_ir::inst::InstKind;
use invar_ir::{Dim, Level, Scope, Spaces, Type, Value};

use super::Maker;

impl Maker<'_> {
    /// The dimensions that number the rows of a threadgroup, if it has some and they can meet here.
    pub(super) fn row_dims(&self) -> Vec<Dim> {
        let can = self.size[0] >= 2 && self.control >= Level::Threadgroup && self.around.is_none();
        let dims = [(Dim::Y, self.size[1]), (Dim::Z, self.size[2])];
        let rows = dims.into_iter().filter(|(_, size)| can && *size >= 2);
        rows.map(|(dim, _)| dim).collect()
    }

    pub(super) fn rows(&mut self, dims: &[Dim]) {
        let dim = self.random.pick(dims);
        let row = match self.random.below(2) {
            0 => self.k.thread_position_in_grid(dim),
            _ => self.k.thread_position_in_threadgroup(dim),
        };
        let factor = self.random_small(7);
        let factor = self.constant_u32(factor);
        let other = self.k.mul(row, factor);
        let rounds = self.random.below(4) as u32;
        let [lower, upper, step] = [0, rounds, 1].map(|n| self.constant_u32(n));
        let types = [Type::U32; 2];
        let params = self.k.open_region(&[Type::U32; 3]);
        self.k.barrier(Scope::Threadgroup, Spaces::NONE);
        let one = self.add_up(row, params[1], params[0]);
        let (one, other_next) = match self.random.below(3) {
            0 => (params[2], one),
            1 => (one, params[1]),
            _ => (one, params[2]),
        };
        if self.random.one_in(2) {
            self.k.barrier(Scope::Threadgroup, Spaces::NONE);
        }
        self.k.yield_(&[one, other_next]);
        let kind = InstKind::For {
            lower,
            upper,
            step,
            init: [row, other].into_iter().collect(),
            body: self.k.close_region(),
        };
        for value in self.k.push(kind, &types) {
            self.add(value, Level::Varying);
        }
    }

    /// Goes on from a value in a loop whose rounds the row or a constant counts.
    fn add_up(&mut self, row: Value, first: Value, round: Value) -> Value {
        let most = self.constant_u32(3);
        let upper = match self.random.below(2) {
            0 => self.k.and(row, most),
            _ => most,
        };
        let [lower, step] = [0, 1].map(|n| self.constant_u32(n));
        let sums = self
            .k
            .for_(lower, upper, step, &[first], |k, index, carried| {
                let more = k.add(index, round);
                let more = k.add(more, row);
                vec![k.add(carried[0], more)]
            });
        sums[0]
    }
}
