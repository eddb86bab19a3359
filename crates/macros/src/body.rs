//! A body, word for word, as calls of `invar::kernel`.

use std::collections::{HashMap, HashSet};

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::Parser;
use syn::spanned::Spanned;
use syn::{BinOp, Block, Error, Expr, Lit, Local, Macro, Pat, Result, Stmt, Type, UnOp};

use crate::attributes;
use crate::foreign::{self, Types};
use crate::groups;
use crate::imageblock::Imageblock;
use crate::lengths::{Lengths, is_zero};
use crate::patterns::{self, component_names};
use crate::places::{NO_POINTERS, is_place, table as table_of};
use crate::print::Line;
use crate::refuse::refuse;
use crate::returns;
use crate::source::{located, place, shown_as, words};
use crate::variables::{Changed, Matches, assigns, is_println, variable};

/// A type in a kernel: numbers are its values.
pub fn in_kernel(ty: &Type, types: &mut Types) -> Result<TokenStream> {
    let ty = groups::ungrouped_type(ty);
    let here = located(ty);
    match ty {
        Type::Tuple(tuple) => {
            let parts = tuple.elems.iter().map(|ty| in_kernel(ty, types));
            let parts: Vec<_> = parts.collect::<Result<_>>()?;
            Ok(quote_spanned!(here=> (#(#parts,)*)))
        }
        Type::Paren(inner) => in_kernel(&inner.elem, types),
        Type::Path(_) | Type::Array(_) => {
            foreign::known_type(ty)?;
            let ty = types.looked_up(ty);
            Ok(quote_spanned!(here=> ::invar::kernel::Val<#ty>))
        }
        _ => refuse(
            ty,
            "a value of a kernel is a number, a truth value, a vector, a matrix or a struct",
        ),
    }
}

/// What is known where the translation stands.
pub struct Body {
    /// Names of the kernel's own, and whether they are variables whose values can change; every other path
    /// is a Rust constant.
    locals: Vec<HashMap<String, bool>>,
    /// By scope, variables of a loop around that those of the scope hide, and what keeps their values.
    hidden: Vec<HashMap<String, Hidden>>,
    /// The loops around, innermost last.
    pub(crate) loops: Vec<crate::loops::Loop>,
    device_fn: bool,
    /// The type of what a device function gives back.
    pub(crate) output: Option<TokenStream>,
    /// The parameters in angle brackets.
    generics: syn::Generics,
    /// The types that stand in the function.
    pub(crate) types: Types,
}

/// An identifier that no word of the author's can be.
pub(crate) fn hidden(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

/// The same for the value of some words, which rustc then shows for it.
pub(crate) fn hidden_at(name: &str, words: impl ToTokens) -> Ident {
    Ident::new(name, located(words))
}

/// What gives the value of a block: its last statement.
fn tail(block: &Block) -> TokenStream {
    let last = block.stmts.last().map(ToTokens::to_token_stream);
    last.unwrap_or_else(|| block.to_token_stream())
}

/// The same of an expression that may be a block or a branch.
fn tail_of(expr: &Expr) -> TokenStream {
    match expr {
        Expr::Block(block) => tail(&block.block),
        Expr::If(if_) => tail(&if_.then_branch),
        other => other.to_token_stream(),
    }
}

/// Variables as nested pairs, `Carried(a, Carried(b, ()))`; for a pattern each with `mut`.
pub(crate) fn nest(names: &[Ident], mutable: bool) -> TokenStream {
    let mutable = mutable.then(|| words!(mut));
    names.iter().rev().fold(words!(()), |inner, name| {
        carried(&words!(#mutable #name), &inner)
    })
}

/// A variable before others.
pub(crate) fn carried(variable: &TokenStream, others: &TokenStream) -> TokenStream {
    words!(::invar::kernel::expansion::Carried(#variable, #others))
}

pub(crate) fn name_texts(names: &[Ident]) -> TokenStream {
    let names = names.iter().map(Ident::to_string);
    words!(&[#(#names),*])
}

/// Whether control never comes to the end of a block.
pub(crate) fn block_leaves(block: &Block) -> bool {
    match block.stmts.last() {
        Some(Stmt::Expr(expr, _)) => attributes::of_statement(expr).is_empty() && expr_leaves(expr),
        Some(Stmt::Local(_) | Stmt::Item(_) | Stmt::Macro(_)) | None => false,
    }
}

/// Whether control never comes behind an expression.
fn expr_leaves(expr: &Expr) -> bool {
    match expr {
        Expr::If(if_) => {
            let otherwise = if_.else_branch.as_ref().map(|(_, expr)| &**expr);
            block_leaves(&if_.then_branch) && otherwise.is_some_and(expr_leaves)
        }
        Expr::Block(block) => block_leaves(&block.block),
        Expr::Match(match_) => match_.arms.iter().all(|arm| expr_leaves(&arm.body)),
        Expr::Loop(loop_) => returns::is_endless(loop_),
        other => leaves(other),
    }
}

/// What became of a variable of a loop when another one took its name.
pub(crate) enum Hidden {
    /// This keeps its value.
    Kept(Ident),
    /// The other one is there only if its attributes say so.
    Perhaps(Ident),
}

impl ToTokens for Hidden {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match self {
            Hidden::Kept(keeps) => keeps.to_tokens(tokens),
            Hidden::Perhaps(name) => tokens.extend(quote_spanned!(name.span()=> ::core::compile_error!(
                "a variable that a loop changes has this name, and the loop is left where it is hidden: \
                 choose another one"
            ))),
        }
    }
}

/// The names that a pattern binds.
fn names_of(pat: &Pat) -> Vec<&Ident> {
    match pat {
        Pat::Ident(name) => vec![&name.ident],
        Pat::Paren(inner) => names_of(&inner.pat),
        Pat::Type(typed) => names_of(&typed.pat),
        Pat::Tuple(tuple) => tuple.elems.iter().flat_map(names_of).collect(),
        Pat::Slice(slice) => slice.elems.iter().flat_map(names_of).collect(),
        Pat::Struct(structure) => {
            let fields = structure.fields.iter();
            fields.flat_map(|field| names_of(&field.pat)).collect()
        }
        _binds_nothing => Vec::new(),
    }
}

/// One side of a branch.
struct Side {
    words: TokenStream,
    /// Those that give its value.
    tail: TokenStream,
    leaves: bool,
}

/// Puts the values that control flow gave back into the variables.
pub(crate) fn assign(names: &[Ident], value: &Ident) -> TokenStream {
    let targets = nest(names, false);
    if names.is_empty() {
        words!(let () = #value;)
    } else {
        words!(#targets = #value;)
    }
}

/// The lengths of an array of arrays, outermost first.
fn lengths_of(array: &syn::TypeArray) -> impl Iterator<Item = &Expr> {
    let arrays = std::iter::successors(Some(array), |array| match &*array.elem {
        Type::Array(inner) => Some(inner),
        _ => None,
    });
    arrays.map(|array| &array.len)
}

/// Whether it is one of the macros that stand for memory.
fn makes_array(call: &Macro) -> bool {
    let mut names = ["threadgroup", "thread", "constant", "imageblock"].iter();
    names.any(|name| call.path.is_ident(name))
}

/// The name of a comparison.
fn comparison(op: &BinOp) -> Option<&'static str> {
    Some(match op {
        BinOp::Eq(_) => "eq",
        BinOp::Ne(_) => "ne",
        BinOp::Lt(_) => "lt",
        BinOp::Le(_) => "le",
        BinOp::Gt(_) => "gt",
        BinOp::Ge(_) => "ge",
        _ => return None,
    })
}

/// The first word of an expression.
fn first_word(expr: &Expr) -> TokenStream {
    expr.to_token_stream().into_iter().take(1).collect()
}

/// Whether nothing behind the expression runs.
fn leaves(expr: &Expr) -> bool {
    matches!(expr, Expr::Break(_) | Expr::Continue(_) | Expr::Return(_))
}

/// Whether a pattern has names and tuples only.
fn is_of_tuples(pat: &Pat) -> bool {
    match pat {
        Pat::Tuple(tuple) => tuple.elems.iter().all(is_of_tuples),
        Pat::Paren(inner) => is_of_tuples(&inner.pat),
        other => !matches!(other, Pat::Slice(_) | Pat::Struct(_)),
    }
}

/// Whether evaluating it in vain has no effect and no access.
fn idle(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(_) | Expr::Path(_) => true,
        Expr::Paren(e) => idle(&e.expr),
        Expr::Unary(e) => idle(&e.expr),
        Expr::Cast(e) => idle(&e.expr),
        Expr::Binary(e) => !assigns(&e.op) && idle(&e.left) && idle(&e.right),
        _ => false,
    }
}

impl Body {
    /// For a kernel with these parameters, and whether they are variables.
    pub fn of_kernel(
        parameters: impl Iterator<Item = (String, bool)>,
        generics: &syn::Generics,
        types: Types,
    ) -> Body {
        Body {
            output: None,
            types,
            generics: generics.clone(),
            locals: vec![parameters.collect()],
            hidden: vec![HashMap::new()],
            loops: Vec::new(),
            device_fn: false,
        }
    }

    /// For a device function with these parameters, and whether they are variables.
    pub fn of_device_fn(
        parameters: impl Iterator<Item = (String, bool)>,
        generics: &syn::Generics,
        types: Types,
        output: Option<TokenStream>,
    ) -> Body {
        Body {
            device_fn: true,
            output,
            ..Body::of_kernel(parameters, generics, types)
        }
    }

    /// The body's statements.
    pub fn translate(mut self, block: &Block) -> Result<TokenStream> {
        if !self.device_fn {
            return self.block(block);
        }
        let block = returns::at_the_end(block);
        if returns::has_return(&block) {
            return self.run_once(&block);
        }
        let mut body = self.block(&block)?;
        if block_leaves(&block) {
            body.extend(words!(; ::invar::kernel::expansion::never()));
        }
        Ok(body)
    }

    pub(crate) fn scoped<R>(&mut self, f: impl FnOnce(&mut Body) -> R) -> R {
        self.locals.push(HashMap::new());
        self.hidden.push(HashMap::new());
        let result = f(self);
        self.locals.pop();
        self.hidden.pop();
        result
    }

    /// How many scopes there are.
    pub(crate) fn scopes(&self) -> usize {
        self.hidden.len()
    }

    /// Keeps the values of variables that the innermost loop carries and new ones of the same names hide: until
    /// these end nothing changes them, and what leaves the loop gives them. Of names that an attribute may
    /// leave out it only says that they may hide others.
    fn hide<'a>(
        &mut self,
        names: impl IntoIterator<Item = &'a Ident>,
        surely: bool,
    ) -> TokenStream {
        let mut kept = TokenStream::new();
        for name in names {
            if !self.is_carried(name) || self.kept(name).is_some() {
                continue;
            }
            let hidden = if surely {
                let keeps = hidden(&format!("_hidden_{}", name.unraw()));
                kept.extend(words!(let #keeps = #name;));
                Hidden::Kept(keeps)
            } else {
                Hidden::Perhaps(name.clone())
            };
            if let Some(scope) = self.hidden.last_mut() {
                scope.insert(name.to_string(), hidden);
            }
        }
        kept
    }

    /// What keeps the value of a variable of the innermost loop that another of its name hides.
    pub(crate) fn kept(&self, name: &Ident) -> Option<&Hidden> {
        let name = name.to_string();
        let inside = self.hidden.get(self.loop_depth()..)?;
        inside.iter().find_map(|scope| scope.get(&name))
    }

    pub(crate) fn declare(&mut self, name: &Ident) {
        self.declare_as(name, false);
    }

    fn declare_as(&mut self, name: &Ident, is_variable: bool) {
        if let Some(scope) = self.locals.last_mut() {
            scope.insert(name.to_string(), is_variable);
        }
    }

    /// Whether a name is the kernel's own, and no Rust constant.
    pub(crate) fn is_own(&self, path: &syn::Path) -> bool {
        let name = path.get_ident().map(ToString::to_string);
        let known = |name: String| self.locals.iter().any(|s| s.contains_key(&name));
        name.is_some_and(known)
    }

    /// Whether a name is that of a variable whose value can change, and not of an array.
    pub(crate) fn is_variable(&self, name: &Ident) -> bool {
        let name = name.to_string();
        let known = self.locals.iter().rev().find_map(|s| s.get(&name));
        known.copied().unwrap_or(false)
    }

    /// For what some words change.
    pub(crate) fn changed(&self) -> Changed {
        let mut all: HashMap<&String, bool> = HashMap::new();
        for scope in &self.locals {
            all.extend(scope.iter().map(|(name, is_variable)| (name, *is_variable)));
        }
        let variables = all.into_iter().filter(|(_, is_variable)| *is_variable);
        Changed::among(
            variables
                .map(|(name, _)| name.clone())
                .collect::<HashSet<_>>(),
        )
    }

    // ---- statements ----

    /// The statements of a block, and what it gives. All that is wrong in it is told at once.
    pub(crate) fn block(&mut self, block: &Block) -> Result<TokenStream> {
        self.scoped(|body| {
            let mut out = TokenStream::new();
            let mut errors: Option<Error> = None;
            for (i, statement) in block.stmts.iter().enumerate() {
                if let Some(Stmt::Expr(before, _)) = i.checked_sub(1).map(|i| &block.stmts[i])
                    && leaves(before)
                    && attributes::of_statement(before).is_empty()
                {
                    let why = "nothing from here on runs: leave it out";
                    errors = Some(Error::new(statement.span(), why));
                    break;
                }
                match body.statement(statement) {
                    Ok(tokens) => out.extend(tokens),
                    Err(error) => match &mut errors {
                        Some(all) => all.combine(error),
                        None => errors = Some(error),
                    },
                }
            }
            errors.map_or(Ok(out), Err)
        })
    }

    fn statement(&mut self, statement: &Stmt) -> Result<TokenStream> {
        shown_as(statement, || self.one_statement(statement))
    }

    fn one_statement(&mut self, statement: &Stmt) -> Result<TokenStream> {
        match statement {
            Stmt::Local(local) => {
                let attributes = attributes::of_local(local);
                let before = self.locals.clone();
                let names = names_of(&local.pat);
                let words = self.local(local)?;
                let kept = self.hide(names.iter().copied(), attributes.is_empty());
                if !attributes.is_empty() {
                    // One that may not be there hides nothing.
                    self.locals
                        .iter_mut()
                        .flatten()
                        .for_each(|(name, is_variable)| {
                            let known = before.iter().rev().find_map(|s| s.get(name));
                            *is_variable = known.copied().unwrap_or(*is_variable);
                        });
                }
                Ok(words!(#kept #(#attributes)* #words))
            }
            Stmt::Expr(expr, semicolon) => {
                let attributes = attributes::of_statement(expr);
                let expr = self.bare(expr)?;
                Ok(match attributes.is_empty() {
                    true => words!(#expr #semicolon),
                    false => words!(#(#attributes)* { #expr #semicolon }),
                })
            }
            Stmt::Macro(call) => self.macro_call(&call.mac),
            Stmt::Item(item @ (syn::Item::Const(_) | syn::Item::Use(_))) => {
                Ok(item.to_token_stream())
            }
            Stmt::Item(item) => refuse(item, "a kernel has no items in it but `const` and `use`"),
        }
    }

    fn local(&mut self, local: &Local) -> Result<TokenStream> {
        let Some(init) = &local.init else {
            return refuse(
                local,
                "a variable of a kernel has a value from the start: write `= 0`",
            );
        };
        if let Some((word, _)) = &init.diverge {
            return refuse(word, "a kernel has no `let ... else`: write an `if`");
        }
        let (pat, ty) = match &local.pat {
            Pat::Type(typed) => (&*typed.pat, Some(&*typed.ty)),
            other => (other, None),
        };
        if let Expr::Macro(call) = &*init.expr
            && makes_array(&call.mac)
        {
            return self.array(pat, ty, &call.mac);
        }
        let ty = match ty {
            Some(ty) => {
                let ty = in_kernel(ty, &mut self.types)?;
                words!(: #ty)
            }
            None => TokenStream::new(),
        };
        let value = self.expr(&init.expr)?;
        match pat {
            // Of an element only the fields that are named are read.
            Pat::Struct(structure) if ty.is_empty() && is_place(&init.expr) => {
                let spot = self.place(&init.expr, false)?;
                let (pattern, value) = self.fields(structure, &words!(= #spot), true)?;
                Ok(words!(let #pattern = #value;))
            }
            _ => self.bound_to(pat, &ty, &value, located(&init.expr)),
        }
    }

    /// `let` of a pattern with this type and value, which stands there.
    pub(crate) fn bound_to(
        &mut self,
        pat: &Pat,
        ty: &TokenStream,
        value: &TokenStream,
        here: Span,
    ) -> Result<TokenStream> {
        match pat {
            Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => {
                let (name, mutable) = (&name.ident, name.mutability);
                self.declare_as(name, mutable.is_some());
                let text = name.to_string();
                let value = quote_spanned!(here=> ::invar::kernel::expansion::local(#text, #value));
                Ok(match mutable {
                    Some(_) => {
                        let value =
                            quote_spanned!(here=> ::invar::kernel::expansion::variable(#value));
                        words!(let #mutable #name #ty = #value;)
                    }
                    None => words!(let #name #ty = #value;),
                })
            }
            Pat::Slice(slice) => {
                let (pattern, value) = self.components(slice, &words!(#ty = #value))?;
                Ok(words!(let #pattern = #value;))
            }
            Pat::Struct(structure) => {
                let (pattern, value) = self.fields(structure, &words!(#ty = #value), false)?;
                Ok(words!(let #pattern = #value;))
            }
            Pat::Tuple(_) | Pat::Wild(_) | Pat::Paren(_) => {
                let (pattern, value) = self.apart(pat, value)?;
                Ok(words!(let #pattern #ty = #value;))
            }
            other => refuse(
                other,
                "`let` binds a name, a tuple, the components of a vector or the fields of a struct",
            ),
        }
    }

    /// What takes a value apart: a pattern of tuples and names, and what has its shape.
    fn apart(&mut self, pat: &Pat, value: &TokenStream) -> Result<(TokenStream, TokenStream)> {
        match pat {
            Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => {
                self.declare_as(&name.ident, name.mutability.is_some());
                Ok((pat.to_token_stream(), value.clone()))
            }
            Pat::Wild(_) | Pat::Rest(_) => Ok((pat.to_token_stream(), value.clone())),
            Pat::Paren(inner) => self.apart(&inner.pat, value),
            Pat::Tuple(tuple) => {
                let whole = hidden("whole");
                let mut parts = Vec::new();
                for (i, part) in tuple.elems.iter().enumerate() {
                    let number = syn::Index::from(i);
                    parts.push(self.apart(part, &words!(#whole.#number))?);
                }
                let has_other_shape = tuple.elems.iter().any(|part| !is_of_tuples(part));
                if !has_other_shape {
                    return Ok((tuple.to_token_stream(), value.clone()));
                }
                if let Some(rest) = tuple.elems.iter().find(|part| matches!(part, Pat::Rest(_))) {
                    return refuse(rest, "write `_` for each part that is left out");
                }
                let (patterns, values): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
                let value = words!({ let #whole = #value; (#(#values,)*) });
                Ok((words!((#(#patterns,)*)), value))
            }
            Pat::Slice(slice) => self.components(slice, &words!(= #value)),
            Pat::Struct(structure) => self.fields(structure, &words!(= #value), false),
            other => refuse(other, "a part of what is taken apart is bound to a name"),
        }
    }

    /// `[x, mut y]` of a value, behind its type.
    fn components(
        &mut self,
        slice: &syn::PatSlice,
        value: &TokenStream,
    ) -> Result<(TokenStream, TokenStream)> {
        let (here, whole) = (located(slice), hidden("whole"));
        let names = component_names(slice)?;
        let (mut patterns, mut values) = (Vec::new(), Vec::new());
        for (part, name) in slice.elems.iter().zip(&names) {
            if let Pat::Wild(_) = part {
                continue;
            }
            let (pattern, value) = self.apart(part, &quote_spanned!(here=> #whole.#name()))?;
            patterns.push(pattern);
            values.push(value);
        }
        let count = names.len();
        let value = quote_spanned!(here=> {
            let #whole #value;
            let #whole = ::invar::kernel::expansion::components::<#count, _>(#whole);
            (#(#values,)*)
        });
        Ok((quote_spanned!(here=> (#(#patterns,)*)), value))
    }

    /// `Body { position, mut mass, .. }` of a value, behind its type, or of where one lies.
    fn fields(
        &mut self,
        structure: &syn::PatStruct,
        value: &TokenStream,
        is_spot: bool,
    ) -> Result<(TokenStream, TokenStream)> {
        let (path, whole) = (&structure.path, hidden("whole"));
        let (mut parts, mut reads, mut names) = (Vec::new(), Vec::new(), Vec::new());
        for field in &structure.fields {
            attributes::none(&field.attrs)?;
            let syn::Member::Named(name) = &field.member else {
                return refuse(&field.member, "fields of a kernel's struct have names");
            };
            let part = quote_spanned!(located(name)=> #whole.#name());
            let read = if is_spot {
                let place = place(name);
                words!(::invar::kernel::expansion::read(::invar::kernel::expansion::at(#place, #part)))
            } else {
                part
            };
            let (part, read) = self.apart(&field.pat, &read)?;
            parts.push(part);
            reads.push(read);
            names.push(name);
        }
        let rest = &structure.rest;
        let kind = if is_spot { words!(Spot) } else { words!(Val) };
        let ty = self.types.looked_up_struct(path);
        // The pattern has rustc say which field is missing.
        let complete =
            quote_spanned!(path.span()=> let _ = |#path { #(#names: _,)* #rest }: #path| (););
        let value = words!({
            #complete
            let #whole #value;
            let #whole: ::invar::kernel::expansion::#kind<#ty> = #whole;
            (#(#reads,)*)
        });
        Ok((words!((#(#parts,)*)), value))
    }

    /// `let tile = threadgroup!([f32; 256]);`
    fn array(&mut self, pat: &Pat, ty: Option<&Type>, call: &Macro) -> Result<TokenStream> {
        if call.path.is_ident("constant") {
            return self.constant_table(pat, call);
        }
        let make = call.path.require_ident()?;
        if let Some(ty) = ty {
            return refuse(
                ty,
                "the type of an array stands in its macro: leave it out here",
            );
        }
        let Pat::Ident(name) = pat else {
            return refuse(pat, "an array of a kernel has a name");
        };
        if make == "imageblock" {
            return self.imageblock(&name.ident, call);
        }
        let parse = |input: syn::parse::ParseStream| input.parse::<syn::TypeArray>();
        let array = parse.parse2(call.tokens.clone()).map_err(|e| {
            Error::new(
                e.span(),
                "an array is an element and a number: `threadgroup!([f32; 256])`",
            )
        })?;
        if let Some(none) = lengths_of(&array).find(|length| is_zero(length)) {
            return refuse(none, "an array of a kernel has at least one element");
        }
        let name = &name.ident;
        self.declare(name);
        let (text, place) = (name.to_string(), place(call));
        let lengths = Lengths::of(&array, &self.generics);
        foreign::known_element(lengths.leaf)?;
        let (leaf, length) = (foreign::looked_up(lengths.leaf), &array.len);
        let here = located(call);
        if let Some(element) = lengths.element() {
            let make = format_ident!("{make}_array");
            return Ok(quote_spanned!(here=>
                let #name = ::invar::kernel::expansion::#make::<#element>(#text, #length, #place);));
        }
        let make = format_ident!("{make}_rows");
        let (part, all) = (lengths.part(), &lengths.all);
        Ok(
            quote_spanned!(here=> let #name = ::invar::kernel::expansion::#make::<#leaf, #part>(
            #text, &[#(::invar::kernel::expansion::row_length(#all)),*], #place,
        );),
        )
    }

    /// `let block = imageblock!(Pixel, colour: Rgba8Unorm);`
    fn imageblock(&mut self, name: &Ident, call: &Macro) -> Result<TokenStream> {
        let block = Imageblock::parse.parse2(call.tokens.clone()).map_err(|e| {
            let form = "an imageblock is of an element, and of formats that its fields are stored in: \
                        `imageblock!(Pixel, colour: Rgba8Unorm)`";
            Error::new(e.span(), form)
        })?;
        self.declare(name);
        foreign::known_element(&block.element)?;
        let (text, place) = (name.to_string(), place(call));
        let (element, here) = (foreign::looked_up(&block.element), located(call));
        let formats = block.formats.iter().map(|(field, format)| {
            let field = field.as_ref().map_or(String::new(), Ident::to_string);
            words!((#field, ::invar::PixelFormat::#format))
        });
        Ok(quote_spanned!(here=>
            let #name = ::invar::kernel::expansion::imageblock::<#element>(#text, &[#(#formats),*], #place);))
    }

    /// `let table = constant!(TABLE);`
    fn constant_table(&mut self, pat: &Pat, call: &Macro) -> Result<TokenStream> {
        let Pat::Ident(name) = pat else {
            return refuse(pat, "an array of a kernel has a name");
        };
        let parse = |input: syn::parse::ParseStream| input.parse::<syn::ExprPath>();
        let table = parse.parse2(call.tokens.clone()).map_err(|e| {
            let form = "a table is a Rust constant by its name: `constant!(TABLE)`";
            Error::new(e.span(), form)
        })?;
        let (name, table) = (&name.ident, table_of(&table));
        self.declare(name);
        Ok(words!(let #name = #table;))
    }

    fn macro_call(&mut self, call: &Macro) -> Result<TokenStream> {
        let name = call.path.to_token_stream();
        if makes_array(call) {
            return refuse(
                &call.path,
                "an array of a kernel gets a name: `let tile = threadgroup!([f32; 256]);`",
            );
        }
        if call.path.is_ident("matches") {
            return self.matches(call);
        }
        if is_println(call) {
            return self.print_line(call);
        }
        if let Some(why) = call.path.get_ident().and_then(foreign::of_a_macro) {
            return refuse(&call.path, why);
        }
        let why = format!(
            "a kernel's words are read before macros are: write what `{name}!` stands for, or a function under \
             `#[device_fn]`; a macro may make the whole kernel"
        );
        refuse(&call.path, &why)
    }

    /// `matches!(x, 1..=5 if y > 0)`.
    fn matches(&mut self, call: &Macro) -> Result<TokenStream> {
        let Matches {
            subject,
            pattern,
            guard,
        } = Matches::of(call)?;
        let guard = guard.map(|(word, guard)| words!(#word #guard));
        let whole = quote_spanned!(located(call)=>
            match #subject { #pattern #guard => true, _ => false });
        self.match_(&syn::parse2(whole)?)
    }

    /// `println!("x is {}", x)`: the text, and a value for each `{}` or `{:x}` of it.
    fn print_line(&mut self, call: &Macro) -> Result<TokenStream> {
        let Line {
            text,
            arguments,
            picked,
        } = Line::of(call)?;
        let values = arguments
            .iter()
            .map(|one| self.expr(one))
            .collect::<Result<Vec<_>>>()?;
        let (place, here, count) = (place(call), located(call), values.len());
        Ok(quote_spanned!(here=> {
            let values: [::invar::ir::Value; #count] = [#(::invar::kernel::expansion::printed(#values)),*];
            ::invar::kernel::expansion::at(#place, ());
            ::invar::kernel::expansion::print_line(#text, &[#(values[#picked]),*])
        }))
    }

    // ---- expressions ----

    /// An operand that is evaluated last, so that what uses it stands there.
    pub(crate) fn at(&mut self, whole: impl ToTokens, operand: &Expr) -> Result<TokenStream> {
        if let Expr::Range(_) = operand {
            return refuse(
                operand,
                "a kernel has no parts of slices: pass the whole one and where its part begins, and read `x[from + i]`",
            );
        }
        let (place, value) = (place(whole), self.expr(operand)?);
        Ok(quote_spanned!(located(operand)=> ::invar::kernel::expansion::at(#place, #value)))
    }

    pub(crate) fn expr(&mut self, expr: &Expr) -> Result<TokenStream> {
        attributes::none_on(expr)?;
        self.bare(expr)
    }

    /// What decides.
    pub(crate) fn condition(&mut self, expr: &Expr) -> Result<TokenStream> {
        if let Expr::Assign(assign) = expr {
            return refuse(
                assign.eq_token,
                "`=` gives a variable its value: to compare write `==`",
            );
        }
        self.expr(expr)
    }

    /// An expression without its attributes.
    fn bare(&mut self, expr: &Expr) -> Result<TokenStream> {
        shown_as(expr, || self.translated(expr))
    }

    fn translated(&mut self, expr: &Expr) -> Result<TokenStream> {
        match expr {
            Expr::Lit(lit) => literal(&lit.lit, None),
            Expr::Path(path) => self.path(path),
            Expr::Paren(inner) => {
                let inner = self.expr(&inner.expr)?;
                Ok(words!((#inner)))
            }
            // What the function gives back.
            Expr::Group(inner) => {
                let value = self.expr(&inner.expr)?;
                let Some(ty) = &self.output else {
                    return Ok(value);
                };
                let given = hidden_at("returned", &inner.expr);
                Ok(words!({ let #given: #ty = #value; #given }))
            }
            Expr::Unary(unary) => self.unary(unary),
            Expr::Binary(binary) => self.binary(binary),
            Expr::Cast(cast) => {
                let ty = &cast.ty;
                if let Some(path) = foreign::of_a_type(&cast.expr, &self.generics)
                    && foreign::is_integer(ty)
                {
                    // A variant of an enum, or a constant: what it is Rust says.
                    let place = place(cast);
                    return Ok(quote_spanned!(located(cast)=>
                        ::invar::kernel::IntoVal::into_val(::invar::kernel::expansion::at(#place, #path as #ty))));
                }
                let operand = self.at(cast, &cast.expr)?;
                foreign::known_type(ty)?;
                Ok(
                    quote_spanned!(located(cast)=> ::invar::kernel::expansion::cast::<#ty>(#operand)),
                )
            }
            Expr::Index(_) => self.read(expr),
            Expr::Field(_) if is_place(expr) => self.read(expr),
            Expr::Reference(reference) => self.reference(reference),
            Expr::Call(call) => self.call(call),
            Expr::MethodCall(call) => self.method_call(call),
            Expr::Field(field) => self.field(field),
            Expr::Assign(assign) => self.assign(assign),
            Expr::Tuple(tuple) => {
                let parts: Vec<_> = tuple
                    .elems
                    .iter()
                    .map(|e| self.expr(e))
                    .collect::<Result<_>>()?;
                Ok(if parts.is_empty() {
                    words!(())
                } else {
                    words!((#(#parts,)*))
                })
            }
            Expr::Block(block) => {
                if let Some(label) = &block.label {
                    let why =
                        "blocks of a kernel have no labels: write a `loop` that `break` leaves";
                    return refuse(label, why);
                }
                let block = self.block(&block.block)?;
                Ok(words!({ #block }))
            }
            Expr::If(if_) => self.if_(if_),
            Expr::Match(match_) => self.match_(match_),
            Expr::While(while_) => self.while_(while_),
            Expr::Loop(loop_) => self.loop_(loop_),
            Expr::ForLoop(for_) => self.for_(for_),
            Expr::Break(break_) => self.break_(break_),
            Expr::Continue(continue_) => self.continue_(continue_),
            Expr::Return(return_) => self.return_(return_),
            Expr::Macro(call) => self.macro_call(&call.mac),
            Expr::Array(array) => self.vector(array),
            Expr::Repeat(repeat) => self.splat(repeat),
            Expr::Struct(structure) => self.structure(structure),
            other => refuse_rust(other),
        }
    }

    /// A name of the kernel's own, or else a Rust constant.
    fn path(&mut self, path: &syn::ExprPath) -> Result<TokenStream> {
        if self.is_own(&path.path) {
            return Ok(path.to_token_stream());
        }
        foreign::known_value(&path.path)?;
        let place = place(path);
        Ok(quote_spanned!(located(path)=>
            ::invar::kernel::IntoVal::into_val(::invar::kernel::expansion::at(#place, #path))))
    }

    fn unary(&mut self, unary: &syn::ExprUnary) -> Result<TokenStream> {
        let op = &unary.op;
        match (op, &*unary.expr) {
            (UnOp::Neg(minus), Expr::Lit(lit)) => literal(&lit.lit, Some(minus)),
            (UnOp::Neg(_) | UnOp::Not(_), operand) => {
                let operand = self.at(unary, operand)?;
                Ok(quote_spanned!(located(unary)=> (#op #operand)))
            }
            _ => refuse(op, NO_POINTERS),
        }
    }

    fn binary(&mut self, binary: &syn::ExprBinary) -> Result<TokenStream> {
        let op = &binary.op;
        if assigns(op) {
            return self.assign_op(binary);
        }
        let Some(compare) = comparison(op) else {
            return self.chain(binary);
        };
        let left = self.expr(&binary.left)?;
        let right = self.at(binary, &binary.right)?;
        let compare = Ident::new(compare, op.span());
        // rustc shows the operator for both sides.
        let sides = hidden_at("sides", op);
        let compared =
            quote_spanned!(located(op)=> ::invar::kernel::expansion::compare::#compare(#sides));
        Ok(quote_spanned!(located(binary)=> (match (#left, #right) { #sides => #compared })))
    }

    /// `a + b * c - d`, `a && b && c`: from the left, term by term.
    fn chain(&mut self, binary: &syn::ExprBinary) -> Result<TokenStream> {
        // More terms than these are no longer nested in each other: rustc has no room for any number.
        const NESTED: usize = 32;
        let (mut first, mut steps) = (&*binary.left, vec![binary]);
        while let Expr::Binary(inner) = first
            && !assigns(&inner.op)
            && comparison(&inner.op).is_none()
        {
            attributes::none(&inner.attrs)?;
            steps.push(inner);
            first = &inner.left;
        }
        let (mut value, whole) = (self.expr(first)?, hidden("whole"));
        let begin = first_word(first);
        let is_long = steps.len() > NESTED;
        let mut before = TokenStream::new();
        for step in steps.into_iter().rev() {
            let (right, op) = (&step.right, &step.op);
            let place = place(quote!(#begin #right));
            if is_long {
                before.extend(words!(let #whole = #value;));
                value = whole.to_token_stream();
            }
            value = match op {
                BinOp::And(_) | BinOp::Or(_) => self.lazy(&value, step, &place)?,
                _ => {
                    let here = located(begin.clone());
                    let operand = self.right_of(op, right)?;
                    let operand = quote_spanned!(located(right)=>
                        ::invar::kernel::expansion::at(#place, #operand));
                    quote_spanned!(here=> (#value #op #operand))
                }
            };
        }
        if is_long {
            return Ok(words!(({ #before #value })));
        }
        Ok(value)
    }

    /// The right side of an operator. How far a literal without a type shifts, as in Rust says nothing of the type of
    /// what is shifted.
    pub(crate) fn right_of(&mut self, op: &BinOp, right: &Expr) -> Result<TokenStream> {
        let shifts = matches!(
            op,
            BinOp::Shl(_) | BinOp::Shr(_) | BinOp::ShlAssign(_) | BinOp::ShrAssign(_)
        );
        match right {
            Expr::Lit(lit)
                if shifts && matches!(&lit.lit, Lit::Int(n) if n.suffix().is_empty()) =>
            {
                attributes::none(&lit.attrs)?;
                let place = place(lit);
                Ok(
                    quote_spanned!(located(lit)=> ::invar::kernel::expansion::shift_count(#lit, #place)),
                )
            }
            other => self.expr(other),
        }
    }

    /// `&&` and `||`: the right side is evaluated only where it decides, unless there is no difference.
    fn lazy(
        &mut self,
        left: &TokenStream,
        binary: &syn::ExprBinary,
        place: &TokenStream,
    ) -> Result<TokenStream> {
        let (and, op) = (matches!(binary.op, BinOp::And(_)), &binary.op);
        let changed = self.changed().expr(&binary.right).names();
        if let Some(name) = changed.first() {
            return refuse(
                name,
                "the right side of `&&` and `||` changes no variable: write an `if`",
            );
        }
        let right = self.expr(&binary.right)?;
        let at_op = located(op);
        if idle(&binary.right) {
            let right = quote_spanned!(located(&binary.right)=> ::invar::kernel::expansion::at(#place, #right));
            let both = Ident::new(if and { "both" } else { "either" }, op.span());
            let sides = hidden_at("sides", op);
            let joined = quote_spanned!(at_op=> ::invar::kernel::expansion::compare::#both(#sides));
            return Ok(words!((match (#left, #right) { #sides => #joined })));
        }
        let known = words!(::invar::kernel::expansion::compare::known(!#and));
        let (then, otherwise) = if and { (right, known) } else { (known, right) };
        Ok(words! {
            ::invar::kernel::expansion::if_(
                #left, #place, &[], (), |()| ((#then), ()), |()| ((#otherwise), ()),
            ).0
        })
    }

    fn reference(&mut self, reference: &syn::ExprReference) -> Result<TokenStream> {
        let mut inner = &*reference.expr;
        while let Expr::Paren(paren) = inner {
            inner = &paren.expr;
        }
        if is_place(inner) {
            let mutable = reference.mutability.is_some();
            let make = if mutable {
                words!(place_mut)
            } else {
                words!(place)
            };
            let spot = self.place(inner, mutable)?;
            return Ok(quote_spanned!(located(inner)=> ::invar::kernel::expansion::#make(#spot)));
        }
        if let Expr::Path(path) = inner
            && reference.mutability.is_none()
            && !self.is_own(&path.path)
        {
            foreign::known_value(&path.path)?;
            return Ok(table_of(path));
        }
        match variable(inner) {
            Some(name) if reference.mutability.is_some() && self.is_variable(name) => refuse(
                reference,
                "`&mut` is for elements and arrays: a function gives a new value back, `v = f(v)`",
            ),
            Some(_) => self.expr(inner),
            None => refuse(
                reference,
                "`&` is for elements and arrays: `&mut x[i]`, `&x`",
            ),
        }
    }

    /// Arguments, the last of which is evaluated last.
    fn arguments<'a>(
        &mut self,
        whole: &Expr,
        args: impl ExactSizeIterator<Item = &'a Expr>,
    ) -> Result<Vec<TokenStream>> {
        let last = args.len().wrapping_sub(1);
        args.enumerate()
            .map(|(i, arg)| {
                if i == last {
                    self.at(whole, arg)
                } else {
                    self.expr(arg)
                }
            })
            .collect()
    }

    fn call(&mut self, call: &syn::ExprCall) -> Result<TokenStream> {
        let Expr::Path(function) = &*call.func else {
            return refuse(&call.func, "a kernel calls functions by their names");
        };
        let path = &function.path;
        foreign::known_function(path)?;
        // `f32::max(a, b)` is that of the kernel's values.
        let function = match foreign::number_of(&function.path) {
            Some(number) => {
                let name = &function.path.segments[1].ident;
                let arguments = &function.path.segments[1].arguments;
                let name = foreign::with_arguments(name, call.args.len().saturating_sub(1));
                quote_spanned!(located(function)=> ::invar::kernel::Val::<#number>::#name #arguments)
            }
            None => function.to_token_stream(),
        };
        let whole = Expr::Call(call.clone());
        let args = self.arguments(&whole, call.args.iter())?;
        // Where one does not fit, rustc tells what kernels call. What takes values of many types is left alone:
        // `as_type::<u32>(x)`, `f32::from(x)`.
        let says_types = |segment: &syn::PathSegment| !segment.arguments.is_none();
        let takes_many = foreign::number_of(path).is_some() || path.segments.iter().any(says_types);
        let args: Vec<TokenStream> = match takes_many {
            true => args,
            false => (args.iter().zip(&call.args))
                .map(|(value, arg)| {
                    quote_spanned!(located(arg)=> ::invar::kernel::expansion::Passed::passed(#value))
                })
                .collect(),
        };
        let place = place(call);
        let here = located(call);
        let made = if args.is_empty() {
            quote_spanned!(here=> { ::invar::kernel::expansion::at(#place, ()); #function() })
        } else {
            quote_spanned!(here=> #function(#(#args),*))
        };
        // What a function of the host gives, without arguments of the kernel, is a constant of the kernel.
        Ok(quote_spanned!(here=> ::invar::kernel::IntoVal::into_val(#made)))
    }

    fn method_call(&mut self, call: &syn::ExprMethodCall) -> Result<TokenStream> {
        let (method, generics) = (&call.method, &call.turbofish);
        if let Expr::Path(path) = &*call.receiver
            && method == "len"
            && !self.is_own(&path.path)
        {
            // How long a Rust constant is, is known.
            return Ok(
                quote_spanned!(located(call)=> ::invar::kernel::IntoVal::into_val(#path.#method())),
            );
        }
        if is_place(&call.receiver)
            && call.args.is_empty()
            && (method == "len" || method == "is_empty")
        {
            // How long an array in memory is, is known without what is in it.
            let spot = self.place(&call.receiver, false)?;
            return Ok(quote_spanned!(located(call)=> #spot.#method()));
        }
        if call.args.is_empty() {
            let receiver = self.at(call, &call.receiver)?;
            foreign::known_method(call)?;
            return Ok(quote_spanned!(located(call)=> #receiver.#method #generics()));
        }
        let receiver = self.expr(&call.receiver)?;
        foreign::known_method(call)?;
        let whole = Expr::MethodCall(call.clone());
        let args = self.arguments(&whole, call.args.iter())?;
        let method = foreign::with_arguments(method, args.len());
        Ok(quote_spanned!(located(call)=> #receiver.#method #generics(#(#args),*)))
    }

    // ---- control flow ----

    /// A branch of two sides; `names` are the variables that one of them changes.
    fn branch(
        condition: &TokenStream,
        place: &TokenStream,
        names: &[Ident],
        then: Side,
        otherwise: Side,
    ) -> TokenStream {
        let (given, after) = (hidden("given"), hidden("after"));
        // A side that is left gives what the other one does, and that is not used.
        let all_leave = then.leaves && otherwise.leaves;
        let [(then, give), (otherwise, give_otherwise)] = [then, otherwise].map(|side| {
            let never =
                (side.leaves && !all_leave).then(|| words!(; ::invar::kernel::expansion::never()));
            let words = side.words;
            (words!(#words #never), hidden_at("give", side.tail))
        });
        let (texts, vars, pattern) = (name_texts(names), nest(names, false), nest(names, true));
        let assign = assign(names, &after);
        words!({
            let (#given, #after) = ::invar::kernel::expansion::if_(
                #condition, #place, #texts, #vars,
                |#pattern| { let #give = { #then }; (#give, #vars) },
                |#pattern| { let #give_otherwise = { #otherwise }; (#give_otherwise, #vars) },
            );
            #assign
            #given
        })
    }

    fn if_(&mut self, if_: &syn::ExprIf) -> Result<TokenStream> {
        if let Expr::Let(let_) = &*if_.cond {
            return refuse(
                let_.let_token,
                "a kernel has no `if let`: compare, or `match` numbers",
            );
        }
        let condition = self.condition(&if_.cond)?;
        let (word, test) = (&if_.if_token, &if_.cond);
        let place = place(quote!(#word #test));
        let mut changed = self.changed().block(&if_.then_branch);
        let then = self.block(&if_.then_branch)?;
        let then = Side {
            words: then,
            tail: tail(&if_.then_branch),
            leaves: block_leaves(&if_.then_branch),
        };
        let mut otherwise = Side {
            words: TokenStream::new(),
            tail: word.to_token_stream(),
            leaves: false,
        };
        if let Some((_, expr)) = &if_.else_branch {
            changed = changed.expr(expr);
            otherwise = Side {
                words: self.expr(expr)?,
                tail: tail_of(expr),
                leaves: expr_leaves(expr),
            };
        }
        let names = changed.names();
        Ok(Body::branch(&condition, &place, &names, then, otherwise))
    }

    fn match_(&mut self, match_: &syn::ExprMatch) -> Result<TokenStream> {
        let subject = hidden("subject");
        let value = self.expr(&match_.expr)?;
        let mut changed = self.changed();
        for arm in &match_.arms {
            attributes::none(&arm.attrs)?;
            changed = changed.arm(arm);
        }
        let names = changed.names();
        let Some((last, arms)) = match_.arms.split_last() else {
            return refuse(match_, "a `match` has arms");
        };
        if let Some((word, _)) = &last.guard {
            return refuse(word, "the last arm of a kernel's `match` has no condition");
        }
        let mut out = self.scoped(|body| {
            let always = body.pattern(&last.pat, &subject)?.is_none();
            if !always && !patterns::all_truths(&match_.arms) {
                let is_name =
                    matches!(&last.pat, Pat::Ident(name) if patterns::is_constant(&name.ident));
                let why = match is_name {
                    true => {
                        "a name in capitals is a constant: the last arm of a kernel's `match` is `_` or \
                         a name in small letters"
                    }
                    false => "the last arm of a kernel's `match` is `_` or a name",
                };
                return refuse(&last.pat, why);
            }
            let (bind, _) = body.bind(&last.pat, &subject)?;
            let last = body.expr(&last.body)?;
            Ok(words!(#bind #last))
        })?;
        let mut rest_leaves = expr_leaves(&last.body);
        for arm in arms.iter().rev() {
            let (condition, words) = self.scoped(|body| -> Result<_> {
                let (bind, names) = body.bind(&arm.pat, &subject)?;
                // They stand in the condition and in the arm, and may be used in one of them.
                let bind = words!(#bind #(let _ = &#names;)*);
                let condition = body.arm(arm, &subject, &bind)?;
                let words = body.expr(&arm.body)?;
                Ok((condition, words!(#bind #words)))
            })?;
            let then = Side {
                words,
                tail: tail_of(&arm.body),
                leaves: expr_leaves(&arm.body),
            };
            let rest = Side {
                words: out,
                tail: tail_of(&last.body),
                leaves: rest_leaves,
            };
            rest_leaves &= then.leaves;
            out = Body::branch(&condition, &place(&arm.pat), &names, then, rest);
        }
        Ok(words!({ let #subject = #value; #out }))
    }

    /// The names for what is matched and its parts.
    fn bind<'p>(&mut self, pat: &'p Pat, subject: &Ident) -> Result<(TokenStream, Vec<&'p Ident>)> {
        let (mut out, mut names) = (TokenStream::new(), Vec::new());
        for (name, part) in patterns::bound(pat, &subject.to_token_stream())? {
            let (mutable, name) = (name.mutability, &name.ident);
            out.extend(self.hide([name], true));
            self.declare_as(name, mutable.is_some());
            out.extend(words!(let #mutable #name = #part;));
            names.push(name);
        }
        Ok((out, names))
    }

    /// Whether an arm is taken: its pattern fits, and then its condition holds.
    fn arm(&mut self, arm: &syn::Arm, subject: &Ident, bind: &TokenStream) -> Result<TokenStream> {
        let fits = self.pattern(&arm.pat, subject)?;
        let Some((word, guard)) = &arm.guard else {
            let all = "this takes all that is left: it is the last arm";
            return fits.map_or_else(|| refuse(&arm.pat, all), Ok);
        };
        if let Some(name) = self.changed().expr(guard).names().first() {
            return refuse(name, "the condition of an arm changes no variable");
        }
        let holds = self.condition(guard)?;
        let holds = words!({ #bind #holds });
        let Some(fits) = fits else {
            return Ok(holds);
        };
        if idle(guard) {
            return Ok(words!((#fits & #holds)));
        }
        let place = place(quote!(#word #guard));
        Ok(words! {
            ::invar::kernel::expansion::if_(
                #fits, #place, &[], (),
                |()| (#holds, ()), |()| (::invar::kernel::expansion::compare::known(false), ()),
            ).0
        })
    }

    /// When a pattern fits; none of one that always does.
    fn pattern(&mut self, pat: &Pat, subject: &impl ToTokens) -> Result<Option<TokenStream>> {
        let here = place(pat);
        Ok(Some(match pat {
            Pat::Wild(_) => return Ok(None),
            Pat::Lit(lit) => {
                let lit = literal(&lit.lit, None)?;
                words!(::invar::kernel::expansion::compare::eq((#subject, #lit)))
            }
            Pat::Ident(name) if patterns::is_constant(&name.ident) => {
                let name = &name.ident;
                words!(::invar::kernel::expansion::compare::eq((
                    #subject, ::invar::kernel::IntoVal::into_val(::invar::kernel::expansion::at(#here, #name))
                )))
            }
            Pat::Ident(name) => {
                return match &name.subpat {
                    Some((_, inner)) => self.pattern(inner, subject),
                    None => Ok(None),
                };
            }
            Pat::Path(path) => {
                let constant = self.path(path)?;
                words!(::invar::kernel::expansion::compare::eq((#subject, #constant)))
            }
            Pat::Or(or) => {
                let mut cases = Vec::new();
                for case in &or.cases {
                    match self.pattern(case, subject)? {
                        Some(case) => cases.push(case),
                        None => return Ok(None),
                    }
                }
                words!((#(#cases)|*))
            }
            Pat::Range(range) => {
                let below = match range.limits {
                    syn::RangeLimits::HalfOpen(_) => words!(lt),
                    syn::RangeLimits::Closed(_) => words!(le),
                };
                let compare = words!(::invar::kernel::expansion::compare);
                let mut bounds = Vec::new();
                if let Some(start) = &range.start {
                    let start = self.expr(start)?;
                    bounds.push(words!(#compare::ge((#subject, #start))));
                }
                if let Some(end) = &range.end {
                    let end = self.expr(end)?;
                    bounds.push(words!(#compare::#below((#subject, #end))));
                }
                words!((#(#bounds)&*))
            }
            Pat::Paren(inner) => return self.pattern(&inner.pat, subject),
            Pat::Tuple(tuple) => {
                let parts = patterns::parts_of_tuple(tuple, &subject.to_token_stream())?;
                return self.all_fit(parts);
            }
            Pat::Slice(slice) => {
                let parts = patterns::parts_of_vector(slice, &subject.to_token_stream())?;
                return self.all_fit(parts);
            }
            other => {
                return refuse(
                    other,
                    "a kernel's `match` compares with numbers: `1 | 2`, `3..=5`, `(0, _)`, and `_` last",
                );
            }
        }))
    }

    fn all_fit(&mut self, parts: Vec<(&Pat, TokenStream)>) -> Result<Option<TokenStream>> {
        let mut conditions = Vec::new();
        for (part, subject) in parts {
            conditions.extend(self.pattern(part, &subject)?);
        }
        Ok((!conditions.is_empty()).then(|| words!((#(#conditions)&*))))
    }

    fn return_(&mut self, return_: &syn::ExprReturn) -> Result<TokenStream> {
        if self.device_fn {
            return self.give_back(return_);
        }
        if let Some(value) = &return_.expr {
            return refuse(
                value,
                "a kernel gives nothing back: it writes to a `&mut [T]`",
            );
        }
        let place = place(return_);
        Ok(words!(::invar::kernel::expansion::return_(#place)))
    }
}

/// A number or truth value, with the sign before it.
fn literal(lit: &Lit, minus: Option<&syn::Token![-]>) -> Result<TokenStream> {
    if let Lit::Int(number) = lit
        && !number.suffix().is_empty()
    {
        let ty: Type = syn::parse2(Ident::new(number.suffix(), number.span()).into_token_stream())?;
        foreign::known_type(&ty)?;
    }
    match lit {
        Lit::Int(_) | Lit::Float(_) | Lit::Bool(_) | Lit::Byte(_) => {
            let place = place(quote!(#minus #lit));
            Ok(quote_spanned!(located(words!(#minus #lit))=>
                ::invar::kernel::expansion::lit(#minus #lit, #place)))
        }
        _ => refuse(lit, foreign::NO_TEXT),
    }
}

/// Rust that kernels do not have.
fn refuse_rust(expr: &Expr) -> Result<TokenStream> {
    let what = match expr {
        Expr::Closure(_) => foreign::NO_CLOSURES,
        Expr::Range(_) => "a range stands in `for` only",
        Expr::Unsafe(_) => "nothing in a kernel is unsafe",
        Expr::Async(_) | Expr::Await(_) => "a kernel has no futures",
        Expr::Try(_) => "nothing in a kernel fails: there is no `?`",
        Expr::Let(_) => "a kernel has no `let` in conditions",
        _ => "a kernel has no such expression",
    };
    refuse(expr, what)
}
