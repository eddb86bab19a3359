//! Pixel formats, textures in memory, and the formulas by which they are sampled.
//!
//! - [`mod@format`]: what the bytes of a texel are, and the numbers that they stand for, to the bit;
//! - [`shape`]: a texture's format and size, and where its texels lie;
//! - [`cube`]: the faces of cubes;
//! - [`sampler`]: how a texture is sampled;
//! - [`mod@levels`]: levels made of a texture's first;
//! - [`mod@sample`]: reads, writes and samples of a texture in memory: the formula, as every device computes
//!   it.
//!
//! Invariants: nothing here depends on a machine's rounding mode or libraries; what is not an exact rounding of
//! a stated number is a fixed sequence of operations of IEEE binary32.
//!
//! Deliberately absent: kernels, devices, files.

pub mod cube;
pub mod format;
pub mod levels;
pub mod sample;
pub mod sampler;
pub mod shape;
pub mod shared;
pub mod srgb;

pub use format::{Coding, Numbers, PixelFormat};
pub use levels::fill_levels;
pub use sample::{Axis, Place, Sampled, axis, chosen_levels, gather, read, sample, write};
pub use sampler::{Address, Border, Compare, Coordinates, Filter, LodClamp, Mip, Sampler};
pub use shape::{MAX_EXTENT, MAX_TEXELS, TextureShape};
