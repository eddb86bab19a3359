//! Kernels that programs generate: values with operators, and reports on the lines that generated them.

use invar::Arg;
use invar::build::{Builder, In, Out, Value};
use invar::ir::{
    Access, AtomicOp, Dim, ElementType, Order, Scalar, Scope, Spaces, Span, StructDef, StructId,
    Type,
};
use invar::prelude::*;
use invar::report::{Style, render_for};

/// The line of this file that has these words.
fn line_of(words: &str) -> String {
    let text = include_str!("build.rs");
    let found = text.lines().position(|l| l.trim() == words);
    format!("build.rs:{}:", found.expect("the line") + 1)
}

#[test]
fn loops_and_branches_are_closures() {
    let k = Builder::new("collatz");
    let out = k.buffer("out", Access::ReadWrite, Scalar::U32);
    let limit = k.scalar("limit", Scalar::U32);
    let i = k.thread_position_in_grid(Dim::X);
    let none = k.literal(0u32);
    let steps = k.loop_(&[i, none], |carried| {
        let (n, count) = (carried[0], carried[1]);
        k.if_(n.le(1u32) | count.ge(limit), || k.break_(&[n, count]));
        let next = k.if_values(
            (n % 2u32).eq(0u32),
            || vec![n / 2u32],
            || vec![n * 3u32 + 1u32],
        );
        vec![next[0], count + 1u32]
    })[1];
    let one = k.literal(1u32);
    let sum = k.for_(none..i, one, &[none], |j, carried| {
        k.if_(j.eq(3u32), || k.continue_(carried));
        vec![carried[0] + j]
    })[0];
    k.if_else(
        i.eq(0u32),
        || out.store(i, 7u32),
        || out.store(i, steps * 100u32 + sum),
    );
    let collatz = k.finish_as::<(Out<u32>, u32)>().expect("a kernel");
    let device = Device::default().expect("a device");
    let mut out = device.buffer_zeroed::<u32>(8).expect("a buffer");
    let launched = collatz.launch(&device, Grid::threads(8), (&mut out, 1000));
    launched.expect("a launch").wait().expect("a run");
    assert_eq!(
        out.read().expect("numbers"),
        [7, 0, 101, 703, 203, 507, 812, 1618]
    );
}

#[test]
fn vectors_atomics_and_arrays() {
    let k = Builder::new("mixed");
    k.with(|b| b.kernel_mut().threadgroup_size = Some([4, 1, 1]));
    let x = k.buffer("x", Access::Read, Type::Vector(Scalar::F32, 2));
    let sums = k.buffer("sums", Access::ReadWrite, Scalar::I32);
    let tile = k.threadgroup_array("tile", Scalar::F32, 4);
    let t = k.thread_index_in_threadgroup();
    let v = x.load(t).named("v");
    tile.store(t, v.dot(v).sqrt());
    k.barrier(Scope::Threadgroup, Spaces::THREADGROUP);
    let other = tile.load(-t + 3u32);
    let parts = k.construct(Type::Vector(Scalar::F32, 2), &[other, k.literal(0.5f32)]);
    let whole = parts.swizzle("x").cast(Scalar::I32);
    sums.atomic(AtomicOp::Add, t, &[whole], Order::Relaxed, Scope::Device);
    let mixed = k.finish_as::<(In<[f32; 2]>, Out<i32>)>().expect("a kernel");
    assert!(mixed.module().to_string().contains("%v = load %x"));
    let device = Device::default().expect("a device");
    let x = [[3.0f32, 4.0], [0.0, 2.0], [1.0, 0.0], [6.0, 8.0]];
    let x = device.buffer_from(&x).expect("a buffer");
    let mut sums = device.buffer_from(&[1i32; 4]).expect("a buffer");
    let launched = mixed.launch(&device, Grid::threads(4), (&x, &mut sums));
    launched.expect("a launch").wait().expect("a run");
    assert_eq!(sums.read().expect("numbers"), [11, 2, 3, 6]);
}

#[test]
fn what_the_verifier_finds_names_the_line() {
    let k = Builder::new("wrong");
    let x = k.buffer("x", Access::ReadWrite, Scalar::F32);
    let i = k.thread_position_in_grid(Dim::X);
    let v = x.load(i);
    let sum = v + i;
    x.store(i, sum);
    let text = k.finish().expect_err("a float and an integer").to_string();
    assert!(text.contains(&line_of("let sum = v + i;")), "{text}");
    assert!(text.contains("type u32"), "{text}");
    assert!(text.contains("v + i;\n"), "the line itself: {text}");
}

#[test]
fn lines_that_are_not_at_hand_are_named_alone() {
    use invar_ir::{Call, Diagnostic, Label, Position, Rule, Source, SourceId};

    let at = |source: u32, line: u32, text: &str| Label {
        span: Span {
            source: Some(SourceId(source)),
            start: Position { line, column: 7 },
            end: Position {
                line: line + 1,
                column: 1,
            },
            call: None,
        },
        text: text.into(),
    };
    // What stands for a file that is not there, and one that is shorter now.
    let sources = ["\n\n\n", "kept = there;\n"].map(|text| Source {
        name: "src/main.rs".into(),
        text: text.into(),
    });
    let mut error = Diagnostic::error(Rule::DataRace, at(0, 2, "").span, "a race".to_string());
    error.labels.push(at(1, 9, "written here"));
    error.labels.push(at(1, 1, "read here"));
    let calls: &[Call] = &[];
    let text = invar::report::render(&sources, calls, &[error], Style::Plain);
    assert!(text.contains("--> src/main.rs:2:7"), "{text}");
    assert!(
        text.contains("note: src/main.rs:9:7: written here"),
        "{text}"
    );
    assert!(text.contains("kept = there;"), "{text}");
    assert!(!text.contains("2 |") && !text.contains("9 |"), "{text}");
}

#[test]
fn what_the_checkers_find_names_the_line() {
    let k = Builder::new("race");
    let x = k.buffer("x", Access::ReadWrite, Scalar::U32);
    let i = k.thread_position_in_grid(Dim::X);
    x.store(i / 2u32, i);
    let module = k.finish().expect("a kernel");
    let device = Device::checked();
    let program = device.compile(&module, "race").expect("a program");
    let zeros = device.buffer_zeroed::<u32>(4).expect("a buffer");
    let dispatch = Dispatch::linear(8, 8);
    let launched = device
        .queue()
        .dispatch(&program, dispatch, &[Arg::from(&zeros)]);
    let findings = launched.expect("a launch").findings();
    let text = render_for(&module, &findings, Style::Plain);
    assert!(text.contains("error[data-race]"), "{text}");
    assert!(text.contains(&line_of("x.store(i / 2u32, i);")), "{text}");
}

#[test]
fn what_a_launch_finds_names_the_line_too() {
    let k = Builder::new("beyond");
    let x = k.buffer("x", Access::Write, Scalar::U32);
    let i = k.thread_position_in_grid(Dim::X);
    x.store(i + 1u32, i);
    let beyond = k.finish_as::<(Out<u32>,)>().expect("a kernel");
    let device = Device::checked();
    let prepared = beyond.prepare(&device).expect("a program");
    let mut zeros = device.buffer_zeroed::<u32>(4).expect("a buffer");
    let launched = prepared.launch(Grid::threads(3), (&mut zeros,));
    launched.expect("a launch").wait().expect("within bounds");
    assert_eq!(zeros.read().expect("numbers"), [0, 0, 1, 2]);
    let launched = prepared.launch(Grid::threads(4), (&mut zeros,));
    let error = launched.expect("a launch").wait();
    let text = error.expect_err("a store out of bounds").to_string();
    assert!(text.contains(&line_of("x.store(i + 1u32, i);")), "{text}");
}

#[test]
fn a_value_of_another_kernel_is_a_clear_error() {
    let (a, b) = (Builder::new("first"), Builder::new("second"));
    let n = a.scalar("n", Scalar::U32);
    let x = b.buffer("x", Access::Write, Scalar::U32);
    let i = b.thread_position_in_grid(Dim::X);
    x.store(i, i + n);
    let error = b.finish().expect_err("a value of another kernel");
    let text = error.to_string();
    assert!(
        text.contains("`%n` is a value of kernel `first`, not of `second`"),
        "{text}"
    );
    assert!(text.contains(&line_of("x.store(i, i + n);")), "{text}");
    assert_eq!(text.matches("is a value of kernel").count(), 1, "{text}");
    assert!(a.finish().is_ok(), "the other one is whole");
}

#[test]
fn a_list_with_another_kernel_s_value_names_the_line_of_the_list() {
    let other = Builder::new("other");
    let foreign = other.thread_position_in_grid(Dim::X);
    let cases: &[fn(&Builder, Value<'_>)] = &[
        |k, foreign| {
            let i = k.thread_position_in_grid(Dim::X);
            k.construct(Type::Vector(Scalar::U32, 2), &[i, foreign]);
        },
        |k, foreign| {
            let (i, x) = (
                k.literal(0u32),
                k.buffer("x", Access::ReadWrite, Scalar::U32),
            );
            x.atomic(AtomicOp::Add, i, &[foreign], Order::Relaxed, Scope::Device);
        },
        |k, foreign| {
            k.loop_(&[foreign], |carried| {
                k.break_(carried);
                vec![]
            });
        },
        |k, foreign| {
            let one = k.literal(1u32);
            k.for_(one..one, one, &[one], |_, _| vec![foreign]);
        },
    ];
    for wrong in cases {
        let k = Builder::new("mine");
        wrong(&k, foreign);
        let text = k
            .finish()
            .expect_err("a value of another kernel")
            .to_string();
        assert!(
            text.contains("is a value of kernel `other`, not of `mine`"),
            "{text}"
        );
        assert!(text.contains("tests/suite/build.rs:"), "{text}");
    }
}

#[test]
fn numbers_stand_on_either_side_and_beside_vectors() {
    let k = Builder::new("mixed");
    let x = k.buffer("x", Access::ReadWrite, Scalar::F32);
    let pairs = k.buffer("pairs", Access::ReadWrite, Type::Vector(Scalar::F32, 2));
    let i = k.thread_position_in_grid(Dim::X);
    let mut v = 1.0f32 - x.load(i);
    v *= 2.0f32;
    v += v.powi(-2);
    x.store(i, 8.0f32 / v + 10.0f32 % k.literal(4.0f32));
    let mut pair = pairs.load(i);
    pair = v * (pair + 1.0f32) - 0.5f32;
    pair -= 2.0f32 * pair.powi(0);
    pairs.store(i, pair);
    pairs.store((6u32 >> i) & 1u32, pair);
    let mixed = k
        .finish_as::<(Out<f32>, Out<[f32; 2]>)>()
        .expect("a kernel");
    let device = Device::default().expect("a device");
    let mut x = device.buffer_from(&[2.0f32]).expect("a buffer");
    let mut pairs = device.buffer_from(&[[1.0f32, 3.0]; 2]).expect("a buffer");
    let launched = mixed.launch(&device, Grid::threads(1), (&mut x, &mut pairs));
    launched.expect("a launch").wait().expect("a run");
    // v = -2 + 1 / 4
    let v = -1.75f32;
    assert_eq!(x.read().expect("numbers"), [8.0 / v + 2.0]);
    let pair = [v * 2.0 - 2.5, v * 4.0 - 2.5];
    assert_eq!(pairs.read().expect("pairs"), [pair, [1.0, 3.0]]);
}

#[test]
fn operations_of_the_table_and_what_only_the_raw_builder_has() {
    use invar::ir::Place;
    let k = Builder::new("raw");
    let x = k.buffer("x", Access::ReadWrite, Scalar::U32);
    let i = k.thread_position_in_grid(Dim::X);
    let bits = k.op("popcount", (), &[i]);
    x.store(i, bits);
    k.with(|b| {
        let (place, bits) = (Place::element(b.own(x), b.own(i)), b.own(bits));
        b.store(place, bits);
    });
    let (twice, ty) = k.with(|b| {
        let bits = b.own(bits);
        (Some(vec![b.add(bits, bits)]), b.ty(bits))
    });
    assert_eq!(ty, Type::U32);
    x.store(i, twice.expect("values")[0]);
    k.finish().expect("a kernel");
    let k = Builder::new("wild");
    let x = k.buffer("x", Access::ReadWrite, Scalar::U32);
    let wild = invar::ir::Value(77);
    let loaded = k.with(|b| {
        let x = b.own(x);
        b.load(Place::element(x, wild))
    });
    k.with(|b| b.name(wild, "wild"));
    x.store(k.literal(0u32), loaded);
    let text = k.finish().expect_err("a number of no value").to_string();
    assert!(text.contains("a value that nothing defines"), "{text}");
}

#[test]
fn a_signature_is_that_of_the_kernel() {
    let make = || {
        let k = Builder::new("copy");
        k.buffer("x", Access::Read, Scalar::F32);
        k.buffer("y", Access::Write, Scalar::F32);
        k.scalar("n", Type::Vector(Scalar::U32, 2));
        k
    };
    assert!(make().finish_as::<(In<f32>, Out<f32>, [u32; 2])>().is_ok());
    let told = |error: Option<invar::Error>| error.expect("another signature").to_string();
    let text = told(make().finish_as::<(In<f32>, In<f32>, [u32; 2])>().err());
    assert!(
        text.contains("parameter 2 is not a buffer of f32 that is only read"),
        "{text}"
    );
    let text = told(make().finish_as::<(In<u32>, Out<f32>, [u32; 2])>().err());
    assert!(
        text.contains("parameter 1 is not a buffer of u32"),
        "{text}"
    );
    let text = told(make().finish_as::<(In<f32>, Out<f32>, u32)>().err());
    assert!(
        text.contains("parameter 3 is not a value of type u32"),
        "{text}"
    );
    let text = told(make().finish_as::<(In<f32>, Out<f32>)>().err());
    assert!(text.contains("it has 3 parameters, not 2"), "{text}");
    let vectors = || {
        let k = Builder::new("vectors");
        k.buffer("x", Access::Read, Type::Vector(Scalar::F32, 4));
        k
    };
    assert!(vectors().finish_as::<(In<[f32; 4]>,)>().is_ok());
    let text = told(vectors().finish_as::<(In<[f32; 2]>,)>().err());
    assert!(text.contains("not a buffer of [f32; 2]"), "{text}");
    assert!(vectors().finish_as::<(In<f32>,)>().is_err());
}

#[derive(Clone, Copy, KernelData)]
#[repr(C)]
struct Tagged {
    tag: u32,
    at: [f32; 3],
}

#[derive(Clone, Copy, KernelData)]
#[repr(C)]
struct TaggedBehind {
    at: [f32; 3],
    tag: u32,
}

#[test]
fn a_signature_s_structs_have_the_kernel_s_fields() {
    let make = || {
        let k = Builder::new("tags");
        k.with(|b| {
            b.module_mut().structs.push(StructDef {
                name: "Tagged".into(),
                fields: vec![
                    ("tag".into(), Scalar::U32.into()),
                    ("at".into(), Type::Vector(Scalar::F32, 3).into()),
                ],
                span: Span::default(),
            });
        });
        k.buffer("x", Access::Write, ElementType::Struct(StructId(0)));
        k
    };
    assert!(make().finish_as::<(Out<Tagged>,)>().is_ok());
    let told = |error: Option<invar::Error>| error.expect("another signature").to_string();
    let text = told(make().finish_as::<(Out<TaggedBehind>,)>().err());
    assert!(
        text.contains("parameter 1 is not a buffer of structs of f32, f32, f32, u32"),
        "{text}"
    );
    assert!(make().finish_as::<(Out<[u32; 4]>,)>().is_err());
}

#[test]
fn a_signature_has_up_to_sixteen_parameters() {
    let k = Builder::new("many");
    let x = k.buffer("x", Access::Write, Scalar::U32);
    let numbers: Vec<_> = (0..15)
        .map(|i| k.scalar(&format!("n{i}"), Scalar::U32))
        .collect();
    let sum = numbers.iter().fold(k.literal(0u32), |sum, n| sum + *n);
    x.store(k.literal(0u32), sum);
    type Sixteen = (
        Out<u32>,
        u32,
        u32,
        u32,
        u32,
        u32,
        u32,
        u32,
        u32,
        u32,
        u32,
        u32,
        u32,
        u32,
        u32,
        u32,
    );
    let many = k.finish_as::<Sixteen>().expect("a kernel");
    let device = Device::default().expect("a device");
    let mut x = device.buffer_zeroed::<u32>(1).expect("a buffer");
    let all = (&mut x, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let launched = many.launch(&device, Grid::threads(1), all);
    launched.expect("a launch").wait().expect("a run");
    assert_eq!(x.read().expect("a number"), [120]);
}

/// What is said of a kernel that is built wrongly.
fn told(wrong: fn(&Builder)) -> String {
    let k = Builder::new("wrong");
    wrong(&k);
    let error = k.finish().err();
    error.map_or("nothing".to_string(), |error| error.to_string())
}

/// Words of a report, and what is built wrongly.
type Wrong = (&'static str, fn(&Builder));

/// That each is told with these words and the line of this file.
fn all_told(cases: &[Wrong]) {
    for (words, wrong) in cases {
        let text = told(*wrong);
        assert!(text.contains(words), "not `{words}`, but: {text}");
        assert!(text.contains("tests/suite/build.rs:"), "{text}");
    }
}

#[test]
fn control_flow_that_does_not_fit_is_told_with_its_line() {
    all_told(&[
        ("there is no loop around this `break`", |k| k.break_(&[])),
        ("there is no loop around this `continue`", |k| {
            k.continue_(&[]);
        }),
        ("`break` gives no values, but the loop takes 1", |k| {
            k.loop_(&[k.literal(1u32)], |carried| {
                k.break_(&[]);
                carried.to_vec()
            });
        }),
        ("but `break` gives `%3`, of type f32", |k| {
            k.loop_(&[k.literal(1u32)], |carried| {
                k.break_(&[k.literal(1.0f32)]);
                carried.to_vec()
            });
        }),
        ("`yield` gives no values, but the loop takes 1", |k| {
            k.loop_(&[k.literal(1u32)], |_| vec![]);
        }),
        ("but `yield` gives `%4`, of type f32", |k| {
            let one = k.literal(1u32);
            k.for_(one..one, one, &[one], |_, _| vec![k.literal(1.0f32)]);
        }),
        ("the bound (`%1`) has type f32, expected u32", |k| {
            let (one, half) = (k.literal(1u32), k.literal(0.5f32));
            k.for_(one..half, one, &[], |_, _| vec![]);
        }),
        ("expected an integer scalar", |k| {
            let half = k.literal(0.5f32);
            k.for_(half..half, half, &[], |_, _| vec![]);
        }),
        ("`yield` gives no values, but the `if` takes 1", |k| {
            let yes = k.literal(true);
            k.if_values(yes, || vec![yes], Vec::new);
        }),
        ("on one side of the `if`, but here `%2` has type f32", |k| {
            let yes = k.literal(true);
            k.if_values(yes, || vec![yes], || vec![k.literal(1.0f32)]);
        }),
        ("the condition (`%0`) has type u32, expected bool", |k| {
            k.if_(k.literal(1u32), || ())
        }),
        ("is used outside the block that defines it", |k| {
            let x = k.buffer("x", Access::Write, Scalar::U32);
            let i = k.thread_position_in_grid(Dim::X);
            let kept = std::cell::Cell::new(i);
            k.if_(i.eq(0u32), || kept.set(i + 1u32));
            x.store(i, kept.get());
        }),
        ("the `break` before it ends the block", |k| {
            k.loop_(&[], |_| {
                k.break_(&[]);
                k.break_(&[]);
                vec![]
            });
        }),
        ("a threadgroup barrier may be missed by threads", |k| {
            let i = k.thread_position_in_grid(Dim::X);
            k.if_(i.lt(2u32), || {
                k.barrier(Scope::Threadgroup, Spaces::THREADGROUP);
            });
        }),
        ("blocks nest at most 64 deep", |k| {
            fn nested(k: &Builder, depth: u32) {
                if depth > 0 {
                    k.if_(k.literal(true), || nested(k, depth - 1));
                }
            }
            nested(k, 400);
        }),
    ]);
}

#[test]
fn values_and_arrays_that_do_not_fit_are_told_with_their_line() {
    all_told(&[
        ("the stored value (`%1`) has type f32, expected u32", |k| {
            let x = k.buffer("x", Access::Write, Scalar::U32);
            x.store(k.literal(0u32), 1.0f32);
        }),
        ("the index of `x` (`%0`) has type f32", |k| {
            let x = k.buffer("x", Access::Read, Scalar::U32);
            x.load(k.literal(1.0f32));
        }),
        ("this stores to `x`, which is declared `read`", |k| {
            let x = k.buffer("x", Access::Read, Scalar::U32);
            x.store(k.literal(0u32), 1u32);
        }),
        ("`q` names no components", |k| {
            k.literal([1.0f32, 2.0]).swizzle("q");
        }),
        ("a vector has 2 to 4 components, not 9", |k| {
            let one = k.literal(1.0f32);
            k.construct(Type::Vector(Scalar::F32, 9), &[one; 9]);
        }),
        ("`construct` takes 1 to 16 operands, found 0", |k| {
            k.construct(Type::F32, &[]);
        }),
        ("there is no `atomic_xor` on f32", |k| {
            let x = k.buffer("x", Access::ReadWrite, Scalar::F32);
            let (i, one) = (k.literal(0u32), k.literal(1.0f32));
            x.atomic(AtomicOp::Xor, i, &[one], Order::Relaxed, Scope::Device);
        }),
        ("`atomic_add` takes 1 values, found 0", |k| {
            let x = k.buffer("x", Access::ReadWrite, Scalar::U32);
            let i = k.literal(0u32);
            x.atomic(AtomicOp::Add, i, &[], Order::Relaxed, Scope::Device);
        }),
        ("there is no operation `popcunt`", |k| {
            let one = k.literal(1u32);
            assert_eq!(k.op("popcunt", (), &[one]).ty(), Type::F32);
        }),
        ("array `%t` has no elements", |k| {
            k.threadgroup_array("t", Scalar::F32, 0);
        }),
        ("`%999` is not a value of `wrong`", |k| {
            let v = k.with(|_| invar::ir::Value(999)).named("v");
            assert_eq!(v.ty(), Type::F32);
            let _sum = v + 1.0f32;
        }),
        ("this is not an array of `wrong`", |k| {
            k.with(|_| invar::ir::Memory::Param(1))
                .load(k.literal(0u32));
        }),
    ]);
}

#[test]
fn what_a_closure_of_with_takes_in_is_of_its_kernel() {
    use invar::ir::Place;
    use invar::ir::texture::{TextureAccess, TextureType};

    let other = Builder::new("other");
    // Both have the same numbers in each kernel.
    let (y, n) = (
        other.buffer("y", Access::Read, Scalar::F32),
        other.scalar("n", Scalar::U32),
    );
    let of_other = (
        other.texture("t", TextureType::d2(Scalar::F32, TextureAccess::Sample)),
        other.sampler("how"),
    );
    let k = Builder::new("mine");
    let (x, i) = (
        k.buffer("x", Access::ReadWrite, Scalar::F32),
        k.scalar("i", Scalar::U32),
    );
    let v = k.with(|b| {
        let y = b.own(y); // an array
        let n = b.own(n); // a value
        let (texture, how) = (b.own(of_other.0), b.own(of_other.1)); // a texture and a sampler
        let _not_used = (texture, how);
        b.load(Place::element(y, n))
    });
    x.store(i, v);
    let text = k.finish().expect_err("of another kernel").to_string();
    for (what, line) in [
        (
            "`%y` is an array of kernel `other`, not of `mine`",
            "let y = b.own(y); // an array",
        ),
        (
            "`%n` is a value of kernel `other`, not of `mine`",
            "let n = b.own(n); // a value",
        ),
        (
            "this is a texture of kernel `other`, not of `mine`",
            "let (texture, how) = (b.own(of_other.0), b.own(of_other.1)); // a texture and a sampler",
        ),
        (
            "this is a sampler of kernel `other`, not of `mine`",
            "let (texture, how) = (b.own(of_other.0), b.own(of_other.1)); // a texture and a sampler",
        ),
    ] {
        assert!(text.contains(what), "{text}");
        assert!(text.contains(&line_of(line)), "{text}");
    }
    assert_eq!(text.matches("error[").count(), 4, "{text}");
    assert!(other.finish().is_ok(), "the other one is whole");
}

#[test]
fn what_does_not_fit_a_launch_or_a_signature_names_the_line() {
    let build = || {
        let k = Builder::new("fill");
        let y = k.buffer("y", Access::Write, Scalar::U32); // the parameter
        k.requires("length(y) > 3"); // the requirement
        y.store(k.thread_position_in_grid(Dim::X), k.literal(1u32));
        k
    };
    let device = Device::checked();
    let fill = build().finish_as::<(Out<u32>,)>().expect("a kernel");
    let mut y = device.buffer_zeroed::<u32>(2).expect("a buffer");
    let launched = fill.launch(&device, Grid::threads(2), (&mut y,));
    let text = launched.expect_err("a refusal").to_string();
    let line = line_of(r#"k.requires("length(y) > 3"); // the requirement"#);
    assert!(text.contains(&line), "{text}");
    assert!(text.contains("length(y) is 2"), "{text}");
    let other = build().finish_as::<(In<u32>,)>(); // another signature
    let text = other.err().expect("a refusal").to_string();
    for line in [
        "let other = build().finish_as::<(In<u32>,)>(); // another signature",
        r#"let y = k.buffer("y", Access::Write, Scalar::U32); // the parameter"#,
    ] {
        assert!(
            text.contains(&line_of(line)) || text.contains(line),
            "{text}"
        );
    }
}

#[test]
fn a_sampler_of_another_kernel_is_a_clear_error() {
    use invar::ir::texture::{TextureAccess, TextureType};

    let other = Builder::new("other");
    let how = other.sampler("how");
    let k = Builder::new("wrong");
    let from = k.texture("from", TextureType::d2(Scalar::F32, TextureAccess::Sample));
    k.sampler("own");
    let u = k.literal(0.5f32);
    from.sample(how, &[u, u]); // of another one
    let text = k.finish().expect_err("an error").to_string();
    let what = "this is a sampler of kernel `other`, not of `wrong`";
    assert!(text.contains(what), "{text}");
    assert!(
        text.contains(&line_of("from.sample(how, &[u, u]); // of another one")),
        "{text}"
    );
}

#[test]
#[should_panic(expected = "a kernel is built by what the closure is given")]
fn a_closure_of_with_builds_by_what_it_is_given() {
    let k = Builder::new("wrong");
    k.with(|_| k.literal(1u32).ty());
}

#[test]
fn textures_samplers_and_atomics_on_texels() {
    use invar::build::{TextureIn, TextureOut};
    use invar::ir::texture::{TextureAccess, TextureType};

    let build = || {
        let k = Builder::new("counts");
        let from = k.texture("from", TextureType::d2(Scalar::F32, TextureAccess::Sample));
        let bins = k.texture(
            "bins",
            TextureType::d2(Scalar::U32, TextureAccess::ReadWrite),
        );
        let how = k.sampler("how");
        let (x, none) = (k.thread_position_in_grid(Dim::X), k.literal(0u32));
        let (middle, level) = (k.literal(0.5f32), k.literal(0.0f32));
        let u = x.cast(Scalar::F32) + 0.5f32;
        let code = from.sample(how, &[u, middle, level]).swizzle("x") * 255.0f32;
        let old = bins.atomic(
            AtomicOp::Add,
            &[code.cast(Scalar::U32), none],
            &[k.literal(1u32)],
        );
        assert_eq!(old[0].ty(), Type::U32);
        k
    };
    let counts = build().finish_as::<(TextureIn, TextureOut, Sampler)>();
    let counts = counts.expect("a kernel");
    let device = Device::default().expect("a device");
    let from = Texture::new(&device, PixelFormat::R8Unorm, 2, 1, &[1, 1]).expect("a texture");
    let mut bins = Texture::zeroed(&device, PixelFormat::R32Uint, 2, 1).expect("a texture");
    let how = Sampler {
        coordinates: Coordinates::Pixel,
        mip: Mip::Nearest,
        ..Sampler::NEAREST
    };
    let launched = counts.launch(&device, Grid::threads(2), (&from, &mut bins, how));
    launched.expect("a launch").wait().expect("a run");
    assert_eq!(bins.read().expect("texels"), [0, 0, 0, 0, 2, 0, 0, 0]);
    let unlike = build().finish_as::<(TextureIn, TextureIn, Sampler)>();
    let message = unlike.err().expect("another signature").to_string();
    assert!(
        message.contains("parameter 2 is not a texture that is only read"),
        "{message}"
    );
}

#[test]
fn two_parameters_have_two_names() {
    use invar::ir::texture::{TextureAccess, TextureType};

    let k = Builder::new("twice");
    let y = k.buffer("x", Access::Write, Scalar::U32); // the first
    k.scalar("x", Scalar::U32); // the second
    k.texture("x", TextureType::d2(Scalar::F32, TextureAccess::Read)); // the third
    k.sampler("other");
    y.store(k.thread_position_in_grid(Dim::X), 1u32);
    let text = k.finish().expect_err("a refusal").to_string();
    assert_eq!(
        text.matches("two parameters are called `x`").count(),
        2,
        "{text}"
    );
    for line in [
        r#"let y = k.buffer("x", Access::Write, Scalar::U32); // the first"#,
        r#"k.scalar("x", Scalar::U32); // the second"#,
        r#"k.texture("x", TextureType::d2(Scalar::F32, TextureAccess::Read)); // the third"#,
    ] {
        assert!(
            text.contains(&line_of(line)) || text.contains(line),
            "{text}"
        );
    }
}

#[test]
fn a_store_in_a_closure_of_another_kernel_is_a_clear_error() {
    let (a, b) = (Builder::new("a"), Builder::new("b"));
    let x = a.buffer("x", Access::ReadWrite, Scalar::U32);
    let (y, n) = (
        b.buffer("y", Access::Write, Scalar::U32),
        b.scalar("n", Scalar::U32),
    );
    let i = a.thread_position_in_grid(Dim::X);
    b.if_(n.lt(4u32), || x.store(i, 1u32)); // of another one
    b.if_(n.lt(4u32), || {
        let c = Builder::new("c");
        let z = c.buffer("z", Access::Write, Scalar::U32);
        z.store(c.thread_position_in_grid(Dim::X), 1u32); // a kernel as a whole
        assert!(c.finish().is_ok());
        a.if_(i.lt(4u32), || x.store(i, 2u32)); // each in its own
        y.store(b.thread_position_in_grid(Dim::X), 1u32);
    });
    x.store(i, 3u32); // outside again
    let text = a.finish().expect_err("a refusal").to_string();
    let what = "this store of kernel `a` stands in a closure of kernel `b`";
    assert_eq!(text.matches("error").count(), 1, "{text}");
    assert!(text.contains(what), "{text}");
    let line = line_of("b.if_(n.lt(4u32), || x.store(i, 1u32)); // of another one");
    assert!(text.contains(&line), "{text}");
    assert!(b.finish().is_ok(), "the other one is whole");
}

#[test]
fn a_side_of_a_branch_that_gives_too_little_is_told_of_sides() {
    let k = Builder::new("sides");
    let y = k.buffer("y", Access::Write, Scalar::U32);
    let n = k.scalar("n", Scalar::U32);
    let given = k.if_values(n.lt(4u32), || vec![n], Vec::new); // nothing on one side
    y.store(k.thread_position_in_grid(Dim::X), given[0]);
    let text = k.finish().expect_err("a refusal").to_string();
    assert!(
        text.contains("give it the value that the `if` has on this side"),
        "{text}"
    );
    assert!(!text.contains("to be next"), "{text}");
}
