//! What the compiler promises beside results: that a kernel can be stopped, what is refused and how, and
//! code for processors that are not here.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use invar_ir::text::parse;
use invar_ir::{Rule, Verified, verify};
use invar_llvm::abi::{Argument, ColdPaths, DONE, Launch, STOPPED};
use invar_llvm::{
    CompileOptions, KernelInfo, Program, Target, Text, compile, compile_cold_paths, emit,
};

fn module(text: &str) -> Verified {
    parse("promises", text)
        .and_then(verify)
        .unwrap_or_else(|e| panic!("{e}"))
}

const FUSED: &str = "
kernel @fused(%x: device read f32, %y: device read_write f32, %n: u32) {
    %i = thread_position_in_grid x
    %zero = const u32 0
    %one = const u32 1
    %start = load %y[%i]
    %sum = for %k = %zero to %n step %one carry(%acc = %start) {
        %a = load %x[%k]
        %p = mul %a, %start
        %s = add %p, %acc
        yield %s
    }
    store %y[%i], %sum
}
";

#[test]
fn aarch64_fuses_products_and_sums_of_vectors() {
    let options = CompileOptions {
        target: Target::Aarch64,
        threadgroup_size: Some([64, 1, 1]),
        ..CompileOptions::default()
    };
    let text = emit(&module(FUSED), "fused", &options, Text::Asm).expect("it compiles");
    assert!(text.contains("fmla") && text.contains(".4s"), "{text}");
    assert!(!text.contains("bl\tfma"), "a library call: {text}");
}

const FRACTIONS: &str = "
kernel @fractions(%x: device read u8, %y: device write f32) {
    %i = thread_position_in_grid x
    %c = load %x[%i]
    %a = cast f32 %c
    %most = const f32 MOST
    %p = div %a, %most
    store %y[%i], %p
}
";

#[test]
fn codes_become_fractions_by_products_where_those_can_be_fused() {
    let divides = |target, most: &str| {
        let options = CompileOptions {
            target,
            threadgroup_size: Some([64, 1, 1]),
            ..CompileOptions::default()
        };
        let module = module(&FRACTIONS.replace("MOST", most));
        let text = emit(&module, "fractions", &options, Text::Llvm).expect("it compiles");
        text.contains("fdiv")
    };
    for target in [Target::X86V3, Target::X86V4, Target::Aarch64] {
        assert!(!divides(target, "255"));
        // Products of such numbers are subnormal.
        assert!(divides(target, "1e38"));
    }
    assert!(divides(Target::X86V1, "255"));
}

/// The registers that a kernel's code for AArch64 loads, but for those of constants and of its own frame.
fn aarch64_loads(text: &str) -> usize {
    let options = CompileOptions {
        target: Target::Aarch64,
        threadgroup_size: Some([64, 1, 1]),
        ..CompileOptions::default()
    };
    let text = emit(&module(text), "loads", &options, Text::Asm).expect("it compiles");
    let mnemonics = text.lines().filter_map(|line| line.strip_prefix('\t'));
    // The register that may point to the frame holds any other pointer here.
    let own = |m: &str| ["[sp", ":lo12:"].iter().any(|w| m.contains(w));
    let loads = mnemonics.filter(|m| m.starts_with("ld") && !own(m));
    // Neighbours may be loaded as a pair or one by one.
    let loads = loads.map(|m| 1 + usize::from(m.starts_with("ldp"))).sum();
    assert!(loads > 0, "{text}");
    loads
}

#[test]
fn r2_a_value_that_may_race_is_loaded_once_however_often_it_is_used() {
    let kernel = |first: &str, second: &str, third: &str| {
        format!(
            "kernel @loads(%x: device read_write u32, %y: device read_write u32, %z: device read_write u32) {{
                %i = thread_position_in_grid x
                %seven = const u32 7
                %v = load %x[%i]
                %twice = add %v, %v
                %square = mul %v, %v
                store %y[%i], {first}
                store %z[%i], {second}
                store %x[%i], {third}
            }}"
        )
    };
    let once = aarch64_loads(&kernel("%v", "%seven", "%seven"));
    assert_eq!(aarch64_loads(&kernel("%v", "%v", "%v")), once);
    assert_eq!(aarch64_loads(&kernel("%twice", "%square", "%v")), once);
    // Without the load there are fewer: the count does see it.
    assert!(aarch64_loads(&kernel("%i", "%seven", "%seven")) < once);
}

#[test]
fn each_x86_64_level_has_its_own_vectors() {
    for (target, register, fused) in [
        (Target::X86V1, "%xmm", false),
        (Target::X86V3, "%ymm", true),
        (Target::X86V4, "%zmm", true),
    ] {
        let options = CompileOptions {
            target,
            threadgroup_size: Some([64, 1, 1]),
            ..CompileOptions::default()
        };
        let text = emit(&module(FUSED), "fused", &options, Text::Asm).expect("it compiles");
        assert!(text.contains(register), "{}: {text}", target.name());
        assert_eq!(text.contains("vfmadd"), fused, "{}", target.name());
    }
}

#[test]
fn a_target_has_the_name_that_it_is_asked_for_by() {
    for target in Target::ALL {
        assert_eq!(Target::from_name(target.name()), Some(target));
    }
    assert_eq!(Target::from_name("x86-64-v9"), None);
}

/// Asks the one kernel of a module to end a moment after it began, and gives what it returned.
fn stopped(text: &str) -> u32 {
    let module = module(text);
    let name = module.kernels[0].name.clone();
    let object = compile(&module, &name, &CompileOptions::default()).expect("it compiles");
    let program = Program::load(&object).expect("it links");
    let stop = AtomicU32::new(0);
    let launch = Launch {
        arguments: std::ptr::null(),
        stop: &stop,
        least_streamed_bytes: 0,
        cold_paths: program
            .cold_paths(compile_cold_paths)
            .expect("they compile"),
        threads: [100, 1, 1],
        threadgroup: [100, 1, 1],
        threadgroups: [1, 1, 1],
    };
    // SAFETY: the kernel has no parameters.
    let bytes = unsafe { program.scratch_bytes(&launch) } as usize;
    let mut scratch = vec![0u8; bytes + 64];
    let start = scratch.as_ptr().align_offset(64);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(30));
            stop.store(1, Ordering::Relaxed);
        });
        // SAFETY: the launch fits the kernel, and the scratch memory is as large as asked for.
        unsafe { program.entry()(&launch, 0, 1, scratch.as_mut_ptr().add(start)) }
    })
}

#[test]
fn a_loop_without_an_end_can_be_stopped() {
    assert_eq!(stopped("kernel @forever() { loop { } }"), STOPPED);
}

#[test]
fn a_loop_that_threads_leave_at_different_times_can_be_stopped() {
    let text = "
kernel @forever() {
    %t = thread_index_in_threadgroup
    %zero = const u32 0
    loop {
        %some = ne %t, %zero
        if %some { break }
    }
}
";
    assert_eq!(stopped(text), STOPPED);
}

#[test]
fn a_loop_around_a_barrier_can_be_stopped() {
    let text = "kernel @forever() { loop { barrier threadgroup } }";
    assert_eq!(stopped(text), STOPPED);
}

#[test]
fn a_counted_loop_that_is_too_long_can_be_stopped() {
    let text = "
kernel @forever(%x: device read_write u32) {
    %zero = const u64 0
    %one = const u64 1
    %end = const u64 18446744073709551615
    for %i = %zero to %end step %one {
        %w = cast u32 %i
        %v = atomic_add %x[%zero], %w
    }
}
";
    let module = module(text);
    let object = compile(&module, "forever", &CompileOptions::default()).expect("it compiles");
    let program = Program::load(&object).expect("it links");
    let stop = AtomicU32::new(0);
    let mut word = 0u32;
    let argument = Argument {
        data: (&raw mut word).cast(),
        length: 1,
    };
    let launch = Launch {
        arguments: &argument,
        stop: &stop,
        least_streamed_bytes: 0,
        cold_paths: program
            .cold_paths(compile_cold_paths)
            .expect("they compile"),
        threads: [1, 1, 1],
        threadgroup: [1, 1, 1],
        threadgroups: [1, 1, 1],
    };
    // SAFETY: there is an argument for the one parameter.
    let bytes = unsafe { program.scratch_bytes(&launch) } as usize;
    let mut scratch = vec![0u8; bytes + 64];
    let start = scratch.as_ptr().align_offset(64);
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(30));
            stop.store(1, Ordering::Relaxed);
        });
        // SAFETY: the launch fits the kernel, and the scratch memory is as large as asked for.
        unsafe { program.entry()(&launch, 0, 1, scratch.as_mut_ptr().add(start)) }
    });
    assert_eq!(result, STOPPED);
}

#[test]
fn simdgroups_of_another_size_are_refused() {
    let text = "
kernel @wide(%y: device write u32) simdgroup(64) {
    %i = thread_index_in_simdgroup
    store %y[%i], %i
}
";
    let error = compile(&module(text), "wide", &CompileOptions::default()).expect_err("refused");
    assert_eq!(error.0[0].rule, Rule::UnsupportedFeature);
    assert!(error.0[0].message.contains("simdgroups of 64"));
}

#[test]
fn a_kernel_that_is_not_there_is_an_error() {
    let error = compile(&module(FUSED), "fuse", &CompileOptions::default()).expect_err("no such");
    assert_eq!(error.0[0].rule, Rule::UndefinedName);
}

#[test]
fn code_for_another_machine_is_not_loaded() {
    let options = CompileOptions {
        target: if Target::Aarch64.runs_here() {
            Target::X86V1
        } else {
            Target::Aarch64
        },
        ..CompileOptions::default()
    };
    let object = compile(&module(FUSED), "fused", &options).expect("it compiles");
    assert!(Program::load(&object).is_err());
}

/// Where a kernel's code makes memory zero: in threadgroups at an edge only?
fn zeroed(text: &str, threadgroup_size: Option<[u32; 3]>) -> Vec<bool> {
    let options = CompileOptions {
        threadgroup_size,
        ..CompileOptions::default()
    };
    let text = emit(&module(text), "zeros", &options, Text::Llvm).expect("it compiles");
    let edge = text.find("\nthreadgroup.edge:");
    text.match_indices("call void @llvm.memset")
        .map(|(at, _)| edge.is_some_and(|edge| edge < at))
        .collect()
}

#[test]
fn i2_threadgroup_memory_is_made_zero_only_where_somebody_may_see_it() {
    let kernel = |index: &str| {
        format!(
            "kernel @zeros(%x: device read f32, %y: device write f32) {{
                %tile = alloc threadgroup f32[1000]
                %t = thread_index_in_threadgroup
                %v = load %x[%t]
                store %tile[%t], %v
                barrier threadgroup [threadgroup]
                %one = const u32 1
                %next = add %t, %one
                %w = load %tile[{index}]
                store %y[%t], %w
            }}"
        )
    };
    let (own, next) = (kernel("%t"), kernel("%next"));
    let full = Some([64, 1, 1]);
    assert_eq!(zeroed(&own, full), [true]);
    assert_eq!(zeroed(&next, full), [false]);
    // Nothing is known of threadgroups of any size.
    assert_eq!(zeroed(&own, None), [false]);
    // Nobody reads it.
    let unread = own.replace("%w = load %tile[%t]", "%w = load %x[%t]");
    assert_eq!(zeroed(&unread, full), []);
}

/// The red zones of a kernel that is launched with threadgroups of 64, and all of its scratch memory.
fn zones(text: &str, red_zones: bool) -> (Vec<std::ops::Range<u64>>, u64) {
    let module = module(text);
    let options = CompileOptions {
        threadgroup_size: Some([64, 1, 1]),
        red_zones,
        ..CompileOptions::default()
    };
    let object = compile(&module, &module.kernels[0].name, &options).expect("it compiles");
    let kept = KernelInfo::from_bytes(&object.info.to_bytes());
    assert_eq!(kept.as_ref(), Some(&object.info));
    let program = Program::load(&object).expect("it is for this machine");
    let stop = AtomicU32::new(0);
    let arguments = [Argument {
        data: std::ptr::null_mut(),
        length: 5,
    }];
    let launch = Launch {
        arguments: arguments.as_ptr(),
        stop: &stop,
        least_streamed_bytes: u64::MAX,
        cold_paths: program
            .cold_paths(compile_cold_paths)
            .expect("they compile"),
        threads: [64, 1, 1],
        threadgroup: [64, 1, 1],
        threadgroups: [1, 1, 1],
    };
    // SAFETY: there is an argument for the parameter.
    unsafe { (program.red_zones(&launch), program.scratch_bytes(&launch)) }
}

#[test]
fn red_zones_lie_around_every_object_of_threadgroup_and_thread_memory() {
    let text = "
kernel @zoned(%p: threadgroup u16) {
    %a = alloc threadgroup u32[10]
    %own = alloc thread u64[3]
    %i = thread_position_in_grid x
    %wide = cast u64 %i
    %small = cast u16 %i
    store %a[%i], %i
    store %own[%i], %wide
    %other = load %a[%i]
    %back = load %own[%other]
    %sum = cast u16 %back
    %both = add %sum, %small
    store %p[%i], %both
}
";
    let (none, bytes) = zones(text, false);
    assert_eq!(none, []);
    let (found, more) = zones(text, true);
    // In front of the array, behind it and behind the parameter.
    let mut sizes = found.iter().map(|zone| zone.end - zone.start);
    assert_eq!(found[0].start, 0);
    assert_eq!(found[1].start - found[0].end, 40);
    assert_eq!(found[2].start - found[1].end, 10);
    assert!(sizes.all(|size| size >= 64), "{found:?}");
    // On both sides of the array of each vector of threads, up to the end of the memory.
    let of_threads = &found[3..];
    assert!(
        !of_threads.is_empty() && of_threads.len().is_multiple_of(2),
        "{found:?}"
    );
    assert!(
        of_threads
            .iter()
            .all(|zone| zone.start >= found[2].end && zone.end <= more)
    );
    assert!(
        of_threads.iter().any(|zone| zone.end == more),
        "{found:?} of {more}"
    );
    assert!(bytes < more, "{bytes} and {more}");
}

#[test]
fn what_a_loop_reads_without_gaps_is_asked_for_ahead() {
    let kernel = |step: &str, memory: &str| {
        format!(
            "kernel @sums(%x: device read f32, %sums: device write f32) {{
                %tile = alloc threadgroup f32[4096]
                %t = thread_index_in_threadgroup
                %g = threadgroup_position_in_grid x
                %each = const u32 4096
                %step = {step}
                %none = const f32 0.0
                %start = mul %g, %each
                %sum = for %i = %t to %each step %step carry(%acc = %none) {{
                    %at = add %start, %i
                    %v = load {memory}[%at]
                    %next = add %acc, %v
                    yield %next
                }}
                %own = thread_position_in_grid x
                store %sums[%own], %sum
            }}"
        )
    };
    let asks_by = |vectors, step, memory| {
        let options = CompileOptions {
            target: Target::X86V3,
            threadgroup_size: Some([64, 1, 1]),
            interleave: Some([vectors, 1]),
            ..CompileOptions::default()
        };
        let text = emit(&module(&kernel(step, memory)), "sums", &options, Text::Asm);
        let text = text.expect("it compiles");
        text.matches("prefetch").count()
    };
    let asks = |step, memory| asks_by(8, step, memory);
    // Eight vectors of eight lanes: four lines.
    assert_eq!(asks("const u32 64", "%x"), 4);
    // Where a chunk is full, and holds all threads, it is known how many there are.
    assert_eq!(asks("threads_per_threadgroup x", "%x"), 4);
    // There are gaps, or it is at hand.
    assert_eq!(asks("const u32 128", "%x"), 0);
    assert_eq!(asks("threads_per_threadgroup y", "%x"), 0);
    assert_eq!(asks("const u32 64", "%tile"), 0);
    // Another chunk reads what lies between, or nobody does.
    assert_eq!(asks_by(4, "const u32 64", "%x"), 2);
    assert_eq!(asks_by(4, "const u32 128", "%x"), 0);
}

/// `sum += x[row * n + k] * y[which * n + k]`, sixteen iterations at a time.
fn rows_by_rows(which: &str) -> String {
    let mut iterations = String::new();
    for k in 0..16 {
        let next = if k == 15 {
            "next".into()
        } else {
            format!("acc.{}", k + 1)
        };
        let before = if k == 0 {
            "acc".into()
        } else {
            format!("acc.{k}")
        };
        iterations += &format!(
            "%by.{k} = const u32 {k}
            %i.{k} = add %i, %by.{k}
            %j.{k} = add %j, %by.{k}
            %a.{k} = load %x[%i.{k}]
            %b.{k} = load %y[%j.{k}]
            %{next} = fma %a.{k}, %b.{k}, %{before}
            "
        );
    }
    format!(
        "kernel @products(%x: device read f32, %y: device read f32, %z: device write f32, %n: u32) {{
            %column = thread_position_in_grid x
            %row = thread_position_in_grid y
            %width = threads_per_grid x
            %zero = const u32 0
            %step = const u32 16
            %none = const f32 0.0
            %left = mul %row, %n
            %which = add %column, {which}
            %right = mul %which, %n
            %sum = for %k = %zero to %n step %step carry(%acc = %none) {{
                %i = add %left, %k
                %j = add %right, %k
                {iterations}
                yield %next
            }}
            %to = mul %row, %width
            %at = add %to, %column
            store %z[%at], %sum
        }}"
    )
}

#[test]
fn rows_of_threads_share_blocks_that_are_transposed() {
    // How many shuffles there are, and products.
    let of = |which: &str| {
        let options = CompileOptions {
            target: Target::X86V4,
            threadgroup_size: Some([64, 16, 1]),
            ..CompileOptions::default()
        };
        let text = rows_by_rows(which);
        let text = emit(&module(&text), "products", &options, Text::Asm).expect("it compiles");
        let count = |name| text.matches(name).count();
        (count("vshufps"), count("vfmadd"))
    };
    let (shuffles, products) = of("%zero");
    assert!(
        shuffles > 0 && products > 2 * shuffles,
        "{products} for {shuffles}"
    );
    // Each row has blocks of its own.
    let (shuffles, products) = of("%row");
    assert!(
        shuffles > 0 && products <= shuffles,
        "{products} for {shuffles}"
    );
}

#[test]
fn what_lies_beside_a_tile_is_asked_for_a_threadgroup_ahead() {
    let asks = |row: &str, column: &str, pitch: &str| {
        let text = format!(
            "kernel @add(%x: device read f32, %y: device read_write f32, %n: u32) threadgroup(256) {{
                %t = thread_index_in_threadgroup
                %g = threadgroup_position_in_grid x
                %tiles = const u32 16
                %width = const u32 64
                %height = const u32 4
                %tile_row = {row} %g, %tiles
                %tile_column = {column} %g, %tiles
                %inner_row = div %t, %width
                %inner_column = rem %t, %width
                %r0 = mul %tile_row, %height
                %r = add %r0, %inner_row
                %c0 = mul %tile_column, %width
                %c = add %c0, %inner_column
                %pitch = {pitch}
                %first = mul %r, %pitch
                %i = add %first, %c
                %a = load %x[%i]
                %b = load %y[%i]
                %sum = add %a, %b
                store %y[%i], %sum
            }}"
        );
        let options = CompileOptions {
            target: Target::X86V3,
            ..CompileOptions::default()
        };
        let text = emit(&module(&text), "add", &options, Text::Asm).expect("it compiles");
        text.contains("prefetch")
    };
    assert!(asks("div", "rem", "const u32 1024"));
    assert!(asks("div", "rem", "or %n, %n"));
    // A stretch without an end is foreseen, and of tiles one below the other nothing lies beside.
    assert!(!asks("add", "shr", "const u32 64"));
    assert!(!asks("add", "shr", "or %n, %n"));
}

#[test]
fn a_stretch_of_several_accesses_is_asked_for_a_threadgroup_ahead() {
    // Each thread adds so many elements that lie the threadgroup's width apart, or side by side.
    let asks_by = |elements: usize, step: usize, each: usize| {
        let mut sums = String::new();
        for k in 0..elements {
            sums += &format!(
                "%by{k} = const u32 {}
                %i{k} = add %first, %by{k}
                %v{k} = load %x[%i{k}]
                %s{} = add %s{k}, %v{k}
                ",
                if each == 1 { 256 * k } else { k },
                k + 1
            );
        }
        let text = format!(
            "kernel @sums(%x: device read f32, %y: device write f32) threadgroup(256) {{
                %t = thread_index_in_threadgroup
                %g = threadgroup_position_in_grid x
                %step = const u32 {step}
                %start = mul %g, %step
                %each = const u32 {each}
                %own = mul %t, %each
                %first = add %start, %own
                %s0 = const f32 0.0
                {sums}
                %i = thread_position_in_grid x
                store %y[%i], %s{elements}
            }}"
        );
        let options = CompileOptions {
            target: Target::X86V3,
            ..CompileOptions::default()
        };
        let text = emit(&module(&text), "sums", &options, Text::Asm).expect("it compiles");
        text.matches("prefetch").count()
    };
    let asks = |elements, step| asks_by(elements, step, 1);
    assert!(asks(4, 1024) > 0);
    assert!(asks(16, 4096) > 0);
    // Processors foresee this, or there are gaps.
    assert_eq!(asks(1, 256), 0);
    assert_eq!(asks(4, 2048), 0);
    assert_eq!(asks_by(4, 1024, 4), 0);
}

#[test]
fn rows_of_the_next_round_of_all_threads_are_asked_for_in_a_loop_of_each() {
    // For each row of its own the loop within asks for the one that stands there in the next iteration.
    let asks = |start: &str, column: &str| {
        let text = format!(
            "kernel @sums(%x: device read f32, %y: device write f32, %n: u32) threadgroup(16, 16) {{
                %tile = alloc threadgroup f32[256]
                %c = {column} x
                %t = thread_index_in_threadgroup
                %zero = const u32 0
                %one = const u32 1
                %side = const u32 16
                %none = const f32 0.0
                %all = for %start = %zero to %n step %side carry(%acc = %none) {{
                    %own = load %x[%t]
                    store %tile[%t], %own
                    barrier threadgroup
                    %part = for %k = %zero to %side step %one carry(%inner = %acc) {{
                        %line = add {start}, %k
                        %begin = mul %line, %n
                        %at = add %begin, %c
                        %v = load %x[%at]
                        %u = load %tile[%k]
                        %s = fma %v, %u, %inner
                        yield %s
                    }}
                    barrier threadgroup
                    yield %part
                }}
                %i = add %c, %t
                store %y[%i], %all
            }}"
        );
        let options = CompileOptions {
            target: Target::X86V3,
            ..CompileOptions::default()
        };
        let text = emit(&module(&text), "sums", &options, Text::Asm).expect("it compiles");
        text.matches("prefetch").count()
    };
    let mine = asks("%start", "thread_position_in_threadgroup");
    assert!(mine > 0);
    // Those of the next threadgroup are others.
    assert_eq!(asks("%start", "thread_position_in_grid"), 2 * mine);
    // The same rows again are at hand.
    assert_eq!(asks("%zero", "thread_position_in_grid"), 0);
}

/// The stores of a kernel's code for a processor that go past the caches, and its fences.
fn past_the_caches(text: &str, target: Target) -> (usize, usize) {
    past_the_caches_by([256, 1, 1], text, target)
}

/// The same in threadgroups of a size.
fn past_the_caches_by(size: [u32; 3], text: &str, target: Target) -> (usize, usize) {
    let options = CompileOptions {
        target,
        threadgroup_size: Some(size),
        ..CompileOptions::default()
    };
    let text = emit(&module(text), "sum", &options, Text::Asm).expect("it compiles");
    let stores = ["movntps", "movntdq\t", "movntpd"].map(|m| text.matches(m).count());
    (stores.iter().sum(), text.matches("sfence").count())
}

#[test]
fn o3_what_is_written_and_not_read_goes_past_the_caches_before_a_fence() {
    let kernel = |access: &str, start: &str, end: &str| {
        format!(
            "kernel @sum(%x: device read f32, %y: device read_write f32, %z: device {access} f32) {{
                %i = thread_position_in_grid x
                %zero = const u32 0
                %a = load %x[%i]
                %b = load {start}[%i]
                %s = add %a, %b
                store %z[%i], %s
                {end}
            }}"
        )
    };
    let plain = kernel("write", "%y", "");
    for (target, stores) in [(Target::X86V1, 4), (Target::X86V3, 4), (Target::X86V4, 4)] {
        // It fences where it is done, and where it is stopped.
        assert_eq!(past_the_caches(&plain, target), (stores, 2), "{target:?}");
    }
    assert_eq!(past_the_caches(&plain, Target::Aarch64), (0, 0));
    let nothing = (0, 0);
    let own = kernel("read_write", "%z", "");
    assert_eq!(past_the_caches(&own, Target::X86V4), nothing);
    let atomic = |order: &str| {
        let end = "%one = const u32 1
                %n = atomic_add %count[%zero], %one ORDER device";
        kernel("write", "%y", &end.replace("ORDER", order))
            .replace("%x: device", "%count: device read_write u32, %x: device")
    };
    assert_eq!(past_the_caches(&atomic("release"), Target::X86V4), nothing);
    assert_eq!(
        past_the_caches(&atomic("relaxed"), Target::X86V4).1,
        2,
        "it orders nothing"
    );
    // Rows of threads that read what others read keep their lines, but with AVX-512.
    let stencil = "kernel @sum(%x: device read f32, %z: device write f32, %n: u32) {
        %column = thread_position_in_grid x
        %row = thread_position_in_grid y
        %start = mul %row, %n
        %i = add %start, %column
        %below = add %i, %n
        %a = load %x[%i]
        %b = load %x[%below]
        %s = add %a, %b
        store %z[%i], %s
    }";
    for size in [[64, 4, 1], [256, 1, 1]] {
        let by_rows = |target| past_the_caches_by(size, stencil, target);
        assert_eq!(by_rows(Target::X86V3), nothing, "{size:?}");
        assert_ne!(by_rows(Target::X86V4), nothing, "{size:?}");
    }
    // Of two elements of a thread each is its own.
    let two = stencil
        .replace("%z[%i], %s", "%z[%i], %a\n        store %z[%below], %b")
        .replace("mul %row, %n", "mul %row, %n2")
        .replace("%start =", "%n2 = add %n, %n\n        %start =");
    assert_ne!(
        past_the_caches_by([256, 1, 1], &two, Target::X86V3),
        nothing
    );
}

#[test]
fn o3_components_side_by_side_go_past_the_caches_in_whole_lines() {
    let kernel = |ty: &str, count: u32, place: &str| {
        format!(
            "kernel @sum(%x: device read {ty}, %z: device write {ty}) {{
                %t = thread_position_in_grid x
                %count = const u32 {count}
                %i = mul %t, %count
                %v = load %x[{place}]
                store %z[{place}], %v
            }}"
        )
    };
    let stores = |text: &str| past_the_caches(text, Target::X86V4).0;
    for (count, place) in [(4, "%i : 4"), (4, "%t * 4"), (2, "%i : 2"), (3, "%i : 3")] {
        let found = stores(&kernel("f32", count, place));
        let whole = found > 0 && found.is_multiple_of(count as usize);
        assert!(whole, "{place}: {found}");
    }
    assert!(stores(&kernel("u8", 4, "%i : 4")) > 0);
    // Of each vector three quarters of a line; every second one.
    assert_eq!(stores(&kernel("u8", 3, "%i : 3")), 0);
    assert_eq!(stores(&kernel("f32", 8, "%i : 4")), 0);
}

#[test]
fn o1_vectors_of_four_are_taken_apart_in_quarters_of_registers() {
    let by = |load: &str, store: &str| {
        let text = format!(
            "kernel @sum(%x: device read f32, %y: device write f32) {{
                %i = thread_position_in_grid x
                %four = const u32 4
                %one = const u32 1
                %two = const u32 2
                %three = const u32 3
                %at = mul %i, %four
                %second = add %at, %one
                %third = add %at, %two
                %fourth = add %at, %three
                {load}
                {store}
            }}"
        );
        let options = CompileOptions {
            target: Target::X86V3,
            threadgroup_size: Some([256, 1, 1]),
            ..CompileOptions::default()
        };
        let text = emit(&module(&text), "sum", &options, Text::Asm).expect("it compiles");
        assert!(text.contains("unpcklps"), "{load}");
        // Moves across the halves of a register, each of one vector.
        let across = ["vpermps", "vpermpd"].map(|m| text.matches(m).count());
        across.iter().sum::<usize>()
    };
    let whole = "%v = load %x[%at : 4]\n %s = mul %v, %v";
    assert_eq!(by(whole, "store %y[%at : 4], %s"), 0);
    let each =
        "%a = load %x[%at]\n %b = load %x[%second]\n %c = load %x[%third]\n %d = load %x[%fourth]
                %p = mul %a, %d\n %q = mul %b, %c";
    let stores =
        "store %y[%at], %p\n store %y[%second], %q\n store %y[%third], %a\n store %y[%fourth], %b";
    assert_eq!(by(each, stores), 0);
}

/// The bytes of the LLVM text of as many blocks in one another.
fn nested(depth: usize, open: impl Fn(usize) -> String) -> usize {
    let opens: String = (0..depth).map(open).collect();
    let text = format!(
        "kernel @nested(%x: device read i32, %y: device write i32) {{
            %t = thread_position_in_grid x
            %zero = const i32 0
            %one = const i32 1
            {opens}{}
        }}",
        "}".repeat(depth)
    );
    let options = CompileOptions {
        target: Target::X86V3,
        threadgroup_size: Some([64, 1, 1]),
        ..CompileOptions::default()
    };
    let text = emit(&module(&text), "nested", &options, Text::Llvm);
    text.expect("it compiles").len()
}

#[test]
fn code_grows_no_faster_than_the_depth_of_its_ifs() {
    let open = |i| {
        format!(
            "%c{i} = const u32 {i}
            %at{i} = add %t, %c{i}
            %v{i} = load %x[%at{i}]
            %taken{i} = gt %v{i}, %zero
            if %taken{i} {{
            store %y[%t], %v{i}
            "
        )
    };
    let [half, whole] = [30, 60].map(|depth| nested(depth, open));
    assert!(whole < 3 * half, "{half} bytes at 30, {whole} at 60");
}

#[test]
fn code_grows_no_faster_than_the_depth_of_its_loops() {
    let open = |i| {
        format!(
            "%c{i} = const u32 {i}
            %at{i} = add %t, %c{i}
            %v{i} = load %x[%at{i}]
            for %k{i} = %zero to %v{i} step %one {{
            store %y[%t], %k{i}
            "
        )
    };
    let [half, whole] = [20, 40].map(|depth| nested(depth, open));
    assert!(whole < 3 * half, "{half} bytes at 20, {whole} at 40");
}

#[test]
fn o4_what_lies_side_by_side_is_stored_before_a_release_between() {
    let text = "
        kernel @handed(%y: device write u32, %flags: device read_write u32) {
            %i = thread_position_in_grid x
            %one = const u32 1
            %four = const u32 4
            %sixteen = const u32 16
            %a = mul %i, %sixteen
            %b = add %a, %one
            %c = add %b, %one
            %d = add %c, %one
            %e = add %a, %four
            %f = add %b, %four
            %g = add %c, %four
            %h = add %d, %four
            store %y[%a], %i
            store %y[%b], %i
            store %y[%c], %i
            store %y[%d], %i
            atomic_store %flags[%i], %one release device
            store %y[%e], %i
            store %y[%f], %i
            store %y[%g], %i
            store %y[%h], %i
        }";
    let options = CompileOptions {
        target: Target::X86V3,
        threadgroup_size: Some([64, 1, 1]),
        ..CompileOptions::default()
    };
    let text = emit(&module(text), "handed", &options, Text::Llvm).expect("it compiles");
    // Where all lanes store, as vectors.
    let chunk = text.split("define").find(|f| f.contains("store <4 x i32>"));
    let (before, behind) = (chunk.expect("blocks").split_once(" release,")).expect("a release");
    assert!(before.contains("store <4 x i32>"), "{text}");
    assert!(behind.contains("store <4 x i32>"), "{text}");
}

#[test]
fn arrays_as_large_as_a_threadgroup_need_no_check_in_any_chunk() {
    // Blocks for vectors of which some lanes may be out of bounds.
    let edges = |elements: u32| {
        let text = format!(
            "
            kernel @halves(%y: device write u32) threadgroup(64) {{
                %s = alloc threadgroup u32[{elements}]
                %t = thread_index_in_threadgroup
                store %s[%t], %t
                barrier threadgroup [threadgroup]
                %half = const u32 32
                %low = lt %t, %half
                if %low {{
                    %other = add %t, %half
                    %a = load %s[%t]
                    %b = load %s[%other]
                    %sum = add %a, %b
                    store %s[%t], %sum
                }}
                barrier threadgroup [threadgroup]
                %zero = const u32 0
                %first = eq %t, %zero
                if %first {{
                    %all = load %s[%half]
                    store %y[%zero], %all
                }}
            }}"
        );
        let options = CompileOptions {
            target: Target::X86V3,
            ..CompileOptions::default()
        };
        let text = emit(&module(&text), "halves", &options, Text::Llvm).expect("it compiles");
        text.lines().filter(|line| line.starts_with("edge")).count()
    };
    assert_eq!(edges(64), 0);
    assert!(edges(63) > 0);
}

#[test]
fn narrow_rows_that_wrap_are_no_gathers() {
    let breaks = |index: &str| {
        let text = format!(
            "
            kernel @shifted(%x: device read u8, %at: device read u32, %y: device write u8, %n: u32) {{
                %i = thread_position_in_grid x
                %one = const u32 1
                %next = add %i, %one
                %wrapped = rem %next, %n
                %table = load %at[%i]
                %v = load %x[{index}]
                store %y[%i], %v
            }}"
        );
        let options = CompileOptions {
            target: Target::X86V3,
            threadgroup_size: Some([256, 1, 1]),
            ..CompileOptions::default()
        };
        let text = emit(&module(&text), "shifted", &options, Text::Llvm).expect("it compiles");
        text.contains("@broken.u8")
    };
    assert!(breaks("%wrapped"));
    // What a thread loaded may lie anywhere.
    assert!(!breaks("%table"));
}

/// The cold paths that [`counted`] goes on to, and how often it was asked.
static COLD_PATHS: Mutex<Option<ColdPaths>> = Mutex::new(None);
static COLD_CHUNKS: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn counted(launch: *const Launch, number: u32, frame: *mut u8) -> u32 {
    COLD_CHUNKS.fetch_add(1, Ordering::Relaxed);
    let cold_paths = *COLD_PATHS.lock().expect("no panic");
    // SAFETY: they are of the code that asks.
    unsafe { cold_paths.expect("set before the launch")(launch, number, frame) }
}

/// Runs the one kernel of a module, whose parameters are arrays, and gives how many chunks took a cold path.
fn cold_chunks(
    text: &str,
    threads: u32,
    threadgroup: u32,
    arrays: &mut [&mut [f32]],
    number: Option<&mut i32>,
) -> u32 {
    // What is counted is of one launch.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let options = CompileOptions {
        threadgroup_size: Some([threadgroup, 1, 1]),
        ..CompileOptions::default()
    };
    let module = module(text);
    let object = compile(&module, &module.kernels[0].name, &options).expect("it compiles");
    let program = Program::load(&object).expect("it is for this machine");
    let own = program.cold_paths(compile_cold_paths);
    *COLD_PATHS.lock().expect("no panic") = Some(own.expect("they compile"));
    COLD_CHUNKS.store(0, Ordering::Relaxed);
    let mut arguments = Vec::new();
    for array in arrays {
        arguments.push(Argument {
            data: array.as_mut_ptr().cast(),
            length: array.len() as u64,
        });
    }
    arguments.extend(number.map(|number| Argument {
        data: std::ptr::from_mut(number).cast(),
        length: 1,
    }));
    let stop = AtomicU32::new(0);
    let groups = threads / threadgroup;
    let launch = Launch {
        arguments: arguments.as_ptr(),
        stop: &stop,
        least_streamed_bytes: u64::MAX,
        cold_paths: counted,
        threads: [threads, 1, 1],
        threadgroup: [threadgroup, 1, 1],
        threadgroups: [groups, 1, 1],
    };
    // SAFETY: there is an argument for each parameter.
    let bytes = unsafe { program.scratch_bytes(&launch) } as usize;
    let mut scratch = vec![0u8; bytes + 64];
    let start = scratch.as_ptr().align_offset(64);
    // SAFETY: the launch fits the kernel, and the scratch memory is as large as asked for.
    let end =
        unsafe { program.entry()(&launch, 0, groups.into(), scratch.as_mut_ptr().add(start)) };
    assert_eq!(end, DONE);
    COLD_CHUNKS.load(Ordering::Relaxed)
}

#[test]
fn places_that_wrap_by_conditions_are_checked_once() {
    const N: usize = 1 << 16;
    let text = "
        kernel @around(%x: device read f32, %y: device write f32, %n: i32) {
            %p = thread_position_in_grid x
            %c = cast i32 %p
            %zero = const i32 0
            %one = const i32 1
            %end = sub %n, %one
            %first = eq %c, %zero
            %before = sub %c, %one
            %left = select %before, %end, %first
            %last = ne %c, %end
            %behind = add %c, %one
            %right = select %zero, %behind, %last
            %a = load %x[%left]
            %b = load %x[%right]
            %sum = add %a, %b
            store %y[%c], %sum
        }";
    let mut x: Vec<f32> = (0..N).map(|i| i as f32).collect();
    let mut y = vec![0f32; N];
    let mut n = N as i32;
    let cold = cold_chunks(text, N as u32, 64, &mut [&mut x, &mut y], Some(&mut n));
    let sums = (0..N).map(|i| ((i + N - 1) % N + (i + 1) % N) as f32);
    assert!(y.iter().copied().eq(sums));
    // The first chunk and the last one are not like the others.
    assert!(cold <= 4, "{cold} chunks");
}

#[test]
fn trees_whose_step_grows_are_checked_once() {
    let level = |step: u32, condition: &str| {
        format!(
            "%step.{step} = const u32 {step}
            %every.{step} = const u32 {}
            %mask.{step} = const u32 {}
            %rest.{step} = {condition}
            %is.{step} = eq %rest.{step}, %zero
            if %is.{step} {{
                %a.{step} = load %s[%t]
                %o.{step} = add %t, %step.{step}
                %b.{step} = load %s[%o.{step}]
                %c.{step} = add %a.{step}, %b.{step}
                store %s[%t], %c.{step}
            }}
            barrier threadgroup [threadgroup]",
            2 * step,
            2 * step - 1
        )
    };
    for by_mask in [false, true] {
        let levels: Vec<String> = (0..8)
            .map(|i| {
                let step = 1u32 << i;
                let condition = if by_mask {
                    format!("and %t, %mask.{step}")
                } else {
                    format!("rem %t, %every.{step}")
                };
                level(step, &condition)
            })
            .collect();
        let text = format!(
            "
            kernel @tree(%x: device read f32, %y: device write f32) threadgroup(256) {{
                %s = alloc threadgroup f32[256]
                %t = thread_index_in_threadgroup
                %g = threadgroup_position_in_grid x
                %i = thread_position_in_grid x
                %zero = const u32 0
                %v = load %x[%i]
                store %s[%t], %v
                barrier threadgroup [threadgroup]
                {}
                %first = eq %t, %zero
                if %first {{
                    %all = load %s[%zero]
                    store %y[%g], %all
                }}
            }}",
            levels.join("\n")
        );
        let mut x: Vec<f32> = (0..1024).map(|i| i as f32).collect();
        let mut y = [0f32; 4];
        let cold = cold_chunks(&text, 1024, 256, &mut [&mut x, &mut y], None);
        assert_eq!(y, [32640., 98176., 163_712., 229_248.]);
        assert_eq!(cold, 0, "{text}");
    }
}
