//! Textures as buffers: for targets that have no way of their own to reach texels as the reference machine does.
//!
//! Each texture parameter becomes a buffer of words, one, two or four for a texel (a byte, 16 or 32 bits), and the
//! kernel gets one more parameter for it behind all others, in the order of the textures: a `u32x3` of its width,
//! height and depth. Functions become the formulas of `invar-texture` written out, for the pixel formats and the numbers
//! of levels that a dispatch gives. Loads and stores never leave the buffer (B1, B2); what is beyond an edge, but in the buffer, conditions
//! keep away. What is made is free
//! of products that are added to something, so that contraction changes nothing of it (A8).
//!
//! Samples are in `samples`, those of cubes in `cubes`, what texels are made of in `formats`, and all else in `writer`.
//!
//! A barrier that orders textures orders device memory instead, which is more: on a device nothing tells.

mod cubes;
mod formats;
mod samples;
mod writer;

use std::sync::Arc;

use invar_ir::requires::Comparison;
use invar_ir::rewrite::rewrite;
use invar_ir::texture::atomic_coordinates;
use invar_ir::{
    Diagnostics, Inst, InstKind, Kernel, KernelBuilder, LaunchNumber, Memory, Module, Param,
    ParamKind, SamplerSource, Scalar, Spaces, TextureFunction, TextureOperands, TextureType, Type,
    Value, ValueInfo,
};
use invar_texture::{PixelFormat, Sampler, TextureShape};

use writer::{Tables, Texture, Words, Writer};

/// What is said of a texture where a kernel is written as text of a shading language by itself.
pub const NOT_WRITTEN: &str =
    "textures are written for a pixel format, which only a dispatch gives; run the kernel instead";

/// What a kernel is written out for of each texture and sampler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// A texture.
    Texture {
        /// What a texel is.
        format: PixelFormat,
        /// How many levels it has.
        levels: u32,
        /// How many samples a texel has.
        samples: u32,
    },
    /// A sampler.
    Sampler(Sampler),
}

impl From<TextureShape> for Form {
    fn from(shape: TextureShape) -> Form {
        Form::Texture {
            format: shape.format,
            levels: shape.levels,
            samples: shape.samples,
        }
    }
}

impl Form {
    const fn format(self) -> Option<PixelFormat> {
        match self {
            Form::Texture { format, .. } => Some(format),
            Form::Sampler(_) => None,
        }
    }

    const fn sampler(self) -> Option<Sampler> {
        match self {
            Form::Texture { .. } => None,
            Form::Sampler(sampler) => Some(sampler),
        }
    }
}

/// Writes out the functions of the textures of a verified module's kernel, for the form of each: by the places of
/// the parameters, none where a parameter is neither a texture nor a sampler. Of a kernel without textures nothing changes.
///
/// # Errors
/// What the builder found wrong with what this built, which is nothing.
pub fn expand(
    module: Module,
    kernel: usize,
    forms: &[Option<Form>],
) -> Result<Module, Diagnostics> {
    if !module.kernels[kernel].has_textures() {
        return Ok(module);
    }
    let mut module = module;
    let tables = Tables::add(&mut module, forms);
    let found = &mut module.kernels[kernel];
    // Every dispatch is asked what is required of it before; a buffer has no such size.
    found.requires.retain(|r| {
        let numbers = r.comparison().map(Comparison::numbers).unwrap_or_default();
        !numbers
            .iter()
            .any(|n| matches!(n, LaunchNumber::Texels(..) | LaunchNumber::Levels(_)))
    });
    let mut textures: Vec<Option<Texture>> = Vec::new();
    for (number, form) in forms.iter().enumerate() {
        let texture = match (&found.params[number].kind, form) {
            (ParamKind::Texture(ty), Some(form @ Form::Texture { .. })) => {
                let ty = *ty;
                declare(found, number, *form, ty)
            }
            (ParamKind::Sampler, Some(Form::Sampler(_))) => {
                declare_code(found, number);
                None
            }
            _no_texture => None,
        };
        textures.push(texture);
    }
    rewrite(module, kernel, &mut |b, inst| {
        if let InstKind::Barrier { scope, spaces } = inst.kind {
            if !spaces.contains(Spaces::TEXTURE) {
                return None;
            }
            let others = Spaces(spaces.0 & !Spaces::TEXTURE.0);
            b.barrier(scope, others.with(Spaces::DEVICE));
            return Some(Default::default());
        }
        call(b, inst, &textures, (forms, tables))
    })
}

/// Makes a buffer of a texture parameter, and adds the parameter of its size.
fn declare(kernel: &mut Kernel, number: usize, form: Form, ty: TextureType) -> Option<Texture> {
    let Form::Texture {
        format,
        levels,
        samples,
    } = form
    else {
        return None;
    };
    let words = Words::of(format);
    kernel.params[number].kind = ParamKind::Buffer {
        access: ty.access.memory(),
        element: words.scalar.into(),
    };
    let name: Arc<str> =
        unused_name(kernel, &format!("{}_size", kernel.params[number].name)).into();
    let value = Value(kernel.values.len() as u32);
    kernel.values.push(ValueInfo {
        ty: Type::Vector(Scalar::U32, 3),
        name: Some(name.clone()),
    });
    let span = kernel.params[number].span;
    let kind = ParamKind::Scalar { value };
    kernel.params.push(Param {
        name,
        kind,
        binding: None,
        span,
    });
    Some(Texture {
        memory: Memory::Param(number as u32),
        size: kernel.params.len() - 1,
        format,
        levels,
        samples,
        ty,
        words,
    })
}

/// Makes numbers of a sampler parameter, which are its code: nothing uses them.
fn declare_code(kernel: &mut Kernel, number: usize) {
    let value = Value(kernel.values.len() as u32);
    kernel.values.push(ValueInfo {
        ty: Type::Vector(Scalar::U32, 3),
        name: Some(kernel.params[number].name.clone()),
    });
    kernel.params[number].kind = ParamKind::Scalar { value };
}

/// A name that nothing in the kernel has.
fn unused_name(kernel: &Kernel, wish: &str) -> String {
    let values = kernel.values.iter().filter_map(|v| v.name.as_deref());
    let params = kernel.params.iter().map(|p| &*p.name);
    let allocs = kernel.allocs.iter().map(|a| &*a.name);
    let taken: std::collections::HashSet<&str> = values.chain(params).chain(allocs).collect();
    let mut name = wish.to_string();
    while taken.contains(&*name) {
        name.push('_');
    }
    name
}

/// Builds what a function of a texture, or an atomic on its texels, comes to.
fn call(
    b: &mut KernelBuilder,
    inst: &Inst,
    textures: &[Option<Texture>],
    (forms, tables): (&[Option<Form>], Option<Tables>),
) -> invar_ir::rewrite::Replacement {
    let memory = match &inst.kind {
        InstKind::Texture { texture, .. } => *texture,
        InstKind::Atomic { place, .. } => place.memory,
        _no_texel => return None,
    };
    let Memory::Param(number) = memory else {
        return None;
    };
    let texture = textures.get(number as usize).copied().flatten()?;
    let ParamKind::Scalar { value: size } = b.kernel().params[texture.size].kind else {
        unreachable!("the size of a texture is a value")
    };
    let mut writer = Writer {
        b,
        texture,
        size,
        tables,
        level: None,
        compare: None,
        offset: [0; 3],
    };
    match &inst.kind {
        InstKind::Atomic {
            op,
            place,
            args,
            order,
            scope,
        } => {
            let at = atomic_coordinates(place);
            writer.atomic(*op, &at, args, (*order, *scope))
        }
        InstKind::Texture { function, args, .. } => {
            let result = function_of(&mut writer, *function, args, forms);
            Some(result.into_iter().collect())
        }
        _no_texel => None,
    }
}

/// Builds what a function of a texture comes to; gives what it gives.
fn function_of(
    writer: &mut Writer<'_>,
    function: TextureFunction,
    args: &[Value],
    forms: &[Option<Form>],
) -> Option<Value> {
    let given = |source| match source {
        SamplerSource::Constant(sampler) => sampler,
        SamplerSource::Param(param) | SamplerSource::NormalizedParam(param) => {
            let form = match param {
                Memory::Param(place) => forms.get(place as usize).copied().flatten(),
                Memory::Alloc(_) | Memory::Constant(_) => None,
            };
            let sampler = form.and_then(Form::sampler);
            sampler.unwrap_or_else(|| unreachable!("a sampler parameter has a sampler"))
        }
    };
    let texture = writer.texture;
    let TextureOperands { at, level, value } = function.operands(texture.ty.dimension, args);
    writer.offset = function.sampling().map_or([0; 3], |s| s.offset);
    Some(match function {
        TextureFunction::Width => writer.extent_of_level(0, level),
        TextureFunction::Height => writer.extent_of_level(1, level),
        TextureFunction::Depth => writer.extent_of_level(2, level),
        TextureFunction::ArraySize => writer.elements(),
        TextureFunction::Levels => writer.u32(texture.levels),
        TextureFunction::Samples => writer.u32(texture.samples),
        TextureFunction::Gather {
            component,
            sampling,
        } => writer.gather(given(sampling.sampler), at, usize::from(component)),
        TextureFunction::Read => writer.read(at, level),
        TextureFunction::Sample(sampling) => writer.sample(given(sampling.sampler), at, level),
        TextureFunction::SampleCompare(sampling) | TextureFunction::GatherCompare(sampling) => {
            let sampler = given(sampling.sampler);
            writer.compare = sampler.compare.zip(value);
            match function {
                TextureFunction::GatherCompare(_) => writer.gather(sampler, at, 0),
                _sample => writer.sample(sampler, at, level),
            }
        }
        // Within a thread everything happens in program order as it is (O1).
        TextureFunction::Fence => return None,
        TextureFunction::Write => {
            let value = value.unwrap_or_else(|| unreachable!("a write has a value"));
            writer.write(at, level, value);
            return None;
        }
    })
}
