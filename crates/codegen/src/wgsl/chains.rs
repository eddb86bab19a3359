//! Chains of minima or maxima of `f32`, as a loop over a row makes them: each operand becomes an integer of
//! the same order once, and only a result that something else uses becomes a float again.

use std::collections::{HashMap, HashSet};

use invar_ir::{Inst, InstKind, Kernel, Op, Type, Value};

use super::helpers::Helper;
use super::writer::Writer;

/// Whether an operation gives the greatest, or the least.
fn greatest(op: Op) -> Option<bool> {
    match op {
        Op::Max | Op::Fmax => Some(true),
        Op::Min | Op::Fmin => Some(false),
        _other => None,
    }
}

/// The minima and maxima one of whose operands is another one, and these operands.
pub(super) fn chained(kernel: &Kernel) -> HashSet<Value> {
    let mut found: HashMap<Value, bool> = HashMap::new();
    let mut chained = HashSet::new();
    kernel.for_each_inst(&mut |inst| {
        let InstKind::Op { op, args, .. } = &inst.kind else {
            return;
        };
        let (Some(which), Some(result)) = (greatest(*op), inst.results.first()) else {
            return;
        };
        if kernel.ty(*result) != Type::F32 {
            return;
        }
        found.insert(*result, which);
        let links: Vec<Value> = args
            .iter()
            .copied()
            .filter(|v| found.get(v) == Some(&which))
            .collect();
        if !links.is_empty() {
            chained.extend(links);
            chained.insert(*result);
        }
    });
    chained
}

impl Writer<'_> {
    /// Writes a link of a chain, if the instruction is one.
    pub(super) fn chain(&mut self, inst: &Inst, op: Op, args: &[Value]) -> bool {
        let (Some(which), Some(result)) = (greatest(op), inst.results.first().copied()) else {
            return false;
        };
        if !self.chained.contains(&result) {
            return false;
        }
        self.need(Helper::Order);
        self.need(Helper::Unorder);
        // min(a, b) = -max(-a, -b): in both orders NaN comes first.
        let sign = if which { "" } else { "-" };
        let orders: Vec<String> = args
            .iter()
            .map(|v| match self.orders.get(&(*v, which)) {
                Some(order) => order.clone(),
                None => format!("f32__order({sign}{})", self.value(*v)),
            })
            .collect();
        let order = self.names.unique("order");
        self.line(format!("let {order} = max({});", orders.join(", ")));
        if !self.followed_long.contains(&result) {
            self.orders.insert((result, which), order.clone());
        }
        self.bind(result, format!("{sign}f32__unorder({order})"));
        true
    }
}
