//! The command as a user meets it: what it prints, what it writes, how it ends.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use invar_command::npy::{self, Array};
use invar_ir::Scalar;

mod demo;
mod devices;
mod metal;
mod print;
mod programs;
mod prove;
mod rust_kernels;
mod shaders;
mod textures;

const SCALE: &str = "\
kernel @scale(%x: device read f32, %y: device write f32, %by: f32) {
    %i = thread_position_in_grid x
    %v = load %x[%i]
    %w = mul %v, %by
    store %y[%i], %w
}
; run: @scale(x = iota(4), y = zeros(4), by = 2) grid(4) threadgroup(4) -> y == [0, 2, 4, 6]
";

const CLASH: &str = "\
kernel @clash(%x: device read_write u32) {
    %i = thread_position_in_grid x
    %zero = const u32 0
    store %x[%zero], %i
}
; run: @clash(x = zeros(1)) grid(32) threadgroup(32)
";

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a temporary folder"))
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).expect("written");
        path
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

fn floats(path: &Path, values: &[f32]) {
    let array = Array {
        scalar: Scalar::F32,
        shape: vec![values.len() as u64],
        bytes: values.iter().flat_map(|v| v.to_le_bytes()).collect(),
    };
    npy::write(path, &array).expect("written");
}

fn invar(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_invar"))
        .args(args)
        .output()
        .expect("the command starts")
}

/// Runs the command and checks its exit code; gives standard output and standard error.
fn expect(code: i32, args: &[&str]) -> (String, String) {
    let output = invar(args);
    let out = String::from_utf8(output.stdout).expect("text");
    let err = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(code), "{args:?}\n{out}\n{err}");
    (out, err)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path that is text")
}

/// The same, with variables of the environment.
fn expect_in(code: i32, environment: &[(&str, &str)], args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_invar"))
        .args(args)
        .envs(environment.iter().copied())
        .output()
        .expect("the command starts");
    let err = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(code), "{environment:?}\n{err}");
    err
}

#[test]
fn a_clean_kernel_checks_and_runs() {
    let folder = Folder::new();
    let file = folder.file("scale.inv", SCALE);
    let (out, err) = expect(0, &["check", text(&file)]);
    assert!(out.starts_with("clean @scale: no findings"), "{out}");
    assert!(out.contains("every schedule"), "{out}");
    assert_eq!(err, "");
    let (out, _) = expect(0, &["run", text(&file)]);
    assert!(out.starts_with("@scale: right, 1 expectation met"), "{out}");
}

/// The loader finds files of the library's names that are not libraries.
#[cfg(target_os = "linux")]
#[test]
fn without_llvm_all_but_the_cpu_device_works() {
    let folder = Folder::new();
    let file = folder.file("scale.inv", SCALE);
    for release in 19..=22 {
        folder.file(&format!("libLLVM.so.{release}.1"), "");
        folder.file(&format!("libLLVM-{release}.so"), "");
    }
    let environment = [
        ("LD_LIBRARY_PATH", text(folder.0.path())),
        ("INVAR_LLVM", ""),
    ];
    expect_in(0, &environment, &["check", text(&file)]);
    expect_in(0, &environment, &["emit", text(&file), "--target", "msl"]);
    expect_in(
        0,
        &environment,
        &["run", text(&file), "--device", "checked"],
    );
    expect_in(0, &environment, &["devices"]);
    for args in [
        &["run", text(&file)][..],
        &["run", text(&file), "--device", "cpu"],
        &["emit", text(&file), "--target", "asm"],
    ] {
        let err = expect_in(2, &environment, args);
        assert!(err.contains("Debian and Ubuntu: libllvm"), "{err}");
    }
}

#[test]
fn a_wrong_result_is_an_error_with_its_place() {
    let folder = Folder::new();
    let file = folder.file("scale.inv", &SCALE.replace("[0, 2, 4, 6]", "[0, 2, 5, 6]"));
    let (out, err) = expect(1, &["run", text(&file)]);
    assert!(out.contains("1 of 1 expectation not met"), "{out}");
    assert!(err.contains("element 2: expected 5"), "{err}");
}

#[test]
fn a_race_is_reported_with_the_authors_line_and_can_be_allowed() {
    let folder = Folder::new();
    let file = folder.file("clash.inv", CLASH);
    let (out, err) = expect(1, &["check", text(&file)]);
    assert!(err.contains("error[data-race]"), "{err}");
    assert!(err.contains("store %x[%zero], %i"), "{err}");
    assert!(out.starts_with("failed @clash: 1 finding;"), "{out}");
    expect(0, &["check", text(&file), "--allow", "data-race"]);
    let (_, err) = expect(2, &["check", text(&file), "--allow", "no-such-rule"]);
    assert!(err.contains("there is no rule `no-such-rule`"), "{err}");
}

#[test]
fn json_says_the_same_for_machines() {
    let folder = Folder::new();
    let file = folder.file("clash.inv", CLASH);
    let (out, _) = expect(1, &["check", text(&file), "--json"]);
    let document: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(document["clean"], false);
    let finding = &document["results"][0]["diagnostics"][0];
    assert_eq!(finding["rule"], "data-race");
    assert_eq!(finding["labels"][0]["line"], 4);
    let (out, _) = expect(0, &["ops", "--json"]);
    let rows: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert!(rows.as_array().is_some_and(|rows| rows.len() > 100));
}

#[test]
fn array_files_go_in_and_out() {
    let folder = Folder::new();
    let file = folder.file("scale.inv", SCALE);
    let (x, y) = (folder.path("x.npy"), folder.path("y.npy"));
    floats(&x, &[1.0, -2.0, 0.5]);
    let input = format!("x=@{}", text(&x));
    let output = format!("y=@{}", text(&y));
    let common = ["run", text(&file), "--grid", "3", "--threadgroup", "2"];
    let more = [
        "--arg",
        &input,
        "--arg",
        "y=zeros(3)",
        "--arg",
        "by=3",
        "--out",
        &output,
    ];
    expect(0, &[&common[..], &more[..]].concat());
    let array = npy::read(&y).expect("read");
    let expected: Vec<u8> = [3.0f32, -6.0, 1.5]
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    assert_eq!(array.bytes, expected);
}

#[test]
fn bad_input_is_one_sentence_and_overwrites_nothing() {
    let folder = Folder::new();
    let file = folder.file("scale.inv", SCALE);
    let (x, y) = (folder.path("x.npy"), folder.path("y.npy"));
    floats(&y, &[7.0]);
    let before = std::fs::read(&y).expect("read");
    let input = format!("x=@{}", text(&x));
    let output = format!("y=@{}", text(&y));
    let args = [
        "run",
        text(&file),
        "--grid",
        "3",
        "--threadgroup",
        "2",
        "--arg",
        &input,
        "--arg",
        "y=zeros(3)",
        "--arg",
        "by=3",
        "--out",
        &output,
    ];
    let (_, err) = expect(2, &args);
    assert!(err.contains("x.npy: no such file"), "{err}");
    std::fs::write(&x, "not an array").expect("written");
    let (_, err) = expect(2, &args);
    assert!(err.contains("not a NumPy array file"), "{err}");
    let doubles = Array {
        scalar: Scalar::F64,
        shape: vec![3],
        bytes: vec![0; 24],
    };
    npy::write(&x, &doubles).expect("written");
    let (_, err) = expect(2, &args);
    assert!(
        err.contains("holds f64, but the parameter's elements are f32"),
        "{err}"
    );
    assert_eq!(std::fs::read(&y).expect("read"), before);
}

#[test]
fn what_is_missing_or_unknown_is_named() {
    let folder = Folder::new();
    let file = folder.file("scale.inv", SCALE);
    let (_, err) = expect(2, &["run", text(&file), "--grid", "4"]);
    assert!(
        err.contains("--arg x=, --arg y=, --arg by=, --threadgroup are missing"),
        "{err}"
    );
    let (_, err) = expect(2, &["run", text(&file), "--kernel", "nope"]);
    assert!(
        err.contains("has no kernel `nope`; it has `scale`"),
        "{err}"
    );
    let (_, err) = expect(2, &["check", text(&folder.path("none.inv"))]);
    assert!(err.contains("none.inv: no such file"), "{err}");
    let bare = folder.file("bare.inv", SCALE.split("; run").next().expect("a kernel"));
    let (_, err) = expect(2, &["check", text(&bare)]);
    assert!(
        err.contains(
            "bare.inv has no `; run:` line: to run kernel `scale`, --arg x=, --arg y=, --arg by=, \
             --grid, --threadgroup are missing"
        ),
        "{err}"
    );
    let both = SCALE.split("; run").next().expect("a kernel").to_string()
        + CLASH.split("; run").next().expect("a kernel");
    let both = folder.file("both.inv", &both);
    let (_, err) = expect(2, &["check", text(&both)]);
    assert!(
        err.contains("say which with --kernel: `scale`, `clash`") && err.contains("--grid"),
        "{err}"
    );
    let (_, err) = expect(2, &["check", text(&both), "--kernel", "clash"]);
    assert!(
        err.contains("for kernel `clash`: to run kernel `clash`, --arg x=, --grid"),
        "{err}"
    );
    let mut one_value = vec!["run", text(&file), "--grid", "4", "--threadgroup", "4"];
    for arg in ["x=3.5", "y=zeros(4)", "by=2"] {
        one_value.extend(["--arg", arg]);
    }
    let (_, err) = expect(2, &one_value);
    assert!(
        err.contains(
            "argument for `%x`: the parameter is a buffer, and this is one value: `fill(n, 3.5)`"
        ),
        "{err}"
    );
    let (_, err) = expect(2, &["run", text(&file), "--grid", "4", "--arg", "x=seven"]);
    assert!(err.contains("`seven` is not data"), "{err}");
    let (_, err) = expect(2, &["explain", "nope"]);
    assert!(err.contains("there is no rule `nope`"), "{err}");
    expect(2, &["frobnicate"]);
    for kernel in ["kernels.py", "kernels.py:row_sum"] {
        let (_, err) = expect(2, &["check", kernel]);
        assert!(
            err.contains("`python -m invar` in place of `invar`"),
            "{err}"
        );
    }
}

#[test]
fn what_cannot_be_run_or_written_is_said_before_anything_runs() {
    let folder = Folder::new();
    let file = folder.file("scale.inv", SCALE);
    let run = |more: &[&str]| {
        let inputs = [
            "--arg",
            "x=zeros(3)",
            "--arg",
            "y=zeros(3)",
            "--arg",
            "by=3",
        ];
        let mut args = vec!["run", text(&file)];
        args.extend(inputs);
        args.extend(more);
        expect(2, &args)
    };
    let sized = ["--grid", "3", "--threadgroup", "2"];
    for (option, value, message) in [
        ("--grid", "-1", "`-1` is not a number from 0 to 4294967295"),
        (
            "--time-limit",
            "-1",
            "--time-limit -1: give a number of seconds above 0",
        ),
        (
            "--time-limit",
            "0",
            "--time-limit 0: give a number of seconds above 0",
        ),
        (
            "--time-limit",
            "1e300",
            "--time-limit 1e300: give a number of seconds above 0",
        ),
        ("--simdgroup", "3", "a power of two from 4 to 128"),
    ] {
        let mut more = sized.to_vec();
        more.retain(|word| *word != "--grid" && *word != "3" || option != "--grid");
        more.extend([option, value]);
        let (out, err) = run(&more);
        assert!(err.contains(message), "{err}");
        assert!(out.is_empty(), "{out}");
    }
    let (_, err) = run(&["--grid", "3", "--threadgroup", "0"]);
    assert!(err.contains("has a 0"), "{err}");
    let (_, err) = run(&["--grid", "9999", "--threadgroup", "9999"]);
    assert!(err.contains("more than the limit of 1024"), "{err}");
    // Long before the run ends by its time limit.
    let long = ["--grid", "4000000000", "--threadgroup", "2", "--out"];
    for place in [
        format!("y=@{}", text(&folder.path("no/such/y.npy"))),
        format!("y=@{}", text(folder.0.path())),
    ] {
        let (out, err) = run(&[&long[..], &[&place]].concat());
        assert!(
            err.contains("no such file") || err.contains("is a directory"),
            "{err}"
        );
        assert!(out.is_empty(), "{out}");
    }
    #[cfg(unix)]
    {
        let (_, err) = expect(2, &["print", "/dev/zero"]);
        assert!(err.contains("/dev/zero: is larger than"), "{err}");
    }
}

#[test]
fn both_forms_of_a_module_are_read_and_written() {
    let folder = Folder::new();
    let file = folder.file("scale.inv", SCALE);
    let (out, _) = expect(0, &["print", text(&file)]);
    let again = folder.file("again.inv", &out);
    assert_eq!(expect(0, &["print", text(&again)]).0, out);
    let binary = folder.path("scale.invb");
    expect(0, &["print", text(&file), "--binary", text(&binary)]);
    assert_eq!(expect(0, &["print", text(&binary)]).0, out);
    let mut bytes = std::fs::read(&binary).expect("read");
    bytes.truncate(bytes.len() / 2);
    std::fs::write(&binary, bytes).expect("written");
    let (_, err) = expect(2, &["print", text(&binary)]);
    assert!(err.contains("scale.invb"), "{err}");
    let broken = folder.file("broken.inv", "kernel @k( {\n");
    let (_, err) = expect(1, &["print", text(&broken)]);
    assert!(
        err.contains("error[syntax]") && err.contains("broken.inv:1:"),
        "{err}"
    );
}

#[test]
fn every_rule_can_be_explained() {
    for rule in invar_ir::Rule::ALL {
        let (out, _) = expect(0, &["explain", rule.name()]);
        assert!(out.starts_with(rule.name()), "{out}");
        assert!(out.len() > rule.name().len() + 20, "{out}");
    }
}

#[test]
fn a_layout_is_a_table_and_a_picture() {
    let folder = Folder::new();
    let svg = folder.path("named.svg");
    let (out, _) = expect(0, &["layout", "((4,2),8):((1,32),4)", "--svg", text(&svg)]);
    assert!(out.contains("28"), "{out}");
    let first = std::fs::read_to_string(&svg).expect("read");
    assert!(first.starts_with("<svg"));
    let (_, err) = expect(2, &["layout", "(4,2):(1", "--svg", text(&svg)]);
    assert!(err.contains("is not a layout"), "{err}");

    // Another picture does not replace this one unless told to; the same one may be written again.
    let (_, err) = expect(2, &["layout", "4:1", "--svg", text(&svg)]);
    assert!(err.contains("--force"), "{err}");
    assert_eq!(std::fs::read_to_string(&svg).expect("read"), first);
    expect(0, &["layout", "((4,2),8):((1,32),4)", "--svg", text(&svg)]);
    expect(0, &["layout", "4:1", "--svg", text(&svg), "--force"]);
    assert_ne!(std::fs::read_to_string(&svg).expect("read"), first);
}

#[test]
fn a_picture_without_a_name_takes_a_free_one() {
    let folder = Folder::new();
    let run = |layout: &str| {
        let out = Command::new(env!("CARGO_BIN_EXE_invar"))
            .args(["layout", layout])
            .current_dir(folder.path("."))
            .output()
            .expect("run");
        assert!(out.status.success());
        String::from_utf8(out.stdout).expect("text")
    };
    assert!(run("(4,2):(1,4)").contains("picture: layout.svg"));
    assert!(run("(4,2):(2,1)").contains("picture: layout-2.svg"));
    assert!(run("(4,2):(1,4)").contains("picture: layout.svg"));
}

#[test]
fn a_layout_shows_threads_and_bank_conflicts() {
    let owners = "((64,4),(4,4)):((64,4),(16,1))";
    let (out, _) = expect(0, &["layout", owners, "--tile", "(16,256)", "--no-picture"]);
    assert!(out.contains("T255 V15"), "{out}");
    let column = [
        "layout",
        "(32,32):(32,1)",
        "--lanes",
        "32:1",
        "--no-picture",
    ];
    let (out, _) = expect(0, &column);
    assert!(out.contains("L31 b0!"), "{out}");
    let (_, err) = expect(2, &["layout", owners, "--tile", "(4,4)", "--no-picture"]);
    assert!(err.contains("outside the tile"), "{err}");
}

#[test]
fn async_copies_are_printed_in_either_way() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/ir/emit/async-copy.inv"
    );
    let msl = ["emit", file, "--target", "msl"];
    let engine = "__asm(\"air.simdgroup_async_copy_1d.p3i8.p1i8\")";
    let (out, _) = expect(0, &msl);
    assert!(!out.contains(engine), "{out}");
    let (out, _) = expect(0, &[&msl[..], &["--async-copies", "engine"]].concat());
    assert!(out.contains(engine), "{out}");
    let (_, err) = expect(
        2,
        &["emit", file, "--target", "wgsl", "--async-copies", "engine"],
    );
    assert!(err.contains("only MSL has"), "{err}");
}

#[test]
fn matrices_are_printed_in_either_way() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/ir/emit/cooperative-matrices.inv"
    );
    let emit = ["emit", file, "--kernel", "multiply", "--target"];
    let wgsl = [&emit[..], &["wgsl"]].concat();
    let (out, _) = expect(0, &wgsl);
    assert!(!out.contains("coopMultiplyAdd"), "{out}");
    let (out, _) = expect(0, &[&wgsl[..], &["--matrices", "cooperative"]].concat());
    assert!(out.contains("coopMultiplyAdd"), "{out}");
    let (_, err) = expect(
        2,
        &[&emit[..], &["msl", "--matrices", "cooperative"]].concat(),
    );
    assert!(err.contains("only WGSL has"), "{err}");
}

#[test]
fn lengths_of_threadgroup_parameters_are_given_to_emit() {
    let folder = Folder::new();
    let kernel = "kernel @k(%x: device read_write f32, %s: threadgroup f32, %r: threadgroup f32) threadgroup(64) {
    %i = thread_position_in_threadgroup x
    %v = load %x[%i]
    store %s[%i], %v
    store %r[%i], %v
    barrier threadgroup
    %a = load %s[%i]
    %b = load %r[%i]
    %c = add %a, %b
    store %x[%i], %c
}
";
    let file = folder.file("lengths.inv", kernel);
    let emit = ["emit", text(&file), "--target"];
    let wgsl = [&emit[..], &["wgsl"]].concat();
    let (_, err) = expect(1, &wgsl);
    assert!(err.contains("--arg \"s=length(64)\""), "{err}");
    let both = ["--arg", "r=length(77)", "--arg", "s=length(66)"];
    let (out, _) = expect(0, &[&wgsl[..], &both].concat());
    assert!(out.contains("66>") && out.contains("77>"), "{out}");
    let s = out.find("66>").expect("a length");
    assert!(s < out.find("77>").expect("a length"), "{out}");
    expect(0, &[&emit[..], &["msl"], &both].concat());
    let (_, err) = expect(2, &[&emit[..], &["llvm"], &both].concat());
    assert!(err.contains("leave them out"), "{err}");
    for (given, why) in [
        ("s=length(64)", "`r` has no length, and others have"),
        ("x=iota(64)", "`x` is none: leave it out"),
        ("q=length(64)", "has no parameter `q`"),
        ("s=zeros(64)", "as in s=length(64)"),
        (
            "r=length(18446744073709551615)",
            "more than the limit of 65536",
        ),
    ] {
        let more = if given.starts_with("r=") {
            "s=length(64)"
        } else {
            ""
        };
        let more: &[&str] = if more.is_empty() {
            &[]
        } else {
            &["--arg", more]
        };
        let (_, err) = expect(2, &[&wgsl[..], &["--arg", given], more].concat());
        assert!(err.contains(why), "{err}");
    }
    let dispatch = "{\"grid\": [64], \"args\": {\"x\": \"iota(64)\", \"s\": \"length(66)\", \"r\": \"length(77)\"}}";
    let dispatch = folder.file("dispatch.json", dispatch);
    let from_file = [&wgsl[..], &["--inputs", text(&dispatch)]].concat();
    let (again, _) = expect(0, &from_file);
    assert_eq!(again, out);
    let (other, _) = expect(0, &[&from_file[..], &["--arg", "s=length(67)"]].concat());
    assert_eq!(other, out.replace("66>", "67>").replace("66u", "67u"));
}

#[test]
fn a_kernel_is_printed_as_a_targets_code() {
    let folder = Folder::new();
    let file = folder.file("scale.inv", SCALE);
    let wgsl = ["emit", text(&file), "--target", "wgsl"];
    let (out, _) = expect(0, &[&wgsl[..], &["--threadgroup", "64"]].concat());
    assert!(out.contains("@compute"), "{out}");
    let (_, err) = expect(2, &wgsl);
    assert!(err.contains("give --threadgroup"), "{err}");
    let (out, _) = expect(0, &["emit", text(&file), "--target", "msl"]);
    assert!(out.contains("kernel void scale("), "{out}");
    let (_, err) = expect(2, &[&wgsl[..], &["--kernel", "nope"]].concat());
    assert!(err.contains("has no kernel `nope`"), "{err}");
    let strict = SCALE.replace("%by: f32) {", "%by: f32) strict {");
    let file = folder.file("strict.inv", &strict);
    let args = [
        "emit",
        text(&file),
        "--target",
        "wgsl",
        "--threadgroup",
        "64",
    ];
    let (_, err) = expect(1, &args);
    assert!(err.contains("error[unsupported-float-mode]"), "{err}");
    let file = folder.file(
        "constant.inv",
        "function_constant @N: u32 id(0)\nkernel @k(%y: device write u32) threadgroup(8) {\n    \
         %n = function_constant @N\n    store %y[%n], %n\n}\n",
    );
    let args = ["emit", text(&file), "--target", "wgsl"];
    let (_, err) = expect(2, &args);
    assert!(err.contains("--const N= is missing"), "{err}");
    let (out, _) = expect(0, &[&args[..], &["--const", "N=77"]].concat());
    assert!(out.contains("77"), "{out}");
    let (_, err) = expect(2, &[&args[..], &["--const", "M=77"]].concat());
    assert!(err.contains("there is no function constant `@M`"), "{err}");
    let (out, _) = expect(0, &["emit", text(&file), "--target", "msl"]);
    assert!(out.contains("[[function_constant("), "{out}");
    expect(2, &["emit", text(&file), "--target", "nope"]);
    let file = folder.file("scale.inv", SCALE);
    let (out, _) = expect(0, &["emit", text(&file), "--target", "llvm"]);
    assert!(
        out.contains("define") && out.contains("@invar_kernel"),
        "{out}"
    );
    let asm = ["emit", text(&file), "--target", "asm", "--processor"];
    let (out, _) = expect(0, &[&asm[..], &["x86-64-v4"]].concat());
    assert!(out.contains("vmulps") && out.contains("zmm"), "{out}");
    let (out, _) = expect(0, &[&asm[..], &["aarch64"]].concat());
    assert!(out.contains("fmul"), "{out}");
    let (_, err) = expect(2, &[&asm[..], &["z80"]].concat());
    assert!(
        err.contains("there is no processor `z80`; there is native"),
        "{err}"
    );
}

#[test]
fn the_examples_are_clean_but_for_the_broken_one() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).expect("the examples") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|e| e != "inv") {
            continue;
        }
        let source = std::fs::read_to_string(&path).expect("text");
        if !source.contains("; run:") {
            continue;
        }
        let broken = text(&path).ends_with("-broken.inv");
        expect(i32::from(broken), &["check", text(&path)]);
        seen += 1;
    }
    assert!(seen >= 8, "only {seen} examples");
}

const VALUES: &str = "\
function_constant @M: u32 id(0)
function_constant @D: f32 = 2.0 id(1)
kernel @k(%x: device read f32, %y: device write f32, %n: u32, %b: u8) {
    %i = thread_position_in_grid x
    %m = function_constant @M
    %v = load %x[%i]
    store %y[%m], %v
}
";

#[test]
fn a_value_that_does_not_fit_is_bad_usage_that_names_it() {
    let folder = Folder::new();
    let file = folder.file("values.inv", VALUES);
    let good = ["x=zeros(1)", "y=zeros(1)", "n=1", "b=1"];
    let run = |code: i32, change: (&str, &str), constants: &[&str], more: &[&str]| {
        let mut args = vec!["run", text(&file), "--grid", "1", "--threadgroup", "1"];
        let (name, changed) = change;
        for arg in good {
            let is_changed = !name.is_empty() && arg.starts_with(name);
            args.extend(["--arg", if is_changed { changed } else { arg }]);
        }
        for constant in constants {
            args.extend(["--const", constant]);
        }
        args.extend(more);
        expect(code, &args)
    };
    run(0, ("", ""), &["M=0"], &[]);
    run(0, ("", ""), &["@M=0", "D=1.5"], &[]);
    for (name, changed) in [
        ("n=", "n=3.5"),
        ("n=", "n=-1"),
        ("n=", "n=true"),
        ("n=", "n=[1, 2]"),
        ("b=", "b=300"),
        ("b=", "b=0x100"),
        ("x=", "x=[1e39]"),
        ("x=", "x=fill(2, seven)"),
        ("x=", "x=rev([1, true])"),
        ("x=", "x=zeros(99999999999)"),
    ] {
        let (out, err) = run(2, (name, changed), &["M=0"], &[]);
        let parameter = &name[..1];
        assert!(
            err.starts_with(&format!("invar: argument for `%{parameter}`: "))
                || err.starts_with(&format!("invar: --arg {parameter}: ")),
            "{err}"
        );
        assert!(err.lines().count() == 1 && out.is_empty(), "{out}{err}");
        let (out, _) = run(2, (name, changed), &["M=0"], &["--json"]);
        let document: serde_json::Value = serde_json::from_str(&out).expect("JSON");
        let sentence = document["error"].as_str().expect("a sentence");
        assert_eq!(format!("invar: {sentence}"), err.trim_end());
    }
    for (constants, why) in [
        (&[][..], "to run kernel `k`, --const M= is missing"),
        (&["M=0", "M=1"], "--const M is given twice"),
        (
            &["M=1.5"],
            "--const M: `1.5` is not an integer, which u32 needs",
        ),
        (
            &["M=0", "N=1"],
            "--const N: there is no function constant `@N`; the module has `@M`, `@D`",
        ),
    ] {
        let (out, err) = run(2, ("", ""), constants, &[]);
        assert!(err.contains(why), "{err}");
        assert!(err.lines().count() == 1 && out.is_empty(), "{out}{err}");
    }
    let (_, err) = run(2, ("", ""), &["M=0"], &["--arg", "z=1"]);
    assert!(
        err.contains("--arg z: kernel `k` has no parameter `z`; it has `x`, `y`, `n`, `b`"),
        "{err}"
    );
    let (_, err) = run(2, ("", ""), &["M=0"], &["--arg", "n=2"]);
    assert!(err.contains("--arg n is given twice"), "{err}");
}

/// Data that is none, and what is said of it.
const BROKEN: &str = r#"[ => expected a number, `true`, `false`, `inf` or `nan`, found the end of the text
[1,2 => expected `,` or `]`, found the end of the text
[1 2] => expected `,` or `]`, found `2`
[1],[2] => expected the end of the text, found `,`
1, y = 2 => expected the end of the text, found `,`
1) grid(2 => expected the end of the text, found `)`
rev(3 => expected `)`, found the end of the text
random(4, => expected a seed, found the end of the text
3 ; 4 => expected the end of the text, found `;`
" => a quote that nothing closes
seven => there is no data expression `seven`
rev(reference) => `reference` is for what a `; run:` line expects"#;

#[test]
fn data_that_is_broken_off_or_goes_on_is_told_in_its_own_words() {
    let folder = Folder::new();
    let file = folder.file("values.inv", VALUES);
    for line in BROKEN.lines() {
        let (data, why) = line.split_once(" => ").expect("a row");
        let given = format!("x={data}");
        let (out, err) = expect(2, &["run", text(&file), "--grid", "1", "--arg", &given]);
        let begin = format!("invar: --arg x: `{data}` is not data (");
        assert!(err.starts_with(&begin) && err.contains(why), "{err}");
        let said = err
            .rsplit_once("; write @file")
            .map_or("", |(said, _)| said);
        let leaks = said.contains("`grid`") || said.contains("directive");
        assert!(
            !leaks && err.lines().count() == 1 && out.is_empty(),
            "{err}"
        );
    }
}

#[test]
fn bad_usage_is_json_too() {
    for args in [
        &["check", "none.inv", "--json"][..],
        &["run", "none.inv", "--json", "--grid", "x"],
        &["devices", "--json", "--nope"],
        &["run", "--json"],
        &["bench", "none.inv", "--json", "--seconds", "long"],
        &["explain", "nope", "--json"],
    ] {
        let (out, err) = expect(2, args);
        let document: serde_json::Value = serde_json::from_str(&out).expect("JSON");
        let sentence = document["error"].as_str().expect("a sentence");
        assert_eq!(err, format!("invar: {sentence}\n"), "{out}");
        let quiet: Vec<&str> = args.iter().copied().filter(|a| *a != "--json").collect();
        if quiet[0] != "devices" {
            assert_eq!(expect(2, &quiet).0, "");
        }
    }
    let (out, _) = expect(0, &["check", "--json", "--help"]);
    assert!(out.contains("Usage"), "{out}");
}

#[test]
fn a_file_of_a_run_line_that_cannot_be_read_is_named_with_the_line() {
    let folder = Folder::new();
    for (line, change) in [
        ("x = @none.npy", "x = iota(4)"),
        ("== @none.npy", "== [0, 2, 4, 6]"),
    ] {
        let file = folder.file("scale.inv", &SCALE.replace(change, line));
        for command in ["run", "check"] {
            let (_, err) = expect(2, &[command, text(&file)]);
            assert!(err.contains("scale.inv:7:3: "), "{err}");
            assert!(err.contains("none.npy: no such file"), "{err}");
            assert_eq!(err.lines().count(), 1, "{err}");
        }
    }
    // A file that can be read but does not fit is the kernel's finding, at its place.
    floats(&folder.path("none.npy"), &[1.0; 4]);
    let text_of_ints = SCALE.replace("device read f32", "device read u32");
    let text_of_ints = text_of_ints.replace("x = iota(4)", "x = @none.npy");
    let text_of_ints =
        text_of_ints.replace("%v = load %x[%i]", "%u = load %x[%i]\n%v = cast f32 %u");
    let file = folder.file("ints.inv", &text_of_ints);
    let (_, err) = expect(1, &["run", text(&file)]);
    assert!(err.contains("error[type-mismatch]"), "{err}");
}

#[test]
fn what_is_asked_for_and_cannot_be_done_is_no_success() {
    let folder = Folder::new();
    let file = folder.file("scale.inv", SCALE);
    let y = folder.path("y.npy");
    let out_option = format!("y=@{}", text(&y));
    let (out, _) = expect(0, &["devices", "--json"]);
    let devices: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    let devices = devices.as_array().expect("a list");
    let cpu = devices.iter().find(|d| d["name"] == "cpu").expect("a CPU");
    let other = if cpu["simdgroup_size"] == 128 {
        "64"
    } else {
        "128"
    };
    let asked = ["run", text(&file), "--device", "cpu", "--simdgroup", other];
    let (out, err) = expect(2, &[&asked[..], &["--out", &out_option]].concat());
    assert!(
        err.contains("cannot run @scale: device `cpu` has simdgroups of"),
        "{err}"
    );
    assert!(out.is_empty() && !y.exists(), "{out}");
    let bench = [
        "bench",
        text(&file),
        "--device",
        "cpu",
        "--simdgroup",
        other,
    ];
    expect(2, &bench);

    // What a kernel requires is what it gets, so it may be asked for; no other size may.
    let own = cpu["simdgroup_size"].to_string();
    let required = SCALE.replacen(") {", &format!(") simdgroup({own}) {{"), 1);
    let file = folder.file("required.inv", &required);
    expect(
        0,
        &["run", text(&file), "--device", "cpu", "--simdgroup", &own],
    );
    for (status, device) in [(2, "cpu"), (1, "checked")] {
        let asked = ["run", text(&file), "--device", device, "--simdgroup", other];
        let (_, err) = expect(status, &asked);
        assert!(
            err.contains(&format!(
                "requires simdgroups of {own} threads, not {other}"
            )),
            "{err}"
        );
    }

    // A file's own run line asks too; only where others take place may one be left out.
    let narrow = SCALE.replace(
        "threadgroup(4)",
        &format!("threadgroup(4) simdgroup({other})"),
    );
    let file = folder.file("narrow.inv", &narrow);
    expect(2, &["run", text(&file), "--device", "cpu"]);
    let (out, _) = expect(0, &["run", text(&file)]);
    assert!(out.starts_with("@scale: right"), "{out}");
    let run_line = SCALE.split("; run").nth(1).expect("a run line");
    for (name, both) in [
        (
            "first.inv",
            format!("{SCALE}; run{}", narrow.split("; run").nth(1).expect("one")),
        ),
        ("second.inv", format!("{narrow}; run{run_line}")),
    ] {
        let file = folder.file(name, &both);
        let (out, _) = expect(0, &["run", text(&file), "--device", "cpu"]);
        assert!(
            out.contains("@scale: right") && out.contains("skipped @scale"),
            "{out}"
        );
        assert!(out.ends_with("1 run skipped\n"), "{out}");
        let (out, _) = expect(0, &["run", text(&file), "--device", "cpu", "--json"]);
        let document: serde_json::Value = serde_json::from_str(&out).expect("JSON");
        assert_eq!(document["skipped"], 1);
    }
}

#[test]
fn memory_of_the_checker_is_an_option_that_its_message_names() {
    let folder = Folder::new();
    let file = folder.file("scale.inv", SCALE);
    let check = ["check", text(&file), "--race-memory-bytes"];
    let (_, err) = expect(1, &[&check[..], &["16"]].concat());
    assert!(
        err.contains("error[check-limit]") && err.contains("--race-memory-bytes"),
        "{err}"
    );
    expect(0, &[&check[..], &["100000000"]].concat());
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_text() {
    let folder = Folder::new();
    let file = folder.file("scale.inv", &format!("\u{feff}{SCALE}"));
    let (out, _) = expect(0, &["run", text(&file)]);
    assert!(out.starts_with("@scale: right"), "{out}");
    let file = folder.file("broken.inv", "\u{feff}kernel @k( {\n");
    let (_, err) = expect(1, &["check", text(&file)]);
    assert!(err.contains("broken.inv:1:12"), "{err}");
}

#[cfg(unix)]
#[test]
fn what_stands_at_the_place_of_a_result_stays_what_it_is() {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
    let folder = Folder::new();
    let file = folder.file("scale.inv", SCALE);
    let run = |code: i32, name: &str| {
        let option = format!("y=@{}", text(&folder.path(name)));
        expect(code, &["run", text(&file), "--out", &option])
    };
    let print = |code: i32, name: &str| {
        let path = folder.path(name);
        expect(code, &["print", text(&file), "--binary", text(&path)])
    };
    let mode = |name: &str| {
        let metadata = std::fs::metadata(folder.path(name)).expect("it is there");
        metadata.permissions().mode() & 0o7777
    };
    let set = |name: &str, mode: u32| {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(folder.path(name), permissions).expect("set");
    };
    // `file` was made as every program makes files.
    run(0, "y.npy");
    print(0, "k.invb");
    assert_eq!(
        (mode("y.npy"), mode("k.invb")),
        (mode("scale.inv"), mode("scale.inv"))
    );
    set("y.npy", 0o640);
    set("k.invb", 0o604);
    run(0, "y.npy");
    print(0, "k.invb");
    assert_eq!((mode("y.npy"), mode("k.invb")), (0o640, 0o604));
    symlink("y.npy", folder.path("link")).expect("linked");
    let before = std::fs::read(folder.path("y.npy")).expect("read");
    std::fs::write(folder.path("y.npy"), "old").expect("written");
    run(0, "link");
    assert_eq!(std::fs::read(folder.path("y.npy")).expect("read"), before);
    let link = std::fs::symlink_metadata(folder.path("link")).expect("it is there");
    assert!(link.is_symlink());
    let two = [
        format!("y=@{}", text(&folder.path("link"))),
        format!("y=@{}", text(&folder.path("y.npy"))),
    ];
    let (_, err) = expect(2, &["run", text(&file), "--out", &two[0], "--out", &two[1]]);
    assert!(err.contains("two --out name the file"), "{err}");

    set("y.npy", 0o444);
    set("k.invb", 0o444);
    for (_, err) in [run(2, "y.npy"), run(2, "link"), print(2, "k.invb")] {
        assert!(err.contains("is read-only; make it writable"), "{err}");
        assert_eq!(err.lines().count(), 1, "{err}");
    }

    let pipe = folder.path("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
    assert!(made.success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read(pipe)
    });
    run(0, "pipe");
    assert_eq!(reader.join().expect("joined").expect("read"), before);
    let metadata = std::fs::symlink_metadata(&pipe).expect("it is there");
    assert!(metadata.file_type().is_fifo());
}

#[test]
fn a_damaged_array_file_is_refused_at_once() {
    let folder = Folder::new();
    let file = folder.file("scale.inv", &SCALE.replace("iota(4)", "@x.npy"));
    let header = "{".repeat(118);
    let bytes = [b"\x93NUMPY\x01\x00\x76\x00", header.as_bytes()].concat();
    std::fs::write(folder.path("x.npy"), bytes).expect("written");
    let (_, err) = expect(2, &["run", text(&file)]);
    assert!(
        err.contains("x.npy: not a NumPy array file (its header"),
        "{err}"
    );
}

#[test]
fn options_win_over_run_lines_and_kernels_without_one_are_named() {
    let folder = Folder::new();
    let file = folder.file(
        "two.inv",
        "kernel @order(%x: device read_write u32) threadgroup(32) {
    %t = thread_position_in_grid x
    %tile = alloc threadgroup u32[32]
    store %tile[%t], %t
    barrier simdgroup [threadgroup]
    %last = const u32 31
    %r = sub %last, %t
    %v = load %tile[%r]
    store %x[%t], %v
}
kernel @alone(%x: device read_write u32) {
}
; run: @order(x = zeros(32)) grid(32) simdgroup(32)
",
    );
    let (out, _) = expect(0, &["check", text(&file)]);
    assert!(out.contains("clean @order"), "{out}");
    assert!(
        out.contains("skipped @alone: no `; run:` line names it"),
        "{out}"
    );
    assert!(out.contains("1 run skipped"), "{out}");
    let (out, err) = expect(1, &["check", text(&file), "--simdgroup", "8"]);
    assert!(err.contains("error[data-race]"), "{out}{err}");
}

#[test]
fn a_kernels_file_and_results_of_runs_that_ended_are_kept() {
    let folder = Folder::new();
    let file = folder.file("scale.inv", SCALE);
    let name = format!("y=@{}", text(&file));
    let (_, err) = expect(2, &["run", text(&file), "--out", &name]);
    assert!(err.contains("is the kernel's own file"), "{err}");
    let (_, err) = expect(2, &["print", text(&file), "--binary", text(&file)]);
    assert!(err.contains("is the kernel's own file"), "{err}");
    assert_eq!(std::fs::read_to_string(&file).expect("there"), SCALE);

    let endless = folder.file(
        "endless.inv",
        "kernel @endless(%x: device read_write u32) threadgroup(1) {
    %zero = const u32 0
    %one = const u32 1
    %n = const u32 4294967295
    %r = for %k = %zero to %n step %one carry(%a = %zero) {
        %b = add %a, %k
        yield %b
    }
    store %x[%zero], %r
}
; run: @endless(x = zeros(4)) grid(1)
",
    );
    let kept = folder.file("kept.npy", "kept");
    let name = format!("x=@{}", text(&kept));
    let limited = ["--device", "checked", "--time-limit", "0.2", "--out", &name];
    let (out, err) = expect(1, &[&["run", text(&endless)], &limited[..]].concat());
    assert!(err.contains("error[deadline-exceeded]"), "{out}{err}");
    assert!(
        out.contains("x is not written: the run has errors"),
        "{out}"
    );
    assert_eq!(std::fs::read_to_string(&kept).expect("there"), "kept");
}

#[test]
fn data_that_is_none_is_told_with_the_reason() {
    let folder = Folder::new();
    let file = folder.file("scale.inv", SCALE);
    let refused = |data: &str| {
        let given = format!("x={data}");
        let rest = [
            "--grid",
            "4",
            "--threadgroup",
            "4",
            "--arg",
            "y=zeros(4)",
            "--arg",
            "by=2",
        ];
        let (out, err) = expect(
            2,
            &[&["run", text(&file), "--arg", &given], &rest[..]].concat(),
        );
        assert_eq!(
            (out.as_str(), err.lines().count()),
            ("", 1),
            "{data}: {err}"
        );
        err
    };
    for nothing in ["@", "@\"\""] {
        assert!(
            refused(nothing).contains("names no file; write x=@x.npy"),
            "{nothing}"
        );
    }
    for (data, why) in [
        ("zeros(1e18)", "is not an integer"),
        ("iota(-4)", "does not fit"),
        ("random(1.5)", "is not an integer"),
        ("zeros(99999999999999999999999)", "does not fit"),
        ("foo(3)", "`foo`"),
        ("[1, 2", "expected"),
    ] {
        let told = refused(data);
        assert!(told.contains(&format!("`{data}` is not data (")), "{told}");
        assert!(
            told.contains(why) && told.contains("a whole number from 0 on"),
            "{told}"
        );
    }
    assert!(refused("zeros(1000000000000000000)").contains("more than 1073741824 bytes"));
}

#[test]
fn names_of_megabytes_are_cut() {
    let folder = Folder::new();
    let file = folder.file("scale.inv", SCALE);
    // An argument of a process has at most 128 KiB on Linux.
    let long = "a".repeat(120_000);
    let run = ["run", text(&file), "--grid", "4", "--threadgroup", "4"];
    let [arg, data, at] = [
        format!("{long}=zeros(4)"),
        format!("x={long}"),
        format!("x=@{long}"),
    ];
    for option in [
        &["--arg", &arg][..],
        &["--arg", &data],
        &["--arg", &at],
        &["--arg", "x=zeros(4)", "--kernel", &long],
        &["--arg", "x=zeros(4)", "--const", &long],
        &["--arg", "x=zeros(4)", "--grid", &long],
        &["--arg", "x=zeros(4)", "--device", &long],
        &["--arg", "x=zeros(4)", "--out", &long],
        &["--arg", &long],
    ] {
        let (_, err) = expect(2, &[&run[..], option].concat());
        assert!(err.len() < 1000, "{} bytes of {option:.40?}", err.len());
    }
    for command in ["check", "explain", "ops", "layout"] {
        let (_, err) = expect(2, &[command, &long]);
        assert!(err.len() < 1000, "{command}: {} bytes", err.len());
    }
    let (out, err) = expect(2, &["explain", &long, "--json"]);
    assert!(out.len() + err.len() < 2000);
}

#[cfg(target_os = "linux")]
#[test]
fn too_little_memory_is_one_sentence() {
    let folder = Folder::new();
    let file = folder.file("scale.inv", SCALE);
    // A gibibyte each, in a process that may have less.
    let script = "ulimit -v 1500000; exec \"$0\" \"$@\"";
    let n = 1 << 28;
    for (command, data, more) in [
        ("run", format!("random({n})"), &["--device", "cpu"][..]),
        (
            "run",
            format!("rev(fill({n}, 1))"),
            &["--device", "checked"],
        ),
        ("run", format!("zeros({})", n / 2), &["--device", "checked"]),
        ("check", format!("iota({})", n / 2), &[]),
        ("check", format!("zeros({})", n / 4), &[]),
    ] {
        let x = format!("x={data}");
        let y = format!("y={data}");
        let output = Command::new("sh")
            .args([
                "-c",
                script,
                env!("CARGO_BIN_EXE_invar"),
                command,
                text(&file),
            ])
            .args([
                "--grid",
                "4",
                "--threadgroup",
                "4",
                "--arg",
                "by=2",
                "--arg",
                &x,
                "--arg",
                &y,
            ])
            .args(more)
            .output()
            .expect("the shell starts");
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(
            matches!(output.status.code(), Some(1 | 2)) && err.contains("there is no memory for"),
            "{command} {data}: {:?}\n{err}",
            output.status
        );
        assert!(!err.contains("backtrace"), "{err}");
    }
}

/// Two sentences: what is refused, and the run goes on.
#[cfg(unix)]
#[test]
fn a_cache_that_others_can_write_is_told_once() {
    use std::os::unix::fs::PermissionsExt;

    let folder = Folder::new();
    let file = folder.file("scale.inv", SCALE);
    let cache = folder.path("two\nlines");
    std::fs::create_dir(&cache).expect("made");
    let set = |mode| {
        let mode = PermissionsExt::from_mode(mode);
        std::fs::set_permissions(&cache, mode).expect("ours");
    };
    let run = |environment: &[(&str, &str)]| {
        let output = Command::new(env!("CARGO_BIN_EXE_invar"))
            .args(["run", text(&file)])
            .env_remove("INVAR_CACHE_DIR")
            .env_remove("INVAR_CACHE")
            .current_dir(folder.0.path())
            .envs(environment.iter().copied())
            .output()
            .expect("the command starts");
        assert!(output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    set(0o777);
    let told = run(&[("INVAR_CACHE_DIR", text(&cache))]);
    let warning = format!(
        "invar: warning: compiled kernels are not kept in {}",
        text(&cache).replace('\n', "\\n")
    );
    assert!(
        told.starts_with(&warning) && told.lines().count() == 1,
        "{told}"
    );
    assert_eq!(std::fs::read_dir(&cache).expect("there").count(), 0);
    set(0o700);
    assert_eq!(run(&[("INVAR_CACHE_DIR", text(&cache))]), "");
    assert!(std::fs::read_dir(&cache).expect("there").count() > 0);
    // A relative folder of the user is ignored.
    run(&[
        ("XDG_CACHE_HOME", "relative"),
        ("HOME", text(folder.0.path())),
    ]);
    assert!(!folder.path("relative").exists());
    if cfg!(target_os = "linux") {
        assert!(folder.path(".cache/invar").is_dir());
    }
}
