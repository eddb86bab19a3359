//! Extensions that the standard has and naga takes without being asked, or this crate has in its place: their names
//! are taken out of the `enable` and `requires` directives, of which naga would refuse them. No byte moves, so places
//! stay.

/// What naga needs no directive for, and what `pointers.rs` does.
const TAKEN: [&str; 3] = [
    "subgroups",
    "subgroups_f16",
    "unrestricted_pointer_parameters",
];

/// The text with those extensions left out of its directives.
pub(crate) fn as_naga_knows(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut at = 0;
    while let Some(start) = directive(text, at) {
        let Some(length) = text[start..].find(';') else {
            break;
        };
        let end = start + length;
        at = end + 1;
        let directive = &text[start..end];
        let names = directive.strip_prefix("enable");
        let Some(names) = names.or(directive.strip_prefix("requires")) else {
            continue;
        };
        let mut from = end - names.len();
        let mut kept = 0;
        let mut last_comma = None;
        for name in names.split(',') {
            let to = from + name.len();
            if TAKEN.contains(&name.trim()) {
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
            ("enable", "enable"),
            ("// \u{e9}\nenable subgroups", "// \u{e9}\nenable subgroups"),
        ] {
            assert_eq!(as_naga_knows(text), expected);
        }
    }
}
