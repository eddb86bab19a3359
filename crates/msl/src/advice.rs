//! Advice in the words of Metal: what reports quote of the text form, as Metal's language says it.

use invar_wgsl::{asks_for_order, in_source, waits};

/// Advice that quotes barriers and atomics of the text form, with the calls that say the same in Metal.
///
/// ```
/// let help = "put `barrier threadgroup [device]` between them";
/// let call = "put `threadgroup_barrier(mem_flags::mem_device)` between them";
/// assert_eq!(invar_msl::in_metal(help), call);
/// ```
pub fn in_metal(help: &str) -> String {
    const NOTHING_ORDERS: &str = "relaxed atomics order no other accesses: make every access to it atomic, put \
                                  `threadgroup_barrier(mem_flags::mem_device)` or one of `mem_threadgroup` between \
                                  the two in a threadgroup, or let another dispatch make the second";
    const WAIT: &str = "wait by an atomic: load it with `atomic_load_explicit` in the loop, and store it with \
                        `atomic_store_explicit`; what it guards must be atomic, too, as relaxed atomics order no \
                        other accesses";
    if asks_for_order(help) {
        return NOTHING_ORDERS.to_string();
    }
    if waits(help) {
        return WAIT.to_string();
    }
    in_source(help, quoted)
}

fn quoted(statement: &str) -> Option<String> {
    let (word, rest) = statement.split_once(' ').unwrap_or((statement, ""));
    if word == "barrier" {
        let (scope, spaces) = rest.split_once(' ')?;
        let space = spaces.strip_prefix('[')?.strip_suffix(']')?;
        return Some(format!("{scope}_barrier(mem_flags::mem_{space})"));
    }
    let function = match word {
        "atomic_add" | "atomic_sub" | "atomic_min" | "atomic_max" | "atomic_and" | "atomic_or"
        | "atomic_xor" => format!("atomic_fetch_{}_explicit", word.strip_prefix("atomic_")?),
        "atomic_exchange" | "atomic_load" | "atomic_store" => format!("{word}_explicit"),
        "atomic_compare_exchange" => "atomic_compare_exchange_weak_explicit".to_string(),
        _other => return None,
    };
    Some(if rest.is_empty() {
        function
    } else {
        format!("{function}(&{rest}, memory_order_relaxed)")
    })
}

#[cfg(test)]
mod tests {
    use super::in_metal;

    #[test]
    fn barriers_and_atomics_are_those_of_metal() {
        for (help, expected) in [
            (
                "put `barrier threadgroup [threadgroup]` between them",
                "put `threadgroup_barrier(mem_flags::mem_threadgroup)` between them",
            ),
            (
                "put `barrier simdgroup [threadgroup]` between them",
                "put `simdgroup_barrier(mem_flags::mem_threadgroup)` between them",
            ),
            (
                "use `atomic_add h[i], 1`, or `atomic_load`",
                "use `atomic_fetch_add_explicit(&h[i], 1, memory_order_relaxed)`, or \
                 `atomic_load_explicit`",
            ),
            (
                "say `allow(out_of_bounds_loads)` or `allow(out_of_bounds_stores)` on the kernel",
                "say `--allow out-of-bounds`",
            ),
            (
                "say `allow(out_of_bounds_stores)` or `allow(out_of_bounds_loads)` on the kernel",
                "say `--allow out-of-bounds`",
            ),
            (
                "store the 0, or say `allow(uninitialised_reads)` on the kernel",
                "store the 0, or say `--allow uninitialised-read`",
            ),
            ("guard `x` by a comparison", "guard `x` by a comparison"),
        ] {
            assert_eq!(in_metal(help), expected);
        }
    }
}
