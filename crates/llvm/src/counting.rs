//! Whether a counted loop has an iteration, and the index of the next.

use inkwell::values::BasicValueEnum;
use invar_ir::{Op, Scalar};

use crate::emit::Emit;

impl<'c> Emit<'c> {
    /// Whether a counted loop has a first iteration: `[lower, upper, step]`.
    pub fn goes(
        &self,
        scalar: Scalar,
        step_scalar: Scalar,
        [lower, upper, step]: [BasicValueEnum<'c>; 3],
    ) -> BasicValueEnum<'c> {
        let zero = step.get_type().const_zero();
        let below = self.eval(Op::Lt, scalar, Scalar::Bool, &[lower, upper]);
        let above = self.eval(Op::Gt, scalar, Scalar::Bool, &[lower, upper]);
        let up = self.eval(Op::Gt, step_scalar, Scalar::Bool, &[step, zero]);
        let down = self.eval(Op::Lt, step_scalar, Scalar::Bool, &[step, zero]);
        let and = |a, b| self.eval(Op::And, Scalar::Bool, Scalar::Bool, &[a, b]);
        let up = and(up, below);
        if !step_scalar.is_signed_integer() {
            return up;
        }
        let down = and(down, above);
        self.eval(Op::Or, Scalar::Bool, Scalar::Bool, &[up, down])
    }

    /// Whether a counted loop has a further iteration, and its index then: `[index, upper, step]`. The index
    /// is inside its bounds, so that the distance to the end does not wrap.
    pub fn following(
        &self,
        scalar: Scalar,
        step_scalar: Scalar,
        [index, upper, step]: [BasicValueEnum<'c>; 3],
    ) -> (BasicValueEnum<'c>, BasicValueEnum<'c>) {
        let unsigned = match scalar.bits() {
            8 => Scalar::U8,
            16 => Scalar::U16,
            32 => Scalar::U32,
            _ => Scalar::U64,
        };
        let sub = |a, b| self.eval(Op::Sub, unsigned, unsigned, &[a, b]);
        let less = |a, b| self.eval(Op::Lt, unsigned, Scalar::Bool, &[a, b]);
        let next = self.eval(Op::Add, unsigned, unsigned, &[index, step]);
        let up = less(step, sub(upper, index));
        if !step_scalar.is_signed_integer() {
            return (up, next);
        }
        let zero = step.get_type().const_zero();
        let down = less(sub(zero, step), sub(index, upper));
        let rises = self.eval(Op::Gt, step_scalar, Scalar::Bool, &[step, zero]);
        (self.select(rises, up, down), next)
    }

    /// One component of an operation, of scalars or vectors.
    pub fn eval(
        &self,
        op: Op,
        from: Scalar,
        to: Scalar,
        args: &[BasicValueEnum<'c>],
    ) -> BasicValueEnum<'c> {
        crate::ops::eval(self, op, from, to, args)
    }
}
