//! `rgb9e5float`: three floats without a sign that share an exponent of five bits, the upper ones of a word; each has a
//! fraction of nine bits, the first in the low bits.
//!
//! A fraction `f` and an exponent `e` stand for `f * 2^(e - 24)`. The way there is that of the Vulkan specification
//! ("RGB to Shared Exponent Conversion"), each operation in binary32:
//!
//! ```text
//! c   = fmin(fmax(x, 0), 65408)                    of each, so NaN is 0
//! e'  = max(floor(log2(largest c)), -16) + 16      by the bits of its exponent
//! e   = e' + 1 if floor(fma(largest c, 2^(24 - e'), 0.5)) = 512, else e'
//! f   = floor(fma(c, 2^(24 - e), 0.5))
//! ```

/// The largest number that there is.
pub const LARGEST: f32 = 65408.0;

/// The three numbers of a word.
///
/// ```
/// let word = invar_texture::shared::encode([1.0, 0.5, 100.0]);
/// assert_eq!(invar_texture::shared::decode(word), [1.0, 0.5, 100.0]);
/// ```
pub fn decode(word: u32) -> [f32; 3] {
    let scale = f32::from_bits(((word >> 27) + 103) << 23);
    [0, 9, 18].map(|first| (word >> first & 511) as f32 * scale)
}

/// The word of three numbers.
pub fn encode(numbers: [f32; 3]) -> u32 {
    let clamped = numbers.map(|x| if x > 0.0 { x.min(LARGEST) } else { 0.0 });
    let [r, g, b] = clamped;
    let largest = r.max(g.max(b));
    let exponent = (((largest.to_bits() >> 23) as i32 - 127).max(-16) + 16) as u32;
    let scale = |exponent: u32| f32::from_bits((151 - exponent) << 23);
    let fraction = |number: f32, exponent| number.mul_add(scale(exponent), 0.5).floor() as u32;
    let exponent = exponent + u32::from(fraction(largest, exponent) == 512);
    let [r, g, b] = clamped.map(|number| fraction(number, exponent));
    r | g << 9 | b << 18 | exponent << 27
}
