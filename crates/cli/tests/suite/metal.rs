//! Sources in Metal's language as inputs of the command.

use super::*;

const SHIFT: &str = "\
#include <metal_stdlib>
constant int STEP [[function_constant(0)]];
kernel void shift(device float * y [[buffer(0)]], threadgroup float * room [[threadgroup(0)]],
                  uint i [[thread_position_in_threadgroup]]) {
    room[i] = y[i];
    y[i] = room[(i + STEP) % 64];
}
";

#[test]
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn a_form_is_what_a_check_needs_and_advice_is_metal() {
    if !["clang-19", "clang-20", "clang-21", "clang-22", "clang"]
        .iter()
        .any(|name| Command::new(name).arg("--version").output().is_ok())
    {
        println!("skipped: there is no clang");
        return;
    }
    let folder = Folder::new();
    let file = folder.file("shift.metal", SHIFT);
    let (form, _) = expect(0, &["inputs", text(&file), "--const", "STEP=1"]);
    let form = folder.file("shift.json", &form);
    let (out, err) = expect(1, &["check", text(&file), "--inputs", text(&form)]);
    assert!(out.starts_with("failed @shift: "), "{out}");
    let advice = "put `threadgroup_barrier(mem_flags::mem_threadgroup)` between them";
    assert!(err.contains(advice), "{err}");
}
