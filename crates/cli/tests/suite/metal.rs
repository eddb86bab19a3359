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

/// Whether Metal sources can be read here; if not, that is said.
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
pub fn has_clang() -> bool {
    let is_there = ["clang-19", "clang-20", "clang-21", "clang-22", "clang"]
        .iter()
        .any(|name| Command::new(name).arg("--version").output().is_ok());
    if !is_there {
        println!("skipped: there is no clang");
    }
    is_there
}

#[test]
fn a_form_is_what_a_check_needs_and_advice_is_metal() {
    if !has_clang() {
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

const SHADES: &str = "\
#include <metal_stdlib>
using namespace metal;
static float4 shade(texture2d<float> t, sampler s, float2 at) {
    return t.sample(s, at, bias(1));
}
kernel void shaded(texture2d<float> t [[texture(0)]], sampler s [[sampler(0)]], device float4 *y [[buffer(0)]],
                   uint i [[thread_position_in_grid]]) {
    y[i] = shade(t, s, float2(i / 4.0, 0));
}
kernel void plain(device float4 *y [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    y[i] = float4(1);
}
";

/// One kernel that is refused keeps nobody from the others of the file, and is told, as of a shader.
#[test]
fn what_is_refused_is_left_out_of_a_file() {
    if !has_clang() {
        return;
    }
    let folder = Folder::new();
    let lines = "// run: @plain(y = zeros(16)) grid(4) threadgroup(4)
// run: @shaded(t = texture(rgba8unorm, 4, 4), s = sampler(linear), y = zeros(16)) grid(4) threadgroup(4)
";
    let file = folder.file("two.metal", SHADES);
    let with_lines = folder.file("lines.metal", &format!("{SHADES}{lines}"));
    let (out, err) = expect(1, &["print", text(&file)]);
    assert!(out.contains("kernel @plain("), "{out}");
    assert!(!out.contains("kernel @shaded("), "{out}");
    assert!(
        err.contains("`shaded` is left out:\nerror[unsupported-feature]"),
        "{err}"
    );
    assert!(err.contains("two.metal:4:"), "{err}");
    assert!(err.contains("note: in `shade`, called at "), "{err}");
    assert!(err.contains("two.metal:8\n"), "{err}");
    let (_, err) = expect(0, &["print", text(&file), "--kernel", "plain"]);
    assert_eq!(err, "");
    let (_, err) = expect(1, &["print", text(&file), "--kernel", "shaded"]);
    assert!(err.contains("two.metal:8\n"), "{err}");
    let (out, _) = expect(1, &["prove", text(&file)]);
    assert!(out.contains("@shaded: refused"), "{out}");
    assert!(out.contains("@plain: "), "{out}");
    for command in ["check", "run"] {
        let (out, err) = expect(1, &[command, text(&with_lines)]);
        assert!(out.contains("refused @shaded\n"), "{out}");
        assert!(out.contains("@plain"), "{out}");
        assert!(err.contains("lines.metal:4:"), "{err}");
        let (_, err) = expect(0, &[command, text(&with_lines), "--kernel", "plain"]);
        assert_eq!(err, "");
    }
    // Where one has to be chosen, it is not the one that is left.
    let (_, err) = expect(2, &["emit", text(&file), "--target", "wgsl"]);
    assert!(
        err.contains("two.metal has several kernels: say which with --kernel: `plain`, `shaded`"),
        "{err}"
    );
}
