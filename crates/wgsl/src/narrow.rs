//! Where something is wrong that naga gives no place for: in the last of as few statements of a function as it says
//! so of. What is behind them is left out of the text, blank by blank, so that places stay.

use std::ops::Range;

use crate::bitcast::without_comments;

/// Where the first statement is with which naga says something, of a text of which it says it.
pub(crate) fn statement(text: &str, says: &dyn Fn(&str) -> bool) -> Option<Range<usize>> {
    let code = without_comments(text);
    let bodies = bodies(&code);
    let mut without = text.to_string();
    // Functions that come later are not read before.
    let mut found = None;
    for body in bodies {
        let less = blanked(&without, &body);
        if says(&less) {
            without = less;
        } else {
            found = Some(body);
        }
    }
    let mut block = found?;
    loop {
        let all = statements(&code, &block);
        let with = |count: usize| {
            let rest = all.get(count).map_or(block.end, |s| s.start);
            blanked(&without, &(rest..block.end))
        };
        // The fewest with which it is said.
        let (mut none, mut some) = (0, all.len());
        while some - none > 1 {
            let half = none.midpoint(some);
            match says(&with(half)) {
                true => some = half,
                false => none = half,
            }
        }
        let last = all.get(some.checked_sub(1)?)?.clone();
        without = with(some);
        // What is in its blocks may be the reason.
        let inside = blocks(&code, &last).into_iter();
        let mut inside = inside.filter(|inner| !says(&blanked(&without, inner)));
        match inside.next() {
            Some(inner) if !inner.is_empty() => block = inner,
            _itself => return Some(last),
        }
    }
}

fn blanked(text: &str, range: &Range<usize>) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for byte in &mut bytes[range.clone()] {
        if *byte != b'\n' {
            *byte = b' ';
        }
    }
    String::from_utf8(bytes).unwrap_or_default()
}

/// What is between the braces that are open at no others, of a part of a text.
fn blocks(code: &str, part: &Range<usize>) -> Vec<Range<usize>> {
    let mut blocks = Vec::new();
    let mut open = Vec::new();
    for (at, c) in code[part.clone()].char_indices() {
        match c {
            '{' => open.push(part.start + at + 1),
            '}' => {
                if let Some(start) = open.pop()
                    && open.is_empty()
                {
                    blocks.push(start..part.start + at);
                }
            }
            _other => {}
        }
    }
    blocks
}

/// The bodies of functions.
fn bodies(code: &str) -> Vec<Range<usize>> {
    let is_function = |block: &Range<usize>| {
        let head = code[..block.start - 1].rfind([';', '}']);
        let head = &code[head.map_or(0, |at| at + 1)..block.start];
        head.split(|c: char| !c.is_alphanumeric() && c != '_')
            .any(|word| word == "fn")
    };
    let mut all = blocks(code, &(0..code.len()));
    all.retain(is_function);
    all
}

/// The statements of a block: up to the end of a line of code, or of their blocks.
fn statements(code: &str, block: &Range<usize>) -> Vec<Range<usize>> {
    let mut all = Vec::new();
    let mut depth = 0;
    let mut start = block.start;
    for (at, c) in code[block.clone()].char_indices() {
        let end = block.start + at + 1;
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' => depth -= 1,
            '}' => {
                depth -= 1;
                let rest = code[end..block.end].trim_start();
                if depth == 0 && !["else", "continuing"].iter().any(|w| rest.starts_with(w)) {
                    all.push(start..end);
                    start = end;
                }
            }
            ';' if depth == 0 => {
                all.push(start..end);
                start = end;
            }
            _other => {}
        }
    }
    for part in &mut all {
        let text = &code[part.clone()];
        part.start += text.len() - text.trim_start().len();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::statement;

    #[test]
    fn the_statement_is_found_that_it_takes() {
        let text = "struct A { bad: u32 }
            fn f() { let x = bad; }
            fn g() { a(); if b { c(); } else if d { let e = 1; loop { WRONG(e); } f(); } h(); }
            fn h() { i(); }";
        let says = |text: &str| text.contains("WRONG") && text.contains("let e = 1;");
        let found = statement(text, &says).expect("a place");
        assert_eq!(&text[found], "WRONG(e);");
        let says = |text: &str| text.contains("else if d");
        let found = statement(text, &says).expect("a place");
        assert!(text[found].starts_with("if b {"));
        assert_eq!(
            statement(text, &|text: &str| text.contains("bad: u32")),
            None
        );
        assert_eq!(statement("fn f() { x", &|_: &str| true), None);
    }
}
