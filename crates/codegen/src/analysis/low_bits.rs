//! How many low bits of each integer make a difference to anything.
//!
//! A backward pass: bits above those that are counted for a value may be any without a kernel doing
//! otherwise. Sums, differences, products, conversions between integers and bitwise operations make a low bit
//! of low bits only; shifts by constants move them. Everything else, what loops carry too, counts all bits.

use std::collections::HashMap;

use invar_ir::{Const, Inst, Kernel, Op, Value};

use crate::passes::common::{constants, integer};

/// The low bits that count, of the integer scalars of a kernel.
#[derive(Clone, Debug)]
pub struct LowBits {
    counts: Vec<u32>,
}

impl LowBits {
    /// How many low bits of an integer scalar count: none if nothing uses it, at most those of its type.
    pub fn of(&self, value: Value) -> u32 {
        self.counts[value.0 as usize]
    }
}

/// Finds which bits of a kernel's integers count.
///
/// ```
/// use invar_codegen::analysis::low_bits::analyse;
/// use invar_ir::Value;
///
/// let text = "kernel @k(%x: device read_write u32, %n: u32) {
///     %one = const u32 1
///     %last = const u32 31
///     %sum = add %n, %one
///     %parity = shl %sum, %last
///     store %x[%one], %parity
/// }";
/// let module = invar_ir::text::parse("k.inv", text)?;
/// let bits = analyse(&module.kernels[0]);
/// // Of the parameter and of the sum the lowest bit counts, of what is stored each.
/// assert_eq!([0, 3, 4].map(|i| bits.of(Value(i))), [1, 1, 32]);
/// # Ok::<(), invar_ir::Diagnostics>(())
/// ```
pub fn analyse(kernel: &Kernel) -> LowBits {
    let mut insts = Vec::new();
    kernel.for_each_inst(&mut |inst| insts.push(inst));
    let mut walk = Walk {
        kernel,
        constants: constants(kernel),
        counts: vec![0; kernel.values.len()],
    };
    // What uses a value comes after it.
    for inst in insts.into_iter().rev() {
        walk.inst(inst);
    }
    LowBits {
        counts: walk.counts,
    }
}

struct Walk<'a> {
    kernel: &'a Kernel,
    constants: HashMap<Value, Const>,
    counts: Vec<u32>,
}

impl Walk<'_> {
    fn inst(&mut self, inst: &Inst) {
        if let Some((op, _, args)) = inst.kind.as_op()
            && self.kernel.ty(inst.results[0]).is_integer_scalar()
            && let Some(counts) = self.operands(op, args, inst.results[0])
        {
            for (value, count) in args.iter().zip(counts) {
                self.count(*value, count);
            }
            return;
        }
        inst.kind.for_each_use(|value| self.count(value, u32::MAX));
    }

    fn count(&mut self, value: Value, count: u32) {
        let bits = self.kernel.ty(value).scalar().map_or(0, |s| s.bits());
        let old = &mut self.counts[value.0 as usize];
        *old = (*old).max(count.min(bits));
    }

    /// How many low bits of each operand count, by those of the result; `None` if it may be all.
    fn operands(&self, op: Op, args: &[Value], result: Value) -> Option<[u32; 2]> {
        let of_result = self.counts[result.0 as usize];
        match op {
            Op::Add | Op::Sub | Op::Mul | Op::And | Op::Or | Op::Xor | Op::Neg | Op::Not => {
                Some([of_result; 2])
            }
            Op::Shl => Some([of_result.saturating_sub(self.shift(args)?), u32::MAX]),
            // Nothing of what is not used; else the bits that move to those that count.
            Op::Shr | Op::ShrExact if of_result > 0 => {
                Some([of_result + self.shift(args)?, u32::MAX])
            }
            // Beyond the bits of the operand it is its sign, which is among all of them.
            Op::Cast if self.kernel.ty(args[0]).is_integer_scalar() => Some([of_result; 2]),
            _any_bit => None,
        }
    }

    /// By how much a shift moves, if that is a constant less than the width.
    fn shift(&self, args: &[Value]) -> Option<u32> {
        let bits = self.kernel.ty(args[0]).scalar()?.bits();
        let count = integer(*self.constants.get(&args[1])?)?;
        u32::try_from(count).ok().filter(|count| *count < bits)
    }
}
