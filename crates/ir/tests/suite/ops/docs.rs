//! `docs/ops.md`, which is written from the table: `BLESS=1` writes it anew.

use std::fmt::Write;
use std::path::Path;

use invar_ir::ops::{Capability, Group, Meaning, OpRow, ResultUniformity};
use invar_ir::{Op, Scope};

/// A title, what is said of its operations, and which those are.
type Section = (&'static str, &'static str, fn(&Meaning) -> bool);

const SECTIONS: [Section; 6] = [
    (
        "Basic operations",
        "Component by component, exact or correctly rounded (A1 to A9). Every target computes these \
         itself.",
        |m| matches!(m, Meaning::Eval(_)),
    ),
    (
        "Components and bits",
        "These move components or bits about and compute nothing.",
        |m| matches!(m, Meaning::Arrange),
    ),
    (
        "Functions defined by other operations",
        "Each is a fixed sequence of basic operations, its expansion (A10), the same in every float \
         mode. Where more than one rounding is made, f16 and bf16 are computed in f32 and rounded \
         once more.",
        |m| matches!(m, Meaning::Expand(_)),
    ),
    (
        "Between the lanes of a simdgroup",
        "Every thread of the simdgroup must reach these together (X4). What missing lanes do is rule \
         X6, in which order lanes are combined rule A11. Vectors are exchanged by component.",
        |m| matches!(m, Meaning::Lanes(Group::Simdgroup, _)),
    ),
    (
        "Between the lanes of a quadgroup",
        "As those of a simdgroup, in each four consecutive lanes.",
        |m| matches!(m, Meaning::Lanes(Group::Quadgroup, _)),
    ),
    (
        "Where a thread stands",
        "Queries; those that take a component name it: `thread_position_in_grid x`.",
        |m| matches!(m, Meaning::Query),
    ),
];

fn written() -> String {
    let mut text = String::from(
        "# Operations\n\n\
         <!-- Written from the op table in crates/ir/src/ops/table.rs by the tests of crates/ir; \
         BLESS=1 writes it anew. -->\n\n\
         Elementwise operations, exchange between lanes, and queries, each a row of the op table. \
         `T` is one type for all operands of that name; an operation on vectors works component by \
         component. Rules such as A7 are those of [the memory model](memory-model.md).\n",
    );
    let mut count = 0;
    for (title, about, of) in SECTIONS {
        let _ = write!(text, "\n## {title}\n\n{about}\n");
        for op in Op::all().filter(|op| of(&op.row().meaning)) {
            entry(&mut text, op.row());
            count += 1;
        }
    }
    assert_eq!(count, Op::all().len(), "each row has its section");
    text
}

fn entry(text: &mut String, row: &OpRow) {
    let operands = row.operands.join(", ");
    let _ = write!(
        text,
        "\n### {}\n\n`{}({operands})`: {}\n\n",
        row.name, row.name, row.signature
    );
    for line in row.doc.lines() {
        let line = line.trim_start().replace("](KernelBuilder::", "](#");
        let _ = writeln!(text, "{line}");
    }
    let mut notes = Vec::new();
    if matches!(row.meaning, Meaning::Expand(_)) {
        notes.push(format!("Error: {}.", row.accuracy));
    }
    match row.uniformity {
        ResultUniformity::Operands => {}
        ResultUniformity::Over(Scope::Device) => notes.push("Uniform over the grid.".into()),
        ResultUniformity::Over(scope) => {
            notes.push(format!("Uniform over the {}.", scope.name()));
        }
        ResultUniformity::Varying => notes.push("Varies from thread to thread.".into()),
    }
    match row.capability {
        Capability::Core => {}
        Capability::Simdgroup => notes.push("Needs simdgroups.".into()),
        Capability::Quadgroup => notes.push("Needs quadgroups.".into()),
    }
    if !notes.is_empty() {
        let _ = write!(text, "\n{}\n", notes.join(" "));
    }
}

#[test]
fn the_page_of_operations_is_what_the_table_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ops.md");
    let written = written();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &written).expect("docs/ops.md can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == written,
        "docs/ops.md is not what the op table says: run the tests of crates/ir with BLESS=1"
    );
}

#[test]
fn every_link_in_the_table_leads_to_a_row() {
    for op in Op::all() {
        for link in op.row().doc.split("](KernelBuilder::").skip(1) {
            let name = link.split(')').next().unwrap_or_default();
            assert!(Op::from_name(name).is_some(), "{op} links to `{name}`");
        }
    }
}

/// The methods written out here; the rows' come with their examples, which the table's macro asks
/// for.
#[test]
fn every_method_of_the_builder_has_an_example() {
    let mut methods = 0;
    for file in ["builder.rs", "literal.rs"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(file);
        let text = std::fs::read_to_string(&path).expect("the source");
        let mut inside = false;
        let mut examples = 0;
        for line in text.lines() {
            match line {
                "impl KernelBuilder {" => inside = true,
                "}" => inside = false,
                _ if line == "    /// ```" => examples += 1,
                _ => {}
            }
            if line.starts_with("    pub fn ") && inside {
                assert!(examples > 0, "{file}: no example: {}", line.trim());
                methods += 1;
            }
            if !line.starts_with("    //") && !line.starts_with("    #") {
                examples = 0;
            }
        }
    }
    assert!(methods > 45, "only {methods} methods");
    let text = include_str!("../../../src/ops/table.rs");
    let examples = text.matches("\n        example (").count();
    assert_eq!(examples, Op::all().len() - 1, "all rows but `construct`");
}
