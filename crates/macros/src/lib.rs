//! `#[kernel]` and `#[device_fn]`: Rust functions as kernels.
//!
//! A body becomes calls of `invar::kernel`, one for each of the author's words that does something, with
//! the place where it stands. What a value is, and whether it fits, is left to the types of those calls,
//! so that rustc finds it on the author's own words. Only what Rust's operators and control flow cannot
//! be overloaded for is rewritten: indexing, comparisons, `as`, `&&`, branches and loops with the
//! variables that they change.
//!
//! Invariants: a word of Rust that has no meaning here is one compile error on that word, and never
//! left out; the author's words keep their spans.
//!
//! Deliberately absent: types. The macros see words.

mod around;
mod attributes;
mod body;
mod data;
mod foreign;
mod function;
mod groups;
mod imageblock;
mod lengths;
mod library;
mod loops;
mod patterns;
mod places;
mod print;
mod refuse;
mod requires;
mod returns;
mod source;
mod variables;

#[cfg(test)]
mod tests;

use proc_macro::TokenStream;

/// What a macro wrote, or the errors that it found.
fn written(made: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    library::named(made.unwrap_or_else(|error| error.to_compile_error())).into()
}

/// Makes a kernel of a function.
///
/// The function becomes a type of its name, with `launch`, `prepare` and `check`, and the trait
/// `invar::kernel::Kernel`. Parameters are `&[T]` and `&mut [T]` for buffers, `&Constants<T>` for buffers
/// in constant memory, `&mut ThreadgroupArray<T>` for threadgroup memory whose length the launch gives, and
/// numbers, vectors and matrices. The attribute takes, in any order, `threadgroup(16, 16)`, the threads of
/// a full threadgroup; `simdgroup(32)`, the simdgroup size that the kernel requires; `strict`, `contract` or
/// `fast`, how floats are computed (A8); and `allow(...)` of `out_of_bounds_loads`,
/// `out_of_bounds_stores`, `uninitialised_reads`, `equal_stores`, `unordered_atomics` and `discarded_load`, what
/// is meant. Below it `#[requires(n <= length(x), n % 4 == 0)]` says what a launch has to fulfil (S5).
#[proc_macro_attribute]
pub fn kernel(attributes: TokenStream, item: TokenStream) -> TokenStream {
    written(function::kernel(attributes.into(), item.into()))
}

/// Says what launches of a kernel have to fulfil (S5): above or below `#[kernel]`, to which it leaves it.
///
/// Names are those of parameters, of function constants, and of Rust constants and const generics, whose values are
/// known when the kernel is made.
#[proc_macro_attribute]
pub fn requires(attributes: TokenStream, item: TokenStream) -> TokenStream {
    written(requires::requires(attributes.into(), item.into()))
}

/// Makes a function that kernels call; its body stands in theirs, and reports name both places.
#[proc_macro_attribute]
pub fn device_fn(attributes: TokenStream, item: TokenStream) -> TokenStream {
    written(function::device_fn(attributes.into(), item.into()))
}

/// Makes a struct what memory of kernels holds. It has `#[repr(C)]`, fields with names whose types are
/// numbers, arrays of numbers, or such structs, and no unused bytes between them.
#[proc_macro_derive(KernelData)]
pub fn kernel_data(item: TokenStream) -> TokenStream {
    let made = data::kernel_data(item.clone().into());
    let made = made.unwrap_or_else(|error| data::stand_in(item.into(), &error));
    written(Ok(made))
}

/// Makes a function constant of a constant: a value that is fixed when a kernel is prepared. The
/// constant's own value, if it has one, holds unless `prepare_with` says another.
#[proc_macro_attribute]
pub fn function_constant(attributes: TokenStream, item: TokenStream) -> TokenStream {
    written(data::function_constant(attributes.into(), item.into()))
}
