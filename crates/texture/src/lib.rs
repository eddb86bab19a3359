//! Pixel formats, textures in memory, and the formulas by which they are sampled.
//!
//! - [`mod@format`]: what the bytes of a texel are, and the numbers that they stand for, to the bit;
//! - [`shape`]: a texture's format and size, and where its texels lie;
//! - [`sampler`]: how a texture is sampled;
//! - [`mod@sample`]: reads, writes and samples of a texture in memory: the formula, as every device computes
//!   it.
//!
//! Invariants: nothing here depends on a machine's rounding mode or libraries; what is not an exact rounding of
//! a stated number is a fixed sequence of operations of IEEE binary32.
//!
//! Deliberately absent: kernels, devices, files.

pub mod format;
pub mod sample;
pub mod sampler;
pub mod shape;
pub mod srgb;

pub use format::{Coding, Numbers, PixelFormat};
pub use sample::{Axis, Place, Sampled, axis, gather, read, sample, write};
pub use sampler::{Address, Coordinates, Filter, Sampler};
pub use shape::{MAX_EXTENT, MAX_TEXELS, TextureShape};
