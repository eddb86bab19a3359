//! Comparisons, and truth values that stand for themselves: in a kernel they have operators.

use invar_ir::{Const, KernelBuilder};

use super::define::with;
use super::value::{Number, Scalar, Val};

macro_rules! comparisons {
    ($($name:ident $bound:ident $op:literal;)*) => {$(
        #[doc = concat!("`a ", $op, " b`.")]
        pub fn $name<T: $bound>(a: Val<T>, b: Val<T>) -> Val<bool> {
            Val::of(with(|k| KernelBuilder::$name(&mut k.builder, a.value, b.value)))
        }
    )*};
}
comparisons! {
    eq Scalar "=="; ne Scalar "!="; lt Number "<"; le Number "<="; gt Number ">"; ge Number ">=";
}

/// What `&&` and `||` give where one side decides.
pub fn known(value: bool) -> Val<bool> {
    Val::of(with(|k| k.builder.constant(Const::from(value))))
}
