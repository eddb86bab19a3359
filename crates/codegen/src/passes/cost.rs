//! What instructions cost, as far as passes and compilers ask before they compute something for threads that
//! do not need it, or once more.

use crate::tuning::CHEAP_INSTRUCTIONS;
use invar_ir::ops::Meaning;
use invar_ir::{InstKind, Op, Region};

/// What it costs to compute something for threads that do not need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cost {
    /// An instruction of the machine or two.
    Little,
    /// Several.
    Some,
    /// Many; or it cannot be computed for nothing.
    Much,
}

/// What an instruction costs where it is computed for nothing.
pub fn cost(kind: &InstKind) -> Cost {
    let InstKind::Op { op, .. } = kind else {
        let little = kind.is_speculatable();
        return if little { Cost::Little } else { Cost::Much };
    };
    match op.row().meaning {
        Meaning::Eval(_) => match op {
            Op::Div | Op::Rem | Op::Sqrt => Cost::Much,
            Op::MulHi => Cost::Some,
            _in_hardware => Cost::Little,
        },
        Meaning::Arrange => match op {
            Op::Construct | Op::Swizzle | Op::AsType => Cost::Little,
            _by_index_or_column => Cost::Some,
        },
        Meaning::Query => Cost::Little,
        Meaning::Expand(_) | Meaning::Lanes(..) => Cost::Much,
    }
}

/// Whether a region has few instructions, none of which costs [`Cost::Much`], so that computing it for nothing
/// may take less than a branch.
pub fn is_cheap(region: &Region) -> bool {
    let cheap = |kind: &InstKind| kind.is_terminator() || cost(kind) < Cost::Much;
    region.insts.len() <= CHEAP_INSTRUCTIONS && region.insts.iter().all(|inst| cheap(&inst.kind))
}
