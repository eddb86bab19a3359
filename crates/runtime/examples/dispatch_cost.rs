//! What a dispatch of one small threadgroup costs on a device, alone and when many are queued, and what a
//! compilation costs, fresh and from disk. `cargo run --release -p invar-runtime --example dispatch_cost
//! [DEVICE]`, the device by its name, such as `gpu`.

#![expect(clippy::print_stdout, reason = "an example tells what it measures")]

use std::time::Instant;

use invar_ir::{text, verify};
use invar_runtime::{Arg, Buffer, Device, Dispatch};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let source = "
        kernel @add(%x: device read f32, %y: device read f32, %z: device write f32) {
            %i = thread_position_in_grid x
            %a = load %x[%i]
            %b = load %y[%i]
            %c = add %a, %b
            store %z[%i], %c
        }";
    let module = verify(text::parse("add.inv", source)?)?;
    let name = std::env::args().nth(1);
    let device = Device::named(name.as_deref().unwrap_or("default"))?;
    let queue = device.queue();
    let x = Buffer::from_slice(&device, &[1.5f32; 256])?;
    let y = Buffer::from_slice(&device, &[2.5f32; 256])?;
    let z = Buffer::<f32>::zeroed(&device, 256)?;
    let args = [Arg::from(&x), Arg::from(&y), Arg::from(&z)];
    for round in ["fresh, or from disk", "again"] {
        let start = Instant::now();
        let program = device.compile(&module, "add")?;
        queue.run(&program, Dispatch::linear(256, 256), &args)?;
        println!("compiled and run ({round}): {:.2?}", start.elapsed());
    }
    let program = device.compile(&module, "add")?;
    let one = Dispatch::linear(256, 256);
    let mut runs = Vec::new();
    for _ in 0..10 {
        let start = Instant::now();
        for _ in 0..2000 {
            queue.dispatch(&program, one, &args)?;
        }
        let submitted = start.elapsed() / 2000;
        queue.wait()?;
        runs.push((start.elapsed() / 2000, submitted));
    }
    runs.sort();
    let (all, submitted) = runs[5];
    println!("each of 2,000 queued: {all:.2?} until all have ended, {submitted:.2?} to submit");
    for groups in [1, 4, 64] {
        let grid = Dispatch::linear(256, 256 / groups.min(256));
        let median = |once: &mut dyn FnMut() -> Result<(), invar_runtime::Error>| {
            let mut runs = Vec::new();
            for _ in 0..100 {
                let start = Instant::now();
                for _ in 0..100 {
                    once()?;
                }
                runs.push(start.elapsed() / 100);
            }
            runs.sort();
            Ok::<_, invar_runtime::Error>(runs[50])
        };
        let run = median(&mut || queue.run(&program, grid, &args).map(|_| ()))?;
        let asynchronous = median(&mut || {
            queue.dispatch(&program, grid, &args)?.wait()?;
            Ok(())
        })?;
        println!(
            "256 threads in {groups} threadgroups: run {run:.2?}, dispatch and wait {asynchronous:.2?}"
        );
    }
    assert_eq!(z.read()?, [4.0; 256]);
    Ok(())
}
