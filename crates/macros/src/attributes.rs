//! Attributes in a body: those of a statement stand on what becomes of it, so that `#[cfg]` and `#[allow]` mean
//! there what they mean elsewhere. No other words of a body have any, as in Rust.

use syn::{Attribute, Expr, Result};

use crate::refuse::refuse;

/// The attributes of an expression of a sort that kernels have.
fn attributes_of(expr: &Expr) -> &[Attribute] {
    macro_rules! of {
        ($($sort:ident)*) => {
            match expr {
                $(Expr::$sort(it) => &it.attrs,)*
                _ => &[],
            }
        };
    }
    of!(
        Array Assign Binary Block Break Call Cast Continue Field ForLoop If Index Lit Loop Macro Match
        MethodCall Paren Path Reference Repeat Return Struct Tuple Unary While
    )
}

/// An attribute that says something: a comment does not.
fn said(attributes: &[Attribute]) -> impl Iterator<Item = &Attribute> {
    attributes.iter().filter(|a| !a.path().is_ident("doc"))
}

/// Those of a statement that is an expression.
pub fn of_statement(expr: &Expr) -> Vec<&Attribute> {
    said(attributes_of(expr)).collect()
}

/// Those of a `let`.
pub fn of_local(local: &syn::Local) -> Vec<&Attribute> {
    said(&local.attrs).collect()
}

/// Refuses those of an expression in the midst of a statement.
pub fn none_on(expr: &Expr) -> Result<()> {
    none(attributes_of(expr))
}

/// Refuses attributes.
pub fn none(attributes: &[Attribute]) -> Result<()> {
    match said(attributes).next() {
        Some(first) => refuse(
            first,
            "attributes in a kernel stand on statements: on `let`, `if`, a loop or a block, `#[cfg(x)] { ... }`",
        ),
        None => Ok(()),
    }
}
