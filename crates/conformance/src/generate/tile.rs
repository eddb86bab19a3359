//! Tiles: iterations in which each thread of a threadgroup brings an element of a buffer to threadgroup memory
//! and, after a barrier, adds up a column of what all brought; the last iterations and threads may reach
//! beyond the buffer. Compilers may load the column from the buffer instead.

use invar_ir::inst::InstKind;
use invar_ir::{Access, Dim, Level, Memory, Place, Scalar, Scope, Spaces, Type, Value};

use super::generator::Generator;
use crate::case::Data;

impl Generator<'_> {
    /// The threadgroup's size, if the kernel requires one that a tile can have.
    pub(super) fn tile_size(&self) -> Option<[u32; 2]> {
        let [x, y, 1] = self.k.kernel().threadgroup_size? else {
            return None;
        };
        let fits = x >= 2 && y >= 2 && self.k.kernel().params.len() <= 12;
        (fits && self.control >= Level::Threadgroup && self.around.is_none()).then_some([x, y])
    }

    pub(super) fn tile(&mut self, [x, y]: [u32; 2]) {
        let number = self.k.kernel().params.len();
        let scalar = self.random.pick(&[Scalar::I32, Scalar::U32]);
        let source = self
            .k
            .buffer(&format!("source{number}"), Access::Read, scalar);
        let iterations = 1 + self.random.below(3) as u32;
        let count = self
            .random
            .pick(&[0, 7, x * y, 2 * x * y * iterations, 400]);
        self.data.push(Data::Iota(u64::from(count)));
        let pitch = x + self.random.below(2) as u32;
        let tile = self
            .k
            .alloc_threadgroup(&format!("tile{number}"), scalar, pitch * y);
        let none = self.random_small(5);
        let none = match scalar {
            Scalar::I32 => self.k.const_i32(none as i32),
            _unsigned => self.constant_u32(none),
        };
        let [lower, step] = [0, y].map(|n| self.constant_u32(n));
        let less = self.random.below(y as usize) as u32;
        let upper = self.constant_u32(iterations * y - less);
        let types = [Type::U32, Type::Scalar(scalar)];
        let params = self.k.open_region(&types);
        self.bring(params[0], source, tile, [x, pitch]);
        let sum = self.add_column(params[1], tile, [y, pitch]);
        self.k.barrier(Scope::Threadgroup, Spaces::THREADGROUP);
        self.k.yield_(&[sum]);
        let kind = InstKind::For {
            lower,
            upper,
            step,
            init: [none].into_iter().collect(),
            body: self.k.close_region(),
        };
        for value in self.k.push(kind, &types[1..]) {
            self.add(value, Level::Varying);
        }
    }

    /// Each thread stores an element of the buffer to its place of the tile.
    fn bring(&mut self, start: Value, source: Memory, tile: Memory, [x, pitch]: [u32; 2]) {
        let own = self.k.thread_position_in_threadgroup(Dim::Y);
        let column = match self.random.below(2) {
            0 => self.k.thread_position_in_grid(Dim::X),
            _ => self.k.thread_position_in_threadgroup(Dim::X),
        };
        let row = match self.random.below(3) {
            0 => self.k.thread_position_in_grid(Dim::Y),
            _ => own,
        };
        let line = self.k.add(start, row);
        let length = self.random.pick(&[x, x + 3, u32::MAX]);
        let length = self.constant_u32(length);
        let first = self.k.mul(line, length);
        let index = self.k.add(first, column);
        let value = self.k.load(Place::element(source, index));
        let place = if pitch == x && self.random.one_in(2) {
            self.k.thread_index_in_threadgroup()
        } else {
            self.in_tile(own, pitch)
        };
        self.k.store(Place::element(tile, place), value);
        self.k.barrier(Scope::Threadgroup, Spaces::THREADGROUP);
    }

    /// The place of the thread's column in a row of the tile.
    fn in_tile(&mut self, row: Value, pitch: u32) -> Value {
        let column = self.k.thread_position_in_threadgroup(Dim::X);
        let pitch = self.constant_u32(pitch);
        let first = self.k.mul(row, pitch);
        self.k.add(first, column)
    }

    /// Adds a column of the tile to a sum.
    fn add_column(&mut self, sum: Value, tile: Memory, [y, pitch]: [u32; 2]) -> Value {
        let ty = self.k.ty(sum);
        // Seldom a row more than the tile has.
        let rows = if self.random.one_in(8) { y + 1 } else { y };
        let [lower, upper, step] = [0, rows, 1].map(|n| self.constant_u32(n));
        let params = self.k.open_region(&[Type::U32, ty]);
        let index = self.in_tile(params[0], pitch);
        let value = self.k.load(Place::element(tile, index));
        let factor = self.k.add(params[1], params[1]);
        let next = self.k.add(factor, value);
        self.k.yield_(&[next]);
        let kind = InstKind::For {
            lower,
            upper,
            step,
            init: [sum].into_iter().collect(),
            body: self.k.close_region(),
        };
        self.k.push(kind, &[ty])[0]
    }
}
