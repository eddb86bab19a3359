//! Loops over rows: the reference machine leaves the same bytes when they are written out.

use std::path::Path;

use invar_codegen::analysis::ranges::Known;
use invar_codegen::passes::imageblocks::lower;
use invar_codegen::passes::rows::{deciding_scalars, fix_scalars, fixing_helps, unroll};
use invar_conformance::{FileOptions, Options, compare, file_tests};
use invar_interp::{Arg, Dispatch};
use invar_ir::contract::contract;
use invar_ir::{Const, Diagnostics, FloatMode, Verified, verify};

/// How many kernels had loops to write out, and how many had them only for their scalars.
#[derive(Default)]
struct Counts {
    written_out: u32,
    helped: u32,
}

/// Runs a kernel with its loops written out, if it has such; for the scalars that it is given, if these are
/// to be fixed and that helps.
fn written_out(
    module: &Verified,
    kernel: &str,
    dispatch: &Dispatch,
    args: &mut [Arg<'static>],
    fixed: bool,
    counts: &mut Counts,
) -> Result<(), Diagnostics> {
    let mut module = contract(module.clone().into_module())?;
    let index = module.kernels.iter().position(|k| *k.name == *kernel);
    let index = index.expect("the kernel");
    // As the pipeline does before any pass.
    lower(&mut module.kernels[index]);
    let known = Known {
        threadgroup_size: Some(dispatch.threadgroup),
        threads: None,
    };
    if fixed {
        let scalars: Vec<(usize, Const)> = deciding_scalars(&module, index)
            .into_iter()
            .filter_map(|i| match &args[i] {
                Arg::Scalar(components) => Some((i, components[0])),
                _no_scalar => None,
            })
            .collect();
        if fixing_helps(&module, index, &scalars, &known) {
            module.kernels[index] = fix_scalars(&module, index, &scalars);
            counts.helped += 1;
        }
    }
    if let Some(rows) = unroll(&module, index, &known) {
        module.kernels[index] = rows;
        counts.written_out += 1;
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
    for fixed in [false, true] {
        let mut counts = Counts::default();
        let mut target = |module: &Verified, kernel: &str, dispatch: &Dispatch, args: &mut [_]| {
            written_out(module, kernel, dispatch, args, fixed, &mut counts)
        };
        let summary = file_tests(&mut target, &folder, &FileOptions::default());
        let summary = summary.expect("the folder");
        assert!(summary.failures.is_empty(), "{summary}");
        let Counts {
            written_out,
            helped,
        } = counts;
        assert!(written_out >= 10, "only {written_out} had loops over rows");
        assert_eq!(helped >= 3, fixed, "{helped} had rows of a given length");
    }
}

#[test]
fn random_kernels_leave_the_same_bytes() {
    let mut counts = Counts::default();
    let mut target = |module: &Verified, kernel: &str, dispatch: &Dispatch, args: &mut [_]| {
        written_out(module, kernel, dispatch, args, true, &mut counts)
    };
    let summary = compare(&mut target, &Options::default(), 0..300);
    let summary = summary.unwrap_or_else(|f| panic!("{f}"));
    assert_eq!(summary.same, 300, "{summary}");
    let Counts { written_out, .. } = counts;
    assert!(written_out >= 5, "only {written_out} had loops over rows");
}
