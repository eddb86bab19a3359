//! Parsing and printing text: names, literals, spans, errors, limits, every operation.

use invar_ir::inst::MAX_NESTING;
use invar_ir::random::split_mix_64;
use invar_ir::{
    Access, Const, Dim, Imm, InstKind, KernelBuilder, Module, Op, Place, Position, Rule, Scalar,
    Swizzle, Type, Value, text,
};

fn parse(text: &str) -> Module {
    text::parse("test", text).unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

fn errors(text: &str) -> Vec<String> {
    match text::parse("test", text) {
        Ok(module) => panic!("it parses:\n{module}"),
        Err(errors) => errors.0.iter().map(ToString::to_string).collect(),
    }
}

/// Prints a module, checks that it parses to the same, and gives the text.
fn round_trip(module: &Module) -> String {
    let printed = module.to_string();
    let again = parse(&printed);
    assert!(again.same_up_to_spans(module), "{printed}\n---\n{again}");
    assert_eq!(again.to_string(), printed);
    printed
}

// ---- operations ----

/// Some operands, and what it takes beside them, that an operation accepts.
fn some_operands(op: Op) -> (Imm, Vec<Type>) {
    use Scalar::{Bool, F32, I8, I32, U32, U64};
    let matrix = |columns, rows| Type::Matrix {
        scalar: F32,
        columns,
        rows,
    };
    let mut types = vec![matrix(3, 3), matrix(2, 4)];
    for scalar in [F32, I32, U32, Bool, I8, U64] {
        types.push(Type::Scalar(scalar));
        types.extend((2..=4).map(|n| Type::Vector(scalar, n)));
    }
    let mut imms = vec![Imm::None];
    imms.extend(types.iter().map(|ty| Imm::Type(*ty)));
    imms.extend(Dim::ALL.map(Imm::Dim));
    imms.extend(Swizzle::parse("yx").map(Imm::Swizzle));
    let (least, most) = op.row().signature.operand_count();
    for count in least..=most {
        for imm in &imms {
            let mut choice = vec![0; count];
            loop {
                let args: Vec<Type> = choice.iter().map(|i: &usize| types[*i]).collect();
                if op.result_type(*imm, &args).is_ok() {
                    return (*imm, args);
                }
                // The next choice, as a number with one digit an operand.
                let Some(digit) = choice.iter().position(|i| i + 1 < types.len()) else {
                    break;
                };
                choice[..digit].fill(0);
                choice[digit] += 1;
            }
        }
    }
    panic!("`{op}` takes none of the operands tried");
}

#[test]
fn every_operation_prints_and_parses() {
    let mut count = 0;
    for op in Op::all() {
        let (imm, types) = some_operands(op);
        let mut k = KernelBuilder::new(Module::default(), op.name());
        let args: Vec<Value> = types.iter().map(|ty| k.scalar("a", *ty)).collect();
        k.op(op, imm, &args);
        let printed = round_trip(&k.finish().expect("operands that fit"));
        assert!(printed.contains(op.name()), "{printed}");
        count += 1;
    }
    assert!(count >= 20, "{count} operations");
}

#[test]
fn no_operation_has_the_name_of_an_instruction() {
    // The parser asks the op table last.
    let others = ["else", "kernel", "struct", "carry", "to", "row"];
    for word in InstKind::STRUCTURAL.into_iter().chain(others) {
        assert_eq!(Op::from_name(word), None, "{word}");
    }
    assert!(Op::all().all(|op| !op.name().starts_with("atomic_")));
}

// ---- names ----

#[test]
fn names_of_any_characters_survive() {
    let names = [
        "plain",
        "with.dot",
        "",
        "two words",
        "12",
        "größe",
        "\"",
        "\\",
        "a\nb",
        "\u{0}",
        "%",
        "%x",
        "x.1",
        ";",
        "\u{202e}",
        "if",
        "x",
        "x",
    ];
    let mut k = KernelBuilder::new(Module::default(), "names; and\nmore");
    let i = k.thread_position_in_grid(Dim::X);
    for name in names {
        let memory = k.buffer(name, Access::ReadWrite, Scalar::U32);
        let v = k.load(Place::element(memory, i));
        k.name(v, name);
        let array = k.alloc_thread(name, Scalar::U32, 4);
        k.store(Place::element(array, v), i);
        k.scalar(name, Type::F32);
    }
    round_trip(&k.finish().expect("a kernel"));
}

#[test]
fn unnamed_values_are_numbered_in_the_order_of_definition() {
    let text = "kernel @k() {\n    %7 = const u32 1\n    %3 = add %7, %7\n    add %3, %7\n}\n";
    assert_eq!(
        parse(text).to_string(),
        "kernel @k() {\n    %0 = const u32 1\n    %1 = add %0, %0\n    %2 = add %1, %0\n}\n"
    );
}

#[test]
fn an_empty_name_is_refused() {
    assert_eq!(
        errors("kernel @k() {\n    %\"\" = const u32 1\n}\n"),
        ["error[syntax] at 2:5: a name is empty; leave the quotes out"]
    );
}

// ---- literals ----

/// The bits that a literal of a type reads as.
fn bits(scalar: Scalar, literal: &str) -> Result<u64, String> {
    let text = format!("kernel @k() {{\n    %c = const {scalar} {literal}\n}}\n");
    let module = text::parse("test", &text).map_err(|e| e.0[0].message.clone())?;
    match module.kernels[0].body.insts[0].kind {
        InstKind::Const(Const { scalar: s, bits }) => {
            assert_eq!(s, scalar);
            Ok(bits)
        }
        ref other => panic!("{other:?}"),
    }
}

/// What a constant prints as.
fn printed(constants: impl IntoIterator<Item = Const>) -> Vec<String> {
    let mut k = KernelBuilder::new(Module::default(), "k");
    for constant in constants {
        k.constant(constant);
    }
    let module = k.finish().expect("constants");
    let text = round_trip(&module);
    let lines = text.lines().filter(|l| l.starts_with("    "));
    lines
        .filter_map(|l| l.split(' ').next_back().map(str::to_string))
        .collect()
}

#[test]
fn every_16_bit_float_reads_back_and_no_shorter_decimal_does() {
    for scalar in [Scalar::F16, Scalar::BF16] {
        let all = (0..=0xffff).map(|bits| Const { scalar, bits });
        for (i, text) in printed(all).iter().enumerate() {
            // A positive finite float: no decimal of one digit fewer is it.
            if i % 97 != 0 || !text.starts_with(|c: char| c.is_ascii_digit()) || text.contains("0x")
            {
                continue;
            }
            let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
            let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
            let all_digits = format!("{whole}{fraction}");
            let digits = all_digits.trim_matches('0');
            let exponent: i32 = exponent.parse().expect("an exponent");
            let dropped = all_digits.len() - all_digits.trim_end_matches('0').len();
            let exponent = exponent - fraction.len() as i32 + dropped as i32;
            if digits.len() < 2 {
                continue;
            }
            let shorter: u32 = digits[..digits.len() - 1].parse().expect("digits");
            for candidate in [shorter, shorter + 1] {
                let decimal = format!("{candidate}e{}", exponent + 1);
                assert_ne!(
                    bits(scalar, &decimal),
                    Ok(i as u64),
                    "{text} could be {decimal}"
                );
            }
        }
    }
}

#[test]
fn wider_floats_and_integers_read_back() {
    let mut state = 1;
    let mut random = || split_mix_64(&mut state);
    for scalar in Scalar::ALL {
        let mask = u64::MAX >> (64 - scalar.bits());
        let edges = [0, 1, mask, mask >> 1, (mask >> 1) + 1];
        let patterns = edges.into_iter().chain((0..2000).map(|_| random()));
        let constants: Vec<Const> = patterns
            .map(|bits| Const {
                scalar,
                bits: bits & mask,
            })
            .collect();
        printed(constants);
    }
}

#[test]
fn decimals_are_rounded_once_to_nearest_even() {
    // 1 + 2^-11 lies halfway between 1 and the next f16; 1 + 2^-8 likewise for bf16.
    for (scalar, half, one, next) in [
        (Scalar::F16, "1.00048828125", 0x3c00, 0x3c01),
        (Scalar::BF16, "1.00390625", 0x3f80, 0x3f81),
    ] {
        assert_eq!(bits(scalar, half), Ok(one));
        // Beyond what an f64 can tell from halfway.
        assert_eq!(
            bits(scalar, &format!("{half}00000000000000000000001")),
            Ok(next)
        );
        let below = format!("{}4999999999999999999999999", &half[..half.len() - 1]);
        assert_eq!(bits(scalar, &below), Ok(one));
    }
    // Halfway between the odd 1 + 2^-10 and the even 1 + 2^-9.
    assert_eq!(bits(Scalar::F16, "1.00146484375"), Ok(0x3c02));
    assert_eq!(
        bits(Scalar::F16, "1.001464843749999999999999999999"),
        Ok(0x3c01)
    );
    // Halfway between the largest f16 and what would follow it.
    assert_eq!(
        bits(Scalar::F16, "65519.99999999999999999999999"),
        Ok(0x7bff)
    );
    assert!(bits(Scalar::F16, "65520").is_err());
    // Half of the least subnormal.
    assert_eq!(bits(Scalar::F16, "2.98023223876953125e-8"), Ok(0));
    assert_eq!(
        bits(Scalar::F16, "2.980232238769531250000000000000000001e-8"),
        Ok(1)
    );
    assert_eq!(bits(Scalar::F16, "-1e-99999999999999999999999"), Ok(0x8000));
    // Other types round as the standard library does.
    assert_eq!(bits(Scalar::F32, "0.1"), Ok(u64::from(0.1f32.to_bits())));
    assert_eq!(bits(Scalar::F64, "0.1"), Ok(0.1f64.to_bits()));
}

#[test]
fn special_floats_have_words_and_bits() {
    assert_eq!(bits(Scalar::F32, "inf"), Ok(0x7f80_0000));
    assert_eq!(bits(Scalar::BF16, "-inf"), Ok(0xff80));
    assert_eq!(bits(Scalar::F16, "nan"), Ok(0x7e00));
    assert_eq!(
        bits(Scalar::F64, "0x7ff0000000000001"),
        Ok(0x7ff0_0000_0000_0001)
    );
    assert_eq!(bits(Scalar::I8, "0xff"), Ok(0xff));
    assert_eq!(bits(Scalar::F32, "-0"), Ok(0x8000_0000));
    let nan = Const {
        scalar: Scalar::F32,
        bits: 0xffc0_0001,
    };
    assert_eq!(printed([nan]), ["0xffc00001"]);
}

#[test]
fn literals_that_do_not_fit_say_so() {
    for (scalar, literal, message) in [
        (Scalar::U8, "256", "`256` does not fit u8 (0 to 255)"),
        (Scalar::U8, "-1", "`-1` does not fit u8 (0 to 255)"),
        (Scalar::I8, "-129", "`-129` does not fit i8 (-128 to 127)"),
        (
            Scalar::U64,
            "18446744073709551616",
            "`18446744073709551616` does not fit u64 (0 to 18446744073709551615)",
        ),
        (
            Scalar::U32,
            "1.0",
            "`1.0` is not an integer, which u32 needs",
        ),
        (
            Scalar::U32,
            "1e3",
            "`1e3` is not an integer, which u32 needs",
        ),
        (
            Scalar::F32,
            "1e39",
            "`1e39` is too large for f32; write `inf` if it is meant",
        ),
        (
            Scalar::F16,
            "0x12345",
            "`0x12345` has more than the 16 bits of f16",
        ),
        (
            Scalar::F32,
            "1.2.3",
            "`1.2.3` is not a number, which f32 needs",
        ),
        (Scalar::F32, "0xg", "`0xg` is not a number, which f32 needs"),
        (
            Scalar::Bool,
            "2",
            "`2` is not a bool; write `true` or `false`",
        ),
    ] {
        assert_eq!(bits(scalar, literal), Err(message.to_string()));
    }
}

// ---- spans ----

#[test]
fn spans_count_characters_and_cover_the_statement() {
    let text =
        "kernel @k(%größe: u32) {\n  %\"ä\" = add %größe, %größe ; sum\n    if %c {\n    }\n}\n"
            .replace("größe", "\"größe\"")
            .replace("%c", "%b")
            .replace("    if", "    %b = const bool true\n    if");
    let module = parse(&text);
    let kernel = &module.kernels[0];
    let at = |line, column| Position { line, column };
    assert_eq!(kernel.span.start, at(1, 1));
    assert_eq!(kernel.span.end, at(1, 25));
    assert_eq!(kernel.params[0].span.start, at(1, 11));
    let insts = &kernel.body.insts;
    assert_eq!(
        (insts[0].span.start, insts[0].span.end),
        (at(2, 3), at(2, 32))
    );
    // An `if` is its header; the `yield` that its end implies is the brace.
    assert_eq!(
        (insts[2].span.start, insts[2].span.end),
        (at(4, 5), at(4, 10))
    );
    let inner = insts[2].kind.regions()[0].insts[0].span;
    assert_eq!((inner.start, inner.end), (at(5, 5), at(5, 6)));
    assert_eq!(
        module.sources[0].line(2),
        Some("  %\"ä\" = add %\"größe\", %\"größe\" ; sum")
    );
}

// ---- errors ----

#[test]
fn an_undefined_name_suggests_one_that_is_near() {
    assert_eq!(
        errors("kernel @k(%total: u32) {\n    %a = add %totel, %total\n}\n"),
        [
            "error[undefined-name] at 2:14: `%totel` is not defined before this; did you mean `%total`?"
        ]
    );
    assert_eq!(
        errors("kernel @k(%total: u32) {\n    %a = add %x, %total\n}\n"),
        [
            "error[undefined-name] at 2:14: `%x` is not defined before this; define it in a line before, or make it a parameter"
        ]
    );
}

#[test]
fn an_unknown_operation_suggests_the_nearest() {
    assert_eq!(
        errors("kernel @k(%t: u32) {\n    %a = selct %t, %t\n}\n"),
        ["error[undefined-name] at 2:10: there is no operation `selct`; did you mean `select`?"]
    );
    assert_eq!(
        errors("kernel @k(%x: device read_write u32, %t: u32) {\n    atomic_ad %x[%t], %t\n}\n"),
        [
            "error[undefined-name] at 2:5: there is no operation `atomic_ad`; did you mean `atomic_add`?"
        ]
    );
}

#[test]
fn a_duplicate_points_at_the_first() {
    let text = "kernel @k() {\n    %a = const u32 1\n    %a = const u32 2\n}\n";
    let errors = text::parse("test", text).expect_err("a duplicate").0;
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].rule, Rule::DuplicateName);
    assert_eq!(errors[0].labels[0].span.start.line, 3);
    assert_eq!(errors[0].labels[1].span.start.line, 2);
}

#[test]
fn an_unclosed_block_is_reported_once_with_its_beginning() {
    let text = "kernel @k(%c: bool) {\n    if %c {\n        if %c {\nkernel @next() {\n}\n";
    let errors = text::parse("test", text).expect_err("an open block").0;
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].message, "expected `}`, found `kernel`");
    assert_eq!(
        errors[0].labels[1].span.start,
        Position {
            line: 3,
            column: 15
        }
    );
}

#[test]
fn one_mistake_is_one_error() {
    // Everything that follows from the broken line is silent.
    let text = "kernel @k(%n: u32, %x: device read_write u32) {
    %v = laod %x[%n]
    %w = add %v, %v
    %s, %t = for %i = %v to %w step %n carry(%a = %w, %b = %n) {
        %z = add %i, %a
        yield %z, %b
    }
    store %x[%s], %t
}
";
    assert_eq!(errors(text).len(), 1);
}

#[test]
fn a_broken_end_of_a_block_is_one_error() {
    let kernel = |line: &str| {
        format!(
            "kernel @k(%n: u32, %c: bool, %x: device write u32) {{
    %a, %b = if %c {{
        {line}
    }} else {{
        {line}
    }}
    %r = loop carry(%v = %n) {{
        %f = if %c {{ {line}
        }} else {{
            yield %v
        }}
        {line}
    }}
    store %x[%a], %r
}}
"
        )
    };
    for line in ["yeild %n, %n", "yield %n %n", "yield %nope, %n"] {
        let found = errors(&kernel(line));
        // A name that nothing defines is reported once.
        let expected = if line.contains("nope") { 1 } else { 4 };
        assert_eq!(found.len(), expected, "{line}: {found:#?}");
    }
}

#[test]
fn errors_come_in_the_order_of_the_text() {
    let text = "kernel @a(%n: u32, %m: i8) {
    %a = add %n, %m
    %b = addd %n, %n
    %c = add %m, %n
}
kernel @b( {
}
";
    let lines: Vec<u32> = text::parse("test", text)
        .expect_err("errors")
        .0
        .iter()
        .map(|e| e.span().start.line)
        .collect();
    assert_eq!(lines, [2, 3, 4, 6]);
}

// ---- limits ----

#[test]
fn errors_beyond_their_limit_are_counted() {
    let check = |text: String, total: usize| {
        let found = errors(&text);
        assert_eq!(found.len(), text::MAX_ERRORS + 1);
        let more = format!("{} more errors are not shown", total - text::MAX_ERRORS);
        assert!(found[text::MAX_ERRORS].contains(&more), "{found:?}");
    };
    let lines = "    nonsense\n".repeat(10_000);
    check(format!("kernel @k() {{\n{lines}}}\n"), 10_000);
    let lines = "    add %a, %b\n".repeat(10_000);
    check(format!("kernel @k(%a: i8, %b: u8) {{\n{lines}}}\n"), 10_000);
}

#[test]
fn blocks_nest_to_the_limit_and_no_further() {
    let nested = |depth: usize| {
        format!(
            "kernel @k(%c: bool) {{\n{}{}}}\n",
            "if %c {\n".repeat(depth),
            "}\n".repeat(depth)
        )
    };
    round_trip(&parse(&nested(MAX_NESTING)));
    for depth in [MAX_NESTING + 1, 200_000] {
        let errors = errors(&nested(depth));
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(
            errors[0].contains("blocks nest at most 64 deep"),
            "{errors:?}"
        );
    }
}

#[test]
fn the_builder_refuses_to_nest_further() {
    let build = |depth: usize| {
        let mut k = KernelBuilder::new(Module::default(), "k");
        let c = k.const_bool(true);
        (0..depth).for_each(|_| drop(k.open_region(&[])));
        for _ in 0..depth {
            let then = k.close_region();
            k.open_region(&[]);
            let otherwise = k.close_region();
            k.if_regions(c, then, otherwise);
        }
        k.finish()
    };
    assert!(build(MAX_NESTING).is_ok());
    let errors = build(MAX_NESTING + 1).expect_err("too deep").0;
    assert_eq!(errors[0].rule, Rule::LimitExceeded);
}

#[test]
fn arrays_nest_to_the_limit_and_no_further() {
    let nested = |depth: usize| {
        format!(
            "kernel @k(%x: device read f32{}) {{\n}}\n",
            "[1]".repeat(depth)
        )
    };
    round_trip(&parse(&nested(16)));
    for depth in [17, 1_000_000] {
        assert!(errors(&nested(depth))[0].contains("arrays nest at most 16 deep"));
    }
}

#[test]
fn a_text_that_is_too_long_is_refused() {
    let text = " ".repeat(text::MAX_TEXT_BYTES);
    assert!(text::parse("long", &text).is_ok());
    let errors = text::parse("long", &(text + " ")).expect_err("too long").0;
    assert_eq!(errors[0].rule, Rule::LimitExceeded);
}

#[test]
fn structs_that_multiply_cost_no_more_than_they_may_hold() {
    // Sixteen structs, each with two of the one before: 65,536 fields in the last.
    let mut text = "struct @s0 { a: f32 }\n".to_string();
    for i in 1..17 {
        text.push_str(&format!(
            "struct @s{i} {{ a: @s{}, b: @s{} }}\n",
            i - 1,
            i - 1
        ));
    }
    text.push_str("constant @c: @s16[1] = [1.0]\n");
    let found = errors(&text);
    let refused = |e: &String| e.contains("has no scalars or too many");
    assert!(found.iter().any(refused), "{found:?}");
    let empty = "struct @e { }\nconstant @c: @e[4294967295] = []\n";
    assert!(errors(empty).iter().any(refused));
}
