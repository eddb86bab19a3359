//! The file tests through the reference machine as a target, and through one that is wrong.

use std::path::Path;

use invar_conformance::{FileOptions, file_tests};

#[test]
fn the_reference_machine_keeps_every_directive() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/ir/run");
    let mut target = |module: &_, kernel: &str, dispatch: &_, args: &mut [_]| {
        let options = invar_interp::Options {
            seed: 3,
            ..Default::default()
        };
        invar_interp::run(module, kernel, dispatch, args, &options, &mut []).map(|_| ())
    };
    let summary = file_tests(&mut target, &folder, &FileOptions::default()).expect("the folder");
    assert!(summary.failures.is_empty(), "{summary}");
    let skipped: u64 = summary.skipped.values().sum();
    assert!(
        summary.files >= 188 && summary.runs > 10 * skipped,
        "{summary}"
    );
}

#[test]
fn a_target_that_does_nothing_fails() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/ir/run");
    let mut target = |_: &_, _: &str, _: &_, _: &mut [_]| Ok(());
    let summary = file_tests(&mut target, &folder, &FileOptions::default()).expect("the folder");
    assert!(summary.failures.len() as u64 > summary.runs, "{summary}");
}
