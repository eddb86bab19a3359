//! What a report advises, in the words of Rust kernels: the parts below say it in those of the text form.

use invar_ir::Diagnostic;

/// The same with the advice in Rust.
pub fn in_rust(all: &[Diagnostic]) -> Vec<Diagnostic> {
    let mut all = all.to_vec();
    for help in all.iter_mut().filter_map(|d| d.help.as_mut()) {
        *help = advice(help);
    }
    all
}

/// Advice with what stands between backticks in Rust.
fn advice(help: &str) -> String {
    let mut out = String::new();
    for (i, part) in help.split('`').enumerate() {
        let part = match i % 2 {
            0 => part.to_string(),
            _ => match word(part) {
                Some(word) => format!("`{word}`"),
                None => format!("`{part}`"),
            },
        };
        out.push_str(&part);
    }
    out
}

/// What a word or an instruction of the text form is in Rust, where it is something else.
fn word(text: &str) -> Option<String> {
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
    use super::advice;

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
            ("guard `x[i]`", "guard `x[i]`"),
        ];
        for (text, rust) in cases {
            assert_eq!(advice(text), rust);
        }
    }
}
