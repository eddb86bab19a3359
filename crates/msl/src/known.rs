//! Constants outside of functions whose values other constants may be made of.
//!
//! C++ reads a variable of a class or a float before the program runs only where it is `constexpr`, and vectors are
//! classes here. A constant that is made of numbers, and of other constants that are, is one; what is made of anything
//! else stays as it was written, and clang says whether it has a value.
//!
//! Deliberately absent: values; quotients of what is not a number.

use std::collections::HashSet;

use crate::tokens::{Tokens, is_number};

const SCALARS: [&str; 12] = [
    "bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "half", "bfloat",
    "float",
];

/// The words `constant` that begin such constants.
pub(crate) fn constants(t: &Tokens) -> HashSet<usize> {
    // Of a name that several branches of a directive declare, all have to be known.
    let mut unknown = HashSet::new();
    loop {
        let (mut names, mut places) = (HashSet::new(), HashSet::new());
        let before = unknown.len();
        for at in 0..t.len() {
            match (t.word(at) == "constant").then(|| declared(t, at, &names)) {
                Some(Some((name, true))) if !unknown.contains(name) => {
                    names.insert(name);
                    places.insert(at);
                }
                Some(Some((name, _))) => {
                    unknown.insert(name);
                }
                _other => {}
            }
        }
        if unknown.len() == before {
            return places;
        }
    }
}

/// The name of a constant that begins at a word, and whether it is made of numbers and of `names`.
fn declared<'a>(t: &Tokens<'a>, at: usize, names: &HashSet<&'a str>) -> Option<(&'a str, bool)> {
    let mut word = t.next(at);
    while matches!(t.word(word), "constexpr" | "const") {
        word = t.next(word);
    }
    if !is_type(t.word(word)) {
        return None;
    }
    let name_at = t.next(word);
    let mut word = t.next(name_at);
    while t.word(word) == "[" {
        word = t.next(t.closing(word));
    }
    (t.word(word) == "=").then(|| (t.word(name_at), is_known(t, word, names)))
}

/// Whether what stands behind an equals sign is made of numbers and of `names`.
fn is_known(t: &Tokens, equals: usize, names: &HashSet<&str>) -> bool {
    let mut word = equals;
    loop {
        let before = t.word(word);
        word = t.next(word);
        if word >= t.len() {
            return false;
        }
        match t.word(word) {
            ";" => return true,
            "(" | ")" | "{" | "}" | "[" | "]" | "," | "+" | "-" | "*" | "." | "true" | "false" => {}
            // By a number that is not 0.
            "/" => {
                let by = t.word(t.next(word));
                let digits = by.split(['e', 'E']).next().unwrap_or(by);
                if !is_number(by) || !digits.contains(|c| ('1'..='9').contains(&c)) {
                    return false;
                }
            }
            component if before == "." && component.chars().all(|c| "xyzwrgba".contains(c)) => {}
            other if is_number(other) || is_type(other) || names.contains(other) => {}
            _other => return false,
        }
    }
}

/// Whether a word is a scalar type, or one of vectors or matrices of it.
fn is_type(word: &str) -> bool {
    let word = word.strip_prefix("packed_").unwrap_or(word);
    let scalar = word.trim_end_matches(|c: char| c.is_ascii_digit() || c == 'x');
    let shape = &word[scalar.len()..];
    let is_length = |c: char| ('2'..='4').contains(&c);
    SCALARS.contains(&scalar)
        && match shape.as_bytes() {
            [] => true,
            [n] => is_length(char::from(*n)),
            [c, b'x', r] => is_length(char::from(*c)) && is_length(char::from(*r)),
            _other => false,
        }
}

#[cfg(test)]
mod tests {
    use super::{Tokens, constants, is_type};

    fn count(text: &str) -> usize {
        constants(&Tokens::new(text)).len()
    }

    #[test]
    fn constants_of_numbers_and_of_such_constants_are_known() {
        assert_eq!(count("constant int4 v = int4(1, -2, 3, 4) * 2;"), 1);
        assert_eq!(
            count("constant int2 w = 3; constant int3 v = int3(w.yx, 1);"),
            2
        );
        assert_eq!(
            count("static constant float s[2] = {1.0f / 3, 2e0 / 10};"),
            1
        );
        assert_eq!(count("constant int2 v = int2(other);"), 0);
        let branches =
            "constant int w = 1;\n#else\nconstant int w = f();\n#endif\nconstant int v = w;";
        assert_eq!(count(branches), 0);
        assert_eq!(count("constant float x = 1 / 0.0;"), 0);
        assert_eq!(count("constant int2 v = max(int2(1), 2);"), 0);
        assert_eq!(count("constant int n [[function_constant(0)]];"), 0);
        assert_eq!(count("void f(constant int2 & v, constant float4 * w);"), 0);
        assert_eq!(count("constant int2 v"), 0);
    }

    #[test]
    fn types_are_those_of_the_language() {
        for word in ["float", "uchar2", "packed_half3", "float4x4", "bfloat2x3"] {
            assert!(is_type(word), "{word}");
        }
        for word in ["float5", "floatx", "int44", "packed", "size_t", "T"] {
            assert!(!is_type(word), "{word}");
        }
    }
}
