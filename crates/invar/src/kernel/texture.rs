//! Textures of a kernel, which it reads and writes by coordinates and samples between texels.
//!
//! What a kernel may do with one follows from what it does, as for buffers: of `&Texture2d<T>` it reads or samples,
//! of `&mut Texture2d<T>` it writes, or reads and writes.
//!
//! Deliberately absent: levels, cubes, depths, several samples, and samplers of the launch.

use std::marker::PhantomData;

use invar_ir::texture::{Dimension, Sampler, TextureAccess, TextureType};
use invar_ir::{KernelBuilder, Memory, Value};

use super::data::{Number, Single, Stored, Val};
use super::define::{Place4, at, with};
use super::numbers::scalar_of;
use super::value::{Index, IntoVal};
use crate::{Device, Error, Texture};

/// What the components of a texel are.
#[diagnostic::on_unimplemented(
    message = "a texture has no components of `{Self}`",
    note = "they are `f32` of formats such as `Rgba8Unorm`, and `u32` or `i32` of formats of integers"
)]
pub trait Component: Number + Stored {}

impl Component for f32 {}
impl Component for i32 {}
impl Component for u32 {}

/// A texture, as a parameter, before what is done with it is known.
fn parameter<T: Component>(name: &str, dimension: Dimension, place: Place4) -> Memory {
    at(place, ());
    let ty = TextureType::new(dimension, scalar_of::<T>(), TextureAccess::Read);
    with(|k| k.builder.texture(name, ty))
}

/// Adds a function that reads a texture, or asks for its size.
fn given<T: Single>(
    texture: Memory,
    call: impl FnOnce(&mut KernelBuilder) -> Value,
    reads: bool,
) -> Val<T> {
    Val::of(with(|k| {
        k.uses(texture, reads, false);
        call(&mut k.builder)
    }))
}

macro_rules! textures {
    ($(
        $name:ident $written:ident $parameter:ident $parameter_written:ident $dimension:ident
        ($($at:ident),*) ($($between:ident: $place:ty => $coordinate:ident),*) ($($extent:ident $function:ident $what:literal),*)
        $shape:literal;
    )*) => {$(
        textures!(@type $name $dimension ($($at),*) ($($extent $function $what),*)
            concat!("`&", stringify!($name), "<T>`: ", $shape, ", which the kernel reads or samples."));
        textures!(@type $written $dimension ($($at),*) ($($extent $function $what),*)
            concat!("`&mut ", stringify!($name), "<T>`: ", $shape, ", which the kernel reads and writes."));

        impl<T: Component> $name<T> {
            /// A sample: of coordinates between texels, of an array with the number of its element.
            pub fn sample(self, $($between: $place,)* how: Sampler) -> Val<[T; 4]> {
                let at = [$($between.$coordinate()),*];
                with(|k| k.samples(self.memory));
                given(self.memory, |k| k.texture_sample(self.memory, how.into(), &at), true)
            }
        }

        impl<T: Component> $written<T> {
            /// Writes the texel at integer coordinates, beyond the edges nothing.
            pub fn write(self, $($at: impl Index,)* value: Val<[T; 4]>) {
                let at = [$($at.index()),*];
                with(|k| {
                    k.uses(self.memory, false, true);
                    k.builder.texture_write(self.memory, &at, value.ssa());
                });
            }
        }

        #[doc = concat!("A parameter `&", stringify!($name), "<T>`.")]
        pub fn $parameter<T: Component>(name: &str, place: Place4) -> $name<T> {
            $name { memory: parameter::<T>(name, Dimension::$dimension, place), component: PhantomData }
        }

        #[doc = concat!("A parameter `&mut ", stringify!($name), "<T>`.")]
        pub fn $parameter_written<T: Component>(name: &str, place: Place4) -> $written<T> {
            $written { memory: parameter::<T>(name, Dimension::$dimension, place), component: PhantomData }
        }
    )*};
    (@type $name:ident $dimension:ident ($($at:ident),*) ($($extent:ident $function:ident $what:literal),*) $doc:expr) => {
        #[doc = $doc]
        pub struct $name<T> {
            memory: Memory,
            component: PhantomData<T>,
        }

        impl<T> Clone for $name<T> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<T> Copy for $name<T> {}

        impl<T: Component> IntoVal for $name<T> {
            type Val = Self;

            fn into_val(self) -> Self {
                self
            }
        }

        impl<T: Component> $name<T> {
            /// The texel at integer coordinates: four components, beyond the edges zeros.
            pub fn read(self, $($at: impl Index),*) -> Val<[T; 4]> {
                let at = [$($at.index()),*];
                given(self.memory, |k| k.texture_read(self.memory, &at), true)
            }

            $(
                #[doc = $what]
                pub fn $extent(self) -> Val<u32> {
                    given(self.memory, |k| k.$function(self.memory), false)
                }
            )*
        }
    };
}
textures! {
    Texture1d Texture1dMut texture1d texture1d_mut D1 (x) (u: Val<f32> => ssa)
        (width texture_width "How many texels it has.")
        "a row of texels";
    Texture2d Texture2dMut texture2d texture2d_mut D2 (x, y) (u: Val<f32> => ssa, v: Val<f32> => ssa)
        (width texture_width "How many texels a row has.", height texture_height "How many rows it has.")
        "rows and columns of texels";
    Texture2dArray Texture2dArrayMut texture2d_array texture2d_array_mut D2Array
        (x, y, element) (u: Val<f32> => ssa, v: Val<f32> => ssa, element: impl Index => index)
        (width texture_width "How many texels a row has.", height texture_height "How many rows an element has.",
            array_size texture_array_size "How many elements it has.")
        "elements of rows and columns of texels";
    Texture3d Texture3dMut texture3d texture3d_mut D3
        (x, y, z) (u: Val<f32> => ssa, v: Val<f32> => ssa, w: Val<f32> => ssa)
        (width texture_width "How many texels a row has.", height texture_height "How many rows a slice has.",
            depth texture_depth "How many slices it has.")
        "slices of rows and columns of texels";
}

macro_rules! gathers {
    ($($name:ident ($($between:ident: $place:ty => $coordinate:ident),*);)*) => {$(
        impl<T: Component> $name<T> {
            /// A component, 0 to 3, of the four texels that a linear sample is made of: those at the lower left,
            /// the lower right, the upper right and the upper left.
            pub fn gather<const COMPONENT: u8>(self, $($between: $place,)* how: Sampler) -> Val<[T; 4]> {
                let at = [$($between.$coordinate()),*];
                with(|k| k.samples(self.memory));
                let gather = |k: &mut KernelBuilder| {
                    k.texture_gather(self.memory, COMPONENT, how.into(), &at)
                };
                given(self.memory, gather, true)
            }
        }
    )*};
}
gathers! {
    Texture2d (u: Val<f32> => ssa, v: Val<f32> => ssa);
    Texture2dArray (u: Val<f32> => ssa, v: Val<f32> => ssa, element: impl Index => index);
}

/// A texture of a device's own, as a texture of the host is: what `check` runs on.
///
/// # Errors
/// `out-of-memory`, and a failure of the texture's device.
pub fn lend_texture(device: &Device, texture: &Texture) -> Result<Texture, Error> {
    let copy = Texture::of_shape(device, texture.shape())?;
    copy.write(&texture.read()?)?;
    Ok(copy)
}
