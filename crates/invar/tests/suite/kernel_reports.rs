//! What reports on Rust kernels name: the author's lines, and what to write in Rust.

use invar::prelude::*;

use crate::macros_of_kernels::{self, out_of_bounds, with_body};

/// The line of this file that has these words.
fn line_of(words: &str) -> String {
    let text = include_str!("kernel_reports.rs");
    let found = text.lines().position(|l| l.trim() == words);
    format!("kernel_reports.rs:{}:", found.expect("the line") + 1)
}

fn told(error: Option<invar::Error>) -> String {
    error.expect("an error").to_string()
}

#[kernel]
fn together(y: &mut [u32]) {
    y[0] = 7;
}

#[kernel(allow(equal_stores))]
fn together_meant(y: &mut [u32]) {
    y[0] = 7;
}

#[kernel]
fn updates(y: &mut [u32]) {
    y[0] += 1;
}

#[kernel]
fn exchanged(x: &[u32], y: &mut [u32]) {
    let i = thread_position_in_grid().x;
    y[i] = x[i];
    y[i + 4] = y[(i + 1) % 4];
}

#[test]
fn advice_is_rust() {
    let found = together::check(Grid::threads(4), &mut [0]).expect("a run");
    let text = found.to_string();
    assert!(text.contains("`#[kernel(allow(equal_stores))]`"), "{text}");
    let found = together_meant::check(Grid::threads(4), &mut [0]).expect("a run");
    assert!(found.diagnostics().is_empty(), "{found}");
    let text = told(
        updates::check(Grid::threads(4), &mut [0])
            .and_then(Findings::into_result)
            .err(),
    );
    assert!(text.contains("`atomic_add(&mut y[0], 1)`"), "{text}");
    let found = exchanged::check(Grid::threads(4), &[1; 4], &mut [0; 8]).expect("a run");
    let text = found.to_string();
    assert!(text.contains("put `threadgroup_barrier()`"), "{text}");
}

const NONE: u32 = 0;

#[kernel(threadgroup(NONE))]
fn no_threads(y: &mut [f32]) {
    y[0] = 1.0;
}

#[kernel(simdgroup(33))]
fn odd_simdgroup(y: &mut [f32]) {
    y[0] = 1.0;
}

#[derive(Clone, Copy, KernelData)]
#[repr(C)]
struct Nothing {
    none: [f32; 0],
    one: f32,
}

#[kernel]
fn of_nothing(x: &[Nothing], y: &mut [f32]) {
    y[0] = x[0].one;
}

#[kernel]
#[requires(n <= length(y))]
fn requires_room(y: &mut [f32], n: u32) {
    y[n - 1] = 1.0;
}

#[kernel]
#[requires(grid.x <= length(index), each i of index: i < length(x), ascending index)]
fn gathers(x: &[f32], index: &[u32], y: &mut [f32]) {
    let i = thread_position_in_grid().x;
    y[i] = x[index[i]];
}

#[function_constant(7)]
const NEEDED: u32;

#[kernel]
fn needs(y: &mut [u32]) {
    y[0] = NEEDED;
}

#[kernel]
fn no_step(y: &mut [u32]) {
    for i in (0..10u32).step_by(0) {
        y[i] = i;
    }
}

#[test]
fn what_is_wrong_with_a_whole_kernel_names_its_line() {
    let text = told(no_threads::to_inv().err());
    assert!(
        text.contains(&line_of("fn no_threads(y: &mut [f32]) {")),
        "{text}"
    );
    let text = told(odd_simdgroup::to_inv().err());
    assert!(
        text.contains(&line_of("fn odd_simdgroup(y: &mut [f32]) {")),
        "{text}"
    );
    let text = told(of_nothing::to_inv().err());
    let place = line_of("fn of_nothing(x: &[Nothing], y: &mut [f32]) {");
    assert!(text.contains(&place), "{text}");
    let text = told(no_step::to_inv().err());
    assert!(text.contains("a step of 0"), "{text}");
    assert!(
        text.contains(&line_of("for i in (0..10u32).step_by(0) {")),
        "{text}"
    );
}

#[test]
fn what_buffers_hold_is_looked_at_where_a_kernel_requires_it() {
    let x = [1.0, 2.0, 4.0, 8.0];
    let run = |index: &[u32]| {
        let mut y = [0.0; 3];
        let found = gathers::check(Grid::threads(3), &x, index, &mut y);
        found.map(|found| (found.diagnostics().len(), y))
    };
    assert_eq!(run(&[0, 1, 3]).expect("a run"), (0, [1.0, 2.0, 8.0]));
    let line =
        "#[requires(grid.x <= length(index), each i of index: i < length(x), ascending index)]";
    for (index, said) in [
        ([0, 1, 4], "but index[2] is 4 and length(x) is 4"),
        ([1, 0, 2], "but index[0] is 1 and index[1] is 0"),
    ] {
        let text = told(run(&index).err());
        assert!(text.contains(said), "{text}");
        assert!(text.contains(&line_of(line)), "{text}");
    }
}

#[test]
fn what_is_wrong_with_a_launch_names_the_line() {
    let text = told(requires_room::check(Grid::threads(1), &mut [0.0], 2).err());
    assert!(
        text.contains(&line_of("#[requires(n <= length(y))]")),
        "{text}"
    );
    let device = Device::default().expect("a device");
    let mut y = device.buffer_zeroed::<u32>(1).expect("a buffer");
    let launched = needs::launch(&device, Grid::threads(1), &mut y);
    let text = told(launched.err());
    assert!(text.contains("`NEEDED` (id 7) has no value"), "{text}");
    assert!(text.contains(&line_of("y[0] = NEEDED;")), "{text}");
    assert!(told(needs::prepare(&device).err()).contains(&line_of("y[0] = NEEDED;")));
}

#[kernel]
fn barrier_for_some(y: &mut [u32]) {
    let t = thread_position_in_threadgroup().x;
    if t % 2 == 0 {
        threadgroup_barrier();
    }
    y[t] = t;
}

#[test]
fn a_value_without_a_name_is_told_in_the_author_s_words() {
    let text = told(barrier_for_some::to_inv().err());
    assert!(
        text.contains("`t % 2 == 0`") || text.contains("`t`"),
        "{text}"
    );
    assert!(!text.contains("`%"), "{text}");
}

out_of_bounds!(from_elsewhere);

with_body!(from_here(y, i) {
    let last = y.len() - 1;
    if i == 0 {
        y[last + 1] = 3;
    }
    y[last] = i;
});

with_body!(nothing_but_a_place(y, i) { y[i + 7] = 1 });

#[test]
fn a_kernel_of_a_macro_is_shown_in_one_file() {
    let found = from_elsewhere::check(Grid::threads(2), &mut [0; 2]).expect("a run");
    let text = found.to_string();
    let place = macros_of_kernels::line_of("x[i + 1] = 5;");
    assert!(text.contains(&place), "{text}");
    assert!(text.contains(" x[i + 1] = 5;"), "{text}");
    assert!(text.contains("1 finding;"), "{text}");

    let found = from_here::check(Grid::threads(1), &mut [0; 2]).expect("a run");
    let text = found.to_string();
    assert!(text.contains(&line_of("y[last + 1] = 3;")), "{text}");
    assert!(text.contains(" y[last + 1] = 3;"), "{text}");

    // Most of its words are the macro's: the others stand where the macro puts them.
    let found = nothing_but_a_place::check(Grid::threads(1), &mut [0; 2]).expect("a run");
    let text = found.to_string();
    assert!(text.contains("macros_of_kernels.rs:"), "{text}");
    assert!(!text.contains("kernel_reports.rs"), "{text}");
}

#[test]
#[should_panic(expected = "error[data-race]")]
fn a_call_on_the_host_panics_with_what_is_found() {
    updates(Grid::threads(4), &mut [0]);
}

#[kernel]
fn loads_beyond(x: &[f32], y: &mut [f32]) {
    y[0] = x[1];
}

#[kernel]
fn stores_beyond(x: &[f32], y: &mut [f32]) {
    y[1] = x[0];
}

#[test]
fn what_is_meant_out_of_bounds_is_offered_as_it_is_accessed() {
    let loads = loads_beyond::check(Grid::threads(1), &[1.0], &mut [0.0]).expect("a run");
    let stores = stores_beyond::check(Grid::threads(1), &[1.0], &mut [0.0]).expect("a run");
    for (found, first) in [(loads, "loads"), (stores, "stores")] {
        let text = found.to_string();
        let said = format!("if it is meant, say `#[kernel(allow(out_of_bounds_{first}))]`");
        assert!(text.contains(&said), "{text}");
    }
}
