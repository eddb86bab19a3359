//! What a simdgroup does together: matrices and async copies; and copies of one thread.

use invar_ir::{CopyOperands, CopyShape, MatrixPlace, Place};

use super::data::{Event, Float, Integer, SimdgroupMatrix, Single, Stored, Val};
use super::define::{Definition, with};
use super::memory::{InPlace, PlaceMut};
use super::value::Index;

/// The first element that an access of many begins with.
fn begin(k: &mut Definition, place: &Place) {
    if !place.path.is_empty() {
        k.refuse("this begins with a whole element: write `&x[i]`, without a field or component");
    }
}

fn matrix_place<T: Stored>(
    place: impl InPlace<Element = T>,
    row: impl Index,
    transpose: bool,
) -> MatrixPlace {
    let (place, row) = (place.place(), row.index());
    with(|k| begin(k, &place));
    MatrixPlace {
        memory: place.memory,
        index: place.index,
        row,
        transpose,
    }
}

/// A simdgroup matrix with every entry the same.
pub fn simdgroup_matrix<T: Float>(value: Val<T>) -> Val<SimdgroupMatrix<T>> {
    Val::of(with(|k| {
        k.builder
            .matrix_fill(SimdgroupMatrix::<T>::ty(), value.ssa())
    }))
}

fn load<P: InPlace>(place: P, row: impl Index, transpose: bool) -> Val<SimdgroupMatrix<P::Element>>
where
    P::Element: Float,
{
    let place = matrix_place(place, row, transpose);
    Val::of(with(|k| {
        k.uses(place.memory, true, false);
        k.builder
            .matrix_load(SimdgroupMatrix::<P::Element>::ty(), place)
    }))
}

/// Reads a simdgroup matrix: entry (r, c) lies `r * row + c` elements behind the place.
pub fn simdgroup_load<P: InPlace, R: Integer>(
    place: P,
    row: Val<R>,
) -> Val<SimdgroupMatrix<P::Element>>
where
    P::Element: Float,
{
    load(place, row, false)
}

/// Reads a simdgroup matrix whose transpose lies in memory.
pub fn simdgroup_load_transposed<P: InPlace, R: Integer>(
    place: P,
    row: Val<R>,
) -> Val<SimdgroupMatrix<P::Element>>
where
    P::Element: Float,
{
    load(place, row, true)
}

fn store<T: Float>(
    matrix: Val<SimdgroupMatrix<T>>,
    place: PlaceMut<T>,
    row: impl Index,
    transpose: bool,
) {
    let place = matrix_place(place, row, transpose);
    with(|k| {
        k.uses(place.memory, false, true);
        k.builder.matrix_store(place, matrix.ssa());
    });
}

/// Writes a simdgroup matrix: entry (r, c) goes `r * row + c` elements behind the place.
pub fn simdgroup_store<T: Float, R: Integer>(
    matrix: Val<SimdgroupMatrix<T>>,
    place: PlaceMut<T>,
    row: Val<R>,
) {
    store(matrix, place, row, false);
}

/// Writes the transpose of a simdgroup matrix.
pub fn simdgroup_store_transposed<T: Float, R: Integer>(
    matrix: Val<SimdgroupMatrix<T>>,
    place: PlaceMut<T>,
    row: Val<R>,
) {
    store(matrix, place, row, true);
}

/// `a * b + c` of simdgroup matrices.
pub fn simdgroup_multiply_accumulate<A: Float, C: Float>(
    a: Val<SimdgroupMatrix<A>>,
    b: Val<SimdgroupMatrix<A>>,
    c: Val<SimdgroupMatrix<C>>,
) -> Val<SimdgroupMatrix<C>> {
    Val::of(with(|k| {
        k.builder
            .matrix_multiply_accumulate(a.ssa(), b.ssa(), c.ssa())
    }))
}

fn operands<T: Stored>(to: PlaceMut<T>, from: impl InPlace<Element = T>) -> CopyOperands {
    let (to, from) = (to.0.place(), from.place());
    with(|k| {
        begin(k, &to);
        begin(k, &from);
        k.uses(to.memory, false, true);
        k.uses(from.memory, true, false);
    });
    CopyOperands {
        destination: to.memory,
        destination_index: to.index,
        source: from.memory,
        source_index: from.index,
    }
}

/// Copies so many elements, one after the other: by the thread that calls it.
pub fn copy<T: Stored, N: Integer>(
    to: PlaceMut<T>,
    from: impl InPlace<Element = T>,
    count: Val<N>,
) {
    let (operands, count) = (operands(to, from), count.index());
    with(|k| k.builder.copy(operands, count));
}

/// Starts a copy of so many elements by the simdgroup, between device and threadgroup memory; it is over
/// when its event was waited for ([`wait`]).
pub fn async_copy<T: Stored, N: Integer>(
    to: PlaceMut<T>,
    from: impl InPlace<Element = T>,
    count: Val<N>,
) -> Val<Event> {
    let (operands, count) = (operands(to, from), count.index());
    let shape = CopyShape::Linear { count };
    Val::of(with(|k| k.builder.async_copy(operands, shape)))
}

/// Starts a copy of `rows` runs of `columns` elements; in each memory a run begins so many elements after
/// the last one.
pub fn async_copy_2d<T: Stored, A: Integer, B: Integer, C: Integer, R: Integer>(
    to: PlaceMut<T>,
    to_row: Val<A>,
    from: impl InPlace<Element = T>,
    from_row: Val<B>,
    columns: Val<C>,
    rows: Val<R>,
) -> Val<Event> {
    let operands = operands(to, from);
    let shape = CopyShape::Tile {
        destination_row: to_row.index(),
        source_row: from_row.index(),
        columns: columns.index(),
        rows: rows.index(),
    };
    Val::of(with(|k| k.builder.async_copy(operands, shape)))
}

/// Waits until a copy is over.
pub fn wait(event: Val<Event>) {
    with(|k| k.builder.wait(&[event.ssa()]));
}
