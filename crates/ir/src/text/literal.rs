//! Scalars as text: `-7`, `0xff`, `1.5`, `inf`, `0x7fc00001`.
//!
//! A float prints as the shortest decimal that reads back as the same bits, an infinity as `inf` or
//! `-inf`, a NaN as its bits in hexadecimal. A hexadecimal literal is always the bits of its type,
//! for floats and signed integers too. Decimals read to the nearest float, ties to even, for every
//! float type without a rounding in between.

use std::cmp::Ordering;

use half::{bf16, f16};

use super::lexer::shorten;
use crate::inst::Const;
use crate::types::Scalar;

/// The scalar of that type that a text writes.
///
/// # Errors
/// Why there is none, as a sentence without a full stop.
pub(super) fn parse(scalar: Scalar, text: &str) -> Result<Const, String> {
    let bits = if scalar == Scalar::Bool {
        match text {
            "true" | "1" => 1,
            "false" | "0" => 0,
            _ => {
                return Err(format!(
                    "`{}` is not a bool; write `true` or `false`",
                    shorten(text)
                ));
            }
        }
    } else if let Some(hex) = text.strip_prefix("0x") {
        let value = u64::from_str_radix(hex, 16)
            .ok()
            .filter(|_| !hex.starts_with('+'));
        match value {
            Some(bits) if bits & !mask(scalar) == 0 => bits,
            Some(_) => {
                return Err(format!(
                    "`{}` has more than the {} bits of {scalar}",
                    shorten(text),
                    scalar.bits()
                ));
            }
            None => return Err(malformed(scalar, text)),
        }
    } else if scalar.is_float() {
        parse_float(scalar, text)?
    } else {
        parse_integer(scalar, text)?
    };
    Ok(Const { scalar, bits })
}

fn malformed(scalar: Scalar, text: &str) -> String {
    let kind = if scalar.is_float() {
        "a number"
    } else {
        "an integer"
    };
    format!("`{}` is not {kind}, which {scalar} needs", shorten(text))
}

fn mask(scalar: Scalar) -> u64 {
    u64::MAX >> (64 - scalar.bits())
}

fn parse_integer(scalar: Scalar, text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(malformed(scalar, text));
    }
    let (least, most) = range(scalar);
    match text.parse::<i128>() {
        Ok(value) if (least..=most).contains(&value) => Ok(value as u64 & mask(scalar)),
        Ok(_) | Err(_) => Err(format!(
            "`{}` does not fit {scalar} ({least} to {most})",
            shorten(text)
        )),
    }
}

/// The least and the greatest value of an integer type.
fn range(scalar: Scalar) -> (i128, i128) {
    let bits = scalar.bits();
    if scalar.is_signed_integer() {
        (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    } else {
        (0, (1 << bits) - 1)
    }
}

fn parse_float(scalar: Scalar, text: &str) -> Result<u64, String> {
    match text {
        "inf" => return Ok(infinity(scalar)),
        "-inf" => return Ok(infinity(scalar) | 1 << (scalar.bits() - 1)),
        "nan" => return Ok(quiet_nan(scalar)),
        _ => {}
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    let well_formed = digits.starts_with(|c: char| c.is_ascii_digit())
        && digits
            .bytes()
            .all(|b| b.is_ascii_digit() || b".eE+-".contains(&b));
    let parsed = if well_formed {
        text.parse::<f64>().ok()
    } else {
        None
    };
    let Some(wide) = parsed else {
        return Err(malformed(scalar, text));
    };
    let bits = match scalar {
        Scalar::F64 => wide.to_bits(),
        Scalar::F32 => u64::from(text.parse::<f32>().map_or(0, f32::to_bits)),
        Scalar::F16 | Scalar::BF16 => narrow(scalar, wide, Some(text)),
        Scalar::Bool
        | Scalar::I8
        | Scalar::I16
        | Scalar::I32
        | Scalar::I64
        | Scalar::U8
        | Scalar::U16
        | Scalar::U32
        | Scalar::U64 => return Err(malformed(scalar, text)),
    };
    if bits & infinity(scalar) == infinity(scalar) {
        return Err(format!(
            "`{}` is too large for {scalar}; write `inf` if it is meant",
            shorten(text)
        ));
    }
    Ok(bits)
}

/// The bits of infinity.
pub(super) fn infinity(scalar: Scalar) -> u64 {
    match scalar {
        Scalar::F16 => 0x7c00,
        Scalar::BF16 => 0x7f80,
        Scalar::F32 => 0x7f80_0000,
        Scalar::F64 => 0x7ff0_0000_0000_0000,
        Scalar::Bool
        | Scalar::I8
        | Scalar::I16
        | Scalar::I32
        | Scalar::I64
        | Scalar::U8
        | Scalar::U16
        | Scalar::U32
        | Scalar::U64 => 0,
    }
}

/// The bits of the quiet NaN without sign or payload.
fn quiet_nan(scalar: Scalar) -> u64 {
    let infinity = infinity(scalar);
    infinity | 1 << (infinity.trailing_zeros() - 1)
}

/// Whether a scalar is a NaN.
pub(super) fn is_nan(constant: Const) -> bool {
    let infinity = infinity(constant.scalar);
    constant.scalar.is_float()
        && constant.bits & infinity == infinity
        && constant.bits & (mask(constant.scalar) >> 1) != infinity
}

/// A 16-bit float from a decimal and the f64 nearest to it, or from that f64 alone. Rounding twice is wrong only where the
/// f64 lies halfway between two 16-bit floats and the decimal does not; there the decimal decides.
fn narrow(scalar: Scalar, wide: f64, text: Option<&str>) -> u64 {
    let magnitude = wide.abs();
    let sign = u64::from(wide.is_sign_negative()) << 15;
    // Bits of positive floats are in the order of their values. Infinity stands for the power of
    // two after the largest float: from halfway to it on, decimals are too large.
    let value = |bits: u64| {
        if bits == infinity(scalar) {
            2.0 * narrow_value(scalar, infinity(scalar) - (1 << mantissa_bits(scalar)))
        } else {
            narrow_value(scalar, bits)
        }
    };
    let (mut below, mut above) = (0, infinity(scalar));
    if magnitude >= value(above) {
        return sign | above;
    }
    while above - below > 1 {
        let middle = (below + above) / 2;
        if value(middle) <= magnitude {
            below = middle;
        } else {
            above = middle;
        }
    }
    let halfway = (value(below) + value(above)) / 2.0;
    let decides = match (magnitude.total_cmp(&halfway), text) {
        (Ordering::Equal, Some(text)) => compare_decimals(text.trim_start_matches('-'), halfway),
        (clear, _) => clear,
    };
    let up = match decides {
        Ordering::Less => false,
        Ordering::Equal => below & 1 == 1,
        Ordering::Greater => true,
    };
    sign | if up { above } else { below }
}

fn mantissa_bits(scalar: Scalar) -> u32 {
    infinity(scalar).trailing_zeros()
}

/// The value of a 16-bit float.
fn narrow_value(scalar: Scalar, bits: u64) -> f64 {
    match scalar {
        Scalar::F16 => f16::from_bits(bits as u16).to_f64(),
        _bf16 => bf16::from_bits(bits as u16).to_f64(),
    }
}

/// How an unsigned decimal compares with a finite f64, exactly.
fn compare_decimals(text: &str, value: f64) -> Ordering {
    // No finite f64 has more than 767 significant digits.
    let exact = format!("{value:.800e}");
    let (a, a_exponent) = digits_of(text);
    let (b, b_exponent) = digits_of(&exact);
    match (a.is_empty(), b.is_empty()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => a_exponent.cmp(&b_exponent).then_with(|| a.cmp(&b)),
    }
}

/// The significant digits of an unsigned decimal without zeros at either end, and the exponent of
/// ten with which they read `0.DIGITS`.
fn digits_of(text: &str) -> (Vec<u8>, i64) {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let exponent = exponent.trim_start_matches('+').parse::<i64>().unwrap_or(
        // Only an exponent beyond i64 fails to parse here: far out either way.
        if exponent.starts_with('-') {
            i64::MIN / 2
        } else {
            i64::MAX / 2
        },
    );
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
    let zeros = digits.iter().take_while(|b| **b == b'0').count();
    digits.drain(..zeros);
    while digits.last() == Some(&b'0') {
        digits.pop();
    }
    let point = whole.len() as i64 - zeros as i64;
    (digits, exponent.saturating_add(point))
}

/// A whole number below 2^53 as a scalar, by the rules of conversions (A5).
pub(super) fn from_integer(scalar: Scalar, number: u64) -> Const {
    let bits = match scalar {
        Scalar::Bool => u64::from(number != 0),
        Scalar::F16 | Scalar::BF16 => narrow(scalar, number as f64, None),
        Scalar::F32 => u64::from((number as f32).to_bits()),
        Scalar::F64 => (number as f64).to_bits(),
        Scalar::I8
        | Scalar::I16
        | Scalar::I32
        | Scalar::I64
        | Scalar::U8
        | Scalar::U16
        | Scalar::U32
        | Scalar::U64 => number & mask(scalar),
    };
    Const { scalar, bits }
}

/// The value of a float.
pub(super) fn float_value(constant: Const) -> f64 {
    match constant.scalar {
        Scalar::F64 => f64::from_bits(constant.bits),
        Scalar::F32 => f64::from(f32::from_bits(constant.bits as u32)),
        narrow => narrow_value(narrow, constant.bits),
    }
}

impl Const {
    /// Whether it is a float that is not a number.
    pub fn is_nan(self) -> bool {
        is_nan(self)
    }
}

impl std::fmt::Display for Const {
    /// As in the text form: floats shortest, NaNs as bits.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&print(*self))
    }
}

/// A scalar as text, which [`parse`] reads back to the same bits.
pub(super) fn print(constant: Const) -> String {
    let Const { scalar, bits } = constant;
    let bits = bits & mask(scalar);
    match scalar {
        Scalar::Bool => (bits != 0).to_string(),
        Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64 => bits.to_string(),
        Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => {
            let unused = 64 - scalar.bits();
            (((bits << unused) as i64) >> unused).to_string()
        }
        Scalar::F16 | Scalar::BF16 | Scalar::F32 | Scalar::F64 => {
            if is_nan(Const { scalar, bits }) {
                let digits = scalar.bits() as usize / 4;
                return format!("0x{bits:0digits$x}");
            }
            match scalar {
                Scalar::F64 => format!("{:?}", f64::from_bits(bits)),
                Scalar::F32 => format!("{:?}", f32::from_bits(bits as u32)),
                _ => print_narrow(scalar, bits),
            }
        }
    }
}

/// A 16-bit float that is not a NaN: the decimal of the fewest digits that reads back, of those the
/// nearest.
fn print_narrow(scalar: Scalar, bits: u64) -> String {
    let value = narrow_value(scalar, bits);
    if value.is_infinite() || value == 0.0 {
        return format!("{value:?}");
    }
    let reads_back = |text: &str| parse_float(scalar, text) == Ok(bits);
    for digits in 0..9 {
        let nearest = format!("{value:.digits$e}");
        if reads_back(&nearest) {
            return plain(&nearest);
        }
        // Where the floats below are closer together than those above, the nearest decimal of so
        // many digits may lie outside on the near side and the next one inside on the far side.
        let (mantissa, exponent) = nearest.split_once('e').unwrap_or((&nearest, "0"));
        let scaled: i64 = mantissa.replace('.', "").parse().unwrap_or(0);
        let exponent = exponent.parse::<i64>().unwrap_or(0) - digits as i64;
        for neighbour in [scaled - 1, scaled + 1] {
            let candidate = format!("{neighbour}e{exponent}");
            if reads_back(&candidate) {
                return plain(&candidate);
            }
        }
    }
    // Nine digits tell any two 32-bit floats apart, and so any two of 16 bits.
    format!("{value:?}")
}

/// A short decimal in the notation that the wider floats print in.
fn plain(decimal: &str) -> String {
    decimal
        .parse::<f64>()
        .map_or_else(|_| decimal.to_string(), |v| format!("{v:?}"))
}
