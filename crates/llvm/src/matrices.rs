//! Simdgroup matrices: one value for the whole simdgroup, a vector for each row.
//!
//! They belong to the simdgroup, so a partial one works on them as a full one does (X6). Entries out
//! of bounds are read as 0 and not written, each for itself (B1, B2); the index of an entry is computed
//! without wrapping (B4).

use inkwell::IntPredicate;
use inkwell::types::{BasicTypeEnum, VectorType};
use inkwell::values::{BasicValueEnum, IntValue, PointerValue, VectorValue};
use invar_ir::{Op, Scalar};

use crate::emit::{BUILT, Emit};
use crate::ops::eval;

/// Rows and columns of a matrix.
pub(crate) const SIZE: u32 = 8;

/// Entries of a row side by side.
const ROW: u64 = SIZE as u64;

/// A matrix: its rows from the first, `<8 x T>` each.
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
}

/// Every entry the same.
pub(crate) fn fill<'c>(e: &Emit<'c>, value: BasicValueEnum<'c>) -> Rows<'c> {
    vec![e.splat(value, SIZE); SIZE as usize]
}

/// `a * b + c` in the type of `c`, to which the factors are converted first: each entry accumulates
/// by fma in the order of the shared index.
pub(crate) fn multiply_accumulate<'c>(
    e: &Emit<'c>,
    (a_type, a): (Scalar, &[VectorValue<'c>]),
    (b_type, b): (Scalar, &[VectorValue<'c>]),
    (scalar, c): (Scalar, &[VectorValue<'c>]),
) -> Rows<'c> {
    let cast = |from, rows: &[VectorValue<'c>]| -> Vec<VectorValue<'c>> {
        let one = |row: &VectorValue<'c>| {
            eval(e, Op::Cast, from, scalar, &[(*row).into()]).into_vector_value()
        };
        rows.iter().map(one).collect()
    };
    let (a, b) = (cast(a_type, a), cast(b_type, b));
    let mut sums = c.to_vec();
    for (k, b_row) in b.iter().enumerate() {
        let place = e.splat(e.i32(k as u32).into(), SIZE);
        for (sum, a_row) in sums.iter_mut().zip(&a) {
            let poison = a_row.get_type().get_poison();
            let factor = e.builder.build_shuffle_vector(*a_row, poison, place, "");
            let args = [factor.expect(BUILT), *b_row, *sum].map(Into::into);
            *sum = eval(e, Op::Fma, scalar, scalar, &args).into_vector_value();
        }
    }
    sums
}

/// Reads a matrix.
pub(crate) fn load<'c>(e: &Emit<'c>, scalar: Scalar, memory: &MatrixMemory<'c>) -> Rows<'c> {
    let m = Access::new(e, scalar, memory);
    let [whole, partly, done] = ["whole", "partly", "loaded"].map(|name| e.block(name));
    e.branch_if(m.is_whole(), whole, partly);

    e.go(whole);
    let read = |r| e.load(m.row_type(), m.row(r), m.bytes());
    let found: Vec<_> = (0..ROW).map(|r| e.freeze(read(r))).collect();
    e.branch(done);

    e.go(partly);
    let stack = m.stack();
    for r in 0..ROW {
        let zero = e.vector_type(scalar, SIZE).const_zero();
        e.store(zero.into(), m.stack_row(stack, r), m.bytes());
    }
    m.each_inside(|place, entry| {
        let value = e.load(e.scalar_type(scalar), place, m.bytes());
        e.store(e.freeze(value), m.stack_entry(stack, entry), m.bytes());
    });
    let rest: Vec<_> = (0..ROW)
        .map(|r| e.load(m.row_type(), m.stack_row(stack, r), m.bytes()))
        .collect();
    let partly = e.here();
    e.branch(done);

    e.go(done);
    let rows = found.iter().zip(&rest).map(|(found, rest)| {
        let phi = e.builder.build_phi(m.row_type(), "").expect(BUILT);
        phi.add_incoming(&[(found, whole), (rest, partly)]);
        phi.as_basic_value().into_vector_value()
    });
    let rows = rows.collect();
    if memory.transpose {
        transpose(e, rows)
    } else {
        rows
    }
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
    let [whole, partly, done] = ["whole", "partly", "stored"].map(|name| e.block(name));
    e.branch_if(m.is_whole(), whole, partly);

    e.go(whole);
    for (r, row) in rows.iter().enumerate() {
        e.store((*row).into(), m.row(r as u64), m.bytes());
    }
    e.branch(done);

    e.go(partly);
    let stack = m.stack();
    for (r, row) in rows.iter().enumerate() {
        e.store((*row).into(), m.stack_row(stack, r as u64), m.bytes());
    }
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

/// Columns as rows. Taking the upper and the lower four rows entry by entry in turns rotates the six
/// bits of an entry's number (row, column) by one; three times exchange row and column.
fn transpose<'c>(e: &Emit<'c>, mut rows: Rows<'c>) -> Rows<'c> {
    let half = SIZE / 2;
    let turns = |first: u32| {
        let list: Vec<_> = (0..SIZE)
            .map(|k| e.i32(first + k / 2 + (k % 2) * SIZE))
            .collect();
        VectorType::const_vector(&list)
    };
    for _ in 0..3 {
        let (upper, lower) = rows.split_at(half as usize);
        rows = upper
            .iter()
            .zip(lower)
            .flat_map(|(a, b)| [0, half].map(|first| (*a, *b, turns(first))))
            .map(|(a, b, order)| {
                e.builder
                    .build_shuffle_vector(a, b, order, "")
                    .expect(BUILT)
            })
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
        Access {
            e,
            scalar,
            memory: *memory,
            first: widen(memory.index),
            step: widen(memory.row),
            length: widen((Scalar::U64, memory.length)),
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
        self.address(e.add(self.first, e.mul(self.step, self.wide(r))))
    }

    fn stack(&self) -> PointerValue<'c> {
        let entries = self.e.vector_type(self.scalar, SIZE * SIZE);
        self.e.stack(entries.into())
    }

    fn stack_row(&self, stack: PointerValue<'c>, r: u64) -> PointerValue<'c> {
        self.stack_entry(stack, self.e.i64(r * ROW))
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

    use inkwell::context::Context;
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
        let row = |r: u64| e.byte_offset(base, e.i64(r * ROW * scalar.size_bytes()));
        (0..ROW)
            .map(|r| Jit::load(e, row(r), scalar, Some(SIZE)).into_vector_value())
            .collect()
    }

    fn keep<'c>(e: &Emit<'c>, scalar: Scalar, base: PointerValue<'c>, rows: &[VectorValue<'c>]) {
        for (r, row) in rows.iter().enumerate() {
            let place = e.byte_offset(base, e.i64(r as u64 * ROW * scalar.size_bytes()));
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
        let context = Context::create();
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
                let sum = multiply_accumulate(e, (*a, &x), (*b, &y), (*c, &z));
                keep(e, *c, p[3], &sum);
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
    fn products_accumulate_in_order_on_any_x86_64() {
        check_products(&test_jit::baseline());
    }

    /// B1, B2, B4: entries of any index and row length, also such that wrap in 64 bits.
    #[test]
    fn b4_entries_out_of_bounds_are_0_and_not_written() {
        let processor = test_jit::native();
        let context = Context::create();
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
