//! Checks every shader of `tests/wgsl` by what its comments say.

use invar_wgsl::{directives, read};

use crate::comments::check_all;

#[test]
fn every_shader_gives_what_its_lines_say() {
    check_all(("wgsl", "wgsl", 20), &read, &directives);
}
