//! Reading a kernel: its parameters and its body.
//!
//! What cannot be read is reported once and read past; what it would have given is broken, and where
//! an operand is broken the builder's poison stands for it, so that the instruction is there and the
//! verifier can look at the rest of it.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use smallvec::SmallVec;

use super::imageblock::{self, Imageblock};
use super::lexer::{Kind, Name, field_text, name_text, shorten};
use super::parser::{ACCESSES, Failed, Parsed, Parser};
use crate::builder::{KernelBuilder, NESTING_HELP};
use crate::diagnostic::Diagnostic;
use crate::inst::{
    AtomicOp, CopyOperands, CopyShape, InstKind, MAX_NESTING, MatrixPlace, Memory, Order, Place,
    Region, Scope, Spaces, Step, Value, Values, Width,
};
use crate::module::{AddressSpace, Binding};
use crate::ops::{Dim, Imm, Op, Signature, Swizzle};
use crate::rules::Rule;
use crate::span::{Position, Span};
use crate::texture::{SamplerSource, TextureFunction};
use crate::types::{ElementType, Type};

/// The results of an instruction.
type Results = SmallVec<[Value; 1]>;

/// What is known of a name.
#[derive(Clone, Copy, Debug)]
pub(super) enum Known {
    /// A value.
    Value(Value),
    /// A buffer, a threadgroup parameter or an array.
    Memory(Memory),
    /// A sampler.
    Sampler(SamplerSource),
    /// The instruction that defines it is not read to its end.
    Pending,
    /// Its definition is broken, so nothing more is said of its uses.
    Broken,
}

/// A name at its definition.
pub(super) struct Defined<'a> {
    name: Name<'a>,
    /// Whether it is the first of that name.
    first: bool,
}

const SCOPES: [Scope; 3] = [Scope::Simdgroup, Scope::Threadgroup, Scope::Device];

/// Reads a kernel into its builder.
pub(super) struct Body<'p, 'a> {
    /// The text.
    pub parser: &'p mut Parser<'a>,
    /// The kernel.
    pub builder: KernelBuilder,
    names: HashMap<Name<'a>, (Known, Span)>,
    /// Those of blocks that are open, in the order of their definition.
    reserved: Vec<Name<'a>>,
    /// Those of blocks that have ended.
    closed: HashSet<Name<'a>>,
    /// Where the text ended within a block, once that is reported.
    unclosed: Option<Position>,
    /// Whether the statement before could not be read: it may have been meant to end its block.
    failed: bool,
    /// Imageblocks among the parameters, which are declared once the attributes have said their size.
    pub(super) imageblocks: Vec<Imageblock<'a>>,
}

impl<'p, 'a> Body<'p, 'a> {
    /// Begins a kernel.
    pub fn new(parser: &'p mut Parser<'a>, builder: KernelBuilder) -> Body<'p, 'a> {
        Body {
            parser,
            builder,
            names: HashMap::new(),
            reserved: Vec::new(),
            closed: HashSet::new(),
            unclosed: None,
            failed: false,
            imageblocks: Vec::new(),
        }
    }

    /// From the parameters to the end of the body.
    pub fn kernel(&mut self, start: Position) -> Parsed<()> {
        let header = self.parameters().and_then(|()| {
            let broken = self.broken_names();
            self.parser.attributes(&mut self.builder, broken)
        });
        if header.is_err() {
            self.parser.recover_header()?;
        }
        self.imageblocks(header.is_ok());
        self.builder.kernel_mut().span = self.parser.span_from(start);
        self.body()
    }

    /// The names whose definitions are broken.
    fn broken_names(&self) -> HashSet<String> {
        let names = self.names.iter();
        let broken = names.filter_map(|(name, (known, _))| match (name, known) {
            (Name::Named(name), Known::Broken) => Some(name.to_string()),
            _sound => None,
        });
        broken.collect()
    }

    pub(super) fn error(&mut self, rule: Rule, span: Span, message: String, help: &str) -> Failed {
        self.parser
            .error(Diagnostic::error(rule, span, message).help(help))
    }

    /// What stands for a value that cannot be read.
    fn poison(&mut self, span: Span) -> Value {
        self.builder.set_span(span);
        self.builder.poison(Type::U32)
    }

    // ---- names ----

    /// Enters a name that is about to be defined.
    fn reserve(&mut self, name: Name<'a>, span: Span) -> Defined<'a> {
        match self.names.entry(name.clone()) {
            Entry::Vacant(slot) => {
                slot.insert((Known::Pending, span));
                self.reserved.push(name.clone());
                Defined { name, first: true }
            }
            Entry::Occupied(mut entry) => {
                let first = entry.get().1;
                // Behind the first one's block only the second can be meant: one error is enough.
                if self.closed.contains(&name) {
                    entry.get_mut().0 = Known::Broken;
                }
                let message = format!("`{}` is defined already", shorten(&name.to_string()));
                self.parser.error(
                    Diagnostic::error(Rule::DuplicateName, span, message)
                        .and(first, "first defined here")
                        .help("give one of them another name"),
                );
                Defined { name, first: false }
            }
        }
    }

    /// Says what a name that was entered is.
    pub(super) fn define(&mut self, defined: &Defined<'a>, known: Known) {
        if !defined.first {
            return;
        }
        if let Some((slot, _)) = self.names.get_mut(&defined.name) {
            *slot = known;
        }
        if let (Known::Value(value), Name::Named(name)) = (known, &defined.name) {
            self.builder.name(value, name);
        }
    }

    fn define_values(&mut self, defined: &[Defined<'a>], values: Option<&[Value]>) {
        for (i, name) in defined.iter().enumerate() {
            let value = values.and_then(|values| values.get(i));
            self.define(name, value.map_or(Known::Broken, |v| Known::Value(*v)));
        }
    }

    /// What the name at hand is; takes it.
    fn lookup(&mut self, what: &str) -> Parsed<(Known, Name<'a>, Span)> {
        if self.parser.at_line_start() {
            return self.parser.unexpected(what);
        }
        let (name, span) = self.parser.value_name(what)?;
        let known = match self.names.get(&name) {
            Some((Known::Pending, _)) => {
                let message = format!(
                    "`{}` is used before the instruction that defines it ends",
                    shorten(&name.to_string())
                );
                let help = "an instruction's results can be used after it; a loop's first values are \
                            those that it carries";
                self.error(Rule::UndefinedName, span, message, help);
                Known::Broken
            }
            Some((known, _)) => *known,
            None => {
                let text = name.to_string();
                let message = format!("`{}` is not defined before this", shorten(&text));
                let error = Diagnostic::error(Rule::UndefinedName, span, message);
                let names = self
                    .names
                    .iter()
                    .filter_map(|(name, (known, _))| match name {
                        Name::Named(name) if !matches!(known, Known::Pending) => Some(&**name),
                        Name::Named(_) | Name::Number(_) => None,
                    });
                let help = match self.parser.near(&text, names) {
                    Some(near) => format!("did you mean `%{}`?", name_text(near)),
                    None => "define it in a line before, or make it a parameter".to_string(),
                };
                self.parser.error(error.help(help));
                // One report a name is enough.
                self.names.insert(name.clone(), (Known::Broken, span));
                Known::Broken
            }
        };
        Ok((known, name, span))
    }

    /// A value; poison if its definition is broken.
    pub(super) fn operand(&mut self) -> Parsed<Value> {
        let (known, name, span) = self.lookup("a value")?;
        match known {
            Known::Value(value) => Ok(value),
            Known::Memory(_) => {
                let name = name.to_string();
                let name = shorten(&name);
                let message = format!("`{name}` is memory, expected a value");
                let help = format!("`load {name}[...]` gives one");
                self.error(Rule::TypeMismatch, span, message, &help);
                Ok(self.poison(span))
            }
            Known::Sampler(_) => {
                let name = name.to_string();
                let message = format!("`{}` is a sampler, expected a value", shorten(&name));
                let help = "name it behind a sample: `texture_sample %t[%u, %v] %s`";
                self.error(Rule::TypeMismatch, span, message, help);
                Ok(self.poison(span))
            }
            Known::Pending | Known::Broken => Ok(self.poison(span)),
        }
    }

    /// A sampler, if a name follows; the default if its definition is broken.
    pub(super) fn sampler_param(&mut self) -> Parsed<Option<SamplerSource>> {
        if self.at_end() || !matches!(self.parser.token.kind, Kind::Value(_)) {
            return Ok(None);
        }
        let (known, name, span) = self.lookup("a sampler")?;
        match known {
            Known::Sampler(sampler) => Ok(Some(sampler)),
            Known::Value(_) | Known::Memory(_) => {
                let name = name.to_string();
                let message = format!("`{}` is not a sampler", shorten(&name));
                let help = "name a parameter that is one: `%s: sampler`";
                self.error(Rule::TypeMismatch, span, message, help);
                Ok(Some(SamplerSource::default()))
            }
            Known::Pending | Known::Broken => Ok(Some(SamplerSource::default())),
        }
    }

    /// Values separated by commas, to the end of the statement; there may be none.
    fn operands(&mut self) -> Parsed<Values> {
        let mut values = Values::new();
        if self.at_end() {
            return Ok(values);
        }
        loop {
            values.push(self.operand()?);
            if self.at_end() {
                return Ok(values);
            }
            if !self.parser.accept(",") {
                return self.parser.unexpected("`,` or the end of the line");
            }
        }
    }

    /// `, %value`.
    pub(super) fn comma_operand(&mut self) -> Parsed<Value> {
        self.parser.expect(",")?;
        self.operand()
    }

    /// A memory object; none if its definition is broken.
    pub(super) fn memory(&mut self) -> Parsed<Option<Memory>> {
        if let Kind::Global(name) = &self.parser.token.kind {
            let name = name.clone();
            return match self.parser_with_module(|p| p.constant_number(&name)) {
                Ok(number) => {
                    self.parser.bump();
                    Ok(Some(Memory::Constant(number)))
                }
                Err(Failed) => {
                    self.parser.bump();
                    Ok(None)
                }
            };
        }
        let (known, name, span) = self.lookup("a memory object")?;
        match known {
            Known::Memory(memory) => Ok(Some(memory)),
            Known::Value(_) => {
                let message = format!(
                    "`{}` is a value, expected a memory object",
                    shorten(&name.to_string())
                );
                let help = "name a buffer, a threadgroup parameter or an array";
                self.error(Rule::TypeMismatch, span, message, help);
                Ok(None)
            }
            Known::Sampler(_) => {
                let name = name.to_string();
                let message = format!(
                    "`{}` is a sampler, expected a memory object",
                    shorten(&name)
                );
                let help = "name a buffer, a texture, a threadgroup parameter or an array";
                self.error(Rule::TypeMismatch, span, message, help);
                Ok(None)
            }
            Known::Pending | Known::Broken => Ok(None),
        }
    }

    /// Runs a part of the parser that looks at declarations, which the builder holds meanwhile.
    fn parser_with_module<T>(&mut self, f: impl FnOnce(&mut Parser<'a>) -> T) -> T {
        std::mem::swap(&mut self.parser.module, self.builder.module_mut());
        let result = f(self.parser);
        std::mem::swap(&mut self.parser.module, self.builder.module_mut());
        result
    }

    /// Whether a statement may end here.
    pub(super) fn at_end(&self) -> bool {
        self.parser.at_line_start() || self.parser.at("}")
    }

    // ---- the header ----

    /// The parameters in parentheses.
    pub fn parameters(&mut self) -> Parsed<()> {
        self.parser.expect("(")?;
        if self.parser.accept(")") {
            return Ok(());
        }
        loop {
            if self.parameter().is_err() {
                self.parser.recover_parameter()?;
            }
            if self.parser.accept(")") {
                return Ok(());
            }
            if !self.parser.accept(",") {
                return self.parser.unexpected("`,` or `)`");
            }
        }
    }

    fn parameter(&mut self) -> Parsed<()> {
        let start = self.parser.token.start;
        let (name, at) = self.parser.value_name("`%` and a parameter's name")?;
        let text = self.memory_name(&name, at, "a parameter")?;
        let defined = self.reserve(name, at);
        if self.parser.at(":") && self.parser.next_kind() == Kind::Word("imageblock") {
            return self.imageblock(start, defined, text);
        }
        let known = self.parameter_type(start, &text);
        let known = known.and_then(|known| self.binding(start).map(|()| known));
        self.define(&defined, known.unwrap_or(Known::Broken));
        known.map(|_| ())
    }

    /// Where a shader's host binds a parameter, if it is said, after its type.
    fn binding(&mut self, start: Position) -> Parsed<()> {
        if self.parser.word() != Some("binding") {
            return Ok(());
        }
        self.parser.bump();
        self.parser.expect("(")?;
        let group = self.parser.number("the group of a binding")?;
        self.parser.expect(",")?;
        let number = self.parser.number("the number of a binding")?;
        self.parser.expect(")")?;
        self.builder.bind(Binding { group, number });
        if let Some(param) = self.builder.kernel_mut().params.last_mut() {
            param.span = self.parser.span_from(start);
        }
        Ok(())
    }

    /// What a parameter is, after its name.
    fn parameter_type(&mut self, start: Position, text: &str) -> Parsed<Known> {
        self.parser.expect(":")?;
        Ok(match self.parser.word() {
            Some("device") => {
                self.parser.bump();
                let word = self.parser.word();
                let access = ACCESSES.into_iter().find(|a| Some(a.name()) == word);
                let Some(access) = access else {
                    return self.parser.unexpected("`read`, `write` or `read_write`");
                };
                self.parser.bump();
                let element = self.element_type()?;
                self.builder.set_span(self.parser.span_from(start));
                Known::Memory(self.builder.buffer(text, access, element))
            }
            Some("constant") => {
                self.parser.bump();
                let element = self.element_type()?;
                self.builder.set_span(self.parser.span_from(start));
                Known::Memory(self.builder.constant_buffer(text, element))
            }
            Some("threadgroup") => {
                self.parser.bump();
                let element = self.element_type()?;
                self.builder.set_span(self.parser.span_from(start));
                Known::Memory(self.builder.threadgroup_param(text, element))
            }
            Some("sampler") => {
                self.parser.bump();
                self.builder.set_span(self.parser.span_from(start));
                Known::Sampler(self.builder.sampler(text))
            }
            Some(word) if word.starts_with("texture") || word.starts_with("depth") => {
                let ty = self.texture_type()?;
                self.builder.set_span(self.parser.span_from(start));
                Known::Memory(self.builder.texture(text, ty))
            }
            Some(_) => {
                let ty = self.parser.value_type()?;
                self.builder.set_span(self.parser.span_from(start));
                Known::Value(self.builder.scalar(text, ty))
            }
            None => {
                return self
                    .parser
                    .unexpected("`device`, `constant`, `threadgroup` or a type");
            }
        })
    }

    pub(super) fn element_type(&mut self) -> Parsed<ElementType> {
        self.parser_with_module(|p| p.element_type())
    }

    /// The name of what must have one.
    fn memory_name(&mut self, name: &Name<'a>, at: Span, what: &str) -> Parsed<String> {
        match name {
            Name::Named(name) if !name.is_empty() => Ok(name.to_string()),
            Name::Named(_) | Name::Number(_) => {
                let message = format!(
                    "{what} needs a name, found `{}`",
                    shorten(&name.to_string())
                );
                let help = "a host and messages call it by its name: begin it with a letter";
                Err(self.error(Rule::Syntax, at, message, help))
            }
        }
    }

    // ---- statements ----

    /// The body in braces.
    pub fn body(&mut self) -> Parsed<()> {
        let open = self.parser.token.span();
        self.parser.expect("{")?;
        self.statements(0, open)?;
        // What the closing brace implies.
        self.builder.set_span(self.parser.token.span());
        self.parser.expect("}")
    }

    /// Statements up to the `}` of their block.
    fn statements(&mut self, depth: usize, open: Span) -> Parsed<()> {
        loop {
            if self.parser.at("}") {
                return Ok(());
            }
            let next_kernel = matches!(self.parser.word(), Some("kernel" | "struct"))
                && self.parser.at_line_start();
            if next_kernel || self.parser.token.kind == Kind::End {
                let at = self.parser.here();
                if self.unclosed != Some(at.start) {
                    self.unclosed = Some(at.start);
                    let message = format!("expected `}}`, found {}", self.parser.token.describe());
                    self.parser.error(
                        Diagnostic::error(Rule::Syntax, at, message)
                            .and(open, "to close the block that begins here")
                            .help("close it where it ends"),
                    );
                }
                return Err(Failed);
            }
            self.statement(depth);
        }
    }

    fn statement(&mut self, depth: usize) {
        let start = self.parser.token.start;
        self.failed = false;
        let mut defined = Vec::new();
        let outcome = self
            .results(&mut defined)
            .and_then(|()| self.operation(start, &defined, depth));
        let outcome = outcome.and_then(|built| {
            if self.at_end() {
                Ok(built)
            } else {
                self.parser.unexpected("the end of the line")
            }
        });
        match outcome {
            Ok(Built::Memory(memory)) => {
                for name in &defined {
                    self.define(name, Known::Memory(memory));
                }
            }
            Ok(Built::Values(values)) => {
                if !defined.is_empty() && defined.len() != values.len() {
                    let message = format!(
                        "the instruction gives {}, but {} to the left of `=`",
                        count(values.len(), "value", "values"),
                        count(defined.len(), "name is", "names are"),
                    );
                    let span = self.parser.span_from(start);
                    let help = "write one name for each value";
                    self.error(Rule::Syntax, span, message, help);
                }
                self.define_values(&defined, Some(&values));
            }
            Ok(Built::Broken) => self.define_values(&defined, None),
            Err(Failed) => {
                self.define_values(&defined, None);
                if self.parser.token.start == start {
                    self.parser.bump();
                }
                self.parser.recover();
                self.failed = true;
            }
        }
    }

    /// `%a, %b =`, if the statement begins so.
    fn results(&mut self, defined: &mut Vec<Defined<'a>>) -> Parsed<()> {
        if !matches!(self.parser.token.kind, Kind::Value(_)) {
            return Ok(());
        }
        loop {
            let (name, span) = self.parser.value_name("a result's name")?;
            if matches!(&name, Name::Named(name) if name.is_empty()) {
                let message = "a name is empty".to_string();
                return Err(self.error(Rule::Syntax, span, message, "leave the quotes out"));
            }
            let name = self.reserve(name, span);
            defined.push(name);
            if self.parser.accept("=") {
                return Ok(());
            }
            if !self.parser.accept(",") {
                return self.parser.unexpected("`,` or `=`");
            }
        }
    }

    fn operation(
        &mut self,
        start: Position,
        defined: &[Defined<'a>],
        depth: usize,
    ) -> Parsed<Built> {
        if defined.is_empty() && self.parser.word().is_none() {
            return self.parser.unexpected_here("an instruction");
        }
        let Some(word) = self.parser.word() else {
            return self.parser.unexpected("an instruction");
        };
        if self.parser.at_line_start() && !defined.is_empty() {
            return self.parser.unexpected("an instruction");
        }
        match word {
            "if" => return self.if_(start, defined, depth),
            "for" => return self.for_(start, depth),
            "loop" => return self.loop_(start, depth),
            "alloc" => return self.alloc(start, defined),
            _ => {}
        }
        if let Some(op) = AtomicOp::ALL.into_iter().find(|op| op.name() == word) {
            self.parser.bump();
            return self.atomic(op, start);
        }
        if imageblock::FUNCTIONS.contains(&word) {
            self.parser.bump();
            return self.imageblock_function(word, start);
        }
        if imageblock::OTHERS.contains(&word) {
            return Err(self.no_coverage(word));
        }
        if TextureFunction::NAMES.contains(&word) {
            self.parser.bump();
            return self.texture_function(word, start);
        }
        if InstKind::STRUCTURAL.contains(&word) || word == "else" {
            self.parser.bump();
            return self.flat(word, start);
        }
        match Op::from_name(word) {
            Some(op) => {
                self.parser.bump();
                self.row(op, start)
            }
            None => {
                let atomics = AtomicOp::ALL.iter().map(|op| op.name());
                let candidates = Op::all()
                    .map(Op::name)
                    .chain(InstKind::STRUCTURAL)
                    .chain(TextureFunction::NAMES)
                    .chain(imageblock::FUNCTIONS)
                    .chain(atomics);
                let help = "`invar ops` lists the operations";
                self.parser
                    .unknown(Rule::UndefinedName, "operation", word, candidates, help)
            }
        }
    }

    /// Sets the span of what is built next: from the statement's start to here.
    pub(super) fn spanned(&mut self, start: Position) {
        let span = self.parser.span_from(start);
        self.builder.set_span(span);
    }

    /// A row of the op table.
    fn row(&mut self, op: Op, start: Position) -> Parsed<Built> {
        let imm = self.imm(op)?;
        let args = self.operands()?;
        self.spanned(start);
        Ok(Built::one(self.builder.op(op, imm, &args)))
    }

    fn imm(&mut self, op: Op) -> Parsed<Imm> {
        let word = if self.parser.at_line_start() {
            None
        } else {
            self.parser.word()
        };
        match op.row().signature {
            Signature::Cast | Signature::AsType | Signature::Construct => {
                Ok(Imm::Type(self.parser.value_type()?))
            }
            Signature::Swizzle => match word.and_then(Swizzle::parse) {
                Some(swizzle) => {
                    self.parser.bump();
                    Ok(Imm::Swizzle(swizzle))
                }
                None => self
                    .parser
                    .unexpected("1 to 4 components, of x, y, z and w or of r, g, b and a"),
            },
            Signature::QueryDim => {
                match Dim::ALL.into_iter().find(|dim| Some(dim.name()) == word) {
                    Some(dim) => {
                        self.parser.bump();
                        Ok(Imm::Dim(dim))
                    }
                    None => self.parser.unexpected("a component: `x`, `y` or `z`"),
                }
            }
            _takes_values_only => Ok(Imm::None),
        }
    }

    fn alloc(&mut self, start: Position, defined: &[Defined<'a>]) -> Parsed<Built> {
        self.parser.bump();
        let space = match self.parser.word() {
            Some("threadgroup") => AddressSpace::Threadgroup,
            Some("thread") => AddressSpace::Thread,
            _ => return self.parser.unexpected("`threadgroup` or `thread`"),
        };
        self.parser.bump();
        let (element, length) = self.parser_with_module(|p| p.array("the array"))?;
        let span = self.parser.span_from(start);
        let [defined] = defined else {
            let message = format!("an array needs one name, found {}", defined.len());
            let help = "write `%name = alloc ...`";
            return Err(self.error(Rule::Syntax, span, message, help));
        };
        let name = self.memory_name(&defined.name, span, "an array")?;
        self.spanned(start);
        Ok(Built::Memory(if space == AddressSpace::Threadgroup {
            self.builder.alloc_threadgroup(&name, element, length)
        } else {
            self.builder.alloc_thread(&name, element, length)
        }))
    }

    fn atomic(&mut self, op: AtomicOp, start: Position) -> Parsed<Built> {
        let place = self.place()?;
        let mut args = SmallVec::<[Value; 2]>::new();
        for _ in 0..op.operand_count() {
            args.push(self.comma_operand()?);
        }
        let mut order = Order::default();
        let mut scope = None;
        if !self.at_end() {
            let word = self.parser.word();
            let found = Order::ALL.into_iter().find(|o| Some(o.name()) == word);
            if let Some(found) = found {
                order = found;
                self.parser.bump();
            }
        }
        if !self.at_end() {
            let word = self.parser.word();
            scope = SCOPES.into_iter().find(|s| Some(s.name()) == word);
            if scope.is_none() {
                return self
                    .parser
                    .unexpected("an order (`relaxed`, `acquire`, `release`, `acq_rel`, `seq_cst`) or a scope (`threadgroup`, `device`)");
            }
            self.parser.bump();
        }
        self.spanned(start);
        let Some(place) = place else {
            return Ok(Built::Broken);
        };
        let space = self.builder.memory(place.memory).map(|info| info.space);
        let scope = scope.unwrap_or(match space {
            Some(AddressSpace::Threadgroup) => Scope::Threadgroup,
            _other => Scope::Device,
        });
        Ok(Built::Values(
            self.builder.atomic(op, place, &args, order, scope),
        ))
    }

    /// An instruction without regions, after its word.
    fn flat(&mut self, word: &str, start: Position) -> Parsed<Built> {
        match word {
            "const" => {
                let scalar = self.parser.scalar_type()?;
                let constant = self.parser.literal(scalar)?;
                self.spanned(start);
                Ok(Built::one(self.builder.constant(constant)))
            }
            "function_constant" => {
                let Kind::Global(name) = &self.parser.token.kind else {
                    return self.parser.unexpected("`@` and a function constant's name");
                };
                let name = name.clone();
                let number = self.parser_with_module(|p| p.function_constant_number(&name))?;
                self.parser.bump();
                self.spanned(start);
                Ok(Built::one(self.builder.function_constant(number)))
            }
            "buffer_length" => {
                let memory = self.memory()?;
                self.spanned(start);
                Ok(memory.map_or(Built::Broken, |m| Built::one(self.builder.buffer_length(m))))
            }
            "load" => {
                let place = self.place()?;
                self.spanned(start);
                Ok(place.map_or(Built::Broken, |p| Built::one(self.builder.load(p))))
            }
            "store" => {
                let place = self.place()?;
                let value = self.comma_operand()?;
                self.spanned(start);
                if let Some(place) = place {
                    self.builder.store(place, value);
                }
                Ok(Built::none())
            }
            "copy" => {
                let (destination, to) = self.element()?;
                self.parser.expect(",")?;
                let (source, from) = self.element()?;
                let count = self.comma_operand()?;
                self.spanned(start);
                let operands = copy_operands(destination, to, source, from);
                if let Some(operands) = operands {
                    self.builder.copy(operands, count);
                }
                Ok(Built::none())
            }
            "async_copy" => {
                let (destination, to) = self.element()?;
                self.parser.expect(",")?;
                let (source, from) = self.element()?;
                let count = self.comma_operand()?;
                self.spanned(start);
                let operands = copy_operands(destination, to, source, from);
                let shape = CopyShape::Linear { count };
                Ok(operands.map_or(Built::Broken, |o| {
                    Built::one(self.builder.async_copy(o, shape))
                }))
            }
            "async_copy_2d" => self.async_copy_2d(start),
            "wait" => {
                let events = self.operands()?;
                self.spanned(start);
                self.builder.wait(&events);
                Ok(Built::none())
            }
            "barrier" => {
                let scope = self.scope()?;
                let spaces = self.spaces()?;
                self.spanned(start);
                self.builder.barrier(scope, spaces);
                Ok(Built::none())
            }
            "matrix_fill" => {
                let ty = self.parser.value_type()?;
                let value = self.operand()?;
                self.spanned(start);
                Ok(Built::one(self.builder.matrix_fill(ty, value)))
            }
            "matrix_load" => {
                let ty = self.parser.value_type()?;
                let place = self.matrix_place()?;
                self.spanned(start);
                Ok(place.map_or(Built::Broken, |p| {
                    Built::one(self.builder.matrix_load(ty, p))
                }))
            }
            "matrix_store" => {
                let place = self.matrix_place()?;
                let matrix = self.comma_operand()?;
                self.spanned(start);
                if let Some(place) = place {
                    self.builder.matrix_store(place, matrix);
                }
                Ok(Built::none())
            }
            "matrix_multiply_accumulate" => {
                let a = self.operand()?;
                let b = self.comma_operand()?;
                let c = self.comma_operand()?;
                self.spanned(start);
                Ok(Built::one(self.builder.matrix_multiply_accumulate(a, b, c)))
            }
            "assert_uniform" => {
                let scope = self.scope()?;
                let value = self.operand()?;
                self.spanned(start);
                Ok(Built::one(self.builder.assert_uniform(value, scope)))
            }
            "yield" => self.terminator(start, InstKind::Yield),
            "break" => self.terminator(start, InstKind::Break),
            "continue" => self.terminator(start, InstKind::Continue),
            "return" => {
                self.spanned(start);
                self.builder.return_();
                Ok(Built::none())
            }
            "print" => {
                let Kind::Quoted(text) = &self.parser.token.kind else {
                    return self.parser.unexpected("the text to print, in quotes");
                };
                let text = text.clone();
                self.parser.bump();
                let values = self.operands()?;
                self.spanned(start);
                self.builder.print(&text, &values);
                Ok(Built::none())
            }
            word => {
                let at = self.parser.span_from(start);
                let message = format!("`{word}` does not begin an instruction");
                let help = match word {
                    "else" => "write it after the `}` of an `if`",
                    _no_instruction => "begin with an instruction",
                };
                Err(self.error(Rule::Syntax, at, message, help))
            }
        }
    }

    fn async_copy_2d(&mut self, start: Position) -> Parsed<Built> {
        let (destination, to) = self.element()?;
        self.parser.expect_word("row")?;
        let destination_row = self.operand()?;
        self.parser.expect(",")?;
        let (source, from) = self.element()?;
        self.parser.expect_word("row")?;
        let source_row = self.operand()?;
        let columns = self.comma_operand()?;
        let rows = self.comma_operand()?;
        self.spanned(start);
        let operands = copy_operands(destination, to, source, from);
        let shape = CopyShape::Tile {
            destination_row,
            source_row,
            columns,
            rows,
        };
        Ok(operands.map_or(Built::Broken, |o| {
            Built::one(self.builder.async_copy(o, shape))
        }))
    }

    fn terminator(&mut self, start: Position, make: fn(Values) -> InstKind) -> Parsed<Built> {
        let values = self.operands();
        self.spanned(start);
        // What cannot be read still ends the region, so that nothing is said of that.
        let given = match &values {
            Ok(values) => values.clone(),
            Err(Failed) => Values::from_slice(&[self.poison(self.parser.token.span())]),
        };
        self.spanned(start);
        self.builder.push(make(given), &[]);
        values.map(|_| Built::none())
    }

    fn scope(&mut self) -> Parsed<Scope> {
        let word = self.parser.word();
        match SCOPES.into_iter().find(|s| Some(s.name()) == word) {
            Some(scope) if !self.parser.at_line_start() => {
                self.parser.bump();
                Ok(scope)
            }
            _ => self
                .parser
                .unexpected("a scope: `simdgroup`, `threadgroup` or `device`"),
        }
    }

    fn spaces(&mut self) -> Parsed<Spaces> {
        if self.at_end() {
            return Ok(Spaces::DEFAULT);
        }
        let mut spaces = Spaces::NONE;
        self.parser.list("[", "]", |p| {
            let word = p.word();
            match Spaces::NAMES
                .into_iter()
                .find(|(_, name)| Some(*name) == word)
            {
                Some((space, _)) => {
                    p.bump();
                    spaces = spaces.with(space);
                    Ok(())
                }
                None => p.unexpected("`device`, `threadgroup`, `texture` or `imageblock`"),
            }
        })?;
        Ok(spaces)
    }

    // ---- places ----

    /// `%x[%i]`: a memory object and an element of it.
    fn element(&mut self) -> Parsed<(Option<Memory>, Value)> {
        let memory = self.memory()?;
        self.parser.expect("[")?;
        let index = self.operand()?;
        self.parser.expect("]")?;
        Ok((memory, index))
    }

    /// `%x[%i]`, `%x[%i : 4]`, `%x[%i * 4]`, `%p[%i].position[%k]`.
    fn place(&mut self) -> Parsed<Option<Place>> {
        let start = self.parser.token.start;
        let memory = self.memory()?;
        self.parser.expect("[")?;
        let mut index = self.operand()?;
        if let Some(memory) = memory
            && self.parser.at(",")
            && self.is_imageblock(memory)
        {
            index = self.second_coordinate(start, memory, index)?;
        }
        let mut path = SmallVec::new();
        // The coordinates of a texel.
        while memory.is_some_and(|m| self.builder.kernel().texture(m).is_some())
            && self.parser.accept(",")
        {
            path.push(Step::Index(self.operand()?));
        }
        let width = if self.parser.accept(":") {
            Width::Run(self.width()?)
        } else if self.parser.accept("*") {
            Width::Group(self.width()?)
        } else {
            Width::One
        };
        if !self.parser.accept("]") {
            let expected = if width == Width::One {
                "`]`, `:` or `*`"
            } else {
                "`]`"
            };
            return self.parser.unexpected(expected);
        }
        let info = memory.and_then(|m| self.builder.memory(m));
        let element = info.map(|info| info.element.clone());
        let steps = self.steps(element)?;
        let (Some(memory), Some(steps)) = (memory, steps) else {
            return Ok(None);
        };
        path.extend(steps);
        Ok(Some(Place {
            memory,
            index,
            width,
            path,
        }))
    }

    /// The way into an element of this type, as far as it is known: `.position[%k]`. None if it is broken.
    pub(super) fn steps(
        &mut self,
        element: Option<ElementType>,
    ) -> Parsed<Option<SmallVec<[Step; 2]>>> {
        let mut path = SmallVec::new();
        // The type on the way, while it is known.
        let mut at = element;
        let mut complete = true;
        while !self.at_end() {
            if self.parser.accept("[") {
                path.push(Step::Index(self.operand()?));
                self.parser.expect("]")?;
                at = at.and_then(|ty| part(&ty));
            } else if self.parser.accept(".") {
                match self.field(&at)? {
                    Some((number, ty)) => {
                        path.push(Step::Field(number));
                        at = Some(ty);
                    }
                    None => {
                        complete = false;
                        at = None;
                    }
                }
            } else {
                break;
            }
        }
        Ok(complete.then_some(path))
    }

    fn width(&mut self) -> Parsed<u8> {
        let at = self.parser.token.span();
        let count = self.parser.number("a number of elements")?;
        u8::try_from(count).map_err(|_| {
            let message = format!("an access covers at most 4 elements, not {count}");
            self.error(Rule::TypeMismatch, at, message, "split it into several")
        })
    }

    /// A field's name after the dot: its number and type; none if there is no such field.
    fn field(&mut self, of: &Option<ElementType>) -> Parsed<Option<(u32, ElementType)>> {
        let name = match &self.parser.token.kind {
            Kind::Word(word) => std::borrow::Cow::Borrowed(*word),
            Kind::Quoted(text) => text.clone(),
            _ => return self.parser.unexpected("a field's name"),
        };
        let at = self.parser.bump().span();
        let Some(of) = of else {
            return Ok(None);
        };
        let structs = &self.builder.module().structs;
        let ElementType::Struct(id) = of else {
            let ty = of.display(structs).to_string();
            let message = format!(
                "{ty} has no field `{}`: it is not a struct",
                field_text(&name)
            );
            let help = "components are indexed: `%x[%i][%k]`";
            self.error(Rule::TypeMismatch, at, message, help);
            return Ok(None);
        };
        let Some(def) = structs.get(id.0 as usize) else {
            return Ok(None);
        };
        if let Some(number) = def.fields.iter().position(|(field, _)| **field == *name) {
            return Ok(Some((number as u32, def.fields[number].1.clone())));
        }
        let message = format!(
            "struct `@{}` has no field `{}`",
            name_text(&def.name),
            shorten(&field_text(&name))
        );
        let error = Diagnostic::error(Rule::UndefinedName, at, message);
        let fields = def.fields.iter().map(|(field, _)| &**field);
        let help = match self.parser.near(&name, fields) {
            Some(near) => format!("did you mean `{}`?", field_text(near)),
            None => "name a field that the struct declares".to_string(),
        };
        let error = error
            .and(def.span, "the struct is declared here")
            .help(help);
        self.parser.error(error);
        Ok(None)
    }

    /// `%x[%i] row %ld [transpose]`.
    fn matrix_place(&mut self) -> Parsed<Option<MatrixPlace>> {
        let (memory, index) = self.element()?;
        self.parser.expect_word("row")?;
        let row = self.operand()?;
        let transpose = !self.parser.at_line_start() && self.parser.accept_word("transpose");
        Ok((|| {
            Some(MatrixPlace {
                memory: memory?,
                index,
                row,
                transpose,
            })
        })())
    }

    // ---- regions ----

    /// Takes the `{` of a region at that depth, and gives its place and that of the header.
    fn open(&mut self, start: Position, depth: usize) -> Parsed<(Span, Span)> {
        if self.parser.at("{") && depth >= MAX_NESTING {
            let at = self.parser.token.span();
            let message = format!("blocks nest at most {MAX_NESTING} deep");
            return Err(self.error(Rule::LimitExceeded, at, message, NESTING_HELP));
        }
        let header = self.parser.span_from(start);
        let open = self.parser.token.span();
        self.parser.expect("{")?;
        Ok((open, header))
    }

    /// A region after its `{`, with parameters like those values.
    fn region(
        &mut self,
        depth: usize,
        open: Span,
        names: &[Defined<'a>],
        first: &[Value],
    ) -> Parsed<Region> {
        let params = self.builder.open_region_of(first);
        self.define_values(names, Some(&params));
        let outside = self.reserved.len();
        let outcome = self.statements(depth + 1, open);
        let own = names.iter().filter(|n| n.first).map(|n| n.name.clone());
        self.closed
            .extend(own.chain(self.reserved.drain(outside..)));
        if self.failed && !self.builder.terminated() {
            // What could not be read may have been its end.
            let unknown = self.poison(self.parser.token.span());
            self.builder.yield_(&[unknown]);
        }
        // The closing brace implies a `yield`.
        self.builder.set_span(self.parser.token.span());
        let region = self.builder.close_region();
        outcome?;
        self.parser.expect("}")?;
        Ok(region)
    }

    fn if_(&mut self, start: Position, defined: &[Defined<'a>], depth: usize) -> Parsed<Built> {
        self.parser.bump();
        let condition = self.operand()?;
        let (open, header) = self.open(start, depth)?;
        let then = self.region(depth, open, &[], &[])?;
        let otherwise = if self.parser.accept_word("else") {
            let (open, _) = self.open(start, depth)?;
            self.region(depth, open, &[], &[])?
        } else {
            self.builder.open_region(&[]);
            self.builder.close_region()
        };
        self.builder.set_span(header);
        let results = self.builder.if_regions(condition, then, otherwise);
        // A `yield` that could not be read may have given as many values as there are names.
        let unknown = results.iter().any(|v| self.builder.is_poison(*v));
        if unknown && results.len() != defined.len() {
            return Ok(Built::Broken);
        }
        Ok(Built::Values(results))
    }

    fn for_(&mut self, start: Position, depth: usize) -> Parsed<Built> {
        self.parser.bump();
        let (index, at) = self.parser.value_name("`%` and the index's name")?;
        let index = self.reserve(index, at);
        self.parser.expect("=")?;
        let lower = self.operand()?;
        self.parser.expect_word("to")?;
        let upper = self.operand()?;
        self.parser.expect_word("step")?;
        let step = self.operand()?;
        let mut names = vec![index];
        let init = self.carry(&mut names)?;
        let (open, header) = self.open(start, depth)?;
        let mut first = vec![lower];
        first.extend(&init);
        let body = self.region(depth, open, &names, &first)?;
        self.builder.set_span(header);
        let types: Vec<Type> = init.iter().map(|v| self.builder.ty(*v)).collect();
        let kind = InstKind::For {
            lower,
            upper,
            step,
            init,
            body,
        };
        Ok(Built::Values(self.builder.push(kind, &types)))
    }

    fn loop_(&mut self, start: Position, depth: usize) -> Parsed<Built> {
        self.parser.bump();
        let mut names = Vec::new();
        let init = self.carry(&mut names)?;
        let (open, header) = self.open(start, depth)?;
        let body = self.region(depth, open, &names, &init)?;
        self.builder.set_span(header);
        let types: Vec<Type> = init.iter().map(|v| self.builder.ty(*v)).collect();
        Ok(Built::Values(
            self.builder.push(InstKind::Loop { init, body }, &types),
        ))
    }

    /// `carry(%a = %b, ...)`, which may be missing.
    fn carry(&mut self, names: &mut Vec<Defined<'a>>) -> Parsed<Values> {
        let mut init = Values::new();
        if !self.parser.accept_word("carry") {
            return Ok(init);
        }
        self.parser.expect("(")?;
        loop {
            let (name, at) = self.parser.value_name("`%` and a carried value's name")?;
            let name = self.reserve(name, at);
            names.push(name);
            self.parser.expect("=")?;
            init.push(self.operand()?);
            if self.parser.accept(")") {
                return Ok(init);
            }
            if !self.parser.accept(",") {
                return self.parser.unexpected("`,` or `)`");
            }
        }
    }
}

/// What a statement gives.
pub(super) enum Built {
    /// Values, one for each name to the left.
    Values(Results),
    /// An array.
    Memory(Memory),
    /// Nothing that can be used, because something it uses is broken.
    Broken,
}

impl Built {
    pub(super) fn one(value: Value) -> Built {
        Built::Values([value].into_iter().collect())
    }

    pub(super) fn none() -> Built {
        Built::Values(Results::new())
    }
}

fn copy_operands(
    destination: Option<Memory>,
    destination_index: Value,
    source: Option<Memory>,
    source_index: Value,
) -> Option<CopyOperands> {
    Some(CopyOperands {
        destination: destination?,
        destination_index,
        source: source?,
        source_index,
    })
}

/// What an index steps to, to name the fields after it.
fn part(ty: &ElementType) -> Option<ElementType> {
    match ty {
        ElementType::Array(element, _) => Some((**element).clone()),
        ElementType::Value(_) | ElementType::Struct(_) => None,
    }
}

/// So many of something.
fn count(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}
