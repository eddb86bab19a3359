//! Random kernels on the first GPU of this machine and on the reference machine, byte by byte.

#![cfg(feature = "gpu")]

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
            Arg::Scalar(_) | Arg::ThreadgroupLength(_) => Ok(None),
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
                Arg::ReadBuffer(_) | Arg::Scalar(_) | Arg::ThreadgroupLength(_) => {}
            }
        }
    }
    Ok(())
}

/// How many kernels: `INVAR_RANDOM_KERNELS`, else few, since lavapipe compiles slowly.
fn count() -> u64 {
    let asked = std::env::var("INVAR_RANDOM_KERNELS").ok();
    asked.and_then(|n| n.parse().ok()).unwrap_or(40)
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
    match compare(&mut target, &options, 0..count()) {
        Ok(summary) => {
            println!("{summary}");
            assert!(summary.same * 2 > count(), "most are refused");
        }
        Err(failure) => panic!("{failure}"),
    }
}
