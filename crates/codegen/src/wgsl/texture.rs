//! Textures: WGSL's own types, and functions of theirs.
//!
//! Coordinates, elements and levels are compared, as mathematical integers (B4), with what there is before a texel is
//! reached: beyond it WGSL promises no value. WGSL has no samplers of the source: one that the kernel says is a
//! variable, which the host binds as the comment above it says ([`Bound::Sampler`]). The format of a texture that is
//! written stands in its type, so the options give it; others have any.
//!
//! How exactly samples mix texels is the device's: A9 leaves that to `ieee-float`.
//!
//! Deliberately absent, and refused by name, what WGSL does not have: atomics on texels; arrays of rows, rows that may
//! be long, and arrays of several samples; components of 16 bits; levels and faces that are written; texels of cubes;
//! samples of integers, of rows of a level, and of depths of a computed level; pixel coordinates and borders of samplers.

use invar_ir::texture::{Address, Coordinates, Mip, Sampler};
use invar_ir::{
    Diagnostic, Dimension, Inst, InstKind, Kernel, Memory, ParamKind, Rule, SamplerSource, Scalar,
    Span, TextureAccess, TextureFunction, TextureOperands, TextureType, Value,
};
use invar_texture::PixelFormat;

use super::bindings::{Places, attributes};
use super::interface::{Binding, Bound, WgslOptions};
use super::writer::Writer;

/// The formats of textures that are written.
const WRITTEN: [PixelFormat; 17] = [
    PixelFormat::Rgba8Unorm,
    PixelFormat::Rgba8Snorm,
    PixelFormat::Rgba8Uint,
    PixelFormat::Rgba8Sint,
    PixelFormat::Bgra8Unorm,
    PixelFormat::Rgba16Uint,
    PixelFormat::Rgba16Sint,
    PixelFormat::Rgba16Float,
    PixelFormat::R32Uint,
    PixelFormat::R32Sint,
    PixelFormat::R32Float,
    PixelFormat::Rg32Uint,
    PixelFormat::Rg32Sint,
    PixelFormat::Rg32Float,
    PixelFormat::Rgba32Uint,
    PixelFormat::Rgba32Sint,
    PixelFormat::Rgba32Float,
];
/// Those of textures that are read too.
const READ_AND_WRITTEN: [PixelFormat; 3] = [
    PixelFormat::R32Uint,
    PixelFormat::R32Sint,
    PixelFormat::R32Float,
];

fn component(ty: TextureType) -> &'static str {
    match ty.component {
        Scalar::I32 => "i32",
        Scalar::U32 => "u32",
        _float => "f32",
    }
}

/// What follows `texture_` in the names of an arrangement's types.
fn arrangement(dimension: Dimension) -> Option<&'static str> {
    Some(match dimension {
        Dimension::D1 => "1d",
        Dimension::D2 => "2d",
        Dimension::D2Array => "2d_array",
        Dimension::D3 => "3d",
        Dimension::Cube => "cube",
        Dimension::CubeArray => "cube_array",
        Dimension::D2Ms => "multisampled_2d",
        Dimension::D1Array | Dimension::D2MsArray | Dimension::Buffer => return None,
    })
}

/// WGSL's spelling of a texture's type; or why there is none.
fn spelled(ty: TextureType, format: Option<PixelFormat>, name: &str) -> Result<String, String> {
    let Some(arranged) = arrangement(ty.dimension) else {
        return Err(format!("WGSL has no `{}`", ty.name()));
    };
    if !matches!(ty.component, Scalar::F32 | Scalar::I32 | Scalar::U32) {
        return Err(format!(
            "WGSL's textures have components of f32, i32 and u32, not {}",
            ty.component
        ));
    }
    if ty.is_depth {
        return Ok(format!("texture_depth_{arranged}"));
    }
    if !ty.access.memory().can_write() {
        return Ok(format!("texture_{arranged}<{}>", component(ty)));
    }
    if ty.dimension.is_cube() {
        return Err(format!("WGSL writes no `{}`", ty.name()));
    }
    let Some(format) = format else {
        let such = match ty.component {
            Scalar::U32 => PixelFormat::Rgba8Uint,
            Scalar::I32 => PixelFormat::Rgba8Sint,
            _float => PixelFormat::Rgba8Unorm,
        };
        return Err(format!(
            "WGSL names the format of a texture that is written: say it, such as {name}={}",
            such.name()
        ));
    };
    let (access, known): (_, &[PixelFormat]) = match ty.access {
        TextureAccess::ReadWrite => ("read_write", &READ_AND_WRITTEN),
        _written => ("write", &WRITTEN),
    };
    if !known.contains(&format) {
        let names: Vec<&str> = known.iter().map(|format| format.name()).collect();
        return Err(format!(
            "WGSL without extensions has no `{access}` texture of {}, but of {}",
            format.name(),
            names.join(", ")
        ));
    }
    if invar_ir::texture::component(format) != ty.component {
        return Err(format!(
            "its components are {}, and those of {} are {}",
            ty.component,
            format.name(),
            invar_ir::texture::component(format)
        ));
    }
    let format = format.name();
    Ok(format!("texture_storage_{arranged}<{format}, {access}>"))
}

fn format_of(options: &WgslOptions, number: usize) -> Option<PixelFormat> {
    let given = options.texture_formats.iter();
    given
        .copied()
        .find_map(|(of, format)| (of == number).then_some(format))
}

/// Whether a sampler of the launch compares, and whether it does not.
fn compares(kernel: &Kernel, sampler: Memory) -> (bool, bool) {
    let (mut compares, mut mixes) = (false, false);
    kernel.for_each_inst(&mut |inst| {
        if let InstKind::Texture { function, .. } = &inst.kind
            && function.sampler().and_then(SamplerSource::param) == Some(sampler)
        {
            compares |= function.compares();
            mixes |= !function.compares();
        }
    });
    (compares, mixes)
}

/// What of a kernel's textures and samplers WGSL does not have.
pub(super) fn refused(kernel: &Kernel, options: &WgslOptions) -> Vec<Diagnostic> {
    let mut errors = Vec::new();
    let mut refuse = |span: Span, message: String| {
        errors.push(Diagnostic::error(Rule::UnsupportedFeature, span, message));
    };
    for (number, param) in kernel.params.iter().enumerate() {
        let name = &param.name;
        match param.kind {
            ParamKind::Texture(ty) => {
                if let Err(why) = spelled(ty, format_of(options, number), name) {
                    refuse(param.span, format!("parameter `%{name}`: {why}"));
                }
            }
            ParamKind::Sampler => {
                if compares(kernel, Memory::Param(number as u32)) == (true, true) {
                    let why =
                        "WGSL's samplers either compare or do not, and this one is used for both";
                    refuse(param.span, format!("parameter `%{name}`: {why}"));
                }
            }
            ParamKind::Buffer { .. }
            | ParamKind::Constant { .. }
            | ParamKind::Scalar { .. }
            | ParamKind::Threadgroup { .. } => {}
        }
    }
    kernel.for_each_inst(&mut |inst| match &inst.kind {
        InstKind::Atomic { op, place, .. } if kernel.texture(place.memory).is_some() => {
            let message = format!(
                "`{}` on a texel: WGSL has no atomics on textures",
                op.name()
            );
            refuse(inst.span, message);
        }
        InstKind::Texture {
            texture,
            function,
            args,
        } => {
            if let Some(ty) = kernel.texture(*texture)
                && let Some(why) = lacks(ty, *function, args)
            {
                refuse(inst.span, format!("`{}`: {why}", function.name()));
            }
        }
        _no_texel => {}
    });
    errors
}

/// Why WGSL does not have a function of a texture, if it does not.
fn lacks(ty: TextureType, function: TextureFunction, args: &[Value]) -> Option<&'static str> {
    let TextureOperands { level, .. } = function.operands(ty.dimension, args);
    let is_written = ty.access.memory().can_write();
    if is_written && (level.is_some() || function == TextureFunction::Levels) {
        return Some("WGSL's textures that are written have one level");
    }
    if function == TextureFunction::Read && ty.dimension.is_cube() {
        return Some("WGSL reads no texels of cubes");
    }
    let sampling = function.sampling()?;
    if ty.component != Scalar::F32 && matches!(function, TextureFunction::Sample(_)) {
        return Some("WGSL samples textures of f32");
    }
    if ty.dimension == Dimension::D1 {
        return Some("WGSL samples no level of a row, and a kernel has no other samples");
    }
    let sampler = sampling.sampler.constant();
    let has_level = level.is_some() && sampler.is_none_or(|sampler| sampler.mip != Mip::None);
    if has_level && ty.is_depth {
        return Some("WGSL samples and compares no depths between levels");
    }
    let sampler = function.needed_sampler(ty.dimension)?.constant()?;
    match (sampler.coordinates, sampler.address) {
        (Coordinates::Pixel, _) => Some("WGSL's samplers have no pixel coordinates"),
        (_, Address::ClampToZero | Address::ClampToBorder) => {
            Some("WGSL's samplers have no borders")
        }
        _known => None,
    }
}

impl Writer<'_> {
    /// The declarations of textures and samplers.
    pub(super) fn texture_variables(
        &self,
        places: &mut Places,
        bindings: &mut Vec<Binding>,
    ) -> String {
        let mut text = String::new();
        let mut declare = |name: &str, ty: &str, above: &str, (place, bound, writable)| {
            text.push_str(&format!("\n{above}{} var {name}: {ty};", attributes(place)));
            bindings.push(Binding {
                place,
                bound,
                writable,
            });
        };
        for (number, param) in self.kernel.params.iter().enumerate() {
            let memory = Memory::Param(number as u32);
            let (ty, writable) = match param.kind {
                ParamKind::Texture(ty) => {
                    let spelled = spelled(ty, format_of(self.options, number), &param.name);
                    let spelled = spelled.unwrap_or_else(|_| unreachable!("it has been refused"));
                    (spelled, ty.access.memory().can_write())
                }
                ParamKind::Sampler => match compares(self.kernel, memory) {
                    (true, _) => ("sampler_comparison".to_string(), false),
                    _plain => ("sampler".to_string(), false),
                },
                ParamKind::Buffer { .. }
                | ParamKind::Constant { .. }
                | ParamKind::Scalar { .. }
                | ParamKind::Threadgroup { .. } => continue,
            };
            let bound = (places.of_param(number), Bound::Param(number), writable);
            declare(&self.names_of_memory[&memory], &ty, "", bound);
        }
        for (name, sampler) in &self.samplers {
            let ty = match sampler.compare {
                Some(_) => "sampler_comparison",
                None => "sampler",
            };
            let words: Vec<_> = sampler.words().collect();
            let above = format!("// {}\n", words.join(" "));
            let bound = (places.free(), Bound::Sampler(*sampler), false);
            declare(name, ty, &above, bound);
        }
        text
    }

    /// The name of a sampler.
    fn sampler(&mut self, source: SamplerSource) -> String {
        let sampler = match source {
            SamplerSource::Param(memory) | SamplerSource::NormalizedParam(memory) => {
                return self.names_of_memory[&memory].clone();
            }
            // Of what chooses no level, samples are of the first.
            SamplerSource::Constant(sampler) => sampler,
        };
        let known = self.samplers.iter().find(|(_, known)| *known == sampler);
        if let Some((name, _)) = known {
            return name.clone();
        }
        let name = self.names.unique_object("sampled");
        self.samplers.push((name.clone(), sampler));
        name
    }

    pub(super) fn texture(
        &mut self,
        inst: &Inst,
        texture: Memory,
        function: TextureFunction,
        args: &[Value],
    ) {
        let Some(ty) = self.kernel.texture(texture) else {
            unreachable!("the verifier passes only textures");
        };
        let name = self.names_of_memory[&texture].clone();
        let TextureOperands { at, level, value } = function.operands(ty.dimension, args);
        let (text, guards) = match function {
            TextureFunction::Width => self.size_of_level(&name, ty.dimension, 0, level),
            TextureFunction::Height => self.size_of_level(&name, ty.dimension, 1, level),
            TextureFunction::Depth => self.size_of_level(&name, ty.dimension, 2, level),
            TextureFunction::ArraySize => (format!("textureNumLayers({name})"), Vec::new()),
            TextureFunction::Levels => (format!("textureNumLevels({name})"), Vec::new()),
            TextureFunction::Samples => (format!("textureNumSamples({name})"), Vec::new()),
            TextureFunction::Read => {
                let (place, guards) = self.texel(&name, ty.dimension, at, level);
                // What is not written too has levels, or samples, which its coordinates name.
                let of_level = match level {
                    _ if ty.access.memory().can_write() || ty.dimension.has_samples() => "",
                    Some(_) => "",
                    None => ", 0u",
                };
                (format!("textureLoad({name}, {place}{of_level})"), guards)
            }
            TextureFunction::Write => {
                let value = value.unwrap_or_else(|| unreachable!("a write has a value"));
                let (place, guards) = self.texel(&name, ty.dimension, at, None);
                let value = self.value(value);
                let guards = guards.join(" && ");
                let write = format!("textureStore({name}, {place}, {value});");
                self.if_exists(format!("if ({guards}) {{ {write} }}"));
                return;
            }
            // A thread's reads see what it wrote (O1).
            TextureFunction::Fence => return,
            TextureFunction::Sample(_)
            | TextureFunction::SampleCompare(_)
            | TextureFunction::Gather { .. }
            | TextureFunction::GatherCompare(_) => self.sample(&name, ty, function, args),
        };
        let Some(result) = inst.results.first() else {
            unreachable!("only writes and fences give nothing");
        };
        if guards.is_empty() {
            self.bind(*result, text);
            return;
        }
        // It is zero where nothing is there.
        let variable = self.variable(*result, None);
        let guards = guards.join(" && ");
        self.line(format!("if ({guards}) {{ {variable} = {text}; }}"));
    }

    fn sample(
        &mut self,
        name: &str,
        ty: TextureType,
        function: TextureFunction,
        args: &[Value],
    ) -> (String, Vec<String>) {
        let TextureOperands { at, level, value } = function.operands(ty.dimension, args);
        let Some(sampling) = function.sampling() else {
            unreachable!("only samples come here");
        };
        let axes = ty.dimension.axes();
        let (floats, element) = at.split_at(axes);
        let floats: Vec<String> = floats.iter().map(|part| self.value(*part)).collect();
        let needed = function.needed_sampler(ty.dimension);
        let sampler = self.sampler(needed.unwrap_or(sampling.sampler));
        let mut parts = vec![
            name.to_string(),
            sampler,
            format!("vec{axes}<f32>({})", floats.join(", ")),
        ];
        let mut guards = Vec::new();
        for element in element {
            let element = self.index(*element);
            guards.push(format!("{element} < textureNumLayers({name})"));
            parts.push(element);
        }
        let constant: Option<Sampler> = sampling.sampler.constant();
        let is_of_first = constant.is_some_and(|sampler| sampler.mip == Mip::None);
        let called = match function {
            TextureFunction::SampleCompare(_) => "textureSampleCompareLevel",
            TextureFunction::GatherCompare(_) => "textureGatherCompare",
            TextureFunction::Gather { component, .. } => {
                if !ty.is_depth {
                    parts.insert(0, component.to_string());
                }
                "textureGather"
            }
            _sample => {
                parts.push(match level {
                    Some(level) if !is_of_first => self.value(level),
                    _first if ty.is_depth => "0u".to_string(),
                    _first => "0.0".to_string(),
                });
                "textureSampleLevel"
            }
        };
        parts.extend(value.map(|reference| self.value(reference)));
        let [x, y, z] = sampling.offset;
        if sampling.offset != [0; 3] {
            parts.push(match ty.dimension {
                Dimension::D3 => format!("vec3<i32>({x}, {y}, {z})"),
                _flat => format!("vec2<i32>({x}, {y})"),
            });
        }
        (format!("{called}({})", parts.join(", ")), guards)
    }

    /// How many texels there are along an axis, of a level if one is named.
    fn extent(name: &str, dimension: Dimension, axis: usize, level: Option<&str>) -> String {
        let level = level.map_or(String::new(), |level| format!(", {level}"));
        let size = format!("textureDimensions({name}{level})");
        match dimension {
            Dimension::D1 => size,
            _several => format!("{size}.{}", ["x", "y", "z"][axis]),
        }
    }

    /// A size, and what must hold for it to be there.
    fn size_of_level(
        &mut self,
        name: &str,
        dimension: Dimension,
        axis: usize,
        level: Option<Value>,
    ) -> (String, Vec<String>) {
        let (level, guards) = self.level(name, level);
        (
            Self::extent(name, dimension, axis, level.as_deref()),
            guards,
        )
    }

    fn level(&mut self, name: &str, level: Option<Value>) -> (Option<String>, Vec<String>) {
        let level = level.map(|level| self.index(level));
        let guard = level
            .as_ref()
            .map(|level| format!("{level} < textureNumLevels({name})"));
        (level, guard.into_iter().collect())
    }

    /// The operands that lead to a texel, and what must hold for it to be there.
    fn texel(
        &mut self,
        name: &str,
        dimension: Dimension,
        at: &[Value],
        level: Option<Value>,
    ) -> (String, Vec<String>) {
        let (level, mut guards) = self.level(name, level);
        let mut parts = Vec::new();
        for (counts, value) in dimension.counted().iter().zip(at) {
            let part = self.index(*value);
            let extent = match (counts, dimension) {
                (2, Dimension::D2Array) => format!("textureNumLayers({name})"),
                (2, Dimension::D2Ms) => format!("textureNumSamples({name})"),
                (axis, _) => Self::extent(name, dimension, *axis, level.as_deref()),
            };
            guards.push(format!("{part} < {extent}"));
            parts.push(part);
        }
        let mut place = match (dimension, &parts[..]) {
            (Dimension::D3, [x, y, z]) => format!("vec3<u32>({x}, {y}, {z})"),
            (_, [x, y, rest @ ..]) => {
                let mut all = vec![format!("vec2<u32>({x}, {y})")];
                all.extend(rest.iter().cloned());
                all.join(", ")
            }
            (_, one) => one.join(", "),
        };
        if let Some(level) = level {
            place.push_str(", ");
            place.push_str(&level);
        }
        (place, guards)
    }
}
