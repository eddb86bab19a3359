//! Samplers: how a texture is sampled.

use serde::{Deserialize, Serialize};

/// What a sample is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Filter {
    /// The texel in whose area the coordinates lie.
    #[default]
    Nearest,
    /// The texels whose centres are nearest, by distance.
    Linear,
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

/// How a texture is sampled. The default is Metal's: nearest, clamped to the edge, normalized.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Sampler {
    /// What a sample is made of.
    pub filter: Filter,
    /// What is beyond the edges.
    pub address: Address,
    /// What coordinates count.
    pub coordinates: Coordinates,
}

impl Sampler {
    /// The texel in whose area the coordinates lie, clamped to the edge, of normalized coordinates.
    pub const NEAREST: Sampler = Sampler {
        filter: Filter::Nearest,
        address: Address::ClampToEdge,
        coordinates: Coordinates::Normalized,
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

impl Address {
    /// Every mode.
    pub const ALL: [Address; 4] = [
        Address::ClampToEdge,
        Address::ClampToZero,
        Address::Repeat,
        Address::MirroredRepeat,
    ];

    /// The word for it in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            Address::ClampToEdge => "clamp_to_edge",
            Address::ClampToZero => "clamp_to_zero",
            Address::Repeat => "repeat",
            Address::MirroredRepeat => "mirrored_repeat",
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
        } else {
            let mut all = Coordinates::ALL.into_iter();
            sampler.coordinates = all.find(|c| c.name() == word)?;
        }
        Some(sampler)
    }

    /// The words that say it, beginning with the filter; those of defaults are left out but for that.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        let default = Sampler::default();
        let address = (self.address != default.address).then(|| self.address.name());
        let coordinates =
            (self.coordinates != default.coordinates).then(|| self.coordinates.name());
        [Some(self.filter.name()), address, coordinates]
            .into_iter()
            .flatten()
    }
}
