//! Truth values that are numbers: 1 and 0, put together bit by bit.
//!
//! Languages without vectors of truth values say `all` and `any` so, and compilers say them so where a truth value is kept
//! in memory. Deliberately absent: numbers that are neither 1 nor 0, and floats.

use invar_ir::{InstKind, Op, Scalar, Type, Value};

use crate::kernel::Subject;
use crate::linear::Formula;
use crate::query::Query;
use crate::value::Thread;

impl Subject<'_> {
    /// A constant of the kernel as a number.
    pub fn constant_number(&self, value: Value) -> Option<i128> {
        match self.shape.defining(value)? {
            InstKind::Const(constant) if constant.scalar.is_integer() => {
                Some(constant.scalar.integer(constant.bits))
            }
            _another => None,
        }
    }

    /// When a number is 1 that is a truth value, or several together bit by bit, and else 0: as languages without
    /// vectors of truth values say `all` and `any`.
    pub fn truth_as_number(
        &self,
        q: &mut Query,
        t: &mut Thread,
        value: Value,
        depth: usize,
    ) -> Option<Formula> {
        const DEEP: usize = 16;
        match self.constant_number(value) {
            Some(0) => return Some(Formula::FALSE),
            Some(1) => return Some(Formula::TRUE),
            Some(_) => return None,
            None if depth > DEEP => return None,
            None => {}
        }
        let InstKind::Op { op, args, .. } = self.shape.defining(value)? else {
            return None;
        };
        let is_integer = |value: Value| match self.kernel.ty(value) {
            Type::Scalar(scalar) => scalar.is_integer(),
            _several => false,
        };
        if !is_integer(value) {
            return None;
        }
        match (op, &args[..]) {
            (Op::Cast, [a]) if self.kernel.ty(*a) == Type::Scalar(Scalar::Bool) => {
                Some(self.truth_of(q, t, *a))
            }
            (Op::Cast | Op::AsType, [a]) => self.truth_as_number(q, t, *a, depth + 1),
            (Op::And | Op::Or, [a, b]) => {
                let a = self.truth_as_number(q, t, *a, depth + 1)?;
                let b = self.truth_as_number(q, t, *b, depth + 1)?;
                Some(match op {
                    Op::And => Formula::all([a, b]),
                    _or => Formula::any([a, b]),
                })
            }
            _another => None,
        }
    }
}
