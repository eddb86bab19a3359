//! Metal source as C++ that clang reads.
//!
//! What C++ has no word for is put differently, word by word and line by line:
//! - `[[attributes]]` become annotations, which clang keeps in what it writes;
//! - `threadgroup` in front of a variable becomes `tg_variable`, which the headers define;
//! - a function constant gets its value, or is a variable that nobody defines;
//! - functions that differ in address spaces alone are one, since C++ has none;
//! - numbers without a suffix are floats, and several components at once are a function.
//!
//! Deliberately absent: what the words mean, which clang says.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::bodies::{self, Body};
use crate::clang;
use crate::known;
use crate::members;
use crate::specialisations;
use crate::tokens::{Columns, Tokens, is_number};

/// A function constant of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FunctionConstant {
    pub name: String,
    /// Its number, where it is written as one.
    pub number: Option<String>,
}

/// A source as clang reads it.
pub(crate) struct Rewritten {
    pub text: String,
    pub columns: Columns,
    pub constants: Vec<FunctionConstant>,
}

const SPACES: [&str; 4] = ["device", "constant", "threadgroup", "thread"];

fn is_space(word: &str) -> bool {
    SPACES.contains(&word)
}

/// What is asked of the source: the only kernel that is wanted (of no name: none of those of templates), and the
/// values of function constants, by name or number.
pub(crate) struct Wanted<'a> {
    pub kernel: Option<&'a str>,
    pub constants: &'a HashMap<String, String>,
    /// Numbers that have a name, of all files.
    pub macros: &'a HashMap<String, i64>,
    /// Members of classes that are called like several components of a vector, of all files.
    pub members: &'a BTreeSet<String>,
}

/// Reads `#define NAME 7` in a text.
pub(crate) fn macros(text: &str, all: &mut HashMap<String, i64>) {
    for line in text.lines() {
        let define = line.trim_start().strip_prefix('#').map(str::trim_start);
        let mut words = match define.and_then(|rest| rest.strip_prefix("define ")) {
            Some(rest) => rest.split_whitespace(),
            None => continue,
        };
        if let (Some(name), Some(Ok(number))) = (words.next(), words.next().map(str::parse)) {
            all.insert(name.to_string(), number);
        }
    }
}

/// Rewrites a text, of which some bodies are left out: a kernel that needs one is refused by its number.
pub(crate) fn rewrite(text: &str, wanted: &Wanted, left_out: &[(Body, usize)]) -> Rewritten {
    let t = Tokens::new(text);
    let mut r = Rewriter {
        known: known::constants(&t),
        t,
        wanted,
        constants: Vec::new(),
        scopes: vec![0],
        scope_count: 0,
        seen: HashMap::new(),
        branches: Vec::new(),
        condition_count: 0,
        methods: HashSet::new(),
    };
    for class in members::classes(&r.t) {
        let given = class
            .names
            .iter()
            .map(|name| format!("INVAR_MEMBER({name}) "));
        r.t.put(class.close, given.collect::<String>() + "}");
    }
    for one in specialisations::lone(&r.t) {
        let missing = match &one.missing[..] {
            [rest @ .., last] if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
            missing => missing.join(""),
        };
        let said = format!(
            "{}`{}` would be taken for addresses in {missing} memory too: write it for each of device, threadgroup, \
             constant and thread, all with the same in it",
            clang::SPECIALISATION,
            one.name.replace(['"', '\\', '\n'], "")
        );
        r.t.put(one.open, format!("{{ static_assert(false, \"{said}\");"));
    }
    r.all();
    for (body, number) in left_out {
        let refusal = format!("::metal::invar_refused({number});");
        bodies::replace(&mut r.t, body, &refusal);
    }
    let (text, columns) = r.t.finish();
    Rewritten {
        text,
        columns,
        constants: r.constants,
    }
}

struct Rewriter<'a> {
    t: Tokens<'a>,
    /// The words `constant` of what is known before the program runs.
    known: HashSet<usize>,
    wanted: &'a Wanted<'a>,
    constants: Vec<FunctionConstant>,
    /// The braces that are open, by number.
    scopes: Vec<u32>,
    scope_count: u32,
    /// Definitions by scope and head without address spaces.
    seen: HashMap<(u32, String), Vec<Definition>>,
    /// The conditions of directives that are open, by number, and which of their branches.
    branches: Vec<(u32, u32)>,
    condition_count: u32,
    /// Heads of methods without address spaces, by scope.
    methods: HashSet<(u32, String)>,
}

/// What is compared of definitions that differ in address spaces.
#[derive(Clone)]
struct Definition {
    /// Without address spaces, constness and names of parameters.
    head: String,
    /// The address spaces of the head.
    spaces: Vec<String>,
    /// Whether what each parameter is an address of is constant, and the object of a method is.
    is_const: Vec<bool>,
    /// The body, without address spaces, and with its parameters by number.
    body: String,
    branches: Vec<(u32, u32)>,
    line: usize,
    /// The brace that opens the body of a function.
    open: Option<usize>,
}

impl Definition {
    fn read(r: &Rewriter, begin: usize, head_end: usize, end: usize) -> Definition {
        let words = |from: usize, to: usize| (from..to).filter(|at| !r.t.is_blank(*at));
        let (open, close) = r
            .parameters(begin, head_end)
            .unwrap_or((head_end, head_end));
        let (mut names, mut is_const) = (Vec::new(), Vec::new());
        let (mut part, mut depth) = (Vec::new(), 0);
        for at in words(open + 1, close + 1) {
            match r.t.word(at) {
                "(" | "<" | "[" | "[[" => depth += 1,
                ")" if at == close => depth = 0,
                ")" | ">" | "]" | "]]" => depth -= 1,
                _part => {}
            }
            if depth == 0 && (at == close || r.is(at, ",")) {
                let (name, constant) = parameter(&part);
                names.push(name);
                is_const.push(constant);
                part.clear();
            } else {
                part.push(r.t.word(at));
            }
        }
        is_const.push(words(close, head_end).any(|at| r.is(at, "const")));
        let numbered = |at: usize| {
            let word = r.t.word(at);
            match names
                .iter()
                .position(|name| name.is_some_and(|n| n == word))
            {
                Some(number) => format!("${number} "),
                None => format!("{word} "),
            }
        };
        let is_kept = |at: &usize| !is_space(r.t.word(*at));
        let is_const_word = |at: &usize| matches!(r.t.word(*at), "const" | "volatile");
        let spaces = words(begin, head_end).filter(|at| !is_kept(at));
        let is_class = words(begin, head_end).any(|at| matches!(r.t.word(at), "struct" | "class"));
        let open = words(head_end, end).next();
        let open = open.filter(|at| !is_class && r.is(*at, "{"));
        let head = words(begin, head_end).filter(|at| is_kept(at) && !is_const_word(at));
        Definition {
            head: head.map(numbered).collect(),
            spaces: spaces.map(|at| r.t.word(at).to_string()).collect(),
            is_const,
            body: words(head_end, end).filter(is_kept).map(numbered).collect(),
            branches: r.branches.clone(),
            line: 1 + r
                .t
                .text(0, words(begin, end).next().unwrap_or(begin))
                .matches('\n')
                .count(),
            open,
        }
    }
}

/// The name of a parameter, if it has one, and whether what it is an address of is constant.
fn parameter<'t>(words: &[&'t str]) -> (Option<&'t str>, bool) {
    let end = words.iter().position(|w| matches!(*w, "=" | "[" | "[["));
    let words = &words[..end.unwrap_or(words.len())];
    let is_name = |word: &str| word.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let kept = words
        .iter()
        .filter(|w| !is_space(w) && !matches!(**w, "const" | "volatile"));
    let name = words
        .last()
        .filter(|word| is_name(word) && kept.count() > 1);
    let address = words.iter().rposition(|w| matches!(*w, "*" | "&"));
    let of = &words[..address.unwrap_or(words.len())];
    let is_const = of.iter().any(|w| matches!(*w, "const" | "constant"));
    (name.copied(), is_const)
}

impl Rewriter<'_> {
    fn scope(&self) -> u32 {
        self.scopes.last().copied().unwrap_or(0)
    }

    fn is(&self, at: usize, word: &str) -> bool {
        self.t.word(at) == word
    }

    fn all(&mut self) {
        let mut at = 0;
        while at < self.t.len() {
            at = self.one(at);
        }
    }

    /// Rewrites what begins at a word; gives where to go on.
    fn one(&mut self, at: usize) -> usize {
        let word = self.t.word(at);
        match word {
            "template" | "vertex" | "fragment" if self.is_of_a_picture(at) => {
                if let Some(end) = self.function_end(at) {
                    self.t.blank(at, end);
                    return end;
                }
            }
            "template" => {
                if let Some(end) = self.other_instantiation(at) {
                    self.t.blank(at, end);
                    return end;
                }
                if let Some(end) = self.instance(at) {
                    return end;
                }
            }
            "[[" => return self.attributes(at),
            "#" if self.begins_line(at) => self.directive(at),
            "coherent" => {
                if let Some(end) = self.coherent(at) {
                    self.t.blank(at, end);
                    return end;
                }
            }
            "constant" if self.begins_parameter(at) => {
                let of = match self.is_reference(at) {
                    true => ", annotate(\"msl.reference\")",
                    false => "",
                };
                let all = format!("__attribute__((annotate(\"msl.constant\"){of})) const");
                self.t.put(at, all);
            }
            "constant" if self.known.contains(&at) => self.t.put(at, "constexpr const"),
            "{" => {
                if let Some(end) = self.twin(at) {
                    return end;
                }
                self.scope_count += 1;
                self.scopes.push(self.scope_count);
            }
            "}" if self.scopes.len() > 1 => {
                self.scopes.pop();
            }
            "threadgroup" if self.begins_parameter(at) && !self.is_numbered(at) => {
                let said = "__attribute__((annotate(\"msl.threadgroup\")))";
                self.t.put(at, said);
            }
            "threadgroup" if !self.qualifies_method(at) => self.variable(at),
            "=" if self.is(self.t.next(at), "default") => {
                if let Some(end) = self.defaulted(at) {
                    return end;
                }
            }
            _ if is_space(word) && self.qualifies_method(at) => {
                if let Some(end) = self.method(at) {
                    return end;
                }
            }
            "." | "->" => self.components(at),
            // clang has no conversion between the two floats of 16 bits.
            "static_cast" => self.t.put(at, "::metal::invar_static_cast"),
            _ if is_number(word) => self.number(at),
            _other => {}
        }
        at + 1
    }

    // ---- functions of pictures ----

    /// Whether a function that begins here is a `vertex` or `fragment` one, which no kernel calls; not in a directive.
    fn is_of_a_picture(&self, at: usize) -> bool {
        let on_line = (0..at)
            .rev()
            .take_while(|w| !self.t.word(*w).contains('\n'));
        let first = on_line.filter(|w| !self.t.is_blank(*w)).last();
        if first.is_some_and(|w| self.t.word(w).starts_with('#')) {
            return false;
        }
        let mut word = at;
        while word < self.t.len() {
            match self.t.word(word) {
                "vertex" | "fragment" => return true,
                "[[" => word = self.t.closing(word),
                "(" | "{" | "}" | ";" | "#" => return false,
                _another => {}
            }
            word = self.t.next(word);
        }
        false
    }

    /// The end of a function that begins here: of its body, or of its declaration.
    fn function_end(&self, at: usize) -> Option<usize> {
        let mut word = at;
        while word < self.t.len() {
            match self.t.word(word) {
                "[[" | "(" => word = self.t.closing(word),
                "{" => return Some(self.t.closing(word) + 1),
                ";" => return Some(word + 1),
                "}" => return None,
                _another => {}
            }
            word = self.t.next(word);
        }
        None
    }

    // ---- kernels ----

    /// The end of an explicit instantiation of a kernel that nobody asked for.
    fn other_instantiation(&self, at: usize) -> Option<usize> {
        let wanted = self.wanted.kernel.filter(|name| !name.is_empty())?;
        let open = self.t.next(at);
        let name = (self.is(open, "[[")).then(|| self.t.next(open))?;
        let at_text = self.t.next(self.t.next(name));
        let text = self.t.word(at_text);
        // A name that a macro puts together is not known here.
        let is_whole = text.starts_with('"') && self.is(self.t.next(at_text), ")");
        if !self.is(name, "host_name") || !is_whole || text.trim_matches('"') == wanted {
            return None;
        }
        (at..self.t.len()).find(|end| self.is(*end, ";"))
    }

    /// The end of an explicit instantiation whose name for hosts is not known here, since a macro puts it
    /// together: the compiler compares it with the one that is wanted, and makes no other (`INVAR_INSTANCE`).
    fn instance(&mut self, at: usize) -> Option<usize> {
        let wanted = self.wanted.kernel?;
        let open = self.t.next(at);
        let name = (self.is(open, "[[")).then(|| self.t.next(open))?;
        let parenthesis = self.t.next(name);
        let text = self.t.next(parenthesis);
        let is_known = self.t.word(text).starts_with('"') && self.is(self.t.next(text), ")");
        if !self.is(name, "host_name") || (is_known && !wanted.is_empty()) {
            return None;
        }
        let end = (at..self.t.len()).find(|end| self.is(*end, ";"))?;
        // A macro may leave the semicolon to who uses it.
        let lines = (at..end).filter(|w| self.t.is_blank(*w) && self.t.word(*w).contains('\n'));
        let goes_on = |w: usize| w.checked_sub(1).is_some_and(|w| self.is(w, "\\"));
        let (inside, outside): (Vec<usize>, Vec<usize>) = lines.partition(|w| goes_on(*w));
        if !inside.is_empty() && !outside.is_empty() {
            return None;
        }
        let mut last = self.t.previous(end);
        if self.is(last, ")") {
            last = self.t.previous(self.opening(last, "(", ")")?);
        }
        let mut begin = self.t.previous(self.opening(last, "<", ">")?);
        while self.is(self.t.previous(begin), "::") {
            begin = self.t.previous(self.t.previous(begin));
        }
        let plain = |from, to| {
            let text = self.t.text(from, to).replace("\\\n", " ");
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let host = plain(parenthesis, self.t.closing(parenthesis) + 1);
        let of = plain(begin, last + 1);
        self.t.blank(at, end);
        self.t.put(at, format!("INVAR_INSTANCE({host}, {of})"));
        Some(end)
    }

    /// The word that opens what another closes.
    fn opening(&self, close: usize, opens: &str, closes: &str) -> Option<usize> {
        let (mut at, mut depth) = (close, 0);
        if !self.is(close, closes) {
            return None;
        }
        loop {
            match self.t.word(at) {
                word if word == closes => depth += 1,
                word if word == opens => depth -= 1,
                ";" | "{" | "}" => return None,
                _between => {}
            }
            if depth == 0 {
                return Some(at);
            }
            at = at.checked_sub(1)?;
        }
    }

    /// Whether a parameter is a reference.
    fn is_reference(&self, at: usize) -> bool {
        let words = (at..self.t.len()).map(|at| self.t.word(at));
        let mut words = words.take_while(|word| !matches!(*word, "," | ")" | "[[" | "*" | ";"));
        words.any(|word| word == "&")
    }

    // ---- attributes ----

    fn attributes(&mut self, open: usize) -> usize {
        let close = self.t.closing(open);
        if close >= self.t.len() {
            return open + 1;
        }
        let mut parts = Vec::new();
        let (mut depth, mut from) = (0, open + 1);
        for at in open + 1..close {
            match self.t.word(at) {
                "(" => depth += 1,
                ")" => depth -= 1,
                "," if depth == 0 => {
                    parts.push(self.t.text(from, at));
                    from = at + 1;
                }
                _inside => {}
            }
        }
        parts.push(self.t.text(from, close));
        let (mut annotations, mut kept) = (Vec::new(), Vec::new());
        let mut constant = None;
        for part in &parts {
            let part = part.replace("\\\n", " ");
            let part = part.split_whitespace().collect::<Vec<_>>().join(" ");
            let (name, argument) = match part.split_once('(') {
                Some((name, rest)) => (name.trim(), rest.trim().strip_suffix(')')),
                None => (&*part, None),
            };
            match name {
                "function_constant" => {
                    // A parameter that is there only with a constant: 1, 0, or 2 where that is not known.
                    if self.is(self.t.next(close), ";") {
                        constant = Some(argument.unwrap_or("").to_string());
                    } else {
                        let condition = argument.unwrap_or("true");
                        annotations.push(format!(
                            "annotate(\"msl.function_constant\", __builtin_constant_p({condition}) ? (int)(bool)({condition}) : 2), annotate(\"msl.if {condition}\")"
                        ));
                    }
                }
                // The place in an argument buffer, whose fields go by their names.
                "id" => {}
                // Of pictures, whose arguments are words.
                "user" | "depth" => {}
                "kernel" => annotations.push("annotate(\"msl.kernel\"), used".to_string()),
                // It may stand behind the name of a function, where C++ has only this form.
                "max_total_threads_per_threadgroup" => kept.push(format!(
                    "clang::annotate(\"msl.most_threads\", {})",
                    argument.unwrap_or_default()
                )),
                "unroll" | "maybe_unused" | "nodiscard" | "likely" | "unlikely" | "fallthrough"
                | "noreturn" | "deprecated" => kept.push(part.clone()),
                _ if name.starts_with("clang::") || name.starts_with("gnu::") => {
                    kept.push(part.clone())
                }
                _ if !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_') => {
                    annotations.push(match argument {
                        Some(argument) => format!("annotate(\"msl.{name}\", {argument})"),
                        None => format!("annotate(\"msl.{name}\")"),
                    });
                }
                _other => kept.push(part.clone()),
            }
        }
        if let Some(number) = constant {
            self.t.blank(open, close + 1);
            self.function_constant(open, close, &number);
            return close + 1;
        }
        self.t.blank(open, close + 1);
        if !annotations.is_empty() {
            let list = annotations.join(", ");
            self.t.put(open, format!(" __attribute__(({list}))"));
        }
        if !kept.is_empty() {
            self.t.put(close, format!("[[{}]]", kept.join(", ")));
        }
        close + 1
    }

    /// Whether `constant` begins a parameter that has a name and is an address.
    fn begins_parameter(&self, at: usize) -> bool {
        let mut before = self.t.previous(at);
        while matches!(self.t.word(before), "const" | "volatile") {
            before = self.t.previous(before);
        }
        if !matches!(self.t.word(before), "(" | ",") {
            return false;
        }
        let (mut end, mut depth, mut is_address) = (self.t.next(at), 0, false);
        while end < self.t.len() {
            match self.t.word(end) {
                "<" => depth += 1,
                ">" => depth -= 1,
                "*" | "&" if depth == 0 => is_address = true,
                "," | ")" | "=" | "[[" if depth == 0 => break,
                "(" | ";" | "{" | "}" => return false,
                _part_of_it => {}
            }
            end = self.t.next(end);
        }
        let last = self.t.word(self.t.previous(end));
        is_address && last.starts_with(|c: char| c.is_alphabetic() || c == '_')
    }

    /// Whether the attributes of a parameter give threadgroup memory its number.
    fn is_numbered(&self, at: usize) -> bool {
        let ends = |at: &usize| matches!(self.t.word(*at), "," | ")" | "{" | ";");
        let open = (at..self.t.len()).find(|at| self.is(*at, "[[") || ends(at));
        let Some(open) = open.filter(|at| self.is(*at, "[[")) else {
            return false;
        };
        let words = open..self.t.closing(open);
        words.into_iter().any(|at| self.is(at, "threadgroup"))
    }

    /// A function constant, whose attribute is from `open` to `close`: its value, or a variable that nobody
    /// defines.
    fn function_constant(&mut self, open: usize, close: usize, number: &str) {
        let name_at = self.t.previous(open);
        let name = self.t.word(name_at).to_string();
        let number = self.sum(number);
        let value = [Some(name.clone()), number.clone()]
            .into_iter()
            .flatten()
            .find_map(|key| self.wanted.constants.get(&key));
        let mut start = name_at;
        while let Some(before) = start.checked_sub(1) {
            if matches!(self.t.word(before), ";" | "}" | "{") {
                break;
            }
            start = before;
        }
        let space = (start..name_at).find(|at| matches!(self.t.word(*at), "constant" | "device"));
        // A macro may stand for the word and what goes with it.
        let on_line = (start..name_at)
            .rev()
            .take_while(|at| !self.t.word(*at).contains('\n'));
        let macros = on_line.filter(|at| is_macro(self.t.word(*at)));
        let space = space.or(macros.last());
        let (head, tail, defined) = match value {
            Some(value) => (
                "constexpr const",
                format!(" = {}", value.replace('[', "{").replace(']', "}")),
                "true",
            ),
            None => (
                "extern const",
                " __attribute__((section(\"function_constant\")))".to_string(),
                "false",
            ),
        };
        if let Some(space) = space {
            self.t.put(space, head);
        }
        let held = value.map_or(String::new(), |value| {
            format!(
                "; static_assert(::metal::invar_holds({name}, {}), \"{}`{name}` has a type that does not hold {value}\")",
                value.trim_matches(['[', ']']),
                clang::CONSTANT
            )
        });
        self.t.put(
            close,
            format!("{tail}{held}; static constexpr bool invar_fc_defined_{name} = {defined}"),
        );
        self.constants.push(FunctionConstant { name, number });
    }

    /// A sum of numbers and names of numbers.
    fn sum(&self, text: &str) -> Option<String> {
        let mut total = 0_i64;
        for part in text.split('+') {
            let part = part.trim().trim_matches(['(', ')']).trim();
            total += match part.parse::<i64>() {
                Ok(number) => number,
                Err(_) => *self.wanted.macros.get(part)?,
            };
        }
        Some(total.to_string())
    }

    // ---- functions that differ by address spaces ----

    /// At the brace of a definition whose head was there before with other address spaces: its end, with the
    /// definition taken out.
    fn twin(&mut self, brace: usize) -> Option<usize> {
        if !matches!(self.t.word(self.t.previous(brace)), ")" | ">" | "const") {
            return None;
        }
        let begin = self.head(brace, &[";", "{", "}"])?;
        let begin = self.behind_access(begin);
        let head = self.spelled(begin, brace, false);
        if ["if", "for", "while", "switch", "else", "do"]
            .iter()
            .any(|w| head.starts_with(w))
        {
            return None;
        }
        let end = self.t.closing(brace) + 1;
        self.is_twin(begin, brace, end).then_some(end)
    }

    /// Takes a definition out that was there before with other address spaces and does the same. Of one that does
    /// something else the compiler says so.
    fn is_twin(&mut self, begin: usize, head_end: usize, end: usize) -> bool {
        let one = Definition::read(self, begin, head_end, end);
        let known = self
            .seen
            .entry((self.scope(), one.head.clone()))
            .or_default();
        // One of another branch of a condition may not be there.
        let is_there = |d: &&Definition| one.branches.starts_with(&d.branches);
        let others = known.iter().filter(is_there);
        let others: Vec<Definition> = others.filter(|d| d.spaces != one.spaces).cloned().collect();
        known.push(one.clone());
        let Some(other) = others
            .iter()
            .find(|d| d.body != one.body || d.is_const == one.is_const)
        else {
            return false;
        };
        // The first stands for both.
        known
            .last_mut()
            .into_iter()
            .for_each(|last| last.open = other.open);
        if other.body == one.body {
            self.t.blank(begin, end);
            return true;
        }
        let (at, line) = match other.open.filter(|_| other.branches == one.branches) {
            // Only who calls it is refused.
            Some(open) => (open, one.line),
            None => (begin, other.line),
        };
        let name = self.defined_name(begin, head_end).replace(['"', '\\'], "");
        let said = format!(
            "static_assert(false, \"{} the `{name}` here and that of line {line}, and they do different things: give \
             one of them another name\");",
            clang::OVERLOADS
        );
        self.t.blank(begin, end);
        if at == begin {
            let first = if self.t.is_blank(begin) {
                self.t.next(begin)
            } else {
                begin
            };
            self.t.put(first, said);
        } else {
            self.t.put(at, format!("{{ {said}"));
        }
        true
    }

    /// Behind a `public:` that stands in front of a definition.
    fn behind_access(&self, begin: usize) -> usize {
        let mut at = begin;
        if self.t.is_blank(at) {
            at = self.t.next(at);
        }
        while matches!(self.t.word(at), "public" | "private" | "protected")
            && self.is(self.t.next(at), ":")
        {
            at = self.t.next(self.t.next(at));
        }
        if self.t.next(begin) == at { begin } else { at }
    }

    /// The name that a head defines.
    fn defined_name(&self, begin: usize, end: usize) -> String {
        let class = (begin..end)
            .rev()
            .find(|at| matches!(self.t.word(*at), "struct" | "class"));
        let open = self.parameters(begin, end).map(|(open, _)| open);
        let Some(open) = open.filter(|_| class.is_none()) else {
            let from = class.map_or(begin, |class| class + 1);
            return self.t.text(from, end).trim().to_string();
        };
        let mut from = self.t.previous(open);
        for at in begin..open {
            if self.is(at, "operator") {
                from = at;
            }
        }
        self.t.text(from, open).trim().to_string()
    }

    /// The parentheses of the parameters of a head.
    fn parameters(&self, begin: usize, end: usize) -> Option<(usize, usize)> {
        let close = (begin..end).rev().find(|at| self.is(*at, ")"))?;
        Some((self.opening(close, "(", ")")?, close))
    }

    /// Takes note of a directive's conditions.
    fn directive(&mut self, at: usize) {
        match self.t.word(self.t.next(at)) {
            "if" | "ifdef" | "ifndef" => {
                self.condition_count += 1;
                self.branches.push((self.condition_count, 0));
            }
            "else" | "elif" | "elifdef" | "elifndef" => {
                if let Some(last) = self.branches.last_mut() {
                    last.1 += 1;
                }
            }
            "endif" => {
                self.branches.pop();
            }
            _other => {}
        }
    }

    /// Where what leads up to a word begins: behind one of these words, outside of parentheses.
    fn head(&self, at: usize, ends: &[&str]) -> Option<usize> {
        let (mut begin, mut depth) = (at, 0);
        while let Some(before) = begin.checked_sub(1) {
            let word = self.t.word(before);
            match word {
                ")" => depth += 1,
                "(" => depth -= 1,
                _other => {}
            }
            if depth < 0 || (depth == 0 && ends.contains(&word)) {
                break;
            }
            // A directive is a line of its own.
            if word.contains('\n') && self.is_directive(before) {
                break;
            }
            begin = before;
        }
        (begin < at).then_some(begin)
    }

    /// Whether nothing stands before a word on its line.
    fn begins_line(&self, at: usize) -> bool {
        let before = at.checked_sub(1).map(|before| self.t.word(before));
        before.is_none_or(|word| word.contains('\n'))
    }

    /// The end of `coherent` where it qualifies an address: what is written is seen by all anyway.
    fn coherent(&self, at: usize) -> Option<usize> {
        let mut end = self.t.next(at);
        if self.is(end, "(") {
            end = self.t.next(self.t.closing(end));
        }
        matches!(self.t.word(end), "device" | "const" | "volatile").then_some(end)
    }

    /// Whether the line that a line's end closes is a directive.
    fn is_directive(&self, line_end: usize) -> bool {
        let mut at = line_end;
        while let Some(before) = at.checked_sub(1) {
            if self.t.word(before).contains('\n') {
                break;
            }
            at = before;
        }
        self.is(at, "#")
    }

    /// Words without blanks, with or without address spaces.
    fn spelled(&self, from: usize, to: usize, with_spaces: bool) -> String {
        (from..to)
            .filter(|at| !self.t.is_blank(*at))
            .map(|at| self.t.word(at))
            .filter(|word| with_spaces || !is_space(word))
            .collect()
    }

    /// Whether a word stands behind the parameters of a method.
    fn qualifies_method(&self, at: usize) -> bool {
        matches!(self.t.word(self.t.previous(at)), ")" | "const")
            && matches!(
                self.t.word(self.t.next(at)),
                "{" | "noexcept" | ":" | ";" | "="
            )
    }

    /// A method whose address space stands behind its parameters: taken out if it was there before.
    fn method(&mut self, at: usize) -> Option<usize> {
        let mut close = self.t.previous(at);
        while self.is(close, "const") {
            close = self.t.previous(close);
        }
        if !self.is(close, ")") {
            return None;
        }
        if self.is(self.t.next(self.t.next(at)), "default") {
            self.t.put(at, "");
            return None;
        }
        let begin = self.head(at, &[";", "{", "}"])?;
        let begin = self.behind_access(begin);
        let mut end = self.t.next(at);
        while end < self.t.len() && !matches!(self.t.word(end), "{" | ";") {
            end = self.t.next(end);
        }
        if self.is(end, "{") {
            end = self.t.closing(end);
        }
        if self.is_twin(begin, at + 1, end + 1) {
            return Some(end + 1);
        }
        self.t.put(at, "");
        None
    }

    /// A constructor without parameters that does nothing of its own, up to its `= default`: taken out where it is the
    /// class's only one. With one that is written C++20 has no list of members for `T {a, b}`, which Metal has.
    fn defaulted(&mut self, at: usize) -> Option<usize> {
        let mut close = self.t.previous(at);
        while is_space(self.t.word(close)) || self.is(close, "const") {
            close = self.t.previous(close);
        }
        let open = self.t.previous(close);
        if !self.is(close, ")") || !self.is(open, "(") {
            return None;
        }
        let name = self.constructed(open)?;
        let begin = self.head(at, &[";", "{", "}", ":"])?;
        let key = (self.scope(), self.spelled(begin, close + 1, false));
        let is_only = self.is_only_constructor(begin, name);
        if self.methods.insert(key) && !is_only {
            return None;
        }
        let end = (at..self.t.len()).find(|end| self.is(*end, ";"))? + 1;
        self.t.blank(begin, end);
        Some(end)
    }

    /// The name in front of a parenthesis and of arguments of a template.
    fn constructed(&self, open: usize) -> Option<&str> {
        let mut name = self.t.previous(open);
        if self.is(name, ">") {
            name = self.t.previous(self.opening(name, "<", ">")?);
        }
        let is_name = |word: &str| word.starts_with(|c: char| c.is_alphabetic() || c == '_');
        Some(self.t.word(name)).filter(|word| is_name(word))
    }

    /// Whether all constructors of the class around a place are as the compiler makes them.
    fn is_only_constructor(&self, at: usize, name: &str) -> bool {
        let (mut start, mut depth) = (at, 0);
        while let Some(before) = start.checked_sub(1) {
            start = before;
            match self.t.word(start) {
                "}" => depth += 1,
                "{" if depth == 0 => break,
                "{" => depth -= 1,
                _inside => {}
            }
        }
        let end = self.t.closing(start);
        let mut at = start + 1;
        while at < end {
            match self.t.word(at) {
                "{" => at = self.t.closing(at),
                "(" => {
                    let close = self.t.closing(at);
                    let mut behind = self.t.next(close);
                    while is_space(self.t.word(behind)) {
                        behind = self.t.next(behind);
                    }
                    let is_made = self.is(behind, "=")
                        && self.is(self.t.next(behind), "default")
                        && self.t.next(at) == close;
                    if self.constructed(at) == Some(name) && !is_made {
                        return false;
                    }
                    at = close;
                }
                _other => {}
            }
            at += 1;
        }
        true
    }

    // ---- variables ----

    /// `threadgroup`, where it declares a variable.
    fn variable(&mut self, at: usize) {
        let mut before = self.t.previous(at);
        while matches!(self.t.word(before), "const" | "volatile") {
            before = self.t.previous(before);
        }
        // An array as a parameter is an address.
        if matches!(self.t.word(before), "(" | ",") {
            return;
        }
        let (mut end, mut depth, mut found) = (self.t.next(at), 0, false);
        // A list of arguments of a template is none of declarators.
        let is_argument = self.is(before, "<");
        while end < self.t.len() {
            match self.t.word(end) {
                "<" => depth += 1,
                ">" => depth -= 1,
                "__attribute__" | "alignas" => {
                    end = self.t.closing(self.t.next(end));
                }
                "{" if depth <= 0 && self.defines(at, end) => end = self.t.closing(end),
                "*" | "&" | "&&" if depth <= 0 && !is_argument => {
                    self.declarators(at, end, false);
                    return;
                }
                "," if depth <= 0 && is_argument => break,
                "*" | "&" | "&&" | "[[" | ")" | "(" | "{" if depth <= 0 => break,
                ";" | "=" | "[" | "," if depth <= 0 => {
                    found = true;
                    break;
                }
                _part_of_the_type => {}
            }
            end = self.t.next(end);
        }
        if !found {
            return;
        }
        // The name stands before.
        self.declarators(at, self.t.previous(end), true);
        self.t.put(at, "tg_variable");
        // Threadgroup memory begins as zeros: an initialiser of zeros says nothing more.
        while end < self.t.len() && !self.is(end, ";") {
            if self.is(end, "=") {
                let stop = (end..self.t.len())
                    .find(|e| self.is(*e, ";"))
                    .unwrap_or(end);
                let given = self.spelled(self.t.next(end), stop, true);
                if ["{}", "{0}", "{0.f}", "{0.0f}", "{0.}", "{0.0}"].contains(&&*given) {
                    self.t.blank(end, stop);
                }
                return;
            }
            end = self.t.next(end);
        }
    }

    /// Whether the braces of a declaration that begins at a word are those of its type.
    fn defines(&self, at: usize, open: usize) -> bool {
        let first = self.t.word(self.t.next(at));
        matches!(first, "struct" | "union" | "class") && {
            let name = self.t.previous(open);
            let inside = self.t.next(at);
            name == inside || self.t.previous(name) == inside
        }
    }

    /// Of the declarators of a type in threadgroup memory, from the first on, those that are pointers are variables of
    /// each thread, and the others lie there: where one follows the other the declaration is parted.
    fn declarators(&mut self, at: usize, first: usize, is_variable: bool) {
        let words: Vec<&str> = (self.t.next(at)..first)
            .filter(|at| !self.t.is_blank(*at))
            .map(|at| self.t.word(at))
            .collect();
        let base = words.join(" ");
        let (mut is_variable, mut end) = (is_variable, first);
        // Whether what the declarator begins with is given, and the lists of a template's arguments that are open in it.
        let (mut is_given, mut depth) = (false, 0_u32);
        while end < self.t.len() {
            match self.t.word(end) {
                // A function.
                "(" if !is_given => return,
                "(" | "[" | "{" => end = self.t.closing(end),
                ";" | ")" | "}" => return,
                "=" => is_given = true,
                "<" if is_given => depth += 1,
                ">" => depth = depth.saturating_sub(1),
                ">>" => depth = depth.saturating_sub(2),
                "," if depth == 0 => {
                    is_given = false;
                    let next = self.t.word(self.t.next(end));
                    let lies_there = !matches!(next, "*" | "&" | "&&" | "const" | "(");
                    if lies_there != is_variable && !base.contains('{') {
                        let head = if lies_there { "tg_variable " } else { "" };
                        self.t.put(end, format!("; {head}{base} "));
                        is_variable = lies_there;
                    }
                }
                _other => {}
            }
            end = self.t.next(end);
        }
    }

    // ---- expressions ----

    /// Several components of a vector at once.
    fn components(&mut self, at: usize) {
        let name = self.t.word(at + 1);
        let Some(positions) = members::positions(name) else {
            return;
        };
        // A name in a list of members is that of one.
        let before = self.t.word(self.t.previous(at));
        if self.is(at + 2, "(") || (self.is(at, ".") && matches!(before, "{" | "," | "(")) {
            return;
        }
        let list: Vec<String> = positions.iter().map(usize::to_string).collect();
        let next = self.t.next(at + 1);
        let is_assigned = matches!(self.t.word(next), "=" | "+=" | "-=" | "*=" | "/=");
        if self.wanted.members.contains(name) {
            let way = if is_assigned { "to" } else { "of" };
            self.t.put(at + 1, format!("invar_{way}_{name}()"));
            return;
        }
        let function = match is_assigned {
            true => "invar_components",
            false => "invar_swizzle",
        };
        self.t.put(
            at + 1,
            format!("template {function}<{}>()", list.join(", ")),
        );
    }

    fn number(&mut self, at: usize) {
        let word = self.t.word(at);
        if word.starts_with("0x") || word.starts_with("0X") {
            return;
        }
        let is_float = word.contains(['.', 'e', 'E']);
        match word.chars().last() {
            Some('f' | 'F') if word.ends_with("bf") || word.ends_with("BF") => {
                let digits = &word[..word.len() - 2];
                let point = if is_float { "" } else { ".0" };
                self.t.put(at, format!("((bfloat){digits}{point}f)"));
            }
            Some('h' | 'H') => {
                let digits = &word[..word.len() - 1];
                let point = if is_float { "" } else { ".0" };
                self.t.put(at, format!("{digits}{point}_invar_h"));
            }
            Some(c) if is_float && !"fFuUlL".contains(c) => self.t.put(at, format!("{word}f")),
            _whole => {}
        }
    }
}

/// The files that a text includes by name.
pub(crate) fn includes(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    for line in text.lines() {
        let Some(rest) = line.trim_start().strip_prefix('#') else {
            continue;
        };
        let Some(rest) = rest.trim_start().strip_prefix("include") else {
            continue;
        };
        let rest = rest.trim_start();
        let end = match rest.chars().next() {
            Some('"') => '"',
            Some('<') => '>',
            _a_macro => continue,
        };
        if let Some(name) = rest[1..].split(end).next() {
            all.push(name.to_string());
        }
    }
    all
}

/// Whether a word is written as macros are.
fn is_macro(word: &str) -> bool {
    word.len() > 1
        && word.starts_with(|c: char| c.is_ascii_uppercase())
        && (word.chars()).all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        let constants = HashMap::from([("two".to_string(), "2".to_string())]);
        let wanted = Wanted {
            kernel: Some("k"),
            constants: &constants,
            macros: &HashMap::new(),
            members: &BTreeSet::from(["rg".to_string()]),
        };
        rewrite(text, &wanted, &[]).text
    }

    #[test]
    fn attributes_become_annotations() {
        assert_eq!(
            of("kernel void k(device float *x [[buffer(0)]])"),
            "kernel void k(device float *x  __attribute__((annotate(\"msl.buffer\", 0))))"
        );
        let constant = |text| of(text).contains("msl.constant");
        assert!(constant("f(constant int & n, int m)"));
        assert!(constant("f(const constant int & n, int m)"));
        assert!(!constant("f((constant int *) n, int m)"));
        assert!(!constant("f(constant int *, int m)"));
        assert!(constant(
            "#define K(F) void F( \\\n  constant int &n, \\\n  int m)"
        ));
    }

    #[test]
    fn variables_of_the_threadgroup_are_told_from_pointers() {
        assert_eq!(of("threadgroup float x[4];"), "tg_variable float x[4];");
        assert_eq!(
            of("threadgroup float * x = y;"),
            "threadgroup float * x = y;"
        );
        assert_eq!(
            of("f(threadgroup float * x, int y);"),
            "f(__attribute__((annotate(\"msl.threadgroup\"))) float * x, int y);"
        );
        assert_eq!(of("threadgroup T<A, 2> x;"), "tg_variable T<A, 2> x;");
        assert_eq!(of("threadgroup uint a, b;"), "tg_variable uint a, b;");
        assert_eq!(
            of("threadgroup uint a, *p = q, b;"),
            "tg_variable uint a; uint  *p = q; tg_variable uint  b;"
        );
        assert_eq!(
            of("threadgroup uint *p = f(a, b), c[2];"),
            "threadgroup uint *p = f(a, b); tg_variable uint  c[2];"
        );
        assert_eq!(
            of("threadgroup struct { uint p, q; } b;"),
            "tg_variable struct { uint p, q; } b;"
        );
        assert_eq!(of("S<threadgroup uint, 4> x;"), "S<threadgroup uint, 4> x;");
        for stays in [
            "threadgroup T *p = get<T, N>(a, b);",
            "threadgroup T *f(int n) { return g(n); } int a, b; template <class A, class B> struct S;",
        ] {
            assert_eq!(of(stays), stays);
        }
        assert_eq!(
            of("f(int y, threadgroup float x[4]);"),
            "f(int y, threadgroup float x[4]);"
        );
    }

    #[test]
    fn constructors_that_do_nothing_go_where_there_is_no_other() {
        let text = "struct A { int x; constexpr A() = default; A() threadgroup = default; };";
        assert_eq!(of(text), "struct A { int x; };");
        let text = "struct A { A<T>() = default; A(int x) : x(x) {} int x; };";
        assert_eq!(of(text), text);
        let text = "struct A { A() = default; A() thread = default; A(int) {} };";
        assert_eq!(of(text), "struct A { A() = default; A(int) {} };");
    }

    #[test]
    fn function_constants_have_a_value_or_none() {
        assert_eq!(
            of("constant int two [[function_constant(0)]];"),
            "constexpr const int two  = 2; static_assert(::metal::invar_holds(two, 2), \"the function constant `two` has a type \
             that does not hold 2\"); static constexpr bool invar_fc_defined_two = true;"
        );
        assert!(of("constant int one [[function_constant(1)]];").contains("extern const int one"));
        assert!(of("CONST int one [[function_constant(1)]];").contains("extern const int one"));
    }

    #[test]
    fn definitions_that_differ_in_spaces_are_one() {
        let text = "int f(device int *x) { return 1; }\nint f(thread int *x) {\nreturn 1; }\nint g(int x) { return 3; }";
        assert_eq!(
            of(text),
            "int f(device int *x) { return 1; }\n\n\nint g(int x) { return 3; }"
        );
    }

    #[test]
    fn numbers_and_components() {
        assert_eq!(
            of("1.5 2.0f 1e3 7 0x1E 2.5h 2.5bf 2BF"),
            "1.5f 2.0f 1e3f 7 0x1E 2.5_invar_h ((bfloat)2.5f) ((bfloat)2.0f)"
        );
        assert_eq!(of("v.xy"), "v.template invar_swizzle<0, 1>()");
        assert_eq!(of("v.x + s.xyz_name"), "v.x + s.xyz_name");
        assert_eq!(of("v.rg + s->rg.x"), "v.invar_of_rg() + s->invar_of_rg().x");
        assert_eq!(of("v.rg *= w;"), "v.invar_to_rg() *= w;");
        assert_eq!(of("S s = {1, .xy = v}"), "S s = {1, .xy = v}");
        assert_eq!(
            of("struct S { T rg; };"),
            "struct S { T rg; INVAR_MEMBER(rg) };"
        );
        assert_eq!(of("v.zy = w;"), "v.template invar_components<2, 1>() = w;");
    }

    #[test]
    fn instantiations_of_other_kernels_go() {
        let text = "template [[host_name(\"a\")]] kernel void f<1>();\ntemplate [[host_name(\"k\")]] kernel void f<2>();";
        assert!(!of(text).contains("f<1>"));
        assert!(of(text).contains("f<2>"));
        let text = "#define MAKE(name, f, ...) \\\n  template [[host_name(\"a_\" #name)]] \\\n  [[kernel]] decltype(f<__VA_ARGS__>) f<__VA_ARGS__>;";
        assert!(of(text).contains("INVAR_INSTANCE((\"a_\" #name), f<__VA_ARGS__>)"));
        assert!(!of(text).contains("template"));
    }
}
