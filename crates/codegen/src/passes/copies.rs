//! Copies written out as loops of loads and stores.
//!
//! A copy by a thread is a loop over the elements that lie inside of the destination. An async copy is
//! made where it is issued, which O5 allows: the lanes of the simdgroup take turns, and its event stays
//! as an instruction that does nothing more. Rows that follow each other without gaps on both sides are one.

use invar_ir::inst::{CopyOperands, CopyShape, InstKind, Memory, Place, Step, Value};
use invar_ir::rewrite::rewrite;
use invar_ir::{
    Const, Diagnostics, Dim, ElementType, Kernel, KernelBuilder, Module, Scalar, StructDef, Type,
};

use super::common::{constants, integer};
use crate::tuning::UNROLLED_COPY_ELEMENTS;

const I64: Type = Type::Scalar(Scalar::I64);
/// Further than this nothing lies, and sums of two such fit. What could come back was brought near before
/// ([`crate::wide_indices`]).
const FAR: i64 = 1 << 61;

/// Writes out the copies of a module's one kernel.
pub(crate) fn expand(module: Module) -> Result<Module, Diagnostics> {
    let mut found = false;
    module.kernels[0].for_each_inst(&mut |inst| {
        found |= matches!(
            inst.kind,
            InstKind::Copy { .. } | InstKind::AsyncCopy { .. }
        );
    });
    if !found {
        return Ok(module);
    }
    let mut without_gaps = without_gaps(&module.kernels[0]).into_iter();
    rewrite(module, 0, &mut |b, inst| match &inst.kind {
        InstKind::Copy { operands, count } => {
            let (first, step) = (constant(b, 0), constant(b, 1));
            let [to, from, count] =
                [operands.destination_index, operands.source_index, *count].map(|v| near(b, v));
            run(b, operands, [to, from], count, first, step);
            Some(Default::default())
        }
        InstKind::AsyncCopy { operands, shape } => {
            let whole = without_gaps.next() == Some(true);
            asynchronous(b, operands, shape, whole);
            Some(b.push(inst.kind.clone(), &[Type::Event]))
        }
        _no_copy => None,
    })
}

/// How many loads and stores the copies of a module's one kernel come to.
pub(crate) fn accesses(module: &Module) -> usize {
    let kernel = &module.kernels[0];
    let mut count = 0_usize;
    kernel.for_each_inst(&mut |inst| {
        let (InstKind::Copy { operands, .. } | InstKind::AsyncCopy { operands, .. }) = &inst.kind
        else {
            return;
        };
        if let Some(info) = module.memory(kernel, operands.destination) {
            let each = accesses_of(&module.structs, info.element);
            count = count.saturating_add(each);
        }
    });
    count
}

/// Those of one element.
fn accesses_of(structs: &[StructDef], element: &ElementType) -> usize {
    match element {
        ElementType::Value(_) => 2,
        ElementType::Struct(id) => {
            let fields = structs[id.0 as usize].fields.iter();
            fields.fold(0, |sum, (_, field)| {
                sum.saturating_add(accesses_of(structs, field))
            })
        }
        ElementType::Array(inner, length) => {
            let times = if *length <= UNROLLED_COPY_ELEMENTS {
                *length
            } else {
                1
            };
            accesses_of(structs, inner).saturating_mul(times as usize)
        }
    }
}

/// Of each async copy, in order, whether its rows are known to follow each other without gaps on both sides. The
/// number of its elements must fit 64 bits.
fn without_gaps(kernel: &Kernel) -> Vec<bool> {
    let constants = constants(kernel);
    let number = |value: Value| constants.get(&value).copied().and_then(integer);
    let same = |a: Value, b: Value| a == b || number(a).is_some_and(|n| number(b) == Some(n));
    let is_short = |value: Value| kernel.ty(value).scalar().is_some_and(|s| s.bits() <= 32);
    let mut found = Vec::new();
    kernel.for_each_inst(&mut |inst| {
        let InstKind::AsyncCopy { shape, .. } = &inst.kind else {
            return;
        };
        found.push(match shape {
            CopyShape::Linear { .. } => false,
            CopyShape::Tile {
                destination_row,
                source_row,
                columns,
                rows,
            } => {
                let fits = is_short(*columns) && is_short(*rows);
                fits && same(*destination_row, *columns) && same(*source_row, *columns)
            }
        });
    });
    found
}

/// How many elements so many rows have, of numbers of 32 bits.
fn product(b: &mut KernelBuilder, columns: Value, rows: Value) -> Value {
    let zero = constant(b, 0);
    let [columns, rows] = [columns, rows].map(|v| {
        let wide = b.cast(v, I64);
        let some = b.max(wide, zero);
        b.cast(some, Type::Scalar(Scalar::U64))
    });
    b.mul(columns, rows)
}

fn constant(b: &mut KernelBuilder, value: i64) -> Value {
    b.constant(Const {
        scalar: Scalar::I64,
        bits: value as u64,
    })
}

/// An index or count in 64 signed bits; what is further away than anything lies stays so.
fn near(b: &mut KernelBuilder, value: Value) -> Value {
    let far = constant(b, FAR);
    match b.ty(value) {
        Type::Scalar(Scalar::U64) => {
            let far = b.cast(far, Type::Scalar(Scalar::U64));
            let least = b.min(value, far);
            b.cast(least, I64)
        }
        Type::Scalar(Scalar::I64) => {
            let back = constant(b, -FAR);
            let least = b.min(value, far);
            b.max(least, back)
        }
        _narrow => b.cast(value, I64),
    }
}

fn length(b: &mut KernelBuilder, memory: Memory) -> Value {
    match b.memory(memory).and_then(|info| info.length) {
        Some(length) => constant(b, length.into()),
        None => {
            let length = b.buffer_length(memory);
            b.cast(length, I64)
        }
    }
}

/// Copies elements `first`, `first + step`, ... of `count` from one index to another.
fn run(
    b: &mut KernelBuilder,
    operands: &CopyOperands,
    [to, from]: [Value; 2],
    count: Value,
    first: Value,
    step: Value,
) {
    let zero = constant(b, 0);
    // Only what lies inside of the destination: `-to` up to its length less `to`.
    let before = b.neg(to);
    let lower = b.max(before, zero);
    let lower = b.add(lower, first);
    let end = length(b, operands.destination);
    let room = b.sub(end, to);
    let upper = b.min(count, room);
    let element = b
        .memory(operands.destination)
        .map(|info| info.element.clone());
    let structs = b.module().structs.clone();
    b.for_(lower, upper, step, &[], |b, i, _| {
        let target = b.add(to, i);
        let source = b.add(from, i);
        if let Some(element) = &element {
            let places = [operands.destination, operands.source]
                .into_iter()
                .zip([target, source])
                .map(|(memory, index)| Place::element(memory, index));
            let places: Vec<Place> = places.collect();
            whole(b, &structs, element, &places[0], &places[1]);
        }
        Vec::new()
    });
}

/// Copies one element, or a part of one.
fn whole(
    b: &mut KernelBuilder,
    structs: &[StructDef],
    element: &ElementType,
    to: &Place,
    from: &Place,
) {
    let inside = |place: &Place, step: Step| {
        let mut place = place.clone();
        place.path.push(step);
        place
    };
    match element {
        ElementType::Value(_) => {
            let value = b.load(from.clone());
            b.store(to.clone(), value);
        }
        ElementType::Struct(id) => {
            for (i, (_, field)) in structs[id.0 as usize].fields.iter().enumerate() {
                let step = Step::Field(i as u32);
                whole(b, structs, field, &inside(to, step), &inside(from, step));
            }
        }
        ElementType::Array(inner, length) if *length <= UNROLLED_COPY_ELEMENTS => {
            for i in 0..*length {
                let step = Step::Index(b.const_u32(i));
                whole(b, structs, inner, &inside(to, step), &inside(from, step));
            }
        }
        ElementType::Array(inner, length) => {
            let (zero, one) = (b.const_u32(0), b.const_u32(1));
            let end = b.const_u32(*length);
            b.for_(zero, end, one, &[], |b, i, _| {
                let step = Step::Index(i);
                whole(b, structs, inner, &inside(to, step), &inside(from, step));
                Vec::new()
            });
        }
    }
}

/// The first row that may leave something in the destination, and the one behind the last: at most as many as the
/// destination has elements, and one or two, however many rows are said to be. Each is at least an element away
/// from the one before; where they all begin in one place the last stands for all. What several rows store to is
/// left by one of them (R2), such as by the last that begins at or before it, or of rows that go down the first; so
/// rows that begin more than a row's distance in front of the destination leave nothing that others do not.
fn rows_that_count(
    b: &mut KernelBuilder,
    destination: Memory,
    [to, to_row]: [Value; 2],
    [columns, rows]: [Value; 2],
) -> [Value; 2] {
    let (zero, one) = (constant(b, 0), constant(b, 1));
    let end = length(b, destination);
    let [up, down, some] =
        [(to_row, zero), (zero, to_row), (columns, zero)].map(|(x, y)| b.gt(x, y));
    let back = b.neg(to_row);
    let distance = b.max(to_row, back);
    let distance = b.max(distance, one);
    let steps = |b: &mut KernelBuilder, elements: Value| {
        let ahead = b.max(elements, zero);
        b.div(ahead, distance)
    };
    let (before, behind) = (b.neg(to), b.sub(to, end));
    // Upwards from to / distance on, while to + row * distance < end; downwards the other way around.
    let first_up = steps(b, before);
    let behind = b.add(behind, distance);
    let first_down = steps(b, behind);
    let room = b.sub(end, to);
    let room = b.add(room, distance);
    let room = b.sub(room, one);
    let until_up = steps(b, room);
    let until_down = steps(b, to);
    let two = constant(b, 2);
    let until_down = b.add(until_down, two);
    let last = b.sub(rows, one);
    let first = b.select(last, first_down, down);
    let first = b.select(first, first_up, up);
    let first = b.min(first, last);
    let first = b.max(first, zero);
    let until = b.select(rows, until_down, down);
    let until = b.select(until, until_up, up);
    let until = b.min(until, rows);
    [first, b.select(zero, until, some)]
}

/// Where a row begins, or, where that is further away than anything lies, somewhere there.
fn start(b: &mut KernelBuilder, from: Value, distance: Value, row: Value) -> Value {
    let (zero, one) = (constant(b, 0), constant(b, 1));
    let (far, back) = (constant(b, 2 * FAR), b.neg(distance));
    let size = b.max(distance, back);
    let size = b.max(size, one);
    let most = b.div(far, size);
    let fits = b.le(row, most);
    let (product, up) = (b.mul(row, distance), b.gt(distance, zero));
    let minus = constant(b, -2 * FAR);
    let beyond = b.select(minus, far, up);
    let product = b.select(beyond, product, fits);
    let sum = b.add(from, product);
    near(b, sum)
}

/// A copy of which each lane of the simdgroup makes a share; `whole` says that its rows have no gaps between them.
fn asynchronous(b: &mut KernelBuilder, operands: &CopyOperands, shape: &CopyShape, whole: bool) {
    let lane = b.thread_index_in_simdgroup();
    let lane = b.cast(lane, I64);
    // The lanes that there are: a simdgroup's size, or what is left for the last.
    let size = b.threads_per_simdgroup();
    let sizes = Dim::ALL.map(|dim| b.threads_per_threadgroup(dim));
    let plane = b.mul(sizes[0], sizes[1]);
    let threads = b.mul(plane, sizes[2]);
    let index = b.simdgroup_index_in_threadgroup();
    let before = b.mul(index, size);
    let left = b.sub(threads, before);
    let lanes = b.min(size, left);
    let lanes = b.cast(lanes, I64);
    let [to, from] = [operands.destination_index, operands.source_index].map(|v| near(b, v));
    match shape {
        CopyShape::Linear { count } => {
            let count = near(b, *count);
            run(b, operands, [to, from], count, lane, lanes);
        }
        CopyShape::Tile { columns, rows, .. } if whole => {
            let count = product(b, *columns, *rows);
            let count = near(b, count);
            run(b, operands, [to, from], count, lane, lanes);
        }
        CopyShape::Tile {
            destination_row,
            source_row,
            columns,
            rows,
        } => {
            let [to_row, from_row, columns, rows] =
                [*destination_row, *source_row, *columns, *rows].map(|v| near(b, v));
            let one = constant(b, 1);
            let [first, until] =
                rows_that_count(b, operands.destination, [to, to_row], [columns, rows]);
            let [to, from] = [start(b, to, to_row, first), start(b, from, from_row, first)];
            b.for_(first, until, one, &[to, from], |b, _, starts| {
                run(b, operands, [starts[0], starts[1]], columns, lane, lanes);
                // A row that is far away stays so: rows go on in one direction.
                let to = b.add(starts[0], to_row);
                let from = b.add(starts[1], from_row);
                [to, from].map(|v| near(b, v)).to_vec()
            });
        }
    }
}
