//! The kernels of `tests/ir/prove`: each says in the line above it what is known of it, `; proved`, `; broken`
//! or `; open`. There is a pair for each thing that the prover knows: a kernel that needs it, and one that
//! goes wrong by a little. What a kernel needs of launches it requires, so no condition is looked for.

use std::path::Path;

use invar_ir::text::case::files;
use invar_ir::{Dim, text, verify};
use invar_prove::condition::{Condition, Launches, Number, Term};
use invar_prove::{Options, Verdict, prove};

use crate::solver::Random;

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
fn strides_and_offsets_in_bytes_have_to_be_multiples() {
    let kernel = |parameter: &str, load: &str| {
        format!(
            "kernel @k(%x: device read u32, %y: device write u32, {parameter}) {{
                %t = thread_position_in_grid x
                %zero = const u32 0
                %two = const u64 2
                {load}
                %wide = cast u64 %o
                %i = shr_exact %wide, %two
                %v = load %x[%i]
                store %y[%t], %v
            }}"
        )
    };
    let passed = inferred(&kernel("%off: u32", "%o = add %off, %zero"));
    assert!(
        passed.texts.contains(&"off % 4 == 0".to_string()),
        "{:?}",
        passed.texts
    );
    let held = inferred(&kernel("%off: constant u32", "%o = load %off[%zero]"));
    assert!(
        held.texts.contains(&"off[0] % 4 == 0".to_string()),
        "{:?}",
        held.texts
    );
    for report in [passed, held] {
        assert_eq!(report.verdict, Verdict::Proved);
    }
}

#[test]
fn what_may_race_and_what_has_atomics_is_watched() {
    let source =
        "kernel @k(%a: device write u32, %b: device write u32, %c: device read_write u32) \
        requires(grid.x <= length(%a), 1 <= length(%b), 1 <= length(%c)) {
        %i = thread_position_in_grid x
        %zero = const u32 0
        store %a[%i], %i
        store %b[%zero], %i
        %old = atomic_add %c[%zero], %i
    }";
    let report = inferred(source);
    assert_eq!(report.verdict, Verdict::Broken);
    assert_eq!(report.race_free, [invar_ir::Memory::Param(0)]);
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
    let behind =
        "kernel @k(%x: device read u32, %n: u32) requires(%n <= 2147483647, grid.x <= 2147483646) {
        %i = thread_position_in_grid x
        %one = const u32 1
        %at = add %i, %n
        %next = add %at, %one
        %v = load %x[%at]
        %w = load %x[%next]
    }";
    let report = inferred(behind);
    let first = ["grid.x + n <= length(x)"];
    assert!(report.verdict != Verdict::Proved || report.texts != first);
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
    assert_eq!(report.texts, ["255 <= length(y)"]);
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

/// Rows of `w` numbers under a guard of integers with a sign: `guard` compares a row with how many there are, and
/// `times` numbers stand at each place.
fn signed_rows(guard: &str, times: u32, requires: &str) -> String {
    format!(
        "kernel @k(%y: device write f32, %w: i32, %h: i32) {requires} {{
        %i = thread_position_in_grid x
        %j = thread_position_in_grid y
        %column = cast i32 %i
        %row = as_type i32 %j
        %a = lt %column, %w
        %b = {guard} %row, %h
        %inside = and %a, %b
        if %inside {{
            %times = const i32 {times}
            %one = const f32 1.0
            %start = mul %row, %w
            %place = add %start, %column
            %at = mul %place, %times
            store %y[%at], %one
        }}
    }}"
    )
}

#[test]
fn rows_of_integers_with_a_sign_are_proved_where_places_fit_them() {
    let signs = [
        "grid.x <= 2147483647",
        "grid.y <= 2147483647",
        "length(y) <= 2147483647",
    ];
    for (times, rows) in [(1, "w * h <= length(y)"), (4, "w * h * 4 <= length(y)")] {
        let report = inferred(&signed_rows("lt", times, ""));
        assert_eq!(report.verdict, Verdict::Proved, "{:?}", report.doubts);
        let expected = [&["0 <= w", rows][..], &signs].concat();
        assert_eq!(report.texts, expected);
    }
    // Each of them is needed: without it the author's conditions do not suffice.
    let all = [
        "%w * %h <= length(%y)",
        "0 <= %w",
        "grid.x <= 2147483647",
        "grid.y <= 2147483647",
        "length(%y) <= 2147483647",
    ];
    let required = |all: &[&str], guard| {
        let source = signed_rows(guard, 1, &format!("requires({})", all.join(", ")));
        let module =
            verify(text::parse("k.inv", &source).expect("it parses")).expect("it is valid");
        let options = Options {
            infer: false,
            refute: guard == "le",
            ..Options::default()
        };
        prove(&module, "k", &[], options)
            .expect("it is there")
            .verdict
    };
    assert_eq!(required(&all, "lt"), Verdict::Proved);
    for needed in [2, 3, 4] {
        let mut fewer = all.to_vec();
        fewer.remove(needed);
        assert_ne!(required(&fewer, "lt"), Verdict::Proved, "{}", all[needed]);
    }
    // A row more than there are.
    assert_eq!(required(&all, "le"), Verdict::Broken);
    // Numbers of one dimension, for which a buffer of twice the length would be enough, too.
    let one = "kernel @k(%y: device write f32, %n: i32) {
        %i = thread_position_in_grid x
        %at = cast i32 %i
        %inside = lt %at, %n
        if %inside {
            %one = const f32 1.0
            store %y[%at], %one
        }
    }";
    let report = inferred(one);
    assert_eq!(report.texts, ["n <= length(y)", "grid.x <= 2147483647"]);
    // What the author runs stays within the conditions.
    let wide = "; run: @k(y = zeros(8), n = 8) grid(3000000000) threadgroup(64)\n";
    let report = inferred(&format!("{one}\n{wide}"));
    assert!(
        report.texts.iter().all(|t| t != "grid.x <= 2147483647"),
        "{:?}",
        report.texts
    );
}

#[test]
fn a_dispatch_is_told_by_its_numbers_exactly() {
    let (n, m, room) = (Number::Argument(0), Number::Argument(1), Number::Length(2));
    let product = Condition::AtMost(Term::of(1, [n, m]), Term::of(1, [room]));
    let rows = Condition::Multiple(m, 4);
    let launches = Launches::new(&[Dim::Y], vec![product, rows, Condition::Below(n, 9)]);
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
    // Threadgroups of 512 threads, and of 32,768.
    let any = Launches::new(&[], Vec::new());
    assert!(any.have(&|_| Some(8)) && !any.have(&|_| Some(32)));
    // Products on both sides, and remainders by what is not a power of two.
    let halves = Condition::AtMost(Term::of(1, [n, m]), Term::of(2, [room]));
    let thirds = Launches::new(&[], vec![halves, Condition::Multiple(n, 3)]);
    let third = |values| has(&thirds, values, 1, 1);
    assert!(third([Some(3), Some(8), Some(12)]) && third([Some(0), Some(8), Some(0)]));
    assert!(!third([Some(3), Some(8), Some(11)]) && !third([Some(4), Some(2), Some(12)]));
    // A product of 0 and what is too large is 0.
    let both = Condition::AtMost(Term::of(1, [room]), Term::of(4, [n, m]));
    let both = Launches::new(&[], vec![both]);
    assert!(!has(&both, [Some(1 << 63), Some(0), Some(1)], 1, 1));
    assert!(has(&both, [Some(1 << 63), Some(1), Some(u64::MAX)], 1, 1));
    let wide = Condition::AtMost(Term::of(1, [n]), Term::of(4, [room]));
    let wide = Launches::new(&[], vec![wide]);
    assert!(has(&wide, [Some(u64::MAX), None, Some(1 << 62)], 1, 1));
    // A sum of products that is one more than two to the 64.
    let sum = Condition::Together(Term::of(1, [n, n]), Term::of(1, [m, room]), 1 << 32);
    let sum = Launches::new(&[], vec![sum]);
    assert!(has(&sum, [Some(1), Some(2), Some(3)], 1, 1));
    let most = u64::from(u32::MAX);
    assert!(!has(&sum, [Some(most), Some(1 << 16), Some(1 << 17)], 1, 1));
    // Two to the 64 is none of 64 bits.
    assert!(!have([Some(4), Some(1 << 62), Some(0)], 1, 1));
    assert!(!have([Some(4), Some(1 << 62), Some(u64::MAX)], 1, 1));
}

/// A product of numbers of 64 bits, the lowest of its words first.
fn long_product(factors: &[u64]) -> Vec<u64> {
    let mut words = vec![1];
    for factor in factors {
        let mut carry = 0;
        for word in &mut words {
            let product = u128::from(*word) * u128::from(*factor) + u128::from(carry);
            (*word, carry) = (product as u64, (product >> 64) as u64);
        }
        words.push(carry);
    }
    words.resize(6, 0);
    words
}

fn long_sum(a: &[u64], b: &[u64]) -> Vec<u64> {
    let mut carry = 0;
    let words = a.iter().zip(b).map(|(a, b)| {
        let sum = u128::from(*a) + u128::from(*b) + u128::from(carry);
        carry = (sum >> 64) as u64;
        sum as u64
    });
    words.collect()
}

/// Whether numbers fulfil a condition whose constants are not below 0, in words that have room for each product.
fn is_true(condition: &Condition, number: &impl Fn(Number) -> u64) -> bool {
    let term = |term: &Term| {
        let mut factors = vec![u64::try_from(term.factor).expect("not below 0")];
        factors.extend(term.numbers.iter().map(|n| number(*n)));
        long_product(&factors)
    };
    let at_most = |a: Vec<u64>, b: Vec<u64>| a.iter().rev().le(b.iter().rev());
    let constant = |value: &i128| term(&Term::of(*value, []));
    match condition {
        Condition::AtMost(a, b) => at_most(term(a), term(b)),
        Condition::Below(n, bound) => at_most(term(&Term::of(1, [*n])), constant(bound)),
        Condition::Multiple(n, of) => i128::from(number(*n)) % of == 0,
        Condition::Together(a, b, bound) => at_most(long_sum(&term(a), &term(b)), constant(bound)),
        Condition::More(a, more, n) => at_most(
            long_sum(&term(a), &constant(more)),
            term(&Term::of(1, [*n])),
        ),
        Condition::Sum(a, b, n) => at_most(long_sum(&term(a), &term(b)), term(&Term::of(1, [*n]))),
    }
}

/// The numbers of launches that random conditions are about.
const NUMBERS: [Number; 12] = [
    Number::Argument(0),
    Number::Argument(1),
    Number::Constant(0),
    Number::Field(4, 1),
    Number::Length(2),
    Number::Length(3),
    Number::Texels(5, Dim::X),
    Number::Levels(5),
    Number::Grid(Dim::X),
    Number::Grid(Dim::Y),
    Number::Groups(Dim::X),
    Number::Groups(Dim::Z),
];

/// Values near which arithmetic ends.
const EDGES: [u64; 14] = [
    0,
    1,
    2,
    3,
    16,
    255,
    1 << 16,
    (1 << 31) - 1,
    1 << 31,
    u32::MAX as u64,
    1 << 32,
    1 << 33,
    1 << 62,
    u64::MAX,
];

#[test]
fn looks_at_random_conditions_agree_with_long_arithmetic() {
    let mut random = Random(27);
    let any = |random: &mut Random, of: &[u64]| of[random.below(of.len() as u64) as usize];
    let term = |random: &mut Random, most: u64| {
        let many = random.below(most + 1);
        let factor = match random.below(3) {
            0 => any(random, &EDGES).into(),
            1 => i128::from(random.below(70)),
            _one => 1,
        };
        let numbers = (0..many).map(|_| NUMBERS[random.below(12) as usize]);
        Term::of(factor, numbers.collect::<Vec<_>>())
    };
    // By whether the numbers have 32 bits: how many launches fulfil their conditions, and how many do not.
    let mut seen = [[0; 2]; 2];
    for _ in 0..100_000 {
        let few = random.below(4) != 0;
        let edges = if few { &EDGES[..10] } else { &EDGES[..] };
        let mut values = [0; NUMBERS.len()];
        for value in &mut values {
            *value = match random.below(3) {
                0 => any(&mut random, edges),
                1 => random.below(1 << 20),
                _small => 1 + random.below(40),
            };
        }
        let mut conditions = Vec::new();
        for _ in 0..=random.below(4) {
            let number = random.below(12) as usize;
            let known = |n: Number| NUMBERS.iter().position(|k| *k == n);
            let value = |n: Number| values[known(n).expect("one of them")];
            let condition = match random.below(7) {
                0 => {
                    let (a, b) = (term(&mut random, 3), term(&mut random, 3));
                    Condition::AtMost(a, b)
                }
                1 => {
                    let (a, b) = (term(&mut random, 2), term(&mut random, 2));
                    let sum = long_sum(&[a.factor as u64], &[b.factor as u64]);
                    let near = i128::from(sum[0]) + i128::from(random.below(3)) - 1;
                    let bounds = [1 << 32, 1 << 31, near.clamp(0, u64::MAX.into())];
                    Condition::Together(a, b, bounds[random.below(3) as usize])
                }
                2 => {
                    let near = i128::from(value(NUMBERS[number])) + i128::from(random.below(3)) - 1;
                    let bounds = [
                        any(&mut random, &EDGES).into(),
                        near.clamp(0, u64::MAX.into()),
                    ];
                    Condition::Below(NUMBERS[number], bounds[random.below(2) as usize])
                }
                3 => {
                    let of = [1, 2, 3, 4, 7, 16, 1 << 31, 1 << 32][random.below(8) as usize];
                    Condition::Multiple(NUMBERS[number], of)
                }
                4 => {
                    let (a, b) = (term(&mut random, 2), term(&mut random, 1));
                    let of = |term: &Term| {
                        let numbers = term.numbers.iter();
                        numbers.fold(term.factor as u128, |product, n| {
                            product.saturating_mul(value(*n).into())
                        })
                    };
                    let near = of(&a)
                        .saturating_add(of(&b))
                        .saturating_add(random.below(3).into())
                        .saturating_sub(1);
                    let fits = if few { u32::MAX.into() } else { u64::MAX };
                    let mut numbers = a.numbers.iter().chain(&b.numbers);
                    if !numbers.any(|n| *n == NUMBERS[number]) {
                        values[number] = near.min(fits.into()) as u64;
                    }
                    Condition::Sum(a, b, NUMBERS[number])
                }
                // The number is made to be as much as the term and some more, or one more or less.
                edge => {
                    let more = match edge {
                        5 => 0,
                        _with_more => any(&mut random, &EDGES[..13]),
                    };
                    let term = term(&mut random, 2);
                    let numbers = term.numbers.iter();
                    let least = numbers.fold(term.factor as u128, |product, n| {
                        product.saturating_mul(value(*n).into())
                    });
                    let least = least.saturating_add(more.into());
                    let near = (least.saturating_add(random.below(3).into())).saturating_sub(1);
                    let fits = if few { u32::MAX.into() } else { u64::MAX };
                    if !term.numbers.contains(&NUMBERS[number]) {
                        values[number] = near.min(fits.into()) as u64;
                    }
                    match edge {
                        5 => Condition::at_most(term, NUMBERS[number]),
                        _with_more => Condition::More(term, more.into(), NUMBERS[number]),
                    }
                }
            };
            conditions.push(condition);
        }
        let number = |n: Number| match n {
            Number::Threadgroup(_) => Some(1),
            _other => Some(
                NUMBERS
                    .iter()
                    .position(|k| *k == n)
                    .map_or(1, |i| values[i]),
            ),
        };
        let known = |n| number(n).expect("each is known");
        let exact = conditions.iter().all(|c| is_true(c, &known));
        let found = Launches::new(&[], conditions.clone()).have(&number);
        let is_short = values.iter().all(|v| *v <= u32::MAX.into());
        let is_short = is_short
            && conditions.iter().all(|c| match c {
                Condition::AtMost(a, b) => a.factor.max(b.factor) < 1 << 31,
                _other => true,
            });
        // Products of more than 127 bits may be taken as too large.
        let agrees = found == exact || !found && !is_short;
        assert!(agrees, "{conditions:?} of {values:?}: {found}");
        seen[usize::from(is_short)][usize::from(found)] += 1;
        // A number that is not known is none that fulfils anything.
        let missing = NUMBERS[random.below(12) as usize];
        let without = |n: Number| (n != missing).then(|| known(n));
        let speaks = conditions
            .iter()
            .any(|c| c.holds_of(&|n| without(n).map(i128::from)).is_none());
        let speaks = speaks && exact && is_short;
        assert!(!speaks || !Launches::new(&[], conditions).have(&without));
    }
    assert!(seen.iter().flatten().all(|n| *n > 1000), "{seen:?}");
}
