//! What was translated is kept on disk, and serves until something that it follows from is another.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use invar_msl::{Library, find_clang};

/// Names the source to a process that translates it.
const SOURCE: &str = "INVAR_TEST_KEPT_SOURCE";

const TEXT: &str = "#include <metal_stdlib>
    #include \"factor.h\"
    kernel void scaled(device float *x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] *= FACTOR + ADDED; }
    kernel void stored(device float **x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] = x[0]; }
    ";

/// What another process says of a source, and how often it ran clang.
fn translated(folder: &Path, added: &str) -> (String, usize) {
    let log = folder.join("log");
    fs::write(&log, "").expect("written");
    let said = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "kept::a_process_that_translates", "--nocapture"])
        .env(SOURCE, folder.join("scaled.metal"))
        .env("ADDED", added)
        .env("INVAR_CLANG", folder.join("clang"))
        .env("INVAR_CACHE_DIR", folder.join("kept"))
        .env_remove("INVAR_CACHE")
        .output()
        .expect("this program");
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.status.success(), "{text}");
    let (_, text) = text.split_once("said:").expect("the other test");
    let (text, _) = text.split_once("that is all").expect("the whole of it");
    let log = fs::read_to_string(log).expect("written");
    (
        text.to_string(),
        log.lines().filter(|l| l.contains("-emit-llvm")).count(),
    )
}

#[test]
#[expect(clippy::print_stdout, reason = "for the test that started it")]
fn a_process_that_translates() {
    let Some(name) = std::env::var_os(SOURCE) else {
        return;
    };
    let added = std::env::var("ADDED").expect("given");
    let library = Library {
        name: name.to_string_lossy().into_owned(),
        text: fs::read_to_string(&name).expect("there"),
        defines: vec![format!("ADDED={added}")],
        ..Library::default()
    };
    let kernels = match library.kernels(None) {
        Ok(kernels) => kernels,
        Err(errors) => {
            println!("said: {errors} that is all");
            return;
        }
    };
    println!(
        "said: {} {:?} {:?} {:?} that is all",
        kernels.module, kernels.entries, kernels.refused, kernels.names
    );
}

#[test]
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn what_was_translated_serves_until_something_is_another() {
    let clang = match find_clang() {
        Ok(clang) => clang,
        Err(why) => {
            println!("skipped: {why}");
            return;
        }
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("written");
    let clang = clang.display();
    write(
        "clang",
        &format!(
            "#!/bin/sh\necho \"$@\" >> '{}'\nexec {clang} \"$@\"\n",
            folder.join("log").display()
        ),
    );
    fs::set_permissions(folder.join("clang"), PermissionsExt::from_mode(0o700)).expect("ours");
    write("scaled.metal", TEXT);
    write("factor.h", "#define FACTOR 2");
    let (first, runs) = translated(folder, "1");
    assert_eq!(runs, 1);
    assert!(
        first.contains("kernel @scaled") && first.contains("stored"),
        "{first}"
    );
    assert_eq!(translated(folder, "1"), (first.clone(), 0));
    let (other, runs) = translated(folder, "2");
    assert_eq!(runs, 1);
    assert_ne!(other, first);
    // What is included counts, and so do its own inclusions.
    write("factor.h", "#include \"more.h\"\n#define FACTOR MORE");
    write("more.h", "#define MORE 5");
    let (five, runs) = translated(folder, "1");
    assert_eq!(runs, 1);
    write("more.h", "#define MORE 6");
    let (six, runs) = translated(folder, "1");
    assert_eq!(runs, 1);
    assert_ne!(six, five);
    assert_eq!(translated(folder, "1"), (six, 0));
    // So are refusals, where there is nothing else.
    write(
        "scaled.metal",
        "kernel void stored(device float **x [[buffer(0)]]) { x[1] = x[0]; }\n",
    );
    let (refused, runs) = translated(folder, "1");
    assert_eq!(runs, 1);
    assert!(refused.contains("is not supported"), "{refused}");
    assert_eq!(translated(folder, "1"), (refused, 0));
    write("scaled.metal", TEXT);
    // A file that only clang finds is not known before it was read.
    write(
        "factor.h",
        "#define NAME \"more.h\"\n#include NAME\n#define FACTOR MORE",
    );
    for more in ["7", "8"] {
        write("more.h", &format!("#define MORE {more}"));
        let (text, runs) = translated(folder, "1");
        assert_eq!(runs, 1);
        assert!(
            text.contains(&format!("{}", more.parse::<u32>().unwrap_or(0) + 1)),
            "{text}"
        );
    }
}
