//! A texture's format and size, and where its texels lie.
//!
//! Texels lie level after level, those of a level slice after slice, those of a slice row after row, those of a row
//! side by side, without gaps. A slice is a layer of a texture of three dimensions, or an element of an array of
//! textures. Each level has half as many columns and rows as the one before, rounded down, but at least one; and as
//! many slices, but in a volume half of these too.

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
    /// Levels.
    pub levels: u32,
    /// Samples of a texel, each a slice of its own: slices are the samples of the first element, and so on.
    pub samples: u32,
    /// Whether slices are a third direction, of which each level has half too. Of one level it says nothing: that is
    /// a volume as well as an array.
    pub is_volume: bool,
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
            levels: 1,
            samples: 1,
            is_volume: false,
        })
    }

    /// A texture of three dimensions.
    ///
    /// ```
    /// use invar_texture::{PixelFormat, TextureShape};
    ///
    /// let shape = TextureShape::volume(PixelFormat::R8Unorm, 4, 2, 8)?.with_levels(4)?;
    /// assert_eq!(shape.level_extents(1), [2, 1, 4]);
    /// assert_eq!(shape.texels(), 64 + 8 + 2 + 1);
    /// # Ok::<(), String>(())
    /// ```
    ///
    /// # Errors
    /// As [`TextureShape::new`].
    pub fn volume(
        format: PixelFormat,
        width: u32,
        height: u32,
        depth: u32,
    ) -> Result<TextureShape, String> {
        let slices = TextureShape::new(format, width, height)?.with_depth(depth)?;
        Ok(TextureShape {
            is_volume: true,
            ..slices
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
        TextureShape { depth, ..self }.bounded()
    }

    /// The same with so many samples of each texel: as many times the slices.
    ///
    /// ```
    /// use invar_texture::{PixelFormat, TextureShape};
    ///
    /// let shape = TextureShape::new(PixelFormat::R8Unorm, 4, 4)?.with_samples(4)?;
    /// assert_eq!((shape.samples, shape.depth), (4, 4));
    /// # Ok::<(), String>(())
    /// ```
    ///
    /// # Errors
    /// There are not 1, 2, 4 or 8; or as [`TextureShape::new`].
    pub fn with_samples(self, samples: u32) -> Result<TextureShape, String> {
        if ![1, 2, 4, 8].contains(&samples) {
            return Err(format!(
                "a texture has 2, 4 or 8 samples of each texel, or one where it is not multisampled, not {samples}"
            ));
        }
        let depth = self.depth / self.samples * samples;
        let shape = TextureShape { samples, ..self };
        shape.with_depth(depth)
    }

    /// One row of texels that are not sampled, which may be longer than others.
    ///
    /// ```
    /// use invar_texture::{PixelFormat, TextureShape};
    ///
    /// assert!(TextureShape::buffer(PixelFormat::R32Uint, 1 << 20).is_ok());
    /// ```
    ///
    /// # Errors
    /// There are none, or more than [`MAX_TEXELS`].
    pub fn buffer(format: PixelFormat, texels: u32) -> Result<TextureShape, String> {
        if texels == 0 || u64::from(texels) > MAX_TEXELS {
            return Err(format!(
                "a texture has 1 to {MAX_TEXELS} texels, not {texels}"
            ));
        }
        let one = TextureShape::new(format, 1, 1)?;
        Ok(TextureShape {
            width: texels,
            ..one
        })
    }

    /// The same with so many levels.
    ///
    /// ```
    /// use invar_texture::{PixelFormat, TextureShape};
    ///
    /// let shape = TextureShape::new(PixelFormat::R8Unorm, 5, 2)?.with_levels(3)?;
    /// assert_eq!(shape.level_extents(1), [2, 1, 1]);
    /// assert_eq!(shape.texels(), 5 * 2 + 2 * 1 + 1);
    /// # Ok::<(), String>(())
    /// ```
    ///
    /// # Errors
    /// There are none, or more than to the one of one texel; or as [`TextureShape::new`].
    pub fn with_levels(self, levels: u32) -> Result<TextureShape, String> {
        let most = self.most_levels();
        if !(1..=most).contains(&levels) {
            let slices = match self.is_volume {
                true => format!("x{}", self.depth),
                false => String::new(),
            };
            return Err(format!(
                "a texture of {}x{}{slices} has 1 to {most} levels, not {levels}",
                self.width, self.height
            ));
        }
        TextureShape { levels, ..self }.bounded()
    }

    /// As many levels as such a texture can have: the last has one texel in each direction that levels halve.
    pub const fn most_levels(self) -> u32 {
        let (width, height) = (self.width, self.height);
        let longest = if width > height { width } else { height };
        let longest = match self.is_volume && self.depth > longest {
            true => self.depth,
            false => longest,
        };
        longest.ilog2() + 1
    }

    fn bounded(self) -> Result<TextureShape, String> {
        let texels = self.texels();
        if texels <= MAX_TEXELS {
            return Ok(self);
        }
        let TextureShape {
            width,
            height,
            depth,
            ..
        } = self;
        let levels = match self.levels {
            1 => String::new(),
            levels => format!(" in {levels} levels"),
        };
        Err(format!(
            "a texture has at most {MAX_TEXELS} texels; {width}x{height}x{depth}{levels} are {texels}"
        ))
    }

    /// How many texels it has, of all levels.
    pub const fn texels(self) -> u64 {
        self.level_start(self.levels)
    }

    /// The number of the first texel of a level.
    pub const fn level_start(self, level: u32) -> u64 {
        let (mut start, mut before) = (0, 0);
        while before < level {
            let [width, height, depth] = self.level_extents(before);
            start += width as u64 * height as u64 * depth as u64;
            before += 1;
        }
        start
    }

    /// One level of it, as a texture.
    pub const fn level(self, level: u32) -> TextureShape {
        let [width, height, depth] = self.level_extents(level);
        TextureShape {
            format: self.format,
            width,
            height,
            depth,
            levels: 1,
            samples: self.samples,
            is_volume: self.is_volume,
        }
    }

    /// Width, height and depth of a level.
    pub const fn level_extents(self, level: u32) -> [u32; 3] {
        const fn halved(extent: u32, level: u32) -> u32 {
            match extent >> level {
                0 => 1,
                several => several,
            }
        }
        let depth = match self.is_volume {
            true => halved(self.depth, level),
            false => self.depth,
        };
        [halved(self.width, level), halved(self.height, level), depth]
    }

    /// How many bytes it has.
    pub const fn size_bytes(self) -> u64 {
        self.texels() * self.format.texel_bytes()
    }

    /// Width, height and depth.
    pub const fn extents(self) -> [u32; 3] {
        [self.width, self.height, self.depth]
    }

    /// The number of a texel; none beyond the edges, or of a level that is not there.
    pub fn texel(self, at: [i128; 3], level: i128) -> Option<u64> {
        let level = u32::try_from(level).ok().filter(|l| *l < self.levels)?;
        let extents = self.level_extents(level).map(i128::from);
        let inside = at.iter().zip(extents).all(|(x, n)| (0..n).contains(x));
        let [x, y, z] = at;
        let within = || ((z * extents[1] + y) * extents[0] + x) as u64;
        inside.then(|| self.level_start(level) + within())
    }

    /// Where the texel of a number lies: column, row and slice, and the level.
    pub fn place(self, texel: u64) -> ([u64; 3], u32) {
        let mut level = 0;
        while level + 1 < self.levels && self.level_start(level + 1) <= texel {
            level += 1;
        }
        let within = texel - self.level_start(level);
        let [width, height, _] = self.level_extents(level).map(u64::from);
        let row = within / width;
        ([within % width, row % height, row / height], level)
    }
}
