//! Certificates as text: the conditions and the proofs of kernels, and a launch that fulfils these, for [`verify_certificate`].
//!
//! ```text
//! invar-certificate 1
//! kernel softmax
//! condition at-most 1 argument.2 groups.x 1 length.0
//! launch grid.x:8 grid.y:1 grid.z:1 .. length.0:64 element.0.0:3
//! proof 0f3a.. (product 3 4 90 (sum (90 1) (7 1)))
//! ```
//!
//! `element.0.0:3` is what an element of a buffer holds of whose contents the kernel requires something; those that are
//! not said are like the one before.
//!
//! [`verify_certificate`]: crate::verify_certificate

use std::collections::BTreeMap;
use std::fmt::Write as _;

use invar_ir::{Dim, Memory};

use crate::certificate::Proof;
use crate::condition::{Condition, Number, Term};
use crate::launch::Launch;
use crate::linear::Linear;

const HEADER: &str = "invar-certificate 1";

/// How deep proofs may nest.
const MAX_DEPTH: usize = 20_000;

/// The certificate of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Certificate {
    /// The kernel's name.
    pub kernel: String,
    /// What a launch has to fulfil.
    pub conditions: Vec<Condition>,
    /// A launch that does, where there are conditions or the kernel requires something.
    pub launch: Option<Launch>,
    /// Proofs, by the fingerprint of the problem.
    pub proofs: BTreeMap<u128, Proof>,
}

/// Writes certificates.
pub fn write(certificates: &[Certificate]) -> String {
    let mut out = format!("{HEADER}\n");
    for certificate in certificates {
        out += &format!("kernel {}\n", certificate.kernel);
        for condition in &certificate.conditions {
            out += "condition ";
            match condition {
                Condition::AtMost(term, bound) => {
                    out += &format!("at-most{}{}", term_text(term), term_text(bound));
                }
                Condition::Together(a, b, bound) => {
                    out += &format!("together{}{} {bound}", term_text(a), term_text(b));
                }
                Condition::More(term, more, bound) => {
                    let (term, bound) = (term_text(term), number_text(*bound));
                    out += &format!("more{term} {more} {bound}");
                }
                Condition::Sum(a, b, bound) => {
                    let (a, b) = (term_text(a), term_text(b));
                    out += &format!("sum{a}{b} {}", number_text(*bound));
                }
                Condition::Below(number, bound) => {
                    out += &format!("below {} {bound}", number_text(*number));
                }
                Condition::Multiple(number, of) => {
                    out += &format!("multiple {} {of}", number_text(*number));
                }
            }
            out.push('\n');
        }
        if let Some(launch) = &certificate.launch {
            out += "launch";
            for (number, value) in all_of(launch) {
                out += &format!(" {}:{value}", number_text(number));
            }
            for (memory, elements) in &launch.contents {
                if let Memory::Param(place) = memory {
                    for (at, value) in elements {
                        out += &format!(" element.{place}.{at}:{value}");
                    }
                }
            }
            out.push('\n');
        }
        for (fingerprint, proof) in &certificate.proofs {
            out += &format!("proof {fingerprint:032x} ");
            write_proof(&mut out, proof);
            out.push('\n');
        }
    }
    out
}

/// All numbers that a launch says: those of parameters as lengths, whether they are that or passed by value.
fn all_of(launch: &Launch) -> Vec<(Number, i128)> {
    let mut all = Vec::new();
    let mut add = |number, value: Option<i128>| all.extend(value.map(|value| (number, value)));
    for d in Dim::ALL {
        add(Number::Grid(d), launch.grid[d as usize]);
        add(Number::Threadgroup(d), launch.threadgroup[d as usize]);
    }
    for (i, number) in launch.numbers.iter().enumerate() {
        add(Number::Length(i), *number);
    }
    for (i, constant) in launch.constants.iter().enumerate() {
        add(Number::Constant(i), *constant);
    }
    for ((i, d), texels) in &launch.texels {
        add(Number::Texels(*i, *d), Some(*texels));
    }
    for (i, levels) in &launch.levels {
        add(Number::Levels(*i), Some(*levels));
    }
    for ((i, location), value) in &launch.fields {
        add(Number::Field(*i, *location), Some(*value));
    }
    all
}

fn term_text(term: &Term) -> String {
    let mut text = format!(" {}", term.factor);
    for number in &term.numbers {
        text += &format!(" {}", number_text(*number));
    }
    text
}

fn number_text(number: Number) -> String {
    match number {
        Number::Argument(i) => format!("argument.{i}"),
        Number::Constant(i) => format!("constant.{i}"),
        Number::Length(i) => format!("length.{i}"),
        Number::Grid(d) => format!("grid.{}", d.name()),
        Number::Groups(d) => format!("groups.{}", d.name()),
        Number::Threadgroup(d) => format!("threadgroup.{}", d.name()),
        Number::Texels(i, d) => format!("texels.{i}.{}", d.name()),
        Number::Levels(i) => format!("levels.{i}"),
        Number::Field(i, location) => format!("field.{i}.{location}"),
    }
}

fn read_number(text: &str) -> Option<Number> {
    let (what, which) = text.split_once('.')?;
    let dim = Dim::ALL.into_iter().find(|d| d.name() == which);
    let place = which.parse().ok();
    match what {
        "argument" => place.map(Number::Argument),
        "constant" => place.map(Number::Constant),
        "length" => place.map(Number::Length),
        "levels" => place.map(Number::Levels),
        "grid" => dim.map(Number::Grid),
        "groups" => dim.map(Number::Groups),
        "threadgroup" => dim.map(Number::Threadgroup),
        "texels" => {
            let (place, direction) = which.split_once('.')?;
            let mut dims = Dim::ALL.into_iter();
            let dim = dims.find(|d| d.name() == direction)?;
            Some(Number::Texels(place.parse().ok()?, dim))
        }
        "field" => {
            let (place, location) = which.split_once('.')?;
            Some(Number::Field(place.parse().ok()?, location.parse().ok()?))
        }
        _unknown => None,
    }
}

fn write_form(out: &mut String, form: &Linear) {
    out.push_str(&form.constant.to_string());
    for (var, factor) in &form.terms {
        // Writing to a string never fails.
        let _ = write!(out, " {var}:{factor}");
    }
}

fn write_proof(out: &mut String, proof: &Proof) {
    // Writing to a string never fails.
    match proof {
        Proof::Sum(parts) => {
            out.push_str("(sum");
            for (label, factor) in parts {
                let _ = write!(out, " {label}:{factor}");
            }
        }
        Proof::Product { a, b, label, then } => {
            let _ = write!(out, "(product {a} {b} {label} ");
            write_proof(out, then);
        }
        Proof::Branch {
            form,
            label,
            at_least,
            below,
        } => {
            let _ = write!(out, "(branch {label} (");
            write_form(out, form);
            out.push_str(") ");
            write_proof(out, at_least);
            out.push(' ');
            write_proof(out, below);
        }
        Proof::Cases { of, label, cases } => {
            let _ = write!(out, "(cases {of} {label}");
            for case in cases {
                out.push(' ');
                write_proof(out, case);
            }
        }
    }
    out.push(')');
}

/// Reads certificates.
///
/// # Errors
/// A line that is none of a certificate's, by its number.
pub fn read(text: &str) -> Result<Vec<Certificate>, String> {
    let mut lines = text.lines().enumerate();
    if lines.next().map(|(_, line)| line) != Some(HEADER) {
        return Err(format!(
            "this is not a certificate: the first line is not `{HEADER}`"
        ));
    }
    let mut found: Vec<Certificate> = Vec::new();
    for (number, line) in lines {
        let wrong = || format!("line {}: not a line of a certificate", number + 1);
        let (word, rest) = line.split_once(' ').ok_or_else(wrong)?;
        if word == "kernel" {
            found.push(Certificate {
                kernel: rest.to_string(),
                ..Certificate::default()
            });
            continue;
        }
        let current = found.last_mut().ok_or_else(wrong)?;
        match word {
            "condition" => current
                .conditions
                .push(read_condition(rest).ok_or_else(wrong)?),
            "launch" if current.launch.is_none() => {
                current.launch = Some(read_launch(rest).ok_or_else(wrong)?);
            }
            "proof" => {
                let (key, rest) = rest.split_once(' ').ok_or_else(wrong)?;
                let key = u128::from_str_radix(key, 16).map_err(|_| wrong())?;
                let mut reader = Reader { rest };
                let proof = reader.proof(0).ok_or_else(wrong)?;
                if !reader.rest.is_empty() {
                    return Err(wrong());
                }
                current.proofs.insert(key, proof);
            }
            _unknown => return Err(wrong()),
        }
    }
    Ok(found)
}

fn read_launch(text: &str) -> Option<Launch> {
    /// No kernel has as many parameters or function constants.
    const MOST_PLACES: usize = 1 << 16;
    let mut launch = Launch::default();
    for word in text.split(' ') {
        let (number, value) = word.split_once(':')?;
        if let Some(element) = number.strip_prefix("element.") {
            let (place, at) = element.split_once('.')?;
            let memory = Memory::Param(place.parse().ok()?);
            let elements = launch.contents.entry(memory).or_default();
            elements.insert(at.parse().ok()?, value.parse().ok()?);
            continue;
        }
        let (number, value) = (read_number(number)?, value.parse().ok()?);
        let (list, place) = match number {
            Number::Argument(place) | Number::Length(place) => (&mut launch.numbers, place),
            Number::Constant(place) => (&mut launch.constants, place),
            _of_no_list => {
                number.set(&mut launch, value);
                continue;
            }
        };
        if place >= MOST_PLACES {
            return None;
        }
        list.resize(list.len().max(place + 1), None);
        list[place] = Some(value);
    }
    Some(launch)
}

fn read_condition(text: &str) -> Option<Condition> {
    let words: Vec<&str> = text.split(' ').collect();
    match &words[..] {
        ["at-most", terms @ ..] => {
            // Each begins with its factor.
            let factors = |word: &&str| word.parse::<i128>().is_ok();
            let second = 1 + terms.get(1..)?.iter().position(factors)?;
            let (term, bound) = terms.split_at(second);
            Some(Condition::AtMost(read_term(term)?, read_term(bound)?))
        }
        ["together", terms @ .., bound] => {
            let factors = |word: &&str| word.parse::<i128>().is_ok();
            let second = 1 + terms.get(1..)?.iter().position(factors)?;
            let (a, b) = terms.split_at(second);
            Some(Condition::Together(
                read_term(a)?,
                read_term(b)?,
                bound.parse().ok()?,
            ))
        }
        ["sum", terms @ .., bound] => {
            let factors = |word: &&str| word.parse::<i128>().is_ok();
            let second = 1 + terms.get(1..)?.iter().position(factors)?;
            let (a, b) = terms.split_at(second);
            Some(Condition::Sum(
                read_term(a)?,
                read_term(b)?,
                read_number(bound)?,
            ))
        }
        ["more", term @ .., more, bound] => Some(Condition::More(
            read_term(term)?,
            more.parse().ok()?,
            read_number(bound)?,
        )),
        ["below", number, bound] => {
            Some(Condition::Below(read_number(number)?, bound.parse().ok()?))
        }
        ["multiple", number, of] => {
            let of = of.parse().ok().filter(|of| *of > 0)?;
            Some(Condition::Multiple(read_number(number)?, of))
        }
        _unknown => None,
    }
}

fn read_term(words: &[&str]) -> Option<Term> {
    let (factor, numbers) = words.split_first()?;
    let numbers: Option<Vec<Number>> = numbers.iter().map(|n| read_number(n)).collect();
    Some(Term::of(factor.parse().ok()?, numbers?))
}

struct Reader<'t> {
    rest: &'t str,
}

impl<'t> Reader<'t> {
    fn accept(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Up to a space or parenthesis.
    fn word(&mut self) -> &'t str {
        let end = self.rest.find([' ', '(', ')']).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn number<N: std::str::FromStr>(&mut self) -> Option<N> {
        self.accept(" ").then(|| self.word().parse().ok())?
    }

    fn pairs<A: std::str::FromStr>(&mut self) -> Option<Vec<(A, i128)>> {
        let mut pairs = Vec::new();
        while self.accept(" ") {
            let (a, b) = self.word().split_once(':')?;
            pairs.push((a.parse().ok()?, b.parse().ok()?));
        }
        Some(pairs)
    }

    fn proof(&mut self, depth: usize) -> Option<Proof> {
        if depth > MAX_DEPTH || !self.accept("(") {
            return None;
        }
        let proof = match self.word() {
            "sum" => Proof::Sum(self.pairs()?),
            "product" => {
                let (a, b, label) = (self.number()?, self.number()?, self.number()?);
                let then = Box::new(self.next(depth)?);
                Proof::Product { a, b, label, then }
            }
            "branch" => {
                let label = self.number()?;
                if !self.accept(" (") {
                    return None;
                }
                let constant = self.word().parse().ok()?;
                let terms = self.pairs()?;
                if !self.accept(")") {
                    return None;
                }
                let form = Linear { terms, constant };
                let at_least = Box::new(self.next(depth)?);
                let below = Box::new(self.next(depth)?);
                Proof::Branch {
                    form,
                    label,
                    at_least,
                    below,
                }
            }
            "cases" => {
                let (of, label) = (self.number()?, self.number()?);
                let mut cases = Vec::new();
                while self.rest.starts_with(' ') {
                    cases.push(self.next(depth)?);
                }
                Proof::Cases { of, label, cases }
            }
            _unknown => return None,
        };
        self.accept(")").then_some(proof)
    }

    fn next(&mut self, depth: usize) -> Option<Proof> {
        self.accept(" ").then(|| self.proof(depth + 1))?
    }
}
