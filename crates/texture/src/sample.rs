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
//! i0, i1 = base + offset, base + offset + 1        as integers, i1 for linear only
//! ```
//!
//! Then each index is brought into `0..n` by the address mode, or there is none and a texel of zero bytes stands
//! for it, as Metal has it: its alpha is 1 where the format has none; or one of the border's colour.
//! A linear sample of texels `t00` (at `i0` of both axes), `t10` (at `i1` of x), `t01` and `t11` is, component by
//! component, with the weights `a` of x and `b` of y:
//!
//! ```text
//! top    = fma(a, t10 - t00, t00)
//! bottom = fma(a, t11 - t01, t01)
//! sample = fma(b, bottom - top, top)
//! ```
//!
//! In one dimension it is `fma(a, t1 - t0, t0)`; in three `fma(c, back - front, front)` of two slices that are
//! sampled so, with the weight `c` of z. A gather gives a component of the four texels of a linear sample of two
//! dimensions, or on the face of a cube, in the order `t01`, `t11`, `t10`, `t00`.
//!
//! A level `l` is chosen by a number `lod`, as "Level-of-Detail Operation" has it; `n` is that of levels:
//!
//! ```text
//! lod    = fmin(fmax(lod, least), most)            of the sampler, so NaN is the least
//! lod    = fmin(lod, n - 1)
//! l      = ceil(lod + 0.5) - 1, but at least 0     nearest
//! l0     = floor(lod)                              linear
//! l1     = min(l0 + 1, n - 1)
//! sample = fma(lod - l0, s1 - s0, s0)              of the samples of the two levels, where there are two
//! ```
//!
//! A sample of no number is of the first level, or of that of the sampler's least number, if it is more than 0.
//!
//! A sample that compares is one of texels that are 1 where the comparison of the reference with their first component
//! holds, and 0 where it does not.
//!
//! The sum of products of the specification would be the same in real numbers; this one needs fewer operations
//! and gives a texture of one value back exactly.

use crate::cube;
use crate::sampler::{Address, Coordinates, Filter, LodClamp, Mip, Sampler};
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
        Address::ClampToZero | Address::ClampToBorder => {
            (0..n).contains(&index).then_some(index as u32)
        }
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
    axis_beside(coordinate, extent, sampler, 0)
}

/// The same so many texels further.
fn axis_beside(coordinate: f32, extent: u32, sampler: Sampler, offset: i8) -> Axis {
    let (index, weight) = whole(coordinate, extent, sampler);
    let index = index + i32::from(offset);
    let address = |index| addressed(index, extent, sampler.address);
    match sampler.filter {
        Filter::Nearest => Axis {
            texels: [address(index), None],
            weight,
        },
        Filter::Linear => Axis {
            texels: [address(index), address(index + 1)],
            weight,
        },
    }
}

/// The index that a coordinate leads to along an axis, which may be beyond the edges, and of a linear sample how much
/// it has of the next.
fn whole(coordinate: f32, extent: u32, sampler: Sampler) -> (i32, f32) {
    let scale = match sampler.coordinates {
        Coordinates::Normalized => extent as f32,
        Coordinates::Pixel => 1.0,
    };
    let u = match sampler.filter {
        Filter::Nearest => coordinate * scale,
        Filter::Linear => coordinate.mul_add(scale, -0.5),
    };
    #[expect(
        clippy::manual_clamp,
        reason = "`max` gives what is not a NaN, where `clamp` gives the NaN"
    )]
    let u = u.max(-LIMIT).min(LIMIT);
    let base = u.floor();
    let weight = match sampler.filter {
        Filter::Nearest => 0.0,
        Filter::Linear => u - base,
    };
    (base as i32, weight)
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
    /// The numbers of the texels it was made of, by the bits of their place: 1 for the second along x, 2 along y,
    /// 4 along z, 8 of the second level.
    pub texels: [Option<u64>; 16],
}

/// Where a sample is taken: a coordinate for each axis that is sampled, or a direction of a cube; of an array its
/// element; and the level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// Coordinates of x, y and z.
    pub at: [f32; 3],
    /// How many of them there are.
    pub axes: usize,
    /// The element of an array.
    pub element: Option<i128>,
    /// The level, which may lie between two; else it is the first.
    pub lod: Option<f32>,
    /// Whether the coordinates are a direction.
    pub is_cube: bool,
    /// What texels are compared with, by what the sampler compares.
    pub reference: Option<f32>,
    /// How many texels further along each axis it is taken; of no cube.
    pub offset: [i8; 3],
}

impl Place {
    /// One in a texture of two dimensions.
    pub const fn d2(x: f32, y: f32) -> Place {
        Place {
            at: [x, y, 0.0],
            axes: 2,
            element: None,
            lod: None,
            is_cube: false,
            reference: None,
            offset: [0; 3],
        }
    }
}

/// The levels that a number leads to: the first, and the second with how much of it there is.
///
/// ```
/// use invar_texture::{LodClamp, Mip, chosen_levels};
///
/// let all = LodClamp::ALL;
/// assert_eq!(chosen_levels(1.25, 4, Mip::Nearest, all), (1, None));
/// assert_eq!(chosen_levels(1.25, 4, Mip::Linear, all), (1, Some((2, 0.25))));
/// ```
pub fn chosen_levels(lod: f32, count: u32, mip: Mip, clamp: LodClamp) -> (u32, Option<(u32, f32)>) {
    let last = count - 1;
    let [least, most] = clamp.limits();
    // `max` gives what is not a NaN, where `clamp` gives the NaN.
    let lod = lod.max(least).min(most).min(last as f32);
    match mip {
        Mip::None => (0, None),
        Mip::Linear if count == 1 => (0, None),
        Mip::Nearest => (((lod + 0.5).ceil() - 1.0).max(0.0) as u32, None),
        Mip::Linear => {
            let base = lod.floor();
            let first = base as u32;
            (first, Some(((first + 1).min(last), lod - base)))
        }
    }
}

/// The texels around a place, by the bits of their place; and the weights of the axes.
struct Around {
    values: [[u32; 4]; 8],
    texels: [Option<u64>; 8],
    weights: [f32; 3],
}

/// What a sample is made of of a texel: of one that compares, whether it holds.
fn compared(sampler: Sampler, place: Place, texel: [u32; 4]) -> [u32; 4] {
    let (Some(compare), Some(reference)) = (sampler.compare, place.reference) else {
        return texel;
    };
    let holds = compare.holds(reference, f32::from_bits(texel[0]));
    [(if holds { 1.0f32 } else { 0.0 }).to_bits(), 0, 0, 0]
}

fn around(shape: TextureShape, bytes: &[u8], sampler: Sampler, place: Place, level: u32) -> Around {
    let extents = shape.level_extents(level);
    let flat = Axis {
        texels: [Some(0); 2],
        weight: 0.0,
    };
    let axes: [Axis; 3] = std::array::from_fn(|i| match i < place.axes {
        true => axis_beside(place.at[i], extents[i], sampler, place.offset[i]),
        false => flat,
    });
    // An element that is not there has zeros, as what is out of bounds.
    let missing = place
        .element
        .is_some_and(|e| !(0..i128::from(shape.depth)).contains(&e));
    let mut texels = [None; 8];
    let mut values = [[0; 4]; 8];
    for corner in 0..8usize {
        let beyond = (0..3).any(|i| corner >> i & 1 == 1 && i >= place.axes);
        if missing || beyond || sampler.filter == Filter::Nearest && corner > 0 {
            continue;
        }
        let index = |i: usize| axes[i].texels[corner >> i & 1].map(i128::from);
        let z = || place.element.or_else(|| index(2));
        texels[corner] = (|| shape.texel([index(0)?, index(1)?, z()?], level.into()))();
        values[corner] = match texels[corner] {
            Some(_) => read(shape, bytes, texels[corner]),
            None if sampler.address == Address::ClampToBorder => {
                let numbers = shape.format.numbers();
                [0, 1, 2, 3].map(|c| sampler.border.component(c, numbers))
            }
            None => shape
                .format
                .decode(&[0; 16][..shape.format.texel_bytes() as usize]),
        };
        values[corner] = compared(sampler, place, values[corner]);
    }
    Around {
        values,
        texels,
        weights: axes.map(|axis| axis.weight),
    }
}

/// The texels around a direction of a cube, whose faces are slices.
fn around_in_cube(
    shape: TextureShape,
    bytes: &[u8],
    sampler: Sampler,
    place: Place,
    level: u32,
) -> Around {
    let [n, ..] = shape.level_extents(level);
    let (face, [u, v]) = cube::place(place.at);
    let sampler = Sampler {
        coordinates: Coordinates::Normalized,
        ..sampler
    };
    let (x, y) = (whole(u, n, sampler), whole(v, n, sampler));
    let elements = i128::from(shape.depth / 6);
    let element = place.element.unwrap_or(0);
    let missing = !(0..elements).contains(&element);
    let mut texels = [None; 8];
    let mut values = [[0; 4]; 8];
    for corner in 0..4usize {
        if missing || sampler.filter == Filter::Nearest && corner > 0 {
            continue;
        }
        // A nearest sample never leaves its face.
        let index = |from: (i32, f32), bit: usize| match sampler.filter {
            Filter::Nearest => i64::from(from.0).clamp(0, i64::from(n) - 1),
            Filter::Linear => (i64::from(from.0) + (corner >> bit & 1) as i64).clamp(-1, n.into()),
        };
        let [i, j, face] = cube::texel(face, [index(x, 0), index(y, 1)], n).map(i128::from);
        texels[corner] = shape.texel([i, j, element * 6 + face], level.into());
        let texel = read(shape, bytes, texels[corner]);
        values[corner] = compared(sampler, place, texel);
    }
    Around {
        values,
        texels,
        weights: [x.1, y.1, 0.0],
    }
}

/// A sample of one level.
fn sample_level(
    shape: TextureShape,
    bytes: &[u8],
    sampler: Sampler,
    place: Place,
    level: u32,
) -> Sampled {
    let Around {
        values,
        texels,
        weights,
    } = match place.is_cube {
        true => around_in_cube(shape, bytes, sampler, place, level),
        false => around(shape, bytes, sampler, place, level),
    };
    let axes = if place.is_cube { 2 } else { place.axes };
    let components = match sampler.filter {
        Filter::Nearest => values[0],
        Filter::Linear => [0, 1, 2, 3].map(|c| {
            let mut left = values.map(|v| f32::from_bits(v[c]));
            for (i, weight) in weights.iter().enumerate().take(axes) {
                for corner in 0..8 {
                    if corner >> i & 1 == 0 {
                        let (first, second) = (left[corner], left[corner | 1 << i]);
                        left[corner] = weight.mul_add(second - first, first);
                    }
                }
            }
            left[0].to_bits()
        }),
    };
    Sampled {
        components,
        texels: of_one_level(texels),
    }
}

/// Texels of a sample of one level.
fn of_one_level(of_level: [Option<u64>; 8]) -> [Option<u64>; 16] {
    let mut texels = [None; 16];
    texels[..8].copy_from_slice(&of_level);
    texels
}

/// A sample of a texture. Of integers only nearest ones have a meaning.
pub fn sample(shape: TextureShape, bytes: &[u8], sampler: Sampler, place: Place) -> Sampled {
    let chosen = |lod| chosen_levels(lod, shape.levels, sampler.mip, sampler.lod);
    let lod = place.lod.or(sampler.first_lod());
    let (level, second) = lod.map_or((0, None), chosen);
    let mut sampled = sample_level(shape, bytes, sampler, place, level);
    if let Some((level, weight)) = second {
        let other = sample_level(shape, bytes, sampler, place, level);
        sampled.components = [0, 1, 2, 3].map(|c| {
            let first = f32::from_bits(sampled.components[c]);
            let second = f32::from_bits(other.components[c]);
            weight.mul_add(second - first, first).to_bits()
        });
        sampled.texels[8..].copy_from_slice(&other.texels[..8]);
    }
    sampled
}

/// The corners that a gather gives, in its order.
pub const GATHERED: [usize; 4] = [2, 3, 1, 0];

/// One component of the four texels that a linear sample of two dimensions, or of a cube, is made of.
pub fn gather(
    shape: TextureShape,
    bytes: &[u8],
    sampler: Sampler,
    place: Place,
    component: usize,
) -> Sampled {
    let sampler = Sampler {
        filter: Filter::Linear,
        ..sampler
    };
    let Around { values, texels, .. } = match place.is_cube {
        true => around_in_cube(shape, bytes, sampler, place, 0),
        false => around(shape, bytes, sampler, place, 0),
    };
    Sampled {
        components: GATHERED.map(|corner| values[corner][component]),
        texels: of_one_level(texels),
    }
}
