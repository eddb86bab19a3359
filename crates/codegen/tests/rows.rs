//! Loops over rows: the reference machine leaves the same bytes when they are written out.

use std::path::Path;

use invar_codegen::passes::ranges::Known;
use invar_codegen::passes::rows::write_out;
use invar_conformance::{FileOptions, Options, compare, file_tests};
use invar_interp::{Arg, Dispatch};
use invar_ir::contract::contract;
use invar_ir::{Diagnostics, FloatMode, Verified, verify};

/// Runs a kernel with its loops written out, if it has such; counts those.
fn written_out(
    module: &Verified,
    kernel: &str,
    dispatch: &Dispatch,
    args: &mut [Arg<'static>],
    count: &mut u32,
) -> Result<(), Diagnostics> {
    let mut module = contract(module.clone().into_module())?;
    let index = module.kernels.iter().position(|k| *k.name == *kernel);
    let index = index.expect("the kernel");
    let known = Known {
        threadgroup_size: Some(dispatch.threadgroup),
        threads: None,
    };
    if let Some(rows) = write_out(&module, index, &known) {
        module.kernels[index] = rows;
        *count += 1;
    }
    // What has been contracted is not contracted again.
    module.kernels[index].float_mode = FloatMode::Strict;
    let module = verify(module)?;
    let options = invar_interp::Options {
        step_limit: 100_000_000,
        ..Default::default()
    };
    invar_interp::run(&module, kernel, dispatch, args, &options, &mut []).map(|_| ())
}

#[test]
fn every_run_case_leaves_the_same_bytes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/ir/run");
    let mut count = 0;
    let mut target = |module: &Verified, kernel: &str, dispatch: &Dispatch, args: &mut [_]| {
        written_out(module, kernel, dispatch, args, &mut count)
    };
    let summary = file_tests(&mut target, &folder, &FileOptions::default()).expect("the folder");
    assert!(summary.failures.is_empty(), "{summary}");
    assert!(count >= 10, "only {count} had loops over rows");
}

#[test]
fn random_kernels_leave_the_same_bytes() {
    let mut count = 0;
    let mut target = |module: &Verified, kernel: &str, dispatch: &Dispatch, args: &mut [_]| {
        written_out(module, kernel, dispatch, args, &mut count)
    };
    let summary = compare(&mut target, &Options::default(), 0..300);
    let summary = summary.unwrap_or_else(|f| panic!("{f}"));
    assert_eq!(summary.same, 300, "{summary}");
    assert!(count >= 5, "only {count} had loops over rows");
}
