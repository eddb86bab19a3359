//! Textures: Metal's own types, and functions of theirs.
//!
//! Coordinates, elements and levels are compared, as mathematical integers (B4), with what there is before a texel is
//! reached: beyond it Metal promises nothing. A thread's reads see what it wrote (O1): behind a write to a texture that is
//! read too stands a fence. A sampler that the kernel says is a `constexpr sampler` at the beginning of the function.
//!
//! How exactly samples mix texels is the device's: A9 leaves that to `ieee-float`.
//!
//! Deliberately absent, and refused by name: atomics on texels; samples of one dimension at an offset, and by pixel
//! coordinates that repeat or of several levels, which Metal does not have.

use std::fmt::Write as _;

use invar_ir::texture::{Address, Border, Compare, Coordinates, Filter, LodClamp, Mip, Sampler};
use invar_ir::{
    Dimension, Inst, InstKind, Kernel, Memory, ParamKind, SamplerSource, Span, TextureAccess,
    TextureFunction, TextureOperands, TextureType, Value,
};

use super::memory::both;
use super::types;
use super::writer::{Writer, bare};

/// The most textures and samplers that Metal binds to a kernel.
const MOST: [(usize, &str); 2] = [(128, "textures"), (16, "samplers")];

/// Metal's spelling of a texture's type.
pub(super) fn spelled(ty: TextureType) -> String {
    let (name, component) = (ty.name(), types::scalar(ty.component));
    format!("{name}<{component}, access::{}>", ty.access.name())
}

/// What of a kernel's textures Metal does not have.
pub(super) fn refused(kernel: &Kernel, refuse: &mut dyn FnMut(Span, String, &str)) {
    let count = |is: fn(&ParamKind) -> bool| kernel.params.iter().filter(|p| is(&p.kind)).count();
    let counts = [
        count(|kind| matches!(kind, ParamKind::Texture(_))),
        count(|kind| matches!(kind, ParamKind::Sampler)),
    ];
    for (count, (most, what)) in counts.into_iter().zip(MOST) {
        if count > most {
            let of = format!("the {what} of kernel `@{}`", kernel.name);
            refuse(kernel.span, of, &format!("Metal binds at most {most}"));
        }
    }
    kernel.for_each_inst(&mut |inst| match &inst.kind {
        InstKind::Atomic { op, place, .. } if kernel.texture(place.memory).is_some() => {
            let what = format!("`{}` on a texel", op.name());
            refuse(inst.span, what, "atomics on textures are not written");
        }
        InstKind::Texture {
            texture, function, ..
        } => {
            let Some(sampling) = function.sampling() else {
                return;
            };
            let what = || format!("`{}`", function.name());
            let dimension = kernel.texture(*texture).map(|ty| ty.dimension);
            let is_line = dimension.is_some_and(|dimension| dimension.axes() == 1);
            if is_line && sampling.offset != [0; 3] {
                refuse(inst.span, what(), "Metal has no offset of one dimension");
            }
            let sampler = sampling.sampler.constant().unwrap_or_default();
            if sampler.coordinates == Coordinates::Pixel {
                if matches!(sampler.address, Address::Repeat | Address::MirroredRepeat) {
                    let why = "Metal's pixel coordinates do not repeat";
                    refuse(inst.span, what(), why);
                }
                if !matches!(dimension, Some(Dimension::D1 | Dimension::D2)) {
                    let why =
                        "Metal's pixel coordinates are of a texture1d, a texture2d or a depth2d";
                    refuse(inst.span, what(), why);
                }
                if sampler.mip != Mip::None {
                    let why = "Metal's pixel coordinates are of the first level";
                    refuse(inst.span, what(), why);
                }
            }
        }
        _no_texel => {}
    });
}

/// A number that counts something, as `uint`, and what must hold for it to be there.
struct Counted {
    text: String,
    guard: Option<String>,
}

impl Writer<'_> {
    pub(super) fn texture(
        &mut self,
        inst: &Inst,
        texture: Memory,
        function: TextureFunction,
        args: &[Value],
    ) {
        let (Memory::Param(number), Some(ty)) = (texture, self.kernel.texture(texture)) else {
            unreachable!("the verifier passes only textures");
        };
        let name = self.param_names[number as usize].clone();
        let TextureOperands { at, level, value } = function.operands(ty.dimension, args);
        let text = match function {
            TextureFunction::Width => self.size_of_level(&name, "get_width", level),
            TextureFunction::Height => self.size_of_level(&name, "get_height", level),
            TextureFunction::Depth => self.size_of_level(&name, "get_depth", level),
            TextureFunction::ArraySize => format!("{name}.get_array_size()"),
            TextureFunction::Levels => format!("{name}.get_num_mip_levels()"),
            TextureFunction::Samples => format!("{name}.get_num_samples()"),
            TextureFunction::Read => {
                let (place, guard) = self.texel(&name, ty.dimension, at, level);
                let read = format!("{name}.read({place})");
                self.or_zero(guard, read, ty)
            }
            TextureFunction::Write => {
                let value = value.unwrap_or_else(|| unreachable!("a write has a value"));
                let (place, guard) = self.texel(&name, ty.dimension, at, level);
                let guard = both(self.may_write(texture), guard);
                let mut write = format!("{name}.write({}, {place});", self.v(value));
                if ty.access == TextureAccess::ReadWrite {
                    write = format!("{{ {write} {name}.fence(); }}");
                }
                match guard {
                    Some(guard) => self.line(&format!("if ({guard}) {write}")),
                    None => self.line(&write),
                }
                return;
            }
            // It stands behind every write.
            TextureFunction::Fence => return,
            TextureFunction::Sample(sampling)
            | TextureFunction::SampleCompare(sampling)
            | TextureFunction::GatherCompare(sampling)
            | TextureFunction::Gather { sampling, .. } => {
                let needed = function.needed_sampler(ty.dimension);
                let sampler = self.sampler(needed.unwrap_or(sampling.sampler));
                let (at, guard) = self.sampled_at(&name, ty.dimension, at);
                let mut parts = vec![sampler, at];
                parts.extend(value.map(|reference| self.v(reference)));
                parts.extend(level.map(|level| format!("metal::level({})", self.v(level))));
                let component = match function {
                    TextureFunction::Gather { component, .. } if component > 0 => Some(component),
                    _first_or_none => None,
                };
                let [x, y, z] = sampling.offset;
                // Gathers of cubes have none in front of the component.
                let has_offset = sampling.offset != [0; 3] || component.is_some();
                if has_offset && !ty.dimension.is_cube() {
                    parts.push(match ty.dimension {
                        Dimension::D3 => format!("int3({x}, {y}, {z})"),
                        _flat => format!("int2({x}, {y})"),
                    });
                }
                parts.extend(component.map(|component| {
                    format!(
                        "component::{}",
                        ["x", "y", "z", "w"][usize::from(component)]
                    )
                }));
                let method = function.name().trim_start_matches("texture_");
                let sampled = format!("{name}.{method}({})", parts.join(", "));
                let zero = match inst.results.first() {
                    Some(result) => types::zero(self.ty(*result)),
                    None => unreachable!("a sample gives a value"),
                };
                match guard {
                    Some(guard) => format!("{guard} ? {sampled} : {zero}"),
                    None => sampled,
                }
            }
        };
        if let Some(result) = inst.results.first() {
            self.define(*result, &text);
        }
    }

    /// What is read, or zeros where there is nothing.
    fn or_zero(&self, guard: Option<String>, read: String, ty: TextureType) -> String {
        match guard {
            Some(guard) => format!("{guard} ? {read} : {}", types::zero(ty.texel())),
            None => read,
        }
    }

    /// A number as `uint`, and whether it is below another.
    fn counted(&mut self, value: Value, extent: &str) -> Counted {
        let text = self.v(value);
        let text = bare(&text).to_string();
        let scalar = self.ty(value).component_scalar();
        let (wide, own) = match scalar.bits() {
            64 => (format!("ulong({text}) < ulong({extent})"), false),
            _ => (String::new(), scalar == invar_ir::Scalar::U32),
        };
        let number = match own {
            true => text,
            false => format!("uint({text})"),
        };
        let guard = match wide.is_empty() {
            true => format!("{number} < {extent}"),
            false => wide,
        };
        Counted {
            text: number,
            guard: self.has_guards().then_some(guard),
        }
    }

    fn level(&mut self, name: &str, level: Option<Value>) -> Option<Counted> {
        level.map(|level| self.counted(level, &format!("{name}.get_num_mip_levels()")))
    }

    fn size_of_level(&mut self, name: &str, method: &str, level: Option<Value>) -> String {
        match self.level(name, level) {
            None => format!("{name}.{method}()"),
            Some(Counted { text, guard: None }) => format!("{name}.{method}({text})"),
            Some(Counted {
                text,
                guard: Some(guard),
            }) => format!("{guard} ? {name}.{method}({text}) : 0u"),
        }
    }

    /// The operands that lead to a texel, and what must hold for it to be there.
    fn texel(
        &mut self,
        name: &str,
        dimension: Dimension,
        at: &[Value],
        level: Option<Value>,
    ) -> (String, Option<String>) {
        let level = self.level(name, level);
        let of_level = level.as_ref().map_or("", |level| &level.text).to_string();
        let mut guard = level.and_then(|level| level.guard);
        let mut parts = Vec::new();
        for (counts, value) in dimension.counted().iter().zip(at) {
            let extent = match (counts, dimension) {
                (0, _) => format!("{name}.get_width({of_level})"),
                (1, _) => format!("{name}.get_height({of_level})"),
                (2, Dimension::D3) => format!("{name}.get_depth({of_level})"),
                (2, _) if dimension.is_cube() => "6u".to_string(),
                (2, _) if dimension.has_samples() => format!("{name}.get_num_samples()"),
                _elements => format!("{name}.get_array_size()"),
            };
            let counted = self.counted(*value, &extent);
            guard = both(guard, counted.guard);
            parts.push(counted.text);
        }
        let mut place = match (dimension, &parts[..]) {
            (Dimension::D3, _) => format!("uint3({})", parts.join(", ")),
            // The sample stands behind the element.
            (Dimension::D2MsArray, [x, y, sample, element]) => {
                format!("uint2({x}, {y}), {element}, {sample}")
            }
            (Dimension::D1 | Dimension::D1Array | Dimension::Buffer, _) => parts.join(", "),
            (_, [x, y, rest @ ..]) => {
                let mut place = format!("uint2({x}, {y})");
                rest.iter().for_each(|part| {
                    let _ = write!(place, ", {part}");
                });
                place
            }
            _no_texel => unreachable!("a texel has coordinates"),
        };
        if !of_level.is_empty() {
            let _ = write!(place, ", {of_level}");
        }
        (place, guard)
    }

    /// The coordinates of a sample and the element, and what must hold for that to be there.
    fn sampled_at(
        &mut self,
        name: &str,
        dimension: Dimension,
        at: &[Value],
    ) -> (String, Option<String>) {
        let (floats, element) = at.split_at(dimension.axes());
        let floats: Vec<String> = floats.iter().map(|part| self.v(*part)).collect();
        let mut text = match &floats[..] {
            [one] => one.clone(),
            several => format!("float{}({})", several.len(), several.join(", ")),
        };
        let mut guard = None;
        if let [element] = element {
            let counted = self.counted(*element, &format!("{name}.get_array_size()"));
            let _ = write!(text, ", {}", counted.text);
            guard = counted.guard;
        }
        (text, guard)
    }

    /// The name of a sampler; one that the kernel says is declared where it is first used.
    fn sampler(&mut self, source: SamplerSource) -> String {
        let sampler = match source {
            SamplerSource::Param(Memory::Param(number))
            | SamplerSource::NormalizedParam(Memory::Param(number)) => {
                return self.param_names[number as usize].clone();
            }
            SamplerSource::Param(_) | SamplerSource::NormalizedParam(_) => {
                unreachable!("a sampler is a parameter")
            }
            SamplerSource::Constant(sampler) => sampler,
        };
        let known = self.samplers.iter().position(|known| *known == sampler);
        let number = known.unwrap_or(self.samplers.len());
        let name = format!("invar_sampler_{number}");
        if known.is_none() {
            self.samplers.push(sampler);
            let properties = properties(sampler).join(", ");
            let _ = writeln!(self.shared, "    constexpr sampler {name}({properties});");
        }
        name
    }
}

/// A sampler's properties as Metal has them.
fn properties(sampler: Sampler) -> Vec<String> {
    let coordinates = match sampler.coordinates {
        Coordinates::Normalized => "coord::normalized",
        Coordinates::Pixel => "coord::pixel",
    };
    let address = match sampler.address {
        Address::ClampToEdge => "address::clamp_to_edge",
        Address::ClampToZero => "address::clamp_to_zero",
        Address::ClampToBorder => "address::clamp_to_border",
        Address::Repeat => "address::repeat",
        Address::MirroredRepeat => "address::mirrored_repeat",
    };
    let filter = match sampler.filter {
        Filter::Nearest => "filter::nearest",
        Filter::Linear => "filter::linear",
    };
    let mip = match sampler.mip {
        Mip::None => "mip_filter::none",
        Mip::Nearest => "mip_filter::nearest",
        Mip::Linear => "mip_filter::linear",
    };
    let mut properties: Vec<String> = [coordinates, address, filter, mip]
        .map(str::to_string)
        .to_vec();
    if sampler.address == Address::ClampToBorder {
        let border = match sampler.border {
            Border::TransparentBlack => "transparent_black",
            Border::OpaqueBlack => "opaque_black",
            Border::OpaqueWhite => "opaque_white",
        };
        properties.push(format!("border_color::{border}"));
    }
    if let Some(compare) = sampler.compare {
        let compare = match compare {
            Compare::Never => "never",
            Compare::Less => "less",
            Compare::LessEqual => "less_equal",
            Compare::Greater => "greater",
            Compare::GreaterEqual => "greater_equal",
            Compare::Equal => "equal",
            Compare::NotEqual => "not_equal",
            Compare::Always => "always",
        };
        properties.push(format!("compare_func::{compare}"));
    }
    if sampler.lod != LodClamp::ALL {
        // More than any texture has.
        let limits = sampler.lod.limits().map(|limit| limit.min(1000.0));
        let [least, most] = limits.map(|limit| types::constant(limit.into()));
        properties.push(format!("metal::lod_clamp({least}, {most})"));
    }
    properties
}
