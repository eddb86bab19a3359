#![allow(clippy::print_stdout, reason = "an example that prints")]
//! The problems that are decided while the kernels of the files named are proved, in SMT-LIB 2, for another
//! solver: before each a comment says what ours found.

use std::fmt::Write as _;

use invar_ir::{text, verify};
use invar_prove::linear::{Formula, Linear, Problem};
use invar_prove::{Options, problems};

fn number(n: i128) -> String {
    if n < 0 {
        format!("(- {})", n.unsigned_abs())
    } else {
        n.to_string()
    }
}

fn sum(form: &Linear) -> String {
    let mut out = format!("(+ {}", number(form.constant));
    for (var, factor) in &form.terms {
        // Writing to a string never fails.
        let _ = write!(out, " (* {} v{var})", number(*factor));
    }
    out + ")"
}

fn formula(fact: &Formula) -> String {
    let all = |parts: &[Formula]| parts.iter().map(formula).collect::<Vec<_>>().join(" ");
    match fact {
        Formula::AtLeast(form) => format!("(>= {} 0)", sum(form)),
        Formula::All(parts) if parts.is_empty() => "true".to_string(),
        Formula::Any(parts) if parts.is_empty() => "false".to_string(),
        Formula::All(parts) => format!("(and {})", all(parts)),
        Formula::Any(parts) => format!("(or {})", all(parts)),
    }
}

/// A problem: its variables, what the products are, its facts.
fn script(problem: &Problem) -> String {
    let mut out = String::new();
    for var in 0..problem.names.len() {
        out += &format!("(declare-const v{var} Int)\n");
    }
    let mut products: Vec<_> = problem.products.factors.iter().collect();
    products.sort();
    for (product, factors) in products {
        let factors: Vec<String> = factors.iter().map(|f| format!("v{f}")).collect();
        out += &format!("(assert (= v{product} (* {})))\n", factors.join(" "));
    }
    for fact in &problem.facts {
        out += &format!("(assert {})\n", formula(fact));
    }
    out
}

fn main() {
    for file in std::env::args().skip(1) {
        let source = std::fs::read_to_string(&file).expect("a file");
        let Ok(module) = text::parse(&file, &source).and_then(verify) else {
            continue;
        };
        let cases = text::cases(&source).expect("its directives");
        for kernel in &module.kernels {
            let options = Options {
                refute: false,
                ..Options::default()
            };
            let decided = problems(&module, &kernel.name, &cases, options);
            for (problem, refuted) in decided.expect("it is there") {
                let answer = if refuted { "unsat" } else { "sat" };
                println!("; {answer} {file} @{}", kernel.name);
                println!("{}; end", script(&problem));
            }
        }
    }
}
