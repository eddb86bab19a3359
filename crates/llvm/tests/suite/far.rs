//! Buffers of more elements than 31 bits count, where the distance of two indices of 32 bits may be another one than
//! it is modulo two to the 32. What no thread reads of them takes no memory.

use invar_conformance::{Guarded, Running, Side};
use invar_interp::Dispatch;
use invar_ir::text::parse;
use invar_ir::verify;
use invar_llvm::{CompileOptions, Program, Target, compile};

use crate::driver::run_in;

const TEXT: &str = "
; Two rows, both of which are proved to be inside.
kernel @rows(%x: device read u8, %y: device write u8) {
    %i = thread_position_in_grid x
    %far = const u32 2147483648
    %j = add %i, %far
    %a = load %x[%i]
    %b = load %x[%j]
    %s = add %a, %b
    store %y[%i], %s
}

; A row of which some lanes are inside.
kernel @some(%x: device read u8, %y: device write u8, %n: u32) {
    %i = thread_position_in_grid x
    %far = const u32 2147483648
    %inside = lt %i, %n
    if %inside {
        %j = add %i, %far
        %v = load %x[%j]
        store %y[%i], %v
    }
}

; Four elements of each thread, of which two are the buffer's last and two its first.
kernel @around(%x: device read u8, %y: device write u8, %pitch: u32, %first: u32) {
    %i = thread_position_in_grid x
    %one = const u32 1
    %two = const u32 2
    %three = const u32 3
    %second = add %first, %one
    %third = add %first, %two
    %fourth = add %first, %three
    %row = mul %i, %pitch
    %ia = add %row, %first
    %ib = add %row, %second
    %ic = add %row, %third
    %id = add %row, %fourth
    %a = load %x[%ia]
    %b = load %x[%ib]
    %c = load %x[%ic]
    %d = load %x[%id]
    %ab = add %a, %b
    %cd = add %c, %d
    %s = add %ab, %cd
    store %y[%i], %s
}
";

const THREADS: u32 = 64;

/// What each thread stores, given these elements of a buffer that is 0 elsewhere.
fn expect(kernel: &str, length: usize, set: &[(usize, u8)], scalars: &[u32], expected: &[u8]) {
    let module = parse("far.inv", TEXT).and_then(verify);
    let module = module.unwrap_or_else(|e| panic!("{e}"));
    let dispatch = Dispatch::linear(THREADS, THREADS);
    let targets = [Target::Native, Target::X86V1, Target::X86V3];
    for target in targets.into_iter().filter(|target| target.runs_here()) {
        let options = CompileOptions {
            target,
            threadgroup_size: Some(dispatch.threadgroup),
            ..CompileOptions::default()
        };
        let object = compile(&module, kernel, &options).unwrap_or_else(|e| panic!("{e}"));
        let program = Program::load(&object).expect("a program");
        let name = format!("far.rs, @{kernel}: {}", target.name());
        let _running = Running::named(&name);
        let x = Guarded::zeros(length, Side::End).expect("addresses");
        for (at, byte) in set {
            assert!(*at < length);
            // SAFETY: it is one of the bytes, which may be written so far.
            unsafe { x.start().add(*at).write(*byte) };
        }
        x.forbid_writes().expect("pages");
        let new = |bytes: &[u8]| Guarded::new(bytes, Side::End).expect("memory");
        let mut memory = vec![x, new(&[0; THREADS as usize])];
        let mut lengths = vec![length as u64, THREADS.into()];
        for scalar in scalars {
            memory.push(new(&scalar.to_le_bytes()));
            lengths.push(1);
        }
        let ran = run_in(&program, &dispatch, (&memory, &lengths), Side::End);
        assert_eq!(ran, Ok(()), "{name}");
        assert_eq!(memory[1].contents().as_deref(), Ok(expected), "{name}");
    }
}

#[test]
fn rows_two_to_the_31_apart_are_not_told_from_each_other() {
    let near = (0..64).map(|i| (i, i as u8));
    let far = (0..64).map(|i| ((1 << 31) + i, 100));
    let set: Vec<_> = near.chain(far).collect();
    let sums: Vec<u8> = (100..164).collect();
    expect("rows", (1 << 31) + 64, &set, &[], &sums);
}

#[test]
fn a_row_of_some_lanes_beyond_31_bits_has_no_sign() {
    let set: Vec<_> = (0..40).map(|i| ((1 << 31) + i, 1 + i as u8)).collect();
    let stored = (0..64).map(|i| if i < 40 { 1 + i } else { 0 });
    let stored: Vec<u8> = stored.collect();
    expect("some", (1 << 31) + 40, &set, &[40], &stored);
}

#[test]
fn elements_around_the_end_of_32_bits_are_no_block() {
    let last = u32::MAX as usize;
    let set = [(last - 1, 1), (last, 2), (0, 4), (1, 8)];
    expect("around", last + 1, &set, &[0, u32::MAX - 1], &[15; 64]);
}
