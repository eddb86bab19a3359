//! Checks every source of `tests/metal` by what its comments say.

use invar_ir::{Diagnostics, Module};
use invar_msl::{Library, directives, find_clang};

use crate::comments::check_all;

fn read(name: &str, text: &str) -> Result<Module, Diagnostics> {
    let constants = text
        .lines()
        .filter_map(|l| l.trim().strip_prefix("// const: "));
    let constants = constants.filter_map(|l| l.split_once('='));
    let library = Library {
        name: name.to_string(),
        text: text.to_string(),
        constants: constants
            .map(|(n, v)| (n.to_string(), v.to_string()))
            .collect(),
        ..Library::default()
    };
    library.kernels(None).map(|all| all.module)
}

#[test]
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn every_source_gives_what_its_lines_say() {
    if let Err(why) = find_clang() {
        println!("skipped: {why}");
        return;
    }
    check_all(("metal", "metal", 18), &read, &directives, &[]);
}
