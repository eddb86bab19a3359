//! What kernels print, shown with the thread's position in the grid.

use super::*;

const HELLO: &str = "\
kernel @hello(%x: device read f32, %n: u32) {
    %i = thread_position_in_grid x
    %few = lt %i, %n
    if %few {
        %v = load %x[%i]
        print \"x[{}] is {}\" %i, %v
    }
}
; run: @hello(x = [0.5, 2, 8], n = 2) grid(3) threadgroup(4)
";

#[test]
fn lines_are_shown_with_the_threads_positions() {
    let folder = Folder::new();
    let file = folder.file("hello.inv", HELLO);
    for device in ["reference", "checked", "cpu"] {
        let (out, err) = expect(0, &["run", text(&file), "--device", device]);
        let mut lines: Vec<&str> = out.lines().collect();
        lines[..2].sort_unstable();
        assert_eq!(
            lines[..2],
            ["[0, 0, 0] x[0] is 0.5", "[1, 0, 0] x[1] is 2.0"],
            "{device}: {out}\n{err}"
        );
        assert!(lines[2].starts_with("@hello: done in "), "{device}: {out}");
    }
    let (out, _) = expect(0, &["check", text(&file)]);
    assert!(out.starts_with("[0, 0, 0] x[0] is 0.5\n"), "{out}");
    assert!(out.contains("clean @hello: no findings"), "{out}");
}

#[test]
fn machines_get_lines_with_the_results() {
    let folder = Folder::new();
    let file = folder.file("hello.inv", HELLO);
    for command in ["run", "check"] {
        let (out, _) = expect(0, &[command, text(&file), "--json"]);
        let document: serde_json::Value = serde_json::from_str(&out).expect("JSON");
        let result = &document["results"][0];
        let line = &result["printed"][1];
        assert_eq!(line["text"], "x[1] is 2.0", "{command}: {out}");
        assert_eq!(line["thread"], serde_json::json!([1, 0, 0]));
        assert_eq!(line["line"], 6);
        assert_eq!(result["lines_left_out"], 0);
    }
}
