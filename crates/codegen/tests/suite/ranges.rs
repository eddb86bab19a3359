//! The range analysis: no value of a random kernel leaves its range, and what guards, loops and sizes
//! say is found.

use invar_codegen::analysis::ranges::{Known, Range, Ranges, analyse, of_type};
use invar_conformance::{Options, generate};
use invar_ir::{Imm, Op, Type, Value, text, verify};

use crate::checks::{Build, check, threads};

/// Whether a value is outside of its range, if that is less than its type's.
fn outside(build: &mut Build<'_>, ranges: &Ranges, value: Value) -> Option<Value> {
    let ty = build.ty(value);
    let (Type::Scalar(scalar), Some((least, most))) = (ty, ranges.of(value)) else {
        return None;
    };
    if of_type(ty) == Some((least, most)) {
        return None;
    }
    let [least, most] = [least, most].map(|n| build.constant(scalar, n as u64));
    let below = build.op(Op::Lt, Imm::None, &[value, least], Type::BOOL);
    let above = build.op(Op::Gt, Imm::None, &[value, most], Type::BOOL);
    Some(build.op(Op::Or, Imm::None, &[below, above], Type::BOOL))
}

#[test]
fn no_value_of_a_random_kernel_leaves_its_range() {
    let mut checks = 0;
    for seed in 0..400 {
        let case = generate(seed, &Options::default());
        let known = Known {
            threadgroup_size: Some(case.dispatch.threadgroup),
            threads: Some(threads(&case.dispatch)),
        };
        let ranges = analyse(case.kernel(), &known);
        checks += check(seed, &case, &mut |build, value| {
            outside(build, &ranges, value)
        });
    }
    assert!(checks > 10_000, "only {checks} checks");
}

/// The range of the value of that name.
fn range(text: &str, name: &str, known: &Known) -> Option<Range> {
    let module = text::parse("k.inv", text).and_then(verify);
    let module = module.unwrap_or_else(|e| panic!("{e}"));
    let kernel = &module.kernels[0];
    let at = kernel
        .values
        .iter()
        .position(|v| v.name.as_deref() == Some(name));
    analyse(kernel, known).of(Value(at.expect("the value") as u32))
}

const TEXT: &str = "kernel @k(%x: device read_write u32, %n: u32, %s: i32) {
    %t = thread_position_in_threadgroup x
    %g = thread_position_in_grid x
    %zero = const u32 0
    %one = const u32 1
    %hundred = const u32 100
    %twice = add %t, %t
    %wraps = add %n, %one
    %small = rem %n, %hundred
    %signed = const i32 -7
    %rest = rem %s, %signed
    %inside = lt %n, %hundred
    %result = if %inside {
        %next = add %n, %one
        yield %next
    } else {
        %above = sub %n, %hundred
        yield %hundred
    }
    for %i = %zero to %small step %one {
        %j = add %i, %i
        store %x[%j], %above_all
    }
    store %x[%g], %twice
}";

#[test]
fn guards_loops_and_sizes_are_found() {
    let text = TEXT.replace("%above_all", "%result");
    let known = Known {
        threadgroup_size: Some([64, 2, 1]),
        threads: Some([1000, 2, 1]),
    };
    let whole = i128::from(u32::MAX);
    for (name, expected) in [
        ("t", (0, 63)),
        ("g", (0, 999)),
        ("twice", (0, 126)),
        ("wraps", (0, whole)),
        ("small", (0, 99)),
        ("rest", (-6, 6)),
        ("next", (1, 100)),
        ("above", (0, whole - 100)),
        ("result", (1, 100)),
        ("i", (0, 98)),
        ("j", (0, 196)),
    ] {
        assert_eq!(range(&text, name, &known), Some(expected), "{name}");
    }
    // Without sizes, what the model says of positions is left.
    assert_eq!(range(&text, "g", &Known::default()), Some((0, whole - 1)));
    assert_eq!(range(&text, "t", &Known::default()), Some((0, whole)));
}

#[test]
fn a_product_of_wide_numbers_is_anything() {
    let text = "kernel @k(%y: device write u64) {
    %most = const u64 18446744073709551615
    %square = mul %most, %most
    %zero = const u32 0
    store %y[%zero], %square
}";
    let whole = (0, i128::from(u64::MAX));
    assert_eq!(range(text, "square", &Known::default()), Some(whole));
}

#[test]
fn what_takes_turns_in_a_loop_is_found_and_what_counts_is_not() {
    let text = "kernel @k(%y: device write u32, %n: u32, %c: bool) {
    %zero = const u32 0
    %one = const u32 1
    %size = const u32 256
    %end, %left, %far = for %i = %zero to %n step %one carry(%half = %zero, %which = %zero, %count = %one) {
        %other = sub %size, %half
        %flipped = xor %which, %one
        %next = add %count, %one
        %inner = loop carry(%turn = %half) {
            %back = sub %size, %turn
            if %c {
                break %turn
            }
            yield %back
        }
        store %y[%inner], %i
        yield %other, %flipped, %next
    }
    %skipped = loop carry(%odd = %zero) {
        if %c {
            %away = const u32 1000
            continue %away
        }
        %even = sub %size, %odd
        break %even
    }
    store %y[%skipped], %left
}";
    let whole = (0, i128::from(u32::MAX));
    for (name, expected) in [
        ("half", (0, 256)),
        ("other", (0, 256)),
        ("which", (0, 1)),
        ("flipped", (0, 1)),
        ("turn", (0, 256)),
        ("count", whole),
        ("next", whole),
        ("odd", whole),
    ] {
        assert_eq!(
            range(text, name, &Known::default()),
            Some(expected),
            "{name}"
        );
    }
}
