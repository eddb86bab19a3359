//! Levels made of a texture's first, by a box filter.
//!
//! A texel of a level is the mean of the level before over the area that it covers, component by component, of the
//! numbers that the format's codes stand for: so sRGB is averaged as light.
//!
//! Of `n` columns of the level before, an even number or one, a column covers two, or the one, and rows likewise. The
//! mean is then `((t00 + t10) + (t01 + t11)) * 0.25` of the four texels there, where one stands for itself and the one
//! beside or below it that there is not, each operation one of binary32. Slices of a volume are halved as columns
//! are: the mean is `(front + back) * 0.125` of such a sum of either slice.
//!
//! Of an odd number `n = 2m + 1` above one, column `i` of `m` covers `n / m` columns: `m - i` parts of `n` are of
//! column `2i`, `m` of the next, and `i + 1` of the one behind that; rows, and slices of a volume, likewise. The sum of
//! the texels times their parts, and its division by all parts, are of binary64, and the mean is the binary32 nearest
//! to that.

use crate::format::Numbers;
use crate::sample::{read, write};
use crate::shape::TextureShape;

/// Fills all levels but the first.
///
/// ```
/// use invar_texture::{PixelFormat, TextureShape, fill_levels};
///
/// let shape = TextureShape::new(PixelFormat::R8Unorm, 2, 2)?.with_levels(2)?;
/// let mut bytes = [10, 20, 30, 40, 0];
/// fill_levels(shape, &mut bytes)?;
/// assert_eq!(bytes[4], 25);
/// # Ok::<(), String>(())
/// ```
///
/// # Errors
/// The format is of integers, which have no mean.
pub fn fill_levels(shape: TextureShape, bytes: &mut [u8]) -> Result<(), String> {
    if shape.format.numbers() != Numbers::Float {
        return Err(format!(
            "no levels are made of {}, whose texels are integers and have no mean: write the texels of each level",
            shape.format.name()
        ));
    }
    for level in 1..shape.levels {
        let before = i128::from(level) - 1;
        let [columns, rows, slices] = shape.level_extents(level - 1).map(i128::from);
        let [width, height, depth] = shape.level_extents(level).map(i128::from);
        let is_odd = |n: i128| n > 1 && n % 2 == 1;
        let is_volume = shape.is_volume;
        let by_parts = is_odd(columns) || is_odd(rows) || is_volume && is_odd(slices);
        for z in 0..depth {
            for y in 0..height {
                for x in 0..width {
                    let texel = |right: i128, down: i128, behind: i128| {
                        let column = (2 * x + right).min(columns - 1);
                        let row = (2 * y + down).min(rows - 1);
                        let slice = match is_volume {
                            true => (2 * z + behind).min(slices - 1),
                            false => z,
                        };
                        let texel = shape.texel([column, row, slice], before);
                        read(shape, bytes, texel).map(f32::from_bits)
                    };
                    let behind = if is_volume {
                        parts(z, slices)
                    } else {
                        parts(0, 1)
                    };
                    let mean = match by_parts {
                        true => mean_of_parts(texel, [parts(x, columns), parts(y, rows), behind]),
                        false if is_volume => mean_of_eight(texel),
                        false => sum_of_four(&texel, 0).map(|sum| sum * 0.25),
                    };
                    let mean = mean.map(f32::to_bits);
                    let texel = shape.texel([x, y, z], level.into());
                    write(shape, bytes, texel, mean);
                }
            }
        }
    }
    Ok(())
}

/// The sum of four texels of a slice, by how far right, down and behind they lie.
fn sum_of_four(texel: &impl Fn(i128, i128, i128) -> [f32; 4], behind: i128) -> [f32; 4] {
    let at = |right, down| texel(right, down, behind);
    let (t00, t10, t01, t11) = (at(0, 0), at(1, 0), at(0, 1), at(1, 1));
    [0, 1, 2, 3].map(|c| (t00[c] + t10[c]) + (t01[c] + t11[c]))
}

/// The mean of those of two slices.
fn mean_of_eight(texel: impl Fn(i128, i128, i128) -> [f32; 4]) -> [f32; 4] {
    let (front, back) = (sum_of_four(&texel, 0), sum_of_four(&texel, 1));
    [0, 1, 2, 3].map(|c| (front[c] + back[c]) * 0.125)
}

/// How much of a column, row or slice of a level is of each of three of the `n` before it, from the one at twice its
/// number.
fn parts(i: i128, n: i128) -> [f64; 3] {
    let m = n / 2;
    let parts = match n {
        1 => [1, 0, 0],
        _ if n % 2 == 0 => [1, 1, 0],
        _odd => [m - i, m, i + 1],
    };
    parts.map(|part| part as f64)
}

/// The mean of texels, of which there are so many parts across, down and behind.
fn mean_of_parts(
    texel: impl Fn(i128, i128, i128) -> [f32; 4],
    [across, down, behind]: [[f64; 3]; 3],
) -> [f32; 4] {
    let mut sum = [0.0; 4];
    for (z, slices) in (0..).zip(behind).filter(|(_, part)| *part > 0.0) {
        for (y, rows) in (0..).zip(down).filter(|(_, part)| *part > 0.0) {
            for (x, columns) in (0..).zip(across).filter(|(_, part)| *part > 0.0) {
                let texel = texel(x, y, z);
                for (sum, component) in sum.iter_mut().zip(texel) {
                    *sum += slices * rows * columns * f64::from(component);
                }
            }
        }
    }
    let all: f64 = [across, down, behind]
        .iter()
        .map(|p| p.iter().sum::<f64>())
        .product();
    sum.map(|sum| (sum / all) as f32)
}
