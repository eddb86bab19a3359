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
    let (_, err) = expect(2, &["prove", text(&shader), "--const", "N=3"]);
    assert!(err.contains("N"), "{err}");
}
