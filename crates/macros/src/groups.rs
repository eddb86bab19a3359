//! What the author's own macros put in: `$x:expr` comes as a group without a mark. Here it becomes one in
//! parentheses, or what is in it where there is nothing to keep together. And `;` that ends nothing, which is left
//! out.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use syn::{Block, ItemFn, Lifetime, Path, Result, Type};

/// The words with their lifetimes out of their groups: of `$label: loop` a group would be read as an expression.
pub fn bare_lifetimes(words: TokenStream) -> TokenStream {
    freed(&words).unwrap_or(words)
}

fn freed(words: &TokenStream) -> Option<TokenStream> {
    let mut is_changed = false;
    let mut out = TokenStream::new();
    for word in words.clone() {
        let TokenTree::Group(group) = &word else {
            out.extend([word]);
            continue;
        };
        let inner = group.stream();
        if group.delimiter() == Delimiter::None && syn::parse2::<Lifetime>(inner.clone()).is_ok() {
            is_changed = true;
            out.extend(inner);
        } else if let Some(inner) = freed(&inner) {
            is_changed = true;
            out.extend([enclosed(group, group.delimiter(), inner)]);
        } else {
            out.extend([word]);
        }
    }
    is_changed.then_some(out)
}

/// A function whose body has no such groups.
pub fn ungrouped(mut function: ItemFn) -> Result<ItemFn> {
    let block = &function.block;
    if let Some(words) = marked(quote::quote!(#block), false) {
        *function.block = syn::parse2::<Block>(words)?;
    }
    Ok(function)
}

/// A type out of its group.
pub fn ungrouped_type(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => ungrouped_type(&group.elem),
        other => other,
    }
}

/// The words with marks, if there is such a group among them; in a block without `;` that ends nothing.
fn marked(words: TokenStream, in_block: bool) -> Option<TokenStream> {
    let mut is_changed = false;
    let mut out = TokenStream::new();
    let mut is_ended = in_block;
    for word in words {
        let TokenTree::Group(group) = word else {
            let ends = in_block && matches!(&word, TokenTree::Punct(p) if p.as_char() == ';');
            if ends && is_ended {
                is_changed = true;
            } else {
                out.extend([word]);
            }
            is_ended = ends;
            continue;
        };
        is_ended = false;
        let inner = marked(group.stream(), group.delimiter() == Delimiter::Brace);
        let delimiter = match group.delimiter() {
            Delimiter::None => {
                let inner = inner.unwrap_or_else(|| group.stream());
                is_changed = true;
                if stands_alone(&inner) {
                    out.extend(inner);
                    continue;
                }
                out.extend([enclosed(&group, Delimiter::Parenthesis, inner)]);
                continue;
            }
            marks => marks,
        };
        match inner {
            Some(inner) => {
                is_changed = true;
                out.extend([enclosed(&group, delimiter, inner)]);
            }
            None => out.extend([TokenTree::Group(group)]),
        }
    }
    is_changed.then_some(out)
}

fn enclosed(group: &Group, delimiter: Delimiter, inner: TokenStream) -> TokenTree {
    let mut made = Group::new(delimiter, inner);
    made.set_span(group.span());
    TokenTree::Group(made)
}

/// Whether words mean the same without marks around them: one word, a path, or a statement.
fn stands_alone(words: &TokenStream) -> bool {
    let mut each = words.clone().into_iter();
    let first = each.next().map(|word| word.to_string());
    each.next().is_none()
        || first.is_some_and(|word| word == "let")
        || syn::parse2::<Path>(words.clone()).is_ok()
}
