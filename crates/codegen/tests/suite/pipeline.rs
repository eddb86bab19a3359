//! The lists of steps in `docs/architecture.md` are those of the code.

use invar_codegen::pipeline::{CPU, MSL, OPTIMISATION, Step, WGSL};

const ARCHITECTURE: &str = include_str!("../../../../docs/architecture.md");

/// The names in backquotes of a part of a line.
fn names(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// The second cell of the row of that name.
fn row(name: &str) -> &'static str {
    let start = format!("| {name} | ");
    let row = ARCHITECTURE
        .lines()
        .find_map(|line| line.strip_prefix(&start));
    let row = row.unwrap_or_else(|| panic!("no row `{name}`"));
    row.split(" | ").next().expect("a cell")
}

#[test]
fn the_lists_of_the_documents_are_those_of_the_code() {
    for (target, steps) in [("CPU", CPU), ("MSL", MSL), ("WGSL", WGSL)] {
        let code: Vec<&str> = steps.iter().map(|step| step.name()).collect();
        assert_eq!(names(row(target)), code, "{target}");
    }
    let optimise = ARCHITECTURE
        .lines()
        .find_map(|line| line.strip_prefix("`optimise` runs "));
    assert_eq!(names(optimise.expect("what `optimise` runs")), OPTIMISATION);
}

#[test]
fn every_step_is_explained() {
    let explained: Vec<&str> = ARCHITECTURE
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once(" | "))
        .flat_map(|(cell, _)| cell.split("`, `"))
        .map(|name| name.trim_end_matches('`'))
        .collect();
    for step in [CPU, MSL, WGSL].concat() {
        let name = step.name();
        assert!(
            step == Step::Optimise || explained.contains(&name),
            "{name}"
        );
    }
}
