//! Rust that kernels do not have, as far as its name tells: types, functions and methods of the standard
//! library. What a name does not tell is left to rustc, which knows types.

use syn::{
    ExprMethodCall, GenericArgument, GenericParam, Generics, Ident, Path, PathArguments, Result,
    Type, TypeParamBound, WherePredicate,
};

use crate::refuse::refuse;

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

/// Whether it is a name of the standard library's that stands alone, or one with the library before it.
fn may_be_of_std(path: &Path, names: usize) -> bool {
    let first = path.segments.first().map(|s| s.ident.to_string());
    let is_std = matches!(first.as_deref(), Some("std" | "core" | "alloc"));
    path.segments.len() == names || is_std
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
    const NUMBERS: &[&str] = &[
        "bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64",
    ];
    let first = function.segments.first().map(|s| &s.ident);
    first.filter(|ty| function.segments.len() == 2 && NUMBERS.iter().any(|name| ty == name))
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

/// Refuses a method of iterators, options or slices.
pub fn known_method(call: &ExprMethodCall) -> Result<()> {
    let method = call.method.to_string();
    let why = match (&*method, call.args.len()) {
        ("iter" | "iter_mut" | "into_iter", 0) | ("chunks" | "chunks_exact" | "windows", 1) => {
            "a kernel has no iterators: write `for i in 0..n` and `x[i]`".to_string()
        }
        ("get" | "get_mut", 1) => {
            "an element is `x[i]`: a load out of bounds gives 0 (B1), and a store does nothing (B2)"
                .to_string()
        }
        ("unwrap" | "unwrap_or_default", 0) | ("unwrap_or" | "expect", 1) => {
            format!("nothing in a kernel fails: there is no `{method}`")
        }
        (name, 1) if name.starts_with("checked_") || name.starts_with("overflowing_") => {
            "integers of a kernel wrap (A1): there is nothing to check; `a.saturating_add(b)` stays at the \
             largest"
                .to_string()
        }
        ("signum", 0) => "in a kernel it is `x.sign()`, which is 0 for 0".to_string(),
        ("map" | "fold" | "for_each" | "zip" | "filter", 1..) => {
            "a kernel has no iterators: write `for i in 0..n` and `x[i]`".to_string()
        }
        ("first" | "last", 0) => {
            "an element is `x[i]`, the last one `x[x.len() - 1]`: a load out of bounds gives 0 (B1)".to_string()
        }
        ("fill" | "contains" | "concat" | "to_vec" | "sort" | "sort_unstable" | "reverse", 0 | 1) => {
            format!("arrays of a kernel have `len`, `is_empty` and `swap`, and no `{method}`: write a loop")
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

fn is_named(ty: &Type, name: &Ident) -> bool {
    matches!(ty, Type::Path(path) if path.path.is_ident(name))
}
