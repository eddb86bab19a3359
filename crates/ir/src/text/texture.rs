//! Reading textures: their types, and the functions that reach them.

use invar_texture::{Address, Coordinates, Filter, Sampler};

use super::kernel::{Body, Built};
use super::parser::{Failed, Parsed};
use crate::diagnostic::Diagnostic;
use crate::inst::Values;
use crate::rules::Rule;
use crate::span::Position;
use crate::texture::{Dimension, TextureAccess, TextureFunction, TextureType};

/// Types of textures that other languages have and kernels cannot use yet.
const OTHERS: [&str; 11] = [
    "texture1d_array",
    "texture2d_ms",
    "texture2d_ms_array",
    "texturecube",
    "texturecube_array",
    "texture_buffer",
    "depth2d",
    "depth2d_array",
    "depth2d_ms",
    "depthcube",
    "depthcube_array",
];

impl Body<'_, '_> {
    /// `texture2d f32 sample`.
    pub(super) fn texture_type(&mut self) -> Parsed<TextureType> {
        let word = self.parser.word().unwrap_or_default();
        let help = "kernels have `texture1d`, `texture2d`, `texture2d_array` and `texture3d`";
        let found = Dimension::ALL.into_iter().find(|d| d.name() == word);
        let Some(dimension) = found else {
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
        Ok(TextureType::new(dimension, component, access))
    }

    /// A function of a texture, after its word.
    pub(super) fn texture_function(&mut self, word: &str, start: Position) -> Parsed<Built> {
        let texture = self.memory()?;
        let mut args = Values::new();
        let function = match word {
            "texture_width" => TextureFunction::Width,
            "texture_height" => TextureFunction::Height,
            "texture_depth" => TextureFunction::Depth,
            "texture_array_size" => TextureFunction::ArraySize,
            "texture_gather" => {
                args = self.coordinates()?;
                let component = self.component()?;
                let sampler = self.sampler()?;
                TextureFunction::Gather { component, sampler }
            }
            "texture_read" => {
                args = self.coordinates()?;
                TextureFunction::Read
            }
            "texture_write" => {
                args = self.coordinates()?;
                args.push(self.comma_operand()?);
                TextureFunction::Write
            }
            _sample => {
                args = self.coordinates()?;
                TextureFunction::Sample(self.sampler()?)
            }
        };
        self.spanned(start);
        let Some(texture) = texture else {
            return Ok(Built::Broken);
        };
        let result = self.builder.texture_function(texture, function, &args);
        Ok(result.map_or_else(Built::none, Built::one))
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
    fn coordinates(&mut self) -> Parsed<Values> {
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

    /// `linear repeat`: what a sample says of its sampler, to the end of the statement.
    fn sampler(&mut self) -> Parsed<Sampler> {
        let mut sampler = Sampler::default();
        while !self.at_end() {
            let Some(word) = self.parser.word() else {
                return self
                    .parser
                    .unexpected("a property of a sampler, or the end of the line");
            };
            let Some(with) = sampler.with(word) else {
                return self.no_property(word);
            };
            sampler = with;
            self.parser.bump();
        }
        Ok(sampler)
    }

    fn no_property(&mut self, word: &str) -> Result<Sampler, Failed> {
        let filters = Filter::ALL.into_iter().map(Filter::name);
        let addresses = Address::ALL.into_iter().map(Address::name);
        let coordinates = Coordinates::ALL.into_iter().map(Coordinates::name);
        let names = filters.chain(addresses).chain(coordinates);
        let help = "a sampler is `nearest` or `linear`, `clamp_to_edge`, `clamp_to_zero`, `repeat` or \
                    `mirrored_repeat`, and `normalized` or `pixel`";
        let what = "property of samplers";
        (self.parser).unknown(Rule::Syntax, what, word, names, help)
    }
}
