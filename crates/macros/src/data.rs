//! `#[derive(KernelData)]` and `#[function_constant]`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{
    DeriveInput, Error, Fields, ItemStruct, LitInt, Meta, Result, Token, TraitItemConst, Type,
    Visibility,
};

use crate::foreign;
use crate::refuse::refuse;
use crate::source::{located, moved_name};

/// That a struct lies in memory as C's do, and nothing puts its fields elsewhere.
fn known_layout(item: &ItemStruct) -> Result<()> {
    let mut found = false;
    for attribute in item.attrs.iter().filter(|a| a.path().is_ident("repr")) {
        let words = attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)?;
        for word in words {
            if !word.path().is_ident("C") {
                return refuse(
                    word,
                    "a kernel's struct is `#[repr(C)]` and no more: this puts its fields elsewhere",
                );
            }
            found = true;
        }
    }
    if found {
        return Ok(());
    }
    refuse(
        &item.ident,
        "write `#[repr(C)]`: a kernel finds the fields where C puts them",
    )
}

/// The fields of a struct that kernels can hold, wherever they lie.
fn known_fields(item: &ItemStruct) -> Result<Vec<(&Ident, &Type)>> {
    let name = &item.ident;
    let Fields::Named(fields) = &item.fields else {
        return refuse(name, "fields of a kernel's struct have names");
    };
    if !item.generics.params.is_empty() {
        return refuse(&item.generics, "a kernel's struct has no parameters");
    }
    if fields.named.is_empty() {
        return refuse(name, "a kernel's struct has a field");
    }
    let fields = fields.named.iter();
    let fields: Vec<_> = fields
        .filter_map(|f| Some((f.ident.as_ref()?, &f.ty)))
        .collect();
    fields
        .iter()
        .try_for_each(|(_, ty)| foreign::known_element(ty))?;
    Ok(fields)
}

/// That no field is called as what sets another one.
fn known_names(fields: &[(&Ident, &Type)]) -> Result<()> {
    for (field, _) in fields {
        let other = fields.iter().find(|(n, _)| setter(n) == **field);
        if let Some((other, _)) = other {
            let why =
                format!("what sets the field `{other}` has this name: give the field another one");
            return refuse(field, &why);
        }
    }
    Ok(())
}

/// What sets a field.
fn setter(field: &Ident) -> Ident {
    format_ident!("set_{}", field.unraw(), span = field.span())
}

/// `#[derive(KernelData)]`.
pub fn kernel_data(item: TokenStream) -> Result<TokenStream> {
    let item: ItemStruct = syn::parse2(item)
        .map_err(|e| Error::new(e.span(), "kernels hold structs: no enums and no unions"))?;
    let fields = known_fields(&item)?;
    known_names(&fields)?;
    known_layout(&item)?;
    Ok(described(&item, &fields))
}

/// What stands for a type that was refused: uses of it are not errors of their own. What is wrong with it is told
/// where it would stand, so that it is not a type for rustc either.
pub fn stand_in(item: TokenStream, error: &Error) -> TokenStream {
    let errors = || error.clone().into_iter().map(|one| one.to_compile_error());
    let Ok(item) = syn::parse2::<DeriveInput>(item) else {
        return errors().collect();
    };
    if let Ok(item) = syn::parse2::<ItemStruct>(item.to_token_stream())
        && let Ok(fields) = known_fields(&item)
    {
        let described = described(&item, &fields);
        return errors().chain([described]).collect();
    }
    let (impl_, of, where_) = item.generics.split_for_impl();
    let (name, mut told) = (&item.ident, errors());
    let first = told.next();
    // The parameters hold numbers, and what they hold is what lies in buffers.
    let element = item.generics.params.is_empty().then(|| {
        quote! {
            // SAFETY: what has errors is never run.
            unsafe impl ::invar::Element for #name {
                const SCALAR: ::core::option::Option<::invar::ir::Scalar> =
                    ::core::option::Option::None;
            }
        }
    });
    quote! {
        #(#told)*

        impl #impl_ ::invar::kernel::expansion::Known for #name #of #where_ {
            type Itself = [(); { #first; 0 }];
        }

        impl #impl_ ::invar::kernel::expansion::KnownSelf for #name #of #where_ {
            type Itself = [(); { #first; 0 }];
        }

        #element
    }
}

/// What gives the fields of a value, and what sets them, for those who see them; `vals` are their types.
fn accessors(seen: &[&Visibility], names: &[&Ident], vals: &[TokenStream]) -> TokenStream {
    let one = |((field, ty), vis): ((&&Ident, &TokenStream), &&Visibility)| {
        let (here, set) = (located(ty), setter(field));
        let used = moved_name(field, here);
        // One that is called as a field was refused.
        let sets = (!names.contains(&&set)).then(|| {
            quote_spanned! {here=>
                #vis fn #set(&mut self, value: #ty) {
                    self.#used = value;
                }
            }
        });
        quote_spanned! {here=>
            #vis fn #field(&self) -> #ty {
                self.#used
            }
            #sets
        }
    };
    names.iter().zip(vals).zip(seen).map(one).collect()
}

/// What has a struct of the host's, whose fields are called so and have these types, be a constant of kernels. Only
/// the names of numbers tell a macro that a type has constants.
fn as_constant(name: &Ident, used: &[Ident], types: &[TokenStream], end: &Ident) -> TokenStream {
    let values = format_ident!("{name}Value");
    let each = types.iter().map(|ty| {
        let here = located(ty);
        (
            quote_spanned!(here=> <#ty as ::invar::kernel::Constant>),
            quote_spanned!(here=> ::invar::kernel::expansion::constant_value::<#ty>),
        )
    });
    let (constant, constant_value): (Vec<_>, Vec<_>) = each.unzip();
    quote_spanned! {located(name)=>
        impl ::invar::kernel::Constant for #name {
            fn consts(&self, into: &mut ::std::vec::Vec<::invar::ir::Const>) {
                #(#constant::consts(&self.#used, into);)*
            }

            fn repr(&self) -> #values {
                #values {
                    #(#used: #constant_value(&self.#used),)*
                    #end: (),
                }
            }
        }

        impl ::invar::kernel::IntoVal for #name {
            type Val = ::invar::kernel::Val<#name>;

            fn into_val(self) -> ::invar::kernel::Val<#name> {
                ::invar::kernel::expansion::constant_value(&self)
            }
        }
    }
}

/// What kernels know of a struct.
fn described(item: &ItemStruct, fields: &[(&Ident, &Type)]) -> TokenStream {
    let (vis, name) = (&item.vis, &item.ident);
    let (values, spots) = (format_ident!("{name}Value"), format_ident!("{name}Place"));
    let (names, types): (Vec<_>, Vec<_>) = fields.iter().copied().unzip();
    let texts: Vec<_> = names.iter().map(|n| n.unraw().to_string()).collect();
    let text = name.to_string();
    let numbers: Vec<u32> = (0..).take(names.len()).collect();
    let padding = format!(
        "there are unused bytes between or behind the fields of `{name}`: order them by size, or add fields"
    );
    // rustc tells what is wrong with a type once, on the type.
    let blamed = types.iter().find(|ty| !foreign::is_number(ty));
    let blamed = blamed.map_or_else(Span::call_site, located);
    let is_flat = types.iter().all(|ty| foreign::is_of_numbers(ty));
    let types: Vec<TokenStream> = types.into_iter().map(foreign::looked_up).collect();
    let each = |of: fn(&TokenStream) -> TokenStream| -> Vec<TokenStream> {
        types.iter().map(of).collect()
    };
    let used = names.iter().zip(&types);
    let used: Vec<Ident> = used
        .map(|(name, ty)| moved_name(name, located(ty)))
        .collect();
    let vals = each(|ty| quote_spanned!(located(ty)=> ::invar::kernel::Val<#ty>));
    let seen: Vec<&Visibility> = item.fields.iter().map(|field| &field.vis).collect();
    let accessors = accessors(&seen, &names, &vals);
    // Behind a type that is none rustc finds no end: it would say so of the whole struct.
    let end = Ident::new("_no_more", Span::mixed_site());
    let constants = is_flat.then(|| as_constant(name, &used, &types, &end));
    let parts = each(|ty| quote_spanned!(located(ty)=> ::invar::kernel::expansion::Spot<#ty>));
    let data = each(|ty| quote_spanned!(located(ty)=> <#ty as ::invar::kernel::Data>));
    let stored = each(|ty| quote_spanned!(located(ty)=> <#ty as ::invar::kernel::Stored>));
    let vars = each(
        |ty| quote_spanned!(located(ty)=> <::invar::kernel::Val<#ty> as ::invar::kernel::Vars>),
    );
    let load =
        each(|ty| quote_spanned!(located(ty)=> ::invar::kernel::expansion::load_field::<#ty>));
    let store =
        each(|ty| quote_spanned!(located(ty)=> ::invar::kernel::expansion::store_field::<#ty>));
    let has_no_padding = quote_spanned!(located(name)=> ::core::assert!(
        ::core::mem::size_of::<#name>() == 0 #(+ elements::<#types>())*,
        #padding
    ););
    quote_spanned! {blamed=>
        const _: () = {
        #[doc = ::core::concat!("A `", #text, "` in a kernel.")]
        #vis struct #values {
            #(#names: #vals,)*
            #end: (),
        }

        impl ::core::clone::Clone for #values {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl ::core::marker::Copy for #values {}

        #[allow(dead_code, missing_docs, reason = "each field can be read and written, whether or not a kernel does")]
        impl #values {
            #accessors
        }

        #[doc = ::core::concat!("Where a `", #text, "` lies in a kernel's memory.")]
        #[derive(::core::clone::Clone, ::core::marker::Copy)]
        #vis struct #spots(::invar::kernel::expansion::SpotId);

        #[allow(dead_code, missing_docs, reason = "each field can be read and written, whether or not a kernel does")]
        impl #spots {
            #(
                #seen fn #names(&self) -> #parts {
                    self.0.field(#numbers)
                }
            )*
        }

        impl ::invar::kernel::expansion::Known for #name {
            type Itself = #name;
        }

        impl ::invar::kernel::expansion::KnownSelf for #name {
            type Itself = #name;
        }

        impl ::invar::kernel::Data for #name {
            type Repr = #values;

            fn values(repr: &#values, into: &mut ::std::vec::Vec<::invar::ir::Value>) {
                #(#data::values(&repr.#used, into);)*
            }

            fn rebuild(
                from: &mut dyn ::core::iter::Iterator<Item = ::invar::ir::Value>,
            ) -> #values {
                #values {
                    #(#used: #vars::rebuild(from),)*
                    #end: (),
                }
            }

            fn types(into: &mut ::std::vec::Vec<::invar::ir::Type>) {
                #(#data::types(into);)*
            }
        }

        impl ::invar::kernel::Stored for #name {
            type At = #spots;
            const VALUE: ::core::option::Option<::invar::ir::Type> = ::core::option::Option::None;

            fn element() -> ::invar::ir::ElementType {
                ::invar::kernel::expansion::struct_type::<#name>(
                    #text,
                    &[#((#texts, #stored::element)),*],
                )
            }

            fn at(spot: ::invar::kernel::expansion::SpotId) -> #spots {
                #spots(spot)
            }

            fn load(place: &::invar::ir::Place) -> #values {
                #values {
                    #(#used: #load(place, #numbers),)*
                    #end: (),
                }
            }

            fn store(place: &::invar::ir::Place, repr: &#values) {
                #(#store(place, #numbers, repr.#used);)*
            }
        }

        #constants

        impl ::invar::kernel::Struct for #name {
            const FIELDS: &'static [&'static str] = &[#(#texts),*];
        }

        // SAFETY: the fields are elements, and there is nothing between them.
        unsafe impl ::invar::Element for #name {
            const SCALAR: ::core::option::Option<::invar::ir::Scalar> = ::core::option::Option::None;
        }

        const fn elements<T: ::invar::Element>() -> usize {
            ::core::mem::size_of::<T>()
        }
        #has_no_padding
        };
    }
}

/// `#[function_constant(0)] const TILE: u32 = 16;`
pub fn function_constant(attributes: TokenStream, item: TokenStream) -> Result<TokenStream> {
    const FORM: &str = "a function constant has a number, by which other programs name it: \
                        `#[function_constant(0)]`";
    const RANGE: &str = "the number of a function constant is from 0 to 4294967295";
    if let Ok(syn::ExprUnary {
        op: syn::UnOp::Neg(minus),
        ..
    }) = syn::parse2(attributes.clone())
    {
        return refuse(minus, RANGE);
    }
    let number: LitInt = syn::parse2(attributes).map_err(|e| Error::new(e.span(), FORM))?;
    let number: u32 = number
        .base10_parse()
        .map_err(|_| Error::new(number.span(), RANGE))?;
    let parse = |input: ParseStream| {
        let attributes = input.call(syn::Attribute::parse_outer)?;
        let vis: Visibility = input.parse()?;
        let item: TraitItemConst = input.parse()?;
        Ok((attributes, vis, item))
    };
    let (attributes, vis, item) = parse.parse2(item).map_err(|e| {
        let what = "a function constant is a `const`: `const TILE: u32 = 16;`, or without a value";
        Error::new(e.span(), what)
    })?;
    let (name, ty) = (&item.ident, &item.ty);
    foreign::known_type(ty)?;
    let text = name.to_string();
    let default = match &item.default {
        Some((_, value)) => {
            let value = value.to_token_stream();
            quote!(::core::option::Option::Some(#value))
        }
        None => quote!(::core::option::Option::None),
    };
    Ok(quote! {
        #(#attributes)*
        #vis const #name: ::invar::kernel::FunctionConstant<#ty> =
            ::invar::kernel::FunctionConstant::new(#text, #number, #default);
    })
}
