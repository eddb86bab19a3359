//! L1 to L3 and B4 in structs: layout by C's rules, padding never written, paths checked step by step.

use invar_interp::{Arg, Dispatch, Options, run};
use invar_ir::{Verified, text, verify};

fn module(body: &str) -> Verified {
    let source = format!(
        "
struct @Inner {{ flag: bool, value: f64 }}
struct @Outer {{ tag: u8, position: f32x3, inner: @Inner[2], tail: u16 }}
kernel @k(%p: device read_write @Outer, %q: device read_write @Outer, %at: device read i32, %out: device read_write f64) allow(out_of_bounds_loads, out_of_bounds_stores) {{
    %i = thread_position_in_grid x
    %zero = const u32 0
    %one = const u32 1
    {body}
}}"
    );
    verify(text::parse("k.inv", &source).expect("parses")).expect("verifies")
}

/// Offsets by C's rules: tag 0, position 4, inner 16 (flag 0, value 8, size 16), tail 48, size 56.
const SIZE: usize = 56;

fn run_on(body: &str, p: &mut [u8], q: &mut [u8], at: &[i32], out: &mut [u8]) {
    let at: Vec<u8> = at.iter().flat_map(|v| v.to_le_bytes()).collect();
    for seed in 0..3 {
        let (mut p2, mut q2, mut out2) = (p.to_vec(), q.to_vec(), out.to_vec());
        let options = Options {
            seed,
            ..Options::default()
        };
        let mut args = [
            Arg::Buffer(&mut p2),
            Arg::Buffer(&mut q2),
            Arg::ReadBuffer(&at),
            Arg::Buffer(&mut out2),
        ];
        let threads = (at.len() / 4) as u32;
        run(
            &module(body),
            "k",
            &Dispatch::linear(threads, 8),
            &mut args,
            &options,
            &mut [],
        )
        .unwrap();
        if seed == 2 {
            p.copy_from_slice(&p2);
            q.copy_from_slice(&q2);
            out.copy_from_slice(&out2);
        }
    }
}

#[test]
fn l3_stores_to_fields_touch_their_bytes_alone() {
    let mut p = vec![0xaa; 2 * SIZE];
    let body = "
    %v = const f64 1.0
    %b = const bool true
    %h = const u16 4660
    store %p[%i].inner[%one].value, %v
    store %p[%i].inner[%zero].flag, %b
    store %p[%i].tail, %h
    %x = const f32 2.0
    store %p[%i].position[%one], %x";
    run_on(body, &mut p, &mut [], &[0, 0], &mut []);
    for element in p.chunks(SIZE) {
        let mut expected = vec![0xaa; SIZE];
        expected[8..12].copy_from_slice(&2.0f32.to_le_bytes());
        expected[16] = 1;
        expected[40..48].copy_from_slice(&1.0f64.to_le_bytes());
        expected[48..50].copy_from_slice(&0x1234u16.to_le_bytes());
        assert_eq!(element, expected);
    }
}

#[test]
fn l3_any_byte_but_zero_reads_as_true_and_copies_as_one() {
    let mut p = vec![0; 3 * SIZE];
    (p[16], p[SIZE + 16], p[2 * SIZE + 16]) = (0x80, 0, 1);
    let mut q = vec![0x55; 3 * SIZE];
    let mut out = vec![0; 24];
    let body = "
    %f = load %p[%i].inner[%zero].flag
    %a = const f64 1.0
    %b = const f64 2.0
    %v = select %a, %b, %f
    store %out[%i], %v
    copy %q[%i], %p[%i], %one";
    run_on(body, &mut p, &mut q, &[0, 0, 0], &mut out);
    let values: Vec<f64> = out
        .chunks(8)
        .map(|c| f64::from_le_bytes(c.try_into().unwrap()))
        .collect();
    assert_eq!(values, [2.0, 1.0, 2.0]);
    assert_eq!([q[16], q[SIZE + 16], q[2 * SIZE + 16]], [1, 0, 1]);
    // The padding after `tag`, after each `flag` and at the end is not a location.
    for element in q.chunks(SIZE) {
        for padding in [1..4, 17..24, 33..40, 50..56] {
            assert!(element[padding].iter().all(|b| *b == 0x55));
        }
    }
}

#[test]
fn b4_each_step_of_a_path_is_checked_by_itself() {
    let mut p = vec![0; 2 * SIZE];
    for element in p.chunks_mut(SIZE) {
        element[24..32].copy_from_slice(&10.0f64.to_le_bytes());
        element[40..48].copy_from_slice(&20.0f64.to_le_bytes());
    }
    let before = p.clone();
    // Index 2 of the array would lie in `tail`, index -1 in `position`, were it not checked.
    let at = [0, 1, 2, -1, 3];
    let mut out = vec![0xff; 5 * 8];
    let body = "
    %j = load %at[%i]
    %v = load %p[%zero].inner[%j].value
    store %out[%i], %v
    %nine = const f64 9.0
    %two = const i32 2
    %high = add %j, %two
    store %p[%zero].inner[%high].value, %nine";
    run_on(body, &mut p, &mut [], &at, &mut out);
    let values: Vec<f64> = out
        .chunks(8)
        .map(|c| f64::from_le_bytes(c.try_into().unwrap()))
        .collect();
    assert_eq!(values[2..], [0.0, 0.0, 0.0]);
    assert_eq!(values[0], 10.0);
    // Thread 3 stores to index 1; all others are outside.
    let mut expected = before;
    expected[40..48].copy_from_slice(&9.0f64.to_le_bytes());
    assert_eq!(p, expected);
}

#[test]
fn b4_a_remainder_of_an_element_is_unreachable() {
    let mut p = vec![1; SIZE + SIZE - 1];
    let body = "
    %t = load %p[%i].tag
    %v = cast f64 %t
    store %out[%i], %v
    %n = const u8 7
    store %p[%i].tag, %n";
    let mut out = vec![0; 16];
    run_on(body, &mut p, &mut [], &[0, 0], &mut out);
    assert_eq!(f64::from_le_bytes(out[..8].try_into().unwrap()), 1.0);
    assert_eq!(out[8..], [0; 8]);
    assert_eq!(p[0], 7);
    assert!(p[1..].iter().all(|b| *b == 1));
}
