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

/// What users give threads who have thousands of them. (Where it does not suffice, the process ends without a word.)
#[test]
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn deep_sources_are_read_on_small_stacks() {
    if let Err(why) = find_clang() {
        println!("skipped: {why}");
        return;
    }
    let deep = 40;
    let text = format!(
        "#include <metal_stdlib>
         kernel void k(device uint *x [[buffer(0)]], uint i [[thread_position_in_grid]]) {{
             {}
             x[i] = 1;
             {}
         }}",
        "if (x[x[i]] > 1) { x[i] += 1;\n".repeat(deep),
        "}".repeat(deep),
    );
    let thread = std::thread::Builder::new().stack_size(32 << 10);
    let read = thread.spawn(move || {
        let kernels = Library {
            name: "deep.metal".to_string(),
            text,
            ..Library::default()
        };
        invar_ir::verify(kernels.kernels(None)?.module).map(|module| module.kernels.len())
    });
    let kernels = read.expect("it starts").join().expect("it ends");
    assert_eq!(kernels, Ok(1));
}
