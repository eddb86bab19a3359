//! Pictures: PNG files as textures, and textures as PNG files.
//!
//! A picture is read as a texture of `rgba8unorm`, whatever it is in the file: 16 bits are cut to 8, grey and
//! palettes written out, a missing alpha is 255. Written are textures of one, two or four channels of 8 or 16 bits
//! without a sign: as grey, grey with alpha, and colours with alpha.

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

/// The texture that a picture is.
///
/// # Errors
/// The file cannot be read, is no PNG, or has a size that no texture has.
pub fn shape(path: &Path) -> Result<TextureShape, FileError> {
    let reader = open(path)?;
    let info = reader.info();
    TextureShape::new(PixelFormat::Rgba8Unorm, info.width, info.height)
        .map_err(|why| FileError::new(path, why))
}

/// Its texels.
///
/// # Errors
/// As [`shape`], and for a damaged file.
pub fn texels(path: &Path) -> Result<Vec<u8>, FileError> {
    let shape = shape(path)?;
    let mut reader = open(path)?;
    let size = (reader.output_buffer_size())
        .ok_or_else(|| FileError::new(path, "is a picture that no memory holds"))?;
    let mut pixels = vec![0; size];
    let frame = reader
        .next_frame(&mut pixels)
        .map_err(|e| damaged(path, &e))?;
    let of = |grey: &[u8], alpha: u8| [grey[0], grey[0], grey[0], alpha];
    let used = &pixels[..frame.buffer_size().min(size)];
    let bytes: Vec<u8> = match frame.color_type {
        png::ColorType::Rgba => used.to_vec(),
        png::ColorType::Rgb | png::ColorType::Indexed => used
            .chunks_exact(3)
            .flat_map(|p| [p[0], p[1], p[2], 255])
            .collect(),
        png::ColorType::Grayscale => used.chunks_exact(1).flat_map(|p| of(p, 255)).collect(),
        png::ColorType::GrayscaleAlpha => used.chunks_exact(2).flat_map(|p| of(p, p[1])).collect(),
    };
    if bytes.len() as u64 != shape.size_bytes() {
        return Err(FileError::new(
            path,
            "is a damaged PNG file: it has too few pixels",
        ));
    }
    Ok(bytes)
}

fn open(path: &Path) -> Result<png::Reader<BufReader<File>>, FileError> {
    let file = File::open(path).map_err(|e| FileError::io(path, &e))?;
    let mut decoder = png::Decoder::new(BufReader::new(file));
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    decoder.read_info().map_err(|e| damaged(path, &e))
}

fn damaged(path: &Path, error: &png::DecodingError) -> FileError {
    match error {
        png::DecodingError::IoError(e) if e.kind() != std::io::ErrorKind::UnexpectedEof => {
            FileError::io(path, e)
        }
        other => FileError::new(path, format!("is no PNG file, or a damaged one: {other}")),
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
        2 => png::ColorType::GrayscaleAlpha,
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
    }
    let mut file = Vec::new();
    let unwritable =
        |e: png::EncodingError| FileError::new(path, format!("cannot be written: {e}"));
    let mut encoder = png::Encoder::new(&mut file, shape.width, shape.height);
    encoder.set_color(colours);
    encoder.set_depth(depth);
    let mut writer = encoder.write_header().map_err(unwritable)?;
    writer.write_image_data(&pixels).map_err(unwritable)?;
    writer.finish().map_err(unwritable)?;
    destination.write(&[&file])
}
