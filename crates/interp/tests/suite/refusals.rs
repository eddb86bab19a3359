//! What is refused before anything runs: each message names the parameter or the size.

use invar_interp::{Arg, Dispatch, Grid, Options, run};
use invar_ir::{Const, Verified, text, verify};

fn module() -> Verified {
    let source = "
kernel @k(%x: device read f32, %y: device read_write f32, %n: u32, %v: f32x2, %s: threadgroup f32, %c: constant u32) {
    %t = thread_index_in_threadgroup
    %a = load %x[%t]
    store %s[%t], %a
    store %y[%t], %a
}
kernel @fixed(%y: device write u32) threadgroup(8, 2) simdgroup(16) {
}
kernel @blocks(%n: u32, %a: imageblock f32x4(rgba8unorm), %b: imageblock u16) threadgroup(8, 2) {
}";
    verify(text::parse("k.inv", source).expect("parses")).expect("verifies")
}

fn args() -> Vec<Arg<'static>> {
    vec![
        Arg::zeros(16),
        Arg::zeros(16),
        Arg::scalar(1u32),
        Arg::Scalar(vec![Const::from(1.0f32), Const::from(2.0f32)]),
        Arg::ThreadgroupLength(16),
        Arg::zeros(4),
    ]
}

fn outcome(kernel: &str, dispatch: Dispatch, mut args: Vec<Arg>, options: &Options) -> String {
    match run(&module(), kernel, &dispatch, &mut args, options, &mut []) {
        Ok(_) => "ok".to_string(),
        Err(errors) => {
            assert_eq!(errors.0.len(), 1);
            format!("{}: {}", errors.0[0].rule, errors.0[0].message)
        }
    }
}

fn with(change: impl FnOnce(&mut Vec<Arg<'static>>)) -> String {
    let mut args = args();
    change(&mut args);
    outcome("k", Dispatch::linear(4, 4), args, &Options::default())
}

#[test]
fn s4_arguments_that_fit_are_taken() {
    assert_eq!(with(|_| {}), "ok");
}

#[test]
fn s4_arguments_that_do_not_fit_are_named() {
    assert_eq!(
        with(|a| {
            a.pop();
        }),
        "invalid-argument: kernel `k` takes 6 arguments (`x`, `y`, `n`, `v`, `s`, `c`), found 5"
    );
    assert_eq!(
        with(|a| a[0] = Arg::scalar(1u32)),
        "invalid-argument: argument `x` of `k` is a scalar, expected a buffer of f32"
    );
    assert_eq!(
        with(|a| a[1] = Arg::ReadBuffer(&[0; 16])),
        "invalid-argument: argument `y` of `k` is read-only memory, but the kernel writes it: pass it \
         as writable"
    );
    assert_eq!(with(|a| a[0] = Arg::ReadBuffer(&[0; 16])), "ok");
    assert_eq!(
        with(|a| a[2] = Arg::scalar(1i32)),
        "invalid-argument: argument `n` of `k` has type i32, expected u32"
    );
    assert_eq!(
        with(|a| a[2] = Arg::zeros(4)),
        "invalid-argument: argument `n` of `k` is a buffer, expected a value of type u32"
    );
    assert_eq!(
        with(|a| a[3] = Arg::scalar(1.0f32)),
        "invalid-argument: argument `v` of `k` has 1 components, expected the 2 of f32x2"
    );
    assert_eq!(
        with(|a| a[4] = Arg::zeros(4)),
        "invalid-argument: argument `s` of `k` is a buffer, expected a length in elements of f32"
    );
}

#[test]
fn s4_threadgroup_memory_has_a_limit() {
    let options = Options {
        threadgroup_memory_bytes: 64,
        ..Options::default()
    };
    let fits = outcome("k", Dispatch::linear(4, 4), args(), &options);
    assert_eq!(fits, "ok");
    let mut more = args();
    more[4] = Arg::ThreadgroupLength(17);
    assert_eq!(
        outcome("k", Dispatch::linear(4, 4), more, &options),
        "invalid-argument: kernel `k` needs 68 bytes of threadgroup memory, more than the limit of 64"
    );
    let mut huge = args();
    huge[4] = Arg::ThreadgroupLength(u64::MAX);
    let message = outcome("k", Dispatch::linear(4, 4), huge, &options);
    assert!(message.contains("73786976294838206460 bytes"), "{message}");
}

#[test]
fn m5_imageblocks_count_as_threadgroup_memory() {
    let dispatch = Dispatch {
        grid: Grid::Threads([1; 3]),
        threadgroup: [8, 2, 1],
    };
    // Of 16 positions, codes of four bytes and numbers of two.
    let [exact, less] = [96, 95].map(|bytes| Options {
        threadgroup_memory_bytes: bytes,
        ..Options::default()
    });
    let args = || vec![Arg::scalar(1u32)];
    assert_eq!(outcome("blocks", dispatch, args(), &exact), "ok");
    assert_eq!(
        outcome("blocks", dispatch, args(), &less),
        "invalid-argument: kernel `blocks` needs 96 bytes of threadgroup memory, more than the limit of 95"
    );
}

#[test]
fn x1_grids_and_threadgroups_have_limits() {
    let grid = |grid, threadgroup| {
        let dispatch = Dispatch { grid, threadgroup };
        outcome("k", dispatch, args(), &Options::default())
    };
    assert_eq!(
        grid(Grid::Threads([4, 1, 1]), [4, 0, 1]),
        "invalid-dispatch: the threadgroup size 4x0x1 of `k` has a 0: give each dimension at least 1"
    );
    assert_eq!(grid(Grid::Threads([4, 1, 1]), [16, 16, 4]), "ok");
    assert_eq!(
        grid(Grid::Threads([4, 1, 1]), [16, 16, 5]),
        "invalid-dispatch: a threadgroup of 16x16x5 has 1280 threads, more than the limit of 1024"
    );
    assert_eq!(
        grid(Grid::Threadgroups([1, 0x1000_0000, 1]), [1, 16, 1]),
        "invalid-dispatch: a grid of 1x268435456x1 threadgroups of 1x16x1 has more threads in a \
         dimension than 4294967295: use a smaller grid"
    );
    assert_eq!(grid(Grid::Threadgroups([0, 5, 1]), [1, 16, 1]), "ok");
    assert!(grid(Grid::Threads([u32::MAX; 3]), [1, 1, 1]).contains("can be numbered"));
}

#[test]
fn x2_required_sizes_are_kept() {
    let fixed = |dispatch, size| {
        let options = Options {
            simdgroup_size: size,
            ..Options::default()
        };
        outcome("fixed", dispatch, vec![Arg::zeros(4)], &options)
    };
    let right = Dispatch {
        grid: Grid::Threads([8, 2, 1]),
        threadgroup: [8, 2, 1],
    };
    assert_eq!(fixed(right, None), "ok");
    assert_eq!(fixed(right, Some(16)), "ok");
    assert_eq!(
        fixed(right, Some(32)),
        "invalid-dispatch: kernel `fixed` requires simdgroups of 16 threads, not 32"
    );
    assert_eq!(
        fixed(Dispatch::linear(16, 16), None),
        "invalid-dispatch: kernel `fixed` requires threadgroups of 8x2x1, not 16x1x1"
    );
    for size in [0, 2, 3, 48, 256, u32::MAX] {
        let options = Options {
            simdgroup_size: Some(size),
            ..Options::default()
        };
        let message = outcome("k", Dispatch::linear(4, 4), args(), &options);
        assert!(
            message.contains("4, 8, 16, 32, 64 or 128 threads, not"),
            "{message}"
        );
    }
}

#[test]
fn a_kernel_that_is_not_there_is_refused_with_those_that_are() {
    assert_eq!(
        outcome(
            "other",
            Dispatch::linear(1, 1),
            Vec::new(),
            &Options::default()
        ),
        "invalid-dispatch: the module has no kernel `other`; it has `k`, `fixed`, `blocks`"
    );
}

#[test]
fn a_threadgroup_that_takes_too_much_memory_is_refused() {
    let options = |bytes| Options {
        resident_bytes: bytes,
        ..Options::default()
    };
    let enough = outcome("k", Dispatch::linear(4, 4), args(), &options(1 << 20));
    assert_eq!(enough, "ok");
    let message = outcome("k", Dispatch::linear(4, 4), args(), &options(1000));
    assert!(
        message.starts_with("limit-exceeded: the values and arrays"),
        "{message}"
    );
}
