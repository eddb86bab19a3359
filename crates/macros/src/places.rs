//! Places in memory and parts of values: `x[i]`, `bodies[i].position.x`, `v.y`.
//!
//! A chain of fields and indices in which there is an index is a place, or a part of a vector: only what
//! it names is read or written. A chain of fields of a variable is a part of its value.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Expr, ExprField, Member, Result};

use crate::attributes;
use crate::body::{Body, hidden, hidden_at};
use crate::refuse::refuse;
use crate::source::{located, place, words};
use crate::variables::{root, variable};

/// Whether there is an index in a chain.
pub fn is_place(expr: &Expr) -> bool {
    match expr {
        Expr::Index(_) => true,
        Expr::Field(field) => is_place(&field.base),
        Expr::Paren(inner) => is_place(&inner.expr),
        _ => false,
    }
}

/// A Rust constant as an array in constant memory.
pub fn table(path: &syn::ExprPath) -> TokenStream {
    let (text, place) = (path.path.segments.last(), place(path));
    let text = text.map(|s| s.ident.to_string());
    quote_spanned!(located(path)=> ::invar::kernel::expansion::constant_table(#text, #path, #place))
}

/// The name of a field in memory.
fn field_name(field: &ExprField) -> Result<&Ident> {
    match &field.member {
        Member::Named(name) => Ok(name),
        Member::Unnamed(number) => refuse(
            number,
            "memory of a kernel holds no tuples: fields of a struct have names, and components of a vector are \
             `v.x` to `v.w`",
        ),
    }
}

/// A step from a variable's value into a part of it: that of a tuple has a number.
enum Step<'a> {
    Field(&'a Member),
    Index(&'a syn::ExprIndex),
}

/// The steps of a chain in order, from the variable that it begins with.
fn steps_of(expr: &Expr) -> Result<(&Ident, Vec<Step<'_>>)> {
    let mut steps = Vec::new();
    let mut at = expr;
    loop {
        at = match at {
            Expr::Field(field) => {
                steps.push(Step::Field(&field.member));
                &field.base
            }
            Expr::Index(index) => {
                steps.push(Step::Index(index));
                &index.expr
            }
            Expr::Paren(inner) => &inner.expr,
            other => {
                steps.reverse();
                return match variable(other) {
                    Some(name) => Ok((name, steps)),
                    None => refuse(expr, NO_TARGET),
                };
            }
        };
    }
}

/// A part of a value, with its index where it has one.
struct Part<'a> {
    step: &'a Step<'a>,
    index: Ident,
}

impl Part<'_> {
    fn read(&self, whole: &Ident) -> TokenStream {
        let index = &self.index;
        match self.step {
            Step::Field(Member::Named(name)) => words!(#whole.#name()),
            Step::Field(Member::Unnamed(number)) => words!(#whole.#number),
            Step::Index(_) => words!(::invar::kernel::expansion::part(#whole, #index)),
        }
    }

    fn write(&self, whole: &Ident, value: &Ident) -> TokenStream {
        let index = &self.index;
        match self.step {
            Step::Field(Member::Unnamed(number)) => words!(#whole.#number = #value;),
            Step::Field(Member::Named(name)) => {
                let set = format_ident!("set_{}", name.unraw(), span = name.span());
                words!(#whole.#set(#value);)
            }
            Step::Index(_) => {
                words!(::invar::kernel::expansion::set_part(&mut #whole, #index, #value);)
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
                Ok(words!(#base.#name()))
            }
            Expr::Index(index) => {
                let base = match &*index.expr {
                    inner if is_place(inner) => self.place(inner, mutable)?,
                    // `TABLE[i]`: a Rust constant is an array in constant memory.
                    Expr::Path(path) if !self.is_own(&path.path) => table(path),
                    inner => self.expr(inner)?,
                };
                let at = self.at(index, &index.index)?;
                let part = if mutable {
                    words!(part_mut)
                } else {
                    words!(part)
                };
                Ok(
                    quote_spanned!(located(&index.expr)=> ::invar::kernel::expansion::#part(#base, #at)),
                )
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
            ::invar::kernel::expansion::read(::invar::kernel::expansion::at(#place, #spot))))
    }

    /// A part of a value.
    pub(crate) fn field(&mut self, field: &ExprField) -> Result<TokenStream> {
        let base = self.at(field, &field.base)?;
        Ok(match &field.member {
            Member::Named(name) => quote_spanned!(located(field)=> #base.#name()),
            Member::Unnamed(number) => quote_spanned!(located(field)=> #base.#number),
        })
    }

    /// Whether it is an element in memory: of an array, and not of a vector that a variable has.
    fn is_memory(&self, target: &Expr) -> bool {
        let of_variable = root(target).is_some_and(|(name, _)| self.is_variable(name));
        is_place(target) && !of_variable
    }

    pub(crate) fn assign(&mut self, assign: &syn::ExprAssign) -> Result<TokenStream> {
        attributes::none_on(&assign.left)?;
        let value = self.expr(&assign.right)?;
        if let Some(name) = variable(&assign.left) {
            return Ok(words!(#name = #value));
        }
        if let Expr::Infer(_) = &*assign.left {
            return Ok(words!({ let _ = #value; }));
        }
        if let Expr::Unary(syn::ExprUnary {
            op: op @ syn::UnOp::Deref(_),
            ..
        }) = &*assign.left
        {
            return refuse(op, NO_POINTERS);
        }
        if let Expr::Tuple(targets) = &*assign.left {
            let is_name = |e: &Expr| variable(e).is_some() || matches!(e, Expr::Infer(_));
            if targets.elems.iter().all(is_name) {
                return Ok(words!(#targets = #value));
            }
            return self.assign_parts(assign, targets, &value);
        }
        let new = hidden_at("new", &assign.right);
        let put = self.put(assign, &assign.left, &new)?;
        Ok(words!({ let #new = #value; #put }))
    }

    /// `(x[i], x[j]) = (x[j], x[i])`: all values first, then one part after the other.
    fn assign_parts(
        &mut self,
        assign: &syn::ExprAssign,
        targets: &syn::ExprTuple,
        value: &TokenStream,
    ) -> Result<TokenStream> {
        let count = targets.elems.len();
        let news: Vec<Ident> = (0..count).map(|i| hidden(&format!("new{i}"))).collect();
        let mut out = words!(let (#(#news,)*) = #value;);
        for (target, new) in targets.elems.iter().zip(&news) {
            if let Expr::Infer(_) = target {
                continue;
            }
            out.extend(self.put(assign, target, new)?);
        }
        Ok(words!({ #out }))
    }

    /// Puts a value into a variable, an element, or a part of one.
    fn put(&mut self, assign: &syn::ExprAssign, target: &Expr, new: &Ident) -> Result<TokenStream> {
        if let Some(name) = variable(target) {
            return Ok(words!(#name = #new;));
        }
        let place = place(assign);
        if self.is_memory(target) {
            let (spot, to) = (self.place(target, true)?, hidden("to"));
            return Ok(words!({
                let #to = ::invar::kernel::expansion::at(#place, #spot);
                ::invar::kernel::expansion::write(#to, #new);
            }));
        }
        let set = self.set(target, |last, whole| {
            let write = last.write(whole, new);
            words!(let #new = ::invar::kernel::expansion::at(#place, #new); #write)
        })?;
        Ok(words!({ #set }))
    }

    pub(crate) fn assign_op(&mut self, binary: &syn::ExprBinary) -> Result<TokenStream> {
        let op = &binary.op;
        attributes::none_on(&binary.left)?;
        if let Some(name) = variable(&binary.left) {
            let value = self.right_of(op, &binary.right)?;
            let place = place(binary);
            let value = quote_spanned!(located(&binary.right)=> ::invar::kernel::expansion::at(#place, #value));
            if self.changed().expr(&binary.right).names().contains(name) {
                let new = hidden_at("new", &binary.right);
                return Ok(words!({ let #new = #value; #name #op #new; }));
            }
            return Ok(words!(#name #op #value));
        }
        if let Expr::Unary(syn::ExprUnary {
            op: op @ syn::UnOp::Deref(_),
            ..
        }) = &*binary.left
        {
            return refuse(op, NO_POINTERS);
        }
        let value = self.right_of(op, &binary.right)?;
        let place = place(binary);
        let new = hidden_at("new", &binary.right);
        let (to, old) = (hidden("to"), hidden("old"));
        if self.is_memory(&binary.left) {
            let target = self.place(&binary.left, true)?;
            return Ok(words!({
                let #new = #value;
                let #to = ::invar::kernel::expansion::at(#place, #target);
                let mut #old = ::invar::kernel::expansion::read(#to);
                #old #op #new;
                ::invar::kernel::expansion::write(#to, #old);
            }));
        }
        let set = self.set(&binary.left, |last, whole| {
            let (now, write) = (last.read(whole), last.write(whole, &old));
            words! {
                let mut #old = #now;
                #old #op ::invar::kernel::expansion::at(#place, #new);
                #write
            }
        })?;
        Ok(words!({ let #new = #value; #set }))
    }

    /// `v.a[i].b = value`: each part gets its part anew; the innermost by `change`.
    fn set(
        &mut self,
        target: &Expr,
        change: impl FnOnce(&Part<'_>, &Ident) -> TokenStream,
    ) -> Result<TokenStream> {
        let (root, steps) = steps_of(target)?;
        let mut out = TokenStream::new();
        let mut parts = Vec::new();
        for (i, step) in steps.iter().enumerate() {
            let index = hidden(&format!("index{i}"));
            if let Step::Index(expr) = step {
                let at = self.at(expr, &expr.index)?;
                out.extend(words!(let #index = #at;));
            }
            parts.push(Part { step, index });
        }
        let Some((last, outer)) = parts.split_last() else {
            return refuse(target, NO_TARGET);
        };
        let mut wholes = vec![root.clone()];
        for (i, part) in outer.iter().enumerate() {
            let (name, read) = (hidden(&format!("part{i}")), part.read(&wholes[i]));
            out.extend(words!(let mut #name = #read;));
            wholes.push(name);
        }
        out.extend(change(last, &wholes[outer.len()]));
        for (i, part) in outer.iter().enumerate().rev() {
            out.extend(part.write(&wholes[i], &wholes[i + 1]));
        }
        Ok(out)
    }

    /// `[x, y, z]`: a vector, or a matrix of columns.
    pub(crate) fn vector(&mut self, array: &syn::ExprArray) -> Result<TokenStream> {
        if !(2..=4).contains(&array.elems.len()) {
            return refuse(array, NO_ARRAY);
        }
        self.array_of(array, Body::expr)
    }

    fn array_of(
        &mut self,
        array: &syn::ExprArray,
        part: fn(&mut Body, &Expr) -> Result<TokenStream>,
    ) -> Result<TokenStream> {
        let parts: Vec<TokenStream> = array
            .elems
            .iter()
            .map(|e| part(self, e))
            .collect::<Result<_>>()?;
        let place = place(array);
        Ok(quote_spanned!(located(array)=>
            ::invar::kernel::expansion::vector(::invar::kernel::expansion::at(#place, [#(#parts),*]))))
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
        self.repeated(repeat, Body::expr)
    }

    fn repeated(
        &mut self,
        repeat: &syn::ExprRepeat,
        part: fn(&mut Body, &Expr) -> Result<TokenStream>,
    ) -> Result<TokenStream> {
        let (part, length) = (part(self, &repeat.expr)?, &repeat.len);
        let place = place(repeat);
        Ok(quote_spanned!(located(repeat)=>
            ::invar::kernel::expansion::splat::<_, { #length }>(::invar::kernel::expansion::at(#place, #part))))
    }

    /// The value of a struct's field: an array there has any length.
    fn field_value(&mut self, value: &Expr) -> Result<TokenStream> {
        attributes::none_on(value)?;
        match value {
            Expr::Array(array) => self.array_of(array, Body::field_value),
            Expr::Repeat(repeat) => self.repeated(repeat, Body::field_value),
            other => self.expr(other),
        }
    }

    /// `Body { position: p, mass: m }`, or with `..other` at the end.
    pub(crate) fn structure(&mut self, structure: &syn::ExprStruct) -> Result<TokenStream> {
        let path = &structure.path;
        if path.is_ident("Sampler") {
            return refuse(
                path,
                "a sampler is a Rust constant, here or outside: `const HOW: Sampler = Sampler { ... };`",
            );
        }
        let ty = self.types.looked_up_struct(path);
        let mut fields = Vec::new();
        for field in &structure.fields {
            attributes::none(&field.attrs)?;
            let Member::Named(name) = &field.member else {
                return refuse(&field.member, "fields of a kernel's struct have names");
            };
            fields.push((name, self.field_value(&field.expr)?, located(&field.expr)));
        }
        if let Some(rest) = &structure.rest {
            let (rest, whole) = (self.expr(rest)?, hidden("whole"));
            let sets = fields.iter().map(|(name, value, _)| {
                let set = format_ident!("set_{}", name.unraw(), span = name.span());
                words!(#whole.#set(#value);)
            });
            return Ok(words!({
                let mut #whole: ::invar::kernel::Val<#ty> = #rest;
                #(#sets)*
                #whole
            }));
        }
        let names = fields.iter().map(|(name, ..)| name);
        let given = fields.iter().map(|(name, value, here)| {
            let text = name.to_string();
            let read = words!(::invar::kernel::expansion::reader::<#ty, _>(|s| s.#name()));
            quote_spanned!(*here=> ::invar::kernel::expansion::field(#text, #read, #value))
        });
        // The pattern has rustc say which field is missing.
        let complete = quote_spanned!(path.span()=> let _ = |#path { #(#names: _),* }: #path| (););
        Ok(words!({
            #complete
            ::invar::kernel::expansion::structure::<#ty>(&[#(#given),*])
        }))
    }
}

pub(crate) const NO_POINTERS: &str = "there are no pointers in a kernel: leave out `*`";

const NO_TARGET: &str = "a kernel assigns to variables and to elements of arrays";

const NO_ARRAY: &str = "`[a, b]` is a vector of 2 to 4 in a kernel; an array of a thread is \
                        `let own = thread!([f32; 8]);`, of zeros at first";
