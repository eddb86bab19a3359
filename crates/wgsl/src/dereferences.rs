//! Where a shader reads by a pointer that has a name, `*p`: naga gives such a load the place at which the pointer is
//! declared. It gets the place of a `*p` in what uses the load, or, where none stands there, of what uses it.

use std::collections::BTreeMap;
use std::ops::Range;

use naga::{Arena, AtomicFunction, Block, Expression, Function, Handle, Module, Span, Statement};

use crate::bitcast::without_comments;
use crate::tree::{blocks, operands};

/// What naga calls the value of `_ = e;`.
const PHONY: &str = "phony";

/// A `*p` that may be a load.
struct Dereference<'a> {
    at: Range<usize>,
    name: &'a str,
    /// Its statement up to it.
    before: &'a str,
    is_taken: bool,
}

/// Gives the loads by pointers with names their places in the text that naga has read.
pub(crate) fn place(shader: &mut Module, text: &str) {
    let functions = shader.functions.iter_mut().map(|(_, f)| f);
    let functions = functions.map(|f| (f.name.clone().unwrap_or_default(), f));
    let points = shader.entry_points.iter_mut();
    let points = points.map(|point| (point.name.clone(), &mut point.function));
    let mut code = None;
    for (name, function) in functions.chain(points) {
        let loads = misplaced(function);
        if loads.is_empty() {
            continue;
        }
        let code = code.get_or_insert_with(|| without_comments(text));
        let places = places(function, &loads, all(code, body(code, &name)));
        let mut moved = Arena::new();
        for (handle, expression, span) in function.expressions.drain() {
            moved.append(expression, places.get(&handle).copied().unwrap_or(span));
        }
        function.expressions = moved;
    }
}

/// The loads by pointers with names, and those.
fn misplaced(function: &Function) -> Vec<(Handle<Expression>, Handle<Expression>)> {
    let all = &function.expressions;
    let by_name = |(handle, expression): (Handle<Expression>, &Expression)| {
        let Expression::Load { pointer } = *expression else {
            return None;
        };
        let has_name = match &all[pointer] {
            Expression::FunctionArgument(_) => true,
            Expression::LocalVariable(_) => false,
            _place => function.named_expressions.contains_key(&pointer),
        };
        let is_misplaced = has_name && all.get_span(handle) == all.get_span(pointer);
        is_misplaced.then_some((handle, pointer))
    };
    all.iter().filter_map(by_name).collect()
}

/// The body of a function of this name.
fn body(code: &str, name: &str) -> Range<usize> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let heads = code.match_indices("fn").filter(|(at, _)| {
        let rest = &code[at + 2..];
        let behind = rest.trim_start().strip_prefix(name);
        rest.starts_with(char::is_whitespace)
            && behind.is_some_and(|b| !b.starts_with(is_word))
            && !code[..*at].ends_with(is_word)
    });
    let starts = heads.filter_map(|(at, _)| Some(at + code[at..].find('{')?));
    let Some(start) = starts.min() else {
        return 0..0;
    };
    let mut depth = 0;
    for (at, c) in code[start..].char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _inside => {}
        }
        if depth == 0 {
            return start..start + at;
        }
    }
    start..code.len()
}

/// The dereferences of a body but for those that are assigned to and those of which a part is taken.
fn all(code: &str, body: Range<usize>) -> Vec<Dereference<'_>> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut all = Vec::new();
    for (at, _) in code[body.clone()].match_indices('*') {
        let at = body.start + at;
        let rest = code[at + 1..].trim_start();
        let name = &rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())];
        if name.is_empty() {
            continue;
        }
        let end = code.len() - rest.len() + name.len();
        let (mut before, mut behind) = (code[..at].trim_end(), rest[name.len()..].trim_start());
        while let (Some(outer), Some(next)) = (before.strip_suffix('('), behind.strip_prefix(')')) {
            let outer = outer.trim_end();
            if outer.ends_with(|c| is_word(c) || c == '>') && !outer.ends_with("return") {
                break;
            }
            (before, behind) = (outer, next.trim_start());
        }
        let is_assigned = behind.starts_with('=') && !behind.starts_with("==");
        if is_assigned || behind.starts_with(['.', '[']) {
            continue;
        }
        let start = code[body.start..at].rfind([';', '{', '}']);
        all.push(Dereference {
            at: at..end,
            name,
            before: code[body.start + start.map_or(0, |s| s + 1)..at].trim_start(),
            is_taken: false,
        });
    }
    all
}

impl Dereference<'_> {
    /// Whether it is in the value that gets a name.
    fn is_value_of(&self, name: &str) -> bool {
        let rest = match name {
            PHONY => self.before.strip_prefix('_'),
            _let => self.before.strip_prefix("let").and_then(|rest| {
                let named = rest.trim_start().strip_prefix(name);
                named.filter(|_| rest.starts_with(char::is_whitespace))
            }),
        };
        rest.is_some_and(|rest| rest.trim_start().starts_with([':', '=']))
    }
}

/// The places of these loads.
fn places(
    function: &Function,
    loads: &[(Handle<Expression>, Handle<Expression>)],
    mut written: Vec<Dereference<'_>>,
) -> BTreeMap<Handle<Expression>, Span> {
    let mut used = BTreeMap::new();
    in_statements(&function.body, &mut used);
    // What is in statements is in no expression but through names, and the first use counts.
    let mut parts = Vec::new();
    for (handle, expression) in function.expressions.iter().rev() {
        parts.clear();
        operands(expression, &mut parts);
        for part in &parts {
            // What stands for its operand has the same place, and what uses it a place of its own.
            let span = function.expressions.get_span(handle);
            let same = span == function.expressions.get_span(*part);
            let around = used.get(&handle).copied().filter(|_| same);
            used.insert(*part, around.unwrap_or(span));
        }
    }
    let mut places = BTreeMap::new();
    for (load, pointer) in loads {
        let mut names = vec![function.named_expressions.get(pointer)];
        if let Expression::FunctionArgument(number) = function.expressions[*pointer] {
            let argument = function.arguments.get(number as usize);
            names.push(argument.and_then(|a| a.name.as_ref()));
        }
        let is_it =
            |d: &Dereference<'_>| !d.is_taken && names.iter().flatten().any(|n| **n == *d.name);
        let value = function.named_expressions.get(load);
        let user = used.get(load);
        let range = user.and_then(|span| span.to_range());
        let found = written.iter_mut().find(|d| {
            let named = value.is_some_and(|name| d.is_value_of(name));
            let inside = |r: &Range<usize>| r.start <= d.at.start && d.at.end <= r.end;
            is_it(d) && (named || (value.is_none() && range.as_ref().is_some_and(inside)))
        });
        let place = match found {
            Some(found) => {
                found.is_taken = true;
                Some(Span::new(found.at.start as u32, found.at.end as u32))
            }
            None => user.copied().filter(Span::is_defined),
        };
        if let Some(place) = place {
            places.insert(*load, place);
        }
    }
    places
}

/// What the statements of a block use, and where.
fn in_statements(block: &Block, used: &mut BTreeMap<Handle<Expression>, Span>) {
    for (statement, span) in block.span_iter() {
        let mut all = Vec::new();
        match statement {
            Statement::If { condition, .. } => all.push(*condition),
            Statement::Switch { selector, .. } => all.push(*selector),
            Statement::Loop { break_if, .. } => all.extend(break_if),
            Statement::Return { value } => all.extend(value),
            Statement::Store { value, .. } => all.push(*value),
            Statement::ImageStore {
                coordinate,
                array_index,
                value,
                ..
            } => {
                all.extend([*coordinate, *value]);
                all.extend(array_index);
            }
            Statement::ImageAtomic {
                coordinate,
                array_index,
                value,
                ..
            } => {
                all.extend([*coordinate, *value]);
                all.extend(array_index);
            }
            Statement::Atomic { fun, value, .. } => {
                all.push(*value);
                if let AtomicFunction::Exchange { compare } = fun {
                    all.extend(compare);
                }
            }
            Statement::Call { arguments, .. } => all.extend(arguments),
            Statement::SubgroupBallot { predicate, .. } => all.extend(predicate),
            Statement::SubgroupCollectiveOperation { argument, .. }
            | Statement::SubgroupGather { argument, .. } => all.push(*argument),
            _another => {}
        }
        for handle in all {
            used.entry(handle).or_insert(*span);
        }
        for block in blocks(statement) {
            in_statements(block, used);
        }
    }
}
