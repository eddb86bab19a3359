//! `bench`: how long a kernel takes, and how much memory it moves in that time.

use std::time::{Duration, Instant};

use clap::Args;
use invar::{Arg as DeviceArg, ByteBuffer, CompileOptions, Device, Error, Texture};
use invar_interp::Arg;
use invar_interp::case::Bound;
use invar_ir::text::case::RunCase;
use invar_ir::{Access, Diagnostics, Kernel, ParamKind, Verified};
use serde_json::json;

use crate::input::Loaded;
use crate::outcome::{Refusal, Verdict};
use crate::output::{self, Output, time};
use crate::place::Place;
use crate::plan::{self, Inputs, Plan, Planned};
use crate::{options, program};

#[derive(Args)]
pub struct BenchArgs {
    #[command(flatten)]
    pub inputs: Inputs,
    /// The device: default, or any of `invar devices`.
    #[arg(long, value_name = "DEVICE", default_value = "default")]
    pub device: String,
    /// Measure each run for about so long.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 1.0,
        allow_negative_numbers = true
    )]
    seconds: f64,
    /// Prove first in which launches all accesses are in bounds, as `invar prove` does: those run without bounds
    /// checks. For the CPU device and GPUs.
    #[arg(long)]
    prove: bool,
}

/// Runs at least so often, however long that takes.
const LEAST: usize = 5;
/// Before measuring, so that memory is there and caches are filled.
const WARM: usize = 2;

/// What was measured.
struct Measured {
    compile: Duration,
    /// Sorted.
    runs: Vec<Duration>,
}

pub fn bench(args: &BenchArgs, loaded: &Loaded) -> Result<Verdict, Refusal> {
    let patience = options::duration("--seconds", args.seconds)?;
    let plan = match plan::plan(&args.inputs, loaded)? {
        Planned::Ready(plan) => plan,
        Planned::Invalid {
            sources,
            calls,
            diagnostics,
        } => return output::refused(&args.inputs, sources, calls, &diagnostics),
    };
    let options = plan::options(&args.inputs)?;
    let mut output = Output::new(&args.inputs, &plan);
    for case in &plan.cases {
        match plan::bound(&plan, case, &options)? {
            Ok(bound) => {
                bench_one(&plan, args, patience, case, bound, &mut output)?;
            }
            Err(diagnostics) => {
                output.result(&case.kernel.name, &diagnostics, "", json!({}));
            }
        }
    }
    program::bench(&plan, args, patience, &options, &mut output)?;
    output.finish()
}

/// Measures one run and tells the times; whether it could be run.
pub fn bench_one(
    plan: &Plan,
    args: &BenchArgs,
    patience: Duration,
    case: &RunCase,
    bound: Bound,
    output: &mut Output,
) -> Result<bool, Refusal> {
    let name = &case.kernel.name;
    let device = match Place::of(Some(&args.device), &args.inputs, &plan.module, &bound)? {
        Ok(Place::Device(device)) => device,
        Ok(Place::Reference) => {
            return Err(Refusal(
                "bench measures devices, and the reference machine is not a device".to_string(),
            ));
        }
        Err(why) => {
            output.skip(plan, name, why)?;
            return Ok(false);
        }
    };
    let bytes = plan
        .module
        .kernel(&bound.kernel)
        .map_or(0, |kernel| touched(kernel, &bound.args));
    let measured = match measure(&device, &plan.module, bound, (patience, args.prove)) {
        Ok(measured) => measured,
        Err(error) => {
            let Diagnostics(all) = error.into_diagnostics();
            let all = plan::usage_or_findings(&plan.file, Some(case), all)?;
            output.result(name, &all, "", json!({}));
            return Ok(false);
        }
    };
    let runs = &measured.runs;
    let median = runs[runs.len() / 2].as_secs_f64();
    let least = runs[0].as_secs_f64();
    // What touches no byte, or has an empty grid, may take no time.
    let rate = if bytes == 0 || median == 0.0 {
        0.0
    } else {
        bytes as f64 / median / 1e9
    };
    let device = &device.capabilities().name;
    let closing = format!(
        "@{name} on {device}: median {} of {} runs, least {}; {rate:.2} GB/s of {bytes} bytes; \
         compiled in {}",
        time(median),
        runs.len(),
        time(least),
        time(measured.compile.as_secs_f64()),
    );
    output.result(
        name,
        &[],
        &closing,
        json!({
            "device": device,
            "median_seconds": median,
            "least_seconds": least,
            "runs": runs.len(),
            "bytes": bytes,
            "gigabytes_per_second": rate,
            "compile_seconds": measured.compile.as_secs_f64(),
        }),
    );
    Ok(true)
}

/// Memory of a device.
enum Held {
    Buffer(ByteBuffer),
    Texture(Texture),
}

/// Bytes of the buffers, those that are both read and written twice.
fn touched(kernel: &Kernel, args: &[Arg]) -> u64 {
    let each = kernel.params.iter().zip(args).map(|(param, arg)| {
        let times = match &param.kind {
            ParamKind::Buffer { access, .. } => match access {
                Access::Read | Access::Write => 1,
                Access::ReadWrite => 2,
            },
            ParamKind::Texture(texture) => match texture.access.memory() {
                Access::Read | Access::Write => 1,
                Access::ReadWrite => 2,
            },
            ParamKind::Constant { .. } => 1,
            ParamKind::Scalar { .. } | ParamKind::Threadgroup { .. } | ParamKind::Sampler => 0,
        };
        times * arg.bytes().len() as u64
    });
    each.sum()
}

fn measure(
    device: &Device,
    module: &Verified,
    bound: Bound,
    (patience, prove): (Duration, bool),
) -> Result<Measured, Error> {
    let start = Instant::now();
    let options = CompileOptions {
        constants: bound.options.constants.clone(),
        threadgroup_size: Some(bound.dispatch.threadgroup),
        time_limit: bound.options.time_limit,
        prove,
    };
    let program = device.compile_with(module, &bound.kernel, &options)?;
    let compile = start.elapsed();
    let queue = device.queue().with_time_limit(bound.options.time_limit);
    let queue = queue.quiet();
    // Memory of the device's own, so that a run does not pay for the way there.
    let buffers = bound.args.iter().map(|arg| match arg {
        Arg::Buffer(_) | Arg::ReadBuffer(_) | Arg::OwnedBuffer(_) => {
            let buffer = ByteBuffer::zeroed(device, arg.bytes().len())?;
            buffer.write_bytes(0, arg.bytes())?;
            Ok(Some(Held::Buffer(buffer)))
        }
        Arg::Texture(shape, memory) => {
            let texture = Texture::of_shape(device, *shape)?;
            texture.write(memory.bytes())?;
            Ok(Some(Held::Texture(texture)))
        }
        Arg::Scalar(_) | Arg::ThreadgroupLength(_) => Ok(None),
    });
    let buffers = buffers.collect::<Result<Vec<Option<Held>>, Error>>()?;
    let args = bound.args.iter().zip(&buffers).filter_map(|(arg, buffer)| {
        Some(match arg {
            Arg::Buffer(_) | Arg::ReadBuffer(_) | Arg::OwnedBuffer(_) | Arg::Texture(..) => {
                Ok(match buffer.as_ref()? {
                    Held::Buffer(buffer) => DeviceArg::from(buffer),
                    Held::Texture(texture) => DeviceArg::from(texture),
                })
            }
            Arg::Scalar(components) => DeviceArg::components(components),
            Arg::ThreadgroupLength(length) => Ok(DeviceArg::ThreadgroupLength(*length)),
        })
    });
    let args = args.collect::<Result<Vec<DeviceArg>, Error>>()?;
    let once = || queue.run(&program, bound.dispatch, &args);
    for _ in 0..WARM {
        once()?;
    }
    let start = Instant::now();
    let mut runs = Vec::new();
    while runs.len() < LEAST || start.elapsed() < patience {
        runs.push(once()?.duration());
    }
    runs.sort();
    Ok(Measured { compile, runs })
}
