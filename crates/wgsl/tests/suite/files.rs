//! Checks every shader of `tests/wgsl` by what its comments say.

use invar_ir::Rule;
use invar_wgsl::{directives, read};

use crate::comments::check_all;

#[test]
fn every_shader_gives_what_its_lines_say() {
    // Workgroup memory is all zeros at first, by the standard.
    let allow = [Rule::UninitialisedRead];
    check_all(("wgsl", "wgsl", 20), &read, &directives, &allow);
}
