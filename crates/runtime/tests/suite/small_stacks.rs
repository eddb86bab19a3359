//! Kernels with much thread memory, and kernels whose blocks nest as deep as they may, on threads with small stacks:
//! a launch never takes the process down. (Where one does, this file's process ends without a word.)

use std::thread::Builder;

use invar_codegen::{msl, wgsl};
use invar_interp::{CheckOptions, check};
use invar_ir::{Verified, binary, text, verify};
use invar_runtime::{Arg, Buffer, Device, Dispatch};

use crate::common::hosts;

/// What users give threads who have thousands of them.
const SMALL: usize = 32 << 10;
/// What Rust gives threads.
const USUAL: usize = 2 << 20;

fn on_a_stack_of<R: Send>(bytes: usize, f: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| {
        let thread = Builder::new().stack_size(bytes).spawn_scoped(scope, f);
        thread.expect("it starts").join().expect("it ends")
    })
}

fn module(source: &str) -> Verified {
    verify(text::parse("k.inv", source).expect("parsed")).expect("verified")
}

/// Threads write to an array of so many elements, in places of their own, and read back; across a barrier or not.
fn array(elements: u32, barrier: bool) -> Verified {
    let barrier = if barrier { "barrier threadgroup" } else { "" };
    module(&format!(
        "kernel @k(%x: device read_write u32) {{
            %own = alloc thread u32[{elements}]
            %i = thread_position_in_grid x
            %last = const u32 {}
            %far = sub %last, %i
            %v = load %x[%i]
            store %own[%i], %v
            store %own[%far], %i
            {barrier}
            %a = load %own[%i]
            %b = load %own[%far]
            %between = div %last, %v
            %c = load %own[%between]
            %ab = add %a, %b
            %abc = add %ab, %c
            store %x[%i], %abc
        }}",
        elements - 1
    ))
}

fn run(device: &Device, module: &Verified, threads: u32, threadgroup: u32) -> Vec<u32> {
    let program = device.compile(module, "k").expect("compiled");
    let numbers: Vec<u32> = (0..threads).map(|i| 3 + i).collect();
    let x = Buffer::from_slice(device, &numbers).expect("a buffer");
    let queue = device.queue();
    queue
        .run(
            &program,
            Dispatch::linear(threads, threadgroup),
            &[Arg::from(&x)],
        )
        .expect("it runs");
    x.read().expect("read")
}

#[test]
fn s4_large_thread_arrays_run_on_any_stack() {
    for (elements, barrier) in [
        (64, false),
        (2000, false),
        (8000, false),
        (40_000, false),
        (65_536, false),
        (2000, true),
        (40_000, true),
    ] {
        let module = array(elements, barrier);
        // One that has no full chunk of threads, and one that has; small grids run on the thread that submits them.
        for (threads, threadgroup) in [(3, 3), (48, 16)] {
            let expected: Vec<u32> = (0..threads)
                .map(|i| {
                    let (v, last) = (3 + i, elements - 1);
                    let at = |k: u32| match k {
                        k if k == last - i => i,
                        k if k == i => v,
                        _ => 0,
                    };
                    at(i) + at(last - i) + at(last / v)
                })
                .collect();
            for device in hosts() {
                for stack in [SMALL, USUAL] {
                    let found =
                        on_a_stack_of(stack, || run(&device, &module, threads, threadgroup));
                    assert_eq!(
                        found, expected,
                        "{elements} on {device:?}, a stack of {stack} bytes"
                    );
                }
            }
        }
    }
}

#[test]
fn s4_many_thread_arrays_run_on_any_stack() {
    let arrays = 60;
    let mut body = String::new();
    for n in 0..arrays {
        body += &format!("%a{n} = alloc thread u32[500]\nstore %a{n}[%i], %v\n");
    }
    let mut sum = "%v".to_string();
    for n in 0..arrays {
        body += &format!("%l{n} = load %a{n}[%i]\n%s{n} = add {sum}, %l{n}\n");
        sum = format!("%s{n}");
    }
    let module = module(&format!(
        "kernel @k(%x: device read_write u32) {{
            %i = thread_position_in_grid x
            %v = load %x[%i]
            {body}
            store %x[%i], {sum}
        }}"
    ));
    let expected: Vec<u32> = (0..48).map(|i| (3 + i) * (arrays + 1)).collect();
    for device in hosts() {
        let found = on_a_stack_of(SMALL, || run(&device, &module, 48, 16));
        assert_eq!(found, expected, "{device:?}");
    }
}

/// Blocks of each kind, one in the other, as deep as they may nest.
fn nested() -> String {
    let (mut head, mut tail) = (String::new(), String::new());
    for n in 0..invar_ir::inst::MAX_NESTING {
        let (opening, closing) = match n % 3 {
            0 => ("if %on {\n".to_string(), "}\n"),
            1 => (format!("for %n{n} = %zero to %one step %one {{\n"), "}\n"),
            _ => ("loop {\n".to_string(), "break\n}\n"),
        };
        head += &opening;
        tail.insert_str(0, closing);
    }
    format!(
        "kernel @k(%x: device read_write u32) {{
            %i = thread_position_in_grid x
            %zero = const u32 0
            %one = const u32 1
            %on = ge %i, %zero
            {head}
            %v = load %x[%i]
            %w = add %v, %one
            store %x[%i], %w
            {tail}
        }}"
    )
}

#[test]
fn blocks_may_nest_as_deep_as_is_allowed_on_any_stack() {
    let source = nested();
    let module = on_a_stack_of(SMALL, || {
        let module = module(&source);
        let printed = module.to_string();
        let again = text::parse("k.inv", &printed).expect("parsed");
        assert_eq!(again.to_string(), printed);
        assert!(again.same_up_to_spans(&module));
        let bytes = binary::encode(&module);
        let decoded = verify(binary::decode(&bytes).expect("decoded")).expect("verified");
        assert_eq!(binary::encode(&decoded), bytes);
        let broken = source.replace("%w = add %v, %one", "%w = add %v, %none");
        let errors = text::parse("k.inv", &broken).expect_err("no such name");
        assert_eq!(errors.0.len(), 1, "{errors}");
        let copied = (*module).clone();
        assert!(copied == *module);
        drop(copied);
        module.specialise(&[]).expect("there are no constants")
    });
    on_a_stack_of(SMALL, || {
        msl::write(&module, "k", &msl::MslOptions::default()).expect("MSL");
        let options = wgsl::WgslOptions::new(wgsl::Features::default(), [16, 1, 1]);
        wgsl::write(&module, "k", &options).expect("WGSL");
        let dispatch = Dispatch::linear(16, 16);
        let args = [invar_interp::Arg::zeros(64)];
        let options = CheckOptions::default();
        check(&module, "k", &dispatch, &args, &options).expect("it runs");
    });
    let expected: Vec<u32> = (0..48).map(|i| 4 + i).collect();
    for device in hosts() {
        let found = on_a_stack_of(SMALL, || run(&device, &module, 48, 16));
        assert_eq!(found, expected, "{device:?}");
    }
}
