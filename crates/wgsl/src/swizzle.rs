//! Assignments to several components of a vector, `v.xy = e;` (`swizzle_assignment`), of which naga says that nothing
//! can be assigned there. Each becomes a block that computes the value and then stores the components one by one; one
//! to a single component of several, `v.yz.y = e;`, becomes one to that component. The places of what moves are kept.
//! Which members are components the text alone does not say: a caller finds out by what naga takes.

use std::ops::Range;

use naga::front::Typifier;
use naga::proc::ResolveContext;
use naga::{Module, Span, TypeInner};

use crate::bitcast::without_comments;

/// What stands in the place of a part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub at: usize,
    pub was: usize,
    pub is: String,
    /// What of the text it is shown as.
    pub shows: Range<usize>,
}

/// How the value gets to the components.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// By a name for it, which has a type of its own.
    Named,
    /// Each component is that of the value, which is written once a component: constants that take the type of what
    /// they are stored in.
    Repeated,
}

/// One such assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Swizzle {
    /// The vector as it is written.
    vector: Range<usize>,
    /// Where the names of components end.
    names_end: usize,
    /// Those names, of which a struct's member could be one.
    names: Vec<String>,
    /// The components of the vector, as `xyzw`.
    components: String,
    /// Of `+=` the `+`.
    operator: String,
    value: Range<usize>,
    way: Way,
    /// Whether the other way was taken before, or there is none: a value with a `bitcast` has a type.
    turned: bool,
    /// By its last name only, if those before may be members.
    alone: Option<Box<Swizzle>>,
}

/// What the value is called, with the number of its components.
const NAMED: &str = "invar_value";

const LETTERS: [&str; 2] = ["xyzw", "rgba"];

/// The components of which a name of a swizzle speaks, by number.
fn components(name: &str) -> Option<Vec<usize>> {
    if !(1..=4).contains(&name.len()) {
        return None;
    }
    LETTERS
        .iter()
        .find_map(|letters| name.chars().map(|c| letters.find(c)).collect())
}

/// The identifier at the end of a text.
fn last_word(text: &str) -> &str {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    text.rfind(|c| !is_word(c)).map_or(text, |at| {
        &text[at + text[at..].chars().next().map_or(1, char::len_utf8)..]
    })
}

/// The assignments of a text to what may be several components of a vector.
pub(crate) fn all(text: &str) -> Vec<Swizzle> {
    let code = without_comments(text);
    let mut all = Vec::new();
    for (at, _) in code.match_indices('=') {
        let before = &code[..at];
        if code[at + 1..].starts_with('=') || before.ends_with(['=', '!']) {
            continue;
        }
        let operator = match before.chars().next_back() {
            Some('<' | '>') => match &before[before.len().saturating_sub(2)..] {
                shift @ ("<<" | ">>") => shift,
                _comparison => continue,
            },
            Some('+' | '-' | '*' | '/' | '%' | '&' | '|' | '^') => &before[before.len() - 1..],
            _no_operator => "",
        };
        let target = before[..before.len() - operator.len()].trim_end();
        if let Some(found) = of(&code, target, operator, at + 1) {
            all.push(found);
        }
    }
    all
}

fn of(code: &str, target: &str, operator: &str, behind: usize) -> Option<Swizzle> {
    // The names at the end, the last first.
    let mut names = Vec::new();
    let mut rest = target;
    loop {
        let name = last_word(rest);
        let before = rest[..rest.len() - name.len()].trim_end();
        match (components(name), before.strip_suffix('.')) {
            (Some(numbers), Some(before)) => {
                names.push((name, numbers));
                rest = before.trim_end();
            }
            _no_swizzle => break,
        }
    }
    // What lies further in counts through what is around it, unless that is a member.
    let alone = with(code, target, operator, behind, &names[..names.len().min(1)]);
    match with(code, target, operator, behind, &names) {
        Some(through) if alone.as_ref() != Some(&through) => Some(Swizzle {
            alone: alone.map(Box::new),
            ..through
        }),
        _one => alone,
    }
}

/// The assignment by as many of these names as can be, of which the last is the first.
fn with(
    code: &str,
    target: &str,
    operator: &str,
    behind: usize,
    names: &[(&str, Vec<usize>)],
) -> Option<Swizzle> {
    let (last, mut numbers) = names.first().cloned()?;
    let mut end = target[..target.len() - last.len()].trim_end().len() - 1;
    let mut used = vec![last.to_string()];
    for (name, inner) in &names[1..] {
        let through: Option<Vec<usize>> = numbers.iter().map(|n| inner.get(*n).copied()).collect();
        let Some(through) = through.filter(|_| inner.len() > 1) else {
            break;
        };
        numbers = through;
        used.push((*name).to_string());
        let before = target[..end].trim_end();
        end = before[..before.len() - name.len()].trim_end().len() - 1;
    }
    if numbers.len() == 1 && used.len() == 1 {
        return None;
    }
    let mut once = numbers.clone();
    once.sort_unstable();
    once.dedup();
    if once.len() < numbers.len() {
        return None;
    }
    let vector = code[..end].trim_end();
    let start = beginning(vector)?;
    let value = code[behind..].trim_start();
    let from = code.len() - value.len();
    let length = length(value)?;
    let value = from..from + code[from..from + length].trim_end().len();
    let is_plain = is_constant(&code[value.clone()]);
    let has_cast = code[value.clone()].contains("bitcast");
    let way = if is_plain && operator.is_empty() {
        Way::Repeated
    } else {
        Way::Named
    };
    let letter = |n: &usize| LETTERS[0].chars().nth(*n);
    Some(Swizzle {
        vector: start..vector.len(),
        names_end: target.len(),
        names: used,
        components: numbers.iter().filter_map(letter).collect(),
        operator: operator.to_string(),
        value,
        way,
        turned: has_cast,
        alone: None,
    })
}

/// Where the expression begins that a statement begins with, and a text ends with.
fn beginning(text: &str) -> Option<usize> {
    let mut depth = 0;
    let mut start = text.len();
    for (at, c) in text.char_indices().rev() {
        match c {
            ')' | ']' => depth += 1,
            '(' | '[' if depth > 0 => depth -= 1,
            _inside if depth > 0 => {}
            ';' | '{' | '}' => return (start < text.len()).then_some(start),
            c if c.is_whitespace() => continue,
            c if c.is_alphanumeric() || matches!(c, '_' | '.' | '*' | '&') => {}
            // The head of a `for`, or no assignment.
            _other => return None,
        }
        start = at;
    }
    None
}

/// How long the expression is up to the end of the statement.
fn length(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' if depth > 0 => depth -= 1,
            ';' if depth == 0 => return Some(at),
            ')' | ']' | '{' | '}' => return None,
            _inside => {}
        }
    }
    None
}

/// Whether nothing but numbers is in an expression, and vectors of them that have no type of their own.
fn is_constant(text: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut words = text.split(|c: char| !is_word(c)).filter(|w| !w.is_empty());
    words.all(|word| {
        matches!(word, "vec2" | "vec3" | "vec4") || word.starts_with(|c: char| c.is_ascii_digit())
    })
}

impl Swizzle {
    /// The whole assignment.
    pub fn statement(&self) -> Range<usize> {
        self.vector.start..self.value.end
    }

    /// Whether a struct of the text may have a member of one of its names.
    pub fn may_be_member(&self, text: &str) -> bool {
        self.names.iter().any(|name| {
            let mut all = text.match_indices(name.as_str());
            all.any(|(at, name)| text[at + name.len()..].trim_start().starts_with(':'))
        })
    }

    /// How many components it gives values to.
    pub fn count(&self) -> usize {
        self.components.len()
    }

    /// What is assigned to, as it is written.
    pub fn target(&self) -> Range<usize> {
        self.vector.start..self.names_end
    }

    /// Takes the other way, if there is one and it was not taken before.
    pub fn turn(&mut self) -> bool {
        if let Some(alone) = self.alone.take() {
            *self = *alone;
            return true;
        }
        if self.turned || !self.operator.is_empty() || self.count() == 1 {
            return false;
        }
        self.turned = true;
        self.way = match self.way {
            Way::Named => Way::Repeated,
            Way::Repeated => Way::Named,
        };
        true
    }

    /// What naga reads in its place.
    pub fn changes(&self, text: &str) -> Vec<Change> {
        let Swizzle { vector, value, .. } = self;
        let change = |at: usize, end: usize, is: String, shows: Range<usize>| Change {
            at,
            was: end - at,
            is,
            shows,
        };
        let target = vector.start..self.names_end;
        if self.count() == 1 {
            let is = format!(".{}", self.components);
            return vec![change(vector.end, self.names_end, is, target)];
        }
        let mut changes = Vec::new();
        // An index is computed once, and first.
        let is_indexed = text[vector.clone()].contains('[');
        let (place, from) = match is_indexed {
            true => {
                let is = "{ let invar_place = &".to_string();
                changes.push(change(vector.start, vector.start, is, target.clone()));
                ("(*invar_place)".to_string(), vector.end)
            }
            false => (text[vector.clone()].to_string(), vector.start),
        };
        let head = if is_indexed { "; " } else { "{ " };
        let mut parts = self.components.chars().zip(["x", "y", "z", "w"]);
        let named = format!("{NAMED}{}", self.count());
        let (before, mut after) = match (self.way, self.operator.as_str()) {
            (Way::Named, "") => (format!("{head}let {named} = "), String::from("; ")),
            (Way::Named, operator) => (
                format!(
                    "{head}let {named} = {place}.{} {operator} (",
                    self.components
                ),
                String::from("); "),
            ),
            (Way::Repeated, _) => {
                let (own, of) = parts.next().unwrap_or(('x', "x"));
                let once = &text[value.clone()];
                (
                    format!("{head}let {named} = {once}; {place}.{own} = ("),
                    format!(").{of}; "),
                )
            }
        };
        for (own, of) in parts {
            let part = match self.way {
                Way::Named => format!("{place}.{own} = {named}.{of}; "),
                Way::Repeated => format!("{place}.{own} = ({}).{of}; ", &text[value.clone()]),
            };
            after.push_str(&part);
        }
        after.push('}');
        changes.push(change(from, value.start, before, target));
        let end = value.end + text[value.end..].find(';').map_or(0, |at| at + 1);
        changes.push(change(value.end, end, after, self.statement()));
        changes
    }
}

/// Where a value that such an assignment was given has another number of components.
pub(crate) fn of_another_size(shader: &Module) -> Option<Span> {
    let points = shader.entry_points.iter().map(|p| &p.function);
    let functions = shader.functions.iter().map(|(_, f)| f);
    functions.chain(points).find_map(|function| {
        let counts = function.named_expressions.iter();
        let mut counts = counts
            .filter_map(|(handle, name)| {
                let count = name.strip_prefix(NAMED)?.parse::<u8>().ok()?;
                Some((*handle, count))
            })
            .peekable();
        counts.peek()?;
        let context =
            ResolveContext::with_locals(shader, &function.local_variables, &function.arguments);
        let mut types = Typifier::new();
        let all = &function.expressions;
        let fits = |types: &mut Typifier, handle, count| {
            types.grow(handle, all, &context).is_err()
                || matches!(types.get(handle, &shader.types), TypeInner::Vector { size, .. } if *size as u8 == count)
        };
        let mut wrong = counts.filter(|(handle, count)| !fits(&mut types, *handle, *count));
        wrong.next().map(|(handle, _)| all.get_span(handle))
    })
}

#[cfg(test)]
mod tests {
    use super::all;

    /// A text with all that may be such assignments written out.
    fn written(text: &str) -> String {
        let mut out = text.to_string();
        let changes = all(text).into_iter().flat_map(|s| s.changes(text));
        let mut changes: Vec<_> = changes.collect();
        changes.sort_by_key(|change| change.at);
        for change in changes.into_iter().rev() {
            out.replace_range(change.at..change.at + change.was, &change.is);
        }
        out
    }

    #[test]
    fn assignments_become_blocks() {
        for (text, expected) in [
            (
                "{ v.xy = f(v); }",
                "{ { let invar_value2 = f(v); v.x = invar_value2.x; v.y = invar_value2.y; } }",
            ),
            (
                "{ (*p).s.bgr -= w; }",
                "{ { let invar_value3 = (*p).s.zyx - (w); (*p).s.z = invar_value3.x; \
                 (*p).s.y = invar_value3.y; (*p).s.x = invar_value3.z; } }",
            ),
            (
                "; a[g(1)] .yz <<= b[2];",
                "; { let invar_place = &a[g(1)]; let invar_value2 = (*invar_place).yz << (b[2]); \
                 (*invar_place).y = invar_value2.x; (*invar_place).z = invar_value2.y; }",
            ),
            (
                "; v.xy = vec2(1, 2);",
                "; { let invar_value2 = vec2(1, 2); v.x = (vec2(1, 2)).x; v.y = (vec2(1, 2)).y; }",
            ),
            ("; v.yz.y = 5;", "; v.z = 5;"),
            (
                "; v.zyx.yx = a;",
                "; { let invar_value2 = a; v.y = invar_value2.x; v.z = invar_value2.y; }",
            ),
        ] {
            assert_eq!(written(text), expected);
        }
    }

    #[test]
    fn all_else_stays() {
        for text in [
            "{ v.x = 1; v = w.xy; }",
            "if (v.xy == w) { }",
            "{ let b = v.xy <= w; let c = v.xy >= w; let d = v.xy != w; }",
            "for (v.xy = a; v.x < 1; v.xy += b) { }",
            "{ v.xx = a; v.xg = a; s.xyzwx = a; }",
            "v.xy = a;",
            "{ // v.xy = a;\n }",
            "{ v.xy = a",
        ] {
            assert_eq!(written(text), text);
        }
    }
}
