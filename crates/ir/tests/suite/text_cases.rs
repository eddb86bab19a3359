//! Run directives, expectations, the data of expressions, and comparisons.

use invar_ir::text::case::{Expr, ExprKind, Grid, Tolerance};
use invar_ir::text::data::{Mismatch, compare, evaluate, philox4x32_10, random_scalar};
use invar_ir::text::{self, case};
use invar_ir::{
    Diagnostic, ElementType, Position, Rule, Scalar, Severity, StructDef, StructId, Type,
};

fn case(directive: &str) -> case::RunCase {
    let mut cases = text::cases(directive).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(cases.len(), 1);
    cases.remove(0)
}

fn case_error(directive: &str) -> String {
    let errors = text::cases(directive).expect_err("a broken directive").0;
    assert_eq!(errors.len(), 1, "{errors:?}");
    errors[0].to_string()
}

/// The bytes of an expression, with files of two and of five bytes.
fn data_of(expr: &str, element: &ElementType, structs: &[StructDef]) -> Result<Vec<u8>, String> {
    let case = case(&format!("; run: @k(x = {expr}) grid(1)"));
    let mut files = |name: &str, _: &_| match name {
        "two.npy" => Ok(vec![7, 8]),
        "five.bin" => Ok(vec![1, 0, 2, 0, 9]),
        _ => Err(format!("there is no file `{name}`")),
    };
    evaluate(&case.args[0].1, element, structs, &mut files).map_err(|e| e.message)
}

fn data(expr: &str, scalar: Scalar) -> Vec<u8> {
    data_of(expr, &scalar.into(), &[]).unwrap_or_else(|error| panic!("{error}"))
}

fn f32s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

// ---- directives ----

#[test]
fn names_of_files_go_on_to_a_comma_or_a_parenthesis() {
    let text = "; run: @k(x = @./a-b.npy, y = @/p/8.npy , t = texture(r8unorm, 1, 1, @p/a (2.png), z = rev(@a b.npy), \
                w = texture(r8unorm, 1, 1, @\"a, b).png\")) grid(1) -> y == @p/y.npy, x ~= @x.npy(ulp 2)\n";
    let case = case(&format!("kernel @k() {{\n}}\n{text}"));
    let name = |expr: &Expr| match &expr.kind {
        ExprKind::File(name) => name.clone(),
        ExprKind::Rev(inner) => format!("rev {:?}", inner.kind),
        ExprKind::Texture { contents, .. } => {
            format!("{:?}", contents.as_ref().expect("contents").kind)
        }
        other => panic!("{other:?}"),
    };
    let names: Vec<String> = case.args.iter().map(|(_, expr)| name(expr)).collect();
    let expected = [
        "./a-b.npy",
        "/p/8.npy",
        "File(\"p/a (2.png\")",
        "rev File(\"a b.npy\")",
        "File(\"a, b).png\")",
    ];
    assert_eq!(names, expected);
    let expects: Vec<String> = case.expects.iter().map(|e| name(&e.value)).collect();
    assert_eq!(expects, ["p/y.npy", "x.npy"]);
}

#[test]
fn a_directive_with_everything_is_read() {
    let text = "kernel @k() {\n}\n; run: @k(a = random(8, 3), n = -7, x = [1, 2.5, inf, nan], y = zeros(4), z = fill(4, 0.5), \
         w = iota(4), p = @file.npy, q = @\"a/b.npy\", s = length(256), b = true) \
         groups(2, 3) threadgroup(32, 1, 2) const(TILE = 8, @fast = true) simdgroup(16) seed(9) \
         -> x == [1, 2], y ~= rev(iota(4)) (abs 1e-6, rel 1e-5), z ~= reference (ulp 2), w ~= @w.npy (abs 0)";
    let case = case(text);
    assert_eq!(case.kernel.name, "k");
    assert_eq!(case.kernel.span.start, Position { line: 3, column: 8 });
    let names: Vec<&str> = case
        .args
        .iter()
        .map(|(name, _)| name.name.as_str())
        .collect();
    assert_eq!(names, ["a", "n", "x", "y", "z", "w", "p", "q", "s", "b"]);
    let kinds: Vec<&ExprKind> = case.args.iter().map(|(_, e)| &e.kind).collect();
    assert_eq!(*kinds[0], ExprKind::Random { count: 8, seed: 3 });
    assert!(matches!(kinds[1], ExprKind::Scalar(l) if l.text == "-7"));
    assert!(matches!(kinds[2], ExprKind::List(l) if l.len() == 4));
    assert_eq!(*kinds[3], ExprKind::Zeros(4));
    assert!(matches!(kinds[4], ExprKind::Fill { count: 4, value } if value.text == "0.5"));
    assert_eq!(*kinds[5], ExprKind::Iota(4));
    assert_eq!(*kinds[6], ExprKind::File("file.npy".into()));
    assert_eq!(*kinds[7], ExprKind::File("a/b.npy".into()));
    assert_eq!(*kinds[8], ExprKind::Length(256));
    assert_eq!(case.grid, Grid::Threadgroups([2, 3, 1]));
    assert_eq!(case.threadgroup, Some([32, 1, 2]));
    assert_eq!(case.constants.len(), 2);
    assert_eq!(case.constants[1].0.name, "fast");
    assert_eq!((case.simdgroup, case.seed), (Some(16), Some(9)));
    let tolerances: Vec<Tolerance> = case.expects.iter().map(|e| e.tolerance).collect();
    assert_eq!(
        tolerances,
        [
            Tolerance::Exact,
            Tolerance::Within {
                abs: 1e-6,
                rel: 1e-5
            },
            Tolerance::Ulp(2),
            Tolerance::Within { abs: 0.0, rel: 0.0 },
        ]
    );
    assert!(
        matches!(&case.expects[1].value.kind, ExprKind::Rev(inner) if inner.kind == ExprKind::Iota(4))
    );
    assert_eq!(case.expects[2].value.kind, ExprKind::Reference);
}

#[test]
fn a_directive_needs_no_more_than_a_grid() {
    let case = case("; run: @k() grid(5)");
    assert_eq!(case.grid, Grid::Threads([5, 1, 1]));
    assert!(case.args.is_empty() && case.expects.is_empty() && case.threadgroup.is_none());
}

#[test]
fn a_directive_goes_on_over_lines() {
    let text = "\
; run: @k(x = [1, 2,
;              3], ; the third
;         n = 4)
;   grid(4)
;   -> x == [1],
;      n == [4]
; grid of threads: this is a comment
; run: @k() grid(1)
; run: @k() grid(2)
kernel @k() { ; run: @k() grid(3)
}
";
    let cases = text::cases(text).expect("four directives");
    assert_eq!(cases.len(), 4);
    assert_eq!(cases[0].args.len(), 2);
    assert_eq!(cases[0].expects.len(), 2);
    assert_eq!(
        cases[0].expects[1].span.start,
        Position { line: 6, column: 8 }
    );
    assert_eq!(cases[3].grid, Grid::Threads([3, 1, 1]));
}

#[test]
fn a_broken_directive_is_an_error() {
    for (directive, error) in [
        (
            "; run: k() grid(1)",
            "error[syntax] at 1:8: expected `@` and a kernel's name, found `k`",
        ),
        (
            "; run: @k()",
            "error[syntax] at 1:12: expected `grid(..)` or `groups(..)`, found the end of the text",
        ),
        (
            "; run: @k() threadgroup(4)\n; run",
            "error[syntax] at 1:27: expected `grid(..)` or `groups(..)`, found the end of the line",
        ),
        (
            "; run: @k() grid(1) groups(1)",
            "error[syntax] at 1:21: `groups`: the directive says that already",
        ),
        (
            "; run: @k() grid(1, 2, 3, 4)",
            "error[syntax] at 1:17: a grid has 1 to 3 numbers, found 4; write `(x)`, `(x, y)` or `(x, y, z)`",
        ),
        (
            "; run: @k() grid(4294967296)",
            "error[syntax] at 1:18: a grid: `4294967296` does not fit u32 (0 to 4294967295); write a whole number that fits u32",
        ),
        (
            "; run: @k() gird(1)",
            "error[syntax] at 1:13: there is no clause `gird`; did you mean `grid`?",
        ),
        (
            "; run: @k(x = rnadom(1)) grid(1)",
            "error[syntax] at 1:15: there is no data expression `rnadom`; did you mean `random`?",
        ),
        (
            "; run: @k(x = 1, x = 2) grid(1)",
            "error[duplicate-name] at 1:18: there is an argument `x` already",
        ),
        (
            "; run: @k() grid(1) -> x ~= zeros(1)",
            "error[syntax] at 1:37: expected how near `x` must be: `(abs 1e-6, rel 1e-5)` or `(ulp 2)`, found the end of the text",
        ),
        (
            "; run: @k() grid(1) -> x ~= zeros(1) (abs 1, ulp 2)",
            "error[syntax] at 1:38: a tolerance has `abs`, `rel` or both, or `ulp` alone",
        ),
        (
            "; run: @k() grid(1) -> x ~= zeros(1) (abs -1)",
            "error[syntax] at 1:43: a tolerance is finite and at least 0, not -1",
        ),
        (
            "; run: @k() grid(1) -> x = zeros(1)",
            "error[syntax] at 1:26: expected `==` or `~=`, found `=`",
        ),
        (
            "; run: @k() grid(1) x",
            "error[syntax] at 1:21: there is no clause `x`; the clauses are grid, groups, threadgroup, const, simdgroup and seed",
        ),
        (
            "; run: @k() grid(1) -> x == zeros(1) y",
            "error[syntax] at 1:38: expected the end of the directive, found `y`",
        ),
    ] {
        assert_eq!(case_error(directive), error);
    }
    let deep = format!(
        "; run: @k(x = {}zeros(1){}) grid(1)",
        "rev(".repeat(100_000),
        ")".repeat(100_000)
    );
    assert!(case_error(&deep).contains("`rev` nests at most 16 deep"));
}

#[test]
fn a_program_has_buffers_and_runs_on_them() {
    let text = "\
; program: x = iota(8), sums = zeros(2),
;          \"two words\" = [1]
;   then @sums(x = x, sums = sums, n = 8) grid(8) threadgroup(4)
;   then @scan(sums = sums, x = zeros(1)) groups(1) then @add(y = \"two words\") grid(8)
;   -> x == [1], sums ~= reference (ulp 1)
; then this is a comment
; then @so_is_this
; run: @k() grid(1)
; program: then = iota(1) then @k(x = then, y = zeros(2)) grid(1)
";
    let programs = text::programs(text).expect("two programs");
    let [first, second] = &programs[..] else {
        panic!("{programs:?}");
    };
    let names = |program: &case::Program| -> Vec<(String, usize)> {
        let passes = program.passes.iter();
        let names = passes.map(|p| (p.case.kernel.name.clone(), p.shared.len()));
        names.collect()
    };
    assert_eq!(first.buffers.len(), 3);
    assert_eq!(
        names(first),
        [("sums".into(), 2), ("scan".into(), 1), ("add".into(), 1)]
    );
    assert_eq!(first.passes[0].shared[1].1, 1);
    assert_eq!(first.passes[1].case.args.len(), 1);
    assert_eq!(first.passes[1].case.grid, Grid::Threadgroups([1, 1, 1]));
    assert_eq!(first.expects.len(), 2);
    assert_eq!(first.span.start, Position { line: 1, column: 3 });
    assert_eq!(names(second), [("k".into(), 1)]);
    assert_eq!(text::cases(text).expect("one run").len(), 1);
}

#[test]
fn a_broken_program_is_an_error() {
    for (directive, error) in [
        (
            "; program: then @k() grid(1)",
            "error[syntax] at 1:17: expected `=`, found `@k`",
        ),
        (
            "; program: x = iota(4)\n; @k(x = x) grid(1)",
            "error[syntax] at 1:23: expected `then @` and a kernel's name, found the end of the line",
        ),
        (
            "; program: x = iota(4) then @k(x = y) grid(1)",
            "error[undefined-name] at 1:36: the program has no buffer `y`; it has `x`",
        ),
        (
            "; program: x = iota(4) then @k(x = x) grid(1) -> y == [1]",
            "error[undefined-name] at 1:50: the program has no buffer `y`; it has `x`",
        ),
        (
            "; program: x = iota(4), x = iota(4) then @k(x = x) grid(1)",
            "error[duplicate-name] at 1:25: there is a buffer `x` already",
        ),
        (
            "; program: x = iota(4) then @k(x = x, x = x) grid(1)",
            "error[duplicate-name] at 1:39: there is an argument `x` already",
        ),
        (
            "; program: x = iota(4) then @k(x = x)",
            "error[syntax] at 1:38: expected `grid(..)` or `groups(..)`, found the end of the text",
        ),
        (
            "; run: @k(x = y) grid(1) then @l(x = y) grid(1)",
            "error[syntax] at 1:15: there is no data expression `y`; write a list, or name how the data is made, as in `iota(64)`",
        ),
        (
            "; run: @k() grid(1) then @l() grid(1)",
            "error[syntax] at 1:21: there is no clause `then`; kernels run one after the other in a program, as in `; program: x = iota(8) then @a(x = x) grid(8) then @b(x = x) grid(8)`",
        ),
        (
            "; run: @k() grid(1)\n;   then @l() grid(1)",
            "error[syntax] at 2:5: there is no clause `then`; kernels run one after the other in a program, as in `; program: x = iota(8) then @a(x = x) grid(8) then @b(x = x) grid(8)`",
        ),
        (
            "; program: x = iota(4) then @k(x = [\n",
            "error[syntax] at 1:37: expected a number, `true`, `false`, `inf` or `nan`, found the end of the text",
        ),
        (
            "; run: @k()  \n",
            "error[syntax] at 1:12: expected `grid(..)` or `groups(..)`, found the end of the text",
        ),
    ] {
        let errors = match text::programs(directive) {
            Ok(_) => text::cases(directive).expect_err("a broken directive").0,
            Err(errors) => errors.0,
        };
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert_eq!(errors[0].to_string(), error);
    }
}

// ---- expectations ----

#[test]
fn expectations_speak_of_their_line() {
    let text = "\
kernel @k() {
    barrier threadgroup []  ; error[type-mismatch]: one
    return
    ; warning[data-race]: two
; error[syntax]: three

}
; error[syntax] without a colon is not an expectation, but an error[syntax]: in the middle is a comment
";
    let first = text.lines().take(7).collect::<Vec<_>>().join("\n");
    let found = text::expectations(&first).expect("expectations");
    let found: Vec<(Severity, Rule, &str, u32)> = found
        .iter()
        .map(|e| (e.severity, e.rule, e.message.as_str(), e.line))
        .collect();
    assert_eq!(
        found,
        [
            (Severity::Error, Rule::TypeMismatch, "one", 2),
            (Severity::Warning, Rule::DataRace, "two", 3),
            (Severity::Error, Rule::Syntax, "three", 3),
        ]
    );
    // What looks like one and is none is an error.
    let errors = text::expectations(text)
        .expect_err("a broken expectation")
        .0;
    assert!(errors[0].message.contains("there is no rule"), "{errors:?}");
}

#[test]
fn an_unknown_rule_suggests_one() {
    let errors = text::expectations("kernel ; error[data-rave]: x")
        .expect_err("no rule")
        .0;
    assert_eq!(
        errors[0].to_string(),
        "error[syntax] at 1:8: there is no rule `data-rave`; did you mean `data-race`?"
    );
    // Above all code: of a diagnostic that has no place.
    let placeless = text::expectations("; error[data-race]: x\nkernel").expect("an expectation");
    assert_eq!(placeless[0].line, 0);
    let diagnostic = Diagnostic::error(Rule::DataRace, invar_ir::Span::NONE, "x");
    assert!(case::differences(&placeless, &[diagnostic]).is_empty());
}

#[test]
fn diagnostics_and_expectations_must_meet() {
    let text = "a\nb ; error[syntax]: found\n";
    let expected = text::expectations(text).expect("expectations");
    let at = |line| invar_ir::Span {
        source: Some(invar_ir::SourceId(0)),
        start: Position { line, column: 1 },
        ..invar_ir::Span::NONE
    };
    let right = Diagnostic::error(Rule::Syntax, at(2), "it is found here");
    assert!(case::differences(&expected, std::slice::from_ref(&right)).is_empty());
    for wrong in [
        Diagnostic::error(Rule::Syntax, at(1), "it is found here"),
        Diagnostic::error(Rule::TypeMismatch, at(2), "it is found here"),
        Diagnostic::error(Rule::Syntax, at(2), "it is here"),
        Diagnostic::warning(Rule::Syntax, at(2), "it is found here"),
    ] {
        assert_eq!(case::differences(&expected, &[wrong]).len(), 2);
    }
    assert_eq!(case::differences(&expected, &[]).len(), 1);
    assert_eq!(
        case::differences(&[], std::slice::from_ref(&right)).len(),
        1
    );
    // One for one, however they are ordered: the general expectation leaves the other its own.
    let twice = [right.clone(), right.clone()];
    assert_eq!(case::differences(&expected, &twice).len(), 1);
    let text = "a\nb ; error[syntax]: is\n; error[syntax]: is found\n";
    let expected = text::expectations(text).expect("expectations");
    assert_eq!(
        case::differences(&expected, std::slice::from_ref(&right)).len(),
        1
    );
    let other = Diagnostic::error(Rule::Syntax, at(2), "it is lost");
    for both in [[right.clone(), other.clone()], [other, right]] {
        assert!(case::differences(&expected, &both).is_empty());
    }
}

// ---- data ----

#[test]
fn philox_gives_the_known_answers() {
    // The vectors of Random123's `kat_vectors` for philox4x32 with 10 rounds.
    let ones = u32::MAX;
    for (counter, key, answer) in [
        (
            [0; 4],
            [0; 2],
            [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8],
        ),
        (
            [ones; 4],
            [ones; 2],
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd],
        ),
        (
            [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
            [0xa409_3822, 0x299f_31d0],
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
        ),
    ] {
        assert_eq!(philox4x32_10(counter, key), answer);
    }
}

#[test]
fn random_scalars_are_those_of_another_implementation() {
    // Computed in Python from the rules as documented: bool, 8, 16, 32 and 64 bits, f16, bf16, f32,
    // f64.
    let seed = 0x1234_5678_9abc_def0;
    let golden: [(u64, [u64; 9]); 4] = [
        (
            0x0,
            [
                0,
                0x44,
                0x9b44,
                0x92c9b44,
                0x78384bc0092c9b44,
                0x2890,
                0x3d10,
                0x3d12c9b0,
                0x3fde0e12f0024b26,
            ],
        ),
        (
            0x1,
            [
                0,
                0x9a,
                0x999a,
                0x389d999a,
                0x609cf517389d999a,
                0x3310,
                0x3e60,
                0x3e627664,
                0x3fd8273d45ce2766,
            ],
        ),
        (
            0x5,
            [
                0,
                0x84,
                0x4984,
                0x6e774984,
                0xbd12799e6e774984,
                0x36e6,
                0x3edc,
                0x3edcee92,
                0x3fe7a24f33cdcee9,
            ],
        ),
        (
            0x200000007,
            [
                0,
                0x50,
                0xc650,
                0xae39c650,
                0xc54c5d6cae39c650,
                0x3971,
                0x3f2e,
                0x3f2e39c6,
                0x3fe8a98bad95c738,
            ],
        ),
    ];
    use Scalar::{BF16, Bool, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
    let columns: [&[Scalar]; 9] = [
        &[Bool],
        &[I8, U8],
        &[I16, U16],
        &[I32, U32],
        &[I64, U64],
        &[F16],
        &[BF16],
        &[F32],
        &[F64],
    ];
    for (index, values) in golden {
        for (scalars, bits) in columns.iter().zip(values) {
            for scalar in *scalars {
                let value = random_scalar(*scalar, seed, index);
                assert_eq!(
                    (value.scalar, value.bits),
                    (*scalar, bits),
                    "{scalar} {index}"
                );
            }
        }
    }
}

#[test]
fn random_data_covers_its_range() {
    let mut both = [false; 2];
    for index in 0..2000 {
        both[random_scalar(Scalar::Bool, 1, index).bits as usize] = true;
        for scalar in [Scalar::F16, Scalar::BF16, Scalar::F32, Scalar::F64] {
            let one = match scalar {
                Scalar::F16 => 0x3c00,
                Scalar::BF16 => 0x3f80,
                Scalar::F32 => 0x3f80_0000,
                _ => 0x3ff0_0000_0000_0000,
            };
            // The bits of floats from 0 on are in their order: below 1 and without a sign.
            assert!(random_scalar(scalar, 1, index).bits < one);
        }
    }
    assert_eq!(both, [true; 2]);
    let bytes = data("random(4096, 2)", Scalar::U8);
    let distinct: std::collections::HashSet<&u8> = bytes.iter().collect();
    assert_eq!(distinct.len(), 256);
}

#[test]
fn expressions_stand_for_data() {
    assert_eq!(data("iota(3)", Scalar::U16), [0, 0, 1, 0, 2, 0]);
    assert_eq!(data("iota(3)", Scalar::F32), f32s(&[0.0, 1.0, 2.0]));
    assert_eq!(data("iota(3)", Scalar::Bool), [0, 1, 1]);
    assert_eq!(
        data("iota(258)", Scalar::I8)[126..=129],
        [126, 127, 128, 129]
    );
    assert_eq!(data("iota(258)", Scalar::U8)[255..], [255, 0, 1]);
    // From 2048 on an f16 is even, from 65520 on infinite.
    let halves = data("iota(65521)", Scalar::F16);
    assert_eq!(halves[2 * 2049..2 * 2050], 0x6800u16.to_le_bytes());
    assert_eq!(halves[2 * 2051..2 * 2052], 0x6802u16.to_le_bytes());
    assert_eq!(halves[2 * 65519..2 * 65520], 0x7bffu16.to_le_bytes());
    assert_eq!(halves[2 * 65520..], 0x7c00u16.to_le_bytes());
    assert_eq!(data("zeros(2)", Scalar::F64), [0; 16]);
    assert_eq!(data("fill(2, -1)", Scalar::I16), [255; 4]);
    assert_eq!(data("fill(2, true)", Scalar::Bool), [1, 1]);
    assert_eq!(
        data("[1, -2, inf]", Scalar::F32),
        f32s(&[1.0, -2.0, f32::INFINITY])
    );
    assert_eq!(data("rev([1, 2, 3])", Scalar::U8), [3, 2, 1]);
    assert_eq!(data("rev(rev(iota(4)))", Scalar::U8), [0, 1, 2, 3]);
    assert_eq!(data("@two.npy", Scalar::U8), [7, 8]);
    // Nothing reaches what is left behind the last whole element.
    assert_eq!(data("@five.bin", Scalar::U16), [1, 0, 2, 0, 9]);
    assert_eq!(data("rev(@five.bin)", Scalar::U16), [2, 0, 1, 0, 9]);
    assert_eq!(data("7", Scalar::I32), 7i32.to_le_bytes());
    assert_eq!(
        data("random(2, 0)", Scalar::U32),
        data("random(2)", Scalar::U32)
    );
    assert_ne!(
        data("random(2, 1)", Scalar::U32),
        data("random(2)", Scalar::U32)
    );
    assert_eq!(data("random(1)", Scalar::U32), 0x6627_e8d5u32.to_le_bytes());
    assert_eq!(data("[]", Scalar::F32), []);
}

#[test]
fn elements_of_several_scalars_number_them_through() {
    // u8 at 0, padding, f32x2 at 4 and 8: twelve bytes, three scalars.
    let structs = [StructDef {
        name: "pair".into(),
        span: invar_ir::Span::NONE,
        fields: vec![
            ("tag".into(), Scalar::U8.into()),
            ("at".into(), Type::Vector(Scalar::F32, 2).into()),
        ],
    }];
    let pair = ElementType::Struct(StructId(0));
    let element = |tag: u8, x: f32, y: f32| {
        let mut bytes = vec![tag, 0, 0, 0];
        bytes.extend(f32s(&[x, y]));
        bytes
    };
    let iota = data_of("iota(2)", &pair, &structs).expect("data");
    assert_eq!(iota, [element(0, 1.0, 2.0), element(3, 4.0, 5.0)].concat());
    let list = data_of("[1, 0.5, 2, 3, 4, 5]", &pair, &structs).expect("data");
    assert_eq!(list, [element(1, 0.5, 2.0), element(3, 4.0, 5.0)].concat());
    let reversed = data_of("rev(iota(2))", &pair, &structs).expect("data");
    assert_eq!(
        reversed,
        [element(3, 4.0, 5.0), element(0, 1.0, 2.0)].concat()
    );
    let random = data_of("random(2, 5)", &pair, &structs).expect("data");
    assert_eq!(random[0], random_scalar(Scalar::U8, 5, 0).bits as u8);
    let last = random_scalar(Scalar::F32, 5, 5).bits as u32;
    assert_eq!(random[20..], last.to_le_bytes());
}

#[test]
fn data_that_does_not_fit_says_so() {
    let structs = [StructDef {
        name: "empty".into(),
        span: invar_ir::Span::NONE,
        fields: Vec::new(),
    }];
    let f32x2 = ElementType::from(Type::Vector(Scalar::F32, 2));
    for (expr, element, error) in [
        (
            "[1, 2, 3]",
            &f32x2,
            "a list of 3 scalars is not a whole number of f32x2, of 2 scalars each",
        ),
        (
            "1",
            &f32x2,
            "f32x2 is made of 2 scalars: write a list of them",
        ),
        (
            "[1.5]",
            &Scalar::U8.into(),
            "`1.5` is not an integer, which u8 needs",
        ),
        (
            "fill(2, 300)",
            &Scalar::U8.into(),
            "`300` does not fit u8 (0 to 255)",
        ),
        (
            "zeros(1073741825)",
            &Scalar::U8.into(),
            "1073741825 elements are more than 1073741824 bytes",
        ),
        (
            "zeros(18446744073709551615)",
            &Scalar::F64.into(),
            "18446744073709551615 elements are more than 1073741824 bytes",
        ),
        (
            "@three.npy",
            &Scalar::U8.into(),
            "there is no file `three.npy`",
        ),
        (
            "length(4)",
            &Scalar::U8.into(),
            "`length` is for threadgroup parameters, which have no data of their own",
        ),
        (
            "reference",
            &Scalar::U8.into(),
            "`reference` stands only after `->`: it is what the reference machine computes",
        ),
        (
            "zeros(1)",
            &ElementType::Struct(StructId(0)),
            "there is no data of type @empty",
        ),
        (
            "zeros(1)",
            &Type::Event.into(),
            "there is no data of type event",
        ),
    ] {
        assert_eq!(
            data_of(expr, element, &structs),
            Err(error.to_string()),
            "{expr}"
        );
    }
}

// ---- comparisons ----

#[test]
fn equality_is_of_bytes_but_for_nans() {
    let f32 = ElementType::from(Scalar::F32);
    let same = |a: &[u32], b: &[u32]| {
        let bytes = |v: &[u32]| v.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
        compare(Tolerance::Exact, &bytes(a), &bytes(b), &f32, &[]).is_ok()
    };
    assert!(same(&[0x3f80_0000], &[0x3f80_0000]));
    assert!(!same(&[0], &[0x8000_0000]), "zeros of both signs");
    assert!(same(&[0x7fc0_0000], &[0xff80_0001]), "NaNs of other bits");
    assert!(!same(&[0x7fc0_0000], &[0x7f80_0000]), "a NaN and infinity");
    // As integers the same bits differ.
    let u32 = ElementType::from(Scalar::U32);
    let result = compare(
        Tolerance::Exact,
        &[0, 0, 0xc0, 0x7f],
        &[1, 0, 0x80, 0xff],
        &u32,
        &[],
    );
    assert!(result.is_err());
}

#[test]
fn a_mismatch_says_where_and_how_many() {
    let expected = f32s(&[1.0, 2.0, 3.0, 4.0]);
    let actual = f32s(&[1.0, 2.5, 3.0, f32::NAN]);
    let scalar = Scalar::F32.into();
    let mismatch = compare(Tolerance::Exact, &expected, &actual, &scalar, &[]);
    assert_eq!(
        mismatch.expect_err("a mismatch").to_string(),
        "element 1: expected 2.0, found 2.5 (2 of 4 scalars differ)"
    );
    let pair = Type::Vector(Scalar::F32, 2).into();
    let mismatch =
        compare(Tolerance::Exact, &expected, &actual, &pair, &[]).expect_err("a mismatch");
    assert_eq!(
        mismatch.to_string(),
        "element 0, scalar 1: expected 2.0, found 2.5 (2 of 4 scalars differ)"
    );
    let mismatch = compare(Tolerance::Exact, &expected, &actual[..8], &scalar, &[]);
    assert_eq!(
        mismatch,
        Err(Mismatch::Length {
            expected: 4,
            actual: 2
        })
    );
    assert_eq!(
        mismatch.expect_err("a mismatch").to_string(),
        "expected 4 elements, found 2"
    );
    let bools =
        compare(Tolerance::Exact, &[1], &[2], &Scalar::Bool.into(), &[]).expect_err("a mismatch");
    assert_eq!(
        bools.to_string(),
        "element 0: expected true, found 0x02 (1 of 1 scalars differ)"
    );
}

#[test]
fn padding_is_not_compared() {
    let structs = [StructDef {
        name: "padded".into(),
        span: invar_ir::Span::NONE,
        fields: vec![
            ("a".into(), Scalar::U8.into()),
            ("b".into(), Scalar::U16.into()),
        ],
    }];
    let element = ElementType::Struct(StructId(0));
    assert_eq!(
        compare(
            Tolerance::Exact,
            &[1, 0, 2, 0],
            &[1, 9, 2, 0],
            &element,
            &structs
        ),
        Ok(())
    );
    assert!(
        compare(
            Tolerance::Exact,
            &[1, 0, 2, 0],
            &[1, 0, 2, 1],
            &element,
            &structs
        )
        .is_err()
    );
}

#[test]
fn tolerances_hold_up_to_their_bound() {
    let near = |tolerance, e: f32, a: f32| {
        compare(
            tolerance,
            &e.to_le_bytes(),
            &a.to_le_bytes(),
            &Scalar::F32.into(),
            &[],
        )
        .is_ok()
    };
    let abs = |abs| Tolerance::Within { abs, rel: 0.0 };
    assert!(near(abs(0.5), 1.0, 1.5) && !near(abs(0.5), 1.0, 1.5000001));
    assert!(near(abs(0.5), 1.0, 0.5) && !near(abs(0.5), 1.0, 0.49999997));
    let rel = |rel| Tolerance::Within { abs: 0.0, rel };
    assert!(near(rel(0.5), -4.0, -6.0) && !near(rel(0.5), -4.0, -6.0000005));
    // Relative to what is expected, not to what is found.
    assert!(!near(rel(0.5), 1.0, 2.0) && near(rel(0.5), 2.0, 1.0));
    let both = Tolerance::Within { abs: 1.0, rel: 0.5 };
    assert!(near(both, 4.0, 7.0) && !near(both, 4.0, 7.0000005));
    // Ulps, through zero and across a power of two.
    let up = |v: f32, n: u32| f32::from_bits(v.to_bits() + n);
    assert!(near(Tolerance::Ulp(2), 1.0, up(1.0, 2)) && !near(Tolerance::Ulp(2), 1.0, up(1.0, 3)));
    assert!(near(Tolerance::Ulp(0), 0.0, -0.0) && near(Tolerance::Ulp(2), up(0.0, 1), -up(0.0, 1)));
    assert!(!near(Tolerance::Ulp(1), up(0.0, 1), -up(0.0, 1)));
    // Infinities and NaNs only equal themselves.
    for tolerance in [Tolerance::Ulp(u64::MAX), abs(f64::MAX), rel(f64::MAX)] {
        assert!(!near(tolerance, f32::INFINITY, f32::MAX) && !near(tolerance, 1.0, f32::INFINITY));
        assert!(!near(tolerance, f32::INFINITY, f32::NEG_INFINITY));
        assert!(near(tolerance, f32::INFINITY, f32::INFINITY));
        assert!(near(tolerance, f32::NAN, -f32::NAN) && !near(tolerance, f32::NAN, 1.0));
    }
    // Every float type, and integers bit by bit under any tolerance.
    for (scalar, e, a) in [
        (Scalar::F16, 0x3c00u16, 0x3c01u16),
        (Scalar::BF16, 0x3f80, 0x3f81),
    ] {
        let at = |n| {
            compare(
                Tolerance::Ulp(n),
                &e.to_le_bytes(),
                &a.to_le_bytes(),
                &scalar.into(),
                &[],
            )
        };
        assert!(at(1).is_ok() && at(0).is_err());
    }
    assert!(compare(abs(10.0), &[1], &[2], &Scalar::U8.into(), &[]).is_err());
}
