//! Contraction: the one rewrite of floats that a kernel's author gets without asking (A8).
//!
//! A float `add` or `sub` of which exactly one operand names a `mul` directly becomes an `fma`:
//!
//! | before | after |
//! |---|---|
//! | `a*b + c`, `c + a*b` | `fma(a, b, c)` |
//! | `a*b - c` | `fma(a, b, -c)` |
//! | `c - a*b` | `fma(-a, b, c)` |
//!
//! Where both operands are products nothing changes; other uses of a product do not matter, and the
//! product itself stays for them.
//!
//! It runs once, on what the author built, before any other pass and before
//! [`crate::expand::expand`]: what it looks for is what the author wrote, not what a pass made, so
//! every device fuses the same operations. Kernels in `strict` and `fast` mode are left alone: one
//! forbids it, and for the other each device fuses as it likes.

use std::collections::HashMap;

use smallvec::smallvec;

use crate::builder::KernelBuilder;
use crate::diagnostic::Diagnostics;
use crate::inst::{Inst, Value};
use crate::module::{FloatMode, Module};
use crate::ops::{Imm, Op};
use crate::rewrite::{Replacement, rewrite};

/// Contracts every kernel in `contract` mode.
///
/// ```
/// use invar_ir::contract::contract;
/// use invar_ir::{Access, KernelBuilder, Module, Op, Place, Scalar};
///
/// let mut k = KernelBuilder::new(Module::default(), "axpy");
/// let (a, x, y) = (k.scalar("a", Scalar::F32), k.scalar("x", Scalar::F32), k.scalar("y", Scalar::F32));
/// let out = k.buffer("out", Access::Write, Scalar::F32);
/// let product = k.mul(a, x);
/// let sum = k.add(product, y);
/// let zero = k.const_u32(0);
/// k.store(Place::element(out, zero), sum);
/// let module = contract(k.finish()?)?;
///
/// let mut fused = false;
/// module.kernels[0].for_each_inst(&mut |inst| {
///     fused |= inst.kind.as_op().is_some_and(|(op, ..)| op == Op::Fma);
/// });
/// assert!(fused);
/// # Ok::<(), invar_ir::Diagnostics>(())
/// ```
///
/// # Errors
/// None for a verified module; else what the builder found wrong with it.
pub fn contract(module: Module) -> Result<Module, Diagnostics> {
    let mut module = module;
    for index in 0..module.kernels.len() {
        if module.kernels[index].float_mode == FloatMode::Contract {
            let mut products = HashMap::new();
            module = rewrite(module, index, &mut |b, inst| fuse(b, inst, &mut products))?;
        }
    }
    Ok(module)
}

/// Rebuilds one instruction; `products` holds the factors of each float product so far.
fn fuse(
    b: &mut KernelBuilder,
    inst: &Inst,
    products: &mut HashMap<Value, (Value, Value)>,
) -> Replacement {
    let (op, _, args) = inst.kind.as_op()?;
    let (left, right) = match *args {
        [left, right] if b.ty(left).scalar().is_some_and(|s| s.is_float()) => (left, right),
        _ => return None,
    };
    match op {
        Op::Mul => {
            let product = b.op(op, Imm::None, args);
            products.insert(product, (left, right));
            Some(smallvec![product])
        }
        Op::Add => match (products.get(&left), products.get(&right)) {
            (Some((x, y)), None) => Some(smallvec![b.fma(*x, *y, right)]),
            (None, Some((x, y))) => Some(smallvec![b.fma(*x, *y, left)]),
            (Some(_), Some(_)) | (None, None) => None,
        },
        Op::Sub => match (products.get(&left), products.get(&right)) {
            (Some((x, y)), None) => {
                let minus_right = b.neg(right);
                Some(smallvec![b.fma(*x, *y, minus_right)])
            }
            (None, Some((x, y))) => {
                let minus_x = b.neg(*x);
                Some(smallvec![b.fma(minus_x, *y, left)])
            }
            (Some(_), Some(_)) | (None, None) => None,
        },
        _other => None,
    }
}
