//! Samplers: how a texture is sampled.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::format::Numbers;

/// What a sample is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Filter {
    /// The texel in whose area the coordinates lie.
    #[default]
    Nearest,
    /// The texels whose centres are nearest, by distance.
    Linear,
}

/// Which levels a sample is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Mip {
    /// The first.
    #[default]
    None,
    /// The nearest.
    Nearest,
    /// The two nearest, by distance.
    Linear,
}

/// What a comparison asks of the reference and a texel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Compare {
    /// Nothing holds.
    Never,
    /// It is less.
    Less,
    /// It is not greater, and neither is NaN.
    LessEqual,
    /// It is greater.
    Greater,
    /// It is not less, and neither is NaN.
    GreaterEqual,
    /// They are equal.
    Equal,
    /// They are not.
    NotEqual,
    /// Everything holds.
    Always,
}

impl Compare {
    /// Every comparison.
    pub const ALL: [Compare; 8] = [
        Compare::Never,
        Compare::Less,
        Compare::LessEqual,
        Compare::Greater,
        Compare::GreaterEqual,
        Compare::Equal,
        Compare::NotEqual,
        Compare::Always,
    ];

    /// The word for it in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            Compare::Never => "compare_never",
            Compare::Less => "compare_less",
            Compare::LessEqual => "compare_less_equal",
            Compare::Greater => "compare_greater",
            Compare::GreaterEqual => "compare_greater_equal",
            Compare::Equal => "compare_equal",
            Compare::NotEqual => "compare_not_equal",
            Compare::Always => "compare_always",
        }
    }

    /// Whether it holds.
    pub fn holds(self, reference: f32, texel: f32) -> bool {
        match self {
            Compare::Never => false,
            Compare::Less => reference < texel,
            Compare::LessEqual => reference <= texel,
            Compare::Greater => reference > texel,
            Compare::GreaterEqual => reference >= texel,
            Compare::Equal => reference == texel,
            Compare::NotEqual => reference != texel,
            Compare::Always => true,
        }
    }
}

/// Which texel stands for one beyond the edge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Address {
    /// The one at the edge.
    #[default]
    ClampToEdge,
    /// One of zero bytes: alpha is 1 where the format has none.
    ClampToZero,
    /// The texture is there again and again.
    Repeat,
    /// So it is, every second time as in a mirror.
    MirroredRepeat,
    /// One of the border's colour.
    ClampToBorder,
}

/// The colour of what is beyond the edges, where there is a border.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Border {
    /// All components are 0.
    #[default]
    TransparentBlack,
    /// All are 0, but alpha is 1.
    OpaqueBlack,
    /// All are 1.
    OpaqueWhite,
}

impl Border {
    /// Every colour.
    pub const ALL: [Border; 3] = [
        Border::TransparentBlack,
        Border::OpaqueBlack,
        Border::OpaqueWhite,
    ];

    /// The word for it in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            Border::TransparentBlack => "border_transparent_black",
            Border::OpaqueBlack => "border_opaque_black",
            Border::OpaqueWhite => "border_opaque_white",
        }
    }

    /// A component of it, as a format gives it: 0 is red.
    pub const fn component(self, component: u32, numbers: Numbers) -> u32 {
        let is_one = match self {
            Border::TransparentBlack => false,
            Border::OpaqueBlack => component == 3,
            Border::OpaqueWhite => true,
        };
        match (is_one, numbers) {
            (false, _) => 0,
            (true, Numbers::Float) => 1.0f32.to_bits(),
            (true, Numbers::Signed | Numbers::Unsigned) => 1,
        }
    }
}

/// What coordinates count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Coordinates {
    /// The texture reaches from 0 to 1.
    #[default]
    Normalized,
    /// Texels.
    Pixel,
}

/// How a texture is sampled. The default is Metal's: nearest, clamped to the edge, normalized, of
/// the first level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Sampler {
    /// What a sample is made of.
    pub filter: Filter,
    /// What is beyond the edges.
    pub address: Address,
    /// What coordinates count.
    pub coordinates: Coordinates,
    /// Which levels it is made of.
    pub mip: Mip,
    /// What it compares, if it does.
    pub compare: Option<Compare>,
    /// The colour of the border, where there is one.
    pub border: Border,
    /// Between which levels it samples.
    pub lod: LodClamp,
}

/// Between which levels a sampler that chooses levels samples: two numbers, the first not above the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "[u32; 2]", into = "[u32; 2]")]
pub struct LodClamp {
    /// The bits of an `f32` each.
    bits: [u32; 2],
}

impl LodClamp {
    /// All levels.
    pub const ALL: LodClamp = LodClamp {
        bits: [0, f32::INFINITY.to_bits()],
    };

    /// From the first number, which is not below 0, to the second; none if they are not so.
    ///
    /// ```
    /// use invar_texture::LodClamp;
    ///
    /// assert_eq!(LodClamp::new(0.5, 2.0).unwrap().limits(), [0.5, 2.0]);
    /// assert_eq!(LodClamp::new(2.0, 0.5), None);
    /// ```
    pub fn new(least: f32, most: f32) -> Option<LodClamp> {
        // -0 is below no level, and has other bits than 0.
        let bits = [least.abs().to_bits(), most.abs().to_bits()];
        (least >= 0.0 && least <= most).then_some(LodClamp { bits })
    }

    /// The two numbers.
    pub const fn limits(self) -> [f32; 2] {
        [f32::from_bits(self.bits[0]), f32::from_bits(self.bits[1])]
    }
}

impl From<LodClamp> for [u32; 2] {
    fn from(clamp: LodClamp) -> [u32; 2] {
        clamp.bits
    }
}

impl TryFrom<[u32; 2]> for LodClamp {
    type Error = &'static str;

    fn try_from(bits: [u32; 2]) -> Result<LodClamp, &'static str> {
        let [least, most] = bits.map(f32::from_bits);
        LodClamp::new(least, most).ok_or("levels from which to which a sampler samples")
    }
}

impl Default for LodClamp {
    fn default() -> LodClamp {
        LodClamp::ALL
    }
}

impl Sampler {
    /// The texel in whose area the coordinates lie, clamped to the edge, of normalized coordinates.
    pub const NEAREST: Sampler = Sampler {
        filter: Filter::Nearest,
        address: Address::ClampToEdge,
        coordinates: Coordinates::Normalized,
        mip: Mip::None,
        compare: None,
        border: Border::TransparentBlack,
        lod: LodClamp::ALL,
    };

    /// The same by distance from the texels around.
    pub const LINEAR: Sampler = Sampler {
        filter: Filter::Linear,
        ..Sampler::NEAREST
    };
}

impl Filter {
    /// Every filter.
    pub const ALL: [Filter; 2] = [Filter::Nearest, Filter::Linear];

    /// The word for it in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            Filter::Nearest => "nearest",
            Filter::Linear => "linear",
        }
    }
}

impl Mip {
    /// Every choice.
    pub const ALL: [Mip; 3] = [Mip::None, Mip::Nearest, Mip::Linear];

    /// The word for it in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            Mip::None => "mip_none",
            Mip::Nearest => "mip_nearest",
            Mip::Linear => "mip_linear",
        }
    }
}

impl Address {
    /// Every mode.
    pub const ALL: [Address; 5] = [
        Address::ClampToEdge,
        Address::ClampToZero,
        Address::Repeat,
        Address::MirroredRepeat,
        Address::ClampToBorder,
    ];

    /// The word for it in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            Address::ClampToEdge => "clamp_to_edge",
            Address::ClampToZero => "clamp_to_zero",
            Address::Repeat => "repeat",
            Address::MirroredRepeat => "mirrored_repeat",
            Address::ClampToBorder => "clamp_to_border",
        }
    }
}

impl Coordinates {
    /// Both kinds.
    pub const ALL: [Coordinates; 2] = [Coordinates::Normalized, Coordinates::Pixel];

    /// The word for it in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            Coordinates::Normalized => "normalized",
            Coordinates::Pixel => "pixel",
        }
    }
}

impl Sampler {
    /// What every code begins with, so that no number that is meant for something else is one.
    const MARK: u32 = 0x5a3d_0000;

    /// Numbers for it, for hosts that pass numbers.
    ///
    /// ```
    /// use invar_texture::Sampler;
    ///
    /// let sampler = Sampler::default().with("repeat").unwrap();
    /// assert_eq!(Sampler::from_code(sampler.code()), Some(sampler));
    /// assert_eq!(Sampler::from_code([2, 0, 0]), None);
    /// ```
    pub const fn code(self) -> [u32; 3] {
        let Sampler {
            filter,
            address,
            coordinates,
            mip,
            compare,
            border,
            lod,
        } = self;
        let compare = match compare {
            None => 0,
            Some(compare) => compare as u32 + 1,
        };
        let words = Sampler::MARK
            | filter as u32
            | (address as u32) << 1
            | (coordinates as u32) << 4
            | (mip as u32) << 5
            | compare << 7
            | (border as u32) << 11;
        [words, lod.bits[0], lod.bits[1]]
    }

    /// The sampler of these numbers, if one has them.
    pub fn from_code(code: [u32; 3]) -> Option<Sampler> {
        let [words, least, most] = code;
        let part = |from: u32, bits: u32| (words >> from & ((1 << bits) - 1)) as usize;
        let compare = match part(7, 4) {
            0 => None,
            number => Some(*Compare::ALL.get(number - 1)?),
        };
        let sampler = Sampler {
            filter: *Filter::ALL.get(part(0, 1))?,
            address: *Address::ALL.get(part(1, 3))?,
            coordinates: *Coordinates::ALL.get(part(4, 1))?,
            mip: *Mip::ALL.get(part(5, 2))?,
            compare,
            border: *Border::ALL.get(part(11, 2))?,
            lod: LodClamp::new(f32::from_bits(least), f32::from_bits(most))?,
        };
        (sampler.code() == code).then_some(sampler)
    }

    /// The number of the level that a sample which says none is of, if that is not the first.
    pub fn first_lod(self) -> Option<f32> {
        let [least, _] = self.lod.limits();
        (least > 0.0).then_some(least)
    }

    /// Whether it mixes texels, which integers are not.
    pub fn mixes(self) -> bool {
        self.filter == Filter::Linear || self.mip == Mip::Linear
    }

    /// The sampler with what a word says, such as `linear` or `repeat`; none if no sampler has such a word.
    ///
    /// ```
    /// use invar_texture::{Filter, Sampler};
    ///
    /// let sampler = Sampler::default().with("linear").unwrap();
    /// assert_eq!(sampler.filter, Filter::Linear);
    /// assert_eq!(sampler.with("sharp"), None);
    /// ```
    pub fn with(self, word: &str) -> Option<Sampler> {
        let mut sampler = self;
        if let Some(filter) = Filter::ALL.into_iter().find(|f| f.name() == word) {
            sampler.filter = filter;
        } else if let Some(address) = Address::ALL.into_iter().find(|a| a.name() == word) {
            sampler.address = address;
        } else if let Some(mip) = Mip::ALL.into_iter().find(|m| m.name() == word) {
            sampler.mip = mip;
        } else if let Some(compare) = Compare::ALL.into_iter().find(|c| c.name() == word) {
            sampler.compare = Some(compare);
        } else if let Some(border) = Border::ALL.into_iter().find(|b| b.name() == word) {
            sampler.border = border;
        } else if let Some(limits) = word.strip_prefix("lod_clamp(") {
            let (least, most) = limits.strip_suffix(')')?.split_once(',')?;
            let number = |text: &str| text.trim().parse().ok();
            sampler.lod = LodClamp::new(number(least)?, number(most)?)?;
        } else {
            let mut all = Coordinates::ALL.into_iter();
            sampler.coordinates = all.find(|c| c.name() == word)?;
        }
        Some(sampler)
    }

    /// The words that say it, beginning with the filter; those of defaults are left out but for that.
    pub fn words(self) -> impl Iterator<Item = Cow<'static, str>> {
        let default = Sampler::default();
        let address = (self.address != default.address).then(|| self.address.name());
        let coordinates =
            (self.coordinates != default.coordinates).then(|| self.coordinates.name());
        let mip = (self.mip != default.mip).then(|| self.mip.name());
        let compare = self.compare.map(Compare::name);
        let border = (self.border != default.border).then(|| self.border.name());
        let lod = (self.lod != default.lod).then(|| {
            let [least, most] = self.lod.limits();
            Cow::from(format!("lod_clamp({least:?}, {most:?})"))
        });
        [
            Some(self.filter.name()),
            address,
            coordinates,
            mip,
            compare,
            border,
        ]
        .into_iter()
        .flatten()
        .map(Cow::from)
        .chain(lod)
    }
}
