//! What it costs to wait: threadgroups that poll memory take steps for what they do, not for how long they wait
//! or how many wait beside them.

use invar_interp::{Arg, CheckOptions, Dispatch, Grid, Options, check, run};
use invar_ir::text::parse;
use invar_ir::verify;

/// Runs a kernel of threadgroups of 64 threads in several orders; gives the most steps a threadgroup.
fn steps_each(source: &str, threadgroups: u32, args: &dyn Fn() -> Vec<Arg<'static>>) -> u64 {
    let module = verify(parse("waiting.inv", source).unwrap()).unwrap();
    let dispatch = Dispatch {
        grid: Grid::Threadgroups([threadgroups, 1, 1]),
        threadgroup: [64, 1, 1],
    };
    let steps = (0..4).map(|seed| {
        let options = Options {
            seed,
            step_limit: u64::from(threadgroups) * 10_000,
            ..Options::default()
        };
        let done = run(&module, "k", &dispatch, &mut args(), &options, &mut []);
        done.unwrap_or_else(|e| panic!("seed {seed}: {e}")).steps
    });
    steps.max().unwrap() / u64::from(threadgroups)
}

/// Each threadgroup adds its number to the sum of the one before, which it waits for.
fn look_back(waits: &str, tells: &str) -> String {
    format!(
        "kernel @k(%sums: device read_write u32, %flags: device read_write u32) {{
            %zero = const u32 0
            %one = const u32 1
            %two = const u32 2
            %g = threadgroup_position_in_grid x
            %t = thread_position_in_threadgroup x
            %first = eq %t, %zero
            if %first {{
                %later = gt %g, %zero
                %before = if %later {{
                    %h = sub %g, %one
                    loop {{
                        {waits}
                    }}
                    %b = load %sums[%h]
                    yield %b
                }} else {{
                    yield %zero
                }}
                %sum = add %before, %g
                store %sums[%g], %sum
                {tells}
            }}
            barrier threadgroup
        }}"
    )
}

const POLL: &str = "%f = atomic_load %flags[%h] acquire device
                    %set = ne %f, %zero
                    if %set { break }";
const TELL: &str = "atomic_store %flags[%g], %one release device";

fn flags(threadgroups: u32) -> Vec<Arg<'static>> {
    let bytes = 16 * threadgroups as usize;
    vec![Arg::zeros(bytes), Arg::zeros(bytes)]
}

#[test]
fn what_a_poll_costs_does_not_grow_with_how_many_wait() {
    let each = |n| steps_each(&look_back(POLL, TELL), n, &|| flags(n));
    let (few, many) = (each(64), each(4096));
    assert!(many < 2 * few, "{few} steps with 64, {many} with 4096");
}

#[test]
fn who_polls_several_words_wakes_when_any_changes() {
    // The word that changes is not the one that is looked at first.
    let waits = "%p = mul %h, %two
                 %q = add %p, %one
                 %never = atomic_load %flags[%p] acquire device
                 %f = atomic_load %flags[%q] acquire device
                 %both = or %never, %f
                 %set = ne %both, %zero
                 if %set { break }";
    let tells = "%r = mul %g, %two
                 %s = add %r, %one
                 atomic_store %flags[%s], %one release device";
    let source = look_back(waits, tells);
    let each = |n| steps_each(&source, n, &|| flags(n));
    let (few, many) = (each(64), each(4096));
    assert!(many < 2 * few, "{few} steps with 64, {many} with 4096");
}

#[test]
fn copies_and_stores_wake_as_atomics_do() {
    let tells = [
        "store %flags[%g], %one",
        "store %sums[%g], %one
         copy %flags[%g], %sums[%g], %one",
    ];
    for tells in tells {
        let each = |n| steps_each(&look_back(POLL, tells), n, &|| flags(n));
        let (few, many) = (each(64), each(2048));
        assert!(
            many < 2 * few,
            "{tells}: {few} steps with 64, {many} with 2048"
        );
    }
}

#[test]
fn who_counts_its_polls_goes_on_without_a_change() {
    // The first gives up after 100 polls and sets what the others wait for, which never stop adding to a counter.
    let source = "kernel @k(%x: device read_write u32, %n: device read_write u32) {
        %zero = const u32 0
        %one = const u32 1
        %two = const u32 2
        %hundred = const u32 100
        %g = threadgroup_position_in_grid x
        %t = thread_position_in_threadgroup x
        %first = eq %t, %zero
        if %first {
            %patient = eq %g, %zero
            if %patient {
                for %i = %zero to %hundred step %one {
                    %v = atomic_load %x[%zero]
                    %set = ne %v, %zero
                    if %set { break }
                }
                atomic_store %x[%one], %one
            } else {
                loop {
                    %c = atomic_add %n[%zero], %one
                    %w = atomic_load %x[%one]
                    %told = ne %w, %zero
                    if %told { break }
                }
            }
        }
    }";
    assert!(steps_each(source, 8, &|| flags(8)) > 100);
}

#[test]
fn what_decides_whether_a_loop_goes_on_may_be_made_of_equals() {
    let sums: String = (1..200)
        .map(|i| format!("%v{i} = add %v{}, %v{}\n", i - 1, i - 1))
        .collect();
    let source = format!(
        "kernel @k(%x: device read u32) {{
            %zero = const u32 0
            loop {{
                %v0 = load %x[%zero]
                {sums}
                %l = eq %v199, %zero
                if %l {{ break }}
            }}
        }}"
    );
    let module = verify(parse("waiting.inv", &source).unwrap()).unwrap();
    let dispatch = Dispatch::linear(1, 1);
    let options = CheckOptions::default();
    let report = check(&module, "k", &dispatch, &[Arg::zeros(4)], &options).unwrap();
    assert_eq!(report.diagnostics.len(), 0, "{:?}", report.diagnostics);
}
