//! How deep a shader nests, told from its text before naga reads it.
//!
//! Naga calls itself for the operands of an operator, for what follows an `else`, and for the declarations that a
//! declaration uses: of long sums and of long chains too, in which nothing looks nested. Brackets it counts itself.
//! The bound here is never too small, and of what people write not much too large: each operator of an expression
//! counts, and what a comma or the end of a statement closes counts no more.

/// The most operators in one another, and `else`s after one another.
pub(crate) const MAX_DEPTH: usize = 10_000;
/// The most declarations outside of functions.
pub(crate) const MAX_DECLARATIONS: usize = 65_536;
/// What a level takes of the stack, in naga and here, in a build without optimisation.
const LEVEL_BYTES: usize = 4 << 10;
/// What a declaration takes that the one before it uses.
const DECLARATION_BYTES: usize = 1 << 10;

/// What a text needs at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Depth {
    /// Levels, and the byte at which they are reached, or are first more than [`MAX_DEPTH`].
    pub levels: usize,
    pub deepest: usize,
    pub declarations: usize,
}

impl Depth {
    /// How much of the stack is enough for it.
    pub fn stack_bytes(&self) -> usize {
        self.levels * LEVEL_BYTES + self.declarations * DECLARATION_BYTES
    }
}

/// What is between two brackets, so far.
#[derive(Default)]
struct Level {
    /// Operators since the last comma or end of a statement.
    operators: usize,
    /// `<` that may begin a list, whose commas end no operand.
    open_lists: usize,
}

/// Looks through a text.
pub(crate) fn of(text: &str) -> Depth {
    let bytes = text.as_bytes();
    let mut depth = Depth::default();
    let mut levels = vec![Level::default()];
    // Operators of all levels.
    let mut operators = 0_usize;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let start = at;
        at += 1;
        let outermost = levels.len() == 1;
        let level = levels.last_mut().expect("the outermost stays");
        let mut ends = false;
        match byte {
            b'/' if matches!(bytes.get(at), Some(b'/' | b'*')) => at = after_comment(bytes, start),
            b'(' | b'[' => {
                level.operators += 1;
                operators += 1;
                levels.push(Level::default());
            }
            b'{' => levels.push(Level::default()),
            b')' | b']' | b'}' => {
                if !outermost {
                    operators -= level.operators;
                    levels.pop();
                }
                // A statement ends with its block, if no `else` follows.
                if *byte == b'}' {
                    at = after_spaces(bytes, at);
                    ends = !bytes[at..].starts_with(b"else");
                    let outermost = levels.len() == 1;
                    depth.declarations += usize::from(ends && outermost);
                }
            }
            b';' => {
                ends = true;
                depth.declarations += usize::from(outermost);
            }
            b',' => ends = level.open_lists == 0,
            b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^' | b'!' | b'~' | b'.' | b'='
            | b'<' | b'>' => {
                level.operators += 1;
                operators += 1;
                match byte {
                    b'<' => level.open_lists += 1,
                    b'>' => level.open_lists = level.open_lists.saturating_sub(1),
                    _ => {}
                }
            }
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                let rest = bytes[at..].iter();
                at += rest
                    .take_while(|b| b.is_ascii_alphanumeric() || **b == b'_')
                    .count();
                if &bytes[start..at] == b"else" {
                    level.operators += 1;
                    operators += 1;
                }
            }
            _ => {}
        }
        if ends {
            let level = levels.last_mut().expect("the outermost stays");
            operators -= level.operators;
            *level = Level::default();
        }
        if operators + levels.len() > depth.levels {
            if depth.levels <= MAX_DEPTH {
                depth.deepest = start;
            }
            depth.levels = operators + levels.len();
        }
    }
    depth
}

/// Where the next word begins, behind blanks and comments.
pub(crate) fn after_spaces(bytes: &[u8], mut at: usize) -> usize {
    loop {
        match (bytes.get(at), bytes.get(at + 1)) {
            (Some(byte), _) if byte.is_ascii_whitespace() => at += 1,
            (Some(b'/'), Some(b'/' | b'*')) => at = after_comment(bytes, at),
            _ => return at,
        }
    }
}

/// Where the comment ends that begins there; those of `/*` nest.
fn after_comment(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 2;
    if bytes[start + 1] == b'/' {
        let rest = bytes[at..].iter();
        return at + rest.take_while(|byte| **byte != b'\n').count();
    }
    let mut open = 1;
    while open > 0 && at < bytes.len() {
        match &bytes[at..(at + 2).min(bytes.len())] {
            b"/*" => (open, at) = (open + 1, at + 2),
            b"*/" => (open, at) = (open - 1, at + 2),
            _ => at += 1,
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::of;

    fn levels(text: &str) -> usize {
        of(text).levels
    }

    #[test]
    fn operators_of_one_expression_count_together() {
        for (text, at_least, at_most) in [
            ("a + b + c + d", 3, 4),
            ("- - - -a", 4, 5),
            ("a.b.c[1].d", 4, 6),
            ("f(a + b) + g(c)", 3, 5),
            ("if a {} else if b {} else if c {}", 2, 5),
            ("if a {} /* so */ else {}", 1, 3),
        ] {
            let levels = levels(text);
            assert!((at_least..=at_most).contains(&levels), "{text}: {levels}");
        }
    }

    #[test]
    fn what_lies_side_by_side_does_not_add_up() {
        let list = format!("array<f32, 9000>({})", "-1.5 * x, ".repeat(9_000));
        assert!(levels(&list) < 20, "{}", levels(&list));
        let statements = "y[0] = a + b; if c { d(); } ".repeat(9_000);
        assert!(levels(&statements) < 20, "{}", levels(&statements));
        let comments = "// ------- + + + + + + + \n/* / * - /* - */ - */".repeat(9_000);
        assert_eq!(levels(&comments), 1);
    }

    #[test]
    fn commas_of_a_list_of_a_type_end_no_operand() {
        let sum = "array<u32, 1>(1)[0] + ".repeat(9_000);
        assert!(levels(&sum) > 9_000, "{}", levels(&sum));
        let argument = format!("f({sum} 1)");
        assert!(levels(&argument) > 9_000, "{}", levels(&argument));
    }

    #[test]
    fn declarations_are_counted_and_broken_texts_read() {
        assert_eq!(of("const a = b; fn f() { g(); }").declarations, 2);
        assert_eq!(of("}}}))]]];;").declarations, 5);
        assert_eq!(levels("/*"), 1);
        assert_eq!(levels("/"), 2);
    }
}
