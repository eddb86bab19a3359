//! What is advised can be followed in WGSL.

use invar_ir::Rule;
use invar_wgsl::{directives, in_wgsl, read};

use crate::comments::findings;

/// What is advised about the races of a shader with this body of its kernel.
fn advice(body: &str) -> Vec<String> {
    let text = format!(
        "var<workgroup> t: array<u32, 16>;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(8) fn main(@builtin(local_invocation_index) l: u32) {{
{body}
x[l] = f32(y[l]) + f32(t[l]);
}}
// run: @main(y = zeros(8), x = zeros(8)) groups(1)
"
    );
    let found = findings(read("races.wgsl", &text), &directives(&text)).expect("it runs");
    let races = found.iter().filter(|d| d.rule == Rule::DataRace);
    let help = races.map(|d| in_wgsl(d.help.as_deref().unwrap_or_default()));
    help.collect()
}

#[test]
fn what_a_switch_becomes_is_called_a_switch() {
    let all =
        advice("switch (l) { case 0u: { t[2] = 1u; }\ncase 2u: { y[l] = t[2]; } default: {} }");
    let expected = "make two of the `switch` on line 5, one for the cases of each, and put `workgroupBarrier()` between them";
    assert!(all.iter().any(|help| help == expected), "{all:?}");
    let all = advice("if l == 0u { t[2] = 1u; } else { y[l] = t[2]; }");
    let expected = "make two of the `if` on line 5, one for each side";
    assert!(all.iter().any(|help| help.starts_with(expected)), "{all:?}");
}

#[test]
fn no_atomics_of_floats_are_advised() {
    let all = advice("x[l & 3u] += 1.0;");
    let expected = "no atomic makes this update: give each thread";
    assert!(all.iter().any(|help| help.starts_with(expected)), "{all:?}");
    assert!(!all.iter().any(|h| h.contains("atomicAdd")), "{all:?}");
    let all = advice("y[l & 3u] += 1u;");
    let expected = "make the update one `atomicAdd(&y[l & 3u], 1u)`";
    assert!(all.iter().any(|help| help.starts_with(expected)), "{all:?}");
}
