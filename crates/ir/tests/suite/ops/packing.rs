//! Packing into normalised integers and back.

use invar_ir::ops::evaluate::evaluate;
use invar_ir::{Imm, Op, Scalar, Type};

use crate::ops::evaluate::run_typed;
use crate::ops::exact::{Exact, Format};

struct Packing {
    pack: Op,
    unpack: Op,
    widths: &'static [u32],
    signed: bool,
}

const PACKINGS: [Packing; 5] = [
    Packing {
        pack: Op::PackFloatToUnorm4x8,
        unpack: Op::UnpackUnorm4x8ToFloat,
        widths: &[8, 8, 8, 8],
        signed: false,
    },
    Packing {
        pack: Op::PackFloatToSnorm4x8,
        unpack: Op::UnpackSnorm4x8ToFloat,
        widths: &[8, 8, 8, 8],
        signed: true,
    },
    Packing {
        pack: Op::PackFloatToUnorm2x16,
        unpack: Op::UnpackUnorm2x16ToFloat,
        widths: &[16, 16],
        signed: false,
    },
    Packing {
        pack: Op::PackFloatToSnorm2x16,
        unpack: Op::UnpackSnorm2x16ToFloat,
        widths: &[16, 16],
        signed: true,
    },
    Packing {
        pack: Op::PackFloatToUnorm10a2,
        unpack: Op::UnpackUnorm10a2ToFloat,
        widths: &[10, 10, 10, 2],
        signed: false,
    },
];

impl Packing {
    fn vector(&self) -> Type {
        Type::Vector(Scalar::F32, self.widths.len() as u8)
    }

    fn largest(&self, component: usize) -> i128 {
        (1 << (self.widths[component] - u32::from(self.signed))) - 1
    }

    fn offset(&self, component: usize) -> u32 {
        self.widths[..component].iter().sum()
    }

    fn unpack(&self, bits: &[u64]) -> Vec<Vec<u64>> {
        evaluate(self.unpack, Imm::None, &[Type::U32], &[bits]).expect("bits")
    }

    fn pack(&self, columns: &[Vec<u64>]) -> Vec<u64> {
        let slices: Vec<&[u64]> = columns.iter().map(Vec::as_slice).collect();
        run_typed(self.pack, Imm::None, &[self.vector()], &slices)
    }
}

/// Every 16 bits in either half of the word.
fn words() -> Vec<u64> {
    (0..1 << 16)
        .flat_map(|k| [k << 16 | 0x5a5a, 0xa5a5_0000 | k])
        .collect()
}

#[test]
fn unpacking_divides_by_the_largest_level_correctly_rounded() {
    let format = Format::of(Scalar::F32);
    for packing in &PACKINGS {
        let bits = words();
        let found = packing.unpack(&bits);
        for (k, column) in found.iter().enumerate() {
            let width = packing.widths[k];
            for (word, found) in bits.iter().zip(column) {
                let level = i128::from(word >> packing.offset(k) & ((1 << width) - 1));
                let wraps = packing.signed && level >> (width - 1) == 1;
                let level = level - if wraps { 1 << width } else { 0 };
                let level = level.max(-packing.largest(k));
                let expected = Exact::integer(level).div(&Exact::integer(packing.largest(k)));
                let expected = format.encode(&expected) & !if level == 0 { 1 << 31 } else { 0 };
                assert_eq!(*found, expected, "{} {word:x}", packing.unpack);
            }
        }
    }
}

#[test]
fn packing_gives_back_what_was_unpacked() {
    for packing in &PACKINGS {
        let bits = words();
        let again = packing.pack(&packing.unpack(&bits));
        for (word, again) in bits.iter().zip(again) {
            // The most negative level is -1 as its neighbour is.
            let mut expected = *word;
            for (k, width) in packing.widths.iter().enumerate() {
                let place = packing.offset(k);
                let lowest = 1 << (width - 1);
                if packing.signed && word >> place & ((1 << width) - 1) == lowest {
                    expected += 1 << place;
                }
            }
            assert_eq!(again, expected, "{} {word:x}", packing.pack);
        }
    }
}

#[test]
fn packing_limits_rounds_to_even_and_makes_nan_0() {
    let bits = |x: f32| u64::from(x.to_bits());
    for packing in &PACKINGS {
        let specials = [
            f32::NAN,
            f32::INFINITY,
            f32::NEG_INFINITY,
            2.0,
            -2.0,
            -0.0,
            0.5,
        ];
        let column: Vec<u64> = specials.iter().map(|x| bits(*x)).collect();
        let found = packing.pack(&vec![column; packing.widths.len()]);
        for (x, found) in specials.iter().zip(found) {
            for (k, width) in packing.widths.iter().enumerate() {
                let largest = packing.largest(k);
                let least = if packing.signed { -largest } else { 0 };
                let expected = match *x {
                    x if x.is_nan() => 0,
                    0.5 => {
                        // Half of an odd number is a tie.
                        let floor = largest / 2;
                        floor + (floor & 1)
                    }
                    x if x > 0.5 => largest,
                    x if x < -0.5 => least,
                    _ => 0,
                };
                let field = found >> packing.offset(k) & ((1 << width) - 1);
                let expected = expected as u64 & ((1 << width) - 1);
                assert_eq!(field, expected, "{} of {x}, component {k}", packing.pack);
            }
        }
    }
}

/// The definition of sRGB, in f64.
fn decoded(level: u64) -> f64 {
    let c = level as f64 / 255.0;
    if c <= 0.04045 {
        c / 12.92
    } else {
        ((c + 0.055) / 1.055).powf(2.4)
    }
}

fn encoded(c: f64) -> f64 {
    let c = c.clamp(0.0, 1.0);
    let encoded = if c < 0.003_130_8 {
        12.92 * c
    } else {
        1.055 * c.powf(1.0 / 2.4) - 0.055
    };
    encoded * 255.0
}

#[test]
fn every_srgb_level_decodes_correctly_rounded_and_alpha_exactly() {
    let bits: Vec<u64> = (0..256).map(|level| level * 0x0101_0101).collect();
    let op = Op::UnpackSrgbUnorm4x8ToFloat;
    let found = evaluate(op, Imm::None, &[Type::U32], &[&bits]).expect("bits");
    for level in 0..256 {
        let color = (decoded(level as u64) as f32).to_bits();
        for column in &found[..3] {
            assert_eq!(column[level], u64::from(color), "level {level}");
        }
        let alpha = (level as f32 / 255.0).to_bits();
        assert_eq!(found[3][level], u64::from(alpha), "alpha {level}");
    }
}

#[test]
fn srgb_packs_to_the_nearest_level() {
    let vector = [Type::Vector(Scalar::F32, 4)];
    let op = Op::PackFloatToSrgbUnorm4x8;
    let steps = 1 << 18;
    let column: Vec<u64> = (0..=steps)
        .map(|k| u64::from((k as f32 / steps as f32).to_bits()))
        .collect();
    let found = run_typed(op, Imm::None, &vector, &[&column[..]; 4]);
    let mut ties = 0;
    for (bits, found) in column.iter().zip(found) {
        let c = f64::from(f32::from_bits(*bits as u32));
        let exact = encoded(c);
        if (exact.fract() - 0.5).abs() < 1e-3 {
            // So near a tie, rounding on the way may decide.
            ties += 1;
            continue;
        }
        for k in 0..3 {
            let level = found >> (8 * k) & 0xff;
            assert_eq!(level, exact.round() as u64, "{c}");
        }
        let alpha = (c as f32 * 255.0).round_ties_even() as u64;
        assert_eq!(found >> 24, alpha, "alpha {c}");
    }
    assert!(ties < steps / 200, "{ties} of {steps} left out");
    let specials = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.5];
    let specials = specials.map(|x| u64::from(x.to_bits()));
    let found = run_typed(op, Imm::None, &vector, &[&specials[..]; 4]);
    assert_eq!(found, [0, 0xffff_ffff, 0, 0]);
}

#[test]
fn every_srgb_level_survives_decoding_and_encoding() {
    let bits: Vec<u64> = (0..256).map(|level| level * 0x0101_0101).collect();
    let op = Op::UnpackSrgbUnorm4x8ToFloat;
    let colors = evaluate(op, Imm::None, &[Type::U32], &[&bits]).expect("bits");
    let slices: Vec<&[u64]> = colors.iter().map(Vec::as_slice).collect();
    let vector = [Type::Vector(Scalar::F32, 4)];
    let again = run_typed(Op::PackFloatToSrgbUnorm4x8, Imm::None, &vector, &slices);
    assert_eq!(again, bits);
}
