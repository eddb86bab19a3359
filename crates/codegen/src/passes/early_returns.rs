//! Early returns: what follows a branch that ends the kernel becomes a branch of its own.
//!
//! ```text
//! if i >= n { return } ...   ->   if i < n { ... }
//! ```
//!
//! This is for kernels whose threads return where their place is beyond the data. Behind a return, the lanes that are
//! left are known by a mask alone; a branch has code of its own for when all lanes take it, and passes that look at
//! guards see one.
//!
//! Deliberately absent: returns in loops; branches that do more than return; what threads meet in, which would stand in a
//! branch then; arrays that begin behind.

use std::collections::HashMap;

use invar_ir::inst::InstKind;
use invar_ir::{Imm, Inst, Kernel, Op, Region, Scalar, Span, Type, Value, ValueInfo, Values};

use super::common::{opposite, push_inst};
use crate::tuning::NESTED_RETURNS;

/// Conditions of a condition that are turned round, at most.
const MOST_CONDITIONS: u32 = 8;

pub(super) fn run(kernel: &mut Kernel) {
    let mut nest = Nest {
        conditions: HashMap::new(),
        values: std::mem::take(&mut kernel.values),
    };
    kernel.for_each_inst(&mut |inst| {
        if let (Some((op, _, args)), [result]) = (inst.kind.as_op(), &inst.results[..])
            && nest.values[result.0 as usize].ty == Type::Scalar(Scalar::Bool)
        {
            nest.conditions.insert(*result, (op, args.to_vec()));
        }
    });
    nest.region(&mut kernel.body, NESTED_RETURNS);
    kernel.values = nest.values;
}

struct Nest {
    /// What conditions are computed from.
    conditions: HashMap<Value, (Op, Vec<Value>)>,
    values: Vec<ValueInfo>,
}

impl Nest {
    /// Nests what follows the first return of a region that can be nested, and what follows others in there, so deep.
    fn region(&mut self, region: &mut Region, depth: u32) {
        let Some(deeper) = depth.checked_sub(1) else {
            return;
        };
        let nested = region.insts.iter().enumerate().find_map(|(at, inst)| {
            let returns_where = returns_where(inst)?;
            // What ends the region stays there.
            let rest = &region.insts[at + 1..region.insts.len() - 1];
            let fits = !rest.is_empty() && rest.iter().all(may_stand_in_a_branch);
            fits.then_some((at, returns_where))
        });
        let Some((at, returns_where)) = nested else {
            return;
        };
        let end = region.insts.len() - 1;
        let mut rest: Vec<Inst> = region.insts.drain(at + 1..end).collect();
        let span = region.insts[at].span;
        let InstKind::If {
            condition,
            then,
            otherwise,
        } = &mut region.insts[at].kind
        else {
            return;
        };
        let mut front = Vec::new();
        if returns_where {
            let mut most = MOST_CONDITIONS;
            *condition = self.inverse(*condition, &mut front, span, &mut most);
        }
        let ended = |span| Inst {
            kind: InstKind::Yield(Values::new()),
            results: std::iter::empty().collect(),
            span,
        };
        rest.push(ended(span));
        then.insts = rest;
        otherwise.insts = vec![ended(span)];
        self.region(then, deeper);
        region.insts.splice(at..at, front);
    }

    /// A condition that holds where another does not; what computes it is put at the end of a list.
    fn inverse(
        &mut self,
        condition: Value,
        front: &mut Vec<Inst>,
        span: Span,
        most: &mut u32,
    ) -> Value {
        let found = self.conditions.get(&condition).cloned();
        let known = found.filter(|_| *most > 0);
        *most = most.saturating_sub(1);
        let (op, args) = match known {
            Some((Op::Not, args)) => return args[0],
            Some((Op::Or, args)) => (Op::And, self.inverses(&args, front, span, most)),
            Some((Op::And, args)) => (Op::Or, self.inverses(&args, front, span, most)),
            Some((op, args)) if self.is_of_integers(&args) => match opposite(op) {
                Some(op) => (op, args),
                None => (Op::Not, vec![condition]),
            },
            Some(_) | None => (Op::Not, vec![condition]),
        };
        let kind = InstKind::Op {
            op,
            imm: Imm::None,
            args: args.into_iter().collect(),
        };
        let ty = Type::Scalar(Scalar::Bool);
        push_inst(&mut self.values, front, kind, ty, span)
    }

    fn inverses(
        &mut self,
        conditions: &[Value],
        front: &mut Vec<Inst>,
        span: Span,
        most: &mut u32,
    ) -> Vec<Value> {
        let each = conditions.iter();
        each.map(|one| self.inverse(*one, front, span, most))
            .collect()
    }

    /// Of floats that are no numbers, neither a comparison nor its opposite holds.
    fn is_of_integers(&self, args: &[Value]) -> bool {
        (args.iter()).all(|arg| self.values[arg.0 as usize].ty.is_integer_scalar())
    }
}

/// Where a branch of a region does nothing but return and the other one nothing at all: what its condition is then.
fn returns_where(inst: &Inst) -> Option<bool> {
    let InstKind::If {
        then, otherwise, ..
    } = &inst.kind
    else {
        return None;
    };
    let does = |region: &Region| match &region.insts[..] {
        [only] => Some(matches!(only.kind, InstKind::Return)),
        _more => None,
    };
    match (does(then), does(otherwise)) {
        (Some(true), Some(false)) => Some(true),
        (Some(false), Some(true)) => Some(false),
        _other => None,
    }
}

fn may_stand_in_a_branch(inst: &Inst) -> bool {
    let own = inst.kind.meets().is_none() && !matches!(inst.kind, InstKind::Alloc(_));
    let mut inner = (inst.kind.regions().into_iter()).flat_map(|region| &region.insts);
    own && inner.all(may_stand_in_a_branch)
}
