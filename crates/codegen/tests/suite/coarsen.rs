//! Coarsening: the reference machine leaves the same bytes with the coarse kernel on the smaller grid.

use std::path::Path;

use invar_codegen::passes::coarsen::{coarsen, coarsen_threads};
use invar_conformance::{FileOptions, file_tests};
use invar_interp::{Arg, Dispatch, Grid};
use invar_ir::contract::contract;
use invar_ir::random::split_mix_64;
use invar_ir::{Diagnostics, FloatMode, Verified, text, verify};

/// Runs the coarse kernel where there is one and the grid allows it; counts how often.
fn coarsely(
    module: &Verified,
    kernel: &str,
    dispatch: &Dispatch,
    args: &mut [Arg<'static>],
    coarse: &mut u32,
) -> Result<(), Diagnostics> {
    let mut dispatch = *dispatch;
    let mut module = contract(module.clone().into_module())?;
    let index = module.kernels.iter().position(|k| *k.name == *kernel);
    let index = index.expect("the kernel");
    for factor in [4, 3, 2] {
        let grid = match dispatch.grid {
            Grid::Threads([x, y, z]) if x % (dispatch.threadgroup[0] * factor) == 0 => {
                Grid::Threads([x / factor, y, z])
            }
            Grid::Threadgroups([x, y, z]) if x % factor == 0 => {
                Grid::Threadgroups([x / factor, y, z])
            }
            _left_over => continue,
        };
        if let Some(kernel) = coarsen(&module, index, factor) {
            module.kernels[index] = kernel;
            dispatch.grid = grid;
            *coarse += 1;
            break;
        }
    }
    if let Some((kernel, size)) = coarsen_threads(&module, index, dispatch.threadgroup, 2)
        && is_full(&dispatch)
    {
        module.kernels[index] = kernel;
        if let Grid::Threads(threads) = &mut dispatch.grid {
            for (d, n) in threads.iter_mut().enumerate() {
                *n = *n / dispatch.threadgroup[d] * size[d];
            }
        }
        dispatch.threadgroup = size;
        *coarse += 1;
    }
    // What has been contracted is not contracted again.
    module.kernels[index].float_mode = FloatMode::Strict;
    let module = verify(module)?;
    let options = invar_interp::Options {
        step_limit: 100_000_000,
        ..Default::default()
    };
    invar_interp::run(&module, kernel, &dispatch, args, &options, &mut []).map(|_| ())
}

fn is_full(dispatch: &Dispatch) -> bool {
    match dispatch.grid {
        Grid::Threads(threads) => (0..3).all(|d| threads[d] % dispatch.threadgroup[d] == 0),
        Grid::Threadgroups(_) => true,
    }
}

#[test]
fn every_run_case_leaves_the_same_bytes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/ir/run");
    let mut coarse = 0;
    let mut target = |module: &Verified, kernel: &str, dispatch: &Dispatch, args: &mut [_]| {
        coarsely(module, kernel, dispatch, args, &mut coarse)
    };
    let summary = file_tests(&mut target, &folder, &FileOptions::default()).expect("the folder");
    assert!(summary.failures.is_empty(), "{summary}");
    assert!(coarse >= 6, "only {coarse} were coarsened");
}

/// Writes small kernels: each thread computes from where it stands and from what it loads anywhere in
/// `x`, and changes its own element of `y`, in nested `if`s and loops, some of which it leaves early.
struct Writer {
    state: u64,
    text: String,
    next: u32,
}

impl Writer {
    fn below(&mut self, n: u32) -> u32 {
        (split_mix_64(&mut self.state) % u64::from(n)) as u32
    }

    fn pick(&mut self, values: &[String]) -> String {
        values[self.below(values.len() as u32) as usize].clone()
    }

    fn bind(&mut self, depth: usize, what: &str) -> String {
        self.next += 1;
        let name = format!("%v{}", self.next);
        self.line(depth, &format!("{name} = {what}"));
        name
    }

    fn line(&mut self, depth: usize, what: &str) {
        self.text.push_str(&"    ".repeat(depth));
        self.text.push_str(what);
        self.text.push('\n');
    }

    fn condition(&mut self, depth: usize, values: &[String]) -> String {
        let (a, b) = (self.pick(values), self.pick(values));
        let seven = self.bind(depth, "const u32 7");
        let (a, b) = (
            self.bind(depth, &format!("and {a}, {seven}")),
            self.bind(depth, &format!("and {b}, {seven}")),
        );
        let op = ["lt", "ge", "eq"][self.below(3) as usize];
        self.bind(depth, &format!("{op} {a}, {b}"))
    }

    fn block(&mut self, depth: usize, values: &mut Vec<String>, in_loop: bool) {
        for _ in 0..2 + self.below(4) {
            let (a, b) = (self.pick(values), self.pick(values));
            let value = match self.below(9) {
                0 | 1 => {
                    let op = ["add", "sub", "mul", "xor", "shl"][self.below(5) as usize];
                    self.bind(depth, &format!("{op} {a}, {b}"))
                }
                2 => {
                    let mask = self.bind(depth, "const u32 255");
                    let at = self.bind(depth, &format!("and {a}, {mask}"));
                    self.bind(depth, &format!("load %x[{at}]"))
                }
                3 => self.bind(depth, "load %y[%own]"),
                4 => {
                    self.line(depth, &format!("store %y[%own], {a}"));
                    continue;
                }
                5 => {
                    // What it returns depends on the order of threads: it is not used.
                    self.bind(depth, &format!("atomic_add %total[%zero], {a}"));
                    continue;
                }
                6 if depth < 4 => {
                    let condition = self.condition(depth, values);
                    self.next += 1;
                    let result = format!("%v{}", self.next);
                    self.line(depth, &format!("{result} = if {condition} {{"));
                    for end in ["} else {", "}"] {
                        let mut inner = values.clone();
                        self.block(depth + 1, &mut inner, in_loop);
                        let last = self.pick(&inner);
                        self.line(depth + 1, &format!("yield {last}"));
                        self.line(depth, end);
                    }
                    result
                }
                7 if depth < 3 => {
                    self.next += 1;
                    let n = self.next;
                    let iterations = self.bind(depth, "const u32 3");
                    self.line(
                        depth,
                        &format!(
                            "%v{n} = for %k{n} = %zero to {iterations} step %one carry(%c{n} = {a}) {{"
                        ),
                    );
                    let mut inner = values.clone();
                    inner.extend([format!("%k{n}"), format!("%c{n}")]);
                    self.block(depth + 1, &mut inner, true);
                    let last = self.pick(&inner);
                    self.line(depth + 1, &format!("yield {last}"));
                    self.line(depth, "}");
                    format!("%v{n}")
                }
                8 if depth == 1 && !in_loop => {
                    let condition = self.condition(depth, values);
                    self.line(depth, &format!("if {condition} {{"));
                    self.block(depth + 1, &mut values.clone(), true);
                    self.line(depth + 1, "return");
                    self.line(depth, "}");
                    continue;
                }
                _ => continue,
            };
            values.push(value);
        }
    }

    fn kernel(seed: u64, meets: bool) -> String {
        let mut writer = Writer {
            state: seed,
            text: String::new(),
            next: 0,
        };
        let head = [
            "kernel @k(%x: device read u32, %y: device read_write u32, %total: device read_write u32) {",
            "    %zero = const u32 0",
            "    %one = const u32 1",
            "    %width = const u32 96",
            "    %i = thread_position_in_grid x",
            "    %j = thread_position_in_grid y",
            "    %g = threadgroup_position_in_grid x",
            "    %t = thread_index_in_threadgroup",
            "    %row = mul %j, %width",
            "    %own = add %row, %i",
            if meets {
                "    %tile = alloc threadgroup u32[16]"
            } else {
                ""
            },
        ];
        for line in head {
            writer.line(0, line);
        }
        let mut values: Vec<String> = ["%i", "%j", "%g", "%t", "%own", "%one"]
            .map(Into::into)
            .into();
        writer.block(1, &mut values, meets);
        if meets {
            // Everyone leaves something, and takes what another one left.
            let given = writer.pick(&values);
            let lines = [
                format!("store %tile[%t], {given}"),
                "barrier threadgroup [threadgroup]".to_string(),
                "%last = const u32 15".to_string(),
                "%other = xor %t, %last".to_string(),
                "%taken = load %tile[%other]".to_string(),
                "for %iteration = %zero to %width step %last {".to_string(),
                "    barrier threadgroup [device, threadgroup]".to_string(),
                "    store %tile[%other], %iteration".to_string(),
                "    barrier threadgroup [threadgroup]".to_string(),
                "}".to_string(),
                "%late = load %tile[%t]".to_string(),
                "%p = thread_position_in_threadgroup y".to_string(),
                "%size = threads_per_threadgroup y".to_string(),
            ];
            for line in lines {
                writer.line(1, &line);
            }
            values.extend(["%taken", "%late", "%p", "%size"].map(Into::into));
        }
        writer.block(1, &mut values, false);
        let last = writer.pick(&values);
        writer.line(1, &format!("store %y[%own], {last}"));
        writer.line(0, "}");
        writer.text
    }
}

#[test]
fn random_kernels_leave_the_same_bytes() {
    let (mut coarse, mut met) = (0, 0);
    for seed in 0..600 {
        let source = Writer::kernel(seed, seed % 3 == 0);
        let module =
            verify(text::parse("k.inv", &source).unwrap_or_else(|e| panic!("{e}\n{source}")));
        let module = module.unwrap_or_else(|e| panic!("{e}\n{source}"));
        let dispatch = Dispatch {
            grid: Grid::Threads([96, 4, 1]),
            threadgroup: [8, 2, 1],
        };
        let words = |n: u32| Arg::OwnedBuffer((0..n).flat_map(|i| (i * i).to_le_bytes()).collect());
        let given = || vec![words(256), words(400), words(1)];
        let (mut expected, mut found) = (given(), given());
        let options = invar_interp::Options::default();
        invar_interp::run(&module, "k", &dispatch, &mut expected, &options, &mut [])
            .unwrap_or_else(|e| panic!("{e}\n{source}"));
        let before = coarse;
        coarsely(&module, "k", &dispatch, &mut found, &mut coarse)
            .unwrap_or_else(|e| panic!("{e}\n{source}"));
        for (expected, found) in expected.iter().zip(&found) {
            assert!(expected.bytes() == found.bytes(), "seed {seed}:\n{source}");
        }
        met += u32::from(seed % 3 == 0 && coarse > before);
    }
    assert!(
        coarse >= 300 && met >= 60,
        "only {coarse} were coarsened, {met} with barriers"
    );
}

#[test]
fn what_threads_meet_in_or_ask_of_the_grid_stays_as_it_is() {
    let refused = [
        "barrier threadgroup [device]",
        "%s = simd_sum %v",
        "%n = threads_per_grid x",
        "%tile = alloc threadgroup f32[4]",
        "%own = alloc thread f32[4]",
        "loop {\n break\n }",
        "for %k = %zero to %i step %one {\n %w = load %x[%k]\n store %y[%k], %w\n }",
    ];
    for (line, stays) in refused.iter().map(|l| (*l, true)).chain([
        ("", false),
        ("%n = threads_per_grid y", false),
        ("%t = thread_index_in_threadgroup", false),
        (
            "for %k = %zero to %one step %one {\n %w = load %x[%k]\n store %y[%k], %w\n }",
            false,
        ),
    ]) {
        let source = format!(
            "kernel @k(%x: device read f32, %y: device write f32) threadgroup(32, 1, 1) simdgroup(32) {{
    %i = thread_position_in_grid x
    %zero = const u32 0
    %one = const u32 1
    %v = load %x[%i]
    {line}
    store %y[%i], %v
}}"
        );
        let module = verify(text::parse("k.inv", &source).expect("a module"));
        let module = module.unwrap_or_else(|e| panic!("{source}: {e}"));
        let coarse = coarsen(&module.into_module(), 0, 4);
        assert_eq!(coarse.is_none(), stays, "{source}");
    }
}
