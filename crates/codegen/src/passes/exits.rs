//! What leaves loops and kernels early, and what loops hand from round to round.

use invar_ir::{Inst, InstKind, Region, Value};

/// The parameters that a loop carries: not the index of a counted one.
pub fn carried(inst: &Inst) -> &[Value] {
    match &inst.kind {
        InstKind::For { body, .. } => &body.params[1..],
        InstKind::Loop { body, .. } => &body.params,
        _no_loop => &[],
    }
}

/// Whether a loop's body holds a `continue` of that loop.
pub fn has_continue(body: &Region) -> bool {
    holds(body, &|kind| matches!(kind, InstKind::Continue(_)))
}

/// Whether a region of a loop's body holds a `break` of that loop.
pub fn has_break(region: &Region) -> bool {
    holds(region, &|kind| matches!(kind, InstKind::Break(_)))
}

/// Whether a loop's body holds a `break` or `continue` of that loop.
pub fn has_exit(body: &Region) -> bool {
    holds(body, &is_exit)
}

/// Whether an instruction is or holds a `break` or `continue` of a loop around it.
pub fn leaves_loop(inst: &Inst) -> bool {
    is_or_holds(inst, &is_exit)
}

/// Whether an instruction is or holds a `return`.
pub fn returns(inst: &Inst) -> bool {
    matches!(inst.kind, InstKind::Return)
        || inst
            .kind
            .regions()
            .iter()
            .any(|r| r.insts.iter().any(returns))
}

/// Whether a region holds a `break`, `continue` or `return`, be it of a loop inside.
pub(super) fn ends_early(region: &Region) -> bool {
    region.insts.iter().any(|inst| {
        is_exit(&inst.kind)
            || matches!(inst.kind, InstKind::Return)
            || inst.kind.regions().into_iter().any(ends_early)
    })
}

fn is_exit(kind: &InstKind) -> bool {
    matches!(kind, InstKind::Break(_) | InstKind::Continue(_))
}

/// Whether a region holds a terminator of this kind that is its own loop's, not one of a loop inside.
fn holds(region: &Region, is: &dyn Fn(&InstKind) -> bool) -> bool {
    region.insts.iter().any(|inst| is_or_holds(inst, is))
}

fn is_or_holds(inst: &Inst, is: &dyn Fn(&InstKind) -> bool) -> bool {
    match &inst.kind {
        InstKind::If {
            then, otherwise, ..
        } => holds(then, is) || holds(otherwise, is),
        kind => is(kind),
    }
}
