//! Comparisons, and truth values that stand for themselves: in a kernel they have operators.

use invar_ir::{Const, KernelBuilder};

use super::data::{Lanes, Numbers, Val};
use super::define::with;

macro_rules! comparisons {
    ($($name:ident $bound:ident $op:literal;)*) => {$(
        #[doc = concat!("`a ", $op, " b`.")]
        pub fn $name<T: $bound>(a: Val<T>, b: Val<T>) -> Val<T::Mask> {
            Val::of(with(|k| KernelBuilder::$name(&mut k.builder, a.ssa(), b.ssa())))
        }
    )*};
}
comparisons! {
    eq Lanes "=="; ne Lanes "!="; lt Numbers "<"; le Numbers "<="; gt Numbers ">"; ge Numbers ">=";
}

/// What `&&` and `||` give where one side decides.
pub fn known(value: bool) -> Val<bool> {
    Val::of(with(|k| k.builder.constant(Const::from(value))))
}
