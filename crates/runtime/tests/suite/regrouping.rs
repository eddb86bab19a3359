//! Kernels that run in other threadgroups than were asked for compute what they were written to.

use invar_ir::{Verified, text, verify};
use invar_runtime::{Arg, Buffer, Device, Dispatch, Grid};

/// Each stores what tells a thread, at a place that tells it too: by the position in the grid, the same put
/// together, in a column, with a length of the dispatch, atomically, by part of a position.
const KERNELS: [&str; 6] = [
    "%x = thread_position_in_grid x
    %y = thread_position_in_grid y
    %z = thread_position_in_grid z
    %w = threads_per_grid x
    %h = threads_per_grid y
    %slab = mul %z, %h
    %line = add %slab, %y
    %start = mul %line, %w
    %i = add %start, %x
    %old = load %data[%i]
    %both = mul %old, %i
    %v = add %both, %y
    store %data[%i], %v",
    "%g = threadgroup_position_in_grid x
    %t = thread_position_in_threadgroup x
    %size = dispatch_threads_per_threadgroup x
    %own = threads_per_threadgroup x
    %first = mul %g, %size
    %x = add %first, %t
    %y = thread_position_in_grid y
    %w = threads_per_grid x
    %start = mul %y, %w
    %i = add %start, %x
    %all = threadgroups_per_grid x
    %p = mul %all, %x
    %q = mul %own, %y
    %v = add %p, %q
    store %data[%i], %v",
    "%x = thread_position_in_grid x
    %y = thread_position_in_grid y
    %h = threads_per_grid y
    %start = mul %x, %h
    %i = add %start, %y
    %old = load %data[%i]
    %p = mul %old, %x
    %v = sub %p, %y
    store %data[%i], %v",
    "%x = thread_position_in_grid x
    %y = thread_position_in_grid y
    %w = threads_per_grid x
    %h = threads_per_grid y
    %a = mul %x, %h
    %from = add %a, %y
    %b = mul %y, %w
    %to = add %b, %x
    %v = load %data[%from]
    %half = buffer_length %data
    %n = cast u32 %half
    %two = const u32 2
    %middle = div %n, %two
    %at = add %middle, %to
    %inside = lt %from, %middle
    %fits = lt %to, %middle
    %both = and %inside, %fits
    if %both {
        store %data[%at], %v
    }",
    "%x = thread_position_in_grid x
    %y = thread_position_in_grid y
    %seven = const u32 7
    %bin = rem %y, %seven
    %old = atomic_add %data[%bin], %x relaxed device",
    "%x = thread_position_in_grid x
    %y = thread_position_in_grid y
    %g = threadgroup_position_in_grid y
    %w = threads_per_grid x
    %start = mul %y, %w
    %i = add %start, %x
    %v = add %g, %x
    store %data[%i], %v",
];

fn module(body: &str) -> Verified {
    let source = format!("kernel @k(%data: device read_write u32, %width: u32) {{\n{body}\n}}\n");
    verify(text::parse("k.inv", &source).expect("parsed")).expect("verified")
}

fn run(
    device: &Device,
    module: &Verified,
    grid: [u32; 3],
    threadgroup: [u32; 3],
    w: u32,
) -> Vec<u32> {
    let program = device.compile(module, "k").expect("compiled");
    let count = 2 * grid.iter().product::<u32>() + 7;
    let numbers: Vec<u32> = (0..count).map(|i| i.wrapping_mul(2_654_435_761)).collect();
    let data = Buffer::from_slice(device, &numbers).expect("a buffer");
    let dispatch = Dispatch {
        grid: Grid::Threads(grid),
        threadgroup,
    };
    let queue = device.queue();
    queue
        .run(&program, dispatch, &[Arg::from(&data), Arg::from(w)])
        .expect("it runs");
    data.read().expect("read")
}

#[test]
fn any_threadgroups_give_the_same() {
    const GRIDS: [[u32; 3]; 5] = [
        [64, 8, 1],
        [100, 37, 1],
        [3, 90, 2],
        [257, 1, 1],
        [16, 33, 3],
    ];
    const SIZES: [[u32; 3]; 4] = [[16, 4, 1], [10, 10, 1], [1, 64, 1], [4, 4, 4]];
    let mut compared = 0;
    for (number, body) in KERNELS.iter().enumerate() {
        let module = module(body);
        // Only the first asks for z.
        let grids = || GRIDS.iter().filter(|grid| number == 0 || grid[2] == 1);
        for grid in grids().copied() {
            for size in SIZES {
                let own = run(&Device::cpu(), &module, grid, size, 7);
                let expected = run(&Device::checked(), &module, grid, size, 7);
                assert!(own == expected, "kernel {number}, grid {grid:?}, {size:?}");
                compared += 1;
            }
        }
    }
    assert_eq!(compared, (5 + 3 * (KERNELS.len() - 1)) * SIZES.len());
}

/// The place divided: by an argument, by a constant power of two, as a signed number, into a volume.
const DIVIDED: [&str; 4] = [
    "%column = rem %i, %width
    %row = div %i, %width
    %p = mul %column, %width
    %q = add %p, %row",
    "%mask = const u32 63
    %six = const u32 6
    %column = and %i, %mask
    %row = shr %i, %six
    %p = mul %column, %width
    %q = add %p, %row",
    "%s = cast i32 %i
    %n = cast i32 %width
    %c = rem %s, %n
    %r = div %s, %n
    %column = cast u32 %c
    %p = mul %c, %n
    %sum = add %p, %r
    %q = cast u32 %sum",
    "%h = const u32 5
    %slab = mul %width, %h
    %z = div %i, %slab
    %inner = rem %i, %slab
    %column = rem %inner, %width
    %row = div %inner, %width
    %zh = mul %z, %h
    %p = add %zh, %row
    %q = mul %p, %column",
];

#[test]
fn a_divided_place_is_the_same_in_two_dimensions() {
    let mut compared = 0;
    for (number, divided) in DIVIDED.iter().enumerate() {
        let body = format!(
            "%i = thread_position_in_grid x
            %all = threads_per_grid x
            {divided}
            %old = load %data[%column]
            %v = add %old, %q
            %at = add %all, %i
            store %data[%at], %v"
        );
        let module = module(&body);
        for w in [64, 80, 100, 300, 1, 0, u32::MAX] {
            for threads in [1, 63, 6400, 4800, 6401] {
                let own = run(&Device::cpu(), &module, [threads, 1, 1], [64, 1, 1], w);
                let expected = run(&Device::checked(), &module, [threads, 1, 1], [64, 1, 1], w);
                assert!(own == expected, "kernel {number}, {threads} threads, {w}");
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 4 * 7 * 5);
}
