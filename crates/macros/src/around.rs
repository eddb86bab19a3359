//! What stands around a function in its file, as far as braces tell: a macro sees the function alone.
//!
//! Deliberately absent: what a macro of the author's puts around it. There rustc says that no kernel stands there.

use std::iter::Peekable;
use std::str::Chars;

use proc_macro2::Ident;

/// Whether a function stands in an `impl` or a `trait`.
pub fn is_associated(name: &Ident) -> bool {
    let (span, start) = (name.span(), name.span().start());
    let text = span.local_file().map(std::fs::read_to_string);
    let Some(Ok(text)) = text else {
        return false;
    };
    let before = text.lines().take(start.line).enumerate();
    let before = before.map(|(i, line)| match i + 1 == start.line {
        true => line.chars().take(start.column).collect(),
        false => line.to_string(),
    });
    is_open_around(&before.collect::<Vec<_>>().join("\n"))
}

/// Whether the innermost brace that is open at the end of some text is that of an `impl` or a `trait`.
fn is_open_around(text: &str) -> bool {
    const BEGIN: &[&str] = &[
        "impl", "trait", "fn", "mod", "const", "static", "struct", "enum", "union", "match",
    ];
    let mut heads = Vec::new();
    let (mut head, mut inside) = (String::new(), 0u32);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '/' if rest.peek() == Some(&'/') => while rest.next_if(|c| *c != '\n').is_some() {},
            '/' if rest.peek() == Some(&'*') => skip_comment(&mut rest),
            '"' => skip_text(&mut rest, raw_marks(&head)),
            '\'' => skip_character(&mut rest),
            '{' => heads.push(std::mem::take(&mut head)),
            '}' => {
                heads.pop();
                head.clear();
            }
            ';' if inside == 0 => head.clear(),
            other => {
                match other {
                    '(' | '[' => inside += 1,
                    ')' | ']' => inside = inside.saturating_sub(1),
                    _ => {}
                }
                head.push(other);
            }
        }
    }
    let innermost = heads.pop().unwrap_or_default();
    if innermost.contains("=>") {
        // An arm of a macro, whatever words it is called with.
        return false;
    }
    let mut words = innermost.split(|c: char| !c.is_alphanumeric() && c != '_');
    let first = words.find(|word| BEGIN.contains(word));
    matches!(first, Some("impl" | "trait"))
}

fn skip_comment(rest: &mut Peekable<Chars<'_>>) {
    let (mut depth, mut last) = (0, '/');
    for c in rest.by_ref() {
        match (last, c) {
            ('/', '*') => depth += 1,
            ('*', '/') => depth -= 1,
            _ => {
                last = c;
                continue;
            }
        }
        if depth == 0 {
            return;
        }
        last = ' ';
    }
}

/// How many `#` stand before raw text, none of other text.
fn raw_marks(head: &str) -> Option<usize> {
    let without = head.trim_end_matches('#');
    let word = without.rsplit(|c: char| !c.is_alphanumeric()).next();
    matches!(word, Some("r" | "br" | "cr")).then(|| head.len() - without.len())
}

fn skip_text(rest: &mut Peekable<Chars<'_>>, raw: Option<usize>) {
    while let Some(c) = rest.next() {
        match (c, raw) {
            ('\\', None) => {
                rest.next();
            }
            ('"', None) => return,
            ('"', Some(marks)) => {
                let mut found = 0;
                while found < marks && rest.next_if_eq(&'#').is_some() {
                    found += 1;
                }
                if found == marks {
                    return;
                }
            }
            _ => {}
        }
    }
}

/// A character, or a lifetime, of which nothing has to be skipped.
fn skip_character(rest: &mut Peekable<Chars<'_>>) {
    let mut ahead = rest.clone();
    let is_escape = ahead.next() == Some('\\');
    if is_escape {
        ahead.next();
        while ahead.next().is_some_and(|c| c != '\'') {}
        *rest = ahead;
    } else if ahead.next() == Some('\'') {
        *rest = ahead;
    }
}

#[cfg(test)]
mod tests {
    use super::is_open_around;

    #[test]
    fn the_innermost_brace_says_what_is_around() {
        let inside = [
            "impl S { #[kernel] fn ",
            "struct S { a: [f32; 4] }\nimpl Of<[f32; 4]> for S {\n fn a() {}\n const C: char = '{';\n fn ",
            "mod m { /* } /* } */ */ pub unsafe trait T { // }\n fn ",
            r##"impl<'a> S<'a> { const A: &str = r#"}"}"#; const B: &str = "\"}"; const C: u8 = b'\''; fn "##,
        ];
        for text in inside {
            assert!(is_open_around(text), "{text}");
        }
        let outside = [
            "fn ",
            "impl S { fn a() {} }\nfn ",
            "impl S { fn a() -> impl Fn() { fn ",
            "mod tests { use super::*; fn ",
            "macro_rules! kernels { ($t:ty) => { fn ",
            "macro_rules! kernels { (impl) => { fn ",
            "impl S { const A: () = { fn ",
        ];
        for text in outside {
            assert!(!is_open_around(text), "{text}");
        }
    }
}
