//! Every row of the op table and every instruction is in a kernel of `tests/ir/run/*.inv` that a
//! `; run:` line runs with expected values of its own, not the reference machine's.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use invar_ir::text::case::ExprKind;
use invar_ir::text::case::files;
use invar_ir::{AtomicOp, InstKind, Kernel, Op, text};

fn words(kernel: &Kernel, found: &mut BTreeSet<&'static str>) {
    kernel.for_each_inst(&mut |inst| {
        found.insert(inst.kind.name());
    });
}

/// What the kernels of a text hold that are run with expected values.
fn checked(name: &str, source: &str) -> BTreeSet<&'static str> {
    let module = text::parse(name, source).unwrap_or_else(|e| panic!("{name}: {e}"));
    let cases = text::cases(source).unwrap_or_else(|e| panic!("{name}: {e}"));
    let mut found = BTreeSet::new();
    for case in cases {
        let own = |expect: &text::case::Expect| !matches!(expect.value.kind, ExprKind::Reference);
        if case.expects.iter().any(own) {
            let kernel = module.kernel(&case.kernel.name);
            words(kernel.unwrap_or_else(|| panic!("{name}")), &mut found);
        }
    }
    found
}

#[test]
fn every_operation_and_instruction_has_a_file_with_expected_values() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/ir/run");
    let mut found = BTreeSet::new();
    for path in files(&folder).expect("the folder of file tests") {
        let source = fs::read_to_string(&path).expect("a text");
        found.append(&mut checked(&path.display().to_string(), &source));
    }
    let atomics = AtomicOp::ALL.into_iter().map(AtomicOp::name);
    let all = Op::all()
        .map(Op::name)
        .chain(InstKind::STRUCTURAL)
        .chain(atomics);
    let missing: Vec<&str> = all.filter(|name| !found.contains(name)).collect();
    assert!(missing.is_empty(), "without expected values: {missing:?}");
}

#[test]
fn what_the_reference_machine_says_is_no_expected_value() {
    let text = |expected: &str| {
        format!(
            "kernel @k(%y: device write u32) {{
    %one = const u32 1
    store %y[%one], %one
}}
; run: @k(y = zeros(2)) grid(1) -> y == {expected}
"
        )
    };
    assert!(checked("own", &text("[0, 1]")).contains("store"));
    assert!(checked("reference", &text("reference")).is_empty());
}
