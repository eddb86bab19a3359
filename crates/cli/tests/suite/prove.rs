//! Proofs: what each verdict prints and how it ends, certificates, and shaders.

use super::*;

/// Async copies are not proved.
const STAGE: &str = "\
kernel @stage(%x: device read f32, %y: device write f32) threadgroup(32) simdgroup(32) {
    %tile = alloc threadgroup f32[32]
    %t = thread_index_in_threadgroup
    %zero = const u32 0
    %n = const u32 32
    %e = async_copy %tile[%zero], %x[%zero], %n
    wait %e
    %v = load %tile[%t]
    store %y[%t], %v
}
; run: @stage(x = iota(32), y = zeros(32)) grid(32) threadgroup(32)
";

const SHADER: &str = "\
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
var<workgroup> tile: array<f32, 64>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) i: u32) {
  tile[i] = x[id.x];
  workgroupBarrier();
  y[id.x] = tile[63u - i];
}
";

#[test]
fn each_verdict_has_its_words_and_its_exit_code() {
    let folder = Folder::new();
    let scale = folder.file("scale.inv", SCALE);
    let (out, _) = expect(0, &["prove", text(&scale)]);
    let proved = "proved @scale: no data race, all 2 accesses in bounds, for every one-dimensional launch \
                  with grid.x <= length(x) and grid.x <= length(y)\n";
    assert_eq!(out, proved);

    let clash = folder.file("clash.inv", CLASH);
    let (out, err) = expect(1, &["prove", text(&clash)]);
    assert!(out.starts_with("broken @clash: "), "{out}");
    assert!(err.contains("error[data-race]"), "{err}");
    // The launch is one that the checker takes, and fails.
    let command = out.lines().nth(1).expect("a second line").trim();
    let unquoted = command.replace('\'', "");
    let words: Vec<&str> = unquoted.split(' ').skip(1).collect();
    expect(1, &words);

    let stage = folder.file("stage.inv", STAGE);
    let (out, _) = expect(0, &["prove", text(&stage)]);
    assert!(out.starts_with("open @stage: 2 of 4 accesses"), "{out}");
    assert!(out.contains("stage.inv:6: "), "{out}");
    expect(1, &["prove", text(&stage), "--deny", "open"]);

    let (out, _) = expect(0, &["prove", text(&stage), "--json"]);
    let told: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(told[0]["verdict"], "open");
    assert_eq!(told[0]["open"][0]["lines"][0], 6);
}

#[test]
fn a_certificate_is_checked_against_the_kernel() {
    let folder = Folder::new();
    let scale = folder.file("scale.inv", SCALE);
    let proof = folder.path("scale.proof");
    expect(0, &["prove", text(&scale), "--certificate", text(&proof)]);
    let (out, _) = expect(0, &["prove", text(&scale), "--verify", text(&proof)]);
    assert!(out.starts_with("verified @scale: "), "{out}");
    let other = SCALE.replace("store %y[%i]", "store %y[%j]").replace(
        "    %w = mul",
        "    %two = const u32 2\n    %j = div %i, %two\n    %w = mul",
    );
    let other = folder.file("other.inv", &other);
    expect(1, &["prove", text(&other), "--verify", text(&proof)]);
}

#[test]
fn a_shader_is_proved_as_it_stands() {
    let folder = Folder::new();
    let shader = folder.file("reverse.wgsl", SHADER);
    let (out, _) = expect(0, &["prove", text(&shader)]);
    assert!(out.starts_with("proved @main: no data race, "), "{out}");
    let racy = folder.file("racy.wgsl", &SHADER.replace("  workgroupBarrier();\n", ""));
    let (out, err) = expect(1, &["prove", text(&racy)]);
    assert!(out.starts_with("broken @main: "), "{out}");
    assert!(err.contains("error[data-race]"), "{err}");
    assert!(
        err.contains("put `workgroupBarrier()` between them"),
        "{err}"
    );
    let (_, err) = expect(2, &["prove", text(&shader), "--const", "N=3"]);
    assert!(err.contains("N"), "{err}");
}

#[test]
fn a_variable_of_a_fixed_size_has_as_many_elements() {
    let folder = Folder::new();
    let text_of = |guard: &str| {
        format!(
            "@group(0) @binding(0) var<uniform> table: array<vec4f, 8>;
@group(0) @binding(1) var<uniform> scale: f32;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) i: u32) {{
  if (id.x < arrayLength(&y)) {{ y[id.x] = table[{guard}].x * scale; }}
}}"
        )
    };
    let inside = folder.file("inside.wgsl", &text_of("i / 8"));
    let (out, _) = expect(0, &["prove", text(&inside)]);
    assert!(
        out.contains("for every one-dimensional dispatch of whole workgroups\n"),
        "{out}"
    );
    let beyond = folder.file("beyond.wgsl", &text_of("i"));
    let (out, err) = expect(1, &["prove", text(&beyond)]);
    assert!(out.starts_with("broken @main: "), "{out}");
    assert!(
        err.contains("reads element 8 of `table`, which has 8"),
        "{err}"
    );
}

/// Its sizes are in a struct.
const SIZED: &str = "\
struct Params { width: u32, height: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x >= params.width || id.y >= params.height) { return; }
  if (params.width <= 1000u && params.height <= 1000u) { y[id.y * params.width + id.x] += 1.0; }
}
";

#[test]
fn a_shader_has_conditions_by_the_names_of_its_fields() {
    let folder = Folder::new();
    let sized = folder.file("sized.wgsl", SIZED);
    let (out, _) = expect(0, &["prove", text(&sized), "--deny", "open"]);
    assert!(
        out.contains("params.width * params.height <= length(y)"),
        "{out}"
    );
}

/// Its threads race on `%tile`, and not on `%y`.
const UNORDERED: &str = "\
kernel @unordered(%x: device read f32, %y: device write f32) threadgroup(32) {
    %tile = alloc threadgroup f32[32]
    %i = thread_position_in_grid x
    %t = thread_position_in_threadgroup x
    %last = const u32 31
    %other = sub %last, %t
    %v = load %x[%i]
    store %tile[%t], %v
    %w = load %tile[%other]
    store %y[%i], %w
}
; run: @unordered(x = iota(64), y = zeros(64)) grid(64)
";

#[test]
fn a_check_does_not_watch_what_is_proved() {
    let folder = Folder::new();
    let scale = folder.file("scale.inv", SCALE);
    let (out, _) = expect(0, &["check", text(&scale), "--prove"]);
    assert!(
        out.ends_with("; proved free of races: y; watched: nothing\n"),
        "{out}"
    );
    let (out, _) = expect(0, &["check", text(&scale)]);
    assert!(!out.contains("proved"), "{out}");
    let (out, _) = expect(0, &["check", text(&scale), "--prove", "--json"]);
    let told: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert!(out.contains("proved_free_of_races"), "{told}");
    // What races is watched, and found as ever.
    let unordered = folder.file("unordered.inv", UNORDERED);
    let (out, err) = expect(1, &["check", text(&unordered), "--prove"]);
    assert!(
        out.ends_with("; proved free of races: y; watched: tile\n"),
        "{out}"
    );
    let (_, without) = expect(1, &["check", text(&unordered)]);
    assert!(err.contains("error[data-race]"), "{err}");
    assert_eq!(err, without);
}

#[test]
fn a_check_watches_all_in_a_launch_that_the_proof_is_not_of() {
    let folder = Folder::new();
    let (kernel, _) = SCALE.split_once("; run:").expect("its run line");
    let pass =
        |threads: u32| format!("then @scale(x = x, y = y, by = 2) grid({threads}) threadgroup(4)");
    let program = format!(
        "{kernel}; program: x = iota(4), y = zeros(8) {} {}\n",
        pass(4),
        pass(8)
    );
    let file = folder.file("passes.inv", &program);
    let (out, _) = expect(1, &["check", text(&file), "--prove"]);
    let lines: Vec<&str> = out.lines().filter(|line| line.contains("@scale")).collect();
    assert!(
        lines[0].ends_with("; proved free of races: y; watched: nothing"),
        "{out}"
    );
    let beyond = "; proved free of races: nothing; watched: y, for the proof is of every one-dimensional launch \
                  with grid.x <= length(x) and grid.x <= length(y)";
    assert!(lines[1].ends_with(beyond), "{out}");
}

#[test]
fn code_of_what_is_proved_has_no_guards_and_says_for_which_launches() {
    let folder = Folder::new();
    let scale = folder.file("scale.inv", SCALE);
    let emitted = |file: &Path, target: &str, prove: bool| {
        let mut words = vec![
            "emit",
            text(file),
            "--target",
            target,
            "--threadgroup",
            "32",
        ];
        words.extend(prove.then_some("--prove"));
        expect(0, &words).0
    };
    let head = "// proved @scale: no data race, all 2 accesses in bounds, for every one-dimensional launch with \
                grid.x <= length(x) and grid.x <= length(y)\n// No access is guarded: launch it as this says, with \
                buffers of fewer than 2^32 elements.\n";
    for (target, guard) in [("msl", " < lengths."), ("wgsl", "< constants.x__length")] {
        assert!(emitted(&scale, target, false).contains(guard), "{target}");
        let code = emitted(&scale, target, true);
        assert!(code.starts_with(head), "{code}");
        assert!(!code.contains(guard), "{code}");
    }
    // What is open, or allowed beyond, is guarded; so is what threads beyond the edge of the grid may come to.
    let stage = folder.file("stage.inv", STAGE);
    let code = emitted(&stage, "msl", true);
    assert!(
        code.starts_with("// open @stage: 2 of 4 accesses in bounds"),
        "{code}"
    );
    assert!(code.contains("\n// Every access is guarded.\n"), "{code}");
    let part = folder.file("part.inv", PART);
    let (out, _) = expect(0, &["prove", text(&part)]);
    assert!(out.starts_with("proved @part: "), "{out}");
    let code = emitted(&part, "msl", true);
    assert!(code.starts_with("// open @part: "), "{code}");
    let (_, err) = expect(2, &["emit", text(&scale), "--target", "llvm", "--prove"]);
    assert!(
        err.contains("only MSL and WGSL are written without guards"),
        "{err}"
    );
}

/// A component beyond the last is allowed.
const PART: &str = "\
kernel @part(%y: device write f32, %k: u32) allow(out_of_bounds_loads) {
    %i = thread_position_in_grid x
    %one = const f32 1.0
    %v = construct f32x4 %one, %one, %one, %one
    %w = extract %v, %k
    store %y[%i], %w
}
";

/// Stores only where not all of a workgroup came.
const WHOLE: &str = "\
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
var<workgroup> n: atomic<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) i: u32) {
  y[id.x] = i;
  if (id.x % 64u > i) { y[0] = i; }
}
";

/// A launch that breaks a shader has textures of the formats that the shader's types demand, and long lists in a word.
#[test]
fn launches_that_are_found_are_those_that_a_shader_can_have() {
    let folder = Folder::new();
    let source = "@group(0) @binding(0) var o: texture_storage_2d<rgba8unorm, write>;
@compute @workgroup_size(8) fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < textureDimensions(o).x) { textureStore(o, vec2u(id.x / 2u, 0u), vec4f()); }
}
";
    let (out, err) = expect(1, &["prove", text(&folder.file("halves.wgsl", source))]);
    assert!(out.contains("'o=texture(rgba8unorm, "), "{out}{err}");
    let source = "@group(0) @binding(0) var<storage, read> a: array<u32>;
var<workgroup> t: array<u32, 256>;
@compute @workgroup_size(256) fn main(@builtin(local_invocation_index) l: u32) {
  t[(l + a[l]) & 255u] = l;
}
";
    let (out, err) = expect(1, &["prove", text(&folder.file("lists.wgsl", source))]);
    assert!(out.contains("a=iota(256)"), "{out}{err}");
}

/// Overrides that decide a size are part of the kernel: a proof names their values.
#[test]
fn a_proof_names_the_overrides_that_it_is_for() {
    let source = "\
override N: u32 = 64;
var<workgroup> w: array<u32, 64>;
@compute @workgroup_size(N) fn main(@builtin(local_invocation_index) l: u32) { w[l] = l; }
";
    let folder = Folder::new();
    let file = folder.file("sized.wgsl", source);
    let (out, _) = expect(0, &["prove", text(&file)]);
    assert!(out.contains(" with N == 64\n"), "{out}");
    let (out, _) = expect(0, &["prove", text(&file), "--const", "N=32"]);
    assert!(out.contains(" with N == 32\n"), "{out}");
    let (out, _) = expect(1, &["prove", text(&file), "--const", "N=128"]);
    assert!(out.starts_with("broken @main"), "{out}");
}

/// WebGPU has no other dispatches, so that nothing is said of parts of a workgroup.
#[test]
fn shaders_are_proved_for_dispatches_of_whole_workgroups() {
    let folder = Folder::new();
    let counts = "  atomicAdd(&n, 1u);
  workgroupBarrier();
  if (atomicLoad(&n) != 64u) { y[0] = i; }
";
    let body = "  y[id.x] = i;\n  if (id.x % 64u > i) { y[0] = i; }\n";
    let file = folder.file("counts.wgsl", &WHOLE.replace(body, counts));
    let (out, err) = expect(0, &["prove", text(&file)]);
    assert!(out.starts_with("open @main"), "{out}{err}");
    assert!(
        out.contains("for every one-dimensional dispatch of whole workgroups"),
        "{out}"
    );
    // The author's names have no sign before them, as in the text.
    let (out, _) = expect(0, &["prove", text(&file), "--json"]);
    assert!(out.contains("`y`"), "{out}");
    assert!(!out.contains("`%"), "{out}");

    let proof = folder.path("whole.proof");
    let file = folder.file("whole.wgsl", WHOLE);
    let (out, err) = expect(0, &["prove", text(&file), "--certificate", text(&proof)]);
    let proved = "proved @main: no data race, all 2 accesses in bounds, for every one-dimensional dispatch of \
                  whole workgroups with grid.x <= length(y)\n";
    assert_eq!(out, proved, "{err}");
    let (out, _) = expect(0, &["prove", text(&file), "--verify", text(&proof)]);
    assert_eq!(out, proved.replace("proved", "verified"));
    let (out, _) = expect(0, &["prove", text(&file), "--json"]);
    assert!(out.contains("grid.x % 64 == 0"), "{out}");

    // What breaks it is whole, too.
    let racy = folder.file("racy.wgsl", &WHOLE.replace("> i)", "== 3u)"));
    let (out, _) = expect(1, &["prove", text(&racy)]);
    let command = out.split("invar ").nth(1).expect("a command");
    assert!(command.contains("--entry main --groups "), "{out}");
    // It runs, and finds what it says.
    let words: Vec<&str> = command.split_whitespace().collect();
    let words: Vec<&str> = words.iter().map(|w| w.trim_matches('\'')).collect();
    let (_, err) = expect(1, &words);
    assert!(err.contains("data-race"), "{err}");
}

/// Constants without a value of their own have one in the launch that is printed; what a file was read with belongs to
/// it, too.
#[test]
fn the_printed_command_says_all_that_the_launch_needs() {
    let folder = Folder::new();
    let text_form = "function_constant @n: u32 id(0)
function_constant @scale: f32 id(1)
function_constant @on: bool id(2)
function_constant @usual: u32 = 7 id(3)
kernel @k(%x: device write f32) requires(grid.x <= length(%x)) {
    %i = thread_position_in_grid x
    %scale = function_constant @scale
    %on = function_constant @on
    %n = function_constant @n
    %usual = function_constant @usual
    %two = const u32 2
    %j = rem %i, %two
    %sum = add %n, %usual
    %float = cast f32 %sum
    %v = mul %scale, %float
    if %on {
        store %x[%j], %v
    }
}
";
    let shader = "override n: u32;
override scale: f32;
override on: bool;
override side: u32;
var<workgroup> tile: array<f32, side>;
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(64)
fn k(@builtin(global_invocation_id) id: vec3u) {
  if (on) { x[id.x % 2u] = scale + f32(n); tile[id.x % side] = 1.0; }
}
";
    let files: [(&str, &str, &[&str]); 2] = [
        ("constants.inv", text_form, &[]),
        ("overrides.wgsl", shader, &["--const", "side=8"]),
    ];
    for (name, source, more) in files {
        let file = folder.file(name, source);
        let (out, err) = expect(1, &[&["prove", text(&file)], more].concat());
        assert!(out.starts_with("broken @k: "), "{out}{err}");
        reproduces(&out);
    }
}

/// A kernel that is not valid leaves the others their verdicts, by itself and with all of a file.
#[test]
fn what_is_not_valid_leaves_the_others_their_verdicts() {
    let folder = Folder::new();
    let text_form = "kernel @good(%y: device write u32) {
    %i = thread_position_in_grid x
    store %y[%i], %i
}
kernel @waits(%y: device write u32) threadgroup(64) {
    %i = thread_position_in_grid x
    %t = thread_index_in_threadgroup
    %one = const u32 1
    %is_first = lt %t, %one
    if %is_first { barrier threadgroup [threadgroup] }
    store %y[%i], %i
}
kernel @fine(%y: device write u32) {
    %i = thread_position_in_grid x
    store %y[%i], %i
}
";
    let metal = "#include <metal_stdlib>
using namespace metal;
kernel void good(device uint *y [[buffer(0)]], uint i [[thread_position_in_grid]]) { y[i] = i; }
kernel void waits(device uint *y [[buffer(0)]], uint i [[thread_position_in_grid]],
                  uint t [[thread_index_in_threadgroup]]) {
    if (t < 1) threadgroup_barrier(mem_flags::mem_threadgroup);
    y[i] = i;
}
kernel void fine(device uint *y [[buffer(0)]], uint i [[thread_position_in_grid]]) { y[i] = i; }
";
    let shader = "@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(64) fn good(@builtin(global_invocation_id) id: vec3u) { y[id.x] = id.x; }
@compute @workgroup_size(64) fn waits(@builtin(global_invocation_id) id: vec3u,
                                      @builtin(local_invocation_index) t: u32) {
    if t < 1u { workgroupBarrier(); }
    y[id.x] = id.x;
}
@compute @workgroup_size(64) fn fine(@builtin(global_invocation_id) id: vec3u) { y[id.x] = id.x; }
";
    let files = [
        ("some.inv", text_form),
        ("some.metal", metal),
        ("some.wgsl", shader),
    ];
    for (name, source) in files {
        if name.ends_with(".metal") && !metal::has_clang() {
            continue;
        }
        let file = folder.file(name, source);
        let (out, err) = expect(1, &["prove", text(&file)]);
        for said in ["proved @good", "@waits: refused", "proved @fine"] {
            assert!(out.contains(said), "{name}: {said}\n{out}{err}");
        }
        assert!(err.contains("barrier"), "{name}\n{err}");
        let (out, err) = expect(1, &["prove", text(&file), "--json"]);
        let told: serde_json::Value = serde_json::from_str(&out).expect("a document");
        let of = |name: &str| {
            let mut all = told.as_array().expect("a list").iter();
            let its = all.find(|report| report["kernel"] == name);
            its.unwrap_or_else(|| panic!("{name}\n{out}{err}"))["verdict"].clone()
        };
        assert_eq!(
            [of("good"), of("waits"), of("fine")],
            ["proved", "refused", "proved"]
        );
        let (out, _) = expect(0, &["prove", text(&file), "--kernel", "fine"]);
        assert!(out.starts_with("proved @fine"), "{out}");
        expect(1, &["prove", text(&file), "--kernel", "waits"]);
    }
}

/// Runs the command that a proof prints, which has to fail as it says.
fn reproduces(out: &str) -> String {
    let command = out.split("    invar ").nth(1).expect("a command");
    let command = command.lines().next().expect("a line");
    let unquoted = command.replace('\'', "");
    let words: Vec<&str> = unquoted.split_whitespace().collect();
    // Data in brackets may have spaces: it is one word.
    let mut joined: Vec<String> = Vec::new();
    for word in words {
        match joined.last_mut() {
            Some(last) if last.matches('[').count() > last.matches(']').count() => {
                *last = format!("{last} {word}");
            }
            Some(last) if last.matches('(').count() > last.matches(')').count() => {
                *last = format!("{last} {word}");
            }
            _complete => joined.push(word.to_string()),
        }
    }
    let words: Vec<&str> = joined.iter().map(String::as_str).collect();
    let (_, err) = expect(1, &words);
    assert!(err.contains("error["), "{err}");
    command.to_string()
}

/// What a shader or a Metal source declares as one is one in the launch that is printed, and so is what is never read.
#[test]
fn the_printed_command_has_as_many_elements_as_are_declared() {
    if !metal::has_clang() {
        return;
    }
    let folder = Folder::new();
    let metal = "#include <metal_stdlib>
using namespace metal;
#ifndef STEP
#error \"no step\"
#endif
struct Params { uint width; uint height; };
constant float scale [[function_constant(0)]];
kernel void used(device float *x [[buffer(0)]], constant Params &p [[buffer(1)]], constant uint &s [[buffer(2)]],
                 uint i [[thread_position_in_grid]]) {
    if (i < p.width) x[i % STEP + s] = scale;
}
kernel void unread(device float *x [[buffer(0)]], constant Params &p [[buffer(1)]], constant uint &s [[buffer(2)]],
                   uint i [[thread_position_in_grid]]) {
    x[i % STEP] = scale;
}
";
    let file = folder.file("declared.metal", metal);
    let read = ["-D", "STEP=2", "--const", "scale=2"];
    for kernel in ["used", "unread"] {
        let (out, err) = expect(
            1,
            &[&["prove", text(&file), "--kernel", kernel], &read[..]].concat(),
        );
        assert!(
            out.starts_with(&format!("broken @{kernel}: ")),
            "{out}{err}"
        );
        let command = reproduces(&out);
        let is_one = |name: &str| {
            let (_, data) = command.split_once(&format!("{name}=")).expect("its data");
            let data = data.split('\'').next().expect("its end");
            let items = data.trim_matches(['[', ']']).split(',').count();
            data.ends_with("(1)")
                || data.starts_with('[') && items == if name == "p" { 2 } else { 1 }
        };
        assert!(is_one("p") && is_one("s"), "{command}");
    }
}

/// A short array of constants is a table, whose numbers are known, like a long one.
#[test]
fn a_short_table_of_a_shader_gets_its_condition() {
    let folder = Folder::new();
    let source = "const order = array<u32, 4>(3, 1, 0, 2);
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&y)) { y[id.x] = x[order[id.x % 4]]; }
}
";
    let file = folder.file("order.wgsl", source);
    let (out, err) = expect(0, &["prove", text(&file)]);
    assert!(out.ends_with(" with 4 <= length(x)\n"), "{out}{err}");
}

/// Its threads have a tile of 16 by 16, and its threadgroups are as large as a launch says.
const TILED: &str = "\
kernel @turned(%x: device read f32, %y: device write f32) {
    %tile = alloc threadgroup f32[256]
    %i = thread_position_in_grid x
    %t = thread_position_in_threadgroup x
    %u = thread_position_in_threadgroup y
    %w = const u32 16
    %row = mul %u, %w
    %place = add %row, %t
    %v = load %x[%i]
    store %tile[%place], %v
    barrier threadgroup
    %turned = mul %t, %w
    %other = add %turned, %u
    %r = load %tile[%other]
    store %tile[%other], %r
}
";

#[test]
fn a_kernel_is_proved_for_threadgroups_of_a_size() {
    let folder = Folder::new();
    let tiled = folder.file("tiled.inv", TILED);
    let (out, _) = expect(1, &["prove", text(&tiled)]);
    assert!(out.starts_with("broken @turned: "), "{out}");
    let sized = ["prove", text(&tiled), "--threadgroup", "16,16"];
    let proof = folder.path("tiled.proof");
    let (out, _) = expect(0, &[&sized[..], &["--certificate", text(&proof)]].concat());
    assert!(out.starts_with("proved @turned: "), "{out}");
    assert!(
        out.contains("threadgroup.x == 16 and threadgroup.y == 16 and "),
        "{out}"
    );
    let (out, _) = expect(0, &[&sized[..], &["--verify", text(&proof)]].concat());
    assert!(out.starts_with("verified @turned: "), "{out}");
    // Without the size it is no proof.
    expect(1, &["prove", text(&tiled), "--verify", text(&proof)]);
    let (out, _) = expect(1, &["prove", text(&tiled), "--threadgroup", "17,16"]);
    assert!(out.starts_with("broken @turned: "), "{out}");
    assert!(out.contains("--threadgroup 17,16"), "{out}");
    for (size, why) in [
        ("64,64", "--threadgroup: "),
        ("0", "has a 0"),
        ("1,2,3,4", "one to three numbers"),
    ] {
        let (_, err) = expect(2, &["prove", text(&tiled), "--threadgroup", size]);
        assert!(err.contains(why), "{err}");
    }
    let fixed = folder.file(
        "fixed.inv",
        &TILED.replace(") {", ") threadgroup(16, 16) {"),
    );
    let (_, err) = expect(2, &["prove", text(&fixed), "--threadgroup", "8"]);
    assert!(err.contains("requires threadgroups of 16x16x1"), "{err}");
}
