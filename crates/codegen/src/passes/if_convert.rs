//! If-conversion: an `if` that only chooses between a few cheap values computes both sides and
//! `select`s. There is nothing to gain where a side holds an effect, and no store is ever put there
//! that the author did not write (R2).

use invar_ir::{Imm, Inst, InstKind, Kernel, Op, Region, Type, ValueInfo, Values};

use super::PassOptions;
use super::common::{Map, resolve, substitute, yielded};
use super::cost::{Cost, cost};

pub(super) fn run(kernel: &mut Kernel, options: &PassOptions) {
    let mut body = std::mem::take(&mut kernel.body);
    let mut map = Map::new();
    region(&kernel.values, &mut body, options, &mut map);
    kernel.body = body;
}

fn region(values: &[ValueInfo], r: &mut Region, options: &PassOptions, map: &mut Map) {
    let old = std::mem::take(&mut r.insts);
    for mut inst in old {
        substitute(map, &mut inst.kind);
        for inner in inst.kind.regions_mut() {
            region(values, inner, options, map);
        }
        match convertible(values, &inst, options) {
            true => convert(inst, &mut r.insts, map),
            false => r.insts.push(inst),
        }
    }
}

fn convertible(values: &[ValueInfo], inst: &Inst, options: &PassOptions) -> bool {
    let InstKind::If {
        then, otherwise, ..
    } = &inst.kind
    else {
        return false;
    };
    let sides = [then, otherwise];
    let cheap = |i: &Inst| cost(&i.kind) == Cost::Little || i.kind.is_terminator();
    let insts: usize = sides.iter().map(|r| r.insts.len() - 1).sum();
    !inst.results.is_empty()
        && insts <= options.if_conversion_instructions
        && sides.iter().all(|r| yielded(r).is_some())
        && sides.iter().all(|r| r.insts.iter().all(cheap))
        && inst.results.iter().all(|v| match values[v.0 as usize].ty {
            Type::Scalar(_) | Type::Vector(..) => true,
            Type::Matrix { .. } | Type::SimdgroupMatrix { .. } | Type::Event => false,
        })
}

fn convert(inst: Inst, out: &mut Vec<Inst>, map: &mut Map) {
    let span = inst.span;
    let InstKind::If {
        condition,
        mut then,
        mut otherwise,
    } = inst.kind
    else {
        return;
    };
    let on_true = yielded(&then).map(<[_]>::to_vec).unwrap_or_default();
    let on_false = yielded(&otherwise).map(<[_]>::to_vec).unwrap_or_default();
    then.insts.pop();
    otherwise.insts.pop();
    out.append(&mut then.insts);
    out.append(&mut otherwise.insts);
    let pairs = on_false.into_iter().zip(on_true);
    for (result, (on_false, on_true)) in inst.results.into_iter().zip(pairs) {
        let (on_false, on_true) = (resolve(map, on_false), resolve(map, on_true));
        if on_false == on_true {
            map.insert(result, on_true);
            continue;
        }
        out.push(Inst {
            kind: InstKind::Op {
                op: Op::Select,
                imm: Imm::None,
                args: Values::from_slice(&[on_false, on_true, condition]),
            },
            results: [result].into_iter().collect(),
            span,
        });
    }
}
