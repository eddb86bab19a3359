//! Simdgroup matrices. Of rows that are extremely far apart at most one lies in memory: the matrix is put so
//! that this row stays, with others that are far enough apart.

use invar_ir::KernelBuilder;
use invar_ir::inst::{MatrixPlace, Value};

use super::exact::{Exact, I64, NARROW_LIMIT, constant, is_near, saturated};

/// Rows of a matrix, or columns where memory holds the transpose.
const ROWS: u32 = 8;
/// A start from which rows up to [`NARROW_LIMIT`] apart reach no memory.
const NOWHERE: i64 = 1 << 56;

/// Changes where a matrix lies.
pub(super) fn legalize(b: &mut KernelBuilder, place: &mut MatrixPlace) {
    let near = is_near(b, place.row);
    let given = *place;
    let values = b.if_values(
        near,
        |b| [given.index, given.row].map(|v| saturated(b, v)).to_vec(),
        |b| far_apart(b, &given).to_vec(),
    );
    (place.index, place.row) = (values[0], values[1]);
}

/// The start and the row for rows that are further than [`NARROW_LIMIT`] apart.
fn far_apart(b: &mut KernelBuilder, place: &MatrixPlace) -> [Value; 2] {
    let (start, row) = (Exact::of(b, place.index), Exact::of(b, place.row));
    let (onward, back) = (constant(b, NARROW_LIMIT), constant(b, -NARROW_LIMIT));
    let downward = row.is_negative(b);
    let apart = b.select(onward, back, downward);
    let nowhere = constant(b, NOWHERE);
    let (zero, one, rows) = (b.const_u32(0), b.const_u32(1), b.const_u32(ROWS));
    let init = [start.high, start.low, nowhere];
    let found = b.for_(zero, rows, one, &init, |b, r, carried| {
        let at = Exact {
            high: carried[0],
            low: carried[1],
        };
        let r = b.cast(r, I64);
        let before = b.mul(r, apart);
        let here = at.near(b);
        let from = b.sub(here, before);
        let limit = constant(b, NARROW_LIMIT / 2);
        let distance = b.abs(here);
        let reaches = b.lt(distance, limit);
        let found = b.select(carried[2], from, reaches);
        let next = at.plus(b, row);
        vec![next.high, next.low, found]
    });
    [found[2], apart]
}
