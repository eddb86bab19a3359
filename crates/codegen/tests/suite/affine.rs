//! The analysis of affine indices: each line of `tests/ir/affine` that defines integers says in a comment what
//! they are sums of, and in random kernels every integer is its sum.

use std::collections::{BTreeMap, HashMap};

use invar_codegen::analysis::affine::{Affine, Form, Product, Sum, Symbol, analyse};
use invar_codegen::analysis::ranges::{self, Known};
use invar_conformance::{Options, generate};
use invar_ir::{Imm, InstKind, Kernel, Op, Scalar, Type, Value, text, verify};

use crate::checks::{Build, check, threads};

fn symbol(kernel: &Kernel, symbol: Symbol) -> String {
    match symbol {
        Symbol::Thread(dim) => format!("thread.{}", dim.name()),
        Symbol::Threadgroup(dim) => format!("threadgroup.{}", dim.name()),
        Symbol::Size(dim) => format!("size.{}", dim.name()),
        Symbol::Query(op, dim) => {
            let dim = dim.map_or(String::new(), |dim| format!(".{}", dim.name()));
            format!("{op}{dim}")
        }
        Symbol::Iteration(index) => format!("iteration({})", kernel.value_name(index)),
        Symbol::Power(count, width) => format!("2^({} % {width})", kernel.value_name(count)),
        Symbol::Value(value) => kernel.value_name(value),
    }
}

/// A sum as it would be written, its terms in one order.
fn sum(kernel: &Kernel, sum: &Sum<Product>) -> String {
    let term = |(product, count): &(Product, i64)| {
        let symbols = product.symbols().map(|own| symbol(kernel, own));
        let factor = (*count != 1).then(|| count.to_string());
        factor
            .into_iter()
            .chain(symbols)
            .collect::<Vec<_>>()
            .join("*")
    };
    let mut terms: Vec<String> = sum.terms().iter().map(term).collect();
    terms.sort();
    if sum.offset() != 0 || terms.is_empty() {
        terms.push(sum.offset().to_string());
    }
    terms.join(" + ")
}

fn says(kernel: &Kernel, affine: &Affine<'_>, value: Value) -> String {
    let Form {
        sum: of,
        bits,
        exact,
    } = affine.of(value);
    let modulo = if exact {
        String::new()
    } else {
        format!(" modulo 2^{bits}")
    };
    format!(
        "{} = {}{modulo}",
        kernel.value_name(value),
        sum(kernel, &of)
    )
}

fn found(name: &str, source: &str) -> BTreeMap<u32, String> {
    let module = text::parse(name, source).and_then(verify);
    let module = module.unwrap_or_else(|e| panic!("{name}: {e}"));
    let mut found = BTreeMap::new();
    for kernel in &module.kernels {
        let ranges = ranges::analyse(kernel, &Known::default());
        let affine = analyse(kernel, &ranges, kernel.threadgroup_size);
        kernel.for_each_inst(&mut |inst| {
            let params = inst.kind.regions().into_iter().flat_map(|r| &r.params);
            let values = inst.results.iter().chain(params);
            let integers = values.filter(|v| kernel.ty(**v).is_integer_scalar());
            let says: Vec<String> = integers.map(|v| says(kernel, &affine, *v)).collect();
            if !says.is_empty() {
                found.insert(inst.span.start.line, says.join(", "));
            }
        });
    }
    found
}

#[test]
fn every_integer_is_the_sum_that_its_line_says() {
    crate::annotated::check("affine", 1, found);
}

/// The lower end and the step of each counted loop, by its index.
type Loops = HashMap<Value, [Value; 2]>;

const U64: Type = Type::Scalar(Scalar::U64);

fn wide(build: &mut Build<'_>, value: Value, to: Scalar) -> Value {
    let ty = Type::Scalar(to);
    build.op(Op::Cast, Imm::Type(ty), &[value], ty)
}

fn value_of(build: &mut Build<'_>, symbol: Symbol, loops: &Loops) -> Value {
    let query = match symbol {
        Symbol::Thread(dim) => (Op::ThreadPositionInThreadgroup, Some(dim)),
        Symbol::Threadgroup(dim) => (Op::ThreadgroupPositionInGrid, Some(dim)),
        Symbol::Size(dim) => (Op::DispatchThreadsPerThreadgroup, Some(dim)),
        Symbol::Query(op, dim) => (op, dim),
        Symbol::Iteration(index) => {
            let [lower, step] = loops[&index];
            let [index, lower, step] = [index, lower, step].map(|v| wide(build, v, Scalar::I64));
            let i64 = Type::Scalar(Scalar::I64);
            let far = build.op(Op::Sub, Imm::None, &[index, lower], i64);
            let iterations = build.op(Op::Div, Imm::None, &[far, step], i64);
            return wide(build, iterations, Scalar::U64);
        }
        Symbol::Power(count, width) => {
            let count = wide(build, count, Scalar::U64);
            let mask = build.constant(Scalar::U64, u64::from(width) - 1);
            let count = build.op(Op::And, Imm::None, &[count, mask], U64);
            let one = build.constant(Scalar::U64, 1);
            return build.op(Op::Shl, Imm::None, &[one, count], U64);
        }
        Symbol::Value(value) => return wide(build, value, Scalar::U64),
    };
    let (op, dim) = query;
    let value = build.op(op, dim.map_or(Imm::None, Imm::Dim), &[], Type::U32);
    wide(build, value, Scalar::U64)
}

/// Whether an integer differs from its sum, if that is not the integer itself.
fn differs(build: &mut Build<'_>, form: &Form, value: Value, loops: &Loops) -> Option<Value> {
    if form.sum == Sum::of(Product::of(Symbol::Value(value))) {
        return None;
    }
    let mut total = build.constant(Scalar::U64, form.sum.offset() as u64);
    for (product, count) in form.sum.terms() {
        let mut term = build.constant(Scalar::U64, *count as u64);
        for symbol in product.symbols() {
            let factor = value_of(build, symbol, loops);
            term = build.op(Op::Mul, Imm::None, &[term, factor], U64);
        }
        total = build.op(Op::Add, Imm::None, &[total, term], U64);
    }
    let own = wide(build, value, Scalar::U64);
    let by = build.op(Op::Sub, Imm::None, &[total, own], U64);
    let bits = if form.exact { 64 } else { form.bits };
    let mask = build.constant(Scalar::U64, u64::MAX >> (64 - bits));
    let by = build.op(Op::And, Imm::None, &[by, mask], U64);
    let zero = build.constant(Scalar::U64, 0);
    Some(build.op(Op::Ne, Imm::None, &[by, zero], Type::BOOL))
}

#[test]
fn every_integer_of_a_random_kernel_is_its_sum() {
    let (mut checks, mut exact) = (0, 0);
    for seed in 0..400 {
        let case = generate(seed, &Options::default());
        let kernel = case.kernel();
        let size = case.dispatch.threadgroup;
        let mut grid = threads(&case.dispatch).into_iter().zip(size);
        // What is said of a size is said of full threadgroups.
        let size = grid.all(|(n, size)| n % size == 0).then_some(size);
        let known = Known {
            threadgroup_size: Some(case.dispatch.threadgroup),
            threads: Some(threads(&case.dispatch)),
        };
        let ranges = ranges::analyse(kernel, &known);
        let affine = analyse(kernel, &ranges, size);
        let mut loops = Loops::new();
        kernel.for_each_inst(&mut |inst| {
            if let InstKind::For {
                lower, step, body, ..
            } = &inst.kind
            {
                loops.insert(body.params[0], [*lower, *step]);
            }
        });
        checks += check(seed, &case, &mut |build, value| {
            let defined = (value.0 as usize) < kernel.values.len();
            let form = defined.then(|| affine.of(value))?;
            exact += u64::from(form.exact);
            let is_integer = kernel.ty(value).is_integer_scalar();
            is_integer.then(|| differs(build, &form, value, &loops))?
        });
    }
    assert!(
        checks > 10_000 && exact > 5_000,
        "only {checks} checks, {exact} exact"
    );
}
