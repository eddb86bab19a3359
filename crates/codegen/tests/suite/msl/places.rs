//! Places of every kind: accesses of several elements, parts of vectors, matrices, arrays and structs, in every space,
//! with indices on both sides of every bound.

use std::fmt::Write as _;

use invar_codegen::msl::MslOptions;
use invar_ir::Scalar;

use super::{can_run, judge, run_directives, shim_options};

/// Indices around the bounds of objects of 3, 4 and 11 elements.
const NEAR: [i64; 16] = [-9, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 8, 9, 10, 11, 12];
/// The same without a sign, and far ones whose sums and products would wrap to near ones.
const FAR: [u64; 16] = [
    0,
    1,
    2,
    3,
    7,
    8,
    9,
    10,
    11,
    12,
    u64::MAX,
    u64::MAX - 1,
    u64::MAX - 2,
    1 << 62,
    1 << 63,
    0x5555_5555_5555_5556,
];

fn list<T: std::fmt::Display>(numbers: &[T]) -> String {
    let numbers: Vec<String> = numbers.iter().map(T::to_string).collect();
    format!("[{}]", numbers.join(", "))
}

/// Loads and stores of several elements of a scalar type, in device, threadgroup and thread memory.
fn wide(scalar: Scalar, count: u8) -> String {
    let mut text = format!(
        "kernel @wide(%x: device read {scalar}, %at: device read i32, %far: device read u64, %y: device write {scalar}, %s: threadgroup {scalar}) {{
    %own = alloc thread {scalar}[11]
    %ours = alloc threadgroup {scalar}[11]
    %i = thread_position_in_grid x
    %t = thread_index_in_threadgroup
    %one = const u32 1
    %four = const u32 4
    %zero = const u32 0
    %eleven = const u32 11
    %j = load %at[%i]
    %f = load %far[%i]
    %first = eq %t, %zero
    if %first {{
        copy %ours[%zero], %x[%zero], %eleven
        copy %s[%zero], %x[%zero], %eleven
    }}
    barrier threadgroup
    copy %own[%zero], %x[%zero], %eleven
    %rows = const u32 128
    %o0 = mul %i, %rows
"
    );
    let mut slot = 0;
    for object in ["x", "ours", "own", "s"] {
        for index in ["j", "f"] {
            for place in [
                format!("%{object}[%{index} : {count}]"),
                format!("%{object}[%{index} * {count}]"),
            ] {
                let _ = writeln!(text, "    %v{slot} = load {place}");
                let _ = writeln!(text, "    store %y[%o{slot} : {count}], %v{slot}");
                let _ = writeln!(text, "    %o{} = add %o{slot}, %four", slot + 1);
                if object == "own" {
                    let _ = writeln!(text, "    store {place}, %v0");
                }
                slot += 1;
            }
        }
    }
    let _ = writeln!(text, "    copy %y[%o{slot}], %own[%zero], %eleven");
    // Nothing else stores to a group of the buffer that two threads do not share.
    let _ = writeln!(text, "    %rest = const u32 96\n    %og = add %o0, %rest");
    for (k, index) in ["j", "f"].iter().enumerate() {
        let _ = writeln!(
            text,
            "    store %own[%{index} * {count}], %v1\n    %og{k} = add %og, %zero"
        );
    }
    let _ = writeln!(text, "    copy %y[%og], %own[%zero], %eleven\n}}");
    let _ = writeln!(
        text,
        "; run: @wide(x = random(11, {count}), at = {}, far = {}, y = zeros(2044), s = length(11)) grid(16) threadgroup(8)",
        list(&NEAR),
        list(&FAR)
    );
    text
}

/// A struct with something of everything in it, in device memory, copied, and as a constant.
const STRUCTS: &str = "struct @Inner { flags: boolx3, half: f16, m: f32x2x3 }
struct @Outer { tag: u8, wide: u64, inner: @Inner[3], v: i16x3, b: bf16[2][2], on: bool }
constant @table: @Inner[2] = [true, false, true, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, false, true, false, 1.5, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0]
constant @bits: boolx2[2] = [true, false, false, true]

kernel @structs(%p: device read_write @Outer, %q: device read_write @Outer, %at: device read i8, %y: device write f32, %counts: device read i64) {
    %tile = alloc threadgroup @Outer[3]
    %mine = alloc thread @Inner[2]
    %i = thread_position_in_grid x
    %t = thread_index_in_threadgroup
    %two = const u32 2
    %one = const u32 1
    %zero = const u32 0
    %three = const u32 3
    %j = load %at[%i]
    %flag = load %p[%i].inner[%j].flags[%j]
    %all = load %p[%i].inner[%j].flags
    %h = load %p[%i].inner[%j].half
    %m = load %p[%i].inner[%j].m
    %column = load %p[%i].inner[%two].m[%j]
    %entry = load %p[%i].inner[%one].m[%j][%j]
    %v = load %p[%i].v
    %w = load %p[%i].wide
    %b = load %p[%i].b[%j][%one]
    %on = load %p[%i].on
    %not_on = not %on
    %w2 = add %w, %w
    %v2 = mul %v, %v
    %h2 = add %h, %h
    store %p[%i].wide, %w2
    store %p[%i].v[%j], %x2
    store %p[%i].v, %v2
    store %p[%i].on, %not_on
    store %p[%i].inner[%j].half, %h2
    store %p[%i].inner[%j].flags[%two], %flag
    store %p[%i].inner[%zero].flags, %all
    store %p[%i].inner[%j].m, %m
    store %p[%i].inner[%one].m[%j], %column
    store %p[%i].inner[%two].m[%one][%j], %entry
    store %p[%i].b[%one][%j], %b
    %constant = load @table[%j].m[%j][%one]
    %set = load @table[%j].flags
    %pair = load @bits[%j]
    store %mine[%j].flags, %set
    store %mine[%one].m[%j], %column
    %got = load %mine[%one].m[%zero]
    %gx = swizzle x %got
    %has = any %set
    %other = swizzle x %pair
    %both = and %has, %other
    %number = cast f32 %both
    %sum = add %gx, %constant
    %total = add %sum, %number
    store %y[%i], %total
    barrier threadgroup
    %first = eq %t, %zero
    if %first {
        copy %tile[%zero], %p[%i], %three
    }
    barrier threadgroup
    %n = load %counts[%i]
    %k = mul %i, %two
    %from = cast i32 %j
    copy %q[%k], %tile[%from], %n
}
; run: @structs(p = random(6, 3), q = random(12, 4), at = [-1, 0, 1, 2, 3, 127], y = zeros(6), counts = [1, -1, 2, 2, 0, 2]) grid(6) threadgroup(4)
";

/// Loops over indices of every width, and values that loops and conditions carry.
fn counting(scalar: Scalar) -> String {
    let signed = scalar.is_signed_integer();
    let steps: &[i64] = if signed {
        &[1, 3, 100, -1, -7, 0]
    } else {
        &[1, 3, 100, 0]
    };
    let bounds: &[i64] = if signed {
        &[-128, -5, 0, 7, 127]
    } else {
        &[0, 7, 127, 250, 255]
    };
    let mut runs = String::new();
    let mut number = 0;
    for step in steps {
        for lower in bounds {
            for upper in bounds {
                if number % 4 == 0 || *step == 1 {
                    let _ = writeln!(
                        runs,
                        "; run: @count(lower = {lower}, upper = {upper}, step = {step}, y = zeros(4)) grid(2) threadgroup(2)"
                    );
                }
                number += 1;
            }
        }
    }
    format!(
        "kernel @count(%lower: {scalar}, %upper: {scalar}, %step: {scalar}, %y: device write u64) {{
    %zero = const u64 0
    %one = const u64 1
    %i = thread_position_in_grid x
    %two = const u32 2
    %iterations, %sum, %last = for %k = %lower to %upper step %step carry(%n = %zero, %acc = %zero, %before = %one) {{
        %k64 = cast u64 %k
        %next = add %n, %one
        %twice = add %acc, %before
        %all = add %twice, %k64
        yield %next, %all, %acc
    }}
    %o = mul %i, %two
    %mixed = xor %sum, %last
    store %y[%o], %iterations
    %ou = cast u64 %o
    %o1 = add %ou, %one
    store %y[%o1], %mixed
}}
{runs}"
    )
}

#[test]
fn b4_places_of_every_kind_give_what_the_reference_machine_gives() {
    if !can_run("places") {
        return;
    }
    let mut texts = Vec::new();
    for scalar in Scalar::ALL {
        if scalar == Scalar::F64 {
            continue;
        }
        for count in 2..=4 {
            texts.push((format!("wide {scalar} {count}"), wide(scalar, count)));
        }
        if scalar.is_integer() {
            texts.push((format!("counting {scalar}"), counting(scalar)));
        }
    }
    let structs = STRUCTS.replace(
        "    store %p[%i].v[%j], %x2\n",
        "    %x2 = swizzle x %v2\n    store %p[%i].v[%j], %x2\n",
    );
    texts.push(("structs".to_string(), structs));
    judge(
        "places",
        &run_directives("places", &texts, &shim_options(), false),
        300,
    );
    // Buffers that lie anywhere take other paths.
    texts.retain(|(name, _)| name.starts_with("wide f32") || name.starts_with("wide u8"));
    let options = MslOptions {
        buffer_alignment: 4,
        ..shim_options()
    };
    judge(
        "unaligned places",
        &run_directives("unaligned", &texts, &options, false),
        12,
    );
}
