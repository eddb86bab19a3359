//! Random kernels that print: lines put among the instructions of a case.
//!
//! Invariant: what is printed is what R4 says is the same on every device: no atomic's result.

use invar_ir::rewrite::rewrite;
use invar_ir::{Diagnostics, InstKind, Type, Value};

use crate::case::Case;
use crate::random::Random;

/// The case with lines that print values of its scalars and vectors, by a seed.
///
/// # Errors
/// What the builder found wrong with it; nothing for a generated case.
pub fn with_prints(case: Case, seed: u64) -> Result<Case, Diagnostics> {
    let mut random = Random::new(seed);
    let mut number = 0;
    let module = rewrite(case.module, 0, &mut |b, inst| {
        let is_value = |v: &Value| matches!(b.ty(*v), Type::Scalar(_) | Type::Vector(..));
        let mut operands = Vec::new();
        inst.kind.for_each_use(|v| operands.push(v));
        // What comes in front of a terminator or block, or of what meets others, is printed all the same.
        let of_atomic = matches!(inst.kind, InstKind::Atomic { .. });
        operands.retain(|v| is_value(v));
        if of_atomic || operands.is_empty() || !random.one_in(4) {
            return None;
        }
        number += 1;
        let values: Vec<Value> = operands.into_iter().take(3).collect();
        let places = vec![" {}"; values.len()].concat();
        b.print(&format!("line {number}{places}"), &values);
        None
    })?;
    Ok(Case { module, ..case })
}
