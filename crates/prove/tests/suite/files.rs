//! The kernels of `tests/ir/race` and `examples`: no proof beside a finding, none of a racy kernel.

use std::path::Path;

use invar_interp::case::bind;
use invar_interp::{CheckOptions, Options as RunOptions, check};
use invar_ir::text::case::files;
use invar_ir::{Rule, text, verify};
use invar_prove::{Options, Verdict, prove};

/// Few enough problems that all files are looked at in seconds.
const OPTIONS: Options = Options {
    infer: true,
    contents: true,
    refute: false,
    problems: 300,
    pivots: 200_000,
};

fn folder(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(name)
}

#[test]
fn no_proof_admits_a_run_line_that_the_checkers_report() {
    let mut proved = 0;
    for name in ["tests/ir/race", "tests/ir/textures", "examples"] {
        for file in files(&folder(name)).expect("its files") {
            let source = std::fs::read_to_string(&file).expect("a file");
            let module = text::parse(&file.display().to_string(), &source).expect("it parses");
            let Ok(module) = verify(module) else {
                continue;
            };
            let cases = text::cases(&source).expect("its directives");
            for kernel in &module.kernels {
                let report = prove(&module, &kernel.name, &cases, OPTIONS).expect("it is there");
                if report.verdict != Verdict::Proved {
                    continue;
                }
                proved += 1;
                for case in cases.iter().filter(|c| *c.kernel.name == *kernel.name) {
                    let mut no_files = |name: &str, _: &_| Err(format!("no file {name}"));
                    let bound = bind(&module, case, &RunOptions::default(), &mut no_files);
                    let bound = bound.expect("it binds");
                    let options = CheckOptions {
                        run: bound.options,
                        ..CheckOptions::default()
                    };
                    let name = &kernel.name;
                    let found = check(&module, name, &bound.dispatch, &bound.args, &options);
                    let found = found.expect("it runs");
                    let counts = |rule| {
                        [
                            Rule::DataRace,
                            Rule::ExecutionOnlyBarrier,
                            Rule::EqualStores,
                            Rule::OutOfBounds,
                            Rule::MisalignedAccess,
                        ]
                        .contains(&rule)
                    };
                    let first = found.diagnostics.iter().find(|d| counts(d.rule));
                    assert!(
                        first.is_none(),
                        "{}: proved beside {first:?}",
                        file.display()
                    );
                }
            }
        }
    }
    assert!(proved > 30, "only {proved} kernels were proved");
}

#[test]
fn the_broken_example_is_broken_and_the_mended_one_proved() {
    let verdict = |name: &str| {
        let file = folder("examples").join(name);
        let source = std::fs::read_to_string(&file).expect("a file");
        let module = text::parse(name, &source).expect("it parses");
        let module = verify(module).expect("it is valid");
        let cases = text::cases(&source).expect("its directives");
        let name = &module.kernels[0].name;
        prove(&module, name, &cases, Options::default()).expect("it is there")
    };
    let broken = verdict("smooth-broken.inv");
    assert_eq!(broken.verdict, Verdict::Broken);
    assert!(
        broken
            .counterexample
            .is_some_and(|found| !found.findings.is_empty())
    );
    assert_eq!(verdict("smooth.inv").verdict, Verdict::Proved);
    let softmax = verdict("softmax.inv");
    assert_eq!(softmax.verdict, Verdict::Proved);
    assert_eq!(softmax.accesses, 8);
    assert_eq!(
        softmax.texts,
        ["n * groups.x <= length(x)", "n * groups.x <= length(y)"]
    );
}

/// The verdict of a kernel of `examples`, and the conditions.
fn example(name: &str, kernel: &str) -> (Verdict, Vec<String>) {
    let source = std::fs::read_to_string(folder("examples").join(name)).expect("a file");
    let module = verify(text::parse(name, &source).expect("it parses")).expect("it is valid");
    let cases = text::cases(&source).expect("its directives");
    let report = prove(&module, kernel, &cases, Options::default()).expect("it is there");
    (report.verdict, report.texts)
}

#[test]
fn a_part_of_a_buffer_for_each_element_of_another_is_a_condition() {
    let (verdict, texts) = example("scan.inv", "add");
    assert_eq!(verdict, Verdict::Proved);
    let expected = ["grid.x <= length(before)", "grid.x <= length(start) * 4096"];
    assert_eq!(texts, expected);
}

#[test]
fn the_length_of_one_buffer_bounds_another_and_the_simdgroups_are_counted() {
    let (verdict, texts) = example("scan.inv", "scan");
    assert_eq!(verdict, Verdict::Proved);
    // Where 16 * grid.x wraps, two threads have the same 16 numbers.
    let expected = [
        "groups.x <= length(total)",
        "length(x) <= length(before)",
        "grid.x <= 268435456",
    ];
    assert_eq!(texts, expected);
}

#[test]
fn tiles_need_a_parameter_that_is_a_multiple_of_theirs() {
    let (verdict, texts) = example("matrix_product.inv", "product");
    assert_eq!(verdict, Verdict::Proved);
    for needed in [
        "k * n <= length(b)",
        "k * grid.y <= length(a)",
        "k % 16 == 0",
    ] {
        assert!(texts.iter().any(|text| text == needed), "{texts:?}");
    }
}

#[test]
fn what_a_loop_leaves_is_bounded_by_what_holds_in_each_round() {
    let (verdict, _) = example("nearest.inv", "nearest");
    assert_eq!(verdict, Verdict::Proved);
}

#[test]
fn what_is_allowed_beyond_a_buffer_is_not_called_in_bounds() {
    let name = "tests/ir/race/stencil-1d-fixed.inv";
    let source = std::fs::read_to_string(folder(name)).expect("a file");
    let module = verify(text::parse(name, &source).expect("it parses")).expect("it is valid");
    let cases = text::cases(&source).expect("its directives");
    let report = prove(&module, "blur", &cases, Options::default()).expect("it is there");
    let expected = "proved @blur: no data race, 1 of 4 accesses in bounds and the others allowed beyond, for \
                    every one-dimensional launch with grid.x <= length(y)";
    assert_eq!(report.in_words(&module, false), expected);
}

/// What is tried for a kernel has an end, and what is left is said to be left.
#[test]
fn kernels_of_many_accesses_are_left_open() {
    use std::fmt::Write;

    const COUNT: usize = 30;
    let mut source = "kernel @k(%x: device read_write f32) {
    %i = thread_position_in_grid x
    %seven = const u32 7
    %j = mul %i, %seven
"
    .to_string();
    for k in 0..COUNT {
        writeln!(source, "%c{k} = const u32 {k}\n%a{k} = add %i, %c{k}").expect("a string");
        writeln!(source, "%v{k} = load %x[%a{k}]").expect("a string");
    }
    source += "barrier threadgroup [device]\n";
    for k in 0..COUNT {
        writeln!(source, "%b{k} = add %j, %c{k}\nstore %x[%b{k}], %v{k}").expect("a string");
    }
    source += "}";
    let module = verify(text::parse("many.inv", &source).expect("it parses")).expect("valid");
    let options = Options {
        problems: 40,
        refute: false,
        ..Options::default()
    };
    let report = prove(&module, "k", &[], options).expect("it is there");
    assert_eq!(report.verdict, Verdict::Open);
    assert!(report.pairs > 900, "{}", report.pairs);
    assert!(report.problems < 900, "{}", report.problems);
    let last = report.doubts.last().expect("something is open");
    assert!(last.what.ends_with("were not looked at"), "{}", last.what);
}

#[test]
fn the_problems_of_a_proof_can_be_asked_elsewhere() {
    let file = folder("examples").join("smooth.inv");
    let source = std::fs::read_to_string(file).expect("a file");
    let module = verify(text::parse("smooth.inv", &source).expect("it parses")).expect("valid");
    let all = invar_prove::problems(&module, "smooth", &[], Options::default());
    let all = all.expect("there is such a kernel");
    assert!(all.iter().any(|(_, refuted)| *refuted) && all.iter().any(|(_, refuted)| !refuted));
}
