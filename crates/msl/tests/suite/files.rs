//! Checks every source of `tests/metal` by what its comments say.

use invar_codegen::passes::PassOptions;
use invar_ir::text::case::cases;
use invar_ir::{Diagnostics, InstKind, Module};
use invar_msl::{Library, directives, find_clang};

use crate::comments::check_all;

fn read(name: &str, text: &str) -> Result<Module, Diagnostics> {
    let cases = cases(&directives(text)).unwrap_or_default();
    let constants = cases.into_iter().flat_map(|case| case.constants);
    let constants = constants.map(|(name, value)| (name.name, value.text));
    // Run lines have no lists.
    let lists = text.lines().filter_map(|l| l.strip_prefix("// const: "));
    let lists = lists.filter_map(|l| l.split_once('='));
    let lists = lists.map(|(name, list)| (name.to_string(), list.to_string()));
    let library = Library {
        name: name.to_string(),
        text: text.to_string(),
        constants: constants.chain(lists).collect(),
        ..Library::default()
    };
    library.kernels(None).map(|all| all.module)
}

/// The lines of a source whose function constants have their values.
fn without_constants(text: &str) -> String {
    let mut lines = directives(text);
    while let Some(from) = lines.find("const(") {
        let to = lines[from..]
            .find(')')
            .map_or(lines.len(), |to| from + to + 1);
        let blank = " ".repeat(to - from);
        lines.replace_range(from..to, &blank);
    }
    lines
}

#[test]
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn every_source_gives_what_its_lines_say() {
    if let Err(why) = find_clang() {
        println!("skipped: {why}");
        return;
    }
    check_all(("metal", "metal", 18), &read, &without_constants);
}

/// What users give threads who have thousands of them. (Where it does not suffice, the process ends without a word.)
#[test]
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn deep_sources_are_read_on_small_stacks() {
    if let Err(why) = find_clang() {
        println!("skipped: {why}");
        return;
    }
    let deep = 40;
    let text = format!(
        "#include <metal_stdlib>
         kernel void k(device uint *x [[buffer(0)]], uint i [[thread_position_in_grid]]) {{
             {}
             x[i] = 1;
             {}
         }}",
        "if (x[x[i]] > 1) { x[i] += 1;\n".repeat(deep),
        "}".repeat(deep),
    );
    let thread = std::thread::Builder::new().stack_size(32 << 10);
    let read = thread.spawn(move || {
        let kernels = Library {
            name: "deep.metal".to_string(),
            text,
            ..Library::default()
        };
        invar_ir::verify(kernels.kernels(None)?.module).map(|module| module.kernels.len())
    });
    let kernels = read.expect("it starts").join().expect("it ends");
    assert_eq!(kernels, Ok(1));
}

/// Also of what the command reads again after it was printed.
#[test]
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn buffers_keep_their_numbers() {
    if let Err(why) = find_clang() {
        println!("skipped: {why}");
        return;
    }
    let text = "#include <metal_stdlib>
         struct Args { uint count; };
         kernel void k(constant Args &args [[buffer(4)]], device const float *x [[buffer(2)]],
                       device float *y [[buffer(0)]], threadgroup float *part [[threadgroup(0)]],
                       constant uint &by [[buffer(7)]], uint i [[thread_position_in_grid]]) {
             part[i] = x[i];
             if (i < args.count) y[i] = part[i] * by;
         }";
    let module = read("k.metal", text).expect("a kernel");
    let printed = module.to_string();
    let again = invar_ir::text::parse("k.inv", &printed).expect("its text");
    for module in [&module, &again] {
        let params = module.kernels[0].params.iter();
        let bound: Vec<(&str, Option<(u32, u32)>)> = params
            .map(|p| (&*p.name, p.binding.map(|b| (b.group, b.number))))
            .collect();
        let expected = [
            ("args", Some((0, 4))),
            ("x", Some((0, 2))),
            ("y", Some((0, 0))),
            ("part", None),
            ("by", Some((0, 7))),
        ];
        assert_eq!(bound, expected);
    }
}

/// So that everything that knows loops knows those that begin with a thread's place and go on by all threads.
#[test]
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn loops_that_end_the_kernel_count() {
    if let Err(why) = find_clang() {
        println!("skipped: {why}");
        return;
    }
    let text = "#include <metal_stdlib>
         kernel void k(device float *x [[buffer(0)]], constant int &count [[buffer(1)]],
                       uint i [[thread_position_in_threadgroup]], uint n [[threads_per_threadgroup]]) {
             for (int at = i; at < count; at += n) x[at] = 2 * x[at];
         }";
    let module = read("k.metal", text).expect("a kernel");
    let module = invar_ir::verify(module).expect("it holds").into_module();
    let passes = ["count-loops-or-ask"];
    let (module, _) = invar_codegen::passes::run(module, 0, &passes, &PassOptions::default())
        .expect("there is such a pass");
    let mut counted = 0;
    module.kernels[0].for_each_inst(&mut |inst| {
        counted += usize::from(matches!(inst.kind, InstKind::For { .. }))
    });
    assert_eq!(counted, 1, "{module}");
}

/// The attribute may stand in front of a function and behind its name, and say a number that a template gives.
#[test]
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn the_most_threads_of_a_threadgroup_are_required() {
    if let Err(why) = find_clang() {
        println!("skipped: {why}");
        return;
    }
    let text = "#include <metal_stdlib>
         using namespace metal;
         [[max_total_threads_per_threadgroup(64)]] kernel void a(device float *x [[buffer(0)]]) { x[0] = 1; }
         kernel void b [[max_total_threads_per_threadgroup(32)]] (device float *x [[buffer(0)]]) { x[0] = 1; }
         template <int N> [[kernel, max_total_threads_per_threadgroup(N * 32)]] void t(device float *x [[buffer(0)]]) { x[0] = N; }
         template [[host_name(\"c\")]] [[kernel]] decltype(t<4>) t<4>;
         kernel void d(device float *x [[buffer(0)]]) { x[0] = 1; }";
    let module = read("k.metal", text).expect("kernels");
    let printed = module.to_string();
    for (name, most) in [
        ("a", Some(64)),
        ("b", Some(32)),
        ("c", Some(128)),
        ("d", None),
    ] {
        let head = printed
            .lines()
            .find(|l| l.contains(&format!("kernel @{name}(")));
        let head = head.expect("it is there");
        let required = most.map(|most| {
            format!("requires(threadgroup.x * threadgroup.y * threadgroup.z <= {most})")
        });
        match required {
            Some(required) => assert!(head.contains(&required), "{head}"),
            None => assert!(!head.contains("requires"), "{head}"),
        }
    }
}
