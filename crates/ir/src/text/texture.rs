//! Reading textures: their types, and the functions that reach them.

use invar_texture::{Address, Border, Compare, Coordinates, Filter, LodClamp, Mip, Sampler};

use super::kernel::{Body, Built};
use super::parser::{Failed, Parsed, Parser};
use crate::diagnostic::Diagnostic;
use crate::inst::{Memory, Values};
use crate::rules::Rule;
use crate::span::Position;
use crate::texture::{Dimension, SamplerSource, TextureAccess, TextureFunction, TextureType};
use crate::types::Scalar;

/// Types of textures that other languages have and kernels cannot use yet.
const OTHERS: [&str; 2] = ["depth2d_ms", "depth2d_ms_array"];

impl Body<'_, '_> {
    /// `texture2d f32 sample`.
    pub(super) fn texture_type(&mut self) -> Parsed<TextureType> {
        let word = self.parser.word().unwrap_or_default();
        let help = "kernels have `texture1d`, `texture2d`, `texture3d`, `texturecube`, arrays of them such as \
                    `texture2d_array`, `depth2d`, `depthcube` and arrays of them, `texture2d_ms`, `texture2d_ms_array` and `texture_buffer`";
        let Some((dimension, is_depth)) = TextureType::arrangement(word) else {
            if OTHERS.contains(&word) {
                let message = format!("a kernel cannot have a `{word}`");
                let error = Diagnostic::error(Rule::Syntax, self.parser.token.span(), message);
                return Err(self.parser.error(error.help(help)));
            }
            let names = Dimension::ALL.into_iter().map(Dimension::name);
            return (self.parser).unknown(Rule::Syntax, "type", word, names, help);
        };
        self.parser.bump();
        let component = self.parser.scalar_type()?;
        let word = self.parser.word();
        let mut all = TextureAccess::ALL.into_iter();
        let Some(access) = all.find(|access| Some(access.name()) == word) else {
            return (self.parser).unexpected("`read`, `write`, `read_write` or `sample`");
        };
        self.parser.bump();
        let ty = TextureType::new(dimension, component, access);
        Ok(TextureType { is_depth, ..ty })
    }

    /// A function of a texture, after its word.
    pub(super) fn texture_function(&mut self, word: &str, start: Position) -> Parsed<Built> {
        let texture = self.memory()?;
        let mut args = Values::new();
        let mut in_brackets = None;
        let mut offset = [0; 3];
        let function = match word {
            "texture_width" => {
                self.level(&mut args)?;
                TextureFunction::Width
            }
            "texture_height" => {
                self.level(&mut args)?;
                TextureFunction::Height
            }
            "texture_levels" => TextureFunction::Levels,
            "texture_samples" => TextureFunction::Samples,
            "texture_fence" => TextureFunction::Fence,
            "texture_sample_compare" => {
                args = self.coordinates()?;
                in_brackets = Some(args.len());
                offset = self.offset()?;
                self.level(&mut args)?;
                args.push(self.comma_operand()?);
                TextureFunction::SampleCompare(self.sampler()?.into())
            }
            "texture_gather_compare" => {
                args = self.coordinates()?;
                offset = self.offset()?;
                args.push(self.comma_operand()?);
                TextureFunction::GatherCompare(self.sampler()?.into())
            }
            "texture_depth" => {
                self.level(&mut args)?;
                TextureFunction::Depth
            }
            "texture_array_size" => TextureFunction::ArraySize,
            "texture_gather" => {
                args = self.coordinates()?;
                offset = self.offset()?;
                let component = self.component()?;
                let sampling = self.sampler()?.into();
                TextureFunction::Gather {
                    component,
                    sampling,
                }
            }
            "texture_read" => {
                args = self.coordinates()?;
                in_brackets = Some(args.len());
                self.level(&mut args)?;
                TextureFunction::Read
            }
            "texture_write" => {
                args = self.coordinates()?;
                in_brackets = Some(args.len());
                self.level(&mut args)?;
                args.push(self.comma_operand()?);
                TextureFunction::Write
            }
            _sample => {
                args = self.coordinates()?;
                in_brackets = Some(args.len());
                offset = self.offset()?;
                self.level(&mut args)?;
                let has_level = args.len() > in_brackets.unwrap_or(0);
                self.gradient(texture, has_level, &mut args)?;
                TextureFunction::Sample(self.sampler()?.into())
            }
        };
        let function = function.beside(offset);
        self.spanned(start);
        let Some(texture) = texture else {
            return Ok(Built::Broken);
        };
        // The level counts as one operand more, which must not be taken for a coordinate.
        if let (Some(found), Some(ty)) = (in_brackets, self.builder.kernel().texture(texture))
            && function.takes_level(ty.dimension)
            && function.operands(ty.dimension, &args).at.len() != found
        {
            let coordinates = ty.dimension.coordinates();
            let plural = if coordinates == 1 { "" } else { "s" };
            let message = format!(
                "`{}` of a {} has {coordinates} coordinate{plural} in brackets, found {found}",
                function.name(),
                ty.name()
            );
            let help = "write as many, and the level behind them: `[%x, %y] level %l`";
            let span = self.parser.span_from(start);
            self.error(Rule::TypeMismatch, span, message, help);
            return Ok(Built::Broken);
        }
        let result = self.builder.texture_function(texture, function, &args);
        Ok(result.map_or_else(Built::none, Built::one))
    }

    /// `level %l`, if it is there.
    pub(super) fn level(&mut self, args: &mut Values) -> Parsed<()> {
        if !self.at_end() && self.parser.word() == Some("level") {
            self.parser.bump();
            args.push(self.operand()?);
        }
        Ok(())
    }

    /// `offset(1, -1)`, if it is there: zeros else, and behind the numbers that are.
    fn offset(&mut self) -> Parsed<[i8; 3]> {
        let mut offset = [0; 3];
        if self.at_end() || self.parser.word() != Some("offset") {
            return Ok(offset);
        }
        self.parser.bump();
        self.parser.expect("(")?;
        for (number, part) in offset.iter_mut().enumerate() {
            if number > 0 && !self.parser.accept(",") {
                break;
            }
            *part = self.parser.literal(Scalar::I8)?.bits as i8;
        }
        self.parser.expect(")")?;
        Ok(offset)
    }

    /// `gradient [%ax, %ay], [%bx, %by]`, if it is there, which is short for the level that follows from it.
    fn gradient(
        &mut self,
        texture: Option<Memory>,
        has_level: bool,
        args: &mut Values,
    ) -> Parsed<()> {
        if self.at_end() || self.parser.word() != Some("gradient") {
            return Ok(());
        }
        let start = self.parser.token.start;
        self.parser.bump();
        let along_x = self.coordinates()?;
        self.parser.expect(",")?;
        let along_y = self.coordinates()?;
        let is_level_next = !self.at_end() && self.parser.word() == Some("level");
        if has_level || is_level_next {
            let message = "a sample has a level or gradients, which lead to one".to_string();
            let error = Diagnostic::error(Rule::Syntax, self.parser.span_from(start), message);
            return Err(self.parser.error(error.help("leave out one of the two")));
        }
        let Some(texture) = texture else {
            return Ok(());
        };
        let Some(ty) = self.builder.kernel().texture(texture) else {
            return Ok(());
        };
        // Behind them stands the element of an array. What there is too few of is said of the sample.
        let Some(at) = args.get(..ty.dimension.axes()).map(Values::from_slice) else {
            return Ok(());
        };
        self.spanned(start);
        let defect = (self.builder).gradient_defect(ty, &at, [&along_x, &along_y]);
        if let Some(defect) = defect {
            self.parser.error(defect);
            return Ok(());
        }
        let level = (self.builder).texture_gradient_level(texture, &at, &along_x, &along_y);
        args.push(level);
        Ok(())
    }

    /// `x`, or another component; the first if none is named.
    fn component(&mut self) -> Parsed<u8> {
        const COMPONENTS: [[&str; 2]; 4] = [["x", "r"], ["y", "g"], ["z", "b"], ["w", "a"]];
        if self.at_end() {
            return Ok(0);
        }
        let word = self.parser.word().unwrap_or_default();
        let number = COMPONENTS.iter().position(|names| names.contains(&word));
        if number.is_some() {
            self.parser.bump();
        }
        Ok(number.unwrap_or(0) as u8)
    }

    /// `[%x, %y]`.
    pub(super) fn coordinates(&mut self) -> Parsed<Values> {
        let mut at = Values::new();
        self.parser.expect("[")?;
        loop {
            at.push(self.operand()?);
            if self.parser.accept("]") {
                return Ok(at);
            }
            if !self.parser.accept(",") {
                return self.parser.unexpected("`,` or `]`");
            }
        }
    }

    /// `%s`, `%s normalized` or `linear repeat`: what a sample says of its sampler, to the end of the statement.
    fn sampler(&mut self) -> Parsed<SamplerSource> {
        if let Some(sampler) = self.sampler_param()? {
            let word = Coordinates::Normalized.name();
            if self.at_end() || self.parser.word() != Some(word) {
                return Ok(sampler);
            }
            self.parser.bump();
            return Ok(sampler.normalized());
        }
        let mut sampler = Sampler::default();
        let mut said = Vec::new();
        while !self.at_end() {
            let Some(word) = self.parser.word() else {
                return self
                    .parser
                    .unexpected("a property of a sampler, or the end of the line");
            };
            match with_word(self.parser, sampler, word, &mut said)? {
                Some(with) => sampler = with,
                None => return self.no_property(word),
            }
        }
        Ok(sampler.into())
    }

    fn no_property(&mut self, word: &str) -> Result<SamplerSource, Failed> {
        let filters = Filter::ALL.into_iter().map(Filter::name);
        let addresses = Address::ALL.into_iter().map(Address::name);
        let coordinates = Coordinates::ALL.into_iter().map(Coordinates::name);
        let mips = Mip::ALL.into_iter().map(Mip::name);
        let compares = Compare::ALL.into_iter().map(Compare::name);
        let names = filters.chain(addresses).chain(coordinates).chain(mips);
        let borders = Border::ALL.into_iter().map(Border::name);
        let names = names.chain(compares).chain(borders).chain(["lod_clamp"]);
        let help = "a sampler is `nearest` or `linear`, `clamp_to_edge`, `clamp_to_zero`, `clamp_to_border`, \
                    `repeat` or `mirrored_repeat`, `normalized` or `pixel`, `mip_none`, `mip_nearest` or `mip_linear`, with `lod_clamp(0.5, 2)`, and compares as in `compare_less`";
        let what = "property of samplers";
        (self.parser).unknown(Rule::Syntax, what, word, names, help)
    }
}

/// The sampler with what a word at hand says, and the numbers behind it; none if no sampler has such a word. What was
/// `said` of it must still hold.
pub(super) fn with_word(
    parser: &mut Parser<'_>,
    sampler: Sampler,
    word: &str,
    said: &mut Vec<String>,
) -> Parsed<Option<Sampler>> {
    if word != "lod_clamp" {
        let Some(with) = sampler.with(word) else {
            return Ok(None);
        };
        if let Some(before) = said.iter().find(|before| with.with(before) != Some(with)) {
            let message = format!("the sampler is `{before}`, and cannot be `{word}` too");
            let error = Diagnostic::error(Rule::Syntax, parser.token.span(), message);
            return Err(parser.error(error.help("leave one of the two out")));
        }
        said.push(word.to_string());
        parser.bump();
        return Ok(Some(with));
    }
    let start = parser.token.start;
    parser.bump();
    parser.expect("(")?;
    let least = parser.literal(Scalar::F32)?;
    parser.expect(",")?;
    let most = parser.literal(Scalar::F32)?;
    parser.expect(")")?;
    let [least, most] = [least, most].map(|limit| f32::from_bits(limit.bits as u32));
    let Some(lod) = LodClamp::new(least, most) else {
        let message = format!("there are no levels from {least} to {most}");
        let error = Diagnostic::error(Rule::Syntax, parser.span_from(start), message);
        return Err(parser.error(
            error.help("write a number that is not below 0, and one that is not below it"),
        ));
    };
    Ok(Some(Sampler { lod, ..sampler }))
}
