//! Patterns of `match`: their parts, what they give names to, and whether arms leave nothing out.
//!
//! Deliberately absent: when one fits, which `body` asks; fields of structs, and what only types tell of numbers
//! that are left out.

use proc_macro2::{Ident, TokenStream};
use syn::{Arm, Lit, Pat, PatIdent, PatSlice, PatTuple, Result};

use crate::refuse::refuse;
use crate::source::{located, words};

/// The parts of a tuple, each with how it is asked for.
pub fn parts_of_tuple<'p>(
    tuple: &'p PatTuple,
    subject: &TokenStream,
) -> Result<Vec<(&'p Pat, TokenStream)>> {
    let last = tuple.elems.len().wrapping_sub(1);
    let mut parts = Vec::new();
    for (i, part) in tuple.elems.iter().enumerate() {
        match part {
            Pat::Rest(_) if i == last => {}
            Pat::Rest(_) => return refuse(part, "write `_` for each part that is left out"),
            _ => {
                let number = syn::Index::from(i);
                parts.push((part, words!(#subject.#number)));
            }
        }
    }
    Ok(parts)
}

/// The same of a vector.
pub fn parts_of_vector<'p>(
    slice: &'p PatSlice,
    subject: &TokenStream,
) -> Result<Vec<(&'p Pat, TokenStream)>> {
    let names = component_names(slice)?;
    let parts = slice.elems.iter().zip(names);
    Ok(parts
        .map(|(part, name)| (part, words!(#subject.#name())))
        .collect())
}

/// What the components are called that a pattern takes.
pub fn component_names(slice: &PatSlice) -> Result<Vec<Ident>> {
    if !(2..=4).contains(&slice.elems.len()) {
        return refuse(slice, "a vector has 2 to 4 components: `[x, y]`");
    }
    let names = ["x", "y", "z", "w"].iter().take(slice.elems.len());
    Ok(names.map(|name| Ident::new(name, located(slice))).collect())
}

/// The names that a pattern gives, each with what it is given to.
pub fn bound<'p>(pat: &'p Pat, subject: &TokenStream) -> Result<Vec<(&'p PatIdent, TokenStream)>> {
    let of_parts = |parts: Vec<(&'p Pat, TokenStream)>| {
        let mut all = Vec::new();
        for (part, subject) in parts {
            all.extend(bound(part, &subject)?);
        }
        Ok(all)
    };
    match pat {
        Pat::Ident(name) if !is_constant(&name.ident) => {
            if let Some(word) = &name.by_ref {
                return refuse(word, "there are no references in a kernel: leave out `ref`");
            }
            let mut all = vec![(name, subject.clone())];
            if let Some((_, inner)) = &name.subpat {
                all.extend(bound(inner, subject)?);
            }
            Ok(all)
        }
        Pat::Paren(inner) => bound(&inner.pat, subject),
        Pat::Tuple(tuple) => of_parts(parts_of_tuple(tuple, subject)?),
        Pat::Slice(slice) => of_parts(parts_of_vector(slice, subject)?),
        Pat::Or(or) => {
            for case in &or.cases {
                if let Some((name, _)) = bound(case, subject)?.first() {
                    return refuse(name, "a name stands for the whole: `n @ (1 | 2)`");
                }
            }
            Ok(Vec::new())
        }
        _ => Ok(Vec::new()),
    }
}

/// Whether the arms without conditions take every truth value, or every tuple of those.
pub fn all_truths(arms: &[Arm]) -> bool {
    // More parts than these nobody writes out.
    const MOST: usize = 8;
    let arms = arms.iter().filter(|arm| arm.guard.is_none());
    let rows: Vec<Row> = arms.filter_map(|arm| truths(&arm.pat)).flatten().collect();
    let width = rows.iter().map(Vec::len).max().unwrap_or(0);
    let takes = |row: &Row, values: usize| {
        let mut parts = row.iter().enumerate();
        parts.all(|(i, part)| part.is_none_or(|truth| truth == (values >> i & 1 == 1)))
    };
    width <= MOST && (0..1 << width).all(|values| rows.iter().any(|row| takes(row, values)))
}

/// The parts of a tuple: none where every value fits.
type Row = Vec<Option<bool>>;

/// The truth values that a pattern takes; none where it looks at other values.
fn truths(pat: &Pat) -> Option<Vec<Row>> {
    match pat {
        Pat::Lit(syn::ExprLit {
            lit: Lit::Bool(truth),
            ..
        }) => Some(vec![vec![Some(truth.value)]]),
        Pat::Wild(_) => Some(vec![vec![None]]),
        Pat::Ident(name) if !is_constant(&name.ident) => match &name.subpat {
            Some((_, inner)) => truths(inner),
            None => Some(vec![vec![None]]),
        },
        Pat::Paren(inner) => truths(&inner.pat),
        Pat::Or(or) => {
            let cases = or.cases.iter().map(truths);
            Some(cases.collect::<Option<Vec<_>>>()?.concat())
        }
        Pat::Tuple(tuple) => {
            let mut rows: Vec<Row> = vec![Vec::new()];
            for part in &tuple.elems {
                if let Pat::Rest(_) = part {
                    break;
                }
                let part = truths(part)?;
                // A tuple in a tuple has parts of its own.
                if part.iter().any(|row| row.len() != 1) {
                    return None;
                }
                rows = rows
                    .iter()
                    .flat_map(|row| part.iter().map(move |more| [&row[..], &more[..]].concat()))
                    .collect();
            }
            Some(rows)
        }
        _ => None,
    }
}

/// Whether a name is written as constants are.
pub fn is_constant(name: &Ident) -> bool {
    let name = name.to_string();
    name.chars().any(char::is_uppercase) && !name.chars().any(char::is_lowercase)
}
