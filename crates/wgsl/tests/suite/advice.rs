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

/// The labels of the errors of a shader, each with its line and column.
fn labels(text: &str) -> Vec<(u32, u32, String)> {
    let found = findings(read("labels.wgsl", text), &directives(text)).expect("it is read");
    let labels = found.iter().flat_map(|d| &d.labels);
    let labels = labels.map(|l| (l.span.start.line, l.span.start.column, l.text.clone()));
    labels.collect()
}

/// Of a chain of `else if`s, also of one that is made in parts, that is told which takes the jump.
#[test]
fn the_condition_that_takes_a_jump_is_told_in_chains_of_any_length() {
    for length in [3, 40] {
        let last = length - 1;
        let chain = |jump: &str| {
            let mut text = String::new();
            for k in 0..length {
                let body = if k == last { jump } else { "y[l] = 1u;" };
                let word = if k == 0 { "if" } else { "else if" };
                text += &format!("{word} l == {k}u {{ {body} }}\n");
            }
            text
        };
        let y = "@group(0) @binding(0) var<storage, read_write> y: array<u32>;";
        let main = "@compute @workgroup_size(8) fn main(@builtin(local_invocation_index) l: u32) {";
        let wait = "workgroupBarrier();";
        let iterations = "for (var r = 0u; r < 4u; r++) {";
        let (breaks, goes_on) = (chain("break;"), chain("continue;"));
        let (leaves, gives) = (chain("return;"), chain("return 7u;"));
        for (jump, text) in [
            (
                "continue",
                format!("{main} {iterations}\n{goes_on}{wait} }} }} {y}"),
            ),
            (
                "break",
                format!("{main} {iterations}\n{breaks}{wait} }} }} {y}"),
            ),
            ("return", format!("{main}\n{leaves}{wait} }} {y}")),
            (
                "return",
                format!(
                    "fn f(l: u32) -> u32 {{\n{gives}{wait} return 1u; }} {main} y[l] = f(l); }} {y}"
                ),
            ),
        ] {
            let Err(invar_ir::Diagnostics(all)) =
                read("chain.wgsl", &text).and_then(invar_ir::verify)
            else {
                panic!("the barrier is missed by some: {text}");
            };
            let told = format!("some threads `{jump}`, and `l == {last}u` may differ");
            assert!(
                all[0].message.contains(&told),
                "{length}: {}",
                all[0].message
            );
            let line = 1 + length;
            for (line, text) in [
                (line, format!("the threads that take this `{jump}` miss it")),
                (line, format!("this `if` depends on `l == {last}u`")),
            ] {
                let found = all[0].labels.iter().find(|l| l.text == text);
                let found = found.map(|l| l.span.start.line);
                assert_eq!(found, Some(line), "{text}: {all:?}");
            }
        }
    }
}

/// What naga begins behind the bracket or the semicolon before it begins with its first word.
#[test]
fn conditions_of_loops_begin_where_they_are_written() {
    let text = "@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(8) fn counts(@builtin(local_invocation_index) l: u32) {
  for (
    var k = 0u;
    // all of them
    k < y[l];
    k++
  ) { workgroupBarrier(); }
}
@compute @workgroup_size(8) fn repeats(@builtin(local_invocation_index) l: u32) {
  var k = 0u;
  while /* so many */
      k < y[l] {
    workgroupBarrier();
    k++;
  }
}";
    let all = labels(text);
    let told = "the iterations of this loop depend on `k < y[l]`";
    let places = all.iter().filter(|(.., text)| text == told);
    let places: Vec<(u32, u32)> = places.map(|(line, column, _)| (*line, *column)).collect();
    assert_eq!(places, [(6, 5), (13, 7)], "{all:?}");
}
