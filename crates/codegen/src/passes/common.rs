//! What passes share: substitution of values, cloning of regions.

use std::collections::HashMap;

use invar_ir::{Const, Inst, InstKind, Kernel, Op, Region, Scalar, Span, Type, Value, ValueInfo};

/// Values that stand for others.
pub(super) type Map = HashMap<Value, Value>;

/// Instructions of a region and of those in it.
pub(crate) fn count(region: &Region) -> usize {
    let inner = |inst: &Inst| inst.kind.regions().into_iter().map(count).sum::<usize>();
    region.insts.iter().map(|inst| 1 + inner(inst)).sum()
}

/// Uses what stands for a value, followed to its end.
pub(super) fn resolve(map: &Map, value: Value) -> Value {
    let mut at = value;
    while let Some(next) = map.get(&at) {
        at = *next;
    }
    at
}

/// Replaces the operands of an instruction, not those in its regions.
pub(super) fn substitute(map: &Map, kind: &mut InstKind) {
    if !map.is_empty() {
        kind.for_each_use_mut(|v| *v = resolve(map, *v));
    }
}

/// Replaces all operands in a region.
pub(super) fn substitute_region(map: &Map, region: &mut Region) {
    for inst in &mut region.insts {
        substitute(map, &mut inst.kind);
        for inner in inst.kind.regions_mut() {
            substitute_region(map, inner);
        }
    }
}

/// A new value of a kernel.
pub(super) fn new_value(values: &mut Vec<ValueInfo>, ty: Type) -> Value {
    values.push(ValueInfo { ty, name: None });
    Value(values.len() as u32 - 1)
}

/// A constant, put at the end of a list.
pub(super) fn push_const(
    values: &mut Vec<ValueInfo>,
    insts: &mut Vec<Inst>,
    constant: Const,
    span: Span,
) -> Value {
    let ty = Type::Scalar(constant.scalar);
    push_inst(values, insts, InstKind::Const(constant), ty, span)
}

/// An instruction of one result of that type, put at the end of a list.
pub(super) fn push_inst(
    values: &mut Vec<ValueInfo>,
    insts: &mut Vec<Inst>,
    kind: InstKind,
    ty: Type,
    span: Span,
) -> Value {
    let value = new_value(values, ty);
    insts.push(Inst {
        kind,
        results: [value].into_iter().collect(),
        span,
    });
    value
}

/// The comparison that holds where this one does not: of integers.
pub(super) const fn opposite(op: Op) -> Option<Op> {
    Some(match op {
        Op::Lt => Op::Ge,
        Op::Ge => Op::Lt,
        Op::Gt => Op::Le,
        Op::Le => Op::Gt,
        Op::Eq => Op::Ne,
        Op::Ne => Op::Eq,
        _other => return None,
    })
}

/// A region with values of its own in the place of those that it defines; `map` holds what stands
/// for its parameters, and gets the rest.
pub(super) fn clone_region(values: &mut Vec<ValueInfo>, region: &Region, map: &mut Map) -> Region {
    let fresh = |values: &mut Vec<ValueInfo>, map: &mut Map, old: Value| {
        let new = new_value(values, values[old.0 as usize].ty);
        map.insert(old, new);
        new
    };
    let mut params = Vec::new();
    for old in &region.params {
        if !map.contains_key(old) {
            params.push(fresh(values, map, *old));
        }
    }
    let mut insts = Vec::with_capacity(region.insts.len());
    for inst in &region.insts {
        let mut new = inst.clone();
        new.kind.for_each_use_mut(|v| {
            if let Some(to) = map.get(v) {
                *v = *to;
            }
        });
        for inner in new.kind.regions_mut() {
            *inner = clone_region(values, inner, map);
        }
        for result in &mut new.results {
            *result = fresh(values, map, *result);
        }
        insts.push(new);
    }
    Region { params, insts }
}

/// The values that a region yields, if it comes to its end.
pub(crate) fn yielded(region: &Region) -> Option<&[Value]> {
    match region.insts.last().map(|inst| &inst.kind) {
        Some(InstKind::Yield(values)) => Some(values),
        _leaves_otherwise => None,
    }
}

/// What computes each value, by its number; none of parameters.
pub(crate) fn definitions(kernel: &Kernel) -> Vec<Option<&Inst>> {
    let mut definitions = vec![None; kernel.values.len()];
    kernel.for_each_inst(&mut |inst| {
        for result in &inst.results {
            definitions[result.0 as usize] = Some(inst);
        }
    });
    definitions
}

/// What each value is, where it is a scalar constant.
pub(crate) fn constants(kernel: &Kernel) -> HashMap<Value, Const> {
    let mut constants = HashMap::new();
    kernel.for_each_inst(&mut |inst| {
        if let InstKind::Const(constant) = inst.kind {
            constants.insert(inst.results[0], constant);
        }
    });
    constants
}

/// An integer constant as a mathematical integer.
pub(crate) fn integer(constant: Const) -> Option<i128> {
    let scalar = constant.scalar;
    if !scalar.is_integer() && scalar != Scalar::Bool {
        return None;
    }
    Some(scalar.integer(constant.bits))
}

/// Changes the body of a kernel by what its declarations say; the kernel that `change` gets has no body.
pub(super) fn change_body(kernel: &mut Kernel, change: impl FnOnce(&Kernel, &mut Region)) {
    let mut body = std::mem::take(&mut kernel.body);
    change(kernel, &mut body);
    kernel.body = body;
}
