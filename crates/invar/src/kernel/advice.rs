//! What a report says, in the words of Rust kernels: the parts below say it in those of the text form.

use invar_ir::{Diagnostic, Module, Span, Value};

/// The same about a kernel in this module, in Rust.
pub fn in_rust(module: &Module, all: &[Diagnostic]) -> Vec<Diagnostic> {
    let mut all = all.to_vec();
    let said = |text: &mut String| *text = in_words(text, &|value| words_of(module, value));
    for one in &mut all {
        said(&mut one.message);
        one.labels
            .iter_mut()
            .for_each(|label| said(&mut label.text));
        one.help.iter_mut().for_each(said);
    }
    all
}

/// The author's words for a value without a name, if they stand in one line.
fn words_of(module: &Module, value: Value) -> Option<String> {
    let mut defined: Option<Span> = None;
    module.kernels.first()?.for_each_inst(&mut |inst| {
        if inst.results.contains(&value) {
            defined = Some(inst.span);
        }
    });
    let span = defined?;
    let source = module.sources.get(span.source?.0 as usize)?;
    if span.start.line != span.end.line {
        return None;
    }
    let line = source.text.lines().nth(span.start.line as usize - 1)?;
    let count = span.end.column.checked_sub(span.start.column)? as usize;
    let words: String = (line.chars().skip(span.start.column as usize - 1))
        .take(count)
        .collect();
    (!words.trim().is_empty() && !words.contains('`')).then_some(words)
}

/// A text with what stands between backticks in Rust; `words` are those for values without names.
fn in_words(text: &str, words: &dyn Fn(Value) -> Option<String>) -> String {
    let mut out = String::new();
    for (i, part) in text.split('`').enumerate() {
        if i % 2 == 0 {
            out.push_str(part);
            continue;
        }
        let number = part.strip_prefix('%').map(str::parse);
        let part = match number {
            Some(Ok(number)) => words(Value(number)),
            _ => Some(word(part).unwrap_or_else(|| part.to_string())),
        };
        match part {
            Some(part) => out.push_str(&format!("`{part}`")),
            None => out.push_str("this value"),
        }
    }
    out
}

/// What a word or an instruction of the text form is in Rust, where it is something else.
fn word(text: &str) -> Option<String> {
    if let Some(name) = text.strip_prefix(['%', '@'])
        && !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || "_.".contains(c))
    {
        return Some(name.to_string());
    }
    Some(match text {
        "acquire" => "Order::Acquire".to_string(),
        "release" => "Order::Release".to_string(),
        "acq_rel" => "Order::AcqRel".to_string(),
        "equal-stores" | "unordered-atomics" | "discarded-load" => {
            format!("#[kernel(allow({}))]", text.replace('-', "_"))
        }
        _ if text.starts_with("allow(") => format!("#[kernel({text})]"),
        _ if text.starts_with("barrier threadgroup") => "threadgroup_barrier()".to_string(),
        _ if text.starts_with("barrier simdgroup") => "simdgroup_barrier()".to_string(),
        _ if text.starts_with("atomic_") => {
            let (name, operands) = text.split_once(' ')?;
            let (place, operand) = operands.split_once(", ")?;
            format!("{name}(&mut {place}, {operand})")
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use invar_ir::Value;

    use super::in_words;

    #[test]
    fn what_stands_in_backticks_is_rust() {
        let cases = [
            (
                "put `barrier threadgroup [device]` between them",
                "put `threadgroup_barrier()` between them",
            ),
            (
                "make the update one `atomic_add y[0], 1.0`, or",
                "make the update one `atomic_add(&mut y[0], 1.0)`, or",
            ),
            (
                "if it is meant, allow `equal-stores`",
                "if it is meant, allow `#[kernel(allow(equal_stores))]`",
            ),
            (
                "say `allow(out_of_bounds_loads)` on the kernel",
                "say `#[kernel(allow(out_of_bounds_loads))]` on the kernel",
            ),
            (
                "load it with `acquire` in the loop",
                "load it with `Order::Acquire` in the loop",
            ),
            ("use `atomic_add`", "use `atomic_add`"),
            ("`%x` of `@k` differs", "`x` of `k` differs"),
            ("it depends on `%4`", "it depends on `t % 2 == 0`"),
            ("the value (`%5`) differs", "the value (this value) differs"),
            ("guard `x[i]`", "guard `x[i]`"),
        ];
        for (text, rust) in cases {
            let known = |value: Value| (value.0 == 4).then(|| "t % 2 == 0".to_string());
            assert_eq!(in_words(text, &known), rust);
        }
    }
}
