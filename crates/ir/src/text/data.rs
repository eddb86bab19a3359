//! The bytes that data expressions stand for, and the comparison of bytes with what is expected.
//!
//! Bytes are laid out as L3 says, little-endian; padding is 0 and never compared.

use std::fmt;

use invar_texture::TextureShape;

use super::case::{Expr, ExprKind, Tolerance};
use super::literal;
use crate::diagnostic::Diagnostic;
use crate::inst::Const;
use crate::memory_layout::{Extent, has_room};
use crate::rules::Rule;
use crate::span::Span;
use crate::texture::stored;
use crate::types::{ElementType, Scalar, StructDef};

/// The most bytes that one expression may stand for.
pub const MAX_DATA_BYTES: u64 = 1 << 30;

/// What the bytes of a file are wanted for.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// Elements of that type, as many as there are.
    Elements(ElementType),
    /// All texels of a texture.
    Texels(TextureShape),
}

/// Reads a file: its name as written and what is wanted of it, to the bytes of elements laid out as L3 says, or to
/// those of the texture, or why there are none. Whether bytes may be left behind the last whole element, which nothing
/// reaches (B4), is the reader's to say.
pub type FileReader<'a> = &'a mut dyn FnMut(&str, &Wanted) -> Result<Vec<u8>, String>;

/// The bytes of elements that an expression stands for; a scalar gives one element.
///
/// `iota` and `random` number scalars, not elements: the scalars of element 0 in the order of their
/// locations, then those of element 1, and so on.
///
/// # Errors
/// The expression does not fit the element type, is too large, or is none that has bytes of its own
/// (`reference`, `length`); or the file's reader says so.
pub fn evaluate(
    expr: &Expr,
    element: &ElementType,
    structs: &[StructDef],
    files: FileReader<'_>,
) -> Result<Vec<u8>, Diagnostic> {
    let wrong = |message: String| Diagnostic::error(Rule::TypeMismatch, expr.span, message);
    let Some(extent) = element.extent(structs).filter(|e| e.location_count > 0) else {
        let ty = element.display(structs).to_string();
        return Err(wrong(format!("there is no data of type {ty}")));
    };
    let layout = Layout {
        scalars: element.locations(structs),
        extent,
    };
    let sized = |count: u64| match count.checked_mul(extent.size_bytes) {
        Some(bytes) if bytes <= MAX_DATA_BYTES && has_room(bytes) => Ok(count),
        Some(bytes) if bytes <= MAX_DATA_BYTES => Err(Diagnostic::error(
            Rule::OutOfMemory,
            expr.span,
            format!("there is no memory for {count} elements, {bytes} bytes"),
        )),
        _ => Err(Diagnostic::error(
            Rule::LimitExceeded,
            expr.span,
            format!("{count} elements are more than {MAX_DATA_BYTES} bytes"),
        )),
    };
    // A struct may be one that no author named.
    let named = |one: &str| match element {
        ElementType::Struct(_) => one.to_string(),
        ElementType::Value(_) | ElementType::Array(..) => element.display(structs).to_string(),
    };
    match &expr.kind {
        ExprKind::Scalar(value) => match layout.scalars[..] {
            [(_, scalar)] => {
                let constant = value.as_const(scalar)?;
                Ok(layout.build(1, |_, _| constant.bits))
            }
            _ => Err(wrong(format!(
                "{} is made of {} scalars: write a list of them",
                named("an element"),
                layout.scalars.len()
            ))),
        },
        ExprKind::List(items) => {
            let per_element = layout.scalars.len();
            if items.len() % per_element != 0 {
                return Err(wrong(format!(
                    "a list of {} scalars is not a whole number of {}, of {per_element} scalars each",
                    items.len(),
                    named("elements")
                )));
            }
            let mut values = Vec::with_capacity(items.len());
            for (i, item) in items.iter().enumerate() {
                let (_, scalar) = layout.scalars[i % per_element];
                values.push(item.as_const(scalar)?.bits);
            }
            let count = sized((items.len() / per_element) as u64)?;
            Ok(layout.build(count, |index, _| values[index as usize]))
        }
        ExprKind::Random { count, seed } => {
            let count = sized(*count)?;
            Ok(layout.build(count, |index, scalar| {
                random_scalar(scalar, *seed, index).bits
            }))
        }
        ExprKind::Zeros(count) => Ok(layout.build(sized(*count)?, |_, _| 0)),
        ExprKind::Fill { count, value } => {
            let count = sized(*count)?;
            // One reading for each scalar type that is there.
            let mut bits = [0; Scalar::ALL.len()];
            for (_, scalar) in &layout.scalars {
                bits[*scalar as usize] = value.as_const(*scalar)?.bits;
            }
            Ok(layout.build(count, |_, scalar| bits[scalar as usize]))
        }
        ExprKind::Iota(count) => {
            let count = sized(*count)?;
            Ok(layout.build(count, |index, scalar| {
                literal::from_integer(scalar, index).bits
            }))
        }
        ExprKind::File(name) => files(name, &Wanted::Elements(element.clone())).map_err(wrong),
        ExprKind::Rev(inner) => {
            let mut bytes = evaluate(inner, element, structs, files)?;
            let size = extent.size_bytes as usize;
            let whole = bytes.len() / size * size;
            // In place: there may be no memory for a second copy.
            bytes[..whole].reverse();
            bytes[..whole].chunks_mut(size).for_each(<[u8]>::reverse);
            Ok(bytes)
        }
        ExprKind::Length(_) => Err(wrong(
            "`length` is for threadgroup parameters, which have no data of their own".to_string(),
        )),
        ExprKind::Sampler(_) => Err(wrong(
            "this is a sampler, but the parameter is not one".to_string(),
        )),
        ExprKind::Texture { .. } => Err(wrong(
            "this is a texture, but the parameter is not one".to_string(),
        )),
        ExprKind::Reference => Err(wrong(
            "`reference` stands only after `->`: it is what the reference machine computes"
                .to_string(),
        )),
    }
}

/// The bytes of a texture of that shape: what an expression of its [`stored`] scalars stands for, or zeros.
///
/// # Errors
/// As [`evaluate`], and if the expression does not have as many scalars as the texture.
pub fn evaluate_texture(
    shape: TextureShape,
    contents: Option<&Expr>,
    span: Span,
    files: FileReader<'_>,
) -> Result<Vec<u8>, Diagnostic> {
    let size = shape.size_bytes();
    if size > MAX_DATA_BYTES || !has_room(size) {
        let (rule, why) = match size > MAX_DATA_BYTES {
            true => (
                Rule::LimitExceeded,
                format!("{size} bytes are more than {MAX_DATA_BYTES} bytes"),
            ),
            false => (
                Rule::OutOfMemory,
                format!("there is no memory for its {size} bytes"),
            ),
        };
        let format = shape.format.with_article();
        let [width, height, depth] = shape.extents();
        let message = format!("{format} texture of {width}x{height}x{depth}: {why}");
        return Err(Diagnostic::error(rule, span, message));
    }
    let Some(contents) = contents else {
        return Ok(vec![0; size as usize]);
    };
    let bytes = match &contents.kind {
        ExprKind::File(name) => files(name, &Wanted::Texels(shape))
            .map_err(|why| Diagnostic::error(Rule::TypeMismatch, contents.span, why))?,
        _no_file => evaluate(contents, &stored(shape.format).into(), &[], files)?,
    };
    if bytes.len() as u64 != size {
        let each = stored(shape.format).size_bytes();
        let message = format!(
            "{} texture of {}x{}{} has {} numbers, found {}",
            shape.format.with_article(),
            shape.width,
            shape.height,
            match shape.levels {
                1 => String::new(),
                levels => format!(" in {levels} levels"),
            },
            size / each,
            bytes.len() as u64 / each
        );
        return Err(Diagnostic::error(
            Rule::InvalidArgument,
            contents.span,
            message,
        ));
    }
    Ok(bytes)
}

/// The scalars of an element.
struct Layout {
    scalars: Vec<(u64, Scalar)>,
    extent: Extent,
}

impl Layout {
    /// So many elements from the bits of each scalar by its number.
    fn build(&self, count: u64, mut bits: impl FnMut(u64, Scalar) -> u64) -> Vec<u8> {
        let mut bytes = vec![0; (count * self.extent.size_bytes) as usize];
        let mut number = 0;
        for element in bytes.chunks_mut(self.extent.size_bytes as usize) {
            for (offset, scalar) in &self.scalars {
                let value = bits(number, *scalar).to_le_bytes();
                let (start, size) = (*offset as usize, scalar.size_bytes() as usize);
                element[start..start + size].copy_from_slice(&value[..size]);
                number += 1;
            }
        }
        bytes
    }
}

/// Scalar number `index` of `random` with that seed.
///
/// One block of Philox4x32-10 a scalar: the counter is `index` (low word first, the upper two words
/// 0), the key is `seed` (low word first). Of the four words `w` of the block:
///
/// - integers of up to 32 bits take the low bits of `w[0]`, 64-bit ones `w[0] + w[1] * 2^32`;
/// - `bool` is the lowest bit of `w[0]`;
/// - floats are uniform in [0, 1): the upper 24 bits of `w[0]` times 2^-24 for f32, the upper 11
///   times 2^-11 for f16, the upper 8 times 2^-8 for bf16, and for f64 the upper 53 bits of
///   `w[0] + w[1] * 2^32` times 2^-53. All of these are exact.
///
/// ```
/// use invar_ir::{Scalar, text::data::random_scalar};
///
/// let value = random_scalar(Scalar::F32, 1, 0);
/// assert!(f32::from_bits(value.bits as u32) < 1.0);
/// ```
pub fn random_scalar(scalar: Scalar, seed: u64, index: u64) -> Const {
    let words = philox4x32_10(
        [index as u32, (index >> 32) as u32, 0, 0],
        [seed as u32, (seed >> 32) as u32],
    );
    let low = u64::from(words[0]);
    let both = low | u64::from(words[1]) << 32;
    let bits = match scalar {
        Scalar::Bool => low & 1,
        Scalar::I8 | Scalar::U8 => low & 0xff,
        Scalar::I16 | Scalar::U16 => low & 0xffff,
        Scalar::I32 | Scalar::U32 => low,
        Scalar::I64 | Scalar::U64 => both,
        Scalar::F16 => u64::from(half::f16::from_f32((low >> 21) as f32 / 2048.0).to_bits()),
        Scalar::BF16 => u64::from(half::bf16::from_f32((low >> 24) as f32 / 256.0).to_bits()),
        Scalar::F32 => u64::from(((low >> 8) as f32 / 16_777_216.0).to_bits()),
        Scalar::F64 => ((both >> 11) as f64 / 9_007_199_254_740_992.0).to_bits(),
    };
    Const { scalar, bits }
}

/// One block of Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
/// 1, 2, 3", 2011): ten rounds of two 32-bit products, the key raised by Weyl constants in between.
pub fn philox4x32_10(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let mut c = counter;
    let mut k = key;
    for round in 0..10 {
        if round > 0 {
            k[0] = k[0].wrapping_add(0x9e37_79b9);
            k[1] = k[1].wrapping_add(0xbb67_ae85);
        }
        let a = u64::from(c[0]) * 0xd251_1f53;
        let b = u64::from(c[2]) * 0xcd9e_8d57;
        c = [
            (b >> 32) as u32 ^ c[1] ^ k[0],
            b as u32,
            (a >> 32) as u32 ^ c[3] ^ k[1],
            a as u32,
        ];
    }
    c
}

/// How bytes differ from those expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// There are more elements or fewer.
    Length {
        /// Elements expected.
        expected: usize,
        /// Elements found.
        actual: usize,
    },
    /// Scalars differ.
    Scalars {
        /// The element of the first.
        element: u64,
        /// Which of the element's scalars it is.
        location: u64,
        /// What was expected there.
        expected: String,
        /// What is there.
        actual: String,
        /// How many scalars differ.
        count: u64,
        /// Of how many.
        total: u64,
    },
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::Length { expected, actual } => {
                let s = if *expected == 1 { "" } else { "s" };
                write!(f, "expected {expected} element{s}, found {actual}")
            }
            Mismatch::Scalars {
                element,
                location,
                expected,
                actual,
                count,
                total,
            } => {
                write!(f, "element {element}")?;
                if *location > 0 {
                    write!(f, ", scalar {location}")?;
                }
                write!(
                    f,
                    ": expected {expected}, found {actual} ({count} of {total} scalars differ)"
                )
            }
        }
    }
}

impl std::error::Error for Mismatch {}

/// Compares the bytes of elements scalar by scalar; padding does not count.
///
/// # Errors
/// The first scalar that differs, and how many do.
pub fn compare(
    tolerance: Tolerance,
    expected: &[u8],
    actual: &[u8],
    element: &ElementType,
    structs: &[StructDef],
) -> Result<(), Mismatch> {
    let scalars = element.locations(structs);
    let size = element.extent(structs).map_or(1, |e| e.size_bytes.max(1)) as usize;
    if expected.len() != actual.len() {
        return Err(Mismatch::Length {
            expected: expected.len().div_ceil(size),
            actual: actual.len().div_ceil(size),
        });
    }
    let mut first = None;
    let mut count = 0;
    let mut total = 0;
    let elements = expected.chunks_exact(size).zip(actual.chunks_exact(size));
    for (number, (e, a)) in elements.enumerate() {
        for (location, (offset, scalar)) in scalars.iter().enumerate() {
            total += 1;
            let (e, a) = (read(*scalar, e, *offset), read(*scalar, a, *offset));
            if !near(tolerance, e, a) {
                count += 1;
                first.get_or_insert((number as u64, location as u64, e, a));
            }
        }
    }
    match first {
        None => Ok(()),
        Some((element, location, e, a)) => Err(Mismatch::Scalars {
            element,
            location,
            expected: show(e),
            actual: show(a),
            count,
            total,
        }),
    }
}

/// A scalar for a message; a `bool` that is neither 0 nor 1 as its byte.
fn show(constant: Const) -> String {
    if constant.scalar == Scalar::Bool && constant.bits > 1 {
        format!("{:#04x}", constant.bits)
    } else {
        literal::print(constant)
    }
}

fn read(scalar: Scalar, bytes: &[u8], offset: u64) -> Const {
    let (start, size) = (offset as usize, scalar.size_bytes() as usize);
    let mut word = [0; 8];
    word[..size].copy_from_slice(&bytes[start..start + size]);
    Const {
        scalar,
        bits: u64::from_le_bytes(word),
    }
}

fn near(tolerance: Tolerance, expected: Const, actual: Const) -> bool {
    if expected.bits == actual.bits {
        return true;
    }
    if !expected.scalar.is_float() {
        return false;
    }
    match (literal::is_nan(expected), literal::is_nan(actual)) {
        (true, true) => return true,
        (false, false) => {}
        (true, false) | (false, true) => return false,
    }
    let (e, a) = (literal::float_value(expected), literal::float_value(actual));
    match tolerance {
        Tolerance::Exact => false,
        Tolerance::Within { .. } | Tolerance::Ulp(_) if e.is_infinite() || a.is_infinite() => false,
        Tolerance::Within { abs, rel } => (a - e).abs() <= abs + rel * e.abs(),
        Tolerance::Ulp(most) => ordinal(expected).abs_diff(ordinal(actual)) <= most,
    }
}

/// Numbers the floats of a type in the order of their values, both zeros 0.
fn ordinal(constant: Const) -> i64 {
    let sign = 1 << (constant.scalar.bits() - 1);
    let magnitude = (constant.bits & (sign - 1)) as i64;
    if constant.bits & sign == 0 {
        magnitude
    } else {
        -magnitude
    }
}
