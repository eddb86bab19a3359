//! Pixel formats: what the bytes of a texel are, and the numbers that they stand for.
//!
//! | coding | a code `c` of `n` bits stands for | a number `x` becomes |
//! |---|---|---|
//! | unorm | `c / (2^n - 1)` | `rint(clamp(x, 0, 1) * (2^n - 1))` |
//! | snorm | `max(c / (2^(n-1) - 1), -1)` | `rint(clamp(x, -1, 1) * (2^(n-1) - 1))` |
//! | uint, sint | `c` | the nearest that fits |
//! | float | the float of these bits | the nearest float, ties to even |
//! | float of 11 or 10 bits | the `f16` of these bits, without a sign and with zeros behind them | the bits of `fmax(x, 0)` as `f16`, those that it lacks cut off |
//! | srgb | [`crate::srgb`]; alpha is unorm | the nearest code; alpha is unorm |
//! | floats of `rgb9e5float` | [`crate::shared`] | all three at once: [`crate::shared`] |
//!
//! These are the conversions of the Vulkan specification (16.1.1 and 16.1.2, "Conversion from Normalized
//! Fixed-Point to Floating-Point" and back; Metal's are the same in section 8.7 of its specification), each
//! operation in binary32, rounded to nearest even. `rint` rounds ties to even; NaN becomes 0. Integers that do not
//! fit are clamped, as Metal does; Vulkan leaves them open.
//!
//! A channel that a format lacks is 0, alpha 1, when it is read, and is dropped when it is written.

use half::f16;

use crate::{shared, srgb};

/// How the bits of a channel are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coding {
    /// Codes from 0 to 1.
    Unorm,
    /// Codes from -1 to 1.
    Snorm,
    /// Unsigned integers.
    Uint,
    /// Signed integers.
    Sint,
    /// Floats.
    Float,
    /// Codes from 0 to 1 of the sRGB transfer function, but for alpha.
    Srgb,
}

/// What kernels read from a format and write to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Numbers {
    /// Floats.
    Float,
    /// Signed integers.
    Signed,
    /// Unsigned integers.
    Unsigned,
}

macro_rules! formats {
    ($($variant:ident $name:literal $channels:literal x $bits:literal $coding:ident;)*) => {
        /// What a texel is made of. Channels lie in the order of the name, the first in the low bytes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum PixelFormat {
            $(
                #[doc = concat!("`", $name, "`.")]
                $variant,
            )*
        }

        impl PixelFormat {
            /// Every format.
            pub const ALL: &[PixelFormat] = &[$(PixelFormat::$variant),*];

            /// Its name, as Metal has it but in lower case.
            pub const fn name(self) -> &'static str {
                match self { $(PixelFormat::$variant => $name,)* }
            }

            /// How many channels it has.
            pub const fn channels(self) -> u32 {
                match self { $(PixelFormat::$variant => $channels,)* }
            }

            /// Bits of each channel: 8, 16 or 32; where they differ, of the first.
            pub const fn bits(self) -> u32 {
                match self { $(PixelFormat::$variant => $bits,)* }
            }

            /// How they are read.
            pub const fn coding(self) -> Coding {
                match self { $(PixelFormat::$variant => Coding::$coding,)* }
            }
        }
    };
}

formats! {
    R8Unorm "r8unorm" 1 x 8 Unorm;
    R8Snorm "r8snorm" 1 x 8 Snorm;
    R8Uint "r8uint" 1 x 8 Uint;
    R8Sint "r8sint" 1 x 8 Sint;
    Rg8Unorm "rg8unorm" 2 x 8 Unorm;
    Rg8Snorm "rg8snorm" 2 x 8 Snorm;
    Rg8Uint "rg8uint" 2 x 8 Uint;
    Rg8Sint "rg8sint" 2 x 8 Sint;
    Rgba8Unorm "rgba8unorm" 4 x 8 Unorm;
    Rgba8UnormSrgb "rgba8unorm_srgb" 4 x 8 Srgb;
    Rgba8Snorm "rgba8snorm" 4 x 8 Snorm;
    Rgba8Uint "rgba8uint" 4 x 8 Uint;
    Rgba8Sint "rgba8sint" 4 x 8 Sint;
    Bgra8Unorm "bgra8unorm" 4 x 8 Unorm;
    Bgra8UnormSrgb "bgra8unorm_srgb" 4 x 8 Srgb;
    R16Unorm "r16unorm" 1 x 16 Unorm;
    R16Snorm "r16snorm" 1 x 16 Snorm;
    R16Uint "r16uint" 1 x 16 Uint;
    R16Sint "r16sint" 1 x 16 Sint;
    R16Float "r16float" 1 x 16 Float;
    Rg16Unorm "rg16unorm" 2 x 16 Unorm;
    Rg16Snorm "rg16snorm" 2 x 16 Snorm;
    Rg16Uint "rg16uint" 2 x 16 Uint;
    Rg16Sint "rg16sint" 2 x 16 Sint;
    Rg16Float "rg16float" 2 x 16 Float;
    Rgba16Unorm "rgba16unorm" 4 x 16 Unorm;
    Rgba16Snorm "rgba16snorm" 4 x 16 Snorm;
    Rgba16Uint "rgba16uint" 4 x 16 Uint;
    Rgba16Sint "rgba16sint" 4 x 16 Sint;
    Rgba16Float "rgba16float" 4 x 16 Float;
    R32Uint "r32uint" 1 x 32 Uint;
    R32Sint "r32sint" 1 x 32 Sint;
    R32Float "r32float" 1 x 32 Float;
    Rg32Uint "rg32uint" 2 x 32 Uint;
    Rg32Sint "rg32sint" 2 x 32 Sint;
    Rg32Float "rg32float" 2 x 32 Float;
    Rgba32Uint "rgba32uint" 4 x 32 Uint;
    Rgba32Sint "rgba32sint" 4 x 32 Sint;
    Rgba32Float "rgba32float" 4 x 32 Float;
    Rgb10A2Unorm "rgb10a2unorm" 4 x 10 Unorm;
    Rgb10A2Uint "rgb10a2uint" 4 x 10 Uint;
    Rg11B10Float "rg11b10float" 3 x 11 Float;
    Rgb9E5Float "rgb9e5float" 3 x 9 Float;
    Depth32Float "depth32float" 1 x 32 Float;
}

impl PixelFormat {
    /// The format of that name.
    ///
    /// ```
    /// use invar_texture::PixelFormat;
    /// assert_eq!(PixelFormat::from_name("r8unorm"), Some(PixelFormat::R8Unorm));
    /// ```
    pub fn from_name(name: &str) -> Option<PixelFormat> {
        PixelFormat::ALL.iter().copied().find(|f| f.name() == name)
    }

    /// Its name behind an article, as in a sentence: "an r8unorm", "a depth32float".
    ///
    /// ```
    /// use invar_texture::PixelFormat;
    /// assert_eq!(PixelFormat::Rg8Unorm.with_article(), "an rg8unorm");
    /// assert_eq!(PixelFormat::Bgra8Unorm.with_article(), "a bgra8unorm");
    /// ```
    pub fn with_article(self) -> String {
        let article = match self.name().starts_with('r') {
            true => "an",
            false => "a",
        };
        format!("{article} {}", self.name())
    }

    /// Bytes of a texel.
    pub const fn texel_bytes(self) -> u64 {
        match self.is_packed() {
            true => 4,
            false => (self.channels() * self.bits() / 8) as u64,
        }
    }

    /// Whether its channels share a word of 32 bits; else each has bytes of its own.
    pub const fn is_packed(self) -> bool {
        matches!(
            self,
            PixelFormat::Rgb10A2Unorm
                | PixelFormat::Rgb10A2Uint
                | PixelFormat::Rg11B10Float
                | PixelFormat::Rgb9E5Float
        )
    }

    /// How many codes of a texel stand by themselves in memory.
    pub const fn codes(self) -> u32 {
        match self.is_packed() {
            true => 1,
            false => self.channels(),
        }
    }

    /// The lowest bit of a channel in a texel, and how many it has.
    pub const fn field(self, channel: u32) -> (u32, u32) {
        let first = channel * self.bits();
        match (self, channel) {
            (PixelFormat::Rgb10A2Unorm | PixelFormat::Rgb10A2Uint, 3) => (first, 2),
            (PixelFormat::Rg11B10Float, 2) => (first, 10),
            _as_wide_as_others => (first, self.bits()),
        }
    }

    /// What kernels read from it and write to it.
    pub const fn numbers(self) -> Numbers {
        match self.coding() {
            Coding::Unorm | Coding::Snorm | Coding::Float | Coding::Srgb => Numbers::Float,
            Coding::Uint => Numbers::Unsigned,
            Coding::Sint => Numbers::Signed,
        }
    }

    /// Which component of a value channel `channel` is: 0 is red.
    pub const fn component(self, channel: u32) -> u32 {
        match self {
            PixelFormat::Bgra8Unorm | PixelFormat::Bgra8UnormSrgb if channel < 3 => 2 - channel,
            _in_order => channel,
        }
    }

    /// How the channel of a component is read: alpha is never sRGB.
    pub const fn coding_of(self, component: u32) -> Coding {
        match self.coding() {
            Coding::Srgb if component == 3 => Coding::Unorm,
            coding => coding,
        }
    }

    /// What a component without a channel is: 0, alpha 1, as bits.
    pub const fn missing(self, component: u32) -> u32 {
        match (component, self.numbers()) {
            (3, Numbers::Float) => 1.0f32.to_bits(),
            (3, Numbers::Signed | Numbers::Unsigned) => 1,
            _colour => 0,
        }
    }

    /// The components of a texel: the bits of four `f32`, `i32` or `u32`. Bytes that are not there are 0.
    ///
    /// ```
    /// use invar_texture::PixelFormat;
    /// let texel = PixelFormat::Rg8Unorm.decode(&[255, 0]).map(f32::from_bits);
    /// assert_eq!(texel, [1.0, 0.0, 0.0, 1.0]);
    /// ```
    pub fn decode(self, texel: &[u8]) -> [u32; 4] {
        let mut components = [0, 1, 2, 3].map(|c| self.missing(c));
        let mut bytes = [0; 16];
        let size = texel.len().min(self.texel_bytes() as usize);
        bytes[..size].copy_from_slice(&texel[..size]);
        let texel = u128::from_le_bytes(bytes);
        if self == PixelFormat::Rgb9E5Float {
            let [r, g, b] = shared::decode(texel as u32).map(f32::to_bits);
            return [r, g, b, components[3]];
        }
        for channel in 0..self.channels() {
            let (first, bits) = self.field(channel);
            let code = (texel >> first) as u32 & largest(bits, false);
            let component = self.component(channel);
            components[component as usize] = decode(self.coding_of(component), bits, code);
        }
        components
    }

    /// Writes a texel of these components, the bits of four `f32`, `i32` or `u32`, as far as there are bytes.
    pub fn encode(self, components: [u32; 4], texel: &mut [u8]) {
        let mut word = 0u128;
        if self == PixelFormat::Rgb9E5Float {
            let [r, g, b, _] = components.map(f32::from_bits);
            word = shared::encode([r, g, b]).into();
        }
        let apart = match self {
            PixelFormat::Rgb9E5Float => 0,
            _each_by_itself => self.channels(),
        };
        for channel in 0..apart {
            let (first, bits) = self.field(channel);
            let component = self.component(channel);
            let number = components[component as usize];
            let code = encode(self.coding_of(component), bits, number);
            word |= u128::from(code) << first;
        }
        let size = texel.len().min(self.texel_bytes() as usize);
        texel[..size].copy_from_slice(&word.to_le_bytes()[..size]);
    }

    /// The bytes of a texel of a colour: red, green, blue and alpha; of integers the nearest that there are.
    ///
    /// ```
    /// use invar_texture::PixelFormat;
    /// assert_eq!(PixelFormat::Rgba8Unorm.encoded([1.0, 0.5, 0.0, 2.0]), [255, 128, 0, 255]);
    /// assert_eq!(PixelFormat::R8Sint.encoded([-3.4, 0.0, 0.0, 0.0]), [253]);
    /// ```
    pub fn encoded(self, colour: [f64; 4]) -> Vec<u8> {
        // A cast gives the nearest that fits, and 0 of NaN.
        let components = colour.map(|number| match self.numbers() {
            Numbers::Float => (number as f32).to_bits(),
            Numbers::Signed => number.round_ties_even() as i32 as u32,
            Numbers::Unsigned => number.round_ties_even() as u32,
        });
        let mut texel = vec![0; self.texel_bytes() as usize];
        self.encode(components, &mut texel);
        texel
    }
}

/// The largest code of an unsigned channel, and the largest of a signed one.
const fn largest(bits: u32, signed: bool) -> u32 {
    u32::MAX >> (32 - bits + signed as u32)
}

/// The bits of the number that a code stands for.
pub fn decode(coding: Coding, bits: u32, code: u32) -> u32 {
    let unused = 32 - bits;
    let signed = (code << unused) as i32 >> unused;
    match coding {
        Coding::Unorm => (code as f32 / largest(bits, false) as f32).to_bits(),
        Coding::Snorm => (signed as f32 / largest(bits, true) as f32)
            .max(-1.0)
            .to_bits(),
        Coding::Uint => code,
        Coding::Sint => signed as u32,
        Coding::Float if bits == 16 => f16::from_bits(code as u16).to_f32().to_bits(),
        Coding::Float if bits < 16 => f16::from_bits((code << (15 - bits)) as u16)
            .to_f32()
            .to_bits(),
        Coding::Float => code,
        Coding::Srgb => srgb::decode(code as u8).to_bits(),
    }
}

/// The code of a number, given as bits.
pub fn encode(coding: Coding, bits: u32, number: u32) -> u32 {
    let float = f32::from_bits(number);
    let float = if float.is_nan() { 0.0 } else { float };
    let mask = largest(bits, false);
    match coding {
        Coding::Unorm => {
            let most = mask as f32;
            (float.clamp(0.0, 1.0) * most).round_ties_even() as u32
        }
        Coding::Snorm => {
            let most = largest(bits, true) as f32;
            let code = (float.clamp(-1.0, 1.0) * most).round_ties_even() as i32;
            code as u32 & mask
        }
        Coding::Uint => number.min(mask),
        Coding::Sint => {
            let most = largest(bits, true) as i32;
            (number as i32).clamp(-most - 1, most) as u32 & mask
        }
        Coding::Float if bits == 16 => f16::from_f32(f32::from_bits(number)).to_bits().into(),
        Coding::Float if bits < 16 => {
            // Of two zeros `max` may give either.
            let positive = if float > 0.0 { float } else { 0.0 };
            u32::from(f16::from_f32(positive).to_bits()) >> (15 - bits)
        }
        Coding::Float => number,
        Coding::Srgb => srgb::encode(float).into(),
    }
}
