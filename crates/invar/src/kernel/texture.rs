//! Textures of a kernel, which it reads and writes by coordinates and samples between texels.
//!
//! What a kernel may do with one follows from what it does, as for buffers: of `&Texture2d<T>` it reads or samples,
//! of `&mut Texture2d<T>` it writes, or reads and writes. A sample is taken by a constant of Rust or by a parameter
//! `how: Sampler`.
//!
//! Deliberately absent: what the verifier refuses for all front ends, such as linear samples of integers.

use std::marker::PhantomData;

use invar_ir::texture::{
    Dimension, SamplerSource, Sampling, TextureAccess, TextureFunction, TextureType,
};
use invar_ir::{
    AtomicOp, ImageblockSlice, KernelBuilder, Memory, Order, Place, Scope, Step, Value, Width,
};

use super::data::{Number, Single, Stored, Val};
use super::define::{Place4, at, with};
use super::memory::InPlace;
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

/// What a texel of depths is.
#[diagnostic::on_unimplemented(message = "depths are `f32`, and not `{Self}`")]
pub trait DepthComponent: Component {}

impl DepthComponent for f32 {}

/// What texels hold that atomics act on.
#[diagnostic::on_unimplemented(
    message = "there are no atomics on texels of `{Self}`",
    note = "they act on `u32` and `i32`, of the formats `R32Uint` and `R32Sint`"
)]
pub trait AtomicComponent: Component {}

impl AtomicComponent for i32 {}
impl AtomicComponent for u32 {}

/// What takes samples: a sampler, and how many texels further.
pub trait Beside: Into<Sampling> {
    /// The same so many columns, rows and slices further: each from -8 to 7, and 0 for what a texture does not have.
    fn offset<const X: i8, const Y: i8, const Z: i8>(self) -> Sampling {
        Sampling {
            offset: [X, Y, Z],
            ..self.into()
        }
    }
}

impl<T: Into<Sampling>> Beside for T {}

impl IntoVal for SamplerSource {
    type Val = Self;

    fn into_val(self) -> Self {
        self
    }
}

impl IntoVal for Sampling {
    type Val = Self;

    fn into_val(self) -> Self {
        self
    }
}

/// A parameter `Sampler`: what each launch passes.
pub fn sampler(name: &str, place: Place4) -> Sampling {
    at(place, ());
    with(|k| k.builder.sampler(name)).into()
}

/// A texture, as a parameter, before what is done with it is known.
fn parameter<T: Component>(
    name: &str,
    (dimension, is_depth): (Dimension, bool),
    place: Place4,
) -> Memory {
    at(place, ());
    let ty = TextureType {
        is_depth,
        ..TextureType::new(dimension, scalar_of::<T>(), TextureAccess::Read)
    };
    with(|k| k.builder.texture(name, ty))
}

/// Adds a function that reads a texture, or asks for its size, of coordinates and what stands behind them.
fn given<T: Single>(texture: Memory, function: TextureFunction, args: &[Value]) -> Val<T> {
    Val::of(with(|k| {
        k.uses(texture, !function.is_query(), false);
        if function.samples() {
            k.samples(texture);
        }
        called(&mut k.builder, texture, function, args)
    }))
}

fn called(
    builder: &mut KernelBuilder,
    texture: Memory,
    function: TextureFunction,
    args: &[Value],
) -> Value {
    let result = builder.texture_function(texture, function, args);
    result.unwrap_or_else(|| unreachable!("only writes and fences give nothing"))
}

/// Adds a write of a texel, whose value is the last of the arguments.
fn written(texture: Memory, args: &[Value]) {
    with(|k| {
        k.uses(texture, false, true);
        k.builder
            .texture_function(texture, TextureFunction::Write, args);
    });
}

/// Adds an atomic on the first component of a texel.
fn atomic(texture: Memory, op: AtomicOp, at: &[Value], args: &[Value]) -> Vec<Value> {
    let place = Place {
        memory: texture,
        index: at[0],
        width: Width::One,
        path: at[1..].iter().map(|value| Step::Index(*value)).collect(),
    };
    with(|k| {
        k.uses(texture, true, true);
        let (order, scope) = (Order::Relaxed, Scope::Device);
        k.builder.atomic(op, place, args, order, scope).to_vec()
    })
}

/// The types of textures that are read or sampled, and their parameters.
macro_rules! textures {
    ($(
        $name:ident $parameter:ident $dimension:ident $is_depth:literal $component:ident $texel:ty: ($($at:ident),*)
        ($($extent:ident $function:ident $what:literal),*) $shape:literal;
    )*) => {$(
        textures!(@type $name $component $texel: ($($at),*) ($($extent $function $what),*)
            concat!("`&", stringify!($name), "<T>`: ", $shape, ", which the kernel reads or samples."));

        #[doc = concat!("A parameter `&", stringify!($name), "<T>`.")]
        pub fn $parameter<T: $component>(name: &str, place: Place4) -> $name<T> {
            let arrangement = (Dimension::$dimension, $is_depth);
            $name { memory: parameter::<T>(name, arrangement, place), component: PhantomData }
        }
    )*};
    (@type $name:ident $component:ident $texel:ty: ($($at:ident),*)
        ($($extent:ident $function:ident $what:literal),*) $doc:expr) => {
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

        impl<T: $component> IntoVal for $name<T> {
            type Val = Self;

            fn into_val(self) -> Self {
                self
            }
        }

        impl<T: $component> $name<T> {
            /// The texel at integer coordinates, beyond the edges zeros.
            pub fn read(self, $($at: impl Index),*) -> Val<$texel> {
                given(self.memory, TextureFunction::Read, &[$($at.index()),*])
            }

            $(
                #[doc = $what]
                pub fn $extent(self) -> Val<u32> {
                    given(self.memory, TextureFunction::$function, &[])
                }
            )*
        }
    };
}
textures! {
    Texture1d texture1d D1 false Component [T; 4]: (x)
        (width Width "How many texels it has.")
        "a row of texels";
    Texture1dArray texture1d_array D1Array false Component [T; 4]: (x, element)
        (width Width "How many texels a row has.", array_size ArraySize "How many elements it has.")
        "elements of one row of texels";
    Texture2d texture2d D2 false Component [T; 4]: (x, y)
        (width Width "How many texels a row has.", height Height "How many rows it has.",
            levels Levels "How many levels it has.")
        "rows and columns of texels";
    Texture2dArray texture2d_array D2Array false Component [T; 4]: (x, y, element)
        (width Width "How many texels a row has.", height Height "How many rows an element has.",
            levels Levels "How many levels it has.", array_size ArraySize "How many elements it has.")
        "elements of rows and columns of texels";
    Texture3d texture3d D3 false Component [T; 4]: (x, y, z)
        (width Width "How many texels a row has.", height Height "How many rows a slice has.",
            levels Levels "How many levels it has.", depth Depth "How many slices it has.")
        "slices of rows and columns of texels";
    TextureCube texture_cube Cube false Component [T; 4]: (x, y, face)
        (width Width "How many texels a row has.", height Height "How many rows a face has.",
            levels Levels "How many levels it has.")
        "the six faces of a cube";
    TextureCubeArray texture_cube_array CubeArray false Component [T; 4]: (x, y, face, element)
        (width Width "How many texels a row has.", height Height "How many rows a face has.",
            levels Levels "How many levels it has.", array_size ArraySize "How many elements it has.")
        "elements of six faces of a cube";
    Texture2dMs texture2d_ms D2Ms false Component [T; 4]: (x, y, sample)
        (width Width "How many texels a row has.", height Height "How many rows it has.",
            samples Samples "How many samples a texel has.")
        "rows and columns of texels of several samples";
    Texture2dMsArray texture2d_ms_array D2MsArray false Component [T; 4]: (x, y, sample, element)
        (width Width "How many texels a row has.", height Height "How many rows an element has.",
            samples Samples "How many samples a texel has.", array_size ArraySize "How many elements it has.")
        "elements of texels of several samples";
    TextureBuffer texture_buffer Buffer false Component [T; 4]: (x)
        (width Width "How many texels it has.")
        "a row of texels that may be long, and is not sampled";
    Depth2d depth2d D2 true DepthComponent T: (x, y)
        (width Width "How many texels a row has.", height Height "How many rows it has.",
            levels Levels "How many levels it has.")
        "rows and columns of depths";
    Depth2dArray depth2d_array D2Array true DepthComponent T: (x, y, element)
        (width Width "How many texels a row has.", height Height "How many rows an element has.",
            levels Levels "How many levels it has.", array_size ArraySize "How many elements it has.")
        "elements of rows and columns of depths";
    DepthCube depth_cube Cube true DepthComponent T: (x, y, face)
        (width Width "How many texels a row has.", height Height "How many rows a face has.",
            levels Levels "How many levels it has.")
        "depths on the six faces of a cube";
    DepthCubeArray depth_cube_array CubeArray true DepthComponent T: (x, y, face, element)
        (width Width "How many texels a row has.", height Height "How many rows a face has.",
            levels Levels "How many levels it has.", array_size ArraySize "How many elements it has.")
        "elements of depths on the six faces of a cube";
}

/// Those of them that are written: the types behind `&mut`.
macro_rules! written {
    ($($read:ident $name:ident $parameter:ident $dimension:ident ($($at:ident),*)
        ($($extent:ident $function:ident $what:literal),*);)*) => {$(
        textures!(@type $name Component [T; 4]: ($($at),*) ($($extent $function $what),*)
            concat!("`&mut ", stringify!($read), "<T>`: a texture that the kernel reads and writes."));

        #[doc = concat!("A parameter `&mut ", stringify!($read), "<T>`.")]
        pub fn $parameter<T: Component>(name: &str, place: Place4) -> $name<T> {
            let arrangement = (Dimension::$dimension, false);
            $name { memory: parameter::<T>(name, arrangement, place), component: PhantomData }
        }

        impl<T: Component> $name<T> {
            /// Writes the texel at integer coordinates, beyond the edges nothing.
            pub fn write(self, $($at: impl Index,)* value: Val<[T; 4]>) {
                written(self.memory, &[$($at.index(),)* value.ssa()]);
            }

            /// Does nothing: a thread's reads see what it wrote.
            pub fn fence(self) {
                with(|k| k.builder.texture_function(self.memory, TextureFunction::Fence, &[]));
            }
        }
    )*};
}
written! {
    Texture1d Texture1dMut texture1d_mut D1 (x)
        (width Width "How many texels it has.");
    Texture1dArray Texture1dArrayMut texture1d_array_mut D1Array (x, element)
        (width Width "How many texels a row has.", array_size ArraySize "How many elements it has.");
    Texture2d Texture2dMut texture2d_mut D2 (x, y)
        (width Width "How many texels a row has.", height Height "How many rows it has.",
            levels Levels "How many levels it has.");
    Texture2dArray Texture2dArrayMut texture2d_array_mut D2Array (x, y, element)
        (width Width "How many texels a row has.", height Height "How many rows an element has.",
            levels Levels "How many levels it has.", array_size ArraySize "How many elements it has.");
    Texture3d Texture3dMut texture3d_mut D3 (x, y, z)
        (width Width "How many texels a row has.", height Height "How many rows a slice has.",
            levels Levels "How many levels it has.", depth Depth "How many slices it has.");
    TextureCube TextureCubeMut texture_cube_mut Cube (x, y, face)
        (width Width "How many texels a row has.", height Height "How many rows a face has.",
            levels Levels "How many levels it has.");
    TextureCubeArray TextureCubeArrayMut texture_cube_array_mut CubeArray (x, y, face, element)
        (width Width "How many texels a row has.", height Height "How many rows a face has.",
            levels Levels "How many levels it has.", array_size ArraySize "How many elements it has.");
    TextureBuffer TextureBufferMut texture_buffer_mut Buffer (x)
        (width Width "How many texels it has.");
}

/// Atomics on the first component of a texel, relaxed and of the whole device.
macro_rules! atomics {
    ($($name:ident $at:tt;)*) => {$(
        atomics!(@of $name $at
            atomic_exchange Exchange "Replaces what a texel holds",
            atomic_add Add "Adds to what a texel holds",
            atomic_sub Sub "Subtracts from what a texel holds",
            atomic_min Min "Leaves the smaller of it and what a texel holds",
            atomic_max Max "Leaves the larger of it and what a texel holds",
            atomic_and And "Combines it with what a texel holds by and",
            atomic_or Or "Combines it with what a texel holds by or",
            atomic_xor Xor "Combines it with what a texel holds by exclusive or");
    )*};
    (@of $name:ident ($($at:ident),*) $($function:ident $op:ident $what:literal),*) => {
        impl<T: AtomicComponent> $name<T> {
            /// The first component of a texel, read atomically.
            pub fn atomic_load(self, $($at: impl Index),*) -> Val<T> {
                Val::of(atomic(self.memory, AtomicOp::Load, &[$($at.index()),*], &[])[0])
            }

            /// Writes the first component of a texel atomically.
            pub fn atomic_store(self, $($at: impl Index,)* value: Val<T>) {
                atomic(self.memory, AtomicOp::Store, &[$($at.index()),*], &[value.ssa()]);
            }

            /// Puts `new` in the place if `expected` is there; gives what was there, and whether.
            pub fn atomic_compare_exchange(
                self,
                $($at: impl Index,)*
                expected: Val<T>,
                new: Val<T>,
            ) -> (Val<T>, Val<bool>) {
                let args = [expected.ssa(), new.ssa()];
                let found = atomic(self.memory, AtomicOp::CompareExchange, &[$($at.index()),*], &args);
                (Val::of(found[0]), Val::of(found[1]))
            }
        }

        atomics!(@each $name ($($at),*) [$($function $op $what),*]);
    };
    (@each $name:ident $at:tt [$($function:ident $op:ident $what:literal),*]) => {
        $(atomics!(@one $name $at $function $op $what);)*
    };
    (@one $name:ident ($($at:ident),*) $function:ident $op:ident $what:literal) => {
        impl<T: AtomicComponent> $name<T> {
            #[doc = concat!($what, ", atomically; gives what was there.")]
            pub fn $function(self, $($at: impl Index,)* value: Val<T>) -> Val<T> {
                Val::of(atomic(self.memory, AtomicOp::$op, &[$($at.index()),*], &[value.ssa()])[0])
            }
        }
    };
}
atomics! {
    Texture1dMut (x);
    Texture1dArrayMut (x, element);
    Texture2dMut (x, y);
    Texture2dArrayMut (x, y, element);
    Texture3dMut (x, y, z);
    TextureBufferMut (x);
}

/// Texels and sizes of levels.
macro_rules! levels {
    ($($name:ident $component:ident $texel:ty: ($($at:ident),*);)*) => {$(
        impl<T: $component> $name<T> {
            /// The texel at integer coordinates of a level; of one that there is not, zeros.
            pub fn read_level(self, $($at: impl Index,)* level: impl Index) -> Val<$texel> {
                given(self.memory, TextureFunction::Read, &[$($at.index(),)* level.index()])
            }

            /// How many texels a row of a level has; of one that there is not, 0.
            pub fn level_width(self, level: impl Index) -> Val<u32> {
                given(self.memory, TextureFunction::Width, &[level.index()])
            }

            /// How many rows a level has; one that there is not, 0.
            pub fn level_height(self, level: impl Index) -> Val<u32> {
                given(self.memory, TextureFunction::Height, &[level.index()])
            }
        }
    )*};
    (written $($name:ident ($($at:ident),*);)*) => {$(
        impl<T: Component> $name<T> {
            /// Writes the texel at integer coordinates of a level; of one that there is not, nothing.
            pub fn write_level(self, $($at: impl Index,)* level: impl Index, value: Val<[T; 4]>) {
                written(self.memory, &[$($at.index(),)* level.index(), value.ssa()]);
            }
        }
    )*};
}
levels! {
    Texture2d Component [T; 4]: (x, y);
    Texture2dMut Component [T; 4]: (x, y);
    Texture2dArray Component [T; 4]: (x, y, element);
    Texture2dArrayMut Component [T; 4]: (x, y, element);
    Texture3d Component [T; 4]: (x, y, z);
    Texture3dMut Component [T; 4]: (x, y, z);
    TextureCube Component [T; 4]: (x, y, face);
    TextureCubeMut Component [T; 4]: (x, y, face);
    TextureCubeArray Component [T; 4]: (x, y, face, element);
    TextureCubeArrayMut Component [T; 4]: (x, y, face, element);
    Depth2d DepthComponent T: (x, y);
    Depth2dArray DepthComponent T: (x, y, element);
    DepthCube DepthComponent T: (x, y, face);
    DepthCubeArray DepthComponent T: (x, y, face, element);
}
levels! {
    written
    Texture2dMut (x, y);
    Texture2dArrayMut (x, y, element);
    Texture3dMut (x, y, z);
    TextureCubeMut (x, y, face);
    TextureCubeArrayMut (x, y, face, element);
}

/// Slices of levels.
macro_rules! depths {
    ($($name:ident)*) => {$(
        impl<T: Component> $name<T> {
            /// How many slices a level has; one that there is not, 0.
            pub fn level_depth(self, level: impl Index) -> Val<u32> {
                given(self.memory, TextureFunction::Depth, &[level.index()])
            }
        }
    )*};
}
depths! { Texture3d Texture3dMut }

/// Slices of imageblocks.
macro_rules! slices {
    ($($name:ident ($($at:ident),*);)*) => {$(
        impl<T: Component> $name<T> {
            /// Copies a field of all elements of an imageblock, from the texel at integer coordinates on, by the
            /// thread that comes here: `texture.write_slice(x, y, &block[0].colour)`.
            pub fn write_slice(self, $($at: impl Index,)* slice: impl InPlace) {
                write_slice(self.memory, &[$($at.index(),)*], slice.place(), None);
            }

            /// The same of a rectangle of elements: from the element at a column and a row on, so many columns
            /// and rows.
            #[expect(clippy::too_many_arguments, reason = "two places and a size, each a few numbers")]
            pub fn write_slice_part(
                self,
                $($at: impl Index,)*
                slice: impl InPlace,
                left: Val<u32>,
                top: Val<u32>,
                width: Val<u32>,
                height: Val<u32>,
            ) {
                let region = [[left, top], [width, height]].map(|pair| pair.map(Val::ssa));
                write_slice(self.memory, &[$($at.index(),)*], slice.place(), Some(region));
            }
        }
    )*};
}
slices! {
    Texture2dMut (x, y);
    Texture2dArrayMut (x, y, element);
}

fn write_slice(texture: Memory, at: &[Value], field: Place, region: Option<[[Value; 2]; 2]>) {
    with(|k| {
        k.uses(texture, false, true);
        let slice = ImageblockSlice {
            memory: field.memory,
            path: field.path,
            region,
        };
        k.builder.texture_write_slice(texture, at, &slice);
    });
}

/// Samples: of the first level, of levels, of the level that gradients lead to, and the texels around.
macro_rules! samples {
    (@sample $name:ident $component:ident $texel:ty: ($($between:ident: $place:ty => $coordinate:ident),*)) => {
        impl<T: $component> $name<T> {
            /// A sample: of coordinates between texels, or of a cube in a direction; of an array with the number of its
            /// element.
            pub fn sample(self, $($between: $place,)* how: impl Into<Sampling>) -> Val<$texel> {
                given(self.memory, TextureFunction::Sample(how.into()), &[$($between.$coordinate()),*])
            }
        }
    };
    (@level $name:ident $component:ident $texel:ty: ($($between:ident: $place:ty => $coordinate:ident),*)) => {
        impl<T: $component> $name<T> {
            /// A sample of a level, which may lie between two.
            pub fn sample_level(
                self,
                $($between: $place,)*
                level: Val<f32>,
                how: impl Into<Sampling>,
            ) -> Val<$texel> {
                let args = [$($between.$coordinate(),)* level.ssa()];
                given(self.memory, TextureFunction::Sample(how.into()), &args)
            }
        }
    };
    (@gradient $name:ident $component:ident $texel:ty: ($($between:ident: $place:ty => $coordinate:ident),*)) => {
        samples!(@gradients 2 (x y) $name $component $texel: ($($between: $place => $coordinate),*));
    };
    (@gradient3 $name:ident $component:ident $texel:ty: ($($between:ident: $place:ty => $coordinate:ident),*)) => {
        samples!(@gradients 3 (x y z) $name $component $texel: ($($between: $place => $coordinate),*));
    };
    (@gradients $count:literal ($($part:ident)*)
        $name:ident $component:ident $texel:ty: ($($between:ident: $place:ty => $coordinate:ident),*)) => {
        impl<T: $component> $name<T> {
            /// A sample of the level whose texels are as far apart as samples are: `across` is how much the
            /// coordinates, or a cube's direction, change from one to its neighbour, and `down` to that on the other
            /// side.
            #[allow(
                clippy::too_many_arguments,
                reason = "a direction has three coordinates, and an array one more"
            )]
            pub fn sample_gradient(
                self,
                $($between: $place,)*
                across: Val<[f32; $count]>,
                down: Val<[f32; $count]>,
                how: impl Into<Sampling>,
            ) -> Val<$texel> {
                let [across, down] = [across, down].map(|d| [$(d.$part().ssa()),*]);
                let mut args = vec![$($between.$coordinate()),*];
                let at = &args[..$count];
                let level =
                    with(|k| k.builder.texture_gradient_level(self.memory, at, &across, &down));
                args.push(level);
                given(self.memory, TextureFunction::Sample(how.into()), &args)
            }
        }
    };
    (@gather $name:ident $component:ident $texel:ty: ($($between:ident: $place:ty => $coordinate:ident),*)) => {
        impl<T: $component> $name<T> {
            /// A component, 0 to 3, of the four texels that a linear sample is made of: those at the lower left,
            /// the lower right, the upper right and the upper left.
            pub fn gather<const COMPONENT: u8>(
                self,
                $($between: $place,)*
                how: impl Into<Sampling>,
            ) -> Val<[T; 4]> {
                const { assert!(COMPONENT < 4, "a texel has the components 0 to 3") };
                let (component, sampling) = (COMPONENT, how.into());
                let function = TextureFunction::Gather { component, sampling };
                given(self.memory, function, &[$($between.$coordinate()),*])
            }
        }
    };
    (@gather_depths $name:ident $component:ident $texel:ty: ($($between:ident: $place:ty => $coordinate:ident),*)) => {
        impl<T: $component> $name<T> {
            /// The four depths that a linear sample is made of: those at the lower left, the lower right, the upper
            /// right and the upper left.
            pub fn gather(self, $($between: $place,)* how: impl Into<Sampling>) -> Val<[T; 4]> {
                let sampling = how.into();
                let function = TextureFunction::Gather { component: 0, sampling };
                given(self.memory, function, &[$($between.$coordinate()),*])
            }

            /// 1 or 0 for each of those: whether the comparison of the reference with it holds.
            pub fn gather_compare(
                self,
                $($between: $place,)*
                reference: Val<f32>,
                how: impl Into<Sampling>,
            ) -> Val<[T; 4]> {
                let args = [$($between.$coordinate(),)* reference.ssa()];
                given(self.memory, TextureFunction::GatherCompare(how.into()), &args)
            }
        }
    };
    (@compare $name:ident $component:ident $texel:ty: ($($between:ident: $place:ty => $coordinate:ident),*)) => {
        impl<T: $component> $name<T> {
            /// How much of a sample is of depths with which the comparison of the reference holds, from 0 to 1.
            pub fn sample_compare(
                self,
                $($between: $place,)*
                reference: Val<f32>,
                how: impl Into<Sampling>,
            ) -> Val<T> {
                let args = [$($between.$coordinate(),)* reference.ssa()];
                given(self.memory, TextureFunction::SampleCompare(how.into()), &args)
            }

            /// The same of a level, which may lie between two.
            #[allow(
                clippy::too_many_arguments,
                reason = "a direction has three coordinates, and an array one more"
            )]
            pub fn sample_compare_level(
                self,
                $($between: $place,)*
                level: Val<f32>,
                reference: Val<f32>,
                how: impl Into<Sampling>,
            ) -> Val<T> {
                let args = [$($between.$coordinate(),)* level.ssa(), reference.ssa()];
                given(self.memory, TextureFunction::SampleCompare(how.into()), &args)
            }
        }
    };
    ($($name:ident $component:ident $texel:ty: $between:tt $($kind:ident)*;)*) => {
        $(samples!(@all $name $component [$texel] $between [$($kind)*]);)*
    };
    (@all $name:ident $component:ident [$texel:ty] $between:tt [$($kind:ident)*]) => {
        $(samples!(@$kind $name $component $texel: $between);)*
    };
}
samples! {
    Texture1d Component [T; 4]: (u: Val<f32> => ssa) sample;
    Texture1dArray Component [T; 4]: (u: Val<f32> => ssa, element: impl Index => index) sample;
    Texture2d Component [T; 4]: (u: Val<f32> => ssa, v: Val<f32> => ssa) sample level gradient gather;
    Texture2dArray Component [T; 4]: (u: Val<f32> => ssa, v: Val<f32> => ssa, element: impl Index => index)
        sample level gradient gather;
    Texture3d Component [T; 4]: (u: Val<f32> => ssa, v: Val<f32> => ssa, w: Val<f32> => ssa)
        sample level gradient3;
    TextureCube Component [T; 4]: (x: Val<f32> => ssa, y: Val<f32> => ssa, z: Val<f32> => ssa)
        sample level gradient3 gather;
    TextureCubeArray Component [T; 4]:
        (x: Val<f32> => ssa, y: Val<f32> => ssa, z: Val<f32> => ssa, element: impl Index => index)
        sample level gradient3 gather;
    Depth2d DepthComponent T: (u: Val<f32> => ssa, v: Val<f32> => ssa)
        sample level gradient gather_depths compare;
    Depth2dArray DepthComponent T: (u: Val<f32> => ssa, v: Val<f32> => ssa, element: impl Index => index)
        sample level gradient gather_depths compare;
    DepthCube DepthComponent T: (x: Val<f32> => ssa, y: Val<f32> => ssa, z: Val<f32> => ssa)
        sample level gradient3 gather_depths compare;
    DepthCubeArray DepthComponent T:
        (x: Val<f32> => ssa, y: Val<f32> => ssa, z: Val<f32> => ssa, element: impl Index => index)
        sample level gradient3 gather_depths compare;
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
