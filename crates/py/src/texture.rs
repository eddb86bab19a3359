//! Textures by the words of the text form: types, functions, formats and sizes.

use invar::{PixelFormat, TextureShape};
use invar_ir::texture::{Sampler, stored};
use invar_ir::{Sampling, Scalar, TextureAccess, TextureFunction, TextureType};
use invar_texture::MAX_EXTENT;
use pyo3::prelude::*;

use crate::convert::{refuse, scalar};

/// A format, and how many texels: in a row, rows, and slices; and levels, and samples, and whether it is a volume.
#[derive(FromPyObject)]
pub struct Size(String, u32, u32, u32, u32, u32, bool);

impl Size {
    /// The shape of a texture of that size.
    pub fn shape(&self) -> PyResult<TextureShape> {
        let Size(name, width, height, depth, levels, samples, is_volume) = self;
        let format = format(name)?;
        // Only a buffer of texels can be so long.
        let flat = match height {
            1 if *width > MAX_EXTENT => TextureShape::buffer(format, *width),
            _ => TextureShape::new(format, *width, *height),
        };
        let flat = flat.map_err(refuse)?;
        let deep = match is_volume {
            true => TextureShape::volume(format, *width, *height, *depth),
            false => flat.with_depth(*depth),
        };
        let deep = deep.map_err(refuse)?;
        let several = match samples {
            1 => deep,
            samples => deep.with_samples(*samples).map_err(refuse)?,
        };
        several.with_levels(*levels).map_err(refuse)
    }
}

/// The format of that name.
pub fn format(name: &str) -> PyResult<PixelFormat> {
    PixelFormat::from_name(name).ok_or_else(|| {
        let known: Vec<&str> = PixelFormat::ALL.iter().map(|f| f.name()).collect();
        let known = known.join(", ");
        refuse(format!(
            "there is no pixel format {name:?}; there is {known}"
        ))
    })
}

/// The bytes of a texel of a colour.
#[pyfunction]
pub fn encoded(name: &str, colour: [f64; 4]) -> PyResult<Vec<u8>> {
    Ok(format(name)?.encoded(colour))
}

/// What arrays of texels of a format are made of: the scalar that lies in memory, and how many of them a texel has; and
/// the slices, rows and columns of each level. Refuses sizes that no texture has.
#[pyfunction]
pub fn texels(size: Size) -> PyResult<(String, u32, Vec<[u32; 3]>)> {
    let shape = size.shape()?;
    let levels = (0..shape.levels).map(|level| {
        let [width, height, depth] = shape.level_extents(level);
        [depth, height, width]
    });
    let stored: Scalar = stored(shape.format);
    Ok((stored.to_string(), shape.format.codes(), levels.collect()))
}

/// A PNG file of the first slice of a texture; `None` of formats that no screen shows.
#[pyfunction]
pub fn png(size: Size, bytes: &[u8]) -> PyResult<Option<Vec<u8>>> {
    Ok(invar_command::as_shown(size.shape()?, bytes))
}

/// The bytes of a texture with its levels behind the first made of it.
#[pyfunction]
pub fn fill_levels(size: Size, mut bytes: Vec<u8>) -> PyResult<Vec<u8>> {
    let shape = size.shape()?;
    if bytes.len() as u64 != shape.size_bytes() {
        return Err(refuse("these are not the bytes of the texture"));
    }
    invar_texture::fill_levels(shape, &mut bytes).map_err(refuse)?;
    Ok(bytes)
}

/// The type of a texture parameter.
pub fn parameter(dimension: &str, component: &str, access: &str) -> PyResult<TextureType> {
    let found = TextureType::arrangement(dimension);
    let (dimension, is_depth) =
        found.ok_or_else(|| refuse(format!("there is no {dimension:?}")))?;
    let found = TextureAccess::ALL.into_iter().find(|a| a.name() == access);
    let access = found.ok_or_else(|| {
        let known = TextureAccess::ALL.map(|a| format!("{:?}", a.name()));
        let known = known.join(", ");
        refuse(format!(
            "there is no access {access:?} to a texture; there is {known}"
        ))
    })?;
    let ty = TextureType::new(dimension, scalar(component)?, access);
    let ty = TextureType { is_depth, ..ty };
    match ty.defect() {
        Some(defect) => Err(refuse(defect)),
        None => Ok(ty),
    }
}

/// The words of a sampler, or a parameter that is one, as the builder gave it.
#[derive(FromPyObject)]
pub enum SamplerWords {
    /// Words.
    Constant(Vec<String>),
    /// The kind of memory, and which.
    Param(u8, u32),
}

/// The sampler of some words.
pub fn sampler(words: &[String]) -> PyResult<Sampler> {
    words.iter().try_fold(Sampler::default(), |sampler, word| {
        let with = sampler.with(word);
        with.ok_or_else(|| refuse(format!("no sampler has {word:?}")))
    })
}

/// A function, with how it samples and the component that it gathers.
pub fn function(name: &str, sampling: Sampling, component: u8) -> PyResult<TextureFunction> {
    let all = [
        TextureFunction::Read,
        TextureFunction::Write,
        TextureFunction::Sample(sampling),
        TextureFunction::Width,
        TextureFunction::Height,
        TextureFunction::Depth,
        TextureFunction::ArraySize,
        TextureFunction::Gather {
            component,
            sampling,
        },
        TextureFunction::Levels,
        TextureFunction::Samples,
        TextureFunction::SampleCompare(sampling),
        TextureFunction::GatherCompare(sampling),
        TextureFunction::Fence,
    ];
    let found = all.into_iter().find(|f| f.name() == name);
    found.ok_or_else(|| refuse(format!("there is no function {name:?} of a texture")))
}
