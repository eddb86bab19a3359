//! Kernels written as Rust functions: what [`crate::prelude::kernel`] makes of them, and what their
//! bodies are made of.
//!
//! The macro turns a body into calls of this module, each of which adds to the kernel that this thread
//! is defining. Values of the kernel are [`Val`]s, whose type says what they are; so rustc finds errors
//! of types on the author's own words. What only the whole kernel can tell, such as a barrier that not
//! all threads reach, is found when it is first compiled, and names file and line.
//!
//! Invariants: all that a body can hold is `Copy`; every instruction has the span of the author's words;
//! nothing folds.
//!
//! Deliberately absent: what Rust means by a body. That is the macro's, in `invar-macros`.

mod advice;
pub(crate) mod compare;
mod control;
mod data;
mod define;
mod integers;
mod launch;
mod memory;
mod numbers;
pub mod ops;
mod structure;
mod texture;
mod together;
mod value;
mod vector;

pub use control::Range;
pub use data::{
    AtomicInteger, AtomicNumber, Bits, Bitwise, Constant, Data, Elements, Event, Float, Floats,
    Integer, Integers, Lanes, Number, Numbers, Scalar, Signed, SignedNumbers, SimdgroupMatrix,
    Stored, Val,
};
pub(crate) use define::reported;
pub use define::{Function, Kernel};
pub use launch::{Findings, IntoDispatch, LaunchOn, Launched, Prepared};
pub use memory::{
    AsSlice, AsSliceMut, Components, ConstantTable, Constants, Imageblock, Indexed, IndexedMut,
    Length, PlaceMut, PlaceRef, Rows, Slice, SliceMut, ThreadArray, ThreadgroupArray,
};
pub use numbers::Power;
pub use structure::{Constant as ConstantValue, FunctionConstant, Struct};
pub use texture::{
    AtomicComponent, Beside, Component, Depth2d, Depth2dArray, DepthComponent, DepthCube,
    DepthCubeArray, Texture1d, Texture1dArray, Texture1dArrayMut, Texture1dMut, Texture2d,
    Texture2dArray, Texture2dArrayMut, Texture2dMs, Texture2dMsArray, Texture2dMut, Texture3d,
    Texture3dMut, TextureBuffer, TextureBufferMut, TextureCube, TextureCubeArray,
    TextureCubeArrayMut, TextureCubeMut,
};
pub use value::{Arithmetic, Cast, Index, IntoVal, Shift, Vars};
pub use vector::{FloatVector, Mask, Multiply};

/// What `#[kernel]` and `#[derive(KernelData)]` write into the author's crate calls these: no interface to rely on.
#[doc(hidden)]
pub mod expansion {
    /// Comparisons.
    pub mod compare {
        pub use crate::kernel::compare::*;
    }
    pub use super::control::{
        break_, continue_, entry, for_, if_, iterations, loop_, never, nth, range, while_,
    };
    pub use super::data::{Known, KnownSelf, Single, Ssa, constant_value};
    pub use super::define::{Attributes, Place4, at, enter, module, return_, thread_count, to_inv};
    pub use super::launch::{KernelThatRanOnTheHost, checker, findings, launch, ran, value};
    pub use super::memory::{
        ComponentsOf, InMemory, InPlace, InRow, Nested, Read, Spot, SpotId, Write, components,
        constant_table, constants, imageblock, part, part_mut, place, place_mut, read, row_length,
        scalar, set_part, slice, slice_mut, thread_array, thread_rows, threadgroup_array,
        threadgroup_param, threadgroup_rows, write,
    };
    pub use super::structure::{
        Requirable, field, load_field, reader, requires, store_field, struct_type, structure,
    };
    pub use super::texture::{
        depth_cube, depth_cube_array, depth2d, depth2d_array, lend_texture, sampler,
        texture_buffer, texture_buffer_mut, texture_cube, texture_cube_array,
        texture_cube_array_mut, texture_cube_mut, texture1d, texture1d_array, texture1d_array_mut,
        texture1d_mut, texture2d, texture2d_array, texture2d_array_mut, texture2d_ms,
        texture2d_ms_array, texture2d_mut, texture3d, texture3d_mut,
    };
    pub use super::value::{
        Carried, NothingElse, Passed, Printed, ShiftCount, Times, With, alike, cast, lit, local,
        print_line, printed, shift_count, splat, variable, vector, zero,
    };
    pub use super::*;
    pub use invar_ir::texture::Sampling;
}
