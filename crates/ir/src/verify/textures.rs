//! Functions of textures: what they reach, the types of their operands, and what a texture's access lets them do;
//! and that nothing else reaches textures.

use super::Errors;
use crate::diagnostic::Diagnostic;
use crate::inst::{Inst, InstKind, Memory, Order, Place, Value};
use crate::module::{Kernel, Module};
use crate::rules::Rule;
use crate::span::Span;
use crate::texture::{
    Coordinates, SamplerSource, Sampling, TextureAccess, TextureFunction, TextureOperands,
    TextureType, atomic_texel,
};
use crate::types::{Scalar, Type};
use invar_texture::{Filter, Mip, Sampler};

/// What keeps an instruction that names a memory object from what it does, as far as textures are concerned.
pub(super) fn check_use(kernel: &Kernel, inst: &Inst, errors: &mut Errors) {
    match &inst.kind {
        InstKind::Texture { .. } => return,
        InstKind::Atomic { place, order, .. } if kernel.texture(place.memory).is_some() => {
            return check_atomic(kernel, place, *order, inst.span, errors);
        }
        _no_function => {}
    }
    inst.kind.for_each_memory(|memory| {
        if kernel.texture(memory).is_some()
            && let Memory::Param(i) = memory
        {
            let param = &kernel.params[i as usize];
            let message = format!(
                "`{}` reaches `{}`, which is a texture",
                inst.kind.name(),
                param.name
            );
            let error = Diagnostic::error(Rule::WrongAddressSpace, inst.span, message)
                .and(param.span, "declared here")
                .help("use `texture_read`, `texture_write` or `texture_sample`");
            errors.push(error);
        }
    });
}

/// Whether a texel is one that atomics act on; whether the texture may be read and written, and what orders and scopes
/// there are, is checked as of other memory.
fn check_atomic(kernel: &Kernel, place: &Place, order: Order, span: Span, errors: &mut Errors) {
    let Some(ty) = kernel.texture(place.memory) else {
        return;
    };
    let mut refuse = |rule: Rule, message: String, help: &str| {
        errors.push(Diagnostic::error(rule, span, message).help(help));
    };
    if ty.dimension.is_cube() || ty.dimension.has_samples() || ty.is_depth {
        let message = format!("there are no atomics on texels of a {}", ty.name());
        let help =
            "use a texture of one to three dimensions, an array of them or a `texture_buffer`";
        return refuse(Rule::AtomicType, message, help);
    }
    if !matches!(ty.component, Scalar::U32 | Scalar::I32) {
        let message = format!("there are no atomics on texels of {}", ty.component);
        let help = "give the texture components of u32 or i32, and it a format of one such channel";
        return refuse(Rule::AtomicType, message, help);
    }
    if atomic_texel(kernel, place).is_none() {
        let wanted = ty.dimension.coordinates();
        let plural = if wanted == 1 { "" } else { "s" };
        let message = format!(
            "an atomic on a texel of a {} has {wanted} coordinate{plural}, which are integers",
            ty.name()
        );
        let help = "write them in brackets, as in `atomic_add %t[%x, %y], %v`";
        return refuse(Rule::TypeMismatch, message, help);
    }
    if order != Order::Relaxed {
        let message = format!("an atomic on a texel has the order `{}`", order.name());
        let help = "leave it out: such atomics order nothing; a barrier with `[texture]` does";
        refuse(Rule::AtomicOrder, message, help);
    }
}

/// A function of a texture, and what is known of its operands.
pub(super) struct Called<'a> {
    pub(super) module: &'a Module,
    pub(super) kernel: &'a Kernel,
    pub(super) texture: Memory,
    pub(super) function: TextureFunction,
    pub(super) args: &'a [Value],
    pub(super) span: Span,
}

impl Called<'_> {
    /// Checks it; gives what it gives, if it can be called.
    pub(super) fn check(
        &self,
        is_poison: &dyn Fn(Value) -> bool,
        errors: &mut Errors,
    ) -> Option<Option<Type>> {
        let Some(ty) = self.kernel.texture(self.texture) else {
            let message = format!(
                "`{}` is called of what is not a texture",
                self.function.name()
            );
            let error = Diagnostic::error(Rule::WrongAddressSpace, self.span, message);
            errors.push(error.help("declare the parameter as one, such as `texture2d f32 read`"));
            return None;
        };
        let compares = self.function.compares();
        if !self.function.is_of(ty.dimension) || compares && !ty.is_depth {
            let message = format!("a {} has no `{}`", ty.name(), self.function.name());
            let error = Diagnostic::error(Rule::TypeMismatch, self.span, message);
            errors.push(error.help("use a function that such textures have, or another texture"));
            return None;
        }
        if let TextureFunction::Gather { component: 4.., .. } = self.function {
            let message = "a gather is of a component from 0 to 3".to_string();
            let error = Diagnostic::error(Rule::TypeMismatch, self.span, message);
            errors.push(error.help("name one of them"));
            return None;
        }
        if let TextureFunction::Gather { component: 1.., .. } = self.function
            && ty.is_depth
        {
            let message = format!("a texel of a {} has the component `x` alone", ty.name());
            let error = Diagnostic::error(Rule::TypeMismatch, self.span, message);
            errors.push(error.help("leave out which one it gathers: depths are one number"));
            return None;
        }
        self.offset(ty, errors);
        let operands = self.function.operands(ty.dimension, self.args);
        let TextureOperands { at, level, value } = operands;
        let expected = self.function.operand_count(ty.dimension);
        if self.args.len() != expected + usize::from(level.is_some()) {
            let plural = if expected == 1 { "" } else { "s" };
            let message = format!(
                "`{}` of a {} takes {expected} operand{plural}, found {}",
                self.function.name(),
                ty.name(),
                self.args.len()
            );
            let error = Diagnostic::error(Rule::TypeMismatch, self.span, message);
            errors.push(error.help(match ty.dimension.has_levels() {
                true => "write its coordinates in brackets: `[%x, %y]`",
                false => "write its coordinates in brackets, and no level: it has one",
            }));
            return None;
        }
        let axes = match self.function.samples() {
            true => ty.dimension.axes(),
            false => 0,
        };
        for (number, value) in at.iter().enumerate().filter(|(_, v)| !is_poison(**v)) {
            self.coordinate(*value, number < axes, errors);
        }
        if let Some(level) = level.filter(|level| !is_poison(*level)) {
            self.coordinate(level, self.function.samples(), errors);
        }
        if let Some(reference) = value.filter(|value| compares && !is_poison(*value)) {
            self.coordinate(reference, true, errors);
        }
        if let Some(value) = value
            && self.kernel.ty(value) != ty.texel()
            && !is_poison(value)
            && !compares
        {
            let message = format!(
                "the value of a texel (`{}`) has type {}, expected {}",
                self.module.called(self.kernel, value),
                self.kernel.ty(value),
                ty.texel()
            );
            let error = Diagnostic::error(Rule::TypeMismatch, self.span, message);
            errors.push(error.help("`construct` four components; a format drops those it lacks"));
        }
        self.access(ty, errors);
        match self.function.sampler() {
            Some(SamplerSource::Param(param) | SamplerSource::NormalizedParam(param))
                if !self.kernel.is_sampler(param) =>
            {
                let message = format!("`{}` goes by what is not a sampler", self.function.name());
                let error = Diagnostic::error(Rule::TypeMismatch, self.span, message);
                errors.push(error.help("declare the parameter as one: `%s: sampler`"));
            }
            Some(SamplerSource::Constant(sampler)) => {
                self.sampler(ty, sampler, level.is_some(), errors);
            }
            // What the dispatch gives is seen then.
            Some(SamplerSource::Param(_) | SamplerSource::NormalizedParam(_)) | None => {}
        }
        Some(self.function.result(ty))
    }

    /// Offsets are small, and along the axes that a texture has.
    fn offset(&self, ty: TextureType, errors: &mut Errors) {
        let offset = self.function.sampling().map_or([0; 3], |s| s.offset);
        let mut refuse = |message: String, help: &str| {
            let error = Diagnostic::error(Rule::TypeMismatch, self.span, message);
            errors.push(error.help(help));
        };
        if let Some(far) = offset.iter().find(|o| !Sampling::OFFSETS.contains(*o)) {
            let message = format!("an offset is from -8 to 7, not {far}");
            return refuse(message, "add more to the coordinates");
        }
        let axes = match ty.dimension.is_cube() {
            true => 0,
            false => ty.dimension.axes(),
        };
        if offset.iter().skip(axes).any(|o| *o != 0) {
            let message = format!("an offset along an axis that a {} does not have", ty.name());
            refuse(
                message,
                "give it a number for each coordinate that is an f32, and a cube none",
            );
        }
    }

    /// What a sampler must be for a texture and a function.
    fn sampler(&self, ty: TextureType, sampler: Sampler, has_level: bool, errors: &mut Errors) {
        let mut refuse = |message: String, help: &str| {
            let error = Diagnostic::error(Rule::TypeMismatch, self.span, message);
            errors.push(error.help(help));
        };
        if self.function.compares() && sampler.compare.is_none() {
            let message = format!("`{}` by a sampler that does not", self.function.name());
            let help = "write what it compares behind it, as in `compare_less`";
            refuse(message, help);
        }
        if self.function.needs_normalized(ty.dimension) && sampler.coordinates == Coordinates::Pixel
        {
            let message = format!("a {} by a sampler of pixel coordinates", ty.name());
            let help = "leave out `pixel`: a cube is sampled in a direction";
            refuse(message, help);
        }
        let is_gather = matches!(
            self.function,
            TextureFunction::Gather { .. } | TextureFunction::GatherCompare(_)
        );
        // A gather filters nothing, and is of the first level.
        if is_gather {
            return;
        }
        if sampler.mixes() && !ty.component.is_float() {
            let message = format!(
                "a linear sample of `{}`, whose components are {}",
                self.name(),
                ty.component
            );
            let help = match sampler.filter {
                Filter::Linear => "sample it `nearest`: integers are not filtered",
                Filter::Nearest => "sample it `mip_nearest`: integers are not filtered",
            };
            refuse(message, help);
        }
        let is_first = sampler.mip == Mip::None;
        if !is_first && !ty.dimension.has_levels() {
            let message = format!("a {} has one level", ty.name());
            refuse(message, "leave out which levels a sample is made of");
        }
        if is_first && has_level {
            let message = format!(
                "a sample of `{}` has a level, and its sampler takes the first",
                self.name()
            );
            refuse(message, "write `mip_nearest` or `mip_linear` behind it");
        }
    }

    fn name(&self) -> &str {
        match self.texture {
            Memory::Param(i) => &self.kernel.params[i as usize].name,
            Memory::Alloc(_) | Memory::Constant(_) => "",
        }
    }

    fn coordinate(&self, value: Value, is_between: bool, errors: &mut Errors) {
        let ty = self.kernel.ty(value);
        let (fits, expected) = match is_between {
            true => (ty == Type::F32, "f32"),
            false => (ty.is_integer_scalar(), "an integer scalar"),
        };
        if !fits {
            let message = format!(
                "a coordinate (`{}`) has type {ty}, expected {expected}",
                self.module.called(self.kernel, value)
            );
            let error = Diagnostic::error(Rule::TypeMismatch, self.span, message);
            errors.push(error.help("write a `cast`"));
        }
    }

    /// S2.
    fn access(&self, ty: TextureType, errors: &mut Errors) {
        let (fits, what, wanted) = match self.function {
            TextureFunction::Read => {
                let fits = ty.access.memory().can_read();
                (fits, "this reads", "`read`, `read_write` or `sample`")
            }
            TextureFunction::Write => {
                let fits = ty.access.memory().can_write();
                (fits, "this writes", "`write` or `read_write`")
            }
            TextureFunction::Fence => {
                let fits = ty.access == TextureAccess::ReadWrite;
                (fits, "this reads and writes", "`read_write`")
            }
            TextureFunction::Sample(_)
            | TextureFunction::Gather { .. }
            | TextureFunction::SampleCompare(_)
            | TextureFunction::GatherCompare(_) => {
                let fits = ty.access == TextureAccess::Sample;
                (fits, "this samples", "`sample`")
            }
            TextureFunction::Width
            | TextureFunction::Height
            | TextureFunction::Depth
            | TextureFunction::ArraySize
            | TextureFunction::Levels
            | TextureFunction::Samples => return,
        };
        if !fits {
            let message = format!(
                "{what} `{}`, which is declared `{}`",
                self.name(),
                ty.access.name()
            );
            let mut error = Diagnostic::error(Rule::AccessViolation, self.span, message)
                .help(format!("declare it {wanted}"));
            if let Memory::Param(i) = self.texture {
                error = error.and(self.kernel.params[i as usize].span, "declared here");
            }
            errors.push(error);
        }
    }
}
