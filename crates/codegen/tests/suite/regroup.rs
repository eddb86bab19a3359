//! Which kernels may run in any threadgroups.

use invar_codegen::passes::regroup::{Grids, Regrouped, Threadgroups, regroup};
use invar_ir::{Dim, text};

const ALONE: &str = "%i = thread_position_in_grid x
    %v = load %x[%i]
    store %x[%i], %v";

/// The axis of the lanes, if a kernel with that body can be regrouped where threadgroups have 64 threads.
fn lanes(body: &str) -> Option<Dim> {
    regrouped(body, false).map(|found| found.lanes)
}

fn regrouped(body: &str, split: bool) -> Option<Regrouped> {
    let source = format!("kernel @k(%x: device read_write u32, %n: u32) {{\n{body}\n}}\n");
    let module = text::parse("k.inv", &source).expect("parsed");
    let known = Threadgroups {
        size: [64, 1, 1],
        full: true,
    };
    let grids = Grids {
        exchanged: true,
        split,
    };
    regroup(&module, 0, Some(known), grids)
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

/// The grid of two dimensions in the place of one with so many threads, where `%n` is this.
fn rows(division: &str, threads: u32, n: i128) -> Option<[u32; 3]> {
    let body = format!(
        "%g = threadgroup_position_in_grid x
        %size = dispatch_threads_per_threadgroup x
        %t = thread_position_in_threadgroup x
        %first = mul %g, %size
        %i = add %first, %t
        {division}
        %v = load %x[%column]
        store %x[%i], %v"
    );
    let split = regrouped(&body, true)?.split.expect("it was asked for");
    split.rows([threads, 1, 1], &|parameter| (parameter == 1).then_some(n))
}

#[test]
fn a_place_that_is_divided_is_in_two_dimensions() {
    let by_n = "%column = rem %i, %n";
    assert_eq!(rows(by_n, 6400, 640), Some([640, 10, 1]));
    let mask = "%mask = const u32 255\n %column = and %i, %mask";
    assert_eq!(rows(mask, 2560, 0), Some([256, 10, 1]));
    let signed = "%s = cast i32 %i\n %w = cast i32 %n\n %column = rem %s, %w";
    assert_eq!(rows(signed, 6400, 640), Some([640, 10, 1]));
    let slabs = "%h = const u32 10\n %slab = mul %n, %h\n %inner = rem %i, %slab\n %column = rem %inner, %n";
    assert_eq!(rows(slabs, 64000, 640), Some([640, 100, 1]));
    // Rows that do not fill the grid, that are short, or whose vectors hang over; a slab of more than 31 bits.
    assert_eq!(rows(by_n, 6401, 640), None);
    assert_eq!(rows(by_n, 6400, 32), None);
    assert_eq!(rows(by_n, 1000, 100), None);
    assert_eq!(rows(by_n, 0, 0), None);
    assert_eq!(rows(slabs, 1 << 30, 1 << 28), None);
    // What others divide, and narrow numbers.
    assert_eq!(rows("%column = rem %n, %i", 6400, 640), None);
    let narrow = "%low = cast u8 %i\n %w = cast u8 %n\n %r = rem %low, %w\n %column = cast u32 %r";
    assert_eq!(rows(narrow, 6400, 640), None);
}

/// A product of matrices by tiles of 16 by 16, of which the left one is stored at `left` and the right one at `right`.
fn tiled(left: &str, right: &str) -> String {
    format!(
        "kernel @k(%a: device read f32, %b: device read f32, %c: device write f32, %n: u32) {{
            %x = thread_position_in_threadgroup x
            %y = thread_position_in_threadgroup y
            %column = thread_position_in_grid x
            %row = thread_position_in_grid y
            %zero = const u32 0
            %one = const u32 1
            %w = const u32 16
            %none = const f32 0.0
            %left = alloc threadgroup f32[272]
            %right = alloc threadgroup f32[272]
            %start = mul %row, %n
            %total = for %k = %zero to %n step %w carry(%t = %none) {{
                %first = add %start, %k
                %at = add %first, %x
                %v = load %a[%at]
                {left}
                store %left[%mine], %v
                %below = add %k, %y
                %line = mul %below, %n
                %there = add %line, %column
                %u = load %b[%there]
                {right}
                store %right[%own], %u
                barrier threadgroup
                %sum = for %i = %zero to %w step %one carry(%s = %t) {{
                    %r = mul %y, %w
                    %p = add %r, %i
                    %l = load %left[%p]
                    %d = mul %i, %w
                    %q = add %d, %x
                    %m = load %right[%q]
                    %product = mul %l, %m
                    %next = add %s, %product
                    yield %next
                }}
                barrier threadgroup
                yield %sum
            }}
            %o = add %start, %column
            store %c[%o], %total
        }}"
    )
}

#[test]
fn products_by_tiles_need_no_threadgroups() {
    let shape = |text: &str, size: [u32; 3], full: bool| {
        let module = text::parse("k.inv", text).expect("parsed");
        let grids = Grids {
            exchanged: true,
            split: false,
        };
        let found = regroup(&module, 0, Some(Threadgroups { size, full }), grids)?;
        found.shape([1024, 1024, 1])
    };
    let row = |name: &str| format!("%h.{name} = mul %y, %w\n %{name} = add %h.{name}, %x");
    let text = tiled(&row("mine"), &row("own"));
    assert_eq!(shape(&text, [16, 16, 1], true), Some([64, 16, 1]));
}

#[test]
fn stencils_of_few_points_in_three_dimensions_take_whole_rows() {
    let shape = |points: &[[i32; 3]]| {
        let sums: String = (points.iter().enumerate())
            .map(|(n, [x, y, z])| {
                format!(
                    "%x{n} = const u32 {}\n %y{n} = const u32 {}\n %z{n} = const u32 {}\n
                    %px{n} = add %x, %x{n}\n %py{n} = add %y, %y{n}\n %pz{n} = add %z, %z{n}\n
                    %a{n} = mul %pz{n}, %n\n %b{n} = add %a{n}, %py{n}\n %c{n} = mul %b{n}, %n\n
                    %d{n} = add %c{n}, %px{n}\n %v{n} = load %x_[%d{n}]\n store %y_[%d{n}], %v{n}\n",
                    *x as u32, *y as u32, *z as u32
                )
            })
            .collect();
        let source = format!(
            "kernel @k(%n: u32, %x_: device read f32, %y_: device write f32) {{
                %x = thread_position_in_grid x\n %y = thread_position_in_grid y
                %z = thread_position_in_grid z\n {sums} }}"
        );
        let module = text::parse("k.inv", &source).expect("parsed");
        let grids = Grids {
            exchanged: true,
            split: false,
        };
        let found = regroup(&module, 0, None, grids).expect("each thread by itself");
        found.shape([512, 512, 512])
    };
    let near = |n: i32| [-1, 0, 1].map(|k| n + k);
    let all = near(0).map(|z| near(0).map(|y| near(0).map(|x| [x, y, z])));
    let all: Vec<[i32; 3]> = all.into_iter().flatten().flatten().collect();
    let axes: Vec<[i32; 3]> = (all.iter().copied())
        .filter(|p| p.iter().filter(|n| **n != 0).count() <= 1)
        .collect();
    let plane: Vec<[i32; 3]> = all.iter().copied().filter(|[.., z]| *z == 0).collect();
    assert_eq!(shape(&axes), Some([256, 1, 1]));
    assert_eq!(shape(&all), Some([64, 4, 1]));
    assert_eq!(shape(&plane), Some([64, 4, 1]));
}

#[test]
fn samples_run_in_squares() {
    let shape = |text: &str| {
        let module = text::parse("k.inv", text).expect("parsed");
        let grids = Grids {
            exchanged: true,
            split: false,
        };
        let found = regroup(&module, 0, None, grids).expect("each thread by itself");
        found.shape([1024, 1024, 1])
    };
    let kernel = |place: &str| {
        format!(
            "kernel @k(%w: u32, %s: f32, %from: device read f32, %to: device write f32) {{
                %x = thread_position_in_grid x
                %y = thread_position_in_grid y
                {place}
                %row = mul %y, %w
                %i = add %row, %at
                %v = load %from[%i]
                %o = add %row, %x
                store %to[%o], %v
            }}"
        )
    };
    let sampled = "%u = cast f32 %x\n %p = mul %u, %s\n %at = cast u32 %p";
    assert_eq!(shape(&kernel(sampled)), Some([16, 16, 1]));
    // The same for all threads, and no float at all.
    let steady = "%p = mul %s, %s\n %n = cast u32 %p\n %at = add %n, %x";
    let integers = "%n = cast i32 %x\n %at = cast u32 %n";
    for place in [steady, integers] {
        assert_eq!(shape(&kernel(place)), Some([64, 4, 1]), "{place}");
    }
}

#[test]
fn transpositions_by_exchanged_columns_need_no_threadgroups() {
    let shape = |size: u32, stored: &str, loaded: &str| {
        let text = format!(
            "kernel @k(%x: device read f32, %y: device write f32, %n: u32) {{
                %c = thread_position_in_threadgroup x
                %r = thread_position_in_threadgroup y
                %gc = threadgroup_position_in_grid x
                %gr = threadgroup_position_in_grid y
                %w = const u32 32
                %three = const u32 3
                %tile = alloc threadgroup f32[1024]
                %left = mul %gc, %w
                %top = mul %gr, %w
                %row = add %top, %r
                %line = mul %row, %n
                %from = add %line, %left
                %i = add %from, %c
                %v = load %x[%i]
                %stored.line = mul %r, %w
                %stored.turned = {stored}
                %place = add %stored.line, %stored.turned
                store %tile[%place], %v
                barrier threadgroup [threadgroup]
                %loaded.line = mul %c, %w
                %loaded.turned = {loaded}
                %there = add %loaded.line, %loaded.turned
                %u = load %tile[%there]
                %column = add %left, %r
                %down = mul %column, %n
                %to = add %down, %top
                %o = add %to, %c
                store %y[%o], %u
            }}"
        );
        let module = text::parse("k.inv", &text).expect("parsed");
        let grids = Grids {
            exchanged: true,
            split: false,
        };
        let threadgroups = Threadgroups {
            size: [size, size, 1],
            full: true,
        };
        let found = regroup(&module, 0, Some(threadgroups), grids)?;
        found.shape([1024, 1024, 1])
    };
    let of_rows = ("xor %c, %r", "xor %c, %r");
    assert_eq!(shape(32, of_rows.0, of_rows.1), Some([16, 16, 1]));
    // Of other threads than those of the column, and of as many columns as no power of two.
    assert_eq!(shape(32, of_rows.0, "xor %r, %three"), None);
    assert_eq!(shape(24, of_rows.0, of_rows.1), None);
}
