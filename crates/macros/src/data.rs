//! `#[derive(KernelData)]` and `#[function_constant]`.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Error, Fields, ItemStruct, LitInt, Meta, Result, Token, TraitItemConst, Visibility};

use crate::foreign;
use crate::refuse::refuse;

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

/// `#[derive(KernelData)]`.
pub fn kernel_data(item: TokenStream) -> Result<TokenStream> {
    let item: ItemStruct = syn::parse2(item)
        .map_err(|e| Error::new(e.span(), "kernels hold structs: no enums and no unions"))?;
    let (vis, name) = (&item.vis, &item.ident);
    let Fields::Named(fields) = &item.fields else {
        return refuse(name, "fields of a kernel's struct have names");
    };
    if !item.generics.params.is_empty() {
        return refuse(&item.generics, "a kernel's struct has no parameters");
    }
    if fields.named.is_empty() {
        return refuse(name, "a kernel's struct has a field");
    }
    known_layout(&item)?;
    let (values, spots) = (format_ident!("{name}Value"), format_ident!("{name}Place"));
    let names: Vec<_> = fields
        .named
        .iter()
        .filter_map(|f| f.ident.as_ref())
        .collect();
    let types: Vec<_> = fields.named.iter().map(|f| &f.ty).collect();
    types.iter().try_for_each(|ty| foreign::known_element(ty))?;
    let texts: Vec<_> = names.iter().map(|n| n.unraw().to_string()).collect();
    let text = name.to_string();
    let numbers: Vec<u32> = (0..).take(names.len()).collect();
    let sets: Vec<_> = names
        .iter()
        .map(|n| format_ident!("set_{}", n.unraw(), span = n.span()))
        .collect();
    let padding = format!(
        "there are unused bytes between or behind the fields of `{name}`: order them by size, or add fields"
    );
    Ok(quote! {
        #[doc = concat!("A `", #text, "` in a kernel.")]
        #[derive(Clone, Copy)]
        #vis struct #values {
            #(#names: ::invar::kernel::Val<#types>,)*
        }

        #[allow(dead_code, missing_docs, reason = "each field can be read and written, whether or not a kernel does")]
        impl #values {
            #(
                #vis fn #names(&self) -> ::invar::kernel::Val<#types> {
                    self.#names
                }

                #vis fn #sets(&mut self, value: ::invar::kernel::Val<#types>) {
                    self.#names = value;
                }
            )*
        }

        #[doc = concat!("Where a `", #text, "` lies in a kernel's memory.")]
        #[derive(Clone, Copy)]
        #vis struct #spots(::invar::kernel::SpotId);

        #[allow(dead_code, missing_docs, reason = "each field can be read and written, whether or not a kernel does")]
        impl #spots {
            #(
                #vis fn #names(&self) -> ::invar::kernel::Spot<#types> {
                    self.0.field(#numbers)
                }
            )*
        }

        impl ::invar::kernel::Data for #name {
            type Repr = #values;

            fn values(repr: &#values, into: &mut ::std::vec::Vec<::invar::ir::Value>) {
                #(<#types as ::invar::kernel::Data>::values(&repr.#names, into);)*
            }

            fn rebuild(
                from: &mut dyn ::core::iter::Iterator<Item = ::invar::ir::Value>,
            ) -> #values {
                #values {
                    #(#names: <::invar::kernel::Val<#types> as ::invar::kernel::Vars>::rebuild(from),)*
                }
            }

            fn types(into: &mut ::std::vec::Vec<::invar::ir::Type>) {
                #(<#types as ::invar::kernel::Data>::types(into);)*
            }
        }

        impl ::invar::kernel::Stored for #name {
            type At = #spots;
            const VALUE: ::core::option::Option<::invar::ir::Type> = ::core::option::Option::None;

            fn element() -> ::invar::ir::ElementType {
                ::invar::kernel::struct_type::<#name>(
                    #text,
                    &[#((#texts, <#types as ::invar::kernel::Stored>::element)),*],
                )
            }

            fn at(spot: ::invar::kernel::SpotId) -> #spots {
                #spots(spot)
            }

            fn load(place: &::invar::ir::Place) -> #values {
                #values {
                    #(#names: ::invar::kernel::load_field::<#types>(place, #numbers),)*
                }
            }

            fn store(place: &::invar::ir::Place, repr: &#values) {
                #(::invar::kernel::store_field::<#types>(place, #numbers, repr.#names);)*
            }
        }

        impl ::invar::kernel::Struct for #name {
            const FIELDS: &'static [&'static str] = &[#(#texts),*];
        }

        // SAFETY: the fields are elements, and there is nothing between them.
        unsafe impl ::invar::Element for #name {
            const SCALAR: ::core::option::Option<::invar::ir::Scalar> = ::core::option::Option::None;
        }

        const _: () = {
            const fn elements<T: ::invar::Element>() -> usize {
                ::core::mem::size_of::<T>()
            }
            assert!(
                ::core::mem::size_of::<#name>() == 0 #(+ elements::<#types>())*,
                #padding
            );
        };
    })
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
