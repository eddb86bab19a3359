//! `; program:` lines: several kernels, one after the other, on the same buffers.

use super::*;

const PROGRAM: &str = "\
kernel @double(%x: device read_write f32) {
    %i = thread_position_in_grid x
    %v = load %x[%i]
    %w = add %v, %v
    store %x[%i], %w
}
kernel @turn(%x: device read f32, %y: device write f32, %last: u32) {
    %i = thread_position_in_grid x
    %j = sub %last, %i
    %v = load %x[%j]
    store %y[%i], %v
}
; program: x = iota(4), y = zeros(4)
;   then @double(x = x) grid(4) threadgroup(4)
;   then @turn(x = x, y = y, last = 3) grid(4) threadgroup(4)
;   then @double(x = y) grid(2) threadgroup(4)
;   -> x == [0, 2, 4, 6], y == [12, 8, 2, 0], y ~= reference (ulp 0)
";

#[test]
fn kernels_run_one_after_the_other_on_the_same_buffers() {
    let folder = Folder::new();
    let file = folder.file("turn.inv", PROGRAM);
    for device in ["reference", "checked", "cpu"] {
        let (out, err) = expect(0, &["run", text(&file), "--device", device]);
        let told: Vec<&str> = out.lines().collect();
        assert_eq!(told.len(), 4, "{device}: {out}\n{err}");
        assert!(told[1].starts_with("@turn: done in "), "{device}: {out}");
        assert!(
            told[3].starts_with("program @double, @turn, @double: right, 3 expectations met, in "),
            "{device}: {out}"
        );
    }
    let (out, _) = expect(0, &["check", text(&file)]);
    assert!(out.starts_with("clean @double: no findings"), "{out}");
    assert!(
        out.ends_with("program @double, @turn, @double: right, 3 expectations met\n"),
        "{out}"
    );
    let (out, _) = expect(0, &["bench", text(&file), "--seconds", "0.01"]);
    assert_eq!(out.matches("GB/s").count(), 3, "{out}");
    let (out, _) = expect(0, &["run", text(&file), "--json"]);
    let document: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    let last = &document["results"][3];
    assert_eq!(last["program"][1], "turn", "{out}");
    assert_eq!(last["expectations"], 3, "{out}");
    assert_eq!(document["skipped"], 0, "{out}");
}

#[test]
fn what_a_program_leaves_is_compared_and_written() {
    let folder = Folder::new();
    let file = folder.file(
        "turn.inv",
        &PROGRAM.replace("[12, 8, 2, 0]", "[12, 8, 4, 0]"),
    );
    for command in ["run", "check"] {
        let (out, err) = expect(1, &[command, text(&file)]);
        assert!(out.contains("wrong, 1 of 3 expectations not met"), "{out}");
        assert!(err.contains("element 2: expected 4"), "{err}");
    }
    let file = folder.file("turn.inv", PROGRAM);
    let there = folder.path("y.npy");
    let out = format!("y=@{}", text(&there));
    let (told, _) = expect(0, &["run", text(&file), "--out", &out]);
    assert!(told.contains("wrote y to "), "{told}");
    let array = npy::read(&there).expect("an array file");
    let floats = array.bytes.chunks_exact(4);
    let floats: Vec<f32> = floats
        .map(|b| f32::from_le_bytes(b.try_into().unwrap()))
        .collect();
    assert_eq!(floats, [12.0, 8.0, 2.0, 0.0]);
    let (_, err) = expect(2, &["run", text(&file), "--out", "last=@z.npy"]);
    assert!(
        err.contains("the program has no buffer `last`; it has `x`, `y`"),
        "{err}"
    );
    // A kernel by itself is what its own lines say, and it has none.
    let (_, err) = expect(2, &["run", text(&file), "--kernel", "turn"]);
    assert!(
        err.contains("has no `; run:` line for kernel `turn`"),
        "{err}"
    );
}

#[test]
fn nothing_runs_after_a_run_that_has_errors() {
    let folder = Folder::new();
    let clash = CLASH.split("; run").next().expect("a kernel");
    let program = "; program: x = zeros(1) then @clash(x = x) grid(32) threadgroup(32)
;   then @clash(x = x) grid(1) threadgroup(1) -> x == [0]\n";
    let file = folder.file("clash.inv", &format!("{clash}{program}"));
    let (out, err) = expect(1, &["check", text(&file)]);
    assert!(err.contains("error[data-race]"), "{err}");
    assert!(
        out.ends_with("program @clash, @clash: stopped after run 1 of 2, which has errors\n"),
        "{out}"
    );
    let (out, _) = expect(1, &["run", text(&file), "--device", "checked"]);
    assert!(out.contains("stopped after run 1 of 2"), "{out}");
}

#[test]
fn a_check_goes_on_after_accesses_out_of_bounds() {
    let folder = Folder::new();
    let kernels = PROGRAM.split("; program").next().expect("kernels");
    let program = "; program: x = iota(3)
;   then @double(x = x) grid(4) threadgroup(4) then @double(x = x) grid(3) threadgroup(3) -> x == [0, 4, 8]\n";
    let file = folder.file("past.inv", &format!("{kernels}{program}"));
    let (out, err) = expect(1, &["check", text(&file)]);
    assert!(err.contains("error[out-of-bounds]"), "{err}");
    assert!(
        out.contains("program @double, @double: right, 1 expectation met\n"),
        "{out}"
    );
}

#[test]
fn buffers_that_do_not_fit_a_program_are_named() {
    let folder = Folder::new();
    let kernels = PROGRAM.split("; program").next().expect("kernels");
    for (program, what) in [
        (
            "x = iota(4), z = iota(1) then @double(x = x) grid(4) threadgroup(4)",
            "no run of the program takes the buffer `z`",
        ),
        (
            "x = iota(4) then @turn(x = x, y = zeros(4), last = x) grid(4) threadgroup(4)",
            "parameter `%last` takes no buffer, and `x` is one",
        ),
        (
            "x = iota(4) then @turn(x = x, y = x, last = 3) grid(4) threadgroup(4)",
            "kernel `@turn` gets `x` twice and writes it",
        ),
        (
            "x = iota(4) then @turn(x = x, last = 3) grid(4) threadgroup(4)",
            "parameter `%y` gets nothing",
        ),
        (
            "x = iota(4) then @double(y = x) grid(4) threadgroup(4)",
            "kernel `@double` has no parameter `%y`",
        ),
        (
            "x = iota(4) then @double(x = x) grid(4)",
            "add one, such as threadgroup(64)",
        ),
        (
            "x = iota(4) then @double(x = x) grid(4) threadgroup(4) then @twice(x = x) grid(4)",
            "there is no kernel `@twice`",
        ),
        (
            "x = 7 then @double(x = x) grid(4) threadgroup(4) then @bits(x = x) grid(4) threadgroup(4)",
            "`x` has elements of f32 elsewhere in the program, and parameter `%x` takes u32",
        ),
    ] {
        let bits = "kernel @bits(%x: device read u32) {\n}\n";
        let file = folder.file(
            "wrong.inv",
            &format!("{kernels}{bits}; program: {program}\n"),
        );
        let (_, err) = expect(1, &["run", text(&file)]);
        assert!(err.contains(what), "{program}\n{err}");
    }
    let file = "; program: x = @none.npy then @double(x = x) grid(4) threadgroup(4)\n";
    let file = folder.file("file.inv", &format!("{kernels}{file}"));
    let (_, err) = expect(2, &["run", text(&file)]);
    assert!(err.contains("none.npy"), "{err}");
}

#[test]
fn entry_points_of_a_shader_run_one_after_the_other() {
    let folder = Folder::new();
    let shader = "\
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@compute @workgroup_size(4) fn count(@builtin(global_invocation_id) id: vec3u) { x[id.x] += id.x; }
@compute @workgroup_size(4) fn double(@builtin(global_invocation_id) id: vec3u) { x[id.x] *= 2u; }
// program: x = fill(4, 1)
//   then @count(x = x) groups(1)
//   then @double(x = x) groups(1)
//   -> x == [2, 4, 6, 8]
";
    let file = folder.file("count.wgsl", shader);
    for command in ["run", "check"] {
        let (out, err) = expect(0, &[command, text(&file)]);
        assert!(out.contains("right, 1 expectation met"), "{out}\n{err}");
    }
}
