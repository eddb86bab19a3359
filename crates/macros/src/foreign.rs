//! Rust that kernels do not have, as far as its name tells: types, functions and methods of the standard
//! library. What a name does not tell is left to rustc, which knows types.

use std::collections::HashMap;

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::punctuated::Punctuated;
use syn::{
    Expr, ExprMethodCall, ExprPath, GenericArgument, GenericParam, Generics, Ident, Path,
    PathArguments, Result, Token, Type, TypeParamBound, TypePath, WherePredicate,
};

use crate::refuse::refuse;
use crate::source::{moved, own};

pub const NO_TEXT: &str = "a kernel has numbers and truth values, no text";

pub const NO_CLOSURES: &str = "a kernel has no closures: write a function under `#[device_fn]`";

const NO_MEMORY: &str = "a kernel allocates nothing: take a buffer, `&[T]` or `&mut [T]`, or make an array of \
                         the thread, `thread!([f32; 8])`";

/// Why a type of this name is none of a kernel.
fn foreign(name: &Ident, has_arguments: bool) -> Option<String> {
    let name = name.to_string();
    Some(match (&*name, has_arguments) {
        ("usize" | "isize", _) => format!(
            "a kernel has no `{name}`: write `u32` or `u64`; any integer serves as an index"
        ),
        ("i128" | "u128", _) => "integers of a kernel have up to 64 bits".to_string(),
        ("char" | "str" | "String", false) => NO_TEXT.to_string(),
        ("Vec" | "Box" | "Rc" | "Arc" | "VecDeque" | "HashMap" | "HashSet" | "BTreeMap", true) => {
            NO_MEMORY.to_string()
        }
        ("Option" | "Result", true) => {
            format!("a kernel has no `{name}`: keep a truth value beside the value")
        }
        _ => return None,
    })
}

/// What to write instead of a macro of the standard library.
pub fn of_a_macro(name: &Ident) -> Option<&'static str> {
    Some(match &*name.to_string() {
        "vec" => NO_MEMORY,
        "format" => NO_TEXT,
        "assert" | "assert_eq" | "assert_ne" | "debug_assert" | "debug_assert_eq"
        | "debug_assert_ne" => {
            "nothing in a kernel fails: what a launch has to fulfil is `#[requires(n <= length(x))]` below \
             `#[kernel]`, and what a thread finds it prints or stores"
        }
        "panic" | "todo" | "unimplemented" | "unreachable" => {
            "nothing in a kernel fails: `return` ends the thread, and an arm that is never taken gives any value"
        }
        "print" | "eprint" | "dbg" => "a kernel prints lines: `println!(\"x is {}\", x)`",
        "cfg" => {
            "write it outside: `const FAST: bool = cfg!(...);`, or `#[cfg(...)]` on a statement"
        }
        _ => return None,
    })
}

/// Whether it is a name of the standard library's that stands alone, or one with the library before it.
fn may_be_of_std(path: &Path, names: usize) -> bool {
    let first = path.segments.first().map(|s| s.ident.to_string());
    let is_std = matches!(first.as_deref(), Some("std" | "core" | "alloc"));
    path.segments.len() == names || is_std
}

const NUMBERS: &[&str] = &[
    "bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64",
];

/// The types that a function names, each as if it always stood where it stands first.
pub struct Types {
    first: HashMap<String, Span>,
    /// The names of its parameters in angle brackets: what stands for them rustc finds by where they stand.
    parameters: Vec<Ident>,
}

impl Types {
    pub fn of(generics: &Generics) -> Types {
        Types {
            first: HashMap::new(),
            parameters: generics.type_params().map(|p| p.ident.clone()).collect(),
        }
    }

    /// A type where it stands first.
    pub fn first(&mut self, ty: &Type) -> Result<Type> {
        let text = ty.to_token_stream().to_string();
        let here = *self.first.entry(text).or_insert_with(|| own(ty));
        syn::parse2(moved(ty, here))
    }

    /// The same as rustc looks it up.
    pub fn looked_up(&mut self, ty: &Type) -> TokenStream {
        let mut leaf = ty;
        while let Type::Array(array) = leaf {
            leaf = &array.elem;
        }
        if let Type::Path(path) = leaf
            && let Some(first) = path.path.segments.first()
            && self.parameters.contains(&first.ident)
        {
            return ty.to_token_stream();
        }
        match self.first(ty) {
            Ok(first) => looked_up(&first),
            Err(_cannot_stand_elsewhere) => looked_up(ty),
        }
    }

    /// The same of a struct that is put together or taken apart.
    pub fn looked_up_struct(&mut self, path: &Path) -> TokenStream {
        self.looked_up(&Type::Path(TypePath {
            qself: None,
            path: path.clone(),
        }))
    }
}

/// A type as rustc looks it up among those that kernels have. One that they do not have is told on its words, and is
/// no type at all from there on: so nothing else is said of what has it.
pub fn looked_up(ty: &Type) -> TokenStream {
    let here = own(ty);
    match ty {
        Type::Array(array) => {
            let (element, length) = (looked_up(&array.elem), &array.len);
            quote_spanned!(here=> [#element; #length])
        }
        Type::Paren(inner) => looked_up(&inner.elem),
        Type::Group(inner) => looked_up(&inner.elem),
        Type::Path(_) if is_number(ty) => ty.to_token_stream(),
        Type::Path(path) if path.path.is_ident("Self") => {
            quote_spanned!(here=> <#ty as ::invar::kernel::expansion::KnownSelf>::Itself)
        }
        Type::Path(_) => quote_spanned!(here=> <#ty as ::invar::kernel::expansion::Known>::Itself),
        other => other.to_token_stream(),
    }
}

/// Whether it is a number by its name, or a truth value.
pub fn is_number(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if NUMBERS.iter().any(|name| path.path.is_ident(name)))
}

/// Whether it is a number by its name, or an array of those.
pub fn is_of_numbers(ty: &Type) -> bool {
    match ty {
        Type::Array(array) => is_of_numbers(&array.elem),
        Type::Paren(inner) => is_of_numbers(&inner.elem),
        Type::Group(inner) => is_of_numbers(&inner.elem),
        _ => is_number(ty),
    }
}

/// Refuses a type that kernels do not have.
pub fn known_type(ty: &Type) -> Result<()> {
    match ty {
        Type::Path(path) => {
            let Some(last) = path.path.segments.last() else {
                return Ok(());
            };
            let arguments = match &last.arguments {
                PathArguments::AngleBracketed(arguments) => Some(&arguments.args),
                PathArguments::None | PathArguments::Parenthesized(_) => None,
            };
            if may_be_of_std(&path.path, 1)
                && let Some(why) = foreign(&last.ident, arguments.is_some())
            {
                return refuse(ty, &why);
            }
            arguments
                .into_iter()
                .flatten()
                .try_for_each(|argument| match argument {
                    GenericArgument::Type(ty) => known_type(ty),
                    _ => Ok(()),
                })
        }
        Type::Array(array) => known_type(&array.elem),
        Type::Tuple(tuple) => tuple.elems.iter().try_for_each(known_type),
        Type::Paren(inner) => known_type(&inner.elem),
        Type::Group(inner) => known_type(&inner.elem),
        Type::BareFn(_) | Type::ImplTrait(_) | Type::TraitObject(_) => refuse(ty, NO_CLOSURES),
        _ => Ok(()),
    }
}

/// Refuses what memory of a kernel does not hold.
pub fn known_element(ty: &Type) -> Result<()> {
    match ty {
        Type::Reference(_) | Type::Slice(_) | Type::Ptr(_) => refuse(
            ty,
            "memory of a kernel holds no references: put rows one after the other, \
             `x[row * columns + column]`",
        ),
        Type::Tuple(_) => refuse(
            ty,
            "memory of a kernel holds no tuples: make it a struct with `#[derive(KernelData)]`",
        ),
        Type::Array(array) => known_element(&array.elem),
        Type::Paren(inner) => known_element(&inner.elem),
        Type::Group(inner) => known_element(&inner.elem),
        other => known_type(other),
    }
}

/// Refuses a value or a function of a type that kernels do not have.
pub fn known_value(path: &Path) -> Result<()> {
    let names: Vec<&Ident> = path.segments.iter().map(|s| &s.ident).collect();
    let [.., last] = names[..] else {
        return Ok(());
    };
    if may_be_of_std(path, 1)
        && ["Some", "None", "Ok", "Err"]
            .iter()
            .any(|name| last == name)
    {
        let why = "a kernel has no `Option` and no `Result`: keep a truth value beside the value";
        return refuse(path, why);
    }
    if may_be_of_std(path, 2)
        && let [.., ty, _] = names[..]
        // Of a type with parameters the call may leave them out: `Vec::new()`.
        && let Some(why) = foreign(ty, false).or_else(|| foreign(ty, true))
    {
        return refuse(path, &why);
    }
    Ok(())
}

/// The type of `f32::max(a, b)` and its like: a function of a number's type.
pub fn number_of(function: &Path) -> Option<&Ident> {
    let first = function.segments.first().map(|s| &s.ident);
    first.filter(|ty| function.segments.len() == 2 && NUMBERS.iter().any(|name| ty == name))
}

/// The name of a method of numbers where the table of operations has another one, without arguments, of its name.
pub fn with_arguments(method: &Ident, count: usize) -> Ident {
    match count {
        1 if method == "log" => Ident::new("log_of_base", method.span()),
        _ => method.clone(),
    }
}

/// The path of `Shape::Round`, and of what else a type of the author's has that stands with its name.
pub fn of_a_type<'a>(expr: &'a Expr, generics: &Generics) -> Option<&'a ExprPath> {
    let path = match expr {
        Expr::Path(path) if path.qself.is_none() => path,
        Expr::Paren(inner) => return of_a_type(&inner.expr, generics),
        _ => return None,
    };
    let names: Vec<String> = path
        .path
        .segments
        .iter()
        .map(|s| s.ident.to_string())
        .collect();
    let [.., ty, _] = &names[..] else {
        return None;
    };
    let is_parameter = generics.type_params().any(|p| p.ident == ty);
    (ty.starts_with(char::is_uppercase) && !is_parameter).then_some(path)
}

/// Whether it is an integer of kernels.
pub fn is_integer(ty: &Type) -> bool {
    const INTEGERS: &[&str] = &["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"];
    matches!(ty, Type::Path(path) if INTEGERS.iter().any(|name| path.path.is_ident(name)))
}

/// Refuses functions of the standard library that take references.
pub fn known_function(path: &Path) -> Result<()> {
    known_value(path)?;
    let names: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    match names[..] {
        ["std" | "core", "mem", "swap"] | ["mem", "swap"] => refuse(
            path,
            "a kernel has no references to swap: write `(a, b) = (b, a)`",
        ),
        ["std" | "core", "mem", "replace" | "take"] | ["mem", "replace" | "take"] => refuse(
            path,
            "a kernel has no references to replace: write `let old = a; a = b;`",
        ),
        ["std" | "core", "cmp", "min" | "max"] | ["cmp", "min" | "max"] => {
            let name = names[names.len() - 1];
            refuse(
                path,
                &format!("in a kernel it is `{name}(a, b)` or `a.{name}(b)`"),
            )
        }
        _ => Ok(()),
    }
}

/// What to write instead of what iterators and slices have.
const NO_ITERATORS: &str = "a kernel has no iterators: write `for i in 0..n` and `x[i]`";

/// Methods of iterators and slices that give no element in particular, with their numbers of arguments.
const OF_ITERATORS: &[(&str, &[usize])] = &[
    (
        "iter iter_mut into_iter enumerate rev cloned copied count collect sum product peekable flatten min max",
        &[0],
    ),
    (
        "map filter filter_map flat_map for_each any all find position take_while skip_while inspect reduce",
        &[1],
    ),
    (
        "zip chain skip take step_by nth cycle last_mut min_by max_by min_by_key max_by_key partition",
        &[0, 1],
    ),
    (
        "chunks chunks_mut chunks_exact chunks_exact_mut windows rchunks split_at split_at_mut array_chunks",
        &[1],
    ),
    ("fold scan try_fold", &[2]),
];

/// Methods of slices, arrays and `Vec` that do something with many elements at once.
const OF_SLICES: &str = "fill fill_with contains concat join to_vec sort sort_unstable sort_by sort_by_key reverse \
                         copy_from_slice clone_from_slice copy_within swap_with_slice binary_search \
                         binary_search_by partition_point is_sorted starts_with ends_with repeat push pop insert \
                         remove clear truncate resize extend_from_slice split_first split_last as_slice \
                         as_mut_slice as_ptr as_mut_ptr get_unchecked get_unchecked_mut";

/// Comparisons as methods.
const COMPARISONS: &str = "eq ne lt le gt ge cmp partial_cmp total_cmp is_lt is_gt is_eq";

/// What Rust makes of numbers beside numbers.
const TO_BYTES: &str = "to_le_bytes to_be_bytes to_ne_bytes";

fn stands_in(list: &str, name: &str) -> bool {
    list.split_whitespace().any(|word| word == name)
}

/// Refuses a method that kernels do not have, of numbers, iterators, options or slices.
pub fn known_method(call: &ExprMethodCall) -> Result<()> {
    let (method, count) = (call.method.to_string(), call.args.len());
    let is_of_iterators =
        |(names, counts): &(&str, &[usize])| counts.contains(&count) && stands_in(names, &method);
    let why = match (&*method, count) {
        ("get" | "get_mut", 1) => {
            "an element is `x[i]`: a load out of bounds gives 0 (B1), and a store does nothing (B2)"
                .to_string()
        }
        ("unwrap" | "unwrap_or_default", 0) | ("unwrap_or" | "expect" | "unwrap_or_else", 1) => {
            format!("nothing in a kernel fails: there is no `{method}`")
        }
        (name, 0 | 1) if name.starts_with("checked_") || name.starts_with("strict_") => {
            "integers of a kernel wrap (A1): there is nothing to check; `a.saturating_add(b)` stays at the \
             largest, and `a.overflowing_add(b)` says whether it wrapped"
                .to_string()
        }
        (name, 0 | 1) if name.starts_with("unchecked_") => {
            "nothing in a kernel is unsafe: the operators wrap (A1)".to_string()
        }
        (name, 0 | 1)
            if name.starts_with("overflowing_")
                && !["add", "sub", "mul"].contains(&&name["overflowing_".len()..]) =>
        {
            "integers of a kernel wrap (A1); whether they did `overflowing_add`, `overflowing_sub` and \
             `overflowing_mul` say"
                .to_string()
        }
        ("first" | "last", 0) => {
            "an element is `x[i]`, the last one `x[x.len() - 1]`: a load out of bounds gives 0 (B1)".to_string()
        }
        ("classify", 0) => {
            "a kernel has no enums: ask `x.is_nan()`, `x.is_infinite()`, `x.is_subnormal()` or `x.is_normal()`"
                .to_string()
        }
        ("to_int_unchecked", 0) => "in a kernel it is `x as i32`, which saturates (A5)".to_string(),
        ("try_into", 0) => "nothing in a kernel fails: write `x as u32`".to_string(),
        ("then" | "then_some", 1) => {
            "a kernel has no `Option`: write `if c { a } else { b }`, or `select(b, a, c)`".to_string()
        }
        ("to_string" | "as_str" | "parse", 0) => NO_TEXT.to_string(),
        (name, 0) if stands_in(TO_BYTES, name) => {
            format!("a kernel has no `{name}`: the bytes of 32 bits are `as_type::<[u8; 4]>(x)`, lowest first")
        }
        (name, 0 | 1) if stands_in(COMPARISONS, name) => {
            format!("a kernel has no `{name}`: compare by `==`, `<` and their like")
        }
        _ if OF_ITERATORS.iter().any(is_of_iterators) => NO_ITERATORS.to_string(),
        (name, 0..=2) if stands_in(OF_SLICES, name) => {
            format!("arrays of a kernel have `len`, `is_empty` and `swap`, and no `{name}`: write a loop")
        }
        _ => return Ok(()),
    };
    refuse(&call.method, &why)
}

/// What is known of a type parameter: whether a bound makes it a type that kernels may have.
pub fn known_parameters(generics: &Generics) -> Result<()> {
    for parameter in &generics.params {
        let GenericParam::Type(parameter) = parameter else {
            continue;
        };
        let name = &parameter.ident;
        let in_where = generics.where_clause.iter().flat_map(|w| &w.predicates);
        let more = in_where.filter_map(|predicate| match predicate {
            WherePredicate::Type(of) if is_named(&of.bounded_ty, name) => Some(&of.bounds),
            _ => None,
        });
        let bounds: Vec<_> = parameter.bounds.iter().chain(more.flatten()).collect();
        if let Some(bound) = bounds
            .iter()
            .find(|b| bound_is(b, &["Fn", "FnMut", "FnOnce"]))
        {
            return refuse(bound, NO_CLOSURES);
        }
        if bounds.iter().all(|bound| bound_is(bound, OF_STD)) {
            let why = format!(
                "say which types of a kernel this is: `{name}: Number`, `Float`, `Integer` or `Scalar`"
            );
            return refuse(name.span(), &why);
        }
    }
    Ok(())
}

/// Traits that say nothing of kernels.
const OF_STD: &[&str] = &[
    "Copy",
    "Clone",
    "Default",
    "Debug",
    "Display",
    "PartialEq",
    "Eq",
    "PartialOrd",
    "Ord",
    "Hash",
    "Send",
    "Sync",
    "Sized",
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Rem",
    "Neg",
    "Not",
    "BitAnd",
    "BitOr",
    "BitXor",
    "Shl",
    "Shr",
    "AddAssign",
    "SubAssign",
    "MulAssign",
    "DivAssign",
    "RemAssign",
    "Sum",
    "Product",
    "Into",
    "From",
];

/// Whether a bound is a lifetime or one of these traits.
fn bound_is(bound: &TypeParamBound, names: &[&str]) -> bool {
    match bound {
        TypeParamBound::Trait(of) => {
            let last = of.path.segments.last();
            let named = last.is_some_and(|last| names.iter().any(|name| last.ident == name));
            named && (may_be_of_std(&of.path, 1) || of.path.segments.len() == 2)
        }
        TypeParamBound::Lifetime(_) => names.contains(&"Copy"),
        _ => false,
    }
}

/// The bound of a type that kernels may have, if it is one.
pub fn bound_of_kernels(bounds: &Punctuated<TypeParamBound, Token![+]>) -> Option<&Ident> {
    const OF_KERNELS: &[&str] = &[
        "Number", "Float", "Integer", "Scalar", "Signed", "Bits", "Data", "Stored",
    ];
    bounds.iter().find_map(|bound| match bound {
        TypeParamBound::Trait(of) if bound_is(bound, OF_KERNELS) => {
            of.path.segments.last().map(|last| &last.ident)
        }
        _ => None,
    })
}

fn is_named(ty: &Type, name: &Ident) -> bool {
    matches!(ty, Type::Path(path) if path.path.is_ident(name))
}
