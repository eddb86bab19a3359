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

const TYPES: &str = "\
#include <metal_stdlib>
using namespace metal;
struct Layer { device const float *w; uint n; };
struct Net { Layer layers[2]; float scale; };
struct Inner { float x; uint k; };
struct Many { uint n; bool negative; float3 way; float w[3]; Inner in[2]; };
struct Pair { ushort key; uchar pad_, value; };
kernel void fields(constant Many &p [[buffer(0)]], device float *y [[buffer(1)]], uint i [[thread_position_in_grid]]) {
    y[i] = p.w[i % 3] + p.way.z + (p.negative ? 100 : 0) + p.in[i & 1].k;
}
kernel void nested(constant Net &net [[buffer(0)]], device float *y [[buffer(1)]]) {
    y[0] = net.layers[0].n; y[1] = net.layers[1].n; y[2] = net.scale; y[3] = net.layers[1].w[0];
}
kernel void sizes(constant int3 &size [[buffer(0)]], constant bool &odd [[buffer(1)]], device int *y [[buffer(2)]]) {
    y[0] = size.x; y[1] = size.y; y[2] = size.z; y[3] = odd;
}
kernel void halves(device uint *y [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    if (i % 2 == 0) y[i] += i; else ((device half *)y)[2 * i] = half(i);
}
kernel void words(device const half *x [[buffer(0)]], device half *y [[buffer(1)]],
                  uint i [[thread_position_in_grid]]) {
    ((device uint *)y)[i] = ((device const uint *)x)[i];
}
kernel void pairs(device Pair *d [[buffer(0)]], threadgroup Pair *s [[threadgroup(0)]],
                  uint i [[thread_position_in_threadgroup]]) {
    s[i] = d[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    d[i].key = s[63 - i].key + s[i].value;
}
";

/// Data is written in the types of the source, however the kernel accesses it.
#[test]
fn data_has_the_types_of_the_source() {
    if !has_clang() {
        return;
    }
    let folder = Folder::new();
    let file = folder.file("types.metal", TYPES);
    let run = |kernel: &str, threads: &str, args: &[&str]| {
        let sizes = ["--grid", threads, "--threadgroup", threads];
        let head = ["run", text(&file), "--kernel", kernel];
        let args = args.iter().flat_map(|arg| ["--arg", arg]);
        let all: Vec<&str> = head.into_iter().chain(sizes).chain(args).collect();
        expect(0, &all).0
    };
    let p =
        "{n: 3, negative: true, way: [0, 0, 10], w: [1, 2, 3], in: [{k: 1000}, {x: 5, k: 2000}]}";
    let out = run("fields", "3", &[&format!("p={p}"), "y=zeros(3)"]);
    assert!(out.contains("y = [1111.0, 2112.0, 1113.0]"), "{out}");
    let out = run(
        "nested",
        "1",
        &[
            "net={layers: [{n: 16}, {n: 32}], scale: 0.5}",
            "net.layers.1.w=[7]",
            "y=zeros(4)",
        ],
    );
    assert!(out.contains("y = [16.0, 32.0, 0.5, 7.0]"), "{out}");
    let out = run(
        "sizes",
        "1",
        &["size=[64, 96, 48]", "odd=true", "y=zeros(4)"],
    );
    assert!(out.contains("y = [64, 96, 48, 1]"), "{out}");
    let out = run("halves", "4", &["y=iota(4)"]);
    assert!(out.contains("y = [0, 15360, 4, 16896]"), "{out}");
    let out = run("words", "2", &["x=[1, 2, 3, 4]", "y=zeros(4)"]);
    assert!(out.contains("y = [1.0, 2.0, 3.0, 4.0]"), "{out}");
    let head = ["run", text(&file), "--kernel", "words", "--grid", "2"];
    for (x, y) in [("iota(3)", "zeros(4)"), ("iota(4)", "zeros(3)")] {
        let (x, y) = (format!("x={x}"), format!("y={y}"));
        let args = ["--threadgroup", "2", "--arg", &x, "--arg", &y];
        let all: Vec<&str> = head.into_iter().chain(args).collect();
        let (_, err) = expect(2, &all);
        assert!(
            err.contains(
                "gets 3 elements, and the kernel accesses 2 at once: give it a multiple of 2"
            ),
            "{err}"
        );
    }
    let args = ["d=zeros(64)", "s=length(64)"].map(|arg| ["--arg", arg]);
    let head = ["check", text(&file), "--kernel", "pairs", "--grid", "64"];
    let head = head.into_iter().chain(["--threadgroup", "64"]);
    let all: Vec<&str> = head.chain(args.concat()).collect();
    let (out, _) = expect(0, &all);
    assert!(out.starts_with("clean @pairs"), "{out}");
}

/// What a host has in memory is what the kernel reads, also where a struct ends in padding.
#[test]
fn bytes_of_a_host_are_those_of_the_source() {
    if !has_clang() {
        return;
    }
    let folder = Folder::new();
    let file = folder.file("types.metal", TYPES);
    let mut bytes = [0_u8; 40];
    for (at, word) in [(8, 16), (24, 32), (32, 0.5_f32.to_bits())] {
        bytes[at..at + 4].copy_from_slice(&u32::to_le_bytes(word));
    }
    let host = folder.file("net.bin", "");
    std::fs::write(&host, bytes).expect("written");
    let net = format!("net=@{}", text(&host));
    let args = [&*net, "net.layers.1.w=[7]", "y=zeros(4)"].map(|arg| ["--arg", arg]);
    let head = ["run", text(&file), "--kernel", "nested", "--grid", "1"];
    let head = head.into_iter().chain(["--threadgroup", "1"]);
    let (out, _) = expect(0, &head.chain(args.concat()).collect::<Vec<_>>());
    assert!(out.contains("y = [16.0, 32.0, 0.5, 7.0]"), "{out}");
}

/// A form names the fields to fill in, and takes objects in objects.
#[test]
fn forms_have_fields() {
    if !has_clang() {
        return;
    }
    let folder = Folder::new();
    let file = folder.file("types.metal", TYPES);
    let (form, _) = expect(0, &["inputs", text(&file), "--kernel", "fields"]);
    for field in ["\"n\": 0", "\"negative\": false", "\"way\"", "\"k\": 0"] {
        assert!(form.contains(field), "{form}");
    }
    let form = "{\"entry\": \"fields\", \"grid\": [3], \"threadgroup\": [3], \"args\": {\"y\": \"zeros(3)\",
        \"p\": {\"negative\": true, \"way\": [0, 0, 10], \"w\": [1, 2, 3], \"in\": [{\"k\": 1000}, {\"k\": 2000}]}}}";
    let form = folder.file("fields.json", form);
    let (out, _) = expect(0, &["run", text(&file), "--inputs", text(&form)]);
    assert!(out.contains("y = [1111.0, 2112.0, 1113.0]"), "{out}");
    let args = ["--grid", "3", "--threadgroup", "3", "--arg", "y=zeros(3)"];
    let wrong = [
        (
            "p={m: 3}",
            "there is no field `m`; there is `n`, `negative`, `way`, `w[0]`",
        ),
        (
            "p={in: [{k: 1}, {j: 1}]}",
            "there is no field `j` in `in[1]`; there is `x`, `k`",
        ),
        ("p={w: [1, 2]}", "`w` has 3 values, and 2 are given"),
        ("p={n 3}", "`n 3`: write FIELD: VALUE"),
        ("p=[{n: 3}", "does not end with its bracket"),
    ];
    for (arg, why) in wrong {
        let head = ["run", text(&file), "--kernel", "fields", "--arg", arg];
        let (_, err) = expect(2, &[&head[..], &args[..]].concat());
        assert!(err.contains(why), "{arg}: {err}");
    }
}

const NUMBERS: &str = "\
#include <metal_stdlib>
using namespace metal;
struct Flags { int n; bool one; bool2 two; bool3 three; };
kernel void flags(constant Flags &f, device int *y, uint i [[thread_position_in_grid]]) {
    y[i] = f.n + (f.one ? 10 : 0) + (f.two.y ? 100 : 0) + (f.three.z ? 1000 : 0);
}
kernel void numbers(constant uint &count, constant const float &scale, constant bool &negative, constant uint3 &size,
                    constant int *list, device float *y, uint i [[thread_position_in_grid]]) {
    y[i] = (i < count ? scale : 0) * (negative ? -1 : 1) * size[i % 3] + list[i];
}
";

/// A number by reference is one to be filled in, and a number is what it takes.
#[test]
fn forms_have_numbers_to_fill_in() {
    if !has_clang() {
        return;
    }
    let folder = Folder::new();
    let file = folder.file("numbers.metal", NUMBERS);
    let (form, _) = expect(0, &["inputs", text(&file), "--kernel", "numbers"]);
    let filled: serde_json::Value = serde_json::from_str(&form).expect("a form");
    let args = &filled["args"];
    assert!(args["count"].is_null() && args["scale"].is_null() && args["negative"].is_null());
    assert_eq!(args["size"], serde_json::json!([0, 0, 0]));
    assert_eq!(args["list"], "random(1024, 1)");
    let file_of = folder.file("form.json", &form);
    let given = ["run", text(&file), "--inputs", text(&file_of)];
    let (_, err) = expect(2, &given);
    assert!(err.contains("`count` is not filled in yet"), "{err}");
    let form = form.replace("\"count\": null", "\"count\": 2");
    let form = form.replace("\"scale\": null", "\"scale\": 0.5");
    let form = form.replace("\"negative\": null", "\"negative\": true");
    let file_of = folder.file("form.json", &form);
    let sizes = ["--grid", "3", "--threadgroup", "3", "--arg", "y=zeros(3)"];
    let args = ["--arg", "list=[1, 2, 3]", "--arg", "size=[2, 4, 8]"];
    let given = ["run", text(&file), "--inputs", text(&file_of)];
    let (out, _) = expect(0, &[&given[..], &sizes, &args].concat());
    assert!(out.contains("y = [0.0, 0.0, 3.0]"), "{out}");
    let wrong = ["--arg", "count=zeros(2)"];
    let (_, err) = expect(2, &[&given[..], &sizes, &args, &wrong].concat());
    assert!(err.contains("`count`: the variable has 1 element"), "{err}");
}

/// Of a vector of `bool` each component is one, and what is none is told with its field.
#[test]
fn vectors_of_bool_are_true_or_false() {
    if !has_clang() {
        return;
    }
    let folder = Folder::new();
    let file = folder.file("flags.metal", NUMBERS);
    let (form, _) = expect(0, &["inputs", text(&file), "--kernel", "flags"]);
    let form: serde_json::Value = serde_json::from_str(&form).expect("a form");
    let no = serde_json::json!([false, false]);
    assert_eq!(form["args"]["f"]["two"], no);
    let head = ["run", text(&file), "--kernel", "flags", "--grid", "1"];
    let head = [
        &head[..],
        &["--threadgroup", "1", "--arg", "y=zeros(1)", "--arg"],
    ]
    .concat();
    for fields in [
        "f={n: 5, one: true, two: [false, true], three: [0, 0, 1]}",
        "f={n: 5, one: 1, two: [0, 1], three: [false, false, true]}",
    ] {
        let (out, _) = expect(0, &[&head[..], &[fields]].concat());
        assert!(out.contains("y = [1115]"), "{fields}: {out}");
    }
    for (fields, why) in [
        ("f={two: [0, 2]}", "--arg f: `two[1]`: `2` is not a bool"),
        ("f={n: 1.5}", "--arg f: `n`: `1.5` is not an integer"),
    ] {
        let (_, err) = expect(2, &[&head[..], &[fields]].concat());
        assert!(err.contains(why), "{fields}: {err}");
    }
}

const PARTS: &str = "\
#include <metal_stdlib>
using namespace metal;
struct P { float x[2]; float y; };
kernel void fill(device P *q, device float4 *r, uint i [[thread_position_in_grid]]) {
    q[i].x[0] = 1; q[i].x[1] = 2; q[i].y = 3;
    r[i] = float4(i);
}
";

/// Conditions of a proof count elements as the source does.
#[test]
fn conditions_count_elements_of_the_source() {
    if !has_clang() {
        return;
    }
    let folder = Folder::new();
    let file = folder.file("parts.metal", PARTS);
    let (out, _) = expect(0, &["prove", text(&file)]);
    assert!(out.contains("grid.x <= length(q)"), "{out}");
    assert!(out.contains("grid.x <= length(r)"), "{out}");
}

const IN_BYTES: &str = "\
#include <metal_stdlib>
using namespace metal;
struct Item { float pad; int x; };
kernel void parted(threadgroup uchar *room [[threadgroup(0)]], device Item *y, uint i [[thread_position_in_grid]]) {
    threadgroup int *ints = (threadgroup int *)(room + 16);
    threadgroup half *halves = (threadgroup half *)room;
    if (i < 8) halves[i] = half(i);
    ints[i] = int(i);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[i].pad = float(halves[i % 8]);
    y[i].x = ints[i];
}
";

/// A host gives the length of threadgroup memory in bytes; fields that an author calls `pad` are shown.
#[test]
fn threadgroup_memory_of_bytes_is_counted_in_bytes() {
    if !has_clang() {
        return;
    }
    let folder = Folder::new();
    let file = folder.file("parted.metal", IN_BYTES);
    let run = |command: &'static str, status, bytes: &str| {
        let room = format!("room=length({bytes})");
        let head = [command, text(&file), "--grid", "16", "--threadgroup", "16"];
        let args = ["--arg", &room, "--arg", "y=zeros(16)"];
        let all: Vec<&str> = head.into_iter().chain(args).collect();
        expect(status, &all)
    };
    let (out, _) = run("run", 0, "80");
    assert!(
        out.contains("y = [{pad: 0.0, x: 0}, {pad: 1.0, x: 1}, "),
        "{out}"
    );
    let (_, err) = run("check", 1, "76");
    assert!(
        err.contains("writes `room[76]`, and `room` has 76 elements"),
        "{err}"
    );
}

const KEYS: &str = "\
#include <metal_stdlib>
using namespace metal;
struct Pair { ushort key; uchar value; };
kernel void put(device const Pair *p, device uint *y, uint i [[thread_position_in_grid]]) {
    threadgroup Pair own[8];
    own[i % 8].key = i;
    if (p[i].key < 4) { y[p[i].key] = p[i].value + own[i % 8].key; }
}
";

/// The command that a proof gives for a launch which breaks a kernel has data of the source's types, and shows the same.
#[test]
fn launches_that_were_found_are_in_the_types_of_the_source() {
    if !has_clang() {
        return;
    }
    let folder = Folder::new();
    let file = folder.file("keys.metal", KEYS);
    let (out, err) = expect(1, &["prove", text(&file)]);
    let said = format!("{out}{err}");
    let first = said.lines().find(|line| line.starts_with("error["));
    let first = first.expect("a finding");
    let command = said.lines().find_map(|l| l.trim().strip_prefix("invar "));
    // What is in quotes has spaces.
    let words = command.expect("a command").split('\'').enumerate();
    let words = words.flat_map(|(number, part)| match number % 2 {
        0 => part.split_whitespace().collect::<Vec<_>>(),
        _quoted => vec![part],
    });
    let words: Vec<&str> = words.collect();
    let (out, err) = expect(1, &words);
    assert!(format!("{out}{err}").contains(first), "{said}\n{out}{err}");
}

const MATRICES: &str = "\
#include <metal_stdlib>
using namespace metal;
kernel void turn(constant float3x3 &m, constant float2x4 &w, device const packed_float3 *x, device float4 *y,
                 uint i [[thread_position_in_grid]]) { y[i] = float4(m * float3(x[i]), w[1][3]); }
";

/// A matrix by reference is a list of its columns, or of its numbers; so are vectors, also of several elements.
#[test]
fn matrices_are_lists_of_columns() {
    if !has_clang() {
        return;
    }
    let folder = Folder::new();
    let file = folder.file("turn.metal", MATRICES);
    let columns = [
        "[[0, 1, 2], [3, 4, 5], [6, 7, 8]]",
        "[[0, 1, 2, 3], [4, 5, 6, 7]]",
    ];
    let numbers = ["[0, 1, 2, 3, 4, 5, 6, 7, 8]", "[0, 1, 2, 3, 4, 5, 6, 7]"];
    for ([m, w], x) in [
        (columns, "x=[[1, 2, 3], [0, 1, 0]]"),
        (numbers, "x=[1, 2, 3, 0, 1, 0]"),
    ] {
        let (m, w) = (format!("m={m}"), format!("w={w}"));
        let args = ["--arg", &m, "--arg", &w, "--arg", x, "--arg", "y=zeros(8)"];
        let head = ["run", text(&file), "--grid", "2", "--threadgroup", "2"];
        let (out, _) = expect(0, &[&head[..], &args].concat());
        assert!(
            out.contains("y = [24.0, 30.0, 36.0, 7.0, 3.0, 4.0, 5.0, 7.0]"),
            "{out}"
        );
    }
}

const CONSTANT: &str = "\
#include <metal_stdlib>
constant int W [[function_constant(0)]];
constant bool odd [[function_constant(1)]];
kernel void k(device const int *x, device int *y, uint i [[thread_position_in_grid]]) { y[i] = x[i] * W + odd; }
// run: @k(x = iota(4), y = zeros(4)) grid(4) threadgroup(4) const(W = 2, odd = true) -> y == [1, 3, 5, 7]
";

/// A run line says the values of function constants; options win.
#[test]
fn run_lines_give_function_constants() {
    if !has_clang() {
        return;
    }
    let folder = Folder::new();
    let file = folder.file("k.metal", CONSTANT);
    for command in ["run", "check", "prove"] {
        expect(0, &[command, text(&file)]);
    }
    let (_, err) = expect(1, &["run", text(&file), "--const", "W=3"]);
    assert!(err.contains("element 1: expected 3, found 4"), "{err}");
    // What the command line runs is not what the line says.
    let args = ["--grid", "4", "--threadgroup", "4", "--arg", "x=iota(4)"];
    let (_, err) = expect(1, &[&["run", text(&file)], &args[..]].concat());
    assert!(
        err.contains("a function constant without a value") || err.contains("have no value"),
        "{err}"
    );
    let (_, err) = expect(2, &["run", text(&file), "--const", "0=3"]);
    assert!(
        err.contains("`W` has two values, by its name and by its number"),
        "{err}"
    );
    let line =
        "// run: @k(x = iota(4), y = zeros(4)) grid(4) threadgroup(4) const(W = 5, odd = true)\n";
    let two = folder.file("two.metal", &format!("{CONSTANT}{line}"));
    let (_, err) = expect(2, &["run", text(&two)]);
    assert!(err.contains("give `W` the values 2 and 5"), "{err}");
    let unknown = folder.file("none.metal", &CONSTANT.replace("const(W", "const(V = 1, W"));
    let (_, err) = expect(2, &["run", text(&unknown)]);
    assert!(err.contains("there is no function constant `V`"), "{err}");
}

const NODES: &str = "\
#include <metal_stdlib>
using namespace metal;
struct Block { half d; uchar qs[8]; };
struct Node { float v; int next; };
kernel void follow(device Node *n [[buffer(3)]], uint i [[thread_position_in_grid]]) {
    n[i].v += n[n[i].next].v; n[i].next = i;
}
kernel void quants(device const Block *b, device const float *mask, device float *o, uint i [[thread_position_in_grid]]) {
    o[i] = b[i / 8].d + b[i / 8 + 1].qs[i % 8];
    if (mask) { o[i] *= mask[i]; }
}
";

/// What is found is about fields, and counts what the source counts; so are inputs and results.
#[test]
fn reports_name_fields() {
    if !has_clang() {
        return;
    }
    let folder = Folder::new();
    let file = folder.file("nodes.metal", NODES);
    let sizes = |threads| ["--grid", threads, "--threadgroup", threads];
    let head = |command, kernel| [command, text(&file), "--kernel", kernel];
    let n = "n=[{v: 1, next: 1}, {v: 2, next: 0}, {v: 5, next: 3}]";
    let with = [&head("check", "follow")[..], &sizes("3"), &["--arg", n]].concat();
    let (_, err) = expect(1, &with);
    assert!(err.contains("error[data-race]: `n[0].v` is "), "{err}");
    assert!(
        err.contains("reads `n[3].v`, and `n` has 3 elements"),
        "{err}"
    );
    let n = "n=[{v: 2, next: 1}, {v: 3, next: 1}]";
    let sized = ["--grid", "2", "--threadgroup", "1", "--arg", n];
    let (out, _) = expect(0, &[&head("run", "follow")[..], &sized].concat());
    assert!(
        out.contains("n = [{v: 5.0, next: 0}, {v: 6.0, next: 1}]"),
        "{out}"
    );
    let args = [
        "--arg",
        "b=zeros(2)",
        "--arg",
        "mask=absent",
        "--arg",
        "o=zeros(16)",
    ];
    let (_, err) = expect(
        1,
        &[&head("check", "quants")[..], &sizes("16"), &args].concat(),
    );
    assert!(
        err.contains("reads `b[2].qs[0]`, and `b` has 2 elements"),
        "{err}"
    );
    assert!(!err.contains("`mask`"), "{err}");
}

const CELLS: &str = "\
#include <metal_stdlib>
using namespace metal;
struct Cell { float mass; ushort mark; ushort near[3]; };
constant os_log names(\"cells\", \"names\");
template <typename T> static T next(threadgroup const T * all, uint t) { return all[t + 1]; }
kernel void cells(device float *x [[buffer(0)]], uint t [[thread_position_in_threadgroup]]) {
    threadgroup Cell tg[4];
    tg[t].mass = t; tg[t].near[2] = 3;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    x[t] = next(tg, t).mass + tg[(t + 1) % 4].near[2];
    tg[t].near[2] = 2;
    names.log(\"%c%c\", 'a' + t, 0x3b1u);
}
";

/// Threadgroup memory of structs is counted in structs too, and what is wrong in it has the name of its field.
#[test]
fn reports_name_fields_in_threadgroup_memory() {
    if !has_clang() {
        return;
    }
    let folder = Folder::new();
    let file = folder.file("cells.metal", CELLS);
    let sizes = ["--grid", "4", "--threadgroup", "4", "--arg", "x=zeros(4)"];
    for _from_disk in [false, true] {
        let (_, err) = expect(1, &[&["check", text(&file)][..], &sizes].concat());
        assert!(
            err.contains("error[data-race]: `tg[0].near[2]` is "),
            "{err}"
        );
        assert!(
            err.contains("reads `tg[4].mass`, and `tg` has 4 elements"),
            "{err}"
        );
    }
    let (out, _) = expect(
        0,
        &[&["run", text(&file), "--device", "reference"][..], &sizes].concat(),
    );
    assert!(
        out.contains("a\u{3b1}") && out.contains("d\u{3b1}"),
        "{out}"
    );
}

/// A file of inputs may name a parameter once, by its name or by its number.
#[test]
fn forms_name_parameters_once() {
    if !has_clang() {
        return;
    }
    let folder = Folder::new();
    let file = folder.file("nodes.metal", NODES);
    let form = |args: &str| {
        let sizes = "\"entry\": \"follow\", \"grid\": [1], \"threadgroup\": [1]";
        folder.file("form.json", &format!("{{{sizes}, \"args\": {{{args}}}}}"))
    };
    let twice = form("\"n\": \"zeros(1)\", \"3\": \"zeros(2)\"");
    let head = ["run", text(&file), "--inputs"];
    let (_, err) = expect(2, &[&head[..], &[text(&twice)]].concat());
    assert!(err.contains("`n` is given twice, under two names"), "{err}");
    let once = form("\"3\": \"zeros(2)\"");
    let (out, _) = expect(
        0,
        &[&head[..], &[text(&once), "--arg", "n=zeros(1)"]].concat(),
    );
    assert!(out.contains("n = [{v: 0.0, next: 0}]"), "{out}");
}

/// Function constants without a value stand in a form to be filled in.
#[test]
fn forms_have_function_constants() {
    if !has_clang() {
        return;
    }
    let folder = Folder::new();
    let file = folder.file("k.metal", CONSTANT);
    let (form, _) = expect(0, &["inputs", text(&file)]);
    for constant in ["\"W\": null", "\"odd\": null"] {
        assert!(form.contains(constant), "{form}");
    }
    let open = folder.file("open.json", &form);
    let head = ["run", text(&file), "--inputs"];
    let (_, err) = expect(2, &[&head[..], &[text(&open)]].concat());
    assert!(
        err.contains("`W` is not filled in yet") || err.contains("`odd` is not filled in yet"),
        "{err}"
    );
    let form = form
        .replace("\"W\": null", "\"W\": 3")
        .replace("\"odd\": null", "\"odd\": true");
    let filled = folder.file("filled.json", &form);
    expect(0, &[&head[..], &[text(&filled)]].concat());
    // By their numbers too; what is left over says so.
    let by_number = ["--const", "0=3", "--const", "1=true"];
    expect(0, &[&head[..], &[text(&open)], &by_number].concat());
    let (_, err) = expect(1, &[&head[..], &[text(&open)], &by_number[..2]].concat());
    assert!(err.contains("depends on `odd`"), "{err}");
    let (form, _) = expect(0, &["inputs", text(&file), "--const", "W=2"]);
    assert!(
        form.contains("\"W\": 2") && form.contains("\"odd\": null"),
        "{form}"
    );
}

/// Comments may be of any encoding.
#[test]
fn a_source_may_hold_what_is_not_utf_8() {
    if !has_clang() {
        return;
    }
    let folder = Folder::new();
    let file = folder.path("k.metal");
    let text_of = CONSTANT.replace("#include", "// caf\u{e9}\n#include");
    let latin: Vec<u8> = text_of.chars().map(|c| c as u8).collect();
    std::fs::write(&file, latin).expect("written");
    expect(0, &["run", text(&file)]);
}

/// The sources of a folder whose names have an ending.
fn files_of(folder: &str, ending: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(folder);
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut files: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == ending));
    files.sort();
    files
}

/// Each line of `tests/metal` and of the pages runs as it stands; what a file expects is found.
#[test]
fn every_run_line_runs() {
    if !has_clang() {
        return;
    }
    let folder = Folder::new();
    let mut files: Vec<(PathBuf, String)> = Vec::new();
    for file in files_of("tests/metal", "metal") {
        let source = std::fs::read_to_string(&file).expect("a source");
        files.push((file, source));
    }
    assert!(files.len() >= 57, "{}", files.len());
    let mut pages = 0;
    for page in files_of("docs", "md") {
        let page_text = std::fs::read_to_string(&page).expect("a page");
        let blocks = page_text.split("```metal\n").skip(1);
        let blocks: Vec<&str> = blocks.filter_map(|b| b.split("```").next()).collect();
        let source = blocks.concat();
        if source.contains("// run:") {
            pages += 1;
            files.push((folder.file(&format!("page{pages}.metal"), &source), source));
        }
    }
    assert!(pages >= 1);
    let mut wrong = Vec::new();
    for (file, source) in &files {
        let rules: Vec<&str> = source.split("// error[").skip(1).collect();
        let rules = rules.iter().filter_map(|r| r.split(']').next());
        let rules: Vec<String> = rules.map(|rule| format!("error[{rule}]")).collect();
        let command = match rules.is_empty() {
            true => "run",
            false => "check",
        };
        // Run lines have no lists; the command has.
        let constants = source.lines().filter_map(|l| l.strip_prefix("// const: "));
        let constants = constants.flat_map(|constant| ["--const", constant]);
        let args: Vec<&str> = [command, text(file)].into_iter().chain(constants).collect();
        let output = invar(&args);
        let err = String::from_utf8_lossy(&output.stderr);
        let is_right = output.status.code() == Some(i32::from(!rules.is_empty()));
        if !is_right || rules.iter().any(|rule| !err.contains(&**rule)) {
            wrong.push(format!("{}: {:?}: {err}", file.display(), output.status));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
