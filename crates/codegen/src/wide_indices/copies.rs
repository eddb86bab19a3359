//! Copies. One is given by where it begins and ends in the destination, and by how much further on its source
//! is: each of these three numbers alone may be taken as lying at [`NARROW_LIMIT`](super::exact::NARROW_LIMIT) if it is beyond.

use invar_ir::KernelBuilder;
use invar_ir::inst::{CopyOperands, CopyShape, Value};

use super::exact::{Exact, constant, is_near, saturated};

/// A copy of consecutive elements: its first one's place in the destination, how much further on its source
/// is, and how many there are.
struct Run {
    begin: Exact,
    shift: Exact,
    count: Exact,
}

impl Run {
    fn of(b: &mut KernelBuilder, operands: &CopyOperands, count: Value) -> Run {
        let begin = Exact::of(b, operands.destination_index);
        let source = Exact::of(b, operands.source_index);
        Run {
            begin,
            shift: source.minus(b, begin),
            count: Exact::of(b, count),
        }
    }

    /// Sets what a copy is given to what is near: the elements before the destination are left out.
    fn give(&self, b: &mut KernelBuilder, operands: &mut CopyOperands, count: &mut Value) {
        let end = self.begin.plus(b, self.count).near(b);
        let before = self.begin.is_negative(b);
        let (zero, begin) = (constant(b, 0), self.begin.near(b));
        let begin = b.select(begin, zero, before);
        let shift = self.shift.near(b);
        operands.destination_index = begin;
        operands.source_index = b.add(begin, shift);
        *count = b.sub(end, begin);
    }
}

/// Changes the operands of a copy of consecutive elements.
pub(super) fn legalize(b: &mut KernelBuilder, operands: &mut CopyOperands, count: &mut Value) {
    Run::of(b, operands, *count).give(b, operands, count);
}

/// Builds what a copy of rows does where its operands are extreme, and leaves it no row then. One lane does
/// it, row by row, which O5 allows.
pub(super) fn rows(b: &mut KernelBuilder, operands: &CopyOperands, shape: &mut CopyShape) {
    let CopyShape::Tile {
        destination_row,
        source_row,
        columns,
        rows,
    } = shape
    else {
        return;
    };
    let given = [operands.destination_index, operands.source_index, *columns];
    let [to, from, columns_near] = given.map(|v| is_near(b, v));
    let starts = b.and(to, from);
    let near = b.and(starts, columns_near);
    let lane = b.thread_index_in_simdgroup();
    let first = b.const_u32(0);
    let others = b.ne(lane, first);
    let (zero, one) = (constant(b, 0), constant(b, 1));
    let all = saturated(b, *rows);
    *rows = b.select(zero, all, near);
    let nothing = b.or(near, others);
    let mine = b.select(all, zero, nothing);
    let run = Run::of(b, operands, *columns);
    let (to_row, from_row) = (Exact::of(b, *destination_row), Exact::of(b, *source_row));
    let shift_row = from_row.minus(b, to_row);
    let init = [run.begin.high, run.begin.low, run.shift.high, run.shift.low];
    b.for_(zero, mine, one, &init, |b, _, carried| {
        let [begin, shift] = [&carried[..2], &carried[2..]].map(|pair| Exact {
            high: pair[0],
            low: pair[1],
        });
        let run = Run {
            begin,
            shift,
            count: run.count,
        };
        let (mut operands, mut count) = (*operands, zero);
        run.give(b, &mut operands, &mut count);
        b.copy(operands, count);
        let begin = begin.onward(b, to_row);
        let shift = shift.onward(b, shift_row);
        vec![begin.high, begin.low, shift.high, shift.low]
    });
}
