//! Kernels of Rust programs in the command: what `to_inv` gives is a file that it takes.

use std::path::Path;
use std::process::Command;

use invar::prelude::*;

#[kernel(threadgroup(32))]
fn halve(x: &mut [f32]) {
    let i = thread_position_in_grid().x;
    x[i] /= 2.0;
}

#[kernel]
fn clash(y: &mut [u32]) {
    let i = thread_position_in_grid().x;
    y[i / 2] = i;
}

/// The exit code of the command, and all that it printed.
fn invar(args: &[&str]) -> (Option<i32>, String) {
    let done = Command::new(env!("CARGO_BIN_EXE_invar"))
        .args(args)
        .output();
    let done = done.expect("the command starts");
    let text = [done.stdout, done.stderr].concat();
    (
        done.status.code(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

fn exported(folder: &Path, name: &str, text: invar::Result<String>) -> String {
    let file = folder.join(format!("{name}.inv"));
    std::fs::write(&file, text.expect("a kernel")).expect("written");
    file.display().to_string()
}

#[test]
fn the_command_checks_and_emits_kernels_of_rust_programs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let halve = exported(folder.path(), "halve", halve::to_inv());
    let clash = exported(folder.path(), "clash", clash::to_inv());
    let sizes = ["--grid", "64", "--threadgroup", "32", "--arg"];

    let (code, text) = invar(&[&["check", &halve], &sizes[..], &["x=random(64, 1)"]].concat());
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("clean @halve"), "{text}");

    let (code, text) = invar(&[&["check", &clash], &sizes[..], &["y=zeros(32)"]].concat());
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("error[data-race]"), "{text}");

    for (target, word) in [("msl", "kernel void halve"), ("wgsl", "fn halve")] {
        let (code, text) = invar(&["emit", &halve, "--target", target]);
        assert_eq!(code, Some(0), "{text}");
        assert!(text.contains(word), "{target}: {text}");
    }
}
