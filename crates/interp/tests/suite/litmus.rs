//! Small programs of atomics between few threads: over many seeds the machine shows several of the
//! outcomes that sequential consistency allows, and never another.

use std::collections::BTreeSet;

use invar_interp::{Arg, Dispatch, Options, run};
use invar_ir::{Verified, text, verify};

/// What a thread does, in order: `W x 1` stores, `R x` loads, `X x 2` exchanges and `A x 1` adds, the
/// last three into the thread's next result.
struct Litmus {
    name: &'static str,
    threads: &'static [&'static [&'static str]],
}

const TESTS: &[Litmus] = &[
    Litmus {
        name: "store buffering",
        threads: &[&["W x 1", "R y"], &["W y 1", "R x"]],
    },
    Litmus {
        name: "message passing",
        threads: &[&["W x 1", "W y 1"], &["R y", "R x"]],
    },
    Litmus {
        name: "load buffering",
        threads: &[&["R x", "W y 1"], &["R y", "W x 1"]],
    },
    Litmus {
        name: "two writes each",
        threads: &[&["W x 1", "W y 2"], &["W y 1", "W x 2"]],
    },
    Litmus {
        name: "read after write",
        threads: &[&["W x 1", "R x"], &["W x 2", "R x"]],
    },
    Litmus {
        name: "two readers of one",
        threads: &[&["W x 1"], &["R x", "R x"], &["R x", "R x"]],
    },
    Litmus {
        name: "independent reads of independent writes",
        threads: &[&["W x 1"], &["W y 1"], &["R x", "R y"], &["R y", "R x"]],
    },
    Litmus {
        name: "indivisible exchange",
        threads: &[&["X x 1"], &["W x 2"], &["X x 3"]],
    },
    Litmus {
        name: "adds and a read",
        threads: &[&["A x 1", "A x 1"], &["A x 4"], &["R x"]],
    },
    Litmus {
        name: "write to read causality",
        threads: &[&["W x 1"], &["R x", "W y 1"], &["R y", "R x"]],
    },
];

type Outcome = Vec<u32>;

/// Every outcome of every interleaving: the results of the threads, then x and y.
fn allowed(test: &Litmus) -> BTreeSet<Outcome> {
    fn go(
        test: &Litmus,
        at: &mut Vec<usize>,
        memory: [u32; 2],
        results: &mut Vec<Vec<u32>>,
        out: &mut BTreeSet<Outcome>,
    ) {
        let mut done = true;
        for t in 0..test.threads.len() {
            let Some(step) = test.threads[t].get(at[t]) else {
                continue;
            };
            done = false;
            let (op, place, operand) = parse(step);
            let mut next = memory;
            let old = memory[place];
            match op {
                'R' => {}
                'W' | 'X' => next[place] = operand,
                _ => next[place] += operand,
            }
            if op != 'W' {
                results[t].push(old);
            }
            at[t] += 1;
            go(test, at, next, results, out);
            at[t] -= 1;
            if op != 'W' {
                results[t].pop();
            }
        }
        if done {
            out.insert(results.iter().flatten().copied().chain(memory).collect());
        }
    }
    let mut out = BTreeSet::new();
    let n = test.threads.len();
    go(
        test,
        &mut vec![0; n],
        [0, 0],
        &mut vec![Vec::new(); n],
        &mut out,
    );
    out
}

fn parse(step: &str) -> (char, usize, u32) {
    let mut parts = step.split(' ');
    let op = parts.next().and_then(|p| p.chars().next()).unwrap();
    let place = usize::from(parts.next() == Some("y"));
    (op, place, parts.next().map_or(0, |n| n.parse().unwrap()))
}

/// Where the threads and the locations are.
#[derive(Clone, Copy, Debug)]
enum Setting {
    /// A threadgroup each, device memory.
    Threadgroups,
    /// A simdgroup each, device memory.
    Simdgroups,
    /// A simdgroup each, threadgroup memory.
    ThreadgroupMemory,
}

fn kernel(test: &Litmus, setting: Setting) -> Verified {
    let shared = matches!(setting, Setting::ThreadgroupMemory);
    let memory = if shared { "m" } else { "x" };
    let mut body = String::new();
    let mut result = 0;
    for (t, thread) in test.threads.iter().enumerate() {
        body += &format!(
            "%n{t} = const u32 {}\n%is{t} = eq %i, %n{t}\nif %is{t} {{\n",
            t * 4
        );
        for (s, step) in thread.iter().enumerate() {
            let (op, place, operand) = parse(step);
            let v = format!("{t}_{s}");
            body += &format!("%p{v} = const u32 {place}\n%v{v} = const u32 {operand}\n");
            let at = format!("%{memory}[%p{v}]");
            body += &match op {
                'R' => format!("%r{v} = atomic_load {at}\n"),
                'W' => format!("atomic_store {at}, %v{v}\n"),
                'X' => format!("%r{v} = atomic_exchange {at}, %v{v}\n"),
                _ => format!("%r{v} = atomic_add {at}, %v{v}\n"),
            };
            if op != 'W' {
                body += &format!("%o{v} = const u32 {result}\nstore %out[%o{v}], %r{v}\n");
                result += 1;
            }
        }
        body += "}\n";
    }
    if shared {
        body += "barrier threadgroup [threadgroup]\n%is = eq %i, %n0\nif %is {\n";
        for place in 0..2 {
            body += &format!("%q{place} = const u32 {place}\n%w{place} = load %m[%q{place}]\n");
            body += &format!("store %x[%q{place}], %w{place}\n");
        }
        body += "}\n";
    }
    let source = format!(
        "kernel @k(%x: device read_write u32, %out: device write u32) {{
            {}
            %i = thread_position_in_grid x
            {body}
        }}",
        if shared {
            "%m = alloc threadgroup u32[2]"
        } else {
            ""
        }
    );
    verify(text::parse(test.name, &source).expect("parses")).expect("verifies")
}

#[test]
fn t2_atomics_never_leave_sequential_consistency() {
    for test in TESTS {
        let allowed = allowed(test);
        for setting in [
            Setting::Threadgroups,
            Setting::Simdgroups,
            Setting::ThreadgroupMemory,
        ] {
            let module = kernel(test, setting);
            let threads = test.threads.len() as u32 * 4;
            let dispatch = match setting {
                Setting::Threadgroups => Dispatch::linear(threads, 4),
                Setting::Simdgroups | Setting::ThreadgroupMemory => {
                    Dispatch::linear(threads, threads)
                }
            };
            let results: usize = test
                .threads
                .iter()
                .flat_map(|t| t.iter())
                .filter(|s| !s.starts_with('W'))
                .count();
            let mut seen = BTreeSet::new();
            for seed in 0..400 {
                let mut args = [Arg::zeros(8), Arg::zeros(results * 4)];
                let options = Options {
                    seed,
                    simdgroup_size: Some(4),
                    ..Options::default()
                };
                run(&module, "k", &dispatch, &mut args, &options, &mut []).unwrap();
                let words = |a: &Arg| -> Vec<u32> {
                    a.bytes()
                        .chunks(4)
                        .map(|c| u32::from_le_bytes(c.try_into().unwrap()))
                        .collect()
                };
                let outcome: Outcome = words(&args[1]).into_iter().chain(words(&args[0])).collect();
                assert!(
                    allowed.contains(&outcome),
                    "{}, {setting:?}, seed {seed}: {outcome:?}",
                    test.name
                );
                seen.insert(outcome);
            }
            // Seeds must lead somewhere: most of what is possible shows.
            assert!(
                seen.len() * 2 > allowed.len(),
                "{}, {setting:?}: only {} of {} outcomes",
                test.name,
                seen.len(),
                allowed.len()
            );
        }
    }
}

#[test]
fn equal_seeds_give_equal_runs() {
    let module = kernel(&TESTS[6], Setting::Simdgroups);
    for seed in [0, 1, 99] {
        let outcome = || {
            let mut args = [Arg::zeros(8), Arg::zeros(16)];
            let options = Options {
                seed,
                simdgroup_size: Some(4),
                ..Options::default()
            };
            let steps = run(
                &module,
                "k",
                &Dispatch::linear(16, 16),
                &mut args,
                &options,
                &mut [],
            );
            (steps.unwrap(), args[1].bytes().to_vec())
        };
        assert_eq!(outcome(), outcome());
    }
}
