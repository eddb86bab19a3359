//! A GPU that is lost: every use is an error that says so, and the next one to ask gets it opened anew. In a
//! process of its own, for it takes the device from all others.

#![cfg(feature = "gpu")]

use crate::common::alone;
use invar_ir::text::parse;
use invar_ir::{Rule, verify};
use invar_runtime::gpu::{Gpu, GpuArg};
use invar_runtime::{Arg, Buffer, CompileOptions, Device, Dispatch, Error, scope};

const NEGATE: &str = "
kernel @negate(%x: device read_write i32) {
    %i = thread_position_in_grid x
    %v = load %x[%i]
    %w = neg %v
    store %x[%i], %w
}";

#[track_caller]
fn is_lost<T>(result: Result<T, Error>) {
    match result {
        Ok(_) => panic!("a lost device did something"),
        Err(error) => {
            assert_eq!(error.rule(), Some(Rule::DeviceLost), "{error}");
            assert!(error.to_string().contains("was lost"), "{error}");
        }
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn a_lost_gpu_is_an_error_and_is_opened_anew() {
    if !alone("gpu_loss::a_lost_gpu_is_an_error_and_is_opened_anew") {
        return;
    }
    if Gpu::names().is_empty() {
        println!("skipped: this machine has no adapter (mesa-vulkan-drivers brings one)");
        return;
    }
    let module = verify(parse("negate.inv", NEGATE).unwrap()).unwrap();
    let four = Dispatch::linear(4, 4);

    let device = Device::gpu().unwrap();
    let program = device.compile(&module, "negate").unwrap();
    let queue = device.queue();
    let mut x = Buffer::from_slice(&device, &[1i32, 2, 3, 4]).unwrap();
    for _ in 0..100 {
        queue.dispatch(&program, four, &[Arg::from(&x)]).unwrap();
    }
    queue.wait().unwrap();
    // With dispatches under way: each ends, well or not.
    let under_way: Vec<_> = (0..100)
        .map(|_| queue.dispatch(&program, four, &[Arg::from(&x)]).unwrap())
        .collect();
    device.lose();
    for submission in under_way {
        if let Err(error) = submission.wait() {
            assert_eq!(error.rule(), Some(Rule::DeviceLost), "{error}");
        }
    }
    // The loss is told by whatever looks next, if no dispatch did.
    is_lost(x.read());
    is_lost(x.as_slice().map(<[i32]>::to_vec));
    is_lost(queue.run(&program, four, &[Arg::from(&x)]));
    is_lost(
        device
            .compile(&module, "negate")
            .and_then(|program| queue.run(&program, four, &[Arg::from(&x)])),
    );
    let mut lent = [1i32; 4];
    is_lost(scope(|scope| {
        let lent = scope.lend(&device, &mut lent)?;
        queue.run(&program, four, &[Arg::from(&lent)])
    }));
    assert_eq!(lent, [1; 4]);
    // It was told; the queue goes on telling of new dispatches only.
    let _ = queue.wait();
    queue.wait().unwrap();

    let again = Device::gpu().unwrap();
    let program = again.compile(&module, "negate").unwrap();
    let y = Buffer::from_slice(&again, &[5i32, 6]).unwrap();
    again
        .queue()
        .run(&program, Dispatch::linear(2, 2), &[Arg::from(&y)])
        .unwrap();
    assert_eq!(y.read().unwrap(), [-5, -6]);

    // The same without queues.
    let gpu = Gpu::open(0).unwrap();
    let program = gpu.compile(&module, "negate", &CompileOptions::default());
    let program = program.unwrap();
    let z = gpu.buffer_from(&[0; 16]).unwrap();
    gpu.dispatch(&program, four, &[GpuArg::Buffer(&z)]).unwrap();
    gpu.lose();
    is_lost(gpu.wait());
    is_lost(z.read());
    is_lost(z.write(&[0; 4]));
    is_lost(gpu.buffer(16));
    is_lost(gpu.dispatch(&program, four, &[GpuArg::Buffer(&z)]));
    is_lost(gpu.measure(&program, four, &[GpuArg::Buffer(&z)], 2));
}
