//! Devices: which there are, what a run on one tells, what limits it, and how long it takes.

use super::*;

#[test]
fn a_run_takes_place_on_the_device_that_is_named() {
    let folder = Folder::new();
    let file = folder.file("scale.inv", SCALE);
    for device in ["default", "cpu", "checked", "reference"] {
        let (out, _) = expect(0, &["run", text(&file), "--device", device]);
        assert!(
            out.starts_with("@scale: right, 1 expectation met, in "),
            "{out}"
        );
        // A few threads take no second: the time has a unit that shows it.
        assert!(!out.contains(" 0.0 ") && !out.contains("0.000"), "{out}");
    }
    let (_, err) = expect(2, &["run", text(&file), "--device", "nope"]);
    assert!(
        err.contains("there is no device `nope`; there is `"),
        "{err}"
    );
    let clash = folder.file("clash.inv", CLASH);
    expect(0, &["run", text(&clash), "--device", "reference"]);
    let (out, err) = expect(1, &["run", text(&clash), "--device", "checked"]);
    assert!(out.contains("@clash: failed the checks"), "{out}");
    assert!(err.contains("error[data-race]"), "{err}");
    let reference = SCALE.replace("== [0, 2, 4, 6]", "== reference");
    let file = folder.file("reference.inv", &reference);
    let (out, _) = expect(0, &["run", text(&file), "--device", "checked"]);
    assert!(out.starts_with("@scale: right"), "{out}");
}

#[test]
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn a_gpu_is_a_device_by_its_place_and_by_its_name() {
    let folder = Folder::new();
    let file = folder.file("scale.inv", SCALE);
    let (out, _) = expect(0, &["devices", "--json"]);
    let all: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    let all = all.as_array().expect("a list");
    match all.iter().find(|d| d["name"] == "gpu") {
        Some(gpu) => {
            let name = gpu["description"].as_str().expect("a text").to_lowercase();
            let name = name.split(' ').next().unwrap_or_default();
            for device in ["gpu", "gpu:0", name] {
                let (out, _) = expect(0, &["run", text(&file), "--device", device]);
                assert!(
                    out.starts_with("@scale: right, 1 expectation met, in "),
                    "{out}"
                );
            }
            every_simdgroup_size_that_a_gpu_has_may_be_required_and_asked_for(&folder, gpu);
            let lanes = "kernel @lanes(%o: device write u32) {
    %i = thread_position_in_grid x
    %n = threads_per_simdgroup
    store %o[%i], %n
}
; run: @lanes(o = zeros(2)) grid(2) threadgroup(2) -> o == reference
";
            let lanes = folder.file("lanes.inv", lanes);
            expect(0, &["run", text(&lanes), "--device", "gpu"]);
            let (_, err) = expect(2, &["run", text(&file), "--device", "gpu:99"]);
            assert!(
                err.contains("there is no device `gpu:99`; there is"),
                "{err}"
            );
        }
        None => println!("skipped: this machine has no adapter"),
    }
    // Without a driver everything else runs all the same.
    let without = |args: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_invar"))
            .args(args)
            .env("VK_DRIVER_FILES", "/nonexistent")
            .env("VK_ICD_FILENAMES", "/nonexistent")
            .output()
            .expect("the command starts")
    };
    assert!(without(&["run", text(&file)]).status.success());
    assert!(without(&["devices"]).status.success());
    if cfg!(target_os = "linux") {
        let refused = without(&["bench", text(&file), "--device", "gpu"]);
        let err = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{err}");
        assert!(
            err.contains("there is no device `gpu`, for no driver of a GPU was found; there is `"),
            "{err}"
        );
    }
}

/// A kernel that requires a size runs with it, also where the device has another for other kernels.
fn every_simdgroup_size_that_a_gpu_has_may_be_required_and_asked_for(
    folder: &Folder,
    gpu: &serde_json::Value,
) {
    let own = &gpu["simdgroup_size"];
    for size in gpu["simdgroup_sizes"].as_array().expect("a list") {
        let kernel = |requires: &str| {
            format!(
                "kernel @lanes(%o: device write u32){requires} {{
    %i = thread_position_in_grid x
    %n = threads_per_simdgroup
    store %o[%i], %n
}}
; run: @lanes(o = zeros(2)) grid(2) threadgroup(2) simdgroup({size}) -> o == [{size}, {size}]
"
            )
        };
        let required = folder.file("required.inv", &kernel(&format!(" simdgroup({size})")));
        let on_gpu = |file| ["run", text(file), "--device", "gpu"];
        expect(0, &on_gpu(&required));
        let asked = ["--simdgroup", &size.to_string()];
        expect(0, &[&on_gpu(&required)[..], &asked].concat());
        let free = folder.file("free.inv", &kernel(""));
        expect(if size == own { 0 } else { 2 }, &on_gpu(&free));
    }
}

#[test]
fn devices_are_listed_with_what_they_can_do() {
    let (out, _) = expect(0, &["devices"]);
    assert!(
        out.contains("the reference machine with its checkers"),
        "{out}"
    );
    assert!(
        out.contains("simdgroups of 4, 8, 16, 32, 64, 128 threads"),
        "{out}"
    );
    assert!(
        out.contains("at most 65536 texels in a row and a column and 1073741824 in all")
            && out.contains("linear samples to the bit of the formula (rule V3)"),
        "{out}"
    );
    let (out, _) = expect(0, &["devices", "--json"]);
    let all: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    let all = all.as_array().expect("a list");
    let checked = all
        .iter()
        .find(|d| d["name"] == "checked")
        .expect("it is there");
    assert_eq!(checked["threads_per_threadgroup"], 1024);
    assert_eq!(checked["memory_orders"][4], "seq_cst");
}

#[test]
fn the_environment_limits_runs_and_what_it_says_wrongly_is_refused() {
    let folder = Folder::new();
    let file = folder.file(
        "spin.inv",
        "kernel @spin(%x: device read_write u32) {\n    %zero = const u32 0\n    loop {\n        \
         %v = atomic_load %x[%zero]\n        %ends = ne %v, %zero\n        if %ends {\n            \
         break\n        }\n    }\n}\n\
         ; run: @spin(x = zeros(1)) grid(1) threadgroup(1)\n",
    );
    for device in ["cpu", "checked"] {
        let run = ["run", text(&file), "--device", device];
        let err = expect_in(1, &[("INVAR_TIME_LIMIT", "0.2")], &run);
        assert!(err.contains("deadline-exceeded"), "{err}");
    }
    let file = folder.file("scale.inv", SCALE);
    for (name, value) in [
        ("INVAR_TIME_LIMIT", "abc"),
        ("INVAR_TIME_LIMIT", "-1"),
        ("INVAR_TIME_LIMIT", "0"),
        ("INVAR_THREADS", "0"),
        ("INVAR_THREADS", "many"),
        ("INVAR_CACHE", "maybe"),
        ("INVAR_PROCESSOR", "x86-64-v9"),
    ] {
        let sentence = format!("invar: the environment says {name}={value}: give ");
        for asked in [&["run", text(&file)][..], &["devices"]] {
            let err = expect_in(2, &[(name, value)], asked);
            assert!(err.starts_with(&sentence), "{err}");
        }
    }
    // An option wins over the environment.
    let run = ["run", text(&file), "--time-limit", "100"];
    expect_in(0, &[("INVAR_TIME_LIMIT", "1e-9")], &run);
    let other = if cfg!(target_arch = "x86_64") {
        "aarch64"
    } else {
        "x86-64"
    };
    let err = expect_in(2, &[("INVAR_PROCESSOR", other)], &["run", text(&file)]);
    assert!(
        err.contains("does not run code for that processor"),
        "{err}"
    );
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_processor_to_compile_for_may_be_an_older_one() {
    let folder = Folder::new();
    let file = folder.file("scale.inv", SCALE);
    let cache = folder.path("cache");
    let older = [
        ("INVAR_PROCESSOR", "x86-64"),
        ("INVAR_CACHE_DIR", text(&cache)),
    ];
    let run = ["run", text(&file), "--device", "cpu"];
    // Each keeps code of its own, and takes it from there.
    for environment in [&older[1..], &older, &older[1..], &older] {
        expect_in(0, environment, &run);
    }
    let kept: Vec<Vec<u8>> = (std::fs::read_dir(&cache).expect("a folder"))
        .map(|entry| std::fs::read(entry.expect("an entry").path()).expect("a file"))
        .collect();
    assert_eq!(kept.len(), 2);
    // Behind what it was made from.
    let code = |bytes: &[u8]| bytes[bytes.len() / 4..].to_vec();
    assert_ne!(code(&kept[0]), code(&kept[1]));
    let output = Command::new(env!("CARGO_BIN_EXE_invar"))
        .arg("devices")
        .envs(older)
        .output()
        .expect("the command starts");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(told.contains("x86-64 with vectors of 128 bits"), "{told}");
}

#[test]
fn a_time_limit_may_be_longer_than_any_clock_runs() {
    let folder = Folder::new();
    let file = folder.file("scale.inv", SCALE);
    for device in ["cpu", "checked", "reference"] {
        let run = ["run", text(&file), "--device", device];
        expect(0, &[&run[..], &["--time-limit", "9.9e18"]].concat());
        expect_in(0, &[("INVAR_TIME_LIMIT", "9.9e18")], &run);
    }
}

/// A library that is there and has no room is not one to install.
#[cfg(target_os = "linux")]
#[test]
fn too_little_memory_for_llvm_is_said_to_be_that() {
    let folder = Folder::new();
    let file = folder.file("scale.inv", SCALE);
    let mut short = 0;
    for kib in (80_000..=320_000).step_by(20_000) {
        let limit = format!("ulimit -v {kib} && exec \"$@\"");
        let run = [env!("CARGO_BIN_EXE_invar"), "run", text(&file)];
        let mut shell = Command::new("sh");
        // A kernel that is kept on disk needs no LLVM.
        shell.args(["-c", &limit, "sh"]).args(run);
        shell.env("INVAR_CACHE", "0");
        let output = shell.output().expect("a shell");
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(!err.contains("not found"), "{kib} KiB: {err}");
        if err.contains("for whose library there is too little memory") {
            assert_eq!(output.status.code(), Some(2), "{err}");
            short += 1;
        }
    }
    assert!(short > 0, "LLVM had room each time");
}

/// What a command does in a process of so many KiB: its exit code, and what it says.
#[cfg(target_os = "linux")]
fn within(kib: u32, args: &[&str]) -> (Option<i32>, String) {
    let limit = format!("ulimit -v {kib} && exec \"$@\"");
    let mut shell = Command::new("sh");
    shell.args(["-c", &limit, "sh", env!("CARGO_BIN_EXE_invar")]);
    let output = shell.args(args).output().expect("a shell");
    let told = [output.stdout, output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8_lossy(&told).into_owned(),
    )
}

#[cfg(target_os = "linux")]
#[test]
fn too_little_memory_for_a_proof_is_one_sentence() {
    let folder = Folder::new();
    let file = folder.file("scale.inv", SCALE);
    for args in [
        &["prove", text(&file)][..],
        &["emit", text(&file), "--target", "msl", "--prove"],
    ] {
        let (code, told) = within(200_000, args);
        assert_eq!(code, Some(2), "{told}");
        assert!(
            told.contains("there is no memory for the prover's stack"),
            "{told}"
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn too_little_memory_for_thread_arrays_is_one_sentence() {
    let folder = Folder::new();
    let kernel = "kernel @k(%y: device write u32) threadgroup(1024) {
    %a = alloc thread u32[65536]
    %i = thread_position_in_grid x
    store %a[%i], %i
    barrier threadgroup
    %v = load %a[%i]
    store %y[%i], %v
}
; run: @k(y = zeros(1024)) grid(1024)
";
    let file = folder.file("arrays.inv", kernel);
    for args in [
        &["run", text(&file), "--device", "reference"][..],
        &["run", text(&file), "--device", "checked"],
        &["check", text(&file)],
    ] {
        let (code, told) = within(250_000, args);
        assert_eq!(code, Some(1), "{told}");
        assert!(
            told.contains("error[out-of-memory]") && told.contains("of a threadgroup of `k`"),
            "{told}"
        );
    }
}

/// Data turned round is made in place.
#[cfg(target_os = "linux")]
#[test]
fn data_is_turned_round_without_a_copy() {
    let folder = Folder::new();
    let kernel = "kernel @k(%x: device read u32, %y: device write u32) {
    %i = thread_position_in_grid x
    %v = load %x[%i]
    store %y[%i], %v
}
; run: @k(x = rev(iota(60000000)), y = zeros(4)) grid(4) threadgroup(4) -> y == [59999999, 59999998, 59999997, 59999996]
";
    let file = folder.file("turned.inv", kernel);
    for kib in [480_000, 500_000] {
        let (code, told) = within(kib, &["run", text(&file), "--device", "reference"]);
        assert_eq!(code, Some(0), "{kib}: {told}");
    }
}

/// What it is wanted for differs, and its name does not.
#[cfg(target_os = "linux")]
#[test]
fn too_little_memory_for_a_check_has_one_name() {
    let folder = Folder::new();
    let run =
        "; run: @scale(x = zeros(8000000), y = zeros(8000000), by = 2) grid(64) threadgroup(64)\n";
    let file = folder.file("large.inv", &format!("{SCALE}{run}"));
    let mut short = [0, 0];
    for kib in (180_000..=360_000).step_by(20_000) {
        let (code, told) = within(kib, &["check", text(&file)]);
        assert!(code.is_some(), "{kib} KiB: {told}");
        let is_for = |what: &str| told.contains(what);
        let what = ["copies of the buffers", "the race detector needs"].map(is_for);
        let is_short = what.contains(&true);
        assert_eq!(told.contains("error[out-of-memory]"), is_short, "{told}");
        for (count, is_this) in short.iter_mut().zip(what) {
            *count += usize::from(is_this);
        }
    }
    assert!(!short.contains(&0), "{short:?}");
}

/// Where there is no memory to compare in, nothing is said to be wrong.
#[cfg(target_os = "linux")]
#[test]
fn expectations_without_memory_are_not_wrong() {
    let folder = Folder::new();
    let kernel = format!(
        "{SCALE}; run: @scale(x = zeros(20000000), y = zeros(20000000), by = 2) grid(64) threadgroup(64) \
         -> y == zeros(20000000)
; run: @scale(x = zeros(20000000), y = zeros(20000000), by = 2) grid(64) threadgroup(64) -> y == reference
"
    );
    let file = folder.file("large.inv", &kernel);
    let mut short = [0, 0];
    for kib in (260_000..=560_000).step_by(40_000) {
        let (code, told) = within(kib, &["run", text(&file), "--device", "cpu"]);
        assert!(code.is_some(), "{kib} KiB: {told}");
        assert!(!told.contains("wrong"), "{kib} KiB: {told}");
        short[0] += usize::from(told.contains("there is no memory for 20000000 elements"));
        short[1] += usize::from(told.contains("that the reference machine runs on"));
    }
    assert!(!short.contains(&0), "there was memory each time: {short:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn results_that_cannot_be_written_are_an_error() {
    let folder = Folder::new();
    let file = folder.file("scale.inv", SCALE);
    for args in [
        &["print", text(&file)][..],
        &["emit", text(&file), "--target", "msl"],
        &["run", text(&file), "--json"],
        &["ops"],
    ] {
        let full = std::fs::File::create("/dev/full").expect("opens");
        let output = Command::new(env!("CARGO_BIN_EXE_invar"))
            .args(args)
            .stdout(full)
            .output()
            .expect("the command starts");
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}\n{err}");
        assert!(err.contains("standard output cannot be written"), "{err}");
    }
}

#[test]
fn a_threadgroup_that_cannot_be_launched_is_not_printed() {
    let folder = Folder::new();
    let file = folder.file("scale.inv", SCALE);
    let fixed = folder.file(
        "fixed.inv",
        "kernel @k(%x: device write u32) threadgroup(32) {\n}\n",
    );
    for target in ["msl", "wgsl", "llvm", "asm"] {
        let emit = |file: &Path, size: &str| {
            let args = [
                "emit",
                text(file),
                "--target",
                target,
                "--threadgroup",
                size,
            ];
            expect(2, &args).1
        };
        assert!(emit(&file, "0").contains("has a 0"), "{target}");
        assert!(
            emit(&file, "1025").contains("more than the limit of 1024"),
            "{target}"
        );
        assert!(
            emit(&fixed, "64").contains("requires threadgroups of 32x1x1"),
            "{target}"
        );
    }
}

#[test]
fn bench_measures_what_a_file_runs() {
    let folder = Folder::new();
    let file = folder.file("scale.inv", SCALE);
    let quick = ["bench", text(&file), "--seconds", "0.01"];
    let (out, _) = expect(0, &quick);
    assert!(
        out.starts_with("@scale on ") && out.contains("GB/s of 32 bytes"),
        "{out}"
    );
    let (out, _) = expect(0, &[&quick[..], &["--json"]].concat());
    let document: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    let result = &document["results"][0];
    assert!(result["runs"].as_u64().is_some_and(|n| n >= 5), "{out}");
    assert!(
        result["median_seconds"].as_f64().is_some_and(|s| s > 0.0),
        "{out}"
    );
    expect(2, &["bench", text(&file), "--device", "reference"]);
}
