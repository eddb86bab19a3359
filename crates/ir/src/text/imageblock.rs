//! Reading what speaks of imageblocks: the parameter, coordinates of elements, the queries and the copy of a slice.
//!
//! All but the parameter is short for instructions that the builder writes out, which is how it is printed.

use invar_texture::PixelFormat;

use super::kernel::{Body, Built, Defined, Known};
use super::lexer::{Kind, shorten};
use super::parser::{Failed, Parsed, Parser};
use crate::diagnostic::Diagnostic;
use crate::imageblock::ImageblockSlice;
use crate::inst::{Memory, Value};
use crate::module::AddressSpace;
use crate::rules::Rule;
use crate::span::{Position, Span};
use crate::types::ElementType;

/// The words of the functions of imageblocks.
pub(super) const FUNCTIONS: [&str; 4] = [
    "imageblock_width",
    "imageblock_height",
    "imageblock_samples",
    "texture_write_slice",
];

/// Functions that other languages have and kernels cannot have.
pub(super) const OTHERS: [&str; 2] = ["imageblock_num_colors", "imageblock_color_coverage_mask"];

/// An imageblock among the parameters, which is declared once the attributes have said its size.
pub(super) struct Imageblock<'a> {
    defined: Defined<'a>,
    name: String,
    element: ElementType,
    /// Formats that fields are stored in, by their names.
    formats: Vec<(String, PixelFormat)>,
    span: Span,
}

impl<'a> Body<'_, 'a> {
    /// `: imageblock @Pixel(colour: rgba8unorm)`, which takes no argument.
    pub(super) fn imageblock(
        &mut self,
        start: Position,
        defined: Defined<'a>,
        name: String,
    ) -> Parsed<()> {
        self.parser.expect(":")?;
        self.parser.bump();
        match self.element_and_formats() {
            Ok((element, formats)) => {
                let span = self.parser.span_from(start);
                self.imageblocks.push(Imageblock {
                    defined,
                    name,
                    element,
                    formats,
                    span,
                });
                Ok(())
            }
            Err(Failed) => {
                self.define(&defined, Known::Broken);
                Err(Failed)
            }
        }
    }

    /// What an element is, and in brackets the formats that its fields are stored in, or its own.
    fn element_and_formats(&mut self) -> Parsed<(ElementType, Vec<(String, PixelFormat)>)> {
        let element = self.element_type()?;
        let mut formats = Vec::new();
        if self.parser.at("(") {
            let is_struct = matches!(element, ElementType::Struct(_));
            let formats_of = self.parser.list("(", ")", |parser| {
                let mut field = String::new();
                if is_struct {
                    field = parser.field_name()?;
                    parser.expect(":")?;
                }
                formats.push((field, parser.pixel_format()?));
                Ok(())
            });
            if formats_of.is_err() {
                // The parameter goes on behind the bracket.
                while !self.parser.at(")") && !self.parser.at("{") && !self.parser.at_line_start() {
                    self.parser.bump();
                }
                self.parser.accept(")");
                return Err(Failed);
            }
        }
        Ok((element, formats))
    }

    /// Declares the imageblocks that stand among the parameters. Of a header that could not be read nobody knows
    /// their size.
    pub(super) fn imageblocks(&mut self, known: bool) {
        for block in std::mem::take(&mut self.imageblocks) {
            if !known {
                self.define(&block.defined, Known::Broken);
                continue;
            }
            self.builder.set_span(block.span);
            let formats = block.formats.iter();
            let formats: Vec<_> = formats.map(|(name, format)| (&**name, *format)).collect();
            let memory = (self.builder).imageblock_of(&block.name, block.element, &formats);
            self.define(&block.defined, Known::Memory(memory));
        }
    }

    /// Whether it is an imageblock.
    pub(super) fn is_imageblock(&self, memory: Memory) -> bool {
        let info = self.builder.memory(memory);
        info.is_some_and(|info| info.space == AddressSpace::Imageblock)
    }

    /// The element at two coordinates, the first of which was read: `, %y`.
    pub(super) fn second_coordinate(
        &mut self,
        start: Position,
        memory: Memory,
        x: Value,
    ) -> Parsed<Value> {
        let y = self.comma_operand()?;
        self.spanned(start);
        Ok(self.builder.imageblock_element(memory, [x, y]))
    }

    /// A function of imageblocks, after its word.
    pub(super) fn imageblock_function(&mut self, word: &str, start: Position) -> Parsed<Built> {
        if word == "texture_write_slice" {
            return self.write_slice(start);
        }
        let memory = self.memory()?;
        self.spanned(start);
        let Some(memory) = memory else {
            return Ok(Built::Broken);
        };
        let builder = &mut self.builder;
        Ok(Built::one(match word {
            "imageblock_width" => builder.imageblock_width(memory),
            "imageblock_height" => builder.imageblock_height(memory),
            _samples => builder.imageblock_samples(memory),
        }))
    }

    /// Says that colour coverage is not offered.
    pub(super) fn no_coverage(&mut self, word: &str) -> Failed {
        let message = format!(
            "there is no `{}`: an element of a kernel's imageblock has one sample, and one value of each field",
            shorten(word)
        );
        let span = self.parser.token.span();
        let help = "keep what covers a position in a field of the element";
        self.parser
            .error(Diagnostic::error(Rule::UndefinedName, span, message).help(help))
    }

    /// `%t[%x, %y], %block[*].colour`, with `from %x, %y size %width, %height` behind it for a part.
    fn write_slice(&mut self, start: Position) -> Parsed<Built> {
        let texture = self.memory()?;
        let mut at = self.coordinates()?;
        self.level(&mut at)?;
        self.parser.expect(",")?;
        let memory = self.memory()?;
        self.parser.expect("[")?;
        self.parser.expect("*")?;
        self.parser.expect("]")?;
        let element = memory.and_then(|m| self.builder.memory(m));
        let element = element.map(|info| info.element.clone());
        let Some(path) = self.steps(element)? else {
            return Ok(Built::Broken);
        };
        let mut region = None;
        if !self.at_end() && self.parser.accept_word("from") {
            let origin = [self.operand()?, self.comma_operand()?];
            self.parser.expect_word("size")?;
            region = Some([origin, [self.operand()?, self.comma_operand()?]]);
        }
        self.spanned(start);
        let (Some(texture), Some(memory)) = (texture, memory) else {
            return Ok(Built::Broken);
        };
        let slice = ImageblockSlice {
            memory,
            path,
            region,
        };
        self.builder.texture_write_slice(texture, &at, &slice);
        Ok(Built::none())
    }
}

impl Parser<'_> {
    /// A field's name.
    fn field_name(&mut self) -> Parsed<String> {
        let name = match &self.token.kind {
            Kind::Word(word) => (*word).to_string(),
            Kind::Quoted(text) => text.to_string(),
            _ => return self.unexpected("a field's name"),
        };
        self.bump();
        Ok(name)
    }

    /// The name of a pixel format.
    pub(super) fn pixel_format(&mut self) -> Parsed<PixelFormat> {
        let Some(word) = self.word() else {
            return self.unexpected("a pixel format, such as `rgba8unorm`");
        };
        let Some(format) = PixelFormat::from_name(word) else {
            let names = PixelFormat::ALL.iter().map(|format| format.name());
            let help = "formats are channels, bits of each and what they are, such as `rgba8unorm`";
            return self.unknown(Rule::Syntax, "pixel format", word, names, help);
        };
        self.bump();
        Ok(format)
    }
}
