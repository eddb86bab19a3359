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
    body.exits().continues
}

/// Whether a region of a loop's body holds a `break` of that loop.
pub fn has_break(region: &Region) -> bool {
    region.exits().breaks
}

/// Whether a loop's body holds a `break` or `continue` of that loop.
pub fn has_exit(body: &Region) -> bool {
    body.exits().leaves_loop()
}

/// Whether an instruction is or holds a `break` or `continue` of a loop around it.
pub fn leaves_loop(inst: &Inst) -> bool {
    inst.exits().leaves_loop()
}

/// Whether an instruction is or holds a `return`.
pub fn returns(inst: &Inst) -> bool {
    inst.exits().returns
}
