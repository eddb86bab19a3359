//! Long kernels: they need no more stack than short ones to be compiled, and too long ones are refused.

use std::time::Instant;

use invar_ir::text::parse;
use invar_ir::{Rule, Verified, verify};
use invar_llvm::{CompileOptions, Text, compile, emit, foreign};

/// A kernel with these lines, `#` in them replaced by the number of the iteration.
fn kernel(iterations: usize, lines: &str) -> Verified {
    let mut text = String::from(
        "kernel @k(%x: device read_write u32, %n: u32) {
             %i = thread_position_in_grid x
             %v0 = load %x[%i]\n",
    );
    for round in 1..=iterations {
        let before = (round - 1).to_string();
        let lines = lines.replace("#-", &before);
        text.push_str(&lines.replace('#', &round.to_string()));
    }
    text.push_str(&format!("store %x[%i], %v{iterations}\n}}\n"));
    verify(parse("long.inv", &text).expect("a text")).expect("a kernel")
}

fn options() -> CompileOptions {
    CompileOptions {
        threadgroup_size: Some([64, 1, 1]),
        ..CompileOptions::default()
    }
}

/// Compiles on a thread with as little stack as some have.
fn on_a_small_stack(module: Verified) {
    let thread = std::thread::Builder::new().stack_size(1 << 20);
    let compiled = thread.spawn(move || compile(&module, "k", &options()).map(|_| ()));
    let compiled = compiled.expect("a thread").join();
    compiled.expect("no panic").expect("an object");
}

#[test]
fn many_returns_need_no_more_stack() {
    on_a_small_stack(kernel(
        1000,
        "%v# = add %v#-, %n
         %l# = lt %v#, %n
         if %l# { return }\n",
    ));
}

#[test]
fn a_constant_of_very_many_sums_of_products_is_hidden() {
    let lines = |iterations: usize| -> String {
        let sums = (1..=iterations).map(|i| format!("%v{i} = fma %v{}, %s, %half\n", i - 1));
        sums.collect()
    };
    let hidden = |iterations: usize| {
        let text = format!(
            "kernel @k(%x: device read_write f32) {{
                 %i = thread_position_in_grid x
                 %s = load %x[%i]
                 %half = const f32 0.5
                 %v0 = add %s, %s
                 {}
                 store %x[%i], %v{iterations}
             }}",
            lines(iterations)
        );
        let module = verify(parse("sums.inv", &text).expect("a text")).expect("a kernel");
        let text = emit(&module, "k", &options(), Text::Llvm).expect("a text");
        let calls = text
            .lines()
            .filter(|line| line.contains("call") && line.contains("llvm.arithmetic.fence"));
        calls.count()
    };
    assert_eq!(hidden(100), 0);
    assert!(hidden(2000) > 0);
}

#[test]
fn a_vector_of_very_many_uses_gets_other_names() {
    let names = |iterations: usize| {
        let sums = (1..=iterations).map(|i| format!("%v{i} = sub %s, %v{}\n", i - 1));
        let text = format!(
            "kernel @k(%x: device read_write f32) {{
                 %i = thread_position_in_grid x
                 %s = load %x[%i]
                 %v0 = mul %s, %s
                 {}
                 store %x[%i], %v{iterations}
             }}",
            sums.collect::<String>()
        );
        let module = verify(parse("uses.inv", &text).expect("a text")).expect("a kernel");
        let text = emit(&module, "k", &options(), Text::Llvm).expect("a text");
        let calls = text
            .lines()
            .filter(|line| line.contains("call") && line.contains("llvm.arithmetic.fence"));
        calls.count()
    };
    assert_eq!(names(200), 0);
    assert!(names(2000) >= 7);
}

#[test]
fn what_is_longer_than_the_limit_is_refused_in_one_sentence() {
    let lines = "%v# = xor %v#-, %i\n";
    let refused = compile(&kernel(65_536, lines), "k", &options());
    let errors = refused.expect_err("too long").0;
    assert_eq!(errors[0].rule, Rule::LimitExceeded);
    assert!(
        errors[0]
            .message
            .contains("the limit of the CPU device is 65536"),
        "{}",
        errors[0].message
    );
}

#[test]
fn copies_beyond_the_limit_are_refused_before_they_are_written_out() {
    let fields: Vec<String> = (0..4096).map(|i| format!("f{i}: u32")).collect();
    let copies = "copy %y[%i], %x[%i], %n\n".repeat(9);
    let text = format!(
        "struct @S {{ {} }}
         kernel @k(%x: device read @S, %y: device write @S, %n: u32) {{
             %i = thread_position_in_grid x
             {copies}
         }}",
        fields.join(", ")
    );
    let module = verify(parse("copies.inv", &text).expect("a text")).expect("a kernel");
    let errors = compile(&module, "k", &options()).expect_err("too long").0;
    let expected = "kernel `k` has more than 73728 instructions, its functions, copies, prints and textures written \
                    out; the limit of the CPU device is 65536";
    assert_eq!(errors[0].message, expected);
}

#[test]
fn vectors_of_very_many_constants_are_made_of_numbers_in_long_kernels() {
    let numbers = |iterations: usize, most_improved: u32| {
        let stores = (1..=iterations).map(|i| {
            format!(
                "%c{i} = const u32 {i}\n%f{i} = eq %v, %c{i}\nif %f{i} {{ store %x[%i], %c{i} }}\n"
            )
        });
        let text = format!(
            "kernel @k(%x: device read_write u32) {{
                 %i = thread_position_in_grid x
                 %v = load %x[%i]
                 {}
             }}",
            stores.collect::<String>()
        );
        let module = verify(parse("constants.inv", &text).expect("a text")).expect("a kernel");
        let options = CompileOptions {
            most_improved,
            ..options()
        };
        let text = emit(&module, "k", &options, Text::Llvm).expect("a text");
        text.matches("asm \"\", \"=r,0\"").count()
    };
    assert_eq!(numbers(300, 600), 0);
    assert_eq!(numbers(700, u32::MAX), 0);
    assert!(numbers(700, 600) >= 700);
}

/// Functions that call one another, of which the first is there before the others, and after them.
#[test]
fn chains_of_calls_are_inlined_in_any_order_about_as_fast() {
    let own = |n: usize| {
        let below = match n {
            0 => "fadd float %x, 1.0".to_string(),
            n => format!("call float @f{}(float %x)", n - 1),
        };
        format!(
            "define float @f{n}(float %x) {{\n%y = {below}\n%z = fmul float %y, %x\nret float %z\n}}\n"
        )
    };
    let time = |functions: &[String], last: usize| {
        let text = functions.concat();
        let module = foreign::Module::read(text.as_bytes()).expect("LLVM IR");
        let start = Instant::now();
        let function = module.function(&format!("f{last}")).expect("it is there");
        // A product each, and the sum.
        assert_eq!(function.insts.len(), last + 3);
        start.elapsed()
    };
    let length = 1500;
    let mut functions: Vec<String> = (0..length).map(own).collect();
    let upwards = time(&functions, length - 1);
    functions.reverse();
    let downwards = time(&functions, length - 1);
    assert!(upwards < 10 * downwards, "{upwards:?} and {downwards:?}");
}
