//! A texture's format and size, and where its texels lie.
//!
//! Texels lie slice after slice, those of a slice row after row, those of a row side by side, without gaps. A
//! slice is a layer of a texture of three dimensions, or an element of an array of textures.

use crate::format::PixelFormat;

/// The most texels that a texture may have in a row or a column, so that sizes are exact in `f32` and products
/// of two fit.
pub const MAX_EXTENT: u32 = 1 << 16;

/// The most texels that a texture may have, so that their numbers fit 31 bits.
pub const MAX_TEXELS: u64 = 1 << 30;

/// The format and size of a texture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TextureShape {
    /// What a texel is.
    pub format: PixelFormat,
    /// Texels in a row.
    pub width: u32,
    /// Rows of a slice: 1 where there is one dimension.
    pub height: u32,
    /// Slices: 1 where there are less than three dimensions, and no array.
    pub depth: u32,
}

impl TextureShape {
    /// A shape of that size.
    ///
    /// ```
    /// use invar_texture::{PixelFormat, TextureShape};
    ///
    /// let shape = TextureShape::new(PixelFormat::Rgba8Unorm, 640, 480).unwrap();
    /// assert_eq!(shape.size_bytes(), 640 * 480 * 4);
    /// let none = TextureShape::new(PixelFormat::Rgba8Unorm, 0, 480).unwrap_err();
    /// assert_eq!(none, "a texture has 1 to 65536 texels in a row and a column, not 0x480");
    /// ```
    ///
    /// # Errors
    /// Why there is no such texture: a size of 0, or more than [`MAX_EXTENT`] or [`MAX_TEXELS`].
    pub fn new(format: PixelFormat, width: u32, height: u32) -> Result<TextureShape, String> {
        let extents = 1..=MAX_EXTENT;
        if !extents.contains(&width) || !extents.contains(&height) {
            return Err(format!(
                "a texture has 1 to {MAX_EXTENT} texels in a row and a column, not {width}x{height}"
            ));
        }
        let texels = u64::from(width) * u64::from(height);
        if texels > MAX_TEXELS {
            return Err(format!(
                "a texture has at most {MAX_TEXELS} texels; {width}x{height} are {texels}"
            ));
        }
        Ok(TextureShape {
            format,
            width,
            height,
            depth: 1,
        })
    }

    /// The same with so many slices.
    ///
    /// ```
    /// use invar_texture::{PixelFormat, TextureShape};
    ///
    /// let shape = TextureShape::new(PixelFormat::R8Unorm, 4, 4)?.with_depth(4)?;
    /// assert_eq!(shape.texels(), 64);
    /// # Ok::<(), String>(())
    /// ```
    ///
    /// # Errors
    /// As [`TextureShape::new`].
    pub fn with_depth(self, depth: u32) -> Result<TextureShape, String> {
        if !(1..=MAX_EXTENT).contains(&depth) {
            return Err(format!(
                "a texture has 1 to {MAX_EXTENT} slices, not {depth}"
            ));
        }
        let shape = TextureShape { depth, ..self };
        if shape.texels() > MAX_TEXELS {
            return Err(format!(
                "a texture has at most {MAX_TEXELS} texels; {}x{}x{depth} are {}",
                self.width,
                self.height,
                shape.texels()
            ));
        }
        Ok(shape)
    }

    /// How many texels it has.
    pub const fn texels(self) -> u64 {
        self.width as u64 * self.height as u64 * self.depth as u64
    }

    /// How many bytes it has.
    pub const fn size_bytes(self) -> u64 {
        self.texels() * self.format.texel_bytes()
    }

    /// Width, height and depth.
    pub const fn extents(self) -> [u32; 3] {
        [self.width, self.height, self.depth]
    }

    /// The number of a texel; none beyond the edges.
    pub fn texel(self, at: [i128; 3]) -> Option<u64> {
        let extents = self.extents().map(i128::from);
        let inside = at.iter().zip(extents).all(|(x, n)| (0..n).contains(x));
        let [x, y, z] = at;
        inside.then(|| ((z * extents[1] + y) * extents[0] + x) as u64)
    }
}
