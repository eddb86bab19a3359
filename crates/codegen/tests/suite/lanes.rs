//! The analysis of lanes: each line of `tests/ir/lanes` that defines values says in a comment how they
//! differ over a chunk, and whether a loop needs a mask.

use std::collections::{BTreeMap, HashMap};

use invar_codegen::analysis::distances::{self, Distances};
use invar_codegen::analysis::lanes::{Class, Classes, Positions, Question, Shape, analyse};
use invar_codegen::analysis::ranges;
use invar_ir::{Inst, InstKind, Kernel, Level, Module, Value, text, verify};

const HEADER: &str = "; lanes: ";

/// How a line `; lanes: width N, along N, rows N, positions .., linear, level ..` says that threads are
/// cut into chunks.
fn cut(line: &str) -> (Shape, Positions, Level) {
    let parts: Vec<&str> = line.split(", ").collect();
    let of = |key: &str| parts.iter().find_map(|part| part.strip_prefix(key));
    let number = |key: &str| of(key).and_then(|n| n.parse().ok());
    let number = |key: &str| number(key).unwrap_or_else(|| panic!("{line}: no {key}"));
    let shape = Shape {
        width: number("width "),
        along: number("along "),
        rows: number("rows "),
        linear: parts.contains(&"linear"),
    };
    let positions = match of("positions ") {
        Some("rows") => Positions::Rows,
        Some("in row") => Positions::InRow,
        Some("anywhere") => Positions::Anywhere,
        other => panic!("{line}: positions {other:?}"),
    };
    let level = match of("level ") {
        Some("simdgroup") => Level::Simdgroup,
        Some("threadgroup") | None => Level::Threadgroup,
        other => panic!("{line}: level {other:?}"),
    };
    (shape, positions, level)
}

/// Whether all threads meet in an instruction.
fn holds_barrier(inst: &Inst) -> bool {
    let mut inner = inst.kind.regions().into_iter().flat_map(|r| &r.insts);
    matches!(inst.kind, InstKind::Barrier { .. }) || inner.any(holds_barrier)
}

fn classes(module: &Module, kernel: &Kernel, header: &str) -> (Classes, Distances) {
    let (shape, positions, level) = cut(header);
    let question = Question {
        kernel,
        uniformity: &invar_ir::analyse(module, kernel),
        level,
        shape,
        positions,
        together: &holds_barrier,
        at_least: &HashMap::new(),
        threadgroup_size: kernel.threadgroup_size,
        ranges: &ranges::analyse_unguarded(kernel, &ranges::Known::default()),
    };
    let classes = analyse(&question);
    let distances = distances::analyse(&question, &classes);
    (classes, distances)
}

/// How a value that does not grow evenly does, if that is known.
fn by(distances: &Distances, value: Value) -> String {
    let list = |by: &[i64]| by.iter().map(|by| format!(" {by}")).collect::<String>();
    let exact = distances.of(value, true);
    let wrapping = distances
        .of(value, false)
        .map(|by| format!(" by{} in 32 bits", list(by)));
    exact
        .map(|by| format!(" by{}", list(by)))
        .or(wrapping)
        .unwrap_or_default()
}

/// What is found of each line of a text that defines values, by its number.
fn found(name: &str, source: &str) -> BTreeMap<u32, String> {
    let module = text::parse(name, source).and_then(verify);
    let module = module.unwrap_or_else(|e| panic!("{name}: {e}"));
    let mut found = BTreeMap::new();
    for kernel in &module.kernels {
        let start = kernel.span.start.line as usize;
        let before = source.lines().take(start).collect::<Vec<_>>();
        let header = before.iter().rev().find_map(|l| l.strip_prefix(HEADER));
        let header = header.unwrap_or_else(|| panic!("{name}: no line `{HEADER}..`"));
        let (classes, distances) = classes(&module, kernel, header);
        kernel.for_each_inst(&mut |inst| {
            let params = inst.kind.regions().into_iter().flat_map(|r| &r.params);
            let values = inst.results.iter().chain(params);
            let says = |v: &Value| {
                let by = match classes.of(*v) {
                    Class::Varying => by(&distances, *v),
                    Class::Uniform | Class::Line(_) => String::new(),
                };
                format!("{} {}{by}", kernel.value_name(*v), classes.of(*v))
            };
            let mut says: Vec<String> = values.map(says).collect();
            if classes.is_masked(inst) {
                says.push("masked".into());
            }
            if !says.is_empty() {
                found.insert(inst.span.start.line, says.join(", "));
            }
        });
    }
    found
}

#[test]
fn every_line_is_found_to_be_what_it_says() {
    crate::annotated::check("lanes", 7, found);
}
