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

const FAR: &str = "\
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) { y[i + 7u] = i; }
";

/// What leaves a finding out is an option of a check, which a run on the checked device names.
#[test]
fn a_run_names_the_check_that_leaves_findings_out() {
    let folder = Folder::new();
    let file = folder.file("far.wgsl", FAR);
    let args = ["--groups", "1", "--arg", "y=zeros(8)"];
    let check = [&["check", text(&file)], &args[..]].concat();
    let (_, err) = expect(1, &check);
    assert!(err.contains("say `--allow out-of-bounds`"), "{err}");
    expect(0, &[&check[..], &["--allow", "out-of-bounds"]].concat());
    let run = [&["run", text(&file), "--device", "checked"], &args[..]].concat();
    let (_, err) = expect(1, &run);
    let expected = "use `invar check --allow out-of-bounds`";
    assert!(err.contains(expected), "{err}");
}

const ZEROS: &str = "\
var<workgroup> tile: array<u32, 8>;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) { y[i] = tile[i]; y[4] = i; }
";

/// Workgroup memory is zeros at first, by the standard, so that reading it is not a finding; also in the text form
/// and the binary form of the shader.
#[test]
fn zeros_of_workgroup_memory_are_no_finding() {
    let folder = Folder::new();
    let clean = ZEROS.replace("y[4] = i; ", "");
    let file = folder.file("zeros.wgsl", &clean);
    let racy = folder.file("racy.wgsl", ZEROS);
    let (printed, _) = expect(0, &["print", text(&file)]);
    let again = folder.file("zeros.inv", &printed);
    let binary = folder.path("zeros.invb");
    expect(0, &["print", text(&file), "--binary", text(&binary)]);
    for file in [&file, &again, &binary] {
        let args = ["--groups", "1", "--arg", "y=fill(8, 9)"];
        let (out, err) = expect(0, &[&["check", text(file)], &args[..]].concat());
        assert!(out.starts_with("clean @main"), "{out}");
        assert_eq!(err, "");
        let run = [&["run", text(file), "--device", "checked"], &args[..]].concat();
        let (out, err) = expect(0, &run);
        assert!(out.contains("y = [0, 0, 0, 0, 9"), "{out}");
        assert_eq!(err, "");
    }
    let args = ["--groups", "1", "--arg", "y=zeros(8)"];
    for command in [&["check"][..], &["run", "--device", "checked"]] {
        let (_, err) = expect(1, &[command, &[text(&racy)], &args].concat());
        assert!(err.contains("error[data-race]"), "{err}");
        assert!(!err.contains("uninitialised"), "{err}");
    }
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

#[test]
fn options_win_over_a_file_of_inputs_under_every_name() {
    let folder = Folder::new();
    let file = folder.file("list.wgsl", LIST);
    let bytes = [3u32, 0, 0, 0, 0].map(u32::to_le_bytes).concat();
    std::fs::write(folder.path("list.bin"), bytes).expect("written");
    let form = r#"{"groups": [1, 1, 1], "args": {"x": null, "1.2": "@list.bin"}}"#;
    let form = folder.file("form.json", form);
    let run = ["run", text(&file), "--inputs", text(&form)];
    let (_, err) = expect(2, &run);
    assert!(
        err.contains("form.json: `x` is not filled in yet: put its value in the place of `null`, or give --arg x="),
        "{err}"
    );
    for (name, array) in [("x", "iota(4)"), ("0.3", "iota(4)")] {
        let x = format!("{name}={array}");
        let (out, _) = expect(0, &[&run[..], &["--arg", &x]].concat());
        assert!(out.contains("list.items = [0, 3, 6, 9]"), "{out}");
        // A part of what the file gives as a whole.
        let part = ["--arg", &x, "--arg", "list=[5]"];
        let (out, _) = expect(0, &[&run[..], &part].concat());
        assert!(out.contains("list.items = [0, 5, 10, 15]"), "{out}");
    }
    let twice = ["--arg", "x=iota(4)", "--arg", "0.3=iota(4)"];
    let (_, err) = expect(2, &[&run[..], &twice].concat());
    assert!(err.contains("--arg x is given twice"), "{err}");
}

#[test]
fn what_does_not_fit_is_told_by_the_shaders_names() {
    let folder = Folder::new();
    let file = folder.file("list.wgsl", LIST);
    let run = ["run", text(&file), "--groups", "1", "--arg", "x=zeros(1)"];
    let args = ["--arg", "list=[1.5]", "--arg", "list.items=zeros(1)"];
    let (_, err) = expect(2, &[&run[..], &args].concat());
    assert!(err.contains("argument for `list`: "), "{err}");
    for (data, why) in [
        (
            "zeros(3)",
            "argument for `list`: the variable has 1 element of 4 bytes, and the argument has 3",
        ),
        (
            "{by: [1, 2]}",
            "--arg list: `by` has 1 value, and 2 are given",
        ),
    ] {
        let given = format!("list={data}");
        let args = ["--arg", &given, "--arg", "list.items=zeros(1)"];
        let (_, err) = expect(2, &[&run[..], &args].concat());
        assert!(err.contains(why), "{data}: {err}");
    }
    let wide = folder.file(
        "wide.wgsl",
        "@group(0) @binding(0) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(1)
        fn main() { if f64(y[0]) * 0.5lf > 1.0lf { y[0] = 1u; } }",
    );
    let (_, err) = expect(1, &["emit", "--target", "wgsl", text(&wide)]);
    assert!(
        err.contains("`f64(y[0])` has type f64, but WGSL has no f64"),
        "{err}"
    );
    assert!(err.contains("wide.wgsl:3:"), "{err}");
}

const LOCK: &str = "\
@group(0) @binding(0) var<storage, read_write> lock: atomic<u32>;
@group(0) @binding(1) var<storage, read_write> count: u32;
@compute @workgroup_size(1)
fn main() {
  loop { if atomicExchange(&lock, 1u) == 0u { break; } }
  count += 1u;
  atomicStore(&lock, 0u);
}
";

#[test]
fn advice_is_what_wgsl_has() {
    let folder = Folder::new();
    let file = folder.file("lock.wgsl", LOCK);
    let args = ["--groups", "4", "--arg", "lock=[0]", "--arg", "count=[0]"];
    let (_, err) = expect(1, &[&["check", text(&file)], &args[..]].concat());
    assert!(
        err.contains("atomics of WGSL order no other accesses"),
        "{err}"
    );
    for word in ["acquire", "release"] {
        assert!(!err.contains(word), "{err}");
    }
}

const TWO: &str = "\
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
fn odd(a: u32) -> bool { return (a & 3u) * 5u > 2u; }
@compute @workgroup_size(64)
fn asks(@builtin(local_invocation_index) i: u32) {
  if odd(x[i] + 1u) { workgroupBarrier(); }
}
@compute @workgroup_size(64)
fn counts(@builtin(local_invocation_index) i: u32) {
  let most = x[i] & 3u;
  for (var k = 0u; k < most + 1u; k++) { workgroupBarrier(); }
}
";

#[test]
fn what_is_not_uniform_is_told_in_the_words_of_the_shader() {
    let folder = Folder::new();
    let file = folder.file("two.wgsl", TWO);
    for (entry, says) in [
        ("asks", "`odd` may differ from thread to thread"),
        ("asks", "`x[i]` is loaded from `x`"),
        ("counts", "`most + 1u` may differ from thread to thread"),
    ] {
        let args = ["check", text(&file), "--entry", entry, "--groups", "1"];
        let (_, err) = expect(1, &[&args[..], &["--arg", "x=zeros(64)"]].concat());
        assert!(err.contains(says), "{says}: {err}");
        assert!(!err.contains('%'), "{err}");
    }
}

const PARTS: &str = "\
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@compute @workgroup_size(64)
fn rests(@builtin(local_invocation_index) i: u32) {
  if x[i] % 3u == 1u { workgroupBarrier(); }
}
@compute @workgroup_size(64)
fn either(@builtin(subgroup_invocation_id) lane: u32, @builtin(subgroup_size) lanes: u32) {
  x[lane] = u32(lane == lanes - 1u || subgroupShuffleDown(lane, 1u) == lane + 1u);
}
@compute @workgroup_size(64)
fn long(@builtin(local_invocation_index) i: u32) {
  if x[i] + x[i + 1u] + x[i + 2u] + x[i + 3u] + x[i + 4u] + x[i + 5u] == 1u { workgroupBarrier(); }
}
";

#[test]
fn what_has_no_name_is_told_as_the_shader_writes_it() {
    let folder = Folder::new();
    let file = folder.file("parts.wgsl", PARTS);
    for (entry, says) in [
        (
            "rests",
            "`x[i] % 3u == 1u` may differ from thread to thread",
        ),
        ("either", "`subgroupShuffleDown` may be missed by threads"),
        ("either", "`lane` is `subgroup_invocation_id`"),
        (
            "long",
            "`x[i] + x[i + 1u] + x[i + 2u] + x[i + 3u] + x[i + 4u] + x ...` may",
        ),
    ] {
        let args = ["check", text(&file), "--entry", entry, "--groups", "1"];
        let (_, err) = expect(1, &[&args[..], &["--arg", "x=zeros(64)"]].concat());
        assert!(err.contains(says), "{says}: {err}");
        let mut quoted = err.split('`').skip(1).step_by(2);
        let numbered =
            quoted.find(|text| text.starts_with(|c: char| c == '%' || c.is_ascii_digit()));
        assert_eq!(numbered, None, "{err}");
    }
}

#[test]
fn what_is_missing_is_named_as_a_shader_has_it() {
    let folder = Folder::new();
    let file = folder.file("lock.wgsl", LOCK);
    let (_, err) = expect(2, &["run", text(&file)]);
    assert!(
        err.contains("has no `// run:` line: to run kernel `main`, --arg lock=, --arg count=, --groups are missing"),
        "{err}"
    );
    let file = folder.file(
        "parts.wgsl",
        "@compute @workgroup_size(1) fn one() {}\n@compute @workgroup_size(1) fn two() {}\n// run: @one() groups(1)\n",
    );
    let (out, _) = expect(0, &["check", text(&file)]);
    assert!(
        out.contains("no `// run:` line names it; give its inputs: --kernel two, --groups, --arg"),
        "{out}"
    );
    let file = folder.file("shades.wgsl", "@fragment fn shades() {}");
    let (_, err) = expect(1, &["check", text(&file), "--groups", "1"]);
    assert!(err.contains("shades.wgsl:1:1"), "{err}");
    let file = folder.file(
        "twice.wgsl",
        "@id(3) override n = 1u;\n@compute @workgroup_size(n) fn main() {}",
    );
    let both = ["--const", "n=1", "--const", "3=2"];
    let (_, err) = expect(2, &[&["print", text(&file)], &both[..]].concat());
    assert!(
        err.contains("twice.wgsl: override `n` gets two values: the other by `3`"),
        "{err}"
    );
}

const FORM: &str = "\
override n: u32;
@group(0) @binding(0) var how: sampler_comparison;
@group(0) @binding(1) var sky: texture_depth_2d;
@group(0) @binding(2) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(1)
fn main() { x[0] = textureSampleCompareLevel(sky, how, vec2f(0.5), 0.5) + f32(n); }
";

#[test]
fn a_form_is_filled_in_where_it_can_be() {
    let folder = Folder::new();
    let file = folder.file("sky.wgsl", FORM);
    let (form, _) = expect(0, &["inputs", text(&file)]);
    assert!(form.contains("sampler(linear, compare_less)"), "{form}");
    let inputs = folder.file("sky.json", &form);
    let run = ["run", text(&file), "--inputs", text(&inputs)];
    let (_, err) = expect(2, &run);
    assert!(err.contains("constant `n` is not filled in yet"), "{err}");
    let (out, _) = expect(0, &[&run[..], &["--const", "n=2"]].concat());
    assert!(out.contains("x = [2.0, "), "{out}");
}

#[test]
fn buffers_of_structs_are_written_as_bytes() {
    let folder = Folder::new();
    let file = folder.file(
        "points.wgsl",
        "struct Point { at: vec3f, id: u32 }
        @group(0) @binding(0) var<storage, read_write> points: array<Point>;
        @compute @workgroup_size(1) fn main() { points[1].id = 7u; points[0].at.y = 2.0; }",
    );
    let args = ["--groups", "1", "--arg", "points=zeros(2)"];
    let run = [&["run", text(&file)], &args[..]].concat();
    let to = folder.path("points.bin");
    let out = format!("points=@{}", text(&to));
    expect(0, &[&run[..], &["--out", &out]].concat());
    let bytes = std::fs::read(to).expect("it was written");
    let words: Vec<u32> = bytes
        .as_chunks()
        .0
        .iter()
        .map(|b| u32::from_le_bytes(*b))
        .collect();
    assert_eq!(words, [0, 2.0_f32.to_bits(), 0, 0, 0, 0, 0, 7]);
    let array = format!("points=@{}", text(&folder.path("points.npy")));
    let (_, err) = expect(2, &[&run[..], &["--out", &array]].concat());
    assert!(
        err.contains("write their bytes, points=@points.bin"),
        "{err}"
    );
}

/// What is written is read again as it was: numbers, too, are bytes in a file that is not named as an array.
#[test]
fn numbers_are_written_as_bytes_where_no_array_is_named() {
    let folder = Folder::new();
    let file = folder.file(
        "numbers.wgsl",
        "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
        @compute @workgroup_size(1) fn main() { x[1] += 7u; }",
    );
    let to = folder.path("x.bin");
    let out = format!("x=@{}", text(&to));
    let run = ["run", text(&file), "--groups", "1", "--arg"];
    expect(0, &[&run[..], &["x=zeros(2)", "--out", &out]].concat());
    assert_eq!(
        std::fs::read(&to).expect("it was written"),
        [0, 0, 0, 0, 7, 0, 0, 0]
    );
    let (again, _) = expect(0, &[&run[..], &[&out]].concat());
    assert!(again.contains("x = [0, 14]"), "{again}");
}

/// An override that is made of others follows them, also where a form gives those.
#[test]
fn forms_have_the_overrides_that_others_are_made_of() {
    let folder = Folder::new();
    let file = folder.file(
        "derived.wgsl",
        "override a = 2.0; override twice = a * 2.0; override width = 4u; override unused = 1u;
        @group(0) @binding(0) var<storage, read_write> x: array<f32>;
        @compute @workgroup_size(width) fn main(@builtin(local_invocation_index) i: u32) { x[i] = twice; }",
    );
    let (form, _) = expect(0, &["inputs", text(&file)]);
    let constants: serde_json::Value = serde_json::from_str(&form).expect("JSON");
    assert_eq!(
        constants["constants"],
        serde_json::json!({"a": 2.0, "width": 4}),
        "{form}"
    );
    let form = folder.file("derived.json", &form.replace("random(1024, 1)", "zeros(4)"));
    let run = [
        "run",
        text(&file),
        "--inputs",
        text(&form),
        "--const",
        "a=3",
    ];
    let (out, _) = expect(0, &run);
    assert!(out.contains("x = [6.0, 6.0, 6.0, 6.0]"), "{out}");
}

const PAIRS: &str = "\
struct List { n: u32, items: array<vec2u> }
@group(0) @binding(1) var<storage, read_write> list: List;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(2)
fn main(@builtin(local_invocation_index) i: u32) { list.items[i] = vec2u(i + 5u); list.n = 2u; y[i] = i; }
";

/// `--arg list=@list.bin` fills both parts of it, and `--out` writes both.
#[test]
fn out_writes_all_that_a_variable_holds() {
    let folder = Folder::new();
    let file = folder.file(
        "list.wgsl",
        &PAIRS.replace("list.n = 2u", "if (i == 0u) { list.n = 2u; }"),
    );
    let before = folder.path("before.bin");
    let bytes: Vec<u8> = (0..40).collect();
    std::fs::write(&before, &bytes).expect("written");
    let given = format!("list=@{}", text(&before));
    let run = [
        "run",
        text(&file),
        "--groups",
        "1",
        "--arg",
        &given,
        "--arg",
        "y=zeros(2)",
    ];
    let run = [&run[..], &["--device", "reference"]].concat();
    let mut expected = bytes;
    for (at, word) in [(0, 2u32), (8, 5), (12, 5), (16, 6), (20, 6)] {
        expected[at..at + 4].copy_from_slice(&word.to_le_bytes());
    }
    for name in ["list", "0.1"] {
        let after = folder.path("after.bin");
        let out = format!("{name}=@{}", text(&after));
        expect(0, &[&run[..], &["--out", &out]].concat());
        assert_eq!(std::fs::read(&after).expect("there"), expected, "{name}");
    }
    let array = folder.path("y.npy");
    let out = format!("0.2=@{}", text(&array));
    expect(0, &[&run[..], &["--out", &out]].concat());
    assert!(array.exists());
    let (_, err) = expect(2, &[&run[..], &["--out", "0.7=@z.npy"]].concat());
    assert!(
        err.contains("--out 0.7: `main` uses no variable of that group"),
        "{err}"
    );
}

/// A part of a file is for both parts of a variable, too.
#[test]
fn a_part_of_a_file_fills_both_parts_of_a_variable() {
    let folder = Folder::new();
    let file = folder.file("list.wgsl", LIST);
    let bytes = [7u32, 3, 0, 0, 0, 0, 9].map(u32::to_le_bytes).concat();
    std::fs::write(folder.path("dump.bin"), bytes).expect("written");
    let run = |code, range: &str| {
        let data = format!("list=@{}{range}", text(&folder.path("dump.bin")));
        let args = ["--groups", "1", "--arg", "x=iota(4)", "--arg", &data];
        expect(code, &[&["run", text(&file)], &args[..]].concat())
    };
    for range in ["[4..24]", "[4..][..20]"] {
        let (out, _) = run(0, range);
        assert!(out.contains("list.items = [0, 3, 6, 9]"), "{out}");
    }
    for (range, why) in [
        (
            "[4..6]",
            "dump.bin[4..6] has 2 bytes, so bytes 0 up to 4 are not in it",
        ),
        (
            "[4..40]",
            "dump.bin has 28 bytes, so bytes 4 up to 40 are not in it",
        ),
        ("s[4..8]", "dump.bins"),
    ] {
        let (_, err) = run(2, range);
        assert!(err.contains(why), "{err}");
    }
}

/// As in WebGPU, bytes behind the last whole element are none of the array's, and come back as they are; a file of a
/// size that no buffer is bound with is refused, and so is each file that is not whole elsewhere.
#[test]
fn bytes_behind_the_last_element_stay_as_they_are() {
    let folder = Folder::new();
    let shader = "struct Two { n: u32, items: array<vec2u> }
@group(0) @binding(0) var<storage, read_write> two: Two;
@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) {
  if (i < arrayLength(&two.items)) { two.items[i] += vec2u(arrayLength(&two.items)); }
}
";
    let file = folder.file("two.wgsl", shader);
    let (before, after) = (folder.path("before.bin"), folder.path("after.bin"));
    let (given, out) = (
        format!("two=@{}", text(&before)),
        format!("two=@{}", text(&after)),
    );
    let run = [
        "run",
        text(&file),
        "--groups",
        "1",
        "--arg",
        &given,
        "--out",
        &out,
    ];
    let bytes: Vec<u8> = (0..28).collect();
    for device in ["reference", "checked", "cpu"] {
        std::fs::write(&before, &bytes).expect("written");
        expect(0, &[&run[..], &["--device", device]].concat());
        let mut expected = bytes.clone();
        for at in [8, 12, 16, 20] {
            expected[at] += 2;
        }
        assert_eq!(std::fs::read(&after).expect("there"), expected, "{device}");
    }
    std::fs::write(&before, &bytes[..26]).expect("written");
    let (_, err) = expect(2, &run);
    assert!(
        err.contains("holds 18 bytes, no whole number of elements of 8, nor a multiple of 4, which the size of a buffer is"),
        "{err}"
    );
    // A variable of fixed size has its size.
    let one = "@group(0) @binding(0) var<storage, read_write> one: array<vec2u, 2>;
@compute @workgroup_size(1) fn main() { one[0] = vec2u(); }
";
    let one = folder.file("one.wgsl", one);
    std::fs::write(&before, &bytes[..20]).expect("written");
    let given = format!("one=@{}", text(&before));
    let (_, err) = expect(2, &["run", text(&one), "--groups", "1", "--arg", &given]);
    assert!(
        err.contains(
            "the variable has 2 elements of 8 bytes, and the argument has 2 and 4 bytes more"
        ),
        "{err}"
    );
    let kernel = "kernel @k(%x: device read_write u32x2) threadgroup(1) {\n}\n";
    let kernel = folder.file("k.inv", kernel);
    let given = format!("x=@{}", text(&before));
    let (_, err) = expect(2, &["run", text(&kernel), "--grid", "1", "--arg", &given]);
    assert!(
        err.contains("holds 20 bytes, no whole number of elements of 8"),
        "{err}"
    );
    // An array file says where its numbers begin, and cannot be cut.
    let array = folder.path("two.npy");
    let x = format!("x=@{}", text(&array));
    let copy = folder.file(
        "copy.inv",
        "kernel @k(%x: device read_write u8) threadgroup(1) {\n}\n",
    );
    expect(
        0,
        &[
            "run",
            text(&copy),
            "--grid",
            "1",
            "--arg",
            "x=iota(24)",
            "--out",
            &x,
        ],
    );
    let given = format!("two=@{}", text(&array));
    let (_, err) = expect(2, &["run", text(&file), "--groups", "1", "--arg", &given]);
    assert!(
        err.contains("is an array file, and `two` ends in an array of no fixed length"),
        "{err}"
    );
    assert!(err.contains("--arg \"two.items=@"), "{err}");
}

const SIZED: &str = "\
override size: u32;
override by: f32;
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
var<workgroup> weights: array<f32, size>;
@compute @workgroup_size(size)
fn main(@builtin(global_invocation_id) id: vec3u) { x[id.x] *= by + weights[id.x % size]; }
@compute @workgroup_size(4)
fn plain(@builtin(global_invocation_id) id: vec3u) { x[id.x] = 2.0; }
";

/// What needs a value to be read is to be filled in as every other.
#[test]
fn forms_have_null_where_a_size_is_missing() {
    let folder = Folder::new();
    let file = folder.file("sized.wgsl", SIZED);
    let (out, _) = expect(0, &["inputs", text(&file), "--entry", "main"]);
    let form: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert!(form["constants"]["size"].is_null(), "{out}");
    assert!(form["constants"]["by"].is_null(), "{out}");
    assert_eq!(form["args"]["x"], "random(1024, 1)");
    // What an entry point does not use is none of its inputs.
    let (out, _) = expect(0, &["inputs", text(&file), "--entry", "plain"]);
    assert!(!out.contains("constants"), "{out}");
    let given = ["--entry", "plain", "--const", "by=2"];
    let (out, _) = expect(0, &[&["inputs", text(&file)], &given[..]].concat());
    let form: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(form["constants"], serde_json::json!({"by": 2}), "{out}");
    let plain = [
        "run",
        text(&file),
        "--entry",
        "plain",
        "--groups",
        "1",
        "--arg",
        "x=zeros(4)",
    ];
    let (out, err) = expect(0, &[&plain[..], &["--device", "reference"]].concat());
    assert!(out.contains("x = [2.0, 2.0, 2.0, 2.0]"), "{out}{err}");
}

/// Lines end as the standard says, whichever way: comments, places in reports and lines that say what to run.
#[test]
fn lines_end_as_the_standard_says() {
    let folder = Folder::new();
    let lines = [
        "// A comment of one line.",
        "@group(0) @binding(0) var<storage, read_write> y: array<u32>;",
        "@compute @workgroup_size(4)",
        "fn main(@builtin(local_invocation_index) i: u32) {",
        "  let \u{e9} = i; y[0] = \u{e9}; // the first",
        "}",
        "// run: @main(y = zeros(1)) groups(1)",
        "",
    ];
    for (number, end) in [
        "\r", "\n", "\r\n", "\u{b}", "\u{c}", "\u{85}", "\u{2028}", "\u{2029}",
    ]
    .into_iter()
    .enumerate()
    {
        let file = folder.file(&format!("race{number}.wgsl"), &lines.join(end));
        let (_, err) = expect(1, &["check", text(&file)]);
        assert!(err.contains("error[data-race]"), "{end:?}: {err}");
        assert!(
            err.contains(&format!("race{number}.wgsl:5:14")),
            "{end:?}: {err}"
        );
        assert!(
            err.contains("5 |   let \u{e9} = i; y[0] = \u{e9}; // the first"),
            "{end:?}: {err}"
        );
        let wrong = lines
            .map(|line| line.replace("y[0] =", "y[0] = 1.5 +"))
            .join(end);
        let file = folder.file(&format!("wrong{number}.wgsl"), &wrong);
        let (_, err) = expect(1, &["print", text(&file)]);
        assert!(
            err.contains(&format!("wrong{number}.wgsl:5:")),
            "{end:?}: {err}"
        );
    }
}

const SHADES: &str = "\
@group(0) @binding(0) var t: texture_2d<f32>;
@group(0) @binding(1) var s: sampler;
@group(0) @binding(2) var<storage, read_write> y: array<vec4f>;
fn shade(uv: vec2f) -> vec4f {
  return textureSample(t, s, uv);
}
@compute @workgroup_size(4)
fn shaded(@builtin(global_invocation_id) g: vec3u) {
  y[g.x] = shade(vec2f(f32(g.x) / 4.0, 0.0));
}
";

#[test]
fn a_refusal_in_a_function_names_the_call() {
    let folder = Folder::new();
    let file = folder.file("shades.wgsl", SHADES);
    let (_, err) = expect(1, &["print", text(&file)]);
    assert!(err.contains("shades.wgsl:5:10"), "{err}");
    assert!(err.contains("note: in `shade`, called at "), "{err}");
    assert!(err.contains("shades.wgsl:9\n"), "{err}");
    let json = ["check", text(&file), "--groups", "1", "--json"];
    let (out, _) = expect(1, &json);
    let found: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    let call = &found["results"][0]["diagnostics"][0]["calls"][0];
    assert_eq!(
        (&call["function"], &call["line"]),
        (&"shade".into(), &9.into()),
        "{out}"
    );
}

/// The two sides of a race lie behind calls of their own, and so does the barrier between them.
#[test]
fn each_place_of_a_race_names_its_calls() {
    let folder = Folder::new();
    let text_of_it = "\
var<workgroup> w: array<u32, 64>;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
fn put(k: u32, v: u32) {
  w[k] = v;
}
fn take(k: u32) -> u32 {
  return w[(k + 1u) % 64u];
}
fn next(k: u32) -> u32 { return take(k); }
fn wait() { storageBarrier(); }
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32) {
  put(i, i);
  wait();
  y[i] = next(i);
}
@compute @workgroup_size(64)
fn twice(@builtin(local_invocation_index) i: u32) {
  y[i] = i;
  put(i, 1u);
  put(63u - i, 2u);
}
";
    let file = folder.file("calls.wgsl", text_of_it);
    let args = |entry: &'static str| {
        let args = ["check", text(&file), "--groups", "1", "--entry", entry];
        [&args[..], &["--arg", "y=zeros(64)"]].concat()
    };
    let by = |thread: u32| format!("thread ({thread}, 0, 0) of threadgroup (0, 0, 0)");
    let told = |err: &str, what: &str, calls: &[(&str, u32)]| {
        let calls = calls.iter();
        let calls: Vec<String> = calls
            .map(|(function, line)| format!("in `{function}`, called at {}:{line}", text(&file)))
            .collect();
        let note = format!("note: {what}: {}", calls.join(", "));
        assert!(err.contains(&note), "{note}\n{err}");
    };
    let (_, err) = expect(1, &args("main"));
    told(
        &err,
        &format!("read here by {}", by(0)),
        &[("take", 9), ("next", 15)],
    );
    told(&err, &format!("written here by {}", by(1)), &[("put", 13)]);
    told(&err, "this barrier does not order `w`", &[("wait", 14)]);
    let (_, err) = expect(1, &args("twice"));
    told(&err, &format!("written here by {}", by(31)), &[("put", 21)]);
    told(&err, &format!("written here by {}", by(32)), &[("put", 20)]);
    let (out, _) = expect(1, &[&args("main")[..], &["--json"]].concat());
    let found: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    let found = &found["results"][0]["diagnostics"][0];
    let chain = |of: &serde_json::Value| -> Vec<(String, u64)> {
        let calls = of["calls"].as_array().expect("a list");
        let one = |call: &serde_json::Value| {
            let function = call["function"].as_str().unwrap_or_default().to_string();
            (function, call["line"].as_u64().unwrap_or_default())
        };
        calls.iter().map(one).collect()
    };
    let labels = found["labels"].as_array().expect("a list");
    let chains: Vec<_> = labels.iter().map(chain).collect();
    let chains: Vec<Vec<(&str, u64)>> = chains
        .iter()
        .map(|chain| chain.iter().map(|(name, line)| (&**name, *line)).collect())
        .collect();
    let expected = [
        vec![("take", 9), ("next", 15)],
        vec![("put", 13)],
        vec![("wait", 14)],
    ];
    assert_eq!(chains, expected, "{out}");
    let first: Vec<(String, u64)> = chain(found);
    assert_eq!(first[1], ("next".to_string(), 15), "{out}");
}

/// One entry point that is refused keeps nobody from the others of the file, and is told.
#[test]
fn what_is_refused_is_left_out_of_a_file() {
    let folder = Folder::new();
    let plain = "@compute @workgroup_size(4)
fn plain(@builtin(global_invocation_id) g: vec3u) { y[g.x] = vec4f(1.0); }
";
    let lines = "// run: @plain(y = zeros(4)) groups(1)
// run: @shaded(t = texture(rgba8unorm, 4, 4), s = sampler(linear), y = zeros(4)) groups(1)
";
    let file = folder.file("two.wgsl", &format!("{SHADES}{plain}"));
    let with_lines = folder.file("lines.wgsl", &format!("{SHADES}{plain}{lines}"));
    let (out, err) = expect(1, &["print", text(&file)]);
    assert!(out.contains("kernel @plain("), "{out}");
    assert!(!out.contains("kernel @shaded("), "{out}");
    assert!(
        err.contains("`shaded` is left out:\nerror[unsupported-feature]"),
        "{err}"
    );
    assert!(err.contains("two.wgsl:5:10"), "{err}");
    let (_, err) = expect(0, &["print", text(&file), "--entry", "plain"]);
    assert_eq!(err, "");
    let proof = ["prove", text(&file)];
    let (out, _) = expect(1, &proof);
    assert!(out.contains("@shaded: refused"), "{out}");
    assert!(out.contains("@plain: "), "{out}");
    let (out, _) = expect(1, &[&proof[..], &["--json"]].concat());
    assert!(out.contains("\"verdict\": \"refused\""), "{out}");
    for command in ["check", "run"] {
        let (out, err) = expect(1, &[command, text(&with_lines)]);
        assert!(out.contains("refused @shaded\n"), "{out}");
        assert!(out.contains("@plain"), "{out}");
        assert!(err.contains("lines.wgsl:5:10"), "{err}");
        let (_, err) = expect(0, &[command, text(&with_lines), "--entry", "plain"]);
        assert_eq!(err, "");
        // Without anything to run, what is refused is all that there is to say.
        let (out, err) = expect(1, &[command, text(&file)]);
        assert_eq!(out, "");
        assert!(err.contains("two.wgsl:5:10"), "{err}");
    }
    // Where one has to be chosen, it is not the one that is left.
    let target = ["emit", text(&file), "--target", "wgsl"];
    let options = ["check", text(&file), "--groups", "1"];
    for command in [&target[..], &options, &["inputs", text(&file)]] {
        let (_, err) = expect(2, command);
        assert!(
            err.contains(
                "two.wgsl has several kernels: say which with --kernel: `plain`, `shaded`"
            ),
            "{err}"
        );
    }
}

const MISSES: &str = "\
// run: @good(x = iota(4)) groups(1) -> x == [1, 1, 1, 1]
// run: @bad() groups(1)
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(4)
fn good(@builtin(global_invocation_id) id: vec3u) { x[id.x] = 1.0; }
@compute @workgroup_size(4)
fn bad(@builtin(local_invocation_index) i: u32) { if (i < 2u) { workgroupBarrier(); } }
";

/// What the verifier refuses keeps nobody from the others either, and is told in the words of the shader.
#[test]
fn what_the_verifier_refuses_is_left_out_of_a_file() {
    let folder = Folder::new();
    let file = folder.file("misses.wgsl", MISSES);
    for command in ["check", "run"] {
        let (out, err) = expect(1, &[command, text(&file)]);
        assert!(out.contains("refused @bad\n"), "{out}");
        assert!(out.contains("@good"), "{out}");
        assert!(err.contains("error[barrier-not-uniform]"), "{err}");
        assert!(err.contains("misses.wgsl:7:65"), "{err}");
        assert!(!err.contains('%'), "{err}");
        expect(0, &[command, text(&file), "--entry", "good"]);
        expect(1, &[command, text(&file), "--entry", "bad"]);
    }
    let (out, err) = expect(1, &["prove", text(&file)]);
    assert!(
        out.contains("@bad: refused") && out.contains("@good: "),
        "{out}"
    );
    assert!(!err.contains('%'), "{err}");
    let (out, err) = expect(1, &["print", text(&file)]);
    assert!(
        out.contains("kernel @good(") && !out.contains("kernel @bad("),
        "{out}"
    );
    assert!(
        err.contains("`bad` is left out:\nerror[barrier-not-uniform]"),
        "{err}"
    );
    // Alone it is not printed either.
    let (out, err) = expect(1, &["print", text(&file), "--entry", "bad"]);
    assert_eq!(out, "");
    assert!(err.contains("error[barrier-not-uniform]"), "{err}");
    let alone = MISSES.replace("@compute @workgroup_size(4)\nfn good", "fn good");
    let alone = alone.replace("@builtin(global_invocation_id) id", "id");
    let alone = folder.file("alone.wgsl", &alone);
    for command in ["print", "check", "prove"] {
        let (out, err) = expect(1, &[command, text(&alone)]);
        assert_eq!(out, "");
        assert!(err.contains("error[barrier-not-uniform]"), "{err}");
        assert!(!err.contains('%'), "{err}");
    }
    // What a form is of need not pass.
    expect(0, &["inputs", text(&alone)]);
}

const ROUNDS: &str = "\
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@compute @workgroup_size(64)
fn counted(@builtin(local_invocation_index) i: u32) {
  for (var k = 0u; k < x[i]; k++) { workgroupBarrier(); }
}
@compute @workgroup_size(64)
fn repeated(@builtin(local_invocation_index) i: u32) {
  var k = 0u;
  while (k < i) { k += 2u; workgroupBarrier(); }
}
@compute @workgroup_size(64)
fn left(@builtin(local_invocation_index) i: u32) {
  for (var k = 0u; ; k++) {
    if (k > i) { break; }
    workgroupBarrier();
  }
}
@compute @workgroup_size(64)
fn chosen(@builtin(local_invocation_index) i: u32) {
  switch (i % 2u) {
    case 1u: { workgroupBarrier(); }
    default: {}
  }
}
";

/// A loop's condition and a `switch` are not `if`s to who wrote them.
#[test]
fn what_keeps_threads_from_a_barrier_is_called_as_the_author_wrote_it() {
    let folder = Folder::new();
    let file = folder.file("rounds.wgsl", ROUNDS);
    for (entry, says, says_not) in [
        (
            "counted",
            "the iterations of this loop depend on `k < x[i]`",
            "this `if`",
        ),
        (
            "repeated",
            "threads leave the loop in different iterations: `k < i` may differ",
            "`break`",
        ),
        ("left", "this `if` depends on `k > i`", "this loop"),
        ("chosen", "this `switch` depends on `i % 2u`", "`if`"),
    ] {
        let args = ["check", text(&file), "--entry", entry, "--groups", "1"];
        let (_, err) = expect(1, &[&args[..], &["--arg", "x=zeros(64)"]].concat());
        assert!(err.contains(says), "{says}: {err}");
        assert!(!err.contains(says_not), "{says_not}: {err}");
    }
}

const SHIFT: &str = "\
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  let before = x[(id.x + 127u) % 128u];
  x[id.x] = before;
}
";

/// The race that is told is of one workgroup, and others at the same lines are not.
#[test]
fn a_barrier_is_not_all_that_is_advised_where_workgroups_race() {
    let folder = Folder::new();
    let file = folder.file("shift.wgsl", SHIFT);
    let told = |groups: &str| {
        let args = ["--arg", "x=iota(128)", "--groups", groups];
        expect(1, &[&["check", text(&file)], &args[..]].concat()).1
    };
    let advice = "put `storageBarrier()` between them";
    let beyond = "no barrier reaches from one to another";
    let one = told("1");
    assert!(one.contains(advice) && !one.contains(beyond), "{one}");
    let two = told("2");
    assert!(two.contains(advice) && two.contains(beyond), "{two}");
}

const FIELDS: &str = "\
struct Point { at: vec3f, weight: f32, marks: array<u32, 2> }
struct List { count: u32, scale: vec2f, points: array<Point> }
@group(0) @binding(0) var<storage, read> n: u32;
@group(0) @binding(1) var<storage, read_write> list: List;
@group(0) @binding(2) var<storage, read_write> ways: array<vec3f>;
@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3u) {
  let i = id.x;
  if (i == 0u) { list.count = n; list.scale.y = 0.5; }
  list.points[i].at = vec3f(1.0, 2.0, f32(i));
  list.points[i].marks[1] = i;
  ways[i] = vec3f(f32(n));
}
";

#[test]
fn a_run_shows_structs_field_by_field() {
    let folder = Folder::new();
    let file = folder.file("fields.wgsl", FIELDS);
    let run = |code: i32, n: &str, list: &str| {
        let n = format!("n={n}");
        let args = ["--arg", &n, "--arg", list, "--arg", "ways=zeros(4)"];
        let points = ["--arg", "list.points=zeros(4)", "--groups", "1"];
        expect(
            code,
            &[&["run", text(&file)], &args[..], &points[..]].concat(),
        )
    };
    // One number is the whole variable.
    for n in ["3", "[3]"] {
        let (out, err) = run(0, n, "list=zeros(1)");
        for line in [
            "list = [{count: 3, scale: [0.0, 0.5]}]\n",
            "list.points = [{at: [1.0, 2.0, 0.0], weight: 0.0, marks: [0, 0]}, {at: [1.0, 2.0, 1.0], weight: 0.0, marks: [0, 1]}, ... \
             (4 in all)]\n",
            "ways = [[3.0, 3.0, 3.0], [3.0, 3.0, 3.0], [3.0, 3.0, 3.0], ... (4 in all)]\n",
        ] {
            assert!(out.contains(line), "{line}{out}{err}");
        }
    }
    // Names that the author did not give are not told.
    let (_, err) = run(2, "3", "list=[1]");
    assert!(
        err.contains("argument for `list`: a list of 1 scalars is not a whole number of elements"),
        "{err}"
    );
    assert!(!err.contains('@'), "{err}");
}
