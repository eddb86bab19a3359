//! Texels of pixel formats, as [`invar_texture::format`] has them.

use invar_ir::{Const, Imm, Memory, Op, Place, Scalar, Value};
use invar_texture::{Coding, PixelFormat, shared};

use super::writer::{Tables, Words, Writer};

/// Where a channel's code lies in a word.
#[derive(Clone, Copy)]
pub(super) struct Field {
    /// Its lowest bit.
    pub(super) shift: u32,
    pub(super) bits: u32,
    /// Bits of the word.
    pub(super) word_bits: u32,
}

impl Writer<'_> {
    /// A constant component, by its bits.
    pub(super) fn component(&mut self, bits: u32) -> Value {
        let scalar = invar_ir::texture::component(self.texture.format);
        let bits = bits.into();
        self.b.constant(Const { scalar, bits })
    }

    /// The components that words stand for, as [`PixelFormat::decode`] has them.
    pub(super) fn decode(&mut self, words: &[Value]) -> [Value; 4] {
        let format = self.texture.format;
        let missing = [0, 1, 2, 3].map(|c| format.missing(c));
        let mut components = missing.map(|bits| self.component(bits));
        if format == PixelFormat::Rgb9E5Float {
            let [r, g, b] = self.decode_shared(words[0]);
            return [r, g, b, components[3]];
        }
        let word_bits = self.texture.words.scalar.bits();
        for channel in 0..format.channels() {
            let (bit, bits) = format.field(channel);
            let word = self.cast(Scalar::U32, words[(bit / word_bits) as usize]);
            let component = format.component(channel);
            let field = Field {
                shift: bit % word_bits,
                bits,
                word_bits,
            };
            let decoded = self.decode_channel(format.coding_of(component), word, field);
            components[component as usize] = decoded;
        }
        components
    }

    /// The number that a channel's code in a word stands for.
    pub(super) fn decode_channel(&mut self, coding: Coding, word: Value, field: Field) -> Value {
        let bits = field.bits;
        match coding {
            Coding::Unorm => {
                let code = self.unsigned(word, field);
                let code = self.cast(Scalar::I32, code);
                let number = self.cast(Scalar::F32, code);
                let most = self.f32(((1u64 << bits) - 1) as f32);
                self.op(Op::Div, &[number, most])
            }
            Coding::Snorm => {
                let code = self.signed(word, field);
                let number = self.cast(Scalar::F32, code);
                let most = self.f32(((1u64 << (bits - 1)) - 1) as f32);
                let number = self.op(Op::Div, &[number, most]);
                let least = self.f32(-1.0);
                self.op(Op::Fmax, &[number, least])
            }
            Coding::Uint => self.unsigned(word, field),
            Coding::Sint => self.signed(word, field),
            Coding::Float if bits == 16 => {
                let code = self.unsigned(word, field);
                let code = self.cast(Scalar::U16, code);
                let half = self.bits(Scalar::F16, code);
                self.cast(Scalar::F32, half)
            }
            Coding::Float if bits < 16 => {
                let code = self.unsigned(word, field);
                let left = self.u32(15 - bits);
                let code = self.op(Op::Shl, &[code, left]);
                let code = self.cast(Scalar::U16, code);
                let half = self.bits(Scalar::F16, code);
                self.cast(Scalar::F32, half)
            }
            Coding::Float => self.bits(Scalar::F32, word),
            Coding::Srgb => {
                let code = self.unsigned(word, field);
                let decoded = self.table(|tables| tables.decoded);
                self.b.load(Place::element(decoded, code))
            }
        }
    }

    pub(super) fn table(&self, of: impl Fn(Tables) -> Memory) -> Memory {
        match self.tables {
            Some(tables) => of(tables),
            None => unreachable!("the tables are there where a format is sRGB"),
        }
    }

    pub(super) fn unsigned(&mut self, word: Value, field: Field) -> Value {
        let Field {
            shift,
            bits,
            word_bits,
        } = field;
        let mut code = word;
        if shift > 0 {
            let shift = self.u32(shift);
            code = self.op(Op::Shr, &[code, shift]);
        }
        if shift + bits < word_bits {
            let mask = self.u32(u32::MAX >> (32 - bits));
            code = self.op(Op::And, &[code, mask]);
        }
        code
    }

    pub(super) fn signed(&mut self, word: Value, Field { shift, bits, .. }: Field) -> Value {
        let mut code = self.cast(Scalar::I32, word);
        let (left, right) = (32 - bits - shift, 32 - bits);
        for (op, by) in [(Op::Shl, left), (Op::Shr, right)] {
            if by > 0 {
                let by = self.i32(by as i32);
                code = self.op(op, &[code, by]);
            }
        }
        code
    }

    /// The words of a texel of these components, as [`PixelFormat::encode`] makes them.
    pub(super) fn encode(&mut self, components: [Value; 4]) -> Vec<Value> {
        let format = self.texture.format;
        if format == PixelFormat::Rgb9E5Float {
            let [r, g, b, _] = components;
            return vec![self.encode_shared([r, g, b])];
        }
        let Words { scalar, count } = self.texture.words;
        let mut words: Vec<Option<Value>> = vec![None; count.into()];
        for channel in 0..format.channels() {
            let component = format.component(channel);
            let number = components[component as usize];
            let (bit, bits) = format.field(channel);
            let mut code = self.encode_channel(format.coding_of(component), number, bits);
            if bit % scalar.bits() > 0 {
                let shift = self.u32(bit % scalar.bits());
                code = self.op(Op::Shl, &[code, shift]);
            }
            let word = &mut words[(bit / scalar.bits()) as usize];
            *word = Some(match *word {
                Some(lower) => self.b.op(Op::Or, Imm::None, &[lower, code]),
                None => code,
            });
        }
        let words: Vec<Value> = words.into_iter().flatten().collect();
        words.into_iter().map(|w| self.cast(scalar, w)).collect()
    }

    /// The code of a number, as `u32` with no bits beyond it.
    pub(super) fn encode_channel(&mut self, coding: Coding, number: Value, bits: u32) -> Value {
        let mask = u32::MAX >> (32 - bits);
        match coding {
            Coding::Unorm => {
                let least = self.f32(0.0);
                let above = self.op(Op::Fmax, &[number, least]);
                let code = self.scaled(above, mask as f32);
                self.cast(Scalar::U32, code)
            }
            Coding::Snorm => {
                let zero = self.f32(0.0);
                let is_number = self.op(Op::Eq, &[number, number]);
                let number = self.select(is_number, number, zero);
                let least = self.f32(-1.0);
                let above = self.op(Op::Fmax, &[number, least]);
                let code = self.scaled(above, (mask >> 1) as f32);
                self.masked(code, mask)
            }
            Coding::Uint if bits == 32 => number,
            Coding::Uint => {
                let most = self.u32(mask);
                self.op(Op::Min, &[number, most])
            }
            Coding::Sint if bits == 32 => self.cast(Scalar::U32, number),
            Coding::Sint => {
                let most = (mask >> 1) as i32;
                let (least, most) = (self.i32(-most - 1), self.i32(most));
                let above = self.op(Op::Max, &[number, least]);
                let code = self.op(Op::Min, &[above, most]);
                self.masked(code, mask)
            }
            Coding::Float if bits == 16 => {
                let half = self.cast(Scalar::F16, number);
                let code = self.bits(Scalar::U16, half);
                self.cast(Scalar::U32, code)
            }
            Coding::Float if bits < 16 => {
                let zero = self.f32(0.0);
                let positive = self.op(Op::Fmax, &[number, zero]);
                let half = self.cast(Scalar::F16, positive);
                let code = self.bits(Scalar::U16, half);
                let code = self.cast(Scalar::U32, code);
                let right = self.u32(15 - bits);
                self.op(Op::Shr, &[code, right])
            }
            Coding::Float => self.bits(Scalar::U32, number),
            Coding::Srgb => self.nearest_code(number),
        }
    }

    /// `rint(fmin(number, 1) * most)` as `i32`.
    pub(super) fn scaled(&mut self, number: Value, most: f32) -> Value {
        let one = self.f32(1.0);
        let most = self.f32(most);
        let number = self.op(Op::Fmin, &[number, one]);
        let number = self.op(Op::Mul, &[number, most]);
        let number = self.op(Op::Rint, &[number]);
        self.cast(Scalar::I32, number)
    }

    pub(super) fn masked(&mut self, code: Value, mask: u32) -> Value {
        let code = self.cast(Scalar::U32, code);
        let mask = self.u32(mask);
        self.op(Op::And, &[code, mask])
    }

    /// `2^n` as an `f32`, of `n + 127` as an integer.
    pub(super) fn power(&mut self, biased: Value) -> Value {
        let fraction_bits = self.u32(23);
        let bits = self.op(Op::Shl, &[biased, fraction_bits]);
        self.bits(Scalar::F32, bits)
    }

    /// As [`invar_texture::shared::decode`].
    pub(super) fn decode_shared(&mut self, word: Value) -> [Value; 3] {
        let exponent = self.u32(27);
        let exponent = self.op(Op::Shr, &[word, exponent]);
        let bias = self.u32(103);
        let biased = self.op(Op::Add, &[exponent, bias]);
        let scale = self.power(biased);
        [0, 9, 18].map(|shift| {
            let field = Field {
                shift,
                bits: 9,
                word_bits: 32,
            };
            let fraction = self.unsigned(word, field);
            let fraction = self.cast(Scalar::I32, fraction);
            let fraction = self.cast(Scalar::F32, fraction);
            self.op(Op::Mul, &[fraction, scale])
        })
    }

    /// As [`invar_texture::shared::encode`].
    pub(super) fn encode_shared(&mut self, numbers: [Value; 3]) -> Value {
        let (zero, largest) = (self.f32(0.0), self.f32(shared::LARGEST));
        let clamped = numbers.map(|number| {
            let above = self.op(Op::Fmax, &[number, zero]);
            self.op(Op::Fmin, &[above, largest])
        });
        let [r, g, b] = clamped;
        let most = self.op(Op::Fmax, &[g, b]);
        let most = self.op(Op::Fmax, &[r, most]);
        let bits = self.bits(Scalar::U32, most);
        let fraction_bits = self.u32(23);
        let exponent = self.op(Op::Shr, &[bits, fraction_bits]);
        // max(exponent - 127, -16) + 16
        let least = self.u32(111);
        let exponent = self.op(Op::Max, &[exponent, least]);
        let exponent = self.op(Op::Sub, &[exponent, least]);
        let fraction = self.shared_fraction(most, exponent);
        let full = self.u32(512);
        let carries = self.op(Op::Eq, &[fraction, full]);
        let carry = self.cast(Scalar::U32, carries);
        let exponent = self.op(Op::Add, &[exponent, carry]);
        let place = self.u32(27);
        let mut word = self.op(Op::Shl, &[exponent, place]);
        for (number, shift) in clamped.into_iter().zip([0, 9, 18]) {
            let mut fraction = self.shared_fraction(number, exponent);
            if shift > 0 {
                let shift = self.u32(shift);
                fraction = self.op(Op::Shl, &[fraction, shift]);
            }
            word = self.op(Op::Or, &[word, fraction]);
        }
        word
    }

    /// `floor(fma(number, 2^(24 - exponent), 0.5))` as `u32`.
    pub(super) fn shared_fraction(&mut self, number: Value, exponent: Value) -> Value {
        let bias = self.u32(151);
        let biased = self.op(Op::Sub, &[bias, exponent]);
        let scale = self.power(biased);
        let half = self.f32(0.5);
        let fraction = self.op(Op::Fma, &[number, scale, half]);
        let fraction = self.op(Op::Floor, &[fraction]);
        let fraction = self.cast(Scalar::I32, fraction);
        self.cast(Scalar::U32, fraction)
    }

    /// How many of the 255 thresholds are not above a number: found by halves.
    pub(super) fn nearest_code(&mut self, number: Value) -> Value {
        let thresholds = self.table(|tables| tables.thresholds);
        let mut code = self.u32(0);
        for step in [128, 64, 32, 16, 8, 4, 2, 1] {
            let last = self.u32(step - 1);
            let index = self.op(Op::Add, &[code, last]);
            let threshold = self.b.load(Place::element(thresholds, index));
            let reached = self.op(Op::Ge, &[number, threshold]);
            let step = self.u32(step);
            let next = self.op(Op::Add, &[code, step]);
            code = self.select(reached, next, code);
        }
        code
    }
}
