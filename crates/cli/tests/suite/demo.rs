//! `invar demo`, and what the list of operations looks like.

use std::path::Path;
use std::process::Command;

/// Runs the command in a folder; gives its exit code, standard output and standard error.
fn invar(folder: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_invar"))
        .args(args)
        .current_dir(folder)
        .output()
        .expect("the command starts");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn the_demo_leaves_kernels_and_pictures_and_overwrites_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    let (code, out, err) = invar(folder, &["demo", "--small"]);
    assert_eq!(code, Some(0), "{out}\n{err}");
    assert!(out.contains("every answer is right"), "{out}");
    assert!(err.contains("error[data-race]"), "{err}");
    let made = folder.join("invar-demo");
    for file in ["smooth.inv", "y.npy", "mandelbrot.png", "sobel.png"] {
        assert!(made.join(file).is_file(), "{file}");
    }
    let (code, _, err) = invar(folder, &["demo", "--small"]);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("--out"), "{err}");

    // A picture of one's own, in a folder with a space.
    let (code, out, err) = invar(
        folder,
        &[
            "demo",
            "--small",
            "--out",
            "my demo",
            "invar-demo/sobel.png",
        ],
    );
    assert_eq!(code, Some(0), "{out}\n{err}");
    assert!(folder.join("my demo/sobel.png").is_file());
}

#[test]
fn a_demo_that_cannot_be_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    std::fs::write(folder.join("no.png"), "no picture").expect("written");
    for args in [&["no.png"][..], &["missing.png"], &["--device", "abacus"]] {
        let (code, _, err) = invar(folder, &[&["demo"], args].concat());
        assert_eq!(code, Some(2), "{err}");
        assert!(
            err.starts_with("invar: ") && err.lines().count() == 1,
            "{err}"
        );
        assert!(!folder.join("invar-demo").exists(), "{args:?}");
    }
}

#[test]
fn operations_are_listed_in_whole_sentences_without_links() {
    let (code, out, _) = invar(Path::new("."), &["ops"]);
    assert_eq!(code, Some(0));
    assert!(!out.contains("KernelBuilder"), "{out}");
    let named = |name: &str| out.lines().find(|l| l.split(' ').next() == Some(name));
    let rem = named("rem").expect("a row");
    assert!(
        rem.ends_with("The remainder of `div`, with the sign of `a`; `x % 0` is 0 (A2)."),
        "{rem}"
    );
    for line in out.lines() {
        assert!(line.ends_with('.'), "{line}");
    }
    let (_, out, _) = invar(Path::new("."), &["ops", "min"]);
    assert!(out.contains("the same as `fmin`"), "{out}");
}
