//! Proofs: what each verdict prints and how it ends, certificates, and shaders.

use super::*;

/// Its index is what memory holds.
const GATHER: &str = "\
kernel @gather(%x: device read f32, %at: device read u32, %y: device write f32) {
    %i = thread_position_in_grid x
    %j = load %at[%i]
    %v = load %x[%j]
    store %y[%i], %v
}
; run: @gather(x = iota(8), at = zeros(8), y = zeros(8)) grid(8) threadgroup(8)
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
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    expect(1, &words);

    let gather = folder.file("gather.inv", GATHER);
    let (out, _) = expect(0, &["prove", text(&gather)]);
    assert!(out.starts_with("open @gather: 2 of 3 accesses"), "{out}");
    assert!(out.contains("gather.inv:4: "), "{out}");
    expect(1, &["prove", text(&gather), "--deny", "open"]);

    let (out, _) = expect(0, &["prove", text(&gather), "--json"]);
    let told: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(told[0]["verdict"], "open");
    assert_eq!(told[0]["open"][0]["lines"][0], 4);
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
