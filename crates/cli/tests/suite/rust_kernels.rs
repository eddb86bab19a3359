//! Kernels of Rust programs in the command: what `to_inv` gives is a file that it takes.

use std::path::Path;
use std::process::Command;

use invar::build::Builder;
use invar::ir::{Access, Dim, Scalar};
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

#[derive(Clone, Copy, KernelData)]
#[repr(C)]
struct Picture {
    width: u32,
    height: u32,
}

/// Its index fits where the field says the truth.
#[kernel]
#[requires(p.width * p.height <= length(y), p.width <= 1000, p.height <= 1000)]
fn brighten(p: &[Picture], y: &mut [f32]) {
    let at = thread_position_in_grid();
    if at.x < p[0].width && at.y < p[0].height {
        y[at.y * p[0].width + at.x] += 1.0;
    }
}

/// As it is without what it requires of the height.
#[kernel]
#[requires(p.width <= length(y), p.width <= 1000, p.height <= 1000)]
fn brighten_rows(p: &[Picture], y: &mut [f32]) {
    let at = thread_position_in_grid();
    if at.x < p[0].width && at.y < p[0].height {
        y[at.y * p[0].width + at.x] += 1.0;
    }
}

#[kernel]
#[requires(grid.x < length(row), grid.x <= length(y), ascending row)]
#[requires(each r of row: r <= length(x), each c of x: c < length(y))]
fn count_rows(row: &[u32], x: &[u32], y: &mut [u32]) {
    let i = thread_position_in_grid().x;
    let mut found = 0;
    for k in row[i]..row[i + 1] {
        found += x[k];
    }
    y[i] = found;
}

/// A kernel that a program generates.
fn take() -> invar::ir::Verified {
    let k = Builder::new("take");
    let n = k.buffer("n", Access::Read, Scalar::U32);
    let index = k.buffer("index", Access::Read, Scalar::U32);
    let x = k.buffer("x", Access::Read, Scalar::F32);
    let y = k.buffer("y", Access::Write, Scalar::F32);
    k.requires("n[0] <= length(index)");
    k.requires("each i of index: i < length(x)");
    k.requires("n[0] <= length(y)");
    let i = k.thread_position_in_grid(Dim::X);
    let count = n.load(k.literal(0u32));
    k.if_(i.lt(count), || y.store(i, x.load(index.load(i))));
    k.finish().expect("a kernel")
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

#[test]
fn what_rust_kernels_require_of_fields_and_contents_is_given_to_a_proof() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let proved = |name, text| {
        let file = exported(folder.path(), name, text);
        let (code, text) = invar(&["prove", &file, "--deny", "open"]);
        (file, code, text)
    };
    let (brighten, code, text) = proved("brighten", brighten::to_inv());
    assert_eq!(code, Some(0), "{text}");
    let words = "requires(p.width * p.height <= length(y), p.width <= 1000, p.height <= 1000)";
    assert!(
        text.starts_with("proved @brighten: ") && text.contains(words),
        "{text}"
    );
    // The rows after the first are beyond the buffer, and the launch that shows it is run.
    let (_, code, text) = proved("brighten_rows", brighten_rows::to_inv());
    assert_eq!(code, Some(1), "{text}");
    assert!(text.starts_with("broken @brighten_rows: "), "{text}");
    assert!(text.contains("error[out-of-bounds]"), "{text}");
    let (_, code, text) = proved("count_rows", count_rows::to_inv());
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("ascending row, each r of row: r <= length(x)"),
        "{text}"
    );
    let (_, code, text) = proved("take", Ok(take().to_string()));
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains(
            "requires(n[0] <= length(index), each i of index: i < length(x), n[0] <= length(y))"
        ),
        "{text}"
    );

    // A check looks at what the first element holds.
    let check = |p: &str| {
        let (p, y) = (format!("p=[{p}]"), "y=zeros(12)");
        let sizes = ["--grid", "4,4", "--threadgroup", "4,4"];
        invar(
            &[
                &["check", &brighten],
                &sizes[..],
                &["--arg", &p, "--arg", y],
            ]
            .concat(),
        )
    };
    let (code, text) = check("4, 3");
    assert_eq!(code, Some(0), "{text}");
    let (code, text) = check("4, 4");
    assert_ne!(code, Some(0), "{text}");
    let sentence = "requires p.width * p.height <= length(y), but p.width is 4, p.height is 4";
    assert!(text.contains(sentence), "{text}");
}
