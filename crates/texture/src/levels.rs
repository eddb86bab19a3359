//! Levels made of a texture's first, by a box filter.
//!
//! A texel of a level is, component by component, `((t00 + t10) + (t01 + t11)) * 0.25` of the four texels of the
//! level before at twice its column and row and beside and below them; where there is no column or row beside, the
//! texel itself stands for it. Each operation is one of binary32, on the numbers that the format's codes stand for:
//! so sRGB is averaged as light.

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
            "levels are made of numbers between 0 and 1 and of floats, not of {}: give them",
            shape.format.name()
        ));
    }
    for level in 1..shape.levels {
        let before = i128::from(level) - 1;
        let [columns, rows, _] = shape.level_extents(level - 1).map(i128::from);
        let [width, height, depth] = shape.level_extents(level).map(i128::from);
        for z in 0..depth {
            for y in 0..height {
                for x in 0..width {
                    let texel = |right: i128, down: i128| {
                        let column = (2 * x + right).min(columns - 1);
                        let row = (2 * y + down).min(rows - 1);
                        let texel = shape.texel([column, row, z], before);
                        read(shape, bytes, texel).map(f32::from_bits)
                    };
                    let (t00, t10, t01, t11) = (texel(0, 0), texel(1, 0), texel(0, 1), texel(1, 1));
                    let mean = [0, 1, 2, 3]
                        .map(|c| (((t00[c] + t10[c]) + (t01[c] + t11[c])) * 0.25).to_bits());
                    let texel = shape.texel([x, y, z], level.into());
                    write(shape, bytes, texel, mean);
                }
            }
        }
    }
    Ok(())
}
