//! `bitcast` to vectors of `f16`, which naga reads as one to vectors of `f32`, and from them, which it reads as one
//! to as many integers of 16 bits: each becomes a call of a function behind the end of the text, or what it takes
//! does; so does one from such a vector to the same type. The places of what moves are kept. Which are from such vectors the text alone does not say: a caller
//! finds out by what naga takes.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::swizzle::Change;

/// What stands in the place of something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    /// Where it begins in the text as it was.
    pub at: usize,
    /// The bytes that were there, and those that are.
    pub was: usize,
    pub is: usize,
    /// What of the text as it was it is shown as.
    pub shows: Range<usize>,
}

/// The functions, by what they make: a name that no author gives, the bits that they take, and themselves.
const FUNCTIONS: [(&str, &str, &str); 2] = [
    (
        "invar_bitcast_vec2h(bitcast<u32>(",
        "vec2",
        "fn invar_bitcast_vec2h(bits: u32) -> vec2<f16> { return vec2<f16>(unpack2x16float(bits)); }",
    ),
    (
        "invar_bitcast_vec4h(bitcast<vec2<u32>>(",
        "vec4",
        "fn invar_bitcast_vec4h(bits: vec2<u32>) -> vec4<f16> { return vec4<f16>(vec4<f32>(unpack2x16float(bits.x), unpack2x16float(bits.y))); }",
    ),
];

/// The functions of the bits of vectors, and what follows a bitcast's name whose argument may be such a vector.
const BITS: [(&str, [&str; 6], &str); 2] = [
    (
        "invar_bits_vec2h(",
        ["u32", "i32", "f32", "", "", ""],
        "fn invar_bits_vec2h(h: vec2<f16>) -> u32 { return pack2x16float(vec2<f32>(h)); }",
    ),
    (
        "invar_bits_vec4h(",
        [
            "vec2<u32>",
            "vec2<i32>",
            "vec2<f32>",
            "vec2u",
            "vec2i",
            "vec2f",
        ],
        "fn invar_bits_vec4h(h: vec4<f16>) -> vec2<u32> { return vec2<u32>(pack2x16float(vec2<f32>(h.xy)), pack2x16float(vec2<f32>(h.zw))); }",
    ),
];

/// What a bitcast from a vector of `f16` to the same type is, as [`FUNCTIONS`] has them.
const SAME: [(&str, &str); 2] = [
    (
        "invar_same_vec2h(",
        "fn invar_same_vec2h(h: vec2<f16>) -> vec2<f16> { return h; }",
    ),
    (
        "invar_same_vec4h(",
        "fn invar_same_vec4h(h: vec4<f16>) -> vec4<f16> { return h; }",
    ),
];

/// What a bitcast that may be from a vector of `f16` becomes if it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Becomes {
    /// One of what that function of [`BITS`] gives.
    OfBits(usize),
    /// That function of [`SAME`].
    Same(usize),
}

/// A bitcast of 32 or 64 bits, which may be from a vector of `f16`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FromHalves {
    becomes: Becomes,
    /// Where the argument stands.
    pub argument: Range<usize>,
}

/// The bitcasts of a text that may be from vectors of `f16`, in its order: to other types, and, if `same`, to such
/// vectors too.
pub(crate) fn from_halves(text: &str, same: bool) -> Vec<FromHalves> {
    let code = without_comments(text);
    let mut all = Vec::new();
    for (at, word) in code.match_indices("bitcast") {
        let rest = &code[at + word.len()..];
        let Some((ty, inside)) = target_type(rest) else {
            continue;
        };
        let function = BITS.iter().position(|(_, types, _)| types.contains(&&*ty));
        let becomes = match (function, target(rest)) {
            (Some(function), _) => Becomes::OfBits(function),
            (None, Some((function, _))) if same => Becomes::Same(function),
            (None, _) => continue,
        };
        let start = at + word.len() + inside;
        if let Some(length) = closing(&code[start..]) {
            all.push(FromHalves {
                becomes,
                argument: start..start + length,
            });
        }
    }
    all
}

/// The text with calls in the places of bitcasts to vectors of `f16`, and of the arguments of those that are known
/// to be from such vectors, and with the other changes; and what was replaced, in the order of the text.
pub(crate) fn as_naga_knows(
    text: &str,
    from_halves: &[FromHalves],
    mut changes: Vec<Change>,
) -> (String, Vec<Edit>) {
    let code = without_comments(text);
    let mut edits: Vec<(usize, usize, &str)> = Vec::new();
    let mut used = [false; FUNCTIONS.len()];
    let mut takes = [false; BITS.len()];
    let mut same = [false; SAME.len()];
    // Where the arguments stand of those that change nothing.
    let mut stays = BTreeSet::new();
    for FromHalves { becomes, argument } in from_halves {
        match *becomes {
            Becomes::OfBits(function) => {
                takes[function] = true;
                edits.push((argument.start, 0, BITS[function].0));
                edits.push((argument.end, 1, "))"));
            }
            Becomes::Same(function) => {
                same[function] = true;
                stays.insert(argument.start);
            }
        }
    }
    for (at, word) in code.match_indices("bitcast") {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let Some((number, inside)) = target(&code[at + word.len()..]) else {
            continue;
        };
        let start = at + word.len() + inside;
        if stays.contains(&start) {
            edits.push((at, start - at, SAME[number].0));
            continue;
        }
        let Some(end) = closing(&code[start..]) else {
            continue;
        };
        used[number] = true;
        edits.push((at, start - at, FUNCTIONS[number].0));
        edits.push((start + end, 1, "))"));
    }
    changes.extend(edits.into_iter().map(|(at, was, is)| Change {
        at,
        was,
        is: is.to_string(),
        shows: at..at + was,
    }));
    changes.sort_by_key(|change| (change.at, change.was));
    let mut out = String::new();
    let mut end = 0;
    for Change { at, was, is, .. } in &changes {
        out.push_str(&text[end..*at]);
        out.push_str(is);
        end = at + was;
    }
    out.push_str(&text[end..]);
    let made = FUNCTIONS.iter().zip(used);
    let made = made.filter_map(|((.., function), used)| used.then_some(function));
    let taken = BITS.iter().zip(takes);
    let taken = taken.filter_map(|((.., function), takes)| takes.then_some(function));
    let kept = SAME.iter().zip(same);
    let kept = kept.filter_map(|((_, function), same)| same.then_some(function));
    for function in made.chain(taken).chain(kept) {
        out.push('\n');
        out.push_str(function);
    }
    let edits = changes.into_iter().map(|change| Edit {
        at: change.at,
        was: change.was,
        is: change.is.len(),
        shows: change.shows,
    });
    (out, edits.collect())
}

/// The type in `<...>`, without blanks, and where the argument begins.
fn target_type(rest: &str) -> Option<(String, usize)> {
    let open = rest.find('(')?;
    let ty: String = rest[..open].split_whitespace().collect();
    let ty = ty.strip_prefix('<')?.strip_suffix('>')?;
    Some((ty.to_string(), open + 1))
}

/// Which function a bitcast to the type in `<...>` is, and where its argument begins.
fn target(rest: &str) -> Option<(usize, usize)> {
    let (ty, inside) = target_type(rest)?;
    let number = FUNCTIONS.iter().position(|(_, vector, _)| {
        let of = ty.strip_prefix(vector);
        matches!(of, Some("h" | "<f16>" | "<f16,>"))
    })?;
    Some((number, inside))
}

/// Where the parenthesis is closed that is open.
fn closing(code: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in code.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return Some(at),
            ')' => depth -= 1,
            _other => {}
        }
    }
    None
}

/// The text with blanks for comments, byte by byte.
pub(crate) fn without_comments(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut at = 0;
    while let Some(start) = text[at..].find('/').map(|found| at + found) {
        let rest = &text[start..];
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            crate::enable::block_comment(rest).unwrap_or(rest.len())
        } else {
            at = start + 1;
            continue;
        };
        for byte in &mut bytes[start..start + length] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = start + length;
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_string())
}

#[cfg(test)]
mod tests {
    use super::{Edit, as_naga_knows, from_halves};

    #[test]
    fn arguments_that_are_vectors_of_f16_become_calls() {
        let text = "bitcast<vec2u>(bitcast<vec4h>(v)) + bitcast<f16>(a) + bitcast<u32>(b)";
        let casts = from_halves(text, false);
        let arguments: Vec<&str> = casts.iter().map(|c| &text[c.argument.clone()]).collect();
        assert_eq!(arguments, ["bitcast<vec4h>(v)", "b"]);
        let (read, edits) = as_naga_knows(text, &casts[..1], Vec::new());
        let (code, _) = read.split_once('\n').expect("functions at the end");
        assert_eq!(
            code,
            "bitcast<vec2u>(invar_bits_vec4h(invar_bitcast_vec4h(bitcast<vec2<u32>>(v)))) \
             + bitcast<f16>(a) + bitcast<u32>(b)"
        );
        assert_eq!(edits.len(), 4);
    }

    #[test]
    fn bitcasts_that_change_nothing_are_calls() {
        let text = "bitcast<vec2h>(bitcast<vec2<f16>>(v)) + bitcast<vec2<f16>>(7u)";
        let casts = from_halves(text, true);
        let arguments: Vec<&str> = casts.iter().map(|c| &text[c.argument.clone()]).collect();
        assert_eq!(arguments, ["bitcast<vec2<f16>>(v)", "v", "7u"]);
        let (read, _) = as_naga_knows(text, &casts[..2], Vec::new());
        let (code, _) = read.split_once('\n').expect("functions at the end");
        assert_eq!(
            code,
            "invar_same_vec2h(invar_same_vec2h(v)) + invar_bitcast_vec2h(bitcast<u32>(7u))"
        );
    }

    #[test]
    fn bitcasts_to_vectors_of_f16_are_calls() {
        let (text, edits) = as_naga_knows(
            "let a = bitcast<vec2<f16>>(f(x)).x; // bitcast<vec2h>(b)",
            &[],
            Vec::new(),
        );
        let (code, function) = text.split_once('\n').expect("a function at the end");
        assert_eq!(
            code,
            "let a = invar_bitcast_vec2h(bitcast<u32>(f(x))).x; // bitcast<vec2h>(b)"
        );
        assert!(function.starts_with("fn invar_bitcast_vec2h("));
        let starts: Vec<(usize, usize)> = edits.iter().map(|e| (e.at, e.was)).collect();
        assert_eq!(starts, [(8, 19), (31, 1)]);
    }

    #[test]
    fn bitcasts_stand_in_bitcasts() {
        let (text, edits) = as_naga_knows(
            "bitcast< vec4h >(vec2(bitcast<u32>(1f), g(bitcast<vec2h>(2u).x)))",
            &[],
            Vec::new(),
        );
        assert!(text.starts_with(
            "invar_bitcast_vec4h(bitcast<vec2<u32>>(vec2(bitcast<u32>(1f), \
             g(invar_bitcast_vec2h(bitcast<u32>(2u)).x))))\nfn"
        ));
        assert_eq!(edits.len(), 4);
    }

    #[test]
    fn all_else_stays() {
        for text in [
            "let a = bitcast<vec2<u32>>(x);",
            "my_bitcast<vec2h>(x)",
            "bitcast<vec2h>(",
            "/* bitcast<vec2h>(x)",
        ] {
            assert_eq!(
                as_naga_knows(text, &[], Vec::new()),
                (text.to_string(), Vec::<Edit>::new())
            );
        }
    }
}
