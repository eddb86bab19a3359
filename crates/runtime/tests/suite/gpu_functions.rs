//! The GPU device's arithmetic and functions of floats, one at a time, against the golden values.

#![cfg(feature = "gpu")]

use std::path::{Path, PathBuf};

use invar_codegen::wgsl::Fma;
use invar_ir::{Access, Imm, KernelBuilder, Module, Op, Place, Scalar, Type, Verified, verify};
use invar_runtime::gpu::{Gpu, GpuArg, GpuBuffer};
use invar_runtime::{CompileOptions, Dispatch};

use crate::golden_values::{Case, Section, bound, error, sections};

/// The golden values' folder; a machine that runs this test need not be the one that built it.
fn folder() -> PathBuf {
    match std::env::var_os("INVAR_RUN_FILES") {
        Some(files) => PathBuf::from(files).join("../../data/golden"),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/golden"),
    }
}

/// Whether it is so small that a device without `ieee-float` may take it for 0 (A9).
fn is_subnormal(scalar: Scalar, bits: u64) -> bool {
    let exponent = match scalar {
        Scalar::BF16 => 0x7f80,
        Scalar::F32 => 0x7f80_0000,
        // Held in `f32`, or kept.
        _ => return false,
    };
    bits & exponent == 0 && bits & (exponent - 1) & !(1 << (scalar.bits() - 1)) != 0
}

/// Whether it is the zero below 0, or infinite: without `ieee-float` a device need keep neither.
fn is_special(scalar: Scalar, bits: u64) -> bool {
    let infinity = match scalar {
        Scalar::F16 => 0x7c00,
        Scalar::BF16 => 0x7f80,
        Scalar::F32 => 0x7f80_0000,
        _ => return false,
    };
    let sign = 1 << (scalar.bits() - 1);
    bits == sign || bits & (sign - 1) == infinity
}

/// The error of one result; none where `ieee-float` alone says what it is: of subnormals, of the zero below 0
/// and of infinities.
fn error_of(section: &Section, case: &Case, component: usize, got: u64) -> Option<f64> {
    let scalar = section.result.scalar().expect("scalars");
    let want = case.results[component];
    let from = section.operands[0].scalar().expect("scalars");
    let open = |bits: &u64| is_subnormal(from, *bits) || is_special(from, *bits);
    let zero = |bits: u64| scalar.is_float() && bits & !(1 << (scalar.bits() - 1)) == 0;
    if case.operands.iter().any(open)
        || is_subnormal(scalar, got)
        || want.is_some_and(|want| is_subnormal(scalar, want))
    {
        return None;
    }
    if zero(got) && want.is_some_and(zero) {
        return Some(0.0);
    }
    let missing = case.missing.get(component).copied().unwrap_or(0.0);
    Some(error(scalar, got, want, missing))
}

/// The largest error allowed on a GPU: the table's, but for what the target's own operations may lose (A9).
/// A function that is little more than such an operation is no better; GPUs that are processors divide exactly.
fn allowed(gpu: &Gpu, op: Op, scalar: Scalar) -> f64 {
    let divides = op == Op::Rsqrt || op.name().starts_with("unpack_");
    let exact = gpu.features().fma != Fma::Fused;
    match (op, scalar) {
        (Op::Div | Op::Sqrt, Scalar::F32) => 3.0,
        (_, Scalar::F32) if divides && !exact => 3.0,
        (Op::Div | Op::Sqrt, _) => 0.51,
        _ => bound(op, scalar),
    }
}

/// The kernel that applies an operation to the elements of its operands.
fn kernel(op: Op, section: &Section) -> Verified {
    let mut k = KernelBuilder::new(Module::default(), "k");
    let params: Vec<_> = section
        .operands
        .iter()
        .map(|ty| k.buffer("x", Access::Read, *ty))
        .collect();
    let out = k.buffer("out", Access::Write, section.result);
    let i = k.thread_position_in_grid(invar_ir::Dim::X);
    let args: Vec<_> = params
        .iter()
        .map(|p| k.load(Place::element(*p, i)))
        .collect();
    let value = k.op(op, Imm::None, &args);
    k.store(Place::element(out, i), value);
    verify(k.finish().expect("operands that the table admits")).expect("a valid kernel")
}

/// The bits of all results, case after case.
fn results(gpu: &Gpu, op: Op, section: &Section) -> Vec<u64> {
    let program = gpu
        .compile(&kernel(op, section), "k", &CompileOptions::default())
        .unwrap_or_else(|e| panic!("{op} of {:?}: {e}", section.operands));
    let mut first = 0;
    let mut buffers: Vec<GpuBuffer> = Vec::new();
    for ty in &section.operands {
        let scalars = first..first + ty.component_count() as usize;
        let size = ty.scalar().expect("scalars").size_bytes() as usize;
        let bytes: Vec<u8> = section
            .cases
            .iter()
            .flat_map(|case| &case.operands[scalars.clone()])
            .flat_map(|bits| bits.to_le_bytes()[..size].to_vec())
            .collect();
        buffers.push(gpu.buffer_from(&bytes).unwrap());
        first = scalars.end;
    }
    let count = section.cases.len() as u32;
    let size = section.result.scalar().expect("scalars").size_bytes();
    let out = u64::from(section.result.component_count()) * size * u64::from(count);
    buffers.push(gpu.buffer(out).unwrap());
    let args: Vec<GpuArg<'_>> = buffers.iter().map(GpuArg::Buffer).collect();
    gpu.dispatch(&program, Dispatch::linear(count, 64), &args)
        .unwrap();
    let bytes = buffers[section.operands.len()].read().unwrap();
    bytes
        .chunks(size as usize)
        .map(|part| {
            part.iter()
                .rev()
                .fold(0, |bits, byte| bits << 8 | u64::from(*byte))
        })
        .collect()
}

/// What is wrong in a section, and how many results were compared.
fn check(gpu: &Gpu, section: &Section) -> (Option<String>, u32) {
    let op = Op::from_name(&section.operation).expect("an operation");
    let scalar = section.result.scalar().expect("scalars");
    let bound = allowed(gpu, op, scalar);
    let components = section.result.component_count() as usize;
    let found = results(gpu, op, section);
    let (mut compared, mut wrong, mut worst) = (0, 0, (bound, String::new()));
    for (case, got) in section.cases.iter().zip(found.chunks(components)) {
        for (component, bits) in got.iter().enumerate() {
            let Some(error) = error_of(section, case, component, *bits) else {
                continue;
            };
            compared += 1;
            // What is missing is given in thousandths, rounded.
            if error > bound + 0.0005 {
                wrong += 1;
                if error > worst.0 || worst.1.is_empty() {
                    let of = &case.operands;
                    let text = format!("of {of:x?} is {bits:x}, expected {:x?}", case.results);
                    worst = (error, text);
                }
            }
        }
    }
    let failure = (wrong > 0).then(|| {
        format!(
            "{}: {op}: {wrong} of {compared} are off by more than {bound} ulp: {} by {:.3}",
            section.place, worst.1, worst.0
        )
    });
    (failure, compared)
}

/// Checks the sections of some files on a GPU.
#[expect(clippy::print_stdout, reason = "a test says how much it ran")]
fn check_files(gpu: &Gpu, files: &[&str], wanted: &dyn Fn(&Section) -> bool, least: u32) {
    let (mut failures, mut compared) = (Vec::new(), 0);
    for file in files {
        for section in sections(&folder(), file) {
            if !wanted(&section) {
                continue;
            }
            let (failure, count) = check(gpu, &section);
            failures.extend(failure);
            compared += count;
        }
    }
    println!("{gpu:?}: {compared} results");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(compared >= least, "only {compared} results");
}

/// The places of this machine's adapters; a machine without any has nothing to test.
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn adapters() -> std::ops::Range<usize> {
    let count = Gpu::names().len();
    if count == 0 {
        println!("skipped: this machine has no adapter (mesa-vulkan-drivers brings one)");
    }
    0..count
}

#[test]
fn functions_of_f32_are_within_their_bounds() {
    for index in adapters() {
        let gpu = Gpu::open(index).unwrap();
        check_files(&gpu, &["f32.txt"], &|_| true, 10_000);
    }
}

#[test]
fn functions_of_short_floats_are_within_their_bounds() {
    for index in adapters() {
        let gpu = Gpu::open(index).unwrap();
        check_files(&gpu, &["f16.txt", "bf16.txt"], &|_| true, 10_000);
    }
}

#[test]
fn functions_of_vectors_and_packed_numbers_are_within_their_bounds() {
    let no_f64 = |section: &Section| section.operands[0].scalar() != Some(Scalar::F64);
    for index in adapters() {
        let gpu = Gpu::open(index).unwrap();
        check_files(&gpu, &["composite.txt", "pack.txt"], &no_f64, 4_000);
    }
}

/// A device that rounds products in an `fma` has it by code of ours, in `f64` or else in integers.
#[test]
fn a_product_and_a_sum_are_rounded_once() {
    let fused = |section: &Section| {
        ["fma", "exp", "fmod", "pow"].contains(&section.operation.as_str())
            && section.operands[0] == Type::F32
    };
    for index in adapters() {
        for gpu in [Gpu::open(index), Gpu::open_without_f64(index)] {
            check_files(&gpu.unwrap(), &["f32.txt"], &fused, 1_000);
        }
    }
}
