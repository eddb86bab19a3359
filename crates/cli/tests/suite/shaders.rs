//! Shaders in WGSL as inputs of the command.

use super::*;

const TWICE: &str = "\
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
fn add(to: ptr<function, u32>, by: ptr<function, u32>) { *to += *by; }
@compute @workgroup_size(1)
fn main() {
  var x = 1u;
  add(&x, &x);
  y[0] = x;
}
// run: @main(y = zeros(1)) groups(1) -> y == [2]
";

#[test]
fn what_a_browser_refuses_is_a_warning_of_a_check() {
    let folder = Folder::new();
    let file = folder.file("twice.wgsl", TWICE);
    let (out, err) = expect(0, &["check", text(&file)]);
    assert!(out.starts_with("clean @main"), "{out}");
    assert!(err.contains("warning[wgsl-alias]"), "{err}");
    assert!(err.contains("twice.wgsl:6:"), "{err}");
    expect(1, &["check", text(&file), "--deny", "warnings"]);
    let allowed = ["check", text(&file), "--allow", "wgsl-alias"];
    assert_eq!(expect(0, &allowed).1, "");
    let (out, _) = expect(0, &["check", text(&file), "--json"]);
    assert!(out.contains("\"wgsl-alias\""), "{out}");
    let (_, err) = expect(0, &["run", text(&file), "--device", "reference"]);
    assert_eq!(err, "");
}
