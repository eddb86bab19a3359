//! Simdgroup matrices: one value for the whole simdgroup, a vector for each two rows.
//!
//! Two rows of f32 are the widest vector register that there is; narrower ones take a vector in parts.
//! A product broadcasts a row of the right factor to both halves, and in each half one entry of the
//! left factor, so that one such vector serves all products of that factor.
//!
//! They belong to the simdgroup, so a partial one works on them as a full one does (X6). Entries out
//! of bounds are read as 0 and not written, each for itself (B1, B2); the index of an entry is computed
//! without wrapping (B4).

use std::collections::HashMap;

use inkwell::IntPredicate;
use inkwell::types::{BasicTypeEnum, VectorType};
use inkwell::values::{BasicValueEnum, IntValue, PhiValue, PointerValue, VectorValue};
use invar_ir::{Op, Scalar, Value};

use crate::emit::{BUILT, Emit};
use crate::ops::eval;

/// Rows and columns of a matrix.
pub(crate) const SIZE: u32 = 8;

/// Entries of a row side by side.
const ROW: u64 = SIZE as u64;

/// Entries of two rows.
const PAIR: u32 = 2 * SIZE;

/// A matrix: its rows from the first, two to a vector, `<16 x T>` each.
pub(crate) type Rows<'c> = Vec<VectorValue<'c>>;

/// Where a matrix lies: entry (r, c) at element `index + r * row + c`, or with r and c exchanged if
/// `transpose`.
#[derive(Clone, Copy)]
pub(crate) struct MatrixMemory<'c> {
    pub base: PointerValue<'c>,
    /// Elements, 64 bits.
    pub length: IntValue<'c>,
    /// An integer, with its type.
    pub index: (Scalar, IntValue<'c>),
    /// An integer, with its type.
    pub row: (Scalar, IntValue<'c>),
    pub transpose: bool,
    /// All entries are known to be in bounds.
    pub inside: bool,
    /// Others may write it at the same time.
    pub races: bool,
}

/// Every entry the same.
pub(crate) fn fill<'c>(e: &Emit<'c>, value: BasicValueEnum<'c>) -> Rows<'c> {
    vec![e.splat(value, PAIR); SIZE as usize / 2]
}

/// Where the rows of a matrix lie that is in bounds: the first one, and how far it is from each to the next, in
/// bytes.
#[derive(Clone, Copy)]
pub(crate) struct RowsInMemory<'c> {
    first: PointerValue<'c>,
    step: IntValue<'c>,
}

/// Where the rows of a matrix that is being read lie, if they may be read again until something is written:
/// no other code writes them, and all are there.
pub(crate) fn rows_in_memory<'c>(
    e: &Emit<'c>,
    scalar: Scalar,
    memory: &MatrixMemory<'c>,
) -> Option<RowsInMemory<'c>> {
    let m = Access::new(e, scalar, memory);
    let may = memory.inside && !memory.transpose && !memory.races;
    may.then_some(m.rows)
}

/// Products whose factors are put to the stack together.
const PRODUCTS_BY_ENTRIES: usize = 8;

/// How many products to make side by side: their sums take half of the registers.
pub(crate) fn products_at_once(e: &Emit<'_>, scalar: Scalar) -> usize {
    if goes_by_entries(e, scalar) {
        return PRODUCTS_BY_ENTRIES;
    }
    let registers = if e.target.has_avx512 || !e.target.is_x86 {
        32
    } else {
        16
    };
    let bits = SIZE * SIZE * scalar.bits();
    (registers / 2 * e.target.vector_bits / bits).max(1) as usize
}

/// `a * b + c` of each `[a, b, c]`, in the type of `c`, to which the factors are converted first: each
/// entry accumulates by fma in the order of the shared index. They go on side by side, so that
/// products of one factor share what is made of it.
pub(crate) fn multiply_accumulate<'c>(
    e: &Emit<'c>,
    places: Option<VectorValue<'c>>,
    products: &[[(Scalar, Rows<'c>); 3]],
) -> Vec<Rows<'c>> {
    let factors: Vec<_> = products
        .iter()
        .map(|[a, b, (scalar, _)]| (*scalar, cast(e, a, *scalar), cast(e, b, *scalar)))
        .collect();
    let mut sums: Vec<_> = products.iter().map(|[_, _, (_, c)]| c.clone()).collect();
    if !factors.iter().all(|(scalar, ..)| has_fma(e, *scalar)) {
        let products = factors.iter().zip(&sums);
        return products
            .map(|((scalar, a, b), c)| multiply_in_a_loop(e, *scalar, a, b, c))
            .collect();
    }
    for k in 0..SIZE {
        for (rows, (scalar, a, b)) in sums.iter_mut().zip(&factors) {
            let pair = b[k as usize / 2];
            let row = shuffle(e, pair, pair, |lane| k % 2 * SIZE + lane % SIZE);
            for (sum, pair) in rows.iter_mut().zip(a) {
                let factor = entries(e, places.filter(|_| *scalar == Scalar::F32), *pair, k);
                let args = [factor, row, *sum].map(Into::into);
                *sum = eval(e, Op::Fma, *scalar, *scalar, &args).into_vector_value();
            }
        }
    }
    sums
}

/// A matrix's entries as another type.
fn cast<'c>(e: &Emit<'c>, (from, rows): &(Scalar, Rows<'c>), to: Scalar) -> Rows<'c> {
    let one =
        |row: &VectorValue<'c>| eval(e, Op::Cast, *from, to, &[(*row).into()]).into_vector_value();
    rows.iter().map(one).collect()
}

/// Whether products are made by [`multiply_by_entries`]: where sums leave no registers for factors, and an entry is
/// broadcast from memory by one instruction.
fn goes_by_entries(e: &Emit<'_>, scalar: Scalar) -> bool {
    scalar == Scalar::F32 && e.target.is_x86 && e.target.has_fma && !e.target.has_avx512
}

/// As [`multiply_accumulate`], one product after the other, for sums of f32: their factors lie on the stack, those that
/// several products have once, as `names` tells them. `None` where another way is better.
pub(crate) fn multiply_by_entries<'c>(
    e: &Emit<'c>,
    products: &[[(Scalar, Rows<'c>); 3]],
    names: &[[Value; 2]],
) -> Option<Vec<Rows<'c>>> {
    if !products
        .iter()
        .all(|[_, _, (scalar, _)]| goes_by_entries(e, *scalar))
    {
        return None;
    }
    let mut stacks = HashMap::new();
    for (factors, names) in products.iter().zip(names) {
        for (factor, name) in factors.iter().zip(names) {
            stacks.entry(*name).or_insert_with(|| {
                let rows = cast(e, factor, Scalar::F32);
                to_stack(e, Scalar::F32, &rows)
            });
        }
    }
    // Products of one left factor go on two by two: an entry of it is broadcast for both.
    let mut done = Vec::with_capacity(products.len());
    while let Some([left, _]) = names.get(done.len()) {
        let rest = &names[done.len()..];
        let count = rest
            .iter()
            .take(2)
            .take_while(|names| names[0] == *left)
            .count();
        let rights: Vec<_> = rest[..count]
            .iter()
            .map(|names| stacks[&names[1]])
            .collect();
        let own = &products[done.len()..done.len() + count];
        let sums: Vec<_> = own
            .iter()
            .map(|[_, _, (_, sums)]| sums.as_slice())
            .collect();
        done.extend(multiply_on_stack(e, stacks[left], &rights, &sums));
    }
    Some(done)
}

/// A loop of so many iterations with vectors that it carries: `iteration` computes the next ones from its number and
/// the last.
fn repeat<'c>(
    e: &Emit<'c>,
    iterations: u64,
    carried: &[VectorValue<'c>],
    iteration: impl FnOnce(IntValue<'c>, &[VectorValue<'c>]) -> Vec<VectorValue<'c>>,
) -> Vec<VectorValue<'c>> {
    let before = e.here();
    let [head, done] = ["multiply", "multiplied"].map(|name| e.block(name));
    e.branch(head);
    e.go(head);
    let phi = |first: BasicValueEnum<'c>| {
        let phi = e.builder.build_phi(first.get_type(), "").expect(BUILT);
        phi.add_incoming(&[(&first, before)]);
        phi
    };
    let number = phi(e.i64(0).into());
    let phis: Vec<_> = carried.iter().map(|one| phi((*one).into())).collect();
    let k = number.as_basic_value().into_int_value();
    let now = |one: &PhiValue<'c>| one.as_basic_value().into_vector_value();
    let next = iteration(k, &phis.iter().map(now).collect::<Vec<_>>());
    for (phi, next) in phis.iter().zip(&next) {
        phi.add_incoming(&[(next, e.here())]);
    }
    let following = e.add(k, e.i64(1));
    number.add_incoming(&[(&following, e.here())]);
    let more = e.compare(IntPredicate::ULT, following, e.i64(iterations));
    e.branch_if(more, head, done);
    e.go(done);
    next
}

/// Two rows times one, added to two rows of sums.
fn add_product<'c>(
    e: &Emit<'c>,
    scalar: Scalar,
    factors: [VectorValue<'c>; 2],
    sum: VectorValue<'c>,
) -> VectorValue<'c> {
    let [left, right] = factors;
    let args = [left, right, sum].map(Into::into);
    eval(e, Op::Fma, scalar, scalar, &args).into_vector_value()
}

/// A row of eight in memory, twice.
fn row_twice<'c>(e: &Emit<'c>, scalar: Scalar, pointer: PointerValue<'c>) -> VectorValue<'c> {
    let row = e.vector_type(scalar, SIZE).into();
    let row = e.load(row, pointer, scalar.size_bytes() as u32);
    let row = row.into_vector_value();
    shuffle(e, row, row, |lane| lane % SIZE)
}

/// Adds products of f32 of one left factor, whose factors lie on the stack: loops over the shared index, each for as
/// many rows as leave registers for the right factors' rows and an entry.
fn multiply_on_stack<'c>(
    e: &Emit<'c>,
    left: PointerValue<'c>,
    rights: &[PointerValue<'c>],
    sums: &[&[VectorValue<'c>]],
) -> Vec<Rows<'c>> {
    let bytes = Scalar::F32.size_bytes();
    let at = |base, entries| e.byte_offset(base, e.mul(entries, e.i64(bytes)));
    let pairs = sums[0].len() / rights.len();
    let mut done = vec![Rows::new(); sums.len()];
    for first in (0..sums[0].len()).step_by(pairs) {
        let own: Vec<_> = (sums.iter())
            .flat_map(|sums| sums[first..first + pairs].iter().copied())
            .collect();
        let next = repeat(e, ROW, &own, |k, own| {
            let column = at(left, k);
            let entry = |r: usize| {
                let one = e.byte_offset(column, e.i64(r as u64 * ROW * bytes));
                let one = e.load(e.scalar_type(Scalar::F32), one, bytes as u32);
                e.splat(one, SIZE)
            };
            let factor = |pair: usize| {
                let [upper, lower] = [0, 1].map(|r| entry(2 * (first + pair) + r));
                shuffle(e, upper, lower, |lane| lane)
            };
            let factors: Vec<_> = (0..pairs).map(factor).collect();
            let mut next = Vec::with_capacity(own.len());
            for (right, own) in rights.iter().zip(own.chunks(pairs)) {
                let row = row_twice(e, Scalar::F32, at(*right, e.mul(k, e.i64(ROW))));
                for (factor, sum) in factors.iter().zip(own) {
                    next.push(add_product(e, Scalar::F32, [*factor, row], *sum));
                }
            }
            next
        });
        for (done, next) in done.iter_mut().zip(next.chunks(pairs)) {
            done.extend(next);
        }
    }
    done
}

/// Whether a fused multiply-add is one instruction.
fn has_fma(e: &Emit<'_>, scalar: Scalar) -> bool {
    match scalar {
        Scalar::F32 | Scalar::F64 => e.target.has_fma,
        Scalar::F16 => e.target.has_f16,
        _other => false,
    }
}

/// A product where a fused multiply-add is long, and so is written once: all of it in memory, two rows
/// by one entry of each in an iteration.
fn multiply_in_a_loop<'c>(
    e: &Emit<'c>,
    scalar: Scalar,
    a: &[VectorValue<'c>],
    b: &[VectorValue<'c>],
    c: &[VectorValue<'c>],
) -> Rows<'c> {
    let bytes = scalar.size_bytes();
    let pair_type: BasicTypeEnum<'c> = e.vector_type(scalar, PAIR).into();
    let entry = |base, place: IntValue<'c>| e.byte_offset(base, e.mul(place, e.i64(bytes)));
    let pair = |base, k: usize| entry(base, e.i64(k as u64 * u64::from(PAIR)));
    let [left, right, sums] = [a, b, c].map(|rows| {
        let base = e.stack(e.vector_type(scalar, SIZE * SIZE).into());
        for (k, row) in rows.iter().enumerate() {
            e.store((*row).into(), pair(base, k), bytes as u32);
        }
        base
    });
    repeat(e, ROW * ROW / 2, &[], |iteration, _none| {
        // Shared indices in order, for each all rows.
        let (k, rows) = (
            e.divide(iteration, e.i64(ROW / 2)),
            e.remainder(iteration, e.i64(ROW / 2)),
        );
        let first = e.mul(rows, e.i64(PAIR.into()));
        let upper = e.add(first, k);
        let factors = [upper, e.add(upper, e.i64(ROW))].map(|place| {
            let one = e.load(e.scalar_type(scalar), entry(left, place), bytes as u32);
            e.splat(one, PAIR)
        });
        let factor = shuffle(e, factors[0], factors[1], |lane| lane / SIZE * PAIR);
        let row = row_twice(e, scalar, entry(right, e.mul(k, e.i64(ROW))));
        let place = entry(sums, first);
        let sum = e.load(pair_type, place, bytes as u32).into_vector_value();
        let sum = add_product(e, scalar, [factor, row], sum);
        e.store(sum.into(), place, bytes as u32);
        Vec::new()
    });
    (0..ROW as usize / 2)
        .map(|k| {
            e.load(pair_type, pair(sums, k), bytes as u32)
                .into_vector_value()
        })
        .collect()
}

/// As [`multiply_accumulate`], for right factors of f32 that lie in memory, by a loop over the shared index: it is
/// much less code, and no slower where entries are looked up by number. `None` where that cannot be.
pub(crate) fn multiply_by_rows<'c>(
    e: &Emit<'c>,
    places: Option<VectorValue<'c>>,
    products: &[[(Scalar, Rows<'c>); 3]],
    rights: &[Option<RowsInMemory<'c>>],
) -> Option<Vec<Rows<'c>>> {
    let places = places?;
    let rights: Vec<_> = rights.iter().copied().collect::<Option<_>>()?;
    let is_f32 = |(scalar, _): &(Scalar, Rows<'c>)| *scalar == Scalar::F32;
    if !products.iter().flatten().all(is_f32) {
        return None;
    }
    let mut carried: Vec<_> = (products.iter())
        .flat_map(|[_, _, (_, sums)]| sums.iter().copied())
        .collect();
    carried.push(places);
    let mut last = repeat(e, ROW, &carried, |k, carried| {
        let (now, sums) = carried.split_last().expect("the places");
        let mut sums = sums.iter();
        let mut next = Vec::with_capacity(carried.len());
        for ([a, _, _], right) in products.iter().zip(rights) {
            let row = e.byte_offset(right.first, e.mul(k, right.step));
            let row = row_twice(e, Scalar::F32, row);
            for (pair, sum) in a.1.iter().zip(&mut sums) {
                let factor = look_up(e, *pair, *now);
                next.push(add_product(e, Scalar::F32, [factor, row], *sum));
            }
        }
        next.push(e.add(*now, e.splat(e.i32(1).into(), PAIR)));
        next
    })
    .into_iter();
    let mut of =
        |[_, _, (_, sums)]: &[(Scalar, Rows<'c>); 3]| last.by_ref().take(sums.len()).collect();
    Some(products.iter().map(&mut of).collect())
}

/// The entries of a vector that numbers name.
fn look_up<'c>(e: &Emit<'c>, pair: VectorValue<'c>, places: VectorValue<'c>) -> VectorValue<'c> {
    let args = [pair.into(), places.into()];
    let moved = e.intrinsic("llvm.x86.avx512.permvar.sf.512", &[], &args);
    moved.expect("a value").into_vector_value()
}

/// Entry `k` of each of two rows, in all places of its row.
fn entries<'c>(
    e: &Emit<'c>,
    places: Option<VectorValue<'c>>,
    pair: VectorValue<'c>,
    k: u32,
) -> VectorValue<'c> {
    let Some(places) = places else {
        return shuffle(e, pair, pair, |lane| lane / SIZE * SIZE + k);
    };
    look_up(e, pair, e.add(places, e.splat(e.i32(k).into(), PAIR)))
}

/// Where the first entry of each place's row is, as numbers that LLVM does not know, if one instruction
/// looks up what they name. Of known ones it makes several, and keeps what they have in common
/// until there are no registers left.
pub(crate) fn first_entries<'c>(e: &Emit<'c>) -> Option<VectorValue<'c>> {
    if !e.target.has_avx512 {
        return None;
    }
    let known: Vec<_> = (0..PAIR).map(|lane| e.i32(lane / SIZE * SIZE)).collect();
    let known = VectorType::const_vector(&known);
    let ty = known.get_type().fn_type(&[known.get_type().into()], false);
    let (nothing, same) = (String::new(), "=v,0".to_string());
    let asm = e
        .context
        .create_inline_asm(ty, nothing, same, false, false, None, false);
    let here = e.here();
    let entry = e.function.get().get_first_basic_block().expect("an entry");
    match entry.get_first_instruction() {
        Some(first) => e.builder.position_before(&first),
        None => e.go(entry),
    }
    let call = e.builder.build_indirect_call(ty, asm, &[known.into()], "");
    e.go(here);
    let unknown = call.expect(BUILT).try_as_basic_value().basic();
    Some(unknown.expect("a value").into_vector_value())
}

/// Lanes of two vectors of one width, those of the second numbered after those of the first.
fn lanes<'c>(
    e: &Emit<'c>,
    first: VectorValue<'c>,
    second: VectorValue<'c>,
    lanes: impl Iterator<Item = u32>,
) -> VectorValue<'c> {
    let order: Vec<_> = lanes.map(|lane| e.i32(lane)).collect();
    let order = VectorType::const_vector(&order);
    let shuffled = e.builder.build_shuffle_vector(first, second, order, "");
    shuffled.expect(BUILT)
}

/// Two rows of such lanes.
fn shuffle<'c>(
    e: &Emit<'c>,
    first: VectorValue<'c>,
    second: VectorValue<'c>,
    lane: impl Fn(u32) -> u32,
) -> VectorValue<'c> {
    lanes(e, first, second, (0..PAIR).map(lane))
}

/// Reads a matrix.
pub(crate) fn load<'c>(e: &Emit<'c>, scalar: Scalar, memory: &MatrixMemory<'c>) -> Rows<'c> {
    let m = Access::new(e, scalar, memory);
    let rows = if memory.inside {
        m.read_rows()
    } else {
        read_some(&m)
    };
    if memory.transpose {
        transpose(e, rows)
    } else {
        rows
    }
}

/// Reads the entries that are in bounds.
fn read_some<'c>(m: &Access<'_, 'c>) -> Rows<'c> {
    let (e, scalar) = (m.e, m.scalar);
    let [whole, partly, done] = ["whole", "partly", "loaded"].map(|name| e.block(name));
    e.branch_if(m.is_whole(), whole, partly);

    e.go(whole);
    let found = m.read_rows();
    e.branch(done);

    e.go(partly);
    let stack = on_stack(e, scalar);
    let zeros = e.vector_type(scalar, PAIR).const_zero();
    write_stack(e, scalar, stack, &[zeros; SIZE as usize / 2]);
    m.each_inside(|place, entry| {
        let value = e.load(e.scalar_type(scalar), place, m.bytes());
        e.store(e.freeze(value), m.stack_entry(stack, entry), m.bytes());
    });
    let rest = read_stack(e, scalar, stack);
    let partly = e.here();
    e.branch(done);

    e.go(done);
    let rows = found.iter().zip(&rest).map(|(found, rest)| {
        let phi = e.builder.build_phi(found.get_type(), "").expect(BUILT);
        phi.add_incoming(&[(found, whole), (rest, partly)]);
        phi.as_basic_value().into_vector_value()
    });
    rows.collect()
}

/// Writes a matrix.
pub(crate) fn store<'c>(
    e: &Emit<'c>,
    scalar: Scalar,
    memory: &MatrixMemory<'c>,
    rows: &[VectorValue<'c>],
) {
    let rows = if memory.transpose {
        transpose(e, rows.to_vec())
    } else {
        rows.to_vec()
    };
    let m = Access::new(e, scalar, memory);
    if memory.inside {
        m.write_rows(&rows);
        return;
    }
    let [whole, partly, done] = ["whole", "partly", "stored"].map(|name| e.block(name));
    e.branch_if(m.is_whole(), whole, partly);

    e.go(whole);
    m.write_rows(&rows);
    e.branch(done);

    e.go(partly);
    let stack = on_stack(e, scalar);
    write_stack(e, scalar, stack, &rows);
    m.each_inside(|place, entry| {
        let value = e.load(
            e.scalar_type(scalar),
            m.stack_entry(stack, entry),
            m.bytes(),
        );
        e.store(value, place, m.bytes());
    });
    e.branch(done);
    e.go(done);
}

/// What reads a matrix where that is rare, to the stack: one function for all such places.
pub(crate) fn load_aside<'c>(
    e: &Emit<'c>,
    scalar: Scalar,
    memory: &MatrixMemory<'c>,
) -> PointerValue<'c> {
    let found = on_stack(e, scalar);
    access_aside(e, "load", scalar, memory, found, |memory, found| {
        write_stack(e, scalar, found, &load(e, scalar, memory));
    });
    found
}

/// What writes a matrix from the stack where that is rare.
pub(crate) fn store_aside<'c>(
    e: &Emit<'c>,
    scalar: Scalar,
    memory: &MatrixMemory<'c>,
    given: PointerValue<'c>,
) {
    access_aside(e, "store", scalar, memory, given, |memory, given| {
        store(e, scalar, memory, &read_stack(e, scalar, given));
    });
}

/// What makes a product of matrices on the stack where that is rare.
pub(crate) fn multiply_aside<'c>(
    e: &Emit<'c>,
    [a, b, c]: [(Scalar, PointerValue<'c>); 3],
) -> PointerValue<'c> {
    let scalars = [a.0, b.0, c.0];
    let found = on_stack(e, c.0);
    let name = format!("matrix_multiply {scalars:?}");
    let args = [a.1, b.1, c.1, found];
    e.call_aside(&name, &args.map(Into::into), |parameters| {
        let stack = |i: usize| parameters[i].into_pointer_value();
        let factors = [0, 1, 2].map(|i| (scalars[i], read_stack(e, scalars[i], stack(i))));
        let sums = multiply_accumulate(e, None, &[factors]);
        write_stack(e, c.0, stack(3), &sums[0]);
    });
    found
}

/// Room for a matrix on the stack.
fn on_stack<'c>(e: &Emit<'c>, scalar: Scalar) -> PointerValue<'c> {
    e.stack(e.vector_type(scalar, SIZE * SIZE).into())
}

/// A matrix on the stack.
pub(crate) fn to_stack<'c>(
    e: &Emit<'c>,
    scalar: Scalar,
    rows: &[VectorValue<'c>],
) -> PointerValue<'c> {
    let stack = on_stack(e, scalar);
    write_stack(e, scalar, stack, rows);
    stack
}

/// Calls what accesses a matrix in memory, between it and the stack.
fn access_aside<'c>(
    e: &Emit<'c>,
    what: &str,
    scalar: Scalar,
    memory: &MatrixMemory<'c>,
    stack: PointerValue<'c>,
    body: impl FnOnce(&MatrixMemory<'c>, PointerValue<'c>),
) {
    let (index, row) = (memory.index, memory.row);
    let (transpose, races) = (memory.transpose, memory.races);
    let name = format!(
        "matrix_{what} {scalar:?} {:?} {:?} {transpose} {races}",
        index.0, row.0
    );
    let args = [
        memory.base.into(),
        memory.length.into(),
        index.1.into(),
        row.1.into(),
        stack.into(),
    ];
    e.call_aside(&name, &args, |parameters| {
        let integer = |i: usize| parameters[i].into_int_value();
        let memory = MatrixMemory {
            base: parameters[0].into_pointer_value(),
            length: integer(1),
            index: (index.0, integer(2)),
            row: (row.0, integer(3)),
            ..*memory
        };
        body(&memory, parameters[4].into_pointer_value());
    });
}

/// A matrix from the stack, in one piece: an address for each two rows would be kept in a register.
pub(crate) fn read_stack<'c>(e: &Emit<'c>, scalar: Scalar, stack: PointerValue<'c>) -> Rows<'c> {
    let ty = e.vector_type(scalar, SIZE * SIZE).into();
    let all = e.load(ty, stack, scalar.size_bytes() as u32);
    let all = all.into_vector_value();
    let pair = |k: u32| lanes(e, all, all, (0..PAIR).map(|lane| k * PAIR + lane));
    (0..SIZE / 2).map(pair).collect()
}

fn write_stack<'c>(
    e: &Emit<'c>,
    scalar: Scalar,
    stack: PointerValue<'c>,
    rows: &[VectorValue<'c>],
) {
    let halves = [(0, 1), (2, 3)].map(|(a, b)| lanes(e, rows[a], rows[b], 0..2 * PAIR));
    let all = lanes(e, halves[0], halves[1], 0..4 * PAIR);
    e.store(all.into(), stack, scalar.size_bytes() as u32);
}

/// Columns as rows. Taking the upper and the lower four rows entry by entry in turns rotates the six
/// bits of an entry's number (row, column) by one; three times exchange row and column.
fn transpose<'c>(e: &Emit<'c>, mut rows: Rows<'c>) -> Rows<'c> {
    for _ in 0..3 {
        let (upper, lower) = rows.split_at(rows.len() / 2);
        rows = upper
            .iter()
            .zip(lower)
            .flat_map(|(a, b)| [0, PAIR / 2].map(|first| (*a, *b, first)))
            .map(|(a, b, first)| shuffle(e, a, b, |lane| first + lane / 2 + lane % 2 * PAIR))
            .collect();
    }
    rows
}

/// The rows of memory that a matrix covers.
struct Access<'e, 'c> {
    e: &'e Emit<'c>,
    scalar: Scalar,
    memory: MatrixMemory<'c>,
    /// First element and elements from row to row as integers of 128 bits, in which nothing wraps.
    first: IntValue<'c>,
    step: IntValue<'c>,
    length: IntValue<'c>,
    /// Its rows, if they are in bounds, where 64 bits hold all distances.
    rows: RowsInMemory<'c>,
}

impl<'e, 'c> Access<'e, 'c> {
    fn new(e: &'e Emit<'c>, scalar: Scalar, memory: &MatrixMemory<'c>) -> Access<'e, 'c> {
        let ty = e.context.i128_type();
        let b = &e.builder;
        let widen = |(scalar, value): (Scalar, IntValue<'c>)| {
            if scalar.is_signed_integer() {
                b.build_int_s_extend(value, ty, "").expect(BUILT)
            } else {
                b.build_int_z_extend(value, ty, "").expect(BUILT)
            }
        };
        let bytes = |elements: IntValue<'c>| {
            let elements = b.build_int_truncate(elements, e.context.i64_type(), "");
            e.mul(elements.expect(BUILT), e.i64(scalar.size_bytes()))
        };
        let [first, step] = [memory.index, memory.row].map(widen);
        Access {
            e,
            scalar,
            memory: *memory,
            first,
            step,
            length: widen((Scalar::U64, memory.length)),
            rows: RowsInMemory {
                first: e.byte_offset(memory.base, bytes(first)),
                step: bytes(step),
            },
        }
    }

    fn bytes(&self) -> u32 {
        self.scalar.size_bytes() as u32
    }

    fn row_type(&self) -> BasicTypeEnum<'c> {
        self.e.vector_type(self.scalar, SIZE).into()
    }

    fn wide(&self, value: u64) -> IntValue<'c> {
        self.e.context.i128_type().const_int(value, false)
    }

    /// Whether that many elements from this one on are in bounds.
    fn is_inside(&self, first: IntValue<'c>, count: u64) -> IntValue<'c> {
        let e = self.e;
        let last = e.add(first, self.wide(count));
        let from = e.compare(IntPredicate::SGE, first, self.wide(0));
        e.and(from, e.compare(IntPredicate::SLE, last, self.length))
    }

    /// Whether all entries are in bounds: those of the first and of the last row, between which the
    /// others lie.
    fn is_whole(&self) -> IntValue<'c> {
        let e = self.e;
        let last = e.add(self.first, e.mul(self.step, self.wide(ROW - 1)));
        e.and(self.is_inside(self.first, ROW), self.is_inside(last, ROW))
    }

    fn address(&self, element: IntValue<'c>) -> PointerValue<'c> {
        let word = self.e.context.i64_type();
        let element = self
            .e
            .builder
            .build_int_truncate(element, word, "")
            .expect(BUILT);
        let bytes = self.e.mul(element, self.e.i64(self.scalar.size_bytes()));
        self.e.byte_offset(self.memory.base, bytes)
    }

    /// Where row `r` begins; it is in bounds.
    fn row(&self, r: u64) -> PointerValue<'c> {
        let e = self.e;
        e.byte_offset(self.rows.first, e.mul(self.rows.step, e.i64(r)))
    }

    /// All rows, which are in bounds.
    fn read_rows(&self) -> Rows<'c> {
        let e = self.e;
        let pair = |pair: u64| {
            let [upper, lower] = [2 * pair, 2 * pair + 1].map(|r| {
                let row = e.load(self.row_type(), self.row(r), self.bytes());
                let races = self.memory.races;
                let row = if races { e.freeze(row) } else { row };
                row.into_vector_value()
            });
            shuffle(e, upper, lower, |lane| lane)
        };
        (0..ROW / 2).map(pair).collect()
    }

    /// Writes all rows, which are in bounds.
    fn write_rows(&self, rows: &[VectorValue<'c>]) {
        let e = self.e;
        for (r, pointer) in (0..ROW).map(|r| (r, self.row(r))) {
            let order: Vec<_> = (0..SIZE).map(|l| e.i32(r as u32 % 2 * SIZE + l)).collect();
            let order = VectorType::const_vector(&order);
            let pair = rows[r as usize / 2];
            let row = e.builder.build_shuffle_vector(pair, pair, order, "");
            e.store(row.expect(BUILT).into(), pointer, self.bytes());
        }
    }

    fn stack_entry(&self, stack: PointerValue<'c>, entry: IntValue<'c>) -> PointerValue<'c> {
        let bytes = self.e.mul(entry, self.e.i64(self.scalar.size_bytes()));
        self.e.byte_offset(stack, bytes)
    }

    /// A loop over the entries that are in bounds: each one's address and number.
    fn each_inside(&self, body: impl FnOnce(PointerValue<'c>, IntValue<'c>)) {
        let e = self.e;
        let before = e.here();
        let [head, inside, next, done] =
            ["entry", "inside", "next", "entries_done"].map(|name| e.block(name));
        e.branch(head);
        e.go(head);
        let phi = e.builder.build_phi(e.context.i64_type(), "").expect(BUILT);
        let entry = phi.as_basic_value().into_int_value();
        let wide = |value| {
            let ty = e.context.i128_type();
            e.builder.build_int_z_extend(value, ty, "").expect(BUILT)
        };
        let row = wide(e.divide(entry, e.i64(ROW)));
        let column = wide(e.remainder(entry, e.i64(ROW)));
        let element = e.add(e.add(self.first, e.mul(row, self.step)), column);
        e.branch_if(self.is_inside(element, 1), inside, next);
        e.go(inside);
        body(self.address(element), entry);
        e.branch(next);
        e.go(next);
        let following = e.add(entry, e.i64(1));
        phi.add_incoming(&[(&e.i64(0), before), (&following, next)]);
        let more = e.compare(IntPredicate::ULT, following, e.i64(ROW * ROW));
        e.branch_if(more, head, done);
        e.go(done);
    }
}

#[cfg(test)]
mod tests {
    //! Against the definition, entry by entry.

    use invar_ir::ops::Meaning;
    use invar_ir::text::data::random_scalar;

    use super::*;
    use crate::test_jit::{self, Jit, Processor};

    const FLOATS: [Scalar; 4] = [Scalar::F16, Scalar::BF16, Scalar::F32, Scalar::F64];
    const ENTRIES: usize = (SIZE * SIZE) as usize;

    fn evaluate(op: Op, from: Scalar, to: Scalar, args: &[u64]) -> u64 {
        let Meaning::Eval(evaluator) = op.row().meaning else {
            unreachable!("a basic operation")
        };
        let columns: Vec<&[u64]> = args.iter().map(std::slice::from_ref).collect();
        let mut out = [0];
        evaluator(from, to, &columns, &mut out);
        out[0]
    }

    fn rows<'c>(e: &Emit<'c>, scalar: Scalar, base: PointerValue<'c>) -> Rows<'c> {
        let pair = |r: u64| e.byte_offset(base, e.i64(2 * r * ROW * scalar.size_bytes()));
        (0..ROW / 2)
            .map(|r| Jit::load(e, pair(r), scalar, Some(PAIR)).into_vector_value())
            .collect()
    }

    fn keep<'c>(e: &Emit<'c>, scalar: Scalar, base: PointerValue<'c>, rows: &[VectorValue<'c>]) {
        for (r, row) in rows.iter().enumerate() {
            let place = e.byte_offset(base, e.i64(2 * r as u64 * ROW * scalar.size_bytes()));
            Jit::store(e, place, scalar, (*row).into());
        }
    }

    fn number(scalar: Scalar, seed: u64, k: u64) -> u64 {
        // Of both signs, and now and then with an exponent far off.
        let bits = random_scalar(scalar, seed, k).bits;
        let more = random_scalar(Scalar::U64, seed + 1, k).bits;
        let sign = (more & 1) << (scalar.bits() - 1);
        bits ^ sign ^ (more >> 1 & u64::from(more.is_multiple_of(5)) << (scalar.bits() - 4))
    }

    fn check_products(processor: &Processor) {
        let context = test_jit::context();
        let mut jit = Jit::new(&context, processor);
        let mut cases = Vec::new();
        for a in FLOATS {
            for b in FLOATS {
                for c in FLOATS {
                    cases.push((a, b, c));
                }
            }
        }
        for (i, (a, b, c)) in cases.iter().enumerate() {
            jit.function(&format!("f{i}"), 4, |e, p| {
                let [x, y, z] = [(*a, p[0]), (*b, p[1]), (*c, p[2])].map(|(s, p)| rows(e, s, p));
                let products = [[(*a, x), (*b, y), (*c, z)]];
                let sums = multiply_by_entries(e, &products, &[[Value(0), Value(1)]])
                    .unwrap_or_else(|| multiply_accumulate(e, first_entries(e), &products));
                keep(e, *c, p[3], &sums[0]);
            });
        }
        let program = jit.finish();
        for (i, (a, b, c)) in cases.iter().enumerate() {
            let numbers = |scalar, seed| -> Vec<u64> {
                (0..ENTRIES as u64)
                    .map(|k| number(scalar, seed, k))
                    .collect()
            };
            let (x, y, z) = (numbers(*a, 1), numbers(*b, 3), numbers(*c, 5));
            let mut memory = [
                test_jit::bytes(&x, *a),
                test_jit::bytes(&y, *b),
                test_jit::bytes(&z, *c),
                vec![0; ENTRIES * c.size_bytes() as usize],
            ];
            let mut slices: Vec<&mut [u8]> = memory.iter_mut().map(Vec::as_mut_slice).collect();
            program.function(&format!("f{i}")).call(&mut slices);
            let found = test_jit::scalars(&memory[3], *c);
            for entry in 0..ENTRIES {
                let (r, column) = (entry / 8, entry % 8);
                let sum = (0..8).fold(z[entry], |sum, k| {
                    let left = evaluate(Op::Cast, *a, *c, &[x[r * 8 + k]]);
                    let right = evaluate(Op::Cast, *b, *c, &[y[k * 8 + column]]);
                    evaluate(Op::Fma, *c, *c, &[left, right, sum])
                });
                let nan = test_jit::is_nan(*c, sum) && test_jit::is_nan(*c, found[entry]);
                assert!(found[entry] == sum || nan, "{a} {b} {c} entry {entry}");
            }
        }
    }

    #[test]
    fn products_accumulate_in_order_on_this_processor() {
        check_products(&test_jit::native());
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn products_accumulate_in_order_with_avx2() {
        test_jit::with_avx2(check_products);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn products_accumulate_in_order_on_any_x86_64() {
        check_products(&test_jit::baseline());
    }

    /// B1, B2, B4: entries of any index and row length, also such that wrap in 64 bits.
    #[test]
    fn b4_entries_out_of_bounds_are_0_and_not_written() {
        let processor = test_jit::native();
        let context = test_jit::context();
        let mut jit = Jit::new(&context, &processor);
        let integers = [Scalar::I8, Scalar::U32, Scalar::I64, Scalar::U64];
        let mut cases = Vec::new();
        for scalar in FLOATS {
            for integer in integers {
                for transpose in [false, true] {
                    cases.push((scalar, integer, transpose));
                }
            }
        }
        for (i, (scalar, integer, transpose)) in cases.iter().enumerate() {
            for write in [false, true] {
                jit.function(&format!("f{i}{write}"), 5, |e, p| {
                    let read = |k: usize, s| Jit::load(e, p[k], s, None).into_int_value();
                    let memory = MatrixMemory {
                        base: p[0],
                        length: read(1, Scalar::U64),
                        index: (*integer, read(2, *integer)),
                        row: (*integer, read(3, *integer)),
                        transpose: *transpose,
                        inside: false,
                        races: true,
                    };
                    if write {
                        store(e, *scalar, &memory, &rows(e, *scalar, p[4]));
                    } else {
                        keep(e, *scalar, p[4], &load(e, *scalar, &memory));
                    }
                });
            }
        }
        let program = jit.finish();
        for (i, (scalar, integer, transpose)) in cases.iter().enumerate() {
            for length in [64_u64, 100, 7, 0] {
                let content: Vec<u64> = (0..length).map(|k| number(*scalar, 9, k)).collect();
                let matrix: Vec<u64> = (0..ENTRIES as u64)
                    .map(|k| number(*scalar, 11, k))
                    .collect();
                let mask = u64::MAX >> (64 - integer.bits());
                let numbers = [
                    0,
                    1,
                    8,
                    9,
                    12,
                    36,
                    37,
                    64,
                    1 << 61,
                    1 << 63,
                    u64::MAX,
                    u64::MAX - 7,
                ];
                for (index, row) in numbers
                    .iter()
                    .flat_map(|i| numbers.map(|r| (i & mask, r & mask)))
                {
                    let elements: Vec<i128> = (0..ENTRIES as i128)
                        .map(|entry| {
                            let (r, c) = (entry / 8, entry % 8);
                            let (along, across) = if *transpose { (c, r) } else { (r, c) };
                            integer.integer(index) + along * integer.integer(row) + across
                        })
                        .collect();
                    let at = |element: i128| {
                        usize::try_from(element)
                            .ok()
                            .filter(|k| *k < length as usize)
                    };
                    let mut stored = content.clone();
                    for (element, value) in elements.iter().zip(&matrix) {
                        if let Some(k) = at(*element) {
                            stored[k] = *value;
                        }
                    }
                    let loaded: Vec<u64> = elements
                        .iter()
                        .map(|k| at(*k).map_or(0, |k| content[k]))
                        .collect();
                    for write in [false, true] {
                        // Rows that overlap are stored in an order that the program cannot know.
                        let overlap = {
                            let mut all = elements.clone();
                            all.sort_unstable();
                            all.windows(2).any(|pair| pair[0] == pair[1])
                        };
                        if write && overlap {
                            continue;
                        }
                        let mut memory = [
                            test_jit::bytes(&content, *scalar),
                            test_jit::bytes(&[length], Scalar::U64),
                            test_jit::bytes(&[index], *integer),
                            test_jit::bytes(&[row], *integer),
                            test_jit::bytes(&matrix, *scalar),
                        ];
                        let mut slices: Vec<&mut [u8]> =
                            memory.iter_mut().map(Vec::as_mut_slice).collect();
                        program.function(&format!("f{i}{write}")).call(&mut slices);
                        let what = format!("{scalar} {integer} {index:x} {row:x} of {length}");
                        if write {
                            let found = test_jit::scalars(&memory[0], *scalar);
                            assert_eq!(found, stored, "store {what}");
                        } else {
                            let found = test_jit::scalars(&memory[4], *scalar);
                            assert_eq!(found, loaded, "load {what}");
                        }
                    }
                }
            }
        }
    }
}
