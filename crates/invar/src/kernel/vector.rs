//! Components of vectors, and what is computed with vectors and matrices.

use std::ops;

use invar_ir::{KernelBuilder, Swizzle};

use super::data::{Elements, Float, Floats, Lanes, Scalar, Single, Stored, Val};
use super::define::with;
use super::memory::{Components, numbers_of, set_part};
use super::value::{Cast, Times};

/// A vector of floats.
#[diagnostic::on_unimplemented(message = "`{Self}` is not a vector of floats")]
pub trait FloatVector: Floats {}

impl<T: Float> FloatVector for [T; 2] {}
impl<T: Float> FloatVector for [T; 3] {}
impl<T: Float> FloatVector for [T; 4] {}

/// A vector of truth values.
#[diagnostic::on_unimplemented(message = "`{Self}` is not a vector of truth values")]
pub trait Mask: Single {}

impl Mask for [bool; 2] {}
impl Mask for [bool; 3] {}
impl Mask for [bool; 4] {}

macro_rules! extend {
    ($($n:literal to $more:literal;)*) => {$(
        impl<T: Scalar> Val<[T; $n]> {
            /// The vector with one more component.
            pub fn extend(self, last: Val<T>) -> Val<[T; $more]> {
                let parts = [self.ssa(), last.ssa()];
                Val::of(with(|k| k.builder.construct(<[T; $more]>::ty(), &parts)))
            }
        }
    )*};
}
extend! { 2 to 3; 3 to 4; }

macro_rules! components {
    ($($n:literal: $($name:ident $set:ident $number:literal)*;)*) => {$(
        impl<T: Scalar> Val<[T; $n]> {$(
            /// A component: in a kernel written without parentheses.
            pub fn $name(self) -> Val<T> {
                self.component($number)
            }

            /// Replaces a component: in a kernel `v.x = value`.
            pub fn $set(&mut self, value: Val<T>) {
                let old = self.ssa();
                *self = Val::of(with(|k| {
                    let number = k.builder.const_u32($number);
                    k.builder.insert(old, number, value.ssa())
                }));
            }
        )*}
    )*};
}
components! {
    2: x set_x 0 y set_y 1;
    3: x set_x 0 y set_y 1 z set_z 2;
    4: x set_x 0 y set_y 1 z set_z 2 w set_w 3;
}

impl<T: Scalar, const N: usize> Val<[T; N]> {
    fn component(self, number: u8) -> Val<T> {
        let one = Swizzle::new(&[number]).expect("vectors have at most 4 components");
        Val::of(with(|k| k.builder.swizzle(self.ssa(), one)))
    }

    fn components<const M: usize>(self, name: &str) -> Val<[T; M]> {
        let named = Swizzle::parse(name).expect("a method's name is made of components");
        Val::of(with(|k| k.builder.swizzle(self.ssa(), named)))
    }

    fn set_components<const M: usize>(&mut self, name: &str, value: Val<[T; M]>) {
        let (mut whole, value) = (self.ssa(), value.ssa());
        for (part, number) in (0..).zip(numbers_of(name)) {
            let one = Swizzle::new(&[part]).expect("vectors have at most 4 components");
            whole = with(|k| {
                let (part, number) = (k.builder.swizzle(value, one), k.builder.const_u32(number));
                k.builder.insert(whole, number, part)
            });
        }
        *self = Val::of(whole);
    }
}

macro_rules! swizzles {
    ($($n:literal: $($m:literal: $($name:ident $set:ident)*),*;)*) => {$($(
        impl<T: Scalar> Val<[T; $n]> {$(
            #[doc = "Components in the order of the name: in a kernel written without parentheses."]
            pub fn $name(self) -> Val<[T; $m]> {
                self.components(stringify!($name))
            }

            #[doc = "Replaces components in the order of the name: in a kernel by `=`."]
            pub fn $set(&mut self, value: Val<[T; $m]>) {
                self.set_components(stringify!($name), value);
            }
        )*}

        impl<T: Scalar> Elements<T, $n> {$(
            #[doc = "Components where they lie, in the order of the name."]
            pub fn $name(&self) -> Components<T, $m> {
                Components::of(self.0, stringify!($name))
            }
        )*}
    )*)*};
}
swizzles! {
    2: 2: xy set_xy yx set_yx;
    3: 2: xy set_xy xz set_xz yx set_yx yz set_yz zx set_zx zy set_zy,
       3: xyz set_xyz xzy set_xzy yxz set_yxz yzx set_yzx zxy set_zxy zyx set_zyx;
    4: 2: xy set_xy xz set_xz xw set_xw yx set_yx yz set_yz yw set_yw zx set_zx zy set_zy zw set_zw wx set_wx
          wy set_wy wz set_wz,
       3: xyz set_xyz xyw set_xyw xzy set_xzy xzw set_xzw xwy set_xwy xwz set_xwz yxz set_yxz yxw set_yxw yzx
          set_yzx yzw set_yzw ywx set_ywx ywz set_ywz zxy set_zxy zxw set_zxw zyx set_zyx zyw set_zyw zwx
          set_zwx zwy set_zwy wxy set_wxy wxz set_wxz wyx set_wyx wyz set_wyz wzx set_wzx wzy set_wzy,
       4: xyzw set_xyzw xywz set_xywz xzyw set_xzyw xzwy set_xzwy xwyz set_xwyz xwzy set_xwzy yxzw set_yxzw
          yxwz set_yxwz yzxw set_yzxw yzwx set_yzwx ywxz set_ywxz ywzx set_ywzx zxyw set_zxyw zxwy set_zxwy
          zyxw set_zyxw zywx set_zywx zwxy set_zwxy zwyx set_zwyx wxyz set_wxyz wxzy set_wxzy wyxz set_wyxz
          wyzx set_wyzx wzxy set_wzxy wzyx set_wzyx;
}

macro_rules! of_vectors {
    ($($bound:ident { $($name:ident($first:ident $(, $arg:ident: $ty:ty)*) -> $result:ty;)*})*) => {
        #[cfg(test)]
        pub(super) const VECTORS: &[&str] = &[$($(stringify!($name)),*),*];

        $($(
            #[doc = concat!("`", stringify!($name), "` of the [table of operations]",
                "(invar_ir::KernelBuilder::", stringify!($name), ").")]
            pub fn $name<T: $bound>($first: Val<T> $(, $arg: Val<$ty>)*) -> Val<$result> {
                Val::of(with(|k| {
                    KernelBuilder::$name(&mut k.builder, $first.ssa() $(, $arg.ssa())*)
                }))
            }
        )*)*

        $(impl<T: $bound> Val<T> {$(
            #[doc = concat!("As the function [`", stringify!($name), "`].")]
            pub fn $name(self $(, $arg: Val<$ty>)*) -> Val<$result> {
                $name(self $(, $arg)*)
            }
        )*})*
    };
}
of_vectors! {
    FloatVector {
        dot(a, b: T) -> T::Scalar;
        length(x) -> T::Scalar;
        distance(a, b: T) -> T::Scalar;
        normalize(x) -> T;
        reflect(incident, normal: T) -> T;
        refract(incident, normal: T, eta: T::Scalar) -> T;
        faceforward(normal, incident: T, reference: T) -> T;
    }
    Mask {
        all(x) -> bool;
        any(x) -> bool;
    }
}

/// `cross` of the [table of operations](invar_ir::KernelBuilder::cross).
pub fn cross<T: Float>(a: Val<[T; 3]>, b: Val<[T; 3]>) -> Val<[T; 3]> {
    Val::of(with(|k| k.builder.cross(a.ssa(), b.ssa())))
}

impl<T: Float> Val<[T; 3]> {
    /// As the function [`cross`].
    pub fn cross(self, b: Val<[T; 3]>) -> Val<[T; 3]> {
        cross(self, b)
    }
}

/// `x` with the component or column at an index replaced; `x` itself if the index is out of bounds (B4).
pub fn insert<T: Stored, const N: usize>(
    mut x: Val<[T; N]>,
    index: Val<u32>,
    part: Val<T>,
) -> Val<[T; N]> {
    set_part(&mut x, index, part);
    x
}

/// The bits of a number or vector as another type of as many bits: `as_type::<u32>(x)`.
pub fn as_type<U: Lanes>(x: impl Cast) -> Val<U> {
    let x = x.operand();
    Val::of(with(|k| k.builder.as_type(x, U::ty())))
}

/// What a matrix is multiplied by, and a vector by a matrix.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not multiplied by `{B}`",
    note = "a matrix of C columns is multiplied by a vector of C, or by a matrix of C rows; by a number its columns \
            are, `[m[0] * s, m[1] * s]`"
)]
pub trait Multiply<B>: Single {
    /// What comes out.
    type Product: Single;
}

macro_rules! products {
    ($($c:literal)*) => {$(
        impl<T: Float, const R: usize> Multiply<[T; $c]> for [[T; R]; $c] {
            type Product = [T; R];
        }
    )*};
}
products!(2 3 4);

macro_rules! matrix_products {
    ($($c:literal: $($k:literal)*;)*) => {$($(
        impl<T: Float, const R: usize> Multiply<[[T; $c]; $k]> for [[T; R]; $c] {
            type Product = [[T; R]; $k];
        }
    )*)*};
}
matrix_products! { 2: 2 3 4; 3: 2 3 4; 4: 2 3 4; }

impl<T: Float, const R: usize, const C: usize> Multiply<[[T; R]; C]> for [T; R] {
    type Product = [T; C];
}

/// `a * b` of matrices, or of a matrix and a vector on either side.
pub fn matrix_multiply<A: Multiply<B>, B: Single>(a: Val<A>, b: Val<B>) -> Val<A::Product> {
    let (a, b) = (a.ssa(), b.ssa());
    Val::of(with(|k| k.builder.matrix_multiply(a, b)))
}

/// The matrix with rows and columns exchanged.
pub fn transpose<T: Float, const R: usize, const C: usize>(
    x: Val<[[T; R]; C]>,
) -> Val<[[T; C]; R]> {
    let x = x.ssa();
    Val::of(with(|k| k.builder.transpose(x)))
}

/// The determinant of a square matrix.
pub fn determinant<T: Float, const N: usize>(x: Val<[[T; N]; N]>) -> Val<T> {
    let x = x.ssa();
    Val::of(with(|k| k.builder.determinant(x)))
}

#[diagnostic::do_not_recommend]
impl<T: Float, B: Single, const R: usize, const C: usize> Times<B> for [[T; R]; C]
where
    [[T; R]; C]: Multiply<B>,
{
    type Product = <[[T; R]; C] as Multiply<B>>::Product;

    fn times(a: Val<[[T; R]; C]>, b: Val<B>) -> Val<Self::Product> {
        matrix_multiply(a, b)
    }
}

macro_rules! matrix_sums {
    ($($trait:ident $method:ident),*) => {$(
        impl<T: Float, const R: usize, const C: usize> ops::$trait for Val<[[T; R]; C]> {
            type Output = Val<[[T; R]; C]>;

            fn $method(self, other: Val<[[T; R]; C]>) -> Val<[[T; R]; C]> {
                let (a, b) = (self.ssa(), other.ssa());
                Val::of(with(|k| KernelBuilder::$method(&mut k.builder, a, b)))
            }
        }
    )*};
}
matrix_sums!(Add add, Sub sub);
