//! `bitcast` to vectors of `f16`, which naga reads as one to vectors of `f32`: each becomes a call of a
//! function behind the end of the text, and the places of what moves are kept.

/// What stands in the place of something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    /// Where it begins in the text as it was.
    pub at: usize,
    /// The bytes that were there, and those that are.
    pub was: usize,
    pub is: usize,
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

/// The text with calls in the places of those bitcasts, and what was replaced, in the order of the text.
pub(crate) fn as_naga_knows(text: &str) -> (String, Vec<Edit>) {
    let code = without_comments(text);
    let mut edits: Vec<(usize, usize, &str)> = Vec::new();
    let mut used = [false; FUNCTIONS.len()];
    for (at, word) in code.match_indices("bitcast") {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let Some((number, inside)) = target(&code[at + word.len()..]) else {
            continue;
        };
        let start = at + word.len() + inside;
        let Some(end) = closing(&code[start..]) else {
            continue;
        };
        used[number] = true;
        edits.push((at, start - at, FUNCTIONS[number].0));
        edits.push((start + end, 1, "))"));
    }
    edits.sort_unstable();
    let mut out = String::new();
    let mut end = 0;
    for (at, was, is) in &edits {
        out.push_str(&text[end..*at]);
        out.push_str(is);
        end = at + was;
    }
    out.push_str(&text[end..]);
    for ((_, _, function), _) in FUNCTIONS.iter().zip(used).filter(|(_, used)| *used) {
        out.push('\n');
        out.push_str(function);
    }
    let edits = edits.into_iter().map(|(at, was, is)| Edit {
        at,
        was,
        is: is.len(),
    });
    (out, edits.collect())
}

/// Which function a bitcast to the type in `<...>` is, and where its argument begins.
fn target(rest: &str) -> Option<(usize, usize)> {
    let open = rest.find('(')?;
    let ty: String = rest[..open].split_whitespace().collect();
    let ty = ty.strip_prefix('<')?.strip_suffix('>')?;
    let number = FUNCTIONS.iter().position(|(_, vector, _)| {
        let of = ty.strip_prefix(vector);
        matches!(of, Some("h" | "<f16>" | "<f16,>"))
    })?;
    Some((number, open + 1))
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
fn without_comments(text: &str) -> String {
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
    use super::{Edit, as_naga_knows};

    #[test]
    fn bitcasts_to_vectors_of_f16_are_calls() {
        let (text, edits) =
            as_naga_knows("let a = bitcast<vec2<f16>>(f(x)).x; // bitcast<vec2h>(b)");
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
        let (text, edits) =
            as_naga_knows("bitcast< vec4h >(vec2(bitcast<u32>(1f), g(bitcast<vec2h>(2u).x)))");
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
            assert_eq!(as_naga_knows(text), (text.to_string(), Vec::<Edit>::new()));
        }
    }
}
