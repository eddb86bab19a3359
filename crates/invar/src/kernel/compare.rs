//! Comparisons, and what `&&` and `||` take and give: in a kernel they have operators.

use invar_ir::{Const, KernelBuilder, Value};

use super::data::{Lanes, Numbers, Single, Val};
use super::define::with;

/// What a comparison takes. By itself, for what it gives is known of its left side alone.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a value to compare",
    note = "numbers, truth values and vectors compare: of an array its elements, `x[i]`, of a position its components, `i.x`"
)]
pub trait Comparand {
    /// A truth value for each component.
    type Mask: Single;
}

impl<T: Lanes> Comparand for Val<T> {
    type Mask = T::Mask;
}

/// A type whose values are equal or not.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not compare with `{Other}`",
    label = "one side is a `{Self}`, the other a `{Other}`",
    note = "nothing converts by itself: a length has 64 bits, `(i as u64) == x.len()` or `i == x.len() as u32`",
    note = "a float's literal has a point, `x[i] == 1.0`; one of `f16`, `bf16` or a type parameter `T` says so, `1.0 as T`"
)]
pub trait Equals<Other>: Comparand {
    /// Both sides.
    fn both(self, other: Other) -> [Value; 2];
}

/// A type whose values have an order.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not compare with `{Other}`",
    label = "one side is a `{Self}`, the other a `{Other}`",
    note = "nothing converts by itself: a length has 64 bits, `(i as u64) < x.len()` or `i < x.len() as u32`",
    note = "a float's literal has a point, `x[i] < 1.0`; one of `f16`, `bf16` or a type parameter `T` says so, `1.0 as T`"
)]
pub trait Ordered<Other>: Comparand {
    /// Both sides.
    fn both(self, other: Other) -> [Value; 2];
}

impl<T: Lanes> Equals<Val<T>> for Val<T> {
    fn both(self, other: Val<T>) -> [Value; 2] {
        [self.ssa(), other.ssa()]
    }
}

impl<T: Numbers> Ordered<Val<T>> for Val<T> {
    fn both(self, other: Val<T>) -> [Value; 2] {
        [self.ssa(), other.ssa()]
    }
}

macro_rules! comparisons {
    ($($name:ident $bound:ident $op:literal;)*) => {$(
        #[doc = concat!("`a ", $op, " b`.")]
        ///
        /// Both sides are one argument, whose type is known before they are compared: so what rustc says of
        /// sides of two types is the sentence of the bound.
        pub fn $name<A: $bound<B>, B>((a, b): (A, B)) -> Val<A::Mask> {
            let [a, b] = a.both(b);
            Val::of(with(|k| KernelBuilder::$name(&mut k.builder, a, b)))
        }
    )*};
}
comparisons! {
    eq Equals "=="; ne Equals "!="; lt Ordered "<"; le Ordered "<="; gt Ordered ">"; ge Ordered ">=";
}

/// What `&&` and `||` take.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a truth value",
    label = "both sides are truth values",
    note = "of a number write a comparison: `x[i] != 0.0`"
)]
pub trait Truth {
    /// The value.
    fn truth(self) -> Value;
}

impl Truth for Val<bool> {
    fn truth(self) -> Value {
        self.ssa()
    }
}

macro_rules! joined {
    ($($name:ident $op:ident $what:literal;)*) => {$(
        #[doc = concat!("`a ", $what, " b`, where both may be evaluated.")]
        pub fn $name<A: Truth, B: Truth>((a, b): (A, B)) -> Val<bool> {
            let (a, b) = (a.truth(), b.truth());
            Val::of(with(|k| KernelBuilder::$op(&mut k.builder, a, b)))
        }
    )*};
}
joined! { both and "&&"; either or "||"; }

/// What `&&` and `||` give where one side decides.
pub fn known(value: bool) -> Val<bool> {
    Val::of(with(|k| k.builder.constant(Const::from(value))))
}
