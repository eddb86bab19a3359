//! Dispatches on arguments in the host's memory.

use invar_interp::Arg;
use invar_ir::{text, verify};
use invar_runtime::{Device, Dispatch};

const ADD: &str = "
kernel @add(%x: device read u32, %y: device read_write u32, %n: u32) {
    %i = thread_position_in_grid x
    %v = load %x[%i]
    %w = load %y[%i]
    %s = add %v, %w
    %t = add %s, %n
    store %y[%i], %t
}";

#[test]
fn buffers_are_used_in_place_or_through_copies() {
    for device in Device::all() {
        let module = verify(text::parse("add.inv", ADD).expect("parsed")).expect("verified");
        let program = device.compile(&module, "add").expect("compiled");
        let queue = device.queue();
        let word = |bytes: &[u8], i: usize| {
            u32::from_ne_bytes(bytes[4 * i..4 * i + 4].try_into().expect("four bytes"))
        };
        // Every alignment, the wrong ones too.
        for shift in 0..4 {
            let mut x = vec![0u8; 44];
            let mut y = [0u8; 44];
            let at = x.as_ptr().align_offset(4) + shift;
            let bt = y.as_ptr().align_offset(4) + shift;
            for i in 0..8 {
                x[at + 4 * i..at + 4 * i + 4].copy_from_slice(&(i as u32).to_ne_bytes());
                y[bt + 4 * i..bt + 4 * i + 4].copy_from_slice(&100u32.to_ne_bytes());
            }
            let before = x.clone();
            let mut args = [
                Arg::ReadBuffer(&x[at..at + 32]),
                Arg::Buffer(&mut y[bt..bt + 32]),
                Arg::scalar(1u32),
            ];
            let done = queue
                .run_host(&program, Dispatch::linear(8, 8), &mut args)
                .expect("it fits");
            done.wait().expect("it runs");
            for i in 0..8 {
                assert_eq!(word(&y[bt..], i), 101 + i as u32);
            }
            assert_eq!(x, before);
        }
        let mut args = [
            Arg::OwnedBuffer(vec![1, 0, 0, 0]),
            Arg::zeros(4),
            Arg::scalar(5u32),
        ];
        queue
            .run_host(&program, Dispatch::linear(1, 1), &mut args)
            .expect("it fits")
            .wait()
            .expect("it runs");
        assert_eq!(args[1].bytes(), [6, 0, 0, 0]);
        let mut args = [Arg::zeros(4), Arg::ReadBuffer(&[0; 4]), Arg::scalar(5u32)];
        let error = queue
            .run_host(&program, Dispatch::linear(1, 1), &mut args)
            .expect_err("refused");
        assert!(
            error
                .to_string()
                .contains("argument `y` of `add` is read-only")
        );
        assert!(
            queue
                .run_host(&program, Dispatch::linear(1, 1), &mut args[..2])
                .is_err()
        );
    }
}
