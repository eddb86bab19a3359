//! Random kernels, compiled and on the reference machine: the same bytes.
//!
//! `INVAR_RANDOM_KERNELS=FIRST..END` tries other seeds.

use std::ops::Range;

use invar_conformance::{Options, Side, Summary, compare, owned};
use invar_interp::{Arg, Dispatch};
use invar_ir::{Diagnostic, Diagnostics, Rule, Span, Verified};
use invar_llvm::{CompileOptions, Program, Target, compile as compile_kernel};

fn seeds(default: Range<u64>) -> Range<u64> {
    let Ok(text) = std::env::var("INVAR_RANDOM_KERNELS") else {
        return default;
    };
    let number = |text: &str| text.parse::<u64>().expect("FIRST..END");
    let (first, end) = text.split_once("..").expect("FIRST..END");
    number(first)..number(end)
}

/// Vectors of threads along x and rows that chunks are given: what the compiler chooses, and what it seldom does.
const SHAPES: [Option<[u32; 2]>; 5] =
    [None, Some([4, 1]), Some([1, 2]), Some([2, 2]), Some([2, 1])];

#[expect(clippy::print_stdout, reason = "a test says how much it ran")]
fn try_all(target: Target, default: Range<u64>) {
    if !target.runs_here() {
        println!(
            "skipped: this machine cannot run code for {}",
            target.name()
        );
        return;
    }
    let run = |seed: u64,
               module: &Verified,
               kernel: &str,
               dispatch: &Dispatch,
               args: &mut [Arg<'static>]|
     -> Result<(), Diagnostics> {
        // What a kernel is made small under is what it failed under.
        let count = seed as usize;
        let options = CompileOptions {
            target,
            // Both kinds of code, and several shapes of chunks.
            threadgroup_size: (!count.is_multiple_of(3)).then_some(dispatch.threadgroup),
            interleave: SHAPES[count % SHAPES.len()],
            least_apart: [0, 0, usize::MAX][count / SHAPES.len() % 3],
            red_zones: count % 4 > 1,
            // Now and then as functions that are too long, with variables on the stack and without.
            most_improved: [u32::MAX, u32::MAX, 100, 0][count % 4],
            ..CompileOptions::default()
        };
        let failed = |message: String| {
            let error = Diagnostic::error(Rule::Expectation, Span::NONE, message);
            Diagnostics(vec![error])
        };
        let object = compile_kernel(module, kernel, &options)?;
        let program = Program::load(&object).map_err(|e| failed(e.to_string()))?;
        let name = format!("seed {seed} on {}", target.name());
        let mut once = owned(args);
        for (side, args) in [(Side::Start, &mut once[..]), (Side::End, &mut *args)] {
            crate::driver::run_native(module, kernel, &program, dispatch, args, (&name, side))
                .map_err(failed)?;
        }
        // Of a kernel that keeps to R4 the same bytes are left wherever its buffers lie.
        let same = |(a, b): (&Arg<'_>, &Arg<'_>)| a.bytes() == b.bytes();
        match once.iter().zip(args.iter()).all(same) {
            true => Ok(()),
            false => Err(failed("it depends on where buffers lie".to_string())),
        }
    };
    let mut total = Summary::default();
    for seed in seeds(default) {
        let mut target =
            |module: &Verified, kernel: &str, dispatch: &Dispatch, args: &mut [Arg<'static>]| {
                run(seed, module, kernel, dispatch, args)
            };
        match compare(&mut target, &Options::default(), seed..seed + 1) {
            Ok(summary) => {
                total.same += summary.same;
                for (why, count) in summary.refused {
                    *total.refused.entry(why).or_default() += count;
                }
            }
            Err(failure) => panic!("{failure}"),
        }
    }
    println!("{}: {total}", target.name());
}

#[test]
fn random_kernels_agree_natively() {
    try_all(Target::Native, 0..30);
}

#[test]
fn random_kernels_agree_on_any_x86_64() {
    try_all(Target::X86V1, 150..162);
}

#[test]
fn random_kernels_agree_with_avx2() {
    try_all(Target::X86V3, 200..212);
}
