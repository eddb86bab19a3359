//! Time of typical operations on layouts as kernels use them, in nanoseconds.
//!
//! `cargo bench -p invar-layout` prints one line for each: the median and the fastest of 31 rounds.
//! The target is a microsecond; a line over it is marked.
#![allow(clippy::print_stdout, reason = "a benchmark prints its result")]

use invar_layout::{IntTuple, Layout, Swizzle, SwizzledLayout, Tiler, common_vector};
use invar_layout::{Picture, thread_value_layout};
use std::hint::black_box;
use std::time::Instant;

fn time<T>(name: &str, mut work: impl FnMut() -> T) {
    const ROUNDS: usize = 31;
    let mut count = 1u32;
    // As many calls a round as take about two milliseconds.
    loop {
        let start = Instant::now();
        (0..count).for_each(|_| drop(black_box(work())));
        if start.elapsed().as_micros() > 2000 || count > 1 << 20 {
            break;
        }
        count *= 2;
    }
    let mut nanoseconds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            (0..count).for_each(|_| drop(black_box(work())));
            start.elapsed().as_nanos() as f64 / f64::from(count)
        })
        .collect();
    nanoseconds.sort_by(f64::total_cmp);
    let median = nanoseconds[ROUNDS / 2];
    let mark = if median > 1000.0 {
        "  over a microsecond"
    } else {
        ""
    };
    println!("{name:<44} {median:>9.1} {:>9.1}{mark}", nanoseconds[0]);
}

fn main() {
    let layout = |text: &str| text.parse::<Layout>().expect("a layout");
    let tuple = |text: &str| text.parse::<IntTuple>().expect("a tuple");
    let tiler = |text: &str| text.parse::<Tiler>().expect("a tiler");

    let tensor = layout("(256,512):(512,1)");
    let nested = layout("((8,4),(2,(2,2))):((16,2),(8,(1,128)))");
    let owners = layout("((64,4),(4,4)):((64,4),(16,1))");
    let (threads, values) = (layout("(4,64):(64,1)"), layout("(4,4):(4,1)"));
    let tile = tiler("<16,256>");
    let coordinate = tuple("(5,7)");
    let swizzled = SwizzledLayout::new(
        Swizzle::new(3, 4, 3).expect("a swizzle"),
        layout("(8,64):(64,1)"),
    );
    let inner = tensor
        .zipped_divide(&tile)
        .and_then(|all| all.mode(0))
        .expect("a tile");

    println!("{:<44} {:>9} {:>9}", "operation", "median ns", "least ns");
    time("parse ((8,4),(2,(2,2))):(...)", || {
        layout("((8,4),(2,(2,2))):((16,2),(8,(1,128)))")
    });
    time("print the same", || nested.to_string());
    time("call at a coordinate", || {
        tensor.call(black_box(&coordinate))
    });
    time("call at an index, 5 modes", || {
        nested.call_index(black_box(77))
    });
    time("call, swizzled", || swizzled.call(black_box(&coordinate)));
    time("coordinate of an index, 5 modes", || {
        nested.coordinate(black_box(77))
    });
    time("size and cosize, 5 modes", || {
        (black_box(&nested).size(), nested.cosize())
    });
    time("make a compact layout", || {
        Layout::compact(black_box(&coordinate))
    });
    time("mode", || black_box(&nested).mode(1));
    time("slice (5,_)", || {
        tensor.slice(&"(5,_)".parse().expect("a coordinate"))
    });
    time("coalesce, 5 modes", || black_box(&nested).coalesce());
    time("complement, 5 modes", || {
        black_box(&nested).complement(4096)
    });
    time("compose tile with owners, 4 modes", || {
        inner.compose(black_box(&owners))
    });
    time("right inverse, 5 modes", || {
        black_box(&nested).right_inverse()
    });
    time("left inverse, 4 modes", || {
        black_box(&owners).left_inverse()
    });
    time("logical divide by (16,256)", || {
        tensor.logical_divide(black_box(&tile))
    });
    time("zipped divide by (16,256)", || {
        tensor.zipped_divide(black_box(&tile))
    });
    time("logical product", || {
        values.logical_product(black_box(&tiler("(4,64):(64,1)")))
    });
    time("raked product", || {
        threads.raked_product(black_box(&values))
    });
    time("thread-value layout", || {
        thread_value_layout(black_box(&threads), &values)
    });
    time("recast 32 to 128 bits", || {
        tensor.recast(128, black_box(32))
    });
    time("is injective, 4 modes", || {
        black_box(&owners).is_injective()
    });
    time("common vector", || {
        common_vector(&tensor, black_box(&tensor))
    });
    let small = layout("(8,8):(8,1)");
    time("svg of 8 by 8 (for scale)", || {
        Picture::offsets(small.clone()).map(|p| p.svg())
    });
}
