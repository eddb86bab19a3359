//! The code of a kernel as SPIR-V in which every operation on floats stays as it is written.
//!
//! WGSL lets a compiler reassociate and cancel: `(a + b) - a` may be `b`. Drivers for Vulkan do, unless an
//! operation is decorated with `NoContraction`, which naga has no words for; so naga makes SPIR-V of the text,
//! and the decorations are put in here. What is to be fused is fused by then, as `fma`.
//!
//! Where the text clears large arrays of threads itself, their variables begin as nothing here: of an initial
//! value Mesa's compiler for processors stores each element, and takes minutes for thousands.
//!
//! Numbers: "SPIR-V Specification", sections "Physical Layout", "Decoration" and "Instructions".

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;

use invar_codegen::wgsl::CLEARED_SLOTS;
use naga::back::spv;
use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
use naga::valid::{Capabilities, ShaderStages, SubgroupOperationSet, ValidationFlags, Validator};

use super::handle::reason;

const HEADER_WORDS: usize = 5;
const OP_DECORATE: u32 = 71;
const NO_CONTRACTION: u32 = 42;
const OP_TYPE_ARRAY: u32 = 28;
const OP_TYPE_POINTER: u32 = 32;
const OP_CONSTANT: u32 = 43;
const OP_VARIABLE: u32 = 59;
/// The storage class of variables of an invocation.
const PRIVATE: u32 = 6;
/// Declarations of types, before which decorations stand.
const TYPES: RangeInclusive<u32> = 19..=39;

/// Whether an instruction computes with floats; its third word is its result.
fn is_float_arithmetic(operation: u32) -> bool {
    // Negation; sum, difference; product, quotient; remainder, modulo; products of vectors and matrices.
    matches!(operation, 127 | 129 | 131 | 133 | 136 | 140..=148)
}

/// Makes SPIR-V of a kernel's WGSL. What is wrong with the text otherwise is said.
pub(super) fn spirv(
    text: &str,
    entry_point: &str,
    version: (u8, u8),
    clears_arrays: bool,
) -> Result<Vec<u32>, String> {
    let module = naga::front::wgsl::parse_str(text).map_err(|e| reason(&e))?;
    let info = Validator::new(ValidationFlags::all(), Capabilities::all())
        .subgroup_stages(ShaderStages::all())
        .subgroup_operations(SubgroupOperationSet::all())
        .validate(&module)
        .map_err(|e| reason(&e))?;
    let unchecked = BoundsCheckPolicy::Unchecked;
    // The text has its own guards, divides by no zero, and clears the memory whose zeros can be seen.
    let options = spv::Options {
        lang_version: version,
        flags: spv::WriterFlags::empty(),
        bounds_check_policies: BoundsCheckPolicies {
            index: unchecked,
            buffer: unchecked,
            image_load: unchecked,
            binding_array: unchecked,
        },
        zero_initialize_workgroup_memory: spv::ZeroInitializeWorkgroupMemoryMode::None,
        force_loop_bounding: false,
        emit_int_div_checks: false,
        ..spv::Options::default()
    };
    let pipeline = spv::PipelineOptions {
        shader_stage: naga::ShaderStage::Compute,
        entry_point: entry_point.to_string(),
    };
    let words =
        spv::write_vec(&module, &info, &options, Some(&pipeline)).map_err(|e| reason(&e))?;
    let words = keep_floats(&words);
    Ok(if clears_arrays {
        without_zeros(&words)
    } else {
        words
    })
}

/// Decorates all that computes with floats.
fn keep_floats(words: &[u32]) -> Vec<u32> {
    let mut decorations = Vec::new();
    let mut first_type = None;
    let mut at = HEADER_WORDS;
    while let Some(first) = words.get(at) {
        let (count, operation) = ((first >> 16) as usize, first & 0xffff);
        if TYPES.contains(&operation) {
            first_type.get_or_insert(at);
        }
        if is_float_arithmetic(operation)
            && let Some(result) = words.get(at + 2)
        {
            decorations.extend([3 << 16 | OP_DECORATE, *result, NO_CONTRACTION]);
        }
        at += count.max(1);
    }
    let (before, after) = words.split_at(first_type.unwrap_or(words.len()));
    [before, &decorations, after].concat()
}

/// Leaves out the initial values of private arrays that the text clears.
fn without_zeros(words: &[u32]) -> Vec<u32> {
    let mut constants = HashMap::new();
    let mut arrays = HashSet::new();
    let mut pointers = HashSet::new();
    let mut kept = words[..HEADER_WORDS].to_vec();
    let mut rest = &words[HEADER_WORDS..];
    while let Some(first) = rest.first() {
        let (own, others) = rest.split_at(((first >> 16) as usize).clamp(1, rest.len()));
        rest = others;
        match (first & 0xffff, &own[1..]) {
            (OP_CONSTANT, [_, result, value]) => {
                constants.insert(*result, u64::from(*value));
            }
            (OP_TYPE_ARRAY, [result, _, length])
                if constants.get(length).is_some_and(|n| *n > CLEARED_SLOTS) =>
            {
                arrays.insert(*result);
            }
            (OP_TYPE_POINTER, [result, PRIVATE, ty]) if arrays.contains(ty) => {
                pointers.insert(*result);
            }
            (OP_VARIABLE, [ty, result, class, _zero]) if pointers.contains(ty) => {
                kept.extend([4 << 16 | OP_VARIABLE, *ty, *result, *class]);
                continue;
            }
            _other => {}
        }
        kept.extend(own);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each instruction: its operation and its other words.
    fn instructions(words: &[u32]) -> Vec<(u32, &[u32])> {
        let mut found = Vec::new();
        let mut rest = &words[HEADER_WORDS..];
        while let Some(first) = rest.first() {
            let (own, others) = rest.split_at((first >> 16) as usize);
            found.push((first & 0xffff, &own[1..]));
            rest = others;
        }
        found
    }

    #[test]
    fn what_computes_with_floats_is_decorated_and_nothing_else() {
        let text = "
            @group(0) @binding(0) var<storage, read_write> x: array<f32>;
            @group(0) @binding(1) var<storage, read_write> n: array<u32>;
            @compute @workgroup_size(64)
            fn k(@builtin(global_invocation_id) at: vec3<u32>) {
                let a = x[0] + x[1];
                let b = vec2(a, -a) * vec2(x[2], x[3]) / 3.0;
                x[4] = a - x[0] + b.x * b.y;
                n[0] = n[1] * n[2] + at.x;
            }";
        let words = spirv(text, "k", (1, 3), false).expect("it is valid");
        let all = instructions(&words);
        let decorated: Vec<u32> = all
            .iter()
            .filter(|(operation, words)| *operation == OP_DECORATE && words[1] == NO_CONTRACTION)
            .map(|(_, words)| words[0])
            .collect();
        let names = [
            (127, "negation"),
            (129, "sum"),
            (131, "difference"),
            (133, "product"),
            (136, "quotient"),
        ];
        let computed: Vec<(u32, u32)> = all
            .iter()
            .filter(|(operation, _)| names.iter().any(|(own, _)| own == operation))
            .map(|(operation, words)| (*operation, words[1]))
            .collect();
        for (operation, name) in names {
            assert!(
                computed.iter().any(|(own, _)| *own == operation),
                "no {name}"
            );
        }
        let results: Vec<u32> = computed.iter().map(|(_, result)| *result).collect();
        assert_eq!(decorated, results);
        let position = |wanted: u32| all.iter().position(|(own, _)| *own == wanted);
        let last = all.iter().rposition(|(own, _)| *own == OP_DECORATE);
        let first_type = all.iter().position(|(own, _)| TYPES.contains(own));
        assert!(position(OP_DECORATE) < first_type && last < first_type);
    }

    #[test]
    fn only_large_arrays_that_are_cleared_begin_as_nothing() {
        let text = "
            @group(0) @binding(0) var<storage, read_write> x: array<i32>;
            var<private> large: array<i32, 2000>;
            var<private> small: array<i32, 4>;
            var<private> one: u32;
            @compute @workgroup_size(1)
            fn k(@builtin(global_invocation_id) at: vec3<u32>) {
                one = at.x;
                large[one] = small[one & 3u];
                x[one] = large[one + 1u];
            }";
        let begin_as_zero = |clears_arrays| {
            let words = spirv(text, "k", (1, 3), clears_arrays).expect("it is valid");
            let all = instructions(&words);
            let variables = all.iter().filter(|(operation, words)| {
                *operation == OP_VARIABLE && words[2] == PRIVATE && words.len() == 4
            });
            variables.count()
        };
        assert_eq!([false, true].map(begin_as_zero), [3, 2]);
    }

    #[test]
    fn what_is_wrong_with_a_text_is_said() {
        let error = spirv("fn k() { let x = ; }", "k", (1, 3), false).expect_err("no expression");
        assert!(error.contains("expected expression"), "{error}");
    }
}
