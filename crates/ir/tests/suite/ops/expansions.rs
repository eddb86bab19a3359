//! Every expansion, for every type that its signature admits.

use std::collections::HashMap;

use invar_ir::contract::contract;
use invar_ir::expand::{MAX_EXPANDED_VALUES, expand};
use invar_ir::ops::{Expansion, Instance, Meaning};
use invar_ir::{
    Access, FloatMode, InstKind, Kernel, KernelBuilder, Module, Op, Place, Rule, Scalar, Type,
    Value,
};

fn expansions() -> impl Iterator<Item = (Op, Expansion)> {
    Op::all().filter_map(|op| match op.row().meaning {
        Meaning::Expand(expansion) => Some((op, expansion)),
        _ => None,
    })
}

/// A kernel that stores what `body` makes of operands of these types.
fn kernel(types: &[Type], body: impl Fn(&mut KernelBuilder, &[Value]) -> Value) -> Module {
    let mut k = KernelBuilder::new(Module::default(), "k");
    k.kernel_mut().float_mode = FloatMode::Contract;
    let args: Vec<Value> = types.iter().map(|ty| k.scalar("x", *ty)).collect();
    let result = body(&mut k, &args);
    let ty = k.ty(result);
    let out = k.buffer("out", Access::Write, ty);
    let zero = k.const_u32(0);
    k.store(Place::element(out, zero), result);
    k.finish().expect("a right kernel")
}

fn ops_of(kernel: &Kernel) -> Vec<Op> {
    let mut ops = Vec::new();
    kernel.for_each_inst(&mut |inst| ops.extend(inst.kind.as_op().map(|(op, ..)| op)));
    ops
}

fn instances(op: Op) -> Vec<Instance> {
    let instances = op.row().signature.instances();
    assert!(!instances.is_empty(), "{op} takes no types");
    instances
}

#[test]
fn every_expansion_gives_the_type_that_its_row_says() {
    for (op, expansion) in expansions() {
        for (imm, types) in instances(op) {
            let expected = op.result_type(imm, &types);
            let module = kernel(&types, |k, args| {
                let result = expansion(k, imm, args);
                assert_eq!(Ok(k.ty(result)), expected, "{op} of {types:?}");
                result
            });
            assert_eq!(module.kernels.len(), 1);
        }
    }
}

/// Whether each expansion in the end uses only rows that have none, and which it uses.
#[test]
fn no_expansion_comes_back_to_itself() {
    let mut uses: HashMap<Op, Vec<Op>> = HashMap::new();
    for (op, expansion) in expansions() {
        for (imm, types) in instances(op) {
            let module = kernel(&types, |k, args| expansion(k, imm, args));
            uses.entry(op)
                .or_default()
                .extend(ops_of(&module.kernels[0]));
        }
    }
    // Depth first; `true` while an operation is being looked at.
    fn visit(op: Op, uses: &HashMap<Op, Vec<Op>>, open: &mut HashMap<Op, bool>) {
        match open.get(&op) {
            Some(true) => panic!("the expansion of {op} uses {op}"),
            Some(false) => return,
            None => {}
        }
        open.insert(op, true);
        for next in uses.get(&op).into_iter().flatten() {
            visit(*next, uses, open);
        }
        open.insert(op, false);
    }
    let mut open = HashMap::new();
    for op in uses.keys() {
        visit(*op, &uses, &mut open);
    }
    assert!(
        open.len() > uses.len(),
        "expansions use basic operations too"
    );
}

#[test]
fn a10_expansions_come_down_to_basic_operations_and_contraction_finds_nothing_in_them() {
    for (op, _) in expansions() {
        for (imm, types) in instances(op) {
            let module = kernel(&types, |k, args| k.op(op, imm, args));
            let module = expand(module, &|_, _, _| false).expect("a right expansion");
            for inner in ops_of(&module.kernels[0]) {
                assert!(
                    matches!(
                        inner.row().meaning,
                        Meaning::Eval(_) | Meaning::Arrange | Meaning::Query
                    ),
                    "{op} of {types:?} is left with {inner}"
                );
            }
            let before = module.kernels[0].body.clone();
            let module = contract(module).expect("a right kernel");
            assert!(
                module.kernels[0].body == before,
                "{op} of {types:?}: contraction changes the expansion; write the fma out"
            );
        }
    }
}

#[test]
fn what_is_kept_stays() {
    let kept = |module| expand(module, &|op, _, _| op == Op::Smoothstep);
    let module = kernel(&[Type::F32; 3], |k, args| {
        let x = k.smoothstep(args[0], args[1], args[2]);
        k.saturate(x)
    });
    let ops = ops_of(&kept(module).expect("a right expansion").kernels[0]);
    assert_eq!(ops, [Op::Smoothstep, Op::Fmax, Op::Fmin]);
}

#[test]
fn expansions_inside_regions_are_written_out() {
    let module = kernel(&[Type::F32; 3], |k, args| {
        let less = k.lt(args[0], args[1]);
        k.if_values(
            less,
            |k| vec![k.clamp(args[0], args[1], args[2])],
            |_| vec![args[0]],
        )[0]
    });
    let module = expand(module, &|_, _, _| false).expect("a right expansion");
    assert_eq!(ops_of(&module.kernels[0]), [Op::Lt, Op::Max, Op::Min]);
}

#[test]
fn signatures_admit_what_they_list_and_nothing_else_of_two_operands() {
    let all: Vec<Type> = Type::elementwise().collect();
    for op in Op::all() {
        let signature = op.row().signature;
        let listed = instances(op);
        for (imm, types) in &listed {
            assert!(op.result_type(*imm, types).is_ok(), "{op} of {types:?}");
        }
        // Where nothing stands beside the operands, every list of one or two can be tried.
        if listed.iter().any(|(imm, _)| *imm != invar_ir::Imm::None) {
            continue;
        }
        let tried: Vec<Vec<Type>> = match signature.operand_count() {
            (1, 1) => all.iter().map(|a| vec![*a]).collect(),
            (2, 2) => all
                .iter()
                .flat_map(|a| all.iter().map(move |b| vec![*a, *b]))
                .collect(),
            _ => continue,
        };
        for types in tried {
            let fits = op.result_type(invar_ir::Imm::None, &types).is_ok();
            let is_listed = listed.iter().any(|(_, listed)| *listed == types);
            assert_eq!(fits, is_listed, "{op} of {types:?}");
        }
    }
}

#[test]
fn every_row_is_documented_and_found_by_its_name() {
    for op in Op::all() {
        let row = op.row();
        assert_eq!(row.op, op);
        assert_eq!(Op::from_name(row.name), Some(op));
        assert!(row.doc.trim().ends_with('.'), "{op}: {}", row.doc);
        assert!(!row.signature.to_string().is_empty());
    }
    assert_eq!(Op::from_name("no_such_operation"), None);
}

#[test]
fn every_operation_prints_and_parses_for_every_type() {
    for op in Op::all() {
        for (imm, types) in instances(op) {
            let module = kernel(&types, |k, args| k.op(op, imm, args));
            let text = module.to_string();
            let again = invar_ir::text::parse("printed", &text);
            let again = again.unwrap_or_else(|e| panic!("{op}: {e}\n{text}"));
            assert_eq!(again.to_string(), text);
            assert_eq!(ops_of(&again.kernels[0]), [op], "{text}");
        }
    }
}

#[test]
fn the_builder_keeps_an_operation_as_it_is_called() {
    let module = kernel(&[Type::F32; 3], |k, args| {
        k.clamp(args[0], args[1], args[2])
    });
    let mut kinds = Vec::new();
    module.kernels[0].for_each_inst(&mut |inst| {
        if let InstKind::Op { op, .. } = inst.kind {
            kinds.push(op);
        }
    });
    assert_eq!(kinds, [Op::Clamp]);
}

#[test]
fn functions_are_written_out_up_to_the_stated_number_of_values() {
    let written_out = |functions: usize| {
        let module = kernel(&[Type::Scalar(Scalar::F32)], |k, args| {
            (0..functions).fold(args[0], |v, _| k.atan2(v, args[0]))
        });
        expand(module, &|_, _, _| false).map(|module| module.kernels[0].values.len())
    };
    let values = |functions| written_out(functions).expect("few functions");
    let (one, two) = (values(1), values(2));
    let fit = (MAX_EXPANDED_VALUES - one) / (two - one);
    assert_eq!(values(fit), one + (fit - 1) * (two - one));
    let errors = written_out(fit + 3).expect_err("too many values").0;
    assert_eq!(errors[0].rule, Rule::LimitExceeded);
    assert_eq!(
        errors[0].message,
        "kernel `k` has more than 1048576 values once its functions are written out"
    );
}
