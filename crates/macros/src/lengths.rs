//! The lengths of `threadgroup!([[f32; N]; M])`: Rust constants of any integer type.
//!
//! Where Rust's types can say them, an array is of a Rust type, and may be passed to functions. A const generic that
//! is not a `usize`, or is computed with, stands in no type: of those the kernel alone knows the lengths.

use std::collections::HashMap;

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Expr, ExprLit, GenericParam, Generics, Lit, Type, TypeArray};

use crate::foreign::looked_up;
use crate::source::located;

pub struct Lengths<'a> {
    /// Outermost first.
    pub all: Vec<&'a Expr>,
    /// What the innermost arrays hold.
    pub leaf: &'a Type,
    /// The inner ones as they stand in a type; none if one cannot.
    inner: Option<Vec<TokenStream>>,
}

impl<'a> Lengths<'a> {
    pub fn of(array: &'a TypeArray, generics: &Generics) -> Lengths<'a> {
        let (mut all, mut leaf) = (vec![&array.len], &*array.elem);
        while let Type::Array(inner) = leaf {
            all.push(&inner.len);
            leaf = &inner.elem;
        }
        let generics = generics.params.iter().map(|parameter| match parameter {
            GenericParam::Const(it) => {
                let ty = &it.ty;
                (it.ident.to_string(), quote!(#ty).to_string() == "usize")
            }
            GenericParam::Type(it) => (it.ident.to_string(), false),
            GenericParam::Lifetime(it) => (it.lifetime.to_string(), false),
        });
        let generics: HashMap<String, bool> = generics.collect();
        let inner = all[1..].iter().map(|length| in_type(length, &generics));
        Lengths {
            inner: inner.collect(),
            all,
            leaf,
        }
    }

    /// What the outermost array holds, as a type.
    pub fn element(&self) -> Option<TokenStream> {
        let leaf = looked_up(self.leaf);
        let inner = self.inner.as_ref()?.iter().rev();
        Some(inner.fold(leaf, |of, length| quote!([#of; #length])))
    }

    /// What `[i]` of the outermost array gives, as a type of `invar::kernel`.
    pub fn part(&self) -> TokenStream {
        let leaf = looked_up(self.leaf);
        let spot = quote!(::invar::kernel::expansion::Spot<#leaf>);
        (1..self.all.len()).fold(spot, |of, _| quote!(::invar::kernel::Rows<#of>))
    }
}

/// A length as it stands in a type, where it can.
fn in_type(length: &Expr, generics: &HashMap<String, bool>) -> Option<TokenStream> {
    if let Expr::Lit(_) = length {
        return Some(length.to_token_stream());
    }
    if let Expr::Path(path) = length
        && let Some(name) = path.path.get_ident()
        && let Some(is_usize) = generics.get(&name.to_string())
    {
        return is_usize.then(|| length.to_token_stream());
    }
    if mentions(length.to_token_stream(), generics) {
        return None;
    }
    // Of an integer `& !0` changes nothing, and nothing else has it.
    Some(quote_spanned!(located(length)=> { ((#length) & !0) as usize }))
}

/// Whether one of the parameters stands in some words.
fn mentions(words: TokenStream, generics: &HashMap<String, bool>) -> bool {
    words.into_iter().any(|word| match word {
        TokenTree::Group(group) => mentions(group.stream(), generics),
        TokenTree::Ident(name) => generics.contains_key(&name.to_string()),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}

/// Whether it is a literal 0.
pub fn is_zero(number: &Expr) -> bool {
    let Expr::Lit(ExprLit {
        lit: Lit::Int(number),
        ..
    }) = number
    else {
        return false;
    };
    number.base10_parse::<u64>().is_ok_and(|number| number == 0)
}
