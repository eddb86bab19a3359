//! Small matrices. Each entry of a product accumulates in index order by fma (A11).

use super::double::Double;
use super::term::{Term, Terms};
use super::vector::{difference_of_products, dot_product};
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
    let result = if let [x, y] = columns.as_slice() {
        difference_of_products(b, [x[0], y[1], x[1], y[0]])
    } else {
        let ty = b.ty(columns[0][0]);
        let terms = Terms::new(b, ty);
        let entry = |column: usize, row: usize| terms.float_of(columns[column][row]);
        // Of two columns, from this one on.
        let minor = |column: usize, [i, j]: [usize; 2]| {
            let product = |i, j| Double::product(entry(column, i), entry(column + 1, j));
            product(i, j).minus(product(j, i))
        };
        // The rows are in the order of an even permutation, so that no sign changes.
        let products: Vec<Double> = if columns.len() == 3 {
            let rows = [[0, 1, 2], [1, 2, 0], [2, 0, 1]];
            let product = |[i, j, k]: [usize; 3]| minor(1, [j, k]).times(entry(0, i));
            rows.map(product).into()
        } else {
            let rows = [
                [0, 1, 2, 3],
                [2, 0, 1, 3],
                [0, 3, 1, 2],
                [1, 2, 0, 3],
                [3, 1, 0, 2],
                [2, 3, 0, 1],
            ];
            let product =
                |[i, j, k, l]: [usize; 4]| minor(0, [i, j]).times_double(minor(2, [k, l]));
            rows.map(product).into()
        };
        let rest = products[1..].iter();
        let sum = rest.fold(products[0], |sum, product| sum.plus(*product));
        sum.rounded().value()
    };
    if with_scalar(b.ty(result), scalar) == b.ty(result) {
        result
    } else {
        b.cast(result, Type::Scalar(scalar))
    }
}
