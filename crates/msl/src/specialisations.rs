//! Specialisations of classes for addresses of some spaces, such as `struct S<device T *>`: to the compiler, which has
//! no spaces, one is for all. That is right if there are such for every space, or if nothing else takes the rest.
//!
//! Deliberately absent: a primary template in another file than its specialisations, which counts as one that takes the
//! rest; specialisations of variables and functions.

use std::collections::BTreeSet;

use crate::tokens::Tokens;

const SPACES: [&str; 4] = ["constant", "device", "thread", "threadgroup"];

/// A specialisation that would be taken for addresses of spaces which it does not name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lone {
    /// The word that opens its body.
    pub open: usize,
    /// As it is written: `S<device T *>`.
    pub name: String,
    /// The spaces for which there is none.
    pub missing: Vec<&'static str>,
}

/// A class as it is declared.
struct Class<'t> {
    name: &'t str,
    /// The arguments without spaces, if it is a specialisation.
    arguments: Option<String>,
    spaces: Vec<&'static str>,
    /// The word that opens its body, if it has one.
    open: Option<usize>,
    /// Whether there is something in it.
    says: bool,
    /// As it is written.
    written: String,
}

pub(crate) fn lone(t: &Tokens) -> Vec<Lone> {
    let all: Vec<Class> = (0..t.len()).filter_map(|at| class(t, at)).collect();
    let mut found = Vec::new();
    for (number, one) in all.iter().enumerate() {
        let Some(open) = one.open.filter(|_| !one.spaces.is_empty()) else {
            continue;
        };
        let is_alike = |other: &&Class| other.name == one.name && other.arguments == one.arguments;
        if all[..number]
            .iter()
            .any(|other| is_alike(&other) && other.open.is_some())
        {
            continue;
        }
        let family = all.iter().filter(is_alike);
        let named: BTreeSet<&str> = family
            .flat_map(|other| other.spaces.iter().copied())
            .collect();
        let missing: Vec<&str> = SPACES
            .into_iter()
            .filter(|space| !named.contains(space))
            .collect();
        let mut primary = all
            .iter()
            .filter(|c| c.name == one.name && c.arguments.is_none())
            .peekable();
        let is_harmless = primary.peek().is_some() && primary.all(|class| !class.says);
        if !missing.is_empty() && !is_harmless {
            found.push(Lone {
                open,
                name: one.written.clone(),
                missing,
            });
        }
    }
    found
}

/// The template of a class that is declared at a word, or its specialisation.
fn class<'t>(t: &Tokens<'t>, at: usize) -> Option<Class<'t>> {
    if !matches!(t.word(at), "struct" | "class") || t.word(t.previous(at)) != ">" {
        return None;
    }
    let mut name = t.next(at);
    while t.word(name) == "[[" || matches!(t.word(name), "alignas" | "__attribute__") {
        let bracket = if t.word(name) == "[[" {
            name
        } else {
            t.next(name)
        };
        name = t.next(t.closing(bracket));
    }
    let mut end = t.next(name);
    let (mut arguments, mut spaces) = (None, Vec::new());
    if t.word(end) == "<" {
        let close = closing(t, end)?;
        let words = (end + 1..close)
            .filter(|at| !t.is_blank(*at))
            .map(|at| t.word(at));
        let space = |word: &str| SPACES.into_iter().find(|space| *space == word);
        spaces = words.clone().filter_map(space).collect();
        let rest: Vec<&str> = words.filter(|word| space(word).is_none()).collect();
        arguments = Some(rest.join(" "));
        end = t.next(close);
    }
    let written = t.text(name, end).trim().to_string();
    if t.word(end) == "final" {
        end = t.next(end);
    }
    let (open, says) = match t.word(end) {
        ";" => (None, false),
        "{" => (Some(end), t.next(end) != t.closing(end)),
        ":" => ((end..t.len()).find(|at| t.word(*at) == "{"), true),
        _no_declaration => return None,
    };
    Some(Class {
        name: t.word(name),
        arguments,
        spaces,
        open,
        says,
        written,
    })
}

/// The bracket that closes arguments of a template.
fn closing(t: &Tokens, open: usize) -> Option<usize> {
    let (mut depth, mut at) = (0, open);
    while at < t.len() {
        match t.word(at) {
            "<" => depth += 1,
            ">" => depth -= 1,
            "(" => at = t.closing(at),
            ";" | "{" | "}" => return None,
            _inside => {}
        }
        if depth == 0 {
            return Some(at);
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<(String, Vec<&'static str>)> {
        let found = lone(&Tokens::new(text)).into_iter();
        found.map(|one| (one.name, one.missing)).collect()
    }

    #[test]
    fn specialisations_for_some_spaces_are_told_from_those_for_all() {
        let of_two = "template <class T> struct S<device T *> { int a; }; template <class T> struct S<threadgroup T *> { int a; };";
        let of_all = of_two.to_string()
            + &of_two
                .replace("device", "thread")
                .replace("threadgroup", "constant");
        let missing = [("S<device T *>".to_string(), vec!["constant", "thread"])];
        for primary in ["int b;", "static constant int n = 1;"] {
            let primary = format!("template <class T> struct S {{ {primary} }}; ");
            assert_eq!(of(&(primary.clone() + of_two)), missing);
            assert!(of(&(primary + &of_all)).is_empty());
        }
        assert_eq!(of(of_two), missing);
        for primary in [
            "template <class T> struct S;",
            "template <typename T, typename = int> class S {};",
        ] {
            assert!(of(&format!("{primary} {of_two}")).is_empty());
        }
        let with_base = "template <class T> struct Is : false_type {}; template <class T> struct Is<device T *> : true_type {};";
        assert_eq!(of(with_base).len(), 1);
        assert!(
            of("template <class T> struct S { int a; }; template <> struct S<float *> { int b; };")
                .is_empty()
        );
    }
}
