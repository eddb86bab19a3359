//! Reads, writes and samples of a texture in memory.
//!
//! A sample at a coordinate of an axis of `n` texels, each line one operation of binary32 (or of 32-bit
//! integers), after "Texel Coordinate Systems" and "Texel Filtering" of the Vulkan specification:
//!
//! ```text
//! scale  = n where coordinates are normalized, else 1
//! u      = coordinate * scale                      nearest
//! u      = fma(coordinate, scale, -0.5)            linear
//! u      = fmin(fmax(u, -2^30), 2^30)              so NaN is -2^30, and what follows is exact
//! base   = floor(u)
//! weight = u - base                                linear; less than 1
//! i0, i1 = base, base + 1                          as integers, i1 for linear only
//! ```
//!
//! Then each index is brought into `0..n` by the address mode, or there is none and a texel of zero bytes stands
//! for it, as Metal has it: its alpha is 1 where the format has none.
//! A linear sample of texels `t00` (at `i0` of both axes), `t10` (at `i1` of x), `t01` and `t11` is, component by
//! component, with the weights `a` of x and `b` of y:
//!
//! ```text
//! top    = fma(a, t10 - t00, t00)
//! bottom = fma(a, t11 - t01, t01)
//! sample = fma(b, bottom - top, top)
//! ```
//!
//! The sum of products of the specification would be the same in real numbers; this one needs fewer operations
//! and gives a texture of one value back exactly.

use crate::sampler::{Address, Coordinates, Filter, Sampler};
use crate::shape::TextureShape;

/// Coordinates in texels are brought to between this and its negative.
pub const LIMIT: f32 = 1_073_741_824.0;

/// What a coordinate of a sample leads to along an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis {
    /// The texels: of a nearest sample the first only. None: one of zero bytes stands for it.
    pub texels: [Option<u32>; 2],
    /// How much of the second a linear sample has.
    pub weight: f32,
}

/// Which texel of an axis of `extent` an index leads to.
fn addressed(index: i32, extent: u32, address: Address) -> Option<u32> {
    let n = extent as i32;
    match address {
        Address::ClampToEdge => Some(index.clamp(0, n - 1) as u32),
        Address::ClampToZero => (0..n).contains(&index).then_some(index as u32),
        Address::Repeat => Some(index.rem_euclid(n) as u32),
        Address::MirroredRepeat => {
            let twice = index.rem_euclid(2 * n);
            Some(twice.min(2 * n - 1 - twice) as u32)
        }
    }
}

/// What a coordinate leads to along an axis of `extent` texels.
///
/// ```
/// use invar_texture::{Filter, Sampler, axis};
///
/// let linear = Sampler { filter: Filter::Linear, ..Sampler::default() };
/// let middle = axis(0.5, 4, linear);
/// assert_eq!((middle.texels, middle.weight), ([Some(1), Some(2)], 0.5));
/// ```
pub fn axis(coordinate: f32, extent: u32, sampler: Sampler) -> Axis {
    let scale = match sampler.coordinates {
        Coordinates::Normalized => extent as f32,
        Coordinates::Pixel => 1.0,
    };
    let u = match sampler.filter {
        Filter::Nearest => coordinate * scale,
        Filter::Linear => coordinate.mul_add(scale, -0.5),
    };
    // `max` gives what is no NaN.
    let u = u.max(-LIMIT).min(LIMIT);
    let base = u.floor();
    let index = base as i32;
    let address = |index| addressed(index, extent, sampler.address);
    match sampler.filter {
        Filter::Nearest => Axis {
            texels: [address(index), None],
            weight: 0.0,
        },
        Filter::Linear => Axis {
            texels: [address(index), address(index + 1)],
            weight: u - base,
        },
    }
}

/// The components of texel number `texel`; zeros where there is none (B1).
pub fn read(shape: TextureShape, bytes: &[u8], texel: Option<u64>) -> [u32; 4] {
    let size = shape.format.texel_bytes();
    let there = texel.and_then(|texel| {
        let start = (texel * size) as usize;
        bytes.get(start..start + size as usize)
    });
    there.map_or([0; 4], |texel| shape.format.decode(texel))
}

/// Writes the components of texel number `texel`; nothing where there is none (B2).
pub fn write(shape: TextureShape, bytes: &mut [u8], texel: Option<u64>, components: [u32; 4]) {
    let size = shape.format.texel_bytes();
    let there = texel.and_then(|texel| {
        let start = (texel * size) as usize;
        bytes.get_mut(start..start + size as usize)
    });
    if let Some(texel) = there {
        shape.format.encode(components, texel);
    }
}

/// A sample, and what it was made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampled {
    /// The components: the bits of four `f32`, or of integers where the format has those.
    pub components: [u32; 4],
    /// The numbers of the texels it was made of: the first only of a nearest sample.
    pub texels: [Option<u64>; 4],
}

/// A sample of a texture at `x` and `y`. Of integers only nearest ones have a meaning.
pub fn sample(shape: TextureShape, bytes: &[u8], sampler: Sampler, [x, y]: [f32; 2]) -> Sampled {
    let x = axis(x, shape.width, sampler);
    let y = axis(y, shape.height, sampler);
    let texel = |i: usize, j: usize| {
        let (x, y) = (x.texels[i]?, y.texels[j]?);
        shape.texel(x.into(), y.into())
    };
    let texels = [texel(0, 0), texel(1, 0), texel(0, 1), texel(1, 1)];
    let values = texels.map(|texel| match texel {
        Some(_) => read(shape, bytes, texel),
        None => shape
            .format
            .decode(&[0; 16][..shape.format.texel_bytes() as usize]),
    });
    let components = match sampler.filter {
        Filter::Nearest => values[0],
        Filter::Linear => [0, 1, 2, 3].map(|c| {
            let [t00, t10, t01, t11] = values.map(|v| f32::from_bits(v[c]));
            let top = x.weight.mul_add(t10 - t00, t00);
            let bottom = x.weight.mul_add(t11 - t01, t01);
            y.weight.mul_add(bottom - top, top).to_bits()
        }),
    };
    Sampled { components, texels }
}
