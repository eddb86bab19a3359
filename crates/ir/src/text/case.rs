//! What a text says in its comments: how to run its kernels and what comes out, and what is wrong on
//! which line.
//!
//! ```text
//! ; run: @k(x = random(64, 1), n = 64) grid(64) threadgroup(32) -> x == [1, 2], y ~= reference (ulp 2)
//! store %x[%i], %v  ; error[data-race]: x
//! ```
//!
//! A `program` directive has buffers of its own, and runs kernels on them one after the other:
//!
//! ```text
//! ; program: x = random(64, 1), sums = zeros(2)
//! ;   then @sums(x = x, sums = sums) grid(64) threadgroup(32)
//! ;   then @scan(sums = sums) grid(2) threadgroup(2)
//! ;   -> sums ~= reference (ulp 2)
//! ```
//!
//! Both go on in the comments of the next lines as long as a parenthesis or bracket is open, after a
//! `,`, and before a clause (`grid(`), a `then @` or a `->`. An expectation speaks of its own line;
//! alone on a line, of the nearest line of code above; above all code, of a diagnostic that has no
//! place.
//!
//! This module reads directives; [`super::data`] makes bytes of their expressions and compares bytes
//! with them; running is the caller's.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use invar_texture::{MAX_EXTENT, Sampler, TextureShape};

use super::lexer::{Kind, Lexer, Name, field_text, shorten, span};
use super::parser::{Parsed, Parser, nearest};
use super::texture::with_word;
use super::{MAX_ERRORS, literal};
use crate::diagnostic::{Diagnostic, Diagnostics, Severity, path_text};
use crate::inst::Const;
use crate::rules::Rule;
use crate::span::Span;
use crate::types::Scalar;

/// The `.inv` files of a folder, by name.
///
/// # Errors
/// A folder that cannot be read or that has no such file.
pub fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "inv") {
            files.push(path);
        }
    }
    if files.is_empty() {
        let what = format!("{} has no `.inv` file", path_text(folder));
        return Err(io::Error::new(io::ErrorKind::NotFound, what));
    }
    files.sort();
    Ok(files)
}

/// One run of a kernel: a `run` directive.
#[derive(Clone, Debug, PartialEq)]
pub struct RunCase {
    /// The kernel's name and where it stands.
    pub kernel: Named,
    /// What each parameter gets, in the order written.
    pub args: Vec<(Named, Expr)>,
    /// How much runs.
    pub grid: Grid,
    /// Threads a threadgroup, where the directive says it.
    pub threadgroup: Option<[u32; 3]>,
    /// Values of function constants.
    pub constants: Vec<(Named, Literal)>,
    /// The simdgroup size to run with, where the directive says it.
    pub simdgroup: Option<u32>,
    /// The seed of the reference machine's order of threads, where the directive says it.
    pub seed: Option<u64>,
    /// What must hold afterwards.
    pub expects: Vec<Expect>,
    /// The directive, from `run`.
    pub span: Span,
}

/// Kernels that run one after the other on the same buffers: a `program` directive.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The buffers and what they hold at first.
    pub buffers: Vec<(Named, Expr)>,
    /// What runs, in order; at least one.
    pub passes: Vec<Pass>,
    /// What must hold of the buffers after the last pass; their `param` names a buffer.
    pub expects: Vec<Expect>,
    /// The directive, from `program`.
    pub span: Span,
}

/// One run of a kernel in a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Pass {
    /// The run, with the arguments that are the pass's own. It expects nothing.
    pub case: RunCase,
    /// The parameters that get a buffer of the program: which, and the buffer's place among them.
    pub shared: Vec<(Named, usize)>,
}

/// A name and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The name, without sigil or quotes.
    pub name: String,
    /// Where it stands.
    pub span: Span,
}

/// How much runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grid {
    /// `grid(x, y, z)`: in threads.
    Threads([u32; 3]),
    /// `groups(x, y, z)`: in threadgroups.
    Threadgroups([u32; 3]),
}

/// A scalar as written; what it is depends on its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Literal {
    /// As written: `-1.5`, `0xff`, `inf`, `true`.
    pub text: String,
    /// Where it stands.
    pub span: Span,
}

impl Literal {
    /// The scalar of that type.
    ///
    /// # Errors
    /// The literal is none of that type.
    pub fn as_const(&self, scalar: Scalar) -> Result<Const, Diagnostic> {
        literal::parse(scalar, &self.text)
            .map_err(|why| Diagnostic::error(Rule::Syntax, self.span, why))
    }
}

/// An expression that stands for data.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// Which.
    pub kind: ExprKind,
    /// Where it stands.
    pub span: Span,
}

/// Which data. Counts are of elements.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// `7`: a value.
    Scalar(Literal),
    /// `[1, 2.5, inf]`: the scalars of elements in the order of their locations.
    List(Vec<Literal>),
    /// `random(count, seed)`: see [`super::data::random_scalar`].
    Random {
        /// How many elements.
        count: u64,
        /// The seed; 0 if it is not written.
        seed: u64,
    },
    /// `zeros(count)`.
    Zeros(u64),
    /// `fill(count, value)`: every scalar the same.
    Fill {
        /// How many elements.
        count: u64,
        /// The scalar.
        value: Literal,
    },
    /// `iota(count)`: scalars numbered from 0.
    Iota(u64),
    /// `@file.npy`, `@"path/file.npy"`: what an array file holds.
    File(String),
    /// `rev(data)`: its elements in reverse order.
    Rev(Box<Expr>),
    /// `length(count)`: of a threadgroup parameter, which has a length but no data.
    Length(u64),
    /// `sampler(linear, repeat)`: of a sampler parameter.
    Sampler(Sampler),
    /// `reference`: what the reference machine computes. Only in expectations.
    Reference,
    /// `texture(rgba8unorm, width, height)`, or with a number of slices behind them, and `levels 3` or `samples 4` behind
    /// that: of zeros, or of the scalars of an expression behind a comma, level after level, row after row, those of a texel
    /// side by side.
    Texture {
        /// Its format and size.
        shape: TextureShape,
        /// Its contents, of [`crate::texture::stored`] scalars.
        contents: Option<Box<Expr>>,
    },
}

/// What must hold of a buffer after a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Expect {
    /// The buffer parameter.
    pub param: Named,
    /// How near.
    pub tolerance: Tolerance,
    /// To what.
    pub value: Expr,
    /// The expectation.
    pub span: Span,
}

/// How near floats must be; other scalars are always compared bit by bit. In all of them a NaN
/// equals every NaN and nothing else.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// `==`: the same bits.
    Exact,
    /// `~= .. (abs A, rel R)`: `|actual - expected| <= A + R * |expected|`; infinities the same.
    Within {
        /// Absolute part.
        abs: f64,
        /// Relative part.
        rel: f64,
    },
    /// `~= .. (ulp N)`: at most so many floats of the type further; infinities the same.
    Ulp(u64),
}

/// A diagnostic that a line must give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedDiagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// Its rule.
    pub rule: Rule,
    /// A part of its message.
    pub message: String,
    /// The line that it speaks of, from 1; 0 for a diagnostic without a place.
    pub line: u32,
    /// Where the expectation stands.
    pub span: Span,
}

/// How deep `rev` may nest.
const MAX_REV: usize = 16;

/// The `run` directives of a text, in order.
///
/// ```
/// let cases = invar_ir::text::cases("; run: @k(x = iota(4)) grid(4) -> x == [3, 2, 1, 0]").unwrap();
/// assert_eq!(cases[0].kernel.name, "k");
/// assert_eq!(cases[0].expects.len(), 1);
/// ```
///
/// # Errors
/// Every directive that cannot be read, with its place.
pub fn cases(text: &str) -> Result<Vec<RunCase>, Diagnostics> {
    directives(text, "run:", run)
}

/// What the comments that begin with a word say.
fn directives<T>(
    text: &str,
    word: &str,
    read: impl Fn(&mut Parser<'_>) -> Parsed<T>,
) -> Result<Vec<T>, Diagnostics> {
    let mut found = Vec::new();
    let mut errors = Vec::new();
    for_each_comment(text, |comment| {
        if comment.text.starts_with(word) {
            let mut parser = Parser::new(comment.inside);
            if let Ok(one) = read(&mut parser) {
                found.push(one);
            }
            errors.append(&mut parser.errors);
        }
        errors.len() < MAX_ERRORS
    });
    if errors.is_empty() {
        Ok(found)
    } else {
        Err(Diagnostics(errors))
    }
}

/// The `program` directives of a text, in order.
///
/// ```
/// let text = "; program: x = iota(4) then @k(x = x) grid(4) then @k(x = x) grid(2) -> x == [2, 3, 3, 4]";
/// let programs = invar_ir::text::programs(text).unwrap();
/// assert_eq!(programs[0].passes.len(), 2);
/// assert_eq!(programs[0].passes[1].case.kernel.name, "k");
/// ```
///
/// # Errors
/// Every directive that cannot be read, with its place.
pub fn programs(text: &str) -> Result<Vec<Program>, Diagnostics> {
    directives(text, "program:", program)
}

/// An expression that stands for data, by itself, as in an argument of a directive.
///
/// ```
/// use invar_ir::text::case::{ExprKind, data};
///
/// assert_eq!(data("iota(4)").unwrap().kind, ExprKind::Iota(4));
/// let error = data("[1, 2").unwrap_err();
/// assert_eq!(error.message, "expected `,` or `]`, found the end of the text");
/// ```
///
/// # Errors
/// The text is none, or goes on behind it.
pub fn data(text: &str) -> Result<Expr, Diagnostic> {
    let mut parser = Parser::new(Lexer::new(text));
    let read = expr(&mut parser, 0).and_then(|found| match parser.token.kind {
        Kind::End => Ok(found),
        _ => parser.unexpected_here("the end of the text"),
    });
    read.map_err(|_| {
        let first = parser.errors.into_iter().next();
        first.unwrap_or_else(|| Diagnostic::error(Rule::Syntax, Span::NONE, "it is not data"))
    })
}

/// The expectations of a text, in order: comments that begin `error[rule]:` or `warning[rule]:`.
///
/// # Errors
/// Every expectation that cannot be read, with its place.
pub fn expectations(text: &str) -> Result<Vec<ExpectedDiagnostic>, Diagnostics> {
    let mut found = Vec::new();
    let mut errors = Vec::new();
    for_each_comment(text, |comment| {
        if comment.text.starts_with("error[") || comment.text.starts_with("warning[") {
            match expectation(&comment) {
                Ok(expected) => found.push(expected),
                Err(error) => errors.push(error),
            }
        }
        errors.len() < MAX_ERRORS
    });
    if errors.is_empty() {
        Ok(found)
    } else {
        Err(Diagnostics(errors))
    }
}

/// How diagnostics differ from what a text expects, one sentence each; empty if they do not. Each
/// expectation is met by one diagnostic, and each diagnostic meets one.
pub fn differences(expected: &[ExpectedDiagnostic], actual: &[Diagnostic]) -> Vec<String> {
    let meets = |e: &ExpectedDiagnostic, d: &Diagnostic| {
        e.severity == d.severity
            && e.rule == d.rule
            && e.line == d.span().start.line
            && d.message.contains(&e.message)
    };
    // Pairs as many as can be: an expectation may take the diagnostic of one that finds another.
    let choices: Vec<Vec<usize>> = expected
        .iter()
        .map(|e| {
            (0..actual.len())
                .filter(|d| meets(e, &actual[*d]))
                .collect()
        })
        .collect();
    let mut met_by: Vec<Option<usize>> = vec![None; actual.len()];
    let missing: Vec<String> = expected
        .iter()
        .enumerate()
        .filter(|(e, _)| !pair(*e, &choices, &mut met_by, &mut vec![false; actual.len()]))
        .map(|(_, e)| format!("line {}: expected {} with `{}`", e.line, e.rule, e.message))
        .collect();
    let surplus = actual
        .iter()
        .zip(&met_by)
        .filter(|(_, by)| by.is_none())
        .map(|(d, _)| format!("not expected: {d}"));
    missing.into_iter().chain(surplus).collect()
}

/// Finds a partner for `from`, if need be by moving others to another of their choices.
fn pair(
    from: usize,
    choices: &[Vec<usize>],
    partner: &mut [Option<usize>],
    seen: &mut [bool],
) -> bool {
    choices[from].iter().any(|&to| {
        if std::mem::replace(&mut seen[to], true) {
            return false;
        }
        let free = match partner[to] {
            None => true,
            Some(other) => pair(other, choices, partner, seen),
        };
        if free {
            partner[to] = Some(from);
        }
        free
    })
}

/// A comment of a text.
struct Comment<'a> {
    text: &'a str,
    at: Span,
    /// The line of code that it speaks of; 0 if there is none above.
    line: u32,
    inside: Lexer<'a>,
}

/// Calls `f` on every comment until it says false.
fn for_each_comment<'a>(text: &'a str, mut f: impl FnMut(Comment<'a>) -> bool) {
    let mut lexer = Lexer::new(text);
    let mut code_line = 0;
    loop {
        let token = lexer.next();
        match token.kind {
            Kind::End => return,
            Kind::Comment {
                text,
                alone,
                inside,
            } => {
                let comment = Comment {
                    text,
                    at: span(token.start, token.end),
                    line: if alone { code_line } else { token.start.line },
                    inside,
                };
                if !f(comment) {
                    return;
                }
            }
            _ => code_line = token.end.line,
        }
    }
}

fn expectation(comment: &Comment<'_>) -> Result<ExpectedDiagnostic, Diagnostic> {
    let (severity, rest) = match comment.text.strip_prefix("error[") {
        Some(rest) => (Severity::Error, rest),
        None => (
            Severity::Warning,
            comment.text.trim_start_matches("warning["),
        ),
    };
    let wrong = |message: String| Diagnostic::error(Rule::Syntax, comment.at, message);
    let Some((rule, message)) = rest.split_once("]:") else {
        return Err(wrong(
            "an expectation reads `error[rule-name]: part of the message`".to_string(),
        ));
    };
    match Rule::from_name(rule) {
        Some(rule) => Ok(ExpectedDiagnostic {
            severity,
            rule,
            message: message.trim().to_string(),
            line: comment.line,
            span: comment.at,
        }),
        None => {
            let error = wrong(format!("there is no rule `{}`", shorten(rule)));
            let names = Rule::ALL.iter().map(|rule| rule.name());
            Err(match nearest(rule, names) {
                Some(near) => error.help(format!("did you mean `{near}`?")),
                None => error,
            })
        }
    }
}

// ---- run and program directives ----

fn run(p: &mut Parser<'_>) -> Parsed<RunCase> {
    let start = p.token.start;
    p.expect_word("run")?;
    p.expect(":")?;
    let Pass { mut case, .. } = pass(p, None)?;
    case.expects = expects(p)?;
    case.span = p.span_from(start);
    Ok(case)
}

fn program(p: &mut Parser<'_>) -> Parsed<Program> {
    let start = p.token.start;
    p.expect_word("program")?;
    p.expect(":")?;
    let mut buffers = Vec::new();
    loop {
        let name = bare_name(p, "a buffer's name")?;
        p.expect("=")?;
        buffers.push((name, expr(p, 0)?));
        if !p.accept(",") {
            break;
        }
    }
    unique(p, "a buffer", buffers.iter().map(|(name, _)| name))?;
    let mut passes = Vec::new();
    while p.word() == Some("then") && (!p.at_line_start() || p.followed_by_global()) {
        p.bump();
        passes.push(pass(p, Some(&buffers))?);
    }
    if passes.is_empty() {
        return p.unexpected("`then @` and a kernel's name");
    }
    let expects = expects(p)?;
    for expect in &expects {
        buffer(p, &buffers, &expect.param)?;
    }
    Ok(Program {
        buffers,
        passes,
        expects,
        span: p.span_from(start),
    })
}

/// A kernel, its arguments and clauses. In a program an argument may be a buffer of it.
fn pass(p: &mut Parser<'_>, buffers: Option<&[(Named, Expr)]>) -> Parsed<Pass> {
    let start = p.token.start;
    let (name, span) = p.global("`@` and a kernel's name")?;
    let kernel = Named {
        name: name.into_owned(),
        span,
    };
    let mut args = Vec::new();
    let mut shared = Vec::new();
    p.list("(", ")", |p| {
        let name = bare_name(p, "a parameter's name")?;
        p.expect("=")?;
        match buffers {
            Some(buffers) if at_name(p) => {
                let named = bare_name(p, "a buffer's name")?;
                shared.push((name, buffer(p, buffers, &named)?));
            }
            Some(_) | None => args.push((name, expr(p, 0)?)),
        }
        Ok(())
    })?;
    let mut case = RunCase {
        kernel,
        args,
        grid: Grid::Threads([0; 3]),
        threadgroup: None,
        constants: Vec::new(),
        simdgroup: None,
        seed: None,
        expects: Vec::new(),
        span: p.span_from(start),
    };
    clauses(p, &mut case, buffers.is_some())?;
    case.span = p.span_from(start);
    let given = case.args.iter().map(|(name, _)| name);
    let given = given.chain(shared.iter().map(|(name, _)| name));
    unique(p, "an argument", given)?;
    unique(
        p,
        "a value for",
        case.constants.iter().map(|(name, _)| name),
    )?;
    Ok(Pass { case, shared })
}

/// Whether a name is at hand: no value, and no word that makes data, as in `iota(8)`.
fn at_name(p: &Parser<'_>) -> bool {
    match p.token.kind {
        Kind::Quoted(_) => true,
        Kind::Word("true" | "false" | "inf" | "nan") => false,
        Kind::Word(_) => !p.followed_by("("),
        _ => false,
    }
}

/// The place of a program's buffer.
fn buffer(p: &mut Parser<'_>, buffers: &[(Named, Expr)], named: &Named) -> Parsed<usize> {
    let found = buffers.iter().position(|(b, _)| b.name == named.name);
    found.ok_or_else(|| {
        let names: Vec<String> = buffers
            .iter()
            .map(|(b, _)| format!("`{}`", shorten(&b.name)))
            .collect();
        let message = format!("the program has no buffer `{}`", shorten(&named.name));
        let error = Diagnostic::error(Rule::UndefinedName, named.span, message);
        p.error(error.help(format!("it has {}", names.join(", "))))
    })
}

/// What must hold afterwards, to the end of the directive.
fn expects(p: &mut Parser<'_>) -> Parsed<Vec<Expect>> {
    let mut expects = Vec::new();
    if p.accept("->") {
        loop {
            expects.push(expect(p)?);
            if !p.accept(",") {
                break;
            }
        }
    }
    if !p.at_line_start() {
        return p.unexpected("the end of the directive");
    }
    Ok(expects)
}

fn clauses(p: &mut Parser<'_>, case: &mut RunCase, in_program: bool) -> Parsed<()> {
    const WORDS: [&str; 6] = [
        "grid",
        "groups",
        "threadgroup",
        "const",
        "simdgroup",
        "seed",
    ];
    let mut seen: Vec<&str> = Vec::new();
    while let Some(word) = p.word() {
        let known = WORDS.contains(&word);
        let then = word == "then" && (!p.at_line_start() || p.followed_by_global());
        let begins = known && p.followed_by("(") || then;
        if p.at_line_start() && !begins || in_program && word == "then" {
            break;
        }
        if !known {
            let help = match then {
                true => {
                    "kernels run one after the other in a program, as in `; program: x = iota(8) \
                     then @a(x = x) grid(8) then @b(x = x) grid(8)`"
                }
                false => "the clauses are grid, groups, threadgroup, const, simdgroup and seed",
            };
            return p.unknown(Rule::Syntax, "clause", word, WORDS, help);
        }
        // One of `grid` and `groups`.
        let slot = if word == "groups" { "grid" } else { word };
        if seen.contains(&slot) {
            let message = format!("`{word}`: the directive says that already");
            let at = p.token.span();
            return Err(p.error(Diagnostic::error(Rule::Syntax, at, message)));
        }
        seen.push(slot);
        p.bump();
        match word {
            "grid" => case.grid = Grid::Threads(p.size("a grid")?),
            "groups" => case.grid = Grid::Threadgroups(p.size("a grid")?),
            "threadgroup" => case.threadgroup = Some(p.size("a threadgroup size")?),
            "const" => p.list("(", ")", |p| {
                let name = match &p.token.kind {
                    Kind::Global(name) => Named {
                        name: name.to_string(),
                        span: p.bump().span(),
                    },
                    _ => bare_name(p, "a function constant's name")?,
                };
                p.expect("=")?;
                case.constants.push((name, scalar(p)?));
                Ok(())
            })?,
            "simdgroup" => {
                p.expect("(")?;
                case.simdgroup = Some(p.number("a simdgroup size")?);
                p.expect(")")?;
            }
            _seed => {
                p.expect("(")?;
                case.seed = Some(p.long_number("a seed")?);
                p.expect(")")?;
            }
        }
    }
    if !seen.contains(&"grid") {
        return p.unexpected("`grid(..)` or `groups(..)`");
    }
    Ok(())
}

/// Refuses a name that stands twice.
fn unique<'c>(
    p: &mut Parser<'_>,
    what: &str,
    names: impl Iterator<Item = &'c Named>,
) -> Parsed<()> {
    let mut seen = std::collections::HashSet::new();
    for name in names {
        if !seen.insert(&name.name) {
            let message = format!("there is {what} `{}` already", shorten(&name.name));
            return Err(p.error(Diagnostic::error(Rule::DuplicateName, name.span, message)));
        }
    }
    Ok(())
}

/// A name without a sigil, or with `%`.
fn bare_name(p: &mut Parser<'_>, what: &str) -> Parsed<Named> {
    let name: Cow<'_, str> = match &p.token.kind {
        Kind::Word(word) => Cow::Borrowed(*word),
        Kind::Quoted(name) | Kind::Value(Name::Named(name)) => name.clone(),
        _ => return p.unexpected(what),
    };
    Ok(Named {
        name: name.into_owned(),
        span: p.bump().span(),
    })
}

fn scalar(p: &mut Parser<'_>) -> Parsed<Literal> {
    let text = match p.token.kind {
        Kind::Number(text) => text,
        Kind::Word(word @ ("true" | "false" | "inf" | "nan")) => word,
        _ => return p.unexpected("a number, `true`, `false`, `inf` or `nan`"),
    };
    Ok(Literal {
        text: text.to_string(),
        span: p.bump().span(),
    })
}

/// What data is.
const DATA: &str = "a value, a list, `@file.npy` or an expression like `iota(8)`";

fn expr(p: &mut Parser<'_>, depth: usize) -> Parsed<Expr> {
    const WORDS: [&str; 10] = [
        "random",
        "zeros",
        "fill",
        "iota",
        "rev",
        "length",
        "reference",
        "texture",
        "texture3d",
        "sampler",
    ];
    let start = p.token.start;
    let kind = match &p.token.kind {
        Kind::Mark("[") => {
            let mut items = Vec::new();
            p.list("[", "]", |p| {
                items.push(scalar(p)?);
                Ok(())
            })?;
            ExprKind::List(items)
        }
        Kind::Global(_) | Kind::Bad(_) => {
            // Within parentheses a name may have blanks.
            let ends: &[char] = match depth > 0 {
                true => &[',', ')', ';'],
                false => &[',', '(', ')', ';', ' ', '\t'],
            };
            match p.file(ends) {
                Some(name) => ExprKind::File(name),
                None => return p.unexpected(DATA),
            }
        }
        Kind::Number(_) | Kind::Word("true" | "false" | "inf" | "nan") => {
            ExprKind::Scalar(scalar(p)?)
        }
        Kind::Word(word) => {
            let word = *word;
            if !WORDS.contains(&word) {
                let help = "write a list, or name how the data is made, as in `iota(64)`";
                return p.unknown(Rule::Syntax, "data expression", word, WORDS, help);
            }
            p.bump();
            call(p, word, depth)?
        }
        _ => return p.unexpected(DATA),
    };
    Ok(Expr {
        kind,
        span: p.span_from(start),
    })
}

/// The rest of an expression after its word.
fn call(p: &mut Parser<'_>, word: &str, depth: usize) -> Parsed<ExprKind> {
    if word == "reference" {
        return Ok(ExprKind::Reference);
    }
    p.expect("(")?;
    let kind = match word {
        "rev" if depth >= MAX_REV => {
            let at = p.token.span();
            let message = format!("`rev` nests at most {MAX_REV} deep");
            return Err(p.error(Diagnostic::error(Rule::LimitExceeded, at, message)));
        }
        "rev" => ExprKind::Rev(Box::new(expr(p, depth + 1)?)),
        "texture" | "texture3d" => texture(p, word == "texture3d", depth)?,
        "sampler" => sampler(p)?,
        word => {
            let count = p.long_number("a number of elements")?;
            match word {
                "random" => {
                    let seed = if p.accept(",") {
                        p.long_number("a seed")?
                    } else {
                        0
                    };
                    ExprKind::Random { count, seed }
                }
                "fill" => {
                    p.expect(",")?;
                    let value = scalar(p)?;
                    ExprKind::Fill { count, value }
                }
                "zeros" => ExprKind::Zeros(count),
                "iota" => ExprKind::Iota(count),
                _length => ExprKind::Length(count),
            }
        }
    };
    p.expect(")")?;
    Ok(kind)
}

/// The rest of a sampler after its parenthesis.
fn sampler(p: &mut Parser<'_>) -> Parsed<ExprKind> {
    let mut sampler = Sampler::default();
    let mut said = Vec::new();
    while p.token.kind != Kind::Mark(")") {
        let word = p.word().unwrap_or_default();
        let Some(with) = with_word(p, sampler, word, &mut said)? else {
            return p.unexpected("a property of a sampler, such as `linear` or `repeat`");
        };
        sampler = with;
        if !p.accept(",") {
            break;
        }
    }
    Ok(ExprKind::Sampler(sampler))
}

/// The rest of a texture after its parenthesis: where it is a volume, levels halve its slices too.
fn texture(p: &mut Parser<'_>, is_volume: bool, depth: usize) -> Parsed<ExprKind> {
    let start = p.token.start;
    let format = p.pixel_format()?;
    let mut extents = [0; 2];
    for extent in &mut extents {
        p.expect(",")?;
        let number = p.long_number("how many texels")?;
        // Whatever is larger, no texture has so many.
        *extent = u32::try_from(number).unwrap_or(u32::MAX);
    }
    let mut comma = p.accept(",");
    let mut depth_of = None;
    if is_volume && !(comma && matches!(p.token.kind, Kind::Number(_))) {
        return p.unexpected("how many slices");
    }
    if comma && matches!(p.token.kind, Kind::Number(_)) {
        let number = p.long_number("how many slices")?;
        depth_of = Some(u32::try_from(number).unwrap_or(u32::MAX));
        comma = p.accept(",");
    }
    let mut levels = None;
    if comma && p.word() == Some("levels") {
        p.bump();
        let number = p.long_number("how many levels")?;
        levels = Some(u32::try_from(number).unwrap_or(u32::MAX));
        comma = p.accept(",");
    }
    let mut samples = None;
    if comma && p.word() == Some("samples") {
        p.bump();
        let number = p.long_number("how many samples")?;
        samples = Some(u32::try_from(number).unwrap_or(u32::MAX));
        comma = p.accept(",");
    }
    let shape = match extents {
        // Only a `texture_buffer` can be so long.
        [texels, 1] if texels > MAX_EXTENT => TextureShape::buffer(format, texels),
        [width, height] => TextureShape::new(format, width, height),
    };
    let shape = match (depth_of, extents) {
        (Some(slices), [width, height]) if is_volume => {
            TextureShape::volume(format, width, height, slices)
        }
        (Some(slices), _) => shape.and_then(|shape| shape.with_depth(slices)),
        (None, _) => shape,
    };
    let shape = match levels {
        Some(levels) => shape.and_then(|shape| shape.with_levels(levels)),
        None => shape,
    };
    let shape = match samples {
        Some(samples) => shape.and_then(|shape| shape.with_samples(samples)),
        None => shape,
    };
    let shape = match shape {
        Ok(shape) => shape,
        Err(why) => {
            let span = p.span_from(start);
            return Err(p.error(Diagnostic::error(Rule::LimitExceeded, span, why)));
        }
    };
    let contents = match comma {
        true if depth >= MAX_REV => return p.unexpected("no contents of what is itself contents"),
        true => Some(Box::new(expr(p, depth + 1)?)),
        false => None,
    };
    Ok(ExprKind::Texture { shape, contents })
}

fn expect(p: &mut Parser<'_>) -> Parsed<Expect> {
    let start = p.token.start;
    let param = bare_name(p, "a parameter's name")?;
    let exact = p.accept("==");
    if !exact && !p.accept("~=") {
        return p.unexpected("`==` or `~=`");
    }
    let value = expr(p, 0)?;
    let tolerance = if exact {
        Tolerance::Exact
    } else {
        tolerance(p, &param)?
    };
    Ok(Expect {
        param,
        tolerance,
        value,
        span: p.span_from(start),
    })
}

fn tolerance(p: &mut Parser<'_>, param: &Named) -> Parsed<Tolerance> {
    if !p.at("(") {
        let name = field_text(&param.name);
        return p.unexpected(&format!(
            "how near `{name}` must be: `(abs 1e-6, rel 1e-5)` or `(ulp 2)`"
        ));
    }
    let mut abs = None;
    let mut rel = None;
    let mut ulp = None;
    let at = p.token.start;
    p.list("(", ")", |p| {
        let slot = match p.word() {
            Some("abs") => &mut abs,
            Some("rel") => &mut rel,
            Some("ulp") => {
                p.bump();
                ulp = Some(p.long_number("a number of ulp")?);
                return Ok(());
            }
            _ => return p.unexpected("`abs`, `rel` or `ulp`"),
        };
        p.bump();
        *slot = Some(positive(p)?);
        Ok(())
    })?;
    match (abs, rel, ulp) {
        (None, None, Some(ulp)) => Ok(Tolerance::Ulp(ulp)),
        (None, None, None) | (_, _, Some(_)) => {
            let at = p.span_from(at);
            let message = "a tolerance has `abs`, `rel` or both, or `ulp` alone".to_string();
            Err(p.error(Diagnostic::error(Rule::Syntax, at, message)))
        }
        (abs, rel, None) => Ok(Tolerance::Within {
            abs: abs.unwrap_or(0.0),
            rel: rel.unwrap_or(0.0),
        }),
    }
}

/// A finite number of at least 0.
fn positive(p: &mut Parser<'_>) -> Parsed<f64> {
    let value = scalar(p)?;
    let number = value
        .as_const(Scalar::F64)
        .map(literal::float_value)
        .map_err(|error| p.error(error))?;
    if number.is_finite() && number >= 0.0 {
        Ok(number)
    } else {
        let message = format!("a tolerance is finite and at least 0, not {number}");
        let error = Diagnostic::error(Rule::Syntax, value.span, message);
        Err(p.error(error))
    }
}
