//! The op table's arithmetic against golden values from elsewhere, and what expansions promise.
//!
//! tests/data/golden/README.md describes the files.

use std::collections::BTreeSet;
use std::path::Path;

use invar_ir::ops::evaluate::Program;
use invar_ir::ops::{Accuracy, Classes, Meaning, Signature};
use invar_ir::{Imm, InstKind, KernelBuilder, Module, Op, Scalar, Type, Value, expand};

use crate::golden_values::{Section, bound, error};

/// One column of scalars' bits for each component.
type Columns = Vec<Vec<u64>>;

fn sections(file: &str) -> Vec<Section> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/golden");
    crate::golden_values::sections(&folder, file)
}

/// The results for operands given as one column for each scalar.
fn evaluate(op: Op, imm: Imm, operands: &[Type], columns: &[Vec<u64>]) -> Columns {
    let program = Program::compile(op, imm, operands).expect("operands that the table admits");
    let count = program.result_type().component_count() as usize;
    let mut results = vec![vec![0; columns[0].len()]; count];
    let args: Vec<&[u64]> = columns.iter().map(Vec::as_slice).collect();
    let mut out: Vec<&mut [u64]> = results.iter_mut().map(Vec::as_mut_slice).collect();
    program.run(&args, &mut out);
    results
}

fn check(section: &Section, op: Op) -> Vec<String> {
    let imm = match op.row().signature {
        Signature::Cast => Imm::Type(section.result),
        _ => Imm::None,
    };
    let scalars: u32 = section.operands.iter().map(|ty| ty.component_count()).sum();
    let columns: Columns = (0..scalars as usize)
        .map(|k| section.cases.iter().map(|case| case.operands[k]).collect())
        .collect();
    let results = evaluate(op, imm, &section.operands, &columns);
    let scalar = section.result.scalar().expect("scalars");
    let bound = bound(op, scalar);
    let mut failures = Vec::new();
    for (lane, case) in section.cases.iter().enumerate() {
        for (component, want) in case.results.iter().enumerate() {
            let got = results[component][lane];
            let missing = case.missing.get(component).copied().unwrap_or(0.0);
            let error = error(scalar, got, *want, missing);
            // What is missing is given in thousandths, rounded.
            if error > bound + 0.0005 {
                failures.push(format!(
                    "{}: {} {:x?} gives {got:x}, expected {want:x?}: {error:.3} ulp, at most {bound}",
                    section.place, section.operation, case.operands,
                ));
            }
        }
    }
    failures
}

#[test]
fn arithmetic_and_functions_meet_the_golden_values() {
    let mut failures = Vec::new();
    for file in [
        "f32.txt",
        "f64.txt",
        "f16.txt",
        "bf16.txt",
        "composite.txt",
        "cast.txt",
        "pack.txt",
    ] {
        let sections = sections(file);
        assert!(!sections.is_empty(), "{file} is empty");
        for section in &sections {
            assert!(!section.cases.is_empty(), "{} has no cases", section.place);
            match Op::from_name(&section.operation) {
                Some(op) => failures.extend(check(section, op)),
                None => failures.push(format!(
                    "{}: `{}` is not an operation",
                    section.place, section.operation
                )),
            }
        }
    }
    failures.truncate(40);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Every function of floats with an error bound is in the files, for every float type.
#[test]
fn every_function_with_a_bound_has_golden_values() {
    for scalar in [Scalar::F32, Scalar::F64, Scalar::F16, Scalar::BF16] {
        let have: BTreeSet<String> = [format!("{scalar}.txt"), "composite.txt".to_string()]
            .iter()
            .flat_map(|file| sections(file))
            .filter(|section| section.operands[0].scalar() == Some(scalar))
            .map(|section| section.operation)
            .collect();
        let mut functions = 0;
        for op in Op::all() {
            let row = op.row();
            let bounded = matches!(row.accuracy, Accuracy::Ulp { .. } | Accuracy::Twofold(_));
            if bounded && !matches!(row.signature, Signature::Fixed(..)) {
                assert!(
                    have.contains(op.name()),
                    "tests/data/golden has nothing of `{op}` of {scalar}: scripts/golden.py writes it"
                );
                functions += 1;
            }
        }
        assert!(functions > 30, "only {functions} functions");
    }
}

/// A vector's components come out as they do alone, also where they need different branches and
/// numbers of iterations.
#[test]
fn functions_go_component_by_component() {
    let mut compared = 0;
    for scalar in [Scalar::F32, Scalar::F64, Scalar::F16] {
        for section in sections(&format!("{scalar}.txt")) {
            let Some(op) = Op::from_name(&section.operation) else {
                continue;
            };
            let floats = matches!(op.row().signature, Signature::Same(_, c) if c == Classes::FLOAT);
            if !floats || !matches!(op.row().meaning, Meaning::Expand(_)) {
                continue;
            }
            let count = section.operands.len();
            let column = |k: usize, shift: usize| -> Vec<u64> {
                let cases = &section.cases;
                (0..cases.len())
                    .map(|lane| cases[(lane + shift * 7) % cases.len()].operands[k])
                    .collect()
            };
            let mut wide = Columns::new();
            let mut alone: Vec<Columns> = vec![Columns::new(); 3];
            for k in 0..count {
                for (shift, alone) in alone.iter_mut().enumerate() {
                    wide.push(column(k, shift));
                    alone.push(column(k, shift));
                }
            }
            let vectors = vec![Type::Vector(scalar, 3); count];
            let together = evaluate(op, Imm::None, &vectors, &wide);
            for (component, alone) in alone.iter().enumerate() {
                let apart = evaluate(op, Imm::None, &section.operands, alone);
                assert_eq!(together[component], apart[0], "{op} of {scalar}");
                compared += 1;
            }
        }
    }
    assert!(compared > 150, "only {compared} comparisons");
}

/// How many operations the expansion takes for `f32`, and those in branches and loops apart;
/// without constants and `as_type`, which cost nothing.
fn operation_count(op: Op, operands: usize) -> (usize, usize) {
    let mut k = KernelBuilder::new(Module::default(), "count");
    let args: Vec<Value> = (0..operands).map(|_| k.scalar("x", Type::F32)).collect();
    k.op(op, (), &args);
    let module = k.finish().expect("operands that the table admits");
    let module = expand::expand(module, &|_, _, _| false).expect("an expansion that fits");
    let kernel = &module.kernels[0];
    let counts = |kind: &InstKind| matches!(kind, InstKind::Op { op, .. } if *op != Op::AsType);
    let mut all = 0;
    kernel.for_each_inst(&mut |inst| all += usize::from(counts(&inst.kind)));
    let straight = kernel.body.insts.iter().filter(|inst| counts(&inst.kind));
    let straight = straight.count();
    (straight, all - straight)
}

/// Only what is dear and rare branches or loops, and the common path of an `f32` function is short.
#[test]
fn expansions_are_short_and_straight_where_they_can_be() {
    let mut functions = 0;
    for op in Op::all() {
        let row = op.row();
        let Signature::Same(count, Classes::FLOAT) = row.signature else {
            continue;
        };
        if !matches!(row.meaning, Meaning::Expand(_)) {
            continue;
        }
        let (straight, in_regions) = operation_count(op, usize::from(count));
        let may_branch = matches!(op, Op::Sin | Op::Cos | Op::Tan | Op::Fmod | Op::Smoothstep);
        assert_eq!(in_regions > 0, may_branch, "{op} holds regions");
        let limit = if count == 1 { 52 } else { 110 };
        assert!(straight <= limit, "{op} takes {straight} operations");
        functions += 1;
    }
    assert!(functions > 25, "only {functions} functions");
}
