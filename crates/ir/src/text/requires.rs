//! Reading what a kernel requires: `requires(%n * %n <= length(%a), ascending %row)`.
//!
//! In the text form names have their sigils. In what a host program gives as a string they are the author's
//! own, `n * n <= length(a)`, as messages and the prover write them.

use std::collections::HashSet;

use super::lexer::{Kind, Lexer, Name, shorten};
use super::parser::{Failed, Parsed, Parser};
use crate::diagnostic::Diagnostic;
use crate::module::{Kernel, Module, ParamKind};
use crate::ops::Dim;
use crate::requires::{
    Comparison, Given, LaunchNumber, MAX_NUMBER, Product, Relation, Required, Requirement, Sum,
    location_of,
};
use crate::rules::Rule;
use crate::span::Span;
use crate::texture::{Dimension, extent_name};

/// What requirements may name.
pub(super) struct Names<'k> {
    /// The module, for its function constants.
    pub module: &'k Module,
    /// The kernel, for its parameters.
    pub kernel: &'k Kernel,
    /// Names of parameters whose declarations are broken: nothing more is said of them.
    pub broken: HashSet<String>,
    /// Whether names have their sigils.
    pub sigils: bool,
    /// Names of the host program's own, which stand for what is given with them.
    pub given: &'k [(&'k str, Given)],
}

/// Reads one requirement from a host program's string.
///
/// # Errors
/// What is wrong with it, in lower case.
pub(crate) fn parse_requirement(
    text: &str,
    module: &Module,
    kernel: &Kernel,
    given: &[(&str, Given)],
) -> Result<Required, String> {
    let names = Names {
        module,
        kernel,
        broken: HashSet::new(),
        sigils: false,
        given,
    };
    let mut parser = Parser::new(Lexer::new(text));
    let found = parser.requirement(&names).and_then(|found| {
        if parser.token.kind == Kind::End {
            Ok(found)
        } else {
            parser.unexpected_here("the end of the requirement")
        }
    });
    found.map_err(|Failed| {
        let first = parser.errors.into_iter().next();
        first.map_or(String::new(), |d| match d.help {
            Some(help) => format!("{}; {help}", d.message),
            None => d.message,
        })
    })
}

impl<'a> Parser<'a> {
    /// `(requirement, requirement)`.
    pub fn requires(&mut self, names: &Names<'_>) -> Parsed<Vec<Requirement>> {
        let mut found = Vec::new();
        self.list("(", ")", |p| {
            let start = p.token.start;
            let required = p.requirement(names)?;
            let span = p.span_from(start);
            found.push(Requirement { required, span });
            Ok(())
        })?;
        Ok(found)
    }

    fn requirement(&mut self, names: &Names<'_>) -> Parsed<Required> {
        let word = self.word();
        // A parameter may be called so.
        let before_name = names.sigils || self.followed_by_name();
        if word == Some("ascending") && before_name {
            self.bump();
            let buffer = self.buffer(names)?;
            return Ok(Required::Ascending { buffer });
        }
        if word == Some("each") && before_name {
            self.bump();
            let (name, _) = self.own_name(names, "a name for the element")?;
            self.expect_word("of")?;
            let buffer = self.buffer(names)?;
            self.expect(":")?;
            let comparison = self.comparison(names, Some(&name))?;
            return Ok(Required::Each {
                name: name.into(),
                buffer,
                comparison,
            });
        }
        Ok(Required::Holds(self.comparison(names, None)?))
    }

    /// Whether the token after the one at hand is a word or a name in quotes.
    fn followed_by_name(&self) -> bool {
        matches!(self.next_kind(), Kind::Word(_) | Kind::Quoted(_))
    }

    /// A name of the kernel's, and where it stands.
    fn own_name(&mut self, names: &Names<'_>, what: &str) -> Parsed<(String, Span)> {
        let name = match &self.token.kind {
            Kind::Value(Name::Named(name)) if names.sigils => name.to_string(),
            Kind::Word(name) if !names.sigils => (*name).to_string(),
            Kind::Quoted(name) if !names.sigils => name.to_string(),
            _other => return self.unexpected(what),
        };
        Ok((name, self.bump().span()))
    }

    /// The place of a parameter.
    fn parameter_number(&mut self, names: &Names<'_>, what: &str) -> Parsed<(usize, Span)> {
        let (name, span) = self.own_name(names, what)?;
        let params = &names.kernel.params;
        if let Some(place) = params.iter().position(|p| *p.name == *name) {
            return Ok((place, span));
        }
        if names.broken.contains(&name) {
            return Err(Failed);
        }
        let message = format!("there is no parameter `{}`", shorten(&name));
        let near = self.near(&name, params.iter().map(|p| &*p.name));
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => "a kernel requires something of its parameters, of function constants, and of \
                     `grid`, `groups` and `threadgroup` with `.x`, `.y` or `.z`"
                .to_string(),
        };
        Err(self.error(Diagnostic::error(Rule::UndefinedName, span, message).help(help)))
    }

    /// A buffer, by the place of its parameter.
    fn buffer(&mut self, names: &Names<'_>) -> Parsed<u32> {
        let (place, span) = self.parameter_number(names, "a buffer")?;
        let param = &names.kernel.params[place];
        match param.kind {
            ParamKind::Buffer { .. }
            | ParamKind::Constant { .. }
            | ParamKind::Threadgroup { .. } => Ok(place as u32),
            ParamKind::Scalar { .. } | ParamKind::Texture(_) | ParamKind::Sampler => {
                let is = match &param.kind {
                    ParamKind::Texture(_) => "a texture",
                    ParamKind::Sampler => "a sampler",
                    _scalar => "a value",
                };
                let message = format!("`{}` is {is}, expected a buffer", shorten(&param.name));
                let error = Diagnostic::error(Rule::TypeMismatch, span, message);
                Err(self.error(error.help("name a buffer parameter")))
            }
        }
    }

    /// A texture that has a size in a direction, by the place of its parameter.
    /// The name of a texture of those that have something: a size in a direction, or levels.
    fn texture_with(
        &mut self,
        names: &Names<'_>,
        what: &str,
        has: impl Fn(Dimension) -> bool,
    ) -> Parsed<u32> {
        let (place, span) = self.parameter_number(names, "a texture")?;
        let param = &names.kernel.params[place];
        let name = shorten(&param.name);
        let (message, help) = match &param.kind {
            ParamKind::Texture(texture) if has(texture.dimension) => {
                return Ok(place as u32);
            }
            ParamKind::Texture(texture) => (
                format!("`{name}` is a {}, which has no {what}", texture.name()),
                "all have `width`, those with rows `height`, those with a third coordinate `slices`, and those of \
                 two dimensions and cubes `levels`",
            ),
            ParamKind::Buffer { .. }
            | ParamKind::Constant { .. }
            | ParamKind::Threadgroup { .. } => (
                format!("`{name}` is a buffer, expected a texture"),
                "`length(...)` is how many elements a buffer has",
            ),
            ParamKind::Scalar { .. } => (
                format!("`{name}` is a value, expected a texture"),
                "name a texture parameter",
            ),
            ParamKind::Sampler => (
                format!("`{name}` is a sampler, expected a texture"),
                "name a texture parameter",
            ),
        };
        Err(self.error(Diagnostic::error(Rule::TypeMismatch, span, message).help(help)))
    }

    fn comparison(&mut self, names: &Names<'_>, element: Option<&str>) -> Parsed<Comparison> {
        let left = self.sum(names, element)?;
        let found = Relation::ALL.into_iter().find(|r| self.at(r.symbol()));
        let Some(relation) = found else {
            return self.unexpected("`==`, `!=`, `<`, `<=`, `>` or `>=`");
        };
        self.bump();
        let right = self.sum(names, element)?;
        Ok(Comparison {
            left,
            relation,
            right,
        })
    }

    fn sum(&mut self, names: &Names<'_>, element: Option<&str>) -> Parsed<Sum> {
        let start = self.token.start;
        let mut products = vec![self.product(names, element, 1)?];
        loop {
            let sign = if self.accept("+") {
                1
            } else if self.accept("-") {
                -1
            } else if matches!(self.token.kind, Kind::Number(text) if text.starts_with('-')) {
                // `n -1` is read as `n` and `-1`.
                1
            } else {
                break;
            };
            products.push(self.product(names, element, sign)?);
        }
        let modulus = if self.accept("%") {
            Some(self.modulus(names)?)
        } else if let (Kind::Value(Name::Number(text)), false) = (&self.token.kind, names.sigils) {
            // `n %4`, which is not a name here.
            let modulus = text.parse().ok();
            if modulus.is_none() {
                return self.unexpected("a whole number that fits u32");
            }
            self.bump();
            modulus
        } else {
            None
        };
        if modulus == Some(0) || modulus.is_some() && products.len() > 1 {
            let span = self.span_from(start);
            let (message, help) = if modulus == Some(0) {
                ("a remainder of a division by 0", "divide by at least 1")
            } else {
                (
                    "a remainder of a sum: `%` takes one product",
                    "require something of each product, or of the sum as a parameter of its own",
                )
            };
            return Err(self.error(Diagnostic::error(Rule::Syntax, span, message).help(help)));
        }
        Ok(Sum { products, modulus })
    }

    /// What a remainder is of: a whole number, or a name that stands for one.
    fn modulus(&mut self, names: &Names<'_>) -> Parsed<u32> {
        let Some((name, given)) = self.given(names) else {
            return self.number("what a remainder is of");
        };
        let span = self.bump().span();
        let is = match given {
            Given::Number(number) => match u32::try_from(number) {
                Ok(number) => return Ok(number),
                Err(_too_large_or_negative) => format!("is {number}"),
            },
            Given::Constant(_) => "has its value when the kernel is prepared".to_string(),
        };
        let message = format!(
            "`{}` {is}, and a remainder is of a whole number that fits u32",
            shorten(name)
        );
        let help = "write the number, or a constant of the program that has it";
        Err(self.error(Diagnostic::error(Rule::Syntax, span, message).help(help)))
    }

    /// What the name at hand stands for, if it is one of the host program's.
    fn given<'k>(&self, names: &Names<'k>) -> Option<(&'k str, Given)> {
        let word = self.word()?;
        names.given.iter().find(|(name, _)| *name == word).copied()
    }

    fn product(&mut self, names: &Names<'_>, element: Option<&str>, sign: i128) -> Parsed<Product> {
        let mut product = Product {
            factor: sign,
            numbers: Vec::new(),
        };
        loop {
            if self.accept("-") {
                product.factor = -product.factor;
            }
            let number = match (self.token.kind.clone(), self.given(names)) {
                (Kind::Number(text), _) => Some((text.parse::<i128>().ok(), text)),
                (_name, Some((name, Given::Number(number)))) => Some((Some(number), name)),
                _other => None,
            };
            if let Some((number, text)) = number {
                let scaled = number.and_then(|number| {
                    let scaled = product.factor.checked_mul(number)?;
                    (scaled.abs() <= MAX_NUMBER).then_some(scaled)
                });
                let Some(scaled) = scaled else {
                    let message =
                        format!("`{}` is not a whole number of at most 2^64", shorten(text));
                    let error = Diagnostic::error(Rule::Syntax, self.token.span(), message);
                    return Err(self.error(error.help("write it in decimal digits")));
                };
                product.factor = scaled;
                self.bump();
            } else {
                product.numbers.push(self.launch_number(names, element)?);
            }
            if !self.accept("*") {
                return Ok(product);
            }
        }
    }

    fn launch_number(&mut self, names: &Names<'_>, element: Option<&str>) -> Parsed<LaunchNumber> {
        if let Kind::Global(name) = &self.token.kind {
            let (name, span) = (name.to_string(), self.token.span());
            self.bump();
            return self.required_constant(names, &name, span);
        }
        let word = self.word();
        if word == Some("length") && (names.sigils || self.followed_by("(")) {
            self.bump();
            self.expect("(")?;
            let buffer = self.buffer(names)?;
            self.expect(")")?;
            return Ok(LaunchNumber::Length(buffer));
        }
        let directions = || Dim::ALL.into_iter();
        if let Some(d) = directions().find(|d| word == Some(extent_name(*d)))
            && (names.sigils || self.followed_by("("))
        {
            self.bump();
            self.expect("(")?;
            let texture = self.texture_with(names, extent_name(d), |t| t.has_extent(d))?;
            self.expect(")")?;
            return Ok(LaunchNumber::Texels(texture, d));
        }
        if word == Some("levels") && (names.sigils || self.followed_by("(")) {
            self.bump();
            self.expect("(")?;
            let texture = self.texture_with(names, "levels", Dimension::has_levels)?;
            self.expect(")")?;
            return Ok(LaunchNumber::Levels(texture));
        }
        if let Some(make) = word.and_then(sizes)
            && (names.sigils || self.followed_by("."))
        {
            self.bump();
            self.expect(".")?;
            let dim = Dim::ALL.into_iter().find(|d| self.word() == Some(d.name()));
            let Some(dim) = dim else {
                return self.unexpected("`x`, `y` or `z`");
            };
            self.bump();
            return Ok(make(dim));
        }
        const NUMBER: &str = "a whole number, an integer parameter, `length(...)`, `width(...)`, \
                              `height(...)`, `slices(...)`, `levels(...)`, `grid.x`, `groups.x` or \
                              `threadgroup.x`";
        if let (Kind::Value(Name::Named(name)), true) = (&self.token.kind, names.sigils)
            && element == Some(&**name)
        {
            self.bump();
            return Ok(LaunchNumber::Element);
        }
        if element != word
            && let Some((_, Given::Constant(place))) = self.given(names)
        {
            self.bump();
            return Ok(LaunchNumber::Constant(place));
        }
        if !names.sigils
            && let Some(word) = word
        {
            if element == Some(word) {
                self.bump();
                return Ok(LaunchNumber::Element);
            }
            let is_param = names.kernel.params.iter().any(|p| *p.name == *word);
            let mut constants = names.module.function_constants.iter();
            if !is_param && constants.any(|c| *c.name == *word) {
                let span = self.bump().span();
                return self.required_constant(names, word, span);
            }
        }
        if let Some(field) = self.dotted_field(names)? {
            return Ok(field);
        }
        let (place, span) = self.parameter_number(names, NUMBER)?;
        if self.at("[") || !names.sigils && self.at(".") {
            return self.field(names, place, span);
        }
        let param = &names.kernel.params[place];
        match param.kind {
            ParamKind::Scalar { .. } => Ok(LaunchNumber::Argument(place as u32)),
            ParamKind::Sampler => {
                let message = format!("`{}` is a sampler, expected a number", shorten(&param.name));
                let error = Diagnostic::error(Rule::TypeMismatch, span, message);
                Err(self.error(error.help("name an integer parameter")))
            }
            ParamKind::Buffer { .. }
            | ParamKind::Constant { .. }
            | ParamKind::Threadgroup { .. }
            | ParamKind::Texture(_) => {
                let name = shorten(&param.name);
                let message = format!("`{name}` is memory, expected a number");
                let sigil = if names.sigils { "%" } else { "" };
                let help = match &param.kind {
                    ParamKind::Texture(_) => {
                        format!("`width({sigil}{name})` is how many texels are in a row")
                    }
                    _buffer => format!("`length({sigil}{name})` is how many elements it has"),
                };
                Err(self.error(Diagnostic::error(Rule::TypeMismatch, span, message).help(help)))
            }
        }
    }

    /// In the text form `%params.width` is one name: that of a field, where no parameter has it.
    fn dotted_field(&mut self, names: &Names<'_>) -> Parsed<Option<LaunchNumber>> {
        let Kind::Value(Name::Named(name)) = &self.token.kind else {
            return Ok(None);
        };
        let name = name.to_string();
        let params = &names.kernel.params;
        let place = |name: &str| params.iter().position(|p| *p.name == *name);
        let (Some((first, rest)), None) = (name.split_once('.'), place(&name)) else {
            return Ok(None);
        };
        let Some(place) = place(first) else {
            return Ok(None);
        };
        let span = self.bump().span();
        let mut path: Vec<String> = rest.split('.').map(str::to_string).collect();
        self.steps(&mut path)?;
        self.located(names, (place, span), &path).map(Some)
    }

    /// The way into the first element of a buffer: `[0].width`, `.width`.
    fn field(&mut self, names: &Names<'_>, place: usize, span: Span) -> Parsed<LaunchNumber> {
        if self.accept("[") {
            if self.number("0, the first element")? != 0 {
                let message = "a requirement of an element that is not the first".to_string();
                let help = "require something of `each` element, or of the first";
                return Err(self.error(Diagnostic::error(Rule::Syntax, span, message).help(help)));
            }
            self.expect("]")?;
        }
        let mut path = Vec::new();
        self.steps(&mut path)?;
        self.located(names, (place, span), &path)
    }

    /// Further steps into an element: `.width`, and `[2]` in an array.
    fn steps(&mut self, path: &mut Vec<String>) -> Parsed<()> {
        loop {
            if self.accept("[") {
                let number = self.number("the number of an element")?;
                self.expect("]")?;
                path.push(format!("[{number}]"));
            } else if self.accept(".") {
                let name = match &self.token.kind {
                    Kind::Word(name) => (*name).to_string(),
                    Kind::Quoted(name) => name.to_string(),
                    _other => return self.unexpected("the name of a field"),
                };
                self.bump();
                path.push(name);
            } else {
                return Ok(());
            }
        }
    }

    fn located(
        &mut self,
        names: &Names<'_>,
        (place, span): (usize, Span),
        path: &[String],
    ) -> Parsed<LaunchNumber> {
        let (module, kernel, param) = (names.module, names.kernel, place as u32);
        if let Some(location) = location_of(module, kernel, param, path) {
            return Ok(LaunchNumber::Field(param, location));
        }
        let name = shorten(&kernel.params[place].name);
        let path = path.join(".").replace(".[", "[");
        let message = format!("`{name}` has no number `{}`", shorten(&path));
        let help = "name an integer field of the struct that a buffer holds, or a component of a vector or an element of an array \
                    in it";
        Err(self.error(Diagnostic::error(Rule::UndefinedName, span, message).help(help)))
    }

    fn required_constant(
        &mut self,
        names: &Names<'_>,
        name: &str,
        span: Span,
    ) -> Parsed<LaunchNumber> {
        let constants = &names.module.function_constants;
        match constants.iter().position(|c| *c.name == *name) {
            Some(place) => Ok(LaunchNumber::Constant(place as u32)),
            None => {
                let message = format!("there is no function constant `@{}`", shorten(name));
                let help = "declare it above the kernels that use it";
                Err(self.error(Diagnostic::error(Rule::UndefinedName, span, message).help(help)))
            }
        }
    }
}

/// The numbers of a launch that have three dimensions, by their name.
fn sizes(word: &str) -> Option<fn(Dim) -> LaunchNumber> {
    match word {
        "grid" => Some(LaunchNumber::Grid),
        "groups" => Some(LaunchNumber::Groups),
        "threadgroup" => Some(LaunchNumber::Threadgroup),
        _another => None,
    }
}
