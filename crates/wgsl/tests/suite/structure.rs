//! How kernels look: as if written by hand.

use invar_ir::{Diagnostics, InstKind, Kernel, Module, Region, verify};
use invar_wgsl::read;

fn module(body: &str) -> Module {
    let text = format!(
        "@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<uniform> n: u32;
{body}"
    );
    read("shader.wgsl", &text).expect("a kernel")
}

fn count(kernel: &Kernel, wanted: impl Fn(&InstKind) -> bool) -> usize {
    let mut found = 0;
    kernel.for_each_inst(&mut |inst| found += usize::from(wanted(&inst.kind)));
    found
}

fn first_for(region: &Region) -> Option<&InstKind> {
    region
        .insts
        .iter()
        .map(|i| &i.kind)
        .find(|k| matches!(k, InstKind::For { .. }))
}

#[test]
fn loops_that_count_become_for() {
    for head in [
        "var i = 0u; i < n; i++",
        "var i = 0u; n > i; i += 1u",
        "var i = 0u; i < 100u; i += 7u",
        "var i = n; i > 0u; i--",
        "var i = 100u; i >= 4u; i -= 4u",
    ] {
        let m = module(&format!(
            "@compute @workgroup_size(1) fn main() {{ for ({head}) {{ y[i] += 1u; }} }}"
        ));
        let kernel = &m.kernels[0];
        assert_eq!(
            count(kernel, |k| matches!(k, InstKind::For { .. })),
            1,
            "{head}\n{m}"
        );
        assert_eq!(
            count(kernel, |k| matches!(k, InstKind::If { .. })),
            0,
            "{head}\n{m}"
        );
        assert!(verify(m).is_ok());
    }
}

#[test]
fn loops_that_may_wrap_stay_loops() {
    for head in [
        "var i = 0u; i < n; i += 7u",
        "var i = 0u; i <= n; i++",
        "var i = n; i >= 0u; i--",
        "var i = 0u; i < 4294967295u; i += 2u",
        "var i = 1u; i < n; i *= 2u",
        "var i = 0u; i != n; i++",
    ] {
        let m = module(&format!(
            "@compute @workgroup_size(1) fn main() {{ for ({head}) {{ y[i] += 1u; }} }}"
        ));
        let kernel = &m.kernels[0];
        assert_eq!(
            count(kernel, |k| matches!(k, InstKind::Loop { .. })),
            1,
            "{head}\n{m}"
        );
        assert!(verify(m).is_ok());
    }
}

#[test]
fn only_what_lives_is_carried() {
    let m = module(
        "@compute @workgroup_size(1) fn main() {
            var sum = 0u; var scratch = 0u; var kept = 5u;
            for (var i = 0u; i < n; i++) { scratch = i * 2u; sum += scratch; if i > 90u { kept = kept; } }
            y[0] = sum + kept;
        }",
    );
    let Some(InstKind::For { init, .. }) = first_for(&m.kernels[0].body) else {
        panic!("no `for`:\n{m}");
    };
    assert_eq!(init.len(), 1, "{m}");
}

#[test]
fn an_early_return_of_a_function_costs_no_loop() {
    let m = module(
        "fn f(x: u32) -> u32 { if x == 0u { return 1u; } if x == 1u { return 7u; } return x * 2u; }
        @compute @workgroup_size(1) fn main() { y[0] = f(n); }",
    );
    assert_eq!(
        count(&m.kernels[0], |k| matches!(k, InstKind::Loop { .. })),
        0,
        "{m}"
    );
    assert!(verify(m).is_ok());
}

#[test]
fn a_barrier_after_a_uniform_early_return_is_taken() {
    let m = module(
        "var<workgroup> tile: array<u32, 8>;
        fn fill(i: u32) { if n == 0u { return; } tile[i] = i; workgroupBarrier(); }
        @compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) {
            fill(i);
            workgroupBarrier();
            for (var k = 0u; k < n; k++) { if k == 3u { continue; } workgroupBarrier(); tile[i] = k; }
            y[i] = tile[7u - i];
        }",
    );
    let text = m.to_string();
    let verified = verify(m);
    assert!(verified.is_ok(), "{:?}\n{text}", verified.err());
}

#[test]
fn instructions_name_their_lines_and_calls() {
    let m = module(
        "fn cell(i: u32) -> u32 {
  return y[i + 1u];
}
@compute @workgroup_size(1) fn main() {
  y[0] = cell(n);
}",
    );
    let mut load = None;
    m.kernels[0].for_each_inst(&mut |inst| {
        if matches!(inst.kind, InstKind::Load(_)) && inst.span.call.is_some() {
            load = Some(inst.span);
        }
    });
    let load = load.expect("the load in the function");
    assert_eq!((load.start.line, load.start.column), (4, 10));
    let call = &m.calls[load.call.expect("a call").0 as usize];
    assert_eq!((&*call.function, call.site.start.line), ("cell", 7));
}

#[test]
fn names_are_the_authors() {
    let m = module(
        "fn twice(value: u32) -> u32 { let doubled = value * 2u; return doubled; }
        @compute @workgroup_size(1) fn main(@builtin(global_invocation_id) id: vec3u) {
            var total = id.x;
            total += twice(id.y);
            y[0] = total;
        }",
    );
    let text = m.to_string();
    for name in ["%y", "%n", "%id.x", "%doubled", "%total"] {
        assert!(text.contains(name) || name == "%n", "{name}\n{text}");
    }
}

/// What users give threads who have thousands of them. (Where it does not suffice, the process ends without a word.)
#[test]
fn deep_shaders_are_read_on_small_stacks() {
    let deep = 60;
    let text = format!(
        "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
         @compute @workgroup_size(64)
         fn main(@builtin(global_invocation_id) id: vec3u) {{
             var v = x[id.x];
             {}
             v = {}v{};
             {}
             x[id.x] = v;
         }}",
        "if v > 1u {\n".repeat(deep),
        "(1u + ".repeat(deep),
        ")".repeat(deep),
        "}".repeat(deep),
    );
    let thread = std::thread::Builder::new().stack_size(32 << 10);
    let read = thread.spawn(move || {
        let shader = invar_wgsl::Shader::parse("deep.wgsl", &text)?;
        assert_eq!(shader.lints().len(), 0);
        verify(shader.kernels(None, &[])?.module).map(|module| module.kernels.len())
    });
    let kernels = read.expect("it starts").join().expect("it ends");
    assert_eq!(kernels, Ok(1));
}

/// A chain of `else if` nests nothing, whatever blocks it stands in.
#[test]
fn chains_of_else_if_may_be_as_long_as_the_text_may() {
    for length in [33, 200, 3000] {
        let arms = "else if n == i { y[i] = n; } ".repeat(length);
        let text = format!(
            "@compute @workgroup_size(1) fn main() {{ for (var i = 0u; i < 9u; i++) {{ if n > 3u {{
                if n > 4u {{ y[0] = 1u; }} {arms}
            }} }} }}"
        );
        let kernels = module(&text);
        assert!(verify(kernels).is_ok(), "{length}");
    }
}

/// What the report says of a barrier in the last of so many arms, or behind a chain whose last arm returns: its
/// message, and the lines that it shows with what it says of each. Arm number 0 is on line 1.
fn missed_in_chain(arms: usize, varying: &[usize], returns: bool) -> (String, Vec<(u32, String)>) {
    let condition = |arm| match varying.contains(&arm) {
        true => format!("i == {arm}u"),
        false => format!("n == {arm}u"),
    };
    let middle = (1..arms).map(|arm| format!("\n}} else if ({}) {{ y[i] = n;", condition(arm)));
    let (inside, behind) = match returns {
        true => ("return;", "workgroupBarrier();"),
        false => ("workgroupBarrier();", ""),
    };
    let text = format!(
        "@group(0) @binding(0) var<storage, read_write> y: array<u32>; @group(0) @binding(1) var<uniform> n: u32; \
         @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {{ \
         if ({}) {{ y[i] = 1u; {}\n}} else if (n == {arms}u) {{ {inside}\n}} {behind} }}",
        condition(0),
        middle.collect::<String>(),
    );
    let module = read("shader.wgsl", &text).expect("a kernel");
    let Diagnostics(all) = verify(module).expect_err("a barrier that is missed");
    let error = &all[0];
    let labels = error.labels.iter();
    let labels = labels.map(|label| (label.span.start.line, label.text.clone()));
    (error.message.clone(), labels.collect())
}

/// However long a chain is, the condition is told that keeps threads from a barrier, on its own line.
#[test]
fn the_arm_of_a_long_chain_that_decides_is_told() {
    for arms in [20, 40, 100] {
        for varying in [&[3][..], &[0], &[3, 17], &[15], &[16]] {
            let last = varying[varying.len() - 1];
            let (message, labels) = missed_in_chain(arms, varying, false);
            let why = format!("it is in an `if`, and `i == {last}u` may differ");
            assert!(message.contains(&why), "{arms}, {varying:?}: {message}");
            let label = format!("this `if` depends on `i == {last}u`");
            let expected = (last as u32 + 1, label);
            assert!(
                labels.contains(&expected),
                "{arms}, {varying:?}: {labels:?}"
            );

            let (message, labels) = missed_in_chain(arms, varying, true);
            let why = format!("some threads `return`, and `i == {last}u` may differ");
            assert!(message.contains(&why), "{arms}, {varying:?}: {message}");
            assert!(
                labels.contains(&expected),
                "{arms}, {varying:?}: {labels:?}"
            );
        }
    }
}

/// Calls are inlined, and nest nothing by themselves.
#[test]
fn calls_may_lie_as_deep_as_they_do() {
    let deep = 700;
    let calls: String = (1..deep)
        .map(|i| {
            format!(
                "fn f{i}(a: u32) -> u32 {{ y[1] = a; return f{}(a) + 1u; }}\n",
                i - 1
            )
        })
        .collect();
    let text = format!(
        "fn f0(a: u32) -> u32 {{ return a; }}
{calls}@compute @workgroup_size(1) fn main() {{ y[0] = f{}(n); }}",
        deep - 1
    );
    assert!(verify(module(&text)).is_ok());
}

const OVERRIDES: &str = "
override unused: f32;
override size: u32;
override of_other = size * 2u;
@compute @workgroup_size(size) fn other() { y[0] = of_other; }
@compute @workgroup_size(2) fn main() { y[0] = n; }
";

/// As in WebGPU: a value is needed of what an entry point statically uses.
#[test]
fn overrides_that_an_entry_point_does_not_use_need_no_value() {
    let text = format!(
        "@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<uniform> n: u32;
{OVERRIDES}"
    );
    let shader = invar_wgsl::Shader::parse("two.wgsl", &text).expect("it is read");
    let main = shader.kernels(Some("main"), &[]).expect("a kernel");
    let main = verify(main.module).expect("it is right");
    assert!(main.specialise(&[]).is_ok());
    let Err(refused) = shader.kernels(Some("other"), &[]) else {
        panic!("a size is missing");
    };
    assert!(refused.0[0].message.contains("`size` decides a size"));
    let text = "override flag: u32; override twice = 2u * flag; override size = 4u;
        @group(0) @binding(0) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(size) fn main() { y[0] = twice; }";
    let feeds = invar_wgsl::Shader::parse("feeds.wgsl", text).expect("it is read");
    let Err(open) = feeds.kernels(Some("main"), &[]) else {
        panic!("a value is missing");
    };
    assert_eq!(
        open.0[0].message,
        "override `flag` is in the value of another override or of a private variable, so it needs a value when the \
         shader is read"
    );
    assert_eq!(shader.open_sizes(Some("main"), &[]), Vec::<String>::new());
    assert_eq!(shader.open_sizes(Some("other"), &[]), ["size"]);
}

#[test]
fn workgroups_without_invocations_are_refused() {
    let text = "override n = 0u; @compute @workgroup_size(n) fn main() {}";
    let refused = read("empty.wgsl", text).expect_err("it has none");
    assert!(refused.0[0].message.contains("have no invocations"));
}
