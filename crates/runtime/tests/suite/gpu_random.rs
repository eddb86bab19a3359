//! Random kernels on the first GPU of this machine and on the reference machine, byte by byte.

#![cfg(feature = "gpu")]

use std::collections::BTreeMap;
use std::ops::Range;

use invar_conformance::{Floats, Options, compare};
use invar_interp::{Arg, Dispatch};
use invar_ir::{Diagnostics, Scalar, Verified};
use invar_runtime::gpu::{Gpu, GpuArg, GpuBuffer};
use invar_runtime::{CompileOptions, Error};

fn on_gpu(
    gpu: &Gpu,
    module: &Verified,
    kernel: &str,
    dispatch: &Dispatch,
    args: &mut [Arg<'_>],
) -> Result<(), Error> {
    let options = CompileOptions {
        threadgroup_size: Some(dispatch.threadgroup),
        ..CompileOptions::default()
    };
    let program = gpu.compile(module, kernel, &options)?;
    let buffers: Vec<Option<GpuBuffer>> = args
        .iter()
        .map(|arg| match arg {
            Arg::Scalar(_) | Arg::ThreadgroupLength(_) | Arg::Texture(..) => Ok(None),
            buffer => gpu.buffer_from(buffer.bytes()).map(Some),
        })
        .collect::<Result<_, _>>()?;
    let given: Vec<GpuArg<'_>> = args
        .iter()
        .zip(&buffers)
        .map(|(arg, buffer)| match (arg, buffer) {
            (Arg::Scalar(components), _) => GpuArg::Scalar(components),
            (Arg::ThreadgroupLength(n), _) => GpuArg::ThreadgroupLength(*n),
            (_, Some(buffer)) => GpuArg::Buffer(buffer),
            (_, None) => unreachable!("every buffer was uploaded"),
        })
        .collect();
    gpu.dispatch(&program, *dispatch, &given)?;
    for (arg, buffer) in args.iter_mut().zip(&buffers) {
        if let Some(buffer) = buffer {
            let bytes = buffer.read()?;
            match arg {
                Arg::OwnedBuffer(own) => *own = bytes,
                Arg::Buffer(own) => own.copy_from_slice(&bytes),
                Arg::ReadBuffer(_)
                | Arg::Scalar(_)
                | Arg::ThreadgroupLength(_)
                | Arg::Texture(..) => {}
            }
        }
    }
    Ok(())
}

/// Which kernels: `INVAR_RANDOM_KERNELS`, a number of them or `FIRST..END`, else few, since lavapipe
/// compiles slowly.
fn seeds() -> Range<u64> {
    let Ok(asked) = std::env::var("INVAR_RANDOM_KERNELS") else {
        return 0..40;
    };
    let (first, end) = asked.split_once("..").unwrap_or(("0", &asked));
    let number = |text: &str| -> u64 {
        let parsed = text.parse();
        parsed
            .unwrap_or_else(|_| panic!("`INVAR_RANDOM_KERNELS={asked}` is not a number of kernels"))
    };
    number(first)..number(end)
}

#[test]
#[expect(clippy::print_stdout, reason = "a test says how much it ran")]
fn random_kernels_leave_the_reference_machines_bytes() {
    let Ok(gpu) = Gpu::open(0) else {
        println!("skipped: this machine has no adapter (mesa-vulkan-drivers brings one)");
        return;
    };
    let options = Options {
        instructions: 30,
        floats: Floats::Exact,
        scalars: Scalar::ALL
            .into_iter()
            .filter(|s| *s != Scalar::F64)
            .collect(),
        simdgroup_size: Some(gpu.capabilities().simdgroup_size),
        memory_orders: false,
        wide_atomics: gpu.features().int64_atomics,
        ..Options::default()
    };
    let mut target =
        |module: &Verified, kernel: &str, dispatch: &Dispatch, args: &mut [Arg<'_>]| {
            on_gpu(&gpu, module, kernel, dispatch, args)
                .map_err(|e: Error| -> Diagnostics { e.into_diagnostics() })
        };
    // Every dispatch that can be coarsened is.
    gpu.coarsen_from(1);
    let (mut same, mut failures) = (0, Vec::new());
    let mut refused: BTreeMap<String, u64> = BTreeMap::new();
    for seed in seeds() {
        match compare(&mut target, &options, seed..seed + 1) {
            Ok(summary) => {
                same += summary.same;
                for (why, count) in summary.refused {
                    *refused.entry(why).or_default() += count;
                }
            }
            Err(failure) => failures.push(failure.to_string()),
        }
    }
    println!(
        "{gpu:?}: {same} of {} kernels leave the same bytes, {} differ",
        seeds().count(),
        failures.len()
    );
    for (why, count) in &refused {
        println!("{count} refused: {why}");
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(same * 2 > seeds().count() as u64, "most are refused");
}
