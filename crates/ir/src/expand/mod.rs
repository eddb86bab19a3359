//! Functions written out by the operations that define them (A10).
//!
//! An expansion is a Rust function of type [`crate::ops::Expansion`]: it gets the builder and the
//! operands and builds the defining operations. It must be straight-line where it can, work for
//! every type its signature admits (operations go component by component, so most need not ask),
//! and use rows whose meaning is an evaluator, other expansions, or `construct` and `extract`.

use crate::diagnostic::Diagnostics;
use crate::inst::InstKind;
use crate::module::Module;
use crate::ops::{Imm, Meaning, Op};
use crate::rewrite::rewrite;
use crate::types::Type;

/// Writes out, in every kernel, each operation that has an expansion and that `keep` does not keep.
/// What expansions build is written out in turn.
///
/// # Errors
/// Only for an expansion that does not fit its own signature, which a test rules out.
pub fn expand(
    module: Module,
    keep: &dyn Fn(Op, Imm, &[Type]) -> bool,
) -> Result<Module, Diagnostics> {
    let mut module = module;
    for index in 0..module.kernels.len() {
        // An expansion may use rows that have one themselves; each round writes out one level.
        while needs_expansion(&module, index, keep) {
            module = rewrite(module, index, &mut |b, inst| {
                let (op, imm, args) = inst.kind.as_op()?;
                let Meaning::Expand(expansion) = op.row().meaning else {
                    return None;
                };
                let types: Vec<Type> = args.iter().map(|v| b.ty(*v)).collect();
                if keep(op, imm, &types) {
                    return None;
                }
                Some([expansion(b, imm, args)].into_iter().collect())
            })?;
        }
    }
    Ok(module)
}

fn needs_expansion(module: &Module, index: usize, keep: &dyn Fn(Op, Imm, &[Type]) -> bool) -> bool {
    let kernel = &module.kernels[index];
    let mut found = false;
    kernel.for_each_inst(&mut |inst| {
        if let InstKind::Op { op, imm, args } = &inst.kind
            && matches!(op.row().meaning, Meaning::Expand(_))
        {
            let types: Vec<Type> = args.iter().map(|v| kernel.ty(*v)).collect();
            found |= !keep(*op, *imm, &types);
        }
    });
    found
}
