//! How fast the reference machine is: nanoseconds for one instruction of one lane, plain and under
//! every checker. `cargo run --release -p invar-interp --example throughput`.

use std::time::{Duration, Instant};

use invar_interp::{Arg, CheckOptions, DataRaces, Dispatch, Grid, Observer, Options, check, run};
use invar_ir::{Verified, text, verify};

const ADD: &str = "
kernel @add(%x: device read f32, %y: device read f32, %z: device write f32) {
    %i = thread_position_in_grid x
    %a = load %x[%i]
    %b = load %y[%i]
    %c = add %a, %b
    store %z[%i], %c
}
";

const MATMUL: &str = "
kernel @matmul(%a: device read f32, %b: device read f32, %c: device write f32, %n: u32) {
    %ta = alloc threadgroup f32[256]
    %tb = alloc threadgroup f32[256]
    %x = thread_position_in_threadgroup x
    %y = thread_position_in_threadgroup y
    %gx = thread_position_in_grid x
    %gy = thread_position_in_grid y
    %zero = const f32 0.0
    %k0 = const u32 0
    %k1 = const u32 1
    %k16 = const u32 16
    %row = mul %gy, %n
    %trow = mul %y, %k16
    %t = add %trow, %x
    %sum = for %k = %k0 to %n step %k16 carry(%acc = %zero) {
        %ac = add %k, %x
        %ai = add %row, %ac
        %av = load %a[%ai]
        store %ta[%t], %av
        %br = add %k, %y
        %brn = mul %br, %n
        %bi = add %brn, %gx
        %bv = load %b[%bi]
        store %tb[%t], %bv
        barrier threadgroup [threadgroup]
        %inner = for %j = %k0 to %k16 step %k1 carry(%s = %acc) {
            %ia = add %trow, %j
            %va = load %ta[%ia]
            %jr = mul %j, %k16
            %ib = add %jr, %x
            %vb = load %tb[%ib]
            %next = fma %va, %vb, %s
            yield %next
        }
        barrier threadgroup [threadgroup]
        yield %inner
    }
    %ci = add %row, %gx
    store %c[%ci], %sum
}
";

const REDUCE: &str = "
kernel @reduce(%x: device read f32, %y: device write f32) {
    %tile = alloc threadgroup f32[256]
    %i = thread_position_in_grid x
    %t = thread_index_in_threadgroup
    %g = threadgroup_position_in_grid x
    %v = load %x[%i]
    store %tile[%t], %v
    barrier threadgroup [threadgroup]
    %half = const u32 128
    %two = const u32 2
    %zero = const u32 0
    %none = loop carry(%s = %half) {
        %done = eq %s, %zero
        if %done {
            break %s
        }
        %active = lt %t, %s
        if %active {
            %o = add %t, %s
            %a = load %tile[%t]
            %b = load %tile[%o]
            %c = add %a, %b
            store %tile[%t], %c
        }
        barrier threadgroup [threadgroup]
        %next = div %s, %two
        yield %next
    }
    %first = eq %t, %zero
    if %first {
        %r = load %tile[%zero]
        store %y[%g], %r
    }
}
";

const HISTOGRAM: &str = "
kernel @histogram(%x: device read u32, %bins: device read_write u32) {
    %i = thread_position_in_grid x
    %v = load %x[%i]
    %n = const u32 256
    %b = rem %v, %n
    %one = const u32 1
    %old = atomic_add %bins[%b], %one
}
";

/// The shortest of three times, and the instructions that were run.
fn best(mut f: impl FnMut() -> (Duration, u64)) -> (Duration, u64) {
    (0..3).map(|_| f()).min().unwrap_or_default()
}

#[expect(clippy::print_stdout, reason = "it is what the example is for")]
fn measure(name: &str, source: &str, dispatch: Dispatch, args: &dyn Fn() -> Vec<Arg<'static>>) {
    let module: Verified = verify(text::parse(name, source).expect("parses")).expect("verifies");
    let options = Options::default();
    let plain = best(|| {
        let mut args = args();
        let start = Instant::now();
        let outcome = run(&module, name, &dispatch, &mut args, &options, &mut []);
        (start.elapsed(), outcome.expect("runs").steps)
    });
    let races = best(|| {
        let mut args = args();
        let mut observer = DataRaces::default();
        let start = Instant::now();
        let outcome = run(
            &module,
            name,
            &dispatch,
            &mut args,
            &options,
            &mut [&mut observer],
        );
        let found = observer.finish();
        assert!(found.is_empty(), "{found:?}");
        (start.elapsed(), outcome.expect("runs").steps)
    });
    let full = best(|| {
        let args = args();
        let start = Instant::now();
        let report = check(&module, name, &dispatch, &args, &CheckOptions::default());
        let report = report.expect("runs");
        assert!(report.diagnostics.is_empty(), "{:?}", report.diagnostics);
        (start.elapsed(), report.steps)
    });
    let each = |(time, steps): (Duration, u64)| time.as_secs_f64() * 1e9 / (steps as f64 * 32.0);
    println!(
        "{name:10} {:11} lane-instructions | plain {:8.2?} {:5.2} ns | races {:8.2?} {:5.2} ns | all checks {:8.2?} {:5.2} ns",
        plain.1 * 32,
        plain.0,
        each(plain),
        races.0,
        each(races),
        full.0,
        each(full),
    );
}

fn floats(count: u32) -> Arg<'static> {
    Arg::OwnedBuffer((0..count).flat_map(|i| (i as f32).to_ne_bytes()).collect())
}

fn main() {
    let n = 1 << 20;
    let zeros = |count: usize| Arg::zeros(count * 4);
    measure("add", ADD, Dispatch::linear(n, 256), &|| {
        vec![floats(n), floats(n), zeros(n as usize)]
    });
    let tiles = Dispatch {
        grid: Grid::Threads([256, 256, 1]),
        threadgroup: [16, 16, 1],
    };
    measure("matmul", MATMUL, tiles, &|| {
        vec![
            floats(65536),
            floats(65536),
            zeros(65536),
            Arg::scalar(256u32),
        ]
    });
    measure("reduce", REDUCE, Dispatch::linear(n, 256), &|| {
        vec![floats(n), zeros(n as usize / 256)]
    });
    measure("histogram", HISTOGRAM, Dispatch::linear(n, 256), &|| {
        let mixed = (0..n).map(|i| i.wrapping_mul(2_654_435_761) >> 8);
        let bytes = mixed.flat_map(u32::to_ne_bytes).collect();
        vec![Arg::OwnedBuffer(bytes), zeros(256)]
    });
}
