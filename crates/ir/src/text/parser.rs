//! Reading a module: declarations, types, and kernels up to their bodies.
//!
//! After an error the parser goes on at the next line, or after the block that a broken header
//! opens, and takes what the broken part would have defined as known but of no use, so that one
//! mistake is reported once.

use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::kernel::Body;
use super::lexer::{Kind, Lexer, NAMELESS, Name, Token, name_text, shorten, span};
use super::{MAX_ERRORS, MAX_TEXT_BYTES, literal, requires};
use crate::builder::KernelBuilder;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::inst::{Const, Value};
use crate::memory_layout::{MAX_ELEMENT_PARTS, MAX_TYPE_DEPTH};
use crate::module::{Access, ConstantArray, FloatMode, FunctionConstant, Module};
use crate::requires::Requirement;
use crate::room::{PASSES_BYTES, with_room};
use crate::rules::Rule;
use crate::span::{Position, Source, Span};
use crate::types::{ElementType, Scalar, StructDef, StructId, Type};
use crate::verify::Draft;

/// Reads a module. `name` is what messages call the text, usually a path; the module keeps both.
///
/// ```
/// let text = "\
/// kernel @double(%x: device read_write f32) {
///     %i = thread_position_in_grid x
///     %v = load %x[%i]
///     %twice = add %v, %v
///     store %x[%i], %twice
/// }
/// ";
/// let module = invar_ir::text::parse("double.inv", text)?;
/// assert_eq!(module.to_string(), text);
/// # Ok::<(), invar_ir::Diagnostics>(())
/// ```
///
/// # Errors
/// Everything that is wrong with the text, in its order, each with its place. If it cannot be read as a
/// whole, this includes what [`crate::verify()`] says of what can.
pub fn parse(name: &str, text: &str) -> Result<Module, Diagnostics> {
    if text.len() > MAX_TEXT_BYTES {
        let message = format!(
            "`{name}` has {} bytes; a text may have at most {MAX_TEXT_BYTES}",
            text.len()
        );
        return Err(Diagnostics(vec![
            Diagnostic::error(Rule::LimitExceeded, Span::NONE, message)
                .help("split it, and keep large data in buffers"),
        ]));
    }
    with_room(PASSES_BYTES, || {
        let mut parser = Parser::new(Lexer::new(text));
        parser.module.sources.push(Source {
            name: name.into(),
            text: text.into(),
        });
        parser.module();
        if parser.errors.is_empty() {
            return Ok(parser.module);
        }
        let draft = Draft {
            module: parser.module,
            errors: parser.errors,
            more: parser.more,
            poison: parser.poison,
        };
        Err(draft.diagnostics())
    })
}

/// An error has been recorded; the caller goes on after the broken part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failed;

/// What is parsed, unless it is broken.
pub(super) type Parsed<T> = Result<T, Failed>;

/// A list in parentheses after a word, at most once.
type Once<T> = Option<(T, Span)>;

/// The state of [`parse`].
pub(super) struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The token at hand.
    pub token: Token<'a>,
    /// The end of the token before it.
    pub last: Position,
    /// What is wrong so far.
    pub errors: Vec<Diagnostic>,
    /// How many errors there are beside those.
    more: usize,
    /// For each kernel of the module the values that could not be built.
    poison: HashMap<usize, HashSet<Value>>,
    /// The module so far; a kernel's builder has it while its body is parsed.
    pub module: Module,
    structs: Names<'a>,
    function_constants: Names<'a>,
    constants: Names<'a>,
}

/// Declared names: the number of each, none if its declaration is broken, and its place.
type Names<'a> = HashMap<Cow<'a, str>, (Option<u32>, Span)>;

/// The words that begin a declaration.
const DECLARATIONS: [&str; 4] = ["kernel", "struct", "constant", "function_constant"];

impl<'a> Parser<'a> {
    /// At the first token of a lexer.
    pub fn new(mut lexer: Lexer<'a>) -> Parser<'a> {
        let token = lexer.next_code();
        Parser {
            last: token.start,
            token,
            lexer,
            errors: Vec::new(),
            more: 0,
            poison: HashMap::new(),
            module: Module::default(),
            structs: HashMap::new(),
            function_constants: HashMap::new(),
            constants: HashMap::new(),
        }
    }

    // ---- tokens and errors ----

    /// Takes the token at hand.
    pub fn bump(&mut self) -> Token<'a> {
        self.last = self.token.end;
        let next = self.lexer.next_code();
        std::mem::replace(&mut self.token, next)
    }

    /// Whether the token at hand begins a line.
    pub fn at_line_start(&self) -> bool {
        self.token.start.line > self.last.line || self.token.kind == Kind::End
    }

    /// Whether the token at hand is this mark.
    pub fn at(&self, mark: &'static str) -> bool {
        self.token.kind == Kind::Mark(mark)
    }

    /// Whether the token after the one at hand is this mark.
    pub fn followed_by(&self, mark: &'static str) -> bool {
        self.next_kind() == Kind::Mark(mark)
    }

    /// What the token after the one at hand is.
    pub fn next_kind(&self) -> Kind<'a> {
        self.lexer.clone().next_code().kind
    }

    /// Whether the token after the one at hand is `@` and a name.
    pub fn followed_by_global(&self) -> bool {
        matches!(self.next_kind(), Kind::Global(_))
    }

    /// Takes the name of a file behind an `@`: in quotes, or what stands there up to one of these characters.
    pub fn file(&mut self, ends: &[char]) -> Option<String> {
        let Token { kind, start, end } = &self.token;
        let mut name = match kind {
            Kind::Global(name) => name.to_string(),
            Kind::Bad(why) if why == NAMELESS => String::new(),
            _other => return None,
        };
        // In quotes it is two longer.
        let is_quoted = end.column - start.column > name.chars().count() as u32 + 1;
        if !is_quoted {
            let mut lexer = self.lexer.clone();
            let (rest, end) = lexer.up_to(ends);
            name.push_str(rest.trim_end());
            if name.is_empty() {
                return None;
            }
            self.lexer = lexer;
            self.token.end = end;
        }
        self.bump();
        Some(name)
    }

    /// The word at hand, if it is one.
    pub fn word(&self) -> Option<&'a str> {
        match self.token.kind {
            Kind::Word(word) => Some(word),
            _ => None,
        }
    }

    /// Takes this mark if it is at hand.
    pub fn accept(&mut self, mark: &'static str) -> bool {
        let found = self.at(mark);
        if found {
            self.bump();
        }
        found
    }

    /// Takes this word if it is at hand.
    pub fn accept_word(&mut self, word: &str) -> bool {
        let found = self.word() == Some(word);
        if found {
            self.bump();
        }
        found
    }

    /// Takes this mark.
    pub fn expect(&mut self, mark: &'static str) -> Parsed<()> {
        if self.accept(mark) {
            Ok(())
        } else {
            self.unexpected(&format!("`{mark}`"))
        }
    }

    /// Takes this word.
    pub fn expect_word(&mut self, word: &str) -> Parsed<()> {
        if self.accept_word(word) {
            Ok(())
        } else {
            self.unexpected(&format!("`{word}`"))
        }
    }

    /// From a position to the end of the token before the one at hand.
    pub fn span_from(&self, start: Position) -> Span {
        span(start, self.last)
    }

    /// Records an error. Beyond [`MAX_ERRORS`] they are counted.
    pub fn error(&mut self, error: Diagnostic) -> Failed {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(error);
        } else {
            self.more += 1;
        }
        Failed
    }

    /// The name most like a word, as long as errors are kept: it is dear to find.
    pub fn near<'c>(
        &self,
        word: &str,
        candidates: impl IntoIterator<Item = &'c str>,
    ) -> Option<&'c str> {
        if self.errors.len() >= MAX_ERRORS {
            return None;
        }
        nearest(word, candidates)
    }

    /// Records that something else was expected after the token before, on its line.
    pub fn unexpected<T>(&mut self, expected: &str) -> Parsed<T> {
        if self.token.start.line > self.last.line && self.token.kind != Kind::End {
            let message = format!("expected {expected}, found the end of the line");
            let at = span(self.last, self.last);
            return Err(self.error(Diagnostic::error(Rule::Syntax, at, message)));
        }
        self.unexpected_here(expected)
    }

    /// The token at hand; at the end of the text the place behind what is there, for the text may end with a line
    /// that is empty.
    pub fn here(&self) -> Span {
        match self.token.kind {
            Kind::End => span(self.last, self.last),
            _ => self.token.span(),
        }
    }

    /// Records that something else was expected in the place of the token at hand.
    pub fn unexpected_here<T>(&mut self, expected: &str) -> Parsed<T> {
        let message = format!("expected {expected}, found {}", self.token.describe());
        let mut error = Diagnostic::error(Rule::Syntax, self.here(), message);
        if let Some(help) = self.hint(expected) {
            error = error.help(help);
        }
        Err(self.error(error))
    }

    /// What to do about the token at hand, where that is not plain from what was expected.
    fn hint(&self, expected: &str) -> Option<String> {
        let names = ["a value", "a memory object", "an instruction"].contains(&expected);
        match &self.token.kind {
            Kind::Word(word) if names && expected != "an instruction" => Some(format!(
                "names of a kernel begin with `%`: `%{}`",
                shorten(word)
            )),
            Kind::Number(_) if names => Some(
                "operands are named values: define it before, as in `%one = const u32 1`".into(),
            ),
            Kind::Mark("=") if expected == "the end of the line" => {
                Some("a result's name begins with `%`, as in `%sum = add %a, %b`".into())
            }
            Kind::Value(_) if expected.starts_with("`,` or") => {
                Some("separate operands by `,`".into())
            }
            _plain => None,
        }
    }

    /// Records that a word is none of those that could stand here, with the nearest of them.
    pub fn unknown<'c, T>(
        &mut self,
        rule: Rule,
        what: &str,
        word: &str,
        candidates: impl IntoIterator<Item = &'c str>,
        otherwise: &str,
    ) -> Parsed<T> {
        let message = format!("there is no {what} `{}`", shorten(word));
        let mut error = Diagnostic::error(rule, self.token.span(), message);
        error = error.help(match self.near(word, candidates) {
            Some(near) => format!("did you mean `{near}`?"),
            None => otherwise.to_string(),
        });
        Err(self.error(error))
    }

    /// Skips what a broken part leaves: up to the next line, past any block that opens on the way,
    /// but not past the `}` of the block around it.
    pub fn recover(&mut self) {
        let mut depth = 0usize;
        while self.token.kind != Kind::End {
            if depth == 0 && (self.at_line_start() || self.at("}")) {
                return;
            }
            match self.token.kind {
                Kind::Mark("{") => depth += 1,
                Kind::Mark("}") => depth -= 1,
                _ => {}
            }
            self.bump();
        }
    }

    /// Skips the rest of a parameter, up to the `,` or `)` after it; not into a kernel's body.
    pub fn recover_parameter(&mut self) -> Parsed<()> {
        while !self.at(",") && !self.at(")") {
            let parameter = matches!(self.token.kind, Kind::Value(_)) && self.followed_by(":");
            if self.at("{") || self.at("}") || self.at_line_start() && !parameter {
                return Err(Failed);
            }
            self.bump();
        }
        Ok(())
    }

    /// Skips the rest of a header, up to the `{` of the body, on its line.
    pub fn recover_header(&mut self) -> Parsed<()> {
        while !self.at("{") {
            if self.at("}") || self.at_line_start() {
                return Err(Failed);
            }
            self.bump();
        }
        Ok(())
    }

    /// Skips to the next declaration.
    fn recover_declaration(&mut self) {
        while self.token.kind != Kind::End {
            let begins = self.word().is_some_and(|word| DECLARATIONS.contains(&word));
            if begins && self.at_line_start() {
                return;
            }
            self.recover();
            // The `}` of what was broken belongs to nothing any more.
            if !self.at_line_start() {
                self.bump();
            } else if !self.word().is_some_and(|word| DECLARATIONS.contains(&word)) {
                self.bump();
                self.recover();
            }
        }
    }

    // ---- small parts ----

    /// A list in brackets of that kind, separated by commas.
    pub fn list(
        &mut self,
        open: &'static str,
        close: &'static str,
        mut item: impl FnMut(&mut Self) -> Parsed<()>,
    ) -> Parsed<()> {
        self.expect(open)?;
        if self.accept(close) {
            return Ok(());
        }
        loop {
            item(self)?;
            if self.accept(close) {
                return Ok(());
            }
            if !self.accept(",") {
                return self.unexpected(&format!("`,` or `{close}`"));
            }
        }
    }

    /// `@name`.
    pub fn global(&mut self, what: &str) -> Parsed<(Cow<'a, str>, Span)> {
        match &self.token.kind {
            Kind::Global(name) => {
                let name = name.clone();
                Ok((name, self.bump().span()))
            }
            _ => self.unexpected(what),
        }
    }

    /// `%name` or `%12`, to define it.
    pub fn value_name(&mut self, what: &str) -> Parsed<(Name<'a>, Span)> {
        match &self.token.kind {
            Kind::Value(name) => {
                let name = name.clone();
                Ok((name, self.bump().span()))
            }
            _ => self.unexpected(what),
        }
    }

    /// A whole number that fits `u32`.
    pub fn number(&mut self, what: &str) -> Parsed<u32> {
        self.whole(Scalar::U32, what).map(|number| number as u32)
    }

    /// A whole number that fits `u64`.
    pub fn long_number(&mut self, what: &str) -> Parsed<u64> {
        self.whole(Scalar::U64, what)
    }

    fn whole(&mut self, scalar: Scalar, what: &str) -> Parsed<u64> {
        match self.token.kind {
            Kind::Number(text) => match literal::parse(scalar, text) {
                Ok(constant) => {
                    self.bump();
                    Ok(constant.bits)
                }
                Err(why) => {
                    let at = self.token.span();
                    let error = Diagnostic::error(Rule::Syntax, at, format!("{what}: {why}"));
                    Err(self.error(error.help(format!("write a whole number that fits {scalar}"))))
                }
            },
            _ => self.unexpected(what),
        }
    }

    /// A scalar of that type.
    pub fn literal(&mut self, scalar: Scalar) -> Parsed<Const> {
        let (Kind::Number(text) | Kind::Word(text)) = self.token.kind else {
            return self.unexpected(&format!("a literal of type {scalar}"));
        };
        if self.at_line_start() {
            return self.unexpected(&format!("a literal of type {scalar}"));
        }
        match literal::parse(scalar, text) {
            Ok(constant) => {
                self.bump();
                Ok(constant)
            }
            Err(why) => {
                let error = Diagnostic::error(Rule::Syntax, self.token.span(), why);
                Err(self.error(error.help(format!("write a {scalar}, or take another type"))))
            }
        }
    }

    /// A scalar type.
    pub fn scalar_type(&mut self) -> Parsed<Scalar> {
        let Some(word) = self.word() else {
            return self.unexpected("a scalar type");
        };
        match Scalar::from_name(word) {
            Some(scalar) => {
                self.bump();
                Ok(scalar)
            }
            None => self.unknown(
                Rule::Syntax,
                "scalar type",
                word,
                Scalar::ALL.iter().map(|s| s.name()),
                "the scalar types are bool, i8 to i64, u8 to u64, f16, bf16, f32 and f64",
            ),
        }
    }

    /// The type of a value.
    pub fn value_type(&mut self) -> Parsed<Type> {
        let Some(word) = self.word() else {
            return self.unexpected("a type");
        };
        let Some(ty) = Type::from_name(word) else {
            return self.unknown(
                Rule::Syntax,
                "type",
                word,
                Scalar::ALL.iter().map(|s| s.name()),
                "a value is a scalar (`f32`), a vector (`f32x4`), a matrix (`f32x4x4`), a \
                 `simdgroup_f32x8x8` or an `event`",
            );
        };
        if let Some(defect) = ty.defect() {
            let error = Diagnostic::error(Rule::TypeMismatch, self.token.span(), defect)
                .help("use a type that exists");
            return Err(self.error(error));
        }
        self.bump();
        Ok(ty)
    }

    /// A type in memory.
    pub fn element_type(&mut self) -> Parsed<ElementType> {
        let (element, lengths) = self.array_type()?;
        Ok(array_of(element, &lengths))
    }

    /// An array: what one element is and how many there are.
    pub fn array(&mut self, what: &str) -> Parsed<(ElementType, u32)> {
        let (element, lengths) = self.array_type()?;
        match lengths.split_first() {
            Some((length, inner)) => Ok((array_of(element, inner), *length)),
            None => self.unexpected(&format!("`[` and the number of elements of {what}")),
        }
    }

    /// A type and the lengths in brackets after it, outermost first.
    fn array_type(&mut self) -> Parsed<(ElementType, Vec<u32>)> {
        let element = if let Kind::Global(name) = &self.token.kind {
            let name = name.clone();
            match self.structs.get(&name) {
                Some((Some(id), _)) => {
                    let id = StructId(*id);
                    self.bump();
                    ElementType::Struct(id)
                }
                Some((None, _)) => return Err(Failed),
                None => {
                    let declared: Vec<Cow<'_, str>> = self.structs.keys().cloned().collect();
                    return self.unknown(
                        Rule::UndefinedName,
                        "struct declared before this",
                        &format!("@{}", name_text(&name)),
                        declared.iter().map(|s| &**s),
                        "declare it above the kernels and structs that use it",
                    );
                }
            }
        } else {
            ElementType::Value(self.value_type()?)
        };
        let mut lengths = Vec::new();
        while self.at("[") {
            if lengths.len() as u32 >= MAX_TYPE_DEPTH {
                let error = Diagnostic::error(
                    Rule::LimitExceeded,
                    self.token.span(),
                    format!("arrays nest at most {MAX_TYPE_DEPTH} deep"),
                )
                .help("use one array of all elements, and compute the index");
                return Err(self.error(error));
            }
            self.bump();
            lengths.push(self.number("an array's length")?);
            self.expect("]")?;
        }
        Ok((element, lengths))
    }

    // ---- declarations ----

    fn module(&mut self) {
        while self.token.kind != Kind::End {
            let start = self.token.start;
            let outcome = match self.word() {
                Some("kernel") => self.kernel(start),
                Some("struct") => self.struct_(),
                Some("constant") => self.constant(start),
                Some("function_constant") => self.function_constant(start),
                Some(word) => {
                    let help =
                        "a text holds kernels, structs and constants: `kernel @name(...) { ... }`";
                    self.unknown(Rule::Syntax, "declaration", word, DECLARATIONS, help)
                }
                None => {
                    self.unexpected_here("`kernel`, `struct`, `constant` or `function_constant`")
                }
            };
            let outcome = outcome.and_then(|()| {
                if self.at_line_start() {
                    Ok(())
                } else {
                    self.unexpected("the end of the line")
                }
            });
            if outcome.is_err() {
                self.recover_declaration();
            }
        }
    }

    fn struct_(&mut self) -> Parsed<()> {
        self.bump();
        let (name, at) = self.global("`@` and the struct's name")?;
        let outcome = self.fields(name.clone(), at);
        keep_broken(&mut self.structs, name, at, outcome)
    }

    fn fields(&mut self, name: Cow<'a, str>, at: Span) -> Parsed<()> {
        let mut fields: Vec<(Arc<str>, ElementType)> = Vec::new();
        let mut known = HashMap::new();
        self.list("{", "}", |p| {
            let at = p.token.span();
            let field: Cow<'a, str> = match &p.token.kind {
                Kind::Word(word) => Cow::Borrowed(*word),
                Kind::Quoted(text) => text.clone(),
                _ => return p.unexpected("a field's name"),
            };
            p.bump();
            p.expect(":")?;
            let ty = p.element_type()?;
            if known.insert(field.clone(), at).is_some() {
                let field = name_text(&field);
                let message = format!("the struct has a field `{field}` already");
                p.error(
                    Diagnostic::error(Rule::DuplicateName, at, message).help("rename one of them"),
                );
                return Ok(());
            }
            if fields.len() as u64 >= MAX_ELEMENT_PARTS {
                let message = format!("a struct has at most {MAX_ELEMENT_PARTS} fields");
                let error = Diagnostic::error(Rule::LimitExceeded, at, message);
                return Err(p.error(error.help("make the alike ones an array")));
            }
            fields.push((field.as_ref().into(), ty));
            Ok(())
        })?;
        let number = self.module.structs.len() as u32;
        let first = declare(&mut self.structs, name.clone(), number, at);
        self.check_first("struct", &name, at, first)?;
        let name = name.as_ref().into();
        self.module.structs.push(StructDef {
            name,
            fields,
            span: at,
        });
        Ok(())
    }

    /// Records that a name is declared twice, given where it was first.
    fn check_first(&mut self, what: &str, name: &str, at: Span, first: Option<Span>) -> Parsed<()> {
        match first {
            None => Ok(()),
            Some(first) => {
                let name = name_text(name);
                let message = format!("there is a {what} `@{name}` already");
                let error = Diagnostic::error(Rule::DuplicateName, at, message);
                let error = error.and(first, "first declared here");
                Err(self.error(error.help("rename one of them")))
            }
        }
    }

    fn function_constant(&mut self, start: Position) -> Parsed<()> {
        self.bump();
        let (name, at) = self.global("`@` and the function constant's name")?;
        let outcome = self.function_constant_rest(start, name.clone(), at);
        keep_broken(&mut self.function_constants, name, at, outcome)
    }

    fn function_constant_rest(
        &mut self,
        start: Position,
        name: Cow<'a, str>,
        at: Span,
    ) -> Parsed<()> {
        self.expect(":")?;
        let scalar = self.scalar_type()?;
        let default = if self.accept("=") {
            Some(self.literal(scalar)?)
        } else {
            None
        };
        self.expect_word("id")?;
        self.expect("(")?;
        let id = self.number("a function constant's id")?;
        self.expect(")")?;
        let number = self.module.function_constants.len() as u32;
        let first = declare(&mut self.function_constants, name.clone(), number, at);
        self.check_first("function constant", &name, at, first)?;
        let span = self.span_from(start);
        self.module.function_constants.push(FunctionConstant {
            name: name.as_ref().into(),
            id,
            scalar,
            default,
            span,
        });
        Ok(())
    }

    fn constant(&mut self, start: Position) -> Parsed<()> {
        self.bump();
        let (name, at) = self.global("`@` and the constant's name")?;
        let outcome = self.constant_rest(start, name.clone(), at);
        keep_broken(&mut self.constants, name, at, outcome)
    }

    fn constant_rest(&mut self, start: Position, name: Cow<'a, str>, at: Span) -> Parsed<()> {
        self.expect(":")?;
        let (element, length) = self.array("the constant")?;
        let span = self.span_from(start);
        self.expect("=")?;
        let extent = element.extent(&self.module.structs);
        let Some(period) = extent.map(|e| e.location_count as usize).filter(|n| *n > 0) else {
            let ty = element.display(&self.module.structs).to_string();
            let error = Diagnostic::error(
                Rule::TypeMismatch,
                span,
                format!("a constant cannot hold {ty}, which has no scalars or too many"),
            )
            .help("hold scalars, vectors, matrices, or arrays and structs of them");
            return Err(self.error(error));
        };
        let mut values = Vec::new();
        // The types of one element's scalars, as far as they are needed.
        let mut locations = Vec::new();
        self.list("[", "]", |p| {
            let at = values.len() % period;
            if at >= locations.len() {
                locations = element.first_locations(&p.module.structs, (at + 1) * 2);
            }
            // A list may go over several lines.
            p.last = p.token.start;
            values.push(p.literal(locations[at].1)?);
            Ok(())
        })?;
        let number = self.module.constants.len() as u32;
        let first = declare(&mut self.constants, name.clone(), number, at);
        self.check_first("constant", &name, at, first)?;
        self.module.constants.push(ConstantArray {
            name: name.as_ref().into(),
            element,
            length,
            values,
            span,
        });
        Ok(())
    }

    /// The number of a program-scope constant.
    pub fn constant_number(&mut self, name: &str) -> Parsed<u32> {
        match self.constants.get(name) {
            Some((number, _)) => number.ok_or(Failed),
            None => {
                let declared: Vec<Cow<'_, str>> = self.constants.keys().cloned().collect();
                self.unknown(
                    Rule::UndefinedName,
                    "constant declared before this",
                    &format!("@{}", name_text(name)),
                    declared.iter().map(|s| &**s),
                    "declare it above the kernels and structs that use it",
                )
            }
        }
    }

    /// The number of a function constant.
    pub fn function_constant_number(&mut self, name: &str) -> Parsed<u32> {
        match self.function_constants.get(name) {
            Some((number, _)) => number.ok_or(Failed),
            None => {
                let declared: Vec<Cow<'_, str>> = self.function_constants.keys().cloned().collect();
                self.unknown(
                    Rule::UndefinedName,
                    "function constant declared before this",
                    &format!("@{}", name_text(name)),
                    declared.iter().map(|s| &**s),
                    "declare it above the kernels and structs that use it",
                )
            }
        }
    }

    // ---- kernels ----

    fn kernel(&mut self, start: Position) -> Parsed<()> {
        self.bump();
        let (name, _) = self.global("`@` and the kernel's name")?;
        let builder = KernelBuilder::new(std::mem::take(&mut self.module), &name);
        let mut body = Body::new(self, builder);
        let outcome = body.kernel(start);
        let draft = body.builder.into_draft();
        self.poison.extend(draft.poison);
        for error in draft.errors {
            self.error(error);
        }
        self.module = draft.module;
        outcome
    }

    /// What stands between the parameters and the body. `broken` are the parameters that could not be read.
    pub fn attributes(
        &mut self,
        builder: &mut KernelBuilder,
        broken: HashSet<String>,
    ) -> Parsed<()> {
        const WORDS: [&str; 8] = [
            "threadgroup",
            "simdgroup",
            "strict",
            "contract",
            "fast",
            "allow",
            "collectives",
            "requires",
        ];
        let mut threadgroup: Once<[u32; 3]> = None;
        let mut simdgroup: Once<u32> = None;
        let mut mode: Once<FloatMode> = None;
        let mut requires: Once<Vec<Requirement>> = None;
        while let Some(word) = self.word() {
            let start = self.token.start;
            if !WORDS.contains(&word) {
                let help = "the attributes are threadgroup(N), simdgroup(N), strict, contract, fast, \
                            allow(...), collectives(active) and requires(...)";
                return self.unknown(Rule::Syntax, "kernel attribute", word, WORDS, help);
            }
            self.bump();
            let fresh = match word {
                "threadgroup" => {
                    let size = self.size("a threadgroup size")?;
                    threadgroup.replace((size, self.span_from(start))).is_none()
                }
                "simdgroup" => {
                    self.expect("(")?;
                    let size = self.number("a simdgroup size")?;
                    self.expect(")")?;
                    simdgroup.replace((size, self.span_from(start))).is_none()
                }
                "requires" => {
                    let names = requires::Names {
                        module: builder.module(),
                        kernel: builder.kernel(),
                        broken: broken.clone(),
                        sigils: true,
                        given: &[],
                    };
                    let found = self.requires(&names)?;
                    requires.replace((found, self.span_from(start))).is_none()
                }
                "allow" => {
                    let kernel = builder.kernel_mut();
                    self.list("(", ")", |p| {
                        match p.word() {
                            Some("out_of_bounds_loads") => kernel.allow_out_of_bounds_loads = true,
                            Some("out_of_bounds_stores") => {
                                kernel.allow_out_of_bounds_stores = true;
                            }
                            Some("uninitialised_reads") => kernel.allow_uninitialised_reads = true,
                            _ => {
                                return p.unexpected(
                                    "`out_of_bounds_loads`, `out_of_bounds_stores` or \
                                     `uninitialised_reads`",
                                );
                            }
                        }
                        p.bump();
                        Ok(())
                    })?;
                    true
                }
                "collectives" => {
                    self.expect("(")?;
                    if self.word() != Some("active") {
                        return self.unexpected("`active`");
                    }
                    self.bump();
                    self.expect(")")?;
                    let active = &mut builder.kernel_mut().active_collectives;
                    !std::mem::replace(active, true)
                }
                word => {
                    let modes = [FloatMode::Strict, FloatMode::Contract, FloatMode::Fast];
                    let found = modes.into_iter().find(|m| m.name() == word);
                    mode.replace((found.unwrap_or_default(), self.span_from(start)))
                        .is_none()
                }
            };
            if !fresh {
                let span = self.span_from(start);
                let message = format!("`{word}`: the kernel has such an attribute already");
                let error = Diagnostic::error(Rule::Syntax, span, message);
                return Err(self.error(error.help("remove one of them")));
            }
        }
        let kernel = builder.kernel_mut();
        kernel.threadgroup_size = threadgroup.map(|(size, _)| size);
        kernel.simdgroup_size = simdgroup.map(|(size, _)| size);
        kernel.float_mode = mode.map(|(mode, _)| mode).unwrap_or_default();
        kernel.requires = requires.map(|(all, _)| all).unwrap_or_default();
        Ok(())
    }

    /// `(x)`, `(x, y)` or `(x, y, z)`; what is missing is 1.
    pub fn size(&mut self, what: &str) -> Parsed<[u32; 3]> {
        let mut size = [1; 3];
        let mut given = 0;
        let start = self.token.start;
        self.list("(", ")", |p| {
            let number = p.number(what)?;
            if let Some(slot) = size.get_mut(given) {
                *slot = number;
            }
            given += 1;
            Ok(())
        })?;
        if (1..=3).contains(&given) {
            Ok(size)
        } else {
            let span = self.span_from(start);
            let message = format!("{what} has 1 to 3 numbers, found {given}");
            let error = Diagnostic::error(Rule::Syntax, span, message);
            Err(self.error(error.help("write `(x)`, `(x, y)` or `(x, y, z)`")))
        }
    }
}

/// Declares a name; gives where it was declared before, if it was.
fn declare<'a>(names: &mut Names<'a>, name: Cow<'a, str>, number: u32, at: Span) -> Option<Span> {
    match names.entry(name) {
        Entry::Occupied(first) => Some(first.get().1),
        Entry::Vacant(slot) => {
            slot.insert((Some(number), at));
            None
        }
    }
}

/// Keeps the name of a broken declaration, so that nothing more is said of its uses.
fn keep_broken<'a>(
    names: &mut Names<'a>,
    name: Cow<'a, str>,
    at: Span,
    outcome: Parsed<()>,
) -> Parsed<()> {
    if outcome.is_err() {
        names.entry(name).or_insert((None, at));
    }
    outcome
}

/// An array type from the innermost element and lengths, outermost first.
fn array_of(element: ElementType, lengths: &[u32]) -> ElementType {
    lengths.iter().rev().fold(element, |inner, length| {
        ElementType::Array(Arc::new(inner), *length)
    })
}

/// The name most like a word that is none of them, if any is like it.
pub(super) fn nearest<'c>(
    word: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    // Far longer than any name that someone mistypes; and enough names to find it among.
    const LONGEST: usize = 64;
    const MOST: usize = 10_000;
    if word.len() > LONGEST {
        return None;
    }
    let word = word.trim_start_matches(['%', '@']);
    // A single letter is like every other.
    let limit = (word.chars().count() + 1) / 3;
    candidates
        .into_iter()
        .take(MOST)
        .filter(|c| c.len() <= LONGEST)
        .map(|c| (strsim::damerau_levenshtein(word, c), c))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, name)| name)
}

/// Names for access rights and spaces in parameters.
pub(super) const ACCESSES: [Access; 3] = [Access::Read, Access::Write, Access::ReadWrite];
