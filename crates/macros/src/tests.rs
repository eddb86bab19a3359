//! What kernels do not have: each is one message on the word.

use proc_macro2::TokenStream;
use syn::Result;

use crate::body::Body;
use crate::foreign::Types;
use crate::function;

type Macro = fn(TokenStream, TokenStream) -> Result<TokenStream>;

/// The messages with the words that they are on. Errors in a body come in the text of the macro's
/// result, so that the kernel's type is there all the same; the words are then found by translating the
/// body alone.
fn messages(make: Macro, item: &str) -> Vec<(String, String)> {
    let tokens: TokenStream = item.parse().expect("words");
    let told = |error: syn::Error| {
        error
            .into_iter()
            .map(|one| {
                (
                    one.span().source_text().unwrap_or_default(),
                    one.to_string(),
                )
            })
            .collect()
    };
    match make(TokenStream::new(), tokens.clone()) {
        Err(error) => told(error),
        Ok(made) => {
            assert!(
                made.to_string().contains("compile_error"),
                "`{item}` was taken"
            );
            let function: syn::ItemFn = syn::parse2(tokens).expect("a function");
            let names = ["x", "y", "t"]
                .map(|name| (name.to_string(), false))
                .into_iter();
            let generics = &function.sig.generics;
            let types = Types::of(generics);
            let body = match item.starts_with("fn f(") {
                true => Body::of_device_fn(names, generics, types, None),
                false => Body::of_kernel(names, generics, types),
            };
            told(body.translate(&function.block).expect_err("the same error"))
        }
    }
}

fn refused(make: Macro, item: &str, word: &str, message: &str) {
    let found = messages(make, item);
    assert_eq!(found.len(), 1, "`{item}`: {found:?}");
    let (on, text) = &found[0];
    assert!(text.contains(message), "`{item}`: {text}");
    assert!(
        on.starts_with(word) || on == word,
        "`{item}`: on `{on}`, not on `{word}`"
    );
}

#[test]
fn what_a_kernel_does_not_have_is_one_message_on_the_word() {
    let cases = [
        (r#"fn k() -> u32 { 1 }"#, r#"u32"#, r#"gives nothing back"#),
        (r#"async fn k() {}"#, r#"async"#, r#"not `async`"#),
        (r#"unsafe fn k() {}"#, r#"unsafe"#, r#"unsafe"#),
        (r#"const fn k() {}"#, r#"const"#, r#"not a `const fn`"#),
        (
            r#"fn k(x: [f32; 4], y: &mut f32) {}"#,
            r#"&"#,
            r#"no references to one value"#,
        ),
        (
            r#"fn k(x: [f32; 4], y: &mut Shape) {}"#,
            r#"&"#,
            r#"a parameter is"#,
        ),
        (
            r#"fn k(x: (f32, u32)) {}"#,
            r#"("#,
            r#"a launch gives values one by one"#,
        ),
        (r#"fn k(self) {}"#, r#"self"#, r#"without `self`"#),
        (r#"fn k(x: &'a [f32]) {}"#, r#"'a"#, r#"no lifetimes"#),
        (r#"fn k<'a>() {}"#, r#"'a"#, r#"no lifetimes"#),
        (r#"fn k((a, b): u32) {}"#, r#"(a, b)"#, r#"is a name"#),
        (r#"fn k() { let s = "text"; }"#, r#""text""#, r#"no text"#),
        (
            r#"fn k(x: &[f32], y: &mut [f32]) { y[0] = sum(&x[1..4]); }"#,
            r#"1..4"#,
            r#"no parts of slices"#,
        ),
        (
            r#"fn k(x: &[f32], y: &mut [f32]) { let part = x[1..]; }"#,
            r#"1.."#,
            r#"no parts of slices"#,
        ),
        (
            r#"fn k() { eprintln!(); }"#,
            r#"eprintln"#,
            r#"a function under `#[device_fn]`"#,
        ),
        (
            r#"fn k(n: u32) { println!(n); }"#,
            r#"n"#,
            r#"the text to print stands here, in quotes"#,
        ),
        (
            r#"fn k() { let x; }"#,
            r#"let"#,
            r#"has a value from the start"#,
        ),
        (
            r#"fn k() { let Some(x) = y else { return; }; }"#,
            r#"else"#,
            r#"no `let ... else`"#,
        ),
        (
            r#"fn k() { let a = [1]; }"#,
            r#"[1]"#,
            r#"a vector of 2 to 4"#,
        ),
        (r#"fn k() { let f = |x| x; }"#, r#"|"#, r#"no closures"#),
        (r#"fn k() { let p = *x; }"#, r#"*"#, r#"no pointers"#),
        (
            r#"fn k() { let p = [1; 9]; }"#,
            r#"[1; 9]"#,
            r#"a vector of 2 to 4"#,
        ),
        (
            r#"fn k() { let p = S { 0: 1 }; }"#,
            r#"0"#,
            r#"fields of a kernel's struct have names"#,
        ),
        (r#"fn k() { f()?; }"#, r#"f"#, r#"there is no `?`"#),
        (
            r#"fn k() { unsafe { f() } }"#,
            r#"unsafe"#,
            r#"nothing in a kernel is unsafe"#,
        ),
        (r#"fn k() { if let 1 = x { } }"#, r#"let"#, r#"no `if let`"#),
        (
            r#"fn k() { while let 1 = x { } }"#,
            r#"let"#,
            r#"no `while let`"#,
        ),
        (
            r#"fn k(x: &[f32]) { for i in x { } }"#,
            r#"x"#,
            r#"`for` counts"#,
        ),
        (
            r#"fn k() { for i in (0..3).map(f) { } }"#,
            r#"map"#,
            r#"`for` counts"#,
        ),
    ];
    for (item, word, message) in cases {
        refused(function::kernel, item, word, message);
    }
}

#[test]
fn loops_and_calls_that_a_kernel_does_not_have_are_one_message_on_the_word() {
    let cases = [
        (
            r#"fn k() { for i in (0..3).step_by(2).rev() { } }"#,
            r#"step_by"#,
            r#"`for` counts"#,
        ),
        (
            r#"fn k() { 'a: loop { break 'b; } }"#,
            r#"break"#,
            r#"no loop to leave"#,
        ),
        (
            r#"fn k() { while x < 3 { break 3; } }"#,
            r#"3"#,
            r#"give nothing: `loop` gives a value"#,
        ),
        (
            r#"fn k() { 'a: loop { for i in 0..3 { break 'a 3; } } }"#,
            r#"3"#,
            r#"the innermost loop only"#,
        ),
        (r#"fn k() { break; }"#, r#"break"#, r#"no loop to leave"#),
        (
            r#"fn k() { continue; }"#,
            r#"continue"#,
            r#"no loop to go on with"#,
        ),
        (
            r#"fn k() { return; f(); }"#,
            r#"f"#,
            r#"nothing from here on runs"#,
        ),
        (
            r#"fn k() { match x { 1 => {} } }"#,
            r#"1"#,
            r#"is `_` or a name"#,
        ),
        (
            r#"fn k() { match x { 1 => {} _ if y => {} } }"#,
            r#"if"#,
            r#"has no condition"#,
        ),
        (
            r#"fn k() { match x { 1 if { y = 1; true } => {} _ => {} } }"#,
            r#"y"#,
            r#"changes no variable"#,
        ),
        (
            r#"fn k() { match x { n => {} _ => {} } }"#,
            r#"n"#,
            r#"it is the last arm"#,
        ),
        (
            r#"fn k() { match x { (n, ..) => {} _ => {} } }"#,
            r#"("#,
            r#"it is the last arm"#,
        ),
        (
            r#"fn k() { match x { (.., 1) => {} _ => {} } }"#,
            r#".."#,
            r#"write `_` for each part"#,
        ),
        (
            r#"fn k() { match x { (true, _) => {} (false, true) => {} } }"#,
            r#"("#,
            r#"the last arm of a kernel's `match`"#,
        ),
        (
            r#"fn k() { match x { (n, 1) | (1, n) => {} _ => {} } }"#,
            r#"n"#,
            r#"a name stands for the whole"#,
        ),
        (
            r#"fn k() { let (a, .., [b, c]) = y; }"#,
            r#".."#,
            r#"write `_` for each part"#,
        ),
        (
            r#"fn k() { match x { Some(y) => {} _ => {} } }"#,
            r#"Some"#,
            r#"compares with numbers"#,
        ),
        (r#"fn k() { fn f() {} }"#, r#"fn"#, r#"no items"#),
        (
            r#"fn k() { let a = t[1].0; }"#,
            r#"0"#,
            r#"memory of a kernel holds no tuples"#,
        ),
        (
            r#"fn k() { threadgroup!([f32; 4]); }"#,
            r#"threadgroup"#,
            r#"gets a name"#,
        ),
        (
            r#"fn k() { let t = threadgroup!(f32); }"#,
            r#"f32"#,
            r#"an element and a number"#,
        ),
        (
            r#"fn k() { let b = a && { x = 1; true }; }"#,
            r#"x"#,
            r#"changes no variable"#,
        ),
        (r#"fn k() { f() = 1; }"#, r#"f"#, r#"assigns to variables"#),
        (r#"fn k() { (f)(1); }"#, r#"(f)"#, r#"by their names"#),
    ];
    for (item, word, message) in cases {
        refused(function::kernel, item, word, message);
    }
}

#[test]
fn parameters_of_device_functions_are_what_kernels_hold() {
    refused(
        function::device_fn,
        "fn f(x: &mut f32) {}",
        "&",
        "no references to one value",
    );
}

#[test]
fn an_array_of_a_thread_is_no_parameter_of_a_kernel() {
    refused(
        function::kernel,
        "fn k(own: &mut ThreadArray<f32>) {}",
        "own",
        "is made in the kernel",
    );
}

#[test]
fn all_that_is_wrong_in_a_block_is_told_at_once() {
    let found = messages(function::kernel, "fn k() { let a = [1]; eprintln!(); }");
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn the_attribute_says_what_the_text_form_says() {
    let item = || "fn k() {}".parse::<TokenStream>().expect("words");
    for wrong in [
        "threads(4)",
        "threadgroup()",
        "threadgroup(1, 2, 3, 4)",
        "threadgroup",
        "threadgroup = 16",
        "64",
        "simdgroup(8, 8)",
        "strict, fast",
        "allow(races)",
        "strict fast",
        "threadgroup(1), threadgroup(2)",
    ] {
        let error = function::kernel(wrong.parse().expect("words"), item());
        assert!(error.is_err(), "`{wrong}` was taken");
    }
    let all =
        "threadgroup(16, 4), simdgroup(32), fast, allow(out_of_bounds_loads, out_of_bounds_stores)";
    let made = function::kernel(all.parse().expect("words"), item());
    let made = made.expect("a kernel").to_string();
    for part in [
        "[16 , 4 , 1]",
        "Some (32)",
        "FloatMode :: Fast",
        "allow_out_of_bounds_loads : true",
        "allow_out_of_bounds_stores : true",
    ] {
        assert!(made.contains(part), "{part} is not in {made}");
    }
}

fn data_refused(item: &str, message: &str) {
    let error = crate::data::kernel_data(item.parse().expect("words")).expect_err("an error");
    assert!(error.to_string().contains(message), "`{item}`: {error}");
}

#[test]
fn structs_of_kernels_lie_as_those_of_c() {
    data_refused("struct S { a: f32 }", "write `#[repr(C)]`");
    data_refused("#[repr(C, packed)] struct S { a: f32 }", "and no more");
    data_refused(
        "#[repr(C)] #[repr(align(16))] struct S { a: f32 }",
        "and no more",
    );
    data_refused("#[repr(C)] struct S(f32);", "have names");
    data_refused("#[repr(C)] struct S<T> { a: T }", "no parameters");
    data_refused("#[repr(C)] struct S {}", "has a field");
    data_refused("enum E { A }", "no enums");
    data_refused("#[repr(C)] struct S { a: Vec<f32> }", "allocates nothing");
    data_refused("#[repr(C)] struct S { a: &'static [f32] }", "no references");
    data_refused("#[repr(C)] struct S { a: [usize; 2] }", "no `usize`");
}

#[test]
fn function_constants_have_a_number() {
    let make = |attributes: &str, item: &str| {
        let [attributes, item] = [attributes, item].map(|t| t.parse().expect("words"));
        crate::data::function_constant(attributes, item)
    };
    assert!(make("", "const A: u32 = 1;").is_err());
    assert!(make("0", "static A: u32 = 1;").is_err());
    for good in ["const A: u32 = 1;", "pub const A: u32;"] {
        make("3", good).expect("a function constant");
    }
}

#[test]
fn what_the_standard_library_has_and_kernels_have_not_is_one_message_on_the_word() {
    let cases = [
        ("fn k(n: usize) {}", "usize", "write `u32` or `u64`"),
        ("fn k(x: &mut [bool]) {}", "bool", "write `u8`"),
        ("fn k(n: &[usize]) {}", "usize", "write `u32` or `u64`"),
        (
            "fn k(n: &Constants<isize>) {}",
            "isize",
            "write `u32` or `u64`",
        ),
        (
            "fn k(n: &mut ThreadgroupArray<i128>) {}",
            "i128",
            "up to 64 bits",
        ),
        ("fn k(n: [u128; 2]) {}", "u128", "up to 64 bits"),
        ("fn k(s: String) {}", "String", "no text"),
        ("fn k(s: &[char]) {}", "char", "no text"),
        ("fn k(x: Vec<f32>) {}", "Vec", "allocates nothing"),
        ("fn k(x: std::vec::Vec<f32>) {}", "std", "allocates nothing"),
        ("fn k(x: Option<f32>) {}", "Option", "a truth value beside"),
        ("fn k(x: &[&[f32]]) {}", "&", "`x[row * columns + column]`"),
        ("fn k(x: &mut [[f32]]) {}", "[f32]", "holds no references"),
        (
            "fn k(x: &[(f32, u32)]) {}",
            "(f32, u32)",
            "`#[derive(KernelData)]`",
        ),
        ("fn k(f: impl Fn(f32) -> f32) {}", "impl", "no closures"),
        ("fn k<F: Fn(f32) -> f32>() {}", "Fn", "no closures"),
        ("fn k<T>(x: &[T]) {}", "T", "`T: Number`"),
        (
            "fn k<T: Copy + std::ops::Add>(x: &[T]) {}",
            "T",
            "`T: Number`",
        ),
        ("fn k<T>(x: &[T]) where T: Copy {}", "T", "`T: Number`"),
        (
            "fn k() { let n: usize = 3; }",
            "usize",
            "write `u32` or `u64`",
        ),
        (
            "fn k() { let n: (f32, i128) = x; }",
            "i128",
            "up to 64 bits",
        ),
        (
            "fn k() { y[x as usize] = 0; }",
            "usize",
            "any integer serves as an index",
        ),
        (
            "fn k() { let t = threadgroup!([usize; 4]); }",
            "usize",
            "write `u32`",
        ),
        (
            "fn k() { let n = usize::MAX; }",
            "usize",
            "write `u32` or `u64`",
        ),
        ("fn k() { let v = Vec::new(); }", "Vec", "allocates nothing"),
        (
            "fn k() { let v = Vec::<f32>::new(); }",
            "Vec",
            "allocates nothing",
        ),
        (
            "fn k() { let s = std::string::String::new(); }",
            "std",
            "no text",
        ),
        ("fn k() { let o = Some(x); }", "Some", "no `Option`"),
        ("fn k() { let o = None; }", "None", "no `Option`"),
        (
            "fn k() { std::mem::swap(&mut y[0], &mut y[1]); }",
            "std",
            "`(a, b) = (b, a)`",
        ),
        (
            "fn k() { let m = std::cmp::max(x, y); }",
            "std",
            "`max(a, b)`",
        ),
    ];
    for (item, word, message) in cases {
        refused(function::kernel, item, word, message);
    }
    refused(
        function::device_fn,
        "fn f(n: u32) -> Option<u32> { n }",
        "Option",
        "a truth value beside",
    );
}

#[test]
fn what_numbers_and_arrays_have_and_kernels_have_not_is_one_message_on_the_word() {
    let cases = [
        (
            "fn k() { let s = x.checked_add(y); }",
            "checked_add",
            "wrap (A1)",
        ),
        (
            "fn k() { let s = x.strict_mul(y); }",
            "strict_mul",
            "wrap (A1)",
        ),
        (
            "fn k() { let s = x.overflowing_shl(y); }",
            "overflowing_shl",
            "`overflowing_mul` say",
        ),
        (
            "fn k() { let s = x.classify(); }",
            "classify",
            "`x.is_nan()`",
        ),
        (
            "fn k() { let s = x.to_le_bytes(); }",
            "to_le_bytes",
            "`as_type::<[u8; 4]>(x)`",
        ),
        ("fn k() { if x.lt(&y) {} }", "lt", "compare by `==`"),
        (
            "fn k() { let s = (x > y).then_some(1); }",
            "then_some",
            "`select(b, a, c)`",
        ),
        ("fn k() { let s = t.sum(); }", "sum", "no iterators"),
        ("fn k() { let s = t.max(); }", "max", "no iterators"),
        ("fn k() { t.fill(0.0); }", "fill", "write a loop"),
        ("fn k() { let s = f(x).map(y); }", "map", "no iterators"),
        (
            "fn k() { assert!(x); }",
            "assert",
            "what a launch has to fulfil",
        ),
        (
            "fn k() { let a = f(#[cfg(test)] x); }",
            "#",
            "stand on statements",
        ),
        (
            "fn k() { match x { #[cfg(test)] 1 => {} _ => {} } }",
            "#",
            "stand on statements",
        ),
        ("fn k() { #[cfg(test)] x = 1; }", "#", "stand on statements"),
        ("fn k(#[cfg(test)] n: u32) {}", "#", "no attributes"),
        ("fn k() { for i in x.iter() {} }", "iter", "`for` counts"),
        ("fn k() { let s = x.iter().sum(); }", "iter", "no iterators"),
        (
            "fn k() { let s = x.get(1).unwrap(); }",
            "get",
            "an element is `x[i]`",
        ),
        (
            "fn k() { let s = f(x).unwrap_or(0.0); }",
            "unwrap_or",
            "nothing in a kernel fails",
        ),
        ("struct S { a: f32 }", "struct", "is for a function"),
        ("fn k() { *x = 1.0; }", "*", "no pointers"),
        ("fn k() { *x += 1.0; }", "*", "no pointers"),
        (
            "fn k() { let mut v = 1; f(&mut v); }",
            "&",
            "gives a new value back",
        ),
    ];
    for (item, word, message) in cases {
        refused(function::kernel, item, word, message);
    }
}

#[test]
fn words_of_lines_arrays_and_signatures_are_told_at_once() {
    let cases = [
        (
            r#"fn k() { println!("{:.3}", x); }"#,
            r#""{"#,
            "without widths",
        ),
        (
            r#"fn k() { println!("{} {}", x); }"#,
            r#""{"#,
            "there is 1 value",
        ),
        (
            r#"fn k() { println!("{}"); }"#,
            r#""{"#,
            "there are 0 values",
        ),
        (
            r#"fn k() { println!("{}", x, y[0]); }"#,
            "y",
            "no place for this value",
        ),
        (
            r#"fn k() { println!("{a b}"); }"#,
            r#""{"#,
            "the name of a variable",
        ),
        (
            r#"fn k() { println!("a } b"); }"#,
            r#""a"#,
            "that no `{` opens",
        ),
        (
            r#"fn k() { println!("a { b"); }"#,
            r#""a"#,
            "that no `}` closes",
        ),
        (
            "fn k() { let t = threadgroup!([u32; 0]); }",
            "0",
            "at least one element",
        ),
        (
            "fn k() { let t = thread!([[u32; 0]; 4]); }",
            "0",
            "at least one element",
        ),
        ("fn k() { let v = vec![1]; }", "vec", "allocates nothing"),
        (
            "fn k() { if x { todo!() } }",
            "todo",
            "nothing in a kernel fails",
        ),
        ("fn k() { let a = cfg!(test); }", "cfg", "write it outside"),
        ("fn k(x: impl Number) {}", "impl", "`fn f<T: Number>(x: T)`"),
        ("fn k(x: impl Fn(f32)) {}", "impl", "no closures"),
        ("#[inline] fn k() {}", "inline", "leave `inline` out"),
        (
            "#[test] fn k() {}",
            "test",
            "a test is a function of the host",
        ),
        (
            "fn k() { let a = t.sample(x, y, Sampler { address: a, ..Sampler::LINEAR }); }",
            "Sampler",
            "a sampler is a Rust constant",
        ),
    ];
    for (item, word, message) in cases {
        refused(function::kernel, item, word, message);
    }
    let none = "threadgroup(8, 0)".parse().expect("words");
    let made = function::kernel(none, "fn k() {}".parse().expect("words"));
    let told = made.expect_err("an error").to_string();
    assert!(told.contains("at least one thread"), "{told}");
    for (number, told) in [
        ("-1", "from 0 to"),
        ("4294967296", "from 0 to"),
        ("x", "has a number"),
    ] {
        let item = "const N: u32;".parse().expect("words");
        let made = crate::data::function_constant(number.parse().expect("words"), item);
        let text = made.expect_err("an error").to_string();
        assert!(text.contains(told), "{text}");
    }
}

/// Words as a macro of the author's gives them: in a group without marks.
fn grouped(words: &str) -> proc_macro2::TokenTree {
    let words: TokenStream = words.parse().expect("words");
    proc_macro2::Group::new(proc_macro2::Delimiter::None, words).into()
}

#[test]
fn what_a_macro_puts_in_stays_together() {
    let (x, sum, ty) = (grouped("y[x]"), grouped("x + x"), grouped("&mut [u32]"));
    let number = grouped("u32");
    let item = quote::quote! {
        fn k(x: #number, y: #ty) {
            let z: #number = #sum * 2;
            #x = #sum * 3 as #number;
        }
    };
    let made = function::kernel(TokenStream::new(), item).expect("a kernel");
    let made = made.to_string();
    assert!(!made.contains("compile_error"), "{made}");
    assert!(made.contains("slice_mut"), "{made}");
    // As with parentheses, and not `x + x * 2`.
    let with_marks =
        "fn k(x: u32, y: &mut [u32]) { let z: u32 = (x + x) * 2; y[x] = (x + x) * 3 as u32; }";
    let with_marks = function::kernel(TokenStream::new(), with_marks.parse().expect("words"));
    let calls = |text: &str| text.matches("kernel :: at").count();
    let with_marks = with_marks.expect("a kernel").to_string();
    assert_eq!(calls(&made), calls(&with_marks), "{made}");
}

#[test]
fn names_like_those_of_the_standard_library_are_the_author_s_own() {
    for item in [
        "fn k(v: Vec) { let a: shapes::Option<f32> = shapes::Some(v); }",
        "fn k<T: Data + Copy>(x: T) { let a = shapes::f32::max(x); }",
        "fn k<T>(x: &[T]) where T: Float {}",
        "fn k<const N: usize>(x: &[[f32; N]]) { let a = u32::MAX; f(&mut x[0], &a, &mut x); }",
    ] {
        let made = function::kernel(TokenStream::new(), item.parse().expect("words"));
        let made = made.unwrap_or_else(|e| panic!("`{item}`: {e}")).to_string();
        assert!(!made.contains("compile_error"), "`{item}`: {made}");
    }
}

#[test]
fn a_mistake_in_a_requirement_is_one_message_on_the_word() {
    let cases = [
        ("n < lenght(y)", "lenght", "no function `lenght`"),
        ("n < length(z)", "z", "no parameter `z`"),
        ("n < length(n)", "n", "`n` is a value, expected a buffer"),
        ("n < width(y)", "y", "`y` is a buffer, expected a texture"),
        ("n < length(y, n)", ",", "of one parameter"),
        ("n < y", "y", "`length(y)` is how many"),
        ("n < y.len()", "len", "calls no methods"),
        ("y[1] < n", "y", "or of the first, `y[0]`"),
        ("n.x < 4", "n", "`n` is a value"),
        ("a < 4", "a", "`a` is `f32`, expected an integer"),
        ("t < 4", "t", "`t` is a texture"),
        ("n < 4.0", "4.0", "whole numbers"),
        ("n < 'c'", "'c'", "whole numbers"),
        ("n", "n", "a requirement compares"),
        ("n <", "<", "whole numbers"),
        ("n = 4", "=", "a requirement compares"),
        ("0 < n < 4", "<", "one comparison"),
        ("n < 4 && n > 1", "&&", "write `,`"),
        ("n < 4 || n > 1", "||", "no `||`"),
        ("n / 4 == 1", "/", "does not divide"),
        ("(n + 1) * 2 < 4", "(", "no parentheses"),
        ("n < 4 as u32", "as", "leave `as` out"),
        ("n % n == 0", "n", "a whole number"),
        ("grid < 4", "grid", "`grid.x`"),
        ("grid.w < 4", "grid", "`grid.x`"),
        ("ascending n", "n", "expected a buffer"),
        ("each i in y: i < n", "i", "`each i of index"),
        ("each i of n: i < 4", "n", "expected a buffer"),
    ];
    for (requirement, word, message) in cases {
        let item = format!(
            "#[requires({requirement})] fn k(y: &mut [u32], n: u32, a: f32, t: &Texture2d<f32>) {{}}"
        );
        let function: syn::ItemFn = syn::parse_str(&item).expect("a function");
        let error = function::required(&function).expect_err(requirement);
        assert_eq!(error.clone().into_iter().count(), 1, "{requirement}");
        let on = error.span().source_text().unwrap_or_default();
        let text = error.to_string();
        assert!(text.contains(message), "`{requirement}`: {text}");
        // Of `&&` rustc has the first mark.
        let is_there = !on.is_empty() && word.starts_with(&on);
        assert!(is_there, "`{requirement}`: on `{on}`: {text}");
    }
}

#[test]
fn a_requirement_names_parameters_and_what_rust_knows() {
    let cases = [
        ("n * n <= length(y), n % 4 == 0", 0),
        ("n < M, n % N == 0", 2),
        ("n < sizes::MOST * sizes::MOST + M", 2),
        ("each i of y: i < length(y), ascending y", 0),
        ("groups.x * 2 - 1 <= width(t), levels(t) == 1", 0),
        ("p.size.x <= 0x10, p[0].size.y != -1u32", 0),
        ("-n > -M", 1),
    ];
    for (requirements, names) in cases {
        let item = format!(
            "#[requires({requirements})] fn k(y: &[u32], p: &[P], n: u32, t: &Texture2d<f32>) {{}}"
        );
        let function: syn::ItemFn = syn::parse_str(&item).expect("a function");
        let made = function::required(&function)
            .expect(requirements)
            .to_string();
        assert_eq!(
            made.matches("Requirable").count(),
            names,
            "{requirements}: {made}"
        );
    }
}
