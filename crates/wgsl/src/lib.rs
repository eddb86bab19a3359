//! Shaders of others: WGSL as Invar kernels.
//!
//! Every compute entry point of a shader becomes a kernel, whose instructions point at the shader's own
//! lines and name the calls that led to them. A shader's variables are the kernel's parameters, by their
//! names; a buffer that ends in an array of no fixed length is two, the rest and the array. How the
//! standard's rules and the memory model's fit together is in `docs/wgsl.md`.
//!
//! Naga reads the text and checks it; nothing below this crate knows it. Deliberately absent: other
//! stages than compute, and SPIR-V and GLSL, of which naga's readers lose the scopes
//! of barriers.

use std::borrow::Cow;
use std::collections::HashSet;

use invar_ir::room::{COMPILER_BYTES, with_room};
use invar_ir::{Const, Diagnostic, Diagnostics, Module, Rule, Source, Span, verify};
use naga::front::wgsl::{Frontend, Options, ParseError};
use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};
use naga::{Handle, Override, ShaderStage};

mod advice;
mod alias;
mod behind;
mod bitcast;
mod declared;
mod depth;
mod dereferences;
mod enable;
mod entry;
mod expression;
mod flow;
mod functions;
mod layout;
mod math;
mod memory;
mod narrow;
mod neighbours;
mod overrides;
mod place;
mod pointers;
mod simplify;
mod swizzle;
mod texture;
mod translate;
mod translator;
mod tree;
mod types;
mod uniformity;
mod value;
mod variables;
mod words;

pub use advice::{
    asks_for_order, in_source, in_wgsl, launches_in_wgsl, told, waits, words_of_wgsl,
};
use bitcast::FromHalves;
pub use declared::{Counted, Declared, Written, is_of_three, is_padding, scalars, slots, written};
pub use entry::{Entry, Resource, entries};
use overrides::Overrides;
use place::Lines;
pub use simplify::simplified;
use swizzle::Swizzle;

/// Of more bitcasts nobody finds out which are from vectors of `f16`: each that is not takes another look.
const MOST_BITCASTS: usize = 200;

/// A shader that naga has read and checked.
pub struct Shader {
    module: naga::Module,
    info: ModuleInfo,
    source: Source,
    lines: Lines,
    /// What walks over it need of the stack.
    stack_bytes: usize,
}

/// Kernels made of a shader.
pub struct Kernels {
    /// The module, to be verified; where all entry points were asked for, what is not refused passes.
    pub module: Module,
    /// The entry points, in the order of the module's kernels.
    pub entries: Vec<Entry>,
    /// The entry points of which no kernel can be made, or one that the verifier refuses, by their names, and why:
    /// where all were asked for.
    pub refused: Vec<(String, Diagnostics)>,
}

/// A text with a line feed for each other end of a line of the standard: CR (a CR LF stays), vertical tab, form
/// feed, U+0085, U+2028 and U+2029. Places in a shader are told by its lines, as are those of `run:` lines.
///
/// ```
/// use invar_wgsl::with_line_feeds;
///
/// assert_eq!(with_line_feeds("a\rb\r\nc\u{2028}d\n"), "a\nb\r\nc\nd\n");
/// ```
pub fn with_line_feeds(text: &str) -> Cow<'_, str> {
    const OTHERS: [char; 6] = ['\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];
    let mut out = String::new();
    let mut from = 0;
    for (at, end) in text.match_indices(OTHERS) {
        let next = at + end.len();
        if end == "\r" && text[next..].starts_with('\n') {
            continue;
        }
        out.push_str(&text[from..at]);
        out.push('\n');
        from = next;
    }
    if from == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[from..]);
    Cow::Owned(out)
}

impl Shader {
    /// Reads a shader. Its lines are those of [`with_line_feeds`].
    ///
    /// ```
    /// let text = "@compute @workgroup_size(64) fn main() {}";
    /// let shader = invar_wgsl::Shader::parse("empty.wgsl", text)?;
    /// assert_eq!(shader.entries().collect::<Vec<_>>(), ["main"]);
    /// # Ok::<(), invar_ir::Diagnostics>(())
    /// ```
    ///
    /// # Errors
    /// What naga says is wrong with the text, at its place in it; the source is the only one, of number 0.
    pub fn parse(name: &str, text: &str) -> Result<Shader, Diagnostics> {
        // Some editors begin a text so; columns count from behind it.
        let text = with_line_feeds(text.strip_prefix('\u{feff}').unwrap_or(text));
        let text = &*text;
        if u32::try_from(text.len()).is_err() {
            let message = "the shader is longer than 4 GiB";
            let error = Diagnostic::error(Rule::LimitExceeded, Span::NONE, message);
            return Err(Diagnostics(vec![error]));
        }
        let lines = Lines::new(text.into(), &[], &[]);
        let depth = depth::of(lines.as_naga_knows());
        let deepest = naga::Span::new(depth.deepest as u32, depth.deepest as u32 + 1);
        if depth.levels > depth::MAX_DEPTH {
            let message = format!(
                "more than {} operators, brackets and `else`s of one expression or `if` follow each other here",
                depth::MAX_DEPTH
            );
            let error = Diagnostic::error(Rule::LimitExceeded, lines.span(deepest), message)
                .help("give parts of it names, by `let`, or put them into functions");
            return Err(Diagnostics(vec![error]));
        }
        if depth.declarations > depth::MAX_DECLARATIONS {
            let message = format!(
                "the shader has more than {} declarations",
                depth::MAX_DECLARATIONS
            );
            let error = Diagnostic::error(Rule::LimitExceeded, Span::NONE, message);
            return Err(Diagnostics(vec![error]));
        }
        let stack_bytes = COMPILER_BYTES + depth.stack_bytes();
        with_room(stack_bytes, || {
            Shader::parsed(name, text, lines, stack_bytes, deepest)
        })
    }

    fn parsed(
        name: &str,
        text: &str,
        lines: Lines,
        stack_bytes: usize,
        deepest: naga::Span,
    ) -> Result<Shader, Diagnostics> {
        let source = Source {
            name: name.into(),
            text: text.into(),
        };
        let (mut module, info, lines) = match checked(&lines, deepest) {
            Ok((module, info)) => (module, info, lines),
            Err(wrong) => rewritten(text, wrong, deepest)
                .map_err(|wrong| Diagnostics(vec![*wrong.diagnostic]))?,
        };
        without_own_names(&mut module);
        for point in &mut module.entry_points {
            flow::without_last_returns(&mut point.function.body);
        }
        Ok(Shader {
            module,
            info,
            source,
            lines,
            stack_bytes,
        })
    }

    /// The names of the compute entry points, in the order of the text.
    pub fn entries(&self) -> impl Iterator<Item = &str> {
        let points = self.module.entry_points.iter();
        points
            .filter(|p| p.stage == ShaderStage::Compute)
            .map(|p| p.name.as_str())
    }

    /// Warnings of what a browser refuses and Invar takes: aliases, and what is not uniform by the
    /// standard's analysis. They are of the whole file, of which a browser takes all or nothing.
    ///
    /// ```
    /// let text = "
    ///     fn add(a: ptr<function, u32>, b: ptr<function, u32>) { *a += *b; }
    ///     @compute @workgroup_size(1) fn main() { var x = 1u; add(&x, &x); }
    /// ";
    /// let lints = invar_wgsl::Shader::parse("twice.wgsl", text)?.lints();
    /// assert_eq!(lints[0].rule, invar_ir::Rule::WgslAlias);
    /// # Ok::<(), invar_ir::Diagnostics>(())
    /// ```
    pub fn lints(&self) -> Vec<Diagnostic> {
        with_room(self.stack_bytes, || {
            let mut all = alias::lints(&self.module, &self.lines);
            all.extend(uniformity::lints(&self.module, &self.lines));
            all
        })
    }

    /// The names of the overrides that have to have a value when kernels are made, since a size depends
    /// on it, and those that are function constants of the kernels.
    pub fn overrides(&self) -> Vec<String> {
        let all = self.module.overrides.iter();
        all.map(|(_, o)| match (&o.name, o.id) {
            (Some(name), _) => name.clone(),
            (None, Some(id)) => id.to_string(),
            (None, None) => String::new(),
        })
        .collect()
    }

    /// The overrides that these entry points use.
    fn used(&self, asked: &dyn Fn(&str) -> bool) -> HashSet<Handle<Override>> {
        let points = self.module.entry_points.iter();
        let asked = |p: &&naga::EntryPoint| asked(&p.name);
        let is_compute = |p: &&naga::EntryPoint| p.stage == ShaderStage::Compute;
        overrides::used(&self.module, points.filter(asked).filter(is_compute))
    }

    /// The names of the overrides that decide a size in the compute entry points, or in the one of that name, and
    /// have neither a value by themselves nor one of these.
    ///
    /// ```
    /// let text = "override n: u32; @compute @workgroup_size(n) fn main() {}";
    /// let shader = invar_wgsl::Shader::parse("open.wgsl", text)?;
    /// assert_eq!(shader.open_sizes(None, &[]), ["n"]);
    /// assert!(shader.open_sizes(None, &[("n".to_string(), 64.0)]).is_empty());
    /// # Ok::<(), invar_ir::Diagnostics>(())
    /// ```
    pub fn open_sizes(&self, entry: Option<&str>, given: &[(String, f64)]) -> Vec<String> {
        with_room(self.stack_bytes, || {
            let asked = |name: &str| entry.is_none_or(|entry| entry == name);
            overrides::open_sizes(&self.module, given, &self.used(&asked))
        })
    }

    /// The overrides that decide what an entry point does and are not made of others, with the values that they have
    /// by themselves.
    ///
    /// ```
    /// let text = "
    ///     override n = 4u;
    ///     override twice = 2u * n;
    ///     override unused = 1u;
    ///     var<workgroup> w: array<u32, twice>;
    ///     @compute @workgroup_size(64)
    ///     fn main(@builtin(local_invocation_index) i: u32) { w[i] = n; }
    /// ";
    /// let shader = invar_wgsl::Shader::parse("settings.wgsl", text)?;
    /// assert_eq!(shader.settings("main"), [("n".to_string(), Some(4u32.into()))]);
    /// # Ok::<(), invar_ir::Diagnostics>(())
    /// ```
    pub fn settings(&self, entry: &str) -> Vec<(String, Option<Const>)> {
        with_room(self.stack_bytes, || {
            overrides::settings(&self.module, &self.used(&|name| name == entry))
        })
    }

    /// Makes kernels of the compute entry points, or of the one of that name, with these values of
    /// overrides. Of all of them, those that cannot be made, or not pass the verifier, are left out, and
    /// [`Kernels::refused`] says why.
    ///
    /// ```
    /// let text = "
    ///     @group(0) @binding(0) var<storage, read_write> x: array<f32>;
    ///     @compute @workgroup_size(64)
    ///     fn double(@builtin(global_invocation_id) id: vec3u) { x[id.x] *= 2.0; }
    /// ";
    /// let shader = invar_wgsl::Shader::parse("double.wgsl", text)?;
    /// let kernels = shader.kernels(None, &[])?;
    /// assert_eq!(&*kernels.module.kernels[0].name, "double");
    /// assert!(invar_ir::verify(kernels.module).is_ok());
    /// # Ok::<(), invar_ir::Diagnostics>(())
    /// ```
    ///
    /// # Errors
    /// There is no such entry point; something in it is not supported, with its line; an override
    /// has no value that it needs. Where all are asked for: what is wrong with each, if all are left out.
    pub fn kernels(
        &self,
        entry: Option<&str>,
        overrides: &[(String, f64)],
    ) -> Result<Kernels, Diagnostics> {
        if let Some(entry) = entry
            && !self.entries().any(|name| name == entry)
        {
            return Err(Diagnostics(vec![self.without(entry)]));
        }
        with_room(self.stack_bytes, || match entry {
            Some(entry) => self.translated(&|name| name == entry, overrides),
            None => self.possible(overrides),
        })
    }

    /// There is no such entry point.
    fn without(&self, entry: &str) -> Diagnostic {
        let names: Vec<String> = self.entries().map(|n| format!("`{n}`")).collect();
        if names.is_empty() {
            return self.without_any();
        }
        let message = format!(
            "the shader has no compute entry point `{entry}`; it has {}",
            names.join(", ")
        );
        Diagnostic::error(Rule::NoKernel, Span::NONE, message)
    }

    fn without_any(&self) -> Diagnostic {
        let message = "the shader has no compute entry point";
        Diagnostic::error(Rule::NoKernel, self.lines.beginning(), message)
    }

    /// The kernels that can be made.
    fn possible(&self, overrides: &[(String, f64)]) -> Result<Kernels, Diagnostics> {
        let has_values = |name: &str| {
            let used = self.used(&|other| other == name);
            Overrides::new(&self.module, &self.lines, overrides, &used).map(|_| ())
        };
        let (mut known, mut refused) = (HashSet::new(), Vec::new());
        for name in self.entries() {
            match has_values(name) {
                Ok(()) => _ = known.insert(name),
                Err(error) => refused.push((name.to_string(), Diagnostics(vec![error]))),
            }
        }
        if known.is_empty() && refused.is_empty() {
            return Err(Diagnostics(vec![self.without_any()]));
        }
        let left_out = Some(&mut refused);
        let made = self.made(&|name| known.contains(name), overrides, left_out)?;
        if made.entries.is_empty() {
            let mut all = Vec::new();
            for error in refused.into_iter().flat_map(|(_, Diagnostics(why))| why) {
                // What is wrong with what they share is one thing.
                if !all.contains(&error) {
                    all.push(error);
                }
            }
            return Err(Diagnostics(all));
        }
        let place = |name: &str| self.entries().position(|entry| entry == name);
        refused.sort_by_key(|(name, _)| place(name));
        Ok(Kernels { refused, ..made })
    }

    /// The kernels that are asked for, all of which have to be possible.
    fn translated(
        &self,
        asked: &dyn Fn(&str) -> bool,
        overrides: &[(String, f64)],
    ) -> Result<Kernels, Diagnostics> {
        let made = self.made(asked, overrides, None)?;
        match made.entries.is_empty() {
            true => Err(Diagnostics(vec![self.without_any()])),
            false => Ok(made),
        }
    }

    /// The kernels that are asked for. With a list of those that are left out it gets those that are refused, by
    /// the verifier too; without one the first that cannot be made is the error.
    fn made(
        &self,
        asked: &dyn Fn(&str) -> bool,
        overrides: &[(String, f64)],
        mut left_out: Option<&mut Vec<(String, Diagnostics)>>,
    ) -> Result<Kernels, Diagnostics> {
        let used = self.used(asked);
        let (overrides, constants) = Overrides::new(&self.module, &self.lines, overrides, &used)
            .map_err(|error| Diagnostics(vec![error]))?;
        // What kernels share, and the kernels apart from it: it is copied for each, should that one be refused.
        let mut kernels = Vec::new();
        let mut module = Module {
            sources: vec![self.source.clone()],
            function_constants: constants,
            ..Module::default()
        };
        let mut entries = Vec::new();
        for (number, point) in self.module.entry_points.iter().enumerate() {
            if point.stage != ShaderStage::Compute || !asked(&point.name) {
                continue;
            }
            let (shader, info, lines) = (&self.module, &self.info, &self.lines);
            let before = module.clone();
            let made = translate::entry(shader, info, &overrides, lines, module, number);
            let made = made.and_then(|(with, resources)| match left_out {
                Some(_) => Ok((verified(with)?, resources)),
                None => Ok((with, resources)),
            });
            match (made, &mut left_out) {
                (Ok((with, resources)), _) => {
                    module = with;
                    kernels.append(&mut module.kernels);
                    entries.push(Entry {
                        name: point.name.clone(),
                        resources,
                        variables: Vec::new(),
                    });
                }
                (Err(why), Some(left_out)) => {
                    module = before;
                    left_out.push((point.name.clone(), why));
                }
                (Err(why), None) => return Err(why),
            }
        }
        Ok(Kernels {
            module: Module { kernels, ..module },
            entries,
            refused: Vec::new(),
        })
    }
}

/// A module that the verifier takes.
fn verified(module: Module) -> Result<Module, Diagnostics> {
    // What is refused does not have the module whose calls it names.
    let calls = module.calls.clone();
    match verify(module) {
        Ok(module) => Ok(module.into_module()),
        Err(Diagnostics(all)) => {
            let all = all.into_iter().map(|error| error.bringing(&calls));
            Err(Diagnostics(all.collect()))
        }
    }
}

/// A variable outside of workgroup memory whose length is an override, which the standard forbids.
fn sized_by_override(module: &naga::Module, lines: &Lines) -> Option<Diagnostic> {
    let (handle, variable) = module.global_variables.iter().find(|(_, variable)| {
        let sized = matches!(
            module.types[variable.ty].inner,
            naga::TypeInner::Array {
                size: naga::ArraySize::Pending(_),
                ..
            }
        );
        sized && variable.space != naga::AddressSpace::WorkGroup
    })?;
    let name = variable.name.as_deref().unwrap_or_default();
    let message = format!(
        "the length of `{name}` is an override: only arrays in workgroup memory may have such a length"
    );
    let span = lines.span(module.global_variables.get_span(handle));
    let error = Diagnostic::error(Rule::TypeMismatch, span, message);
    Some(error.help("make its length a `const`, or, in storage, leave it out: `array<T>`"))
}

/// What naga says is wrong, and the bytes of the author's text at which it says so.
struct Wrong {
    diagnostic: Box<Diagnostic>,
    places: Vec<usize>,
}

/// Has naga read and check a text. `deepest` is where it nests most.
fn checked(lines: &Lines, deepest: naga::Span) -> Result<(naga::Module, ModuleInfo), Wrong> {
    let mut options = Options::new();
    options.capabilities = Capabilities::all();
    let mut module = Frontend::new_with_options(options)
        .parse(lines.as_naga_knows())
        .map_err(|error| {
            let places = error.labels().filter_map(|(span, _)| lines.byte(span));
            let places: Vec<usize> = places.collect();
            let one = |diagnostic| Wrong {
                diagnostic: Box::new(diagnostic),
                places,
            };
            let placed = |(span, _): &(naga::Span, &str)| span.is_defined();
            let mut labels = error.labels().filter(placed);
            let (span, label) = labels.next().unwrap_or((naga::Span::UNDEFINED, ""));
            // A place without words of its own.
            let label = if label == "see msg" { "" } else { label };
            if error.notes().any(|note| note.contains("recursion limit")) {
                let message = "expressions or types lie deeper in each other here than naga \
                               reads, which are about 200 levels";
                let error = Diagnostic::error(Rule::LimitExceeded, lines.span(deepest), message);
                return one(error.help("give parts of it names, by `let` or `alias`"));
            }
            if let Some(name) = preprocessors(lines.as_naga_knows(), span) {
                let message = format!("WGSL has no preprocessor, and no `{name}`");
                let error = Diagnostic::error(Rule::Syntax, lines.span(span), message);
                return one(error.help(
                    "run the file through the preprocessor that it is written for first, and give what comes out",
                ));
            }
            let message = words::message(&error);
            let place = match message.contains("too large") {
                true => lines.longest_array(),
                false if span.is_defined() => None,
                false => place_of(lines.as_naga_knows(), error.message()),
            };
            if let Some(statement) = used_as_another(lines.as_naga_knows(), &error, span) {
                let diagnostic = Diagnostic::error(Rule::Syntax, lines.span(statement), message);
                return one(diagnostic.and(lines.span(span), words::abstract_types(label)));
            }
            let at = lines.span_or(span, place);
            let mut diagnostic = Diagnostic::error(Rule::Syntax, at, &*message)
                .labelled(words::abstract_types(label));
            for (span, label) in labels {
                diagnostic = diagnostic.and(lines.span(span), words::abstract_types(label));
            }
            if let Some(help) = words::notes(&error) {
                diagnostic = diagnostic.help(help);
            }
            if message.contains("unknown address space") && message.contains("push_constant") {
                diagnostic = diagnostic.help("its name in the standard is `immediate`: `var<immediate>`");
            }
            if message.starts_with("redefinition of") && is_in_continuing(lines, &error) {
                diagnostic = diagnostic.help(
                    "give it another name: naga reads the body of a loop and its `continuing` as one block, \
                     where the standard has two",
                );
            }
            one(diagnostic)
        })?;
    dereferences::place(&mut module, lines.as_naga_knows());
    if let Some(place) = swizzle::of_another_size(&module) {
        let error = Diagnostic::error(Rule::TypeMismatch, lines.span(place), NO_FIT);
        return Err(Wrong {
            diagnostic: Box::new(error),
            places: lines.byte(place).into_iter().collect(),
        });
    }
    let sized = sized_by_override(&module, lines);
    let sized = sized.map(|diagnostic| (diagnostic, naga::Span::UNDEFINED));
    if let Some((diagnostic, place)) = sized.or_else(|| words::wrong_argument(&module, lines)) {
        return Err(Wrong {
            diagnostic: Box::new(diagnostic),
            places: lines.byte(place).into_iter().collect(),
        });
    }
    // Uniformity is the verifier's.
    let flags = ValidationFlags::all() - ValidationFlags::CONTROL_FLOW_UNIFORMITY;
    let checked = pointers::without(&module);
    let checked = neighbours::without(checked.as_ref().unwrap_or(&module)).or(checked);
    let linear = lines.has_linear_indices();
    let checked = behind::without(checked.as_ref().unwrap_or(&module), linear).or(checked);
    let info = Validator::new(flags, Capabilities::all())
        .validate(checked.as_ref().unwrap_or(&module))
        .map_err(|error| {
            let places = error.spans().filter_map(|(span, _)| lines.byte(*span));
            let places: Vec<usize> = places.collect();
            // The last place is the innermost.
            let span = error
                .spans()
                .last()
                .map_or(naga::Span::UNDEFINED, |(span, _)| *span);
            let checked = checked.as_ref().unwrap_or(&module);
            let diagnostic = words::diagnostic(checked, error.as_inner(), span, lines);
            Wrong {
                diagnostic: Box::new(diagnostic),
                places,
            }
        })?;
    Ok((module, info))
}

/// Where something is wrong that naga gives no place for.
fn place_of(text: &str, message: &str) -> Option<naga::Span> {
    let says = |text: &str| {
        let mut options = Options::new();
        options.capabilities = Capabilities::all();
        let read = Frontend::new_with_options(options).parse(text);
        read.is_err_and(|error| error.message() == message)
    };
    let found = narrow::statement(text, &says)?;
    Some(naga::Span::new(found.start as u32, found.end as u32))
}

/// The directive of a preprocessor, such as `#import`, that stands at a place.
fn preprocessors(text: &str, at: naga::Span) -> Option<&str> {
    let rest = text.get(at.to_range()?.start..)?;
    let word = rest.strip_prefix('#')?;
    let end = word.find(|c: char| !c.is_alphanumeric() && c != '_');
    Some(&rest[..1 + end.unwrap_or(word.len())])
}

/// Where a value that stands elsewhere, with a name, is used as what its type does not convert to, of which naga tells
/// the place of the value.
fn used_as_another(text: &str, error: &ParseError, value: naga::Span) -> Option<naga::Span> {
    let mut labels = error.labels();
    let is_unplaced = labels.next().is_some_and(|(span, _)| !span.is_defined());
    if !is_unplaced || !error.message().starts_with("automatic conversions") {
        return None;
    }
    let statement = place_of(text, error.message())?;
    let (inside, around) = (value.to_range()?, statement.to_range()?);
    (inside.end <= around.start || around.end <= inside.start).then_some(statement)
}

/// Whether a name is declared again in the `continuing` of the block that has it already.
fn is_in_continuing(lines: &Lines, error: &ParseError) -> bool {
    let mut places = error.labels().filter_map(|(span, _)| span.to_range());
    let (Some(again), Some(before)) = (places.next(), places.next()) else {
        return false;
    };
    let code = bitcast::without_comments(lines.as_naga_knows());
    let Some(between) = code.get(before.end..again.start) else {
        return false;
    };
    let mut open = Vec::new();
    for (at, c) in between.char_indices() {
        match c {
            '{' => open.push(between[..at].trim_end().ends_with("continuing")),
            '}' => _ = open.pop(),
            _inside => {}
        }
    }
    open == [true]
}

/// What naga has read, and the lines of the text.
type Read = (naga::Module, ModuleInfo, Lines);

/// A text that naga does not take as it stands, with what it does not know of the standard in other words.
fn rewritten(text: &str, wrong: Wrong, deepest: naga::Span) -> Result<Read, Wrong> {
    let (wrong, swizzles) = match with_swizzles(text, wrong, deepest) {
        Ok(read) => return Ok(read),
        Err(still) => still,
    };
    if let Some(read) = with_halves(text, &swizzles, deepest) {
        return Ok(read);
    }
    // Naga says one thing at a time, and may have begun with a bitcast.
    let mut certain = swizzle::all(text);
    certain.retain(|s| !s.may_be_member(text));
    let read = match swizzles.is_empty() && !certain.is_empty() {
        true => with_halves(text, &certain, deepest),
        false => None,
    };
    read.ok_or(wrong)
}

/// What naga says of an assignment to several components.
const NO_ASSIGNMENT: &str = "invalid left-hand side of assignment";

/// What is assigned so has another number of components.
const NO_FIT: &str = "another number of components";

/// A text with those of its assignments to several components that naga does not take; or what is wrong with it still,
/// and those assignments.
fn with_swizzles(
    text: &str,
    mut wrong: Wrong,
    deepest: naga::Span,
) -> Result<Read, (Wrong, Vec<Swizzle>)> {
    let is_refused = |wrong: &Wrong| wrong.diagnostic.message == NO_ASSIGNMENT;
    if !is_refused(&wrong) {
        return Err((wrong, Vec::new()));
    }
    let mut all = swizzle::all(text);
    // Naga says which names of members are those of components.
    let mut taken: Vec<bool> = all.iter().map(|s| !s.may_be_member(text)).collect();
    let mut chosen = Vec::new();
    loop {
        let speaks_of = |s: &Swizzle| wrong.places.iter().any(|at| s.statement().contains(at));
        let Some(number) = all.iter().position(speaks_of) else {
            break;
        };
        let before = std::mem::replace(&mut taken[number], true);
        let changes = match is_refused(&wrong) {
            true => !before || chosen.is_empty(),
            false => wrong.diagnostic.message != NO_FIT && all[number].turn(),
        };
        if !changes {
            let message = &wrong.diagnostic.message;
            let words = [NO_FIT, "accessor", "convert"];
            if words.iter().any(|words| message.contains(words)) {
                let target = &text[all[number].target()];
                let message = format!(
                    "what `{target}` is assigned is not {} numbers of its type",
                    all[number].count()
                );
                let place = Lines::new(text.into(), &[], &[]).of(all[number].statement());
                *wrong.diagnostic = Diagnostic::error(Rule::TypeMismatch, place, message);
            }
            break;
        }
        chosen = all
            .iter()
            .zip(&taken)
            .filter(|(_, taken)| **taken)
            .map(|(s, _)| s.clone())
            .collect();
        let lines = Lines::new(text.into(), &[], &chosen);
        match checked(&lines, deepest) {
            Ok((module, info)) => return Ok((module, info, lines)),
            Err(other) => wrong = other,
        }
    }
    Err((wrong, chosen))
}

/// Takes the names away that no author gave.
fn without_own_names(module: &mut naga::Module) {
    let functions = module.functions.iter_mut().map(|(_, f)| f);
    let points = module.entry_points.iter_mut().map(|p| &mut p.function);
    for function in functions.chain(points) {
        function
            .named_expressions
            .retain(|_, name| !name.starts_with("invar_"));
    }
}

/// A text that naga does not take as it stands, with as many of its bitcasts as it takes from vectors of `f16`.
fn with_halves(text: &str, swizzles: &[Swizzle], deepest: naga::Span) -> Option<Read> {
    if !text.contains("f16") {
        return None;
    }
    // Few are to the type that they are from: what each look costs is spent on those last.
    let with = |same| with_these(text, bitcast::from_halves(text, same), swizzles, deepest);
    with(false).or_else(|| with(true))
}

fn with_these(
    text: &str,
    mut casts: Vec<FromHalves>,
    swizzles: &[Swizzle],
    deepest: naga::Span,
) -> Option<Read> {
    while !casts.is_empty() && casts.len() <= MOST_BITCASTS {
        let lines = Lines::new(text.into(), &casts, swizzles);
        match checked(&lines, deepest) {
            Ok((module, info)) => return Some((module, info, lines)),
            Err(Wrong { places, .. }) => {
                // The innermost that it stands in is none.
                let is_in = |cast: &FromHalves| places.iter().any(|at| cast.argument.contains(at));
                casts.remove(casts.iter().rposition(is_in)?);
            }
        }
    }
    None
}

/// Reads a shader and makes kernels of its compute entry points. Those for which an override without a value
/// decides a size are left out, if there are others: [`Shader::kernels`] takes values.
///
/// ```
/// let text = "
///     override n: u32;
///     @compute @workgroup_size(8) fn main() {}
///     @compute @workgroup_size(n) fn wide() {}
/// ";
/// let module = invar_wgsl::read("two.wgsl", text)?;
/// assert_eq!(module.kernels.len(), 1);
/// assert_eq!(module.kernels[0].threadgroup_size, Some([8, 1, 1]));
///
/// let shader = invar_wgsl::Shader::parse("two.wgsl", text)?;
/// let wide = shader.kernels(Some("wide"), &[("n".to_string(), 64.0)])?;
/// assert_eq!(wide.module.kernels[0].threadgroup_size, Some([64, 1, 1]));
/// # Ok::<(), invar_ir::Diagnostics>(())
/// ```
///
/// # Errors
/// As [`Shader::parse`] and [`Shader::kernels`].
pub fn read(name: &str, text: &str) -> Result<Module, Diagnostics> {
    let shader = Shader::parse(name, text)?;
    let is_known = |entry: &&str| shader.open_sizes(Some(entry), &[]).is_empty();
    let known: HashSet<&str> = shader.entries().filter(is_known).collect();
    let asked = |entry: &str| known.is_empty() || known.contains(entry);
    Ok(with_room(shader.stack_bytes, || shader.translated(&asked, &[]))?.module)
}

/// The `run` and `program` lines and expectations of a shader, which stand in comments
/// (`// run: @main(...)`), as the comments of a text in Invar's own form, line by line and column by column; of code one letter is left.
/// Names are written as that form has them: `%list.items`, `"0.1"`.
///
/// ```
/// let text = "fn f() {} // error[data-race]: x\n// run: @main() groups(1)\n";
/// let lines = invar_wgsl::directives(text);
/// assert_eq!(lines, "x          ; error[data-race]: x\n ; run: @main() groups(1)\n");
/// ```
pub fn directives(text: &str) -> String {
    let mut out = String::new();
    let mut goes_on = false;
    // Whether it names parameters.
    let mut is_run = false;
    // What an expectation speaks of is a line of code: one word stands for what is there.
    let code = |text: &str| -> String {
        let mut first = true;
        let mut blank = |c: char| {
            let here = !c.is_whitespace() && std::mem::take(&mut first);
            if here { 'x' } else { ' ' }
        };
        text.chars().map(&mut blank).collect()
    };
    for line in text.split_inclusive('\n') {
        let body = line.trim_end_matches(['\n', '\r']);
        let comment = body.find("//").map(|at| (at, body[at + 2..].trim_start()));
        let starts = |c: &str| {
            ["run:", "program:", "error[", "warning["]
                .iter()
                .any(|s| c.starts_with(s))
        };
        match comment {
            Some((at, text))
                if starts(text) || (goes_on && body.trim_start().starts_with("//")) =>
            {
                out.push_str(&code(&body[..at]));
                out.push_str(" ;");
                if starts(text) {
                    is_run = text.starts_with("run:") || text.starts_with("program:");
                }
                match is_run {
                    true => out.push_str(&with_names(&body[at + 2..])),
                    false => out.push_str(&body[at + 2..]),
                }
                goes_on = true;
            }
            _code => {
                out.push_str(&code(match comment {
                    Some((at, _)) => &body[..at],
                    None => body,
                }));
                goes_on = false;
            }
        }
        out.push_str(&line[body.len()..]);
    }
    out
}

/// A line of a comment with the names in a form that the text form reads: `list.items = ` with a `%`, a group and
/// binding, `0.1 = `, in quotes. These take the places of blanks, so that what stands behind keeps its own.
fn with_names(line: &str) -> String {
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let mut out = String::new();
    let mut rest = line;
    let mut in_quotes = false;
    while let Some(at) = rest.find(|c| is_name(c) || c == '"') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        if let Some(after) = from.strip_prefix('"') {
            in_quotes = !in_quotes;
            out.push('"');
            rest = after;
            continue;
        }
        let (name, after) = from.split_at(from.find(|c| !is_name(c)).unwrap_or(from.len()));
        rest = after;
        let is_part = |part: &str| part.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let has_parts = name.contains('.') && name.split('.').all(is_part);
        let is_place =
            name.split('.').count() == 2 && name.split('.').all(|part| part.parse::<u32>().is_ok());
        let equals = after.trim_start();
        let is_given = equals.starts_with('=') || equals.starts_with("~=");
        let begins = out.ends_with(['(', ',', ' ', '\t']) || out.ends_with("->");
        if in_quotes || !is_given || !begins || !(has_parts || is_place) {
            out.push_str(name);
            continue;
        }
        let has_blank = out.ends_with(' ') && !out.trim_end().is_empty();
        if has_blank {
            out.pop();
        }
        if is_place || !has_blank {
            rest = after.strip_prefix(' ').unwrap_or(after);
        }
        match is_place {
            true => out.push_str(&format!("\"{name}\"")),
            false => out.push_str(&format!("%{name}")),
        }
    }
    out.push_str(rest);
    out
}

/// Runs the examples of the page on shaders.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/wgsl.md")]
struct Page;
