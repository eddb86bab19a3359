//! A8: contraction makes fused products of sums, and nothing else.

use invar_ir::contract::contract;
use invar_ir::{
    Access, FloatMode, Imm, InstKind, KernelBuilder, Module, Op, Place, Scalar, Type, Value,
};

/// A kernel that stores what `body` makes of four scalars or vectors of a type.
fn kernel(
    ty: Type,
    mode: FloatMode,
    body: impl Fn(&mut KernelBuilder, [Value; 4]) -> Value,
) -> Module {
    let mut k = KernelBuilder::new(Module::default(), "k");
    k.kernel_mut().float_mode = mode;
    let args = ["a", "b", "c", "d"].map(|name| k.scalar(name, ty));
    let result = body(&mut k, args);
    let result_type = k.ty(result);
    let out = k.buffer("out", Access::Write, result_type);
    let zero = k.const_u32(0);
    k.store(Place::element(out, zero), result);
    k.finish().expect("a right kernel")
}

/// The stored value written with operators as functions: `fma(a, b, neg(c))`.
fn meaning(module: &Module) -> String {
    fn write(module: &Module, value: Value) -> String {
        let kernel = &module.kernels[0];
        let mut text = kernel.value_name(value).trim_start_matches('%').to_string();
        kernel.for_each_inst(&mut |inst| {
            if let (InstKind::Op { op, args, .. }, [result]) = (&inst.kind, &inst.results[..])
                && *result == value
            {
                let args: Vec<String> = args.iter().map(|v| write(module, *v)).collect();
                text = format!("{op}({})", args.join(", "));
            }
        });
        text
    }
    let mut text = String::new();
    module.kernels[0].for_each_inst(&mut |inst| {
        if let InstKind::Store { value, .. } = inst.kind {
            text = write(module, value);
        }
    });
    text
}

fn contracted(ty: Type, body: impl Fn(&mut KernelBuilder, [Value; 4]) -> Value) -> String {
    meaning(&contract(kernel(ty, FloatMode::Contract, body)).expect("a right kernel"))
}

const F32: Type = Type::F32;

#[test]
fn a8_product_plus_addend() {
    let found = contracted(F32, |k, [a, b, c, _]| {
        let product = k.mul(a, b);
        k.add(product, c)
    });
    assert_eq!(found, "fma(a, b, c)");
}

#[test]
fn a8_addend_plus_product() {
    let found = contracted(F32, |k, [a, b, c, _]| {
        let product = k.mul(a, b);
        k.add(c, product)
    });
    assert_eq!(found, "fma(a, b, c)");
}

#[test]
fn a8_product_minus_subtrahend() {
    let found = contracted(F32, |k, [a, b, c, _]| {
        let product = k.mul(a, b);
        k.sub(product, c)
    });
    assert_eq!(found, "fma(a, b, neg(c))");
}

#[test]
fn a8_minuend_minus_product() {
    let found = contracted(F32, |k, [a, b, c, _]| {
        let product = k.mul(a, b);
        k.sub(c, product)
    });
    assert_eq!(found, "fma(neg(a), b, c)");
}

#[test]
fn a8_two_products_stay() {
    for op in [Op::Add, Op::Sub] {
        let found = contracted(F32, |k, [a, b, c, d]| {
            let [left, right] = [k.mul(a, b), k.mul(c, d)];
            k.op(op, Imm::None, &[left, right])
        });
        assert_eq!(found, format!("{op}(mul(a, b), mul(c, d))"));
        // One product twice is two operands that are products.
        let found = contracted(F32, |k, [a, b, ..]| {
            let product = k.mul(a, b);
            k.op(op, Imm::None, &[product, product])
        });
        assert_eq!(found, format!("{op}(mul(a, b), mul(a, b))"));
    }
}

#[test]
fn a8_other_uses_of_the_product_do_not_matter() {
    let found = contracted(F32, |k, [a, b, c, d]| {
        let product = k.mul(a, b);
        let sum = k.add(product, c);
        let quotient = k.div(product, d);
        k.div(sum, quotient)
    });
    assert_eq!(found, "div(fma(a, b, c), div(mul(a, b), d))");
}

#[test]
fn a8_vectors_and_every_float_type_by_component() {
    for scalar in [Scalar::F16, Scalar::BF16, Scalar::F32, Scalar::F64] {
        for ty in [
            Type::Scalar(scalar),
            Type::Vector(scalar, 2),
            Type::Vector(scalar, 4),
        ] {
            let found = contracted(ty, |k, [a, b, c, _]| {
                let product = k.mul(a, b);
                k.sub(c, product)
            });
            assert_eq!(found, "fma(neg(a), b, c)", "{ty}");
        }
    }
}

#[test]
fn a8_integers_stay() {
    for ty in [Type::I32, Type::Vector(Scalar::U16, 3)] {
        let found = contracted(ty, |k, [a, b, c, _]| {
            let product = k.mul(a, b);
            k.add(product, c)
        });
        assert_eq!(found, "add(mul(a, b), c)", "{ty}");
    }
}

#[test]
fn a8_only_a_product_named_directly_counts() {
    let found = contracted(F32, |k, [a, b, c, _]| {
        let product = k.mul(a, b);
        let negated = k.neg(product);
        k.add(negated, c)
    });
    assert_eq!(found, "add(neg(mul(a, b)), c)");
}

#[test]
fn a8_a_product_outside_a_region_is_fused_inside() {
    let module = kernel(F32, FloatMode::Contract, |k, [a, b, c, d]| {
        let product = k.mul(a, b);
        let less = k.lt(c, d);
        k.if_values(
            less,
            |k| vec![k.add(product, c)],
            |k| vec![k.sub(d, product)],
        )[0]
    });
    let module = contract(module).expect("a right kernel");
    let mut ops = Vec::new();
    module.kernels[0].for_each_inst(&mut |inst| {
        ops.extend(inst.kind.as_op().map(|(op, ..)| op));
    });
    assert_eq!(ops, [Op::Mul, Op::Lt, Op::Fma, Op::Neg, Op::Fma]);
}

#[test]
fn a8_a_fused_sum_is_no_product() {
    // a*b + (a*b + c): the inner sum is an fma now, and the outer one has one product.
    let found = contracted(F32, |k, [a, b, c, _]| {
        let product = k.mul(a, b);
        let inner = k.add(product, c);
        k.add(product, inner)
    });
    assert_eq!(found, "fma(a, b, fma(a, b, c))");
}

#[test]
fn a8_strict_and_fast_kernels_are_left_alone() {
    for mode in [FloatMode::Strict, FloatMode::Fast] {
        let module = kernel(F32, mode, |k, [a, b, c, _]| {
            let product = k.mul(a, b);
            k.add(product, c)
        });
        let module = contract(module).expect("a right kernel");
        assert_eq!(meaning(&module), "add(mul(a, b), c)", "{}", mode.name());
    }
}

#[test]
fn a8_names_and_spans_stay() {
    let mut k = KernelBuilder::new(Module::default(), "k");
    let [a, b, c] = ["a", "b", "c"].map(|name| k.scalar(name, F32));
    let out = k.buffer("out", Access::Write, F32);
    let mut span = invar_ir::Span::NONE;
    span.start.line = 7;
    let product = k.mul(a, b);
    k.set_span(span);
    let sum = k.add(product, c);
    k.name(sum, "total");
    let zero = k.const_u32(0);
    k.store(Place::element(out, zero), sum);
    let module = contract(k.finish().expect("a right kernel")).expect("a right kernel");
    let mut found = None;
    module.kernels[0].for_each_inst(&mut |inst| {
        if inst.kind.as_op().is_some_and(|(op, ..)| op == Op::Fma) {
            let name = module.kernels[0].value_name(inst.results[0]);
            found = Some((name, inst.span.start.line));
        }
    });
    assert_eq!(found, Some(("%total".to_string(), 7)));
}
