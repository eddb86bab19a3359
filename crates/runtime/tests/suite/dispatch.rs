//! Devices as a user meets them: arguments, order, failures. Every test runs on every device of this
//! machine unless it is about one of them.

use std::time::Duration;

use invar_ir::{Const, Order, Rule, Scalar, Verified, text, verify};
use invar_runtime::{
    Arg, Buffer, ByteBuffer, CheckOptions, CompileOptions, Device, Dispatch, Error, Feature, Grid,
    PixelFormat, Program, Texture, bf16, f16, scope,
};

use crate::common::hosts;

fn module(source: &str) -> Verified {
    verify(text::parse("test.inv", source).expect("it parses")).expect("it verifies")
}

const SCALE: &str = "
kernel @scale(%x: device read f32, %y: device write f32, %by: f32) {
    %i = thread_position_in_grid x
    %v = load %x[%i]
    %w = mul %v, %by
    store %y[%i], %w
}";

const INCREMENT: &str = "
kernel @increment(%x: device read_write u32) {
    %i = thread_position_in_grid x
    %v = load %x[%i]
    %one = const u32 1
    %w = add %v, %one
    store %x[%i], %w
}";

/// Never ends.
const SPIN: &str = "
kernel @spin(%x: device read_write u32) {
    %zero = const u32 0
    %one = const u32 1
    store %x[%zero], %one
    loop {
        %v = load %x[%zero]
        %stop = eq %v, %zero
        if %stop {
            break
        }
    }
}";

fn compile(device: &Device, source: &str) -> Program {
    let module = module(source);
    let name = module.kernels[0].name.clone();
    device.compile(&module, &name).expect("it compiles")
}

fn rule(error: Error) -> &'static str {
    error.rule().expect("an error has a rule").name()
}

#[test]
fn results_reach_the_host() {
    for device in Device::all() {
        let program = compile(&device, SCALE);
        let data: Vec<f32> = (0..1000).map(|i| i as f32).collect();
        let x = Buffer::from_slice(&device, &data).expect("a buffer");
        let mut y = Buffer::<f32>::zeroed(&device, 1000).expect("a buffer");
        let args = [Arg::from(&x), Arg::from(&y), Arg::from(0.5f32)];
        let queue = device.queue();
        let done = queue
            .dispatch(&program, Dispatch::linear(1000, 64), &args)
            .expect("it fits");
        let times = done.wait().expect("it runs");
        assert!(times.submitted <= times.started && times.started <= times.finished);
        assert!(done.is_done());
        let expected: Vec<f32> = data.iter().map(|v| v * 0.5).collect();
        assert_eq!(y.read().expect("read"), expected, "{device:?}");
        assert_eq!(y.as_slice().expect("settled"), expected);
        let mut some = [0.0; 2];
        y.read_into(10, &mut some).expect("within");
        assert_eq!(some, [5.0, 5.5]);
    }
}

#[test]
fn parts_of_a_buffer_are_buffers() {
    for device in Device::all() {
        let program = compile(&device, SCALE);
        let x = Buffer::from_slice(&device, &[1.0f32, 2.0, 3.0, 4.0]).expect("a buffer");
        let queue = device.queue();
        let halves = [
            Arg::from(x.slice(..2)),
            Arg::from(x.slice(2..)),
            Arg::from(10.0f32),
        ];
        queue
            .run(&program, Dispatch::linear(2, 32), &halves)
            .expect("the halves do not overlap");
        assert_eq!(x.read().expect("read"), [1.0, 2.0, 10.0, 20.0]);
    }
}

#[test]
fn o3_dispatches_that_share_a_buffer_run_in_the_order_submitted() {
    for device in Device::all() {
        let program = compile(&device, INCREMENT);
        let x = Buffer::<u32>::zeroed(&device, 70).expect("a buffer");
        let queues = [device.queue(), device.queue()];
        let iterations = 40;
        for round in 0..iterations {
            queues[round % 2]
                .dispatch(&program, Dispatch::linear(70, 32), &[Arg::from(&x)])
                .expect("it fits");
        }
        assert_eq!(x.read().expect("read"), [iterations as u32; 70]);
        // A write of the host comes between.
        x.write(0, &[100; 70]).expect("written");
        queues[0]
            .dispatch(&program, Dispatch::linear(70, 32), &[Arg::from(&x)])
            .expect("it fits");
        assert_eq!(x.read().expect("read"), [101; 70]);
        for queue in &queues {
            queue.wait().expect("nothing failed");
        }
    }
}

#[test]
fn f2_a_buffer_may_be_dropped_before_its_dispatch_ends() {
    for device in Device::all() {
        let program = compile(&device, SCALE);
        let queue = device.queue();
        let y = Buffer::<f32>::zeroed(&device, 5000).expect("a buffer");
        let done = {
            let x = Buffer::from_slice(&device, &[2.0f32; 5000]).expect("a buffer");
            let args = [Arg::from(&x), Arg::from(&y), Arg::from(4.0f32)];
            queue
                .dispatch(&program, Dispatch::linear(5000, 64), &args)
                .expect("it fits")
        };
        drop(program);
        done.wait().expect("it runs");
        assert_eq!(y.read().expect("read"), [8.0; 5000]);
    }
}

#[test]
fn lent_arrays_are_used_in_place() {
    for device in Device::all() {
        let program = compile(&device, SCALE);
        let x = vec![3.0f32; 300];
        let mut y = vec![0.0f32; 300];
        scope(|scope| {
            let lent_x = scope.lend_read(&device, &x).expect("lent");
            let lent_y = scope.lend(&device, &mut y).expect("lent");
            let queue = device.queue();
            let args = [Arg::from(&lent_x), Arg::from(&lent_y), Arg::from(2.0f32)];
            queue
                .dispatch(&program, Dispatch::linear(300, 32), &args)
                .expect("it fits");
            let error = queue
                .dispatch(
                    &program,
                    Dispatch::linear(300, 32),
                    &[Arg::from(&lent_y), Arg::from(&lent_x), Arg::from(2.0f32)],
                )
                .expect_err("x is only lent for reading");
            assert!(error.to_string().contains("`y` of `scale` is read-only"));
            assert_eq!(
                rule(lent_x.write(0, &[0.0]).expect_err("read-only")),
                "invalid-argument"
            );
        });
        assert_eq!(y, [6.0; 300]);
    }
}

#[test]
fn arguments_that_do_not_fit_are_named() {
    for device in Device::all() {
        let program = compile(&device, SCALE);
        let queue = device.queue();
        let x = Buffer::<f32>::zeroed(&device, 8).expect("a buffer");
        let y = Buffer::<f32>::zeroed(&device, 8).expect("a buffer");
        let wrong = Buffer::<u32>::zeroed(&device, 8).expect("a buffer");
        let grid = Dispatch::linear(8, 8);
        let said = |args: &[Arg]| {
            let error = queue.dispatch(&program, grid, args).expect_err("refused");
            error.to_string()
        };
        let by = Arg::from(1.0f32);
        assert!(said(&[Arg::from(&x), Arg::from(&y)]).contains("takes 3 arguments"));
        assert!(
            said(&[Arg::from(&x), Arg::from(&wrong), by])
                .contains("argument `y` of `scale` is a buffer of u32, expected a buffer of f32")
        );
        assert!(
            said(&[Arg::from(&x), Arg::from(&y), Arg::from(1u32)])
                .contains("argument `by` of `scale` has type u32, expected f32")
        );
        assert!(
            said(&[Arg::from(&x), Arg::from(&y), Arg::from(&y)])
                .contains("argument `by` of `scale` is a buffer, expected a value of type f32")
        );
        assert!(
            said(&[by, Arg::from(&y), by])
                .contains("argument `x` of `scale` is a scalar, expected a buffer of f32")
        );
        let bytes = ByteBuffer::zeroed(&device, 64).expect("a buffer");
        assert!(
            said(&[Arg::from(bytes.slice(1..9)), Arg::from(&y), by]).contains(
                "argument `x` of `scale` begins at an address that is not a multiple of 4"
            )
        );
        let error = queue
            .dispatch(
                &program,
                Dispatch::linear(8, 0),
                &[Arg::from(&x), Arg::from(&y), by],
            )
            .expect_err("refused");
        assert_eq!(rule(error), "invalid-dispatch");
        let error = device
            .compile(program.module(), "nope")
            .expect_err("refused");
        assert!(
            error
                .to_string()
                .contains("no kernel `nope`; it has `scale`")
        );
    }
}

#[test]
fn s3_overlapping_buffers_are_refused() {
    for device in Device::all() {
        let program = compile(&device, SCALE);
        let queue = device.queue();
        let x = Buffer::<f32>::zeroed(&device, 8).expect("a buffer");
        let by = Arg::from(1.0f32);
        let grid = Dispatch::linear(4, 4);
        let error = queue
            .dispatch(&program, grid, &[Arg::from(&x), Arg::from(&x), by])
            .expect_err("refused");
        assert_eq!(
            error.to_string(),
            "error[overlapping-buffers]: arguments `x` and `y` of `scale` overlap in memory, and the \
             kernel may write `y`: give each a buffer of its own"
        );
        let overlapping = [Arg::from(x.slice(0..5)), Arg::from(x.slice(4..8)), by];
        let error = queue
            .dispatch(&program, grid, &overlapping)
            .expect_err("they share an element");
        assert_eq!(rule(error), "overlapping-buffers");
        let apart = [Arg::from(x.slice(0..4)), Arg::from(x.slice(4..8)), by];
        queue.run(&program, grid, &apart).expect("they share none");
        let empty = [Arg::from(x.slice(4..4)), Arg::from(x.slice(0..8)), by];
        queue
            .run(&program, Dispatch::linear(0, 4), &empty)
            .expect("an empty one has no byte to share");
        // Two that are only read may overlap.
        let sum = compile(
            &device,
            "kernel @sum(%a: device read u32, %b: device read u32, %y: device write u32) {
                %i = thread_position_in_grid x
                %u = load %a[%i]
                %v = load %b[%i]
                %w = add %u, %v
                store %y[%i], %w
            }",
        );
        let a = Buffer::from_slice(&device, &[1u32, 2, 3]).expect("a buffer");
        let y = Buffer::<u32>::zeroed(&device, 3).expect("a buffer");
        let args = [Arg::from(&a), Arg::from(&a), Arg::from(&y)];
        queue
            .run(&sum, Dispatch::linear(3, 4), &args)
            .expect("both are read only");
        assert_eq!(y.read().expect("read"), [2, 4, 6]);
    }
}

#[test]
fn s4_sizes_are_checked_before_anything_runs() {
    for device in Device::all() {
        let program = compile(
            &device,
            "kernel @k(%y: device write u32, %tile: threadgroup f32) {
                %n = buffer_length %tile
                %v = cast u32 %n
                %zero = const u32 0
                %t = thread_position_in_grid x
                %first = eq %t, %zero
                if %first {
                    store %y[%zero], %v
                }
            }",
        );
        let queue = device.queue();
        let y = Buffer::<u32>::zeroed(&device, 1).expect("a buffer");
        let bytes = device.capabilities().threadgroup_memory_bytes;
        let most = bytes / 4;
        let args = |n| [Arg::from(&y), Arg::ThreadgroupLength(n)];
        queue
            .run(&program, Dispatch::linear(64, 64), &args(most))
            .expect("as much as there is");
        assert_eq!(y.read().expect("read"), [most as u32]);
        let error = queue
            .dispatch(&program, Dispatch::linear(64, 64), &args(most + 1))
            .expect_err("too much");
        assert_eq!(rule(error), "invalid-argument");
        let threads = device.capabilities().threads_per_threadgroup;
        queue
            .run(&program, Dispatch::linear(1, threads), &args(1))
            .expect("as many as there are");
        let error = queue
            .dispatch(&program, Dispatch::linear(1, threads + 1), &args(1))
            .expect_err("too many");
        assert_eq!(rule(error), "invalid-dispatch");
    }
}

#[test]
fn s5_a_dispatch_that_breaks_what_the_kernel_requires_is_refused() {
    let source = "kernel @square(%a: device read u32, %y: device write u32, %n: u32)
        requires(%n * %n <= length(%a), %n % 2 == 0, each %v of %a: %v < 100, groups.x <= 1) {
            %i = thread_position_in_grid x
            %v = load %a[%i]
            store %y[%i], %v
        }";
    for device in Device::all() {
        let program = compile(&device, source);
        let queue = device.queue();
        let a = Buffer::from_slice(&device, &[1u32; 16]).expect("a buffer");
        let y = Buffer::<u32>::zeroed(&device, 16).expect("a buffer");
        let run = |a: &Buffer<u32>, n: u32, size: u32| {
            let args = [Arg::from(a), Arg::from(&y), Arg::from(n)];
            queue.run(&program, Dispatch::linear(16, size), &args)
        };
        run(&a, 4, 16).expect("it fulfils all");
        assert_eq!(y.read().expect("read"), [1; 16]);
        let refused = |outcome: Result<_, Error>| {
            let error = outcome.expect_err("it is refused");
            assert_eq!(error.rule(), Some(Rule::BrokenRequirement), "{error}");
            error.to_string()
        };
        let message = refused(run(&a, 6, 16));
        let sentence =
            "kernel `square` requires n * n <= length(a), but n is 6 and length(a) is 16";
        assert!(message.contains(sentence), "{message}");
        let message = refused(run(&a, 3, 16));
        assert!(
            message.contains("requires n % 2 == 0, but n is 3"),
            "{message}"
        );
        let message = refused(run(&a, 4, 8));
        assert!(
            message.contains("requires groups.x <= 1, but groups.x is 2"),
            "{message}"
        );
        // What buffers hold, only the checked device looks at.
        let b = Buffer::from_slice(&device, &[100u32; 16]).expect("a buffer");
        let outcome = run(&b, 4, 16);
        if device.capabilities().name == "checked" {
            let message = refused(outcome);
            assert!(message.contains("but a[0] is 100"), "{message}");
        } else {
            outcome.expect("it runs what the instructions say");
            assert_eq!(y.read().expect("read"), [100; 16]);
        }
    }
}

#[test]
fn s5_what_is_required_of_the_size_of_a_texture_is_looked_at_by_every_device() {
    let source = "kernel @fill(%t: texture2d f32 write) requires(grid.x <= width(%t), grid.y <= height(%t)) {
            %x = thread_position_in_grid x
            %y = thread_position_in_grid y
            %one = const f32 1.0
            %v = construct f32x4 %one
            texture_write %t[%x, %y], %v
        }";
    for device in Device::all() {
        let program = compile(&device, source);
        let queue = device.queue();
        let texture = Texture::zeroed(&device, PixelFormat::R8Unorm, 3, 2).expect("a texture");
        let run = |grid: [u32; 3]| {
            let dispatch = Dispatch {
                grid: Grid::Threads(grid),
                threadgroup: [4, 4, 1],
            };
            queue.run(&program, dispatch, &[Arg::from(&texture)])
        };
        run([3, 2, 1]).expect("it fulfils both");
        let error = run([3, 3, 1]).expect_err("there are two rows");
        assert_eq!(error.rule(), Some(Rule::BrokenRequirement), "{error}");
        let sentence = "requires grid.y <= height(t), but grid.y is 3 and height(t) is 2";
        assert!(error.to_string().contains(sentence), "{error}");
    }
}

#[test]
fn x1_an_empty_grid_runs_nothing_and_empty_buffers_are_buffers() {
    for device in Device::all() {
        let program = compile(&device, INCREMENT);
        let queue = device.queue();
        let x = Buffer::from_slice(&device, &[7u32]).expect("a buffer");
        let empty = Dispatch {
            grid: Grid::Threads([4, 0, 4]),
            threadgroup: [4, 4, 4],
        };
        let done = queue
            .dispatch(&program, empty, &[Arg::from(&x)])
            .expect("nothing is wrong with it");
        assert!(done.is_done());
        done.wait().expect("nothing ran");
        queue
            .run(&program, empty, &[Arg::from(&x)])
            .expect("nothing ran");
        assert_eq!(x.read().expect("read"), [7]);
        // Arguments are checked all the same.
        assert!(queue.dispatch(&program, empty, &[]).is_err());
        let none = Buffer::<u32>::zeroed(&device, 0).expect("a buffer of nothing");
        let copy = compile(
            &device,
            "kernel @copy(%x: device read u32, %y: device write u32) allow(out_of_bounds_loads) {
                %i = thread_position_in_grid x
                %v = load %x[%i]
                store %y[%i], %v
            }",
        );
        queue
            .run(
                &copy,
                Dispatch::linear(1, 4),
                &[Arg::from(&none), Arg::from(&x)],
            )
            .expect("it runs");
        assert_eq!(
            x.read().expect("read"),
            [0],
            "B1: a load out of bounds gives 0"
        );
        assert!(none.read().expect("read").is_empty());
    }
}

#[test]
fn function_constants_specialise_a_program() {
    for device in Device::all() {
        let module = module(
            "function_constant @N: u32 = 3 id(0)
            function_constant @BY: f32 id(7)
            kernel @k(%y: device write f32, %z: device write u32) {
                %n = function_constant @N
                %by = function_constant @BY
                %i = thread_position_in_grid x
                store %y[%i], %by
                store %z[%i], %n
            }",
        );
        let error = device.compile(&module, "k").expect_err("BY has no default");
        assert_eq!(rule(error), "function-constant");
        let with = |constants| CompileOptions {
            constants,
            ..CompileOptions::default()
        };
        let options = with(vec![(7.into(), Const::from(2.5f32))]);
        let program = device
            .compile_with(&module, "k", &options)
            .expect("compiled");
        let y = Buffer::<f32>::zeroed(&device, 1).expect("a buffer");
        let z = Buffer::<u32>::zeroed(&device, 1).expect("a buffer");
        let args = [Arg::from(&y), Arg::from(&z)];
        let queue = device.queue();
        queue
            .run(&program, Dispatch::linear(1, 1), &args)
            .expect("it runs");
        assert_eq!((y.read(), z.read()), (Ok(vec![2.5]), Ok(vec![3])));
        let options = with(vec![
            ("BY".into(), Const::from(1.5f32)),
            ("N".into(), Const::from(9u32)),
        ]);
        let program = device
            .compile_with(&module, "k", &options)
            .expect("compiled");
        queue
            .run(&program, Dispatch::linear(1, 1), &args)
            .expect("it runs");
        assert_eq!((y.read(), z.read()), (Ok(vec![1.5]), Ok(vec![9])));
        let wrong = with(vec![("BY".into(), Const::from(1u32))]);
        assert!(device.compile_with(&module, "k", &wrong).is_err());
    }
}

#[test]
fn every_element_type_and_vectors_pass() {
    for device in Device::all() {
        let program = compile(
            &device,
            "kernel @k(%h: device read_write f16, %b: device read_write bf16, \
                       %v: device read_write f32x3, %flag: bool, %scale: f32x3) {
                %i = thread_position_in_grid x
                %h1 = load %h[%i]
                %h2 = add %h1, %h1
                store %h[%i], %h2
                %b1 = load %b[%i]
                %b2 = add %b1, %b1
                store %b[%i], %b2
                if %flag {
                    %v1 = load %v[%i]
                    %v2 = mul %v1, %scale
                    store %v[%i], %v2
                }
            }",
        );
        let h = Buffer::from_slice(&device, &[f16::from_f32(1.5); 2]).expect("a buffer");
        let b = Buffer::from_slice(&device, &[bf16::from_f32(2.0); 2]).expect("a buffer");
        let v = Buffer::from_slice(&device, &[[1.0f32, 2.0, 3.0]; 2]).expect("a buffer");
        let args = [
            Arg::from(&h),
            Arg::from(&b),
            Arg::from(&v),
            Arg::from(true),
            Arg::vector([2.0f32, 3.0, 4.0]),
        ];
        let queue = device.queue();
        queue
            .run(&program, Dispatch::linear(2, 2), &args)
            .expect("it runs");
        assert_eq!(h.read().expect("read"), [f16::from_f32(3.0); 2]);
        assert_eq!(b.read().expect("read"), [bf16::from_f32(4.0); 2]);
        assert_eq!(v.read().expect("read"), [[2.0, 6.0, 12.0]; 2]);
    }
}

#[test]
fn limits_and_timeouts_that_no_clock_reaches_are_none() {
    for device in hosts() {
        let program = compile(&device, INCREMENT);
        let x = Buffer::<u32>::zeroed(&device, 1).expect("a buffer");
        let queue = device.queue().with_time_limit(Some(Duration::MAX));
        let done = queue
            .dispatch(&program, Dispatch::linear(1, 1), &[Arg::from(&x)])
            .expect("it fits");
        assert!(done.wait_timeout(Duration::MAX), "{device:?}");
        done.wait().expect("it ends");
        assert_eq!(x.read().expect("read"), [1]);
    }
}

#[test]
fn elements_without_bytes_make_an_empty_buffer() {
    for device in hosts() {
        let none = Buffer::<[f32; 0]>::from_slice(&device, &[[]; 3]).expect("a buffer");
        assert_eq!((none.len(), none.bytes().size_bytes()), (0, 0));
        let some = Buffer::from_slice(&device, &[[1.0f32, 2.0]; 3]).expect("a buffer");
        assert_eq!(some.read().expect("read"), [[1.0, 2.0]; 3]);
    }
}

#[test]
fn an_empty_buffer_is_an_empty_slice() {
    for device in hosts() {
        let mut own = Buffer::<f64>::zeroed(&device, 0).expect("a buffer");
        // SAFETY: there are no bytes.
        let lent = unsafe { Buffer::<f64>::from_raw(&device, std::ptr::null_mut(), 0, true) };
        for buffer in [&mut own, &mut lent.expect("a buffer")] {
            assert_eq!(buffer.as_slice().expect("a slice"), []);
            let slice = buffer.as_mut_slice().expect("a slice");
            assert!(slice.is_empty() && slice.as_ptr().is_aligned());
        }
    }
}

#[test]
fn a_runaway_kernel_is_stopped_and_the_device_goes_on() {
    for device in hosts() {
        let program = compile(&device, SPIN);
        let x = Buffer::<u32>::zeroed(&device, 1).expect("a buffer");
        let queue = device
            .queue()
            .with_time_limit(Some(Duration::from_millis(50)));
        let done = queue
            .dispatch(&program, Dispatch::linear(1, 1), &[Arg::from(&x)])
            .expect("it fits");
        let error = done.wait().expect_err("it never ends");
        assert_eq!(rule(error), "deadline-exceeded", "{device:?}");
        // F3: what was stored is there.
        assert_eq!(x.read().expect("read"), [1]);
        let error = queue.wait().expect_err("a dispatch of the queue failed");
        assert_eq!(rule(error), "deadline-exceeded");
        queue.wait().expect("it was told once");
        let next = compile(&device, INCREMENT);
        queue
            .run(&next, Dispatch::linear(1, 1), &[Arg::from(&x)])
            .expect("it runs");
        assert_eq!(x.read().expect("read"), [2]);
    }
}

#[test]
fn a_dispatch_can_be_cancelled_while_others_wait_for_it() {
    for device in hosts() {
        let program = compile(&device, SPIN);
        let next = compile(&device, INCREMENT);
        let x = Buffer::<u32>::zeroed(&device, 1).expect("a buffer");
        let queue = device.queue();
        let args = [Arg::from(&x)];
        let spinning = queue
            .dispatch(&program, Dispatch::linear(1, 1), &args)
            .expect("it fits");
        let after = queue
            .dispatch(&next, Dispatch::linear(1, 1), &args)
            .expect("it fits");
        assert!(!spinning.wait_timeout(Duration::from_millis(30)));
        assert!(!after.is_done(), "O3: it waits");
        spinning.cancel();
        assert_eq!(rule(spinning.wait().expect_err("cancelled")), "cancelled");
        after.wait().expect("it runs after a failed one");
        let left = x.read().expect("read")[0];
        assert!(left == 1 || left == 2, "F3: {left}");
    }
}

/// One that waits for another which uses the same memory, or for threads that others leave to it.
#[test]
fn a_dispatch_that_has_not_begun_is_cancelled_at_once() {
    for device in hosts() {
        let program = compile(&device, SPIN);
        let next = compile(&device, INCREMENT);
        let queue = device.queue();
        let buffers = [(); 300].map(|()| Buffer::<u32>::zeroed(&device, 1).expect("a buffer"));
        let dispatch = |program, x| {
            let submission = queue.dispatch(program, Dispatch::linear(1, 1), &[Arg::from(x)]);
            submission.expect("it fits")
        };
        let spinning: Vec<_> = buffers.iter().map(|x| dispatch(&program, x)).collect();
        let [first, .., last] = &buffers[..] else {
            unreachable!("there are 300");
        };
        assert!(!spinning[299].wait_timeout(Duration::from_millis(30)));
        spinning[299].cancel();
        let error = spinning[299].wait().expect_err("cancelled");
        assert_eq!(rule(error), "cancelled");
        let second = dispatch(&next, first);
        let third = dispatch(&next, first);
        let of_last = dispatch(&next, last);
        second.cancel();
        assert_eq!(rule(second.wait().expect_err("cancelled")), "cancelled");
        assert!(!spinning[0].is_done() && !third.is_done(), "O3: it waits");
        for submission in &spinning[..299] {
            submission.cancel();
        }
        third.wait().expect("it runs after one that did not");
        of_last.wait().expect("it runs");
        assert!(first.read().expect("read")[0] > 0, "the third ran");
    }
}

#[test]
fn threads_dispatch_at_once() {
    for device in Device::all() {
        let program = compile(&device, INCREMENT);
        let shared = Buffer::<u32>::zeroed(&device, 33).expect("a buffer");
        let (threads, iterations) = (6, 25);
        std::thread::scope(|threads_scope| {
            for _ in 0..threads {
                threads_scope.spawn(|| {
                    let queue = device.queue();
                    let own = Buffer::<u32>::zeroed(&device, 50).expect("a buffer");
                    for round in 0..iterations {
                        let grid = Dispatch::linear(50, 16);
                        let a = queue
                            .dispatch(&program, grid, &[Arg::from(&own)])
                            .expect("it fits");
                        let b = queue
                            .dispatch(&program, Dispatch::linear(33, 16), &[Arg::from(&shared)])
                            .expect("it fits");
                        if round % 3 == 0 {
                            a.wait().expect("it runs");
                            b.wait().expect("it runs");
                        }
                    }
                    queue.wait().expect("all ran");
                    assert_eq!(own.read().expect("read"), [iterations; 50]);
                });
            }
        });
        assert_eq!(shared.read().expect("read"), [threads * iterations; 33]);
    }
}

#[test]
fn the_checked_device_tells_what_it_finds() {
    let device = Device::checked();
    let racy = "
        kernel @clash(%x: device write u32) {
            %zero = const u32 0
            %i = thread_position_in_grid x
            store %x[%zero], %i
        }";
    let program = compile(&device, racy);
    let x = Buffer::<u32>::zeroed(&device, 1).expect("a buffer");
    let done = device
        .queue()
        .dispatch(&program, Dispatch::linear(32, 32), &[Arg::from(&x)])
        .expect("it fits");
    assert_eq!(rule(done.wait().expect_err("a race")), "data-race");
    let findings = done.findings();
    assert_eq!(findings[0].rule, Rule::DataRace);
    assert_eq!(findings[0].span().start.line, 5);
    let allowing = Device::checked_with(CheckOptions {
        allow: vec![Rule::DataRace],
        ..CheckOptions::default()
    });
    let program = compile(&allowing, racy);
    let done = allowing
        .queue()
        .dispatch(&program, Dispatch::linear(32, 32), &[Arg::from(&x)])
        .expect("it fits");
    done.wait().expect("races are allowed");
    assert!(done.report().expect("a report").steps > 0);
    assert!(x.read().expect("read")[0] < 32);
    let error = device
        .queue()
        .dispatch(&program, Dispatch::linear(32, 32), &[Arg::from(&x)])
        .expect_err("another device's program");
    assert_eq!(rule(error), "invalid-dispatch");
}

#[test]
fn capabilities_say_what_there_is() {
    for device in hosts() {
        let can = device.capabilities();
        assert!(!can.family.is_empty() && can.threads_per_threadgroup >= 256);
        for scalar in Scalar::ALL {
            can.require(Feature::Type(scalar)).expect("every type");
        }
        for order in Order::ALL {
            can.require(Feature::MemoryOrder(order))
                .expect("every order");
        }
        can.require(Feature::IeeeFloat(Scalar::F32))
            .expect("claimed");
        can.require(Feature::AsyncCopy).expect("copies");
        can.require(Feature::Atomic(Scalar::U64)).expect("claimed");
        let error = can
            .require(Feature::Atomic(Scalar::F16))
            .expect_err("no device has these");
        assert_eq!(rule(error), "unsupported-feature");
        let error = can
            .require(Feature::ThreadgroupMemory(1 << 40))
            .expect_err("a tebibyte");
        assert!(
            error
                .to_string()
                .contains(&can.threadgroup_memory_bytes.to_string())
        );
        assert_eq!(
            Device::named(&can.name).expect("by name").capabilities(),
            can
        );
    }
    assert!(Device::named("nope").is_err());
    assert_eq!(
        Device::named("default")
            .expect("there is one")
            .capabilities()
            .name,
        Device::all()[0].capabilities().name
    );
}

#[test]
fn a_buffer_too_large_is_refused() {
    for device in Device::all() {
        let error = Buffer::<f64>::zeroed(&device, usize::MAX / 4).expect_err("refused");
        assert_eq!(rule(error), "out-of-memory");
        let error = ByteBuffer::zeroed(&device, isize::MAX as usize).expect_err("refused");
        assert_eq!(rule(error), "out-of-memory");
    }
}
