//! `#[derive(KernelData)]` and `#[function_constant]`.

use proc_macro2::{Ident, TokenStream};
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
use crate::source::located;

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

/// What stands for a struct that was refused, so that its uses are no errors of their own.
pub fn stand_in(item: TokenStream) -> TokenStream {
    let Ok(item) = syn::parse2::<DeriveInput>(item) else {
        return TokenStream::new();
    };
    if !item.generics.params.is_empty() {
        return TokenStream::new();
    }
    if let Ok(item) = syn::parse2::<ItemStruct>(item.to_token_stream())
        && let Ok(fields) = known_fields(&item)
    {
        return described(&item, &fields);
    }
    let name = &item.ident;
    quote! {
        impl ::invar::kernel::Data for #name {
            type Repr = ();

            fn values(_none: &(), _into: &mut ::std::vec::Vec<::invar::ir::Value>) {}
            fn rebuild(_none: &mut dyn ::core::iter::Iterator<Item = ::invar::ir::Value>) {}
            fn types(_into: &mut ::std::vec::Vec<::invar::ir::Type>) {}
        }

        impl ::invar::kernel::Stored for #name {
            type At = ();
            const VALUE: ::core::option::Option<::invar::ir::Type> = ::core::option::Option::None;

            fn element() -> ::invar::ir::ElementType {
                ::core::unreachable!()
            }

            fn at(_spot: ::invar::kernel::SpotId) {}
            fn load(_place: &::invar::ir::Place) {}
            fn store(_place: &::invar::ir::Place, _none: &()) {}
        }

        impl ::invar::kernel::Struct for #name {
            const FIELDS: &'static [&'static str] = &[];
        }

        // SAFETY: what has errors is never run.
        unsafe impl ::invar::Element for #name {
            const SCALAR: ::core::option::Option<::invar::ir::Scalar> = ::core::option::Option::None;
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
    let each = |of: fn(&Type) -> TokenStream| -> Vec<TokenStream> {
        types.iter().map(|ty| of(ty)).collect()
    };
    let vals = each(|ty| quote_spanned!(located(ty)=> ::invar::kernel::Val<#ty>));
    // One that is called as a field was refused.
    let sets = names.iter().zip(&vals).filter_map(|(field, ty)| {
        let set = setter(field);
        (!names.contains(&&set)).then(|| {
            quote! {
                #vis fn #set(&mut self, value: #ty) {
                    self.#field = value;
                }
            }
        })
    });
    let parts = each(|ty| quote_spanned!(located(ty)=> ::invar::kernel::Spot<#ty>));
    let data = each(|ty| quote_spanned!(located(ty)=> <#ty as ::invar::kernel::Data>));
    let stored = each(|ty| quote_spanned!(located(ty)=> <#ty as ::invar::kernel::Stored>));
    let vars = each(
        |ty| quote_spanned!(located(ty)=> <::invar::kernel::Val<#ty> as ::invar::kernel::Vars>),
    );
    let load = each(|ty| quote_spanned!(located(ty)=> ::invar::kernel::load_field::<#ty>));
    let store = each(|ty| quote_spanned!(located(ty)=> ::invar::kernel::store_field::<#ty>));
    let has_no_padding = quote_spanned!(located(name)=> ::core::assert!(
        ::core::mem::size_of::<#name>() == 0 #(+ elements::<#types>())*,
        #padding
    ););
    quote! {
        const _: () = {
        #[doc = concat!("A `", #text, "` in a kernel.")]
        #vis struct #values {
            #(#names: #vals,)*
        }

        impl ::core::clone::Clone for #values {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl ::core::marker::Copy for #values {}

        #[allow(dead_code, missing_docs, reason = "each field can be read and written, whether or not a kernel does")]
        impl #values {
            #(
                #vis fn #names(&self) -> #vals {
                    self.#names
                }
            )*
            #(#sets)*
        }

        #[doc = concat!("Where a `", #text, "` lies in a kernel's memory.")]
        #[derive(Clone, Copy)]
        #vis struct #spots(::invar::kernel::SpotId);

        #[allow(dead_code, missing_docs, reason = "each field can be read and written, whether or not a kernel does")]
        impl #spots {
            #(
                #vis fn #names(&self) -> #parts {
                    self.0.field(#numbers)
                }
            )*
        }

        impl ::invar::kernel::Data for #name {
            type Repr = #values;

            fn values(repr: &#values, into: &mut ::std::vec::Vec<::invar::ir::Value>) {
                #(#data::values(&repr.#names, into);)*
            }

            fn rebuild(
                from: &mut dyn ::core::iter::Iterator<Item = ::invar::ir::Value>,
            ) -> #values {
                #values {
                    #(#names: #vars::rebuild(from),)*
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
                ::invar::kernel::struct_type::<#name>(
                    #text,
                    &[#((#texts, #stored::element)),*],
                )
            }

            fn at(spot: ::invar::kernel::SpotId) -> #spots {
                #spots(spot)
            }

            fn load(place: &::invar::ir::Place) -> #values {
                #values {
                    #(#names: #load(place, #numbers),)*
                }
            }

            fn store(place: &::invar::ir::Place, repr: &#values) {
                #(#store(place, #numbers, repr.#names);)*
            }
        }

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
    let number: LitInt = syn::parse2(attributes).map_err(|e| Error::new(e.span(), FORM))?;
    let number: u32 = number.base10_parse()?;
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
