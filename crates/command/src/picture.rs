//! Pictures: PNG files as textures, and textures as PNG files.
//!
//! A picture is read into the format of the texture that it is for, where none is said into `rgba8unorm`, or
//! `rgba16unorm` of a picture of 16 bits. Grey and palettes are written out, a missing alpha is opaque, and what the
//! format has no channel for is left out. Written are textures of one, two or four channels of 8 or 16 bits without a
//! sign: as grey, as red and green without blue, and as colours with alpha.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use invar_texture::{Coding, PixelFormat, TextureShape};

use crate::files::{Destination, FileError};

/// Whether a file of that name is a picture.
pub fn is_picture(path: &Path) -> bool {
    path.extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("png"))
}

/// Names of files that are pictures, but no PNG files.
const OTHERS: [&str; 11] = [
    "avif", "bmp", "gif", "heic", "jpeg", "jpg", "ppm", "tga", "tif", "tiff", "webp",
];

/// Whether a file of that name is a picture that is neither read nor written.
pub fn is_other_picture(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default();
    OTHERS.iter().any(|e| extension.eq_ignore_ascii_case(e))
}

/// The texture that a picture is, where nothing else is said: of as many bits as the picture.
///
/// # Errors
/// The file cannot be read, is not a PNG, or has a size that no texture has.
pub fn shape(path: &Path) -> Result<TextureShape, FileError> {
    let reader = open(path)?;
    let info = reader.info();
    let format = match info.bit_depth {
        png::BitDepth::Sixteen => PixelFormat::Rgba16Unorm,
        _at_most_eight => PixelFormat::Rgba8Unorm,
    };
    TextureShape::new(format, info.width, info.height).map_err(|why| FileError::new(path, why))
}

/// Its texels, in the format of a texture of its size.
///
/// # Errors
/// As [`shape`], and for a damaged file, another size, and a format that no picture fits.
pub fn texels(path: &Path, shape: TextureShape) -> Result<Vec<u8>, FileError> {
    let mut reader = open(path)?;
    let (width, height) = (reader.info().width, reader.info().height);
    if shape.levels > 1 {
        let why = format!(
            "is a picture of one level, and the texture has {levels}: leave out `levels {levels}`, or give the texels of \
             all, level after level, as a .npy file",
            levels = shape.levels
        );
        return Err(FileError::new(path, why));
    }
    let all = u64::from(width) * u64::from(height);
    if width != shape.width || all != shape.texels() {
        let [columns, rows, _] = shape.extents();
        let slices = shape.texels() / (u64::from(columns) * u64::from(rows)).max(1);
        let several = match slices {
            0 | 1 => String::new(),
            several => format!("x{several}"),
        };
        let why = format!(
            "is a picture of {width}x{height}, and the texture one of {columns}x{rows}{several}"
        );
        return Err(FileError::new(path, why));
    }
    let format = shape.format;
    if !is_readable(format) {
        return Err(FileError::new(
            path,
            format!(
                "is a picture, which is not read as {}: its numbers are from 0 to 1, for unorm, snorm and float, or \
                 codes without a sign, for uint",
                format.name()
            ),
        ));
    }
    let size = (reader.output_buffer_size())
        .ok_or_else(|| FileError::new(path, "is a picture that no memory holds"))?;
    let mut pixels = vec![0; size];
    let frame = reader
        .next_frame(&mut pixels)
        .map_err(|e| damaged(path, &e))?;
    let mut samples = frame.color_type.samples();
    let bits = match frame.bit_depth {
        png::BitDepth::Sixteen => 16,
        _eight => 8,
    };
    pixels.truncate(frame.buffer_size());
    if frame.color_type == png::ColorType::Indexed {
        pixels = from_palette(path, reader.info(), &frame, &pixels)?;
        samples = 4;
    }
    let mut bytes = Vec::with_capacity(shape.size_bytes() as usize);
    let mut texel = vec![0; format.texel_bytes() as usize];
    for pixel in pixels.chunks_exact(samples * bits as usize / 8) {
        encode(colour(pixel, samples, bits), bits, format, &mut texel);
        bytes.extend_from_slice(&texel);
    }
    if bytes.len() as u64 != shape.size_bytes() {
        return Err(FileError::new(
            path,
            "is a damaged PNG file: it has too few pixels",
        ));
    }
    Ok(bytes)
}

/// The colours with alpha of rows of pixels that are numbers of a palette's colours. A number that the palette has not
/// is damage: the decoder would take it for black.
fn from_palette(
    path: &Path,
    info: &png::Info<'_>,
    frame: &png::OutputInfo,
    rows: &[u8],
) -> Result<Vec<u8>, FileError> {
    let damaged = |why: &str| FileError::new(path, format!("is a damaged PNG file: {why}"));
    let Some(palette) = info.palette.as_deref() else {
        return Err(damaged("it has no palette"));
    };
    if !palette.len().is_multiple_of(3) {
        let bytes = palette.len();
        return Err(damaged(&format!(
            "its palette has {bytes} bytes, of which a colour has 3"
        )));
    }
    let alphas = info.trns.as_deref().unwrap_or_default();
    let bits = frame.bit_depth as usize;
    let mut colours = Vec::new();
    for (row, line) in rows.chunks_exact(frame.line_size).enumerate() {
        for column in 0..frame.width as usize {
            let at = column * bits;
            // The first of a byte's pixels is in its high bits.
            let number = line[at / 8] >> (8 - bits - at % 8) & (0xffu8 >> (8 - bits));
            let number = usize::from(number);
            let Some(colour) = palette.get(3 * number..3 * number + 3) else {
                return Err(damaged(&format!(
                    "its pixel at column {column} of row {row} has colour {number} of a palette of {}",
                    palette.len() / 3
                )));
            };
            colours.extend_from_slice(colour);
            colours.push(alphas.get(number).copied().unwrap_or(u8::MAX));
        }
    }
    Ok(colours)
}

/// Whether a picture's codes have a meaning in a format.
fn is_readable(format: PixelFormat) -> bool {
    match format.coding() {
        Coding::Unorm | Coding::Snorm | Coding::Float | Coding::Srgb => true,
        Coding::Uint => !format.is_packed(),
        Coding::Sint => false,
    }
}

/// The codes of red, green, blue and alpha of a pixel: grey, grey with alpha, colours, or colours with alpha.
fn colour(pixel: &[u8], samples: usize, bits: u32) -> [u32; 4] {
    let code = |sample: usize| match bits {
        // The high byte is first.
        16 => u32::from(pixel[2 * sample]) << 8 | u32::from(pixel[2 * sample + 1]),
        _eight => pixel[sample].into(),
    };
    let opaque = (1 << bits) - 1;
    match samples {
        1 => [code(0), code(0), code(0), opaque],
        2 => [code(0), code(0), code(0), code(1)],
        3 => [code(0), code(1), code(2), opaque],
        _four => [code(0), code(1), code(2), code(3)],
    }
}

/// Writes a texel of codes of so many bits. Integers and sRGB have codes of their own, of which the nearest is taken, of
/// wider integers the same; everything else stands for numbers.
fn encode(colour: [u32; 4], bits: u32, format: PixelFormat, texel: &mut [u8]) {
    if matches!(format.coding(), Coding::Uint | Coding::Srgb) {
        let size = format.bits() as usize / 8;
        for (channel, place) in (0..).zip(texel.chunks_exact_mut(size)) {
            let code = colour[format.component(channel) as usize];
            let code = match (bits, format.bits()) {
                (16, 8) => (code * 255 + 32_767) / 65_535,
                _as_wide => code,
            };
            place.copy_from_slice(&code.to_le_bytes()[..size]);
        }
        return;
    }
    let most = ((1u32 << bits) - 1) as f32;
    format.encode(colour.map(|code| (code as f32 / most).to_bits()), texel);
}

fn open(path: &Path) -> Result<png::Reader<BufReader<File>>, FileError> {
    let file = File::open(path).map_err(|e| FileError::io(path, &e))?;
    let mut decoder = png::Decoder::new(BufReader::new(file));
    let header = decoder.read_header_info();
    let colours = header.map_err(|e| damaged(path, &e))?.color_type;
    decoder.set_transformations(match colours {
        // They are looked up here.
        png::ColorType::Indexed => png::Transformations::IDENTITY,
        _written_out => png::Transformations::EXPAND,
    });
    decoder.read_info().map_err(|e| damaged(path, &e))
}

fn damaged(path: &Path, error: &png::DecodingError) -> FileError {
    let why = match error {
        png::DecodingError::IoError(e) if e.kind() != std::io::ErrorKind::UnexpectedEof => {
            return FileError::io(path, e);
        }
        png::DecodingError::IoError(_) => "it ends too early".to_string(),
        png::DecodingError::LimitsExceeded => {
            return FileError::new(path, "is a picture too large to be read");
        }
        png::DecodingError::Format(_) | png::DecodingError::Parameter(_) => {
            let text = error.to_string();
            match () {
                () if text.contains("signature") => {
                    return FileError::new(path, "is not a PNG file");
                }
                () if text.starts_with("CRC error") => {
                    format!("the checksum of its {}does not fit", part_named(&text))
                }
                () if text.starts_with("Corrupt deflate") => {
                    "its pixels are not compressed as they should be".to_string()
                }
                () if text.starts_with("IDAT or fDAT chunk does not") => {
                    "it has too few pixels".to_string()
                }
                () if text.starts_with("IDAT or fdAT chunk is missing") => {
                    "it has no pixels".to_string()
                }
                () if text.starts_with("Invalid image dimensions") => {
                    return FileError::new(
                        path,
                        "is a picture without pixels: a texture has 1 at least",
                    );
                }
                () if text.contains("ChunkType") => {
                    format!("its {}is not where or what it should be", part_named(&text))
                }
                () if text.contains("chunk") || text.starts_with("Chunk") => {
                    "its parts are not what or where they should be".to_string()
                }
                () => text.trim_end_matches('.').to_lowercase(),
            }
        }
    };
    FileError::new(path, format!("is a damaged PNG file: {why}"))
}

/// The chunk that the decoder's sentence is about, such as `IDAT part `; nothing where it names none.
fn part_named(text: &str) -> String {
    let name = text.split_once("type: ").map(|(_, rest)| rest);
    match name.and_then(|rest| rest.split_once(',')) {
        Some((name, _)) => format!("{name} part "),
        None => String::new(),
    }
}

/// How a format is written, if it can be.
///
/// # Errors
/// Why it cannot.
pub fn kind(format: PixelFormat) -> Result<(png::ColorType, png::BitDepth), String> {
    let depth = match (format.bits(), format.coding()) {
        (8, Coding::Unorm | Coding::Srgb | Coding::Uint) => png::BitDepth::Eight,
        (16, Coding::Unorm | Coding::Uint) => png::BitDepth::Sixteen,
        _other => {
            return Err(format!(
                "PNG files have no {}: give the texture a format of 8 or 16 bits without a sign, or write \
                 it to a .npy file",
                format.name()
            ));
        }
    };
    // Those whose channels share words have been refused.
    let colours = match format.channels() {
        1 => png::ColorType::Grayscale,
        2 => png::ColorType::Rgb,
        _four => png::ColorType::Rgba,
    };
    Ok((colours, depth))
}

/// Writes a texture of these bytes as a picture.
///
/// # Errors
/// The format is none of a picture's, or the file cannot be written.
pub fn write(
    destination: &Destination,
    path: &Path,
    shape: TextureShape,
    bytes: &[u8],
) -> Result<(), FileError> {
    let (colours, depth) = kind(shape.format).map_err(|why| FileError::new(path, why))?;
    let size = (shape.format.bits() / 8) as usize;
    let channels = shape.format.channels() as usize;
    let mut pixels = Vec::with_capacity(bytes.len());
    for texel in bytes.chunks_exact(size * channels) {
        let mut channels_in_order = vec![0; texel.len()];
        for (channel, code) in texel.chunks_exact(size).enumerate() {
            let at = shape.format.component(channel as u32) as usize * size;
            let place = &mut channels_in_order[at..at + size];
            place.copy_from_slice(code);
            // Numbers of 16 bits have the high byte first there.
            place.reverse();
        }
        pixels.extend_from_slice(&channels_in_order);
        if channels == 2 {
            // There is no blue.
            pixels.extend_from_slice(&[0; 2][..size]);
        }
    }
    let file = encoded(colours, depth, [shape.width, shape.height], &pixels);
    let file = file.map_err(|e| FileError::new(path, format!("cannot be written: {e}")))?;
    destination.write(&[&file])
}

/// The first slice of a texture of these bytes as a PNG file of colours of 8 bits with alpha, for screens; `None` of
/// formats that these do not show: integers, and those below zero.
pub fn as_shown(shape: TextureShape, bytes: &[u8]) -> Option<Vec<u8>> {
    let format = shape.format;
    let to = match format.coding() {
        Coding::Unorm | Coding::Float => PixelFormat::Rgba8Unorm,
        Coding::Srgb => PixelFormat::Rgba8UnormSrgb,
        Coding::Snorm | Coding::Uint | Coding::Sint => return None,
    };
    let count = shape.width as usize * shape.height as usize;
    let mut pixels = vec![0; count * 4];
    let texels = bytes.chunks_exact(format.texel_bytes() as usize);
    for (texel, pixel) in texels.zip(pixels.chunks_exact_mut(4)) {
        let mut colour = format.decode(texel);
        if format.channels() == 1 {
            colour = [colour[0], colour[0], colour[0], colour[3]];
        }
        to.encode(colour, pixel);
    }
    let size = [shape.width, shape.height];
    encoded(png::ColorType::Rgba, png::BitDepth::Eight, size, &pixels).ok()
}

/// A PNG file of these pixels, of so many columns and rows.
fn encoded(
    colours: png::ColorType,
    depth: png::BitDepth,
    [width, height]: [u32; 2],
    pixels: &[u8],
) -> Result<Vec<u8>, png::EncodingError> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(colours);
    encoder.set_depth(depth);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()?;
    Ok(file)
}
