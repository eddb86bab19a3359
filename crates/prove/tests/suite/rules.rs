//! The kernels of `tests/ir/prove`: each says in the line above it what is known of it, `; proved`, `; broken`
//! or `; open`. There is a pair for each thing that the prover knows: a kernel that needs it, and one that
//! goes wrong by a little. What a kernel needs of launches it requires, so no condition is looked for.

use std::path::Path;

use invar_ir::text::case::files;
use invar_ir::{Dim, text, verify};
use invar_prove::condition::{Condition, Launches, Number, Term};
use invar_prove::{Options, Verdict, prove};

#[test]
fn each_kernel_has_the_verdict_above_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/ir/prove");
    let options = Options {
        infer: false,
        ..Options::default()
    };
    let (mut count, mut wrong) = (0, Vec::new());
    for file in files(&root).expect("its files") {
        let source = std::fs::read_to_string(&file).expect("a file");
        let module = text::parse(&file.display().to_string(), &source).expect("it parses");
        let module = verify(module).expect("it is valid");
        let lines: Vec<&str> = source.lines().collect();
        for kernel in &module.kernels {
            let above = lines[kernel.span.start.line as usize - 2];
            let expected = above.strip_prefix("; ").unwrap_or_default();
            let expected = expected.split(':').next().unwrap_or_default();
            let report = prove(&module, &kernel.name, &[], options).expect("it is there");
            count += 1;
            if report.verdict.name() != expected {
                let place = format!("{}: @{}", file.display(), kernel.name);
                let words = report.in_words(&module, false);
                wrong.push(format!("{place} is not {expected}:\n{words}"));
            }
        }
    }
    assert!(count > 80, "only {count} kernels");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn inferred(source: &str) -> invar_prove::Report {
    let module = verify(text::parse("k.inv", source).expect("it parses")).expect("it is valid");
    let cases = text::cases(source).expect("its directives");
    let name = &module.kernels[0].name;
    prove(&module, name, &cases, Options::default()).expect("it is there")
}

#[test]
fn conditions_are_those_that_are_printed() {
    // What the first access needs is not enough for the second.
    let shifted = "kernel @k(%x: device read u32) {
        %i = thread_position_in_grid x
        %one = const u32 1
        %next = add %i, %one
        %v = load %x[%i]
        %w = load %x[%next]
    }";
    let report = inferred(shifted);
    assert_eq!(report.verdict, Verdict::Proved);
    assert_ne!(report.texts, ["grid.x <= length(x)"]);
    let tile = "kernel @k(%y: device write u32) {
        %tile = alloc thread u32[16]
        %t = thread_position_in_threadgroup x
        store %tile[%t], %t
    }";
    let report = inferred(tile);
    assert_eq!(report.verdict, Verdict::Proved);
    assert_eq!(report.texts, ["threadgroup.x <= 16"]);
    // The sixteenth thread would be beyond.
    let beyond = tile.replace(
        "store %tile[%t], %t",
        "store %tile[%t], %t
        %one = const u32 1
        %next = add %t, %one
        store %tile[%next], %t",
    );
    assert_eq!(inferred(&beyond).verdict, Verdict::Broken);
}

/// Multiples of 56 are multiples of 8: what is enough is asked for.
#[test]
fn of_multiples_the_least_is_a_condition() {
    let report = inferred(
        "kernel @k(%x: device read u32, %y: device write u32, %n: u32) threadgroup(8) {
            %g = threadgroup_position_in_grid x
            %t = thread_position_in_threadgroup x
            %i = thread_position_in_grid x
            %zero = const u32 0
            %eight = const u32 8
            %far = const u32 56
            %sum = for %k = %zero to %n step %eight carry(%a = %zero) {
                %at = add %k, %t
                %v = load %x[%at]
                %b = add %a, %v
                yield %b
            }
            %c = add %sum, %far
            store %y[%i], %c
        }
        ; run: @k(x = zeros(56), y = zeros(8), n = 56) grid(8)
        ",
    );
    assert_eq!(report.verdict, Verdict::Proved);
    let multiples: Vec<&String> = report.texts.iter().filter(|t| t.contains('%')).collect();
    assert_eq!(multiples, ["n % 8 == 0"], "{:?}", report.texts);
}

#[test]
fn an_index_into_an_element_is_looked_at_by_itself() {
    let source = "struct @Triple { v: u32[3] }
    kernel @k(%x: device read_write u32, %y: device write @Triple) threadgroup(1) {
        %zero = const u32 0
        %two = const u32 2
        %k = load %x[%zero]
        store %y[%two].v[%k], %k
    }
    ; run: @k(x = zeros(1), y = zeros(9)) grid(1)
    ";
    let report = inferred(source);
    // What memory holds is an index among three, and the buffer still has to have the element.
    assert_eq!(report.verdict, Verdict::Open, "{:?}", report.counterexample);
    let expected = ["1 <= length(x)", "3 <= length(y)", "groups.x <= 1"];
    assert_eq!(report.texts, expected);
    assert_eq!(report.doubts.len(), 1, "{:?}", report.doubts);
}

#[test]
fn no_condition_is_taken_that_a_run_line_breaks() {
    let source = "kernel @k(%y: device write u32) {
        %i = thread_position_in_grid x
        store %y[%i], %i
    }
    ; run: @k(y = zeros(4)) grid(8) threadgroup(4)
    ";
    assert_ne!(inferred(source).verdict, Verdict::Proved);
    let fitting = source.replace("zeros(4)", "zeros(8)");
    let report = inferred(&fitting);
    assert_eq!(report.verdict, Verdict::Proved);
    assert_eq!(report.texts, ["grid.x <= length(y)"]);
}

#[test]
fn no_condition_is_taken_that_no_launch_fulfils() {
    let source =
        "kernel @k(%y: device write u32, %n: u32, %m: u32) requires(%n < %m, 1 <= length(%y)) {
        %zero = const u32 0
        store %y[%zero], %n
    }";
    assert_eq!(inferred(source).verdict, Verdict::Broken);
}

#[test]
fn how_long_a_buffer_is_is_not_looked_for_where_the_kernel_says_it() {
    let source = "kernel @k(%x: device read u32, %y: device write u32) REQUIRES {
        %i = thread_position_in_grid x
        %one = const u32 1
        %next = add %i, %one
        %v = load %x[%next]
        store %y[%i], %v
    }";
    assert_eq!(
        inferred(&source.replace("REQUIRES", "")).verdict,
        Verdict::Proved
    );
    let meant = source.replace("REQUIRES", "requires(grid.x <= length(%x))");
    assert_eq!(inferred(&meant).verdict, Verdict::Broken);
}

#[test]
fn conditions_of_volumes_are_products_of_three_numbers() {
    let source = "kernel @k(%y: device write u32, %w: u32, %h: u32, %d: u32) {
        %i = thread_position_in_grid x
        %j = thread_position_in_grid y
        %k = thread_position_in_grid z
        %one = const u32 1
        %last = sub %w, %one
        %a = ge %i, %last
        %b = ge %j, %h
        %c = ge %k, %d
        %ab = or %a, %b
        %beyond = or %ab, %c
        if %beyond {
            return
        }
        %row = mul %k, %h
        %line = add %row, %j
        %start = mul %line, %w
        %at = add %start, %i
        store %y[%at], %i
    }";
    // Of a row without elements the last one is far beyond.
    let report = inferred(source);
    assert_eq!(report.verdict, Verdict::Proved);
    assert_eq!(report.texts, ["1 <= w", "w * h * d <= length(y)"]);
    let plain = source.replace("ge %i, %last", "ge %i, %w");
    assert_eq!(inferred(&plain).texts, ["w * h * d <= length(y)"]);
}

#[test]
fn strides_that_may_wrap_need_a_condition() {
    let source = "kernel @k(%y: device write u32, %n: u32) {
        %first = thread_position_in_grid x
        %step = threads_per_grid x
        %end = loop carry(%i = %first) {
            %far = ge %i, %n
            if %far { break %i }
            store %y[%i], %first
            %next = add %i, %step
            yield %next
        }
    }";
    let wraps = "n + grid.x <= 4294967296";
    assert_eq!(inferred(source).texts, ["n <= length(y)", wraps]);
    // It is no more than that.
    let most = source.replace("u32) {", "u32) requires(%n + grid.x >= 4294967296) {");
    let report = inferred(&most);
    assert_eq!(report.verdict, Verdict::Proved);
    assert_eq!(report.texts, ["n <= length(y)", wraps]);
    // Of numbers of 8 bits no condition is found, and a stride that wraps is none.
    let small = "kernel @k(%y: device write u32, %n: u8) {
        %i = thread_position_in_grid x
        %first = cast u8 %i
        %threads = threads_per_grid x
        %step = cast u8 %threads
        %end = loop carry(%k = %first) {
            %far = ge %k, %n
            if %far { break %k }
            %at = cast u32 %k
            store %y[%at], %i
            %next = add %k, %step
            yield %next
        }
    }";
    let report = inferred(small);
    assert_eq!(report.verdict, Verdict::Open);
    assert_eq!(report.texts, ["256 <= length(y)"]);
}

#[test]
fn what_a_threadgroup_shares_is_as_long_as_it_has_threads() {
    let source = "kernel @k(%x: device read f32, %y: device write f32, %s: threadgroup f32) {
        %i = thread_position_in_grid x
        %t = thread_position_in_threadgroup x
        %g = threadgroup_position_in_grid x
        %n = threads_per_threadgroup x
        %zero = const u32 0
        %two = const u32 2
        %v = load %x[%i]
        store %s[%t], %v
        barrier threadgroup [threadgroup]
        %half = div %n, %two
        %end = loop carry(%step = %half) {
            %done = eq %step, %zero
            if %done { break %step }
            %low = lt %t, %step
            if %low {
                %other = add %t, %step
                %a = load %s[%t]
                %b = load %s[%other]
                %c = add %a, %b
                store %s[%t], %c
            }
            barrier threadgroup [threadgroup]
            %next = div %step, %two
            yield %next
        }
        %is_first = eq %t, %zero
        if %is_first {
            %sum = load %s[%zero]
            store %y[%g], %sum
        }
    }
    ; run: @k(x = iota(8), y = zeros(2), s = length(4)) grid(8) threadgroup(4)
    ";
    let report = inferred(source);
    assert_eq!(report.verdict, Verdict::Proved, "{:?}", report.doubts);
    assert!(
        report
            .texts
            .iter()
            .any(|t| t == "threadgroup.x <= length(s)"),
        "{:?}",
        report.texts
    );
}

#[test]
fn a_dispatch_is_told_by_its_numbers_exactly() {
    let (n, m, room) = (Number::Argument(0), Number::Argument(1), Number::Length(2));
    let product = Condition::AtMost(Term::of(1, [n, m]), Term::of(1, [room]));
    let rows = Condition::Multiple(m, 4);
    let launches = Launches::new(vec![Dim::Y], vec![product, rows, Condition::Below(n, 9)]);
    let has = |launches: &Launches, [n, m, room]: [Option<u64>; 3], grid_y, size| {
        launches.have(&|number| match number {
            Number::Argument(0) => n,
            Number::Argument(1) => m,
            Number::Length(2) => room,
            Number::Grid(Dim::Y) => Some(grid_y),
            Number::Threadgroup(Dim::X) => Some(size),
            Number::Threadgroup(_) => Some(1),
            _another => None,
        })
    };
    let have = |values, grid_y, size| has(&launches, values, grid_y, size);
    assert!(have([Some(3), Some(8), Some(24)], 1, 1024));
    assert!(!have([Some(3), Some(8), Some(23)], 1, 1024));
    assert!(!have([Some(3), Some(6), Some(24)], 1, 1024));
    assert!(!have([Some(10), Some(0), Some(24)], 1, 1024));
    assert!(!have([Some(3), Some(8), None], 1, 1024));
    assert!(!have([Some(3), Some(8), Some(24)], 2, 1024));
    assert!(!have([Some(3), Some(8), Some(24)], 1, 1025));
    // Products on both sides, and remainders by what is no power of two.
    let halves = Condition::AtMost(Term::of(1, [n, m]), Term::of(2, [room]));
    let thirds = Launches::new(Vec::new(), vec![halves, Condition::Multiple(n, 3)]);
    let third = |values| has(&thirds, values, 1, 1);
    assert!(third([Some(3), Some(8), Some(12)]) && third([Some(0), Some(8), Some(0)]));
    assert!(!third([Some(3), Some(8), Some(11)]) && !third([Some(4), Some(2), Some(12)]));
    // A product of 0 and what is too large is 0.
    let both = Condition::AtMost(Term::of(1, [room]), Term::of(4, [n, m]));
    let both = Launches::new(Vec::new(), vec![both]);
    assert!(!has(&both, [Some(1 << 63), Some(0), Some(1)], 1, 1));
    assert!(has(&both, [Some(1 << 63), Some(1), Some(u64::MAX)], 1, 1));
    let wide = Condition::AtMost(Term::of(1, [n]), Term::of(4, [room]));
    let wide = Launches::new(Vec::new(), vec![wide]);
    assert!(has(&wide, [Some(u64::MAX), None, Some(1 << 62)], 1, 1));
    // Two to the 64 is none of 64 bits.
    assert!(!have([Some(4), Some(1 << 62), Some(0)], 1, 1));
    assert!(!have([Some(4), Some(1 << 62), Some(u64::MAX)], 1, 1));
}
