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

const LIST: &str = "\
struct List { by: u32, items: array<u32> }
@group(0) @binding(3) var<storage, read> x: array<u32>;
@group(1) @binding(2) var<storage, read_write> list: List;
@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3u) { list.items[id.x] = list.by * x[id.x]; }
";

#[test]
fn bindings_outlive_printing() {
    let folder = Folder::new();
    let file = folder.file("list.wgsl", LIST);
    let (printed, _) = expect(0, &["print", text(&file)]);
    let again = folder.file("list.inv", &printed);
    // A buffer of two parts is one file.
    let bytes = [3u32, 0, 0, 0, 0].map(u32::to_le_bytes).concat();
    std::fs::write(folder.path("list.bin"), bytes).expect("written");
    let data = format!("1.2=@{}", text(&folder.path("list.bin")));
    for file in [&file, &again] {
        let run = ["run", text(file), "--groups", "1", "--arg", &data];
        let (out, _) = expect(0, &[&run[..], &["--arg", "0.3=iota(4)"]].concat());
        assert!(out.contains("list.items = [0, 3, 6, 9]"), "{out}");
        let (_, err) = expect(2, &[&run[..], &["--arg", "0.4=iota(4)"]].concat());
        assert!(
            err.contains("no variable of that group and binding; it uses 0.3, 1.2"),
            "{err}"
        );
        let (out, _) = expect(0, &["emit", "--target", "wgsl", text(file)]);
        for kept in ["@group(0) @binding(3) ", "@group(1) @binding(2) "] {
            assert!(out.contains(kept), "{out}");
        }
        // What has no place of its own gets the first that is free.
        assert!(
            out.contains("@group(0) @binding(1) var<uniform> constants"),
            "{out}"
        );
    }
}
