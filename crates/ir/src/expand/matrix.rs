//! Small matrices. Each entry of a product accumulates in index order by fma (A11).

use super::double::Double;
use super::term::{Float, Term, Terms};
use super::vector::{difference_of_products, dot_product, floats};
use super::wide::{Split, Sums, Wide, all_finite};
use super::{components, in_f32, scalar_of, splat, with_scalar};
use crate::builder::KernelBuilder;
use crate::inst::Value;
use crate::ops::Imm;
use crate::types::{Scalar, Type};

/// A matrix's columns.
pub(super) fn columns(b: &mut KernelBuilder, matrix: Value) -> Vec<Value> {
    let Type::Matrix { columns, .. } = b.ty(matrix) else {
        return Vec::new();
    };
    (0..u32::from(columns))
        .map(|k| {
            let index = b.const_u32(k);
            b.extract(matrix, index)
        })
        .collect()
}

/// `column_0 * v_0`, then `fma(column_k, v_k, sum)`.
fn times_vector(b: &mut KernelBuilder, columns: &[Value], vector: Value) -> Value {
    let ty = b.ty(columns[0]);
    let parts: Vec<Value> = components(b, vector)
        .into_iter()
        .map(|part| splat(b, ty, part))
        .collect();
    let first = b.mul(columns[0], parts[0]);
    let rest = columns[1..].iter().zip(&parts[1..]);
    rest.fold(first, |sum, (column, part)| b.fma(*column, *part, sum))
}

/// Every entry is the product of a row and a column.
pub(crate) fn multiply(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    in_f32(b, args, |b, args| {
        let (x, y) = (args[0], args[1]);
        match (b.ty(x), b.ty(y)) {
            (Type::Matrix { scalar, rows, .. }, Type::Matrix { columns: count, .. }) => {
                let left = columns(b, x);
                let result: Vec<Value> = columns(b, y)
                    .into_iter()
                    .map(|column| times_vector(b, &left, column))
                    .collect();
                let ty = Type::Matrix {
                    scalar,
                    columns: count,
                    rows,
                };
                b.construct(ty, &result)
            }
            (Type::Matrix { .. }, _vector) => {
                let left = columns(b, x);
                times_vector(b, &left, y)
            }
            (vector, _matrix) => {
                let entries: Vec<Value> = columns(b, y)
                    .into_iter()
                    .map(|column| dot_product(b, x, column))
                    .collect();
                let ty = Type::Vector(scalar_of(vector), entries.len() as u8);
                b.construct(ty, &entries)
            }
        }
    })
}

/// Row by row the first components of all columns, then the second ones.
pub(crate) fn transpose(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    let entries: Vec<Vec<Value>> = columns(b, args[0])
        .into_iter()
        .map(|column| components(b, column))
        .collect();
    let scalar = scalar_of(b.ty(args[0]));
    let (columns, rows) = (entries[0].len() as u8, entries.len() as u8);
    let result: Vec<Value> = (0..usize::from(columns))
        .map(|row| {
            let parts: Vec<Value> = entries.iter().map(|column| column[row]).collect();
            b.construct(Type::Vector(scalar, rows), &parts)
        })
        .collect();
    let ty = Type::Matrix {
        scalar,
        columns,
        rows,
    };
    b.construct(ty, &result)
}

/// The minors of two columns and what they are summed up to: the products of each with an entry of the
/// first column (of three), or of two minors (of four).
struct Minors<N> {
    minors: Vec<N>,
    products: Vec<N>,
}

impl<N: Sums> Minors<N> {
    fn of(entry: &dyn Fn(usize, usize) -> N::Entry, columns: usize) -> Minors<N> {
        // Of two columns, from this one on.
        let minor = |column: usize, [i, j]: [usize; 2]| {
            let product = |i, j| N::product(entry(column, i), entry(column + 1, j));
            product(i, j).minus(product(j, i))
        };
        // The rows are in the order of an even permutation, so that no sign changes.
        let mut minors = Vec::new();
        let mut products = Vec::new();
        if columns == 3 {
            for [i, j, k] in [[0, 1, 2], [1, 2, 0], [2, 0, 1]] {
                let rest = minor(1, [j, k]);
                minors.push(rest);
                products.push(rest.times(entry(0, i)));
            }
        } else {
            let rows = [
                [0, 1, 2, 3],
                [2, 0, 1, 3],
                [0, 3, 1, 2],
                [1, 2, 0, 3],
                [3, 1, 0, 2],
                [2, 3, 0, 1],
            ];
            for [i, j, k, l] in rows {
                let (first, last) = (minor(0, [i, j]), minor(2, [k, l]));
                minors.extend([first, last]);
                products.push(first.times_double(last));
            }
        }
        Minors { minors, products }
    }

    fn sum(&self) -> N {
        let rest = self.products[1..].iter();
        rest.fold(self.products[0], |sum, product| sum.plus(*product))
    }
}

/// Of three or four columns, at least where no step overflows, or underflows so far that it counts, as the
/// formula reads; else of numbers with an exponent of their own.
///
/// A step that underflows is off by a few of the smallest subnormals `s`, and goes into the sum times an entry
/// of the first column or another minor. So with `B` the sum of their magnitudes and `A` that of the
/// products, all is well where `(B + 1) s` is as little of `A` as the bound, and some binades less.
fn by_minors<'t>(terms: &'t Terms<'t>, columns: &[Vec<Float<'t>>]) -> Float<'t> {
    let count = columns.len();
    let usual = Minors::<Double<'t>>::of(&|column, row| columns[column][row], count);
    let size = |numbers: &mut dyn Iterator<Item = Float<'t>>| {
        let first = numbers.next().unwrap_or_else(|| terms.float(0.0)).abs();
        numbers.fold(first, |sum, x| sum + x.abs())
    };
    let products = size(&mut usual.products.iter().map(|x| x.value));
    let by = if count == 3 {
        size(&mut columns[0].iter().copied())
    } else {
        size(&mut usual.minors.iter().map(|x| x.value))
    };
    let least = 2f64.powi(terms.by_format(-100, -960));
    let most = 2f64.powi(terms.by_format(120, 1000));
    let fits = products.ge(by.fma(least, least)) & (products + by).lt(most);
    let result = usual.sum().rounded();
    let [result] = terms.rarely(!fits, [result.value()], || {
        let split = columns.iter().map(|column| column.iter().copied());
        let split: Vec<Vec<Split<'_>>> = split
            .map(|column| column.map(Split::of).collect())
            .collect();
        let wide = Minors::<Wide<'_>>::of(&|column, row| split[column][row], count);
        // What is not finite is as the formula has it.
        let finite = all_finite(&columns.concat());
        [finite.pick(wide.sum().rounded(), result).value()]
    });
    terms.float_of(result)
}

/// Of two columns the difference of products; of three the first column times the minors of the others;
/// of four the minors of the first two columns times those of the last two. Of three and four, products
/// and sums keep what rounding loses.
pub(crate) fn determinant(b: &mut KernelBuilder, _: Imm, args: &[Value]) -> Value {
    let scalar = scalar_of(b.ty(args[0]));
    // A matrix cannot be cast at once, but its scalar result can.
    let wide = if matches!(scalar, Scalar::F16 | Scalar::BF16) {
        super::cast_scalar(b, args[0], Scalar::F32)
    } else {
        args[0]
    };
    let columns: Vec<Vec<Value>> = columns(b, wide)
        .into_iter()
        .map(|column| components(b, column))
        .collect();
    let result = {
        let ty = b.ty(columns[0][0]);
        let terms = Terms::new(b, ty);
        let columns: Vec<Vec<Float>> = columns.iter().map(|x| floats(&terms, x)).collect();
        let result = match columns.as_slice() {
            [x, y] => difference_of_products([x[0], y[1], x[1], y[0]]),
            _three_or_four => by_minors(&terms, &columns),
        };
        result.value()
    };
    if with_scalar(b.ty(result), scalar) == b.ty(result) {
        result
    } else {
        b.cast(result, Type::Scalar(scalar))
    }
}
