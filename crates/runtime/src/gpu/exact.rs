//! The code of a kernel as SPIR-V in which every operation on floats stays as it is written.
//!
//! WGSL lets a compiler reassociate and cancel: `(a + b) - a` may be `b`. Drivers for Vulkan do, unless an
//! operation is decorated with `NoContraction`, which naga has no words for; so naga makes SPIR-V of the text,
//! and the decorations are put in here. What is to be fused is fused by then, as `fma`.
//!
//! Numbers: "SPIR-V Specification", sections "Physical Layout", "Decoration" and "Instructions".

use std::ops::RangeInclusive;

use naga::back::spv;
use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
use naga::valid::{Capabilities, ShaderStages, SubgroupOperationSet, ValidationFlags, Validator};

use super::reason;

const HEADER_WORDS: usize = 5;
const OP_DECORATE: u32 = 71;
const NO_CONTRACTION: u32 = 42;
/// Declarations of types, before which decorations stand.
const TYPES: RangeInclusive<u32> = 19..=39;

/// Whether an instruction computes with floats; its third word is its result.
fn is_float_arithmetic(operation: u32) -> bool {
    // Negation; sum, difference; product, quotient; remainder, modulo; products of vectors and matrices.
    matches!(operation, 127 | 129 | 131 | 133 | 136 | 140..=148)
}

/// Makes SPIR-V of a kernel's WGSL. What is wrong with the text otherwise is said.
pub(super) fn spirv(text: &str, entry_point: &str, version: (u8, u8)) -> Result<Vec<u32>, String> {
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
    Ok(keep_floats(&words))
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
        let words = spirv(text, "k", (1, 3)).expect("it is valid");
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
    fn what_is_wrong_with_a_text_is_said() {
        let error = spirv("fn k() { let x = ; }", "k", (1, 3)).expect_err("no expression");
        assert!(error.contains("expected expression"), "{error}");
    }
}
