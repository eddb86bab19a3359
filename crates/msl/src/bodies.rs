//! The bodies of functions in a source: what can be left out of it where something is wrong in it, so that the kernels
//! that do not need it are made all the same.
//!
//! Deliberately absent: functions whose type or value follows from what is in them (`auto`, `constexpr`), which others
//! may need to be compiled; functions that a macro makes; functions of which one branch of a condition has the head and
//! another the rest.

use crate::tokens::{Tokens, is_blank};

/// The body of a function: the words that are its braces, and where these stand, in lines and columns of bytes from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Body {
    pub open: usize,
    pub close: usize,
    begin: (u32, u32),
    end: (u32, u32),
}

impl Body {
    /// Whether a place is in it.
    pub fn has(&self, place: (u32, u32)) -> bool {
        (self.begin..=self.end).contains(&place)
    }
}

/// What a brace opens.
enum Opened {
    Function,
    /// A function that is not left out.
    Needed,
    /// A class or a namespace.
    Scope,
    Other,
}

pub(crate) fn bodies(text: &str) -> Vec<Body> {
    let t = Tokens::new(text);
    let places = places(&t);
    let (mut all, mut head, mut at) = (Vec::new(), 0, 0);
    while at < t.len() {
        match t.word(at) {
            "#" if begins_line(&t, at) => {
                at = line_end(&t, at);
                head = at + 1;
            }
            ";" | "}" => head = at + 1,
            "[[" | "(" => at = t.closing(at),
            "{" => match (opened(&t, head, at), closing(&t, at)) {
                (Opened::Function, Some(close)) => {
                    let (begin, end) = (places[at], places[close]);
                    all.push(Body {
                        open: at,
                        close,
                        begin,
                        end,
                    });
                    at = close;
                    head = at + 1;
                }
                (Opened::Needed, Some(close)) => {
                    at = close;
                    head = at + 1;
                }
                (Opened::Other, Some(close)) => at = close,
                _into_it => head = at + 1,
            },
            _part_of_a_head => {}
        }
        at += 1;
    }
    all
}

/// Takes a body out and puts something in its place; directives in it stay, for they say what follows, but for those
/// about loops.
pub(crate) fn replace(t: &mut Tokens, body: &Body, with: &str) {
    // It may be gone already.
    if !t.now(body.open).starts_with('{') {
        return;
    }
    let mut at = body.open + 1;
    while at < body.close {
        let is_directive = t.word(at) == "#" && begins_line(t, at);
        if is_directive && t.word(t.next(at)) != "pragma" {
            at = line_end(t, at);
        } else {
            t.blank(at, at + 1);
            at += 1;
        }
    }
    t.put(body.open, format!("{{ {with} "));
}

/// Where each word stands.
fn places(t: &Tokens) -> Vec<(u32, u32)> {
    let (mut line, mut column) = (1, 1);
    let mut all = Vec::with_capacity(t.len());
    for at in 0..t.len() {
        all.push((line, column));
        let word = t.word(at);
        line += word.matches('\n').count() as u32;
        column = match word.rfind('\n') {
            Some(last) => (word.len() - last) as u32,
            None => column + word.len() as u32,
        };
    }
    all
}

/// Whether nothing stands before a word on its line.
fn begins_line(t: &Tokens, at: usize) -> bool {
    let before = at.checked_sub(1).map(|before| t.word(before));
    before.is_none_or(|word| is_blank(word) && word.contains('\n'))
}

/// The word that ends the line of a directive.
fn line_end(t: &Tokens, at: usize) -> usize {
    let goes_on = |end: usize| end > 0 && t.word(end - 1) == "\\";
    let ends = |end: &usize| is_blank(t.word(*end)) && t.word(*end).contains('\n');
    (at..t.len())
        .find(|end| ends(end) && !goes_on(*end))
        .unwrap_or(t.len())
}

/// The brace that closes another, if both are in the same branches of conditions, and no branch in between opens or
/// closes more than it closes or opens.
fn closing(t: &Tokens, open: usize) -> Option<usize> {
    let (mut depth, mut at) = (0_u32, open);
    // How deep each condition that is open began.
    let mut conditions = Vec::new();
    while at < t.len() {
        match t.word(at) {
            "#" if begins_line(t, at) => {
                match t.word(t.next(at)) {
                    "if" | "ifdef" | "ifndef" => conditions.push(depth),
                    "else" | "elif" | "elifdef" | "elifndef"
                        if conditions.last() != Some(&depth) =>
                    {
                        return None;
                    }
                    "endif" if conditions.pop() != Some(depth) => return None,
                    _other => {}
                }
                at = line_end(t, at);
            }
            "{" => depth += 1,
            "}" => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return conditions.is_empty().then_some(at);
                }
            }
            _inside => {}
        }
        at += 1;
    }
    None
}

/// What a brace opens behind a head.
fn opened(t: &Tokens, head: usize, brace: usize) -> Opened {
    let (mut at, mut has_parameters, mut is_initialised) = (head, false, false);
    let (mut is_class, mut is_needed, mut has_type, mut has_list) = (false, false, true, false);
    while at < brace {
        match t.word(at) {
            "template" => {
                let arguments = t.next(at);
                at = behind(t, arguments, brace).unwrap_or(arguments);
            }
            "__attribute__" | "alignas" | "decltype" => at = t.closing(t.next(at)),
            "[[" | "[" => at = t.closing(at),
            "(" => {
                has_parameters = true;
                at = t.closing(at);
            }
            "operator" => at = t.next(at),
            "=" => is_initialised = true,
            ":" if has_parameters => has_list = true,
            "struct" | "class" | "union" | "namespace" | "extern" => is_class = true,
            "enum" => is_initialised = true,
            "constexpr" | "consteval" => is_needed = true,
            "auto" => has_type = false,
            "->" => has_type = true,
            _part_of_it => {}
        }
        at += 1;
    }
    let before = t.word(t.previous(brace));
    let ends_head = matches!(
        before,
        ")" | "const"
            | "volatile"
            | "noexcept"
            | "override"
            | "device"
            | "constant"
            | "threadgroup"
            | "thread"
            | "]]"
    );
    match () {
        () if is_initialised => Opened::Other,
        () if is_class && !(has_parameters && ends_head) => Opened::Scope,
        () if !has_parameters => Opened::Other,
        () if has_list && !matches!(before, ")" | "}") => Opened::Other,
        () if is_needed || !has_type => Opened::Needed,
        () => Opened::Function,
    }
}

/// The bracket that closes the parameters of a template.
fn behind(t: &Tokens, open: usize, end: usize) -> Option<usize> {
    let (mut depth, mut at) = (0, open);
    while at < end {
        match t.word(at) {
            "<" => depth += 1,
            ">" => depth -= 1,
            ">>" | ">=" => return None,
            "(" => at = t.closing(at),
            _inside => {}
        }
        if depth <= 0 {
            return Some(at);
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        let t = Tokens::new(text);
        let all = bodies(text).into_iter();
        all.map(|body| t.text(body.open, body.close + 1)).collect()
    }

    #[test]
    fn functions_are_told_from_what_else_has_braces() {
        assert_eq!(
            of(
                "namespace n { template <class T = int> [[kernel]] void k(T x [[buffer(0)]]) { if (x) { y; } } }"
            ),
            ["{ if (x) { y; } }"]
        );
        assert_eq!(
            of(
                "struct S { int a = 1; S(int b) : a{b}, c(b) { f(); } float g() const device { g; } };"
            ),
            ["{ f(); }", "{ g; }"]
        );
        assert_eq!(
            of("S & S::operator=(int b) { a; } bool operator==(S a, S b) { c; }"),
            ["{ a; }", "{ c; }"]
        );
        assert_eq!(
            of("constant int t[2] = {1, 2}; enum E { A }; void f() {}"),
            ["{}"]
        );
        assert_eq!(
            of("struct __attribute__((packed)) P { int f() { x; } }; struct P g() { y; }"),
            ["{ x; }", "{ y; }"]
        );
        assert!(of("constexpr int f() { return 1; } auto g() { return 1; } void h();").is_empty());
        assert_eq!(of("auto g() -> int { return 1; }"), ["{ return 1; }"]);
        assert!(of("#define F(x) \\\n void f(x) { \\\n }\nint x;").is_empty());
    }

    #[test]
    fn what_branches_of_conditions_share_is_not_left_out() {
        assert!(of("#if A\nvoid f() {\n#else\nvoid g() {\n#endif\n  x;\n}\n").is_empty());
        let text =
            "void f() {\n  a;\n#if A\n  if (b) { c; }\n#else\n  d;\n#endif\n#pragma unroll\n}";
        let all = bodies(text);
        assert_eq!(all.len(), 1);
        assert!(all[0].has((2, 3)) && all[0].has((9, 1)) && !all[0].has((1, 4)));
        let mut t = Tokens::new(text);
        replace(&mut t, &all[0], "no();");
        assert_eq!(
            t.finish().0,
            "void f() { no(); \n\n#if A\n\n#else\n\n#endif\n\n}"
        );
    }
}
