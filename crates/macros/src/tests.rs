//! What kernels do not have: each is one message on the word.

use proc_macro2::TokenStream;
use syn::Result;

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
            let names = ["x", "y", "t"].map(String::from).into_iter();
            let body = match item.starts_with("fn f(") {
                true => crate::body::Body::of_device_fn(names),
                false => crate::body::Body::of_kernel(names),
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
        (r#"const fn k() {}"#, r#"const"#, r#"no `const fn`"#),
        (
            r#"fn k(x: Vec<[f32]>, y: &mut f32) {}"#,
            r#"&"#,
            r#"a parameter is"#,
        ),
        (r#"fn k(self) {}"#, r#"self"#, r#"without `self`"#),
        (r#"fn k(x: &'a [f32]) {}"#, r#"'a"#, r#"no lifetimes"#),
        (r#"fn k<'a>() {}"#, r#"'a"#, r#"no lifetimes"#),
        (r#"fn k((a, b): u32) {}"#, r#"(a, b)"#, r#"is a name"#),
        (r#"fn k() { let s = "text"; }"#, r#""text""#, r#"no text"#),
        (
            r#"fn k() { println!(); }"#,
            r#"println"#,
            r#"cannot call the macro `println!`"#,
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
            r#"fn k() { let a = [1, 2]; }"#,
            r#"[1, 2]"#,
            r#"thread!([f32; 4])"#,
        ),
        (r#"fn k() { let f = |x| x; }"#, r#"|"#, r#"no closures"#),
        (r#"fn k() { let p = *x; }"#, r#"*"#, r#"no pointers"#),
        (r#"fn k() { let p = S { a: 1 }; }"#, r#"S"#, r#"no structs"#),
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
        (r#"fn k() { for i in x { } }"#, r#"x"#, r#"`for` counts"#),
        (
            r#"fn k() { for i in 0..=3 { } }"#,
            r#"..="#,
            r#"write `..`"#,
        ),
        (
            r#"fn k() { for i in (0..3).rev() { } }"#,
            r#"rev"#,
            r#"`for` counts"#,
        ),
        (
            r#"fn k() { 'a: loop { break 'a; } }"#,
            r#"'a"#,
            r#"no labels"#,
        ),
        (
            r#"fn k() { loop { break 3; } }"#,
            r#"3"#,
            r#"gives nothing"#,
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
            r#"fn k() { match x { 1 if y => {} _ => {} } }"#,
            r#"if"#,
            r#"no conditions"#,
        ),
        (
            r#"fn k() { match x { Some(y) => {} _ => {} } }"#,
            r#"Some"#,
            r#"compares with integers"#,
        ),
        (r#"fn k() { fn f() {} }"#, r#"fn"#, r#"no items"#),
        (
            r#"fn k() { let a = t.0; }"#,
            r#"0"#,
            r#"take a tuple apart"#,
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
fn a_device_function_gives_its_last_expression() {
    refused(
        function::device_fn,
        "fn f() { return; }",
        "return",
        "its last expression",
    );
    refused(
        function::device_fn,
        "fn f(x: &mut f32) {}",
        "&",
        "a parameter is",
    );
}

#[test]
fn all_that_is_wrong_in_a_block_is_told_at_once() {
    let found = messages(function::kernel, "fn k() { let a = [1]; println!(); }");
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn the_attribute_takes_a_threadgroup_size_and_nothing_else() {
    let item = || "fn k() {}".parse::<TokenStream>().expect("words");
    for wrong in [
        "threads(4)",
        "threadgroup()",
        "threadgroup(1, 2, 3, 4)",
        "threadgroup",
    ] {
        let error = function::kernel(wrong.parse().expect("words"), item());
        assert!(error.is_err(), "`{wrong}` was taken");
    }
    let made = function::kernel("threadgroup(16, 4)".parse().expect("words"), item());
    assert!(made.expect("a kernel").to_string().contains("[16 , 4 , 1]"));
}
