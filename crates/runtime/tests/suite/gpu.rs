//! The GPU device: every `; run:` line of `tests/ir/run` on every adapter of this machine, compared with
//! what the line says and with the reference machine.

#![cfg(feature = "gpu")]

use std::path::{Path, PathBuf};

use invar_interp::case::{bind, mismatches};
use invar_interp::{Arg, Grid, Options, run};
use invar_ir::ops::Meaning;
use invar_ir::text::{case::cases, data::random_scalar, parse};
use invar_ir::{Access, Const, KernelBuilder, Module, Op, Place, Rule, Scalar, Type, verify};
use invar_runtime::gpu::{Gpu, GpuArg, GpuBuffer, GpuProgram};
use invar_runtime::{Arg as DeviceArg, Buffer, CompileOptions, Device, Dispatch, bf16, f16, scope};

fn files() -> Vec<PathBuf> {
    // A machine that runs this test need not be the one that built it.
    let folder = match std::env::var_os("INVAR_RUN_FILES") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/ir/run"),
    };
    invar_ir::text::case::files(&folder).expect("the folder of file tests")
}

/// Files that expect the exact bytes of what only `ieee-float` promises (A9): a fused product and sum.
const NEED_IEEE_FLOAT: &[&str] = &["A8-contract", "O2-values-live-across-barriers"];

/// Files in which threads wait for another threadgroup (X3): a driver that ends loops may end the wait, and says
/// so, where the other has not begun.
const NEED_PROGRESS: &[&str] = &["X3-a-flag-passes", "X3-a-wait-that-changes"];

/// Runs every line of a file, of kernels that are proved first or not; gives how many ran, and why others did not.
fn run_file(gpu: &Gpu, path: &Path, prove: bool) -> Result<(u32, Vec<String>), String> {
    let source = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let module = parse(&name, &source)
        .and_then(verify)
        .map_err(|e| e.to_string())?;
    let (mut runs, mut skips) = (0, Vec::new());
    let mut programs: Vec<((String, CompileOptions), GpuProgram)> = Vec::new();
    for case in &cases(&source).map_err(|e| e.to_string())? {
        let mut no_files = |n: &str, _: &_| Err(format!("no file `{n}`"));
        let kernel = module.kernel(&case.kernel.name).ok_or("no such kernel")?;
        let own = gpu.capabilities().simdgroup_size;
        let size = kernel.simdgroup_size.unwrap_or(own);
        if case.simdgroup.is_some_and(|wanted| wanted != size) {
            skips.push(format!(
                "{name}: it wants simdgroups of {:?}, here they have {size}",
                case.simdgroup
            ));
            continue;
        }
        let options = Options {
            simdgroup_size: Some(size),
            ..Options::default()
        };
        let mut bound = bind(&module, case, &options, &mut no_files).map_err(|e| e.to_string())?;
        let compile = CompileOptions {
            constants: bound.options.constants.clone(),
            // A proof is of all sizes.
            threadgroup_size: (!prove).then_some(bound.dispatch.threadgroup),
            prove,
            ..CompileOptions::default()
        };
        let key = (bound.kernel.clone(), compile.clone());
        let known = programs.iter().find(|(k, _)| *k == key);
        let compiled = match known {
            Some((_, program)) => Ok(program.clone()),
            None => gpu.compile(&module, &bound.kernel, &compile),
        };
        let program = match compiled {
            Ok(program) => {
                programs.push((key, program.clone()));
                program
            }
            Err(error) => {
                let rule = error.rule();
                let refusals = [
                    Rule::UnsupportedFeature,
                    Rule::UnsupportedFloatMode,
                    Rule::UnsupportedMemoryOrder,
                ];
                if rule.is_some_and(|r| refusals.contains(&r)) {
                    skips.push(format!("{name}: {error}"));
                    continue;
                }
                return Err(error.to_string());
            }
        };
        let buffers: Vec<Option<GpuBuffer>> = bound
            .args
            .iter()
            .map(|arg| match arg {
                Arg::Scalar(_) | Arg::ThreadgroupLength(_) => Ok(None),
                buffer => gpu.buffer_from(buffer.bytes()).map(Some),
            })
            .collect::<Result<_, _>>()
            .map_err(|e| e.to_string())?;
        let args: Vec<GpuArg<'_>> = bound
            .args
            .iter()
            .zip(&buffers)
            .map(|(arg, buffer)| match (arg, buffer) {
                (Arg::Scalar(components), _) => GpuArg::Scalar(components),
                (Arg::ThreadgroupLength(n), _) => GpuArg::ThreadgroupLength(*n),
                (_, Some(buffer)) => GpuArg::Buffer(buffer),
                (_, None) => unreachable!("every buffer was uploaded"),
            })
            .collect();
        gpu.dispatch(&program, bound.dispatch, &args)
            .map_err(|e| e.to_string())?;
        if let Err(error) = gpu.wait() {
            let ended = gpu.features().ends_loops && error.rule() == Some(Rule::DeadlineExceeded);
            if ended && NEED_PROGRESS.iter().any(|f| name.starts_with(f)) {
                skips.push(format!("{name}: needs threadgroup-progress: {error}"));
                continue;
            }
            return Err(error.to_string());
        }
        let mut after = Vec::new();
        for (arg, buffer) in bound.args.iter().zip(&buffers) {
            after.push(match (arg, buffer) {
                (Arg::Scalar(components), _) => Arg::Scalar(components.clone()),
                (Arg::ThreadgroupLength(n), _) => Arg::ThreadgroupLength(*n),
                (_, Some(buffer)) => Arg::OwnedBuffer(buffer.read().map_err(|e| e.to_string())?),
                (_, None) => unreachable!("every buffer was uploaded"),
            });
        }
        run(
            &module,
            &bound.kernel,
            &bound.dispatch,
            &mut bound.args,
            &bound.options,
            &mut [],
        )
        .map_err(|e| e.to_string())?;
        let wrong = mismatches(&module, case, &after, &bound.args, &mut no_files);
        if let Some(first) = wrong.first() {
            if NEED_IEEE_FLOAT.iter().any(|f| name.starts_with(f)) {
                skips.push(format!("{name}: needs ieee-float: {first}"));
                continue;
            }
            return Err(first.to_string());
        }
        runs += 1;
    }
    Ok((runs, skips))
}

/// The adapters of this machine; a machine without any has nothing to test.
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn gpus() -> Vec<Gpu> {
    let names = Gpu::names();
    if names.is_empty() {
        println!("skipped: this machine has no adapter (mesa-vulkan-drivers brings one)");
    }
    (0..names.len()).map(|i| Gpu::open(i).unwrap()).collect()
}

#[test]
#[expect(clippy::print_stdout, reason = "a test says how much it ran")]
fn every_run_line_holds_on_every_adapter() {
    // As they are, with every dispatch coarsened that can be, and so without guards where a proof says so.
    let ways = [(u64::MAX, false), (1, false), (1, true)];
    let gpus = gpus().into_iter();
    for (gpu, (coarse_from, prove)) in gpus.flat_map(|gpu| ways.map(|way| (gpu.clone(), way))) {
        gpu.coarsen_from(coarse_from);
        let before = Device::dispatches_without_checks();
        let (mut runs, mut skips, mut failures) = (0, Vec::new(), Vec::new());
        for path in files() {
            match run_file(&gpu, &path, prove) {
                Ok((n, why)) => {
                    runs += n;
                    skips.extend(why);
                }
                Err(error) => failures.push(format!("{}: {error}", path.display())),
            }
        }
        let without = Device::dispatches_without_checks() - before;
        println!(
            "{gpu:?}: {runs} runs, {without} of them without guards, {} skipped",
            skips.len()
        );
        for skip in &skips {
            println!("  {skip}");
        }
        assert!(failures.is_empty(), "{}", failures.join("\n"));
        assert!(runs >= 50, "only {runs} runs");
        assert_eq!(without >= 50, prove, "{without} without guards");
    }
}

const CHAIN: &str = "
kernel @scale(%x: device read f32, %by: f32, %y: device write f32) {
    %i = thread_position_in_grid x
    %v = load %x[%i]
    %w = mul %v, %by
    store %y[%i], %w
}";

#[test]
fn a_gpu_is_a_device_like_the_others() {
    if gpus().is_empty() {
        return;
    }
    let device = Device::gpu().unwrap();
    let module = verify(parse("chain.inv", CHAIN).unwrap()).unwrap();
    let program = device.compile(&module, "scale").unwrap();
    let x = Buffer::from_slice(&device, &[1.0f32, 2.0, 3.0, 4.0, 5.0]).unwrap();
    let y = Buffer::<f32>::zeroed(&device, 5).unwrap();
    let queue = device.queue();
    // One after another (O3), and only three threads at last: the others' elements stay.
    for (from, to, by, threads) in [(&x, &y, 2.0f32, 5), (&y, &x, 10.0, 5), (&x, &y, 0.5, 3)] {
        let args = [from.into(), by.into(), to.into()];
        queue
            .dispatch(&program, Dispatch::linear(threads, 64), &args)
            .unwrap();
    }
    assert_eq!(y.read().unwrap(), [10.0, 20.0, 30.0, 8.0, 10.0]);
    // An empty grid runs nothing (X1).
    let args = [(&x).into(), 9.0f32.into(), (&y).into()];
    queue.run(&program, Dispatch::linear(0, 64), &args).unwrap();
    assert_eq!(y.read().unwrap(), [10.0, 20.0, 30.0, 8.0, 10.0]);
    assert_eq!(Device::named("gpu").unwrap().capabilities().name, "gpu");
    let overlapping = [(&x).into(), 1.0f32.into(), (&x).into()];
    let refused = queue
        .run(&program, Dispatch::linear(5, 64), &overlapping)
        .unwrap_err();
    assert_eq!(refused.rule(), Some(Rule::OverlappingBuffers));
}

/// Buffers of the device stay there; the host sees them as they are, parts of them go there and back.
#[test]
fn the_host_and_the_gpu_see_each_others_changes() {
    if gpus().is_empty() {
        return;
    }
    let device = Device::gpu().unwrap();
    let module = verify(parse("chain.inv", CHAIN).unwrap()).unwrap();
    let program = device.compile(&module, "scale").unwrap();
    let queue = device.queue();
    let mut x = Buffer::from_slice(&device, &[1.0f32, 2.0, 3.0, 4.0, 5.0]).unwrap();
    let y = Buffer::<f32>::zeroed(&device, 5).unwrap();
    let three = Dispatch::linear(3, 64);
    let scale = |from: DeviceArg<'_>, by: f32, to: DeviceArg<'_>| {
        queue.dispatch(&program, three, &[from, by.into(), to])
    };
    scale((&x).into(), 10.0, (&y).into()).unwrap();
    // What the host writes between dispatches, whole and in part, and reads.
    x.write(1, &[7.0]).unwrap();
    y.write(4, &[9.0]).unwrap();
    assert_eq!(y.read().unwrap(), [10.0, 20.0, 30.0, 0.0, 9.0]);
    scale((&x).into(), 2.0, (&y).into()).unwrap();
    assert_eq!(y.read().unwrap(), [2.0, 14.0, 6.0, 0.0, 9.0]);
    // In place.
    x.as_mut_slice().unwrap()[2] = 100.0;
    scale((&x).into(), 1.0, (&y).into()).unwrap();
    assert_eq!(y.read().unwrap(), [1.0, 7.0, 100.0, 0.0, 9.0]);
    // Parts, of buffers that a dispatch has changed.
    scale((&y).into(), 1.0, (&x).into()).unwrap();
    scale(x.slice(1..).into(), 3.0, y.slice(2..4).into()).unwrap();
    assert_eq!(x.as_slice().unwrap(), [1.0, 7.0, 100.0, 4.0, 5.0]);
    scale((&y).into(), 1.0, (&x).into()).unwrap();
    assert_eq!(y.read().unwrap(), [1.0, 7.0, 21.0, 300.0, 9.0]);
    assert_eq!(x.read().unwrap(), [1.0, 7.0, 21.0, 4.0, 5.0]);
    // Memory of the host is copied there and back.
    let mut z = [1.0f32; 4];
    scope(|scope| {
        let z = scope.lend(&device, &mut z)?;
        queue.run(&program, three, &[(&x).into(), 2.0f32.into(), (&z).into()])
    })
    .unwrap();
    assert_eq!(z, [2.0, 14.0, 42.0, 1.0]);
    // Another device does not take them.
    let other = Device::checked();
    let program = other.compile(&module, "scale").unwrap();
    let args = [(&x).into(), 1.0f32.into(), (&y).into()];
    let refused = other.queue().run(&program, three, &args).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "error[invalid-argument]: argument `x` of `scale` lies on device `gpu`, but the kernel runs \
         on device `checked`: copy it there"
    );
}

const LONG: &str = "
kernel @long(%x: device read_write u32, %n: u32) {
    %zero = const u32 0
    %one = const u32 1
    %at = thread_position_in_grid x
    %first = load %x[%at]
    %sum = for %i = %zero to %n step %one carry(%s = %first) {
        %t = mul %s, %s
        %next = add %t, %i
        yield %next
    }
    store %x[%at], %sum
}";

/// A GPU goes on, but the host does not wait for it.
#[test]
fn a_dispatch_that_takes_too_long_is_given_up() {
    if gpus().is_empty() {
        return;
    }
    let device = Device::gpu().unwrap();
    let module = verify(parse("long.inv", LONG).unwrap()).unwrap();
    let program = device.compile(&module, "long").unwrap();
    let queue = device.queue();
    // Long for this GPU: where the driver ends loops after some 65,000 iterations it needs many threads.
    let (threads, iterations) = match Gpu::open(0).unwrap().features().ends_loops {
        true => (1u32 << 17, 60_000u32),
        false => (1, 1 << 28),
    };
    let grid = Dispatch::linear(threads, 64);
    let mut x = vec![3u32; threads as usize];
    scope(|scope| {
        let x = scope.lend(&device, &mut x)?;
        let limit = Some(std::time::Duration::from_millis(1));
        let limited = device.queue().with_time_limit(limit);
        let args = [(&x).into(), iterations.into()];
        let late = limited.run(&program, grid, &args);
        assert_eq!(late.unwrap_err().rule(), Some(Rule::DeadlineExceeded));
        let submission = queue.dispatch(&program, grid, &args)?;
        submission.cancel();
        assert_eq!(submission.wait().unwrap_err().rule(), Some(Rule::Cancelled));
        assert!(x.read()?.iter().all(|&x| x == 3));
        queue.run(&program, grid, &[(&x).into(), 2u32.into()])
    })
    .unwrap();
    // 3 * 3 + 0, 9 * 9 + 1
    assert!(x.iter().all(|&x| x == 82));
}

#[test]
fn a_line_longer_than_a_dimension_is_folded() {
    for gpu in gpus() {
        let module = verify(parse("chain.inv", CHAIN).unwrap()).unwrap();
        let program = gpu
            .compile(&module, "scale", &CompileOptions::default())
            .unwrap();
        // Threadgroups of one thread: more of them than a dimension takes.
        let count = 70_001usize;
        let data: Vec<u8> = (0..count).flat_map(|i| (i as f32).to_le_bytes()).collect();
        let x = gpu.buffer_from(&data).unwrap();
        let y = gpu.buffer(data.len() as u64).unwrap();
        let by = [Const::from(1.0f32)];
        let args = [GpuArg::Buffer(&x), GpuArg::Scalar(&by), GpuArg::Buffer(&y)];
        gpu.dispatch(&program, Dispatch::linear(count as u32, 1), &args)
            .unwrap();
        assert!(y.read().unwrap() == data, "{gpu:?}");
    }
}

const SHIFTED: &str = "
kernel @shifted(%x: device read u32, %n: u32, %y: device read_write u32) {
    %i = thread_position_in_grid x
    %j = thread_position_in_grid y
    %g = threadgroup_position_in_grid x
    %width = const u32 1000
    %outside = ge %i, %n
    if %outside {
        return
    }
    %row = mul %j, %width
    %at = add %row, %i
    %one = const u32 1
    %next = add %at, %one
    %a = load %x[%at]
    %b = load %x[%next]
    %zero = const u32 0
    %bit = and %a, %one
    %odd = ne %bit, %zero
    %c = if %odd {
        %old = load %y[%at]
        %s = add %old, %b
        yield %s
    } else {
        %d = sub %b, %g
        yield %d
    }
    store %y[%at], %c
}";

/// Threadgroups that fill workgroups, some that are left, one that is not full, a second dimension; some
/// threads leave at once, and sides of an `if` differ from thread to thread.
#[test]
fn a_coarse_dispatch_leaves_what_a_fine_one_does() {
    for gpu in gpus() {
        let module = verify(parse("shifted.inv", SHIFTED).unwrap()).unwrap();
        let program = gpu.compile(&module, "shifted", &CompileOptions::default());
        let program = program.unwrap();
        let data: Vec<u8> = (0..3000u32).flat_map(|i| (i * i).to_le_bytes()).collect();
        for (threads, threadgroup) in [
            ([1000, 3, 1], [16, 1, 1]),
            ([999, 3, 1], [16, 2, 1]),
            ([64, 1, 1], [16, 1, 1]),
            ([63, 2, 1], [16, 1, 1]),
        ] {
            let dispatch = Dispatch {
                grid: Grid::Threads(threads),
                threadgroup,
            };
            let mut left = Vec::new();
            for coarse_from in [u64::MAX, 1] {
                gpu.coarsen_from(coarse_from);
                let x = gpu.buffer_from(&data).unwrap();
                let y = gpu.buffer_from(&data).unwrap();
                let n = [Const::from(threads[0] - 5)];
                let args = [GpuArg::Buffer(&x), GpuArg::Scalar(&n), GpuArg::Buffer(&y)];
                gpu.dispatch(&program, dispatch, &args).unwrap();
                left.push(y.read().unwrap());
            }
            assert!(
                left[0] == left[1],
                "{threads:?} in {threadgroup:?} on {gpu:?}"
            );
            assert!(left[0] != data, "{threads:?} in {threadgroup:?} on {gpu:?}");
        }
    }
}

const SCORES: &str = "
kernel @scores(%n: u32, %x: device read f32, %y: device write f32) threadgroup(32, 1, 1) {
    %row = threadgroup_position_in_grid x
    %t = thread_index_in_threadgroup
    %start = mul %row, %n
    %step = const u32 32
    %least = const f32 -inf
    %most = for %j = %t to %n step %step carry(%m = %least) {
        %i = add %start, %j
        %v = load %x[%i]
        %next = max %m, %v
        yield %next
    }
    for %j2 = %t to %n step %step {
        %i2 = add %start, %j2
        %v2 = load %x[%i2]
        %d = sub %v2, %most
        %e = exp %d
        store %y[%i2], %e
    }
}";

/// The length of rows is given at the dispatch: the first dispatch of a length runs the general pipeline,
/// later ones their own, but not for more than some lengths.
#[test]
fn rows_of_a_given_length_leave_the_same() {
    for gpu in gpus() {
        let module = verify(parse("scores.inv", SCORES).unwrap()).unwrap();
        let compile = || gpu.compile(&module, "scores", &CompileOptions::default());
        let program = compile().unwrap();
        for n in [256u32, 250, 64, 8, 0, 4096, 96, 128, 160, 192, 256] {
            let data: Vec<u8> = (0..4 * n)
                .flat_map(|i| ((i * 7919 % 1021) as f32 / 64.0).to_le_bytes())
                .collect();
            let n = [Const::from(n)];
            let mut left = Vec::new();
            for (coarse_from, times) in [(u64::MAX, 1), (1, 3)] {
                gpu.coarsen_from(coarse_from);
                for _ in 0..times {
                    let x = gpu.buffer_from(&data).unwrap();
                    let y = gpu.buffer(data.len() as u64 + 4).unwrap();
                    let args = [GpuArg::Scalar(&n), GpuArg::Buffer(&x), GpuArg::Buffer(&y)];
                    let dispatch = Dispatch::linear(4 * 32, 32);
                    gpu.dispatch(&program, dispatch, &args).unwrap();
                    left.push(y.read().unwrap());
                }
            }
            assert!(
                left.iter().all(|l| *l == left[0]),
                "rows of {n:?} on {gpu:?}"
            );
        }
    }
}

const TURNED: &str = "
kernel @turned(%n: u32, %m: u32, %x: device read u32, %y: device read_write u32) {
    %column = thread_position_in_grid x
    %row = thread_position_in_grid y
    %outside = ge %column, %n
    if %outside {
        return
    }
    %p = mul %row, %n
    %i = add %p, %column
    %v = load %x[%i]
    %q = mul %column, %m
    %o = add %q, %row
    store %y[%o], %v
}";

/// A transpose, whose threadgroups are launched with y before x: of a grid with edges, coarse or not,
/// and of lines in either dimension that are longer than one takes.
#[test]
fn threadgroups_in_another_order_leave_the_same() {
    for gpu in gpus() {
        let module = verify(parse("turned.inv", TURNED).unwrap()).unwrap();
        let program = gpu.compile(&module, "turned", &CompileOptions::default());
        let program = program.unwrap();
        for (n, m, threadgroup) in [
            (100u32, 70u32, [8, 4, 1]),
            (1, 70_001, [1, 1, 1]),
            (70_001, 1, [1, 1, 1]),
        ] {
            let data: Vec<u8> = (0..n * m).flat_map(u32::to_le_bytes).collect();
            let expected: Vec<u8> = (0..n * m)
                .flat_map(|i| (i % m * n + i / m).to_le_bytes())
                .collect();
            for coarse_from in [u64::MAX, 1] {
                gpu.coarsen_from(coarse_from);
                let x = gpu.buffer_from(&data).unwrap();
                let y = gpu.buffer(data.len() as u64).unwrap();
                let sizes = [[Const::from(n)], [Const::from(m)]];
                let args = [
                    GpuArg::Scalar(&sizes[0]),
                    GpuArg::Scalar(&sizes[1]),
                    GpuArg::Buffer(&x),
                    GpuArg::Buffer(&y),
                ];
                let dispatch = Dispatch {
                    grid: Grid::Threads([n, m, 1]),
                    threadgroup,
                };
                gpu.dispatch(&program, dispatch, &args).unwrap();
                assert!(y.read().unwrap() == expected, "{n} by {m} on {gpu:?}");
            }
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    for gpu in gpus() {
        let most = gpu.capabilities().buffer_bytes;
        let refused = gpu.buffer(most + 1).unwrap_err();
        assert_eq!(refused.rule(), Some(Rule::OutOfMemory));
        let strict = CHAIN.replace(") {", ") strict {");
        let module = verify(parse("strict.inv", &strict).unwrap()).unwrap();
        let refused = gpu
            .compile(&module, "scale", &CompileOptions::default())
            .unwrap_err();
        assert_eq!(refused.rule(), Some(Rule::UnsupportedFloatMode));

        // Threadgroup memory and threads of a threadgroup, one more of each than there may be.
        let able = gpu.capabilities().clone();
        let words = able.threadgroup_memory_bytes / 4 + 1;
        let text = format!(
            "kernel @k(%y: device write f32) threadgroup(4) {{
                %a = alloc threadgroup f32[{words}]
                %t = thread_index_in_threadgroup
                %v = load %a[%t]
                store %y[%t], %v
            }}"
        );
        let y = gpu.buffer(16).unwrap();
        let run = |text: &str, threads: u32, args: &[GpuArg<'_>]| {
            let module = verify(parse("k.inv", text).unwrap()).unwrap();
            let program = gpu.compile(&module, "k", &CompileOptions::default())?;
            gpu.dispatch(&program, Dispatch::linear(threads, threads), args)
        };
        let refused = run(&text, 4, &[GpuArg::Buffer(&y)]).unwrap_err();
        assert_eq!(refused.rule(), Some(Rule::InvalidArgument), "{refused}");
        let text = "kernel @k(%y: device write u32) {
            %t = thread_index_in_threadgroup
            store %y[%t], %t
        }";
        let threads = able.threads_per_threadgroup + 1;
        let refused = run(text, threads, &[GpuArg::Buffer(&y)]).unwrap_err();
        assert_eq!(refused.rule(), Some(Rule::InvalidDispatch), "{refused}");
        // None of these left the GPU unusable.
        run(text, 4, &[GpuArg::Buffer(&y)]).unwrap();
        let bytes: Vec<u8> = (0..4u32).flat_map(u32::to_le_bytes).collect();
        assert_eq!(y.read().unwrap(), bytes);
    }
}

const THREADS: u32 = 61;

/// Bits of an operand: numbers of everyday size, small integers, and any bits at all.
fn operand(scalar: Scalar, seed: u64, thread: u32) -> u64 {
    let any = random_scalar(Scalar::U64, seed, thread.into()).bits;
    let cut = |bits: u64| bits & (u64::MAX >> (64 - scalar.bits()));
    match (scalar, thread % 3) {
        (Scalar::Bool, _) => any & 1,
        (Scalar::F16 | Scalar::BF16 | Scalar::F32, 0) => {
            random_scalar(scalar, seed, thread.into()).bits
        }
        (_, 1) if scalar.is_integer() => cut((any % 7).wrapping_sub(2)),
        _ => cut(any),
    }
}

/// Whether a result is the expected one: the same bits, but for floats two NaNs, two numbers so small
/// that the target may make them 0, or an error of a few units in the last place (A9).
fn is_right(scalar: Scalar, found: &[u8], expected: &[u8]) -> bool {
    if found == expected {
        return true;
    }
    let number = |bytes: &[u8]| match (scalar, bytes) {
        (Scalar::F16, [a, b]) => f64::from(f16::from_le_bytes([*a, *b])),
        (Scalar::BF16, [a, b]) => f64::from(bf16::from_le_bytes([*a, *b])),
        (Scalar::F32, [a, b, c, d]) => f64::from(f32::from_le_bytes([*a, *b, *c, *d])),
        _ => f64::INFINITY,
    };
    let (ulp, tiny) = match scalar {
        Scalar::F16 => (1.0 / 1024.0, 0.0),
        Scalar::BF16 => (1.0 / 128.0, f64::from(f32::MIN_POSITIVE)),
        Scalar::F32 => (1.0 / 8_388_608.0, f64::from(f32::MIN_POSITIVE)),
        _ => return false,
    };
    let (a, b) = (number(found), number(expected));
    (a.is_nan() && b.is_nan())
        || (a.abs() <= tiny && b.abs() <= tiny)
        || (a - b).abs() <= 3.0 * ulp * b.abs()
}

/// Every basic operation on scalars: integers and truth values have one answer everywhere (A1 to A7),
/// floats one within the bounds of a device without `ieee-float`.
#[test]
#[expect(clippy::print_stdout, reason = "a test says how much it ran")]
fn basic_operations_are_right() {
    let Some(gpu) = gpus().into_iter().next() else {
        return;
    };
    let (mut count, mut wrong) = (0, Vec::new());
    for op in Op::all() {
        if !matches!(op.row().meaning, Meaning::Eval(_) | Meaning::Arrange) {
            continue;
        }
        for (imm, types) in op.row().signature.instances() {
            let result = op.result_type(imm, &types).unwrap();
            let all: Vec<Type> = types.iter().copied().chain([result]).collect();
            // Where the target does not fuse, only its terms bound the error.
            let bounded = op != Op::Fma;
            let scalars = all.iter().all(|ty| ty.component_count() == 1);
            if !bounded || !scalars || all.contains(&Type::Scalar(Scalar::F64)) {
                continue;
            }
            let bytes: Vec<Vec<u8>> = types
                .iter()
                .enumerate()
                .map(|(c, ty)| {
                    let scalar = ty.scalar().unwrap();
                    (0..THREADS)
                        .flat_map(|t| {
                            operand(scalar, c as u64, t).to_le_bytes()
                                [..scalar.size_bytes() as usize]
                                .to_vec()
                        })
                        .collect()
                })
                .collect();
            let mut k = KernelBuilder::new(Module::default(), "k");
            let params: Vec<_> = types
                .iter()
                .map(|ty| k.buffer("x", Access::Read, *ty))
                .collect();
            let out = k.buffer("out", Access::Write, result);
            let i = k.thread_index_in_threadgroup();
            let args: Vec<_> = params
                .iter()
                .map(|p| k.load(Place::element(*p, i)))
                .collect();
            let value = k.op(op, imm, &args);
            k.store(Place::element(out, i), value);
            let module = verify(k.finish().unwrap()).unwrap();
            let size = result.scalar().unwrap().size_bytes() * u64::from(THREADS);

            let program = gpu
                .compile(&module, "k", &CompileOptions::default())
                .unwrap();
            let mut buffers: Vec<GpuBuffer> =
                bytes.iter().map(|b| gpu.buffer_from(b).unwrap()).collect();
            buffers.push(gpu.buffer(size).unwrap());
            let args: Vec<GpuArg<'_>> = buffers.iter().map(GpuArg::Buffer).collect();
            let dispatch = Dispatch::linear(THREADS, THREADS);
            gpu.dispatch(&program, dispatch, &args).unwrap();
            let found = buffers[types.len()].read().unwrap();

            let mut expected: Vec<Arg> = bytes.into_iter().map(Arg::OwnedBuffer).collect();
            expected.push(Arg::zeros(size as usize));
            run(
                &module,
                "k",
                &dispatch,
                &mut expected,
                &Options::default(),
                &mut [],
            )
            .unwrap();
            let expected = expected[types.len()].bytes();
            let scalar = result.scalar().unwrap();
            let pairs = found
                .chunks(scalar.size_bytes() as usize)
                .zip(expected.chunks(scalar.size_bytes() as usize));
            if let Some((at, (found, expected))) = pairs
                .enumerate()
                .find(|(_, (a, b))| !is_right(scalar, a, b))
            {
                wrong.push(format!(
                    "{op} {imm:?} of {types:?} at {at}: {found:?}, expected {expected:?}"
                ));
            }
            count += 1;
        }
    }
    println!("{count} operations");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 400, "only {count}");
}
