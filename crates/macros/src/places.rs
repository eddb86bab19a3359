//! Places in memory and parts of values: `x[i]`, `bodies[i].position.x`, `v.y`.
//!
//! A chain of fields and indices in which there is an index is a place, or a part of a vector: only what
//! it names is read or written. A chain of fields of a variable is a part of its value.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Expr, ExprField, Member, Result};

use crate::body::{Body, hidden, hidden_at};
use crate::function::refuse;
use crate::source::{located, place};
use crate::variables::variable;

/// Whether there is an index in a chain.
pub fn is_place(expr: &Expr) -> bool {
    match expr {
        Expr::Index(_) => true,
        Expr::Field(field) => is_place(&field.base),
        Expr::Paren(inner) => is_place(&inner.expr),
        _ => false,
    }
}

/// The name of a field.
pub fn field_name(field: &ExprField) -> Result<&Ident> {
    match &field.member {
        Member::Named(name) => Ok(name),
        Member::Unnamed(number) => refuse(number, "take a tuple apart by `let (a, b) = ...`"),
    }
}

/// The variable that a chain of fields begins with, and the fields in order.
fn fields_of(expr: &Expr) -> Result<Option<(&Ident, Vec<&Ident>)>> {
    let mut fields = Vec::new();
    let mut at = expr;
    loop {
        match at {
            Expr::Field(field) => {
                fields.push(field_name(field)?);
                at = &field.base;
            }
            Expr::Paren(inner) => at = &inner.expr,
            root => {
                fields.reverse();
                return Ok(variable(root).map(|name| (name, fields)));
            }
        }
    }
}

impl Body {
    /// A place in memory, or a part of a vector.
    pub(crate) fn place(&mut self, expr: &Expr, mutable: bool) -> Result<TokenStream> {
        match expr {
            Expr::Paren(inner) => self.place(&inner.expr, mutable),
            Expr::Field(field) => {
                let name = field_name(field)?;
                let base = self.place(&field.base, mutable)?;
                Ok(quote!(#base.#name()))
            }
            Expr::Index(index) => {
                let base = if is_place(&index.expr) {
                    self.place(&index.expr, mutable)?
                } else {
                    self.expr(&index.expr)?
                };
                let at = self.at(index, &index.index)?;
                let part = if mutable {
                    quote!(part_mut)
                } else {
                    quote!(part)
                };
                Ok(quote_spanned!(located(&index.expr)=> ::invar::kernel::#part(#base, #at)))
            }
            other => refuse(
                other,
                "a kernel assigns to variables and to elements of arrays",
            ),
        }
    }

    /// What lies in a place.
    pub(crate) fn read(&mut self, expr: &Expr) -> Result<TokenStream> {
        let (spot, place) = (self.place(expr, false)?, place(expr));
        Ok(quote_spanned!(located(expr)=>
            ::invar::kernel::read(::invar::kernel::at(#place, #spot))))
    }

    /// A part of a value.
    pub(crate) fn field(&mut self, field: &ExprField) -> Result<TokenStream> {
        let name = field_name(field)?;
        let base = self.at(field, &field.base)?;
        Ok(quote!(#base.#name()))
    }

    pub(crate) fn assign(&mut self, assign: &syn::ExprAssign) -> Result<TokenStream> {
        let value = self.expr(&assign.right)?;
        if let Some(name) = variable(&assign.left) {
            return Ok(quote!(#name = #value));
        }
        let place = place(assign);
        let new = hidden_at("new", &assign.right);
        if is_place(&assign.left) {
            let (target, to) = (self.place(&assign.left, true)?, hidden("to"));
            return Ok(quote!({
                let #new = #value;
                let #to = ::invar::kernel::at(#place, #target);
                ::invar::kernel::write(#to, #new);
            }));
        }
        let new = new.to_token_stream();
        let set = Body::set(&assign.left, &new)?;
        Ok(quote!({ let #new = ::invar::kernel::at(#place, #value); #set }))
    }

    pub(crate) fn assign_op(&mut self, binary: &syn::ExprBinary) -> Result<TokenStream> {
        let op = &binary.op;
        if let Some(name) = variable(&binary.left) {
            let value = self.at(binary, &binary.right)?;
            return Ok(quote!(#name #op #value));
        }
        let value = self.expr(&binary.right)?;
        let place = place(binary);
        let new = hidden_at("new", &binary.right);
        let (to, old) = (hidden("to"), hidden("old"));
        if is_place(&binary.left) {
            let target = self.place(&binary.left, true)?;
            return Ok(quote!({
                let #new = #value;
                let #to = ::invar::kernel::at(#place, #target);
                let mut #old = ::invar::kernel::read(#to);
                #old #op #new;
                ::invar::kernel::write(#to, #old);
            }));
        }
        let set = Body::set(&binary.left, &old.to_token_stream())?;
        let now = match &*binary.left {
            Expr::Field(field) => self.field(field)?,
            other => return refuse(other, NO_TARGET),
        };
        Ok(quote!({
            let #new = #value;
            let mut #old = #now;
            #old #op ::invar::kernel::at(#place, #new);
            #set
        }))
    }

    /// `v.a.b = value`: the struct or vector in each part gets its part anew.
    fn set(target: &Expr, value: &TokenStream) -> Result<TokenStream> {
        let Some((root, fields)) = fields_of(target)? else {
            return refuse(target, NO_TARGET);
        };
        let Some((last, outer)) = fields.split_last() else {
            return refuse(target, NO_TARGET);
        };
        let setter = |name: &Ident| format_ident!("set_{name}", span = name.span());
        let mut out = TokenStream::new();
        let mut parts = vec![root.clone()];
        for (i, name) in outer.iter().enumerate() {
            let (part, whole) = (hidden(&format!("part{i}")), &parts[i]);
            out.extend(quote!(let mut #part = #whole.#name();));
            parts.push(part);
        }
        let set = setter(last);
        let innermost = &parts[outer.len()];
        out.extend(quote!(#innermost.#set(#value);));
        for (i, name) in outer.iter().enumerate().rev() {
            let (set, whole, part) = (setter(name), &parts[i], &parts[i + 1]);
            out.extend(quote!(#whole.#set(#part);));
        }
        Ok(out)
    }

    /// `[x, y, z]`: a vector, or a matrix of columns.
    pub(crate) fn vector(&mut self, array: &syn::ExprArray) -> Result<TokenStream> {
        if !(2..=4).contains(&array.elems.len()) {
            return refuse(array, NO_ARRAY);
        }
        let parts: Vec<TokenStream> = array
            .elems
            .iter()
            .map(|e| self.expr(e))
            .collect::<Result<_>>()?;
        let place = place(array);
        Ok(quote_spanned!(located(array)=>
            ::invar::kernel::vector(::invar::kernel::at(#place, [#(#parts),*]))))
    }

    /// `[x; 4]`.
    pub(crate) fn splat(&mut self, repeat: &syn::ExprRepeat) -> Result<TokenStream> {
        if let Expr::Lit(syn::ExprLit {
            lit: syn::Lit::Int(number),
            ..
        }) = &*repeat.len
            && !number
                .base10_parse()
                .is_ok_and(|n: u8| (2..=4).contains(&n))
        {
            return refuse(repeat, NO_ARRAY);
        }
        let (part, length) = (self.at(repeat, &repeat.expr)?, &repeat.len);
        Ok(quote_spanned!(located(repeat)=> ::invar::kernel::splat::<_, #length>(#part)))
    }

    /// `Body { position: p, mass: m }`, or with `..other` at the end.
    pub(crate) fn structure(&mut self, structure: &syn::ExprStruct) -> Result<TokenStream> {
        let path = &structure.path;
        let mut fields = Vec::new();
        for field in &structure.fields {
            let Member::Named(name) = &field.member else {
                return refuse(&field.member, "fields of a kernel's struct have names");
            };
            fields.push((name, self.expr(&field.expr)?));
        }
        if let Some(rest) = &structure.rest {
            let (rest, whole) = (self.expr(rest)?, hidden("whole"));
            let sets = fields.iter().map(|(name, value)| {
                let set = format_ident!("set_{name}", span = name.span());
                quote!(#whole.#set(#value);)
            });
            return Ok(quote!({
                let mut #whole: ::invar::kernel::Val<#path> = #rest;
                #(#sets)*
                #whole
            }));
        }
        let names = fields.iter().map(|(name, _)| name);
        let given = fields.iter().map(|(name, value)| {
            let text = name.to_string();
            quote!(::invar::kernel::field::<#path, _>(#text, |s| s.#name(), #value))
        });
        // The pattern has rustc say which field is missing.
        let complete = quote_spanned!(path.span()=> let _ = |#path { #(#names: _),* }: #path| (););
        Ok(quote!({
            #complete
            ::invar::kernel::structure::<#path>(&[#(#given),*])
        }))
    }
}

const NO_TARGET: &str = "a kernel assigns to variables and to elements of arrays";

const NO_ARRAY: &str = "`[a, b]` is a vector of 2 to 4 in a kernel; an array of a thread is \
                        `let own = thread!([f32; 8]);`, of zeros at first";
