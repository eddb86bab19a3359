//! Types in what clang says, as the language spells them: `half4`, not the class that stands for it.

/// A message of clang's with the language's names of types.
pub(crate) fn in_metal(message: &str) -> String {
    same_aliases(&types(message))
}

/// The types of a text, of the innermost on.
fn types(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (word, after) = rest.split_at(word_length(rest));
        let spelled = after.strip_prefix('<').and_then(|inside| {
            let end = closing(inside)?;
            let arguments: Vec<String> = arguments(&inside[..end]).map(types).collect();
            Some((class(word, &arguments)?, &inside[end + 1..]))
        });
        rest = match spelled {
            Some((name, behind)) => {
                // The classes are of a namespace, the names are not.
                out.truncate(out.strip_suffix("metal::").map_or(out.len(), str::len));
                out += &name;
                behind
            }
            None => {
                out += scalar(word);
                after
            }
        };
    }
    out
}

/// How long a word at the head of a text is, or what else is there.
fn word_length(text: &str) -> usize {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    match text.find(|c: char| !is_word(c)).unwrap_or(text.len()) {
        0 => text.chars().next().map_or(0, char::len_utf8),
        length => length,
    }
}

/// Where the arguments of a template end that begin at the head of a text.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 1;
    for (at, c) in text.char_indices() {
        match c {
            '<' | '(' | '[' => depth += 1,
            '>' | ')' | ']' => depth -= 1,
            _part => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// The arguments of a template.
fn arguments(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    text.split(move |c: char| {
        match c {
            '<' | '(' | '[' => depth += 1,
            '>' | ')' | ']' => depth -= 1,
            _part => {}
        }
        c == ',' && depth == 0
    })
    // Where two types are compared, an expression goes before what it is.
    .map(|one| one.rsplit(" aka ").next().unwrap_or(one).trim())
}

/// The name of what a class of the library with these arguments stands for.
fn class(name: &str, arguments: &[String]) -> Option<String> {
    let is_length = |text: &&str| matches!(*text, "2" | "3" | "4" | "8");
    let argument = |at: usize| arguments.get(at).map(String::as_str);
    let length = |at: usize| argument(at).filter(is_length);
    if name == "invar_chosen" {
        let vector = argument(0)?.trim_start_matches("packed_");
        return Some(format!(
            "{}{}",
            vector.strip_suffix(|c: char| c.is_ascii_digit())?,
            length(1)?
        ));
    }
    let element = argument(0).and_then(element)?;
    Some(match name {
        "invar_vec" | "invar_store" | "vec" | "packed_vec" => {
            let is_packed = name == "packed_vec" || argument(2) == Some("true");
            let packed = if is_packed { "packed_" } else { "" };
            format!("{packed}{element}{}", length(1)?)
        }
        "matrix" => format!("{element}{}x{}", length(1)?, length(2)?),
        "simdgroup_matrix" => format!("simdgroup_{element}{}x{}", length(1)?, length(2)?),
        _other => return None,
    })
}

/// A scalar type as the names of its vectors begin.
fn element(name: &str) -> Option<&str> {
    Some(match name {
        "unsigned char" => "uchar",
        "unsigned short" => "ushort",
        "unsigned int" => "uint",
        "unsigned long" => "ulong",
        "signed char" => "char",
        "bool" | "char" | "uchar" | "short" | "ushort" | "int" | "uint" | "long" | "ulong"
        | "half" | "bfloat" | "float" => name,
        _other => return None,
    })
}

/// A word that stands for a scalar type.
fn scalar(word: &str) -> &str {
    match word {
        "_Float16" => "half",
        "__bf16" => "bfloat",
        other => other,
    }
}

/// Without what a type is an alias of where that is now spelled as it is: `'half' (aka 'half')`.
fn same_aliases(text: &str) -> String {
    const ALIAS: &str = "' (aka '";
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(ALIAS) {
        let (before, behind) = (&rest[..at], &rest[at + ALIAS.len()..]);
        let named = before.rfind('\'').map_or("", |quote| &before[quote + 1..]);
        let same = behind.split_once("')").filter(|(other, _)| *other == named);
        match same {
            Some((_, after)) => {
                out += before;
                out.push('\'');
                rest = after;
            }
            None => {
                out += &rest[..at + ALIAS.len()];
                rest = behind;
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_spelled_as_the_language_does() {
        for (said, spelled) in [
            (
                "no member in 'metal::invar_vec<_Float16, 4>'",
                "no member in 'half4'",
            ),
            ("'invar_vec<unsigned int, 3, true> &'", "'packed_uint3 &'"),
            (
                "'float4 *' (aka 'invar_vec<float, 4, false> *')",
                "'float4 *'",
            ),
            (
                "'vec<half, 4>' to 'matrix<_Float16, 3, 2>'",
                "'half4' to 'half3x2'",
            ),
            ("'invar_vec<__bf16, 4 aka 4, false>'", "'bfloat4'"),
            ("'simdgroup_matrix<float, 8, 8>'", "'simdgroup_float8x8'"),
            (
                "'invar_chosen<invar_vec<int, 4, false>, 2, 0, 1>'",
                "'int2'",
            ),
            ("'Tile<invar_vec<_Float16, 2>, 3>'", "'Tile<half2, 3>'"),
            ("'uint' (aka 'unsigned int')", "'uint' (aka 'unsigned int')"),
            ("'bfloat' (aka '__bf16')", "'bfloat'"),
            ("'T' (aka '_Float16')", "'T' (aka 'half')"),
            // What is no such type is as it was.
            (
                "'metal::vec<S, 4>' and 'vec<T, N>' a < b",
                "'metal::vec<S, 4>' and 'vec<T, N>' a < b",
            ),
            ("unmatched invar_vec<float", "unmatched invar_vec<float"),
        ] {
            assert_eq!(in_metal(said), spelled);
        }
    }
}
