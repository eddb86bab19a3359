//! What kernels print as MSL, read back from the buffer of lines.

use std::collections::BTreeMap;

use invar_codegen::passes::print::expand;
use invar_conformance::metal::Batch;
use invar_interp::observe::Lines;
use invar_interp::{Arg, Dispatch, Options, run};
use invar_ir::print::{LIMIT_BYTES, Printed};
use invar_ir::{Const, Scalar, Verified, text, verify};

/// The lines of each thread, with the columns where they were written.
fn by_thread(printed: &Printed) -> BTreeMap<[u32; 3], Vec<(u32, &str)>> {
    let mut threads: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for line in &printed.lines {
        let of = threads.entry(line.thread).or_default();
        of.push((line.span.start.line, &*line.text));
    }
    threads
}

/// What a module's only kernel prints as MSL.
fn as_msl(module: &Verified, grid: &Dispatch, args: &[Arg<'static>], name: &str) -> Printed {
    let kernel = module.kernels[0].name.clone();
    let mut batch = Batch::default();
    let added = batch.add_dispatch(module, &kernel, grid, args, 0);
    added.expect("Metal has all of it");
    let outcomes = super::run_batch(&batch, name, false);
    let left = outcomes[0].as_ref().expect("it runs");
    let words = left[args.len()].bytes().chunks_exact(4);
    let words: Vec<u32> = words
        .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
        .collect();
    let plain = invar_ir::Module::clone(module);
    let (_, prints) = expand(plain, 0).expect("it can be written out");
    prints.expect("it prints").read(&words)
}

#[test]
fn p1_lines_are_those_of_the_reference_machine() {
    if !super::can_run("printing") {
        return;
    }
    let text = r#"kernel @k(%a: i8, %b: u64, %c: f16, %d: bf16, %e: f32, %g: bool, %v: i16x3, %y: device read_write u32) {
        %i = thread_position_in_grid x
        %j = thread_position_in_grid y
        %zero = const u32 0
        %one = const u32 1
        print "{} {} {} {} {} {} {:x}" %a, %b, %c, %d, %e, %g, %v
        for %k = %zero to %i step %one {
            %odd = and %k, %one
            %is = eq %odd, %one
            if %is {
                print "{} {}: {}" %i, %j, %k
            } else {
                %old = atomic_add %y[%zero], %k
            }
        }
        print "end"
    }"#;
    let module = verify(text::parse("print.inv", text).expect("a text")).expect("a module");
    let scalar = |scalar, bits| Arg::Scalar(vec![Const { scalar, bits }]);
    let vector = [-1i16, 2, 0x7fff].map(Const::from).to_vec();
    let args = || {
        [
            scalar(Scalar::I8, 0x85),
            scalar(Scalar::U64, u64::MAX - 5),
            scalar(Scalar::F16, 0x3555),
            scalar(Scalar::BF16, 0xbdcd),
            Arg::scalar(1.5e-7f32),
            Arg::scalar(true),
            Arg::Scalar(vector.clone()),
            Arg::zeros(4),
        ]
    };
    let grid = Dispatch {
        grid: invar_interp::Grid::Threads([5, 3, 1]),
        threadgroup: [4, 2, 1],
    };
    let mut lines = Lines::default();
    let options = Options::default();
    run(
        &module,
        "k",
        &grid,
        &mut args(),
        &options,
        &mut [&mut lines],
    )
    .expect("it runs");
    let printed = as_msl(&module, &grid, &args(), "print-lines");
    assert_eq!(by_thread(&printed), by_thread(&lines.0));
    assert_eq!((printed.lines.len(), printed.lost), (42, 0));
}

#[test]
fn p5_what_does_not_fit_is_counted() {
    if !super::can_run("printing too much") {
        return;
    }
    let text = "kernel @k(%v: u64x2) {\n    print \"{}\" %v\n}";
    let module = verify(text::parse("print.inv", text).expect("a text")).expect("a module");
    let fit = LIMIT_BYTES / 32;
    let args = [Arg::Scalar(vec![Const::from(1u64 << 40); 2])];
    let printed = as_msl(&module, &Dispatch::linear(fit + 7, 64), &args, "print-much");
    assert_eq!((printed.lines.len() as u32, printed.lost), (fit, 7));
    assert_eq!(printed.lines[0].text, "(1099511627776, 1099511627776)");
}
