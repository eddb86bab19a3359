//! Members of the source's own classes that are called like several components of a vector, such as `float2 xy`.
//!
//! What stands in front of `.xy` has no type here. So a class with such a member gets functions that give it, a vector
//! those that give its components, and `.xy` calls them, in every file.
//!
//! Deliberately absent: fields of bits, of which there are no addresses.

use std::collections::BTreeSet;

use crate::tokens::Tokens;

/// The members of a class that are called so, and where its brace closes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    pub close: usize,
    pub names: Vec<String>,
}

/// Which components a name stands for, if it is that of several.
pub(crate) fn positions(name: &str) -> Option<Vec<usize>> {
    let is_several = (2..=4).contains(&name.len());
    let mut sets = ["xyzw", "rgba"].into_iter().filter(|_| is_several);
    sets.find_map(|set| name.chars().map(|c| set.find(c)).collect())
}

/// The names of such members in a text.
pub(crate) fn names(text: &str, all: &mut BTreeSet<String>) {
    let t = Tokens::new(text);
    for class in classes(&t) {
        all.extend(class.names);
    }
}

/// The classes that have such members.
pub(crate) fn classes(t: &Tokens) -> Vec<Class> {
    let mut all = Vec::new();
    for at in 0..t.len() {
        if let Some((open, is_named)) = body(t, at) {
            let close = t.closing(open);
            let is_inside = !is_named && t.word(t.next(close)) == ";";
            let names = members(t, open, close);
            if !names.is_empty() && !is_inside {
                all.push(Class { close, names });
            }
        }
    }
    all
}

/// The brace that opens a class whose word stands here, and whether it has a name.
fn body(t: &Tokens, at: usize) -> Option<(usize, bool)> {
    if !matches!(t.word(at), "struct" | "class" | "union") {
        return None;
    }
    let (mut word, mut is_named, mut has_bases) = (t.next(at), false, false);
    while word < t.len() {
        match t.word(word) {
            "{" => return Some((word, is_named)),
            "[[" | "(" => word = t.closing(word),
            ":" => has_bases = true,
            ";" | ")" | "=" | "}" => return None,
            "," | ">" if !has_bases => return None,
            "alignas" | "__attribute__" => {}
            _name => is_named = true,
        }
        word = t.next(word);
    }
    None
}

/// The members of a class that are called like several components.
fn members(t: &Tokens, open: usize, close: usize) -> Vec<String> {
    let mut all = Vec::new();
    let mut start = t.next(open);
    while start < close {
        if matches!(t.word(start), "public" | "private" | "protected") {
            start = t.next(t.next(start));
            continue;
        }
        if let Some((open, is_named)) = body(t, start) {
            let end = t.closing(open);
            let behind = t.next(end);
            if t.word(behind) == ";" {
                // The members of a class within that has no name are the outer one's.
                if !is_named {
                    all.extend(members(t, open, end));
                }
                start = t.next(behind);
                continue;
            }
            start = behind;
        }
        let (end, names) = declared(t, start, close);
        all.extend(names);
        start = t.next(end);
    }
    all
}

/// The end of a declaration, and what it declares that is called like several components.
fn declared(t: &Tokens, start: usize, close: usize) -> (usize, Vec<String>) {
    let is_other = matches!(
        t.word(start),
        "using" | "typedef" | "template" | "friend" | "static" | "static_assert" | "enum"
    );
    let (mut names, mut depth, mut is_function, mut at) = (Vec::new(), 0, false, start);
    while at < close {
        let word = t.word(at);
        match word {
            ";" => break,
            "<" => depth += 1,
            ">" => depth -= 1,
            "alignas" | "__attribute__" => at = t.closing(t.next(at)),
            "(" => {
                is_function = true;
                at = t.closing(at);
            }
            "{" => {
                at = t.closing(at);
                if is_function {
                    break;
                }
            }
            "[" | "[[" => at = t.closing(at),
            _ if depth == 0 && positions(word).is_some() => {
                if matches!(t.word(t.next(at)), ";" | "," | "=" | "[" | "[[" | "{") {
                    names.push(word.to_string());
                }
            }
            _part_of_the_type => {}
        }
        at = t.next(at);
    }
    if is_other || is_function {
        names.clear();
    }
    (at, names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<Vec<String>> {
        let found = classes(&Tokens::new(text));
        found.into_iter().map(|class| class.names).collect()
    }

    #[test]
    fn members_are_told_from_what_else_a_class_has() {
        assert_eq!(of("struct S { float2 xy; float r; };"), [["xy"]]);
        assert_eq!(
            of("struct S : B<int, 2> { vec<float, 2> xy, zw[2]; float3 f() { return v.xyz; } };"),
            [["xy", "zw"]]
        );
        assert_eq!(
            of("typedef union { float4 xyzw; struct { float2 rg, ba; }; } U;"),
            [["xyzw", "rg", "ba"]]
        );
        assert_eq!(
            of("struct S { struct { int a; } xy; S(int xy); };"),
            [["xy"]]
        );
        assert!(of("template <class T, int N> float f() { float2 xy; return xy.x; }").is_empty());
        assert!(of("struct S { static int xy; int xx() const { int xy; } };").is_empty());
    }
}
