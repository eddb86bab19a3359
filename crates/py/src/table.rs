//! The op table and the rules, as data.

use invar_ir::ops::{Capability, Signature};
use invar_ir::{Imm, Op, Rule, Type};
use pyo3::prelude::*;

/// What stands beside the values of an operation: 0 nothing, 1 a type, 2 a component, 3 a swizzle.
fn imm_kind(signature: Signature) -> u8 {
    match signature {
        Signature::Cast | Signature::AsType | Signature::Construct => 1,
        Signature::QueryDim => 2,
        Signature::Swizzle => 3,
        Signature::Same(..)
        | Signature::Compare(_)
        | Signature::Test(_)
        | Signature::Select(_)
        | Signature::Ldexp
        | Signature::ExtractBits
        | Signature::InsertBits
        | Signature::Extract
        | Signature::Insert
        | Signature::VectorToScalar(..)
        | Signature::Refract
        | Signature::MatrixMultiply
        | Signature::Transpose
        | Signature::Determinant
        | Signature::Fixed(..)
        | Signature::Lanes(_)
        | Signature::LanesBy(_)
        | Signature::Query => 0,
    }
}

/// How operands share types: the operands (by place) that must have one type, the types that the
/// others have, by place, and empty for what is free.
fn operand_types(signature: Signature) -> Vec<String> {
    let same = |n: usize| vec!["T".to_string(); n];
    let list = |names: &[&str]| names.iter().map(|n| n.to_string()).collect();
    match signature {
        Signature::Same(n, _) | Signature::VectorToScalar(n, _) => same(n.into()),
        Signature::Compare(_) => same(2),
        Signature::Test(_) | Signature::Lanes(_) => same(1),
        Signature::Select(_) => list(&["T", "T", "bool"]),
        Signature::Ldexp => list(&["T", "i32"]),
        Signature::ExtractBits => list(&["T", "u32", "u32"]),
        Signature::InsertBits => list(&["T", "T", "u32", "u32"]),
        Signature::Refract => list(&["T", "T", "S"]),
        Signature::LanesBy(_) => list(&["T", "u32"]),
        Signature::Fixed(types, _) => types.iter().map(Type::to_string).collect(),
        Signature::Cast
        | Signature::AsType
        | Signature::Swizzle
        | Signature::Transpose
        | Signature::Determinant => list(&[""]),
        Signature::Extract | Signature::MatrixMultiply => list(&["", ""]),
        Signature::Insert => list(&["", "", ""]),
        Signature::Construct | Signature::QueryDim | Signature::Query => Vec::new(),
    }
}

/// Every row of the op table: name, what stands beside the values (0 nothing, 1 a type, 2 a
/// component, 3 a swizzle), its operands' types (`T` for one that is shared, `S` for its scalar, a
/// type's name for that of the shape of `T`, nothing where any goes), what they are called, the signature in words,
/// what a device needs, and the documentation.
#[pyfunction]
#[expect(
    clippy::type_complexity,
    reason = "a row of a table, unpacked by its one reader"
)]
pub fn ops() -> Vec<(
    &'static str,
    u8,
    Vec<String>,
    &'static [&'static str],
    String,
    &'static str,
    String,
)> {
    Op::all()
        .map(|op| {
            let row = op.row();
            let capability = match row.capability {
                Capability::Core => "core",
                Capability::Simdgroup => "simdgroup",
                Capability::Quadgroup => "quadgroup",
            };
            (
                row.name,
                imm_kind(row.signature),
                operand_types(row.signature),
                row.operands,
                row.signature.to_string(),
                capability,
                row.text(),
            )
        })
        .collect()
}

/// Every rule's name and explanation.
#[pyfunction]
pub fn rules() -> Vec<(&'static str, &'static str)> {
    Rule::ALL
        .iter()
        .map(|rule| (rule.name(), rule.explanation()))
        .collect()
}

/// The result type of an operation, or the operand that does not fit, in words.
pub fn result_type(op: Op, imm: Imm, types: &[Type]) -> Result<Type, String> {
    use invar_ir::ops::SignatureError;
    op.result_type(imm, types).map_err(|error| match error {
        SignatureError::Count { expected, found } => {
            format!("`{op}` takes {expected} operands, found {found}")
        }
        SignatureError::Operand { index, expected } => format!(
            "operand {} of `{op}` has type {}, expected {expected}",
            index + 1,
            types[index]
        ),
        SignatureError::Imm(what) => format!("`{op}`: {what}"),
    })
}
