//! The kernels of the examples: what each gives as a Rust function is what it gives as text, and it is hardly
//! longer than in Python. That Python's form gives the same too, `python/tests/test_examples.py` shows.

use std::path::Path;

use invar::Device;

#[path = "../../../../benches/src/pairs.rs"]
mod pairs;

fn same_on(device: &Device) {
    let all = pairs::pairs(device, false).expect("kernels");
    assert_eq!(all.len(), EXAMPLES.len());
    for mut pair in all {
        let name = pair.name().to_string();
        pair.rust().unwrap_or_else(|e| panic!("{name}: {e}"));
        pair.text().unwrap_or_else(|e| panic!("{name}: {e}"));
        let [rust, text] = pair.outputs().expect("bytes");
        assert!(rust.iter().any(|byte| *byte != 0), "{name} wrote nothing");
        assert!(rust == text, "{name}: the two forms do not agree");
    }
}

#[test]
fn both_forms_give_the_same_bytes_on_the_processor() {
    same_on(&Device::named("cpu").expect("the processor"));
}

#[test]
fn both_forms_give_the_same_bytes_under_all_checkers() {
    same_on(&Device::checked());
}

/// The examples, and the functions that their kernels are made of.
const EXAMPLES: [(&str, &[&str]); 7] = [
    ("histogram", &["histogram"]),
    ("matrix_product", &["product"]),
    ("n_body", &["pull", "advance"]),
    ("nearest", &["nearest"]),
    ("scan", &["sums", "scan", "add"]),
    ("sobel", &["weighted", "sobel"]),
    ("softmax", &["share", "softmax"]),
];

/// The lines of a function with its attributes, without comments: from the first that is not indented up to
/// the last before the next of those.
fn lines_of<'a>(text: &'a str, begin: &str, comment: &str) -> Vec<&'a str> {
    let all: Vec<&str> = text.lines().collect();
    let public = format!("pub {begin}");
    let at = all
        .iter()
        .position(|line| line.starts_with(begin) || line.starts_with(&public))
        .unwrap_or_else(|| panic!("there is no `{begin}`"));
    let is_attribute = |line: &&&str| line.starts_with("#[") || line.starts_with('@');
    let attributes = all[..at].iter().rev().take_while(is_attribute).count();
    let is_inside = |line: &&&str| {
        line.is_empty() || line.starts_with([' ', '}', ')']) && !line.starts_with("fn")
    };
    let rest = all[at + 1..].iter().take_while(is_inside).count();
    let body = all[at - attributes..=at + rest].iter();
    let counts = |line: &&&str| {
        let words = line.trim();
        !words.is_empty() && !words.starts_with(comment) && !words.starts_with("\"\"\"")
    };
    body.filter(counts).copied().collect()
}

#[test]
fn a_kernel_is_hardly_longer_in_rust_than_in_python() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |file: String| std::fs::read_to_string(root.join(file)).expect("an example");
    for (name, functions) in EXAMPLES {
        let rust = read(format!("crates/invar/examples/{name}.rs"));
        let python = read(format!("examples/python/{name}.py"));
        let count = |text: &str, word: &str, comment: &str| -> usize {
            let all = functions.iter();
            all.map(|f| lines_of(text, &format!("{word} {f}("), comment).len())
                .sum()
        };
        let (rust, python) = (count(&rust, "fn", "//"), count(&python, "def", "#"));
        assert!(
            rust * 10 <= python * 13,
            "{name}: {rust} lines in Rust are more than 1.3 times the {python} in Python"
        );
    }
}
