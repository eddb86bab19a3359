//! What stands around a body: the signature, and what a kernel offers to the host.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, Expr, FnArg, GenericArgument, GenericParam, Generics, Ident, Item, ItemFn,
    Pat, PathArguments, Result, ReturnType, Token, Type, parse_quote,
};

use crate::around;
use crate::body::{Body, in_kernel};
use crate::foreign::{self, Types};
use crate::groups;
use crate::lengths::is_zero;
use crate::refuse::refuse;
use crate::requires::{self, Sort, is_requirement};
use crate::source;

/// What a parameter is.
enum Kind {
    Slice(Type),
    SliceMut(Type),
    Constants(Type),
    Threadgroup(Type),
    Thread(Type),
    Texture(Texture, Type),
    Sampler(Type),
    Value(Type),
}

/// A texture: the name of its type, what makes a parameter of it, and whether it is written.
#[derive(Clone)]
struct Texture {
    name: Ident,
    function: &'static str,
    written: bool,
}

impl Texture {
    /// The names of all types, and what makes a parameter of each in a kernel.
    const NAMES: [(&str, &str); 14] = [
        ("Texture1d", "texture1d"),
        ("Texture1dArray", "texture1d_array"),
        ("Texture2d", "texture2d"),
        ("Texture2dArray", "texture2d_array"),
        ("Texture2dMs", "texture2d_ms"),
        ("Texture2dMsArray", "texture2d_ms_array"),
        ("Texture3d", "texture3d"),
        ("TextureCube", "texture_cube"),
        ("TextureCubeArray", "texture_cube_array"),
        ("TextureBuffer", "texture_buffer"),
        ("Depth2d", "depth2d"),
        ("Depth2dArray", "depth2d_array"),
        ("DepthCube", "depth_cube"),
        ("DepthCubeArray", "depth_cube_array"),
    ];

    /// What makes the parameter in a kernel.
    fn make(&self) -> String {
        let mutable = if self.written { "_mut" } else { "" };
        format!("{}{mutable}", self.function)
    }

    /// Whether textures of that type are only read.
    fn is_never_written(name: &Ident) -> bool {
        let name = name.to_string();
        name.starts_with("Depth") || name.contains("Ms")
    }

    /// The type in a kernel.
    fn of(&self, component: &TokenStream, here: Span) -> TokenStream {
        let mutable = if self.written { "Mut" } else { "" };
        let name = format_ident!("{}{mutable}", self.name, span = here);
        quote_spanned!(here=> ::invar::kernel::expansion::#name<#component>)
    }
}

impl Kind {
    /// What it holds, or is.
    fn element(&self) -> &Type {
        match self {
            Kind::Slice(ty)
            | Kind::SliceMut(ty)
            | Kind::Constants(ty)
            | Kind::Threadgroup(ty)
            | Kind::Thread(ty)
            | Kind::Texture(_, ty)
            | Kind::Sampler(ty)
            | Kind::Value(ty) => ty,
        }
    }

    fn element_mut(&mut self) -> &mut Type {
        match self {
            Kind::Slice(ty)
            | Kind::SliceMut(ty)
            | Kind::Constants(ty)
            | Kind::Threadgroup(ty)
            | Kind::Thread(ty)
            | Kind::Texture(_, ty)
            | Kind::Sampler(ty)
            | Kind::Value(ty) => ty,
        }
    }
}

impl Parameter {
    /// Its name, as if it stood with its type: rustc tells there what is wrong with that.
    fn at_its_type(&self) -> Ident {
        source::moved_name(&self.name, source::own(self.kind.element()))
    }

    /// Whether it is a buffer of this type, or of arrays of it.
    fn is_buffer_of(&self, name: &Ident) -> bool {
        let (Kind::Slice(ty) | Kind::SliceMut(ty) | Kind::Constants(ty)) = &self.kind else {
            return false;
        };
        let mut leaf = ty;
        while let Type::Array(array) = leaf {
            leaf = &array.elem;
        }
        matches!(leaf, Type::Path(path) if path.path.is_ident(name))
    }
}

struct Parameter {
    name: Ident,
    mutable: bool,
    kind: Kind,
}

/// `T` of `Constants<T>`, for a type of that name.
fn element_of(name: &str, ty: &Type) -> Option<Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return None;
    };
    match arguments.args.first()? {
        GenericArgument::Type(element) if last.ident == name => Some(element.clone()),
        _ => None,
    }
}

/// The name of a texture's type, what makes a parameter of it, and its components.
fn texture_of(ty: &Type) -> Option<(Ident, &'static str, Type)> {
    let Type::Path(path) = ty else { return None };
    let name = &path.path.segments.last()?.ident;
    let mut names = Texture::NAMES.iter();
    let (function, component) = names.find_map(|(name, function)| {
        let component = element_of(name, ty)?;
        Some((*function, component))
    })?;
    Some((name.clone(), function, component))
}

/// Whether a type is that of samplers.
fn is_sampler(ty: &Type) -> bool {
    let Type::Path(path) = ty else { return false };
    let last = path.path.segments.last();
    last.is_some_and(|last| last.ident == "Sampler" && last.arguments.is_none())
}

fn kind(ty: &Type) -> Result<Kind> {
    const KINDS: &str = "a parameter is `&[T]`, `&mut [T]`, `&Constants<T>`, `&mut ThreadgroupArray<T>`, \
                         `&Texture2d<T>` and its like, `Sampler`, or a number, a truth value, a vector or a matrix";
    let ty = groups::ungrouped_type(ty);
    let array = match ty {
        Type::Reference(reference) => &*reference.elem,
        other => other,
    };
    if let Some(element) = element_of("ThreadgroupArray", array) {
        foreign::known_element(&element)?;
        return Ok(Kind::Threadgroup(element));
    }
    if let Some(element) = element_of("ThreadArray", array) {
        foreign::known_element(&element)?;
        return Ok(Kind::Thread(element));
    }
    if let Some((name, function, component)) = texture_of(array) {
        foreign::known_element(&component)?;
        let Type::Reference(reference) = ty else {
            let why = format!("a texture is `&{name}<T>`, or `&mut {name}<T>` to be written");
            return refuse(ty, &why);
        };
        let written = reference.mutability.is_some();
        if written && Texture::is_never_written(&name) {
            return refuse(ty, &format!("a `{name}` is only read: write `&{name}<T>`"));
        }
        let texture = Texture {
            name,
            function,
            written,
        };
        return Ok(Kind::Texture(texture, component));
    }
    if is_sampler(ty) {
        return Ok(Kind::Sampler(ty.clone()));
    }
    match ty {
        Type::Reference(reference) => {
            if let Some(lifetime) = &reference.lifetime {
                return refuse(
                    lifetime,
                    "buffers of kernels have no lifetimes: leave it out",
                );
            }
            if let Type::Slice(slice) = &*reference.elem {
                foreign::known_element(&slice.elem)?;
                if let Type::Path(path) = groups::ungrouped_type(&slice.elem)
                    && path.path.is_ident("bool")
                {
                    let why = "buffers hold numbers and no `bool`: write `u8`, and `x[i] != 0`";
                    return refuse(path, why);
                }
            }
            match (&*reference.elem, reference.mutability) {
                (Type::Slice(slice), Some(_)) => Ok(Kind::SliceMut((*slice.elem).clone())),
                (Type::Slice(slice), None) => Ok(Kind::Slice((*slice.elem).clone())),
                (other, None) => match element_of("Constants", other) {
                    Some(element) => {
                        foreign::known_element(&element)?;
                        Ok(Kind::Constants(element))
                    }
                    None => no_reference(ty, other, KINDS),
                },
                (other, Some(_)) => no_reference(ty, other, KINDS),
            }
        }
        Type::Path(_) | Type::Array(_) | Type::Tuple(_) => {
            foreign::known_type(ty)?;
            Ok(Kind::Value(ty.clone()))
        }
        Type::ImplTrait(of) => match foreign::bound_of_kernels(&of.bounds) {
            Some(bound) => {
                let why =
                    format!("a type that the caller chooses has a name: `fn f<T: {bound}>(x: T)`");
                refuse(ty, &why)
            }
            None => refuse(ty, foreign::NO_CLOSURES),
        },
        _ => refuse(ty, KINDS),
    }
}

/// Refuses a reference that is none to memory.
fn no_reference(reference: &Type, to: &Type, kinds: &str) -> Result<Kind> {
    if !foreign::is_number(to) {
        return refuse(reference, kinds);
    }
    let ty = to.to_token_stream();
    let why = format!(
        "a kernel has no references to one value: it is `{ty}`, and a device function gives back what it changes, \
         `-> {ty}`; memory is `&[{ty}]` or `&mut [{ty}]`"
    );
    refuse(reference, &why)
}

/// The parameters, of whose types rustc tells where each stands first.
fn parameters(function: &ItemFn, types: &mut Types) -> Result<Vec<Parameter>> {
    let one = |arg: &FnArg| match arg {
        FnArg::Receiver(this) => refuse(
            this,
            "a kernel is a function of its own, without `self`; so is a device function: give the value a name, \
             `#[device_fn] fn area(shape: Shape) -> f32`, and call `Shape::area(shape)`",
        ),
        FnArg::Typed(typed) if !typed.attrs.is_empty() => {
            refuse(&typed.attrs[0], "a parameter of a kernel has no attributes")
        }
        FnArg::Typed(typed) => match &*typed.pat {
            Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => Ok(Parameter {
                name: name.ident.clone(),
                mutable: name.mutability.is_some(),
                kind: kind(&typed.ty)?,
            }),
            other => refuse(other, "a parameter of a kernel is a name"),
        },
    };
    let mut all: Vec<Parameter> = function.sig.inputs.iter().map(one).collect::<Result<_>>()?;
    for parameter in &mut all {
        let element = parameter.kind.element_mut();
        *element = types.first(element)?;
    }
    Ok(all)
}

fn check_signature(function: &ItemFn) -> Result<()> {
    let sig = &function.sig;
    if let Some(word) = &sig.constness {
        return refuse(word, "a kernel is not a `const fn`");
    }
    if let Some(word) = &sig.asyncness {
        return refuse(
            word,
            "a kernel is not `async`: its launch gives a submission to wait for",
        );
    }
    if let Some(word) = &sig.unsafety {
        return refuse(word, "nothing in a kernel is unsafe");
    }
    if let Some(word) = &sig.abi {
        return refuse(word, "a kernel has no ABI to choose");
    }
    if let Some(word) = &sig.variadic {
        return refuse(word, "a kernel has as many arguments as its parameters");
    }
    for parameter in &sig.generics.params {
        if let GenericParam::Lifetime(lifetime) = parameter {
            return refuse(lifetime, "kernels have no lifetimes: leave it out");
        }
    }
    foreign::known_parameters(&sig.generics)
}

/// Enters the function in the author's text, or gives back what stands for a call that never ends.
fn entered(function: &ItemFn, otherwise: &TokenStream) -> TokenStream {
    let (vis, sig, block) = (&function.vis, &function.sig, &function.block);
    let required = function.attrs.iter().filter(|a| is_requirement(a));
    let text = source::text(quote!(#(#required)* #vis #sig #block));
    let name = sig.ident.to_string();
    let (file, place) = (source::file(&sig.ident), source::place(&sig.ident));
    quote! {
        let _function = {
            static FUNCTION: ::invar::kernel::Function = ::invar::kernel::Function {
                name: #name,
                file: #file,
                text: #text,
                place: #place,
            };
            match ::invar::kernel::expansion::enter(&FUNCTION) {
                ::core::option::Option::Some(function) => function,
                ::core::option::Option::None => return #otherwise,
            }
        };
    }
}

/// Lints that are about what the author did not write.
fn lints() -> TokenStream {
    quote! {
        #[allow(
            unused_parens, unused_braces, unused_assignments, unused_mut, clippy::all,
            reason = "the words in between are those of the macro"
        )]
    }
}

/// What `#[kernel(...)]` says, as `invar::kernel::Attributes`.
fn attributes(attributes: TokenStream) -> Result<TokenStream> {
    const FORM: &str = "`#[kernel]` takes `threadgroup(64)` with up to three numbers, `simdgroup(32)`, \
                        `strict`, `contract` or `fast`, and `allow(...)` of `out_of_bounds_loads`, \
                        `out_of_bounds_stores`, `uninitialised_reads`, `equal_stores`, `unordered_atomics` and \
                        `discarded_load`";
    let parse = |input: syn::parse::ParseStream| {
        let mut seen: Vec<String> = Vec::new();
        let mut fields = TokenStream::new();
        while !input.is_empty() {
            let word: Ident = input.parse().map_err(|e| Error::new(e.span(), FORM))?;
            let name = match word.to_string() {
                mode if ["strict", "contract", "fast"].contains(&&*mode) => {
                    "float_mode".to_string()
                }
                other => other,
            };
            if seen.contains(&name) {
                return Err(Error::new(word.span(), "this is said twice"));
            }
            let wrong = || Err(Error::new(word.span(), FORM));
            match &*name {
                "threadgroup" | "simdgroup" | "allow" if !input.peek(syn::token::Paren) => {
                    return wrong();
                }
                "threadgroup" => {
                    let sizes = listed(input)?;
                    if sizes.is_empty() || sizes.len() > 3 {
                        return wrong();
                    }
                    if let Some(none) = sizes.iter().find(|size| is_zero(size)) {
                        return refuse(
                            none,
                            "a threadgroup has at least one thread along each axis",
                        );
                    }
                    let ones = std::iter::repeat_n(quote!(1), 3 - sizes.len());
                    let sizes = sizes.iter().map(thread_count).chain(ones);
                    fields
                        .extend(quote!(threadgroup: ::core::option::Option::Some([#(#sizes),*]),));
                }
                "simdgroup" => {
                    let sizes = listed(input)?;
                    let (Some(size), 1) = (sizes.first(), sizes.len()) else {
                        return wrong();
                    };
                    let size = thread_count(size);
                    fields.extend(quote!(simdgroup: ::core::option::Option::Some(#size),));
                }
                "float_mode" => {
                    let mode = match &*word.to_string() {
                        "strict" => quote!(Strict),
                        "fast" => quote!(Fast),
                        _ => quote!(Contract),
                    };
                    fields.extend(quote!(float_mode: ::invar::ir::FloatMode::#mode,));
                }
                "allow" => {
                    let mut rules = Vec::new();
                    for what in listed(input)? {
                        match &*what.to_token_stream().to_string() {
                            "out_of_bounds_loads" => {
                                fields.extend(quote!(allow_out_of_bounds_loads: true,));
                            }
                            "out_of_bounds_stores" => {
                                fields.extend(quote!(allow_out_of_bounds_stores: true,));
                            }
                            "uninitialised_reads" => {
                                fields.extend(quote!(allow_uninitialised_reads: true,));
                            }
                            "equal_stores" => rules.push(quote!(EqualStores)),
                            "unordered_atomics" => rules.push(quote!(UnorderedAtomics)),
                            "discarded_load" => rules.push(quote!(DiscardedLoad)),
                            _ => return Err(Error::new(what.span(), FORM)),
                        }
                    }
                    fields.extend(quote!(allow: &[#(::invar::ir::Rule::#rules),*],));
                }
                _ => return wrong(),
            }
            seen.push(name);
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(fields)
    };
    let fields = parse.parse2(attributes)?;
    Ok(
        quote!(::invar::kernel::expansion::Attributes { #fields ..::invar::kernel::expansion::Attributes::NONE }),
    )
}

/// How many threads a Rust constant of any integer type says.
fn thread_count(size: &Expr) -> TokenStream {
    match size {
        Expr::Lit(_) => size.to_token_stream(),
        // Of an integer `& !0` changes nothing, and nothing else has it.
        _ => quote_spanned!(source::located(size)=>
            ::invar::kernel::expansion::thread_count(((#size) & !0) as i128)),
    }
}

/// What stands in parentheses.
fn listed(input: syn::parse::ParseStream) -> Result<Punctuated<Expr, Token![,]>> {
    let inside;
    syn::parenthesized!(inside in input);
    Punctuated::parse_terminated(&inside)
}

/// Where the parameters begin in a kernel.
fn declarations(parameters: &[Parameter], types: &mut Types) -> TokenStream {
    let one = |p: &Parameter| {
        let (name, text, place) = (&p.name, p.name.to_string(), source::place(&p.name));
        if matches!(p.kind, Kind::Sampler(_)) {
            return quote!(let #name = ::invar::kernel::expansion::sampler(#text, #place););
        }
        let (make, ty) = match &p.kind {
            Kind::Slice(ty) => ("slice", ty),
            Kind::SliceMut(ty) => ("slice_mut", ty),
            Kind::Constants(ty) => ("constants", ty),
            Kind::Threadgroup(ty) => ("threadgroup_param", ty),
            Kind::Texture(texture, ty) => (&*texture.make(), ty),
            Kind::Thread(ty) | Kind::Sampler(ty) | Kind::Value(ty) => ("scalar", ty),
        };
        let (make, here) = (format_ident!("{make}"), source::own(ty));
        let (mutable, ty) = (p.mutable.then(|| quote!(mut)), types.looked_up(ty));
        quote_spanned!(here=>
            let #mutable #name = ::invar::kernel::expansion::#make::<#ty>(#text, #place);)
    };
    parameters.iter().map(one).collect()
}

/// The parameters of `launch` and its arguments, and the same of `check`.
struct HostSide {
    launch: TokenStream,
    launched: TokenStream,
    check: TokenStream,
    lent: TokenStream,
    checked: TokenStream,
    returned: TokenStream,
}

fn host_side(
    parameters: &[Parameter],
    types: &mut Types,
    scope: &Ident,
    device: &Ident,
) -> HostSide {
    let mut side = HostSide {
        launch: TokenStream::new(),
        launched: TokenStream::new(),
        check: TokenStream::new(),
        lent: TokenStream::new(),
        checked: TokenStream::new(),
        returned: TokenStream::new(),
    };
    for parameter in parameters {
        let (name, kind) = (&parameter.name, &parameter.kind);
        let (here, used) = (source::own(kind.element()), parameter.at_its_type());
        let t = types.looked_up(kind.element());
        let (launch, check, lend) = match kind {
            Kind::Slice(_) | Kind::Constants(_) => (
                quote_spanned!(here=> &::invar::Buffer<#t>),
                quote_spanned!(here=> &[#t]),
                Some("lend_read"),
            ),
            Kind::SliceMut(_) => (
                quote_spanned!(here=> &mut ::invar::Buffer<#t>),
                quote_spanned!(here=> &mut [#t]),
                Some("lend"),
            ),
            Kind::Threadgroup(_) => (quote!(usize), quote!(usize), None),
            Kind::Texture(texture, _) => {
                let mutable = texture.written.then(|| quote!(mut));
                let texture = quote!(&#mutable ::invar::Texture);
                (texture.clone(), texture, None)
            }
            Kind::Sampler(ty) => (quote!(#ty), quote!(#ty), None),
            Kind::Thread(_) | Kind::Value(_) => (t.clone(), t, None),
        };
        side.launch.extend(quote!(#name: #launch,));
        side.check.extend(quote!(#name: #check,));
        match lend {
            Some(lend) => {
                let lend = format_ident!("{lend}");
                side.launched
                    .extend(quote_spanned!(here=> <::invar::Arg as ::core::convert::From<_>>::from(&*#used),));
                side.lent
                    .extend(quote_spanned!(here=> let #used = #scope.#lend(&#device, #used)?;));
                side.checked
                    .extend(quote_spanned!(here=> <::invar::Arg as ::core::convert::From<_>>::from(&#used),));
            }
            None if matches!(kind, Kind::Texture(..)) => {
                let copy = format_ident!("{name}_lent", span = Span::mixed_site());
                side.launched
                    .extend(quote!(<::invar::Arg as ::core::convert::From<_>>::from(&*#name),));
                side.lent.extend(
                    quote!(let #copy = ::invar::kernel::expansion::lend_texture(&#device, #name)?;),
                );
                side.checked
                    .extend(quote!(<::invar::Arg as ::core::convert::From<_>>::from(&#copy),));
                if matches!(kind, Kind::Texture(texture, _) if texture.written) {
                    side.returned.extend(quote!(#name.write(&#copy.read()?)?;));
                }
            }
            None => {
                let value = match kind {
                    Kind::Threadgroup(_) => {
                        quote!(::invar::Arg::ThreadgroupLength(#name as u64),)
                    }
                    Kind::Sampler(_) => {
                        quote!(<::invar::Arg as ::core::convert::From<_>>::from(#name),)
                    }
                    _ => quote_spanned!(here=> ::invar::kernel::expansion::value(#used)?,),
                };
                side.launched.extend(value.clone());
                side.checked.extend(value);
            }
        }
    }
    side
}

/// The names of parameters, and whether they are variables.
fn names(parameters: &[Parameter]) -> impl Iterator<Item = (String, bool)> {
    let is_variable = |p: &Parameter| p.mutable && matches!(p.kind, Kind::Value(_));
    let all = parameters.iter();
    all.map(move |p| (p.name.to_string(), is_variable(p)))
}

/// A body in place of one that has errors, without warnings of what it does not use.
fn unread(parameters: &[Parameter]) -> TokenStream {
    let names = parameters.iter().map(|p| &p.name);
    quote!(#(let _ = &#names;)* ::core::unreachable!())
}

/// What a function under `#[kernel]` requires of launches.
#[cfg(test)]
pub fn required(function: &ItemFn) -> Result<TokenStream> {
    let parameters = parameters(function, &mut Types::of(&function.sig.generics))?;
    requires::requirements(&function.attrs, &named(&parameters))
}

/// What requirements may name.
fn named(parameters: &[Parameter]) -> Vec<requires::Named> {
    let one = |parameter: &Parameter| {
        let sort = match &parameter.kind {
            Kind::Slice(_) | Kind::SliceMut(_) | Kind::Constants(_) | Kind::Threadgroup(_) => {
                Sort::Buffer
            }
            Kind::Texture(..) => Sort::Texture,
            Kind::Sampler(_) => Sort::Sampler,
            Kind::Thread(ty) => Sort::NoInteger(ty.to_token_stream().to_string()),
            Kind::Value(ty) if foreign::is_of_numbers(ty) && !foreign::is_integer(ty) => {
                Sort::NoInteger(ty.to_token_stream().to_string())
            }
            Kind::Value(_) => Sort::Value,
        };
        (parameter.name.to_string(), sort)
    };
    parameters.iter().map(one).collect()
}

/// Refuses attributes that mean something of a function and nothing of a kernel.
fn known_attributes(attributes: &[Attribute]) -> Result<()> {
    for attribute in attributes {
        let Some(name) = attribute.path().get_ident() else {
            continue;
        };
        let why = match &*name.to_string() {
            "test" | "bench" | "should_panic" | "ignore" => {
                "a test is a function of the host that runs the kernel: `saxpy(Grid::threads(8), ...)`".to_string()
            }
            name @ ("inline" | "cold" | "track_caller" | "no_mangle" | "target_feature" | "must_use") => {
                format!("a kernel is compiled by itself: leave `{name}` out")
            }
            _ => continue,
        };
        return refuse(name, &why);
    }
    Ok(())
}

/// The function that an attribute stands on.
fn function_of(item: TokenStream, attribute: &str) -> Result<ItemFn> {
    match syn::parse2(groups::bare_lifetimes(item))? {
        Item::Fn(function) => groups::ungrouped(function),
        other => refuse(
            other,
            &format!("`#[{attribute}]` is for a function: `fn name(x: &mut [f32]) {{ ... }}`"),
        ),
    }
}

/// The parameters in angle brackets, whose types hold no references: what is compiled is kept by them. Those that
/// buffers are of lie in memory of the host, too.
fn lasting(generics: &Generics, parameters: &[Parameter]) -> Generics {
    let mut generics = generics.clone();
    for parameter in generics.type_params_mut() {
        parameter.bounds.push(parse_quote!('static));
        if parameters.iter().any(|p| p.is_buffer_of(&parameter.ident)) {
            parameter.bounds.push(parse_quote!(::invar::Element));
        }
    }
    generics
}

/// Refuses a parameter that only device functions have.
fn of_launches(Parameter { name, kind, .. }: &Parameter) -> Result<()> {
    match kind {
        Kind::Thread(_) => refuse(
            name,
            "an array of a thread is made in the kernel: `thread!([f32; 4])`",
        ),
        Kind::Value(tuple @ Type::Tuple(_)) => refuse(
            tuple,
            "a launch gives values one by one, `a: f32, b: u32`, or in a struct with `#[derive(KernelData)]` as \
             an element of a buffer",
        ),
        _ => Ok(()),
    }
}

/// `#[kernel]`.
pub fn kernel(attributes: TokenStream, item: TokenStream) -> Result<TokenStream> {
    source::in_one_file(&item.clone(), || made_kernel(attributes, item))
}

/// What is wrong with a kernel, and its body behind what launches have to fulfil, which speaks of parameters.
fn required_and_done(
    required: Result<TokenStream>,
    body: Result<TokenStream>,
    parameters: &[Parameter],
) -> (TokenStream, TokenStream) {
    match (required, body) {
        (Ok(required), Ok(body)) => (TokenStream::new(), quote!(#required #body)),
        (required, body) => {
            let errors = [required.err(), body.err()].into_iter().flatten();
            let errors = errors.map(|error| error.to_compile_error());
            (errors.collect(), unread(parameters))
        }
    }
}

fn made_kernel(attributes: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let function = function_of(item, "kernel")?;
    check_signature(&function)?;
    known_attributes(&function.attrs)?;
    if around::is_associated(&function.sig.ident) {
        return refuse(
            &function.sig.ident,
            "a kernel is a function by itself: put it outside of the `impl` or `trait`",
        );
    }
    if let ReturnType::Type(_, ty) = &function.sig.output {
        return refuse(ty, "a kernel gives nothing back: it writes to a `&mut [T]`");
    }
    let mut types = Types::of(&function.sig.generics);
    let parameters = parameters(&function, &mut types)?;
    parameters.iter().try_for_each(of_launches)?;
    let attributes = self::attributes(attributes)?;
    let mixed = |name: &str| Ident::new(name, Span::mixed_site());
    let (scope, device, found) = (mixed("scope"), mixed("device"), mixed("found"));
    let (on, grid, constants) = (mixed("on"), mixed("grid"), mixed("constants"));
    let HostSide {
        launch,
        launched,
        check,
        lent,
        checked,
        returned,
    } = host_side(&parameters, &mut types, &scope, &device);
    let declarations = declarations(&parameters, &mut types);
    let names = names(&parameters);
    let body = Body::of_kernel(names, &function.sig.generics, types).translate(&function.block);
    let required = requires::requirements(&function.attrs, &named(&parameters));
    let (errors, body) = required_and_done(required, body, &parameters);
    let (vis, name) = (&function.vis, &function.sig.ident);
    let attrs = function.attrs.iter().filter(|a| !is_requirement(a));
    let text = name.to_string();
    let (entered, lints) = (entered(&function, &TokenStream::new()), lints());
    let generics = lasting(&function.sig.generics, &parameters);
    let (impl_, of, where_) = generics.split_for_impl();
    let given = parameters.iter().map(Parameter::at_its_type);
    let turbofish = of.as_turbofish();
    let mut named = parameters.iter().map(|p| p.kind.element());
    let blamed = named
        .find(|ty| !foreign::is_number(ty))
        .map_or_else(|| source::located(name), source::own);
    let itself = source::moved_name(name, blamed);
    let ran = quote_spanned!(blamed=>
        ::invar::kernel::expansion::ran(#itself #turbofish::check(#grid, #(#given),*)));
    let types = generics.type_params().map(|p| &p.ident);
    Ok(quote_spanned! {source::located(name)=>
        #errors

        #(#attrs)*
        #[allow(non_camel_case_types, dead_code, reason = "it has the name of a function")]
        #vis struct #name #generics #where_ {
            types: ::core::marker::PhantomData<fn() -> (#(#types,)*)>,
        }

        impl #impl_ ::invar::kernel::Kernel for #name #of #where_ {
            const NAME: &'static str = #text;
            #lints
            const ATTRIBUTES: ::invar::kernel::expansion::Attributes = #attributes;

            #lints
            fn define() {
                #entered
                #declarations
                #body
            }
        }

        /// Runs the kernel on arrays of the host under all checkers, for a test.
        ///
        /// # Panics
        /// If the checkers find something, with the author's lines.
        #[allow(
            non_snake_case, dead_code, clippy::too_many_arguments,
            reason = "a kernel has the name and the parameters that its author gave it"
        )]
        #[track_caller]
        #vis fn #name #impl_ (
            #grid: impl ::invar::kernel::IntoDispatch,
            #check
        ) -> ::invar::kernel::expansion::KernelThatRanOnTheHost #where_ {
            #ran
        }

        #[allow(dead_code, clippy::too_many_arguments, reason = "a kernel has what its author gave it")]
        impl #impl_ #name #of #where_ {
            /// Submits the kernel; nothing is copied, and several launches may be under way at once.
            ///
            /// # Errors
            /// What is wrong with the kernel, with the author's lines; what does not fit the device.
            #vis fn launch(
                #on: &impl ::invar::kernel::LaunchOn<Self>,
                #grid: impl ::invar::kernel::IntoDispatch,
                #launch
            ) -> ::invar::Result<::invar::kernel::Launched> {
                ::invar::kernel::expansion::launch::<Self>(#on, #grid, &[#launched])
            }

            /// Compiles the kernel for a device, for launches that are to cost little.
            ///
            /// # Errors
            /// What is wrong with the kernel, with the author's lines; what the device cannot do.
            #vis fn prepare(
                #device: &::invar::Device,
            ) -> ::invar::Result<::invar::kernel::Prepared<Self>> {
                ::invar::kernel::Prepared::new(#device)
            }

            /// As `prepare`, with values of function constants: `&[TILE.set(32)]`.
            ///
            /// # Errors
            /// As `prepare`, and for a function constant that the kernel does not have.
            #vis fn prepare_with(
                #device: &::invar::Device,
                #constants: &[::invar::kernel::ConstantValue],
            ) -> ::invar::Result<::invar::kernel::Prepared<Self>> {
                ::invar::kernel::Prepared::with_constants(#device, #constants)
            }

            /// Runs the kernel on arrays of the host under all checkers, and gives what they found.
            ///
            /// # Errors
            /// What keeps it from running at all.
            #vis fn check(
                #grid: impl ::invar::kernel::IntoDispatch,
                #check
            ) -> ::invar::Result<::invar::kernel::Findings> {
                ::invar::scope(|#scope| {
                    let #device = ::invar::kernel::expansion::checker::<Self>();
                    #lent
                    let #found = ::invar::kernel::expansion::findings::<Self>(&#device, #grid, &[#checked])?;
                    #returned
                    ::core::result::Result::Ok(#found)
                })
            }
        }
    })
}

/// A function of which each parameter is a name: what patterns name its first statements do.
fn taken_apart(mut function: ItemFn) -> ItemFn {
    let mut lets: Vec<syn::Stmt> = Vec::new();
    for (i, parameter) in function.sig.inputs.iter_mut().enumerate() {
        let FnArg::Typed(typed) = parameter else {
            continue;
        };
        if let Pat::Wild(_) = &*typed.pat {
            let name = Ident::new(&format!("_parameter{i}"), source::located(&typed.pat));
            *typed.pat = parse_quote!(#name);
        }
        if let Pat::Tuple(_) | Pat::Slice(_) | Pat::Struct(_) = &*typed.pat {
            let name = Ident::new(&format!("parameter{i}"), source::located(&typed.pat));
            let pat = std::mem::replace(&mut *typed.pat, parse_quote!(#name));
            lets.push(parse_quote!(let #pat = #name;));
        }
    }
    function.block.stmts.splice(0..0, lets);
    function
}

/// What a trait declares, as a function without statements.
fn declared(item: &TokenStream) -> Option<ItemFn> {
    let item: syn::TraitItemFn = syn::parse2(item.clone()).ok()?;
    item.default.is_none().then(|| ItemFn {
        attrs: item.attrs,
        vis: syn::Visibility::Inherited,
        sig: item.sig,
        block: parse_quote!({}),
    })
}

/// `#[device_fn]`.
pub fn device_fn(attributes: TokenStream, item: TokenStream) -> Result<TokenStream> {
    source::in_one_file(&item.clone(), || made_device_fn(attributes, item))
}

fn made_device_fn(attributes: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let declared = declared(&item);
    let is_declared = declared.is_some();
    let function = match declared {
        Some(function) => function,
        None => taken_apart(function_of(item, "device_fn")?),
    };
    check_signature(&function)?;
    if !attributes.is_empty() {
        return refuse(attributes, "`#[device_fn]` takes nothing");
    }
    let (mut inputs, mut lent) = (TokenStream::new(), TokenStream::new());
    let mut types = Types::of(&function.sig.generics);
    let parameters = parameters(&function, &mut types)?;
    for Parameter {
        name,
        mutable,
        kind,
    } in &parameters
    {
        let mutable = mutable.then(|| quote!(mut));
        let here = source::own(kind.element());
        let t = types.looked_up(kind.element());
        let ty = match kind {
            // Every array of the kernel can be lent so, whichever memory it is in.
            Kind::Slice(_) => {
                lent.extend(quote_spanned!(here=>
                    let #mutable #name: ::invar::kernel::Slice<#t> =
                        ::invar::kernel::AsSlice::as_slice(#name);
                ));
                quote_spanned!(here=> impl ::invar::kernel::AsSlice<#t>)
            }
            Kind::SliceMut(_) => {
                lent.extend(quote_spanned!(here=>
                    let #mutable #name: ::invar::kernel::SliceMut<#t> =
                        ::invar::kernel::AsSliceMut::as_slice_mut(#name);
                ));
                quote_spanned!(here=> impl ::invar::kernel::AsSliceMut<#t>)
            }
            Kind::Constants(_) => quote_spanned!(here=> ::invar::kernel::Constants<#t>),
            Kind::Threadgroup(_) => {
                quote_spanned!(here=> ::invar::kernel::ThreadgroupArray<#t>)
            }
            Kind::Thread(_) => quote_spanned!(here=> ::invar::kernel::ThreadArray<#t>),
            Kind::Texture(texture, _) => texture.of(&t, here),
            Kind::Sampler(_) => {
                lent.extend(quote_spanned!(here=>
                    let #name: ::invar::kernel::expansion::Sampling = ::std::convert::Into::into(#name);
                ));
                quote_spanned!(here=> impl ::std::convert::Into<::invar::kernel::expansion::Sampling>)
            }
            Kind::Value(ty @ Type::Tuple(_)) => in_kernel(ty, &mut types)?,
            Kind::Value(_) => quote_spanned!(here=> ::invar::kernel::Val<#t>),
        };
        let is_lent = matches!(kind, Kind::Slice(_) | Kind::SliceMut(_) | Kind::Sampler(_));
        let mutable = mutable.filter(|_| !is_lent && !is_declared);
        inputs.extend(quote!(#mutable #name: #ty,));
    }
    let (output, given) = match &function.sig.output {
        ReturnType::Default => (TokenStream::new(), None),
        ReturnType::Type(arrow, ty) => {
            let ty = in_kernel(ty, &mut types)?;
            (quote!(#arrow #ty), Some(ty))
        }
    };
    let (attrs, vis, name) = (&function.attrs, &function.vis, &function.sig.ident);
    let (generics, where_) = (&function.sig.generics, &function.sig.generics.where_clause);
    if is_declared {
        return Ok(quote! { #(#attrs)* fn #name #generics (#inputs) #output #where_; });
    }
    let names = names(&parameters);
    let (errors, body) = match Body::of_device_fn(names, &function.sig.generics, types, given)
        .translate(&function.block)
    {
        Ok(body) => (None, body),
        Err(error) => (Some(error.to_compile_error()), unread(&parameters)),
    };
    let entered = entered(&function, &quote!(::invar::kernel::expansion::zero()));
    let lints = lints();
    Ok(quote! {
        #errors
        #(#attrs)*
        #lints
        #vis fn #name #generics (#inputs) #output #where_ {
            #entered
            #lent
            #body
        }
    })
}
