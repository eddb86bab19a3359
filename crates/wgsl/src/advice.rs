//! Advice in the words of a source: what reports quote of the text form, as the source's language says it.

use invar_ir::Diagnostic;

/// Advice that quotes barriers and atomics of the text form, with the calls that say the same in WGSL.
///
/// ```
/// let help = "put `barrier threadgroup [device]` between them";
/// assert_eq!(invar_wgsl::in_wgsl(help), "put `storageBarrier()` between them");
/// ```
pub fn in_wgsl(help: &str) -> String {
    const NOTHING_ORDERS: &str = "atomics of WGSL order no other accesses: make every access to it atomic, put \
                                  `workgroupBarrier()` or `storageBarrier()` between the two in a workgroup, or \
                                  let another dispatch make the second";
    const WAIT: &str = "wait by an atomic: load it with `atomicLoad` in the loop, and store it with `atomicStore`; \
                        what it guards must be atomic, too, as atomics of WGSL order no other accesses";
    if asks_for_order(help) {
        return NOTHING_ORDERS.to_string();
    }
    if waits(help) {
        return WAIT.to_string();
    }
    in_source(help, quoted)
}

/// What a report says, with the functions and builtins of WGSL for the operations of the text form.
///
/// ```
/// let told = "`simd_shuffle_down` may be missed: `i` is `thread_index_in_simdgroup`";
/// let expected = "`subgroupShuffleDown` may be missed: `i` is `subgroup_invocation_id`";
/// assert_eq!(invar_wgsl::words_of_wgsl(told), expected);
/// ```
pub fn words_of_wgsl(text: &str) -> String {
    in_source(text, quoted)
}

/// A sentence about launches in the words of WGSL, of which a dispatch is.
///
/// ```
/// let told = invar_wgsl::launches_in_wgsl("for every launch of whole threadgroups");
/// assert_eq!(told, "for every dispatch of whole workgroups");
/// ```
pub fn launches_in_wgsl(text: &str) -> String {
    text.replace(
        "launch of whole threadgroups",
        "dispatch of whole workgroups",
    )
}

/// Whether advice is to give atomics an order, of which languages that have relaxed ones only know nothing.
pub fn asks_for_order(help: &str) -> bool {
    ["does not release: make it", "does not acquire: make it"]
        .iter()
        .any(|advice| help.contains(advice))
}

/// Whether advice is to wait by atomics that have one.
pub fn waits(help: &str) -> bool {
    help.starts_with("wait by an atomic")
}

/// A diagnostic about a source in another language, in which names have no sign before them, with what `words`
/// makes of its sentences, and `advice` of its help.
pub fn told(
    diagnostic: &mut Diagnostic,
    words: impl Fn(&str) -> String,
    advice: impl Fn(&str) -> String,
) {
    let named = |text: &str| text.replace("`%", "`");
    diagnostic.message = named(&words(&diagnostic.message));
    for label in &mut diagnostic.labels {
        label.text = named(&words(&label.text));
    }
    if let Some(help) = &mut diagnostic.help {
        *help = named(&advice(help));
    }
}

/// Advice about a source in another language: `word` says what is quoted of the text form in that language. What
/// only the text form can say about a kernel is the option of a check.
pub fn in_source(help: &str, word: impl Fn(&str) -> Option<String>) -> String {
    let options = [
        (
            "`allow(out_of_bounds_loads)` or `allow(out_of_bounds_stores)` on the kernel",
            "`--allow out-of-bounds`",
        ),
        (
            "`allow(out_of_bounds_stores)` or `allow(out_of_bounds_loads)` on the kernel",
            "`--allow out-of-bounds`",
        ),
        (
            "`allow(uninitialised_reads)` on the kernel",
            "`--allow uninitialised-read`",
        ),
    ];
    let mut help = help.to_string();
    for (attribute, option) in options {
        help = help.replace(attribute, option);
    }
    // Each second part stands in quotes.
    let parts = help.split('`').enumerate().map(|(i, part)| match i % 2 {
        1 => word(part).unwrap_or_else(|| part.to_string()),
        _ => part.to_string(),
    });
    parts.collect::<Vec<String>>().join("`")
}

fn quoted(statement: &str) -> Option<String> {
    let barrier = match statement {
        "barrier threadgroup [threadgroup]" => Some("workgroupBarrier()"),
        "barrier threadgroup [device]" => Some("storageBarrier()"),
        "barrier threadgroup [texture]" => Some("textureBarrier()"),
        "barrier simdgroup [threadgroup]" | "barrier simdgroup [device]" => {
            Some("subgroupBarrier()")
        }
        _other => None,
    };
    if let Some(barrier) = barrier {
        return Some(barrier.to_string());
    }
    let (word, rest) = statement.split_once(' ').unwrap_or((statement, ""));
    let function = match word {
        "atomic_add" => "atomicAdd",
        "atomic_sub" => "atomicSub",
        "atomic_min" => "atomicMin",
        "atomic_max" => "atomicMax",
        "atomic_and" => "atomicAnd",
        "atomic_or" => "atomicOr",
        "atomic_xor" => "atomicXor",
        "atomic_exchange" => "atomicExchange",
        "atomic_compare_exchange" => "atomicCompareExchangeWeak",
        "atomic_load" => "atomicLoad",
        "atomic_store" => "atomicStore",
        "simd_sum" => "subgroupAdd",
        "simd_prefix_inclusive_sum" => "subgroupInclusiveAdd",
        "simd_prefix_exclusive_sum" => "subgroupExclusiveAdd",
        "simd_product" => "subgroupMul",
        "simd_prefix_inclusive_product" => "subgroupInclusiveMul",
        "simd_prefix_exclusive_product" => "subgroupExclusiveMul",
        "simd_min" => "subgroupMin",
        "simd_max" => "subgroupMax",
        "simd_and" => "subgroupAnd",
        "simd_or" => "subgroupOr",
        "simd_xor" => "subgroupXor",
        "simd_all" => "subgroupAll",
        "simd_any" => "subgroupAny",
        "simd_ballot" => "subgroupBallot",
        "simd_broadcast" => "subgroupBroadcast",
        "simd_broadcast_first" => "subgroupBroadcastFirst",
        "simd_shuffle" => "subgroupShuffle",
        "simd_shuffle_down" => "subgroupShuffleDown",
        "simd_shuffle_up" => "subgroupShuffleUp",
        "simd_shuffle_xor" => "subgroupShuffleXor",
        "quad_broadcast" => "quadBroadcast",
        "thread_position_in_grid" => "global_invocation_id",
        "thread_position_in_threadgroup" => "local_invocation_id",
        "threadgroup_position_in_grid" => "workgroup_id",
        "threadgroups_per_grid" => "num_workgroups",
        "thread_index_in_threadgroup" => "local_invocation_index",
        "thread_index_in_simdgroup" => "subgroup_invocation_id",
        "threads_per_simdgroup" => "subgroup_size",
        "simdgroup_index_in_threadgroup" => "subgroup_id",
        "simdgroups_per_threadgroup" => "num_subgroups",
        _other => return None,
    };
    Some(if rest.is_empty() {
        function.to_string()
    } else {
        format!("{function}(&{rest})")
    })
}

#[cfg(test)]
mod tests {
    use super::in_wgsl;

    #[test]
    fn barriers_and_atomics_are_those_of_wgsl() {
        for (help, expected) in [
            (
                "put `barrier threadgroup [threadgroup]` between them",
                "put `workgroupBarrier()` between them",
            ),
            (
                "end the `if` on line 3 between them, put `barrier threadgroup [device]` there",
                "end the `if` on line 3 between them, put `storageBarrier()` there",
            ),
            (
                "put `barrier threadgroup [texture]` beside the barrier on line 4",
                "put `textureBarrier()` beside the barrier on line 4",
            ),
            (
                "use `atomic_add h[i], 1`, or `atomic_load`",
                "use `atomicAdd(&h[i], 1)`, or `atomicLoad`",
            ),
            ("guard `x` by a comparison", "guard `x` by a comparison"),
        ] {
            assert_eq!(in_wgsl(help), expected);
        }
    }

    #[test]
    fn orders_that_wgsl_has_not_are_not_advised() {
        for help in [
            "`atomic_store` on line 7 does not release: make it `release`",
            "`atomic_load` does not acquire: make it `acquire`; `atomic_store` does not release: make it `release`",
            "wait by an atomic: load it with `acquire` in the loop, and store it atomically with `release`",
        ] {
            let told = in_wgsl(help);
            assert!(told.contains("order no other accesses"), "{told}");
            assert!(
                !told.contains("acquire") && !told.contains("release"),
                "{told}"
            );
        }
    }
}
