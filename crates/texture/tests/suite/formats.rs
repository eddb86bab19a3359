//! Every code of every format, both ways.

use half::f16;
use invar_texture::format::{decode, encode};
use invar_texture::{Coding, PixelFormat, shared, srgb};

/// The codings of channels, with their bits.
fn codings() -> Vec<(Coding, u32)> {
    let of = |f: &PixelFormat| {
        let (coding, format) = (f.coding(), *f);
        (0..f.channels()).map(move |channel| (coding, format.field(channel).1))
    };
    let mut all: Vec<(Coding, u32)> = PixelFormat::ALL.iter().flat_map(of).collect();
    all.sort_by_key(|(coding, bits)| (*coding as u32, *bits));
    all.dedup();
    all
}

/// The number that a code stands for, in double precision.
fn exact(coding: Coding, bits: u32, code: u32) -> f64 {
    let signed = f64::from((code << (32 - bits)) as i32 >> (32 - bits));
    let code = f64::from(code);
    match coding {
        Coding::Unorm => code / (2f64.powi(bits as i32) - 1.0),
        Coding::Snorm => (signed / (2f64.powi(bits as i32 - 1) - 1.0)).max(-1.0),
        Coding::Srgb => {
            let c = code / 255.0;
            match c <= 0.04045 {
                true => c / 12.92,
                false => ((c + 0.055) / 1.055).powf(2.4),
            }
        }
        Coding::Uint | Coding::Sint | Coding::Float => unreachable!("it is not a quotient"),
    }
}

#[test]
fn every_code_of_a_normalized_channel_is_the_nearest_float_and_comes_back() {
    let mut seen = 0;
    for (coding, bits) in codings() {
        if !matches!(coding, Coding::Unorm | Coding::Snorm | Coding::Srgb) {
            continue;
        }
        for code in 0..1u32 << bits {
            let number = decode(coding, bits, code);
            let nearest = exact(coding, bits, code) as f32;
            assert_eq!(f32::from_bits(number), nearest, "{coding:?} {bits}: {code}");
            let again = encode(coding, bits, number);
            // Two codes stand for -1.
            let least = 1 << (bits - 1);
            let expected = match coding == Coding::Snorm && code == least {
                true => least + 1,
                false => code,
            };
            assert_eq!(again, expected, "{coding:?} {bits}");
            seen += 1;
        }
    }
    assert_eq!(seen, 3 * 256 + 2 * 65536 + 1024 + 4);
}

#[test]
fn numbers_become_the_nearest_code() {
    for (coding, bits) in codings() {
        if !matches!(coding, Coding::Unorm | Coding::Snorm) {
            continue;
        }
        let most = match coding {
            Coding::Unorm => 2f64.powi(bits as i32) - 1.0,
            _snorm => 2f64.powi(bits as i32 - 1) - 1.0,
        };
        for i in -3000..3000 {
            let number = i as f32 / 2221.0;
            let least = if coding == Coding::Unorm { 0.0 } else { -1.0 };
            let place = f64::from(number).clamp(least, 1.0) * most;
            let code = encode(coding, bits, number.to_bits());
            let signed = (code << (32 - bits)) as i32 >> (32 - bits);
            let code = if coding == Coding::Unorm {
                f64::from(code)
            } else {
                f64::from(signed)
            };
            // Binary32 rounds the product first.
            assert!(
                (code - place).abs() <= 0.5 + 1e-2,
                "{coding:?} {bits}: {number}"
            );
        }
        for (number, expected) in [
            (f32::NAN, 0.0),
            (f32::INFINITY, most),
            (2.0, most),
            (-0.0, 0.0),
        ] {
            let code = encode(coding, bits, number.to_bits());
            assert_eq!(f64::from(code), expected, "{coding:?} {bits}: {number}");
        }
    }
}

#[test]
fn srgb_takes_what_lies_between_codes_by_halves() {
    for code in 0..255u8 {
        let middle = exact_of_half(code);
        let below = f32::from_bits((middle as f32).to_bits() - 4);
        let above = f32::from_bits((middle as f32).to_bits() + 4);
        assert_eq!(srgb::encode(below), code);
        assert_eq!(srgb::encode(above), code + 1);
    }
    assert_eq!(srgb::encode(f32::NAN), 0);
    assert_eq!(srgb::encode(-1.0), 0);
    assert_eq!(srgb::encode(f32::INFINITY), 255);
}

/// What lies halfway between a code and the next, by the standard's formula.
fn exact_of_half(code: u8) -> f64 {
    let c = (f64::from(code) + 0.5) / 255.0;
    match c <= 0.04045 {
        true => c / 12.92,
        false => ((c + 0.055) / 1.055).powf(2.4),
    }
}

#[test]
fn integers_are_kept_and_clamped() {
    for bits in [8, 16] {
        for code in 0..1u32 << bits {
            assert_eq!(decode(Coding::Uint, bits, code), code);
            assert_eq!(encode(Coding::Uint, bits, code), code);
            let signed = decode(Coding::Sint, bits, code);
            assert_eq!(encode(Coding::Sint, bits, signed), code);
        }
        let mask = (1u32 << bits) - 1;
        assert_eq!(encode(Coding::Uint, bits, u32::MAX), mask);
        assert_eq!(encode(Coding::Sint, bits, i32::MAX as u32), mask >> 1);
        assert_eq!(encode(Coding::Sint, bits, i32::MIN as u32), (mask >> 1) + 1);
        assert_eq!(decode(Coding::Sint, bits, mask) as i32, -1);
    }
    for number in [0, 1, 7, u32::MAX, i32::MIN as u32] {
        assert_eq!(encode(Coding::Uint, 32, number), number);
        assert_eq!(
            decode(Coding::Sint, 32, encode(Coding::Sint, 32, number)),
            number
        );
    }
}

#[test]
fn floats_of_16_bits_are_kept() {
    for code in 0..1u32 << 16 {
        let number = f16::from_bits(code as u16);
        let decoded = f32::from_bits(decode(Coding::Float, 16, code));
        if number.is_nan() {
            assert!(decoded.is_nan());
        } else {
            assert_eq!(f64::from(decoded), number.to_f64());
            assert_eq!(encode(Coding::Float, 16, decoded.to_bits()), code);
        }
    }
}

#[test]
fn texels_have_their_channels_in_order() {
    let texel = [10, 20, 30, 40];
    let components = |format: PixelFormat| format.decode(&texel);
    let unorm = |code: u8| (f32::from(code) / 255.0).to_bits();
    let rgba = components(PixelFormat::Rgba8Unorm);
    assert_eq!(rgba, [10, 20, 30, 40].map(unorm));
    let bgra = components(PixelFormat::Bgra8Unorm);
    assert_eq!(bgra, [30, 20, 10, 40].map(unorm));
    assert_eq!(components(PixelFormat::R8Uint), [10, 0, 0, 1]);
    let srgb = components(PixelFormat::Rgba8UnormSrgb);
    assert_eq!(srgb[3], unorm(40));
    assert_ne!(srgb[0], unorm(10));
    for format in PixelFormat::ALL {
        let texel: Vec<u8> = (1..=format.texel_bytes() as u8).collect();
        let mut again = vec![0; texel.len()];
        format.encode(format.decode(&texel), &mut again);
        assert_eq!(texel, again, "{format:?}");
        assert_eq!(PixelFormat::from_name(format.name()), Some(*format));
    }
}

#[test]
fn v7_channels_that_share_a_word_have_their_places() {
    let word = 3u32 << 30 | 1023 << 20 | 1 << 10 | 512;
    let texel = word.to_le_bytes();
    assert_eq!(PixelFormat::Rgb10A2Uint.decode(&texel), [512, 1, 1023, 3]);
    let unorm = PixelFormat::Rgb10A2Unorm.decode(&texel).map(f32::from_bits);
    assert_eq!(unorm, [512.0 / 1023.0, 1.0 / 1023.0, 1.0, 1.0]);
    let mut again = [0; 4];
    PixelFormat::Rgb10A2Unorm.encode(unorm.map(f32::to_bits), &mut again);
    assert_eq!(again, texel);
    // Integers that do not fit become the largest.
    PixelFormat::Rgb10A2Uint.encode([1024, 7, u32::MAX, 4], &mut again);
    assert_eq!(PixelFormat::Rgb10A2Uint.decode(&again), [1023, 7, 1023, 3]);
}

#[test]
fn every_small_float_is_a_float_and_comes_back() {
    for bits in [10, 11] {
        for code in 0..1u32 << bits {
            let number = f32::from_bits(decode(Coding::Float, bits, code));
            // Five bits of exponent with a bias of 15, the rest of the fraction.
            let fraction_bits = bits - 5;
            let (exponent, fraction) = (code >> fraction_bits, code & ((1 << fraction_bits) - 1));
            let part = f64::from(fraction) / f64::from(1u32 << fraction_bits);
            match exponent {
                31 if fraction > 0 => assert!(number.is_nan()),
                31 => assert_eq!(number, f32::INFINITY),
                0 => assert_eq!(f64::from(number), part * 2f64.powi(-14)),
                _normal => {
                    let exact = (1.0 + part) * 2f64.powi(exponent as i32 - 15);
                    assert_eq!(f64::from(number), exact);
                }
            }
            let again = encode(Coding::Float, bits, number.to_bits());
            assert_eq!(again, if number.is_nan() { 0 } else { code });
        }
        assert_eq!(encode(Coding::Float, bits, (-1.0f32).to_bits()), 0);
    }
}

#[test]
fn floats_that_share_an_exponent_are_the_nearest_there_are() {
    // By the formulas of the Vulkan specification ("RGB to Shared Exponent Conversion") in double precision.
    let golden = |numbers: [f32; 3]| {
        let clamped = numbers.map(|x| f64::from(x).clamp(0.0, 65408.0));
        let largest = clamped.into_iter().fold(0.0, f64::max);
        let least = largest.log2().floor().max(-16.0);
        let exponent = least as i32 + 16;
        let fractions = |e: i32, c: f64| (c / 2f64.powi(e - 24) + 0.5).floor();
        let carried = fractions(exponent, largest) == 512.0;
        let exponent = exponent + i32::from(carried);
        clamped.map(|c| fractions(exponent, c) * 2f64.powi(exponent - 24))
    };
    let mut numbers = vec![
        0.0, 1e-9, 3e-8, 6.1e-5, 0.1, 0.5, 0.999, 1.0, 511.5, 512.0, 65408.0, 1e9, -2.0,
    ];
    numbers.extend((0..40).map(|i| 1.7f32.powi(i - 25)));
    for r in &numbers {
        for b in &numbers {
            let given = [*r, 0.37, *b];
            let word = shared::encode(given);
            let got = shared::decode(word).map(f64::from);
            assert_eq!(got, golden(given), "{given:?}");
            // What a word stands for comes back.
            let again = shared::decode(word);
            assert_eq!(shared::decode(shared::encode(again)), again);
        }
    }
    assert_eq!(shared::encode([f32::NAN, -1.0, -0.0]), 0);
    let largest = shared::decode(shared::encode([f32::INFINITY, 65408.0, 7e4]));
    assert_eq!(largest, [65408.0; 3]);
    let texel = PixelFormat::Rgb9E5Float.decode(&0xffff_ffffu32.to_le_bytes());
    assert_eq!(texel.map(f32::from_bits), [65408.0, 65408.0, 65408.0, 1.0]);
}
