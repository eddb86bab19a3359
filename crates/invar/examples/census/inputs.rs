//! Inputs that are made up, and results that are compared.

use invar::wgsl::Resource;
use invar::{PixelFormat, TextureShape, f16};
use invar_ir::text::data::random_scalar;
use invar_ir::texture::{Compare, Dimension, Filter, Mip, Sampler, TextureType, stored};
use invar_ir::{ElementType, InstKind, Kernel, Module, ParamKind, Scalar, Type};

use crate::direct::Held;

/// Elements of a buffer of no fixed length.
const ELEMENTS: u32 = 1024;

/// What one parameter is.
#[derive(Clone)]
pub enum Kind {
    Buffer(ElementType),
    Texture(TextureType, TextureShape),
    Sampler(Sampler),
}

/// What one parameter holds.
#[derive(Clone)]
pub struct Input {
    pub kind: Kind,
    pub bytes: Vec<u8>,
    pub writable: bool,
    pub uniform: bool,
}

impl Input {
    /// What its bytes are elements of: of a texture the channels of texels.
    pub fn element(&self) -> ElementType {
        match &self.kind {
            Kind::Buffer(element) => element.clone(),
            Kind::Texture(_, shape) => Type::Scalar(stored(shape.format)).into(),
            Kind::Sampler(_) => Type::Scalar(Scalar::U32).into(),
        }
    }

    /// What a host binds for it.
    pub fn held(&self) -> Held {
        match &self.kind {
            Kind::Buffer(_) => Held::Buffer {
                bytes: self.bytes.clone(),
                uniform: self.uniform,
            },
            Kind::Texture(ty, shape) => Held::Texture {
                ty: *ty,
                shape: *shape,
                bytes: self.bytes.clone(),
            },
            Kind::Sampler(sampler) => Held::Sampler(*sampler),
        }
    }
}

/// Small numbers, so that what is an index or a count is a likely one.
fn made_up(module: &Module, element: &ElementType, count: u32, seed: u64) -> Vec<u8> {
    let Some(extent) = element.extent(&module.structs) else {
        return Vec::new();
    };
    let mut bytes = vec![0; (extent.size_bytes * u64::from(count)) as usize];
    let locations = element.locations(&module.structs);
    let mut number = 0;
    for chunk in bytes.chunks_mut(extent.size_bytes as usize) {
        for (offset, scalar) in &locations {
            let mut bits = random_scalar(*scalar, seed, number).bits;
            if scalar.is_integer() {
                bits %= 64;
            }
            number += 1;
            let size = scalar.size_bytes() as usize;
            let at = *offset as usize;
            chunk[at..at + size].copy_from_slice(&bits.to_le_bytes()[..size]);
        }
    }
    bytes
}

/// A texture of that type: of the format that a shader's variable says, or of one that can be filtered.
fn texture(ty: TextureType, format: Option<PixelFormat>) -> Result<TextureShape, String> {
    let format = format.unwrap_or(match (ty.is_depth, ty.component) {
        (true, _) => PixelFormat::Depth32Float,
        (false, Scalar::F32 | Scalar::F16) => PixelFormat::Rgba16Float,
        (false, Scalar::I32 | Scalar::I16) => PixelFormat::Rgba8Sint,
        (false, _unsigned) => PixelFormat::Rgba8Uint,
    });
    let several = match ty.access.memory().can_write() {
        true => 1,
        false => 3,
    };
    match ty.dimension {
        Dimension::D1 => TextureShape::new(format, 64, 1),
        Dimension::D2 => TextureShape::new(format, 32, 16)?.with_levels(several),
        Dimension::D2Array => TextureShape::new(format, 32, 16)?
            .with_depth(4)?
            .with_levels(several),
        Dimension::D3 => TextureShape::volume(format, 16, 16, 8)?.with_levels(several),
        Dimension::D2Ms => TextureShape::new(format, 16, 16)?.with_samples(4),
        Dimension::Cube => TextureShape::new(format, 16, 16)?
            .with_depth(6)?
            .with_levels(several),
        Dimension::CubeArray => TextureShape::new(format, 16, 16)?
            .with_depth(12)?
            .with_levels(several),
        Dimension::D1Array | Dimension::Buffer | Dimension::D2MsArray => {
            Err(format!("WGSL has no {}", ty.dimension.name()))
        }
    }
}

/// Whether a kernel compares by a sampler.
fn compares(module: &Module, kernel: &Kernel, sampler: &str) -> bool {
    let mut found = false;
    kernel.for_each_inst(&mut |inst| {
        if let InstKind::Texture { function, .. } = &inst.kind
            && let Some(sampling) = function.sampling()
            && let Some(memory) = sampling.sampler.param()
            && let Some(info) = module.memory(kernel, memory)
        {
            found |= **info.name == *sampler && function.name().contains("compare");
        }
    });
    found
}

/// An input for each parameter.
///
/// # Errors
/// What a parameter is that no shader has.
pub fn inputs(
    module: &Module,
    kernel: &Kernel,
    resources: &[Resource],
) -> Result<Vec<Input>, String> {
    let all = kernel.params.iter().enumerate().map(|(number, param)| {
        let mut of = resources
            .iter()
            .filter(|r| r.params.contains(&param.name.to_string()));
        let resource = of.next();
        let count = resource.and_then(|r| match r.head_bytes {
            Some(_) if r.params.first().map(String::as_str) == Some(&param.name) => Some(1),
            Some(_) => None,
            None => r.length,
        });
        let (kind, writable, uniform) = match &param.kind {
            ParamKind::Buffer { access, element } => {
                (Kind::Buffer(element.clone()), access.can_write(), false)
            }
            ParamKind::Constant { element } => (Kind::Buffer(element.clone()), false, true),
            ParamKind::Texture(ty) => {
                let shape = texture(*ty, resource.and_then(|r| r.format))?;
                let writes = ty.access.memory().can_write();
                (Kind::Texture(*ty, shape), writes, false)
            }
            ParamKind::Sampler => {
                let compares = compares(module, kernel, &param.name);
                let sampler = Sampler {
                    filter: Filter::Linear,
                    mip: Mip::Linear,
                    compare: compares.then_some(Compare::LessEqual),
                    ..Sampler::default()
                };
                (Kind::Sampler(sampler), false, false)
            }
            ParamKind::Threadgroup { .. } | ParamKind::Scalar { .. } => {
                return Err(format!("`{}` is not a variable of a shader", param.name));
            }
        };
        let mut input = Input {
            kind,
            bytes: Vec::new(),
            writable,
            uniform,
        };
        let count = match &input.kind {
            Kind::Buffer(_) => count.unwrap_or(ELEMENTS),
            Kind::Texture(_, shape) => {
                let each = stored(shape.format).size_bytes();
                (shape.size_bytes() / each) as u32
            }
            Kind::Sampler(_) => 0,
        };
        input.bytes = made_up(module, &input.element(), count, number as u64);
        Ok(input)
    });
    all.collect()
}

/// How two results compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Likeness {
    Equal,
    /// But for the rounding of floats.
    Close,
    Different,
}

impl Likeness {
    pub fn name(self) -> &'static str {
        match self {
            Likeness::Equal => "equal",
            Likeness::Close => "close",
            Likeness::Different => "differs",
        }
    }
}

fn float(scalar: Scalar, bits: u64) -> Option<f64> {
    match scalar {
        Scalar::F32 => Some(f32::from_bits(bits as u32).into()),
        Scalar::F16 => Some(f16::from_bits(bits as u16).to_f64()),
        Scalar::F64 => Some(f64::from_bits(bits)),
        _integer => None,
    }
}

/// `coarse`: devices filter texels by weights of few bits.
fn likeness_of(
    scalar: Scalar,
    code: Option<PixelFormat>,
    coarse: bool,
    a: u64,
    b: u64,
) -> Likeness {
    if a == b {
        return Likeness::Equal;
    }
    let (Some(a), Some(b)) = (float(scalar, a), float(scalar, b)) else {
        // A number is rounded to a code.
        let iterations = code.is_some_and(|format| format.name().contains("norm"));
        let apart = if coarse { 2 } else { 1 };
        let is_close = iterations && a.abs_diff(b) <= apart;
        return match is_close {
            true => Likeness::Close,
            false => Likeness::Different,
        };
    };
    let bound = match (coarse, scalar) {
        (true, _) | (false, Scalar::F16) => 1e-2,
        (false, _) => 1e-4,
    };
    if a.is_nan() && b.is_nan() {
        Likeness::Equal
    } else if (a - b).abs() <= bound * a.abs().max(b.abs()).max(1e-2) {
        Likeness::Close
    } else {
        Likeness::Different
    }
}

/// How results compare with those wanted, and the place of the first that differs most.
pub fn compare(
    module: &Module,
    kernel: &Kernel,
    inputs: &[Input],
    wanted: &[Vec<u8>],
    found: &[Vec<u8>],
) -> (Likeness, String) {
    let mut worst = (Likeness::Equal, String::new());
    let coarse = inputs.iter().any(|i| matches!(i.kind, Kind::Sampler(_)));
    for (number, input) in inputs.iter().enumerate().filter(|(_, i)| i.writable) {
        let code = match &input.kind {
            Kind::Texture(_, shape) => Some(shape.format),
            Kind::Buffer(_) | Kind::Sampler(_) => None,
        };
        let element = input.element();
        let size = element.extent(&module.structs);
        let size = size.map_or(1, |e| e.size_bytes.max(1)) as usize;
        let locations = element.locations(&module.structs);
        let pairs = wanted[number]
            .chunks(size)
            .zip(found[number].chunks(size))
            .enumerate();
        for (index, (a, b)) in pairs.filter(|(_, (a, b))| a != b) {
            for (offset, scalar) in &locations {
                let bits = |of: &[u8]| {
                    let mut bits = [0; 8];
                    let size = scalar.size_bytes() as usize;
                    let at = *offset as usize;
                    bits[..size].copy_from_slice(&of[at..at + size]);
                    u64::from_le_bytes(bits)
                };
                let (a, b) = (bits(a), bits(b));
                let likeness = likeness_of(*scalar, code, coarse, a, b);
                if likeness > worst.0 {
                    let shown = |bits| match float(*scalar, bits) {
                        Some(number) => number.to_string(),
                        None => bits.to_string(),
                    };
                    let name = &kernel.params[number].name;
                    let (a, b) = (shown(a), shown(b));
                    let place = format!("{name}[{index}] at byte {offset}: {a}, found {b}");
                    worst = (likeness, place);
                }
            }
        }
    }
    worst
}
