//! Textures by the words of the text form: types, functions, formats and sizes.

use invar::{PixelFormat, TextureShape};
use invar_ir::texture::{Sampler, component, stored};
use invar_ir::{Dimension, Scalar, TextureAccess, TextureFunction, TextureType};
use pyo3::prelude::*;

use crate::convert::{refuse, scalar};

/// A format, and how many texels: in a row, rows, and slices.
#[derive(FromPyObject)]
pub struct Size(String, u32, u32, u32);

impl Size {
    /// The shape of a texture of that size.
    pub fn shape(&self) -> PyResult<TextureShape> {
        let Size(name, width, height, depth) = self;
        let format = PixelFormat::from_name(name);
        let format = format.ok_or_else(|| {
            let known: Vec<&str> = PixelFormat::ALL.iter().map(|f| f.name()).collect();
            let known = known.join(", ");
            refuse(format!(
                "there is no pixel format {name:?}; there is {known}"
            ))
        })?;
        let flat = TextureShape::new(format, *width, *height).map_err(refuse)?;
        flat.with_depth(*depth).map_err(refuse)
    }
}

/// What arrays of texels of a format are made of: the scalar that lies in memory, how many of them a texel has, and
/// the component type of kernels' textures. Refuses sizes that no texture has.
#[pyfunction]
pub fn texels(size: Size) -> PyResult<(String, u32, String)> {
    let format = size.shape()?.format;
    let (stored, component): (Scalar, Scalar) = (stored(format), component(format));
    Ok((stored.to_string(), format.codes(), component.to_string()))
}

/// The type of a texture parameter.
pub fn parameter(dimension: &str, component: &str, access: &str) -> PyResult<TextureType> {
    let found = Dimension::ALL.into_iter().find(|d| d.name() == dimension);
    let dimension = found.ok_or_else(|| refuse(format!("there is no {dimension:?}")))?;
    let found = TextureAccess::ALL.into_iter().find(|a| a.name() == access);
    let access = found.ok_or_else(|| {
        let known = TextureAccess::ALL.map(|a| format!("{:?}", a.name()));
        let known = known.join(", ");
        refuse(format!(
            "there is no access {access:?} to a texture; there is {known}"
        ))
    })?;
    let ty = TextureType::new(dimension, scalar(component)?, access);
    match ty.defect() {
        Some(defect) => Err(refuse(defect)),
        None => Ok(ty),
    }
}

/// A function, with the words of its sampler and the component that it gathers.
pub fn function(name: &str, sampler: &[String], component: u8) -> PyResult<TextureFunction> {
    let mut words = sampler.iter();
    let sampler = words.try_fold(Sampler::default(), |sampler, word| {
        let with = sampler.with(word);
        with.ok_or_else(|| refuse(format!("no sampler has {word:?}")))
    })?;
    let all = [
        TextureFunction::Read,
        TextureFunction::Write,
        TextureFunction::Sample(sampler),
        TextureFunction::Width,
        TextureFunction::Height,
        TextureFunction::Depth,
        TextureFunction::ArraySize,
        TextureFunction::Gather { component, sampler },
    ];
    let found = all.into_iter().find(|f| f.name() == name);
    found.ok_or_else(|| refuse(format!("there is no function {name:?} of a texture")))
}
