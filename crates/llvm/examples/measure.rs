//! Times kernels in one thread, checked and unchecked, and their compilation, by the time that the thread
//! has the processor.
//!
//! `cargo run --release -p invar-llvm --example measure [name]`

use std::sync::atomic::AtomicU32;
use std::time::Duration;

use invar_ir::text::parse;
use invar_ir::verify;
use invar_llvm::abi::{Argument, ColdPaths, Launch, SCRATCH_ALIGNMENT};
use invar_llvm::{CompileOptions, Program, Text, compile, compile_cold_paths, emit};

const KERNELS: &str = "
kernel @matmul(%a: device read f32, %b: device read f32, %c: device write f32, %n: u32) {
    %x = thread_position_in_grid x
    %y = thread_position_in_grid y
    %zero = const u32 0
    %one = const u32 1
    %start = const f32 0
    %row = mul %y, %n
    %sum = for %k = %zero to %n step %one carry(%acc = %start) {
        %ai = add %row, %k
        %kn = mul %k, %n
        %bi = add %kn, %x
        %av = load %a[%ai]
        %bv = load %b[%bi]
        %p = mul %av, %bv
        %s = add %p, %acc
        yield %s
    }
    %ci = add %row, %x
    store %c[%ci], %sum
}

kernel @saxpy(%x: device read f32, %y: device read_write f32, %out: device write f32, %a: u32) {
    %i = thread_position_in_grid x
    %s = cast f32 %a
    %xv = load %x[%i]
    %yv = load %y[%i]
    %p = mul %s, %xv
    %r = add %p, %yv
    store %y[%i], %r
}

kernel @mandelbrot(%unused: device read f32, %unused2: device read f32, %out: device write i32, %n: u32) {
    %x = thread_position_in_grid x
    %y = thread_position_in_grid y
    %fx = cast f32 %x
    %fy = cast f32 %y
    %fn = cast f32 %n
    %three = const f32 3
    %two = const f32 2
    %one5 = const f32 1.5
    %four = const f32 4
    %zero = const f32 0
    %sx = div %fx, %fn
    %sx3 = mul %sx, %three
    %cx = sub %sx3, %two
    %sy = div %fy, %fn
    %sy3 = mul %sy, %three
    %cy = sub %sy3, %one5
    %i0 = const i32 0
    %i1 = const i32 1
    %limit = const i32 256
    %n1, %z1, %z2 = loop carry(%i = %i0, %zx = %zero, %zy = %zero) {
        %xx = mul %zx, %zx
        %yy = mul %zy, %zy
        %m = add %xx, %yy
        %out1 = gt %m, %four
        %out2 = ge %i, %limit
        %leave = or %out1, %out2
        if %leave {
            break %i, %zx, %zy
        }
        %d = sub %xx, %yy
        %nx = add %d, %cx
        %xy = mul %zx, %zy
        %xy2 = mul %xy, %two
        %ny = add %xy2, %cy
        %j = add %i, %i1
        yield %j, %nx, %ny
    }
    %row = mul %y, %n
    %o = add %row, %x
    store %out[%o], %n1
}

kernel @expsin(%x: device read f32, %y: device read_write f32, %out: device write f32, %a: u32) {
    %i = thread_position_in_grid x
    %xv = load %x[%i]
    %e = exp %xv
    %s = sin %xv
    %r = mul %e, %s
    store %out[%i], %r
}

kernel @reduce(%x: device read f32, %y: device read_write f32, %out: device write f32, %n: u32) {
    %shared = alloc threadgroup f32[256]
    %t = thread_index_in_threadgroup
    %g = threadgroup_position_in_grid x
    %i = thread_position_in_grid x
    %v = load %x[%i]
    store %shared[%t], %v
    barrier threadgroup
    %zero = const u32 0
    %one = const u32 1
    %half = const u32 128
    %eight = const u32 8
    %d0 = for %k = %zero to %eight step %one carry(%d = %half) {
        %act = lt %t, %d
        if %act {
            %o = add %t, %d
            %a = load %shared[%t]
            %b = load %shared[%o]
            %s = add %a, %b
            store %shared[%t], %s
        }
        barrier threadgroup
        %nd = shr %d, %one
        yield %nd
    }
    %first = eq %t, %zero
    if %first {
        %r = load %shared[%zero]
        store %out[%g], %r
    }
}

kernel @stencil(%x: device read f32, %y: device read_write f32, %out: device write f32, %n: u32) {
    %i = thread_position_in_grid x
    %j = thread_position_in_grid y
    %one = const u32 1
    %row = mul %j, %n
    %c = add %row, %i
    %l = sub %c, %one
    %r = add %c, %one
    %u = sub %c, %n
    %d = add %c, %n
    %ul = sub %u, %one
    %ur = add %u, %one
    %dl = sub %d, %one
    %dr = add %d, %one
    %last = sub %n, %one
    %zero = const u32 0
    %g1 = gt %i, %zero
    %g2 = lt %i, %last
    %g3 = gt %j, %zero
    %g4 = lt %j, %last
    %g5 = and %g1, %g2
    %g6 = and %g3, %g4
    %inside = and %g5, %g6
    if %inside {
        %a1 = load %x[%l]
        %a2 = load %x[%r]
        %a3 = load %x[%u]
        %a4 = load %x[%d]
        %a5 = load %x[%ul]
        %a6 = load %x[%ur]
        %a7 = load %x[%dl]
        %a8 = load %x[%dr]
        %s1 = add %a1, %a2
        %s2 = add %s1, %a3
        %s3 = add %s2, %a4
        %s4 = add %s3, %a5
        %s5 = add %s4, %a6
        %s6 = add %s5, %a7
        %s7 = add %s6, %a8
        store %out[%c], %s7
    }
}
";

struct Case {
    name: &'static str,
    threads: [u32; 3],
    threadgroup: [u32; 3],
    elements: usize,
    n: u32,
}

#[expect(clippy::print_stdout, reason = "it prints a table")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let only = words.next();
    let show = words.next();
    let module = verify(parse("measure", KERNELS)?)?;
    let square = |name, n: u32, threadgroup| Case {
        name,
        threads: [n, n, 1],
        threadgroup,
        elements: (n * n) as usize,
        n,
    };
    let line = |name, n: u32| Case {
        name,
        threads: [n, 1, 1],
        threadgroup: [256, 1, 1],
        elements: n as usize,
        n,
    };
    let cases = [
        square("matmul", 1024, [16, 16, 1]),
        square("matmul", 1024, [32, 8, 1]),
        square("matmul", 1024, [256, 1, 1]),
        square("matmul", 1040, [16, 16, 1]),
        line("saxpy", 1 << 24),
        square("mandelbrot", 2048, [16, 16, 1]),
        line("expsin", 1 << 20),
        line("reduce", 1 << 24),
        square("stencil", 4096, [32, 8, 1]),
    ];
    for case in cases {
        if only.as_ref().is_some_and(|o| o != case.name) {
            continue;
        }
        let mut row = format!("{:11} {:?}", case.name, case.threadgroup);
        for checks in [true, false] {
            let interleave = std::env::var("INTERLEAVE").ok().and_then(|s| {
                let mut it = s.split(',').map(|n| n.parse::<u32>().ok());
                Some([it.next()??, it.next()??])
            });
            let options = CompileOptions {
                threadgroup_size: Some(case.threadgroup),
                checks,
                interleave,
                ..CompileOptions::default()
            };
            if checks && show.as_deref() == Some("llvm") {
                println!("{}", emit(&module, case.name, &options, Text::Llvm)?);
            }
            if checks && show.as_deref() == Some("asm") {
                println!("{}", emit(&module, case.name, &options, Text::Asm)?);
            }
            let start = cpu_time();
            let object = compile(&module, case.name, &options)?;
            let compiled = cpu_time() - start;
            let start = cpu_time();
            let program = Program::load(&object)?;
            let loaded = cpu_time() - start;
            if checks {
                row += &format!(
                    "  compile {:5.1} ms, load {:4.2} ms, {:6} bytes",
                    compiled.as_secs_f64() * 1e3,
                    loaded.as_secs_f64() * 1e3,
                    object.bytes.len()
                );
            }
            let start = cpu_time();
            let cold_paths = program.cold_paths(compile_cold_paths)?;
            let apart = cpu_time() - start;
            if checks {
                row += &format!(", cold paths {:5.1} ms", apart.as_secs_f64() * 1e3);
            }
            let best = time(&program, &case, cold_paths);
            row += &format!("  {:8.3} ms", best.as_secs_f64() * 1e3);
        }
        println!("{row}");
    }
    Ok(())
}

fn time(program: &Program, case: &Case, cold_paths: ColdPaths) -> Duration {
    let mut buffers: Vec<Vec<f32>> = (0..3)
        .map(|k| {
            let value = |i: usize| ((i * 7 + k) % 13) as f32 / 13.0;
            (0..case.elements).map(value).collect()
        })
        .collect();
    let mut n = case.n;
    let mut arguments: Vec<Argument> = buffers
        .iter_mut()
        .map(|b| Argument {
            data: b.as_mut_ptr().cast(),
            length: b.len() as u64,
        })
        .collect();
    arguments.push(Argument {
        data: (&raw mut n).cast(),
        length: 1,
    });
    let stop = AtomicU32::new(0);
    let groups = std::array::from_fn(|d| case.threads[d].div_ceil(case.threadgroup[d]));
    let launch = Launch {
        arguments: arguments.as_ptr(),
        stop: &stop,
        least_streamed_bytes: 0,
        cold_paths,
        threads: case.threads,
        threadgroup: case.threadgroup,
        threadgroups: groups,
    };
    // SAFETY: there is an argument for each parameter.
    let bytes = unsafe { program.scratch_bytes(&launch) } as usize;
    let mut scratch = vec![0u8; bytes + SCRATCH_ALIGNMENT];
    let start = scratch.as_ptr().align_offset(SCRATCH_ALIGNMENT);
    let count: u64 = groups.iter().map(|n| u64::from(*n)).product();
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let begin = cpu_time();
        // SAFETY: the launch fits the kernel, and the scratch memory is as large as asked for.
        unsafe { program.entry()(&launch, 0, count, scratch.as_mut_ptr().add(start)) };
        best = best.min(cpu_time() - begin);
    }
    best
}

/// How long this thread has run, not counting when others had the processor.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split(' ').next().and_then(|n| n.parse().ok());
    Duration::from_nanos(first.unwrap_or(0))
}
