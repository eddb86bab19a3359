//! Extensions that the standard has and naga takes without being asked, or this crate has in its place: their names
//! are taken out of the `enable` and `requires` directives, of which naga would refuse them, and the builtins of
//! theirs that naga does not know become ones that it does. No byte moves, so places stay.

use crate::bitcast::without_comments;

/// What naga needs no `enable` for.
const ENABLED: [&str; 2] = ["subgroups", "subgroups_f16"];

/// The language extensions of the standard that naga knows by their names.
const KNOWN: [&str; 3] = [
    "readonly_and_readwrite_storage_textures",
    "packed_4x8_integer_dot_product",
    "pointer_composite_access",
];

/// Those that naga does not know by their names: it needs nothing for them, or this crate does what they ask for.
const REQUIRED: [&str; 10] = [
    "unrestricted_pointer_parameters",
    "uniform_buffer_standard_layout",
    "subgroup_id",
    "subgroup_uniformity",
    "texture_and_sampler_let",
    "texture_formats_tier1",
    "linear_indexing",
    "immediate_address_space",
    "fragment_depth",
    "swizzle_assignment",
];

/// The builtins of `linear_indexing`, and those of other stages that naga reads in their places.
const LINEAR: [(&str, &str); 2] = [
    ("global_invocation_index", "geometry_index"),
    ("workgroup_index", "hit_kind"),
];

/// The language extensions that a shader may require.
pub(crate) fn language_extensions() -> impl Iterator<Item = &'static str> {
    KNOWN.into_iter().chain(REQUIRED)
}

/// The builtin whose place naga has another one in.
pub(crate) fn linear_index(builtin: naga::BuiltIn) -> Option<&'static str> {
    match builtin {
        naga::BuiltIn::GeometryIndex => Some(LINEAR[0].0),
        naga::BuiltIn::HitKind => Some(LINEAR[1].0),
        _another => None,
    }
}

/// The text with those extensions left out of its directives, and builtins that naga knows in the places of others.
pub(crate) fn as_naga_knows(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    builtins(text, &mut bytes);
    let mut at = 0;
    while let Some(start) = directive(text, at) {
        let Some(length) = text[start..].find(';') else {
            break;
        };
        let end = start + length;
        at = end + 1;
        let directive = &text[start..end];
        let (names, taken) = match directive.strip_prefix("enable") {
            Some(names) => (names, &ENABLED[..]),
            None => match directive.strip_prefix("requires") {
                Some(names) => (names, &REQUIRED[..]),
                None => continue,
            },
        };
        let mut from = end - names.len();
        let mut kept = 0;
        let mut last_comma = None;
        for name in names.split(',') {
            let to = from + name.len();
            if taken.contains(&name.trim()) {
                blank(&mut bytes[from..to]);
                // The comma behind it, or before it if it is the last.
                match bytes.get(to) {
                    Some(b',') => bytes[to] = b' ',
                    _last => {
                        if let Some(comma) = last_comma {
                            bytes[comma] = b' ';
                        }
                    }
                }
            } else {
                kept += 1;
                last_comma = (to < end).then_some(to);
            }
            from = to + 1;
        }
        if kept == 0 {
            blank(&mut bytes[start..at]);
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_string())
}

/// Whether a text has builtins in the places of which naga reads others.
pub(crate) fn has_linear_indices(text: &str) -> bool {
    let mut found = false;
    each_builtin(text, |name, _| {
        found |= LINEAR.iter().any(|(linear, _)| *linear == name);
    });
    found
}

/// Gives naga builtins that it knows: of `linear_indexing`, and `frag_depth` without a mode.
fn builtins(text: &str, bytes: &mut [u8]) {
    each_builtin(text, |name, (from, end)| {
        if name == "frag_depth" {
            blank(&mut bytes[from + name.len()..end]);
        }
        if let Some((_, stands)) = LINEAR.iter().find(|(linear, _)| *linear == name) {
            let place = &mut bytes[from..from + name.len()];
            place.fill(b' ');
            place[..stands.len()].copy_from_slice(stands.as_bytes());
        }
    });
}

/// The names in `@builtin(...)`, with where they begin and where the parenthesis is closed.
fn each_builtin(text: &str, mut then: impl FnMut(&str, (usize, usize))) {
    if !text.contains("_index") && !text.contains("frag_depth") {
        return;
    }
    let code = without_comments(text);
    for (at, word) in code.match_indices("builtin") {
        let rest = code[at + word.len()..].trim_start();
        let (true, Some(inside)) = (code[..at].trim_end().ends_with('@'), rest.strip_prefix('('))
        else {
            continue;
        };
        let Some(closed) = inside.find(')') else {
            continue;
        };
        let end = code.len() - inside.len() + closed;
        let name = inside[..closed].trim_start();
        let from = end - name.len();
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = name.find(|c| !is_word(c)).unwrap_or(name.len());
        then(&name[..length], (from, end));
    }
}

fn blank(bytes: &mut [u8]) {
    for byte in bytes.iter_mut().filter(|b| !b.is_ascii_whitespace()) {
        *byte = b' ';
    }
}

/// Where the next directive begins, behind blanks and comments. Directives come before all else.
fn directive(text: &str, mut at: usize) -> Option<usize> {
    loop {
        let rest = text.get(at..)?;
        let trimmed = rest.trim_start();
        at += rest.len() - trimmed.len();
        if trimmed.starts_with("//") {
            at += trimmed.find('\n')? + 1;
        } else if trimmed.starts_with("/*") {
            at += block_comment(trimmed)?;
        } else if ["enable", "requires", "diagnostic"]
            .iter()
            .any(|word| trimmed.starts_with(word))
        {
            return Some(at);
        } else {
            return None;
        }
    }
}

/// The bytes of a comment in which others can nest.
pub(crate) fn block_comment(text: &str) -> Option<usize> {
    let mut depth = 0;
    let mut at = 0;
    loop {
        let rest = text.get(at..)?;
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return Some(at);
            }
        } else {
            at += rest.chars().next()?.len_utf8();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::as_naga_knows;

    #[test]
    fn directives_lose_what_naga_takes_anyway() {
        for (text, expected) in [
            ("enable subgroups; fn", "                  fn"),
            ("enable f16, subgroups;", "enable f16           ;"),
            ("enable subgroups, f16;", "enable            f16;"),
            (
                "/* a /* b */ */ // c\nenable f16;\nenable subgroups;x",
                "/* a /* b */ */ // c\nenable f16;\n                 x",
            ),
            (
                "requires unrestricted_pointer_parameters; fn",
                "                                          fn",
            ),
            (
                "requires packed_4x8_integer_dot_product, unrestricted_pointer_parameters;",
                "requires packed_4x8_integer_dot_product                                 ;",
            ),
            ("fn f() {} enable subgroups;", "fn f() {} enable subgroups;"),
            (
                "@builtin( global_invocation_index ) a: u32, @ builtin(workgroup_index) b: u32",
                "@builtin( geometry_index          ) a: u32, @ builtin(hit_kind       ) b: u32",
            ),
            (
                "fn f() -> @builtin(frag_depth, less) f32 // @builtin(workgroup_index)",
                "fn f() -> @builtin(frag_depth      ) f32 // @builtin(workgroup_index)",
            ),
            (
                "let workgroup_index = builtin(x);",
                "let workgroup_index = builtin(x);",
            ),
            ("enable", "enable"),
            ("// \u{e9}\nenable subgroups", "// \u{e9}\nenable subgroups"),
        ] {
            assert_eq!(as_naga_knows(text), expected);
        }
    }
}
