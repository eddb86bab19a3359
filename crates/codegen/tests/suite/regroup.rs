//! Which kernels may run in any threadgroups.

use invar_codegen::passes::regroup::{Threadgroups, regroup};
use invar_ir::{Dim, text};

const ALONE: &str = "%i = thread_position_in_grid x
    %v = load %x[%i]
    store %x[%i], %v";

/// The axis of the lanes, if a kernel with that body can be regrouped where threadgroups have 64 threads.
fn lanes(body: &str) -> Option<Dim> {
    let source = format!("kernel @k(%x: device read_write u32, %n: u32) {{\n{body}\n}}\n");
    let module = text::parse("k.inv", &source).expect("parsed");
    let known = Threadgroups {
        size: [64, 1, 1],
        full: true,
    };
    regroup(&module, 0, Some(known), true).map(|found| found.lanes)
}

#[test]
fn threads_that_tell_their_threadgroup_or_meet_keep_theirs() {
    assert_eq!(lanes(ALONE), Some(Dim::X));
    for more in [
        "%t = thread_position_in_threadgroup x\n store %x[%t], %i",
        "%g = threadgroup_position_in_grid x\n store %x[%g], %i",
        "barrier threadgroup",
        "%own = alloc threadgroup u32[4]\n store %own[%n], %n",
        "%lane = thread_index_in_simdgroup\n store %x[%lane], %i",
        "%s = simd_sum %v\n store %x[%i], %s",
        "%old = atomic_add %x[%i], %n release device",
        "loop {\n %flag = atomic_load %x[%n] relaxed device\n %set = eq %flag, %n\n if %set {\n break\n }\n }",
    ] {
        assert_eq!(lanes(&format!("{ALONE}\n{more}")), None, "{more}");
    }
    // What loops do not wait for.
    let counted = format!("{ALONE}\n%old = atomic_add %x[%n], %n relaxed device");
    assert_eq!(lanes(&counted), Some(Dim::X));
}

#[test]
fn lanes_lie_where_neighbours_are() {
    let body = |row: &str, column: &str| {
        format!(
            "%row = thread_position_in_grid {row}
            %column = thread_position_in_grid {column}
            %start = mul %row, %n
            %i = add %start, %column
            %last = const u32 100
            %inside = min %i, %last
            %v = load %x[%inside]
            store %x[%i], %v"
        )
    };
    assert_eq!(lanes(&body("y", "x")), Some(Dim::X));
    assert_eq!(lanes(&body("x", "y")), Some(Dim::Y));
    assert_eq!(lanes(&body("x", "z")), Some(Dim::Z));
}
